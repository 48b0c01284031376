/* chart_epochs.c - a chart of training runs: loss, accuracy and time of training and test per
 * epoch. */
#include <stdlib.h>

#include "base/fields.h"
#include "ledger/epochs.h"
#include "plot/chart_runs.h"

#define TIME  2  /* its panel */
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

/* Add the mean and deviation of a curve over the repeats, epoch by epoch. */
static void add_curve(struct rfl_chart *c, struct rfl_chart_series *s, const struct rfl_epochs *e,
		      size_t curve)
{
	const struct rfl_field *f = &rfl_epoch_fields[curves[curve].column];

	for (size_t i = 0, end; i < e->n; i = end) {
		struct rfl_chart_mean m = { .n = 0 };

		for (end = i; end < e->n && e->rows[end].epoch == e->rows[i].epoch; end++)
			rfl_chart__mean_add(&m, rfl_field_number(f, &e->rows[end]) /
							curves[curve].unit);
		if (m.n > 0 && e->rows[i].epoch != RFL_UNKNOWN)
			rfl_chart_add(c, s, rfl_chart__mean_row(&m, (double)e->rows[i].epoch));
	}
	s->every = s->n > MARKS ? (int)(s->n / 6) + 1 : 0;
}

/* Add the curves of a configuration; its colour is that of its name. @return whether any loss
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
	static const char *const titles[] = { "Loss", "Accuracy (%)", "Time (s)" };
	struct rfl_epochs e = { .n = 0 };
	struct rfl_chart *c = of->chart;
	bool any = false;
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_NCOLUMNS, err);

	c->nramp = 0; /* a colour per configuration */
	c->npanels = RFL_ARRAY_LEN(titles);
	c->panels[TIME].y.log = 10;
	for (size_t i = 0; i < c->npanels; i++) {
		c->panels[i].x.title = "Epoch";
		c->panels[i].x.whole = true;
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
	rfl_epochs_fini(&e);
	return rc;
}
