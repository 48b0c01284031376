/* report.c - roofline report: one document from the files of all other commands. */

#include <stdio.h>

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

/* The files of the project are the inputs if none of these options is used. */
#define OF_PROJECT(name)                  \
	.project = (name), .found = true, \
	.unless = "metrics points peaks counters env figures complexity-json"

static const struct rfl_opt opts[] = {
	OPT(LIST, in.metrics, .name = "metrics", .often = true, .meta = "FILE",
	    OF_PROJECT("metrics"),
	    .help = "ledgers, or tables of other programs; several are read as one"),
	OPT(LIST, in.map, RFL_OPT_MAP),
	OPT(LIST, points, .letter = 'p', .name = "points", .often = true, .meta = "FILE",
	    OF_PROJECT("points"),
	    .help = "points of steps, layers or kernels, as written by 'roofline points'"),
	OPT(TEXT, peaks, .name = "peaks", .often = true, .meta = "FILE", OF_PROJECT("peaks"),
	    .help = "peaks file that 'roofline points' used"),
	OPT(TEXT, complexity_json, .name = "complexity-json", .meta = "FILE", OF_PROJECT("summary"),
	    .help = "summary.json of 'roofline complexity'"),
	OPT(LIST, counters, .name = "counters", .often = true, .meta = "FILE",
	    OF_PROJECT("counters"),
	    .help = "counters.csv files of 'roofline run --counters' or 'roofline counters "
		    "import'"),
	OPT(TEXT, matrix, .name = "matrix", .often = true, .meta = "FILE",
	    .help = "matrix of the runs, to list missing runs"),
	OPT(LIST, env, .name = "env", .often = true, .meta = "FILE", OF_PROJECT("records"),
	    .help = "env.json files of 'roofline env', or log directories with such records"),
	OPT(LIST, figures, .name = "figures", .often = true, .meta = "DIR", OF_PROJECT("figures"),
	    .help = "directories with figures of 'roofline plot' to add, as SVG or, in a PDF, as "
		    "PNG; those that the report draws itself are not added again"),
	OPT(TEXT, output, RFL_OPT_OUTPUT, .project = "report",
	    .help = "file to write; its suffix selects the format: .md (with SVG figures next to "
		    "it), .html (everything in one file) or .pdf"),
	OPT(CHOICE, kind, .name = "kind", .often = true, .meta = "KIND",
	    .choices = rfl_report_kinds, .def = "run",
	    .help = "kind of report: run has results and their analysis; project has the sections "
		    "of a graded project, with questions for its author to answer; lm, attention "
		    "and training are about the runs of 'bench lm', 'bench attention' and 'train'"),
	OPT(TEXT, as, .name = "as", .meta = "TOOL",
	    .help = "another counter to add rates for, as in reports that used it; see 'roofline "
		    "complexity --as'"),
	OPT(CHOICE, factor, .name = "train-factor", .meta = "FACTOR",
	    .choices = rfl_train_factor_names, .def = "exact",
	    .help = "FLOPs of a training step for --as: 2 or 3 times the FLOPs of the forward "
		    "pass, or the exact ratio"),
	OPT(CHOICE, paper, .name = "paper", .meta = "SIZE", .choices = papers, .def = "a4",
	    .help = "paper size of a PDF"),
	OPT(TEXT, title, .name = "title", .often = true, .meta = "TEXT", .max = 1000,
	    .help = "title of the report"),
	{ .name = NULL },
};

struct job {
	const struct report_args *args;
	struct rfl_arena *arena;  /* owns the strings and lists below */
	struct rfl_report report; /* with the inputs, which the job owns */
	struct rfl_report_file *files;
	struct rfl_report_picture *pictures;
	struct rfl_captures captures;
	struct rfl_matrix_coverage coverage;
	json_t **envs;
	const char **records; /* files of environments */
	size_t nrecords, records_cap;
};

static void release(struct job *j)
{
	struct rfl_report *r = &j->report;

	for (size_t i = 0; i < j->nrecords && j->envs; i++)
		json_decref(j->envs[i]);
	for (size_t i = 0; i < r->npictures; i++)
		rfl_buf_fini(&j->pictures[i].file);
	json_decref(r->complexity);
	json_decref(r->peaks_json);
	rfl_matrix_coverage_fini(&j->coverage);
	rfl_matrix_free(r->matrix);
	rfl_captures_fini(&j->captures);
	rfl_peaks_free(r->peaks);
	rfl_points_free(r->parts);
	rfl_points_free(r->points);
	rfl_repeats_free(r->repeats);
	rfl_runs_free(r->runs);
}

/* Check that an input exists, and add it to the list of files with its fingerprint.
 * @param command  the command that writes such files; NULL: the user does */
static enum rfl_rc add_file(struct job *j, const char *path, const char *contents,
			    const char *command, struct rfl_err *err)
{
	enum rfl_rc rc = command ? rfl_cli_need_file(path, command, err) : RFL_OK;
	struct rfl_report_file *file;
	char hash[17];

	if (rc || (rc = rfl_file_hash(path, hash, err)))
		return rc;
	file = rfl_arena_append(j->arena, &j->files, &j->report.nfiles);
	*file = (struct rfl_report_file){
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
	const struct rfl_report_file *file;
	struct rfl_err cause = *err;

	if (rc != RFL_EFORMAT || j->report.nfiles == 0 || strchr(err->msg, ';'))
		return rc;
	file = &j->files[j->report.nfiles - 1];
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
	enum rfl_rc rc;

	for (size_t i = 0; i < metrics->n; i++) {
		if ((rc = add_file(j, metrics->items[i], "runs",
				   trainings ? "roofline train" : "roofline run", err)))
			return rc;
		j->files[i].command = rfl_ledger_is_foreign(metrics->items[i])
					      ? "another program"
					      : "roofline run or train";
	}
	if (metrics->n) {
		if ((rc = rfl_cli_load_runs(metrics->items, metrics->n, &j->args->in.map,
					    &rfl_ledger_metrics[j->args->in.metric], RFL_ROWS_WHOLE,
					    &j->report.runs, err)))
			return rc;
		rfl_runs_select(j->report.runs, is_shown, &j->report.kind);
		if ((rc = rfl_cli_load_repeats(metrics->items, metrics->n, &j->args->in, NULL, 0,
					       RFL_ROWS_WHOLE, &j->report.runs, &j->report.repeats,
					       err)))
			return rc;
	}
	if (metrics->n == 1)
		j->report.runs_hash = j->files[0].hash;
	if (!j->args->matrix)
		return RFL_OK;
	if (!rfl_file_exists(j->args->matrix))
		return rfl_fail(err, RFL_EIO, 0,
				"%s: no such file; use the matrix file of 'roofline matrix run'",
				j->args->matrix);
	if ((rc = add_file(j, j->args->matrix, "matrix", NULL, err)) ||
	    (rc = rfl_matrix_load(j->args->matrix, &j->report.matrix, err)))
		return again(j, rc, err);
	rfl_matrix_cover(j->report.matrix, j->report.runs ? j->report.runs->ledger : NULL,
			 &j->coverage);
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
	enum rfl_rc rc = add_file(j, path, "points", rfl_cli_made_by("points", path), err);
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
	if (a->peaks &&
	    ((rc = add_file(j, a->peaks, "ceilings", rfl_cli_made_by("peaks", a->peaks), err)) ||
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
	for (size_t i = 0; i < j->nrecords && rc == RFL_OK; i++) {
		path = j->records[i];
		if ((rc = add_file(j, path, "environments", "roofline env", err)) ||
		    (rc = rfl_json_load(path, &j->envs[i], err)))
			break;
		j->report.nenvs = i + 1;
		rc = check_env(j->envs[i], path, err);
	}
	return again(j, rc, err);
}

/* List the files of --env: a directory stands for its records. */
static enum rfl_rc list_records(struct job *j, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = &j->args->env;
	for (size_t i = 0; i < asked->n; i++) {
		const char **found = &asked->items[i], **all;
		size_t n = 1;

		if (rfl_dir_exists(asked->items[i])) {
			enum rfl_rc rc = rfl_cli_records(asked->items[i], j->arena, &all, &n, err);

			if (rc == RFL_OK && n == 0)
				rc = rfl_fail(err, RFL_EIO, 0,
					      "--env: %s: no env.json in this directory; create it "
					      "with 'roofline env'",
					      asked->items[i]);
			if (rc)
				return rc;
			found = all;
		}
		rfl_arena_reserve(j->arena, &j->records, &j->records_cap, j->nrecords + n);
		memcpy(j->records + j->nrecords, found, n * sizeof(*found));
		j->nrecords += n;
	}
	return RFL_OK;
}

static bool is_svg(const char *path)
{
	return rfl_span_ends(rfl_span_of(path), ".svg");
}

static bool is_png(const char *path)
{
	return rfl_span_ends(rfl_span_of(path), ".png");
}

/* Read the figures of a directory: of those with the same name, the SVG file, which a PDF cannot
 * show.
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
			return rfl_fail(err, RFL_EIO, 0, "--figures: %s: no such directory", dir);
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
			p = rfl_arena_append(j->arena, &j->pictures, &j->report.npictures);
			p->name = rfl_path_base(paths[k]);
			rc = rfl_file_read(paths[k], &p->file, err);
		}
	}
	return rc;
}

/* The command line, for the report. */
static const char *command_of(struct job *j, const struct rfl_cli *cli)
{
	RFL_AUTO(buf) out = { .len = 0 };

	rfl_cli_quote((const char *const *)cli->argv + 1, (size_t)cli->argc - 1, &out);
	return rfl_arena_printf(j->arena, "roofline%s", rfl_buf_str(&out));
}

/* Derive the format and the stem of the figure names from the name of the output. */
static enum rfl_rc take_output(struct job *j, struct rfl_err *err)
{
	static const struct {
		const char *suffix;
		enum rfl_format format;
	} formats[] = { { ".md", RFL_FORMAT_MD },
			{ ".html", RFL_FORMAT_HTML },
			{ ".pdf", RFL_FORMAT_PDF } };
	const char *path = j->args->output, *base = rfl_path_base(path);
	const char *dot = strrchr(base, '.');

	for (size_t i = 0; dot && i < RFL_ARRAY_LEN(formats); i++)
		if (strcmp(dot, formats[i].suffix) == 0) {
			j->report.format = formats[i].format;
			j->report.stem =
				rfl_arena_printf(j->arena, "%.*s", (int)(dot - base), base);
			return rfl_page_check(j->report.format, err);
		}
	return rfl_usage(
		err,
		"--output: '%s' has an unknown suffix; use a name that ends in .md, .html or .pdf",
		path);
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
	RFL_AUTO(buf) old = { .len = 0 };
	RFL_AUTO(buf) mark = { .len = 0 };

	if (!rfl_file_exists(path))
		return RFL_OK;
	if (rfl_file_read(path, &old, err))
		return err->rc;
	if (old.len == 0)
		return RFL_OK;
	rfl_buf_append(&mark, old.data, old.len >= len ? old.len - len : 0);
	put_mark(&mark);
	if (!mark.failed && mark.len == old.len && memcmp(mark.data, old.data, mark.len) == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EFAILED, 0,
			"%s: the file was edited after it was written, or is not a report; use "
			"another name, or remove it",
			path);
}

/* Write the figures, then the page, and print the paths. */
static enum rfl_rc write_all(struct rfl_cli *cli, struct job *j, const struct rfl_page *page,
			     struct rfl_err *err)
{
	const char *path = j->args->output;
	const int dir = (int)(rfl_path_base(path) - path);
	RFL_AUTO(buf) out = { .len = 0 };
	enum rfl_rc rc;

	if ((rc = check_unchanged(path, err)) || (rc = rfl_page_write(page, &out, err)) ||
	    (rc = rfl_file_mkdirs_for(path, err)))
		return rc;
	if (page->format == RFL_FORMAT_PDF)
		rfl_buf_putc(&out, '%'); /* begins a comment */
	put_mark(&out);
	if ((rc = rfl_buf_check(&out, "report", err)))
		return rc;
	for (size_t i = 0; i < page->n && page->format == RFL_FORMAT_MD; i++) {
		const struct rfl_block *b = &page->blocks[i];
		const char *name;

		if (b->kind != RFL_BLOCK_FIGURE && b->kind != RFL_BLOCK_PICTURE)
			continue;
		name = rfl_arena_printf(j->arena, "%.*s%s", dir, path, b->name);
		if ((rc = rfl_file_write(name, b->body, b->body_len, err)))
			return rc;
		rfl_cli_printf(cli, "%s\n", name);
	}
	if (!(rc = rfl_file_write(path, out.data, out.len, err)))
		rfl_cli_printf(cli, "%s\n", path);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct report_args *a = args;
	RFL_CLEANUP(release)
	struct job j = {
		.args = a,
		.arena = cli->arena,
		.report = { .kind = (enum rfl_report_kind)a->kind,
			    .title = a->title,
			    .version = RFL_VERSION,
			    .factor = (enum rfl_train_factor)a->factor },
	};
	RFL_AUTOPTR(page) page = NULL;
	enum rfl_rc rc = list_records(&j, err);

	if (rc)
		return rc;
	j.report.envs = j.envs = rfl_arena_array(j.arena, j.nrecords, sizeof(json_t *));
	j.report.command = command_of(&j, cli);
	if ((rc = rfl_cli_find_peer(a->as, &j.report.peer, err)) || (rc = take_output(&j, err)) ||
	    (rc = load_runs(&j, err)) || (rc = load_roofline(&j, err)) ||
	    (rc = load_counts(&j, err)) || (rc = load_figures(&j, err)))
		return rc;
	j.report.files = j.files;
	j.report.pictures = j.pictures;
	if ((rc = rfl_report_build(&j.report, &page, err)))
		return rc;
	page->letter = a->paper == 1;
	if (cli->data_dir)
		page->font_dir = rfl_arena_printf(j.arena, "%s/fonts", cli->data_dir);
	return write_all(cli, &j, page, err);
}

const struct rfl_cmd rfl_cmd_report = {
	.name = "report",
	.summary = "write a report on measured runs as Markdown, HTML or PDF",
	.description =
		"Combines the files of the other commands into one document: design, environment, "
		"complexity, throughput, phases, counters, ceilings, rooflines, points, an "
		"analysis, limitations, commands, and the fingerprints of the files. Nothing is "
		"measured. Sections without input are omitted; a list at the end names the missing "
		"inputs and the commands that create them. If you name no input, the report has "
		"all files of the directory that exist.\n\nAn HTML report is one "
		"self-contained file that loads nothing. The same input always gives an identical "
		"report. The paths of the written files are printed on standard output.",
	.example = "roofline report\n"
		   "roofline report --metrics logs/metrics.csv --points roofline_points.csv "
		   "--peaks peaks.json --output report.html\n"
		   "roofline report --kind project --metrics logs/metrics.csv --matrix matrix.json "
		   "--env logs/env.json --output report.md",
	.opts = opts,
	.args_size = sizeof(struct report_args),
	.run = run,
};
