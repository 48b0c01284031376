/*
 * parts.h - inside ledger/: what matrix.json says, before it is multiplied out into cells.
 * Everything lies in one arena.
 */
#ifndef RFL_LEDGER_MATRIX_PARTS_H
#define RFL_LEDGER_MATRIX_PARTS_H

#include "base/alloc.h"
#include "base/json.h"
#include "base/where.h"
#include "ledger/matrix.h"

struct rfl_matrix__names {
	size_t n; /**< 0: not given */
	const char **items;
};

struct rfl_matrix__sizes {
	size_t n; /**< 0: not given */
	int64_t *items;
};

struct rfl_matrix__model {
	const char *name;
	struct rfl_matrix__sizes batches; /**< of this model; n 0: as the others */
};

/** An option as it is written: `off` takes back what an outer place gave. */
struct rfl_matrix__setting {
	struct rfl_matrix_option option;
	bool off;
};

struct rfl_matrix__settings {
	size_t n;
	struct rfl_matrix__setting *items;
};

/** What may be given for the whole file, for an environment and for extra cells. */
struct rfl_matrix__axes {
	size_t nmodels; /**< 0: not given */
	struct rfl_matrix__model *models;
	struct rfl_matrix__sizes batches;
	struct rfl_matrix__names precisions;
	struct rfl_matrix__settings settings;
};

/** An environment, or extra cells of one. */
struct rfl_matrix__block {
	const char *env, *backend;
	const char *pointer;
	struct rfl_matrix__axes axes;
	const struct rfl_matrix__settings *outer; /**< of the environment of extra cells, or NULL */
};

/** Cells that are left out: those that match every list that is given. */
struct rfl_matrix__rule {
	const char *pointer;
	struct rfl_matrix__names envs, models, precisions;
	struct rfl_matrix__sizes batches;
	size_t matched;
};

struct rfl_matrix__file {
	const char *path, *name, *description;
	int repeats;
	struct rfl_matrix__axes axes;
	size_t nenvs, nrules, nextras;
	struct rfl_matrix__block *envs, *extras;
	struct rfl_matrix__rule *rules;
	struct rfl_arena *arena; /**< borrowed */
};

/** matrix/read.c: read the document. */
enum rfl_rc rfl_matrix__read(json_t *root, struct rfl_matrix__file *f,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** matrix.c: multiply out. */
enum rfl_rc rfl_matrix__build(struct rfl_matrix__file *f, struct rfl_matrix *m,
			      struct rfl_err *err) RFL_WARN_UNUSED;

enum rfl_rc rfl_matrix__no_memory(const char *path, struct rfl_err *err);

#endif
