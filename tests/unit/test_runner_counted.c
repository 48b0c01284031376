/*
 * What a source is given to count: ranges, passes, the way back between them. The engine is the
 * fake one (tests/engines), the source that of fake_source.h.
 */
#include "tests/unit/fake_source.h"

#include "complexity/zoo.h"
#include "runner/burst/counted.h"

static const char *const plugin_dirs[] = { RFL_TEST_BUILD "/tests/engines", NULL };

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

static enum rfl_rc spy_backward(struct rfl_engine *e, const struct rfl_backward *how,
				struct rfl_err *err)
{
	note("backward");
	return real.backward(e, how, err);
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

/* The linker puts these in place of the loader's (--wrap). */
enum rfl_rc __real_rfl_data_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err);
enum rfl_rc __wrap_rfl_data_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err);
void __wrap_rfl_data_rest(struct rfl_data *data);

enum rfl_rc __wrap_rfl_data_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err)
{
	note("next");
	return __real_rfl_data_next(data, ret, err);
}

void __wrap_rfl_data_rest(struct rfl_data *data)
{
	(void)data;
	note("rest");
}

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
	assert_ok(rfl_data_open(&(struct rfl_data_spec){ .kind = RFL_DATA_SYNTHETIC }, rig.net, 2,
				RFL_LAYOUT_NCHW, 1, NULL, &rig.data, &err),
		  &err);
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
	const struct rfl_counted_parts parts = { &spied, rig.engine, rig.net, rig.data };

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

	/* and afterwards no one is notified any more */
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
	assert_says(&err, "'fake' cannot undo a step");
	rfl_err_clear(&err);
	assert_ok(count(RFL_DETAIL_STEP, RFL_RUN_FWD, &captures, &err), &err); /* nothing to */
	spied.snapshot = spy_snapshot;
	spied.mark = NULL;
	assert_int_equal(count(RFL_DETAIL_LAYER, RFL_RUN_TRAIN, &captures, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "'fake' cannot tell layers apart");
	assert_string_equal(asked.text, ""); /* before anything ran */
	rfl_captures_fini(&captures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranges_follow_the_detail, rig_up, rig_down),
		cmocka_unit_test_setup_teardown(every_layer_is_a_range, rig_up, rig_down),
		cmocka_unit_test_setup_teardown(what_an_engine_lacks_is_named, rig_up, rig_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
