/*
 * The ledger: what is written comes back, files of others are read as far as they go, and the page
 * that documents the columns is held to the list.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "ledger/ledger.h"
#include "tests/unit/docs_page.h"

static void set(char **field, const char *text)
{
	rfl_field_set(field, text);
}

static void append(const char *path, const struct rfl_ledger_row *row)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_ledger_append(path, row, &err), &err);
}

static struct rfl_ledger *load(const char *path)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l = NULL;

	assert_ok(rfl_ledger_load(path, &l, &err), &err);
	return l;
}

/* A row as this program writes it: never without the version. */
static void minimal(struct rfl_ledger_row *row, const char *run_id)
{
	rfl_ledger_row_init(row);
	row->schema_version = RFL_LEDGER_SCHEMA;
	set(&row->run_id, run_id);
	set(&row->status, "ok");
	set(&row->version, "0.1.0");
}

#define ASSERT_TEXT(member)                                                 \
	do {                                                                \
		if (row.member || l->rows[0].member)                        \
			assert_string_equal(row.member, l->rows[0].member); \
	} while (0);
#define ASSERT_INT(member) assert_int_equal(row.member, l->rows[0].member);
#define ASSERT_REAL(member)                            \
	if (isnan(row.member))                         \
		assert_true(isnan(l->rows[0].member)); \
	else                                           \
		assert_true(row.member == l->rows[0].member);
#define ASSERT_SIGNED(member)            ASSERT_REAL(member)
#define ASSERT_SAME(kind, name, meaning) ASSERT_##kind(name)

static void rows_come_back_exactly(void **state)
{
	const char *path = tmp_path(*state, "new/logs/metrics.csv");
	struct rfl_ledger_row row;
	struct rfl_ledger *l;

	minimal(&row, "a");
	set(&row.error_text, "said \"no\", then\nleft");
	set(&row.device_name, "Some CPU, 2 GHz");
	row.model_flops_per_step = INT64_C(97196310528);
	row.step_ms_mean = 0.1;
	row.samples_per_s = 1.0 / 3.0;
	row.drift = -0.0625;
	row.seed = 0;
	append(path, &row);
	l = load(path);
	assert_int_equal(l->nrows, 1);
	assert_false(l->torn);
	assert_int_equal(l->rows[0].line, 2);
	RFL_LEDGER_COLUMNS(ASSERT_SAME)
	rfl_ledger_free(l);

	append(path, &row);
	l = load(path);
	assert_int_equal(l->nrows, 2);
	rfl_ledger_free(l);
	rfl_ledger_row_fini(&row);
}

static void unknown_and_absent_columns_are_fine(void **state)
{
	const char *path = write_file(*state, "metrics.csv",
				      "model,colour,batch,samples_per_s\n"
				      "resnet50,green,16,1.5\n"
				      "vgg16,,,\n");
	struct rfl_ledger *l = load(path);

	assert_int_equal(l->nrows, 2);
	assert_string_equal(l->rows[0].model, "resnet50");
	assert_int_equal(l->rows[0].batch, 16);
	assert_close(l->rows[0].samples_per_s, 1.5, 0);
	assert_null(l->rows[0].status);
	assert_int_equal(l->rows[1].batch, -1);
	assert_true(isnan(l->rows[1].samples_per_s) && isnan(l->rows[1].wall_s));
	rfl_ledger_free(l);
}

static void bad_numbers_are_named(void **state)
{
	const char *path = write_file(*state, "metrics.csv", "model,batch\nresnet50,four\n");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l = NULL;

	assert_int_equal(rfl_ledger_load(path, &l, &err), RFL_EFORMAT);
	assert_says(&err, "metrics.csv:2");
	assert_says(&err, "batch");
	assert_null(l);
}

/* Cut the file after every byte of its last row: the rows before it are always there, and what is
 * appended afterwards is too. */
static void a_torn_row_hides_no_other(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv"), *cut = tmp_path(*state, "cut.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger_row row;
	struct rfl_buf text;
	size_t two_rows;

	rfl_buf_init(&text, 0);
	minimal(&row, "one");
	append(path, &row);
	set(&row.run_id, "two");
	append(path, &row);
	assert_ok(rfl_file_read(path, &text, &err), &err);
	two_rows = text.len;
	set(&row.run_id, "three");
	set(&row.error_text, "a, \"quoted\" text");
	append(path, &row);
	rfl_buf_reset(&text);
	assert_ok(rfl_file_read(path, &text, &err), &err);
	for (size_t len = two_rows; len < text.len; len++) {
		struct rfl_ledger *l;
		char hash[17];

		assert_ok(rfl_file_write(cut, text.data, len, &err), &err);
		l = load(cut);
		assert_int_equal(l->nrows, 2);
		rfl_hash64_text(rfl_hash64(0, text.data, len), hash);
		assert_string_equal(l->hash, hash); /* of the file as it is */
		assert_int_equal(l->torn, len > two_rows);
		assert_string_equal(l->rows[1].run_id, "two");
		rfl_ledger_free(l);

		set(&row.run_id, "four");
		append(cut, &row);
		l = load(cut);
		assert_int_equal(l->nrows, 3);
		assert_false(l->torn); /* it lies in cut.torn.csv now */
		assert_string_equal(l->rows[2].run_id, "four");
		rfl_ledger_free(l);
	}
	rfl_buf_fini(&text);
	rfl_ledger_row_fini(&row);
}

/* docs/reference/columns.md lists the columns; RFL_TEST_UPDATE=1 writes them. */
static void the_page_lists_every_column(void **state)
{
	struct rfl_buf part;

	(void)state;
	rfl_buf_init(&part, 0);
	rfl_buf_puts(&part, "\n| column | meaning |\n|---|---|\n");
	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++)
		rfl_buf_printf(&part, "| `%s` | %s |\n", rfl_ledger_fields[i].name,
			       rfl_ledger_fields[i].meaning);
	check_page_part(RFL_TEST_DATA "/../../docs/reference/columns.md", "<!-- ledger -->\n",
			"<!-- end of ledger -->", &part);
	rfl_buf_fini(&part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_come_back_exactly, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(unknown_and_absent_columns_are_fine, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(bad_numbers_are_named, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_torn_row_hides_no_other, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(the_page_lists_every_column),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
