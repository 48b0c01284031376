/*
 * events.h - internal: which events are counted on which processor. The rows are data; their
 * names are those that perf prints, so that what we count and what perf counted goes through the
 * same formulas (profile/formulas/cpu-*.formulas).
 */
#ifndef RFL_PROFILE_PERF_EVENTS_H
#define RFL_PROFILE_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/cpu_id.h"

/* Which table of events a processor has. */
enum rfl_perf_kind {
	RFL_PERF_OTHER,      /* only what every processor has */
	RFL_PERF_INTEL,      /* counts fp32 and fp64 */
	RFL_PERF_INTEL_FP16, /* and fp16 */
	RFL_PERF_ZEN2,       /* Zen 2 and 3: one count for all precisions */
	RFL_PERF_ZEN4,       /* bf16 among them */
	RFL_PERF_ZEN5,       /* by precision */
	RFL_PERF_NEOVERSE,   /* one count for all precisions, by vector length */
	RFL_PERF_KIND_COUNT,
};

struct rfl_perf_cpu {
	const char *name;     /* "Ice Lake server" */
	const char *formulas; /* family of profile/formulas; Intel's is chosen by vector length */
	enum rfl_perf_kind kind;
	const char *no_flops; /* why its FLOPs are not counted; NULL: they are */
};

/** The row of a processor; one of RFL_PERF_OTHER with the reason when it is not in the table. */
const struct rfl_perf_cpu *rfl_perf_cpu_find(const struct rfl_cpu_id *id);

/** The i-th row of that table, by vendor and model; NULL behind the last. */
const struct rfl_perf_cpu *rfl_perf_cpu_at(size_t i);

/* An event of a core or of the kernel, counted per thread. */
struct rfl_perf_event {
	const char *name; /* as perf writes it */
	const char *unit; /* SI base unit behind the scale */
	double scale;
	uint32_t type;   /* PERF_TYPE_... */
	uint64_t config; /* umask << 8 | event for PERF_TYPE_RAW */
	int slots;       /* general counters that it takes; 0: a fixed one, or none */
	int group;       /* events of one group are counted at the same time; 0: alone */
	bool is_flops;
	uint64_t needs;    /* RFL_ISA_BIT()s: what cannot be executed needs no counter */
	bool needs_kernel; /* happens in the kernel: reads 0 where only user mode is counted */
};

/** The i-th event of a processor, in order of importance; NULL behind the last. */
const struct rfl_perf_event *rfl_perf_event_at(enum rfl_perf_kind kind, size_t i);

/* An event of the memory controllers, counted per socket. Rows of one set belong together. */
struct rfl_perf_uncore {
	const char *pmu;    /* "uncore_imc": also uncore_imc_0, uncore_imc_1, ... */
	const char *event;  /* as /sys/.../events names it; NULL: the kernel has no name for it */
	const char *terms;  /* our own code where the kernel has no name; NULL: none */
	const char *metric; /* as perf writes it */
	double bytes; /* the metric is bytes: of a count where the kernel gives no scale; 0: counts
		       */
	int set;      /* the first set that is there is counted */
	int counters; /* of one such PMU; 0: no limit that is reached */
	bool (*fits)(const struct rfl_perf_cpu *cpu); /* NULL: any processor */
};

/** The i-th row; NULL behind the last. */
const struct rfl_perf_uncore *rfl_perf_uncore_at(size_t i);

#endif
