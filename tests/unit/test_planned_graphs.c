/*
 * test_planned_graphs.c - the plans of cuDNN for every layer of three nets on GPUs that are only
 * described, and the refusals that the engine has to live with. Needs cuDNN, but neither a GPU nor
 * a driver.
 */
#include "tests/unit/described_gpu.h"

static const char *const nets[] = { "resnet50", "vgg16", "mobilenet_v2" };
static const struct rfl_conv_rules usual = { .workspace = 1 << 30 };

/* Every layer and pass of the nets, in the first precisions. */
static void every_layer_has_a_plan(enum described which, size_t nprecisions, bool deterministic)
{
	static struct layer layers[MAX_LAYERS];
	struct rfl_cudnn *lib = open_described(which);
	int none = 0;

	for (size_t k = 0; k < RFL_ARRAY_LEN(nets); k++) {
		const int n = layers_of(nets[k], layers);

		for (size_t p = 0; p < nprecisions; p++) {
			struct rfl_conv_rules rules = usual;
			int64_t largest = 0;

			rules.type = precisions[p].type;
			rules.tf32 = precisions[p].tf32;
			rules.deterministic = deterministic;
			for (int i = 0; i < n; i++) {
				const int64_t bytes = plan_one(lib, &layers[i], &rules);

				largest = bytes > largest ? bytes : largest;
				if (bytes >= 0)
					continue;
				print_error("%s, %s: no plan for %s\n", described[which].name,
					    precisions[p].name, layers[i].name);
				none++;
			}
			print_message("%s, %s, %s: %d plans, workspace up to %lld bytes\n",
				      described[which].name, nets[k], precisions[p].name, n,
				      (long long)largest);
		}
	}
	rfl_cudnn_close(lib);
	assert_int_equal(none, 0);
}

#define CHIP(which, nprecisions)                                   \
	static void plans_for_##which(void **state)                \
	{                                                          \
		(void)state;                                       \
		every_layer_has_a_plan(which, nprecisions, false); \
	}
CHIP(H100, RFL_ARRAY_LEN(precisions))
CHIP(A100, RFL_ARRAY_LEN(precisions))
CHIP(L4, RFL_ARRAY_LEN(precisions))
CHIP(RTX_4090, RFL_ARRAY_LEN(precisions))
CHIP(B200, RFL_ARRAY_LEN(precisions))
CHIP(T4, RFL_ARRAY_LEN(precisions) - 1) /* without bf16 */

static void deterministic_plans(void **state)
{
	(void)state;
	every_layer_has_a_plan(H100, RFL_ARRAY_LEN(precisions), true);
}

/* What cuDNN 9.19 has no plan for. A newer one may have it. */
static void refusals(void **state)
{
	static const struct {
		const char *what;
		enum rfl_plan_pass pass;
		struct rfl_conv_rules rules;
		unsigned chips; /* a bit for each */
	} rows[] = {
		{ "a float32 gradient of weights",
		  RFL_PLAN_WGRAD,
		  { .type = RFL_VALUE_F16, .wide_gradient = true },
		  ~0u },
		{ "a float32 gradient of weights",
		  RFL_PLAN_WGRAD,
		  { .type = RFL_VALUE_BF16, .wide_gradient = true },
		  ~0u },
		{ "bf16 before Ampere", RFL_PLAN_FORWARD, { .type = RFL_VALUE_BF16 }, 1u << T4 },
		{ "bf16 before Ampere", RFL_PLAN_DGRAD, { .type = RFL_VALUE_BF16 }, 1u << T4 },
		{ "bf16 before Ampere", RFL_PLAN_WGRAD, { .type = RFL_VALUE_BF16 }, 1u << T4 },
	};
	static struct layer layers[MAX_LAYERS];
	const int n = layers_of("resnet50", layers);
	int more = 0;

	(void)state;
	for (int which = 0; which < DESCRIBED; which++) {
		struct rfl_cudnn *lib = open_described((enum described)which);

		for (size_t r = 0; r < RFL_ARRAY_LEN(rows); r++) {
			struct rfl_conv_rules rules = rows[r].rules;

			rules.workspace = usual.workspace;
			for (int i = 0; i < n && rows[r].chips >> which & 1u; i++)
				if (layers[i].conv.pass == rows[r].pass &&
				    plan_one(lib, &layers[i], &rules) >= 0) {
					print_message("cuDNN %s has %s: %s, %s\n", lib->version,
						      rows[r].what, described[which].name,
						      layers[i].name);
					more += !is_newer(lib);
				}
		}
		rfl_cudnn_close(lib);
	}
	assert_int_equal(more, 0);
}

/* A device and a convolution that cuDNN does not accept are reported in its words. */
static void descriptions_are_checked(void **state)
{
	const struct rfl_conv impossible = { .batch = 1,
					     .groups = 1,
					     .channels = { 4, 4 },
					     .in = { 8, 8 },
					     .out = { 9, 9 },
					     .kernel = { 1, 1 },
					     .stride = { 1, 1 },
					     .dilation = { 1, 1 } };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_cudnn *lib = open_described(H100), *none = NULL;
	struct rfl_conv_plan plan;
	int n = -1;

	(void)state;
	assert_int_equal(rfl_conv_plans(lib, &impossible, &usual, 1, &plan, &n, &err), RFL_EFAILED);
	assert_int_equal(n, 0);
	assert_says(&err, "a convolution failed: ");
	print_message("%s\n", err.msg);
	rfl_cudnn_close(lib);
	err = (struct rfl_err)RFL_ERR_INIT;
	assert_int_not_equal(rfl_cudnn_open("{\"deviceName\":", &none, &err), RFL_OK);
	assert_null(none);
	assert_says(&err, "the description of a device");
	print_message("%s\n", err.msg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptions_are_checked),
		cmocka_unit_test(plans_for_H100),
		cmocka_unit_test(plans_for_A100),
		cmocka_unit_test(plans_for_L4),
		cmocka_unit_test(plans_for_RTX_4090),
		cmocka_unit_test(plans_for_B200),
		cmocka_unit_test(plans_for_T4),
		cmocka_unit_test(deterministic_plans),
		cmocka_unit_test(refusals),
	};

	return has_cudnn() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
