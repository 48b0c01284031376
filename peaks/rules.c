/*
 * rules.c - the tables that define the long form, in the order of docs/peaks.schema.json, and the
 * parts of it that are not members of a struct.
 */
#include "peaks/rules.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "peaks/edit.h"

const char *const rfl_peaks_levels[] = { "L1",   "shared", "L2",     "L3",   "SLC",
					 "DRAM", "HBM",    "remote", "link", NULL };

/* Used to suggest the correct spelling of a key. */
const char *const rfl_peaks_compute_keys[] = {
	"fp64.vector",         "fp32.vector",        "fp64.vector.1core",
	"fp32.vector.1core",   "fp64.matrix",        "fp32.matrix",
	"tf32.matrix",         "fp16.vector",        "fp16.matrix",
	"fp16.matrix.fp16acc", "bf16.vector",        "bf16.matrix",
	"fp8.matrix",          "int8.vector",        "int8.matrix",
	"fp32.gemm",           "tf32.gemm",          "fp16.gemm",
	"bf16.gemm",           "fp64.scalar",        "fp32.scalar",
	"fp64.vector.nofma",   "fp32.vector.nofma",  "fp64.vector.fmaadd",
	"fp32.vector.fmaadd",  "fp8.matrix.fastacc", NULL,
};

static const char *const dtypes[] = { "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", NULL };

const struct rfl_peaks_part rfl_peaks_parts[] = {
	{ "scalar", true, RFL_LINE_NONE, " scalar" },
	{ "vector", true, RFL_LINE_ROOF, " vector" },
	{ "matrix", true, RFL_LINE_ROOF, " matrix cores" },
	{ "gemm", true, RFL_LINE_LIBRARY, " GEMM" },
	{ "fp16acc", false, RFL_LINE_NONE, ", FP16 accumulator" },
	{ "fastacc", false, RFL_LINE_NONE, ", fast accumulation" },
	{ "1core", false, RFL_LINE_BELOW, ", one core" },
	{ "nofma", false, RFL_LINE_BELOW, ", no FMA" },
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

const struct rfl_peak rfl_peak_none = {
	.status = RFL_PEAK_UNKNOWN,
	.value = NAN,
	.spec = NAN,
	.nt_stores = RFL_NOT_KNOWN,
	.huge_pages = RFL_NOT_KNOWN,
	.clock_hz = NAN,
	.power_w = NAN,
	.power_limit_w = NAN,
	.temp_c = NAN,
	.sustained_s = NAN,
	.stats = { .median = NAN, .min = NAN, .max = NAN, .spread = NAN },
};

#define WHEN_UNKNOWN "{\"status\": \"unknown\", \"value\": null, \"reason\": \"...\"}"

/* --- values that are not members as they are in the file --- */

void rfl_rules__rate(struct rfl_bind *b, const json_t *value, const char *hint, double *ret)
{
	const double v = json_is_number(value) ? json_number_value(value) : 0;
	char shown[80];
	const char *is = rfl_json_show(value, shown, sizeof(shown));

	if (v > RFL_RULE_LARGEST) /* unit unknown: convert from each likely unit */
		rfl_bind_refuse(b,
				"must be in GFLOP/s or GB/s, at most %g, not %s; write %.6g "
				"if that is in FLOP/s or B/s, %.6g if in MFLOP/s or MB/s",
				RFL_RULE_LARGEST, is, v / 1e9, v / 1e3);
	else if (v > 0 && v < RFL_RULE_LEAST)
		rfl_bind_refuse(b, "must be in GFLOP/s or GB/s, at least %g, not %s",
				RFL_RULE_LEAST, is);
	else if (!(v > 0))
		rfl_bind_refuse(b, "must be a number greater than 0, not %s; %s", is, hint);
	else
		*ret = v * 1e9;
}

static void read_rate(struct rfl_bind *b, const json_t *value, void *member)
{
	rfl_rules__rate(b, value, "write an unknown ceiling as " WHEN_UNKNOWN, member);
}

static void read_spec(struct rfl_bind *b, const json_t *value, void *member)
{
	rfl_rules__rate(b, value, "write null if there is none", member);
}

/* Six significant digits: measurements are not more accurate. */
static json_t *write_rate(const void *member)
{
	const double *value = member;
	char text[RFL_NUM_MAX];
	double rounded = NAN;

	(void)rfl_num_print(text, sizeof(text), "%.6g", *value / 1e9);
	(void)!rfl_num_parse_double(text, "rate", &rounded, NULL);
	return isnan(*value) ? NULL : json_real(rounded);
}

static void check_rate(struct rfl_bind *b, const json_t *value, void *member)
{
	double unused;

	(void)member;
	read_rate(b, value, &unused);
}

static void check_false(struct rfl_bind *b, const json_t *value, void *member)
{
	(void)member;
	if (!json_is_false(value))
		rfl_bind_must(b, value,
			      "false (rates with sparsity are not accepted: halve the value and "
			      "add the formula)");
}

static void check_null(struct rfl_bind *b, const json_t *value, void *member)
{
	(void)member;
	rfl_bind_must(b, value, "null or absent with this status");
}

static void read_known(struct rfl_bind *b, const json_t *value, void *member)
{
	enum rfl_known *known_ = member;

	if (json_is_boolean(value))
		*known_ = json_is_true(value) ? RFL_YES : RFL_NO;
	else
		rfl_bind_must(b, value, "true or false");
}

static json_t *write_known(const void *member)
{
	const enum rfl_known *known_ = member;

	return *known_ == RFL_NOT_KNOWN ? NULL : json_boolean(*known_ == RFL_YES);
}

/* A list of strings as "a, b"; NULL if there are none. */
static void read_words(struct rfl_bind *b, const json_t *value, void *member)
{
	static const struct rfl_member texts = { .list = true, RFL_CHECKED(TEXT) };
	const char **words = member;

	rfl_bind_value(b, value, &texts, NULL);
	for (size_t i = 0; i < json_array_size(value) && !b->rc; i++)
		*words = rfl_arena_printf(b->arena, "%s%s%s", *words ? *words : "",
					  *words ? ", " : "",
					  json_string_value(json_array_get(value, i)));
}

static json_t *write_words(const void *member)
{
	const char *const *words = member;
	json_t *list = *words ? json_array() : NULL;

	for (const char *at = *words; at && *at;) {
		const size_t len = strcspn(at, ",");

		json_array_append_new(list, json_stringn(at, len));
		at += len + strspn(at + len, ", ");
	}
	return list;
}

static void check_interference(struct rfl_bind *b, const json_t *value, void *member)
{
	(void)member;
	rfl_bind_read(b, value, rfl_rules_interference, NULL);
}

/* A share with four digits after the point; NULL if it is not known. */
static json_t *share(double value)
{
	return isnan(value) ? NULL : json_real(round(value * 1e4) / 1e4);
}

static json_t *write_interference(const void *member)
{
	const struct rfl_peak_interference *seen =
		*(const struct rfl_peak_interference *const *)member;

	return seen ? json_pack("{s:I, s:I, s:I, s:o*, s:o*, s:o*}", "disturbed_repeats",
				(json_int_t)seen->disturbed, "discarded_repeats",
				(json_int_t)seen->discarded, "context_switches",
				(json_int_t)seen->switches, "off_cpu", share(seen->off_cpu),
				"steal", share(seen->steal), "other_load", share(seen->other_load))
		    : NULL;
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

static bool is_date(const char *text)
{
	return shaped(text, "0000-00-00") && strlen(text) == 10;
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

static void read_peak(struct rfl_bind *b, const json_t *value, void *member);
static json_t *write_peak(const void *member);
static void read_compute(struct rfl_bind *b, const json_t *value, void *member);
static json_t *write_compute(const void *member);

/* --- the tables --- */

#define ENV(kind, member)   RFL_MEMBER(kind, struct rfl_peaks_env, member)
#define PEAK(kind, member)  RFL_MEMBER(kind, struct rfl_peak, member)
#define LEVEL(kind, member) RFL_MEMBER(kind, struct rfl_peak_level, member)
#define SIZE(kind, member)  RFL_MEMBER(kind, struct rfl_peak_size, member)
#define RATE(member)        PEAK(OTHER, member), .read = read_rate, .write = write_rate
#define KNOWN               .read = read_known, .write = write_known
#define SAME(table)         .kind = RFL_BIND_OBJECT, .object = table /* in the same struct */
#define NOT_NEGATIVE        .max = INFINITY
#define END                 \
	{                   \
		.key = NULL \
	}

const struct rfl_member rfl_rules_device[] = {
	{ "name", ENV(TEXT, device), .must = true, .filled = true },
	{ "vendor", ENV(TEXT, vendor) },
	{ "compute_capability", ENV(TEXT, capability), .valid = is_capability,
	  .what = "a compute capability such as \"8.9\"" },
	{ "units", ENV(INT, units), .min = 1 },
	{ "memory_bytes", ENV(INT, memory_bytes), .min = 1 },
	{ "uuid", ENV(TEXT, uuid) },
	{ "isa", RFL_MEMBERS(TEXT, struct rfl_peaks_env, isa, nisa) },
	END,
};

const struct rfl_member rfl_rules_host[] = {
	{ "os", ENV(TEXT, os) },
	{ "kernel", ENV(TEXT, kernel) },
	{ "virtualised", ENV(OTHER, virtualised), KNOWN },
	{ "driver", ENV(TEXT, driver) },
	{ "cuda_runtime", ENV(TEXT, cuda_runtime) },
	{ "compiler", ENV(TEXT, compiler) },
	{ "governor", ENV(TEXT, governor) },
	{ "smt", ENV(OTHER, smt), KNOWN },
	{ "numa_nodes", ENV(INT, numa_nodes), .min = 1 },
	END,
};

const struct rfl_member rfl_rules_size[] = {
	{ "scope", SIZE(CHOICE, scope), .must = true, .choices = scopes },
	{ "working_set_bytes", SIZE(INT, working_set_bytes), .must = true, .min = 1 },
	{ "gbs", SIZE(OTHER, value), .must = true, .read = read_rate, .write = write_rate },
	END,
};

const struct rfl_member rfl_rules_level[] = {
	{ "level", LEVEL(CHOICE, level), .must = true, .choices = rfl_peaks_levels },
	{ "scope", LEVEL(CHOICE, scope), .must = true, .choices = scopes },
	{ "capacity_bytes", LEVEL(INT, capacity_bytes), .min = 1, .null = true },
	{ "gbs", LEVEL(OTHER, peak), .must = true, .read = read_peak, .write = write_peak },
	{ "sweep", RFL_MEMBERS(OBJECT, struct rfl_peak_level, sweep, nsweep), .filled = true,
	  .object = rfl_rules_size },
	END,
};

const struct rfl_member rfl_rules_environment[] = {
	{ "kind", ENV(CHOICE, kind), .must = true, .choices = kinds },
	{ "device", SAME(rfl_rules_device), .must = true },
	{ "host", SAME(rfl_rules_host) },
	{ "compute", .kind = RFL_BIND_OTHER, .size = 1, .must = true, .read = read_compute,
	  .write = write_compute },
	{ "memory", RFL_MEMBERS(OBJECT, struct rfl_peaks_env, levels, nlevels), .must = true,
	  .filled = true, .object = rfl_rules_level },
	{ "notes", RFL_MEMBERS(TEXT, struct rfl_peaks_env, notes, nnotes) },
	END,
};

const struct rfl_member rfl_rules_unknown[] = {
	{ "status", RFL_CHECKED(CHOICE), .must = true, .choices = unknown },
	{ "value", RFL_CHECKED(OTHER), .null = true, .read = check_null },
	{ "reason", PEAK(TEXT, reason), .must = true, .filled = true },
	{ "upper_bound", RFL_CHECKED(OTHER), .read = check_rate },
	END,
};

const struct rfl_member rfl_rules_source[] = {
	{ "title", PEAK(TEXT, source), .must = true, .filled = true },
	{ "url", RFL_CHECKED(TEXT) },
	{ "where", RFL_CHECKED(TEXT) },
	{ "formula", RFL_CHECKED(TEXT) },
	{ "retrieved", RFL_CHECKED(TEXT), .valid = is_date,
	  .what = "a date such as \"2026-11-21\"" },
	END,
};

const struct rfl_member rfl_rules_method[] = {
	{ "kernel", PEAK(TEXT, kernel), .must = true, .filled = true },
	{ "tool", PEAK(TEXT, tool), .must = true },
	{ "measured_at", PEAK(TEXT, measured_at), .must = true, .valid = is_time,
	  .what = "a time such as \"2026-11-21T05:31:00Z\"" },
	{ "bytes_counted", PEAK(CHOICE, bytes_counted), .choices = bytes_counted },
	{ "nt_stores", PEAK(OTHER, nt_stores), KNOWN },
	{ "accumulators", PEAK(INT, accumulators), .min = 1 },
	{ "working_set_bytes", PEAK(INT, working_set_bytes), .min = 1 },
	{ "plateau_bytes", RFL_MEMBERS(INT, struct rfl_peak, plateau_bytes, nplateau) },
	{ "shape", RFL_MEMBERS(INT, struct rfl_peak, shape, nshape) },
	{ "input", PEAK(CHOICE, input), .choices = inputs },
	{ "accumulate", PEAK(CHOICE, accumulate), .choices = accumulates },
	{ "sparse", RFL_CHECKED(OTHER), .read = check_false },
	END,
};

const struct rfl_member rfl_rules_stats[] = {
	{ "n", PEAK(INT, stats.n), .must = true, .min = 3 },
	{ "median", RATE(stats.median), .must = true },
	{ "min", RATE(stats.min) },
	{ "max", RATE(stats.max), .must = true },
	{ "rel_spread", PEAK(REAL, stats.spread), NOT_NEGATIVE },
	END,
};

const struct rfl_member rfl_rules_interference[] = {
	{ "disturbed_repeats", RFL_CHECKED(INT), .must = true, NOT_NEGATIVE },
	{ "discarded_repeats", RFL_CHECKED(INT), NOT_NEGATIVE },
	{ "context_switches", RFL_CHECKED(INT), NOT_NEGATIVE },
	{ "off_cpu", RFL_CHECKED(REAL), NOT_NEGATIVE },
	{ "steal", RFL_CHECKED(REAL), NOT_NEGATIVE },
	{ "other_load", RFL_CHECKED(REAL), NOT_NEGATIVE },
	END,
};

const struct rfl_member rfl_rules_conditions[] = {
	{ "threads", PEAK(INT, threads), .min = 1 },
	{ "pinning", PEAK(TEXT, pinning) },
	{ "huge_pages", PEAK(OTHER, huge_pages), KNOWN },
	{ "clock_mhz", PEAK(REAL, clock_hz), .unit = 1e6 },
	{ "power_w", PEAK(REAL, power_w) },
	{ "power_limit_w", PEAK(REAL, power_limit_w) },
	{ "temp_c", PEAK(REAL, temp_c) },
	{ "throttle_reasons", PEAK(OTHER, throttled), .read = read_words, .write = write_words },
	{ "sustained_s", PEAK(REAL, sustained_s) },
	{ "interference", PEAK(OTHER, interference), .read = check_interference,
	  .write = write_interference },
	{ "doubts", RFL_MEMBERS(TEXT, struct rfl_peak, doubts, ndoubts) },
	END,
};

const struct rfl_member rfl_rules_known[] = {
	{ "status", RFL_CHECKED(CHOICE), .must = true, .choices = known },
	{ "value", RATE(value), .must = true },
	{ "spec", PEAK(OTHER, spec), .null = true, .read = read_spec, .write = write_rate },
	{ "source", SAME(rfl_rules_source) },
	{ "method", SAME(rfl_rules_method) },
	{ "stats", SAME(rfl_rules_stats) },
	{ "conditions", SAME(rfl_rules_conditions) },
	END,
};

/* --- ceilings --- */

#define STATUSES "one of measured, spec, derived, user, unknown, unsupported, failed"

static void read_peak(struct rfl_bind *b, const json_t *value, void *member)
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
	struct rfl_peak *peak = member;
	int code = RFL_PEAK_MEASURED;
	size_t mark;

	if (json_is_null(value))
		rfl_bind_refuse(b, "must not be null; write %s", WHEN_UNKNOWN);
	else if (!json_is_object(value))
		rfl_bind_must(b, value,
			      "an object such as {\"status\": \"user\", \"value\": 420, "
			      "\"source\": {\"title\": \"...\"}}");
	else if (!status)
		rfl_bind_refuse(b, "the key \"status\" is missing; add " STATUSES);
	while (code <= RFL_PEAK_FAILED &&
	       !rfl_text_same(name, rfl_peak_status_name((enum rfl_peak_status)code)))
		code++;
	if (code > RFL_PEAK_FAILED) {
		mark = rfl_where_key(&b->at, "status");
		rfl_bind_must(b, status, STATUSES);
		rfl_where_up(&b->at, mark);
		return;
	}
	*peak = rfl_peak_none;
	peak->status = (enum rfl_peak_status)code;
	rfl_bind_read(b, value, code >= RFL_PEAK_UNKNOWN ? rfl_rules_unknown : rfl_rules_known,
		      peak);
	for (size_t i = 0; code < RFL_PEAK_UNKNOWN && i < RFL_ARRAY_LEN(parts); i++)
		if (parts[i].measured == (code == RFL_PEAK_MEASURED) &&
		    !json_object_get(value, parts[i].part))
			rfl_bind_refuse(b, "status \"%s\" needs \"%s\"; %s", name, parts[i].part,
					parts[i].fix);
}

static json_t *write_peak(const void *member)
{
	const struct rfl_peak *peak = member;
	const bool has_value = peak->status < RFL_PEAK_UNKNOWN;
	json_t *value = json_pack("{s:s}", "status", rfl_peak_status_name(peak->status));

	if (!has_value)
		json_object_set_new(value, "value", json_null());
	rfl_bind_write(value, has_value ? rfl_rules_known : rfl_rules_unknown, peak);
	if (!peak->source)
		json_object_del(value, "source");
	if (peak->status != RFL_PEAK_MEASURED) {
		json_object_del(value, "method");
		json_object_del(value, "stats");
	}
	return value;
}

static bool one_of(const char *const *list, const char *text, size_t len)
{
	for (; *list; list++) {
		if (strlen(*list) == len && strncmp(*list, text, len) == 0)
			return true;
	}
	return false;
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

static void read_ceiling(struct rfl_bind *b, const char *key, const json_t *value, void *to)
{
	struct rfl_peaks_env *env = to;
	struct rfl_peak_compute *c = &env->compute[env->ncompute++];
	const char *near;

	c->key = rfl_arena_strdup(b->arena, key);
	if (rfl_rules__is_compute_key(key)) {
		read_peak(b, value, &c->peak);
		return;
	}
	near = rfl_text_nearest(key, rfl_peaks_compute_keys);
	rfl_bind_refuse(b,
			"not a compute key%s%s%s; use <precision>.<scalar | vector | matrix | "
			"gemm>[.<fp16acc | fastacc | 1core | nofma | fmaadd>], for example "
			"fp32.vector",
			near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static void read_compute(struct rfl_bind *b, const json_t *value, void *member)
{
	struct rfl_peaks_env *env = member;

	if (!json_is_object(value) || json_object_size(value) == 0)
		rfl_bind_must(b, value, "an object with at least one ceiling");
	if (b->rc)
		return;
	env->compute = rfl_arena_array(b->arena, json_object_size(value), sizeof(*env->compute));
	rfl_bind_each(b, value, read_ceiling, env);
}

static json_t *write_compute(const void *member)
{
	const struct rfl_peaks_env *env = member;
	json_t *compute = json_object();

	for (size_t i = 0; i < env->ncompute; i++)
		json_object_set_new(compute, env->compute[i].key,
				    write_peak(&env->compute[i].peak));
	return compute;
}

json_t *rfl_peaks_env_json(const struct rfl_peaks_env *env)
{
	json_t *value = json_object();

	rfl_bind_write(value, rfl_rules_environment, env);
	return value;
}

void rfl_rules__name_cells(struct rfl_peaks_env *env, struct rfl_arena *arena)
{
	for (struct rfl_peak_compute *c = env->compute; c < env->compute + env->ncompute; c++)
		c->cell = rfl_arena_printf(arena, "compute.%s", c->key);
	for (struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels; l++) {
		const bool part = rfl_peaks_is_part(env, l);

		l->cell = rfl_arena_printf(arena, "memory.%s%s%s.gbs", l->level, part ? "." : "",
					   part ? l->scope : "");
	}
}
