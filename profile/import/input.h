/*
 * input.h - reads a profiler's file as a stream, from a regular file, a pipe or memory. Lines and
 * CSV records are returned in place, without copies.
 */
#ifndef RFL_PROFILE_INPUT_H
#define RFL_PROFILE_INPUT_H

#include "base/buf.h"
#include "base/text.h"

/** Longer lines and records are refused. */
#define RFL_INPUT_LINE_MAX ((size_t)8 << 20)

/** An open file. */
struct rfl_input {
	/* for callers to read */
	char *name;
	size_t line; /**< the line on which the last line or record began, from 1 */
	bool torn;   /**< the last line or record ends at the end of the file, without a newline */
	/** The number of leading fields known to equal those of the previous record. */
	size_t same;
	/** For callers to set: a record with undoubled quotes inside fields is accepted if this is
	 * its number of fields; 0: never. */
	size_t width;

	/* private to input.c */
	int fd;           /* -1: read from memory */
	const char *text; /* from memory: the bytes left to read */
	size_t text_len;
	struct rfl_buf utf8; /* a UTF-16 file, decoded */
	char *window;        /* cap bytes, and padding for reading whole blocks */
	size_t cap, end;
	size_t at;   /* offset of the next line or record */
	size_t keep; /* offset of the last record */
	bool nuls;   /* zero bytes were read */
	bool started, eof;
	bool skipping; /* the line at `at` was refused: skip the rest of it */
	size_t next_line;
	struct rfl_span *fields; /* of the record at `keep` */
	struct rfl_cut *cuts;
	size_t nfields, fields_cap, cuts_cap;
	size_t record_len; /* 0: its fields cannot be reused */
	struct rfl_buf undone;
};

/** Open a file; "-" is standard input. @param ret  release with rfl_input_close() */
enum rfl_rc rfl_input_open(const char *path, struct rfl_input **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
/** Read from memory, which must outlive the input. */
struct rfl_input *rfl_input_open_text(const char *text, size_t len, const char *name);
void rfl_input_close(struct rfl_input *in); /* accepts NULL */

#define RFL_INPUT_HEAD  ((size_t)64 << 10) /* to detect the format */
#define RFL_INPUT_AHEAD ((size_t)64)       /* to distinguish records from lines */
/** Return up to `most` of the next bytes without consuming them, fewer at the end of the file. A
 * byte order mark is dropped; UTF-16, as written by PowerShell's `>`, is decoded. */
enum rfl_rc rfl_input_peek(struct rfl_input *in, size_t most, struct rfl_span *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/* The functions below return RFL_EFORMAT with "file:line:column: ..." for a line that is too long,
 * a zero byte, or unbalanced quotes; the next call continues after that line. */

/** Read a line without its newline (LF or CRLF), valid until the next call. @param more  false at
 * the end of the file */
enum rfl_rc rfl_input_line(struct rfl_input *in, struct rfl_span *ret, bool *more,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a CSV record as unquoted fields. Quoted fields may span lines; an empty line is one empty
 * field. @param fields  valid until the next call */
enum rfl_rc rfl_input_record(struct rfl_input *in, char delimiter, const struct rfl_span **fields,
			     size_t *nfields, bool *more, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
