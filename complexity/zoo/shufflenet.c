/*
 * shufflenet.c - ShuffleNet V2 (Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN
 * Architecture Design", ECCV 2018), as in torchvision.
 */
#include "complexity/zoo/blocks.h"

struct shufflenet {
	int64_t channels[5]; /* of conv1, stages 2 to 4, conv5 */
};

static const int repeats[] = { 4, 8, 4 };

/* With a stride of 1, the left half of the channels passes unchanged. */
static int unit(struct rfl_net_builder *b, int x, int64_t out, int64_t stride)
{
	const int64_t in = rfl_net_channels(b, x);
	int half[2] = { x, x };
	struct rfl_shape s;

	out /= 2;
	if (stride == 1) {
		half[0] = rfl_chain(b, x, SLICE(0, 0, out, 1));
		half[1] = rfl_chain(b, x, SLICE(0, out, out, 1));
	} else {
		rfl_net_enter(b, "branch1");
		half[0] = rfl_chain(b, x, GROUPED("0", in, 3, stride, in), BATCH_NORM("1"),
				    CONV("2", out, 1, 1), BATCH_NORM("3"), RELU("4"));
		rfl_net_leave(b);
	}
	rfl_net_enter(b, "branch2");
	half[1] = rfl_chain(b, half[1], CONV("0", out, 1, 1), BATCH_NORM("1"), RELU("2"),
			    GROUPED("3", out, 3, stride, out), BATCH_NORM("4"),
			    CONV("5", out, 1, 1), BATCH_NORM("6"), RELU("7"));
	rfl_net_leave(b);
	x = rfl_concat(b, half, 2, 0);
	/* Interleave the channels of the two halves. */
	s = rfl_net_shape(b, x);
	return rfl_chain(b, x, RESHAPE(2, s.dim[0] / 2, s.dim[1], s.dim[2]), PERMUTE(1, 0, 2, 3),
			 COPY, LIKE(&s));
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct shufflenet *s = sizes->config;

	x = rfl_chain(b, x, CONV_NORM("conv1", s->channels[0], 3, 2, 1, RFL_OP_RELU),
		      MAX_POOL("maxpool", 3, 2, 1));
	for (int stage = 0; stage < 3; stage++) {
		for (int i = 0; i < repeats[stage]; i++) {
			rfl_net_enter_block(b, "stage%d.%d", stage + 2, i);
			x = unit(b, x, s->channels[stage + 1], i == 0 ? 2 : 1);
			rfl_net_leave(b);
		}
	}
	return rfl_chain(b, x, CONV_NORM("conv5", s->channels[4], 1, 1, 1, RFL_OP_RELU),
			 REDUCE(MEAN, 1, 2, false), FC("fc", sizes->classes));
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
