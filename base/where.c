/*
 * where.c - a JSON pointer that follows a walk through a document.
 */
#include "base/where.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rfl_where_init(struct rfl_where *w, const char *file)
{
	rfl_where_begin(w, file, "");
}

void rfl_where_begin(struct rfl_where *w, const char *file, const char *pointer)
{
	w->file = file;
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
	if (*key && w->len >= mark + 3) /* too long: what was cut says so */
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
	return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s: %s", w->file, w->len ? w->pointer : "/",
			text);
}
