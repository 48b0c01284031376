/*
 * upgrade.c - a ledger of an older version becomes one of ours: the same rows under our
 * columns. What was there is kept under another name.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "ledger/file/steps.h"

/* Where each column of the new file comes from: a column of the old one, or -1. */
struct plan {
	size_t n;
	const char **names;  /* borrowed from the table and from the old file */
	const char **fields; /* room for a row */
	int *from;
	int schema; /* column of the old file with the version, or -1 */
};

static void plan_fini(struct plan *p)
{
	free(p->names);
	free(p->fields);
	free(p->from);
}

static void plan_add(struct plan *p, const char *name, int from)
{
	p->names[p->n] = name;
	p->from[p->n++] = from;
}

/* Our columns in our order, then the others in theirs. */
static enum rfl_rc plan_init(struct plan *p, const struct rfl_csv *old, struct rfl_err *err)
{
	size_t ours = rfl_ledger_column_count(), most = ours + rfl_csv_columns(old);

	*p = (struct plan){ .schema = rfl_csv_find(old, "schema_version") };
	p->names = rfl_alloc_array(most, sizeof(*p->names));
	p->fields = rfl_alloc_array(most, sizeof(*p->fields));
	p->from = rfl_alloc_array(most, sizeof(*p->from));
	if (!p->names || !p->fields || !p->from)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", rfl_csv_path(old));
	for (size_t i = 0; i < ours; i++)
		plan_add(p, rfl_ledger_column_name(i),
			 rfl_csv_find(old, rfl_ledger_column_name(i)));
	for (size_t i = 0; i < rfl_csv_columns(old); i++) {
		if (rfl_ledger_column_find(rfl_csv_column(old, i)) == RFL_LEDGER_NCOLUMNS)
			plan_add(p, rfl_csv_column(old, i), (int)i);
	}
	return RFL_OK;
}

/* Every row under the new columns; *version is the newest that a row has. */
static enum rfl_rc convert(struct rfl_csv *old, const struct plan *p, struct rfl_buf *out,
			   int64_t *version, struct rfl_err *err)
{
	bool more;
	enum rfl_rc rc;

	*version = 0;
	rfl_csv_write_row(out, p->names, p->n);
	while ((rc = rfl_csv_next(old, &more, err)) == RFL_OK && more) {
		int64_t v;

		if (rfl_csv_int(old, p->schema, 0, &v, NULL) == RFL_OK && v > *version)
			*version = v;
		for (size_t i = 0; i < p->n; i++)
			p->fields[i] = rfl_csv_text(old, p->from[i]);
		rfl_csv_write_row(out, p->fields, p->n);
	}
	return rc ? rc : rfl_buf_check(out, rfl_csv_path(old), err);
}

static bool same_file(const char *a, const char *b)
{
	struct stat s, t;

	return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_ino == t.st_ino && s.st_dev == t.st_dev;
}

/* A file system without links gets a copy. */
static enum rfl_rc copy_file(const char *from, const char *to, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
	rc = rfl_file_read(from, &text, err);
	if (rc == RFL_OK)
		rc = rfl_file_create(to, text.data, text.len, err);
	rfl_buf_fini(&text);
	return rc;
}

/* Give a file a second name. RFL_EIO with native EEXIST when another file has it. */
static enum rfl_rc add_name(const char *path, const char *name, struct rfl_err *err)
{
	if (link(path, name) == 0 || (errno == EEXIST && same_file(path, name)))
		return RFL_OK; /* the latter: an upgrade was cut short here */
	if (errno == EEXIST)
		return rfl_fail(err, RFL_EIO, EEXIST, "%s: %s", name, strerror(EEXIST));
	return copy_file(path, name, err);
}

/* Keep the old file as metrics.v2.csv, or metrics.v2_2.csv, ... ; *kept is malloc'ed. */
static enum rfl_rc keep(const char *path, int64_t version, char **kept, struct rfl_err *err)
{
	char suffix[64];

	for (unsigned n = 1;; n++) {
		struct rfl_err why = RFL_ERR_INIT;

		if (n == 1)
			snprintf(suffix, sizeof(suffix), ".v%" PRId64 ".csv", version);
		else
			snprintf(suffix, sizeof(suffix), ".v%" PRId64 "_%u.csv", version, n);
		*kept = rfl_ledger__beside(path, suffix);
		if (!*kept)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		if (add_name(path, *kept, &why) == RFL_OK)
			return RFL_OK;
		free(*kept);
		*kept = NULL;
		if (why.native != EEXIST)
			return rfl_fail(err, why.rc, why.native, "%s", why.msg);
	}
}

enum rfl_rc rfl_ledger__upgrade(const char *path, struct rfl_err *err)
{
	struct rfl_csv *old = NULL;
	struct plan plan = { 0 };
	struct rfl_buf text;
	char *kept = NULL;
	int64_t version;
	enum rfl_rc rc;

	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
	rc = rfl_csv_open(path, &old, err);
	if (rc == RFL_OK)
		rc = plan_init(&plan, old, err);
	if (rc == RFL_OK)
		rc = convert(old, &plan, &text, &version, err);
	if (rc == RFL_OK)
		rc = keep(path, version, &kept, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	if (rc)
		goto done;
	rfl_ledger__drop_mirror(path);
	rfl_log(RFL_LOG_WARN,
		"%s: had the columns of version %" PRId64
		", has those of version %d now; the old file is kept as %s",
		path, version, RFL_LEDGER_SCHEMA, kept);
done:
	free(kept);
	plan_fini(&plan);
	rfl_buf_fini(&text);
	rfl_csv_close(old);
	return rc;
}
