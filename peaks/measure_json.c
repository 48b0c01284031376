/*
 * measure_json.c - a measurement as an environment of peaks.json.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "peaks/measure.h"
#include "rfl_config.h"

#define GIGA 1e9

/* Six significant digits: what is measured is not known to more. */
static json_t *rate(double value)
{
	char text[40];
	double rounded;

	snprintf(text, sizeof(text), "%.6g", value / GIGA);
	if (rfl_num_parse_double(text, "rate", &rounded, NULL) != RFL_OK)
		return NULL;
	return json_real(rounded);
}

static json_t *method_json(const struct rfl_measurement *m, const struct rfl_measured_run *run)
{
	const struct rfl_peak_kernel *k = run->kernel;
	const int arrays = k->kind == RFL_KERNEL_READ ? 1 : k->kind == RFL_KERNEL_COPY ? 2 : 3;

	if (k->kind == RFL_KERNEL_CHAIN)
		return json_pack("{s:s, s:s, s:s, s:i, s:s}", "kernel", k->summary, "tool",
				 "roofline " RFL_VERSION, "measured_at", m->measured_at,
				 "accumulators", k->accumulators, "accumulate", k->dtype);
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:I}", "kernel", k->summary, "tool",
			 "roofline " RFL_VERSION, "measured_at", m->measured_at, "bytes_counted",
			 "explicit", "nt_stores", (int)k->nt_stores, "working_set_bytes",
			 (json_int_t)(run->slice_bytes * run->threads * arrays));
}

/* A truth value, or nothing where it is not known. */
static json_t *known_json(enum rfl_known known)
{
	return known == RFL_NOT_KNOWN ? NULL : json_boolean(known == RFL_YES);
}

static json_t *conditions_json(const struct rfl_measurement *m, const struct rfl_measured_run *run)
{
	const bool chain = run->kernel->kind == RFL_KERNEL_CHAIN;
	char first[32];

	/* one thread has the first of the places */
	snprintf(first, sizeof(first), "cpu %d", m->machine->cpus[0].os_index);
	return json_pack("{s:i, s:s, s:f, s:o*}", "threads", run->threads, "pinning",
			 run->threads == m->threads ? m->places : first, "sustained_s",
			 run->window_s, "huge_pages", chain ? NULL : known_json(m->huge_pages));
}

static json_t *stats_json(const struct rfl_measured_run *run, double scale)
{
	const struct rfl_stats *s = &run->stats;
	const double spread = (s->max - s->min) / s->median;

	return json_pack("{s:I, s:o, s:o, s:o, s:f}", "n", (json_int_t)s->n, "median",
			 rate(s->median * scale), "min", rate(s->min * scale), "max",
			 rate(s->max * scale), "rel_spread", round(spread * 1e4) / 1e4);
}

static json_t *ceiling_json(const struct rfl_measurement *m, const struct rfl_measured_cell *cell)
{
	if (cell->best == SIZE_MAX)
		return json_pack("{s:s, s:n, s:s}", "status", cell->failed ? "failed" : "unknown",
				 "value", "reason", cell->reason);

	const struct rfl_measured_run *run = &m->runs[cell->best];

	return json_pack("{s:s, s:o, s:n, s:o, s:o, s:o}", "status", "measured", "value",
			 rate(run->stats.max * cell->scale), "spec", "method", method_json(m, run),
			 "stats", stats_json(run, cell->scale), "conditions",
			 conditions_json(m, run));
}

static json_t *level_json(const struct rfl_measurement *m, const struct rfl_measured_cell *cell)
{
	return json_pack("{s:s, s:s, s:o, s:o*}", "level", cell->level, "scope", cell->scope, "gbs",
			 ceiling_json(m, cell), "capacity_bytes",
			 cell->capacity_bytes > 0 ? json_integer(cell->capacity_bytes) : NULL);
}

const char *rfl_measure_device(const struct rfl_machine *m)
{
	return m->cpu_name ? m->cpu_name : m->architecture;
}

static json_t *isa_json(uint64_t isa)
{
	json_t *list = json_array();

	for (size_t i = 0; list && rfl_isa_name(i); i++) {
		if (((isa >> i) & 1) &&
		    json_array_append_new(list, json_string(rfl_isa_name(i))) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *device_json(const struct rfl_machine *m)
{
	return json_pack("{s:s, s:i, s:o, s:s*, s:o*}", "name", rfl_measure_device(m), "units",
			 m->cores, "isa", isa_json(m->isa), "vendor", m->cpu_vendor, "memory_bytes",
			 m->memory_bytes > 0 ? json_integer(m->memory_bytes) : NULL);
}

static json_t *host_json(const struct rfl_machine *m)
{
#ifdef __VERSION__
	const char *compiler = __VERSION__;
#else
	const char *compiler = NULL;
#endif
	return json_pack("{s:s, s:i, s:s*, s:s*, s:o*, s:o*, s:s*}", "kernel", m->kernel,
			 "numa_nodes", m->numa_nodes, "os", m->os, "governor", m->governor,
			 "virtualised", known_json(m->virtualised), "smt", known_json(m->smt),
			 "compiler", compiler);
}

/* What the schema has no place for: every loop's own figure, and the size of the arrays. */
static json_t *notes_json(const struct rfl_measurement *m)
{
	char llc[RFL_NUM_MAX];
	struct rfl_buf loops;
	json_t *notes = NULL;

	rfl_buf_init(&loops, 0);
	for (size_t i = 0; i < m->nruns; i++) {
		const struct rfl_measured_run *run = &m->runs[i];

		if (strcmp(run->key, "DRAM") == 0)
			rfl_buf_printf(&loops, "%s%s %.4g%s", loops.len ? "; " : "",
				       run->kernel->summary, run->stats.max / GIGA,
				       run->trial ? " (short look)" : "");
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
				     m->llc_assumed ? "not known, assumed " : "",
				     rfl_num_bytes((double)m->llc_bytes, llc, sizeof(llc)),
				     m->capped ? ": memory did not allow more" : ""));
	rfl_buf_fini(&loops);
	return notes;
}

static json_t *not_measured(void)
{
	return json_pack("{s:s, s:n, s:s}", "status", "unknown", "value", "reason",
			 "not measured (left out with --only)");
}

json_t *rfl_measurement_json(const struct rfl_measurement *m)
{
	json_t *compute = json_object();
	json_t *memory = json_array();
	bool ok = compute && memory, dram = false;

	for (size_t i = 0; i < m->ncells && ok; i++) {
		const struct rfl_measured_cell *cell = &m->cells[i];
		const bool is_dram = cell->level && strcmp(cell->level, "DRAM") == 0;

		/* a cache that this machine does not have is not a gap */
		if (cell->level && cell->best == SIZE_MAX && !cell->failed &&
		    !cell->capacity_bytes && !is_dram)
			continue;
		dram = dram || is_dram;
		ok = cell->level
			     ? json_array_append_new(memory, level_json(m, cell)) == 0
			     : json_object_set_new(compute, cell->key, ceiling_json(m, cell)) == 0;
	}
	/* an environment must have a compute ceiling and DRAM, measured or not */
	if (ok && json_object_size(compute) == 0)
		ok = json_object_set_new(compute, "fp32.vector", not_measured()) == 0;
	if (ok && !dram)
		ok = json_array_append_new(memory,
					   json_pack("{s:s, s:s, s:o}", "level", "DRAM", "scope",
						     "node", "gbs", not_measured())) == 0;
	if (!ok) {
		json_decref(compute);
		json_decref(memory);
		return NULL;
	}
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind", "cpu", "device",
			 device_json(m->machine), "host", host_json(m->machine), "compute", compute,
			 "memory", memory, "notes", notes_json(m));
}
