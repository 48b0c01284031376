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

/* Whether a configuration has only runs that ran out of memory. */
static bool is_out(const struct rfl_chart_runs *of, const struct rfl_repeats_config *c)
{
	return c->n == 0 && rfl_text_same(c->row->env, of->env) &&
	       rfl_text_same(c->row->status, "oom");
}

/* The memory of the tables: of the process, it would have the program too. */
static const struct quantity memories[] = {
	{ "Peak memory", "allocated by the engine", RFL_LEDGER_AT_mem_alloc_peak_bytes,
	  RFL_LEDGER_AT_mem_alloc_peak_bytes, 1 },
	{ "Peak memory", "allocated in a profiled step", RFL_LEDGER_AT_mem_step_peak_bytes,
	  RFL_LEDGER_AT_mem_step_peak_bytes, 1 },
};

/* The largest value of the runs of the chart; 0: none was measured */
static double largest(const struct rfl_chart_runs *of, const struct rfl_runs *runs,
		      enum rfl_ledger_at column)
{
	double mean, std, most = 0;

	for (size_t i = 0; i < of->repeats->n; i++) {
		if (!rfl_chart__has(of, &of->repeats->configs[i]))
			continue;
		rfl_chart__mean(runs, &of->repeats->configs[i], column, &mean, &std);
		most = fmax(most, mean); /* ignores NaN */
	}
	return most;
}

/* Choose the panels: the times, and the first measured kind of memory. @return their number */
static size_t choose(const struct rfl_chart_runs *of, const struct rfl_runs *runs,
		     struct quantity ret[RFL_CHART_PANELS], const char **missing)
{
	size_t n = 0;

	*missing = "";
	for (size_t i = 0; i < RFL_ARRAY_LEN(times); i++) {
		if (largest(of, runs, times[i].mean) > 0)
			ret[n++] = times[i];
		else
			*missing = rfl_scene_printf(of->scene, "%s%s%s", *missing,
						    **missing ? ", " : "", times[i].name);
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(memories); i++) {
		const double most = largest(of, runs, memories[i].mean);

		if (!(most > 0))
			continue;
		ret[n] = memories[i];
		ret[n].unit = most >= 0x1p30 ? 0x1p30 : 0x1p20;
		ret[n++].axis = most >= 0x1p30 ? "Peak memory (GiB)" : "Peak memory (MiB)";
		return n;
	}
	*missing = rfl_scene_printf(of->scene, "%s%smemory (--profile-memory)", *missing,
				    **missing ? ", " : "");
	return n;
}

/* Add a configuration to a panel. @return false if its value cannot be on a logarithmic axis */
static bool add(struct rfl_chart *c, size_t panel, struct rfl_chart_series *s,
		const struct rfl_runs *runs, const struct rfl_repeats_config *config,
		const struct quantity *q)
{
	struct rfl_chart_row row = { .x = (double)config->row->context_length, .n = config->n };
	double mean = NAN, std = NAN, within, none;

	if (config->n) {
		rfl_chart__mean(runs, config, q->mean, &mean, &std);
		if (isnan(std) && q->std != q->mean) {
			rfl_chart__mean(runs, config, q->std, &within, &none);
			std = within;
		}
		if (isnan(mean) || mean <= 0)
			return isnan(mean);
	}
	row.y = mean / q->unit;
	row.lo = (mean - std) / q->unit;
	row.hi = (mean + std) / q->unit;
	rfl_chart_add(c, s, row);
	c->panels[panel].y.title = q->axis;
	return true;
}

static void write_note(struct rfl_chart *c, const struct rfl_chart_runs *of,
		       const struct quantity *last, size_t out, size_t negative,
		       const char *missing)
{
	c->note = rfl_scene_printf(c->scene,
				   "n = %s per point%s; error bars: \xc2\xb1 one sample standard "
				   "deviation of %s.",
				   rfl_chart__count(of), of->most > 1 ? " (mean)" : "",
				   of->most > 1 ? "the runs or, of a single run, of its steps"
						: "the steps");
	if (last->std == last->mean)
		c->note = rfl_scene_printf(c->scene, "%s Memory: %s.", c->note, last->name);
	if (out)
		c->note = rfl_scene_printf(c->scene,
					   "%s Crossed marks: out of memory at this context "
					   "length.",
					   c->note);
	if (negative)
		c->note = rfl_scene_printf(c->scene, "%s %zu value%s of 0 or less %s not shown.",
					   c->note, negative, negative == 1 ? "" : "s",
					   negative == 1 ? "is" : "are");
	if (*missing)
		c->note = rfl_scene_printf(c->scene, "%s Not measured: %s.", c->note, missing);
}

enum rfl_rc rfl_chart_scaling(const struct rfl_repeats *r, const struct rfl_runs *runs,
			      const char *env, struct rfl_chart **ret, struct rfl_err *err)
{
	const size_t batch_fact = rfl_fact_find(RFL_LEDGER_AT_batch);
	struct quantity panels[RFL_CHART_PANELS];
	struct rfl_chart_runs of;
	struct rfl_chart *c = NULL;
	size_t lost = 0, out = 0, negative = 0;
	const char *missing;
	enum rfl_rc rc = rfl_chart__begin(r, env, "scaling", "Scaling with the context length",
					  RFL_LEDGER_AT_context_length, &of, &c, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = choose(&of, runs, panels, &missing);
	for (size_t k = 0; k < c->npanels; k++) {
		c->panels[k].x = (struct rfl_chart_axis){
			.title = "Context length (tokens)", .lo = NAN, .hi = NAN, .log = 2
		};
		c->panels[k].y = (struct rfl_chart_axis){ .lo = NAN, .hi = NAN, .log = 10 };
	}
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_repeats_config *config = &r->configs[i];
		const char *name;

		if (!rfl_text_same(config->row->env, env))
			continue;
		if (config->row->context_length < 1 ||
		    (!rfl_chart__has(&of, config) && !is_out(&of, config))) {
			lost++;
			continue;
		}
		out += config->n == 0;
		name = rfl_chart__name(&of, config->row, of.apart.differs[batch_fact]);
		for (size_t k = 0; k < c->npanels; k++) {
			struct rfl_chart_series *s = rfl_chart_series(c, k, name);

			if (!s)
				break;
			rfl_chart__look(&of, config->row, s);
			negative += !add(c, k, s, runs, config, &panels[k]);
		}
	}
	for (size_t k = 0; k < c->npanels; k++)
		rfl_chart__sort(&c->panels[k]);
	if (c->npanels == 0 || c->panels[0].n == 0) {
		rfl_chart_free(c);
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no run has a context length and a time; run a language model",
				env);
	}
	write_note(c, &of, &panels[c->npanels - 1], out, negative, missing);
	rfl_chart__note_lost(c, lost, "a context length or a successful run");
	return rfl_chart__finish(c, ret, err);
}
