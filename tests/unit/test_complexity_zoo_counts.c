/*
 * test_complexity_zoo_counts.c - what the zoo's networks cost, against the published counts: every
 * column of torchvision_exact_counts.csv to the integer, and torchvision's own rounded figures.
 */
#include "tests/unit/published.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complexity/count.h"

/* Columns that are sums of elements: over the outputs, or the inputs, of certain operations. */
struct elements {
	int64_t batch_norm, layer_norm, activation, pool_in, binary, softmax, product;
	int64_t convolutions, linears;
	int64_t image;
	int64_t conv_macs, linear_macs, matmul_macs, conv_macs_excl_pad, first_layer_macs;
};

static void add_product(struct elements *e, const struct rfl_node *node,
			const struct rfl_cost *cost, int64_t out)
{
	int64_t macs = cost->macs[RFL_PASS_FORWARD];

	e->product += out;
	if (e->first_layer_macs == 0)
		e->first_layer_macs = macs;
	if (node->op == RFL_OP_CONV2D) {
		e->convolutions++;
		e->conv_macs += macs;
		e->conv_macs_excl_pad += cost->macs_excl_padding;
	} else if (node->op == RFL_OP_LINEAR) {
		e->linears++;
		e->linear_macs += macs;
	} else {
		e->matmul_macs += macs;
	}
}

static void add_node(struct elements *e, const struct rfl_net *net, const struct rfl_node *node,
		     const struct rfl_cost *cost)
{
	int64_t out = rfl_shape_numel(&node->shape);

	switch (node->op) {
	case RFL_OP_CONV2D:
	case RFL_OP_LINEAR:
	case RFL_OP_MATMUL:
		add_product(e, node, cost, out);
		break;
	case RFL_OP_BATCH_NORM:
		e->batch_norm += out;
		break;
	case RFL_OP_LAYER_NORM:
		e->layer_norm += out;
		break;
	case RFL_OP_RELU:
	case RFL_OP_RELU6:
	case RFL_OP_SIGMOID:
	case RFL_OP_SILU:
	case RFL_OP_GELU:
	case RFL_OP_HARD_SIGMOID:
	case RFL_OP_HARD_SWISH:
		e->activation += out;
		break;
	case RFL_OP_MAX_POOL:
	case RFL_OP_AVG_POOL:
	case RFL_OP_ADAPTIVE_AVG_POOL: /* a mean over the image is none */
		e->pool_in += rfl_shape_numel(&net->nodes[node->input[0]].shape);
		break;
	case RFL_OP_ADD:
	case RFL_OP_MUL:
		e->binary += out;
		break;
	case RFL_OP_SOFTMAX:
		e->softmax += out;
		break;
	case RFL_OP_INPUT:
		e->image = out;
		break;
	default:
		break;
	}
}

static struct elements elements_of(const struct rfl_count *count)
{
	struct elements e = { 0 };

	for (int i = 0; i < count->nnodes; i++)
		if (!count->net->nodes[i].auxiliary)
			add_node(&e, count->net, &count->net->nodes[i], &count->nodes[i]);
	return e;
}

static struct rfl_count *count_of(const struct rfl_net *net, bool training)
{
	struct rfl_count_options options = { .batch = 1, .training = training };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	return count;
}

static void check_column(struct rfl_csv *csv, const char *column, int64_t value)
{
	if (value == integer(csv, column))
		return;
	print_error("%s at %s: %s is %" PRId64 ", published %s\n", text(csv, "model"),
		    text(csv, "input_size"), column, value, text(csv, column));
	fail();
}

static int64_t training_macs(const struct rfl_cost *c)
{
	return c->macs[RFL_PASS_FORWARD] + c->macs[RFL_PASS_DGRAD] + c->macs[RFL_PASS_WGRAD];
}

/* Two rows were made of networks that fit torchvision's old weights: they scale and shift the image
 * first, two steps per element. The default constructors, and ours, take the image as it is. */
static int64_t transform_input(const struct rfl_net *net, const struct elements *e)
{
	bool transforms =
		strcmp(net->model, "googlenet") == 0 || strcmp(net->model, "inception_v3") == 0;

	return transforms ? 2 * e->image : 0;
}

static void check_row(struct rfl_csv *csv, const struct rfl_net *net)
{
	struct rfl_count *inference = count_of(net, false), *training = count_of(net, true);
	struct elements e = elements_of(inference);

	check_column(csv, "params", inference->params);
	check_column(csv, "macs", inference->total.macs[RFL_PASS_FORWARD]);
	check_column(csv, "conv_macs", e.conv_macs);
	check_column(csv, "linear_macs", e.linear_macs);
	check_column(csv, "matmul_macs", e.matmul_macs);
	check_column(csv, "conv_macs_excl_pad", e.conv_macs_excl_pad);
	check_column(csv, "first_layer_macs", e.first_layer_macs);
	check_column(csv, "train_macs", training_macs(&training->total));
	check_column(csv, "bias_adds", inference->total.bias_adds);
	check_column(csv, "bn_elems", e.batch_norm);
	check_column(csv, "ln_elems", e.layer_norm);
	check_column(csv, "act_elems", e.activation);
	check_column(csv, "pool_in_elems", e.pool_in);
	check_column(csv, "ewise_elems", e.binary + transform_input(net, &e));
	check_column(csv, "softmax_elems", e.softmax);
	check_column(csv, "macts", e.product);
	check_column(csv, "n_conv", e.convolutions);
	check_column(csv, "n_linear", e.linears);
	rfl_count_free(inference);
	rfl_count_free(training);
}

/* "1x3x224x224" of a square image. */
static int64_t image_size(struct rfl_csv *csv)
{
	const char *size = strrchr(text(csv, "input_size"), 'x');

	assert_non_null(size);
	return strtoll(size + 1, NULL, 10);
}

static void counts_are_the_exact_ones(void **state)
{
	struct rfl_csv *csv = open_published("torchvision_exact_counts.csv");
	int rows = 0;

	(void)state;
	while (next(csv)) {
		struct rfl_net *net = build_naive(text(csv, "model"), image_size(csv));

		check_row(csv, net);
		rfl_net_free(net);
		rows++;
	}
	rfl_csv_close(csv);
	assert_int_equal(rows, 79);
}

/* Heads by hand: a 1x1 convolution (and a 5x5 one) and linear layers, on pooled features. */
static void auxiliary_heads_count_where_they_are_asked_for(void **state)
{
	static const struct {
		const char *model;
		int64_t macs;
	} cases[] = {
		{ "googlenet", 0 },
		{ "googlenet_aux",
		  (512 + 528) * 128 * 4 * 4 + 2 * (2048 * 1024 + 1024 * INT64_C(1000)) },
		{ "inception_v3", 768 * 128 * 5 * 5 + 128 * 5 * 5 * 768 + 768 * INT64_C(1000) },
		{ "inception_v3_no_aux", 0 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_count_options options = {
			.batch = 1,
			.training = true,
			.auxiliary = true,
		};
		struct rfl_net *net = build(cases[i].model);
		struct rfl_count *plain = count_of(net, true), *heads = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		assert_ok(rfl_count_net(net, &options, &heads, &err), &err);
		for (int pass = RFL_PASS_FORWARD; pass <= RFL_PASS_WGRAD; pass++)
			assert_int_equal(heads->total.macs[pass] - plain->total.macs[pass],
					 cases[i].macs);
		assert_int_equal(heads->params, plain->params);
		rfl_count_free(heads);
		rfl_count_free(plain);
		rfl_net_free(net);
	}
}

/* Whether torchvision's figure, in 10^9 with three decimals, is this count rounded. */
static bool rounds_to(int64_t macs, const char *figure)
{
	return fabs((double)macs / 1e9 - strtod(figure, NULL)) <= 0.0005 * (1 + 1e-9);
}

static void figures_of_torchvision_are_these_counts_rounded(void **state)
{
	struct rfl_csv *csv = open_published("torchvision_complexity.csv");
	int rows = 0;

	(void)state;
	while (next(csv)) {
		struct rfl_count *count;
		struct rfl_net *net;

		net = build_naive(text(csv, "model"), image_size(csv));
		count = count_of(net, false);
		check_column(csv, "num_params", count->params);
		if (!rounds_to(count->total.macs[RFL_PASS_FORWARD], text(csv, "gmacs"))) {
			print_error("%s: %" PRId64 " MACs, published %s * 10^9\n",
				    text(csv, "weights_enum"), count->total.macs[RFL_PASS_FORWARD],
				    text(csv, "gmacs"));
			fail();
		}
		rfl_count_free(count);
		rfl_net_free(net);
		rows++;
	}
	rfl_csv_close(csv);
	assert_int_equal(rows, 115);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_the_exact_ones),
		cmocka_unit_test(auxiliary_heads_count_where_they_are_asked_for),
		cmocka_unit_test(figures_of_torchvision_are_these_counts_rounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
