/*
 * test_planned_compiled.c - plans of cuDNN with kernels that it compiles at run time, on GPUs that
 * are only described: tests/fakes/standin is the driver, NVRTC compiles.
 */
#include "tests/unit/described_gpu.h"

/* In all layers that have a bias. */
static void biases_are_fused(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(biases_are_fused),
	};

	load_standin();
	return has_cudnn() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
