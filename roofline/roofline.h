/*
 * roofline.h - the model itself: a roof is a bandwidth and a compute ceiling; under it a point has
 * an attainable rate, a bound and a distance. Read this first in the room.
 *
 *   attainable(AI) = min(AI x bandwidth, compute)        knee = compute / bandwidth
 *
 * points.h is the file of points, work.h the FLOPs and bytes of a step as they are counted, merge.h
 * joins ledger, counts, counters and ceilings into points, verdict.h says in words what a point
 * shows. Nothing in this header allocates.
 */
#ifndef RFL_ROOFLINE_ROOFLINE_H
#define RFL_ROOFLINE_ROOFLINE_H

#include "complexity/count.h"
#include "peaks/peaks.h"

/** A point this near to the knee (as a ratio) has no single bound. */
#define RFL_ROOF_KNEE_BAND 0.10

/** From this share of the compute ceiling on, the lower-bound estimator takes the compute ceiling
 * for the limit and moves the point to the knee. */
#define RFL_ROOF_NEAR_COMPUTE 0.90

struct rfl_roof {
	double compute_flop_per_s;   /**< > 0 */
	double bandwidth_byte_per_s; /**< > 0 */
};

enum rfl_bound { RFL_BOUND_MEMORY, RFL_BOUND_COMPUTE, RFL_BOUND_KNEE };

/** "memory", "compute", "knee", NULL: in the order of the enum. */
extern const char *const rfl_bound_names[];

/** The arithmetic intensity (FLOP/byte) at which the two ceilings meet. */
double rfl_roof_knee(const struct rfl_roof *roof);

/** The most that an intensity can reach, FLOP/s. NaN for an intensity that is not known. */
double rfl_roof_attainable(const struct rfl_roof *roof, double ai);

/** Which ceiling limits an intensity: knee when ai is within RFL_ROOF_KNEE_BAND of the knee or when
 * [ai_lo, ai_hi] (NaN: not known) contains it. */
enum rfl_bound rfl_roof_bound(const struct rfl_roof *roof, double ai, double ai_lo, double ai_hi);

/**
 * The least intensity that a measured rate allows: the bytes cannot have been more than time x
 * bandwidth, so AI >= rate / bandwidth. At RFL_ROOF_NEAR_COMPUTE of the compute ceiling or above
 * the point is moved to the knee if it lies left of it.
 */
double rfl_roof_lower_bound_ai(const struct rfl_roof *roof, double attained_flop_per_s);

/** One row of the table that says which ceilings of peaks.json operations stand under. */
struct rfl_ceiling {
	const char *backend;   /**< "cpu" */
	const char *precision; /**< "fp32", as in the ledger */
	const char *key; /**< "fp32.vector": of convolutions, linear layers, attention products */
	/** Unit of the same precision and accumulator that is faster where a device has it; stands
	 * in for `key` only when the file has a usable value for it. NULL: none. */
	const char *faster;
	const char *elementwise; /**< key of normalisation, activation, optimizer */
};

/** The i-th row, or NULL past the end. */
const struct rfl_ceiling *rfl_ceiling_at(size_t i);

/** @return RFL_OK; RFL_ENOTFOUND names backend and precision */
enum rfl_rc rfl_ceiling_find(const char *backend, const char *precision,
			     const struct rfl_ceiling **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The key to look up in an environment: `faster` where usable, else `key`. Borrowed. */
const char *rfl_ceiling_key(const struct rfl_ceiling *ceiling, const struct rfl_peaks_env *env);

/**
 * ---- least times ----
 *
 * Every operation, in every pass, takes the longest of
 *
 *   core FLOPs / compute ceiling of the precision,
 *   elementwise operations / vector ceiling, where that is known,
 *   bytes at one level of fusion / DRAM bandwidth,
 *
 * and operations follow one another, so that the times add up.
 */

/** The ceilings of one environment for one precision. */
struct rfl_attain_roof {
	struct rfl_attained_roof base; /**< first: what complexity/ is handed */
	double compute_flop_per_s;     /**< > 0 */
	double vector_flop_per_s;      /**< > 0; NaN: not known, and elementwise work takes none */
	double bandwidth_byte_per_s;   /**< > 0 */
	const char *compute_key, *vector_key; /**< of the peaks file */
	char about[400];
};

/** Work of one kind that runs as one, and its least time. */
struct rfl_attained rfl_attain(const struct rfl_attain_roof *roof, int64_t core_flops,
			       int64_t elementwise, int64_t bytes);

/** The least time of all nodes of a count, then of the loss and of the update. */
void rfl_attain_count(const struct rfl_attained_roof *roof, const struct rfl_count *count,
		      struct rfl_attained *times);

/**
 * Look the ceilings up.
 *
 * @param peaks      borrowed as long as the roof
 * @param env        an environment of it
 * @param precision  as in a ledger: "amp"
 * @param fusion     the bytes that stand against the bandwidth
 * @param ret        set on success only; not to be moved afterwards
 * @return RFL_OK; RFL_EMISSING naming the environment or every cell that is not known, and the
 * commands that supply it; RFL_ENOTFOUND for a precision that such a device does not have
 */
enum rfl_rc rfl_attain_find(const struct rfl_peaks *peaks, const char *env, const char *precision,
			    enum rfl_fusion fusion, struct rfl_attain_roof *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
