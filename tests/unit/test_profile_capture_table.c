/* Captures as JSON, tables and rules. */
#include "tests/unit/json_schema.h"
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/captures_impl.h"

#define SASS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"

static void add(struct rfl_capture_builder *b, enum rfl_range_kind kind, const char *name,
		double time_s, double ffma, double bytes)
{
	const struct {
		const char *name;
		double value;
	} values[] = {
		{ "gpu__time_duration.sum", time_s },
		{ SASS("fadd"), 0 },
		{ SASS("fmul"), 0 },
		{ SASS("ffma"), ffma },
		{ "dram__bytes.sum", bytes },
	};

	rfl_capture_begin(b, kind, name, "(32, 1, 1)", "(1, 1, 1)");
	for (size_t i = 0; i < RFL_ARRAY_LEN(values); i++)
		if (!isnan(values[i].value))
			(void)rfl_capture_metric(b,
						 rfl_capture_metric_id(b, values[i].name,
								       strlen(values[i].name), ""),
						 values[i].value, RFL_VALID, -1, NULL);
}

static struct rfl_capture_builder *builder(const char *label)
{
	const struct rfl_capture_spec spec = { .source = "ncu", .label = label, .path = "f.csv" };
	struct rfl_capture_builder *b = NULL;

	b = rfl_capture_builder_new(&spec);
	rfl_capture_chip(b, "GA100", NULL);
	return b;
}

/* Two captures: a GEMM, a copy and a kernel of which only the time is known; phases. */
static void make(struct rfl_captures *to)
{
	struct rfl_capture_builder *b = builder("kernels");

	rfl_captures_init(to);
	add(b, RFL_RANGE_KERNEL, "gemm \xff \"x\"", 0.5, 5e9, 1e9);
	add(b, RFL_RANGE_KERNEL, "copy", 0.3, 0, 4e9);
	add(b, RFL_RANGE_KERNEL, "unknown", 0.2, NAN, 1e9);
	rfl_capture_note(b, "a note");
	rfl_capture_refuse(b, "core", "busy");
	rfl_capture_refuse(b, "links", "none here");
	rfl_capture_refuse(b, "flops", "busy");
	assert_int_equal(rfl_capture_finish(b, to, NULL), RFL_OK);
	b = builder("phases");
	add(b, RFL_RANGE_PHASE, "fwd", 1, 1e9, 1e9);
	add(b, RFL_RANGE_IDLE, "idle", 1, 0, 5e6);
	assert_int_equal(rfl_capture_finish(b, to, NULL), RFL_OK);
}

static void render(const struct rfl_captures *captures, const struct rfl_capture_view *view,
		   struct rfl_buf *out)
{
	rfl_buf_init(out, 0);
	rfl_captures_render(captures, view, out);
}

/* The value at a path of keys and indices, "total.flops.fp32" or "kernels.0.ai". */
static const json_t *at(const json_t *root, const char *path)
{
	char key[64];
	size_t len;

	for (; *path; path += len + (path[len] == '.')) {
		len = strcspn(path, ".");
		memcpy(key, path, len);
		key[len] = '\0';
		root = json_is_array(root) ? json_array_get(root, (size_t)(key[0] - '0'))
					   : json_object_get(root, key);
		if (!root)
			fail_msg("no '%s'", path);
	}
	return root;
}

static void json_is_what_its_schema_says(void **state)
{
	static const struct {
		const char *path;
		double value;
	} numbers[] = {
		{ "kernels.0.flops.fp32", 1e10 },
		{ "kernels.0.flops.total", 1e10 },
		{ "kernels.0.ai", 10 },
		{ "kernels.1.flops.fp32", 0 },
		{ "kernels.1.ai", 0 },
		{ "kernels.2.time_s", 0.2 },
		{ "kernels.0.metrics.3.value", 5e9 },
		{ "ranges.0.dram_bytes", 1e9 },
		{ "ranges.0.capture", 1 },
		{ "captures.0.total.dram_bytes", 6e9 },
		{ "captures.0.coverage.flops", 0.8 },
		{ "total.time_s", 2 },
		{ "total.dram_bytes", 7e9 },
		{ "total.flops.fp32", 1.2e10 },
	};
	static const char *const nulls[] = { "kernels.2.flops.fp32", "kernels.2.ai", "total.ai",
					     "total.l2_bytes" };
	struct rfl_captures captures;
	const struct rfl_capture_view view = { .format = RFL_FORMAT_JSON };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;
	json_t *schema = NULL, *document = NULL;

	(void)state;
	make(&captures);
	render(&captures, &view, &text);
	assert_ok(rfl_json_load(data_path("../../docs/counters.schema.json"), &schema, &err), &err);
	assert_ok(rfl_json_loads(text.data, text.len, "json", &document, &err), &err);
	conforms(schema, schema, document);
	for (size_t i = 0; i < RFL_ARRAY_LEN(numbers); i++)
		assert_close(json_number_value(at(document, numbers[i].path)), numbers[i].value,
			     1e-15);
	for (size_t i = 0; i < RFL_ARRAY_LEN(nulls); i++)
		assert_true(json_is_null(at(document, nulls[i])));
	assert_string_equal(json_string_value(at(document, "kernels.2.reasons.ai")),
			    "flops.total is unknown");
	assert_string_equal(
		json_string_value(json_object_get(at(document, "kernels.2.reasons"), "flops.fp32")),
		"not counted: ncu --metrics " SASS("ffma"));
	assert_string_equal(
		json_string_value(json_object_get(
			json_object_get(at(document, "captures.0.total.caveats"), "flops.fp32"),
			"validity")),
		"partial");
	assert_string_equal(json_string_value(at(document, "captures.0.notes.0")), "a note");
	assert_string_equal(json_string_value(at(document, "captures.0.refused.2.set")), "flops");
	assert_string_equal(json_string_value(at(document, "captures.0.refused.2.reason")), "busy");
	json_decref(document);
	json_decref(schema);
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

/* Every null has its reason, and nothing else has one. */
static void every_null_has_its_reason(void **state)
{
	struct rfl_captures captures;
	const struct rfl_capture_view view = { .format = RFL_FORMAT_JSON };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;
	json_t *document = NULL;
	const json_t *kernel;
	size_t i;

	(void)state;
	make(&captures);
	render(&captures, &view, &text);
	assert_ok(rfl_json_loads(text.data, text.len, "json", &document, &err), &err);
	json_array_foreach(at(document, "kernels"), i, kernel)
	{
		size_t n = json_is_null(at(kernel, "ai"));

		for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
			const char *name = rfl_quantity_info((enum rfl_quantity)q)->name;
			bool null = json_is_null(at(kernel, name));

			assert_int_equal(null,
					 json_object_get(at(kernel, "reasons"), name) != NULL);
			n += null;
		}
		assert_int_equal(json_object_size(at(kernel, "reasons")), n);
	}
	json_decref(document);
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

static void assert_has(const struct rfl_buf *text, const char *part)
{
	if (!strstr(rfl_buf_str(text), part))
		fail_msg("'%s' is not in:\n%s", part, rfl_buf_str(text));
}

static void people_see_kernels_by_time_and_what_is_missing(void **state)
{
	static const char *const parts[] = {
		"kernels: ncu, f.csv, chip GA100, formulas 'ampere-100'\n",
		"kernel  copy               1    300.0     30.0      0",
		"Kernels with 0 FLOPs (flops.fp32): 1, 30.0 % of the time\n  300.0 ms  30.0 %  "
		"copy\n",
		"Coverage: FLOPs were counted in 80.0 % of the time, DRAM bytes in 100.0 %\n",
		"flops.fp32: a lower bound: known for 2 of 3 launches; for others: not counted",
		"run 'roofline counters list --chip GA100 --ncu' to list the metrics for ncu\n",
		"Unknown: flops.tensor_fp8, flops.tensor_fp4: Ampere's Tensor Cores do not "
		"support fp8 or fp4\n",
		"Not counted: core, flops: busy\nNot counted: links: none here\nNote: a note\n",
		"phase  fwd",
		"idle   idle",
	};
	const struct rfl_capture_view view = { .format = RFL_FORMAT_TABLE };
	struct rfl_captures captures;
	struct rfl_buf text;

	(void)state;
	make(&captures);
	render(&captures, &view, &text);
	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
		assert_has(&text, parts[i]);
	/* of the kernel of which FLOPs are not known nothing says 0 */
	assert_null(strstr(rfl_buf_str(&text), "%  unknown"));
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

/* 0 in the Tensor Cores alone says nothing of a kernel whose other FLOPs were not counted. */
static void no_kernel_is_said_to_do_nothing_by_half_a_count(void **state)
{
	static const char tensor[] = "sm__ops_path_tensor_src_tf32_dst_fp32.sum";
	const struct rfl_capture_view view = { .format = RFL_FORMAT_TABLE };
	struct rfl_capture_builder *b = builder("tensor only");
	struct rfl_captures captures;
	struct rfl_buf text;

	(void)state;
	rfl_capture_begin(b, RFL_RANGE_KERNEL, "k", NULL, NULL);
	(void)rfl_capture_metric(b, rfl_capture_metric_id(b, tensor, strlen(tensor), ""), 0,
				 RFL_VALID, -1, NULL);
	rfl_captures_init(&captures);
	assert_int_equal(rfl_capture_finish(b, &captures, NULL), RFL_OK);
	render(&captures, &view, &text);
	assert_has(&text, "flops.tensor_tf32  0 FLOP");
	assert_has(&text, "Unknown: flops.total: 0 in flops.tensor_tf32, without flops.fp16, ");
	assert_null(strstr(rfl_buf_str(&text), "Kernels with 0 FLOPs"));
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

/* Kernels differ at the beginning and the end of their names; parameters go first. */
static void long_names_lose_their_middle(void **state)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{ "gemm", "gemm" },
		{ "void f(int)", "void f(int)" },
		{ "void gemm_v0<float>(T1 *, T1 *, T1 *, int, int, int)", "gemm_v0<float>" },
		{ "void f<(int)4, g(*)(int)>(unsigned long, h(*)(int))", "f<(int)4, g(*)(int)>" },
		{ "cutlass_80_tensorop_s1688tf32gemm_128x256_16x3_tn_align4",
		  "cutlass_80_tensorop_s16...16x3_tn_align4" },
		{ "void at::native::vectorized_elementwise_kernel<4, "
		  "at::native::FillFunctor<float>, "
		  "at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>)",
		  "at::native::vectorized_...ay<char*, 1> >" },
		{ "(((((((((((((((((((((((((((((((((((((((((((",
		  "(((((((((((((((((((((((...((((((((((((((" },
		{ ")))))))))))))))))))))))))))))))))))))))))))",
		  ")))))))))))))))))))))))...))))))))))))))" },
		{ "12345678901234567890123456789012345678901\033[2J",
		  "12345678901234567890123...2345678901?[2J" },
		{ "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
		  "\xc3\xa4"
		  "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
		  "z",
		  "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
		  "\xc3\xa4"
		  "...\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4z" },
	};
	char out[RFL_CAPTURE_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		(void)rfl_captures__short_name(cases[i].name, out);
		assert_true(strlen(out) <= RFL_CAPTURE_NAME_MAX);
		assert_string_equal(out, cases[i].shown);
	}
}

/* What a file says does not reach the terminal as more than one line of text. */
static void control_characters_stay_out_of_tables(void **state)
{
	const struct rfl_capture_view views[] = {
		{ .format = RFL_FORMAT_TABLE, .explain = true },
		{ .format = RFL_FORMAT_TABLE, .by = RFL_CAPTURE_BY_METRIC },
		{ .format = RFL_FORMAT_MD, .by = RFL_CAPTURE_BY_RANGE },
	};
	static const char esc[] = "x\033[2J\ny";
	struct rfl_capture_builder *b = builder(esc);
	struct rfl_captures captures;

	(void)state;
	rfl_capture_begin(b, RFL_RANGE_KERNEL, esc, esc, esc);
	(void)rfl_capture_metric(b, rfl_capture_metric_id(b, "dram__bytes.sum", 15, esc), 1,
				 RFL_VALID_ESTIMATE, -1, esc);
	(void)rfl_capture_metric(b, rfl_capture_metric_id(b, "gpu__time_duration.sum", 22, "s"),
				 NAN, RFL_VALID, -1, esc);
	rfl_capture_note(b, "%s", esc);
	rfl_captures_init(&captures);
	assert_int_equal(rfl_capture_finish(b, &captures, NULL), RFL_OK);
	for (size_t i = 0; i < RFL_ARRAY_LEN(views); i++) {
		struct rfl_buf text;

		render(&captures, &views[i], &text);
		assert_null(strchr(rfl_buf_str(&text), '\033'));
		assert_null(strstr(rfl_buf_str(&text), "\ny"));
		assert_has(&text, "Note: x?[2J?y\n");
		rfl_buf_fini(&text);
	}
	rfl_captures_fini(&captures);
}

/* The input of a rule is a mean where the figure is a sum over launches: a note says so. */
static void means_among_the_inputs_are_told(void **state)
{
	static const char avg[] = "gpu__time_duration.avg";
	const struct rfl_capture_view view = { .format = RFL_FORMAT_TABLE, .explain = true };
	struct rfl_capture_builder *b = builder("means");
	struct rfl_captures captures;
	struct rfl_buf text;
	int id = rfl_capture_metric_id(b, avg, strlen(avg), "s");

	(void)state;
	for (int i = 1; i <= 3; i += 2) {
		rfl_capture_begin(b, RFL_RANGE_KERNEL, "k", NULL, NULL);
		(void)rfl_capture_metric(b, id, i, RFL_VALID, -1, NULL);
	}
	rfl_captures_init(&captures);
	assert_int_equal(rfl_capture_finish(b, &captures, NULL), RFL_OK);
	render(&captures, &view, &text);
	assert_has(&text, "    time_s = 4 s = gpu__time_duration.avg\n"
			  "      gpu__time_duration.avg = 2 s (mean over launches)\n");
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

static void the_longest_are_shown(void **state)
{
	const struct rfl_capture_view view = { .format = RFL_FORMAT_MD,
					       .by = RFL_CAPTURE_BY_RANGE,
					       .most = 1 };
	struct rfl_captures captures;
	struct rfl_buf text;

	(void)state;
	make(&captures);
	render(&captures, &view, &text);
	assert_has(&text, "### kernels: ncu");
	assert_has(&text, "| kernel | gemm");
	assert_null(strstr(rfl_buf_str(&text), "| kernel | copy"));
	assert_has(&text, "Rows with the longest time: 1 of 3.");
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

static void the_longest_layers_stand_in_the_order_of_the_step(void **state)
{
	const struct rfl_capture_view view = { .format = RFL_FORMAT_MD, .most = 2 };
	struct rfl_capture_builder *b = builder("layers");
	struct rfl_captures captures = { .n = 0 };
	struct rfl_buf text;
	const char *at;

	(void)state;
	add(b, RFL_RANGE_LAYER, "fwd/a", 1, 0, 1e9);
	add(b, RFL_RANGE_LAYER, "fwd/b", 2, 0, 1e9);
	add(b, RFL_RANGE_LAYER, "fwd/c", 3, 0, 1e9);
	assert_int_equal(rfl_capture_finish(b, &captures, NULL), RFL_OK);
	render(&captures, &view, &text);
	assert_null(strstr(rfl_buf_str(&text), "fwd/a"));
	at = strstr(rfl_buf_str(&text), "| fwd/b");
	assert_non_null(at);
	assert_non_null(strstr(at, "| fwd/c"));
	assert_has(&text, "Rows with the longest time: 2 of 3.");
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

static void rules_are_told_with_their_values(void **state)
{
	static const char *const parts[] = {
		"  kernel copy block (32, 1, 1) grid (1, 1, 1), launches: 1\n",
		"    flops.fp32 = 0 FLOP = " SASS("fadd") " + " SASS("fmul") " + 2 x " SASS(
			"ffma") "\n      " SASS("fadd") " = 0\n",
		"    dram_bytes = 4000000000 byte = dram__bytes.sum\n      dram__bytes.sum = "
		"4000000000\n",
		"    flops.fp32: not counted: ncu --metrics " SASS("ffma") "\n",
		"    l2_bytes: not counted: ncu --metrics lts__t_sectors_srcnode_gpc.sum\n",
	};
	const struct rfl_capture_view view = { .format = RFL_FORMAT_TABLE, .explain = true };
	struct rfl_captures captures;
	struct rfl_buf text;

	(void)state;
	make(&captures);
	render(&captures, &view, &text);
	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
		assert_has(&text, parts[i]);
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

static void every_metric_can_be_seen(void **state)
{
	const struct rfl_capture_view view = { .format = RFL_FORMAT_TABLE,
					       .by = RFL_CAPTURE_BY_METRIC };
	struct rfl_captures captures;
	struct rfl_buf text;

	(void)state;
	make(&captures);
	render(&captures, &view, &text);
	assert_has(&text, "dram__bytes.sum");
	assert_has(&text, "4,000,000,000");
	rfl_buf_fini(&text);
	rfl_captures_fini(&captures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_what_its_schema_says),
		cmocka_unit_test(every_null_has_its_reason),
		cmocka_unit_test(people_see_kernels_by_time_and_what_is_missing),
		cmocka_unit_test(no_kernel_is_said_to_do_nothing_by_half_a_count),
		cmocka_unit_test(long_names_lose_their_middle),
		cmocka_unit_test(control_characters_stay_out_of_tables),
		cmocka_unit_test(means_among_the_inputs_are_told),
		cmocka_unit_test(the_longest_are_shown),
		cmocka_unit_test(the_longest_layers_stand_in_the_order_of_the_step),
		cmocka_unit_test(rules_are_told_with_their_values),
		cmocka_unit_test(every_metric_can_be_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
