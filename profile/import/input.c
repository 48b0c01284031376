/*
 * input.c - a window that slides over a file, a pipe or a text in memory, and lines in it. The
 * window has one size, unless a line is longer; records are in input_record.c.
 */
#include "profile/import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/import/input_impl.h"

#ifndef RFL_INPUT_WINDOW /* tests read through small ones, of 24 bytes or more */
#define RFL_INPUT_WINDOW ((size_t)256 << 10)
#endif
#define PEEK ((size_t)64 << 10)

static const char zero_byte[] = "a zero byte: this is not text";

/* --- opening --------------------------------------------------------------------------------- */

static enum rfl_rc new_input(const char *name, size_t window, struct rfl_input **ret,
			     struct rfl_err *err)
{
	struct rfl_input *in = calloc(1, sizeof(*in));

	if (!in)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	in->fd = -1;
	in->nul = SIZE_MAX;
	in->next_line = 1;
	in->cap = window < RFL_INPUT_WINDOW ? window : RFL_INPUT_WINDOW;
	in->name = strdup(name);
	in->window = calloc(1, in->cap + RFL_INPUT_PAD);
	if (!in->name || !in->window) {
		rfl_input_close(in);
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	}
	*ret = in;
	return RFL_OK;
}

/* Opening a folder succeeds, reading it does not: said here, with its name. */
static enum rfl_rc open_path(struct rfl_input *in, const char *path, struct rfl_err *err)
{
	struct stat st;

	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno));
	in->owns_fd = true;
	if (fstat(in->fd, &st) == 0 && S_ISDIR(st.st_mode))
		return rfl_fail(err, RFL_EIO, EISDIR, "%s: is a folder, not a file", path);
	return RFL_OK;
}

enum rfl_rc rfl_input_open(const char *path, struct rfl_input **ret, struct rfl_err *err)
{
	bool standard = strcmp(path, "-") == 0;
	struct rfl_input *in = NULL;
	enum rfl_rc rc = new_input(standard ? "standard input" : path, SIZE_MAX, &in, err);

	if (rc != RFL_OK)
		return rc;
	if (standard)
		in->fd = STDIN_FILENO;
	else
		rc = open_path(in, path, err);
	if (rc == RFL_OK) {
		*ret = in;
		in = NULL;
	}
	rfl_input_close(in);
	return rc;
}

enum rfl_rc rfl_input_open_text(const char *text, size_t len, const char *name,
				struct rfl_input **ret, struct rfl_err *err)
{
	/* half of a window that is not full stays free: a smaller one serves a short text */
	enum rfl_rc rc = new_input(name, len < SIZE_MAX / 4 ? 2 * len + 64 : len, ret, err);

	if (rc != RFL_OK)
		return rc;
	(*ret)->text = text;
	(*ret)->text_len = len;
	return RFL_OK;
}

void rfl_input_close(struct rfl_input *in)
{
	if (!in)
		return;
	if (in->owns_fd)
		close(in->fd);
	free(in->undone);
	free(in->cuts);
	free(in->fields);
	free(in->raw);
	free(in->window);
	free(in->name);
	free(in);
}

const char *rfl_input_name(const struct rfl_input *in)
{
	return in->name;
}

size_t rfl_input_line_number(const struct rfl_input *in)
{
	return in->line;
}

bool rfl_input_torn(const struct rfl_input *in)
{
	return in->torn;
}

/* --- the window ------------------------------------------------------------------------------ */

/* Bytes of the source as they are. *got is 0 at its end. */
static enum rfl_rc take(struct rfl_input *in, void *out, size_t room, size_t *got,
			struct rfl_err *err)
{
	ssize_t n;

	*got = 0;
	if (in->fd < 0) {
		*got = in->text_len < room ? in->text_len : room;
		if (*got > 0)
			memcpy(out, in->text, *got);
		in->text += *got;
		in->text_len -= *got;
		return RFL_OK;
	}
	do
		n = read(in->fd, out, room);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return rfl_fail(err, RFL_EIO, errno, "%s: cannot read: %s", in->name,
				strerror(errno));
	*got = (size_t)n;
	return RFL_OK;
}

/* The same, decoded. */
static enum rfl_rc take_utf16(struct rfl_input *in, char *out, size_t room, size_t *got,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	size_t n = 1;

	*got = rfl_input__decode(in, out, room, false);
	while (rc == RFL_OK && *got == 0 && n > 0) {
		memmove(in->raw, in->raw + in->raw_at, in->raw_end - in->raw_at);
		in->raw_end -= in->raw_at;
		in->raw_at = 0;
		rc = take(in, in->raw + in->raw_end, RFL_INPUT_WINDOW - in->raw_end, &n, err);
		in->raw_end += n;
		*got = rfl_input__decode(in, out, room, n == 0);
	}
	return rc;
}

/* Fill the window, to its end if the source has so much: pipes give little at a time. */
static enum rfl_rc fill(struct rfl_input *in, struct rfl_err *err)
{
	size_t from = in->end, got = 1;
	enum rfl_rc rc = RFL_OK;
	const char *nul;

	while (rc == RFL_OK && got > 0 && in->cap - in->end >= 6) {
		if (in->encoding == RFL_INPUT_UTF8)
			rc = take(in, in->window + in->end, in->cap - in->end, &got, err);
		else
			rc = take_utf16(in, in->window + in->end, in->cap - in->end, &got, err);
		in->end += got;
	}
	in->eof = rc == RFL_OK && got == 0;
	memset(in->window + in->end, 0, RFL_INPUT_PAD);
	nul = in->nul == SIZE_MAX ? memchr(in->window + from, '\0', in->end - from) : NULL;
	if (nul)
		in->nul = (size_t)(nul - in->window);
	return rc;
}

/* Move what is needed to the front. */
static void slide(struct rfl_input *in, size_t from)
{
	memmove(in->window, in->window + from, in->end - from);
	in->end -= from;
	in->at -= from;
	in->keep = 0;
	if (in->nul != SIZE_MAX)
		in->nul -= from;
}

static enum rfl_rc grow(struct rfl_input *in, struct rfl_err *err)
{
	size_t cap = 2 * in->cap;
	char *window;

	if (in->cap > RFL_INPUT_LINE_MAX)
		return in->end - in->at <= RFL_INPUT_LINE_MAX
			       ? RFL_OK
			       : rfl_input__refuse(in, in->at, err, "a line of more than %zu MiB",
						   RFL_INPUT_LINE_MAX >> 20);
	if (cap > RFL_INPUT_LINE_MAX)
		cap = RFL_INPUT_LINE_MAX + RFL_INPUT_WINDOW;
	window = realloc(in->window, cap + RFL_INPUT_PAD);
	if (!window)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", in->name);
	in->window = window;
	in->cap = cap;
	return RFL_OK;
}

enum rfl_rc rfl_input__more(struct rfl_input *in, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (in->keep > 0)
		slide(in, in->keep);
	if (in->cap - in->end < in->cap / 4 && in->at > 0) {
		slide(in, in->at); /* the last record is too long to be kept */
		in->record_len = 0;
	}
	if (in->cap - in->end < in->cap / 4)
		rc = grow(in, err);
	return rc == RFL_OK ? fill(in, err) : rc;
}

/* UTF-16 that was read as it is becomes the source of what is decoded. */
static enum rfl_rc begin_utf16(struct rfl_input *in, enum rfl_input_encoding encoding,
			       struct rfl_err *err)
{
	char *window = calloc(1, in->cap + RFL_INPUT_PAD);

	if (!window)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", in->name);
	in->raw = (unsigned char *)in->window;
	in->raw_at = 2;
	in->raw_end = in->end;
	in->window = window;
	in->end = 0;
	in->nul = SIZE_MAX;
	in->encoding = encoding;
	return fill(in, err);
}

static enum rfl_rc start(struct rfl_input *in, struct rfl_err *err)
{
	enum rfl_rc rc = fill(in, err);

	if (rc == RFL_OK && in->end >= 2 && memcmp(in->window, "\xff\xfe", 2) == 0)
		rc = begin_utf16(in, RFL_INPUT_UTF16LE, err);
	else if (rc == RFL_OK && in->end >= 2 && memcmp(in->window, "\xfe\xff", 2) == 0)
		rc = begin_utf16(in, RFL_INPUT_UTF16BE, err);
	if (rc == RFL_OK && in->end >= 3 && memcmp(in->window, "\xef\xbb\xbf", 3) == 0)
		in->at = in->keep = 3;
	in->started = rc == RFL_OK;
	return rc;
}

/* Drop the rest of a line that was refused, however long it is. */
static enum rfl_rc skip_line(struct rfl_input *in, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	const char *nl = NULL;

	in->record_len = 0;
	while (rc == RFL_OK && !nl) {
		nl = memchr(in->window + in->at, '\n', in->end - in->at);
		in->at = nl ? (size_t)(nl - in->window) + 1 : in->end;
		in->keep = in->at;
		if (in->nul < in->at) {
			const char *nul = memchr(in->window + in->at, '\0', in->end - in->at);

			in->nul = nul ? (size_t)(nul - in->window) : SIZE_MAX;
		}
		if (!nl && in->eof)
			break;
		if (!nl)
			rc = rfl_input__more(in, err);
	}
	in->skipping = rc != RFL_OK;
	return rc;
}

enum rfl_rc rfl_input__ready(struct rfl_input *in, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (!in->started)
		rc = start(in, err);
	if (rc == RFL_OK && in->skipping)
		rc = skip_line(in, err);
	if (rc == RFL_OK && in->at == in->end && !in->eof)
		rc = rfl_input__more(in, err);
	return rc;
}

enum rfl_rc rfl_input__refuse(struct rfl_input *in, size_t place, struct rfl_err *err,
			      const char *fmt, ...)
{
	char what[512];
	size_t line = in->line, from = in->at;
	const char *nl;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (in->nul < place) { /* which explains the rest */
		place = in->nul;
		snprintf(what, sizeof(what), "%s", zero_byte);
	}
	while ((nl = memchr(in->window + from, '\n', place - from)) != NULL) {
		from = (size_t)(nl - in->window) + 1;
		line++;
	}
	in->record_len = 0;
	in->skipping = true;
	in->next_line = in->line + 1;
	return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu:%zu: %s", in->name, line, place - from + 1,
			what);
}

enum rfl_rc rfl_input__check_nul(struct rfl_input *in, size_t end, struct rfl_err *err)
{
	if (in->nul >= end)
		return RFL_OK;
	return rfl_input__refuse(in, in->nul, err, "%s", zero_byte);
}

void rfl_input__pass(struct rfl_input *in, size_t end, size_t lines)
{
	in->keep = in->at;
	in->at = end;
	in->next_line = in->line + lines;
}

/* --- what is handed out ---------------------------------------------------------------------- */

/* The next bytes, up to n, without taking them. */
static enum rfl_rc look(struct rfl_input *in, size_t n, struct rfl_span *ret, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_input__ready(in, err);

	while (rc == RFL_OK && in->end - in->at < n && !in->eof)
		rc = rfl_input__more(in, err);
	if (rc != RFL_OK)
		return rc;
	ret->at = in->window + in->at;
	ret->len = in->end - in->at < n ? in->end - in->at : n;
	return RFL_OK;
}

enum rfl_rc rfl_input_peek(struct rfl_input *in, struct rfl_span *ret, struct rfl_err *err)
{
	return look(in, PEEK, ret, err);
}

enum rfl_rc rfl_input_ahead(struct rfl_input *in, struct rfl_span *ret, struct rfl_err *err)
{
	return look(in, RFL_INPUT_AHEAD, ret, err);
}

enum rfl_rc rfl_input_line(struct rfl_input *in, struct rfl_span *ret, bool *more,
			   struct rfl_err *err)
{
	enum rfl_rc rc = rfl_input__ready(in, err);
	size_t len = 0; /* of the line, as far as it was looked at */
	const char *nl;

	in->record_len = in->same = 0;
	if (rc != RFL_OK)
		return rc;
	*more = in->at < in->end;
	if (!*more)
		return RFL_OK;
	in->line = in->next_line;
	in->keep = in->at;
	while (!(nl = memchr(in->window + in->at + len, '\n', in->end - in->at - len)) &&
	       !in->eof) {
		len = in->end - in->at;
		rc = rfl_input__more(in, err);
		if (rc != RFL_OK)
			return rc;
	}
	in->torn = !nl;
	len = (nl ? (size_t)(nl - in->window) : in->end) - in->at;
	rc = rfl_input__check_nul(in, in->at + len, err);
	if (rc != RFL_OK)
		return rc;
	ret->at = in->window + in->at;
	ret->len = len > 0 && ret->at[len - 1] == '\r' ? len - 1 : len;
	rfl_input__pass(in, in->at + len + (nl ? 1 : 0), 1);
	return RFL_OK;
}
