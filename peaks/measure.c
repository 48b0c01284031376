/*
 * measure.c - selects the loops for each ceiling.
 *
 * For each ceiling, all loops that can run here compete: the widest family runs in full; each other
 * loop gets a short trial, and a full run if it comes close. The ceiling is the fastest repeat of
 * the fastest loop; median, minimum and spread are recorded with it. A full run has two rounds, the
 * second one after the first of all other ceilings, so that a change of the machine shows.
 */
#include "peaks/measure.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "peaks/measure_parts.h"

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

/* Keys that are memory levels, and their scopes; the scope of a cache depends on who shares it. */
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
	const char *level = cell->as.level;
	const bool measures = !level            ? rfl_peak_kernel_measures(k, cell->key)
			      : level[0] == 'L' ? k->kind == RFL_LOOP_READ
						: k->kind != RFL_LOOP_CHAIN;

	return measures && rfl_peak_kernel_probe(k, NULL) == RFL_OK;
}

/* Run all loops that compete for a ceiling and set cell->best. Loops in C are used only on
 * CPUs without loops in assembly. */
static enum rfl_rc compete(struct rfl_session *s, const char *first, int threads,
			   struct rfl_err *err)
{
	struct rfl_measured_cell *cell = s->cell;
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
		if (s->runs[run].kind == RFL_RUN_FULL &&
		    rfl_measure__fastest(s, run) > rfl_measure__fastest(s, cell->best))
			cell->best = run;
	}
	return RFL_OK;
}

/* --- all ceilings --- */

/* Set the reason why no loop can measure a ceiling: the CPU lacks the instructions of each,
 * or there are no loops for this kind of CPU. */
static void explain(const struct rfl_session *s)
{
	const struct rfl_measured_cell *cell = s->cell;
	struct rfl_peak *peak = &s->cell->as.peak;
	const struct rfl_peak_kernel *k;
	const char *lacking = NULL;

	rfl_measure__unknown(s, "no loop can run on this CPU ('roofline list' gives the "
				"reasons); set the ceiling with 'roofline peaks set'");
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		char names[RFL_PEAK_LACKING_MAX];
		struct rfl_err why = RFL_ERR_INIT;

		if (k->missing || cell->as.level || !rfl_peak_kernel_measures(k, cell->key))
			continue;
		(void)!rfl_peak_kernel_probe(k, &why);
		rfl_measure_none(peak, RFL_PEAK_UNSUPPORTED,
				 rfl_arena_strdup(s->m->arena, why.msg));
		if (*rfl_peak_kernel_lacking(k, names))
			lacking = rfl_arena_printf(s->m->arena, "%s%s%s", lacking ? lacking : "",
						   lacking ? " or " : "", names);
	}
	if (lacking)
		peak->reason = rfl_arena_printf(s->m->arena,
						"needs %s, which this CPU or its operating "
						"system does not support",
						lacking);
}

/* Measure a ceiling, or set the reason why it has none. */
static enum rfl_rc measure_cell(struct rfl_session *s, struct rfl_err *err)
{
	const struct rfl_measured_cell *cell = s->cell;
	const struct rfl_bench *b = s->bench;
	const bool cache = cell->as.level && cell->as.level[0] == 'L';
	const bool main_memory = cell->as.level && !cache;
	const bool whole = main_memory && strcmp(cell->key, "DRAM") == 0;
	const struct rfl_peak_kernel *k;
	const char *first = NULL; /* first family that can run here */
	char has[RFL_NUM_MAX], needs[RFL_NUM_MAX];
	enum rfl_rc rc;

	for (size_t i = 0; !first && (k = rfl_peak_kernel_at(i)); i++)
		if (rfl_measure__serves(k, cell))
			first = k->isa;
	if (!first) {
		explain(s);
		return RFL_OK;
	}
	if (cache)
		return rfl_measure__sweep(s, first, err);
	if (main_memory && b->array_bytes < b->llc_bytes) { /* would measure the caches */
		rfl_measure__unknown(
			s, rfl_arena_printf(
				   s->m->arena,
				   "the available memory allows arrays of %s, less than the "
				   "last-level caches (%s%s); set the ceiling with 'roofline peaks "
				   "set'",
				   rfl_num_bytes((double)b->array_bytes, has, sizeof(has)),
				   s->llc_assumed ? "unknown, assumed " : "",
				   rfl_num_bytes((double)b->llc_bytes, needs, sizeof(needs))));
		if (!s->planning)
			rfl_log(RFL_LOG_WARN, "%s is not measured: %s", cell->key,
				cell->as.peak.reason);
		return RFL_OK;
	}
	if (main_memory && !whole)
		return rfl_measure__part(s, first, err);
	rc = compete(s, first, strstr(cell->key, ".1core") ? 1 : b->threads, err);
	if (rc == RFL_OK && whole)
		rc = rfl_measure__check_dram(s, err);
	return rc == RFL_OK && whole ? rfl_measure__sweep(s, first, err) : rc;
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
	/* the value of all cores has the reason */
	if (!is_level(key) && strstr(key, ".1core") && !can_compute(key))
		return false;
	return spec->all || !(strstr(key, ".scalar") || strstr(key, ".nofma"));
}

static struct rfl_measured_cell cell_of(const struct rfl_machine *m, const char *key)
{
	struct rfl_measured_cell cell = {
		.key = key, .as.peak = rfl_peak_none, .scale = 1, .best = SIZE_MAX
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++)
		if (strcmp(levels[i].key, key) == 0) {
			cell.as.level = levels[i].level;
			cell.as.scope = levels[i].scope;
		}
	if (strcmp(key, "remote") == 0 && m->numa_nodes > m->packages)
		cell.as.scope = "cluster"; /* several NUMA nodes on a socket */
	return cell;
}

/* Measure all ceilings, or only count the runs. @return the number of ceilings with a result */
static size_t first_round(struct rfl_session *s)
{
	size_t measured = 0;

	for (s->cell = s->cells; s->cell < s->cells + s->ncells; s->cell++) {
		struct rfl_peak *peak = &s->cell->as.peak;
		struct rfl_err e = RFL_ERR_INIT;

		if (measure_cell(s, &e) != RFL_OK) {
			s->cell->best = SIZE_MAX;
			rfl_measure_none(peak, RFL_PEAK_FAILED,
					 rfl_arena_strdup(s->m->arena, e.msg));
			rfl_log(RFL_LOG_WARN, "%s: %s", s->cell->key, e.msg);
		}
		measured += s->cell->best != SIZE_MAX || peak->status == RFL_PEAK_UNSUPPORTED;
	}
	return measured;
}

static void second_round(struct rfl_session *s)
{
	for (s->cell = s->cells; s->cell < s->cells + s->ncells; s->cell++) {
		struct rfl_err err = RFL_ERR_INIT;

		if (s->cell->best == SIZE_MAX)
			continue;
		if (rfl_measure__again(s, &err) != RFL_OK)
			rfl_measure__doubt(s, "the second round failed: %s", err.msg);
		if (!s->planning)
			rfl_measure__judge(s);
	}
}

/* Count the runs and divide the time among them. */
static void plan(struct rfl_session *s)
{
	s->planning = true;
	(void)first_round(s);
	second_round(s);
	s->planning = false;
	s->nruns = 0;
	for (size_t i = 0; i < s->ncells; i++)
		s->cells[i] = cell_of(s->spec->machine, s->cells[i].key);
	rfl_measure__divide(s);
}

/* Allocate the requested cells, and open the bench. */
static enum rfl_rc open_session(struct rfl_session *s, struct rfl_err *err)
{
	const struct rfl_measure_spec *spec = s->spec;
	struct rfl_arena *arena = s->m->arena;
	char size[RFL_NUM_MAX];
	enum rfl_rc rc;

	s->cells = rfl_arena_array(arena, RFL_ARRAY_LEN(rfl_measure_keys), sizeof(*s->cells));
	s->runs = rfl_arena_array(arena, RFL_MEASURE__RUNS_MAX, sizeof(*s->runs));
	for (size_t i = 0; rfl_measure_keys[i]; i++)
		if (!rfl_peaks_is_gemm(rfl_measure_keys[i]) && wanted(spec, rfl_measure_keys[i]))
			s->cells[s->ncells++] = cell_of(spec->machine, rfl_measure_keys[i]);
	rc = rfl_bench_open(spec->machine,
			    spec->threads > 0 ? spec->threads : rfl_machine_threads(spec->machine),
			    0, &s->bench, err);
	if (rc != RFL_OK)
		return rc;
	s->m->capped = s->bench->capped;
	s->llc_assumed = rfl_machine_llc_bytes(spec->machine) == 0;
	if (s->llc_assumed && wanted(spec, "DRAM"))
		rfl_log(RFL_LOG_WARN,
			"neither the system nor the CPU reports the caches; assuming %s for "
			"the last level",
			rfl_num_bytes((double)s->bench->llc_bytes, size, sizeof(size)));
	return RFL_OK;
}

enum rfl_rc rfl_measure(const struct rfl_measure_spec *spec, struct rfl_measurement *m,
			struct rfl_err *err)
{
	struct rfl_session s = { .spec = spec, .m = m, .begin_s = rfl_clock_s() };
	enum rfl_rc rc;

	assert(spec->repeats == 0 || spec->repeats >= 3);
	rc = open_session(&s, err);
	if (rc == RFL_OK)
		plan(&s);
	if (rc == RFL_OK && first_round(&s) == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "nothing could be measured: %s",
			      s.ncells > 0 ? s.cells[0].as.peak.reason : "no ceiling was selected");
	if (rc == RFL_OK) {
		second_round(&s);
		rfl_bench_places(s.bench, 0, s.bench->threads, m->places, sizeof(m->places));
		rfl_measure__result(&s);
		m->seconds = rfl_clock_s() - s.begin_s;
	}
	rfl_bench_close(s.bench);
	return rc;
}
