/*
 * bench.h - internal: pinned threads that repeatedly run one kernel, each on memory that it touched
 * first, and the rate of each repeat.
 */
#ifndef RFL_PEAKS_BENCH_H
#define RFL_PEAKS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"
#include "peaks/kernels.h"

/** The CPUs of the threads, and the arrays divided among them. Read-only for callers. */
struct rfl_bench {
	const struct rfl_machine *machine;
	int threads;
	int *places;         /**< hardware thread of each worker */
	int64_t array_bytes; /**< size of each of the three arrays */
	int64_t slice_bytes; /**< size of each thread's slice of an array */
	int64_t llc_bytes;   /**< total size of the last-level caches, possibly assumed */
	bool capped;       /**< too little memory for 4 times `llc_bytes` (or the size requested) */
	bool touched;      /**< every worker has written to its slices */
	double *arrays[3]; /**< a, b, c; worker i owns the i-th slice of each */
	void *map;
	size_t map_bytes;
};

/** A run of one kernel with a fixed number of threads. */
struct rfl_bench_job {
	const struct rfl_peak_kernel *kernel;
	int threads;     /**< at most `threads` of the bench */
	int repeats;     /**< at least 1 */
	double window_s; /**< duration of a repeat */
	double settle_s; /**< warm-up time before the first repeat, for clock rates to settle */
	/** Size of each array that each thread uses; 0: its slice. Once all threads have touched
	 * their slices, a single thread can use more than its own. */
	int64_t slice_bytes;
};

/** Choose CPUs for the threads and reserve the arrays, without touching them yet.
 * @param machine      must outlive the bench
 * @param threads      1 to machine->ncpus; distinct cores are used first
 * @param array_bytes  size of each of the three arrays; 0: 4 times the last-level caches
 * @param ret          set on success only; release with rfl_bench_close() */
enum rfl_rc rfl_bench_open(const struct rfl_machine *machine, int threads, int64_t array_bytes,
			   struct rfl_bench **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_bench_close(struct rfl_bench *b);

/** Run a job. @param rates  byte/s or FLOP/s of each repeat, set on success only */
enum rfl_rc rfl_bench_run(struct rfl_bench *b, const struct rfl_bench_job *job, double *rates,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Is most of the memory of the arrays in huge pages? Known after the arrays have been touched. */
enum rfl_known rfl_bench_huge_pages(const struct rfl_bench *b);
/** The CPUs to which the first n threads are pinned, such as "cpu 0,1". @return out */
char *rfl_bench_places(const struct rfl_bench *b, int n, char *out, size_t out_size);

#endif
