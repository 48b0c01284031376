/*
 * test_peaks_gpu.c - ceilings of a GPU, measured on the fake driver, whose clock and rates are
 * scripted: values, what competes, what is refused, the environment that is written, and every call
 * of the driver and of cuBLASLt failing in turn.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/json.h"
#include "peaks/edit.h"
#include "peaks/gpu.h"
#include "peaks/gpu_bench.h"
#include "peaks/gpu_matmul.h"
#include "peaks/peaks.h"
#include "tests/unit/fake_nvml.h"
#include "tests/unit/rfl_test.h"

static struct {
	void (*cuda)(const char *script);
	const char *(*cuda_log)(void);
	const char *(*cuda_complaints)(void);
	int (*leaks)(char *out, size_t size);
	void (*lt)(const char *script);
	const char *(*lt_log)(void);
	const char *(*lt_complaints)(void);
	int (*lt_open)(void);
} fake;

static void load(const char *library, const char *const *names, void *const *slots)
{
	char path[4096];
	void *dl;

	snprintf(path, sizeof(path), "%s/tests/fakes/%s", RFL_TEST_BUILD, library);
	dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		fail_msg("%s", dlerror());
	for (; *names; names++, slots++) {
		void *address = dlsym(dl, *names);

		assert_non_null(address);
		memcpy(*slots, &address, sizeof(address));
	}
}

static int load_fakes(void **state)
{
	static const char *const cuda[] = { "fake_cuda_control", "fake_cuda_log",
					    "fake_cuda_complaints", "fake_cuda_leaks", NULL };
	static const char *const lt[] = { "fake_lt_control", "fake_lt_log", "fake_lt_complaints",
					  "fake_lt_open", NULL };
	void *const cuda_slots[] = { &fake.cuda, &fake.cuda_log, &fake.cuda_complaints,
				     &fake.leaks };
	void *const lt_slots[] = { &fake.lt, &fake.lt_log, &fake.lt_complaints, &fake.lt_open };

	(void)state;
	load("libcuda.so.1", cuda, cuda_slots);
	load("cublaslt/libcublasLt.so.13", lt, lt_slots);
	fake_nvml_load("nvml");
	return 0;
}

/* Measure on a fake with little memory; other scripts are added. */
static enum rfl_rc measure(const char *const *only, const char *cuda, const char *lt,
			   struct rfl_measurement *m, struct rfl_err *err)
{
	const struct rfl_gpu_spec spec = { .only = only, .sustained_s = 0.2 };
	char script[512], leaks[256];
	enum rfl_rc rc;

	snprintf(script, sizeof(script), "%s;quiet=1;free=24e6", cuda);
	fake.cuda(script);
	snprintf(script, sizeof(script), "%s;quiet=1", lt);
	fake.lt(script);
	rc = rfl_gpu_measure(&spec, m, err);
	if (fake.leaks(leaks, sizeof(leaks)) || fake.lt_open())
		fail_msg("%s, %s: left open: %s; %d of cuBLASLt", cuda, lt, leaks, fake.lt_open());
	assert_string_equal(fake.cuda_complaints(), "");
	assert_string_equal(fake.lt_complaints(), "");
	return rc;
}

static struct rfl_measurement *measured(const char *const *only, const char *cuda, const char *lt)
{
	struct rfl_measurement *m = rfl_measurement_new();
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(measure(only, cuda, lt, m, &err), &err);
	return m;
}

/* A ceiling, measured or not. */
static const struct rfl_peak *peak_of(const struct rfl_measurement *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->all[i].key, key) == 0 && !m->all[i].other)
			return &m->all[i].level.peak;
	fail_msg("no ceiling %s", key);
	return NULL;
}

static const struct rfl_peak *best_of(const struct rfl_measurement *m, const char *key)
{
	const struct rfl_peak *peak = peak_of(m, key);

	if (peak->status != RFL_PEAK_MEASURED)
		fail_msg("%s: %s", key, peak->reason);
	return peak;
}

/* A rate of the fake comes out again: FLOPs, bytes and seconds are counted alike on both sides. */
static void rates_are_those_of_the_gpu(void **state)
{
	struct rfl_measurement *m = measured(
		NULL,
		"rate=rfl_fma_fp64:1e12;rate=rfl_fma_fp32:2e12;rate=rfl_fma_fp16:3e12;"
		"rate=rfl_fma_bf16:4e12;rate=rfl_copy:5e11;rate=rfl_read:4e11;rate=rfl_triad:3e11;"
		"rate=rfl_write:6e11;rate=rfl_read_l2:5e12;rate=send_pinned:2e10;rate=send:1e10;"
		"rate=lt_bf16_68:6e10;rate=rfl_mma_bf16:7e10;rate=lt_fp16_68:7e10;"
		"rate=rfl_mma_fp16_16:6e10;rate=lt_fp8_68:9e10;rate=rfl_mma_int8_32:5e11",
		"");
	static const struct {
		const char *key;
		double rate;
		const char *what;
	} rows[] = {
		{ "fp64.vector", 1e12, "fp64 multiply-adds" },
		{ "fp32.vector", 2e12, "fp32 multiply-adds" },
		{ "fp16.vector", 3e12, "fp16 multiply-adds" },
		{ "bf16.vector", 4e12, "bf16 multiply-adds" },
		{ "bf16.matrix", 7e10, "mma m16n8k16" },
		{ "fp16.matrix", 7e10, "cuBLASLt 13.1.0 product of fp16" },
		{ "fp8.matrix", 9e10, "cuBLASLt 13.1.0 product of fp8" },
		{ "int8.matrix", 5e11, "mma m16n8k32" },
		{ "L2", 5e12, "read" },
		{ "DRAM", 5e11, "copy" }, /* not the faster write */
		{ "link", 2e10, "host to device, pinned" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		const struct rfl_peak *run = best_of(m, rows[i].key);

		assert_close(run->value, rows[i].rate, 1e-3);
		if (!strstr(run->kernel, rows[i].what))
			fail_msg("%s: %s", rows[i].key, run->kernel);
	}
	assert_string_equal(best_of(m, "fp16.matrix.fp16acc")->accumulate, "fp16");
	assert_string_equal(best_of(m, "fp16.matrix")->accumulate, "fp32");
	assert_true(best_of(m, "L2")->working_set_bytes <= 1 << 20);
	rfl_measurement_free(m);
}

/* The clock falls after half a second: the burst is kept, the ceiling is what remains. */
static void a_ceiling_is_what_is_sustained(void **state)
{
	static const char *const only[] = { "fp32.vector", NULL };
	struct rfl_measurement *m = measured(only, "fade=0.3:0.5", "fail=cublasLtCreate:1");
	const struct rfl_peak *run = best_of(m, "fp32.vector");

	(void)state;
	assert_close(run->stats.max, 1e12, 1e-3);
	assert_close(run->value, 5e11, 1e-3);
	assert_true(run->sustained_s >= 0.2);
	assert_in_range(run->stats.n, 21, 100);
	rfl_measurement_free(m);
}

static void the_fastest_algorithm_is_used(void **state)
{
	static const char *const only[] = { "fp8.matrix", NULL };
	struct rfl_measurement *m = measured(only, "rate=lt_fp8_68:1e11", "");

	(void)state;
	/* the first proposal has half the rate, two others cannot be used */
	assert_close(best_of(m, "fp8.matrix")->value, 1e11, 1e-3);
	assert_in_range(best_of(m, "fp8.matrix")->shape[0], 512, 16384);
	rfl_measurement_free(m);
	m = measured(only, "rate=lt_fp8_68:1e11", "candidates=1");
	assert_close(best_of(m, "fp8.matrix")->value, 5e10, 1e-3);
	rfl_measurement_free(m);
}

/* 32 times L2: an H100 has 50 MB of it, a B200 126 MB. */
static void arrays_are_much_larger_than_l2(void **state)
{
	static const struct {
		int64_t l2, expected;
		size_t available;
		bool capped;
	} cases[] = {
		{ 50 << 20, INT64_C(1600) << 20, (size_t)80e9, false },
		{ 126 << 20, INT64_C(4032) << 20, (size_t)180e9, false },
		{ 4 << 20, 256 << 20, (size_t)16e9, false },
		{ 0, 256 << 20, (size_t)16e9, false },
		{ 50 << 20, 1 << 30, (size_t)4 << 30, true },
		{ 50 << 20, 0, 100, true },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		bool capped;

		assert_int_equal(rfl_gpu_array_bytes(cases[i].l2, cases[i].available, &capped),
				 cases[i].expected);
		assert_int_equal(capped, cases[i].capped);
	}
}

/* A kernel that fails while the program continues: a later call reports it. */
static void a_fault_that_is_noticed_late_is_reported(void **state)
{
	static const char *const only[] = { "fp32.vector", "DRAM", NULL };
	struct rfl_measurement *m = rfl_measurement_new();
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_int_equal(measure(only, "late=cuLaunchKernel:700", "", m, &err), RFL_EUNAVAILABLE);
	rfl_measurement_free(m);
	assert_says(&err, "CUDA_ERROR_ILLEGAL_ADDRESS, 700");
}

static void is_refused(const char *key, const char *cuda, const char *lt,
		       enum rfl_peak_status status, const char *reason)
{
	const char *const only[] = { key, "fp64.vector", NULL };
	struct rfl_measurement *m = measured(only, cuda, lt);
	const struct rfl_peak *peak = peak_of(m, key);

	assert_int_equal(peak->status, status);
	if (!strstr(peak->reason, reason))
		fail_msg("%s: %s", key, peak->reason);
	rfl_measurement_free(m);
}

static void what_cannot_be_measured_has_a_reason(void **state)
{
	(void)state;
	is_refused("bf16.matrix", "cc=75", "", RFL_PEAK_UNSUPPORTED, "compute capability 7.5");
	is_refused("fp8.matrix", "cc=86", "", RFL_PEAK_UNSUPPORTED, "compute capability 8.6");
	/* mma is not the ceiling of Hopper, but that of Ada */
	is_refused("bf16.matrix", "cc=90", "fail=cublasLtCreate:1", RFL_PEAK_UNKNOWN,
		   "mma reaches only a part");
	is_refused("bf16.matrix", "cc=100", "candidates=0", RFL_PEAK_UNKNOWN,
		   "proposes no algorithm");
	is_refused("fp8.matrix", "cc=90", "fail=cublasLtCreate:1", RFL_PEAK_UNKNOWN,
		   "could not start");
	is_refused("L2", "l2=0", "", RFL_PEAK_UNKNOWN, "does not report the size of L2");
	is_refused("link", "integrated=1", "", RFL_PEAK_UNSUPPORTED, "memory of the host");
	is_refused("DRAM", "l2=4000000", "", RFL_PEAK_UNKNOWN, "fit into L2");
	is_refused("DRAM", "wrong=1", "", RFL_PEAK_FAILED, "rfl_write wrote 1 instead of 0.5");
	is_refused("DRAM", "fail=cuMemAlloc_v2:2@4", "", RFL_PEAK_FAILED,
		   "not have enough free memory");
}

static void a_product_is_not_needed_where_mma_is_full(void **state)
{
	static const char *const only[] = { "bf16.matrix", "fp64.matrix", NULL };
	struct rfl_measurement *m = measured(only, "cc=89", "fail=cublasLtCreate:1");

	(void)state;
	assert_close(best_of(m, "bf16.matrix")->value, 1e12, 1e-3);
	rfl_measurement_free(m);
	m = measured(only, "cc=90", "fail=cublasLtCreate:1");
	assert_string_equal(best_of(m, "fp64.matrix")->kernel, "mma m16n8k16 in registers");
	rfl_measurement_free(m);
}

static void the_whole_is_refused(const char *cuda, const char *word)
{
	static const char *const only[] = { "fp64.vector", NULL };
	struct rfl_measurement *m = rfl_measurement_new();
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(measure(only, cuda, "", m, &err), RFL_EUNAVAILABLE);
	rfl_measurement_free(m);
	assert_says(&err, word);
}

static void without_any_ceiling_there_is_an_error(void **state)
{
	(void)state;
	the_whole_is_refused("count=0", "reports no GPU");
	the_whole_is_refused("cc=70", "the loops need 7.5");
	the_whole_is_refused("frozen=1", "clock did not advance");
	the_whole_is_refused("occupancy=0", "no block fits");
	the_whole_is_refused("fail=cuModuleLoadData:221", "libnvidia-ptxjitcompiler");
}

static const json_t *at(const json_t *value, const char *key)
{
	value = json_object_get(value, key);
	if (!value)
		fail_msg("no %s", key);
	return value;
}

/* The environment passes the checks of the format, and reads back. */
static void the_environment_is_written(void **state)
{
	struct rfl_measurement *m = NULL;
	struct rfl_peaks_edit *edit = NULL;
	struct rfl_peaks *peaks = NULL;
	const struct rfl_peaks_env *env;
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = tmp_path(*state, "peaks.json");
	const json_t *bf16;
	json_t *value;
	char *notes;

	fake_nvml.control("sm=1400;power=72;temperature=66;reasons=4");
	m = measured(NULL, "ecc=1;name=NVIDIA A100 MIG 1g.5gb;cc=89;rate=lt_bf16_68:2e12", "");
	rfl_measurement_finish(m);
	value = rfl_peaks_env_json(&m->env);
	assert_non_null(value);
	assert_int_equal(json_object_size(json_object_get(value, "host")), 2); /* driver, CUDA */
	assert_ok(rfl_peaks_edit_open(path, &edit, &err), &err);
	rfl_peaks_edit_merge(edit, "lab", value);
	assert_ok(rfl_peaks_edit_save(edit, &err), &err);
	rfl_peaks_edit_close(edit);
	assert_ok(rfl_peaks_load(path, &peaks, &err), &err);
	env = rfl_peaks_find(peaks, "lab");
	assert_non_null(env);
	assert_close(rfl_peaks_compute(env, "bf16.matrix")->value, 2e12, 1e-3);

	bf16 = at(at(value, "compute"), "bf16.matrix");
	assert_string_equal(json_string_value(at(at(bf16, "method"), "input")), "random");
	assert_string_equal(json_string_value(at(at(bf16, "method"), "accumulate")), "fp32");
	assert_int_equal(json_array_size(at(at(bf16, "method"), "shape")), 3);
	assert_close(json_number_value(at(at(bf16, "conditions"), "clock_mhz")), 1400, 0);
	assert_close(json_number_value(at(at(bf16, "conditions"), "power_w")), 72, 0);
	assert_close(json_number_value(at(at(bf16, "conditions"), "temp_c")), 66, 0);
	assert_string_equal(json_string_value(json_array_get(
				    at(at(bf16, "conditions"), "throttle_reasons"), 0)),
			    "SW power cap");
	assert_string_equal(json_string_value(at(at(value, "device"), "compute_capability")),
			    "8.9");
	assert_true(json_array_size(at(json_array_get(at(value, "memory"), 0), "sweep")) > 3);
	notes = json_dumps(at(value, "notes"), 0);
	assert_non_null(strstr(notes, "ECC of the device memory is on"));
	assert_non_null(strstr(notes, "MIG instance"));
	assert_non_null(strstr(notes, "bf16.matrix, mma m16n8k16 in registers: 1000 GFLOP/s"));
	assert_non_null(strstr(notes, "DRAM, write: 1000 GB/s"));
	free(notes);
	json_decref(value);
	rfl_peaks_free(peaks);
	rfl_measurement_free(m);
}

/* The fake refuses what cuBLASLt refuses: types that do not go together, a GPU that lacks them,
 * narrow types whose sizes are no multiples of 16 bytes or whose A is not transposed, matrices that
 * do not fit, an algorithm of another product, memory that is not aligned. */
static void the_fake_refuses_as_cublaslt_does(void **state)
{
	enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
	static const struct {
		int compute, scale, in, out, transa;
		uint64_t n;
		const char *cuda;
		int expected;
	} cases[] = {
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_E4M3, RFL_LT_R_16BF, 1, 64, "cc=90",
		  0 },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_E4M3, RFL_LT_R_16BF, 1, 64, "cc=80",
		  NOT_SUPPORTED },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_E4M3, RFL_LT_R_16BF, 1, 40, "cc=90",
		  NOT_SUPPORTED },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_E4M3, RFL_LT_R_16BF, 0, 64, "cc=90",
		  NOT_SUPPORTED },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_E4M3, RFL_LT_R_E4M3, 1, 64, "cc=90",
		  NOT_SUPPORTED },
		{ RFL_LT_COMPUTE_16F, RFL_LT_R_32F, RFL_LT_R_16F, RFL_LT_R_16F, 1, 64, "cc=90",
		  NOT_SUPPORTED },
		{ RFL_LT_COMPUTE_32I, RFL_LT_R_32I, RFL_LT_R_8I, RFL_LT_R_32I, 1, 42, "cc=90",
		  NOT_SUPPORTED },
		{ RFL_LT_COMPUTE_TF32, RFL_LT_R_32F, RFL_LT_R_32F, RFL_LT_R_32F, 1, 64, "cc=75",
		  NOT_SUPPORTED },
	};
	static const char *const library[] = { RFL_TEST_BUILD
					       "/tests/fakes/cublaslt/libcublasLt.so.13",
					       NULL };
	struct rfl_lt_functions lt;
#define SLOT(member, symbol, arguments) { #symbol, &lt.member, false },
	const struct rfl_dl_symbol symbols[] = { RFL_LT_FUNCTIONS(SLOT) };
#undef SLOT
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dl *dl = NULL;

	(void)state;
	assert_ok(rfl_dl_open(library, RFL_DL_LOAD, symbols, RFL_ARRAY_LEN(symbols), &dl, &err),
		  &err);
	fake.lt("quiet=1");
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_lt_candidate found[8];
		struct rfl_lt_preference *preference = NULL;
		struct rfl_lt_operation *o = NULL;
		struct rfl_lt_layout *in = NULL, *out = NULL, *narrow = NULL;
		const uint64_t n = cases[i].n;
		int count = -1;

		fake.cuda(cases[i].cuda);
		assert_int_equal(lt.operation_create(&o, cases[i].compute, cases[i].scale), 0);
		assert_int_equal(lt.operation_set(o, RFL_LT_OPERATION_TRANSA, &cases[i].transa, 4),
				 0);
		assert_int_equal(lt.operation_set(o, RFL_LT_OPERATION_FAST, &cases[i].transa, 4),
				 INVALID_VALUE);
		assert_int_equal(lt.preference_create(&preference), 0);
		assert_int_equal(lt.layout_create(&in, cases[i].in, n, n, (int64_t)n), 0);
		assert_int_equal(lt.layout_create(&out, cases[i].out, n, n, (int64_t)n), 0);
		assert_int_equal(lt.layout_create(&narrow, cases[i].out, n, n / 2, (int64_t)n), 0);
		assert_int_equal(
			lt.candidates(NULL, o, in, in, out, out, preference, 8, found, &count),
			cases[i].expected);
		assert_int_equal(count > 0, cases[i].expected == 0);
		assert_int_equal(lt.candidates(NULL, o, in, in, narrow, narrow, preference, 8,
					       found, &count),
				 INVALID_VALUE);
		assert_int_equal(lt.operation_destroy(o) | lt.layout_destroy(in) |
					 lt.layout_destroy(out) | lt.layout_destroy(narrow) |
					 lt.preference_destroy(preference),
				 0);
	}
	assert_string_equal(fake.lt_complaints(), "");
	rfl_dl_close(dl);
}

/* Sums with fast accumulation are a ceiling of their own. */
static void fp8_is_measured_in_both_ways(void **state)
{
	static const char *const only[] = { "fp8.matrix", "fp8.matrix.fastacc", NULL };
	struct rfl_measurement *m =
		measured(only, "rate=lt_fp8_68:1e12;rate=lt_fp8_68_fast:2e12", "");

	(void)state;
	assert_close(best_of(m, "fp8.matrix")->value, 1e12, 1e-3);
	assert_close(best_of(m, "fp8.matrix.fastacc")->value, 2e12, 1e-3);
	assert_string_equal(best_of(m, "fp8.matrix.fastacc")->kernel,
			    "cuBLASLt 13.1.0 product of fp8 (e4m3) to bf16, fast accumulation");
	assert_null(best_of(m, "fp8.matrix.fastacc")->accumulate);
	rfl_measurement_free(m);
}

/* With other codes each call fails always, and from its third time on. Nothing is left open, and
 * every ceiling has a value or a reason. */
static void fail_each(const char *const *calls, size_t n, bool lt)
{
	static const char *const only[] = {
		"fp16.matrix", "fp32.vector", "L2", "DRAM", "link", NULL
	};
	static const char *const codes[] = { "2", "999", "1@3" };
	size_t tried = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < RFL_ARRAY_LEN(codes); c++) {
			struct rfl_measurement *m = rfl_measurement_new();
			struct rfl_err err = RFL_ERR_INIT;
			char script[128], line[128];
			enum rfl_rc rc;

			snprintf(script, sizeof(script), "fail=%s:%s", calls[i], codes[c]);
			rc = measure(only, lt ? "" : script, lt ? script : "", m, &err);
			snprintf(line, sizeof(line), "%s\n", calls[i]);
			tried += strstr(lt ? fake.lt_log() : fake.cuda_log(), line) != NULL;
			if (rc != RFL_OK) {
				if (rc == RFL_EFAILED || !err.msg[0])
					fail_msg("%s: %d, %s", script, rc, err.msg);
				rfl_measurement_free(m);
				continue;
			}
			for (size_t k = 0; k < m->n; k++)
				if (!m->all[k].level.peak.kernel && !m->all[k].level.peak.reason)
					fail_msg("%s: %s has no reason", script, m->all[k].key);
			rfl_measurement_free(m);
		}
	assert_int_equal(tried, n * RFL_ARRAY_LEN(codes));
}

static void each_call_of_the_driver_fails(void **state)
{
	static const char *const calls[] = {
		"cuInit",
		"cuDriverGetVersion",
		"cuDeviceGetCount",
		"cuDeviceGet",
		"cuDeviceGetName",
		"cuDeviceGetUuid_v2",
		"cuDeviceGetAttribute",
		"cuDeviceTotalMem_v2",
		"cuDeviceGetPCIBusId",
		"cuDevicePrimaryCtxRetain",
		"cuCtxPushCurrent_v2",
		"cuMemGetInfo_v2",
		"cuMemAlloc_v2",
		"cuMemFree_v2",
		"cuMemHostAlloc",
		"cuMemFreeHost",
		"cuMemcpyHtoD_v2",
		"cuMemcpyDtoH_v2",
		"cuMemcpyHtoDAsync_v2",
		"cuMemcpyDtoHAsync_v2",
		"cuMemsetD32_v2",
		"cuModuleLoadData",
		"cuModuleUnload",
		"cuModuleGetFunction",
		"cuOccupancyMaxActiveBlocksPerMultiprocessor",
		"cuEventCreate",
		"cuEventDestroy_v2",
		"cuEventRecord",
		"cuEventSynchronize",
		"cuEventElapsedTime",
		"cuLaunchKernel",
	};

	(void)state;
	fail_each(calls, RFL_ARRAY_LEN(calls), false);
}

static void each_call_of_cublaslt_fails(void **state)
{
#define NAME(member, symbol, arguments) #symbol,
	static const char *const calls[] = { RFL_LT_FUNCTIONS(NAME) };
#undef NAME

	(void)state;
	fail_each(calls, RFL_ARRAY_LEN(calls), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_are_much_larger_than_l2),
		cmocka_unit_test(a_fault_that_is_noticed_late_is_reported),
		cmocka_unit_test(rates_are_those_of_the_gpu),
		cmocka_unit_test(a_ceiling_is_what_is_sustained),
		cmocka_unit_test(the_fastest_algorithm_is_used),
		cmocka_unit_test(what_cannot_be_measured_has_a_reason),
		cmocka_unit_test(a_product_is_not_needed_where_mma_is_full),
		cmocka_unit_test(without_any_ceiling_there_is_an_error),
		cmocka_unit_test_setup_teardown(the_environment_is_written, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(the_fake_refuses_as_cublaslt_does),
		cmocka_unit_test(fp8_is_measured_in_both_ways),
		cmocka_unit_test(each_call_of_the_driver_fails),
		cmocka_unit_test(each_call_of_cublaslt_fails),
	};
	return cmocka_run_group_tests(tests, load_fakes, NULL);
}
