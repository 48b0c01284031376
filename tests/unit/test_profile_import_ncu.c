/*
 * test_profile_import_ncu.c - every layout of ncu's CSV, from real files to the digit, and from
 * files that were made of them: transposed, in another locale, summarized, with output around.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "tests/unit/import_rig.h"

#define S01 "profile/ncu/s01_a100_sgemm_metrics_long.csv"

static double total(const struct rfl_capture *c, enum rfl_quantity q)
{
	return c->total[q].value;
}

/* What the A100 file holds, however it is written. */
static void check_a100(const struct rfl_capture *c)
{
	assert_string_equal(c->source, "ncu");
	assert_close(total(c, RFL_QUANTITY_FLOPS_FP32), 68722832179200.0, 0);
	assert_close(total(c, RFL_QUANTITY_FLOPS_FP64), 0, 0);
	assert_close(total(c, RFL_QUANTITY_FLOPS), 68722832179200.0, 0);
	assert_close(total(c, RFL_QUANTITY_DRAM), 4405704551808.0, 0);
	assert_close(total(c, RFL_QUANTITY_L2), 14464020867456.0, 0);
	assert_close(total(c, RFL_QUANTITY_L1), 205288867102720.0, 0);
	assert_close(total(c, RFL_QUANTITY_TIME), 50.41392061, 1e-10);
	assert_close(rfl_amounts_ai(c->total), 15.5986, 1e-6);
	assert_int_equal(c->rows_left_out, 0);
	assert_true(import_rig_notes(c, "cold caches"));
}

static const struct rfl_range *last_range(const struct rfl_capture *c)
{
	assert_true(c->nranges > 0);
	return &c->ranges[c->nranges - 1];
}

static void read_sample(struct import_rig *rig, const char *name)
{
	import_rig_init(rig);
	assert_ok(import_rig_file(rig, data_path(name), NULL), &rig->err);
	assert_int_equal(rig->captures.n, 1);
}

/* --- real files ------------------------------------------------------------------------------ */

static void reads_a_long_table(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;
	const struct rfl_range *gemm;

	(void)state;
	read_sample(&rig, S01);
	c = rig.captures.captures[0];
	check_a100(c);
	assert_string_equal(c->label, "s01_a100_sgemm_metrics_long");
	assert_string_equal(c->chip, "GA100");
	assert_int_equal(c->nranges, 3);
	gemm = last_range(c);
	assert_string_equal(gemm->name, "void gemm_v0<float>(T1 *, T1 *, T1 *, int, int, int)");
	assert_string_equal(gemm->block, "(32, 32, 1)");
	assert_string_equal(gemm->grid, "(1280, 1280, 1)");
	assert_close(gemm->amount[RFL_QUANTITY_FLOPS_FP32].value, 68719476736000.0, 0);
	assert_int_equal(rig.nwarnings, 0);
	import_rig_fini(&rig);
}

/* Moves by HFMA2.MMA are no FLOPs: 6.7e9 HFMA of a kernel that computes in fp32 only. */
static void leaves_the_moves_out(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_sample(&rig, S01);
	c = rig.captures.captures[0];
	assert_true(isnan(last_range(c)->amount[RFL_QUANTITY_FLOPS_FP16].value));
	assert_non_null(strstr(last_range(c)->amount[RFL_QUANTITY_FLOPS_FP16].reason, "HFMA2.MMA"));
	assert_true(import_rig_notes(c, "HFMA2.MMA"));
	import_rig_fini(&rig);
}

static void reads_a_wide_table(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_sample(&rig, "profile/ncu/s02_b200_wide_raw_base.csv");
	c = rig.captures.captures[0];
	assert_close(total(c, RFL_QUANTITY_TIME), 9.9088e-4, 1e-14);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].launches, 16);
	assert_true(isnan(total(c, RFL_QUANTITY_FLOPS)));
	assert_true(isnan(total(c, RFL_QUANTITY_DRAM)));
	assert_non_null(c->total[RFL_QUANTITY_FLOPS].reason);
	assert_non_null(c->total[RFL_QUANTITY_DRAM].reason);
	assert_true(isnan(rfl_amounts_ai(c->total)));
	assert_string_equal(c->device, "NVIDIA B200");
	assert_string_equal(c->chip, "GB100");
	assert_int_equal(c->nranges, 2);
	import_rig_fini(&rig);
}

static void reads_a_details_page_with_rules(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_sample(&rig, "profile/ncu/s03_t4_details_rules.csv");
	c = rig.captures.captures[0];
	assert_int_equal(c->nranges, 1);
	assert_close(total(c, RFL_QUANTITY_TIME), 0.021058944, 0);
	assert_close(total(c, RFL_QUANTITY_CYCLES), 12319469, 0);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID_ESTIMATE);
	assert_true(isnan(total(c, RFL_QUANTITY_FLOPS)));
	assert_int_equal(rig.nwarnings, 0);
	import_rig_fini(&rig);
}

static void says_what_was_rounded(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_sample(&rig, "profile/ncu/s06_metrics_tensor_na.csv");
	c = rig.captures.captures[0];
	assert_close(total(c, RFL_QUANTITY_FLOPS_TENSOR_BF16), 1275068416, 0);
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS_TENSOR_BF16].validity, RFL_VALID);
	assert_close(total(c, RFL_QUANTITY_DRAM_READ), 3350000, 0);
	assert_close(total(c, RFL_QUANTITY_DRAM), 3350000, 0);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID_ESTIMATE);
	assert_non_null(strstr(c->total[RFL_QUANTITY_DRAM].reason, "+-0.005 Mbyte"));
	assert_close(total(c, RFL_QUANTITY_TIME), 23.42e-6, 1e-15);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].validity, RFL_VALID_ESTIMATE);
	assert_true(isnan(total(c, RFL_QUANTITY_FLOPS_FP32)));
	assert_true(import_rig_notes(c, "by up to 0.15 %"));
	assert_true(import_rig_notes(c, "'flop_count_hp.sum' is an nvprof metric"));
	assert_true(import_rig_notes(c, "counters list --chip GB202 --ncu"));
	import_rig_fini(&rig);
}

static void refuses_what_was_rounded_when_strict(void **state)
{
	const struct rfl_import_options strict = { .strict = true };
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	assert_int_equal(
		import_rig_file(&rig, data_path("profile/ncu/s06_metrics_tensor_na.csv"), &strict),
		RFL_EFORMAT);
	assert_says(
		&rig.err,
		"csv:2: column 'Metric Value': '3.35 Mbyte' of 'dram__bytes_read.sum' is rounded");
	assert_ok(import_rig_file(&rig, data_path(S01), &strict), &rig.err);
	import_rig_fini(&rig);
}

/* --- files made of the first ----------------------------------------------------------------- */

static void reads_the_same_in_every_layout(void **state)
{
	static const struct {
		const char *name;
		size_t nranges; /* before 2023 launches had no block and grid */
	} files[] = {
		{ "profile/ncu/made_wide_raw.csv", 3 },
		{ "profile/ncu/made_dot_groups.csv", 3 },
		{ "profile/ncu/made_nvtx.csv", 3 },
		{ "profile/ncu/made_old_rules.csv", 2 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++) {
		struct import_rig rig;

		read_sample(&rig, files[i].name);
		check_a100(rig.captures.captures[0]);
		assert_int_equal(rig.captures.captures[0]->nranges, files[i].nranges);
		assert_int_equal(rig.nwarnings, 0);
		import_rig_fini(&rig);
	}
}

/* Two launches of one kernel in a row of averages; the time is of average cycles. */
static void reads_a_summary(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_sample(&rig, "profile/ncu/made_summary.csv");
	c = rig.captures.captures[0];
	assert_int_equal(c->nranges, 2);
	assert_int_equal(c->ranges[0].launches, 2);
	assert_close(total(c, RFL_QUANTITY_FLOPS_FP32), 68722832179200.0, 0);
	assert_close(total(c, RFL_QUANTITY_DRAM), 4405704551808.0, 0);
	assert_close(total(c, RFL_QUANTITY_L1), 205288867102720.0, 0);
	assert_close(total(c, RFL_QUANTITY_TIME), 50.41392061, 1e-8);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].launches, 3);
	assert_true(import_rig_notes(c, "averages x invocations"));
	import_rig_fini(&rig);
}

static void read_into(struct rfl_buf *b, const char *name)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(b, 0);
	assert_ok(rfl_file_read(data_path(name), b, &err), &err);
}

/* `text` with each line's beginning and end replaced. */
static void each_line(struct rfl_buf *out, const char *text, const char *front, const char *end)
{
	rfl_buf_init(out, 0);
	for (const char *at = text; *at != '\0';) {
		const char *nl = strchr(at, '\n');

		assert_non_null(nl);
		rfl_buf_puts(out, front);
		rfl_buf_append(out, at, (size_t)(nl - at));
		rfl_buf_puts(out, end);
		at = nl + 1;
	}
}

static void read_text(struct import_rig *rig, const struct rfl_buf *text)
{
	import_rig_init(rig);
	assert_ok(import_rig_text(rig, text->data, text->len, NULL), &rig->err);
	assert_int_equal(rig->captures.n, 1);
}

static void reads_crlf_with_a_mark(void **state)
{
	struct rfl_buf text, crlf, marked;
	struct import_rig rig;

	(void)state;
	read_into(&text, S01);
	each_line(&crlf, text.data, "", "\r\n");
	rfl_buf_init(&marked, 0);
	rfl_buf_printf(&marked, "\xef\xbb\xbf%s", crlf.data);
	read_text(&rig, &marked);
	check_a100(rig.captures.captures[0]);
	import_rig_fini(&rig);
	rfl_buf_fini(&marked);
	rfl_buf_fini(&crlf);
	rfl_buf_fini(&text);
}

/* Output of ncu and the application before, between and after the rows. */
static void passes_over_other_output(void **state)
{
	struct rfl_buf text, mixed;
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_into(&text, S01);
	each_line(&mixed, text.data, "==PROF== Profiling \"k\" - 0: 0%....100% - 11 passes\n",
		  "\nloss \"0\", 3\n\n");
	read_text(&rig, &mixed);
	c = rig.captures.captures[0];
	check_a100(c);
	assert_true(import_rig_notes(c, "46 lines of other output"));
	import_rig_fini(&rig);
	rfl_buf_fini(&mixed);
	rfl_buf_fini(&text);
}

/* Output without a newline in front of the header, and an error line after the rows. */
static void finds_a_header_behind_output(void **state)
{
	struct rfl_buf text, mixed;
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_into(&text, S01);
	rfl_buf_init(&mixed, 0);
	rfl_buf_printf(&mixed, "accuracy 0.7%s==ERROR== Failed to profile \"k\" in process 3\n",
		       text.data);
	read_text(&rig, &mixed);
	c = rig.captures.captures[0];
	check_a100(c);
	assert_true(import_rig_notes(c, "incomplete: ncu reports '==ERROR== Failed to profile"));
	assert_int_equal(rig.nwarnings, 1);
	assert_non_null(strstr(rig.warnings.data, "f.csv:47: the capture is incomplete"));
	import_rig_fini(&rig);
	rfl_buf_fini(&mixed);
	rfl_buf_fini(&text);
}

/* The launches of another process in a second table. */
static void adds_up_tables(void **state)
{
	struct rfl_buf text, twice;
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	read_into(&text, S01);
	rfl_buf_init(&twice, 0);
	rfl_buf_printf(&twice, "%s==PROF== Connected to process 7 (/x)\n", text.data);
	for (char *at = text.data; (at = strstr(at, "\"1984564\"")) != NULL;)
		at[1] = '2';
	rfl_buf_puts(&twice, text.data);
	read_text(&rig, &twice);
	c = rig.captures.captures[0];
	assert_close(total(c, RFL_QUANTITY_FLOPS_FP32), 2 * 68722832179200.0, 0);
	assert_int_equal(c->ranges[0].launches, 2);
	assert_true(import_rig_notes(c, "2 tables"));
	import_rig_fini(&rig);
	rfl_buf_fini(&twice);
	rfl_buf_fini(&text);
}

#define HEADER                                                                           \
	"\"ID\",\"Process ID\",\"Kernel Name\",\"CC\",\"Section Name\",\"Metric Name\"," \
	"\"Metric Unit\",\"Metric Value\"\n"
#define ROW(id, process, metric, unit, value)                                                      \
	"\"" id "\",\"" process "\",\"k\",\"8.0\",\"s\",\"" metric "\",\"" unit "\",\"" value "\"" \
	"\n"
#define READ  "dram__bytes_read.sum"
#define WRITE "dram__bytes_write.sum"
#define TIME  "gpu__time_duration.sum"

static const struct rfl_capture *read_rows(struct import_rig *rig, const char *rows)
{
	import_rig_init(rig);
	assert_ok(import_rig_text(rig, rows, strlen(rows), NULL), &rig->err);
	return rig->captures.captures[0];
}

/* Numbers begin at 0 in each process, and processes take turns. */
static void tells_processes_apart(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	c = read_rows(&rig,
		      HEADER ROW("0", "7", READ, "byte", "1") ROW("0", "8", READ, "byte", "2")
			      ROW("1", "7", READ, "byte", "4") ROW("1", "8", READ, "byte", "8"));
	assert_close(total(c, RFL_QUANTITY_DRAM_READ), 15, 0);
	assert_int_equal(c->ranges[0].launches, 4);
	assert_true(import_rig_notes(c, "several processes"));
	import_rig_fini(&rig);
}

/* The unit may change from row to row. */
static void converts_the_unit_of_each_row(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	c = read_rows(
		&rig,
		HEADER ROW("0", "7", READ, "Mbyte", "3.25") ROW("0", "7", WRITE, "Kbyte", "12.50")
			ROW("0", "7", TIME, "us", "23.42") ROW("1", "7", READ, "byte", "100")
				ROW("1", "7", WRITE, "Gbyte", "1.00")
					ROW("1", "7", TIME, "msecond", "1.50"));
	assert_close(total(c, RFL_QUANTITY_DRAM_READ), 3250100, 0);
	assert_close(total(c, RFL_QUANTITY_DRAM_WRITE), 1000012500, 0);
	assert_close(total(c, RFL_QUANTITY_TIME), 1.52342e-3, 1e-15);
	import_rig_fini(&rig);
}

/* The same value twice, in one section or two, is one value. */
static void ignores_a_value_that_is_there_again(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	c = read_rows(&rig, HEADER ROW("0", "7", TIME, "ns", "5")
				    ROW("0", "7", TIME, "ns",
					"5") "\"0\",\"7\",\"k\",\"8.0\",\"other\",\"" TIME
					     "\",\"nsecond\",\"5\"\n");
	assert_close(total(c, RFL_QUANTITY_TIME), 5e-9, 0);
	assert_int_equal(rig.nwarnings, 0);
	import_rig_fini(&rig);
	c = read_rows(&rig, HEADER ROW("0", "7", TIME, "ns",
				       "5") "\"0\",\"7\",\"k\",\"8.0\",\"other\",\"" TIME
					    "\",\"ns\",\"6\"\n");
	assert_close(total(c, RFL_QUANTITY_TIME), 5e-9, 0);
	assert_non_null(
		strstr(rig.warnings.data,
		       "f.csv:3: 'gpu__time_duration.sum' of section 'other', '6 ns', "
		       "differs from the value in another section: the first value is used"));
	import_rig_fini(&rig);
}

/* A table that a data frame saved: an index, no quotes, IDs as reals. */
static void reads_a_table_saved_again(void **state)
{
	static const char text[] = ",ID,Process ID,Kernel Name,CC,Section Name,Metric Name,"
				   "Metric Unit,Metric Value\n"
				   "0,0.0,7.0,\"k(int, int)\",8.0,s," READ ",byte,\"1,234\"\n"
				   "1,0.0,7.0,\"k(int, int)\",8.0,s," WRITE ",byte,\"1,234,567\"\n";
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	c = read_rows(&rig, text);
	assert_close(total(c, RFL_QUANTITY_DRAM), 1235801, 0);
	assert_string_equal(c->ranges[0].name, "k(int, int)");
	import_rig_fini(&rig);
}

/* No row of units: base units, of which ncu's for a time is the nanosecond. */
static void takes_base_units_where_none_are_told(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	c = read_rows(&rig, "\"ID\",\"Process ID\",\"Kernel Name\",\"CC\",\"" READ "\",\"" TIME
			    "\"\n\"0\",\"7\",\"k\",\"9.0\",\"64\",\"2000\"\n");
	assert_close(total(c, RFL_QUANTITY_DRAM_READ), 64, 0);
	assert_close(total(c, RFL_QUANTITY_TIME), 2e-6, 0);
	assert_true(import_rig_notes(c, "no row of units"));
	import_rig_fini(&rig);
}

/* A pass of 600 columns, of which three count. */
static void reads_600_columns(void **state)
{
	struct rfl_buf text;
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, "\"ID\",\"Process ID\",\"Kernel Name\",\"CC\",\"" READ "\"");
	for (int i = 0; i < 593; i++)
		rfl_buf_printf(&text, ",\"launch__%d\"", i);
	rfl_buf_puts(&text, ",\"" WRITE "\",\"" TIME "\"\n\"\",\"\",\"\",\"\",\"Kbyte\"");
	for (int i = 0; i < 593; i++)
		rfl_buf_puts(&text, ",\"\"");
	rfl_buf_puts(&text, ",\"byte\",\"us\"\n");
	for (int row = 0; row < 500; row++) {
		rfl_buf_printf(&text, "\"%d\",\"7\",\"k%d\",\"9.0\",\"1.500000\"", row, row % 3);
		for (int i = 0; i < 593; i++)
			rfl_buf_printf(&text, ",\"%d.25\"", i);
		rfl_buf_printf(&text, ",\"%d\",\"2.000000\"\n", row);
	}
	read_text(&rig, &text);
	c = rig.captures.captures[0];
	assert_close(total(c, RFL_QUANTITY_DRAM_READ), 750000, 0);
	assert_close(total(c, RFL_QUANTITY_DRAM_WRITE), 499.0 * 500 / 2, 0);
	assert_close(total(c, RFL_QUANTITY_TIME), 1e-3, 1e-12);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].validity, RFL_VALID);
	assert_int_equal(c->nranges, 3);
	assert_int_equal(c->unused_metrics, 593);
	import_rig_fini(&rig);
	rfl_buf_fini(&text);
}

/* n/a of one launch makes the total a lower bound. */
static void knows_what_is_missing(void **state)
{
	struct import_rig rig;
	const struct rfl_capture *c;

	(void)state;
	c = read_rows(&rig,
		      HEADER ROW("0", "7", READ, "byte", "10") ROW("1", "7", READ, "byte", "n/a"));
	assert_close(total(c, RFL_QUANTITY_DRAM_READ), 10, 0);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].validity, RFL_VALID_PARTIAL);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].launches, 1);
	assert_int_equal(c->ranges[0].launches, 2);
	import_rig_fini(&rig);
}

/* Read from a directory: known columns are read by name, others are reported. */
static void reads_a_folder(void **state)
{
	struct import_rig rig;
	const struct rfl_import_options options = { .warn = import_rig_warn, .ctx = &rig };

	import_rig_init(&rig);
	(void)write_file(*state, "b.csv", HEADER ROW("0", "7", READ, "byte", "2"));
	(void)write_file(*state, "a.csv", HEADER ROW("0", "7", READ, "byte", "1"));
	(void)write_file(*state, "notes.txt", "nothing of a profiler\n");
	(void)write_file(*state, ".hidden", "nothing\n");
	assert_ok(rfl_import_dir(*state, &options, &rig.captures, &rig.err), &rig.err);
	assert_int_equal(rig.captures.n, 2);
	assert_string_equal(rig.captures.captures[0]->label, "a");
	assert_string_equal(rig.captures.captures[1]->label, "b");
	assert_int_equal(rig.nwarnings, 1);
	assert_non_null(strstr(rig.warnings.data, "notes.txt: unknown file format"));
	import_rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_long_table),
		cmocka_unit_test(leaves_the_moves_out),
		cmocka_unit_test(reads_a_wide_table),
		cmocka_unit_test(reads_a_details_page_with_rules),
		cmocka_unit_test(says_what_was_rounded),
		cmocka_unit_test(refuses_what_was_rounded_when_strict),
		cmocka_unit_test(reads_the_same_in_every_layout),
		cmocka_unit_test(reads_a_summary),
		cmocka_unit_test(reads_crlf_with_a_mark),
		cmocka_unit_test(passes_over_other_output),
		cmocka_unit_test(finds_a_header_behind_output),
		cmocka_unit_test(adds_up_tables),
		cmocka_unit_test(tells_processes_apart),
		cmocka_unit_test(converts_the_unit_of_each_row),
		cmocka_unit_test(ignores_a_value_that_is_there_again),
		cmocka_unit_test(reads_a_table_saved_again),
		cmocka_unit_test(takes_base_units_where_none_are_told),
		cmocka_unit_test(reads_600_columns),
		cmocka_unit_test(knows_what_is_missing),
		cmocka_unit_test_setup_teardown(reads_a_folder, tmpdir_make, tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
