/*
 * rules.h - internal: docs/peaks.schema.json as tables, and the walk that holds a value against
 * them. A test compares the tables with the schema.
 */
#ifndef RFL_PEAKS_RULES_H
#define RFL_PEAKS_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/where.h"
#include "peaks/peaks.h"

enum rfl_rule_kind {
	RFL_RULE_TEXT, /* not empty */
	RFL_RULE_ANY_TEXT,
	RFL_RULE_CHOICE, /* one of .choices */
	RFL_RULE_TEXTS,
	RFL_RULE_INTEGERS,
	RFL_RULE_BOOL,
	RFL_RULE_FALSE, /* only false */
	RFL_RULE_NULL,  /* only null */
	RFL_RULE_POSITIVE,
	RFL_RULE_POSITIVE_OR_NULL,
	RFL_RULE_NOT_NEGATIVE,
	RFL_RULE_NUMBER,
	RFL_RULE_COUNT, /* an integer of at least .min */
	RFL_RULE_COUNT_OR_NULL,
	RFL_RULE_DATE,       /* 2026-11-21 */
	RFL_RULE_TIME,       /* 2026-11-21T05:31:00Z */
	RFL_RULE_CAPABILITY, /* 8.9 */
	RFL_RULE_OBJECT,     /* of .object */
	RFL_RULE_OBJECTS,    /* a list of .object, not empty */
	RFL_RULE_CEILING,    /* one of the two shapes of a ceiling */
	RFL_RULE_CEILINGS,   /* an object of ceilings under compute keys, not empty */
};

/* Limits of a rate in GFLOP/s or GB/s. No device is outside: what is, is in another unit. */
#define RFL_RULE_LEAST   1e-9
#define RFL_RULE_LARGEST 1e8

struct rfl_rule {
	const char *key; /* NULL ends a table */
	enum rfl_rule_kind kind;
	bool required;
	int min;
	const char *const *choices;
	const struct rfl_rule *object;
};

extern const struct rfl_rule rfl_rules_environment[], rfl_rules_device[], rfl_rules_host[],
	rfl_rules_level[], rfl_rules_known[], rfl_rules_unknown[], rfl_rules_source[],
	rfl_rules_method[], rfl_rules_stats[], rfl_rules_conditions[];

/* Hold an object against a table: kinds, required keys, no unknown keys. */
enum rfl_rc rfl_rules__check(const json_t *value, const struct rfl_rule *rules, struct rfl_where *w,
			     struct rfl_err *err);

/* A number greater than 0; `hint` is the fix. */
enum rfl_rc rfl_rules__positive(const json_t *value, const char *hint, const struct rfl_where *w,
				struct rfl_err *err);

/* "fp32.vector.1core": <dtype>.<unit>[.<modifier>] */
bool rfl_rules__is_compute_key(const char *key);
/* NULL-terminated: fp64 fp32 tf32 fp16 bf16 fp8 int8 */
extern const char *const rfl_peaks_dtypes[];
/* "fp32.vector, fp32.matrix, ...": NULL-terminated list of all keys, for suggestions. */
const char *const *rfl_rules__compute_keys(void);

/* The status by name, -1 when it is none. */
int rfl_peaks__status(const char *name);

#endif
