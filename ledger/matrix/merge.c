/*
 * merge.c - log folders into one: rows by their run_id; what belongs to a row comes before it.
 */
#include "ledger/matrix/merge.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "ledger/ledger.h"
#include "ledger/matrix/merge_parts.h"

enum rfl_rc rfl_merge__no_memory(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
}

enum rfl_rc rfl_merge__unreadable(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EIO, errno, "%s: cannot read: %s; no rows were added", path,
			strerror(errno));
}

enum rfl_rc rfl_merge__is_there(const char *path, bool *ret, struct rfl_err *err)
{
	struct stat st;

	*ret = stat(path, &st) == 0;
	return *ret || errno == ENOENT ? RFL_OK : rfl_merge__unreadable(path, err);
}

/* ---- a set of texts ---- */

static int compare_texts(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

bool rfl_merge__add_id(struct rfl_merge__ids *set, const char *id)
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

void rfl_merge__sort_ids(struct rfl_merge__ids *set)
{
	if (set->n)
		qsort(set->items, set->n, sizeof(*set->items), compare_texts);
}

bool rfl_merge__has_id(const struct rfl_merge__ids *set, const char *id)
{
	return set->n && bsearch(&id, set->items, set->n, sizeof(*set->items), compare_texts);
}

void rfl_merge__ids_fini(struct rfl_merge__ids *set)
{
	for (size_t i = 0; i < set->n; i++)
		free(set->items[i]);
	free(set->items);
	*set = (struct rfl_merge__ids){ .items = NULL };
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

static enum rfl_rc add_runs(struct rfl_merge__job *m, const struct rfl_ledger_row *rows, size_t n,
			    struct rfl_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].run_id && !rfl_merge__add_id(&m->runs, rows[i].run_id))
			return rfl_merge__no_memory(m->to, err);
	rfl_merge__sort_ids(&m->runs);
	return RFL_OK;
}

static enum rfl_rc load_runs(struct rfl_merge__job *m, const char *path, struct rfl_err *err)
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

static enum rfl_rc load_ledger(struct rfl_merge__job *m, const char *path, struct rows *rows,
			       size_t *total, struct rfl_err *err)
{
	struct rfl_ledger *l = NULL;
	bool there;
	enum rfl_rc rc = rfl_merge__is_there(path, &there, err);

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

static enum rfl_rc load_all(struct rfl_merge__job *m, const char *const *folders, size_t n,
			    struct rows *rows, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	size_t total = 0;

	rows->ledgers = rfl_alloc_array(n, sizeof(struct rfl_ledger *));
	if (!rows->ledgers)
		return rfl_merge__no_memory(m->to, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		char *path = rfl_path_join(folders[i], "metrics.csv");

		rc = path ? load_ledger(m, path, rows, &total, err)
			  : rfl_merge__no_memory(m->to, err);
		free(path);
	}
	if (rc == RFL_OK && total) {
		rows->rows = rfl_alloc_array(total, sizeof(*rows->rows));
		if (!rows->rows)
			rc = rfl_merge__no_memory(m->to, err);
	}
	return rc;
}

/* What is new, in the order of time; a row that two folders have is one. */
static void choose_rows(struct rfl_merge__job *m, struct rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->nledgers; i++)
		for (size_t k = 0; k < rows->ledgers[i]->nrows; k++) {
			const struct rfl_ledger_row *row = &rows->ledgers[i]->rows[k];

			if (rfl_merge__has_id(&m->runs, row->run_id))
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

/* ---- the merge ---- */

/* Ledgers are read first and written last: the files of what was read are complete, even where a
 * task still runs, and what a row points to is there when the row is. */
static enum rfl_rc merge(struct rfl_merge__job *m, const char *const *folders, size_t n,
			 struct rfl_err *err)
{
	char *path = rfl_path_join(m->to, "metrics.csv");
	struct rows rows = { .ledgers = NULL };
	enum rfl_rc rc = path ? load_runs(m, path, err) : rfl_merge__no_memory(m->to, err);

	if (rc == RFL_OK)
		rc = load_all(m, folders, n, &rows, err);
	if (rc == RFL_OK) {
		choose_rows(m, &rows);
		rc = add_runs(m, rows.rows, rows.n, err);
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		rc = rfl_merge__files(m, folders[i], err);
		if (rc == RFL_OK)
			rc = rfl_merge__counters(m, folders[i], err);
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
	struct rfl_merge__job m = { .to = to, .sum = ret };
	char *lock_path = rfl_path_join(to, ".lock");
	enum rfl_rc rc = lock_path ? rfl_file_mkdirs(to, err) : rfl_merge__no_memory(to, err);
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
	rfl_merge__ids_fini(&m.runs);
	rfl_merge__ids_fini(&m.counted);
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
	struct rfl_merge__ids found = { .items = NULL };
	const struct dirent *entry;
	enum rfl_rc rc = RFL_OK;
	DIR *d = opendir(dir);

	if (!d && errno != ENOENT)
		rc = rfl_merge__unreadable(dir, err);
	while (d && rc == RFL_OK && (errno = 0, entry = readdir(d))) {
		char *path = entry->d_name[0] == '.' ? NULL : rfl_path_join(dir, entry->d_name);
		bool there = false;

		if (path)
			rc = rfl_merge__is_there(path, &there, err);
		else if (entry->d_name[0] != '.')
			rc = rfl_merge__no_memory(dir, err);
		if (there && rfl_dir_exists(path) && !rfl_merge__add_id(&found, path))
			rc = rfl_merge__no_memory(dir, err);
		free(path);
	}
	if (d && rc == RFL_OK && errno != 0)
		rc = rfl_merge__unreadable(dir, err);
	if (d)
		(void)closedir(d);
	if (found.n)
		qsort(found.items, found.n, sizeof(*found.items), compare_names);
	*n = found.n;
	*ret = rfl_alloc_array(found.n + 1, sizeof(**ret));
	if (rc == RFL_OK && !*ret)
		rc = rfl_merge__no_memory(dir, err);
	if (rc == RFL_OK) {
		if (found.n)
			memcpy(*ret, found.items, found.n * sizeof(**ret));
		free(found.items);
		return RFL_OK;
	}
	free(*ret);
	*ret = NULL;
	rfl_merge__ids_fini(&found);
	return rc;
}

void rfl_merge_folders_free(char **folders)
{
	for (char **f = folders; f && *f; f++)
		free(*f);
	free(folders);
}
