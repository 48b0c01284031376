/*
 * measure_parts.h - internal: a measurement in progress. measure.c selects the ceilings and their
 * loops, measure_levels.c the working sets and cores of memory levels, measure_runs.c divides the
 * time and runs the loops, measure_result.c judges the runs.
 */
#ifndef RFL_PEAKS_MEASURE_PARTS_H
#define RFL_PEAKS_MEASURE_PARTS_H

#include "peaks/measure.h"

enum { RFL_MEASURE__RUNS_MAX = 2048 };

enum rfl_run_kind {
	RFL_RUN_FULL,
	RFL_RUN_TRIAL, /* short, to choose the loops for full runs */
	RFL_RUN_SWEEP, /* short, one of the working sets of its level, on all cores or one */
	RFL_RUN_HALF,  /* short, on half of the memory, which should make no difference */
	RFL_RUN_KINDS,
};

/* A run of one loop with a fixed number of threads. */
struct rfl_measured_run {
	const struct rfl_peak_kernel *kernel;
	enum rfl_run_kind kind;
	int threads;
	int64_t slice_bytes;    /* bytes of each array per thread; 0 for chains */
	int first, slices;      /* first worker of the bench, and the owner of its memory */
	const char *key;        /* key of the ceiling it measures */
	double window_s;        /* duration of a repeat */
	double *rates;          /* byte/s or FLOP/s of each repeat */
	struct rfl_stats stats; /* of these */
	double round_max[2];    /* fastest repeats of the two rounds; NaN: not run */
	double clock_hz;        /* effective clock of the cores; NaN if unknown */
	struct rfl_interference interference;
	const char *where; /* "socket 1", "node 0 to 1"; "" if it uses all cores or the first */
};

/* A ceiling. */
struct rfl_measured_cell {
	const char *key;
	struct rfl_peak_level as; /* without a name: a compute ceiling */
	double scale;             /* 1, or 1 / threads if the scope is one core */
	size_t best;              /* index of the fastest run; SIZE_MAX: none */
};

struct rfl_session {
	const struct rfl_measure_spec *spec;
	struct rfl_measurement *m;
	struct rfl_bench *bench;
	size_t ncells, nruns;
	struct rfl_measured_cell *cells, *cell; /* all, and the one being measured */
	struct rfl_measured_run *runs;
	bool llc_assumed;          /* the size of the last-level caches is a high estimate */
	bool planning;             /* runs are only counted */
	int counts[RFL_RUN_KINDS]; /* of the plan */
	double unit_s;             /* time for both rounds of one loop */
	double begin_s, planned_s, spent_s; /* spent: planned time of the runs that are done */
};

/* A loop that is at least this fast, compared with the best, gets a full run. */
#define RFL_RUN_NEAR 0.95

/* Run a loop and add the result to the list of runs; of a full run, the first round.
 * @param run  kernel, kind, threads; slice_bytes (0: its slice), first, slices, where
 * @param ret  index of the run */
enum rfl_rc rfl_measure__run(struct rfl_session *s, struct rfl_measured_run run, size_t *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* The second round of the best run of the session's cell. */
enum rfl_rc rfl_measure__again(struct rfl_session *s, struct rfl_err *err) RFL_WARN_UNUSED;

/* Divide the time among the runs that were counted while planning. */
void rfl_measure__divide(struct rfl_session *s);

/* The fastest repeat of a run; 0 for SIZE_MAX. */
double rfl_measure__fastest(const struct rfl_session *s, size_t run);

/* Can the loop run here, and does it measure this ceiling? */
bool rfl_measure__serves(const struct rfl_peak_kernel *k, const struct rfl_measured_cell *cell);

/* Measure a cache, or the curve of DRAM, which follows its ceiling. */
enum rfl_rc rfl_measure__sweep(struct rfl_session *s, const char *isa,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/* Find the plateau among the runs from `begin` on with sizes of `least` to `most`: the neighbouring
 * sizes whose slowest is fastest. Sets plateau_bytes, or adds a doubt if they differ too much.
 * @return one of its runs, not the fastest; SIZE_MAX: there is no such size */
size_t rfl_measure__plateau(const struct rfl_session *s, size_t begin, int64_t least, int64_t most);

/* Is the DRAM bandwidth the same with half as much memory? If it is lower, caches took part. */
enum rfl_rc rfl_measure__check_dram(struct rfl_session *s, struct rfl_err *err) RFL_WARN_UNUSED;

/* Measure main memory from one core, from each socket, or from a NUMA node to the others, as the
 * scope and level of the cell say. */
enum rfl_rc rfl_measure__part(struct rfl_session *s, const char *isa,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/* Set why the ceiling being measured is unknown. @param take_reason  in the arena, or constant */
void rfl_measure__unknown(const struct rfl_session *s, const char *take_reason);

/* Add a doubt to the ceiling being measured. */
void rfl_measure__doubt(const struct rfl_session *s, const char *fmt, ...) RFL_PRINTF(2, 3);

/* Judge the repeats of the ceiling being measured. */
void rfl_measure__judge(const struct rfl_session *s);

/* Add all ceilings, and notes on them, to the measurement. */
void rfl_measure__result(struct rfl_session *s);

#endif
