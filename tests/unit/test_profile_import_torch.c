/*
 * Traces of torch.profiler: real ones of small networks against PyTorch's own FLOPs and counts by
 * hand, kernels and the operators that launched them, every rule, and damaged files.
 */
#include <stdlib.h>

#include "tests/unit/summary_rig.h"

static const struct rfl_range *range_of(const struct rfl_capture *c, const char *name)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (strcmp(c->ranges[i].name, name) == 0)
			return &c->ranges[i];
	fail_msg("no range '%s'", name);
	return NULL;
}

static double value(const struct rfl_capture *c, const char *name, enum rfl_quantity q)
{
	return range_of(c, name)->amount[q].value;
}

static bool has_note(const struct rfl_capture *c, const char *words)
{
	for (size_t i = 0; i < c->nnotes; i++)
		if (strstr(c->notes[i], words))
			return true;
	return false;
}

#define FLOPS RFL_QUANTITY_FLOPS
#define BYTES RFL_QUANTITY_DRAM
#define TIME  RFL_QUANTITY_TIME

/* Three steps of the networks of tests/data/profile/torch/make.py. */
static void counts_the_flops_of_pytorch(void **state)
{
	/* resnet: conv1 8 x 16 x 16^2 outputs of 3 x 3^2 taps; conv2 8 x 16 x 8^2 of 8 x 3^2 (two
	 * groups); both three steps */
	const double conv1 = 3 * 2.0 * 8 * 16 * 256 * 27, conv2 = 3 * 2.0 * 8 * 16 * 64 * 72;
	/* gpt: scores of 4 x 4 heads x 32^2, of 16 + 16 features */
	const double attention = 3 * 2.0 * 4 * 4 * 32 * 32 * (16 + 16);
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "torch", "torch/resnet.json.gz");
	assert_string_equal(c->label, "resnet");
	assert_int_equal(c->steps, 3);
	assert_int_equal(c->total_kind, RFL_RANGE_OP);
	assert_true(has_note(c, "3 steps (ProfilerStep) took"));
	/* as key_averages() printed for aten::conv2d, addmm and mm */
	assert_close(value(c, "aten::convolution", FLOPS), 8847360, 0);
	assert_close(value(c, "aten::convolution", FLOPS), conv1 + conv2, 0);
	assert_close(value(c, "aten::addmm", FLOPS), 7680, 0);
	assert_close(value(c, "aten::mm", FLOPS), 15360, 0);
	/* no gradient of the first input */
	assert_close(value(c, "aten::convolution_backward", FLOPS), conv1 + 2 * conv2, 0);
	assert_close(value(c, "aten::native_batch_norm", FLOPS), 0, 0);
	assert_close(c->total[FLOPS].value, 8847360 + 7680 + 15360 + conv1 + 2 * conv2, 0);
	assert_close(c->total[RFL_QUANTITY_FLOPS_FP32].value, c->total[FLOPS].value, 0);
	assert_int_equal(c->total[FLOPS].validity, RFL_VALID);
	assert_int_equal(c->total[BYTES].validity, RFL_VALID_ESTIMATE);
	/* x, w and the outputs, once per step, in fp32 */
	assert_close(value(c, "aten::convolution", BYTES),
		     3 * 4.0 * (8 * 3 * 1024 + 16 * 27 + 8 * 16 * 256) +
			     3 * 4.0 * (8 * 16 * 64 + 16 * 72 + 8 * 16 * 64),
		     0);

	c = rig_file(&rig, "torch", "torch/gpt.json.gz");
	assert_close(value(c, "aten::addmm", FLOPS), 37748736, 0);
	assert_close(value(c, "aten::mm", FLOPS), 113246208, 0);
	assert_close(value(c, "aten::_scaled_dot_product_flash_attention_for_cpu", FLOPS),
		     attention, 0);
	assert_close(value(c, "aten::_scaled_dot_product_flash_attention_for_cpu_backward", FLOPS),
		     2 * attention, 0);
	assert_int_equal(c->total[FLOPS].validity, RFL_VALID);

	c = rig_file(&rig, "torch", "torch/gpt_bf16.json.gz");
	assert_close(c->total[RFL_QUANTITY_FLOPS_TENSOR_BF16].value,
		     12582912 + 37748736 + attention, 0); /* one step: 3 x attention / 3 */
	assert_true(isnan(c->total[RFL_QUANTITY_FLOPS_FP32].value));
	rig_fini(&rig);
}

static void says_what_a_trace_without_shapes_lacks(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "torch", "torch/resnet_plain.json.gz");
	assert_true(c->total[TIME].value > 0 && c->total[TIME].validity == RFL_VALID);
	assert_true(isnan(c->total[FLOPS].value) && isnan(c->total[BYTES].value));
	assert_non_null(strstr(c->total[FLOPS].reason, "record_shapes=True"));
	assert_non_null(strstr(range_of(c, "aten::convolution")->amount[BYTES].reason,
			       "record_shapes=True"));
	rig.options.steps = 7;
	assert_int_equal(rig_file(&rig, "torch", "torch/resnet_plain.json.gz")->steps, 7);
	rig_fini(&rig);
}

static void joins_kernels_and_operators(void **state)
{
	const struct rfl_range *r;
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "torch", "torch/gpu_constructed.json");
	assert_string_equal(c->device, "NVIDIA A100-SXM4-40GB");
	assert_true(rfl_capture_is_of_gpu(c));
	assert_int_equal(c->steps, 2);
	assert_close(c->total[TIME].value, 100e-6, 1e-12);
	/* by "External id" */
	assert_close(value(c, "aten::addmm", TIME), 40e-6, 1e-12);
	assert_close(value(c, "aten::addmm", FLOPS), 2.0 * 64 * 256 * 512, 0);
	r = range_of(c, "ampere_sgemm_64x32_sliced1x4_tn");
	assert_int_equal(r->kind, RFL_RANGE_KERNEL);
	assert_string_equal(r->grid, "(16, 1, 1)");
	assert_string_equal(r->block, "(128, 1, 1)");
	assert_close(r->amount[FLOPS].value, 2.0 * 64 * 256 * 512, 0);
	/* two kernels of the operator that a convolution calls; one is found by its launch */
	r = range_of(c, "aten::convolution");
	assert_close(r->amount[TIME].value, 40e-6, 1e-12);
	assert_close(r->amount[RFL_QUANTITY_FLOPS_TENSOR_FP16].value, 2.0 * 2 * 6 * 64 * 36, 0);
	r = range_of(c, "sm80_xmma_fprop_implicit_gemm_f16f16");
	assert_true(isnan(r->amount[FLOPS].value));
	assert_non_null(strstr(r->amount[FLOPS].reason, "several kernels"));
	/* a call includes what it calls; copies and fills know their bytes */
	assert_close(value(c, "aten::relu", BYTES), 2 * 4.0 * 64 * 512, 0);
	assert_close(value(c, "Memcpy HtoD (Pinned -> Device)", BYTES), 65536, 0);
	assert_close(value(c, "aten::copy_", BYTES), 65536, 0); /* the host's side does not count */
	assert_close(value(c, "(no operator)", BYTES), 4096, 0);
	r = range_of(c, "mylib::fused_step");
	assert_non_null(strstr(r->amount[FLOPS].reason, "no rule"));
	rig_fini(&rig);
}

/* A trace of one operator. */
static const struct rfl_capture *read_op(struct summary_rig *rig, const char *name,
					 const char *dims, const char *types, const char *values)
{
	char text[2048];

	(void)snprintf(
		text, sizeof(text),
		"{\"deviceProperties\": [], \"traceEvents\": [{\"args\": {\"Concrete Inputs\": "
		"[%s], "
		"\"Input Dims\": [%s], \"Input type\": [%s]}, \"dur\": 2, \"ts\": 1, \"tid\": 1, "
		"\"pid\": 1, \"name\": \"aten::%s\", \"cat\": \"cpu_op\", \"ph\": \"X\"}]}",
		values, dims, types, name);
	return rig_read(rig, "torch", text);
}

#define F "\"float\","
#define I "\"long int\","
#define L "\"ScalarList\","

static void derives_work_from_shapes(void **state)
{
	static const struct {
		const char *op, *dims, *types, *values;
		double flops, bytes;
	} cases[] = {
		{ "bmm", "[5,4,8],[5,8,2]", F F "\"\"", "", 640, 4 * (160 + 80 + 40) },
		{ "addmv_", "[4],[4,8],[8]", F F F "\"\"", "", 64, 4 * (4 + 32 + 8 + 4) },
		{ "linear", "[3,4,8],[2,8],[2]", F F F "\"\"", "", 384, 4 * (96 + 16 + 2 + 24) },
		/* transposed, two groups: 2 x 6 x 5^2 inputs, each to 2 channels x 3^2 */
		{ "convolution", "[2,6,5,5],[6,2,3,3],[],[],[],[],[],[],[]",
		  F F "\"\"," L L L "\"\"," L "\"\"",
		  "\"\",\"\",\"\",\"[2, 2]\",\"[1]\",\"[1, 1]\",\"True\",\"[1, 1]\",\"2\"",
		  2 * 300 * 18, 4 * (300 + 108 + 2 * 4 * 100) },
		/* dilated, bias: (9 - 2 x 2 - 1) / 1 + 1 = 5 */
		{ "convolution", "[1,3,9],[4,3,3],[4],[],[],[],[],[],[]",
		  F F F L L L "\"\"," L "\"\"",
		  "\"\",\"\",\"\",\"[1]\",\"[0]\",\"[2]\",\"False\",\"[0]\",\"1\"", 2 * 20 * 9,
		  4 * (27 + 36 + 4 + 20) },
		{ "convolution_backward", "[1,4,5],[1,3,9],[4,3,3],[],[],[],[],[],[],[],[]",
		  F F F L L L L "\"\"," L "\"\"," L,
		  "\"\",\"\",\"\",\"[4]\",\"[1]\",\"[0]\",\"[2]\",\"False\",\"[0]\",\"1\",\"[False,"
		  " "
		  "True, True]\"",
		  2 * 20 * 9, 4 * (20 + 27 + 36 + 36 + 4) },
		/* 2 heads of 3 queries and 5 keys, 8 and 6 features */
		{ "_scaled_dot_product_efficient_attention", "[1,2,3,8],[1,2,5,8],[1,2,5,6]",
		  F F F "\"\"", "", 2 * 30 * 14, 4 * (48 + 80 + 60 + 36) },
		{ "add", "[4,1],[3],[]", F F "\"Scalar\"", "", 0, 4 * (4 + 3 + 12) },
		{ "add_", "[2,2],[]", "\"c10::BFloat16\",\"double\"", "", 0, 2 * 4 + 8 + 2 * 4 },
		{ "native_layer_norm", "[6,8],[],[8],[8],[]", F L F F "\"\"", "", 0,
		  4 * (48 + 16 + 48) },
		{ "cat", "[[2,3],[4,3]],[]", "\"TensorList\",\"Scalar\"", "", 0, 2 * 4 * 18 },
		{ "_foreach_mul_", "[[2],[3]],[]", "\"TensorList\",\"Scalar\"", "", 0, 2 * 4 * 5 },
		{ "_fused_adamw_", "[[2],[3]],[[2],[3]],[[2],[3]],[[2],[3]],[],[[],[]]",
		  "\"TensorList\",\"TensorList\",\"TensorList\",\"TensorList\",\"\",\"TensorList\"",
		  "", 0, 4 * (4 * 5 + 2 + 3 * 5) },
		{ "fill_", "[7],[]", F "\"Scalar\"", "", 0, 28 },
		{ "copy_", "[7],[7],[]", "\"c10::Half\"," F "\"Scalar\"", "", 0, 14 + 28 },
		{ "sum", "[7,9],[]", F L, "", 0, 4 * 63 },
		{ "index_select", "[10,4],[],[3]", F "\"Scalar\"," I, "", 0, 24 + 2 * 4 * 12 },
		{ "embedding_dense_backward", "[3,4],[3],[]", F I "\"Scalar\"", "\"\",\"\",\"10\"",
		  0, 4 * 12 + 24 + 4 * 40 },
		/* 3 x 2 outputs, and their indices; no stride: the window's size */
		{ "max_pool2d_with_indices", "[1,2,7,5],[],[],[],[],[]", F L L L L "\"Scalar\"",
		  "\"\",\"[2, 2]\",\"[]\",\"[0, 0]\",\"[1, 1]\",\"False\"", 0,
		  4 * 70 + 12 * (4 + 8) },
		{ "nll_loss_backward", "[],[6,9],[6]", F F I, "", 0, 4 * 54 },
		{ "view", "[6]", F, "", 0, 0 },
	};
	struct summary_rig rig;
	char types[512];

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		(void)snprintf(types, sizeof(types), "%s", cases[i].types);
		if (types[strlen(types) - 1] == ',')
			types[strlen(types) - 1] = '\0';
		const struct rfl_capture *c =
			read_op(&rig, cases[i].op, cases[i].dims, types, cases[i].values);

		if (c->total[FLOPS].value != cases[i].flops ||
		    c->total[BYTES].value != cases[i].bytes)
			fail_msg("aten::%s (%zu): %g FLOP, %g bytes", cases[i].op, i,
				 c->total[FLOPS].value, c->total[BYTES].value);
	}
	rig_fini(&rig);
}

static void refuses_shapes_that_do_not_fit(void **state)
{
	static const struct {
		const char *op, *dims, *why;
	} cases[] = {
		{ "mm", "[4,8],[7,2]", "contradict" },
		{ "mm", "[4,-8],[-8,2]", "contradict" },
		{ "mm", "[1e300,1e300],[1e300,1e300]", "contradict" },
		{ "mm", "[],[]", "contradict" },
		{ "add", "[1,1,1,1,1,1,1,1,2],[2]", "contradict" },
		{ "convolution", "[1,3,9],[4,3,3]", "contradict" },
		{ "an_operator_of_2031", "[4],[4]", "no rule" },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_capture *c =
			read_op(&rig, cases[i].op, cases[i].dims, "\"float\",\"float\"", "");

		assert_true(isnan(c->total[FLOPS].value) && isnan(c->total[BYTES].value));
		assert_non_null(strstr(c->total[FLOPS].reason, cases[i].why));
		assert_close(c->total[TIME].value, 2e-6, 1e-12);
	}
	rig_fini(&rig);
}

#define EVENT(name, ts, dur, dims)                                                              \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts \
	",\"dur\":" dur ",\"args\":{\"Input Dims\":[" dims                                      \
	"],\"Input type\":[\"float\",\"float\",\"float\"],\"Concrete Inputs\":[]}}"

/* An operator is a caller, with 0, if it is known to compute only by what it calls. Without a rule
 * it may compute itself. */
static void takes_no_computation_for_a_caller(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(
		&rig, "torch",
		"[" EVENT("aten::clone", "1", "9", "[3]") "," EVENT(
			"aten::zero_", "2", "3",
			"[3]") "," EVENT("aten::softmax", "11", "9",
					 "[3]") "," EVENT("aten::exp", "12", "5",
							  "[3]") "," EVENT("mylib::fused", "21",
									   "9",
									   "[3]") "," EVENT("aten::"
											    "exp",
											    "22",
											    "5",
											    "[3]") "]");
	assert_true(isnan(value(c, "aten::clone", BYTES))); /* where is its copy? */
	assert_close(value(c, "aten::softmax", BYTES), 0, 0);
	assert_close(value(c, "aten::softmax", TIME), 4e-6, 1e-12);
	assert_close(value(c, "aten::exp", BYTES), 2 * 24, 0);
	assert_true(isnan(value(c, "mylib::fused", FLOPS)));
	assert_true(isnan(value(c, "mylib::fused", BYTES)));
	assert_non_null(strstr(range_of(c, "mylib::fused")->amount[BYTES].reason, "no rule"));
	assert_close(value(c, "mylib::fused", TIME), 4e-6, 1e-12);
	assert_close(value(c, "aten::zero_", BYTES), 12, 0);
	rig_fini(&rig);
}

/* In any order, a call belongs to the operator in which it begins. */
static void counts_nested_operators_once(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(
		&rig, "torch",
		"[\n" EVENT("aten::empty", "13", "2", "") ",\n"          /* in addmm */
		EVENT("aten::sqrt", "30", "5", "[8]") ",\n"              /* after linear */
		EVENT("aten::addmm", "12", "6", "[2],[4,8],[8,2]") ",\n" /* in linear */
		EVENT("aten::linear", "10", "10", "[4,8],[2,8],[2]") ",\n" EVENT(
			"aten::t", "10", "1", "[2,8]") ",\n" /* begins with linear */
						       "{\"ph\":\"i\",\"name\":\"x\"}, 7, null]\n");
	assert_close(c->total[TIME].value, 15e-6, 1e-12);
	assert_close(value(c, "aten::linear", TIME), 3e-6, 1e-12);
	assert_close(value(c, "aten::linear", FLOPS), 0, 0);
	assert_close(value(c, "aten::addmm", TIME), 6e-6, 1e-12); /* with aten::empty */
	assert_close(value(c, "aten::addmm", FLOPS), 128, 0);
	assert_close(c->total[FLOPS].value, 128, 0);
	assert_int_equal(c->nranges, 4);
	rig_fini(&rig);
}

static void keeps_what_precedes_damage(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "[" EVENT("aten::exp", "1", "2", "[3]") ",\n{\"ph\":\"X\",\"cat\":\"cpu_op",
		  ":2: the file is cut off inside a string; use --keep-going to keep what precedes "
		  "it" },
		{ "[" EVENT("aten::exp", "1", "2", "[3]") "\n,{\"ph\" 3}]",
		  ":2: not JSON: expected ':' after a key; use --keep-going to keep what precedes "
		  "it" },
		{ "[" EVENT("aten::exp", "1", "2", "[3]") ",\n" EVENT("aten::mm", "true", "2",
								      "") "]",
		  ":2: the event 'aten::mm' has no valid time and duration" },
		{ "[" EVENT("aten::exp", "1", "2", "[3]") ",\n\n" EVENT("aten::mm", "1", "-2",
									"") "]",
		  ":3: the event 'aten::mm' has no valid time and duration" },
		{ "[" EVENT("aten::exp", "1", "2", "[3]") ",\n" EVENT("aten::mm", "{\"a\":[1]}",
								      "1e16", "") "]",
		  ":2: the event 'aten::mm' has no valid time and duration" },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	rig.options.from = "torch";
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		rig.options.keep_going = false;
		rig_refuses(&rig, cases[i].text, cases[i].message);
		rig.options.keep_going = true;
		const struct rfl_capture *c = rig_read(&rig, "torch", cases[i].text);
		assert_close(c->total[BYTES].value, 2 * 4 * 3, 0);
		assert_int_equal(c->rows_left_out, 1);
		assert_non_null(strstr(rig.warned, "file:"));
	}
	rig_refuses(&rig, "{\"traceEvents\": []}",
		    ": no operators and no kernels in the trace; profile with "
		    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
	rig_refuses(&rig, "7", ": not a trace: neither an object nor a list");
	rig_fini(&rig);
}

/* Memory does not grow with names that never end. */
static void is_bounded(void **state)
{
	RFL_AUTO(buf) text = { .len = 0 };
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	rfl_buf_puts(&text, "[");
	for (int i = 0; i < 200000; i++)
		rfl_buf_printf(
			&text,
			"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"ts\":1,\"dur\":1},\n",
			i);
	rfl_buf_puts(&text, "]");
	rig.options.from = "torch";
	assert_int_equal(rig_text(&rig, rfl_buf_str(&text)), RFL_EOVERFLOW);
	assert_string_equal(rig.err.msg,
			    "file:196610: more than 196608 names; profile fewer steps");
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_the_flops_of_pytorch),
		cmocka_unit_test(says_what_a_trace_without_shapes_lacks),
		cmocka_unit_test(joins_kernels_and_operators),
		cmocka_unit_test(derives_work_from_shapes),
		cmocka_unit_test(refuses_shapes_that_do_not_fit),
		cmocka_unit_test(takes_no_computation_for_a_caller),
		cmocka_unit_test(counts_nested_operators_once),
		cmocka_unit_test(keeps_what_precedes_damage),
		cmocka_unit_test(is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
