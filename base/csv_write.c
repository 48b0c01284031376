/*
 * csv_write.c - exact rows, and rows appended to a table that others append to as well.
 */
#include "base/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define BLOCK_SIZE 65536

void rfl_csv_write_field(struct rfl_buf *out, const char *field)
{
	const size_t len = strlen(field);

	if (!strpbrk(field, ",\"\r\n") &&
	    (len == 0 || (!strchr(" \t", field[0]) && !strchr(" \t", field[len - 1])))) {
		rfl_buf_append(out, field, len);
		return;
	}
	rfl_buf_putc(out, '"');
	for (; *field != '\0'; field++) {
		if (*field == '"')
			rfl_buf_putc(out, '"');
		rfl_buf_putc(out, *field);
	}
	rfl_buf_putc(out, '"');
}

void rfl_csv_write_row(struct rfl_buf *out, const char *const *fields, size_t n)
{
	/* One empty field alone would be an empty line, which readers skip. */
	if (n == 1 && fields[0][0] == '\0')
		rfl_buf_puts(out, "\"\"");
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			rfl_buf_putc(out, ',');
		rfl_csv_write_field(out, fields[i]);
	}
	rfl_buf_putc(out, '\n');
}

/* --- appending ------------------------------------------------------------------------------- */

static enum rfl_rc fail_errno(struct rfl_err *err, const char *path, const char *what)
{
	return rfl_fail(err, RFL_EIO, errno, "%s: %s: %s", path, what, strerror(errno));
}

enum rfl_rc rfl_csv_check_header(const char *path, const char *const *header, size_t n,
				 struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc = rfl_csv_open(path, &csv, err);

	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < n && i < rfl_csv_columns(csv) && rc == RFL_OK; i++)
		if (strcmp(rfl_csv_column(csv, i), header[i]) != 0)
			rc = rfl_fail(err, RFL_EFORMAT, 0,
				      "%s:1: column %zu is '%s' where '%s' belongs: the file has "
				      "another layout; append to a new file",
				      path, i + 1, rfl_csv_column(csv, i), header[i]);
	if (rc == RFL_OK && rfl_csv_columns(csv) < n)
		rc = rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s:1: column '%s' is missing: the file has another layout; append to "
			"a new file",
			path, header[rfl_csv_columns(csv)]);
	if (rc == RFL_OK && rfl_csv_columns(csv) > n)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s:1: column '%s' is not known: the file has another layout; append "
			      "to a new file",
			      path, rfl_csv_column(csv, n));
	rfl_csv_close(csv);
	return rc;
}

/* How the file ends: inside quotes, and with which byte. */
struct tail {
	bool in_quotes;
	char last;
};

static enum rfl_rc read_tail(int fd, const char *path, off_t size, struct tail *ret,
			     struct rfl_err *err)
{
	char block[BLOCK_SIZE];
	struct tail tail = { .last = '\n' };

	for (off_t at = 0; at < size;) {
		ssize_t n = pread(fd, block, sizeof(block), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(err, path, "cannot read");
		if (n == 0)
			break;
		for (const char *q = block; (q = memchr(q, '"', (size_t)(block + n - q))); q++)
			tail.in_quotes = !tail.in_quotes;
		tail.last = block[n - 1];
		at += n;
	}
	*ret = tail;
	return RFL_OK;
}

/* Empty a file that is only the beginning of a header line whose writing was cut short. */
static enum rfl_rc mend_cut_header(int fd, const char *path, off_t *size,
				   const struct rfl_buf *header, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	char *have;

	if (*size <= 0 || (size_t)*size >= header->len)
		return RFL_OK;
	have = malloc((size_t)*size);
	if (!have)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	if (pread(fd, have, (size_t)*size, 0) == (ssize_t)*size &&
	    memcmp(have, header->data, (size_t)*size) == 0) {
		if (ftruncate(fd, 0) == 0)
			*size = 0;
		else
			rc = fail_errno(err, path, "cannot mend the header");
	}
	free(have);
	return rc;
}

/* Put what has to stand before the row into `out`: a header, or the end of a torn line. */
static enum rfl_rc prepare(int fd, const char *path, off_t *size, const char *const *header,
			   size_t n, struct rfl_buf *out, struct rfl_err *err)
{
	struct tail tail;
	enum rfl_rc rc;

	rfl_csv_write_row(out, header, n);
	rc = rfl_buf_check(out, path, err);
	if (rc == RFL_OK)
		rc = mend_cut_header(fd, path, size, out, err);
	if (rc != RFL_OK || *size == 0)
		return rc;
	rfl_buf_reset(out);
	rc = rfl_csv_check_header(path, header, n, err);
	if (rc == RFL_OK)
		rc = read_tail(fd, path, *size, &tail, err);
	if (rc != RFL_OK)
		return rc;
	if (tail.in_quotes)
		rfl_buf_putc(out, '"');
	if (tail.in_quotes || tail.last != '\n')
		rfl_buf_putc(out, '\n');
	return RFL_OK;
}

enum rfl_rc rfl_csv_append_rows(const char *path, const char *const *header, size_t n,
				const struct rfl_buf *rows, struct rfl_err *err)
{
	struct rfl_buf out;
	struct stat st;
	off_t size;
	enum rfl_rc rc, closed;
	int fd = -1;

	rfl_buf_init(&out, 0);
	rc = rfl_file_lock(path, &fd, err);
	if (rc != RFL_OK)
		goto done;
	if (fstat(fd, &st) != 0) {
		rc = fail_errno(err, path, "cannot stat");
		goto done;
	}
	size = S_ISREG(st.st_mode) ? st.st_size : 0;
	rc = prepare(fd, path, &size, header, n, &out, err);
	if (rc != RFL_OK)
		goto done;
	rfl_buf_append(&out, rows->data, rows->len);
	rc = rfl_buf_check(&out, path, err);
	if (rc == RFL_OK)
		rc = rfl_file_append(fd, path, out.data, out.len, err);
done:
	closed = rfl_file_unlock(fd, path, err);
	rfl_buf_fini(&out);
	return rc ? rc : closed;
}

enum rfl_rc rfl_csv_append(const char *path, const char *const *header, const char *const *fields,
			   size_t n, struct rfl_err *err)
{
	struct rfl_buf row;
	enum rfl_rc rc;

	rfl_buf_init(&row, 0);
	rfl_csv_write_row(&row, fields, n);
	rc = rfl_buf_check(&row, path, err);
	if (rc == RFL_OK)
		rc = rfl_csv_append_rows(path, header, n, &row, err);
	rfl_buf_fini(&row);
	return rc;
}
