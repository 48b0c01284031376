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

/* The places of the first threads ("cpu 0,1") are those of all; one thread has the first. */
static const char *places_of(const struct rfl_measurement *m, int threads, char *out, size_t size)
{
	if (threads == m->threads)
		return m->places;
	snprintf(out, size, "cpu %d", m->machine->cpus[0].os_index);
	return out;
}

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

/* Arrays that a loop goes over. */
static int arrays_of(const struct rfl_peak_kernel *k)
{
	return k->kind == RFL_KERNEL_READ ? 1 : k->kind == RFL_KERNEL_COPY ? 2 : 3;
}

static json_t *method_json(const struct rfl_measurement *m, const struct rfl_measured_run *run)
{
	const struct rfl_peak_kernel *k = run->kernel;

	if (k->kind == RFL_KERNEL_CHAIN)
		return json_pack("{s:s, s:s, s:s, s:i, s:s}", "kernel", k->summary, "tool",
				 "roofline " RFL_VERSION, "measured_at", m->measured_at,
				 "accumulators", k->accumulators, "accumulate", k->dtype);
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:I}", "kernel", k->summary, "tool",
			 "roofline " RFL_VERSION, "measured_at", m->measured_at, "bytes_counted",
			 "explicit", "nt_stores", (int)k->nt_stores, "working_set_bytes",
			 (json_int_t)(run->slice_bytes * run->threads * arrays_of(k)));
}

static json_t *conditions_json(const struct rfl_measurement *m, const struct rfl_measured_run *run)
{
	char place[32];
	json_t *c = json_pack("{s:i, s:s, s:f}", "threads", run->threads, "pinning",
			      places_of(m, run->threads, place, sizeof(place)), "sustained_s",
			      run->window_s);

	if (c && run->kernel->kind != RFL_KERNEL_CHAIN && m->huge_pages != RFL_NOT_KNOWN &&
	    json_object_set_new(c, "huge_pages", json_boolean(m->huge_pages == RFL_YES)) != 0) {
		json_decref(c);
		return NULL;
	}
	return c;
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
	json_t *level = json_pack("{s:s, s:s, s:o}", "level", cell->level, "scope", cell->scope,
				  "gbs", ceiling_json(m, cell));

	if (level && cell->capacity_bytes > 0 &&
	    json_object_set_new(level, "capacity_bytes", json_integer(cell->capacity_bytes)) != 0) {
		json_decref(level);
		return NULL;
	}
	return level;
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

/* Set a member unless there is nothing to say. False out of memory. */
static bool put(json_t *object, const char *key, bool known, json_t *take_value)
{
	if (known)
		return json_object_set_new(object, key, take_value) == 0;
	json_decref(take_value);
	return true;
}

static json_t *device_json(const struct rfl_machine *m)
{
	json_t *d = json_pack("{s:s, s:i, s:o}", "name", rfl_measure_device(m), "units", m->cores,
			      "isa", isa_json(m->isa));

	if (d && put(d, "vendor", m->cpu_vendor, json_string(m->cpu_vendor)) &&
	    put(d, "memory_bytes", m->memory_bytes > 0, json_integer(m->memory_bytes)))
		return d;
	json_decref(d);
	return NULL;
}

static json_t *host_json(const struct rfl_machine *m)
{
	json_t *h = json_pack("{s:s, s:i}", "kernel", m->kernel, "numa_nodes", m->numa_nodes);

	if (h && put(h, "os", m->os, json_string(m->os)) &&
	    put(h, "governor", m->governor, json_string(m->governor)) &&
	    put(h, "virtualised", m->virtualised != RFL_NOT_KNOWN,
		json_boolean(m->virtualised == RFL_YES)) &&
	    put(h, "smt", m->smt != RFL_NOT_KNOWN, json_boolean(m->smt == RFL_YES))
#ifdef __VERSION__
	    && put(h, "compiler", true, json_string(__VERSION__))
#endif
	)
		return h;
	json_decref(h);
	return NULL;
}

/* What the schema has no place for: every loop's own figure, and the size of the arrays. */
static json_t *notes_json(const struct rfl_measurement *m)
{
	char llc[RFL_NUM_MAX];
	struct rfl_buf text;
	json_t *notes = json_array();
	size_t n = 0;

	rfl_buf_init(&text, 0);
	for (size_t i = 0; i < m->nruns; i++) {
		const struct rfl_measured_run *run = &m->runs[i];

		if (strcmp(run->key, "DRAM") != 0)
			continue;
		rfl_buf_printf(&text, "%s%s %.4g%s", n++ ? "; " : "", run->kernel->summary,
			       run->stats.max / GIGA, run->trial ? " (short look)" : "");
	}
	bool ok = notes != NULL;

	if (ok && n > 0) {
		ok = json_array_append_new(
			     notes,
			     json_sprintf("measured: DRAM by loop, fastest repeat in GB/s: %s",
					  rfl_buf_str(&text))) == 0;
		ok = ok &&
		     json_array_append_new(
			     notes,
			     json_sprintf("measured: DRAM arrays of %" PRId64
					  " bytes each, %s 4 times the last-level caches (%s%s)%s",
					  m->array_bytes, m->capped ? "less than" : "at least",
					  m->llc_assumed ? "not known, assumed " : "",
					  rfl_num_bytes((double)m->llc_bytes, llc, sizeof(llc)),
					  m->capped ? ": memory did not allow more" : "")) == 0;
	}
	rfl_buf_fini(&text);
	if (ok)
		return notes;
	json_decref(notes);
	return NULL;
}

static json_t *not_measured(void)
{
	return json_pack("{s:s, s:n, s:s}", "status", "unknown", "value", "reason",
			 "not measured (left out with --only)");
}

/* An environment must have a compute ceiling and DRAM, measured or not. */
static bool complete(json_t *compute, json_t *memory)
{
	bool dram = false;

	if (json_object_size(compute) == 0 &&
	    json_object_set_new(compute, "fp32.vector", not_measured()) != 0)
		return false;
	for (size_t i = 0; i < json_array_size(memory); i++) {
		const char *level =
			json_string_value(json_object_get(json_array_get(memory, i), "level"));

		dram = dram || (level && strcmp(level, "DRAM") == 0);
	}
	return dram ||
	       json_array_append_new(memory, json_pack("{s:s, s:s, s:o}", "level", "DRAM", "scope",
						       "node", "gbs", not_measured())) == 0;
}

json_t *rfl_measurement_json(const struct rfl_measurement *m)
{
	json_t *compute = json_object();
	json_t *memory = json_array();
	bool ok = compute && memory;

	for (size_t i = 0; i < m->ncells && ok; i++) {
		const struct rfl_measured_cell *cell = &m->cells[i];

		/* a cache that this machine does not have is not a gap */
		if (cell->level && cell->best == SIZE_MAX && !cell->failed &&
		    !cell->capacity_bytes && strcmp(cell->level, "DRAM") != 0)
			continue;
		ok = cell->level
			     ? json_array_append_new(memory, level_json(m, cell)) == 0
			     : json_object_set_new(compute, cell->key, ceiling_json(m, cell)) == 0;
	}
	if (!ok || !complete(compute, memory)) {
		json_decref(compute);
		json_decref(memory);
		return NULL;
	}
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind", "cpu", "device",
			 device_json(m->machine), "host", host_json(m->machine), "compute", compute,
			 "memory", memory, "notes", notes_json(m));
}
