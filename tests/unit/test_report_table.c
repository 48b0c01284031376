/* One table in its four forms. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"

static const struct rfl_column columns[] = {
	{ .key = "model", .title = "Model", .kind = RFL_COLUMN_TEXT },
	{ .key = "params", .title = "Params", .kind = RFL_COLUMN_INT },
	{ .key = "macs", .title = "GMACs", .kind = RFL_COLUMN_REAL, .scale = 1e9 },
	{ .key = "note", .title = "Note", .kind = RFL_COLUMN_TEXT },
};

static struct rfl_table *make(void)
{
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));

	assert_non_null(t);
	rfl_table_text(t, "resnet50");
	rfl_table_int(t, 25557032);
	rfl_table_real(t, 4089184256);
	rfl_table_text(t, "a|b, \"c\"");
	rfl_table_text(t, "\xc2\xb5net");
	rfl_table_text(t, NULL);
	rfl_table_real(t, NAN);
	rfl_table_text(t, NULL);
	rfl_table_text(t, "tiny");
	rfl_table_int(t, -5);
	rfl_table_real(t, 0.1);
	rfl_table_text(t, "two\nlines");
	return t;
}

static void assert_renders(const struct rfl_table *t, enum rfl_format format, const char *text)
{
	struct rfl_buf out = { 0 };

	rfl_table_render(t, format, &out);
	assert_string_equal(rfl_buf_str(&out), text);
	rfl_buf_fini(&out);
}

static void as_aligned_text(void **state)
{
	struct rfl_table *t = make();

	(void)state;
	rfl_table_note(t, "MACs of the %s pass.", "forward");
	rfl_table_note(t, "One FLOP is one operation.");
	assert_renders(t, RFL_FORMAT_TABLE,
		       "Model         Params      GMACs  Note\n"
		       "--------  ----------  ---------  ---------\n"
		       "resnet50  25,557,032      4.089  a|b, \"c\"\n"
		       "\xc2\xb5net               -          -  -\n"
		       "tiny              -5  1.000e-10  two lines\n"
		       "\n"
		       "MACs of the forward pass.\n"
		       "One FLOP is one operation.\n");
	rfl_table_free(t);
}

static void as_markdown(void **state)
{
	struct rfl_table *t = make();

	(void)state;
	rfl_table_note(t, "First.");
	rfl_table_note(t, "Second.");
	assert_renders(t, RFL_FORMAT_MD,
		       "| Model | Params | GMACs | Note |\n"
		       "|:---|---:|---:|:---|\n"
		       "| resnet50 | 25,557,032 | 4.089 | a\\|b, \"c\" |\n"
		       "| \xc2\xb5net | - | - | - |\n"
		       "| tiny | -5 | 1.000e-10 | two<br>lines |\n"
		       "\n"
		       "First.  \n"
		       "Second.\n");
	rfl_table_free(t);
}

static void as_csv(void **state)
{
	struct rfl_table *t = make();

	(void)state;
	rfl_table_note(t, "Notes are for people.");
	assert_renders(t, RFL_FORMAT_CSV,
		       "model,params,macs,note\n"
		       "resnet50,25557032,4089184256,\"a|b, \"\"c\"\"\"\n"
		       "\xc2\xb5net,,,\n"
		       "tiny,-5,0.1,\"two\nlines\"\n");
	rfl_table_free(t);
}

static void as_json(void **state)
{
	struct rfl_table *t = make();

	(void)state;
	assert_renders(t, RFL_FORMAT_JSON,
		       "[\n"
		       "  {\"model\": \"resnet50\", \"params\": 25557032, \"macs\": 4089184256.0, "
		       "\"note\": \"a|b, \\\"c\\\"\"},\n"
		       "  {\"model\": \"\xc2\xb5net\", \"params\": null, \"macs\": null, \"note\": "
		       "null},\n"
		       "  {\"model\": \"tiny\", \"params\": -5, \"macs\": 0.1, \"note\": "
		       "\"two\\nlines\"}\n"
		       "]\n");
	rfl_table_free(t);
}

/* Shares and sizes of one sum stand point under point; machines see all of them. */
static void with_fixed_decimals(void **state)
{
	static const struct rfl_column sums[] = {
		{ .key = "bytes",
		  .title = "MiB",
		  .kind = RFL_COLUMN_INT,
		  .decimals = 1,
		  .scale = 1048576 },
		{ .key = "share", .title = "%", .kind = RFL_COLUMN_REAL, .decimals = 1 },
	};
	struct rfl_table *t = rfl_table_new(sums, RFL_ARRAY_LEN(sums));

	(void)state;
	assert_non_null(t);
	rfl_table_int(t, 2147483648);
	rfl_table_real(t, 99.949);
	rfl_table_int(t, 1024);
	rfl_table_real(t, 0.0005);
	rfl_table_int(t, 0);
	rfl_table_real(t, 0);
	rfl_table_text(t, NULL);
	rfl_table_real(t, NAN);
	assert_renders(t, RFL_FORMAT_TABLE,
		       "    MiB     %\n"
		       "-------  ----\n"
		       "2,048.0  99.9\n"
		       "   <0.1  <0.1\n"
		       "      0     0\n"
		       "      -     -\n");
	assert_renders(t, RFL_FORMAT_CSV, "bytes,share\n2147483648,99.949\n1024,0.0005\n0,0\n,\n");
	rfl_table_free(t);
}

/* Columns that say where their cells are, and some that are shown only on request. */
static void from_structs(void **state)
{
	struct row {
		const char *name;
		int small;
		int64_t big;
		size_t n;
		double real;
		bool flag;
	};
	static const struct rfl_column all[] = {
		{ .key = "name", .title = "Name", RFL_CELL(struct row, name) },
		{ .key = "small",
		  .title = "S",
		  .kind = RFL_COLUMN_INT,
		  RFL_CELL(struct row, small) },
		{ .key = "big", .title = "B", .kind = RFL_COLUMN_INT, RFL_CELL(struct row, big) },
		{ .key = "n",
		  .title = "N",
		  .kind = RFL_COLUMN_INT,
		  .when = 1,
		  RFL_CELL(struct row, n) },
		{ .key = "real",
		  .title = "R",
		  .kind = RFL_COLUMN_REAL,
		  .when = 2,
		  RFL_CELL(struct row, real) },
		RFL_COLUMN(TEXT, struct row, flag, "flag", "F", .when = 3),
	};
	const struct row rows[] = { { "a", -1, INT64_MAX, 3, 0.5, true },
				    { NULL, 2, RFL_INT_UNKNOWN, 0, NAN, false } };
	static const char *const expected[] = {
		"name,small,big\na,-1,9223372036854775807\n,2,\n",
		"name,small,big,n,real,flag\n"
		"a,-1,9223372036854775807,3,0.5,True\n,2,,0,,False\n"
	};

	(void)state;
	for (unsigned given = 0; given <= 3; given += 3) {
		struct rfl_table *t = rfl_table_of(all, RFL_ARRAY_LEN(all), given);
		struct rfl_buf out = { 0 };

		rfl_table_add(t, rows, RFL_ARRAY_LEN(rows), sizeof(*rows));
		rfl_table_finish(t, RFL_FORMAT_CSV, &out);
		assert_string_equal(rfl_buf_str(&out), expected[given / 3]);
		rfl_buf_fini(&out);
	}
}

static void without_rows(void **state)
{
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));

	(void)state;
	assert_non_null(t);
	assert_int_equal(rfl_table_rows(t), 0);
	assert_renders(t, RFL_FORMAT_JSON, "[]\n");
	assert_renders(t, RFL_FORMAT_CSV, "model,params,macs,note\n");
	assert_renders(t, RFL_FORMAT_TABLE,
		       "Model  Params  GMACs  Note\n"
		       "-----  ------  -----  ----\n");
	rfl_table_free(t);
	rfl_table_free(NULL);
}

/* What steers a terminal is masked in cells and notes, and widths are those of what is shown; data
 * stays exact. */
static void masks_for_people_only(void **state)
{
	struct rfl_table *t = rfl_table_new(columns, 1);

	(void)state;
	assert_non_null(t);
	rfl_table_text(t, "a\x1b[1m\xc2\x9b\r\xe2\x80\xaez");
	rfl_table_note(t, "of \x1b]0;x\x07");
	assert_renders(t, RFL_FORMAT_TABLE, "Model\n---------\na?[1m? ?z\n\nof ?]0;x?\n");
	assert_renders(t, RFL_FORMAT_MD, "| Model |\n|:---|\n| a?\\[1m??z |\n\nof ?]0;x?\n");
	assert_renders(t, RFL_FORMAT_CSV, "model\n\"a\x1b[1m\xc2\x9b\r\xe2\x80\xaez\"\n");
	assert_renders(t, RFL_FORMAT_JSON,
		       "[\n  {\"model\": \"a\\u001b[1m\\u009b\\r\\u202ez\"}\n]\n");
	rfl_table_free(t);
}

static void what_the_caller_passed_may_change(void **state)
{
	struct rfl_table *t = rfl_table_new(columns, 1);
	char text[] = "first";

	(void)state;
	assert_non_null(t);
	rfl_table_text(t, text);
	text[0] = 'X';
	assert_renders(t, RFL_FORMAT_CSV, "model\nfirst\n");
	rfl_table_free(t);
}

/* People see which columns are empty or the same, programs have all. */
static void a_finished_table_has_no_spare_columns(void **state)
{
	static const struct rfl_column four[] = {
		{ .key = "model", .title = "Model" },
		{ .key = "device", .title = "Device", .setting = true },
		{ .key = "mfu", .title = "MFU", .kind = RFL_COLUMN_REAL },
		{ .key = "batch", .title = "Batch", .kind = RFL_COLUMN_INT },
	};
	static const struct {
		enum rfl_format format;
		const char *last, *text;
	} cases[] = {
		{ RFL_FORMAT_MD, "cpu",
		  "| Model | Batch |\n|:---|---:|\n| a | 4 |\n| b | 4 |\n\nIn all rows: Device "
		  "cpu.\n" },
		{ RFL_FORMAT_MD, "mps",
		  "| Model | Device | Batch |\n|:---|:---|---:|\n| a | cpu | 4 |\n| b | mps | 4 "
		  "|\n" },
		{ RFL_FORMAT_MD, NULL,
		  "| Model | Device | Batch |\n|:---|:---|---:|\n| a | cpu | 4 |\n| b | - | 4 "
		  "|\n" },
		{ RFL_FORMAT_CSV, "cpu", "model,device,mfu,batch\na,cpu,,4\nb,cpu,,4\n" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_table *t = rfl_table_new(four, RFL_ARRAY_LEN(four));
		struct rfl_buf out = { 0 };

		for (int row = 0; row < 2; row++) {
			rfl_table_text(t, row ? "b" : "a");
			rfl_table_text(t, row ? cases[i].last : "cpu");
			rfl_table_real(t, row ? -INFINITY : NAN);
			rfl_table_int(t, 4);
		}
		rfl_table_finish(t, cases[i].format, &out);
		assert_string_equal(rfl_buf_str(&out), cases[i].text);
		rfl_buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_aligned_text),
		cmocka_unit_test(as_markdown),
		cmocka_unit_test(as_csv),
		cmocka_unit_test(as_json),
		cmocka_unit_test(with_fixed_decimals),
		cmocka_unit_test(from_structs),
		cmocka_unit_test(without_rows),
		cmocka_unit_test(masks_for_people_only),
		cmocka_unit_test(what_the_caller_passed_may_change),
		cmocka_unit_test(a_finished_table_has_no_spare_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
