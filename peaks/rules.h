/*
 * rules.h - internal: the format of peaks.json. Tables that correspond to docs/peaks.schema.json
 * define the long form, and where each value goes; a test compares tables and schema.
 */
#ifndef RFL_PEAKS_RULES_H
#define RFL_PEAKS_RULES_H

#include <jansson.h>

#include "base/json.h"
#include "peaks/peaks.h"

#define RFL_PEAKS_SCHEMA_VERSION "1.0"

enum rfl_rule_kind {
	RFL_RULE_TEXT,       /* a non-empty string */
	RFL_RULE_DATE,       /* 2026-11-21 */
	RFL_RULE_TIME,       /* 2026-11-21T05:31:00Z */
	RFL_RULE_CAPABILITY, /* 8.9 */
	RFL_RULE_ANY_TEXT,
	RFL_RULE_CHOICE, /* one of .choices */
	RFL_RULE_INTEGER,
	RFL_RULE_COUNT, /* an integer not less than .min */
	RFL_RULE_COUNT_OR_NULL,
	RFL_RULE_NUMBER, /* in .unit */
	RFL_RULE_NOT_NEGATIVE,
	RFL_RULE_POSITIVE, /* a rate in GFLOP/s or GB/s */
	RFL_RULE_POSITIVE_OR_NULL,
	RFL_RULE_BOOL,
	RFL_RULE_FALSE, /* only false */
	RFL_RULE_NULL,  /* only null */
	RFL_RULE_TEXTS,
	RFL_RULE_WORDS, /* a list of strings, stored as "a, b" */
	RFL_RULE_INTEGERS,
	RFL_RULE_OBJECT,   /* an object that follows .object; its values go to the same struct */
	RFL_RULE_OBJECTS,  /* a non-empty list of .object */
	RFL_RULE_CEILING,  /* a known or an unknown ceiling */
	RFL_RULE_CEILINGS, /* a non-empty object of ceilings by compute key */
};

/* Limits of a rate in GFLOP/s or GB/s. A value outside them is probably in another unit. */
#define RFL_RULE_LEAST   1e-9
#define RFL_RULE_LARGEST 1e8

struct rfl_rule {
	const char *key; /* NULL ends a table */
	enum rfl_rule_kind kind;
	bool required;
	int min;
	double unit;
	const char *const *choices;
	const struct rfl_rule *object;
	size_t to;    /* 1 + offset of the member that gets the value; 0: it is only checked */
	size_t size;  /* of the member; of a list, of an item */
	size_t count; /* offset of the number of items of a list */
};

/* What is being read, and where to. */
struct rfl_reader {
	struct rfl_where where;
	struct rfl_arena *arena; /* gets texts and lists */
	struct rfl_err *err;
};

extern const struct rfl_rule rfl_rules_environment[], rfl_rules_device[], rfl_rules_host[],
	rfl_rules_level[], rfl_rules_size[], rfl_rules_known[], rfl_rules_unknown[],
	rfl_rules_source[], rfl_rules_method[], rfl_rules_stats[], rfl_rules_conditions[],
	rfl_rules_interference[];

/* Compute keys, for suggestions; NULL-terminated. */
extern const char *const rfl_peaks_compute_keys[];

/* Read an object by a table: kinds of values, required and unknown keys. @param to  zeroed */
enum rfl_rc rfl_rules__read(const json_t *value, const struct rfl_rule *rules, void *to,
			    struct rfl_reader *r);

/* Read a number greater than 0, in GFLOP/s or GB/s; `hint` is the fix for the message. */
enum rfl_rc rfl_rules__rate(const json_t *value, const char *hint, double *ret,
			    const struct rfl_reader *r);

enum rfl_rc rfl_rules__no_memory(const struct rfl_reader *r);

/* A ceiling without any value. */
extern const struct rfl_peak rfl_rules__no_peak;

/* Does the key have the form <dtype>.<unit>[.<modifier>], such as "fp32.vector.1core"? */
bool rfl_rules__is_compute_key(const char *key);

/* Insert a level into a list, in the order of rfl_peaks_levels. */
void rfl_rules__insert_level(json_t *memory, json_t *take_level);

/* Functions in peaks_load.c. */

/* Read a file as JSON. Invalid JSON and duplicate keys are rejected with their JSON pointer. */
enum rfl_rc rfl_peaks__read(const char *path, json_t **ret, struct rfl_err *err);

/* Parse a whole file into `p`, which must have an arena. */
enum rfl_rc rfl_peaks__parse(json_t *root, struct rfl_peaks *p, struct rfl_err *err);

/* The object that maps names to environments: a member in the long form, otherwise `root`. */
json_t *rfl_peaks__environments(json_t *root);

/* Does an environment have keys of the short form? */
bool rfl_peaks__is_short(const json_t *value);

#endif
