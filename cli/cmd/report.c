/* report.c - roofline report: one document from the files of all other commands. */
#include "cli/cmd/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "plot/surface_data.h"
#include "report/report.h"
#include "rfl_config.h"
#include "runner/env/record.h"

struct report_args {
	struct rfl_cli_runs_args in;
	const char *peaks, *complexity_json, *matrix, *output, *title, *as;
	struct rfl_opt_list points, counters, env, figures;
	int kind, factor, paper;
};

static const char *const papers[] = { "a4", "letter", NULL };

#define OPT(kind, member, ...) RFL_OPT(struct report_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(LIST, in.metrics, .name = "metrics", .meta = "FILE",
	    .help = "ledgers, or tables of other programs; several are read as one"),
	OPT(LIST, in.map, RFL_OPT_MAP),
	OPT(LIST, points, .letter = 'p', .name = "points", .meta = "FILE",
	    .help = "points of steps, layers or kernels, as written by 'roofline points'"),
	OPT(TEXT, peaks, .name = "peaks", .meta = "FILE",
	    .help = "peaks file that 'roofline points' used"),
	OPT(TEXT, complexity_json, .name = "complexity-json", .meta = "FILE",
	    .help = "summary.json of 'roofline complexity'"),
	OPT(LIST, counters, .name = "counters", .meta = "FILE",
	    .help = "counters.csv files of 'roofline run --counters' or 'roofline counters "
		    "import'"),
	OPT(TEXT, matrix, .name = "matrix", .meta = "FILE",
	    .help = "matrix of the runs, to list missing runs"),
	OPT(LIST, env, .name = "env", .meta = "FILE", .help = "env.json files of 'roofline env'"),
	OPT(LIST, figures, .name = "figures", .meta = "DIR",
	    .help = "folders with figures of 'roofline plot' to add, as SVG or, in a PDF, as PNG; "
		    "those that the report draws itself are not added again"),
	OPT(TEXT, output, .letter = 'o', .name = "output", .meta = "FILE", .required = true,
	    .help = "file to write; its suffix selects the format: .md (with SVG figures next to "
		    "it), .html (everything in one file) or .pdf"),
	OPT(CHOICE, kind, .name = "kind", .meta = "KIND", .choices = rfl_report_kinds, .def = "run",
	    .help = "kind of report: run has results and their analysis; project has the sections "
		    "of a graded project, with questions for its author to answer; lm, attention "
		    "and "
		    "training are about the runs of 'bench lm', 'bench attention' and 'train'"),
	OPT(TEXT, as, .name = "as", .meta = "TOOL",
	    .help = "another counter to add rates for, as in reports that used it; see 'roofline "
		    "complexity --as'"),
	OPT(CHOICE, factor, .name = "train-factor", .meta = "FACTOR",
	    .choices = rfl_train_factor_names, .def = "exact",
	    .help = "FLOPs of a training step for --as: 2 or 3 times those of the forward pass, or "
		    "the exact ratio"),
	OPT(CHOICE, paper, .name = "paper", .meta = "SIZE", .choices = papers, .def = "a4",
	    .help = "paper size of a PDF"),
	OPT(TEXT, title, .name = "title", .meta = "TEXT", .max = 1000,
	    .help = "title of the report"),
	{ .name = NULL },
};

struct job {
	const struct report_args *args;
	struct rfl_arena *arena;  /* owns the strings and lists below */
	struct rfl_report report; /* with the inputs, which the job owns */
	struct rfl_report_file *files;
	size_t files_cap;
	struct rfl_report_picture *pictures;
	size_t pictures_cap;
	struct rfl_captures captures;
	struct rfl_matrix_coverage coverage;
	json_t **envs;
};

/* Check that an input exists, and add it to the list of files with its fingerprint.
 * @param command  the command that writes such files; NULL: the user does */
static enum rfl_rc add_file(struct job *j, const char *path, const char *contents,
			    const char *command, struct rfl_err *err)
{
	enum rfl_rc rc = command ? rfl_cli_need_file(path, command, err) : RFL_OK;
	char hash[17];

	if (rc || (rc = rfl_file_hash(path, hash, err)))
		return rc;
	rfl_reserve(&j->files, &j->files_cap, j->report.nfiles + 1);
	j->files[j->report.nfiles++] = (struct rfl_report_file){
		.path = path,
		.contents = contents,
		.command = command,
		.hash = rfl_arena_strdup(j->arena, hash),
	};
	return RFL_OK;
}

/* Add the remedy to a message about a damaged file, which is the last one of the list. */
static enum rfl_rc again(const struct job *j, enum rfl_rc rc, struct rfl_err *err)
{
	const struct rfl_report_file *file = j->files + j->report.nfiles - 1;
	struct rfl_err cause = *err;

	if (rc != RFL_EFORMAT || j->report.nfiles == 0 || strchr(err->msg, ';'))
		return rc;
	rfl_err_clear(err);
	return rfl_fail(err, rc, cause.native, "%s; %s%s%s", cause.msg,
			file->command ? "create the file again with '" : "correct the file",
			file->command ? file->command : "", file->command ? "'" : "");
}

static bool is_shown(const struct rfl_runs *runs, size_t i, void *kind)
{
	const struct rfl_ledger_row *row = &runs->ledger->rows[i];

	return rfl_report_shows(*(enum rfl_report_kind *)kind, row->model, row->context_length);
}

static enum rfl_rc load_runs(struct job *j, struct rfl_err *err)
{
	const struct rfl_opt_list *metrics = &j->args->in.metrics;
	const bool trainings = j->report.kind == RFL_REPORT_TRAINING;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < metrics->n && rc == RFL_OK; i++) {
		rc = add_file(j, metrics->items[i], "runs",
			      trainings ? "roofline train" : "roofline run", err);
		if (rc == RFL_OK)
			j->files[i].command = rfl_ledger_is_foreign(metrics->items[i])
						      ? "another program"
						      : "roofline run or train";
	}
	if (rc == RFL_OK && metrics->n &&
	    !(rc = rfl_cli_load_runs(metrics->items, metrics->n, &j->args->in.map,
				     &rfl_ledger_metrics[j->args->in.metric], RFL_ROWS_WHOLE,
				     &j->report.runs, err)))
		rfl_runs_select(j->report.runs, is_shown, &j->report.kind);
	if (rc == RFL_OK && metrics->n)
		rc = rfl_cli_load_repeats(metrics->items, metrics->n, &j->args->in, NULL, 0,
					  RFL_ROWS_WHOLE, &j->report.runs, &j->report.repeats, err);
	if (rc == RFL_OK && metrics->n == 1)
		j->report.runs_hash = j->files[0].hash;
	if (rc || !j->args->matrix)
		return rc;
	if (!rfl_file_exists(j->args->matrix))
		return rfl_fail(err, RFL_EIO, 0,
				"%s: no such file; use the matrix file of 'roofline matrix run'",
				j->args->matrix);
	if ((rc = add_file(j, j->args->matrix, "matrix", NULL, err)) ||
	    (rc = rfl_matrix_load(j->args->matrix, &j->report.matrix, err)) ||
	    (rc = rfl_matrix_cover(j->report.matrix, j->report.runs ? j->report.runs->ledger : NULL,
				   &j->coverage, err)))
		return again(j, rc, err);
	j->report.coverage = &j->coverage;
	return RFL_OK;
}

/* Append a point to a list, which borrows its texts; create the list if necessary. */
static void take_point(struct rfl_points **list, size_t *cap, const struct rfl_point *p)
{
	if (!*list)
		*list = rfl_points_new(0);
	rfl_reserve(&(*list)->points, cap, (*list)->n + 1);
	(*list)->points[(*list)->n++] = *p;
}

static enum rfl_rc load_points(struct job *j, const char *path, size_t caps[2], struct rfl_err *err)
{
	struct rfl_points *file = NULL, *steps = j->report.points;
	enum rfl_rc rc = add_file(j, path, "points", "roofline points --output FILE", err);
	size_t kept = 0;

	if (rc || (rc = rfl_points_load(path, &file, err)))
		return again(j, rc, err);
	for (size_t i = 0; i < file->n; i++) {
		const struct rfl_point *p = &file->points[i];

		if (!rfl_report_shows(j->report.kind, p->model, p->context_length))
			continue;
		if (p->part)
			take_point(&j->report.parts, &caps[1], p);
		else if (steps)
			take_point(&steps, &caps[0], p);
		else
			file->points[kept++] = *p;
	}
	if (kept || (file->n == 0 && !j->report.points_path))
		j->report.points_path =
			path; /* its fingerprint is listed, or it is named as empty */
	if (kept) {
		caps[0] = file->n;
		file->n = kept;
		j->report.points = file;
		return RFL_OK;
	}
	rfl_arena_join(j->arena, file->arena); /* the lists refer to its texts */
	file->arena = NULL;
	rfl_points_free(file);
	return RFL_OK;
}

static enum rfl_rc load_roofline(struct job *j, struct rfl_err *err)
{
	const struct report_args *a = j->args;
	size_t caps[2] = { 0, 0 };
	enum rfl_rc rc;

	for (size_t i = 0; i < a->points.n; i++)
		if ((rc = load_points(j, a->points.items[i], caps, err)))
			return rc;
	if (a->peaks && ((rc = add_file(j, a->peaks, "ceilings",
					"roofline peaks measure --env NAME --output FILE", err)) ||
			 (rc = rfl_peaks_load(a->peaks, &j->report.peaks, err)) ||
			 (rc = rfl_json_load(a->peaks, &j->report.peaks_json, err))))
		return again(j, rc, err);
	/* figures carry the points, and reports are sent to others */
	if (j->report.points)
		rfl_figure_data_clean(j->report.points);
	if (j->report.parts)
		rfl_figure_data_clean(j->report.parts);
	return RFL_OK;
}

/* Check the parts of summary.json that the report shows. */
static enum rfl_rc check_complexity(const json_t *root, const char *path, struct rfl_err *err)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));
	const json_t *models = json_object_get(root, "models"), *m;
	size_t i;

	if (!json_is_array(models))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: no list of models; use the summary.json of 'roofline "
				"complexity --output-dir DIR'",
				path);
	if (schema && strcmp(schema, "roofline.complexity/1") != 0)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: /schema: not roofline.complexity/1",
				path);
	json_array_foreach(models, i, m)
	{
		if (!json_is_string(json_object_get(m, "model")) ||
		    !json_is_array(json_object_get(m, "batches")))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: /models/%zu: must have a model (a string) and batches "
					"(a list)",
					path, i);
	}
	return RFL_OK;
}

static enum rfl_rc check_env(const json_t *root, const char *path, struct rfl_err *err)
{
	const char *version = json_string_value(json_object_get(root, "schema_version"));
	json_t *all = json_object_get(root, "environments"), *record;
	const char *name;

	if (!json_is_object(all))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: no environments; use the env.json of 'roofline env'", path);
	if (version && strcmp(version, RFL_ENV_SCHEMA) != 0)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: /schema_version: not " RFL_ENV_SCHEMA,
				path);
	json_object_foreach(all, name, record)
	{
		if (!json_is_object(record))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: /environments/%s: must be an object", path, name);
	}
	return RFL_OK;
}

static enum rfl_rc load_counts(struct job *j, struct rfl_err *err)
{
	const struct report_args *a = j->args;
	const char *path = a->complexity_json;
	enum rfl_rc rc = RFL_OK;

	if (path && ((rc = add_file(j, path, "counts of the networks",
				    "roofline complexity --output-dir DIR", err)) ||
		     (rc = rfl_json_load(path, &j->report.complexity, err)) ||
		     (rc = check_complexity(j->report.complexity, path, err))))
		return again(j, rc, err);
	for (size_t i = 0; i < a->counters.n && rc == RFL_OK; i++) {
		path = a->counters.items[i];
		if (!(rc = add_file(j, path, "counters", "roofline run --counters step", err)))
			rc = rfl_counters_load(path, NULL, 0, &j->captures, err);
	}
	j->report.captures = a->counters.n ? &j->captures : NULL;
	for (size_t i = 0; i < a->env.n && rc == RFL_OK; i++) {
		path = a->env.items[i];
		if ((rc = add_file(j, path, "environments", "roofline env", err)) ||
		    (rc = rfl_json_load(path, &j->envs[i], err)))
			break;
		j->report.nenvs = i + 1;
		rc = check_env(j->envs[i], path, err);
	}
	return again(j, rc, err);
}

static bool is_svg(const char *path)
{
	return rfl_span_ends(rfl_span_of(path), ".svg");
}

static bool is_png(const char *path)
{
	return rfl_span_ends(rfl_span_of(path), ".png");
}

/* Read the figures of a folder: of those with the same name, the SVG file, which a PDF cannot show.
 */
static enum rfl_rc load_figures(struct job *j, struct rfl_err *err)
{
	const struct rfl_opt_list *dirs = &j->args->figures;
	const bool pdf = j->report.format == RFL_FORMAT_PDF;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < 2 * dirs->n && rc == RFL_OK; i++) {
		const char *dir = dirs->items[i / 2], **paths = NULL;
		const bool svg = i % 2 == 0;
		size_t n = 0;

		if (!rfl_dir_exists(dir))
			return rfl_fail(err, RFL_EIO, 0, "--figures: %s: no such folder", dir);
		if (!(svg && pdf))
			rc = rfl_dir_list(dir, svg ? is_svg : is_png, j->arena, &paths, &n, err);
		for (size_t k = 0; k < n && rc == RFL_OK; k++) {
			const int stem = (int)strlen(paths[k]) - 4;
			struct rfl_report_picture *p;

			if (!svg && !pdf &&
			    rfl_file_exists(rfl_arena_printf(j->arena, "%.*s.svg", stem, paths[k])))
				continue;
			if ((rc = add_file(j, paths[k], "figure", "roofline plot", err)))
				break;
			rfl_reserve(&j->pictures, &j->pictures_cap, j->report.npictures + 1);
			p = &j->pictures[j->report.npictures++];
			*p = (struct rfl_report_picture){ .name = rfl_path_base(paths[k]) };
			rc = rfl_file_read(paths[k], &p->file, err);
		}
	}
	return rc;
}

/* The command line, for the report. */
static const char *command_of(struct job *j, const struct rfl_cli *cli)
{
	struct rfl_buf out = { .len = 0 };
	const char *text;

	rfl_buf_puts(&out, "roofline");
	for (int i = 1; i < cli->argc; i++) {
		rfl_buf_putc(&out, ' ');
		rfl_text_shell_word(cli->argv[i], &out);
	}
	text = rfl_arena_strdup(j->arena, rfl_buf_str(&out));
	rfl_buf_fini(&out);
	return text;
}

/* Derive the format and the stem of the figure names from the name of the output. */
static enum rfl_rc take_output(struct job *j, struct rfl_err *err)
{
	const char *path = j->args->output, *base = rfl_path_base(path);
	const char *dot = strrchr(base, '.');
	enum rfl_rc rc;

	if (dot && strcmp(dot, ".md") == 0)
		j->report.format = RFL_FORMAT_MD;
	else if (dot && strcmp(dot, ".html") == 0)
		j->report.format = RFL_FORMAT_HTML;
	else if (dot && strcmp(dot, ".pdf") == 0)
		j->report.format = RFL_FORMAT_PDF;
	else
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--output: '%s' has an unknown suffix; use a name that ends in "
				".md, .html or .pdf",
				path);
	if ((rc = rfl_page_check(j->report.format, err)))
		return rc;
	j->report.stem = rfl_arena_printf(j->arena, "%.*s", (int)(dot - base), base);
	return RFL_OK;
}

#define MARK "<!-- roofline report "

/* Append the mark of a generated report: the fingerprint of the preceding text. */
static void put_mark(struct rfl_buf *out)
{
	char hash[17];

	rfl_hash64_text(rfl_hash64(0, rfl_buf_str(out), out->len), hash);
	rfl_buf_printf(out, MARK "%s -->\n", hash);
}

/* Refuse to replace a file unless it is an unchanged report: its author may have edited it. */
static enum rfl_rc check_unchanged(const char *path, struct rfl_err *err)
{
	const size_t len = sizeof(MARK) - 1 + 16 + sizeof(" -->\n") - 1;
	struct rfl_buf old = { .len = 0 }, mark = old;
	enum rfl_rc rc = RFL_OK;

	if (!rfl_file_exists(path))
		return RFL_OK;
	if ((rc = rfl_file_read(path, &old, err)) == RFL_OK && old.len > 0) {
		const size_t rest = old.len >= len ? old.len - len : 0;

		rfl_buf_append(&mark, old.data, rest);
		put_mark(&mark);
		if (mark.failed || mark.len != old.len ||
		    memcmp(mark.data, old.data, mark.len) != 0)
			rc = rfl_fail(err, RFL_EFAILED, 0,
				      "%s: the file was edited after it was written, or is not "
				      "a report; use another name, or remove it",
				      path);
	}
	rfl_buf_fini(&old);
	rfl_buf_fini(&mark);
	return rc;
}

/* Write the figures, then the page, and print the paths. */
static enum rfl_rc write_all(struct rfl_cli *cli, struct job *j, const struct rfl_page *page,
			     struct rfl_err *err)
{
	const char *path = j->args->output;
	const int dir = (int)(rfl_path_base(path) - path);
	struct rfl_buf out = { .len = 0 };
	enum rfl_rc rc;

	if ((rc = check_unchanged(path, err)) || (rc = rfl_page_write(page, &out, err)) ||
	    (rc = rfl_file_mkdirs_for(path, err)))
		goto done;
	if (page->format == RFL_FORMAT_PDF)
		rfl_buf_putc(&out, '%'); /* begins a comment */
	put_mark(&out);
	if ((rc = rfl_buf_check(&out, "report", err)))
		goto done;
	for (size_t i = 0; i < page->n && rc == RFL_OK && page->format == RFL_FORMAT_MD; i++) {
		const struct rfl_block *b = &page->blocks[i];
		const char *name;

		if (b->kind != RFL_BLOCK_FIGURE && b->kind != RFL_BLOCK_PICTURE)
			continue;
		name = rfl_arena_printf(j->arena, "%.*s%s", dir, path, b->name);
		rc = rfl_file_write(name, b->body, b->body_len, err);
		if (rc == RFL_OK)
			rfl_cli_printf(cli, "%s\n", name);
	}
	if (rc == RFL_OK && !(rc = rfl_file_write(path, out.data, out.len, err)))
		rfl_cli_printf(cli, "%s\n", path);
done:
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct report_args *a = args;
	struct job j = { .args = a, .arena = rfl_arena_new() };
	struct rfl_page *page = NULL;
	enum rfl_rc rc;

	rfl_captures_init(&j.captures);
	j.envs = rfl_arena_array(j.arena, a->env.n, sizeof(json_t *));
	j.report.command = command_of(&j, cli);
	j.report.kind = (enum rfl_report_kind)a->kind;
	j.report.title = a->title;
	j.report.version = RFL_VERSION;
	j.report.data_dir = cli->data_dir;
	j.report.envs = j.envs;
	j.report.factor = (enum rfl_train_factor)a->factor;
	if (a->as && rfl_peer_find(a->as, &j.report.peer, err) != RFL_OK) {
		rfl_err_prefix(err, "--as");
		rc = RFL_EUSAGE;
		goto done;
	}
	if ((rc = take_output(&j, err)) || (rc = load_runs(&j, err)) ||
	    (rc = load_roofline(&j, err)) || (rc = load_counts(&j, err)) ||
	    (rc = load_figures(&j, err)))
		goto done;
	j.report.files = j.files;
	j.report.pictures = j.pictures;
	if ((rc = rfl_report_build(&j.report, &page, err)))
		goto done;
	page->letter = a->paper == 1;
	if (cli->data_dir)
		page->font_dir = rfl_arena_printf(j.arena, "%s/fonts", cli->data_dir);
	rc = write_all(cli, &j, page, err);
done:
	rfl_page_free(page);
	for (size_t i = 0; i < a->env.n; i++)
		json_decref(j.envs[i]);
	json_decref(j.report.complexity);
	json_decref(j.report.peaks_json);
	rfl_matrix_coverage_fini(&j.coverage);
	rfl_matrix_free(j.report.matrix);
	rfl_captures_fini(&j.captures);
	rfl_peaks_free(j.report.peaks);
	rfl_points_free(j.report.parts);
	rfl_points_free(j.report.points);
	rfl_repeats_free(j.report.repeats);
	rfl_runs_free(j.report.runs);
	for (size_t i = 0; i < j.report.npictures; i++)
		rfl_buf_fini(&j.pictures[i].file);
	free(j.pictures);
	free(j.files);
	rfl_arena_free(j.arena);
	return rc;
}

const struct rfl_cmd rfl_cmd_report = {
	.name = "report",
	.summary = "write a report on measured runs as Markdown, HTML or PDF",
	.description =
		"Combines the files of the other commands into one document: design, environment, "
		"complexity, throughput, phases, counters, ceilings, rooflines, points, an "
		"analysis, limitations, commands, and the fingerprints of the files. Nothing is "
		"measured. Sections without input are omitted; a list at the end says which "
		"inputs are missing and which commands create them.\n\nAn HTML report is one "
		"self-contained file that loads "
		"nothing. The same input always gives an identical report. The paths of the "
		"written files are printed on standard output.",
	.example = "roofline report --metrics logs/metrics.csv --points roofline_points.csv "
		   "--peaks peaks.json --output report.html\n"
		   "roofline report --kind project --metrics logs/metrics.csv --matrix matrix.json "
		   "--env logs/env.json --output report.md",
	.opts = opts,
	.args_size = sizeof(struct report_args),
	.run = run,
};
