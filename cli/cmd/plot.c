/* plot.c - roofline plot: draw a figure for each environment from its points and ceilings. */
#include "cli/cmd.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "plot/plot.h"
#include "rfl_config.h"

struct plot_args {
	const char *kind, *points, *peaks, *output_dir, *title;
	struct rfl_opt_list env, format;
	double width, height, dpi;
};

#define OPT(kind, member, ...) RFL_OPT(struct plot_args, kind, member, __VA_ARGS__)

/* The kinds of figures; kinds[] has the function of each. Rooflines come first, in the order of
 * enum rfl_plot_kind. */
static const char *const kind_names[] = { "roofline",     "layers",     "kernels",
					  "hierarchical", "trajectory", NULL };

static const struct rfl_opt opts[] = {
	OPT(TEXT, kind, .name = "kind", .meta = "KIND", .choices = kind_names, .def = "roofline",
	    .help = "kind of the figures: roofline (steps); layers or kernels of steps; "
		    "hierarchical "
		    "(intensities of L1, L2 and DRAM); trajectory (arrows from batch to batch)"),
	OPT(TEXT, points, .letter = 'p', .name = "points", .meta = "FILE",
	    .help = "points, as written by 'roofline points'"),
	OPT(TEXT, peaks, .name = "peaks", .meta = "FILE",
	    .help = "peaks file that 'roofline points' used"),
	OPT(LIST, env, .letter = 'e', .name = "env", .meta = "NAME",
	    .help = "environments to draw; default: all that have points"),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .meta = "DIR", .def = "figures",
	    .help = "folder for the figures; created if missing"),
	OPT(LIST, format, .letter = 'f', .name = "format", .meta = "FMT",
	    .choices = rfl_surface_formats, .def = "png",
	    .help = "formats of the figures, one file each; see 'roofline list surfaces'"),
	OPT(TEXT, title, .name = "title", .meta = "TEXT", .may_be_empty = true,
	    .help = "title of the figures; default: derived from the data"),
	OPT(REAL, width, .name = "width", .meta = "POINTS", .def = "1180",
	    .rmin = RFL_PLOT_MIN_WIDTH, .rmax = RFL_PLOT_MAX_SIDE,
	    .help = "width in points of 1/72 inch"),
	OPT(REAL, height, .name = "height", .meta = "POINTS", .def = "760",
	    .rmin = RFL_PLOT_MIN_HEIGHT, .rmax = RFL_PLOT_MAX_SIDE,
	    .help = "height in points of 1/72 inch"),
	OPT(REAL, dpi, .name = "dpi", .meta = "N", .def = "144", .rmin = 36, .rmax = 600,
	    .help = "resolution of PNG files in pixels per inch; 144 is two pixels per point"),
	{ .name = NULL },
};

/* An output file. All figures are drawn before the first file is written. */
struct output {
	const char *path;
	struct rfl_buf bytes;
};

struct job {
	const struct plot_args *args;
	enum rfl_plot_kind kind;
	struct rfl_arena *arena; /* owns the strings and lists below */
	struct rfl_points *points;
	struct rfl_peaks *peaks;
	const char *font_dir;
	struct rfl_opt_list envs; /* items belong to `args` or to the arena */
	struct output *outputs;
	size_t noutputs;
};

static enum rfl_rc no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "plot: out of memory");
}

/* Select the environments of --env or, by default, all that have points; keep the given order. */
static enum rfl_rc select_envs(struct job *j, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = &j->args->env;
	const char *path = j->args->points;
	struct rfl_opt_list known = { .n = 0 };

	known.items = rfl_arena_array(j->arena, j->points->n + 1, sizeof(*known.items));
	if (!known.items)
		return no_memory(err);
	for (size_t i = 0; i < j->points->n; i++) {
		const char *env = j->points->points[i].env;

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
	for (size_t i = 0; i < asked->n; i++) {
		const char *env = asked->items[i], *near;

		if (rfl_opt_list_has(&known, env))
			continue;
		near = rfl_text_nearest(env, known.items);
		return rfl_fail(err, RFL_ENOTFOUND, 0, "--env: %s has no points for '%s'%s%s%s",
				path, env, near ? "; did you mean '" : "", near ? near : "",
				near ? "'?" : "");
	}
	j->envs = asked->n ? *asked : known;
	return RFL_OK;
}

/* Whether an item repeats an earlier one. */
static bool is_again(const struct rfl_opt_list *list, size_t i)
{
	return rfl_opt_list_has(&(struct rfl_opt_list){ .n = i, .items = list->items },
				list->items[i]);
}

static enum rfl_rc draw_env(struct job *j, const char *env, struct rfl_err *err)
{
	const struct plot_args *a = j->args;
	const struct rfl_plot_input in = {
		.points = j->points,
		.env = rfl_peaks_find(j->peaks, env),
		.points_name = rfl_path_base(a->points),
		.points_hash = j->points->hash,
		.peaks_name = rfl_path_base(a->peaks),
		.peaks_hash = j->peaks->hash,
		.kind = j->kind,
		.version = RFL_VERSION,
		.title = a->title,
		.width = a->width,
		.height = a->height,
	};
	const struct rfl_surface_spec spec = { .dpi = a->dpi, .font_dir = j->font_dir };
	const size_t len = strlen(a->output_dir);
	const char *slash = len > 0 && a->output_dir[len - 1] != '/' ? "/" : "";
	struct rfl_scene *scene = NULL;
	enum rfl_rc rc;

	if (!in.env)
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: no environment '%s', although %s has points for it; run "
				"'roofline peaks measure --env %s' to measure its ceilings",
				a->peaks, env, a->points, env);
	rc = rfl_plot_roofline(&in, &scene, err);
	for (size_t i = 0; rc == RFL_OK && i < a->format.n; i++) {
		const struct rfl_surface_ops *ops = rfl_surface_find(a->format.items[i], err);
		struct output *o = &j->outputs[j->noutputs];

		if (is_again(&a->format, i))
			continue;
		if (!ops) { /* the name is a valid choice, so the surface was not built in */
			rc = RFL_EUNAVAILABLE;
			break;
		}
		rfl_buf_init(&o->bytes, 0);
		j->noutputs++;
		o->path = rfl_arena_printf(j->arena, "%s%s%s_%s.%s", a->output_dir, slash, a->kind,
					   env, ops->suffix);
		rc = o->path ? rfl_surface_draw(ops, &spec, scene, &o->bytes, err) : no_memory(err);
	}
	rfl_scene_free(scene);
	return rc;
}

static enum rfl_rc draw_rooflines(struct rfl_cli *cli, const struct plot_args *a,
				  struct rfl_err *err)
{
	struct job j = { .args = a, .arena = rfl_arena_new(0) };
	enum rfl_rc rc = RFL_OK;

	while (strcmp(kind_names[j.kind], a->kind) != 0)
		j.kind++;
	if (!a->points || !a->peaks) {
		rc = rfl_fail(err, RFL_EUSAGE, 0, "--%s FILE is required for --kind %s",
			      a->points ? "peaks" : "points", a->kind);
		goto done;
	}
	if (j.arena && cli->data_dir)
		j.font_dir = rfl_arena_printf(j.arena, "%s/fonts", cli->data_dir);
	if (!j.arena || (cli->data_dir && !j.font_dir)) {
		rc = no_memory(err);
		goto done;
	}
	if ((rc = rfl_cli_need_file(a->points, "roofline points --output FILE", err)) ||
	    (rc = rfl_points_load(a->points, &j.points, err)) ||
	    (rc = rfl_cli_load_peaks(a->peaks, &j.peaks, err)) || (rc = select_envs(&j, err)))
		goto done;
	rfl_cli_warn_doubts(j.peaks, j.points, &a->env);
	j.outputs = rfl_arena_array(j.arena, j.envs.n * a->format.n, sizeof(*j.outputs));
	if (!j.outputs)
		rc = no_memory(err);
	for (size_t i = 0; rc == RFL_OK && i < j.envs.n; i++)
		if (!is_again(&j.envs, i))
			rc = draw_env(&j, j.envs.items[i], err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(a->output_dir, err);
	for (size_t i = 0; rc == RFL_OK && i < j.noutputs; i++) {
		const struct output *o = &j.outputs[i];

		rc = rfl_file_write(o->path, o->bytes.data, o->bytes.len, err);
		if (rc == RFL_OK)
			rfl_cli_printf(cli, "%s\n", o->path);
	}
done:
	for (size_t i = 0; i < j.noutputs; i++)
		rfl_buf_fini(&j.outputs[i].bytes);
	rfl_peaks_free(j.peaks);
	rfl_points_free(j.points);
	rfl_arena_free(j.arena);
	return rc;
}

/* In the order of kind_names. */
static enum rfl_rc (*const kinds[])(struct rfl_cli *cli, const struct plot_args *a,
				    struct rfl_err *err) = { draw_rooflines, draw_rooflines,
							     draw_rooflines, draw_rooflines,
							     draw_rooflines };

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct plot_args *a = args;
	size_t i = 0;

	while (strcmp(kind_names[i], a->kind) != 0)
		i++;
	return kinds[i](cli, a, err);
}

const struct rfl_cmd rfl_cmd_plot = {
	.name = "plot",
	.summary = "draw the roofline of each environment",
	.description =
		"Draws one figure per environment, <kind>_<env>.<format>. It shows the measured "
		"roof with its spread, other limits, a mark for each configuration with its name, "
		"attained performance and share of the roof, a table, and the phases of a step. "
		"The paths of the figures are printed on standard output.\n\nThe same input always "
		"gives identical files. A figure contains the fingerprints of its input files.",
	.example = "roofline plot --points points.csv --peaks peaks.json\n"
		   "roofline plot --points points.csv --peaks peaks.json --format png,svg,pdf",
	.opts = opts,
	.args_size = sizeof(struct plot_args),
	.run = run,
};
