/*
 * metric.h - the columns of the ledger that repeats are summarised and compared by.
 */
#ifndef RFL_LEDGER_METRIC_H
#define RFL_LEDGER_METRIC_H

#include "ledger/ledger.h"

struct rfl_ledger_metric {
	const char *name;  /**< "samples_per_s" */
	const char *title; /**< "samples per second" */
	enum rfl_ledger_at column;
	/** The column used where that is empty, as in tables of others; the same column: nothing.
	 */
	enum rfl_ledger_at instead;
	int speed; /**< 1: more is faster, -1: less is faster, 0: neither */
};

/** In the order of rfl_ledger_metric_names; the first ones, which are speeds, are also those of
 * rfl_ledger_speed_names. */
extern const struct rfl_ledger_metric rfl_ledger_metrics[];

/** For option rows. */
extern const char *const rfl_ledger_metric_names[];
extern const char *const rfl_ledger_speed_names[];

/** NaN: not known. */
double rfl_ledger_metric_value(const struct rfl_ledger_metric *m, const struct rfl_ledger_row *row);

#endif
