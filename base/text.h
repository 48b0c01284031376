/* text.h - nearest names, masking of control characters, and spans of text. */
#ifndef RFL_BASE_TEXT_H
#define RFL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"

/** Restricted Damerau-Levenshtein distance (a swap counts as one edit, no letter is edited twice),
 * ignoring case; the longer length if more than 63 characters differ. */
size_t rfl_text_distance(const char *a, const char *b);

/** The candidate nearest to `name`, or NULL if none is similar enough.
 * @param candidates  NULL-terminated */
const char *rfl_text_nearest(const char *name, const char *const *candidates);

/** Append up to `most` similar candidates as "a, b, c", nearest first. @return how many */
size_t rfl_text_suggest(const char *name, const char *const *candidates, size_t most,
			struct rfl_buf *out);

/** Bytes of a character that must not reach a terminal or an XML file: ASCII controls and DEL,
 * U+0080 to U+009F, changes of text direction, U+FFFE, U+FFFF. 0: another character begins here. */
size_t rfl_text_control(const char *at);

/** Replace each such character, and each byte that is not UTF-8, by '?'; no NUL is written.
 * @param keep_lines  newlines and tabs stay
 * @return the new length, at most `len` */
size_t rfl_text_mask(char *text, size_t len, bool keep_lines);

/** Mask a text including its line breaks. */
void rfl_text_one_line(char *text);

/** Mask a buffer from byte `from` on, keeping its lines. */
void rfl_text_mask_from(struct rfl_buf *text, size_t from);

/** Bytes of the UTF-8 character that begins here (RFC 3629: no surrogates, no overlong forms); 0:
 * none does. @param left  bytes that may be read, at least 1 */
size_t rfl_text_utf8(const char *at, size_t left);

/** Compare texts; NULL equals "". */
bool rfl_text_same(const char *a, const char *b);

/** Whether this is a valid name of an environment: [a-z][a-z0-9_]*, 1 to 48 characters. */
bool rfl_text_is_env_name(const char *name);

/** The rule as advice in messages. */
#define RFL_ENV_NAME_RULE "use a letter a-z, then a-z, 0-9 and _, at most 48 characters"

/** RFL_OK for such a name, else `rc` with a message that begins with `what`. */
enum rfl_rc rfl_text_check_env_name(const char *what, const char *name, enum rfl_rc rc,
				    struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_span {
	const char *at;
	size_t len;
};

/** For "%.*s": at most 60 bytes of a span, so that a message stays short. */
#define RFL_SPAN_ARG(s) ((int)((s).len < 60 ? (s).len : 60)), (s).at

struct rfl_span rfl_span_of(const char *text);
bool rfl_span_is(struct rfl_span s, const char *text);
bool rfl_span_starts(struct rfl_span s, const char *text);
bool rfl_span_ends(struct rfl_span s, const char *text);
/** Offset of `text` in the span, or s.len. */
size_t rfl_span_find(struct rfl_span s, const char *text);
bool rfl_span_has(struct rfl_span s, const char *text);
/* Inline: used on the metric names of millions of rows. */
static inline bool rfl_span_same(struct rfl_span a, struct rfl_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/** Without blanks at both ends. */
struct rfl_span rfl_span_trim(struct rfl_span s);
/** Without the first n bytes. */
struct rfl_span rfl_span_from(struct rfl_span s, size_t n);

/** Take the next line from `rest`. False at the end. */
bool rfl_span_next_line(struct rfl_span *rest, struct rfl_span *line);
/** Take the next word (between blanks). False at the end. */
bool rfl_span_next_word(struct rfl_span *rest, struct rfl_span *word);
/** Take the next field, trimmed, from text without quoting. False, with rest->at NULL, after the
 * last. */
bool rfl_span_next_field(struct rfl_span *rest, char separator, struct rfl_span *field);

/** Copy to `out`, NUL-terminated and cut to its size. @return out */
char *rfl_span_copy(struct rfl_span s, char *out, size_t out_size);

/** Read the whole span as a number of the C locale without groups. */
bool rfl_span_number(struct rfl_span s, double *ret);

/**
 * Read the whole span as a number that may have groups of digits.
 * @param decimal  '.' or ','; 0: a comma is the decimal sign, if present
 * @param half     set to half a unit of the last decimal: 0.005 of "12.34", 5e-10 of "1.234e-06", 0
 *                 without decimals; may be NULL
 */
bool rfl_span_grouped(struct rfl_span s, char decimal, double *ret, double *half);

/** Length of the number at the beginning, including sign, groups and exponent; 0: none. */
size_t rfl_span_number_len(struct rfl_span s);

#endif
