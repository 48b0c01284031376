/*
 * test_complexity_ops_attention.c - what attention, a borrowed weight and the loss cost, worked out
 * by hand for a batch of two, and attention as PyTorch counts it.
 */
#include "tests/unit/ops_expect.h"
#include "tests/unit/ops_rig.h"

/* Attention of 6 heads over 8 tokens of 4 features: 384 scores, 192 elements each of q, k, v. */
struct attention {
	struct rig rig;
	int q, k, v;
};

static struct attention attention_new(void)
{
	struct attention a = { .rig = rig_new() };

	a.q = rfl_slice(a.rig.b, a.rig.x, 2, 0, 4, 1);
	a.k = rfl_slice(a.rig.b, a.rig.y, 2, 0, 4, 1);
	a.v = rfl_slice(a.rig.b, a.rig.z, 2, 0, 4, 1);
	return a;
}

static void attention_as_two_products(void **state)
{
	struct attention a = attention_new();
	int scores = rfl_matmul(a.rig.b, a.q, a.k, true, true);
	int out = rfl_matmul(a.rig.b, scores, a.v, false, true);
	struct rfl_net *net = rig_finish(&a.rig, out, false);

	(void)state;
	/* Of the 64 scores of a head the mask leaves 36. */
	for (int half = 0; half <= 1; half++) {
		struct rfl_count_options options = { .training = true, .causal_half = half };
		struct rfl_count *count = count_of(net, options);
		int64_t macs = half ? 6 * 36 * 4 : 6 * 64 * 4;

		CHECK("scores", &count->nodes[scores],
		      { .pass = RFL_PASS_FORWARD,
			.macs = macs,
			.unfused = READ_WRITE(2 * 768, 1536),
			.fused = READ_WRITE(2 * 768, 1536) },
		      { .pass = RFL_PASS_DGRAD,
			.macs = 2 * macs,
			.unfused = READ_WRITE(2 * 1536 + 2 * 768, 2 * 768),
			.fused = READ_WRITE(2 * 1536 + 2 * 768, 2 * 768) });
		CHECK("out", &count->nodes[out],
		      { .pass = RFL_PASS_FORWARD,
			.macs = macs,
			.unfused = READ_WRITE(1536 + 768, 768),
			.fused = READ_WRITE(1536 + 768, 768) },
		      { .pass = RFL_PASS_DGRAD,
			.macs = 2 * macs,
			.unfused = READ_WRITE(2 * 768 + 1536 + 768, 1536 + 768),
			.fused = READ_WRITE(2 * 768 + 1536 + 768, 1536 + 768) });
		rfl_count_free(count);
	}
	rfl_net_free(net);
}

static void attention_in_one_operation(void **state)
{
	struct attention a = attention_new();
	int node = rfl_sdpa(a.rig.b, a.q, a.k, a.v, true, 0.0);
	struct rfl_net *net = rig_finish(&a.rig, node, false);

	(void)state;
	for (int half = 0; half <= 1; half++) {
		struct rfl_count_options options = { .training = true, .causal_half = half };
		struct rfl_count *count = count_of(net, options);
		int64_t s = half ? 6 * 36 : 384;

		CHECK("sdpa", &count->nodes[node],
		      { .pass = RFL_PASS_FORWARD,
			.macs = 8 * s,
			.e = { .add = 2 * s - 48,
			       .mul = s,
			       .compare = 2 * s - 48,
			       .special = 2 * s },
			.unfused = READ_WRITE(3 * 768, 768 + 192),
			.fused = READ_WRITE(3 * 768, 768 + 192) },
		      { .pass = RFL_PASS_DGRAD,
			.macs = 16 * s,
			.e = { .add = 192 - 48 + s, .mul = 192 + 2 * s },
			.unfused = READ_WRITE(5 * 768 + 2 * 192, 3 * 768),
			.fused = READ_WRITE(5 * 768 + 2 * 192, 3 * 768) },
		      { .pass = RFL_PASS_RECOMPUTE,
			.macs = 4 * s,
			.e = { .add = s, .mul = s, .special = s } });
		rfl_count_free(count);
	}
	rfl_net_free(net);
}

/* The multiply-adds of the fused operation without the recomputed ones; the scores, 384 values of 4
 * bytes in 48 rows, are stored. q, k, v and the result have 192 values each; the mask has 64. */
static void attention_without_a_fused_kernel(void **state)
{
	struct attention a = attention_new();
	int node = rfl_sdpa(a.rig.b, a.q, a.k, a.v, true, 0.0);
	struct rfl_net *net = rig_finish(&a.rig, node, false);
	struct rfl_count *count =
		count_of(net, (struct rfl_count_options){ .training = true,
							  .fused_attention = RFL_FUSED_NEVER });

	(void)state;
	/* unfused: q scaled; the product; mask; softmax; the second product */
	CHECK("sdpa", &count->nodes[node],
	      { .pass = RFL_PASS_FORWARD,
		.macs = 8 * 384,
		.e = { .add = 3 * 384 - 48, .mul = 192, .compare = 384 - 48, .special = 2 * 384 },
		.unfused = READ_WRITE(768 + 2 * 768 + (1536 + 256) + 1536 + (1536 + 768),
				      768 + 1536 + 1536 + 1536 + 768),
		.fused = READ_WRITE(2 * 768 + 1536 + 768, 1536 + 768) },
	      { .pass = RFL_PASS_DGRAD,
		.macs = 16 * 384,
		.e = { .add = 2 * 384 - 48, .mul = 192 + 2 * 384 },
		.unfused = READ_WRITE(2 * 768 + (1536 + 768) + 2 * 1536 + 2 * (1536 + 768) + 768,
				      1536 + 768 + 1536 + 2 * 768 + 768),
		.fused = READ_WRITE(2 * 768 + (1536 + 768) + 1536 + 2 * (1536 + 768),
				    1536 + 3 * 768) });
	rfl_count_free(count);
	rfl_net_free(net);
}

/* Query i sees the keys up to i, however many of either there are. */
static void a_mask_that_is_no_square(void **state)
{
	static const struct {
		int64_t queries, keys, pairs;
	} rows[] = { { 8, 8, 36 }, { 8, 5, 15 + 3 * 5 }, { 5, 8, 15 }, { 1, 8, 1 }, { 8, 1, 8 } };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct attention a = attention_new();
		int q = rfl_slice(a.rig.b, a.q, 1, 0, rows[i].queries, 1);
		int k = rfl_slice(a.rig.b, a.k, 1, 0, rows[i].keys, 1);
		int v = rfl_slice(a.rig.b, a.v, 1, 0, rows[i].keys, 1);
		int fused = rfl_sdpa(a.rig.b, q, k, v, true, 0.0);
		int scores = rfl_matmul(a.rig.b, q, k, true, true);
		int mixed = rfl_matmul(a.rig.b, scores, v, false, true);
		int both = rfl_add(a.rig.b, fused, mixed, RFL_OUT_OF_PLACE);
		struct rfl_net *net = rig_finish(&a.rig, both, false);
		struct rfl_count *count =
			count_of(net, (struct rfl_count_options){ .causal_half = true });
		int64_t macs = 6 * rows[i].pairs * 4;

		assert_int_equal(count->nodes[fused].macs[RFL_PASS_FORWARD], 2 * macs);
		assert_int_equal(count->nodes[scores].macs[RFL_PASS_FORWARD], macs);
		assert_int_equal(count->nodes[mixed].macs[RFL_PASS_FORWARD], macs);
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

/* Keys that were transposed before the product: the square is the result all the same. */
static void keys_that_are_transposed(void **state)
{
	struct attention a = attention_new();
	int kt = rfl_permute(a.rig.b, a.k, RFL_DIMS(0, 2, 1));
	int node = rfl_matmul(a.rig.b, a.q, kt, false, true);
	struct rfl_net *net = rig_finish(&a.rig, node, false);
	struct rfl_count *count = count_of(net, (struct rfl_count_options){ .causal_half = true });

	(void)state;
	assert_int_equal(count->nodes[node].macs[RFL_PASS_FORWARD], 6 * 36 * 4);
	rfl_count_free(count);
	rfl_net_free(net);
}

/* PyTorch's own numbers: B 4, H 8, d 64, 128 queries and keys, or 256 keys: forward, and with the
 * backward pass 3 times as much as products, 3.5 times as a fused operation. */
static void attention_as_flop_counter_mode_counts(void **state)
{
	static const struct {
		int64_t keys, forward;
	} rows[] = { { 128, 134217728 }, { 256, 268435456 } };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_net_builder *b = rfl_net_builder_new("rig", "test");
		int image = rfl_net_input(b, 8, 1, 64);
		int q = rfl_conv2d(b, image, "q", 8, .kernel = 1, .pad_h = 0);
		int kv = rfl_conv2d(b, image, "kv", 8, .kernel = 1);
		struct rig r = { .b = b };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_count_options options = { .batch = 4, .training = true };
		struct rfl_count *count;
		struct rfl_net *net;
		int many_q, many_k, node;

		many_q = rfl_net_pad(b, q, .dim = 1, .bottom = 127);
		many_k = rfl_net_pad(b, kv, .dim = 1, .bottom = rows[i].keys - 1);
		node = rfl_sdpa(b, many_q, many_k, many_k, false, 0.0);
		net = rig_finish(&r, node, false);
		assert_ok(rfl_count_net(net, &options, &count, &err), &err);
		const int64_t *macs = count->nodes[node].macs;

		assert_int_equal(2 * macs[RFL_PASS_FORWARD], rows[i].forward);
		assert_int_equal(2 * (macs[RFL_PASS_FORWARD] + macs[RFL_PASS_DGRAD]),
				 3 * rows[i].forward);
		assert_int_equal(4 * (macs[RFL_PASS_FORWARD] + macs[RFL_PASS_DGRAD] +
				      macs[RFL_PASS_RECOMPUTE]),
				 7 * rows[i].forward);
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

/* Five words of six features, four tokens: the gradient of 30 weights is added to the owner's. */
static void a_borrowed_weight(void **state)
{
	struct rig r = { .b = rfl_net_builder_new("rig", "test") };
	int owner = rfl_embedding(r.b, rfl_net_tokens(r.b, 4), "words", 5, 6);
	int head = rfl_linear_tied(r.b, owner, "head", owner);

	(void)state;
	check_net("head", rig_finish(&r, head, false), head, (struct rfl_count_options){ 0 },
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .macs = 240,
					       .unfused = READ_WRITE(192 + 120, 160),
					       .fused = READ_WRITE(192 + 120, 160) },
					     { .pass = RFL_PASS_DGRAD,
					       .macs = 240,
					       .unfused = READ_WRITE(160 + 120, 192),
					       .fused = READ_WRITE(160 + 120, 192) },
					     { .pass = RFL_PASS_WGRAD,
					       .macs = 240,
					       .e = { .add = 30 },
					       .unfused = READ_WRITE(192 + 160 + 240, 120 + 120),
					       .fused = READ_WRITE(192 + 160 + 120, 120) } },
		  3);
}

/* A dropout masks and scales the scores, 384 of them in 48 rows, and their gradient. */
static void attention_with_dropout(void **state)
{
	const struct rfl_traffic forward = READ_WRITE(3 * 1536, 1536 + 192);
	const struct rfl_traffic backward = READ_WRITE(5 * 1536 + 2 * 192, 3 * 1536);

	(void)state;
	CASE("sdpa dropout",
	     { .pass = RFL_PASS_FORWARD,
	       .macs = 384 * 16,
	       .e = { .add = 720, .mul = 2 * 384, .compare = 2 * 384 - 48, .special = 768 },
	       .unfused = forward,
	       .fused = forward },
	     { .pass = RFL_PASS_DGRAD,
	       .macs = 2 * 384 * 16,
	       .e = { .add = 384 - 48 + 384, .mul = 384 + 3 * 384 },
	       .unfused = backward,
	       .fused = backward },
	     { .pass = RFL_PASS_RECOMPUTE,
	       .macs = 384 * 8,
	       .e = { .add = 384, .mul = 384, .special = 384 } });
}

/* 2 rows of 10 logits: 80 bytes, 16 of labels. */
static void losses(void **state)
{
	struct rfl_net *net = classifier(RFL_LOSS_COMPOSED);
	struct rfl_count *count = count_of(net, (struct rfl_count_options){ .training = true });

	(void)state;
	CHECK("loss", &count->loss,
	      { .pass = RFL_PASS_FORWARD,
		.e = { .add = 59, .compare = 18, .special = 23 },
		.unfused = READ_WRITE(6 * 80 + 5 * 8 + 16, 4 * 80 + 4 * 8 + 16),
		.fused = READ_WRITE(80 + 16, 0) },
	      { .pass = RFL_PASS_DGRAD,
		.e = { .add = 76, .mul = 20, .special = 3 },
		.unfused = READ_WRITE(10 * 80 + 5 * 8 + 32, 8 * 80 + 6 * 8),
		.fused = READ_WRITE(80 + 16, 80) });
	rfl_count_free(count);
	rfl_net_free(net);
	net = classifier(RFL_LOSS_FUSED);
	count = count_of(net, (struct rfl_count_options){ .training = true });
	CHECK("loss", &count->loss,
	      { .pass = RFL_PASS_FORWARD,
		.e = { .add = 59, .compare = 18, .special = 23 },
		.unfused = READ_WRITE(80 + 16, 80),
		.fused = READ_WRITE(80 + 16, 0) },
	      { .pass = RFL_PASS_DGRAD,
		.e = { .add = 2, .mul = 20, .special = 20 },
		.unfused = READ_WRITE(2 * 80 + 16, 2 * 80),
		.fused = READ_WRITE(80 + 16, 80) });
	rfl_count_free(count);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention_as_two_products),
		cmocka_unit_test(attention_in_one_operation),
		cmocka_unit_test(attention_without_a_fused_kernel),
		cmocka_unit_test(a_mask_that_is_no_square),
		cmocka_unit_test(keys_that_are_transposed),
		cmocka_unit_test(attention_as_flop_counter_mode_counts),
		cmocka_unit_test(a_borrowed_weight),
		cmocka_unit_test(attention_with_dropout),
		cmocka_unit_test(losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
