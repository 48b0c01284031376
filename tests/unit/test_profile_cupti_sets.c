/* Which metrics belong to a set: from the formulas alone, no CUPTI is asked. */
#include <string.h>

#include "tests/unit/rfl_test.h"

#include "profile/cupti/plan.h"

static bool has(const struct rfl_metric_set *s, const char *metric)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->names[i], metric) == 0)
			return true;
	return false;
}

/* What is counted for the device does not go with what is counted for a context, the time too. */
static void links_are_counted_alone(void **state)
{
	struct rfl_metric_set links = { .n = 0 }, flops = { .n = 0 };
	struct rfl_formulas *f = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_formulas_new("GH100", &f, &err), &err);
	rfl_metric_set_add_sets(&links, f, RFL_SET_LINKS, NULL);
	assert_true(has(&links, "pcie__read_bytes.sum"));
	for (size_t i = 0; i < links.n; i++)
		assert_true(strncmp(links.names[i], "pcie__", 6) == 0 ||
			    strncmp(links.names[i], "nvl", 3) == 0);
	rfl_metric_set_add_sets(&flops, f, RFL_SET_FLOPS, NULL);
	assert_true(flops.n > 0);
	assert_false(has(&flops, "gpu__time_duration.sum"));
	rfl_formulas_free(f);
}

/* Matrix FLOPs of the run are in the core, all others in the audit. */
static void matrix_flops_by_precision(void **state)
{
	(void)state;
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_FLOPS_TENSOR_BF16, "bf16"), RFL_SET_CORE);
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_FLOPS_TENSOR_BF16, "fp16"), RFL_SET_AUDIT);
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_FLOPS_TENSOR_TF32, "fp32"), RFL_SET_CORE);
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_FLOPS_TENSOR_TF32, NULL), RFL_SET_AUDIT);
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_DRAM_READ, "amp"), RFL_SET_CORE);
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_FLOPS_FP32, "amp"), RFL_SET_FLOPS);
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_PCIE_READ, "amp"), RFL_SET_LINKS);
	assert_int_equal(rfl_metric_set_of(RFL_QUANTITY_TASK_CLOCK, "amp"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_are_counted_alone),
		cmocka_unit_test(matrix_flops_by_precision),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
