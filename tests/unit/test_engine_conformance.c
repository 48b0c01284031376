/*
 * test_engine_conformance.c - every engine that is found, on small networks of one operation each
 * and on combinations that an engine may fuse, against the reference in double precision: values,
 * gradients, updates and state. `test_engine_conformance PATTERN` runs the cases whose names match,
 * such as 'planned*fp32/nhwc/residual'.
 */
#include "tests/unit/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/zoo/blocks.h"
#include "data/fill.h"
#include "tests/unit/rfl_test.h"

enum { MAX_BATCH = 4, SIDE = 8, CLASSES = 5, IMAGE = 3 * SIDE * SIDE, SAMPLES = 12 };
enum { FLOATS = 1 << 14 }; /* no tensor, and no net's parameters together, has more */

/*
 * The largest relative error of a tensor, ||got - want|| / ||want||.
 *
 * fp32: a result is rounded by 2^-24 (6e-8), and again in each of about ten layers before or after
 * it; sums of at most 600 terms in float have errors of up to some ten roundings; batch norm
 * subtracts what may be ten times as large as the result. 1e-5 is 160 roundings.
 * bf16: a value is rounded by 2^-9 (0.2 %), which ten layers make 0.6 %, or 2 % where batch norm
 * subtracts. In gradients, a value near the kink of a ReLU or near a window's maximum may fall on
 * the other side: that moves one in some hundred elements, an error of 10 %.
 * Updates start from the engine's own gradients and are float32 in both.
 *
 * A gradient that is small only because large terms cancel is compared with this share of the
 * root mean square of all gradients instead: a convolution's bias before batch norm has none.
 */
static const struct tolerance {
	double value, gradient, update, floor;
} tolerances[] = {
	{ .value = 1e-5, .gradient = 1e-5, .update = 1e-5, .floor = 0.1 },
	{ .value = 2e-2, .gradient = 1e-1, .update = 1e-5, .floor = 0.1 },
};

static const struct rfl_optimizer optimizers[] = {
	{ .rule = RFL_RULE_SGD, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01 },
	{ .rule = RFL_RULE_SGD, .lr = 0.2, .grad_clip = 0.05 },
	{ .rule = RFL_RULE_ADAM,
	  .lr = 0.01,
	  .beta1 = 0.9,
	  .beta2 = 0.99,
	  .eps = 1e-4,
	  .weight_decay = 0.1,
	  .grad_clip = 1e6 },
	{ .rule = RFL_RULE_ADAMW,
	  .lr = 0.01,
	  .beta1 = 0.8,
	  .beta2 = 0.9,
	  .eps = 1e-4,
	  .weight_decay = 0.1,
	  .grad_clip = 0.05 },
};

/* ---- the networks: a convolution, the subject, a linear layer ---- */

struct subject {
	const char *name;
	const struct rfl_node *layers; /* one after the other, or: */
	size_t nlayers;
	int (*build)(struct rfl_net_builder *b, int x); /* from the stem's 8 x 8 x 8 */
	bool whole;      /* build returns the logits */
	bool may_refuse; /* an engine need not support these attributes */
};

#define ADD(x, y) rfl_net_two(b, RFL_OP_ADD, (x), (y), .name = NULL)
#define MUL(x, y) rfl_net_two(b, RFL_OP_MUL, (x), (y), .name = NULL)
#define CONV_WITH(name, ...) \
	LAYER(CONV2D, name,  \
	      .attr.conv2d = { .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, \
			       .groups = 1, __VA_ARGS__ })
#define POOL_WITH(op, ...) LAYER(op, "pool", .attr.pool = { __VA_ARGS__ })
#define UNEVEN .kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 1
#define CEIL   .kernel_h = 3, .kernel_w = 3, .stride_h = 3, .stride_w = 2, .ceil_mode = true

static int add_equal(struct rfl_net_builder *b, int x)
{
	return ADD(x, rfl_chain(b, x, CONV("conv", 8, 3, 1)));
}

static int add_itself(struct rfl_net_builder *b, int x)
{
	return ADD(x, x);
}

static int add_per_channel(struct rfl_net_builder *b, int x)
{
	return ADD(x, rfl_chain(b, x, AVERAGE("pool", 1), CONV("conv", 8, 1, 1)));
}

static int mul_equal(struct rfl_net_builder *b, int x)
{
	return MUL(rfl_chain(b, x, CONV("conv", 8, 3, 1)), x);
}

static int mul_itself(struct rfl_net_builder *b, int x)
{
	return MUL(x, x);
}

static int mul_per_channel(struct rfl_net_builder *b, int x)
{
	return MUL(x, rfl_chain(b, x, AVERAGE("pool", 1), CONV("conv", 8, 1, 1)));
}

static int mul_per_channel_first(struct rfl_net_builder *b, int x)
{
	return MUL(rfl_chain(b, x, AVERAGE("pool", 1), BIASED("conv", 8, 1, 1)), x);
}

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
static int residual_relu6(struct rfl_net_builder *b, int x)
{
	return rfl_chain(b, ADD(x, rfl_chain(b, x, CONV("conv", 8, 3, 1), BATCH_NORM("bn"))),
			 INPLACE(RFL_OP_RELU6, "relu6"));
}

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

static int conv_read_twice(struct rfl_net_builder *b, int x)
{
	return MUL(rfl_chain(b, x, STEP(RFL_OP_RELU, "relu")), x);
}

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

/* A unit of ShuffleNetV2. */
static int shuffle_unit(struct rfl_net_builder *b, int x)
{
	const struct rfl_shape s = rfl_net_shape(b, x);
	const int parts[] = { rfl_chain(b, x, SLICE(0, 0, 4, 1)),
			      rfl_chain(b, x, SLICE(0, 4, 4, 1), CONV("conv", 4, 3, 1),
					BATCH_NORM("bn"), RELU("relu")) };

	return rfl_chain(b, rfl_concat(b, parts, 2, 0), RESHAPE(2, 4, SIDE, SIDE),
			 PERMUTE(1, 0, 2, 3), COPY, LIKE(&s));
}

static int half_used(struct rfl_net_builder *b, int x)
{
	return rfl_chain(b, shuffle_unit(b, x), SLICE(0, 4, 4, 1), CONV("conv1", 4, 1, 1));
}

static int squeeze_excitation(struct rfl_net_builder *b, int x)
{
	x = rfl_chain(b, x, BATCH_NORM("bn"), INPLACE(RFL_OP_SILU, "silu"));
	return rfl_zoo_squeeze_excitation(b, x, "se", 3,
					  (struct rfl_node)STEP(RFL_OP_SILU, "activation"),
					  RFL_OP_SIGMOID);
}

static int squeeze_excitation_hard(struct rfl_net_builder *b, int x)
{
	const int y = rfl_zoo_squeeze_excitation(b, x, "se", 3,
						 (struct rfl_node)RELU("activation"),
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

/* The logits have another reader, a ReLU. */
static int output_read(struct rfl_net_builder *b, int x)
{
	const int logits = rfl_chain(b, x, FLATTEN(NULL), FC("fc", CLASSES));

	(void)rfl_chain(b, logits, STEP(RFL_OP_RELU, "relu"));
	return logits;
}

#define CHAIN(...)                                        \
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
	{ "conv_dilation",
	  CHAIN(CONV_WITH("conv", .out_channels = 6, SAME(3, 1), .pad_h = 2, .pad_w = 3,
			  .dilation_h = 2, .dilation_w = 3)) },
	{ "conv_groups", CHAIN(GROUPED("conv", 6, 3, 1, 2), GROUPED("conv2", 12, 1, 2, 3)) },
	{ "conv_depthwise", CHAIN(GROUPED("conv", 8, 3, 2, 8), CONV("conv2", 4, 1, 1)) },
	{ "conv_depthwise_bias", CHAIN(CONV_OF("conv", 8, 8, true, SAME(5, 1))) },
	{ "conv_depthwise_twice", CHAIN(GROUPED("conv", 16, 3, 1, 8)) },
	{ "conv_1x7", CHAIN(CONV_WITH("conv", .out_channels = 6, WINDOW(1, 7, 1, 0, 3)),
			    CONV_WITH("conv2", .out_channels = 4, WINDOW(7, 1, 1, 3, 0))) },
	{ "linear", CHAIN(FLATTEN(NULL), FC("linear", 16)) },
	{ "linear_no_bias", CHAIN(AVERAGE("pool", 2), FLATTEN(NULL), LINEAR("linear", 7)) },
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
	{ "avg_pool_ceil_exclude",
	  CHAIN(POOL_WITH(AVG_POOL, CEIL, .pad_h = 1, .exclude_padding = true)) },
	{ "adaptive_1", CHAIN(AVERAGE("pool", 1)) },
	{ "adaptive_4", CHAIN(AVERAGE("pool", 4)) },
	{ "adaptive_same", CHAIN(AVERAGE("pool", 8)) },
	{ "adaptive_uneven", CHAIN(AVERAGE("pool", 3)), .may_refuse = true },
	{ "mean", CHAIN(REDUCE(MEAN, 1, 2, false)) },
	{ "mean_kept", CHAIN(REDUCE(MEAN, 1, 2, true), CONV("conv", 6, 1, 1)) },
	{ "shuffle_2", CHAIN(RESHAPE(2, 4, 8, 8), PERMUTE(1, 0, 2, 3), COPY, RESHAPE(8, 8, 8)) },
	{ "shuffle_4", CHAIN(RESHAPE(4, 2, 8, 8), PERMUTE(1, 0, 2, 3), COPY, RESHAPE(8, 8, 8),
			     CONV("conv", 4, 1, 1)) },
	{ "contiguous", CHAIN(COPY, RESHAPE(512)) },
	{ "concat", .build = concat_channels },
	{ "concat_features", .build = concat_features },
	{ "slices", .build = slices },
	{ "slice_alone", CHAIN(SLICE(0, 3, 4, 1)) },
	{ "slice_step", CHAIN(SLICE(0, 1, 3, 2)), .may_refuse = true },
	{ "conv_relu", CHAIN(BIASED("conv", 6, 3, 1), RELU("relu"), MAX_POOL("pool", 2, 2, 0)) },
	{ "conv_read_twice", .build = conv_read_twice },
	{ "conv_bn_relu", CHAIN(BATCH_NORM("bn"), RELU("relu"), CONV("conv", 8, 3, 1),
				BATCH_NORM("bn2"), RELU("relu2"), MAX_POOL("pool", 3, 2, 1)) },
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
	{ "linear_relu_linear", CHAIN(FLATTEN(NULL), FC("fc1", 16), RELU("relu1"), FC("fc2", 12),
				      RELU("relu2")) },
	{ "output_read", .build = output_read, .whole = true },
};

static struct rfl_net *net_of(const struct subject *s)
{
	struct rfl_net_builder *b = rfl_net_builder_new(s->name, "test");
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int x = rfl_chain(b, rfl_net_input(b, 3, SIDE, SIDE), CONV("stem", 8, 3, 1));

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
	enum rfl_precision precision;
	enum rfl_layout layout;
	char name[128];
	const struct tolerance *tolerance;
	struct rfl_net *net;
	struct reference *reference;
	struct rfl_engine *e;
	struct rfl_score score; /* of the reference, since the engine was opened */
	const char *stage;
	int failures;
	bool has_norm;
};

static float images[2][SAMPLES * IMAGE]; /* in both layouts */
static int64_t labels[SAMPLES];

#define TRY(r, call)                             \
	do {                                     \
		struct rfl_err err_ = RFL_ERR_INIT; \
		struct rfl_err *err = &err_;     \
		if ((call) != RFL_OK)            \
			fail_msg("%s: %s: %s", (r)->name, (r)->stage, err_.msg); \
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
	if (sqrt(error) <= tolerance * norm)
		return;
	r->failures++;
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
	if (i == n)
		return;
	r->failures++;
	print_error("%s: %s: %s: [%lld] is %.9g, not %.9g\n", r->name, r->stage, what, (long long)i,
		    (double)got[i], (double)want[i]);
}

static void open_engine(struct rig *r, const struct rfl_optimizer *o)
{
	const struct rfl_engine_config config = { .precision = r->precision,
						  .layout = r->layout,
						  .threads = 2,
						  .max_batch = MAX_BATCH,
						  .optimizer = *o,
						  .deterministic = true,
						  .score = true };

	r->ops->close(r->e);
	r->e = NULL;
	r->score = (struct rfl_score){ .rows = 0 };
	TRY(r, r->ops->open(r->net, &config, &r->e, err));
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

static struct rfl_batch batch_of(const struct rig *r, int64_t first, int64_t n)
{
	return (struct rfl_batch){ .n = n,
				   .images = images[r->layout] + first * IMAGE,
				   .layout = r->layout,
				   .labels = labels + first };
}

/* Run the reference on samples, and compare what the engine made of them. */
static void expect_forward(struct rig *r, enum rfl_engine_mode mode, int64_t first, int64_t n)
{
	struct reference *want = r->reference;
	float got[FLOATS];
	double loss;

	reference_forward(want, mode, images[RFL_LAYOUT_NCHW] + first * IMAGE, labels + first, n);
	r->score.rows += n;
	r->score.correct += want->correct;
	r->score.loss += want->loss * (double)n;
	TRY(r, r->ops->logits(r->e, got, n * CLASSES, err));
	compare(r, "output", "logits", got, want->value[r->net->output], n * CLASSES,
		r->tolerance->value, 0);
	TRY(r, r->ops->loss(r->e, &loss, err));
	compare(r, "output", "loss", &(float){ (float)loss }, &want->loss, 1, r->tolerance->value,
		0);
	for (int i = 0; i < r->net->nparams; i++) {
		if (!is_buffer(r, i))
			continue;
		TRY(r, r->ops->get_param(r->e, i, got, r->net->params[i].numel, err));
		compare(r, "buffer", r->net->params[i].name, got, want->param[i],
			r->net->params[i].numel, r->tolerance->value, 0);
	}
}

static void forward(struct rig *r, enum rfl_engine_mode mode, int64_t first, int64_t n)
{
	const struct rfl_batch batch = batch_of(r, first, n);

	TRY(r, r->ops->set_mode(r->e, mode, err));
	TRY(r, r->ops->forward(r->e, &batch, err));
	expect_forward(r, mode, first, n);
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
		compare(r, "gradient", p->name, got, want, p->numel, r->tolerance->gradient,
			r->tolerance->floor * sqrt(square / n));
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

/* ---- what is tested of it ---- */

static void passes(struct rig *r, enum rfl_engine_mode mode, int64_t first, int64_t n)
{
	zero_grad(r);
	forward(r, mode, first, n);
	backward(r, 1, true);
	expect_gradients(r);
}

static void micro_batches(struct rig *r, int64_t first)
{
	const enum rfl_engine_mode mode = r->has_norm ? RFL_ENGINE_TRAIN_FROZEN_BN
						      : RFL_ENGINE_TRAIN;
	const double share = (double)first / MAX_BATCH;

	zero_grad(r);
	forward(r, mode, 4, first);
	backward(r, share, false);
	forward(r, mode, 4 + first, MAX_BATCH - first);
	backward(r, 1 - share, true);
	zero_reference_of_whole(r, mode);
	expect_gradients(r);
}
