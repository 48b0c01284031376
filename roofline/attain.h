/*
 * attain.h - the least time that a network takes under the ceilings of a machine: every operation,
 * in every pass, takes the longest of
 *
 *   core FLOPs / compute ceiling of the precision,
 *   elementwise operations / vector ceiling, where that is known,
 *   bytes at one level of fusion / DRAM bandwidth,
 *
 * and operations follow one another, so that the times add up.
 */
#ifndef RFL_ROOFLINE_ATTAIN_H
#define RFL_ROOFLINE_ATTAIN_H

#include "base/err.h"
#include "complexity/attained.h"
#include "peaks/peaks.h"

/** The ceilings of one environment for one precision. */
struct rfl_attain_roof {
	struct rfl_attained_roof base; /**< first: what complexity/ is handed */
	double compute_flop_per_s;    /**< > 0 */
	double vector_flop_per_s;     /**< > 0; NaN: not known, and elementwise work takes none */
	double bandwidth_byte_per_s;  /**< > 0 */
	const char *compute_key, *vector_key; /**< of the peaks file */
	char about[400];
};

/** Work of one kind that runs as one, and its least time. */
struct rfl_attained rfl_attain(const struct rfl_attain_roof *roof, int64_t core_flops,
			       int64_t elementwise, int64_t bytes);

/**
 * The least time of all nodes of a count, then of the loss and of the update: what
 * struct rfl_attained_roof asks for.
 */
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
