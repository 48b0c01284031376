/*
 * parent.c - the parent process: checks a run, starts the child and reads its reports. run/record.c
 * then writes the files, however the child ended.
 */
#include "runner/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/os.h"
#include "machine/machine.h"
#include "profile/capture.h"
#include "runner/run/training.h"

#define MAX_CHILD_ENV 16
#define CHECKPOINT_S  60.0 /* for a training to complete its step and write a checkpoint */
#define COUNTERS_MAX  ((size_t)256 << 20)
#define GPUS          "CUDA_VISIBLE_DEVICES="

/* ---- the child's reports ---- */

static enum rfl_rc failure_of(const json_t *event)
{
	const int64_t rc = rfl_run__int_of(event, "rc");

	return rc >= RFL_EUSAGE && rc < RFL_OK ? (enum rfl_rc)rc : RFL_EFAILED;
}

/* Store one event. Unknown events are logged and ignored. */
static void receive(struct rfl_run__received *h, const char *name, const json_t *event)
{
	struct rfl_burst_step *steps = h->all.burst.steps;
	const char *text = json_string_value(json_object_get(event, "text"));
	const char *csv = json_string_value(json_object_get(event, "csv"));
	const int64_t bytes = rfl_run__int_of(event, "bytes");
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_epoch row;
	int kind = 0;

	while (rfl_run__event_names[kind] && strcmp(name, rfl_run__event_names[kind]) != 0)
		kind++;
	if (kind == RFL_RUN__WORLD) { /* start from rank 0's results; the steps have arrived */
		h->all = h->r;
		h->all.burst.steps = steps;
		rfl_run__unpack(RFL_RUN__WORLD, event, &h->all);
		h->united = rfl_run__has_all_steps(&h->all.burst);
	} else if (rfl_run__event_names[kind]) {
		rfl_run__unpack((enum rfl_run__event)kind, event, &h->r);
		h->ready = h->ready || kind == RFL_RUN__READY;
		if (kind == RFL_RUN__TIMED) {
			h->timed = rfl_run__has_all_steps(&h->r.burst);
			if (!h->timed)
				rfl_log(RFL_LOG_WARN, "the run's child did not report all steps");
		}
	} else if (strcmp(name, "steps") == 0) {
		rfl_run__unpack_steps(event, &h->r.burst);
	} else if (strcmp(name, "world_steps") == 0) {
		/* allocated on demand: most runs have one process */
		if (!h->all.burst.steps &&
		    rfl_burst_init(&h->all.burst, h->r.burst.nsteps, &why) != RFL_OK)
			rfl_log(RFL_LOG_WARN, "%s", why.msg);
		if (h->all.burst.steps)
			rfl_run__unpack_steps(event, &h->all.burst);
	} else if (strcmp(name, "plan") == 0) { /* of a training */
		rfl_burst_fini(&h->r.burst);
		if (rfl_burst_init(&h->r.burst, rfl_run__int_of(event, "steps"), &why) != RFL_OK)
			rfl_log(RFL_LOG_WARN, "%s", why.msg);
	} else if (strcmp(name, "continued") == 0) {
		h->continued = rfl_run__int_of(event, "step");
		if (h->continued > 0)
			rfl_log(RFL_LOG_INFO, "continuing after step %lld of %lld",
				(long long)h->continued, (long long)h->r.burst.nsteps);
		else
			rfl_log(RFL_LOG_INFO, "no checkpoint found: starting from the beginning");
	} else if (strcmp(name, "epoch") == 0 || strcmp(name, "earlier_epoch") == 0) {
		if (rfl_run__from_json(rfl_run__epoch, event, &row))
			rfl_epochs_add(&h->epochs, &row);
		else
			rfl_log(RFL_LOG_WARN, "an epoch of the run's child was not recorded");
	} else if (strcmp(name, "met") == 0) {
		h->run_number = rfl_run__int_of(event, "run_number");
	} else if (strcmp(name, "failed") == 0) {
		h->failed = true;
		h->rc = failure_of(event);
		snprintf(h->text, sizeof(h->text), "%s", text ? text : "");
	} else if (strcmp(name, "timeline") == 0) {
		rfl_buf_puts(&h->timeline, csv ? csv : "");
	} else if (strcmp(name, "counters") == 0) {
		rfl_buf_puts(&h->counters, csv ? csv : "");
	} else if (strcmp(name, "so_far") == 0) {
		rfl_buf_fini(&h->so_far);
		h->so_far = h->counters;
		h->so_far_len = bytes < 0 ? SIZE_MAX : (size_t)bytes;
		rfl_buf_init(&h->counters, COUNTERS_MAX);
		h->within_s = json_number_value(json_object_get(event, "within_s"));
		h->late_at_s = h->within_s > 0 ? rfl_clock_s() + h->within_s : 0;
	} else if (strcmp(name, "counted") == 0) {
		h->counted = true;
		h->late_at_s = 0;
		h->counters_len = bytes < 0 ? SIZE_MAX : (size_t)bytes;
		h->counted_rc = rfl_run__int_of(event, "rc") == RFL_OK ? RFL_OK : failure_of(event);
		snprintf(h->counted_text, sizeof(h->counted_text), "%s", text ? text : "");
	} else {
		rfl_log(RFL_LOG_WARN, "unknown event from the run's child: '%s'", name);
	}
}

/* After each epoch, so that a killed training has its table, too. If this fails, it is written
 * again with the row. */
static void write_epochs(struct rfl_run__state *run, bool earlier)
{
	const struct rfl_epochs *e = &run->received.epochs;
	struct rfl_err why = RFL_ERR_INIT;

	if (rfl_epochs_save(run->epochs_path, e, &why) == RFL_OK)
		run->epochs_written = e->n;
	else
		rfl_log(RFL_LOG_WARN, "%s", why.msg);
	if (run->host->epoch)
		run->host->epoch(&e->rows[e->n - 1], earlier, run->host->ctx);
}

static void on_event(json_t *take_event, void *ctx)
{
	struct rfl_run__state *run = ctx;
	const size_t before = run->received.epochs.n;
	const char *name = json_string_value(json_object_get(take_event, "event"));
	struct rfl_run_progress progress = { .epochs = run->config->epochs };

	if (!name || strcmp(name, "progress") != 0)
		receive(&run->received, name ? name : "", take_event);
	else if (run->host->progress &&
		 rfl_run__from_json(rfl_run__progress, take_event, &progress) && progress.phase)
		run->host->progress(&progress, run->host->ctx);
	if (run->received.epochs.n > before)
		write_epochs(run, strcmp(name, "epoch") != 0);
	json_decref(take_event);
}

static void on_line(const char *line, void *ctx)
{
	struct rfl_err why = RFL_ERR_INIT;
	json_t *event = NULL;

	if (rfl_json_loads(line, strlen(line), "the child's report", &event, &why) == RFL_OK)
		on_event(event, ctx);
	else
		rfl_log(RFL_LOG_WARN, "%s", why.msg);
}

static bool on_tick(void *ctx)
{
	struct rfl_run__state *run = ctx;
	struct rfl_run__received *h = &run->received;

	h->late = h->late_at_s > 0 && rfl_clock_s() > h->late_at_s;
	return h->late || (run->host->cancelled && run->host->cancelled(run->host->ctx));
}

static enum rfl_rc run_child(struct rfl_run__state *run, struct rfl_err *err)
{
	const struct rfl_world *w = &run->config->world;
	const char *const *given = run->host->child_env;
	struct rfl_run_config config = *run->config;
	const char *env[MAX_CHILD_ENV + 1];
	char gpus[sizeof(GPUS) + 64], own[64];
	size_t n = 0;
	json_auto_t *json = NULL;
	RFL_AUTOFREE char *text = NULL;

	/* with several processes on a machine, each sees only its own GPU */
	for (; given && given[n] && n + 1 < MAX_CHILD_ENV; n++)
		env[n] = given[n];
	if (w->size > 1 && rfl_world_gpu(run->host->visible_gpus, w->local_rank, own)) {
		snprintf(gpus, sizeof(gpus), GPUS "%s", own);
		env[n++] = gpus;
	}
	env[n] = NULL;

	config.world.run_number = w->local_rank == 0 ? run->number : 0;
	json = rfl_run__config_to_json(&config);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	const struct rfl_proc_spec spec = {
		.argv = run->host->child_argv,
		.env = env,
		.input = text,
		.input_len = text ? strlen(text) : 0,
		.report_fd = RFL_RUN_REPORT_FD,
		.timeout_s = run->config->timeout_s,
		.grace_s = run->config->epochs > 0 ? CHECKPOINT_S : 0,
		.on_report = on_line,
		.cancelled = on_tick,
		.ctx = run,
	};

	return text ? rfl_proc_run(&spec, &run->process, err)
		    : rfl_fail(err, RFL_EINVAL, 0, "configuration: a text is not valid UTF-8");
}

/* Run in this process, and fill the process record as for a child. */
static void run_here(struct rfl_run__state *run)
{
	double start = rfl_clock_s();
	struct rfl_proc_result *p = &run->process;
	struct rusage usage;
	enum rfl_rc rc =
		rfl_run__measure(run->config, run->host->source_for, NULL, on_event, run, NULL);

	getrusage(RUSAGE_SELF, &usage);
	*p = (struct rfl_proc_result){
		.exited = true,
		.exit_code = rc ? 1 : 0,
		.wall_s = rfl_clock_s() - start,
	};
	rfl_proc_add_usage(p, &usage);
}

/* ---- checks before a run ---- */

/* Two training runs would replace each other's checkpoints. */
static enum rfl_rc lock_checkpoint(struct rfl_run__state *run, struct rfl_err *err)
{
	const char *path = run->config->checkpoint;
	struct rfl_run__lock *lock = &run->checkpoint_lock;
	enum rfl_rc rc;

	snprintf(lock->path, sizeof(lock->path), "%s.lock", path);
	rc = rfl_file_try_lock(lock->path, &lock->fd, err);
	if (rc == RFL_OK && lock->fd < 0)
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "%s: another training run is using this checkpoint; wait until it "
			      "ends, or use another --log-dir or --checkpoint-dir",
			      path);
	return rc;
}

/* Removed while it is locked, so that it is not the lock of another run. */
static void unlock(const struct rfl_run__lock *lock)
{
	if (lock->fd < 0)
		return;
	(void)unlink(lock->path);
	(void)close(lock->fd);
}

/* Check that epochs and checkpoint can be written. Creates the directory of the checkpoint. */
static enum rfl_rc check_training(struct rfl_run__state *run, struct rfl_err *err)
{
	const struct rfl_run_config *c = run->config;
	const char *path = c->checkpoint, *name = rfl_path_base(path);
	char folder[4096];
	enum rfl_rc rc;

	if (strlen(path) + strlen(".lock") >= sizeof(folder))
		return rfl_fail(err, RFL_EINVAL, 0,
				"checkpoint '%.100s...': name too long; use a shorter "
				"--checkpoint-dir",
				path);
	snprintf(folder, sizeof(folder), "%s/epochs", c->log_dir);
	if ((rc = rfl_file_check_use(folder, RFL_FILE_FOLDER, err)) ||
	    (rc = rfl_file_check_use(path, RFL_FILE_OPTIONAL, err)) ||
	    (rc = rfl_file_mkdirs_for(path, err)))
		return rc;
	snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	rc = rfl_file_check_use(folder[0] ? folder : ".", RFL_FILE_FOLDER, err);
	return rc ? rc : lock_checkpoint(run, err);
}

/* Check before the run, not an hour later, that its row can be written. */
static enum rfl_rc check_logs(struct rfl_run__state *run, struct rfl_err *err)
{
	static const struct {
		const char *name;
		enum rfl_file_use use;
	} all[] = {
		{ "", RFL_FILE_FOLDER },
		{ "steps", RFL_FILE_FOLDER },
		{ "time", RFL_FILE_FOLDER },
		{ "env.json", RFL_FILE_OPTIONAL },
		{ "metrics.jsonl", RFL_FILE_OPTIONAL },
		{ "memory", RFL_FILE_FOLDER },
		{ "networks", RFL_FILE_FOLDER },
		{ "metrics.csv", RFL_FILE_APPENDED },
		{ "counters.csv", RFL_FILE_APPENDED },
	};
	const bool counts = run->config->counters != RFL_DETAIL_OFF;
	const char *dir = run->config->log_dir;
	char path[sizeof(run->ledger_path)];
	enum rfl_rc rc = RFL_OK;
	int lock = -1;

	if (strlen(dir) > sizeof(run->ledger_path) - RFL_LABEL_MAX - 64)
		return rfl_fail(err, RFL_EINVAL, 0,
				"log directory '%.100s...': name too long; use a shorter --log-dir",
				dir);
	snprintf(run->ledger_path, sizeof(run->ledger_path), "%s/metrics.csv", dir);
	snprintf(run->lock_path, sizeof(run->lock_path), "%s/.lock", dir);
	snprintf(run->counters_path, sizeof(run->counters_path), "%s/counters.csv", dir);
	for (size_t i = 0; i + !counts < RFL_ARRAY_LEN(all) && rc == RFL_OK; i++) {
		snprintf(path, sizeof(path), "%s%s%s", dir, all[i].name[0] ? "/" : "", all[i].name);
		rc = rfl_file_check_use(path, all[i].use, err);
	}
	if (rc == RFL_OK && run->config->epochs > 0)
		rc = check_training(run, err);
	if (rc != RFL_OK || (rc = rfl_ledger_check(run->ledger_path, err)) ||
	    (counts && (rc = rfl_counters_check(run->counters_path, err))))
		return rc;
	if ((rc = rfl_file_mkdirs(dir, err)) != RFL_OK ||
	    (rc = rfl_file_lock(run->lock_path, &lock, err)) != RFL_OK)
		return rc;
	return rfl_file_unlock(lock, run->lock_path, err);
}

/* With several processes, propose an N for their label. While the backend, and thus the
 * environment, is unknown, N must be free in every possible environment. Runs at the same time get
 * different numbers, because the first process of each machine locks its own. */
static enum rfl_rc choose_number(struct rfl_run__state *run, struct rfl_err *err)
{
	const struct rfl_run_config *c = run->config;
	const char *precision = rfl_precision_names[c->precision];
	struct rfl_run__lock *own = &run->number_lock;
	char time_dir[4096], stem[RFL_LABEL_STEM];
	enum rfl_rc rc = RFL_OK;
	int lock = -1;

	if (c->world.size <= 1 || c->label)
		return RFL_OK;
	snprintf(time_dir, sizeof(time_dir), "%s/time", c->log_dir);
	run->number = 1;
	rc = rfl_file_lock(run->lock_path, &lock, err);
	for (size_t i = 0; rc == RFL_OK && rfl_device_names[i] && (i == 0 || !c->env); i++) {
		const char *env = c->env ? c->env : rfl_device_names[i];
		int64_t n = 0;

		rc = rfl_label_stem(env, run->net->model, precision, c->micro_batch, c->world.size,
				    stem, err);
		if (rc == RFL_OK)
			rc = rfl_label_number(stem, run->ledger_path, time_dir, &n, err);
		run->number = n > run->number ? n : run->number;
	}
	if (rc == RFL_OK)
		rc = rfl_label_stem(".lock", run->net->model, precision, c->micro_batch,
				    c->world.size, stem, err);
	while (rc == RFL_OK && c->world.local_rank == 0 && own->fd < 0) {
		snprintf(own->path, sizeof(own->path), "%s/%s%lld", c->log_dir, stem,
			 (long long)run->number);
		rc = rfl_file_try_lock(own->path, &own->fd, err);
		run->number += own->fd < 0;
	}
	(void)!rfl_file_unlock(lock, run->lock_path, NULL);
	return rc;
}

static enum rfl_rc prepare(struct rfl_run__state *run, struct rfl_ledger_row *row,
			   struct rfl_err *err)
{
	const struct rfl_run_config *c = run->config;
	const int size = c->world.size > 1 ? c->world.size : 1;
	struct rfl_run__received *h = &run->received;
	char env[49], label[RFL_LABEL_MAX + 1];
	int64_t flops; /* the row's value, which must not overflow */
	enum rfl_rc rc;

	h->oom_kills = rfl_machine_oom_kills("");
	h->run_number = -1;
	rfl_buf_init(&h->timeline, COUNTERS_MAX);
	rfl_buf_init(&h->counters, COUNTERS_MAX);
	rfl_buf_init(&h->so_far, COUNTERS_MAX);
	rc = rfl_run__check(c, &run->net, err);
	if (rc == RFL_OK && run->net->caution)
		rfl_log(RFL_LOG_WARN, "%s: %s", c->arch, run->net->caution);
	if (rc || (rc = rfl_run__flops(c, rfl_run__batch(c) * size, run->net, RFL_FUSED_ALWAYS,
				       &flops, err)))
		return rc;
	if (c->label && ((rc = rfl_label_check(c->label, err)) ||
			 (size > 1 && (rc = rfl_run__rank_label(c->label, size - 1, label, err)))))
		return rc;
	if ((rc = rfl_label_env(c->env, c->label, c->arch, "cpu", env, err)) ||
	    (rc = check_logs(run, err)) || (rc = choose_number(run, err)) ||
	    (rc = rfl_machine_new(&run->machine, err)) ||
	    (rc = rfl_run__results_init(&h->r, c->iters, err)))
		return rc;
	h->r.device = c->device; /* until the child reports it */
	rfl_run__make_id(c->world.rank, row);
	snprintf(run->epochs_path, sizeof(run->epochs_path), "%s/epochs/%s.csv", c->log_dir,
		 row->run_id);
	return RFL_OK;
}

enum rfl_rc rfl_run(const struct rfl_run_config *config, const struct rfl_run_host *host,
		    struct rfl_run_result *ret, struct rfl_err *err)
{
	struct rfl_run__state run = { .config = config,
				      .host = host,
				      .checkpoint_lock = { .fd = -1 },
				      .number_lock = { .fd = -1 } };
	enum rfl_rc rc;

	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	rfl_captures_init(&run.captures);
	rc = prepare(&run, &ret->row, err);
	if (rc == RFL_OK && config->in_process)
		run_here(&run);
	else if (rc == RFL_OK)
		rc = run_child(&run, &run.trouble);
	if (rc == RFL_OK || run.process.started)
		rc = rfl_run__conclude(&run, ret, err);
	else if (run.trouble.rc)
		rc = rfl_err_pass(err, &run.trouble);
	unlock(&run.checkpoint_lock);
	unlock(&run.number_lock);
	ret->epochs = run.received.epochs; /* the caller's, like the row */
	rfl_proc_result_fini(&run.process);
	rfl_buf_fini(&run.received.timeline);
	rfl_buf_fini(&run.received.counters);
	rfl_buf_fini(&run.received.so_far);
	rfl_burst_fini(&run.received.r.burst);
	rfl_burst_fini(&run.received.all.burst);
	rfl_captures_fini(&run.captures);
	rfl_machine_free(run.machine);
	rfl_net_free(run.net);
	return rc;
}

void rfl_run_result_fini(struct rfl_run_result *r)
{
	rfl_ledger_row_fini(&r->row);
	rfl_epochs_fini(&r->epochs);
}
