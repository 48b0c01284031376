/*
 * input.h - the bytes of a profiler's file, as a stream: regular file, pipe or memory. A window of
 * flat size slides over it; lines and CSV records are found in place, nothing is copied.
 */
#ifndef RFL_PROFILE_INPUT_H
#define RFL_PROFILE_INPUT_H

#include "base/buf.h"
#include "base/text.h"

/** A line or record longer than this is refused, by its line number. */
#define RFL_INPUT_LINE_MAX ((size_t)8 << 20)

/** An open file. */
struct rfl_input {
	/* for everybody to read */
	char *name;
	size_t line; /**< on which the last line or record began, from 1 */
	bool torn;   /**< it was ended by the end of the file, not by a newline */
	/** Leading fields of the record that are, byte by byte, those of the record before: what
	 * was made of them then can be used again. It may be fewer than there are. */
	size_t same;

	/* of input.c */
	int fd;           /* -1: from memory */
	const char *text; /* from memory: the rest of it */
	size_t text_len;
	struct rfl_buf utf8; /* of a file in UTF-16, which is decoded as a whole */
	char *window;        /* cap bytes, and some for reading whole blocks */
	size_t cap, end;
	size_t at;   /* of the next line or record */
	size_t keep; /* of the last record */
	bool nuls;   /* zero bytes were read */
	bool started, eof;
	bool skipping; /* the line at `at` was refused: drop the rest of it */
	size_t next_line;
	struct rfl_span *fields; /* of the record at keep */
	struct rfl_cut *cuts;
	size_t nfields, fields_cap;
	size_t record_len; /* 0: none, or one of which the fields cannot be used again */
	struct rfl_buf undone;
};

/** Open a file; "-" is standard input. @param ret  release with rfl_input_close() */
enum rfl_rc rfl_input_open(const char *path, struct rfl_input **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
/** From memory, which must stay. */
enum rfl_rc rfl_input_open_text(const char *text, size_t len, const char *name,
				struct rfl_input **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_input_close(struct rfl_input *in); /* accepts NULL */

#define RFL_INPUT_HEAD  ((size_t)64 << 10) /* for detection */
#define RFL_INPUT_AHEAD ((size_t)64)       /* to tell a record from a line */
/**
 * Up to `most` of the next bytes, fewer at the end of the file; nothing is consumed. A byte order
 * mark is left out; UTF-16 with its mark, which PowerShell's `>` writes, is decoded.
 */
enum rfl_rc rfl_input_peek(struct rfl_input *in, size_t most, struct rfl_span *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/*
 * Below: RFL_EFORMAT with "file:line:column: ..." for a line that is too long, a zero byte, or
 * quotes that do not match; the next call continues with the line after the one that was refused.
 */

/** The next line without its newline (LF or CRLF). Valid until the next call. @param more  false at
 * the end */
enum rfl_rc rfl_input_line(struct rfl_input *in, struct rfl_span *ret, bool *more,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The next CSV record as fields, quotes removed and doubled quotes undone. A record may span lines
 * inside quotes; an empty line is one empty field.
 * @param fields  borrowed until the next call
 */
enum rfl_rc rfl_input_record(struct rfl_input *in, char delimiter, const struct rfl_span **fields,
			     size_t *nfields, bool *more, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
