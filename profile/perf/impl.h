/*
 * impl.h - internals of the perf source: the system calls, which tests replace; the PMUs in /sys;
 * the tables of events; and the plan, which gives every event a pass or the reason why it cannot be
 * counted.
 */
#ifndef RFL_PROFILE_PERF_IMPL_H
#define RFL_PROFILE_PERF_IMPL_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/isa.h"
#include "profile/source.h"

/* ---- perf/sys.c ---- */

struct rfl_perf_reading {
	uint64_t value, enabled_ns, running_ns;
};

/* perf_event_open(2) and its file descriptors, the threads of this process, the clock, and the root
 * of /proc and /sys. Results and errno are as from the system calls. */
struct rfl_perf_sys {
	int (*open)(void *ctx, const struct perf_event_attr *attr, int tid, int cpu, int group);
	/* PERF_EVENT_IOC_ENABLE, _DISABLE */
	int (*control)(void *ctx, int fd, unsigned long request);
	/* 0, or -1 */
	int (*read)(void *ctx, int fd, struct rfl_perf_reading *ret);
	void (*close)(void *ctx, int fd);
	/* Store up to `max` thread ids of this process; returns the number of threads. */
	size_t (*threads)(void *ctx, int *tids, size_t max);
	double (*now_s)(void *ctx);
	void (*rest)(void *ctx, double seconds);
	void *ctx;
	const char *root; /* "" outside tests */
};

extern const struct rfl_perf_sys rfl_perf_sys_linux;

struct rfl_perf_pmu {
	char name[64]; /* "uncore_imc_0" */
	int number;    /* number at the end of the name; -1: none */
	uint32_t type;
	size_t ncpus;
	int *cpus; /* from cpumask: one CPU of each socket */
};

struct rfl_perf_code {
	uint64_t config[3];
	double bytes; /* bytes per count; NaN: unknown, or not a count of bytes */
	char terms[128];
};

/** The PMUs named `prefix` or `prefix`_<number>, sorted by number, in the arena. NULL if there are
 * none. */
enum rfl_rc rfl_perf_pmus_find(struct rfl_arena *arena, const char *root, const char *prefix,
			       struct rfl_perf_pmu **ret, size_t *n,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether the system has any PMU of a core ("cpu", "cpu_core", "armv8_pmuv3_0", ...). */
bool rfl_perf_has_core_pmu(struct rfl_arena *arena, const char *root);

/** The code of an event that the kernel names, otherwise of `terms` ("event=0x0a,rdwrmask=0x1");
 * either may be NULL. Returns RFL_ENOTFOUND, or RFL_EFORMAT with the file in the message. */
enum rfl_rc rfl_perf_code_find(const char *root, const char *pmu, const char *event,
			       const char *terms, struct rfl_perf_code *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Read the first line of a small file below the root, without its newline; false if it cannot be
 * read. @param path  a printf format */
RFL_PRINTF(4, 5)
bool rfl_perf_slurp(char *out, size_t size, const char *root, const char *path, ...);

/* ---- perf/events.c: events have the names that perf prints, so that live and imported counts
 * share the formulas (profile/formulas/cpu-*.formulas) ---- */

/* The table of events of a CPU. */
enum rfl_perf_kind {
	RFL_PERF_OTHER,      /* only events that all CPUs have */
	RFL_PERF_INTEL,      /* counts fp32 and fp64 */
	RFL_PERF_INTEL_FP16, /* also fp16 */
	RFL_PERF_ZEN2,       /* Zen 2 and 3: one count for all precisions */
	RFL_PERF_ZEN4,       /* one count for all precisions, including bf16 */
	RFL_PERF_ZEN5,       /* Zen 5 and 6: one count per precision */
	RFL_PERF_NEOVERSE,   /* one count for all precisions, by vector length */
	RFL_PERF_KIND_COUNT,
};

struct rfl_perf_cpu {
	const char *name;     /* "Ice Lake server" */
	const char *formulas; /* formula family; the plan selects Intel's by vector length */
	enum rfl_perf_kind kind;
	const char *no_flops; /* why its FLOPs are not counted; NULL: they are */
};

/** The row of a CPU; for an unknown CPU, a row of RFL_PERF_OTHER with the reason. */
const struct rfl_perf_cpu *rfl_perf_cpu_find(const struct rfl_cpu_id *id);
/** The i-th row of that table, by vendor and model; NULL past the end. */
const struct rfl_perf_cpu *rfl_perf_cpu_at(size_t i);

/* An event of a core or of the kernel, counted per thread. */
struct rfl_perf_event {
	const char *name; /* as perf writes it */
	const char *unit; /* SI base unit */
	double scale;     /* factor from a count to the unit */
	uint32_t type;    /* PERF_TYPE_... */
	uint64_t config;  /* umask << 8 | event for PERF_TYPE_RAW */
	int slots;        /* general counters that it occupies; 0: a fixed counter, or none */
	int group;        /* events of a group are counted at the same time; 0: alone */
	bool is_flops;
	uint64_t needs;    /* RFL_ISA_BIT()s of the instructions that it counts */
	bool needs_kernel; /* occurs in the kernel: 0 if only user mode is counted */
};

/** The i-th event of a CPU, in order of importance; NULL past the end. */
const struct rfl_perf_event *rfl_perf_event_at(enum rfl_perf_kind kind, size_t i);

/* An event of the memory controllers, counted per socket. Rows of one set belong together. */
struct rfl_perf_uncore {
	const char *pmu;    /* "uncore_imc": also uncore_imc_0, uncore_imc_1, ... */
	const char *event;  /* its name in /sys/.../events */
	const char *terms;  /* its code, used if the kernel does not name it; NULL: none */
	const char *metric; /* as perf writes it */
	double bytes; /* bytes per count unless the kernel gives a scale; 0: not a count of bytes */
	int set;      /* only the first available set is counted */
	int counters; /* counters of one such PMU; 0: enough for all events */
	bool (*fits)(const struct rfl_perf_cpu *cpu); /* NULL: any CPU */
};

/** The i-th row; NULL past the end. */
const struct rfl_perf_uncore *rfl_perf_uncore_at(size_t i);

/* ---- perf/plan.c: every event of the tables is tried once before the workload runs ---- */

/* The machine as seen by the perf source; tests provide their own. */
struct rfl_perf_env {
	const struct rfl_perf_sys *sys;
	struct rfl_cpu_id id;
	uint64_t isa;   /* RFL_ISA_BIT()s */
	bool guest;     /* runs under a hypervisor */
	bool program;   /* another process is counted: compare the instructions of its runs */
	bool multiplex; /* put all events into one pass */
	char brand[64]; /* the brand name of the CPU; "": none */
};

void rfl_perf_env_init(struct rfl_perf_env *env);

/* One perf event to be opened. */
struct rfl_perf_target {
	uint32_t type;
	uint64_t config[3];
	int cpu; /* the CPU to count as a whole; -1: every thread of this process */
};

#define RFL_PERF_GROUPS_MAX 32

struct rfl_perf_item {
	struct rfl_perf_event event; /* for uncore items, only name, unit and scale */
	int pass;
	bool is_uncore;
	bool user_only;  /* kernel mode may not be counted */
	bool partial;    /* only some cores have the event */
	int limit;       /* general counters of one uncore PMU; 0: no limit */
	size_t ntargets; /* 0 if there is a reason */
	struct rfl_perf_target *targets;
	const char *reason; /* why it cannot be counted; NULL: it can */
};

struct rfl_perf_plan {
	struct rfl_arena *arena; /* owns everything, this struct included */
	const struct rfl_perf_env *env;
	const struct rfl_perf_cpu *cpu;
	const char *formulas;
	size_t n;
	struct rfl_perf_item *items;
	int passes;
	size_t check;        /* the item counted in every pass of a program; SIZE_MAX: none */
	const char *no_dram; /* why memory controllers are not counted; NULL: they are */
};

/** @param env        borrowed until the plan is freed
 * @param precision  of the run; NULL: fp32
 * @return RFL_OK even if nothing can be counted; RFL_EFORMAT */
enum rfl_rc rfl_perf_plan_new(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_plan **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_perf_plan_free(struct rfl_perf_plan *plan); /* accepts NULL */
RFL_AUTOPTR_TYPE(perf_plan, free);

/** The number of items that can be counted. @param hardware  exclude software events */
size_t rfl_perf_plan_usable(const struct rfl_perf_plan *plan, bool hardware);

/** Fill the argument of perf_event_open. @param leads  the event leads a group: start disabled */
void rfl_perf_attr(const struct rfl_perf_item *item, const struct rfl_perf_target *target,
		   bool leads, struct perf_event_attr *ret);

/** Why perf_event_open refused an item with errno `error`, and the remedy.
 * @param threads  number of threads that should be counted */
const char *rfl_perf_refusal(const struct rfl_perf_plan *plan, const struct rfl_perf_item *item,
			     int error, size_t threads);

/** kernel.perf_event_paranoid; 99: cannot be read. */
int rfl_perf_paranoid(const char *root);

/* The counts of one event in one range, summed over threads or sockets. */
struct rfl_perf_tally {
	double value;                /* each reading scaled to the time it was enabled */
	double read;                 /* unscaled */
	double enabled_s, running_s; /* times of the readings with a counter */
	double lost_s;               /* enabled, but never on a counter */
};

/** A tally scaled to the whole range. @param share  set to the share of time on a counter, 0 to 1
 */
double rfl_perf_tally_value(const struct rfl_perf_tally *t, double *share);

enum rfl_rc rfl_source_perf__measure(const struct rfl_perf_env *env,
				     const struct rfl_source_request *request,
				     const struct rfl_workload *workload, struct rfl_captures *to,
				     struct rfl_err *err);
enum rfl_rc rfl_perf_look__at(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_status *ret, struct rfl_err *err);

#endif
