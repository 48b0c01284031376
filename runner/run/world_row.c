/*
 * world_row.c - the row of several processes together, and the labels of each.
 */
#include "runner/run/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the row ---- */

/* What all have measured together, in the form of what one has. */
static void unite_heard(const struct rfl_run__heard *own, struct rfl_run__heard *all)
{
	const struct rfl_run__share *s = &own->world.share;

	*all = *own; /* borrows what it owns */
	all->timed = own->timed && own->world.known;
	if (!all->timed)
		return;
	all->burst = own->world.burst;
	all->memory = (struct rfl_engine_memory){ s->allocated_peak_bytes, s->reserved_peak_bytes };
	all->host_peak_bytes = s->host_peak_bytes;
	all->skipped = (int64_t)s->skipped;
	all->gpu.sm_clock_mean_hz = s->sm_clock_mean_hz;
	all->gpu.sm_clock_min_hz = s->sm_clock_min_hz;
	all->gpu.memory_clock_mean_hz = s->memory_clock_mean_hz;
	all->gpu.power_mean_w = s->power_mean_w;
	all->gpu.energy_j = s->energy_j;
	all->gpu.temperature_max_c = s->temperature_max_c;
	all->gpu.memory_used_peak_bytes = s->memory_used_peak_bytes;
	if (own->watched && !isnan(s->throttle_bits))
		rfl_throttle_words((uint64_t)s->throttle_bits, all->throttle,
				   sizeof(all->throttle));
}

static enum rfl_rc fill_status(const struct rfl_run__heard *heard, const struct rfl_ledger_row *own,
			       struct rfl_ledger_row *row, struct rfl_err *err)
{
	const bool united = heard->timed && heard->world.known;
	const char *status = own->status, *text = own->error_text;
	enum rfl_rc rc;

	row->error_code = own->error_code;
	if (!united && heard->timed) {
		status = "failed";
		row->error_code = 1;
		text = heard->failed ? heard->text
				     : "rank 0 was measured, but what the others measured did not "
				       "come";
	} else if (united && !isfinite(heard->world.share.loss_last)) {
		status = "nan";
		text = "the loss of a process is not a finite number at the last step: a smaller "
		       "--lr may help";
	}
	rc = rfl_ledger_set(&row->status, status, err);
	return rc ? rc : rfl_ledger_set(&row->error_text, text, err);
}

enum rfl_rc rfl_run__fill_world_row(const struct rfl_run_config *config, const struct rfl_net *net,
				    const struct rfl_run__heard *heard,
				    const struct rfl_machine *machine,
				    const struct rfl_ledger_row *own, struct rfl_ledger_row *row,
				    struct rfl_err *err)
{
	struct rfl_run_config all = *config;
	struct rfl_run__heard united;
	enum rfl_rc rc, status;

	all.micro_batch *= config->world.size;
	all.world.rank = all.world.local_rank = -1;
	unite_heard(heard, &united);
	rc = rfl_run__fill_row(&all, net, &united, machine, row, err);
	row->micro_batch = own->micro_batch; /* of one process */
	row->requested_batch = own->requested_batch * config->world.size;
	row->host_peak_bytes = united.host_peak_bytes;
	status = fill_status(heard, own, row, err);
	return rc ? rc : status;
}

/* ---- labels ---- */

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

/* The environment may still depend on the backend that the child chooses: then a number that is
 * free in all of them. */
enum rfl_rc rfl_run__world_number(const struct rfl_run_config *config, const struct rfl_net *net,
				  const char *ledger, const char *time_dir, int64_t *ret,
				  struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	*ret = 1;
	if (config->env)
		return number_in(config->env, config, net, ledger, time_dir, ret, err);
	for (size_t i = 0; rfl_device_names[i] && rc == RFL_OK; i++)
		rc = number_in(rfl_device_names[i], config, net, ledger, time_dir, ret, err);
	return rc;
}

enum rfl_rc rfl_run__world_label(const struct rfl_ledger_row *row, int64_t number,
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
