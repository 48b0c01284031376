/*
 * measure.h - measures the ceilings of this machine's processor, as an environment of peaks.json.
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

/** What can be measured: "fp32.vector", "fp32.vector.1core", ..., "L1", ..., "DRAM", NULL. */
extern const char *const rfl_measure_keys[];

struct rfl_measure_spec {
	const struct rfl_machine *machine;
	const char *const *only; /**< keys; NULL-terminated, or NULL for all */
	int threads;             /**< 0: one per usable core */
	int repeats;             /**< at least 3; 0: 21 */
	bool quick;              /**< repeats of 20 ms instead of 100 ms */
	/** Called before each run. May be NULL. */
	void (*progress)(const char *what, int done, int total, void *ctx);
	void *ctx;
};

/** One loop with one number of threads. */
struct rfl_measured_run {
	const struct rfl_peak_kernel *kernel;
	const char *key; /**< its ceiling */
	int threads;
	int64_t slice_bytes;    /**< of each array per thread; 0 for chains */
	double window_s;        /**< length of a repeat */
	bool trial;             /**< a short trial */
	struct rfl_stats stats; /**< byte/s or FLOP/s */
};

/** One ceiling. */
struct rfl_measured_cell {
	const char *key;
	const char *level;      /**< NULL: a compute ceiling */
	const char *scope;      /**< of a level */
	int64_t capacity_bytes; /**< of a cache; 0: DRAM */
	double scale;           /**< 1, or 1 / threads if the scope is one core */
	size_t best;            /**< index of the run that is the ceiling; SIZE_MAX: none */
	bool failed;            /**< tried, and failed */
	char reason[256];       /**< if there is none */
};

struct rfl_measurement {
	const struct rfl_machine *machine; /**< borrowed */
	size_t nruns;
	struct rfl_measured_run *runs;
	size_t ncells;
	struct rfl_measured_cell *cells;
	int64_t array_bytes; /**< of each of the three arrays */
	int64_t llc_bytes;   /**< last-level caches together */
	bool llc_assumed;    /**< llc_bytes is a guess on the large side */
	bool capped;         /**< too little memory for 4 times the last-level caches */
	enum rfl_known huge_pages;
	char places[256]; /**< "cpu 0,1" */
	int threads;
	char measured_at[24];
	double seconds; /**< that it took */
};

/**
 * Measure.
 * @param ret  set on success only; release with rfl_measurement_free()
 * @return RFL_OK when at least one ceiling was measured; RFL_EINVAL, RFL_ENOMEM, RFL_EUNAVAILABLE
 */
enum rfl_rc rfl_measure(const struct rfl_measure_spec *spec, struct rfl_measurement **ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_measurement_free(struct rfl_measurement *m);

/** The environment in the long form of peaks.json. New reference; NULL out of memory. */
json_t *rfl_measurement_json(const struct rfl_measurement *m) RFL_WARN_UNUSED;

/** The name under which this machine's processor is filed. */
const char *rfl_measure_device(const struct rfl_machine *m);

#endif
