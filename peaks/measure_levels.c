/*
 * measure_levels.c - memory levels: bandwidth against the working set, the plateau of each cache,
 * and main memory from one core, from one socket, and from another NUMA node.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "peaks/doubts.h"
#include "peaks/measure_parts.h"

enum { SIZE_LEAST = 8192 }; /* smallest working set; less is dominated by the end of the loop */

#define QUICK_S 30.0 /* with less time, half as many sizes */
#define PLATEAU 3    /* neighbouring sizes, a factor of 2 in all */
#define FLAT    1.10 /* ratio of the fastest to the slowest of a plateau */
#define FALLING 1.05 /* half of the memory must not be faster than this */
#define SAME    1.05 /* ratio of the fastest socket to the slowest */

/* Number of measured cores that share one cache. */
static int cores_of(const struct rfl_machine *m, const struct rfl_cache *c, int threads)
{
	const int ways = m->cores > 0 ? m->hw_threads / m->cores : 1;
	const int cores = c->sharers / (ways > 0 ? ways : 1);

	return cores < 1 ? 1 : cores < threads ? cores : threads;
}

/* Number of workers from `first` on that are on the same socket, or else the same NUMA node. */
static int alike(const struct rfl_bench *b, int first, bool socket)
{
	const struct rfl_cpu *one = b->cpus[first];
	int n = 0;

	while (first + n < b->threads && b->cpus[first + n]->package == one->package &&
	       (socket || b->cpus[first + n]->numa_node == one->numa_node))
		n++;
	return n;
}

/* The memory near the first worker. */
static int64_t near_bytes(const struct rfl_bench *b)
{
	return alike(b, 0, false) * b->slice_bytes;
}

/* Try a loop on working sets that fit in a level but not in the next smaller one. Sizes are per
 * thread and grow by factors of 1.5 and 1.33 in turn, or of 2, on one grid for all levels. */
static enum rfl_rc try_sizes(struct rfl_session *s, const char *isa, int threads,
			     struct rfl_err *err)
{
	const struct rfl_machine *m = s->spec->machine;
	const char *name = s->cell->as.level;
	const bool dram = strcmp(name, "DRAM") == 0;
	const bool halves = !dram && !(s->spec->budget_s > 0 && s->spec->budget_s < QUICK_S);
	int64_t to = threads == 1 ? near_bytes(s->bench) : s->bench->slice_bytes;
	int level = dram ? 4 : name[1] - '0';
	const struct rfl_cache *c = rfl_machine_cache(m, level), *below = NULL;
	const struct rfl_peak_kernel *k;
	enum rfl_rc rc;
	size_t run;

	while (!below && --level > 0)
		below = rfl_machine_cache(m, level);
	if (c && c->size_bytes / cores_of(m, c, threads) < to)
		to = c->size_bytes / cores_of(m, c, threads);
	const int64_t from = below             ? below->size_bytes / cores_of(m, below, threads)
			     : to < SIZE_LEAST ? to / 8
					       : SIZE_LEAST / 2;

	for (int64_t power = 4096; power <= to; power *= 2) {
		for (int half = 0; half <= (halves && power > 4096); half++) {
			const struct rfl_measured_run what = {
				.kind = RFL_RUN_SWEEP,
				.threads = threads,
				.slice_bytes = power + half * power / 2,
			};

			if (what.slice_bytes <= from || what.slice_bytes > to)
				continue;
			for (size_t j = 0; (k = rfl_peak_kernel_at(j)); j++) {
				struct rfl_measured_run each = what;

				each.kernel = k;
				if (k->kind != RFL_LOOP_READ || strcmp(k->isa, isa) != 0)
					continue;
				rc = rfl_measure__run(s, each, &run, err);
				if (rc != RFL_OK)
					return rc;
			}
		}
	}
	return RFL_OK;
}

static bool is_near(double rate, double low, double high)
{
	return rate <= FLAT * low && FLAT * rate >= high;
}

size_t rfl_measure__plateau(const struct rfl_session *s, size_t begin, int64_t least, int64_t most)
{
	struct rfl_peak *peak = &s->cell->as.peak;
	const struct rfl_measured_run *runs = s->runs;
	size_t end = s->nruns, n, from, to, at = SIZE_MAX;
	double low = 0, high = 0;

	while (begin < end && runs[begin].slice_bytes < least)
		begin++;
	while (end > begin && runs[end - 1].slice_bytes > most)
		end--;
	n = end - begin < PLATEAU ? end - begin : PLATEAU;
	for (size_t i = begin; n > 0 && i + n <= end; i++) {
		size_t first = i, second = i; /* the fastest, and the one after it */
		double slowest = INFINITY;

		for (size_t k = i; k < i + n; k++) {
			slowest = fmin(slowest, runs[k].stats.max);
			if (runs[k].stats.max > runs[first].stats.max)
				first = k;
		}
		for (size_t k = i; k < i + n; k++)
			if (k != first &&
			    (second == first || runs[k].stats.max > runs[second].stats.max))
				second = k;
		if (slowest <= low)
			continue;
		low = slowest;
		high = runs[first].stats.max;
		at = second;
	}
	if (at == SIZE_MAX)
		return at;
	if (high > FLAT * low) {
		rfl_measure__doubt(s,
				   RFL_DOUBT_NO_PLATEAU
				   "neighbouring working sets differ by %.0f %%; "
				   "measure again on an idle machine",
				   100 * (high / low - 1));
		return at;
	}
	for (from = at; from > begin && is_near(runs[from - 1].stats.max, low, high);)
		from--;
	for (to = at; to + 1 < end && is_near(runs[to + 1].stats.max, low, high);)
		to++;
	peak->nplateau = 2;
	peak->plateau_bytes = rfl_arena_array(s->m->arena, 2, sizeof(*peak->plateau_bytes));
	peak->plateau_bytes[0] = runs[from].slice_bytes * runs[from].threads;
	peak->plateau_bytes[1] = runs[to].slice_bytes * runs[to].threads;
	return at;
}

enum rfl_rc rfl_measure__sweep(struct rfl_session *s, const char *isa, struct rfl_err *err)
{
	struct rfl_measured_cell *cell = s->cell;
	const struct rfl_machine *m = s->spec->machine;
	const int threads = s->bench->threads, level = cell->as.level[1] - '0';
	const struct rfl_cache *c = rfl_machine_cache(m, level);
	const struct rfl_cache *below = rfl_machine_cache(m, level - 1);
	const bool cache = strcmp(cell->as.level, "DRAM") != 0;
	const size_t begin = s->nruns;
	int64_t share = 0, least = 0;
	size_t chosen = SIZE_MAX;
	enum rfl_rc rc;

	if (cache && !c) {
		rfl_measure__unknown(s, "the system reports no such cache");
		return RFL_OK;
	}
	if (cache) {
		const bool own = cores_of(m, c, m->cores > 0 ? m->cores : 1) == 1;

		cell->as.scope = own ? "core" : "node";
		cell->as.capacity_bytes = own ? c->size_bytes : c->size_bytes * c->count;
		cell->scale = own ? 1.0 / threads : 1.0;
		share = c->size_bytes / cores_of(m, c, threads);
		least = share / 4;
		if (below && 2 * below->size_bytes > least)
			least = 2 * below->size_bytes;
	}
	rc = try_sizes(s, isa, threads, err);
	if (rc == RFL_OK && cache)
		chosen = rfl_measure__plateau(s, begin, least, share / 4 * 3);
	if (rc == RFL_OK && threads > 1)
		rc = try_sizes(s, isa, 1, err);
	if (rc != RFL_OK || !cache)
		return rc;
	if (chosen == SIZE_MAX) {
		rfl_measure__unknown(
			s, rfl_arena_printf(s->m->arena,
					    "the share of one core (%lld bytes) is too small "
					    "compared with the next smaller cache",
					    (long long)share));
		return RFL_OK;
	}
	const struct rfl_measured_run full = { .kernel = s->runs[chosen].kernel,
					       .threads = threads,
					       .slice_bytes = s->runs[chosen].slice_bytes };

	return rfl_measure__run(s, full, &cell->best, err);
}

/* Run the loops of a family briefly, and the fastest of them in full.
 * @param what  the run, without its kernel
 * @param best  index of the full run */
static enum rfl_rc run_family(struct rfl_session *s, const char *isa, struct rfl_measured_run what,
			      size_t *best, struct rfl_err *err)
{
	const struct rfl_peak_kernel *k;
	enum rfl_rc rc = RFL_OK;
	double most = -1;
	size_t run;

	what.kind = RFL_RUN_TRIAL;
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)) && rc == RFL_OK; i++) {
		struct rfl_measured_run each = what;

		each.kernel = k;
		if (strcmp(k->isa, isa) != 0 || !rfl_measure__serves(k, s->cell))
			continue;
		rc = rfl_measure__run(s, each, &run, err);
		if (rc == RFL_OK && rfl_measure__fastest(s, run) > most) {
			most = rfl_measure__fastest(s, run);
			what.kernel = k;
		}
	}
	what.kind = RFL_RUN_FULL;
	return rc == RFL_OK ? rfl_measure__run(s, what, best, err) : rc;
}

enum rfl_rc rfl_measure__check_dram(struct rfl_session *s, struct rfl_err *err)
{
	const double whole = rfl_measure__fastest(s, s->cell->best);
	const struct rfl_measured_run *best = &s->runs[s->cell->best];
	const struct rfl_measured_run half = { .kernel = best->kernel,
					       .kind = RFL_RUN_HALF,
					       .threads = best->threads,
					       .slice_bytes = s->bench->slice_bytes / 2 };
	size_t run;
	enum rfl_rc rc = rfl_measure__run(s, half, &run, err);

	if (rc == RFL_OK && rfl_measure__fastest(s, run) > FALLING * whole)
		rfl_measure__doubt(s,
				   RFL_DOUBT_HALF_THE_SIZE "%.0f %% faster: caches that the system "
							   "does not report, or other load",
				   100 * (rfl_measure__fastest(s, run) / whole - 1));
	return rc;
}

enum rfl_rc rfl_measure__part(struct rfl_session *s, const char *isa, struct rfl_err *err)
{
	struct rfl_measured_cell *cell = s->cell;
	const struct rfl_bench *b = s->bench;
	const bool remote = strcmp(cell->as.level, "remote") == 0;
	const bool socket = strcmp(cell->as.scope, "socket") == 0;
	const int own = alike(b, 0, false); /* on the first NUMA node */
	double slowest = INFINITY;
	enum rfl_rc rc = RFL_OK;
	size_t run;

	if (strcmp(cell->as.scope, "core") == 0) {
		const struct rfl_measured_run one = { .threads = 1, .slice_bytes = near_bytes(b) };

		return run_family(s, isa, one, &cell->best, err);
	}
	if ((remote ? own : alike(b, 0, true)) == b->threads) {
		rfl_measure__unknown(s, remote ? "all threads are on one NUMA node"
					       : "all threads are on one socket");
		return RFL_OK;
	}
	/* remote: the threads of the first node, with the memory of each other node in turn */
	for (int at = remote ? own : 0, n; at < b->threads && rc == RFL_OK; at += n) {
		struct rfl_measured_run what = { .slices = at };

		n = alike(b, at, !remote);
		what.first = remote ? 0 : at;
		what.threads = remote && own < n ? own : n;
		if (remote)
			what.where =
				rfl_arena_printf(s->m->arena, "node %d to %d",
						 b->cpus[0]->numa_node, b->cpus[at]->numa_node);
		else
			what.where =
				rfl_arena_printf(s->m->arena, "socket %d", b->cpus[at]->package);
		rc = run_family(s, isa, what, &run, err);
		if (rc != RFL_OK)
			break;
		slowest = fmin(slowest, rfl_measure__fastest(s, run));
		if (rfl_measure__fastest(s, run) > rfl_measure__fastest(s, cell->best))
			cell->best = run;
	}
	if (rc == RFL_OK && socket && rfl_measure__fastest(s, cell->best) > SAME * slowest)
		rfl_measure__doubt(s,
				   RFL_DOUBT_SLOWEST_PART "%s is %.0f %% slower than the fastest",
				   remote ? "nodes" : "sockets",
				   100 * (1 - slowest / rfl_measure__fastest(s, cell->best)));
	if (rc == RFL_OK && b->unbound)
		rfl_measure__doubt(s, RFL_DOUBT_UNBOUND "to a NUMA node, "
							"so it may have moved");
	return rc;
}
