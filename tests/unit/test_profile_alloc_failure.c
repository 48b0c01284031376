/* Every allocation of formulas, captures and counters.csv fails once. */
#include "tests/unit/alloc_failure.h"
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "base/buf.h"
#include "report/captures.h"
#include "profile/capture.h"
#include "profile/import/importer.h"
#include "profile/formula.h"

static enum rfl_rc read_formulas(struct rfl_err *err)
{
	struct rfl_formulas *f = NULL;
	enum rfl_rc rc = rfl_formulas_new("GH100", &f, err);

	assert_int_equal(rc == RFL_OK, f != NULL);
	rfl_formulas_free(f);
	return rc;
}

static enum rfl_rc add_launch(struct rfl_capture_builder *b, const char *name, struct rfl_err *err)
{
	static const char *const metrics[] = {
		"dram__bytes.sum",
		"no one's",
		"Duration",
		"smsp__inst_executed_pipe_tensor.sum",
		"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
		"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
		"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum"
	};
	static const double values[] = { 3, 7, 0.5, 1, 32, 0, 0 };
	enum rfl_rc rc = rfl_capture_begin(b, RFL_RANGE_KERNEL, name, "(1, 1, 1)", NULL, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics) && rc == RFL_OK; i++) {
		int id = rfl_capture_metric_id(b, metrics[i], strlen(metrics[i]), "");

		if (id == -2)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		else
			(void)rfl_capture_metric(b, id, values[i], RFL_VALID_ESTIMATE, -1,
						 "rounded");
	}
	return rc;
}

static enum rfl_rc build(struct rfl_captures *to, struct rfl_err *err)
{
	const struct rfl_capture_spec spec = {
		.source = "ncu", .label = "x", .path = "f", .all_metrics = true
	};
	struct rfl_capture_builder *b = NULL;
	enum rfl_rc rc = rfl_capture_builder_new(&spec, &b, err);

	assert_int_equal(rc == RFL_OK, b != NULL);
	if (rc == RFL_OK)
		rc = rfl_capture_chip(b, "GA100", "a device", err);
	for (int i = 0; i < 40 && rc == RFL_OK; i++)
		rc = add_launch(b, i % 20 ? "many" : "few", err);
	if (rc == RFL_OK) {
		rfl_capture_note(b, "a note of %d", 1);
		rc = rfl_capture_finish(b, to, err);
	}
	rfl_capture_builder_free(b);
	return rc;
}

static enum rfl_rc build_capture(struct rfl_err *err)
{
	struct rfl_captures captures;
	enum rfl_rc rc;

	rfl_captures_init(&captures);
	rc = build(&captures, err);
	assert_int_equal(captures.n, rc == RFL_OK);
	rfl_captures_fini(&captures);
	return rc;
}

/* What is rendered and read is made before the first allocation is watched. */
static struct rfl_captures sample;
static struct rfl_buf sample_csv;

static enum rfl_rc render(enum rfl_format format, bool explain, struct rfl_err *err)
{
	const struct rfl_capture_view view = { .format = format, .explain = explain };
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = rfl_captures_render(&sample, &view, &out, err);
	if (rc == RFL_OK)
		rc = rfl_buf_check(&out, "captures", err);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc render_table(struct rfl_err *err)
{
	return render(RFL_FORMAT_TABLE, true, err);
}

static enum rfl_rc render_json(struct rfl_err *err)
{
	return render(RFL_FORMAT_JSON, false, err);
}

static enum rfl_rc render_csv(struct rfl_err *err)
{
	return render(RFL_FORMAT_CSV, false, err);
}

static enum rfl_rc read_counters(struct rfl_err *err)
{
	struct rfl_captures read;
	enum rfl_rc rc;

	rfl_captures_init(&read);
	rc = rfl_counters_load("c.csv", sample_csv.data, sample_csv.len, &read, err);
	assert_int_equal(read.n, rc == RFL_OK ? 1 : 0);
	if (rc == RFL_OK)
		rc = rfl_capture_identify(&read, 0, "label", "run", "now", err);
	rfl_captures_fini(&read);
	return rc;
}

static const struct alloc_operation operations[] = {
	{ "read formulas", read_formulas, 20 }, { "build a capture", build_capture, 40 },
	{ "render a table", render_table, 10 }, { "render JSON", render_json, 4 },
	{ "render CSV", render_csv, 4 },        { "read counters.csv", read_counters, 20 },
};

static void each_allocation_fails_once(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	rfl_captures_init(&sample);
	assert_ok(build(&sample, &err), &err);
	rfl_buf_init(&sample_csv, 0);
	rfl_counters_write(&sample_csv, &sample, true);
	for (size_t i = 0; i < RFL_ARRAY_LEN(operations); i++)
		assert_each_allocation_fails(&operations[i]);
	rfl_buf_fini(&sample_csv);
	rfl_captures_fini(&sample);
}

/* --- importers of summaries ------------------------------------------------------------------ */

static const char *import_text;

static enum rfl_rc import_one(struct rfl_err *err)
{
	static const struct rfl_import_options options;
	struct rfl_captures to;
	enum rfl_rc rc;

	rfl_captures_init(&to);
	rc = rfl_import_text(import_text, strlen(import_text), "file", &options, &to, err);
	assert_int_equal(rc == RFL_OK, to.n == 1);
	rfl_captures_fini(&to);
	return rc;
}

#define ROCPROF_PASS \
	"\"Dispatch_Id\",\"Process_Id\",\"Kernel_Name\",\"Counter_Name\",\"Counter_Value\"\n"

static void each_allocation_of_an_import_fails_once(void **state)
{
	static const char *const texts[] = {
		"\"Device\",\"Kernel\",\"Invocations\",\"Metric Name\",\"Metric "
		"Description\",\"Min\","
		"\"Max\",\"Avg\"\n\"P (0)\",\"a\",3,\"flop_count_sp\",\"\",10,12,11\n"
		"\"P (0)\",\"b\",1,\"dram_read_transactions\",\"\",1,1,1\n",
		"\"Device\",\"Context\",\"Stream\",\"Kernel\",\"flop_count_sp\"\n"
		"\"P (0)\",\"1\",\"7\",\"k [307]\",100\n",
		"Time (%),Total Time (ns),Instances,Avg (ns),Name\n60.0,600,2,300.0,k\n",
		"1000,,cpu_core/cycles/,99,69.15,,\n10,,cpu_atom/cycles/,1,0.85,,\n"
		"CPU0,7,,instructions,1,40.00,,\nCPU1,7,,instructions,1,40.00,,\n",
		"{\"counter-value\" : \"7.0\", \"unit\" : \"\", \"event\" : \"cycles\", "
		"\"pcnt-running\" : 85.00}\n",
		" Performance counter stats for './a':\n\n   1.101,01 msec task-clock\n",
		"real 2.50\nuser 1.00\nsys 0.25\n",
		"TABLE,Group 1 Raw,MEM,1\nEvent,Counter,HWThread 0\nCAS_COUNT_RD,MBOX0C0,2\n",
		"Index,KernelName,gpu-id,TCC_EA_WRREQ[0],TCC_EA_WRREQ_64B_sum\n0,k,0,1,1\n",
		ROCPROF_PASS "1,7,\"k\",\"TCC_EA_WRREQ_sum\",2\n",
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const struct alloc_operation op = { "an import", import_one, 10 };

		import_text = texts[i];
		assert_each_allocation_fails(&op);
	}
}

static enum rfl_rc join_two(struct rfl_err *err)
{
	static const struct rfl_import_options options = { .label = "x" };
	static const char first[] = ROCPROF_PASS "1,7,\"k\",\"TCC_EA_WRREQ_sum\",2\n";
	static const char second[] = ROCPROF_PASS "1,8,\"k\",\"TCC_EA_WRREQ_64B_sum\",2\n";
	struct rfl_captures to;
	enum rfl_rc rc;

	rfl_captures_init(&to);
	rc = rfl_import_text(first, strlen(first), "a", &options, &to, err);
	if (rc == RFL_OK)
		rc = rfl_import_text(second, strlen(second), "b", &options, &to, err);
	if (rc == RFL_OK)
		rc = rfl_import_join_passes(&to, &options, err);
	assert_true(rc != RFL_OK || to.n == 1);
	rfl_captures_fini(&to);
	return rc;
}

static void each_allocation_of_a_join_fails_once(void **state)
{
	const struct alloc_operation op = { "a join of passes", join_two, 10 };

	(void)state;
	assert_each_allocation_fails(&op);
}

/* A launch like one before takes no memory. */
static struct rfl_capture_builder *running;

static enum rfl_rc one_more_launch(struct rfl_err *err)
{
	return add_launch(running, "many", err);
}

static void a_launch_like_one_before_takes_no_memory(void **state)
{
	const struct rfl_capture_spec spec = { .source = "ncu", .all_metrics = true };
	const struct alloc_operation op = { "one more launch", one_more_launch, 0 };
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_capture_builder_new(&spec, &running, &err), &err);
	for (int i = 0; i < 2; i++) /* the second ends the first */
		assert_ok(add_launch(running, "many", &err), &err);
	assert_no_allocation(&op);
	rfl_capture_builder_free(running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails_once),
		cmocka_unit_test(each_allocation_of_an_import_fails_once),
		cmocka_unit_test(each_allocation_of_a_join_fails_once),
		cmocka_unit_test(a_launch_like_one_before_takes_no_memory),
	};

	watch_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
