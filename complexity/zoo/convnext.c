/*
 * convnext.c - ConvNeXt (Liu et al., "A ConvNet for the 2020s", CVPR 2022) as in torchvision.
 * Permutations are views: the first normalisation copies its input and then releases the copy;
 * after it, every tensor is stored with its channels last.
 */
#include "complexity/zoo/blocks.h"

enum { STAGES = 4 };

static const double EPS = 1e-6;

struct convnext {
	int width[STAGES], layers[STAGES];
	double stochastic_depth; /* in the last block; earlier blocks rise evenly from 0 */
};

#define CHANNELS_LAST  RFL_DIMS(1, 2, 0)
#define CHANNELS_FIRST RFL_DIMS(2, 0, 1)

/* A LayerNorm2d, which normalises the channels of an image. */
static int layer_norm_2d(struct rfl_net_builder *b, int x, const char *name)
{
	rfl_net_enter(b, "%s", name);
	x = rfl_permute(b, x, CHANNELS_LAST);
	x = rfl_layer_norm(b, x, "", EPS);
	x = rfl_permute(b, x, CHANNELS_FIRST);
	rfl_net_leave(b);
	return x;
}

/* The scale is a parameter of the block itself, so it comes first in the state_dict. */
static int residual(struct rfl_net_builder *b, int x, double drop)
{
	int64_t width = rfl_net_channels(b, x);
	int scale, identity = x;

	scale = rfl_parameter(b, "layer_scale", RFL_DIMS(width, 1, 1), 0);
	x = rfl_conv2d(b, x, "block.0", width, .kernel = 7, .pad = 3, .groups = width,
		       .bias = true);
	x = rfl_net_as_module(b, rfl_permute(b, x, CHANNELS_LAST), "block.1");
	x = rfl_layer_norm(b, x, "block.2", EPS);
	x = rfl_linear(b, x, "block.3", 4 * width, true);
	x = rfl_gelu(b, x, "block.4", false);
	x = rfl_linear(b, x, "block.5", width, true);
	x = rfl_net_as_module(b, rfl_permute(b, x, CHANNELS_FIRST), "block.6");
	x = rfl_binary(b, RFL_OP_MUL, scale, x, RFL_OUT_OF_PLACE);
	x = rfl_stochastic_depth(b, x, "stochastic_depth", drop);
	x = rfl_add(b, x, identity, RFL_INPLACE);
	return x;
}

/* features.0 is the stem, followed by stages alternating with downsampling. */
static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct convnext *c = sizes->config;
	int block = 0, blocks = 0;

	for (int stage = 0; stage < STAGES; stage++)
		blocks += c->layers[stage];
	x = rfl_conv2d(b, x, "features.0.0", c->width[0], .kernel = 4, .stride = 4, .bias = true);
	x = layer_norm_2d(b, x, "features.0.1");
	for (int stage = 0; stage < STAGES; stage++) {
		if (stage > 0) {
			rfl_net_enter(b, "features.%d", 2 * stage);
			x = layer_norm_2d(b, x, "0");
			x = rfl_conv2d(b, x, "1", c->width[stage], .kernel = 2, .stride = 2,
				       .bias = true);
			rfl_net_leave(b);
		}
		for (int i = 0; i < c->layers[stage]; i++, block++) {
			rfl_net_enter_block(b, "features.%d.%d", 2 * stage + 1, i);
			x = residual(b, x, c->stochastic_depth * block / (blocks - 1));
			rfl_net_leave(b);
		}
	}
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = layer_norm_2d(b, x, "classifier.0");
	x = rfl_net_as_module(b, rfl_flatten(b, x), "classifier.1");
	return rfl_linear(b, x, "classifier.2", sizes->classes, true);
}

#define CONVNEXT(name_, depth_, drop_, ...)                                                   \
	RFL_ZOO_IMAGENET("convnext", "convnext_" name_, "ConvNeXt " name_,                    \
			 "depthwise 7x7 convolutions and layer norms (Liu et al. 2022)", 224, \
			 &(const struct convnext){ .width = __VA_ARGS__,                      \
						   .layers = { 3, 3, (depth_), 3 },           \
						   .stochastic_depth = (drop_) })

static const struct rfl_zoo_entry entries[] = {
	CONVNEXT("tiny", 9, 0.1, { 96, 192, 384, 768 }),
	CONVNEXT("small", 27, 0.4, { 96, 192, 384, 768 }),
	CONVNEXT("base", 27, 0.5, { 128, 256, 512, 1024 }),
	CONVNEXT("large", 27, 0.5, { 192, 384, 768, 1536 }),
};

RFL_ZOO_FAMILY(convnext, entries, build);
