/*
 * mnasnet.c - MNASNet-B1 (Tan et al., "MnasNet: Platform-Aware Neural Architecture Search for
 * Mobile", CVPR 2019), as torchvision writes it.
 */
#include "complexity/zoo/blocks.h"
#include "complexity/zoo/impl.h"

/* The stacks of figure 7a; channels before they are scaled. */
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

/* torchvision's batch norms forget slowly: as TensorFlow's decay of 0.9997. */
#define BATCH_NORM_MOMENTUM 3e-4

static int64_t scaled(const struct mnasnet *m, int64_t channels)
{
	return rfl_zoo_divisible((double)channels * m->width, 8);
}

static const struct rfl_zoo_conv_norm_args linear = { .activation = RFL_ZOO_NO_ACTIVATION };

static int inverted_residual(struct rfl_net_builder *b, int x, const struct stack *s, int64_t out,
			     int64_t stride)
{
	int64_t in = rfl_net_channels(b, x), hidden = in * s->expand;
	int identity = x;

	rfl_net_block_begin(b);
	rfl_net_enter(b, "layers");
	x = rfl_zoo_conv_norm_from(b, x, 0, hidden,
				   &(struct rfl_zoo_conv_norm_args){ .activation = RFL_OP_RELU });
	x = rfl_zoo_conv_norm_from(b, x, 3, hidden,
				   &(struct rfl_zoo_conv_norm_args){ .kernel = s->kernel,
								     .stride = stride,
								     .groups = hidden,
								     .activation = RFL_OP_RELU });
	x = rfl_zoo_conv_norm_from(b, x, 6, out, &linear);
	rfl_net_leave(b);
	if (in == out && stride == 1)
		x = rfl_add(b, x, identity, RFL_OUT_OF_PLACE);
	rfl_net_block_end(b);
	return x;
}

/* A convolution and one that is separated into depthwise and pointwise. */
static int stem(struct rfl_net_builder *b, int x, const struct mnasnet *m)
{
	int64_t channels = scaled(m, 32);
	struct rfl_zoo_conv_norm_args args = {
		.kernel = 3,
		.stride = 2,
		.activation = RFL_OP_RELU,
	};

	x = rfl_zoo_conv_norm_from(b, x, 0, channels, &args);
	args.stride = 1;
	args.groups = channels;
	x = rfl_zoo_conv_norm_from(b, x, 3, channels, &args);
	return rfl_zoo_conv_norm_from(b, x, 6, scaled(m, 16), &linear);
}

static int layers(struct rfl_net_builder *b, int x, const struct mnasnet *m)
{
	x = stem(b, x, m);
	for (size_t s = 0; s < RFL_ARRAY_LEN(stacks); s++) {
		for (int i = 0; i < stacks[s].repeats; i++) {
			rfl_net_enter(b, "%zu.%d", s + 8, i);
			x = inverted_residual(b, x, &stacks[s], scaled(m, stacks[s].channels),
					      i == 0 ? stacks[s].stride : 1);
			rfl_net_leave(b);
		}
	}
	return rfl_zoo_conv_norm_from(
		b, x, 14, 1280, &(struct rfl_zoo_conv_norm_args){ .activation = RFL_OP_RELU });
}

static int build(struct rfl_net_builder *b, const void *config, const struct rfl_zoo_sizes *sizes)
{
	int x = rfl_zoo_image(b, sizes);

	rfl_net_batch_norm_defaults(b, 1e-5, BATCH_NORM_MOMENTUM);
	rfl_net_enter(b, "layers");
	x = layers(b, x, config);
	rfl_net_leave(b);
	x = rfl_reduce(b, RFL_OP_MEAN, x, 1, 2, false);
	x = rfl_net_in_place(b, rfl_dropout(b, x, "classifier.0", 0.2));
	return rfl_linear(b, x, "classifier.1", sizes->classes, true);
}

/* clang-format off */
#define MNASNET(name_, width_) \
	{ \
		.model = { \
			.name = "mnasnet" name_, \
			.title = "MNASNet " #width_, \
			.family = "mnasnet", \
			.summary = "found by search for phones, width " #width_ \
				   " (Tan et al. 2019)", \
			.image_size = 224, \
			.classes = 1000, \
		}, \
		.config = &(const struct mnasnet){ .width = (width_) }, \
	}
/* clang-format on */

static const struct rfl_zoo_entry entries[] = {
	MNASNET("0_5", 0.5),
	MNASNET("0_75", 0.75),
	MNASNET("1_0", 1.0),
	MNASNET("1_3", 1.3),
};

const struct rfl_zoo_family rfl_zoo_mnasnet = {
	.name = "mnasnet",
	.entries = entries,
	.nentries = RFL_ARRAY_LEN(entries),
	.build = build,
};
