/*
 * json.h - strict JSON on jansson: duplicate keys and unknown keys are refused with their path,
 * numbers are written with the fewest digits that read back exactly. Messages name the place.
 */
#ifndef RFL_BASE_JSON_H
#define RFL_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/** The place of a value in a document, for messages: the file, and a JSON pointer (RFC 6901) that
 * grows and shrinks with the walk. */
struct rfl_where {
	const char *file; /**< borrowed */
	char pointer[1024];
	size_t len;
};

/** A place in a document, "" for its top. */
void rfl_where_begin(struct rfl_where *w, const char *file, const char *pointer);

/** Step down to a key or an index; the returned mark goes to rfl_where_up(). */
size_t rfl_where_key(struct rfl_where *w, const char *key);
size_t rfl_where_index(struct rfl_where *w, size_t i);
void rfl_where_up(struct rfl_where *w, size_t mark);

/** RFL_EFORMAT with "file: /pointer: message" on one line, control characters replaced. */
enum rfl_rc rfl_where_fail(const struct rfl_where *w, struct rfl_err *err, const char *fmt, ...)
	RFL_PRINTF(3, 4);

/** Load a file (at most 256 MiB).
 * @param ret  a new reference; release with json_decref()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with "file:line:column: reason" */
enum rfl_rc rfl_json_load(const char *path, json_t **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Load from memory; `name` stands for the file in messages. */
enum rfl_rc rfl_json_loads(const char *text, size_t len, const char *name, json_t **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Refuse keys that are not in `allowed` (NULL-terminated), naming the nearest known key.
 * @param path  JSON pointer of obj, for example "/environments/lab_cpu" */
enum rfl_rc rfl_json_only_keys(const json_t *obj, const char *const *allowed, const char *file,
			       const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** A value as a message shows it: "an empty list", or its text, shortened to `size`. @return either
 * `out` or a constant */
const char *rfl_json_show(const json_t *value, char *out, size_t size);

/** A real, or JSON null for NaN and infinities. New reference, or NULL out of memory. */
json_t *rfl_json_real(double value);

/** Append the value, two blanks per level, keys in their order, shortest exact reals. NULL (a
 * builder ran out of memory) fails the buffer. */
void rfl_json_write(struct rfl_buf *out, const json_t *value);

/** The same on one line, for lists of many small objects: the caller writes the separators. */
void rfl_json_write_line(struct rfl_buf *out, const json_t *value);

/** Append one string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void rfl_json_write_string(struct rfl_buf *out, const char *text, size_t len);

/** Append one real, so that it reads back as a real; null for NaN and infinities. */
void rfl_json_write_real(struct rfl_buf *out, double value);

/** The same as rfl_json_write() into a file, atomically, ended by a newline. */
enum rfl_rc rfl_json_save(const char *path, const json_t *value,
			  struct rfl_err *err) RFL_WARN_UNUSED;

#endif
