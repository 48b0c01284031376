/*
 * record.c - after a run: the row, the files beside it and the record of the environment,
 * whatever became of the child.
 */
#include "runner/run/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "machine/machine.h"
#include "profile/capture/counters_csv.h"
#include "runner/env/record.h"

static enum rfl_rc write_steps(const struct rfl_run__state *run, const struct rfl_burst *burst,
			       struct rfl_run_result *ret, struct rfl_err *err)
{
	snprintf(ret->steps_file, sizeof(ret->steps_file), "%s/steps/%s.csv", run->config->log_dir,
		 ret->row.run_id);
	return rfl_run__write_steps(ret->steps_file, burst, err);
}

/* One that cannot be written does not keep the others back. */
static void write_side_files(struct rfl_run__state *run, struct rfl_run_result *ret)
{
	char dir[4096];

	if (run->heard.timed)
		(void)write_steps(run, &run->heard.r.burst, ret, &run->trouble);
	snprintf(dir, sizeof(dir), "%s/time", run->config->log_dir);
	(void)rfl_run__write_time_log(dir, run->host->command_line, &ret->row, &run->process,
				      ret->time_log, sizeof(ret->time_log), &run->trouble);
	if (run->captures.n > 0 && rfl_run__write_counters(run->counters_path, &ret->row,
							   &run->captures, &run->trouble) == RFL_OK)
		snprintf(ret->counters_file, sizeof(ret->counters_file), "%s", run->counters_path);
}

/* ---- the row ---- */

/* A run that is ok otherwise says in its row what failed after it was measured. */
static void note_trouble(const struct rfl_run__state *run, struct rfl_ledger_row *row)
{
	if (run->trouble.rc && !row->error_text)
		(void)!rfl_ledger_set(&row->error_text, run->trouble.msg, NULL);
}

static enum rfl_rc append(const struct rfl_run__state *run, struct rfl_run_result *ret,
			  struct rfl_err *err)
{
	const struct rfl_run_host *o = run->host;
	enum rfl_rc rc = rfl_ledger_append(run->ledger_path, &ret->row, err);

	ret->recorded = rc == RFL_OK;
	if (rc)
		rfl_label_forget(run->ledger_path); /* the row may be added by hand */
	if (rc && o->unrecorded)
		o->unrecorded(run->ledger_path, &ret->row, o->ctx);
	return rc;
}

/* On what it ran. That this could not be written costs a run nothing. */
static void record_environment(const struct rfl_run__state *run, const struct rfl_ledger_row *row)
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
		.log_dir = run->config->log_dir,
		.data_dir = run->config->data_dir,
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

static enum rfl_rc identify(const struct rfl_run__state *run, struct rfl_ledger_row *row,
			    struct rfl_err *err)
{
	enum rfl_rc rc;
	char hash[17];

	rfl_run__config_hash(run->config, row, hash);
	rc = rfl_ledger_set(&row->config_hash, hash, err);
	return rc ? rc : rfl_ledger_set(&row->cell, run->host->cell, err);
}

/* After the row of rank 0 that of all processes, which is the result. The row of rank 0 is given
 * up. */
static enum rfl_rc record_world(struct rfl_run__state *run, struct rfl_run_result *ret,
				struct rfl_err *err)
{
	struct rfl_err *trouble = &run->trouble;
	struct rfl_ledger_row all;

	rfl_ledger_row_init(&all);
	(void)rfl_run__fill_world_row(run, &ret->row, &all, trouble);
	(void)rfl_run__make_id(run->config->world.size, &all, trouble);
	(void)!rfl_ledger_set(&all.timestamp_utc, ret->row.timestamp_utc, trouble);
	(void)!rfl_ledger_set(&all.env, ret->row.env, trouble);
	(void)!rfl_ledger_set(&all.label, run->world_label, trouble);
	(void)identify(run, &all, trouble);
	all.repeat = ret->row.repeat;
	rfl_ledger_row_fini(&ret->row);
	ret->row = all;
	if (ret->rc == RFL_OK && (!all.status || strcmp(all.status, "ok") != 0))
		ret->rc = RFL_EFAILED;
	if (run->heard.united)
		(void)write_steps(run, &run->heard.all.burst, ret, trouble);
	note_trouble(run, &ret->row);
	return append(run, ret, err);
}

/* The row is written last, so that what it points to is there; and it is written even when a side
 * file could not be. The lock is held: no other run has a label that was chosen here. */
static enum rfl_rc record(struct rfl_run__state *run, struct rfl_run_result *ret,
			  struct rfl_err *err)
{
	const struct rfl_world *w = &run->config->world;
	struct rfl_ledger_row *row = &ret->row;
	enum rfl_rc rc;

	if (rfl_run__make_label(run, row, &run->trouble) != RFL_OK)
		(void)!rfl_ledger_set(&row->label, row->run_id, NULL); /* no other run has it */
	(void)identify(run, row, &run->trouble);
	write_side_files(run, ret);
	record_environment(run, row);
	note_trouble(run, row);
	rc = append(run, ret, err);
	if (w->size > 1 && w->rank == 0) {
		enum rfl_rc all = record_world(run, ret, err);

		rc = rc ? rc : all;
	}
	return rc;
}

/* Remove what runs that were killed while writing left. */
static void sweep(const char *dir)
{
	static const char *const names[] = { "env.json", "env_info.md", "metrics.csv",
					     "metrics.jsonl", "metrics.labels" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		char *path = rfl_path_join(dir, names[i]);

		if (path)
			rfl_file_sweep(path);
		free(path);
	}
}

enum rfl_rc rfl_run__conclude(struct rfl_run__state *run, struct rfl_run_result *ret,
			      struct rfl_err *err)
{
	struct rfl_ledger_row *row = &ret->row;
	struct rfl_err *trouble = &run->trouble;
	const struct rfl_run_host *host = run->host;
	const struct rfl_machine *m = run->machine;
	const double limit_bytes =
		(double)(m->memory_limit_bytes > 0 ? m->memory_limit_bytes : m->memory_bytes);
	const bool unwatched = trouble->rc != RFL_OK; /* the child's end is not known */
	enum rfl_rc rc;
	int lock = -1;

	(void)rfl_run__fill_row(run->config, run->net, &run->heard.r, run->heard.timed,
				run->machine, row, trouble);
	row->requested_batch = run->host->requested_batch > 0 ? run->host->requested_batch
							      : rfl_run__batch(run->config);
	row->host_peak_bytes = isnan(run->heard.r.host_peak_bytes) ? run->process.max_rss_bytes
								   : run->heard.r.host_peak_bytes;
	ret->rc = rfl_run__judge(&run->heard, &run->process, limit_bytes, row, trouble);
	if (run->process.cancelled && !run->heard.timed && host->why_cancelled) {
		const char *why = host->why_cancelled(host->ctx);

		if (why)
			(void)!rfl_ledger_set(&row->error_text, why, trouble);
	}
	if (unwatched)
		(void)!rfl_ledger_set(&row->error_text, trouble->msg, NULL);
	(void)rfl_run__fill_counters(run->config, &run->heard, &run->process, &run->captures, row,
				     trouble);
	/* The folder was removed meanwhile, perhaps. Without the lock the label may be another
	 * run's as well, which is better than no row. */
	if (rfl_file_mkdirs(run->config->log_dir, trouble) == RFL_OK)
		(void)!rfl_file_lock(run->lock_path, &lock, trouble);
	rc = record(run, ret, err);
	sweep(run->config->log_dir);
	(void)!rfl_file_unlock(lock, run->lock_path, trouble);
	if (rc && trouble->rc)
		rfl_log(RFL_LOG_WARN, "%s", trouble->msg);
	else if (trouble->rc)
		rc = rfl_fail(err, trouble->rc, trouble->native, "%s", trouble->msg);
	return rc;
}
