/*
 * repeats.h - statistics over the repeats of each configuration: mean, spread, confidence interval
 * and drift. docs/reference/summary.md has the formulas.
 */
#ifndef RFL_LEDGER_REPEATS_H
#define RFL_LEDGER_REPEATS_H

#include "base/stats.h"
#include "ledger/facts.h"
#include "ledger/runs.h"

#define RFL_REPEATS_CV_MAX      0.05 /**< above this limit: unstable */
#define RFL_REPEATS_DRIFT_MAX   0.03 /**< above this limit and its 95 % interval: drift */
#define RFL_REPEATS_OUTLIER_MIN 5    /**< minimum number of repeats for outliers */
#define RFL_COMPARE_PERCENT     2    /**< smallest relevant change of speed, unless chosen */

enum rfl_repeats_flag {
	RFL_REPEATS_UNSTABLE = 1,
	RFL_REPEATS_DRIFT = 2,
	RFL_REPEATS_OUTLIER = 4,
};

/** A run included in the statistics. */
struct rfl_repeat {
	const struct rfl_run *run;
	double value; /**< value of the metric */
};

struct rfl_repeats_config {
	const struct rfl_ledger_row
		*row; /**< env, model, batch and others shared by all runs; no label */
	size_t n;
	struct rfl_repeat *runs; /**< by time */
	size_t failed;           /**< number of failed runs, without those that a retry replaced */
	struct rfl_stats stats;  /**< statistics of the values; all NaN if n = 0 */
	double cv;               /**< std / mean */
	double drift;            /**< rise of the regression line / mean; requires n > 2 */
	unsigned flags;          /**< flags of enum rfl_repeats_flag */
	/** Weak-scaling efficiency: mean / (number of processes x mean of one process with the same
	 * options and batch per process). NaN: one process, no such runs, or the metric is not a
	 * rate. */
	double efficiency;
};

struct rfl_repeats_options {
	const struct rfl_ledger_metric *metric;
	bool losses; /**< bursts with different losses are different configurations, too */
	struct {
		enum rfl_ledger_at column;
		const char *const *list; /**< values to select; empty: all */
		size_t n;
	} filters[3];
};

struct rfl_repeats {
	const struct rfl_ledger_metric *metric;
	size_t n;
	/** Sorted by environment, model and precision in order of appearance, then by batch. */
	struct rfl_repeats_config *configs;
	struct rfl_repeat *runs; /**< runs of all configurations */
	size_t nruns;
	/** Runs that failed, without those that a retry replaced, in the order of the files. Rows
	 * of single ranks, duplicates and profiled runs are neither here nor in `runs`. */
	const struct rfl_run **failed;
	size_t nfailed;
	struct rfl_buf notes;    /**< lines on duplicates, failures and skipped rows */
	struct rfl_arena *arena; /**< owns the lists */
};

/**
 * Sort runs into configurations and compute their statistics. If a label has several ok rows in a
 * configuration, only the last one is used. Rows of single ranks and of profiled runs are skipped.
 * @param runs  borrowed
 * @return RFL_OK; RFL_ENOTFOUND: a filter matches nothing; RFL_EFORMAT: an ok row has no env,
 * model, precision or batch
 */
enum rfl_rc rfl_repeats_new(const struct rfl_runs *runs, const struct rfl_repeats_options *options,
			    struct rfl_repeats **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_repeats_free(struct rfl_repeats *r); /* accepts NULL */
RFL_AUTOPTR_TYPE(repeats, free);

enum rfl_speed_verdict {
	RFL_SPEED_SAME,
	RFL_SPEED_FASTER, /**< B is faster */
	RFL_SPEED_SLOWER,
	RFL_SPEED_UNCLEAR,
	RFL_SPEED_MISSING, /**< only one side has runs */
	RFL_SPEED_VERDICTS
};

/** "same", "faster", "slower", "unclear", "missing", NULL. */
extern const char *const rfl_speed_verdict_names[];

/** The ratio of the speed of B to the speed of A. A ratio of 1.25 means that B is 25 % faster, for
 * any metric. */
struct rfl_speed_ratio {
	double value;  /**< ratio of the geometric means; NaN unless all values are positive */
	double lo, hi; /**< 95 % confidence interval; NaN with fewer than two repeats */
};

/** Compute the ratio of two sets of repeats, with Welch's interval for the difference of the mean
 * logarithms.
 * @param speed  1: higher is faster, -1: lower is faster */
struct rfl_speed_ratio rfl_compare_ratio(const double *a, size_t na, const double *b, size_t nb,
					 int speed);

/** "Same" if the whole interval is within the threshold (0.02 for 2 %), "faster" or "slower" if it
 * is beyond the threshold, else "unclear". */
enum rfl_speed_verdict rfl_compare_verdict(const struct rfl_speed_ratio *ratio, double threshold);

struct rfl_compared {
	const struct rfl_repeats_config *a, *b; /**< NULL: no runs on this side */
	struct rfl_speed_ratio ratio;
	enum rfl_speed_verdict verdict;
	const char *why; /**< reason for "unclear" or "missing"; else "" */
};

struct rfl_comparison {
	const struct rfl_ledger_metric *metric;
	const struct rfl_fact *by; /**< the field of rfl_compare_by(); NULL: two sides */
	const struct rfl_ledger_row *baseline; /**< a row with the baseline value of `by` */
	size_t unknown;                        /**< configurations without a value of `by` */
	size_t alone; /**< configurations that differ from all others in more than `by` */
	double threshold;
	size_t n;
	/** In the order of A, followed by those only in B; with `by`, in the order of B. */
	struct rfl_compared *pairs;
	size_t count[RFL_SPEED_VERDICTS];
};

/** Match configurations of A and B that did the same work, and compare them. If one side did the
 * same work in several ways, the fields that vary must match as well.
 * @param a,b  of the same metric, which must be a speed; borrowed */
struct rfl_comparison *rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b,
				   double threshold);
void rfl_comparison_free(struct rfl_comparison *c); /* accepts NULL */
RFL_AUTOPTR_TYPE(comparison, free);

/**
 * Compare the configurations that differ in one field with those that have its baseline value (A).
 * Both sides must agree in all other fields that identify a configuration, except those that follow
 * from this field and the length of the run.
 * @param r  repeats of a speed metric; borrowed
 * @param by  a field of rfl_fact_names
 * @param baseline  as in the ledger; NULL: the value with the most comparisons and, of several,
 * the smallest number or the slowest text
 * @return RFL_OK; RFL_EFAILED: fewer than two values are known; RFL_ENOTFOUND: no configuration has
 * the baseline value
 */
enum rfl_rc rfl_compare_by(const struct rfl_repeats *r, const struct rfl_fact *by,
			   const char *baseline, double threshold, struct rfl_comparison **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
