/*
 * measure.h - measures the ceilings of this machine, as an environment for peaks.json: of the
 * CPU here, of a GPU in gpu.h.
 */
#ifndef RFL_PEAKS_MEASURE_H
#define RFL_PEAKS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/stats.h"
#include "machine/machine.h"
#include "peaks/bench.h"
#include "peaks/kernels.h"
#include "peaks/peaks.h"

/** Ceilings that can be measured, NULL-terminated. rfl_measure() leaves ceilings of an engine, such
 * as "fp32.gemm", to its caller. */
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

/** A ceiling, measured or not, or another run that competed for it. */
struct rfl_measured_peak {
	const char *key;             /**< as in --only: "fp32.vector", "DRAM.1core" */
	bool other;                  /**< not the ceiling */
	bool absent;                 /**< a level or part that this machine does not have */
	struct rfl_peak_level level; /**< for a compute ceiling, only `peak` */
};

struct rfl_measurement {
	/** The values of machine and device, and notes. The ceilings are added at the end. */
	struct rfl_peaks_env env;
	size_t n;
	struct rfl_measured_peak *all; /**< by key; other runs follow their ceiling */
	int64_t array_bytes;           /**< size of each array in main memory; 0: unknown */
	bool capped;                   /**< less than desired, for lack of memory */
	char places[256];              /**< CPUs of all workers, "cpu 0,1" */
	double seconds;                /**< duration of the measurement */
	struct rfl_arena *arena;       /**< owns all of this */
};

/** A measurement without anything, for a GPU. Release with rfl_measurement_free(). */
struct rfl_measurement *rfl_measurement_new(void);

/** Accepts NULL. */
void rfl_measurement_free(struct rfl_measurement *m);
RFL_AUTOPTR_TYPE(measurement, free);

/** Make it a measurement of this machine's CPU, whose texts it shares. */
void rfl_measure_host(struct rfl_measurement *m, const struct rfl_machine *machine);

/** Measure the selected ceilings of the CPU.
 * @return RFL_OK if at least one ceiling was measured or is unsupported; RFL_EUNAVAILABLE */
enum rfl_rc rfl_measure(const struct rfl_measure_spec *spec, struct rfl_measurement *m,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Put the ceilings into the environment, in the long form. */
void rfl_measurement_finish(struct rfl_measurement *m);

/* Parts of a measurement of any device. */

/** Add a ceiling or another run, without anything. The next call may move it. */
struct rfl_measured_peak *rfl_measure_add(struct rfl_measurement *m, const char *key);

/** Set value, statistics and method. @param scale  factor of the statistics */
void rfl_measure_value(const struct rfl_measurement *m, struct rfl_peak *peak, double value,
		       const struct rfl_stats *stats, double scale, const char *kernel);

/** Set why there is no value. @param take_reason  in the arena, or constant */
void rfl_measure_none(struct rfl_peak *peak, enum rfl_peak_status status, const char *take_reason);

/** Set the shape of products of n x n matrices. */
void rfl_measure_shape(const struct rfl_measurement *m, struct rfl_peak *peak, int64_t n);

/** Add a working set that was tried. */
void rfl_measure_size(const struct rfl_measurement *m, struct rfl_peak_level *l, const char *scope,
		      int64_t bytes, double rate);

/** Add a note. @param take_text  in the arena, or constant */
void rfl_measure_note(struct rfl_measurement *m, const char *take_text);

/** The device name of this machine's CPU in a peaks file. */
const char *rfl_measure_device(const struct rfl_machine *m);

#endif
