/*
 * row.c - what a run says in the ledger: what was asked for, what it ran on, counts of what
 * ran, and statistics of its steps.
 */
#include "runner/run/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "complexity/count.h"
#include "ledger/repeats/run_stats.h"
#include "machine/machine.h"
#include "rfl_config.h"

/* ---- statistics ---- */

/* One member of every step as milliseconds. */
static void column(const struct rfl_burst *b, size_t offset, double *out)
{
	for (int64_t i = 0; i < b->nsteps; i++) {
		const char *step = (const char *)&b->steps[i];

		out[i] = *(const double *)(const void *)(step + offset) * 1e3;
	}
}

static enum rfl_rc fill_phases(const struct rfl_burst *b, double *scratch,
			       struct rfl_ledger_row *row, struct rfl_err *err)
{
	const struct {
		size_t offset;
		double *mean, *std;
	} phases[] = {
		{ offsetof(struct rfl_burst_step, forward_s), &row->fwd_ms_mean, &row->fwd_ms_std },
		{ offsetof(struct rfl_burst_step, backward_s), &row->bwd_ms_mean,
		  &row->bwd_ms_std },
		{ offsetof(struct rfl_burst_step, optimizer_s), &row->opt_ms_mean,
		  &row->opt_ms_std },
		{ offsetof(struct rfl_burst_step, data_wait_s), &row->data_wait_ms_mean,
		  &row->data_wait_ms_std },
		{ offsetof(struct rfl_burst_step, upload_s), &row->upload_ms_mean,
		  &row->upload_ms_std },
	};
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(phases) && rc == RFL_OK; i++) {
		column(b, phases[i].offset, scratch);
		rc = rfl_run_mean_std(scratch, (size_t)b->nsteps, phases[i].mean, phases[i].std,
				      err);
	}
	return rc;
}

/* Of the window, to waiting for data. A loader beside a GPU delays the work only where the
 * GPU has a gap. */
static double lost_s(const struct rfl_burst *b, const struct rfl_ledger_row *row)
{
	const double waited_s = row->data_wait_ms_mean * 1e-3 * (double)b->nsteps;

	return isnan(b->launch_gap) ? waited_s : fmin(waited_s, b->launch_gap * b->wall_s);
}

static enum rfl_rc fill_steps(const struct rfl_run__results *h, bool throttled, double *ms,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	struct rfl_run_signs signs = { .throttled = throttled,
				       .until_missed = h->burst.until_missed };
	char flags[RFL_RUN_FLAGS_MAX];
	struct rfl_run_stats s;
	enum rfl_rc rc;

	column(&h->burst, offsetof(struct rfl_burst_step, total_s), ms);
	rc = rfl_run_stats_of(ms, (size_t)h->burst.nsteps, &s, err);
	if (rc == RFL_OK)
		rc = fill_phases(&h->burst, ms, row, err);
	if (rc)
		return rc;
	row->step_ms_mean = s.time.mean;
	row->step_ms_std = s.time.std;
	row->step_ms_median = s.time.median;
	row->step_ms_mad = s.time.mad;
	row->step_ms_p10 = s.time.p10;
	row->step_ms_p90 = s.time.p90;
	row->step_ms_min = s.time.min;
	row->step_ms_max = s.time.max;
	row->outliers = s.outliers;
	row->lag1 = s.lag1;
	row->drift = s.drift;
	signs.data_wait_mean = lost_s(&h->burst, row) * 1e3 / (double)h->burst.nsteps;
	return rfl_ledger_set(&row->flags, rfl_run_flags(&s, &signs, flags), err);
}

/* The losses of all steps, bit by bit; where only the last is read, of that one. */
static enum rfl_rc fill_losses(const struct rfl_burst *b, struct rfl_ledger_row *row,
			       struct rfl_err *err)
{
	char text[17];
	uint64_t hash = 0;

	for (int64_t i = 0; i < b->nsteps; i++)
		if (!isnan(b->steps[i].loss))
			hash = rfl_hash64(hash, &b->steps[i].loss, sizeof(b->steps[i].loss));
	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	return rfl_ledger_set(&row->loss_hash, text, err);
}

static void fill_rates(const struct rfl_run__results *h, struct rfl_ledger_row *row)
{
	const struct rfl_burst *b = &h->burst;
	const double samples = (double)row->batch * (double)b->nsteps;

	row->samples_per_s = samples / b->wall_s;
	row->compute_samples_per_s = samples / (b->wall_s - lost_s(b, row));
	if (row->context_length > 0)
		row->tokens_per_s = row->samples_per_s * (double)row->context_length;
	row->tflops = (double)row->model_flops_per_step / (row->step_ms_median * 1e-3) * 1e-12;
	row->ttfb_ms = b->ttfb_s * 1e3;
	if (b->until_steps > 0) {
		row->until_steps = b->until_steps;
		row->until_step_ms_mean = b->until_step_s * 1e3;
	}
}

static enum rfl_rc fill_timing(const struct rfl_run__results *h, struct rfl_ledger_row *row,
			       struct rfl_err *err)
{
	const struct rfl_burst *b = &h->burst;
	char throttle[256] = "";
	double *ms = NULL;
	enum rfl_rc rc;

	if (!rfl_run__has_all_steps(b))
		return rfl_fail(err, RFL_EFORMAT, 0, "the run's child left out steps");
	ms = rfl_alloc_array((size_t)b->nsteps, sizeof(*ms));
	if (!ms)
		return rfl_fail(err, RFL_ENOMEM, 0, "%lld steps: out of memory",
				(long long)b->nsteps);
	if (h->watched)
		rfl_throttle_words(h->gpu.throttle_bits, throttle, sizeof(throttle));
	rc = fill_steps(h, throttle[0] != '\0', ms, row, err);
	free(ms);
	if (rc == RFL_OK)
		rc = fill_losses(b, row, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&row->throttle, throttle, err);
	if (rc)
		return rc;
	fill_rates(h, row);
	if (h->gpu.energy_j >
	    0) { /* a counter that has not moved says nothing of so short a time */
		row->energy_j_per_step = h->gpu.energy_j / (double)row->iters;
		row->samples_per_j = (double)row->batch / row->energy_j_per_step;
	}
	if (row->augment != -1)
		row->decode_errors = h->skipped;
	if (!isnan(h->queue_min))
		row->queue_min = (int64_t)h->queue_min;
	return RFL_OK;
}

/* ---- what ran ---- */

enum rfl_rc rfl_run__flops(const struct rfl_run_config *c, int64_t batch, const struct rfl_net *net,
			   int64_t *ret, struct rfl_err *err)
{
	const struct rfl_count_options options = {
		.batch = batch,
		.training = c->mode != RFL_RUN_FWD,
		.dtype = RFL_DTYPE_F32,
		.optimizer = RFL_OPT_MOMENTUM,
	};
	struct rfl_count *count = NULL;
	enum rfl_rc rc = rfl_count_net(net, &options, &count, err);

	if (rc)
		return rc;
	*ret = c->mode == RFL_RUN_FWD ? rfl_count_forward_flops(count)
				      : rfl_count_training_flops(count);
	rfl_count_free(count);
	return RFL_OK;
}

/* What is not a fact of the configuration itself, or as the run had it. */
static void fill_numbers(const struct rfl_run_config *c, const struct rfl_net *net,
			 const struct rfl_run__results *h, bool timed, struct rfl_ledger_row *row)
{
	const struct rfl_shape *input = &net->nodes[0].shape;
	const bool cuda = h->device == RFL_DEVICE_CUDA;

	row->schema_version = RFL_LEDGER_SCHEMA;
	row->world_size = c->world.size > 1 ? c->world.size : 1;
	row->rank = c->world.rank;
	row->local_rank = c->world.local_rank;
	if (h->on.memory_bytes >= 0)
		row->device_memory_bytes = (double)h->on.memory_bytes;
	row->params = rfl_net_param_count(net);
	row->batch = rfl_run__batch(c);
	if (net->nodes[0].dtype == RFL_DTYPE_I64) { /* reads tokens */
		row->context_length = input->dim[0];
		row->vocab = net->classes;
	} else {
		row->img_size = input->dim[1];
		row->classes = net->classes;
	}
	if (c->data_dir)
		row->augment = !c->no_augment;
	row->cudnn_benchmark = cuda ? h->cudnn_benchmark : -1;
	row->cuda_graph = cuda ? h->cuda_graph : -1;
	row->sync_each_step = timed && h->device != RFL_DEVICE_CPU ? h->burst.synced : -1;
}

/* As they ran; of a run that did not come so far, as they were asked for, which auto does not say.
 */
static const char *kernels_of(const struct rfl_run_config *c, const struct rfl_run__results *h)
{
	if (c->mode != RFL_RUN_TRAIN)
		return NULL;
	if (h->optimizer_kernels[0])
		return h->optimizer_kernels;
	return c->optimizer_kernels == RFL_KERNELS_AUTO
		       ? NULL
		       : rfl_optimizer_kernels_names[c->optimizer_kernels];
}

/* What exchanges gradients: chosen by the device. */
static const char *interconnect_of(const struct rfl_run_config *c, const struct rfl_run__results *h)
{
	if (c->world.size <= 1)
		return NULL;
	if (h->device < 0)
		return strcmp(c->world.interconnect, "auto") == 0 ? NULL : c->world.interconnect;
	return h->device == RFL_DEVICE_CUDA ? "nccl" : "gloo";
}

static const char *autocast_of(const struct rfl_run_config *c, const struct rfl_run__results *h)
{
	enum rfl_cast cast;

	if (h->device < 0)
		return NULL;
	cast = rfl_precision_cast((enum rfl_precision)c->precision, (enum rfl_device)h->device);
	return cast == RFL_CAST_OFF ? NULL : rfl_cast_names[cast];
}

static enum rfl_rc fill_texts(const struct rfl_run_config *c, const struct rfl_net *net,
			      const struct rfl_run__results *h, const struct rfl_machine *machine,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	const bool on_cpu = h->device == RFL_DEVICE_CPU;
	const struct {
		char **field;
		const char *text;
	} texts[] = {
		{ &row->backend, h->device >= 0 ? rfl_device_names[h->device] : NULL },
		{ &row->device_name, on_cpu ? machine->cpu_name : h->on.name },
		{ &row->model, net->model },
		{ &row->autocast, autocast_of(c, h) },
		{ &row->layout, rfl_layout_names[rfl_run__layout(c)] },
		{ &row->optimizer_kernels, kernels_of(c, h) },
		{ &row->data_mode, rfl_data_kind_names[c->data_kind] },
		{ &row->launcher, c->world.launcher },
		{ &row->interconnect, interconnect_of(c, h) },
		{ &row->host, machine->host },
		{ &row->kernel, machine->kernel },
		{ &row->version, RFL_VERSION },
	};
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts) && rc == RFL_OK; i++) {
		const char *text = texts[i].text;

		rc = rfl_ledger_set(texts[i].field, text && *text ? text : NULL, err);
	}
	return rc;
}

enum rfl_rc rfl_run__fill_row(const struct rfl_run_config *config, const struct rfl_net *net,
			      const struct rfl_run__results *h, bool timed,
			      const struct rfl_machine *machine, struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	enum rfl_rc facts = rfl_run__fill_facts(config, row, err), results, texts, flops,
		    timing = RFL_OK;

	fill_numbers(config, net, h, timed, row);
	results = rfl_run__fill_results(h, timed, row, err);
	texts = fill_texts(config, net, h, machine, row, err);
	flops = rfl_run__flops(config, rfl_run__batch(config), net, &row->model_flops_per_step,
			       err);
	if (timed)
		timing = fill_timing(h, row, err);
	return facts ? facts : results ? results : texts ? texts : flops ? flops : timing;
}

/* ---- the row of several processes ---- */

static enum rfl_rc fill_status(const struct rfl_run__heard *heard, const struct rfl_ledger_row *own,
			       struct rfl_ledger_row *row, struct rfl_err *err)
{
	const bool united = heard->timed && heard->united;
	const char *status = own->status, *text = own->error_text;
	enum rfl_rc rc;

	row->error_code = own->error_code;
	if (!united && heard->timed) {
		status = "failed";
		row->error_code = 1;
		text = heard->failed ? heard->text
				     : "rank 0 was measured, but what the others measured did not "
				       "come";
	} else if (united && !isfinite(heard->all.burst.loss_last)) {
		status = "nan";
		text = "the loss of a process is not a finite number at the last step: a smaller "
		       "--lr may help";
	}
	rc = rfl_ledger_set(&row->status, status, err);
	return rc ? rc : rfl_ledger_set(&row->error_text, text, err);
}

enum rfl_rc rfl_run__fill_world_row(const struct rfl_run__state *run,
				    const struct rfl_ledger_row *own, struct rfl_ledger_row *row,
				    struct rfl_err *err)
{
	const struct rfl_run__heard *heard = &run->heard;
	const bool united = heard->timed && heard->united;
	const struct rfl_run__results *r = united ? &heard->all : &heard->r;
	struct rfl_run_config all = *run->config;
	enum rfl_rc rc, status;

	all.micro_batch *= all.world.size;
	all.world.rank = all.world.local_rank = -1;
	rc = rfl_run__fill_row(&all, run->net, r, united, run->machine, row, err);
	row->micro_batch = own->micro_batch; /* of one process */
	row->requested_batch = own->requested_batch * all.world.size;
	row->host_peak_bytes = r->host_peak_bytes;
	status = fill_status(heard, own, row, err);
	return rc ? rc : status;
}
