/* doubts.c - doubts about the ceilings that points use. */
#include "roofline/doubts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"

/* Devices have several names: "Tesla T4" and "NVIDIA T4". */
static bool same_device(const struct rfl_devices *sheets, const char *a, const char *b)
{
	const struct rfl_device_sheet *sheet = rfl_devices_get(sheets, a);

	return strcasecmp(a, b) == 0 || (sheet && sheet == rfl_devices_get(sheets, b));
}

size_t rfl_points_other_devices(const struct rfl_points *points, const struct rfl_peaks *peaks,
				struct rfl_buf *lines)
{
	RFL_AUTOPTR(devices) sheets = rfl_devices_new();
	size_t found = 0;

	for (size_t i = 0; i < peaks->nenvs; i++) {
		const struct rfl_peaks_env *env = &peaks->envs[i];
		const char *same = NULL;

		if (!env->device || strcmp(env->device, RFL_PEAKS_NO_DEVICE) == 0)
			continue;
		for (size_t k = 0; k < points->n; k++) {
			const struct rfl_point *p = &points->points[k];

			if (!p->device_name || !rfl_text_same(p->env, env->name) ||
			    rfl_text_same(same, p->device_name))
				continue;
			same = p->device_name;
			if (same_device(sheets, env->device, same))
				continue;
			rfl_buf_printf(lines,
				       "%s: the ceilings were measured on '%s', but runs were on "
				       "'%s'; use a separate environment for each device\n",
				       env->name, env->device, same);
			found++;
			break;
		}
	}
	return found;
}

void rfl_points_caveats(const struct rfl_points *points, const struct rfl_peaks_env *env,
			const char *peaks_name, struct rfl_buf *lines)
{
	static const char *const levels[] = { "L1", "L2" };
	const struct rfl_point *slow = NULL, *narrow = NULL; /* with the fewest threads */
	const struct rfl_peak *peak;
	int threads = 0;
	bool lacks[2] = { false, false };
	double ratio;

	for (const struct rfl_point *p = points->points; p < points->points + points->n; p++) {
		if (!rfl_text_same(p->env, env->name))
			continue;
		if (!slow && fabs(p->clock_hz / p->peak_clock_hz - 1) > RFL_POINTS_CLOCK)
			slow = p;
		peak = p->compute_key ? rfl_peaks_compute(env, p->compute_key) : NULL;
		if (peak && p->threads > 0 && p->threads < peak->threads &&
		    !(narrow && narrow->threads <= p->threads)) {
			narrow = p;
			threads = peak->threads;
		}
		lacks[0] |= p->ai_l1 > 0 && isnan(p->peak_l1_gbps);
		lacks[1] |= p->ai_l2 > 0 && isnan(p->peak_l2_gbps);
	}
	ratio = slow ? slow->clock_hz / slow->peak_clock_hz : 1;
	if (slow)
		rfl_buf_printf(
			lines,
			"%s: profiled at %.0f MHz, but the ceilings are for %.0f MHz, so the "
			"shares of compute, L1 and L2 are too %s by a factor of %.3g; "
			"profile with 'ncu --clock-control none', or measure the ceilings at "
			"the same clock\n",
			env->name, slow->clock_hz / 1e6, slow->peak_clock_hz / 1e6,
			ratio < 1 ? "low" : "high", ratio < 1 ? 1 / ratio : ratio);
	if (narrow)
		rfl_buf_printf(lines,
			       "%s: runs used %lld thread%s, but the ceilings were measured with "
			       "%d, so the roof is too high for these runs; use --threads %d, or a "
			       "separate environment measured with 'roofline peaks measure "
			       "--threads %lld'\n",
			       env->name, (long long)narrow->threads,
			       narrow->threads == 1 ? "" : "s", threads, threads,
			       (long long)narrow->threads);
	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++)
		if (lacks[i])
			rfl_buf_printf(lines,
				       "%s: %s has no bandwidth of %s, so its traffic has no roof; "
				       "add it with 'roofline peaks set %s %s %s VALUE --source "
				       "TEXT'\n",
				       env->name, peaks_name, levels[i], peaks_name, env->name,
				       levels[i]);
}

/* Ceilings, each once. */
struct used {
	struct rfl_peaks_ref *refs;
	size_t n, cap;
	struct rfl_arena *keys;
};

static void add(struct used *u, const char *env, struct rfl_span key)
{
	for (size_t i = 0; i < u->n; i++)
		if (rfl_span_is(key, u->refs[i].key) && strcmp(u->refs[i].env, env) == 0)
			return;
	rfl_reserve(&u->refs, &u->cap, u->n + 1);
	u->refs[u->n++] = (struct rfl_peaks_ref){
		.env = env,
		.key = rfl_arena_printf(u->keys, "%.*s", (int)key.len, key.at),
	};
}

/* Add the ceilings of a point, with the one of the library that its verdict names. A mixed one is
 * "0.97 fp16.matrix + 0.03 fp32.vector". */
static void add_point(struct used *u, const struct rfl_point *p)
{
	struct rfl_span rest = rfl_span_of(p->compute_key ? p->compute_key : ""), word;
	char gemm[32];

	while (rfl_span_next_word(&rest, &word))
		if (word.at[0] >= 'a' && word.at[0] <= 'z') {
			(void)snprintf(gemm, sizeof(gemm), "%.*s.gemm",
				       (int)rfl_span_find(word, "."), word.at);
			add(u, p->env, word);
			add(u, p->env, rfl_span_of(gemm));
		}
	add(u, p->env, rfl_span_of("DRAM"));
	if (!isnan(p->ai_l2))
		add(u, p->env, rfl_span_of("L2"));
	if (!isnan(p->ai_l1))
		add(u, p->env, rfl_span_of("L1"));
}

size_t rfl_points_doubts(const struct rfl_points *points, const struct rfl_peaks *peaks,
			 const char *today, struct rfl_buf *lines)
{
	struct used u = { .keys = rfl_arena_new() };
	size_t n;

	for (size_t i = 0; i < points->n; i++)
		if (points->points[i].env)
			add_point(&u, &points->points[i]);
	n = u.n ? rfl_peaks_doubts(peaks, today, u.refs, u.n, lines) : 0;
	rfl_arena_free(u.keys);
	free(u.refs);
	return n;
}
