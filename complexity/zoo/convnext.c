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

/* A LayerNorm2d, which normalises the channels of an image; only the norm is a module. */
#define LAYER_NORM_2D PERMUTE(1, 2, 0), LAYER_NORM("", EPS), PERMUTE(2, 0, 1)

/* The scale is a parameter of the block itself, so it comes first in the state_dict. */
static int residual(struct rfl_net_builder *b, int x, double drop)
{
	const int64_t width = rfl_net_channels(b, x);
	const int scale = rfl_parameter(b, "layer_scale", RFL_DIMS(width, 1, 1), 0);
	struct rfl_node last = PERMUTE(1, 2, 0), first = PERMUTE(2, 0, 1);
	int y;

	last.name = "block.1";
	first.name = "block.6";
	y = rfl_chain(b, x, CONV_OF("block.0", width, width, true, SAME(7, 1)), last,
		      LAYER_NORM("block.2", EPS), FC("block.3", 4 * width), GELU("block.4"),
		      FC("block.5", width), first);
	y = rfl_binary(b, RFL_OP_MUL, scale, y, RFL_OUT_OF_PLACE);
	y = rfl_chain(b, y, DEPTH("stochastic_depth", drop));
	return rfl_add(b, y, x, RFL_INPLACE);
}

/* features.0 is the stem, followed by stages alternating with downsampling. */
static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct convnext *c = sizes->config;
	int block = 0, blocks = 0;

	for (int stage = 0; stage < STAGES; stage++)
		blocks += c->layers[stage];
	x = rfl_chain(b, x, PATCHES("features.0.0", c->width[0], 4));
	rfl_net_enter(b, "features.0.1");
	x = rfl_chain(b, x, LAYER_NORM_2D);
	rfl_net_leave(b);
	for (int stage = 0; stage < STAGES; stage++) {
		if (stage > 0) {
			rfl_net_enter(b, "features.%d.0", 2 * stage);
			x = rfl_chain(b, x, LAYER_NORM_2D);
			rfl_net_leave(b);
			rfl_net_enter(b, "features.%d", 2 * stage);
			x = rfl_chain(b, x, PATCHES("1", c->width[stage], 2));
			rfl_net_leave(b);
		}
		for (int i = 0; i < c->layers[stage]; i++, block++) {
			rfl_net_enter_block(b, "features.%d.%d", 2 * stage + 1, i);
			x = residual(b, x, c->stochastic_depth * block / (blocks - 1));
			rfl_net_leave(b);
		}
	}
	x = rfl_chain(b, x, AVERAGE("avgpool", 1));
	rfl_net_enter(b, "classifier.0");
	x = rfl_chain(b, x, LAYER_NORM_2D);
	rfl_net_leave(b);
	return rfl_chain(b, x, FLATTEN("classifier.1"), FC("classifier.2", sizes->classes));
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
