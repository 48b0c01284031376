/*
 * blocks.c - blocks that several families are made of.
 */
#include "complexity/zoo/blocks.h"

#include <stdio.h>

int rfl_zoo_conv_norm_from(struct rfl_net_builder *b, int x, int first, int64_t out_channels,
			   const struct rfl_zoo_conv_norm_args *args)
{
	int64_t kernel = args->kernel ? args->kernel : 1;
	char name[3][16];

	for (int i = 0; i < 3; i++)
		(void)snprintf(name[i], sizeof(name[i]), "%d", first + i);
	x = rfl_conv2d(b, x, name[0], out_channels, .kernel = kernel, .stride = args->stride,
		       .pad = kernel / 2, .groups = args->groups);
	x = rfl_batch_norm(b, x, name[1]);
	if (args->activation != RFL_ZOO_NO_ACTIVATION)
		x = rfl_unary(b, args->activation, x, name[2], RFL_INPLACE);
	return x;
}

int rfl_zoo_conv_norm_act(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
			  const struct rfl_zoo_conv_norm_args *args)
{
	rfl_net_enter(b, "%s", path);
	x = rfl_zoo_conv_norm_from(b, x, 0, out_channels, args);
	rfl_net_leave(b);
	return x;
}

int rfl_zoo_basic_conv(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
		       const struct rfl_conv2d_args *args)
{
	rfl_net_enter(b, "%s", path);
	x = rfl_net_conv2d(b, x, "conv", out_channels, args);
	x = rfl_batch_norm(b, x, "bn");
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	rfl_net_leave(b);
	return x;
}

int rfl_zoo_squeeze_excitation(struct rfl_net_builder *b, int x, const char *path,
			       const struct rfl_zoo_squeeze_args *args)
{
	int scale;

	rfl_net_enter(b, "%s", path);
	scale = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	scale = rfl_conv2d(b, scale, "fc1", args->channels, .bias = true);
	scale = rfl_unary(b, args->activation, scale, "activation", args->inplace);
	scale = rfl_conv2d(b, scale, "fc2", rfl_net_channels(b, x), .bias = true);
	scale = rfl_unary(b, args->scale, scale, "scale_activation", RFL_OUT_OF_PLACE);
	x = rfl_binary(b, RFL_OP_MUL, scale, x, RFL_OUT_OF_PLACE);
	rfl_net_leave(b);
	return x;
}

int64_t rfl_zoo_divisible(double width, int64_t divisor)
{
	int64_t near = (int64_t)(width + (double)divisor / 2) / divisor * divisor;

	if (near < divisor)
		near = divisor;
	return (double)near < 0.9 * width ? near + divisor : near;
}
