/* merge.c - merges log directories. Rows are matched by run_id and written after the files of their
 * runs. */
#define _XOPEN_SOURCE 700 /* realpath */

#include "ledger/matrix/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "ledger/file/steps.h"

#define NAME_TRIES    10000
#define CHUNK_BYTES   ((size_t)16 << 20) /* rows that are appended at once */
#define COMPARED_SIZE 65536
#define NAME_MOST     200

const char *const rfl_ledger_folders[] = { "steps", "time", "memory", "epochs", "networks", NULL };

/* A ledger to merge. */
struct source {
	const char *path;
	const char **columns;
	size_t ncolumns;
	size_t *from; /* column for each of job.columns; ncolumns: none */
	size_t first; /* number of its first entry */
};

/* A new row. */
struct entry {
	const char *timestamp, *run_id;
	size_t source, offset, len; /* where it is */
};

/* The first error is kept; functions called after it do nothing. */
struct job {
	const char *to;
	struct rfl_arena *arena; /* owns the paths and entries */
	struct rfl_merge *sum;
	struct source *sources;
	size_t nsources;
	struct entry *entries;
	size_t n, cap;
	const char **columns; /* of the new rows: the ledger's, then foreign ones */
	size_t ncolumns, columns_cap;
	/* The run_id of every existing and new row. A run writes its row last, so other files may
	 * be incomplete if its row is missing. */
	struct rfl_texts runs;
	struct rfl_texts counted; /* runs with rows in the merged counters.csv */
	bool knows_counted;
	struct rfl_err *err;
	enum rfl_rc rc;
};

/* The path of a file, which may be missing but must be readable if it exists; after an error "",
 * which names no file. */
static const char *path_of(struct job *m, const char *dir, const char *name)
{
	const size_t len = strlen(dir);
	const char *path = rfl_arena_printf(m->arena, "%s%s%s", dir,
					    len && dir[len - 1] == '/' ? "" : "/", name);
	struct stat st;

	if (!m->rc && stat(path, &st) != 0 && errno != ENOENT)
		m->rc = rfl_fail_errno(m->err, "%s: cannot read", path);
	return m->rc ? "" : path;
}

/* ---- rows ---- */

static void add_run(const struct rfl_ledger_row *row, void *ctx)
{
	if (row && row->run_id)
		rfl_texts_put(ctx, row->run_id);
}

/* A row that could not be read again would make the merged ledger unreadable. */
static enum rfl_rc check_numbers(const struct rfl_csv *csv, const struct rfl_ledger_source *from,
				 struct rfl_err *err)
{
	struct rfl_ledger_row row;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS && rc == RFL_OK; i++)
		if (rfl_ledger_fields[i].kind != RFL_FIELD_TEXT && from[i].column >= 0)
			rc = rfl_field_read_number(&rfl_ledger_fields[i], csv, from[i].column, &row,
						   err);
	return rc;
}

/* Note the place of each complete row. */
static enum rfl_rc scan(struct rfl_csv *csv, struct rfl_ledger *to, void *ctx, struct rfl_err *err)
{
	struct job *m = ctx;
	struct source *s = &m->sources[m->nsources];
	struct rfl_ledger_source from[RFL_LEDGER_NREAD];
	int id, time = rfl_csv_find(csv, "timestamp_utc"), version;
	bool more = true;
	enum rfl_rc rc;

	rfl_ledger__bind(csv, NULL, from);
	m->n = s->first; /* again, if a row turned out to be torn */
	s->ncolumns = csv->ncolumns;
	s->columns = rfl_arena_array(m->arena, csv->ncolumns, sizeof(*s->columns));
	for (size_t i = 0; i < csv->ncolumns; i++)
		s->columns[i] = rfl_arena_strdup(m->arena, csv->columns[i]);
	if ((rc = rfl_csv_need(csv, "run_id", &id, err)) ||
	    (rc = rfl_csv_need(csv, "version", &version, err)))
		return rc;
	while ((rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		const char *run_id = rfl_csv_text(csv, id);

		if (csv->torn || !*rfl_csv_text(csv, version)) {
			to->torn = true;
			continue;
		}
		/* A row without an id would be added again by every merge. */
		if (!*run_id)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:%zu: the row has no run_id; add a unique one",
					csv->path, csv->line);
		if ((rc = check_numbers(csv, from, err)))
			return rc;
		rfl_reserve(&m->entries, &m->cap, m->n + 1);
		m->entries[m->n++] = (struct entry){
			.timestamp = rfl_arena_strdup(m->arena, rfl_csv_text(csv, time)),
			.run_id = rfl_arena_strdup(m->arena, run_id),
			.source = m->nsources,
			.offset = csv->offset,
			.len = csv->end - csv->offset,
		};
	}
	return rc;
}

static void add_column(struct job *m, const char *name)
{
	for (size_t i = 0; i < m->ncolumns; i++)
		if (strcmp(m->columns[i], name) == 0)
			return;
	rfl_reserve(&m->columns, &m->columns_cap, m->ncolumns + 1);
	m->columns[m->ncolumns++] = name;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->timestamp, y->timestamp);

	return order ? order : strcmp(x->run_id, y->run_id);
}

/* Find the new rows, sorted by time. A row that occurs in two directories is added once. */
static void find_rows(struct job *m, const char *const *folders, size_t n)
{
	m->sources = rfl_arena_array(m->arena, n, sizeof(*m->sources));
	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++)
		add_column(m, rfl_ledger_fields[i].name);
	for (size_t i = 0; i < n && !m->rc; i++) {
		struct source *s = &m->sources[m->nsources];
		struct rfl_ledger torn = { .torn = false };
		size_t kept;

		s->path = path_of(m, folders[i], "metrics.csv");
		s->first = m->n;
		if (m->rc)
			return;
		if (!rfl_file_exists(s->path) || rfl_ledger__is_cut_header(s->path)) {
			m->sum->empty++;
			continue;
		}
		if ((m->rc = rfl_ledger_check(s->path, m->err)) ||
		    (m->rc = rfl_ledger__read_file(s->path, scan, m, &torn, m->err)))
			return;
		m->sum->torn += torn.torn;
		m->sum->folders++;
		for (size_t k = 0; k < s->ncolumns; k++)
			if (s->columns[k][0])
				add_column(m, s->columns[k]);
		kept = s->first;
		for (size_t k = s->first; k < m->n; k++)
			if (rfl_texts_has(&m->runs, m->entries[k].run_id)) {
				m->sum->rows_there++;
			} else {
				rfl_texts_put(&m->runs, m->entries[k].run_id);
				m->entries[kept++] = m->entries[k];
			}
		m->n = kept;
		m->nsources++;
	}
	for (struct source *s = m->sources; s < m->sources + m->nsources; s++) {
		s->from = rfl_arena_array(m->arena, m->ncolumns, sizeof(*s->from));
		for (size_t i = 0; i < m->ncolumns; i++)
			while (s->from[i] < s->ncolumns &&
			       strcmp(s->columns[s->from[i]], m->columns[i]) != 0)
				s->from[i]++;
	}
	if (!m->rc && m->n)
		qsort(m->entries, m->n, sizeof(*m->entries), compare_entries);
}

/* Read a row and append its fields in the order of m->columns. */
static void copy_row(struct job *m, int fd, const struct entry *e, struct rfl_buf *rows)
{
	const struct source *s = &m->sources[e->source];
	RFL_AUTOFREE struct rfl_span *fields = rfl_alloc_array(s->ncolumns, sizeof(*fields));
	RFL_AUTOFREE char *record = rfl_alloc_array(e->len, 1);
	bool same = false;

	if (pread(fd, record, e->len, (off_t)e->offset) == (ssize_t)e->len)
		(void)rfl_csv_split(record, e->len, fields, s->ncolumns);
	for (size_t i = 0; i < m->ncolumns; i++) {
		const size_t k = s->from[i];

		if (i == RFL_LEDGER_AT_run_id)
			same = k < s->ncolumns && rfl_span_is(fields[k], e->run_id);
		if (k < s->ncolumns)
			rfl_buf_append(rows, fields[k].at, fields[k].len);
		rfl_buf_putc(rows, i + 1 < m->ncolumns ? ',' : '\n');
	}
	if (!same)
		m->rc = rfl_fail(m->err, RFL_EIO, 0,
				 "%s: changed while it was read; repeat the command", s->path);
}

static void append_rows(struct job *m, const char *path)
{
	RFL_AUTO(buf) rows = { .len = 0 };
	size_t open_source = 0, waiting = 0;
	int fd = -1;

	for (size_t i = 0; i < m->n && !m->rc; i++) {
		const struct entry *e = &m->entries[i];

		if (fd < 0 || e->source != open_source) {
			if (fd >= 0)
				(void)close(fd);
			open_source = e->source;
			fd = open(m->sources[e->source].path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				m->rc = rfl_fail_errno(m->err, "%s", m->sources[e->source].path);
		}
		if (!m->rc)
			copy_row(m, fd, e, &rows);
		waiting++;
		if (m->rc || (rows.len < CHUNK_BYTES && i + 1 < m->n))
			continue;
		m->rc = rfl_ledger__append(path,
					   &(struct rfl_ledger__rows){ .columns = m->columns,
								       .ncolumns = m->ncolumns,
								       .text = &rows },
					   m->err);
		m->sum->rows += m->rc ? 0 : waiting;
		waiting = 0;
		rfl_buf_reset(&rows);
	}
	if (fd >= 0)
		(void)close(fd);
}

/* ---- files ---- */

enum have { HAVE_NONE, HAVE_SAME, HAVE_BEGIN, HAVE_OTHER };

/* Compare a file with a source. HAVE_BEGIN: it is a copy made before the source was complete. */
static enum have look(const char *path, const char *from)
{
	FILE *f = fopen(path, "re"), *g = fopen(from, "re");
	enum have is = f && g ? HAVE_SAME : f || rfl_file_exists(path) ? HAVE_OTHER : HAVE_NONE;
	char a[COMPARED_SIZE], b[COMPARED_SIZE];
	size_t n = sizeof(a), want = n;

	while (is == HAVE_SAME && n == sizeof(a)) {
		n = fread(a, 1, sizeof(a), f);
		want = fread(b, 1, sizeof(b), g);
		if (n > want || memcmp(a, b, n) != 0)
			is = HAVE_OTHER;
		else if (n < want)
			is = HAVE_BEGIN;
	}
	if (f && ferror(f))
		is = HAVE_OTHER;
	if (f)
		fclose(f);
	if (g)
		fclose(g);
	return is;
}

/* Copy to the first file of x.txt, x_2.txt, ... that does not exist or has the same contents.
 * @param replaces  whether a file with other contents is replaced; NULL: never
 * @param replaced  set to whether one was; may be NULL
 * @return the path of the copy; "" after an error */
static const char *copy_file(struct job *m, const char *from, const char *dir, const char *name,
			     bool (*replaces)(const char *path, const char *from), bool *replaced)
{
	const char *dot = strrchr(name, '.');
	const int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
	enum have have = HAVE_OTHER;
	const char *path = dir;
	char number[16] = "";

	if (!m->rc)
		m->rc = rfl_file_mkdirs(dir, m->err);
	for (unsigned n = 1; n <= NAME_TRIES && have == HAVE_OTHER && !m->rc; n++) {
		if (n > 1)
			(void)snprintf(number, sizeof(number), "_%u", n);
		path = rfl_arena_printf(m->arena, "%s/%.*s%s%s", dir, stem, name, number,
					dot ? dot : "");
		have = look(path, from);
		if (have == HAVE_OTHER && replaces && replaces(path, from))
			have = HAVE_BEGIN;
	}
	if (m->rc)
		return "";
	if (replaced)
		*replaced = have == HAVE_BEGIN;
	m->sum->files += have == HAVE_NONE;
	m->sum->files_there += have == HAVE_SAME || have == HAVE_BEGIN;
	if (have == HAVE_OTHER)
		m->rc = rfl_fail(m->err, RFL_EIO, EEXIST, "%s/%s: %s", dir, name, strerror(EEXIST));
	else if (have != HAVE_SAME)
		m->rc = rfl_file_copy(from, path, m->err);
	return m->rc ? "" : path;
}

static bool is_whole_file(const char *path)
{
	return rfl_file_exists(path) && !rfl_file_is_temporary(path);
}

/* Copy every file of <directory>/<part> to <to>/<part>. */
static void merge_part(struct job *m, const char *folder, const char *part)
{
	const char *from = path_of(m, folder, part), *to = path_of(m, m->to, part), **files;
	size_t n = 0;

	if (!m->rc)
		m->rc = rfl_dir_list(from, is_whole_file, m->arena, &files, &n, m->err);
	for (size_t i = 0; i < n && !m->rc; i++)
		copy_file(m, files[i], to, rfl_path_base(files[i]), NULL, NULL);
	if (n)
		rfl_dir_sweep(to); /* of merges that were killed */
}

static bool same_member(const json_t *a, const json_t *b, const char *key)
{
	const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);

	return x == y || json_equal(x, y);
}

/* Whether two records agree on what a machine keeps: not its driver, governor or settings. */
static bool has_same_parts(const json_t *a, const json_t *b)
{
	static const char *const of_processor[] = { "vendor", "name", "packages", "cores" };
	const json_t *const x = json_object_get(json_object_get(a, "gpus"), "devices"),
			    *const y = json_object_get(json_object_get(b, "gpus"), "devices");
	bool same = json_array_size(x) == json_array_size(y);

	for (size_t i = 0; i < RFL_ARRAY_LEN(of_processor); i++)
		same = same && same_member(json_object_get(a, "processor"),
					   json_object_get(b, "processor"), of_processor[i]);
	for (size_t i = 0; i < json_array_size(x); i++)
		same = same && same_member(json_array_get(x, i), json_array_get(y, i), "name");
	return same;
}

/* Whether two records are of the same environments on the same machine: the newer one replaces the
 * older one. */
static bool is_same_machine(const char *path, const char *from)
{
	const char *const both[] = { path, from };
	json_t *root[2] = { NULL, NULL }, *all[2], *record;
	bool same = true;
	const char *name;

	for (int i = 0; i < 2; i++) {
		same = rfl_json_load(both[i], &root[i], NULL) == RFL_OK && same;
		all[i] = json_object_get(root[i], "environments");
	}
	same = same && json_object_size(all[0]) == json_object_size(all[1]);
	json_object_foreach(all[0], name, record)
	{
		const json_t *other = json_object_get(all[1], name);

		same = same && other && has_same_parts(record, other);
	}
	json_decref(root[0]);
	json_decref(root[1]);
	return same;
}

/* The name of the copy of a record: its environments, "lab_cpu-lab_gpu"; if it names none, the
 * actual name of the directory, even if it is given as "logs/" or ".". */
static const char *record_name(struct job *m, const char *record, const char *folder)
{
	RFL_AUTOFREE char *whole = realpath(folder, NULL);
	const char *names = "", *name;
	json_t *unused;
	json_auto_t *root = NULL;

	(void)!rfl_json_load(record, &root, NULL);
	json_object_foreach(json_object_get(root, "environments"), name, unused)
	{
		if (rfl_text_is_env_name(name) && strlen(names) + strlen(name) < NAME_MOST)
			names = rfl_arena_printf(m->arena, "%s%s%s", names, *names ? "-" : "",
						 name);
	}
	if (!*names && whole)
		names = rfl_arena_printf(m->arena, "%.*s", NAME_MOST, rfl_path_base(whole));
	return names;
}

/* Copy the machine record, env.json, which replaces an older one of the machine, and its page,
 * which replaces the page of that record only. */
static void merge_records(struct job *m, const char *folder)
{
	const char *record = path_of(m, folder, "env.json"),
		   *page = path_of(m, folder, "env_info.md");
	const char *to = path_of(m, m->to, "env"), *name;
	bool replaced = false;

	if (m->rc)
		return;
	name = rfl_arena_printf(m->arena, "%s.json", record_name(m, record, folder));
	if (rfl_file_exists(record))
		name = rfl_path_base(copy_file(m, record, to, name, is_same_machine, &replaced));
	if (m->rc || !rfl_file_exists(page))
		return;
	name = rfl_arena_printf(m->arena, "%.*s.md", (int)(strlen(name) - strlen(".json")), name);
	if (replaced) {
		m->sum->files_there++;
		m->rc = rfl_file_copy(page, path_of(m, to, name), m->err);
	} else {
		copy_file(m, page, to, name, NULL, NULL);
	}
}

/* ---- counters ---- */

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
			rfl_texts_put(&m->counted, run_of(&c));
	rfl_csv_close(c.csv);
	m->knows_counted = true;
}

static void append_counters(struct job *m, const char *to, const struct rfl_csv *csv,
			    struct rfl_buf *rows, size_t *nrows)
{
	if (!m->rc && *nrows)
		m->rc = rfl_csv_append_rows(to, (const char *const *)csv->columns, csv->ncolumns,
					    rows, m->err);
	m->sum->counters += m->rc ? 0 : *nrows;
	*nrows = 0;
	rfl_buf_reset(rows);
}

static void merge_counters(struct job *m, const char *folder)
{
	const char *from = path_of(m, folder, "counters.csv"), **fields, *last = "";
	const char *to = path_of(m, m->to, "counters.csv");
	struct counters c = { .csv = NULL };
	RFL_AUTO(texts) came = { .arena = NULL }; /* runs of the new rows */
	RFL_AUTO(buf) rows = { .len = 0 };
	size_t nrows = 0;

	if (m->rc)
		return;
	if (rfl_file_size(from) > 0)
		load_counted(m, to);
	if (m->rc || !open_counters(m, from, &c))
		goto done;
	fields = rfl_arena_array(m->arena, c.csv->ncolumns, sizeof(*fields));
	while (next_row(m, &c)) {
		const char *id = rfl_csv_text(c.csv, c.id);

		/* Counters of a run without a ledger row may be incomplete. */
		if (c.csv->torn || (id[0] && !rfl_texts_has(&m->runs, id)) ||
		    rfl_texts_has(&m->counted, run_of(&c)))
			continue;
		/* the rows of a run are appended together, or a later merge would miss the rest */
		if (rows.len > CHUNK_BYTES && strcmp(last, run_of(&c)) != 0)
			append_counters(m, to, c.csv, &rows, &nrows);
		for (size_t i = 0; i < c.csv->ncolumns; i++)
			fields[i] = rfl_csv_text(c.csv, (int)i);
		rfl_csv_write_row(&rows, fields, c.csv->ncolumns);
		nrows++;
		last = rfl_texts_keep(&came, run_of(&c));
	}
	append_counters(m, to, c.csv, &rows, &nrows);
	for (size_t i = 0; i < came.index.n; i++)
		rfl_texts_put(&m->counted, came.index.rows[i]);
done:
	rfl_csv_close(c.csv);
}

enum rfl_rc rfl_ledger_merge(const char *const *folders, size_t n, const char *to,
			     struct rfl_merge *ret, struct rfl_err *err)
{
	struct job m = { .to = to, .arena = rfl_arena_new(), .sum = ret, .err = err };
	const char *path = path_of(&m, to, "metrics.csv"), *lock_path = path_of(&m, to, ".lock");
	int lock = -1;

	*ret = (struct rfl_merge){ 0 };
	if ((m.rc = rfl_file_mkdirs(to, err)) || (m.rc = rfl_file_lock(lock_path, &lock, err)) ||
	    n == 0)
		goto done;
	/* Read the ledgers first and write rows last, so that the files of every merged row are
	 * complete and merged before it, even while a task is running. */
	if (rfl_file_size(path) > 0)
		m.rc = rfl_ledger_each(path, "run_id", 0, add_run, &m.runs, err);
	if (!m.rc)
		find_rows(&m, folders, n);
	for (size_t i = 0; i < n && !m.rc; i++) {
		for (size_t k = 0; rfl_ledger_folders[k]; k++)
			merge_part(&m, folders[i], rfl_ledger_folders[k]);
		merge_part(&m, folders[i], "model_summaries");
		merge_records(&m, folders[i]);
		merge_counters(&m, folders[i]);
	}
	append_rows(&m, path);
	if (m.rc == RFL_OK && ret->rows)
		m.rc = rfl_ledger_mend(path, err); /* the mirror */
done:
	if (lock >= 0) {
		const enum rfl_rc unlocked = rfl_file_unlock(lock, lock_path, err);

		m.rc = m.rc ? m.rc : unlocked;
	}
	free(m.entries);
	free(m.columns);
	rfl_texts_fini(&m.runs);
	rfl_texts_fini(&m.counted);
	rfl_arena_free(m.arena);
	return m.rc;
}
