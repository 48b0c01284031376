/*
 * csv.h - RFC 4180 tables with a header row: a streaming reader (libcsv) and an exact writer.
 *
 * Readers find columns by name and ignore the ones they do not know. An empty field is "not known"
 * and reads as NaN. Every message names file, line and column.
 */
#ifndef RFL_BASE_CSV_H
#define RFL_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct rfl_csv; /* one open file; memory stays flat at any file size */

/**
 * Open a file and read its header row (a UTF-8 byte order mark is skipped, CRLF is accepted).
 *
 * @param ret  set on success only; release with rfl_csv_close()
 * @return RFL_OK; RFL_EIO when the file cannot be read; RFL_EFORMAT when it is empty, its header
 *         names a column twice, or it is not CSV
 */
enum rfl_rc rfl_csv_open(const char *path, struct rfl_csv **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The same from memory.
 * @param text  not empty; must stay until the table is closed
 * @param name  stands for the file in messages
 */
enum rfl_rc rfl_csv_open_text(const char *text, size_t len, const char *name, struct rfl_csv **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_csv_close(struct rfl_csv *csv);

/** The index of a column, or -1. */
int rfl_csv_find(const struct rfl_csv *csv, const char *column);

/** The index of a column that the reader cannot do without; RFL_EFORMAT names the file and column.
 */
enum rfl_rc rfl_csv_need(const struct rfl_csv *csv, const char *column, int *ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

size_t rfl_csv_columns(const struct rfl_csv *csv);
const char *rfl_csv_column(const struct rfl_csv *csv, size_t i);

/**
 * Go to the next row. Empty lines are skipped.
 * @param more  set to false at the end of the file
 * @return RFL_OK; RFL_EFORMAT when a row has more fields than the header; RFL_EIO
 */
enum rfl_rc rfl_csv_next(struct rfl_csv *csv, bool *more, struct rfl_err *err) RFL_WARN_UNUSED;

/** How many fields the current row has: fewer than columns when the row is short. */
size_t rfl_csv_fields(const struct rfl_csv *csv);

/** A field of the current row; "" when the column is -1 or the row is short. Borrowed until next.
 */
const char *rfl_csv_text(const struct rfl_csv *csv, int column);

/** As a number: empty is NaN; RFL_EFORMAT names file, line and column. */
enum rfl_rc rfl_csv_double(const struct rfl_csv *csv, int column, double *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** As an integer: empty is `missing`; RFL_EFORMAT names file, line and column. */
enum rfl_rc rfl_csv_int(const struct rfl_csv *csv, int column, int64_t missing, int64_t *ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Keep a fingerprint of the bytes that are read: called before the first row. */
void rfl_csv_hash_begin(struct rfl_csv *csv);

/** That of all bytes of the file up to its end, after the last row; as rfl_hash64(). */
uint64_t rfl_csv_hash(const struct rfl_csv *csv);

/** The line on which the current row begins, counted from 1 (the header is line 1). */
size_t rfl_csv_line(const struct rfl_csv *csv);
const char *rfl_csv_path(const struct rfl_csv *csv);

/**
 * True when the current row is the last one and was not ended by a newline: a torn write, or a file
 * edited by hand. It is true as soon as that row was handed out, and also when rfl_csv_next()
 * failed because the file ends inside a quoted field.
 */
bool rfl_csv_torn(const struct rfl_csv *csv);

/**
 * Find the end of the record at the beginning of a text.
 * @param len    at least 1
 * @param end    past its line feed
 * @param whole  false: it is not CSV, does not end, or has a zero byte; `end` is then that of its
 *               first line
 */
enum rfl_rc rfl_csv_record(const char *text, size_t len, size_t *end, bool *whole,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Append one field, quoted where it has to be. */
void rfl_csv_write_field(struct rfl_buf *out, const char *field);

/** Append one row with its newline to a buffer, quoting exactly where RFC 4180 asks for it. */
void rfl_csv_write_row(struct rfl_buf *out, const char *const *fields, size_t n);

/**
 * Append one row to a table on disk: creates the file with its header when absent, holds an
 * exclusive lock, refuses a file whose header differs, writes the row in one write() and syncs it.
 * A torn last line, left by a power cut or a writer that was killed, is ended first, so that it
 * cannot swallow the new row.
 *
 * @return RFL_OK; RFL_EFORMAT when the header differs (message says which column); RFL_EIO
 */
enum rfl_rc rfl_csv_append(const char *path, const char *const *header, const char *const *fields,
			   size_t n, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Whether a file that is there has this header; what rfl_csv_append() asks before it writes.
 * @return RFL_OK; RFL_EFORMAT (message says which column differs); RFL_EIO
 */
enum rfl_rc rfl_csv_check_header(const char *path, const char *const *header, size_t n,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * rfl_csv_append() for several rows at once, which are all there afterwards or none.
 * @param n     columns of the header
 * @param rows  as rfl_csv_write_row() made them
 */
enum rfl_rc rfl_csv_append_rows(const char *path, const char *const *header, size_t n,
				const struct rfl_buf *rows, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
