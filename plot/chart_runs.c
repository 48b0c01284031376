/* chart_runs.c - charts of the ledger: a quantity against the batch size, the phases of a step. */
#include "plot/chart_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

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
	return c->n > 0 && (!runs->env || rfl_text_same(c->row->env, runs->env));
}

/* Append the value of a fact to a text, after a separator. */
static const char *with_fact(struct rfl_scene *s, const char *text, const char *separator,
			     const struct rfl_fact *f, const struct rfl_ledger_row *row)
{
	char number[RFL_NUM_MAX];
	const char *value = rfl_field_write(&rfl_ledger_fields[f->column], row, number);

	return rfl_scene_printf(s, "%s%s%s", text, *text ? separator : "",
				rfl_words_fact(s, f->name, value));
}

/* The facts except model and batch that distinguish runs: "amp, 8 workers"; "" if none. */
static const char *way_of(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row,
			  bool precision)
{
	const char *way = "";

	for (size_t i = 0; i < rfl_nfacts; i++) {
		const enum rfl_ledger_at column = rfl_facts[i].column;

		if (rfl_facts_apart_told(&runs->apart, i) && column != RFL_LEDGER_AT_model &&
		    column != runs->across && (precision || column != RFL_LEDGER_AT_precision) &&
		    (runs->lengths ||
		     (column != RFL_LEDGER_AT_warmup && column != RFL_LEDGER_AT_iters)) &&
		    !(column == RFL_LEDGER_AT_autocast &&
		      rfl_text_same(row->autocast, row->precision)) &&
		    rfl_fact_known(&rfl_facts[i], row))
			way = with_fact(runs->scene, way, ", ", &rfl_facts[i], row);
	}
	return way;
}

const char *rfl_chart__name(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row,
			    bool batch)
{
	const char *way = way_of(runs, row, true);
	const char *model = rfl_words_model(runs->scene, row->model);

	if (batch)
		model = rfl_scene_printf(runs->scene, "%s, batch %lld", model,
					 (long long)row->batch);
	if (!runs->env)
		model = rfl_scene_printf(runs->scene, "%s: %s", row->env, model);
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

static int by_batch(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Choose what the colours show. */
static void choose_colors(struct rfl_chart_runs *runs)
{
	const struct rfl_repeats *r = runs->repeats;
	const bool batch = runs->across != RFL_LEDGER_AT_batch;
	struct rfl_chart_list ways = { .n = 0 }, precisions = { .n = 0 };
	bool named = true;

	runs->batches = rfl_scene_array(runs->scene, r->n, sizeof(*runs->batches));
	for (size_t i = 0; runs->batches && i < r->n; i++) {
		const struct rfl_ledger_row *row = r->configs[i].row;
		const char *way;

		/* lines of failed runs are only in a chart against the context */
		if (!rfl_chart__has(runs, &r->configs[i]) &&
		    (runs->across != RFL_LEDGER_AT_context_length ||
		     !rfl_text_same(row->env, runs->env)))
			continue;
		way = way_of(runs, row, true);
		named &= *way != '\0';
		(void)index_of(runs->scene, &runs->models, row->model);
		(void)index_of(runs->scene, &precisions, row->precision);
		(void)index_of(runs->scene, &ways, way);
		runs->batches[runs->nbatches++] = row->batch;
	}
	if (!runs->batches || runs->models.n > RFL_MARKER_COUNT)
		runs->by = RFL_BY_MODEL;
	else if (precisions.n > 1 && precisions.n <= RFL_THEME_COLORS)
		runs->by = RFL_BY_PRECISION;
	else if (batch && runs->apart.differs[rfl_fact_find(RFL_LEDGER_AT_batch)])
		runs->by = RFL_BY_BATCH;
	else if (named && ways.n > 1 && ways.n <= RFL_THEME_COLORS)
		runs->by = RFL_BY_WAY;
	else
		runs->by = RFL_BY_MODEL;
	if (runs->by != RFL_BY_BATCH)
		return;
	qsort(runs->batches, runs->nbatches, sizeof(*runs->batches), by_batch);
	ways.n = 0;
	for (size_t i = 0; i < runs->nbatches; i++)
		if (ways.n == 0 || runs->batches[ways.n - 1] != runs->batches[i])
			runs->batches[ways.n++] = runs->batches[i];
	runs->nbatches = ways.n;
}

void rfl_chart__look_as(struct rfl_chart_runs *runs, const char *color, const char *dash,
			struct rfl_chart_series *s)
{
	s->color = index_of(runs->scene, &runs->colors, color);
	s->dash = index_of(runs->scene, &runs->dashes, dash);
	s->marker = s->color + s->dash / RFL_CHART_DASHES;
}

void rfl_chart__look(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row,
		     struct rfl_chart_series *s)
{
	const bool batch = runs->across != RFL_LEDGER_AT_batch && runs->by != RFL_BY_BATCH;
	const char *way = way_of(runs, row, true), *rest = way;

	if (runs->by == RFL_BY_PRECISION)
		rest = way_of(runs, row, false);
	else if (runs->by == RFL_BY_WAY)
		rest = "";
	if (batch)
		rest = rfl_scene_printf(runs->scene, "%lld %s", (long long)row->batch, rest);
	if (runs->by != RFL_BY_MODEL) /* marks may be far apart */
		rest = rfl_scene_printf(runs->scene, "%s %s", row->model, rest);
	rfl_chart__look_as(runs,
			   runs->by == RFL_BY_PRECISION ? row->precision
			   : runs->by == RFL_BY_WAY     ? way
							: row->model,
			   rest, s);
	if (runs->by == RFL_BY_MODEL)
		return;
	s->marker = runs->models.n > 1 ? index_of(runs->scene, &runs->models, row->model) : s->dash;
	for (size_t i = 0; runs->by == RFL_BY_BATCH && i < runs->nbatches; i++)
		if (runs->batches[i] == row->batch)
			s->color = (int)i;
}

/* The file of a run. NULL: a row of another program, which has none. */
static const char *file_of(struct rfl_scene *s, const struct rfl_chart_files *files,
			   const struct rfl_run *run)
{
	const char *path = NULL;
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	if (rfl_runs_beside(files->runs, run, files->dir, files->folder, &out))
		path = rfl_scene_printf(s, "%s", rfl_buf_str(&out));
	rfl_buf_fini(&out);
	return path;
}

enum rfl_rc rfl_chart__read(struct rfl_chart_runs *of, struct rfl_chart_files *files,
			    const struct rfl_repeats_config *c, rfl_chart__reader *read, void *ctx,
			    struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t k = 0; rfl_chart__has(of, c) && k < c->n && rc == RFL_OK; k++) {
		const char *path = file_of(of->scene, files, c->runs[k].run);

		if (path && rfl_file_exists(path)) {
			rc = read(path, ctx, err);
			files->found++;
			continue;
		}
		files->lost++;
		files->first_lost = files->first_lost ? files->first_lost : path;
	}
	return rc;
}

enum rfl_rc rfl_chart__no_file(const struct rfl_chart_runs *of, const struct rfl_chart_files *files,
			       const char *columns, struct rfl_err *err)
{
	const char *first = files->first_lost, *env = of->env ? of->env : "";
	const char *colon = of->env ? ": " : "";

	if (files->found)
		return rfl_fail(err, RFL_EMISSING, 0, "%s%sno file of %s has a value in column %s",
				env, colon, files->what, columns);
	return rfl_fail(err, RFL_EMISSING, 0, "%s%sno run has a file of %s%s%s%s", env, colon,
			files->what, first ? ", such as " : "; only ",
			first ? first : files->writer, first ? "" : " writes them");
}

void rfl_chart__note_files(struct rfl_chart *c, const struct rfl_chart_files *files)
{
	if (files->lost)
		c->note = rfl_scene_printf(c->scene, "%s %zu run%s no file of %s.", c->note,
					   files->lost, files->lost == 1 ? " has" : "s have",
					   files->what);
}

void rfl_chart__mean_add(struct rfl_chart_mean *m, double value)
{
	const double before = value - m->mean;

	if (isnan(value))
		return;
	m->mean += before / ++m->n;
	m->squares += before * (value - m->mean);
}

struct rfl_chart_row rfl_chart__mean_row(const struct rfl_chart_mean *m, double x)
{
	const double mean = m->n > 0 ? m->mean : (double)NAN;
	const double std = m->n > 1 ? sqrt(m->squares / (m->n - 1)) : (double)NAN;

	return (struct rfl_chart_row){
		.x = x, .y = mean, .lo = mean - std, .hi = mean + std, .n = (size_t)m->n
	};
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
	char number[RFL_NUM_MAX];
	size_t n = 0;

	for (size_t i = 0; names && i < r->n; i++)
		if (rfl_chart__has(runs, &r->configs[i]))
			names[n++] =
				rfl_scene_printf(runs->scene, "%s %s",
						 rfl_chart__name(runs, r->configs[i].row, true),
						 rfl_field_write(&rfl_ledger_fields[runs->across],
								 r->configs[i].row, number));
	if (n)
		qsort(names, n, sizeof(*names), by_text);
	for (size_t i = 1; i < n; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			return true;
	return false;
}

enum rfl_rc rfl_chart__begin(const struct rfl_repeats *r, const char *env, const char *stem,
			     const char *title, enum rfl_ledger_at across,
			     struct rfl_chart_runs *runs, struct rfl_chart **ret,
			     struct rfl_err *err)
{
	static const enum rfl_ledger_at shared[] = { RFL_LEDGER_AT_device_name,
						     RFL_LEDGER_AT_precision, RFL_LEDGER_AT_mode,
						     RFL_LEDGER_AT_layout,
						     RFL_LEDGER_AT_optimizer };
	struct rfl_chart *c = rfl_chart_new(stem, env ? env : "all");
	struct rfl_facts_apart all = { .first = { NULL } }, here = all; /* in an environment */
	const char *before = NULL;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "chart: out of memory");
	*runs = (struct rfl_chart_runs){
		.scene = c->scene, .repeats = r, .env = env, .across = across, .least = SIZE_MAX
	};
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_repeats_config *config = &r->configs[i];

		if (!rfl_chart__has(runs, config))
			continue;
		rfl_facts_apart_add(&all, config->row);
		if (!rfl_text_same(before, config->row->env))
			here = (struct rfl_facts_apart){ .first = { NULL } };
		before = config->row->env;
		rfl_facts_apart_add(&here, config->row);
		for (size_t k = 0; k < rfl_nfacts; k++)
			runs->apart.differs[k] |= here.differs[k];
		runs->least = config->n < runs->least ? config->n : runs->least;
		runs->most = config->n > runs->most ? config->n : runs->most;
	}
	if (runs->most == 0) {
		rfl_chart_free(c);
		return rfl_fail(err, RFL_EMISSING, 0, "%s%sno run has a value of %s",
				env ? env : "", env ? ": " : "", r->metric->name);
	}
	runs->lengths = names_repeat(runs);
	choose_colors(runs);
	c->nramp = runs->by == RFL_BY_BATCH ? runs->nbatches : 0;
	c->title = rfl_scene_printf(c->scene, "%s%s%s", title, env ? ": " : "", env ? env : "");
	for (size_t k = 0; k < RFL_ARRAY_LEN(shared); k++)
		for (size_t i = 0; i < rfl_nfacts; i++)
			if (rfl_facts[i].column == shared[k] && all.first[i] && !all.differs[i] &&
			    !(shared[k] == RFL_LEDGER_AT_layout && /* of images */
			      all.first[i]->context_length > 0) &&
			    rfl_fact_known(&rfl_facts[i], all.first[i]))
				c->subtitle = with_fact(c->scene, c->subtitle, " \xc2\xb7 ",
							&rfl_facts[i], all.first[i]);
	*ret = c;
	return RFL_OK;
}

void rfl_chart__note_lost(struct rfl_chart *c, size_t lost, const char *what)
{
	if (lost)
		c->note = rfl_scene_printf(
			c->scene, "%s %zu configuration%s without %s %s not shown.", c->note, lost,
			lost == 1 ? "" : "s", what, lost == 1 ? "is" : "are");
}

/* @param dashed  with the marks of their dashes */
static bool look_alike(const struct rfl_chart *c, const struct rfl_chart_series *a,
		       const struct rfl_chart_series *b, bool dashed)
{
	const int colors = c->nramp ? (int)c->nramp : RFL_THEME_COLORS;
	const int dashes = a->n > 1 && b->n > 1 ? RFL_CHART_DASHES : 2; /* of a mark: outlines */
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
			if (look_alike(c, &p->series[i], &p->series[k], dashed)) {
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
		c->note = rfl_scene_printf(c->scene, "%s %zu line%s an earlier one.", c->note,
					   alike, alike == 1 ? " looks like" : "s look like");
}

enum rfl_rc rfl_chart__finish(struct rfl_chart *take_c, struct rfl_chart **ret, struct rfl_err *err)
{
	enum rfl_rc rc;

	tell_apart(take_c);
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

void rfl_chart__sort(struct rfl_chart_panel *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->series[i].n)
			qsort(p->series[i].rows, p->series[i].n, sizeof(*p->series[i].rows), by_x);
}

enum rfl_rc rfl_chart_batches(const struct rfl_repeats *r, const char *env,
			      const struct rfl_chart_quantity *q, struct rfl_chart **ret,
			      struct rfl_err *err)
{
	struct rfl_chart_runs runs;
	struct rfl_chart *c = NULL;
	struct rfl_chart_panel *p;
	size_t lost = 0;
	bool given = false; /* deviations of rows that are for several runs */
	enum rfl_rc rc =
		rfl_chart__begin(r, env, q->kind, q->title, RFL_LEDGER_AT_batch, &runs, &c, err);

	if (rc != RFL_OK)
		return rc;
	c->npanels = 1;
	p = &c->panels[0];
	p->x = (struct rfl_chart_axis){
		.title = "Batch size (samples per step)", .lo = NAN, .hi = NAN, .log = 2
	};
	p->y = (struct rfl_chart_axis){ .title = q->axis, .lo = NAN, .hi = NAN, .zero = true };
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_repeats_config *config = &r->configs[i];
		const double mean = config->stats.mean / q->unit, std = config->stats.std / q->unit;
		struct rfl_chart_series *s;

		lost += config->n == 0 && rfl_text_same(config->row->env, env);
		if (!rfl_chart__has(&runs, config))
			continue;
		given |= config->n == 1 && !isnan(std);
		s = rfl_chart_series(c, 0, rfl_chart__name(&runs, config->row, false));
		if (!s)
			break;
		rfl_chart__look(&runs, config->row, s);
		rfl_chart_add(c, s,
			      (struct rfl_chart_row){ .x = (double)config->row->batch,
						      .y = mean,
						      .lo = mean - std,
						      .hi = mean + std,
						      .n = config->n });
	}
	rfl_chart__sort(p);
	if (runs.most == 1 && given)
		c->note = "One table row per point; error bars: \xc2\xb1 the standard "
			  "deviation "
			  "in the table.";
	else
		c->note =
			rfl_scene_printf(c->scene, "n = %s per point%s.", rfl_chart__count(&runs),
					 runs.most < 2 ? ""
						       : " (mean); error bars: \xc2\xb1 one sample "
							 "standard deviation");
	rfl_chart__note_lost(c, lost, "a successful run");
	return rfl_chart__finish(c, ret, err);
}

/* ---- phases ---- */

/* The phases in the order of the bar. Those of the host may run while the device computes. */
static const struct {
	const char *name;
	enum rfl_ledger_at column;
	bool host;
} phases[] = {
	{ "forward", RFL_LEDGER_AT_fwd_ms_mean, false },
	{ "backward", RFL_LEDGER_AT_bwd_ms_mean, false },
	{ "optimizer", RFL_LEDGER_AT_opt_ms_mean, false },
	{ "waiting for data", RFL_LEDGER_AT_data_wait_ms_mean, true },
	{ "copy to the device", RFL_LEDGER_AT_upload_ms_mean, true },
};

void rfl_chart__mean(const struct rfl_runs *runs, const struct rfl_repeats_config *c,
		     enum rfl_ledger_at column, double *mean, double *std)
{
	struct rfl_chart_mean m = { .n = 0 };
	struct rfl_chart_row row;

	for (size_t k = 0; k < c->n; k++)
		rfl_chart__mean_add(&m, rfl_field_number(&rfl_ledger_fields[column],
							 rfl_runs_row(runs, c->runs[k].run)));
	row = rfl_chart__mean_row(&m, 0);
	*mean = row.y;
	*std = row.hi - row.y;
}

/* Add a bar: the phases one after the other, then as much of the host's phases as fits in the rest
 * of the time from step to step. @return the length of the bar in ms per step */
static double add_bar(struct rfl_chart *c, const struct rfl_runs *runs,
		      const struct rfl_repeats_config *config, bool *overlaps)
{
	const double batch = (double)config->row->batch;
	double whole, ms, std, end = 0;

	rfl_chart__mean(runs, config, RFL_LEDGER_AT_samples_per_s, &whole, &std);
	whole = 1000 * batch / whole;

	for (size_t k = 0; k < RFL_ARRAY_LEN(phases); k++) {
		rfl_chart__mean(runs, config, phases[k].column, &ms, &std);
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

/* Remove the phases that no run has from the key, and say which; without a device there are no
 * copies. */
static void note_phases(struct rfl_chart *c)
{
	struct rfl_chart_panel *p = &c->panels[0];
	const char *none = "";
	size_t kept = 0;

	for (size_t k = 0; k < p->n; k++) {
		const struct rfl_chart_series s = p->series[k];

		if (s.n == 0 && phases[k].column != RFL_LEDGER_AT_upload_ms_mean)
			none = rfl_scene_printf(c->scene, "%s%s%s", none, *none ? ", " : "",
						s.name);
		if (s.n > 0 && s.n < c->nbars)
			c->note = rfl_scene_printf(c->scene, "%s Not measured in %zu of %zu: %s.",
						   c->note, c->nbars - s.n, c->nbars, s.name);
		if (s.n > 0)
			p->series[kept++] = s;
	}
	p->n = kept;
	if (*none)
		c->note = rfl_scene_printf(c->scene, "%s Not measured: %s.", c->note, none);
}

enum rfl_rc rfl_chart_phases(const struct rfl_repeats *r, const struct rfl_runs *runs,
			     const char *env, struct rfl_chart **ret, struct rfl_err *err)
{
	struct rfl_chart_runs of;
	struct rfl_chart *c = NULL;
	size_t lost = 0, cap = 0;
	bool overlaps = false;
	enum rfl_rc rc = rfl_chart__begin(r, env, "phases", "Phases of a step", RFL_LEDGER_AT_batch,
					  &of, &c, err);

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
		double end;

		if (!rfl_chart__has(&of, config))
			continue;
		end = add_bar(c, runs, config, &overlaps);
		if (end <= 0) {
			lost++;
			continue;
		}
		if (rfl_scene_grow(c->scene, &c->bars, c->nbars, 1, &cap, sizeof(*c->bars)))
			c->bars[c->nbars++] = (struct rfl_chart_bar){
				.name = rfl_chart__name(&of, config->row, true),
				.end = rfl_scene_printf(c->scene, "%s ms per step",
							rfl_words_number(c->scene, end)),
			};
	}
	if (c->nbars == 0) {
		rfl_chart_free(c);
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no run has times of its phases (fwd_ms_mean, bwd_ms_mean, "
				"opt_ms_mean, data_wait_ms_mean)",
				env);
	}
	c->note = rfl_scene_printf(
		c->scene, "n = %s per bar (mean). Time outside these phases is not included.",
		rfl_chart__count(&of));
	if (overlaps)
		c->note = rfl_scene_printf(
			c->scene, "%s Waiting and copying while the device computes are not shown.",
			c->note);
	note_phases(c);
	rfl_chart__note_lost(c, lost, "times of phases");
	return rfl_chart__finish(c, ret, err);
}
