/*
 * run_record.c - after a run: the row, the files beside it and the record of the environment,
 * whatever became of the child.
 */
#include "runner/run_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "machine/machine.h"
#include "profile/counters_csv.h"
#include "runner/env_record.h"

static double memory_limit(const struct rfl_machine *m)
{
	if (m->memory_limit_bytes > 0)
		return (double)m->memory_limit_bytes;
	return (double)m->memory_bytes;
}

static enum rfl_rc write_steps(const struct rfl_run__state *run, const struct rfl_burst *burst,
			       struct rfl_run_result *ret, struct rfl_err *err)
{
	snprintf(ret->steps_file, sizeof(ret->steps_file), "%s/steps/%s.csv", run->options->log_dir,
		 ret->row.run_id);
	return rfl_run__write_steps(ret->steps_file, burst, err);
}

static enum rfl_rc write_own_steps(struct rfl_run__state *run, struct rfl_run_result *ret,
				   struct rfl_err *err)
{
	return run->heard.timed ? write_steps(run, &run->heard.burst, ret, err) : RFL_OK;
}

static enum rfl_rc write_time_log(struct rfl_run__state *run, struct rfl_run_result *ret,
				  struct rfl_err *err)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/time", run->options->log_dir);
	return rfl_run__write_time_log(dir, run->options->command_line, &ret->row, &run->process,
				       ret->time_log, sizeof(ret->time_log), err);
}

static enum rfl_rc write_counters(struct rfl_run__state *run, struct rfl_run_result *ret,
				  struct rfl_err *err)
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
static enum rfl_rc write_side_files(struct rfl_run__state *run, struct rfl_run_result *ret,
				    struct rfl_err *err)
{
	static enum rfl_rc (*const files[])(struct rfl_run__state *, struct rfl_run_result *,
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

static enum rfl_rc identify(const struct rfl_run__state *run, struct rfl_ledger_row *row,
			    struct rfl_err *err)
{
	enum rfl_rc rc;
	char hash[17];

	rfl_run__config_hash(run->config, row, hash);
	rc = rfl_ledger_set(&row->config_hash, hash, err);
	return rc ? rc : rfl_ledger_set(&row->cell, run->options->cell, err);
}

/* Behind the row of rank 0 that of all processes, which is the result. The row of rank 0 is given
 * up. */
static enum rfl_rc record_world(struct rfl_run__state *run, struct rfl_run_result *ret,
				struct rfl_err *err)
{
	struct rfl_ledger_row all;
	enum rfl_rc rc;

	rfl_ledger_row_init(&all);
	rc = rfl_run__fill_world_row(run->config, run->net, &run->heard, run->machine, &ret->row,
				     &all, err);
	if (rc == RFL_OK)
		rc = rfl_run__make_id(run->config->world.size, &all, err);
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
static enum rfl_rc record(struct rfl_run__state *run, struct rfl_run_result *ret,
			  struct rfl_err *err)
{
	const struct rfl_world *w = &run->config->world;
	struct rfl_ledger_row *row = &ret->row;
	enum rfl_rc rc, side;

	rc = rfl_run__make_label(run, row, err);
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

static enum rfl_rc explain_cancel(const struct rfl_run__state *run, struct rfl_ledger_row *row,
				  struct rfl_err *err)
{
	const struct rfl_run_options *o = run->options;
	const char *why = o->why_cancelled ? o->why_cancelled(o->ctx) : NULL;

	if (!why || !run->process.cancelled || run->heard.timed)
		return RFL_OK;
	return rfl_ledger_set(&row->error_text, why, err);
}

enum rfl_rc rfl_run__conclude(struct rfl_run__state *run, struct rfl_run_result *ret,
			      struct rfl_err *err)
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
