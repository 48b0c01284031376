/* chart_decode.c - charts of language models that generate: tokens per second against the batch,
 * beside the most that the ceilings allow, and the memory by kind. */
#include "base/num.h"
#include "base/text.h"
#include "plot/chart_runs.h"
#include "roofline/lm_time.h"

/* Count the steps of a configuration. */
static enum rfl_rc count(const struct rfl_chart_runs *of, const struct rfl_repeats_config *config,
			 const struct rfl_peaks *ceilings, struct rfl_lm_steps *ret,
			 struct rfl_err *err)
{
	RFL_AUTO(buf) net = { .len = 0 };
	const bool file = rfl_runs_network(of->in->runs, config->runs[0].run, &net);

	return rfl_lm_steps_of(config->row, file ? rfl_buf_str(&net) : NULL, ceilings,
			       of->scene->arena, ret, err);
}

/* Add the bounds of the curves: thin lines that look like them. */
static void add_bounds(struct rfl_chart_runs *of)
{
	struct rfl_lm_steps *steps = rfl_arena_array(of->scene->arena, 1, sizeof(*steps));
	const struct rfl_repeats *r = of->repeats;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_chart *c = of->chart;
	bool any = false;

	for (const struct rfl_repeats_config *config = r->configs; config < r->configs + r->n;
	     config++) {
		const char *name;
		struct rfl_chart_series *s;

		if (!rfl_chart__has(of, config))
			continue;
		if (!of->in->ceilings)
			(void)rfl_fail(&why, RFL_EMISSING, 0,
				       "there is no peaks file; create one with 'roofline peaks "
				       "measure', and name it with --peaks");
		else
			(void)count(of, config, of->in->ceilings, steps, &why);
		if (why.rc != RFL_OK)
			break;
		name = rfl_chart__name(of, config->row, false);
		s = rfl_chart_series(c, 0, rfl_scene_printf(c->scene, "%s: bound", name));
		rfl_chart__look(of, config->row, s);
		s->marker = -1;
		s->thin = true;
		rfl_chart_add(c, s,
			      rfl_chart_point((double)config->row->batch,
					      (double)config->row->batch / steps->least_s, 1));
		any = true;
	}
	if (any)
		rfl_chart__note(c, "Thin lines: the most tokens/s that the ceilings allow.");
	if (why.rc != RFL_OK)
		c->warning = rfl_scene_printf(c->scene, "%s: bounds are missing: %s", of->in->env,
					      why.msg);
}

enum rfl_rc rfl_chart__decode(struct rfl_chart_runs *of, struct rfl_err *err)
{
	struct rfl_chart *c = of->chart;
	size_t lost = 0;
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_AT_batch, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = 1;
	c->panels[0].x.title = "Batch size (sequences)";
	c->panels[0].x.log = 2;
	c->panels[0].y.title = "Tokens per second";
	c->panels[0].y.log = 10;
	for (const struct rfl_repeats_config *config = of->repeats->configs;
	     config < of->repeats->configs + of->repeats->n; config++) {
		struct rfl_chart_series *s;

		lost += config->n == 0 && rfl_chart__is_of(of, config);
		if (!rfl_chart__has(of, config))
			continue;
		s = rfl_chart_series(c, 0, rfl_chart__name(of, config->row, false));
		rfl_chart__look(of, config->row, s);
		/* a sample is a sequence, of which a step generates one token */
		rfl_chart_add(c, s,
			      rfl_chart__mean(of, config, RFL_LEDGER_AT_samples_per_s,
					      (double)config->row->batch));
	}
	rfl_chart__note(c, "n = %s per point%s.",
			rfl_words_range(c->scene, of->least, of->most, "run"),
			of->most < 2 ? ""
				     : " (mean); error bars: \xc2\xb1 one sample standard "
				       "deviation");
	add_bounds(of);
	rfl_chart__note_lost(c, lost, "a successful run");
	return RFL_OK;
}

enum rfl_rc rfl_chart__cache(struct rfl_chart_runs *of, struct rfl_err *err)
{
	static const char *const names[] = { "weights", "cache", "workspace" };
	struct rfl_lm_steps *steps = rfl_arena_array(of->scene->arena, 1, sizeof(*steps));
	struct rfl_chart *c = of->chart;
	struct rfl_err why = RFL_ERR_INIT;
	size_t cap = 0, lost = 0;
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_AT_batch, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = 1;
	c->panels[0].y.title = "Memory (GB)";
	c->panels[0].y.zero = true;
	for (size_t k = 0; k < RFL_ARRAY_LEN(names); k++)
		rfl_chart_series(c, 0, names[k])->color = (int)k;
	for (const struct rfl_repeats_config *config = of->repeats->configs;
	     config < of->repeats->configs + of->repeats->n; config++) {
		double end = 0;
		char total[RFL_NUM_MAX];

		if (!rfl_chart__has(of, config))
			continue;
		if (count(of, config, NULL, steps, &why) != RFL_OK) {
			lost++;
			continue;
		}
		const double bytes[] = { steps->run.count.weights_bytes,
					 steps->run.count.cache_bytes,
					 steps->run.count.workspace_bytes };

		for (size_t k = 0; k < RFL_ARRAY_LEN(names); k++) {
			const double lo = end / 1e9;

			end += bytes[k];
			rfl_chart_add(c, &c->panels[0].series[k],
				      (struct rfl_chart_row){ .x = (double)c->nbars,
							      .y = end / 1e9,
							      .lo = lo,
							      .hi = end / 1e9,
							      .n = config->n });
		}
		rfl_arena_reserve(c->scene->arena, &c->bars, &cap, c->nbars + 1);
		c->bars[c->nbars++] = (struct rfl_chart_bar){
			.name = rfl_chart__name(of, config->row, true),
			.end = rfl_scene_printf(c->scene, "%s",
						rfl_num_si(end, "B", 3, total, sizeof(total))),
		};
	}
	if (c->nbars == 0)
		return rfl_fail(err, RFL_EMISSING, 0, "%s: %s", of->in->env, why.msg);
	rfl_chart__note(c, "Counted from the model, not measured: after the last step of the run.");
	rfl_chart__note_lost(c, lost, "a known model");
	return RFL_OK;
}
