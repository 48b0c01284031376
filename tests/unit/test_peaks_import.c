/* Results of other tools: each name becomes its ceiling or is listed, and damaged files are
 * refused. */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "peaks/edit.h"
#include "peaks/import.h"
#include "peaks/peaks.h"
#include "peaks/rules.h"

/* Import files into a new peaks file and load it. */
static enum rfl_rc import(void *state, const char *path, const struct rfl_peaks_import_options *o,
			  struct rfl_peaks **ret, char *ignored, size_t size, struct rfl_err *err)
{
	const char *file = tmp_path(state, "peaks.json"), *name;
	struct rfl_peaks_edit *e = NULL;
	struct rfl_peaks_import in;
	json_t *env = NULL, *value;
	enum rfl_rc rc;

	(void)remove(file);
	rfl_peaks_import_init(&in, o);
	rc = rfl_peaks_import_file(&in, path, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_import_env(&in, &env, err);
	assert_true((rc == RFL_OK) == (env != NULL));
	ignored[0] = '\0';
	json_object_foreach(in.ignored, name, value)
	{
		const size_t len = strlen(ignored);

		snprintf(ignored + len, size - len, "%s%s", len ? " " : "", name);
	}
	rfl_peaks_import_fini(&in);
	if (rc == RFL_OK) { /* what is imported is always valid */
		assert_ok(rfl_peaks_edit_open(file, &e, err), err);
		rfl_peaks_edit_merge(e, "lab", env);
		assert_ok(rfl_peaks_edit_save(e, err), err);
		assert_ok(rfl_peaks_load(file, ret, err), err);
	}
	rfl_peaks_edit_close(e);
	json_decref(env);
	return rc;
}

/* The ceilings as "fp32.vector=290.5 L1/core=3.5 ...", "?" for those without a value. */
static const char *written(const struct rfl_peaks_env *env, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < env->ncompute + env->nlevels; i++) {
		const struct rfl_peak_level *l =
			i < env->ncompute ? NULL : &env->levels[i - env->ncompute];
		const struct rfl_peak *p = l ? &l->peak : &env->compute[i].peak;

		len += (size_t)snprintf(out + len, size - len, "%s%s%s%s=", i ? " " : "",
					l ? l->level : env->compute[i].key, l ? "/" : "",
					l ? l->scope : "");
		if (rfl_peak_usable(p))
			len += (size_t)snprintf(out + len, size - len, "%.10g", p->value / 1e9);
		else
			len += (size_t)snprintf(out + len, size - len, "%s",
						rfl_peak_status_name(p->status));
	}
	return out;
}

/* Numbers are those in the files; nvbandwidth's copies count twice, because memory reads and
 * writes. */
static const struct {
	const char *file;
	struct rfl_peaks_import_options options;
	const char *kind, *device, *cells, *ignored, *source;
} files[] = {
	{ "ert.json",
	  { .from = NULL },
	  "cpu",
	  "not recorded",
	  "fp64.vector=145.25 fp32.vector=290.5 L1/node=1114.5 L2/node=680.75 DRAM/node=150.5",
	  "TC GFLOPs",
	  "Empirical Roofline Toolkit" },
	{ "ert_1.1.json",
	  { .kind = "gpu", .device = "A card" },
	  "gpu",
	  "A card",
	  "fp64.vector=355.75 L1/device=2000.5 L2/device=1000.25 L3/device=500.5 DRAM/device=90.5",
	  "L4",
	  "Empirical Roofline Toolkit" },
	{ "likwid_flops.txt",
	  { .from = NULL },
	  "cpu",
	  "not recorded",
	  "fp64.vector.1core=41.5 fp32.vector=640.0005 fp64.vector.nofma=160.00025 "
	  "fp64.vector.fmaadd=480.00075 fp64.scalar.1core=9.91925 DRAM/node=unknown",
	  "peakflops_avx",
	  "likwid-bench" },
	{ "likwid_5.2.2.txt",
	  { .from = "likwid-bench" },
	  "cpu",
	  "not recorded",
	  "fp32.vector=34.88159 fp64.vector.1core=34.07239 DRAM/node=unknown",
	  "",
	  "likwid-bench" },
	{ "likwid_dram.txt",
	  { .level = "DRAM" },
	  "cpu",
	  "not recorded",
	  "fp32.vector=unknown DRAM/node=144.0005 DRAM/core=14.5005",
	  "store_mem_avx",
	  NULL },
	{ "rocprof.csv",
	  { .select = "1" },
	  "gpu",
	  "not recorded",
	  "fp32.vector=20985.506 fp64.vector=20301.832 bf16.matrix=170928.06 "
	  "fp16.matrix=165162.06 fp32.matrix=41494.691 fp64.matrix=41550.176 "
	  "int8.matrix=166923.81 L1/device=9239.2627 shared/device=18243.783 "
	  "L2/device=5029.6997 HBM/device=1389.3043",
	  "",
	  "rocprof-compute" },
	{ "rocprof_new.csv",
	  { .from = "rocprof-compute", .device = "AMD Instinct MI300X" },
	  "gpu",
	  "AMD Instinct MI300X",
	  "fp8.matrix=1800000.5 bf16.vector=150001.5 fp16.vector=150000.5 fp16.matrix=900000.5 "
	  "int8.vector=75000.5 "
	  "L1/device=40000.5 shared/device=70000.5 L2/device=20000.5 HBM/device=4200.5",
	  "MALLBw I32Ops MFMA_FLOPs_F6F4",
	  "rocprof-compute" },
	{ "rocprof_analyze.txt",
	  { .from = NULL },
	  "gpu",
	  "not recorded",
	  "fp32.vector=96063.54 fp64.vector=79287.4 L1/device=25368.46 shared/device=57333.99 "
	  "L2/device=19341.46 HBM/device=3343.63",
	  "",
	  "rocprof-compute" },
	{ "nersc.txt",
	  { .precision = "fp64" },
	  "gpu",
	  "not recorded",
	  "fp64.vector=7068.86 fp64.vector.nofma=3535.79 L1/device=14336 L2/device=2996.77 "
	  "HBM/device=828.758",
	  "",
	  "NERSC's roofline scripts" },
	{ "clpeak.json",
	  { .from = NULL },
	  "gpu",
	  "NVIDIA GeForce RTX 4090",
	  "fp32.vector=80000.5 fp16.vector=79500.25 fp16.matrix=163250 "
	  "fp16.matrix.fp16acc=326500 fp64.matrix=unsupported shared/device=failed "
	  "DRAM/device=925.5",
	  "mixed_precision_compute wmma_int8_sparse kernel_launch_latency",
	  "clpeak 2.1.2" },
	{ "clpeak.csv",
	  { .select = "CPU" },
	  "cpu",
	  "A processor, 16 cores",
	  "fp32.vector=1928.5 fp32.vector.1core=135.75 bf16.vector=unsupported L1/core=240.75 "
	  "L1/node=3832.5 DRAM/node=38.25",
	  "memory_latency",
	  "clpeak" },
	{ "clpeak.xml",
	  { .kind = "cpu" },
	  "cpu",
	  "pthread-skylake-avx512-AMD EPYC",
	  "fp32.vector=16.8688 fp64.vector=10.8348 DRAM/node=17.7528",
	  "integer_compute integer_compute_fast transfer_bandwidth kernel_launch_latency",
	  "clpeak" },
	{ "clpeak_2.xml",
	  { .select = "CPU" },
	  "cpu",
	  "A processor",
	  "fp32.vector.1core=135.75 fp32.vector=1928.5 bf16.vector=unsupported "
	  "bf16.matrix=2500 DRAM/node=38.25",
	  "smt_scaling",
	  "clpeak 2.1.2" },
	{ "nvbandwidth.json",
	  { .select = "1" },
	  "gpu",
	  "NVIDIA H200",
	  "fp32.vector=unknown DRAM/device=4021 link/device=54.5",
	  "device_to_device_memcpy_read_ce",
	  NULL },
};

static void reads_each_format(void **state)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++) {
		char path[64], out[1024], ignored[512];
		struct rfl_peaks *p = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		snprintf(path, sizeof(path), "peaks/import/%s", files[i].file);
		assert_ok(import(*state, data_path(path), &files[i].options, &p, ignored,
				 sizeof(ignored), &err),
			  &err);

		const struct rfl_peaks_env *env = rfl_peaks_find(p, "lab");

		assert_string_equal(env->kind, files[i].kind);
		assert_string_equal(env->device, files[i].device);
		assert_string_equal(written(env, out, sizeof(out)), files[i].cells);
		assert_string_equal(ignored, files[i].ignored);
		if (files[i].source)
			assert_string_equal(env->compute[0].peak.source, files[i].source);
		rfl_peaks_free(p);
	}
}

/* Every key of every table exists, and no name occurs twice. */
static void every_name_has_a_valid_key(void **state)
{
	static const struct rfl_peaks_format *const formats[] = {
		&rfl_peaks_format_ert,    &rfl_peaks_format_likwid,      &rfl_peaks_format_rocprof,
		&rfl_peaks_format_clpeak, &rfl_peaks_format_nvbandwidth, &rfl_peaks_format_nersc,
	};

	(void)state;
	for (size_t i = 0; rfl_peaks_format_names[i]; i++) {
		const struct rfl_peaks_format *f = formats[i];

		assert_string_equal(rfl_peaks_format_names[i], f->name);
		for (const struct rfl_peaks_name *n = f->names; n->name; n++) {
			const bool open = n->key && n->key[0] == '.'; /* for any precision */
			bool level = false;
			char key[48];

			(void)snprintf(key, sizeof(key), "%s%s", open ? "fp32" : "",
				       n->key ? n->key : "");
			for (size_t k = 0; n->key && rfl_peaks_levels[k]; k++)
				level = level || strcmp(rfl_peaks_levels[k], n->key) == 0;
			assert_true(!n->key || level || rfl_rules__is_compute_key(key));
			for (const struct rfl_peaks_name *m = n + 1; m->name; m++)
				assert_string_not_equal(n->name, m->name);
		}
		assert_true(*f->tool);
	}
}

#define CLPEAK "{\"format_version\":2,\"clpeak_version\":\"2\",\"entries\":["
#define ENTRY  "\"backend\":\"CUDA\",\"device\":\"X\",\"test\":\"single_precision_compute\","
#define XML(metrics)                               \
	"<clpeak os=\"Linux\"><device name=\"X\">" \
	"<double_precision_compute unit=\"gflops\">\n<double>" metrics
#define XML2(metric)                                                        \
	"<clpeak format_version=\"2\"><run backend=\"CPU\" device=\"X\">"   \
	"<test name=\"double_precision_compute\" unit=\"gflops\">\n" metric \
	"</test></run></clpeak>"
#define CLPEAK_C      "format_version,backend,device,test,metric,unit,status,value,reason\n"
#define LIKWID(lines) "LIKWID MICRO BENCHMARK\nTest: peakflops_avx_fma\n" lines
#define NVB(matrix)                                                                         \
	"{\"nvbandwidth\": {\"testcases\": [{\"name\": \"device_local_copy\", \"status\": " \
	"\"Passed\", \"bandwidth_matrix\": " matrix "}]}}"

static void refuses_damaged_files(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "", "unknown format; it is none of: ert, likwid-bench" },
		{ "hello", "unknown format" },
		/* ERT */
		{ "{\"empirical\": {\"gbytes\":", "file.txt:1" },
		{ "{\"empirical\": {\"gflops\": {}, \"gbytes\": {}}}", "/empirical/gflops/data" },
		{ "{\"empirical\": {\"gflops\": {\"data\": [[\"GFLOPs\", 1]]}, \"gbytes\": {}}}",
		  "/empirical/gbytes/data: must be a list" },
		{ "{\"empirical\": {\"gflops\": {\"data\": [[\"GFLOPs\"]]}, \"gbytes\": {}}}",
		  "/empirical/gflops/data/0: must be [name, value]" },
		{ "{\"empirical\": {\"gflops\": {\"data\": [[\"GFLOPs\", \"1\"]]}, \"gbytes\": "
		  "{}}}",
		  "must be [name, value]" },
		{ "{\"empirical\": {\"gflops\": {\"data\": [[\"GFLOPs\", 0]]}, \"gbytes\": {}}}",
		  "GFLOPs: 0 is not a rate" },
		{ "{\"empirical\": {\"gflops\": {\"data\": [[\"GFLOPs\", -3]]}, \"gbytes\": {}}}",
		  "-3 is not a rate" },
		{ "{\"empirical\": {\"gflops\": {\"data\": [[\"GFLOPs\", 3e11]]}, \"gbytes\": {}}}",
		  "3e+11 is not a rate from 1e-09 to 1e+08 GFLOP/s or GB/s; check its unit" },
		{ "{\"empirical\": {\"gflops\": {\"data\": []}, \"gbytes\": {\"data\": []}}}",
		  "the file names no known ceiling" },
		/* likwid-bench */
		{ LIKWID(""), "the run of peakflops_avx_fma has no rates; the file is cut off" },
		{ LIKWID("Using 2 threads\nSize (Byte): 9\nMFlops/s: 5\nTest: load\n"),
		  "peakflops_avx_fma has no rates" },
		{ LIKWID("Using 2 threads\nSize (Byte): 9\nMFlops/s:\n"),
		  "line 5: 'MFlops/s:' has no valid number" },
		{ LIKWID("Using x threads\n"), "line 3: 'Using x threads' has no valid number" },
		{ LIKWID("Using 0 threads\nSize (Byte): 9\nMFlops/s: 5\nMByte/s: 5\n"),
		  "line 6: 'MByte/s: 5' without 'Test:'" },
		{ LIKWID("Size (Byte): 9\nMFlops/s: 5\nMByte/s: 5\n"), "without 'Test:'" },
		{ "MFlops/s: 5\nMByte/s: 5\n", "line 2: 'MByte/s: 5' without 'Test:'" },
		{ LIKWID("Using 2 threads\nSize (Byte): 9\nMFlops/s: 5e20\nMByte/s: 5\n"),
		  "peakflops_avx_fma: 5e+17 is not a rate" },
		{ "LIKWID MICRO BENCHMARK\nTest: copy\nUsing 2 threads\nSize (Byte): 9\n"
		  "MFlops/s: 0\nMByte/s: 5\n",
		  "copy: likwid-bench does not name the memory level of its arrays (9 bytes)" },
		/* rocprof-compute */
		{ "device,HBMBw,FP32Flops\n", "the file names no known ceiling" },
		{ "device,HBMBw,FP32Flops\n0,1\n", "line 2: 2 fields, but the header has 3" },
		{ "device,HBMBw,FP32Flops\n0,fast,1\n", "HBMBw" },
		{ "device,HBMBw,FP32Flops\n0,1,-1\n", "FP32Flops: -1 is not a rate" },
		{ "device,HBMBw,FP32Flops\n0,1,1\n1,1,1\n",
		  "the file has the devices 0, 1; select one with --select" },
		/* clpeak */
		{ CLPEAK, "file.txt:1" },
		{ "{\"clpeak_version\":\"1\"}", "format_version '' of clpeak is not read" },
		{ "{\"format_version\":2,\"clpeak_version\":\"2\"}", "/entries: must be a list" },
		{ CLPEAK "{" ENTRY "\"metric\":\"float\"}]}", "/entries/0/unit: must be a string" },
		{ CLPEAK "{" ENTRY "\"metric\":\"float\",\"unit\":\"gflops\"}]}",
		  "/entries/0/value: must be a number" },
		{ CLPEAK "{" ENTRY "\"metric\":\"float\",\"unit\":\"tflops\",\"value\":1e9}]}",
		  "single_precision_compute/float: 1e+12 is not a rate" },
		{ "format_version,backend,x\n2,CPU,1\n", "device" },
		{ CLPEAK_C "1,CPU,X,single_precision_compute,f,gflops,ok,1,\n",
		  "format_version '1' of clpeak is not read" },
		{ CLPEAK_C "2,CPU,X\n", "line 2: 3 fields, but the header has 9" },
		{ CLPEAK_C "2,CPU,X,single_precision_compute,f,gflops,ok,,\n",
		  "nan is not a rate" },
		{ "<clpeak os=\"Linux\">", "file.txt:1: no element found" },
		{ XML("5</double>\n</device>"), "file.txt:3: mismatched tag" },
		{ XML("fast</double>"), "line 2: double: 'fast' is not a number" },
		{ XML("5</double><float>0</float>"), "double_precision_compute/float: 0 is not a" },
		{ "<clpeak format_version=\"3\"/>", "format_version '3' of clpeak is not read" },
		{ XML2("<metric name=\"m\"/>"), "line 2: m: '' is not a number" },
		{ XML2("<metric name=\"m\">1e30</metric>"), "double_precision_compute/m: 1e+30" },
		/* nvbandwidth */
		{ "{\"nvbandwidth\": {\"testcases\": 1}}",
		  "/nvbandwidth/testcases: must be a list" },
		{ "{\"nvbandwidth\": {\"testcases\": [{}]}}", "without \"name\" or \"status\"" },
		{ NVB("[[\"fast\"]]"), "device_local_copy: 'fast' is not a number" },
		{ NVB("[[5]]"), "device_local_copy: 'null' is not a number" },
		{ NVB("[[\"1\", \"2\"]]"), "the file has the devices 0, 1" },
		{ NVB("[[\"1e30\"]]"), "2e+30 is not a rate" },
		{ NVB("[[\"N/A\"]]"), "the file names no known ceiling" },
	};
	static const struct rfl_peaks_import_options none = { .from = NULL };

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *path = write_file(*state, "file.txt", cases[i].text);
		struct rfl_peaks *p = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		char ignored[256];

		assert_int_not_equal(
			import(*state, path, &none, &p, ignored, sizeof(ignored), &err), RFL_OK);
		assert_says(&err, "file.txt");
		assert_says(&err, cases[i].word);
		assert_null(p);
	}
}

static void refuses_options_that_do_not_fit(void **state)
{
	static const struct {
		const char *file;
		struct rfl_peaks_import_options options;
		const char *word;
	} cases[] = {
		{ "ert.json", { .from = "ERT" }, "unknown format; it is none of: ert, likwid" },
		{ "ert.json", { .from = "nvbandwidth" }, "/nvbandwidth/testcases" },
		{ "rocprof.csv",
		  { .select = "2" },
		  "the file has the devices 0, 1; select one of" },
		{ "clpeak.csv",
		  { .from = NULL },
		  "the file has the devices llvmpipe (LLVM 22.1.8, 256 bits), CPU; select one" },
		{ "none.json", { .from = NULL }, "none.json" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		char path[64], ignored[256];
		struct rfl_peaks *p = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		snprintf(path, sizeof(path), "peaks/import/%s", cases[i].file);
		assert_int_not_equal(import(*state, data_path(path), &cases[i].options, &p, ignored,
					    sizeof(ignored), &err),
				     RFL_OK);
		assert_says(&err, cases[i].word);
		assert_null(p);
	}
}

static void runs_of_several_levels_are_not_mixed(void **state)
{
#define RUN(test, size, rate)                                                         \
	"LIKWID MICRO BENCHMARK\nTest: " test "\nUsing 4 threads\nSize (Byte): " size \
	"\nMFlops/s: 0.00\nMByte/s: " rate "\n"
	static const struct rfl_peaks_import_options l2 = { .level = "L2" };
	const char *path =
		write_file(*state, "file.txt",
			   RUN("load_avx", "1000000", "5000") RUN("copy_avx", "30000", "90000"));
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char ignored[64];

	assert_int_equal(import(*state, path, &l2, &p, ignored, sizeof(ignored), &err),
			 RFL_EFORMAT);
	assert_says(&err, "copy_avx: arrays of 1e+06 and 30000 bytes may be in different memory");
}

/* What is exported for ERT is read again with the same values. */
static void exports_for_ert(void **state)
{
	static const struct rfl_peaks_import_options none = { .from = NULL };
	const char *path = tmp_path(*state, "roofline.json");
	struct rfl_peaks *p = NULL, *again = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf skipped;
	char out[1024], ignored[64];
	json_t *value;

	assert_ok(
		rfl_peaks_load(
			write_file(*state, "in.json",
				   "{\"schema_version\": \"1.0\", \"environments\": {\"lab\": {"
				   "\"kind\": \"cpu\", \"device\": {\"name\": \"x\", \"units\": 4},"
				   "\"compute\": {\"fp32.vector\": {\"status\": \"user\","
				   "\"value\": 400, \"source\": {\"title\": \"t\"}},"
				   "\"bf16.matrix\": {\"status\": \"user\", \"value\": 9,"
				   "\"source\": {\"title\": \"t\"}}, \"fp64.vector\": {\"status\":"
				   "\"failed\", \"reason\": \"r\"}}, \"memory\": [{\"level\":"
				   "\"L1\", \"scope\": \"core\", \"gbs\": {\"status\": \"user\","
				   "\"value\": 100.5, \"source\": {\"title\": \"t\"}}}, {\"level\":"
				   "\"HBM\", \"scope\": \"node\", \"gbs\": {\"status\": \"user\","
				   "\"value\": 90, \"source\": {\"title\": \"t\"}}}]}}}"),
			&p, &err),
		&err);
	rfl_buf_init(&skipped, 0);
	value = rfl_peaks_export_ert(&p->envs[0], &skipped);
	assert_non_null(value);
	assert_string_equal(rfl_buf_str(&skipped), "compute.bf16.matrix, compute.fp64.vector");
	assert_ok(rfl_json_save(path, value, &err), &err);
	json_decref(value);
	assert_ok(import(*state, path, &none, &again, ignored, sizeof(ignored), &err), &err);
	assert_string_equal(written(&again->envs[0], out, sizeof(out)),
			    "fp32.vector=400 L1/node=402 DRAM/node=90");
	rfl_buf_fini(&skipped);
	rfl_peaks_free(p);
	rfl_peaks_free(again);
}

#define IN_TMP(test) cmocka_unit_test_setup_teardown(test, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_TMP(reads_each_format),
		cmocka_unit_test(every_name_has_a_valid_key),
		IN_TMP(refuses_damaged_files),
		IN_TMP(refuses_options_that_do_not_fit),
		IN_TMP(runs_of_several_levels_are_not_mixed),
		IN_TMP(exports_for_ert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
