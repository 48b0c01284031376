/*
 * Log directories of tasks into one: what is new is brought, what is there stays, as often as it is
 * asked.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/file.h"
#include "ledger/ledger.h"
#include "ledger/matrix/merge.h"

static void put(void *state, const char *name, const char *text)
{
	const char *path = tmp_path(state, name);
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_mkdirs_for(path, &err), &err);
	assert_ok(rfl_file_write(path, text, strlen(text), &err), &err);
}

static void add_row(void *state, const char *folder, const char *run_id, const char *time)
{
	struct rfl_ledger_row row;
	struct rfl_err err = RFL_ERR_INIT;
	char name[128];

	rfl_ledger_row_init(&row);
	row.schema_version = RFL_LEDGER_SCHEMA;
	rfl_field_set(&row.run_id, run_id);
	rfl_field_set(&row.timestamp_utc, time);
	rfl_field_set(&row.status, "ok");
	rfl_field_set(&row.version, "1");
	(void)snprintf(name, sizeof(name), "%s/metrics.csv", folder);
	assert_ok(rfl_ledger_append(tmp_path(state, name), &row, &err), &err);
	rfl_ledger_row_fini(&row);
}

static struct rfl_merge merge(void *state, const char *const *names, size_t n)
{
	struct rfl_err err = RFL_ERR_INIT;
	const char *folders[4];
	struct rfl_merge sum;

	for (size_t i = 0; i < n; i++)
		folders[i] = tmp_path(state, names[i]);
	assert_ok(rfl_ledger_merge(folders, n, tmp_path(state, "to"), &sum, &err), &err);
	return sum;
}

static void assert_file(void *state, const char *name, const char *expected)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(tmp_path(state, name), &text, &err), &err);
	assert_string_equal(rfl_buf_str(&text), expected);
	rfl_buf_fini(&text);
}

/* Their ids in the order of the merged ledger. */
static void assert_ids(void *state, const char *expected)
{
	struct rfl_ledger *l = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char text[256] = "";

	assert_ok(rfl_ledger_load(tmp_path(state, "to/metrics.csv"), &l, &err), &err);
	for (size_t i = 0; i < l->nrows; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ",
			       l->rows[i].run_id);
	assert_string_equal(text, expected);
	rfl_ledger_free(l);
}

/* The texts of a column, each followed by '|'. */
static void assert_cells(void *state, const char *column, const char *expected)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	char text[256] = "";
	bool more = true;

	assert_ok(rfl_csv_open(tmp_path(state, "to/metrics.csv"), &csv, &err), &err);
	while (rfl_csv_next(csv, &more, &err) == RFL_OK && more)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s|",
			       rfl_csv_text(csv, rfl_csv_find(csv, column)));
	assert_string_equal(text, expected);
	rfl_csv_close(csv);
}

static void rows_come_once_and_in_the_order_of_time(void **state)
{
	static const char *const both[] = { "a", "b" };
	struct rfl_merge sum;

	add_row(*state, "a", "r1", "2026-01-01T00:00:01Z");
	add_row(*state, "a", "r3", "2026-01-01T00:00:03Z");
	add_row(*state, "b", "r2", "2026-01-01T00:00:02Z");
	add_row(*state, "b", "r3", "2026-01-01T00:00:03Z"); /* copied by hand */
	sum = merge(*state, both, 2);
	assert_int_equal(sum.rows, 3);
	assert_int_equal(sum.rows_there, 1);
	assert_int_equal(sum.folders, 2);
	assert_ids(*state, "r1 r2 r3 ");
	add_row(*state, "a", "r0",
		"2026-01-01T00:00:00Z"); /* later: it comes after the existing rows */
	sum = merge(*state, both, 2);
	assert_int_equal(sum.rows, 1);
	assert_int_equal(sum.rows_there, 4);
	assert_ids(*state, "r1 r2 r3 r0 ");
}

static void files_are_never_overwritten(void **state)
{
	static const char *const both[] = { "a", "b" };
	struct rfl_merge sum;

	add_row(*state, "a", "r1", "2026-01-01T00:00:01Z");
	put(*state, "a/steps/r1.csv", "step\n0\n");
	put(*state, "a/time/x_20260101_000001.txt", "first\n");
	put(*state, "b/time/x_20260101_000001.txt", "second\n");
	put(*state, "a/env.json", "{}\n");
	put(*state, "b/env.json", "{}\n");
	put(*state, "b/env_info.md", "# b\n");
	for (int again = 0; again < 2; again++) {
		sum = merge(*state, both, 2);
		assert_int_equal(sum.empty, 1);
		assert_int_equal(sum.files, again ? 0 : 6);
		assert_int_equal(sum.files_there, again ? 6 : 0);
		assert_file(*state, "to/steps/r1.csv", "step\n0\n");
		assert_file(*state, "to/time/x_20260101_000001.txt", "first\n");
		assert_file(*state, "to/time/x_20260101_000001_2.txt", "second\n");
		assert_file(*state, "to/env/a.json", "{}\n");
		assert_file(*state, "to/env/b.md", "# b\n");
	}
}

/* A file that was copied while it was being written becomes whole; another of its name stays. */
static void a_file_that_grew_is_brought_again(void **state)
{
	static const char *const one[] = { "a/" };
	struct rfl_merge sum;

	add_row(*state, "a", "r1", "2026-01-01T00:00:01Z");
	put(*state, "a/time/x.txt", "half");
	put(*state, "a/env.json", "{}\n");
	sum = merge(*state, one, 1);
	assert_int_equal(sum.files, 2);
	assert_file(*state, "to/env/a.json", "{}\n");
	put(*state, "a/time/x.txt", "half and half\n");
	sum = merge(*state, one, 1);
	assert_int_equal(sum.files, 0);
	assert_file(*state, "to/time/x.txt", "half and half\n");
	put(*state, "a/time/x.txt", "half");
	sum = merge(*state, one, 1);
	assert_int_equal(sum.files, 1);
	assert_file(*state, "to/time/x.txt", "half and half\n");
	assert_file(*state, "to/time/x_2.txt", "half");
}

static void counters_come_by_run(void **state)
{
	static const char *const one[] = { "a" };
	static const char header[] = "label,run_id,metric,value\n";
	struct rfl_merge sum;

	add_row(*state, "a", "r1", "2026-01-01T00:00:01Z");
	add_row(*state, "a", "r2", "2026-01-01T00:00:02Z");
	put(*state, "a/counters.csv",
	    "label,run_id,metric,value\nx,r1,flops,1\nx,r1,bytes,2\ny,r2,flops,3\n");
	put(*state, "to/counters.csv", header);
	sum = merge(*state, one, 1);
	assert_int_equal(sum.counters, 3);
	add_row(*state, "a", "r3", "2026-01-01T00:00:03Z");
	put(*state, "a/counters.csv",
	    "label,run_id,metric,value\nx,r1,flops,1\nx,r1,bytes,2\ny,r2,flops,3\n"
	    "z,r3,flops,4\nw,,flops,5\n");
	sum = merge(*state, one, 1);
	assert_int_equal(sum.counters, 2);
	assert_file(*state, "to/counters.csv",
		    "label,run_id,metric,value\nx,r1,flops,1\nx,r1,bytes,2\ny,r2,flops,3\n"
		    "z,r3,flops,4\nw,,flops,5\n");
}

/* The row of a run is its last word: what it has of counters before may be half of them. */
static void counters_wait_for_the_row(void **state)
{
	static const char *const two[] = { "a", "b" };
	struct rfl_merge sum;

	add_row(*state, "a", "r1", "2026-01-01T00:00:01Z");
	put(*state, "a/counters.csv", "label,run_id,metric,value\nx,r1,flops,1\ny,r2,flops,2\n");
	put(*state, "b/counters.csv", "label,run_id,metric,value\nx,r1,flops,1\n");
	sum = merge(*state, two, 2);
	assert_int_equal(sum.counters, 1); /* not r1 of both, not r2 */
	add_row(*state, "a", "r2", "2026-01-01T00:00:02Z");
	put(*state, "a/counters.csv",
	    "label,run_id,metric,value\nx,r1,flops,1\ny,r2,flops,2\ny,r2,bytes,3\n");
	sum = merge(*state, two, 2);
	assert_int_equal(sum.counters, 2);
	assert_file(*state, "to/counters.csv",
		    "label,run_id,metric,value\nx,r1,flops,1\ny,r2,flops,2\ny,r2,bytes,3\n");
}

static void a_bad_ledger_is_named(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	const char *folder = tmp_path(*state, "a");
	struct rfl_merge sum;

	put(*state, "a/metrics.csv", "run_id,batch\nr1,many\n");
	assert_int_equal(rfl_ledger_merge(&folder, 1, tmp_path(*state, "to"), &sum, &err),
			 RFL_EFORMAT);
	assert_says(&err, "a/metrics.csv");
	assert_false(rfl_file_exists(tmp_path(*state, "to/metrics.csv")));
	err = (struct rfl_err)RFL_ERR_INIT;
	put(*state, "a/metrics.csv",
	    "schema_version,run_id,label,status,batch,version\n4,r1,x,ok,1,1\n4,,x,ok,2,1\n");
	assert_int_equal(rfl_ledger_merge(&folder, 1, tmp_path(*state, "to"), &sum, &err),
			 RFL_EFORMAT);
	assert_says(&err, "a/metrics.csv:3: the row has no run_id");
	err = (struct rfl_err)RFL_ERR_INIT;
	put(*state, "a/metrics.csv",
	    "schema_version,run_id,label,status,batch,version\n4,r1,x,ok,many,1\n");
	assert_int_equal(rfl_ledger_merge(&folder, 1, tmp_path(*state, "to"), &sum, &err),
			 RFL_EFORMAT);
	assert_says(&err, "a/metrics.csv:2: column 'batch': 'many' is not an integer");
	assert_false(rfl_file_exists(tmp_path(*state, "to/metrics.csv")));
}

/* A link to itself cannot be followed by anyone; permissions do not stop root. */
static void what_cannot_be_read_is_named(void **state)
{
	static const struct {
		const char *folder, *link;
	} cases[] = {
		{ "a", "a" },          { "b", "b/metrics.csv" }, { "c", "c/steps" },
		{ "d", "d/time" },     { "e", "e/steps/x.csv" }, { "f", "f/counters.csv" },
		{ "g", "g/env.json" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *folder = tmp_path(*state, cases[i].folder);
		const char *link = tmp_path(*state, cases[i].link);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_merge sum;

		assert_ok(rfl_file_mkdirs_for(link, &err), &err);
		if (i > 1)
			add_row(*state, cases[i].folder, "r1", "2026-01-01T00:00:01Z");
		assert_int_equal(symlink(rfl_path_base(link), link), 0);
		assert_int_equal(rfl_ledger_merge(&folder, 1, tmp_path(*state, "to"), &sum, &err),
				 RFL_EIO);
		assert_says(&err, cases[i].link);
		assert_says(&err, "cannot read");
		assert_false(rfl_file_exists(tmp_path(*state, "to/metrics.csv")));
	}
}

static void foreign_columns_come_along(void **state)
{
	static const char *const folders[] = { "a", "b", "c" };
	struct rfl_merge sum;

	put(*state, "a/metrics.csv",
	    "schema_version,run_id,label,note,status,version\n4,r1,x,\"one, two\",ok,1\n");
	put(*state, "b/metrics.csv",
	    "schema_version,run_id,label,status,version,who,note\r\n4,r2,x,ok,1,me,"
	    "\"\"\"q\"\"\"\r\n");
	sum = merge(*state, folders, 1);
	assert_int_equal(sum.rows, 1);
	sum = merge(*state, folders, 2); /* adds a column to the file */
	assert_int_equal(sum.rows, 1);
	assert_ids(*state, "r1 r2 ");
	add_row(*state, "c", "r3", "2026-01-01T00:00:03Z");
	sum = merge(*state, folders, 3);
	assert_int_equal(sum.rows, 1);
	assert_cells(*state, "note", "one, two|\"q\"||");
	assert_cells(*state, "who", "|me||");
	assert_cells(*state, "version", "1|1|1|");
	assert_true(rfl_file_exists(tmp_path(*state, "to/metrics.v4.csv"))); /* without `who` */
}

/* Rows of an older version get the columns of this one. */
static void rows_of_older_versions(void **state)
{
	static const char *const folders[] = { "a" };

	add_row(*state, "to", "r0", "2026-01-01T00:00:00Z");
	put(*state, "a/metrics.csv",
	    "schema_version,run_id,label,status,version\n2,r1,x,ok,0.1\n2,r2,x,ok,0.1\n");
	(void)merge(*state, folders, 1);
	assert_ids(*state, "r0 r1 r2 ");
	assert_cells(*state, "schema_version", "5|2|2|");
	assert_cells(*state, "batch", "|||");
}

/* A file of steps may be larger than any buffer. */
static void files_of_any_size_are_copied(void **state)
{
	static const char *const folders[] = { "a" };
	const off_t size = (off_t)257 << 20;
	struct rfl_merge sum;

	add_row(*state, "a", "r1", "2026-01-01T00:00:01Z");
	put(*state, "a/steps/r1.csv", "step\n");
	assert_int_equal(truncate(tmp_path(*state, "a/steps/r1.csv"), size), 0); /* sparse */
	sum = merge(*state, folders, 1);
	assert_int_equal(sum.files, 1);
	assert_true(rfl_file_size(tmp_path(*state, "to/steps/r1.csv")) == (uint64_t)size);
	sum = merge(*state, folders, 1);
	assert_int_equal(sum.files_there, 1);
	assert_int_equal(unlink(tmp_path(*state, "to/steps/r1.csv")), 0);
}

static void every_folder_of_runs_comes_along(void **state)
{
	static const char *const folders[] = { "a" };
	char name[64];

	add_row(*state, "a", "r1", "2026-01-01T00:00:01Z");
	for (size_t i = 0; rfl_ledger_folders[i]; i++) {
		(void)snprintf(name, sizeof(name), "a/%s/r1.csv", rfl_ledger_folders[i]);
		put(*state, name, rfl_ledger_folders[i]);
	}
	put(*state, "a/model_summaries/summary.json", "{}");
	put(*state, "a/steps/r2.csv.tmp.1.0", "half a file");
	(void)merge(*state, folders, 1);
	assert_false(rfl_file_exists(tmp_path(*state, "to/steps/r2.csv.tmp.1.0")));
	for (size_t i = 0; rfl_ledger_folders[i]; i++) {
		(void)snprintf(name, sizeof(name), "to/%s/r1.csv", rfl_ledger_folders[i]);
		assert_file(*state, name, rfl_ledger_folders[i]);
	}
	assert_file(*state, "to/model_summaries/summary.json", "{}");
}

/* A record is named by its environments. It grows; another machine's of the same name is kept, and
 * the page has the name of its record. A name that is not one of an environment is not used. */
static void records_of_machines(void **state)
{
	static const char *const all[] = { "x/logs", "y/logs", "z/logs", "odd/logs" };

	for (int again = 0; again < 2; again++) {
		put(*state, "x/logs/env.json",
		    again ? "{\"environments\": {\"a\": {\"now\": 2}, \"b\": {}}}"
			  : "{\"environments\": {\"a\": {\"now\": 1}, \"b\": {}}}");
		put(*state, "x/logs/env_info.md", again ? "x again" : "x");
		put(*state, "y/logs/env.json",
		    "{\"environments\": {\"c\": {\"processor\": {\"name\": \"y\"}}}}");
		put(*state, "y/logs/env_info.md", "y");
		put(*state, "z/logs/env.json",
		    "{\"environments\": {\"c\": {\"processor\": {\"name\": \"z\"}}}}");
		put(*state, "z/logs/env_info.md", "z");
		put(*state, "odd/logs/env.json", "{\"environments\": {\"../../x\": {}}}");
		(void)merge(*state, all, RFL_ARRAY_LEN(all));
	}
	assert_file(*state, "to/env/a-b.json",
		    "{\"environments\": {\"a\": {\"now\": 2}, \"b\": {}}}");
	assert_file(*state, "to/env/a-b.md", "x again");
	assert_file(*state, "to/env/c.md", "y");
	assert_file(*state, "to/env/c_2.json",
		    "{\"environments\": {\"c\": {\"processor\": {\"name\": \"z\"}}}}");
	assert_file(*state, "to/env/c_2.md", "z");
	assert_file(*state, "to/env/logs.json", "{\"environments\": {\"../../x\": {}}}");
	assert_false(rfl_file_exists(tmp_path(*state, "to/env/c_3.json")));
}

/* Another driver does not make another machine, and no page is lost. */
static void keeps_pages(void **state)
{
	static const char *const all[] = { "x", "y", "z" };
	static const char record[] =
		"{\"environments\": {\"lab\": {\"processor\": {\"name\": \"p\", "
		"\"governor\": \"%s\"}, \"gpus\": {\"driver\": \"%s\", "
		"\"devices\": [{\"name\": \"g\"}]}}}}";
	char text[512];

	put(*state, "x/env_info.md", "x");
	put(*state, "y/env_info.md", "y");
	put(*state, "z/env_info.md", "z");
	(void)snprintf(text, sizeof(text), record, "powersave", "550.1");
	put(*state, "x/env.json", text);
	put(*state, "y/env.json", text);
	(void)merge(*state, all, RFL_ARRAY_LEN(all));
	assert_file(*state, "to/env/lab.md", "x");
	assert_file(*state, "to/env/lab_2.md", "y");
	assert_file(*state, "to/env/z.md", "z");
	put(*state, "to/env/lab.md", "x and notes");
	(void)merge(*state, all, RFL_ARRAY_LEN(all));
	assert_file(*state, "to/env/lab.md", "x and notes");
	(void)snprintf(text, sizeof(text), record, "performance", "560.2");
	put(*state, "x/env.json", text);
	(void)merge(*state, all, 1);
	assert_file(*state, "to/env/lab.json", text);
	assert_false(rfl_file_exists(tmp_path(*state, "to/env/lab_2.json")));
}

/* More rows than are appended at once, of several directories in turn. */
static void many_rows_stay_in_order(void **state)
{
	static const char *const folders[] = { "a", "b", "c" };
	struct rfl_ledger *l = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text = { .len = 0 };
	struct rfl_merge sum;

	for (int f = 0; f < 3; f++) {
		rfl_buf_reset(&text);
		rfl_buf_puts(&text,
			     "schema_version,run_id,label,timestamp_utc,status,note,version\n");
		for (int i = f; i < 30000; i += 3)
			rfl_buf_printf(&text, "4,r%06d,x,%06d,ok,\"%0999d\",1\n", i, i, i);
		put(*state,
		    f == 0   ? "a/metrics.csv"
		    : f == 1 ? "b/metrics.csv"
			     : "c/metrics.csv",
		    text.data);
	}
	sum = merge(*state, folders, 3);
	assert_int_equal(sum.rows, 30000);
	assert_ok(rfl_ledger_load(tmp_path(*state, "to/metrics.csv"), &l, &err), &err);
	assert_int_equal(l->nrows, 30000);
	for (size_t i = 0; i < l->nrows; i++) {
		char id[32];

		snprintf(id, sizeof(id), "r%06zu", i);
		assert_string_equal(l->rows[i].run_id, id);
	}
	rfl_ledger_free(l);
	rfl_buf_fini(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_come_once_and_in_the_order_of_time),
		TEST(files_are_never_overwritten),
		TEST(a_file_that_grew_is_brought_again),
		TEST(counters_come_by_run),
		TEST(counters_wait_for_the_row),
		TEST(a_bad_ledger_is_named),
		TEST(what_cannot_be_read_is_named),
		TEST(foreign_columns_come_along),
		TEST(rows_of_older_versions),
		TEST(files_of_any_size_are_copied),
		TEST(every_folder_of_runs_comes_along),
		TEST(records_of_machines),
		TEST(keeps_pages),
		TEST(many_rows_stay_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
