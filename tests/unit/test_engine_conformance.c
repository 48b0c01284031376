/*
 * test_engine_conformance.c - every engine that is found, on small networks of one operation each
 * and on combinations that an engine may fuse, against the reference in double precision: values,
 * gradients, updates, recordings and state. `test_engine_conformance DEVICE PATTERN` runs the cases
 * of a device (cpu if there is no argument) whose names match, such as
 * 'planned*fp32/nhwc/residual'. A failure prints the tensor and its largest difference.
 */
#include "tests/unit/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"
#include "complexity/zoo/blocks.h"
#include "data/fill.h"
#include "tests/unit/rfl_test.h"

enum { MAX_BATCH = 4, SIDE = 8, CLASSES = 5, IMAGE = 3 * SIDE * SIDE, SAMPLES = 12 };
enum { MAX_REPORTS = 8 /* of a case */ };
enum { FLOATS = 1 << 14 }; /* no tensor, and no net's parameters together, has more */

/*
 * The largest relative error of a tensor, ||got - want|| / ||want||.
 *
 * fp32: a result is rounded by 2^-24 (6e-8), and again in each of about ten layers before or after
 * it; sums of at most 600 terms in float have errors of up to some ten roundings; batch norm
 * subtracts what may be ten times as large as the result. 1e-5 is 160 roundings.
 * bf16: a value is rounded by 2^-9 (0.2 %), which ten layers make 0.6 %, and 3 % where batch norm
 * subtracts; gradients pass twice as many (2.6 % were seen). Where a value may be rounded onto a
 * kink, or its sign depends on whether the terms of a sum were rounded, one in some hundred
 * elements of a gradient is another: 20 %. Updates start from the engine's own gradients and are
 * float32 in both.
 *
 * A gradient that is small only because large terms cancel is compared with a share of the root
 * mean square of all gradients instead: a convolution's bias before batch norm has none.
 */
static const struct tolerance {
	double value, gradient, kinked, update, share;
} tolerances[] = {
	{ .value = 1e-5, .gradient = 1e-5, .kinked = 1e-5, .update = 1e-5, .share = 0.1 },
	{ .value = 3e-2, .gradient = 6e-2, .kinked = 2e-1, .update = 1e-5, .share = 1 },
};

/* clang-format off */
static const struct {
	const char *name;
	struct rfl_optimizer o;
} optimizers[] = {
	{ "sgd with momentum", { .rule = RFL_RULE_SGD, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01 } },
	{ "sgd with clipping", { .rule = RFL_RULE_SGD, .lr = 0.2, .grad_clip = 0.05 } },
	{ "adam", { .rule = RFL_RULE_ADAM, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.9999, .eps = 1e-4, .weight_decay = 0.1, .grad_clip = 1e6 } },
	{ "adamw with clipping", { .rule = RFL_RULE_ADAMW, .lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-4, .weight_decay = 0.1, .grad_clip = 0.05 } },
};
/* clang-format on */

/* ---- the networks: a convolution, the subject, a linear layer ---- */

struct subject {
	const char *name;
	const struct rfl_node *layers; /* one after the other, or: */
	size_t nlayers;
	int (*build)(struct rfl_net_builder *b, int x); /* from the stem's 8 x 8 x 8 */
	bool whole;                                     /* build returns the logits */
	bool first;      /* from the image, without a stem: it needs no gradient */
	bool may_refuse; /* an engine need not support these attributes */
};

#define ADD(x, y) rfl_net_two(b, RFL_OP_ADD, (x), (y), .name = NULL)
#define MUL(x, y) rfl_net_two(b, RFL_OP_MUL, (x), (y), .name = NULL)
#define DILATED(name, out, h, w, ...)               \
	LAYER(CONV2D, name,                         \
	      .attr.conv2d = { .out_channels = out, \
			       __VA_ARGS__,         \
			       .dilation_h = h,     \
			       .dilation_w = w,     \
			       .groups = 1 })
#define POOL_WITH(op, ...) LAYER(op, "pool", .attr.pool = { __VA_ARGS__ })
#define UNEVEN             .kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 1
#define CEIL               .kernel_h = 3, .kernel_w = 3, .stride_h = 3, .stride_w = 2, .ceil_mode = true

#define NET(name, output)                                 \
	static int name(struct rfl_net_builder *b, int x) \
	{                                                 \
		return output;                            \
	}

/* clang-format off */
NET(add_equal, ADD(x, rfl_chain(b, x, CONV("conv", 8, 3, 1))))
NET(add_itself, ADD(x, x))
NET(add_per_channel, ADD(x, rfl_chain(b, x, AVERAGE("pool", 1), CONV("conv", 8, 1, 1))))
NET(mul_equal, MUL(rfl_chain(b, x, CONV("conv", 8, 3, 1)), x))
NET(mul_itself, MUL(x, x))
NET(mul_per_channel, MUL(x, rfl_chain(b, x, AVERAGE("pool", 1), CONV("conv", 8, 1, 1))))
NET(mul_per_channel_first, MUL(rfl_chain(b, x, AVERAGE("pool", 1), BIASED("conv", 8, 1, 1)), x))

static int concat_channels(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, CONV("conv", 5, 3, 1)), parts[] = { y, x, y };

	return rfl_concat(b, parts, 3, 0);
}

static int concat_features(struct rfl_net_builder *b, int x)
{
	const int flat = rfl_chain(b, x, FLATTEN(NULL));
	const int parts[] = { rfl_chain(b, flat, FC("a", 6)), rfl_chain(b, flat, FC("b", 3)) };

	return rfl_concat(b, parts, 2, 0);
}

static int slices(struct rfl_net_builder *b, int x)
{
	const int front = rfl_chain(b, x, SLICE(0, 0, 5, 1));

	return ADD(rfl_chain(b, front, STEP(RFL_OP_TANH, "tanh")),
		   rfl_chain(b, x, SLICE(0, 2, 5, 1)));
}

static int residual(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, BATCH_NORM("bn0"), RELU("relu0"));
	const int z = rfl_chain(b, y, CONV("conv1", 8, 3, 1), BATCH_NORM("bn1"), RELU("relu1"),
				CONV("conv2", 8, 3, 1), BATCH_NORM("bn2"));

	return rfl_chain(b, ADD(z, y), RELU("relu2"));
}

/* The second operand is the batch norm. */
NET(residual_relu6, rfl_chain(b, ADD(x, rfl_chain(b, x, CONV("conv", 8, 3, 1), BATCH_NORM("bn"))), INPLACE(RFL_OP_RELU6, "relu6")))

/* As in MobileNetV2: without an activation after the addition. */
static int residual_linear(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, CONV("conv0", 8, 1, 1), BATCH_NORM("bn0"));
	const int z = rfl_chain(b, y, CONV("conv1", 12, 1, 1), BATCH_NORM("bn1"),
				STEP(RFL_OP_RELU6, "relu6"), GROUPED("conv2", 12, 3, 1, 12),
				CONV("conv3", 8, 1, 1), BATCH_NORM("bn3"));

	return rfl_chain(b, ADD(y, z), CONV("conv4", 4, 1, 1), BATCH_NORM("bn4"));
}

/* The residual is an output of batch norm, too. */
static int downsample(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, CONV("conv1", 12, 3, 2), BATCH_NORM("bn1"));
	const int z = rfl_chain(b, x, CONV("conv2", 12, 1, 2), BATCH_NORM("bn2"));

	return rfl_chain(b, ADD(y, z), RELU("relu"), CONV("conv3", 6, 3, 1));
}

static int downsample_plain(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, CONV("conv1", 12, 3, 2), BATCH_NORM("bn1"));

	return rfl_chain(b, ADD(y, rfl_chain(b, x, BIASED("conv2", 12, 1, 2))), RELU("relu"));
}

static int three_readers(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, BATCH_NORM("bn"), RELU("relu"));
	const int z = ADD(rfl_chain(b, y, CONV("conv1", 8, 3, 1)),
			  rfl_chain(b, y, CONV("conv2", 8, 1, 1)));

	return ADD(z, rfl_chain(b, y, STEP(RFL_OP_SIGMOID, "sigmoid")));
}

static int norm_read_twice(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, BATCH_NORM("bn"));

	return ADD(rfl_chain(b, ADD(y, x), STEP(RFL_OP_RELU, "relu1")),
		   rfl_chain(b, y, STEP(RFL_OP_RELU, "relu2")));
}

NET(conv_read_twice, MUL(rfl_chain(b, x, STEP(RFL_OP_RELU, "relu")), x))

static int two_adds(struct rfl_net_builder *b, int x)
{
	const int y = rfl_chain(b, x, CONV("conv1", 8, 3, 1), BATCH_NORM("bn1"));
	const int z = rfl_chain(b, x, CONV("conv2", 8, 1, 1), BATCH_NORM("bn2"));

	return rfl_chain(b, ADD(ADD(y, x), z), RELU("relu"));
}

static int dense(struct rfl_net_builder *b, int x)
{
	int outputs[4] = { x };

	for (int i = 0; i < 3; i++) {
		rfl_net_enter(b, "layer%d", i + 1);
		outputs[i + 1] = rfl_chain(b, rfl_concat(b, outputs, i + 1, 0), BATCH_NORM("norm"),
					   RELU("relu"), CONV("conv", 4, 3, 1));
		rfl_net_leave(b);
	}
	return rfl_concat(b, outputs, 4, 0);
}

static int shuffle(struct rfl_net_builder *b, int x, int64_t groups)
{
	const struct rfl_shape s = rfl_net_shape(b, x);

	return rfl_chain(b, x, RESHAPE(groups, s.dim[0] / groups, s.dim[1], s.dim[2]),
			 PERMUTE(1, 0, 2, 3), COPY, LIKE(&s));
}

NET(shuffle_2, shuffle(b, x, 2))
NET(shuffle_4, rfl_chain(b, shuffle(b, x, 4), CONV("conv", 4, 1, 1)))
NET(contiguous, rfl_chain(b, x, COPY, RESHAPE(8 * SIDE * SIDE)))

/* A unit of ShuffleNetV2. */
static int shuffle_unit(struct rfl_net_builder *b, int x)
{
	const int parts[] = { rfl_chain(b, x, SLICE(0, 0, 4, 1)),
			      rfl_chain(b, x, SLICE(0, 4, 4, 1), CONV("conv", 4, 3, 1),
					BATCH_NORM("bn"), RELU("relu")) };

	return shuffle(b, rfl_concat(b, parts, 2, 0), 2);
}

NET(half_used, rfl_chain(b, shuffle_unit(b, x), SLICE(0, 4, 4, 1), CONV("conv1", 4, 1, 1)))

static int squeeze_excitation(struct rfl_net_builder *b, int x)
{
	x = rfl_chain(b, x, BATCH_NORM("bn"), INPLACE(RFL_OP_SILU, "silu"));
	return rfl_zoo_squeeze_excitation(
		b, x, "se", 3, (struct rfl_node)STEP(RFL_OP_SILU, "activation"), RFL_OP_SIGMOID);
}

static int squeeze_excitation_hard(struct rfl_net_builder *b, int x)
{
	const int y = rfl_zoo_squeeze_excitation(b, x, "se", 3, (struct rfl_node)RELU("activation"),
						 RFL_OP_HARD_SIGMOID);

	return ADD(rfl_chain(b, y, CONV("conv", 8, 1, 1), BATCH_NORM("bn")), x);
}

static int sliced_residual(struct rfl_net_builder *b, int x)
{
	const int wide = rfl_chain(b, x, CONV("conv1", 12, 1, 1), BATCH_NORM("bn1"));
	const int y = rfl_chain(b, wide, SLICE(0, 4, 8, 1));
	const int z = rfl_chain(b, wide, CONV("conv2", 8, 3, 1), BATCH_NORM("bn2"));

	return rfl_chain(b, ADD(z, y), RELU("relu"));
}

/* More readers than an engine may expect. */
static int many_readers(struct rfl_net_builder *b, int x)
{
	static const char *const names[] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8" };
	int y = rfl_chain(b, x, CONV("conv", 8, 1, 1));

	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++)
		y = ADD(y, rfl_chain(b, x, CONV(names[i], 8, 1, 1)));
	return y;
}

/* Images that are flattened before they meet. */
static int flat_add(struct rfl_net_builder *b, int x)
{
	return ADD(rfl_chain(b, x, FLATTEN(NULL)),
		   rfl_chain(b, x, CONV("conv", 8, 1, 1), FLATTEN(NULL)));
}

static int flat_concat(struct rfl_net_builder *b, int x)
{
	const int parts[] = { rfl_chain(b, x, FLATTEN(NULL)),
			      rfl_chain(b, x, CONV("conv", 4, 1, 1), FLATTEN(NULL)) };

	return rfl_concat(b, parts, 2, 0);
}

/* The logits have another reader, a ReLU. */
static int output_read(struct rfl_net_builder *b, int x)
{
	const int logits = rfl_chain(b, x, FLATTEN(NULL), FC("fc", CLASSES));

	(void)rfl_chain(b, logits, STEP(RFL_OP_RELU, "relu"));
	return logits;
}

#define CHAIN(...)                                          \
	.layers = (const struct rfl_node[]){ __VA_ARGS__ }, \
	.nlayers = sizeof((const struct rfl_node[]){ __VA_ARGS__ }) / sizeof(struct rfl_node)
/* An activation of values beyond its kinks, of which the largest is at 6. */
#define ACTIVATION(op) CHAIN(AFFINE(6, 0.5), op)

static const struct subject subjects[] = {
	{ "conv", CHAIN(CONV("conv", 6, 3, 1)) },
	{ "conv_bias", CHAIN(BIASED("conv", 16, 3, 1)) },
	{ "conv_stride", CHAIN(CONV("conv", 6, 3, 2)) },
	{ "conv_valid", CHAIN(CONV_OF("conv", 5, 1, true, VALID(3, 2))) },
	{ "conv_1x1_stride", CHAIN(CONV("conv", 16, 1, 2)) },
	{ "conv_dilation", CHAIN(DILATED("conv", 6, 2, 3, WINDOW(3, 3, 1, 2, 3))) },
	{ "conv_groups", CHAIN(GROUPED("conv", 6, 3, 1, 2), GROUPED("conv2", 12, 1, 2, 3)) },
	{ "conv_depthwise", CHAIN(GROUPED("conv", 8, 3, 2, 8), CONV("conv2", 4, 1, 1)) },
	{ "conv_depthwise_bias", CHAIN(CONV_OF("conv", 8, 8, true, SAME(5, 1))) },
	{ "conv_depthwise_twice", CHAIN(GROUPED("conv", 16, 3, 1, 8)) },
	{ "conv_1x7", CHAIN(CONV_OF("conv", 6, 1, false, WINDOW(1, 7, 1, 0, 3)),
			    CONV_OF("conv2", 4, 1, false, WINDOW(7, 1, 1, 3, 0))) },
	{ "linear", CHAIN(FLATTEN(NULL), FC("linear", 16)) },
	{ "linear_no_bias", CHAIN(AVERAGE("pool", 2), FLATTEN(NULL), LINEAR("linear", 7, .bias = false)) },
	{ "batch_norm", CHAIN(BATCH_NORM("bn")) },
	{ "batch_norm_after_bias", CHAIN(BIASED("conv", 6, 3, 2), BATCH_NORM("bn")) },
	{ "relu", ACTIVATION(RELU("relu")) },
	{ "relu6", ACTIVATION(STEP(RFL_OP_RELU6, "relu6")) },
	{ "sigmoid", ACTIVATION(INPLACE(RFL_OP_SIGMOID, "sigmoid")) },
	{ "tanh", ACTIVATION(STEP(RFL_OP_TANH, "tanh")) },
	{ "silu", ACTIVATION(INPLACE(RFL_OP_SILU, "silu")) },
	{ "mish", ACTIVATION(STEP(RFL_OP_MISH, "mish")) },
	{ "gelu", ACTIVATION(GELU("gelu")) },
	{ "gelu_tanh", ACTIVATION(LAYER(GELU, "gelu", .attr.gelu.tanh = true)) },
	{ "hard_sigmoid", ACTIVATION(STEP(RFL_OP_HARD_SIGMOID, "sigmoid")) },
	{ "hard_swish", ACTIVATION(INPLACE(RFL_OP_HARD_SWISH, "swish")) },
	{ "affine", CHAIN(AFFINE(-1.5, 0), AFFINE(1, 0.75), AFFINE(0.5, -2)) },
	{ "dropout_off", CHAIN(DROPOUT("dropout", 0.5), CONV("conv", 4, 1, 1)) },
	{ "add", .build = add_equal },
	{ "add_itself", .build = add_itself },
	{ "add_per_channel", .build = add_per_channel, .may_refuse = true },
	{ "mul", .build = mul_equal },
	{ "mul_itself", .build = mul_itself },
	{ "mul_per_channel", .build = mul_per_channel },
	{ "mul_per_channel_first", .build = mul_per_channel_first },
	{ "max_pool", CHAIN(MAX_POOL("pool", 2, 2, 0)) },
	{ "max_pool_overlapping", CHAIN(MAX_POOL("pool", 3, 1, 1)) },
	{ "max_pool_padded", CHAIN(MAX_POOL("pool", 3, 2, 1)) },
	{ "max_pool_uneven", CHAIN(POOL_WITH(MAX_POOL, UNEVEN)) },
	{ "max_pool_ceil", CHAIN(POOL_WITH(MAX_POOL, CEIL)) },
	{ "avg_pool", CHAIN(AVG_POOL("pool", 2, 2, 0)) },
	{ "avg_pool_padded", CHAIN(AVG_POOL("pool", 3, 1, 1)) },
	{ "avg_pool_exclude", CHAIN(POOL_WITH(AVG_POOL, UNEVEN, .exclude_padding = true)) },
	{ "avg_pool_ceil", CHAIN(POOL_WITH(AVG_POOL, CEIL)) },
	{ "avg_pool_ceil_padded", CHAIN(POOL_WITH(AVG_POOL, CEIL, .pad_h = 1, .pad_w = 1)) },
	{ "avg_pool_ceil_exclude", CHAIN(POOL_WITH(AVG_POOL, CEIL, .pad_h = 1, .exclude_padding = true)) },
	{ "adaptive_1", CHAIN(AVERAGE("pool", 1)) },
	{ "adaptive_4", CHAIN(AVERAGE("pool", 4)) },
	{ "adaptive_same", CHAIN(AVERAGE("pool", 8)) },
	{ "adaptive_uneven", CHAIN(AVERAGE("pool", 3)), .may_refuse = true },
	{ "mean", CHAIN(REDUCE(MEAN, 1, 2, false)) },
	{ "mean_kept", CHAIN(REDUCE(MEAN, 1, 2, true), CONV("conv", 6, 1, 1)) },
	{ "shuffle_2", .build = shuffle_2 },
	{ "shuffle_4", .build = shuffle_4 },
	{ "contiguous", .build = contiguous },
	{ "concat", .build = concat_channels },
	{ "concat_features", .build = concat_features },
	{ "slices", .build = slices },
	{ "slice_alone", CHAIN(SLICE(0, 3, 4, 1)) },
	{ "slice_step", CHAIN(SLICE(0, 1, 3, 2)), .may_refuse = true },
	{ "conv_relu", CHAIN(BIASED("conv", 6, 3, 1), RELU("relu"), MAX_POOL("pool", 2, 2, 0)) },
	{ "conv_read_twice", .build = conv_read_twice },
	{ "conv_bn_relu", CHAIN(BATCH_NORM("bn"), RELU("relu"), CONV("conv", 8, 3, 1), BATCH_NORM("bn2"), RELU("relu2"), MAX_POOL("pool", 3, 2, 1)) },
	{ "conv_bn_relu6", CHAIN(BATCH_NORM("bn"), INPLACE(RFL_OP_RELU6, "relu6")) },
	{ "conv_bn_silu", CHAIN(BATCH_NORM("bn"), INPLACE(RFL_OP_SILU, "silu")) },
	{ "residual", .build = residual },
	{ "residual_relu6", .build = residual_relu6 },
	{ "residual_linear", .build = residual_linear },
	{ "downsample", .build = downsample },
	{ "downsample_plain", .build = downsample_plain },
	{ "three_readers", .build = three_readers },
	{ "norm_read_twice", .build = norm_read_twice },
	{ "two_adds", .build = two_adds },
	{ "dense", .build = dense },
	{ "shuffle_unit", .build = shuffle_unit },
	{ "half_used", .build = half_used },
	{ "squeeze_excitation", .build = squeeze_excitation },
	{ "squeeze_excitation_hard", .build = squeeze_excitation_hard },
	{ "sliced_residual", .build = sliced_residual },
	{ "linear_relu_linear", CHAIN(FLATTEN(NULL), FC("fc1", 16), RELU("relu1"), FC("fc2", 12), RELU("relu2")) },
	{ "many_readers", .build = many_readers },
	{ "norm_first", CHAIN(BATCH_NORM("bn"), CONV("conv", 4, 3, 1), RELU("relu")), .first = true },
	{ "flat_relu", CHAIN(FLATTEN(NULL), RELU("relu"), DROPOUT("dropout", 0.5), FC("fc1", 16)) },
	{ "flat_add", .build = flat_add, .may_refuse = true },
	{ "flat_concat", .build = flat_concat, .may_refuse = true },
	{ "output_read", .build = output_read, .whole = true },
};
/* clang-format on */

static struct rfl_net *net_of(const struct subject *s)
{
	struct rfl_net_builder *b = rfl_net_builder_new(s->name, "test");
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int x = rfl_net_input(b, 3, SIDE, SIDE);

	if (!s->first)
		x = rfl_chain(b, x, CONV("stem", 8, 3, 1));
	x = s->build ? s->build(b, x) : rfl_net_chain(b, x, s->layers, s->nlayers);
	if (!s->whole)
		x = rfl_chain(b, x, FLATTEN(NULL), FC("fc", CLASSES));
	assert_ok(rfl_net_finish(b, x, &net, &err), &err);
	return net;
}

/* ---- a case: one engine on one network ---- */

struct rig {
	const struct rfl_engine_ops *ops;
	const struct subject *subject;
	enum rfl_device device;
	enum rfl_precision precision;
	enum rfl_layout layout;
	bool benchmark; /* of cuDNN */
	char name[128];
	const struct tolerance *tolerance;
	struct rfl_net *net;
	struct reference *reference;
	struct rfl_engine *e;
	struct rfl_score score; /* of the reference, since the engine was opened */
	const char *stage;
	int failures;
	bool has_norm, kinked;
	bool traced[64]; /* nodes */
};

static float images[2][SAMPLES * IMAGE]; /* in both layouts */
static int64_t labels[SAMPLES];

/* Skip a case that the engine does not support and need not; fail otherwise. */
static void must(struct rig *r, enum rfl_rc rc, const struct rfl_err *why)
{
	if (rc == RFL_OK)
		return;
	if ((rc != RFL_EUNSUPPORTED && rc != RFL_EUNAVAILABLE) ||
	    (r->precision == RFL_PRECISION_FP32 && !r->subject->may_refuse))
		fail_msg("%s: %s: %s", r->name, r->stage, why->msg);
	print_message("%s: %s\n", r->name, why->msg);
	skip();
}

/* Make a call that has `err` as its last argument. */
#define TRY(r, call)                                \
	do {                                        \
		struct rfl_err why_ = RFL_ERR_INIT; \
		struct rfl_err *err = &why_;        \
		must((r), (call), err);             \
	} while (0)

/* Complain unless a tensor is as wanted. size: the least root mean square to compare with. */
static void compare(struct rig *r, const char *what, const char *of, const float *got,
		    const double *want, int64_t n, double tolerance, double size)
{
	double error = 0, norm = 0, most = -1;
	int64_t worst = 0;

	for (int64_t i = 0; i < n; i++) {
		const double d = fabs((double)got[i] - want[i]);

		error += d * d;
		norm += want[i] * want[i];
		if (!(d <= most)) { /* also NaN */
			most = d;
			worst = i;
		}
	}
	norm = fmax(sqrt(norm), size * sqrt((double)n));
	if (sqrt(error) <= tolerance * norm || r->failures++ >= MAX_REPORTS)
		return;
	print_error("%s: %s: %s of %s: relative error %.2g, at most %.0e; [%lld] is %.8g, not "
		    "%.8g\n",
		    r->name, r->stage, what, of, sqrt(error) / norm, tolerance, (long long)worst,
		    (double)got[worst], want[worst]);
}

static void same_bits(struct rig *r, const char *what, const float *got, const float *want,
		      int64_t n)
{
	int64_t i = 0;

	while (i < n && memcmp(&got[i], &want[i], sizeof(*got)) == 0)
		i++;
	if (i == n || r->failures++ >= MAX_REPORTS)
		return;
	print_error("%s: %s: %s: [%lld] is %.9g, not %.9g\n", r->name, r->stage, what, (long long)i,
		    (double)got[i], (double)want[i]);
}

/* With the scale that fp16 begins with, gradients of these networks are infinite. */
static enum rfl_rc lower_scale(const char *name, void *data, size_t bytes, void *ctx,
			       struct rfl_err *err)
{
	static const float scale = 64;

	(void)ctx;
	(void)err;
	if (strstr(name, "scale") && bytes == sizeof(scale))
		memcpy(data, &scale, sizeof(scale));
	return RFL_OK;
}

static void open_engine(struct rig *r, const struct rfl_optimizer *o)
{
	/* so small are these networks that two threads mostly wait for each other */
	const bool with_two = r->precision == RFL_PRECISION_FP32 && r->layout == RFL_LAYOUT_NHWC;
	const struct rfl_engine_config config = { .device = r->device,
						  .precision = r->precision,
						  .layout = r->layout,
						  .threads = with_two ? 2 : 1,
						  .max_batch = MAX_BATCH,
						  .optimizer = *o,
						  .deterministic = true,
						  .cudnn_benchmark = r->benchmark,
						  .score = true };
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc;

	r->ops->close(r->e);
	r->e = NULL;
	r->score = (struct rfl_score){ .rows = 0 };
	rc = r->ops->open(r->net, &config, &r->e, &err);
	must(r, rc, &err);
	if (r->precision == RFL_PRECISION_FP16)
		must(r, r->ops->visit_state(r->e, true, lower_scale, NULL, &err), &err);
}

static bool is_buffer(const struct rig *r, int i)
{
	return rfl_param_is_buffer(r->net->params[i].kind);
}

/* Fill reference and engine with the formula of data/fill.h, on a grid that bf16 has. Outputs of
 * batch norm go beyond the kink of ReLU6; every other weight of it is negative. */
static void set_params(struct rig *r)
{
	float values[FLOATS], back[FLOATS];

	for (int i = 0; i < r->net->nparams; i++) {
		const struct rfl_param *p = &r->net->params[i];

		rfl_fill_values(rfl_fill_rule_of(p), p->position, 0, (size_t)p->numel, values);
		for (int64_t j = 0; j < p->numel; j++) {
			if (p->kind == RFL_PARAM_NORM_WEIGHT)
				values[j] *= j % 2 ? -2.0f : 3.0f;
			values[j] = roundf(values[j] * 64) / 64;
			r->reference->param[i][j] = (double)values[j];
		}
		TRY(r, r->ops->set_param(r->e, i, values, p->numel, err));
		TRY(r, r->ops->get_param(r->e, i, back, p->numel, err));
		same_bits(r, p->name, back, values, p->numel);
	}
}

/* All parameters, one after the other. */
static int64_t get_params(struct rig *r, float out[FLOATS])
{
	int64_t n = 0;

	for (int i = 0; i < r->net->nparams; n += r->net->params[i++].numel)
		TRY(r, r->ops->get_param(r->e, i, out + n, r->net->params[i].numel, err));
	return n;
}

/* Images come in the engine's layout and in the other one. */
static struct rfl_batch batch_of(const struct rig *r, int64_t first, int64_t n)
{
	const enum rfl_layout layout = (enum rfl_layout)((first + r->layout) % 2);

	return (struct rfl_batch){ .n = n,
				   .images = images[layout] + first * IMAGE,
				   .layout = layout,
				   .labels = labels + first };
}

/* Compare one node's output; the reference adopts it. Its backward then decides as the engine does
 * on which side of a kink a value is, and which one of a window is the largest. */
static enum rfl_rc adopt(int node, const float *values, int64_t n, void *ctx, struct rfl_err *err)
{
	struct rig *r = ctx;
	double *want = r->reference->value[node];

	(void)err;
	assert_int_equal(n, r->reference->n * rfl_shape_numel(&r->net->nodes[node].shape));
	assert_false(r->traced[node]);
	r->traced[node] = true;
	compare(r, "trace", r->net->nodes[node].name, values, want, n, r->tolerance->value, 0);
	for (int64_t i = 0; i < n; i++)
		want[i] = (double)values[i];
	return RFL_OK;
}

static void run_reference(struct rig *r, enum rfl_engine_mode mode, int64_t first, int64_t n)
{
	reference_forward(r->reference, mode, images[RFL_LAYOUT_NCHW] + first * IMAGE,
			  labels + first, n);
}

/* Run the engine on the samples of the reference's last forward. */
static void run_engine(struct rig *r, bool traced)
{
	const struct reference *want = r->reference;
	const int64_t n = want->n;
	const struct rfl_batch batch = batch_of(r, want->labels - labels, n);
	int seen = 0; /* the others may run as one with their readers */

	TRY(r, r->ops->set_mode(r->e, want->mode, err));
	memset(r->traced, 0, sizeof(r->traced));
	if (traced)
		TRY(r, r->ops->forward_traced(r->e, &batch, adopt, r, err));
	else
		TRY(r, r->ops->forward(r->e, &batch, err));
	for (int i = 0; i < r->net->nnodes; i++)
		seen += r->traced[i];
	if (traced && (!r->traced[r->net->output] || 2 * seen < r->net->nnodes))
		fail_msg("%s: %s: a trace of only %d nodes", r->name, r->stage, seen);
	r->score.rows += n;
	r->score.correct += want->correct;
	r->score.loss += want->loss * (double)n;
}

/* Compare logits, loss and statistics after a forward. */
static void expect_results(struct rig *r)
{
	struct reference *want = r->reference;
	float got[FLOATS];
	double loss, largest = 1;

	TRY(r, r->ops->logits(r->e, got, want->n * CLASSES, err));
	compare(r, "output", "logits", got, want->value[r->net->output], want->n * CLASSES,
		r->tolerance->value, 0);
	TRY(r, r->ops->loss(r->e, &loss, err));
	for (int64_t i = 0; i < want->n * CLASSES; i++) /* the loss is a difference of logits */
		largest = fmax(largest, fabs(want->value[r->net->output][i]));
	compare(r, "output", "loss", &(float){ (float)loss }, &want->loss, 1, r->tolerance->value,
		largest);
	for (int i = 0; i < r->net->nparams; i++) {
		if (!is_buffer(r, i))
			continue;
		TRY(r, r->ops->get_param(r->e, i, got, r->net->params[i].numel, err));
		compare(r, "buffer", r->net->params[i].name, got, want->param[i],
			r->net->params[i].numel, r->tolerance->value, 0);
	}
}

static void evaluate(struct rig *r, int64_t first, int64_t n)
{
	run_reference(r, RFL_ENGINE_EVAL, first, n);
	run_engine(r, false);
	expect_results(r);
}

static void zero_grad(struct rig *r)
{
	reference_zero_grad(r->reference);
	TRY(r, r->ops->zero_grad(r->e, err));
}

/* Compare all gradients; the reference takes over the engine's. */
static void expect_gradients(struct rig *r)
{
	float got[FLOATS];
	double square = 0, n = 0;

	for (int i = 0; i < r->net->nparams; i++)
		for (int64_t j = 0; j < r->net->params[i].numel && !is_buffer(r, i); j++, n++)
			square += pow(r->reference->param_grad[i][j], 2);
	for (int i = 0; i < r->net->nparams; i++) {
		const struct rfl_param *p = &r->net->params[i];
		double *want = r->reference->param_grad[i];

		if (is_buffer(r, i))
			continue;
		TRY(r, r->ops->get_grad(r->e, i, got, p->numel, err));
		compare(r, "gradient", p->name, got, want, p->numel,
			r->kinked ? r->tolerance->kinked : r->tolerance->gradient,
			r->tolerance->share * sqrt(square / n));
		for (int64_t j = 0; j < p->numel; j++)
			want[j] = (double)got[j];
	}
}

static void backward(struct rig *r, double weight, bool last)
{
	const struct rfl_backward how = { .weight = weight, .last = last };

	reference_backward(r->reference, weight);
	TRY(r, r->ops->backward(r->e, last && weight == 1 ? NULL : &how, err));
}

/* Forward and backward. In bf16, a trace comes first for what the reference adopts of it. */
static void pass(struct rig *r, enum rfl_engine_mode mode, int64_t first, int64_t n, double weight,
		 bool last)
{
	float params[FLOATS];
	const float *at = params;

	run_reference(r, mode, first, n);
	if (r->precision != RFL_PRECISION_FP32) {
		(void)get_params(r, params);
		run_engine(r, true);
		for (int i = 0; i < r->net->nparams; at += r->net->params[i++].numel)
			if (is_buffer(r, i))
				TRY(r,
				    r->ops->set_param(r->e, i, at, r->net->params[i].numel, err));
	}
	run_engine(r, false);
	expect_results(r);
	backward(r, weight, last);
}

/* ---- what is tested of it ---- */

static void gradients(struct rig *r, enum rfl_engine_mode mode, int64_t first, int64_t n)
{
	zero_grad(r);
	pass(r, mode, first, n, 1, true);
	expect_gradients(r);
}

/* The gradients of two parts of a batch, the first of n samples, add up to those of the whole. */
static void micro_batches(struct rig *r, int64_t n)
{
	const enum rfl_engine_mode mode =
		r->has_norm ? RFL_ENGINE_TRAIN_FROZEN_BN : RFL_ENGINE_TRAIN;

	zero_grad(r);
	pass(r, mode, 4, n, (double)n / MAX_BATCH, false);
	pass(r, mode, 4 + n, MAX_BATCH - n, (double)(MAX_BATCH - n) / MAX_BATCH, true);
	if (r->precision == RFL_PRECISION_FP32) { /* where no decision of a part can differ */
		reference_zero_grad(r->reference);
		run_reference(r, mode, 4, MAX_BATCH);
		reference_backward(r->reference, 1);
	}
	expect_gradients(r);
}

static void traces(struct rig *r, enum rfl_engine_mode mode)
{
	zero_grad(r);
	run_reference(r, mode, 1, 3);
	run_engine(r, true);
	expect_results(r);
	if (mode == RFL_ENGINE_EVAL)
		return;
	backward(r, 1, true);
	expect_gradients(r);
}

/* Give the reference the engine's parameters. */
static void continue_from_engine(struct rig *r, float values[FLOATS])
{
	(void)get_params(r, values);
	for (int i = 0; i < r->net->nparams; values += r->net->params[i++].numel)
		for (int64_t j = 0; j < r->net->params[i].numel; j++)
			r->reference->param[i][j] = (double)values[j];
}

/* One step on three samples; the update starts from the engine's own parameters and gradients. */
static void step(struct rig *r, int64_t first, struct rfl_optimizer o)
{
	static float before[FLOATS], after[FLOATS];
	const float *from = before;

	continue_from_engine(r, before);
	o.lr *= first == 6 ? 0.5 : 1;
	TRY(r, r->ops->set_optimizer(r->e, &o, err));
	gradients(r, RFL_ENGINE_TRAIN, first, 3);
	if (reference_step(r->reference, &o) < o.grad_clip && o.grad_clip < 1)
		fail_msg("%s: the gradients are too small to be clipped", r->name);
	TRY(r, r->ops->step(r->e, err));
	for (int i = 0; i < r->net->nparams; from += r->net->params[i++].numel) {
		const struct rfl_param *p = &r->net->params[i];
		double *want = r->reference->param[i], square = 0;

		if (is_buffer(r, i))
			continue;
		TRY(r, r->ops->get_param(r->e, i, after, p->numel, err));
		for (int64_t j = 0; j < p->numel; j++) {
			square += want[j] * want[j];
			want[j] -= (double)from[j];
			after[j] -= from[j]; /* exact, or nearly so */
		}
		/* of a hundredth of the parameter, 1e-5 is the parameter's own rounding */
		compare(r, "update", p->name, after, want, p->numel, r->tolerance->update,
			1e-2 * sqrt(square / (double)p->numel));
	}
}

/* The state as visit_state passes it: parts with a name. */
struct state {
	size_t n, at;
	struct {
		char name[64];
		size_t bytes;
		void *data;
	} part[64];
};

static enum rfl_rc save(const char *name, void *data, size_t bytes, void *ctx, struct rfl_err *err)
{
	struct state *s = ctx;

	(void)err;
	assert_in_range(s->n, 0, RFL_ARRAY_LEN(s->part) - 1);
	(void)snprintf(s->part[s->n].name, sizeof(s->part[s->n].name), "%s", name);
	s->part[s->n].bytes = bytes;
	s->part[s->n].data = rfl_alloc_array(bytes, 1);
	memcpy(s->part[s->n++].data, data, bytes);
	return RFL_OK;
}

static enum rfl_rc load(const char *name, void *data, size_t bytes, void *ctx, struct rfl_err *err)
{
	struct state *s = ctx;

	(void)err;
	assert_in_range(s->at, 0, s->n - 1);
	assert_string_equal(name, s->part[s->at].name);
	assert_int_equal(bytes, s->part[s->at].bytes);
	memcpy(data, s->part[s->at].data, bytes);
	free(s->part[s->at++].data);
	return RFL_OK;
}

/* The steps of repeats(), recorded once and replayed on batches that are copied beside them. */
static void replays(struct rig *r, const struct rfl_optimizer *o, const float *want)
{
	static float got[FLOATS];

	for (int64_t first = 3; first <= 6 && r->device == RFL_DEVICE_CUDA; first += 3) {
		struct rfl_batch batch = batch_of(r, first, 3);
		struct rfl_optimizer now = *o;
		double loss;

		now.lr *= first == 6 ? 0.5 : 1;
		TRY(r, r->ops->set_mode(r->e, RFL_ENGINE_TRAIN, err));
		TRY(r, r->ops->set_optimizer(r->e, &now, err));
		TRY(r, r->ops->capture(r->e, &batch, true, true, err));
		TRY(r, r->ops->upload(r->e, &batch, err));
		TRY(r, r->ops->uploaded(r->e, err));
		TRY(r, r->ops->replay(r->e, &batch, err));
		TRY(r, r->ops->loss(r->e, &loss, err));
		r->score.rows += 3;
		r->score.loss += 3 * loss;
	}
	if (r->device == RFL_DEVICE_CUDA)
		same_bits(r, "parameters after replays", got, want, get_params(r, got));
}

static void repeats(struct rig *r, const char *what, const struct rfl_optimizer *o,
		    const float *want)
{
	static float got[FLOATS];

	for (int64_t first = 3; first <= 6; first += 3) {
		struct rfl_batch batch = batch_of(r, first, 3);
		struct rfl_optimizer now = *o;

		now.lr *= first == 6 ? 0.5 : 1;
		TRY(r, r->ops->set_mode(r->e, RFL_ENGINE_TRAIN, err));
		TRY(r, r->ops->set_optimizer(r->e, &now, err));
		TRY(r, r->ops->zero_grad(r->e, err));
		TRY(r, r->ops->forward(r->e, &batch, err));
		TRY(r, r->ops->backward(r->e, NULL, err));
		TRY(r, r->ops->step(r->e, err));
	}
	same_bits(r, what, got, want, get_params(r, got));
}

/* Three steps, each compared with the reference; the last two again from a snapshot, and again in
 * another engine from the state as saved. Evaluation in between must see the latest parameters,
 * which are zeros at first. */
static void trains(struct rig *r, const struct rfl_optimizer *o)
{
	static float end[FLOATS], saved[FLOATS];
	struct state state = { .n = 0 };

	reference_free(r->reference); /* for new state of the optimizer */
	r->reference = reference_new(r->net, MAX_BATCH);
	open_engine(r, o);
	evaluate(r, 4, MAX_BATCH);
	set_params(r);
	evaluate(r, 4, MAX_BATCH);
	step(r, 0, *o);
	TRY(r, r->ops->snapshot(r->e, err));
	TRY(r, r->ops->visit_state(r->e, false, save, &state, err));
	step(r, 3, *o);
	step(r, 6, *o);
	continue_from_engine(r, end);
	evaluate(r, 4, MAX_BATCH);
	TRY(r, r->ops->restore(r->e, err));
	continue_from_engine(r, saved);
	evaluate(r, 4, MAX_BATCH);
	repeats(r, "parameters after restore", o, end);
	TRY(r, r->ops->restore(r->e, err));
	replays(r, o, end);
	TRY(r, r->ops->restore(r->e, err));
	evaluate(r, 4, MAX_BATCH);
	open_engine(r, o);
	TRY(r, r->ops->visit_state(r->e, true, load, &state, err));
	assert_int_equal(state.at, state.n);
	repeats(r, "parameters after loading the state", o, end);
}

static double loss_of(struct rig *r, const struct rfl_batch *batch)
{
	double loss;

	TRY(r, r->ops->forward(r->e, batch, err));
	TRY(r, r->ops->loss(r->e, &loss, err));
	return loss;
}

/* A copy on the device is not taken for what its memory holds later. */
static void uploads_again(struct rig *r)
{
	static float memory[3 * IMAGE];
	struct rfl_batch batch = batch_of(r, 0, 3);
	const struct rfl_batch other = batch_of(r, 3, 3);
	double want;

	TRY(r, r->ops->set_mode(r->e, RFL_ENGINE_EVAL, err));
	want = loss_of(r, &other);
	memcpy(memory, batch.images, sizeof(memory));
	batch.images = memory;
	batch.layout = other.layout;
	batch.labels = other.labels;
	TRY(r, r->ops->upload(r->e, &batch, err)); /* and never used */
	TRY(r, r->ops->uploaded(r->e, err));
	memcpy(memory, other.images, sizeof(memory));
	batch = other;
	batch.images = memory;
	TRY(r, r->ops->upload(r->e, &batch, err));
	TRY(r, r->ops->uploaded(r->e, err));
	for (int i = 0; i < 3; i++)
		assert_true(loss_of(r, &batch) == want);
}

/* A recording updates the state that reset_optimizer() discards, so it is gone. */
static void resets(struct rig *r, const struct rfl_optimizer *o)
{
	const struct rfl_batch batch = batch_of(r, 0, 3);
	struct rfl_loss_scaling scaling;

	open_engine(r, o);
	set_params(r);
	for (int i = 0; i < 2; i++) {
		if (strcmp(r->ops->name, "planned") == 0) /* which needs a step before */
			assert_int_equal(r->ops->capture(r->e, &batch, true, true, NULL),
					 i ? RFL_OK : RFL_EINVAL);
		TRY(r, r->ops->forward(r->e, &batch, err));
		TRY(r, r->ops->backward(r->e, NULL, err));
	}
	TRY(r, r->ops->capture(r->e, &batch, true, true, err));
	TRY(r, r->ops->reset_optimizer(r->e, err));
	assert_int_equal(r->ops->replay(r->e, &batch, NULL), RFL_EINVAL);
	TRY(r, r->ops->forward(r->e, &batch, err));
	TRY(r, r->ops->scaling(r->e, &scaling, err));
	if (r->precision == RFL_PRECISION_FP16)
		assert_true(scaling.scale == 65536 && scaling.skipped == 0);
	uploads_again(r);
	uploads_again(r); /* after an odd number of copies */
}

static void expect_score(struct rig *r)
{
	struct rfl_score got, none;

	TRY(r, r->ops->score(r->e, &got, err));
	TRY(r, r->ops->score(r->e, &none, err));
	assert_int_equal(got.rows, r->score.rows);
	assert_int_equal(none.rows, 0);
	if (r->precision == RFL_PRECISION_FP32) /* in bf16, two logits may change places */
		assert_int_equal(got.correct, r->score.correct);
	assert_close(got.loss, r->score.loss, r->tolerance->value);
}

/* See the tolerances: its kink is not at 0, or its input is a sum. */
static bool is_kinked(const struct rfl_net *net, const struct rfl_node *node)
{
	return node->op == RFL_OP_RELU6 || node->op == RFL_OP_HARD_SIGMOID ||
	       node->op == RFL_OP_HARD_SWISH ||
	       (node->op == RFL_OP_RELU && net->nodes[node->input[0]].op == RFL_OP_ADD);
}

/* Without instructions for it, libraries convert bfloat16 at places of their choice. */
static bool computes_bf16(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx512bw");
#else
	return false;
#endif
}

static void conforms(void **state)
{
	struct rig *r = *state;

	if (r->device == RFL_DEVICE_CPU && r->precision == RFL_PRECISION_BF16 && !computes_bf16()) {
		print_message("%s: this CPU does not compute in bfloat16\n", r->name);
		skip();
	}
	for (int i = 0; i < r->net->nnodes; i++) {
		const char *why = r->ops->unsupported(r->net->nodes[i].op, r->precision);

		if (why) {
			print_message("%s: %s: %s\n", r->name,
				      rfl_op_info_of(r->net->nodes[i].op)->name, why);
			skip();
		}
		r->has_norm |= r->net->nodes[i].op == RFL_OP_BATCH_NORM;
		r->kinked |= is_kinked(r->net, &r->net->nodes[i]);
	}
	r->stage = "opening";
	open_engine(r, &optimizers[0].o);
	set_params(r);
	r->stage = "training";
	gradients(r, RFL_ENGINE_TRAIN, 0, 3);
	gradients(r, RFL_ENGINE_TRAIN, 3, 2);
	r->stage = "evaluation";
	evaluate(r, 0, 3);
	evaluate(r, 5, 2);
	r->stage = "frozen batch norm";
	gradients(r, RFL_ENGINE_TRAIN_FROZEN_BN, 2, 3);
	r->stage = "micro-batches of 2 and 2";
	micro_batches(r, 2);
	r->stage = "micro-batches of 3 and 1";
	micro_batches(r, 3);
	r->stage = "trace in training";
	traces(r, RFL_ENGINE_TRAIN);
	r->stage = "trace in evaluation";
	traces(r, RFL_ENGINE_EVAL);
	r->stage = "training after a trace";
	gradients(r, RFL_ENGINE_TRAIN, 8, 4);
	if (!r->failures)
		expect_score(r);
	for (size_t i = 0; i < RFL_ARRAY_LEN(optimizers); i++) {
		r->stage = optimizers[i].name;
		trains(r, &optimizers[i].o);
	}
	r->stage = "uploads and resets";
	if (r->device == RFL_DEVICE_CUDA)
		resets(r, &optimizers[2].o);
	if (r->failures)
		fail_msg("%s: %d differences", r->name, r->failures);
}

static int set_up(void **state)
{
	struct rig *r = *state;

	r->net = net_of(r->subject);
	r->reference = reference_new(r->net, MAX_BATCH);
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;

	r->ops->close(r->e);
	reference_free(r->reference);
	rfl_net_free(r->net);
	return 0;
}

/* ---- the cases ---- */

static void fill_samples(void)
{
	const struct rfl_shape shape = { .ndim = 3, .dim = { 3, SIDE, SIDE } };

	for (int k = 0; k < 2; k++) {
		assert_int_equal(
			rfl_fill_images(&shape, 0, SAMPLES, (enum rfl_layout)k, 1, images[k], NULL),
			RFL_OK);
		for (int i = 0; i < SAMPLES * IMAGE; i++)
			images[k][i] = roundf(images[k][i] * 64) / 64;
	}
	rfl_fill_labels(0, SAMPLES, CLASSES, labels);
}

/* Add the cases of an engine on a device. */
static size_t add_cases(const struct rfl_engine_ops *ops, const char *id, enum rfl_device device,
			struct rig *rigs, struct CMUnitTest *tests)
{
	static const struct {
		enum rfl_precision precision;
		enum rfl_layout layout;
		bool benchmark;
	} forms[] = {
		/* first for GPUs only, last for CPUs only */
		{ RFL_PRECISION_FP32, RFL_LAYOUT_NHWC, true },
		{ RFL_PRECISION_FP16, RFL_LAYOUT_NCHW, false },
		{ RFL_PRECISION_BF16, RFL_LAYOUT_NHWC, false },
		{ RFL_PRECISION_FP32, RFL_LAYOUT_NCHW, false },
		{ RFL_PRECISION_FP32, RFL_LAYOUT_NHWC, false },
		{ RFL_PRECISION_BF16, RFL_LAYOUT_NCHW, false },
	};
	enum { CPU_BEGIN = 2, CPU_END = 6, GPU_END = 4 };
	const size_t begin = device == RFL_DEVICE_CPU ? CPU_BEGIN : 0;
	const size_t end = device == RFL_DEVICE_CPU ? CPU_END : GPU_END;
	const size_t each = RFL_ARRAY_LEN(subjects);
	const size_t n = each * (end - begin);

	for (size_t k = 0; k < n; k++) {
		struct rig *r = &rigs[k];

		r->ops = ops;
		r->device = device;
		r->subject = &subjects[k % each];
		r->precision = forms[begin + k / each].precision;
		r->layout = forms[begin + k / each].layout;
		r->benchmark = forms[begin + k / each].benchmark;
		r->tolerance = &tolerances[r->precision != RFL_PRECISION_FP32];
		(void)snprintf(r->name, sizeof(r->name), "%s/%s/%s%s/%s", id,
			       rfl_precision_names[r->precision], rfl_layout_names[r->layout],
			       r->benchmark ? "/benchmark" : "", r->subject->name);
		tests[k] = (struct CMUnitTest){ .name = r->name,
						.test_func = conforms,
						.setup_func = set_up,
						.teardown_func = tear_down,
						.initial_state = r };
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *const dirs[] = { RFL_TEST_BUILD "/lib/roofline/plugins", NULL };
	enum { PER_ENGINE = 5 * RFL_ARRAY_LEN(subjects), MAX_ENGINES = 8 };
	const enum rfl_device device =
		argc > 1 && strcmp(argv[1], "cuda") == 0 ? RFL_DEVICE_CUDA : RFL_DEVICE_CPU;
	RFL_AUTOFREE struct rig *rigs = rfl_alloc_array(MAX_ENGINES * PER_ENGINE, sizeof(*rigs));
	RFL_AUTOFREE struct CMUnitTest *tests =
		rfl_alloc_array(MAX_ENGINES * PER_ENGINE, sizeof(*tests));
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_row *row;
	struct rfl_err err = RFL_ERR_INIT;
	bool broken = false;
	size_t n = 0;

	if (rfl_engine_list_new(dirs, &list, &err) != RFL_OK)
		return 1;
	for (size_t i = 0; (row = rfl_engine_list_at(list, i)) && i < MAX_ENGINES; i++) {
		const struct rfl_engine_ops *ops = NULL;

		rfl_err_clear(&err);
		if (rfl_engine_load(list, row->id, device, &ops, &err) == RFL_OK) {
			n += add_cases(ops, row->id, device, rigs + n, tests + n);
			continue;
		}
		print_message("skipped: %s\n", err.msg);
		/* each plugin is for the devices in its name */
		broken |= row->path &&
			  (device == RFL_DEVICE_CUDA) == (strstr(row->id, "-cu") != NULL);
	}
	rfl_engine_list_free(list);
	if (n == 0 || broken)
		return broken ? 1 : 77;
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	fill_samples();
	/* the number of failures could be 77 */
	return _cmocka_run_group_tests("conformance", tests, n, NULL, NULL) == 0 ? 0 : 1;
}
