/*
 * mend.c - repairs a ledger by moving torn rows to another file, and upgrades a ledger of an older
 * version, keeping the old file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "ledger/file/steps.h"

#define CHUNK ((size_t)1 << 20)

bool rfl_ledger__is_cut_header(const char *path)
{
	RFL_AUTO(buf) header = { .len = 0 };
	FILE *f = fopen(path, "re");
	bool cut = false;
	size_t n = 0;
	int c;

	if (!f)
		return false;
	rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, &header);
	do
		c = getc(f);
	while (c == '\n' || c == '\r'); /* an empty file saved by an editor */
	for (; c != EOF && n < header.len && c == (unsigned char)header.data[n]; c = getc(f))
		n++;
	while (c == '\0')
		c = getc(f);
	cut = !header.failed && n < header.len && c == EOF && !ferror(f);
	fclose(f);
	return cut;
}

/* A row with its newline. A torn row has no newline or contains zero bytes. */
struct record {
	size_t begin, end;
	size_t line; /* number of its first line, from 1 */
	bool torn;
};

/* Find the next record of a text, or return false after the last.
 * @param r  zeroed before the first call */
static bool next_record(const char *text, size_t len, struct record *r)
{
	size_t end, zero;

	for (const char *p = text + r->begin; r->line && p < text + r->end; p++)
		r->line += *p == '\n';
	r->line += r->line == 0;
	r->begin = r->end;
	if (r->begin == len)
		return false;
	r->torn = !rfl_csv_record(text + r->begin, len - r->begin, &end);
	r->end += end;
	if (!r->torn)
		return true;
	/* The record ends at zero bytes: the file system had allocated space without writing
	 * data. */
	zero = r->begin + strnlen(text + r->begin, r->end - r->begin);
	if (zero < r->end) {
		while (zero < len && text[zero] == '\0')
			zero++;
		r->end = zero + (zero < len && text[zero] == '\n');
	}
	return true;
}

enum rfl_rc rfl_ledger__open_whole(const char *path, const struct rfl_err *why,
				   struct rfl_buf *text, uint64_t *hash, struct rfl_csv **ret,
				   struct rfl_err *err)
{
	struct record r = { 0 };
	size_t torn = 0;
	enum rfl_rc rc = rfl_file_read(path, text, err);

	if (hash)
		*hash = rfl_hash64(0, rfl_buf_str(text), text->len);
	while (rc == RFL_OK && next_record(text->data, text->len, &r)) {
		if (!r.torn)
			continue;
		/* Blank the record out, so that line numbers stay correct. */
		for (size_t i = r.begin; i < r.end; i++)
			text->data[i] = text->data[i] == '\n' || i + 1 == text->len ? '\n' : '\r';
		if (torn++ < RFL_LEDGER__NAMED_MAX)
			rfl_log(RFL_LOG_WARN,
				"%s:%zu: the row is skipped because it is incomplete or has a "
				"stray quote; correct it or delete it",
				path, r.line);
	}
	if (torn > RFL_LEDGER__NAMED_MAX)
		rfl_log(RFL_LOG_WARN, "%s: %zu more such rows are skipped", path,
			torn - RFL_LEDGER__NAMED_MAX);
	if (rc == RFL_OK && !torn)
		rc = rfl_err_pass(err, why);
	return rc ? rc : rfl_csv_open_text(text->data, text->len, path, ret, err);
}

static const char *const torn_header[] = { "found_utc", "line", "zero_bytes", "text" };

enum rfl_rc rfl_ledger__check_torn(const char *path, struct rfl_err *err)
{
	RFL_AUTOFREE char *torn_path = rfl_ledger__beside(path, ".torn.csv");
	enum rfl_rc rc = rfl_file_check_use(torn_path, RFL_FILE_APPENDED, err);

	if (rc == RFL_OK && rfl_file_size(torn_path) > 0)
		rc = rfl_csv_check_header(torn_path, torn_header, RFL_ARRAY_LEN(torn_header), err);
	return rc;
}

/* Add a row to metrics.torn.csv. Zero bytes are counted but not copied because text cannot contain
 * them. */
static enum rfl_rc set_aside(const char *torn_path, const char *path, const char *text,
			     const struct record *r, struct rfl_err *err)
{
	char line[32], zeros[32], now[RFL_TIME_ISO_SIZE];
	const char *fields[] = { now, line, zeros, NULL };
	size_t nzeros = 0;
	RFL_AUTO(buf) row = { .len = 0 };
	RFL_AUTO(buf) kept = { .max = RFL_LEDGER__BYTES_MAX };
	enum rfl_rc rc;

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
	rfl_csv_write_row(&row, fields, RFL_ARRAY_LEN(fields));
	if ((rc = rfl_buf_check(&kept, path, err)) == RFL_OK &&
	    (rc = rfl_csv_append_rows(torn_path, torn_header, RFL_ARRAY_LEN(torn_header), &row,
				      err)) == RFL_OK)
		rfl_log(RFL_LOG_WARN,
			"%s:%zu: the incomplete row (a power failure?) was moved to %s", path,
			r->line, torn_path);
	return rc;
}

enum rfl_rc rfl_ledger__mend(int fd, const char *path, bool *mended, struct rfl_err *err)
{
	RFL_AUTOFREE char *torn_path = rfl_ledger__beside(path, ".torn.csv");
	bool cut = true; /* no complete row follows a torn row */
	struct record r = { 0 };
	RFL_AUTO(buf) whole = { .max = RFL_LEDGER__BYTES_MAX };
	RFL_AUTO(buf) text = { .max = RFL_LEDGER__BYTES_MAX };
	enum rfl_rc rc;

	*mended = false;
	rc = rfl_file_read(path, &text, err);
	while (rc == RFL_OK && next_record(text.data, text.len, &r)) {
		if (r.torn) {
			rc = set_aside(torn_path, path, text.data, &r, err);
			*mended = true;
			continue;
		}
		cut = cut && !*mended;
		rfl_buf_append(&whole, text.data + r.begin, r.end - r.begin);
	}
	if (rc == RFL_OK)
		rc = rfl_buf_check(&whole, path, err);
	if (rc || !*mended)
		return rc;
	if (!cut)
		rc = rfl_file_write(path, whole.data, whole.len, err);
	else if (ftruncate(fd, (off_t)whole.len) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot remove the incomplete row: %s", path,
			      strerror(errno));
	if (rc == RFL_OK)
		rfl_ledger__drop(path, ".jsonl");
	return rc;
}

/* Whether a name belongs to a column of this version, or of one of the first n of a list. */
static bool is_column(const char *name, const char *const *columns, size_t n)
{
	while (n > 0 && strcmp(columns[n - 1], name) != 0)
		n--;
	return n > 0 || rfl_ledger_column_find(name) < RFL_LEDGER_NCOLUMNS;
}

void rfl_ledger__put_header(const char *const *columns, size_t n, struct rfl_buf *out)
{
	rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, out);
	for (size_t i = 0; i < n; i++)
		if (!is_column(columns[i], columns, i)) {
			out->data[out->len - 1] = ',';
			rfl_csv_write_field(out, columns[i]);
			rfl_buf_putc(out, '\n');
		}
}

/* Write every row with the columns of the current version, followed by foreign columns.
 * @param version  set to the newest version found in a row */
static enum rfl_rc convert(struct rfl_csv *old, const char *const *columns, size_t n, FILE *f,
			   int64_t *version, struct rfl_err *err)
{
	const size_t most = old->ncolumns + n;
	const char **names = rfl_alloc_array(most, sizeof(*names)), **fields;
	const int schema = rfl_csv_find(old, "schema_version");
	RFL_AUTO(buf) out = { .len = 0 };
	RFL_AUTOPTR(csv) header = NULL;
	bool more = true, good = true;
	enum rfl_rc rc;

	*version = 0;
	for (size_t i = 0; i < most; i++)
		names[i] = i < old->ncolumns ? old->columns[i] : columns[i - old->ncolumns];
	rfl_ledger__put_header(names, most, &out);
	rc = rfl_csv_open_text(out.data, out.len, old->path, &header, err);
	fields = rfl_alloc_array(header ? header->ncolumns : 0, sizeof(*fields));
	while (rc == RFL_OK && good && more && (rc = rfl_csv_next(old, &more, err)) == RFL_OK) {
		int64_t v;

		for (size_t i = 0; more && i < header->ncolumns; i++)
			fields[i] = rfl_csv_text(old, rfl_csv_find(old, header->columns[i]));
		if (more)
			rfl_csv_write_row(&out, fields, header->ncolumns);
		if (more && rfl_csv_int(old, schema, 0, &v, NULL) == RFL_OK && v > *version)
			*version = v;
		if (!more || out.len > CHUNK) {
			good = fwrite(out.data, 1, out.len, f) == out.len;
			rfl_buf_reset(&out);
		}
	}
	if (rc == RFL_OK && !good)
		rc = rfl_fail_errno(err, "%s: cannot write its new version", old->path);
	free(names);
	free(fields);
	return rc;
}

/* Keep the old file as metrics.v2.csv, metrics.v2_2.csv, and so on. The caller frees *kept, even
 * after a failure. */
static enum rfl_rc keep(const char *path, int64_t version, char **kept, struct rfl_err *err)
{
	for (unsigned n = 1;; n++) {
		struct rfl_err why = RFL_ERR_INIT;
		char suffix[64], number[16] = "";
		struct stat old, other;
		RFL_AUTO(buf) text = { .max = RFL_LEDGER__BYTES_MAX };
		enum rfl_rc rc;

		if (n > 1)
			snprintf(number, sizeof(number), "_%u", n);
		snprintf(suffix, sizeof(suffix), ".v%" PRId64 "%s.csv", version, number);
		free(*kept);
		*kept = rfl_ledger__beside(path, suffix);
		if (link(path, *kept) == 0)
			return RFL_OK;
		if (errno == EEXIST) {
			if (stat(path, &old) == 0 && stat(*kept, &other) == 0 &&
			    old.st_ino == other.st_ino && old.st_dev == other.st_dev)
				return RFL_OK; /* left by an interrupted upgrade */
			continue;
		}
		/* The file system does not support links: copy. */
		rc = rfl_file_read(path, &text, &why);
		if (rc == RFL_OK)
			rc = rfl_file_create(*kept, text.data, text.len, &why);
		if (rc == RFL_OK)
			return RFL_OK;
		if (why.native != EEXIST)
			return rfl_err_pass(err, &why);
	}
}

enum rfl_rc rfl_ledger__upgrade(const char *path, const char *const *columns, size_t n,
				struct rfl_err *err)
{
	RFL_AUTOPTR(csv) old = NULL;
	char *fresh = NULL;
	RFL_AUTOFREE char *kept = NULL;
	RFL_AUTOFREE char *target = NULL;
	FILE *f = NULL;
	int64_t version = 0;
	enum rfl_rc rc;

	if ((rc = rfl_file_target(path, &target, err)) ||
	    (rc = rfl_file_neighbour(target, &fresh, &f, err)))
		return rc;
	if ((rc = rfl_csv_open(path, &old, err)) == RFL_OK &&
	    (rc = convert(old, columns, n, f, &version, err)) == RFL_OK)
		rc = keep(path, version, &kept, err);
	rc = rfl_file_replace(f, fresh, target, rc, err);
	if (rc)
		return rc;
	rfl_ledger__drop(path, ".jsonl");
	if (version < RFL_LEDGER_SCHEMA)
		rfl_log(RFL_LOG_WARN,
			"%s: upgraded from version %" PRId64 " to %d; the old file is kept as %s",
			path, version, RFL_LEDGER_SCHEMA, kept);
	else
		rfl_log(RFL_LOG_WARN, "%s: columns were added; the old file is kept as %s", path,
			kept);
	return rc;
}
