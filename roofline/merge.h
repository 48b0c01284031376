/*
 * merge.h - combines ledger, counts, counters and ceilings into points. A point represents one
 * configuration over its repeats.
 *
 * A capture of counters is joined by environment, model, precision, batch and mode. Parts missing
 * in its label are taken from the row with that label or, failing that, from the only possible
 * configuration.
 */
#ifndef RFL_ROOFLINE_MERGE_H
#define RFL_ROOFLINE_MERGE_H

#include "peaks/peaks.h"
#include "profile/capture.h"
#include "roofline/points.h"
#include "roofline/work.h"
#include "ledger/runs.h"

/** The bytes used for the arithmetic intensity. */
enum rfl_ai {
	RFL_AI_AUTO, /**< measured bytes if reliable, else unfused bytes */
	RFL_AI_UNFUSED,
	RFL_AI_FUSED,
	RFL_AI_COMPULSORY,
	RFL_AI_COUNTERS,    /**< measured bytes, required for every configuration */
	RFL_AI_LOWER_BOUND, /**< rfl_roof_lower_bound_ai(), without a byte count */
};

/** "auto", "unfused", "fused", "compulsory", "counters", "lower-bound", NULL. */
extern const char *const rfl_ai_names[];

/** The FLOPs used for achieved rate and arithmetic intensity. */
enum rfl_flops_of {
	RFL_FLOPS_AUTO,     /**< as RFL_FLOPS_MODEL */
	RFL_FLOPS_MODEL,    /**< of the network: the same on every machine and with every library */
	RFL_FLOPS_COUNTERS, /**< measured by counters, including padding and elementwise work */
};
/** "auto", "model", "counters", NULL. */
extern const char *const rfl_flops_names[];

/** The part that a point represents. */
enum rfl_by {
	RFL_BY_STEP,
	RFL_BY_LAYER, /**< a layer of a step, over all passes: time by counters, work by counters or
			 counted from the network */
	RFL_BY_PHASE, /**< a phase of a step, or a region of a program */
	RFL_BY_KERNEL, /**< a kernel of a step, by counters: summed over its launches */
	RFL_BY_OP,     /**< an operator of PyTorch, by a trace: summed over its calls */
};
/** "step", "layer", "phase", "kernel", "op", NULL. */
extern const char *const rfl_by_names[];

/** The number of steps of captures, given by the user. */
struct rfl_counter_steps {
	const char *label; /**< label of a capture; NULL: all captures without another source */
	int64_t steps;     /**< > 0 */
};

/** Parse "LABEL=N" or "N". `room` is a copy of the text, which is modified and holds the label. */
enum rfl_rc rfl_counter_steps_parse(char *room, struct rfl_counter_steps *ret,
				    struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_counter_inputs {
	const struct rfl_captures *captures;   /**< may be NULL */
	const struct rfl_counter_steps *steps; /**< borrowed; unknown labels are reported */
	size_t nsteps;
	bool keep_going; /**< leave out duplicate captures with a note instead of failing */
};

/**
 * Make points of a table with intensities and rates (rfl_foreign_numbers()).
 * @param env  of rows without one; NULL: they are an error
 * @param ret  set on success only; release with rfl_points_free()
 * @return RFL_OK; RFL_EFORMAT: a row lacks its environment or precision; RFL_EMISSING: a ceiling
 */
enum rfl_rc rfl_points_of_table(const struct rfl_ledger *table, const char *path,
				const struct rfl_peaks *peaks, const char *env,
				struct rfl_points **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The usual part for captures without a ledger: kernels, if one of them has several. */
enum rfl_by rfl_captures_by(const struct rfl_captures *captures);

struct rfl_merge_inputs {
	/** Of one file, with step times. NULL: without a ledger, each capture is a program of
	 * the only environment in options->envs. */
	const struct rfl_runs *runs;
	const char *ledger_hash; /**< may be NULL */
	const struct rfl_peaks *peaks;
	const char *peaks_hash;           /**< may be NULL */
	const struct rfl_work_file *work; /**< NULL: count the built-in models */
	struct rfl_counter_inputs counters;
};

struct rfl_merge_options {
	enum rfl_by by;
	enum rfl_ai ai;
	enum rfl_flops_of flops;
	enum rfl_train_factor factor;
	const struct rfl_peer *as; /**< FLOPs of forward passes by this counter; NULL: counted */
	const char *const *envs;   /**< only these environments; NULL with nenvs 0: all */
	size_t nenvs;
	bool skip_missing; /**< leave out configurations that lack a value, with a note, instead of
			      failing */
};

/** The step of a row, for its count: on one roof, if the processes of a run have several. */
struct rfl_work_query rfl_work_query_of(const struct rfl_ledger_row *row);

struct rfl_merge_report {
	size_t unjoined;       /**< captures without a configuration */
	size_t other_captures; /**< captures of environments that are not selected */
	size_t left_out;       /**< configurations without a point because a value is missing */
	struct rfl_buf notes;  /**< lines for the user */
};

/**
 * Create a point for each configuration of the summary (ledger/repeats.h), in the same order, or
 * one for each of its parts: kernels, longest time first, or layers in the order of the step.
 * @param ret  set on success only; may be empty; release with rfl_points_free()
 * @param report  set on success and failure; the caller releases its notes
 * @return RFL_OK; RFL_EMISSING with all missing values, the runs that need them and the commands
 * that supply them; RFL_EFORMAT: two captures count the same quantity; RFL_ENOTFOUND: no row has a
 * selected environment
 */
enum rfl_rc rfl_merge(const struct rfl_merge_inputs *in, const struct rfl_merge_options *options,
		      struct rfl_points **ret, struct rfl_merge_report *report,
		      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
