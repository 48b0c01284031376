/*
 * ledger_mend.c - rows that a power cut left torn: found, and moved into a file of their own, so
 * that nothing else is lost and they are not lost either.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "ledger/ledger_file.h"

/* Where the record that begins at `at` ends. A quote that is never closed ends with its line: what
 * follows may be whole rows. */
static size_t record_end(const char *text, size_t len, size_t at, bool *torn)
{
	size_t first_line = 0;
	bool quoted = false;

	*torn = true;
	for (size_t i = at; i < len; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		if (text[i] == '\0') { /* a file system's: the space was there, the data not yet */
			while (i < len && text[i] == '\0')
				i++;
			return i + (i < len && text[i] == '\n');
		}
		if (text[i] != '\n')
			continue;
		if (!quoted) {
			*torn = false;
			return i + 1;
		}
		first_line = first_line ? first_line : i + 1;
	}
	return first_line ? first_line : len;
}

static size_t newlines(const char *text, size_t len)
{
	size_t n = 0;

	for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))); p++)
		n++;
	return n;
}

bool rfl_ledger__next_record(const char *text, size_t len, struct rfl_ledger__record *r)
{
	r->line = r->line ? r->line + newlines(text + r->begin, r->end - r->begin) : 1;
	r->begin = r->end;
	if (r->begin >= len)
		return false;
	r->end = record_end(text, len, r->begin, &r->torn);
	return true;
}

size_t rfl_ledger__blank_torn(char *text, size_t len, const char *path)
{
	struct rfl_ledger__record r = { 0 };
	size_t n = 0;

	while (rfl_ledger__next_record(text, len, &r)) {
		if (!r.torn)
			continue;
		for (size_t i = r.begin; i < r.end; i++)
			text[i] = '\n' == text[i] || i + 1 == len ? '\n' : '\r';
		rfl_log(RFL_LOG_WARN, "%s:%zu: an incomplete row is left out", path, r.line);
		n++;
	}
	return n;
}

/* A row of metrics.torn.csv: zero bytes are counted, for text cannot hold them. */
static enum rfl_rc set_aside(const char *torn_path, const char *path, const char *text,
			     const struct rfl_ledger__record *r, struct rfl_err *err)
{
	static const char *const header[] = { "found_utc", "line", "zero_bytes", "text" };
	char line[32], zeros[32], now[RFL_TIME_ISO_SIZE];
	const char *fields[] = { now, line, zeros, NULL };
	size_t nzeros = 0;
	struct rfl_buf kept;
	enum rfl_rc rc;

	rfl_buf_init(&kept, RFL_LEDGER__BYTES_MAX);
	for (size_t i = r->begin; i < r->end; i++) {
		if (text[i] == '\0')
			nzeros++;
		else
			rfl_buf_putc(&kept, text[i]);
	}
	rfl_clock_iso(now);
	snprintf(line, sizeof(line), "%zu", r->line);
	snprintf(zeros, sizeof(zeros), "%zu", nzeros);
	fields[3] = rfl_buf_str(&kept);
	rc = rfl_buf_check(&kept, path, err);
	if (rc == RFL_OK)
		rc = rfl_csv_append(torn_path, header, fields, RFL_ARRAY_LEN(header), err);
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_WARN,
			"%s:%zu: an incomplete row (a power cut?) was set aside in %s", path,
			r->line, torn_path);
	rfl_buf_fini(&kept);
	return rc;
}

/* Set torn records aside and put the whole ones into `whole`; *cut is the size up to which the file
 * is whole when nothing whole stands behind the torn ones. */
static enum rfl_rc sort_out(const char *path, const struct rfl_buf *text, struct rfl_buf *whole,
			    bool *torn, bool *cut, struct rfl_err *err)
{
	char *torn_path = rfl_ledger__beside(path, ".torn.csv");
	struct rfl_ledger__record r = { 0 };
	enum rfl_rc rc = RFL_OK;

	*torn = false;
	*cut = true;
	if (!torn_path)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	while (rc == RFL_OK && rfl_ledger__next_record(text->data, text->len, &r)) {
		if (r.torn) {
			rc = set_aside(torn_path, path, text->data, &r, err);
			*torn = true;
			continue;
		}
		*cut = *cut && !*torn;
		rfl_buf_append(whole, text->data + r.begin, r.end - r.begin);
	}
	free(torn_path);
	return rc ? rc : rfl_buf_check(whole, path, err);
}

enum rfl_rc rfl_ledger__mend(int fd, const char *path, bool *mended, struct rfl_err *err)
{
	struct rfl_buf text, whole;
	enum rfl_rc rc;
	bool cut;

	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
	rfl_buf_init(&whole, RFL_LEDGER__BYTES_MAX);
	rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK)
		rc = sort_out(path, &text, &whole, mended, &cut, err);
	if (rc || !*mended)
		goto done;
	if (!cut)
		rc = rfl_file_write(path, whole.data, whole.len, err);
	else if (ftruncate(fd, (off_t)whole.len) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot cut an incomplete row off: %s", path,
			      strerror(errno));
	if (rc == RFL_OK)
		rfl_ledger__drop_mirror(path);
done:
	rfl_buf_fini(&text);
	rfl_buf_fini(&whole);
	return rc;
}
