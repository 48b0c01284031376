/*
 * map_parts.h - inside ledger/: what the files of foreign tables share.
 */
#ifndef RFL_LEDGER_FOREIGN_MAP_PARTS_H
#define RFL_LEDGER_FOREIGN_MAP_PARTS_H

#include "ledger/file/steps.h"
#include "ledger/foreign.h"

/**
 * Put the rules of a map into a list of sources.
 * @param map   its texts are borrowed by the sources
 * @param from  only what has a rule is changed
 * @return RFL_OK; RFL_EINVAL naming a column that the table does not have, with those that it has
 */
enum rfl_rc rfl_column_map__bind(const struct rfl_column_map *map, const struct rfl_csv *csv,
				 struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS],
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the columns of a table for a message: "'a', 'b'", at most 40 of them. */
void rfl_column_map__list(const struct rfl_csv *csv, struct rfl_buf *out);

#endif
