/*
 * merge.c - log folders into one: rows by their run_id; what belongs to a row comes before it.
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include "ledger/matrix/merge.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/file.h"
#include "ledger/ledger.h"

#define NAME_TRIES 10000

/* A set of texts, its own; sorted before it is asked. */
struct ids {
	char **items;
	size_t n, cap;
};

struct job {
	const char *to;
	struct rfl_merge *sum;
	/** run_id of every row that is there or comes. A row is written when all else of its run is
	 * there: what has none yet may be half of it. */
	struct ids runs;
	struct ids counted; /**< runs whose counters are there */
	bool knows_counted;
};

static enum rfl_rc no_memory(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
}

static enum rfl_rc unreadable(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EIO, errno, "%s: cannot read: %s; no rows were added", path,
			strerror(errno));
}

static enum rfl_rc is_there(const char *path, bool *ret, struct rfl_err *err)
{
	struct stat st;

	*ret = stat(path, &st) == 0;
	return *ret || errno == ENOENT ? RFL_OK : unreadable(path, err);
}

/* ---- a set of texts ---- */

static int compare_texts(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* @return false: out of memory */
static bool add_id(struct ids *set, const char *id)
{
	if (rfl_grow(&set->items, &set->cap, set->n + 1, SIZE_MAX, NULL) != RFL_OK)
		return false;
	set->items[set->n] = strdup(id);
	return set->items[set->n] && ++set->n;
}

static void sort_ids(struct ids *set)
{
	if (set->n)
		qsort(set->items, set->n, sizeof(*set->items), compare_texts);
}

static bool has_id(const struct ids *set, const char *id)
{
	return set->n && bsearch(&id, set->items, set->n, sizeof(*set->items), compare_texts);
}

static void ids_fini(struct ids *set)
{
	for (size_t i = 0; i < set->n; i++)
		free(set->items[i]);
	free(set->items);
	*set = (struct ids){ .items = NULL };
}

/* ---- the ledgers ---- */

/* Rows of several ledgers, which stay open while their rows are borrowed. */
struct rows {
	struct rfl_ledger **ledgers;
	size_t nledgers;
	struct rfl_ledger_row *rows; /* those that are new, in the order of time */
	size_t n;
};

static int compare_rows(const void *a, const void *b)
{
	const struct rfl_ledger_row *x = a, *y = b;
	int order = strcmp(x->timestamp_utc ? x->timestamp_utc : "",
			   y->timestamp_utc ? y->timestamp_utc : "");

	return order ? order : strcmp(x->run_id, y->run_id);
}

static enum rfl_rc add_runs(struct job *m, const struct rfl_ledger_row *rows, size_t n,
			    struct rfl_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].run_id && !add_id(&m->runs, rows[i].run_id))
			return no_memory(m->to, err);
	sort_ids(&m->runs);
	return RFL_OK;
}

static enum rfl_rc load_runs(struct job *m, const char *path, struct rfl_err *err)
{
	const bool wanted[RFL_LEDGER_NCOLUMNS] = { [RFL_LEDGER_AT_run_id] = true };
	struct rfl_ledger *l = NULL;
	enum rfl_rc rc;

	if (rfl_file_size(path) == 0)
		return RFL_OK;
	rc = rfl_ledger_load_columns(path, wanted, &l, err);
	if (rc == RFL_OK)
		rc = add_runs(m, l->rows, l->nrows, err);
	rfl_ledger_free(l);
	return rc;
}

/* Without an id a row would come again with every merge. */
static enum rfl_rc need_ids(const char *path, const struct rfl_ledger *l, struct rfl_err *err)
{
	for (size_t i = 0; i < l->nrows; i++)
		if (!l->rows[i].run_id || !l->rows[i].run_id[0])
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: row %zu has no run_id, which tells rows apart; write "
					"one that no other row has",
					path, i + 1);
	return RFL_OK;
}

static enum rfl_rc load_ledger(struct job *m, const char *path, struct rows *rows, size_t *total,
			       struct rfl_err *err)
{
	struct rfl_ledger *l = NULL;
	bool there;
	enum rfl_rc rc = is_there(path, &there, err);

	if (rc == RFL_OK && rfl_file_size(path) == 0) {
		m->sum->empty++;
		return RFL_OK;
	}
	if (rc == RFL_OK)
		rc = rfl_ledger_load(path, &l, err);
	if (rc)
		return rc;
	rows->ledgers[rows->nledgers++] = l;
	*total += l->nrows;
	m->sum->torn += l->torn;
	m->sum->folders++;
	return need_ids(path, l, err);
}

static enum rfl_rc load_all(struct job *m, const char *const *folders, size_t n, struct rows *rows,
			    struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	size_t total = 0;

	rows->ledgers = rfl_alloc_array(n, sizeof(struct rfl_ledger *));
	if (!rows->ledgers)
		return no_memory(m->to, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		char *path = rfl_path_join(folders[i], "metrics.csv");

		rc = path ? load_ledger(m, path, rows, &total, err) : no_memory(m->to, err);
		free(path);
	}
	if (rc == RFL_OK && total) {
		rows->rows = rfl_alloc_array(total, sizeof(*rows->rows));
		if (!rows->rows)
			rc = no_memory(m->to, err);
	}
	return rc;
}

/* What is new, in the order of time; a row that two folders have is one. */
static void choose_rows(struct job *m, struct rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->nledgers; i++)
		for (size_t k = 0; k < rows->ledgers[i]->nrows; k++) {
			const struct rfl_ledger_row *row = &rows->ledgers[i]->rows[k];

			if (has_id(&m->runs, row->run_id))
				m->sum->rows_there++;
			else
				rows->rows[rows->n++] = *row;
		}
	if (rows->n)
		qsort(rows->rows, rows->n, sizeof(*rows->rows), compare_rows);
	for (size_t i = 0; i < rows->n; i++) {
		const bool again =
			kept && strcmp(rows->rows[kept - 1].run_id, rows->rows[i].run_id) == 0;

		m->sum->rows_there += again;
		if (!again)
			rows->rows[kept++] = rows->rows[i];
	}
	rows->n = kept;
}

static void rows_fini(struct rows *rows)
{
	for (size_t i = 0; i < rows->nledgers; i++)
		rfl_ledger_free(rows->ledgers[i]);
	free(rows->ledgers);
	free(rows->rows);
}

/* ---- files ---- */

enum have { HAVE_NONE, HAVE_SAME, HAVE_BEGIN, HAVE_OTHER };

/* What a file that may be there has of a content. The beginning: it was copied while it was being
 * written. */
static enum have look(const char *path, const struct rfl_buf *want)
{
	struct rfl_buf have;
	enum have is = HAVE_OTHER;

	if (!rfl_file_exists(path))
		return HAVE_NONE;
	if (rfl_file_size(path) > want->len)
		return HAVE_OTHER;
	rfl_buf_init(&have, 0);
	if (rfl_file_read(path, &have, NULL) == RFL_OK && have.len <= want->len &&
	    (have.len == 0 || memcmp(have.data, want->data, have.len) == 0))
		is = have.len == want->len ? HAVE_SAME : HAVE_BEGIN;
	rfl_buf_fini(&have);
	return is;
}

/* The n-th name that a file may have: x.txt, x_2.txt and so on. */
static enum rfl_rc name_file(char *path, size_t size, const char *dir, const char *name, unsigned n,
			     struct rfl_err *err)
{
	const char *dot = strrchr(name, '.');
	const int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
	int len;

	if (n == 1)
		len = snprintf(path, size, "%s/%s", dir, name);
	else
		len = snprintf(path, size, "%s/%.*s_%u%s", dir, stem, name, n, dot ? dot : "");
	if (len >= 0 && (size_t)len < size)
		return RFL_OK;
	return rfl_fail(err, RFL_EIO, ENAMETOOLONG, "%s/%s: %s", dir, name, strerror(ENAMETOOLONG));
}

/* Under the first of its names that is free, or that has it. */
static enum rfl_rc put_file(struct job *m, const char *dir, const char *name,
			    const struct rfl_buf *text, struct rfl_err *err)
{
	char path[8192];

	for (unsigned n = 1; n <= NAME_TRIES; n++) {
		const enum rfl_rc rc = name_file(path, sizeof(path), dir, name, n, err);
		const enum have have = rc ? HAVE_OTHER : look(path, text);

		if (rc)
			return rc;
		if (have == HAVE_OTHER)
			continue;
		m->sum->files += have == HAVE_NONE;
		m->sum->files_there += have != HAVE_NONE;
		return have == HAVE_SAME ? RFL_OK
					 : rfl_file_write(path, rfl_buf_str(text), text->len, err);
	}
	return rfl_fail(err, RFL_EIO, EEXIST, "%s/%s: %s", dir, name, strerror(EEXIST));
}

static enum rfl_rc copy_file(struct job *m, const char *from, const char *dir, const char *name,
			     struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_file_read(from, &text, err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(dir, err);
	if (rc == RFL_OK)
		rc = put_file(m, dir, name, &text, err);
	rfl_buf_fini(&text);
	return rc;
}

/* Every file of <folder>/<part> into <to>/<part>. */
static enum rfl_rc merge_part(struct job *m, const char *folder, const char *part,
			      struct rfl_err *err)
{
	char *from = rfl_path_join(folder, part), *to = rfl_path_join(m->to, part);
	DIR *dir = from ? opendir(from) : NULL;
	const struct dirent *entry;
	enum rfl_rc rc = RFL_OK;

	if (!from || !to)
		rc = no_memory(m->to, err);
	else if (!dir && errno != ENOENT)
		rc = unreadable(from, err);
	while (dir && rc == RFL_OK && (errno = 0, entry = readdir(dir))) {
		char *path = rfl_path_join(from, entry->d_name);
		bool there;

		rc = path ? is_there(path, &there, err) : no_memory(from, err);
		if (rc == RFL_OK && entry->d_name[0] != '.' && rfl_file_exists(path))
			rc = copy_file(m, path, to, entry->d_name, err);
		free(path);
	}
	if (dir && rc == RFL_OK && errno != 0)
		rc = unreadable(from, err);
	if (dir)
		(void)closedir(dir);
	free(from);
	free(to);
	return rc;
}

/* Which machine a task ran on: a record for each folder, by the folder's own name, however it was
 * written ("logs/", "."). */
static enum rfl_rc merge_records(struct job *m, const char *folder, struct rfl_err *err)
{
	static const char *const names[][2] = { { "env.json", ".json" }, { "env_info.md", ".md" } };
	char *to = rfl_path_join(m->to, "env"), *whole = realpath(folder, NULL);
	enum rfl_rc rc = to ? RFL_OK : no_memory(m->to, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(names) && whole && rc == RFL_OK; i++) {
		char *from = rfl_path_join(folder, names[i][0]);
		bool there;
		char name[300];

		(void)snprintf(name, sizeof(name), "%.255s%s", rfl_path_base(whole), names[i][1]);
		rc = from ? is_there(from, &there, err) : no_memory(m->to, err);
		if (rc == RFL_OK && rfl_file_exists(from))
			rc = copy_file(m, from, to, name, err);
		free(from);
	}
	free(whole);
	free(to);
	return rc;
}

static enum rfl_rc merge_files(struct job *m, const char *folder, struct rfl_err *err)
{
	enum rfl_rc rc = merge_part(m, folder, "steps", err);

	if (rc == RFL_OK)
		rc = merge_part(m, folder, "time", err);
	if (rc == RFL_OK)
		rc = merge_records(m, folder, err);
	return rc;
}
/* ---- counters.csv, run by run ---- */

/* The run that a row of counters belongs to: its id, or of a file that was imported its label. */
static const char *run_of(const struct rfl_csv *csv, int id, int label)
{
	const char *text = rfl_csv_text(csv, id);

	return text[0] ? text : rfl_csv_text(csv, label);
}

static enum rfl_rc open_counters(const char *path, struct rfl_csv **ret, int *id, int *label,
				 struct rfl_err *err)
{
	enum rfl_rc rc = rfl_csv_open(path, ret, err);

	if (rc == RFL_OK)
		rc = rfl_csv_need(*ret, "run_id", id, err);
	if (rc == RFL_OK)
		rc = rfl_csv_need(*ret, "label", label, err);
	return rc;
}

static enum rfl_rc add_counted(struct job *m, const char *run, struct rfl_err *err)
{
	if (m->counted.n && strcmp(m->counted.items[m->counted.n - 1], run) == 0)
		return RFL_OK; /* a run has many rows, one after the other */
	return add_id(&m->counted, run) ? RFL_OK : no_memory(m->to, err);
}

/* Once: which runs the common file has. */
static enum rfl_rc load_counted(struct job *m, const char *path, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	int id, label;
	bool more = true;
	enum rfl_rc rc = RFL_OK;

	if (m->knows_counted)
		return RFL_OK;
	m->knows_counted = true;
	if (rfl_file_size(path) == 0)
		return RFL_OK;
	rc = open_counters(path, &csv, &id, &label, err);
	while (rc == RFL_OK && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more)
		rc = add_counted(m, run_of(csv, id, label), err);
	rfl_csv_close(csv);
	sort_ids(&m->counted);
	return rc;
}

/* Rows of a run that has no row in the ledger yet may not all be there. */
static bool is_wanted(const struct job *m, const struct rfl_csv *csv, int id, int label)
{
	const char *run = rfl_csv_text(csv, id);

	if (rfl_csv_torn(csv) || (run[0] && !has_id(&m->runs, run)))
		return false;
	return !has_id(&m->counted, run_of(csv, id, label));
}

/* The wanted rows of an open file. @param came  the runs that they are of */
static enum rfl_rc collect(const struct job *m, struct rfl_csv *csv, int id, int label,
			   const char **fields, struct rfl_buf *rows, struct ids *came,
			   struct rfl_err *err)
{
	const size_t n = rfl_csv_columns(csv);
	bool more = true;
	enum rfl_rc rc;

	while ((rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		if (!is_wanted(m, csv, id, label))
			continue;
		for (size_t i = 0; i < n; i++)
			fields[i] = rfl_csv_text(csv, (int)i);
		rfl_csv_write_row(rows, fields, n);
		if (!add_id(came, run_of(csv, id, label)))
			return no_memory(m->to, err);
	}
	return rc ? rc : rfl_buf_check(rows, rfl_csv_path(csv), err);
}

static enum rfl_rc copy_counters(struct job *m, const char *from, const char *to,
				 struct rfl_err *err)
{
	struct ids came = { .items = NULL };
	const char **fields = NULL, **header = NULL;
	struct rfl_csv *csv = NULL;
	struct rfl_buf rows;
	size_t n = 0;
	int id, label;
	enum rfl_rc rc = open_counters(from, &csv, &id, &label, err);

	rfl_buf_init(&rows, 0);
	if (rc)
		goto done;
	n = rfl_csv_columns(csv);
	fields = rfl_alloc_array(n, sizeof(*fields));
	header = rfl_alloc_array(n, sizeof(*header));
	if (!fields || !header) {
		rc = no_memory(from, err);
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		header[i] = rfl_csv_column(csv, i);
	rc = collect(m, csv, id, label, fields, &rows, &came, err);
	if (rc == RFL_OK && came.n)
		rc = rfl_csv_append_rows(to, header, n, &rows, err);
	for (size_t i = 0; i < came.n && rc == RFL_OK; i++)
		rc = add_counted(m, came.items[i], err);
	sort_ids(&m->counted);
	if (rc == RFL_OK)
		m->sum->counters += came.n;
done:
	free(fields);
	free(header);
	rfl_csv_close(csv);
	rfl_buf_fini(&rows);
	ids_fini(&came);
	return rc;
}

static enum rfl_rc merge_counters(struct job *m, const char *folder, struct rfl_err *err)
{
	char *from = rfl_path_join(folder, "counters.csv");
	char *to = rfl_path_join(m->to, "counters.csv");
	bool there;
	enum rfl_rc rc = from && to ? is_there(from, &there, err) : no_memory(m->to, err);
	const bool some = rc == RFL_OK && rfl_file_size(from) > 0;

	if (some)
		rc = load_counted(m, to, err);
	if (some && rc == RFL_OK)
		rc = copy_counters(m, from, to, err);
	free(from);
	free(to);
	return rc;
}
/* ---- the merge ---- */

/* Ledgers are read first and written last: the files of what was read are complete, even where a
 * task still runs, and what a row points to is there when the row is. */
static enum rfl_rc merge(struct job *m, const char *const *folders, size_t n, struct rfl_err *err)
{
	char *path = rfl_path_join(m->to, "metrics.csv");
	struct rows rows = { .ledgers = NULL };
	enum rfl_rc rc = path ? load_runs(m, path, err) : no_memory(m->to, err);

	if (rc == RFL_OK)
		rc = load_all(m, folders, n, &rows, err);
	if (rc == RFL_OK) {
		choose_rows(m, &rows);
		rc = add_runs(m, rows.rows, rows.n, err);
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		rc = merge_files(m, folders[i], err);
		if (rc == RFL_OK)
			rc = merge_counters(m, folders[i], err);
	}
	if (rc == RFL_OK && rows.n)
		rc = rfl_ledger_append_rows(path, rows.rows, rows.n, err);
	if (rc == RFL_OK)
		m->sum->rows = rows.n;
	rows_fini(&rows);
	free(path);
	return rc;
}

enum rfl_rc rfl_ledger_merge(const char *const *folders, size_t n, const char *to,
			     struct rfl_merge *ret, struct rfl_err *err)
{
	struct job m = { .to = to, .sum = ret };
	char *lock_path = rfl_path_join(to, ".lock");
	enum rfl_rc rc = lock_path ? rfl_file_mkdirs(to, err) : no_memory(to, err);
	int lock = -1;

	*ret = (struct rfl_merge){ 0 };
	if (rc == RFL_OK)
		rc = rfl_file_lock(lock_path, &lock, err);
	if (rc == RFL_OK && n)
		rc = merge(&m, folders, n, err);
	if (lock >= 0) {
		const enum rfl_rc unlocked = rfl_file_unlock(lock, lock_path, err);

		rc = rc ? rc : unlocked;
	}
	ids_fini(&m.runs);
	ids_fini(&m.counted);
	free(lock_path);
	return rc;
}

/* ---- folders of tasks ---- */

/* By value where both are numbers: task 2 comes before task 10. */
static int compare_names(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	const char *p = rfl_path_base(*x), *q = rfl_path_base(*y);
	const bool numbers =
		strspn(p, "0123456789") == strlen(p) && strspn(q, "0123456789") == strlen(q);

	if (numbers && strlen(p) != strlen(q))
		return strlen(p) < strlen(q) ? -1 : 1;
	return strcmp(p, q);
}

enum rfl_rc rfl_merge_folders(const char *dir, char ***ret, size_t *n, struct rfl_err *err)
{
	struct ids found = { .items = NULL };
	const struct dirent *entry;
	enum rfl_rc rc = RFL_OK;
	DIR *d = opendir(dir);

	if (!d && errno != ENOENT)
		rc = unreadable(dir, err);
	while (d && rc == RFL_OK && (errno = 0, entry = readdir(d))) {
		char *path = entry->d_name[0] == '.' ? NULL : rfl_path_join(dir, entry->d_name);
		bool there = false;

		if (path)
			rc = is_there(path, &there, err);
		else if (entry->d_name[0] != '.')
			rc = no_memory(dir, err);
		if (there && rfl_dir_exists(path) && !add_id(&found, path))
			rc = no_memory(dir, err);
		free(path);
	}
	if (d && rc == RFL_OK && errno != 0)
		rc = unreadable(dir, err);
	if (d)
		(void)closedir(d);
	if (found.n)
		qsort(found.items, found.n, sizeof(*found.items), compare_names);
	*n = found.n;
	*ret = rfl_alloc_array(found.n + 1, sizeof(**ret));
	if (rc == RFL_OK && !*ret)
		rc = no_memory(dir, err);
	if (rc == RFL_OK) {
		if (found.n)
			memcpy(*ret, found.items, found.n * sizeof(**ret));
		free(found.items);
		return RFL_OK;
	}
	free(*ret);
	*ret = NULL;
	ids_fini(&found);
	return rc;
}

void rfl_merge_folders_free(char **folders)
{
	for (char **f = folders; f && *f; f++)
		free(*f);
	free(folders);
}
