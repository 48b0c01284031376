/*
 * merge.h - merges the log directories of separate tasks into one. Existing rows and files are
 * kept, so a merge can be repeated at any time.
 */
#ifndef RFL_LEDGER_MERGE_H
#define RFL_LEDGER_MERGE_H

#include <stddef.h>

#include "base/err.h"

/** Number of items merged and of items that already existed. */
struct rfl_merge {
	size_t folders;            /**< directories with a ledger */
	size_t empty;              /**< directories without a ledger: nothing ran there */
	size_t rows, rows_there;   /**< rows of metrics.csv, identified by run_id */
	size_t files, files_there; /**< files of runs and summaries, and machine records */
	size_t counters;           /**< rows of counters.csv */
	size_t torn;               /**< ledgers with an incomplete last row, which was omitted */
};

/** The directories below a log directory that contain a file per run, or per network file that was
 * run; NULL-terminated. */
extern const char *const rfl_ledger_folders[];

/**
 * Merge metrics.csv with its foreign columns, counters.csv, the files of runs (rfl_ledger_folders),
 * model_summaries/ and machine records (env.json and env_info.md, named env/<environments>.json and
 * .md) of log directories into another directory.
 * @param n  number of directories; they are only read
 * @return RFL_OK; RFL_EFORMAT or RFL_EIO: the message names the file, and items merged before the
 * error are kept
 */
enum rfl_rc rfl_ledger_merge(const char *const *folders, size_t n, const char *to,
			     struct rfl_merge *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
