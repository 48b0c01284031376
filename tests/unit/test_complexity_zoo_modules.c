/*
 * test_complexity_zoo_modules.c - what a trace of the published network prints: every module in the
 * order of its calls, with its class, output, in-place flag, probability and constants.
 */
#include "tests/unit/published.h"

#include <math.h>
#include <string.h>

#include "complexity/op.h"

/* A figure that only some modules have. */
static void check_number(struct rfl_csv *csv, const char *column, bool has, double value)
{
	struct rfl_err err = RFL_ERR_INIT;
	double wanted = 0;

	if (!has) {
		assert_string_equal(text(csv, column), "");
		return;
	}
	assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, column), &wanted, &err), &err);
	if (fabs(value - wanted) > 1e-12 * fabs(wanted)) /* 1 - 0.9997 is not 0.0003 */
		fail_msg("%s %s: %s is %.17g, not %.17g", text(csv, "model"), text(csv, "name"),
			 column, value, wanted);
}

static void check_module(struct rfl_csv *csv, const struct rfl_node *node)
{
	bool drops = node->op == RFL_OP_DROPOUT || node->op == RFL_OP_STOCHASTIC_DEPTH;
	bool batch_norm = node->op == RFL_OP_BATCH_NORM;
	char shape[96];

	assert_string_equal(node->name, text(csv, "name"));
	assert_string_equal(rfl_op_info_of(node->op)->module, text(csv, "module"));
	assert_string_equal(rfl_shape_text(&node->shape, shape, sizeof(shape)),
			    text(csv, "out_shape"));
	assert_int_equal(node->inplace, integer(csv, "inplace"));
	check_number(csv, "probability", drops, node->attr.dropout.probability);
	check_number(csv, "eps", batch_norm || node->op == RFL_OP_LAYER_NORM,
		     batch_norm ? node->attr.batch_norm.eps : node->attr.norm.eps);
	check_number(csv, "momentum", batch_norm, node->attr.batch_norm.momentum);
}

/* The next node that a trace would print. */
static int next_module(const struct rfl_net *net, int i)
{
	while (i < net->nnodes && (net->nodes[i].functional || net->nodes[i].auxiliary))
		i++;
	return i;
}

static void modules_are_those_of_the_trace(void **state)
{
	struct rfl_csv *csv = open_published("modules.csv");
	struct rfl_net *net = NULL;
	int models = 0, i = 0;

	(void)state;
	while (next(csv)) {
		if (!net || strcmp(net->model, text(csv, "model")) != 0) {
			if (net)
				assert_int_equal(i, net->nnodes);
			rfl_net_free(net);
			net = build(text(csv, "model"));
			i = next_module(net, 0);
			models++;
		}
		assert_true(i < net->nnodes);
		check_module(csv, &net->nodes[i]);
		i = next_module(net, i + 1);
	}
	assert_non_null(net);
	assert_int_equal(i, net->nnodes);
	rfl_net_free(net);
	rfl_csv_close(csv);
	assert_int_equal(models, 18);
}

/* Checkpointing runs them again as wholes: the residual blocks, and nothing around them. */
static void repeated_blocks_are_marked(void **state)
{
	static const struct {
		const char *model, *first;
		int blocks;
	} cases[] = {
		{ "resnet50", "layer1.0.conv1", 16 },
		{ "wide_resnet101_2", "layer1.0.conv1", 33 },
		{ "mobilenet_v2", "features.1.conv.0.0", 17 },
		{ "mobilenet_v3_large", "features.1.block.0.0", 15 },
		{ "efficientnet_b0", "features.1.0.block.0.0", 16 },
		{ "efficientnet_v2_l", "features.1.0.block.0.0", 79 },
		{ "regnet_y_400mf", "trunk_output.block1.block1-0.proj.0", 16 },
		{ "convnext_tiny", "features.1.0.layer_scale", 18 },
	};

	(void)state;
	for (size_t k = 0; k < RFL_ARRAY_LEN(cases); k++) {
		struct rfl_net *net = build(cases[k].model);
		int seen = 0;

		assert_int_equal(net->nblocks, cases[k].blocks);
		for (int i = 0; i < net->nnodes; i++) {
			int block = net->nodes[i].block;

			if (block == 1 && seen == 0)
				assert_string_equal(net->nodes[i].name, cases[k].first);
			assert_true(block == 0 || block == seen || block == seen + 1);
			seen = block > seen ? block : seen;
		}
		assert_int_equal(seen, net->nblocks);
		assert_int_equal(net->nodes[net->output].block, 0);
		rfl_net_free(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_are_those_of_the_trace),
		cmocka_unit_test(repeated_blocks_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
