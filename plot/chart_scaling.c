/* chart_scaling.c - a chart of runs: times and memory against the context length. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "plot/chart_runs.h"

/* A panel. */
struct quantity {
	const char *axis, *name;
	enum rfl_ledger_at mean, std; /* std: the same column if there is none */
	double unit;
};

static const struct quantity times[] = {
	{ "Forward (ms)", "forward", RFL_LEDGER_AT_fwd_ms_mean, RFL_LEDGER_AT_fwd_ms_std, 1 },
	{ "Backward (ms)", "backward", RFL_LEDGER_AT_bwd_ms_mean, RFL_LEDGER_AT_bwd_ms_std, 1 },
	{ "Whole step (ms)", "step", RFL_LEDGER_AT_step_ms_mean, RFL_LEDGER_AT_step_ms_std, 1 },
};

/* The memory of the tables: of the process, it would have the program too. */
static const struct quantity memories[] = {
	{ "Peak memory", "allocated by the engine", RFL_LEDGER_AT_mem_alloc_peak_bytes,
	  RFL_LEDGER_AT_mem_alloc_peak_bytes, 1 },
	{ "Peak memory", "allocated in a profiled step", RFL_LEDGER_AT_mem_step_peak_bytes,
	  RFL_LEDGER_AT_mem_step_peak_bytes, 1 },
};

/* The largest value of the runs of the chart; 0: none was measured */
static double largest(const struct rfl_chart_runs *of, enum rfl_ledger_at column)
{
	const struct rfl_repeats *r = of->repeats;
	double most = 0;

	for (const struct rfl_repeats_config *c = r->configs; c < r->configs + r->n; c++)
		if (rfl_chart__has(of, c))
			most = fmax(most, rfl_chart__mean(of, c, column, 0).y); /* ignores NaN */
	return most;
}

/* Choose the panels: the times, and the first measured kind of memory. @return their number */
static size_t choose(const struct rfl_chart_runs *of, struct quantity ret[RFL_CHART_PANELS],
		     const char **missing)
{
	double most = 0;
	size_t n = 0;

	*missing = "";
	for (size_t i = 0; i < RFL_ARRAY_LEN(times); i++)
		if (largest(of, times[i].mean) > 0)
			ret[n++] = times[i];
		else
			*missing = rfl_words_join(of->scene, *missing, ", ", times[i].name);
	for (size_t i = 0; i < RFL_ARRAY_LEN(memories) && !(most > 0); i++) {
		most = largest(of, memories[i].mean);
		ret[n] = memories[i];
		ret[n].unit = most >= 0x1p30 ? 0x1p30 : 0x1p20;
		ret[n].axis = most >= 0x1p30 ? "Peak memory (GiB)" : "Peak memory (MiB)";
	}
	if (most > 0)
		return n + 1;
	*missing = rfl_words_join(of->scene, *missing, ", ", "memory (--profile-memory)");
	return n;
}

/* Add a configuration to a panel. */
static void add(const struct rfl_chart_runs *of, size_t panel, struct rfl_chart_series *s,
		const struct rfl_repeats_config *config, const struct quantity *q)
{
	struct rfl_chart_row row =
		rfl_chart__mean(of, config, q->mean, (double)config->row->context_length);
	double std = row.hi - row.y;

	if (config->n && isnan(row.y))
		return;
	if (isnan(std) && q->std != q->mean)
		std = rfl_chart__mean(of, config, q->std, 0).y;
	row.lo = (row.y - std) / q->unit;
	row.hi = (row.y + std) / q->unit;
	row.y /= q->unit;
	row.n = config->n;
	rfl_chart_add(of->chart, s, row);
	of->chart->panels[panel].y.title = q->axis;
}

enum rfl_rc rfl_chart__scaling(struct rfl_chart_runs *of, struct rfl_err *err)
{
	struct quantity panels[RFL_CHART_PANELS];
	size_t lost = 0, out = 0;
	struct rfl_chart *c = of->chart;
	const struct quantity *last;
	const char *missing;
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_AT_context_length, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = choose(of, panels, &missing);
	for (size_t k = 0; k < c->npanels; k++) {
		c->panels[k].x.title = "Context length (tokens)";
		c->panels[k].x.log = 2;
		c->panels[k].y.log = 10;
	}
	for (const struct rfl_repeats_config *config = of->repeats->configs;
	     config < of->repeats->configs + of->repeats->n; config++) {
		const bool batch = of->apart.differs[rfl_fact_find(RFL_LEDGER_AT_batch)];
		const char *name;

		if (!rfl_chart__is_of(of, config))
			continue;
		/* without a run, only what ran out of memory is drawn */
		if (config->row->context_length < 1 ||
		    (config->n == 0 && !rfl_text_same(config->row->status, "oom"))) {
			lost++;
			continue;
		}
		out += config->n == 0;
		name = rfl_chart__name(of, config->row, batch);
		for (size_t k = 0; k < c->npanels; k++) {
			struct rfl_chart_series *s = rfl_chart_series(c, k, name);

			rfl_chart__look(of, config->row, s);
			add(of, k, s, config, &panels[k]);
		}
	}
	if (c->npanels == 0 || c->panels[0].n == 0)
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no run has a context length and a time; run a language model",
				of->in->env);
	rfl_chart__note(c,
			"n = %s per point%s; times of a run are means over its steps; error bars: "
			"\xc2\xb1 one sample standard deviation of %s.",
			rfl_words_range(c->scene, of->least, of->most, "run"),
			of->most > 1 ? " (mean of the runs)" : "",
			of->most > 1 ? "the runs or, of a single run, of its steps" : "the steps");
	last = &panels[c->npanels - 1];
	if (last->std == last->mean)
		rfl_chart__note(c, "Memory: %s.", last->name);
	if (out)
		rfl_chart__note(c, "Crossed marks: out of memory at this context length.");
	if (*missing)
		rfl_chart__note(c, "Not measured: %s.", missing);
	rfl_chart__note_lost(c, lost, "a context length or a successful run");
	return RFL_OK;
}
