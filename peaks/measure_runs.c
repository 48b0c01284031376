/* measure_runs.c - divides the time of a measurement among its runs, and runs them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "peaks/measure_parts.h"

enum {
	REPEATS = 21, /* at least, as long as a repeat is not too short */
	REPEATS_MAX = 1000,
	ROUNDS = 2,
};

#define WINDOW_S    0.02 /* duration of a repeat, at most: short enough to be left alone */
#define LEAST_S     0.002
#define SETTLE_S    0.3   /* warm-up before the first repeat, at most */
#define LONGEST     0.125 /* share of the time for one loop, at most */
#define PATIENCE    1.5   /* time for disturbed repeats, compared with the planned time */
#define OVERTIME    2.0   /* times the budget, after which disturbed runs are not tried again */
#define SHARE_TRIAL 0.12  /* time of short runs, compared with a full one */
#define SHARE_SWEEP 0.08

/* One round of a run. */
struct timing {
	int repeats;
	double window_s, settle_s;
};

static double within(double value, double least, double most)
{
	return fmin(fmax(value, least), most);
}

static struct timing short_timing(double time_s, int repeats, double window_max_s)
{
	const double settle_s = within(time_s / 3, LEAST_S, 0.05);

	return (struct timing){ .repeats = repeats,
				.settle_s = settle_s,
				.window_s = within((time_s - settle_s) / repeats, LEAST_S,
						   window_max_s) };
}

/* @param unit_s   time for both rounds of a full run
 * @param repeats  of both rounds; 0: as many as fit */
static struct timing timing_of(double unit_s, enum rfl_run_kind kind, int repeats, int round)
{
	struct timing t;
	double time_s;

	if (kind == RFL_RUN_SWEEP)
		return short_timing(SHARE_SWEEP * unit_s, 10, WINDOW_S / 2);
	if (kind != RFL_RUN_FULL)
		return short_timing(SHARE_TRIAL * unit_s, 3, WINDOW_S);
	t.settle_s = within(unit_s / 12, LEAST_S, SETTLE_S);
	time_s = fmax(unit_s - ROUNDS * t.settle_s, 0);
	t.window_s = within(time_s / REPEATS, LEAST_S, WINDOW_S);
	if (repeats == 0)
		repeats = (int)within(time_s / t.window_s + 0.5, 2 * 3, REPEATS_MAX);
	t.repeats = (repeats + 1 - round) / ROUNDS;
	return t;
}

static double cost_of(const struct timing *t)
{
	return t->settle_s + t->repeats * t->window_s;
}

/* The time of everything that was counted. */
static double cost_of_all(const struct rfl_session *s, double unit_s, int repeats)
{
	double sum = 0;

	for (int kind = 0; kind < RFL_RUN_KINDS; kind++) {
		const struct timing t = timing_of(unit_s, (enum rfl_run_kind)kind, repeats, 0);

		sum += s->counts[kind] * cost_of(&t);
	}
	return sum;
}

static double budget_of(const struct rfl_session *s)
{
	return s->spec->budget_s > 0 ? s->spec->budget_s : RFL_MEASURE_S;
}

void rfl_measure__divide(struct rfl_session *s)
{
	const double budget_s = budget_of(s);
	double low = 0, high = LONGEST * budget_s;

	for (int i = 0; i < 40; i++) {
		const double middle = (low + high) / 2;

		*(cost_of_all(s, middle, 0) > budget_s ? &high : &low) = middle;
	}
	s->unit_s = low;
	s->planned_s = cost_of_all(s, low, s->spec->repeats);
}

double rfl_measure__fastest(const struct rfl_session *s, size_t run)
{
	return run == SIZE_MAX ? 0 : s->runs[run].stats.max;
}

static void report(const struct rfl_session *s, const struct rfl_measured_run *run)
{
	const double elapsed_s = rfl_clock_s() - s->begin_s;
	/* a machine with other load is slower than planned */
	const double slower = s->spent_s > 1 ? fmax(elapsed_s / s->spent_s, 1) : 1;
	char what[200], when[40];

	if (!s->spec->progress)
		return;
	snprintf(what, sizeof(what), "%s: %s, %d thread%s%s%s", run->key, run->kernel->summary,
		 run->threads, run->threads == 1 ? "" : "s", *run->where ? ", " : "", run->where);
	snprintf(when, sizeof(when), "%.0f s left", fmax(s->planned_s - s->spent_s, 0) * slower);
	s->spec->progress(when, what, s->spec->ctx);
}

static void add(struct rfl_interference *sum, const struct rfl_interference *more)
{
	sum->repeats += more->repeats;
	sum->disturbed += more->disturbed;
	sum->discarded += more->discarded;
	sum->thread_s += more->thread_s;
	sum->off_s += more->off_s;
	sum->steal_s += more->steal_s;
	sum->machine_s += more->machine_s;
	sum->others_s += more->others_s;
	sum->switches += more->switches;
}

/* Run a job. If even its least disturbed repeats were disturbed, try to catch the time slices that
 * other programs leave, with the shortest repeats. @param window_s  set to those of the result */
static enum rfl_rc run_job(struct rfl_bench *bench, struct rfl_bench_job job, int tries,
			   struct rfl_bench_result *ret, double *window_s, struct rfl_err *err)
{
	struct rfl_interference *seen = &ret->interference;
	struct rfl_bench_result brief = { .rates = NULL };
	enum rfl_rc rc = rfl_bench_run(bench, &job, ret, err);

	*window_s = job.window_s;
	if (rc != RFL_OK || seen->disturbed == 0 || job.window_s <= LEAST_S)
		return rc;
	brief.rates = rfl_alloc_array((size_t)job.repeats, sizeof(*brief.rates));
	job.settle_s = job.window_s = LEAST_S;
	for (int i = 0; i < tries && seen->disturbed > 0 && rc == RFL_OK; i++) {
		struct rfl_interference *worse = &brief.interference;

		rc = rfl_bench_run(bench, &job, &brief, err);
		if (rc != RFL_OK)
			break;
		if (brief.interference.disturbed < seen->disturbed) {
			const struct rfl_interference first = *seen;

			memcpy(ret->rates, brief.rates,
			       (size_t)brief.interference.repeats * sizeof(*brief.rates));
			*seen = brief.interference;
			brief.interference = first;
			ret->clock_hz = brief.clock_hz;
			*window_s = job.window_s;
		}
		worse->discarded += worse->repeats;
		worse->repeats = worse->disturbed = 0;
		add(seen, worse);
	}
	free(brief.rates);
	return rc;
}

/* Run one round and add its repeats to the run. */
static enum rfl_rc run_round(struct rfl_session *s, struct rfl_measured_run *run, int round,
			     struct rfl_err *err)
{
	const struct timing t = timing_of(s->unit_s, run->kind, s->spec->repeats, round);
	const bool asked = s->spec->repeats > 0 && run->kind == RFL_RUN_FULL;
	const struct rfl_bench_job job = {
		.kernel = run->kernel,
		.threads = run->threads,
		.repeats = t.repeats,
		.window_s = t.window_s,
		.settle_s = t.settle_s,
		.limit_s = PATIENCE * t.repeats * t.window_s,
		.least = asked || t.repeats < 3 ? t.repeats : 3,
		.slice_bytes = run->slice_bytes,
		.first = run->first,
		.slices = run->slices,
	};
	const double late_s = rfl_clock_s() - s->begin_s - OVERTIME * budget_of(s);
	const int tries = late_s > 0 ? 0 : run->kind == RFL_RUN_FULL ? 8 : 2;
	const size_t n = (size_t)run->interference.repeats;
	struct rfl_bench_result result = { .rates = NULL };
	enum rfl_rc rc;

	report(s, run);
	if (!run->rates) /* the second round is not longer */
		run->rates = rfl_arena_array(s->m->arena, ROUNDS * (size_t)t.repeats,
					     sizeof(*run->rates));
	result.rates = run->rates + n;
	rc = run_job(s->bench, job, tries, &result, &run->window_s, err);
	s->spent_s += cost_of(&t);
	if (rc != RFL_OK)
		return rc;
	add(&run->interference, &result.interference);
	run->clock_hz = round ? (run->clock_hz + result.clock_hz) / 2 : result.clock_hz;
	run->round_max[round] = 0;
	for (int i = 0; i < result.interference.repeats; i++)
		run->round_max[round] = fmax(run->round_max[round], result.rates[i]);
	run->stats = rfl_stats_of(run->rates, (size_t)run->interference.repeats);
	return RFL_OK;
}

enum rfl_rc rfl_measure__run(struct rfl_session *s, struct rfl_measured_run what, size_t *ret,
			     struct rfl_err *err)
{
	struct rfl_measured_run *run;
	enum rfl_rc rc;

	if (s->nruns == RFL_MEASURE__RUNS_MAX)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "more than %d measurement runs",
				(int)RFL_MEASURE__RUNS_MAX);
	*ret = s->nruns;
	run = &s->runs[*ret];
	*run = what;
	run->where = what.where ? what.where : "";
	run->key = s->cell->key;
	run->round_max[0] = run->round_max[1] = NAN;
	if (s->planning) { /* as if no trial were near enough for a full run */
		run->stats.max = run->kind == RFL_RUN_TRIAL ? 0 : 1;
		s->counts[run->kind]++;
		s->nruns++;
		return RFL_OK;
	}
	rc = run_round(s, run, 0, err);
	if (rc != RFL_OK)
		return rc;
	if (run->kernel->kind != RFL_LOOP_CHAIN && run->slice_bytes == 0)
		run->slice_bytes = s->bench->slice_bytes;
	s->nruns++;
	return RFL_OK;
}

enum rfl_rc rfl_measure__again(struct rfl_session *s, struct rfl_err *err)
{
	if (s->planning) {
		s->counts[RFL_RUN_FULL]++;
		return RFL_OK;
	}
	return run_round(s, &s->runs[s->cell->best], 1, err);
}
