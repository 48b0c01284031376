/* The step of a row: the kernels of its engine, one form of update, and complete tables of steps.
 */
#include "tests/unit/rfl_test.h"

#include "base/csv.h"
#include "ledger/runs.h"
#include "ledger/step.h"

static struct rfl_ledger_row row_of(const char *engine, const char *version, const char *backend)
{
	struct rfl_ledger_row row;

	rfl_ledger_row_init(&row);
	row.engine = (char *)engine; /* borrowed */
	row.engine_version = (char *)version;
	row.backend = (char *)backend;
	return row;
}

/* As torch._fused_sdp_choice() answers, and as measured allocations show before it existed. */
static void fused_attention_depends_on_engine_and_device(void **state)
{
	static const struct {
		const char *engine, *version, *backend;
		enum rfl_fused_attention fused;
	} cases[] = {
		{ "torch", "1.13.0", "cpu", RFL_FUSED_NEVER },
		{ "torch", "2.0.1", "cpu", RFL_FUSED_NEVER },
		{ "torch", "2.11.0+cu130", "cpu", RFL_FUSED_WITHOUT_DROPOUT },
		{ "torch", "1.13.1", "cuda", RFL_FUSED_NEVER },
		{ "torch", "2.0.1", "cuda", RFL_FUSED_ALWAYS },
		{ "torch", "2.11.0", "mps", RFL_FUSED_NEVER },
		{ "torch", NULL, "cpu", RFL_FUSED_ALWAYS },
		{ "other", "1.0", "cpu", RFL_FUSED_ALWAYS },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_ledger_row row =
			row_of(cases[i].engine, cases[i].version, cases[i].backend);

		assert_int_equal(rfl_step_fused_attention(&row), cases[i].fused);
	}
}

static void the_update_is_that_of_the_run(void **state)
{
	static const struct {
		const char *backend, *kernels;
		enum rfl_update update;
	} cases[] = {
		{ "cpu", "foreach", RFL_UPDATE_FUSED }, /* in small parts */
		{ "cpu", "fused", RFL_UPDATE_FUSED },
		{ "cuda", "foreach", RFL_UPDATE_FOREACH },
		{ "cuda", "fused", RFL_UPDATE_FUSED },
		{ "cuda", NULL, RFL_UPDATE_FUSED }, /* before a run: the default */
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_memory_options o;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_ledger_row row = row_of("torch", "2.11.0", cases[i].backend);

		row.optimizer_kernels = (char *)cases[i].kernels;
		row.mode = (char *)"train";
		row.optimizer = (char *)"sgd";
		row.precision = (char *)"bf16";
		row.batch = 4;
		assert_ok(rfl_step_options(&row, &o, &err), &err);
		assert_int_equal(o.update, cases[i].update);
		assert_int_equal(o.count.optimizer, RFL_OPT_MOMENTUM);
		assert_int_equal(o.count.batch, 4);
		assert_true(o.count.training && o.count.master_weights);
		row.momentum = 0;
		assert_ok(rfl_step_options(&row, &o, &err), &err);
		assert_int_equal(o.count.optimizer, RFL_OPT_SGD);
		row.optimizer = (char *)"lion";
		assert_int_equal(rfl_step_options(&row, &o, &err), RFL_EINVAL);
		assert_says(&err, "'lion'");
		rfl_err_clear(&err);
	}
}

static void a_table_of_steps_has_all_of_them(void **state)
{
	static const struct {
		const char *text;
		int64_t iters;
		const char *word; /* NULL: complete */
	} cases[] = {
		{ "step,step_ms\n0,10\n1,10\n", 2, NULL },
		{ "step,step_ms\n0,10\n1,10\n", -1, NULL },
		{ "step,step_ms\n0,10\n1,1", 2, ":3: the last line is incomplete" },
		{ "step,step_ms\n0,10\n", 2, "has 1 steps, the run had 2" },
		{ "step,step_ms\n0,10\n1,10\n2,10\n", 2, "has 3 steps, the run had 2" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *path = write_file(*state, "steps.csv", cases[i].text);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_csv *csv = NULL;
		bool more = true;
		size_t n = 0;

		assert_ok(rfl_csv_open(path, &csv, &err), &err);
		while (rfl_csv_next(csv, &more, &err) == RFL_OK && more)
			n++;
		if (cases[i].word) {
			assert_int_equal(rfl_runs_check_steps(csv, n, cases[i].iters, &err),
					 RFL_EFORMAT);
			assert_says(&err, "steps.csv");
			assert_says(&err, cases[i].word);
		} else {
			assert_ok(rfl_runs_check_steps(csv, n, cases[i].iters, &err), &err);
		}
		rfl_csv_close(csv);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fused_attention_depends_on_engine_and_device),
		cmocka_unit_test(the_update_is_that_of_the_run),
		cmocka_unit_test_setup_teardown(a_table_of_steps_has_all_of_them, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
