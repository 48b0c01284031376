/*
 * source.h - live counters. The caller passes the workload as a callback, which the source may run
 * several times, once per pass; between passes the workload restores its state.
 */
#ifndef RFL_PROFILE_SOURCE_H
#define RFL_PROFILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "profile/capture.h"
#include "profile/cupti/lib.h"

/** The workload marks its parts. Ranges follow each other and do not nest, except in a range of the
 * kind RFL_RANGE_PROCESS, which lasts until the run ends. */
struct rfl_ranges {
	/** Begin a range such as "fwd" or "bwd/conv1", and end the previous one. The last range
	 * ends with the run. */
	enum rfl_rc (*begin)(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
			     struct rfl_err *err);
	/** End the current range without beginning another. NULL: not supported */
	void (*end)(struct rfl_ranges *r);
	/** Add a value to a metric of the current range that the workload itself knows, in its
	 * first run. Texts are constant. NULL: not supported */
	void (*add)(struct rfl_ranges *r, const char *metric, const char *unit, double value,
		    const char *reason);
};

/** The code to be counted. All calls come from the thread that called the source. */
struct rfl_workload {
	/** One step: calls ranges->begin() before its parts, and synchronizes the device before
	 * each of these calls and at the end. */
	enum rfl_rc (*run)(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err);
	/** Before each run(): start the process to be counted, stopped before its exec (for perf
	 * only). NULL: the workload runs in this process. */
	enum rfl_rc (*start)(void *ctx, int *pid, struct rfl_err *err);
	/** Save and restore the state before a step. NULL: run() changes no state. */
	enum rfl_rc (*save)(void *ctx, struct rfl_err *err);
	enum rfl_rc (*restore)(void *ctx, struct rfl_err *err);
	void *ctx;
	/** The maximum number of ranges of one run(); 0: 16. */
	size_t max_ranges;
};

/* Sets of GPU counters; on a CPU, all available events are counted. */
enum {
	RFL_SET_CORE = 1 << 0,  /**< time, DRAM, L2, L1 and matrix FLOPs of `precision`: one pass */
	RFL_SET_FLOPS = 1 << 1, /**< FLOPs outside the Tensor Cores: one pass */
	RFL_SET_AUDIT = 1 << 2, /**< matrix FLOPs of all other data types: several passes */
	RFL_SET_LINKS = 1 << 3, /**< PCI Express and NVLink: one pass */
	RFL_SET_KERNELS = 1 << 4,   /**< the time of each kernel; needs no counter permission */
	RFL_SET_SELF_TEST = 1 << 5, /**< first count a copy and a GEMM of known size */
};

/* The sets that are counted in sessions. */
#define RFL_SETS_COUNTED (RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_AUDIT | RFL_SET_LINKS)

/** "core", "flops", "audit", "links", "kernels", "self-test", NULL: in the order of the bits. */
extern const char *const rfl_counter_set_names[];
/** The name of one set. */
const char *rfl_counter_set_name(unsigned set);

struct rfl_source_request {
	unsigned sets;
	const char *precision;          /**< "fp32", "tf32", "amp", "bf16", "fp16" */
	const char *label;              /**< label of the capture */
	double step_s;                  /**< time of a step without counters; 0: unknown */
	int device;                     /**< index of the GPU */
	struct rfl_cupti_places places; /**< where to look for CUPTI */
	struct rfl_source_early *early; /**< the result of open() for this request, or NULL */
	/* for a workload that starts a process: */
	bool multiplex;        /**< count all events in one run, in turns */
	const char *no_events; /**< why nothing is counted; NULL: all available events are */
	const char *no_flops, *no_dram; /**< the same for events of FLOPs and of DRAM */
	/** Receives the results so far before the next part is counted, because counting may hang
	 * or end the process. May be NULL.
	 * @param so_far    one complete capture
	 * @param within_s  time limit of the rest, after which it is considered hung; 0: no limit
	 */
	void (*so_far)(const struct rfl_captures *so_far, double within_s, void *ctx);
	void *ctx; /**< passed to so_far() */
};

struct rfl_source_early;

struct rfl_source_ops {
	const char *name;    /**< "cupti", "perf" */
	const char *summary; /**< the counted quantities and the supported devices */
	const char *device;  /**< the supported backend: "cuda", "cpu" */
	/** Prepare before the first kernel is loaded onto the device; the member may be NULL.
	 * measure() reports a failure. */
	struct rfl_source_early *(*open)(const struct rfl_source_request *request);
	void (*close)(struct rfl_source_early *early);
	/** Check whether the source can count; if not, return RFL_EUNAVAILABLE with the remedy. */
	enum rfl_rc (*probe)(const struct rfl_source_request *request, struct rfl_err *err);
	/** Run the workload as often as needed and append one capture. Values that could not be
	 * counted are unavailable in it, with the reason. Returns RFL_OK if there is a capture,
	 * even if the workload failed after a part had been counted; RFL_EUNAVAILABLE if nothing
	 * could be counted; otherwise the error of the workload. */
	enum rfl_rc (*measure)(const struct rfl_source_request *request,
			       const struct rfl_workload *workload, struct rfl_captures *to,
			       struct rfl_err *err);
};

extern const struct rfl_source_ops rfl_source_cupti, rfl_source_perf;

/** The i-th source, or NULL past the end. */
const struct rfl_source_ops *rfl_source_at(size_t i);
/** The source that supports a backend ("cuda", "cpu"), even if it does not work on this machine.
 * Returns RFL_ENOTFOUND if none does. */
enum rfl_rc rfl_source_for(const char *backend, const struct rfl_source_ops **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The events that perf_event_open(2) can count on this machine, and why others are unavailable. */
struct rfl_perf_status {
	char processor[64];        /**< "Ice Lake server" */
	int paranoid;              /**< kernel.perf_event_paranoid; 99: cannot be read */
	size_t software, hardware; /**< numbers of events that can be counted */
	size_t flops, dram;        /**< hardware events for FLOPs, and for DRAM bytes */
	/* the reason why some cannot be counted; "": all can */
	char no_hardware[512], no_flops[512], no_dram[512];
};

/** Try every event once. Returns RFL_EUNAVAILABLE if the system has no perf events at all. */
enum rfl_rc rfl_perf_look(struct rfl_perf_status *ret, struct rfl_err *err) RFL_WARN_UNUSED;

enum rfl_gpu_check_state {
	RFL_GPU_CHECK_OK,
	RFL_GPU_CHECK_FAILED,
	RFL_GPU_CHECK_SKIPPED, /**< not checked, because an earlier condition failed */
};
/** "ok", "failed", "skipped", NULL. */
extern const char *const rfl_gpu_check_state_names[];

struct rfl_gpu_check_row {
	const char *what; /**< "driver", "device", "permission", ... */
	enum rfl_gpu_check_state state;
	const char *detail; /**< the finding: "CUDA 13.0"; NULL: none */
	const char *reason; /**< why it failed or was skipped, and the remedy; NULL if OK */
	enum rfl_rc rc; /**< for a failure: RFL_EUNAVAILABLE if it makes all counters unreadable;
			 *   RFL_EFAILED if only some, or if a value is wrong */
};

struct rfl_gpu_check_request {
	struct rfl_cupti_places places;
	int device;              /**< index of the GPU */
	const char *precision;   /**< precision of the core session; NULL: "fp32" */
	bool self_test;          /**< also count copies and GEMMs of known size */
	const char *params_path; /**< for tests; NULL: /proc/driver/nvidia/params */
};

/** The report; read only. */
struct rfl_gpu_check {
	struct rfl_arena *arena;           /**< owns everything, this struct included */
	struct rfl_gpu_check_row rows[24]; /**< in the order of checking */
	size_t n;
};

/** Check all conditions. */
struct rfl_gpu_check *
rfl_gpu_check_new(const struct rfl_gpu_check_request *request) RFL_WARN_UNUSED;
void rfl_gpu_check_free(struct rfl_gpu_check *c); /* accepts NULL */
RFL_AUTOPTR_TYPE(gpu_check, free);

#endif
