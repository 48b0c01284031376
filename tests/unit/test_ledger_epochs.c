/* The table of a training run's epochs: written, read back, and damaged. */
#include "tests/unit/rfl_test.h"

#include <math.h>

#include "base/file.h"
#include "ledger/epochs.h"

static void epochs_are_read_back(void **state)
{
	const char *path = tmp_path(*state, "epochs/one.csv");
	const struct rfl_epoch rows[] = {
		{ 1, 1e-3, 1.0 / 3, 0.5, 0.25, 0.75, 12.5, 1.5, 512, 10000 },
		{ 2, 1e-4, (double)NAN, 0.5, (double)NAN, 0, 12.5, 1.5, 512, 9999 },
	};
	struct rfl_epochs e = { .n = 0 }, back = { .n = 0 };
	struct rfl_err err = RFL_ERR_INIT;

	for (size_t i = 0; i < 2; i++) {
		rfl_epochs_add(&e, &rows[i]);
		assert_ok(rfl_epochs_save(path, &e, &err), &err); /* replaces the file */
	}
	assert_ok(rfl_epochs_load(path, &back, &err), &err);
	assert_int_equal(back.n, 2);
	for (size_t i = 0; i < 2; i++)
		for (size_t f = 0; f < RFL_EPOCH_NCOLUMNS; f++)
			assert_true(rfl_field_same(&rfl_epoch_fields[f], &rows[i], &back.rows[i]));
	rfl_epochs_fini(&e);
	rfl_epochs_fini(&back);
}

static void damaged_tables_are_refused(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "", "empty" },
		{ "epoch,lr\n1,x\n", "line 2" },
		{ "epoch,lr\n1,2,3\n", "line 2" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *path = write_file(*state, "bad.csv", cases[i].text);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_epochs e = { .n = 0 };

		assert_int_equal(rfl_epochs_load(path, &e, &err), RFL_EFORMAT);
		assert_says(&err, "bad.csv");
		rfl_epochs_fini(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(epochs_are_read_back, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(damaged_tables_are_refused, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
