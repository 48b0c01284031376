/*
 * compare.h - two sets of runs, configuration by configuration: same, faster, slower, or unclear.
 * The rule and what it is worth: docs/matrix.md.
 */
#ifndef RFL_LEDGER_COMPARE_H
#define RFL_LEDGER_COMPARE_H

#include "ledger/repeats.h"

enum rfl_speed_verdict {
	RFL_SPEED_SAME,
	RFL_SPEED_FASTER, /**< B is */
	RFL_SPEED_SLOWER,
	RFL_SPEED_UNCLEAR,
	RFL_SPEED_MISSING, /**< it was run on one side only */
	RFL_SPEED_VERDICTS
};

/** "same", "faster", "slower", "unclear", "missing", NULL. */
extern const char *const rfl_speed_verdict_names[];

/** How much faster B is than A: 1.25 is a quarter more work per second, whatever the metric. */
struct rfl_speed_ratio {
	double value;  /**< of the geometric means; NaN where one has no value above 0 */
	double lo, hi; /**< 95 % confidence interval; NaN where one has fewer than two repeats */
};

/**
 * The ratio of two sets of repeats, by Welch's interval for the difference of the means of their
 * logarithms.
 * @param speed  1: more is faster, -1: less is faster
 */
enum rfl_rc rfl_compare_ratio(const double *a, size_t na, const double *b, size_t nb, int speed,
			      struct rfl_speed_ratio *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Same when the whole interval is within the threshold, faster or slower when the whole interval is
 * beyond it on one side, else unclear.
 * @param threshold  the least difference that matters, 0.02 for 2 %
 */
enum rfl_speed_verdict rfl_compare_verdict(const struct rfl_speed_ratio *ratio, double threshold);

struct rfl_compared {
	const struct rfl_repeats_config *a, *b; /**< NULL on the side where it was not run */
	struct rfl_speed_ratio ratio;
	enum rfl_speed_verdict verdict;
	const char *why; /**< of unclear and missing; else "" */
};

struct rfl_comparison {
	const struct rfl_ledger_metric *metric;
	double threshold;
	size_t n;
	struct rfl_compared *pairs; /**< in the order of A, then what only B has */
	size_t count[RFL_SPEED_VERDICTS];
};

/**
 * Find for every configuration of A that of B which did the same work, and compare them. Where one
 * side has several ways to do the same work, those in which it varies must agree as well.
 * @param a,b  of the same metric, which is a speed; must stay
 * @param ret  set on success only; release with rfl_comparison_free()
 */
enum rfl_rc rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b, double threshold,
			struct rfl_comparison **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_comparison_free(struct rfl_comparison *c); /* accepts NULL */

#endif
