/*
 * golden_read.h - private to the golden files: a reader that fails once. Its first failure is kept
 * in rc; every later read gives 0 or NULL, so that callers need to look at rc only where they use
 * what was read.
 */
#ifndef RFL_RUNNER_GOLDEN_READ_H
#define RFL_RUNNER_GOLDEN_READ_H

#include <stdint.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"

struct rfl_golden_reader {
	const char *file;
	struct rfl_arena *arena; /* owns what is read */
	struct rfl_err *err;
	enum rfl_rc rc;
};

/* An object or array of the file, and its path for messages. */
struct rfl_golden_place {
	const json_t *json;
	char path[96];
};

/* Fail: file, path, then the words. key may be NULL. */
void rfl_golden__refuse(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			const char *key, const char *what);
/* Zeroed memory of the arena. */
void *rfl_golden__take(struct rfl_golden_reader *r, int64_t n, size_t size);

struct rfl_golden_place rfl_golden__member(struct rfl_golden_reader *r,
					   const struct rfl_golden_place *at, const char *key);
struct rfl_golden_place rfl_golden__element(const struct rfl_golden_place *at, int64_t i);

double rfl_golden__real_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at);
int64_t rfl_golden__int_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at);
int64_t rfl_golden__length_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at);
const char *rfl_golden__text_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at);

double rfl_golden__get_real(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			    const char *key);
int64_t rfl_golden__get_int(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			    const char *key);
const char *rfl_golden__get_text(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
				 const char *key);
double *rfl_golden__get_reals(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			      const char *key, int64_t *n);
int64_t *rfl_golden__get_ints(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			      const char *key, int64_t *n);
/* A list of rows, all of one length. */
double *rfl_golden__get_matrix(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			       const char *key, int64_t *rows, int64_t *columns);

#endif
