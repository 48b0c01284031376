/*
 * rules.c - the tables that define the long form, in the order of docs/peaks.schema.json, and
 * checks of JSON values against them. Messages name file, JSON pointer, fault and fix.
 */
#include "peaks/rules.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

const char *const rfl_peaks_levels[] = { "L1",   "shared", "L2",     "L3",   "SLC",
					 "DRAM", "HBM",    "remote", "link", NULL };

/* Used to suggest the correct spelling of a key. */
const char *const rfl_peaks_compute_keys[] = {
	"fp64.vector",         "fp32.vector", "fp64.vector.1core",
	"fp32.vector.1core",   "fp64.matrix", "fp32.matrix",
	"tf32.matrix",         "fp16.vector", "fp16.matrix",
	"fp16.matrix.fp16acc", "bf16.vector", "bf16.matrix",
	"fp8.matrix",          "int8.matrix", "fp32.gemm",
	"tf32.gemm",           "fp16.gemm",   "bf16.gemm",
	"fp64.scalar",         "fp32.scalar", "fp64.vector.nofma",
	"fp32.vector.nofma",   NULL,
};

static const char *const dtypes[] = { "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", NULL };
static const char *const units[] = { "scalar", "vector", "matrix", "gemm", NULL };
static const char *const modifiers[] = { "fp16acc", "1core", "nofma", NULL };

static const char *const kinds[] = { "cpu", "gpu", NULL };
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

const struct rfl_rule rfl_rules_size[] = {
	{ .key = "scope", .kind = RFL_RULE_CHOICE, .required = true, .choices = scopes },
	{ .key = "working_set_bytes", .kind = RFL_RULE_COUNT, .required = true, .min = 1 },
	{ .key = "gbs", .kind = RFL_RULE_POSITIVE, .required = true },
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_level[] = {
	{ .key = "level", .kind = RFL_RULE_CHOICE, .required = true, .choices = rfl_peaks_levels },
	{ .key = "scope", .kind = RFL_RULE_CHOICE, .required = true, .choices = scopes },
	{ .key = "capacity_bytes", .kind = RFL_RULE_COUNT_OR_NULL, .min = 1 },
	{ .key = "gbs", .kind = RFL_RULE_CEILING, .required = true },
	{ .key = "sweep", .kind = RFL_RULE_OBJECTS, .object = rfl_rules_size },
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
	{ .key = "plateau_bytes", .kind = RFL_RULE_INTEGERS },
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

const struct rfl_rule rfl_rules_interference[] = {
	{ .key = "disturbed_repeats", .kind = RFL_RULE_COUNT, .required = true },
	{ .key = "discarded_repeats", .kind = RFL_RULE_COUNT },
	{ .key = "context_switches", .kind = RFL_RULE_COUNT },
	{ .key = "off_cpu", .kind = RFL_RULE_NOT_NEGATIVE },
	{ .key = "steal", .kind = RFL_RULE_NOT_NEGATIVE },
	{ .key = "other_load", .kind = RFL_RULE_NOT_NEGATIVE },
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
	{ .key = "interference", .kind = RFL_RULE_OBJECT, .object = rfl_rules_interference },
	{ .key = "doubts", .kind = RFL_RULE_TEXTS },
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

#define WHEN_UNKNOWN "{\"status\": \"unknown\", \"value\": null, \"reason\": \"...\"}"

static enum rfl_rc wrong(const json_t *value, const char *what, const struct rfl_where *w,
			 struct rfl_err *err)
{
	char shown[80];

	return rfl_where_fail(w, err, "must be %s, is %s", what,
			      rfl_json_show(value, shown, sizeof(shown)));
}

enum rfl_rc rfl_rules__positive(const json_t *value, const char *hint, const struct rfl_where *w,
				struct rfl_err *err)
{
	const double v = json_is_number(value) ? json_number_value(value) : 0;
	char shown[80];

	if (v > RFL_RULE_LARGEST) /* unit unknown: convert from each likely unit */
		return rfl_where_fail(w, err,
				      "must be in GFLOP/s or GB/s, at most %g, is %s; write %.6g "
				      "if that is in FLOP/s or B/s, %.6g if in MFLOP/s or MB/s",
				      RFL_RULE_LARGEST, rfl_json_show(value, shown, sizeof(shown)),
				      v / 1e9, v / 1e3);
	if (v > 0 && v < RFL_RULE_LEAST)
		return rfl_where_fail(w, err, "must be in GFLOP/s or GB/s, at least %g, is %s",
				      RFL_RULE_LEAST, rfl_json_show(value, shown, sizeof(shown)));
	if (v > 0)
		return RFL_OK;
	return rfl_where_fail(w, err, "must be a number greater than 0, is %s; %s",
			      rfl_json_show(value, shown, sizeof(shown)), hint);
}

/* Does `text` begin with `pattern`, in which 0 stands for any digit? */
static bool shaped(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++) {
		if (*pattern == '0' ? *text < '0' || *text > '9' : *text != *pattern)
			return false;
	}
	return true;
}

static bool is_time(const char *text)
{
	if (!shaped(text, "0000-00-00T00:00:00"))
		return false;
	text += 19;
	if (*text == '.')
		text += 1 + strspn(text + 1, "0123456789");
	if (*text == 'Z')
		return text[1] == '\0';
	return (shaped(text, "+00:00") || shaped(text, "-00:00")) && text[6] == '\0';
}

/* Check a value of a simple kind. @return NULL if it is valid, otherwise the valid values */
static const char *fault(const json_t *value, const struct rfl_rule *rule, char out[256])
{
	const char *text = json_string_value(value);
	size_t len;

	switch (rule->kind) {
	case RFL_RULE_TEXT:
		if (text)
			return *text ? NULL : "a non-empty string";
		return "a string";
	case RFL_RULE_DATE:
		if (text && shaped(text, "0000-00-00") && strlen(text) == 10)
			return NULL;
		return text ? "a date such as \"2026-11-21\"" : "a string";
	case RFL_RULE_TIME:
		if (text && is_time(text))
			return NULL;
		return text ? "a time such as \"2026-11-21T05:31:00Z\"" : "a string";
	case RFL_RULE_CAPABILITY:
		len = text ? strspn(text, "0123456789") : 0;
		if (len > 0 && shaped(text + len, ".0") && !text[len + 2])
			return NULL;
		return text ? "a compute capability such as \"8.9\"" : "a string";
	case RFL_RULE_CHOICE:
		len = (size_t)snprintf(out, 256, "one of ");
		for (size_t i = 0; rule->choices[i]; i++) {
			if (text && strcmp(text, rule->choices[i]) == 0)
				return NULL;
			if (len < 256)
				len += (size_t)snprintf(out + len, 256 - len, "%s%s", i ? ", " : "",
							rule->choices[i]);
		}
		return out;
	case RFL_RULE_COUNT_OR_NULL:
	case RFL_RULE_COUNT:
		if ((json_is_integer(value) && json_integer_value(value) >= rule->min) ||
		    (rule->kind == RFL_RULE_COUNT_OR_NULL && json_is_null(value)))
			return NULL;
		snprintf(out, 256, "an integer of at least %d", rule->min);
		return out;
	case RFL_RULE_BOOL:
		return json_is_boolean(value) ? NULL : "true or false";
	case RFL_RULE_FALSE:
		if (json_is_false(value))
			return NULL;
		return "false (rates with sparsity are not accepted: halve the value and add the "
		       "formula)";
	case RFL_RULE_NULL:
		if (json_is_null(value))
			return NULL;
		return "null or absent with this status";
	case RFL_RULE_NOT_NEGATIVE:
		if (json_is_number(value) && json_number_value(value) >= 0)
			return NULL;
		return "a number not less than 0";
	case RFL_RULE_NUMBER:
		return json_is_number(value) ? NULL : "a number";
	case RFL_RULE_INTEGER:
		return json_is_integer(value) ? NULL : "an integer";
	default: /* RFL_RULE_ANY_TEXT */
		return text ? NULL : "a string";
	}
}

int rfl_peaks__status(const char *name)
{
	for (int i = RFL_PEAK_MEASURED; i <= RFL_PEAK_FAILED; i++) {
		if (name && strcmp(name, rfl_peak_status_name((enum rfl_peak_status)i)) == 0)
			return i;
	}
	return -1;
}

#define STATUSES "one of measured, spec, derived, user, unknown, unsupported, failed"

static enum rfl_rc check_ceiling(const json_t *value, struct rfl_where *w, struct rfl_err *err)
{
	/* parts required of measured and of other ceilings, and the fix if one is missing */
	static const struct {
		bool measured;
		const char *part, *fix;
	} parts[] = {
		{ false, "source", "add \"source\": {\"title\": \"where the value is from\"}" },
		{ true, "method",
		  "add kernel, tool and time of the measurement, or use status \"user\"" },
		{ true, "stats", "add n, median and max of the repeats, or use status \"user\"" },
	};
	const json_t *status = json_object_get(value, "status");
	const char *name = json_string_value(status);
	const int code = rfl_peaks__status(name);
	enum rfl_rc rc;

	if (json_is_null(value))
		return rfl_where_fail(w, err, "must not be null; write %s", WHEN_UNKNOWN);
	if (!json_is_object(value))
		return wrong(value,
			     "an object such as {\"status\": \"user\", \"value\": 420, "
			     "\"source\": {\"title\": \"...\"}}",
			     w, err);
	if (!status)
		return rfl_where_fail(w, err, "the key \"status\" is missing; add " STATUSES);
	if (code < 0) {
		const size_t mark = rfl_where_key(w, "status");

		rc = wrong(status, STATUSES, w, err);
		rfl_where_up(w, mark);
		return rc;
	}
	if (code >= RFL_PEAK_UNKNOWN)
		return rfl_rules__check(value, rfl_rules_unknown, w, err);
	rc = rfl_rules__check(value, rfl_rules_known, w, err);
	for (size_t i = 0; rc == RFL_OK && i < RFL_ARRAY_LEN(parts); i++)
		if (parts[i].measured == (code == RFL_PEAK_MEASURED) &&
		    !json_object_get(value, parts[i].part))
			rc = rfl_where_fail(w, err, "status \"%s\" needs \"%s\"; %s", name,
					    parts[i].part, parts[i].fix);
	return rc;
}

static bool one_of(const char *const *list, const char *text, size_t len)
{
	for (; *list; list++) {
		if (strlen(*list) == len && strncmp(*list, text, len) == 0)
			return true;
	}
	return false;
}

bool rfl_rules__is_compute_key(const char *key)
{
	const size_t dtype = strcspn(key, ".");

	if (!one_of(dtypes, key, dtype) || key[dtype] != '.')
		return false;
	key += dtype + 1;
	const size_t unit = strcspn(key, ".");

	if (!one_of(units, key, unit))
		return false;
	return key[unit] == '\0' || one_of(modifiers, key + unit + 1, strlen(key + unit + 1));
}

static size_t rank_of(const json_t *level)
{
	const char *name = json_string_value(json_object_get(level, "level"));
	size_t rank = 0;

	while (name && rfl_peaks_levels[rank] && strcmp(name, rfl_peaks_levels[rank]) != 0)
		rank++;
	return rank;
}

bool rfl_rules__insert_level(json_t *memory, json_t *take_level)
{
	size_t at = json_array_size(memory);

	while (at > 0 && rank_of(json_array_get(memory, at - 1)) > rank_of(take_level))
		at--;
	return json_array_insert_new(memory, at, take_level) == 0;
}

static enum rfl_rc check_ceilings(const json_t *value, struct rfl_where *w, struct rfl_err *err)
{
	const char *key;
	const json_t *ceiling;
	enum rfl_rc rc = RFL_OK;

	if (!json_is_object(value) || json_object_size(value) == 0)
		return wrong(value, "an object with at least one ceiling", w, err);
	json_object_foreach((json_t *)(uintptr_t)value, key, ceiling)
	{
		const size_t mark = rfl_where_key(w, key);

		if (!rfl_rules__is_compute_key(key)) {
			const char *near = rfl_text_nearest(key, rfl_peaks_compute_keys);

			rc = rfl_where_fail(
				w, err,
				"not a compute key%s%s%s; use <precision>.<scalar | vector | "
				"matrix | gemm>[.<fp16acc | 1core | nofma>], for example "
				"fp32.vector",
				near ? " (did you mean '" : "", near ? near : "",
				near ? "'?)" : "");
		} else {
			rc = check_ceiling(ceiling, w, err);
		}
		rfl_where_up(w, mark);
		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}

static enum rfl_rc check_value(const json_t *value, const struct rfl_rule *rule,
			       struct rfl_where *w, struct rfl_err *err);

/* A list of items that follow the rule `each`. */
static enum rfl_rc check_list(const json_t *value, const struct rfl_rule *each, struct rfl_where *w,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (!json_is_array(value))
		return wrong(value, "a list", w, err);
	if (each->kind == RFL_RULE_OBJECT && json_array_size(value) == 0)
		return wrong(value, "a non-empty list", w, err);
	for (size_t i = 0; i < json_array_size(value) && rc == RFL_OK; i++) {
		const size_t mark = rfl_where_index(w, i);

		rc = check_value(json_array_get(value, i), each, w, err);
		rfl_where_up(w, mark);
	}
	return rc;
}

static enum rfl_rc check_value(const json_t *value, const struct rfl_rule *rule,
			       struct rfl_where *w, struct rfl_err *err)
{
	static const struct rfl_rule text = { .kind = RFL_RULE_ANY_TEXT };
	static const struct rfl_rule integer = { .kind = RFL_RULE_INTEGER };
	const struct rfl_rule object = { .kind = RFL_RULE_OBJECT, .object = rule->object };
	const char *what;
	char out[256];

	switch (rule->kind) {
	case RFL_RULE_TEXTS:
		return check_list(value, &text, w, err);
	case RFL_RULE_INTEGERS:
		return check_list(value, &integer, w, err);
	case RFL_RULE_OBJECTS:
		return check_list(value, &object, w, err);
	case RFL_RULE_OBJECT:
		return rfl_rules__check(value, rule->object, w, err);
	case RFL_RULE_CEILING:
		return check_ceiling(value, w, err);
	case RFL_RULE_CEILINGS:
		return check_ceilings(value, w, err);
	case RFL_RULE_POSITIVE:
		return rfl_rules__positive(value, "write an unknown ceiling as " WHEN_UNKNOWN, w,
					   err);
	case RFL_RULE_POSITIVE_OR_NULL:
		if (json_is_null(value))
			return RFL_OK;
		return rfl_rules__positive(value, "write null if there is none", w, err);
	default:
		what = fault(value, rule, out);
		return what ? wrong(value, what, w, err) : RFL_OK;
	}
}

enum rfl_rc rfl_rules__check(const json_t *value, const struct rfl_rule *rules, struct rfl_where *w,
			     struct rfl_err *err)
{
	const char *allowed[24];
	size_t n = 0;
	enum rfl_rc rc;

	if (!json_is_object(value))
		return wrong(value, "an object", w, err);
	for (const struct rfl_rule *r = rules; r->key; r++)
		allowed[n++] = r->key;
	allowed[n] = NULL;
	rc = rfl_json_only_keys(value, allowed, w->file, w->pointer, err);
	for (const struct rfl_rule *r = rules; r->key && rc == RFL_OK; r++) {
		const json_t *item = json_object_get(value, r->key);

		if (!item && r->required)
			return rfl_where_fail(w, err, "the key \"%s\" is missing; add it", r->key);
		if (!item)
			continue;
		const size_t mark = rfl_where_key(w, r->key);

		rc = check_value(item, r, w, err);
		rfl_where_up(w, mark);
	}
	return rc;
}
