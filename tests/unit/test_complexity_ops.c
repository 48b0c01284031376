/*
 * test_complexity_ops.c - what each operation costs, worked out by hand for a batch of two: tensors
 * of 384 elements, 1536 bytes, 48 rows of 8. Attention and the loss:
 * test_complexity_ops_attention.c.
 */
#include "tests/unit/ops_expect.h"
#include "tests/unit/ops_rig.h"

/* Per element; all of them move the same, but for ReLU's bits. */
static void activations(void **state)
{
	static const struct {
		const char *name;
		struct rfl_elementwise forward, dgrad;
		int64_t dgrad_tensors;
	} rows[] = {
		{ "sigmoid", { .add = 1, .special = 2 }, { .add = 1, .mul = 2 }, 2 },
		{ "tanh", { .special = 1 }, { .add = 1, .mul = 2 }, 2 },
		{ "silu", { .add = 1, .special = 2 }, { .add = 3, .mul = 3, .special = 2 }, 2 },
		/* t: 1 + e, exp, log, tanh; x t; then s: 1 + e, exp, 1 / (1 + e); t t, 1 - t t,
		 * x s, their product, t + that, dY times that */
		{ "mish",
		  { .add = 1, .mul = 1, .special = 3 },
		  { .add = 4, .mul = 4, .special = 5 },
		  2 },
		{ "gelu",
		  { .add = 1, .mul = 3, .special = 1 },
		  { .add = 2, .mul = 7, .special = 2 },
		  2 },
		{ "gelu tanh",
		  { .add = 2, .mul = 6, .special = 1 },
		  { .add = 5, .mul = 12, .special = 1 },
		  2 },
		{ "hard_sigmoid",
		  { .add = 1, .mul = 1, .compare = 2 },
		  { .mul = 1, .compare = 2 },
		  2 },
		{ "hard_swish",
		  { .add = 1, .mul = 2, .compare = 2 },
		  { .add = 1, .mul = 2, .compare = 2 },
		  2 },
		{ "exp", { .special = 1 }, { .mul = 1 }, 2 },
		{ "log", { .special = 1 }, { .special = 1 }, 2 },
		{ "rsqrt", { .special = 2 }, { .mul = 4 }, 4 },
		{ "square", { .mul = 1 }, { .mul = 2 }, 4 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		const struct rfl_elementwise *f = &rows[i].forward, *d = &rows[i].dgrad;
		int64_t reads = rows[i].dgrad_tensors;

		CASE(rows[i].name,
		     { .pass = RFL_PASS_FORWARD,
		       .e = { 384 * f->add, 384 * f->mul, 384 * f->compare, 384 * f->special },
		       .unfused = READ_WRITE(1536, 1536) },
		     { .pass = RFL_PASS_DGRAD,
		       .e = { 384 * d->add, 384 * d->mul, 384 * d->compare, 384 * d->special },
		       .unfused = READ_WRITE(reads * 1536, (reads - 1) * 1536),
		       .fused = READ_WRITE(1536, 0) });
	}
	CASE("relu6",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .compare = 768 },
	       .unfused = READ_WRITE(1536, 1536),
	       .fused = READ_WRITE(0, 48) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .compare = 768 },
	       .unfused = READ_WRITE(3072, 1536),
	       .fused = READ_WRITE(48, 0) });
}

/* Places of 8 bytes per output, 96 of them; fused one byte. Of six results six bits are a byte. */
static void places_and_bits(void **state)
{
	struct rig r = rig_new();
	int mean = rfl_adaptive_avg_pool(r.b, r.x, "pool", 1, 1);
	int relu = rfl_relu(r.b, mean, "relu", RFL_OUT_OF_PLACE);

	(void)state;
	CASE("max_pool",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .compare = 96 * 3 },
	       .unfused = READ_WRITE(1536, 96 * (4 + 8)),
	       .fused = READ_WRITE(1536, 96 * (4 + 1)) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 96 },
	       .unfused = READ_WRITE(96 * (4 + 8), 1536),
	       .fused = READ_WRITE(96 * (4 + 1), 1536) });
	check_net("relu of six", rig_finish(&r, relu, false), relu, (struct rfl_count_options){ 0 },
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .e = { .compare = 6 },
					       .unfused = READ_WRITE(24, 24),
					       .fused = READ_WRITE(0, 1) },
					     { .pass = RFL_PASS_DGRAD,
					       .e = { .compare = 6 },
					       .unfused = READ_WRITE(48, 24),
					       .fused = READ_WRITE(1, 0) } },
		  2);
}

/* In place or not: the copy that PyTorch makes of what it overwrites does not count as traffic. */
static void in_place(void **state)
{
	(void)state;
	CASE("silu inplace",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 384, .special = 768 },
	       .unfused = READ_WRITE(1536, 1536) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 1152, .mul = 1152, .special = 768 },
	       .unfused = READ_WRITE(3072, 1536),
	       .fused = READ_WRITE(1536, 0) });
	CASE("sigmoid inplace",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 384, .special = 768 },
	       .unfused = READ_WRITE(1536, 1536) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 384, .mul = 768 },
	       .unfused = READ_WRITE(3072, 1536),
	       .fused = READ_WRITE(1536, 0) });
	CASE("mul inplace",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .mul = 384 },
	       .unfused = READ_WRITE(3072, 1536),
	       .fused = READ_WRITE(1536, 0) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .mul = 768 },
	       .unfused = READ_WRITE(6144, 3072),
	       .fused = READ_WRITE(3072, 1536) });
}

static void steps(void **state)
{
	(void)state;
	CASE("affine",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 384, .mul = 384 },
	       .unfused = READ_WRITE(3072, 3072) },
	     { .pass = RFL_PASS_DGRAD, .e = { .mul = 384 }, .unfused = READ_WRITE(1536, 1536) });
	CASE("rope",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 384, .mul = 768 },
	       .unfused = READ_WRITE(1536 + 256, 1536) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 384, .mul = 768 },
	       .unfused = READ_WRITE(1536 + 256, 1536) });
	CASE("causal_mask",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .compare = 384 },
	       .unfused = READ_WRITE(1536 + 64, 1536) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .compare = 384 },
	       .unfused = READ_WRITE(1536 + 64, 1536) });
	CASE("stochastic_depth",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .mul = 384, .compare = 2 },
	       .unfused = READ_WRITE(1536 + 8, 1536 + 8),
	       .fused = READ_WRITE(8, 8) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .mul = 384 },
	       .unfused = READ_WRITE(1536 + 8, 1536),
	       .fused = READ_WRITE(8, 0) });
}

/* 8 features, so 64 bytes of weight and bias; 48 rows, so 192 bytes of one number per row. */
static void norms_and_softmax(void **state)
{
	(void)state;
	CASE("softmax",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 384 + 336, .compare = 336, .special = 768 },
	       .unfused = READ_WRITE(1536, 1536) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 336 + 384, .mul = 768 },
	       .unfused = READ_WRITE(3072, 1536),
	       .fused = READ_WRITE(1536, 0) });
	CASE("layer_norm",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 1488, .mul = 1248, .special = 96 },
	       .unfused = READ_WRITE(1536 + 64, 1536 + 384),
	       .fused = READ_WRITE(64, 384) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 1824, .mul = 2016 },
	       .unfused = READ_WRITE(3072 + 384 + 32, 1536),
	       .fused = READ_WRITE(1536 + 384 + 32, 0) },
	     { .pass = RFL_PASS_WGRAD,
	       .e = { .add = 1136, .mul = 768 },
	       .unfused = READ_WRITE(3072 + 384, 64),
	       .fused = READ_WRITE(0, 64) });
	CASE("rms_norm",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 384, .mul = 1200, .special = 96 },
	       .unfused = READ_WRITE(1536 + 32, 1536 + 192),
	       .fused = READ_WRITE(32, 192) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 720, .mul = 1680 },
	       .unfused = READ_WRITE(3072 + 192 + 32, 1536),
	       .fused = READ_WRITE(1536 + 192 + 32, 0) },
	     { .pass = RFL_PASS_WGRAD,
	       .e = { .add = 376, .mul = 768 },
	       .unfused = READ_WRITE(3072 + 192, 32),
	       .fused = READ_WRITE(0, 32) });
}

/* The sums of a frozen batch norm are part of dgrad; a frozen linear layer has no wgrad. */
static void frozen_layers(void **state)
{
	static const char *const names[] = { "op" };
	struct rfl_count_options options = { .frozen = names, .nfrozen = 1 };
	struct rfl_net *net;
	int node;

	(void)state;
	net = rig_case("batch_norm", &node);
	check_net("frozen batch_norm", net, node, options,
		  (const struct expected[]){
			  { .pass = RFL_PASS_FORWARD,
			    .e = { .add = 1542, .mul = 795, .special = 6 },
			    .unfused = READ_WRITE(3072 + 48, 1536 + 48),
			    .fused = READ_WRITE(48, 48) },
			  { .pass = RFL_PASS_DGRAD,
			    .e = { .add = 1152 + 1146, .mul = 783 + 387 },
			    .unfused = READ_WRITE(3072 + 24 + 3072 + 60, 24 + 1536),
			    .fused = READ_WRITE(1536 + 24 + 1536 + 60, 24) } },
		  2);
	net = rig_case("linear", &node);
	check_net("frozen linear", net, node, options,
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .macs = 1920,
					       .unfused = READ_WRITE(1536 + 180, 960),
					       .fused = READ_WRITE(1536 + 180, 960) },
					     { .pass = RFL_PASS_DGRAD,
					       .macs = 1920,
					       .unfused = READ_WRITE(960 + 160, 1536),
					       .fused = READ_WRITE(960 + 160, 1536) } },
		  2);
}

/* One number per image, as in squeeze and excitation: 6 of 24 bytes. */
static void broadcasting(void **state)
{
	struct rig r = rig_new();
	int scale = rfl_reduce(r.b, RFL_OP_MEAN, r.y, 1, 2, true);
	int node = rfl_binary(r.b, RFL_OP_MUL, r.x, scale, RFL_OUT_OF_PLACE);

	(void)state;
	check_net("mul of one number per image", rig_finish(&r, node, false), node,
		  (struct rfl_count_options){ 0 },
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .e = { .mul = 384 },
					       .unfused = READ_WRITE(1536 + 24, 1536),
					       .fused = READ_WRITE(24, 0) },
					     { .pass = RFL_PASS_DGRAD,
					       .e = { .add = 378, .mul = 768 },
					       .unfused = READ_WRITE(4 * 1536 + 24, 2 * 1536 + 24),
					       .fused = READ_WRITE(24 + 1536, 24) } },
		  2);
	/* conversely, what is written is still the small gradient */
	r = rig_new();
	scale = rfl_reduce(r.b, RFL_OP_MEAN, r.y, 1, 2, true);
	node = rfl_binary(r.b, RFL_OP_MUL, scale, r.x, RFL_OUT_OF_PLACE);
	check_net("one number per image times", rig_finish(&r, node, false), node,
		  (struct rfl_count_options){ 0 },
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .e = { .mul = 384 },
					       .unfused = READ_WRITE(1536 + 24, 1536),
					       .fused = READ_WRITE(24, 0) },
					     { .pass = RFL_PASS_DGRAD,
					       .e = { .add = 378, .mul = 768 },
					       .unfused = READ_WRITE(4 * 1536 + 24, 2 * 1536 + 24),
					       .fused = READ_WRITE(24 + 1536, 24) } },
		  2);
	CASE("mul by parameter",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .mul = 384 },
	       .unfused = READ_WRITE(1536 + 32, 1536),
	       .fused = READ_WRITE(32, 0) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .mul = 384 },
	       .unfused = READ_WRITE(1536 + 32, 1536),
	       .fused = READ_WRITE(32, 0) },
	     { .pass = RFL_PASS_WGRAD,
	       .e = { .add = 376, .mul = 384 },
	       .unfused = READ_WRITE(3 * 1536, 1536 + 32),
	       .fused = READ_WRITE(1536, 32) });
	CASE("mul by constant",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .mul = 384 },
	       .unfused = READ_WRITE(1536 + 32, 1536),
	       .fused = READ_WRITE(32, 0) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .mul = 384 },
	       .unfused = READ_WRITE(1536 + 32, 1536),
	       .fused = READ_WRITE(32, 0) });
	CASE("mul",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .mul = 384 },
	       .unfused = READ_WRITE(3072, 1536),
	       .fused = READ_WRITE(1536, 0) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .mul = 768 },
	       .unfused = READ_WRITE(6144, 3072),
	       .fused = READ_WRITE(3072, 1536) });
	CASE("add", { .pass = RFL_PASS_FORWARD,
		      .e = { .add = 384 },
		      .unfused = READ_WRITE(3072, 1536),
		      .fused = READ_WRITE(1536, 0) });
}

/* The steps of a composed softmax: 48 rows, 192 bytes of one number per row. */
static void softmax_by_steps(void **state)
{
	struct rig r = rig_new();
	int max = rfl_reduce(r.b, RFL_OP_MAX, r.x, 2, 1, true);
	int sub = rfl_binary(r.b, RFL_OP_SUB, r.x, max, RFL_OUT_OF_PLACE);
	int sum = rfl_reduce(r.b, RFL_OP_SUM, sub, 2, 1, true);
	int div = rfl_binary(r.b, RFL_OP_DIV, sub, sum, RFL_OUT_OF_PLACE);
	struct rfl_net *net = rig_finish(&r, div, false);
	struct rfl_count *count = count_of(net, (struct rfl_count_options){ .training = true });

	(void)state;
	CHECK("max", &count->nodes[max],
	      { .pass = RFL_PASS_FORWARD,
		.e = { .compare = 336 },
		.unfused = READ_WRITE(1536, 576),
		.fused = READ_WRITE(1536, 576) },
	      { .pass = RFL_PASS_DGRAD,
		.unfused = READ_WRITE(576, 1728),
		.fused = READ_WRITE(576, 1728) });
	CHECK("div", &count->nodes[div],
	      { .pass = RFL_PASS_FORWARD,
		.e = { .special = 384 },
		.unfused = READ_WRITE(1536 + 192, 1536),
		.fused = READ_WRITE(192, 0) },
	      { .pass = RFL_PASS_DGRAD,
		.e = { .add = 336, .mul = 384, .special = 1152 },
		.unfused = READ_WRITE(7 * 1536 + 3 * 192, 5 * 1536 + 192),
		.fused = READ_WRITE(1536 + 2 * 192, 192) });
	/* Its result has two readers: their gradients are added, and it is fused into nothing else. */
	CHECK("sub", &count->nodes[sub],
	      { .pass = RFL_PASS_FORWARD,
		.e = { .add = 384 },
		.unfused = READ_WRITE(1536 + 192, 1536),
		.fused = READ_WRITE(192, 0) },
	      { .pass = RFL_PASS_DGRAD,
		.e = { .add = 336 + 384 },
		.unfused = READ_WRITE(2 * 1536 + 3072, 1536 + 192 + 1536),
		.fused = READ_WRITE(1536, 192) });
	rfl_count_free(count);
	rfl_net_free(net);
}

static void reductions_and_pools(void **state)
{
	struct rig r;
	int node;

	(void)state;
	CASE("mean",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 378, .special = 6 },
	       .unfused = READ_WRITE(1536, 24),
	       .fused = READ_WRITE(1536, 24) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .special = 6 },
	       .unfused = READ_WRITE(24, 1536),
	       .fused = READ_WRITE(24, 1536) });
	CASE("sum", { .pass = RFL_PASS_FORWARD,
		      .e = { .add = 378 },
		      .unfused = READ_WRITE(1536, 24),
		      .fused = READ_WRITE(1536, 24) });
	/* 16 windows of 4 taps in 6 planes. */
	CASE("avg_pool",
	     { .pass = RFL_PASS_FORWARD,
	       .e = { .add = 288, .special = 96 },
	       .unfused = READ_WRITE(1536, 384),
	       .fused = READ_WRITE(1536, 384) },
	     { .pass = RFL_PASS_DGRAD,
	       .e = { .add = 384, .special = 96 },
	       .unfused = READ_WRITE(384, 1536),
	       .fused = READ_WRITE(384, 1536) });
	/* 3 x 3 with padding 1: 22 taps along an axis of 8 lie inside. */
	r = rig_new();
	node = rfl_avg_pool(r.b, r.x, "op", .kernel = 3, .stride = 1, .pad = 1,
			    .exclude_padding = true);
	check_net("avg_pool without padding", rig_finish(&r, node, false), node,
		  (struct rfl_count_options){ 0 },
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .e = { .add = 6 * 22 * 22 - 384, .special = 384 },
					       .unfused = READ_WRITE(1536, 1536),
					       .fused = READ_WRITE(1536, 1536) },
					     { .pass = RFL_PASS_DGRAD,
					       .e = { .add = 6 * 22 * 22, .special = 384 },
					       .unfused = READ_WRITE(1536, 1536),
					       .fused = READ_WRITE(1536, 1536) } },
		  2);
	/* 8 onto 3: 0-2, 2-5, 5-7, ten taps along an axis. */
	r = rig_new();
	node = rfl_adaptive_avg_pool(r.b, r.x, "op", 3, 3);
	check_net("adaptive_avg_pool", rig_finish(&r, node, false), node,
		  (struct rfl_count_options){ 0 },
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .e = { .add = 600 - 54, .special = 54 },
					       .unfused = READ_WRITE(1536, 216),
					       .fused = READ_WRITE(1536, 216) },
					     { .pass = RFL_PASS_DGRAD,
					       .e = { .add = 600, .special = 54 },
					       .unfused = READ_WRITE(216, 1536),
					       .fused = READ_WRITE(216, 1536) } },
		  2);
}

static void copies(void **state)
{
	struct rig r = rig_new();
	int token = rfl_parameter(r.b, "token", RFL_DIMS(1, 8, 8), 0);
	int node = rfl_concat(r.b, (const int[]){ token, r.x }, 2, 0);

	(void)state;
	/* 64 elements of a learned tensor, the same for both samples. */
	check_net("concat of a learned tensor", rig_finish(&r, node, false), node,
		  (struct rfl_count_options){ 0 },
		  (const struct expected[]){ { .pass = RFL_PASS_FORWARD,
					       .unfused = READ_WRITE(1536 + 256, 2048),
					       .fused = READ_WRITE(1536 + 256, 2048) },
					     { .pass = RFL_PASS_WGRAD,
					       .e = { .add = 64 },
					       .unfused = READ_WRITE(512, 256),
					       .fused = READ_WRITE(512, 256) } },
		  2);
	CASE("concat", { .pass = RFL_PASS_FORWARD,
			 .unfused = READ_WRITE(3072, 3072),
			 .fused = READ_WRITE(3072, 3072) });
	CASE("contiguous", { .pass = RFL_PASS_FORWARD,
			     .unfused = READ_WRITE(1536, 1536),
			     .fused = READ_WRITE(1536, 1536) });
	CASE("pad",
	     { .pass = RFL_PASS_FORWARD,
	       .unfused = READ_WRITE(1536, 1944),
	       .fused = READ_WRITE(1536, 1944) },
	     { .pass = RFL_PASS_DGRAD,
	       .unfused = READ_WRITE(1536, 1536),
	       .fused = READ_WRITE(1536, 1536) });
	CASE("roll",
	     { .pass = RFL_PASS_FORWARD,
	       .unfused = READ_WRITE(1536, 1536),
	       .fused = READ_WRITE(1536, 1536) },
	     { .pass = RFL_PASS_DGRAD,
	       .unfused = READ_WRITE(1536, 1536),
	       .fused = READ_WRITE(1536, 1536) });
	CASE("slice", { .pass = RFL_PASS_DGRAD, .unfused = READ_WRITE(384, 1536) });
	/* 8 tokens of 6 features from a table of 30; 8 rows of 8 from a table of 40. */
	CASE("embedding",
	     { .pass = RFL_PASS_FORWARD,
	       .unfused = READ_WRITE(64 + 192, 192),
	       .fused = READ_WRITE(64 + 192, 192) },
	     { .pass = RFL_PASS_WGRAD,
	       .e = { .add = 48 },
	       .unfused = READ_WRITE(64 + 192, 120),
	       .fused = READ_WRITE(64 + 192, 120) });
	CASE("gather",
	     { .pass = RFL_PASS_FORWARD,
	       .unfused = READ_WRITE(64 + 256, 256),
	       .fused = READ_WRITE(64 + 256, 256) },
	     { .pass = RFL_PASS_WGRAD,
	       .e = { .add = 64 },
	       .unfused = READ_WRITE(64 + 256, 160),
	       .fused = READ_WRITE(64 + 256, 160) });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(activations),
		cmocka_unit_test(places_and_bits),
		cmocka_unit_test(in_place),
		cmocka_unit_test(steps),
		cmocka_unit_test(norms_and_softmax),
		cmocka_unit_test(frozen_layers),
		cmocka_unit_test(broadcasting),
		cmocka_unit_test(softmax_by_steps),
		cmocka_unit_test(reductions_and_pools),
		cmocka_unit_test(copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
