/*
 * torch_rig.h - the torch engine on a small network, for its tests.
 */
#ifndef RFL_TESTS_TORCH_RIG_H
#define RFL_TESTS_TORCH_RIG_H

#include <stdlib.h>
#include <string.h>

#include "tests/unit/rfl_test.h"

#include "runner/engine.h"
#include "data/fill.h"
#include "tests/unit/build_rig.h"

enum { BATCH = 3, SIDE = 8, CLASSES = 5, IMAGE = 3 * SIDE * SIDE };
enum { FLOATS = 4096 }; /* no net of these tests has more */

static const struct rfl_engine_ops *ops;
static struct rfl_net *net;
static float images[BATCH * IMAGE];
static int64_t labels[BATCH];

/* Convolution, batch norm, ReLU, a residual addition, pooling, dropout, linear. */
static inline struct rfl_net *small_net(double dropout)
{
	struct rfl_net_builder *b = rfl_net_builder_new("small", "test");
	struct rfl_net *ret = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int x, identity;

	assert_non_null(b);
	x = rfl_net_input(b, 3, SIDE, SIDE);
	x = rfl_conv2d(b, x, "conv1", 8, .kernel = 3, .pad = 1);
	x = rfl_batch_norm(b, x, "bn1");
	x = identity = rfl_relu(b, x, "relu", RFL_INPLACE);
	x = rfl_conv2d(b, x, "conv2", 8, .kernel = 3, .pad = 1, .groups = 8, .bias = true);
	x = rfl_unary(b, RFL_OP_RELU6, x, "relu6", RFL_INPLACE);
	x = rfl_add(b, x, identity, RFL_OUT_OF_PLACE);
	x = rfl_max_pool(b, x, "pool", .kernel = 2);
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 2, 2);
	x = rfl_flatten(b, x);
	x = rfl_dropout(b, x, "dropout", dropout);
	x = rfl_linear(b, x, "fc", CLASSES, true);
	assert_ok(rfl_net_finish(b, x, &ret, &err), &err);
	return ret;
}

static inline struct rfl_engine_config config_of(enum rfl_layout layout)
{
	return (struct rfl_engine_config){
		.layout = layout,
		.threads = 2,
		.max_batch = BATCH,
		.optimizer = { .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01 },
		.seed = 1,
	};
}

static inline struct rfl_batch batch_of(int64_t n)
{
	return (struct rfl_batch){ .n = n, .images = images, .labels = labels };
}

static inline struct rfl_engine *open_with(const struct rfl_engine_config *config)
{
	struct rfl_engine *e = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(ops->open(net, config, &e, &err), &err);
	assert_ok(rfl_fill_engine(ops, e, net, 2, &err), &err);
	return e;
}

static inline struct rfl_engine *open_plain(void)
{
	const struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);

	return open_with(&config);
}

static inline int set_up(void **state)
{
	const struct rfl_shape shape = { .ndim = 3, .dim = { 3, SIDE, SIDE } };

	(void)state;
	net = small_net(0.5);
	rfl_fill_labels(0, BATCH, CLASSES, labels);
	return rfl_fill_images(&shape, 0, BATCH, RFL_LAYOUT_NCHW, 1, images, NULL) == RFL_OK ? 0
											     : -1;
}

static inline int tear_down(void **state)
{
	(void)state;
	rfl_net_free(net);
	return 0;
}

/* The tests of a program: 77 where there is no plugin. */
static inline int run_with_torch(const struct CMUnitTest *tests, size_t n)
{
	const char *const dirs[] = { RFL_TEST_BUILD "/lib/roofline/plugins", NULL };
	struct rfl_engine_list *list = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_engine_list_new(dirs, &list, &err) != RFL_OK ||
	    rfl_engine_load(list, "torch", RFL_DEVICE_CPU, &ops, &err) != RFL_OK) {
		print_message("skipped: %s\n", err.msg);
		rfl_engine_list_free(list);
		return err.rc == RFL_EUNAVAILABLE && strstr(err.msg, "no plugin") ? 77 : 1;
	}
	rfl_engine_list_free(list);
	return _cmocka_run_group_tests("tests", tests, n, set_up, tear_down);
}

/** Parameters and statistics, one after the other. */
static inline int64_t all_params(struct rfl_engine *e, float out[FLOATS])
{
	struct rfl_err err = RFL_ERR_INIT;
	int64_t n = 0;

	for (int i = 0; i < net->nparams; i++) {
		assert_in_range(n + net->params[i].numel, 1, FLOATS);
		assert_ok(ops->get_param(e, i, out + n, net->params[i].numel, &err), &err);
		n += net->params[i].numel;
	}
	return n;
}

#endif
