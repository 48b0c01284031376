/*
 * blocks.h - blocks that several families are made of, with the module names that torchvision
 * gives them.
 */
#ifndef RFL_COMPLEXITY_ZOO_BLOCKS_H
#define RFL_COMPLEXITY_ZOO_BLOCKS_H

#include <stdint.h>

#include "complexity/net/build.h"

/** What follows the normalisation of a convolution, where nothing does. */
#define RFL_ZOO_NO_ACTIVATION RFL_OP_INPUT

/** 0 stands for 1, and for no activation. */
struct rfl_zoo_conv_norm_args {
	int64_t kernel, stride, groups;
	enum rfl_op activation; /**< in place */
};

/**
 * A Sequential at `path` of "0" a convolution without bias that is padded by half its kernel, "1" a
 * batch norm, "2" an activation.
 */
int rfl_zoo_conv_norm_act(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
			  const struct rfl_zoo_conv_norm_args *args);
#define rfl_zoo_conv_norm(b, x, path, out_channels, ...)        \
	rfl_zoo_conv_norm_act((b), (x), (path), (out_channels), \
			      &(struct rfl_zoo_conv_norm_args){ __VA_ARGS__ })

/** The same among the modules of a larger Sequential, where the convolution has number `first`. */
int rfl_zoo_conv_norm_from(struct rfl_net_builder *b, int x, int first, int64_t out_channels,
			   const struct rfl_zoo_conv_norm_args *args);

/**
 * The BasicConv2d of GoogLeNet and Inception v3 at `path`: "conv" without bias, "bn", and an
 * in-place ReLU that is called as a function.
 */
int rfl_zoo_basic_conv(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
		       const struct rfl_conv2d_args *args);
#define rfl_zoo_basic(b, x, path, out_channels, ...)         \
	rfl_zoo_basic_conv((b), (x), (path), (out_channels), \
			   &(struct rfl_conv2d_args){ __VA_ARGS__ })

/** How a squeeze-and-excitation block is written. */
struct rfl_zoo_squeeze_args {
	int64_t channels; /**< between the two convolutions */
	enum rfl_op activation;
	enum rfl_inplace inplace; /**< of that activation */
	enum rfl_op scale;        /**< after the second convolution, out of place */
};

/**
 * Squeeze and excitation (Hu et al., CVPR 2018) at `path`: "avgpool", "fc1", "activation", "fc2",
 * "scale_activation", and the input times the scale of each channel.
 */
int rfl_zoo_squeeze_excitation(struct rfl_net_builder *b, int x, const char *path,
			       const struct rfl_zoo_squeeze_args *args);

/**
 * The multiple of `divisor` that is nearest to `width`, at least `divisor`, and not more than a
 * tenth below.
 */
int64_t rfl_zoo_divisible(double width, int64_t divisor);

#endif
