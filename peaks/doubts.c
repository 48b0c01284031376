/*
 * doubts.c - checks whether ceilings are plausible: levels in the wrong order, and measurements
 * that are unsteady, old or far from the data sheet. docs/reference/peaks.md explains each doubt.
 */
#include "peaks/doubts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "peaks/rules.h"

#define ORDER_SLACK 1.05 /* tolerance for a level faster than the one before it */
#define ABOVE_SPEC  1.05
#define BELOW_SPEC  0.3
#define OLD_DAYS    180
#define LISTED      3 /* ceilings named for a cause */

enum cause {
	BUSY,
	CACHES,
	UNEVEN,
	UNBOUND,
	THROTTLED,
	ABOVE_SHEET,
	BELOW_SHEET,
	ABOVE_UNIT,
	OLD,
	OLD_KERNELS,
	INCONSISTENT,
	OTHER, /* recorded by another version or by hand */
	CAUSES
};

/* What is said of the ceilings, after their names. */
static const char *const phrases[CAUSES] = {
	[BUSY] = "measured on a busy machine",
	[CACHES] = "may include caches that the system does not report",
	[UNEVEN] = "not the same on all sockets or nodes",
	[UNBOUND] = "measured with memory that may have moved to another node",
	[THROTTLED] = "the GPU was throttled",
	[ABOVE_SHEET] = "above the data sheet",
	[BELOW_SHEET] = "far below the data sheet",
	[ABOVE_UNIT] = "faster than the unit that computes them",
	[OLD] = "measured long ago",
	[OLD_KERNELS] = "OpenBLAS used kernels for an older CPU (set "
			"OPENBLAS_CORETYPE, also for runs)",
	[INCONSISTENT] = "value and statistics do not agree",
	[OTHER] = "doubtful",
};

/* How the doubts of a measurement begin, and their causes. */
static const struct {
	const char *begins;
	enum cause cause;
} recorded[] = {
	{ RFL_DOUBT_DISTURBED, BUSY },      { RFL_DOUBT_OTHERS, BUSY },
	{ RFL_DOUBT_HYPERVISOR, BUSY },     { RFL_DOUBT_NOT_REPEATABLE, BUSY },
	{ RFL_DOUBT_NO_PLATEAU, BUSY },     { RFL_DOUBT_HALF_THE_SIZE, CACHES },
	{ RFL_DOUBT_SLOWEST_PART, UNEVEN }, { RFL_DOUBT_UNBOUND, UNBOUND },
};

struct check {
	void (*fn)(struct check *c, enum cause cause, const char *cell, const char *text);
	const struct rfl_peaks_env *env;
	const char *today;
	struct rfl_devices *devices; /* NULL: unknown */
	/* rfl_peaks_check() */
	rfl_peaks_doubt_fn report;
	void *ctx;
	size_t n;
	/* rfl_peaks_doubts() */
	const struct rfl_peaks_ref *used;
	size_t nused, nfound, room;
	struct {
		enum cause cause;
		const char *cell;
	} * found; /* in the current environment */
};

static void RFL_PRINTF(4, 5)
	doubt(struct check *c, enum cause cause, const char *cell, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->fn(c, cause, cell, text);
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

static bool is_compute(const char *cell)
{
	return strncmp(cell, "compute.", 8) == 0;
}

static enum cause cause_of(const char *text)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(recorded); i++)
		if (strncmp(text, recorded[i].begins, strlen(recorded[i].begins)) == 0)
			return recorded[i].cause;
	return OTHER;
}

static void check_peak(struct check *c, const char *cell, const struct rfl_peak *p)
{
	const struct rfl_peaks_env *env = c->env;
	const bool base_clock = env->kind && strcmp(env->kind, "cpu") == 0; /* see devices.csv */
	char causes[256];
	const double age = day_number(c->today) - day_number(p->measured_at);

	if (!rfl_peak_usable(p))
		return;
	if (p->spec > 0 && p->value > ABOVE_SPEC * p->spec && !(base_clock && is_compute(cell)))
		doubt(c, ABOVE_SHEET, cell,
		      "is %.4g %% of the data sheet; check that the sheet is for this device, "
		      "without sparsity",
		      100 * p->value / p->spec);
	if (p->spec > 0 && p->value < BELOW_SPEC * p->spec) {
		rfl_peaks_causes(env, cell, p, rfl_devices_get(c->devices, env->device), causes,
				 sizeof(causes));
		doubt(c, BELOW_SHEET, cell, "is only %.4g %% of the data sheet; %s%s",
		      100 * p->value / p->spec,
		      *causes ? "likely causes: " : "check for other load and power limits",
		      causes);
	}
	if (p->status != RFL_PEAK_MEASURED)
		return;
	for (size_t i = 0; i < p->ndoubts; i++)
		doubt(c, cause_of(p->doubts[i]), cell, "%s", p->doubts[i]);
	if (p->stats.max > RFL_PEAKS_UNSTEADY * p->stats.median && p->throttled && *p->throttled)
		doubt(c, THROTTLED, cell,
		      "throttled (%s): the fastest repeat is %.2f times the median; the value is "
		      "what the GPU sustains",
		      p->throttled, p->stats.max / p->stats.median);
	else if (p->stats.max > RFL_PEAKS_UNSTEADY * p->stats.median)
		doubt(c, BUSY, cell,
		      "unsteady: the fastest repeat is %.2f times the median; measure again on an "
		      "idle machine",
		      p->stats.max / p->stats.median);
	if (p->value > 1.001 * p->stats.max)
		doubt(c, INCONSISTENT, cell,
		      "the value (%.6g) is above the fastest repeat (%.6g); measure again",
		      p->value / 1e9, p->stats.max / 1e9);
	if (p->stats.min > p->stats.median || p->stats.median > p->stats.max)
		doubt(c, INCONSISTENT, cell,
		      "minimum, median and maximum of the repeats are out of order; measure again");
	if (age > OLD_DAYS)
		doubt(c, OLD, cell,
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

static void check_order(struct check *c)
{
	const struct rfl_peaks_env *env = c->env;
	const struct rfl_peak_level *before = NULL;

	for (size_t i = 0; i < env->nlevels; i++) {
		const struct rfl_peak_level *l = &env->levels[i];
		const double rate = whole(env, l);

		/* shared memory is beside the caches, the others are beside the memory */
		if (isnan(rate) || rfl_peaks_is_part(env, l) || strcmp(l->level, "shared") == 0 ||
		    strcmp(l->level, "remote") == 0 || strcmp(l->level, "link") == 0)
			continue;
		if (before && rate > ORDER_SLACK * whole(env, before))
			doubt(c, BUSY, l->cell,
			      "faster than %s, which is nearer to the cores; measure again",
			      before->cell);
		before = l;
	}
}

/* One core cannot be faster than all cores, nor n threads more than n times as fast as one. */
static void check_cores(struct check *c)
{
	const struct rfl_peaks_env *env = c->env;

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
			doubt(c, BUSY, env->compute[i].cell,
			      "one core is faster than all cores; measure again on an idle "
			      "machine");
		if (all->threads > 0 && all->value > ORDER_SLACK * one * all->threads)
			doubt(c, BUSY, env->compute[i].cell,
			      "%d threads are more than %d times as fast as one; measure again on "
			      "an idle machine",
			      all->threads, all->threads);
	}
}

const char *rfl_peaks_openblas_core(const char *library, bool avx2, bool avx512,
				    struct rfl_span *kernels)
{
	static const char *const older[] = {
		"Katmai",      "Coppermine", "Northwood",    "Prescott",   "Banias",
		"Atom",        "Core2",      "Penryn",       "Dunnington", "Nehalem",
		"Athlon",      "Opteron",    "Opteron_SSE3", "Barcelona",  "Nano",
		"Sandybridge", "Bobcat",     "Bulldozer",    "Piledriver", "Steamroller",
	};
	const char *at = avx2 || avx512 ? strstr(library, "OpenBLAS ") : NULL;

	at = at ? strchr(at, '(') : NULL;
	if (!at)
		return NULL;
	*kernels = (struct rfl_span){ .at = at + 1, .len = strcspn(at + 1, " )") };
	for (size_t i = 0; i < RFL_ARRAY_LEN(older); i++)
		if (rfl_span_is(*kernels, older[i]))
			return avx512 ? "SKYLAKEX" : "HASWELL";
	return NULL;
}

/* The loop of the vector units shows what the CPU has. */
static void check_library(struct check *c)
{
	const struct rfl_peak *vector = rfl_peaks_compute(c->env, "fp32.vector");
	const char *loop = vector && vector->kernel ? vector->kernel : "";
	struct rfl_span kernels;

	for (size_t i = 0; i < c->env->ncompute; i++) {
		const struct rfl_peak_compute *gemm = &c->env->compute[i];
		const char *core = NULL;

		if (rfl_peaks_is_gemm(gemm->key) && rfl_peak_usable(&gemm->peak) &&
		    gemm->peak.kernel)
			core = rfl_peaks_openblas_core(gemm->peak.kernel,
						       strstr(loop, "AVX2") != NULL,
						       strstr(loop, "AVX-512") != NULL, &kernels);
		if (core)
			doubt(c, OLD_KERNELS, gemm->cell,
			      "OpenBLAS used its kernels for %.*s, although the CPU has %s; "
			      "set OPENBLAS_CORETYPE=%s for this command and for runs, and measure "
			      "again",
			      RFL_SPAN_ARG(kernels),
			      strcmp(core, "HASWELL") == 0 ? "AVX2" : "AVX-512", core);
	}
}

/* A GEMM cannot be faster than the fastest unit of its precision. */
static void check_gemm(struct check *c)
{
	static const char *const units[] = { "scalar", "vector", "matrix" };
	const struct rfl_peaks_env *env = c->env;

	for (size_t i = 0; i < env->ncompute && !env->short_form; i++) {
		const struct rfl_peak_compute *gemm = &env->compute[i];
		char key[32], limit[32] = "";
		double most = 0;

		if (!rfl_peaks_is_gemm(gemm->key) || !rfl_peak_usable(&gemm->peak))
			continue;
		for (size_t u = 0; u < RFL_ARRAY_LEN(units); u++) {
			const struct rfl_peak *unit;

			snprintf(key, sizeof(key), "%.*s.%s", (int)strcspn(gemm->key, "."),
				 gemm->key, units[u]);
			unit = rfl_peaks_compute(env, key);
			if (rfl_peak_usable(unit) && unit->value > most) {
				most = unit->value;
				memcpy(limit, key, sizeof(limit));
			}
		}
		if (*limit && gemm->peak.value > ORDER_SLACK * most)
			doubt(c, ABOVE_UNIT, gemm->cell,
			      "%.4g %% of %s, which limits it; measure both again on an idle "
			      "machine, or add the ceiling of the matrix cores",
			      100 * gemm->peak.value / most, limit);
	}
}

static void check_env(struct check *c, const struct rfl_peaks_env *env)
{
	c->env = env;
	for (size_t i = 0; i < env->ncompute; i++)
		check_peak(c, env->compute[i].cell, &env->compute[i].peak);
	for (size_t i = 0; i < env->nlevels; i++)
		check_peak(c, env->levels[i].cell, &env->levels[i].peak);
	check_order(c);
	check_cores(c);
	check_gemm(c);
	check_library(c);
}

static void pass_on(struct check *c, enum cause cause, const char *cell, const char *text)
{
	(void)cause;
	c->n++;
	c->report(c->env->name, cell, text, c->ctx);
}

size_t rfl_peaks_check(const struct rfl_peaks *p, const char *today, rfl_peaks_doubt_fn fn,
		       void *ctx)
{
	struct check c = { .fn = pass_on,
			   .report = fn,
			   .ctx = ctx,
			   .today = today,
			   .devices = rfl_devices_new() };

	for (size_t i = 0; i < p->nenvs; i++)
		check_env(&c, &p->envs[i]);
	rfl_devices_free(c.devices);
	return c.n;
}

/* --- one line for each cause --- */

static bool is_used(const struct check *c, const char *cell)
{
	char name[96];

	for (size_t i = 0; i < c->nused; i++)
		if (rfl_text_same(c->used[i].env, c->env->name) && c->used[i].key &&
		    strcmp(rfl_peaks_cell(c->env, c->used[i].key, name, sizeof(name)), cell) == 0)
			return true;
	return !c->used;
}

/* "compute.fp32.vector" is "fp32.vector", and "memory.DRAM.gbs" "DRAM". */
static struct rfl_span short_name(const char *cell)
{
	struct rfl_span s = rfl_span_of(cell);

	if (is_compute(cell))
		return rfl_span_from(s, 8);
	if (rfl_span_starts(s, "memory.")) {
		s = rfl_span_from(s, 7);
		s.len -= 4; /* ".gbs" */
	}
	return s;
}

static void collect(struct check *c, enum cause cause, const char *cell, const char *text)
{
	(void)text;
	for (size_t i = 0; i < c->nfound; i++)
		if (c->found[i].cause == cause && c->found[i].cell == cell)
			return;
	if (!is_used(c, cell))
		return;
	rfl_reserve(&c->found, &c->room, c->nfound + 1);
	c->found[c->nfound].cause = cause;
	c->found[c->nfound++].cell = cell;
}

/* Append the line of a cause, if there is one. */
static size_t put_line(const struct check *c, enum cause cause, struct rfl_buf *lines)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nfound; i++) {
		const struct rfl_span name = short_name(c->found[i].cell);

		if (c->found[i].cause == cause && n++ < LISTED)
			rfl_buf_printf(lines, "%s%s%.*s", n == 1 ? c->env->name : "",
				       n == 1 ? ": " : ", ", (int)name.len, name.at);
	}
	if (n > LISTED)
		rfl_buf_printf(lines, " and %zu more", n - LISTED);
	if (n > 0)
		rfl_buf_printf(lines, ": %s\n", phrases[cause]);
	return n > 0;
}

size_t rfl_peaks_doubts(const struct rfl_peaks *p, const char *today,
			const struct rfl_peaks_ref *used, size_t nused, struct rfl_buf *lines)
{
	struct check c = { .fn = collect, .used = used, .nused = nused, .today = today };
	size_t n = 0;

	for (size_t i = 0; i < p->nenvs; i++) {
		c.nfound = 0;
		check_env(&c, &p->envs[i]);
		for (enum cause k = 0; k < CAUSES; k++)
			n += put_line(&c, k, lines);
	}
	free(c.found);
	return n;
}

size_t rfl_peaks_doubts_of(const char *name, struct rfl_peaks_env *env, struct rfl_arena *a,
			   struct rfl_buf *lines)
{
	const struct rfl_peaks p = { .nenvs = 1, .envs = env };

	env->name = name;
	rfl_rules__name_cells(env, a);
	return rfl_peaks_doubts(&p, NULL, NULL, 0, lines);
}
