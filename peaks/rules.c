/*
 * rules.c - the tables that define the long form, in the order of docs/peaks.schema.json, and
 * reads JSON by them. Messages name file, JSON pointer, fault and fix.
 */
#include "peaks/rules.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

const char *const rfl_peaks_levels[] = { "L1",   "shared", "L2",     "L3",   "SLC",
					 "DRAM", "HBM",    "remote", "link", NULL };

/* Used to suggest the correct spelling of a key. */
const char *const rfl_peaks_compute_keys[] = {
	"fp64.vector", "fp32.vector",         "fp64.vector.1core", "fp32.vector.1core",
	"fp64.matrix", "fp32.matrix",         "tf32.matrix",       "fp16.vector",
	"fp16.matrix", "fp16.matrix.fp16acc", "bf16.vector",       "bf16.matrix",
	"fp8.matrix",  "int8.vector",         "int8.matrix",       "fp32.gemm",
	"tf32.gemm",   "fp16.gemm",           "bf16.gemm",         "fp64.scalar",
	"fp32.scalar", "fp64.vector.nofma",   "fp32.vector.nofma", "fp64.vector.fmaadd",
	"fp32.vector.fmaadd", NULL,
};

static const char *const dtypes[] = { "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", NULL };

const struct rfl_peaks_part rfl_peaks_parts[] = {
	{ "scalar", true, RFL_LINE_NONE, " scalar" },
	{ "vector", true, RFL_LINE_ROOF, " vector" },
	{ "matrix", true, RFL_LINE_ROOF, " matrix units" },
	{ "gemm", true, RFL_LINE_LIBRARY, " matrix product" },
	{ "fp16acc", false, RFL_LINE_NONE, ", FP16 accumulator" },
	{ "1core", false, RFL_LINE_BELOW, ", one core" },
	{ "nofma", false, RFL_LINE_NONE, ", no FMA" },
	{ "fmaadd", false, RFL_LINE_ABOVE, ", FMA and ADD" },
	{ .word = NULL },
};

static const char *const kinds[] = { "cpu", "gpu", NULL };
static const char *const scopes[] = { "core", "cluster", "socket", "node", "device", NULL };
static const char *const known[] = { "measured", "spec", "derived", "user", NULL };
static const char *const unknown[] = { "unknown", "unsupported", "failed", NULL };
static const char *const bytes_counted[] = { "explicit", "with_write_allocate", NULL };
static const char *const inputs[] = { "random", "ones", "zeros", NULL };
static const char *const accumulates[] = { "fp64", "fp32", "fp16", "int32", NULL };

#define MAY(type, ...)                                      \
	{                                                   \
		.kind = RFL_RULE_##type, .key = __VA_ARGS__ \
	}
#define MUST(type, ...)                                                       \
	{                                                                     \
		.required = true, .kind = RFL_RULE_##type, .key = __VA_ARGS__ \
	}

/* Where a value goes: a member of the struct that is being read. */
#define TO(type, member) \
	.to = 1 + offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define LIST(type, list, number)                                                          \
	.to = 1 + offsetof(struct type, list), .size = sizeof(*((struct type *)0)->list), \
	.count = offsetof(struct type, number)

const struct rfl_rule rfl_rules_device[] = {
	MUST(TEXT, "name", TO(rfl_peaks_env, device)),
	MAY(ANY_TEXT, "vendor"),
	MAY(CAPABILITY, "compute_capability"),
	MAY(COUNT, "units", .min = 1, TO(rfl_peaks_env, units)),
	MAY(COUNT, "memory_bytes", .min = 1),
	MAY(ANY_TEXT, "uuid"),
	MAY(TEXTS, "isa"),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_host[] = {
	MAY(ANY_TEXT, "os"),
	MAY(ANY_TEXT, "kernel"),
	MAY(BOOL, "virtualised", TO(rfl_peaks_env, virtualised)),
	MAY(ANY_TEXT, "driver"),
	MAY(ANY_TEXT, "cuda_runtime"),
	MAY(ANY_TEXT, "compiler"),
	MAY(ANY_TEXT, "governor"),
	MAY(BOOL, "smt"),
	MAY(COUNT, "numa_nodes", .min = 1),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_size[] = {
	MUST(CHOICE, "scope", .choices = scopes, TO(rfl_peak_size, scope)),
	MUST(COUNT, "working_set_bytes", .min = 1, TO(rfl_peak_size, working_set_bytes)),
	MUST(POSITIVE, "gbs", TO(rfl_peak_size, value)),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_level[] = {
	MUST(CHOICE, "level", .choices = rfl_peaks_levels, TO(rfl_peak_level, level)),
	MUST(CHOICE, "scope", .choices = scopes, TO(rfl_peak_level, scope)),
	MAY(COUNT_OR_NULL, "capacity_bytes", .min = 1, TO(rfl_peak_level, capacity_bytes)),
	MUST(CEILING, "gbs", TO(rfl_peak_level, peak)),
	MAY(OBJECTS, "sweep", .object = rfl_rules_size, LIST(rfl_peak_level, sweep, nsweep)),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_environment[] = {
	MUST(CHOICE, "kind", .choices = kinds, TO(rfl_peaks_env, kind)),
	MUST(OBJECT, "device", .object = rfl_rules_device),
	MAY(OBJECT, "host", .object = rfl_rules_host),
	MUST(CEILINGS, "compute"),
	MUST(OBJECTS, "memory", .object = rfl_rules_level, LIST(rfl_peaks_env, levels, nlevels)),
	MAY(TEXTS, "notes"),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_unknown[] = {
	MUST(CHOICE, "status", .choices = unknown),
	MAY(NULL, "value"),
	MUST(TEXT, "reason", TO(rfl_peak, reason)),
	MAY(POSITIVE, "upper_bound"),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_source[] = {
	MUST(TEXT, "title", TO(rfl_peak, source)),
	MAY(ANY_TEXT, "url"),
	MAY(ANY_TEXT, "where"),
	MAY(ANY_TEXT, "formula"),
	MAY(DATE, "retrieved"),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_method[] = {
	MUST(TEXT, "kernel", TO(rfl_peak, kernel)),
	MUST(ANY_TEXT, "tool"),
	MUST(TIME, "measured_at", TO(rfl_peak, measured_at)),
	MAY(CHOICE, "bytes_counted", .choices = bytes_counted),
	MAY(BOOL, "nt_stores"),
	MAY(COUNT, "accumulators", .min = 1),
	MAY(COUNT, "working_set_bytes", .min = 1, TO(rfl_peak, working_set_bytes)),
	MAY(INTEGERS, "plateau_bytes"),
	MAY(INTEGERS, "shape"),
	MAY(CHOICE, "input", .choices = inputs),
	MAY(CHOICE, "accumulate", .choices = accumulates),
	MAY(FALSE, "sparse"),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_stats[] = {
	MUST(COUNT, "n", .min = 3, TO(rfl_peak, stats.n)),
	MUST(POSITIVE, "median", TO(rfl_peak, stats.median)),
	MAY(POSITIVE, "min", TO(rfl_peak, stats.min)),
	MUST(POSITIVE, "max", TO(rfl_peak, stats.max)),
	MAY(NOT_NEGATIVE, "rel_spread"),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_interference[] = {
	MUST(COUNT, "disturbed_repeats"),
	MAY(COUNT, "discarded_repeats"),
	MAY(COUNT, "context_switches"),
	MAY(NOT_NEGATIVE, "off_cpu"),
	MAY(NOT_NEGATIVE, "steal"),
	MAY(NOT_NEGATIVE, "other_load"),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_conditions[] = {
	MAY(COUNT, "threads", .min = 1, TO(rfl_peak, threads)),
	MAY(ANY_TEXT, "pinning"),
	MAY(BOOL, "huge_pages"),
	MAY(NUMBER, "clock_mhz", .unit = 1e6, TO(rfl_peak, clock_hz)),
	MAY(NUMBER, "power_w"),
	MAY(NUMBER, "power_limit_w", .unit = 1, TO(rfl_peak, power_limit_w)),
	MAY(NUMBER, "temp_c"),
	MAY(WORDS, "throttle_reasons", TO(rfl_peak, throttled)),
	MAY(NUMBER, "sustained_s"),
	MAY(OBJECT, "interference", .object = rfl_rules_interference),
	MAY(TEXTS, "doubts", LIST(rfl_peak, doubts, ndoubts)),
	{ .key = NULL },
};

const struct rfl_rule rfl_rules_known[] = {
	MUST(CHOICE, "status", .choices = known),
	MUST(POSITIVE, "value", TO(rfl_peak, value)),
	MAY(POSITIVE_OR_NULL, "spec", TO(rfl_peak, spec)),
	MAY(OBJECT, "source", .object = rfl_rules_source),
	MAY(OBJECT, "method", .object = rfl_rules_method),
	MAY(OBJECT, "stats", .object = rfl_rules_stats),
	MAY(OBJECT, "conditions", .object = rfl_rules_conditions),
	{ .key = NULL },
};

#define WHEN_UNKNOWN "{\"status\": \"unknown\", \"value\": null, \"reason\": \"...\"}"

static enum rfl_rc wrong(const json_t *value, const char *what, const struct rfl_reader *r)
{
	char shown[80];

	return rfl_where_fail(&r->where, r->err, "must be %s, is %s", what,
			      rfl_json_show(value, shown, sizeof(shown)));
}

enum rfl_rc rfl_rules__no_memory(const struct rfl_reader *r)
{
	return rfl_fail(r->err, RFL_ENOMEM, 0, "%s: out of memory", r->where.file);
}

enum rfl_rc rfl_rules__rate(const json_t *value, const char *hint, double *ret,
			    const struct rfl_reader *r)
{
	const double v = json_is_number(value) ? json_number_value(value) : 0;
	char shown[80];
	const char *is = rfl_json_show(value, shown, sizeof(shown));

	if (v > RFL_RULE_LARGEST) /* unit unknown: convert from each likely unit */
		return rfl_where_fail(&r->where, r->err,
				      "must be in GFLOP/s or GB/s, at most %g, is %s; write %.6g "
				      "if that is in FLOP/s or B/s, %.6g if in MFLOP/s or MB/s",
				      RFL_RULE_LARGEST, is, v / 1e9, v / 1e3);
	if (v > 0 && v < RFL_RULE_LEAST)
		return rfl_where_fail(&r->where, r->err,
				      "must be in GFLOP/s or GB/s, at least %g, is %s",
				      RFL_RULE_LEAST, is);
	if (!(v > 0))
		return rfl_where_fail(&r->where, r->err,
				      "must be a number greater than 0, is %s; %s", is, hint);
	*ret = v * 1e9;
	return RFL_OK;
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

static bool is_capability(const char *text)
{
	const size_t len = strspn(text, "0123456789");

	return len > 0 && shaped(text + len, ".0") && !text[len + 2];
}

static bool one_of(const char *const *list, const char *text, size_t len)
{
	for (; *list; list++) {
		if (strlen(*list) == len && strncmp(*list, text, len) == 0)
			return true;
	}
	return false;
}

/* Check a value of a simple kind. @return NULL if it is valid, otherwise the valid values */
static const char *fault(const json_t *value, const struct rfl_rule *rule, char out[256])
{
	const char *text = json_string_value(value);
	size_t len;

	if (rule->kind <= RFL_RULE_ANY_TEXT && !text)
		return "a string";
	switch (rule->kind) {
	case RFL_RULE_TEXT:
		return *text ? NULL : "a non-empty string";
	case RFL_RULE_DATE:
		return shaped(text, "0000-00-00") && strlen(text) == 10
			       ? NULL
			       : "a date such as \"2026-11-21\"";
	case RFL_RULE_TIME:
		return is_time(text) ? NULL : "a time such as \"2026-11-21T05:31:00Z\"";
	case RFL_RULE_CAPABILITY:
		return is_capability(text) ? NULL : "a compute capability such as \"8.9\"";
	case RFL_RULE_CHOICE:
		if (text && one_of(rule->choices, text, strlen(text)))
			return NULL;
		len = (size_t)snprintf(out, 256, "one of ");
		for (size_t i = 0; rule->choices[i] && len < 256; i++)
			len += (size_t)snprintf(out + len, 256 - len, "%s%s", i ? ", " : "",
						rule->choices[i]);
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
		return json_is_false(value) ? NULL
					    : "false (rates with sparsity are not accepted: halve "
					      "the value and add the formula)";
	case RFL_RULE_NULL:
		return json_is_null(value) ? NULL : "null or absent with this status";
	case RFL_RULE_NOT_NEGATIVE:
		return json_is_number(value) && json_number_value(value) >= 0
			       ? NULL
			       : "a number not less than 0";
	case RFL_RULE_NUMBER:
		return json_is_number(value) ? NULL : "a number";
	case RFL_RULE_INTEGER:
		return json_is_integer(value) ? NULL : "an integer";
	default:
		return NULL;
	}
}

/* Store a valid value in its member; null leaves the member as it is. */
static bool store(const json_t *value, const struct rfl_rule *rule, void *member,
		  struct rfl_arena *arena)
{
	const char **text = member;
	double *number = member;
	int64_t *count = member;
	int *narrow = member;
	bool *flag = member;

	if (json_is_string(value))
		return (*text = rfl_arena_strdup(arena, json_string_value(value))) != NULL;
	if (json_is_boolean(value))
		*flag = json_is_true(value);
	else if (rule->kind == RFL_RULE_NUMBER)
		*number = json_number_value(value) * rule->unit;
	else if (json_is_integer(value) && rule->size == sizeof(*narrow))
		*narrow = (int)json_integer_value(value);
	else if (json_is_integer(value))
		*count = json_integer_value(value);
	return true;
}

#define STATUSES "one of measured, spec, derived, user, unknown, unsupported, failed"

const struct rfl_peak rfl_rules__no_peak = {
	.status = RFL_PEAK_UNKNOWN,
	.value = NAN,
	.spec = NAN,
	.clock_hz = NAN,
	.power_limit_w = NAN,
	.stats = { .median = NAN, .min = NAN, .max = NAN },
};

static enum rfl_rc read_ceiling(const json_t *value, struct rfl_peak *peak, struct rfl_reader *r)
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
	size_t mark;
	int code = RFL_PEAK_MEASURED;
	enum rfl_rc rc;

	if (json_is_null(value))
		return rfl_where_fail(&r->where, r->err, "must not be null; write %s",
				      WHEN_UNKNOWN);
	if (!json_is_object(value))
		return wrong(value,
			     "an object such as {\"status\": \"user\", \"value\": 420, "
			     "\"source\": {\"title\": \"...\"}}",
			     r);
	if (!status)
		return rfl_where_fail(&r->where, r->err,
				      "the key \"status\" is missing; add " STATUSES);
	while (code <= RFL_PEAK_FAILED &&
	       !rfl_text_same(name, rfl_peak_status_name((enum rfl_peak_status)code)))
		code++;
	if (code > RFL_PEAK_FAILED) {
		mark = rfl_where_key(&r->where, "status");
		rc = wrong(status, STATUSES, r);
		rfl_where_up(&r->where, mark);
		return rc;
	}
	*peak = rfl_rules__no_peak;
	peak->status = (enum rfl_peak_status)code;
	if (code >= RFL_PEAK_UNKNOWN)
		return rfl_rules__read(value, rfl_rules_unknown, peak, r);
	rc = rfl_rules__read(value, rfl_rules_known, peak, r);
	for (size_t i = 0; rc == RFL_OK && i < RFL_ARRAY_LEN(parts); i++)
		if (parts[i].measured == (code == RFL_PEAK_MEASURED) &&
		    !json_object_get(value, parts[i].part))
			rc = rfl_where_fail(&r->where, r->err, "status \"%s\" needs \"%s\"; %s",
					    name, parts[i].part, parts[i].fix);
	return rc;
}

const struct rfl_peaks_part *rfl_peaks_part(const char *key, bool unit)
{
	const struct rfl_peaks_part *part = rfl_peaks_parts;
	const char *word = strchr(key, '.');
	size_t len;

	if (word && !unit)
		word = strchr(word + 1, '.');
	if (!word)
		return NULL;
	len = unit ? strcspn(++word, ".") : strlen(++word);
	while (part->word && (part->unit != unit || strlen(part->word) != len ||
			      strncmp(part->word, word, len) != 0))
		part++;
	return part->word ? part : NULL;
}

bool rfl_rules__is_compute_key(const char *key)
{
	const char *unit = strchr(key, '.');

	return unit && one_of(dtypes, key, (size_t)(unit - key)) && rfl_peaks_part(key, true) &&
	       (!strchr(unit + 1, '.') || rfl_peaks_part(key, false));
}

static size_t rank_of(const json_t *level)
{
	const char *name = json_string_value(json_object_get(level, "level"));
	size_t rank = 0;

	while (name && rfl_peaks_levels[rank] && strcmp(name, rfl_peaks_levels[rank]) != 0)
		rank++;
	return rank;
}

void rfl_rules__insert_level(json_t *memory, json_t *take_level)
{
	size_t at = json_array_size(memory);

	while (at > 0 && rank_of(json_array_get(memory, at - 1)) > rank_of(take_level))
		at--;
	json_array_insert_new(memory, at, take_level);
}

static enum rfl_rc read_compute(const json_t *value, struct rfl_peaks_env *env,
				struct rfl_reader *r)
{
	const char *key;
	const json_t *ceiling;
	enum rfl_rc rc = RFL_OK;

	if (!json_is_object(value) || json_object_size(value) == 0)
		return wrong(value, "an object with at least one ceiling", r);
	env->compute = rfl_arena_array(r->arena, json_object_size(value), sizeof(*env->compute));
	if (!env->compute)
		return rfl_rules__no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)value, key, ceiling)
	{
		const size_t mark = rfl_where_key(&r->where, key);
		struct rfl_peak_compute *c = &env->compute[env->ncompute++];

		c->key = rfl_arena_strdup(r->arena, key);
		c->cell = rfl_arena_printf(r->arena, "compute.%s", key);
		if (!rfl_rules__is_compute_key(key)) {
			const char *near = rfl_text_nearest(key, rfl_peaks_compute_keys);

			rc = rfl_where_fail(
				&r->where, r->err,
				"not a compute key%s%s%s; use <precision>.<scalar | vector | "
				"matrix | gemm>[.<fp16acc | 1core | nofma | fmaadd>], for example "
				"fp32.vector",
				near ? " (did you mean '" : "", near ? near : "",
				near ? "'?)" : "");
		} else {
			rc = c->key && c->cell ? read_ceiling(ceiling, &c->peak, r)
					       : rfl_rules__no_memory(r);
		}
		rfl_where_up(&r->where, mark);
		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}

static enum rfl_rc read_value(const json_t *value, const struct rfl_rule *rule, char *to,
			      struct rfl_reader *r);

/* Read a list of values of a kind. */
static enum rfl_rc read_list(const json_t *value, const struct rfl_rule *rule,
			     enum rfl_rule_kind each_kind, char *to, struct rfl_reader *r)
{
	const struct rfl_rule each = { .kind = each_kind,
				       .object = rule->object,
				       .to = rule->count ? 1 : 0 };
	const size_t n = json_array_size(value);
	char *items = NULL;
	enum rfl_rc rc = RFL_OK;

	if (!json_is_array(value))
		return wrong(value, "a list", r);
	if (each_kind == RFL_RULE_OBJECT && n == 0)
		return wrong(value, "a non-empty list", r);
	if (rule->count) {
		items = rfl_arena_array(r->arena, n + 1, rule->size);
		if (!items)
			return rfl_rules__no_memory(r);
		memcpy(to + rule->to - 1, &items, sizeof(items));
		memcpy(to + rule->count, &n, sizeof(n));
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const size_t mark = rfl_where_index(&r->where, i);

		rc = read_value(json_array_get(value, i), &each,
				items ? items + i * rule->size : NULL, r);
		rfl_where_up(&r->where, mark);
	}
	return rc;
}

/* Read the strings of a list as "a, b"; NULL if there are none. */
static enum rfl_rc read_words(const json_t *value, const struct rfl_rule *rule, const char **ret,
			      struct rfl_reader *r)
{
	enum rfl_rc rc = read_list(value, rule, RFL_RULE_ANY_TEXT, NULL, r);

	for (size_t i = 0; i < json_array_size(value) && rc == RFL_OK; i++) {
		*ret = rfl_arena_printf(r->arena, "%s%s%s", *ret ? *ret : "", *ret ? ", " : "",
					json_string_value(json_array_get(value, i)));
		if (!*ret)
			rc = rfl_rules__no_memory(r);
	}
	return rc;
}

static enum rfl_rc read_value(const json_t *value, const struct rfl_rule *rule, char *to,
			      struct rfl_reader *r)
{
	void *const member = rule->to ? to + rule->to - 1 : NULL;
	const char *what;
	double unused;
	char out[256];

	switch (rule->kind) {
	case RFL_RULE_TEXTS:
		return read_list(value, rule, RFL_RULE_ANY_TEXT, to, r);
	case RFL_RULE_INTEGERS:
		return read_list(value, rule, RFL_RULE_INTEGER, to, r);
	case RFL_RULE_OBJECTS:
		return read_list(value, rule, RFL_RULE_OBJECT, to, r);
	case RFL_RULE_WORDS:
		return read_words(value, rule, member, r);
	case RFL_RULE_OBJECT:
		return rfl_rules__read(value, rule->object, to, r);
	case RFL_RULE_CEILING:
		return read_ceiling(value, member, r);
	case RFL_RULE_CEILINGS:
		return read_compute(value, (struct rfl_peaks_env *)(void *)to, r);
	case RFL_RULE_POSITIVE_OR_NULL:
		if (json_is_null(value))
			return RFL_OK;
		return rfl_rules__rate(value, "write null if there is none", member, r);
	case RFL_RULE_POSITIVE:
		return rfl_rules__rate(value, "write an unknown ceiling as " WHEN_UNKNOWN,
				       member ? member : &unused, r);
	default:
		what = fault(value, rule, out);
		if (what)
			return wrong(value, what, r);
		return !member || store(value, rule, member, r->arena) ? RFL_OK
								       : rfl_rules__no_memory(r);
	}
}

enum rfl_rc rfl_rules__read(const json_t *value, const struct rfl_rule *rules, void *to,
			    struct rfl_reader *r)
{
	const char *allowed[24];
	size_t n = 0;
	enum rfl_rc rc;

	if (!json_is_object(value))
		return wrong(value, "an object", r);
	for (const struct rfl_rule *rule = rules; rule->key; rule++)
		allowed[n++] = rule->key;
	allowed[n] = NULL;
	rc = rfl_json_only_keys(value, allowed, r->where.file, r->where.pointer, r->err);
	for (const struct rfl_rule *rule = rules; rule->key && rc == RFL_OK; rule++) {
		const json_t *item = json_object_get(value, rule->key);

		if (!item && rule->required)
			return rfl_where_fail(&r->where, r->err,
					      "the key \"%s\" is missing; add it", rule->key);
		if (!item)
			continue;
		const size_t mark = rfl_where_key(&r->where, rule->key);

		rc = read_value(item, rule, to, r);
		rfl_where_up(&r->where, mark);
	}
	return rc;
}
