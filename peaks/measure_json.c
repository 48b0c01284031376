/* measure_json.c - a measurement as an environment of peaks.json. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "peaks/measure.h"
#include "rfl_config.h"

#define GIGA   1e9
#define SHARED 1.02 /* a rate with additions that is not above the rate without them */

json_t *rfl_measure_rate(double value)
{
	char text[40];
	double rounded;

	snprintf(text, sizeof(text), "%.6g", value / GIGA);
	if (rfl_num_parse_double(text, "rate", &rounded, NULL) != RFL_OK)
		return NULL;
	return json_real(rounded);
}

json_t *rfl_measure_ceiling(double value, const struct rfl_stats *stats, double scale,
			    json_t *take_method, json_t *take_conditions)
{
	const double spread = (stats->max - stats->min) / stats->median;

	return json_pack(
		"{s:s, s:o, s:n, s:o, s:{s:I, s:o, s:o, s:o, s:f}, s:o}", "status", "measured",
		"value", rfl_measure_rate(value), "spec", "method", take_method, "stats", "n",
		(json_int_t)stats->n, "median", rfl_measure_rate(stats->median * scale), "min",
		rfl_measure_rate(stats->min * scale), "max", rfl_measure_rate(stats->max * scale),
		"rel_spread", round(spread * 1e4) / 1e4, "conditions", take_conditions);
}

json_t *rfl_measure_no_ceiling(const char *status, const char *reason)
{
	return json_pack("{s:s, s:n, s:s}", "status", status, "value", "reason", reason);
}

static json_t *not_measured(void)
{
	return rfl_measure_no_ceiling("unknown", "not measured (not selected with --only)");
}

bool rfl_measure_complete(json_t *compute, json_t *memory, const char *scope)
{
	bool dram = false;

	for (size_t i = 0; i < json_array_size(memory); i++) {
		const char *level, *of;

		dram = dram || (json_unpack(json_array_get(memory, i), "{s:s, s:s}", "level",
					    &level, "scope", &of) == 0 &&
				strcmp(level, "DRAM") == 0 && strcmp(of, scope) == 0);
	}
	return (json_object_size(compute) > 0 ||
		json_object_set_new(compute, "fp32.vector", not_measured()) == 0) &&
	       (dram ||
		json_array_append_new(memory, json_pack("{s:s, s:s, s:o}", "level", "DRAM", "scope",
							scope, "gbs", not_measured())) == 0);
}

/* A JSON boolean, or NULL if unknown. */
static json_t *known_json(enum rfl_known known)
{
	return known == RFL_NOT_KNOWN ? NULL : json_boolean(known == RFL_YES);
}

/* A share rounded to four digits after the point, or NULL if unknown. */
static json_t *share(double part, double whole)
{
	return isnan(part) || !(whole > 0) ? NULL : json_real(round(part / whole * 1e4) / 1e4);
}

static json_t *interference_json(const struct rfl_interference *seen)
{
	return json_pack("{s:i, s:i, s:I, s:o*, s:o*, s:o*}", "disturbed_repeats", seen->disturbed,
			 "discarded_repeats", seen->discarded, "context_switches",
			 (json_int_t)seen->switches, "off_cpu", share(seen->off_s, seen->thread_s),
			 "steal", share(seen->steal_s, seen->thread_s), "other_load",
			 share(seen->others_s, seen->machine_s));
}

static json_t *ceiling_json(const struct rfl_measurement *m, const struct rfl_measured_cell *cell)
{
	static const int arrays[] = {
		[RFL_LOOP_READ] = 1, [RFL_LOOP_COPY] = 2, [RFL_LOOP_TRIAD] = 3
	};
	const struct rfl_measured_run *run;
	const struct rfl_peak_kernel *k;
	json_t *method, *conditions, *doubts = NULL;

	if (cell->best == SIZE_MAX)
		return rfl_measure_no_ceiling(cell->failed        ? "failed"
					      : cell->unsupported ? "unsupported"
								  : "unknown",
					      cell->reason);
	run = &m->runs[cell->best];
	k = run->kernel;
	if (k->kind == RFL_LOOP_CHAIN)
		method = json_pack("{s:s, s:s, s:s, s:i, s:s}", "kernel", k->summary, "tool",
				   "roofline " RFL_VERSION, "measured_at", m->measured_at,
				   "accumulators", k->accumulators, "accumulate", k->accumulate);
	else
		method = json_pack("{s:s, s:s, s:s, s:s, s:b, s:I}", "kernel", k->summary, "tool",
				   "roofline " RFL_VERSION, "measured_at", m->measured_at,
				   "bytes_counted", "explicit", "nt_stores", (int)k->nt_stores,
				   "working_set_bytes",
				   (json_int_t)(run->slice_bytes * run->threads * arrays[k->kind]));
	if (cell->plateau_bytes[0] > 0)
		(void)json_object_set_new(method, "plateau_bytes",
					  json_pack("[I, I]", (json_int_t)cell->plateau_bytes[0],
						    (json_int_t)cell->plateau_bytes[1]));
	for (size_t i = 0; i < cell->ndoubts; i++) {
		doubts = doubts ? doubts : json_array();
		(void)json_array_append_new(doubts, json_string(cell->doubts[i]));
	}
	conditions =
		json_pack("{s:i, s:s, s:f, s:o*, s:o*, s:o, s:o*}", "threads", run->threads,
			  "pinning", run->places, "sustained_s", run->window_s, "huge_pages",
			  k->kind == RFL_LOOP_CHAIN ? NULL : known_json(m->huge_pages), "clock_mhz",
			  isnan(run->clock_hz) ? NULL : json_real(round(run->clock_hz / 1e6)),
			  "interference", interference_json(&run->interference), "doubts", doubts);
	return rfl_measure_ceiling(run->stats.max * cell->scale, &run->stats, cell->scale, method,
				   conditions);
}

/* The working sets that were tried for a level. NULL if there are none. */
static json_t *sweep_json(const struct rfl_measurement *m, const struct rfl_measured_cell *cell)
{
	json_t *list = NULL;

	for (size_t i = 0; i < m->nruns; i++) {
		const struct rfl_measured_run *run = &m->runs[i];

		if (run->kind != RFL_RUN_SWEEP || run->key != cell->key)
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

/* Results without a field in the schema, each after its key: the rate of every loop and of every
 * part of the machine, and the size of the arrays. */
static json_t *notes_json(const struct rfl_measurement *m)
{
	static const struct {
		const char *key, *what;
	} kinds[] = { { "DRAM", "loop" }, { "DRAM.1socket", "part" }, { "remote", "part" } };
	char llc[RFL_NUM_MAX];
	struct rfl_buf text;
	json_t *notes = json_array();

	rfl_buf_init(&text, 0);
	for (size_t k = 0; k < RFL_ARRAY_LEN(kinds); k++) {
		rfl_buf_reset(&text);
		for (size_t i = 0; i < m->nruns; i++) {
			const struct rfl_measured_run *run = &m->runs[i];
			const bool trial = run->kind == RFL_RUN_TRIAL;

			if (strcmp(run->key, kinds[k].key) == 0 &&
			    (run->kind == RFL_RUN_FULL || (trial && !run->where[0])))
				rfl_buf_printf(&text, "%s%s%s%s %.4g%s", text.len ? "; " : "",
					       run->where, run->where[0] ? ", " : "",
					       run->kernel->summary, run->stats.max / GIGA,
					       trial ? " (short trial)" : "");
		}
		if (text.len > 0)
			(void)json_array_append_new(
				notes,
				json_sprintf("measured: %s by %s, fastest repeat in GB/s: %s",
					     kinds[k].key, kinds[k].what, rfl_buf_str(&text)));
		if (text.len > 0 && k == 0)
			(void)json_array_append_new(
				notes,
				json_sprintf("measured: DRAM arrays of %" PRId64
					     " bytes each, %s 4 times the last-level caches "
					     "(%s%s)%s",
					     m->array_bytes, m->capped ? "less than" : "at least",
					     m->llc_assumed ? "unknown, assumed " : "",
					     rfl_num_bytes((double)m->llc_bytes, llc, sizeof(llc)),
					     m->capped ? "; memory did not allow more" : ""));
	}
	for (size_t i = 0; i < m->ncells; i++) { /* some processors run both on the same units */
		const struct rfl_measured_cell *both = &m->cells[i], *fma = m->cells;
		const size_t len = strlen(both->key) - strlen(".fmaadd");

		if (both->best == SIZE_MAX || !strstr(both->key, ".fmaadd"))
			continue;
		while (fma < m->cells + m->ncells &&
		       (strlen(fma->key) != len || strncmp(fma->key, both->key, len) != 0))
			fma++;
		if (fma < m->cells + m->ncells && fma->best != SIZE_MAX &&
		    m->runs[both->best].stats.max <= SHARED * m->runs[fma->best].stats.max)
			(void)json_array_append_new(
				notes, json_sprintf("measured: %s: not above %s, because additions "
						    "share the units of multiply-adds",
						    both->key, fma->key));
	}
	rfl_buf_fini(&text);
	return notes;
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
	bool ok = compute && memory && isa;

	for (size_t i = 0; i < m->ncells && ok; i++) {
		const struct rfl_measured_cell *cell = &m->cells[i];

		/* omit caches and parts that this machine does not have */
		if (cell->level && cell->best == SIZE_MAX && !cell->failed &&
		    !cell->capacity_bytes && strcmp(cell->key, "DRAM") != 0)
			continue;
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
	ok = ok && rfl_measure_complete(compute, memory, "node");
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
