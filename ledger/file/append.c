/*
 * append.c - appends rows to metrics.csv. Under a lock, the file is repaired and upgraded if
 * necessary, and the rows are added in one write. Then its mirror is updated.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "ledger/file/steps.h"

#define TAIL_MAX 65536 /* if the last row is longer, the whole file is read */

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
	RFL_AUTOFREE char *name = rfl_ledger__beside(path, suffix);

	(void)unlink(name);
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

/* The file may be empty because another process is about to write the first row. */
static enum rfl_rc check_file(const char *path, struct rfl_err *err)
{
	RFL_AUTOPTR(csv) csv = NULL;
	enum rfl_rc rc;

	if (rfl_file_size(path) == 0 || rfl_ledger__is_cut_header(path))
		return RFL_OK;
	rc = rfl_csv_open(path, &csv, err);
	if (rc == RFL_OK)
		rc = check_ours(csv, err);
	return rc;
}

enum rfl_rc rfl_ledger_check(const char *path, struct rfl_err *err)
{
	enum rfl_rc rc = check_file(path, err);

	return rc ? rc : rfl_ledger__check_torn(path, err);
}

bool rfl_ledger_is_foreign(const char *path)
{
	return check_file(path, NULL) == RFL_EFORMAT;
}

enum rfl_rc rfl_ledger_csv(const struct rfl_ledger_row *row, struct rfl_buf *out,
			   struct rfl_err *err)
{
	rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, out);
	rfl_fields_write(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, row, out);
	return rfl_buf_check(out, "ledger", err);
}

/* Return true if the last line of the file is complete, with every field. */
static bool ends_whole(const struct rfl_csv *header, int fd, off_t size)
{
	char block[TAIL_MAX];
	size_t len = size < TAIL_MAX ? (size_t)size : TAIL_MAX, at, end;

	if (pread(fd, block, len, size - (off_t)len) != (ssize_t)len)
		return false;
	if (len == 0 || block[len - 1] != '\n')
		return false;
	for (at = len - 1; at > 0 && block[at - 1] != '\n'; at--)
		;
	if (at == 0 && (off_t)len != size)
		return false;
	/* without rows, the header is the last line */
	return rfl_csv_record(block + at, len - at, &end) &&
	       rfl_csv_split(block + at, len - at, NULL, 0) == header->ncolumns;
}

/* Write rows with their fields in the order of the file; a field of a column that the rows do not
 * have is empty. */
static void arrange(const struct rfl_csv *file, const struct rfl_ledger__rows *rows,
		    struct rfl_buf *out)
{
	RFL_AUTOFREE struct rfl_span *fields = rfl_alloc_array(rows->ncolumns, sizeof(*fields));
	RFL_AUTOFREE size_t *from = rfl_alloc_array(file->ncolumns, sizeof(*from));

	for (size_t i = 0; i < file->ncolumns; i++)
		while (from[i] < rows->ncolumns &&
		       strcmp(file->columns[i], rows->columns[from[i]]) != 0)
			from[i]++;
	for (size_t at = 0, end; at < rows->text->len; at += end) {
		const char *record = rows->text->data + at;

		if (!rfl_csv_record(record, rows->text->len - at, &end))
			continue; /* rows that this program wrote are whole */
		(void)rfl_csv_split(record, end, fields, rows->ncolumns);
		for (size_t i = 0; i < file->ncolumns; i++) {
			if (from[i] < rows->ncolumns)
				rfl_buf_append(out, fields[from[i]].at, fields[from[i]].len);
			rfl_buf_putc(out, i + 1 < file->ncolumns ? ',' : '\n');
		}
	}
}

/* Whether the file lacks a column of this version or of the rows. */
static bool lacks_column(const struct rfl_csv *file, const struct rfl_ledger__rows *rows)
{
	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++)
		if (rfl_csv_find(file, rfl_ledger_fields[i].name) < 0)
			return true;
	for (size_t i = 0; i < rows->ncolumns; i++)
		if (rfl_csv_find(file, rows->columns[i]) < 0)
			return true;
	return false;
}

/* Repair the file, upgrade it or append to it.
 * @param again  set if the file was replaced and must be locked again */
static enum rfl_rc append_locked(const char *path, int fd, const struct rfl_ledger__rows *rows,
				 bool *again, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 }; /* header of a new file, then rows */
	RFL_AUTOPTR(csv) csv = NULL;
	bool regular, older;
	off_t size;
	struct stat st;
	enum rfl_rc rc;

	*again = false;
	regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	size = regular ? st.st_size : 0;
	if (size > 0 && rfl_ledger__is_cut_header(path)) { /* there are no rows to lose */
		size = 0;
		if (ftruncate(fd, 0) != 0)
			return rfl_fail(err, RFL_EIO, errno,
					"%s: cannot remove the incomplete header: %s", path,
					strerror(errno));
	}
	if (size > 0) {
		rc = rfl_csv_open(path, &csv, err);
	} else {
		rfl_ledger__put_header(rows->columns, rows->ncolumns, &text);
		rc = rfl_csv_open_text(text.data, text.len, path, &csv, err);
	}
	if (rc || (rc = check_ours(csv, err)))
		return rc;

	older = lacks_column(csv, rows);
	if (size > 0 && (older || !ends_whole(csv, fd, size))) {
		rc = rfl_ledger__mend(fd, path, again, err);
		if (rc || *again)
			return rc;
	}
	if (older) {
		*again = true;
		return rfl_ledger__upgrade(path, rows->columns, rows->ncolumns, err);
	}
	arrange(csv, rows, &text);
	rc = rfl_buf_check(&text, path, err);
	if (rc == RFL_OK && text.len > 0)
		rc = rfl_file_append(fd, path, text.data, text.len, err);
	if (rc == RFL_OK && regular)
		rfl_ledger__mirror(path, csv, size, rows->text->len == 0);
	return rc;
}

enum rfl_rc rfl_ledger__append(const char *path, const struct rfl_ledger__rows *rows,
			       struct rfl_err *err)
{
	bool again = true;
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err);

	while (rc == RFL_OK && again) {
		enum rfl_rc closed;
		int fd = -1;

		rc = rfl_file_lock(path, &fd, err);
		if (rc == RFL_OK)
			rc = append_locked(path, fd, rows, &again, err);
		closed = rfl_file_unlock(fd, path, err);
		rc = rc ? rc : closed;
	}
	return rc;
}

enum rfl_rc rfl_ledger_append_rows(const char *path, const struct rfl_ledger_row *rows, size_t n,
				   struct rfl_err *err)
{
	const char *columns[RFL_LEDGER_NCOLUMNS];
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++)
		columns[i] = rfl_ledger_fields[i].name;
	for (size_t i = 0; i < n; i++)
		rfl_fields_write(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, &rows[i], &text);
	rc = rfl_buf_check(&text, path, err);
	if (rc == RFL_OK)
		rc = rfl_ledger__append(path,
					&(struct rfl_ledger__rows){ .columns = columns,
								    .ncolumns = RFL_LEDGER_NCOLUMNS,
								    .text = &text },
					err);
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
