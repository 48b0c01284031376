/*
 * gpu_bench.h - internal: repeats work on a GPU, timed by events of its own clock, with clocks,
 * power and temperature sampled meanwhile.
 */
#ifndef RFL_PEAKS_GPU_BENCH_H
#define RFL_PEAKS_GPU_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/stats.h"
#include "machine/cuda.h"
#include "machine/gpu.h"
#include "peaks/gpu_kernels.h"

enum { RFL_GPU_TILE = 65536 }; /* bytes of `operands` */

/** The device, its arrays and the durations. Read only for others. */
struct rfl_gpu_bench {
	struct rfl_cuda *cuda;
	struct rfl_sampler *sampler; /**< NULL: there is no NVML */
	struct rfl_cuda_event *begin, *end;
	rfl_cuda_address arrays[3];           /**< 0 before rfl_gpu_bench_arrays() */
	rfl_cuda_address operands, constants; /**< of arithmetic */
	int64_t array_bytes;                  /**< size of each array */
	bool capped;                          /**< too little memory for 32 times L2 */
	double window_s;    /**< duration of a repeat: a tenth of a run, at most 100 ms */
	double sustained_s; /**< least duration of a full run */
	int repeats;        /**< least number of repeats of a full run */
};

/** Work that can be repeated. */
struct rfl_gpu_work {
	enum rfl_rc (*enqueue)(void *ctx, struct rfl_err *err); /**< does not wait for the GPU */
	void *ctx;
	double amount; /**< bytes or FLOPs */
};

struct rfl_gpu_timed {
	struct rfl_stats stats;         /**< rates of the repeats; its max is the burst rate */
	double sustained;               /**< median of the second half of the repeats */
	double seconds;                 /**< of all repeats */
	struct rfl_gpu_samples samples; /**< NaN without NVML, and after a short trial */
};

/** Open the driver and the first device.
 * @param repeats      at least 3; 0: 21
 * @param sustained_s  least duration of a full run; 0: 2 s
 * @param ret          set on success only; release with rfl_gpu_bench_close() */
enum rfl_rc rfl_gpu_bench_open(int repeats, double sustained_s, struct rfl_gpu_bench **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
/** Accepts NULL. */
void rfl_gpu_bench_close(struct rfl_gpu_bench *b);
RFL_AUTOPTR_TYPE(gpu_bench, close);

/** The size of an array that does not stay in L2: 32 times L2, at least 256 MiB.
 * @param available  bytes of free memory, of which an array gets at most a quarter
 * @param capped     set to whether it would have to be larger */
int64_t rfl_gpu_array_bytes(int64_t l2_bytes, size_t available, bool *capped);
/** Allocate the arrays if they are not yet. */
enum rfl_rc rfl_gpu_bench_arrays(struct rfl_gpu_bench *b, struct rfl_err *err) RFL_WARN_UNUSED;

/** The mean time of `n` pieces of work in a row, after one that is not timed. */
enum rfl_rc rfl_gpu_bench_time(struct rfl_gpu_bench *b, const struct rfl_gpu_work *w, int64_t n,
			       double *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Repeat windows of work. @param trial  a short run, to choose among several */
enum rfl_rc rfl_gpu_bench_run(struct rfl_gpu_bench *b, const struct rfl_gpu_work *w, bool trial,
			      struct rfl_gpu_timed *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Run a loop; check what a memory loop wrote.
 * @param size  bytes of each array that a memory loop uses, a multiple of RFL_GPU_CHUNK */
enum rfl_rc rfl_gpu_bench_loop(struct rfl_gpu_bench *b, const struct rfl_gpu_kernel *k,
			       int64_t size, bool trial, struct rfl_gpu_timed *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Copy between host and device. */
enum rfl_rc rfl_gpu_bench_link(struct rfl_gpu_bench *b, bool to_device, bool pinned,
			       struct rfl_gpu_timed *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
