/*
 * Counted steps: what a source is given to run, what becomes of it in the files, and that nothing
 * of it touches the run. The engine is the fake one (tests/engines), the source is made here. This
 * program is its own child: "run-child" measures with that source.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/proc.h"
#include "complexity/zoo.h"
#include "profile/counters_csv.h"
#include "runner/counted.h"
#include "runner/fill.h"
#include "runner/run.h"

static char *self;
static const char *const plugin_dirs[] = { RFL_TEST_BUILD "/tests/engines", NULL };

/* ---- a source that is told what to do by RFL_TEST_SOURCE ---- */

#define PASSES 3

/* Written down: what the source and the engine were asked, in order. */
static struct {
	char text[1 << 16];
	size_t len;
} asked;

static void note(const char *what)
{
	int n = snprintf(asked.text + asked.len, sizeof(asked.text) - asked.len, "%s ", what);

	assert_in_range(n, 1, sizeof(asked.text) - asked.len - 1);
	asked.len += (size_t)n;
}

/* Every range of every pass reads 1000 bytes, writes 500 and does 10 + 20 + 2 x 35 FLOPs. */
static const struct {
	const char *name, *unit;
	double value;
} metrics[] = {
	{ "dram__bytes_read.sum", "byte", 1000 },
	{ "dram__bytes_write.sum", "byte", 500 },
	{ "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "inst", 10 },
	{ "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "inst", 20 },
	{ "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", 35 },
	{ "gpu__time_duration.sum", "s", 0.5 },
	{ "sm__cycles_elapsed.max", "cycle", 800 },
	{ "sm__inst_executed.sum", "inst", 600 },
};

/* Left out of the second range, the optimizer's or the layer's: "no-flops" of all. */
static bool is_absent(const char *metric, size_t range)
{
	const char *how = getenv("RFL_TEST_SOURCE");

	if (!how)
		return false;
	if (strcmp(how, "no-flops") == 0)
		return strstr(metric, "_sass_") != NULL;
	return strcmp(how, "few-instructions") == 0 && range == 1 &&
	       strcmp(metric, "sm__inst_executed.sum") == 0;
}

struct fake_ranges {
	struct rfl_ranges ranges;
	struct rfl_capture_builder
		*builder; /* of the first pass; NULL: count again, keep nothing */
	bool open;
	size_t n; /* ranges that ended */
};

static enum rfl_rc end_range(struct rfl_ranges *r, struct rfl_err *err)
{
	struct fake_ranges *f = (struct fake_ranges *)(void *)r;

	if (!f->open || !f->builder)
		return RFL_OK;
	f->open = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics); i++) {
		const bool absent = is_absent(metrics[i].name, f->n);
		int id = rfl_capture_metric_id(f->builder, metrics[i].name, strlen(metrics[i].name),
					       metrics[i].unit);

		assert_true(id >= 0);
		(void)rfl_capture_metric(f->builder, id, absent ? (double)NAN : metrics[i].value,
					 absent ? RFL_VALID_UNAVAILABLE : RFL_VALID,
					 (int)i % PASSES,
					 absent ? "the driver gave no value" : NULL);
	}
	f->n++;
	return rfl_capture_end(f->builder, err);
}

static enum rfl_rc begin_range(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
			       struct rfl_err *err)
{
	struct fake_ranges *f = (struct fake_ranges *)(void *)r;
	char text[512];
	enum rfl_rc rc = end_range(r, err);

	(void)snprintf(text, sizeof(text), "%s:%s", rfl_range_kind_names[kind], name);
	note(text);
	f->open = true;
	if (rc || !f->builder)
		return rc;
	return rfl_capture_begin(f->builder, kind, name, NULL, NULL, err);
}

static bool is_told(const char *what)
{
	const char *how = getenv("RFL_TEST_SOURCE");

	return how && strcmp(how, what) == 0;
}

/* 1500 bytes in half a second. */
static enum rfl_rc rest(struct fake_ranges *f, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_capture_begin(f->builder, RFL_RANGE_IDLE, "idle", NULL, NULL, err);

	f->open = true;
	return rc ? rc : end_range(&f->ranges, err);
}

/* More ranges than fit one event, with names that need care on the way. */
static enum rfl_rc many_ranges(struct fake_ranges *f, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < 700 && rc == RFL_OK; i++) {
		char name[128];

		(void)snprintf(name, sizeof(name),
			       "kernel<%d, \"\xc3\xa4\xe2\x82\xac\">\n\xf0\x9f\x8c\x8d%s", i,
			       is_told("latin") ? "\xe4" : "");
		rc = rfl_capture_begin(f->builder, RFL_RANGE_KERNEL, name, NULL, NULL, err);
		f->open = true;
		if (rc == RFL_OK)
			rc = end_range(&f->ranges, err);
	}
	return rc;
}

static enum rfl_rc run_passes(const struct rfl_workload *w, struct fake_ranges *f,
			      struct rfl_err *err)
{
	struct rfl_capture_builder *builder = f->builder;
	enum rfl_rc rc = w->save ? w->save(w->ctx, err) : RFL_OK;

	for (int pass = 0; pass < PASSES && rc == RFL_OK; pass++) {
		if (pass > 0 && w->restore)
			rc = w->restore(w->ctx, err);
		f->builder = pass == 0 ? builder : NULL;
		if (rc == RFL_OK)
			rc = w->run(w->ctx, &f->ranges, err);
	}
	f->builder = builder;
	return rc;
}

static enum rfl_rc measure(const struct rfl_source_request *request, const struct rfl_workload *w,
			   struct rfl_captures *to, struct rfl_err *err)
{
	const struct rfl_capture_spec spec = {
		.source = "fake",
		.label = request->label,
		.formulas = "any",
	};
	struct fake_ranges f = { .ranges = { begin_range, end_range } };
	enum rfl_rc rc;

	if (is_told("unavailable"))
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"fake source: the driver refuses counters: ask root to allow them");
	rc = rfl_capture_builder_new(&spec, &f.builder, err);
	if (rc == RFL_OK)
		rc = run_passes(w, &f, err);
	if (rc == RFL_OK && is_told("idle"))
		rc = rest(&f, err);
	if (rc == RFL_OK && (is_told("many") || is_told("latin")))
		rc = many_ranges(&f, err);
	if (is_told("segv")) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer must not turn it into an exit */
		raise(SIGSEGV);
	}
	if (is_told("exit"))
		_exit(7);
	rfl_capture_steps(f.builder, 1, PASSES);
	if (rc == RFL_OK)
		rc = rfl_capture_finish(f.builder, to, err);
	rfl_capture_builder_free(f.builder);
	return rc;
}

static const struct rfl_source_ops source = {
	.name = "fake",
	.summary = "of this test",
	.device = "cpu",
	.measure = measure,
};

static enum rfl_rc source_for(const char *backend, const struct rfl_source_ops **ret,
			      struct rfl_err *err)
{
	if (is_told("none"))
		return rfl_fail(err, RFL_ENOTFOUND, 0, "no source of counters serves '%s'",
				backend);
	*ret = &source;
	return RFL_OK;
}

/* ---- an engine that is listened to ---- */

static struct rfl_engine_ops real, spied;

static enum rfl_rc spy_sync(struct rfl_engine *e, struct rfl_err *err)
{
	note("sync");
	return real.sync(e, err);
}

static enum rfl_rc spy_forward(struct rfl_engine *e, const struct rfl_batch *b, struct rfl_err *err)
{
	note("forward");
	return real.forward(e, b, err);
}

static enum rfl_rc spy_backward(struct rfl_engine *e, struct rfl_err *err)
{
	note("backward");
	return real.backward(e, err);
}

static enum rfl_rc spy_step(struct rfl_engine *e, struct rfl_err *err)
{
	note("update");
	return real.step(e, err);
}

static enum rfl_rc spy_snapshot(struct rfl_engine *e, struct rfl_err *err)
{
	note("snapshot");
	return real.snapshot(e, err);
}

static enum rfl_rc spy_restore(struct rfl_engine *e, struct rfl_err *err)
{
	note("restore");
	return real.restore(e, err);
}

static struct {
	struct rfl_net *net;
	struct rfl_engine_list *list;
	struct rfl_engine *engine;
	struct rfl_data *data;
} rig;

static enum rfl_rc spy_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err)
{
	(void)data;
	note("next");
	return rfl_data_next(rig.data, ret, err);
}

static void spy_rest(struct rfl_data *data)
{
	(void)data;
	note("rest");
}

static const struct rfl_data_ops spied_data_ops = { .next = spy_next, .rest = spy_rest };
static struct rfl_data spied_data = { &spied_data_ops };

static int rig_up(void **state)
{
	const struct rfl_zoo_options sizes = { .image_size = 32 };
	const struct rfl_engine_config config = { .threads = 1, .max_batch = 2 };
	const struct rfl_engine_ops *ops;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	asked.len = 0;
	asked.text[0] = '\0';
	assert_ok(rfl_zoo_build("resnet18", &sizes, &rig.net, &err), &err);
	assert_ok(rfl_engine_list_new(plugin_dirs, &rig.list, &err), &err);
	assert_ok(rfl_engine_load(rig.list, "fake", RFL_DEVICE_CPU, &ops, &err), &err);
	real = spied = *ops;
	spied.sync = spy_sync;
	spied.forward = spy_forward;
	spied.backward = spy_backward;
	spied.step = spy_step;
	spied.snapshot = spy_snapshot;
	spied.restore = spy_restore;
	assert_ok(ops->open(rig.net, &config, &rig.engine, &err), &err);
	assert_ok(rfl_data_synthetic(rig.net, 2, RFL_LAYOUT_NCHW, 1, &rig.data, &err), &err);
	return 0;
}

static int rig_down(void **state)
{
	(void)state;
	rfl_data_free(rig.data);
	real.close(rig.engine);
	rfl_engine_list_free(rig.list);
	rfl_net_free(rig.net);
	return 0;
}

static enum rfl_rc count(enum rfl_detail detail, enum rfl_run_mode mode, struct rfl_captures *to,
			 struct rfl_err *err)
{
	const struct rfl_counted_config config = {
		.detail = detail,
		.mode = mode,
		.request = { .precision = "fp32", .label = "x" },
	};
	const struct rfl_counted_parts parts = { &spied, rig.engine, rig.net, &spied_data };

	asked.len = 0;
	asked.text[0] = '\0';
	return rfl_counted_run(&source, &config, &parts, to, err);
}

/* ---- what a source is given ---- */

#define STEP_PASS  "sync step:step forward backward update sync "
#define PHASE_PASS "sync phase:fwd forward sync phase:bwd backward sync phase:opt update sync "

/* One batch serves every pass. What was started before a boundary is finished before it; between
 * passes everything goes back. */
static void ranges_follow_the_detail(void **state)
{
	static const struct {
		enum rfl_detail detail;
		enum rfl_run_mode mode;
		const char *expected;
	} cases[] = {
		{ RFL_DETAIL_STEP, RFL_RUN_TRAIN,
		  "next rest snapshot " STEP_PASS "restore " STEP_PASS "restore " STEP_PASS },
		{ RFL_DETAIL_PHASE, RFL_RUN_TRAIN,
		  "next rest snapshot " PHASE_PASS "restore " PHASE_PASS "restore " PHASE_PASS },
		{ RFL_DETAIL_PHASE, RFL_RUN_FWD_BWD,
		  "next rest snapshot sync phase:fwd forward sync phase:bwd backward sync "
		  "restore sync phase:fwd forward sync phase:bwd backward sync "
		  "restore sync phase:fwd forward sync phase:bwd backward sync " },
		{ RFL_DETAIL_PHASE, RFL_RUN_FWD,
		  "next rest sync phase:fwd forward sync sync phase:fwd forward sync "
		  "sync phase:fwd forward sync " },
	};
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_captures captures;

		rfl_captures_init(&captures);
		assert_ok(count(cases[i].detail, cases[i].mode, &captures, &err), &err);
		assert_string_equal(asked.text, cases[i].expected);
		assert_int_equal(captures.n, 1);
		rfl_captures_fini(&captures);
	}
}

static const struct rfl_range *range_of(const struct rfl_capture *c, const char *name)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (strcmp(c->ranges[i].name, name) == 0)
			return &c->ranges[i];
	fail_msg("no range %s", name);
	return NULL;
}

static size_t times(const char *word)
{
	size_t n = 0;

	for (const char *p = asked.text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

static void every_layer_is_a_range(void **state)
{
	const size_t nodes = (size_t)rig.net->nnodes;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	rfl_captures_init(&captures);
	assert_ok(count(RFL_DETAIL_LAYER, RFL_RUN_TRAIN, &captures, &err), &err);
	c = captures.captures[0];
	assert_int_equal(c->steps, 1);
	assert_int_equal(c->passes, PASSES);
	assert_int_equal(range_of(c, "fwd/conv1")->kind, RFL_RANGE_LAYER);
	assert_int_equal(range_of(c, "bwd/layer4.1.conv2")->launches, 1);
	assert_int_equal(range_of(c, "fwd/layer1.0.relu")->launches, 2); /* it runs twice */
	assert_close(range_of(c, "opt")->amount[RFL_QUANTITY_FLOPS].value, 100, 0);
	/* forward: every node and the loss; backward: all but the input; the optimizer */
	assert_int_equal(times("layer:fwd/"), PASSES * (nodes + 1));
	assert_int_equal(times("layer:bwd/"), PASSES * nodes);
	assert_int_equal(times("sync layer:"), PASSES * (2 * nodes + 2));
	assert_close(c->total[RFL_QUANTITY_DRAM].value, 1500.0 * (double)(2 * nodes + 2), 1e-12);
	rfl_captures_fini(&captures);

	/* and afterwards nobody is told any more */
	assert_ok(count(RFL_DETAIL_STEP, RFL_RUN_FWD, &captures, &err), &err);
	assert_int_equal(times("layer:"), 0);
	rfl_captures_fini(&captures);
}

static void what_an_engine_lacks_is_named(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_captures captures;

	(void)state;
	rfl_captures_init(&captures);
	spied.snapshot = NULL;
	assert_int_equal(count(RFL_DETAIL_STEP, RFL_RUN_TRAIN, &captures, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "'fake' cannot put a step back");
	rfl_err_clear(&err);
	assert_ok(count(RFL_DETAIL_STEP, RFL_RUN_FWD, &captures, &err), &err); /* nothing to */
	spied.snapshot = spy_snapshot;
	spied.mark = NULL;
	assert_int_equal(count(RFL_DETAIL_LAYER, RFL_RUN_TRAIN, &captures, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "'fake' cannot tell layers apart");
	assert_string_equal(asked.text, ""); /* before anything ran */
	rfl_captures_fini(&captures);
}

/* A source that is not built in says how to get it. */
static void a_missing_source_is_named(void **state)
{
	const struct rfl_source_ops missing = { .name = "gone", .missing = "build it in" };
	const struct rfl_counted_config config = { .detail = RFL_DETAIL_STEP };
	const struct rfl_counted_parts parts = { &spied, rig.engine, rig.net, &spied_data };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_captures captures;

	(void)state;
	rfl_captures_init(&captures);
	assert_int_equal(rfl_counted_run(&missing, &config, &parts, &captures, &err),
			 RFL_EUNAVAILABLE);
	assert_says(&err, "source 'gone': build it in");
	rfl_captures_fini(&captures);
}

/* ---- whole runs ---- */

static struct rfl_run_config small_config(void)
{
	return (struct rfl_run_config){
		.arch = "resnet18",
		.image_size = 32,
		.batch = 2,
		.device = RFL_DEVICE_CPU,
		.engine = "fake",
		.plugin_dirs = plugin_dirs,
		.sgd = { .lr = 0.01, .momentum = 0.9 },
		.threads = 1,
		.ahead = 2,
		.warmup = 1,
		.iters = 6,
		.counters = RFL_DETAIL_PHASE,
	};
}

/* The first counted step is call 7 (from 0) of each phase: 1 warm-up, 6 in the window. */
static void run_told(const char *dir, const char *engine, const char *how, bool in_process,
		     struct rfl_run_result *ret)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = small_config();
	const struct rfl_run_options options = {
		.env = "lab",
		.log_dir = dir,
		.command_line = "roofline run",
		.child_argv = child,
		.in_process = in_process,
		.source_for = source_for,
		.timeout_s = engine && strstr(engine, "hang") ? 1.0 : 0,
	};
	struct rfl_err err = RFL_ERR_INIT;

	setenv("RFL_FAKE", engine ? engine : "", 1);
	setenv("RFL_TEST_SOURCE", how ? how : "", 1);
	assert_ok(rfl_run(&config, &options, ret, &err), &err);
	unsetenv("RFL_FAKE");
	unsetenv("RFL_TEST_SOURCE");
}

static void assert_file(const char *path, const char *expected)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(path, &text, &err), &err);
	assert_string_equal(rfl_buf_str(&text), expected);
	rfl_buf_fini(&text);
}

static struct rfl_ledger *load(const char *dir)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l = NULL;
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/metrics.csv", dir);
	assert_ok(rfl_ledger_load(path, &l, &err), &err);
	return l;
}

/* Three passes over one step: 3 more forwards, of which one update remains. */
static void a_counted_run_is_recorded(void **state)
{
	for (int in_process = 0; in_process < 2; in_process++) {
		const char *dir = tmp_path(*state, in_process ? "here" : "child");
		const char *log = tmp_path(*state, "calls");
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_run_result result;
		struct rfl_captures captures;
		struct rfl_ledger *l;
		char expected[4096];

		setenv("RFL_FAKE_LOG", log, 1);
		run_told(dir, NULL, NULL, in_process, &result);
		unsetenv("RFL_FAKE_LOG");
		assert_file(log, "forward=10 backward=10 step=10 snapshot=1 restore=2 updates=8\n");
		l = load(dir);
		assert_int_equal(l->nrows, 1);
		assert_string_equal(l->rows[0].status, "ok");
		assert_string_equal(l->rows[0].counters_status, "ok");
		assert_string_equal(l->rows[0].counters_source, "fake");
		assert_int_equal(l->rows[0].counter_passes, PASSES);
		assert_close(l->rows[0].counted_flops_per_step, 300, 0);
		assert_close(l->rows[0].counted_dram_bytes_per_step, 4500, 0);
		assert_close(l->rows[0].ipc, 0.75, 0);
		assert_close(l->rows[0].effective_clock_hz, 1600, 0);
		assert_true(isnan(l->rows[0].idle_dram_bytes_per_s));
		assert_true(isnan(l->rows[0].selftest_flops_ratio));

		(void)snprintf(expected, sizeof(expected), "%s/counters.csv", dir);
		assert_string_equal(result.counters_file, expected);
		rfl_captures_init(&captures);
		assert_ok(rfl_counters_load(expected, NULL, 0, &captures, &err), &err);
		assert_int_equal(captures.n, 1);
		assert_string_equal(captures.captures[0]->label, l->rows[0].label);
		assert_string_equal(captures.captures[0]->run_id, l->rows[0].run_id);
		assert_int_equal(captures.captures[0]->steps, 1);
		assert_close(range_of(captures.captures[0], "bwd")->amount[RFL_QUANTITY_DRAM].value,
			     1500, 0);
		rfl_captures_fini(&captures);
		rfl_ledger_free(l);
		rfl_run_result_fini(&result);
	}
}

/* Whatever becomes of the counted steps, the run is ok and says what became of them. */
static void every_end_of_counting_has_its_status(void **state)
{
	static const struct {
		const char *engine, *source, *status, *counters;
	} cases[] = {
		{ "segv:forward:7", NULL, "ok", "crash: signal 11 (Segmentation fault)" },
		{ "kill:backward:9", NULL, "ok", "crash: signal 9 (Killed)" },
		{ NULL, "segv", "ok", "crash: signal 11 (Segmentation fault)" },
		{ "exit:step:8", NULL, "ok", "crash: exit code 9, before it was done" },
		{ NULL, "exit", "ok", "crash: exit code 7, before it was done" },
		{ "fail:backward:7", NULL, "ok", "failed: fake: told to fail at backward 7" },
		{ "edevmem:snapshot", NULL, "ok", "failed: fake: no memory left for 7 GiB" },
		{ "fail:restore:1", NULL, "ok", "failed: fake: told to fail at restore 1" },
		{ "hang:forward:8", NULL, "ok", "timeout: not done after " },
		{ NULL, "unavailable", "ok",
		  "unavailable: fake source: the driver refuses counters: ask root to allow them" },
		{ NULL, "none", "ok", "unavailable: no source of counters serves 'cpu'" },
		{ NULL, "no-flops", "ok", "partial: flops.total: " },
		{ "segv:close", NULL, "ok", "ok" },
		{ "nan:forward:6", NULL, "nan", "ok" },
		{ "kill:forward:3", NULL, "crash",
		  "unavailable: the run ended before its counted steps" },
	};
	const char *dir = tmp_path(*state, "logs");

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_run_result r;

		run_told(dir, cases[i].engine, cases[i].source, false, &r);
		assert_string_equal(r.row.status, cases[i].status);
		if (strncmp(r.row.counters_status, cases[i].counters, strlen(cases[i].counters)))
			fail_msg("%zu: '%s'", i, r.row.counters_status);
		assert_int_equal(isnan(r.row.wall_s), strcmp(cases[i].status, "crash") == 0);
		/* half a capture is none */
		assert_int_equal(r.row.counters_source != NULL,
				 strcmp(r.row.counters_status, "ok") == 0 ||
					 strncmp(r.row.counters_status, "partial", 7) == 0);
		assert_int_equal(r.counters_file[0] != '\0', r.row.counters_source != NULL);
		rfl_run_result_fini(&r);
	}
}

static void large_tables_arrive_whole(void **state)
{
	const char *dir = tmp_path(*state, "logs"), *path = tmp_path(*state, "logs/counters.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	struct rfl_captures captures;
	char name[128];

	run_told(dir, NULL, "many", false, &result);
	assert_string_equal(result.row.counters_status, "ok");
	assert_true(rfl_file_size(path) > 8 * (32 << 10)); /* several events */
	rfl_captures_init(&captures);
	assert_ok(rfl_counters_load(path, NULL, 0, &captures, &err), &err);
	for (int i = 0; i < 700; i += 233) {
		(void)snprintf(name, sizeof(name),
			       "kernel<%d, \"\xc3\xa4\xe2\x82\xac\">\n\xf0\x9f\x8c\x8d", i);
		assert_int_equal(range_of(captures.captures[0], name)->kind, RFL_RANGE_KERNEL);
	}
	rfl_captures_fini(&captures);
	rfl_run_result_fini(&result);

	run_told(dir, NULL, "latin", false, &result); /* no UTF-8: shown as '?', not lost */
	assert_string_equal(result.row.counters_status, "ok");
	rfl_run_result_fini(&result);
	rfl_captures_init(&captures);
	assert_ok(rfl_counters_load(path, NULL, 0, &captures, &err), &err);
	assert_int_equal(captures.n, 2);
	assert_int_equal(captures.captures[1]->nranges, captures.captures[0]->nranges);
	assert_close(captures.captures[1]->total[RFL_QUANTITY_DRAM].value,
		     captures.captures[0]->total[RFL_QUANTITY_DRAM].value, 0);
	rfl_captures_fini(&captures);
}

/* What was counted over other ranges makes no ratio; idle bytes are a rate. */
static void ratios_are_of_the_same_ranges(void **state)
{
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_result r;

	run_told(dir, NULL, "few-instructions", true, &r);
	assert_true(isnan(r.row.ipc));
	assert_close(r.row.effective_clock_hz, 1600, 0);
	rfl_run_result_fini(&r);
	run_told(dir, NULL, "idle", true, &r);
	assert_close(r.row.idle_dram_bytes_per_s, 3000, 0);
	assert_close(r.row.counted_dram_bytes_per_step, 4500, 0); /* in no total */
	rfl_run_result_fini(&r);
}

/* The report of the child on its way to the parent: a piece is lost, or all behind a byte. */
static void half_a_count_is_none(void **state)
{
	static const struct {
		const char *filter, *status;
	} cases[] = {
		{ "awk '/\"counters\"/ && n++ == 1 { next } { print; fflush() }'",
		  "bytes of counts came from the run's child" },
		{ "head -c 50000", "crash: exit code 0, before it was done" },
		{ "cat", "ok" },
	};
	const char *dir = tmp_path(*state, "logs");

	setenv("RFL_TEST_SOURCE", "many", 1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		char command[8192];
		const char *const child[] = { "/bin/sh", "-c", command, NULL };
		struct rfl_run_config config = small_config();
		const struct rfl_run_options options = {
			.log_dir = dir,
			.command_line = "roofline run",
			.child_argv = child,
		};
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_run_result r;

		(void)snprintf(command, sizeof(command), "exec 4>&3; '%s' run-child 3>&1 | %s >&4",
			       self, cases[i].filter);
		assert_ok(rfl_run(&config, &options, &r, &err), &err);
		assert_string_equal(r.row.status, "ok");
		if (!strstr(r.row.counters_status, cases[i].status))
			fail_msg("%zu: '%s'", i, r.row.counters_status);
		assert_int_equal(rfl_file_exists(tmp_path(*state, "logs/counters.csv")),
				 strcmp(cases[i].status, "ok") == 0);
		assert_int_equal(isnan(r.row.counted_flops_per_step),
				 strcmp(cases[i].status, "ok") != 0);
		rfl_run_result_fini(&r);
	}
	unsetenv("RFL_TEST_SOURCE");
}

/* One file that cannot be written keeps neither the others back nor the row. */
static void counts_are_kept_beside_a_file_that_fails(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = small_config();
	const struct rfl_run_options options = {
		.log_dir = *state,
		.command_line = "roofline run",
		.child_argv = child,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result r;
	struct rfl_ledger *l;

	write_file(*state, "steps", "in the way of a folder\n");
	assert_int_equal(rfl_run(&config, &options, &r, &err), RFL_EIO);
	assert_says(&err, "steps");
	assert_string_not_equal(r.counters_file, "");
	assert_string_not_equal(r.time_log, "");
	rfl_run_result_fini(&r);
	l = load(*state);
	assert_int_equal(l->nrows, 1);
	assert_string_equal(l->rows[0].counters_status, "ok");
	rfl_ledger_free(l);
}

/* Off means off: nothing more is run, nothing is written, and the row is empty there. */
static void without_counters_nothing_is_counted(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = small_config();
	const struct rfl_run_options options = {
		.log_dir = *state,
		.command_line = "roofline run",
		.child_argv = child,
	};
	const char *log = tmp_path(*state, "calls");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result, again;

	config.counters = RFL_DETAIL_OFF;
	setenv("RFL_FAKE_LOG", log, 1);
	assert_ok(rfl_run(&config, &options, &result, &err), &err);
	unsetenv("RFL_FAKE_LOG");
	assert_file(log, "forward=7 backward=7 step=7 snapshot=0 restore=0 updates=7\n");
	assert_null(result.row.counters_status);
	assert_string_equal(result.counters_file, "");
	assert_false(rfl_file_exists(tmp_path(*state, "counters.csv")));
	config.counters = RFL_DETAIL_LAYER; /* counted or not, it is a repeat */
	assert_ok(rfl_run(&config, &options, &again, &err), &err);
	assert_string_equal(again.row.config_hash, result.row.config_hash);
	rfl_run_result_fini(&again);
	rfl_run_result_fini(&result);
}

/* What could not be written afterwards is refused before. */
static void foreign_tables_are_refused_first(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = small_config();
	const struct rfl_run_options options = {
		.log_dir = *state,
		.command_line = "roofline run",
		.child_argv = child,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;

	write_file(*state, "counters.csv", "metric,value\n");
	assert_int_equal(rfl_run(&config, &options, &result, &err), RFL_EFORMAT);
	assert_says(&err, "counters.csv:1: column 1 is 'metric' where 'schema_version' belongs");
	rfl_run_result_fini(&result);
	assert_false(rfl_file_exists(tmp_path(*state, "metrics.csv")));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranges_follow_the_detail, rig_up, rig_down),
		cmocka_unit_test_setup_teardown(every_layer_is_a_range, rig_up, rig_down),
		cmocka_unit_test_setup_teardown(what_an_engine_lacks_is_named, rig_up, rig_down),
		cmocka_unit_test_setup_teardown(a_missing_source_is_named, rig_up, rig_down),
		cmocka_unit_test_setup_teardown(a_counted_run_is_recorded, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(every_end_of_counting_has_its_status, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(large_tables_arrive_whole, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(ratios_are_of_the_same_ranges, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(half_a_count_is_none, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(counts_are_kept_beside_a_file_that_fails,
						tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(without_counters_nothing_is_counted, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(foreign_tables_are_refused_first, tmpdir_make,
						tmpdir_remove),
	};
	int failed;

	self = rfl_proc_self(NULL);
	if (!self)
		return 1;
	if (argc == 2 && strcmp(argv[1], "run-child") == 0)
		failed = rfl_run_child_with(STDIN_FILENO, RFL_RUN_REPORT_FD, source_for, NULL) !=
			 RFL_OK;
	else
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(self);
	return failed;
}
