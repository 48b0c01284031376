/* sections_roofline.c - the sections of a report on ceilings, figures, points and files. */
#include "report/report_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "plot/plot.h"
#include "plot/surface_data.h"
#include "report/runs.h"
#include "roofline/roofline.h"

#define PARTS_MOST 30    /* rows of the table of layers or kernels */
#define PLOT_DPI   144.0 /* default resolution of 'roofline plot' */

/* ---- peaks ---- */

struct ceiling {
	const char *env, *cell, *unit, *status, *how, *at;
	struct rfl_peak peak;
	double giga, of_sheet, spread;
	int64_t threads;
};
static const struct rfl_column of_ceilings[] = {
	{ TEXT(struct ceiling, env, "Environment") },
	{ TEXT(struct ceiling, cell, "Ceiling") },
	{ REAL(struct ceiling, giga, "Value", 1) },
	{ TEXT(struct ceiling, unit, "Unit") },
	{ TEXT(struct ceiling, status, "Status") },
	{ REAL(struct ceiling, of_sheet, "% of data sheet", 0.01), .digits = 3 },
	{ REAL(struct ceiling, spread, "Above median %", 0.01), .digits = 2 },
	{ INT(struct ceiling, threads, "Threads") },
	{ TEXT(struct ceiling, how, "Kernel, source or reason") },
	{ TEXT(struct ceiling, at, "Measured at") },
};

static void add_ceiling(struct rfl_table *t, const struct rfl_peaks_env *env, const char *cell,
			const char *unit, const struct rfl_peak *p)
{
	const struct ceiling row = {
		.env = env->name,
		.cell = cell,
		.unit = unit,
		.status = rfl_peak_status_name(p->status),
		.how = p->kernel   ? p->kernel
		       : p->source ? p->source
				   : p->reason,
		.at = p->measured_at,
		.giga = p->value * 1e-9,
		.of_sheet = p->value / p->spec,
		.spread = p->stats.n > 0 ? (p->value - p->stats.median) / p->stats.median
					 : (double)NAN,
		.threads = p->threads > 0 ? p->threads : RFL_INT_UNKNOWN,
	};

	rfl_table_add(t, &row, 1, sizeof(row));
}

void rfl_report__peaks(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t;

	if (!HAVE_PEAKS(r, page))
		return;
	t = rfl_table_new(of_ceilings, RFL_ARRAY_LEN(of_ceilings));
	for (size_t i = 0; i < r->peaks->nenvs; i++) {
		const struct rfl_peaks_env *env = &r->peaks->envs[i];

		for (size_t k = 0; k < env->ncompute; k++)
			add_ceiling(t, env, env->compute[k].cell,
				    rfl_peaks_unit(env->compute[k].key), &env->compute[k].peak);
		for (size_t k = 0; k < env->nlevels; k++)
			add_ceiling(t, env, env->levels[k].cell,
				    rfl_text_same(env->levels[k].scope, "core") ? "GB/s per core"
										: "GB/s",
				    &env->levels[k].peak);
	}
	rfl_table_note(t, "A measured ceiling is the fastest of several repeats; 'above median' is "
			  "its distance to their median.");
	rfl_page_table(page, "Ceilings of the machines and how they are known", t);
}

/* ---- figures, points ---- */

/* Let a figure next to a Markdown page carry its data, if there is not too much; an HTML page has
 * the data once, and a PDF cannot hold it. */
static void carry_data(const struct rfl_report *r, const struct rfl_plot_input *in,
		       struct rfl_scene *scene, struct rfl_buf *data)
{
	const struct rfl_figure_data carried = {
		.points = &r->work->steps,
		.peaks = r->peaks,
		.points_name = in->points_name,
		.peaks_name = in->peaks_name,
		.options = in->kind == RFL_PLOT_TRAJECTORY
				   ? json_pack("{s:s}", "kind", "trajectory")
				   : json_object(),
	};

	if (rfl_figure_data_write(&carried, &in->env->name, 1, data, NULL) == RFL_OK)
		scene->data = rfl_buf_str(data);
	json_decref(carried.options);
}

static const char *const figures[][2] = {
	[RFL_PLOT_ROOFLINE] = { "roofline", "Roofline" },
	[RFL_PLOT_KERNELS] = { "kernels", "Roofline of kernels" },
	[RFL_PLOT_HIERARCHICAL] = { "hierarchical", "Hierarchical roofline" },
	[RFL_PLOT_TRAJECTORY] = { "trajectory", "Trajectories" },
};

static void draw_figure(const struct rfl_report *r, const struct rfl_peaks_env *env,
			enum rfl_plot_kind kind, struct rfl_page *page)
{
	const bool parts = kind == RFL_PLOT_KERNELS || kind == RFL_PLOT_HIERARCHICAL;
	const struct rfl_plot_input in = {
		.points = parts ? &r->work->parts : &r->work->steps,
		.env = env,
		.points_name = parts ? NULL : rfl_path_base(r->points_path),
		.points_hash = parts ? NULL : r->points->hash,
		.peaks_name = rfl_path_base(r->peaks->path),
		.peaks_hash = r->peaks->hash,
		.version = r->version,
		.kind = kind,
		/* fits the width of a sheet, which has the table of points elsewhere */
		.style = r->format == RFL_FORMAT_PDF ? "paper" : NULL,
	};
	RFL_AUTO(buf) data = { .max = RFL_DATA_MAX + 1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_scene *scene = NULL;

	if (rfl_plot_roofline(&in, &scene, &err) != RFL_OK) {
		rfl_report__lacks(r, page, "figure of %s: %s", env->name, err.msg);
		return;
	}
	if (r->format == RFL_FORMAT_MD && !parts)
		carry_data(r, &in, scene, &data);
	rfl_page_figure(page, RFL_BLOCK_FIGURE,
			rfl_page_printf(page,
					"%s of %s: achieved performance against arithmetic "
					"intensity, both logarithmic, below the ceilings in use",
					figures[kind][1], env->name),
			rfl_page_printf(page, "%s_%s_%s.svg", r->stem, figures[kind][0], env->name),
			scene);
}

/* Draw a chart and append it. @param env  NULL: all environments */
static void put_chart(const struct rfl_report *r, struct rfl_page *page, const char *kind,
		      const char *env, const char *caption)
{
	const struct rfl_chart_input in = {
		.repeats = r->repeats, .runs = r->runs, .ceilings = r->peaks, .env = env
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_chart *chart = NULL;

	if (rfl_chart_make(rfl_chart_find(kind), &in, &chart, &err) == RFL_OK &&
	    rfl_chart_draw(chart, &(struct rfl_chart_spec){ .width = 0 }, &err) == RFL_OK) {
		rfl_page_figure(page, RFL_BLOCK_PICTURE, caption,
				rfl_page_printf(page, "%s_%s.svg", r->stem, chart->stem),
				chart->scene);
		return;
	}
	if (err.rc != RFL_EMISSING)
		rfl_report__lacks(r, page, "chart (%s): %s", caption, err.msg);
	rfl_chart_free(chart);
}

void rfl_report__charts(const struct rfl_report *r, struct rfl_page *page, const char *kind,
			size_t least, size_t most, const char *caption)
{
	const size_t nconfigs = r->repeats ? r->repeats->n : 0;
	size_t *n = rfl_arena_array(page->arena, nconfigs, sizeof(*n));
	RFL_AUTO(texts) envs = { .arena = NULL };

	if (rfl_chart_find(kind)->together)
		put_chart(r, page, kind, NULL, caption);
	for (size_t i = 0; !rfl_chart_find(kind)->together && i < nconfigs; i++)
		if (r->repeats->configs[i].n)
			n[rfl_report__env(&envs, r->repeats->configs[i].row->env)]++;
	for (size_t k = 0; k < envs.index.n; k++) {
		const char *env = envs.index.rows[k];

		if (n[k] >= least && n[k] <= most)
			put_chart(r, page, kind, env,
				  rfl_page_printf(page, "%s, %s", caption, env));
	}
}

void rfl_report__figures(const struct rfl_report *r, struct rfl_page *page)
{
	const bool points = rfl_report__have_points(r, page), peaks = HAVE_PEAKS(r, page);
	RFL_AUTO(texts) envs = { .arena = NULL };

	if (points && peaks && r->kind != RFL_REPORT_PROJECT)
		rfl_report__method(r, page);
	if (r->work->steps.n + r->work->parts.n && peaks && r->format == RFL_FORMAT_HTML)
		rfl_page_text(page, RFL_BLOCK_LIVE, "%s", "");
	if (points && peaks && r->work->steps.n < r->points->n)
		rfl_page_para(page, "The figures show %zu of %zu points.", r->work->steps.n,
			      r->points->n);
	for (size_t i = 0; points && peaks && i < r->points->n; i++)
		(void)rfl_report__env(&envs, r->points->points[i].env);
	for (size_t i = 0; i < envs.index.n; i++) {
		const char *name = envs.index.rows[i];
		const struct rfl_peaks_env *env = rfl_peaks_find(r->peaks, name);

		if (env && rfl_text_is_env_name(name))
			/* of attention, over the context length */
			draw_figure(r, env,
				    r->kind == RFL_REPORT_ATTENTION ? RFL_PLOT_TRAJECTORY
								    : RFL_PLOT_ROOFLINE,
				    page);
		else
			rfl_report__lacks(r, page,
					  "figure of %s: the peaks file has no ceilings for it; "
					  "'roofline peaks measure --env NAME' measures them",
					  name);
	}
}

/* Figures of other kinds than those that the report draws itself. */
void rfl_report__pictures(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t drawn = page->n;

	for (size_t i = 0, k; i < r->npictures; i++) {
		const struct rfl_report_picture *p = &r->pictures[i];
		const char *name = rfl_page_printf(page, "%s_%s", r->stem, p->name);
		const size_t stem = (size_t)(strrchr(name, '.') - name);

		for (k = 0; k < drawn; k++)
			if (strncmp(page->blocks[k].name, name, stem + 1) == 0)
				break;
		if (k == drawn)
			rfl_page_picture(page,
					 rfl_page_printf(page, "%.*s",
							 (int)(strrchr(p->name, '.') - p->name),
							 p->name),
					 name, &p->file, PLOT_DPI);
	}
}

void rfl_report__points(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_points shown;

	if (rfl_report__have_points(r, page)) {
		shown = *r->points;
		if (r->work->steps.n < r->points->n)
			shown.hash[0] = '\0'; /* the figure shows other rows */
		shown.n =
			rfl_report__rows(page, shown.n, "points", "the files of --points have all");
		rfl_page_table(page, "Points under the roof", rfl_points_table(&shown, true));
	}
	if (r->peer)
		rfl_report__as_peer(r, page);
}

static int by_share(const void *x, const void *y)
{
	const struct rfl_point *a = *(const struct rfl_point *const *)x;
	const struct rfl_point *b = *(const struct rfl_point *const *)y;

	if (isnan(a->time_share) != isnan(b->time_share)) /* unknown shares last */
		return isnan(a->time_share) ? 1 : -1;
	if (a->time_share > b->time_share || a->time_share < b->time_share)
		return a->time_share < b->time_share ? 1 : -1;
	return (a > b) - (a < b); /* in the order of the files */
}

/* Draw the kernels of each environment, with their caches if any has counts of them. */
static void draw_kernels(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_points *parts = &r->work->parts;

	for (size_t i = 0; r->peaks && i < r->peaks->nenvs; i++) {
		enum rfl_plot_kind kind = RFL_PLOT_KERNELS;
		bool kernels = false;

		for (const struct rfl_point *p = parts->points; p < parts->points + parts->n; p++) {
			if (!rfl_text_same(p->env, r->peaks->envs[i].name) ||
			    !rfl_text_same(p->part_kind, "kernel"))
				continue;
			kernels = kernels || (p->ai > 0 && p->attained_gflops > 0);
			if (p->ai_l1 > 0 || p->ai_l2 > 0)
				kind = RFL_PLOT_HIERARCHICAL;
		}
		if (kernels)
			draw_figure(r, &r->peaks->envs[i], kind, page);
	}
}

/* The layers or kernels with the largest share of the time of their step. */
void rfl_report__parts(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t n = r->parts ? r->parts->n : 0;
	struct rfl_points most = { .n = n < PARTS_MOST ? n : PARTS_MOST };
	const struct rfl_point **sorted;

	if (!rfl_report__have(r, page, n ? r->parts : NULL, "points of layers or kernels",
			      "--points", "roofline points --by layer --output FILE"))
		return;
	sorted = rfl_arena_array(page->arena, n, sizeof(*sorted));
	most.points = rfl_arena_array(page->arena, most.n, sizeof(*most.points));
	for (size_t i = 0; i < n; i++)
		sorted[i] = &r->parts->points[i];
	qsort(sorted, n, sizeof(const struct rfl_point *), by_share);
	for (size_t i = 0; i < most.n; i++)
		most.points[i] = *sorted[i];
	if (most.n < n)
		rfl_page_para(page,
			      "The %zu of %zu parts with the largest share of the time:", most.n,
			      n);
	draw_kernels(r, page);
	rfl_page_table(page, "Parts of a step under the roof", rfl_points_table(&most, true));
}

void rfl_report__method(const struct rfl_report *r, struct rfl_page *page)
{
	(void)r;
	rfl_page_para(
		page,
		"A point has the arithmetic intensity AI = FLOPs of a step / bytes of a step, and "
		"the achieved rate = FLOPs of a step x samples per second / batch. Its attainable "
		"rate is min(AI x bandwidth, compute ceiling); the two ceilings meet at the ridge "
		"point, compute / bandwidth. To the left of it, a point is memory-bound, to the "
		"right compute-bound; within %g %% of it, both ceilings limit the point. A "
		"training step has the FLOPs of the forward pass, and of the gradients of the "
		"inputs (dgrad) and of the weights (wgrad).",
		100 * RFL_ROOF_KNEE_BAND);
}

/* ---- files ---- */

static const struct rfl_column of_files[] = {
	{ TEXT(struct rfl_report_file, path, "File") },
	{ TEXT(struct rfl_report_file, contents, "Contents") },
	{ TEXT(struct rfl_report_file, command, "Written by") },
	{ TEXT(struct rfl_report_file, hash, "Fingerprint") },
};

void rfl_report__files(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t = rfl_table_new(of_files, RFL_ARRAY_LEN(of_files));

	rfl_table_add(t, r->files, r->nfiles, sizeof(*r->files));
	rfl_table_note(
		t, "The fingerprint is a 64-bit hash of the contents (FNV-1a). Points carry the "
		   "fingerprints of the ledger and of the peaks file from which they were made.");
	rfl_page_table(page, "Files of this report", t);
}
