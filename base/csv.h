/*
 * csv.h - RFC 4180 tables with a header row: a streaming reader (libcsv) and an exact writer.
 *
 * Columns are found by name; unknown columns are ignored. An empty field means unknown and reads as
 * NaN. Every message names file, line and column.
 */
#ifndef RFL_BASE_CSV_H
#define RFL_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

/** An open file; memory use does not depend on its size. Callers may read the first members. */
struct rfl_csv {
	char *path;
	char **columns; /**< names in the header, without blanks around them */
	size_t ncolumns;
	size_t line;    /**< where the current row begins; the header is line 1 */
	size_t nfields; /**< of the current row: fewer than columns when the row is short */
	bool torn;      /**< the current row is the last and has no newline (a torn write, an edited
			 * file), or rfl_csv_next() failed because the file ends inside a quoted field */
	bool hashed;    /**< set before the first row: `hash` is rfl_hash64() of the bytes read */
	uint64_t hash;  /**< complete after the last row */

	/* private to the reader */
	FILE *f;
	struct csv_parser *parser;
	char *block;
	size_t block_len, block_at;
	size_t next_line;    /* line of the next byte */
	struct rfl_buf text; /* fields of the current row, NUL-terminated */
	size_t *fields;      /* offsets in text */
	size_t fields_cap;
	bool begun, row_done, no_memory, at_end;
	struct rfl_arena *arena;      /* owns the names of the columns */
	struct rfl_csv_name *by_name; /* columns that have a name, sorted */
	size_t nnamed;
};

/** Open a file and read its header row (a UTF-8 byte order mark is skipped, CRLF is accepted).
 * @param ret  release with rfl_csv_close()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT: empty, duplicate column, or not CSV */
enum rfl_rc rfl_csv_open(const char *path, struct rfl_csv **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a text in memory.
 * @param text  not empty; must stay valid until the table is closed
 * @param name  used as the file name in messages */
enum rfl_rc rfl_csv_open_text(const char *text, size_t len, const char *name, struct rfl_csv **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_csv_close(struct rfl_csv *csv);

/** The index of a column, or -1. */
int rfl_csv_find(const struct rfl_csv *csv, const char *column);

/** The index of a required column; RFL_EFORMAT names the file and column. */
enum rfl_rc rfl_csv_need(const struct rfl_csv *csv, const char *column, int *ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Go to the next row; empty lines are skipped.
 * @param more  set to false at the end of the file
 * @return RFL_OK; RFL_EFORMAT when a row has more fields than the header; RFL_EIO */
enum rfl_rc rfl_csv_next(struct rfl_csv *csv, bool *more, struct rfl_err *err) RFL_WARN_UNUSED;

/** A field of the current row, valid until the next row; "" if column is -1 or the row is short. */
const char *rfl_csv_text(const struct rfl_csv *csv, int column);

/** As a number: empty is NaN; RFL_EFORMAT names file, line and column. */
enum rfl_rc rfl_csv_double(const struct rfl_csv *csv, int column, double *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** As an integer: empty is `missing`; RFL_EFORMAT names file, line and column. */
enum rfl_rc rfl_csv_int(const struct rfl_csv *csv, int column, int64_t missing, int64_t *ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Find the end of the record at the beginning of a text.
 * @param len    at least 1
 * @param end    set to the offset after its line feed
 * @param whole  false: not CSV, incomplete, or a zero byte; `end` is then the end of the first line
 */
enum rfl_rc rfl_csv_record(const char *text, size_t len, size_t *end, bool *whole,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Append one field, or a row with its newline, quoted only where RFC 4180 requires it. */
void rfl_csv_write_field(struct rfl_buf *out, const char *field);
void rfl_csv_write_row(struct rfl_buf *out, const char *const *fields, size_t n);

/** Append rows, as rfl_csv_write_row() writes them, to a table on disk: all or none, in one write()
 * under an exclusive lock, and synced. An absent file is created with its header. A last line left
 * incomplete by a power cut or a killed writer is ended first.
 * @param n  columns of the header
 * @return RFL_OK; RFL_EFORMAT naming the column where the header differs; RFL_EIO */
enum rfl_rc rfl_csv_append_rows(const char *path, const char *const *header, size_t n,
				const struct rfl_buf *rows, struct rfl_err *err) RFL_WARN_UNUSED;

/** Check that an existing file has this header; errors as for rfl_csv_append_rows(). */
enum rfl_rc rfl_csv_check_header(const char *path, const char *const *header, size_t n,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
