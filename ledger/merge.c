/*
 * merge.c - log folders into one: rows by their run_id, files by their name and content.
 */
#include "ledger/merge.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/log.h"
#include "ledger/ledger.h"

#define NAME_TRIES 10000

struct merge {
	const char *to;
	struct rfl_merge *sum;
};

static enum rfl_rc no_memory(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
}

/* ---- a set of texts ---- */

/* Ids that are there; sorted before it is asked. Texts are the set's own. */
struct ids {
	char **items;
	size_t n, cap;
};

static int compare_texts(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static bool add_id(struct ids *set, const char *id)
{
	if (set->n == set->cap) {
		const size_t cap = set->cap ? set->cap * 2 : 64;
		char **items = rfl_alloc_array(cap, sizeof(*items));

		if (!items)
			return false;
		if (set->n)
			memcpy(items, set->items, set->n * sizeof(*items));
		free(set->items);
		set->items = items;
		set->cap = cap;
	}
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

/* ---- the ledger ---- */

/* Rows of several ledgers, which stay open while their rows are borrowed. */
struct rows {
	struct rfl_ledger **ledgers;
	size_t nledgers;
	struct rfl_ledger_row *rows;
	size_t n;
};

static int compare_rows(const void *a, const void *b)
{
	const struct rfl_ledger_row *x = a, *y = b;
	int order = strcmp(x->timestamp_utc ? x->timestamp_utc : "",
			   y->timestamp_utc ? y->timestamp_utc : "");

	return order ? order : strcmp(x->run_id ? x->run_id : "", y->run_id ? y->run_id : "");
}

static enum rfl_rc ids_of_ledger(const char *path, struct ids *set, struct rfl_err *err)
{
	const bool wanted[RFL_LEDGER_NCOLUMNS] = { [RFL_LEDGER_AT_run_id] = true };
	struct rfl_ledger *l = NULL;
	enum rfl_rc rc;

	if (rfl_file_size(path) == 0)
		return RFL_OK;
	rc = rfl_ledger_load_columns(path, wanted, &l, err);
	for (size_t i = 0; rc == RFL_OK && i < l->nrows; i++)
		if (l->rows[i].run_id && !add_id(set, l->rows[i].run_id))
			rc = no_memory(path, err);
	rfl_ledger_free(l);
	sort_ids(set);
	return rc;
}

static enum rfl_rc load_all(struct merge *m, const char *const *folders, size_t n,
			    struct rows *rows, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	size_t total = 0;

	rows->ledgers = rfl_alloc_array(n, sizeof(*rows->ledgers));
	if (!rows->ledgers)
		return no_memory(m->to, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		char *path = rfl_path_join(folders[i], "metrics.csv");

		if (!path)
			return no_memory(m->to, err);
		if (rfl_file_size(path) == 0) {
			m->sum->empty++;
		} else {
			rc = rfl_ledger_load(path, &rows->ledgers[rows->nledgers], err);
			if (rc == RFL_OK) {
				total += rows->ledgers[rows->nledgers]->nrows;
				m->sum->torn += rows->ledgers[rows->nledgers++]->torn;
				m->sum->folders++;
			}
		}
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
static void choose_rows(struct merge *m, const struct ids *there, struct rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->nledgers; i++)
		for (size_t k = 0; k < rows->ledgers[i]->nrows; k++) {
			const struct rfl_ledger_row *row = &rows->ledgers[i]->rows[k];

			if (row->run_id && has_id(there, row->run_id))
				m->sum->rows_there++;
			else
				rows->rows[rows->n++] = *row;
		}
	if (rows->n)
		qsort(rows->rows, rows->n, sizeof(*rows->rows), compare_rows);
	for (size_t i = 0; i < rows->n; i++) {
		const bool again = kept && rows->rows[i].run_id && rows->rows[kept - 1].run_id &&
				   strcmp(rows->rows[kept - 1].run_id, rows->rows[i].run_id) == 0;

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

static enum rfl_rc merge_rows(struct merge *m, const char *const *folders, size_t n,
			      struct rfl_err *err)
{
	char *path = rfl_path_join(m->to, "metrics.csv");
	struct rows rows = { .ledgers = NULL };
	struct ids there = { .items = NULL };
	enum rfl_rc rc = path ? ids_of_ledger(path, &there, err) : no_memory(m->to, err);

	if (rc == RFL_OK)
		rc = load_all(m, folders, n, &rows, err);
	if (rc == RFL_OK) {
		choose_rows(m, &there, &rows);
		if (rows.n)
			rc = rfl_ledger_append_rows(path, rows.rows, rows.n, err);
	}
	if (rc == RFL_OK)
		m->sum->rows = rows.n;
	rows_fini(&rows);
	ids_fini(&there);
	free(path);
	return rc;
}

/* ---- counters.csv ---- */

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

static enum rfl_rc ids_of_counters(const char *path, struct ids *set, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	int id, label;
	bool more = true;
	enum rfl_rc rc;

	if (rfl_file_size(path) == 0)
		return RFL_OK;
	rc = open_counters(path, &csv, &id, &label, err);
	while (rc == RFL_OK && more) {
		rc = rfl_csv_next(csv, &more, err);
		if (rc || !more)
			break;
		const char *run = run_of(csv, id, label);

		if (set->n && strcmp(set->items[set->n - 1], run) == 0)
			continue; /* a run has many rows, one after the other */
		if (!add_id(set, run))
			rc = no_memory(path, err);
	}
	rfl_csv_close(csv);
	sort_ids(set);
	return rc;
}

static enum rfl_rc copy_counters(struct merge *m, const char *from, const char *to,
				 struct rfl_err *err)
{
	struct ids there = { .items = NULL };
	const char **fields = NULL, **header = NULL;
	struct rfl_csv *csv = NULL;
	struct rfl_buf rows;
	size_t n = 0, added = 0;
	int id, label;
	bool more = true;
	enum rfl_rc rc;

	rfl_buf_init(&rows, 0);
	rc = ids_of_counters(to, &there, err);
	if (rc == RFL_OK)
		rc = open_counters(from, &csv, &id, &label, err);
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
	while ((rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		if (rfl_csv_torn(csv) || has_id(&there, run_of(csv, id, label)))
			continue;
		for (size_t i = 0; i < n; i++)
			fields[i] = rfl_csv_text(csv, (int)i);
		rfl_csv_write_row(&rows, fields, n);
		added++;
	}
	if (rc == RFL_OK)
		rc = rfl_buf_check(&rows, from, err);
	if (rc == RFL_OK && added)
		rc = rfl_csv_append_rows(to, header, n, &rows, err);
	if (rc == RFL_OK)
		m->sum->counters += added;
done:
	free(fields);
	free(header);
	rfl_csv_close(csv);
	rfl_buf_fini(&rows);
	ids_fini(&there);
	return rc;
}

static enum rfl_rc merge_counters(struct merge *m, const char *folder, struct rfl_err *err)
{
	char *from = rfl_path_join(folder, "counters.csv");
	char *to = rfl_path_join(m->to, "counters.csv");
	enum rfl_rc rc = RFL_OK;

	if (!from || !to)
		rc = no_memory(m->to, err);
	else if (rfl_file_size(from) > 0)
		rc = copy_counters(m, from, to, err);
	free(from);
	free(to);
	return rc;
}

/* ---- files ---- */

/* Whether a file has this content. */
static bool has_content(const char *path, const struct rfl_buf *want)
{
	struct rfl_buf have;
	bool same;

	if (!rfl_file_exists(path) || rfl_file_size(path) != want->len)
		return false;
	rfl_buf_init(&have, 0);
	same = rfl_file_read(path, &have, NULL) == RFL_OK && have.len == want->len &&
	       (want->len == 0 || memcmp(have.data, want->data, want->len) == 0);
	rfl_buf_fini(&have);
	return same;
}

/* `dir`/`name`, or, where another file has that name, `stem`_2`suffix` and so on. */
static enum rfl_rc put_file(struct merge *m, const char *dir, const char *name,
			    const struct rfl_buf *text, struct rfl_err *err)
{
	const char *dot = strrchr(name, '.');
	const int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
	char path[8192];

	for (unsigned n = 1; n <= NAME_TRIES; n++) {
		int len;

		if (n == 1)
			len = snprintf(path, sizeof(path), "%s/%s", dir, name);
		else
			len = snprintf(path, sizeof(path), "%s/%.*s_%u%s", dir, stem, name, n,
				       dot ? dot : "");
		if (len < 0 || (size_t)len >= sizeof(path))
			return rfl_fail(err, RFL_EIO, ENAMETOOLONG, "%s/%s: %s", dir, name,
					strerror(ENAMETOOLONG));
		if (has_content(path, text)) {
			m->sum->files_there++;
			return RFL_OK;
		}
		if (rfl_file_exists(path))
			continue;
		m->sum->files++;
		return rfl_file_write(path, rfl_buf_str(text), text->len, err);
	}
	return rfl_fail(err, RFL_EIO, EEXIST, "%s/%s: %s", dir, name, strerror(EEXIST));
}

static enum rfl_rc copy_file(struct merge *m, const char *from, const char *dir, const char *name,
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
static enum rfl_rc merge_part(struct merge *m, const char *folder, const char *part,
			      struct rfl_err *err)
{
	char *from = rfl_path_join(folder, part), *to = rfl_path_join(m->to, part);
	DIR *dir = from ? opendir(from) : NULL;
	const struct dirent *entry;
	enum rfl_rc rc = from && to ? RFL_OK : no_memory(m->to, err);

	while (dir && rc == RFL_OK && (entry = readdir(dir))) {
		char *path = rfl_path_join(from, entry->d_name);

		if (!path)
			rc = no_memory(from, err);
		else if (entry->d_name[0] != '.' && rfl_file_exists(path))
			rc = copy_file(m, path, to, entry->d_name, err);
		free(path);
	}
	if (dir)
		(void)closedir(dir);
	free(from);
	free(to);
	return rc;
}

/* Which machine a task ran on: a record for each folder. */
static enum rfl_rc merge_records(struct merge *m, const char *folder, struct rfl_err *err)
{
	static const char *const names[][2] = { { "env.json", ".json" }, { "env_info.md", ".md" } };
	char *to = rfl_path_join(m->to, "env");
	enum rfl_rc rc = to ? RFL_OK : no_memory(m->to, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(names) && rc == RFL_OK; i++) {
		char *from = rfl_path_join(folder, names[i][0]);
		char name[300];

		(void)snprintf(name, sizeof(name), "%.255s%s", rfl_path_base(folder), names[i][1]);
		if (!from)
			rc = no_memory(m->to, err);
		else if (rfl_file_exists(from))
			rc = copy_file(m, from, to, name, err);
		free(from);
	}
	free(to);
	return rc;
}

static enum rfl_rc merge_files(struct merge *m, const char *folder, struct rfl_err *err)
{
	enum rfl_rc rc = merge_part(m, folder, "steps", err);

	if (rc == RFL_OK)
		rc = merge_part(m, folder, "time", err);
	if (rc == RFL_OK)
		rc = merge_records(m, folder, err);
	if (rc == RFL_OK)
		rc = merge_counters(m, folder, err);
	return rc;
}

/* The rows come last, so that what they point to is there. */
enum rfl_rc rfl_ledger_merge(const char *const *folders, size_t n, const char *to,
			     struct rfl_merge *ret, struct rfl_err *err)
{
	struct merge m = { .to = to, .sum = ret };
	char *lock_path = rfl_path_join(to, ".lock");
	enum rfl_rc rc = lock_path ? rfl_file_mkdirs(to, err) : no_memory(to, err);
	int lock = -1;

	*ret = (struct rfl_merge){ 0 };
	if (rc == RFL_OK)
		rc = rfl_file_lock(lock_path, &lock, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = merge_files(&m, folders[i], err);
	if (rc == RFL_OK && n)
		rc = merge_rows(&m, folders, n, err);
	if (lock >= 0) {
		const enum rfl_rc unlocked = rfl_file_unlock(lock, lock_path, err);

		rc = rc ? rc : unlocked;
	}
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

	while (d && rc == RFL_OK && (entry = readdir(d))) {
		char *path = entry->d_name[0] == '.' ? NULL : rfl_path_join(dir, entry->d_name);

		if (path && rfl_dir_exists(path) && !add_id(&found, path))
			rc = no_memory(dir, err);
		if (!path && entry->d_name[0] != '.')
			rc = no_memory(dir, err);
		free(path);
	}
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
