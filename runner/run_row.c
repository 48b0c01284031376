/*
 * run_row.c - what a run says in the ledger: statistics of its steps, counts of what ran, and the
 * verdict on how it ended.
 */
#include "runner/run_parts.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/stats.h"
#include "complexity/count.h"
#include "machine/machine.h"
#include "rfl_config.h"

/* Limits of the flags; docs/run.md explains them. */
#define UNSTABLE_IQR   0.05 /* of the median */
#define DRIFT_LIMIT    0.03
#define LOADER_BOUND   0.05 /* of the step */
#define FEW_STEPS      10
#define NEAR_THE_LIMIT 0.9 /* of the memory limit: a SIGKILL there is the kernel's */

/* ---- statistics ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One member of every step as milliseconds. False when the mode or the device does not have it. */
static bool column(const struct rfl_burst *b, size_t offset, double *out)
{
	for (int64_t i = 0; i < b->nsteps; i++) {
		const char *step = (const char *)&b->steps[i];

		out[i] = *(const double *)(const void *)(step + offset) * 1e3;
		if (isnan(out[i]))
			return false;
	}
	return true;
}

static enum rfl_rc mean_and_std(const struct rfl_burst *b, size_t offset, double *scratch,
				double *mean, double *std, struct rfl_err *err)
{
	struct rfl_stats stats;
	enum rfl_rc rc;

	if (!column(b, offset, scratch))
		return RFL_OK;
	rc = rfl_stats_describe(scratch, (size_t)b->nsteps, &stats, err);
	if (rc)
		return rc;
	*mean = stats.mean;
	*std = stats.std;
	return RFL_OK;
}

static double median_of(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return rfl_stats_percentile(values, n, 50);
}

/* Median of the last third over the median of the first, minus one. */
static double drift_of(const double *ms, size_t n, double *scratch)
{
	size_t third = n / 3;
	double first, last;

	if (third == 0)
		return (double)NAN;
	memcpy(scratch, ms, third * sizeof(*ms));
	first = median_of(scratch, third);
	memcpy(scratch, ms + (n - third), third * sizeof(*ms));
	last = median_of(scratch, third);
	return last / first - 1.0;
}

static double relative_iqr(const double *ms, size_t n, double *scratch)
{
	memcpy(scratch, ms, n * sizeof(*ms));
	qsort(scratch, n, sizeof(*scratch), by_value);
	return (rfl_stats_percentile(scratch, n, 75) - rfl_stats_percentile(scratch, n, 25)) /
	       rfl_stats_percentile(scratch, n, 50);
}

static enum rfl_rc set_flags(struct rfl_ledger_row *row, double iqr, struct rfl_err *err)
{
	const struct {
		bool raised;
		const char *name;
	} flags[] = {
		{ iqr > UNSTABLE_IQR, "unstable" },
		{ fabs(row->drift) > DRIFT_LIMIT, "drift" },
		{ row->data_wait_ms_mean > LOADER_BOUND * row->step_ms_mean, "loader_bound" },
		{ row->iters < FEW_STEPS, "few_steps" },
	};
	char text[128] = "";

	for (size_t i = 0; i < RFL_ARRAY_LEN(flags); i++) {
		size_t at = strlen(text);

		if (flags[i].raised)
			snprintf(text + at, sizeof(text) - at, "%s%s", at ? " " : "",
				 flags[i].name);
	}
	return rfl_ledger_set(&row->flags, text, err);
}

static enum rfl_rc fill_steps(const struct rfl_burst *b, double *ms, double *scratch,
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
	};
	size_t n = (size_t)b->nsteps;
	struct rfl_stats s;
	enum rfl_rc rc;

	if (!column(b, offsetof(struct rfl_burst_step, total_s), ms))
		return rfl_fail(err, RFL_EFORMAT, 0, "the run's child left out steps");
	rc = rfl_stats_describe(ms, n, &s, err);
	if (rc)
		return rc;
	row->step_ms_mean = s.mean;
	row->step_ms_std = s.std;
	row->step_ms_median = s.median;
	row->step_ms_mad = s.mad;
	row->step_ms_p10 = s.p10;
	row->step_ms_p90 = s.p90;
	row->step_ms_min = s.min;
	row->step_ms_max = s.max;
	row->drift = drift_of(ms, n, scratch);
	for (size_t i = 0; i < RFL_ARRAY_LEN(phases) && rc == RFL_OK; i++)
		rc = mean_and_std(b, phases[i].offset, scratch, phases[i].mean, phases[i].std, err);
	if (rc == RFL_OK)
		rc = set_flags(row, relative_iqr(ms, n, scratch), err);
	return rc;
}

static enum rfl_rc fill_timing(const struct rfl_run__heard *h, struct rfl_ledger_row *row,
			       struct rfl_err *err)
{
	const struct rfl_burst *b = &h->burst;
	double *ms = rfl_alloc_array((size_t)b->nsteps, 2 * sizeof(*ms));
	double samples = (double)row->batch * (double)b->nsteps;
	enum rfl_rc rc;

	if (!ms)
		return rfl_fail(err, RFL_ENOMEM, 0, "%lld steps: out of memory",
				(long long)b->nsteps);
	rc = fill_steps(b, ms, ms + b->nsteps, row, err);
	free(ms);
	if (rc)
		return rc;
	row->wall_s = b->wall_s;
	row->samples_per_s = samples / b->wall_s;
	row->compute_samples_per_s =
		samples / (b->wall_s - row->data_wait_ms_mean * 1e-3 * (double)b->nsteps);
	row->tflops = (double)row->model_flops_per_step / (row->step_ms_median * 1e-3) * 1e-12;
	row->ttfb_ms = b->ttfb_s * 1e3;
	row->loss_first = b->loss_first;
	row->loss_last = b->loss_last;
	row->decode_errors = row->augment == -1 ? -1 : h->skipped;
	row->mem_alloc_peak_bytes = h->memory.allocated_peak_bytes;
	row->mem_reserved_peak_bytes = h->memory.reserved_peak_bytes;
	return RFL_OK;
}

/* ---- what ran ---- */

static enum rfl_rc count_flops(const struct rfl_run_config *c, const struct rfl_net *net,
			       int64_t *ret, struct rfl_err *err)
{
	const struct rfl_count_options options = {
		.batch = c->batch,
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

static void fill_numbers(const struct rfl_run_config *c, const struct rfl_net *net,
			 const struct rfl_run__heard *h, struct rfl_ledger_row *row)
{
	row->schema_version = RFL_LEDGER_SCHEMA;
	row->plugin_abi = h->plugin_abi;
	row->params = rfl_net_param_count(net);
	row->batch = row->micro_batch = c->batch;
	row->accum = 1;
	row->img_size = net->nodes[0].shape.dim[1];
	row->classes = net->classes;
	row->augment = c->data.dir ? c->data.augment : -1;
	row->workers = c->data.dir ? c->data.workers : 0;
	row->threads = c->threads;
	row->deterministic = c->deterministic;
	row->seed = (int64_t)c->seed;
	row->world_size = 1;
	row->warmup = c->warmup;
	row->iters = c->iters;
	row->setup_s = h->setup_s;
}

static enum rfl_rc fill_texts(const struct rfl_run_config *c, const struct rfl_net *net,
			      const struct rfl_run__heard *h, const struct rfl_machine *machine,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	bool trains = c->mode == RFL_RUN_TRAIN, on_cpu = h->device == RFL_DEVICE_CPU;
	const struct {
		char **field;
		const char *text;
	} texts[] = {
		{ &row->engine, h->engine },
		{ &row->engine_id, h->engine_id },
		{ &row->engine_version, h->engine_version },
		{ &row->backend, h->device >= 0 ? rfl_device_names[h->device] : NULL },
		{ &row->device_name, on_cpu ? machine->cpu_name : NULL },
		{ &row->model, net->model },
		{ &row->precision, rfl_precision_names[c->precision] },
		{ &row->layout, rfl_layout_names[c->layout] },
		{ &row->mode, rfl_run_mode_names[c->mode] },
		{ &row->optimizer, trains ? "sgd" : NULL },
		{ &row->data_mode, c->data.dir ? "imagefolder" : "synthetic" },
		{ &row->host, machine->host },
		{ &row->version, RFL_VERSION },
	};
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts) && rc == RFL_OK; i++)
		rc = rfl_ledger_set(texts[i].field, texts[i].text, err);
	return rc;
}

enum rfl_rc rfl_run__fill_row(const struct rfl_run_config *config, const struct rfl_net *net,
			      const struct rfl_run__heard *heard, const struct rfl_machine *machine,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	enum rfl_rc rc;

	fill_numbers(config, net, heard, row);
	rc = fill_texts(config, net, heard, machine, row, err);
	if (rc == RFL_OK)
		rc = count_flops(config, net, &row->model_flops_per_step, err);
	if (rc == RFL_OK && heard->timed)
		rc = fill_timing(heard, row, err);
	return rc;
}

/* ---- the verdict ---- */

struct verdict {
	const char *status;
	int64_t code; /* signal or exit code; -1 for none */
	enum rfl_rc rc;
	char text[1200];
};

static void judge_failure(const struct rfl_run__heard *h, struct verdict *v)
{
	static const struct {
		enum rfl_rc rc;
		const char *status;
	} known[] = {
		{ RFL_EDEVMEM, "oom" },
		{ RFL_ENOMEM, "oom" },
		{ RFL_EUNSUPPORTED, "unsupported" },
		{ RFL_EUNAVAILABLE, "unsupported" },
		{ RFL_ENOTFOUND, "unsupported" },
		{ RFL_EINTR, "interrupted" },
	};

	v->status = "crash";
	for (size_t i = 0; i < RFL_ARRAY_LEN(known); i++) {
		if (known[i].rc == h->rc)
			v->status = known[i].status;
	}
	v->rc = h->rc;
	v->code = 1;
	snprintf(v->text, sizeof(v->text), "%s", h->text);
}

static void judge_signal(const struct rfl_run__heard *h, const struct rfl_proc_result *p,
			 double memory_limit_bytes, struct verdict *v)
{
	const char *when = h->ready ? "after it was set up" : "while it was being set up";
	char peak[RFL_NUM_MAX], limit[RFL_NUM_MAX];

	v->code = p->signal;
	v->rc = RFL_EFAILED;
	v->status = "crash";
	snprintf(v->text, sizeof(v->text), "killed by signal %d (%s) %s", p->signal,
		 strsignal(p->signal), when);
	if (p->signal == SIGKILL && memory_limit_bytes > 0 &&
	    p->max_rss_bytes > NEAR_THE_LIMIT * memory_limit_bytes) {
		v->status = "oom";
		snprintf(v->text, sizeof(v->text),
			 "killed by the system with %s in use of a limit of %s: a smaller batch "
			 "needs less",
			 rfl_num_bytes(p->max_rss_bytes, peak, sizeof(peak)),
			 rfl_num_bytes(memory_limit_bytes, limit, sizeof(limit)));
	} else if (p->signal == SIGINT || p->signal == SIGTERM) {
		v->status = "interrupted";
		v->rc = RFL_EINTR;
	}
}

static void judge_timed(const struct rfl_run__heard *h, struct verdict *v)
{
	v->status = "ok";
	v->code = -1;
	v->rc = RFL_OK;
	if (isfinite(h->burst.loss_last))
		return;
	v->status = "nan";
	v->rc = RFL_EFAILED;
	snprintf(v->text, sizeof(v->text),
		 "the loss is not a finite number at the last step: a smaller --lr may help");
}

enum rfl_rc rfl_run__judge(const struct rfl_run__heard *heard, const struct rfl_proc_result *p,
			   double memory_limit_bytes, struct rfl_ledger_row *row,
			   struct rfl_err *err)
{
	struct verdict v = { .status = "crash", .code = -1, .rc = RFL_EFAILED };
	enum rfl_rc rc;

	if (heard->timed) {
		judge_timed(heard, &v); /* measured: what came after does not matter */
	} else if (p->cancelled) {
		v.status = "interrupted";
		v.rc = RFL_EINTR;
		snprintf(v.text, sizeof(v.text), "stopped by a signal to the command");
	} else if (p->timed_out) {
		v.status = "timeout";
		v.rc = RFL_ETIMEOUT;
		snprintf(v.text, sizeof(v.text), "not done after %.3g s", p->wall_s);
	} else if (heard->failed) {
		judge_failure(heard, &v);
	} else if (!p->exited) {
		judge_signal(heard, p, memory_limit_bytes, &v);
	} else {
		v.code = p->exit_code;
		snprintf(v.text, sizeof(v.text), "ended with exit code %d and no result",
			 p->exit_code);
	}
	row->error_code = v.code;
	rc = rfl_ledger_set(&row->status, v.status, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&row->error_text, v.text, err);
	return rc ? rc : v.rc;
}

/* ---- one line for people ---- */

static void say_ms(struct rfl_buf *out, const char *name, double ms)
{
	if (!isnan(ms))
		rfl_buf_printf(out, ", %s %.1f", name, ms);
}

/* What was counted, beside what the network is counted to be. */
static void say_counts(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	const char *sep = ": ";
	char bytes[RFL_NUM_MAX];

	if (!isnan(row->counted_flops_per_step)) {
		rfl_buf_printf(out, "%s%.4g GFLOP (%.3g of the analytic count)", sep,
			       row->counted_flops_per_step * 1e-9,
			       row->counted_flops_per_step / (double)row->model_flops_per_step);
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

/* "; counters partial: 26.2 GFLOP ..." */
static void say_counted(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	const char *status = row->counters_status;

	if (!status)
		return;
	rfl_buf_printf(out, "; counters %.*s", (int)strcspn(status, ":"), status);
	say_counts(row, out);
}

void rfl_run_summary(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	rfl_buf_printf(out, "%s: %s", row->label, row->status);
	if (!isnan(row->samples_per_s)) {
		rfl_buf_printf(out, ", %.2f img/s, step %.1f ms (MAD %.1f)", row->samples_per_s,
			       row->step_ms_median, row->step_ms_mad);
		say_ms(out, "data", row->data_wait_ms_mean);
		say_ms(out, "forward", row->fwd_ms_mean);
		say_ms(out, "backward", row->bwd_ms_mean);
		say_ms(out, "optimizer", row->opt_ms_mean);
		rfl_buf_printf(out, ", %.3g TFLOP/s, loss %.4g -> %.4g", row->tflops,
			       row->loss_first, row->loss_last);
	}
	say_counted(row, out);
	if (row->flags)
		rfl_buf_printf(out, " [%s]", row->flags);
	if (row->error_text)
		rfl_buf_printf(out, ": %s", row->error_text);
}
