/*
 * steps.h - inside ledger/: the steps of an append. All of them are called with the lock of
 * metrics.csv held.
 */
#ifndef RFL_LEDGER_LEDGER_FILE_H
#define RFL_LEDGER_LEDGER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/csv.h"
#include "ledger/ledger.h"

/* A ledger is read whole where it has to be mended or upgraded. */
#define RFL_LEDGER__BYTES_MAX ((size_t)4 << 30)

/* "logs/metrics.csv" with its suffix replaced: "logs/metrics.jsonl". malloc'ed, NULL out of memory.
 */
char *rfl_ledger__beside(const char *path, const char *suffix);

/* The header line of a table that is open (file/append.c). */
void rfl_ledger__put_header_of(const struct rfl_csv *csv, struct rfl_buf *out);

/* ---- the header, and torn rows (file/mend.c) ---- */

/* Our columns as a line. */
enum rfl_rc rfl_ledger__put_header(struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/* Whether a file is only the beginning of our header, be it with zeros behind it, or nothing: it
 * was cut while it was made, and no row is lost with it. False for one that cannot be read. */
bool rfl_ledger__is_cut_header(const char *path);

/* One row of a file's text with its newline, or bytes that are none: a row without an end, or with
 * zero bytes in it. */
struct rfl_ledger__record {
	size_t begin, end;
	size_t line; /* on which it begins, from 1 */
	bool torn;
};

/* Walk over the records of a text; false behind the last. Begin with a zeroed record. */
bool rfl_ledger__next_record(const char *text, size_t len, struct rfl_ledger__record *r);

/* Open a ledger that could not be read as it is, without its torn records; each is reported.
 * @param why   that failure, which stands when there are none
 * @param text  empty; the table's, so to be released after it
 * @param hash  of the file as it is; may be NULL */
enum rfl_rc rfl_ledger__open_whole(const char *path, const struct rfl_err *why,
				   struct rfl_buf *text, uint64_t *hash, struct rfl_csv **ret,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/* Move torn records into <name>.torn.csv and report each. The file is cut, or replaced where whole
 * rows stand behind a torn one.
 * @param mended  there were some: the file is another now */
enum rfl_rc rfl_ledger__mend(int fd, const char *path, bool *mended,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- older columns (file/upgrade.c) ---- */

/* Replace the file by one with our columns, then those that are not ours; the old file is kept as
 * <name>.v<version>.csv and reported. */
enum rfl_rc rfl_ledger__upgrade(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- the mirror (file/mirror.c) ---- */

/* A row as one line of JSON with its newline, after the header of `csv`, whose current row it is.
 */
void rfl_ledger__json_row(struct rfl_csv *csv, struct rfl_buf *out);

/* Add to <name>.jsonl what was appended to the ledger; make it anew when it is absent or does not
 * end with `last`. A failure is a warning: the next append mends it. */
void rfl_ledger__mirror(const char *path, const struct rfl_buf *last, const struct rfl_buf *added);

/* The mirror is made anew by the next append. */
void rfl_ledger__drop_mirror(const char *path);

#endif
