/* peaks_measure.c - roofline peaks measure: the ceilings of this machine. */
#include "cli/cmd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/cmd/peaks_engine.h"
#include "cli/device_lock.h"
#include "cli/inputs.h"
#include "peaks/doubts.h"
#include "peaks/edit.h"
#include "peaks/gpu.h"
#include "peaks/measure.h"
#include "peaks/peaks.h"

struct measure_args {
	struct rfl_opt_list only;
	const char *env_name, *output, *engine;
	int64_t repeats, threads;
	int backend, format;
	bool all, quick, full, force;
};

/* The share of the time for loops if an engine also measures matrix products. */
#define LOOPS_SHARE (2.0 / 3)

/* Total time, and the least duration of each of some thirty runs on a GPU. */
static const struct pace {
	double budget_s, gpu_run_s;
} usual = { RFL_MEASURE_S, 2 }, quick = { RFL_MEASURE_QUICK_S, 0.2 },
  full = { RFL_MEASURE_FULL_S, 6 };

#define OPT(kind, member, ...) RFL_OPT(struct measure_args, kind, member, __VA_ARGS__)

static const struct rfl_opt measure_opts[] = {
	OPT(TEXT, env_name, .name = "env", .meta = "NAME", .required = true,
	    .help = "name of the environment in the file, such as lab_cpu"),
	OPT(TEXT, output, .name = "output", .meta = "FILE",
	    .help = "peaks file into which the environment is merged; default: write no file"),
	OPT(LIST, only, .name = "only", .meta = "KEY",
	    .help = "ceilings to measure, such as fp32.vector (docs/peaks.md lists them); default: "
		    "all except scalar and nofma"),
	OPT(FLAG, all, .name = "all", .help = "also measure the scalar and nofma ceilings"),
	OPT(CHOICE, backend, .name = "backend", .meta = "DEVICE", .choices = rfl_device_names,
	    .def = "cpu",
	    .help = "device to measure; cuda is the first GPU in CUDA_VISIBLE_DEVICES; mps is "
		    "measured through an engine only"),
	OPT(TEXT, engine, .name = "engine", .meta = "NAME", .def = "auto",
	    .help = "engine whose matrix products are measured (the gemm ceilings), such as "
		    "torch; none: leave them out"),
	OPT(INT, repeats, .name = "repeats", .meta = "N", .min = 3, .max = 1000,
	    .help = "number of repeats of every loop; default: as many as the time allows"),
	OPT(INT, threads, .name = "threads", .meta = "N", .def = "0", .min = 0, .max = 8192,
	    .help = "number of threads, which are pinned; 0: one per usable core"),
	OPT(FLAG, quick, .name = "quick", .against = "full",
	    .help = "take about 15 s instead of 60 s, for a rough estimate"),
	OPT(FLAG, full, .name = "full", .help = "take about 3 minutes"),
	OPT(FLAG, force, .name = "force",
	    .help = "merge the results even if the environment was measured on another device"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static void report(const char *when, const char *what, void *ctx)
{
	rfl_cli_progress(ctx, "peaks measure: %s, %s", when, what);
	rfl_log(RFL_LOG_DEBUG, "%s", what);
}

/* A ceiling, or another run for it. Rates in GFLOP/s or GB/s. */
struct row {
	const char *name, *unit, *throttle, *loop;
	double value, median, min, burst, power_w;
	int64_t repeats, threads, clock_mhz;
};

enum { OF_CPU = 1, OF_GPU = 2 };

#define COLUMN(type, member, key_, title_, when_)                                             \
	{                                                                                     \
		.kind = RFL_COLUMN_##type, .key = (key_), .title = (title_), .when = (when_), \
		RFL_CELL(struct row, member)                                                  \
	}
static const struct rfl_column columns[] = {
	COLUMN(TEXT, name, "ceiling", "Ceiling", 0),
	COLUMN(REAL, value, "value", "Value", 0),
	COLUMN(TEXT, unit, "unit", "Unit", 0),
	COLUMN(REAL, median, "median", "Median", OF_CPU),
	COLUMN(REAL, min, "min", "Min", OF_CPU),
	COLUMN(REAL, burst, "burst", "Burst", OF_GPU),
	COLUMN(INT, repeats, "repeats", "N", 0),
	COLUMN(INT, threads, "threads", "Threads", OF_CPU),
	COLUMN(INT, clock_mhz, "clock_mhz", "MHz", 0),
	COLUMN(REAL, power_w, "power_w", "W", OF_GPU),
	COLUMN(TEXT, throttle, "throttle", "Throttled by", OF_GPU),
	COLUMN(TEXT, loop, "loop", "Loop", 0),
};

/* @param stats  of the repeats; NULL: `loop` is the reason why there are none */
static struct row row_of(const char *name, const char *unit, const char *loop,
			 const struct rfl_stats *stats, double scale)
{
	static const struct rfl_stats none = { .median = NAN, .min = NAN, .max = NAN };
	const struct rfl_stats *s = stats ? stats : &none;

	return (struct row){ .name = name,
			     .unit = unit,
			     .throttle = "",
			     .loop = loop,
			     .value = s->max * scale / 1e9,
			     .median = s->median * scale / 1e9,
			     .min = s->min * scale / 1e9,
			     .burst = s->max * scale / 1e9,
			     .power_w = NAN,
			     .repeats = stats ? (int64_t)s->n : RFL_INT_UNKNOWN,
			     .threads = RFL_INT_UNKNOWN,
			     .clock_mhz = RFL_INT_UNKNOWN };
}

/* @param run  NULL: there is no measurement */
static void add_run(struct rfl_table *t, const char *name, const struct rfl_measured_cell *cell,
		    const struct rfl_measured_run *run)
{
	const char *unit = !cell->level                       ? rfl_peaks_unit(cell->key)
			   : strcmp(cell->scope, "core") == 0 ? "GB/s per core"
							      : "GB/s";
	struct row row = row_of(name, unit, run ? run->kernel->summary : cell->reason,
				run ? &run->stats : NULL, cell->scale);

	if (run)
		row.threads = run->threads;
	if (run && !isnan(run->clock_hz))
		row.clock_mhz = llround(run->clock_hz / 1e6);
	rfl_table_add(t, &row, 1, sizeof(row));
}

static void add_gpu_run(struct rfl_table *t, const char *name, const struct rfl_gpu_cell *cell,
			const struct rfl_gpu_run *run)
{
	struct row row = row_of(name, rfl_gpu_unit(cell->key), run ? run->what : cell->reason,
				run ? &run->timed.stats : NULL, 1);
	char words[256] = "";

	if (run) {
		row.value = run->timed.sustained / 1e9;
		row.power_w = run->timed.samples.power_mean_w;
		rfl_throttle_words(run->timed.samples.throttle_bits, words, sizeof(words));
		row.throttle = words;
	}
	if (run && !isnan(run->timed.samples.sm_clock_mean_hz))
		row.clock_mhz = llround(run->timed.samples.sm_clock_mean_hz / 1e6);
	rfl_table_add(t, &row, 1, sizeof(row));
}

/* @param all  whether ceilings that this processor lacks are only noted */
static void print_loops(struct rfl_table *t, const struct rfl_measurement *m, bool all)
{
	char size[RFL_NUM_MAX], lacking[160] = "";
	bool dram = false;

	for (const struct rfl_measured_cell *cell = m->cells; cell < m->cells + m->ncells; cell++) {
		if (cell->unsupported && all) {
			snprintf(lacking + strlen(lacking), sizeof(lacking) - strlen(lacking),
				 "%s%s", *lacking ? ", " : "", cell->key);
			continue;
		}
		add_run(t, cell->key, cell, cell->best == SIZE_MAX ? NULL : &m->runs[cell->best]);
		for (size_t i = 0; i < cell->ndoubts; i++)
			rfl_log(RFL_LOG_DEBUG, "%s: %s", cell->key, cell->doubts[i]);
		if (strcmp(cell->key, "DRAM") != 0)
			continue;
		dram = true;
		for (size_t i = 0; i < m->nruns; i++)
			if (strcmp(m->runs[i].key, cell->key) == 0 &&
			    m->runs[i].kind == RFL_RUN_FULL && i != cell->best)
				add_run(t, "  other loop", cell, &m->runs[i]);
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
	if (*lacking)
		rfl_table_note(t, "Not supported by this processor: %s.", lacking);
}

static void print_gpu(struct rfl_table *t, const struct rfl_gpu_measurement *m)
{
	char size[RFL_NUM_MAX];

	for (const struct rfl_gpu_cell *cell = m->cells; cell < m->cells + m->ncells; cell++) {
		add_gpu_run(t, cell->key, cell,
			    cell->best == SIZE_MAX ? NULL : &m->runs[cell->best]);
		for (size_t i = 0; i < m->nruns; i++)
			if (m->runs[i].key == cell->key && i != cell->best && !m->runs[i].sweep)
				add_gpu_run(t, "  other", cell, &m->runs[i]);
	}
	rfl_table_note(t,
		       "%s, %d multiprocessors. Value: sustained rate, the median of the second "
		       "half of the repeats; burst: fastest repeat.",
		       m->name, m->multiprocessors);
	if (m->array_bytes)
		rfl_table_note(t, "Arrays of %s each%s",
			       rfl_num_bytes((double)m->array_bytes, size, sizeof(size)),
			       m->capped ? ", for lack of free device memory" : "");
}

/* Name the doubtful ceilings, while the user can still repeat the measurement. */
static void warn(const struct measure_args *a, json_t *value)
{
	struct rfl_buf lines;

	rfl_buf_init(&lines, 0);
	if (rfl_peaks_doubts_of(a->env_name, value, &lines)) {
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&lines));
		if (a->output)
			rfl_log(RFL_LOG_INFO, "'roofline peaks check %s' explains each of them",
				a->output);
	}
	rfl_buf_fini(&lines);
}

/* @param m, gpu  NULL: not measured */
static enum rfl_rc print_result(struct rfl_cli *cli, const struct rfl_measurement *m,
				const struct rfl_gpu_measurement *gpu,
				const struct rfl_engine_peaks *e, const struct measure_args *a,
				struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_of(columns, RFL_ARRAY_LEN(columns), gpu ? OF_GPU : OF_CPU);

	if (m)
		print_loops(t, m, a->only.n == 0);
	if (gpu)
		print_gpu(t, gpu);
	for (const struct rfl_engine_peak *p = e->peaks; p < e->peaks + e->n; p++) {
		struct row row =
			row_of(p->key, rfl_gpu_unit(p->key), p->reason[0] ? p->reason : p->kernel,
			       p->reason[0] ? NULL : &p->stats, 1);

		if (p->threads > 0)
			row.threads = p->threads;
		row.burst = NAN;
		rfl_table_add(t, &row, 1, sizeof(row));
	}
	if (e->n > 0)
		rfl_table_note(t, "gemm: attained by matrix products of the engine's library; it "
				  "is never used as a roof.");
	if (m || gpu)
		rfl_table_note(t, "Measured in %.0f s.", m ? m->seconds : gpu->seconds);
	return rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
}

/* Whether --only names a ceiling of the unit class gemm, or one of another. */
static bool is_selected(const struct measure_args *a, bool gemm)
{
	bool found = a->only.n == 0;

	for (size_t i = 0; i < a->only.n; i++)
		found = found || rfl_peaks_is_gemm(a->only.items[i]) == gemm;
	return found;
}

static bool has_no_engine(const struct measure_args *a)
{
	return strcmp(a->engine, "none") == 0;
}

static enum rfl_rc check_engine(const struct measure_args *a, struct rfl_err *err)
{
	const bool cpu = a->backend == RFL_DEVICE_CPU;

	if (!has_no_engine(a) ||
	    (a->backend != RFL_DEVICE_MPS && (a->only.n == 0 || !is_selected(a, true))))
		return RFL_OK;
	return rfl_fail(err, RFL_EUSAGE, 0,
			"--engine none: %s is measured through an engine; leave it out",
			cpu ? "gemm" : rfl_device_names[a->backend]);
}

static const struct pace *pace_of(const struct measure_args *a)
{
	return a->quick ? &quick : a->full ? &full : &usual;
}

/* Whether the engine has anything to measure. */
static bool needs_engine(const struct measure_args *a)
{
	return !has_no_engine(a) && (a->backend == RFL_DEVICE_MPS || is_selected(a, true));
}

/* Measure through the engine.
 * @param begin_s   when the whole measurement began
 * @param optional  without one, what was measured before is the result */
static enum rfl_rc use_engine(struct rfl_cli *cli, const struct measure_args *a, double begin_s,
			      bool optional, struct rfl_engine_peaks *ret, struct rfl_err *err)
{
	struct rfl_peaks *known = NULL;
	struct rfl_engine_peaks_spec spec = { .engine = a->engine,
					      .device = (enum rfl_device)a->backend,
					      .env = a->env_name,
					      .only = &a->only,
					      .threads = a->threads,
					      .repeats = a->repeats,
					      .budget_s = pace_of(a)->budget_s };
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	/* its share of the time remains, even if the loops needed more than theirs on a busy
	 * machine; a fixed number of repeats has no time limit */
	spec.begin_s = a->repeats ? rfl_clock_s()
				  : fmax(begin_s, rfl_clock_s() - LOOPS_SHARE * spec.budget_s);
	*ret = (struct rfl_engine_peaks){ .n = 0 };
	if (!needs_engine(a))
		return RFL_OK;
	if (a->output && rfl_file_exists(a->output) &&
	    (rc = rfl_peaks_load(a->output, &known, err)))
		return rc;
	spec.known = known ? rfl_peaks_find(known, a->env_name) : NULL;
	rc = rfl_engine_peaks_measure(cli, &spec, ret, &why);
	rfl_peaks_free(known);
	if (rc && rc != RFL_EINTR && optional) {
		rfl_log(a->only.n > 0 || strcmp(a->engine, "auto") != 0 ? RFL_LOG_WARN
									: RFL_LOG_INFO,
			"the gemm ceilings are not measured: %s", why.msg);
		return RFL_OK;
	}
	return rc ? rfl_err_pass(err, &why) : RFL_OK;
}

/* An environment for the results of the engine. NULL if out of memory. */
static json_t *environment(const char *device)
{
	json_t *compute = json_object(), *memory = json_array();

	(void)rfl_measure_complete(compute, memory, "device");
	return json_pack("{s:s, s:{s:s}, s:o, s:o}", "kind", "gpu", "device", "name", device,
			 "compute", compute, "memory", memory);
}

static bool is_engines(const char *key)
{
	for (size_t i = 0; rfl_measure_keys[i]; i++)
		if (strcmp(rfl_measure_keys[i], key) == 0)
			return rfl_peaks_is_gemm(key);
	return false;
}

/* Check the keys of --only against those of the device. */
static enum rfl_rc check_only(const struct rfl_opt_list *only, const char *const *keys,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	struct rfl_buf all;
	const char *near;

	rfl_buf_init(&all, 0);
	for (size_t k = 0; keys[k]; k++)
		rfl_buf_printf(&all, "%s%s", k ? ", " : "", keys[k]);
	for (size_t i = 0; i < only->n && rc == RFL_OK; i++) {
		size_t k = 0;

		while (keys[k] && strcmp(keys[k], only->items[i]) != 0)
			k++;
		if (keys[k] || is_engines(only->items[i]))
			continue;
		near = rfl_text_nearest(only->items[i], keys);
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--only: '%s' is not a ceiling of this device; %s%s%s",
			      only->items[i], near ? "did you mean " : "use ",
			      near ? near : rfl_buf_str(&all), near ? "?" : "");
	}
	rfl_buf_fini(&all);
	return rc;
}

/* Measure the selected ceilings with this program's own loops.
 * @param begin_s  set to the time at which a device was free */
static enum rfl_rc use_loops(struct rfl_cli *cli, const struct measure_args *a,
			     const struct rfl_machine *machine, struct rfl_measurement **m,
			     struct rfl_gpu_measurement **gpu, double *begin_s, struct rfl_err *err)
{
	const double share = needs_engine(a) ? LOOPS_SHARE : 1;
	const struct rfl_cupti_places places = rfl_cli_places(cli);
	const struct rfl_measure_spec spec = { .machine = machine,
					       .threads = (int)a->threads,
					       .repeats = (int)a->repeats,
					       .budget_s = share * pace_of(a)->budget_s,
					       .only = a->only.items,
					       .all = a->all,
					       .progress = report,
					       .ctx = cli };
	const struct rfl_gpu_spec gpu_spec = { .only = a->only.items,
					       .repeats = (int)a->repeats,
					       .sustained_s = share * pace_of(a)->gpu_run_s,
					       .places = { places.cuda_home, places.beside },
					       .progress = report,
					       .ctx = cli };
	struct rfl_device_lock lock = { .n = 0 };
	enum rfl_rc rc;

	if (a->backend == RFL_DEVICE_MPS || !is_selected(a, false))
		return RFL_OK;
	if (a->backend == RFL_DEVICE_CUDA) {
		if ((rc = rfl_device_lock_wait(&lock, "cuda", 1, cli, err)))
			return rc;
		*begin_s = rfl_clock_s();
		rc = rfl_gpu_measure(&gpu_spec, gpu, err);
		rfl_device_lock_release(&lock);
	} else {
		rc = rfl_measure(&spec, m, err);
	}
	rfl_cli_progress(cli, NULL);
	if (rc == RFL_OK && *gpu && (*gpu)->capped)
		rfl_log(RFL_LOG_WARN,
			"too little free device memory for arrays of 32 times L2 and 256 MiB: the "
			"DRAM bandwidth may be too high; end other programs on the GPU and repeat");
	if (rc == RFL_OK && *m && (*m)->capped)
		rfl_log(RFL_LOG_WARN,
			"too little memory for arrays of 4 times the last-level caches: the DRAM "
			"bandwidth may be too high; free memory and repeat");
	return rc;
}

/* Merge an environment into the file. Called without one before the measurement, so that a file
 * that cannot be changed, or belongs to another device, is reported before a minute is spent.
 * @param device  NULL: not yet known
 * @param value   NULL: only check */
static enum rfl_rc merge(const struct measure_args *a, const char *device, const json_t *value,
			 struct rfl_err *err)
{
	struct rfl_peaks_edit *edit = NULL;
	enum rfl_rc rc = rfl_peaks_edit_open(a->output, &edit, err);

	if (rc == RFL_OK && device && !a->force)
		rc = rfl_peaks_edit_fits(edit, a->env_name,
					 a->backend == RFL_DEVICE_CPU ? "cpu" : "gpu", device, err);
	if (rc == RFL_OK && value) {
		rfl_peaks_edit_merge(edit, a->env_name, value);
		rc = rfl_peaks_edit_save(edit, err);
	}
	rfl_peaks_edit_close(edit);
	if (rc == RFL_OK && value)
		rfl_log(RFL_LOG_INFO, "wrote environment %s to %s", a->env_name, a->output);
	return rc;
}

static enum rfl_rc measure_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct measure_args *a = args;
	const bool cpu = a->backend == RFL_DEVICE_CPU, cuda = a->backend == RFL_DEVICE_CUDA;
	struct rfl_machine *machine = NULL;
	struct rfl_measurement *m = NULL, none = { .threads = 0 };
	struct rfl_gpu_measurement *gpu = NULL;
	struct rfl_engine_peaks engine;
	const char *device = NULL; /* NULL: the engine names it */
	json_t *value = NULL;
	double begin_s;
	char name[256];
	enum rfl_rc rc, saved = RFL_OK;

	if ((rc = rfl_text_check_env_name("--env", a->env_name, RFL_EUSAGE, err)) ||
	    (rc = check_only(&a->only, cuda ? rfl_gpu_keys : rfl_measure_keys, err)) ||
	    (rc = check_engine(a, err)) || (rc = rfl_machine_new(&machine, err)))
		return rc;
	if (cuda && is_selected(a, false)) {
		if ((rc = rfl_gpu_name(name, sizeof(name), err)))
			goto done;
		device = name;
	} else if (cpu) {
		device = rfl_measure_device(machine);
	}
	if (a->output && (rc = merge(a, device, NULL, err)))
		goto done;
	if (!a->output)
		rfl_log(RFL_LOG_INFO, "the result is not saved; use --output FILE to save it");
	if (!cpu && (a->threads > 0 || a->all))
		rfl_log(RFL_LOG_WARN, "%s has no effect with --backend %s",
			a->all ? "--all" : "--threads", rfl_device_names[a->backend]);
	begin_s = rfl_clock_s();
	if ((rc = use_loops(cli, a, machine, &m, &gpu, &begin_s, err)) ||
	    (rc = use_engine(cli, a, begin_s, m || gpu, &engine, err)))
		goto done;
	/* an engine does not name an Apple GPU, which is part of the processor */
	if (!device)
		device = engine.device[0] ? engine.device : rfl_measure_device(machine);
	none.machine = machine;
	value = gpu   ? rfl_gpu_measurement_json(gpu)
		: cpu ? rfl_measurement_json(m ? m : &none)
		      : environment(device);
	if ((rc = rfl_engine_peaks_add(&engine, value, err)))
		goto done;
	if (a->output)
		saved = merge(a, device, value, err);
	/* also if it was not saved, so that the measurement is not lost */
	rc = print_result(cli, m, gpu, &engine, a, err);
	rc = saved ? saved : rc;
	if (rc == RFL_OK)
		warn(a, value);
done:
	json_decref(value);
	rfl_measurement_free(m);
	rfl_gpu_measurement_free(gpu);
	rfl_machine_free(machine);
	return rc;
}

const struct rfl_cmd rfl_cmd_peaks_measure = {
	.name = "peaks measure",
	.summary = "measure the ceilings of this machine's processor or GPU",
	.description =
		"Measures the DRAM bandwidth from all cores, one core, one socket and another NUMA "
		"node; the read bandwidth of the caches; and the rate of multiply-adds in FP64, "
		"FP32, BF16, FP16 and INT8 (in Gop/s), where the processor has instructions "
		"for them, on all cores and on one core. Threads are pinned, one per core. "
		"'roofline list benchmarks' lists the loops; docs/peaks.md explains them.\n\n"
		"'vector' is the arithmetic of vector registers and 'matrix' that of AMX, BFMMLA "
		"or "
		"SMMLA. The 'scalar' and 'nofma' ceilings show what programs lose without vector "
		"instructions, or without fused multiply-adds; they are measured with --all or if "
		"named with --only. The gemm ceilings are the rates that the engine's library "
		"attains in matrix products; they are measured if an engine can be used.\n\n"
		"With --backend cuda, measures the first NVIDIA GPU: DRAM and L2 bandwidth, "
		"transfers to and from the host, multiply-adds of the vector units, and matrix "
		"products by mma instructions and by cuBLASLt, each for 2 seconds (--quick: 0.2, "
		"--full: 6), and records clocks, power and throttling. Only the driver is needed; "
		"without cuBLASLt some ceilings are left out. With --backend mps, the engine "
		"measures everything: "
		"matrix products and, unless the file has a better value, the bandwidth of "
		"elementwise operations.\n\nIf the file already contains the environment, "
		"ceilings that were not measured are kept. Use an idle machine, because other "
		"programs lower the result: disturbed repeats are run again, and remaining doubts "
		"are recorded in the file and reported by 'peaks check', 'points' and 'plot'.",
	.example = "roofline peaks measure --env lab_cpu --output peaks.json\n"
		   "roofline peaks measure --env lab_gpu --backend cuda --output peaks.json\n"
		   "roofline peaks measure --env lab_cpu --only DRAM --repeats 31\n"
		   "roofline peaks measure --env lab_cpu --only fp32.gemm bf16.gemm --output "
		   "peaks.json\n"
		   "roofline peaks measure --env lab_mac --backend mps --output peaks.json",
	.opts = measure_opts,
	.args_size = sizeof(struct measure_args),
	.run = measure_run,
};
