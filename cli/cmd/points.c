/* points.c - roofline points: combine runs, counts, counters and ceilings into points. */
#include "cli/cmd.h"

#include "base/clock.h"
#include "base/file.h"
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
	bool metrics_given, peaks_given, counters_given, by_given, output_given;
};

#define GIVEN(member_) .given = offsetof(struct points_args, member_)

#define OPT(kind, member, ...) RFL_OPT(struct points_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, metrics, .name = "metrics", .often = true, .meta = "FILE", .project = "metrics",
	    GIVEN(metrics_given), .help = "ledger, or the table of another program"),
	OPT(LIST, map, RFL_OPT_MAP),
	OPT(TEXT, peaks, .name = "peaks", .often = true, .meta = "FILE", .project = "peaks",
	    GIVEN(peaks_given),
	    .help = "peaks file with the ceilings of the environments, or a file that 'roofline "
		    "peaks import' reads, for one environment"),
	OPT(TEXT, complexity_json, .name = "complexity-json", .meta = "FILE",
	    .help = "summary.json of 'roofline complexity'; default: count the networks"),
	OPT(TEXT, ncu_dir, .name = "ncu-dir", .meta = "DIR",
	    .help = "directory with files of GPU profilers (ncu, nvprof, nsys, rocprof), named "
		    "after the labels of the runs"),
	OPT(TEXT, perf_dir, .name = "perf-dir", .meta = "DIR",
	    .help = "directory with files of perf, time and likwid, named after the labels of the "
		    "runs"),
	OPT(LIST, counters, .name = "counters", .often = true, .meta = "FILE",
	    .project = "counters", .found = true, .unless = "metrics", GIVEN(counters_given),
	    .help = "counters.csv, or files of other profilers (ncu, rocprof, likwid, perf stat, "
		    "torch.profiler); without a ledger, each file is a program in the environment "
		    "--env; default with --metrics DIR/metrics.csv: DIR/counters.csv if it exists"),
	OPT(LIST, counter_steps, .name = "counter-steps", .meta = "[LABEL=]N",
	    .help = "number of training steps covered by the counters of LABEL or, without LABEL, "
		    "by all counters for which neither their file nor the ledger has the number"),
	OPT(FLAG, keep_going, .name = "keep-going",
	    .help = "skip rows and counter files that cannot be read, and all but one of several "
		    "that count the same run; report the skipped ones"),
	OPT(TEXT, output, RFL_OPT_OUTPUT, .project = "points",
	    .unless = "by=layer by=phase by=kernel by=op", GIVEN(output_given),
	    .help = "CSV file for the points; parts are written only if it is named"),
	OPT(CHOICE, by, .name = "by", .often = true, .meta = "PART", .choices = rfl_by_names,
	    .def = "step", GIVEN(by_given),
	    .help = "what a point represents: a step; a layer (from 'roofline run "
		    "--counters layer'); a phase (from 'roofline run --counters phase', or "
		    "a region of 'roofline profile'); a kernel (from a GPU profiler); an "
		    "operator (op, from torch.profiler). Without a ledger, the default is "
		    "op for traces of torch.profiler, and kernel for other profiles of "
		    "several kernels"),
	OPT(CHOICE, ai, .name = "ai", .often = true, .meta = "BYTES", .choices = rfl_ai_names,
	    .def = "auto",
	    .help = "bytes for the arithmetic intensity; auto: bytes measured by counters if "
		    "they are plausible and complete, else bytes counted from the network: "
		    "unfused, or as in the plan of the engine planned"),
	OPT(CHOICE, flops, .name = "flops", .often = true, .meta = "WHOSE",
	    .choices = rfl_flops_names, .def = "auto",
	    .help = "FLOPs for the rate and the arithmetic intensity; auto: the FLOPs of the "
		    "model"),
	OPT(CHOICE, factor, .name = "train-factor", .meta = "FACTOR",
	    .choices = rfl_train_factor_names, .def = "exact",
	    .help = "FLOPs of a training step: as counted, or 2 or 3 times the FLOPs of the "
		    "forward pass, as in older reports"),
	OPT(TEXT, as, .name = "as", .meta = "COUNTER",
	    .help = "FLOPs of the forward pass as printed by another counter (torchinfo, fvcore, "
		    "and others listed for 'roofline complexity --as'), to check older reports; "
		    "training requires --train-factor"),
	OPT(LIST, env, .name = "env", .often = true, .meta = "NAME",
	    .help = "environments to include; default: all. Without a ledger: the environment of "
		    "the profiles"),
	OPT(FLAG, skip_missing, .name = "skip-missing", .often = true,
	    .help = "skip points that lack a ceiling or a count, and report them"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static void warn_import(const char *line, void *ctx)
{
	(void)ctx;
	rfl_log(RFL_LOG_WARN, "%s", line);
}

/* @param foreign  set to whether a file of --counters is another profiler's */
static enum rfl_rc load_captures(const struct points_args *a, struct rfl_captures *to,
				 bool *foreign, struct rfl_err *err)
{
	const struct rfl_import_options options = { .keep_going = a->keep_going,
						    .warn = warn_import };
	const char *const dirs[] = { a->ncu_dir, a->perf_dir };
	enum rfl_rc rc = RFL_OK;

	*foreign = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(dirs) && rc == RFL_OK; i++)
		if (dirs[i])
			rc = rfl_import_dir(dirs[i], &options, to, err);
	for (size_t i = 0; i < a->counters.n && rc == RFL_OK; i++) {
		const char *path = a->counters.items[i];
		const size_t first = to->n;
		struct rfl_err why = RFL_ERR_INIT;

		if (!(rc = rfl_cli_need_file(path, "roofline run --counters step", &why)) &&
		    !(rc = rfl_import_file(path, &options, to, &why))) {
			*foreign |= to->n > first && rfl_text_same(to->captures[first]->path, path);
			rc = rfl_import_join_passes(to, &options, &why);
		}
		if (rc == RFL_EFORMAT && a->keep_going) {
			rfl_log(RFL_LOG_WARN, "%s; file skipped", why.msg);
			rc = RFL_OK;
		} else if (rc) {
			rc = rfl_err_pass(err, &why);
		}
	}
	return rc;
}

/* Parse --counter-steps. A label can have only one number. */
static enum rfl_rc read_steps(const struct rfl_opt_list *words, struct rfl_arena *texts,
			      struct rfl_counter_steps *list, struct rfl_err *err)
{
	for (size_t i = 0; i < words->n; i++) {
		char *text = rfl_arena_strdup(texts, words->items[i]);
		enum rfl_rc rc = rfl_counter_steps_parse(text, &list[i], err);

		if (rc)
			return rc;
		for (size_t k = 0; k < i; k++)
			if (rfl_text_same(list[k].label, list[i].label) &&
			    list[k].steps != list[i].steps)
				return rfl_usage(err,
						 "--counter-steps: %s%s%lld and %lld contradict "
						 "each other; use one",
						 list[k].label ? list[k].label : "",
						 list[k].label ? ": " : "",
						 (long long)list[k].steps,
						 (long long)list[i].steps);
	}
	return RFL_OK;
}

static void warn_doubts(const struct rfl_peaks *peaks, const struct rfl_points *points)
{
	RFL_AUTO(buf) lines = { .len = 0 };
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
	for (size_t i = 0; i < peaks->nenvs; i++)
		rfl_points_caveats(points, &peaks->envs[i], peaks->path, &lines);
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&lines));
}

/* Reject contradictory options. */
static enum rfl_rc check(const struct points_args *a, struct rfl_err *err)
{
	const bool counted = a->by == RFL_BY_KERNEL || a->by == RFL_BY_PHASE || a->by == RFL_BY_OP;

	if (a->as && (a->by != RFL_BY_STEP || a->flops == RFL_FLOPS_COUNTERS))
		return rfl_usage(err,
				 "--as: %s counts the FLOPs of whole networks; use it without %s",
				 a->as, a->by != RFL_BY_STEP ? "--by" : "--flops counters");
	if (a->by == RFL_BY_LAYER && a->ai == RFL_AI_COMPULSORY)
		return rfl_usage(err, "--ai compulsory: compulsory bytes exist only for a whole "
				      "step; use unfused, fused or counters");
	if (counted && a->ai != RFL_AI_AUTO && a->ai != RFL_AI_COUNTERS)
		return rfl_usage(err,
				 "--ai %s: bytes of %ss are not counted from the network; use "
				 "--ai counters",
				 rfl_ai_names[a->ai], rfl_part_word(rfl_by_names[a->by]));
	if (counted && a->flops == RFL_FLOPS_MODEL)
		return rfl_usage(err,
				 "--flops model: FLOPs of %ss are not counted from the network; "
				 "use --flops counters",
				 rfl_part_word(rfl_by_names[a->by]));
	return RFL_OK;
}

/* Save and print the points. */
static enum rfl_rc put(struct rfl_cli *cli, const struct points_args *a,
		       const struct rfl_peaks *peaks, const struct rfl_points *pts,
		       const char *output, struct rfl_err *err)
{
	const enum rfl_format format = (enum rfl_format)a->format;
	enum rfl_rc rc;

	warn_doubts(peaks, pts);
	if (output && (rc = rfl_points_save(output, pts, err)))
		return rc;
	if (output)
		rfl_log(RFL_LOG_INFO, "wrote %zu point%s to %s", pts->n, pts->n == 1 ? "" : "s",
			output);
	else
		rfl_log(RFL_LOG_INFO, "the points are not saved; to draw them, add --output FILE, "
				      "then 'roofline plot --points FILE'");
	return rfl_cli_put_table(cli, rfl_points_table(pts, rfl_format_for_people(format)), format,
				 err);
}

/* Settle the options of captures without a ledger. */
static enum rfl_rc settle(const struct points_args *a, const struct rfl_captures *captures,
			  const struct rfl_peaks *peaks, struct rfl_merge_options *o,
			  const char **env, struct rfl_err *err)
{
	RFL_AUTO(buf) names = { .len = 0 };

	*env = rfl_cli_only_env(&a->env, peaks);
	for (size_t i = 0; i < peaks->nenvs; i++)
		rfl_buf_printf(&names, "%s%s", i ? ", " : "", peaks->envs[i].name);
	if (!*env)
		return rfl_usage(
			err,
			"--env: without a ledger, name the environment of the profiles; %s has %s",
			a->peaks, rfl_buf_str(&names));
	if ((o->ai != RFL_AI_AUTO && o->ai != RFL_AI_COUNTERS) || o->flops == RFL_FLOPS_MODEL ||
	    o->as)
		return rfl_usage(err,
				 "%s: without a ledger, only the counters are known; add the "
				 "ledger with --metrics",
				 o->as                         ? "--as"
				 : o->flops == RFL_FLOPS_MODEL ? "--flops model"
							       : "--ai");
	o->by = a->by_given ? o->by : rfl_captures_by(captures);
	o->ai = RFL_AI_COUNTERS;
	o->flops = RFL_FLOPS_COUNTERS;
	o->envs = env;
	o->nenvs = 1;
	return RFL_OK;
}

/* The counters of a ledger of this program are next to it. */
static void find_counters(struct points_args *a, struct rfl_arena *arena)
{
	const char *name = rfl_path_base(a->metrics);

	if (a->counters_given || !a->metrics_given || strcmp(name, "metrics.csv") != 0)
		return;
	a->counters.items = rfl_arena_array(arena, 2, sizeof(*a->counters.items));
	a->counters.items[0] =
		rfl_arena_printf(arena, "%.*scounters.csv", (int)(name - a->metrics), a->metrics);
	a->counters.n = rfl_file_exists(a->counters.items[0]);
}

/* Whether the points of a table may be its own numbers: no option asks for counts. */
static bool has_numbers(const struct points_args *a)
{
	return a->metrics_given && a->ai == RFL_AI_AUTO && a->flops == RFL_FLOPS_AUTO && !a->as &&
	       a->by == RFL_BY_STEP;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct points_args own = *(const struct points_args *)args;
	const struct points_args *const a = &own;
	struct rfl_merge_options options = {
		.by = (enum rfl_by)a->by,
		.ai = (enum rfl_ai)a->ai,
		.flops = (enum rfl_flops_of)a->flops,
		.factor = (enum rfl_train_factor)a->factor,
		.envs = a->env.items,
		.nenvs = a->env.n,
		.skip_missing = a->skip_missing,
	};
	struct rfl_counter_steps *steps =
		rfl_arena_array(cli->arena, a->counter_steps.n, sizeof(*steps));
	struct rfl_merge_report report = { .unjoined = 0 };
	RFL_AUTOPTR(runs) runs = NULL;
	RFL_AUTOPTR(peaks) peaks = NULL;
	RFL_AUTOPTR(work_file) work = NULL;
	RFL_AUTOPTR(points) pts = NULL;
	RFL_AUTO(captures) captures = { .n = 0 };
	const bool ledger = a->metrics_given || rfl_file_exists(a->metrics);
	const char *output = a->output, *env, *roofs = a->peaks_given ? a->peaks : NULL;
	struct rfl_err late = RFL_ERR_INIT; /* the ledger is checked first */
	bool foreign = false, alone;
	enum rfl_rc rc;

	find_counters(&own, cli->arena);
	if ((rc = rfl_cli_find_peer(a->as, &options.as, err)) || (rc = check(a, err)) ||
	    (rc = read_steps(&a->counter_steps, cli->arena, steps, err)))
		return rc;
	if (a->counters_given && (rc = load_captures(a, &captures, &foreign, err)))
		return rc;
	alone = a->counters_given && !a->metrics_given && (foreign || !ledger);
	if (has_numbers(a) && (rc = rfl_cli_load_table(a->metrics, &a->map, &a->env, a->peaks,
						       &roofs, &peaks, &pts, err)))
		return rc;
	if (pts)
		return put(cli, a, peaks, pts, output, err);
	rc = rfl_cli_load_roofs(a->peaks, a->env.n ? a->env.items[0] : NULL, NULL, &peaks, &late);
	if ((!alone && (rc = rfl_cli_load_runs(&a->metrics, 1, &a->map, &rfl_ledger_metrics[0],
					       RFL_ROWS_TIMES, &runs, err))) ||
	    (rc = peaks ? RFL_OK : rfl_err_pass(err, &late)) ||
	    (alone && (rc = settle(a, &captures, peaks, &options, &env, err))))
		return rc;
	if (alone && ledger && !a->output_given)
		output = NULL; /* the project has points of runs */
	if (a->complexity_json &&
	    ((rc = rfl_cli_need_file(a->complexity_json, "roofline complexity --output-dir DIR",
				     err)) ||
	     (rc = rfl_work_file_load(a->complexity_json, &work, err))))
		return rc;
	if (!a->counters_given && (rc = load_captures(a, &captures, &foreign, err)))
		return rc;

	const struct rfl_merge_inputs in = {
		.runs = runs,
		.ledger_hash = runs ? runs->ledger->hash : NULL,
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
	rfl_buf_fini(&report.notes);
	if (rc)
		return rc;
	if (pts->n == 0 && alone)
		return rfl_fail(err, RFL_EFAILED, 0,
				"%s: contains nothing to make a point of; 'roofline counters "
				"import' shows its contents",
				a->counters.items[0]);
	if (pts->n == 0)
		return rfl_fail(err, RFL_EFAILED, 0,
				"%s: none of the %zu runs gives a point; run 'roofline summary' "
				"for the reasons",
				a->metrics, runs->n);
	return put(cli, a, peaks, pts, output, err);
}

const struct rfl_cmd rfl_cmd_points = {
	.name = "points",
	.summary = "combine runs, counts and ceilings into roofline points",
	.description =
		"Converts every configuration in the ledger to a point: achieved performance "
		"(FLOPs per step times steps per second), arithmetic intensity (FLOPs per byte), "
		"and a comparison with the ceilings of the environment. The number of steps per "
		"second is the throughput that 'roofline summary' prints, divided by the batch "
		"size. FLOPs and bytes are computed from the network; counter files add measured "
		"values per step. Without a ledger, --counters makes a point of each kernel of a "
		"profile, or of the whole program.\n\nIf a ceiling is unknown, the command lists "
		"all missing "
		"entries, writes no points and exits with 3.",
	.example =
		"roofline points\n"
		"roofline points --counters ncu.csv --env a100\n"
		"roofline points --metrics logs/metrics.csv --peaks peaks.json --output points.csv",
	.opts = opts,
	.args_size = sizeof(struct points_args),
	.run = run,
};
