/*
 * append.c - appends rows to metrics.csv. Under a lock, the file is repaired and upgraded if
 * necessary, and the rows are added in one write. Then the mirror metrics.jsonl, a copy for
 * programs that prefer JSON, is updated.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ledger/file/steps.h"

#define TAIL_MAX 65536 /* if the last row is longer, the whole file is read */
#define CHUNK    ((size_t)1 << 20)

char *rfl_ledger__beside(const char *path, const char *suffix)
{
	size_t len = strlen(path), suffix_size = strlen(suffix) + 1;
	char *name;

	if (len > 4 && strcmp(path + len - 4, ".csv") == 0)
		len -= 4;
	name = rfl_alloc_array(len + suffix_size, 1);
	memcpy(name, path, len);
	memcpy(name + len, suffix, suffix_size);
	return name;
}

void rfl_ledger__drop(const char *path, const char *suffix)
{
	char *name = rfl_ledger__beside(path, suffix);

	(void)unlink(name);
	free(name);
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
		if (text[0] == '\0')
			rfl_buf_puts(out, "null");
		else if (kind == RFL_FIELD_INT &&
			 rfl_csv_int(csv, (int)i, 0, &whole, NULL) == RFL_OK)
			rfl_buf_printf(out, "%" PRId64, whole);
		else if (kind == RFL_FIELD_REAL &&
			 rfl_csv_double(csv, (int)i, &real, NULL) == RFL_OK)
			rfl_json_write_real(out, real);
		else
			rfl_json_write_string(out, text, strlen(text));
		sep = ",";
	}
	rfl_buf_puts(out, "}\n");
}

/* Write rows as JSON, with the column names of an open table. Return false if there are no rows or
 * a row lacks fields. */
static bool put_rows(const struct rfl_csv *header, const char *rows, size_t len,
		     struct rfl_buf *out)
{
	struct rfl_csv *csv = NULL;
	struct rfl_buf text;
	bool more = true, whole = false;

	rfl_buf_init(&text, 0);
	rfl_csv_write_row(&text, (const char *const *)header->columns, header->ncolumns);
	rfl_buf_append(&text, rows, len);
	if (!text.failed &&
	    rfl_csv_open_text(text.data, text.len, header->path, &csv, NULL) == RFL_OK) {
		while (rfl_csv_next(csv, &more, NULL) == RFL_OK && more) {
			whole = csv->nfields == csv->ncolumns;
			if (!whole)
				break;
			put_row(csv, out);
		}
	}
	rfl_csv_close(csv);
	rfl_buf_fini(&text);
	return whole;
}

static enum rfl_rc write_rows(struct rfl_csv *csv, FILE *f, const char *name, struct rfl_err *err)
{
	struct rfl_buf out;
	bool more = true, good = true;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&out, 0);
	while (good && more && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK) {
		if (more)
			put_row(csv, &out);
		if (!more || out.len > CHUNK || out.failed) {
			good = !out.failed && fwrite(rfl_buf_str(&out), 1, out.len, f) == out.len;
			rfl_buf_reset(&out);
		}
	}
	if (good && rc == RFL_OK)
		good = fflush(f) == 0 && fsync(fileno(f)) == 0;
	if (!good)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot write: %s", name, strerror(errno));
	rfl_buf_fini(&out);
	return rc;
}

/* Write all readable rows to a temporary file and rename it, so that readers see either the old
 * mirror or the new one. */
static enum rfl_rc rebuild(const char *path, const char *mirror, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	struct rfl_buf text;
	char *fresh = NULL;
	FILE *f = NULL;
	enum rfl_rc rc = rfl_file_neighbour(mirror, &fresh, &f, err);

	if (rc)
		return rc;
	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
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
	if (fclose(f) != 0 && rc == RFL_OK)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot write: %s", fresh, strerror(errno));
	if (rc == RFL_OK && rename(fresh, mirror) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot replace: %s", mirror,
			      strerror(errno));
	if (rc)
		unlink(fresh);
	free(fresh);
	rfl_csv_close(csv);
	rfl_buf_fini(&text);
	return rc;
}

/* Return true if the mirror ends with this line, or if both are empty. */
static bool ends_with(const char *mirror, const struct rfl_buf *last)
{
	int fd = open(mirror, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a named pipe */
	size_t len = last->len + 1; /* including the newline before it */
	char *have = NULL;
	bool same = false;
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size < last->len)
		goto done;
	if (last->len == 0) {
		same = st.st_size == 0;
		goto done;
	}
	if ((size_t)st.st_size < len)
		len = last->len;
	have = malloc(len);
	if (have && pread(fd, have, len, st.st_size - (off_t)len) == (ssize_t)len)
		same = memcmp(have + (len - last->len), last->data, last->len) == 0 &&
		       (len == last->len || have[0] == '\n');
done:
	free(have);
	close(fd);
	return same;
}

/* Append to the mirror, or rebuild it if it is missing or does not end with `last`. A failure only
 * causes a warning because the next append repairs the mirror. */
static void add_to_mirror(const char *path, const struct rfl_buf *last, const struct rfl_buf *added)
{
	char *mirror = rfl_ledger__beside(path, ".jsonl");
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc, closed;
	int fd = -1;

	if (!mirror) {
		rc = rfl_no_memory(&why, path);
	} else if (!last->failed && !added->failed &&
		   (ends_with(mirror, last) || (last->len == 0 && !rfl_file_exists(mirror)))) {
		rc = rfl_file_lock(mirror, &fd, &why);
		if (rc == RFL_OK)
			rc = rfl_file_append(fd, mirror, added->data, added->len, &why);
		closed = rfl_file_unlock(fd, mirror, &why);
		rc = rc ? rc : closed;
	} else {
		rc = rebuild(path, mirror, &why);
	}
	if (rc)
		rfl_log(RFL_LOG_WARN,
			"%s: the row is in the ledger, but not in its JSON mirror; the next run "
			"rebuilds the mirror",
			why.msg);
	free(mirror);
}

/* Fail unless the file has the columns that a ledger of any version has. */
static enum rfl_rc check_ours(const struct rfl_csv *csv, struct rfl_err *err)
{
	static const char *const must[] = { "schema_version", "run_id", "label", "status",
					    "version" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(must); i++) {
		if (rfl_csv_find(csv, must[i]) < 0)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:1: not a ledger of this program (no column '%s'); use "
					"another --log-dir to record runs, or read this file with "
					"'roofline summary --map'",
					csv->path, must[i]);
	}
	return RFL_OK;
}

enum rfl_rc rfl_ledger_check(const char *path, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc;

	/* the file may be empty because another process is about to write the first row */
	if (rfl_file_size(path) == 0 || rfl_ledger__is_cut_header(path))
		return RFL_OK;
	rc = rfl_csv_open(path, &csv, err);
	if (rc == RFL_OK)
		rc = check_ours(csv, err);
	rfl_csv_close(csv);
	return rc;
}

enum rfl_rc rfl_ledger_csv(const struct rfl_ledger_row *row, struct rfl_buf *out,
			   struct rfl_err *err)
{
	rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, out);
	rfl_fields_write(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, row, out);
	return rfl_buf_check(out, "ledger", err);
}

/* Return true if the last line of the file is complete, with every field. Write that row to `last`
 * as JSON. */
static bool ends_whole(const struct rfl_csv *header, int fd, off_t size, struct rfl_buf *last)
{
	char block[TAIL_MAX];
	size_t len = size < TAIL_MAX ? (size_t)size : TAIL_MAX, at;

	if (pread(fd, block, len, size - (off_t)len) != (ssize_t)len)
		return false;
	if (len == 0 || block[len - 1] != '\n' || memchr(block, '\0', len))
		return false;
	for (at = len - 1; at > 0 && block[at - 1] != '\n'; at--)
		;
	if (at == 0) /* no rows: the header is the last line */
		return (off_t)len == size;
	return put_rows(header, block + at, len - at, last);
}

/* Add rows to the file in its column order, leaving foreign columns empty, and to its mirror.
 * @param header  the header line of a new file, else empty; the rows are appended to it */
static enum rfl_rc add_rows(const char *path, int fd, const struct rfl_csv *csv,
			    const struct rfl_ledger_row *rows, size_t n, struct rfl_buf *header,
			    const struct rfl_buf *last, bool mirrored, struct rfl_err *err)
{
	const size_t ncolumns = csv->ncolumns;
	const size_t first = header->len;
	char number[RFL_NUM_MAX];
	struct rfl_buf json;
	enum rfl_rc rc;

	for (size_t r = 0; r < n; r++)
		for (size_t i = 0; i < ncolumns; i++) {
			const size_t at = rfl_ledger_column_find(csv->columns[i]);

			if (at < RFL_LEDGER_NCOLUMNS)
				rfl_csv_write_field(header, rfl_field_write(&rfl_ledger_fields[at],
									    &rows[r], number));
			rfl_buf_putc(header, i + 1 < ncolumns ? ',' : '\n');
		}
	rc = rfl_buf_check(header, path, err);
	if (rc == RFL_OK && header->len > 0)
		rc = rfl_file_append(fd, path, header->data, header->len, err);
	if (rc || !mirrored)
		return rc;
	rfl_buf_init(&json, 0);
	json.failed = n > 0 && !put_rows(csv, header->data + first, header->len - first, &json);
	add_to_mirror(path, last, &json);
	rfl_buf_fini(&json);
	return RFL_OK;
}

/* Repair the file, upgrade it or append to it.
 * @param again  set if the file was replaced and must be locked again */
static enum rfl_rc append_locked(const char *path, int fd, const struct rfl_ledger_row *rows,
				 size_t n, bool *again, struct rfl_err *err)
{
	struct rfl_buf header, text, last;
	struct rfl_csv *csv = NULL;
	bool regular, older = false;
	off_t size;
	struct stat st;
	enum rfl_rc rc;

	rfl_buf_init(&header, 0);
	rfl_buf_init(&text, 0);
	rfl_buf_init(&last, 0);
	*again = false;
	regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	size = regular ? st.st_size : 0;
	if (size > 0 && rfl_ledger__is_cut_header(path)) { /* there are no rows to lose */
		size = 0;
		if (ftruncate(fd, 0) != 0) {
			rc = rfl_fail(err, RFL_EIO, errno,
				      "%s: cannot remove the incomplete header: %s", path,
				      strerror(errno));
			goto done;
		}
	}
	if (size > 0) {
		rc = rfl_csv_open(path, &csv, err);
	} else {
		rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, &header);
		rfl_buf_append(&text, header.data, header.len);
		rc = rfl_buf_check(&header, "ledger", err);
		if (rc == RFL_OK)
			rc = rfl_csv_open_text(header.data, header.len, path, &csv, err);
	}
	if (rc || (rc = check_ours(csv, err)))
		goto done;

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS && !older; i++)
		older = rfl_csv_find(csv, rfl_ledger_fields[i].name) < 0;
	if (size > 0 && (older || !ends_whole(csv, fd, size, &last))) {
		rc = rfl_ledger__mend(fd, path, again, err);
		if (rc || *again)
			goto done;
	}
	if (older) {
		*again = true;
		rc = rfl_ledger__upgrade(path, err);
	} else {
		rc = add_rows(path, fd, csv, rows, n, &text, &last, regular, err);
	}
done:
	rfl_csv_close(csv);
	rfl_buf_fini(&header);
	rfl_buf_fini(&text);
	rfl_buf_fini(&last);
	return rc;
}

enum rfl_rc rfl_ledger_append_rows(const char *path, const struct rfl_ledger_row *rows, size_t n,
				   struct rfl_err *err)
{
	bool again = true;
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err);

	while (rc == RFL_OK && again) {
		enum rfl_rc closed;
		int fd = -1;

		rc = rfl_file_lock(path, &fd, err);
		if (rc == RFL_OK)
			rc = append_locked(path, fd, rows, n, &again, err);
		closed = rfl_file_unlock(fd, path, err);
		rc = rc ? rc : closed;
	}
	return rc;
}

enum rfl_rc rfl_ledger_append(const char *path, const struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	return rfl_ledger_append_rows(path, row, 1, err);
}

enum rfl_rc rfl_ledger_mend(const char *path, struct rfl_err *err)
{
	return rfl_file_size(path) > 0 ? rfl_ledger_append_rows(path, NULL, 0, err) : RFL_OK;
}
