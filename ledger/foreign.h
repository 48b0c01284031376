/*
 * foreign.h - a metrics.csv, of any program, as rows of the ledger: our own by its names; another
 * by names that other programs use, by what labels say, and by a map of rules:
 * NAME=COLUMN, NAME=COLUMN UNIT, NAME=COLUMN*FACTOR, NAME="constant" (docs/matrix.md).
 */
#ifndef RFL_LEDGER_FOREIGN_H
#define RFL_LEDGER_FOREIGN_H

#include "ledger/ledger.h"

struct rfl_column_rule {
	size_t column;        /**< of the ledger */
	const char *constant; /**< what every row has; NULL: `source` */
	const char *source;   /**< a column of the table, with what follows its name */
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

/** A table that came from `roofline run`: it has the columns that only this program writes. */
bool rfl_foreign_is_ours(const struct rfl_csv *csv);

#endif
