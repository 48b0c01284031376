/*
 * What the engine decides about a GPU without having one: which batches are equal, when a
 * step can be recorded, and how versions are written.
 */
#include <string.h>

#include "runner/torch/engine_rules.h"
#include "tests/unit/rfl_test.h"

static const float memory[4];
static const int64_t labels[4];

/* A batch over memory i with a number, or 0. */
static struct rfl_batch batch(int i, uint64_t id)
{
	return (struct rfl_batch){ .n = 2, .images = memory + i, .labels = labels + i, .id = id };
}

/* Micro-batches of one batch share its number; size, kind and layout distinguish copies too. */
static void alike_is_not_the_same(void **state)
{
	const struct rfl_batch b = batch(0, 7), part = batch(1, 7), other = batch(0, 8);
	const struct rfl_batch none = { .n = 0 };
	struct rfl_batch larger = b, nhwc = b, pixels = b;

	(void)state;
	larger.n = 3;
	nhwc.layout = RFL_LAYOUT_NHWC;
	pixels.kind = RFL_INPUT_PIXELS;
	assert_true(rfl_batch_same(&b, &b));
	assert_false(rfl_batch_same(&b, &part));
	assert_false(rfl_batch_same(&b, &other));
	assert_false(rfl_batch_same(&b, &larger));
	assert_false(rfl_batch_same(&b, &nhwc));
	assert_false(rfl_batch_same(&b, &pixels));
	assert_false(rfl_batch_same(&none, &none));
}

/* ---- recorded steps ---- */

static void says_why_a_step_is_not_recorded(void **state)
{
	static const struct rfl_graph_facts good = {
		.step = true, .rule = RFL_RULE_ADAMW, .fused = true, .steps = 3, .updates = 3
	};
	struct rfl_graph_facts f;

	(void)state;
#define REFUSED(change, word)                                                       \
	do {                                                                        \
		f = good;                                                           \
		change;                                                             \
		if (!rfl_graph_refusal(&f) || !strstr(rfl_graph_refusal(&f), word)) \
			fail_msg("%s: %s", #change, rfl_graph_refusal(&f));         \
	} while (0)
	assert_null(rfl_graph_refusal(&good));
	REFUSED(f.missing = "only a CUDA device", "only a CUDA device");
	REFUSED(f.marked = true, "per-layer");
	REFUSED(f.exchanged = true, "one process");
	REFUSED(f.fused = false, "fused kernels");
	REFUSED((f.fused = false, f.scaled = true, f.rule = RFL_RULE_SGD), "loss scaling");
	REFUSED(f.steps = 2, "--warmup-iters 3");
	REFUSED(f.updates = 0, "ordinary update");
#undef REFUSED
}

/* What only matters to an update does not matter without one; SGD counts nothing. */
static void records_what_is_not_in_the_way(void **state)
{
	const struct rfl_graph_facts forward = { .rule = RFL_RULE_ADAM,
						 .scaled = true,
						 .steps = 3 };
	const struct rfl_graph_facts sgd = {
		.step = true, .rule = RFL_RULE_SGD, .steps = 3, .updates = 1
	};
	const struct rfl_graph_facts fp16 = { .step = true,
					      .rule = RFL_RULE_ADAMW,
					      .fused = true,
					      .scaled = true,
					      .steps = 9,
					      .updates = 9 };

	(void)state;
	assert_null(rfl_graph_refusal(&forward));
	assert_null(rfl_graph_refusal(&sgd));
	assert_null(rfl_graph_refusal(&fp16));
}

/* ---- words ---- */

static void writes_versions(void **state)
{
	char text[32];

	(void)state;
	rfl_cuda_version_text(13000, text, sizeof(text));
	assert_string_equal(text, "13.0");
	rfl_cuda_version_text(12080, text, sizeof(text));
	assert_string_equal(text, "12.8");
	rfl_cuda_version_text(0, text, sizeof(text));
	assert_string_equal(text, "");
	rfl_library_version_text(91900, RFL_CUDNN_WIDE, text, sizeof(text));
	assert_string_equal(text, "9.19.0");
	rfl_library_version_text(8907, RFL_CUDNN_WIDE, text, sizeof(text));
	assert_string_equal(text, "8.9.7");
	rfl_library_version_text(0, RFL_CUDNN_WIDE, text, sizeof(text));
	assert_string_equal(text, "");
	rfl_library_version_text(22809, RFL_NCCL_WIDE, text, sizeof(text));
	assert_string_equal(text, "2.28.9");
	rfl_library_version_text(2804, RFL_NCCL_WIDE, text, sizeof(text));
	assert_string_equal(text, "2.8.4");
	rfl_library_version_text(0, RFL_NCCL_WIDE, text, sizeof(text));
	assert_string_equal(text, "");
}

static void writes_places(void **state)
{
	char text[32];

	(void)state;
	rfl_pci_bus_id_text(0, 0xa, 0, text, sizeof(text));
	assert_string_equal(text, "00000000:0A:00.0");
	rfl_pci_bus_id_text(-1, -1, -1, text, sizeof(text));
	assert_string_equal(text, "");
}

/* Where libraries would compute in something else without a word, the run is refused. */
static void older_gpus_have_no_tf32_and_no_bf16(void **state)
{
	(void)state;
#define MISSING(precision, cast, capability) \
	rfl_cuda_precision_missing(RFL_PRECISION_##precision, RFL_CAST_##cast, capability)
	assert_non_null(strstr(MISSING(TF32, OFF, 75), "8.0"));
	assert_non_null(strstr(MISSING(BF16, BF16, 70), "fp16"));
	assert_null(MISSING(TF32, OFF, 80));
	assert_null(MISSING(BF16, BF16, 90));
	assert_null(MISSING(FP32, OFF, 75));
	assert_null(MISSING(AMP, FP16, 75));
	assert_null(MISSING(TF32, OFF, 0)); /* not known */
#undef MISSING
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alike_is_not_the_same),
		cmocka_unit_test(says_why_a_step_is_not_recorded),
		cmocka_unit_test(records_what_is_not_in_the_way),
		cmocka_unit_test(writes_versions),
		cmocka_unit_test(writes_places),
		cmocka_unit_test(older_gpus_have_no_tf32_and_no_bf16),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
