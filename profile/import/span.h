/*
 * span.h - inside the importers: pieces of a line in place, and the numbers that other programs
 * write: digits in groups, a decimal comma, a unit behind.
 */
#ifndef RFL_PROFILE_SPAN_H
#define RFL_PROFILE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/import/input.h"

#ifdef __cplusplus
extern "C" {
#endif

/** For "%.*s": at most 60 bytes of a span, so that a message stays short. */
#define RFL_SPAN_ARG(s) ((int)((s).len < 60 ? (s).len : 60)), (s).at

bool rfl_span_is(struct rfl_span s, const char *text);
bool rfl_span_starts(struct rfl_span s, const char *text);
bool rfl_span_ends(struct rfl_span s, const char *text);
/** Where `text` begins in it, or s.len. */
size_t rfl_span_find(struct rfl_span s, const char *text);
bool rfl_span_has(struct rfl_span s, const char *text);

/** Without blanks at both ends. */
struct rfl_span rfl_span_trim(struct rfl_span s);
/** What is left when the first n bytes are taken off. */
struct rfl_span rfl_span_from(struct rfl_span s, size_t n);

/** Take the next line off: what detection looks at. False at the end. */
bool rfl_span_next_line(struct rfl_span *rest, struct rfl_span *line);
/** Take the next word (between blanks) off. False at the end. */
bool rfl_span_next_word(struct rfl_span *rest, struct rfl_span *word);

/** A copy with its NUL in `out`, cut to its size. @return out */
char *rfl_span_copy(struct rfl_span s, char *out, size_t out_size);

/** The whole of it as a number in the C locale, without groups; "1e-05" too. */
bool rfl_span_number(struct rfl_span s, double *ret) RFL_WARN_UNUSED;

/** Which sign is in front of the decimals, as far as a file has shown it. */
enum rfl_decimal { RFL_DECIMAL_UNKNOWN, RFL_DECIMAL_POINT, RFL_DECIMAL_COMMA };

/** What one number says of that: "1,234.5" and "0.25" a point, "1.234,5" and "0,25" a comma,
 * "1.234" and "12" nothing. */
enum rfl_decimal rfl_span_decimal(struct rfl_span s);

/**
 * The whole of it as a number with groups of three (by the other sign, by ', by a blank or a narrow
 * no-break blank).
 * @param decimal  RFL_DECIMAL_UNKNOWN reads as a point
 */
bool rfl_span_grouped(struct rfl_span s, enum rfl_decimal decimal, double *ret) RFL_WARN_UNUSED;

/** Half of the last decimal: 0.005 of "12.34", 5e-10 of "1.234e-06"; 0 where there are none. */
double rfl_span_half_digit(struct rfl_span s, enum rfl_decimal decimal);

/** Length of the number at the beginning, digits, signs and groups; 0: none. */
size_t rfl_span_number_len(struct rfl_span s);

#ifdef __cplusplus
}
#endif
#endif
