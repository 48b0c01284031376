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

/* Of the window, to waiting for data. A loader beside a GPU keeps nobody from working but where the
 * GPU has a gap. */
static double lost_s(const struct rfl_burst *b, const struct rfl_ledger_row *row)
{
	const double waited_s = row->data_wait_ms_mean * 1e-3 * (double)b->nsteps;

	return isnan(b->launch_gap) ? waited_s : fmin(waited_s, b->launch_gap * b->wall_s);
}

static enum rfl_rc fill_steps(const struct rfl_run__heard *h, double *ms,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	struct rfl_run_signs signs = { .throttled = h->throttle[0] != '\0',
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

	row->loss_first = b->loss_first;
	row->loss_last = b->loss_last;
	for (int64_t i = 0; i < b->nsteps; i++)
		if (!isnan(b->steps[i].loss))
			hash = rfl_hash64(hash, &b->steps[i].loss, sizeof(b->steps[i].loss));
	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	return rfl_ledger_set(&row->loss_hash, text, err);
}

static void fill_rates(const struct rfl_run__heard *h, struct rfl_ledger_row *row)
{
	const struct rfl_burst *b = &h->burst;
	const double samples = (double)row->batch * (double)b->nsteps;

	row->wall_s = b->wall_s;
	row->launch_gap = b->launch_gap;
	row->samples_per_s = samples / b->wall_s;
	row->compute_samples_per_s = samples / (b->wall_s - lost_s(b, row));
	if (row->context_length > 0)
		row->tokens_per_s = row->samples_per_s * (double)row->context_length;
	row->tflops = (double)row->model_flops_per_step / (row->step_ms_median * 1e-3) * 1e-12;
	row->ttfb_ms = b->ttfb_s * 1e3;
	if (b->until_steps > 0) {
		row->until_steps = b->until_steps;
		row->until_step_ms_mean = b->until_step_s * 1e3;
		row->until_stdrel = b->until_stdrel;
	}
}

/* What is known of the loader where there are files. */
static void fill_loader(const struct rfl_run__heard *h, struct rfl_ledger_row *row)
{
	row->decode_errors = row->augment == -1 ? -1 : h->skipped;
	row->queue_mean = h->queue_mean;
	row->queue_min = isnan(h->queue_min) ? -1 : (int64_t)h->queue_min;
	row->decode_samples_per_s = h->decode_rate;
}

static enum rfl_rc fill_gpu(const struct rfl_run__heard *h, struct rfl_ledger_row *row,
			    struct rfl_err *err)
{
	const struct rfl_gpu_samples *g = &h->gpu;

	if (!h->watched)
		return rfl_ledger_set(&row->unwatched, h->not_watched[0] ? h->not_watched : NULL,
				      err);
	row->sm_clock_mean_hz = g->sm_clock_mean_hz;
	row->sm_clock_min_hz = g->sm_clock_min_hz;
	row->memory_clock_mean_hz = g->memory_clock_mean_hz;
	row->power_mean_w = g->power_mean_w;
	if (g->energy_j > 0) { /* a counter that has not moved tells nothing of so short a time */
		row->energy_j_per_step = g->energy_j / (double)row->iters;
		row->samples_per_j = (double)row->batch / row->energy_j_per_step;
	}
	row->temperature_max_c = g->temperature_max_c;
	row->device_memory_peak_bytes = g->memory_used_peak_bytes;
	return rfl_ledger_set(&row->throttle, h->throttle, err);
}

static bool all_steps_here(const struct rfl_burst *b)
{
	for (int64_t i = 0; i < b->nsteps; i++)
		if (isnan(b->steps[i].total_s))
			return false;
	return true;
}

static enum rfl_rc fill_timing(const struct rfl_run__heard *h, struct rfl_ledger_row *row,
			       struct rfl_err *err)
{
	const struct rfl_burst *b = &h->burst;
	double *ms = rfl_alloc_array((size_t)b->nsteps, sizeof(*ms));
	enum rfl_rc rc;

	if (!ms)
		return rfl_fail(err, RFL_ENOMEM, 0, "%lld steps: out of memory",
				(long long)b->nsteps);
	if (all_steps_here(b))
		rc = fill_steps(h, ms, row, err);
	else
		rc = rfl_fail(err, RFL_EFORMAT, 0, "the run's child left out steps");
	free(ms);
	if (rc == RFL_OK)
		rc = fill_losses(b, row, err);
	if (rc == RFL_OK)
		rc = fill_gpu(h, row, err);
	if (rc)
		return rc;
	fill_rates(h, row);
	fill_loader(h, row);
	row->loss_scale = h->scaling.scale;
	row->scale_skipped = h->scaling.skipped;
	row->mem_alloc_peak_bytes = h->memory.allocated_peak_bytes;
	row->mem_reserved_peak_bytes = h->memory.reserved_peak_bytes;
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
			 const struct rfl_run__heard *h, struct rfl_ledger_row *row)
{
	const struct rfl_shape *input = &net->nodes[0].shape;
	const bool cuda = h->device == RFL_DEVICE_CUDA;

	row->schema_version = RFL_LEDGER_SCHEMA;
	row->plugin_abi = h->plugin_abi;
	row->world_size = c->world.size > 1 ? c->world.size : 1;
	row->rank = c->world.rank;
	row->local_rank = c->world.local_rank;
	row->setup_s = h->setup_s;
	row->device_memory_bytes =
		h->device_info.memory_bytes < 0 ? (double)NAN : (double)h->device_info.memory_bytes;
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
	row->pin_memory = h->pin_memory;
	row->cudnn_benchmark = cuda ? h->cudnn_benchmark : -1;
	row->cuda_graph = cuda ? h->cuda_graph : -1;
	row->sync_each_step = h->timed && h->device != RFL_DEVICE_CPU ? h->burst.synced : -1;
}

/* As they ran; of a run that did not come so far, as they were asked for, which auto does not say.
 */
static const char *kernels_of(const struct rfl_run_config *c, const struct rfl_run__heard *h)
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
static const char *interconnect_of(const struct rfl_run_config *c, const struct rfl_run__heard *h)
{
	if (c->world.size <= 1)
		return NULL;
	if (h->device < 0)
		return strcmp(c->world.interconnect, "auto") == 0 ? NULL : c->world.interconnect;
	return h->device == RFL_DEVICE_CUDA ? "nccl" : "gloo";
}

static const char *autocast_of(const struct rfl_run_config *c, const struct rfl_run__heard *h)
{
	enum rfl_cast cast;

	if (h->device < 0)
		return NULL;
	cast = rfl_precision_cast((enum rfl_precision)c->precision, (enum rfl_device)h->device);
	return cast == RFL_CAST_OFF ? NULL : rfl_cast_names[cast];
}

static enum rfl_rc fill_texts(const struct rfl_run_config *c, const struct rfl_net *net,
			      const struct rfl_run__heard *h, const struct rfl_machine *machine,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	const struct rfl_engine_device *d = &h->device_info;
	const bool on_cpu = h->device == RFL_DEVICE_CPU;
	const struct {
		char **field;
		const char *text;
	} texts[] = {
		{ &row->engine, h->engine },
		{ &row->engine_id, h->engine_id },
		{ &row->engine_version, h->engine_version },
		{ &row->backend, h->device >= 0 ? rfl_device_names[h->device] : NULL },
		{ &row->backend_reason, h->backend_reason },
		{ &row->device_name, on_cpu ? machine->cpu_name : d->name },
		{ &row->pci_bus_id, d->pci_bus_id },
		{ &row->cuda_runtime, d->cuda_runtime },
		{ &row->cuda_driver, d->cuda_driver },
		{ &row->cudnn_version, d->cudnn },
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
			      const struct rfl_run__heard *heard, const struct rfl_machine *machine,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	enum rfl_rc facts = rfl_run__fill_facts(config, row, err), texts, flops, timing = RFL_OK;

	fill_numbers(config, net, heard, row);
	texts = fill_texts(config, net, heard, machine, row, err);
	flops = rfl_run__flops(config, rfl_run__batch(config), net, &row->model_flops_per_step,
			       err);
	if (heard->timed)
		timing = fill_timing(heard, row, err);
	return facts ? facts : texts ? texts : flops ? flops : timing;
}
