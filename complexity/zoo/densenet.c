/*
 * densenet.c - DenseNet-BC (Huang et al., "Densely Connected Convolutional Networks", CVPR
 * 2017), as torchvision writes it: every layer joins the outputs of all layers before it in its
 * block, and nothing is recomputed (memory_efficient is off).
 */
#include "complexity/zoo/impl.h"

enum { BLOCKS = 4, BOTTLENECK = 4 /* channels of the 1x1 convolution, in growth rates */ };

struct densenet {
	int64_t growth, channels; /* of a layer; of the first convolution */
	int layers[BLOCKS];
};

/* A layer's output, made of everything before it in the block. */
static int dense_layer(struct rfl_net_builder *b, const int *before, int n, int64_t growth)
{
	int x;

	rfl_net_block_begin(b);
	x = rfl_concat(b, before, n, 0);
	x = rfl_batch_norm(b, x, "norm1");
	x = rfl_relu(b, x, "relu1", RFL_INPLACE);
	x = rfl_conv2d(b, x, "conv1", BOTTLENECK * growth, .kernel = 1);
	x = rfl_batch_norm(b, x, "norm2");
	x = rfl_relu(b, x, "relu2", RFL_INPLACE);
	x = rfl_conv2d(b, x, "conv2", growth, .kernel = 3, .pad = 1);
	rfl_net_block_end(b);
	return x;
}

static int dense_block(struct rfl_net_builder *b, int x, int layers, int64_t growth)
{
	int outputs[RFL_NET_MAX_INPUTS] = { x }; /* of the block before, and of each layer */

	for (int i = 0; i < layers; i++) {
		rfl_net_enter(b, "denselayer%d", i + 1);
		outputs[i + 1] = dense_layer(b, outputs, i + 1, growth);
		rfl_net_leave(b);
	}
	return rfl_concat(b, outputs, layers + 1, 0);
}

static int transition(struct rfl_net_builder *b, int x)
{
	x = rfl_batch_norm(b, x, "norm");
	x = rfl_relu(b, x, "relu", RFL_INPLACE);
	x = rfl_conv2d(b, x, "conv", rfl_net_channels(b, x) / 2, .kernel = 1);
	return rfl_avg_pool(b, x, "pool", .kernel = 2, .stride = 2);
}

static int features(struct rfl_net_builder *b, int x, const struct densenet *d)
{
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
		x = transition(b, x);
		rfl_net_leave(b);
	}
	return rfl_batch_norm(b, x, "norm5");
}

static int build(struct rfl_net_builder *b, const void *config, const struct rfl_zoo_sizes *sizes)
{
	int x = rfl_zoo_image(b, sizes);

	rfl_net_enter(b, "features");
	x = features(b, x, config);
	rfl_net_leave(b);
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	x = rfl_adaptive_avg_pool(b, x, NULL, 1, 1);
	x = rfl_flatten(b, x);
	return rfl_linear(b, x, "classifier", sizes->classes, true);
}

/* clang-format off */
#define DENSENET(depth_, growth_, channels_, ...) \
	{ \
		.model = { \
			.name = "densenet" #depth_, \
			.title = "DenseNet-" #depth_, \
			.family = "densenet", \
			.summary = "densely connected layers, growth rate " #growth_ \
				   " (Huang et al. 2017)", \
			.image_size = 224, \
			.classes = 1000, \
		}, \
		.config = &(const struct densenet){ \
			.growth = (growth_), .channels = (channels_), .layers = __VA_ARGS__ }, \
	}
/* clang-format on */

static const struct rfl_zoo_entry entries[] = {
	DENSENET(121, 32, 64, { 6, 12, 24, 16 }),
	DENSENET(169, 32, 64, { 6, 12, 32, 32 }),
	DENSENET(201, 32, 64, { 6, 12, 48, 32 }),
	DENSENET(161, 48, 96, { 6, 12, 36, 24 }),
};

const struct rfl_zoo_family rfl_zoo_densenet = {
	.name = "densenet",
	.entries = entries,
	.nentries = RFL_ARRAY_LEN(entries),
	.build = build,
};
