/*
 * span.c - pieces of a text, and the numbers in them.
 */
#define _GNU_SOURCE /* memmem */

#include "base/span.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

struct rfl_span rfl_span_of(const char *text)
{
	return (struct rfl_span){ .at = text, .len = strlen(text) };
}

bool rfl_span_is(struct rfl_span s, const char *text)
{
	return rfl_span_same(s, rfl_span_of(text));
}

bool rfl_span_starts(struct rfl_span s, const char *text)
{
	size_t len = strlen(text);

	return s.len >= len && memcmp(s.at, text, len) == 0;
}

bool rfl_span_ends(struct rfl_span s, const char *text)
{
	size_t len = strlen(text);

	return s.len >= len && memcmp(s.at + s.len - len, text, len) == 0;
}

size_t rfl_span_find(struct rfl_span s, const char *text)
{
	const char *at = s.len > 0 ? memmem(s.at, s.len, text, strlen(text)) : NULL;

	return at ? (size_t)(at - s.at) : s.len;
}

bool rfl_span_has(struct rfl_span s, const char *text)
{
	return rfl_span_find(s, text) < s.len;
}

struct rfl_span rfl_span_from(struct rfl_span s, size_t n)
{
	if (n > s.len)
		n = s.len;
	return (struct rfl_span){ .at = s.at + n, .len = s.len - n };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct rfl_span rfl_span_trim(struct rfl_span s)
{
	while (s.len > 0 && is_blank(s.at[0]))
		s = rfl_span_from(s, 1);
	while (s.len > 0 && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

bool rfl_span_next_line(struct rfl_span *rest, struct rfl_span *line)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->at, '\n', rest->len);
	*line = (struct rfl_span){ .at = rest->at,
				   .len = end ? (size_t)(end - rest->at) : rest->len };
	*rest = rfl_span_from(*rest, line->len + (end != NULL));
	if (line->len > 0 && line->at[line->len - 1] == '\r')
		line->len--;
	return true;
}

bool rfl_span_next_word(struct rfl_span *rest, struct rfl_span *word)
{
	struct rfl_span s = rfl_span_trim(*rest);
	size_t n = 0;

	while (n < s.len && !is_blank(s.at[n]))
		n++;
	*word = (struct rfl_span){ .at = s.at, .len = n };
	*rest = rfl_span_from(s, n);
	return n > 0;
}

bool rfl_span_next_field(struct rfl_span *rest, char separator, struct rfl_span *field)
{
	const char *end;

	if (!rest->at)
		return false;
	end = rest->len > 0 ? memchr(rest->at, separator, rest->len) : NULL;
	*field = *rest;
	if (end) {
		field->len = (size_t)(end - rest->at);
		*rest = rfl_span_from(*rest, field->len + 1);
	} else {
		*rest = (struct rfl_span){ .at = NULL, .len = 0 };
	}
	*field = rfl_span_trim(*field);
	return true;
}

char *rfl_span_copy(struct rfl_span s, char *out, size_t out_size)
{
	size_t n = s.len < out_size ? s.len : out_size - 1;

	if (n > 0)
		memcpy(out, s.at, n);
	out[n] = '\0';
	return out;
}

/* --- numbers --------------------------------------------------------------------------------- */

bool rfl_span_number(struct rfl_span s, double *ret)
{
	double value = rfl_num_plain(s.at, s.len);

	if (!isfinite(value))
		return false;
	*ret = value;
	return true;
}

bool rfl_span_grouped(struct rfl_span s, char decimal, double *ret, double *half)
{
	struct rfl_num_parts p;
	double value;

	if (s.len == 0 || rfl_num_cut(s.at, s.len, false, &p) != s.len)
		return false;
	if (decimal == 0)
		decimal = p.commas > 0 ? ',' : '.';
	value = rfl_num_value(&p, decimal, 0);
	if (!isfinite(value))
		return false;
	*ret = value;
	if (half)
		*half = (decimal == ',' ? p.commas : p.points) == 0 || p.tail == 0
				? 0.0
				: 0.5 * pow(10.0, -rfl_num_decimals(&p, decimal));
	return true;
}

size_t rfl_span_number_len(struct rfl_span s)
{
	struct rfl_num_parts p;

	return rfl_num_cut(s.at, s.len, false, &p);
}
