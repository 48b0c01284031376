/*
 * mend.c - rows that a power cut left torn: found, and moved into a file of their own, so
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
#include "ledger/file/steps.h"

/* ---- the header ---- */

enum rfl_rc rfl_ledger__put_header(struct rfl_buf *out, struct rfl_err *err)
{
	const char *names[RFL_LEDGER_NCOLUMNS];

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++)
		names[i] = rfl_ledger_column_name(i);
	rfl_csv_write_row(out, names, RFL_LEDGER_NCOLUMNS);
	return rfl_buf_check(out, "ledger", err);
}

/* How many bytes of a file are those of a text, from the beginning on; then only zeros follow, or
 * *zeros is false. */
static size_t matching(FILE *f, const struct rfl_buf *text, bool *zeros)
{
	size_t n = 0;
	int c;

	do
		c = getc(f);
	while (c == '\n' || c == '\r'); /* what an editor saves when there is nothing */
	for (; c != EOF && n < text->len && c == (unsigned char)text->data[n]; c = getc(f))
		n++;
	while (c == '\0')
		c = getc(f);
	*zeros = c == EOF && !ferror(f);
	return n;
}

bool rfl_ledger__is_cut_header(const char *path)
{
	struct rfl_buf header;
	FILE *f = fopen(path, "re");
	bool cut = false, zeros = false;

	if (!f)
		return false;
	rfl_buf_init(&header, 0);
	if (rfl_ledger__put_header(&header, NULL) == RFL_OK)
		cut = matching(f, &header, &zeros) < header.len && zeros;
	rfl_buf_fini(&header);
	fclose(f);
	return cut;
}

/* ---- rows ---- */

/* Where in a field a byte stands. */
enum place { FIELD_BEGINS, PLAIN, QUOTED, QUOTE_SEEN };

/* The place behind a byte; false for a quote that RFC 4180 has not there. */
static bool step(enum place *p, char c)
{
	switch (c) {
	case '"':
		if (*p == PLAIN)
			return false;
		*p = *p == QUOTED ? QUOTE_SEEN : QUOTED; /* two of them are one in a text */
		return true;
	case '\r':
		return true;
	case ',':
	case '\n':
		if (*p != QUOTED)
			*p = FIELD_BEGINS;
		return true;
	default:
		if (*p == FIELD_BEGINS)
			*p = PLAIN;
		return *p != QUOTE_SEEN;
	}
}

/* Where the record that begins at `at` ends. One whose quotes are wrong ends with its line: what
 * follows may be whole rows. */
static size_t record_end(const char *text, size_t len, size_t at, bool *torn)
{
	const char *line_end = memchr(text + at, '\n', len - at);
	enum place p = FIELD_BEGINS;

	*torn = true;
	for (size_t i = at; i < len; i++) {
		/* a file system's: the space was there, the data not yet */
		if (text[i] == '\0' && (!line_end || text + i < line_end)) {
			while (i < len && text[i] == '\0')
				i++;
			return i + (i < len && text[i] == '\n');
		}
		if (text[i] == '\0' || !step(&p, text[i]))
			break;
		if (text[i] == '\n' && p == FIELD_BEGINS) {
			*torn = false;
			return i + 1;
		}
	}
	return line_end ? (size_t)(line_end - text) + 1 : len;
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

/* Blank out torn records, so that lines keep their numbers. @return how many there are */
static size_t blank_torn(char *text, size_t len, const char *path)
{
	struct rfl_ledger__record r = { 0 };
	size_t n = 0;

	while (rfl_ledger__next_record(text, len, &r)) {
		if (!r.torn)
			continue;
		for (size_t i = r.begin; i < r.end; i++)
			text[i] = '\n' == text[i] || i + 1 == len ? '\n' : '\r';
		rfl_log(RFL_LOG_WARN,
			"%s:%zu: a row is left out: it is incomplete, or has a stray quote", path,
			r.line);
		n++;
	}
	return n;
}

enum rfl_rc rfl_ledger__open_whole(const char *path, const struct rfl_err *why,
				   struct rfl_buf *text, uint64_t *hash, struct rfl_csv **ret,
				   struct rfl_err *err)
{
	enum rfl_rc rc = rfl_file_read(path, text, err);

	if (hash)
		*hash = rfl_hash64(0, rfl_buf_str(text), text->len);
	if (rc == RFL_OK && blank_torn(text->data, text->len, path) == 0)
		rc = rfl_fail(err, why->rc, why->native, "%s", why->msg);
	return rc ? rc : rfl_csv_open_text(text->data, text->len, path, ret, err);
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
