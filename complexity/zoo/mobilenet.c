/*
 * mobilenet.c - MobileNetV2 (Sandler et al., "MobileNetV2: Inverted Residuals and Linear
 * Bottlenecks", CVPR 2018) and MobileNetV3 (Howard et al., "Searching for MobileNetV3", ICCV 2019),
 * as in torchvision.
 */
#include <stdio.h>

#include "complexity/zoo/blocks.h"

enum { MAX_STAGES = 15 };

/* One row of a paper's table; 0 in `expanded` ends it. */
struct row {
	int kernel, expanded, out;
	bool squeeze;
	enum rfl_op activation;
	int stride;
};

struct mobilenet {
	struct row rows[MAX_STAGES + 1];
	int last; /* features between the two linear layers */
};

/* Table 2 of the MobileNetV2 paper: expansion t, channels c, repeats n, first stride s. */
static const struct stage {
	int t, c, n, s;
} stages_v2[] = {
	{ 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 },  { 6, 64, 4, 2 },
	{ 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 },
};

static int residual_v2(struct rfl_net_builder *b, int x, int64_t out, int64_t stride,
		       int64_t expand)
{
	static const char *const parts[] = { "conv.0", "conv.1", "conv.2", "conv.3" };
	const char *const *part = parts;
	int64_t in = rfl_net_channels(b, x), hidden = in * expand;
	int identity = x;

	if (expand != 1)
		x = rfl_zoo_conv_norm(b, x, *part++, hidden, .activation = RFL_OP_RELU6);
	x = rfl_zoo_conv_norm(b, x, *part++, hidden, .kernel = 3, .stride = stride,
			      .groups = hidden, .activation = RFL_OP_RELU6);
	x = rfl_conv2d(b, x, *part++, out, .kernel = 1);
	x = rfl_batch_norm(b, x, *part);
	return stride == 1 && in == out ? rfl_add(b, identity, x, RFL_OUT_OF_PLACE) : x;
}

static int build_v2(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	int block = 1;

	x = rfl_zoo_conv_norm(b, x, "features.0", 32, .kernel = 3, .stride = 2,
			      .activation = RFL_OP_RELU6);
	for (size_t s = 0; s < RFL_ARRAY_LEN(stages_v2); s++) {
		for (int i = 0; i < stages_v2[s].n; i++) {
			rfl_net_enter_block(b, "features.%d", block++);
			x = residual_v2(b, x, stages_v2[s].c, i == 0 ? stages_v2[s].s : 1,
					stages_v2[s].t);
			rfl_net_leave(b);
		}
	}
	x = rfl_zoo_conv_norm(b, x, "features.18", 1280, .activation = RFL_OP_RELU6);
	x = rfl_adaptive_avg_pool(b, x, NULL, 1, 1);
	x = rfl_flatten(b, x);
	x = rfl_dropout(b, x, "classifier.0", 0.2);
	return rfl_linear(b, x, "classifier.1", sizes->classes, true);
}

/* Tables 1 and 2 of the MobileNetV3 paper. */
#define RELU RFL_OP_RELU
#define HARD RFL_OP_HARD_SWISH

static const struct mobilenet large = {
	.rows = {
		{ 3, 16, 16, false, RELU, 1 },   { 3, 64, 24, false, RELU, 2 },
		{ 3, 72, 24, false, RELU, 1 },   { 5, 72, 40, true, RELU, 2 },
		{ 5, 120, 40, true, RELU, 1 },   { 5, 120, 40, true, RELU, 1 },
		{ 3, 240, 80, false, HARD, 2 },  { 3, 200, 80, false, HARD, 1 },
		{ 3, 184, 80, false, HARD, 1 },  { 3, 184, 80, false, HARD, 1 },
		{ 3, 480, 112, true, HARD, 1 },  { 3, 672, 112, true, HARD, 1 },
		{ 5, 672, 160, true, HARD, 2 },  { 5, 960, 160, true, HARD, 1 },
		{ 5, 960, 160, true, HARD, 1 },
	},
	.last = 1280,
};

static const struct mobilenet small = {
	.rows = {
		{ 3, 16, 16, true, RELU, 2 },   { 3, 72, 24, false, RELU, 2 },
		{ 3, 88, 24, false, RELU, 1 },  { 5, 96, 40, true, HARD, 2 },
		{ 5, 240, 40, true, HARD, 1 },  { 5, 240, 40, true, HARD, 1 },
		{ 5, 120, 48, true, HARD, 1 },  { 5, 144, 48, true, HARD, 1 },
		{ 5, 288, 96, true, HARD, 2 },  { 5, 576, 96, true, HARD, 1 },
		{ 5, 576, 96, true, HARD, 1 },
	},
	.last = 1024,
};

/* Only the existing parts of a block are numbered. */
static int residual_v3(struct rfl_net_builder *b, int x, const struct row *r)
{
	static const char *const parts[] = { "block.0", "block.1", "block.2", "block.3" };
	const int quarter = r->expanded / 4;
	const struct rfl_zoo_squeeze_args squeeze = {
		.channels = rfl_zoo_divisible(quarter, 8),
		.activation = RFL_OP_RELU,
		.scale = RFL_OP_HARD_SIGMOID,
	};
	const char *const *part = parts;
	int64_t in = rfl_net_channels(b, x);
	int identity = x;

	if (r->expanded != in)
		x = rfl_zoo_conv_norm(b, x, *part++, r->expanded, .activation = r->activation);
	x = rfl_zoo_conv_norm(b, x, *part++, r->expanded, .kernel = r->kernel, .stride = r->stride,
			      .groups = r->expanded, .activation = r->activation);
	if (r->squeeze)
		x = rfl_zoo_squeeze_excitation(b, x, *part++, &squeeze);
	x = rfl_zoo_conv_norm(b, x, *part, r->out, .kernel = 1);
	return r->stride == 1 && r->out == in ? rfl_add(b, x, identity, RFL_INPLACE) : x;
}

static int build_v3(struct rfl_net_builder *b, int x, const struct mobilenet *m,
		    const struct rfl_zoo_sizes *sizes)
{
	int block = 1;
	char name[32];

	b->eps = 1e-3;
	b->momentum = 0.01;
	x = rfl_zoo_conv_norm(b, x, "features.0", 16, .kernel = 3, .stride = 2, .activation = HARD);
	for (const struct row *r = m->rows; r->expanded; r++) {
		rfl_net_enter_block(b, "features.%d", block++);
		x = residual_v3(b, x, r);
		rfl_net_leave(b);
	}
	(void)snprintf(name, sizeof(name), "features.%d", block);
	x = rfl_zoo_conv_norm(b, x, name, 6 * rfl_net_channels(b, x), .activation = HARD);
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "classifier.0", m->last, true);
	x = rfl_unary(b, HARD, x, "classifier.1", RFL_INPLACE);
	x = rfl_net_in_place(b, rfl_dropout(b, x, "classifier.2", 0.2));
	return rfl_linear(b, x, "classifier.3", sizes->classes, true);
}

/* Only MobileNetV2 has no configuration. */
static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	return sizes->config ? build_v3(b, x, sizes->config, sizes) : build_v2(b, x, sizes);
}

static const struct rfl_zoo_entry entries[] = {
	RFL_ZOO_IMAGENET("mobilenet", "mobilenet_v2", "MobileNetV2",
			 "inverted residuals, depthwise convolutions (Sandler et al. 2018)", 224,
			 NULL),
	RFL_ZOO_IMAGENET("mobilenet", "mobilenet_v3_small", "MobileNetV3 small",
			 "inverted residuals found by search (Howard et al. 2019)", 224, &small),
	RFL_ZOO_IMAGENET("mobilenet", "mobilenet_v3_large", "MobileNetV3 large",
			 "inverted residuals found by search (Howard et al. 2019)", 224, &large),
};

RFL_ZOO_FAMILY(mobilenet, entries, build);
