/*
 * counters.h - what counters measured of a step, beside what is counted from the network: which
 * captures belong to which configuration of the ledger, how many steps they cover, whether the two
 * sides fit each other, and which of them a point stands on.
 *
 * A capture joins by environment, model, precision, batch and mode. What its label does not say is
 * taken from the row of the ledger with that very label, else from the only configuration
 * that it can be.
 */
#ifndef RFL_ROOFLINE_COUNTERS_H
#define RFL_ROOFLINE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "peaks/peaks.h"
#include "profile/capture.h"
#include "roofline/points.h"
#include "roofline/work.h"

/** Whose FLOPs the attained rate and the intensity are made of. */
enum rfl_flops_of {
	RFL_FLOPS_AUTO,  /**< the network's: the same work on every machine and by every library */
	RFL_FLOPS_MODEL, /**< the network's */
	RFL_FLOPS_COUNTERS, /**< all that the counters saw, padding and elementwise work included */
};
/** "auto", "model", "counters", NULL. */
extern const char *const rfl_flops_names[];

/** Outside of these the measured FLOPs over the counted ones are in doubt. */
#define RFL_COUNTERS_LEAST_RATIO 0.5
#define RFL_COUNTERS_MOST_RATIO  2.0
/** Measured bytes over those of operation after operation: more is in doubt. */
#define RFL_COUNTERS_MOST_BYTES 4.0
/** Less than this share of the kernels' time counted: not taken unless asked for. */
#define RFL_COUNTERS_COVERAGE 0.95

/** How many steps captures cover, as the user says. */
struct rfl_counter_steps {
	const char *label; /**< of a capture; NULL: all captures whose steps nothing else says */
	int64_t steps;     /**< > 0 */
};

/** Read "LABEL=N" or "N". The label is borrowed from `room`, a copy of the text. RFL_EUSAGE. */
enum rfl_rc rfl_counter_steps_parse(char *room, struct rfl_counter_steps *ret,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/** Captures, and what the user says of them. */
struct rfl_counter_inputs {
	const struct rfl_captures *captures;   /**< NULL: none were given */
	const struct rfl_counter_steps *steps; /**< borrowed; a label of no capture is reported */
	size_t nsteps;
	bool keep_going; /**< of two captures that count the same one is left out, and said */
};

/** FLOPs or bytes of a step, over the captures that counted them. */
struct rfl_measure {
	double value, lo, hi; /**< per step; NaN: not known */
	enum rfl_validity validity;
	double coverage; /**< share of the time in which it was counted; NaN: not known */
	char why[560];   /**< why it is not known, or in doubt; "" else */
};

/** What counters measured of a configuration. */
struct rfl_measured {
	struct rfl_measure flops, bytes;
	double ai; /**< FLOP per byte; NaN: not known, or they are not of the same launches */
	double part[RFL_QUANTITY_COUNT]; /**< the terms of the FLOPs, per step; NaN: not known */
	bool any;                        /**< a capture belongs to the configuration */
	bool refused;  /**< it could not be counted, and the reason says what to do */
	bool doubtful; /**< measured and counted do not fit: `doubt` and its `causes` */
	bool sure;     /**< the steps are the capture's own, or were given for it by its label */
	bool process;  /**< counted over a whole process: setup and others are in it */
	bool no_steps; /**< what was counted cannot be brought to one step */
	int64_t steps; /**< that the totals were divided by; -1: not known */
	int64_t repeats;
	char source[48];
	double zero_share;           /**< of the kernels' time; NaN: not known */
	double expected_share;       /**< of the FLOPs, in the run's own precision; NaN */
	enum rfl_quantity foreign;   /**< the largest part in another precision */
	struct rfl_buf zero_kernels; /**< all of them, with their shares, longest first */
	struct rfl_buf zero_longest; /**< the first few */
	struct rfl_buf doubt, causes, note;
};
void rfl_measured_fini(struct rfl_measured *m);

/** A ceiling for FLOPs of several precisions. */
struct rfl_mixed_roof {
	double flop_per_s; /**< the FLOP-weighted harmonic mean */
	char key[96];      /**< "0.97 fp16.matrix + 0.03 fp32.vector" */
};

/**
 * What the counted FLOPs can reach at most, part by part, each under the ceiling of its own
 * precision; parts below 0.5 % are left out.
 * @param key  the ceiling of the run's own precision
 * @return false: one precision alone, or a part has no ceiling in the file; `ret` is not touched
 */
bool rfl_counters_roof(const struct rfl_measured *m, const struct rfl_peaks_env *env,
		       const char *key, struct rfl_mixed_roof *ret);

/** Which ceiling a part of the FLOPs stands under: "tf32.matrix". NULL: of any precision. */
const char *rfl_counters_ceiling(enum rfl_quantity part);

/** Are the FLOPs of the precision that the ledger names? Not known counts as yes. */
bool rfl_counters_own_precision(const struct rfl_measured *m);

/** The columns of a point that show the counters, used or not. */
enum rfl_rc rfl_counters_columns(const struct rfl_measured *m, const struct rfl_work *work,
				 struct rfl_point *p, struct rfl_err *err) RFL_WARN_UNUSED;

/** What the counters add to a verdict, each part after "; ". */
void rfl_counters_verdict(const struct rfl_measured *m, const struct rfl_peaks_env *env,
			  const struct rfl_point *p, struct rfl_buf *out);

#endif
