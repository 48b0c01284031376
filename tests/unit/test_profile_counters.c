/* counters.csv: what is written is read back, and every refusal with its words. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "profile/capture.h"

#define SASS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"

static void give(struct rfl_capture_builder *b, const char *name, const char *unit, double value,
		 enum rfl_validity validity, const char *reason)
{
	int id = rfl_capture_metric_id(b, name, strlen(name), unit);

	(void)rfl_capture_metric(b, id, value, validity, 1, reason);
}

static void add_kernel(struct rfl_capture_builder *b, const char *name, const char *grid,
		       double scale)
{
	rfl_capture_begin(b, RFL_RANGE_KERNEL, name, "(32, 1, 1)", grid);
	give(b, "gpu__time_duration.sum", "s", 0.1 * scale, RFL_VALID, NULL);
	give(b, "dram__bytes.sum", "byte", 3e9 * scale, RFL_VALID_ESTIMATE, "rounded to Gbyte");
	give(b, SASS("fadd"), "inst", 1 / 3.0, RFL_VALID, NULL);
	give(b, SASS("fmul"), "inst", 0, RFL_VALID, NULL);
	if (scale > 1)
		give(b, SASS("ffma"), "inst", NAN, RFL_VALID, "n/a");
	else
		give(b, SASS("ffma"), "inst", 68719476736000 * scale, RFL_VALID, NULL);
}

/* A capture with all that one can hold, and one with nothing. */
static void make(struct rfl_captures *to)
{
	const struct rfl_capture_spec full = { .source = "ncu",
					       .label = "a, \"quoted\" label",
					       .path = "dir/file.csv" };
	const struct rfl_capture_spec bare = { .source = "cupti", .label = "live" };
	struct rfl_capture_builder *b = NULL;

	rfl_captures_init(to);
	b = rfl_capture_builder_new(&full);
	rfl_capture_chip(b, "GA100", "NVIDIA A100");
	assert_int_equal(rfl_capture_metric_id(b, "no one's", 8, ""), -1);
	add_kernel(b, "gemm<float, \"x\">\n(second line)", "(1, 2, 3)", 1);
	add_kernel(b, "gemm<float, \"x\">\n(second line)", "(1, 2, 3)", 2);
	add_kernel(b, "copy", NULL, 1);
	rfl_capture_note(b, "a note, of two\nlines");
	rfl_capture_note(b, "another");
	rfl_capture_refuse(b, "core", "dropped, \"twice\"");
	rfl_capture_refuse(b, "kernels", "dropped, \"twice\"");
	rfl_capture_steps(b, 30, 2);
	rfl_capture_left_out(b, 7);
	assert_int_equal(rfl_capture_finish(b, to, NULL), RFL_OK);
	b = NULL;
	b = rfl_capture_builder_new(&bare);
	assert_int_equal(rfl_capture_finish(b, to, NULL), RFL_OK);
	rfl_capture_identify(to, 1, NULL, "run-1", "2026-11-21T15:00:00Z");
}

static void load_text(const struct rfl_buf *text, struct rfl_captures *to)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_captures_init(to);
	assert_ok(rfl_counters_load("c.csv", text->data, text->len, to, &err), &err);
}

/* --- there and back -------------------------------------------------------------------------- */

static void assert_text(const char *a, const char *b)
{
	if (!a || !b)
		assert_true(!a && !b);
	else
		assert_string_equal(a, b);
}

static void assert_amounts(const struct rfl_amount *a, const struct rfl_amount *b)
{
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		assert_close(a[q].value, b[q].value, 0);
		assert_int_equal(a[q].validity, b[q].validity);
		assert_int_equal(a[q].launches, b[q].launches);
		assert_text(a[q].rule, b[q].rule);
		assert_text(a[q].reason, b[q].reason);
	}
}

static void assert_ranges(const struct rfl_range *a, const struct rfl_range *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_text(a->name, b->name);
	assert_text(a->block, b->block);
	assert_text(a->grid, b->grid);
	assert_int_equal(a->launches, b->launches);
	assert_int_equal(a->nmetrics, b->nmetrics);
	for (size_t i = 0; i < a->nmetrics; i++) {
		const struct rfl_metric *x = &a->metrics[i], *y = &b->metrics[i];

		assert_text(x->name, y->name);
		assert_text(x->unit, y->unit);
		assert_int_equal(x->rollup, y->rollup);
		assert_int_equal(x->validity, y->validity);
		assert_close(x->value, y->value, 0);
		assert_int_equal(x->launches, y->launches);
		assert_int_equal(x->pass, y->pass);
		assert_text(x->reason, y->reason);
	}
	assert_amounts(a->amount, b->amount);
}

static void assert_captures(const struct rfl_capture *a, const struct rfl_capture *b)
{
	assert_text(a->label, b->label);
	assert_text(a->path, b->path);
	assert_text(a->source, b->source);
	assert_text(a->run_id, b->run_id);
	assert_text(a->time_utc, b->time_utc);
	assert_text(a->device, b->device);
	assert_text(a->chip, b->chip);
	assert_text(a->family, b->family);
	assert_int_equal(a->steps, b->steps);
	assert_int_equal(a->passes, b->passes);
	assert_int_equal(a->unused_metrics, b->unused_metrics);
	assert_int_equal(a->rows_left_out, b->rows_left_out);
	assert_int_equal(a->total_kind, b->total_kind);
	assert_int_equal(a->nranges, b->nranges);
	assert_int_equal(a->nnotes, b->nnotes);
	assert_int_equal(a->nrefusals, b->nrefusals);
	for (size_t i = 0; i < a->nranges; i++)
		assert_ranges(&a->ranges[i], &b->ranges[i]);
	for (size_t i = 0; i < a->nnotes; i++)
		assert_text(a->notes[i], b->notes[i]);
	for (size_t i = 0; i < a->nrefusals; i++) {
		assert_text(a->refusals[i].set, b->refusals[i].set);
		assert_text(a->refusals[i].reason, b->refusals[i].reason);
	}
	assert_amounts(a->total, b->total);
}

static void what_is_written_is_read_back(void **state)
{
	struct rfl_captures made, read;
	struct rfl_buf text, again;

	(void)state;
	make(&made);
	rfl_buf_init(&text, 0);
	rfl_buf_init(&again, 0);
	rfl_counters_write(&text, &made, true);
	load_text(&text, &read);
	assert_int_equal(read.n, made.n);
	for (size_t i = 0; i < made.n; i++)
		assert_captures(made.captures[i], read.captures[i]);
	rfl_counters_write(&again, &read, true);
	assert_string_equal(rfl_buf_str(&again), rfl_buf_str(&text));
	rfl_buf_fini(&again);
	rfl_buf_fini(&text);
	rfl_captures_fini(&read);
	rfl_captures_fini(&made);
}

static void files_grow_by_whole_captures(void **state)
{
	struct rfl_captures made, read;
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = tmp_path(*state, "counters.csv");

	make(&made);
	assert_ok(rfl_counters_append(path, &made, &err), &err);
	assert_ok(rfl_counters_append(path, &made, &err), &err);
	rfl_captures_init(&read);
	assert_ok(rfl_counters_load(path, NULL, 0, &read, &err), &err);
	/* twice the same captures are four, not two of which all is there twice */
	assert_int_equal(read.n, 4);
	for (size_t i = 0; i < read.n; i++)
		assert_captures(made.captures[i % 2], read.captures[i]);
	rfl_captures_fini(&read);
	rfl_captures_fini(&made);
}

static void another_layout_is_not_appended_to(void **state)
{
	struct rfl_captures made;
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = write_file(*state, "other.csv", "schema_version,label,run\n1,a,b\n");

	make(&made);
	assert_int_equal(rfl_counters_append(path, &made, &err), RFL_EFORMAT);
	assert_says(&err, "other.csv:1: column 3 is 'run' instead of 'run_id'");
	rfl_captures_fini(&made);
}

/* Columns in another order, and one that a later version has. */
static void columns_are_found_by_name(void **state)
{
	static const char text[] =
		"later,kind,label,schema_version,run_id,timestamp_utc,source,file,device,chip,"
		"family,steps,passes,range_kind,range,block,grid,launches,metric,value,unit,rollup,"
		"counted_launches,pass,validity,rule,reason\n"
		"x,capture,a,1,,,perf,,,,cpu,,,total,process,,,,rows_left_out,0,,,,,,,\n"
		"x,quantity,a,1,,,perf,,,,cpu,,,process,all,,,1,time_s,2.5,s,,1,,ok,duration,\n";
	struct rfl_captures read;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_capture *c;

	(void)state;
	rfl_captures_init(&read);
	assert_ok(rfl_counters_load("c.csv", text, strlen(text), &read, &err), &err);
	assert_int_equal(read.n, 1);
	c = read.captures[0];
	assert_int_equal(c->steps, -1);
	assert_int_equal(c->nranges, 1);
	assert_close(c->ranges[0].amount[RFL_QUANTITY_TIME].value, 2.5, 0);
	assert_string_equal(c->total[RFL_QUANTITY_TIME].reason,
			    "the file has no total of this quantity");
	rfl_captures_fini(&read);
}

/* A total of one of two ranges is a lower bound, whatever the file calls it. */
static void a_part_is_read_as_a_bound(void **state)
{
	static const char text[] =
		"kind,label,schema_version,run_id,timestamp_utc,source,file,device,chip,"
		"family,steps,passes,range_kind,range,block,grid,launches,metric,value,unit,rollup,"
		"counted_launches,pass,validity,rule,reason\n"
		"capture,a,1,,,perf,,,,cpu,,,total,process,,,,rows_left_out,0,,,,,,,\n"
		"quantity,a,1,,,perf,,,,cpu,,,total,process,,,,cycles,5,cycle,,1,,scaled,,why\n"
		"quantity,a,1,,,perf,,,,cpu,,,total,process,,,,time_s,3,s,,2,,estimate,,why\n"
		"quantity,a,1,,,perf,,,,cpu,,,process,./a,,,1,time_s,1,s,,1,,ok,,\n"
		"quantity,a,1,,,perf,,,,cpu,,,process,./b,,,1,time_s,2,s,,1,,ok,,\n";
	struct rfl_captures read;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_amount *total;

	(void)state;
	rfl_captures_init(&read);
	assert_ok(rfl_counters_load("c.csv", text, strlen(text), &read, &err), &err);
	total = read.captures[0]->total;
	assert_int_equal(total[RFL_QUANTITY_CYCLES].validity, RFL_VALID_PARTIAL);
	assert_string_equal(total[RFL_QUANTITY_CYCLES].reason, "why");
	assert_int_equal(total[RFL_QUANTITY_TIME].validity, RFL_VALID_ESTIMATE);
	rfl_captures_fini(&read);
}

/* --- refusals -------------------------------------------------------------------------------- */

#define HEADER                                                                                   \
	"schema_version,label,run_id,timestamp_utc,source,file,device,chip,family,steps,passes," \
	"range_kind,range,block,grid,launches,kind,metric,value,unit,rollup,counted_launches,"   \
	"pass,validity,rule,reason\n"
#define FIRST "1,a,,,ncu,,,,any,,,total,kernel,,,,capture,rows_left_out,0,,,,,,,\n"
#define ID    "1,a,,,ncu,,,,any,,,"

static void refuses_with_line_and_column(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "a,b\n1,2\n",
		  "c.csv: not a counters.csv file: the header has no column 'range_kind'; import "
		  "files of other profilers with 'roofline counters import'" },
		{ "range_kind,schema_version,label\n1,1,2\n",
		  "c.csv:1: the header has no column 'run_id'" },
		{ HEADER "2,a,,,ncu,,,,any,,,total,kernel,,,,capture,rows_left_out,0,,,,,,,\n",
		  "c.csv:2: column 'schema_version': is not supported; this program reads version "
		  "1" },
		{ HEADER ID "kernel,k,,,1,metric,x,1,,sum,1,,ok,,\n",
		  "c.csv:2: column 'kind': no row of kind 'capture' precedes this row" },
		{ HEADER FIRST ID "kernel,k,,,1,rumour,x,1,,sum,1,,ok,,\n",
		  "c.csv:3: column 'kind': unknown value 'rumour'" },
		{ HEADER FIRST ID "core,k,,,1,metric,x,1,,sum,1,,ok,,\n",
		  "c.csv:3: column 'range_kind': unknown value 'core'" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,x,1,,median,1,,ok,,\n",
		  "c.csv:3: column 'rollup': unknown value 'median'" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,x,1,,sum,1,,fine,,\n",
		  "c.csv:3: column 'validity': unknown value 'fine'" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,,1,,sum,1,,ok,,\n",
		  "c.csv:3: column 'metric': the name of the metric is missing" },
		{ HEADER FIRST ID ",,,,,refusal,,,,,,,unavailable,,why\n",
		  "c.csv:3: column 'metric': the set of the refusal is missing" },
		{ HEADER FIRST ID ",,,,,refusal,core,,,,,,unavailable,,\n",
		  "c.csv:3: column 'reason': the reason of the refusal is missing" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,x,,,sum,1,,ok,,\n",
		  "c.csv:3: column 'value': is empty, but 'validity' is not 'unavailable'" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,x,3,,sum,1,,unavailable,,\n",
		  "c.csv:3: column 'value': has a value, but 'validity' is 'unavailable'" },
		{ HEADER FIRST ID "kernel,k,,,1,quantity,flops.fp128,3,,,1,,ok,,\n",
		  "c.csv:3: column 'metric': unknown value 'flops.fp128'" },
		{ HEADER FIRST ID "kernel,k,,,1,quantity,time_s,3,s,,1,,ok,,\n" ID
				  "kernel,k,,,1,quantity,time_s,3,s,,1,,ok,,\n",
		  "c.csv:4: column 'metric': occurs twice in this range" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,x,3,byte,sum,1,,ok,,\n" ID
				  "kernel,k,,,1,metric,x,4,%,sum,1,,ok,,\n" ID
				  "kernel,j,,,1,metric,x,3,byte,sum,1,,ok,,\n" ID
				  "kernel,k,,,1,metric,x,3,byte,sum,1,,ok,,\n",
		  "c.csv:6: column 'metric': occurs twice in this range" },
		{ HEADER FIRST ID "kernel,k,,,2,metric,x,3,,sum,1,,ok,,\n" ID
				  "kernel,k,,,3,metric,y,3,,sum,1,,ok,,\n",
		  "c.csv:4: column 'launches': differs from an earlier row of this range" },
		{ HEADER FIRST ID "kernel,k,,,2,metric,x,3,,sum,3,,ok,,\n",
		  "c.csv:3: column 'counted_launches': exceeds the launches of this range" },
		{ HEADER FIRST ID "kernel,k,,,9223372036854775807,metric,x,3,,sum,3,,ok,,\n",
		  "c.csv:3: column 'launches': a count cannot exceed 1,000,000,000,000" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,x,3,,sum,1,4294967296,ok,,\n",
		  "c.csv:3: column 'pass': the pass number is too large" },
		{ HEADER FIRST ID "kernel,k,,,1,quantity,time_s,-3,s,,1,,ok,,\n",
		  "c.csv:3: column 'value': a quantity cannot be negative" },
		{ HEADER FIRST ID "kernel,k,,,-1,metric,x,3,,sum,1,,ok,,\n",
		  "c.csv:3: column 'launches': '-1' is negative" },
		{ HEADER FIRST ID "kernel,k,,,1,metric,x,3,,sum,1,-2,ok,,\n",
		  "c.csv:3: column 'pass': '-2' is negative" },
		{ HEADER FIRST ID "note,,,,,note,,,,,,,,,\n",
		  "c.csv:3: column 'reason': the text of the note is missing" },
		{ HEADER "1,a,,,ncu,,,,any,,,total,kernel,,,,capture,rows_left_out,-1,,,,,,,\n",
		  "c.csv:2: column 'value': a count cannot be negative" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_captures read;
		struct rfl_err err = RFL_ERR_INIT;

		rfl_captures_init(&read);
		assert_int_equal(rfl_counters_load("c.csv", cases[i].text, strlen(cases[i].text),
						   &read, &err),
				 RFL_EFORMAT);
		assert_string_equal(err.msg, cases[i].message);
		assert_int_equal(read.n, 0);
		rfl_captures_fini(&read);
	}
}

/* What was in the list before a file that cannot be read stays as it was. */
static void a_bad_file_adds_nothing(void **state)
{
	static const char good[] = HEADER FIRST;
	static const char bad[] = HEADER FIRST FIRST ID "kernel,k,,,1,metric,x,y,,sum,1,,ok,,\n";
	struct rfl_captures read;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	rfl_captures_init(&read);
	assert_ok(rfl_counters_load("good.csv", good, strlen(good), &read, &err), &err);
	assert_int_equal(rfl_counters_load("bad.csv", bad, strlen(bad), &read, &err), RFL_EFORMAT);
	assert_says(&err, "bad.csv:4: column 'value'");
	assert_int_equal(read.n, 1);
	rfl_captures_fini(&read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test_setup_teardown(files_grow_by_whole_captures, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(another_layout_is_not_appended_to, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(columns_are_found_by_name),
		cmocka_unit_test(a_part_is_read_as_a_bound),
		cmocka_unit_test(refuses_with_line_and_column),
		cmocka_unit_test(a_bad_file_adds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
