/*
 * efficientnet.c - EfficientNet (Tan and Le, "EfficientNet: Rethinking Model Scaling for
 * Convolutional Neural Networks", ICML 2019) and EfficientNetV2 (Tan and Le, ICML 2021), as in
 * torchvision. The batch norms of B5 to B7 and of V2 have different constants.
 */
#include <math.h>
#include <stdio.h>

#include "complexity/zoo/blocks.h"

/* One row of a paper's table; 0 layers end it. `fused`: the first two convolutions are one. */
struct stage {
	bool fused;
	int expand, kernel, stride, out, layers;
};

struct efficientnet {
	const struct stage *stages;
	int first, last; /* channels of these convolutions; last 0: four times its input */
	double width, depth;
	double dropout, eps, momentum;
};

static const double STOCHASTIC_DEPTH = 0.2; /* in the last block; rises from 0 */

/* Table 1 of the first paper. */
static const struct stage stages_b[] = {
	{ false, 1, 3, 1, 16, 1 },  { false, 6, 3, 2, 24, 2 },
	{ false, 6, 5, 2, 40, 2 },  { false, 6, 3, 2, 80, 3 },
	{ false, 6, 5, 1, 112, 3 }, { false, 6, 5, 2, 192, 4 },
	{ false, 6, 3, 1, 320, 1 }, { 0 },
};

/* Table 4 of the second paper, and its larger forms. */
static const struct stage stages_s[] = {
	{ true, 1, 3, 1, 24, 2 },
	{ true, 4, 3, 2, 48, 4 },
	{ true, 4, 3, 2, 64, 4 },
	{ false, 4, 3, 2, 128, 6 },
	{ false, 6, 3, 1, 160, 9 },
	{ false, 6, 3, 2, 256, 15 },
	{ 0 },
};
static const struct stage stages_m[] = {
	{ true, 1, 3, 1, 24, 3 },    { true, 4, 3, 2, 48, 5 },
	{ true, 4, 3, 2, 80, 5 },    { false, 4, 3, 2, 160, 7 },
	{ false, 6, 3, 1, 176, 14 }, { false, 6, 3, 2, 304, 18 },
	{ false, 6, 3, 1, 512, 5 },  { 0 },
};
static const struct stage stages_l[] = {
	{ true, 1, 3, 1, 32, 4 },    { true, 4, 3, 2, 64, 7 },
	{ true, 4, 3, 2, 96, 7 },    { false, 4, 3, 2, 192, 10 },
	{ false, 6, 3, 1, 224, 19 }, { false, 6, 3, 2, 384, 25 },
	{ false, 6, 3, 1, 640, 7 },  { 0 },
};

static int64_t channels(const struct efficientnet *e, int width)
{
	return rfl_zoo_divisible(width * e->width, 8);
}

static int layers(const struct efficientnet *e, const struct stage *s)
{
	return (int)ceil(s->layers * e->depth);
}

/* A fused block combines expansion and depthwise convolution, or consists of that convolution alone
 * if there is no expansion. Only existing parts are numbered. */
static int residual(struct rfl_net_builder *b, int x, const struct stage *s, int64_t out,
		    int64_t stride, double drop)
{
	static const char *const parts[] = { "block.0", "block.1", "block.2", "block.3" };
	const char *const *part = parts;
	int64_t in = rfl_net_channels(b, x), hidden = rfl_zoo_divisible((double)in * s->expand, 8);
	const struct rfl_zoo_squeeze_args squeeze = {
		.channels = in < 4 ? 1 : in / 4,
		.activation = RFL_OP_SILU,
		.inplace = RFL_INPLACE,
		.scale = RFL_OP_SIGMOID,
	};
	bool expands = hidden != in;
	int identity = x;

	if (s->fused) {
		x = rfl_zoo_conv_norm(b, x, *part++, expands ? hidden : out, .kernel = s->kernel,
				      .stride = stride, .activation = RFL_OP_SILU);
	} else {
		if (expands)
			x = rfl_zoo_conv_norm(b, x, *part++, hidden, .activation = RFL_OP_SILU);
		x = rfl_zoo_conv_norm(b, x, *part++, hidden, .kernel = s->kernel, .stride = stride,
				      .groups = hidden, .activation = RFL_OP_SILU);
		x = rfl_zoo_squeeze_excitation(b, x, *part++, &squeeze);
	}
	if (expands || !s->fused)
		x = rfl_zoo_conv_norm(b, x, *part, out, .kernel = 1);
	if (stride == 1 && in == out) {
		x = rfl_stochastic_depth(b, x, "stochastic_depth", drop);
		x = rfl_add(b, x, identity, RFL_INPLACE);
	}
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct efficientnet *e = sizes->config;
	int stage = 1, block = 0, blocks = 0;
	char name[32];

	for (const struct stage *s = e->stages; s->layers; s++)
		blocks += layers(e, s);
	b->eps = e->eps;
	b->momentum = e->momentum;
	x = rfl_zoo_conv_norm(b, x, "features.0", channels(e, e->first), .kernel = 3, .stride = 2,
			      .activation = RFL_OP_SILU);
	for (const struct stage *s = e->stages; s->layers; s++, stage++) {
		for (int i = 0; i < layers(e, s); i++, block++) {
			rfl_net_enter_block(b, "features.%d.%d", stage, i);
			x = residual(b, x, s, channels(e, s->out), i == 0 ? s->stride : 1,
				     STOCHASTIC_DEPTH * block / blocks);
			rfl_net_leave(b);
		}
	}
	(void)snprintf(name, sizeof(name), "features.%d", stage);
	x = rfl_zoo_conv_norm(b, x, name, e->last ? e->last : 4 * rfl_net_channels(b, x),
			      .activation = RFL_OP_SILU);
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_flatten(b, x);
	x = rfl_net_in_place(b, rfl_dropout(b, x, "classifier.0", e->dropout));
	return rfl_linear(b, x, "classifier.1", sizes->classes, true);
}

#define EFFICIENTNET(name_, title_, summary_, size_, ...)                                        \
	RFL_ZOO_IMAGENET("efficientnet", "efficientnet_" name_, "EfficientNet" title_, summary_, \
			 size_, &(const struct efficientnet){ __VA_ARGS__ })
#define B(number_, size_, width_, depth_, dropout_, eps_, momentum_)                               \
	EFFICIENTNET("b" number_, "-B" number_,                                                    \
		     "MBConv blocks, width " #width_ ", depth " #depth_ " (Tan and Le 2019)",      \
		     size_, .stages = stages_b, .first = 32, .width = (width_), .depth = (depth_), \
		     .dropout = (dropout_), .eps = (eps_), .momentum = (momentum_))
#define V2(letter_, title_, size_, stages_, first_, dropout_)                            \
	EFFICIENTNET("v2_" letter_, "V2-" title_,                                        \
		     "fused and plain MBConv blocks (Tan and Le 2021)", size_,           \
		     .stages = (stages_), .first = (first_), .last = 1280, .width = 1.0, \
		     .depth = 1.0, .dropout = (dropout_), .eps = 1e-3, .momentum = 0.1)

static const struct rfl_zoo_entry entries[] = {
	B("0", 224, 1.0, 1.0, 0.2, 1e-5, 0.1),  B("1", 240, 1.0, 1.1, 0.2, 1e-5, 0.1),
	B("2", 288, 1.1, 1.2, 0.3, 1e-5, 0.1),  B("3", 300, 1.2, 1.4, 0.3, 1e-5, 0.1),
	B("4", 380, 1.4, 1.8, 0.4, 1e-5, 0.1),  B("5", 456, 1.6, 2.2, 0.4, 1e-3, 0.01),
	B("6", 528, 1.8, 2.6, 0.5, 1e-3, 0.01), B("7", 600, 2.0, 3.1, 0.5, 1e-3, 0.01),
	V2("s", "S", 384, stages_s, 24, 0.2),   V2("m", "M", 480, stages_m, 24, 0.3),
	V2("l", "L", 480, stages_l, 32, 0.4),
};

RFL_ZOO_FAMILY(efficientnet, entries, build);
