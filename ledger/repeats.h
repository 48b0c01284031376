/*
 * repeats.h - what the repeats of every configuration come to: mean, spread, interval, drift, and
 * which rows were counted. The formulas: docs/matrix.md.
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
	const struct rfl_ledger_row *row; /**< stands for all: env, model, batch ... No label */
	size_t n;
	struct rfl_repeat *runs; /**< in the order of time */
	size_t failed;           /**< rows that are not ok, of runs that are ok in no other row */
	struct rfl_stats stats;  /**< of the values; all NaN with n = 0 */
	double cv;               /**< std / mean */
	double drift;            /**< rise of the line through the values over the mean; n > 2 */
	unsigned flags;          /**< enum rfl_repeats_flag */
	/** Of n processes: the mean over n times that of one process in the same way with the same
	 * batch per process; NaN: one process, no such runs, or a metric that is no rate. */
	double efficiency;
};

struct rfl_repeats_options {
	const struct rfl_ledger_metric *metric;
	/** Only these; an empty list: all. */
	const char *const *envs, *const *models, *const *precisions;
	size_t nenvs, nmodels, nprecisions;
};

struct rfl_repeats {
	const struct rfl_ledger_metric *metric;
	size_t n;
	/** By environment, model and precision as they first come, then by batch. */
	struct rfl_repeats_config *configs;
	struct rfl_repeat *runs; /**< of all configurations */
	struct rfl_buf notes;    /**< lines: duplicates, failures, what was left out and why */
};

/**
 * Sort runs into configurations and describe each. A label that is ok more than once in a
 * configuration is a run that was repeated: its last row counts. Rows of single ranks and of runs
 * under a profiler are left out.
 * @param runs  must stay; rows are borrowed from it
 * @return RFL_OK; RFL_ENOTFOUND for a filter that nothing matches; RFL_EFORMAT for a row with
 *         status ok that does not say what was run
 */
enum rfl_rc rfl_repeats_new(const struct rfl_runs *runs, const struct rfl_repeats_options *options,
			    struct rfl_repeats **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_repeats_free(struct rfl_repeats *r); /* accepts NULL */

/* ---- two sets of repeats, configuration by configuration (the rule: docs/matrix.md) ---- */

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

/** The ratio of two sets of repeats, by Welch's interval for the difference of the means of their
 * logarithms. @param speed  1: more is faster, -1: less is faster */
enum rfl_rc rfl_compare_ratio(const double *a, size_t na, const double *b, size_t nb, int speed,
			      struct rfl_speed_ratio *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Same when the whole interval is within the threshold (0.02 for 2 %), faster or slower when it is
 * beyond it on one side, else unclear. */
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

/** Find for every configuration of A that of B which did the same work, and compare them. Where one
 * side has several ways to do the same work, those in which it varies must agree as well.
 * @param a,b  of the same metric, which is a speed; must stay */
enum rfl_rc rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b, double threshold,
			struct rfl_comparison **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_comparison_free(struct rfl_comparison *c); /* accepts NULL */

#endif
