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

/* The three convolutions of an inverted residual, or of the stem, which is a larger first one. */
static int separable(struct rfl_net_builder *b, int x, bool stem, int64_t hidden, int64_t out,
		     int64_t kernel, int64_t stride)
{
	return rfl_chain(b, x, CONV("0", hidden, stem ? 3 : 1, stem ? 2 : 1), BATCH_NORM("1"),
			 RELU("2"), GROUPED("3", hidden, kernel, stride, hidden), BATCH_NORM("4"),
			 RELU("5"), CONV("6", out, 1, 1), BATCH_NORM("7"));
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct mnasnet *m = sizes->config;

	b->eps = 1e-5;
	b->momentum = BATCH_NORM_MOMENTUM;
	rfl_net_enter(b, "layers");
	x = separable(b, x, true, scaled(m, 32), scaled(m, 16), 3, 1);
	for (size_t k = 0; k < RFL_ARRAY_LEN(stacks); k++) {
		const struct stack *s = &stacks[k];

		for (int i = 0; i < s->repeats; i++) {
			int64_t in = rfl_net_channels(b, x), out = scaled(m, s->channels);
			int identity = x;

			rfl_net_enter_block(b, "%zu.%d", k + 8, i);
			rfl_net_enter(b, "layers");
			x = separable(b, x, false, in * s->expand, out, s->kernel,
				      i == 0 ? s->stride : 1);
			rfl_net_leave(b);
			if (in == out && (i > 0 || s->stride == 1))
				x = rfl_add(b, x, identity, RFL_OUT_OF_PLACE);
			rfl_net_leave(b);
		}
	}
	x = rfl_chain(b, x, CONV("14", 1280, 1, 1), BATCH_NORM("15"), RELU("16"));
	rfl_net_leave(b);
	return rfl_chain(b, x, REDUCE(MEAN, 1, 2, false),
			 LAYER(DROPOUT, "classifier.0", .inplace = true, .attr.dropout = { 0.2 }),
			 FC("classifier.1", sizes->classes));
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
