/*
 * measure.h - measures the ceilings of this machine's processor, as an environment for peaks.json.
 */
#ifndef RFL_PEAKS_MEASURE_H
#define RFL_PEAKS_MEASURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/stats.h"
#include "machine/machine.h"
#include "peaks/kernels.h"

/** Ceilings that can be measured, NULL-terminated: "fp32.vector", ..., "L1", ..., "DRAM". */
extern const char *const rfl_measure_keys[];

struct rfl_measure_spec {
	const struct rfl_machine *machine;
	const char *const *only; /**< NULL-terminated keys, or NULL for all */
	int threads;             /**< 0: one per usable core */
	int repeats;             /**< at least 3; 0: 21 */
	bool quick;              /**< repeats of 20 ms instead of 100 ms */
	/** Called before each run. May be NULL. */
	void (*progress)(const char *what, int done, int total, void *ctx);
	void *ctx;
};

/** A run of one loop with a fixed number of threads. */
struct rfl_measured_run {
	const struct rfl_peak_kernel *kernel;
	const char *key; /**< key of the ceiling it measures */
	int threads;
	int64_t slice_bytes;    /**< bytes of each array per thread; 0 for chains */
	double window_s;        /**< duration of a repeat */
	bool trial;             /**< a short run to choose the loops for full runs */
	bool sweep;             /**< one of the working sets of its level, on all cores or one */
	struct rfl_stats stats; /**< rates in byte/s or FLOP/s */
};

/** One ceiling, measured or not. */
struct rfl_measured_cell {
	const char *key;
	const char *level;      /**< name of the memory level; NULL for a compute ceiling */
	const char *scope;      /**< "core" or "node"; NULL for a compute ceiling */
	int64_t capacity_bytes; /**< capacity of a cache; 0 if not a cache */
	double scale;           /**< 1, or 1 / threads if the scope is one core */
	size_t best;            /**< index of the fastest run; SIZE_MAX: none */
	bool failed;            /**< the measurement failed */
	char reason[256];       /**< why there is no ceiling */
};

struct rfl_measurement {
	const struct rfl_machine *machine; /**< borrowed */
	size_t nruns;
	struct rfl_measured_run *runs;
	size_t ncells;
	struct rfl_measured_cell *cells;
	int64_t array_bytes; /**< size of each of the three arrays */
	int64_t llc_bytes;   /**< total size of the last-level caches */
	bool llc_assumed;    /**< llc_bytes is a high estimate */
	bool capped;         /**< too little memory for 4 times the last-level caches */
	enum rfl_known huge_pages;
	char places[256]; /**< "cpu 0,1" */
	int threads;
	char measured_at[24];
	double seconds; /**< duration of the measurement */
};

/** Measure the selected ceilings.
 * @param ret  set on success only; release with rfl_measurement_free()
 * @return RFL_OK if at least one ceiling was measured; RFL_EINVAL, RFL_ENOMEM, RFL_EUNAVAILABLE */
enum rfl_rc rfl_measure(const struct rfl_measure_spec *spec, struct rfl_measurement **ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_measurement_free(struct rfl_measurement *m);

/** The measurement as an environment in the long form. New reference; NULL if out of memory. */
json_t *rfl_measurement_json(const struct rfl_measurement *m) RFL_WARN_UNUSED;

/** A rate in GFLOP/s or GB/s, rounded to six significant digits because measurements are not more
 * accurate. New reference; NULL if out of memory. */
json_t *rfl_measure_rate(double value) RFL_WARN_UNUSED;

/** The device name of this machine's processor in a peaks file. */
const char *rfl_measure_device(const struct rfl_machine *m);

#endif
