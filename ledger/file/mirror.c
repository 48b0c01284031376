/*
 * mirror.c - metrics.jsonl, a copy of the ledger for programs that prefer JSON. Rows that it lacks
 * are appended if its last line is one of the last rows of the ledger; else it is built anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ledger/file/steps.h"

#define TAIL_MAX    65536 /* bytes before the added rows that are searched for the last line */
#define CHUNK       ((size_t)1 << 20)
#define REBUILD_MAX ((off_t)16 << 20) /* a larger ledger takes too long at the end of a run */

/* Length of the JSON number at the beginning of a text; 0: none. */
static size_t json_number_len(const char *text)
{
	static const char digits[] = "0123456789";
	size_t n = text[0] == '-', whole = strspn(text + n, digits), more;

	if (whole == 0 || (whole > 1 && text[n] == '0'))
		return 0;
	n += whole;
	if (text[n] == '.') {
		more = strspn(text + n + 1, digits);
		if (more == 0)
			return 0;
		n += 1 + more;
	}
	if (text[n] == 'e' || text[n] == 'E') {
		const size_t sign = text[n + 1] == '+' || text[n + 1] == '-';

		more = strspn(text + n + 1 + sign, digits);
		if (more == 0)
			return 0;
		n += 1 + sign + more;
	}
	return n;
}

/* Write the current row as one line. Fields have the type of their column. Invalid numbers and
 * foreign columns are written as strings. */
static void put_row(struct rfl_csv *csv, struct rfl_buf *out)
{
	const char *sep = "{";

	for (size_t i = 0; i < csv->ncolumns; i++) {
		const char *name = csv->columns[i], *text = rfl_csv_text(csv, (int)i);
		enum rfl_field_kind kind = RFL_FIELD_TEXT;
		size_t column = i; /* columns of a ledger are usually in order */
		const size_t len = strlen(text);
		int64_t whole;
		double real;

		if (name[0] == '\0')
			continue;
		if (i >= RFL_LEDGER_NCOLUMNS || strcmp(rfl_ledger_fields[i].name, name) != 0)
			column = rfl_ledger_column_find(name);
		if (column < RFL_LEDGER_NCOLUMNS)
			kind = rfl_ledger_fields[column].kind;

		rfl_buf_puts(out, sep);
		rfl_json_write_string(out, name, strlen(name));
		rfl_buf_putc(out, ':');
		if (len == 0) {
			rfl_buf_puts(out, "null");
		} else if (kind == RFL_FIELD_INT &&
			   rfl_csv_int(csv, (int)i, 0, &whole, NULL) == RFL_OK) {
			rfl_buf_printf(out, "%" PRId64, whole);
		} else if (kind == RFL_FIELD_REAL && json_number_len(text) == len) {
			rfl_buf_append(out, text, len);
			rfl_buf_puts(out, strpbrk(text, ".eE") ? "" : ".0");
		} else if (kind == RFL_FIELD_REAL &&
			   rfl_csv_double(csv, (int)i, &real, NULL) == RFL_OK) {
			rfl_json_write_real(out, real);
		} else {
			rfl_json_write_string(out, text, len);
		}
		sep = ",";
	}
	rfl_buf_puts(out, "}\n");
}

static enum rfl_rc write_rows(struct rfl_csv *csv, FILE *f, const char *name, struct rfl_err *err)
{
	RFL_AUTO(buf) out = { .len = 0 };
	bool more = true, good = true;
	enum rfl_rc rc = RFL_OK;

	while (good && more && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK) {
		if (more)
			put_row(csv, &out);
		if (!more || out.len > CHUNK || out.failed) {
			good = !out.failed && fwrite(rfl_buf_str(&out), 1, out.len, f) == out.len;
			rfl_buf_reset(&out);
		}
	}
	if (!good)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot write: %s", name, strerror(errno));
	return rc;
}

/* Write all readable rows to a temporary file and rename it, so that readers see either the old
 * mirror or the new one. */
static enum rfl_rc rebuild(const char *path, const char *mirror, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTO(buf) text = { .max = RFL_LEDGER__BYTES_MAX };
	struct rfl_csv *csv = NULL;
	char *fresh = NULL;
	FILE *f = NULL;
	enum rfl_rc rc = rfl_file_neighbour(mirror, &fresh, &f, err);

	if (rc)
		return rc;
	rc = rfl_csv_open(path, &csv, &why);
	if (rc == RFL_OK)
		rc = write_rows(csv, f, fresh, &why);
	if (rc == RFL_EFORMAT) { /* a row before the last one is torn */
		rfl_csv_close(csv);
		csv = NULL;
		rewind(f);
		rc = rfl_ledger__open_whole(path, &why, &text, NULL, &csv, err);
		if (rc == RFL_OK && ftruncate(fileno(f), 0) != 0)
			rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot write: %s", fresh,
				      strerror(errno));
		if (rc == RFL_OK)
			rc = write_rows(csv, f, fresh, err);
	} else if (rc) {
		(void)rfl_err_pass(err, &why);
	}
	rc = rfl_file_replace(f, fresh, mirror, rc, err);
	rfl_csv_close(csv);
	return rc;
}

/* Read the end of a regular file. @return false if it cannot be read */
static bool read_tail(const char *path, off_t from, struct rfl_buf *out, off_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a named pipe */
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		char block[TAIL_MAX];

		*size = st.st_size;
		from = from < 0 ? st.st_size - TAIL_MAX : from;
		from = from < 0 ? 0 : from;
		while ((n = pread(fd, block, sizeof(block), from)) > 0) {
			rfl_buf_append(out, block, (size_t)n);
			from += n;
		}
	}
	close(fd);
	return n == 0 && !out->failed;
}

/* The last line of the mirror, with its newline; what follows it is torn.
 * @param end  set to the size of the mirror up to that line
 * @return false if there is none: an empty mirror has an empty one */
static bool last_line(const char *mirror, struct rfl_buf *text, struct rfl_span *ret, off_t *end)
{
	off_t size;
	size_t n, at;

	if (!read_tail(mirror, -1, text, &size))
		return false;
	for (n = text->len; n > 0 && text->data[n - 1] != '\n'; n--)
		;
	for (at = n ? n - 1 : 0; at > 0 && text->data[at - 1] != '\n'; at--)
		;
	*end = size - (off_t)(text->len - n);
	*ret = (struct rfl_span){ .at = rfl_buf_str(text) + at, .len = n - at };
	return n > 0 || *end == 0;
}

/* Write the rows of the ledger that follow its row with this line as JSON.
 * @param before  size of the ledger before the last rows were added
 * @param last    empty: write all rows
 * @return false if that row is not among the last ones */
static bool rows_after(const char *path, const struct rfl_csv *header, off_t before,
		       struct rfl_span last, struct rfl_buf *out)
{
	RFL_AUTO(buf) rows = { .len = 0 };
	RFL_AUTO(buf) text = { .max = RFL_LEDGER__BYTES_MAX };
	off_t size, from = before > TAIL_MAX ? before - TAIL_MAX : 0;
	RFL_AUTOPTR(csv) csv = NULL;
	enum rfl_rc rc;
	bool more = true, found = last.len == 0 && from == 0, whole = from == 0;
	const char *nl;

	if (!read_tail(path, from, &rows, &size))
		return found;
	if (from > 0) { /* in the middle of a row */
		nl = memchr(rows.data, '\n', rows.len);
		rfl_csv_write_row(&text, (const char *const *)header->columns, header->ncolumns);
		rfl_buf_append(&text, nl ? nl + 1 : "",
			       nl ? rows.len - (size_t)(nl + 1 - rows.data) : 0);
	}
	if (rfl_csv_open_text(from ? text.data : rows.data, from ? text.len : rows.len, path, &csv,
			      NULL) != RFL_OK)
		return false;
	while ((rc = rfl_csv_next(csv, &more, NULL)) == RFL_OK && more) {
		const size_t at = out->len;

		whole = whole || csv->nfields == csv->ncolumns;
		if (!whole)
			continue;
		put_row(csv, out);
		if (last.len && out->len - at == last.len &&
		    memcmp(out->data + at, last.at, last.len) == 0) {
			rfl_buf_reset(out);
			found = true;
		}
	}
	return found && rc == RFL_OK && !out->failed;
}

/* Append lines to the mirror after its first `end` bytes. */
static enum rfl_rc add_lines(const char *mirror, off_t end, const struct rfl_buf *lines,
			     struct rfl_err *err)
{
	enum rfl_rc rc, closed;
	int fd = -1;

	rc = rfl_file_lock(mirror, &fd, err);
	if (rc == RFL_OK && ftruncate(fd, end) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot truncate: %s", mirror,
			      strerror(errno));
	if (rc == RFL_OK && lines->len)
		rc = rfl_file_append(fd, mirror, lines->data, lines->len, err);
	closed = rfl_file_unlock(fd, mirror, err);
	return rc ? rc : closed;
}

void rfl_ledger__mirror(const char *path, const struct rfl_csv *header, off_t before, bool whole)
{
	RFL_AUTOFREE char *mirror = rfl_ledger__beside(path, ".jsonl");
	RFL_AUTO(buf) lines = { .len = 0 };
	RFL_AUTO(buf) text = { .len = 0 };
	struct rfl_span last = { .at = "", .len = 0 };
	struct rfl_err why = RFL_ERR_INIT;
	const bool exists = rfl_file_exists(mirror);
	enum rfl_rc rc = RFL_OK;
	off_t end = 0;

	if ((!exists || last_line(mirror, &text, &last, &end)) &&
	    rows_after(path, header, before, last, &lines)) {
		rc = add_lines(mirror, end, &lines, &why);
	} else if (whole || (off_t)rfl_file_size(path) <= REBUILD_MAX) {
		rc = rebuild(path, mirror, &why);
	} else if (exists) { /* half a copy would be taken for a whole one */
		(void)unlink(mirror);
		rfl_log(RFL_LOG_WARN,
			"%s: removed, because it lacked rows; 'roofline matrix run' and 'matrix "
			"merge' write it again",
			mirror);
	}
	if (rc)
		rfl_log(RFL_LOG_WARN,
			"%s: the row is in the ledger, but not in its JSON mirror; the next run "
			"rebuilds the mirror",
			why.msg);
}
