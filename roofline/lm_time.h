/*
 * lm_time.h - the minimum time of a language model's steps under the ceilings of a machine, and the
 * batch at which a decode step reaches the ridge point.
 *
 * An operation takes at least the longest of its times for compute, elementwise operations, memory
 * and link. The sum is a lower bound for operations that run one after another with the counted
 * FLOPs and bytes; a schedule that overlaps operations can be faster. With the masked pairs of an
 * attention (without causal_half) it is no bound, because kernels skip them.
 */
#ifndef RFL_ROOFLINE_LM_TIME_H
#define RFL_ROOFLINE_LM_TIME_H

#include "complexity/lm.h"
#include "ledger/ledger.h"
#include "roofline/roofline.h"

/** What limits an operation: enum rfl_limit, or the link. */
enum { RFL_LM_LIMIT_LINK = RFL_LIMIT_COUNT, RFL_LM_LIMIT_COUNT };

/** "compute", "vector", "memory", "link", NULL. */
extern const char *const rfl_lm_limit_names[];

struct rfl_lm_time {
	double limit_s[RFL_LM_LIMIT_COUNT]; /**< as a sum over the operations that it limits */
};

double rfl_lm_time_sum(const struct rfl_lm_time *t);
void rfl_lm_time_add(struct rfl_lm_time *sum, const struct rfl_lm_time *t, int64_t times);

/** The limit of most of the time; NULL if the time is 0. */
const char *rfl_lm_time_bound(const struct rfl_lm_time *t);

/** Several steps, each after the tokens of the one before. */
struct rfl_lm_run {
	const struct rfl_lm *lm;
	struct rfl_lm_step step; /**< the first */
	int64_t steps;
	double advance;                     /**< tokens that a step adds to the cache */
	const struct rfl_attain_roof *roof; /**< NULL: no times */
	double link_byte_per_s;             /**< 0: links take no time */
	/* set by rfl_lm_run() */
	struct rfl_lm_count count; /**< sums over the steps; the memory is the last one's */
	struct rfl_lm_time times[RFL_LM_OPS_MAX]; /**< of each operation of the count */
};

void rfl_lm_run(struct rfl_lm_run *run);

/** The steps of a run of the ledger, in mode decode or prefill. */
struct rfl_lm_steps {
	struct rfl_lm lm;
	struct rfl_attain_roof roof;
	struct rfl_lm_run run;
	double least_s; /**< the minimum time of a step, a mean; NaN: unknown */
};

/**
 * Count the steps of a row, at the levels of 'complexity --phase', and their minimum time.
 * @param net    its configuration file; NULL: the row names a model
 * @param peaks  NULL: no times
 * @param arena  owns the texts of the model
 * @param ret    must not be moved afterwards
 * @return RFL_OK; RFL_EMISSING: only the counts, because ceilings are unknown; as
 * rfl_lm_named()
 */
enum rfl_rc rfl_lm_steps_of(const struct rfl_ledger_row *row, const char *net,
			    const struct rfl_peaks *peaks, struct rfl_arena *arena,
			    struct rfl_lm_steps *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The smallest batch at which a step's FLOPs per byte reach the ridge point.
 * @param weights_only  count only the operations with matrices of weights
 * @return 0: no batch up to RFL_LM_FIT_MAX does */
int64_t rfl_lm_ridge_batch(const struct rfl_lm *lm, const struct rfl_lm_step *step,
			   const struct rfl_attain_roof *roof, bool weights_only);

#endif
