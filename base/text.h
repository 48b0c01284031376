/*
 * text.h - small helpers for names: edit distance, nearest match, what may be printed.
 */
#ifndef RFL_BASE_TEXT_H
#define RFL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/** Restricted Damerau-Levenshtein distance (a swap counts one, no letter is edited twice), without
 * case; the longer length where more than 63 characters differ. */
size_t rfl_text_distance(const char *a, const char *b);

/**
 * The candidate nearest to `name`, or NULL when none is near enough to be worth suggesting.
 * @param candidates  NULL-terminated
 */
const char *rfl_text_nearest(const char *name, const char *const *candidates);

/** Append the candidates near enough, nearest first, at most `most`, as "a, b, c". */
size_t rfl_text_suggest(const char *name, const char *const *candidates, size_t most,
			struct rfl_buf *out);

/**
 * Whether a character begins here that must not reach a terminal or an XML file: a control of ASCII
 * (DEL included) or of U+0080 to U+009F, one that changes the direction of text, U+FFFE or U+FFFF.
 * @return its bytes, 1 to 3; 0: none
 */
size_t rfl_text_control(const char *at);

/** Replace each such character, and each byte that is not UTF-8, by '?'; no NUL is written.
 * @param keep_lines  newlines and tabs stay
 * @return the new length, at most `len` */
size_t rfl_text_mask(char *text, size_t len, bool keep_lines);

/** Make a text one line that can be shown. */
void rfl_text_one_line(char *text);

/** Mask what was appended to a buffer from the byte `from` on; its lines stay. */
void rfl_text_mask_from(struct rfl_buf *text, size_t from);

/** Bytes of the UTF-8 character that begins here (RFC 3629: no surrogates, no overlong forms); 0:
 * none does. @param left  bytes that may be read, at least 1 */
size_t rfl_text_utf8(const char *at, size_t left);

/** Equal texts; NULL is as "". */
bool rfl_text_same(const char *a, const char *b);

/** An environment's name: [a-z][a-z0-9_]*, 1 to 48 characters. */
bool rfl_text_is_env_name(const char *name);

/** The same as advice, for messages. */
#define RFL_ENV_NAME_RULE "use a letter a-z, then a-z, 0-9 and _, at most 48 characters"

/** RFL_OK for such a name, else `rc` with a message that begins with `what`. */
enum rfl_rc rfl_text_check_env_name(const char *what, const char *name, enum rfl_rc rc,
				    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
