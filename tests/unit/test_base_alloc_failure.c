/* Every allocation of what base/ does fails once. */
#include "tests/unit/alloc_failure.h"
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/dl.h"
#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/stats.h"
#include "report/page.h"

/* --- operations ------------------------------------------------------------------------------ */

static const char *csv_path, *json_path, *out_path, *ledger_path;

static enum rfl_rc read_csv(struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	bool more = true;
	enum rfl_rc rc = rfl_csv_open(csv_path, &csv, err);

	if (rc != RFL_OK)
		assert_null(csv);
	while (rc == RFL_OK && more)
		rc = rfl_csv_next(csv, &more, err);
	rfl_csv_close(csv);
	return rc;
}

static enum rfl_rc load_json(struct rfl_err *err)
{
	json_t *value = NULL;
	enum rfl_rc rc = rfl_json_load(json_path, &value, err);

	assert_int_equal(rc == RFL_OK, value != NULL);
	json_decref(value);
	return rc;
}

static enum rfl_rc save_json(struct rfl_err *err)
{
	json_t *value =
		json_pack("{s:s, s:[f,i], s:{s:n}}", "name", "a longer text than short ones",
			  "numbers", 0.25, 7, "nested", "none");
	enum rfl_rc rc = rfl_json_save(out_path, value, err);

	json_decref(value);
	return rc;
}

static enum rfl_rc render(enum rfl_format format, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		{ .key = "name", .title = "Name", .kind = RFL_COLUMN_TEXT },
		{ .key = "value", .title = "Value", .kind = RFL_COLUMN_REAL },
	};
	struct rfl_table *t = rfl_table_new(columns, 2);
	struct rfl_buf out = { 0 };
	enum rfl_rc rc;

	if (!t)
		return RFL_ENOMEM;
	for (int i = 0; i < 200; i++) {
		rfl_table_text(t, "a name that is copied");
		rfl_table_real(t, i / 3.0);
	}
	rfl_table_note(t, "%d rows", 200);
	rfl_table_note(t, "and a second note");
	rc = rfl_table_render(t, format, &out, err);
	rfl_table_free(t);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc render_text(struct rfl_err *err)
{
	return render(RFL_FORMAT_TABLE, err);
}

static enum rfl_rc render_csv(struct rfl_err *err)
{
	return render(RFL_FORMAT_CSV, err);
}

static enum rfl_rc render_json(struct rfl_err *err)
{
	return render(RFL_FORMAT_JSON, err);
}

static enum rfl_rc render_markdown(struct rfl_err *err)
{
	return render(RFL_FORMAT_MD, err);
}

/* A page has its table, or fails: no section may be lost silently. */
static enum rfl_rc build_page(struct rfl_err *err)
{
	static const struct rfl_column columns[] = { { .key = "name", .title = "Name" } };
	struct rfl_page *page = rfl_page_new(RFL_FORMAT_HTML, "Title", "roofline 0");
	struct rfl_table *t = rfl_table_new(columns, 1);
	struct rfl_buf out = { 0 };
	enum rfl_rc rc;

	if (!page) {
		rfl_table_free(t);
		return RFL_ENOMEM;
	}
	rfl_page_heading(page, 2, "Section");
	rfl_table_text(t, "a name that is copied");
	rfl_page_table(page, "Caption", t);
	rc = rfl_page_write(page, &out, err);
	if (rc == RFL_OK)
		assert_non_null(strstr(out.data, "a name that is copied"));
	rfl_page_free(page);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc append_row(struct rfl_err *err)
{
	static const char *const header[] = { "a", "b" };
	static const char *const fields[] = { "1", "two, quoted" };
	struct rfl_buf row;
	enum rfl_rc rc;

	rfl_buf_init(&row, 0);
	rfl_csv_write_row(&row, fields, 2);
	rc = rfl_csv_append_rows(ledger_path, header, 2, &row, err);
	rfl_buf_fini(&row);
	return rc;
}

static enum rfl_rc describe(struct rfl_err *err)
{
	const double x[] = { 1, 2, 4 };
	struct rfl_stats s;

	return rfl_stats_describe(x, 3, &s, err);
}

static enum rfl_rc open_library(struct rfl_err *err)
{
	static const char *const names[] = { "libm.so.6", NULL };
	struct rfl_dl *dl = NULL;
	enum rfl_rc rc = rfl_dl_open(names, RFL_DL_LOAD, NULL, 0, &dl, err);

	assert_int_equal(rc == RFL_OK, dl != NULL);
	rfl_dl_close(dl);
	return rc;
}

/* A capture that ran out of memory says so in its buffer; the child has run all the same. */
static enum rfl_rc run_child(struct rfl_err *err)
{
	static const char *const argv[] = { "echo", "something", NULL };
	const struct rfl_proc_spec spec = { .argv = argv, .capture_stdout = true };
	struct rfl_proc_result r;
	enum rfl_rc rc = rfl_proc_run(&spec, &r, err);

	if (rc == RFL_OK)
		rc = rfl_buf_check(&r.out, "output", err);
	if (rc == RFL_OK)
		assert_string_equal(rfl_buf_str(&r.out), "something\n");
	rfl_proc_result_fini(&r);
	return rc;
}

static enum rfl_rc make_folders(struct rfl_err *err)
{
	return rfl_file_mkdirs_for(out_path, err);
}

static enum rfl_rc grow_array(struct rfl_err *err)
{
	size_t cap = 0, n = 0;
	double *items = NULL;
	enum rfl_rc rc;

	do {
		size_t old = cap;

		rc = rfl_grow(&items, &cap, n + 1, SIZE_MAX, err);
		if (rc == RFL_OK)
			items[n++] = 1;
		else
			assert_true(cap == old && cap == n);
	} while (rc == RFL_OK && n < 100);
	free(items);
	return rc;
}

/* --- the loop -------------------------------------------------------------------------------- */

static const struct alloc_operation operations[] = {
	{ "grow an array", grow_array, 4 },    { "read CSV", read_csv, 8 },
	{ "load JSON", load_json, 20 },        { "save JSON", save_json, 8 },
	{ "render text", render_text, 10 },    { "render CSV", render_csv, 10 },
	{ "render JSON", render_json, 10 },    { "render Markdown", render_markdown, 10 },
	{ "build a page", build_page, 15 },    { "append a row", append_row, 8 },
	{ "describe", describe, 1 },           { "make folders", make_folders, 1 },
	{ "open a library", open_library, 2 }, { "run a child", run_child, 2 },
};

static void each_allocation_fails_once(void **state)
{
	csv_path = write_file(*state, "in.csv", "a,b,c\n1,\"two, quoted\",3\n4,5,6\n\"a\nb\",,\n");
	json_path = write_file(*state, "in.json",
			       "{\"a\": [1, 2.5, \"text\", null, {\"b\": {}}], \"c\": true}\n");
	out_path = tmp_path(*state, "folder/out.json");
	ledger_path = write_file(*state, "ledger.csv", "a,b\n1,\"two, quoted\"\n");
	for (size_t i = 0; i < RFL_ARRAY_LEN(operations); i++) {
		if (operations[i].run == save_json)
			assert_int_equal(rfl_file_mkdirs_for(out_path, NULL), RFL_OK);
		assert_each_allocation_fails(&operations[i]);
	}
}

/* After all those failures the ledger holds whole rows and nothing else. */
static void appended_rows_are_whole(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	bool more;

	each_allocation_fails_once(state);
	assert_ok(rfl_csv_open(ledger_path, &csv, &err), &err);
	for (;;) {
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		if (!more)
			break;
		assert_string_equal(rfl_csv_text(csv, 0), "1");
		assert_string_equal(rfl_csv_text(csv, 1), "two, quoted");
	}
	assert_false(csv->torn);
	rfl_csv_close(csv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_allocation_fails_once, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(appended_rows_are_whole, tmpdir_make,
						tmpdir_remove),
	};

	watch_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
