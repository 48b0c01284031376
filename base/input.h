/*
 * input.h - reads a text file as a stream, from a regular file, a pipe or memory, gzipped or not.
 * Lines and CSV records are returned in place, without copies. Memory use does not depend on the
 * file's size.
 */
#ifndef RFL_BASE_INPUT_H
#define RFL_BASE_INPUT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"

#define RFL_INPUT_LINE_MAX ((size_t)8 << 20)

/** An open file. */
struct rfl_input {
	/* for callers to read */
	char *name;
	size_t line; /**< the line on which the last line or record began, from 1 */
	bool torn;   /**< the last line or record ends at the end of the file, without a newline */
	size_t offset, next_offset; /**< bytes of the file at which it begins, and the next one */
	/** The number of leading fields known to equal the previous record's. */
	size_t same;
	uint64_t hash; /**< rfl_hash64() of the bytes read while `hashed` was set */

	/* for callers to set */
	size_t line_max; /**< longer lines and records are refused; RFL_INPUT_LINE_MAX by default */
	/** A record with undoubled quotes inside fields is accepted if this is its number of
	 * fields; 0: never. */
	size_t width;
	/** Quotes must be as in RFC 4180, UTF-16 and gzip are refused; empty lines are skipped. */
	bool strict;
	bool hashed;

	/* private to input.c */
	int fd;           /* -1: read from memory */
	const char *text; /* from memory: the bytes left to read */
	size_t text_len;
	struct rfl_buf utf8;       /* a UTF-16 file, decoded */
	struct rfl_gunzip *gunzip; /* NULL: not compressed */
	const char *broken;        /* why the compressed data end early; NULL: they do not */
	char *window;              /* cap bytes, and padding for reading whole blocks */
	size_t cap, end;
	size_t base; /* offset of the window in the file */
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

/** Open a file. @param ret  release with rfl_input_close() */
enum rfl_rc rfl_input_open(const char *path, struct rfl_input **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
/** As rfl_input_open(), but "-" is standard input. */
enum rfl_rc rfl_input_open_any(const char *path, struct rfl_input **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
/** Read from memory, which must outlive the input. */
struct rfl_input *rfl_input_open_text(const char *text, size_t len, const char *name);
void rfl_input_close(struct rfl_input *in); /* accepts NULL */
RFL_AUTOPTR_TYPE(input, close);
/** Continue with the line or record that begins at a byte of a regular file. */
enum rfl_rc rfl_input_seek(struct rfl_input *in, size_t offset,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#define RFL_INPUT_HEAD  ((size_t)64 << 10) /* to detect the format */
#define RFL_INPUT_AHEAD ((size_t)64)       /* to distinguish records from lines */
/** Return up to `most` of the next bytes without consuming them, fewer at the end of the file. A
 * byte order mark is dropped; UTF-16, as written by PowerShell's `>`, is decoded. */
enum rfl_rc rfl_input_peek(struct rfl_input *in, size_t most, struct rfl_span *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
/** Consume `len` of the bytes that rfl_input_peek() returned. `line` is the line that follows. */
void rfl_input_skip(struct rfl_input *in, size_t len);

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

/** End a field of the last record with a NUL byte, in place of its delimiter or closing quote. */
static inline const char *rfl_input_text(const struct rfl_span *field)
{
	char *at = (char *)(uintptr_t)field->at; /* in the window */

	at[field->len] = '\0';
	return at;
}

#endif
