/*
 * summary.c - roofline summary: the repeats of every configuration in one line, and whether a
 * matrix of runs is complete.
 */
#include "cli/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/put.h"
#include "cli/cmd/runs_args.h"
#include "ledger/matrix.h"
#include "report/runs.h"

#define RUNS_NAMED 40 /* of those that are missing */

struct summary_args {
	struct rfl_cli_runs_args in;
	const char *output_dir, *matrix;
	int format;
};

#define AT(member) offsetof(struct summary_args, member)

static const struct rfl_opt opts[] = {
	{ .name = "metrics",
	  .meta = "FILE",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(in.metrics),
	  .def = "logs/metrics.csv",
	  .help = "ledgers or other programs' tables; several are read as one" },
	{ .letter = 'o',
	  .name = "output-dir",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(output_dir),
	  .help = "also write throughput_summary.csv and throughput_summary.md here (with another "
		  "--metric: METRIC_summary)" },
	{ .name = "matrix",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(matrix),
	  .help = "check that every run of this matrix is there; exit code 1 when one is not" },
	{ .name = "metric",
	  .meta = "NAME",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(in.metric),
	  .choices = rfl_ledger_metric_names,
	  .def = "samples_per_s",
	  .help = "what is summarised" },
	RFL_OPT_ONLY_ROW("env", "environments", AT(in.env)),
	RFL_OPT_ONLY_ROW("model", "models", AT(in.model)),
	RFL_OPT_ONLY_ROW("precision", "precisions", AT(in.precision)),
	RFL_OPT_MAP_ROW(AT(in.map)),
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .name = NULL },
};

/* --- coverage -------------------------------------------------------------------------------- */

static const char *state_word(enum rfl_matrix_state state)
{
	return state == RFL_MATRIX_FAILED ? "failed" : "missing";
}

/* "coverage: 26 of 27 runs of mac_mps", and those that are not there. */
static void put_coverage(const struct rfl_matrix *m, const struct rfl_matrix_coverage *c,
			 struct rfl_buf *out)
{
	size_t named = 0;

	rfl_buf_printf(out, "coverage: %zu of %zu runs of %s", c->done, c->nruns,
		       m->name ? m->name : m->path);
	if (c->surplus)
		rfl_buf_printf(out, ", %zu repeated", c->surplus);
	if (c->foreign)
		rfl_buf_printf(out, "; %zu row%s of no cell of it", c->foreign,
			       c->foreign == 1 ? " is" : "s are");
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < c->nruns && named < RUNS_NAMED; i++) {
		const struct rfl_matrix_run *run = &c->runs[i];
		char label[RFL_LABEL_MAX + 1];

		if (run->state == RFL_MATRIX_DONE)
			continue;
		rfl_matrix_label(&m->cells[run->cell], run->repeat, label);
		rfl_buf_printf(out, "%s: %s\n", state_word(run->state), label);
		named++;
	}
	if (c->missing + c->failed > named)
		rfl_buf_printf(out, "%zu more are missing or failed\n",
			       c->missing + c->failed - named);
}

/* " --log-dir DIR" where the rows are in DIR/metrics.csv; "" where they have no such place. To the
 * table of another program no row is added: what it has counts, and others go elsewhere. */
static void put_log_dir(const struct rfl_opt_list *metrics, struct rfl_buf *out)
{
	const char *path = metrics->items[0], *base = rfl_path_base(path);
	const bool foreign = rfl_ledger_check(path, NULL) == RFL_EFORMAT;

	if (metrics->n != 1 || strcmp(base, "metrics.csv") != 0)
		return;
	rfl_buf_puts(out, foreign ? " --done-in " : " --log-dir ");
	if (base == path)
		rfl_buf_puts(out, ".");
	else
		rfl_buf_append(out, path, base == path + 1 ? 1 : (size_t)(base - path) - 1);
	rfl_buf_puts(out, foreign ? " --log-dir new-logs" : "");
}

static enum rfl_rc is_incomplete(const struct summary_args *a, const struct rfl_matrix *m,
				 const struct rfl_matrix_coverage *c, struct rfl_err *err)
{
	struct rfl_buf log_dir;
	enum rfl_rc rc;
	char label[RFL_LABEL_MAX + 1] = "";
	const char *state = "";

	for (size_t i = c->nruns; i > 0; i--)
		if (c->runs[i - 1].state != RFL_MATRIX_DONE) {
			rfl_matrix_label(&m->cells[c->runs[i - 1].cell], c->runs[i - 1].repeat,
					 label);
			state = state_word(c->runs[i - 1].state);
		}
	rfl_buf_init(&log_dir, 0);
	put_log_dir(&a->in.metrics, &log_dir);
	rc = rfl_fail(err, RFL_EFAILED, 0,
		      "%s: %zu of %zu runs are there; %s: %s%s; 'roofline matrix run %s%s' runs "
		      "what is missing",
		      m->path, c->done, c->nruns, state, label,
		      c->missing + c->failed > 1 ? " and others" : "", m->path,
		      rfl_buf_str(&log_dir));
	rfl_buf_fini(&log_dir);
	return rc;
}

/* @param complete  the answer, for the end: what there is is printed first */
static enum rfl_rc check_matrix(const struct summary_args *a, const struct rfl_runs *runs,
				struct rfl_buf *lines, enum rfl_rc *complete, struct rfl_err *why,
				struct rfl_err *err)
{
	struct rfl_matrix *m = NULL;
	struct rfl_matrix_coverage c = { .nruns = 0 };
	enum rfl_rc rc;

	if ((rc = rfl_matrix_load(a->matrix, &m, err)) ||
	    (rc = rfl_matrix_cover(m, runs->ledger, &c, err)))
		goto done;
	put_coverage(m, &c, lines);
	*complete = c.done == c.nruns ? RFL_OK : is_incomplete(a, m, &c, why);
done:
	rfl_matrix_coverage_fini(&c);
	rfl_matrix_free(m);
	return rc;
}

/* --- output ---------------------------------------------------------------------------------- */

static enum rfl_rc render(const struct rfl_repeats *r, enum rfl_format format, const char *lines,
			  struct rfl_buf *out, struct rfl_err *err)
{
	return format == RFL_FORMAT_MD ? rfl_repeats_markdown(r, lines, out, err)
				       : rfl_repeats_table(r, format, lines, out, err);
}

static enum rfl_rc write_file(const char *dir, const struct rfl_repeats *r, enum rfl_format format,
			      const char *lines, struct rfl_err *err)
{
	const char *stem =
		strcmp(r->metric->name, "samples_per_s") == 0 ? "throughput" : r->metric->name;
	struct rfl_buf path, text;
	enum rfl_rc rc;

	rfl_buf_init(&path, 0);
	rfl_buf_init(&text, 0);
	rfl_buf_printf(&path, "%s/%s_summary.%s", dir, stem, rfl_format_names[format]);
	if (!(rc = render(r, format, lines, &text, err)) &&
	    !(rc = rfl_buf_check(&path, "path", err)))
		rc = rfl_file_write(path.data, text.data, text.len, err);
	rfl_buf_fini(&path);
	rfl_buf_fini(&text);
	return rc;
}

static enum rfl_rc print(struct rfl_cli *cli, const struct rfl_repeats *r, enum rfl_format format,
			 const char *lines, struct rfl_err *err)
{
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = render(r, format, lines, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(cli, format, &out, "summary", err);
	rfl_buf_fini(&out);
	if (format == RFL_FORMAT_CSV || format == RFL_FORMAT_JSON) {
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&r->notes));
		rfl_cli_log_lines(RFL_LOG_INFO, lines);
	}
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct summary_args *a = args;
	const struct rfl_opt_list *metrics = &a->in.metrics;
	struct rfl_runs *runs = NULL;
	struct rfl_repeats *r = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc complete = RFL_OK, rc;
	struct rfl_buf text;
	const char *lines;

	rfl_buf_init(&text, 0);
	if ((rc = rfl_cli_load_repeats(metrics->items, metrics->n, &a->in, a->in.env.items,
				       a->in.env.n, a->matrix ? RFL_ROWS_KEPT : RFL_ROWS_SHORT,
				       &runs, &r, err)) ||
	    (a->matrix && (rc = check_matrix(a, runs, &text, &complete, &why, err))))
		goto done;
	lines = rfl_buf_str(&text);
	if (r->n == 0 && !a->matrix) { /* with a matrix, the missing runs are listed */
		rc = rfl_fail(err, RFL_EFAILED, 0, "%s: there is no run to summarise",
			      metrics->items[0]);
		goto done;
	}
	if (a->output_dir && ((rc = rfl_file_mkdirs(a->output_dir, err)) ||
			      (rc = write_file(a->output_dir, r, RFL_FORMAT_CSV, lines, err)) ||
			      (rc = write_file(a->output_dir, r, RFL_FORMAT_MD, lines, err))))
		goto done;
	rc = print(cli, r, (enum rfl_format)a->format, lines, err);
	if (rc == RFL_OK && complete != RFL_OK)
		rc = rfl_fail(err, complete, why.native, "%s", why.msg);
done:
	rfl_repeats_free(r);
	rfl_runs_free(runs);
	rfl_buf_fini(&text);
	return rc;
}

const struct rfl_cmd rfl_cmd_summary = {
	.name = "summary",
	.summary = "mean, spread and interval of repeats, and what is missing of a matrix",
	.description =
		"Runs of one configuration are repeats. Of each configuration: number, mean, "
		"sample standard deviation, 95 % confidence interval of the mean by Student's t, "
		"coefficient of variation, median, extremes, drift from the first repeat to the "
		"last, and flags. A run that is there twice counts once, as it was last; rows that "
		"do not count are named with the reason.\n\n"
		"A metrics.csv of another program is read as well: its columns are taken by their "
		"usual names, or as --map says.",
	.example = "roofline summary --metrics logs/metrics.csv --output-dir analysis/summary\n"
		   "roofline summary --matrix examples/matrix-mac-mps.json --format md\n"
		   "roofline summary --metrics old.csv --map samples_per_s=imgs_per_sec "
		   "'env=\"mac_mps\"'",
	.opts = opts,
	.args_size = sizeof(struct summary_args),
	.operands_offset = -1,
	.run = run,
};
