/* text.h - similar names, masking of control characters, and spans of text. */
#ifndef RFL_BASE_TEXT_H
#define RFL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"

RFL_API_BEGIN

/** Restricted Damerau-Levenshtein distance (a swap is one edit, no letter is edited twice),
 * ignoring case. Beyond 63 differing characters, it is the longer length. */
size_t rfl_text_distance(const char *a, const char *b);

/** The candidate most similar to `name`, or NULL if none is similar enough.
 * @param candidates  NULL-terminated */
const char *rfl_text_nearest(const char *name, const char *const *candidates);

/** Append up to `most` similar candidates as "a, b, c", most similar first. @return their number */
size_t rfl_text_suggest(const char *name, const char *const *candidates, size_t most,
			struct rfl_buf *out);

/** Room for the longest advice; a longer list of names is cut. */
#define RFL_ADVICE_SIZE 1024

/**
 * Advice for a name that is none of the candidates, for the end of a message: "did you mean a?",
 * or "did you mean a, b, c?" with at most `most` similar ones. If none is similar: `otherwise`, or
 * "use one of a, b, c" with all of them if that is NULL.
 * @return out
 */
const char *rfl_text_advice(const char *name, const char *const *candidates, size_t most,
			    const char *otherwise, char out[RFL_ADVICE_SIZE]);

/** Length of a character that must not reach a terminal or an XML file (ASCII controls and DEL,
 * U+0080 to U+009F, changes of text direction, U+FFFE, U+FFFF), or 0 for any other character. */
size_t rfl_text_control(const char *at);

/** Replace each such character, and each byte that is not UTF-8, with '?'. No NUL is written.
 * @param keep_lines  keep newlines and tabs
 * @return the new length, at most `len` */
size_t rfl_text_mask(char *text, size_t len, bool keep_lines);

/** Mask a string, including line breaks. */
void rfl_text_one_line(char *text);

/** Replace all characters but letters, digits, '.', '_' and '-' by '_', for names of files. */
void rfl_text_plain(char *text);

/** Mask a buffer from byte `from` on, keeping newlines and tabs. */
void rfl_text_mask_from(struct rfl_buf *text, size_t from);

/** Length of the UTF-8 character at `at` (RFC 3629: no surrogates or overlong forms); 0 if invalid.
 * @param left  bytes that may be read, at least 1 */
size_t rfl_text_utf8(const char *at, size_t left);

/** Are the strings equal? NULL equals "". */
static inline bool rfl_text_same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/** Append a word, quoted for a shell if necessary. */
void rfl_text_shell_word(const char *word, struct rfl_buf *out);

/** Is this a valid environment name: [a-z][a-z0-9_]*, 1 to 48 characters? */
bool rfl_text_is_env_name(const char *name);

/** The rule for names, as advice in messages. */
#define RFL_ENV_NAME_RULE "use a letter a-z, then a-z, 0-9 and _, at most 48 characters"

/** RFL_OK for a valid environment name, otherwise `rc` with a message that begins with `what`. */
enum rfl_rc rfl_text_check_env_name(const char *what, const char *name, enum rfl_rc rc,
				    struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_span {
	const char *at;
	size_t len;
};

/** Arguments for "%.*s": at most 60 bytes of a span, to keep messages short. */
#define RFL_SPAN_ARG(s) ((int)((s).len < 60 ? (s).len : 60)), (s).at

static inline struct rfl_span rfl_span_of(const char *text)
{
	const struct rfl_span all = { text, strlen(text) }; /* also valid in C++ */

	return all;
}
/* Inline, because it is called for the metric names of millions of rows. */
static inline bool rfl_span_same(struct rfl_span a, struct rfl_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}
static inline bool rfl_span_is(struct rfl_span s, const char *text)
{
	return rfl_span_same(s, rfl_span_of(text));
}
bool rfl_span_starts(struct rfl_span s, const char *text);
bool rfl_span_ends(struct rfl_span s, const char *text);
/** Offset of `text` in the span, or s.len if absent. */
size_t rfl_span_find(struct rfl_span s, const char *text);
static inline bool rfl_span_has(struct rfl_span s, const char *text)
{
	return rfl_span_find(s, text) < s.len;
}

/** The span without blanks at both ends. */
struct rfl_span rfl_span_trim(struct rfl_span s);
/** The span without its first n bytes. */
struct rfl_span rfl_span_from(struct rfl_span s, size_t n);

/** Take the next line from `rest`. False at the end. */
bool rfl_span_next_line(struct rfl_span *rest, struct rfl_span *line);
/** Take the next word (separated by blanks). False at the end. */
bool rfl_span_next_word(struct rfl_span *rest, struct rfl_span *word);
/** Take the next cell of a row that is drawn with vertical lines (U+2502), without blanks at its
 * ends. What is before the first line and after the last one is not a cell. */
bool rfl_span_next_cell(struct rfl_span *rest, struct rfl_span *cell);
/** Take the next text between single quotes. */
bool rfl_span_next_quoted(struct rfl_span *rest, struct rfl_span *text);
/** Take the next trimmed field from text without quotes. False after the last, with rest->at set to
 * NULL. */
bool rfl_span_next_field(struct rfl_span *rest, char separator, struct rfl_span *field);

/** Copy to `out`, NUL-terminated and cut to its size. @return out */
char *rfl_span_copy(struct rfl_span s, char *out, size_t out_size);

/** Parse the whole span as a number in the C locale, without groups. */
bool rfl_span_number(struct rfl_span s, double *ret);

/** Parse the whole span as a number that may have groups of digits.
 * @param decimal  '.' or ','; 0: a comma if present, otherwise a point
 * @param half     set to half a unit of the last decimal: 0.005 of "12.34", 5e-10 of "1.234e-06", 0
 *                 without decimals; may be NULL */
bool rfl_span_grouped(struct rfl_span s, char decimal, double *ret, double *half);

/** Length of the number at the beginning of the span, with sign, groups and exponent; 0: none. */
size_t rfl_span_number_len(struct rfl_span s);

RFL_API_END
#endif
