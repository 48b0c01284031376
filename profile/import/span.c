/*
 * span.c - pieces of a line, and numbers as other programs write them.
 */
#include "profile/import/span.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/num.h"

bool rfl_span_is(struct rfl_span s, const char *text)
{
	size_t len = strlen(text);

	return s.len == len && memcmp(s.at, text, len) == 0;
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
	size_t len = strlen(text);

	for (size_t i = 0; i + len <= s.len; i++) {
		const char *at = memchr(s.at + i, text[0], s.len - len + 1 - i);

		if (!at)
			break;
		i = (size_t)(at - s.at);
		if (memcmp(at, text, len) == 0)
			return i;
	}
	return s.len;
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

char *rfl_span_copy(struct rfl_span s, char *out, size_t out_size)
{
	size_t n = s.len < out_size ? s.len : out_size - 1;

	if (n > 0)
		memcpy(out, s.at, n);
	out[n] = '\0';
	return out;
}

#define NUMBER_MAX 64

bool rfl_span_number(struct rfl_span s, double *ret)
{
	char text[NUMBER_MAX];

	if (s.len == 0 || s.len >= sizeof(text) || memchr(s.at, '\0', s.len))
		return false;
	return rfl_num_parse_double(rfl_span_copy(s, text, sizeof(text)), "", ret, NULL) == RFL_OK;
}

/* --- groups and decimals --------------------------------------------------------------------- */

/* Signs that only ever part groups: an apostrophe, blanks that do not break. */
static size_t group_sign(struct rfl_span s)
{
	static const char *const signs[] = { "'", "\xc2\xa0", "\xe2\x80\xaf" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(signs); i++)
		if (rfl_span_starts(s, signs[i]))
			return strlen(signs[i]);
	return 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t digits(struct rfl_span s)
{
	size_t n = 0;

	while (n < s.len && is_digit(s.at[n]))
		n++;
	return n;
}

size_t rfl_span_number_len(struct rfl_span s)
{
	size_t n = s.len > 0 && (s.at[0] == '-' || s.at[0] == '+') ? 1 : 0;
	size_t end = 0;

	while (n < s.len) {
		size_t len = digits(rfl_span_from(s, n));

		if (len == 0)
			break;
		n += len;
		end = n;
		if (n < s.len && (s.at[n] == '.' || s.at[n] == ','))
			n++;
		else
			n += group_sign(rfl_span_from(s, n));
		if (n == end)
			break;
	}
	return end;
}

enum rfl_decimal rfl_span_decimal(struct rfl_span s)
{
	size_t points = 0, commas = 0, last = s.len, behind;
	enum rfl_decimal as_decimal, as_group;

	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] != '.' && s.at[i] != ',')
			continue;
		points += s.at[i] == '.';
		commas += s.at[i] == ',';
		last = i;
	}
	if (last == s.len)
		return RFL_DECIMAL_UNKNOWN;
	as_decimal = s.at[last] == '.' ? RFL_DECIMAL_POINT : RFL_DECIMAL_COMMA;
	as_group = s.at[last] == '.' ? RFL_DECIMAL_COMMA : RFL_DECIMAL_POINT;
	if (points > 0 && commas > 0)
		return as_decimal;
	if (points + commas > 1)
		return as_group;
	behind = digits(rfl_span_from(s, last + 1));
	/* "1.234" can be both; "0.234" and "1234.567" have no group. */
	if (behind == 3 && last <= 3 && last > 0 && s.at[0] != '0')
		return RFL_DECIMAL_UNKNOWN;
	return as_decimal;
}

/* Groups are of three digits, or of two in front of the last three: "18,40,26,24,823" of India. All
 * between the first and the last are alike. */
static bool is_group(size_t digits, size_t *alike)
{
	if (*alike == 0 && (digits == 2 || digits == 3))
		*alike = digits;
	return digits == *alike;
}

/* Copy without group signs, with a point. False when groups are none. */
static bool normalise(struct rfl_span s, char decimal, char out[NUMBER_MAX])
{
	char group = decimal == '.' ? ',' : '.';
	size_t n = 0, run = 0, first = 0, alike = 0;
	bool grouped = false, fraction = false;

	while (s.len > 0) {
		size_t sign = s.at[0] == group ? 1 : group_sign(s);

		if (n + 1 >= NUMBER_MAX)
			return false;
		if (sign > 0) {
			if (fraction || run == 0 || run > 3 || (grouped && !is_group(run, &alike)))
				return false;
			first = grouped ? first : run;
			grouped = true;
			run = 0;
			s = rfl_span_from(s, sign);
			continue;
		}
		if (s.at[0] == decimal) {
			if (fraction || (grouped && run != 3))
				return false;
			fraction = true;
			out[n++] = '.';
		} else {
			out[n++] = s.at[0];
			run += is_digit(s.at[0]);
		}
		s = rfl_span_from(s, 1);
	}
	out[n] = '\0';
	if (alike == 2 && first > 2)
		return false;
	return n > 0 && (!grouped || fraction || run == 3);
}

bool rfl_span_grouped(struct rfl_span s, enum rfl_decimal decimal, double *ret)
{
	char text[NUMBER_MAX];

	if (s.len == 0 || memchr(s.at, '\0', s.len))
		return false;
	if (!normalise(s, decimal == RFL_DECIMAL_COMMA ? ',' : '.', text))
		return false;
	return rfl_num_parse_double(text, "", ret, NULL) == RFL_OK;
}

double rfl_span_half_digit(struct rfl_span s, enum rfl_decimal decimal)
{
	const char *sign = memchr(s.at, decimal == RFL_DECIMAL_COMMA ? ',' : '.', s.len);
	struct rfl_span after;
	double half = 0.5, ten;
	size_t n;

	if (s.len == 0 || !sign)
		return 0.0;
	after = rfl_span_from(s, (size_t)(sign - s.at) + 1);
	n = digits(after);
	for (size_t i = 0; i < n; i++)
		half /= 10.0;
	after = rfl_span_from(after, n);
	if (rfl_span_starts(after, "e") && rfl_span_number(rfl_span_from(after, 1), &ten))
		half *= pow(10.0, ten);
	return n > 0 ? half : 0.0;
}
