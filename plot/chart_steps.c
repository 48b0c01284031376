/* chart_steps.c - charts of step files: the distribution and drift of step times; the loss.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "plot/chart_runs.h"
#include "plot/figure.h"

#define QUANTILES 200 /* points of a distribution */
#define MARKS     6   /* approximate number on a line */
#define MANY      200 /* from this number of steps on, the extremes may be outside the axis */

/* The steps of the repeats of a configuration. */
struct steps {
	size_t n, cap;
	struct sample {
		double step; /* number in the measured window */
		double value;
	} * samples;
	double end;         /* last step + 1 */
	bool relative;      /* times relative to the median of the run; otherwise the loss */
	const char *column; /* of the files */
	size_t windows;     /* maximum number of points of a line over the steps */
	int64_t iters;      /* of each run; -1: unknown */
	size_t nan; /* number of steps omitted because their value is unknown or not finite */
};

/* Sorted values of samples [from, n). */
static double *sorted(const struct steps *s, size_t from)
{
	double *values = rfl_alloc_array(s->n - from, sizeof(*values));

	for (size_t i = from; i < s->n; i++)
		values[i - from] = s->samples[i].value;
	qsort(values, s->n - from, sizeof(*values), rfl_by_double);
	return values;
}

/* Read the steps of one run, without rows that have no finite value or a time of 0. */
static enum rfl_rc read_run(const char *path, void *ctx, struct rfl_err *err)
{
	struct steps *s = ctx;
	const size_t first = s->n;
	RFL_AUTOPTR(csv) csv = NULL;
	double median;
	RFL_AUTOFREE double *values = NULL;
	int step, column;
	size_t rows = 0;
	bool more = true;
	enum rfl_rc rc;

	if ((rc = rfl_csv_open(path, &csv, err)) || (rc = rfl_csv_need(csv, "step", &step, err)) ||
	    (rc = rfl_csv_need(csv, s->column, &column, err)))
		return rc;
	for (;;) {
		struct sample one;
		const char *text;

		if ((rc = rfl_csv_next(csv, &more, err)) || !more ||
		    (rc = rfl_csv_double(csv, step, &one.step, err)))
			break;
		rows++;
		text = rfl_csv_text(csv, column);
		if (rfl_num_is_missing(text, strlen(text))) {
			s->nan++;
			continue;
		}
		if ((rc = rfl_csv_double(csv, column, &one.value, err)))
			break;
		if (!(one.step >= 0) || isnan(one.value) || (s->relative && one.value <= 0))
			continue;
		rfl_reserve(&s->samples, &s->cap, s->n + 1);
		s->samples[s->n++] = one;
		s->end = fmax(s->end, one.step + 1);
	}
	if (rc == RFL_OK)
		rc = rfl_runs_check_steps(csv, rows, s->iters, err);
	if (rc != RFL_OK || s->n == first || !s->relative)
		return rc;
	values = sorted(s, first);
	median = rfl_stats_percentile(values, s->n - first, 50);
	for (size_t i = first; i < s->n; i++)
		s->samples[i].value /= median;
	return rc;
}

/* The distribution: the share of steps up to a time. */
static void add_distribution(struct rfl_chart *c, struct rfl_chart_series *s, const double *values,
			     size_t n)
{
	const size_t points = n < QUANTILES ? n : QUANTILES;

	for (size_t i = 0; i < points; i++) {
		const size_t at = (i + 1) * n / points - 1;

		rfl_chart_add(c, s,
			      rfl_chart_point(values[at], 100 * (double)(at + 1) / (double)n, n));
	}
}

/* The median of all repeats in windows of steps. */
static void add_drift(struct rfl_chart *c, struct rfl_chart_series *s, const struct steps *steps)
{
	const size_t windows = (size_t)fmin(steps->end, (double)steps->windows);
	RFL_AUTOFREE double *values = rfl_alloc_array(steps->n, sizeof(*values));

	for (size_t w = 0; w < windows; w++) {
		const double lo = floor((double)w * steps->end / (double)windows);
		const double hi = floor((double)(w + 1) * steps->end / (double)windows);
		size_t n = 0;

		for (size_t i = 0; i < steps->n; i++)
			if (steps->samples[i].step >= lo && steps->samples[i].step < hi)
				values[n++] = steps->samples[i].value;
		if (n == 0)
			continue;
		qsort(values, n, sizeof(*values), rfl_by_double);
		rfl_chart_add(c, s,
			      rfl_chart_point((lo + hi + 1) / 2, /* from 1 */
					      rfl_stats_percentile(values, n, 50), n));
	}
}

/* Add a configuration to all panels, and widen the range of the distributions. */
static void add_config(struct rfl_chart_runs *of, const struct rfl_ledger_row *row,
		       const struct steps *steps)
{
	const char *name = rfl_chart__name(of, row, true);
	struct rfl_chart *c = of->chart;
	struct rfl_chart_axis *x = &c->panels[0].x;
	RFL_AUTOFREE double *values = sorted(steps, 0);

	for (size_t panel = 0; panel < c->npanels; panel++) {
		struct rfl_chart_series *s = rfl_chart_series(c, panel, name);

		rfl_chart__look(of, row, s);
		if (panel == 0 && steps->relative)
			add_distribution(c, s, values, steps->n);
		else
			add_drift(c, s, steps);
		s->every = (int)(s->n / MARKS) + 1;
	}
	if (steps->relative) {
		const double cut = steps->n < MANY ? 0 : 0.5;

		x->lo = fmin(x->lo, rfl_stats_percentile(values, steps->n, cut));
		x->hi = fmax(x->hi, rfl_stats_percentile(values, steps->n, 100 - cut));
	}
}

enum rfl_rc rfl_chart__steps(struct rfl_chart_runs *of, struct rfl_err *err)
{
	const bool relative = strcmp(of->kind->name, "steps") == 0;
	struct steps steps = { .relative = relative,
			       .column = relative ? "step_ms" : "loss",
			       .windows = relative ? 20 : 100 };
	struct rfl_chart *c = of->chart;
	struct rfl_chart_panel *last = &c->panels[relative];
	size_t all = 0;
	bool cut = false; /* extremes may be outside the axis */
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_NCOLUMNS, err);

	c->npanels = relative ? 2 : 1;
	c->panels[0].x.title = "Step time / median of its run";
	if (relative) {
		c->panels[0].y.title = "Share of steps (%)";
		c->panels[0].y.zero = true;
		c->panels[0].y.hi = 100;
	}
	last->x.title = "Step";
	last->x.zero = last->x.whole = true;
	last->y.title = relative ? c->panels[0].x.title : "Loss";
	for (size_t i = 0; i < of->repeats->n && rc == RFL_OK; i++) {
		const struct rfl_repeats_config *config = &of->repeats->configs[i];

		steps.n = 0;
		steps.end = 0;
		steps.iters = config->row->iters;
		rc = rfl_chart__read(of, config, read_run, &steps, err);
		if (steps.n && rc == RFL_OK)
			add_config(of, config->row, &steps);
		all += steps.n;
		cut |= relative && steps.n >= MANY;
	}
	if (rc == RFL_OK && all == 0)
		rc = rfl_chart__no_file(of, steps.column, err);
	rfl_chart__note(
		c,
		"%zu steps of %s. %sedians over the runs of a configuration, in up to %zu windows.",
		all, rfl_words_count(c->scene, of->found, "run"),
		relative ? "Left: all steps of a configuration, cumulative. Right: m" : "M",
		steps.windows);
	rfl_chart__note_files(of);
	if (steps.nan)
		rfl_chart__note(c, "Skipped: %s without a finite %s.",
				rfl_words_count(c->scene, steps.nan, "step"),
				relative ? "time" : "loss");
	if (cut)
		rfl_chart__note(c, "The slowest and fastest 0.5 %% of a configuration may be "
				   "outside the left axis.");
	free(steps.samples);
	return rc;
}
