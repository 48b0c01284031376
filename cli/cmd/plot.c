/*
 * plot.c - roofline plot: one figure per environment, from the points and the ceilings.
 */
#include "cli/cmd.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/doubts.h"
#include "plot/plot.h"
#include "rfl_config.h"

struct plot_args {
	const char *points, *peaks, *output_dir, *title;
	struct rfl_opt_list env, format;
	double width, height, dpi;
};

#define AT(member) offsetof(struct plot_args, member)

static const struct rfl_opt opts[] = {
	{ .letter = 'p',
	  .name = "points",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(points),
	  .required = true,
	  .help = "points, as 'roofline points' writes them" },
	{ .name = "peaks",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(peaks),
	  .required = true,
	  .help = "ceilings: the file that the points were made with" },
	{ .letter = 'e',
	  .name = "env",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(env),
	  .help = "environments to draw; without it all that have points" },
	{ .letter = 'o',
	  .name = "output-dir",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(output_dir),
	  .def = "figures",
	  .help = "folder of the figures, made when it is not there" },
	{ .letter = 'f',
	  .name = "format",
	  .meta = "FMT",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(format),
	  .choices = rfl_surface_formats,
	  .def = "png",
	  .help = "one file for each; see 'roofline list surfaces'" },
	{ .name = "title",
	  .meta = "TEXT",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(title),
	  .may_be_empty = true,
	  .help = "instead of the one that is made from the data" },
	{ .name = "width",
	  .meta = "POINTS",
	  .kind = RFL_OPT_REAL,
	  .offset = AT(width),
	  .def = "1180",
	  .rmin = RFL_PLOT_MIN_WIDTH,
	  .rmax = RFL_PLOT_MAX_SIDE,
	  .help = "width in points of 1/72 inch" },
	{ .name = "height",
	  .meta = "POINTS",
	  .kind = RFL_OPT_REAL,
	  .offset = AT(height),
	  .def = "760",
	  .rmin = RFL_PLOT_MIN_HEIGHT,
	  .rmax = RFL_PLOT_MAX_SIDE,
	  .help = "height in points of 1/72 inch" },
	{ .name = "dpi",
	  .meta = "N",
	  .kind = RFL_OPT_REAL,
	  .offset = AT(dpi),
	  .def = "144",
	  .rmin = 36,
	  .rmax = 600,
	  .help = "pixels per inch of a PNG: 144 is two pixels per point" },
	{ .name = NULL },
};

/* One file to be written: everything is drawn before anything is. */
struct output {
	const char *path;
	struct rfl_buf bytes;
};

struct job {
	const struct plot_args *args;
	struct rfl_arena *arena; /* owns the texts and lists below */
	struct rfl_points *points;
	struct rfl_peaks *peaks;
	const char *font_dir;
	const char **envs;
	size_t nenvs;
	struct output *outputs;
	size_t noutputs;
};

static bool has(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static enum rfl_rc no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "plot: out of memory");
}

static enum rfl_rc load(struct job *j, const struct rfl_cli *cli, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_cli_need_file(j->args->points, "roofline points --output FILE", err);

	if (rc == RFL_OK)
		rc = rfl_cli_need_file(j->args->peaks,
				       "roofline peaks measure --env NAME --output FILE", err);
	if (rc == RFL_OK)
		rc = rfl_points_load(j->args->points, &j->points, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_load(j->args->peaks, &j->peaks, err);
	if (rc == RFL_OK && cli->data_dir) {
		j->font_dir = rfl_arena_printf(j->arena, "%s/fonts", cli->data_dir);
		rc = j->font_dir ? RFL_OK : no_memory(err);
	}
	return rc;
}

/* The environments of the points in the order of the file, or those that were asked for in the
 * order in which they were. */
static enum rfl_rc select_envs(struct job *j, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = &j->args->env;
	const char *path = j->args->points;
	const char **known = rfl_arena_array(j->arena, j->points->n + 1, sizeof(*known));
	size_t nknown = 0;

	j->envs = rfl_arena_array(j->arena, asked->n + 1, sizeof(*j->envs));
	if (!known || !j->envs)
		return no_memory(err);
	for (size_t i = 0; i < j->points->n; i++) {
		const char *env = j->points->points[i].env;

		if (!env || has(known, nknown, env))
			continue;
		/* it becomes a file name */
		if (rfl_text_check_env_name(path, env, RFL_EFORMAT, err) != RFL_OK)
			return RFL_EFORMAT;
		known[nknown++] = env;
	}
	if (nknown == 0)
		return rfl_fail(
			err, RFL_EMISSING, 0,
			"%s: there are no points; 'roofline points' makes them from the ledger",
			path);
	for (size_t i = 0; i < asked->n; i++) {
		const char *env = asked->items[i], *near;

		if (has(j->envs, j->nenvs, env))
			continue;
		if (!has(known, nknown, env)) {
			near = rfl_text_nearest(env, known);
			return rfl_fail(err, RFL_ENOTFOUND, 0,
					"--env: %s has no points of '%s'%s%s%s", path, env,
					near ? "; did you mean '" : "", near ? near : "",
					near ? "'?" : "");
		}
		j->envs[j->nenvs++] = env;
	}
	if (asked->n == 0) {
		j->envs = known;
		j->nenvs = nknown;
	}
	return RFL_OK;
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
				"%s: no environment '%s', which %s has points of; 'roofline peaks "
				"measure --env %s' supplies its ceilings",
				a->peaks, env, a->points, env);
	rc = rfl_plot_roofline(&in, &scene, err);
	for (size_t i = 0; rc == RFL_OK && i < a->format.n; i++) {
		const struct rfl_surface_ops *ops = rfl_surface_find(a->format.items[i], err);
		struct output *o = &j->outputs[j->noutputs];

		if (has(a->format.items, i, a->format.items[i]))
			continue; /* named twice */
		if (!ops) {       /* the choices are names of rows, so this one was not built in */
			rc = RFL_EUNAVAILABLE;
			break;
		}
		rfl_buf_init(&o->bytes, 0);
		j->noutputs++;
		o->path = rfl_arena_printf(j->arena, "%s%sroofline_%s.%s", a->output_dir, slash,
					   env, ops->suffix);
		rc = o->path ? rfl_surface_draw(ops, &spec, scene, &o->bytes, err) : no_memory(err);
	}
	rfl_scene_free(scene);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct job j = { .args = args, .arena = rfl_arena_new(0) };
	enum rfl_rc rc = j.arena ? load(&j, cli, err) : no_memory(err);

	if (rc == RFL_OK)
		rc = select_envs(&j, err);
	if (rc != RFL_OK)
		goto done;
	rfl_cli_warn_doubts(j.peaks, j.points, &j.args->env);
	j.outputs = rfl_arena_array(j.arena, j.nenvs * j.args->format.n, sizeof(*j.outputs));
	if (!j.outputs)
		rc = no_memory(err);
	for (size_t i = 0; rc == RFL_OK && i < j.nenvs; i++)
		rc = draw_env(&j, j.envs[i], err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(j.args->output_dir, err);
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

const struct rfl_cmd rfl_cmd_plot = {
	.name = "plot",
	.summary = "draw the roofline of each environment",
	.description =
		"One figure per environment, roofline_<env>.<format>: the measured roof with its "
		"spread, what else limits the points, a mark per configuration with its name, rate "
		"and share of the roof, and beside it a table and the phases of a step. The paths "
		"are printed on standard output.\n\n"
		"The same input gives the same bytes. A figure carries the fingerprints of its "
		"input files.",
	.example = "roofline plot --points points.csv --peaks peaks.json\n"
		   "roofline plot --points points.csv --peaks peaks.json --format png,svg,pdf",
	.opts = opts,
	.args_size = sizeof(struct plot_args),
	.operands_offset = -1,
	.run = run,
};
