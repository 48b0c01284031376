/*
 * plan.h - internal: what will be counted on this machine, in which pass, and why the rest is
 * not. Every event of the tables is tried once before the workload runs.
 */
#ifndef RFL_PROFILE_PERF_PLAN_H
#define RFL_PROFILE_PERF_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/cpu_id.h"
#include "profile/perf/events.h"
#include "profile/perf/sys.h"

/* The machine as the perf source sees it; a test makes its own. */
struct rfl_perf_env {
	const struct rfl_perf_sys *sys;
	struct rfl_cpu_id id;
	uint64_t isa;   /* RFL_ISA_BIT()s */
	bool guest;     /* under a hypervisor */
	char brand[64]; /* as the processor names itself; "" when it does not */
};

void rfl_perf_env_init(struct rfl_perf_env *env);

/* One perf event to be opened. */
struct rfl_perf_target {
	uint32_t type;
	uint64_t config[3];
	int cpu; /* of a whole processor; -1: of every thread of this process */
};

struct rfl_perf_item {
	const char *metric, *unit;
	double scale; /* from a count to the unit */
	int slots, group, pass;
	bool is_uncore, is_flops, needs_kernel;
	bool user_only;  /* the kernel is not counted: not allowed */
	bool partial;    /* not every core has it */
	int limit;       /* of general counters of one uncore PMU; 0: none */
	size_t ntargets; /* 0: only its reason is known */
	struct rfl_perf_target *targets;
	const char *reason; /* why it cannot be counted; NULL: it can */
};

struct rfl_perf_plan {
	struct rfl_arena *arena;
	const struct rfl_perf_env *env;
	const struct rfl_perf_cpu *cpu;
	const char *formulas;
	size_t n, cap;
	struct rfl_perf_item *items;
	int passes;
	const char *no_dram; /* why memory controllers are not counted; NULL: they are */
};

/**
 * @param env        stays with the caller, as long as the plan
 * @param precision  of the run; NULL: fp32
 * @param ret        set on success only; release with rfl_perf_plan_free()
 * @return RFL_OK, also when nothing can be counted; RFL_ENOMEM
 */
enum rfl_rc rfl_perf_plan_new(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_plan **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_perf_plan_free(struct rfl_perf_plan *plan); /* accepts NULL */

/** Items that can be counted; `hardware`: without those of the kernel's software. */
size_t rfl_perf_plan_usable(const struct rfl_perf_plan *plan, bool hardware);

/** The first reason of a hardware event that cannot be counted; NULL when all can. */
const char *rfl_perf_plan_reason(const struct rfl_perf_plan *plan);

/** Fill what perf_event_open wants of a target. `leads`: it starts disabled, and its group with it.
 */
void rfl_perf_attr(const struct rfl_perf_item *item, const struct rfl_perf_target *target,
		   bool leads, struct perf_event_attr *ret);

/* ---- perf/message.c ---- */

/**
 * Why perf_event_open refused an event, what that means, and the cure.
 * @param error    errno
 * @param threads  that were to be counted; 0: not known
 */
enum rfl_rc rfl_perf_refused(const struct rfl_perf_env *env, const struct rfl_perf_item *item,
			     int error, size_t threads, struct rfl_err *err);

/** kernel.perf_event_paranoid; 99 when it cannot be read. */
int rfl_perf_paranoid(const char *root);

/* ---- perf/uncore.c ---- */

/** Add the events of the memory controllers to a plan. */
enum rfl_rc rfl_perf_plan_uncore(struct rfl_perf_plan *plan, struct rfl_err *err);

/* ---- perf/plan.c, for perf/uncore.c ---- */

/** Append an item; its texts must stay. NULL out of memory. */
struct rfl_perf_item *rfl_perf_plan_add(struct rfl_perf_plan *plan,
					const struct rfl_perf_item *item);
/** Open and close it once: sets reason, or user_only. */
enum rfl_rc rfl_perf_plan_try(struct rfl_perf_plan *plan, struct rfl_perf_item *item,
			      struct rfl_err *err);

#endif
