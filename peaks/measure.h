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
#include "peaks/bench.h"
#include "peaks/kernels.h"

/** Ceilings that can be measured, NULL-terminated. rfl_measure() leaves those of an engine, such as
 * "fp32.gemm", to its caller. */
extern const char *const rfl_measure_keys[];

/** Time for a quick, a usual and a full measurement of all ceilings. */
#define RFL_MEASURE_QUICK_S 15.0
#define RFL_MEASURE_S       60.0
#define RFL_MEASURE_FULL_S  180.0

/** Two rounds of a measurement that differ by more than this are doubtful. */
#define RFL_MEASURE_DRIFT 0.03

struct rfl_measure_spec {
	const struct rfl_machine *machine;
	const char *const *only; /**< NULL-terminated keys, or NULL for the usual ones */
	bool all;                /**< also measure scalar and nofma ceilings, if `only` is NULL */
	int threads;             /**< 0: one per usable core */
	int repeats;             /**< at least 3; 0: as many as the time allows */
	double budget_s;         /**< time to divide among the ceilings; 0: RFL_MEASURE_S */
	/** Called before each run. May be NULL. @param when  "12 s left" */
	void (*progress)(const char *when, const char *what, void *ctx);
	void *ctx;
};

enum rfl_run_kind {
	RFL_RUN_FULL,
	RFL_RUN_TRIAL, /**< short, to choose the loops for full runs */
	RFL_RUN_SWEEP, /**< short, one of the working sets of its level, on all cores or one */
	RFL_RUN_HALF,  /**< short, on half of the memory, which should make no difference */
	RFL_RUN_KINDS,
};

/** A run of one loop with a fixed number of threads. */
struct rfl_measured_run {
	const struct rfl_peak_kernel *kernel;
	enum rfl_run_kind kind;
	int threads;
	int64_t slice_bytes;    /**< bytes of each array per thread; 0 for chains */
	int first, slices;      /**< first worker of the bench, and the owner of its memory */
	const char *key;        /**< key of the ceiling it measures */
	double window_s;        /**< duration of a repeat */
	double *rates;          /**< byte/s or FLOP/s of each repeat; owned by the measurement */
	struct rfl_stats stats; /**< of these */
	double round_max[2];    /**< fastest repeats of the two rounds; NaN: not run */
	double clock_hz;        /**< effective clock of the cores; NaN if unknown */
	struct rfl_interference interference;
	char places[256]; /**< "cpu 0,1" */
	char where[32];   /**< "socket 1", "node 0 to 1"; "" if it uses all cores or the first */
};

/** One ceiling, measured or not. */
struct rfl_measured_cell {
	const char *key;
	const char *level;        /**< name of the memory level; NULL for a compute ceiling */
	const char *scope;        /**< "core", "socket", "node", ...; NULL for a compute ceiling */
	int64_t capacity_bytes;   /**< capacity of a cache; 0 if not a cache */
	double scale;             /**< 1, or 1 / threads if the scope is one core */
	size_t best;              /**< index of the fastest run; SIZE_MAX: none */
	int64_t plateau_bytes[2]; /**< working sets about as fast as this ceiling; 0: no plateau */
	bool failed;              /**< the measurement failed */
	bool unsupported;         /**< the processor lacks the instructions */
	char reason[256];         /**< why there is no ceiling */
	size_t ndoubts;
	char doubts[6][160]; /**< why the ceiling may be wrong */
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
	char places[256]; /**< CPUs of all workers, "cpu 0,1" */
	int threads;
	char measured_at[24];
	double seconds; /**< duration of the measurement */
};

/** Measure the selected ceilings.
 * @param ret  set on success only; release with rfl_measurement_free()
 * @return RFL_OK if at least one ceiling was measured or is unsupported; RFL_ENOMEM,
 * RFL_EUNAVAILABLE */
enum rfl_rc rfl_measure(const struct rfl_measure_spec *spec, struct rfl_measurement **ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_measurement_free(struct rfl_measurement *m);

/** The measurement as an environment in the long form. New reference; NULL if out of memory. */
json_t *rfl_measurement_json(const struct rfl_measurement *m) RFL_WARN_UNUSED;

/* Parts of an environment in the long form, of any device: new references; NULL if out of memory.
 */

/** A rate in GFLOP/s or GB/s, rounded to six significant digits: measurements are not more
 * accurate. */
json_t *rfl_measure_rate(double value) RFL_WARN_UNUSED;

/** A measured ceiling. @param scale  factor of the statistics */
json_t *rfl_measure_ceiling(double value, const struct rfl_stats *stats, double scale,
			    json_t *take_method, json_t *take_conditions) RFL_WARN_UNUSED;

/** A ceiling without a value. */
json_t *rfl_measure_no_ceiling(const char *status, const char *reason) RFL_WARN_UNUSED;

/** An environment must contain a compute ceiling and DRAM: add those that are not there, as
 * unknown. @return false: out of memory */
bool rfl_measure_complete(json_t *compute, json_t *memory, const char *scope);

/** The device name of this machine's processor in a peaks file. */
const char *rfl_measure_device(const struct rfl_machine *m);

#endif
