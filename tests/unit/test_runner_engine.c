/* The registry of engines: rows with and without plugins, their order, and what loading says. */
#include <stdlib.h>
#include <string.h>

#include "rfl_test.h"
#include "base/compiler.h"
#include "runner/engine.h"

static struct rfl_engine_list *list_of(const char *const *dirs)
{
	struct rfl_engine_list *list = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_engine_list_new(dirs, &list, &err), &err);
	return list;
}

static void name_tables_are_complete(void **state)
{
	(void)state;
	assert_string_equal(rfl_device_names[RFL_DEVICE_MPS], "mps");
	assert_null(rfl_device_names[RFL_DEVICE_MPS + 1]);
	assert_string_equal(rfl_precision_names[RFL_PRECISION_FP16], "fp16");
	assert_null(rfl_precision_names[RFL_PRECISION_FP16 + 1]);
	assert_string_equal(rfl_layout_names[RFL_LAYOUT_NHWC], "nhwc");
	assert_null(rfl_layout_names[RFL_LAYOUT_NHWC + 1]);
}

/* A row stays without a plugin, and says how to get one. */
static void row_without_plugin(void **state)
{
	const char *const dirs[] = { tmp_path(*state, "no-such-directory"), NULL };
	struct rfl_engine_list *list = list_of(dirs);
	const struct rfl_engine_row *row = rfl_engine_list_at(list, 0);
	const struct rfl_engine_ops *ops = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_non_null(row);
	assert_non_null(rfl_engine_list_at(list, 1));
	assert_string_equal(rfl_engine_list_at(list, 1)->name, "planned");
	assert_non_null(strstr(rfl_engine_list_at(list, 1)->missing, "libdnnl-dev"));
	assert_null(rfl_engine_list_at(list, 2));
	assert_string_equal(row->name, "torch");
	assert_null(row->path);
	assert_non_null(strstr(row->missing, "libtorch-dev"));
	assert_int_equal(rfl_engine_load(list, "auto", RFL_DEVICE_CPU, &ops, &err),
			 RFL_EUNAVAILABLE);
	assert_says(&err, "libtorch-dev");
	rfl_err_clear(&err);
	assert_int_equal(rfl_engine_load(list, "torch@2.11", RFL_DEVICE_CPU, &ops, &err),
			 RFL_EUNAVAILABLE);
	assert_says(&err, "libtorch-dev");
	assert_null(ops);
	rfl_engine_list_free(list);
}

static void rows_in_order(void **state)
{
	static const char *const files[] = {
		"engine_torch-2.9-cpu.so",
		"engine_torch-1.13-cpu.so",
		"engine_torch-2.99999999999999999999-cpu.so",
		"engine_torch-2.11-cu130.so",
		"engine_cudnn-9.19-cu130.so",
		"engine_torch.so",
		"libsomething.so",
		"engine_torch-2.11-cpu.so",
		"engine_-1-x.so",
		"engine_torch-2.11.so",
	};
	static const char *const ids[] = { "torch-2.99999999999999999999-cpu", "torch-2.11-cpu",
					   "torch-2.11-cu130", "torch-2.9-cpu", "torch-1.13-cpu" };
	const char *const dirs[] = { tmp_path(*state, "."), NULL };
	struct rfl_engine_list *list;
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++)
		(void)write_file(*state, files[i], "not a library");
	list = list_of(dirs);
	for (size_t i = 0; i < RFL_ARRAY_LEN(ids); i++) {
		const struct rfl_engine_row *row = rfl_engine_list_at(list, i);

		assert_non_null(row);
		assert_string_equal(row->id, ids[i]);
		assert_string_equal(row->name, "torch");
		assert_null(row->missing);
		assert_non_null(strstr(row->path, row->id));
	}
	while (rfl_engine_list_at(list, n))
		n++;
	assert_int_equal(n, RFL_ARRAY_LEN(ids) + 2); /* and planned, without a plugin */
	assert_string_equal(rfl_engine_list_at(list, n - 1)->name, "cudnn"); /* after the known */
	rfl_engine_list_free(list);
}

/* The first directory hides the same plugin in the second. */
static void first_folder_wins(void **state)
{
	const char *const dirs[] = { tmp_path(*state, "absent"), tmp_path(*state, "."),
				     tmp_path(*state, "./"), NULL };
	struct rfl_engine_list *list;

	(void)write_file(*state, "engine_torch-2.11-cpu.so", "not a library");
	list = list_of(dirs);
	assert_non_null(rfl_engine_list_at(list, 0));
	assert_null(rfl_engine_list_at(list, 0)->missing);
	assert_non_null(rfl_engine_list_at(list, 1)); /* planned, without a plugin */
	assert_null(rfl_engine_list_at(list, 2));
	rfl_engine_list_free(list);
}

static void loading_names_each_reason(void **state)
{
	const char *const dirs[] = { tmp_path(*state, "."), NULL };
	const struct rfl_engine_ops *ops = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine_list *list;

	(void)write_file(*state, "engine_torch-2.11-cpu.so", "not a library");
	(void)write_file(*state, "engine_torch-1.13-cpu.so", "not a library");
	list = list_of(dirs);
	assert_int_equal(rfl_engine_load(list, "auto", RFL_DEVICE_CPU, &ops, &err),
			 RFL_EUNAVAILABLE);
	assert_says(&err, "torch-2.11-cpu");
	assert_says(&err, "torch-1.13-cpu");
	rfl_err_clear(&err);
	assert_int_equal(rfl_engine_load(list, "torch@1.13", RFL_DEVICE_CPU, &ops, &err),
			 RFL_EUNAVAILABLE);
	assert_null(strstr(err.msg, "torch-2.11-cpu"));
	rfl_err_clear(&err);
	assert_int_equal(rfl_engine_load(list, "torch@2.1", RFL_DEVICE_CPU, &ops, &err),
			 RFL_ENOTFOUND);
	assert_says(&err, "torch-2.11-cpu");
	rfl_err_clear(&err);
	assert_int_equal(rfl_engine_load(list, "tensorflow", RFL_DEVICE_CPU, &ops, &err),
			 RFL_ENOTFOUND);
	assert_says(&err, "tensorflow");
	assert_null(ops);
	rfl_engine_list_free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_tables_are_complete),
		cmocka_unit_test_setup_teardown(row_without_plugin, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(rows_in_order, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(first_folder_wins, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(loading_names_each_reason, tmpdir_make,
						tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
