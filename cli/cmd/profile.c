/* profile.c - roofline profile: run any program, measure it, and add it to the ledger. */
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "cli/project.h"
#include "roofline/roofline.h"
#include "runner/program.h"
#include "runner/run.h"

#define SWEEP_MAX 1000

static const char *const waits[] = { "main", "all", NULL };
static const char *const starts[] = { "on", "off", NULL };
static const char *const replays[] = { "kernel", "application", NULL };
static const char *const profilers[] = { "ncu", "nsys", NULL };
static const char *const precisions[] = { "fp64", "fp32", "fp16", "bf16", "amp", "tf32", NULL };

struct profile_args {
	struct rfl_opt_list words; /* the command and its arguments */
	struct rfl_program_config c;
	struct rfl_profiler_config with;
	const char *flops, *bytes, *sweep;
	bool backend_given;
};

#define BATCH_MAX (INT64_C(1) << 40)

#define OPT(kind, member, ...) RFL_OPT(struct profile_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, flops, .name = "flops", .often = true, .meta = "N",
	    .help = "FLOPs of a run, such as 1.2T; replaces the counted FLOPs"),
	OPT(TEXT, bytes, .name = "bytes", .often = true, .meta = "N",
	    .help = "bytes that a run moves to and from memory, such as 400G; replaces the counted "
		    "bytes"),
	OPT(TEXT, c.precision, .name = "precision", .often = true, .meta = "P",
	    .choices = precisions,
	    .help = "precision of the ceiling; default: the precision in which most FLOPs were "
		    "counted, or fp32 if none were"),
	OPT(TEXT, c.backend, .name = "backend", .meta = "DEVICE", .choices = rfl_device_names,
	    .def = "cpu", .given = offsetof(struct profile_args, backend_given),
	    .help = "device of the ceiling; --with selects cuda; perf events always count the CPU"),
	OPT(TEXT, with.tool, .name = "with", .often = true, .meta = "TOOL", .choices = profilers,
	    .against = "region",
	    .help = "run the command once more under a profiler: ncu counts the FLOPs and bytes of "
		    "its GPU kernels, nsys measures their times"),
	OPT(TEXT, with.chip, .name = "chip", .meta = "CHIP", .needs = "with=ncu",
	    .help = "chip (GH100) or product (H100), which selects the metrics for ncu; default: "
		    "the first GPU"),
	OPT(TEXT, with.replay, .name = "replay", .meta = "WHAT", .choices = replays,
	    .def = "kernel", .needs = "with=ncu",
	    .help = "what ncu repeats to count more metrics than fit in one pass: each kernel, "
		    "with its memory restored, or the application"),
	OPT(CHOICE, with.from_call, .name = "profile-from-start", .meta = "WHEN", .choices = starts,
	    .def = "on", .needs = "with",
	    .help = "off: profile only from cudaProfilerStart() to cudaProfilerStop()"),
	OPT(TEXT, with.nvtx, .name = "nvtx", .meta = "FILTER", .needs = "with=ncu",
	    .help = "profile only kernels in these NVTX ranges, such as 'step/'; passed to ncu as "
		    "--nvtx-include"),
	OPT(INT, c.repeats, .name = "repeats", .often = true, .meta = "N", .def = "1", .min = 1,
	    .max = 1000000,
	    .help = "number of timed runs; more are added if the counters need more passes"),
	OPT(INT, c.warmup, .name = "warmup", .often = true, .meta = "N", .def = "0", .min = 0,
	    .max = 1000000, .help = "number of runs before the timed ones"),
	OPT(INT, c.batch, .name = "batch", .meta = "N", .def = "1", .min = 1, .max = BATCH_MAX,
	    .help = "samples that a run processes, for samples/s and the label"),
	OPT(TEXT, sweep, .name = "sweep", .often = true, .meta = "KEY=V,...",
	    .help = "run the command once for each value, with {KEY} replaced by the value; the "
		    "key batch also sets --batch"),
	OPT(TEXT, c.region, .name = "region", .meta = "NAME",
	    .help = "measure only this region, which the program marks with roofline_begin() and "
		    "roofline_end()"),
	OPT(CHOICE, c.all, .name = "wait", .meta = "FOR", .choices = waits, .def = "main",
	    .help = "processes to wait for; main: the command; all: its daemons too"),
	OPT(REAL, c.limit_s, .name = "limit", .meta = "S", .def = "60", .rmin = 0.001, .rmax = 1e6,
	    .help = "with --wait all, seconds to wait for daemons after the command has ended"),
	OPT(FLAG, c.multiplex, .name = "multiplex",
	    .help = "count all events in one run, in turns; default: repeat the command if the CPU "
		    "has too few counters"),
	OPT(FLAG, c.no_counters, .name = "no-counters", .help = "measure only the time"),
	OPT(TEXT, c.name, .name = "name", .often = true, .meta = "NAME",
	    .help = "name of the program in tables and figures; default: the command without "
		    "directory or, if it is an interpreter such as python, its script"),
	OPT(TEXT, c.label, .name = "label", .meta = "TEXT", .against = "sweep",
	    .help = "name of the run; default: {env}_{name}_{precision}_bs{batch}_run{N}"),
	OPT(TEXT, c.env, .name = "env", .often = true, .meta = "NAME", .project = "env",
	    .help = RFL_ENV_HELP),
	OPT(TEXT, c.log_dir, .name = "log-dir", .often = true, .meta = "DIR", .project = "log_dir",
	    .help = "directory for metrics.csv and counters.csv"),
	{ .name = NULL },
};

/* Parse a number such as "1.2T"; NULL gives NaN. */
static enum rfl_rc read_amount(const char *option, const char *text, double *ret,
			       struct rfl_err *err)
{
	static const char prefixes[] = "kMGTPE";
	const size_t len = text ? strlen(text) : 0;
	const char *prefix = len > 1 ? strchr(prefixes, text[len - 1]) : NULL;

	*ret = NAN;
	if (!text)
		return RFL_OK;
	*ret = rfl_num_plain(text, len - (prefix != NULL));
	if (prefix)
		*ret = rfl_num_shift(*ret, 3 * (int)(prefix - prefixes + 1));
	if (!(*ret >= 0 && isfinite(*ret)))
		return rfl_usage(err, "%s: '%s' is not a number such as 2e9, 400G or 1.2T", option,
				 text);
	return RFL_OK;
}

/* ---- output, after the program has ended ---- */

/* "1.2 TFLOP (given), 400 GB (given): 972 GFLOP/s, 324 GB/s, 3 FLOP/byte" */
static void put_amounts(const struct rfl_amount *amount, double time_s, struct rfl_buf *out)
{
	const struct rfl_amount *flops = &amount[RFL_QUANTITY_FLOPS];
	const struct rfl_amount *bytes = &amount[RFL_QUANTITY_DRAM];
	const double ai = rfl_amounts_ai(amount);
	char text[48];

	if (!isnan(flops->value))
		rfl_buf_printf(out, ", %s%s",
			       rfl_num_si(flops->value, "FLOP", 3, text, sizeof(text)),
			       rfl_amount_is_given(flops) ? " (given)" : "");
	if (!isnan(bytes->value))
		rfl_buf_printf(out, ", %s%s", rfl_num_si(bytes->value, "B", 3, text, sizeof(text)),
			       rfl_amount_is_given(bytes) ? " (given)" : "");
	if (!isnan(flops->value))
		rfl_buf_printf(out, ", %s",
			       rfl_num_si(flops->value / time_s, "FLOP/s", 3, text, sizeof(text)));
	if (!isnan(bytes->value))
		rfl_buf_printf(out, ", %s",
			       rfl_num_si(bytes->value / time_s, "B/s", 3, text, sizeof(text)));
	if (!isnan(ai))
		rfl_buf_printf(out, ", %.3g FLOP/byte", ai);
}

static void put_regions(const struct rfl_capture *c, bool repeated, struct rfl_buf *out)
{
	char text[48];

	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];
		const double time_s = r->amount[RFL_QUANTITY_TIME].value;

		if (r->kind != RFL_RANGE_PHASE)
			continue;
		rfl_buf_printf(out, "  region %s: %lld time%s%s, %s", r->name,
			       (long long)r->launches, r->launches == 1 ? "" : "s",
			       repeated ? " in the first run" : "",
			       rfl_num_si(time_s, "s", 3, text, sizeof(text)));
		put_amounts(r->amount, time_s, out);
		rfl_buf_putc(out, '\n');
	}
}

static void put_process(const struct rfl_program_result *r, double ipc, struct rfl_buf *out)
{
	const struct rfl_proc_result *p = &r->process;
	char text[48], system[48], memory[48];

	rfl_buf_printf(out,
		       "  user %s, system %s, peak memory %s (largest process), %ld page faults, "
		       "%ld context switches",
		       rfl_num_si(p->user_s, "s", 3, text, sizeof(text)),
		       rfl_num_si(p->system_s, "s", 3, system, sizeof(system)),
		       rfl_num_bytes(p->max_rss_bytes, memory, sizeof(memory)),
		       p->minor_faults + p->major_faults,
		       p->voluntary_switches + p->involuntary_switches);
	if (!isnan(ipc))
		rfl_buf_printf(out, ", %.2f instructions per cycle", ipc);
	if (!isnan(r->row.energy_j_per_step))
		rfl_buf_printf(out, ", %s (CPU packages, all programs)",
			       rfl_num_si(r->row.energy_j_per_step, "J", 3, text, sizeof(text)));
	rfl_buf_putc(out, '\n');
}

/* Three lines for each quantity that is not known. */
static void put_missing(const struct rfl_capture *c, struct rfl_buf *out)
{
	static const struct {
		enum rfl_quantity q;
		const char *what, *costs, *option;
	} rows[] = {
		{ RFL_QUANTITY_FLOPS, "FLOPs", "FLOP/s, a point in the roofline",
		  ", or pass --flops N" },
		{ RFL_QUANTITY_DRAM, "DRAM bytes", "FLOP/byte, a point in the roofline",
		  ", or pass --bytes N" },
		{ RFL_QUANTITY_CYCLES, "cycles and instructions",
		  "instructions per cycle, clock rate", "" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		const struct rfl_amount *a = &c->total[rows[i].q];
		const char *reason =
			a->reason ? a->reason : "unknown; run another tool, such as perf stat";
		const char *fix = strstr(reason, "; ");

		fix = fix ? fix : strstr(reason, ": ");
		if (isnan(a->value) && !(i == 2 && rfl_capture_is_of_gpu(c)))
			rfl_buf_printf(out, "no %s: %.*s\n  unavailable: %s\n  fix: %s%s\n",
				       rows[i].what,
				       fix ? (int)(fix - reason) : (int)strlen(reason), reason,
				       rows[i].costs, fix ? fix + 2 : "see 'roofline doctor'",
				       rows[i].option);
	}
}

static void put_next(const struct rfl_cli *cli, const struct profile_args *a,
		     const struct rfl_capture *c, struct rfl_buf *out)
{
	const char *by = isnan(rfl_amounts_ai(c->total)) ? " --by phase" : "";
	bool is_point = !*by;

	struct rfl_project project = { .arena = cli->arena };
	const char *metrics, *usual, *peaks;

	for (size_t i = 0; i < c->nranges; i++)
		is_point = is_point || !isnan(rfl_amounts_ai(c->ranges[i].amount));
	if (rfl_project_path(&project, "log_dir", &usual, NULL) ||
	    rfl_project_path(&project, "peaks", &peaks, NULL))
		return;
	metrics = strcmp(usual, a->c.log_dir) == 0
			  ? ""
			  : rfl_arena_printf(cli->arena, " --metrics %s/metrics.csv", a->c.log_dir);
	if (!is_point)
		rfl_buf_printf(out, "next: roofline summary%s\n", metrics);
	else
		rfl_buf_printf(out, "next: %sroofline points%s%s%s\n",
			       rfl_file_exists(peaks) ? "" : "roofline peaks measure; ", metrics,
			       by, *by ? "" : "; roofline plot");
}

/* "  ncu: 3 kernel launches, 50.4 s on the GPU; logs/ncu/20261129T074036-ed0b494f.csv" */
static void put_profiled(const struct rfl_capture *c, struct rfl_buf *out)
{
	char text[48];

	rfl_buf_printf(out, "  %s: %lld kernel launches", c->source,
		       (long long)rfl_capture_launches_of_total(c));
	if (!isnan(c->total[RFL_QUANTITY_TIME].value))
		rfl_buf_printf(
			out, ", %s on the GPU",
			rfl_num_si(c->total[RFL_QUANTITY_TIME].value, "s", 3, text, sizeof(text)));
	rfl_buf_printf(out, "; %s\n", c->path);
	for (size_t i = 0; i < c->nnotes; i++)
		rfl_buf_printf(out, "  %s\n", c->notes[i]);
}

static void put_result(const struct rfl_cli *cli, const struct profile_args *a,
		       const struct rfl_program_result *r, struct rfl_buf *out)
{
	const struct rfl_ledger_row *row = &r->row;
	const struct rfl_capture *c = r->captures.n > 0 ? r->captures.captures[0] : NULL;
	const struct rfl_capture *gpu = r->profiled.n > 0 ? r->profiled.captures[0] : NULL;
	const struct rfl_capture *work = rfl_program_work(r);
	char text[48], ci[48];

	if (r->status != 0) {
		rfl_buf_printf(out, "%s; recorded as %s in %s\n", row->error_text, row->label,
			       r->ledger);
		return;
	}
	rfl_buf_printf(out, "%s: %s", row->label,
		       rfl_num_si(r->time.mean, "s", 4, text, sizeof(text)));
	if (r->time.n > 1)
		rfl_buf_printf(out, " (mean of %zu runs, std %s, 95 %% CI +- %s)", r->time.n,
			       rfl_num_si(r->time.std, "s", 3, text, sizeof(text)),
			       rfl_num_si(r->time.ci95, "s", 3, ci, sizeof(ci)));
	if (work)
		put_amounts(work->total, r->time.mean, out);
	rfl_buf_putc(out, '\n');
	put_process(r, c ? rfl_capture_ipc(c) : (double)NAN, out);
	if (!c)
		return;
	if (!a->c.region)
		put_regions(c, r->time.n > 1, out);
	/* without hardware counters, put_missing() has the reason */
	for (size_t i = 0; i < c->nnotes && !isnan(c->total[RFL_QUANTITY_CYCLES].value); i++)
		rfl_buf_printf(out, "  %s\n", c->notes[i]);
	if (gpu)
		put_profiled(gpu, out);
	/* if the profiler failed, its error follows */
	if (gpu || !(a->c.no_counters || a->with.tool))
		put_missing(work, out);
	put_next(cli, a, work, out);
}

/* ---- one run or a sweep ---- */

/* The command that repeats a run, without the options that say where to record it. */
static const char *make_command(struct rfl_cli *cli, const struct profile_args *a,
				const char *const *words)
{
	struct profile_args copy = *a;
	RFL_AUTO(buf) line = { .len = 0 };

	copy.c.label = copy.sweep = copy.c.log_dir = NULL;
	rfl_opt_write(rfl_cmd_find("profile"), &copy, &line);
	rfl_buf_puts(&line, " --");
	rfl_cli_quote(words, a->words.n, &line);
	return rfl_arena_strdup(cli->arena, rfl_buf_str(&line));
}

/* The name of a program, or of the script or module that an interpreter runs: "train" for
 * "python3 train.py". */
static const char *name_of(struct rfl_cli *cli, const char *const *words)
{
	static const char *const interpreters[] = { "python", "bash", "sh",    "dash",   "perl",
						    "ruby",   "node", "julia", "Rscript" };
	const char *name = rfl_path_base(words[0]), *script = words[1];
	size_t i = 0, len;

	while (i < RFL_ARRAY_LEN(interpreters) &&
	       (len = strlen(interpreters[i]),
		strncmp(name, interpreters[i], len) != 0 ||
			name[len + strspn(name + len, "0123456789.")] != '\0'))
		i++;
	if (script && strcmp(script, "-m") == 0)
		script = words[2];
	if (i == RFL_ARRAY_LEN(interpreters) || !script || script[0] == '-')
		return name;
	script = rfl_path_base(script);
	len = strcspn(script, ".");
	return len > 0 ? rfl_arena_printf(cli->arena, "%.*s", (int)len, script) : name;
}

static enum rfl_rc run_once(struct rfl_cli *cli, const struct profile_args *a,
			    const char *const *words, bool *interrupted, struct rfl_err *err)
{
	struct rfl_program_config config = a->c;
	struct rfl_program_result result;
	RFL_AUTO(buf) text = { .len = 0 };
	char *name;
	enum rfl_rc rc = read_amount("--flops", a->flops, &config.flops, err);

	if (rc || (rc = read_amount("--bytes", a->bytes, &config.bytes, err)))
		return rc;
	config.argv = words;
	config.root = "";
	name = rfl_arena_strdup(cli->arena, config.name ? config.name : name_of(cli, words));
	rfl_text_plain(name); /* it becomes part of labels and names of files */
	config.name = name;
	config.command = make_command(cli, a, words);
	rc = rfl_program_run(&config, &result, err);
	*interrupted = result.interrupted;
	if (cli->exit_status == 0)
		cli->exit_status = result.status ? result.status : result.profiled_status;
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&result.warnings));
	if (result.ran && !result.recorded)
		rfl_log(RFL_LOG_ERROR, "%s ran%s, but the run could not be recorded", words[0],
			result.status ? " and failed" : "");
	if (result.recorded && cli->verbosity >= 0) {
		put_result(cli, a, &result, &text);
		rfl_cli_say(cli, "%s", rfl_buf_str(&text));
	}
	rfl_program_result_fini(&result);
	return rc == RFL_EINVAL ? RFL_EUSAGE : rc;
}

/* Replace every {KEY} in a word. */
static const char *expand(struct rfl_cli *cli, const char *word, const char *key, const char *value,
			  size_t *found)
{
	RFL_AUTO(buf) out = { .len = 0 };
	const char *at;

	for (; (at = strstr(word, key)); word = at + strlen(key)) {
		rfl_buf_append(&out, word, (size_t)(at - word));
		rfl_buf_puts(&out, value);
		++*found;
	}
	rfl_buf_puts(&out, word);
	return rfl_arena_strdup(cli->arena, rfl_buf_str(&out));
}

static enum rfl_rc sweep(struct rfl_cli *cli, const struct profile_args *a, struct rfl_err *err)
{
	const char *equals = strchr(a->sweep, '=');
	const size_t len = equals ? (size_t)(equals - a->sweep) : 0;
	const char *key = rfl_arena_printf(cli->arena, "{%.*s}", (int)len, a->sweep);
	const bool batch = strcmp(key, "{batch}") == 0;
	const char **words = rfl_arena_array(cli->arena, a->words.n + 1, sizeof(*words));
	struct rfl_span rest = rfl_span_of(equals ? equals + 1 : ""), value;
	bool interrupted = false;
	size_t amounts = 0;
	enum rfl_rc rc = RFL_OK;

	if (len == 0 || rest.len == 0)
		return rfl_usage(err, "--sweep: '%s' is not KEY=VALUE,..., such as batch=8,16,32",
				 a->sweep);
	for (size_t n = 0; rc == RFL_OK && !interrupted && rfl_span_next_field(&rest, ',', &value);
	     n++) {
		const char *text = rfl_arena_printf(cli->arena, "%.*s", (int)value.len, value.at);
		struct profile_args one = *a;
		size_t found = 0;

		if (n == SWEEP_MAX)
			return rfl_usage(err, "--sweep: more than %d values", SWEEP_MAX);
		for (size_t i = 0; i < a->words.n; i++)
			words[i] = expand(cli, a->words.items[i], key, text, &found);
		if (found == 0)
			return rfl_usage(err, "--sweep: the command does not contain %s", key);
		one.flops = a->flops ? expand(cli, a->flops, key, text, &amounts) : NULL;
		one.bytes = a->bytes ? expand(cli, a->bytes, key, text, &amounts) : NULL;
		if (batch && (rfl_num_parse_int(text, "--sweep", &one.c.batch, NULL) ||
			      one.c.batch < 1 || one.c.batch > BATCH_MAX))
			return rfl_usage(err,
					 "--sweep: batch '%s' is not a whole number from 1 to %lld",
					 text, (long long)BATCH_MAX);
		if (!batch)
			one.c.name = rfl_arena_printf(cli->arena, "%s_%.*s%s",
						      a->c.name ? a->c.name : name_of(cli, words),
						      (int)len, a->sweep, text);
		rc = run_once(cli, &one, words, &interrupted, err);
	}
	if (rc == RFL_OK && (a->flops || a->bytes) && amounts == 0)
		rfl_log(RFL_LOG_WARN,
			"--flops and --bytes are the same for each value of --sweep; if they are "
			"not, use %s in them, as in --flops %sG",
			key, key);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct profile_args a = *(const struct profile_args *)args;
	RFL_AUTOPTR(profiler) profiler = NULL;
	const struct rfl_ceiling *ceiling;
	bool interrupted;
	enum rfl_rc rc;

	if (a.c.env && (rc = rfl_text_check_env_name("--env", a.c.env, RFL_EUSAGE, err)))
		return rc;
	if (a.with.tool) {
		a.with.precision = a.c.precision;
		a.with.places = rfl_cli_places(cli);
		if ((rc = rfl_profiler_new(&a.with, &profiler, err)))
			return rc == RFL_EINVAL ? RFL_EUSAGE : rc;
		a.c.profiler = profiler;
		if (!a.backend_given)
			a.c.backend = rfl_device_names[RFL_DEVICE_CUDA];
	}
	if (a.c.precision && (rc = rfl_ceiling_find(a.c.backend, a.c.precision, &ceiling, err))) {
		rfl_err_prefix(err, "--precision");
		return RFL_EUSAGE;
	}
	return a.sweep ? sweep(cli, &a, err) : run_once(cli, &a, a.words.items, &interrupted, err);
}

const struct rfl_cmd rfl_cmd_profile = {
	.name = "profile",
	.summary = "measure any program and add it to the ledger",
	.operands = "-- COMMAND [ARG...]",
	.description =
		"Runs a command and appends its time to metrics.csv and its counters to "
		"counters.csv in the log directory. FLOPs, memory traffic and instructions are "
		"counted by perf events in all its threads and child processes, or passed with "
		"--flops and --bytes. If something cannot be counted, the fix is printed. "
		"'roofline points' then compares the program with the ceilings of the "
		"machine.\n\nThe exit code is the command's; 126: it cannot be "
		"executed; 127: it was not found; 128 + N: it was killed by signal N.\n\nA program "
		"can mark regions with the functions in share/roofline/region (C and Python).",
	.example =
		"roofline profile -- ./app --size 4096\n"
		"roofline profile --repeats 5 --flops 137G --bytes 100M --precision fp64 -- "
		"./dgemm 4096\n"
		"roofline profile --sweep batch=8,16,32 -- python train.py --batch-size '{batch}'",
	.opts = opts,
	.args_size = sizeof(struct profile_args),
	.holds_signals = true,
	.run = run,
};
