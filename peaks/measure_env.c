/* measure_env.c - a measurement as an environment of peaks.json. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "peaks/measure.h"
#include "rfl_config.h"

struct rfl_measurement *rfl_measurement_new(void)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_measurement *m = rfl_arena_array(arena, 1, sizeof(*m));

	m->arena = arena;
	m->env = (struct rfl_peaks_env){ .kind = "gpu",
					 .virtualised = RFL_NOT_KNOWN,
					 .smt = RFL_NOT_KNOWN };
	return m;
}

void rfl_measurement_free(struct rfl_measurement *m)
{
	if (m)
		rfl_arena_free(m->arena);
}

const char *rfl_measure_device(const struct rfl_machine *m)
{
	return m->cpu_name ? m->cpu_name : m->architecture;
}

void rfl_measure_host(struct rfl_measurement *m, const struct rfl_machine *machine)
{
	m->env = (struct rfl_peaks_env){
		.kind = "cpu",
		.device = rfl_measure_device(machine),
		.units = machine->cores,
		.vendor = machine->cpu_vendor,
		.memory_bytes = machine->memory_bytes,
		.os = machine->os,
		.kernel = machine->kernel,
		.virtualised = machine->virtualised,
		.governor = machine->governor,
		.smt = machine->smt,
		.numa_nodes = machine->numa_nodes,
#ifdef __VERSION__
		.compiler = __VERSION__,
#endif
	};
	for (size_t i = 0; rfl_isa_name(i); i++)
		if ((machine->isa >> i) & 1) {
			const char **isa = rfl_arena_append(m->arena, &m->env.isa, &m->env.nisa);

			*isa = rfl_isa_name(i);
		}
}

struct rfl_measured_peak *rfl_measure_add(struct rfl_measurement *m, const char *key)
{
	struct rfl_measured_peak *one = rfl_arena_append(m->arena, &m->all, &m->n);

	*one = (struct rfl_measured_peak){ .key = key, .level.peak = rfl_peak_none };
	return one;
}

void rfl_measure_none(struct rfl_peak *peak, enum rfl_peak_status status, const char *take_reason)
{
	peak->status = status;
	peak->reason = take_reason;
}

void rfl_measure_value(const struct rfl_measurement *m, struct rfl_peak *peak, double value,
		       const struct rfl_stats *stats, double scale, const char *kernel)
{
	const double spread = (stats->max - stats->min) / stats->median;
	char now[RFL_TIME_ISO_SIZE];

	rfl_clock_iso(now);
	peak->status = RFL_PEAK_MEASURED;
	peak->value = value;
	peak->kernel = kernel;
	peak->tool = "roofline " RFL_VERSION;
	peak->measured_at = rfl_arena_strdup(m->arena, now);
	peak->stats = (struct rfl_peak_stats){ .n = (int64_t)stats->n,
					       .median = stats->median * scale,
					       .min = stats->min * scale,
					       .max = stats->max * scale,
					       .spread = round(spread * 1e4) / 1e4 };
}

void rfl_measure_shape(const struct rfl_measurement *m, struct rfl_peak *peak, int64_t n)
{
	peak->nshape = 3;
	peak->shape = rfl_arena_array(m->arena, 3, sizeof(*peak->shape));
	for (int i = 0; i < 3; i++)
		peak->shape[i] = n;
}

void rfl_measure_size(const struct rfl_measurement *m, struct rfl_peak_level *l, const char *scope,
		      int64_t bytes, double rate)
{
	struct rfl_peak_size *size = rfl_arena_append(m->arena, &l->sweep, &l->nsweep);

	*size = (struct rfl_peak_size){ .scope = scope, .working_set_bytes = bytes, .value = rate };
}

void rfl_measure_note(struct rfl_measurement *m, const char *take_text)
{
	const char **note = rfl_arena_append(m->arena, &m->env.notes, &m->env.nnotes);

	*note = take_text;
}

static void put(struct rfl_measurement *m, const struct rfl_measured_peak *one)
{
	struct rfl_peaks_env *env = &m->env;
	struct rfl_peak_compute *c;
	struct rfl_peak_level *l;

	if (one->level.level) {
		l = rfl_arena_append(m->arena, &env->levels, &env->nlevels);
		*l = one->level;
	} else {
		c = rfl_arena_append(m->arena, &env->compute, &env->ncompute);
		c->key = one->key;
		c->peak = one->level.peak;
	}
}

void rfl_measurement_finish(struct rfl_measurement *m)
{
	const bool cpu = strcmp(m->env.kind, "cpu") == 0;
	struct rfl_measured_peak required[] = {
		{ .key = "fp32.vector" },
		{ .key = "DRAM", .level = { .level = "DRAM", .scope = cpu ? "node" : "device" } },
	};
	bool has[RFL_ARRAY_LEN(required)] = { false };

	for (const struct rfl_measured_peak *one = m->all; one < m->all + m->n; one++) {
		if (one->other || one->absent)
			continue;
		has[0] |= !one->level.level;
		has[1] |= strcmp(one->key, "DRAM") == 0;
		put(m, one);
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(required); i++) {
		required[i].level.peak = rfl_peak_none;
		rfl_measure_none(&required[i].level.peak, RFL_PEAK_UNKNOWN,
				 "not measured (not selected with --only)");
		if (!has[i])
			put(m, &required[i]);
	}
}
