/*
 * test_complexity_count.c - counts to the integer: against loops that count, and against layers
 * worked out by hand.
 */
#include "tests/unit/published.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/count_rig.h"

static void every_layer_has_its_passes(void **state)
{
	static const char *const models[] = {
		"resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
		"vgg11",    "vgg16",    "vgg16_bn", "vgg19",     "mobilenet_v2",
	};

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++) {
		struct rfl_net *net = build(models[m]);
		struct rfl_count *count =
			count_of(net, (struct rfl_count_options){ .training = true });
		struct rfl_csv *csv;
		char file[64];
		int node = -1, layers = 0;

		(void)snprintf(file, sizeof(file), "layers/%s.csv", models[m]);
		csv = open_published(file);
		while (next(csv)) {
			if (!integer(csv, "macs"))
				continue;
			do
				node++;
			while (node < net->nnodes && !count->nodes[node].macs[RFL_PASS_FORWARD]);
			assert_true(node < net->nnodes);
			assert_string_equal(net->nodes[node].name, text(csv, "name"));
			assert_int_equal(count->nodes[node].macs[RFL_PASS_FORWARD],
					 integer(csv, "macs"));
			assert_int_equal(count->nodes[node].macs[RFL_PASS_WGRAD],
					 integer(csv, "macs"));
			assert_int_equal(count->nodes[node].macs[RFL_PASS_DGRAD],
					 layers ? integer(csv, "macs") : 0);
			if (net->nodes[node].op == RFL_OP_CONV2D)
				assert_int_equal(count->nodes[node].macs_excl_padding,
						 integer(csv, "conv_macs_excl_pad"));
			layers++;
		}
		assert_true(layers > 8);
		rfl_csv_close(csv);
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

/* PyTorch's own test of FlopCounterMode: ResNet-18 with an image that requires a gradient. */
static void image_that_needs_a_gradient(void **state)
{
	struct rfl_net *net = build("resnet18");
	struct rfl_count *count =
		count_of(net, (struct rfl_count_options){ .training = true, .input_grad = true });

	(void)state;
	assert_int_equal(rfl_count_training_flops(count), INT64_C(10884440064));
	assert_int_equal(count->total.traffic[RFL_FUSION_COMPULSORY][RFL_PASS_DGRAD].write_bytes,
			 3 * 224 * 224 * 4);
	rfl_count_free(count);
	rfl_net_free(net);
}

/*
 * Forward traffic of an inference in F32, in MB, rounded as the published table of the three levels
 * rounds it (three digits; whole MB from 100 on).
 */
static void inference_traffic_at_three_levels(void **state)
{
	static const struct {
		const char *model;
		int64_t batch;
		const char *mb[RFL_FUSION_COUNT];
	} rows[] = {
		{ "resnet18", 1, { "117", "72.5", "47.4" } },
		{ "resnet18", 32, { "2292", "872", "66" } },
		{ "resnet50", 1, { "426", "216", "103" } },
		{ "resnet50", 32, { "10456", "3738", "122" } },
		{ "vgg16", 1, { "783", "675", "554" } },
		{ "vgg16", 32, { "7912", "4441", "573" } },
		{ "mobilenet_v2", 1, { "173", "69", "14.6" } },
		{ "mobilenet_v2", 32, { "5099", "1771", "33" } },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_net *net = build(rows[i].model);
		struct rfl_count *count =
			count_of(net, (struct rfl_count_options){ .batch = rows[i].batch });

		for (int level = 0; level < RFL_FUSION_COUNT; level++) {
			double mb = (double)rfl_count_bytes(count, (enum rfl_fusion)level,
							    RFL_SCOPE_FORWARD) /
				    1e6;
			int digits = strchr(rows[i].mb[level], '.') ? 1 : 0;
			char got[32];

			(void)snprintf(got, sizeof(got), "%.*f", digits, mb);
			assert_string_equal(got, rows[i].mb[level]);
		}
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

/* Depthwise backward is twice forward: a weight gradient that forgets the groups is 32 times that.
 */
static void groups_count_in_every_pass(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_net *net;
	struct rfl_count *count;
	int x;

	(void)state;
	x = rfl_net_input(b, 32, 8, 8);
	x = rfl_conv2d(b, x, "dw", 64, .kernel = 3, .groups = 32);
	net = finish(b, rfl_flatten(b, x));
	count = count_of(net, (struct rfl_count_options){ .training = true, .input_grad = true });
	assert_int_equal(count->total.macs[RFL_PASS_FORWARD], 64 * 36 * 9);
	assert_int_equal(count->total.macs[RFL_PASS_DGRAD], 64 * 36 * 9);
	assert_int_equal(count->total.macs[RFL_PASS_WGRAD], 64 * 36 * 9);
	assert_int_equal(count->params, 64 * 9);
	rfl_count_free(count);
	rfl_net_free(net);
}

/* The layer of docs/internals/counting.md, worked out by hand there. */
static void the_worked_layer(void **state)
{
	struct rfl_net *net = build("resnet18");
	struct rfl_count *count =
		count_of(net, (struct rfl_count_options){ .batch = 2, .training = true });
	int at = -1;

	(void)state;
	for (int i = 0; i < net->nnodes; i++)
		if (strcmp(net->nodes[i].name, "layer2.0.conv1") == 0)
			at = i;
	assert_true(at > 0);
	for (int pass = RFL_PASS_FORWARD; pass <= RFL_PASS_WGRAD; pass++)
		assert_int_equal(count->nodes[at].macs[pass], 115605504);
	assert_int_equal(count->nodes[at].macs[RFL_PASS_RECOMPUTE], 0);
	for (int level = RFL_FUSION_UNFUSED; level <= RFL_FUSION_FUSED; level++) {
		const struct rfl_traffic *t = count->nodes[at].traffic[level];

		assert_int_equal(t[RFL_PASS_FORWARD].read_bytes, 1605632 + 294912);
		assert_int_equal(t[RFL_PASS_FORWARD].write_bytes, 802816);
		assert_int_equal(t[RFL_PASS_DGRAD].read_bytes, 802816 + 294912);
		assert_int_equal(t[RFL_PASS_DGRAD].write_bytes, 1605632);
		assert_int_equal(t[RFL_PASS_WGRAD].read_bytes, 1605632 + 802816);
		assert_int_equal(t[RFL_PASS_WGRAD].write_bytes, 294912);
	}
	assert_int_equal(count->nodes[at].traffic[RFL_FUSION_COMPULSORY][0].read_bytes, 294912);
	assert_int_equal(count->nodes[at].traffic[RFL_FUSION_COMPULSORY][2].write_bytes, 294912);
	/* its batch norm: n = 2 * 128 * 28 * 28 */
	assert_int_equal(count->nodes[at + 1].elementwise[RFL_PASS_FORWARD].add,
			 4 * 200704 + 2 * 128);
	assert_int_equal(count->nodes[at + 1].traffic[RFL_FUSION_UNFUSED][0].read_bytes,
			 2 * 802816 + 4 * 512);
	assert_int_equal(count->nodes[at + 1].traffic[RFL_FUSION_FUSED][0].read_bytes, 4 * 512);
	/* its ReLU: one bit per element is kept */
	assert_int_equal(count->nodes[at + 2].elementwise[RFL_PASS_FORWARD].compare, 200704);
	assert_int_equal(count->nodes[at + 2].traffic[RFL_FUSION_FUSED][0].write_bytes, 25088);
	rfl_count_free(count);
	rfl_net_free(net);
}

/* conv -> (bn -> relu, identity) -> add -> pool: every elementwise row in one small net. */
static void elementwise_by_hand(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_net *net;
	struct rfl_count *count;
	const struct rfl_elementwise *e;
	int x, y, conv, bn, relu, add, max, avg;

	(void)state;
	x = rfl_net_input(b, 2, 6, 6);
	conv = x = rfl_conv2d(b, x, "conv", 4, .kernel = 3, .pad = 1, .bias = true);
	bn = y = rfl_batch_norm(b, x, "bn");
	relu = y = rfl_unary(b, RFL_OP_RELU6, y, "relu", RFL_INPLACE);
	add = x = rfl_add(b, y, x, RFL_OUT_OF_PLACE);
	max = x = rfl_max_pool(b, x, "max", .kernel = 2);
	avg = x = rfl_adaptive_avg_pool(b, x, "avg", 2, 2); /* 3 -> 2: windows of 2 that overlap */
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "fc", 5, true);
	net = finish(b, x);
	count = count_of(net, (struct rfl_count_options){ .batch = 10, .training = true });

	assert_int_equal(count->nodes[conv].bias_adds, 1440);
	/* bias gradient, and the join of two gradients of the convolution's output */
	assert_int_equal(count->nodes[conv].elementwise[RFL_PASS_WGRAD].add, 1440 - 4);
	assert_int_equal(count->nodes[conv].elementwise[RFL_PASS_DGRAD].add, 1440);
	assert_int_equal(count->nodes[conv].traffic[RFL_FUSION_UNFUSED][RFL_PASS_DGRAD].read_bytes,
			 2 * 4 * 1440);
	assert_int_equal(count->nodes[conv].traffic[RFL_FUSION_UNFUSED][RFL_PASS_DGRAD].write_bytes,
			 4 * 1440);
	assert_int_equal(count->nodes[conv].traffic[RFL_FUSION_FUSED][RFL_PASS_DGRAD].read_bytes,
			 4 * 1440);
	e = count->nodes[bn].elementwise;
	assert_int_equal(e[RFL_PASS_FORWARD].add, 4 * 1440 + 8);
	assert_int_equal(e[RFL_PASS_FORWARD].mul, 2 * 1440 + 36);
	assert_int_equal(e[RFL_PASS_FORWARD].special, 8);
	assert_int_equal(e[RFL_PASS_WGRAD].add + e[RFL_PASS_WGRAD].mul, 4 * 1440 - 4);
	assert_int_equal(e[RFL_PASS_DGRAD].add + e[RFL_PASS_DGRAD].mul, 5 * 1440 + 20);
	/* the convolution's output is read by the sum too, so the batch norm writes its own */
	assert_int_equal(count->nodes[bn].traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD].write_bytes,
			 4 * 1440 + 4 * 4 * 4);
	assert_int_equal(count->nodes[relu].elementwise[RFL_PASS_FORWARD].compare, 2 * 1440);
	assert_int_equal(count->nodes[add].elementwise[RFL_PASS_FORWARD].add, 1440);
	assert_int_equal(count->nodes[add].traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD].read_bytes,
			 4 * 1440);
	assert_int_equal(count->nodes[max].elementwise[RFL_PASS_FORWARD].compare, 360 * 3);
	assert_int_equal(count->nodes[max].elementwise[RFL_PASS_DGRAD].add, 360);
	assert_int_equal(
		count->nodes[max].traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD].write_bytes,
		360 * (4 + 8));
	assert_int_equal(count->nodes[avg].elementwise[RFL_PASS_FORWARD].add, 40 * (16 - 4));
	assert_int_equal(count->nodes[avg].elementwise[RFL_PASS_FORWARD].special, 160);
	assert_int_equal(count->nodes[avg].elementwise[RFL_PASS_DGRAD].add, 40 * 16);
	/* the loss: 10 rows of 5 */
	e = count->loss.elementwise;
	assert_int_equal(e[RFL_PASS_FORWARD].compare, 10 * 4);
	assert_int_equal(e[RFL_PASS_FORWARD].add, 10 * (5 + 4 + 5) + 9);
	assert_int_equal(e[RFL_PASS_FORWARD].special, 10 * (5 + 1) + 1);
	assert_int_equal(rfl_elementwise_sum(&e[RFL_PASS_DGRAD]), 10 * (5 + 5 + 1));
	rfl_count_free(count);
	rfl_net_free(net);
}

static void inference_has_no_loss_and_no_dropout(void **state)
{
	struct rfl_net *net = build("vgg11");
	struct rfl_count *eval = count_of(net, (struct rfl_count_options){ .batch = 1 });
	struct rfl_count *train = count_of(net, (struct rfl_count_options){ .training = true });

	(void)state;
	assert_int_equal(rfl_elementwise_sum(&eval->loss.elementwise[RFL_PASS_FORWARD]), 0);
	assert_true(rfl_elementwise_sum(&train->loss.elementwise[RFL_PASS_FORWARD]) > 0);
	for (int i = 0; i < net->nnodes; i++) {
		if (net->nodes[i].op != RFL_OP_DROPOUT)
			continue;
		assert_int_equal(rfl_elementwise_sum(&eval->nodes[i].elementwise[0]), 0);
		assert_int_equal(rfl_elementwise_sum(&train->nodes[i].elementwise[0]), 2 * 4096);
		assert_int_equal(eval->nodes[i].traffic[RFL_FUSION_UNFUSED][0].read_bytes, 0);
	}
	assert_int_equal(train->total.macs[0], eval->total.macs[0]);
	rfl_count_free(eval);
	rfl_count_free(train);
	rfl_net_free(net);
}

/* Words per parameter of an update, and of a whole step at the compulsory level. */
static void optimizers(void **state)
{
	static const struct {
		enum rfl_optimizer_kind kind;
		int64_t words, flops, state;
		bool clip; /* two reads and a write of the gradients; square, sum, scale */
	} rows[] = {
		{ RFL_OPT_SGD, 6, 5, 0, true },    { RFL_OPT_ADAMW, 10, 17, 2, true },
		{ RFL_OPT_SGD, 3, 2, 0, false },   { RFL_OPT_MOMENTUM, 5, 4, 1, false },
		{ RFL_OPT_ADAM, 7, 13, 2, false }, { RFL_OPT_ADAMW, 7, 14, 2, false },
	};
	struct rfl_net *net = build("resnet18");
	int64_t params = rfl_net_param_count(net), buffers = rfl_net_buffer_count(net);
	int64_t outside = 4 * 3 * 224 * 224 + 8; /* image and label */

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_count *count =
			count_of(net, (struct rfl_count_options){ .training = true,
								  .grad_clip = rows[i].clip,
								  .optimizer = rows[i].kind });
		const int64_t least = rows[i].words - (rows[i].clip ? 3 : 0);

		assert_int_equal(count->optimizer.read_bytes + count->optimizer.write_bytes,
				 4 * rows[i].words * params);
		assert_int_equal(rfl_elementwise_sum(&count->optimizer_flops),
				 rows[i].flops * params);
		assert_int_equal(rfl_count_state_bytes(count), 4 * rows[i].state * params);
		assert_int_equal(rfl_count_bytes(count, RFL_FUSION_COMPULSORY, RFL_SCOPE_STEP),
				 4 * least * params + 2 * 4 * buffers + outside);
		assert_int_equal(rfl_count_bytes(count, RFL_FUSION_UNFUSED, RFL_SCOPE_STEP) -
					 rfl_count_bytes(count, RFL_FUSION_UNFUSED,
							 RFL_SCOPE_FORWARD_BACKWARD),
				 4 * rows[i].words * params);
		rfl_count_free(count);
	}
	rfl_net_free(net);
}

/* Sizes of elements: half in 16 bits; autocast keeps weights in 32. */
static void precisions(void **state)
{
	struct rfl_net *net = build("vgg11");
	struct rfl_count *f32 = count_of(net, (struct rfl_count_options){ .batch = 4 });
	struct rfl_count *f16 =
		count_of(net, (struct rfl_count_options){ .batch = 4, .dtype = RFL_DTYPE_F16 });
	struct rfl_count *amp = count_of(net, (struct rfl_count_options){ .batch = 4,
									  .dtype = RFL_DTYPE_BF16,
									  .master_weights = true });
	int64_t params = rfl_net_param_count(net);

	(void)state;
	for (int level = 0; level < RFL_FUSION_COUNT; level++)
		assert_int_equal(
			rfl_count_bytes(f32, (enum rfl_fusion)level, RFL_SCOPE_FORWARD),
			2 * rfl_count_bytes(f16, (enum rfl_fusion)level, RFL_SCOPE_FORWARD));
	/* unfused autocast: read 4, write 2, read 2 again; fused and compulsory: read 4 */
	assert_int_equal(rfl_count_bytes(amp, RFL_FUSION_UNFUSED, RFL_SCOPE_FORWARD) -
				 rfl_count_bytes(f16, RFL_FUSION_UNFUSED, RFL_SCOPE_FORWARD),
			 6 * params);
	assert_int_equal(rfl_count_bytes(amp, RFL_FUSION_FUSED, RFL_SCOPE_FORWARD) -
				 rfl_count_bytes(f16, RFL_FUSION_FUSED, RFL_SCOPE_FORWARD),
			 2 * params);
	assert_int_equal(rfl_count_bytes(amp, RFL_FUSION_COMPULSORY, RFL_SCOPE_FORWARD) -
				 rfl_count_bytes(f16, RFL_FUSION_COMPULSORY, RFL_SCOPE_FORWARD),
			 2 * params);
	assert_int_equal(amp->optimizer.read_bytes, 2 * f16->optimizer.read_bytes);
	rfl_count_free(f32);
	rfl_count_free(f16);
	rfl_count_free(amp);
	rfl_net_free(net);
}

/* More fusion never moves more, down to the step; MACs grow with the batch. */
static void check_levels(const struct rfl_net *net, struct rfl_count_options options)
{
	struct rfl_count *count = count_of(net, options);

	for (int scope = RFL_SCOPE_FORWARD; scope <= RFL_SCOPE_STEP; scope++) {
		int64_t bytes[RFL_FUSION_COUNT];

		for (int level = 0; level < RFL_FUSION_COUNT; level++)
			bytes[level] = rfl_count_bytes(count, (enum rfl_fusion)level,
						       (enum rfl_scope)scope);
		assert_true(bytes[RFL_FUSION_COMPULSORY] > 0);
		assert_true(bytes[RFL_FUSION_COMPULSORY] < bytes[RFL_FUSION_FUSED]);
		assert_true(bytes[RFL_FUSION_FUSED] < bytes[RFL_FUSION_UNFUSED]);
	}
	assert_int_equal(count->total.macs[RFL_PASS_FORWARD] % options.batch, 0);
	rfl_count_free(count);
}

static void levels_are_ordered(void **state)
{
	static const struct {
		enum rfl_dtype dtype;
		bool master_weights;
	} precisions[] = { { RFL_DTYPE_F32, false },
			   { RFL_DTYPE_F16, false },
			   { RFL_DTYPE_BF16, true } };
	const struct rfl_zoo_model *model;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_net *net = build(model->name);

		for (int k = 0; k < 3 * 2 * 4 * 2; k++)
			check_levels(net,
				     (struct rfl_count_options){
					     .batch = k / 24 ? 64 : 1,
					     .dtype = precisions[k % 3].dtype,
					     .master_weights = precisions[k % 3].master_weights,
					     .training = k / 3 % 2,
					     .optimizer = (enum rfl_optimizer_kind)(k / 6 % 4),
				     });
		rfl_net_free(net);
	}
}

/* Each kind fits, and so do the bytes; their sum, which a table shows, does not. */
static void refuses_elementwise_sums_that_do_not_fit(void **state)
{
	const int64_t outputs = INT64_C(985) * 985, compares = outputs * (16 * 16 - 1);
	struct rfl_count_options options = {
		.batch = INT64_MAX / compares / 2,
		.dtype = RFL_DTYPE_F16,
		.input_grad = true,
	};
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;
	struct rfl_net *net;
	int x = rfl_net_input(b, 1, 1000, 1000);

	(void)state;
	x = rfl_max_pool(b, x, "pool", .kernel = 16, .stride = 1);
	net = finish(b, rfl_flatten(b, x));
	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	assert_int_equal(count->total.elementwise[RFL_PASS_FORWARD].compare,
			 options.batch * compares);
	rfl_count_free(count);
	count = NULL;

	options.batch = INT64_MAX / compares; /* with one more addition per output: too many */
	assert_int_equal(rfl_count_net(net, &options, &count, &err), RFL_EOVERFLOW);
	assert_says(&err, "toy: totals at batch");
	assert_null(count);
	rfl_net_free(net);
}

static void refuses_impossible_batches(void **state)
{
	static const struct {
		int64_t batch;
		enum rfl_rc rc;
		const char *word;
	} cases[] = {
		{ 0, RFL_EINVAL, "batch 0" },
		{ -3, RFL_EINVAL, "batch -3" },
		{ INT64_MAX, RFL_EOVERFLOW, "resnet18: input" },
		{ INT64_C(1) << 38, RFL_EOVERFLOW, "resnet18: conv1 (Conv2d)" },
	};
	struct rfl_net *net = build("resnet18");

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_count_options options = { .batch = cases[i].batch };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_count *count = NULL;

		assert_int_equal(rfl_count_net(net, &options, &count, &err), cases[i].rc);
		assert_null(count);
		assert_says(&err, cases[i].word);
	}
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layer_has_its_passes),
		cmocka_unit_test(image_that_needs_a_gradient),
		cmocka_unit_test(inference_traffic_at_three_levels),
		cmocka_unit_test(groups_count_in_every_pass),
		cmocka_unit_test(the_worked_layer),
		cmocka_unit_test(elementwise_by_hand),
		cmocka_unit_test(inference_has_no_loss_and_no_dropout),
		cmocka_unit_test(optimizers),
		cmocka_unit_test(precisions),
		cmocka_unit_test(levels_are_ordered),
		cmocka_unit_test(refuses_impossible_batches),
		cmocka_unit_test(refuses_elementwise_sums_that_do_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
