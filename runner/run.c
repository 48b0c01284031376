/*
 * run.c - the parent of a run: checks it, starts the child, listens, and writes the row whatever
 * became of the child.
 */
#include "runner/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "machine/machine.h"
#include "profile/counters_csv.h"
#include "runner/env_record.h"
#include "runner/run_parts.h"

#define MAX_CHILD_ENV 16
#define GPUS          "CUDA_VISIBLE_DEVICES="

/* What the parent holds during a run. */
struct run {
	const struct rfl_run_config *config;
	const struct rfl_run_options *options;
	struct rfl_net *net;
	struct rfl_machine *machine;
	struct rfl_run__heard heard;
	struct rfl_proc_result process;
	struct rfl_captures captures;
	char ledger_path[4096], lock_path[4096], counters_path[4096];
	int64_t number; /* of several processes: N of the label that is made, if they do not
			   agree on another */
	char world_label[RFL_LABEL_MAX + 1]; /* of all of them */
};

/* ---- listening ---- */

static void on_event(json_t *take_event, void *ctx)
{
	struct run *run = ctx;
	const char *phase;
	int64_t done = 0, total = 0;

	rfl_run__hear(&run->heard, take_event, &phase, &done, &total);
	if (phase && run->options->progress)
		run->options->progress(phase, done, total, run->options->ctx);
	json_decref(take_event);
}

static void on_line(const char *line, void *ctx)
{
	struct rfl_err why = RFL_ERR_INIT;
	json_t *event = NULL;

	if (rfl_json_loads(line, strlen(line), "report of the run's child", &event, &why)) {
		rfl_log(RFL_LOG_WARN, "%s", why.msg);
		return;
	}
	on_event(event, ctx);
}

static bool on_tick(void *ctx)
{
	const struct run *run = ctx;

	return run->options->cancelled && run->options->cancelled(run->options->ctx);
}

/* ---- running ---- */

/* The child's environment. Of several processes on a machine each sees its own GPU and no other. */
static void add_gpu(const struct run *run, const char *env[MAX_CHILD_ENV + 1], char *gpus,
		    size_t size)
{
	const struct rfl_world *w = &run->config->world;
	const char *const *given = run->options->child_env;
	char own[64];
	size_t n = 0;

	for (; given && given[n] && n + 1 < MAX_CHILD_ENV; n++)
		env[n] = given[n];
	if (w->size > 1 && rfl_world_gpu(run->options->visible_gpus, w->local_rank, own)) {
		snprintf(gpus, size, GPUS "%s", own);
		env[n++] = gpus;
	}
	env[n] = NULL;
}

static enum rfl_rc run_child(struct run *run, struct rfl_err *err)
{
	struct rfl_run_config config = *run->config;
	const char *env[MAX_CHILD_ENV + 1];
	char gpus[sizeof(GPUS) + 64];
	json_t *json;
	char *text;

	config.world.run_number = run->number;
	json = rfl_run__config_to_json(&config);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	const struct rfl_proc_spec spec = {
		.argv = run->options->child_argv,
		.env = env,
		.input = text,
		.input_len = text ? strlen(text) : 0,
		.report_fd = RFL_RUN_REPORT_FD,
		.timeout_s = run->options->timeout_s,
		.on_report = on_line,
		.cancelled = on_tick,
		.ctx = run,
	};
	enum rfl_rc rc;

	add_gpu(run, env, gpus, sizeof(gpus));
	if (text)
		rc = rfl_proc_run(&spec, &run->process, err);
	else
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "configuration: a text is not UTF-8, or out of memory");
	free(text);
	json_decref(json);
	return rc;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* The record of our own process, in the form that a child's has. */
static void run_here(struct run *run)
{
	double start = rfl_clock_s();
	struct rfl_proc_result *p = &run->process;
	struct rusage usage;
	enum rfl_rc rc =
		rfl_run__measure(run->config, run->options->source_for, on_event, run, NULL);

	getrusage(RUSAGE_SELF, &usage);
	*p = (struct rfl_proc_result){
		.exited = true,
		.exit_code = rc ? 1 : 0,
		.wall_s = rfl_clock_s() - start,
		.user_s = seconds(usage.ru_utime),
		.system_s = seconds(usage.ru_stime),
		.max_rss_bytes = (double)usage.ru_maxrss * 1024.0,
		.minor_faults = usage.ru_minflt,
		.major_faults = usage.ru_majflt,
		.voluntary_switches = usage.ru_nvcsw,
		.involuntary_switches = usage.ru_nivcsw,
		.fs_inputs = usage.ru_inblock,
		.fs_outputs = usage.ru_oublock,
	};
}

/* ---- naming ---- */

/* The rows that are there; NULL when there is none yet. */
/* The labels of the ledger, which a label is chosen by. */
static enum rfl_rc load_labels(const struct run *run, struct rfl_ledger **ret, struct rfl_err *err)
{
	static const bool wanted[RFL_LEDGER_NCOLUMNS] = { [RFL_LEDGER_AT_label] = true };

	*ret = NULL;
	if (rfl_file_size(run->ledger_path) == 0)
		return RFL_OK;
	return rfl_ledger_load_columns(run->ledger_path, wanted, ret, err);
}

/* The label that was given, or one that is made: into `made`. */
static enum rfl_rc find_label(const struct run *run, const struct rfl_ledger_row *row,
			      char made[RFL_LABEL_MAX + 1], struct rfl_err *err)
{
	const int64_t agreed = run->heard.world.run_number;
	struct rfl_ledger *ledger = NULL;
	char time_dir[4096];
	enum rfl_rc rc;

	if (run->options->label) {
		snprintf(made, RFL_LABEL_MAX + 1, "%s", run->options->label);
		return RFL_OK;
	}
	if (run->config->world.size > 1)
		return rfl_run__world_label(row, agreed > 0 ? agreed : run->number, made, err);
	snprintf(time_dir, sizeof(time_dir), "%s/time", run->options->log_dir);
	rc = load_labels(run, &ledger, err);
	if (rc == RFL_OK)
		rc = rfl_label_next(row->env, row->model, row->precision, row->micro_batch, ledger,
				    time_dir, made, err);
	rfl_ledger_free(ledger);
	return rc;
}

static enum rfl_rc make_label(struct run *run, struct rfl_ledger_row *row, struct rfl_err *err)
{
	const struct rfl_run_options *o = run->options;
	const char *backend = row->backend ? row->backend : "auto";
	char env[49], label[RFL_LABEL_MAX + 1];
	struct rfl_label parts;
	enum rfl_rc rc = rfl_label_env(o->env, o->label, row->model, backend, env, err);

	if (rc == RFL_OK)
		rc = rfl_ledger_set(&row->env, env, err);
	if (rc == RFL_OK)
		rc = find_label(run, row, label, err);
	if (rc == RFL_OK && run->config->world.size > 1) {
		memcpy(run->world_label, label, sizeof(label));
		rc = rfl_run__rank_label(run->world_label, run->config->world.rank, label, err);
	}
	if (rc)
		return rc;
	rfl_label_parse(label, row->model, &parts);
	row->repeat = parts.run;
	return rfl_ledger_set(&row->label, label, err);
}

/* When, where and by whom: no two attempts share it. */
static enum rfl_rc make_run_id(int rank, struct rfl_ledger_row *row, struct rfl_err *err)
{
	char iso[RFL_TIME_ISO_SIZE], id[64], host[256] = "";
	int64_t now = rfl_clock_ns();
	pid_t pid = getpid();
	uint64_t h;
	enum rfl_rc rc;

	gethostname(host, sizeof(host) - 1);
	h = rfl_hash64(rfl_hash64((uint64_t)rank, host, strlen(host)), &pid, sizeof(pid));
	h = rfl_hash64(h, &now, sizeof(now));
	rfl_clock_iso(iso);
	snprintf(id, sizeof(id), "%.4s%.2s%.2sT%.2s%.2s%.2s-%08" PRIx32, iso, iso + 5, iso + 8,
		 iso + 11, iso + 14, iso + 17, (uint32_t)(h ^ h >> 32));
	rc = rfl_ledger_set(&row->run_id, id, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&row->timestamp_utc, iso, err);
	return rc;
}

/* ---- before and after ---- */

/* Everything that could keep the row from being written, found out before the run and not an hour
 * later. */
static enum rfl_rc check_logs(struct run *run, struct rfl_err *err)
{
	const bool counts = run->config->counters != RFL_DETAIL_OFF;
	const char *dir = run->options->log_dir;
	struct rfl_ledger *ledger = NULL;
	enum rfl_rc rc;
	int lock = -1;

	if (strlen(dir) > sizeof(run->ledger_path) - RFL_LABEL_MAX - 64)
		return rfl_fail(err, RFL_EINVAL, 0, "log folder '%.100s...': its name is too long",
				dir);
	snprintf(run->ledger_path, sizeof(run->ledger_path), "%s/metrics.csv", dir);
	snprintf(run->lock_path, sizeof(run->lock_path), "%s/.lock", dir);
	snprintf(run->counters_path, sizeof(run->counters_path), "%s/counters.csv", dir);
	rc = rfl_ledger_check(run->ledger_path, err);
	if (rc == RFL_OK && counts)
		rc = rfl_counters_check(run->counters_path, err);
	if (rc == RFL_OK)
		rc = load_labels(run, &ledger, err);
	rfl_ledger_free(ledger);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(dir, err);
	if (rc == RFL_OK)
		rc = rfl_file_lock(run->lock_path, &lock, err);
	return rc ? rc : rfl_file_unlock(lock, run->lock_path, err);
}

static enum rfl_rc choose_number(struct run *run, struct rfl_err *err)
{
	struct rfl_ledger *ledger = NULL;
	char time_dir[4096];
	enum rfl_rc rc;

	if (run->config->world.size <= 1 || run->options->label)
		return RFL_OK;
	snprintf(time_dir, sizeof(time_dir), "%s/time", run->options->log_dir);
	rc = load_labels(run, &ledger, err);
	if (rc == RFL_OK)
		rc = rfl_run__world_number(run->config, run->options, run->net, ledger, time_dir,
					   &run->number, err);
	rfl_ledger_free(ledger);
	return rc;
}

static enum rfl_rc prepare(struct run *run, struct rfl_ledger_row *row, struct rfl_err *err)
{
	const struct rfl_run_options *o = run->options;
	char env[49], label[RFL_LABEL_MAX + 1];
	enum rfl_rc rc;

	rc = rfl_run__check(run->config, &run->net, err);
	if (rc == RFL_OK && o->label)
		rc = rfl_label_check(o->label, err);
	if (rc == RFL_OK && o->label && run->config->world.size > 1)
		rc = rfl_run__rank_label(o->label, run->config->world.size - 1, label, err);
	if (rc == RFL_OK)
		rc = rfl_label_env(o->env, o->label, run->config->arch, "cpu", env, err);
	if (rc == RFL_OK)
		rc = check_logs(run, err);
	if (rc == RFL_OK)
		rc = choose_number(run, err);
	if (rc == RFL_OK)
		rc = rfl_machine_new(&run->machine, err);
	if (rc == RFL_OK)
		rc = rfl_run__heard_init(&run->heard, run->config->iters, err);
	run->heard.device = run->config->device; /* until the child says which it is */
	if (rc == RFL_OK)
		rc = make_run_id(run->config->world.rank, row, err);
	return rc;
}

static double memory_limit(const struct rfl_machine *m)
{
	if (m->memory_limit_bytes > 0)
		return (double)m->memory_limit_bytes;
	return (double)m->memory_bytes;
}

static enum rfl_rc write_steps(const struct run *run, const struct rfl_burst *burst,
			       struct rfl_run_result *ret, struct rfl_err *err)
{
	snprintf(ret->steps_file, sizeof(ret->steps_file), "%s/steps/%s.csv", run->options->log_dir,
		 ret->row.run_id);
	return rfl_run__write_steps(ret->steps_file, burst, err);
}

static enum rfl_rc write_own_steps(struct run *run, struct rfl_run_result *ret, struct rfl_err *err)
{
	return run->heard.timed ? write_steps(run, &run->heard.burst, ret, err) : RFL_OK;
}

static enum rfl_rc write_time_log(struct run *run, struct rfl_run_result *ret, struct rfl_err *err)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/time", run->options->log_dir);
	return rfl_run__write_time_log(dir, run->options->command_line, &ret->row, &run->process,
				       ret->time_log, sizeof(ret->time_log), err);
}

static enum rfl_rc write_counters(struct run *run, struct rfl_run_result *ret, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (run->captures.n == 0)
		return RFL_OK;
	rc = rfl_run__write_counters(run->counters_path, &ret->row, &run->captures, err);
	if (rc == RFL_OK)
		snprintf(ret->counters_file, sizeof(ret->counters_file), "%s", run->counters_path);
	return rc;
}

/* One that cannot be written does not keep the others back; the first of them is told. */
static enum rfl_rc write_side_files(struct run *run, struct rfl_run_result *ret,
				    struct rfl_err *err)
{
	static enum rfl_rc (*const files[])(struct run *, struct rfl_run_result *,
					    struct rfl_err *) = {
		write_own_steps,
		write_time_log,
		write_counters,
	};
	enum rfl_rc first = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++) {
		enum rfl_rc rc = files[i](run, ret, err);

		first = first ? first : rc;
	}
	return first;
}

/* On what it ran. That this could not be written costs a run nothing. */
static void record_environment(const struct run *run, const struct rfl_ledger_row *row)
{
	const struct rfl_env_engine engine = {
		.id = row->engine_id,
		.version = row->engine_version,
		.cuda_runtime = row->cuda_runtime,
		.cuda_driver = row->cuda_driver,
		.cudnn = row->cudnn_version,
	};
	const struct rfl_env_spec spec = {
		.env = row->env,
		.log_dir = run->options->log_dir,
		.data_dir = run->config->data.dir,
		.nengines = row->engine_id ? 1 : 0,
		.engines = &engine,
		.root = "",
	};
	struct rfl_env_result result = { .document = NULL };
	struct rfl_err why = RFL_ERR_INIT;

	if (rfl_env_record(&spec, &result, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "%s: the environment is not recorded", why.msg);
	rfl_env_result_fini(&result);
}

static enum rfl_rc identify(const struct run *run, struct rfl_ledger_row *row, struct rfl_err *err)
{
	enum rfl_rc rc;
	char hash[17];

	rfl_run__config_hash(run->config, row, hash);
	rc = rfl_ledger_set(&row->config_hash, hash, err);
	return rc ? rc : rfl_ledger_set(&row->cell, run->options->cell, err);
}

/* Behind the row of rank 0 that of all processes, which is the result. The row of rank 0 is given
 * up. */
static enum rfl_rc record_world(struct run *run, struct rfl_run_result *ret, struct rfl_err *err)
{
	struct rfl_ledger_row all;
	enum rfl_rc rc;

	rfl_ledger_row_init(&all);
	rc = rfl_run__fill_world_row(run->config, run->net, &run->heard, run->machine, &ret->row,
				     &all, err);
	if (rc == RFL_OK)
		rc = make_run_id(run->config->world.size, &all, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&all.timestamp_utc, ret->row.timestamp_utc, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&all.env, ret->row.env, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&all.label, run->world_label, err);
	if (rc == RFL_OK)
		rc = identify(run, &all, err);
	if (rc) {
		rfl_ledger_row_fini(&all);
		return rc;
	}
	all.repeat = ret->row.repeat;
	rfl_ledger_row_fini(&ret->row);
	ret->row = all;
	if (ret->rc == RFL_OK && strcmp(all.status, "ok") != 0)
		ret->rc = RFL_EFAILED;
	if (run->heard.world.known)
		rc = write_steps(run, &run->heard.world.burst, ret, err);
	return rc ? rc : rfl_ledger_append(run->ledger_path, &ret->row, err);
}

/* The row is written last, so that what it points to is there; and it is written even when a side
 * file could not be. The lock is held: a label that was chosen here is nobody else's. */
static enum rfl_rc record(struct run *run, struct rfl_run_result *ret, struct rfl_err *err)
{
	const struct rfl_world *w = &run->config->world;
	struct rfl_ledger_row *row = &ret->row;
	enum rfl_rc rc, side;

	rc = make_label(run, row, err);
	if (rc == RFL_OK)
		rc = identify(run, row, err);
	if (rc)
		return rc;
	side = write_side_files(run, ret, err);
	record_environment(run, row);
	rc = rfl_ledger_append(run->ledger_path, row, err);
	if (rc == RFL_OK && w->size > 1 && w->rank == 0)
		rc = record_world(run, ret, err);
	return side ? side : rc;
}

static enum rfl_rc explain_cancel(const struct run *run, struct rfl_ledger_row *row,
				  struct rfl_err *err)
{
	const struct rfl_run_options *o = run->options;
	const char *why = o->why_cancelled ? o->why_cancelled(o->ctx) : NULL;

	if (!why || !run->process.cancelled || run->heard.timed)
		return RFL_OK;
	return rfl_ledger_set(&row->error_text, why, err);
}

static enum rfl_rc conclude(struct run *run, struct rfl_run_result *ret, struct rfl_err *err)
{
	struct rfl_ledger_row *row = &ret->row;
	enum rfl_rc rc, unlocked;
	int lock = -1;

	rc = rfl_run__fill_row(run->config, run->net, &run->heard, run->machine, row, err);
	if (rc)
		return rc;
	row->requested_batch = run->options->requested_batch > 0 ? run->options->requested_batch
								 : run->config->batch;
	row->host_peak_bytes = isnan(run->heard.host_peak_bytes) ? run->process.max_rss_bytes
								 : run->heard.host_peak_bytes;
	ret->rc = rfl_run__judge(&run->heard, &run->process, memory_limit(run->machine), row, err);
	rc = explain_cancel(run, row, err);
	if (rc)
		return rc;
	rc = rfl_run__fill_counters(run->config, &run->heard, &run->process, &run->captures, row,
				    err);
	if (rc)
		return rc;
	rc = rfl_file_mkdirs(run->options->log_dir, err); /* removed meanwhile, perhaps */
	if (rc == RFL_OK)
		rc = rfl_file_lock(run->lock_path, &lock, err);
	if (rc)
		return rc;
	rc = record(run, ret, err);
	unlocked = rfl_file_unlock(lock, run->lock_path, err);
	return rc ? rc : unlocked;
}

enum rfl_rc rfl_run(const struct rfl_run_config *config, const struct rfl_run_options *options,
		    struct rfl_run_result *ret, struct rfl_err *err)
{
	struct run run = { .config = config, .options = options };
	enum rfl_rc rc;

	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	rfl_captures_init(&run.captures);
	rc = prepare(&run, &ret->row, err);
	if (rc == RFL_OK) {
		if (options->in_process)
			run_here(&run);
		else
			rc = run_child(&run, err);
	}
	if (rc == RFL_OK)
		rc = conclude(&run, ret, err);
	rfl_proc_result_fini(&run.process);
	rfl_run__heard_fini(&run.heard);
	rfl_captures_fini(&run.captures);
	rfl_machine_free(run.machine);
	rfl_net_free(run.net);
	return rc;
}

void rfl_run_result_fini(struct rfl_run_result *r)
{
	rfl_ledger_row_fini(&r->row);
}
