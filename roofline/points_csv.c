/*
 * points_csv.c - roofline_points.csv: reader and writer, both made from the list of columns.
 */
#include "roofline/points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"
#include "ledger/foreign.h"

enum column_kind { TEXT, INT, REAL };

struct column {
	enum column_kind kind;
	const char *name;
	size_t offset;
};

#define COLUMN_ROW(k, n, meaning) { k, #n, offsetof(struct rfl_point, n) },
static const struct column columns[] = { RFL_POINT_COLUMNS(COLUMN_ROW) };
#define NCOLUMNS RFL_ARRAY_LEN(columns)

/* What a figure cannot be drawn without. All other columns may be absent from a hand-made file. */
static const char *const needed[] = { "env", "ai", "attained_gflops" };

static char **text_at(const struct rfl_point *p, const struct column *c)
{
	return (char **)((char *)(uintptr_t)p + c->offset);
}

static int64_t *int_at(const struct rfl_point *p, const struct column *c)
{
	return (int64_t *)(void *)((char *)(uintptr_t)p + c->offset);
}

static double *real_at(const struct rfl_point *p, const struct column *c)
{
	return (double *)(void *)((char *)(uintptr_t)p + c->offset);
}

void rfl_point_init(struct rfl_point *point)
{
	for (size_t i = 0; i < NCOLUMNS; i++) {
		const struct column *c = &columns[i];

		if (c->kind == TEXT)
			*text_at(point, c) = NULL;
		else if (c->kind == INT)
			*int_at(point, c) = -1;
		else
			*real_at(point, c) = NAN;
	}
}

void rfl_point_fini(struct rfl_point *point)
{
	for (size_t i = 0; i < NCOLUMNS; i++)
		if (columns[i].kind == TEXT) {
			free(*text_at(point, &columns[i]));
			*text_at(point, &columns[i]) = NULL;
		}
}

enum rfl_rc rfl_point_set(char **field, const char *text, struct rfl_err *err)
{
	char *copy = NULL;

	if (text && *text) {
		copy = strdup(text);
		if (!copy)
			return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	}
	free(*field);
	*field = copy;
	return RFL_OK;
}

size_t rfl_point_source_len(const char *source)
{
	const char *why = strstr(source, RFL_POINT_NOT_COUNTERS);

	return why ? (size_t)(why - source) : strlen(source);
}

struct rfl_points *rfl_points_new(size_t n)
{
	struct rfl_points *pts = calloc(1, sizeof(*pts));

	if (!pts)
		return NULL;
	pts->points = rfl_alloc_array(n ? n : 1, sizeof(*pts->points));
	if (!pts->points) {
		free(pts);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		rfl_point_init(&pts->points[i]);
	pts->n = n;
	return pts;
}

void rfl_points_free(struct rfl_points *points)
{
	if (!points)
		return;
	for (size_t i = 0; i < points->n; i++)
		rfl_point_fini(&points->points[i]);
	free(points->points);
	free(points);
}

static enum rfl_rc read_point(const struct rfl_csv *csv, const int *at, struct rfl_point *p,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < NCOLUMNS && rc == RFL_OK; i++) {
		const struct column *c = &columns[i];

		if (c->kind == TEXT)
			rc = rfl_point_set(text_at(p, c), rfl_csv_text(csv, at[i]), err);
		else if (c->kind == INT)
			rc = rfl_csv_int(csv, at[i], -1, int_at(p, c), err);
		else
			rc = rfl_csv_double(csv, at[i], real_at(p, c), err);
	}
	if (rc == RFL_OK && !p->env)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: column 'env' is empty",
			      rfl_csv_path(csv), rfl_csv_line(csv));
	return rc;
}

/* Room for one more point, doubling; the new one knows nothing. */
static struct rfl_point *add_point(struct rfl_points *pts, size_t *cap)
{
	if (pts->n == *cap) {
		size_t more = *cap * 2;
		struct rfl_point *grown = rfl_alloc_array(more, sizeof(*grown));

		if (!grown)
			return NULL;
		memcpy(grown, pts->points, pts->n * sizeof(*grown));
		free(pts->points);
		pts->points = grown;
		*cap = more;
	}
	rfl_point_init(&pts->points[pts->n]);
	return &pts->points[pts->n++];
}

enum rfl_rc rfl_points_load(const char *path, struct rfl_points **ret, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	struct rfl_points *pts = NULL;
	int at[NCOLUMNS], ignored;
	size_t cap = 1;
	bool more = true;
	enum rfl_rc rc;

	rc = rfl_csv_open(path, &csv, err);
	if (rc == RFL_OK && rfl_foreign_is_ours(csv))
		rc = rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s: contains runs, not points; 'roofline points --output FILE' makes "
			"points of them",
			path);
	for (size_t i = 0; i < RFL_ARRAY_LEN(needed) && rc == RFL_OK; i++)
		rc = rfl_csv_need(csv, needed[i], &ignored, err);
	if (rc != RFL_OK)
		goto done;
	for (size_t i = 0; i < NCOLUMNS; i++)
		at[i] = rfl_csv_find(csv, columns[i].name);

	pts = rfl_points_new(0);
	if (!pts) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	rfl_csv_hash_begin(csv);
	while ((rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		struct rfl_point *p = add_point(pts, &cap);

		if (!p)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		else
			rc = read_point(csv, at, p, err);
		if (rc != RFL_OK)
			goto done;
	}
	if (rc != RFL_OK)
		goto done;
	rfl_hash64_text(rfl_csv_hash(csv), pts->hash);
	*ret = pts;
	pts = NULL;
done:
	rfl_points_free(pts);
	rfl_csv_close(csv);
	return rc;
}

void rfl_points_write(struct rfl_buf *out, const struct rfl_points *points)
{
	const char *fields[NCOLUMNS];
	char numbers[NCOLUMNS][RFL_NUM_MAX];

	for (size_t i = 0; i < NCOLUMNS; i++)
		fields[i] = columns[i].name;
	rfl_csv_write_row(out, fields, NCOLUMNS);

	for (size_t k = 0; k < points->n; k++) {
		const struct rfl_point *p = &points->points[k];

		for (size_t i = 0; i < NCOLUMNS; i++) {
			const struct column *c = &columns[i];

			fields[i] = numbers[i];
			numbers[i][0] = '\0';
			if (c->kind == TEXT)
				fields[i] = *text_at(p, c) ? *text_at(p, c) : "";
			else if (c->kind == REAL)
				rfl_num_exact(*real_at(p, c), numbers[i]);
			else if (*int_at(p, c) != -1)
				(void)snprintf(numbers[i], sizeof(numbers[i]), "%lld",
					       (long long)*int_at(p, c));
		}
		rfl_csv_write_row(out, fields, NCOLUMNS);
	}
}

enum rfl_rc rfl_points_save(const char *path, const struct rfl_points *points, struct rfl_err *err)
{
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rfl_points_write(&out, points);
	rc = rfl_buf_check(&out, path, err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs_for(path, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, rfl_buf_str(&out), out.len, err);
	rfl_buf_fini(&out);
	return rc;
}
