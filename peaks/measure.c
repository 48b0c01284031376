/*
 * measure.c - selects the loops for each ceiling and judges the results.
 *
 * For each ceiling, all loops that can run here compete: the widest family runs in full; each other
 * loop gets a short trial, and a full run if it comes close. The ceiling is the fastest repeat of
 * the fastest loop; median, minimum and spread are recorded with it. A full run has two rounds, the
 * second one after the first of all other ceilings, so that a change of the machine shows.
 */
#include "peaks/measure.h"

#include <assert.h>
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
#include "peaks/doubts.h"
#include "peaks/measure_parts.h"

#define OTHERS 0.10 /* share of the machine that other programs may use */
#define STOLEN 0.02 /* share of the time that the hypervisor may withhold */

const char *const rfl_measure_keys[] = { "fp32.vector",
					 "fp64.vector",
					 "fp32.vector.fmaadd",
					 "fp64.vector.fmaadd",
					 "bf16.vector",
					 "bf16.matrix",
					 "fp16.vector",
					 "int8.vector",
					 "int8.matrix",
					 "fp32.vector.1core",
					 "fp64.vector.1core",
					 "bf16.vector.1core",
					 "bf16.matrix.1core",
					 "fp16.vector.1core",
					 "int8.vector.1core",
					 "int8.matrix.1core",
					 "fp32.scalar",
					 "fp64.scalar",
					 "fp32.vector.nofma",
					 "fp64.vector.nofma",
					 "L1",
					 "L2",
					 "L3",
					 "DRAM",
					 "DRAM.1core",
					 "DRAM.1socket",
					 "remote",
					 "fp32.gemm",
					 "tf32.gemm",
					 "bf16.gemm",
					 "fp16.gemm",
					 NULL };

/* Keys that are memory levels, and their scopes; that of a cache depends on who shares it. */
static const struct {
	const char *key, *level, *scope;
} levels[] = {
	{ "L1", "L1", "node" },           { "L2", "L2", "node" },
	{ "L3", "L3", "node" },           { "DRAM", "DRAM", "node" },
	{ "DRAM.1core", "DRAM", "core" }, { "DRAM.1socket", "DRAM", "socket" },
	{ "remote", "remote", "socket" },
};

bool rfl_measure__serves(const struct rfl_peak_kernel *k, const struct rfl_measured_cell *cell)
{
	const bool measures = !cell->level            ? rfl_peak_kernel_measures(k, cell->key)
			      : cell->level[0] == 'L' ? k->kind == RFL_LOOP_READ
						      : k->kind != RFL_LOOP_CHAIN;

	return measures && rfl_peak_kernel_probe(k, NULL) == RFL_OK;
}

/* Run all loops that compete for a ceiling and set cell->best. Loops in C are used only on
 * processors without loops in assembly. */
static enum rfl_rc compete(struct rfl_session *s, struct rfl_measured_cell *cell, const char *first,
			   int threads, struct rfl_err *err)
{
	const struct rfl_peak_kernel *k;
	enum rfl_rc rc;
	size_t run;

	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		const bool trial = strcmp(k->isa, first) != 0;
		struct rfl_measured_run what = { .kernel = k,
						 .kind = trial ? RFL_RUN_TRIAL : RFL_RUN_FULL,
						 .threads = threads };

		if (!rfl_measure__serves(k, cell) || (trial && strcmp(k->isa, "plain") == 0))
			continue;
		rc = rfl_measure__run(s, what, &run, err);
		what.kind = RFL_RUN_FULL;
		if (rc == RFL_OK && trial &&
		    rfl_measure__fastest(s, run) >=
			    RFL_RUN_NEAR * rfl_measure__fastest(s, cell->best))
			rc = rfl_measure__run(s, what, &run, err);
		if (rc != RFL_OK)
			return rc;
		if (s->m->runs[run].kind == RFL_RUN_FULL &&
		    rfl_measure__fastest(s, run) > rfl_measure__fastest(s, cell->best))
			cell->best = run;
	}
	return RFL_OK;
}

/* --- all ceilings --- */

/* Set the reason why no loop can measure a ceiling: the processor lacks the instructions of each,
 * or there are no loops for this kind of processor. */
static void explain(struct rfl_measured_cell *cell)
{
	const struct rfl_peak_kernel *k;
	struct rfl_buf lacking;

	rfl_buf_init(&lacking, 0);
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		char names[RFL_PEAK_LACKING_MAX];
		struct rfl_err why = RFL_ERR_INIT;

		if (k->missing || cell->level || !rfl_peak_kernel_measures(k, cell->key))
			continue;
		cell->unsupported = true;
		(void)!rfl_peak_kernel_probe(k, &why);
		snprintf(cell->reason, sizeof(cell->reason), "%.250s", why.msg);
		if (*rfl_peak_kernel_lacking(k, names))
			rfl_buf_printf(&lacking, "%s%s", lacking.len ? " or " : "", names);
	}
	if (lacking.len)
		snprintf(cell->reason, sizeof(cell->reason),
			 "needs %s, which this processor or its operating system does not support",
			 rfl_buf_str(&lacking));
	else if (!cell->unsupported)
		snprintf(cell->reason, sizeof(cell->reason),
			 "no loop can run on this processor ('roofline list' gives the reasons); "
			 "set the ceiling with 'roofline peaks set'");
	rfl_buf_fini(&lacking);
}

/* Measure a ceiling, or set the reason why it has none. */
static enum rfl_rc measure_cell(struct rfl_session *s, struct rfl_measured_cell *cell,
				struct rfl_err *err)
{
	const bool main_memory = cell->level && cell->level[0] != 'L';
	const bool whole = main_memory && strcmp(cell->key, "DRAM") == 0;
	const struct rfl_peak_kernel *k;
	const char *first = NULL; /* first family that can run here */
	char has[RFL_NUM_MAX], needs[RFL_NUM_MAX];
	enum rfl_rc rc;

	for (size_t i = 0; !first && (k = rfl_peak_kernel_at(i)); i++)
		if (rfl_measure__serves(k, cell))
			first = k->isa;
	if (!first) {
		explain(cell);
		return RFL_OK;
	}
	if (cell->level && !main_memory)
		return rfl_measure__sweep(s, cell, first, err);
	if (main_memory && s->bench->array_bytes < s->m->llc_bytes) { /* would measure the caches */
		snprintf(cell->reason, sizeof(cell->reason),
			 "the available memory allows arrays of %s, less than the last-level "
			 "caches (%s%s); set the ceiling with 'roofline peaks set'",
			 rfl_num_bytes((double)s->bench->array_bytes, has, sizeof(has)),
			 s->m->llc_assumed ? "unknown, assumed " : "",
			 rfl_num_bytes((double)s->m->llc_bytes, needs, sizeof(needs)));
		if (!s->planning)
			rfl_log(RFL_LOG_WARN, "%s is not measured: %s", cell->key, cell->reason);
		return RFL_OK;
	}
	if (main_memory && !whole)
		return rfl_measure__part(s, cell, first, err);
	rc = compete(s, cell, first, strstr(cell->key, ".1core") ? 1 : s->m->threads, err);
	if (rc == RFL_OK && whole)
		rc = rfl_measure__check_dram(s, cell, err);
	return rc == RFL_OK && whole ? rfl_measure__sweep(s, cell, first, err) : rc;
}

/* What the repeats say about a ceiling. */
static void judge(const struct rfl_session *s, struct rfl_measured_cell *cell)
{
	const struct rfl_measured_run *run = &s->m->runs[cell->best];
	const struct rfl_interference *seen = &run->interference;
	const double others = seen->others_s / seen->machine_s;
	const double stolen = seen->steal_s / seen->thread_s;
	const double *round = run->round_max;
	const double drift = fmax(round[0], round[1]) / fmin(round[0], round[1]) - 1;

	if (seen->disturbed > 0)
		rfl_measure__doubt(cell,
				   RFL_DOUBT_DISTURBED "in %d of %d repeats, a thread was off its processor "
				   "for more than 1 %% of the time; measure again on an idle "
				   "machine",
				   seen->disturbed, seen->repeats);
	if (others > OTHERS) /* false for NaN, as below */
		rfl_measure__doubt(cell,
				   RFL_DOUBT_OTHERS "%.0f %% of the machine's processor time; "
				   "measure again on an idle machine",
				   100 * others);
	if (stolen > STOLEN)
		rfl_measure__doubt(cell,
				   RFL_DOUBT_HYPERVISOR "%.0f %% of the processor time; measure "
				   "again when the host is idle",
				   100 * stolen);
	if (drift > RFL_MEASURE_DRIFT)
		rfl_measure__doubt(cell,
				   RFL_DOUBT_NOT_REPEATABLE "the fastest repeats of two rounds differ by "
				   "%.1f %%; measure again on an idle machine",
				   100 * drift);
}

static bool is_among(const char *const *keys, const char *key)
{
	for (; *keys; keys++)
		if (strcmp(*keys, key) == 0)
			return true;
	return false;
}

static bool can_compute(const char *key)
{
	const struct rfl_peak_kernel *k;

	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++)
		if (rfl_peak_kernel_measures(k, key) && rfl_peak_kernel_probe(k, NULL) == RFL_OK)
			return true;
	return false;
}

static bool is_level(const char *key)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++)
		if (strcmp(levels[i].key, key) == 0)
			return true;
	return false;
}

/* Parts of the machine that are all of it are measured only on request. */
static bool wanted(const struct rfl_measure_spec *spec, const char *key)
{
	if (spec->only)
		return is_among(spec->only, key);
	if (strcmp(key, "DRAM.1socket") == 0)
		return spec->machine->packages > 1;
	if (strcmp(key, "remote") == 0)
		return spec->machine->numa_nodes > 1;
	/* that of all cores has the reason */
	if (!is_level(key) && strstr(key, ".1core") && !can_compute(key))
		return false;
	return spec->all || !(strstr(key, ".scalar") || strstr(key, ".nofma"));
}

static struct rfl_measured_cell cell_of(const struct rfl_machine *m, const char *key)
{
	struct rfl_measured_cell cell = { .key = key, .scale = 1, .best = SIZE_MAX };

	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++)
		if (strcmp(levels[i].key, key) == 0) {
			cell.level = levels[i].level;
			cell.scope = levels[i].scope;
		}
	if (strcmp(key, "remote") == 0 && m->numa_nodes > m->packages)
		cell.scope = "cluster"; /* several NUMA nodes on a socket */
	return cell;
}

/* Measure all ceilings, or only count the runs. */
static enum rfl_rc first_round(struct rfl_session *s, size_t *measured, struct rfl_err *err)
{
	struct rfl_measurement *m = s->m;

	for (size_t i = 0; i < m->ncells; i++) {
		struct rfl_measured_cell *cell = s->cell = &m->cells[i];
		struct rfl_err e = RFL_ERR_INIT;
		enum rfl_rc rc = measure_cell(s, cell, &e);

		if (rc == RFL_ENOMEM)
			return rfl_err_pass(err, &e);
		if (rc != RFL_OK) {
			cell->best = SIZE_MAX;
			cell->failed = true;
			snprintf(cell->reason, sizeof(cell->reason), "%.250s", e.msg);
			rfl_log(RFL_LOG_WARN, "%s: %s", cell->key, e.msg);
		}
		*measured += cell->best != SIZE_MAX || cell->unsupported;
	}
	return RFL_OK;
}

static void second_round(struct rfl_session *s)
{
	for (size_t i = 0; i < s->m->ncells; i++) {
		struct rfl_err err = RFL_ERR_INIT;

		s->cell = &s->m->cells[i];
		if (s->cell->best == SIZE_MAX)
			continue;
		if (rfl_measure__again(s, &err) != RFL_OK)
			rfl_measure__doubt(s->cell, "the second round failed: %s", err.msg);
		if (!s->planning)
			judge(s, s->cell);
	}
}

/* Count the runs and divide the time among them. */
static enum rfl_rc plan(struct rfl_session *s, struct rfl_err *err)
{
	size_t measured = 0;
	enum rfl_rc rc;

	s->planning = true;
	rc = first_round(s, &measured, err);
	second_round(s);
	s->planning = false;
	s->m->nruns = 0;
	for (size_t i = 0; i < s->m->ncells; i++)
		s->m->cells[i] = cell_of(s->m->machine, s->m->cells[i].key);
	rfl_measure__divide(s);
	return rc;
}

/* Allocate the requested cells, and open the bench. */
static enum rfl_rc open_session(struct rfl_session *s, struct rfl_err *err)
{
	const struct rfl_measure_spec *spec = s->spec;
	struct rfl_measurement *m = calloc(1, sizeof(*m));
	char size[RFL_NUM_MAX];
	enum rfl_rc rc;

	s->m = m;
	if (m)
		m->cells = rfl_alloc_array(RFL_ARRAY_LEN(rfl_measure_keys), sizeof(*m->cells));
	if (!m || !m->cells)
		return rfl_fail(err, RFL_ENOMEM, 0, "measurement: out of memory");
	m->machine = spec->machine;
	for (size_t i = 0; rfl_measure_keys[i]; i++)
		if (!rfl_peaks_is_gemm(rfl_measure_keys[i]) && wanted(spec, rfl_measure_keys[i]))
			m->cells[m->ncells++] = cell_of(m->machine, rfl_measure_keys[i]);
	m->threads = spec->threads > 0 ? spec->threads : rfl_machine_threads(spec->machine);
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
	struct rfl_session s = { .spec = spec, .begin_s = rfl_clock_s() };
	size_t measured = 0;
	enum rfl_rc rc;

	assert(spec->repeats == 0 || spec->repeats >= 3);
	if ((rc = open_session(&s, err)) || (rc = plan(&s, err)) ||
	    (rc = first_round(&s, &measured, err)))
		goto done;
	second_round(&s);
	if (measured == 0) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "nothing could be measured: %s",
			      s.m->ncells > 0 ? s.m->cells[0].reason : "no ceiling was selected");
		goto done;
	}
	s.m->huge_pages = rfl_bench_huge_pages(s.bench);
	rfl_bench_places(s.bench, 0, s.m->threads, s.m->places, sizeof(s.m->places));
	rfl_clock_iso(s.m->measured_at);
	s.m->seconds = rfl_clock_s() - s.begin_s;

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
	for (size_t i = 0; i < m->nruns; i++)
		free(m->runs[i].rates);
	free(m->runs);
	free(m->cells);
	free(m);
}
