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

/** The CPUs of the workers, and the arrays divided among them. Read-only for callers. */
struct rfl_bench {
	const struct rfl_machine *machine;
	int threads;                 /**< number of workers */
	const struct rfl_cpu **cpus; /**< hardware thread of each worker, by NUMA node */
	int64_t array_bytes;         /**< size of each of the three arrays */
	int64_t slice_bytes;         /**< size of each worker's slice of an array */
	int64_t llc_bytes;           /**< total size of the last-level caches, possibly assumed */
	bool capped;       /**< too little memory for 4 times `llc_bytes` (or the size requested) */
	bool touched;      /**< every worker has written to its slices */
	bool unbound;      /**< several NUMA nodes, but the system refuses to bind memory to them */
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
	/** After `least` repeats and this time, no repeat begins; 0: no limit. */
	double limit_s;
	int least;
	/** Size of each array that each thread uses; 0: its slice. A single thread can use more
	 * than its own, up to the end of the array. */
	int64_t slice_bytes;
	int first;  /**< the worker that runs the first thread; the others follow it */
	int slices; /**< the worker whose slice the first thread uses, likewise */
};

/** What happened on the CPUs during the repeats of a job. Sums, so that jobs can be added. */
struct rfl_interference {
	int repeats;      /**< counted */
	int disturbed;    /**< of these, how many had a thread off its CPU for over 1 % of the
			     time */
	int discarded;    /**< disturbed repeats that are not counted, because there are others */
	double thread_s;  /**< time of all repeats and threads */
	double off_s;     /**< part of it that threads were off their CPUs */
	double steal_s;   /**< time that the hypervisor withheld from these; NaN if unknown */
	double machine_s; /**< time of all hardware threads of the machine */
	double others_s;  /**< part of it used by other programs; NaN if unknown */
	long switches;    /**< number of times that a thread had to let another run */
};

/** The repeats of a job: as many undisturbed ones as were asked for, if the time limit allows; at
 * least 3 of them (or `repeats`, if less), or else the least disturbed. */
struct rfl_bench_result {
	double *rates; /**< byte/s or FLOP/s; room for `repeats` numbers, provided by the caller */
	double clock_hz; /**< median over threads and repeats, directly after each; NaN if unknown
			  */
	struct rfl_interference interference; /**< `repeats` is the number of rates */
};

/** Choose CPUs for the workers and reserve the arrays, without touching them yet.
 * @param machine      must outlive the bench
 * @param threads      1 to machine->ncpus; distinct cores are used first
 * @param array_bytes  size of each of the three arrays; 0: 4 times the last-level caches
 * @param ret          set on success only; release with rfl_bench_close() */
enum rfl_rc rfl_bench_open(const struct rfl_machine *machine, int threads, int64_t array_bytes,
			   struct rfl_bench **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_bench_close(struct rfl_bench *b);
RFL_AUTOPTR_TYPE(bench, close);

/** Run a job. The first job with arrays lets all workers write to their slices.
 * @param ret  apart from `rates`, unchanged on failure */
enum rfl_rc rfl_bench_run(struct rfl_bench *b, const struct rfl_bench_job *job,
			  struct rfl_bench_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Is most of the memory of the arrays in huge pages? Known after the arrays have been touched. */
enum rfl_known rfl_bench_huge_pages(const struct rfl_bench *b);
/** The CPUs of n workers, such as "cpu 0,1". @return out */
char *rfl_bench_places(const struct rfl_bench *b, int first, int n, char *out, size_t out_size);

#endif
