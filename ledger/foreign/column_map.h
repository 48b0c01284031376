/*
 * column_map.h - rules that say which column of somebody else's table is which of the ledger's:
 * NAME=COLUMN, NAME=COLUMN UNIT, NAME=COLUMN*FACTOR, NAME="constant". How they are written:
 * docs/summary.md.
 */
#ifndef RFL_LEDGER_COLUMN_MAP_H
#define RFL_LEDGER_COLUMN_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "ledger/ledger.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_column_rule {
	size_t column;        /**< of the ledger */
	const char *constant; /**< what every row has; NULL: `source` */
	const char *source;   /**< a column of the table, with what stands behind it */
	const char *where;    /**< of the rule, for messages: "--map", "map.txt:3" */
};

struct rfl_column_map {
	size_t n;
	struct rfl_column_rule *rules;
	struct rfl_arena *arena; /**< owns the rules and their texts */
};

/** An empty map; NULL out of memory. */
struct rfl_column_map *rfl_column_map_new(void) RFL_WARN_UNUSED;
void rfl_column_map_free(struct rfl_column_map *map); /* accepts NULL */

/**
 * Add a rule.
 * @param where  stands for its place in messages; copied
 * @return RFL_OK; RFL_EINVAL for what is no rule, a name that the ledger does not have, a number
 *         that is none, or a name that has a rule already
 */
enum rfl_rc rfl_column_map_add(struct rfl_column_map *map, const char *rule, const char *where,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the rules of a file: one a line; empty lines and those that begin with '#' are skipped.
 * RFL_EFORMAT with file and line; RFL_EIO. */
enum rfl_rc rfl_column_map_load(struct rfl_column_map *map, const char *path,
				struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Put the rules of a map into a list of sources.
 * @param map   its texts are borrowed by the sources
 * @param from  only what has a rule is changed
 * @return RFL_OK; RFL_EINVAL naming a column that the table does not have, with those that it has
 */
enum rfl_rc rfl_column_map_bind(const struct rfl_column_map *map, const struct rfl_csv *csv,
				struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS],
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the columns of a table for a message: "'a', 'b'", at most 40 of them. */
void rfl_column_map_list(const struct rfl_csv *csv, struct rfl_buf *out);

#ifdef __cplusplus
}
#endif
#endif
