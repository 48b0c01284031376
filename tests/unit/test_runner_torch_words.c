/* What libtorch means by a text: its own messages, as both versions write them. */
#include "tests/unit/rfl_test.h"

#include "base/compiler.h"
#include "runner/torch/engine_rules.h"

static void tells_what_is_meant(void **state)
{
	static const struct {
		const char *text;
		enum rfl_rc rc;
	} cases[] = {
		{ "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't "
		  "allocate memory: you tried to allocate 1073741824 bytes.",
		  RFL_EDEVMEM },
		{ "CUDA out of memory. Tried to allocate 2.00 GiB", RFL_EDEVMEM },
		{ "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", RFL_EDEVMEM },
		{ "\"slow_conv2d_cpu\" not implemented for 'Half'", RFL_EUNSUPPORTED },
		{ "Could not run 'aten::_fused_sgd_' with arguments from the 'MPS' backend.",
		  RFL_EUNSUPPORTED },
		{ "adaptive_avg_pool2d_backward_cuda does not have a deterministic implementation, "
		  "but you set 'torch.use_deterministic_algorithms(True)'.",
		  RFL_EUNSUPPORTED },
		{ "Deterministic behavior was enabled with either "
		  "`torch.use_deterministic_algorithms(True)` or [...] but this operation is not "
		  "deterministic because it uses CuBLAS",
		  RFL_EUNSUPPORTED },
		{ "mat1 and mat2 shapes cannot be multiplied (3x32 and 16x5)", RFL_EFAILED },
		{ "", RFL_EFAILED },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_int_equal(rfl_torch_meaning(cases[i].text), cases[i].rc);
}

static void tells_how_much_did_not_fit(void **state)
{
	static const struct {
		const char *text, *asked;
	} cases[] = {
		{ "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't "
		  "allocate memory: you tried to allocate 411041792 bytes. Error code 12",
		  "392 MiB" },
		{ "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 14.75 GiB total)",
		  "2 GiB" },
		{ "MPS backend out of memory. Tried to allocate 12.50 KB on private pool.",
		  "12.5 KB" },
		{ "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "" },
		{ "Tried to allocate much", "" },
	};
	char asked[32];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		rfl_torch_asked(cases[i].text, asked, sizeof(asked));
		assert_string_equal(asked, cases[i].asked);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(tells_what_is_meant),
					    cmocka_unit_test(tells_how_much_did_not_fit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
