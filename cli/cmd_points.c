/*
 * cmd_points.c - roofline points: ledger + counts + ceilings = points under a roof.
 */
#include "cli/cmd.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/table.h"
#include "cli/put.h"
#include "roofline/merge.h"
#include "roofline/points_table.h"

struct points_args {
	const char *metrics, *complexity_json, *peaks, *output;
	struct rfl_opt_list env;
	int ai, factor, format;
	bool skip_missing;
};

#define AT(member) offsetof(struct points_args, member)

static const struct rfl_opt opts[] = {
	{ .name = "metrics",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(metrics),
	  .def = "logs/metrics.csv",
	  .help = "the ledger of runs" },
	{ .name = "peaks",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(peaks),
	  .def = "peaks.json",
	  .help = "the ceilings of the environments" },
	{ .name = "complexity-json",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(complexity_json),
	  .help = "summary.json of 'roofline complexity'; without it the program counts the models "
		  "that it knows" },
	{ .name = "output",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(output),
	  .help = "write the points here, as CSV" },
	{ .name = "ai",
	  .meta = "BYTES",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(ai),
	  .choices = rfl_ai_names,
	  .def = "auto",
	  .help = "the bytes in the arithmetic intensity; auto is unfused" },
	{ .name = "train-factor",
	  .meta = "FACTOR",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(factor),
	  .choices = rfl_train_factor_names,
	  .def = "exact",
	  .help = "FLOPs of a training step: as counted, or 2 or 3 times the forward as in older "
		  "reports" },
	{ .name = "env",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(env),
	  .help = "only these environments" },
	{ .name = "skip-missing",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(skip_missing),
	  .help = "leave out what lacks a ceiling or a count, and say so" },
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .name = NULL },
};

/* Lines that explain the result go to the log, one by one. */
static void tell_notes(const struct rfl_merge_report *report)
{
	const char *line = rfl_buf_str(&report->notes);

	while (*line) {
		size_t len = strcspn(line, "\n");

		rfl_log(RFL_LOG_WARN, "%.*s", (int)len, line);
		line += len + (line[len] == '\n');
	}
	if (report->other_env)
		rfl_log(RFL_LOG_INFO, "%zu runs are of environments that were not asked for",
			report->other_env);
}

static enum rfl_rc print_points(struct rfl_cli *cli, const struct rfl_points *pts,
				enum rfl_format format, struct rfl_err *err)
{
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = rfl_points_table(pts, format, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put(cli, &out, "points", err);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct points_args *a = args;
	const struct rfl_merge_options options = {
		.ai = (enum rfl_ai)a->ai,
		.factor = (enum rfl_train_factor)a->factor,
		.envs = a->env.items,
		.nenvs = a->env.n,
		.skip_missing = a->skip_missing,
	};
	struct rfl_ledger *ledger = NULL;
	struct rfl_peaks *peaks = NULL;
	struct rfl_work_file *work = NULL;
	struct rfl_points *pts = NULL;
	struct rfl_merge_report report = { .rows = 0 };
	char ledger_hash[17], peaks_hash[17];
	enum rfl_rc rc;

	rc = rfl_cli_need_file(a->metrics, "roofline run", err);
	if (rc == RFL_OK)
		rc = rfl_cli_need_file(a->peaks, "roofline peaks measure --output FILE", err);
	if (rc == RFL_OK && a->complexity_json)
		rc = rfl_cli_need_file(a->complexity_json, "roofline complexity --output-dir DIR",
				       err);
	if (rc == RFL_OK)
		rc = rfl_ledger_load(a->metrics, &ledger, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_load(a->peaks, &peaks, err);
	if (rc == RFL_OK && a->complexity_json)
		rc = rfl_work_file_load(a->complexity_json, &work, err);
	if (rc == RFL_OK)
		rc = rfl_file_hash(a->metrics, ledger_hash, err);
	if (rc == RFL_OK)
		rc = rfl_file_hash(a->peaks, peaks_hash, err);
	if (rc != RFL_OK)
		goto done;

	const struct rfl_merge_inputs in = {
		.ledger = ledger,
		.ledger_path = a->metrics,
		.ledger_hash = ledger_hash,
		.peaks = peaks,
		.peaks_hash = peaks_hash,
		.work = work,
	};
	rc = rfl_merge(&in, &options, &pts, &report, err);
	tell_notes(&report);
	if (rc == RFL_OK && pts->n == 0)
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "%s: none of the %zu runs can be placed under a roof", a->metrics,
			      report.rows);
	if (rc == RFL_OK && a->output)
		rc = rfl_points_save(a->output, pts, err);
	if (rc == RFL_OK)
		rc = print_points(cli, pts, (enum rfl_format)a->format, err);
done:
	rfl_merge_report_fini(&report);
	rfl_points_free(pts);
	rfl_work_file_free(work);
	rfl_peaks_free(peaks);
	rfl_ledger_free(ledger);
	return rc;
}

const struct rfl_cmd rfl_cmd_points = {
	.name = "points",
	.summary = "merge runs, counts and ceilings into points under a roof",
	.description =
		"Every configuration of the ledger becomes one point: its FLOPs over the median "
		"step "
		"time, its FLOPs over its bytes, and where that stands under the ceilings of its "
		"environment. FLOPs and bytes are counted from the network that ran.\n\n"
		"A ceiling that is not known stops the command with exit code 3; every missing "
		"cell "
		"is named, and nothing is written.",
	.example =
		"roofline points --metrics logs/metrics.csv --peaks peaks.json --output points.csv",
	.opts = opts,
	.args_size = sizeof(struct points_args),
	.operands_offset = -1,
	.run = run,
};
