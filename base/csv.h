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

/** The index of a required column; RFL_EFORMAT names the file and column. */
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

/** A field of the current row, borrowed until next; "" when column is -1 or the row is short. */
const char *rfl_csv_text(const struct rfl_csv *csv, int column);

/** As a number: empty is NaN; RFL_EFORMAT names file, line and column. */
enum rfl_rc rfl_csv_double(const struct rfl_csv *csv, int column, double *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** As an integer: empty is `missing`; RFL_EFORMAT names file, line and column. */
enum rfl_rc rfl_csv_int(const struct rfl_csv *csv, int column, int64_t missing, int64_t *ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Hash the bytes that are read, as rfl_hash64() does: begin before the first row, and read the
 * hash after the last. */
void rfl_csv_hash_begin(struct rfl_csv *csv);
uint64_t rfl_csv_hash(const struct rfl_csv *csv);

/** The line on which the current row begins, counted from 1 (the header is line 1). */
size_t rfl_csv_line(const struct rfl_csv *csv);
const char *rfl_csv_path(const struct rfl_csv *csv);

/** True when the current row is the last and has no newline (a torn write, an edited file), or
 * rfl_csv_next() failed because the file ends inside a quoted field. */
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

/** Append one field, or a row with its newline, quoted only where RFC 4180 requires it. */
void rfl_csv_write_field(struct rfl_buf *out, const char *field);
void rfl_csv_write_row(struct rfl_buf *out, const char *const *fields, size_t n);

/**
 * Append one row to a table on disk, in one write() under an exclusive lock, and sync it. An absent
 * file is created with its header. A torn last line, left by a power cut or a killed writer, is
 * ended first.
 *
 * @return RFL_OK; RFL_EFORMAT when the header differs (message says which column); RFL_EIO
 */
enum rfl_rc rfl_csv_append(const char *path, const char *const *header, const char *const *fields,
			   size_t n, struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether an existing file has this header. Errors as of rfl_csv_append(). */
enum rfl_rc rfl_csv_check_header(const char *path, const char *const *header, size_t n,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** rfl_csv_append() for several rows, as rfl_csv_write_row() writes them: all or none.
 * @param n  columns of the header */
enum rfl_rc rfl_csv_append_rows(const char *path, const char *const *header, size_t n,
				const struct rfl_buf *rows, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
