/*
 * csv_write.c - writes rows, and appends them to a table shared with other processes.
 */
#include "base/csv.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

#define BLOCK_SIZE   65536
#define OTHER_LAYOUT "; append to a new file"

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
	/* A single empty field would yield an empty line, which readers skip. */
	if (n == 1 && fields[0][0] == '\0')
		rfl_buf_puts(out, "\"\"");
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			rfl_buf_putc(out, ',');
		rfl_csv_write_field(out, fields[i]);
	}
	rfl_buf_putc(out, '\n');
}

enum rfl_rc rfl_csv_check_header(const char *path, const char *const *header, size_t n,
				 struct rfl_err *err)
{
	RFL_AUTOPTR(csv) csv = NULL;
	size_t i = 0, have;
	enum rfl_rc rc = rfl_csv_open(path, &csv, err);

	if (rc != RFL_OK)
		return rc;
	have = csv->ncolumns;
	while (i < n && i < have && strcmp(csv->columns[i], header[i]) == 0)
		i++;
	if (i < n && i < have)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s:1: column %zu is '%s' instead of '%s'" OTHER_LAYOUT, path, i + 1,
			      csv->columns[i], header[i]);
	else if (i < n)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s:1: column '%s' is missing" OTHER_LAYOUT,
			      path, header[i]);
	else if (i < have)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s:1: unknown column '%s'" OTHER_LAYOUT, path,
			      csv->columns[i]);
	return rc;
}

/* Complete a torn last line: append the missing quote and newline to `out`. */
static enum rfl_rc end_last_line(int fd, const char *path, off_t size, struct rfl_buf *out,
				 struct rfl_err *err)
{
	char block[BLOCK_SIZE], last = '\n';
	bool in_quotes = false;

	for (off_t at = 0; at < size;) {
		ssize_t n = pread(fd, block, sizeof(block), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rfl_fail_errno(err, "%s: cannot read", path);
		if (n == 0)
			break;
		for (const char *q = block; (q = memchr(q, '"', (size_t)(block + n - q))); q++)
			in_quotes = !in_quotes;
		last = block[n - 1];
		at += n;
	}
	if (in_quotes)
		rfl_buf_putc(out, '"');
	if (in_quotes || last != '\n')
		rfl_buf_putc(out, '\n');
	return RFL_OK;
}

enum rfl_rc rfl_csv_append_rows(const char *path, const char *const *header, size_t n,
				const struct rfl_buf *rows, struct rfl_err *err)
{
	RFL_AUTO(buf) out = { .len = 0 };
	struct stat st;
	enum rfl_rc rc, closed;
	RFL_AUTOFREE char *have = NULL;
	size_t size;
	int fd = -1;

	if ((rc = rfl_buf_check(rows, path, err)) != RFL_OK ||
	    (rc = rfl_file_lock(path, &fd, err)) != RFL_OK)
		goto done;
	if (fstat(fd, &st) != 0) {
		rc = rfl_fail_errno(err, "%s: cannot stat", path);
		goto done;
	}
	size = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
	rfl_csv_write_row(&out, header, n);
	if ((rc = rfl_buf_check(&out, path, err)) != RFL_OK)
		goto done;

	/* Truncate a file that contains only part of the header after an interrupted write. */
	if (size > 0 && size < out.len) {
		have = rfl_alloc_array(size, 1);
		if (pread(fd, have, size, 0) == (ssize_t)size &&
		    memcmp(have, out.data, size) == 0) {
			size = 0;
			if (ftruncate(fd, 0) != 0) {
				rc = rfl_fail_errno(err, "%s: cannot repair the header", path);
				goto done;
			}
		}
	}
	if (size > 0) { /* the file has a header */
		rfl_buf_reset(&out);
		if ((rc = rfl_csv_check_header(path, header, n, err)) != RFL_OK ||
		    (rc = end_last_line(fd, path, st.st_size, &out, err)) != RFL_OK)
			goto done;
	}
	rfl_buf_append(&out, rows->data, rows->len);
	if ((rc = rfl_buf_check(&out, path, err)) == RFL_OK)
		rc = rfl_file_append(fd, path, out.data, out.len, err);
done:
	closed = rfl_file_unlock(fd, path, err);
	return rc ? rc : closed;
}
