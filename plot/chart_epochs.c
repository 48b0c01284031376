/* chart_epochs.c - a chart of training runs: loss, accuracy and time of training and test per
 * epoch, and accuracy against the time of training. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/fields.h"
#include "ledger/epochs.h"
#include "plot/chart_runs.h"

#define TIME  2  /* its panel */
#define SPENT 3  /* the panel with the time of training, from its start, as x */
#define MARKS 12 /* up to this number of epochs, each has a mark */

/* The columns of a file, with the panel and the unit of each. The curve of the test is solid. */
static const struct {
	enum rfl_epoch_at column;
	const char *set;
	size_t panel;
	double unit;
} curves[] = {
	{ RFL_EPOCH_AT_test_loss, "test", 0, 1 },
	{ RFL_EPOCH_AT_train_loss, "train", 0, 1 },
	{ RFL_EPOCH_AT_test_accuracy, "test", 1, 0.01 },
	{ RFL_EPOCH_AT_train_accuracy, "train", 1, 0.01 },
	{ RFL_EPOCH_AT_test_s, "test", TIME, 1 },
	{ RFL_EPOCH_AT_train_s, "train", TIME, 1 },
	{ RFL_EPOCH_AT_test_accuracy, "test", SPENT, 0.01 },
	{ RFL_EPOCH_AT_train_accuracy, "train", SPENT, 0.01 },
};

static enum rfl_rc read_run(const char *path, void *epochs, struct rfl_err *err)
{
	return rfl_epochs_load(path, epochs, err);
}

static int by_number(const void *a, const void *b)
{
	const struct rfl_epoch *x = a, *y = b;

	return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

/* The mean of a field over the repeats of an epoch. */
static struct rfl_chart_row mean_of(const struct rfl_epoch *rows, size_t n,
				    enum rfl_epoch_at column, double unit, double *values)
{
	for (size_t i = 0; i < n; i++)
		values[i] = rfl_field_number(&rfl_epoch_fields[column], &rows[i]) / unit;
	return rfl_chart__mean_row(values, n, (double)rows[0].epoch);
}

/* Add the mean and deviation of a curve over the repeats, epoch by epoch. */
static void add_curve(struct rfl_chart *c, struct rfl_chart_series *s, const struct rfl_epochs *e,
		      size_t curve)
{
	double *values = rfl_arena_array(c->scene->arena, e->n, sizeof(*values)), spent = 0;
	int64_t due = 1; /* the times of all epochs before are in `spent` */

	for (size_t i = 0, end; i < e->n; i = end) {
		const struct rfl_epoch *rows = &e->rows[i];
		struct rfl_chart_row row;

		for (end = i; end < e->n && e->rows[end].epoch == rows->epoch; end++)
			;
		if (rows->epoch == RFL_UNKNOWN)
			continue;
		row = mean_of(rows, end - i, curves[curve].column, curves[curve].unit, values);
		if (curves[curve].panel == SPENT) {
			spent += mean_of(rows, end - i, RFL_EPOCH_AT_train_s, 1, values).y;
			if (rows->epoch != due++)
				spent = NAN;
			row.x = spent;
		}
		if (row.n > 0 && !isnan(row.x))
			rfl_chart_add(c, s, row);
	}
	s->every = s->n > MARKS ? (int)(s->n / 6) + 1 : 0;
}

/* Add the curves of a configuration; its colour follows from its name. @return whether any loss
 * or accuracy is known */
static bool add_config(struct rfl_chart_runs *of, const struct rfl_ledger_row *row,
		       struct rfl_epochs *e)
{
	struct rfl_chart *c = of->chart;
	const char *name = rfl_chart__name(of, row, true);
	bool any = false;

	qsort(e->rows, e->n, sizeof(*e->rows), by_number);
	for (size_t k = 0; k < RFL_ARRAY_LEN(curves); k++) {
		const char *of_set = rfl_scene_printf(c->scene, "%s, %s", name, curves[k].set);
		struct rfl_chart_series *s = rfl_chart_series(c, curves[k].panel, of_set);

		rfl_chart__look_as(of, name, curves[k].set, s);
		add_curve(c, s, e, k);
		any |= s->n > 0 && curves[k].panel != TIME;
	}
	return any;
}

enum rfl_rc rfl_chart__accuracy(struct rfl_chart_runs *of, struct rfl_err *err)
{
	static const char *const titles[] = { "Loss", "Accuracy (%)", "Time (s)", "Accuracy (%)" };
	RFL_AUTO(epochs) e = { .n = 0 };
	struct rfl_chart *c = of->chart;
	bool any = false;
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_NCOLUMNS, err);

	c->nramp = 0; /* a colour per configuration */
	c->npanels = RFL_ARRAY_LEN(titles);
	c->panels[TIME].y.log = 10;
	for (size_t i = 0; i < c->npanels; i++) {
		c->panels[i].x.title = i == SPENT ? "Training time (s)" : "Epoch";
		c->panels[i].x.whole = i != SPENT;
		c->panels[i].y.title = titles[i];
	}
	for (size_t i = 0; i < of->repeats->n && rc == RFL_OK; i++) {
		const struct rfl_repeats_config *config = &of->repeats->configs[i];

		e.n = 0;
		rc = rfl_chart__read(of, config, read_run, &e, err);
		if (e.n && rc == RFL_OK)
			any |= add_config(of, config->row, &e);
	}
	if (rc == RFL_OK && !any)
		rc = rfl_chart__no_file(
			of, "test_loss, train_loss, test_accuracy or train_accuracy", err);
	rfl_chart__note(c, "%s%s.", rfl_words_count(c->scene, of->found, "training run"),
			of->most < 2 ? ""
				     : "; means of repeats, error bars: \xc2\xb1 one sample "
				       "standard deviation");
	rfl_chart__note_files(of);
	return rc;
}
