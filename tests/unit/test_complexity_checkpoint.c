/*
 * test_complexity_checkpoint.c - what checkpointed blocks run again, against PyTorch and by hand.
 */
#include "tests/unit/count_rig.h"
#include "tests/unit/published.h"

/* What runs again computes and moves all that it did before; a fused attention, which computes its
 * scores again anyway, more. */
static void check_again(const struct rfl_count *count)
{
	for (int i = 0; i < count->nnodes; i++) {
		const struct rfl_cost *cost = &count->nodes[i];
		const struct rfl_traffic *t = cost->traffic[RFL_FUSION_FUSED];
		const struct rfl_elementwise *first = &cost->elementwise[RFL_PASS_FORWARD];
		const struct rfl_elementwise *again = &cost->elementwise[RFL_PASS_RECOMPUTE];

		if (t[RFL_PASS_RECOMPUTE].read_bytes == 0 || count->net->nodes[i].op == RFL_OP_SDPA)
			continue;
		assert_int_equal(cost->macs[RFL_PASS_RECOMPUTE], cost->macs[RFL_PASS_FORWARD]);
		assert_int_equal(again->add, first->add + cost->bias_adds);
		assert_int_equal(again->mul, first->mul);
		assert_int_equal(again->compare, first->compare);
		assert_int_equal(again->special, first->special);
		assert_int_equal(t[RFL_PASS_RECOMPUTE].read_bytes, t[RFL_PASS_FORWARD].read_bytes);
		assert_int_equal(t[RFL_PASS_RECOMPUTE].write_bytes,
				 t[RFL_PASS_FORWARD].write_bytes);
	}
}

static void checkpointed_blocks_as_pytorch(void **state)
{
	struct rfl_csv *csv = open_published("flops_checkpoint.csv");
	int rows = 0;

	(void)state;
	for (; next(csv); rows++) {
		struct rfl_net *net = build(text(csv, "model"));
		struct rfl_count *count =
			count_of(net, (struct rfl_count_options){
					      .training = true,
					      .checkpoint = integer(csv, "blocks"),
				      });
		struct rfl_count *plain =
			count_of(net, (struct rfl_count_options){ .training = true });

		assert_int_equal(flops_seen(count, 1u << RFL_PASS_RECOMPUTE),
				 integer(csv, "flops"));
		check_again(count);
		assert_int_equal(rfl_count_model_flops(count), rfl_count_model_flops(plain));
		assert_int_equal(rfl_count_training_flops(count),
				 rfl_count_model_flops(count) +
					 2 * count->total.macs[RFL_PASS_RECOMPUTE]);
		assert_int_equal(rfl_count_bytes(count, RFL_FUSION_COMPULSORY, RFL_SCOPE_STEP),
				 rfl_count_bytes(plain, RFL_FUSION_COMPULSORY, RFL_SCOPE_STEP));
		rfl_count_free(plain);
		rfl_count_free(count);
		rfl_net_free(net);
	}
	rfl_csv_close(csv);
	assert_int_equal(rows, 20);
}

/*
 * Two blocks relu(a x + a') + b: of the last tensors that are kept, b's input is kept before b
 * computes, so b and the sum are not run again; with both blocks in one segment only the second b
 * is left out.
 */
static void a_checkpointed_block_by_hand(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	int first[2], relu[2], second[2], sum[2];
	int x = rfl_flatten(b, rfl_net_input(b, 3, 1, 1));
	struct rfl_count *one, *two;
	struct rfl_net *net;

	(void)state;
	x = rfl_linear(b, x, "stem", 3, false);
	for (int i = 0; i < 2; i++) {
		int y;

		b->in_block = true;
		b->nblocks++;
		rfl_net_enter(b, "block%d", i);
		first[i] = y = rfl_linear(b, x, "a", 5, true);
		relu[i] = y = rfl_relu(b, y, "relu", RFL_OUT_OF_PLACE);
		second[i] = y = rfl_linear(b, y, "b", 3, false);
		sum[i] = x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
		rfl_net_leave(b);
		b->in_block = false;
	}
	net = finish(b, x);
	one = count_of(net,
		       (struct rfl_count_options){ .batch = 2, .training = true, .checkpoint = 1 });
	two = count_of(net,
		       (struct rfl_count_options){ .batch = 2, .training = true, .checkpoint = 2 });
	for (int i = 0; i < 2; i++) {
		const struct rfl_cost *a = &one->nodes[first[i]];
		const struct rfl_traffic *t = a->traffic[RFL_FUSION_UNFUSED];

		assert_int_equal(a->macs[RFL_PASS_RECOMPUTE], 2 * 3 * 5);
		assert_int_equal(a->elementwise[RFL_PASS_RECOMPUTE].add, 2 * 5); /* its bias */
		assert_int_equal(t[RFL_PASS_RECOMPUTE].read_bytes, 4 * (2 * 3 + 15 + 5));
		assert_int_equal(t[RFL_PASS_RECOMPUTE].write_bytes, 4 * 2 * 5);
		assert_int_equal(one->nodes[relu[i]].elementwise[RFL_PASS_RECOMPUTE].compare,
				 2 * 5);
		assert_int_equal(one->nodes[second[i]].macs[RFL_PASS_RECOMPUTE], 0);
		assert_int_equal(one->nodes[sum[i]].elementwise[RFL_PASS_RECOMPUTE].add, 0);
	}
	assert_int_equal(one->total.macs[RFL_PASS_RECOMPUTE], 2 * 30);
	assert_int_equal(two->nodes[second[0]].macs[RFL_PASS_RECOMPUTE], 30);
	assert_int_equal(two->nodes[sum[0]].elementwise[RFL_PASS_RECOMPUTE].add, 2 * 3);
	assert_int_equal(two->nodes[second[1]].macs[RFL_PASS_RECOMPUTE], 0);
	assert_int_equal(two->total.macs[RFL_PASS_RECOMPUTE], 3 * 30);
	rfl_count_free(one);
	rfl_count_free(two);
	rfl_net_free(net);
}

/* Below everything trained nothing is kept, so nothing is run again. */
static void a_frozen_segment_is_not_run_again(void **state)
{
	static const char *const frozen[] = { "conv1", "bn1", "layer1" };
	struct rfl_net *net = build("resnet18");
	struct rfl_count *count = count_of(net, (struct rfl_count_options){
							.training = true,
							.checkpoint = 1,
							.frozen = frozen,
							.nfrozen = RFL_ARRAY_LEN(frozen),
						});

	(void)state;
	for (int i = 0; i < net->nnodes; i++) {
		const int64_t *macs = count->nodes[i].macs;
		bool again = net->nodes[i].block > 2;

		assert_int_equal(macs[RFL_PASS_RECOMPUTE], again ? macs[RFL_PASS_FORWARD] : 0);
	}
	rfl_count_free(count);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkpointed_blocks_as_pytorch),
		cmocka_unit_test(a_checkpointed_block_by_hand),
		cmocka_unit_test(a_frozen_segment_is_not_run_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
