/*
 * merge_counters.c - counters.csv of a task into the common one: run by run.
 */
#include "ledger/matrix/merge_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/file.h"

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

static enum rfl_rc add_counted(struct rfl_merge__job *m, const char *run, struct rfl_err *err)
{
	if (m->counted.n && strcmp(m->counted.items[m->counted.n - 1], run) == 0)
		return RFL_OK; /* a run has many rows, one after the other */
	return rfl_merge__add_id(&m->counted, run) ? RFL_OK : rfl_merge__no_memory(m->to, err);
}

/* Once: which runs the common file has. */
static enum rfl_rc load_counted(struct rfl_merge__job *m, const char *path, struct rfl_err *err)
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
	rfl_merge__sort_ids(&m->counted);
	return rc;
}

/* Rows of a run that has no row in the ledger yet may not all be there. */
static bool is_wanted(const struct rfl_merge__job *m, const struct rfl_csv *csv, int id, int label)
{
	const char *run = rfl_csv_text(csv, id);

	if (rfl_csv_torn(csv) || (run[0] && !rfl_merge__has_id(&m->runs, run)))
		return false;
	return !rfl_merge__has_id(&m->counted, run_of(csv, id, label));
}

/* The wanted rows of an open file. @param came  the runs that they are of */
static enum rfl_rc collect(const struct rfl_merge__job *m, struct rfl_csv *csv, int id, int label,
			   const char **fields, struct rfl_buf *rows, struct rfl_merge__ids *came,
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
		if (!rfl_merge__add_id(came, run_of(csv, id, label)))
			return rfl_merge__no_memory(m->to, err);
	}
	return rc ? rc : rfl_buf_check(rows, rfl_csv_path(csv), err);
}

static enum rfl_rc copy_counters(struct rfl_merge__job *m, const char *from, const char *to,
				 struct rfl_err *err)
{
	struct rfl_merge__ids came = { .items = NULL };
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
		rc = rfl_merge__no_memory(from, err);
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		header[i] = rfl_csv_column(csv, i);
	rc = collect(m, csv, id, label, fields, &rows, &came, err);
	if (rc == RFL_OK && came.n)
		rc = rfl_csv_append_rows(to, header, n, &rows, err);
	for (size_t i = 0; i < came.n && rc == RFL_OK; i++)
		rc = add_counted(m, came.items[i], err);
	rfl_merge__sort_ids(&m->counted);
	if (rc == RFL_OK)
		m->sum->counters += came.n;
done:
	free(fields);
	free(header);
	rfl_csv_close(csv);
	rfl_buf_fini(&rows);
	rfl_merge__ids_fini(&came);
	return rc;
}

enum rfl_rc rfl_merge__counters(struct rfl_merge__job *m, const char *folder, struct rfl_err *err)
{
	char *from = rfl_path_join(folder, "counters.csv");
	char *to = rfl_path_join(m->to, "counters.csv");
	bool there;
	enum rfl_rc rc = from && to ? rfl_merge__is_there(from, &there, err)
				    : rfl_merge__no_memory(m->to, err);
	const bool some = rc == RFL_OK && rfl_file_size(from) > 0;

	if (some)
		rc = load_counted(m, to, err);
	if (some && rc == RFL_OK)
		rc = copy_counters(m, from, to, err);
	free(from);
	free(to);
	return rc;
}
