/* measure_result.c - what the runs say about the ceilings: doubts, values, notes. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "machine/load.h"
#include "peaks/doubts.h"
#include "peaks/measure_parts.h"

#define STOLEN 0.02 /* share of the time that the hypervisor may withhold */
#define SHARED 1.02 /* a rate with additions that is not above the rate without them */

void rfl_measure__unknown(const struct rfl_session *s, const char *take_reason)
{
	rfl_measure_none(&s->cell->as.peak, RFL_PEAK_UNKNOWN, take_reason);
}

void rfl_measure__doubt(const struct rfl_session *s, const char *fmt, ...)
{
	struct rfl_peak *peak = &s->cell->as.peak;
	const char **doubt = rfl_arena_append(s->m->arena, &peak->doubts, &peak->ndoubts);
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*doubt = rfl_arena_strdup(s->m->arena, text);
}

void rfl_measure__judge(const struct rfl_session *s)
{
	const struct rfl_measured_run *run = &s->runs[s->cell->best];
	const struct rfl_interference *seen = &run->interference;
	const double others = seen->others_s / seen->machine_s;
	const double stolen = seen->steal_s / seen->thread_s;
	const double *round = run->round_max;
	const double drift = fmax(round[0], round[1]) / fmin(round[0], round[1]) - 1;

	if (seen->disturbed > 0)
		rfl_measure__doubt(s,
				   RFL_DOUBT_DISTURBED
				   "in %d of %d repeats, a thread was off its CPU "
				   "for more than 1 %% of the time; measure again on an idle "
				   "machine",
				   seen->disturbed, seen->repeats);
	if (others > RFL_LOAD_OTHERS) /* false for NaN, as below */
		rfl_measure__doubt(s,
				   RFL_DOUBT_OTHERS "%.0f %% of the machine's CPU time; "
						    "measure again on an idle machine",
				   100 * others);
	if (stolen > STOLEN)
		rfl_measure__doubt(s,
				   RFL_DOUBT_HYPERVISOR "%.0f %% of the CPU time; measure "
							"again when the host is idle",
				   100 * stolen);
	if (drift > RFL_MEASURE_DRIFT)
		rfl_measure__doubt(s,
				   RFL_DOUBT_NOT_REPEATABLE
				   "the fastest repeats of two rounds differ by "
				   "%.1f %%; measure again on an idle machine",
				   100 * drift);
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : (double)NAN;
}

/* Set value and conditions of a ceiling from its best run, or another run for it. */
static void fill(const struct rfl_session *s, struct rfl_peak *peak,
		 const struct rfl_measured_run *run, double scale)
{
	static const int arrays[] = {
		[RFL_LOOP_READ] = 1, [RFL_LOOP_COPY] = 2, [RFL_LOOP_TRIAD] = 3
	};
	const struct rfl_interference *seen = &run->interference;
	const struct rfl_peak_kernel *k = run->kernel;
	struct rfl_peak_interference *shares;
	char places[sizeof(s->m->places)];

	rfl_measure_value(s->m, peak, run->stats.max * scale, &run->stats, scale, k->summary);
	if (k->kind == RFL_LOOP_CHAIN) {
		peak->accumulators = k->accumulators;
		peak->accumulate = k->accumulate;
	} else {
		peak->bytes_counted = "explicit";
		peak->nt_stores = k->nt_stores ? RFL_YES : RFL_NO;
		peak->working_set_bytes = run->slice_bytes * run->threads * arrays[k->kind];
		peak->huge_pages = rfl_bench_huge_pages(s->bench);
	}
	peak->threads = run->threads;
	peak->pinning =
		rfl_arena_strdup(s->m->arena, rfl_bench_places(s->bench, run->first, run->threads,
							       places, sizeof(places)));
	peak->sustained_s = run->window_s;
	peak->clock_hz = 1e6 * round(run->clock_hz / 1e6);
	peak->interference = shares = rfl_arena_array(s->m->arena, 1, sizeof(*shares));
	*shares = (struct rfl_peak_interference){
		.disturbed = seen->disturbed,
		.discarded = seen->discarded,
		.switches = seen->switches,
		.off_cpu = share(seen->off_s, seen->thread_s),
		.steal = share(seen->steal_s, seen->thread_s),
		.other_load = share(seen->others_s, seen->machine_s),
	};
}

static void add_cell(const struct rfl_session *s, struct rfl_measured_cell *cell)
{
	const bool dram = strcmp(cell->key, "DRAM") == 0;
	struct rfl_measured_peak *to = rfl_measure_add(s->m, cell->key);
	const struct rfl_measured_run *run;

	if (dram)
		s->m->array_bytes = s->bench->array_bytes;
	if (cell->best != SIZE_MAX)
		fill(s, &cell->as.peak, &s->runs[cell->best], cell->scale);
	for (run = s->runs; run < s->runs + s->nruns; run++)
		if (run->kind == RFL_RUN_SWEEP && run->key == cell->key)
			rfl_measure_size(s->m, &cell->as, run->threads == 1 ? "core" : "node",
					 run->slice_bytes * run->threads, run->stats.max);
	to->level = cell->as;
	/* omit caches and parts that this machine does not have */
	to->absent = cell->as.level && cell->as.peak.status == RFL_PEAK_UNKNOWN &&
		     !cell->as.capacity_bytes && !dram;
	for (run = s->runs; dram && run < s->runs + s->nruns; run++) {
		if (run->kind != RFL_RUN_FULL || run->key != cell->key ||
		    (size_t)(run - s->runs) == cell->best)
			continue;
		to = rfl_measure_add(s->m, cell->key);
		to->other = true;
		to->level.level = cell->as.level;
		to->level.scope = cell->as.scope;
		fill(s, &to->level.peak, run, cell->scale);
	}
}

/* Results without a field in the schema, each after its key: the rate of every loop and of every
 * part of the machine, and the size of the arrays. */
static void add_notes(const struct rfl_session *s)
{
	static const struct {
		const char *key, *what;
	} kinds[] = { { "DRAM", "loop" }, { "DRAM.1socket", "part" }, { "remote", "part" } };
	struct rfl_arena *a = s->m->arena;
	char llc[RFL_NUM_MAX];

	for (size_t k = 0; k < RFL_ARRAY_LEN(kinds); k++) {
		const char *text = NULL;

		for (size_t i = 0; i < s->nruns; i++) {
			const struct rfl_measured_run *run = &s->runs[i];
			const bool trial = run->kind == RFL_RUN_TRIAL;

			if (strcmp(run->key, kinds[k].key) == 0 &&
			    (run->kind == RFL_RUN_FULL || (trial && !*run->where)))
				text = rfl_arena_printf(
					a, "%s%s%s%s%s %.4g%s", text ? text : "", text ? "; " : "",
					run->where, *run->where ? ", " : "", run->kernel->summary,
					run->stats.max / 1e9, trial ? " (short trial)" : "");
		}
		if (text)
			rfl_measure_note(
				s->m, rfl_arena_printf(
					      a, "measured: %s by %s, fastest repeat in GB/s: %s",
					      kinds[k].key, kinds[k].what, text));
		if (text && k == 0)
			rfl_measure_note(
				s->m,
				rfl_arena_printf(
					a,
					"measured: DRAM arrays of %" PRId64
					" bytes each, %s 4 times the last-level caches (%s%s)%s",
					s->m->array_bytes, s->m->capped ? "less than" : "at least",
					s->llc_assumed ? "unknown, assumed " : "",
					rfl_num_bytes((double)s->bench->llc_bytes, llc,
						      sizeof(llc)),
					s->m->capped ? "; memory did not allow more" : ""));
	}
	for (size_t i = 0; i < s->ncells; i++) { /* some CPUs run both on the same units */
		const struct rfl_measured_cell *both = &s->cells[i], *fma = s->cells;
		const size_t len = strlen(both->key) - strlen(".fmaadd");

		if (both->best == SIZE_MAX || !strstr(both->key, ".fmaadd"))
			continue;
		while (fma < s->cells + s->ncells &&
		       (strlen(fma->key) != len || strncmp(fma->key, both->key, len) != 0))
			fma++;
		if (fma < s->cells + s->ncells && fma->best != SIZE_MAX &&
		    s->runs[both->best].stats.max <= SHARED * s->runs[fma->best].stats.max)
			rfl_measure_note(
				s->m,
				rfl_arena_printf(a,
						 "measured: %s: not above %s, because additions "
						 "share the units of multiply-adds",
						 both->key, fma->key));
	}
}

void rfl_measure__result(struct rfl_session *s)
{
	for (size_t i = 0; i < s->ncells; i++)
		add_cell(s, &s->cells[i]);
	add_notes(s);
}
