/* The table of steps of a long run: written in pieces, whole or not at all. */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/csv.h"
#include "base/file.h"
#include "runner/run/parts.h"

enum { MANY = 120000 }; /* more than two pieces */

static struct rfl_burst burst_of(int64_t n)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_burst b;

	assert_ok(rfl_burst_init(&b, n, &err), &err);
	for (int64_t i = 0; i < n; i++)
		b.steps[i] = (struct rfl_burst_step){
			.data_wait_s = 1 / (double)(i + 3),
			.upload_s = 1 / (double)(i + 7),
			.forward_s = 1 / (double)(i + 11),
			.backward_s = 1 / (double)(i + 13),
			.optimizer_s = 1 / (double)(i + 17),
			.total_s = 5 / (double)(i + 3),
			.loss = 1 / (double)(i + 19),
		};
	return b;
}

static void long_tables_are_whole(void **state)
{
	const char *path = tmp_path(*state, "steps/many.csv");
	struct rfl_burst b = burst_of(MANY);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	bool more = true;
	int64_t step = -1, n = 0;
	double loss, total;

	assert_ok(rfl_run__write_steps(path, &b, &err), &err);
	assert_true(rfl_file_size(path) > (16 << 20));
	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	for (;; n++) {
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		if (!more)
			break;
		assert_ok(rfl_csv_int(csv, rfl_csv_find(csv, "step"), -1, &step, &err), &err);
		assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, "loss"), &loss, &err), &err);
		assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, "step_ms"), &total, &err), &err);
		assert_int_equal(step, n);
		assert_close(loss, b.steps[n].loss, 0);
		assert_close(total, b.steps[n].total_s * 1e3, 0);
	}
	assert_int_equal(n, MANY);
	rfl_csv_close(csv);
	rfl_burst_fini(&b);
}

/* Names are those of attempts: nothing is written over. */
static void a_table_that_is_there_stays(void **state)
{
	const char *path = write_file(*state, "there.csv", "mine\n");
	struct rfl_burst b = burst_of(3);
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rfl_run__write_steps(path, &b, &err), RFL_EIO);
	assert_int_equal(rfl_file_size(path), 5);
	rfl_burst_fini(&b);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(long_tables_are_whole),
		TEST(a_table_that_is_there_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
