/*
 * test_profile_cupti_selftest.c - the work of known size: its PTX is taken by NVIDIA's assembler,
 * its products are right, and a capture whose counters are off is marked.
 */
#include <math.h>
#include <stdlib.h>

#include "profile/source.h"
#include "tests/unit/fake_gpu.h"

static const char *const names[] = { "step", NULL };

static enum rfl_rc measure(const char *cuda, const char *cupti, const char *precision,
			   struct rfl_captures *to, struct rfl_err *err)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = names };
	struct rfl_workload w = fake_workload(&step);
	struct rfl_source_request r = { .sets = RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_SELF_TEST,
					.precision = precision,
					.label = "test" };
	enum rfl_rc rc;

	fake_scripts(cuda, cupti);
	rfl_captures_init(to);
	w.max_ranges = 1;
	rc = rfl_source_cupti.measure(&r, &w, to, err);
	if (rc == RFL_OK)
		assert_string_equal(step.happened, "srbr"); /* the self-test is not the workload */
	return rc;
}

static double ratio(const struct rfl_capture *c, const char *work, const char *metric)
{
	const struct rfl_range *r = fake_range(c, RFL_RANGE_SELF_TEST, work);
	const struct rfl_metric *m = r ? fake_metric(r, metric) : NULL;

	if (!m)
		fail_msg("%s: no %s", work, metric);
	return m->value;
}

/* Each precision has a product of its own data type, and all of them one of fp32. */
static void ratios_are_in_the_capture(void **state)
{
	static const struct {
		const char *precision, *work, *metric;
	} cases[] = {
		{ "fp32", "rfl_selftest_tf32", "selftest.flops.tensor_tf32.ratio" },
		{ "tf32", "rfl_selftest_tf32", "selftest.flops.tensor_tf32.ratio" },
		{ "bf16", "rfl_selftest_bf16", "selftest.flops.tensor_bf16.ratio" },
		{ "fp16", "rfl_selftest_f16", "selftest.flops.tensor_fp16.ratio" },
		{ "amp", "rfl_selftest_f16", "selftest.flops.tensor_fp16.ratio" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_captures to;
		struct rfl_err err = RFL_ERR_INIT;
		const struct rfl_capture *c;

		assert_ok(measure("free=64e6", "", cases[i].precision, &to, &err), &err);
		c = to.captures[0];
		assert_close(ratio(c, cases[i].work, cases[i].metric), 1, 0);
		assert_close(ratio(c, "rfl_selftest_f32", "selftest.flops.fp32.ratio"), 1, 0);
		assert_close(ratio(c, "copy", "selftest.dram_read_bytes.ratio"), 1, 0);
		assert_close(ratio(c, "copy", "selftest.dram_write_bytes.ratio"), 1, 0);
		/* 17 copies of an eighth of what is free: 128 times the size of L2 */
		assert_close(ratio(c, "copy", "selftest.dram_write_bytes.known"), 17 * 7999488.0,
			     0);
		assert_non_null(fake_noted(c, "self-test: dram_read_bytes of copy 1.0000"));
		assert_close(c->total[RFL_QUANTITY_DRAM].value, 2e6, 0); /* of the step alone */
		assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID);
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

/* Turing has fp16 in its Tensor Cores and nothing else. */
static void turing_has_one_product_of_its_matrix_units(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(measure("cc=75;free=64e6", "chip=TU102", "bf16", &to, &err), &err);
	assert_null(fake_range(to.captures[0], RFL_RANGE_SELF_TEST, "rfl_selftest_bf16"));
	assert_close(ratio(to.captures[0], "rfl_selftest_f32", "selftest.flops.fp32.ratio"), 1, 0);
	fake_is_clean();
	rfl_captures_fini(&to);
}

/* Each family by its own work: bytes of memory say nothing of FLOPs, nor of the time. */
static void more_than_2_percent_off_is_marked(void **state)
{
	static const struct {
		const char *cuda, *script;
		enum rfl_validity dram, flops;
		const char *note;
	} cases[] = {
		{ "", "scale=0.981", RFL_VALID, RFL_VALID, NULL },
		{ "", "scale=1.019", RFL_VALID, RFL_VALID, NULL },
		{ "", "scale=1.03", RFL_VALID_MARKED, RFL_VALID_MARKED,
		  "1.0300 of the known value" },
		{ "", "scale=0.97", RFL_VALID_MARKED, RFL_VALID_MARKED, "values of dram are" },
		{ "", "scale_dram=1.06", RFL_VALID_MARKED, RFL_VALID,
		  "1.0600 of its known value:" },
		{ ";ecc=1", "scale_dram=1.06", RFL_VALID_MARKED, RFL_VALID,
		  "1.0600 of its known value (including ECC check bits)" },
		{ "", "scale=0.5;scale_dram=1", RFL_VALID, RFL_VALID_MARKED, "flops.tensor are" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_captures to;
		struct rfl_err err = RFL_ERR_INIT;
		const struct rfl_range *r;
		char cuda[64];

		snprintf(cuda, sizeof(cuda), "free=64e6%s", cases[i].cuda);
		assert_ok(measure(cuda, cases[i].script, "bf16", &to, &err), &err);
		r = fake_range(to.captures[0], RFL_RANGE_STEP, "step");
		assert_int_equal(r->amount[RFL_QUANTITY_DRAM].validity, cases[i].dram);
		assert_int_equal(r->amount[RFL_QUANTITY_TIME].validity, RFL_VALID);
		assert_int_equal(r->amount[RFL_QUANTITY_L2].validity, RFL_VALID);
		assert_int_equal(to.captures[0]->total[RFL_QUANTITY_FLOPS].validity,
				 cases[i].flops);
		assert_int_equal(fake_noted(to.captures[0], "the self-test failed") != NULL,
				 cases[i].note != NULL);
		if (cases[i].note)
			assert_non_null(fake_noted(to.captures[0], cases[i].note));
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

/* A GPU that computes something wrong is reported; the counters are not to blame. */
static void a_wrong_product_is_told(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(measure("free=64e6;wrong=1", "", "bf16", &to, &err), &err);
	assert_int_equal(to.captures[0]->nrefusals, 1);
	assert_string_equal(to.captures[0]->refusals[0].set, "self-test");
	assert_memory_equal(to.captures[0]->refusals[0].reason, "the kernel rfl_selftest_", 24);
	assert_null(fake_range(to.captures[0], RFL_RANGE_SELF_TEST, "copy"));
	fake_is_clean();
	rfl_captures_fini(&to);
}

static void a_wrong_copy_is_told(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(measure("free=64e6;wrong=2", "", "bf16", &to, &err), &err);
	assert_non_null(fake_noted(to.captures[0], "rfl_selftest_copy copied wrong data"));
	fake_is_clean();
	rfl_captures_fini(&to);
}

static void without_memory_there_is_no_copy(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(measure("free=1e6", "", "bf16", &to, &err), &err);
	assert_true(isnan(ratio(to.captures[0], "copy", "selftest.dram_read_bytes.ratio")));
	assert_non_null(fake_noted(to.captures[0], "too little free device memory"));
	assert_int_equal(to.captures[0]->total[RFL_QUANTITY_DRAM].validity, RFL_VALID);
	fake_is_clean();
	rfl_captures_fini(&to);
	assert_ok(measure("l2=0", "", "bf16", &to, &err), &err);
	assert_non_null(fake_noted(to.captures[0], "the size of L2 is unknown"));
	fake_is_clean();
	rfl_captures_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ratios_are_in_the_capture),
		cmocka_unit_test(turing_has_one_product_of_its_matrix_units),
		cmocka_unit_test(more_than_2_percent_off_is_marked),
		cmocka_unit_test(a_wrong_product_is_told),
		cmocka_unit_test(a_wrong_copy_is_told),
		cmocka_unit_test(without_memory_there_is_no_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
