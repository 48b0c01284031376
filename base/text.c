/* text.c - similar names, masking of control characters, and spans of text. */
#define _GNU_SOURCE /* memmem */

#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

/* Maximum length of names compared, without common prefix and suffix: longer ones are not
 * misspellings, and thousands of them in a hostile file would take seconds. */
#define DISTANCE_MAX_LEN 63

static char lower(char c)
{
	return (char)tolower((unsigned char)c);
}

static size_t min_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t rfl_text_distance(const char *a, const char *b)
{
	size_t rows[3][DISTANCE_MAX_LEN + 1];
	size_t la, lb;

	while (*a != '\0' && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	la = strlen(a);
	lb = strlen(b);
	while (la > 0 && lb > 0 && lower(a[la - 1]) == lower(b[lb - 1])) {
		la--;
		lb--;
	}
	if (la > DISTANCE_MAX_LEN || lb > DISTANCE_MAX_LEN)
		return la > lb ? la : lb;
	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	/* row i, column j: edit distance of a[0..i) and b[0..j) */
	for (size_t i = 1; i <= la; i++) {
		const size_t *two_up = rows[(i + 1) % 3], *up = rows[(i - 1) % 3];
		size_t *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			row[j] = min_of(min_of(up[j], row[j - 1]) + 1,
					up[j - 1] + (lower(a[i - 1]) != lower(b[j - 1])));
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]))
				row[j] = min_of(row[j], two_up[j - 2] + 1);
		}
	}
	return rows[la % 3][lb];
}

/* Whether two names are the same with O for 0, and I or l for 1. */
static bool looks_same(const char *a, const char *b)
{
	static const char letters[] = "oil", digits[] = "011";

	for (;; a++, b++) {
		const char *x = strchr(letters, lower(*a)), *y = strchr(letters, lower(*b));

		if ((*a && x ? digits[x - letters] : lower(*a)) !=
		    (*b && y ? digits[y - letters] : lower(*b)))
			return false;
		if (!*a)
			return true;
	}
}

/* Whether two short names have the same digits in any order, or differ in one of several. */
static bool similar_digits(const char *a, const char *b)
{
	int more[10] = { 0 }, na = 0, nb = 0, other = 0;
	char digits[4];

	for (; *a; a++)
		if (isdigit((unsigned char)*a))
			more[(digits[na++] = *a) - '0']++;
	for (; *b; b++)
		if (isdigit((unsigned char)*b)) {
			more[*b - '0']--;
			other += nb >= na || digits[nb] != *b;
			nb++;
		}
	if (na != nb)
		return false;
	for (int i = 0; i < 10; i++)
		if (more[i] != 0)
			return na > 1 && other == 1;
	return true;
}

/* The distance of a candidate that is similar to `name`, else SIZE_MAX: allow one mistake in three
 * letters if at least one letter matches, or extra or missing words at the end ("kernel_size" for
 * "kernel"). In a short name, other digits or another first letter make another name, unless they
 * are only missing at the end: fp8 is not a misspelt fp32, nor cpu gpu, but H10 is H100. */
static size_t similarity(const char *name, const char *candidate)
{
	const size_t la = strlen(name), lb = strlen(candidate);
	const size_t shortest = min_of(la, lb);
	const size_t longest = la > lb ? la : lb, most = (longest + 2) / 3;
	const bool begins = shortest >= 3 && strncasecmp(name, candidate, shortest) == 0;
	size_t d;

	if (looks_same(name, candidate))
		return 0;
	if (begins && la != lb && strchr("_-", (la > lb ? name : candidate)[shortest]))
		return longest - shortest - 1;
	if (longest <= 4 && !(begins && lb == la + 1) &&
	    (lower(name[0]) != lower(candidate[0]) || !similar_digits(name, candidate)))
		return SIZE_MAX;
	if (longest - shortest > most)
		return SIZE_MAX;
	d = rfl_text_distance(name, candidate);
	return d > most || d == longest ? SIZE_MAX : d;
}

/* The candidate that follows `after` in order of distance and index, or NULL.
 * @param after  NULL: none */
static const char *const *nearest_after(const char *name, const char *const *candidates,
					const char *const *after)
{
	const size_t least = after ? similarity(name, *after) : 0;
	const char *const *best = NULL;
	size_t best_distance = SIZE_MAX;

	for (const char *const *c = candidates; *c; c++) {
		const size_t d = similarity(name, *c);

		if (d >= best_distance || (after && (d < least || (d == least && c <= after))))
			continue;
		best = c;
		best_distance = d;
	}
	return best;
}

const char *rfl_text_nearest(const char *name, const char *const *candidates)
{
	const char *const *nearest = nearest_after(name, candidates, NULL);

	return nearest ? *nearest : NULL;
}

size_t rfl_text_suggest(const char *name, const char *const *candidates, size_t most,
			struct rfl_buf *out)
{
	const char *const *next = NULL;
	size_t n = 0;

	while (n < most && (next = nearest_after(name, candidates, next)))
		rfl_buf_printf(out, "%s%s", n++ ? ", " : "", *next);
	return n;
}

const char *rfl_text_advice(const char *name, const char *const *candidates, size_t most,
			    const char *otherwise, char out[RFL_ADVICE_SIZE])
{
	RFL_AUTO(buf) text = { .max = RFL_BUF_MAX_DEFAULT };

	rfl_buf_puts(&text, "did you mean ");
	if (rfl_text_suggest(name, candidates, most, &text) > 0) {
		rfl_buf_putc(&text, '?');
	} else {
		rfl_buf_reset(&text);
		rfl_buf_puts(&text, otherwise ? otherwise : candidates[1] ? "use one of " : "use ");
		for (size_t i = 0; !otherwise && candidates[i]; i++)
			rfl_buf_printf(&text, "%s%s", i ? ", " : "", candidates[i]);
	}
	rfl_span_copy(rfl_span_of(rfl_buf_str(&text)), out, RFL_ADVICE_SIZE);
	return out;
}

size_t rfl_text_control(const char *at)
{
	const unsigned char *c = (const unsigned char *)at;

	if ((c[0] > 0 && c[0] < 0x20) || c[0] == 0x7f)
		return 1;
	if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) /* U+0080 to U+009F */
		return 2;
	if (c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) || /* U+202A to 202E */
			     (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9)))  /* U+2066 to 2069 */
		return 3;
	return c[0] == 0xef && c[1] == 0xbf && (c[2] & 0xfe) == 0xbe ? 3 : 0; /* U+FFFE, U+FFFF */
}

size_t rfl_text_utf8(const char *at, size_t left)
{
	const unsigned char *s = (const unsigned char *)at;
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;

	if (n == 0 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

size_t rfl_text_mask(char *text, size_t len, bool keep_lines)
{
	size_t out = 0, n;

	for (size_t i = 0; i < len; i += n) {
		const char c = text[i];

		n = 1;
		if ((c >= ' ' && c <= '~') || (keep_lines && (c == '\n' || c == '\t'))) {
			text[out++] = c;
			continue;
		}
		n = rfl_text_utf8(text + i, len - i);
		if (n > 0 && c != '\0' && rfl_text_control(text + i) == 0) {
			memmove(text + out, text + i, n);
			out += n;
		} else {
			text[out++] = '?';
			n = n ? n : 1;
		}
	}
	return out;
}

void rfl_text_plain(char *text)
{
	static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-";

	for (; *text; text++)
		*text = strchr(kept, *text) ? *text : '_';
}

void rfl_text_one_line(char *text)
{
	text[rfl_text_mask(text, strlen(text), false)] = '\0';
}

void rfl_text_mask_from(struct rfl_buf *text, size_t from)
{
	if (text->len <= from)
		return;
	text->len = from + rfl_text_mask(text->data + from, text->len - from, true);
	text->data[text->len] = '\0';
}

void rfl_text_shell_word(const char *word, struct rfl_buf *out)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";

	if (*word && strspn(word, plain) == strlen(word)) {
		rfl_buf_puts(out, word);
		return;
	}
	rfl_buf_putc(out, '\'');
	for (; *word; word++)
		rfl_buf_puts(out, *word == '\'' ? "'\\''" : (char[]){ *word, '\0' });
	rfl_buf_putc(out, '\'');
}

bool rfl_text_is_env_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	const size_t len = strspn(name, allowed);

	return name[0] >= 'a' && name[0] <= 'z' && name[len] == '\0' && len <= 48;
}

enum rfl_rc rfl_text_check_env_name(const char *what, const char *name, enum rfl_rc rc,
				    struct rfl_err *err)
{
	if (rfl_text_is_env_name(name))
		return RFL_OK;
	return rfl_fail(err, rc, 0,
			"%s: '%.100s' is not a valid environment name; " RFL_ENV_NAME_RULE, what,
			name);
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

bool rfl_span_next_cell(struct rfl_span *rest, struct rfl_span *cell)
{
	static const char bar[] = "\xe2\x94\x82"; /* U+2502 */
	const struct rfl_span inside =
		rfl_span_from(*rest, rfl_span_find(*rest, bar) + strlen(bar));
	const size_t len = rfl_span_find(inside, bar);

	*cell = rfl_span_trim((struct rfl_span){ inside.at, len });
	*rest = rfl_span_from(inside, len);
	return len < inside.len;
}

bool rfl_span_next_quoted(struct rfl_span *rest, struct rfl_span *text)
{
	*rest = rfl_span_from(*rest, rfl_span_find(*rest, "'"));
	if (rest->len < 2)
		return false;
	*rest = rfl_span_from(*rest, 1);
	*text = (struct rfl_span){ rest->at, rfl_span_find(*rest, "'") };
	*rest = rfl_span_from(*rest, text->len + (text->len < rest->len));
	return true;
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
