/*
 * mobilenet.c - networks of inverted residuals, as in torchvision: MobileNetV2 (Sandler et al.,
 * "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018), MobileNetV3 (Howard et al.,
 * "Searching for MobileNetV3", ICCV 2019), EfficientNet (Tan and Le, "EfficientNet: Rethinking
 * Model Scaling for Convolutional Neural Networks", ICML 2019) and EfficientNetV2 (Tan and Le, ICML
 * 2021).
 */
#include <math.h>
#include <stdio.h>

#include "complexity/zoo/blocks.h"

/* One row of a paper's table; 0 layers end it. */
struct stage {
	int hidden; /* channels of the depthwise convolution; negative: multiple of the input's */
	int kernel, stride, out, layers;
	enum {
		PLAIN,
		SQUEEZE, /* with squeeze and excitation */
		FUSED    /* the first two convolutions are one */
	} form;
	enum rfl_op activation;
};

struct mobile {
	enum { MOBILENET_V2, MOBILENET_V3, EFFICIENTNET } kind;
	const struct stage *stages;
	int first, last; /* channels of these convolutions; last negative, as `hidden` */
	int linear;      /* features of an additional linear layer; 0: none */
	double width, depth, dropout;
	double eps, momentum; /* of batch norms */
};

static const double STOCHASTIC_DEPTH = 0.2; /* in EfficientNet's last block; rises from 0 */

#define RELU  RFL_OP_RELU
#define RELU6 RFL_OP_RELU6
#define HARD  RFL_OP_HARD_SWISH
#define SILU  RFL_OP_SILU

static int layers(const struct mobile *m, const struct stage *s)
{
	return (int)ceil(s->layers * m->depth);
}

/* Expansion, depthwise convolution, squeeze and excitation, projection. A fused block combines the
 * first two, or consists of that convolution alone if there is no expansion. Only existing parts
 * are numbered. */
static int residual(struct rfl_net_builder *b, int x, const struct mobile *m, const struct stage *s,
		    int64_t out, int64_t stride, double drop)
{
	static const char *const names[2][4] = { { "block.0", "block.1", "block.2", "block.3" },
						 { "conv.0", "conv.1", "conv.2", "conv.3" } };
	const bool v2 = m->kind == MOBILENET_V2, efficient = m->kind == EFFICIENTNET;
	const char *const *part = names[v2];
	const int64_t in = rfl_net_channels(b, x);
	const int64_t hidden = s->hidden < 0 ? -s->hidden * in : s->hidden;
	const struct rfl_zoo_squeeze_args squeeze = {
		.channels = efficient ? in / 4 : rfl_zoo_divisible((double)(hidden / 4), 8),
		.activation = efficient ? SILU : RELU,
		.inplace = efficient ? RFL_INPLACE : RFL_OUT_OF_PLACE,
		.scale = efficient ? RFL_OP_SIGMOID : RFL_OP_HARD_SIGMOID,
	};
	const bool expands = hidden != in, fused = s->form == FUSED;
	const int identity = x;

	if (expands && !fused)
		x = rfl_zoo_conv_norm(b, x, *part++, hidden, .activation = s->activation);
	x = rfl_zoo_conv_norm(b, x, *part++, fused && !expands ? out : hidden, .kernel = s->kernel,
			      .stride = stride, .groups = fused ? 1 : hidden,
			      .activation = s->activation);
	if (s->form == SQUEEZE)
		x = rfl_zoo_squeeze_excitation(b, x, *part++, &squeeze);
	if (v2) { /* not a Sequential */
		x = rfl_conv2d(b, x, *part++, out, .kernel = 1);
		x = rfl_batch_norm(b, x, *part);
	} else if (expands || !fused) {
		x = rfl_zoo_conv_norm(b, x, *part, out, .kernel = 1);
	}
	if (stride != 1 || in != out)
		return x;
	if (efficient)
		x = rfl_stochastic_depth(b, x, "stochastic_depth", drop);
	return v2 ? rfl_add(b, identity, x, RFL_OUT_OF_PLACE)
		  : rfl_add(b, x, identity, RFL_INPLACE);
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct mobile *m = sizes->config;
	const bool efficient = m->kind == EFFICIENTNET, v2 = m->kind == MOBILENET_V2;
	const enum rfl_op activation = v2 ? RELU6 : efficient ? SILU : HARD;
	int stage = 1, block = 0, blocks = 0;
	char name[32];

	for (const struct stage *s = m->stages; s->layers; s++)
		blocks += layers(m, s);
	b->eps = m->eps;
	b->momentum = m->momentum;
	x = rfl_zoo_conv_norm(b, x, "features.0", rfl_zoo_divisible(m->first * m->width, 8),
			      .kernel = 3, .stride = 2, .activation = activation);
	for (const struct stage *s = m->stages; s->layers; s++, stage++) {
		const int64_t out = rfl_zoo_divisible(s->out * m->width, 8);

		for (int i = 0; i < layers(m, s); i++, block++) {
			if (efficient)
				rfl_net_enter_block(b, "features.%d.%d", stage, i);
			else
				rfl_net_enter_block(b, "features.%d", block + 1);
			x = residual(b, x, m, s, out, i == 0 ? s->stride : 1,
				     STOCHASTIC_DEPTH * block / blocks);
			rfl_net_leave(b);
		}
	}
	(void)snprintf(name, sizeof(name), "features.%d", efficient ? stage : block + 1);
	x = rfl_zoo_conv_norm(b, x, name, m->last < 0 ? -m->last * rfl_net_channels(b, x) : m->last,
			      .activation = activation);
	x = rfl_adaptive_avg_pool(b, x, v2 ? NULL : "avgpool", 1, 1);
	x = rfl_flatten(b, x);
	rfl_net_enter(b, "classifier");
	if (m->linear) {
		x = rfl_linear(b, x, "0", m->linear, true);
		x = rfl_unary(b, activation, x, "1", RFL_INPLACE);
	}
	x = rfl_dropout(b, x, m->linear ? "2" : "0", m->dropout);
	if (!v2)
		x = rfl_net_in_place(b, x);
	x = rfl_linear(b, x, m->linear ? "3" : "1", sizes->classes, true);
	rfl_net_leave(b);
	return x;
}

/* Table 2 of the MobileNetV2 paper. */
static const struct stage stages_v2[] = {
	{ -1, 3, 1, 16, 1, PLAIN, RELU6 },  { -6, 3, 2, 24, 2, PLAIN, RELU6 },
	{ -6, 3, 2, 32, 3, PLAIN, RELU6 },  { -6, 3, 2, 64, 4, PLAIN, RELU6 },
	{ -6, 3, 1, 96, 3, PLAIN, RELU6 },  { -6, 3, 2, 160, 3, PLAIN, RELU6 },
	{ -6, 3, 1, 320, 1, PLAIN, RELU6 }, { 0 },
};

/* Tables 1 and 2 of the MobileNetV3 paper. */
static const struct stage stages_large[] = {
	{ 16, 3, 1, 16, 1, PLAIN, RELU },
	{ 64, 3, 2, 24, 1, PLAIN, RELU },
	{ 72, 3, 1, 24, 1, PLAIN, RELU },
	{ 72, 5, 2, 40, 1, SQUEEZE, RELU },
	{ 120, 5, 1, 40, 2, SQUEEZE, RELU },
	{ 240, 3, 2, 80, 1, PLAIN, HARD },
	{ 200, 3, 1, 80, 1, PLAIN, HARD },
	{ 184, 3, 1, 80, 2, PLAIN, HARD },
	{ 480, 3, 1, 112, 1, SQUEEZE, HARD },
	{ 672, 3, 1, 112, 1, SQUEEZE, HARD },
	{ 672, 5, 2, 160, 1, SQUEEZE, HARD },
	{ 960, 5, 1, 160, 2, SQUEEZE, HARD },
	{ 0 },
};
static const struct stage stages_small[] = {
	{ 16, 3, 2, 16, 1, SQUEEZE, RELU },  { 72, 3, 2, 24, 1, PLAIN, RELU },
	{ 88, 3, 1, 24, 1, PLAIN, RELU },    { 96, 5, 2, 40, 1, SQUEEZE, HARD },
	{ 240, 5, 1, 40, 2, SQUEEZE, HARD }, { 120, 5, 1, 48, 1, SQUEEZE, HARD },
	{ 144, 5, 1, 48, 1, SQUEEZE, HARD }, { 288, 5, 2, 96, 1, SQUEEZE, HARD },
	{ 576, 5, 1, 96, 2, SQUEEZE, HARD }, { 0 },
};

#define V3(name_, stages_, linear_)                                                                \
	RFL_ZOO_IMAGENET("mobilenet", "mobilenet_v3_" name_, "MobileNetV3 " name_,                 \
			 "inverted residuals found by search (Howard et al. 2019)", 224,           \
			 &(const struct mobile){ MOBILENET_V3, stages_, 16, -6, linear_, 1.0, 1.0, \
						 0.2, 1e-3, 0.01 })

static const struct rfl_zoo_entry mobilenet_models[] = {
	RFL_ZOO_IMAGENET("mobilenet", "mobilenet_v2", "MobileNetV2",
			 "inverted residuals, depthwise convolutions (Sandler et al. 2018)", 224,
			 &(const struct mobile){ MOBILENET_V2, stages_v2, 32, 1280, 0, 1.0, 1.0,
						 0.2, 1e-5, 0.1 }),
	V3("small", stages_small, 1024),
	V3("large", stages_large, 1280),
};

RFL_ZOO_FAMILY(mobilenet, mobilenet_models, build);

/* Table 1 of the first EfficientNet paper. */
static const struct stage stages_b[] = {
	{ -1, 3, 1, 16, 1, SQUEEZE, SILU },  { -6, 3, 2, 24, 2, SQUEEZE, SILU },
	{ -6, 5, 2, 40, 2, SQUEEZE, SILU },  { -6, 3, 2, 80, 3, SQUEEZE, SILU },
	{ -6, 5, 1, 112, 3, SQUEEZE, SILU }, { -6, 5, 2, 192, 4, SQUEEZE, SILU },
	{ -6, 3, 1, 320, 1, SQUEEZE, SILU }, { 0 },
};

/* Table 4 of the second paper, and its larger forms. */
static const struct stage stages_s[] = {
	{ -1, 3, 1, 24, 2, FUSED, SILU },
	{ -4, 3, 2, 48, 4, FUSED, SILU },
	{ -4, 3, 2, 64, 4, FUSED, SILU },
	{ -4, 3, 2, 128, 6, SQUEEZE, SILU },
	{ -6, 3, 1, 160, 9, SQUEEZE, SILU },
	{ -6, 3, 2, 256, 15, SQUEEZE, SILU },
	{ 0 },
};
static const struct stage stages_m[] = {
	{ -1, 3, 1, 24, 3, FUSED, SILU },     { -4, 3, 2, 48, 5, FUSED, SILU },
	{ -4, 3, 2, 80, 5, FUSED, SILU },     { -4, 3, 2, 160, 7, SQUEEZE, SILU },
	{ -6, 3, 1, 176, 14, SQUEEZE, SILU }, { -6, 3, 2, 304, 18, SQUEEZE, SILU },
	{ -6, 3, 1, 512, 5, SQUEEZE, SILU },  { 0 },
};
static const struct stage stages_l[] = {
	{ -1, 3, 1, 32, 4, FUSED, SILU },     { -4, 3, 2, 64, 7, FUSED, SILU },
	{ -4, 3, 2, 96, 7, FUSED, SILU },     { -4, 3, 2, 192, 10, SQUEEZE, SILU },
	{ -6, 3, 1, 224, 19, SQUEEZE, SILU }, { -6, 3, 2, 384, 25, SQUEEZE, SILU },
	{ -6, 3, 1, 640, 7, SQUEEZE, SILU },  { 0 },
};

#define EFFICIENT(name_, title_, summary_, size_, ...)                                           \
	RFL_ZOO_IMAGENET("efficientnet", "efficientnet_" name_, "EfficientNet" title_, summary_, \
			 size_, &(const struct mobile){ EFFICIENTNET, __VA_ARGS__ })
#define B(number_, size_, width_, depth_, dropout_, eps_, momentum_)                              \
	EFFICIENT("b" number_, "-B" number_,                                                      \
		  "MBConv blocks, width " #width_ ", depth " #depth_ " (Tan and Le 2019)", size_, \
		  stages_b, 32, -4, 0, width_, depth_, dropout_, eps_, momentum_)
#define V2(letter_, title_, size_, stages_, first_, dropout_)                                     \
	EFFICIENT("v2_" letter_, "V2-" title_, "fused and plain MBConv blocks (Tan and Le 2021)", \
		  size_, stages_, first_, 1280, 0, 1.0, 1.0, dropout_, 1e-3, 0.1)

static const struct rfl_zoo_entry efficientnet_models[] = {
	B("0", 224, 1.0, 1.0, 0.2, 1e-5, 0.1),  B("1", 240, 1.0, 1.1, 0.2, 1e-5, 0.1),
	B("2", 288, 1.1, 1.2, 0.3, 1e-5, 0.1),  B("3", 300, 1.2, 1.4, 0.3, 1e-5, 0.1),
	B("4", 380, 1.4, 1.8, 0.4, 1e-5, 0.1),  B("5", 456, 1.6, 2.2, 0.4, 1e-3, 0.01),
	B("6", 528, 1.8, 2.6, 0.5, 1e-3, 0.01), B("7", 600, 2.0, 3.1, 0.5, 1e-3, 0.01),
	V2("s", "S", 384, stages_s, 24, 0.2),   V2("m", "M", 480, stages_m, 24, 0.3),
	V2("l", "L", 480, stages_l, 32, 0.4),
};

RFL_ZOO_FAMILY(efficientnet, efficientnet_models, build);
