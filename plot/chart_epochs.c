/* chart_epochs.c - a chart of training runs: loss and accuracy of training and test per epoch. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "plot/chart_runs.h"

#define MARKS 12 /* up to this number of epochs, each has a mark */

/* The columns of a file, with the panel and the unit of each. The curve of the test is solid. */
static const struct {
	const char *column, *set;
	size_t panel;
	double unit;
} curves[] = {
	{ "test_loss", "test", 0, 1 },
	{ "train_loss", "train", 0, 1 },
	{ "test_accuracy", "test", 1, 0.01 },
	{ "train_accuracy", "train", 1, 0.01 },
};

#define CURVES RFL_ARRAY_LEN(curves)

struct epoch {
	double number, values[CURVES];
};

/* The epochs of the repeats of a configuration. */
struct epochs {
	size_t n, cap;
	struct epoch *rows;
};

static enum rfl_rc read_run(const char *path, void *ctx, struct rfl_err *err)
{
	struct epochs *e = ctx;
	struct rfl_csv *csv = NULL;
	int number, columns[CURVES];
	bool more = true;
	enum rfl_rc rc;

	if ((rc = rfl_csv_open(path, &csv, err)) || (rc = rfl_csv_need(csv, "epoch", &number, err)))
		goto done;
	for (size_t k = 0; k < CURVES && rc == RFL_OK; k++)
		rc = rfl_csv_need(csv, curves[k].column, &columns[k], err);
	while (rc == RFL_OK && !(rc = rfl_csv_next(csv, &more, err)) && more) {
		struct epoch one;
		bool any = false;

		rc = rfl_csv_double(csv, number, &one.number, err);
		for (size_t k = 0; k < CURVES && rc == RFL_OK; k++) {
			rc = rfl_csv_double(csv, columns[k], &one.values[k], err);
			any |= rc == RFL_OK && !isnan(one.values[k]);
		}
		if (rc == RFL_OK && any && one.number >= 0 &&
		    !(rc = rfl_grow(&e->rows, &e->cap, e->n + 1, SIZE_MAX, err)))
			e->rows[e->n++] = one;
	}
done:
	rfl_csv_close(csv);
	return rc;
}

static int by_number(const void *a, const void *b)
{
	const struct epoch *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Add the mean and deviation of a curve over the repeats, epoch by epoch. */
static void add_curve(struct rfl_chart *c, struct rfl_chart_series *s, const struct epochs *e,
		      size_t curve)
{
	for (size_t i = 0, end; i < e->n; i = end) {
		struct rfl_chart_mean m = { .n = 0 };

		for (end = i; end < e->n && e->rows[end].number == e->rows[i].number; end++)
			rfl_chart__mean_add(&m, e->rows[end].values[curve] / curves[curve].unit);
		if (m.n > 0)
			rfl_chart_add(c, s, rfl_chart__mean_row(&m, e->rows[i].number));
	}
	s->every = s->n > MARKS ? (int)(s->n / 6) + 1 : 0;
}

/* Add the curves of a configuration; its colour is that of its name. */
static void add_config(struct rfl_chart *c, struct rfl_chart_runs *of,
		       const struct rfl_ledger_row *row, struct epochs *e)
{
	const char *name = rfl_chart__name(of, row, true);

	qsort(e->rows, e->n, sizeof(*e->rows), by_number);
	for (size_t k = 0; k < CURVES; k++) {
		struct rfl_chart_series *s =
			rfl_chart_series(c, curves[k].panel,
					 rfl_scene_printf(c->scene, "%s, %s", name, curves[k].set));

		if (!s)
			return;
		rfl_chart__look_as(of, name, curves[k].set, s);
		add_curve(c, s, e, k);
	}
}

enum rfl_rc rfl_chart_accuracy(const struct rfl_repeats *r, const struct rfl_runs *runs,
			       const char *dir, struct rfl_chart **ret, struct rfl_err *err)
{
	static const char *const titles[] = { "Loss", "Accuracy (%)" };
	struct rfl_chart_files files = { .runs = runs,
					 .dir = dir,
					 .folder = "epochs",
					 .what = "epochs",
					 .writer = "'roofline train'" };
	struct epochs e = { .n = 0 };
	struct rfl_chart_runs of;
	struct rfl_chart *c = NULL;
	size_t all = 0;
	enum rfl_rc rc = rfl_chart__begin(r, NULL, "accuracy", "Loss and accuracy",
					  RFL_LEDGER_NCOLUMNS, &of, &c, err);

	if (rc != RFL_OK)
		return rc;
	c->nramp = 0; /* a colour per configuration */
	c->npanels = RFL_ARRAY_LEN(titles);
	for (size_t i = 0; i < c->npanels; i++) {
		c->panels[i].x.title = "Epoch";
		c->panels[i].y.title = titles[i];
	}
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++) {
		const struct rfl_repeats_config *config = &r->configs[i];

		e.n = 0;
		rc = rfl_chart__read(&of, &files, config, read_run, &e, err);
		if (e.n && rc == RFL_OK)
			add_config(c, &of, config->row, &e);
		all += e.n;
	}
	if (rc == RFL_OK && all == 0)
		rc = rfl_chart__no_file(
			&of, &files, "test_loss, train_loss, test_accuracy or train_accuracy", err);
	if (rc != RFL_OK)
		goto done;
	c->note = rfl_scene_printf(
		c->scene, "%zu training run%s%s.", files.found, files.found == 1 ? "" : "s",
		of.most < 2
			? ""
			: "; means of repeats, error bars: \xc2\xb1 one sample standard deviation");
	rfl_chart__note_files(c, &files);
	rc = rfl_chart__finish(c, ret, err);
	c = NULL;
done:
	free(e.rows);
	rfl_chart_free(c);
	return rc;
}
