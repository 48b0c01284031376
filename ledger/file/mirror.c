/*
 * mirror.c - metrics.jsonl: the ledger's rows as one JSON object a line, for programs that
 * would rather not read CSV. The CSV is the truth; the mirror is made from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ledger/file/steps.h"

#define CHUNK ((size_t)1 << 20)

/* The type of a column; those that are not ours are texts. Ours are mostly where we would put them.
 */
static enum rfl_field_kind kind_of(const char *name, size_t i)
{
	if (i >= RFL_LEDGER_NCOLUMNS || strcmp(rfl_ledger_fields[i].name, name) != 0)
		i = rfl_ledger_column_find(name);
	return i < RFL_LEDGER_NCOLUMNS ? rfl_ledger_fields[i].kind : RFL_FIELD_TEXT;
}

/* A field as its column's type; one that should be a number and is not stays text. */
static void put_value(struct rfl_csv *csv, size_t i, struct rfl_buf *out)
{
	const enum rfl_field_kind kind = kind_of(rfl_csv_column(csv, i), i);
	const char *text = rfl_csv_text(csv, (int)i);
	int64_t whole;
	double real;

	if (text[0] == '\0')
		rfl_buf_puts(out, "null");
	else if (kind == RFL_FIELD_INT && rfl_csv_int(csv, (int)i, 0, &whole, NULL) == RFL_OK)
		rfl_buf_printf(out, "%" PRId64, whole);
	else if (kind == RFL_FIELD_REAL && rfl_csv_double(csv, (int)i, &real, NULL) == RFL_OK)
		rfl_json_write_real(out, real);
	else
		rfl_json_write_string(out, text, strlen(text));
}

void rfl_ledger__json_row(struct rfl_csv *csv, struct rfl_buf *out)
{
	const char *sep = "{";

	for (size_t i = 0; i < rfl_csv_columns(csv); i++) {
		const char *name = rfl_csv_column(csv, i);

		if (name[0] == '\0')
			continue;
		rfl_buf_puts(out, sep);
		rfl_json_write_string(out, name, strlen(name));
		rfl_buf_puts(out, ":");
		put_value(csv, i, out);
		sep = ",";
	}
	rfl_buf_puts(out, "}\n");
}

/* ---- made anew ---- */

static bool flush(FILE *f, struct rfl_buf *out)
{
	bool good = !out->failed && fwrite(out->data, 1, out->len, f) == out->len;

	rfl_buf_reset(out);
	return good;
}

static enum rfl_rc write_rows(struct rfl_csv *csv, FILE *f, const char *name, struct rfl_err *err)
{
	struct rfl_buf out;
	bool more = true, good = true;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&out, 0);
	while (good && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		rfl_ledger__json_row(csv, &out);
		if (out.len > CHUNK || out.failed)
			good = flush(f, &out);
	}
	if (good && rc == RFL_OK)
		good = out.len == 0 || flush(f, &out);
	if (good && rc == RFL_OK)
		good = fflush(f) == 0 && fsync(fileno(f)) == 0;
	if (!good)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot write: %s", name, strerror(errno));
	rfl_buf_fini(&out);
	return rc;
}

/* All rows that a reader of the ledger gets. */
static enum rfl_rc write_mirror(const char *path, FILE *f, const char *name, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	struct rfl_buf text;
	enum rfl_rc rc = rfl_csv_open(path, &csv, &why);

	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
	if (rc == RFL_OK)
		rc = write_rows(csv, f, name, &why);
	if (rc == RFL_EFORMAT) { /* a row in the middle of it is torn */
		rfl_csv_close(csv);
		csv = NULL;
		rc = rfl_ledger__open_whole(path, &why, &text, NULL, &csv, err);
		rewind(f);
		if (rc == RFL_OK && ftruncate(fileno(f), 0) != 0)
			rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot write: %s", name,
				      strerror(errno));
		if (rc == RFL_OK)
			rc = write_rows(csv, f, name, err);
	} else if (rc != RFL_OK) {
		rc = rfl_fail(err, rc, why.native, "%s", why.msg);
	}
	rfl_csv_close(csv);
	rfl_buf_fini(&text);
	return rc;
}

/* Into a neighbour, which then takes its name: a reader sees the old mirror or the new one. */
static enum rfl_rc make_anew(const char *path, const char *mirror, struct rfl_err *err)
{
	char *fresh = NULL;
	FILE *f = NULL;
	enum rfl_rc rc = rfl_file_neighbour(mirror, &fresh, &f, err);

	if (rc)
		return rc;
	rc = write_mirror(path, f, fresh, err);
	if (fclose(f) != 0 && rc == RFL_OK)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot write: %s", fresh, strerror(errno));
	if (rc == RFL_OK && rename(fresh, mirror) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot replace: %s", mirror,
			      strerror(errno));
	if (rc)
		unlink(fresh);
	free(fresh);
	return rc;
}

/* ---- added to ---- */

/* Whether the mirror's last line is this one; no line at all stands for an empty mirror. */
static bool ends_with(const char *mirror, const struct rfl_buf *last)
{
	struct stat st;
	char *have = NULL;
	bool same = false;
	int fd = open(mirror, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us */
	size_t len = last->len + 1; /* with the newline of the line before */

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
	if (!have || pread(fd, have, len, st.st_size - (off_t)len) != (ssize_t)len)
		goto done;
	same = memcmp(have + (len - last->len), last->data, last->len) == 0 &&
	       (len == last->len || have[0] == '\n');
done:
	free(have);
	close(fd);
	return same;
}

static enum rfl_rc add(const char *mirror, const struct rfl_buf *added, struct rfl_err *err)
{
	enum rfl_rc rc, closed;
	int fd = -1;

	rc = rfl_file_lock(mirror, &fd, err);
	if (rc == RFL_OK)
		rc = rfl_file_append(fd, mirror, added->data, added->len, err);
	closed = rfl_file_unlock(fd, mirror, err);
	return rc ? rc : closed;
}

void rfl_ledger__mirror(const char *path, const struct rfl_buf *last, const struct rfl_buf *added)
{
	char *mirror = rfl_ledger__beside(path, ".jsonl");
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!mirror)
		rc = rfl_fail(&why, RFL_ENOMEM, 0, "%s: out of memory", path);
	else if (!last->failed && !added->failed &&
		 (ends_with(mirror, last) || (last->len == 0 && !rfl_file_exists(mirror))))
		rc = add(mirror, added, &why);
	else
		rc = make_anew(path, mirror, &why);
	if (rc)
		rfl_log(RFL_LOG_WARN,
			"%s: the row is in the ledger, but not in its mirror, which is made anew "
			"when that is mended",
			why.msg);
	free(mirror);
}

void rfl_ledger__drop_mirror(const char *path)
{
	char *mirror = rfl_ledger__beside(path, ".jsonl");

	if (mirror)
		unlink(mirror);
	free(mirror);
}
