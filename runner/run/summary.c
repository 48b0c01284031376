/*
 * summary.c - a row as one line for people. Why a run is not ok, its error_text, is left to
 * the one that reports that failure.
 */
#include "runner/run.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"

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

static bool says(const char *text)
{
	return text && *text;
}

/* "img/s", or of a language model "samples/s (tokens/s)". */
static void say_rate(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	if (isnan(row->tokens_per_s))
		rfl_buf_printf(out, ", %.2f img/s", row->samples_per_s);
	else
		rfl_buf_printf(out, ", %.2f samples/s (%.0f tokens/s)", row->samples_per_s,
			       row->tokens_per_s);
}

static void say_until(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	if (row->until_steps < 0)
		return;
	rfl_buf_printf(out, ", mean of %lld steps %.3f ms +- %.2g %%", (long long)row->until_steps,
		       row->until_step_ms_mean, row->until_stdrel * 100);
}

static void say_gpu(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	if (!isnan(row->launch_gap))
		rfl_buf_printf(out, ", launch gap %.1f %%", row->launch_gap * 100);
	if (!isnan(row->power_mean_w))
		rfl_buf_printf(out, ", %.0f W", row->power_mean_w);
}

static void say_times(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	say_rate(row, out);
	rfl_buf_printf(out, ", step %.1f ms (median %.1f, MAD %.1f)",
		       1e3 * (double)row->batch / row->samples_per_s, row->step_ms_median,
		       row->step_ms_mad);
	say_ms(out, "data", row->data_wait_ms_mean);
	say_ms(out, "upload", row->upload_ms_mean);
	say_ms(out, "forward", row->fwd_ms_mean);
	say_ms(out, "backward", row->bwd_ms_mean);
	say_ms(out, "optimizer", row->opt_ms_mean);
	say_gpu(row, out);
	say_until(row, out);
	rfl_buf_printf(out, ", %.3g TFLOP/s, loss %.4g -> %.4g",
		       1e-12 * (double)row->model_flops_per_step * row->samples_per_s /
			       (double)row->batch,
		       row->loss_first, row->loss_last);
}

/* auto, and no GPU: not what everyone expects. */
static void say_fallback(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	if (says(row->backend_reason) && row->backend && strcmp(row->backend, "cpu") == 0)
		rfl_buf_puts(out, "; running on CPU: no usable GPU (-v says why)");
}

void rfl_run_summary(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	rfl_buf_printf(out, "%s: %s", row->label, row->status);
	if (!isnan(row->samples_per_s)) {
		say_times(row, out);
		say_fallback(row, out);
	}
	say_counted(row, out);
	if (says(row->flags))
		rfl_buf_printf(out, " [%s]", row->flags);
}
