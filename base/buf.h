/*
 * buf.h - a growing string with a maximum size.
 *
 * Appending to a failed buffer does nothing, so that a caller can write a whole document and call
 * rfl_buf_check() once at the end.
 */
#ifndef RFL_BASE_BUF_H
#define RFL_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"

RFL_API_BEGIN

struct rfl_buf {
	char *data;  /**< NUL-terminated; NULL before the first append */
	size_t len;  /**< bytes without the NUL */
	size_t cap;  /**< bytes allocated */
	size_t max;  /**< largest `len` allowed */
	bool failed; /**< max was reached; later text is lost */
};

#define RFL_BUF_MAX_DEFAULT ((size_t)256 << 20)

/** Initialise an empty buffer; `max` 0 means 256 MiB. { .max = max } does the same. */
void rfl_buf_init(struct rfl_buf *b, size_t max);

/** Release the memory; the buffer can be used again. */
void rfl_buf_fini(struct rfl_buf *b);

/** Empty the buffer, keeping its memory. */
void rfl_buf_reset(struct rfl_buf *b);

void rfl_buf_append(struct rfl_buf *b, const void *data, size_t len);
static inline void rfl_buf_puts(struct rfl_buf *b, const char *s)
{
	rfl_buf_append(b, s, strlen(s));
}
static inline void rfl_buf_putc(struct rfl_buf *b, char c)
{
	rfl_buf_append(b, &c, 1);
}
void rfl_buf_printf(struct rfl_buf *b, const char *fmt, ...) RFL_PRINTF(2, 3);
void rfl_buf_vprintf(struct rfl_buf *b, const char *fmt, va_list ap) RFL_VPRINTF(2);

/** The text, never NULL: "" for an empty buffer. Borrowed until the next append. */
static inline const char *rfl_buf_str(const struct rfl_buf *b)
{
	return b->data ? b->data : "";
}

/** RFL_OK; RFL_EOVERFLOW with a message that names `what`. */
enum rfl_rc rfl_buf_check(const struct rfl_buf *b, const char *what,
			  struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END
#endif
