/*
 * zoo_mobilenet.c - MobileNetV2 (Sandler et al., "MobileNetV2: Inverted Residuals and Linear
 * Bottlenecks", CVPR 2018), as torchvision writes it.
 */
#include "complexity/zoo_impl.h"

/* Table 2 of the paper: expansion t, output channels c, repeats n, stride of the first s. */
static const struct stage {
	int t, c, n, s;
} stages[] = {
	{ 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 },  { 6, 64, 4, 2 },
	{ 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 },
};

/* A Sequential of convolution, batch norm and ReLU6. */
static int conv_bn_relu6(struct rfl_net_builder *b, int x, const char *path, int64_t out,
			 const struct rfl_conv2d_args *args)
{
	rfl_net_enter(b, "%s", path);
	x = rfl_net_conv2d(b, x, "0", out, args);
	x = rfl_batch_norm(b, x, "1");
	x = rfl_relu6(b, x, "2", RFL_INPLACE);
	rfl_net_leave(b);
	return x;
}

static int inverted_residual(struct rfl_net_builder *b, int x, int64_t out, int64_t stride,
			     int64_t expand)
{
	int64_t in = rfl_net_channels(b, x), hidden = in * expand;
	int identity = x;

	if (expand != 1)
		x = conv_bn_relu6(b, x, "conv.0", hidden, &(struct rfl_conv2d_args){ .kernel = 1 });
	x = conv_bn_relu6(b, x, expand != 1 ? "conv.1" : "conv.0", hidden,
			  &(struct rfl_conv2d_args){
				  .kernel = 3, .stride = stride, .pad = 1, .groups = hidden });
	x = rfl_conv2d(b, x, expand != 1 ? "conv.2" : "conv.1", out, .kernel = 1);
	x = rfl_batch_norm(b, x, expand != 1 ? "conv.3" : "conv.2");
	if (stride == 1 && in == out)
		x = rfl_add(b, identity, x, RFL_OUT_OF_PLACE);
	return x;
}

static int build(struct rfl_net_builder *b, const void *config, const struct rfl_zoo_sizes *sizes)
{
	int x, block = 1;

	(void)config;
	x = conv_bn_relu6(b, rfl_zoo_image(b, sizes), "features.0", 32,
			  &(struct rfl_conv2d_args){ .kernel = 3, .stride = 2, .pad = 1 });
	for (size_t s = 0; s < RFL_ARRAY_LEN(stages); s++) {
		for (int i = 0; i < stages[s].n; i++) {
			rfl_net_enter(b, "features.%d", block++);
			x = inverted_residual(b, x, stages[s].c, i == 0 ? stages[s].s : 1,
					      stages[s].t);
			rfl_net_leave(b);
		}
	}
	x = conv_bn_relu6(b, x, "features.18", 1280, &(struct rfl_conv2d_args){ .kernel = 1 });
	x = rfl_adaptive_avg_pool(b, x, NULL, 1, 1);
	x = rfl_flatten(b, x);
	x = rfl_dropout(b, x, "classifier.0", 0.2);
	return rfl_linear(b, x, "classifier.1", sizes->classes, true);
}

static const struct rfl_zoo_entry entries[] = {
	{
		.model = {
			.name = "mobilenet_v2",
			.title = "MobileNetV2",
			.family = "mobilenet",
			.summary = "inverted residuals, depthwise convolutions (Sandler et al. 2018)",
			.image_size = 224,
			.classes = 1000,
		},
	},
};

const struct rfl_zoo_family rfl_zoo_mobilenet = {
	.name = "mobilenet",
	.entries = entries,
	.nentries = RFL_ARRAY_LEN(entries),
	.build = build,
};
