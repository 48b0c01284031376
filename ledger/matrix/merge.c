/* merge.c - merges log folders. Rows are matched by run_id and written after the files of their
 * runs. */
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

struct job {
	const char *to;
	struct rfl_arena *arena; /* owns the paths */
	struct rfl_merge *sum;
	struct rfl_ledger **ledgers;
	size_t nledgers;
	struct rfl_ledger_row *rows; /* new rows sorted by time; borrowed from ledgers */
	size_t n;
	/* The run_id of every existing and new row. A run writes its row last, so other files may
	 * be incomplete if its row is missing. */
	struct rfl_texts runs;
	struct rfl_texts counted; /* runs with rows in the merged counters.csv */
	bool knows_counted;
	struct rfl_err *err;
	enum rfl_rc rc; /* the first error; functions called after it do nothing */
};

static enum rfl_rc unreadable(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EIO, errno, "%s: cannot read: %s; no rows were added", path,
			strerror(errno));
}

/* Check a file that may be missing but must be readable if it exists. */
static enum rfl_rc check_path(const char *path, struct rfl_err *err)
{
	struct stat st;

	return stat(path, &st) == 0 || errno == ENOENT ? RFL_OK : unreadable(path, err);
}

/* Fail if memory is NULL. */
static void *kept(struct job *m, void *memory)
{
	if (!memory && !m->rc)
		m->rc = rfl_no_memory(m->err, "merge of log folders");
	return memory;
}

/* The path of a file, after checking it; after an error "", which names no file. */
static const char *path_of(struct job *m, const char *dir, const char *name)
{
	const size_t len = strlen(dir);
	const char *path = kept(m, rfl_arena_printf(m->arena, "%s%s%s", dir,
						    len && dir[len - 1] == '/' ? "" : "/", name));

	if (!m->rc)
		m->rc = check_path(path, m->err);
	return m->rc ? "" : path;
}

static void put(struct job *m, struct rfl_texts *set, const char *text)
{
	size_t number;

	if (!m->rc)
		(void)kept(m, rfl_texts_put(set, text, &number));
}

/* Compare names. Two numbers are compared by value, so task 2 comes before task 10. */
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

/* List the entries of a folder that satisfy `is`, sorted by name and terminated by NULL. */
static enum rfl_rc list(const char *dir, bool (*is)(const char *path), char ***ret, size_t *n,
			struct rfl_err *err)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);
	size_t cap = 0;
	enum rfl_rc rc = d || errno == ENOENT ? RFL_OK : unreadable(dir, err);

	*n = 0;
	*ret = NULL;
	if (rc == RFL_OK)
		rc = rfl_grow(ret, &cap, 1, SIZE_MAX, err);
	for (errno = 0; d && rc == RFL_OK && (entry = readdir(d)) != NULL; errno = 0) {
		char *path;

		if (entry->d_name[0] == '.')
			continue;
		path = rfl_path_join(dir, entry->d_name);
		rc = path ? check_path(path, err) : rfl_no_memory(err, dir);
		if (rc == RFL_OK && is(path)) {
			rc = rfl_grow(ret, &cap, *n + 2, SIZE_MAX, err);
			if (rc == RFL_OK) {
				(*ret)[(*n)++] = path;
				continue;
			}
		}
		free(path);
	}
	if (d && rc == RFL_OK && errno != 0)
		rc = unreadable(dir, err);
	if (d)
		(void)closedir(d);
	if (*ret)
		(*ret)[*n] = NULL;
	if (rc) {
		rfl_merge_folders_free(*ret);
		*ret = NULL;
	} else if (*n) {
		qsort(*ret, *n, sizeof(**ret), compare_names);
	}
	return rc;
}

enum rfl_rc rfl_merge_folders(const char *dir, char ***ret, size_t *n, struct rfl_err *err)
{
	return list(dir, rfl_dir_exists, ret, n, err);
}

void rfl_merge_folders_free(char **folders)
{
	for (char **f = folders; f && *f; f++)
		free(*f);
	free(folders);
}

static int compare_rows(const void *a, const void *b)
{
	const struct rfl_ledger_row *x = a, *y = b;
	int order = strcmp(x->timestamp_utc ? x->timestamp_utc : "",
			   y->timestamp_utc ? y->timestamp_utc : "");

	return order ? order : strcmp(x->run_id, y->run_id);
}

static void load_runs(struct job *m, const char *path)
{
	struct rfl_ledger *l = NULL;

	if (rfl_file_size(path) > 0)
		m->rc = rfl_ledger_load_columns(path, "run_id", 0, &l, m->err);
	for (size_t i = 0; l && i < l->nrows; i++)
		if (l->rows[i].run_id)
			put(m, &m->runs, l->rows[i].run_id);
	rfl_ledger_free(l);
}

/* Collect new rows sorted by time. A row that occurs in two folders is added once. */
static void load_rows(struct job *m, const char *const *folders, size_t n)
{
	size_t total = 0;

	m->ledgers = kept(m, rfl_alloc_array(n, sizeof(struct rfl_ledger *)));
	for (size_t i = 0; i < n && !m->rc; i++) {
		const char *path = path_of(m, folders[i], "metrics.csv");
		struct rfl_ledger *l = NULL;

		if (rfl_file_size(path) == 0) {
			m->sum->empty++;
			continue;
		}
		if ((m->rc = rfl_ledger_load(path, &l, m->err)))
			return;
		m->ledgers[m->nledgers++] = l;
		m->sum->torn += l->torn;
		m->sum->folders++;
		total += l->nrows;
		/* A row without an id would be added again by every merge. */
		for (size_t k = 0; k < l->nrows && !m->rc; k++)
			if (!l->rows[k].run_id || !l->rows[k].run_id[0])
				m->rc = rfl_fail(m->err, RFL_EFORMAT, 0,
						 "%s: row %zu has no run_id; add a unique one",
						 path, k + 1);
	}
	m->rows = kept(m, rfl_alloc_array(total + 1, sizeof(*m->rows)));
	for (size_t i = 0; i < m->nledgers && !m->rc; i++)
		for (size_t k = 0; k < m->ledgers[i]->nrows; k++) {
			const struct rfl_ledger_row *row = &m->ledgers[i]->rows[k];
			const size_t before = m->runs.index.n;

			put(m, &m->runs, row->run_id);
			if (m->runs.index.n == before)
				m->sum->rows_there++;
			else
				m->rows[m->n++] = *row;
		}
	if (!m->rc)
		qsort(m->rows, m->n, sizeof(*m->rows), compare_rows);
}

enum have { HAVE_NONE, HAVE_SAME, HAVE_BEGIN, HAVE_OTHER };

/* Compare a file with new contents. HAVE_BEGIN: the file is a copy made before the source was
 * complete. */
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

/* Copy to the first file of x.txt, x_2.txt, ... that does not exist or has the same contents. */
static void copy_file(struct job *m, const char *from, const char *dir, const char *name)
{
	const char *dot = strrchr(name, '.');
	const int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
	enum have have = HAVE_OTHER;
	char path[8192], number[16] = "";
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	if ((m->rc = rfl_file_read(from, &text, m->err)) || (m->rc = rfl_file_mkdirs(dir, m->err)))
		goto done;
	for (unsigned n = 1; n <= NAME_TRIES && have == HAVE_OTHER; n++) {
		int len;

		if (n > 1)
			(void)snprintf(number, sizeof(number), "_%u", n);
		len = snprintf(path, sizeof(path), "%s/%.*s%s%s", dir, stem, name, number,
			       dot ? dot : "");
		if (len < 0 || (size_t)len >= sizeof(path)) {
			m->rc = rfl_fail(m->err, RFL_EIO, ENAMETOOLONG, "%s/%s: %s", dir, name,
					 strerror(ENAMETOOLONG));
			goto done;
		}
		have = look(path, &text);
	}
	m->sum->files += have == HAVE_NONE;
	m->sum->files_there += have == HAVE_SAME || have == HAVE_BEGIN;
	if (have == HAVE_OTHER)
		m->rc = rfl_fail(m->err, RFL_EIO, EEXIST, "%s/%s: %s", dir, name, strerror(EEXIST));
	else if (have != HAVE_SAME)
		m->rc = rfl_file_write(path, rfl_buf_str(&text), text.len, m->err);
done:
	rfl_buf_fini(&text);
}

/* Copy every file of <folder>/<part> to <to>/<part>. */
static void merge_part(struct job *m, const char *folder, const char *part)
{
	const char *from = path_of(m, folder, part), *to = path_of(m, m->to, part);
	char **files = NULL;
	size_t n = 0;

	if (!m->rc)
		m->rc = list(from, rfl_file_exists, &files, &n, m->err);
	for (size_t i = 0; i < n && !m->rc; i++)
		copy_file(m, files[i], to, rfl_path_base(files[i]));
	rfl_merge_folders_free(files);
}

/* Copy the machine record under the actual name of the folder, even if it is given as "logs/" or
 * ".". */
static void merge_records(struct job *m, const char *folder)
{
	static const char *const names[][2] = { { "env.json", ".json" }, { "env_info.md", ".md" } };
	char *whole = realpath(folder, NULL);
	const char *to = path_of(m, m->to, "env");

	for (size_t i = 0; i < RFL_ARRAY_LEN(names) && whole && !m->rc; i++) {
		const char *from = path_of(m, folder, names[i][0]);
		char name[300];

		(void)snprintf(name, sizeof(name), "%.255s%s", rfl_path_base(whole), names[i][1]);
		if (rfl_file_exists(from))
			copy_file(m, from, to, name);
	}
	free(whole);
}

struct counters {
	struct rfl_csv *csv;
	int id, label;
};

/* The run of a counters row: the run_id, or the label if the row was imported. */
static const char *run_of(const struct counters *c)
{
	const char *text = rfl_csv_text(c->csv, c->id);

	return text[0] ? text : rfl_csv_text(c->csv, c->label);
}

/* Open a table of counters that is not empty. Return false if it is, or after an error. */
static bool open_counters(struct job *m, const char *path, struct counters *ret)
{
	if (rfl_file_size(path) == 0 || (m->rc = rfl_csv_open(path, &ret->csv, m->err)) ||
	    (m->rc = rfl_csv_need(ret->csv, "run_id", &ret->id, m->err)))
		return false;
	m->rc = rfl_csv_need(ret->csv, "label", &ret->label, m->err);
	return m->rc == RFL_OK;
}

static bool next_row(struct job *m, struct counters *c)
{
	bool more = false;

	if (!m->rc)
		m->rc = rfl_csv_next(c->csv, &more, m->err);
	return more && !m->rc;
}

/* Find the runs in the merged counters.csv, on the first call only. */
static void load_counted(struct job *m, const char *path)
{
	struct counters c = { .csv = NULL };

	if (!m->knows_counted && open_counters(m, path, &c))
		while (next_row(m, &c))
			put(m, &m->counted, run_of(&c));
	rfl_csv_close(c.csv);
	m->knows_counted = true;
}

static void merge_counters(struct job *m, const char *folder)
{
	const char *from = path_of(m, folder, "counters.csv"), **fields;
	const char *to = path_of(m, m->to, "counters.csv");
	struct counters c = { .csv = NULL };
	struct rfl_texts came = { .arena = NULL }; /* runs of the new rows */
	struct rfl_buf rows;
	size_t nrows = 0;

	rfl_buf_init(&rows, 0);
	if (rfl_file_size(from) > 0)
		load_counted(m, to);
	if (m->rc || !open_counters(m, from, &c))
		goto done;
	fields = kept(m, rfl_arena_array(m->arena, c.csv->ncolumns, sizeof(*fields)));
	while (next_row(m, &c)) {
		const char *id = rfl_csv_text(c.csv, c.id);

		/* Counters of a run without a ledger row may be incomplete. */
		if (c.csv->torn || (id[0] && !rfl_texts_has(&m->runs, id)) ||
		    rfl_texts_has(&m->counted, run_of(&c)))
			continue;
		for (size_t i = 0; i < c.csv->ncolumns; i++)
			fields[i] = rfl_csv_text(c.csv, (int)i);
		rfl_csv_write_row(&rows, fields, c.csv->ncolumns);
		nrows++;
		put(m, &came, run_of(&c));
	}
	if (!m->rc)
		m->rc = rfl_buf_check(&rows, from, m->err);
	if (!m->rc && nrows)
		m->rc = rfl_csv_append_rows(to, (const char *const *)c.csv->columns,
					    c.csv->ncolumns, &rows, m->err);
	for (size_t i = 0; i < came.index.n; i++)
		put(m, &m->counted, came.index.rows[i]);
	m->sum->counters += m->rc ? 0 : nrows;
done:
	rfl_csv_close(c.csv);
	rfl_buf_fini(&rows);
	rfl_texts_fini(&came);
}

enum rfl_rc rfl_ledger_merge(const char *const *folders, size_t n, const char *to,
			     struct rfl_merge *ret, struct rfl_err *err)
{
	struct job m = { .to = to, .arena = rfl_arena_new(), .sum = ret, .err = err };
	const char *path, *lock_path;
	int lock = -1;

	*ret = (struct rfl_merge){ 0 };
	if (!m.arena)
		return rfl_no_memory(err, "merge of log folders");
	path = path_of(&m, to, "metrics.csv");
	lock_path = path_of(&m, to, ".lock");
	if (m.rc || (m.rc = rfl_file_mkdirs(to, err)) ||
	    (m.rc = rfl_file_lock(lock_path, &lock, err)) || n == 0)
		goto done;
	/* Read the ledgers first and write rows last, so that the files of every merged row are
	 * complete and merged before it, even while a task is running. */
	load_runs(&m, path);
	load_rows(&m, folders, n);
	for (size_t i = 0; i < n && !m.rc; i++) {
		merge_part(&m, folders[i], "steps");
		merge_part(&m, folders[i], "time");
		merge_part(&m, folders[i], "memory");
		merge_records(&m, folders[i]);
		merge_counters(&m, folders[i]);
	}
	if (m.n && !m.rc)
		m.rc = rfl_ledger_append_rows(path, m.rows, m.n, err);
	ret->rows = m.rc ? 0 : m.n;
done:
	if (lock >= 0) {
		const enum rfl_rc unlocked = rfl_file_unlock(lock, lock_path, err);

		m.rc = m.rc ? m.rc : unlocked;
	}
	for (size_t i = 0; i < m.nledgers; i++)
		rfl_ledger_free(m.ledgers[i]);
	free(m.ledgers);
	free(m.rows);
	rfl_texts_fini(&m.runs);
	rfl_texts_fini(&m.counted);
	rfl_arena_free(m.arena);
	return m.rc;
}
