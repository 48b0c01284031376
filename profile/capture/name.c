/*
 * name.c - names of kernels as a column shows them, and lines for people, whatever the
 * texts of files hold.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "profile/capture/table_impl.h"

#define NAME_TAIL 14 /* of a long name: what it was instantiated with ends it */

/* Where the parameters of "void f<4, (int)2>(int, g(*)(int))" begin; its length when there are
 * none. */
static size_t parameters_at(const char *name, size_t len)
{
	size_t depth = 0;

	if (len == 0 || name[len - 1] != ')')
		return len;
	for (size_t at = len; at-- > 0;) {
		if (name[at] == ')')
			depth++;
		else if (name[at] == '(' && --depth == 0)
			return at > 0 ? at : len;
	}
	return len;
}

/* Not inside a character of UTF-8. */
static bool is_begin(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

const char *rfl_capture__short_name(const char *name, char out[RFL_CAPTURE_NAME_MAX + 1])
{
	size_t len = strlen(name), head = RFL_CAPTURE_NAME_MAX - NAME_TAIL - 3, tail;

	if (len > RFL_CAPTURE_NAME_MAX) {
		if (strncmp(name, "void ", 5) == 0) {
			name += 5;
			len -= 5;
		}
		len = parameters_at(name, len);
	}
	if (len > RFL_CAPTURE_NAME_MAX) {
		tail = len - NAME_TAIL;
		while (head > 0 && !is_begin(name[head]))
			head--;
		while (tail < len && !is_begin(name[tail]))
			tail++;
		(void)snprintf(out, RFL_CAPTURE_NAME_MAX + 1, "%.*s...%.*s", (int)head, name,
			       (int)(len - tail), name + tail);
	} else {
		(void)snprintf(out, RFL_CAPTURE_NAME_MAX + 1, "%.*s", (int)len, name);
	}
	rfl_text_one_line(out);
	return out;
}

void rfl_capture__end_line(struct rfl_buf *out, size_t at)
{
	if (!out->failed && out->len > at)
		rfl_text_one_line(out->data + at);
	rfl_buf_putc(out, '\n');
}
