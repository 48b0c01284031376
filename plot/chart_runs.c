/* chart_runs.c - charts of the ledger: a quantity against the batch size, the phases of a step. */
#include "plot/chart_runs.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"
#include "ledger/step.h"
#include "roofline/step_time.h"

#define RUNS(name_, title_) .name = (name_), .metric = "samples_per_s", .title = (title_)
#define OVER_BATCHES(name_, title_, metric_, axis_, unit_)                                         \
	.name = (name_), .metric = (metric_), .title = (title_), .axis = (axis_), .unit = (unit_), \
	.make = rfl_chart__batches
#define MEMORY(metric_, axis_) OVER_BATCHES("memory", "Peak memory", metric_, axis_ " (GB)", 1e9)
#define STEPS                  .folder = "steps", .writer = "'roofline run'", .make = rfl_chart__steps

const struct rfl_chart_kind rfl_chart_kinds[] = {
	{ OVER_BATCHES("throughput", "Throughput", "samples_per_s", "Throughput (samples/s)", 1) },
	{ MEMORY("mem_alloc_peak_bytes", "Peak memory allocated by the engine") },
	{ MEMORY("device_memory_peak_bytes", "Peak memory in use on the device") },
	{ MEMORY("host_peak_bytes", "Peak resident memory of the process") },
	{ OVER_BATCHES("power", "Power of the GPU", "power_w", "Mean power (W)", 1) },
	{ RUNS("phases", "Phases of a step"), .modes = RFL_CHART_PASSES,
	  .make = rfl_chart__phases },
	{ RUNS("scaling", "Scaling with the context length"), .modes = RFL_CHART_PASSES,
	  .make = rfl_chart__scaling },
	{ RUNS("decode", "Tokens per second"), .modes = RFL_CHART_DECODE,
	  .make = rfl_chart__decode },
	{ RUNS("cache", "Memory of a decode step"), .modes = RFL_CHART_DECODE,
	  .make = rfl_chart__cache },
	{ RUNS("steps", "Step times"), STEPS },
	{ RUNS("loss", "Training loss"), STEPS, .losses = true },
	{ RUNS("accuracy", "Loss, accuracy and time"), .folder = "epochs",
	  .writer = "'roofline train'", .together = true, .make = rfl_chart__accuracy },
	{ RUNS("timeline", "Memory of a step"), .folder = "memory",
	  .writer = "'roofline run --profile-memory'", .make = rfl_chart__timeline },
	{ .name = "bandwidth", .title = "Memory bandwidth", .make = rfl_chart__bandwidth },
	{ .name = NULL },
};

const struct rfl_chart_kind *rfl_chart_find(const char *name)
{
	const struct rfl_chart_kind *k = rfl_chart_kinds;

	while (k->name && strcmp(k->name, name) != 0)
		k++;
	assert(k->name);
	return k;
}

/* ---- names, colours and marks ---- */

bool rfl_chart__is_of(const struct rfl_chart_runs *of, const struct rfl_repeats_config *c)
{
	return !of->in->env || rfl_text_same(c->row->env, of->in->env);
}

bool rfl_chart__has(const struct rfl_chart_runs *of, const struct rfl_repeats_config *c)
{
	return c->n > 0 && rfl_chart__is_of(of, c);
}

static const char *fact_words(struct rfl_scene *s, const struct rfl_fact *f,
			      const struct rfl_ledger_row *row)
{
	char number[RFL_NUM_MAX];

	return rfl_words_fact(s, f->name,
			      rfl_field_write(&rfl_ledger_fields[f->column], row, number));
}

/* The fields except model and batch that distinguish runs: "amp, 8 workers"; "" if none. */
static const char *way_of(struct rfl_chart_runs *of, const struct rfl_ledger_row *row,
			  bool precision)
{
	const char *way = "";

	for (size_t i = 0; i < rfl_nfacts; i++) {
		const enum rfl_ledger_at column = rfl_facts[i].column;

		if (rfl_facts_apart_told(&of->apart, i) && column != RFL_LEDGER_AT_model &&
		    column != of->across && (precision || column != RFL_LEDGER_AT_precision) &&
		    (of->lengths ||
		     (column != RFL_LEDGER_AT_warmup && column != RFL_LEDGER_AT_iters)) &&
		    !(column == RFL_LEDGER_AT_autocast &&
		      rfl_text_same(row->autocast, row->precision)) &&
		    rfl_fact_known(&rfl_facts[i], row))
			way = rfl_words_join(of->scene, way, ", ",
					     fact_words(of->scene, &rfl_facts[i], row));
	}
	return way;
}

const char *rfl_chart__name(struct rfl_chart_runs *of, const struct rfl_ledger_row *row, bool batch)
{
	const char *name = rfl_words_model(of->scene, row->model);

	if (batch)
		name = rfl_scene_printf(of->scene, "%s, batch %lld", name, (long long)row->batch);
	if (!of->in->env)
		name = rfl_scene_printf(of->scene, "%s: %s", row->env, name);
	return rfl_words_join(of->scene, name, ", ", way_of(of, row, true));
}

/* The index of a text in a list; it is added if missing. */
static int index_of(struct rfl_scene *s, struct rfl_chart_list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], text) == 0)
			return (int)i;
	rfl_arena_reserve(s->arena, &list->items, &list->cap, list->n + 1);
	list->items[list->n] = text;
	return (int)list->n++;
}

/* Choose what the colours show. */
static void choose_colors(struct rfl_chart_runs *of)
{
	const struct rfl_repeats *r = of->repeats;
	const bool batch = of->across != RFL_LEDGER_AT_batch;
	struct rfl_chart_list ways = { .n = 0 }, precisions = { .n = 0 };
	bool named = true;

	of->batches = rfl_arena_array(of->scene->arena, r->n, sizeof(*of->batches));
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_ledger_row *row = r->configs[i].row;
		const char *way;

		/* lines of failed runs are only in a chart against the context */
		if (!rfl_chart__is_of(of, &r->configs[i]) ||
		    (r->configs[i].n == 0 && of->across != RFL_LEDGER_AT_context_length))
			continue;
		way = way_of(of, row, true);
		named &= *way != '\0';
		(void)index_of(of->scene, &of->models, row->model);
		(void)index_of(of->scene, &precisions, row->precision);
		(void)index_of(of->scene, &ways, way);
		of->batches[of->nbatches++] = row->batch;
	}
	if (of->models.n > RFL_MARKER_COUNT)
		of->by = RFL_BY_MODEL;
	else if (precisions.n > 1 && precisions.n <= RFL_THEME_COLORS)
		of->by = RFL_BY_PRECISION;
	else if (batch && of->apart.differs[rfl_fact_find(RFL_LEDGER_AT_batch)])
		of->by = RFL_BY_BATCH;
	else if (named && ways.n > 1 && ways.n <= RFL_THEME_COLORS)
		of->by = RFL_BY_WAY;
	else
		of->by = RFL_BY_MODEL;
	if (of->by == RFL_BY_BATCH)
		of->nbatches = rfl_distinct(of->batches, of->nbatches);
}

void rfl_chart__look_as(struct rfl_chart_runs *of, const char *color, const char *dash,
			struct rfl_chart_series *s)
{
	s->color = index_of(of->scene, &of->colors, color);
	s->dash = index_of(of->scene, &of->dashes, dash);
	s->marker = s->color + s->dash / RFL_DASH_COUNT;
}

void rfl_chart__look(struct rfl_chart_runs *of, const struct rfl_ledger_row *row,
		     struct rfl_chart_series *s)
{
	const bool batch = of->across != RFL_LEDGER_AT_batch && of->by != RFL_BY_BATCH;
	const char *way = way_of(of, row, true), *rest = way;

	if (of->by == RFL_BY_PRECISION)
		rest = way_of(of, row, false);
	else if (of->by == RFL_BY_WAY)
		rest = "";
	if (batch)
		rest = rfl_scene_printf(of->scene, "%lld %s", (long long)row->batch, rest);
	if (of->by != RFL_BY_MODEL) /* marks may be far apart */
		rest = rfl_scene_printf(of->scene, "%s %s", row->model, rest);
	rfl_chart__look_as(of,
			   of->by == RFL_BY_PRECISION ? row->precision
			   : of->by == RFL_BY_WAY     ? way
						      : row->model,
			   rest, s);
	if (of->by == RFL_BY_MODEL)
		return;
	s->marker = of->models.n > 1 ? index_of(of->scene, &of->models, row->model) : s->dash;
	for (size_t i = 0; of->by == RFL_BY_BATCH && i < of->nbatches; i++)
		if (of->batches[i] == row->batch)
			s->color = (int)i;
}

enum rfl_rc rfl_chart__read(struct rfl_chart_runs *of, const struct rfl_repeats_config *c,
			    rfl_chart__reader *read, void *ctx, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t k = 0; rfl_chart__has(of, c) && k < c->n && rc == RFL_OK; k++) {
		const char *path = NULL; /* NULL: a row of another program */
		RFL_AUTO(buf) out = { .len = 0 };

		if (rfl_runs_beside(of->in->runs, c->runs[k].run, of->in->dir, of->kind->folder,
				    &out))
			path = rfl_scene_printf(of->scene, "%s", rfl_buf_str(&out));
		if (path && rfl_file_exists(path)) {
			rc = read(path, ctx, err);
			of->found++;
			continue;
		}
		of->lost++;
		of->first_lost = of->first_lost ? of->first_lost : path;
	}
	return rc;
}

enum rfl_rc rfl_chart__no_file(const struct rfl_chart_runs *of, const char *columns,
			       struct rfl_err *err)
{
	const char *first = of->first_lost, *env = of->in->env ? of->in->env : "";
	const char *colon = of->in->env ? ": " : "", *what = of->kind->folder;

	if (of->found)
		return rfl_fail(err, RFL_EMISSING, 0, "%s%sno file of %s has a value in column %s",
				env, colon, what, columns);
	return rfl_fail(err, RFL_EMISSING, 0, "%s%sno run has a file of %s%s%s%s", env, colon, what,
			first ? ", such as " : "; only ", first ? first : of->kind->writer,
			first ? "" : " writes them");
}

void rfl_chart__note_files(struct rfl_chart_runs *of)
{
	if (of->lost)
		rfl_chart__note(of->chart, "%zu run%s no file of %s.", of->lost,
				of->lost == 1 ? " has" : "s have", of->kind->folder);
}

struct rfl_chart_row rfl_chart__mean_row(double *values, size_t n, double x)
{
	struct rfl_stats stats;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(values[i]))
			values[kept++] = values[i];
	stats = rfl_stats_of(values, kept);
	return (struct rfl_chart_row){ .x = x,
				       .y = stats.mean,
				       .lo = stats.mean - stats.std,
				       .hi = stats.mean + stats.std,
				       .n = kept };
}

struct rfl_chart_row rfl_chart__mean(const struct rfl_chart_runs *of,
				     const struct rfl_repeats_config *c, enum rfl_ledger_at column,
				     double x)
{
	double *values = rfl_arena_array(of->scene->arena, c->n, sizeof(*values));

	for (size_t k = 0; k < c->n; k++)
		values[k] = rfl_field_number(&rfl_ledger_fields[column],
					     rfl_runs_row(of->in->runs, c->runs[k].run));
	return rfl_chart__mean_row(values, c->n, x);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether two configurations have the same name. */
static bool names_repeat(struct rfl_chart_runs *of)
{
	const struct rfl_repeats *r = of->repeats;
	const char **names = rfl_arena_array(of->scene->arena, r->n, sizeof(*names));
	char number[RFL_NUM_MAX];
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (rfl_chart__has(of, &r->configs[i]))
			names[n++] = rfl_scene_printf(
				of->scene, "%s %s", rfl_chart__name(of, r->configs[i].row, true),
				rfl_field_write(&rfl_ledger_fields[of->across], r->configs[i].row,
						number));
	if (n)
		qsort(names, n, sizeof(*names), by_text);
	for (size_t i = 1; i < n; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			return true;
	return false;
}

enum rfl_rc rfl_chart__begin(struct rfl_chart_runs *of, enum rfl_ledger_at across,
			     struct rfl_err *err)
{
	static const enum rfl_ledger_at shared[] = { RFL_LEDGER_AT_device_name,
						     RFL_LEDGER_AT_precision, RFL_LEDGER_AT_mode,
						     RFL_LEDGER_AT_layout,
						     RFL_LEDGER_AT_optimizer };
	const struct rfl_facts_apart none = { .losses = of->kind->losses };
	struct rfl_facts_apart all = none, here = none; /* in an environment */
	const char *env = of->in->env, *before = NULL;
	struct rfl_chart *c = of->chart;

	of->across = across;
	of->least = SIZE_MAX;
	for (const struct rfl_repeats_config *config = of->repeats->configs;
	     config < of->repeats->configs + of->repeats->n; config++) {
		if (!rfl_chart__has(of, config))
			continue;
		rfl_facts_apart_add(&all, config->row);
		if (!rfl_text_same(before, config->row->env))
			here = none;
		before = config->row->env;
		rfl_facts_apart_add(&here, config->row);
		for (size_t k = 0; k < rfl_nfacts; k++)
			of->apart.differs[k] |= here.differs[k];
		of->least = config->n < of->least ? config->n : of->least;
		of->most = config->n > of->most ? config->n : of->most;
	}
	if (of->most == 0)
		return rfl_fail(err, RFL_EMISSING, 0, "%s%sno run has a value of %s",
				env ? env : "", env ? ": " : "", of->repeats->metric->name);
	of->lengths = names_repeat(of);
	choose_colors(of);
	c->nramp = of->by == RFL_BY_BATCH ? of->nbatches : 0;
	for (size_t k = 0; k < RFL_ARRAY_LEN(shared); k++) {
		const size_t i = rfl_fact_find(shared[k]);
		const struct rfl_ledger_row *row = all.first[i];

		if (row && !all.differs[i] && rfl_fact_known(&rfl_facts[i], row) &&
		    (shared[k] != RFL_LEDGER_AT_layout || row->context_length <= 0)) /* images */
			c->subtitle = rfl_words_join(c->scene, c->subtitle, " \xc2\xb7 ",
						     fact_words(c->scene, &rfl_facts[i], row));
	}
	return RFL_OK;
}

void rfl_chart__note(struct rfl_chart *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	c->note = rfl_words_join(c->scene, c->note, " ", rfl_scene_vprintf(c->scene, fmt, ap));
	va_end(ap);
}

void rfl_chart__note_lost(struct rfl_chart *c, size_t lost, const char *what)
{
	if (lost)
		rfl_chart__note(c, "%zu configuration%s without %s %s not shown.", lost,
				lost == 1 ? "" : "s", what, lost == 1 ? "is" : "are");
}

/* @param dashed  with the marks of their dashes */
static bool look_alike(const struct rfl_chart *c, const struct rfl_chart_series *a,
		       const struct rfl_chart_series *b, bool dashed)
{
	const int colors = c->nramp ? (int)c->nramp : RFL_THEME_COLORS;
	const int dashes = a->n > 1 && b->n > 1 ? RFL_DASH_COUNT : 2; /* of a mark: outlines */
	const int x = dashed ? a->dash : a->marker, y = dashed ? b->dash : b->marker;

	return a->color % colors == b->color % colors && a->dash % dashes == b->dash % dashes &&
	       x % RFL_CHART_MARKS == y % RFL_CHART_MARKS;
}

static size_t count_alike(const struct rfl_chart *c, bool dashed)
{
	const struct rfl_chart_panel *p = &c->panels[0];
	size_t alike = 0;

	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < i; k++)
			if (!p->series[i].thin &&
			    look_alike(c, &p->series[i], &p->series[k], dashed)) {
				alike++;
				break;
			}
	return alike;
}

/* Give lines that look alike the marks of their dashes if this helps; note those that still do. */
static void tell_apart(struct rfl_chart *c)
{
	size_t alike = count_alike(c, false);
	const size_t dashed = alike ? count_alike(c, true) : 0;

	for (size_t k = 0; dashed < alike && k < c->npanels; k++)
		for (size_t i = 0; i < c->panels[k].n; i++)
			if (c->panels[k].series[i].marker >= 0)
				c->panels[k].series[i].marker = c->panels[k].series[i].dash;
	alike = dashed < alike ? dashed : alike;
	if (alike)
		rfl_chart__note(c, "%zu line%s an earlier one.", alike,
				alike == 1 ? " looks like" : "s look like");
}

#define LEAST 1e-300 /* value on a logarithmic axis */
#define MOST  1e300  /* absolute value on any axis, so that its limits do not overflow */

/* Whether an axis has a place for a value. A value of 0 or less on a logarithmic axis is counted in
 * `lost[0]`, one out of range in `lost[1]`. */
static bool has_place(const struct rfl_chart_axis *a, double value, size_t lost[2])
{
	const bool positive = !a->log || value > 0;
	const bool fits = fabs(value) <= MOST && (!a->log || value >= LEAST);

	lost[0] += !positive;
	lost[1] += positive && !fits;
	return positive && fits;
}

/* Whether a panel has values at two places of its x-axis. */
static bool has_course(const struct rfl_chart *c)
{
	bool two = c->nbars > 0;

	for (size_t k = 0; k < c->npanels; k++) {
		double first = NAN;

		for (size_t i = 0; i < c->panels[k].n; i++)
			for (size_t j = 0; j < c->panels[k].series[i].n; j++) {
				const double x = c->panels[k].series[i].rows[j].x;

				first = isnan(first) ? x : first;
				two = two || x != first;
			}
	}
	return two;
}

static int by_x(const void *a, const void *b)
{
	const struct rfl_chart_row *x = a, *y = b;

	return x->x != y->x ? (x->x < y->x ? -1 : 1) : (x->y > y->y) - (x->y < y->y);
}

/* Remove the values that their axis cannot show, then the panels without any, and note both; sort
 * the others.
 * @return whether any value is left */
static bool keep_drawable(struct rfl_chart *c)
{
	static const char *const reasons[] = { "of 0 or less", "out of range" };
	size_t lost[2] = { 0, 0 }, kept = 0;
	const char *empty = "";

	for (size_t k = 0; k < c->npanels; k++) {
		struct rfl_chart_panel *p = &c->panels[k];
		bool any = false;

		for (struct rfl_chart_series *s = p->series; s < p->series + p->n; s++) {
			const size_t n = s->n;

			s->n = 0;
			s->has_value = s->has_bars = s->has_crossed = false;
			for (size_t i = 0; i < n; i++) {
				struct rfl_chart_row row = s->rows[i];

				if (isnan(row.y) ? row.n > 0
						 : !has_place(&p->x, row.x, lost) ||
							   !has_place(&p->y, row.y, lost))
					continue;
				if (!(fabs(row.lo) <= MOST && fabs(row.hi) <= MOST))
					row.lo = row.hi = NAN;
				rfl_chart_add(c, s, row);
			}
			if (s->n)
				qsort(s->rows, s->n, sizeof(*s->rows), by_x);
			any |= s->has_value;
		}
		if (any)
			c->panels[kept++] = *p;
		else if (!strstr(empty, p->y.title))
			empty = rfl_words_join(c->scene, empty, ", ", p->y.title);
	}
	for (int i = 0; i < 2; i++)
		if (lost[i])
			rfl_chart__note(c, "%s %s %s not shown.",
					rfl_words_count(c->scene, lost[i], "value"), reasons[i],
					lost[i] == 1 ? "is" : "are");
	if (*empty && kept)
		rfl_chart__note(c, "Without values: %s.", empty);
	c->npanels = kept;
	return kept > 0;
}

/* Keep the runs of the modes that the chart is about. @param kept  gets their list */
static enum rfl_rc select_modes(struct rfl_chart_runs *of, struct rfl_repeats *kept,
				struct rfl_err *err)
{
	const struct rfl_repeats *all = of->repeats;
	const enum rfl_chart_modes modes = of->kind->modes;

	*kept = *all;
	kept->configs = rfl_arena_array(of->scene->arena, all->n, sizeof(*kept->configs));
	kept->n = 0;
	for (size_t i = 0; i < all->n; i++) {
		const char *mode = all->configs[i].row->mode;

		if (modes == RFL_CHART_DECODE ? rfl_text_same(mode, "decode")
					      : !rfl_step_caches(mode))
			kept->configs[kept->n++] = all->configs[i];
	}
	of->repeats = kept;
	if (kept->n || all->n == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EMISSING, 0,
			modes == RFL_CHART_DECODE
				? "%s%sno run is in mode decode; 'roofline bench decode' measures "
				  "how fast language models generate"
				: "%s%sall runs are in modes decode and prefill; draw those with "
				  "--kind decode or cache",
			of->in->env ? of->in->env : "", of->in->env ? ": " : "");
}

enum rfl_rc rfl_chart_make(const struct rfl_chart_kind *kind, const struct rfl_chart_input *in,
			   struct rfl_chart **ret, struct rfl_err *err)
{
	struct rfl_chart *c = rfl_chart_new(kind->name, in->env ? in->env : "all");
	struct rfl_chart_runs of = { .kind = kind, .in = in, .repeats = in->repeats, .chart = c };
	struct rfl_repeats kept;
	enum rfl_rc rc = RFL_OK;

	of.scene = c->scene;
	c->title = rfl_scene_printf(c->scene, "%s%s%s", kind->title, in->env ? ": " : "",
				    in->env ? in->env : "");
	if (kind->modes != RFL_CHART_ANY)
		rc = select_modes(&of, &kept, err);
	if (rc == RFL_OK && (rc = kind->make(&of, err)) == RFL_OK) {
		if (!keep_drawable(c))
			rc = rfl_fail(
				err, RFL_EMISSING, 0,
				"%s%sno value has a place on the axes of a chart: all are 0 or "
				"less, or out of range",
				in->env ? in->env : "", in->env ? ": " : "");
		else if (!has_course(c))
			rc = rfl_fail(err, RFL_EMISSING, 0,
				      "%s%sall values are at one place of the axis '%s'; a chart "
				      "needs two or more",
				      in->env ? in->env : "", in->env ? ": " : "",
				      c->panels[0].x.title);
		tell_apart(c);
	}
	if (rc == RFL_OK)
		*ret = c;
	else
		rfl_chart_free(c);
	return rc;
}

/* ---- a quantity against the batch size ---- */

void rfl_chart__drop_empty(struct rfl_chart_panel *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->series[i].n > 0)
			p->series[kept++] = p->series[i];
	p->n = kept;
}

enum rfl_rc rfl_chart__batches(struct rfl_chart_runs *of, struct rfl_err *err)
{
	const struct rfl_ledger_metric *other = rfl_ledger_metrics;
	const double unit = of->kind->unit;
	struct rfl_chart *c = of->chart;
	size_t lost = 0;
	bool given = false; /* deviations of rows that are for several runs */
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_AT_batch, err);

	if (rc != RFL_OK)
		return rc;
	while (strcmp(other->name, of->kind->metric) != 0)
		other++;
	other = other == of->repeats->metric ? NULL : other;
	c->npanels = 1;
	c->panels[0].x.title = "Batch size (samples per step)";
	c->panels[0].x.log = 2;
	c->panels[0].y.title = of->kind->axis;
	c->panels[0].y.zero = true;
	for (const struct rfl_repeats_config *config = of->repeats->configs;
	     config < of->repeats->configs + of->repeats->n; config++) {
		const double batch = (double)config->row->batch;
		double *values = rfl_arena_array(c->scene->arena, config->n, sizeof(*values));
		struct rfl_chart_series *s;
		struct rfl_chart_row row;

		lost += config->n == 0 && rfl_chart__is_of(of, config);
		if (!rfl_chart__has(of, config))
			continue;
		/* a report has the repeats of another metric, but whole rows */
		for (size_t k = 0; other && k < config->n; k++)
			values[k] =
				rfl_ledger_metric_value(
					other, rfl_runs_row(of->in->runs, config->runs[k].run)) /
				unit;
		row = rfl_chart__mean_row(values, other ? config->n : 0, batch);
		if (!other) {
			const double mean = config->stats.mean / unit;
			const double std = config->stats.std / unit;

			given |= config->n == 1 && !isnan(std);
			row = (struct rfl_chart_row){ batch, mean, mean - std, mean + std,
						      config->n };
		}
		if (row.n == 0)
			continue;
		s = rfl_chart_series(c, 0, rfl_chart__name(of, config->row, false));
		rfl_chart__look(of, config->row, s);
		rfl_chart_add(c, s, row);
	}
	if (of->most == 1 && given)
		rfl_chart__note(c, "One table row per point; error bars: \xc2\xb1 the standard "
				   "deviation in the table.");
	else
		rfl_chart__note(c, "n = %s per point%s.",
				rfl_words_range(c->scene, of->least, of->most, "run"),
				of->most < 2 ? ""
					     : " (mean); error bars: \xc2\xb1 one sample standard "
					       "deviation");
	rfl_chart__note_lost(c, lost, "a successful run");
	return RFL_OK;
}

/* ---- phases ---- */

/* The phases in the order of the bar. Those of the host may run while the device computes. */
static const struct {
	const char *name;
	bool host;
} phases[RFL_TIMED_PHASES] = {
	[RFL_TIMED_FORWARD] = { "forward", false },
	[RFL_TIMED_BACKWARD] = { "backward", false },
	[RFL_TIMED_OPTIMIZER] = { "optimizer", false },
	[RFL_TIMED_DATA_WAIT] = { "waiting for data", true },
	[RFL_TIMED_UPLOAD] = { "copy to the device", true },
};

/* Add a bar: the phases one after the other, then as much of the host's phases as fits in the rest
 * of the time from step to step. @return the length of the bar in ms per step */
static double add_bar(const struct rfl_chart_runs *of, const struct rfl_repeats_config *config,
		      bool *overlaps)
{
	const double batch = (double)config->row->batch;
	const struct rfl_step_time t = rfl_step_time_of(of->in->runs, config);
	const double whole = 1000 * t.step_s;
	struct rfl_chart *c = of->chart;
	double end = 0;

	for (size_t k = 0; k < RFL_ARRAY_LEN(phases); k++) {
		double ms = t.phase_ms[k];

		if (isnan(ms))
			continue;
		if (phases[k].host && end + ms > whole) {
			*overlaps |= end + ms > 1.005 * whole;
			ms = fmax(0, whole - end);
		}
		rfl_chart_add(c, &c->panels[0].series[k],
			      (struct rfl_chart_row){ .x = (double)c->nbars,
						      .y = (end + ms) / batch,
						      .lo = end / batch,
						      .hi = (end + ms) / batch,
						      .n = config->n });
		end += ms;
	}
	return end;
}

/* Note the phases that some or all runs lack; without a device there are no copies. */
static void note_phases(struct rfl_chart *c)
{
	const char *none = "";

	for (size_t k = 0; k < RFL_ARRAY_LEN(phases); k++) {
		const struct rfl_chart_series *s = &c->panels[0].series[k];

		if (s->n == 0 && k != RFL_TIMED_UPLOAD)
			none = rfl_words_join(c->scene, none, ", ", s->name);
		if (s->n > 0 && s->n < c->nbars)
			rfl_chart__note(c, "Not measured in %zu of %zu: %s.", c->nbars - s->n,
					c->nbars, s->name);
	}
	if (*none)
		rfl_chart__note(c, "Not measured: %s.", none);
}

enum rfl_rc rfl_chart__phases(struct rfl_chart_runs *of, struct rfl_err *err)
{
	struct rfl_chart *c = of->chart;
	size_t lost = 0, cap = 0;
	bool overlaps = false;
	enum rfl_rc rc = rfl_chart__begin(of, RFL_LEDGER_AT_batch, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = 1;
	c->panels[0].y.title = "Time per sample (ms)";
	c->panels[0].y.zero = true;
	for (size_t k = 0; k < RFL_ARRAY_LEN(phases); k++)
		rfl_chart_series(c, 0, phases[k].name)->color = (int)k;
	for (size_t i = 0; i < of->repeats->n; i++) {
		const struct rfl_repeats_config *config = &of->repeats->configs[i];
		double end;

		if (!rfl_chart__has(of, config))
			continue;
		end = add_bar(of, config, &overlaps);
		if (end <= 0) {
			lost++;
			continue;
		}
		rfl_arena_reserve(c->scene->arena, &c->bars, &cap, c->nbars + 1);
		c->bars[c->nbars++] = (struct rfl_chart_bar){
			.name = rfl_chart__name(of, config->row, true),
			.end = rfl_scene_printf(c->scene, "%s ms per step",
						rfl_words_number(c->scene, end)),
		};
	}
	if (c->nbars == 0)
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no run has times of its phases (fwd_ms_mean, bwd_ms_mean, "
				"opt_ms_mean, data_wait_ms_mean)",
				of->in->env);
	rfl_chart__note(c, "n = %s per bar (mean). Time outside these phases is not included.",
			rfl_words_range(c->scene, of->least, of->most, "run"));
	if (overlaps)
		rfl_chart__note(c, "Waiting and copying while the device computes are not shown.");
	note_phases(c);
	rfl_chart__drop_empty(&c->panels[0]);
	rfl_chart__note_lost(c, lost, "times of phases");
	return RFL_OK;
}
