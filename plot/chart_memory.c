/* chart_memory.c - the timeline of a profiled step: allocated bytes over its layers, beside the
 * prediction. */
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "base/num.h"
#include "base/text.h"
#include "plot/chart_runs.h"

/* The phases in the words of the file, and the names of their lines, of which the last is the
 * prediction. */
static const char *const phases[] = { "forward", "backward", "step" };
static const char *const lines[] = { "forward", "backward", "optimizer", "predicted" };

#define PHASES RFL_ARRAY_LEN(phases)

struct timeline {
	struct rfl_chart *chart;
	double unit;
};

static void add(const struct timeline *t, size_t line, double x, double bytes)
{
	if (!isnan(bytes))
		rfl_chart_add(t->chart, rfl_chart_series(t->chart, 0, lines[line]),
			      rfl_chart_point(x, bytes / t->unit, 1));
}

/* Add the lines in the order of the key. */
static void add_lines(struct rfl_chart *c)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(lines); i++) {
		struct rfl_chart_series *s = rfl_chart_series(c, 0, lines[i]);

		s->marker = i == PHASES - 1 ? 0 : -1; /* the optimizer is one point */
		s->color = (int)i;
		s->dash = i == PHASES;
	}
}

static enum rfl_rc read_run(const char *path, void *ctx, struct rfl_err *err)
{
	static const char *const names[] = { "event", "phase", "peak_bytes", "predicted_bytes" };
	const struct timeline *t = ctx;
	RFL_AUTOPTR(csv) csv = NULL;
	int at[RFL_ARRAY_LEN(names)];
	bool more = true;
	enum rfl_rc rc = rfl_csv_open(path, &csv, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(names) && rc == RFL_OK; i++)
		rc = rfl_csv_need(csv, names[i], &at[i], err);
	while (rc == RFL_OK && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		double x, peak, predicted;
		size_t phase = 0;

		if ((rc = rfl_csv_double(csv, at[0], &x, err)) ||
		    (rc = rfl_csv_double(csv, at[2], &peak, err)) ||
		    (rc = rfl_csv_double(csv, at[3], &predicted, err)))
			break;
		while (phase + 1 < PHASES && strcmp(phases[phase], rfl_csv_text(csv, at[1])) != 0)
			phase++;
		add(t, phase, x, peak);
		add(t, PHASES, x, predicted);
	}
	return rc;
}

/* Find the last run of the environment whose memory was recorded, as a configuration of one run. */
static bool find_last(const struct rfl_chart_runs *of, struct rfl_repeats_config *ret)
{
	const struct rfl_repeats *r = of->repeats;

	ret->n = 0;
	for (const struct rfl_repeats_config *c = r->configs; c < r->configs + r->n; c++)
		for (size_t k = 0; k < c->n && rfl_chart__is_of(of, c); k++)
			if (rfl_text_same(rfl_runs_row(of->in->runs, c->runs[k].run)->mem_status,
					  "ok") &&
			    (ret->n == 0 || c->runs[k].run > ret->runs->run)) {
				*ret = *c;
				ret->runs = &c->runs[k];
				ret->n = 1;
			}
	return ret->n > 0;
}

enum rfl_rc rfl_chart__timeline(struct rfl_chart_runs *of, struct rfl_err *err)
{
	struct rfl_repeats_config last;
	const struct rfl_repeats one = { .metric = of->repeats->metric, .n = 1, .configs = &last };
	char peak[RFL_NUM_MAX], predicted[RFL_NUM_MAX];
	const struct rfl_ledger_row *row;
	struct rfl_chart *c = of->chart;
	struct timeline t;
	enum rfl_rc rc;

	if (!find_last(of, &last))
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no selected run has the memory of a step; measure it with "
				"'roofline run --profile-memory'",
				of->in->env);
	of->repeats = &one;
	if ((rc = rfl_chart__begin(of, RFL_LEDGER_NCOLUMNS, err)))
		return rc;
	row = rfl_runs_row(of->in->runs, last.runs->run);
	t = (struct timeline){ c, row->mem_step_peak_bytes >= 0x1p30 ? 0x1p30 : 0x1p20 };
	c->npanels = 1;
	c->panels[0].x.title = "Layer of the step, in the order of execution";
	c->panels[0].x.zero = c->panels[0].x.whole = c->panels[0].y.zero = true;
	c->panels[0].y.title =
		t.unit > 0x1p20 ? "Allocated memory (GiB)" : "Allocated memory (MiB)";
	c->subtitle =
		rfl_words_join(c->scene, rfl_chart__name(of, row, true), " \xc2\xb7 ", c->subtitle);
	if (row->context_length > 0)
		c->subtitle = rfl_scene_printf(c->scene, "%s \xc2\xb7 %lld tokens", c->subtitle,
					       (long long)row->context_length);
	if (row->attention)
		c->subtitle = rfl_scene_printf(c->scene, "%s \xc2\xb7 %s attention", c->subtitle,
					       row->attention);
	add_lines(c);
	rc = rfl_chart__read(of, &last, read_run, &t, err);
	rfl_chart__drop_empty(&c->panels[0]);
	if (rc == RFL_OK && c->panels[0].n == 0)
		rc = rfl_chart__no_file(of, "peak_bytes", err);
	rfl_chart__note(
		c, "Peak %s at %s; predicted peak %s. One more step of run %s.",
		rfl_num_bytes(row->mem_step_peak_bytes, peak, sizeof(peak)),
		row->mem_peak_at ? row->mem_peak_at : "an unknown layer",
		isnan(row->mem_predicted_bytes)
			? "unknown"
			: rfl_num_bytes(row->mem_predicted_bytes, predicted, sizeof(predicted)),
		row->label ? row->label : row->run_id);
	return rc;
}
