/*
 * selftest.h - counters against work of known size: a copy of known bytes, and matrix products of
 * known FLOPs by kernels of our own. What a counter says of them tells how far it can be trusted.
 */
#ifndef RFL_PROFILE_SELFTEST_H
#define RFL_PROFILE_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "profile/capture.h"
#include "profile/cuda_lib.h"
#include "profile/cupti_target.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A capture whose self-test is further off is marked. */
#define RFL_SELFTEST_TOLERANCE 0.02

struct rfl_selftest_row {
	const char *work;             /**< "copy", "rfl_selftest_f32" */
	enum rfl_quantity quantity;   /**< what was counted of it */
	double known, measured;       /**< measured NaN: not counted */
	char reason[RFL_ERR_MSG_MAX]; /**< why not; "" when it was */
};

struct rfl_selftest {
	struct rfl_selftest_row rows[8];
	size_t n;
};

/**
 * Do the work of one set and count it.
 * @param precision  of the run: the matrix product of its data type is in the core
 * @param set        RFL_SET_CORE or RFL_SET_FLOPS
 * @param ret        rows are added to it; zero it before the first
 * @return RFL_OK whenever there are results, counted or not; RFL_EUNAVAILABLE when nothing could be
 *         counted; RFL_EFAILED when a kernel computed something wrong. No rows are added then
 */
enum rfl_rc rfl_selftest_run(struct rfl_cuda *cuda, struct rfl_cupti_target *target,
			     const char *precision, unsigned set, struct rfl_selftest *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** measured / known; NaN when it was not counted. */
double rfl_selftest_ratio(const struct rfl_selftest_row *row);
/** The row that is off by more than the tolerance, the worst of them; NULL: all are within it. */
const struct rfl_selftest_row *rfl_selftest_worst(const struct rfl_selftest *t);
/** All of it as ranges of a capture, and a note. */
enum rfl_rc rfl_selftest_add(const struct rfl_selftest *t, struct rfl_capture_builder *b,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
