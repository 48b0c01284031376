/* plot.c - roofline plot: draw a figure for each environment from its points and ceilings. */
#include "cli/cmd.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/cmd/plot_charts.h"
#include "cli/inputs.h"
#include "plot/plot.h"
#include "plot/surface_data.h"
#include "rfl_config.h"

#define OPT(kind, member, ...) RFL_OPT(struct rfl_plot_args, kind, member, __VA_ARGS__)

const char *const rfl_plot_kinds[] = { "roofline",   "layers",   "kernels",   "hierarchical",
				       "trajectory", "compare",  "time",      "throughput",
				       "memory",     "power",    "phases",    "scaling",
				       "decode",     "cache",    "steps",     "loss",
				       "accuracy",   "timeline", "bandwidth", NULL };

/* In the order of enum rfl_plot_labels. */
static const char *const label_names[] = { "auto", "all", "none", "numbers", NULL };

enum layout { LAYOUT_EACH, LAYOUT_GRID, LAYOUT_OVERLAY };

static const char *const layout_names[] = { "each", "grid", "overlay", NULL };

static const struct rfl_opt opts[] = {
	OPT(CHOICE, kind, .name = "kind", .often = true, .meta = "KIND", .choices = rfl_plot_kinds,
	    .def = "roofline",
	    .help = "kind of figure: a roofline of steps, layers or kernels, one with the "
		    "intensities of L1, L2 and DRAM (hierarchical), one with arrows along batches, "
		    "context lengths or caches (trajectory) or from earlier runs (compare), one of "
		    "the "
		    "times that bytes and FLOPs take at the ceilings (time), or a chart"),
	OPT(TEXT, points, .letter = 'p', .name = "points", .often = true, .meta = "FILE",
	    .project = "points", .given = offsetof(struct rfl_plot_args, points_given),
	    .help = "points, as written by 'roofline points', or another program's table with "
		    "intensities and rates"),
	OPT(TEXT, peaks, .name = "peaks", .often = true, .meta = "FILE", .project = "peaks",
	    .given = offsetof(struct rfl_plot_args, peaks_given),
	    .help = "peaks file that 'roofline points' used; default for a table with roofs: the "
		    "table; for bandwidth, the file to draw; for decode, the ceilings of the "
		    "bounds"),
	OPT(TEXT, against, .name = "against", .meta = "FILE",
	    .help = "points of earlier runs, for compare"),
	OPT(LIST, runs.metrics, .name = "metrics", .often = true, .meta = "FILE",
	    .project = "metrics", .help = "ledgers, or tables of other programs, for charts"),
	OPT(LIST, runs.map, RFL_OPT_MAP),
	OPT(TEXT, steps, .name = "steps", .meta = "DIR",
	    .help = "directory with one file per run, for steps, loss, accuracy and timeline; "
		    "default: steps/, epochs/ or memory/ next to the ledger"),
	OPT(TEXT, from, .name = "from", .often = true, .meta = "FILE", .against = "points peaks",
	    .help = "PNG or SVG file written by 'roofline plot', to redraw from the data and "
		    "options that it contains"),
	OPT(LIST, runs.env, .letter = 'e', .name = "env", .often = true, .meta = "NAME",
	    .help = "environments to draw; default: all that have points"),
	OPT(LIST, runs.model, .name = "model", .meta = "NAME",
	    .help = "draw only these models; default: all, as for --batch, --precision and --mode"),
	OPT(LIST, batch, .name = "batch", .meta = "N", .help = "draw only these batch sizes"),
	OPT(LIST, runs.precision, .name = "precision", .meta = "NAME",
	    .help = "draw only these precisions"),
	OPT(LIST, mode, .name = "mode", .meta = "MODE", .help = "draw only these step modes"),
	OPT(CHOICE, layout, .name = "layout", .often = true, .meta = "LAYOUT",
	    .choices = layout_names, .def = "each",
	    .help = "layout of several environments: one figure for each, or one figure with a "
		    "grid of plots with common axes (roofline_all) or a single plot "
		    "(roofline_overlay); both also show the roofs of an environment of --env "
		    "without points"),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .often = true, .meta = "DIR",
	    .project = "figures", .help = "directory for the figures; created if missing"),
	OPT(LIST, format, .letter = 'f', .name = "format", .often = true, .meta = "FMT",
	    .choices = rfl_surface_formats, .def = "png",
	    .help = "formats of the figures, one file each; see 'roofline list surfaces'"),
	OPT(TEXT, title, .name = "title", .often = true, .meta = "TEXT", .max = 1000,
	    .may_be_empty = true, .help = "title of the figures; default: derived from the data"),
	OPT(TEXT, style, .name = "style", .often = true, .meta = "STYLE",
	    .choices = rfl_plot_styles, .def = "screen",
	    .help = "page, colours and sizes: paper is 7 in wide; column is 3.35 in wide and "
		    "prints title and notes as a caption instead; slides is 16:9"),
	OPT(FLAG, panel, .name = "panel", .negatable = true, .def = "on",
	    .help = "draw the panel with table, phases and legend; without it, or if the style has "
		    "none, the legend is below the plot"),
	OPT(CHOICE, labels, .name = "point-labels", .meta = "WHICH", .choices = label_names,
	    .def = "auto",
	    .help = "labels of the points: auto names all of up to 14 points, or 12 of more, if "
		    "there is room"),
	OPT(TEXT, xlim, .name = "xlim", .meta = "LO:HI",
	    .help = "range of arithmetic intensity in FLOP per byte (time: in ms); points outside "
		    "it become arrows at the edge"),
	OPT(TEXT, ylim, .name = "ylim", .meta = "LO:HI",
	    .help = "range of performance in GFLOP/s (time: in ms)"),
	OPT(REAL, width, .name = "width", .meta = "LENGTH", .rmin = RFL_PLOT_MIN_WIDTH,
	    .rmax = RFL_PLOT_MAX_SIDE, .length = true,
	    .help = "width, such as 85mm, 8.5cm or 3.35in; without a unit, in points of 1/72 inch; "
		    "default: depends on the style"),
	OPT(REAL, height, .name = "height", .meta = "LENGTH", .rmin = RFL_PLOT_MIN_HEIGHT,
	    .rmax = RFL_PLOT_MAX_SIDE, .length = true,
	    .help = "height, as --width; default: depends on the style and the contents"),
	OPT(REAL, dpi, .name = "dpi", .meta = "N", .def = "144", .rmin = 36, .rmax = 600,
	    .help = "resolution of PNG files in pixels per inch; 144 is two pixels per point"),
	OPT(FLAG, data, .name = "data", .negatable = true, .def = "on",
	    .help = "store points, ceilings and options in PNG and SVG files, for --from"),
	{ .name = NULL },
};

extern const struct rfl_cmd rfl_cmd_plot;

struct job {
	const struct rfl_plot_args *args;
	struct rfl_arena *arena;   /* of the command */
	struct rfl_points *points; /* all points of the file */
	struct rfl_points shown;   /* the selected ones; borrows their strings */
	struct rfl_points *before; /* of --against */
	struct rfl_plot_input in;  /* of all figures; without environments */
	struct rfl_peaks *peaks;
	json_t *options;          /* as stored in pictures; NULL: they carry no data */
	struct rfl_opt_list envs; /* items belong to `args` or to the arena */
	struct rfl_plot_outputs outputs;
};

static void release(struct job *j)
{
	rfl_plot_outputs_fini(&j->outputs);
	rfl_peaks_free(j->peaks);
	rfl_points_free(j->points);
	rfl_points_free(j->before);
	json_decref(j->options);
}

/* Options that select points by a column. */
static const struct filter {
	const char *name;
	size_t asked,
		column; /* offsets in struct rfl_plot_args, struct rfl_point; batch is a number */
} filters[] = {
	{ "model", offsetof(struct rfl_plot_args, runs.model), offsetof(struct rfl_point, model) },
	{ "batch", offsetof(struct rfl_plot_args, batch), offsetof(struct rfl_point, batch) },
	{ "precision", offsetof(struct rfl_plot_args, runs.precision),
	  offsetof(struct rfl_point, precision) },
	{ "mode", offsetof(struct rfl_plot_args, mode), offsetof(struct rfl_point, mode) },
};

static const struct rfl_opt_list *asked_of(const struct job *j, const struct filter *f)
{
	return (const void *)((const char *)j->args + f->asked);
}

static const char *value_of(struct job *j, const struct filter *f, const struct rfl_point *p)
{
	const char *at = (const char *)p + f->column, *text;

	if (f->column == offsetof(struct rfl_point, batch))
		return rfl_arena_printf(j->arena, "%lld", (long long)p->batch);
	text = *(char *const *)at;
	return text ? text : "";
}

#define SHOWN 100 /* bytes of a list of values in a message */

/* Check that each requested value occurs in a point. */
static enum rfl_rc check_filter(struct job *j, const struct filter *f, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = asked_of(j, f);
	struct rfl_opt_list known = { .n = 0 };
	const char *all = "";

	known.items = rfl_arena_array(j->arena, j->points->n + 1, sizeof(*known.items));
	for (size_t i = 0; i < j->points->n; i++) {
		const char *value = value_of(j, f, &j->points->points[i]);

		if (rfl_opt_list_has(&known, value))
			continue;
		if (strlen(all) <= SHOWN)
			all = rfl_arena_printf(j->arena, "%s%s%s", all, known.n ? ", " : "", value);
		known.items[known.n++] = value;
	}
	for (size_t i = 0; i < asked->n; i++) {
		const char *near = rfl_text_nearest(asked->items[i], known.items);

		if (rfl_opt_list_has(&known, asked->items[i]))
			continue;
		if (near && f->column != offsetof(struct rfl_point, batch))
			return rfl_fail(err, RFL_ENOTFOUND, 0,
					"--%s: %s has no point with '%s'; did you mean %s?",
					f->name, j->args->points, asked->items[i], near);
		return rfl_fail(err, RFL_ENOTFOUND, 0, "--%s: %s has no point with '%s', only %.*s",
				f->name, j->args->points, asked->items[i], SHOWN, all);
	}
	return RFL_OK;
}

/* Describe the filters and one more: "model vgg16; batch 4, 8". */
static const char *add_filter(struct job *j, const struct filter *f)
{
	const struct rfl_opt_list *asked = asked_of(j, f);
	const char *text = j->in.selection;

	for (size_t i = 0; i < asked->n; i++)
		text = i ? rfl_arena_printf(j->arena, "%s, %s", text, asked->items[i])
			 : rfl_arena_printf(j->arena, "%s%s%s %s", text ? text : "",
					    text ? "; " : "", f->name, asked->items[i]);
	return text;
}

static enum rfl_rc filter_points(struct job *j, struct rfl_err *err)
{
	const size_t n = j->points->n;
	enum rfl_rc rc;

	j->shown = *j->points;
	j->shown.points = rfl_arena_array(j->arena, n + 1, sizeof(*j->shown.points));
	memcpy(j->shown.points, j->points->points, n * sizeof(*j->shown.points));
	for (const struct filter *f = filters; f < filters + RFL_ARRAY_LEN(filters); f++) {
		const struct rfl_opt_list *asked = asked_of(j, f);
		size_t kept = 0;

		if (asked->n == 0)
			continue;
		if ((rc = check_filter(j, f, err)) != RFL_OK)
			return rc;
		for (size_t i = 0; i < j->shown.n; i++)
			if (rfl_opt_list_has(asked, value_of(j, f, &j->shown.points[i])))
				j->shown.points[kept++] = j->shown.points[i];
		j->shown.n = kept;
		j->in.selection = add_filter(j, f);
	}
	if (n > 0 && j->shown.n == 0)
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no point matches --model, --batch, --precision and --mode "
				"together; omit one of them",
				j->args->points);
	return RFL_OK;
}

/* Parse "LO:HI". */
static enum rfl_rc parse_limits(struct job *j, const char *option, const char *text, double ret[2],
				struct rfl_err *err)
{
	char *low = text ? rfl_arena_strdup(j->arena, text) : NULL, *colon;

	if (!text)
		return RFL_OK;
	colon = strchr(low, ':');
	if (colon)
		*colon = '\0';
	if (!colon || rfl_num_parse_double(low, option, &ret[0], NULL) != RFL_OK ||
	    rfl_num_parse_double(colon + 1, option, &ret[1], NULL) != RFL_OK)
		return rfl_usage(err,
				 "%s: '%s' is not a valid range; use two positive numbers LO:HI, "
				 "such as 0.1:1000",
				 option, text);
	return rfl_plot_check_limits(option, ret, err) == RFL_OK ? RFL_OK : RFL_EUSAGE;
}

bool rfl_plot_is_again(const struct rfl_opt_list *list, size_t i)
{
	return rfl_opt_list_has(&(struct rfl_opt_list){ .n = i, .items = list->items },
				list->items[i]);
}

static bool has_roofs_alone(const struct job *j, const char *env)
{
	for (size_t i = 0; i < j->points->n; i++)
		if (rfl_text_same(j->points->points[i].env, env))
			return false;
	return j->args->kind == RFL_PLOT_ROOFLINE && rfl_peaks_find(j->peaks, env);
}

/* Whether a figure of several environments shows the roofs of one that has no points. */
static bool shows_roofs_alone(const struct job *j, const char *env)
{
	return j->args->layout != LAYOUT_EACH && has_roofs_alone(j, env);
}

/* Select the environments of --env or, by default, all that have points and all of a picture; keep
 * the given order. */
static enum rfl_rc select_envs(struct job *j, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = &j->args->runs.env;
	const char *path = j->args->points;
	struct rfl_opt_list known = { .n = 0 };

	known.items =
		rfl_arena_array(j->arena, j->shown.n + j->peaks->nenvs + 1, sizeof(*known.items));
	for (size_t i = 0; i < j->shown.n; i++) {
		const char *env = j->shown.points[i].env;

		if (!env || rfl_opt_list_has(&known, env))
			continue;
		/* the name becomes part of a file name */
		if (rfl_text_check_env_name(path, env, RFL_EFORMAT, err) != RFL_OK)
			return RFL_EFORMAT;
		known.items[known.n++] = env;
	}
	if (known.n == 0)
		return rfl_fail(
			err, RFL_EMISSING, 0,
			"%s: no points; run 'roofline points' to create them from the ledger",
			path);
	for (size_t i = 0; i < j->peaks->nenvs && (asked->n || j->args->picture); i++)
		if (shows_roofs_alone(j, j->peaks->envs[i].name))
			known.items[known.n++] = j->peaks->envs[i].name;
	for (size_t i = 0; i < asked->n; i++) {
		const char *env = asked->items[i], *near;

		if (rfl_opt_list_has(&known, env))
			continue;
		near = rfl_text_nearest(env, known.items);
		if (has_roofs_alone(j, env))
			return rfl_fail(
				err, RFL_ENOTFOUND, 0,
				"--env: %s has no points for '%s'; to draw its roofs beside "
				"other environments, use --layout grid or overlay",
				path, env);
		return rfl_fail(err, RFL_ENOTFOUND, 0, "--env: %s has no points for '%s'%s%s%s%s",
				path, env,
				j->shown.n < j->points->n ? " that the filters select" : "",
				near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	known.n = asked->n ? 0 : known.n; /* it has room for one of each */
	for (size_t i = 0; i < asked->n; i++)
		if (!rfl_plot_is_again(asked, i))
			known.items[known.n++] = asked->items[i];
	j->envs = known;
	return RFL_OK;
}

static enum rfl_rc find_env(const struct job *j, const char *name, const struct rfl_peaks_env **ret,
			    struct rfl_err *err)
{
	*ret = rfl_peaks_find(j->peaks, name);
	return *ret ? RFL_OK
		    : rfl_fail(err, RFL_EMISSING, 0,
			       "environment %s: not in %s, although %s has points for it; run "
			       "'roofline peaks measure --env %s' to measure its ceilings",
			       name, j->args->peaks, j->args->points, name);
}

/* Leave out environments without ceilings, and those with nothing to show in this kind of figure,
 * unless none has anything. */
static enum rfl_rc leave_out_envs(struct job *j, struct rfl_err *err)
{
	struct rfl_opt_list *envs = &j->envs;
	const char **kept = rfl_arena_array(j->arena, envs->n, sizeof(*kept));
	const char **why = rfl_arena_array(j->arena, envs->n, sizeof(*why));
	size_t n = 0, out = 0;

	if (envs->n < 2)
		return RFL_OK; /* drawing it reports the reason */
	for (size_t i = 0; i < envs->n; i++) {
		struct rfl_plot_input in = j->in;
		struct rfl_err one = RFL_ERR_INIT;
		enum rfl_rc rc = find_env(j, envs->items[i], &in.env, &one);

		if (rc == RFL_OK && !shows_roofs_alone(j, envs->items[i]))
			rc = rfl_plot_check(&in, &one);
		if (rc == RFL_OK)
			kept[n++] = envs->items[i];
		else if (rc != RFL_EMISSING)
			return rfl_fail(err, rc, 0, "%s", one.msg);
		else
			why[out++] = rfl_arena_strdup(j->arena, one.msg);
	}
	for (size_t i = 0; i < out && n > 0; i++)
		rfl_log(RFL_LOG_WARN, "skipped %s", why[i]);
	if (n == 0)
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s; the other environments have nothing to show either", why[0]);
	*envs = (struct rfl_opt_list){ .n = n, .items = kept };
	return RFL_OK;
}

/* A figure in progress. */
struct drawing {
	struct rfl_plot_input in;
	const char *title;   /* NULL: generated */
	struct rfl_buf data; /* that the picture carries */
	struct rfl_scene *scene;
};

static enum rfl_rc draw(void *ctx, const struct rfl_plot_size *size, const struct rfl_scene **ret,
			struct rfl_err *err)
{
	struct drawing *d = ctx;
	enum rfl_rc rc;

	rfl_scene_free(d->scene);
	d->scene = NULL;
	d->in.title = size->printed ? NULL : d->title;
	d->in.style = size->style;
	d->in.width = size->width;
	d->in.height = size->height;
	if ((rc = rfl_plot_roofline(&d->in, &d->scene, err)) != RFL_OK)
		return rc;
	d->scene->data = d->data.len ? rfl_buf_str(&d->data) : NULL;
	*ret = d->scene;
	return RFL_OK;
}

/* Draw one figure of n environments in all formats. */
static enum rfl_rc draw_figure(struct job *j, const char *name, const char *const *names, size_t n,
			       struct rfl_err *err)
{
	const struct rfl_peaks_env **envs = rfl_arena_array(j->arena, n, sizeof(*envs));
	struct drawing d = { .in = j->in, .title = j->in.title };
	enum rfl_rc rc;

	for (size_t i = 0; i < n; i++)
		if ((rc = find_env(j, names[i], &envs[i], err)))
			return rc;
	d.in.env = envs[0];
	d.in.envs = envs;
	d.in.nenvs = n;
	rfl_buf_init(&d.data, RFL_DATA_MAX);
	/* drawing reports what is missing; then come faults of the data */
	rc = n == 1 ? rfl_plot_check(&d.in, err) : RFL_OK;
	if (rc == RFL_OK && j->options) {
		const struct rfl_figure_data carried = { .points = j->points,
							 .peaks = j->peaks,
							 .points_name = d.in.points_name,
							 .before = j->before,
							 .before_name = d.in.before_name,
							 .peaks_name = d.in.peaks_name,
							 .options = j->options };

		rc = rfl_figure_data_write(&carried, names, n, &d.data, err);
		if (rc == RFL_EOVERFLOW) {
			rfl_log(RFL_LOG_WARN, "%s", err->msg);
			rfl_err_clear(err);
			rfl_buf_reset(&d.data);
			rc = RFL_OK;
		}
	}
	if (rc == RFL_OK)
		rc = rfl_plot_add(
			&j->outputs, draw, &d,
			rfl_arena_printf(j->arena, "%s_%s", rfl_plot_kinds[j->args->kind], name),
			err);
	rfl_scene_free(d.scene);
	rfl_buf_fini(&d.data);
	return rc;
}

/* @param peaks  set to the file of the ceilings */
static enum rfl_rc load(const struct rfl_plot_args *a, struct job *j, const char **peaks,
			struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	const struct rfl_point *first;
	enum rfl_rc rc = rfl_cli_load_points(a->points, &j->points, &why), table = RFL_OK;

	if (rc == RFL_EFORMAT && a->points_given) {
		*peaks = a->peaks_given ? a->peaks : NULL;
		table = rfl_cli_load_table(a->points, &a->runs.map, &a->runs.env, a->peaks, peaks,
					   &j->peaks, &j->points, err);
	}
	if (table || j->peaks)
		return table;
	*peaks = a->peaks;
	if (rc)
		return rfl_err_pass(err, &why);
	first = j->points->n ? &j->points->points[0] : &(struct rfl_point){ .env = NULL };
	return rfl_cli_load_roofs(a->peaks, first->env, first->precision, &j->peaks, err);
}

static enum rfl_rc draw_rooflines(struct rfl_cli *cli, const struct rfl_plot_args *a,
				  struct rfl_err *err)
{
	RFL_CLEANUP(release)
	struct job j = {
		.args = a,
		.arena = cli->arena,
		.in = { .overlay = a->layout == LAYOUT_OVERLAY,
			.kind = (enum rfl_plot_kind)a->kind,
			.before_name = a->against ? rfl_path_base(a->against) : NULL,
			.version = RFL_VERSION,
			.title = a->title,
			.no_panel = !a->panel,
			.labels = (enum rfl_plot_labels)a->labels },
		.outputs = { .cli = cli, .args = a },
	};
	const bool compare = a->kind == RFL_PLOT_COMPARE;
	const char *peaks = a->peaks;
	enum rfl_rc rc = RFL_OK;

	if (compare && !a->against)
		return rfl_usage(err, "--against FILE is required for --kind compare");
	if ((rc = parse_limits(&j, "--xlim", a->xlim, j.in.xlim, err)) ||
	    (rc = parse_limits(&j, "--ylim", a->ylim, j.in.ylim, err)))
		return rc;
	if (a->picture) {
		j.points = a->picture->points;
		j.peaks = a->picture->peaks;
		a->picture->points = NULL;
		a->picture->peaks = NULL;
	} else if ((rc = load(a, &j, &peaks, err))) {
		return rc;
	}
	if (compare && a->picture && a->against == a->picture->before_name) {
		j.before = a->picture->before;
		a->picture->before = NULL;
	} else if (compare && (rc = rfl_points_load(a->against, &j.before, err))) {
		return rc;
	}
	rfl_figure_data_clean(j.points);
	if (j.before)
		rfl_figure_data_clean(j.before);
	j.in.points = &j.shown;
	j.in.points_name = rfl_path_base(a->points);
	j.in.points_hash = j.points->hash;
	j.in.peaks_name = rfl_path_base(peaks);
	j.in.peaks_hash = j.peaks->hash;
	j.in.before = j.before;
	if ((rc = filter_points(&j, err)) || (rc = select_envs(&j, err)) ||
	    (rc = leave_out_envs(&j, err)) ||
	    (a->data && (rc = rfl_plot_options(cli, &rfl_cmd_plot, a, &j.options, err))))
		return rc;
	j.in.all = j.in.selection ? j.points : NULL;
	if (a->layout != LAYOUT_EACH)
		rc = draw_figure(&j, a->layout == LAYOUT_GRID ? "all" : "overlay", j.envs.items,
				 j.envs.n, err);
	for (size_t i = 0; rc == RFL_OK && a->layout == LAYOUT_EACH && i < j.envs.n; i++)
		rc = draw_figure(&j, j.envs.items[i], &j.envs.items[i], 1, err);
	return rc ? rc : rfl_plot_write(&j.outputs, err);
}

static bool is_roofline(const struct rfl_plot_args *a)
{
	return a->kind <= RFL_PLOT_TIME;
}

/* Redraw a picture, with its options as defaults of the command line. */
static enum rfl_rc draw_again(struct rfl_cli *cli, const char *path, struct rfl_err *err)
{
	RFL_AUTOPTR(figure_data) picture = NULL;
	struct rfl_plot_args a = { .points = NULL };
	enum rfl_rc rc = rfl_figure_data_load(path, &picture, err);

	if (rc == RFL_OK)
		rc = rfl_plot_reparse(cli, &rfl_cmd_plot, picture->options, path, &a, err);
	if (rc == RFL_OK && !is_roofline(&a)) /* would read files that the picture names */
		rc = rfl_usage(err,
			       "--from: %s has points, not the data of --kind %s; draw charts from "
			       "--metrics or --peaks",
			       path, rfl_plot_kinds[a.kind]);
	if (rc == RFL_OK) {
		a.picture = picture;
		a.points = picture->points_name;
		a.peaks = picture->peaks_name;
		a.against = a.against ? a.against : picture->before_name;
		rc = draw_rooflines(cli, &a, err);
	}
	rfl_opt_free(&rfl_cmd_plot, &a);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct rfl_plot_args *a = args;

	if (a->from)
		return draw_again(cli, a->from, err);
	return is_roofline(a) ? draw_rooflines(cli, a, err) : rfl_plot_charts(cli, a, err);
}

const struct rfl_cmd rfl_cmd_plot = {
	.name = "plot",
	.summary = "draw the roofline of each environment",
	.description =
		"Draws one figure per environment, <kind>_<env>.<format>. The default kind, "
		"roofline, shows the measured roof with its spread, other limits, a mark for each "
		"configuration with its name, achieved performance and share of the roof, a table, "
		"and the phases of a step. "
		"The paths of the figures are printed on standard output; with --format terminal, "
		"the figure itself.\n\nThe same input always gives identical files. A figure "
		"contains the fingerprints of its input files; PNG and SVG files also carry the "
		"points, ceilings and options, so that --from can redraw them.\n\nThe kinds "
		"from throughput to bandwidth are charts of --metrics (bandwidth: of --peaks). "
		"Next to each is <kind>_<env>.gp, a gnuplot script with the numbers.",
	.example = "roofline plot\n"
		   "roofline plot --points points.csv --peaks peaks.json --format png,svg,pdf\n"
		   "roofline plot --from figures/roofline_lab.png --format terminal\n"
		   "roofline plot --kind throughput --metrics logs/metrics.csv",
	.opts = opts,
	.args_size = sizeof(struct rfl_plot_args),
	.run = run,
};
