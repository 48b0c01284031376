/* buf.c - the growing string. */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"

#define FIRST_CAP 256

void rfl_buf_init(struct rfl_buf *b, size_t max)
{
	*b = (struct rfl_buf){ .max = max };
}

void rfl_buf_fini(struct rfl_buf *b)
{
	free(b->data);
	rfl_buf_init(b, b->max);
}

void rfl_buf_reset(struct rfl_buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

/* Make room for `more` bytes and the terminating NUL. */
static bool reserve(struct rfl_buf *b, size_t more)
{
	size_t need, cap;

	if (b->failed)
		return false;
	if (b->max == 0)
		b->max = RFL_BUF_MAX_DEFAULT;
	if (b->max > SIZE_MAX / 2)
		b->max = SIZE_MAX / 2;
	if (more > b->max - b->len) {
		b->failed = true;
		return false;
	}
	need = b->len + more + 1;
	if (need <= b->cap)
		return true;
	cap = b->cap ? b->cap : FIRST_CAP;
	while (cap < need)
		cap *= 2;
	rfl_reserve(&b->data, &b->cap, cap);
	return true;
}

void rfl_buf_append(struct rfl_buf *b, const void *data, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void rfl_buf_vprintf(struct rfl_buf *b, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	int len;

	va_copy(again, ap);
	len = rfl_num_vprint(small, sizeof(small), fmt, ap);
	if (len < 0) {
		b->failed = true; /* longer than INT_MAX */
	} else if ((size_t)len < sizeof(small)) {
		rfl_buf_append(b, small, (size_t)len);
	} else if (reserve(b, (size_t)len)) {
		rfl_num_vprint(b->data + b->len, (size_t)len + 1, fmt, again);
		b->len += (size_t)len;
	}
	va_end(again);
}

void rfl_buf_printf(struct rfl_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	rfl_buf_vprintf(b, fmt, ap);
	va_end(ap);
}

enum rfl_rc rfl_buf_check(const struct rfl_buf *b, const char *what, struct rfl_err *err)
{
	return b->failed ? rfl_fail(err, RFL_EOVERFLOW, 0, "%s: larger than the %zu bytes allowed",
				    what, b->max)
			 : RFL_OK;
}
