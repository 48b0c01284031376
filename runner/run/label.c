/*
 * label.c - what a run is called: its label, and the id of its row.
 */
#include "runner/run/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

/* The label that was given, or one that is made: into `made`. */
static enum rfl_rc find_label(const struct rfl_run__state *run, const struct rfl_ledger_row *row,
			      char made[RFL_LABEL_MAX + 1], struct rfl_err *err)
{
	const int64_t agreed = run->heard.world.run_number;
	char time_dir[4096];

	if (run->config->label) {
		snprintf(made, RFL_LABEL_MAX + 1, "%s", run->config->label);
		return RFL_OK;
	}
	if (run->config->world.size > 1)
		return rfl_run__world_label(row, agreed > 0 ? agreed : run->number, made, err);
	snprintf(time_dir, sizeof(time_dir), "%s/time", run->config->log_dir);
	return rfl_label_next(row->env, row->model, row->precision, row->micro_batch,
			      run->ledger_path, time_dir, made, err);
}

/* A label of somebody's own may say anything, but what reads as our form should be true: tables of
 * others take precision and batch from it. Of several processes the first tells, and their common
 * batch is as true as that of one. */
static void check_label(const char *label, int nprocesses, const struct rfl_ledger_row *row)
{
	struct rfl_label says;

	rfl_label_parse(label, row->model, &says);
	if (says.precision[0] && !rfl_text_same(says.precision, row->precision))
		rfl_log(RFL_LOG_WARN, "--label %s: says %s, but this run is %s, as its row tells",
			label, says.precision, row->precision);
	if (says.batch >= 0 && says.batch != row->micro_batch && says.batch != row->batch &&
	    says.batch != row->requested_batch && says.batch != row->batch * nprocesses)
		rfl_log(RFL_LOG_WARN,
			"--label %s: says batch %" PRId64 ", but that of this run is %" PRId64
			", as its row tells",
			label, says.batch, row->micro_batch);
}

enum rfl_rc rfl_run__make_label(struct rfl_run__state *run, struct rfl_ledger_row *row,
				struct rfl_err *err)
{
	const struct rfl_run_config *o = run->config;
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
	rc = rfl_ledger_set(&row->label, label, err);
	if (rc == RFL_OK && o->label && run->config->world.rank == 0)
		check_label(o->label, run->config->world.size, row);
	return rc;
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
	rc = rfl_ledger_set(&row->run_id, id, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&row->timestamp_utc, iso, err);
	return rc;
}

enum rfl_rc rfl_run__choose_number(struct rfl_run__state *run, struct rfl_err *err)
{
	char time_dir[4096];

	if (run->config->world.size <= 1 || run->config->label)
		return RFL_OK;
	snprintf(time_dir, sizeof(time_dir), "%s/time", run->config->log_dir);
	return rfl_run__world_number(run->config, run->net, run->ledger_path, time_dir,
				     &run->number, err);
}
