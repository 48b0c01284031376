/*
 * rules.h - internal: the format of peaks.json. Tables that correspond to docs/peaks.schema.json
 * read and write the long form; a test compares tables and schema.
 */
#ifndef RFL_PEAKS_RULES_H
#define RFL_PEAKS_RULES_H

#include "base/bind.h"
#include "peaks/peaks.h"

#define RFL_PEAKS_SCHEMA_VERSION "1.0"

/* Limits of a rate in GFLOP/s or GB/s. A value outside them is probably in another unit. */
#define RFL_RULE_LEAST   1e-9
#define RFL_RULE_LARGEST 1e8

extern const struct rfl_member rfl_rules_environment[], rfl_rules_device[], rfl_rules_host[],
	rfl_rules_level[], rfl_rules_size[], rfl_rules_known[], rfl_rules_unknown[],
	rfl_rules_source[], rfl_rules_method[], rfl_rules_stats[], rfl_rules_conditions[],
	rfl_rules_interference[];

/* Compute keys, for suggestions; NULL-terminated. */
extern const char *const rfl_peaks_compute_keys[];

/* Read a number greater than 0, in GFLOP/s or GB/s; `hint` is the fix for the message. */
void rfl_rules__rate(struct rfl_bind *b, const json_t *value, const char *hint, double *ret);

/* Does the key have the form <dtype>.<unit>[.<modifier>], such as "fp32.vector.1core"? */
bool rfl_rules__is_compute_key(const char *key);

/* Name the cells of an environment in the long form. */
void rfl_rules__name_cells(struct rfl_peaks_env *env, struct rfl_arena *arena);

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
