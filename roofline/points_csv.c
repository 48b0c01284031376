/* points_csv.c - the columns of roofline_points.csv, and reading and writing points. */
#include "roofline/points.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/runs.h"
#include "roofline/parts.h"
#include "roofline/verdict.h"

#define COLUMN(kind, name, meaning) RFL_FIELD(kind, struct rfl_point, name, meaning),

const struct rfl_field rfl_point_fields[RFL_POINT_NCOLUMNS] = { RFL_POINT_COLUMNS(COLUMN) };

size_t rfl_point_source_len(const char *source)
{
	const char *why = strstr(source, RFL_POINT_NOT_COUNTERS);

	return why ? (size_t)(why - source) : strlen(source);
}

struct rfl_point *rfl_point__array(size_t n)
{
	struct rfl_point *points = rfl_alloc_array(n, sizeof(*points));

	for (size_t i = 0; i < n; i++)
		rfl_fields_clear(rfl_point_fields, RFL_POINT_NCOLUMNS, &points[i]);
	return points;
}

const char *rfl_part_word(const char *kind)
{
	if (!kind || !*kind)
		return "part";
	return strcmp(kind, "op") == 0 ? "operator" : kind;
}

struct rfl_points *rfl_points_new(size_t n)
{
	struct rfl_points *pts = rfl_alloc_array(1, sizeof(*pts));

	*pts = (struct rfl_points){ .n = n,
				    .points = rfl_point__array(n),
				    .arena = rfl_arena_new() };
	return pts;
}

void rfl_points_free(struct rfl_points *points)
{
	if (!points)
		return;
	rfl_arena_free(points->arena);
	free(points->points);
	free(points);
}

static enum rfl_rc read_point(const struct rfl_csv *csv, const int *at, struct rfl_points *pts,
			      struct rfl_point *p, struct rfl_err *err)
{
	const char *bound;
	enum rfl_rc rc;

	rfl_fields_clear(rfl_point_fields, RFL_POINT_NCOLUMNS, p);
	rc = rfl_fields_read(rfl_point_fields, RFL_POINT_NCOLUMNS, csv, at, pts->arena, p, err);
	if (rc == RFL_OK && !p->env)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: column 'env' is empty; fill it in",
			      csv->path, csv->line);
	if (rc == RFL_OK && (p->time_share < 0 || p->time_share > 1 + 1e-6))
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s:%zu: column 'time_share': %g is not a share; use 0 to 1",
			      csv->path, csv->line, p->time_share);
	/* older files have the bound by the intensity alone */
	if (rc == RFL_OK && (bound = rfl_point_bound(p)) && !rfl_text_same(bound, p->bound))
		p->bound = rfl_arena_strdup(pts->arena, bound);
	return rc;
}

/* Read an open table and close it. */
static enum rfl_rc read_points(struct rfl_csv *take_csv, struct rfl_points **ret,
			       struct rfl_err *err)
{
	/* Columns required for a figure; a file written by hand may have no others. */
	static const char *const needed[] = { "env", "ai", "attained_gflops" };
	RFL_AUTOPTR(csv) csv = take_csv;
	RFL_AUTOPTR(points) pts = rfl_points_new(0);
	int at[RFL_POINT_NCOLUMNS];
	size_t cap = 0;
	bool more = true;
	enum rfl_rc rc = RFL_OK;

	if (rfl_foreign_is_ours(csv))
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: contains runs, not points; convert it with 'roofline points "
			      "--output FILE'",
			      csv->path);
	for (size_t i = 0; i < RFL_ARRAY_LEN(needed) && rc == RFL_OK; i++)
		rc = rfl_csv_need(csv, needed[i], at, err);
	if (rc == RFL_OK)
		rc = rfl_fields_bind(rfl_point_fields, RFL_POINT_NCOLUMNS, csv, at, err);
	csv->hashed = true;
	while (rc == RFL_OK && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		rfl_reserve(&pts->points, &cap, pts->n + 1);
		rc = read_point(csv, at, pts, &pts->points[pts->n++], err);
	}
	if (rc == RFL_OK) {
		rfl_hash64_text(csv->hash, pts->hash);
		*ret = pts;
		pts = NULL;
	}
	return rc;
}

enum rfl_rc rfl_points_load(const char *path, struct rfl_points **ret, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc = rfl_csv_open(path, &csv, err);

	return rc ? rc : read_points(csv, ret, err);
}

enum rfl_rc rfl_points_loads(const char *text, size_t len, const char *name,
			     struct rfl_points **ret, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc = rfl_csv_open_text(text, len, name, &csv, err);

	return rc ? rc : read_points(csv, ret, err);
}

void rfl_points_write(struct rfl_buf *out, const struct rfl_points *points)
{
	rfl_fields_write_header(rfl_point_fields, RFL_POINT_NCOLUMNS, out);
	for (size_t k = 0; k < points->n; k++)
		rfl_fields_write(rfl_point_fields, RFL_POINT_NCOLUMNS, &points->points[k], out);
}

enum rfl_rc rfl_points_save(const char *path, const struct rfl_points *points, struct rfl_err *err)
{
	RFL_AUTO(buf) out = { .len = 0 };
	enum rfl_rc rc;

	rfl_points_write(&out, points);
	if ((rc = rfl_buf_check(&out, path, err)) == RFL_OK &&
	    (rc = rfl_file_mkdirs_for(path, err)) == RFL_OK)
		rc = rfl_file_write(path, rfl_buf_str(&out), out.len, err);
	return rc;
}
