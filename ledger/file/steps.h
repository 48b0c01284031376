/*
 * steps.h - inside ledger/: the steps of reading a table and of appending to the ledger. Those of
 * an append are called with the lock of metrics.csv held.
 */
#ifndef RFL_LEDGER_LEDGER_FILE_H
#define RFL_LEDGER_LEDGER_FILE_H

#include "ledger/ledger.h"

/* A ledger is read whole where it has to be mended or upgraded. */
#define RFL_LEDGER__BYTES_MAX ((size_t)4 << 30)

/* ---- reading (file/read.c) ---- */

/* Where a column of ours is found in another program's table. */
struct rfl_ledger_source {
	int column;       /* of the table; -1: in none */
	double scale;     /* what a number is multiplied by; 0: it is of our unit */
	const char *text; /* without a column: what every row has; NULL: not known. Borrowed */
	bool foreign;     /* take also "True", "no" and "32.0" for an integer */
};

/* A copy of a text that lives as long as the ledger; NULL out of memory.
 * @param shared  look for an equal one first; for what is in many rows */
char *rfl_ledger__text(struct rfl_ledger *l, const char *text, bool shared) RFL_WARN_UNUSED;

/* Append the rows of a table, as far as it was not read yet, to a ledger.
 * @param more  there may be others; false without a batch size in the ledger
 * @return RFL_OK; RFL_EFORMAT with file, line and column: rows before it may have been added */
enum rfl_rc rfl_ledger__read(struct rfl_csv *csv,
			     const struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS],
			     struct rfl_ledger *to, bool *more,
			     struct rfl_err *err) RFL_WARN_UNUSED;

typedef enum rfl_rc rfl_ledger__reader(struct rfl_csv *csv, struct rfl_ledger *to, void *ctx,
				       struct rfl_err *err);

/* Open a file under its shared lock and have it read. A ledger of ours that cannot be read as it
 * is, is read once more without its torn rows; `read` is then called twice. */
enum rfl_rc rfl_ledger__read_file(const char *path, rfl_ledger__reader *read, void *ctx,
				  struct rfl_ledger *to, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- maps (column_map.c) ---- */

struct rfl_column_map;

/* Put the rules of a map into a list of sources, which borrow its texts. RFL_EINVAL naming a column
 * that the table does not have, with those that it has. */
enum rfl_rc rfl_column_map__bind(const struct rfl_column_map *map, const struct rfl_csv *csv,
				 struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS],
				 struct rfl_err *err) RFL_WARN_UNUSED;

/* Append the columns of a table for a message: "'a', 'b'", at most 40 of them. */
void rfl_column_map__list(const struct rfl_csv *csv, struct rfl_buf *out);

/* ---- appending (file/append.c) ---- */

/* "logs/metrics.csv" with another suffix: "logs/metrics.jsonl". malloc'ed, NULL out of memory. */
char *rfl_ledger__beside(const char *path, const char *suffix);

/* Remove the file of that name, if there is one: what is made from the ledger is made anew. */
void rfl_ledger__drop(const char *path, const char *suffix);

/* Rows of a table that is open, under its header.
 * @param text  empty; the new table's, so to be released after it */
enum rfl_rc rfl_ledger__open_rows(const struct rfl_csv *header, const char *rows, size_t len,
				  struct rfl_buf *text, struct rfl_csv **ret,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- the header, torn rows and older versions (file/mend.c) ---- */

/* Whether a file is only the beginning of our header, followed by zeros or not, or nothing: it
 * was cut while it was made, and no row is lost with it. False for one that cannot be read. */
bool rfl_ledger__is_cut_header(const char *path);

/* Open a ledger that could not be read as it is, without its torn records; each is reported.
 * @param why   that failure, which stands when there are none
 * @param text  empty; the table's, so to be released after it
 * @param hash  of the file as it is; may be NULL */
enum rfl_rc rfl_ledger__open_whole(const char *path, const struct rfl_err *why,
				   struct rfl_buf *text, uint64_t *hash, struct rfl_csv **ret,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/* Move torn records into <name>.torn.csv and report each. The file is cut, or replaced where whole
 * rows follow a torn one. @param mended  there were some: the file is another now */
enum rfl_rc rfl_ledger__mend(int fd, const char *path, bool *mended,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* Replace the file by one with our columns, then those that are not ours; the old file is kept as
 * <name>.v<version>.csv and reported. */
enum rfl_rc rfl_ledger__upgrade(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
