/*
 * resnet.c - ResNet (He et al., "Deep Residual Learning for Image Recognition", CVPR 2016) in
 * torchvision's version 1.5: a bottleneck has its stride in the 3x3 convolution instead of the
 * first 1x1. ResNeXt (Xie et al., CVPR 2017) and Wide ResNet (Zagoruyko and Komodakis, BMVC 2016)
 * differ in the groups and width of that convolution.
 */
#include "complexity/zoo/blocks.h"

enum block { BASIC, BOTTLENECK };

struct resnet {
	enum block block;
	int layers[4];
	int groups, group_width; /* of the 3x3 convolutions in the first stage; doubles per stage */
};

/* One residual block; the module "relu" serves all its activations. */
static int residual(struct rfl_net_builder *b, int x, const struct resnet *r, int stage,
		    int64_t stride)
{
	const int64_t out = (r->block == BOTTLENECK ? 256 : 64) << stage;
	const int64_t width = (int64_t)r->groups * r->group_width << stage;
	int y;

	if (r->block == BASIC)
		y = rfl_chain(b, x, CONV("conv1", out, 3, stride), BATCH_NORM("bn1"), RELU("relu"),
			      CONV("conv2", out, 3, 1), BATCH_NORM("bn2"));
	else
		y = rfl_chain(b, x, CONV("conv1", width, 1, 1), BATCH_NORM("bn1"), RELU("relu"),
			      GROUPED("conv2", width, 3, stride, r->groups), BATCH_NORM("bn2"),
			      RELU("relu"), CONV("conv3", out, 1, 1), BATCH_NORM("bn3"));
	if (stride != 1 || rfl_net_channels(b, x) != out)
		x = rfl_chain(b, x, CONV("downsample.0", out, 1, stride),
			      BATCH_NORM("downsample.1"));
	return rfl_chain(b, rfl_add(b, y, x, RFL_INPLACE), RELU("relu"));
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct resnet *r = sizes->config;

	x = rfl_chain(b, x, CONV("conv1", 64, 7, 2), BATCH_NORM("bn1"), RELU("relu"),
		      MAX_POOL("maxpool", 3, 2, 1));
	for (int stage = 0; stage < 4; stage++) {
		for (int i = 0; i < r->layers[stage]; i++) {
			rfl_net_enter_block(b, "layer%d.%d", stage + 1, i);
			x = residual(b, x, r, stage, stage > 0 && i == 0 ? 2 : 1);
			rfl_net_leave(b);
		}
	}
	return rfl_chain(b, x, AVERAGE("avgpool", 1), FLATTEN(NULL), FC("fc", sizes->classes));
}

#define MODEL(name_, title_, summary_, block_, groups_, group_width_, ...) \
	RFL_ZOO_IMAGENET("resnet", name_, title_, summary_, 224,           \
			 &(const struct resnet){ .block = (block_),        \
						 .layers = __VA_ARGS__,    \
						 .groups = (groups_),      \
						 .group_width = (group_width_) })
#define RESNET(depth_, block_, ...)                                                           \
	MODEL("resnet" #depth_, "ResNet-" #depth_,                                            \
	      "residual network of " #depth_ " layers (He et al. 2016), v1.5", block_, 1, 64, \
	      __VA_ARGS__)
#define RESNEXT(depth_, groups_, width_, ...)                                                    \
	MODEL("resnext" #depth_ "_" #groups_ "x" #width_ "d",                                    \
	      "ResNeXt-" #depth_ " " #groups_ "x" #width_ "d",                                   \
	      "residual network of " #depth_ " layers in " #groups_ " groups (Xie et al. 2017)", \
	      BOTTLENECK, groups_, width_, __VA_ARGS__)
#define WIDE(depth_, ...)                                              \
	MODEL("wide_resnet" #depth_ "_2", "Wide ResNet-" #depth_ "-2", \
	      "residual network of " #depth_                           \
	      " layers, twice as wide (Zagoruyko and Komodakis 2016)", \
	      BOTTLENECK, 1, 128, __VA_ARGS__)

static const struct rfl_zoo_entry entries[] = {
	RESNET(18, BASIC, { 2, 2, 2, 2 }),
	RESNET(34, BASIC, { 3, 4, 6, 3 }),
	RESNET(50, BOTTLENECK, { 3, 4, 6, 3 }),
	RESNET(101, BOTTLENECK, { 3, 4, 23, 3 }),
	RESNET(152, BOTTLENECK, { 3, 8, 36, 3 }),
	RESNEXT(50, 32, 4, { 3, 4, 6, 3 }),
	RESNEXT(101, 32, 8, { 3, 4, 23, 3 }),
	RESNEXT(101, 64, 4, { 3, 4, 23, 3 }),
	WIDE(50, { 3, 4, 6, 3 }),
	WIDE(101, { 3, 4, 23, 3 }),
};

RFL_ZOO_FAMILY(resnet, entries, build);
