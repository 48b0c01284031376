/*
 * record.c - after a run, whatever became of the child: its verdict and its name, the row, the
 * files beside it and the record of the environment.
 */
#include "runner/run/parts.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "machine/machine.h"
#include "profile/capture.h"
#include "runner/env/record.h"

#define NEAR_THE_LIMIT 0.9 /* of the memory limit: a SIGKILL there is the kernel's */

/* ---- the verdict on how a run ended ---- */

static const char *status_of_failure(enum rfl_rc rc)
{
	switch (rc) {
	case RFL_EDEVMEM:
	case RFL_ENOMEM:
		return "oom";
	case RFL_EUNSUPPORTED:
	case RFL_EUNAVAILABLE:
	case RFL_ENOTFOUND:
		return "unsupported";
	case RFL_EINTR:
		return "interrupted";
	case RFL_ETIMEOUT: /* another process did not come */
		return "timeout";
	default:
		return "failed";
	}
}

/* Decide and set status, error_code (signal or exit code; -1 for none) and error_text. @return why
 * it is not ok */
static enum rfl_rc judge(const struct rfl_run__heard *h, const struct rfl_proc_result *p,
			 const struct rfl_machine *m, struct rfl_ledger_row *row,
			 struct rfl_err *err)
{
	const double limit =
		(double)(m->memory_limit_bytes > 0 ? m->memory_limit_bytes : m->memory_bytes);
	const char *status = "crash";
	char text[1200] = "", peak[RFL_NUM_MAX], most[RFL_NUM_MAX];
	enum rfl_rc why = RFL_EFAILED, rc;
	int64_t kills;

	row->error_code = -1;
	if (h->timed) { /* measured: what came after does not matter */
		const bool finite = isfinite(h->r.burst.loss_last);

		status = finite ? "ok" : "nan";
		why = finite ? RFL_OK : RFL_EFAILED;
		if (!finite)
			snprintf(text, sizeof(text),
				 "the loss is not a finite number at the last step: a smaller --lr "
				 "may help");
	} else if (p->cancelled) {
		status = "interrupted";
		why = RFL_EINTR;
		snprintf(text, sizeof(text), "stopped by a signal to the command");
	} else if (p->timed_out) {
		status = "timeout";
		why = RFL_ETIMEOUT;
		snprintf(text, sizeof(text), "not done after %.3g s", p->wall_s);
	} else if (h->failed) {
		status = status_of_failure(h->rc);
		why = h->rc;
		row->error_code = 1;
		snprintf(text, sizeof(text), "%s", h->text);
	} else if (p->exited) {
		row->error_code = p->exit_code;
		snprintf(text, sizeof(text), "ended with exit code %d and no result", p->exit_code);
	} else {
		row->error_code = p->signal;
		snprintf(text, sizeof(text), "killed by signal %d (%s) %s", p->signal,
			 strsignal(p->signal),
			 h->ready ? "after it was set up" : "while it was being set up");
		if (p->signal == SIGINT || p->signal == SIGTERM || p->signal == SIGHUP) {
			status = "interrupted";
			why = RFL_EINTR;
		}
		/* A SIGKILL at the limit, or while the kernel says that it ended a process: others
		 * share the memory, so the child need not have had much of it. */
		kills = rfl_machine_oom_kills("");
		if (p->signal == SIGKILL &&
		    ((h->oom_kills >= 0 && kills > h->oom_kills) ||
		     (limit > 0 && p->max_rss_bytes > NEAR_THE_LIMIT * limit))) {
			status = "oom";
			snprintf(text, sizeof(text),
				 "killed by the system with %s in use of a limit of %s: a smaller "
				 "batch needs less",
				 rfl_num_bytes(p->max_rss_bytes, peak, sizeof(peak)),
				 rfl_num_bytes(limit, most, sizeof(most)));
		}
	}
	if ((rc = rfl_field_set(&row->status, status, err)) != RFL_OK ||
	    (rc = rfl_field_set(&row->error_text, text, err)) != RFL_OK)
		return rc;
	return why;
}

/* ---- what it is called ---- */

enum rfl_rc rfl_run__rank_label(const char *label, int rank, char ret[RFL_LABEL_MAX + 1],
				struct rfl_err *err)
{
	const int len = snprintf(ret, RFL_LABEL_MAX + 1, "%s_rank%d", label, rank);

	if (len > RFL_LABEL_MAX)
		return rfl_fail(err, RFL_EINVAL, 0,
				"label '%s': the label of rank %d would have %d characters, and "
				"the most is %d",
				label, rank, len, RFL_LABEL_MAX);
	return RFL_OK;
}

/* Set env, label and repeat of a row. The ledger's lock is held: a label that is made here is no
 * other run's. */
static enum rfl_rc make_label(struct rfl_run__state *run, struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	const struct rfl_run_config *c = run->config;
	const int64_t agreed = run->heard.run_number;
	const char *backend = row->backend ? row->backend : "auto";
	char env[49], label[RFL_LABEL_MAX + 1], stem[RFL_LABEL_STEM], time_dir[4096];
	struct rfl_label parts;
	enum rfl_rc rc;

	if ((rc = rfl_label_env(c->env, c->label, row->model, backend, env, err)) != RFL_OK ||
	    (rc = rfl_field_set(&row->env, env, err)) != RFL_OK)
		return rc;
	if (c->label) {
		snprintf(label, sizeof(label), "%s", c->label);
	} else if (c->world.size > 1) {
		rc = rfl_label_stem(row->env, row->model, row->precision, row->micro_batch,
				    (int)row->world_size, stem, err);
		snprintf(label, sizeof(label), "%s%" PRId64, rc ? "" : stem,
			 agreed > 0 ? agreed : run->number);
	} else {
		snprintf(time_dir, sizeof(time_dir), "%s/time", c->log_dir);
		rc = rfl_label_next(row->env, row->model, row->precision, row->micro_batch,
				    run->ledger_path, time_dir, label, err);
	}
	if (rc == RFL_OK && c->world.size > 1) {
		memcpy(run->world_label, label, sizeof(label));
		rc = rfl_run__rank_label(run->world_label, c->world.rank, label, err);
	}
	if (rc)
		return rc;
	rfl_label_parse(label, row->model, &parts);
	row->repeat = parts.run;
	rc = rfl_field_set(&row->label, label, err);
	if (rc != RFL_OK || !c->label || c->world.rank > 0)
		return rc;

	/* A label of the user's own may say anything, but what reads as our form should be true:
	 * tables of others take precision and batch from it. Of several processes the first
	 * reports, and their common batch is as true as that of one. */
	rfl_label_parse(c->label, row->model, &parts);
	if (parts.precision[0] && !rfl_text_same(parts.precision, row->precision))
		rfl_log(RFL_LOG_WARN, "--label %s: says %s, but this run is %s, as its row says",
			c->label, parts.precision, row->precision);
	if (parts.batch >= 0 && parts.batch != row->micro_batch && parts.batch != row->batch &&
	    parts.batch != row->requested_batch && parts.batch != row->batch * c->world.size)
		rfl_log(RFL_LOG_WARN,
			"--label %s: says batch %" PRId64 ", but that of this run is %" PRId64
			", as its row says",
			c->label, parts.batch, row->micro_batch);
	return RFL_OK;
}

enum rfl_rc rfl_run__make_id(int rank, struct rfl_ledger_row *row, struct rfl_err *err)
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
	rc = rfl_field_set(&row->run_id, id, err);
	if (rc == RFL_OK)
		rc = rfl_field_set(&row->timestamp_utc, iso, err);
	return rc;
}

/* ---- the row and the files beside it ---- */

static enum rfl_rc write_steps(const struct rfl_run__state *run, const struct rfl_burst *burst,
			       struct rfl_run_result *ret, struct rfl_err *err)
{
	snprintf(ret->steps_file, sizeof(ret->steps_file), "%s/steps/%s.csv", run->config->log_dir,
		 ret->row.run_id);
	return rfl_run__write_steps(ret->steps_file, burst, err);
}

/* A run that is ok otherwise says in its row what failed after it was measured. */
static void note_trouble(const struct rfl_run__state *run, struct rfl_ledger_row *row)
{
	if (run->trouble.rc && !row->error_text)
		(void)!rfl_field_set(&row->error_text, run->trouble.msg, NULL);
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

static enum rfl_rc identify(const struct rfl_run__state *run, struct rfl_ledger_row *row,
			    struct rfl_err *err)
{
	enum rfl_rc rc;
	char hash[17];

	rfl_run__config_hash(run->config, row, hash);
	rc = rfl_field_set(&row->config_hash, hash, err);
	return rc ? rc : rfl_field_set(&row->cell, run->host->cell, err);
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
	(void)!rfl_field_set(&all.timestamp_utc, ret->row.timestamp_utc, trouble);
	(void)!rfl_field_set(&all.env, ret->row.env, trouble);
	(void)!rfl_field_set(&all.label, run->world_label, trouble);
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
	const struct rfl_run_config *c = run->config;
	struct rfl_ledger_row *row = &ret->row;
	struct rfl_err *trouble = &run->trouble, why = RFL_ERR_INIT;
	struct rfl_env_result environment = { .document = NULL };
	enum rfl_rc rc, all;

	if (make_label(run, row, trouble) != RFL_OK)
		(void)!rfl_field_set(&row->label, row->run_id, NULL); /* no other run has it */
	(void)identify(run, row, trouble);

	/* a file that cannot be written does not keep the others back */
	if (run->heard.timed)
		(void)write_steps(run, &run->heard.r.burst, ret, trouble);
	(void)rfl_run__write_time_log(run, ret, trouble);
	if (run->captures.n > 0 && rfl_run__write_counters(run, row, trouble) == RFL_OK)
		snprintf(ret->counters_file, sizeof(ret->counters_file), "%s", run->counters_path);

	/* on what it ran; that this could not be written costs a run nothing */
	const struct rfl_env_engine engine = {
		.id = row->engine_id,
		.version = row->engine_version,
		.cuda_runtime = row->cuda_runtime,
		.cuda_driver = row->cuda_driver,
		.cudnn = row->cudnn_version,
	};
	const struct rfl_env_spec spec = {
		.env = row->env,
		.log_dir = c->log_dir,
		.data_dir = c->data_dir,
		.nengines = row->engine_id ? 1 : 0,
		.engines = &engine,
		.root = "",
	};

	if (rfl_env_record(&spec, &environment, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "%s: the environment is not recorded", why.msg);
	rfl_env_result_fini(&environment);

	note_trouble(run, row);
	rc = append(run, ret, err);
	if (c->world.size > 1 && c->world.rank == 0) {
		all = record_world(run, ret, err);
		rc = rc ? rc : all;
	}
	return rc;
}

enum rfl_rc rfl_run__conclude(struct rfl_run__state *run, struct rfl_run_result *ret,
			      struct rfl_err *err)
{
	static const char *const swept[] = { "env.json", "env_info.md", "metrics.csv",
					     "metrics.jsonl", "metrics.labels" };
	const struct rfl_run_config *c = run->config;
	const struct rfl_run_host *host = run->host;
	const struct rfl_run__heard *heard = &run->heard;
	struct rfl_ledger_row *row = &ret->row;
	struct rfl_err *trouble = &run->trouble;
	const bool unwatched = trouble->rc != RFL_OK; /* the child's end is not known */
	const char *why = NULL;
	enum rfl_rc rc;
	int lock = -1;

	(void)rfl_run__fill_row(c, run->net, &heard->r, heard->timed, run->machine, row, trouble);
	row->requested_batch =
		host->requested_batch > 0 ? host->requested_batch : rfl_run__batch(c);
	row->host_peak_bytes = isnan(heard->r.host_peak_bytes) ? run->process.max_rss_bytes
							       : heard->r.host_peak_bytes;
	ret->rc = judge(heard, &run->process, run->machine, row, trouble);
	if (run->process.cancelled && !heard->timed && host->why_cancelled)
		why = host->why_cancelled(host->ctx);
	if (unwatched)
		why = trouble->msg;
	if (why)
		(void)!rfl_field_set(&row->error_text, why, unwatched ? NULL : trouble);
	(void)rfl_run__fill_counters(run, row, trouble);

	/* The folder was removed meanwhile, perhaps. Without the lock the label may be another
	 * run's as well, which is better than no row. */
	if (rfl_file_mkdirs(c->log_dir, trouble) == RFL_OK)
		(void)!rfl_file_lock(run->lock_path, &lock, trouble);
	rc = record(run, ret, err);
	/* remove what runs that were killed while writing left */
	for (size_t i = 0; i < RFL_ARRAY_LEN(swept); i++) {
		char *path = rfl_path_join(c->log_dir, swept[i]);

		if (path)
			rfl_file_sweep(path);
		free(path);
	}
	(void)!rfl_file_unlock(lock, run->lock_path, trouble);
	if (rc && trouble->rc)
		rfl_log(RFL_LOG_WARN, "%s", trouble->msg);
	else if (trouble->rc)
		rc = rfl_fail(err, trouble->rc, trouble->native, "%s", trouble->msg);
	return rc;
}
