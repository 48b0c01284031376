/*
 * cmd_run.c - roofline run: one measured burst of training steps, one row of the ledger.
 */
#include "cli/cmd.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/places.h"
#include "complexity/zoo.h"
#include "machine/machine.h"
#include "runner/counted.h"
#include "runner/run.h"

struct run_args {
	const char *arch, *data, *engine, *label, *env, *log_dir;
	int backend, precision, mode, optimizer, counters, nvtx;
	struct rfl_opt_list counter_sets;
	int64_t batch_size, image_size, warmup_iters, iters, workers, prefetch_factor, threads,
		seed;
	double lr, momentum, weight_decay, timeout;
	bool synthetic, no_augment, channels_last, deterministic, in_process;
};

#define AT(member) offsetof(struct run_args, member)
#define NO_MAXIMUM (-1) /* below the minimum: no upper bound */

/* "auto" stands in front of the devices, in the order of enum rfl_device. */
static const char *const backends[] = { "auto", "cpu", "cuda", "mps", NULL };
enum { BACKEND_AUTO, BACKEND_OF_DEVICE };
static const char *const optimizers[] = { "sgd", NULL };

/* clang-format off */
static const struct rfl_opt opts[] = {
	{ .name = "arch", .meta = "MODEL", .kind = RFL_OPT_TEXT, .offset = AT(arch), .required = true,
	  .help = "the network; 'roofline list models' names them" },
	{ .name = "data", .meta = "DIR", .kind = RFL_OPT_TEXT, .offset = AT(data),
	  .help = "train on the JPEG files DIR/train/<class>/*.jpg" },
	{ .name = "synthetic", .kind = RFL_OPT_FLAG, .offset = AT(synthetic),
	  .help = "train on one made-up batch that stays in memory; wins over --data" },
	{ .name = "batch-size", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(batch_size),
	  .def = "32", .min = 1, .max = 1 << 20, .help = "images per step" },
	{ .name = "warmup-iters", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(warmup_iters),
	  .def = "10", .min = 0, .max = NO_MAXIMUM, .help = "steps before the measured window" },
	{ .name = "iters", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(iters), .def = "100",
	  .min = 1, .max = 10000000, .help = "steps in the measured window" },
	{ .name = "mode", .meta = "MODE", .kind = RFL_OPT_CHOICE, .offset = AT(mode),
	  .choices = rfl_run_mode_names, .def = "train",
	  .help = "a step: everything, forward only (evaluation), or without the optimizer" },
	{ .name = "precision", .meta = "P", .kind = RFL_OPT_CHOICE, .offset = AT(precision),
	  .choices = rfl_precision_names, .def = "fp32", .help = "arithmetic of the network" },
	{ .name = "backend", .meta = "DEVICE", .kind = RFL_OPT_CHOICE, .offset = AT(backend),
	  .choices = backends, .def = "auto", .help = "where to run; auto is the fastest that works" },
	{ .name = "engine", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(engine), .def = "auto",
	  .help = "what runs it: torch, torch@2.11; 'roofline list engines' names them" },
	{ .name = "channels-last", .kind = RFL_OPT_FLAG, .offset = AT(channels_last),
	  .help = "keep images and weights in NHWC order" },
	{ .name = "image-size", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(image_size),
	  .def = "0", .min = 0, .max = 65500, .help = "pixels of a side; 0 is the model's own" },
	{ .name = "optimizer", .meta = "NAME", .kind = RFL_OPT_CHOICE, .offset = AT(optimizer),
	  .choices = optimizers, .def = "sgd", .help = "rule of the update; sgd has momentum" },
	{ .name = "lr", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(lr), .def = "0.001",
	  .rmin = 0, .rmax = 1e6, .help = "learning rate, small enough for networks that are not warmed up" },
	{ .name = "momentum", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(momentum),
	  .def = "0.9", .rmin = 0, .rmax = 1, .help = "momentum" },
	{ .name = "weight-decay", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(weight_decay),
	  .def = "0.0001", .rmin = 0, .rmax = 1e6, .help = "L2 penalty" },
	{ .name = "threads", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(threads), .def = "0",
	  .min = 0, .max = 4096, .help = "compute threads; 0 is every core that we may use" },
	{ .name = "workers", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(workers), .def = "-1",
	  .min = -1, .max = 1024,
	  .help = "threads that decode images; 0 decodes between steps, -1 chooses by the cores" },
	{ .name = "prefetch-factor", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(prefetch_factor),
	  .def = "2", .min = 1, .max = 1024, .help = "batches decoded ahead" },
	{ .name = "no-augment", .kind = RFL_OPT_FLAG, .offset = AT(no_augment),
	  .help = "resize and centre crop instead of random crop and flip" },
	{ .name = "seed", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(seed), .def = "0", .min = 0,
	  .max = INT64_MAX, .help = "of dropout, order, crops and flips" },
	{ .name = "deterministic", .kind = RFL_OPT_FLAG, .offset = AT(deterministic),
	  .help = "only algorithms that give the same numbers in every run" },
	{ .name = "label", .meta = "TEXT", .kind = RFL_OPT_TEXT, .offset = AT(label),
	  .help = "name of the run; made when absent: {env}_{model}_{precision}_bs{batch}_run{N}" },
	{ .name = "env", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(env),
	  .help = "name of this machine, as in 'roofline peaks measure'; else from the label, else the "
		  "backend" },
	{ .name = "log-dir", .meta = "DIR", .kind = RFL_OPT_TEXT, .offset = AT(log_dir),
	  .def = "logs", .help = "where metrics.csv, steps/ and time/ go" },
	{ .name = "counters", .meta = "RANGES", .kind = RFL_OPT_CHOICE, .offset = AT(counters),
	  .choices = rfl_detail_names, .def = "off",
	  .help = "after the window count one more step: as a whole, by phase, or by layer" },
	{ .name = "counter-sets", .meta = "SET", .kind = RFL_OPT_LIST, .offset = AT(counter_sets),
	  .choices = rfl_counter_set_names,
	  .help = "what is counted of a GPU; core flops kernels self-test when absent" },
	{ .name = "nvtx", .meta = "RANGES", .kind = RFL_OPT_CHOICE, .offset = AT(nvtx),
	  .choices = rfl_detail_names, .def = "off",
	  .help = "name the ranges of the window for ncu and nsys" },
	{ .name = "timeout", .meta = "SECONDS", .kind = RFL_OPT_REAL, .offset = AT(timeout),
	  .def = "0", .rmin = 0, .rmax = 1e9, .help = "give up after this long; 0 is never" },
	{ .name = "in-process", .kind = RFL_OPT_FLAG, .offset = AT(in_process),
	  .help = "no child process: for debuggers and profilers" },
	{ .name = NULL },
};
/* clang-format on */

/* ---- signals ---- */

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
	(void)number;
	stop_asked = 1;
}

static bool is_cancelled(void *ctx)
{
	(void)ctx;
	return stop_asked != 0;
}

static const int stop_signals[] = { SIGINT, SIGTERM, SIGHUP };

/* From here on a signal ends the child, and us after the row was written. One that our caller had
 * switched off (nohup, a job in the background of a script) stays off. */
static void catch_signals(struct sigaction old[])
{
	struct sigaction action = { .sa_handler = on_signal };

	stop_asked = 0;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < RFL_ARRAY_LEN(stop_signals); i++)
		if (sigaction(stop_signals[i], NULL, &old[i]) == 0 && old[i].sa_handler != SIG_IGN)
			(void)sigaction(stop_signals[i], &action, NULL);
}

static void restore_signals(const struct sigaction old[])
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(stop_signals); i++)
		(void)sigaction(stop_signals[i], &old[i], NULL);
}

/* ---- the command ---- */

static void on_progress(const char *phase, int64_t done, int64_t total, void *ctx)
{
	if (strcmp(phase, "warmup") == 0)
		rfl_cli_progress(ctx, "warm-up %lld/%lld", (long long)done, (long long)total);
	else if (strcmp(phase, "window") == 0)
		rfl_cli_progress(ctx, "measuring %lld steps", (long long)total);
	else if (strcmp(phase, "counting") == 0)
		rfl_cli_progress(ctx, "counting a step");
	else
		rfl_cli_progress(ctx, "opening the engine");
}

static enum rfl_rc check_args(const struct run_args *a, struct rfl_err *err)
{
	const struct rfl_zoo_model *model;

	if (rfl_zoo_find(a->arch, &model, err) != RFL_OK)
		return RFL_EUSAGE;
	if (!a->data && !a->synthetic)
		return rfl_fail(err, RFL_EUSAGE, 0, "give --data DIR, or --synthetic");
	if (a->in_process && a->timeout > 0)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--timeout: with --in-process there is nobody to keep it");
	if (a->counter_sets.n && a->counters == RFL_DETAIL_OFF)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--counter-sets: nothing is counted; add --counters step, phase or "
				"layer");
	if (a->counter_sets.n && a->backend != BACKEND_AUTO &&
	    a->backend != BACKEND_OF_DEVICE + RFL_DEVICE_CUDA)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--counter-sets: they are of a GPU (--backend cuda); a processor "
				"counts all that it can at once");
	return RFL_OK;
}

static unsigned sets_of(const struct rfl_opt_list *names)
{
	unsigned sets = 0;

	for (size_t i = 0; i < names->n; i++)
		for (unsigned bit = 0; rfl_counter_set_names[bit]; bit++)
			if (strcmp(names->items[i], rfl_counter_set_names[bit]) == 0)
				sets |= 1U << bit;
	return sets;
}

/* Decoding threads beside the compute threads: a few cores' worth where the CPU trains as well,
 * all of them where it only decodes. */
static int choose_workers(const struct run_args *a, int cores)
{
	bool cpu_trains =
		a->backend == BACKEND_AUTO || a->backend == BACKEND_OF_DEVICE + RFL_DEVICE_CPU;
	int n = cpu_trains ? cores / 4 : cores;
	int most = cpu_trains ? 4 : 16;

	if (a->workers >= 0)
		return (int)a->workers;
	return n < 1 ? 1 : n > most ? most : n;
}

static enum rfl_rc make_config(const struct rfl_cli *cli, const struct run_args *a,
			       struct rfl_run_config *ret, struct rfl_err *err)
{
	struct rfl_machine *machine = NULL;
	enum rfl_rc rc = rfl_machine_new(&machine, err);
	int cores;

	if (rc)
		return rc;
	cores = rfl_machine_threads(machine);
	rfl_machine_free(machine);
	*ret = (struct rfl_run_config){
		.arch = a->arch,
		.image_size = a->image_size,
		.batch = a->batch_size,
		.mode = (enum rfl_run_mode)a->mode,
		.device = a->backend == BACKEND_AUTO ? RFL_RUN_DEVICE_AUTO
						     : a->backend - BACKEND_OF_DEVICE,
		.precision = (enum rfl_precision)a->precision,
		.layout = a->channels_last ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW,
		.engine = a->engine,
		.plugin_dirs = cli->plugin_dirs,
		.optimizer = { .lr = a->lr, .momentum = a->momentum, .weight_decay = a->weight_decay },
		.seed = (uint64_t)a->seed,
		.deterministic = a->deterministic,
		.threads = a->threads ? (int)a->threads : cores,
		.data = {
			.kind = a->synthetic ? RFL_DATA_SYNTHETIC : RFL_DATA_IMAGEFOLDER,
			.dir = a->synthetic ? NULL : a->data,
			.augment = !a->no_augment,
			.workers = choose_workers(a, cores),
			.ahead = (int)a->prefetch_factor,
			.seed = (uint64_t)a->seed,
			.world_size = 1,
		},
		.accum = 1,
		.warmup = a->warmup_iters,
		.iters = a->iters,
		.counters = (enum rfl_detail)a->counters,
		.counter_sets = sets_of(&a->counter_sets),
		.places = rfl_cli_places(),
		.nvtx = (enum rfl_detail)a->nvtx,
		.nvtx_injection = getenv("NVTX_INJECTION64_PATH"),
	};
	return RFL_OK;
}

static void join_words(const struct rfl_cli *cli, struct rfl_buf *out)
{
	for (int i = 0; i < cli->argc; i++)
		rfl_buf_printf(out, "%s%s", i ? " " : "", cli->argv[i]);
}

/* A run without its counters is a run all the same. */
static void say_counters(const struct rfl_ledger_row *row)
{
	const char *status = row->counters_status;

	const bool nothing =
		isnan(row->counted_flops_per_step) && isnan(row->counted_dram_bytes_per_step);

	if (status && strcmp(status, "ok") != 0 && !isnan(row->wall_s))
		rfl_log(RFL_LOG_WARN, "counters: %s (the run itself is recorded%s)", status,
			nothing ? "; its work and traffic are counted analytically" : "");
}

static void say_deaf(const struct run_args *a, const struct rfl_run_config *config)
{
	if (a->nvtx != RFL_DETAIL_OFF && !config->nvtx_injection)
		rfl_log(RFL_LOG_WARN,
			"--nvtx: no tool listens; run this under nsys or ncu, which say so in "
			"NVTX_INJECTION64_PATH");
}

/* The line on stdout in any case; a run that is not ok is also our failure. */
static enum rfl_rc conclude(struct rfl_cli *cli, const struct rfl_run_result *result,
			    struct rfl_err *err)
{
	struct rfl_buf line;
	enum rfl_rc rc;

	rfl_buf_init(&line, 0);
	rfl_run_summary(&result->row, &line);
	rc = rfl_buf_check(&line, "summary", err);
	if (rc == RFL_OK)
		fprintf(cli->out, "%s\n", rfl_buf_str(&line));
	rfl_buf_fini(&line);
	if (rc || result->rc == RFL_OK)
		return rc;
	rc = result->rc == RFL_EUNAVAILABLE || strcmp(result->row.status, "unsupported") == 0
		     ? RFL_EUNAVAILABLE
		     : RFL_EFAILED;
	return rfl_fail(err, rc, 0, "%s: %s: %s", result->row.label, result->row.status,
			result->row.error_text ? result->row.error_text : rfl_rc_text(result->rc));
}

/* Compute threads wait for each other by spinning. libgomp's own default lets them spin so long
 * that a core that is shared with a loader thread or another program does little else; this many
 * turns are as fast on a machine of one's own. Whoever has set either variable has decided. */
static const char *const *spin_shortly(void)
{
	static const char *const env[] = { "GOMP_SPINCOUNT=10000", NULL };

	return getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") ? NULL : env;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct run_args *a = args;
	const char *const child[] = { cli->self, "run-child", NULL };
	struct sigaction old[RFL_ARRAY_LEN(stop_signals)];
	struct rfl_run_result result;
	struct rfl_run_config config;
	struct rfl_buf words;
	enum rfl_rc rc = check_args(a, err);

	if (rc == RFL_OK)
		rc = make_config(cli, a, &config, err);
	if (rc)
		return rc;
	say_deaf(a, &config);
	rfl_buf_init(&words, 0);
	join_words(cli, &words);
	const struct rfl_run_options options = {
		.label = a->label,
		.env = a->env,
		.log_dir = a->log_dir,
		.command_line = rfl_buf_str(&words),
		.timeout_s = a->timeout,
		.in_process = a->in_process,
		.child_argv = child,
		.child_env = spin_shortly(),
		.cancelled = is_cancelled,
		.progress = on_progress,
		.ctx = cli,
	};
	if (!a->in_process)
		catch_signals(old);
	rc = rfl_run(&config, &options, &result, err);
	if (!a->in_process)
		restore_signals(old);
	rfl_cli_progress(cli, NULL);
	rfl_buf_fini(&words);
	if (rc == RFL_EINVAL)
		rc = RFL_EUSAGE; /* refused before it began: a name or a value is not allowed */
	if (rc == RFL_OK)
		say_counters(&result.row);
	if (rc == RFL_OK)
		rc = conclude(cli, &result, err);
	if (result.time_log[0])
		rfl_log(RFL_LOG_INFO, "%s/metrics.csv, %s%s%s", a->log_dir, result.time_log,
			result.counters_file[0] ? ", " : "", result.counters_file);
	rfl_run_result_fini(&result);
	return rc;
}

const struct rfl_cmd rfl_cmd_run = {
	.name = "run",
	.summary = "one measured training burst",
	.description =
		"Trains a network for a few steps in a process of its own, times them, and appends "
		"one "
		"row to metrics.csv in the log folder, whatever becomes of that process: ok, oom, "
		"timeout, crash, nan, unsupported or interrupted. Times of single steps go to "
		"steps/<run_id>.csv, the record of the process to time/<label>_<stamp>.txt. With "
		"--counters one more step is run under hardware counters after the timed ones: "
		"its "
		"counts go to counters.csv. Where they cannot be read the run goes on without "
		"them.",
	.example = "roofline run --arch resnet50 --batch-size 8 --synthetic\n"
		   "roofline run --arch vgg16 --batch-size 4 --data images --channels-last --env "
		   "lab_cpu\n"
		   "roofline run --arch resnet50 --synthetic --backend cuda --counters phase",
	.opts = opts,
	.args_size = sizeof(struct run_args),
	.operands_offset = -1,
	.run = run,
};
