/*
 * matrix_gaps.c - what of a matrix is not done, and why: a reason once, however many runs have it.
 */
#include "cli/cmd/matrix_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define SHOWN 2 /* labels of a row; more are counted */

static const struct rfl_column columns[] = {
	{ .key = "labels", .title = "Not done", .kind = RFL_COLUMN_TEXT },
	{ .key = "runs", .title = "Runs", .kind = RFL_COLUMN_INT },
	{ .key = "status", .title = "Status", .kind = RFL_COLUMN_TEXT },
	{ .key = "reason", .title = "Reason", .kind = RFL_COLUMN_TEXT },
};

/* The gaps of one row: they lie side by side. */
struct reason {
	const struct rfl_matrix_gap *first;
	size_t n;
};

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_why(const struct rfl_matrix_gap *a, const struct rfl_matrix_gap *b)
{
	int order = compare_texts(a->status, b->status);

	return order ? order : compare_texts(a->reason, b->reason);
}

static int by_why(const void *a, const void *b)
{
	const struct rfl_matrix_gap *x = a, *y = b;
	int order = compare_why(x, y);

	return order ? order : (x->run > y->run) - (x->run < y->run);
}

static int by_first_run(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	return (x->first->run > y->first->run) - (x->first->run < y->first->run);
}

/* "lab_vgg16_fp32_bs2_run1, lab_vgg16_fp32_bs4_run1 and 7 more" */
static void write_labels(const struct rfl_matrix *m, const struct reason *r, struct rfl_buf *out)
{
	char label[RFL_LABEL_MAX + 1];

	for (size_t i = 0; i < r->n && i < SHOWN; i++) {
		const size_t run = r->first[i].run;

		rfl_matrix_label(&m->cells[run % m->ncells], (int)(run / m->ncells) + 1, label);
		rfl_buf_printf(out, "%s%s", i > 0 ? ", " : "", label);
	}
	if (r->n > SHOWN)
		rfl_buf_printf(out, " and %zu more", r->n - SHOWN);
}

static void add_row(struct rfl_table *t, const struct rfl_matrix *m, const struct reason *r)
{
	struct rfl_buf labels;

	rfl_buf_init(&labels, 0);
	write_labels(m, r, &labels);
	rfl_table_text(t, rfl_buf_str(&labels));
	rfl_table_int(t, (int64_t)r->n);
	rfl_table_text(t, r->first->status);
	rfl_table_text(t, r->first->reason);
	rfl_buf_fini(&labels);
}

enum rfl_rc rfl_matrix_gaps_render(const struct rfl_matrix *m, struct rfl_matrix_gap *gaps,
				   size_t n, enum rfl_format format, struct rfl_buf *out,
				   struct rfl_err *err)
{
	struct reason *reasons;
	struct rfl_table *t = NULL;
	size_t nreasons = 0;
	enum rfl_rc rc;

	if (n == 0)
		return RFL_OK;
	reasons = rfl_alloc_array(n, sizeof(*reasons));
	t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	if (!reasons || !t) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
		goto done;
	}
	qsort(gaps, n, sizeof(*gaps), by_why);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || compare_why(&gaps[i - 1], &gaps[i]) != 0)
			reasons[nreasons++].first = &gaps[i];
		reasons[nreasons - 1].n++;
	}
	qsort(reasons, nreasons, sizeof(*reasons), by_first_run);
	for (size_t i = 0; i < nreasons; i++)
		add_row(t, m, &reasons[i]);
	rc = rfl_table_render(t, format, out, err);
done:
	rfl_table_free(t);
	free(reasons);
	return rc;
}
