/*
 * parts.h - inside ledger/: what the files of the summary share.
 */
#ifndef RFL_LEDGER_REPEATS_PARTS_H
#define RFL_LEDGER_REPEATS_PARTS_H

#include "ledger/repeats.h"

/* ---- notes (repeats/groups.c) ---- */

/* Why a row does not count. */
enum rfl_repeats__why {
	RFL_REPEATS__RANK,
	RFL_REPEATS__PROFILED,
	RFL_REPEATS__NO_VALUE,
	RFL_REPEATS__MADE_GOOD,
	RFL_REPEATS__WHYS
};

struct rfl_repeats__notes {
	const struct rfl_runs *runs;
	const struct rfl_ledger_metric *metric;
	struct rfl_buf *out;
	size_t twice, mixed, failed,
		outliers; /* lines that were asked for; the first are written */
	size_t left[RFL_REPEATS__WHYS];
	const struct rfl_run *first[RFL_REPEATS__WHYS];
};

void rfl_repeats__note_outlier(struct rfl_repeats__notes *n, const struct rfl_repeats_config *c,
			       const struct rfl_repeat *run);
/* ---- statistics (repeats/describe.c) ---- */

/* Put the runs of a configuration in the order of time and describe them. */
enum rfl_rc rfl_repeats__describe(struct rfl_repeats_config *c, struct rfl_repeats__notes *notes,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/* Set the efficiency of all configurations, and note those that have nothing beside them. */
void rfl_repeats__scale(struct rfl_repeats *r);

/* Sort the configurations. */
enum rfl_rc rfl_repeats__order(struct rfl_repeats *r, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
