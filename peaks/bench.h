/*
 * bench.h - internal: a team of pinned threads that repeatedly runs one kernel over memory that
 * each thread touched first, and the rate of each repeat.
 */
#ifndef RFL_PEAKS_BENCH_H
#define RFL_PEAKS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"
#include "peaks/kernels.h"

/** The CPUs of the threads, and the arrays that they divide among themselves. Read only. */
struct rfl_bench {
	const struct rfl_machine *machine;
	int threads;
	int *places;         /**< hardware thread of each worker */
	int64_t array_bytes; /**< of each of the three arrays */
	int64_t slice_bytes; /**< of each array per thread */
	int64_t llc_bytes;   /**< the last-level caches together, possibly assumed */
	bool capped;         /**< too little memory for 4 times that (or the requested size) */
	bool touched;        /**< every worker has written its slices once */
	double *arrays[3];   /**< a, b, c; worker i owns the i-th slice of each */
	void *map;
	size_t map_bytes;
};

/** One kernel with one number of threads. */
struct rfl_bench_job {
	const struct rfl_peak_kernel *kernel;
	int threads;         /**< at most as many as the bench has */
	int repeats;         /**< at least 1 */
	double window_s;     /**< length of a repeat */
	double settle_s;     /**< run time before the first repeat, for clocks to settle */
	int64_t slice_bytes; /**< of each array per thread; 0: its whole share */
};

/**
 * Choose CPUs for the threads and reserve the arrays, without touching them yet.
 * @param machine      must outlive the bench
 * @param threads      1 to machine->ncpus; one per core first
 * @param array_bytes  of each of the three arrays; 0: 4 x last-level cache
 * @param ret          set on success only; release with rfl_bench_close()
 */
enum rfl_rc rfl_bench_open(const struct rfl_machine *machine, int threads, int64_t array_bytes,
			   struct rfl_bench **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_bench_close(struct rfl_bench *b);

/** Run a job. @param rates  byte/s or FLOP/s of each repeat, filled on success only */
enum rfl_rc rfl_bench_run(struct rfl_bench *b, const struct rfl_bench_job *job, double *rates,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Are most of the arrays in huge pages? Known once they have been touched. */
enum rfl_known rfl_bench_huge_pages(const struct rfl_bench *b);
/** "cpu 0,1": where the first n threads are pinned. @return out */
char *rfl_bench_places(const struct rfl_bench *b, int n, char *out, size_t out_size);

#endif
