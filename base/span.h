/*
 * span.h - pieces of a text in place, and the numbers in them.
 */
#ifndef RFL_BASE_SPAN_H
#define RFL_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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
/** Where `text` begins in it, or s.len. */
size_t rfl_span_find(struct rfl_span s, const char *text);
bool rfl_span_has(struct rfl_span s, const char *text);
/* The names of the metrics of millions of rows are compared. */
static inline bool rfl_span_same(struct rfl_span a, struct rfl_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/** Without blanks at both ends. */
struct rfl_span rfl_span_trim(struct rfl_span s);
/** Without the first n bytes. */
struct rfl_span rfl_span_from(struct rfl_span s, size_t n);

/** Take the next line off. False at the end. */
bool rfl_span_next_line(struct rfl_span *rest, struct rfl_span *line);
/** Take the next word (between blanks) off. False at the end. */
bool rfl_span_next_word(struct rfl_span *rest, struct rfl_span *word);
/** Take the next field off, without blanks around it: for programs that quote nothing. False, with
 * rest->at NULL, after the last. */
bool rfl_span_next_field(struct rfl_span *rest, char separator, struct rfl_span *field);

/** A copy with its NUL in `out`, cut to its size. @return out */
char *rfl_span_copy(struct rfl_span s, char *out, size_t out_size);

/** The whole of it as a number of the C locale without groups. */
bool rfl_span_number(struct rfl_span s, double *ret);

/**
 * The whole of it as a number whose digits may be in groups.
 * @param decimal  '.' or ','; 0: a comma is the decimal sign if there is one
 * @param half     set to half of the last decimal: 0.005 of "12.34", 5e-10 of "1.234e-06", 0
 *                 without decimals; may be NULL
 */
bool rfl_span_grouped(struct rfl_span s, char decimal, double *ret, double *half);

/** Length of the number at the beginning, with sign, groups and exponent; 0: none. */
size_t rfl_span_number_len(struct rfl_span s);

#endif
