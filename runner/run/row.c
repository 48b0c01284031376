/*
 * row.c - a run's row in the ledger (configuration, device, counts and step statistics) and its
 * one-line summary.
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include "runner/run/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"
#include "complexity/count.h"
#include "complexity/lm.h"
#include "complexity/net/file.h"
#include "complexity/zoo.h"
#include "ledger/repeats/run_stats.h"
#include "ledger/step.h"
#include "machine/load.h"
#include "machine/machine.h"
#include "rfl_config.h"

/* Copy one member of every step, in milliseconds. */
static void column(const struct rfl_burst *b, size_t offset, double *out)
{
	for (int64_t i = 0; i < b->nsteps; i++) {
		const char *step = (const char *)&b->steps[i];

		out[i] = *(const double *)(const void *)(step + offset) * 1e3;
	}
}

void rfl_run__fill_stats(const struct rfl_run_stats *s, struct rfl_ledger_row *row)
{
	row->step_ms_mean = s->time.mean;
	row->step_ms_std = s->time.std;
	row->step_ms_median = s->time.median;
	row->step_ms_mad = s->time.mad;
	row->step_ms_p10 = s->time.p10;
	row->step_ms_p90 = s->time.p90;
	row->step_ms_min = s->time.min;
	row->step_ms_max = s->time.max;
	row->outliers = s->outliers;
	row->lag1 = s->lag1;
	row->drift = s->drift;
}

/* The steps have all arrived. */
static void fill_timing(const struct rfl_run__results *h, struct rfl_ledger_row *row)
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
	const struct rfl_burst *b = &h->burst;
	const double samples = (double)row->batch * (double)b->nsteps;
	struct rfl_run_signs signs = { .until_missed = b->until_missed,
				       .busy = h->others > RFL_LOAD_OTHERS };
	char flags[RFL_RUN_FLAGS_MAX], throttle[256] = "", text[17];
	struct rfl_run_stats s;
	uint64_t hash = 0;
	double lost_s;
	RFL_AUTOFREE double *ms = rfl_alloc_array((size_t)b->nsteps, sizeof(*ms));

	column(b, offsetof(struct rfl_burst_step, total_s), ms);
	s = rfl_run_stats_of(ms, (size_t)b->nsteps);
	for (size_t i = 0; i < RFL_ARRAY_LEN(phases); i++) {
		struct rfl_stats phase; /* NaN if the mode or device does not have it */

		column(b, phases[i].offset, ms);
		phase = rfl_stats_of(ms, (size_t)b->nsteps);
		*phases[i].mean = phase.mean;
		*phases[i].std = phase.std;
	}
	rfl_run__fill_stats(&s, row);

	/* Time of the window lost to waiting for data. On a GPU, a wait costs time only if the GPU
	 * is idle. */
	lost_s = row->data_wait_ms_mean * 1e-3 * (double)b->nsteps;
	if (!isnan(b->launch_gap))
		lost_s = fmin(lost_s, b->launch_gap * b->wall_s);
	row->samples_per_s = samples / b->wall_s;
	row->compute_samples_per_s = samples / (b->wall_s - lost_s);
	if (row->context_length > 0)
		row->tokens_per_s = row->samples_per_s * (double)row->context_length;
	row->tflops = (double)row->model_flops_per_step / (row->step_ms_median * 1e-3) * 1e-12;
	row->ttfb_ms = b->ttfb_s * 1e3;
	if (b->until_steps > 0) {
		row->until_steps = b->until_steps;
		row->until_step_ms_mean = b->until_step_s * 1e3;
	}
	if (h->gpu.energy_j > 0) { /* else the window was too short for the counter */
		row->energy_j_per_step = h->gpu.energy_j / (double)row->iters;
		row->samples_per_j = (double)row->batch / row->energy_j_per_step;
	}
	if (row->augment != -1)
		row->decode_errors = h->skipped;
	if (!isnan(h->queue_min))
		row->queue_min = (int64_t)h->queue_min;

	if (h->watched)
		rfl_throttle_words(h->gpu.throttle_bits, throttle, sizeof(throttle));
	signs.throttled = throttle[0] != '\0';
	signs.data_wait_mean = lost_s * 1e3 / (double)b->nsteps;
	/* hash the bits of all losses that were read */
	for (int64_t i = 0; i < b->nsteps; i++)
		if (!isnan(b->steps[i].loss))
			hash = rfl_hash64(hash, &b->steps[i].loss, sizeof(b->steps[i].loss));
	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	rfl_field_set(&row->flags, rfl_run_flags(&s, &signs, flags));
	rfl_field_set(&row->loss_hash, text);
	rfl_field_set(&row->throttle, throttle);
}

/* The mean over the steps of a run with a cache. */
static enum rfl_rc step_flops(const struct rfl_run_config *c, int64_t batch, int64_t *ret,
			      struct rfl_err *err)
{
	const struct rfl_lm_step step =
		rfl_lm_step_of(rfl_precision_names[c->precision], c->weights == RFL_WEIGHTS_INT8,
			       batch, c->past, rfl_run__tokens(c));
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_lm lm;
	double flops;
	enum rfl_rc rc = rfl_run__lm(c, arena, &lm, err);

	if (rc == RFL_OK) {
		flops = rfl_lm_mean(&lm, &step, c->mode == RFL_RUN_DECODE ? c->iters : 1).flops;
		*ret = (int64_t)llround(flops);
	}
	rfl_arena_free(arena);
	return rc;
}

enum rfl_rc rfl_run__flops(const struct rfl_run_config *c, int64_t batch, const struct rfl_net *net,
			   enum rfl_fused_attention fused, int64_t *ret, struct rfl_err *err)
{
	const struct rfl_count_options options = {
		.batch = batch,
		.training = c->mode != RFL_RUN_FWD,
		.dtype = RFL_DTYPE_F32,
		.optimizer = RFL_OPT_MOMENTUM,
		.fused_attention = fused,
	};
	RFL_AUTOPTR(count) count = NULL;
	enum rfl_rc rc;

	if (rfl_run_mode_caches((enum rfl_run_mode)c->mode))
		return step_flops(c, batch, ret, err);
	rc = rfl_count_net(net, &options, &count, err);

	if (rc)
		return rc;
	*ret = c->mode == RFL_RUN_FWD ? rfl_count_forward_flops(count)
				      : rfl_count_training_flops(count);
	return RFL_OK;
}

enum rfl_rc rfl_run__memory_options(const struct rfl_run_config *c,
				    const struct rfl_run__results *h,
				    struct rfl_memory_options *ret, struct rfl_err *err)
{
	RFL_AUTO(ledger_row) row;

	rfl_ledger_row_init(&row);
	rfl_run__fill_facts(c, &row);
	rfl_run__fill_results(h, false, &row);
	rfl_field_set(&row.backend, rfl_device_names[h->device]);
	rfl_field_set(&row.optimizer_kernels, h->optimizer_kernels);
	return rfl_step_options(&row, ret, err);
}

static enum rfl_rc fill_texts(const struct rfl_run_config *c, const struct rfl_net *net,
			      const struct rfl_run__results *h, const struct rfl_machine *machine,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	const bool known = h->device >= 0;
	char digest[17] = "";
	RFL_AUTOFREE char *data = c->data_dir ? realpath(c->data_dir, NULL) : NULL;
	const char *kernels = NULL, *interconnect = NULL, *autocast = NULL, *attention = NULL;
	enum rfl_cast cast;
	enum rfl_rc rc = RFL_OK;

	if (rfl_net_is_file(c->arch))
		rc = rfl_run__digest(c, net, digest, err);
	/* the kernels in use, or the requested ones if the run ended early */
	if (c->mode == RFL_RUN_TRAIN && h->optimizer_kernels[0])
		kernels = h->optimizer_kernels;
	else if (c->mode == RFL_RUN_TRAIN && c->optimizer_kernels != RFL_KERNELS_AUTO)
		kernels = rfl_optimizer_kernels_names[c->optimizer_kernels];
	if (c->attention != RFL_ATTENTION_AUTO) /* empty as in rows of older versions */
		attention = rfl_attention_names[c->attention];
	/* the device determines the library */
	if (c->world.size > 1 && known)
		interconnect = h->device == RFL_DEVICE_CUDA ? "nccl" : "gloo";
	else if (c->world.size > 1 && strcmp(c->world.interconnect, "auto") != 0)
		interconnect = c->world.interconnect;
	if (known) {
		cast = rfl_run__cache_tokens(c)
			       ? RFL_CAST_OFF
			       : rfl_precision_cast((enum rfl_precision)c->precision,
						    (enum rfl_device)h->device);
		autocast = cast == RFL_CAST_OFF ? NULL : rfl_cast_names[cast];
	}
	const struct {
		char **field;
		const char *text;
	} texts[] = {
		{ &row->backend, known ? rfl_device_names[h->device] : NULL },
		{ &row->device_name, h->device == RFL_DEVICE_CPU ? machine->cpu_name : h->on.name },
		{ &row->model, net->model },
		{ &row->autocast, autocast },
		{ &row->attention, attention },
		{ &row->layout, rfl_layout_names[rfl_run__layout(c)] },
		{ &row->optimizer_kernels, kernels },
		{ &row->net_digest, digest },
		{ &row->data_mode, rfl_data_kind_names[c->data_kind] },
		{ &row->data_name, data ? rfl_path_base(data) : NULL },
		{ &row->launcher, c->world.launcher },
		{ &row->interconnect, interconnect },
		{ &row->host, machine->host },
		{ &row->kernel, machine->kernel },
		{ &row->version, RFL_VERSION },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const char *text = texts[i].text;

		rfl_field_set(texts[i].field, text && *text ? text : NULL);
	}
	return rc;
}

enum rfl_rc rfl_run__fill_row(const struct rfl_run_config *c, const struct rfl_net *net,
			      const struct rfl_run__results *h, bool timed,
			      const struct rfl_machine *machine, struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	const struct rfl_shape *input = &net->nodes[0].shape;
	const bool cuda = h->device == RFL_DEVICE_CUDA;
	enum rfl_rc texts, flops;

	rfl_run__fill_facts(c, row);
	if (c->epochs > 0) /* the steps are counted once the data is open */
		row->iters = timed ? h->burst.nsteps : RFL_UNKNOWN;
	row->schema_version = RFL_LEDGER_SCHEMA;
	row->world_size = c->world.size > 1 ? c->world.size : 1;
	row->rank = c->world.rank;
	row->local_rank = c->world.local_rank;
	if (h->on.memory_bytes >= 0)
		row->device_memory_bytes = (double)h->on.memory_bytes;
	row->params = rfl_net_param_count(net);
	row->batch = rfl_run__batch(c);
	if (net->nodes[0].dtype == RFL_DTYPE_I64) { /* a language model */
		row->context_length = input->dim[0];
		row->vocab = net->classes;
	} else if (net->ninputs > 1) { /* an attention */
		row->context_length = input->dim[0];
	} else {
		row->img_size = input->dim[1];
		row->classes = net->classes;
	}
	if (c->data_dir && c->data_kind != RFL_DATA_TOKENS)
		row->augment = !c->no_augment;
	if (c->epochs > 0)
		row->rotation = c->no_augment ? 0 : c->rotation;
	if (c->world.size > 1)
		row->bucket_bytes = c->world.bucket_bytes;
	row->cudnn_benchmark = cuda ? h->cudnn_benchmark : -1;
	row->cuda_graph = cuda ? h->cuda_graph : c->cuda_graph ? 1 : -1; /* else refused */
	row->sync_each_step = timed && h->device != RFL_DEVICE_CPU ? h->burst.synced : -1;

	rfl_run__fill_results(h, timed, row);
	texts = fill_texts(c, net, h, machine, row, err);
	flops = rfl_run__flops(c, rfl_run__batch(c), net, rfl_step_fused_attention(row),
			       &row->model_flops_per_step, err);
	if (timed)
		fill_timing(h, row);
	return texts ? texts : flops;
}

enum rfl_rc rfl_run__fill_world_row(const struct rfl_run__state *run,
				    const struct rfl_ledger_row *own, struct rfl_ledger_row *row,
				    struct rfl_err *err)
{
	const struct rfl_run__received *received = &run->received;
	const bool united = received->timed && received->united;
	const struct rfl_run__results *r = united ? &received->all : &received->r;
	const char *status = own->status, *text = own->error_text;
	struct rfl_run_config all = *run->config;
	enum rfl_rc rc;

	all.micro_batch *= all.world.size;
	all.world.rank = all.world.local_rank = -1;
	rc = rfl_run__fill_row(&all, run->net, r, united, run->machine, row, err);
	row->micro_batch = own->micro_batch; /* of one process */
	row->requested_batch = own->requested_batch * all.world.size;
	row->host_peak_bytes = r->host_peak_bytes;
	row->error_code = own->error_code;
	if (!united && received->timed) {
		status = "failed";
		row->error_code = 1;
		text = received->failed
			       ? received->text
			       : "rank 0 was measured, but the results of the other ranks did not "
				 "arrive";
	} else if (united && !isfinite(received->all.burst.loss_last)) {
		status = "nan";
		text = "the loss of a process is not finite at the last step: try a smaller --lr";
	}
	rfl_field_set(&row->status, status);
	rfl_field_set(&row->error_text, text);
	return rc;
}

/* Append milliseconds with two digits, down to microseconds. */
static void put_ms(double ms, struct rfl_buf *out)
{
	const double size = fabs(ms);

	rfl_buf_printf(out, " %.*f", size >= 1 || size < 0.0005 ? 1 : size >= 0.1 ? 2 : 3, ms);
}

bool rfl_run_found_no_gpu(const struct rfl_ledger_row *row)
{
	return row->backend_reason && *row->backend_reason && rfl_text_same(row->backend, "cpu") &&
	       !isnan(row->samples_per_s);
}

void rfl_run_summary(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	const struct {
		const char *name;
		double ms;
	} phases[] = {
		{ "data", row->data_wait_ms_mean }, { "upload", row->upload_ms_mean },
		{ "forward", row->fwd_ms_mean },    { "backward", row->bwd_ms_mean },
		{ "optimizer", row->opt_ms_mean },  { "linear", row->linear_ms },
		{ "attention", row->attention_ms }, { "other", row->other_ms },
	};
	const char *counted = row->counters_status, *sep = ": ";
	char bytes[RFL_NUM_MAX];

	rfl_buf_printf(out, "%s: %s", row->label, row->status);
	if (!isnan(row->samples_per_s)) {
		rfl_buf_printf(out, ", %.2f samples/s", row->samples_per_s);
		if (!isnan(row->tokens_per_s))
			rfl_buf_printf(out, " (%.0f tokens/s)", row->tokens_per_s);
		rfl_buf_puts(out, ", step");
		put_ms(1e3 * (double)row->batch / row->samples_per_s, out);
		rfl_buf_puts(out, " ms (median");
		put_ms(row->step_ms_median, out);
		rfl_buf_puts(out, ", MAD");
		put_ms(row->step_ms_mad, out);
		rfl_buf_putc(out, ')');
		for (size_t i = 0; i < RFL_ARRAY_LEN(phases); i++)
			if (!isnan(phases[i].ms)) {
				rfl_buf_printf(out, ", %s", phases[i].name);
				put_ms(phases[i].ms, out);
			}
		if (!isnan(row->launch_gap))
			rfl_buf_printf(out, ", launch gap %.1f %%", row->launch_gap * 100);
		if (!isnan(row->power_mean_w))
			rfl_buf_printf(out, ", %.0f W", row->power_mean_w);
		if (row->until_steps >= 0)
			rfl_buf_printf(out, ", mean of %lld steps %.3f ms +- %.2g %%",
				       (long long)row->until_steps, row->until_step_ms_mean,
				       row->until_stdrel * 100);
		rfl_buf_printf(out, ", %.3g TFLOP/s",
			       1e-12 * (double)row->model_flops_per_step * row->samples_per_s /
				       (double)row->batch);
		if (!isnan(row->loss_last))
			rfl_buf_printf(out, ", loss %.4g -> %.4g", row->loss_first, row->loss_last);
	}
	if (counted) {
		rfl_buf_printf(out, "; counters %.*s", (int)strcspn(counted, ":"), counted);
		if (!isnan(row->counted_flops_per_step)) {
			rfl_buf_printf(out, "%s%.4g GFLOP (%.3g of the analytic count)", sep,
				       row->counted_flops_per_step * 1e-9,
				       row->counted_flops_per_step /
					       (double)row->model_flops_per_step);
			sep = ", ";
		}
		if (!isnan(row->counted_dram_bytes_per_step)) {
			rfl_num_bytes(row->counted_dram_bytes_per_step, bytes, sizeof(bytes));
			rfl_buf_printf(out, "%s%s of memory traffic", sep, bytes);
			sep = ", ";
		}
		if (!isnan(row->ipc))
			rfl_buf_printf(out, "%sIPC %.2f", sep, row->ipc);
	}
	if (row->mem_status && isnan(row->mem_step_peak_bytes))
		rfl_buf_printf(out, "; memory %.*s", (int)strcspn(row->mem_status, ":"),
			       row->mem_status);
	if (!isnan(row->mem_step_peak_bytes)) {
		rfl_num_bytes(row->mem_step_peak_bytes, bytes, sizeof(bytes));
		rfl_buf_printf(out, "; memory peak %s at %s", bytes,
			       row->mem_peak_at ? row->mem_peak_at : "an unknown layer");
		if (!isnan(row->mem_predicted_bytes)) {
			rfl_num_bytes(row->mem_predicted_bytes, bytes, sizeof(bytes));
			rfl_buf_printf(
				out, " (predicted %s, %+.1f %%)", bytes,
				100 * (row->mem_predicted_bytes / row->mem_step_peak_bytes - 1));
		}
	}
	if (row->flags && *row->flags)
		rfl_buf_printf(out, " [%s]", row->flags);
}
