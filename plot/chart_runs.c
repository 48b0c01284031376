/* chart_runs.c - charts of the ledger: a quantity against the batch size, the phases of a step. */
#include "plot/chart_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "plot/figure.h"

/* clang-format off */
const struct rfl_chart_quantity rfl_chart_quantities[] = {
	{ "throughput", "samples_per_s", "Throughput", "Throughput (samples/s)", 1 },
	{ "memory", "mem_alloc_peak_bytes", "Peak memory", "Peak memory allocated by the engine (GB)", 1e9 },
	{ "memory", "device_memory_peak_bytes", "Peak memory", "Peak memory in use on the device (GB)", 1e9 },
	{ "memory", "host_peak_bytes", "Peak memory", "Peak resident memory of the process (GB)", 1e9 },
	{ .kind = NULL },
};
/* clang-format on */

/* ---- names, colours and marks ---- */

bool rfl_chart__has(const struct rfl_chart_runs *runs, const struct rfl_repeats_config *c)
{
	return c->n > 0 && rfl_text_same(c->row->env, runs->env);
}

/* Facts with values that need no name before them. */
static bool needs_no_name(enum rfl_ledger_at column)
{
	return column == RFL_LEDGER_AT_precision || column == RFL_LEDGER_AT_mode ||
	       column == RFL_LEDGER_AT_layout || column == RFL_LEDGER_AT_device_name ||
	       column == RFL_LEDGER_AT_optimizer || column == RFL_LEDGER_AT_backend;
}

/* Append the value of a fact to a text, after a separator. */
static const char *with_fact(struct rfl_scene *s, const char *text, const char *separator,
			     const struct rfl_fact *f, const struct rfl_ledger_row *row)
{
	char number[RFL_NUM_MAX];
	const bool plain = needs_no_name(f->column);

	return rfl_scene_printf(s, "%s%s%s%s%s", text, *text ? separator : "", plain ? "" : f->name,
				plain ? "" : " ",
				rfl_field_write(&rfl_ledger_fields[f->column], row, number));
}

const char *rfl_chart__way(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row)
{
	const char *way = "";

	for (size_t i = 0; i < rfl_nfacts; i++) {
		const enum rfl_ledger_at column = rfl_facts[i].column;

		if (rfl_facts_apart_told(&runs->apart, i) && column != RFL_LEDGER_AT_model &&
		    (runs->lengths ||
		     (column != RFL_LEDGER_AT_warmup && column != RFL_LEDGER_AT_iters)) &&
		    rfl_fact_known(&rfl_facts[i], row))
			way = with_fact(runs->scene, way, ", ", &rfl_facts[i], row);
	}
	return way;
}

const char *rfl_chart__name(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row,
			    bool batch)
{
	const char *way = rfl_chart__way(runs, row);
	const char *model = rfl_words_model(runs->scene, row->model);

	if (batch)
		model = rfl_scene_printf(runs->scene, "%s, batch %lld", model,
					 (long long)row->batch);
	return *way ? rfl_scene_printf(runs->scene, "%s, %s", model, way) : model;
}

/* The index of a text in a list; it is added if missing. */
static int index_of(struct rfl_scene *s, struct rfl_chart_list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], text) == 0)
			return (int)i;
	if (!rfl_scene_grow(s, &list->items, list->n, 1, &list->cap, sizeof(*list->items)))
		return 0;
	list->items[list->n] = text;
	return (int)list->n++;
}

void rfl_chart__look(struct rfl_chart_runs *runs, const char *model, const char *way,
		     struct rfl_chart_series *s)
{
	const int color = index_of(runs->scene, &runs->models, model);
	const int dash = index_of(runs->scene, &runs->ways, way);

	s->color = color;
	s->dash = dash;
	s->marker = color + dash / RFL_CHART_DASHES;
}

const char *rfl_chart__count(const struct rfl_chart_runs *runs)
{
	if (runs->least == runs->most)
		return rfl_scene_printf(runs->scene, "%zu run%s", runs->most,
					runs->most == 1 ? "" : "s");
	return rfl_scene_printf(runs->scene, "%zu to %zu runs", runs->least, runs->most);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether two configurations have the same name. */
static bool names_repeat(struct rfl_chart_runs *runs)
{
	const struct rfl_repeats *r = runs->repeats;
	const char **names = rfl_scene_array(runs->scene, r->n, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; names && i < r->n; i++)
		if (rfl_chart__has(runs, &r->configs[i]))
			names[n++] = rfl_chart__name(runs, r->configs[i].row, true);
	if (n)
		qsort(names, n, sizeof(*names), by_text);
	for (size_t i = 1; i < n; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			return true;
	return false;
}

enum rfl_rc rfl_chart__begin(const struct rfl_repeats *r, const char *env, const char *stem,
			     const char *title, struct rfl_chart_runs *runs, struct rfl_chart **ret,
			     struct rfl_err *err)
{
	static const enum rfl_ledger_at shared[] = { RFL_LEDGER_AT_device_name,
						     RFL_LEDGER_AT_precision, RFL_LEDGER_AT_mode,
						     RFL_LEDGER_AT_layout,
						     RFL_LEDGER_AT_optimizer };
	struct rfl_chart *c = rfl_chart_new(stem, env);

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "chart: out of memory");
	*runs = (struct rfl_chart_runs){
		.scene = c->scene, .repeats = r, .env = env, .least = SIZE_MAX
	};
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_repeats_config *config = &r->configs[i];

		if (!rfl_chart__has(runs, config))
			continue;
		rfl_facts_apart_add(&runs->apart, config->row);
		runs->least = config->n < runs->least ? config->n : runs->least;
		runs->most = config->n > runs->most ? config->n : runs->most;
	}
	if (runs->most == 0) {
		rfl_chart_free(c);
		return rfl_fail(err, RFL_EMISSING, 0, "%s: no run has a value of %s", env,
				r->metric->name);
	}
	runs->lengths = names_repeat(runs);
	c->title = rfl_scene_printf(c->scene, "%s: %s", title, env);
	for (size_t k = 0; k < RFL_ARRAY_LEN(shared); k++)
		for (size_t i = 0; i < rfl_nfacts; i++)
			if (rfl_facts[i].column == shared[k] && runs->apart.first[i] &&
			    !runs->apart.differs[i] &&
			    rfl_fact_known(&rfl_facts[i], runs->apart.first[i]))
				c->subtitle = with_fact(c->scene, c->subtitle, " \xc2\xb7 ",
							&rfl_facts[i], runs->apart.first[i]);
	*ret = c;
	return RFL_OK;
}

static void note_lost(struct rfl_chart *c, size_t lost, const char *what)
{
	if (lost)
		c->note = rfl_scene_printf(
			c->scene, "%s %zu configuration%s without %s %s not shown.", c->note, lost,
			lost == 1 ? "" : "s", what, lost == 1 ? "is" : "are");
}

static bool look_alike(const struct rfl_chart_series *a, const struct rfl_chart_series *b)
{
	return a->color % RFL_THEME_COLORS == b->color % RFL_THEME_COLORS &&
	       a->dash % RFL_CHART_DASHES == b->dash % RFL_CHART_DASHES &&
	       a->marker % RFL_CHART_MARKS == b->marker % RFL_CHART_MARKS;
}

static void note_alike(struct rfl_chart *c)
{
	const struct rfl_chart_panel *p = &c->panels[0];
	size_t alike = 0;

	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < i; k++)
			if (look_alike(&p->series[i], &p->series[k])) {
				alike++;
				break;
			}
	if (alike)
		c->note = rfl_scene_printf(
			c->scene, "%s %zu line%s an earlier one; select fewer with --model.",
			c->note, alike, alike == 1 ? " looks like" : "s look like");
}

enum rfl_rc rfl_chart__finish(struct rfl_chart *take_c, struct rfl_chart **ret, struct rfl_err *err)
{
	enum rfl_rc rc;

	note_alike(take_c);
	rc = rfl_scene_check(take_c->scene, err);
	if (rc == RFL_OK)
		*ret = take_c;
	else
		rfl_chart_free(take_c);
	return rc;
}

/* ---- a quantity against the batch size ---- */

static int by_x(const void *a, const void *b)
{
	const struct rfl_chart_row *x = a, *y = b;

	return (x->x > y->x) - (x->x < y->x);
}

enum rfl_rc rfl_chart_batches(const struct rfl_repeats *r, const char *env,
			      const struct rfl_chart_quantity *q, struct rfl_chart **ret,
			      struct rfl_err *err)
{
	struct rfl_chart_runs runs;
	struct rfl_chart *c = NULL;
	struct rfl_chart_panel *p;
	size_t lost = 0;
	enum rfl_rc rc = rfl_chart__begin(r, env, q->kind, q->title, &runs, &c, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = 1;
	p = &c->panels[0];
	p->x = (struct rfl_chart_axis){
		.title = "Batch size (samples per step)", .lo = NAN, .hi = NAN, .log2 = true
	};
	p->y = (struct rfl_chart_axis){ .title = q->axis, .lo = NAN, .hi = NAN, .zero = true };
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_repeats_config *config = &r->configs[i];
		const double mean = config->stats.mean / q->unit, std = config->stats.std / q->unit;
		struct rfl_chart_series *s;

		lost += config->n == 0 && rfl_text_same(config->row->env, env);
		if (!rfl_chart__has(&runs, config))
			continue;
		s = rfl_chart_series(c, 0, rfl_chart__name(&runs, config->row, false));
		if (!s)
			break;
		rfl_chart__look(&runs, config->row->model, rfl_chart__way(&runs, config->row), s);
		rfl_chart_add(c, s,
			      (struct rfl_chart_row){ .x = (double)config->row->batch,
						      .y = mean,
						      .lo = mean - std,
						      .hi = mean + std,
						      .n = config->n });
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->series[i].n)
			qsort(p->series[i].rows, p->series[i].n, sizeof(*p->series[i].rows), by_x);
	c->note = rfl_scene_printf(
		c->scene, "n = %s per point%s.", rfl_chart__count(&runs),
		runs.most < 2 ? "" : " (mean); error bars: \xc2\xb1 one sample standard deviation");
	note_lost(c, lost, "a successful run");
	return rfl_chart__finish(c, ret, err);
}

/* ---- phases ---- */

static const struct {
	const char *name;
	size_t offset; /* in struct rfl_run_times */
} phases[] = {
	{ "forward", offsetof(struct rfl_run_times, fwd_ms_mean) },
	{ "backward", offsetof(struct rfl_run_times, bwd_ms_mean) },
	{ "optimizer", offsetof(struct rfl_run_times, opt_ms_mean) },
	{ "waiting for data", offsetof(struct rfl_run_times, data_wait_ms_mean) },
};

/* The mean of a phase over the repeats that have it, in ms per step; NaN if none has. */
static double phase_mean(const struct rfl_runs *runs, const struct rfl_repeats_config *c, size_t i)
{
	double sum = 0;
	size_t n = 0;

	for (size_t k = 0; k < c->n; k++) {
		const char *times = (const char *)rfl_runs_times(runs, c->runs[k].run);
		const double ms = *(const double *)(const void *)(times + phases[i].offset);

		if (isnan(ms))
			continue;
		sum += ms;
		n++;
	}
	return n ? sum / (double)n : (double)NAN;
}

enum rfl_rc rfl_chart_phases(const struct rfl_repeats *r, const struct rfl_runs *runs,
			     const char *env, struct rfl_chart **ret, struct rfl_err *err)
{
	struct rfl_chart_runs of;
	struct rfl_chart *c = NULL;
	size_t lost = 0, cap = 0;
	enum rfl_rc rc = rfl_chart__begin(r, env, "phases", "Phases of a step", &of, &c, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = 1;
	c->panels[0].y = (struct rfl_chart_axis){
		.title = "Time per sample (ms)", .lo = NAN, .hi = NAN, .zero = true
	};
	for (size_t k = 0; k < RFL_ARRAY_LEN(phases); k++) {
		struct rfl_chart_series *s = rfl_chart_series(c, 0, phases[k].name);

		if (s)
			s->color = (int)k;
	}
	for (size_t i = 0; i < r->n && !c->scene->failed; i++) {
		const struct rfl_repeats_config *config = &r->configs[i];
		const double batch = (double)config->row->batch;
		double end = 0;

		if (!rfl_chart__has(&of, config))
			continue;
		for (size_t k = 0; k < RFL_ARRAY_LEN(phases); k++) {
			const double ms = phase_mean(runs, config, k) / batch;

			if (isnan(ms))
				continue;
			rfl_chart_add(c, &c->panels[0].series[k],
				      (struct rfl_chart_row){ .x = (double)c->nbars,
							      .y = end + ms,
							      .lo = end,
							      .hi = end + ms,
							      .n = config->n });
			end += ms;
		}
		if (end <= 0) {
			lost++;
			continue;
		}
		if (rfl_scene_grow(c->scene, &c->bars, c->nbars, 1, &cap, sizeof(*c->bars)))
			c->bars[c->nbars++] = (struct rfl_chart_bar){
				.name = rfl_chart__name(&of, config->row, true),
				.end = rfl_scene_printf(c->scene, "%s ms per step",
							rfl_words_number(c->scene, end * batch)),
			};
	}
	if (c->nbars == 0) {
		rfl_chart_free(c);
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no run has times of its phases (fwd_ms_mean, bwd_ms_mean, "
				"opt_ms_mean, data_wait_ms_mean)",
				env);
	}
	c->note = rfl_scene_printf(c->scene,
				   "n = %s per bar (mean). Time outside of these phases is "
				   "not included.",
				   rfl_chart__count(&of));
	for (size_t k = 0; k < RFL_ARRAY_LEN(phases); k++)
		if (c->panels[0].series[k].n < c->nbars)
			c->note = rfl_scene_printf(c->scene, "%s Not measured in %zu of %zu: %s.",
						   c->note, c->nbars - c->panels[0].series[k].n,
						   c->nbars, phases[k].name);
	note_lost(c, lost, "times of phases");
	return rfl_chart__finish(c, ret, err);
}
