/*
 * source.h - live counters. A source counts a workload that it is given as a callback and may run
 * several times, once per pass; between passes the workload puts itself back where it was.
 */
#ifndef RFL_PROFILE_SOURCE_H
#define RFL_PROFILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/capture.h"
#include "profile/cupti/lib.h"

/** Where the workload says what it is doing. Ranges follow each other and do not nest. */
struct rfl_ranges {
	/** From here on it is `name` ("fwd", "bwd/conv1"), of this kind. Ends the range before. */
	enum rfl_rc (*begin)(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
			     struct rfl_err *err);
	enum rfl_rc (*end)(struct rfl_ranges *r, struct rfl_err *err);
};

/** What is counted. All calls come from the thread that called the source. */
struct rfl_workload {
	/** One step: calls ranges->begin() and end() around its parts. Everything that it starts
	 * on a device is finished (sync) before it calls begin() or end(). */
	enum rfl_rc (*run)(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err);
	/** Remember, and go back to, the state before a step. NULL: run() changes nothing. */
	enum rfl_rc (*save)(void *ctx, struct rfl_err *err);
	enum rfl_rc (*restore)(void *ctx, struct rfl_err *err);
	void *ctx;
	/** Ranges that one run() has at most; 0: 16. */
	size_t max_ranges;
};

/* What is wanted of a GPU; a processor counts what it can at once. */
enum {
	RFL_SET_CORE = 1 << 0,  /**< time, DRAM, L2, L1 and matrix FLOPs of `precision`: one pass */
	RFL_SET_FLOPS = 1 << 1, /**< FLOPs outside the matrix units: one pass */
	RFL_SET_AUDIT = 1 << 2, /**< matrix FLOPs of all other data types: several passes */
	RFL_SET_LINKS = 1 << 3, /**< PCI Express and NVLink: one pass */
	RFL_SET_KERNELS = 1 << 4,   /**< times of single kernels; needs no counter permission */
	RFL_SET_SELF_TEST = 1 << 5, /**< a copy and a matrix product of known size, before */
};

/** "core", "flops", "audit", "links", "kernels", "self-test", NULL: in the order of the bits. */
extern const char *const rfl_counter_set_names[];
/** The name of one set. */
const char *rfl_counter_set_name(unsigned set);

struct rfl_source_request {
	unsigned sets;
	const char *precision;          /**< "fp32", "tf32", "amp", "bf16", "fp16" */
	const char *label;              /**< of the capture */
	double step_s;                  /**< of a step without counters; 0: not known */
	int device;                     /**< index of the GPU; 0 */
	struct rfl_cupti_places places; /**< where to look for CUPTI */
	struct rfl_source_early *early; /**< what open() returned for this request; NULL */
	/**
	 * Called when a part has been counted and another one follows: what comes may hang or end
	 * the process. May be NULL.
	 * @param so_far    one capture, as it would be if nothing followed
	 * @param within_s  if the rest takes longer than this, it hangs; 0: it may take any time
	 */
	void (*so_far)(const struct rfl_captures *so_far, double within_s, void *ctx);
	void *ctx; /**< of so_far() */
};

struct rfl_source_early;

struct rfl_source_ops {
	const char *name;    /**< "cupti", "perf" */
	const char *summary; /**< what it counts, and where */
	const char *device;  /**< "cuda", "cpu": the backend that it serves */
	const char *missing; /**< not in this build, and how to get it; NULL */
	/** Open what has to be there before the first kernel is loaded onto the device; the member
	 * may be NULL. What fails is reported by measure(). NULL: out of memory. */
	struct rfl_source_early *(*open)(const struct rfl_source_request *request);
	void (*close)(struct rfl_source_early *early);
	/** Can it count here, now? RFL_EUNAVAILABLE with the reason and the remedy. */
	enum rfl_rc (*probe)(const struct rfl_source_request *request, struct rfl_err *err);
	/** Run the workload as often as needed and append one capture. What could not be counted is
	 * unavailable in it, with the reason. RFL_OK when there is a capture, also when the
	 * workload failed after a part had been counted; RFL_EUNAVAILABLE when nothing could be
	 * counted; else what the workload returned. */
	enum rfl_rc (*measure)(const struct rfl_source_request *request,
			       const struct rfl_workload *workload, struct rfl_captures *to,
			       struct rfl_err *err);
};

extern const struct rfl_source_ops rfl_source_cupti, rfl_source_perf;

/** The i-th source, or NULL past the end. */
const struct rfl_source_ops *rfl_source_at(size_t i);

/** The source that serves a backend ("cuda", "cpu"), whether it works here or not. RFL_ENOTFOUND.
 */
enum rfl_rc rfl_source_for(const char *backend, const struct rfl_source_ops **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** What perf_event_open(2) can count of the processor of this machine, and why not the rest. */
struct rfl_perf_status {
	char processor[64];        /**< "Ice Lake server" */
	int paranoid;              /**< kernel.perf_event_paranoid; 99: cannot be read */
	size_t software, hardware; /**< events that can be counted */
	size_t flops, dram;        /**< of the hardware's: of FLOPs, of memory controllers */
	char no_hardware[512]; /**< why some of the core's events cannot be counted; "": all can */
	char no_flops[512];    /**< why FLOPs cannot; "": they can */
	char no_dram[512];     /**< why DRAM bytes cannot; "": they can */
};

/** Try every event once. RFL_EUNAVAILABLE where the system has no perf events at all; RFL_ENOMEM */
enum rfl_rc rfl_perf_look(struct rfl_perf_status *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- cupti/gpu_check.c: whether counters of a GPU can be read here: every condition in its order,
 * with what was found, why it does not hold, and what to do ---- */

enum rfl_gpu_check_state {
	RFL_GPU_CHECK_OK,
	RFL_GPU_CHECK_FAILED,
	RFL_GPU_CHECK_SKIPPED, /**< not asked: a condition before it does not hold */
};
/** "ok", "failed", "skipped", NULL. */
extern const char *const rfl_gpu_check_state_names[];

struct rfl_gpu_check_row {
	const char *what; /**< "driver", "device", "permission", ... */
	enum rfl_gpu_check_state state;
	const char *detail; /**< what was found: "CUDA 13.0"; NULL: nothing */
	const char *reason; /**< why it does not hold, and what to do; NULL when it does */
	enum rfl_rc rc;     /**< of a failure: RFL_EUNAVAILABLE when no counter can be read because
			     *   of it; RFL_EFAILED when some can, or read something wrong */
};

struct rfl_gpu_check_request {
	struct rfl_cupti_places places;
	int device;              /**< index of the GPU */
	const char *precision;   /**< of the core session; NULL: "fp32" */
	bool self_test;          /**< also run the copy and the matrix products of known size */
	const char *params_path; /**< NULL: /proc/driver/nvidia/params. For tests */
};

/** The report; read only. */
struct rfl_gpu_check {
	struct rfl_arena *arena;
	struct rfl_gpu_check_row rows[24]; /**< in order */
	size_t n;
	bool no_memory;
};

/** Check everything. RFL_OK whenever there is a report, whatever it says; RFL_ENOMEM. */
enum rfl_rc rfl_gpu_check_new(const struct rfl_gpu_check_request *request,
			      struct rfl_gpu_check **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_gpu_check_free(struct rfl_gpu_check *c); /* accepts NULL */

#endif
