/*
 * where.h - the place of a value in a JSON document, for messages: the file, and a JSON pointer
 * (RFC 6901) that grows and shrinks with the walk.
 */
#ifndef RFL_BASE_WHERE_H
#define RFL_BASE_WHERE_H

#include <stddef.h>

#include "base/err.h"

struct rfl_where {
	const char *file; /**< borrowed */
	char pointer[1024];
	size_t len;
};

/** The top of a document. */
void rfl_where_init(struct rfl_where *w, const char *file);

/** A place in it that is known already. */
void rfl_where_begin(struct rfl_where *w, const char *file, const char *pointer);

/** Step down to a key or an index; the returned mark goes to rfl_where_up(). */
size_t rfl_where_key(struct rfl_where *w, const char *key);
size_t rfl_where_index(struct rfl_where *w, size_t i);
void rfl_where_up(struct rfl_where *w, size_t mark);

/** RFL_EFORMAT with "file: /pointer: message" on one line, control characters replaced. */
enum rfl_rc rfl_where_fail(const struct rfl_where *w, struct rfl_err *err, const char *fmt, ...)
	RFL_PRINTF(3, 4);

#endif
