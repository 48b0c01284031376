/*
 * json_stream.h - reads JSON value by value from a stream, for files that are too large for
 * json.h. Memory use does not depend on the file's size; nesting is limited.
 */
#ifndef RFL_BASE_JSON_STREAM_H
#define RFL_BASE_JSON_STREAM_H

#include "base/input.h"

#define RFL_JSON_DEPTH_MAX 64
#define RFL_JSON_TEXT_MAX  4096 /* the rest of a longer text is dropped */

enum rfl_json_token {
	RFL_JSON_ERROR, /**< the reader's `rc` is set; so is every later token */
	RFL_JSON_END,   /**< of the file */
	RFL_JSON_OBJECT,
	RFL_JSON_ARRAY,
	RFL_JSON_CLOSE, /**< of an object or array */
	RFL_JSON_KEY,
	RFL_JSON_STRING,
	RFL_JSON_NUMBER,
	RFL_JSON_WORD, /**< true, false, null; NaN and infinities are read as null */
};

/** Set `in` and `err`; the rest is 0 at first. */
struct rfl_json_stream {
	struct rfl_input *in;
	struct rfl_err *err;
	enum rfl_rc rc; /**< RFL_EFORMAT with "file:line: ..." in `err`, or RFL_EIO */
	/** The last key, string, number or word; control characters are replaced. */
	char text[RFL_JSON_TEXT_MAX + 1];
	size_t len;
	double number; /**< the last number; NaN after any other value */
	size_t depth;  /**< number of open objects and arrays */

	/* private to json_stream.c */
	struct rfl_span window;
	size_t at; /* in the window */
	bool is_object[RFL_JSON_DEPTH_MAX];
	bool after_key, after_value;
};

enum rfl_json_token rfl_json_next(struct rfl_json_stream *s);

/** Skip the rest of the value that began with this token. */
enum rfl_json_token rfl_json_skip(struct rfl_json_stream *s, enum rfl_json_token token);

/** Set `in->line` to the current line, for messages. */
void rfl_json_settle(struct rfl_json_stream *s);

#endif
