/*
 * test_complexity_net_build.c - the builder: its first failure wins, what it refuses, and how it
 * infers the shape behind a pooling.
 */
#include "tests/unit/rfl_test.h"

#include "base/compiler.h"
#include "complexity/net_build.h"

/* The builder's first failure wins and the later calls do nothing. */
static void builder_failure_is_sticky(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int x, y;

	(void)state;
	x = rfl_net_input(b, 3, 8, 8);
	rfl_net_enter(b, "block");
	x = rfl_conv2d(b, x, "conv", 6, .kernel = 3, .groups = 2);
	y = rfl_linear(b, x, "fc", 7, false);
	rfl_net_leave(b);
	assert_int_equal(y, -1);
	assert_int_equal(rfl_net_finish(b, y, &net, &err), RFL_EINVAL);
	assert_null(net);
	assert_says(&err, "toy: block.conv (Conv2d): 3 input and 6 output channels");
}

static void builder_refuses_unequal_sums(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int x, y;

	(void)state;
	x = rfl_net_input(b, 3, 8, 8);
	y = rfl_conv2d(b, x, "conv", 3, .kernel = 3);
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	assert_int_equal(rfl_net_finish(b, x, &net, &err), RFL_EINVAL);
	assert_says(&err, "3x8x8 and 3x6x6 do not broadcast");
}

static void builder_refuses_an_image_for_logits(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	(void)state;
	assert_int_equal(rfl_net_finish(b, rfl_net_input(b, 3, 8, 8), &net, &err), RFL_EINVAL);
	assert_says(&err, "toy: the output is 3x8x8 per sample");
	assert_null(net);
}

static void builder_refuses_a_second_input(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	(void)state;
	(void)rfl_net_input(b, 3, 8, 8);
	assert_int_equal(rfl_net_input(b, 3, 8, 8), -1);
	assert_int_equal(rfl_net_finish(b, 0, &net, &err), RFL_EINVAL);
	assert_says(&err, "toy: the input must come first");
}

/* ceil_mode: the last window may hang over, but may not begin behind the input
 * (torch.nn.MaxPool2d). */
static void pooling_rounds_up_on_request(void **state)
{
	static const struct {
		int64_t in, kernel, stride, pad;
		bool ceil;
		int64_t out;
	} cases[] = {
		{ 112, 3, 2, 0, false, 55 }, { 112, 3, 2, 0, true, 56 }, { 7, 2, 2, 0, true, 4 },
		{ 6, 2, 2, 0, true, 3 },     { 5, 1, 3, 0, true, 2 },    { 4, 2, 3, 1, true, 2 },
		{ 2, 3, 2, 0, true, 1 },     { 3, 5, 4, 2, true, 2 },    { 2, 5, 4, 0, true, 1 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *net = NULL;
		int x = rfl_net_input(b, 1, cases[i].in, cases[i].in);

		x = rfl_max_pool(b, x, "pool", .kernel = cases[i].kernel, .stride = cases[i].stride,
				 .pad = cases[i].pad, .ceil_mode = cases[i].ceil);
		assert_ok(rfl_net_finish(b, rfl_flatten(b, x), &net, &err), &err);
		assert_int_equal(net->nodes[x].shape.dim[2], cases[i].out);
		rfl_net_free(net);
	}
}

/* The end of the last window is looked for without leaving 63 bits. */
static void pooling_of_the_longest_row(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int x = rfl_net_input(b, 1, 1, INT64_MAX);

	(void)state;
	x = rfl_max_pool(b, x, "pool", .kernel = 1, .stride = 1 << 24, .ceil_mode = true);
	assert_ok(rfl_net_finish(b, rfl_flatten(b, x), &net, &err), &err);
	assert_int_equal(net->nodes[x].shape.dim[2], INT64_C(1) << 39);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builder_failure_is_sticky),
		cmocka_unit_test(builder_refuses_unequal_sums),
		cmocka_unit_test(builder_refuses_an_image_for_logits),
		cmocka_unit_test(builder_refuses_a_second_input),
		cmocka_unit_test(pooling_rounds_up_on_request),
		cmocka_unit_test(pooling_of_the_longest_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
