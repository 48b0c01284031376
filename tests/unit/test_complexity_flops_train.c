/*
 * test_complexity_flops_train.c - forward and backward FLOPs against what PyTorch's
 * FlopCounterMode said of the same networks.
 *
 * Rows exact_* are 2 x multiply-adds from the shapes of modules and must be ours. The other rows
 * are the counter's own numbers; it is known to be wrong in three places, and each is worked out
 * here by the rule of its error, so that every row is met to the integer:
 *
 *	weight gradient of a grouped convolution: the groups are forgotten, so it is that many
 *	times too large;
 *	fused attention on a CPU: no formula, so both products are missing, forward and backward;
 *	nn.MultiheadAttention in evaluation without gradients: one fused operation that has no
 *	formula either, so the projections are missing too.
 */
#include "tests/unit/published.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "complexity/count.h"
#include "tests/unit/build_rig.h"

/* The same network in both modes, at the batch of the file. */
struct subject {
	char model[32];
	struct rfl_net *net;
	struct rfl_count *inference, *training;
};

/* A training runs the auxiliary heads, where a network has them. */
static struct rfl_count *count_of(const struct rfl_net *net, int64_t batch, bool training)
{
	struct rfl_count_options options = {
		.batch = batch,
		.training = training,
		.auxiliary = true,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	return count;
}

static void subject_free(struct subject *s)
{
	rfl_count_free(s->inference);
	rfl_count_free(s->training);
	rfl_net_free(s->net);
	*s = (struct subject){ .model = "" };
}

/* Input "1x3x224x224" of images, or "1x32" of tokens: the last number is the size. */
static void subject_load(struct subject *s, struct rfl_csv *csv)
{
	const char *model = text(csv, "model"), *input = text(csv, "input");
	int64_t batch = strtoll(input, NULL, 10), size = strtoll(strrchr(input, 'x') + 1, NULL, 10);
	bool tokens = strchr(input, 'x') == strrchr(input, 'x');
	const struct rfl_zoo_options options = {
		.image_size = tokens ? 0 : size,
		.context_length = tokens ? size : 0,
	};
	struct rfl_err err = RFL_ERR_INIT;

	if (strcmp(s->model, model) == 0)
		return;
	subject_free(s);
	(void)snprintf(s->model, sizeof(s->model), "%s", model);
	assert_ok(rfl_zoo_build(model, &options, &s->net, &err), &err);
	s->inference = count_of(s->net, batch, false);
	s->training = count_of(s->net, batch, true);
}

/* FLOPs by kind of operation. */
struct flops {
	int64_t convolution, linear, attention;
};

static int64_t flops_sum(const struct flops *f)
{
	return f->convolution + f->linear + f->attention;
}

static struct flops exact(const struct rfl_count *count, bool backward)
{
	struct flops f = { 0 };

	for (int i = 0; i < count->nnodes; i++) {
		const int64_t *macs = count->nodes[i].macs;
		int64_t flops = 2 * (backward ? macs[RFL_PASS_DGRAD] + macs[RFL_PASS_WGRAD]
					      : macs[RFL_PASS_FORWARD]);

		if (count->net->nodes[i].op == RFL_OP_CONV2D)
			f.convolution += flops;
		else if (count->net->nodes[i].op == RFL_OP_LINEAR)
			f.linear += flops;
		else
			f.attention += flops;
	}
	return f;
}

/* What the counter says, its errors included. */
static struct flops as_counted(const struct rfl_count *count, bool backward, bool no_grad)
{
	struct flops f = exact(count, backward);

	for (int i = 0; i < count->nnodes; i++) {
		const struct rfl_node *node = &count->net->nodes[i];
		const int64_t *macs = count->nodes[i].macs;
		int64_t groups = node->op == RFL_OP_CONV2D ? node->attr.conv2d.groups : 1;

		if (backward)
			f.convolution += 2 * (groups - 1) * macs[RFL_PASS_WGRAD];
		if (node->op == RFL_OP_SDPA)
			f.attention -=
				2 * (backward ? macs[RFL_PASS_DGRAD] : macs[RFL_PASS_FORWARD]);
		if (no_grad && node->op == RFL_OP_LINEAR &&
		    (node->attr.linear.in_proj || node->attr.linear.out_proj))
			f.linear -= 2 * macs[RFL_PASS_FORWARD];
	}
	return f;
}

/* -1: the row is a part of a sum that another row has. */
static int64_t expected(const struct subject *s, struct rfl_csv *csv)
{
	const char *phase = text(csv, "phase"), *op = text(csv, "op"), *mode = text(csv, "mode");
	const struct rfl_count *count = strcmp(mode, "train") == 0 ? s->training : s->inference;
	bool is_exact = strncmp(phase, "exact_", 6) == 0;
	bool backward = strstr(phase, "backward") != NULL;
	struct flops f = is_exact ? exact(count, backward)
				  : as_counted(count, backward, strcmp(mode, "eval_no_grad") == 0);

	if (strcmp(op, "total") == 0)
		return flops_sum(&f);
	if (strncmp(op, "convolution", 11) == 0)
		return f.convolution;
	if (strcmp(op, "linear") == 0)
		return f.linear;
	if (strcmp(op, "attention") == 0)
		return f.attention;
	return -1; /* mm, addmm, bmm: products by the way they were called */
}

static void every_row_to_the_integer(void **state)
{
	struct rfl_csv *csv = open_published("flops_train.csv");
	struct subject s = { .model = "" };
	int rows = 0, wrong = 0;

	(void)state;
	while (next(csv)) {
		int64_t flops;

		subject_load(&s, csv);
		flops = expected(&s, csv);
		if (flops < 0)
			continue;
		rows++;
		if (flops == integer(csv, "flops"))
			continue;
		print_error("%s, %s, %s, %s: %" PRId64 " FLOPs, the file has %s\n",
			    text(csv, "model"), text(csv, "mode"), text(csv, "phase"),
			    text(csv, "op"), flops, text(csv, "flops"));
		wrong++;
	}
	subject_free(&s);
	rfl_csv_close(csv);
	assert_int_equal(wrong, 0);
	assert_int_equal(rows, 507);
}

/* --- the numbers of PyTorch's own test of its counter (test/test_flop_counter.py) --- */

/* FLOPs of a net of operations that ends in x. */
static void check_toy(struct rfl_net_builder *b, int x, int64_t batch, int64_t forward,
		      int64_t model, int64_t executed)
{
	const struct rfl_count_options options = {
		.batch = batch,
		.training = true,
		.input_grad = true,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;
	struct rfl_net *net = NULL;

	assert_ok(rfl_net_finish(b, rfl_flatten(b, x), &net, &err), &err);
	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	assert_int_equal(rfl_count_forward_flops(count), forward);
	assert_int_equal(rfl_count_model_flops(count), model);
	assert_int_equal(rfl_count_training_flops(count), executed);
	rfl_count_free(count);
	rfl_net_free(net);
}

static void products_and_convolutions_as_in_pytorchs_test(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("mm", "toys");
	int x, y;

	(void)state;
	x = rfl_net_input(b, 1, 4, 5);
	check_toy(b, rfl_linear(b, x, "mm", 6, false), 1, 240, 3 * 240, 3 * 240);

	b = rfl_net_builder_new("bmm", "toys");
	x = rfl_net_input(b, 3, 4, 5);
	y = rfl_reshape(b, rfl_linear(b, x, "other", 6, false), RFL_DIMS(3, 4, 6));
	/* 720 of the product beside 720 of the layer that makes the other factor */
	x = rfl_matmul(b, rfl_permute(b, x, RFL_DIMS(0, 2, 1)), y, false, false);
	check_toy(b, x, 1, 2 * 720, 6 * 720, 6 * 720);

	b = rfl_net_builder_new("conv2d", "toys");
	x = rfl_net_input(b, 3, 6, 6);
	x = rfl_conv2d(b, x, "conv", 6, .kernel = 4, .pad = 1);
	check_toy(b, x, 2, 28800, 3 * 28800, 3 * 28800);

	b = rfl_net_builder_new("conv1d", "toys");
	x = rfl_net_input(b, 3, 1, 6);
	x = rfl_conv2d(b, x, "conv", 6, .kernel_w = 4, .pad_w = 1);
	check_toy(b, x, 2, 1440, 3 * 1440, 3 * 1440);
}

/* 4 texts, 8 heads of 64 features: in two products, whose backward pass is twice the forward one,
 * and fused, where a fifth product makes the scores again: 3 times forward asked for, 3.5 done. */
static void attention_as_in_pytorchs_test(void **state)
{
	static const struct {
		int64_t queries, keys, forward;
	} cases[] = { { 128, 128, 134217728 }, { 128, 256, 268435456 } };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		int64_t forward = cases[i].forward;
		struct rfl_net_builder *b = rfl_net_builder_new("math", "toys");
		int k = rfl_net_input(b, 8, cases[i].keys, 64);
		int q = rfl_slice(b, k, 1, 0, cases[i].queries, 1);
		int x = rfl_matmul(b, q, k, true, false);

		x = rfl_unary(b, RFL_OP_SOFTMAX, x, NULL, RFL_OUT_OF_PLACE);
		x = rfl_matmul(b, x, k, false, false);
		check_toy(b, x, 4, forward, 3 * forward, 3 * forward);

		b = rfl_net_builder_new("flash", "toys");
		k = rfl_net_input(b, 8, cases[i].keys, 64);
		q = rfl_slice(b, k, 1, 0, cases[i].queries, 1);
		x = rfl_sdpa(b, q, k, k, false, 0.0);
		check_toy(b, x, 4, forward, 3 * forward, 7 * forward / 2);
	}
}

static void residual_stage_as_in_pytorchs_test(void **state)
{
	struct rfl_net *net = build("resnet18");
	struct rfl_count *count = count_of(net, 1, true);
	int64_t forward = 0, backward = 0;

	(void)state;
	for (int i = 0; i < net->nnodes; i++) {
		const int64_t *macs = count->nodes[i].macs;

		if (strncmp(net->nodes[i].name, "layer1.", 7) != 0)
			continue;
		forward += 2 * macs[RFL_PASS_FORWARD];
		backward += 2 * (macs[RFL_PASS_DGRAD] + macs[RFL_PASS_WGRAD]);
	}
	assert_int_equal(forward, 924844032);
	assert_int_equal(backward, 1849688064);
	rfl_count_free(count);
	rfl_net_free(net);
}

/* Grouped or not, a layer that is not the first one costs twice as much backward as forward, so a
 * net 2 - first / forward; a counter that forgets the groups has 10 to 20 for these. */
static void backward_of_depthwise_networks_is_twice_forward(void **state)
{
	static const char *const models[] = { "mobilenet_v2", "mobilenet_v3_large", "mnasnet1_0",
					      "efficientnet_b0", "convnext_tiny" };

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++) {
		struct rfl_net *net = build(models[m]);
		struct rfl_count *count = count_of(net, 3, true);
		struct flops forward = exact(count, false), backward = exact(count, true);
		int64_t first = 0;

		for (int i = net->nnodes - 1; i >= 0; i--)
			if (count->nodes[i].macs[RFL_PASS_FORWARD])
				first = 2 * count->nodes[i].macs[RFL_PASS_FORWARD];
		assert_int_equal(flops_sum(&backward), 2 * flops_sum(&forward) - first);
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

/* Query t sees t + 1 keys: (T + 1) / 2T of the square, in every pass. */
static void a_causal_triangle_by_hand(void **state)
{
	(void)state;
	for (int fused = 0; fused < 2; fused++) {
		struct rfl_count_options options = {
			.batch = 3,
			.training = true,
			.input_grad = true,
			.causal_half = true,
		};
		struct rfl_net_builder *b = rfl_net_builder_new("causal", "toys");
		int64_t half = 3 * 2 * 4 * (5 * 6 / 2);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_count *count = NULL;
		struct rfl_net *net = NULL;
		int q = rfl_net_input(b, 2, 5, 4), x;

		if (fused) {
			x = rfl_sdpa(b, q, q, q, true, 0.0);
		} else {
			x = rfl_matmul(b, q, q, true, true);
			x = rfl_unary(b, RFL_OP_CAUSAL_MASK, x, NULL, RFL_OUT_OF_PLACE);
			x = rfl_unary(b, RFL_OP_SOFTMAX, x, NULL, RFL_OUT_OF_PLACE);
			x = rfl_matmul(b, x, q, false, true);
		}
		assert_ok(rfl_net_finish(b, rfl_flatten(b, x), &net, &err), &err);
		assert_ok(rfl_count_net(net, &options, &count, &err), &err);
		assert_int_equal(count->total.macs[RFL_PASS_FORWARD], 2 * half);
		assert_int_equal(count->total.macs[RFL_PASS_DGRAD], 4 * half);
		assert_int_equal(count->total.macs[RFL_PASS_RECOMPUTE], fused * half);
		rfl_count_free(count);
		options.causal_half = false;
		count = NULL;
		assert_ok(rfl_count_net(net, &options, &count, &err), &err);
		assert_int_equal(count->total.macs[RFL_PASS_FORWARD], 2 * 3 * 2 * 4 * 5 * 5);
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_to_the_integer),
		cmocka_unit_test(products_and_convolutions_as_in_pytorchs_test),
		cmocka_unit_test(attention_as_in_pytorchs_test),
		cmocka_unit_test(residual_stage_as_in_pytorchs_test),
		cmocka_unit_test(backward_of_depthwise_networks_is_twice_forward),
		cmocka_unit_test(a_causal_triangle_by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
