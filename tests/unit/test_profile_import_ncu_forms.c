/*
 * test_profile_import_ncu_forms.c - what options of ncu change in its tables: labels beside names,
 * values of instances, base units of time, several devices and pages; and a capture of Windows.
 */
#include <math.h>
#include <stdio.h>

#include "profile/chips.h"
#include "tests/unit/import_rig.h"

#define HEADER                                                                                     \
	"\"ID\",\"Process ID\",\"Kernel Name\",\"Device\",\"CC\",\"Metric Name\",\"Metric Unit\"," \
	"\"Metric Value\"\n"
#define ROW(id, device, metric, unit, value)                                                      \
	"\"" id "\",\"7\",\"k\",\"" device "\",\"8.0\",\"" metric "\",\"" unit "\",\"" value "\"" \
	"\n"
#define READ "dram__bytes_read.sum"
#define TIME "gpu__time_duration.sum"

static const struct rfl_capture *read_rows(struct import_rig *rig, const char *rows)
{
	import_rig_init(rig);
	assert_ok(import_rig_text(rig, rows, strlen(rows), NULL), &rig->err);
	return rig->captures.captures[0];
}

/* stdout of PowerShell: a mark, the application's lines, ncu's, and Blackwell's names. Its DRAM
 * bytes and duration are in the file, as "53,261,312", "3,377,920" and "10,195,552" ns. */
static void reads_a_capture_of_windows(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	import_rig_init(&rig);
	assert_ok(import_rig_file(&rig, data_path("profile/ncu/s07_rtx5070_windows_bom.csv"), NULL),
		  &rig.err);
	c = rig.captures.captures[0];
	assert_string_equal(c->family, "blackwell-200");
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 53261312, 0);
	assert_close(c->total[RFL_QUANTITY_DRAM_WRITE].value, 3377920, 0);
	assert_close(c->total[RFL_QUANTITY_DRAM].value, 56639232, 0);
	assert_close(c->total[RFL_QUANTITY_TIME].value, 0.010195552, 0);
	assert_true(isnan(c->total[RFL_QUANTITY_FLOPS].value));
	assert_true(import_rig_notes(c, "6 lines of other output"));
	assert_int_equal(rig.nwarnings, 0);
	import_rig_fini(&rig);
}

/* --print-metric-name label-name */
static void takes_the_name_behind_a_label(void **state)
{
	static const char text[] = HEADER ROW("0", "0", "Duration (" TIME ")", "ns", "1,000")
		ROW("0", "0", "DRAM (read) (" READ ")", "byte", "1,000")
			ROW("0", "0", "L1 (not a name)", "byte", "1,000");
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig, text);
	assert_close(c->total[RFL_QUANTITY_TIME].value, 1e-6, 0);
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 1000, 0);
	assert_int_equal(c->unused_metrics, 1);
	import_rig_fini(&rig);
}

/* --print-metric-instances values, details */
static void passes_over_values_of_instances(void **state)
{
	static const char text[] = HEADER ROW("0", "0", READ, "byte", "1,200 (300; 400; 500)")
		ROW("1", "0", READ, "byte", "7 (0: 3; 1: 4)")
			ROW("2", "0", READ, "byte", "n/a (1)");
	static const char bad[] = HEADER ROW("0", "0", READ, "byte", "(300; 400; 500)");
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig, text);
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 1207, 0);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].launches, 2);
	assert_int_equal(import_rig_text(&rig, bad, sizeof(bad) - 1, NULL), RFL_EFORMAT);
	assert_says(&rig.err, "'(300; 400; 500)' is not a number");
	import_rig_fini(&rig);
}

/* A duration is a whole number of nanoseconds: its comma can only separate groups. */
static void reads_nanoseconds_as_whole(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig,
		      HEADER ROW("0", "0", TIME, "ns", "10,816") ROW("1", "0", TIME, "ns", "9"));
	assert_close(c->total[RFL_QUANTITY_TIME].value, 10825e-9, 1e-15);
	assert_int_equal(rig.nwarnings, 0);
	import_rig_fini(&rig);
	c = read_rows(&rig, HEADER ROW("0", "0", TIME, "nsecond", "10.816"));
	assert_close(c->total[RFL_QUANTITY_TIME].value, 10816e-9, 1e-15);
	assert_int_equal(rig.nwarnings, 0);
	import_rig_fini(&rig);
}

/* The average of a time is not made whole, that of a count is. */
static void averages_nanoseconds(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig,
		      "\"Process ID\",\"Kernel Name\",\"Invocations\",\"Metric Name\",\"Metric "
		      "Unit\",\"Average\"\n"
		      "\"7\",\"k\",\"3\",\"" TIME "\",\"ns\",\"1,024.67\"\n"
		      "\"7\",\"k\",\"3\",\"" READ "\",\"byte\",\"0.67\"\n");
	assert_close(c->total[RFL_QUANTITY_TIME].value, 3074.01e-9, 1e-14);
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 2, 0);
	import_rig_fini(&rig);
}

/* The digits that a raw page prints lose nothing, those of a details page do. */
static void knows_which_digits_are_lost(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig, HEADER ROW("0", "0", READ, "Gbyte", "1234.567891")
				    ROW("1", "0", READ, "Mbyte", "134.217728"));
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 1234702108728.0, 0);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].validity, RFL_VALID);
	import_rig_fini(&rig);
	c = read_rows(&rig, HEADER ROW("0", "0", READ, "Gbyte", "1234.57"));
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].validity, RFL_VALID_ESTIMATE);
	import_rig_fini(&rig);
}

static void tells_of_several_devices(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig, HEADER ROW("0", "0", TIME, "ns", "10") ROW("1", "1", TIME, "ns", "9"));
	assert_close(c->total[RFL_QUANTITY_TIME].value, 19e-9, 1e-15);
	assert_true(import_rig_notes(c, "kernels of several devices are added up"));
	assert_false(import_rig_notes(c, "the devices differ in compute capability"));
	import_rig_fini(&rig);
	c = read_rows(&rig, "\"ID\",\"Kernel Name\",\"CC\",\"" READ "\"\n\"\",\"\",\"\",\"byte\"\n"
			    "\"0\",\"k\",\"8.0\",\"5\"\n\"1\",\"k\",\"9.0\",\"5\"\n");
	assert_true(import_rig_notes(c,
				     "the devices differ in compute capability: the formulas for "
				     "the first, 8.0, are used"));
	import_rig_fini(&rig);
	c = read_rows(&rig, HEADER ROW("0", "1", TIME, "ns", "10") ROW("1", "1", TIME, "ns", "9"));
	assert_false(import_rig_notes(c, "several devices"));
	import_rig_fini(&rig);
}

/* A raw page has no groups; a page of another report after it has. */
static void forgets_that_a_page_has_no_groups(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig, "\"ID\",\"Process ID\",\"Kernel Name\",\"" READ "\"\n"
			    "\"\",\"\",\"\",\"byte\"\n\"0\",\"6\",\"k\",\"5\"\n" HEADER ROW(
				    "0", "0", TIME, "us", "1,234"));
	assert_close(c->total[RFL_QUANTITY_TIME].value, 1234e-6, 1e-15);
	assert_non_null(strstr(rig.warnings.data, "('1,234' on line 5): the point is assumed"));
	import_rig_fini(&rig);
}

/* --print-summary per-gpu: a row is of all kernels of a device. */
static void reads_a_summary_without_kernels(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig,
		      "\"Process ID\",\"Device\",\"CC\",\"Invocations\",\"Metric Name\","
		      "\"Metric Unit\",\"Minimum\",\"Maximum\",\"Average\"\n"
		      "\"7\",\"0\",\"8.0\",\"4\",\"" READ "\",\"byte\",\"1\",\"9\",\"2.50\"\n"
		      "\"7\",\"1\",\"8.0\",\"2\",\"" READ "\",\"byte\",\"1\",\"9\",\"3.50\"\n");
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 17, 0);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].launches, 6);
	assert_string_equal(c->ranges[0].name, "(all kernels)");
	import_rig_fini(&rig);
}

/* Output of the application between rows of one launch, and the same numbers without a column of
 * processes. */
static void joins_rows_around_output(void **state)
{
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig, HEADER ROW("0", "0", TIME, "ns", "10") "step 1\n\n==PROF== x\n" ROW(
				    "0", "0", READ, "byte", "9"));
	assert_int_equal(c->ranges[0].launches, 1);
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 9, 0);
	import_rig_fini(&rig);
	c = read_rows(&rig,
		      "\"ID\",\"Kernel Name\",\"" READ "\"\n\"\",\"\",\"byte\"\n\"0\",\"k\",\"5\"\n"
		      "\"ID\",\"Kernel Name\",\"" READ
		      "\"\n\"\",\"\",\"byte\"\n\"0\",\"k\",\"6\"\n");
	assert_int_equal(c->ranges[0].launches, 2);
	assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, 11, 0);
	import_rig_fini(&rig);
}

/* --- names of SMs and of their partitions ---------------------------------------------------- */

enum sass_names { SASS_SMSP, SASS_SM, SASS_MIXED, SASS_BOTH };

/* Three launches of two kernels with different counts; the last one's half-precision FMAs are
 * moves. 64 FP32 FMAs a launch, ... as `op` says. */
static void write_sass(struct rfl_buf *text, const struct rfl_chip *chip, enum sass_names names)
{
	static const char *const ops[] = { "fadd", "fmul", "ffma", "dadd", "dmul",
					   "dfma", "hadd", "hmul", "hfma" };
	static const char *const units[] = { "smsp", "sm" };

	rfl_buf_puts(text, HEADER);
	for (int id = 0; id < 3; id++) {
		const char *head = id < 2 ? "k" : "moves";

		for (size_t op = 0; op < RFL_ARRAY_LEN(ops); op++)
			for (int unit = 0; unit < 2; unit++) {
				bool is_sm = names == SASS_SM ||
					     (names == SASS_MIXED && (op + (size_t)id) % 2);
				int value = id == 2 && op >= 6 ? 0 : 64 * (id + 1) + (int)op;

				if (names != SASS_BOTH && is_sm != (unit == 1))
					continue;
				if (id == 2 && op == 8)
					value = 32 * 11;
				rfl_buf_printf(text,
					       "\"%d\",\"7\",\"%s\",\"0\",\"%d.%d\",\"%s__sass_"
					       "thread_inst_executed_op_%s_pred_on.sum\",\"inst\","
					       "\"%d\"\n",
					       id, head, chip->capability / 10,
					       chip->capability % 10, units[unit], ops[op], value);
			}
		rfl_buf_printf(text,
			       "\"%d\",\"7\",\"%s\",\"0\",\"%d.%d\",\"%s__inst_executed_pipe_"
			       "tensor.sum\",\"inst\",\"%d\"\n",
			       id, head, chip->capability / 10, chip->capability % 10,
			       names == SASS_SMSP ? "smsp" : "sm", id == 2 ? 11 : 0);
	}
}

/* FLOPs by precision of the four ways to name them. */
static void sm_names_count_what_smsp_names_count(void **state)
{
	const struct rfl_chip *chip;

	(void)state;
	for (size_t i = 0; (chip = rfl_chip_at(i)); i++) {
		double first[RFL_QUANTITY_COUNT];

		for (int names = SASS_SMSP; names <= SASS_BOTH; names++) {
			const struct rfl_capture *c;
			struct import_rig rig;
			struct rfl_buf text;

			rfl_buf_init(&text, 0);
			write_sass(&text, chip, (enum sass_names)names);
			c = read_rows(&rig, rfl_buf_str(&text));
			for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
				double value = c->total[q].value;

				if (names == SASS_SMSP)
					first[q] = value;
				else if (!(isnan(value) && isnan(first[q])) && value != first[q])
					fail_msg("%s, names %d: %s is %g, not %g", chip->name,
						 names,
						 rfl_quantity_info((enum rfl_quantity)q)->name,
						 value, first[q]);
			}
			/* fadd + fmul + 2 ffma of values 64 n, 64 n + 1, 64 n + 2 */
			if (strcmp(c->family, "xavier") != 0)
				assert_close(c->total[RFL_QUANTITY_FLOPS_FP32].value,
					     4 * 64 * (1 + 2 + 3) + 3 * (1 + 2 * 2), 0);
			if (strcmp(c->family, "ampere-100") == 0) {
				/* 2 hadd + 2 hmul + 4 hfma of 64 n + 6, 7, 8; no moves */
				assert_close(c->total[RFL_QUANTITY_FLOPS_FP16].value,
					     8 * 64 * (1 + 2) + 2 * (2 * 6 + 2 * 7 + 4 * 8), 0);
				assert_true(import_rig_notes(c, "1,408 FLOP"));
			}
			assert_int_equal(rig.nwarnings, 0);
			import_rig_fini(&rig);
			rfl_buf_fini(&text);
		}
	}
}

#define SASS_FADD "__sass_thread_inst_executed_op_fadd_pred_on.sum"

/* Two passes may count differently; one name twice is damage. */
static void takes_the_first_of_two_names_that_differ(void **state)
{
	static const char wide[] = "\"ID\",\"Kernel Name\",\"CC\",\"smsp" SASS_FADD
				   "\",\"sm" SASS_FADD "\"\n\"\",\"\",\"\",\"inst\",\"inst\"\n"
				   "\"0\",\"k\",\"8.0\",\"5\",\"6\"\n";
	static const char rows[] = HEADER ROW("0", "0", "smsp" SASS_FADD, "inst", "5")
		ROW("0", "0", "sm" SASS_FADD, "inst", "6");
	static const char twice[] = HEADER ROW("0", "0", "sm" SASS_FADD, "inst", "5")
		ROW("0", "0", "sm" SASS_FADD, "inst", "6");
	static const char *const texts[] = { wide, rows };
	struct import_rig rig;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const struct rfl_capture *c = read_rows(&rig, texts[i]);

		assert_close(c->ranges[0].metrics[0].value, 5, 0);
		assert_int_equal(c->ranges[0].nmetrics, 1);
		assert_non_null(
			strstr(rig.warnings.data, "differs from the value under another name"));
		import_rig_fini(&rig);
	}
	import_rig_init(&rig);
	assert_int_equal(import_rig_text(&rig, twice, sizeof(twice) - 1, NULL), RFL_EFORMAT);
	import_rig_fini(&rig);
}

/* A count that no formula names is there: it was counted. */
static void names_counts_that_it_does_not_understand(void **state)
{
	static const char text[] = HEADER ROW("0", "0", TIME, "ns", "10")
		ROW("0", "0", "smsp__thread_inst_executed_op_ffma_pred_on.sum", "inst",
		    "5") ROW("0", "0", "dram__bytes_read.avg", "byte", "5")
			ROW("0", "0", "lts__t_bytes.sum.pct_of_peak_sustained_elapsed", "%", "5");
	const struct rfl_capture *c;
	struct import_rig rig;

	(void)state;
	c = read_rows(&rig, text);
	assert_string_equal(
		c->total[RFL_QUANTITY_FLOPS_FP32].reason,
		"present but in no formula: smsp__thread_inst_executed_op_ffma_pred_on.sum; needs "
		"ncu --metrics "
		"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum,smsp__sass_thread_inst_"
		"executed_op_fmul_pred_on.sum,smsp__sass_thread_inst_executed_op_ffma_pred_on.sum");
	assert_string_equal(c->total[RFL_QUANTITY_DRAM_READ].reason,
			    "present but in no formula: dram__bytes_read.avg; needs ncu --metrics "
			    "dram__bytes_read.sum");
	assert_string_equal(c->total[RFL_QUANTITY_FLOPS_FP64].reason,
			    "not counted: ncu --metrics "
			    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum,"
			    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum,"
			    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum");
	assert_string_equal(c->total[RFL_QUANTITY_L2].reason,
			    "not counted: ncu --metrics lts__t_sectors_srcnode_gpc.sum");
	import_rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_capture_of_windows),
		cmocka_unit_test(takes_the_name_behind_a_label),
		cmocka_unit_test(passes_over_values_of_instances),
		cmocka_unit_test(reads_nanoseconds_as_whole),
		cmocka_unit_test(averages_nanoseconds),
		cmocka_unit_test(knows_which_digits_are_lost),
		cmocka_unit_test(tells_of_several_devices),
		cmocka_unit_test(forgets_that_a_page_has_no_groups),
		cmocka_unit_test(reads_a_summary_without_kernels),
		cmocka_unit_test(joins_rows_around_output),
		cmocka_unit_test(sm_names_count_what_smsp_names_count),
		cmocka_unit_test(takes_the_first_of_two_names_that_differ),
		cmocka_unit_test(names_counts_that_it_does_not_understand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
