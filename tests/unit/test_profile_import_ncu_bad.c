/*
 * test_profile_import_ncu_bad.c - what is wrong in files of ncu: the message with line and column,
 * word for word, and with keep_going how many rows are left out of the rest.
 */
#include <math.h>
#include <stdio.h>

#include "tests/unit/import_rig.h"
#include "tests/unit/long_line.h"

#define HEADER                                                                           \
	"\"ID\",\"Process ID\",\"Kernel Name\",\"CC\",\"Section Name\",\"Metric Name\"," \
	"\"Metric Unit\",\"Metric Value\"\n"
#define ROW(id, metric, unit, value) \
	"\"" id "\",\"7\",\"k\",\"8.0\",\"s\",\"" metric "\",\"" unit "\",\"" value "\"\n"
#define READ  "dram__bytes_read.sum"
#define WRITE "dram__bytes_write.sum"
#define FIRST ROW("0", READ, "byte", "1,234,567")
#define LAST  ROW("9", READ, "byte", "1,000")
#define REST  1235567.0 /* what FIRST and LAST add up to */
#define SUMMARY(process, kernel, launches, value)                                         \
	"\"Process ID\",\"Kernel Name\",\"Invocations\",\"Metric Name\",\"Metric Unit\"," \
	"\"Average\"\n\"" process "\",\"" kernel "\",\"" launches "\",\"" READ            \
	"\",\"byte\",\"" value "\"\n"

struct bad {
	const char *text;
	size_t len; /* 0: to the NUL */
	const char *message;
	int64_t left_out; /* with keep_going; -1: it is no use */
	double rest;      /* bytes read then */
};

static const struct bad cases[] = {
	/* kernels were profiled: the warning does not say otherwise */
	{ .text = "==PROF== Connected to process 7 (/x)\n==WARNING== Backing up device memory in "
		  "system memory. Kernel replay might be slow.\n[7] x@127.0.0.1\n"
		  "  k(float *) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n"
		  "    Section: GPU Speed Of Light Throughput\n"
		  "    ----------------------- ------------- ------------\n"
		  "    Metric Name               Metric Unit Metric Value\n"
		  "    ----------------------- ------------- ------------\n"
		  "    Elapsed Cycles                  cycle       12,345\n",
	  .message = "f.csv: an ncu report, not CSV; run 'ncu --csv --page raw --print-units base "
		     "--log-file out.csv ...'",
	  .left_out = -1 },
	{ .text = "  k(int *) (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n"
		  "    Metric Name               Metric Unit Metric Value\n",
	  .message = "f.csv: an ncu report, not CSV; run 'ncu --csv --page raw --print-units base "
		     "--log-file out.csv ...'",
	  .left_out = -1 },
	{ .text = HEADER FIRST "\"1\",\"7\",\"k\n" LAST,
	  .message = "f.csv:3:9: this quoted field does not end on its line; check whether it is "
		     "cut off",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST "\"1\",\"7\",\n" LAST,
	  .message = "f.csv:3: 3 of 8 fields: the row is cut off",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST LAST "\"10\",\"7\",\"k\",\"8.0\",\"s\",\"" READ "\",\"byte\",\"12",
	  .message = "f.csv:4:54: the file ends inside this quoted field",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST "\"1\",\"7\",\"k\",\"8.0\",\"s\",\"" READ "\",\"byte\"\n" LAST,
	  .message = "f.csv:3: column 'Metric Value': the row ends before it",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST ROW("1", READ, "furlong", "12") LAST,
	  .message = "f.csv:3: column 'Metric Unit': 'furlong' is not a known unit (metric '" READ
		     "'); run ncu with --print-units base",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST ROW("1", READ, "byte", "12 apples") LAST,
	  .message =
		  "f.csv:3: column 'Metric Value': '12 apples' is not a number (metric '" READ "')",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST ROW("1", READ, "byte", "-12") LAST,
	  .message = "f.csv:3: column 'Metric Value': '-12' is below 0 (metric "
		     "'" READ "')",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST ROW("0", READ, "byte", "1,234,568") LAST,
	  .message =
		  "f.csv:3: column 'Metric Value': '" READ "' has a second value, '1,234,568 byte'",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST ROW("1", READ, "byte", "1,5") LAST,
	  .message = "f.csv:3: column 'Metric Value': '1,5' has a different decimal sign from "
		     "'1,234,567' on line 2; run ncu with LC_ALL=C",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST "\"1\",\"7\",\"k\",\"8.0\",\"s\",\"" READ
			       "\",\"byte\",\"1\",\"x\"\n" LAST,
	  .message = "f.csv:3: 9 fields, but the header on line 1 has 8 columns",
	  .left_out = 1,
	  .rest = REST },
	{ .text = HEADER FIRST "\"1\",\"7\",\"k\",\"8.0\",\"s\",\"" READ
			       "\",\"byte\",\"1\",\"x\"\n" ROW("1", READ, "byte", "5") LAST,
	  .message = "f.csv:3: 9 fields, but the header on line 1 has 8 columns",
	  .left_out = 1,
	  .rest = REST + 5 },
	{ .text = HEADER FIRST ROW("1x", READ, "byte", "1") ROW("1x", WRITE, "byte", "1") LAST,
	  .message = "f.csv:3: column 'ID': '1x' is not a launch ID",
	  .left_out = 2,
	  .rest = REST },
	{ .text = HEADER FIRST LAST ROW("0", WRITE, "byte", "1") ROW("0", READ, "byte", "1"),
	  .message = "f.csv:4: column 'ID': '0' is a launch that was already read; keep its rows "
		     "together, and one page of a report",
	  .left_out = 2,
	  .rest = REST },
	{ .text = HEADER FIRST "\"1\",\"7\",\"k\",\"8\0\",\"s\"\n" LAST,
	  .len = sizeof(HEADER FIRST "\"1\",\"7\",\"k\",\"8\0\",\"s\"\n" LAST) - 1,
	  .message = "f.csv:3:15: a zero byte: this is not text",
	  .left_out = 1,
	  .rest = REST },
	{ .text = "\"ID\",\"Process ID\",\"Kernel Name\",\"ID\",\"Metric Name\",\"Metric "
		  "Value\"\n" FIRST,
	  .message = "f.csv:1: the header names column 'ID' twice",
	  .left_out = -1 },
	{ .text = "\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\"\n" FIRST,
	  .message = "f.csv:1: the header of this ncu table has no column 'Metric Value'",
	  .left_out = -1 },
	{ .text = HEADER "==PROF== Disconnected from process 7\n",
	  .message = "f.csv: the table on line 1 has no rows: no launch was counted",
	  .left_out = -1 },
	{ .text = "==PROF== Connected to process 7 (/x)\nhello\n",
	  .message = "f.csv: no ncu table; run 'ncu --csv --page raw --print-units base --log-file "
		     "out.csv ...'",
	  .left_out = -1 },
	{ .text = "\"Kernel Name\",\"k(int)\"\n\"#\",\"Address\",\"Source\",\"Warp Stall Sampling "
		  "(All "
		  "Samples)\"\n\"1\",\"\",\"x = 1;\",\"10\"\n",
	  .message = "f.csv:2: ncu's source page, which has no counters; run 'ncu -i REPORT --csv "
		     "--page raw --print-units base'",
	  .left_out = -1 },
	{ .text = "\"Launch Settings\"\n\"Working Directory\",\"/home\"\n\n\"Device "
		  "Attribute\",\"Device "
		  "0\"\n",
	  .message = "f.csv:1: ncu's session page, which has no counters; run 'ncu -i REPORT --csv "
		     "--page raw --print-units base'",
	  .left_out = -1 },
	{ .text = "\"ID\",\"Process ID\",\"Kernel Name\",\"" READ "\"\n\"\",\"\",\"\",\"byte\"\n"
		  "\"0\",\"7\",\"k\",\"1234567\"\n\"1\",\"7\",\"k\",\"many\"\n\"9\",\"7\",\"k\","
		  "\"1000\"\n",
	  .message = "f.csv:4: column '" READ "': 'many' is not a number (metric '" READ "')",
	  .left_out = 1,
	  .rest = REST },
	{ .text = "\"Process ID\",\"Kernel Name\",\"Invocations\",\"Metric Name\",\"Metric "
		  "Unit\",\"Average\"\n\"7\",\"k\",\"2\",\"" READ
		  "\",\"byte\",\"617,783.50\"\n\"7\",\"j\",\"some\",\"" READ "\",\"byte\",\"1\"\n",
	  .message = "f.csv:3: column 'Invocations': 'some' is not a launch count",
	  .left_out = 1,
	  .rest = REST },
	{ .text = "\"Process ID\",\"Kernel Name\",\"Invocations\",\"Metric Name\",\"Metric "
		  "Unit\",\"Average\"\n\"7\",\"k\",\"2\",\"" READ
		  "\",\"byte\",\"617,783.50\"\n\"7\",\"j\",\"1\",\"x\",\"\",\"1\"\n\"7\",\"k\","
		  "\"2\",\"" WRITE "\",\"byte\",\"1\"\n",
	  .message = "f.csv:4: column 'Kernel Name': 'k' was already read; keep its rows together, "
		     "and one page of a report",
	  .left_out = 1,
	  .rest = REST },
	/* Pages of one report after each other. */
	{ .text = HEADER FIRST LAST HEADER ROW("0", READ, "byte", "1,234,567")
		  ROW("0", WRITE, "byte", "1"),
	  .message = "f.csv:5: column 'ID': '0' is a launch that was already read; keep its rows "
		     "together, and one page of a report",
	  .left_out = 2,
	  .rest = REST },
	{ .text = HEADER FIRST LAST SUMMARY("7", "k", "2", "617,783.50"),
	  .message = "f.csv:5: column 'Process ID': '7' has individual launches in this file; keep "
		     "one page of a report",
	  .left_out = 1,
	  .rest = REST },
	{ .text = SUMMARY("7", "k", "2", "617,783.50") HEADER FIRST LAST,
	  .message = "f.csv:4: column 'Process ID': '7' has a summary in this file; keep one page "
		     "of a report",
	  .left_out = 2,
	  .rest = REST },
	{ .text = SUMMARY("7", "k", "2", "617,783.50") SUMMARY("7", "k", "2", "617,783.50"),
	  .message = "f.csv:4: column 'Kernel Name': 'k' was already read; keep its rows together, "
		     "and one page of a report",
	  .left_out = 1,
	  .rest = REST },
	/* Wide: a metric twice, cells that cannot be read in one row, units that were left out. */
	{ .text = "\"ID\",\"Kernel Name\",\"" READ "\",\"" READ "\"\n\"\",\"\",\"byte\",\"byte\"\n"
		  "\"0\",\"k\",\"1235567\",\"1235568\"\n",
	  .message = "f.csv:3: column '" READ "': '" READ "' has a second value, '1235568 byte'",
	  .left_out = 1,
	  .rest = REST },
	{ .text = "\"ID\",\"Kernel Name\",\"" READ "\",\"" WRITE
		  "\"\n\"\",\"\",\"byte\",\"byte\"\n\"0\",\"k\",\"1235567\",\"4\"\n"
		  "\"1\",\"k\",\"some\",\"many\"\n",
	  .message = "f.csv:4: column '" READ "': 'some' is not a number (metric '" READ "')",
	  .left_out = 1,
	  .rest = REST },
};

/* Where the units are gone, no value is taken. */
static void takes_no_values_without_their_units(void **state)
{
	static const char *const rows[] = {
		"\"\",\"\",\"Mbyte\"\n", /* cut off */
		"\"\",\"\",\"Mbyte\",\"\"x\n",
		"\"\",\"\",\"Mbyte\",\"ns\",\"\"\n",
	};
	const struct rfl_import_options keep_going = { .keep_going = true };
	struct import_rig rig;
	char text[256];

	(void)state;
	import_rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		(void)snprintf(text, sizeof(text), "\"ID\",\"Kernel Name\",\"%s\",\"%s\"\n%s%s",
			       READ, "gpu__time_duration.sum", rows[i],
			       "\"0\",\"k\",\"1.5\",\"7\"\n");
		assert_int_equal(import_rig_text(&rig, text, strlen(text), &keep_going),
				 RFL_EFORMAT);
		assert_string_equal(rig.err.msg, "f.csv:3: the row of units after the header on "
						 "line 1 was skipped: values cannot be converted");
		assert_int_equal(rig.nwarnings, 1);
	}
	import_rig_fini(&rig);
}

static void check_case(const struct bad *bad)
{
	const struct rfl_import_options keep_going = { .keep_going = true };
	size_t len = bad->len ? bad->len : strlen(bad->text);
	struct import_rig rig;
	const struct rfl_capture *c;

	import_rig_init(&rig);
	assert_int_equal(import_rig_text(&rig, bad->text, len, NULL), RFL_EFORMAT);
	assert_string_equal(rig.err.msg, bad->message);
	assert_int_equal(rig.captures.n, 0);
	if (bad->left_out < 0) {
		assert_int_equal(import_rig_text(&rig, bad->text, len, &keep_going), RFL_EFORMAT);
		assert_string_equal(rig.err.msg, bad->message);
		import_rig_fini(&rig);
		return;
	}
	assert_ok(import_rig_text(&rig, bad->text, len, &keep_going), &rig.err);
	c = rig.captures.captures[0];
	assert_int_equal(c->rows_left_out, bad->left_out);
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, bad->rest, 0);
	assert_int_equal(strncmp(rfl_buf_str(&rig.warnings), bad->message, strlen(bad->message)),
			 0);
	import_rig_fini(&rig);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		print_message("case %zu: %s\n", i, cases[i].message);
		check_case(&cases[i]);
	}
}

/* A row of a gigabyte, from a pipe: refused by its number, and the rest is read. */
static void passes_over_a_gigabyte(void **state)
{
	const struct rfl_import_options keep_going = { .keep_going = true };
	struct long_line line = { .before = HEADER FIRST "\"1\",\"7\",\"", .after = "\"\n" LAST };
	struct import_rig rig;
	long before = peak_kib();
	char message[128];

	(void)state;
	import_rig_init(&rig);
	long_line_begin(&line);
	(void)snprintf(message, sizeof(message), "%s:3:1: a line longer than 8 MiB", line.path);
	assert_int_equal(import_rig_file(&rig, line.path, NULL), RFL_EFORMAT);
	assert_string_equal(rig.err.msg, message);
	long_line_end(&line);
	long_line_begin(&line);
	assert_ok(import_rig_file(&rig, line.path, &keep_going), &rig.err);
	assert_int_equal(rig.captures.captures[0]->rows_left_out, 1);
	assert_close(rig.captures.captures[0]->total[RFL_QUANTITY_DRAM_READ].value, REST, 0);
	long_line_end(&line);
	import_rig_fini(&rig);
	if (before > 0)
		assert_true(peak_kib() - before < 32 << 10);
}

/* Memory is bound: a file of nothing but kernels that differ is refused by the first too many. */
static void refuses_kernels_without_end(void **state)
{
	struct import_rig rig;
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, HEADER);
	for (int i = 0; i <= (1 << 16) + 9; i++) /* the rest is not read */
		rfl_buf_printf(&text, "\"%d\",\"7\",\"k%d\",\"8.0\",\"s\",\"x\",\"\",\"1\"\n", i,
			       i);
	import_rig_init(&rig);
	assert_int_equal(import_rig_text(&rig, text.data, text.len, NULL), RFL_EOVERFLOW);
	assert_string_equal(rig.err.msg,
			    "f.csv:65538: 'k65536': a capture holds at most 65536 kernels or "
			    "ranges that differ in name, block or grid; count fewer (ncu "
			    "--kernel-name, --launch-count), or one part at a time");
	import_rig_fini(&rig);
	rfl_buf_fini(&text);
}

/* Values that can be read in two ways are read as in the C locale, with a warning. */
static void warns_of_what_is_ambiguous(void **state)
{
	static const char text[] =
		HEADER ROW("0", "Duration", "ns", "117.344") ROW("1", "Duration", "ns", "12");
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	assert_ok(import_rig_text(&rig, text, sizeof(text) - 1, NULL), &rig.err);
	assert_close(rig.captures.captures[0]->total[RFL_QUANTITY_TIME].value, 129.344e-9, 1e-15);
	assert_non_null(strstr(rig.warnings.data, "('117.344' on line 2): the point is assumed"));
	assert_true(import_rig_notes(rig.captures.captures[0], "the point is assumed"));
	import_rig_fini(&rig);
}

/* The head of the file is checked before its first cell is read. */
static void looks_ahead_for_the_decimal_sign(void **state)
{
	static const char text[] =
		HEADER ROW("0", "Duration", "ns", "117.344") ROW("1", "Duration", "us", "65,77");
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	assert_ok(import_rig_text(&rig, text, sizeof(text) - 1, NULL), &rig.err);
	assert_close(rig.captures.captures[0]->total[RFL_QUANTITY_TIME].value, 183.114e-6, 1e-13);
	assert_int_equal(rig.nwarnings, 0);
	import_rig_fini(&rig);
}

/* A count with decimals: the sign may be another than it was taken to be. */
static void doubts_fractions_of_counts(void **state)
{
	static const char text[] =
		HEADER ROW("0", READ, "byte", "27.59") ROW("1", READ, "byte", "3.5");
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	assert_ok(import_rig_text(&rig, text, sizeof(text) - 1, NULL), &rig.err);
	assert_int_equal(rig.nwarnings, 1);
	assert_string_equal(rig.warnings.data,
			    "f.csv:2: '27.59' of '" READ
			    "' is a fraction of a byte; check the decimal sign\n");
	import_rig_fini(&rig);
}

/* Kept though no formula names it, in an unknown unit. */
static void keeps_unknown_units_when_all_is_kept(void **state)
{
	static const char text[] = HEADER ROW("0", "x__y.sum", "furlong", "12") FIRST;
	const struct rfl_import_options all = { .all_metrics = true };
	const struct rfl_range *range;
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	assert_ok(import_rig_text(&rig, text, sizeof(text) - 1, &all), &rig.err);
	range = &rig.captures.captures[0]->ranges[0];
	assert_int_equal(range->nmetrics, 2);
	assert_string_equal(range->metrics[0].unit, "furlong");
	assert_close(range->metrics[0].value, 12, 0);
	assert_non_null(strstr(rig.warnings.data,
			       "f.csv:2: 'furlong' is not a known unit; values are not converted"));
	import_rig_fini(&rig);
}

static void refuses_a_kind_that_is_none(void **state)
{
	const struct rfl_import_options options = { .from = "vtune" };
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	assert_int_equal(import_rig_text(&rig, FIRST, strlen(FIRST), &options), RFL_ENOTFOUND);
	assert_says(&rig.err, "unknown importer 'vtune'; use one of: ncu, nvprof");
	assert_int_equal(import_rig_text(&rig, "what is this", 12, NULL), RFL_EFORMAT);
	assert_says(&rig.err, "f.csv: unknown file format");
	assert_int_equal(import_rig_text(&rig, "", 0, NULL), RFL_EFORMAT);
	assert_says(&rig.err, "f.csv: the file is empty");
	import_rig_fini(&rig);
}

/* What ncu says in place of a table is the reason of everything, which no 0 stands for. */
static void takes_errors_for_the_reason(void **state)
{
	static const struct {
		const char *text, *reason;
	} files[] = {
		{ "==PROF== Connected to process 7 (/x)\n==ERROR== ERR_NVGPUCTRPERM - The user "
		  "does not have permission to access NVIDIA GPU Performance Counters\n==ERROR== "
		  "other\n",
		  "ncu reports '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to "
		  "access NVIDIA GPU Performance Counters'; run ncu as root, or set "
		  "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module (see 'roofline "
		  "counters check')" },
		{ "hello\n==WARNING== No kernels were profiled.\n",
		  "ncu reports '==WARNING== No kernels were profiled.'; check --kernel-name, "
		  "--launch-skip, --nvtx-include and --profile-from-start; add --target-processes "
		  "all if a script starts the program" },
		{ HEADER "==ERROR== Failed to profile \"k\" in process 7\n",
		  "ncu reports '==ERROR== Failed to profile \"k\" in process 7'; try --replay-mode "
		  "application, or fewer metrics" },
	};
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++) {
		const struct rfl_capture *c;

		assert_ok(import_rig_text(&rig, files[i].text, strlen(files[i].text), NULL),
			  &rig.err);
		assert_int_equal(rig.captures.n, 1);
		c = rig.captures.captures[0];
		assert_int_equal(c->nrefusals, 1);
		assert_string_equal(c->refusals[0].reason, files[i].reason);
		assert_non_null(strstr(rig.warnings.data, files[i].reason));
		for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
			assert_true(isnan(c->total[q].value));
			assert_string_equal(c->total[q].reason, files[i].reason);
		}
	}
	import_rig_fini(&rig);
}

/* No profiler has a launch twice, whatever the order of its numbers. */
static void finds_any_launch_that_comes_again(void **state)
{
	const struct rfl_import_options keep_going = { .keep_going = true };
	static const int order[] = { 5, 3, 4, 9, 7, 8, 6, 0, 2, 1, 3, 9, 0, 6, 10, 10 };
	struct import_rig rig;
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, HEADER);
	for (size_t i = 0; i < RFL_ARRAY_LEN(order); i++)
		rfl_buf_printf(&text,
			       "\"%d\",\"7\",\"k\",\"8.0\",\"s\",\"" READ "\",\"byte\",\"1\"\n",
			       order[i]);
	import_rig_init(&rig);
	assert_ok(import_rig_text(&rig, text.data, text.len, &keep_going), &rig.err);
	/* Of the last two rows the second is the same launch with the same value. */
	assert_int_equal(rig.captures.captures[0]->rows_left_out, 4);
	assert_int_equal(rig.captures.captures[0]->ranges[0].launches, 11);
	import_rig_fini(&rig);
	rfl_buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(takes_no_values_without_their_units),
		cmocka_unit_test(passes_over_a_gigabyte),
		cmocka_unit_test(refuses_kernels_without_end),
		cmocka_unit_test(warns_of_what_is_ambiguous),
		cmocka_unit_test(looks_ahead_for_the_decimal_sign),
		cmocka_unit_test(doubts_fractions_of_counts),
		cmocka_unit_test(keeps_unknown_units_when_all_is_kept),
		cmocka_unit_test(refuses_a_kind_that_is_none),
		cmocka_unit_test(takes_errors_for_the_reason),
		cmocka_unit_test(finds_any_launch_that_comes_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
