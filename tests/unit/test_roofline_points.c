/* roofline_points.csv: what is written reads back, what is wrong is refused by name. */
#include "rfl_test.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "roofline/points.h"
#include "tests/unit/docs_page.h"

#define SAME_TEXT(a, b)           assert_string_equal((a) ? (a) : "", (b) ? (b) : "")
#define SAME_INT(a, b)            assert_int_equal(a, b)
#define SAME_REAL(a, b)           assert_close(a, b, 0)
#define SAME_SIGNED(a, b)         SAME_REAL(a, b)
#define SAME(kind, name, meaning) SAME_##kind(p->name, q->name);

static void assert_same_point(const struct rfl_point *p, const struct rfl_point *q)
{
	RFL_POINT_COLUMNS(SAME)
}

static void saved_points_read_back(void **state)
{
	const char *path = tmp_path(*state, "analysis/points.csv");
	struct rfl_points *out = rfl_points_new(2), *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_point *p;

	assert_non_null(out);
	p = &out->points[0];
	p->env = rfl_arena_strdup(out->arena, "lab_cpu");
	p->verdict = rfl_arena_strdup(out->arena, "a, \"b\"\nand c");
	p->variant = rfl_arena_strdup(out->arena, "optimizer adamw, workers 8");
	p->batch = 16;
	p->steps = 0;
	p->ai = 0.1;
	p->ai_lo = 1.0 / 3;
	p->attained_gflops = 77.95;
	p->headroom_s = -1e-300;
	out->points[1].env = rfl_arena_strdup(out->arena, "b");

	assert_ok(rfl_points_save(path, out, &err), &err);
	assert_ok(rfl_points_load(path, &in, &err), &err);
	assert_int_equal(in->n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_same_point(&out->points[i], &in->points[i]);
	assert_int_equal(in->points[1].batch, -1);
	assert_true(isnan(in->points[1].ai));
	assert_null(in->points[1].model);
	rfl_points_free(out);
	rfl_points_free(in);
}

static void every_column_is_in_the_header(void **state)
{
#define NAME(kind, name, meaning) #name ","
	static const char names[] = RFL_POINT_COLUMNS(NAME);
	struct rfl_points *none = rfl_points_new(0);
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_points_write(&text, none);
	assert_int_equal(strncmp(rfl_buf_str(&text), names, sizeof(names) - 2), 0);
	assert_int_equal(text.data[sizeof(names) - 2], '\n');
	assert_int_equal(text.len, sizeof(names) - 1);
	rfl_buf_fini(&text);
	rfl_points_free(none);
}

/* docs/reference/columns.md lists the columns; RFL_TEST_UPDATE=1 writes them. */
static void every_column_is_documented(void **state)
{
	struct rfl_buf part;

	(void)state;
	rfl_buf_init(&part, 0);
	rfl_buf_puts(&part, "\n| column | meaning |\n|---|---|\n");
	for (size_t i = 0; i < RFL_POINT_NCOLUMNS; i++) {
		assert_true(rfl_point_fields[i].meaning[0] != '\0');
		rfl_buf_printf(&part, "| `%s` | %s |\n", rfl_point_fields[i].name,
			       rfl_point_fields[i].meaning);
	}
	check_page_part(data_path("../../docs/reference/columns.md"), "<!-- points -->\n",
			"<!-- end of points -->", &part);
	rfl_buf_fini(&part);
}

static void a_hand_made_file_needs_three_columns(void **state)
{
	const char *path =
		write_file(*state, "hand.csv", "note,attained_gflops,env,ai\nmine,12.5,lab,2\n");
	struct rfl_points *pts = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char hash[17];

	assert_ok(rfl_points_load(path, &pts, &err), &err);
	assert_int_equal(pts->n, 1);
	assert_close(pts->points[0].attained_gflops, 12.5, 0);
	assert_close(pts->points[0].ai, 2, 0);
	assert_string_equal(pts->points[0].env, "lab");
	assert_true(isnan(pts->points[0].knee_ai));
	/* FNV-1a of the text of the file */
	rfl_hash64_text(rfl_hash64(0, "note,attained_gflops,env,ai\nmine,12.5,lab,2\n", 44), hash);
	assert_string_equal(pts->hash, hash);
	assert_null(pts->points[0].variant); /* nor do files of older versions have one */
	rfl_points_free(pts);
}

static void bad_files_are_refused(void **state)
{
	static const struct {
		const char *text;
		const char *word;
	} cases[] = {
		{ "", "empty" },
		{ "env,ai\n", "attained_gflops" },
		{ "env,ai,attained_gflops\nlab,fast,1\n", "bad.csv:2" },
		{ "env,ai,attained_gflops\nlab,fast,1\n", "ai" },
		{ "env,ai,attained_gflops,batch\nlab,1,1,2.5\n", "batch" },
		{ "env,ai,attained_gflops\n,1,1\n", "'env' is empty" },
		{ "env,ai,attained_gflops\nlab,1,1,1\n", "bad.csv:2" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_points *pts = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		const char *path = write_file(*state, "bad.csv", cases[i].text);

		assert_int_equal(rfl_points_load(path, &pts, &err), RFL_EFORMAT);
		assert_says(&err, cases[i].word);
		assert_null(pts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(saved_points_read_back, tmpdir_make, tmpdir_remove),
		cmocka_unit_test(every_column_is_in_the_header),
		cmocka_unit_test(every_column_is_documented),
		cmocka_unit_test_setup_teardown(a_hand_made_file_needs_three_columns, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(bad_files_are_refused, tmpdir_make, tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
