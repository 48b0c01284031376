/*
 * training.h - training runs to accuracy as tables: their epochs, and the devices compared.
 */
#ifndef RFL_REPORT_TRAINING_H
#define RFL_REPORT_TRAINING_H

#include <stdbool.h>
#include <stddef.h>

#include "ledger/epochs.h"
#include "ledger/ledger.h"
#include "report/table.h"

/** The training on one device: its row of the ledger, and its epochs. All of it is borrowed. */
struct rfl_training {
	const char *device; /**< "cuda", also if the row does not know it */
	const struct rfl_ledger_row *row;
	const struct rfl_epochs *epochs;
};

/** The epochs of all training runs. */
struct rfl_table *rfl_training_epochs(const struct rfl_training *all, size_t n) RFL_WARN_UNUSED;

/** A row for each training run, with its totals and the speed-up over the first that has epochs.
 * @param complete  with columns for programs: run_id, engine and reason */
struct rfl_table *rfl_training_devices(const struct rfl_training *all, size_t n,
				       bool complete) RFL_WARN_UNUSED;

/** Append a sentence with the result of training i: "cpu: 97.10 % of the test images after 3
 * epochs, ...". */
void rfl_training_say(const struct rfl_training *all, size_t n, size_t i, struct rfl_buf *out);

#endif
