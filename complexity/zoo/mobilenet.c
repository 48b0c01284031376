/*
 * mobilenet.c - networks of inverted residuals, as in torchvision: MobileNetV2 (Sandler et al.,
 * "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018), MobileNetV3 (Howard et al.,
 * "Searching for MobileNetV3", ICCV 2019), EfficientNet (Tan and Le, "EfficientNet: Rethinking
 * Model Scaling for Convolutional Neural Networks", ICML 2019) and EfficientNetV2 (Tan and Le, ICML
 * 2021).
 */
#include <math.h>

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

static int layers(const struct mobile *m, const struct stage *s)
{
	return (int)ceil(s->layers * m->depth);
}

/* A Sequential: a convolution without bias, a batch norm, an activation. */
static int conv_norm(struct rfl_net_builder *b, int x, const char *list, int index, int64_t out,
		     int64_t kernel, int64_t stride, int64_t groups, enum rfl_op activation)
{
	rfl_net_enter(b, "%s.%d", list, index);
	x = rfl_chain(b, x, GROUPED("0", out, kernel, stride, groups), BATCH_NORM("1"),
		      INPLACE(activation, "2"));
	rfl_net_leave(b);
	return x;
}

/* Expansion, depthwise convolution, squeeze and excitation, projection. A fused block combines the
 * first two, or consists of that convolution alone if there is no expansion. Only existing parts
 * are numbered. */
static int residual(struct rfl_net_builder *b, int x, const struct mobile *m, const struct stage *s,
		    int64_t out, int64_t stride, double drop)
{
	const bool v2 = m->kind == MOBILENET_V2, efficient = m->kind == EFFICIENTNET;
	const char *list = v2 ? "conv" : "block";
	const int64_t in = rfl_net_channels(b, x);
	const int64_t hidden = s->hidden < 0 ? -s->hidden * in : s->hidden;
	const bool expands = hidden != in, fused = s->form == FUSED;
	const struct rfl_node activation = {
		.op = efficient ? RFL_OP_SILU : RFL_OP_RELU,
		.name = "activation",
		.inplace = efficient,
	};
	const int identity = x;
	int part = 0;

	if (expands && !fused)
		x = conv_norm(b, x, list, part++, hidden, 1, 1, 1, s->activation);
	x = conv_norm(b, x, list, part++, fused && !expands ? out : hidden, s->kernel, stride,
		      fused ? 1 : hidden, s->activation);
	if (s->form == SQUEEZE)
		x = rfl_zoo_squeeze_excitation(
			b, x, part++ == 2 ? "block.2" : "block.1",
			efficient ? in / 4 : rfl_zoo_divisible((double)(hidden / 4), 8), activation,
			efficient ? RFL_OP_SIGMOID : RFL_OP_HARD_SIGMOID);
	if (v2) /* not a Sequential */
		x = rfl_chain(b, x, CONV(part == 1 ? "conv.1" : "conv.2", out, 1, 1),
			      BATCH_NORM(part == 1 ? "conv.2" : "conv.3"));
	else if (expands || !fused)
		x = conv_norm(b, x, list, part, out, 1, 1, 1, 0);
	if (stride != 1 || in != out)
		return x;
	if (efficient)
		x = rfl_chain(b, x, DEPTH("stochastic_depth", drop));
	return v2 ? rfl_add(b, identity, x, RFL_OUT_OF_PLACE)
		  : rfl_add(b, x, identity, RFL_INPLACE);
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct mobile *m = sizes->config;
	const bool efficient = m->kind == EFFICIENTNET, v2 = m->kind == MOBILENET_V2;
	const enum rfl_op activation = v2          ? RFL_OP_RELU6
				       : efficient ? RFL_OP_SILU
						   : RFL_OP_HARD_SWISH;
	int stage = 1, block = 0, blocks = 0;

	for (const struct stage *s = m->stages; s->layers; s++)
		blocks += layers(m, s);
	b->eps = m->eps;
	b->momentum = m->momentum;
	x = conv_norm(b, x, "features", 0, rfl_zoo_divisible(m->first * m->width, 8), 3, 2, 1,
		      activation);
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
	x = conv_norm(b, x, "features", efficient ? stage : block + 1,
		      m->last < 0 ? -m->last * rfl_net_channels(b, x) : m->last, 1, 1, 1,
		      activation);
	x = rfl_chain(b, x, AVERAGE(v2 ? NULL : "avgpool", 1), FLATTEN(NULL));
	rfl_net_enter(b, "classifier");
	if (m->linear)
		x = rfl_chain(b, x, FC("#", m->linear), INPLACE(activation, "#"));
	x = rfl_chain(b, x, LAYER(DROPOUT, "#", .inplace = !v2, .attr.dropout = { m->dropout }),
		      FC("#", sizes->classes));
	rfl_net_leave(b);
	return x;
}

/* Table 2 of the MobileNetV2 paper. */
static const struct stage stages_v2[] = {
	{ -1, 3, 1, 16, 1, PLAIN, RFL_OP_RELU6 },  { -6, 3, 2, 24, 2, PLAIN, RFL_OP_RELU6 },
	{ -6, 3, 2, 32, 3, PLAIN, RFL_OP_RELU6 },  { -6, 3, 2, 64, 4, PLAIN, RFL_OP_RELU6 },
	{ -6, 3, 1, 96, 3, PLAIN, RFL_OP_RELU6 },  { -6, 3, 2, 160, 3, PLAIN, RFL_OP_RELU6 },
	{ -6, 3, 1, 320, 1, PLAIN, RFL_OP_RELU6 }, { 0 },
};

/* Tables 1 and 2 of the MobileNetV3 paper. */
static const struct stage stages_large[] = {
	{ 16, 3, 1, 16, 1, PLAIN, RFL_OP_RELU },
	{ 64, 3, 2, 24, 1, PLAIN, RFL_OP_RELU },
	{ 72, 3, 1, 24, 1, PLAIN, RFL_OP_RELU },
	{ 72, 5, 2, 40, 1, SQUEEZE, RFL_OP_RELU },
	{ 120, 5, 1, 40, 2, SQUEEZE, RFL_OP_RELU },
	{ 240, 3, 2, 80, 1, PLAIN, RFL_OP_HARD_SWISH },
	{ 200, 3, 1, 80, 1, PLAIN, RFL_OP_HARD_SWISH },
	{ 184, 3, 1, 80, 2, PLAIN, RFL_OP_HARD_SWISH },
	{ 480, 3, 1, 112, 1, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 672, 3, 1, 112, 1, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 672, 5, 2, 160, 1, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 960, 5, 1, 160, 2, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 0 },
};
static const struct stage stages_small[] = {
	{ 16, 3, 2, 16, 1, SQUEEZE, RFL_OP_RELU },
	{ 72, 3, 2, 24, 1, PLAIN, RFL_OP_RELU },
	{ 88, 3, 1, 24, 1, PLAIN, RFL_OP_RELU },
	{ 96, 5, 2, 40, 1, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 240, 5, 1, 40, 2, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 120, 5, 1, 48, 1, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 144, 5, 1, 48, 1, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 288, 5, 2, 96, 1, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 576, 5, 1, 96, 2, SQUEEZE, RFL_OP_HARD_SWISH },
	{ 0 },
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
	{ -1, 3, 1, 16, 1, SQUEEZE, RFL_OP_SILU },  { -6, 3, 2, 24, 2, SQUEEZE, RFL_OP_SILU },
	{ -6, 5, 2, 40, 2, SQUEEZE, RFL_OP_SILU },  { -6, 3, 2, 80, 3, SQUEEZE, RFL_OP_SILU },
	{ -6, 5, 1, 112, 3, SQUEEZE, RFL_OP_SILU }, { -6, 5, 2, 192, 4, SQUEEZE, RFL_OP_SILU },
	{ -6, 3, 1, 320, 1, SQUEEZE, RFL_OP_SILU }, { 0 },
};

/* Table 4 of the second paper, and its larger forms. */
static const struct stage stages_s[] = {
	{ -1, 3, 1, 24, 2, FUSED, RFL_OP_SILU },
	{ -4, 3, 2, 48, 4, FUSED, RFL_OP_SILU },
	{ -4, 3, 2, 64, 4, FUSED, RFL_OP_SILU },
	{ -4, 3, 2, 128, 6, SQUEEZE, RFL_OP_SILU },
	{ -6, 3, 1, 160, 9, SQUEEZE, RFL_OP_SILU },
	{ -6, 3, 2, 256, 15, SQUEEZE, RFL_OP_SILU },
	{ 0 },
};
static const struct stage stages_m[] = {
	{ -1, 3, 1, 24, 3, FUSED, RFL_OP_SILU },     { -4, 3, 2, 48, 5, FUSED, RFL_OP_SILU },
	{ -4, 3, 2, 80, 5, FUSED, RFL_OP_SILU },     { -4, 3, 2, 160, 7, SQUEEZE, RFL_OP_SILU },
	{ -6, 3, 1, 176, 14, SQUEEZE, RFL_OP_SILU }, { -6, 3, 2, 304, 18, SQUEEZE, RFL_OP_SILU },
	{ -6, 3, 1, 512, 5, SQUEEZE, RFL_OP_SILU },  { 0 },
};
static const struct stage stages_l[] = {
	{ -1, 3, 1, 32, 4, FUSED, RFL_OP_SILU },     { -4, 3, 2, 64, 7, FUSED, RFL_OP_SILU },
	{ -4, 3, 2, 96, 7, FUSED, RFL_OP_SILU },     { -4, 3, 2, 192, 10, SQUEEZE, RFL_OP_SILU },
	{ -6, 3, 1, 224, 19, SQUEEZE, RFL_OP_SILU }, { -6, 3, 2, 384, 25, SQUEEZE, RFL_OP_SILU },
	{ -6, 3, 1, 640, 7, SQUEEZE, RFL_OP_SILU },  { 0 },
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
