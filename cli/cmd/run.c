/* run.c - roofline run: measure training steps and add a row to the ledger. */
#include "cli/cmd/run_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/stop.h"
#include "machine/machine.h"

/* Context of the callbacks of a run. */
struct watcher {
	struct rfl_cli *cli;
	double window_s; /* start of the window, by rfl_clock_s() */
};

/* A signal ends the child; this process ends after it has written the row. */
static bool is_cancelled(void *ctx)
{
	(void)ctx;
	return rfl_stop_asked();
}

/* A duration to append: ", 90 s left", ", 3 min left"; "" if it is unknown. */
static const char *left_text(double left_s, char text[static 64])
{
	snprintf(text, 64, ", %.0f %s left", left_s < 120 ? left_s : left_s / 60,
		 left_s < 120 ? "s" : "min");
	return isnan(left_s) ? "" : text;
}

static void on_training(struct rfl_cli *cli, const struct rfl_run_progress *p)
{
	const long long epoch = p->epoch, epochs = p->epochs, done = p->done, total = p->total;
	char text[64];
	const char *left = left_text(p->left_s, text);

	if (strcmp(p->phase, "test") == 0)
		rfl_cli_progress(cli, "epoch %lld of %lld: test batch %lld of %lld%s", epoch,
				 epochs, done, total, left);
	else
		rfl_cli_progress(
			cli, "epoch %lld of %lld: step %lld of %lld, loss %.4f, accuracy %.1f %%%s",
			epoch, epochs, done, total, p->loss, p->accuracy * 100, left);
}

static void on_progress(const struct rfl_run_progress *p, void *ctx)
{
	struct watcher *w = ctx;
	const char *phase = p->phase;
	const long long done = p->done, total = p->total;
	const double now_s = rfl_clock_s();
	char left[64];

	if (p->epoch > 0) {
		on_training(w->cli, p);
	} else if (strcmp(phase, "warmup") == 0) {
		rfl_cli_progress(w->cli, "warm-up %lld/%lld", done, total);
	} else if (strcmp(phase, "window") == 0 && done == 0) {
		w->window_s = now_s;
		rfl_cli_progress(w->cli, NULL); /* show the next line immediately */
		rfl_cli_progress(w->cli, "measuring %lld steps", total);
	} else if (strcmp(phase, "window") == 0) {
		rfl_cli_progress(
			w->cli, "measuring: step %lld of %lld%s", done, total,
			left_text((now_s - w->window_s) / (double)done * (double)(total - done),
				  left));
	} else if (strcmp(phase, "until") == 0) {
		rfl_cli_progress(w->cli, "measuring until the mean is precise enough: step %lld",
				 done);
	} else {
		rfl_cli_progress(w->cli, strcmp(phase, "counting") == 0 ? "counting a step"
					 : strcmp(phase, "memory") == 0
						 ? "recording the memory of a step"
						 : "opening the engine");
	}
}

static void on_epoch(const struct rfl_epoch *e, bool earlier, void *ctx)
{
	const struct watcher *w = ctx;

	rfl_log(RFL_LOG_INFO,
		"%sepoch %lld%s: loss %.4f, accuracy %.2f %%; test loss %.4f, accuracy %.2f %%; "
		"%.1f + %.1f s",
		w->cli->line.prefix ? w->cli->line.prefix : "", (long long)e->epoch,
		earlier ? " (trained earlier)" : "", e->train_loss, e->train_accuracy * 100,
		e->test_loss, e->test_accuracy * 100, e->train_s, e->test_s);
}

/* Print the row, so that the user can add it to the ledger. */
static void on_unrecorded(const char *ledger, const struct rfl_ledger_row *row, void *ctx)
{
	const struct watcher *w = ctx;
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTO(buf) text = { .len = 0 };

	rfl_log(RFL_LOG_ERROR,
		"%s: cannot add the row; add it yourself from standard output, where it is printed "
		"with its header",
		ledger);
	if (rfl_ledger_csv(row, &text, &why) ||
	    rfl_cli_put_as(w->cli, RFL_FORMAT_CSV, &text, "row", &why))
		rfl_log(RFL_LOG_ERROR, "%s", why.msg);
}

static void on_attempt(const struct rfl_ledger_row *row, int64_t next_batch, void *ctx)
{
	const struct watcher *w = ctx;

	rfl_cli_progress(w->cli, NULL);
	rfl_log(RFL_LOG_INFO, "%s: %s; next batch size: %lld", row->label, row->status,
		(long long)next_batch);
}

static enum rfl_rc complete(struct rfl_run_config *c, struct rfl_err *err)
{
	const bool cpu_trains = c->device == RFL_RUN_DEVICE_AUTO || c->device == RFL_DEVICE_CPU;
	RFL_AUTOPTR(machine) machine = NULL;
	enum rfl_data_kind kind;
	int cores, workers;

	if (c->data_kind == RFL_RUN_DATA_AUTO) {
		if (rfl_data_detect(c->data_dir, &kind, err) != RFL_OK)
			return RFL_EUSAGE;
		c->data_kind = (int)kind;
	}
	if (c->data_kind == RFL_DATA_MNIST &&
	    c->epochs == 0) /* digits must not be cropped or mirrored */
		c->no_augment = true;
	if (c->data_kind == RFL_DATA_TOKENS) /* nothing is decoded */
		c->workers = 0;
	if (c->threads > 0 && c->workers >= 0)
		return RFL_OK;
	enum rfl_rc rc = rfl_machine_new(&machine, err);

	if (rc)
		return rc;
	/* Processes on a machine share its cores. If their number is unknown, the launcher assigns
	 * cores to each (srun --cpus-per-task, mpirun --map-by), or the user sets --threads. */
	cores = rfl_machine_threads(machine);
	if (c->world.local_size > 1)
		cores = cores > c->world.local_size ? cores / c->world.local_size : 1;
	if (c->threads == 0)
		c->threads = cores;
	/* Use few decoding threads if the CPU also trains, and one per core if it does not. */
	workers = cpu_trains ? cores / 4 : cores;
	if (workers > (cpu_trains ? 4 : 16))
		workers = cpu_trains ? 4 : 16;
	if (c->workers < 0)
		c->workers = workers > 1 ? workers : 1;
	return RFL_OK;
}

#define MAX_CHILD_ENV 2

/* Set the environment variables of libraries in the measured process. */
static void child_environment(const struct rfl_run_config *c, const char *env[MAX_CHILD_ENV + 1])
{
	const char *workspace = getenv("CUBLAS_WORKSPACE_CONFIG");
	size_t n = 0;

	/* Compute threads spin while they wait for each other. With the default of libgomp, they
	 * spin so long that loader threads on the same core hardly run; this value is as fast on an
	 * idle machine. Variables set by the user take precedence. */
	if (!c->in_process && !getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY"))
		env[n++] = "GOMP_SPINCOUNT=10000";
	/* cuBLAS is deterministic only with one of these two workspaces, and reads the variable at
	 * its start; PyTorch refuses deterministic runs without it. */
	if (c->deterministic && c->device != RFL_DEVICE_CPU && c->device != RFL_DEVICE_MPS &&
	    !(workspace &&
	      (strcmp(workspace, ":4096:8") == 0 || strcmp(workspace, ":16:8") == 0))) {
		rfl_log(RFL_LOG_DEBUG, "--deterministic: CUBLAS_WORKSPACE_CONFIG=:4096:8 is set "
				       "for the run, because cuBLAS needs it");
		env[n++] = "CUBLAS_WORKSPACE_CONFIG=:4096:8";
		if (c->in_process) /* without a child, set it before a library reads it */
			(void)setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
	}
	env[n] = NULL;
}

enum rfl_rc rfl_cli_run(struct rfl_cli *cli, const struct rfl_run_config *asked,
			const char *command_line, const char *cell, struct rfl_run_result *ret,
			struct rfl_err *err)
{
	const char *const child[] = { cli->self, asked->epochs > 0 ? "train-child" : "run-child",
				      NULL };
	const char *env[MAX_CHILD_ENV + 1];
	struct watcher watcher = { .cli = cli };
	struct rfl_stop stop;
	struct rfl_run_config config = *asked;
	enum rfl_rc rc;

	if (config.in_process)
		rfl_stop_let();
	else
		rfl_stop_catch(&stop);
	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	rc = complete(&config, err);
	if (rc)
		goto done;
	if (!cli->progress && !cli->line.prefix) /* else nothing is printed for minutes */
		rfl_log(RFL_LOG_INFO,
			"running %s: mode %s, %s, batch size %lld, warm-up steps %lld, measured "
			"steps %lld",
			config.arch, rfl_run_mode_names[config.mode],
			rfl_precision_names[config.precision], (long long)config.micro_batch,
			(long long)config.warmup, (long long)config.iters);
	if (config.nvtx != RFL_DETAIL_OFF && !config.nvtx_injection)
		rfl_log(RFL_LOG_WARN, "--nvtx: no profiler is attached; run this command with nsys "
				      "or ncu, which set NVTX_INJECTION64_PATH");
	child_environment(&config, env);
	const struct rfl_run_host host = {
		.command_line = command_line,
		.cell = cell,
		.command = asked->epochs > 0 ? rfl_train_write_command : rfl_run_write_command,
		.child_argv = child,
		.child_env = env,
		.visible_gpus = getenv("CUDA_VISIBLE_DEVICES"),
		.cancelled = is_cancelled,
		.progress = on_progress,
		.epoch = on_epoch,
		.unrecorded = on_unrecorded,
		.attempt = on_attempt,
		.ctx = &watcher,
	};
	const bool starts_all = config.world.size > 1 && !config.world.launcher;

	rc = starts_all ? rfl_run_local(&config, &host, ret, err)
			: rfl_run_fitting(&config, &host, ret, err);
	rfl_cli_progress(cli, NULL);
	if (rc == RFL_OK && ret->row.backend_reason && ret->row.backend)
		rfl_log(RFL_LOG_DEBUG, "--backend auto chose %s: %s", ret->row.backend,
			ret->row.backend_reason);
done:
	if (!config.in_process)
		rfl_stop_restore(&stop);
	/* EINVAL: a name or value was rejected before the start */
	return rc == RFL_EINVAL ? RFL_EUSAGE : rc;
}

/* The summary of a recorded run is always printed. If the run is not ok, the command fails with the
 * same reason. */
static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct rfl_run_config config;
	RFL_AUTO(run_result) result = { .rc = RFL_OK };
	const struct rfl_ledger_row *row = &result.row;
	RFL_AUTO(buf) text = { .len = 0 };
	const char *counters;
	enum rfl_rc rc = rfl_run_args_settle(cli, args, &config, err), printed;

	if (rc)
		return rc;
	rc = rfl_cli_run(cli, &config, rfl_cli_line(cli), NULL, &result, err);
	if (!result.recorded)
		return rc;
	counters = row->counters_status;
	if (counters && strcmp(counters, "ok") != 0 && !isnan(row->wall_s))
		rfl_log(RFL_LOG_WARN, "counters: %s (the run is recorded%s)", counters,
			isnan(row->counted_flops_per_step) &&
					isnan(row->counted_dram_bytes_per_step)
				? "; FLOPs and bytes are computed from the network"
				: "");
	if (row->mem_status && strcmp(row->mem_status, "ok") != 0 && !isnan(row->wall_s))
		rfl_log(RFL_LOG_WARN, "memory: %s (the run is recorded)", row->mem_status);
	rfl_run_summary(row, &text);
	rfl_buf_puts(&text, rfl_run_found_no_gpu(row) ? "; " RFL_RUN_NO_GPU "\n" : "\n");
	printed = rfl_cli_put(cli, &text, "summary", err);
	rc = rc ? rc : printed;
	if (rc == RFL_OK && result.rc != RFL_OK)
		rc = rfl_fail(err,
			      result.rc == RFL_EUNAVAILABLE ||
					      strcmp(row->status, "unsupported") == 0
				      ? RFL_EUNAVAILABLE
				      : RFL_EFAILED,
			      0, "%s: %s: %s%s", row->label, row->status,
			      row->error_text ? row->error_text : rfl_rc_text(result.rc),
			      result.rc == RFL_EDEVMEM && config.oom == RFL_OOM_RECORD
				      ? "; use a smaller --batch-size, or --oom shrink"
				      : "");
	rfl_log(RFL_LOG_INFO, "%s/metrics.csv%s%s%s%s%s%s", config.log_dir,
		result.time_log[0] ? ", " : "", result.time_log,
		result.counters_file[0] ? ", " : "", result.counters_file,
		result.memory_file[0] ? ", " : "", result.memory_file);
	return rc;
}

static enum rfl_rc run_child(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;

	(void)cli, (void)args, (void)err;
	if (rfl_run_child(STDIN_FILENO, RFL_RUN_REPORT_FD, NULL, NULL, &why) == RFL_OK)
		return RFL_OK;
	rfl_log(RFL_LOG_DEBUG, "%s", why.msg);
	return RFL_EFAILED; /* without a message, because the parent process reports it */
}

const struct rfl_cmd rfl_cmd_run = {
	.name = "run",
	.summary = "train a network for a short, measured burst",
	.description = "Trains a network for a few steps in a separate process, times them, and "
		       "appends a row to metrics.csv in the log directory. The status in the row "
		       "is ok, oom, timeout, failed, crash, nan, unsupported or interrupted. The "
		       "times of the individual steps are written to steps/<run_id>.csv, and a "
		       "record of the process to time/<label>_<stamp>.txt. With --counters, "
		       "another step is run under hardware counters after the timed steps, and its "
		       "counts are written to counters.csv. If the counters cannot be read, the "
		       "run continues without them. With --profile-memory, another step is run "
		       "whose allocations are written to memory/<run_id>.csv.",
	.example = "roofline run --arch resnet50 --batch-size 8 --synthetic\n"
		   "roofline run --arch vgg16 --batch-size 4 --data images --channels-last --env "
		   "lab_cpu\n"
		   "roofline run --arch resnet50 --synthetic --backend cuda --counters phase",
	.opts = rfl_run_opts,
	.args_size = sizeof(struct rfl_run_args),
	.holds_signals = true,
	.run = run,
};

const struct rfl_cmd rfl_cmd_run_child = {
	.name = "run-child",
	.summary = "measure one run (started by 'roofline run')",
	.hidden = true,
	.run = run_child,
};
