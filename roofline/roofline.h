/*
 * roofline.h - the roofline model. A roof consists of a bandwidth and a compute ceiling. A point
 * has an attainable rate, a bound and a distance to the roof.
 *
 *   attainable(AI) = min(AI x bandwidth, compute)        ridge point = compute / bandwidth
 *
 * points.h reads and writes the file of points, work.h counts the FLOPs and bytes of a step,
 * merge.h combines ledger, counts, counters and ceilings into points, and verdict.h describes a
 * point.
 */
#ifndef RFL_ROOFLINE_ROOFLINE_H
#define RFL_ROOFLINE_ROOFLINE_H

#include "complexity/count.h"
#include "peaks/peaks.h"

RFL_API_BEGIN

/** Relative distance to the ridge point within which both ceilings limit a point. */
#define RFL_ROOF_KNEE_BAND 0.10

/** Share of the compute ceiling above which the lower-bound estimator treats that ceiling as the
 * limit and moves the point to the ridge point. */
#define RFL_ROOF_NEAR_COMPUTE 0.90

struct rfl_roof {
	double compute_flop_per_s;   /**< > 0 */
	double bandwidth_byte_per_s; /**< > 0 */
};

/** What limits a point. rfl_roof_bound() returns the first three, rfl_point_verdict() all. */
enum rfl_bound {
	RFL_BOUND_MEMORY,
	RFL_BOUND_COMPUTE,
	RFL_BOUND_KNEE,            /**< both ceilings */
	RFL_BOUND_NEITHER,         /**< it is far below both */
	RFL_BOUND_ABOVE,           /**< it is above its roof by more than the uncertainty */
	RFL_BOUND_BY_CONSTRUCTION, /**< unknown: its intensity is a lower bound */
	RFL_BOUND_L2,              /**< the bandwidth of L2 */
	RFL_BOUND_L1,              /**< the bandwidth of L1 */
	RFL_BOUND_UNKNOWN,
};

/** The arithmetic intensity (FLOP/byte) at which the two ceilings meet. */
double rfl_roof_knee(const struct rfl_roof *roof);

/** The attainable FLOP/s at an arithmetic intensity; NaN if the intensity is NaN. */
double rfl_roof_attainable(const struct rfl_roof *roof, double ai);

/** The ceiling that limits a point. It is RFL_BOUND_KNEE if ai is within RFL_ROOF_KNEE_BAND of the
 * ridge point or if [ai_lo, ai_hi] (NaN: unknown) contains the ridge point. */
enum rfl_bound rfl_roof_bound(const struct rfl_roof *roof, double ai, double ai_lo, double ai_hi);

/** The smallest arithmetic intensity consistent with a measured rate: at most time x bandwidth
 * bytes can have been moved, so AI >= rate / bandwidth. At or above RFL_ROOF_NEAR_COMPUTE of the
 * compute ceiling, the result is at least the ridge point. */
double rfl_roof_lower_bound_ai(const struct rfl_roof *roof, double attained_flop_per_s);

/** The ceilings of peaks.json that apply to operations. */
struct rfl_ceiling {
	const char *backend;   /**< "cpu" */
	const char *precision; /**< "fp32", as in the ledger */
	const char *key;       /**< for convolutions, linear layers, attention: "fp32.vector" */
	/** A faster unit with the same precision and accumulator, used instead of `key` if the file
	 * has a usable value for it. NULL: none. */
	const char *faster;
	const char *elementwise; /**< for normalisation, activation, optimizer */
	bool inference;          /**< no training step uses it */
};

/** The i-th row, or NULL past the end. */
const struct rfl_ceiling *rfl_ceiling_at(size_t i);

/** @return RFL_OK; RFL_ENOTFOUND names backend and precision */
enum rfl_rc rfl_ceiling_find(const char *backend, const char *precision,
			     const struct rfl_ceiling **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The key to look up in an environment: `faster` if usable, else `key`; `elementwise` if a CPU has
 * no instructions for the precision, whose operations it then computes like these. Borrowed. */
const char *rfl_ceiling_key(const struct rfl_ceiling *ceiling, const struct rfl_peaks_env *env);

/*
 * The minimum time of an operation in a pass is the longest of
 *
 *   core FLOPs / compute ceiling of the precision
 *   elementwise operations / vector ceiling, if known
 *   bytes at one level of fusion / DRAM bandwidth
 *
 * Operations do not overlap, so their times are added.
 */

/** The ceilings of one environment for one precision. */
struct rfl_attain_roof {
	struct rfl_attained_roof base; /**< must be first, as expected by complexity/ */
	double compute_flop_per_s;     /**< > 0 */
	double vector_flop_per_s;    /**< > 0; NaN: unknown, elementwise operations take no time */
	double bandwidth_byte_per_s; /**< > 0 */
	const char *compute_key, *vector_key; /**< keys of the peaks file */
	char about[400];
};

/** The minimum time of an operation. */
struct rfl_attained rfl_attain(const struct rfl_attain_roof *roof, double core_flops,
			       double elementwise, double bytes);

/** Compute the minimum times of all nodes of a count, followed by the loss and the update. */
void rfl_attain_count(const struct rfl_attained_roof *roof, const struct rfl_count *count,
		      struct rfl_attained *times);

/**
 * Look up the ceilings.
 *
 * @param peaks  borrowed; must outlive the roof
 * @param env  an environment in `peaks`
 * @param precision  as in a ledger: "amp"
 * @param fusion  level of fusion at which bytes are counted
 * @param ret  set on success only; must not be moved afterwards
 * @return RFL_OK; RFL_EMISSING names the environment or all unknown cells, and the commands that
 * supply them; RFL_ENOTFOUND: the device does not have the precision
 */
enum rfl_rc rfl_attain_find(const struct rfl_peaks *peaks, const char *env, const char *precision,
			    enum rfl_fusion fusion, struct rfl_attain_roof *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END
#endif
