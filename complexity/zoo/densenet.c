/*
 * densenet.c - DenseNet-BC (Huang et al., "Densely Connected Convolutional Networks", CVPR 2017),
 * as in torchvision: every layer concatenates the outputs of all earlier layers of its block, and
 * nothing is recomputed (memory_efficient is off).
 */
#include "complexity/zoo/blocks.h"

enum { BLOCKS = 4, BOTTLENECK = 4 /* channels of the 1x1 convolution, in growth rates */ };

struct densenet {
	int64_t growth, channels; /* channels of a layer; of the first convolution */
	int layers[BLOCKS];
};

/* Each layer reads everything before it in its block. */
static int dense_block(struct rfl_net_builder *b, int x, int layers, int64_t growth)
{
	int outputs[RFL_NET_MAX_INPUTS] = { x }; /* the previous block, then each layer */

	for (int i = 0; i < layers; i++) {
		rfl_net_enter_block(b, "denselayer%d", i + 1);
		x = rfl_concat(b, outputs, i + 1, 0);
		outputs[i + 1] =
			rfl_chain(b, x, BATCH_NORM("norm1"), RELU("relu1"),
				  CONV("conv1", BOTTLENECK * growth, 1, 1), BATCH_NORM("norm2"),
				  RELU("relu2"), CONV("conv2", growth, 3, 1));
		rfl_net_leave(b);
	}
	return rfl_concat(b, outputs, layers + 1, 0);
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct densenet *d = sizes->config;

	rfl_net_enter(b, "features");
	x = rfl_chain(b, x, CONV("conv0", d->channels, 7, 2), BATCH_NORM("norm0"), RELU("relu0"),
		      MAX_POOL("pool0", 3, 2, 1));
	for (int i = 0; i < BLOCKS; i++) {
		rfl_net_enter(b, "denseblock%d", i + 1);
		x = dense_block(b, x, d->layers[i], d->growth);
		rfl_net_leave(b);
		if (i == BLOCKS - 1)
			break;
		rfl_net_enter(b, "transition%d", i + 1);
		x = rfl_chain(b, x, BATCH_NORM("norm"), RELU("relu"),
			      CONV("conv", rfl_net_channels(b, x) / 2, 1, 1),
			      AVG_POOL("pool", 2, 2, 0));
		rfl_net_leave(b);
	}
	x = rfl_chain(b, x, BATCH_NORM("norm5"));
	rfl_net_leave(b);
	return rfl_chain(b, x, RELU(NULL), AVERAGE(NULL, 1), FLATTEN(NULL),
			 FC("classifier", sizes->classes));
}

#define DENSENET(depth_, growth_, channels_, ...)                                              \
	RFL_ZOO_IMAGENET(                                                                      \
		"densenet", "densenet" #depth_, "DenseNet-" #depth_,                           \
		"densely connected layers, growth rate " #growth_ " (Huang et al. 2017)", 224, \
		&(const struct densenet){                                                      \
			.growth = (growth_), .channels = (channels_), .layers = __VA_ARGS__ })

static const struct rfl_zoo_entry entries[] = {
	DENSENET(121, 32, 64, { 6, 12, 24, 16 }),
	DENSENET(169, 32, 64, { 6, 12, 32, 32 }),
	DENSENET(201, 32, 64, { 6, 12, 48, 32 }),
	DENSENET(161, 48, 96, { 6, 12, 36, 24 }),
};

RFL_ZOO_FAMILY(densenet, entries, build);
