/*
 * test_complexity_net_build.c - the builder: its first failure wins, what it refuses, and how it
 * infers the shape after a pooling.
 */
#include "tests/unit/rfl_test.h"

#include <limits.h>

#include "base/compiler.h"
#include "tests/unit/build_rig.h"

/* A builder of "toy" and the image that all tests begin with. */
static struct rfl_net_builder *toy(int *image)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");

	assert_non_null(b);
	*image = rfl_net_input(b, 3, 8, 8);
	return b;
}

/* The builder is given up, and its failure says `words`. */
static void assert_refused(struct rfl_net_builder *b, int output, const char *words)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_int_equal(rfl_net_finish(b, output, &net, &err), RFL_EINVAL);
	assert_null(net);
	assert_says(&err, words);
}

/* The builder's first failure wins and the later calls do nothing. */
static void builder_failure_is_sticky(void **state)
{
	int x, y;
	struct rfl_net_builder *b = toy(&x);

	(void)state;
	rfl_net_enter(b, "block");
	x = rfl_conv2d(b, x, "conv", 6, .kernel = 3, .groups = 2);
	y = rfl_linear(b, x, "fc", 7, false);
	rfl_net_leave(b);
	assert_int_equal(y, -1);
	assert_refused(b, y, "toy: block.conv (Conv2d): 3 input and 6 output channels");
}

static void builder_refuses_unequal_sums(void **state)
{
	int x;
	struct rfl_net_builder *b = toy(&x);

	(void)state;
	x = rfl_add(b, x, rfl_conv2d(b, x, "conv", 3, .kernel = 3), RFL_OUT_OF_PLACE);
	assert_refused(b, x, "3x8x8 and 3x6x6 cannot be broadcast");
}

static void builder_refuses_an_image_for_logits(void **state)
{
	int x;
	struct rfl_net_builder *b = toy(&x);

	(void)state;
	assert_refused(b, x, "toy: the output is 3x8x8 per sample");
}

static void builder_refuses_a_second_input(void **state)
{
	int x;
	struct rfl_net_builder *b = toy(&x);

	(void)state;
	assert_int_equal(rfl_net_input(b, 3, 8, 8), -1);
	assert_refused(b, 0, "toy: the input must come first");
}

/* What no operation would notice is refused where it is: the path of the block comes first. */
static void refusals_name_the_block(void **state)
{
	int x;
	struct rfl_net_builder *b = toy(&x);

	(void)state;
	rfl_net_enter(b, "stage%d", 3);
	assert_int_equal(rfl_net_refuse(b, "no %s", "way"), -1);
	assert_int_equal(rfl_net_refuse(b, "another"), -1);
	rfl_net_leave(b);
	assert_refused(b, x, "toy: stage3: no way");
}

/* Every call that takes a tensor, with one index for all. */
static void call_everything(struct rfl_net_builder *b, int x)
{
	const int both[] = { x, x };

	assert_int_equal(rfl_conv2d(b, x, "conv", 4, .kernel = 1), -1);
	assert_int_equal(rfl_max_pool(b, x, "max", .kernel = 2), -1);
	assert_int_equal(rfl_avg_pool(b, x, "avg", .kernel = 2), -1);
	assert_int_equal(rfl_adaptive_avg_pool(b, x, "gap", 1, 1), -1);
	assert_int_equal(rfl_batch_norm(b, x, "bn"), -1);
	assert_int_equal(rfl_layer_norm(b, x, "ln", 1e-5), -1);
	assert_int_equal(rfl_net_one(b, RFL_OP_RMS_NORM, x, "rms", .attr.norm.eps = 1e-5), -1);
	assert_int_equal(rfl_linear(b, x, "fc", 7, true), -1);
	assert_int_equal(rfl_linear_tied(b, x, "head", x), -1);
	assert_int_equal(rfl_embedding(b, x, "wte", 9, 7), -1);
	assert_int_equal(rfl_dropout(b, x, "drop", 0.5), -1);
	assert_int_equal(rfl_stochastic_depth(b, x, "depth", 0.5), -1);
	assert_int_equal(rfl_relu(b, x, NULL, RFL_INPLACE), -1);
	assert_int_equal(rfl_gelu(b, x, NULL, true), -1);
	assert_int_equal(rfl_add(b, x, x, RFL_OUT_OF_PLACE), -1);
	assert_int_equal(rfl_affine(b, x, 2.0, 0.0), -1);
	assert_int_equal(rfl_rope(b, x, 1e4), -1);
	assert_int_equal(rfl_matmul(b, x, x, true, false), -1);
	assert_int_equal(rfl_sdpa(b, x, x, x, true, 0.0), -1);
	assert_int_equal(rfl_reduce(b, RFL_OP_MEAN, x, 0, 1, true), -1);
	assert_int_equal(rfl_flatten(b, x), -1);
	assert_int_equal(rfl_reshape(b, x, RFL_DIMS(2, 2)), -1);
	assert_int_equal(rfl_permute(b, x, RFL_DIMS(1, 0)), -1);
	assert_int_equal(rfl_slice(b, x, 0, 0, 1, 1), -1);
	assert_int_equal(rfl_concat(b, both, 2, 0), -1);
	assert_int_equal(rfl_net_pad(b, x, .top = 1), -1);
	assert_int_equal(rfl_net_roll(b, x, 0, 1, 1), -1);
	assert_int_equal(rfl_gather(b, x, RFL_DIMS(2, 2)), -1);
	assert_int_equal(rfl_net_as_function(b, x), -1);
	assert_int_equal(rfl_net_in_place(b, x), -1);
	assert_int_equal(rfl_net_shape(b, x).ndim, 0);
	assert_int_equal(rfl_net_channels(b, x), 0);
	assert_int_equal(rfl_net_features(b, x), 0);
	rfl_net_state_dict_order(b, both, 2);
}

/* Families do not look at what they get: -1, or what arithmetic made of it. */
static void any_index_is_harmless(void **state)
{
	static const int garbage[] = { -1, INT_MIN, INT_MAX, 1, 0 };
	int x;
	struct rfl_net_builder *b = toy(&x);

	(void)state;
	assert_int_equal(rfl_net_refuse(b, "given up"), -1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(garbage); i++)
		call_everything(b, garbage[i]);
	assert_refused(b, x, "toy: given up");
	for (size_t i = 0; i < 4; i++) { /* the first of them makes the builder fail */
		b = toy(&x);
		call_everything(b, garbage[i]);
		assert_refused(b, x, "toy: conv (Conv2d): input 0 is not a tensor");
	}
}

static void a_tie_needs_an_owner(void **state)
{
	static const int owners[] = { -1, INT_MIN, INT_MAX, 1, 2 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(owners); i++) {
		int x;
		struct rfl_net_builder *b = toy(&x);

		x = rfl_relu(b, x, "relu", RFL_OUT_OF_PLACE);
		assert_int_equal(rfl_linear_tied(b, x, "head", owners[i]), -1);
		assert_refused(b, x, "toy: head (Linear)");
	}
}

static void concatenations_have_a_length(void **state)
{
	static const int lengths[] = { -1, 0, RFL_NET_MAX_INPUTS + 1 };
	const int many[RFL_NET_MAX_INPUTS + 1] = { 0 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(lengths); i++) {
		int x;
		struct rfl_net_builder *b = toy(&x);

		assert_int_equal(rfl_concat(b, many, lengths[i], 0), -1);
		assert_refused(b, x, "toy: a concatenation needs 1 to 64 tensors");
	}
}

/* Two layers without bias after an image of 3 channels; their parameters can change places. */
static void parameters_are_put_in_order(void **state)
{
	int x, first, second;
	struct rfl_net_builder *b = toy(&x);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	(void)state;
	first = rfl_conv2d(b, x, "first", 4, .kernel = 1);
	second = rfl_conv2d(b, first, "second", 5, .kernel = 1);
	rfl_net_state_dict_order(b, (const int[]){ second, first }, 2);
	assert_ok(rfl_net_finish(b, rfl_flatten(b, second), &net, &err), &err);
	assert_int_equal(net->nparams, 2);
	for (int i = 0; i < 2; i++) {
		int node = i ? first : second;

		assert_string_equal(net->params[i].name, i ? "first.weight" : "second.weight");
		assert_int_equal(net->params[i].position, i);
		assert_int_equal(net->params[i].node, node);
		assert_int_equal(net->nodes[node].param[0], i);
	}
	rfl_net_free(net);
}

static void orders_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		int nodes[2], n;
		const char *words;
	} cases[] = {
		{ { 1 }, 1, "only the latest parameters can be reordered, each only once" },
		{ { 2, 2 }, 2, "only the latest parameters can be reordered, each only once" },
		{ { 1, 1 }, 2, "only the latest parameters can be reordered, each only once" },
		{ { -1, 2 }, 2, "names a node without parameters" },
		{ { INT_MAX, 2 }, 2, "names a node without parameters" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		int x;
		struct rfl_net_builder *b = toy(&x);

		x = rfl_conv2d(b, x, "first", 4, .kernel = 1);
		x = rfl_conv2d(b, x, "second", 5, .kernel = 1);
		rfl_net_state_dict_order(b, cases[i].nodes, cases[i].n);
		assert_refused(b, rfl_flatten(b, x), cases[i].words);
	}
}

/* ceil_mode: the last window may hang over, but may not begin past the input
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
		cmocka_unit_test(refusals_name_the_block),
		cmocka_unit_test(any_index_is_harmless),
		cmocka_unit_test(a_tie_needs_an_owner),
		cmocka_unit_test(concatenations_have_a_length),
		cmocka_unit_test(parameters_are_put_in_order),
		cmocka_unit_test(orders_that_make_no_sense_are_refused),
		cmocka_unit_test(pooling_rounds_up_on_request),
		cmocka_unit_test(pooling_of_the_longest_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
