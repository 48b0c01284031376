/*
 * merge.h - log folders of tasks that ran apart, brought together in one. What is there already is
 * left as it is, so that it may be done again at any time.
 */
#ifndef RFL_LEDGER_MERGE_H
#define RFL_LEDGER_MERGE_H

#include <stddef.h>

#include "base/err.h"

/** What was brought, and what was there already. */
struct rfl_merge {
	size_t folders;            /**< that have a ledger */
	size_t empty;              /**< that have none: nothing ran there */
	size_t rows, rows_there;   /**< of metrics.csv, by run_id */
	size_t files, files_there; /**< of steps/ and time/, records of machines */
	size_t counters;           /**< rows of counters.csv */
	size_t torn;               /**< ledgers whose last row was incomplete and was left out */
};

/**
 * Bring metrics.csv, counters.csv, steps/, time/ and the records of machines (env.json and
 * env_info.md, which become env/<folder>.json and .md) of log folders into another.
 * @param n  folders; they are only read
 * @return RFL_OK; RFL_EFORMAT or RFL_EIO naming the file: what was brought before it stays
 */
enum rfl_rc rfl_ledger_merge(const char *const *folders, size_t n, const char *to,
			     struct rfl_merge *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The folders in a folder, in the order of their names (numbers by value); none when there is no
 * `dir`. @param ret  *n names, and a NULL after them; release with rfl_merge_folders_free() */
enum rfl_rc rfl_merge_folders(const char *dir, char ***ret, size_t *n,
			      struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_merge_folders_free(char **folders);

#endif
