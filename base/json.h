/*
 * json.h - strict JSON with jansson: duplicate and unknown keys are rejected, and reals are written
 * with the fewest digits that preserve the value. Messages name the file and the JSON pointer.
 */
#ifndef RFL_BASE_JSON_H
#define RFL_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

/** Let jansson end the process when memory runs out (base/alloc.h). Call it once, first. */
void rfl_json_setup(void);

/** The location of a value, for messages: file and JSON pointer (RFC 6901). */
struct rfl_where {
	const char *file; /**< borrowed */
	/** What is at this place, between pointer and message: "conv1"; borrowed; NULL: nothing */
	const char *name;
	size_t len;
	char pointer[1024];
};

/** Set the location; pointer "" is the root of the document. */
void rfl_where_begin(struct rfl_where *w, const char *file, const char *pointer);

/** Descend to a key or an index; pass the returned mark to rfl_where_up() to return. */
size_t rfl_where_key(struct rfl_where *w, const char *key);
size_t rfl_where_index(struct rfl_where *w, size_t i);
void rfl_where_up(struct rfl_where *w, size_t mark);

/** Fail with RFL_EFORMAT and "file: /pointer: message" on one line, control characters replaced. */
enum rfl_rc rfl_where_fail(const struct rfl_where *w, struct rfl_err *err, const char *fmt, ...)
	RFL_PRINTF(3, 4);

/** Reject keys of an object that are not in `allowed` (NULL-terminated), suggesting the nearest
 * known key. */
enum rfl_rc rfl_where_only_keys(const struct rfl_where *w, const json_t *obj,
				const char *const *allowed, struct rfl_err *err) RFL_WARN_UNUSED;

/** Load a file (at most 256 MiB).
 * @param ret  a new reference; release with json_decref()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with "file:line:column: reason" */
enum rfl_rc rfl_json_load(const char *path, json_t **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Load from memory; `name` is used as the file name in messages. err->native is the byte at which
 * a syntax error was found, or 0. */
enum rfl_rc rfl_json_loads(const char *text, size_t len, const char *name, json_t **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Load a file, or a text, that people write: from "//" to the end of a line is a comment. */
enum rfl_rc rfl_json_load_commented(const char *path, json_t **ret,
				    struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_json_loads_commented(const char *text, size_t len, const char *name, json_t **ret,
				     struct rfl_err *err) RFL_WARN_UNUSED;

/** Describe a value for a message: "an empty list", or its text, cut to `size`.
 * @return `out` or a constant */
const char *rfl_json_show(const json_t *value, char *out, size_t size);

/** The text of a string or a number, in the fewest digits; NULL for any other value.
 * @return `number` or a text that belongs to the value */
const char *rfl_json_scalar(const json_t *value, char number[RFL_NUM_MAX]);

/** Create a real, or JSON null for NaN and infinities. New reference. */
json_t *rfl_json_real(double value);

/** Create a string, or JSON null for NULL. Invalid UTF-8, for which json_string() returns NULL, is
 * kept, and written as U+FFFD. New reference. */
json_t *rfl_json_text(const char *text);

/** Add a member to an object, or an item to a list; NULL is added as JSON null. */
void rfl_json_put(json_t **o, const char *key, json_t *take_value);
void rfl_json_append(json_t **list, json_t *take_value);

/** Append a value, indented by two spaces, with keys in insertion order and reals in the shortest
 * exact form. NULL marks the buffer as failed. */
void rfl_json_write(struct rfl_buf *out, const json_t *value);

/** Append a value on one line, without a newline at the end. */
void rfl_json_write_line(struct rfl_buf *out, const json_t *value);

/** Append a string with its quotes; invalid UTF-8 becomes U+FFFD. */
void rfl_json_write_string(struct rfl_buf *out, const char *text, size_t len);

/** Append a number that is read back as a real; null for NaN and infinities. */
void rfl_json_write_real(struct rfl_buf *out, double value);

/** Write a value and a newline to a file, atomically. */
enum rfl_rc rfl_json_save(const char *path, const json_t *value,
			  struct rfl_err *err) RFL_WARN_UNUSED;

#endif
