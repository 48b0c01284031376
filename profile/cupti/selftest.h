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
#include "profile/cupti/cuda_lib.h"
#include "profile/cupti/target.h"

/** Values of a family whose self-test is further off are marked. */
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
	bool ecc; /**< of the device's memory is on */
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
/** Of the quantities whose names begin so ("dram", "flops.tensor") the row that is furthest off;
 * NULL: all are within the tolerance. */
const struct rfl_selftest_row *rfl_selftest_worst(const struct rfl_selftest *t, const char *family);
/** More was moved than is known, and ECC is why where its check bits are beside the data (GDDR). */
bool rfl_selftest_is_ecc(const struct rfl_selftest *t, const struct rfl_selftest_row *row);
/** All of it as ranges of a capture, and a note. */
enum rfl_rc rfl_selftest_add(const struct rfl_selftest *t, struct rfl_capture_builder *b,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
