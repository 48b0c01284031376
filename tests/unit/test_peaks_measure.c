/* Measuring: small and short, from the team of threads to an environment that reads back. */
#include "base/alloc.h"
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "peaks/bench.h"
#include "peaks/edit.h"
#include "peaks/measure.h"
#include "peaks/peaks.h"

static json_t *json_of(struct rfl_measurement *m)
{
	rfl_measurement_finish(m);
	return rfl_peaks_env_json(&m->env);
}

static struct rfl_machine *machine;

static int look(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (rfl_machine_new(&machine, &err) == RFL_OK)
		return 0;
	print_error("%s\n", err.msg);
	return -1;
}

static int forget(void **state)
{
	(void)state;
	rfl_machine_free(machine);
	return 0;
}

static const struct rfl_peak_kernel *usable(enum rfl_peak_kernel_kind kind)
{
	const struct rfl_peak_kernel *k;

	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		if (k->kind == kind && rfl_peak_kernel_probe(k, NULL) == RFL_OK)
			return k;
	}
	return NULL;
}

static struct rfl_bench *open_bench(int threads, int64_t array_bytes)
{
	struct rfl_bench *b = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_bench_open(machine, threads, array_bytes, &b, &err), &err);
	return b;
}

static void run(struct rfl_bench *b, const struct rfl_peak_kernel *k, int threads)
{
	const struct rfl_bench_job job = {
		.kernel = k, .threads = threads, .repeats = 4, .window_s = 0.002, .settle_s = 0.002
	};
	double rates[4] = { 0 };
	struct rfl_bench_result result = { .rates = rates };
	const struct rfl_interference *seen = &result.interference;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_bench_run(b, &job, &result, &err), &err);
	assert_in_range(seen->repeats, 3, 4);
	assert_in_range(seen->repeats + seen->discarded, 4, 8);
	assert_true(seen->thread_s > 0 && seen->off_s >= 0 && seen->off_s <= seen->thread_s);
	assert_true(seen->machine_s >= seen->thread_s);
	/* between the slowest and the fastest CPUs there are */
	if (!isnan(result.clock_hz))
		assert_true(result.clock_hz > 1e8 && result.clock_hz < 1e10);
	for (int i = 0; i < seen->repeats; i++) {
		/* no machine does less than 1 MB/s or more than 1 PFLOP/s here */
		assert_true(rates[i] > 1e6);
		assert_true(rates[i] < 1e15);
	}
}

static void runs_with_one_thread_and_with_all(void **state)
{
	const int all = (int)machine->ncpus;
	struct rfl_bench *b = open_bench(all, 1 << 20);

	(void)state;
	for (int kind = RFL_LOOP_READ; kind <= RFL_LOOP_CHAIN; kind++) {
		const struct rfl_peak_kernel *k = usable((enum rfl_peak_kernel_kind)kind);

		if (!k)
			continue;
		run(b, k, 1);
		run(b, k, all);
	}
	assert_true(b->array_bytes >= 1 << 20);
	assert_int_equal(b->array_bytes % (4096 * all), 0);
	assert_false(b->capped);
	rfl_bench_close(b);
}

/* The best of some rates in windows of this length, or `best`. */
static double better_rate(struct rfl_bench *b, const struct rfl_peak_kernel *k, double window_s,
			  double best)
{
	const struct rfl_bench_job job = {
		.kernel = k, .threads = 1, .repeats = 9, .window_s = window_s, .settle_s = 0.01
	};
	double rates[9];
	struct rfl_bench_result result = { .rates = rates };
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_bench_run(b, &job, &result, &err), &err);
	for (int i = 0; i < result.interference.repeats; i++)
		best = rates[i] > best ? rates[i] : best;
	return best;
}

/* The rate is work over time: a window ten times as long does not make it ten times as high. Other
 * load takes a part of the core from a long window; then it has another chance. */
static void a_rate_is_work_over_time(void **state)
{
	const struct rfl_peak_kernel *k = usable(RFL_LOOP_CHAIN);
	struct rfl_bench *b = open_bench(1, 1 << 16);
	double brief = 0, lasting = 0;

	(void)state;
	if (!k)
		skip();
	for (int i = 0; i < 10 && (i == 0 || brief >= 5 * lasting); i++) {
		brief = better_rate(b, k, 0.005, brief);
		lasting = better_rate(b, k, 0.05, lasting);
	}
	assert_true(brief < 5 * lasting && lasting < 5 * brief);
	rfl_bench_close(b);
}

static void arrays_are_four_times_the_caches(void **state)
{
	struct rfl_bench *b = open_bench(1, 0);
	const int64_t llc = rfl_machine_llc_bytes(machine);

	(void)state;
	if (llc > 0 && !b->capped)
		assert_true(b->array_bytes >= 4 * llc);
	rfl_bench_close(b);
}

/* A machine that hides its caches gets arrays that are rather too large. */
static void hidden_caches_are_assumed(void **state)
{
	struct rfl_machine hides = *machine;
	struct rfl_bench *b = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	hides.ncaches = 0;
	hides.hw_threads = 2;
	assert_ok(rfl_bench_open(&hides, 1, 0, &b, &err), &err);
	assert_int_equal(b->llc_bytes, 256 << 20);
	assert_true(b->array_bytes >= 1 << 30 || b->capped);
	rfl_bench_close(b);
}

/* Arrays within the caches would show the caches: no figure is better than a wrong one. */
static void too_little_memory_is_no_bandwidth(void **state)
{
	static const char *const only[] = { "DRAM", "fp32.vector.1core", NULL };
	struct rfl_machine small = *machine;
	const struct rfl_measure_spec spec = { .machine = &small,
					       .only = only,
					       .threads = 1,
					       .repeats = 3,
					       .budget_s = RFL_MEASURE_QUICK_S };
	struct rfl_measurement *m = rfl_measurement_new();
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (!usable(RFL_LOOP_CHAIN))
		skip();
	small.memory_available_bytes = 12 << 20;
	small.ncaches = 0;
	rfl_measure_host(m, spec.machine);
	assert_ok(rfl_measure(&spec, m, &err), &err);
	assert_true(m->capped);
	assert_int_equal(m->n, 2);
	assert_string_equal(m->all[1].key, "DRAM");
	assert_int_equal(m->all[0].level.peak.status, RFL_PEAK_MEASURED);
	assert_int_equal(m->all[1].level.peak.status, RFL_PEAK_UNKNOWN);
	assert_non_null(strstr(m->all[1].level.peak.reason, "memory allows arrays of 2 MiB"));
	assert_non_null(strstr(m->all[1].level.peak.reason, "unknown, assumed"));
	rfl_measurement_free(m);
}

static void memory_caps_the_arrays(void **state)
{
	struct rfl_machine small = *machine;
	struct rfl_bench *b = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	small.memory_available_bytes = 12 << 20;
	assert_ok(rfl_bench_open(&small, 1, 0, &b, &err), &err);
	assert_true(b->capped);
	assert_int_equal(b->array_bytes, 2 << 20); /* half of it, for three arrays */
	rfl_bench_close(b);

	b = NULL;
	small.memory_available_bytes = 4096;
	assert_int_equal(rfl_bench_open(&small, 1, 0, &b, &err), RFL_ENOMEM);
	assert_says(&err, "too few");
	assert_null(b);
}

static void refuses_more_threads_than_there_are(void **state)
{
	struct rfl_bench *b = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_int_equal(rfl_bench_open(machine, (int)machine->ncpus + 1, 0, &b, &err), RFL_EINVAL);
	assert_says(&err, "out of range");
	assert_null(b);
}

static void a_place_that_does_not_exist_fails_the_job(void **state)
{
	struct rfl_machine wrong = *machine;
	struct rfl_cpu nowhere = { .os_index = 8000 };
	const struct rfl_peak_kernel *k = usable(RFL_LOOP_READ);
	const struct rfl_bench_job job = {
		.kernel = k, .threads = 1, .repeats = 3, .window_s = 0.001, .settle_s = 0.001
	};
	struct rfl_bench *b = NULL;
	double rates[3] = { -1 };
	struct rfl_bench_result result = { .rates = rates };
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (!k)
		skip();
	wrong.cpus = &nowhere;
	wrong.ncpus = 1;
	assert_ok(rfl_bench_open(&wrong, 1, 1 << 16, &b, &err), &err);
	assert_int_equal(rfl_bench_run(b, &job, &result, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "cpu 8000");
	assert_close(rates[0], -1, 0);
	rfl_bench_close(b);
}

static void places_are_spelled(void **state)
{
	struct rfl_cpu cpus[] = { { .os_index = 0 }, { .os_index = 1 }, { .os_index = 2 },
				  { .os_index = 5 }, { .os_index = 8 }, { .os_index = 9 } };
	struct rfl_machine m = *machine;
	struct rfl_bench *b = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char text[64];

	(void)state;
	m.cpus = cpus;
	m.ncpus = 6;
	assert_ok(rfl_bench_open(&m, 6, 1 << 16, &b, &err), &err);
	assert_string_equal(rfl_bench_places(b, 0, 6, text, sizeof(text)), "cpu 0-2,5,8,9");
	assert_string_equal(rfl_bench_places(b, 0, 1, text, sizeof(text)), "cpu 0");
	assert_string_equal(rfl_bench_places(b, 3, 3, text, sizeof(text)), "cpu 5,8,9");
	rfl_bench_close(b);
}

/* --- the whole --- */

static int reports;

static void count_progress(const char *when, const char *what, void *ctx)
{
	(void)ctx;
	assert_true(what[0] != '\0');
	assert_non_null(strstr(when, " s left"));
	reports++;
}

static struct rfl_measurement *measure(const struct rfl_machine *on, const char *const *only)
{
	const struct rfl_measure_spec spec = { .machine = on,
					       .only = only,
					       .repeats = 3,
					       .budget_s = RFL_MEASURE_QUICK_S,
					       .progress = count_progress };
	struct rfl_measurement *m = rfl_measurement_new();
	struct rfl_err err = RFL_ERR_INIT;

	rfl_measure_host(m, spec.machine);
	assert_ok(rfl_measure(&spec, m, &err), &err);
	return m;
}

/* This machine with a last cache of at most 16 MiB: the arrays of four times that are read in less
 * time. How large they are here is asked above. */
static struct rfl_machine modest(struct rfl_cache *caches, size_t max)
{
	struct rfl_machine m = *machine;
	struct rfl_cache *last;

	if (m.ncaches == 0)
		return m;
	assert_true(m.ncaches <= max);
	memcpy(caches, m.caches, m.ncaches * sizeof(*caches));
	m.caches = caches;
	last = &caches[m.ncaches - 1];
	if (last->size_bytes > 16 << 20)
		last->size_bytes = 16 << 20;
	return m;
}

/* Each level has a curve of all cores, and one of a single core unless these are the same. Sizes
 * rise from level to level, and none is beyond the capacity of its cache. */
static void check_curves(const struct rfl_peaks_env *env, int threads)
{
	for (int one = 0; one <= (threads > 1); one++) {
		int64_t before = 0;

		for (size_t i = 0; i < env->nlevels; i++) {
			const struct rfl_peak_level *l = &env->levels[i];

			if (rfl_peaks_is_part(env, l))
				continue;
			const int64_t count = one || strcmp(l->scope, "core") != 0 ? 1 : threads;
			const char *scope = one || threads == 1 ? "core" : "node";
			size_t n = 0;

			for (size_t k = 0; k < l->nsweep; k++) {
				if (strcmp(l->sweep[k].scope, scope) != 0)
					continue;
				assert_true(l->sweep[k].working_set_bytes > before);
				assert_true(l->sweep[k].value > 0);
				before = l->sweep[k].working_set_bytes;
				n++;
			}
			assert_true(n > 0 || l->peak.status == RFL_PEAK_UNKNOWN);
			if (l->capacity_bytes)
				assert_true(before <= l->capacity_bytes * count);
		}
	}
}

/* Measured by a loop that can run here; unsupported if all loops lack instructions. */
static enum rfl_peak_status expected_status(const char *key)
{
	enum rfl_peak_status status = RFL_PEAK_UNKNOWN;
	const struct rfl_peak_kernel *k;

	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		if (k->missing || !rfl_peak_kernel_measures(k, key))
			continue;
		if (rfl_peak_kernel_probe(k, NULL) == RFL_OK)
			return RFL_PEAK_MEASURED;
		status = RFL_PEAK_UNSUPPORTED;
	}
	return status;
}

/* Of vectors and matrices on all cores, and on one where they can be measured. */
static size_t expected_ceilings(void)
{
	size_t n = 0;

	for (size_t i = 0; rfl_measure_keys[i]; i++) {
		const char *key = rfl_measure_keys[i];
		const bool vector = strstr(key, ".vector") && !strstr(key, ".nofma");

		n += (vector || strstr(key, ".matrix")) &&
		     (!strstr(key, ".1core") || expected_status(key) == RFL_PEAK_MEASURED);
	}
	return n;
}

static void measures_everything_into_a_file(void **state)
{
	const char *path = tmp_path(*state, "peaks.json");
	struct rfl_cache caches[8];
	struct rfl_machine small = modest(caches, RFL_ARRAY_LEN(caches));
	struct rfl_measurement *m = measure(&small, NULL);
	struct rfl_peaks_edit *e = NULL;
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	json_t *value = json_of(m);

	assert_true(reports > 0);
	assert_non_null(value);
	assert_ok(rfl_peaks_edit_open(path, &e, &err), &err);
	rfl_peaks_edit_merge(e, "lab_cpu", value);
	assert_ok(rfl_peaks_edit_save(e, &err), &err);
	assert_ok(rfl_peaks_load(path, &p, &err), &err);

	const struct rfl_peaks_env *env = rfl_peaks_find(p, "lab_cpu");
	const struct rfl_peak *dram = rfl_peaks_dram(env);

	assert_string_equal(env->device, rfl_measure_device(machine));
	assert_int_equal(env->units, machine->cores);
	assert_non_null(dram);
	assert_int_equal(dram->status, RFL_PEAK_MEASURED);
	assert_close(dram->value, dram->stats.max, 0);
	assert_true(dram->stats.min <= dram->stats.median && dram->stats.median <= dram->stats.max);
	assert_int_equal(dram->threads, rfl_machine_threads(machine));
	assert_true(dram->working_set_bytes >= 4 * rfl_machine_llc_bytes(&small) || m->capped);
	/* main memory of one core is listed after that of the machine */
	assert_string_equal(env->levels[env->nlevels - 1].cell, "memory.DRAM.core.gbs");
	assert_int_equal(env->levels[env->nlevels - 1].peak.threads, 1);
	for (size_t i = 0; i < env->ncompute; i++)
		assert_int_equal(env->compute[i].peak.status, expected_status(env->compute[i].key));
	assert_int_equal(env->ncompute, expected_ceilings());
	check_curves(env, dram->threads);

	json_decref(value);
	rfl_peaks_free(p);
	rfl_peaks_edit_close(e);
	rfl_measurement_free(m);
}

static void measures_only_what_is_asked(void **state)
{
	static const char *const only[] = { "fp64.vector.1core", NULL };

	(void)state;
	if (!usable(RFL_LOOP_CHAIN))
		skip();
	struct rfl_measurement *m = measure(machine, only);
	json_t *value = json_of(m);
	const json_t *compute = json_object_get(value, "compute");
	const json_t *cell = json_object_get(compute, "fp64.vector.1core");
	const json_t *dram = json_array_get(json_object_get(value, "memory"), 0);

	assert_int_equal(json_object_size(compute), 1);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(cell, "conditions"), "threads")),
		1);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(cell, "method"), "accumulate")),
		"fp64");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(dram, "gbs"), "status")),
		"unknown");
	json_decref(value);
	rfl_measurement_free(m);
}

/* --all; without memory for arrays, and with caches that the system does not report. */
static void all_adds_scalar_and_nofma(void **state)
{
	struct rfl_machine small = *machine;
	const struct rfl_measure_spec spec = { .machine = &small,
					       .all = true,
					       .threads = 1,
					       .repeats = 3,
					       .budget_s = RFL_MEASURE_QUICK_S };
	struct rfl_measurement *m = rfl_measurement_new();
	struct rfl_err err = RFL_ERR_INIT;
	int n = 0;

	(void)state;
	if (!usable(RFL_LOOP_CHAIN))
		skip();
	small.memory_available_bytes = 12 << 20;
	small.ncaches = 0;
	rfl_measure_host(m, spec.machine);
	assert_ok(rfl_measure(&spec, m, &err), &err);
	for (size_t i = 0; i < m->n; i++) {
		const char *key = m->all[i].key;

		if (!strstr(key, ".scalar") && !strstr(key, ".nofma"))
			continue;
		assert_int_equal(m->all[i].level.peak.status, RFL_PEAK_MEASURED);
		n++;
	}
	assert_int_equal(n, 4);
	rfl_measurement_free(m);
}

/* The file says what the CPU lacks, so that no one measures again in vain. */
static void lacking_instructions_are_recorded(void **state)
{
	static const char *const wanted[] = { "bf16.matrix", "fp16.vector", "int8.vector",
					      "int8.matrix", "fp16.vector.1core" };
	int n = 0;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(wanted); i++) {
		const char *const only[] = { wanted[i], NULL };

		if (expected_status(wanted[i]) != RFL_PEAK_UNSUPPORTED)
			continue;
		struct rfl_measurement *m = measure(machine, only);
		json_t *value = json_of(m);
		const json_t *cell = json_object_get(json_object_get(value, "compute"), wanted[i]);

		assert_string_equal(json_string_value(json_object_get(cell, "status")),
				    "unsupported");
		assert_int_equal(
			strncmp(json_string_value(json_object_get(cell, "reason")), "needs ", 6),
			0);
		json_decref(value);
		rfl_measurement_free(m);
		n++;
	}
	if (n == 0)
		skip();
}

/* The accumulator belongs to the method; scalar and nofma ceilings are measured by name. */
static void names_the_accumulator(void **state)
{
	static const struct {
		const char *key, *accumulate;
	} rows[] = {
		{ "bf16.vector.1core", "fp32" },  { "fp16.vector.1core", "fp16" },
		{ "int8.vector.1core", "int32" }, { "fp32.scalar", "fp32" },
		{ "fp64.vector.nofma", "fp64" },
	};
	int n = 0;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		const char *const only[] = { rows[i].key, NULL };

		if (expected_status(rows[i].key) != RFL_PEAK_MEASURED)
			continue;
		struct rfl_measurement *m = measure(machine, only);
		json_t *value = json_of(m);
		const json_t *cell =
			json_object_get(json_object_get(value, "compute"), rows[i].key);

		assert_string_equal(json_string_value(json_object_get(
					    json_object_get(cell, "method"), "accumulate")),
				    rows[i].accumulate);
		json_decref(value);
		rfl_measurement_free(m);
		n++;
	}
	if (n == 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_with_one_thread_and_with_all),
		cmocka_unit_test(a_rate_is_work_over_time),
		cmocka_unit_test(arrays_are_four_times_the_caches),
		cmocka_unit_test(hidden_caches_are_assumed),
		cmocka_unit_test(too_little_memory_is_no_bandwidth),
		cmocka_unit_test(memory_caps_the_arrays),
		cmocka_unit_test(refuses_more_threads_than_there_are),
		cmocka_unit_test(a_place_that_does_not_exist_fails_the_job),
		cmocka_unit_test(places_are_spelled),
		cmocka_unit_test_setup_teardown(measures_everything_into_a_file, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(measures_only_what_is_asked),
		cmocka_unit_test(all_adds_scalar_and_nofma),
		cmocka_unit_test(lacking_instructions_are_recorded),
		cmocka_unit_test(names_the_accumulator),
	};

	return cmocka_run_group_tests(tests, look, forget);
}
