/*
 * foreign.h - a metrics.csv, whoever wrote it, as rows of the ledger: our own by its names; another
 * by a map, by names that other programs use, and by what labels say.
 */
#ifndef RFL_LEDGER_FOREIGN_H
#define RFL_LEDGER_FOREIGN_H

#include "base/buf.h"
#include "ledger/foreign/column_map.h"
#include "ledger/ledger.h"
#include "ledger/file/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A table that came from `roofline run`: it has the columns that only this program writes. */
bool rfl_foreign_is_ours(const struct rfl_csv *csv);

/**
 * Append the runs of a table to a ledger. Of a table of somebody else every row gets env, model,
 * precision, batch and status, from its columns, its label or constants of the map; times and rates
 * that follow from others are filled in.
 *
 * @param map     NULL: none
 * @param metric  what the rows are read for: a table that cannot tell it is refused
 * @param roofs   for points under a roof: another's table must tell mode and backend as well
 * @param wanted  of our own tables only these columns
 * @param notes   a line per table of somebody else: which columns were taken for what
 * @return RFL_OK; RFL_EFORMAT with file and line, or with the columns that are there, naming
 *         all that a table or row does not tell and is needed; RFL_EINVAL for a rule that does not
 * fit
 */
enum rfl_rc rfl_foreign_read(const char *path, const struct rfl_column_map *map,
			     const struct rfl_ledger_metric *metric, bool roofs,
			     const bool wanted[RFL_LEDGER_NCOLUMNS], struct rfl_ledger *to,
			     struct rfl_buf *notes, struct rfl_err *err) RFL_WARN_UNUSED;

/** The same of a table that is open already. */
enum rfl_rc rfl_foreign_read_table(struct rfl_csv *csv, const struct rfl_column_map *map,
				   const struct rfl_ledger_metric *metric, bool roofs,
				   const bool wanted[RFL_LEDGER_NCOLUMNS], struct rfl_ledger *to,
				   struct rfl_buf *notes, struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
