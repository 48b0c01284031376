/*
 * json_write.c - JSON text: two blanks per level, keys in their order, shortest exact reals.
 * jansson's own writer gives 17 digits to every real.
 */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

#define SHORT_ARRAY 16 /* numbers that stand on one line: a shape, a pair of limits */

static void write_value(struct rfl_buf *out, const json_t *value, int level);

/* The character of n bytes at s, which cannot be written as it is or must not reach a terminal. */
static void write_escape(struct rfl_buf *out, const unsigned char *s, size_t n)
{
	const unsigned c = n == 1   ? s[0]
			   : n == 2 ? (s[0] & 0x1fU) << 6 | (s[1] & 0x3fU)
				    : (s[0] & 0x0fU) << 12 | (s[1] & 0x3fU) << 6 | (s[2] & 0x3fU);

	switch (c) {
	case '"':
		rfl_buf_puts(out, "\\\"");
		break;
	case '\\':
		rfl_buf_puts(out, "\\\\");
		break;
	case '\n':
		rfl_buf_puts(out, "\\n");
		break;
	case '\r':
		rfl_buf_puts(out, "\\r");
		break;
	case '\t':
		rfl_buf_puts(out, "\\t");
		break;
	default:
		rfl_buf_printf(out, "\\u%04x", c);
		break;
	}
}

/* How many characters from `s` on stand for themselves. */
static size_t plain_length(const unsigned char *s, size_t left)
{
	size_t len = 0;

	while (len < left && s[len] >= 0x20 && s[len] < 0x7f && s[len] != '"' && s[len] != '\\')
		len++;
	return len;
}

void rfl_json_write_string(struct rfl_buf *out, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	rfl_buf_putc(out, '"');
	for (size_t i = 0; i < len;) {
		size_t plain = plain_length(s + i, len - i), n;

		rfl_buf_append(out, s + i, plain);
		i += plain;
		if (i == len)
			break;
		n = rfl_text_utf8((const char *)s + i, len - i);
		if (n == 0)
			rfl_buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD for a byte that is not UTF-8 */
		else if (n == 1 || rfl_text_control((const char *)s + i))
			write_escape(out, s + i, n);
		else
			rfl_buf_append(out, s + i, n);
		i += n ? n : 1;
	}
	rfl_buf_putc(out, '"');
}

void rfl_json_write_real(struct rfl_buf *out, double value)
{
	char text[RFL_NUM_MAX];

	if (!isfinite(value)) {
		rfl_buf_puts(out, "null");
		return;
	}
	rfl_num_exact(value, text);
	rfl_buf_puts(out, text);
	if (!strpbrk(text, ".e")) /* it must read back as a real, not as an integer */
		rfl_buf_puts(out, ".0");
}

#define ONE_LINE (-1) /* a level: everything below it stands on the same line */

static int below(int level)
{
	return level == ONE_LINE ? ONE_LINE : level + 1;
}

/* A new line, but on one line nothing. */
static void indent(struct rfl_buf *out, int level)
{
	if (level == ONE_LINE)
		return;
	rfl_buf_putc(out, '\n');
	for (int i = 0; i < level; i++)
		rfl_buf_puts(out, "  ");
}

static void write_object(struct rfl_buf *out, const json_t *object, int level)
{
	json_t *o =
		(json_t *)(uintptr_t)object; /* iterators take it without const, and only read */
	bool first = true;

	if (json_object_size(object) == 0) {
		rfl_buf_puts(out, "{}");
		return;
	}
	rfl_buf_putc(out, '{');
	for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
		const char *key = json_object_iter_key(it);

		if (!first)
			rfl_buf_puts(out, level == ONE_LINE ? ", " : ",");
		first = false;
		indent(out, below(level));
		rfl_json_write_string(out, key, strlen(key));
		rfl_buf_puts(out, ": ");
		write_value(out, json_object_iter_value(it), below(level));
	}
	indent(out, level);
	rfl_buf_putc(out, '}');
}

static bool is_short_of_numbers(const json_t *array)
{
	size_t n = json_array_size(array);

	for (size_t i = 0; i < n; i++)
		if (!json_is_number(json_array_get(array, i)))
			return false;
	return n <= SHORT_ARRAY;
}

static void write_array(struct rfl_buf *out, const json_t *array, int level)
{
	bool one_line = level == ONE_LINE || is_short_of_numbers(array);
	size_t n = json_array_size(array);

	rfl_buf_putc(out, '[');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			rfl_buf_puts(out, one_line ? ", " : ",");
		if (!one_line)
			indent(out, below(level));
		write_value(out, json_array_get(array, i), below(level));
	}
	if (!one_line)
		indent(out, level);
	rfl_buf_putc(out, ']');
}

static void write_value(struct rfl_buf *out, const json_t *value, int level)
{
	if (!value) { /* a builder ran out of memory; half a document must not look whole */
		out->failed = true;
		return;
	}
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		write_object(out, value, level);
		break;
	case JSON_ARRAY:
		write_array(out, value, level);
		break;
	case JSON_STRING:
		rfl_json_write_string(out, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		rfl_buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		break;
	case JSON_REAL:
		rfl_json_write_real(out, json_real_value(value));
		break;
	case JSON_TRUE:
		rfl_buf_puts(out, "true");
		break;
	case JSON_FALSE:
		rfl_buf_puts(out, "false");
		break;
	case JSON_NULL:
		rfl_buf_puts(out, "null");
		break;
	}
}

void rfl_json_write(struct rfl_buf *out, const json_t *value)
{
	write_value(out, value, 0);
}

void rfl_json_write_line(struct rfl_buf *out, const json_t *value)
{
	write_value(out, value, ONE_LINE);
}
