/*
 * Steps allocate nothing: not in the warm-up, not in the window, not after it; on a CPU and
 * on a device that works on its own. What is allocated (a look for profilers, around the window) is
 * the same for any number of steps. The engine of this test only counts who waits for it.
 */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "complexity/zoo.h"
#include "runner/burst.h"
#include "tests/unit/alloc_failure.h"

struct rfl_engine {
	const struct rfl_engine_ops *ops;
	int forwards, waits, uploads, replays;
	int waits_in_window; /* for the device, or for a loss */
	bool in_window;
};

static enum rfl_rc nothing(struct rfl_engine *e, struct rfl_err *err)
{
	(void)e, (void)err;
	return RFL_OK;
}

static enum rfl_rc set_mode(struct rfl_engine *e, enum rfl_engine_mode mode, struct rfl_err *err)
{
	(void)mode;
	return nothing(e, err);
}

static enum rfl_rc forward(struct rfl_engine *e, const struct rfl_batch *batch, struct rfl_err *err)
{
	(void)batch, (void)err;
	e->forwards++;
	return RFL_OK;
}

static enum rfl_rc backward(struct rfl_engine *e, const struct rfl_backward *how,
			    struct rfl_err *err)
{
	(void)how;
	return nothing(e, err);
}

static enum rfl_rc sync(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	e->waits++;
	e->waits_in_window += e->in_window;
	return RFL_OK;
}

static enum rfl_rc loss(struct rfl_engine *e, double *ret, struct rfl_err *err)
{
	*ret = 1;
	return sync(e, err);
}

static enum rfl_rc upload(struct rfl_engine *e, const struct rfl_batch *batch, struct rfl_err *err)
{
	(void)batch, (void)err;
	e->uploads++;
	return RFL_OK;
}

static enum rfl_rc reserve(struct rfl_engine *e, int64_t n, struct rfl_err *err)
{
	(void)n;
	return nothing(e, err);
}

static enum rfl_rc record(struct rfl_engine *e, int64_t i, struct rfl_err *err)
{
	(void)i;
	return nothing(e, err);
}

static enum rfl_rc elapsed(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
			   struct rfl_err *err)
{
	*ret = (double)(to - from) * 1e-3;
	return nothing(e, err);
}

static enum rfl_rc capture(struct rfl_engine *e, const struct rfl_batch *batch, bool with_backward,
			   bool step, struct rfl_err *err)
{
	(void)batch, (void)with_backward, (void)step;
	return nothing(e, err);
}

static enum rfl_rc replay(struct rfl_engine *e, const struct rfl_batch *batch, struct rfl_err *err)
{
	(void)batch, (void)err;
	e->replays++;
	return RFL_OK;
}

static const struct rfl_engine_ops ops = {
	.name = "counting",
	.set_mode = set_mode,
	.zero_grad = nothing,
	.forward = forward,
	.backward = backward,
	.step = nothing,
	.loss = loss,
	.sync = sync,
	.upload = upload,
	.uploaded = nothing,
	.reserve_events = reserve,
	.record_event = record,
	.elapsed = elapsed,
	.capture = capture,
	.replay = replay,
};

static struct rfl_engine engine;
static struct rfl_data *data;
static struct rfl_burst_config config;
static struct rfl_burst burst;

/* The last wait of the window is the one that ends it. */
static void on_window(bool begins, void *ctx)
{
	(void)ctx;
	engine.in_window = begins;
}

static enum rfl_rc run(struct rfl_err *err)
{
	return rfl_burst_run(&ops, &engine, data, &config, &burst, err);
}

static size_t allocations(int64_t iters)
{
	const struct alloc_operation op = { .name = "burst", .run = run };
	struct rfl_err err = RFL_ERR_INIT;
	size_t n;

	config.iters = iters;
	engine = (struct rfl_engine){ .ops = &ops };
	assert_ok(rfl_burst_init(&burst, iters, &err), &err);
	n = count_allocations(&op);
	rfl_burst_fini(&burst);
	return n;
}

/* Twice, with more steps and with fewer; the engine has counted the latter. */
static void run_burst(struct rfl_burst_config with)
{
	size_t many, few;

	config = with;
	config.window = on_window;
	config.until_stdrel = 1e-9;
	config.until_max_s = 0.01;
	many = allocations(500);
	few = allocations(20);
	assert_int_equal(many, few);
}

static int make_data(void **state)
{
	const struct rfl_zoo_options sizes = { .image_size = 32 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net;

	(void)state;
	assert_ok(rfl_zoo_build("resnet18", &sizes, &net, &err), &err);
	assert_ok(rfl_data_open(&(struct rfl_data_spec){ .kind = RFL_DATA_SYNTHETIC }, net, 2,
				RFL_LAYOUT_NCHW, 1, NULL, &data, &err),
		  &err);
	rfl_net_free(net);
	return 0;
}

static int free_data(void **state)
{
	(void)state;
	rfl_data_free(data);
	return 0;
}

static void on_a_processor(void **state)
{
	(void)state;
	run_burst((struct rfl_burst_config){ .warmup = 3 });
	assert_true(engine.forwards >= 23);
	run_burst((struct rfl_burst_config){ .accum = 4, .mode = RFL_RUN_FWD_BWD });
	assert_true(engine.forwards >= 80);
}

/* The only wait in the window is for its end. */
static void on_a_gpu(void **state)
{
	(void)state;
	run_burst((struct rfl_burst_config){ .warmup = 3, .asynchronous = true });
	assert_int_equal(engine.waits_in_window, 1);
	assert_int_equal(engine.uploads, 1);
	run_burst((struct rfl_burst_config){ .accum = 2, .asynchronous = true });
	assert_int_equal(engine.waits_in_window, 1);
	run_burst(
		(struct rfl_burst_config){ .warmup = 3, .asynchronous = true, .cuda_graph = true });
	assert_int_equal(engine.waits_in_window, 1);
	assert_int_equal(engine.forwards, 3);
	assert_true(engine.replays >= 20);
	run_burst((struct rfl_burst_config){ .asynchronous = true, .sync_each_step = true });
	assert_int_equal(engine.waits_in_window, 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(on_a_processor, make_data, free_data),
		cmocka_unit_test_setup_teardown(on_a_gpu, make_data, free_data),
	};

	watch_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
