/*
 * append.c - rows into metrics.csv: under its lock the file is mended and brought up to our
 * columns where it has to be, and the rows are added in one write.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "ledger/file/steps.h"

#define TAIL_MAX 65536 /* a last row longer than this costs a walk over the whole file */

/* What an append knows of the file that it has locked. */
struct target {
	const char *path;
	int fd;
	off_t size;
	struct rfl_csv *csv; /* its header; NULL while there is none */
	struct rfl_buf last; /* its last row as JSON; empty without one */
};

char *rfl_ledger__beside(const char *path, const char *suffix)
{
	size_t len = strlen(path), size;
	char *name;

	if (len > 4 && strcmp(path + len - 4, ".csv") == 0)
		len -= 4;
	size = len + strlen(suffix) + 1;
	name = malloc(size);
	if (name) {
		memcpy(name, path, len);
		memcpy(name + len, suffix, strlen(suffix) + 1);
	}
	return name;
}

/* ---- whose file ---- */

/* Any file with these is one of ours, of whatever version; readers go by names. */
static enum rfl_rc check_ours(const struct rfl_csv *csv, struct rfl_err *err)
{
	static const char *const must[] = { "schema_version", "run_id", "label", "status",
					    "version" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(must); i++) {
		if (rfl_csv_find(csv, must[i]) < 0)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:1: not a ledger of this program (it has no column "
					"'%s'), so no row is added to it: give another --log-dir; "
					"'roofline summary --map' reads such a file",
					rfl_csv_path(csv), must[i]);
	}
	return RFL_OK;
}

static bool lacks_columns(const struct rfl_csv *csv)
{
	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++)
		if (rfl_csv_find(csv, rfl_ledger_fields[i].name) < 0)
			return true;
	return false;
}

enum rfl_rc rfl_ledger_check(const char *path, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc;

	if (rfl_file_size(path) == 0) /* also of a process about to write the first row */
		return RFL_OK;
	if (rfl_ledger__is_cut_header(path)) /* the append begins anew */
		return RFL_OK;
	rc = rfl_csv_open(path, &csv, err);
	if (rc == RFL_OK)
		rc = check_ours(csv, err);
	rfl_csv_close(csv);
	return rc;
}

/* ---- what is there ---- */

/* Nothing is lost with a header that was cut. */
static enum rfl_rc drop_cut_header(struct target *t, struct rfl_err *err)
{
	if (!rfl_ledger__is_cut_header(t->path))
		return RFL_OK;
	if (ftruncate(t->fd, 0) != 0)
		return rfl_fail(err, RFL_EIO, errno, "%s: cannot cut an incomplete header off: %s",
				t->path, strerror(errno));
	t->size = 0;
	return RFL_OK;
}

/* The last line of the file with its newline, when it is within reach. */
static bool last_line(const struct target *t, struct rfl_buf *out)
{
	char block[TAIL_MAX];
	size_t len = t->size < TAIL_MAX ? (size_t)t->size : TAIL_MAX, at;

	if (pread(t->fd, block, len, t->size - (off_t)len) != (ssize_t)len)
		return false;
	if (len == 0 || block[len - 1] != '\n' || memchr(block, '\0', len))
		return false;
	for (at = len - 1; at > 0 && block[at - 1] != '\n'; at--)
		;
	if (at == 0 && (off_t)len < t->size)
		return false;
	rfl_buf_append(out, block + at, len - at);
	return true;
}

void rfl_ledger__put_header_of(const struct rfl_csv *csv, struct rfl_buf *out)
{
	for (size_t i = 0; i < rfl_csv_columns(csv); i++) {
		rfl_csv_write_field(out, rfl_csv_column(csv, i));
		rfl_buf_putc(out, i + 1 < rfl_csv_columns(csv) ? ',' : '\n');
	}
}

/* Whether the file ends with a whole row: its last line, read under the header, has every field.
 * That row, as JSON, goes into t->last. */
static bool ends_whole(struct target *t)
{
	struct rfl_buf text;
	struct rfl_csv *csv = NULL;
	bool more = false, whole = false;
	size_t header;

	rfl_buf_init(&text, 0);
	rfl_ledger__put_header_of(t->csv, &text);
	header = text.len;
	if (!last_line(t, &text) || text.failed)
		goto done;
	/* of a file without rows the header itself is the last line */
	if (t->size == (off_t)(text.len - header)) {
		whole = true;
		goto done;
	}
	if (rfl_csv_open_text(text.data, text.len, t->path, &csv, NULL) != RFL_OK ||
	    rfl_csv_next(csv, &more, NULL) != RFL_OK || !more)
		goto done;
	whole = rfl_csv_fields(csv) == rfl_csv_columns(csv);
	if (whole)
		rfl_ledger__json_row(csv, &t->last);
done:
	rfl_csv_close(csv);
	rfl_buf_fini(&text);
	return whole;
}

/* ---- adding ---- */

enum rfl_rc rfl_ledger_csv(const struct rfl_ledger_row *row, struct rfl_buf *out,
			   struct rfl_err *err)
{
	rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, out);
	rfl_fields_write(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, row, out);
	return rfl_buf_check(out, "ledger", err);
}

/* The rows in the order of the file's own columns; columns that are not ours stay empty. */
static enum rfl_rc put_rows(const struct rfl_csv *csv, const struct rfl_ledger_row *rows, size_t n,
			    struct rfl_buf *out, struct rfl_err *err)
{
	const size_t ncolumns = rfl_csv_columns(csv);
	char number[RFL_NUM_MAX];

	for (size_t r = 0; r < n; r++)
		for (size_t i = 0; i < ncolumns; i++) {
			const size_t at = rfl_ledger_column_find(rfl_csv_column(csv, i));

			if (at < RFL_LEDGER_NCOLUMNS)
				rfl_csv_write_field(out, rfl_field_write(&rfl_ledger_fields[at],
									 &rows[r], number));
			rfl_buf_putc(out, i + 1 < ncolumns ? ',' : '\n');
		}
	return rfl_buf_check(out, rfl_csv_path(csv), err);
}

/* What was added, as the mirror has it. */
static void mirror(struct target *t, const struct rfl_buf *rows)
{
	struct rfl_buf text, json;
	struct rfl_csv *csv = NULL;
	bool more = true;

	rfl_buf_init(&text, 0);
	rfl_buf_init(&json, 0);
	rfl_ledger__put_header_of(t->csv, &text);
	rfl_buf_append(&text, rows->data, rows->len);
	if (!text.failed && rfl_csv_open_text(text.data, text.len, t->path, &csv, NULL) == RFL_OK) {
		while (rfl_csv_next(csv, &more, NULL) == RFL_OK && more)
			rfl_ledger__json_row(csv, &json);
	} else {
		json.failed = true;
	}
	rfl_ledger__mirror(t->path, &t->last, &json);
	rfl_csv_close(csv);
	rfl_buf_fini(&json);
	rfl_buf_fini(&text);
}

/* The header of a file that is yet to be written, or of the one that is there. */
static enum rfl_rc open_header(struct target *t, struct rfl_buf *header, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (t->size > 0)
		return rfl_csv_open(t->path, &t->csv, err);
	rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, header);
	rc = rfl_buf_check(header, "ledger", err);
	return rc ? rc : rfl_csv_open_text(header->data, header->len, t->path, &t->csv, err);
}

static enum rfl_rc add_rows(struct target *t, const struct rfl_buf *header,
			    const struct rfl_ledger_row *rows, size_t n, bool regular,
			    struct rfl_err *err)
{
	struct rfl_buf text, all;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rfl_buf_init(&all, 0);
	rc = put_rows(t->csv, rows, n, &text, err);
	rfl_buf_append(&all, header->data, header->len);
	rfl_buf_append(&all, text.data, text.len);
	if (rc == RFL_OK)
		rc = rfl_buf_check(&all, t->path, err);
	if (rc == RFL_OK && all.len > 0)
		rc = rfl_file_append(t->fd, t->path, all.data, all.len, err);
	if (rc == RFL_OK && regular)
		mirror(t, &text);
	rfl_buf_fini(&text);
	rfl_buf_fini(&all);
	return rc;
}

/* One step towards the row. @param again  the file is another now: lock it anew */
static enum rfl_rc append_locked(struct target *t, const struct rfl_ledger_row *rows, size_t n,
				 bool *again, struct rfl_err *err)
{
	struct rfl_buf header;
	struct stat st;
	bool regular, older;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&header, 0);
	*again = false;
	regular = fstat(t->fd, &st) == 0 && S_ISREG(st.st_mode);
	t->size = regular ? st.st_size : 0;
	if (t->size > 0)
		rc = drop_cut_header(t, err);
	if (rc == RFL_OK)
		rc = open_header(t, &header, err);
	if (rc == RFL_OK)
		rc = check_ours(t->csv, err);
	older = rc == RFL_OK && lacks_columns(t->csv);
	if (rc == RFL_OK && t->size > 0 && (older || !ends_whole(t)))
		rc = rfl_ledger__mend(t->fd, t->path, again, err);
	if (rc == RFL_OK && !*again && older) {
		rc = rfl_ledger__upgrade(t->path, err);
		*again = true;
	}
	if (rc == RFL_OK && !*again)
		rc = add_rows(t, &header, rows, n, regular, err);
	rfl_buf_fini(&header);
	return rc;
}

enum rfl_rc rfl_ledger_append_rows(const char *path, const struct rfl_ledger_row *rows, size_t n,
				   struct rfl_err *err)
{
	bool again = true;
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err);

	while (rc == RFL_OK && again) {
		struct target t = { .path = path, .fd = -1 };
		enum rfl_rc closed;

		rfl_buf_init(&t.last, 0);
		rc = rfl_file_lock(path, &t.fd, err);
		if (rc == RFL_OK)
			rc = append_locked(&t, rows, n, &again, err);
		rfl_csv_close(t.csv);
		rfl_buf_fini(&t.last);
		closed = rfl_file_unlock(t.fd, path, err);
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
