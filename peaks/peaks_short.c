/*
 * peaks_short.c - one environment of the short form, which people write by hand:
 *
 *   "lab_cpu": {"peak_gflops": 420, "peak_gbps": 92}
 *   "lab_gpu": {"peak_gflops": {"fp32": 30300, "amp": 121000}, "peak_gbps": 300}
 *   "lab_gpu": {"fp32": {"peak_gflops": 30300}, "amp": {"peak_gflops": 121000}, "peak_gbps": 300}
 *
 * null stands for "not known" here.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "peaks/peaks_parse.h"

#define GIGA 1e9

#define PRECISIONS "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "amp"

static const char *const precisions[] = { PRECISIONS, NULL };
static const char *const env_keys[] = { "peak_gflops", "peak_gbps", "source", PRECISIONS, NULL };
static const char *const precision_keys[] = { "peak_gflops", "peak_gbps", NULL };

struct parse {
	struct rfl_arena *arena;
	struct rfl_peaks_env *env;
	struct rfl_where *w;
	struct rfl_err *err;
	const char *source;
};

bool rfl_peaks__is_short(const json_t *value)
{
	for (size_t i = 0; env_keys[i]; i++) {
		if (strcmp(env_keys[i], "source") != 0 && json_object_get(value, env_keys[i]))
			return true;
	}
	return false;
}

/* A number in GFLOP/s or GB/s, or null. */
static enum rfl_rc take_value(struct parse *p, const json_t *value, struct rfl_peak *peak)
{
	enum rfl_rc rc;

	*peak = rfl_peaks__blank();
	if (json_is_null(value)) {
		peak->reason = "null in the file";
		return RFL_OK;
	}
	rc = rfl_rules__positive(value, "write null when it is not known", p->w, p->err);
	if (rc != RFL_OK)
		return rc;
	peak->status = RFL_PEAK_USER;
	peak->value = json_number_value(value) * GIGA;
	peak->source = p->source;
	return RFL_OK;
}

static enum rfl_rc add_compute(struct parse *p, const char *key, const json_t *value,
			       const char *cell)
{
	struct rfl_peaks_env *env = p->env;
	struct rfl_peak_compute *c = &env->compute[env->ncompute];

	for (size_t i = 0; i < env->ncompute; i++) {
		if (strcmp(env->compute[i].key, key) == 0)
			return rfl_where_fail(p->w, p->err,
					      "given twice, as %s too; leave one of them out",
					      env->compute[i].cell);
	}
	c->key = key;
	c->cell = rfl_arena_strdup(p->arena, cell);
	if (!c->cell)
		return rfl_peaks__no_memory(p->w, p->err);
	env->ncompute++;
	return take_value(p, value, &c->peak);
}

/* Bandwidth does not depend on precision: it may be repeated, but must not differ. */
static enum rfl_rc add_bandwidth(struct parse *p, const json_t *value, const char *cell)
{
	struct rfl_peaks_env *env = p->env;
	struct rfl_peak_level *l = &env->levels[0];
	struct rfl_peak peak;
	enum rfl_rc rc = take_value(p, value, &peak);

	if (rc != RFL_OK)
		return rc;
	if (env->nlevels > 0 && !(isnan(peak.value) && isnan(l->peak.value)) &&
	    !(peak.value == l->peak.value))
		return rfl_where_fail(
			p->w, p->err,
			"differs from %s; the bandwidth of a device does not depend on "
			"the precision: write one peak_gbps beside them",
			l->cell);
	if (env->nlevels > 0)
		return RFL_OK;
	l->level = "DRAM";
	l->scope = "device";
	l->cell = rfl_arena_strdup(p->arena, cell);
	if (!l->cell)
		return rfl_peaks__no_memory(p->w, p->err);
	l->peak = peak;
	env->nlevels = 1;
	return RFL_OK;
}

static enum rfl_rc add_cell(struct parse *p, bool compute, const char *key, const json_t *value,
			    const char *cell)
{
	return compute ? add_compute(p, key, value, cell) : add_bandwidth(p, value, cell);
}

/* "peak_gflops" and "peak_gbps" of an environment: one value, or one per precision. */
static enum rfl_rc take_plain(struct parse *p, const json_t *value, bool compute)
{
	const char *name = compute ? "peak_gflops" : "peak_gbps";
	const json_t *item = json_object_get(value, name);
	const size_t mark = rfl_where_key(p->w, name);
	enum rfl_rc rc = RFL_OK;
	char cell[64];

	if (item && !json_is_object(item)) {
		rc = add_cell(p, compute, "*", item, name);
	} else if (item) {
		rc = rfl_json_only_keys(item, precisions, p->w->file, p->w->pointer, p->err);
		if (rc == RFL_OK && json_object_size(item) == 0)
			rc = rfl_where_fail(p->w, p->err,
					    "must be a number, null, or an object of "
					    "precisions that is not empty");
		for (size_t i = 0; precisions[i] && rc == RFL_OK; i++) {
			const json_t *each = json_object_get(item, precisions[i]);

			if (!each)
				continue;
			const size_t inner = rfl_where_key(p->w, precisions[i]);

			snprintf(cell, sizeof(cell), "%s.%s", name, precisions[i]);
			rc = add_cell(p, compute, precisions[i], each, cell);
			rfl_where_up(p->w, inner);
		}
	}
	rfl_where_up(p->w, mark);
	return rc;
}

/* "fp32": {"peak_gflops": 420, "peak_gbps": 92} */
static enum rfl_rc take_precision(struct parse *p, const char *precision, const json_t *value)
{
	enum rfl_rc rc;
	char cell[64];

	if (!json_is_object(value))
		return rfl_where_fail(p->w, p->err,
				      "must be an object such as {\"peak_gflops\": 420}");
	rc = rfl_json_only_keys(value, precision_keys, p->w->file, p->w->pointer, p->err);
	if (rc == RFL_OK && json_object_size(value) == 0)
		rc = rfl_where_fail(p->w, p->err, "the key \"peak_gflops\" is missing");
	for (size_t i = 0; precision_keys[i] && rc == RFL_OK; i++) {
		const json_t *item = json_object_get(value, precision_keys[i]);

		if (!item)
			continue;
		const size_t mark = rfl_where_key(p->w, precision_keys[i]);

		snprintf(cell, sizeof(cell), "%s.%s", precision, precision_keys[i]);
		rc = add_cell(p, i == 0, precision, item, cell);
		rfl_where_up(p->w, mark);
	}
	return rc;
}

static enum rfl_rc take_source(struct parse *p, const json_t *value)
{
	const json_t *source = json_object_get(value, "source");

	p->source = "given by hand (short form)";
	if (!source)
		return RFL_OK;
	if (!json_is_string(source) || !*json_string_value(source)) {
		(void)rfl_where_key(p->w, "source");
		return rfl_where_fail(p->w, p->err, "must be a text that is not empty");
	}
	p->source = rfl_arena_strdup(p->arena, json_string_value(source));
	return p->source ? RFL_OK : rfl_peaks__no_memory(p->w, p->err);
}

enum rfl_rc rfl_peaks__parse_short(const json_t *value, struct rfl_arena *arena,
				   struct rfl_peaks_env *env, struct rfl_where *w,
				   struct rfl_err *err)
{
	struct parse p = { .arena = arena, .env = env, .w = w, .err = err };
	enum rfl_rc rc = rfl_json_only_keys(value, env_keys, w->file, w->pointer, err);

	if (rc != RFL_OK)
		return rc;
	env->short_form = true;
	env->compute = rfl_arena_array(arena, RFL_ARRAY_LEN(precisions), sizeof(*env->compute));
	env->levels = rfl_arena_array(arena, 1, sizeof(*env->levels));
	if (!env->compute || !env->levels)
		return rfl_peaks__no_memory(w, err);
	rc = take_source(&p, value);
	if (rc == RFL_OK)
		rc = take_plain(&p, value, true);
	if (rc == RFL_OK)
		rc = take_plain(&p, value, false);
	for (size_t i = 0; precisions[i] && rc == RFL_OK; i++) {
		const json_t *item = json_object_get(value, precisions[i]);

		if (!item)
			continue;
		const size_t mark = rfl_where_key(w, precisions[i]);

		rc = take_precision(&p, precisions[i], item);
		rfl_where_up(w, mark);
	}
	return rc;
}
