/*
 * json.c - strict reading with jansson, and a separate writer, because jansson writes every real
 * with 17 digits.
 */
#include "base/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#define SHORT_ARRAY 16   /* maximum length of a list of numbers on one line */
#define ONE_LINE    (-1) /* nesting level that disables line breaks */

static void *checked_malloc(size_t size)
{
	void *p = malloc(size);

	if (!p)
		rfl_out_of_memory();
	return p;
}

void rfl_json_setup(void)
{
	json_set_alloc_funcs(checked_malloc, free);
}

/* Why a text cannot be JSON, judged by its first characters; NULL if it may be. */
static const char *not_json(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	if (at == len)
		return "is empty";
	if (memchr(text + at, '\0', len - at < 4 ? len - at : 4))
		return "is in UTF-16 or not a text; save it in UTF-8";
	if (text[at] == '{' || text[at] == '[')
		return NULL;
	if (len - at >= 3 && memcmp(text + at, "\xef\xbb\xbf", 3) == 0)
		return "begins with a byte order mark; save it without one";
	while (at < len && text[at] != '\n' && text[at] != ',')
		at++;
	return at < len && text[at] == ',' ? "not JSON but CSV; was the ledger passed by mistake?"
					   : "not JSON";
}

enum rfl_rc rfl_json_loads(const char *text, size_t len, const char *name, json_t **ret,
			   struct rfl_err *err)
{
	json_error_t je;
	const char *why = not_json(text, len);
	json_t *value;

	if (why)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s", name, why);
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (value) {
		*ret = value;
		return RFL_OK;
	}
	if (je.line < 1)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s", name, je.text);
	return rfl_fail(err, RFL_EFORMAT, je.position, "%s:%d:%d: %s", name, je.line, je.column,
			je.text);
}

enum rfl_rc rfl_json_load(const char *path, json_t **ret, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc = rfl_file_read(path, &text, err);

	if (rc == RFL_OK)
		rc = rfl_json_loads(rfl_buf_str(&text), text.len, path, ret, err);
	return rc;
}

/* Blank out comments, so that positions stay correct. */
static void blank_comments(char *text, size_t len)
{
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			in_string = !in_string;
		else if (text[i] == '\n')
			in_string = false; /* of an invalid string */
		else if (in_string && text[i] == '\\')
			i++;
		else if (!in_string && text[i] == '/' && i + 1 < len && text[i + 1] == '/')
			for (; i < len && text[i] != '\n'; i++)
				text[i] = ' ';
	}
}

enum rfl_rc rfl_json_loads_commented(const char *text, size_t len, const char *name, json_t **ret,
				     struct rfl_err *err)
{
	RFL_AUTOFREE char *copy = memcpy(rfl_alloc_array(len + 1, 1), text, len);

	blank_comments(copy, len);
	return rfl_json_loads(copy, len, name, ret, err);
}

enum rfl_rc rfl_json_load_commented(const char *path, json_t **ret, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc = rfl_file_read(path, &text, err);

	if (rc == RFL_OK)
		rc = rfl_json_loads_commented(rfl_buf_str(&text), text.len, path, ret, err);
	return rc;
}

/* --- locations ------------------------------------------------------------------------------- */

void rfl_where_begin(struct rfl_where *w, const char *file, const char *pointer)
{
	w->file = file;
	w->name = NULL;
	w->len = strnlen(pointer, sizeof(w->pointer) - 1);
	memcpy(w->pointer, pointer, w->len);
	w->pointer[w->len] = '\0';
}

size_t rfl_where_key(struct rfl_where *w, const char *key)
{
	const size_t mark = w->len;

	if (w->len + 1 < sizeof(w->pointer))
		w->pointer[w->len++] = '/';
	for (; *key && w->len + 2 < sizeof(w->pointer); key++) {
		if (*key == '~' || *key == '/') {
			w->pointer[w->len++] = '~';
			w->pointer[w->len++] = *key == '~' ? '0' : '1';
		} else {
			w->pointer[w->len++] = *key;
		}
	}
	w->pointer[w->len] = '\0';
	if (*key && w->len >= mark + 3) /* too long: mark the truncation */
		memcpy(w->pointer + w->len - 3, "...", 3);
	return mark;
}

size_t rfl_where_index(struct rfl_where *w, size_t i)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", i);
	return rfl_where_key(w, text);
}

void rfl_where_up(struct rfl_where *w, size_t mark)
{
	w->len = mark;
	w->pointer[mark] = '\0';
}

enum rfl_rc rfl_where_fail(const struct rfl_where *w, struct rfl_err *err, const char *fmt, ...)
{
	char text[RFL_ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s: %s%s%s", w->file, w->len ? w->pointer : "/",
			w->name ? w->name : "", w->name ? ": " : "", text);
}

enum rfl_rc rfl_where_only_keys(const struct rfl_where *w, const json_t *obj,
				const char *const *allowed, struct rfl_err *err)
{
	json_t *o = (json_t *)(uintptr_t)obj; /* no const in jansson's iterators */
	char advice[RFL_ADVICE_SIZE];
	struct rfl_where at = *w;

	if (!json_is_object(obj))
		return rfl_where_fail(&at, err, "must be an object");
	for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
		const char *key = json_object_iter_key(it);
		size_t n = 0;

		while (allowed[n] && strcmp(key, allowed[n]) != 0)
			n++;
		if (allowed[n])
			continue;
		(void)rfl_where_key(&at, key);
		return rfl_where_fail(&at, err, "unknown key; %s",
				      rfl_text_advice(key, allowed, 1, NULL, advice));
	}
	return RFL_OK;
}

const char *rfl_json_show(const json_t *value, char *out, size_t size)
{
	RFL_AUTOFREE char *text = NULL;

	if (json_is_object(value))
		return json_object_size(value) ? "an object" : "an empty object";
	if (json_is_array(value))
		return json_array_size(value) ? "a list" : "an empty list";
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
	snprintf(out, size, "%.60s%s", text ? text : "?", text && strlen(text) > 60 ? "..." : "");
	return out;
}

const char *rfl_json_scalar(const json_t *value, char number[RFL_NUM_MAX])
{
	if (json_is_real(value))
		return rfl_num_exact(json_real_value(value), number);
	if (!json_is_integer(value))
		return json_string_value(value);
	(void)snprintf(number, RFL_NUM_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return number;
}

json_t *rfl_json_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *rfl_json_text(const char *text)
{
	return text ? json_string_nocheck(text) : json_null();
}

void rfl_json_put(json_t **o, const char *key, json_t *take_value)
{
	(void)json_object_set_new_nocheck(*o, key, take_value ? take_value : json_null());
}

void rfl_json_append(json_t **list, json_t *take_value)
{
	(void)json_array_append_new(*list, take_value ? take_value : json_null());
}

/* --- writing --------------------------------------------------------------------------------- */

void rfl_json_write_string(struct rfl_buf *out, const char *text, size_t len)
{
	static const char characters[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
	const unsigned char *s = (const unsigned char *)text;

	rfl_buf_putc(out, '"');
	for (size_t i = 0; i < len;) {
		const size_t from = i; /* most characters need no escape */
		const char *at;
		size_t n;

		while (i < len && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
			i++;
		rfl_buf_append(out, s + from, i - from);
		if (i == len)
			break;
		n = rfl_text_utf8((const char *)s + i, len - i);
		at = n == 1 && s[i] ? strchr(characters, s[i]) : NULL;
		if (n == 0)
			rfl_buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD replaces invalid UTF-8 */
		else if (at)
			rfl_buf_printf(out, "\\%c", letters[at - characters]);
		else if (n > 1 && !rfl_text_control((const char *)s + i))
			rfl_buf_append(out, s + i, n);
		else /* escape control characters (1 to 3 bytes), which must not reach a terminal */
			rfl_buf_printf(out, "\\u%04x",
				       n == 1   ? s[i]
				       : n == 2 ? (s[i] & 0x1fU) << 6 | (s[i + 1] & 0x3fU)
						: (s[i] & 0x0fU) << 12 | (s[i + 1] & 0x3fU) << 6 |
							  (s[i + 2] & 0x3fU));
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
	if (!strpbrk(text, ".e")) /* otherwise it would be read back as an integer */
		rfl_buf_puts(out, ".0");
}

/* Begin a new line unless everything is written on one line. */
static void indent(struct rfl_buf *out, int level)
{
	if (level == ONE_LINE)
		return;
	rfl_buf_putc(out, '\n');
	for (int i = 0; i < level; i++)
		rfl_buf_puts(out, "  ");
}

static void write_value(struct rfl_buf *out, const json_t *value, int level)
{
	json_t *v = (json_t *)(uintptr_t)value; /* no const in jansson's iterators */
	const int below = level == ONE_LINE ? ONE_LINE : level + 1;
	const char *comma = level == ONE_LINE ? ", " : ",";
	bool one_line = level == ONE_LINE;
	size_t n;

	if (!value) { /* such as json_string() of invalid UTF-8: do not write half a document */
		out->failed = true;
		return;
	}
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		rfl_buf_putc(out, '{');
		for (void *it = json_object_iter(v); it;) {
			const char *key = json_object_iter_key(it);

			indent(out, below);
			rfl_json_write_string(out, key, strlen(key));
			rfl_buf_puts(out, ": ");
			write_value(out, json_object_iter_value(it), below);
			it = json_object_iter_next(v, it);
			rfl_buf_puts(out, it ? comma : "");
		}
		if (json_object_size(value) > 0)
			indent(out, level);
		rfl_buf_putc(out, '}');
		break;
	case JSON_ARRAY:
		n = json_array_size(value);
		for (size_t i = 0; i < n && json_is_number(json_array_get(value, i)); i++)
			one_line = one_line || (i + 1 == n && n <= SHORT_ARRAY);
		one_line = one_line || n == 0;
		rfl_buf_putc(out, '[');
		for (size_t i = 0; i < n; i++) {
			if (i > 0)
				rfl_buf_puts(out, one_line ? ", " : ",");
			if (!one_line)
				indent(out, below);
			write_value(out, json_array_get(value, i), below);
		}
		if (!one_line)
			indent(out, level);
		rfl_buf_putc(out, ']');
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
	case JSON_FALSE:
		rfl_buf_puts(out, json_is_true(value) ? "true" : "false");
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

enum rfl_rc rfl_json_save(const char *path, const json_t *value, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	rfl_json_write(&text, value);
	rfl_buf_putc(&text, '\n');
	rc = rfl_buf_check(&text, path, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	return rc;
}
