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
#include "runner/run.h"

struct measure_args {
	struct rfl_opt_list only;
	const char *env, *output, *engine;
	int64_t repeats, threads;
	int backend, format;
	bool all, quick, full, force;
};

/* The share of the time for loops if an engine also measures GEMMs. */
#define LOOPS_SHARE (2.0 / 3)

/* Total time, and the least duration of each of some thirty runs on a GPU. */
static const struct pace {
	double budget_s, gpu_run_s;
} usual = { RFL_MEASURE_S, 2 }, quick = { RFL_MEASURE_QUICK_S, 0.2 },
  full = { RFL_MEASURE_FULL_S, 6 };

#define OPT(kind, member, ...) RFL_OPT(struct measure_args, kind, member, __VA_ARGS__)

static const struct rfl_opt measure_opts[] = {
	OPT(TEXT, env, .name = "env", .often = true, .meta = "NAME", .project = "env",
	    .help = RFL_ENV_HELP),
	OPT(TEXT, output, RFL_OPT_OUTPUT, .project = "peaks",
	    .help = "peaks file into which the environment is merged"),
	OPT(LIST, only, .name = "only", .often = true, .meta = "KEY",
	    .help = "ceilings to measure, such as fp32.vector (docs/reference/peaks.md lists "
		    "them); default: "
		    "all except scalar and nofma"),
	OPT(FLAG, all, .name = "all", .help = "also measure the scalar and nofma ceilings"),
	OPT(CHOICE, backend, .name = "backend", .often = true, .meta = "DEVICE",
	    .choices = rfl_device_names, .def = "cpu",
	    .help = "device to measure; cuda is the first GPU in CUDA_VISIBLE_DEVICES; mps is "
		    "measured through an engine only"),
	OPT(TEXT, engine, .name = "engine", .often = true, .meta = "NAME", .def = "auto",
	    .help = "engine whose GEMMs are measured (the gemm ceilings), such as torch; "
		    "none: leave them out"),
	OPT(INT, repeats, .name = "repeats", .meta = "N", .min = 3, .max = 1000,
	    .help = "number of repeats of every loop; default: as many as the time allows"),
	OPT(INT, threads, .name = "threads", .often = true, .meta = "N", .def = "0", .min = 0,
	    .max = 8192, .help = "number of threads, which are pinned; 0: one per usable core"),
	OPT(FLAG, quick, .name = "quick", .often = true, .against = "full",
	    .help = "aim at 15 s instead of 60 s, for a rough estimate; a busy machine and the "
		    "engine's GEMMs take longer"),
	OPT(FLAG, full, .name = "full", .often = true, .help = "aim at 3 minutes"),
	OPT(FLAG, force, .name = "force",
	    .help = "merge the results even if the environment was measured on another device"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static const char *env_of(const struct measure_args *a)
{
	return a->env ? a->env : rfl_device_names[a->backend];
}

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

static const struct rfl_column columns[] = {
	RFL_COLUMN(TEXT, struct row, name, "ceiling", "Ceiling"),
	RFL_COLUMN(REAL, struct row, value, "value", "Value"),
	RFL_COLUMN(TEXT, struct row, unit, "unit", "Unit"),
	RFL_COLUMN(REAL, struct row, median, "median", "Median", .when = OF_CPU),
	RFL_COLUMN(REAL, struct row, min, "min", "Min", .when = OF_CPU),
	RFL_COLUMN(REAL, struct row, burst, "burst", "Burst", .when = OF_GPU),
	RFL_COLUMN(INT, struct row, repeats, "repeats", "N"),
	RFL_COLUMN(INT, struct row, threads, "threads", "Threads", .when = OF_CPU),
	RFL_COLUMN(INT, struct row, clock_mhz, "clock_mhz", "MHz"),
	RFL_COLUMN(REAL, struct row, power_w, "power_w", "W", .when = OF_GPU),
	RFL_COLUMN(TEXT, struct row, throttle, "throttle", "Throttled by", .when = OF_GPU),
	RFL_COLUMN(TEXT, struct row, loop, "loop", "Loop"),
};

static void add_row(struct rfl_table *t, const struct rfl_measured_peak *one)
{
	const struct rfl_peak_level *l = &one->level;
	const struct rfl_peak *p = &l->peak;
	const bool has_value = rfl_peak_usable(p);
	const struct row row = {
		.name = one->other ? "  other" : one->key,
		.unit = !l->level                       ? rfl_peaks_unit(one->key)
			: strcmp(l->scope, "core") == 0 ? "GB/s per core"
							: "GB/s",
		.throttle = p->throttled ? p->throttled : "",
		.loop = has_value ? p->kernel : p->reason,
		.value = p->value / 1e9,
		.median = p->stats.median / 1e9,
		.min = p->stats.min / 1e9,
		.burst = isnan(p->sustained_s) ? (double)NAN : p->stats.max / 1e9,
		.power_w = p->power_w,
		.repeats = has_value ? p->stats.n : RFL_INT_UNKNOWN,
		.threads = p->threads ? p->threads : RFL_INT_UNKNOWN,
		.clock_mhz = isnan(p->clock_hz) ? RFL_INT_UNKNOWN : llround(p->clock_hz / 1e6),
	};

	rfl_table_add(t, &row, 1, sizeof(row));
	for (size_t i = 0; i < p->ndoubts; i++)
		rfl_log(RFL_LOG_DEBUG, "%s: %s", one->key, p->doubts[i]);
}

/* Explain the ceilings that were measured by loops. */
static void add_notes(struct rfl_table *t, const struct rfl_measurement *m, bool cpu)
{
	char size[RFL_NUM_MAX];

	if (cpu)
		rfl_table_note(t,
			       "%s, %s. Value: fastest repeat. Bytes: as requested by the loop, "
			       "without write-allocate.",
			       m->env.device, m->places);
	else
		rfl_table_note(t,
			       "%s, %d multiprocessors. Value: sustained rate, the median of the "
			       "second half of the repeats; burst: fastest repeat.",
			       m->env.device, m->env.units);
	if (m->array_bytes)
		rfl_table_note(
			t, "%s of %s each%s", cpu ? "DRAM arrays" : "Arrays",
			rfl_num_bytes((double)m->array_bytes, size, sizeof(size)),
			!m->capped ? ""
			: cpu      ? ", less than 4 times the last-level caches, for lack of memory"
				   : ", for lack of free device memory");
}

/* Name the doubtful ceilings, while the user can still repeat the measurement. */
static void warn(const struct measure_args *a, struct rfl_measurement *m)
{
	RFL_AUTO(buf) lines = { .len = 0 };

	if (!rfl_peaks_doubts_of(env_of(a), &m->env, m->arena, &lines))
		return;
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&lines));
	if (a->output)
		rfl_log(RFL_LOG_INFO, "'roofline peaks check %s' explains each of them", a->output);
}

static enum rfl_rc print_result(struct rfl_cli *cli, const struct rfl_measurement *m,
				const struct measure_args *a, struct rfl_err *err)
{
	const bool cpu = a->backend == RFL_DEVICE_CPU, loops = m->seconds > 0;
	struct rfl_table *t =
		rfl_table_of(columns, RFL_ARRAY_LEN(columns), loops && !cpu ? OF_GPU : OF_CPU);
	char lacking[160] = "";
	bool gemm = false;

	for (const struct rfl_measured_peak *one = m->all; one < m->all + m->n; one++) {
		gemm |= rfl_peaks_is_gemm(one->key);
		if (cpu && a->only.n == 0 && one->level.peak.status == RFL_PEAK_UNSUPPORTED)
			snprintf(lacking + strlen(lacking), sizeof(lacking) - strlen(lacking),
				 "%s%s", *lacking ? ", " : "", one->key);
		else
			add_row(t, one);
	}
	if (loops)
		add_notes(t, m, cpu);
	if (*lacking)
		rfl_table_note(t, "Not supported by this CPU: %s.", lacking);
	if (gemm)
		rfl_table_note(t, "gemm: achieved by GEMMs of the engine's library; it "
				  "is never used as a roof.");
	if (loops)
		rfl_table_note(t, "Measured in %.0f s.", m->seconds);
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

/* Whether the engine has anything to measure. */
static bool needs_engine(const struct measure_args *a)
{
	return a->backend == RFL_DEVICE_MPS || is_selected(a, true);
}

static bool has_engine(const struct measure_args *a)
{
	return strcmp(a->engine, "none") != 0;
}

static enum rfl_rc check_engine(const struct measure_args *a, struct rfl_err *err)
{
	if (has_engine(a) || !needs_engine(a) || (a->backend != RFL_DEVICE_MPS && a->only.n == 0))
		return RFL_OK;
	return rfl_usage(err, "--engine none: %s is measured through an engine; leave it out",
			 a->backend == RFL_DEVICE_CPU ? "gemm" : rfl_device_names[a->backend]);
}

static const struct pace *pace_of(const struct measure_args *a)
{
	return a->quick ? &quick : a->full ? &full : &usual;
}

/* Measure through the engine.
 * @param begin_s  when the whole measurement began
 * @param m        if it has ceilings, an engine is not required */
static enum rfl_rc use_engine(struct rfl_cli *cli, const struct measure_args *a, double begin_s,
			      struct rfl_measurement *m, struct rfl_err *err)
{
	RFL_AUTOPTR(peaks) known = NULL;
	struct rfl_engine_peaks_spec spec = { .engine = a->engine,
					      .device = (enum rfl_device)a->backend,
					      .env = env_of(a),
					      .only = &a->only,
					      .threads = a->threads,
					      .repeats = a->repeats,
					      .budget_s = pace_of(a)->budget_s };
	const bool optional = m->n > 0;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!has_engine(a) || !needs_engine(a))
		return RFL_OK;
	/* its share of the time remains, even if the loops needed more than theirs on a busy
	 * machine; a fixed number of repeats has no time limit */
	spec.begin_s = a->repeats ? rfl_clock_s()
				  : fmax(begin_s, rfl_clock_s() - LOOPS_SHARE * spec.budget_s);
	if (a->output && rfl_file_exists(a->output) &&
	    (rc = rfl_peaks_load(a->output, &known, err)))
		return rc;
	spec.known = known ? rfl_peaks_find(known, env_of(a)) : NULL;
	rc = rfl_engine_peaks_measure(cli, &spec, m, &why);
	if (!rc || rc == RFL_EINTR || !optional)
		return rc ? rfl_err_pass(err, &why) : RFL_OK;
	rfl_log(a->only.n > 0 || strcmp(a->engine, "auto") != 0 ? RFL_LOG_WARN : RFL_LOG_INFO,
		"the gemm ceilings are not measured: %s", why.msg);
	return RFL_OK;
}

static bool is_engines(const char *key)
{
	for (size_t i = 0; rfl_measure_keys[i]; i++)
		if (strcmp(rfl_measure_keys[i], key) == 0)
			return rfl_peaks_is_gemm(key);
	return false;
}

/* Shorten the name of a ceiling in a peaks file to its key: "memory.DRAM.core.gbs" to
 * "DRAM.1core". */
static void shorten(char *name)
{
	const size_t n = strlen(name);
	char *scope;

	if (strncmp(name, "compute.", 8) == 0) {
		memmove(name, name + 8, n - 7);
	} else if (strncmp(name, "memory.", 7) == 0 && n > 11 &&
		   strcmp(name + n - 4, ".gbs") == 0) {
		name[n - 4] = '\0';
		memmove(name, name + 7, n - 10);
		scope = strchr(name, '.');
		if (scope) {
			memmove(scope + 2, scope + 1, strlen(scope));
			scope[1] = '1';
		}
	}
}

/* Check the keys of --only against the device's keys; replace names of a peaks file by keys. */
static enum rfl_rc check_only(const struct rfl_opt_list *only, const char *const *keys,
			      struct rfl_err *err)
{
	char advice[RFL_ADVICE_SIZE];

	for (size_t i = 0; i < only->n; i++) {
		size_t k = 0;

		shorten((char *)(uintptr_t)only->items[i]);

		while (keys[k] && strcmp(keys[k], only->items[i]) != 0)
			k++;
		if (keys[k] || is_engines(only->items[i]))
			continue;
		return rfl_usage(err, "--only: '%s' is not a ceiling of this device; %s",
				 only->items[i],
				 rfl_text_advice(only->items[i], keys, 1, NULL, advice));
	}
	return RFL_OK;
}

/* Measure the selected ceilings with this program's own loops.
 * @param begin_s  set to the time at which a device was free */
static enum rfl_rc use_loops(struct rfl_cli *cli, const struct measure_args *a,
			     const struct rfl_machine *machine, struct rfl_measurement *m,
			     double *begin_s, struct rfl_err *err)
{
	const double share = has_engine(a) && needs_engine(a) ? LOOPS_SHARE : 1;
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
		rc = rfl_gpu_measure(&gpu_spec, m, err);
		rfl_device_lock_release(&lock);
	} else {
		rc = rfl_measure(&spec, m, err);
	}
	rfl_cli_progress(cli, NULL);
	if (rc == RFL_OK && m->capped)
		rfl_log(RFL_LOG_WARN, "%s",
			a->backend == RFL_DEVICE_CUDA
				? "too little free device memory for arrays of 32 times L2 and 256 "
				  "MiB: the DRAM bandwidth may be too high; end other programs on "
				  "the GPU and repeat"
				: "too little memory for arrays of 4 times the last-level caches: "
				  "the DRAM bandwidth may be too high; free memory and repeat");
	return rc;
}

/* Merge an environment into the file. Called without one before the measurement, so that a file
 * that cannot be changed, or belongs to another device, is reported before a minute is spent.
 * @param device  NULL: not yet known
 * @param env     NULL: only check */
static enum rfl_rc merge(const struct measure_args *a, const char *device,
			 const struct rfl_peaks_env *env, struct rfl_err *err)
{
	json_auto_t *value = env ? rfl_peaks_env_json(env) : NULL;
	RFL_AUTOPTR(peaks_edit) edit = NULL;
	enum rfl_rc rc;

	if ((rc = rfl_peaks_edit_open(a->output, &edit, err)) ||
	    (device && !a->force &&
	     (rc = rfl_peaks_edit_fits(edit, env_of(a),
				       a->backend == RFL_DEVICE_CPU ? "cpu" : "gpu", device, err))))
		return rc;
	if (!value)
		return RFL_OK;
	rfl_peaks_edit_merge(edit, env_of(a), value);
	if (!(rc = rfl_peaks_edit_save(edit, err)))
		rfl_log(RFL_LOG_INFO, "wrote environment %s to %s", env_of(a), a->output);
	return rc;
}

static enum rfl_rc measure_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct measure_args *a = args;
	const bool cpu = a->backend == RFL_DEVICE_CPU, cuda = a->backend == RFL_DEVICE_CUDA;
	RFL_AUTOPTR(measurement) m = rfl_measurement_new();
	RFL_AUTOPTR(machine) machine = NULL;
	const char *device = NULL; /* NULL: the engine names it */
	double begin_s;
	char name[256];
	enum rfl_rc rc, saved = RFL_OK;

	if ((rc = rfl_text_check_env_name("--env", env_of(a), RFL_EUSAGE, err)) ||
	    (rc = check_only(&a->only, cuda ? rfl_gpu_keys : rfl_measure_keys, err)) ||
	    (rc = check_engine(a, err)) || (rc = rfl_machine_new(&machine, err)))
		return rc;
	if (cuda && is_selected(a, false)) {
		if ((rc = rfl_gpu_name(name, sizeof(name), err)))
			return rc;
		device = name;
	} else if (cpu) {
		rfl_measure_host(m, machine);
		device = m->env.device;
	}
	if ((rc = merge(a, device, NULL, err)))
		return rc;
	if (!cpu && (a->threads > 0 || a->all))
		rfl_log(RFL_LOG_WARN, "%s has no effect with --backend %s",
			a->all ? "--all" : "--threads", rfl_device_names[a->backend]);
	begin_s = rfl_clock_s();
	if ((rc = use_loops(cli, a, machine, m, &begin_s, err)) ||
	    (rc = use_engine(cli, a, begin_s, m, err)))
		return rc;
	if (m->seconds > 0) /* loops were measured */
		m->seconds = rfl_clock_s() - begin_s;
	/* an engine does not name an Apple GPU, which is part of the CPU */
	if (!m->env.device)
		m->env.device = rfl_measure_device(machine);
	rfl_measurement_finish(m);
	saved = merge(a, m->env.device, &m->env, err);
	/* also if it was not saved, so that the measurement is not lost */
	rc = print_result(cli, m, a, err);
	rc = saved ? saved : rc;
	if (rc == RFL_OK)
		warn(a, m);
	return rc;
}

const struct rfl_cmd rfl_cmd_peaks_measure = {
	.name = "peaks measure",
	.summary = "measure the ceilings of this machine's CPU or GPU",
	.description =
		"Measures the DRAM bandwidth from all cores, one core, one socket and another NUMA "
		"node; the read bandwidth of the caches; and the rate of multiply-adds in FP64, "
		"FP32, BF16, FP16 and INT8 (in Gop/s), where the CPU has instructions for them, on "
		"all cores and on one core. Threads are pinned, one per core. 'roofline list "
		"benchmarks' lists the loops; docs/reference/peaks.md explains them.\n\n"
		"'vector' is the arithmetic of vector registers and 'matrix' the arithmetic of "
		"AMX, BFMMLA or SMMLA. The 'scalar' and 'nofma' ceilings show what programs lose "
		"without vector instructions, or without fused multiply-adds; they are measured "
		"with --all or if named with --only. The gemm ceilings are the rates that the "
		"engine's library achieves in GEMMs; they are measured if an engine can be "
		"used.\n\n"
		"With --backend cuda, measures the first NVIDIA GPU: DRAM and L2 bandwidth, "
		"transfers to and from the host, multiply-adds of the vector units, and GEMMs by "
		"mma instructions and by cuBLASLt, each for 2 seconds (--quick: 0.2, --full: 6), "
		"and records clocks, power and throttling. Only the driver is needed; without "
		"cuBLASLt some ceilings are skipped. With --backend mps, the engine measures "
		"everything: GEMMs and, unless the file has a better value, the bandwidth of "
		"elementwise operations.\n\nIf the file already contains the environment, ceilings "
		"that were not measured are kept. Use an idle machine, because other programs "
		"lower the result: disturbed repeats are run again, and remaining warnings are "
		"recorded in the file and reported by 'peaks check', 'points' and 'plot'.",
	.example = "roofline peaks measure\n"
		   "roofline peaks measure --env lab_gpu --backend cuda --output lab.json\n"
		   "roofline peaks measure --only fp32.gemm bf16.gemm\n"
		   "roofline peaks measure --env lab_mac --backend mps",
	.opts = measure_opts,
	.args_size = sizeof(struct measure_args),
	.run = measure_run,
};
