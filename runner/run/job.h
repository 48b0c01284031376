/*
 * job.h - inside runner/: a measurement in the child, and what it tells the parent of itself.
 */
#ifndef RFL_RUNNER_RUN_JOB_H
#define RFL_RUNNER_RUN_JOB_H

#include "runner/run/parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a measurement owns (run/measure.c). */
struct rfl_run__job {
	struct rfl_run_config config; /* less what the device has no use for */
	rfl_run__emit_fn emit;
	void *ctx;
	struct rfl_net *net;
	struct rfl_engine_list *list;
	struct rfl_run__choice choice;
	struct rfl_engine *engine;
	char pci_bus_id[32];         /* of the device */
	struct rfl_sampler *sampler; /* of a GPU; NULL: not possible */
	struct rfl_err no_samples;   /* why */
	struct rfl_gpu_samples gpu;
	struct rfl_data_stats data_stats; /* of the window */
	struct rfl_data *data;
	struct rfl_nvtx *nvtx;
	struct rfl_burst burst;
	double setup_s;
	rfl_run_source_fn source_for;
	const struct rfl_source_ops
		*source;                /* of counters; NULL: none is asked, or there is none */
	struct rfl_source_early *early; /* what it opened before the engine */
	size_t counters_len;            /* of the table that was sent last */
};

/* ---- one of several processes (run/world.c); alone these do nothing ---- */

/** Meet the others, and agree with them on the number of the run ("met"). */
enum rfl_rc rfl_run__join(struct rfl_run__job *job, struct rfl_err *err);
/** Wait until all are here. */
enum rfl_rc rfl_run__meet(struct rfl_run__job *job, struct rfl_err *err);
/** Behind the window: tell the others what was measured here; rank 0 reports what all have measured
 * together ("world_steps", "world"). */
enum rfl_rc rfl_run__unite(struct rfl_run__job *job, struct rfl_err *err);

/* ---- events (run/tell.c): what cannot be said for lack of memory the parent misses ---- */

void rfl_run__tell_progress(struct rfl_run__job *job, const char *phase, int64_t done,
			    int64_t total);
/** Which engine, on which device, and why. */
void rfl_run__tell_engine(struct rfl_run__job *job);
/** What the engine says of its device and of itself. */
enum rfl_rc rfl_run__tell_device(struct rfl_run__job *job, struct rfl_err *err);
/** The first step can begin. */
void rfl_run__tell_ready(struct rfl_run__job *job);
/** Steps, times and memory: from here on the run is measured, whatever comes. */
enum rfl_rc rfl_run__tell_measured(struct rfl_run__job *job, struct rfl_err *err);
/** What was learned of the mean behind the window; nothing when nobody asked. */
void rfl_run__tell_until(struct rfl_run__job *job);
enum rfl_rc rfl_run__tell_counters(struct rfl_run__job *job, const struct rfl_captures *captures,
				   struct rfl_err *err);
/** What is counted so far, should nothing more come: so_far() of source.h, with the job as ctx. */
void rfl_run__tell_so_far(const struct rfl_captures *so_far, double within_s, void *ctx);
/** The counted steps are over. */
void rfl_run__tell_counted(struct rfl_run__job *job, const struct rfl_err *end);
void rfl_run__tell_failed(struct rfl_run__job *job, const struct rfl_err *end);

#ifdef __cplusplus
}
#endif
#endif
