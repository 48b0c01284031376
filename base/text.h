/*
 * text.h - small helpers for names: edit distance, nearest match, what may be printed.
 */
#ifndef RFL_BASE_TEXT_H
#define RFL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Damerau-Levenshtein distance in its restricted form (an adjacent swap counts one, and no letter
 * is edited twice), without case. Where more than 63 characters differ, the longer length is
 * given.
 */
size_t rfl_text_distance(const char *a, const char *b);

/**
 * The candidate nearest to `name`, or NULL when none is near enough to be worth suggesting.
 * @param candidates  NULL-terminated
 */
const char *rfl_text_nearest(const char *name, const char *const *candidates);

/** Append the candidates within suggesting distance, nearest first, at most `most`, as "a, b, c".
 */
size_t rfl_text_suggest(const char *name, const char *const *candidates, size_t most,
			struct rfl_buf *out);

/**
 * Whether a control character begins here: ASCII's, DEL, or one of U+0080 to U+009F in UTF-8.
 * @return its bytes, 1 or 2; 0: none
 */
size_t rfl_text_control(const char *at);

/** Replace control characters, so that text of a file stays one line of a message. */
void rfl_text_one_line(char *text);

/** Bytes of the UTF-8 character that begins here (RFC 3629: no surrogates, no overlong forms); 0:
 * none does. @param left  bytes that may be looked at, at least 1 */
size_t rfl_text_utf8(const char *at, size_t left);

/** A name as a message can show it: control characters and bytes that are not UTF-8 become \xhh.
 * What does not fit into `size` is left out. */
void rfl_text_show(const char *text, char *out, size_t size);

/** Equal texts; NULL is as "". */
bool rfl_text_same(const char *a, const char *b);

/** An environment's name: [a-z][a-z0-9_]*, 1 to 48 characters. */
bool rfl_text_is_env_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
