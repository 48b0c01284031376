/* peaks_gpu.c - roofline peaks measure --backend cuda: the ceilings of an NVIDIA GPU. */
#include "cli/cmd/peaks_gpu.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "cli/device_lock.h"

static void report(const char *what, int done, int total, void *ctx)
{
	rfl_cli_progress(ctx, "peaks measure: %d of %d, %s", done + 1, total, what);
	rfl_log(RFL_LOG_DEBUG, "%s", what);
}

static const struct rfl_column columns[] = {
	{ .key = "ceiling", .title = "Ceiling" },
	{ .key = "value", .title = "Value", .kind = RFL_COLUMN_REAL },
	{ .key = "unit", .title = "Unit" },
	{ .key = "burst", .title = "Burst", .kind = RFL_COLUMN_REAL },
	{ .key = "repeats", .title = "N", .kind = RFL_COLUMN_INT },
	{ .key = "clock_mhz", .title = "MHz", .kind = RFL_COLUMN_REAL },
	{ .key = "power_w", .title = "W", .kind = RFL_COLUMN_REAL },
	{ .key = "throttle", .title = "Throttled by" },
	{ .key = "loop", .title = "Loop" },
};

/* Add the row of a run. NULL: the reason why there is none. */
static void add_row(struct rfl_table *t, const char *name, const struct rfl_gpu_cell *cell,
		    const struct rfl_gpu_run *run)
{
	static const struct rfl_gpu_samples none = { .n = 0 };
	const struct rfl_gpu_samples *s = run ? &run->timed.samples : &none;
	char words[256];

	rfl_throttle_words(s->throttle_bits, words, sizeof(words));
	rfl_table_text(t, name);
	rfl_table_real(t, run ? run->timed.sustained / 1e9 : (double)NAN);
	rfl_table_text(t, rfl_gpu_unit(cell->key));
	rfl_table_real(t, run ? run->timed.stats.max / 1e9 : (double)NAN);
	rfl_table_int(t, run ? (int64_t)run->timed.stats.n : RFL_INT_UNKNOWN);
	rfl_table_real(t, s->n ? s->sm_clock_mean_hz / 1e6 : (double)NAN);
	rfl_table_real(t, s->n ? s->power_mean_w : (double)NAN);
	rfl_table_text(t, words);
	rfl_table_text(t, run ? run->what : cell->reason);
}

enum rfl_rc rfl_peaks_gpu_print(struct rfl_cli *cli, const struct rfl_gpu_measurement *m,
				const struct rfl_engine_peaks *e, enum rfl_format format,
				struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	char size[RFL_NUM_MAX];

	for (const struct rfl_gpu_cell *cell = m->cells; cell < m->cells + m->ncells; cell++) {
		const size_t best = cell->best;

		add_row(t, cell->key, cell, best == SIZE_MAX ? NULL : &m->runs[best]);
		for (size_t i = 0; i < m->nruns; i++)
			if (m->runs[i].key == cell->key && i != best && !m->runs[i].sweep)
				add_row(t, "  other", cell, &m->runs[i]);
	}
	for (const struct rfl_engine_peak *p = e->peaks; p < e->peaks + e->n; p++) {
		rfl_table_text(t, p->key);
		rfl_table_real(t, p->reason[0] ? (double)NAN : p->stats.max / 1e9);
		rfl_table_text(t, rfl_gpu_unit(p->key));
		rfl_table_real(t, (double)NAN);
		rfl_table_int(t, p->reason[0] ? RFL_INT_UNKNOWN : (int64_t)p->stats.n);
		rfl_table_real(t, (double)NAN);
		rfl_table_real(t, (double)NAN);
		rfl_table_text(t, "");
		rfl_table_text(t, p->reason[0] ? p->reason : p->kernel);
	}
	rfl_table_note(t,
		       "%s, %d multiprocessors. Value: sustained rate, the median of the second "
		       "half of the repeats; burst: fastest repeat.",
		       m->name, m->multiprocessors);
	if (m->array_bytes)
		rfl_table_note(t, "Arrays of %s each%s",
			       rfl_num_bytes((double)m->array_bytes, size, sizeof(size)),
			       m->capped ? ", for lack of free device memory" : "");
	rfl_table_note(t, "Measured in %.0f s.", m->seconds);
	return rfl_cli_put_table(cli, t, format, err);
}

enum rfl_rc rfl_peaks_gpu_measure(struct rfl_cli *cli, struct rfl_gpu_spec spec,
				  struct rfl_gpu_measurement **ret, struct rfl_err *err)
{
	struct rfl_device_lock lock = { .n = 0 };
	enum rfl_rc rc = rfl_device_lock_wait(&lock, "cuda", 1, cli, err);

	if (rc)
		return rc;
	spec.progress = report;
	spec.ctx = cli;
	rc = rfl_gpu_measure(&spec, ret, err);
	rfl_cli_progress(cli, NULL);
	rfl_device_lock_release(&lock);
	if (rc == RFL_OK && (*ret)->capped)
		rfl_log(RFL_LOG_WARN,
			"too little free device memory for arrays of 8 times L2 and 256 MiB: the "
			"DRAM bandwidth may be too high; end other programs on the GPU and repeat");
	return rc;
}
