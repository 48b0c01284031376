/* summary.c - roofline summary: summarise the repeats of each configuration, and check a matrix. */
#include "cli/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "ledger/matrix.h"
#include "report/runs.h"

#define RUNS_NAMED 40 /* maximum number of missing runs to list */

struct summary_args {
	struct rfl_cli_runs_args in;
	const char *output_dir, *matrix, *points;
	int format;
};

#define OPT(kind, member, ...) RFL_OPT(struct summary_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(LIST, in.metrics, .name = "metrics", .meta = "FILE", .def = "logs/metrics.csv",
	    .help = "ledgers, or tables of other programs; several are read as one"),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .meta = "DIR",
	    .help = "folder to which throughput_summary.csv and throughput_summary.md are also "
		    "written (with another --metric: METRIC_summary)"),
	OPT(TEXT, matrix, .name = "matrix", .meta = "FILE",
	    .help = "matrix to check for missing runs; the exit code is 1 if there are any"),
	OPT(TEXT, points, .name = "points", .meta = "FILE", .against = "metrics matrix metric map",
	    .help = "file of 'roofline points' to summarise with GFLOP/s, FLOP/byte, share of the "
		    "roof and bound; --output-dir writes roofline_summary.csv and .md"),
	OPT(CHOICE, in.metric, .name = "metric", .meta = "NAME", .choices = rfl_ledger_metric_names,
	    .def = "samples_per_s", .help = "metric to summarise"),
	OPT(LIST, in.env, RFL_OPT_ONLY("env", "environments")),
	OPT(LIST, in.model, RFL_OPT_ONLY("model", "models")),
	OPT(LIST, in.precision, RFL_OPT_ONLY("precision", "precisions")),
	OPT(LIST, in.map, RFL_OPT_MAP),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

/* Append "coverage: 26 of 27 runs of mac_mps", and the missing runs.
 * @param why  set if the matrix is incomplete; reported after the result */
static enum rfl_rc check_matrix(const struct summary_args *a, const struct rfl_runs *runs,
				struct rfl_buf *out, struct rfl_err *why, struct rfl_err *err)
{
	struct rfl_matrix *m = NULL;
	struct rfl_matrix_coverage c = { .nruns = 0 };
	char label[RFL_LABEL_MAX + 1], first[RFL_LABEL_MAX + 16] = "";
	const char *path = a->in.metrics.items[0], *base = rfl_path_base(path);
	struct rfl_buf log_dir;
	size_t left, named = 0;
	bool foreign;
	enum rfl_rc rc;

	if ((rc = rfl_matrix_load(a->matrix, &m, err)) ||
	    (rc = rfl_matrix_cover(m, runs->ledger, &c, err)))
		goto done;
	left = c.missing + c.failed;
	rfl_buf_printf(out, "coverage: %zu of %zu runs of %s", c.done, c.nruns,
		       m->name ? m->name : m->path);
	if (c.surplus)
		rfl_buf_printf(out, ", %zu repeated", c.surplus);
	if (c.foreign)
		rfl_buf_printf(out, "; %zu row%s to no cell of the matrix", c.foreign,
			       c.foreign == 1 ? " belongs" : "s belong");
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < c.nruns && named < RUNS_NAMED; i++) {
		const struct rfl_matrix_run *run = &c.runs[i];
		const char *state = run->state == RFL_MATRIX_FAILED ? "failed" : "missing";

		if (run->state == RFL_MATRIX_DONE)
			continue;
		rfl_matrix_label(&m->cells[run->cell], run->repeat, label);
		rfl_buf_printf(out, "%s: %s\n", state, label);
		if (named++ == 0)
			(void)snprintf(first, sizeof(first), "%s: %s", state, label);
	}
	if (left > named)
		rfl_buf_printf(out, "%zu more are missing or failed\n", left - named);
	if (c.done == c.nruns)
		goto done;

	/* Suggest " --log-dir DIR" if the rows are in DIR/metrics.csv. Never append to the table of
	 * another program: its runs count as done, and new rows go to another folder. */
	rfl_buf_init(&log_dir, 0);
	foreign = rfl_ledger_is_foreign(path);
	if (a->in.metrics.n == 1 && strcmp(base, "metrics.csv") == 0) {
		rfl_buf_puts(&log_dir, foreign ? " --done-in " : " --log-dir ");
		if (base == path)
			rfl_buf_puts(&log_dir, ".");
		else
			rfl_buf_append(&log_dir, path,
				       base == path + 1 ? 1 : (size_t)(base - path) - 1);
		rfl_buf_puts(&log_dir, foreign ? " --log-dir new-logs" : "");
	}
	(void)rfl_fail(why, RFL_EFAILED, 0,
		       "%s: only %zu of %zu runs are present; %s%s; execute the missing runs with "
		       "'roofline matrix run %s%s'",
		       m->path, c.done, c.nruns, first, left > 1 ? " and others" : "", m->path,
		       rfl_buf_str(&log_dir));
	rfl_buf_fini(&log_dir);
done:
	rfl_matrix_coverage_fini(&c);
	rfl_matrix_free(m);
	return rc;
}

typedef enum rfl_rc render_fn(const void *what, enum rfl_format format, const char *lines,
			      struct rfl_buf *out, struct rfl_err *err);

static enum rfl_rc render_repeats(const void *what, enum rfl_format format, const char *lines,
				  struct rfl_buf *out, struct rfl_err *err)
{
	if (format == RFL_FORMAT_MD)
		return rfl_repeats_markdown(what, lines, out, err);
	rfl_table_finish(rfl_repeats_table(what, rfl_format_for_people(format), lines), format,
			 out);
	return RFL_OK;
}

static enum rfl_rc render_points(const void *what, enum rfl_format format, const char *lines,
				 struct rfl_buf *out, struct rfl_err *err)
{
	(void)lines;
	(void)err;
	rfl_table_finish(rfl_points_summary(what, rfl_format_for_people(format)), format, out);
	return RFL_OK;
}

/* Write the files of --output-dir, and print the result.
 * @param stem  name of the files without "_summary" and extension */
static enum rfl_rc deliver(struct rfl_cli *cli, const struct summary_args *a, const char *stem,
			   render_fn *render, const void *what, const char *lines,
			   struct rfl_err *err)
{
	static const enum rfl_format files[] = { RFL_FORMAT_CSV, RFL_FORMAT_MD };
	const enum rfl_format format = (enum rfl_format)a->format;
	struct rfl_buf out, path;
	enum rfl_rc rc = a->output_dir ? rfl_file_mkdirs(a->output_dir, err) : RFL_OK;

	rfl_buf_init(&out, 0);
	rfl_buf_init(&path, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(files) && a->output_dir && rc == RFL_OK; i++) {
		rfl_buf_reset(&out);
		rfl_buf_reset(&path);
		rfl_buf_printf(&path, "%s/%s_summary.%s", a->output_dir, stem,
			       rfl_format_names[files[i]]);
		if (!(rc = rfl_buf_check(&path, "path", err)) &&
		    !(rc = render(what, files[i], lines, &out, err)))
			rc = rfl_file_write(path.data, out.data, out.len, err);
	}
	rfl_buf_reset(&out);
	if (rc == RFL_OK && !(rc = render(what, format, lines, &out, err)))
		rc = rfl_cli_put_as(cli, format, &out, "summary", err);
	rfl_buf_fini(&out);
	rfl_buf_fini(&path);
	return rc;
}

/* Keep the points of whole steps that --env, --model and --precision select.
 * @param kept  array for all points; their texts remain those of `all` */
static enum rfl_rc select_points(const struct summary_args *a, const struct rfl_points *all,
				 struct rfl_points *kept, struct rfl_err *err)
{
	static const char *const names[] = { "env", "model", "precision" };
	const struct rfl_opt_list *const lists[] = { &a->in.env, &a->in.model, &a->in.precision };

	for (size_t i = 0; i < all->n; i++) {
		const struct rfl_point *p = &all->points[i];
		const char *const texts[] = { p->env, p->model, p->precision };
		bool in = !p->part;

		for (size_t f = 0; f < RFL_ARRAY_LEN(lists); f++)
			in = in && (lists[f]->n == 0 ||
				    (texts[f] && rfl_opt_list_has(lists[f], texts[f])));
		if (in)
			kept->points[kept->n++] = *p;
	}
	for (size_t f = 0; f < RFL_ARRAY_LEN(lists); f++)
		for (size_t k = 0; k < lists[f]->n; k++) {
			const char *asked = lists[f]->items[k];
			bool any = false;

			for (size_t i = 0; i < all->n && !any; i++) {
				const struct rfl_point *p = &all->points[i];
				const char *const texts[] = { p->env, p->model, p->precision };

				any = rfl_text_same(texts[f], asked);
			}
			if (!any)
				return rfl_fail(
					err, RFL_ENOTFOUND, 0,
					"%s: no point has %s '%s'; omit --%s to list all points",
					a->points, names[f], asked, names[f]);
		}
	if (kept->n == 0)
		return rfl_fail(err, RFL_EFAILED, 0,
				"%s: no points of whole steps; name another file, or select "
				"other points",
				a->points);
	return RFL_OK;
}

static enum rfl_rc run_points(struct rfl_cli *cli, const struct summary_args *a,
			      struct rfl_err *err)
{
	struct rfl_points *all = NULL, kept = { .n = 0 };
	enum rfl_rc rc;

	if ((rc = rfl_cli_need_file(a->points, "roofline points --output FILE", err)) ||
	    (rc = rfl_points_load(a->points, &all, err)))
		return rc;
	kept.points = rfl_alloc_array(all->n, sizeof(*kept.points));
	if (!kept.points)
		rc = rfl_no_memory(err, "summary");
	else if (!(rc = select_points(a, all, &kept, err)))
		rc = deliver(cli, a, "roofline", render_points, &kept, NULL, err);
	free(kept.points);
	rfl_points_free(all);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct summary_args *a = args;
	const struct rfl_opt_list *metrics = &a->in.metrics;
	const char *name = rfl_ledger_metrics[a->in.metric].name;
	struct rfl_runs *runs = NULL;
	struct rfl_repeats *r = NULL;
	struct rfl_err incomplete = RFL_ERR_INIT;
	struct rfl_buf coverage;
	enum rfl_rc rc;

	if (a->points)
		return run_points(cli, a, err);
	rfl_buf_init(&coverage, 0);
	if ((rc = rfl_cli_load_repeats(metrics->items, metrics->n, &a->in, a->in.env.items,
				       a->in.env.n, a->matrix ? RFL_ROWS_KEPT : RFL_ROWS_SHORT,
				       &runs, &r, err)) ||
	    (a->matrix && (rc = check_matrix(a, runs, &coverage, &incomplete, err))))
		goto done;
	if (r->n == 0 && !a->matrix) { /* with a matrix, list the missing runs instead */
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "%s: no runs to summarise; name another ledger, or select other runs",
			      metrics->items[0]);
		goto done;
	}
	rc = deliver(cli, a, strcmp(name, "samples_per_s") == 0 ? "throughput" : name,
		     render_repeats, r, rfl_buf_str(&coverage), err);
	if (rc)
		goto done;
	if (!rfl_format_for_people((enum rfl_format)a->format)) {
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&r->notes));
		rfl_cli_log_lines(RFL_LOG_INFO, rfl_buf_str(&coverage));
	}
	if (incomplete.rc != RFL_OK)
		rc = rfl_err_pass(err, &incomplete);
done:
	rfl_repeats_free(r);
	rfl_runs_free(runs);
	rfl_buf_fini(&coverage);
	return rc;
}

const struct rfl_cmd rfl_cmd_summary = {
	.name = "summary",
	.summary = "summarise repeated runs: mean, spread and confidence interval",
	.description =
		"Runs with the same configuration are repeats. For each configuration, "
		"prints their number, mean, sample standard deviation, 95 % confidence "
		"interval of the mean (Student's t), coefficient of variation, median, "
		"minimum and maximum, drift from the first repeat to the last, and flags. "
		"If a run has several rows, only the last one counts; ignored rows are "
		"listed with the reason.\n\nA metrics.csv file of another program is also "
		"accepted: its columns are identified by common names, or by --map.\n\nWith "
		"--points, the input is a file of 'roofline points', and the output is one table "
		"with rate, spread, GFLOP/s, FLOP/byte, share of the roof and bound.",
	.example = "roofline summary --metrics logs/metrics.csv --output-dir analysis/summary\n"
		   "roofline summary --points analysis/roofline_points.csv --format md\n"
		   "roofline summary --matrix examples/matrix-mac-mps.json --format md\n"
		   "roofline summary --metrics old.csv --map samples_per_s=imgs_per_sec "
		   "'env=\"mac_mps\"'",
	.opts = opts,
	.args_size = sizeof(struct summary_args),
	.run = run,
};
