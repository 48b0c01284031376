/* Rows that are one run: training runs continued from a checkpoint; and two runs with one label:
 * with and without a recorded memory. */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "ledger/repeats.h"
#include "ledger/runs.h"

#define HEADER                                                                                  \
	"schema_version,run_id,config_hash,label,repeat,env,status,model,precision,batch,mode," \
	"backend,data_mode,samples_per_s,mem_status\n"
#define TRAINING(id, hash, n, status, rate)                                    \
	"4," id "," hash ",lab_mnist_cnn_fp32_bs64_run" n "," n ",lab," status \
	",mnist_cnn,fp32,64,train,cpu,mnist," rate ",\n"
#define EPOCH "epoch,train_s,samples_per_s\n"

static struct rfl_runs *load(void *state, const char *text, enum rfl_rows rows)
{
	const char *path = write_file(state, "metrics.csv", text);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_runs *runs = NULL;

	assert_ok(rfl_runs_load(&path, 1, NULL, &rfl_ledger_metrics[0], rows, &runs, &err), &err);
	return runs;
}

static void a_continued_training_is_one_run(void **state)
{
	static const char table[] =
		HEADER TRAINING("a", "h3", "1", "interrupted", "") /* its first epoch ends */
		TRAINING("b", "h3", "2", "ok", "100")              /* other times: not continued */
		TRAINING("c", "h3", "3", "ok", "200")              /* continues a */
		TRAINING("d", "h4", "4", "ok", "300")              /* continues c */
		TRAINING("e", "h5", "5", "interrupted", "")        /* no epoch; begun again as f */
		TRAINING("f", "h5", "6", "ok", "400");
	const enum rfl_rows kinds[] = { RFL_ROWS_SHORT, RFL_ROWS_WHOLE, RFL_ROWS_TIMES };
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_mkdirs_for(tmp_path(*state, "epochs/a.csv"), &err), &err);
	write_file(*state, "epochs/a.csv", EPOCH "1,7.5,392\n");
	write_file(*state, "epochs/b.csv", EPOCH "1,6.7,438\n2,6,495\n");
	write_file(*state, "epochs/c.csv", EPOCH "1,7.5,392\n2,8.9,329\n");
	write_file(*state, "epochs/d.csv", EPOCH "1,7.5,392\n2,8.9,329\n3,9,320\n");
	write_file(*state, "epochs/f.csv", EPOCH "1,5,500\n");
	for (size_t k = 0; k < RFL_ARRAY_LEN(kinds); k++) {
		struct rfl_runs *runs = load(*state, table, kinds[k]);

		assert_int_equal(runs->n, 3);
		assert_string_equal(runs->runs[0].id, "b");
		assert_string_equal(runs->runs[1].id, "d");
		assert_string_equal(runs->runs[2].id, "f");
		assert_non_null(strstr(rfl_buf_str(&runs->notes), "metrics.csv:2, "));
		assert_non_null(strstr(rfl_buf_str(&runs->notes), "continued by a later training"));
		if (kinds[k] == RFL_ROWS_WHOLE)
			assert_string_equal(rfl_runs_row(runs, &runs->runs[1])->run_id, "d");
		if (kinds[k] == RFL_ROWS_TIMES)
			assert_string_equal(runs->runs[2].id, "f");
		rfl_runs_free(runs);
	}
}

static size_t runs_of(void *state, const char *first, const char *second, bool *noted)
{
	const struct rfl_repeats_options options = { .metric = &rfl_ledger_metrics[0] };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_repeats *r = NULL;
	struct rfl_runs *runs;
	char text[2048];
	size_t n;

	snprintf(text, sizeof(text),
		 HEADER "4,a,h,lab_mnist_cnn_fp32_bs64_run1,1,lab,ok,mnist_cnn,fp32,64,train,cpu,"
			"synthetic,100,%s\n"
			"4,b,h,lab_mnist_cnn_fp32_bs64_run1,1,lab,ok,mnist_cnn,fp32,64,train,cpu,"
			"synthetic,200,%s\n",
		 first, second);
	runs = load(state, text, RFL_ROWS_SHORT);
	assert_ok(rfl_repeats_new(runs, &options, &r, &err), &err);
	assert_int_equal(r->n, 1);
	n = r->configs[0].n;
	*noted = r->notes.len > 0;
	rfl_repeats_free(r);
	rfl_runs_free(runs);
	return n;
}

static void a_recorded_memory_is_not_replaced(void **state)
{
	bool noted;

	assert_int_equal(runs_of(*state, "ok", "", &noted), 2);
	assert_false(noted);
	assert_int_equal(runs_of(*state, "", "ok", &noted), 2);
	assert_false(noted);
	assert_int_equal(runs_of(*state, "ok", "ok", &noted), 1);
	assert_true(noted);
	assert_int_equal(runs_of(*state, "", "", &noted), 1);
	assert_true(noted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_continued_training_is_one_run, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_recorded_memory_is_not_replaced, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
