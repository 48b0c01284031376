/*
 * csv.h - RFC 4180 tables with a header row: a streaming reader and an exact writer. The reader
 * also accepts a Markdown table, if it is alone in its file.
 *
 * Columns are found by name; unknown columns are ignored. An empty field means unknown and reads as
 * NaN. Every message names file, line and column.
 */
#ifndef RFL_BASE_CSV_H
#define RFL_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

RFL_API_BEGIN

/** An open table; memory use does not depend on its size. Members up to `hash` are public. */
struct rfl_csv {
	char *path;
	char **columns; /**< trimmed names from the header */
	size_t ncolumns;
	size_t line;    /**< line at which the current row begins; the header is line 1 */
	size_t offset;  /**< byte of the file at which the current row begins */
	size_t end;     /**< byte at which it ends, after its newline */
	size_t nfields; /**< fields in the current row; fewer than columns if the row is short */
	bool torn;      /**< the last row has no newline, or the file ends inside a quoted field */
	bool hashed;    /**< set by the caller before the first row to compute `hash` */
	uint64_t hash;  /**< rfl_hash64() of the bytes read; complete after the last row */

	/* private to csv.c */
	struct rfl_input *in, *own;    /* own: closed with the table */
	const struct rfl_span *fields; /* of the current row */
	bool markdown;
	struct rfl_span *cells; /* of a row of a Markdown table */
	size_t cells_cap;
	struct rfl_arena *arena;      /* owns what does not grow */
	struct rfl_csv_name *by_name; /* columns that have a name, sorted */
	size_t nnamed;
};

/** Open a file and read its header row (a UTF-8 byte order mark is skipped, CRLF is accepted).
 * @param ret  release with rfl_csv_close()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT if empty, not CSV, or a column occurs twice */
enum rfl_rc rfl_csv_open(const char *path, struct rfl_csv **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a table in memory.
 * @param text  not empty; must stay valid until the table is closed
 * @param name  used as the file name in messages */
enum rfl_rc rfl_csv_open_text(const char *text, size_t len, const char *name, struct rfl_csv **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a table in an input of which at most the beginning was peeked at. The caller closes the
 * input after the table. */
struct rfl_input;
enum rfl_rc rfl_csv_open_input(struct rfl_input *in, struct rfl_csv **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Continue with the row that begins at a byte of the file. Line numbers are then counted as if the
 * skipped rows did not exist. Call this before reading the first row. RFL_EFORMAT: no row ends just
 * before that byte. */
enum rfl_rc rfl_csv_seek(struct rfl_csv *csv, size_t offset, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_csv_close(struct rfl_csv *csv);
RFL_AUTOPTR_TYPE(csv, close);

/** The index of a column, or -1. */
int rfl_csv_find(const struct rfl_csv *csv, const char *column);

/** Find a required column. The message of RFL_EFORMAT names the file and column. */
enum rfl_rc rfl_csv_need(const struct rfl_csv *csv, const char *column, int *ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Go to the next row; empty lines are skipped.
 * @param more  set to false at the end of the file
 * @return RFL_OK; RFL_EFORMAT if a row has more fields than the header; RFL_EIO */
enum rfl_rc rfl_csv_next(struct rfl_csv *csv, bool *more, struct rfl_err *err) RFL_WARN_UNUSED;

/** A field of the current row, valid until the next row; "" if column is -1 or the row is short. */
const char *rfl_csv_text(const struct rfl_csv *csv, int column);

/** The field as a number; NaN if empty. The message of RFL_EFORMAT names file, line and column. */
enum rfl_rc rfl_csv_double(const struct rfl_csv *csv, int column, double *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The field as an integer; `missing` if empty. Errors as for rfl_csv_double(). */
enum rfl_rc rfl_csv_int(const struct rfl_csv *csv, int column, int64_t missing, int64_t *ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Find the end of the first record in `text`.
 * @param len  at least 1
 * @param end  set to the offset after its line feed
 * @return false if the record is not CSV, incomplete, or contains a NUL byte; `end` is then the end
 *         of the first line */
bool rfl_csv_record(const char *text, size_t len, size_t *end) RFL_WARN_UNUSED;

/** Split a record, as it is in a file, at its commas. The fields keep their quotes, so that they
 * can be copied.
 * @param fields  gets the first `most` fields; those that the record lacks are empty
 * @return number of fields */
size_t rfl_csv_split(const char *record, size_t len, struct rfl_span *fields, size_t most);

/** Append one field, or a row with its newline, quoted only where RFC 4180 requires it. */
void rfl_csv_write_field(struct rfl_buf *out, const char *field);
void rfl_csv_write_row(struct rfl_buf *out, const char *const *fields, size_t n);

/** Append rows written by rfl_csv_write_row() to a table on disk: all or none, in one write() under
 * an exclusive lock, synced. A missing file is created with its header. An incomplete last line
 * (after a power failure or a killed writer) is completed first.
 * @param n  columns of the header
 * @return RFL_OK; RFL_EFORMAT names the first column that differs; RFL_EIO */
enum rfl_rc rfl_csv_append_rows(const char *path, const char *const *header, size_t n,
				const struct rfl_buf *rows, struct rfl_err *err) RFL_WARN_UNUSED;

/** Check that an existing file has this header; errors as for rfl_csv_append_rows(). */
enum rfl_rc rfl_csv_check_header(const char *path, const char *const *header, size_t n,
				 struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END
#endif
