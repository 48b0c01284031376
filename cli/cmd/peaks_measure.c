/* peaks_measure.c - roofline peaks measure: the ceilings of this machine. */
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/cmd/peaks_gpu.h"
#include "machine/terms.h"
#include "peaks/edit.h"
#include "peaks/gpu.h"
#include "peaks/measure.h"
#include "peaks/peaks.h"

struct measure_args {
	struct rfl_opt_list only;
	const char *env_name, *output;
	int64_t repeats, threads;
	int backend, format;
	bool quick, force;
};

#define OPT(kind, member, ...) RFL_OPT(struct measure_args, kind, member, __VA_ARGS__)

static const struct rfl_opt measure_opts[] = {
	OPT(TEXT, env_name, .name = "env", .meta = "NAME", .required = true,
	    .help = "name of the environment in the file, such as lab_cpu"),
	OPT(TEXT, output, .name = "output", .meta = "FILE",
	    .help = "peaks file into which the environment is merged; default: write no file"),
	OPT(LIST, only, .name = "only", .meta = "KEY",
	    .help = "ceilings to measure, such as fp32.vector; an unknown one lists all; default: "
		    "all"),
	OPT(CHOICE, backend, .name = "backend", .meta = "DEVICE", .choices = rfl_device_names,
	    .def = "cpu",
	    .help = "device to measure; cuda is the first GPU in CUDA_VISIBLE_DEVICES"),
	OPT(INT, repeats, .name = "repeats", .meta = "N", .def = "21", .min = 3, .max = 1000,
	    .help = "number of repeats of every loop"),
	OPT(INT, threads, .name = "threads", .meta = "N", .def = "0", .min = 0, .max = 8192,
	    .help = "number of threads, which are pinned; 0: one per usable core"),
	OPT(FLAG, quick, .name = "quick",
	    .help = "use repeats of 20 ms instead of 100 ms, for a rough estimate"),
	OPT(FLAG, force, .name = "force",
	    .help = "merge the results even if the environment was measured on another device"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static void report(const char *what, int done, int total, void *ctx)
{
	rfl_cli_progress(ctx, "peaks measure: %d of %d, %s", done + 1, total, what);
	rfl_log(RFL_LOG_DEBUG, "%s", what);
}

static const struct rfl_column measure_columns[] = {
	{ .key = "ceiling", .title = "Ceiling" },
	{ .key = "value", .title = "Value", .kind = RFL_COLUMN_REAL },
	{ .key = "unit", .title = "Unit" },
	{ .key = "median", .title = "Median", .kind = RFL_COLUMN_REAL },
	{ .key = "min", .title = "Min", .kind = RFL_COLUMN_REAL },
	{ .key = "repeats", .title = "N", .kind = RFL_COLUMN_INT },
	{ .key = "threads", .title = "Threads", .kind = RFL_COLUMN_INT },
	{ .key = "loop", .title = "Loop" },
};

/* Add the row of a ceiling. If `run` is NULL, it has the reason why there is no measurement. */
static void add_row(struct rfl_table *t, const struct rfl_measured_cell *cell,
		    const struct rfl_measured_run *run, const char *name)
{
	rfl_table_text(t, name);
	rfl_table_real(t, run ? run->stats.max * cell->scale / 1e9 : (double)NAN);
	rfl_table_text(t, !cell->level                       ? "GFLOP/s"
			  : strcmp(cell->scope, "core") == 0 ? "GB/s per core"
							     : "GB/s");
	rfl_table_real(t, run ? run->stats.median * cell->scale / 1e9 : (double)NAN);
	rfl_table_real(t, run ? run->stats.min * cell->scale / 1e9 : (double)NAN);
	rfl_table_int(t, run ? (int64_t)run->stats.n : RFL_INT_UNKNOWN);
	rfl_table_int(t, run ? run->threads : RFL_INT_UNKNOWN);
	rfl_table_text(t, run ? run->kernel->summary : cell->reason);
}

static enum rfl_rc print_result(struct rfl_cli *cli, const struct rfl_measurement *m,
				enum rfl_format format, struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(measure_columns, RFL_ARRAY_LEN(measure_columns));
	char size[RFL_NUM_MAX];
	bool dram = false;
	size_t unsteady = 0;
	enum rfl_rc rc;

	for (size_t i = 0; i < m->ncells; i++) {
		const struct rfl_measured_cell *cell = &m->cells[i];
		const struct rfl_measured_run *best =
			cell->best == SIZE_MAX ? NULL : &m->runs[cell->best];

		add_row(t, cell, best, cell->key);
		unsteady += best && best->stats.max > RFL_PEAKS_UNSTEADY * best->stats.median;
		if (strcmp(cell->key, "DRAM") != 0)
			continue;
		dram = true;
		for (size_t j = 0; j < m->nruns; j++)
			if (strcmp(m->runs[j].key, cell->key) == 0 && !m->runs[j].trial &&
			    j != cell->best)
				add_row(t, cell, &m->runs[j], "  other loop");
	}
	rfl_table_note(t,
		       "%s, %s. Value: fastest repeat. Bytes: as requested by the loop, without "
		       "write-allocate.",
		       rfl_measure_device(m->machine), m->places);
	if (dram)
		rfl_table_note(
			t, "DRAM arrays of %s each%s",
			rfl_num_bytes((double)m->array_bytes, size, sizeof(size)),
			m->capped ? ", less than 4 times the last-level caches, for lack of memory"
				  : "");
	rfl_table_note(t, "Measured in %.0f s.", m->seconds);
	rc = rfl_cli_put_table(cli, t, format, err);
	/* 'peaks check' also reports these, but at this point the user can still repeat the
	 * measurement */
	if (rc == RFL_OK && unsteady)
		rfl_log(RFL_LOG_INFO,
			"%zu of %zu ceilings are unsteady (fastest repeat more than %.2f times the "
			"median); repeat the measurement while no other programs run",
			unsteady, m->ncells, RFL_PEAKS_UNSTEADY);
	return rc;
}

/* Check the keys of --only against those of the device. */
static enum rfl_rc check_only(const struct rfl_opt_list *only, const char *const *keys,
			      struct rfl_err *err)
{
	struct rfl_buf all;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&all, 0);
	for (size_t k = 0; keys[k]; k++)
		rfl_buf_printf(&all, "%s%s", k ? ", " : "", keys[k]);
	for (size_t i = 0; i < only->n && rc == RFL_OK; i++) {
		size_t k = 0;

		while (keys[k] && strcmp(keys[k], only->items[i]) != 0)
			k++;
		if (!keys[k])
			rc = rfl_fail(err, RFL_EUSAGE, 0,
				      "--only: '%s' is not a ceiling of this device; use %s",
				      only->items[i], rfl_buf_str(&all));
	}
	rfl_buf_fini(&all);
	return rc;
}

static enum rfl_rc measure_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct measure_args *a = args;
	struct rfl_measure_spec spec = { .threads = (int)a->threads,
					 .repeats = (int)a->repeats,
					 .quick = a->quick,
					 .only = a->only.items,
					 .progress = report,
					 .ctx = cli };
	struct rfl_machine *machine = NULL;
	struct rfl_peaks_edit *edit = NULL;
	struct rfl_measurement *m = NULL;
	json_t *value = NULL;
	enum rfl_rc rc;

	if ((rc = rfl_text_check_env_name("--env", a->env_name, RFL_EUSAGE, err)) ||
	    (rc = check_only(&a->only,
			     a->backend == RFL_DEVICE_CUDA ? rfl_gpu_keys : rfl_measure_keys, err)))
		return rc;
	if (a->backend == RFL_DEVICE_CUDA) {
		const struct rfl_peaks_gpu_args gpu = { .env_name = a->env_name,
							.output = a->output,
							.only = &a->only,
							.repeats = (int)a->repeats,
							.quick = a->quick,
							.force = a->force,
							.format = (enum rfl_format)a->format };

		return rfl_peaks_gpu_run(cli, &gpu, err);
	}
	if (a->backend == RFL_DEVICE_MPS)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"there are no loops for Apple GPUs; set their ceilings with "
				"'roofline peaks set'");
	/* open the file before the measurement, which takes a minute, so that an impossible merge
	 * fails immediately */
	if ((rc = rfl_machine_new(&machine, err)) ||
	    (a->output && (rc = rfl_peaks_edit_open(a->output, &edit, err))) ||
	    (edit && !a->force &&
	     (rc = rfl_peaks_edit_fits(edit, a->env_name, "cpu", rfl_measure_device(machine),
				       err))))
		goto done;
	if (!edit)
		rfl_log(RFL_LOG_INFO, "the result is not saved; use --output FILE to save it");
	spec.machine = machine;
	rc = rfl_measure(&spec, &m, err);
	rfl_cli_progress(cli, NULL);
	if (rc)
		goto done;
	if (m->capped)
		rfl_log(RFL_LOG_WARN,
			"too little memory for arrays of 4 times the last-level caches: the DRAM "
			"bandwidth may be too high; free memory and repeat");
	if (edit) {
		value = rfl_measurement_json(m);
		rc = value ? rfl_peaks_edit_merge(edit, a->env_name, value, err)
			   : rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the environment");
		if (rc || (rc = rfl_peaks_edit_save(edit, err)))
			goto done;
		rfl_log(RFL_LOG_INFO, "wrote environment %s to %s", a->env_name, a->output);
	}
	rc = print_result(cli, m, (enum rfl_format)a->format, err);
done:
	json_decref(value);
	rfl_measurement_free(m);
	rfl_peaks_edit_close(edit);
	rfl_machine_free(machine);
	return rc;
}

const struct rfl_cmd rfl_cmd_peaks_measure = {
	.name = "peaks measure",
	.summary = "measure the ceilings of this machine's processor or GPU",
	.description =
		"Measures the DRAM bandwidth (read, copy and triad, with ordinary and non-temporal "
		"stores, on arrays of 4 times the last-level caches), the read bandwidth of the "
		"caches, and the rate of FP32 and FP64 multiply-adds on all cores and on one core. "
		"Threads are pinned, one per core. The loops use the vector instructions of the "
		"processor (AVX-512, AVX2, SSE2 or NEON); 'roofline list benchmarks' lists "
		"them.\n\nWith --backend cuda, measures the first NVIDIA GPU: DRAM and L2 "
		"bandwidth, "
		"transfers to and from the host, multiply-adds of the vector units, and matrix "
		"products by mma instructions and by cuBLASLt, each for 2 seconds with clocks, "
		"power "
		"and throttling. Only the driver is needed; without cuBLASLt some ceilings are "
		"left out.\n\nIf the file already contains the environment, ceilings that were not "
		"measured are kept. Use an idle machine, because other programs lower the result.",
	.example = "roofline peaks measure --env lab_cpu --output peaks.json\n"
		   "roofline peaks measure --env lab_cpu --only DRAM --repeats 31\n"
		   "roofline peaks measure --env lab_gpu --backend cuda --output peaks.json",
	.opts = measure_opts,
	.args_size = sizeof(struct measure_args),
	.run = measure_run,
};
