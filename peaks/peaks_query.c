/*
 * peaks_query.c - looks up ceilings and checks their plausibility: levels out of order,
 * measurements unsteady, old, or far from the data sheet. docs/peaks.md explains each doubt.
 */
#include "peaks/peaks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

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
	const char *unit = strchr(key, '.');

	return unit && strcmp(unit, ".gemm") == 0;
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

/* The main memory (DRAM or HBM), with the widest scope, at least that of a socket. */
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

#define ORDER_SLACK 1.05 /* tolerance for a level faster than the one before it */
#define ABOVE_SPEC  1.05
#define BELOW_SPEC  0.3
#define OLD_DAYS    180

struct check {
	rfl_peaks_doubt_fn fn;
	void *ctx;
	const char *env;
	const char *today;
	struct rfl_devices *devices; /* NULL: out of memory */
	size_t n;
};

static void RFL_PRINTF(3, 4) doubt(struct check *c, const char *cell, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->n++;
	c->fn(c->env, cell, text, c->ctx);
}

/* The day number of a time such as "2026-11-21T..."; NaN if it is not a date. */
static double day_number(const char *time)
{
	int y, m, d;

	if (!time || sscanf(time, "%4d-%2d-%2d", &y, &m, &d) != 3)
		return NAN;
	/* years begin in March, so that the leap day is the last day of a year */
	y -= m <= 2;
	const int shifted = (m + 9) % 12;

	return 365.0 * y + floor(y / 4.0) - floor(y / 100.0) + floor(y / 400.0) +
	       (153 * shifted + 2) / 5 + d - 1;
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
	if (peak->throttled)
		add_cause(out, out_size, "throttled: %s", peak->throttled);
	else if (peak->stats.max > RFL_PEAKS_UNSTEADY * peak->stats.median)
		add_cause(out, out_size, "other load");
	if (env->ecc && !is_compute(cell))
		add_cause(out, out_size, "ECC");
	if (env->virtualised && peak->status == RFL_PEAK_MEASURED)
		add_cause(out, out_size, "virtual machine");
	return out;
}

static void check_peak(struct check *c, const struct rfl_peaks_env *env, const char *cell,
		       const struct rfl_peak *p)
{
	const bool base_clock = env->kind && strcmp(env->kind, "cpu") == 0; /* see devices.csv */
	char causes[256];
	const double age = day_number(c->today) - day_number(p->measured_at);

	if (!rfl_peak_usable(p))
		return;
	if (p->spec > 0 && p->value > ABOVE_SPEC * p->spec && !(base_clock && is_compute(cell)))
		doubt(c, cell,
		      "is %.4g %% of the data sheet; check that the sheet is for this device, "
		      "without sparsity",
		      100 * p->value / p->spec);
	if (p->spec > 0 && p->value < BELOW_SPEC * p->spec) {
		rfl_peaks_causes(env, cell, p, rfl_devices_get(c->devices, env->device), causes,
				 sizeof(causes));
		doubt(c, cell, "is only %.4g %% of the data sheet; %s%s", 100 * p->value / p->spec,
		      *causes ? "likely causes: " : "check for other load and power limits",
		      causes);
	}
	if (p->status != RFL_PEAK_MEASURED)
		return;
	for (size_t i = 0; i < p->ndoubts; i++)
		doubt(c, cell, "%s", p->doubts[i]);
	if (p->stats.max > RFL_PEAKS_UNSTEADY * p->stats.median && p->throttled)
		doubt(c, cell,
		      "throttled (%s): the fastest repeat is %.2f times the median; the value is "
		      "what the GPU sustains",
		      p->throttled, p->stats.max / p->stats.median);
	else if (p->stats.max > RFL_PEAKS_UNSTEADY * p->stats.median)
		doubt(c, cell,
		      "unsteady: the fastest repeat is %.2f times the median; measure again on an "
		      "idle machine",
		      p->stats.max / p->stats.median);
	if (p->value > 1.001 * p->stats.max)
		doubt(c, cell, "the value (%.6g) is above the fastest repeat (%.6g); measure again",
		      p->value / 1e9, p->stats.max / 1e9);
	if (p->stats.min > p->stats.median || p->stats.median > p->stats.max)
		doubt(c, cell,
		      "minimum, median and maximum of the repeats are out of order; measure again");
	if (age > OLD_DAYS)
		doubt(c, cell,
		      "measured %.0f days ago; measure again after system or driver updates", age);
}

/* Bandwidth of all cores together, which makes levels of different scopes comparable. */
static double whole(const struct rfl_peaks_env *env, const struct rfl_peak_level *l)
{
	const bool core = l->scope && strcmp(l->scope, "core") == 0;

	if (!rfl_peak_usable(&l->peak) || (core && env->units <= 0))
		return NAN;
	return core ? l->peak.value * env->units : l->peak.value;
}

static void check_order(struct check *c, const struct rfl_peaks_env *env)
{
	const struct rfl_peak_level *before = NULL;

	for (size_t i = 0; i < env->nlevels; i++) {
		const struct rfl_peak_level *l = &env->levels[i];
		const double rate = whole(env, l);

		/* shared memory is beside the caches, the others are beside the memory */
		if (isnan(rate) || rfl_peaks_is_part(env, l) || strcmp(l->level, "shared") == 0 ||
		    strcmp(l->level, "remote") == 0 || strcmp(l->level, "link") == 0)
			continue;
		if (before && rate > ORDER_SLACK * whole(env, before))
			doubt(c, l->cell,
			      "faster than %s, which is nearer to the cores; measure again",
			      before->cell);
		before = l;
	}
}

/* One core cannot be faster than all cores, nor n threads more than n times as fast as one. */
static void check_cores(struct check *c, const struct rfl_peaks_env *env)
{
	for (size_t i = 0; i < env->ncompute; i++) {
		const char *tail = strstr(env->compute[i].key, ".1core");
		const double one = env->compute[i].peak.value;
		char key[64];

		if (!tail)
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)(tail - env->compute[i].key),
			 env->compute[i].key);
		const struct rfl_peak *all = rfl_peaks_compute(env, key);

		if (!all || !rfl_peak_usable(all) || !rfl_peak_usable(&env->compute[i].peak))
			continue;
		if (one > ORDER_SLACK * all->value)
			doubt(c, env->compute[i].cell,
			      "one core is faster than all cores; measure again on an idle "
			      "machine");
		if (all->threads > 0 && all->value > ORDER_SLACK * one * all->threads)
			doubt(c, env->compute[i].cell,
			      "%d threads are more than %d times as fast as one; measure again on "
			      "an idle machine",
			      all->threads, all->threads);
	}
}

/* A matrix product cannot be faster than the fastest unit of its precision. */
static void check_gemm(struct check *c, const struct rfl_peaks_env *env)
{
	static const char *const units[] = { "scalar", "vector", "matrix" };

	for (size_t i = 0; i < env->ncompute && !env->short_form; i++) {
		const struct rfl_peak_compute *gemm = &env->compute[i], *most = NULL;

		if (!rfl_peaks_is_gemm(gemm->key) || !rfl_peak_usable(&gemm->peak))
			continue;
		for (size_t u = 0; u < RFL_ARRAY_LEN(units); u++) {
			const struct rfl_peak_compute *unit;
			char key[32];

			snprintf(key, sizeof(key), "%.*s.%s", (int)strcspn(gemm->key, "."),
				 gemm->key, units[u]);
			unit = find_compute(env, key);
			if (unit && rfl_peak_usable(&unit->peak) &&
			    (!most || unit->peak.value > most->peak.value))
				most = unit;
		}
		if (most && gemm->peak.value > ORDER_SLACK * most->peak.value)
			doubt(c, gemm->cell,
			      "%.4g %% of %s, which limits it; measure both again on an idle "
			      "machine, or add the ceiling of the matrix unit",
			      100 * gemm->peak.value / most->peak.value, most->key);
	}
}

size_t rfl_peaks_check(const struct rfl_peaks *p, const char *today, rfl_peaks_doubt_fn fn,
		       void *ctx)
{
	struct check c = { .fn = fn, .ctx = ctx, .today = today };

	if (rfl_devices_load(&c.devices, NULL) != RFL_OK)
		c.devices = NULL;
	for (size_t i = 0; i < p->nenvs; i++) {
		const struct rfl_peaks_env *env = &p->envs[i];

		c.env = env->name;
		for (size_t j = 0; j < env->ncompute; j++)
			check_peak(&c, env, env->compute[j].cell, &env->compute[j].peak);
		for (size_t j = 0; j < env->nlevels; j++)
			check_peak(&c, env, env->levels[j].cell, &env->levels[j].peak);
		check_order(&c, env);
		check_cores(&c, env);
		check_gemm(&c, env);
	}
	rfl_devices_free(c.devices);
	return c.n;
}
