/*
 * rules.c - the tables of the long form, in the order of docs/peaks.schema.json.
 */
#include "peaks/rules.h"

static const char *const kinds[] = { "cpu", "gpu", NULL };
static const char *const levels[] = { "L1",   "shared", "L2",     "L3",   "SLC",
				      "DRAM", "HBM",    "remote", "link", NULL };
static const char *const scopes[] = { "core", "cluster", "socket", "node", "device", NULL };
static const char *const known[] = { "measured", "spec", "derived", "user", NULL };
static const char *const unknown[] = { "unknown", "unsupported", "failed", NULL };
static const char *const bytes_counted[] = { "explicit", "with_write_allocate", NULL };
static const char *const inputs[] = { "random", "ones", "zeros", NULL };
static const char *const accumulates[] = { "fp64", "fp32", "fp16", "int32", NULL };

const struct rfl_rule rfl_rules_device[] = {
	{ .key = "name", .kind = RFL_RULE_TEXT, .required = true },
	{ .key = "vendor", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "compute_capability", .kind = RFL_RULE_CAPABILITY },
	{ .key = "units", .kind = RFL_RULE_COUNT, .min = 1 },
	{ .key = "memory_bytes", .kind = RFL_RULE_COUNT, .min = 1 },
	{ .key = "uuid", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "isa", .kind = RFL_RULE_TEXTS },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_host[] = {
	{ .key = "os", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "kernel", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "virtualised", .kind = RFL_RULE_BOOL },
	{ .key = "driver", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "cuda_runtime", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "compiler", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "governor", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "smt", .kind = RFL_RULE_BOOL },
	{ .key = "numa_nodes", .kind = RFL_RULE_COUNT, .min = 1 },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_level[] = {
	{ .key = "level", .kind = RFL_RULE_CHOICE, .required = true, .choices = levels },
	{ .key = "scope", .kind = RFL_RULE_CHOICE, .required = true, .choices = scopes },
	{ .key = "capacity_bytes", .kind = RFL_RULE_COUNT_OR_NULL, .min = 1 },
	{ .key = "gbs", .kind = RFL_RULE_CEILING, .required = true },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_environment[] = {
	{ .key = "kind", .kind = RFL_RULE_CHOICE, .required = true, .choices = kinds },
	{ .key = "device", .kind = RFL_RULE_OBJECT, .required = true, .object = rfl_rules_device },
	{ .key = "host", .kind = RFL_RULE_OBJECT, .object = rfl_rules_host },
	{ .key = "compute", .kind = RFL_RULE_CEILINGS, .required = true },
	{ .key = "memory", .kind = RFL_RULE_OBJECTS, .required = true, .object = rfl_rules_level },
	{ .key = "notes", .kind = RFL_RULE_TEXTS },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_unknown[] = {
	{ .key = "status", .kind = RFL_RULE_CHOICE, .required = true, .choices = unknown },
	{ .key = "value", .kind = RFL_RULE_NULL },
	{ .key = "reason", .kind = RFL_RULE_TEXT, .required = true },
	{ .key = "upper_bound", .kind = RFL_RULE_POSITIVE },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_source[] = {
	{ .key = "title", .kind = RFL_RULE_TEXT, .required = true },
	{ .key = "url", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "where", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "formula", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "retrieved", .kind = RFL_RULE_DATE },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_method[] = {
	{ .key = "kernel", .kind = RFL_RULE_TEXT, .required = true },
	{ .key = "tool", .kind = RFL_RULE_ANY_TEXT, .required = true },
	{ .key = "measured_at", .kind = RFL_RULE_TIME, .required = true },
	{ .key = "bytes_counted", .kind = RFL_RULE_CHOICE, .choices = bytes_counted },
	{ .key = "nt_stores", .kind = RFL_RULE_BOOL },
	{ .key = "accumulators", .kind = RFL_RULE_COUNT, .min = 1 },
	{ .key = "working_set_bytes", .kind = RFL_RULE_COUNT, .min = 1 },
	{ .key = "shape", .kind = RFL_RULE_INTEGERS },
	{ .key = "input", .kind = RFL_RULE_CHOICE, .choices = inputs },
	{ .key = "accumulate", .kind = RFL_RULE_CHOICE, .choices = accumulates },
	{ .key = "sparse", .kind = RFL_RULE_FALSE },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_stats[] = {
	{ .key = "n", .kind = RFL_RULE_COUNT, .required = true, .min = 3 },
	{ .key = "median", .kind = RFL_RULE_POSITIVE, .required = true },
	{ .key = "min", .kind = RFL_RULE_POSITIVE },
	{ .key = "max", .kind = RFL_RULE_POSITIVE, .required = true },
	{ .key = "rel_spread", .kind = RFL_RULE_NOT_NEGATIVE },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_conditions[] = {
	{ .key = "threads", .kind = RFL_RULE_COUNT, .min = 1 },
	{ .key = "pinning", .kind = RFL_RULE_ANY_TEXT },
	{ .key = "huge_pages", .kind = RFL_RULE_BOOL },
	{ .key = "clock_mhz", .kind = RFL_RULE_NUMBER },
	{ .key = "power_w", .kind = RFL_RULE_NUMBER },
	{ .key = "power_limit_w", .kind = RFL_RULE_NUMBER },
	{ .key = "temp_c", .kind = RFL_RULE_NUMBER },
	{ .key = "throttle_reasons", .kind = RFL_RULE_TEXTS },
	{ .key = "sustained_s", .kind = RFL_RULE_NUMBER },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_known[] = {
	{ .key = "status", .kind = RFL_RULE_CHOICE, .required = true, .choices = known },
	{ .key = "value", .kind = RFL_RULE_POSITIVE, .required = true },
	{ .key = "spec", .kind = RFL_RULE_POSITIVE_OR_NULL },
	{ .key = "source", .kind = RFL_RULE_OBJECT, .object = rfl_rules_source },
	{ .key = "method", .kind = RFL_RULE_OBJECT, .object = rfl_rules_method },
	{ .key = "stats", .kind = RFL_RULE_OBJECT, .object = rfl_rules_stats },
	{ .key = "conditions", .kind = RFL_RULE_OBJECT, .object = rfl_rules_conditions },
	{ .key = NULL },
};
