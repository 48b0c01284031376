/*
 * generation.h - runs of language models with a cache, in modes decode and prefill, next to the
 * minimum time of their steps.
 */
#ifndef RFL_REPORT_GENERATION_H
#define RFL_REPORT_GENERATION_H

#include "ledger/ledger.h"
#include "peaks/peaks.h"
#include "report/table.h"

/** A configuration. Unknown numbers are NaN or RFL_INT_UNKNOWN; texts are borrowed. */
struct rfl_generation {
	const char *env, *model, *mode, *precision, *weights;
	int64_t batch, past, tokens; /**< tokens: new ones of each sequence per step */
	int64_t runs;                /**< that are ok */
	double step_s, deviation;    /**< mean of the runs' means; their largest std / mean */
	double tokens_per_s;
	double least_s, share; /**< the minimum time of a step under the ceilings; this / step_s */
	double most_tokens_per_s;
	/* bytes of a step, mean over the steps; of weights with their scales */
	double weights_bytes, cache_bytes, byte_per_s;
	double linear_s, attention_s, other_s;
	const char *status, *reason; /**< reason: NULL if it is ok */
};

/**
 * Describe the runs of a configuration.
 * @param rows   its n rows, at least one
 * @param net    its configuration file; NULL: the rows name a model
 * @param peaks  NULL: no ceilings
 * @param arena  gets texts
 */
void rfl_generation_of(const struct rfl_ledger_row *const *rows, size_t n, const char *net,
		       const struct rfl_peaks *peaks, struct rfl_arena *arena,
		       struct rfl_generation *ret);

/** A table of rows. @param all  with the columns for programs */
struct rfl_table *rfl_generation_table(const struct rfl_generation *rows, size_t n, bool all);

#endif
