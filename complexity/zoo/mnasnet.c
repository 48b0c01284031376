/*
 * mnasnet.c - MNASNet-B1 (Tan et al., "MnasNet: Platform-Aware Neural Architecture Search for
 * Mobile", CVPR 2019), as in torchvision.
 */
#include "complexity/zoo/blocks.h"

/* The stacks of figure 7a, with unscaled channels. */
static const struct stack {
	int64_t channels, kernel, stride, expand;
	int repeats;
} stacks[] = {
	{ 24, 3, 2, 3, 3 }, { 40, 5, 2, 3, 3 },  { 80, 5, 2, 6, 3 },
	{ 96, 3, 1, 6, 2 }, { 192, 5, 2, 6, 4 }, { 320, 3, 1, 6, 1 },
};

struct mnasnet {
	double width;
};

/* torchvision uses 1 - 0.9997, the equivalent of TensorFlow's decay. */
#define BATCH_NORM_MOMENTUM 3e-4

static int64_t scaled(const struct mnasnet *m, int64_t channels)
{
	return rfl_zoo_divisible((double)channels * m->width, 8);
}

/* The three convolutions of an inverted residual, or of the stem, as modules from 0. */
static int separable(struct rfl_net_builder *b, int x, int64_t hidden, int64_t out,
		     const struct rfl_zoo_conv_norm_args *first, int64_t kernel, int64_t stride)
{
	const struct rfl_zoo_conv_norm_args depthwise = {
		.kernel = kernel, .stride = stride, .groups = hidden, .activation = RFL_OP_RELU
	};
	const struct rfl_zoo_conv_norm_args linear = { .activation = RFL_ZOO_NO_ACTIVATION };

	x = rfl_zoo_conv_norm_from(b, x, 0, hidden, first);
	x = rfl_zoo_conv_norm_from(b, x, 3, hidden, &depthwise);
	return rfl_zoo_conv_norm_from(b, x, 6, out, &linear);
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	static const struct rfl_zoo_conv_norm_args stem = { .kernel = 3,
							    .stride = 2,
							    .activation = RFL_OP_RELU };
	static const struct rfl_zoo_conv_norm_args pointwise = { .activation = RFL_OP_RELU };
	const struct mnasnet *m = sizes->config;

	b->eps = 1e-5;
	b->momentum = BATCH_NORM_MOMENTUM;
	rfl_net_enter(b, "layers");
	x = separable(b, x, scaled(m, 32), scaled(m, 16), &stem, 3, 1);
	for (size_t k = 0; k < RFL_ARRAY_LEN(stacks); k++) {
		const struct stack *s = &stacks[k];

		for (int i = 0; i < s->repeats; i++) {
			int64_t in = rfl_net_channels(b, x), out = scaled(m, s->channels);
			int identity = x;

			rfl_net_enter_block(b, "%zu.%d", k + 8, i);
			rfl_net_enter(b, "layers");
			x = separable(b, x, in * s->expand, out, &pointwise, s->kernel,
				      i == 0 ? s->stride : 1);
			rfl_net_leave(b);
			if (in == out && (i > 0 || s->stride == 1))
				x = rfl_add(b, x, identity, RFL_OUT_OF_PLACE);
			rfl_net_leave(b);
		}
	}
	x = rfl_zoo_conv_norm_from(b, x, 14, 1280, &pointwise);
	rfl_net_leave(b);
	x = rfl_reduce(b, RFL_OP_MEAN, x, 1, 2, false);
	x = rfl_net_in_place(b, rfl_dropout(b, x, "classifier.0", 0.2));
	return rfl_linear(b, x, "classifier.1", sizes->classes, true);
}

#define MNASNET(name_, width_)                                                     \
	RFL_ZOO_IMAGENET("mnasnet", "mnasnet" name_, "MNASNet " #width_,           \
			 "found by architecture search for phones; width " #width_ \
			 " (Tan et al. 2019)",                                     \
			 224, &(const struct mnasnet){ .width = (width_) })

static const struct rfl_zoo_entry entries[] = {
	MNASNET("0_5", 0.5),
	MNASNET("0_75", 0.75),
	MNASNET("1_0", 1.0),
	MNASNET("1_3", 1.3),
};

RFL_ZOO_FAMILY(mnasnet, entries, build);
