/*
 * test_planned_compiled.c - plans of cuDNN with kernels that it compiles at run time, on GPUs that
 * are only described: tests/fakes/standin is the driver, NVRTC compiles.
 */
#include "tests/unit/described_gpu.h"

/* A bias of the images' type, in all layers that have one: cuDNN has compiled engines for them. */
static void narrow_biases_are_fused(void **state)
{
	static const char *const nets[] = { "vgg16", "mobilenet_v2" };
	static struct layer layers[MAX_LAYERS];

	(void)state;
	for (int which = 0; which < DESCRIBED; which++) {
		struct rfl_cudnn *lib = open_described((enum described)which);

		watch_packs(lib);
		for (size_t k = 0; k < RFL_ARRAY_LEN(nets); k++) {
			const int n = layers_of(nets[k], layers);

			for (size_t p = 0; p < RFL_ARRAY_LEN(precisions); p++) {
				const struct rfl_conv_rules rules = { .type = precisions[p].type,
								      .tf32 = precisions[p].tf32,
								      .narrow_bias = true,
								      .workspace = 1 << 30 };

				for (int i = 0; i < n; i++)
					if (layers[i].conv.bias &&
					    plan_one(lib, &layers[i], &rules) < 0 &&
					    !(which == T4 && rules.type == RFL_VALUE_BF16))
						fail_msg("%s, %s: no plan for %s",
							 described[which].name, precisions[p].name,
							 layers[i].name);
			}
		}
		rfl_cudnn_close(lib);
	}
}

/* A bias of float32 with 16-bit images: only engines that compile a kernel, 0.4 to 1 s each. */
static void wide_biases_are_compiled(void **state)
{
	static const enum rfl_value types[] = { RFL_VALUE_F16, RFL_VALUE_BF16 };
	static const enum described chips[] = { H100, A100, B200 };
	static const char *const names[] = { "vgg16 features.2 forward", /* with ReLU */
					     "vgg16 classifier.6 forward" };
	static struct layer layers[MAX_LAYERS];
	const int n = layers_of("vgg16", layers);
	int asked = 0;

	(void)state;
	for (size_t c = 0; c < RFL_ARRAY_LEN(chips); c++) {
		struct rfl_cudnn *lib = open_described(chips[c]);

		watch_packs(lib);
		for (size_t t = 0; t < RFL_ARRAY_LEN(types); t++)
			for (size_t k = 0; k < RFL_ARRAY_LEN(names); k++)
				for (int i = 0; i < n; i++) {
					const struct rfl_conv_rules rules = { .type = types[t],
									      .workspace = 1
											   << 30 };

					if (strcmp(layers[i].name, names[k]) != 0)
						continue;
					if (plan_one(lib, &layers[i], &rules) < 0)
						fail_msg("%s: no plan for %s",
							 described[chips[c]].name, layers[i].name);
					asked++;
				}
		rfl_cudnn_close(lib);
	}
	assert_int_equal(asked, 12);
	assert_true(watch.executed > asked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrow_biases_are_fused),
		cmocka_unit_test(wide_biases_are_compiled),
	};

	load_standin();
	return has_cudnn() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
