/*
 * row_of.h - inside ledger/: a row of somebody else's table in our words.
 */
#ifndef RFL_LEDGER_FOREIGN_ROW_H
#define RFL_LEDGER_FOREIGN_ROW_H

#include "ledger/ledger.h"
#include "ledger/file/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Fill in what follows from the rest of a row: the parts of its label, other programs' words for
 * models, precisions and status, rates from times and back.
 * @param path    for messages
 * @param i       the row
 * @param status  the table has a column for it
 * @return RFL_OK; RFL_EFORMAT naming file, line and what the row does not tell
 */
enum rfl_rc rfl_foreign__settle(const char *path, struct rfl_ledger *ledger, size_t i,
				const struct rfl_ledger_metric *metric, bool status,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** The rate from a time and back, where a row has one of them: from the whole window, else from the
 * mean step, else from the median one. */
void rfl_foreign__derive(struct rfl_ledger_row *row);

#ifdef __cplusplus
}
#endif
#endif
