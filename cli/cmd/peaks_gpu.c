/* peaks_gpu.c - roofline peaks measure --backend cuda: the ceilings of an NVIDIA GPU. */
#include "cli/cmd/peaks_gpu.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "cli/device_lock.h"
#include "peaks/edit.h"
#include "peaks/gpu.h"

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
	rfl_table_text(t, strchr(cell->key, '.') ? "GFLOP/s" : "GB/s");
	rfl_table_real(t, run ? run->timed.stats.max / 1e9 : (double)NAN);
	rfl_table_int(t, run ? (int64_t)run->timed.stats.n : RFL_INT_UNKNOWN);
	rfl_table_real(t, s->n ? s->sm_clock_mean_hz / 1e6 : (double)NAN);
	rfl_table_real(t, s->n ? s->power_mean_w : (double)NAN);
	rfl_table_text(t, words);
	rfl_table_text(t, run ? run->what : cell->reason);
}

static void add_engine_row(struct rfl_table *t, const struct rfl_engine_peak *p)
{
	const bool known = !p->reason[0];

	rfl_table_text(t, p->key);
	rfl_table_real(t, known ? p->stats.max / 1e9 : (double)NAN);
	rfl_table_text(t, "GFLOP/s");
	rfl_table_real(t, (double)NAN);
	rfl_table_int(t, known ? (int64_t)p->stats.n : RFL_INT_UNKNOWN);
	rfl_table_real(t, (double)NAN);
	rfl_table_real(t, (double)NAN);
	rfl_table_text(t, "");
	rfl_table_text(t, known ? p->kernel : p->reason);
}

static enum rfl_rc print_result(struct rfl_cli *cli, const struct rfl_gpu_measurement *m,
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
	for (size_t i = 0; i < e->n; i++)
		add_engine_row(t, &e->peaks[i]);
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

enum rfl_rc rfl_peaks_gpu_run(struct rfl_cli *cli, const struct rfl_peaks_gpu_args *a,
			      struct rfl_err *err)
{
	const struct rfl_gpu_spec spec = { .only = a->only->items,
					   .repeats = a->repeats,
					   .quick = a->quick,
					   .progress = report,
					   .ctx = cli };
	struct rfl_peaks_edit *edit = NULL;
	struct rfl_gpu_measurement *m = NULL;
	struct rfl_device_lock lock = { .n = 0 };
	struct rfl_engine_peaks engine = { .n = 0 };
	struct rfl_err why = RFL_ERR_INIT;
	json_t *value = NULL;
	char name[256];
	enum rfl_rc rc;

	if ((rc = rfl_gpu_name(spec.device, name, sizeof(name), err)) ||
	    (a->output && (rc = rfl_peaks_edit_open(a->output, &edit, err))) ||
	    (edit && !a->force && (rc = rfl_peaks_edit_fits(edit, a->env_name, "gpu", name, err))))
		goto done;
	if (!edit)
		rfl_log(RFL_LOG_INFO, "the result is not saved; use --output FILE to save it");
	if ((rc = rfl_device_lock_wait(&lock, "cuda", 1, cli, err)))
		goto done;
	rc = rfl_gpu_measure(&spec, &m, err);
	rfl_cli_progress(cli, NULL);
	rfl_device_lock_release(&lock);
	if (rc)
		goto done;
	if (m->capped)
		rfl_log(RFL_LOG_WARN,
			"too little free device memory for arrays of 8 times L2 and 256 MiB: the "
			"DRAM bandwidth may be too high; end other programs on the GPU and repeat");
	if (a->engine && (rc = rfl_engine_peaks_measure(cli, a->engine, &engine, &why))) {
		if (rc == RFL_EINTR) {
			rc = rfl_err_pass(err, &why);
			goto done;
		}
		rfl_log(a->only->n > 0 ? RFL_LOG_WARN : RFL_LOG_INFO,
			"the ceilings gemm are not measured: %s", why.msg);
		engine.n = 0;
	}
	if (edit) {
		value = rfl_gpu_measurement_json(m);
		rc = value ? rfl_engine_peaks_add(&engine, value, err)
			   : rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the environment");
		if (rc || (rc = rfl_peaks_edit_merge(edit, a->env_name, value, err)) ||
		    (rc = rfl_peaks_edit_save(edit, err)))
			goto done;
		rfl_log(RFL_LOG_INFO, "wrote environment %s to %s", a->env_name, a->output);
	}
	rc = print_result(cli, m, &engine, a->format, err);
done:
	json_decref(value);
	rfl_gpu_measurement_free(m);
	rfl_peaks_edit_close(edit);
	return rc;
}
