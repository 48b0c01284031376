/*
 * repeats.h - statistics over the repeats of each configuration: mean, spread, confidence interval,
 * drift. The formulas: docs/matrix.md.
 */
#ifndef RFL_LEDGER_REPEATS_H
#define RFL_LEDGER_REPEATS_H

#include "base/stats.h"
#include "ledger/runs.h"

#define RFL_REPEATS_CV_MAX      0.05 /**< above: unstable */
#define RFL_REPEATS_DRIFT_MAX   0.03 /**< above, and more than its 95 % interval: drift */
#define RFL_REPEATS_OUTLIER_MIN 5    /**< fewer repeats have no outliers */

enum rfl_repeats_flag {
	RFL_REPEATS_UNSTABLE = 1,
	RFL_REPEATS_DRIFT = 2,
	RFL_REPEATS_OUTLIER = 4,
};

/** One run that counts. */
struct rfl_repeat {
	const struct rfl_run *run;
	double value; /**< of the metric */
};

struct rfl_repeats_config {
	const struct rfl_ledger_row
		*row; /**< shared by all runs: env, model, batch, ...; no label */
	size_t n;
	struct rfl_repeat *runs; /**< by time */
	size_t failed;           /**< rows that are not ok, without retries that succeeded */
	struct rfl_stats stats;  /**< of the values; all NaN if n = 0 */
	double cv;               /**< std / mean */
	double drift;            /**< rise of the regression line over the mean; n > 2 */
	unsigned flags;          /**< enum rfl_repeats_flag */
	/** Of n processes: the mean over n times that of one process with the same options and
	 * batch per process; NaN: one process, no such runs, or the metric is not a rate. */
	double efficiency;
};

struct rfl_repeats_options {
	const struct rfl_ledger_metric *metric;
	/** Filters; an empty list selects all. */
	const char *const *envs, *const *models, *const *precisions;
	size_t nenvs, nmodels, nprecisions;
};

struct rfl_repeats {
	const struct rfl_ledger_metric *metric;
	size_t n;
	/** By environment, model and precision in order of appearance, then by batch. */
	struct rfl_repeats_config *configs;
	struct rfl_repeat *runs; /**< of all configurations */
	struct rfl_buf notes;    /**< lines: duplicates, failures, skipped rows and why */
};

/**
 * Sort runs into configurations and compute their statistics. If a label has several ok rows in a
 * configuration, the last one counts. Rows of single ranks and of profiled runs are skipped.
 * @param runs  borrowed
 * @return RFL_OK; RFL_ENOTFOUND for a filter that nothing matches; RFL_EFORMAT for an ok row
 * without env, model, precision or batch
 */
enum rfl_rc rfl_repeats_new(const struct rfl_runs *runs, const struct rfl_repeats_options *options,
			    struct rfl_repeats **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_repeats_free(struct rfl_repeats *r); /* accepts NULL */

enum rfl_speed_verdict {
	RFL_SPEED_SAME,
	RFL_SPEED_FASTER, /**< B is faster */
	RFL_SPEED_SLOWER,
	RFL_SPEED_UNCLEAR,
	RFL_SPEED_MISSING, /**< only one side was run */
	RFL_SPEED_VERDICTS
};

/** "same", "faster", "slower", "unclear", "missing", NULL. */
extern const char *const rfl_speed_verdict_names[];

/** The speed of B over that of A: 1.25 is 25 % more work per second, for any metric. */
struct rfl_speed_ratio {
	double value;  /**< of the geometric means; NaN if a value is not above 0 */
	double lo, hi; /**< 95 % confidence interval; NaN with fewer than two repeats */
};

/** The ratio of two sets of repeats, with Welch's interval for the difference of the means of their
 * logarithms. @param speed  1: more is faster, -1: less is faster */
enum rfl_rc rfl_compare_ratio(const double *a, size_t na, const double *b, size_t nb, int speed,
			      struct rfl_speed_ratio *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Same if the whole interval is within the threshold (0.02 for 2 %), faster or slower if it is
 * beyond the threshold, else unclear. */
enum rfl_speed_verdict rfl_compare_verdict(const struct rfl_speed_ratio *ratio, double threshold);

struct rfl_compared {
	const struct rfl_repeats_config *a, *b; /**< NULL: not run on this side */
	struct rfl_speed_ratio ratio;
	enum rfl_speed_verdict verdict;
	const char *why; /**< reason for unclear and missing; else "" */
};

struct rfl_comparison {
	const struct rfl_ledger_metric *metric;
	double threshold;
	size_t n;
	struct rfl_compared *pairs; /**< in the order of A, then those of B alone */
	size_t count[RFL_SPEED_VERDICTS];
};

/** Match configurations of A and B that did the same work, and compare them. If one side did the
 * same work in several ways, the facts that vary must agree as well.
 * @param a,b  of the same metric, which is a speed; borrowed */
enum rfl_rc rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b, double threshold,
			struct rfl_comparison **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_comparison_free(struct rfl_comparison *c); /* accepts NULL */

#endif
