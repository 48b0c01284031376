/* points.c - roofline points: combine runs, counts, counters and ceilings into points. */
#include "cli/cmd.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "profile/capture.h"
#include "profile/import/importer.h"
#include "report/runs.h"
#include "roofline/doubts.h"
#include "roofline/merge.h"

struct points_args {
	const char *metrics, *complexity_json, *peaks, *output, *as;
	const char *ncu_dir, *perf_dir;
	struct rfl_opt_list env, map, counters, counter_steps;
	int by, ai, flops, factor, format;
	bool skip_missing, keep_going;
};

#define OPT(kind, member, ...) RFL_OPT(struct points_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, metrics, .name = "metrics", .meta = "FILE", .def = "logs/metrics.csv",
	    .help = "ledger, or the table of another program"),
	OPT(LIST, map, RFL_OPT_MAP),
	OPT(TEXT, peaks, .name = "peaks", .meta = "FILE", .def = "peaks.json",
	    .help = "peaks file with the ceilings of the environments"),
	OPT(TEXT, complexity_json, .name = "complexity-json", .meta = "FILE",
	    .help = "summary.json of 'roofline complexity'; default: count the built-in models"),
	OPT(TEXT, ncu_dir, .name = "ncu-dir", .meta = "DIR",
	    .help = "folder with files of GPU profilers (ncu, nvprof, nsys, rocprof), named after "
		    "the "
		    "labels of the runs"),
	OPT(TEXT, perf_dir, .name = "perf-dir", .meta = "DIR",
	    .help = "folder with files of perf, time and likwid, named after the labels of the "
		    "runs"),
	OPT(LIST, counters, .name = "counters", .meta = "FILE",
	    .help = "counters.csv files of 'roofline run --counters' or 'roofline counters "
		    "import'"),
	OPT(LIST, counter_steps, .name = "counter-steps", .meta = "[LABEL=]N",
	    .help = "number of training steps covered by the counters of LABEL or, without LABEL, "
		    "by all counters for which neither their file nor the ledger has the number"),
	OPT(FLAG, keep_going, .name = "keep-going",
	    .help = "skip rows and counter files that cannot be read, and all but one of several "
		    "that count the same run; report the skipped ones"),
	OPT(TEXT, output, .name = "output", .meta = "FILE", .help = "CSV file for the points"),
	OPT(CHOICE, by, .name = "by", .meta = "PART", .choices = rfl_by_names, .def = "step",
	    .help = "part that a point represents: a step, a layer (requires 'roofline run "
		    "--counters layer') or a kernel (requires a GPU profiler)"),
	OPT(CHOICE, ai, .name = "ai", .meta = "BYTES", .choices = rfl_ai_names, .def = "auto",
	    .help = "bytes for the arithmetic intensity; auto: those of the counters if they are "
		    "sound, else unfused"),
	OPT(CHOICE, flops, .name = "flops", .meta = "WHOSE", .choices = rfl_flops_names,
	    .def = "auto",
	    .help = "FLOPs for the rate and the arithmetic intensity; auto: those of the model"),
	OPT(CHOICE, factor, .name = "train-factor", .meta = "FACTOR",
	    .choices = rfl_train_factor_names, .def = "exact",
	    .help = "FLOPs of a training step: as counted, or 2 or 3 times those of the forward "
		    "pass, as in older reports"),
	OPT(TEXT, as, .name = "as", .meta = "COUNTER",
	    .help = "FLOPs of the forward pass as printed by another counter (torchinfo, fvcore, "
		    "and others listed for 'roofline complexity --as'), to check older reports; "
		    "training requires --train-factor"),
	OPT(LIST, env, .name = "env", .meta = "NAME",
	    .help = "environments to include; default: all"),
	OPT(FLAG, skip_missing, .name = "skip-missing",
	    .help = "skip points that lack a ceiling or a count, and report them"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static void warn_import(const char *line, void *ctx)
{
	(void)ctx;
	rfl_log(RFL_LOG_WARN, "%s", line);
}

/* Read the files of the profilers, then the counter files. */
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
	for (size_t i = 0; i < a->counters.n && rc == RFL_OK; i++) {
		const char *path = a->counters.items[i];
		struct rfl_err why = RFL_ERR_INIT;

		if ((rc = rfl_cli_need_file(path, "roofline run --counters step", err)) ||
		    !(rc = rfl_counters_load(path, NULL, 0, to, &why)))
			continue;
		if (rc == RFL_EFORMAT && a->keep_going) {
			rfl_log(RFL_LOG_WARN, "%s; file skipped", why.msg);
			rc = RFL_OK;
		} else {
			rc = rfl_err_pass(err, &why);
		}
	}
	return rc;
}

/* Parse --counter-steps. A label can have only one number. */
static enum rfl_rc read_steps(const struct rfl_opt_list *words, struct rfl_arena *texts,
			      struct rfl_counter_steps **ret, struct rfl_err *err)
{
	struct rfl_counter_steps *list = rfl_arena_array(texts, words->n, sizeof(*list));

	for (size_t i = 0; i < words->n; i++) {
		char *text = list ? rfl_arena_strdup(texts, words->items[i]) : NULL;
		enum rfl_rc rc = text ? rfl_counter_steps_parse(text, &list[i], err)
				      : rfl_no_memory(err, "points");

		if (rc)
			return rc;
		for (size_t k = 0; k < i; k++)
			if (rfl_text_same(list[k].label, list[i].label) &&
			    list[k].steps != list[i].steps)
				return rfl_fail(err, RFL_EUSAGE, 0,
						"--counter-steps: %s%s%lld and %lld contradict "
						"each other; use one",
						list[k].label ? list[k].label : "",
						list[k].label ? ": " : "", (long long)list[k].steps,
						(long long)list[i].steps);
	}
	*ret = list;
	return RFL_OK;
}

/* Warn about the ceilings in use, once for a chain of commands: plot and report show the same in
 * the figure and the document. */
static void warn_doubts(const struct rfl_peaks *peaks, const struct rfl_points *points)
{
	struct rfl_buf lines = { .len = 0 };
	struct rfl_span rest, line;
	char today[RFL_TIME_ISO_SIZE];

	rfl_clock_iso(today);
	(void)rfl_points_doubts(points, peaks, today, &lines);
	rest = rfl_span_of(rfl_buf_str(&lines));
	while (rfl_span_next_line(&rest, &line))
		rfl_log(RFL_LOG_WARN, "%s: %.*s; see 'roofline peaks check %s'", peaks->path,
			(int)line.len, line.at, peaks->path);
	rfl_buf_reset(&lines);
	(void)rfl_points_other_devices(points, peaks, &lines);
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&lines));
	rfl_buf_fini(&lines);
}

/* Reject contradictory options. */
static enum rfl_rc check(const struct points_args *a, struct rfl_err *err)
{
	const bool kernel = a->by == RFL_BY_KERNEL;

	if (a->as && (a->by != RFL_BY_STEP || a->flops == RFL_FLOPS_COUNTERS))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--as: %s counts the FLOPs of whole networks; use it without %s",
				a->as, a->by != RFL_BY_STEP ? "--by" : "--flops counters");
	if (a->by == RFL_BY_LAYER && a->ai == RFL_AI_COMPULSORY)
		return rfl_fail(
			err, RFL_EUSAGE, 0,
			"--ai compulsory: compulsory bytes exist only for a whole step; use "
			"unfused, fused or counters");
	if (kernel && a->ai != RFL_AI_AUTO && a->ai != RFL_AI_COUNTERS)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--ai %s: bytes of kernels are not counted from the network; use "
				"--ai counters",
				rfl_ai_names[a->ai]);
	if (kernel && a->flops == RFL_FLOPS_MODEL)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--flops model: FLOPs of kernels are not counted from the network; "
				"use --flops counters");
	return RFL_OK;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct points_args *a = args;
	const enum rfl_format format = (enum rfl_format)a->format;
	struct rfl_merge_options options = {
		.by = (enum rfl_by)a->by,
		.ai = (enum rfl_ai)a->ai,
		.flops = (enum rfl_flops_of)a->flops,
		.factor = (enum rfl_train_factor)a->factor,
		.envs = a->env.items,
		.nenvs = a->env.n,
		.skip_missing = a->skip_missing,
	};
	struct rfl_merge_report report = { .unjoined = 0 };
	struct rfl_arena *texts = rfl_arena_new();
	struct rfl_counter_steps *steps = NULL;
	struct rfl_runs *runs = NULL;
	struct rfl_peaks *peaks = NULL;
	struct rfl_work_file *work = NULL;
	struct rfl_points *pts = NULL;
	struct rfl_captures captures;
	enum rfl_rc rc;

	rfl_captures_init(&captures);
	if (!texts) {
		rc = rfl_no_memory(err, "points");
		goto done;
	}
	if (a->as && rfl_peer_find(a->as, &options.as, err) != RFL_OK) {
		rfl_err_prefix(err, "--as");
		rc = RFL_EUSAGE;
		goto done;
	}
	if ((rc = check(a, err)) || (rc = read_steps(&a->counter_steps, texts, &steps, err)) ||
	    (rc = rfl_cli_load_runs(&a->metrics, 1, &a->map, &rfl_ledger_metrics[0], RFL_ROWS_TIMES,
				    &runs, err)) ||
	    (rc = rfl_cli_load_peaks(a->peaks, &peaks, err)))
		goto done;
	if (a->complexity_json &&
	    ((rc = rfl_cli_need_file(a->complexity_json, "roofline complexity --output-dir DIR",
				     err)) ||
	     (rc = rfl_work_file_load(a->complexity_json, &work, err))))
		goto done;
	rc = load_captures(a, &captures, err);
	if (rc)
		goto done;

	const struct rfl_merge_inputs in = {
		.runs = runs,
		.ledger_hash = runs->ledger->hash,
		.peaks = peaks,
		.peaks_hash = peaks->hash,
		.work = work,
		.counters = { .captures = &captures,
			      .steps = steps,
			      .nsteps = a->counter_steps.n,
			      .keep_going = a->keep_going },
	};
	rc = rfl_merge(&in, &options, &pts, &report, err);
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&report.notes));
	if (rc == RFL_OK && pts->n == 0)
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "%s: none of the %zu runs gives a point; run 'roofline summary' for "
			      "the reasons",
			      a->metrics, runs->n);
	if (rc)
		goto done;
	warn_doubts(peaks, pts);
	if (a->output && (rc = rfl_points_save(a->output, pts, err)))
		goto done;
	rc = rfl_cli_put_table(cli, rfl_points_table(pts, rfl_format_for_people(format)), format,
			       err);
done:
	rfl_buf_fini(&report.notes);
	rfl_points_free(pts);
	rfl_captures_fini(&captures);
	rfl_work_file_free(work);
	rfl_peaks_free(peaks);
	rfl_runs_free(runs);
	rfl_arena_free(texts);
	return rc;
}

const struct rfl_cmd rfl_cmd_points = {
	.name = "points",
	.summary = "combine runs, counts and ceilings into roofline points",
	.description =
		"Converts every configuration in the ledger to a point: attained performance "
		"(FLOPs per step times steps per second), arithmetic intensity (FLOPs per byte), "
		"and a comparison with the ceilings of the environment. The number of steps per "
		"second is the throughput that 'roofline summary' prints, divided by the batch "
		"size. FLOPs and bytes are computed from the network; counter files add measured "
		"values per step.\n\nIf a ceiling is unknown, the command lists all missing cells, "
		"writes no points and exits with 3.",
	.example =
		"roofline points --metrics logs/metrics.csv --peaks peaks.json --output points.csv",
	.opts = opts,
	.args_size = sizeof(struct points_args),
	.run = run,
};
