/*
 * verdict.h - the verdict on a point: what limits it, how far it is from its roof, and the words
 * for both. It is decided here only; every table, figure, page and text shows this decision.
 */
#ifndef RFL_ROOFLINE_VERDICT_H
#define RFL_ROOFLINE_VERDICT_H

#include "peaks/peaks.h"
#include "roofline/points.h"
#include "roofline/roofline.h"

RFL_API_BEGIN

/** Percentage of the roof below which neither ceiling explains the time. */
#define RFL_VERDICT_EXPLAINS 30

/** The smallest excess over the roof at which the rounded percentage is at least 101. */
#define RFL_VERDICT_VISIBLE 0.005

/** The minimum spread, which covers rounding and clock changes. Also used if no spread is
 * recorded. */
#define RFL_VERDICT_LEAST_SPREAD 0.01

/** Share of a step above which waiting for data is mentioned. */
#define RFL_VERDICT_DATA_WAIT 0.10

/** The words for a bound, in the order of the enum. */
struct rfl_bound_words {
	const char *word;      /**< column 'bound', tables and figures: "memory" */
	const char *adjective; /**< "memory-bound": a point is ... */
	const char *means;     /**< what follows for points with this bound, or "" */
};
extern const struct rfl_bound_words rfl_bound_words[RFL_BOUND_UNKNOWN];

struct rfl_point_verdict {
	enum rfl_bound bound;
	enum rfl_bound roof; /**< the lowest ceiling at the point's intensities: memory, L2, L1,
				compute, ridge or unknown */
	double attainable_gflops; /**< under the lowest ceiling; NaN: unknown */
	double share;             /**< of the attainable rate; without FLOPs, of the bandwidth */
	/** Visibly above the roof: within the uncertainty, unless `bound` is RFL_BOUND_ABOVE. */
	bool over;
};

/** The verdict on a point, from its numbers. A file written by hand or by an older version may lack
 * some of them. */
struct rfl_point_verdict rfl_point_verdict(const struct rfl_point *p);

/** The word for the bound of a point. NULL: unknown */
const char *rfl_point_bound(const struct rfl_point *p);

struct rfl_verdict_facts {
	const struct rfl_peaks_env *env;
	const struct rfl_peak *compute, *dram;
	bool factor;                  /**< FLOPs are 2 or 3 times the forward pass's, not counted */
	bool unstable, busy;          /**< a run has the flag of this name */
	double step_compulsory_bytes; /**< NaN: unknown */
	double sheet_clock_hz;        /**< boost clock of the device; 0 or NaN: unknown */
};

/** Set the columns of the ceilings themselves.
 * @param flop_per_s,status  of the compute ceiling, which may be of several precisions */
void rfl_point_set_roof(struct rfl_point *p, const char *key, double flop_per_s,
			enum rfl_peak_status status, const struct rfl_peak *dram,
			struct rfl_arena *texts);

/** Compare the rate, the intensity and the bytes of a point with its ceilings: set the columns from
 * attainable_gflops to headroom_s, attained_gbps, uncertainty and bound.
 * @param texts  of the point */
void rfl_point_judge(struct rfl_point *p, const struct rfl_verdict_facts *f,
		     struct rfl_arena *texts);

/** Look up the ceilings of a point in its environment, and set all columns that depend on them,
 * with the verdict. The point has env, precision, ai and attained_gflops, and may have a backend.
 * @param texts  of the point
 * @return RFL_OK; RFL_EMISSING names the ceiling and the command that supplies it */
enum rfl_rc rfl_point_assess(struct rfl_point *p, const struct rfl_peaks *peaks,
			     struct rfl_arena *texts, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the verdict on a judged point as a sentence; nothing if its bound is unknown. Above the
 * roof, it lists the likely causes. */
void rfl_verdict_write(const struct rfl_point *p, const struct rfl_verdict_facts *f,
		       struct rfl_buf *out);

RFL_API_END
#endif
