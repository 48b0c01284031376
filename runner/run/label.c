/*
 * label.c - what a run is called: its label, and the id of its row.
 */
#include "runner/run/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

/* ---- several processes ---- */

static enum rfl_rc number_in(const char *env, const struct rfl_run_config *c,
			     const struct rfl_net *net, const char *ledger, const char *time_dir,
			     int64_t *most, struct rfl_err *err)
{
	char stem[RFL_LABEL_STEM];
	enum rfl_rc rc = rfl_label_stem(env, net->model, rfl_precision_names[c->precision],
					c->micro_batch, c->world.size, stem, err);
	int64_t n = 0;

	if (rc == RFL_OK)
		rc = rfl_label_number(stem, ledger, time_dir, &n, err);
	*most = n > *most ? n : *most;
	return rc;
}

static enum rfl_rc world_label(const struct rfl_ledger_row *row, int64_t number,
			       char ret[RFL_LABEL_MAX + 1], struct rfl_err *err)
{
	char stem[RFL_LABEL_STEM];
	enum rfl_rc rc = rfl_label_stem(row->env, row->model, row->precision, row->micro_batch,
					(int)row->world_size, stem, err);

	if (rc == RFL_OK)
		snprintf(ret, RFL_LABEL_MAX + 1, "%s%" PRId64, stem, number);
	return rc;
}

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

/* ---- labels ---- */

/* The label that was given, or one that is made: into `made`. */
static enum rfl_rc find_label(const struct rfl_run__state *run, const struct rfl_ledger_row *row,
			      char made[RFL_LABEL_MAX + 1], struct rfl_err *err)
{
	const int64_t agreed = run->heard.run_number;
	char time_dir[4096];

	if (run->config->label) {
		snprintf(made, RFL_LABEL_MAX + 1, "%s", run->config->label);
		return RFL_OK;
	}
	if (run->config->world.size > 1)
		return world_label(row, agreed > 0 ? agreed : run->number, made, err);
	snprintf(time_dir, sizeof(time_dir), "%s/time", run->config->log_dir);
	return rfl_label_next(row->env, row->model, row->precision, row->micro_batch,
			      run->ledger_path, time_dir, made, err);
}

/* A label of the user's own may say anything, but what reads as our form should be true: tables of
 * others take precision and batch from it. Of several processes the first reports, and their common
 * batch is as true as that of one. */
static void check_label(const char *label, int nprocesses, const struct rfl_ledger_row *row)
{
	struct rfl_label says;

	rfl_label_parse(label, row->model, &says);
	if (says.precision[0] && !rfl_text_same(says.precision, row->precision))
		rfl_log(RFL_LOG_WARN, "--label %s: says %s, but this run is %s, as its row says",
			label, says.precision, row->precision);
	if (says.batch >= 0 && says.batch != row->micro_batch && says.batch != row->batch &&
	    says.batch != row->requested_batch && says.batch != row->batch * nprocesses)
		rfl_log(RFL_LOG_WARN,
			"--label %s: says batch %" PRId64 ", but that of this run is %" PRId64
			", as its row says",
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

/* The environment may still depend on the backend that the child chooses: then a number that is
 * free in all of them. */
enum rfl_rc rfl_run__choose_number(struct rfl_run__state *run, struct rfl_err *err)
{
	const struct rfl_run_config *c = run->config;
	char time_dir[4096];
	enum rfl_rc rc = RFL_OK;

	if (c->world.size <= 1 || c->label)
		return RFL_OK;
	snprintf(time_dir, sizeof(time_dir), "%s/time", c->log_dir);
	run->number = 1;
	for (size_t i = 0; rc == RFL_OK && rfl_device_names[i]; i++) {
		rc = number_in(c->env ? c->env : rfl_device_names[i], c, run->net, run->ledger_path,
			       time_dir, &run->number, err);
		if (c->env)
			break;
	}
	return rc;
}
