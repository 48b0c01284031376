/*
 * columns.c - the columns of the ledger, and the metrics that are made of them. What a row means is
 * decided by the code that fills it (runner/run/row.c).
 */
#include "ledger/ledger.h"

#include <math.h>

#include "ledger/metric.h"

#define COLUMN(kind, name, meaning) RFL_FIELD(kind, struct rfl_ledger_row, name, meaning),

const struct rfl_field rfl_ledger_fields[RFL_LEDGER_NCOLUMNS] = { RFL_LEDGER_COLUMNS(COLUMN) };

size_t rfl_ledger_column_find(const char *name)
{
	return rfl_fields_find(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, name);
}

void rfl_ledger_row_init(struct rfl_ledger_row *row)
{
	row->line = 0;
	rfl_fields_clear(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, row);
}

void rfl_ledger_row_fini(struct rfl_ledger_row *row)
{
	rfl_fields_free(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, row);
}

/* clang-format off */
/* X(name, title, column, instead, speed) */
#define SPEEDS(X) \
	X("samples_per_s", "samples per second over the whole window", samples_per_s, samples_per_s, 1) \
	X("compute_samples_per_s", "samples per second, without waiting for data", compute_samples_per_s, compute_samples_per_s, 1) \
	X("step_ms", "median step, ms", step_ms_median, step_ms_mean, -1) \
	X("tokens_per_s", "tokens per second", tokens_per_s, tokens_per_s, 1) \
	X("tflops", "TFLOP/s of the median step", tflops, tflops, 1) \
	X("fwd_ms", "forward, ms per step", fwd_ms_mean, fwd_ms_mean, -1) \
	X("bwd_ms", "backward, ms per step", bwd_ms_mean, bwd_ms_mean, -1) \
	X("opt_ms", "optimizer, ms per step", opt_ms_mean, opt_ms_mean, -1) \
	X("data_wait_ms", "waiting for data, ms per step", data_wait_ms_mean, data_wait_ms_mean, -1) \
	X("upload_ms", "upload, ms per step", upload_ms_mean, upload_ms_mean, -1) \
	X("ttfb_ms", "first step, ms", ttfb_ms, ttfb_ms, -1)
#define OTHERS(X) \
	X("energy_j_per_step", "energy, J per step", energy_j_per_step, energy_j_per_step, 0) \
	X("samples_per_j", "samples per J", samples_per_j, samples_per_j, 0) \
	X("power_w", "power, W", power_mean_w, power_mean_w, 0) \
	X("device_memory_peak_bytes", "device memory, bytes", device_memory_peak_bytes, device_memory_peak_bytes, 0) \
	X("mem_alloc_peak_bytes", "allocated memory, bytes", mem_alloc_peak_bytes, mem_alloc_peak_bytes, 0) \
	X("host_peak_bytes", "host memory, bytes", host_peak_bytes, host_peak_bytes, 0) \
	X("loss_last", "last loss", loss_last, loss_last, 0)

#define ROW(n, t, c, i, s) \
	{ .name = n, .title = t, .column = RFL_LEDGER_AT_##c, .instead = RFL_LEDGER_AT_##i, .speed = s },
#define NAME(n, t, c, i, s) n,
/* clang-format on */

const struct rfl_ledger_metric rfl_ledger_metrics[] = { SPEEDS(ROW) OTHERS(ROW){ .name = NULL } };
const char *const rfl_ledger_metric_names[] = { SPEEDS(NAME) OTHERS(NAME) NULL };
const char *const rfl_ledger_speed_names[] = { SPEEDS(NAME) NULL };

double rfl_ledger_metric_value(const struct rfl_ledger_metric *m, const struct rfl_ledger_row *row)
{
	double value = rfl_field_number(&rfl_ledger_fields[m->column], row);

	return isnan(value) ? rfl_field_number(&rfl_ledger_fields[m->instead], row) : value;
}
