/*
 * zoo_resnet.c - ResNet (He et al., "Deep Residual Learning for Image Recognition", CVPR 2016) in
 * torchvision's form v1.5: a bottleneck strides in its 3x3 convolution, not in the first 1x1.
 */
#include "complexity/zoo_impl.h"

enum block { BASIC, BOTTLENECK };

struct resnet {
	enum block block;
	int layers[4];
};

static int conv_bn(struct rfl_net_builder *b, int x, int index, int64_t out, int64_t kernel,
		   int64_t stride)
{
	char conv[] = "conv0", bn[] = "bn0";

	conv[4] = bn[2] = (char)('0' + index);
	x = rfl_conv2d(b, x, conv, out, .kernel = kernel, .stride = stride, .pad = kernel / 2);
	return rfl_batch_norm(b, x, bn);
}

static int downsample(struct rfl_net_builder *b, int x, int64_t out, int64_t stride)
{
	x = rfl_conv2d(b, x, "downsample.0", out, .kernel = 1, .stride = stride);
	return rfl_batch_norm(b, x, "downsample.1");
}

/* One residual block; every activation is the block's one module "relu". */
static int residual(struct rfl_net_builder *b, int x, enum block block, int64_t width,
		    int64_t stride)
{
	int64_t out = block == BOTTLENECK ? 4 * width : width;
	bool project = stride != 1 || rfl_net_channels(b, x) != out;
	int identity = x;

	if (block == BASIC) {
		x = conv_bn(b, x, 1, width, 3, stride);
		x = rfl_relu(b, x, "relu", RFL_INPLACE);
		x = conv_bn(b, x, 2, width, 3, 1);
	} else {
		x = conv_bn(b, x, 1, width, 1, 1);
		x = rfl_relu(b, x, "relu", RFL_INPLACE);
		x = conv_bn(b, x, 2, width, 3, stride);
		x = rfl_relu(b, x, "relu", RFL_INPLACE);
		x = conv_bn(b, x, 3, out, 1, 1);
	}
	if (project)
		identity = downsample(b, identity, out, stride);
	x = rfl_add(b, x, identity, RFL_INPLACE);
	return rfl_relu(b, x, "relu", RFL_INPLACE);
}

static int build(struct rfl_net_builder *b, const void *config, const struct rfl_zoo_sizes *sizes)
{
	const struct resnet *r = config;
	int x = rfl_zoo_image(b, sizes);

	x = conv_bn(b, x, 1, 64, 7, 2);
	x = rfl_relu(b, x, "relu", RFL_INPLACE);
	x = rfl_max_pool(b, x, "maxpool", .kernel = 3, .stride = 2, .pad = 1);
	for (int stage = 0; stage < 4; stage++) {
		for (int i = 0; i < r->layers[stage]; i++) {
			rfl_net_enter(b, "layer%d.%d", stage + 1, i);
			x = residual(b, x, r->block, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
			rfl_net_leave(b);
		}
	}
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_flatten(b, x);
	return rfl_linear(b, x, "fc", sizes->classes, true);
}

#define RESNET(depth_, block_, ...) \
	{                           \
		.model = { \
			.name = "resnet" #depth_, \
			.title = "ResNet-" #depth_, \
			.family = "resnet", \
			.summary = "residual network of " #depth_ " layers (He et al. 2016), v1.5", \
			.image_size = 224, \
			.classes = 1000, \
		}, \
		.config = &(const struct resnet){ .block = block_, .layers = __VA_ARGS__ },        \
	}

static const struct rfl_zoo_entry entries[] = {
	RESNET(18, BASIC, { 2, 2, 2, 2 }),        RESNET(34, BASIC, { 3, 4, 6, 3 }),
	RESNET(50, BOTTLENECK, { 3, 4, 6, 3 }),   RESNET(101, BOTTLENECK, { 3, 4, 23, 3 }),
	RESNET(152, BOTTLENECK, { 3, 8, 36, 3 }),
};

const struct rfl_zoo_family rfl_zoo_resnet = {
	.name = "resnet",
	.entries = entries,
	.nentries = RFL_ARRAY_LEN(entries),
	.build = build,
};
