/*
 * peaks_query.c - what the rest of the program asks of loaded ceilings.
 */
#include <stdio.h>
#include <string.h>

#include "peaks/peaks.h"

static const char *const status_names[] = {
	[RFL_PEAK_MEASURED] = "measured", [RFL_PEAK_SPEC] = "spec",
	[RFL_PEAK_DERIVED] = "derived",   [RFL_PEAK_USER] = "user",
	[RFL_PEAK_UNKNOWN] = "unknown",   [RFL_PEAK_UNSUPPORTED] = "unsupported",
	[RFL_PEAK_FAILED] = "failed",
};

const char *rfl_peak_status_name(enum rfl_peak_status status)
{
	return status_names[status];
}

bool rfl_peak_usable(const struct rfl_peak *peak)
{
	return peak && peak->status <= RFL_PEAK_USER && peak->value > 0;
}

const struct rfl_peaks_env *rfl_peaks_find(const struct rfl_peaks *p, const char *env)
{
	for (size_t i = 0; i < p->nenvs; i++) {
		if (strcmp(p->envs[i].name, env) == 0)
			return &p->envs[i];
	}
	return NULL;
}

/* "compute.fp32.vector" -> "fp32.vector" */
static const char *after(const char *key, const char *prefix)
{
	const size_t len = strlen(prefix);

	return strncmp(key, prefix, len) == 0 ? key + len : key;
}

static const struct rfl_peak_compute *find_key(const struct rfl_peaks_env *env, const char *key,
					       size_t len)
{
	for (size_t i = 0; i < env->ncompute; i++) {
		if (strlen(env->compute[i].key) == len &&
		    strncmp(env->compute[i].key, key, len) == 0)
			return &env->compute[i];
	}
	return NULL;
}

static const struct rfl_peak_compute *find_compute(const struct rfl_peaks_env *env, const char *key)
{
	const struct rfl_peak_compute *c;
	size_t dtype;

	key = after(key, "compute.");
	if (!env->short_form)
		return find_key(env, key, strlen(key));
	dtype = strcspn(key, ".");
	if (key[dtype] && strchr(key + dtype + 1, '.'))
		return NULL;
	c = find_key(env, key, dtype);
	if (!c && dtype == 4 && (strncmp(key, "fp16", 4) == 0 || strncmp(key, "bf16", 4) == 0))
		c = find_key(env, "amp", 3);
	return c ? c : find_key(env, "*", 1);
}

const struct rfl_peak *rfl_peaks_compute(const struct rfl_peaks_env *env, const char *key)
{
	const struct rfl_peak_compute *c = find_compute(env, key);

	return c ? &c->peak : NULL;
}

/* The memory below all caches, for as much of the machine as possible. */
static const struct rfl_peak_level *find_dram(const struct rfl_peaks_env *env)
{
	static const char *const scopes[] = { "device", "node", "socket" };

	for (size_t s = 0; s < RFL_ARRAY_LEN(scopes); s++) {
		for (size_t i = 0; i < env->nlevels; i++) {
			const struct rfl_peak_level *l = &env->levels[i];

			if ((strcmp(l->level, "DRAM") == 0 || strcmp(l->level, "HBM") == 0) &&
			    strcmp(l->scope, scopes[s]) == 0)
				return l;
		}
	}
	return NULL;
}

const struct rfl_peak *rfl_peaks_dram(const struct rfl_peaks_env *env)
{
	const struct rfl_peak_level *l = find_dram(env);

	return l ? &l->peak : NULL;
}

char *rfl_peaks_cell(const struct rfl_peaks_env *env, const char *key, char *out, size_t out_size)
{
	const char *level = after(key, "memory.");
	const size_t len = strcspn(level, ".");
	const struct rfl_peak_level *l = find_dram(env);
	const struct rfl_peak_compute *c, *sibling = env->ncompute > 0 ? &env->compute[0] : NULL;
	int dtype;

	/* compute keys have a unit after the dot */
	if (!level[len] || strcmp(level + len, ".gbs") == 0) {
		if (l && (env->short_form || (len == 4 && strncmp(level, "DRAM", 4) == 0)))
			snprintf(out, out_size, "%s", l->cell);
		else if (env->short_form)
			snprintf(out, out_size, "peak_gbps");
		else
			snprintf(out, out_size, "memory.%.*s.gbs", (int)len, level);
		return out;
	}
	key = after(key, "compute.");
	c = find_compute(env, key);
	dtype = (int)strcspn(key, ".");
	if (c)
		snprintf(out, out_size, "%s", c->cell);
	else if (!env->short_form)
		snprintf(out, out_size, "compute.%s", key);
	else if (!sibling || strcmp(sibling->key, "*") == 0)
		snprintf(out, out_size, "peak_gflops");
	else if (strncmp(sibling->cell, "peak_gflops", 11) == 0)
		snprintf(out, out_size, "peak_gflops.%.*s", dtype, key);
	else
		snprintf(out, out_size, "%.*s.peak_gflops", dtype, key);
	return out;
}
