/* chart_memory.c - the timeline of a profiled step: allocated bytes over its layers, beside the
 * prediction. */
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "base/num.h"
#include "plot/chart.h"

/* The lines: the phases, in the words of the file, and the prediction. */
static const char *const lines[] = { "forward", "backward", "step", "predicted" };
enum { PREDICTED = 3 };

static void add(struct rfl_chart *c, int line, double x, double y)
{
	struct rfl_chart_series *s = isnan(y) ? NULL : rfl_chart_series(c, 0, lines[line]);

	if (!s)
		return;
	s->marker = strcmp(lines[line], "step") == 0 ? 0 : -1; /* one point */
	s->color = line;
	s->dash = line == PREDICTED;
	rfl_chart_add(c, s, (struct rfl_chart_row){ .x = x, .y = y, .lo = NAN, .hi = NAN, .n = 1 });
}

enum rfl_rc rfl_chart_timeline(const struct rfl_ledger_row *row, const char *path,
			       struct rfl_chart **ret, struct rfl_err *err)
{
	static const char *const names[] = { "event", "phase", "peak_bytes", "predicted_bytes" };
	const double unit = row->mem_step_peak_bytes >= 0x1p30 ? 0x1p30 : 0x1p20;
	char peak[RFL_NUM_MAX], predicted[RFL_NUM_MAX];
	struct rfl_chart *c = rfl_chart_new("timeline", row->env);
	struct rfl_csv *csv = NULL;
	int at[RFL_ARRAY_LEN(names)];
	bool more = true;
	enum rfl_rc rc;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "chart: out of memory");
	c->npanels = 1;
	c->panels[0].x.title = "Layer of the step, in the order of execution";
	c->panels[0].x.zero = c->panels[0].y.zero = true;
	c->panels[0].y.title = unit > 0x1p20 ? "Allocated memory (GiB)" : "Allocated memory (MiB)";
	c->title = rfl_scene_printf(c->scene, "Memory of a step: %s", row->env);
	c->subtitle = rfl_scene_printf(c->scene, "%s, batch %lld, %s, %s", row->model,
				       (long long)row->batch, row->precision, row->mode);
	if (row->context_length > 0)
		c->subtitle = rfl_scene_printf(c->scene, "%s, %lld tokens", c->subtitle,
					       (long long)row->context_length);
	c->note = rfl_scene_printf(
		c->scene, "Peak %s at %s; predicted peak %s. One more step of run %s.",
		rfl_num_bytes(row->mem_step_peak_bytes, peak, sizeof(peak)),
		row->mem_peak_at ? row->mem_peak_at : "an unknown layer",
		isnan(row->mem_predicted_bytes)
			? "unknown"
			: rfl_num_bytes(row->mem_predicted_bytes, predicted, sizeof(predicted)),
		row->label);
	rc = rfl_csv_open(path, &csv, err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(names) && rc == RFL_OK; i++)
		rc = rfl_csv_need(csv, names[i], &at[i], err);
	while (rc == RFL_OK && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		double x, peak_bytes, predicted_bytes;
		int line = 0;

		if ((rc = rfl_csv_double(csv, at[0], &x, err)) ||
		    (rc = rfl_csv_double(csv, at[2], &peak_bytes, err)) ||
		    (rc = rfl_csv_double(csv, at[3], &predicted_bytes, err)))
			break;
		while (line + 1 < PREDICTED && strcmp(lines[line], rfl_csv_text(csv, at[1])) != 0)
			line++;
		add(c, line, x, peak_bytes / unit);
		add(c, PREDICTED, x, predicted_bytes / unit);
	}
	rfl_csv_close(csv);
	if (rc == RFL_OK && c->panels[0].n == 0)
		rc = rfl_fail(err, RFL_EMISSING, 0, "%s: no row has a value of peak_bytes", path);
	if (rc == RFL_OK)
		rc = rfl_scene_check(c->scene, err);
	if (rc == RFL_OK)
		*ret = c;
	else
		rfl_chart_free(c);
	return rc;
}
