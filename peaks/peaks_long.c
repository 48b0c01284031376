/*
 * peaks_long.c - one environment of the long form. rules_check.c has checked it before anything is
 * taken over here.
 */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "peaks/peaks_parse.h"

#define GIGA 1e9 /* the file is in GFLOP/s and GB/s */

/* A text of an object, copied; NULL when absent. False out of memory. */
static bool take_text(const json_t *object, const char *key, struct rfl_arena *arena,
		      const char **ret)
{
	const char *text = json_string_value(json_object_get(object, key));

	*ret = text ? rfl_arena_strdup(arena, text) : NULL;
	return !text || *ret;
}

/* A number of an object times GIGA; `absent` when absent or null. */
static double take_rate(const json_t *object, const char *key, double absent)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) * GIGA : absent;
}

static bool take_measured(const json_t *value, struct rfl_arena *arena, struct rfl_peak *peak)
{
	const json_t *method = json_object_get(value, "method");
	const json_t *stats = json_object_get(value, "stats");
	const json_t *conditions = json_object_get(value, "conditions");

	peak->threads = (int)json_integer_value(json_object_get(conditions, "threads"));
	peak->working_set_bytes = json_integer_value(json_object_get(method, "working_set_bytes"));
	peak->nt_stores = json_is_true(json_object_get(method, "nt_stores"));
	peak->stats.n = json_integer_value(json_object_get(stats, "n"));
	peak->stats.median = take_rate(stats, "median", peak->stats.median);
	peak->stats.min = take_rate(stats, "min", peak->stats.min);
	peak->stats.max = take_rate(stats, "max", peak->stats.max);
	return take_text(method, "kernel", arena, &peak->kernel) &&
	       take_text(method, "measured_at", arena, &peak->measured_at);
}

static bool take_peak(const json_t *value, struct rfl_arena *arena, struct rfl_peak *peak)
{
	const json_t *source = json_object_get(value, "source");
	const char *status = json_string_value(json_object_get(value, "status"));

	*peak = rfl_peaks__blank();
	peak->status = (enum rfl_peak_status)rfl_peaks__status(status);
	peak->value = take_rate(value, "value", peak->value);
	peak->spec = take_rate(value, "spec", peak->spec);
	peak->upper_bound = take_rate(value, "upper_bound", peak->upper_bound);
	return take_text(value, "reason", arena, &peak->reason) &&
	       take_text(source, "title", arena, &peak->source) &&
	       take_text(source, "formula", arena, &peak->formula) &&
	       take_measured(value, arena, peak);
}

static bool take_compute(const json_t *compute, struct rfl_arena *arena, struct rfl_peaks_env *env)
{
	const char *key;
	const json_t *value;

	env->compute = rfl_arena_array(arena, json_object_size(compute), sizeof(*env->compute));
	if (!env->compute)
		return false;
	json_object_foreach((json_t *)(uintptr_t)compute, key, value)
	{
		struct rfl_peak_compute *c = &env->compute[env->ncompute];

		c->key = rfl_arena_strdup(arena, key);
		c->cell = rfl_arena_printf(arena, "compute.%s", key);
		if (!c->key || !c->cell || !take_peak(value, arena, &c->peak))
			return false;
		env->ncompute++;
	}
	return true;
}

static bool take_memory(const json_t *memory, struct rfl_arena *arena, struct rfl_peaks_env *env)
{
	env->levels = rfl_arena_array(arena, json_array_size(memory), sizeof(*env->levels));
	if (!env->levels)
		return false;
	for (size_t i = 0; i < json_array_size(memory); i++) {
		const json_t *value = json_array_get(memory, i);
		struct rfl_peak_level *l = &env->levels[env->nlevels];

		l->capacity_bytes = json_integer_value(json_object_get(value, "capacity_bytes"));
		if (!take_text(value, "level", arena, &l->level) ||
		    !take_text(value, "scope", arena, &l->scope) ||
		    !take_peak(json_object_get(value, "gbs"), arena, &l->peak))
			return false;
		l->cell = rfl_arena_printf(arena, "memory.%s.gbs", l->level);
		if (!l->cell)
			return false;
		env->nlevels++;
	}
	return true;
}

enum rfl_rc rfl_peaks__parse_long(const json_t *value, struct rfl_arena *arena,
				  struct rfl_peaks_env *env, struct rfl_where *w,
				  struct rfl_err *err)
{
	enum rfl_rc rc;

	if (json_is_null(value))
		return rfl_where_fail(w, err,
				      "a bare null says nothing; measure the environment "
				      "('roofline peaks measure') or leave it out");
	rc = rfl_rules__check(value, rfl_rules_environment, w, err);
	if (rc != RFL_OK)
		return rc;

	const json_t *device = json_object_get(value, "device");

	env->units = (int)json_integer_value(json_object_get(device, "units"));
	if (!take_text(value, "kind", arena, &env->kind) ||
	    !take_text(device, "name", arena, &env->device) ||
	    !take_compute(json_object_get(value, "compute"), arena, env) ||
	    !take_memory(json_object_get(value, "memory"), arena, env))
		return rfl_peaks__no_memory(w, err);
	return RFL_OK;
}
