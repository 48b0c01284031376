/* summary.c - roofline summary: summarise the repeats of each configuration, and check a matrix. */
#include "cli/cmd.h"

#include <string.h>

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
	OPT(LIST, in.metrics, .name = "metrics", .meta = "FILE", .project = "metrics",
	    .help = "ledgers, or tables of other programs; several are read as one"),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .meta = "DIR",
	    .help = "directory to which throughput_summary.csv and throughput_summary.md are also "
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

/* Where 'roofline matrix run' finds the rows of a ledger: " --log-dir DIR" if they are in
 * DIR/metrics.csv. Never append to the table of another program: its runs count as done, and new
 * rows go to another directory. */
static const char *folder_option(struct rfl_cli *cli, const struct rfl_opt_list *metrics)
{
	const char *path = metrics->items[0], *base = rfl_path_base(path);
	const bool foreign = rfl_ledger_is_foreign(path);
	const size_t len = (size_t)(base - path);

	if (metrics->n != 1 || strcmp(base, "metrics.csv") != 0)
		return "";
	return rfl_arena_printf(cli->arena, " %s %.*s%s", foreign ? "--done-in" : "--log-dir",
				len > 1 ? (int)len - 1 : 1, len ? path : ".",
				foreign ? " --log-dir new-logs" : "");
}

/* Append "coverage: 26 of 27 runs of mac_mps", and the missing runs.
 * @param why  set if the matrix is incomplete; reported after the result */
static enum rfl_rc check_matrix(struct rfl_cli *cli, const struct summary_args *a,
				const struct rfl_runs *runs, struct rfl_buf *out,
				struct rfl_err *why, struct rfl_err *err)
{
	RFL_AUTOPTR(matrix) m = NULL;
	RFL_AUTO(matrix_coverage) c = { .nruns = 0 };
	const char *first = "";
	size_t left, named = 0;
	enum rfl_rc rc;

	if ((rc = rfl_matrix_load(a->matrix, &m, err)))
		return rc;
	rfl_matrix_cover(m, runs->ledger, &c);
	left = c.missing + c.failed;
	rfl_buf_printf(out, "coverage: %zu of %zu runs of %s", c.done, c.nruns,
		       m->name ? m->name : m->path);
	if (c.surplus)
		rfl_buf_printf(out, ", %zu repeated", c.surplus);
	if (c.foreign)
		rfl_buf_printf(out, "; %zu row%s to no configuration of the matrix", c.foreign,
			       c.foreign == 1 ? " belongs" : "s belong");
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < c.nruns && named < RUNS_NAMED; i++) {
		const struct rfl_matrix_run *run = &c.runs[i];
		char label[RFL_LABEL_MAX + 1];
		const char *line;

		if (run->state == RFL_MATRIX_DONE)
			continue;
		rfl_matrix_label(&m->cells[run->cell], run->repeat, label);
		line = rfl_arena_printf(cli->arena, "%s: %s",
					run->state == RFL_MATRIX_FAILED ? "failed" : "missing",
					label);
		rfl_buf_printf(out, "%s\n", line);
		if (named++ == 0)
			first = line;
	}
	if (left > named)
		rfl_buf_printf(out, "%zu more are missing or failed\n", left - named);
	if (c.done < c.nruns)
		(void)rfl_fail(why, RFL_EFAILED, 0,
			       "%s: only %zu of %zu runs are present; %s%s; execute the missing "
			       "runs with 'roofline matrix run %s%s'",
			       m->path, c.done, c.nruns, first, left > 1 ? " and others" : "",
			       m->path, folder_option(cli, &a->in.metrics));
	return RFL_OK;
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
	const enum rfl_format formats[] = { RFL_FORMAT_CSV, RFL_FORMAT_MD,
					    (enum rfl_format)a->format };
	enum rfl_rc rc = a->output_dir ? rfl_file_mkdirs(a->output_dir, err) : RFL_OK;

	for (size_t i = a->output_dir ? 0 : 2; i < RFL_ARRAY_LEN(formats) && rc == RFL_OK; i++) {
		RFL_AUTO(buf) out = { .len = 0 };
		const char *path =
			i == 2 ? NULL
			       : rfl_arena_printf(cli->arena, "%s/%s_summary.%s", a->output_dir,
						  stem, rfl_format_names[formats[i]]);

		if (!(rc = render(what, formats[i], lines, &out, err)))
			rc = rfl_cli_deliver(cli, path, formats[i], &out, "summary", err);
	}
	return rc;
}

/* Keep the points of whole steps that --env, --model and --precision select.
 * @param kept  array for all points; their texts still belong to `all` */
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
		return rfl_fail(
			err, RFL_EFAILED, 0,
			"%s: no points of whole steps; name another file, or select other points",
			a->points);
	return RFL_OK;
}

static enum rfl_rc run_points(struct rfl_cli *cli, const struct summary_args *a,
			      struct rfl_err *err)
{
	RFL_AUTOPTR(points) all = NULL;
	struct rfl_points kept = { .n = 0 };
	enum rfl_rc rc = rfl_cli_load_points(a->points, &all, err);

	if (rc)
		return rc;
	kept.points = rfl_arena_array(cli->arena, all->n, sizeof(*kept.points));
	rc = select_points(a, all, &kept, err);
	return rc ? rc : deliver(cli, a, "roofline", render_points, &kept, NULL, err);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct summary_args *a = args;
	const struct rfl_opt_list *metrics = &a->in.metrics;
	const char *name = rfl_ledger_metrics[a->in.metric].name;
	RFL_AUTOPTR(runs) runs = NULL;
	RFL_AUTOPTR(repeats) r = NULL;
	RFL_AUTO(buf) coverage = { .len = 0 };
	struct rfl_err incomplete = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (a->points)
		return run_points(cli, a, err);
	if ((rc = rfl_cli_load_repeats(metrics->items, metrics->n, &a->in, a->in.env.items,
				       a->in.env.n, a->matrix ? RFL_ROWS_KEPT : RFL_ROWS_SHORT,
				       &runs, &r, err)) ||
	    (a->matrix && (rc = check_matrix(cli, a, runs, &coverage, &incomplete, err))))
		return rc;
	if (r->n == 0 && !a->matrix) /* with a matrix, list the missing runs instead */
		return rfl_fail(
			err, RFL_EFAILED, 0,
			"%s: no runs to summarise; name another ledger, or select other runs",
			metrics->items[0]);
	if ((rc = deliver(cli, a, strcmp(name, "samples_per_s") == 0 ? "throughput" : name,
			  render_repeats, r, rfl_buf_str(&coverage), err)))
		return rc;
	if (!rfl_format_for_people((enum rfl_format)a->format)) {
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&r->notes));
		rfl_cli_log_lines(RFL_LOG_INFO, rfl_buf_str(&coverage));
	}
	return incomplete.rc ? rfl_err_pass(err, &incomplete) : RFL_OK;
}

const struct rfl_cmd rfl_cmd_summary = {
	.name = "summary",
	.summary = "summarise repeated runs: mean, spread and confidence interval",
	.description = "Runs with the same configuration are repeats. For each configuration, "
		       "prints their number, mean, sample standard deviation, 95 % confidence "
		       "interval of the mean (Student's t), coefficient of variation, median, "
		       "minimum and maximum, drift from the first repeat to the last, and flags. "
		       "If a run has several rows, only the last one counts; ignored rows are "
		       "listed with the reason.\n\nA metrics.csv file of another program is also "
		       "accepted: its columns are identified by common names, or by --map.\n\nWith "
		       "--points, the input is a file of 'roofline points', and the output is one "
		       "table with rate, spread, GFLOP/s, FLOP/byte, share of the roof and bound.",
	.example = "roofline summary --metrics logs/metrics.csv --output-dir analysis/summary\n"
		   "roofline summary --points analysis/roofline_points.csv --format md\n"
		   "roofline summary --matrix examples/study-mac-mps.json --format md\n"
		   "roofline summary --metrics old.csv --map samples_per_s=imgs_per_sec "
		   "'env=\"mac_mps\"'",
	.opts = opts,
	.args_size = sizeof(struct summary_args),
	.run = run,
};
