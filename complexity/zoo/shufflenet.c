/*
 * shufflenet.c - ShuffleNet V2 (Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN
 * Architecture Design", ECCV 2018), as in torchvision.
 */
#include "complexity/zoo/blocks.h"

struct shufflenet {
	int64_t channels[5]; /* of conv1, stages 2 to 4, conv5 */
};

static const int repeats[] = { 4, 8, 4 };

static const struct rfl_zoo_conv_norm_args pointwise = { .activation = RFL_OP_RELU };

static int depthwise(struct rfl_net_builder *b, int x, int first, int64_t stride)
{
	int64_t channels = rfl_net_channels(b, x);

	return rfl_zoo_conv_norm_from(b, x, first, channels,
				      &(struct rfl_zoo_conv_norm_args){
					      .kernel = 3, .stride = stride, .groups = channels });
}

/* With a stride of 1, the left half of the channels passes unchanged. */
static int unit(struct rfl_net_builder *b, int x, int64_t out, int64_t stride)
{
	int halves[2] = { x, x };
	struct rfl_shape s;

	if (stride == 1) {
		halves[0] = rfl_slice(b, x, 0, 0, out / 2, 1);
		halves[1] = rfl_slice(b, x, 0, out / 2, out / 2, 1);
	} else {
		rfl_net_enter(b, "branch1");
		halves[0] = depthwise(b, x, 0, stride);
		halves[0] = rfl_zoo_conv_norm_from(b, halves[0], 2, out / 2, &pointwise);
		rfl_net_leave(b);
	}
	rfl_net_enter(b, "branch2");
	halves[1] = rfl_zoo_conv_norm_from(b, halves[1], 0, out / 2, &pointwise);
	halves[1] = depthwise(b, halves[1], 3, stride);
	halves[1] = rfl_zoo_conv_norm_from(b, halves[1], 5, out / 2, &pointwise);
	rfl_net_leave(b);
	x = rfl_concat(b, halves, 2, 0);
	/* Interleave the channels of the two halves. */
	s = rfl_net_shape(b, x);
	x = rfl_reshape(b, x, RFL_DIMS(2, s.dim[0] / 2, s.dim[1], s.dim[2]));
	x = rfl_contiguous(b, rfl_permute(b, x, RFL_DIMS(1, 0, 2, 3)));
	x = rfl_reshape(b, x, &s);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct shufflenet *s = sizes->config;

	x = rfl_zoo_conv_norm(b, x, "conv1", s->channels[0], .kernel = 3, .stride = 2,
			      .activation = RFL_OP_RELU);
	x = rfl_max_pool(b, x, "maxpool", .kernel = 3, .stride = 2, .pad = 1);
	for (int stage = 0; stage < 3; stage++) {
		for (int i = 0; i < repeats[stage]; i++) {
			rfl_net_enter_block(b, "stage%d.%d", stage + 2, i);
			x = unit(b, x, s->channels[stage + 1], i == 0 ? 2 : 1);
			rfl_net_leave(b);
		}
	}
	x = rfl_zoo_conv_norm(b, x, "conv5", s->channels[4], .activation = RFL_OP_RELU);
	x = rfl_reduce(b, RFL_OP_MEAN, x, 1, 2, false);
	return rfl_linear(b, x, "fc", sizes->classes, true);
}

#define SHUFFLENET(name_, width_, ...)                                                        \
	RFL_ZOO_IMAGENET("shufflenet", "shufflenet_v2_" name_, "ShuffleNet V2 " width_,       \
			 "channel split and shuffle, width " width_ " (Ma et al. 2018)", 224, \
			 &(const struct shufflenet){ .channels = __VA_ARGS__ })

static const struct rfl_zoo_entry entries[] = {
	SHUFFLENET("x0_5", "0.5x", { 24, 48, 96, 192, 1024 }),
	SHUFFLENET("x1_0", "1.0x", { 24, 116, 232, 464, 1024 }),
	SHUFFLENET("x1_5", "1.5x", { 24, 176, 352, 704, 1024 }),
	SHUFFLENET("x2_0", "2.0x", { 24, 244, 488, 976, 2048 }),
};

RFL_ZOO_FAMILY(shufflenet, entries, build);
