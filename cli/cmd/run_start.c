/*
 * run_start.c - a run that was asked for is carried out: the machine's share of its configuration,
 * signals, progress, the child's environment.
 */
#include "cli/cmd/run_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/put.h"
#include "cli/stop.h"
#include "machine/machine.h"

/* ---- signals and progress ---- */

/* What a run calls back with. */
struct watcher {
	struct rfl_cli *cli;
	double window_s; /* when the window began, by rfl_clock_s() */
};

/* A signal ends the child, and us after the row was written. */
static bool is_cancelled(void *ctx)
{
	(void)ctx;
	return rfl_stop_asked();
}

static void show_window(struct watcher *w, int64_t done, int64_t total)
{
	const double now_s = rfl_clock_s();
	double left;

	if (done == 0) {
		w->window_s = now_s;
		rfl_cli_progress(w->cli, NULL); /* shown at once, however new the last line is */
		rfl_cli_progress(w->cli, "measuring %lld steps", (long long)total);
		return;
	}
	left = (now_s - w->window_s) / (double)done * (double)(total - done);
	rfl_cli_progress(w->cli, "measuring: step %lld of %lld, %.0f %s left", (long long)done,
			 (long long)total, left < 120 ? left : left / 60, left < 120 ? "s" : "min");
}

static void on_progress(const char *phase, int64_t done, int64_t total, void *ctx)
{
	struct watcher *w = ctx;

	if (strcmp(phase, "warmup") == 0)
		rfl_cli_progress(w->cli, "warm-up %lld/%lld", (long long)done, (long long)total);
	else if (strcmp(phase, "window") == 0)
		show_window(w, done, total);
	else if (strcmp(phase, "until") == 0)
		rfl_cli_progress(w->cli, "measuring until the mean is known: step %lld",
				 (long long)done);
	else if (strcmp(phase, "counting") == 0)
		rfl_cli_progress(w->cli, "counting a step");
	else
		rfl_cli_progress(w->cli, "opening the engine");
}

/* What was measured is not lost: it can be added to the ledger by hand. */
static void on_unrecorded(const char *ledger, const struct rfl_ledger_row *row, void *ctx)
{
	const struct watcher *w = ctx;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_log(RFL_LOG_ERROR, "%s: cannot add the row; printed to standard output with its header",
		ledger);
	rfl_buf_init(&text, 0);
	rc = rfl_ledger_csv(row, &text, &why);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(w->cli, RFL_FORMAT_CSV, &text, "row", &why);
	if (rc != RFL_OK)
		rfl_log(RFL_LOG_ERROR, "%s", why.msg);
	rfl_buf_fini(&text);
}

static void on_attempt(const struct rfl_ledger_row *row, int64_t next_batch, void *ctx)
{
	const struct watcher *w = ctx;

	rfl_cli_progress(w->cli, NULL);
	rfl_log(RFL_LOG_INFO, "%s: %s; next: batch size %lld", row->label, row->status,
		(long long)next_batch);
}

/* ---- the machine's share ---- */

/* Decoding threads beside the compute threads: a few cores' worth where the CPU trains as well,
 * all of them where it only decodes. */
static int choose_workers(const struct rfl_run_config *c, int cores)
{
	const bool cpu_trains = c->device == RFL_RUN_DEVICE_AUTO || c->device == RFL_DEVICE_CPU;
	const int n = cpu_trains ? cores / 4 : cores;
	const int most = cpu_trains ? 4 : 16;

	return n < 1 ? 1 : n > most ? most : n;
}

/* Several processes of a machine share its cores. Where it is not known how many they are, the
 * launcher has given each its own (srun --cpus-per-task, mpirun --map-by), or --threads is wanted.
 */
static int share_of(int cores, const struct rfl_world *w)
{
	const int share = w->local_size > 1 ? cores / w->local_size : cores;

	return share > 0 ? share : 1;
}

static enum rfl_rc settle(struct rfl_run_config *c, struct rfl_err *err)
{
	struct rfl_machine *machine = NULL;
	enum rfl_rc rc;
	int cores;

	if (c->threads > 0 && c->data.workers >= 0)
		return RFL_OK;
	rc = rfl_machine_new(&machine, err);
	if (rc)
		return rc;
	cores = rfl_machine_threads(machine);
	rfl_machine_free(machine);
	cores = share_of(cores, &c->world);
	if (c->threads == 0)
		c->threads = cores;
	if (c->data.workers < 0)
		c->data.workers = choose_workers(c, cores);
	return RFL_OK;
}

/* ---- the child's environment ---- */

/* Compute threads wait for each other by spinning. libgomp's own default lets them spin so long
 * that a core that is shared with a loader thread or another program does little else; this many
 * turns are as fast on a machine of one's own. Whoever has set either variable has decided. */
static bool spins_long(void)
{
	return !getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY");
}

/* cuBLAS sums in a fixed order only with a workspace of one of these two forms, and reads the
 * variable when it starts: PyTorch refuses deterministic runs without it. */
static bool needs_workspace(const struct rfl_run_config *c)
{
	const char *now = getenv("CUBLAS_WORKSPACE_CONFIG");

	if (!c->deterministic || c->device == RFL_DEVICE_CPU || c->device == RFL_DEVICE_MPS)
		return false;
	return !now || (strcmp(now, ":4096:8") != 0 && strcmp(now, ":16:8") != 0);
}

#define MAX_CHILD_ENV 2

static void child_environment(const struct rfl_run_request *r, const char *env[MAX_CHILD_ENV + 1])
{
	size_t n = 0;

	if (spins_long() && !r->in_process)
		env[n++] = "GOMP_SPINCOUNT=10000";
	if (needs_workspace(&r->config)) {
		rfl_log(RFL_LOG_DEBUG, "--deterministic: CUBLAS_WORKSPACE_CONFIG=:4096:8 is set "
				       "for the run, as cuBLAS needs it");
		env[n++] = "CUBLAS_WORKSPACE_CONFIG=:4096:8";
		if (r->in_process) /* no child: for ourselves, before a library looks */
			(void)setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
	}
	env[n] = NULL;
}

/* ---- the run ---- */

static void say_backend(const struct rfl_ledger_row *row)
{
	if (row->backend_reason && row->backend)
		rfl_log(RFL_LOG_DEBUG, "--backend auto took %s: %s", row->backend,
			row->backend_reason);
}

static void say_deaf(const struct rfl_run_config *config)
{
	if (config->nvtx != RFL_DETAIL_OFF && !config->nvtx_injection)
		rfl_log(RFL_LOG_WARN,
			"--nvtx: no tool listens; run this under nsys or ncu, which say so in "
			"NVTX_INJECTION64_PATH");
}

enum rfl_rc rfl_run_request_run(struct rfl_cli *cli, const struct rfl_run_request *r,
				const char *command_line, const char *cell,
				struct rfl_run_result *ret, struct rfl_err *err)
{
	const char *const child[] = { cli->self, "run-child", NULL };
	const char *env[MAX_CHILD_ENV + 1];
	struct watcher watcher = { .cli = cli };
	struct rfl_stop stop;
	struct rfl_run_config config = r->config;
	enum rfl_rc rc = RFL_OK;

	if (r->in_process)
		rfl_stop_let();
	else
		rfl_stop_catch(&stop);
	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	if (r->detect_data && rfl_data_detect(config.data.dir, &config.data.kind, err) != RFL_OK)
		rc = RFL_EUSAGE;
	if (config.data.kind == RFL_DATA_MNIST) /* digits are neither cropped nor mirrored */
		config.data.augment = false;
	if (rc == RFL_OK)
		rc = settle(&config, err);
	if (rc)
		goto done;
	say_deaf(&config);
	child_environment(r, env);
	const struct rfl_run_options options = {
		.label = r->label,
		.env = r->env,
		.log_dir = r->log_dir,
		.command_line = command_line,
		.cell = cell,
		.timeout_s = r->timeout_s,
		.in_process = r->in_process,
		.child_argv = child,
		.child_env = env,
		.visible_gpus = getenv("CUDA_VISIBLE_DEVICES"),
		.cancelled = is_cancelled,
		.progress = on_progress,
		.unrecorded = on_unrecorded,
		.attempt = on_attempt,
		.ctx = &watcher,
	};
	rc = r->local_world ? rfl_run_local(&config, &options, ret, err)
			    : rfl_run_fitting(&config, &options, r->oom, ret, err);
	rfl_cli_progress(cli, NULL);
	if (rc == RFL_OK)
		say_backend(&ret->row);
done:
	if (!r->in_process)
		rfl_stop_restore(&stop);
	/* refused before it began: a name or a value is not allowed */
	return rc == RFL_EINVAL ? RFL_EUSAGE : rc;
}
