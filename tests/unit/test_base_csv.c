/* The CSV reader and the exact writer. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/csv.h"
#include "base/file.h"

/* The whole table as "header|fields;fields@line;..." for comparison with a picture of it. */
static void picture(const char *path, struct rfl_buf *out)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	bool more;

	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	for (size_t i = 0; i < csv->ncolumns; i++)
		rfl_buf_printf(out, "%s[%s]", i ? " " : "", csv->columns[i]);
	for (;;) {
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		if (!more)
			break;
		rfl_buf_printf(out, "\n%zu:", csv->line);
		for (size_t i = 0; i < csv->nfields; i++)
			rfl_buf_printf(out, " [%s]", rfl_csv_text(csv, (int)i));
	}
	if (csv->torn)
		rfl_buf_puts(out, "\ntorn");
	rfl_csv_close(csv);
}

static void reads(void **state)
{
	static const struct {
		const char *text, *picture;
	} cases[] = {
		{ "a,b\n1,2\n3,4\n", "[a] [b]\n2: [1] [2]\n3: [3] [4]" },
		{ "\xef\xbb\xbf"
		  "a,b\r\n1,2\r\n",
		  "[a] [b]\n2: [1] [2]" },
		{ "a,b\n1\n\n\n,2\n", "[a] [b]\n2: [1]\n5: [] [2]" },
		{ "\n\r\na\nx\n", "[a]\n4: [x]" },
		{ "a,b\n\"x\ny\",2\n\n3,4\n", "[a] [b]\n2: [x\ny] [2]\n5: [3] [4]" },
		{ "a,b\n\"x\r\n\",\"\"\"q\"\"\"\nz\n", "[a] [b]\n2: [x\r\n] [\"q\"]\n4: [z]" },
		{ " a ,\"b c\"\n 1 ,\" 2 \"\n", "[a] [b c]\n2: [ 1 ] [ 2 ]" },
		{ "a,b\n1,2", "[a] [b]\n2: [1] [2]\ntorn" },
		{ "a,b\n1,2\n3", "[a] [b]\n2: [1] [2]\n3: [3]\ntorn" },
		{ "a,b\n1,2\n3,4\r", "[a] [b]\n2: [1] [2]\n3: [3] [4]\ntorn" },
		{ "a,b", "[a] [b]" },
		{ "a\n\"\"\nx\n", "[a]\n2: []\n3: [x]" },
		{ "a,,\n1,2,3\n", "[a] [] []\n2: [1] [2] [3]" },
		{ "{a},[b\n1,2\n", "[{a}] [[b]\n2: [1] [2]" },
		{ "a;b,c\n1,2\n", "[a;b] [c]\n2: [1] [2]" },
		{ "\xc2\xb5s\n\xc3\xa9\n", "[\xc2\xb5s]\n2: [\xc3\xa9]" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_buf out = { 0 };

		picture(write_file(*state, "t.csv", cases[i].text), &out);
		assert_string_equal(rfl_buf_str(&out), cases[i].picture);
		rfl_buf_fini(&out);
	}
}

/* Lines are cut into the same fields with and without quotes: every length up to several blocks of
 * 64 bytes, with commas at every place. */
static void plain_lines_are_as_quoted_ones(void **state)
{
	struct rfl_buf plain = { 0 }, quoted = { 0 }, a = { 0 }, b = { 0 };
	uint32_t random = 1;

	rfl_buf_puts(&plain, "c0");
	for (int i = 1; i < 300; i++)
		rfl_buf_printf(&plain, ",c%d", i);
	rfl_buf_puts(&plain, "\n");
	rfl_buf_append(&quoted, plain.data, plain.len);
	for (int row = 0; row < 2000; row++) {
		int len = (int)((random = random * 1664525u + 1013904223u) >> 16) % 280;
		bool crlf = random & 0x1000000;

		rfl_buf_puts(&plain, "x");
		rfl_buf_puts(&quoted, "\"x");
		for (int i = 0; i < len; i++) {
			random = random * 1664525u + 1013904223u;
			rfl_buf_puts(&plain, random >> 31 ? "," : "y ");
			rfl_buf_puts(&quoted, random >> 31 ? "\",\"" : "y ");
		}
		rfl_buf_puts(&plain, crlf ? "\r\n" : "\n");
		rfl_buf_puts(&quoted, crlf ? "\"\r\n" : "\"\n");
	}
	picture(write_file(*state, "plain.csv", plain.data), &a);
	picture(write_file(*state, "quoted.csv", quoted.data), &b);
	assert_string_equal(rfl_buf_str(&a), rfl_buf_str(&b));
	rfl_buf_fini(&plain);
	rfl_buf_fini(&quoted);
	rfl_buf_fini(&a);
	rfl_buf_fini(&b);
}

static void refuses_bad_headers(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "", "is empty" },
		{ "\n\n", "is empty" },
		{ "\xef\xbb\xbf", "is empty" },
		{ "a,b,a\n", "'a' twice" },
		{ "a, a\n", "'a' twice" },
		{ "a,\"b\n", ":1:3: the file ends inside this quoted field" },
		{ "a,b\"c\n", ":1:4: not CSV" },
		{ "a,\"b\"c\n", ":1:6: not CSV" },
		{ "a,b\r1,2\r", "CR alone" },
		{ "{\n  \"a\": 1\n}\n", "is JSON" },
		{ "[{\"a\": 1, \"b\": 2}]", "is JSON" },
		{ "a;b\n\"1,5\";2\n", ":1: columns are separated by semicolons" },
		{ "\"a\"\t\"b\"\n1\t2\n", ":1: columns are separated by tabs" },
		{ "b,c,b,a,c,a\n", "'b' twice" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_csv *csv = NULL;

		assert_int_equal(
			rfl_csv_open(write_file(*state, "bad.csv", cases[i].text), &csv, &err),
			RFL_EFORMAT);
		assert_says(&err, "bad.csv");
		assert_says(&err, cases[i].word);
		assert_null(csv);
	}
}

static void refuses_bad_rows(void **state)
{
	static const struct {
		const char *text, *word;
		bool torn;
	} cases[] = {
		{ "a,b\n1,2\n1,2,3\n", "bad.csv:3: the row has more fields", false },
		{ "a,b\n\"x\ny\",2\n1,2,3\n", "bad.csv:4: the row has more fields", false },
		{ "a,b\n1,2\"3\n", "bad.csv:2:4: not CSV", false },
		{ "a,b\n1,2\n\"x,\n\n", "bad.csv:3:1: the file ends inside this quoted field",
		  true },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *path = write_file(*state, "bad.csv", cases[i].text);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_csv *csv = NULL;
		enum rfl_rc rc = RFL_OK;
		bool more = true;

		assert_ok(rfl_csv_open(path, &csv, &err), &err);
		while (rc == RFL_OK && more)
			rc = rfl_csv_next(csv, &more, &err);
		assert_int_equal(rc, RFL_EFORMAT);
		assert_says(&err, cases[i].word);
		assert_int_equal(csv->torn, cases[i].torn);
		rfl_csv_close(csv);
	}
}

static void refuses_what_is_no_text(void **state)
{
	static const char utf16[] = "\xff\xfe"
				    "a\0,\0b\0\n\0";
	const char *path = tmp_path(*state, "utf16.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(utf16, 1, sizeof(utf16) - 1, f), sizeof(utf16) - 1);
	fclose(f);
	assert_int_equal(rfl_csv_open(path, &csv, &err), RFL_EFORMAT);
	assert_says(&err, "utf16.csv:1:4: a zero byte: this is not text");

	rfl_err_clear(&err);
	assert_int_equal(rfl_csv_open(tmp_path(*state, "none.csv"), &csv, &err), RFL_EIO);
	assert_says(&err, "none.csv: No such file");
	rfl_err_clear(&err);
	assert_int_equal(rfl_csv_open(*state, &csv, &err), RFL_EIO);
	assert_says(&err, "is a directory");
}

static void columns_by_name(void **state)
{
	const char *path = write_file(*state, "t.csv", "time_s,batch\n 0.25 ,8\n,\nx,1.5\n9\n");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	int64_t batch = 0;
	double time_s = 0;
	int time_at = -1, batch_at = -1;
	bool more;

	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	assert_ok(rfl_csv_need(csv, "time_s", &time_at, &err), &err);
	assert_ok(rfl_csv_need(csv, "batch", &batch_at, &err), &err);
	assert_int_equal(rfl_csv_find(csv, "loss"), -1);
	assert_int_equal(rfl_csv_need(csv, "loss", &time_at, &err), RFL_EFORMAT);
	assert_says(&err, "t.csv:1: the header has no column 'loss'");
	rfl_err_clear(&err);

	assert_ok(rfl_csv_next(csv, &more, &err), &err);
	assert_ok(rfl_csv_double(csv, time_at, &time_s, &err), &err);
	assert_ok(rfl_csv_int(csv, batch_at, -1, &batch, &err), &err);
	assert_true(time_s == 0.25);
	assert_true(batch == 8);

	assert_ok(rfl_csv_next(csv, &more, &err), &err); /* empty is not known */
	assert_ok(rfl_csv_double(csv, time_at, &time_s, &err), &err);
	assert_ok(rfl_csv_int(csv, batch_at, -1, &batch, &err), &err);
	assert_true(isnan(time_s));
	assert_true(batch == -1);
	assert_ok(rfl_csv_double(csv, -1, &time_s, &err), &err);
	assert_true(isnan(time_s));

	assert_ok(rfl_csv_next(csv, &more, &err), &err);
	assert_int_equal(rfl_csv_double(csv, time_at, &time_s, &err), RFL_EFORMAT);
	assert_says(&err, "t.csv:4: column 'time_s': 'x' is not a number");
	rfl_err_clear(&err);
	assert_int_equal(rfl_csv_int(csv, batch_at, -1, &batch, &err), RFL_EFORMAT);
	assert_says(&err, "t.csv:4: column 'batch': '1.5' is not an integer");
	rfl_err_clear(&err);

	assert_ok(rfl_csv_next(csv, &more, &err), &err); /* a short row */
	assert_string_equal(rfl_csv_text(csv, batch_at), "");
	assert_ok(rfl_csv_int(csv, batch_at, -1, &batch, &err), &err);
	assert_true(batch == -1);
	rfl_csv_close(csv);
	rfl_csv_close(NULL);
}

/* Rows that straddle the reader's blocks, with line feeds in quotes, at every offset. */
static void rows_across_blocks(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	for (size_t shift = 0; shift < 24; shift++) {
		struct rfl_csv *csv = NULL;
		size_t n = 0;
		bool more;

		rfl_buf_init(&text, 0);
		rfl_buf_puts(&text, "key,value\n");
		for (size_t i = 0; i < shift; i++)
			rfl_buf_putc(&text, '\n');
		while (text.len < 3 * 65536)
			rfl_buf_puts(&text, "\"a\nb\"\"\",0123456789\r\n");
		assert_ok(
			rfl_csv_open(write_file(*state, "big.csv", rfl_buf_str(&text)), &csv, &err),
			&err);
		for (;; n++) {
			assert_ok(rfl_csv_next(csv, &more, &err), &err);
			if (!more)
				break;
			assert_int_equal(csv->line, 2 + shift + 2 * n);
			assert_string_equal(rfl_csv_text(csv, 0), "a\nb\"");
			assert_string_equal(rfl_csv_text(csv, 1), "0123456789");
		}
		assert_int_equal(n, (text.len - 10 - shift) / 20);
		assert_false(csv->torn);
		rfl_csv_close(csv);
		rfl_buf_fini(&text);
	}
}

/* A quote that is never closed must not read the rest of a long file into memory. */
static void a_row_has_a_maximum(void **state)
{
	const char *path = tmp_path(*state, "long.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	FILE *f = fopen(path, "wb");
	bool more;

	assert_non_null(f);
	fputs("a,b\n\"1,2\n", f);
	for (int i = 0; i < 1700000; i++)
		fputs("0123456789\n", f);
	fclose(f);
	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	assert_int_equal(rfl_csv_next(csv, &more, &err), RFL_EFORMAT);
	assert_says(&err, "long.csv:2:1: a line longer than 16 MiB");
	rfl_csv_close(csv);
}

static void memory_stays_flat(void **state)
{
	const char *path = tmp_path(*state, "many.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	struct rusage before, after;
	FILE *f = fopen(path, "wb");
	size_t n = 0;
	bool more;

	assert_non_null(f);
	fputs("a,b,c\n", f);
	for (int i = 0; i < 1000000; i++)
		fprintf(f, "%d,\"some text, quoted\",3.25\n", i);
	fclose(f);
	getrusage(RUSAGE_SELF, &before);
	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	for (;; n++) {
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		if (!more)
			break;
	}
	rfl_csv_close(csv);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(n, 1000000);
	/* The file has 31 MB; the reader may take one. The sanitizer's own pages are not ours. */
#ifndef RFL_ARENA_DEBUG
	assert_true(after.ru_maxrss - before.ru_maxrss < 1024);
#endif
}

static void writes_exactly(void **state)
{
	static const struct {
		const char *fields[3];
		size_t n;
		const char *text;
	} cases[] = {
		{ { "a", "b", "c" }, 3, "a,b,c\n" },
		{ { "", "", "" }, 3, ",,\n" },
		{ { "" }, 1, "\"\"\n" },
		{ { "a,b", "say \"hi\"", "two\nlines" },
		  3,
		  "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\"\n" },
		{ { "\"", "\r", " x" }, 3, "\"\"\"\",\"\r\",\" x\"\n" },
		{ { "x\t", "in side", "\xc3\xa9" }, 3, "\"x\t\",in side,\xc3\xa9\n" },
	};
	struct rfl_buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		rfl_buf_reset(&out);
		rfl_csv_write_row(&out, cases[i].fields, cases[i].n);
		assert_string_equal(rfl_buf_str(&out), cases[i].text);
	}
	rfl_buf_fini(&out);
}

/* load(store(x)) == x for fields made of the characters that matter. */
static void what_is_written_reads_back(void **state)
{
	static const char alphabet[] = "a,\"\r\n \t'";
	uint32_t seed = 1;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out = { 0 };

	for (int round = 0; round < 300; round++) {
		char fields[3][8];
		const char *row[3] = { fields[0], fields[1], fields[2] };
		struct rfl_csv *csv = NULL;
		bool more;

		for (size_t i = 0; i < 3; i++) {
			size_t len = (seed >> 16) % 7;

			for (size_t k = 0; k < len; k++) {
				seed = seed * 1664525u + 1013904223u;
				fields[i][k] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
			}
			fields[i][len] = '\0';
			seed = seed * 1664525u + 1013904223u;
		}
		rfl_buf_reset(&out);
		rfl_buf_puts(&out, "x,y,z\n");
		rfl_csv_write_row(&out, row, 3);
		assert_ok(rfl_csv_open(write_file(*state, "r.csv", rfl_buf_str(&out)), &csv, &err),
			  &err);
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		assert_true(more);
		for (int i = 0; i < 3; i++)
			assert_string_equal(rfl_csv_text(csv, i), fields[i]);
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		assert_false(more);
		rfl_csv_close(csv);
	}
	rfl_buf_fini(&out);
}

/* Each is found at its place, in an order that is not that of the alphabet. */
static void a_header_may_be_wide(void **state)
{
	enum { N = 60000 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text = { 0 };
	struct rfl_csv *csv = NULL;
	char name[32];

	for (int i = 0; i < N; i++)
		rfl_buf_printf(&text, "%scolumn %d", i ? "," : "", i * 7919 % N);
	rfl_buf_putc(&text, '\n');
	assert_ok(rfl_csv_open(write_file(*state, "wide.csv", rfl_buf_str(&text)), &csv, &err),
		  &err);
	assert_int_equal(csv->ncolumns, N);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "column %d", i * 7919 % N);
		assert_int_equal(rfl_csv_find(csv, name), i);
	}
	assert_int_equal(rfl_csv_find(csv, "column"), -1);
	rfl_csv_close(csv);
	rfl_buf_fini(&text);
}

/* Of what was parsed, however long the file has become since. */
static void the_hash_is_of_the_rows_read(void **state)
{
	const char *path = write_file(*state, "grows.csv", "");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	struct rfl_buf parsed = { 0 };
	FILE *f = fopen(path, "w");
	bool more = true;

	assert_non_null(f);
	rfl_buf_puts(&parsed, "number\n");
	for (int i = 0; i < 100000; i++) /* several blocks */
		rfl_buf_printf(&parsed, "%d\n", i);
	fputs(parsed.data, f);
	fflush(f);
	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	csv->hashed = true;
	rfl_buf_reset(&parsed);
	rfl_buf_puts(&parsed, "number\n");
	for (int rows = 0; rfl_csv_next(csv, &more, &err) == RFL_OK && more; rows++) {
		if (rows == 50000) {
			fputs("appended while it was read\n", f);
			fflush(f);
		}
		rfl_buf_printf(&parsed, "%s\n", rfl_csv_text(csv, 0));
	}
	fputs("appended afterwards\n", f);
	fclose(f);
	assert_non_null(strstr(parsed.data, "appended while"));
	assert_true(csv->hash == rfl_hash64(0, parsed.data, parsed.len));
	rfl_csv_close(csv);
	rfl_buf_fini(&parsed);
}

#define in_tmpdir(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_tmpdir(reads),
		in_tmpdir(plain_lines_are_as_quoted_ones),
		in_tmpdir(refuses_bad_headers),
		in_tmpdir(refuses_bad_rows),
		in_tmpdir(refuses_what_is_no_text),
		in_tmpdir(columns_by_name),
		in_tmpdir(a_header_may_be_wide),
		in_tmpdir(the_hash_is_of_the_rows_read),
		in_tmpdir(rows_across_blocks),
		in_tmpdir(a_row_has_a_maximum),
		in_tmpdir(memory_stays_flat),
		cmocka_unit_test(writes_exactly),
		in_tmpdir(what_is_written_reads_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
