/*
 * measure.c - selects and runs the loops for each ceiling, and writes the result as an environment
 * of peaks.json.
 *
 * For each ceiling, all loops that can run here compete: the widest family runs in full; each other
 * loop gets a short trial, and a full run if it comes close. The ceiling is the fastest repeat of
 * the fastest loop; median, minimum and spread are recorded with it.
 */
#include "peaks/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "peaks/bench.h"
#include "rfl_config.h"

enum { REPEATS = 21, TRIAL_REPEATS = 3, SWEEP_REPEATS = 10, RUNS_MAX = 256 };

#define GIGA           1e9
#define WINDOW_S       0.1 /* duration of a repeat */
#define WINDOW_QUICK_S 0.02
#define SETTLE_S       0.3 /* warm-up before the first repeat */
#define SETTLE_QUICK_S 0.05
#define WINDOW_SWEEP_S 0.005 /* many short repeats: one without an interruption is enough */
#define SETTLE_SWEEP_S 0.03
#define NEAR           0.95 /* a loop this close to the best in its trial gets a full run */
#define SIZE_LEAST     8192 /* smallest working set; less is dominated by the end of the loop */

const char *const rfl_measure_keys[] = {
	"fp32.vector", "fp64.vector", "fp32.vector.1core", "fp64.vector.1core", "L1", "L2", "L3",
	"DRAM",        NULL,
};

struct session {
	const struct rfl_measure_spec *spec;
	struct rfl_measurement *m;
	struct rfl_bench *bench;
	int repeats;
	int done; /* number of completed ceilings */
};

/* Run a loop and add the result to the list of runs. @param ret  index of the run */
static enum rfl_rc run_one(struct session *s, const struct rfl_peak_kernel *k, int threads,
			   int64_t slice_bytes, bool trial, size_t *ret, struct rfl_err *err)
{
	const bool quick = s->spec->quick, sweep = trial && slice_bytes > 0;
	const struct rfl_bench_job job = {
		.kernel = k,
		.threads = threads,
		.repeats = sweep   ? SWEEP_REPEATS
			   : trial ? TRIAL_REPEATS
				   : s->repeats,
		.window_s = sweep   ? WINDOW_SWEEP_S
			    : quick ? WINDOW_QUICK_S
				    : WINDOW_S,
		.settle_s = sweep            ? SETTLE_SWEEP_S
			    : quick || trial ? SETTLE_QUICK_S
					     : SETTLE_S,
		.slice_bytes = slice_bytes,
	};
	struct rfl_measured_run *run = &s->m->runs[s->m->nruns];
	double *rates;
	char what[160];
	enum rfl_rc rc;

	if (s->m->nruns == RUNS_MAX)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "more than %d measurement runs",
				(int)RUNS_MAX);
	snprintf(what, sizeof(what), "%s: %s, %d thread%s", s->m->cells[s->done].key, k->summary,
		 threads, threads == 1 ? "" : "s");
	if (s->spec->progress)
		s->spec->progress(what, s->done, (int)s->m->ncells, s->spec->ctx);
	rates = rfl_alloc_array((size_t)job.repeats, sizeof(*rates));
	if (!rates)
		return rfl_fail(err, RFL_ENOMEM, 0, "measurement repeats: out of memory");
	rc = rfl_bench_run(s->bench, &job, rates, err);
	if (rc == RFL_OK)
		rc = rfl_stats_describe(rates, (size_t)job.repeats, &run->stats, err);
	free(rates);
	if (rc != RFL_OK)
		return rc;
	run->kernel = k;
	run->key = s->m->cells[s->done].key;
	run->threads = threads;
	run->window_s = job.window_s;
	run->trial = trial;
	run->sweep = sweep;
	if (k->kind != RFL_LOOP_CHAIN)
		run->slice_bytes =
			slice_bytes ? slice_bytes : s->bench->array_bytes / s->m->threads;
	*ret = s->m->nruns++;
	return RFL_OK;
}

static double fastest(const struct session *s, size_t run)
{
	return run == SIZE_MAX ? 0 : s->m->runs[run].stats.max;
}

/* Can the loop run here, and does it measure this ceiling? */
static bool serves(const struct rfl_peak_kernel *k, const struct rfl_measured_cell *cell)
{
	const bool chain = k->kind == RFL_LOOP_CHAIN;

	if (rfl_peak_kernel_probe(k, NULL) != RFL_OK)
		return false;
	if (!cell->level)
		return chain && strncmp(k->dtype, cell->key, strlen(k->dtype)) == 0;
	return strcmp(cell->level, "DRAM") == 0 ? !chain : k->kind == RFL_LOOP_READ;
}

/* Run all loops that compete for a ceiling and set cell->best. Loops in C are used only on
 * processors without loops in assembly. */
static enum rfl_rc compete(struct session *s, struct rfl_measured_cell *cell, const char *first,
			   int threads, struct rfl_err *err)
{
	const struct rfl_peak_kernel *k;
	enum rfl_rc rc;
	size_t run;

	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		const bool trial = strcmp(k->isa, first) != 0;

		if (!serves(k, cell) || (trial && strcmp(k->isa, "plain") == 0))
			continue;
		rc = run_one(s, k, threads, 0, trial, &run, err);
		if (rc == RFL_OK && trial && fastest(s, run) >= NEAR * fastest(s, cell->best))
			rc = run_one(s, k, threads, 0, false, &run, err);
		if (rc != RFL_OK)
			return rc;
		if (!s->m->runs[run].trial && fastest(s, run) > fastest(s, cell->best))
			cell->best = run;
	}
	return RFL_OK;
}

/* Number of measured cores that share one cache. */
static int cores_of(const struct rfl_machine *m, const struct rfl_cache *c, int threads)
{
	const int ways = m->cores > 0 ? m->hw_threads / m->cores : 1;
	const int cores = c->sharers / (ways > 0 ? ways : 1);

	return cores < 1 ? 1 : cores < threads ? cores : threads;
}

/* Try a loop on working sets that fit in a level but not in the next smaller one. Sizes are per
 * thread and grow by factors of 1.5 and 1.33 in turn, or of 2, on one grid for all levels.
 * @param least,most  sizes of candidates for a full run
 * @param best        index of the fastest candidate; SIZE_MAX if there is none */
static enum rfl_rc try_sizes(struct session *s, const struct rfl_measured_cell *cell,
			     const char *isa, int threads, int64_t least, int64_t most,
			     size_t *best, struct rfl_err *err)
{
	const struct rfl_machine *m = s->m->machine;
	const bool dram = strcmp(cell->level, "DRAM") == 0, halves = !dram && !s->spec->quick;
	/* memory of another NUMA node would be slower */
	int64_t to = threads == 1 && m->numa_nodes <= 1 ? s->bench->array_bytes
							: s->bench->array_bytes / s->m->threads;
	int level = dram ? 4 : cell->level[1] - '0';
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
			const int64_t size = power + half * power / 2;

			if (size <= from || size > to)
				continue;
			for (size_t j = 0; (k = rfl_peak_kernel_at(j)); j++) {
				if (k->kind != RFL_LOOP_READ || strcmp(k->isa, isa) != 0)
					continue;
				rc = run_one(s, k, threads, size, true, &run, err);
				if (rc != RFL_OK)
					return rc;
				if (size >= least && size <= most &&
				    fastest(s, run) > fastest(s, *best))
					*best = run;
			}
		}
	}
	return RFL_OK;
}

/* Measure the read bandwidth of a level over working sets that fit in it, on all cores, then on
 * one. The best size for a cache is run in full. */
static enum rfl_rc sweep(struct session *s, struct rfl_measured_cell *cell, const char *isa,
			 struct rfl_err *err)
{
	const struct rfl_machine *m = s->m->machine;
	const int threads = s->m->threads, level = cell->level[1] - '0';
	const struct rfl_cache *c = rfl_machine_cache(m, level);
	const struct rfl_cache *below = rfl_machine_cache(m, level - 1);
	const bool cache = strcmp(cell->level, "DRAM") != 0;
	int64_t share = 0, least = 0;
	size_t best = SIZE_MAX, run;
	enum rfl_rc rc;

	if (cache && !c) {
		snprintf(cell->reason, sizeof(cell->reason), "the system reports no such cache");
		return RFL_OK;
	}
	if (cache) {
		const bool own = cores_of(m, c, m->cores > 0 ? m->cores : 1) == 1;

		cell->scope = own ? "core" : "node";
		cell->capacity_bytes = own ? c->size_bytes : c->size_bytes * c->count;
		cell->scale = own ? 1.0 / threads : 1.0;
		share = c->size_bytes / cores_of(m, c, threads);
		least = share / 4;
		if (below && 2 * below->size_bytes > least)
			least = 2 * below->size_bytes;
	}
	rc = try_sizes(s, cell, isa, threads, least, share / 4 * 3, &best, err);
	if (rc == RFL_OK && threads > 1) { /* after all threads have touched their memory */
		size_t none = SIZE_MAX;

		rc = try_sizes(s, cell, isa, 1, 1, 0, &none, err);
	}
	if (rc != RFL_OK || !cache)
		return rc;
	if (best == SIZE_MAX) {
		snprintf(cell->reason, sizeof(cell->reason),
			 "the share of one core (%lld bytes) is too small compared with the next "
			 "smaller cache",
			 (long long)share);
		return RFL_OK;
	}
	rc = run_one(s, s->m->runs[best].kernel, threads, s->m->runs[best].slice_bytes, false, &run,
		     err);
	if (rc == RFL_OK)
		cell->best = run;
	return rc;
}

/* --- all ceilings --- */

/* Measure a ceiling, or set the reason why it has none. */
static enum rfl_rc measure_cell(struct session *s, struct rfl_measured_cell *cell,
				struct rfl_err *err)
{
	const bool dram = cell->level && strcmp(cell->level, "DRAM") == 0;
	const struct rfl_peak_kernel *k;
	const char *first = NULL; /* first family that can run here */
	char has[RFL_NUM_MAX], needs[RFL_NUM_MAX];
	enum rfl_rc rc;

	for (size_t i = 0; !first && (k = rfl_peak_kernel_at(i)); i++)
		if (serves(k, cell))
			first = k->isa;
	if (!first) {
		snprintf(cell->reason, sizeof(cell->reason),
			 "no loop can run on this processor ('roofline list' gives the reasons); "
			 "set the ceiling with 'roofline peaks set'");
		return RFL_OK;
	}
	if (cell->level && !dram)
		return sweep(s, cell, first, err);
	if (dram && s->bench->array_bytes < s->m->llc_bytes) { /* would measure only the caches */
		snprintf(cell->reason, sizeof(cell->reason),
			 "the available memory allows arrays of %s, less than the last-level "
			 "caches (%s%s); set the ceiling with 'roofline peaks set'",
			 rfl_num_bytes((double)s->bench->array_bytes, has, sizeof(has)),
			 s->m->llc_assumed ? "unknown, assumed " : "",
			 rfl_num_bytes((double)s->m->llc_bytes, needs, sizeof(needs)));
		rfl_log(RFL_LOG_WARN, "DRAM is not measured: %s", cell->reason);
		return RFL_OK;
	}
	rc = compete(s, cell, first, strstr(cell->key, ".1core") ? 1 : s->m->threads, err);
	return rc == RFL_OK && dram ? sweep(s, cell, first, err) : rc;
}

static bool is_among(const char *const *keys, const char *key)
{
	for (; *keys; keys++)
		if (strcmp(*keys, key) == 0)
			return true;
	return false;
}

static bool wanted(const struct rfl_measure_spec *spec, const char *key)
{
	return !spec->only || is_among(spec->only, key);
}

/* Allocate the runs and the requested cells, and open the bench. */
static enum rfl_rc open_session(struct session *s, struct rfl_err *err)
{
	const struct rfl_measure_spec *spec = s->spec;
	struct rfl_measurement *m = calloc(1, sizeof(*m));
	char size[RFL_NUM_MAX];
	enum rfl_rc rc;

	s->m = m;
	if (m) {
		m->runs = rfl_alloc_array(RUNS_MAX, sizeof(*m->runs));
		m->cells = rfl_alloc_array(RFL_ARRAY_LEN(rfl_measure_keys), sizeof(*m->cells));
	}
	if (!m || !m->runs || !m->cells)
		return rfl_fail(err, RFL_ENOMEM, 0, "measurement: out of memory");
	for (size_t i = 0; rfl_measure_keys[i]; i++) {
		const char *key = rfl_measure_keys[i];
		const bool level = !strchr(key, '.');

		if (wanted(spec, key))
			m->cells[m->ncells++] = (struct rfl_measured_cell){
				.key = key,
				.level = level ? key : NULL,
				.scope = level ? "node" : NULL,
				.scale = 1,
				.best = SIZE_MAX,
			};
	}
	m->machine = spec->machine;
	m->threads = spec->threads > 0 ? spec->threads : rfl_machine_threads(spec->machine);
	s->repeats = spec->repeats > 0 ? spec->repeats : REPEATS;
	rc = rfl_bench_open(spec->machine, m->threads, 0, &s->bench, err);
	if (rc != RFL_OK)
		return rc;
	m->array_bytes = s->bench->array_bytes;
	m->llc_bytes = s->bench->llc_bytes;
	m->capped = s->bench->capped;
	m->llc_assumed = rfl_machine_llc_bytes(spec->machine) == 0;
	if (m->llc_assumed && wanted(spec, "DRAM"))
		rfl_log(RFL_LOG_WARN,
			"neither the system nor the processor reports the caches; assuming %s for "
			"the last level",
			rfl_num_bytes((double)m->llc_bytes, size, sizeof(size)));
	return RFL_OK;
}

enum rfl_rc rfl_measure(const struct rfl_measure_spec *spec, struct rfl_measurement **ret,
			struct rfl_err *err)
{
	struct session s = { .spec = spec };
	const double begin = rfl_clock_s();
	size_t measured = 0;
	enum rfl_rc rc;

	if (spec->repeats != 0 && spec->repeats < 3)
		return rfl_fail(err, RFL_EINVAL, 0, "too few repeats for a spread; use at least 3");
	for (size_t i = 0; spec->only && spec->only[i]; i++)
		if (!is_among(rfl_measure_keys, spec->only[i]))
			return rfl_fail(err, RFL_ENOTFOUND, 0,
					"no ceiling '%s'; use a name such as fp32.vector or DRAM",
					spec->only[i]);
	rc = open_session(&s, err);
	if (rc != RFL_OK)
		goto done;
	for (; s.done < (int)s.m->ncells; s.done++) {
		struct rfl_measured_cell *cell = &s.m->cells[s.done];
		struct rfl_err e = RFL_ERR_INIT;

		rc = measure_cell(&s, cell, &e);
		if (rc == RFL_ENOMEM) {
			rc = rfl_err_pass(err, &e);
			goto done;
		}
		if (rc != RFL_OK) {
			cell->best = SIZE_MAX;
			cell->failed = true;
			snprintf(cell->reason, sizeof(cell->reason), "%.250s", e.msg);
			rfl_log(RFL_LOG_WARN, "%s: %s", cell->key, e.msg);
		}
		measured += cell->best != SIZE_MAX;
	}
	if (measured == 0) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "nothing could be measured: %s",
			      s.m->ncells > 0 ? s.m->cells[0].reason : "no ceiling was selected");
		goto done;
	}
	s.m->huge_pages = rfl_bench_huge_pages(s.bench);
	rfl_bench_places(s.bench, s.m->threads, s.m->places, sizeof(s.m->places));
	rfl_clock_iso(s.m->measured_at);
	s.m->seconds = rfl_clock_s() - begin;

	*ret = s.m;
	s.m = NULL;
	rc = RFL_OK;
done:
	rfl_bench_close(s.bench);
	rfl_measurement_free(s.m);
	return rc;
}

void rfl_measurement_free(struct rfl_measurement *m)
{
	if (!m)
		return;
	free(m->runs);
	free(m->cells);
	free(m);
}

/* --- as JSON --- */

json_t *rfl_measure_rate(double value)
{
	char text[40];
	double rounded;

	snprintf(text, sizeof(text), "%.6g", value / GIGA);
	if (rfl_num_parse_double(text, "rate", &rounded, NULL) != RFL_OK)
		return NULL;
	return json_real(rounded);
}

/* A JSON boolean, or NULL if unknown. */
static json_t *known_json(enum rfl_known known)
{
	return known == RFL_NOT_KNOWN ? NULL : json_boolean(known == RFL_YES);
}

static json_t *ceiling_json(const struct rfl_measurement *m, const struct rfl_measured_cell *cell)
{
	static const int arrays[] = {
		[RFL_LOOP_READ] = 1, [RFL_LOOP_COPY] = 2, [RFL_LOOP_TRIAD] = 3
	};
	const struct rfl_measured_run *run;
	const struct rfl_peak_kernel *k;
	const struct rfl_stats *s;
	json_t *method, *stats, *conditions;
	char first[32];

	if (cell->best == SIZE_MAX)
		return json_pack("{s:s, s:n, s:s}", "status", cell->failed ? "failed" : "unknown",
				 "value", "reason", cell->reason);
	run = &m->runs[cell->best];
	k = run->kernel;
	s = &run->stats;
	if (k->kind == RFL_LOOP_CHAIN)
		method = json_pack("{s:s, s:s, s:s, s:i, s:s}", "kernel", k->summary, "tool",
				   "roofline " RFL_VERSION, "measured_at", m->measured_at,
				   "accumulators", k->accumulators, "accumulate", k->dtype);
	else
		method = json_pack("{s:s, s:s, s:s, s:s, s:b, s:I}", "kernel", k->summary, "tool",
				   "roofline " RFL_VERSION, "measured_at", m->measured_at,
				   "bytes_counted", "explicit", "nt_stores", (int)k->nt_stores,
				   "working_set_bytes",
				   (json_int_t)(run->slice_bytes * run->threads * arrays[k->kind]));
	stats = json_pack("{s:I, s:o, s:o, s:o, s:f}", "n", (json_int_t)s->n, "median",
			  rfl_measure_rate(s->median * cell->scale), "min",
			  rfl_measure_rate(s->min * cell->scale), "max",
			  rfl_measure_rate(s->max * cell->scale), "rel_spread",
			  round((s->max - s->min) / s->median * 1e4) / 1e4);
	/* a single thread is always pinned to the first CPU */
	snprintf(first, sizeof(first), "cpu %d", m->machine->cpus[0].os_index);
	conditions = json_pack("{s:i, s:s, s:f, s:o*}", "threads", run->threads, "pinning",
			       run->threads == m->threads ? m->places : first, "sustained_s",
			       run->window_s, "huge_pages",
			       k->kind == RFL_LOOP_CHAIN ? NULL : known_json(m->huge_pages));
	return json_pack("{s:s, s:o, s:n, s:o, s:o, s:o}", "status", "measured", "value",
			 rfl_measure_rate(s->max * cell->scale), "spec", "method", method, "stats",
			 stats, "conditions", conditions);
}

/* The working sets that were tried for a level. NULL if there are none. */
static json_t *sweep_json(const struct rfl_measurement *m, const struct rfl_measured_cell *cell)
{
	json_t *list = NULL;

	for (size_t i = 0; i < m->nruns; i++) {
		const struct rfl_measured_run *run = &m->runs[i];

		if (!run->sweep || run->key != cell->key)
			continue;
		list = list ? list : json_array();
		if (json_array_append_new(list,
					  json_pack("{s:s, s:I, s:o}", "scope",
						    run->threads == 1 ? "core" : "node",
						    "working_set_bytes",
						    (json_int_t)(run->slice_bytes * run->threads),
						    "gbs", rfl_measure_rate(run->stats.max))) != 0)
			break;
	}
	return list;
}

const char *rfl_measure_device(const struct rfl_machine *m)
{
	return m->cpu_name ? m->cpu_name : m->architecture;
}

/* Results without a field in the schema: the rate of every loop, and the size of the arrays. */
static json_t *notes_json(const struct rfl_measurement *m)
{
	char llc[RFL_NUM_MAX];
	struct rfl_buf loops;
	json_t *notes = NULL;

	rfl_buf_init(&loops, 0);
	for (size_t i = 0; i < m->nruns; i++) {
		const struct rfl_measured_run *run = &m->runs[i];

		if (strcmp(run->key, "DRAM") == 0 && !run->sweep)
			rfl_buf_printf(&loops, "%s%s %.4g%s", loops.len ? "; " : "",
				       run->kernel->summary, run->stats.max / GIGA,
				       run->trial ? " (short trial)" : "");
	}
	if (loops.len == 0)
		notes = json_array();
	else
		notes = json_pack(
			"[o, o]",
			json_sprintf("measured: DRAM by loop, fastest repeat in GB/s: %s",
				     rfl_buf_str(&loops)),
			json_sprintf("measured: DRAM arrays of %" PRId64
				     " bytes each, %s 4 times the last-level caches (%s%s)%s",
				     m->array_bytes, m->capped ? "less than" : "at least",
				     m->llc_assumed ? "unknown, assumed " : "",
				     rfl_num_bytes((double)m->llc_bytes, llc, sizeof(llc)),
				     m->capped ? "; memory did not allow more" : ""));
	rfl_buf_fini(&loops);
	return notes;
}

static json_t *not_measured(void)
{
	return json_pack("{s:s, s:n, s:s}", "status", "unknown", "value", "reason",
			 "not measured (not selected with --only)");
}

json_t *rfl_measurement_json(const struct rfl_measurement *m)
{
#ifdef __VERSION__
	const char *compiler = __VERSION__;
#else
	const char *compiler = NULL;
#endif
	const struct rfl_machine *host = m->machine;
	json_t *compute = json_object(), *memory = json_array(), *isa = json_array();
	bool ok = compute && memory && isa, dram = false;

	for (size_t i = 0; i < m->ncells && ok; i++) {
		const struct rfl_measured_cell *cell = &m->cells[i];
		const bool is_dram = cell->level && strcmp(cell->level, "DRAM") == 0;

		/* omit caches that this machine does not have */
		if (cell->level && cell->best == SIZE_MAX && !cell->failed &&
		    !cell->capacity_bytes && !is_dram)
			continue;
		dram = dram || is_dram;
		if (!cell->level)
			ok = json_object_set_new(compute, cell->key, ceiling_json(m, cell)) == 0;
		else
			ok = json_array_append_new(
				     memory, json_pack("{s:s, s:s, s:o, s:o*, s:o*}", "level",
						       cell->level, "scope", cell->scope, "gbs",
						       ceiling_json(m, cell), "capacity_bytes",
						       cell->capacity_bytes > 0
							       ? json_integer(cell->capacity_bytes)
							       : NULL,
						       "sweep", sweep_json(m, cell))) == 0;
	}
	/* an environment must contain a compute ceiling and DRAM, measured or not */
	if (ok && json_object_size(compute) == 0)
		ok = json_object_set_new(compute, "fp32.vector", not_measured()) == 0;
	if (ok && !dram)
		ok = json_array_append_new(memory,
					   json_pack("{s:s, s:s, s:o}", "level", "DRAM", "scope",
						     "node", "gbs", not_measured())) == 0;
	for (size_t i = 0; ok && rfl_isa_name(i); i++)
		if ((host->isa >> i) & 1)
			ok = json_array_append_new(isa, json_string(rfl_isa_name(i))) == 0;
	if (!ok) {
		json_decref(compute);
		json_decref(memory);
		json_decref(isa);
		return NULL;
	}
	return json_pack(
		"{s:s, s:{s:s, s:i, s:o, s:s*, s:o*}, s:{s:s, s:i, s:s*, s:s*, s:o*, s:o*, s:s*}, "
		"s:o, s:o, s:o}",
		"kind", "cpu", "device", "name", rfl_measure_device(host), "units", host->cores,
		"isa", isa, "vendor", host->cpu_vendor, "memory_bytes",
		host->memory_bytes > 0 ? json_integer(host->memory_bytes) : NULL, "host", "kernel",
		host->kernel, "numa_nodes", host->numa_nodes, "os", host->os, "governor",
		host->governor, "virtualised", known_json(host->virtualised), "smt",
		known_json(host->smt), "compiler", compiler, "compute", compute, "memory", memory,
		"notes", notes_json(m));
}
