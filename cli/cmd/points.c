/*
 * points.c - roofline points: ledger + counts + counters + ceilings = points under a roof.
 */
#include "cli/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cmd/runs_args.h"
#include "cli/doubts.h"
#include "cli/put.h"
#include "profile/capture.h"
#include "profile/import/importer.h"
#include "report/runs.h"
#include "report/table.h"
#include "roofline/merge.h"

struct points_args {
	const char *metrics, *complexity_json, *peaks, *output;
	const char *ncu_dir, *perf_dir;
	struct rfl_opt_list env, map, counters, counter_steps;
	int ai, flops, factor, format;
	bool skip_missing, keep_going;
};

#define AT(member) offsetof(struct points_args, member)

static const struct rfl_opt opts[] = {
	{ .name = "metrics",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(metrics),
	  .def = "logs/metrics.csv",
	  .help = "the ledger or another program's table" },
	RFL_OPT_MAP_ROW(AT(map)),
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
	{ .name = "ncu-dir",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(ncu_dir),
	  .help = "files of GPU profilers (ncu, nvprof, nsys), named after the label of their "
		  "run" },
	{ .name = "perf-dir",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(perf_dir),
	  .help = "files of perf, time and likwid, named after the label of their run" },
	{ .name = "counters",
	  .meta = "FILE",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(counters),
	  .help = "counters.csv of 'roofline run --counters' or 'roofline counters import'" },
	{ .name = "counter-steps",
	  .meta = "[LABEL=]N",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(counter_steps),
	  .help = "training steps that the counters of a label cover, or, without LABEL, all those "
		  "for which neither file nor ledger has the number" },
	{ .name = "keep-going",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(keep_going),
	  .help = "leave out rows and files of counters that cannot be read, and one of two that "
		  "count the same, and say which" },
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
	  .help = "the bytes in the arithmetic intensity; auto is counters where they are sound, "
		  "else "
		  "unfused" },
	{ .name = "flops",
	  .meta = "WHOSE",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(flops),
	  .choices = rfl_flops_names,
	  .def = "auto",
	  .help = "the FLOPs in rate and intensity; auto is those of the model" },
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

/* --- counters --- */

static void warn_import(const char *line, void *ctx)
{
	(void)ctx;
	rfl_log(RFL_LOG_WARN, "%s", line);
}

static enum rfl_rc load_counters(const struct points_args *a, const char *path,
				 struct rfl_captures *to, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_cli_need_file(path, "roofline run --counters step", err);

	if (rc != RFL_OK)
		return rc;
	rc = rfl_counters_load(path, NULL, 0, to, &why);
	if (rc == RFL_EFORMAT && a->keep_going) {
		rfl_log(RFL_LOG_WARN, "%s; the file is left out", why.msg);
		return RFL_OK;
	}
	return rc == RFL_OK ? rc : rfl_fail(err, rc, why.native, "%s", why.msg);
}

static enum rfl_rc load_captures(const struct points_args *a, struct rfl_captures *to,
				 struct rfl_err *err)
{
	const struct rfl_import_options options = { .keep_going = a->keep_going,
						    .warn = warn_import };
	const char *const dirs[] = { a->ncu_dir, a->perf_dir };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(dirs) && rc == RFL_OK; i++)
		if (dirs[i])
			rc = rfl_import_dir(dirs[i], &options, to, err);
	for (size_t i = 0; i < a->counters.n && rc == RFL_OK; i++)
		rc = load_counters(a, a->counters.items[i], to, err);
	return rc;
}

/* Of one label one number. */
static enum rfl_rc agree(const struct rfl_counter_steps *a, const struct rfl_counter_steps *b,
			 struct rfl_err *err)
{
	const char *label = a->label ? a->label : "", *other = b->label ? b->label : "";

	if (strcmp(label, other) != 0 || a->steps == b->steps)
		return RFL_OK;
	return rfl_fail(err, RFL_EUSAGE, 0,
			"--counter-steps: %s%s%lld and %lld were given; one can be right", label,
			*label ? ": " : "", (long long)a->steps, (long long)b->steps);
}

static enum rfl_rc read_steps(const struct points_args *a, struct rfl_arena *texts,
			      struct rfl_counter_steps **ret, struct rfl_err *err)
{
	struct rfl_counter_steps *list = rfl_arena_array(texts, a->counter_steps.n, sizeof(*list));

	for (size_t i = 0; i < a->counter_steps.n; i++) {
		char *text = list ? rfl_arena_strdup(texts, a->counter_steps.items[i]) : NULL;
		enum rfl_rc rc;

		if (!text)
			return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
		rc = rfl_counter_steps_parse(text, &list[i], err);
		for (size_t k = 0; k < i && rc == RFL_OK; k++)
			rc = agree(&list[k], &list[i], err);
		if (rc)
			return rc;
	}
	*ret = list;
	return RFL_OK;
}

/* --- all of it --- */

struct files {
	struct rfl_arena *texts;
	struct rfl_counter_steps *steps;
	struct rfl_runs *runs;
	struct rfl_peaks *peaks;
	struct rfl_work_file *work;
	struct rfl_captures captures;
};

static enum rfl_rc load(const struct points_args *a, struct files *f, struct rfl_err *err)
{
	const char *work = a->complexity_json;
	enum rfl_rc rc;

	rfl_captures_init(&f->captures);
	f->texts = rfl_arena_new(0);
	if (!f->texts)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	if ((rc = read_steps(a, f->texts, &f->steps, err)) ||
	    (rc = rfl_cli_need_file(a->metrics, "roofline run", err)) ||
	    (rc = rfl_cli_need_file(a->peaks, "roofline peaks measure --env NAME --output FILE",
				    err)) ||
	    (work && (rc = rfl_cli_need_file(work, "roofline complexity --output-dir DIR", err))) ||
	    (rc = rfl_cli_load_runs(&a->metrics, 1, &a->map, &rfl_ledger_metrics[0], RFL_ROWS_TIMES,
				    &f->runs, err)) ||
	    (rc = rfl_peaks_load(a->peaks, &f->peaks, err)) ||
	    (work && (rc = rfl_work_file_load(work, &f->work, err))))
		return rc;
	return load_captures(a, &f->captures, err);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct points_args *a = args;
	const enum rfl_format format = (enum rfl_format)a->format;
	const struct rfl_merge_options options = {
		.ai = (enum rfl_ai)a->ai,
		.flops = (enum rfl_flops_of)a->flops,
		.factor = (enum rfl_train_factor)a->factor,
		.envs = a->env.items,
		.nenvs = a->env.n,
		.skip_missing = a->skip_missing,
	};
	struct rfl_points *pts = NULL;
	struct rfl_merge_report report = { .unjoined = 0 };
	struct files f = { .runs = NULL };
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = load(a, &f, err);
	if (rc)
		goto done;

	const struct rfl_merge_inputs in = {
		.runs = f.runs,
		.ledger_hash = f.runs->ledger->hash,
		.peaks = f.peaks,
		.peaks_hash = f.peaks->hash,
		.work = f.work,
		.counters = { .captures = &f.captures,
			      .steps = f.steps,
			      .nsteps = a->counter_steps.n,
			      .keep_going = a->keep_going },
	};
	rc = rfl_merge(&in, &options, &pts, &report, err);
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&report.notes));
	if (rc == RFL_OK && pts->n == 0)
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "%s: none of the %zu runs can be placed under a roof", a->metrics,
			      f.runs->n);
	if (rc)
		goto done;
	rfl_cli_warn_doubts(f.peaks, pts, &a->env);
	if ((a->output && (rc = rfl_points_save(a->output, pts, err))) ||
	    (rc = rfl_points_table(pts, format, &out, err)))
		goto done;
	rc = rfl_cli_put_as(cli, format, &out, "points", err);
done:
	rfl_buf_fini(&out);
	rfl_buf_fini(&report.notes);
	rfl_points_free(pts);
	rfl_captures_fini(&f.captures);
	rfl_work_file_free(f.work);
	rfl_peaks_free(f.peaks);
	rfl_runs_free(f.runs);
	rfl_arena_free(f.texts);
	return rc;
}

const struct rfl_cmd rfl_cmd_points = {
	.name = "points",
	.summary = "merge runs, counts and ceilings into points under a roof",
	.description =
		"Every configuration of the ledger becomes one point: its FLOPs per step times its "
		"rate of steps (samples per second over the batch, as 'roofline summary' gives "
		"them), its FLOPs over its bytes, and where that stands under the ceilings of its "
		"environment. FLOPs and bytes are counted from the network that ran; files of "
		"counters put what was measured beside them, per step, and auto takes measured "
		"bytes where they are sound.\n\n"
		"A ceiling that is not known stops the command with exit code 3; every missing "
		"cell is named, and nothing is written.",
	.example =
		"roofline points --metrics logs/metrics.csv --peaks peaks.json --output points.csv",
	.opts = opts,
	.args_size = sizeof(struct points_args),
	.operands_offset = -1,
	.run = run,
};
