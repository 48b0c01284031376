/*
 * test_profile_cupti_forward.c - the same sessions with names, units, configurations and numbers of
 * passes of a real CUPTI: the fake hands the host API on to it, and plays the GPU of each chip.
 */
#include <math.h>

#include "profile/cupti/plan.h"
#include "profile/source.h"
#include "tests/unit/fake_gpu.h"

static const char *const names[] = { "fwd", "bwd", "opt", NULL };

static const struct {
	const char *chip;
	int capability;
	const char *precision;
	int core, flops;           /* passes */
	const char *read, *matrix; /* metrics that a chip of its family has */
} chips[] = {
	{ "TU102", 75, "fp16", 1, 1, "dram__bytes_read.sum",
	  "sm__ops_path_tensor_src_fp16_dst_fp16.sum" },
	{ "GA100", 80, "bf16", 1, 1, "dram__bytes_read.sum",
	  "sm__ops_path_tensor_src_bf16_dst_fp32.sum" },
	{ "AD102", 89, "tf32", 1, 1, "dram__bytes_read.sum",
	  "sm__ops_path_tensor_src_tf32_dst_fp32.sum" },
	{ "GH100", 90, "amp", 2, 1, "dram__bytes_read.sum", "sm__ops_path_tensor_src_fp16.sum" },
	{ "GB202", 120, "bf16", 1, 1, "dram__bytes_op_read.sum",
	  "sm__ops_path_tensor_src_bf16_dst_fp32.sum" },
};

static void each_family_is_counted_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(chips); i++) {
		struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = names };
		struct rfl_workload w = fake_workload(&step);
		struct rfl_source_request r = { .sets = RFL_SET_CORE | RFL_SET_FLOPS |
							RFL_SET_SELF_TEST,
						.precision = chips[i].precision,
						.label = "test" };
		struct rfl_captures to;
		struct rfl_err err = RFL_ERR_INIT;
		const struct rfl_capture *c;
		const struct rfl_range *range;
		char cuda[64], cupti[1024];

		snprintf(cuda, sizeof(cuda), "free=64e6;cc=%d", chips[i].capability);
		snprintf(cupti, sizeof(cupti),
			 "real=%s;chip=%s;val=%s:5e9;val=gpu__time_duration.sum:4e6;value=1e6",
			 RFL_TEST_CUPTI_LIBRARY, chips[i].chip, chips[i].read);
		fake_scripts(cuda, cupti);
		rfl_captures_init(&to);
		assert_ok(rfl_source_cupti.measure(&r, &w, &to, &err), &err);
		c = to.captures[0];
		if (c->passes != chips[i].core + chips[i].flops)
			fail_msg("%s: %d passes", chips[i].chip, (int)c->passes);
		assert_string_equal(step.happened, c->passes == 3 ? "srbrbr" : "srbr");
		range = fake_range(c, RFL_RANGE_PHASE, "bwd");
		assert_close(range->amount[RFL_QUANTITY_DRAM_READ].value, 5e9, 0);
		assert_close(range->amount[RFL_QUANTITY_DRAM].value, 5e9 + 1e6, 0);
		assert_close(range->amount[RFL_QUANTITY_TIME].value, 4e-3, 1e-15);
		assert_close(range->amount[RFL_QUANTITY_FLOPS_FP32].value, 4e6, 0);
		if (!fake_metric(range, chips[i].matrix))
			fail_msg("%s: no %s", chips[i].chip, chips[i].matrix);
		assert_close(fake_metric(range, chips[i].matrix)->value, 1e6, 0);
		assert_int_equal(range->amount[rfl_precision_matrix(r.precision)].validity,
				 RFL_VALID);
		assert_null(fake_noted(c, "the self-test failed"));
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

/* PCI Express goes with nothing else, and the audit takes several passes: all of them are made. */
static void all_sets_are_counted(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = names };
	struct rfl_workload w = fake_workload(&step);
	struct rfl_source_request r = { .sets = RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_AUDIT |
						RFL_SET_LINKS,
					.precision = "bf16",
					.label = "test" };
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_range *range;
	char cupti[1024];

	(void)state;
	snprintf(cupti, sizeof(cupti), "real=%s;chip=GH100", RFL_TEST_CUPTI_LIBRARY);
	fake_scripts("", cupti);
	rfl_captures_init(&to);
	assert_ok(rfl_source_cupti.measure(&r, &w, &to, &err), &err);
	range = fake_range(to.captures[0], RFL_RANGE_PHASE, "fwd");
	assert_close(range->amount[RFL_QUANTITY_PCIE_READ].value, 1e6, 0);
	assert_close(range->amount[RFL_QUANTITY_NVLINK_RX].value, 1e6, 0);
	assert_close(range->amount[RFL_QUANTITY_FLOPS_TENSOR_FP8].value, 1e6, 0);
	assert_true(isnan(range->amount[RFL_QUANTITY_FLOPS_TENSOR_FP4].value));
	assert_true(to.captures[0]->passes >= 5);
	fake_is_clean();
	rfl_captures_fini(&to);
}

/* Core and FLOPs of a step in two passes on every chip; in three on H100, for what TMA loads into
 * L1, and on two with integrated memory, which count what L2 reads on its misses. */
static void every_chip_needs_two_passes(void **state)
{
	static const char three[] = "GA10B GB20B GH100";
	static const char none[] = "GV11B"; /* is named, and has no range profiler */
	const struct rfl_cupti_places nowhere = { .path = NULL };
	const char *const *all = NULL;
	struct rfl_cupti *lib = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char cupti[1024];
	size_t n = 0;

	(void)state;
	snprintf(cupti, sizeof(cupti), "real=%s", RFL_TEST_CUPTI_LIBRARY);
	fake_scripts("", cupti);
	assert_ok(rfl_cupti_open(&nowhere, &lib, &err), &err);
	assert_ok(rfl_cupti_chips(lib, &all, &n, &err), &err);
	assert_true(n >= 30);
	for (size_t i = 0; i < n; i++) {
		struct rfl_cupti_plan *plan = NULL;
		size_t want = strstr(three, all[i]) ? 2 : 1;

		if (rfl_cupti_plan_new(lib, all[i], NULL, RFL_SET_CORE | RFL_SET_FLOPS, "bf16",
				       &plan, &err) != RFL_OK)
			fail_msg("%s: %s", all[i], err.msg);
		if (strcmp(all[i], none) == 0) {
			assert_int_equal(plan->sessions[0].why.rc, RFL_EUNSUPPORTED);
		} else if (plan->sessions[0].passes != want || plan->sessions[1].passes != 1) {
			fail_msg("%s: core in %zu, FLOPs in %zu passes", all[i],
				 plan->sessions[0].passes, plan->sessions[1].passes);
		}
		for (size_t k = 0; k < plan->n; k++) {
			const struct rfl_metric_set *m = &plan->sessions[k].metrics;

			for (size_t j = 0; j < m->nabsent; j++) /* moves of registers */
				assert_non_null(strstr(m->why_absent[j], "a separate pass"));
		}
		rfl_cupti_plan_free(plan);
	}
	rfl_cupti_close(lib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_chip_needs_two_passes),
		cmocka_unit_test(each_family_is_counted_whole),
		cmocka_unit_test(all_sets_are_counted),
	};

	if (RFL_TEST_CUPTI_LIBRARY[0] == '\0') {
		printf("there is no CUPTI here: the CUDA toolkit brings it\n");
		return 77;
	}
	if (RFL_TEST_SANITIZED) {
		printf("CUPTI cannot be used under an address sanitizer\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
