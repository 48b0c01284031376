/* bench_impl.h - internal: what bench.c and bench_worker.c share. */
#ifndef RFL_PEAKS_BENCH_IMPL_H
#define RFL_PEAKS_BENCH_IMPL_H

#include <pthread.h>

#include "peaks/bench.h"

struct rfl_bench {
	const struct rfl_machine *machine;
	int threads;
	int *places; /* hardware thread of each worker */
	void *map;
	size_t map_bytes;
	double *arrays[3]; /* a, b, c; worker i owns the i-th slice of each */
	int64_t slice_bytes;
	int64_t llc_bytes;
	bool touched; /* every slice was written once by its worker */
	bool capped;
};

struct rfl_bench_span {
	double start_s, stop_s;
};

struct rfl_bench_worker {
	struct rfl_bench_team *team;
	int index;
	pthread_t thread;
	struct rfl_bench_span *spans; /* of each repeat */
	struct rfl_err err;
};

/* One job's threads. */
struct rfl_bench_team {
	struct rfl_bench *bench;
	const struct rfl_bench_job *job;
	struct rfl_bench_worker *workers;
	pthread_mutex_t lock;
	pthread_cond_t opened;
	enum { RFL_GATE_SHUT, RFL_GATE_OPEN, RFL_GATE_ABORT } gate;
	pthread_barrier_t barrier;
	uint64_t iters;       /* chains: iterations of a repeat; arrays: passes; set by worker 0 */
	double work_per_iter; /* bytes or FLOPs of one thread */
};

/* Start the threads, let them run the job, wait for them. */
enum rfl_rc rfl_bench__run_team(struct rfl_bench_team *team, struct rfl_err *err);

#endif
