/*
 * measure_parts.h - internal: a measurement in progress. measure.c selects the ceilings and their
 * loops, measure_levels.c the working sets and cores of memory levels, measure_runs.c divides the
 * time and runs the loops.
 */
#ifndef RFL_PEAKS_MEASURE_PARTS_H
#define RFL_PEAKS_MEASURE_PARTS_H

#include "peaks/measure.h"

struct rfl_session {
	const struct rfl_measure_spec *spec;
	struct rfl_measurement *m;
	struct rfl_bench *bench;
	struct rfl_measured_cell *cell;     /* being measured */
	bool planning;                      /* runs are only counted */
	int counts[RFL_RUN_KINDS];          /* of the plan */
	double unit_s;                      /* time for both rounds of one loop */
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
enum rfl_rc rfl_measure__sweep(struct rfl_session *s, struct rfl_measured_cell *cell,
			       const char *isa, struct rfl_err *err) RFL_WARN_UNUSED;

/* Find the plateau among the runs from `begin` on with sizes of `least` to `most`: the neighbouring
 * sizes whose slowest is fastest. Sets plateau_bytes, or adds a doubt if they differ too much.
 * @return one of its runs, not the fastest; SIZE_MAX: there is no such size */
size_t rfl_measure__plateau(const struct rfl_session *s, struct rfl_measured_cell *cell,
			    size_t begin, int64_t least, int64_t most);

/* Is the DRAM bandwidth that of half as much memory? If it is lower, caches took part. */
enum rfl_rc rfl_measure__check_dram(struct rfl_session *s, struct rfl_measured_cell *cell,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/* Measure main memory from one core, from each socket, or from a NUMA node to the others, as the
 * scope and level of the cell say. */
enum rfl_rc rfl_measure__part(struct rfl_session *s, struct rfl_measured_cell *cell,
			      const char *isa, struct rfl_err *err) RFL_WARN_UNUSED;

/* Number of workers from `first` on that are on the same socket, or else the same NUMA node. */
int rfl_measure__alike(const struct rfl_bench *b, int first, bool socket);

/* Add a doubt to a ceiling. */
void rfl_measure__doubt(struct rfl_measured_cell *cell, const char *fmt, ...) RFL_PRINTF(2, 3);

#endif
