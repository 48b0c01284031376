/*
 * input.h - the bytes of a profiler's file, as a stream: regular file, pipe or memory. A window of
 * flat size slides over it; lines and CSV records are found in place, nothing is copied.
 */
#ifndef RFL_PROFILE_INPUT_H
#define RFL_PROFILE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A line or record longer than this is refused, by its line number. */
#define RFL_INPUT_LINE_MAX ((size_t)8 << 20)

struct rfl_input;

struct rfl_span {
	const char *at;
	size_t len;
};

/** Open a file; "-" is standard input. @param ret  release with rfl_input_close() */
enum rfl_rc rfl_input_open(const char *path, struct rfl_input **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
/** From memory, which must stay. */
enum rfl_rc rfl_input_open_text(const char *text, size_t len, const char *name,
				struct rfl_input **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_input_close(struct rfl_input *in); /* accepts NULL */

const char *rfl_input_name(const struct rfl_input *in);

/** The first bytes (up to 64 KiB, fewer at the end of the file) for detection; nothing is consumed.
 * A byte order mark is left out; UTF-16, which PowerShell's `>` writes, is refused with the cure.
 */
enum rfl_rc rfl_input_peek(struct rfl_input *in, struct rfl_span *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The next line without its newline (LF or CRLF). Valid until the next call. @param more  false at
 * the end */
enum rfl_rc rfl_input_line(struct rfl_input *in, struct rfl_span *ret, bool *more,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The next CSV record as fields, quotes removed and doubled quotes undone (in place). A record may
 * span lines inside quotes.
 * @param fields  borrowed until the next call
 * @param raw     the whole record as it stands in the file; may be NULL
 */
enum rfl_rc rfl_input_record(struct rfl_input *in, char delimiter, const struct rfl_span **fields,
			     size_t *nfields, struct rfl_span *raw, bool *more,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The line, from 1, on which what was handed out last began. */
size_t rfl_input_line_number(const struct rfl_input *in);
/** What was handed out last was ended by the end of the file, not by a newline. */
bool rfl_input_torn(const struct rfl_input *in);

#ifdef __cplusplus
}
#endif
#endif
