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
		x = rfl_batch_norm(b, x, "norm1");
		x = rfl_relu(b, x, "relu1", RFL_INPLACE);
		x = rfl_conv2d(b, x, "conv1", BOTTLENECK * growth, .kernel = 1);
		x = rfl_batch_norm(b, x, "norm2");
		x = rfl_relu(b, x, "relu2", RFL_INPLACE);
		outputs[i + 1] = rfl_conv2d(b, x, "conv2", growth, .kernel = 3, .pad = 1);
		rfl_net_leave(b);
	}
	return rfl_concat(b, outputs, layers + 1, 0);
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct densenet *d = sizes->config;

	rfl_net_enter(b, "features");
	x = rfl_conv2d(b, x, "conv0", d->channels, .kernel = 7, .stride = 2, .pad = 3);
	x = rfl_batch_norm(b, x, "norm0");
	x = rfl_relu(b, x, "relu0", RFL_INPLACE);
	x = rfl_max_pool(b, x, "pool0", .kernel = 3, .stride = 2, .pad = 1);
	for (int i = 0; i < BLOCKS; i++) {
		rfl_net_enter(b, "denseblock%d", i + 1);
		x = dense_block(b, x, d->layers[i], d->growth);
		rfl_net_leave(b);
		if (i == BLOCKS - 1)
			break;
		rfl_net_enter(b, "transition%d", i + 1);
		x = rfl_batch_norm(b, x, "norm");
		x = rfl_relu(b, x, "relu", RFL_INPLACE);
		x = rfl_conv2d(b, x, "conv", rfl_net_channels(b, x) / 2, .kernel = 1);
		x = rfl_avg_pool(b, x, "pool", .kernel = 2, .stride = 2);
		rfl_net_leave(b);
	}
	x = rfl_batch_norm(b, x, "norm5");
	rfl_net_leave(b);
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	x = rfl_adaptive_avg_pool(b, x, NULL, 1, 1);
	x = rfl_flatten(b, x);
	return rfl_linear(b, x, "classifier", sizes->classes, true);
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
