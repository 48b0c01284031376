/* peaks_query.c - looks up ceilings. */
#include "peaks/peaks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define LINE_APART 1.02 /* a line above its roof; less is noise */

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

enum rfl_rc rfl_peaks_get(const struct rfl_peaks *p, const char *env,
			  const struct rfl_peaks_env **ret, struct rfl_err *err)
{
	char advice[RFL_ADVICE_SIZE];
	const char **names;

	*ret = rfl_peaks_find(p, env);
	if (*ret)
		return RFL_OK;
	names = rfl_arena_array(p->arena, p->nenvs + 1, sizeof(*names));
	for (size_t i = 0; i < p->nenvs; i++)
		names[i] = p->envs[i].name;
	return rfl_fail(err, RFL_ENOTFOUND, 0, "%s has no environment '%s'; %s", p->path, env,
			rfl_text_advice(env, names, 1, NULL, advice));
}

/* Skip a prefix: "compute.fp32.vector" gives "fp32.vector". */
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

const char *rfl_peaks_unit(const char *key)
{
	return strncmp(key, "int", 3) == 0 ? "Gop/s" : "GFLOP/s";
}

bool rfl_peaks_is_gemm(const char *key)
{
	const struct rfl_peaks_part *unit = rfl_peaks_part(key, true);

	return unit && unit->line == RFL_LINE_LIBRARY;
}

const struct rfl_peak *rfl_peaks_gemm(const struct rfl_peaks_env *env, const char *key)
{
	const struct rfl_peak *p;
	char gemm[32];

	if (env->short_form || !key)
		return NULL;
	snprintf(gemm, sizeof(gemm), "%.*s.gemm", (int)strcspn(key, "."), key);
	p = rfl_peaks_compute(env, gemm);
	return rfl_peak_usable(p) ? p : NULL;
}

const struct rfl_peak *rfl_peaks_line(const struct rfl_peaks_env *env, const char *key,
				      const struct rfl_peaks_part *part)
{
	const struct rfl_peak *roof = env->short_form ? NULL : rfl_peaks_compute(env, key), *p;
	char whole[48];

	snprintf(whole, sizeof(whole), "%s.%s", key, part->word);
	p = roof ? rfl_peaks_compute(env, whole) : NULL;
	if (!rfl_peak_usable(p) ||
	    (part->line == RFL_LINE_ABOVE ? p->value <= LINE_APART * roof->value
					  : part->line != RFL_LINE_BELOW))
		return NULL;
	return p;
}

/* How much of the machine a scope covers: 0 for a core. */
static size_t breadth(const char *scope)
{
	static const char *const scopes[] = { "core", "cluster", "socket", "node", "device" };
	size_t i = RFL_ARRAY_LEN(scopes) - 1;

	while (i > 0 && !rfl_text_same(scopes[i], scope))
		i--;
	return i;
}

bool rfl_peaks_is_part(const struct rfl_peaks_env *env, const struct rfl_peak_level *level)
{
	for (const struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels; l++)
		if (rfl_text_same(l->level, level->level) &&
		    breadth(l->scope) > breadth(level->scope))
			return true;
	return false;
}

/* The main memory (DRAM or HBM), with the widest scope, a socket or more. */
static const struct rfl_peak_level *find_dram(const struct rfl_peaks_env *env)
{
	const struct rfl_peak_level *found = NULL;

	for (const struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels; l++)
		if ((strcmp(l->level, "DRAM") == 0 || strcmp(l->level, "HBM") == 0) &&
		    breadth(l->scope) >= breadth("socket") &&
		    (!found || breadth(l->scope) > breadth(found->scope)))
			found = l;
	return found;
}

const struct rfl_peak *rfl_peaks_dram(const struct rfl_peaks_env *env)
{
	const struct rfl_peak_level *l = find_dram(env);

	return l ? &l->peak : NULL;
}

const struct rfl_peak *rfl_peaks_cache(const struct rfl_peaks_env *env, const char *level,
				       double *gbps)
{
	for (const struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels; l++) {
		const bool core = rfl_text_same(l->scope, "core") && env->units > 1;

		if (!rfl_text_same(l->level, level) || !rfl_peak_usable(&l->peak) ||
		    rfl_peaks_is_part(env, l))
			continue;
		if (gbps)
			*gbps = l->peak.value * (core ? env->units : 1) / 1e9;
		return &l->peak;
	}
	return NULL;
}

char *rfl_peaks_cell(const struct rfl_peaks_env *env, const char *key, char *out, size_t out_size)
{
	const char *level = after(key, "memory.");
	const size_t len = strcspn(level, ".");
	const struct rfl_peak_level *l = find_dram(env);
	const struct rfl_peak_compute *c, *sibling = env->ncompute > 0 ? &env->compute[0] : NULL;
	int dtype;

	/* a memory level has nothing after its name except ".gbs" */
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

#define BELOW_CLOCK 0.97 /* of the sheet's clock or power, to be a cause */

static void RFL_PRINTF(3, 4) add_cause(char *out, size_t size, const char *fmt, ...)
{
	const size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	if (len > 0 && len + 2 < size)
		memcpy(out + len, ", ", 3);
	vsnprintf(out + strlen(out), size - strlen(out), fmt, ap);
	va_end(ap);
}

static bool is_compute(const char *cell)
{
	return strncmp(cell, "compute.", 8) == 0;
}

char *rfl_peaks_causes(const struct rfl_peaks_env *env, const char *cell,
		       const struct rfl_peak *peak, const struct rfl_device_sheet *sheet, char *out,
		       size_t out_size)
{
	out[0] = '\0';
	if (sheet && env->units > 0 && env->units < sheet->units)
		add_cause(out, out_size, "%d of %lld units", env->units, (long long)sheet->units);
	if (sheet && is_compute(cell) && peak->clock_hz < BELOW_CLOCK * sheet->clock_hz)
		add_cause(out, out_size, "clock %.0f of %.0f MHz", peak->clock_hz / 1e6,
			  sheet->clock_hz / 1e6);
	if (sheet && peak->power_limit_w < BELOW_CLOCK * sheet->power_w)
		add_cause(out, out_size, "power limit %.0f of %.0f W", peak->power_limit_w,
			  sheet->power_w);
	if (peak->throttled && *peak->throttled)
		add_cause(out, out_size, "throttled: %s", peak->throttled);
	else if (peak->stats.max > RFL_PEAKS_UNSTEADY * peak->stats.median)
		add_cause(out, out_size, "other load");
	if (env->ecc && !is_compute(cell))
		add_cause(out, out_size, "ECC");
	if (env->virtualised == RFL_YES && peak->status == RFL_PEAK_MEASURED)
		add_cause(out, out_size, "virtual machine");
	return out;
}
