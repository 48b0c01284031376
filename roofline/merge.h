/*
 * merge.h - ledger + counts + counters + ceilings = points. A point stands for one configuration
 * over its repeats.
 *
 * A capture of counters joins by environment, model, precision, batch and mode. What its label does
 * not say is taken from the row of the ledger with that very label, else from the only
 * configuration that it can be.
 */
#ifndef RFL_ROOFLINE_MERGE_H
#define RFL_ROOFLINE_MERGE_H

#include "peaks/peaks.h"
#include "profile/capture.h"
#include "roofline/points.h"
#include "roofline/work.h"
#include "ledger/runs.h"

/** Which bytes stand under the FLOPs in the arithmetic intensity. */
enum rfl_ai {
	RFL_AI_AUTO, /**< counters where they are sound; else unfused: what an engine moves that
		      runs operation after operation */
	RFL_AI_UNFUSED,
	RFL_AI_FUSED,
	RFL_AI_COMPULSORY,
	RFL_AI_COUNTERS,    /**< measured bytes; a configuration without them is an error */
	RFL_AI_LOWER_BOUND, /**< rfl_roof_lower_bound_ai(): no byte count at all */
};

/** "auto", "unfused", "fused", "compulsory", "counters", "lower-bound", NULL. */
extern const char *const rfl_ai_names[];

/** Whose FLOPs the attained rate and the intensity are made of. */
enum rfl_flops_of {
	RFL_FLOPS_AUTO,  /**< the network's: the same work on every machine and by every library */
	RFL_FLOPS_MODEL, /**< the network's */
	RFL_FLOPS_COUNTERS, /**< all that the counters saw, padding and elementwise work included */
};
/** "auto", "model", "counters", NULL. */
extern const char *const rfl_flops_names[];

/** How many steps captures cover, as the user says. */
struct rfl_counter_steps {
	const char *label; /**< of a capture; NULL: all captures whose steps nothing else says */
	int64_t steps;     /**< > 0 */
};

/** Read "LABEL=N" or "N". The label is borrowed from `room`, a copy of the text. RFL_EUSAGE. */
enum rfl_rc rfl_counter_steps_parse(char *room, struct rfl_counter_steps *ret,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/** Captures, and what the user says of them. */
struct rfl_counter_inputs {
	const struct rfl_captures *captures;   /**< NULL: none were given */
	const struct rfl_counter_steps *steps; /**< borrowed; a label of no capture is reported */
	size_t nsteps;
	bool keep_going; /**< of two captures that count the same one is left out, and said */
};

struct rfl_merge_inputs {
	const struct rfl_runs *runs; /**< of one file, whole rows */
	const char *ledger_hash;     /**< may be NULL */
	const struct rfl_peaks *peaks;
	const char *peaks_hash;           /**< may be NULL */
	const struct rfl_work_file *work; /**< may be NULL: count the program's own models */
	struct rfl_counter_inputs counters;
};

struct rfl_merge_options {
	enum rfl_ai ai;
	enum rfl_flops_of flops;
	enum rfl_train_factor factor;
	const char *const *envs; /**< only these environments; NULL with nenvs 0: all */
	size_t nenvs;
	bool skip_missing; /**< leave out what lacks a fact, and say so, instead of failing */
};

struct rfl_merge_report {
	size_t unjoined;       /**< captures that belong to no configuration */
	size_t other_captures; /**< captures of environments that were not asked for */
	size_t left_out;       /**< configurations without a point, because of a missing fact */
	struct rfl_buf notes;  /**< lines for the user, each ended by a newline */
};

/**
 * Make the points, of the configurations, runs and rates of the summary (ledger/repeats.h) and in
 * its order.
 * @param ret     set on success only; release with rfl_points_free(). May hold no point at all.
 * @param report  filled on success and failure; its notes are the caller's
 * @return RFL_OK; RFL_EMISSING naming all that is not known, which runs need it and the commands
 *         that supply it; RFL_EFORMAT for rows with one config_hash and different work, and for two
 *         captures that count the same; RFL_ENOTFOUND for an environment that no row has
 */
enum rfl_rc rfl_merge(const struct rfl_merge_inputs *in, const struct rfl_merge_options *options,
		      struct rfl_points **ret, struct rfl_merge_report *report,
		      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
