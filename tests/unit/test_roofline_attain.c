/*
 * test_roofline_attain.c - minimum times under ceilings that are made by hand.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <string.h>

#include "complexity/zoo.h"
#include "roofline/roofline.h"

/* 1 TFLOP/s of multiply-adds, 100 GFLOP/s of the rest, 10 GB/s. */
static struct rfl_attain_roof machine(double vector)
{
	return (struct rfl_attain_roof){
		.base = { .attain = rfl_attain_count, .fusion = RFL_FUSION_UNFUSED },
		.compute_flop_per_s = 1e12,
		.vector_flop_per_s = vector,
		.bandwidth_byte_per_s = 1e10,
	};
}

static void the_longest_of_three_bounds(void **state)
{
	static const struct {
		int64_t flops, elementwise, bytes;
		enum rfl_limit bound;
		double time_s;
	} cases[] = {
		{ 1000000, 1000, 1000, RFL_LIMIT_COMPUTE, 1e-6 },
		{ 1000000, 1000, 100000, RFL_LIMIT_MEMORY, 1e-5 },
		{ 1000000, 10000000, 100000, RFL_LIMIT_VECTOR, 1e-4 },
		{ 0, 0, 50, RFL_LIMIT_MEMORY, 5e-9 },
		{ 0, 0, 0, RFL_LIMIT_COUNT, 0 },
	};
	const struct rfl_attain_roof roof = machine(1e11);

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_attained a =
			rfl_attain(&roof, (double)cases[i].flops, (double)cases[i].elementwise,
				   (double)cases[i].bytes);

		assert_close(rfl_attained_time(&a), cases[i].time_s, 1e-12);
		assert_int_equal(rfl_attained_bound(&a), cases[i].bound);
	}
}

/* Unknown elementwise work is not invented. */
static void an_unknown_vector_ceiling_takes_no_time(void **state)
{
	const struct rfl_attain_roof roof = machine(NAN);
	struct rfl_attained a = rfl_attain(&roof, 1000, 0x1p62, 10);

	(void)state;
	assert_int_equal(rfl_attained_bound(&a), RFL_LIMIT_COMPUTE);
	assert_close(rfl_attained_time(&a), 1e-9, 1e-12);
}

/* The times of a step are those of its parts: passes one by one, the loss, the update. */
static void times_are_made_pass_by_pass(void **state)
{
	const struct rfl_attain_roof roof = machine(1e11);
	struct rfl_count_options options = { .batch = 4,
					     .training = true,
					     .optimizer = RFL_OPT_ADAMW };
	struct rfl_attained times[512] = { 0 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	struct rfl_count *count = NULL;
	double update_s;

	(void)state;
	assert_ok(rfl_zoo_build("resnet18", NULL, &net, &err), &err);
	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	assert_true((size_t)count->nnodes + 2 <= RFL_ARRAY_LEN(times));
	rfl_attain_count(&roof.base, count, times);
	for (int i = 0; i < count->nnodes; i++) {
		const struct rfl_cost *cost = &count->nodes[i];
		double expected = 0;

		for (int p = 0; p < RFL_PASS_COUNT; p++) {
			const struct rfl_traffic *t = &cost->traffic[RFL_FUSION_UNFUSED][p];
			double elementwise = (double)rfl_elementwise_sum(&cost->elementwise[p]) +
					     (p == 0 ? (double)cost->bias_adds : 0);

			expected += fmax(fmax(2 * (double)cost->macs[p] / 1e12, elementwise / 1e11),
					 (double)(t->read_bytes + t->write_bytes) / 1e10);
		}
		assert_close(rfl_attained_time(&times[i]), expected, 1e-12);
	}
	assert_true(rfl_attained_time(&times[count->nnodes]) > 0);
	update_s = (double)(count->optimizer.read_bytes + count->optimizer.write_bytes) / 1e10;
	assert_close(rfl_attained_time(&times[count->nnodes + 1]), update_s, 1e-12);
	rfl_count_free(count);
	rfl_net_free(net);
}

static struct rfl_peaks *peaks_of(void *state, const char *text)
{
	struct rfl_peaks *peaks = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_peaks_load(write_file(state, "peaks.json", text), &peaks, &err), &err);
	return peaks;
}

static void ceilings_are_looked_up(void **state)
{
	struct rfl_peaks *peaks =
		peaks_of(*state, "{\"old\": {\"peak_gflops\": 100, \"peak_gbps\": 10}}");
	struct rfl_attain_roof roof;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_attain_find(peaks, "old", "fp32", RFL_FUSION_FUSED, &roof, &err), &err);
	assert_close(roof.compute_flop_per_s, 1e11, 0);
	assert_close(roof.bandwidth_byte_per_s, 1e10, 0);
	assert_int_equal(roof.base.fusion, RFL_FUSION_FUSED);
	assert_ptr_equal(roof.base.about, roof.about);
	assert_non_null(strstr(roof.about, "100 GFLOP/s"));
	rfl_peaks_free(peaks);
}

static void what_is_missing_is_named_with_its_cure(void **state)
{
	static const struct {
		const char *env, *precision, *says;
		enum rfl_rc rc;
	} cases[] = {
		{ "odl", "fp32", "did you mean old", RFL_EMISSING },
		{ "old", "fp32", "roofline peaks set", RFL_EMISSING },
		{ "old", "fp32", "peak_gbps", RFL_EMISSING },
		{ "old", "fp4", "fp4", RFL_ENOTFOUND },
	};
	struct rfl_peaks *peaks =
		peaks_of(*state, "{\"old\": {\"peak_gflops\": 100, \"peak_gbps\": null}}");
	struct rfl_attain_roof roof;

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(rfl_attain_find(peaks, cases[i].env, cases[i].precision,
						 RFL_FUSION_FUSED, &roof, &err),
				 cases[i].rc);
		assert_says(&err, cases[i].says);
	}
	rfl_peaks_free(peaks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_of_three_bounds),
		cmocka_unit_test(an_unknown_vector_ceiling_takes_no_time),
		cmocka_unit_test(times_are_made_pass_by_pass),
		cmocka_unit_test_setup_teardown(ceilings_are_looked_up, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(what_is_missing_is_named_with_its_cure, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
