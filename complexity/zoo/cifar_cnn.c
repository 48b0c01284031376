/*
 * cifar_cnn.c - the small network of three convolutions and three linear layers that benchmark
 * reports train on CIFAR-10 and MNIST, written as one Sequential. The first linear layer takes what
 * the image leaves after three poolings: 2048 features of 32x32, 1152 of 28x28. A report gives the
 * network "1.2M+" parameters; the summaries say the exact numbers, and a test holds them to that.
 */
#include "complexity/zoo/blocks.h"

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	x = rfl_conv2d(b, x, "0", 32, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "1", RFL_OUT_OF_PLACE);
	x = rfl_max_pool(b, x, "2", .kernel = 2);
	x = rfl_conv2d(b, x, "3", 64, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "4", RFL_OUT_OF_PLACE);
	x = rfl_max_pool(b, x, "5", .kernel = 2);
	x = rfl_conv2d(b, x, "6", 128, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "7", RFL_OUT_OF_PLACE);
	x = rfl_max_pool(b, x, "8", .kernel = 2);
	x = rfl_net_as_module(b, rfl_flatten(b, x), "9");
	x = rfl_linear(b, x, "10", 512, true);
	x = rfl_relu(b, x, "11", RFL_OUT_OF_PLACE);
	x = rfl_dropout(b, x, "12", 0.5);
	x = rfl_linear(b, x, "13", 256, true);
	x = rfl_relu(b, x, "14", RFL_OUT_OF_PLACE);
	x = rfl_dropout(b, x, "15", 0.5);
	return rfl_linear(b, x, "16", sizes->classes, true);
}

static const struct rfl_zoo_entry entries[] = {
	RFL_ZOO_IMAGES("cifar_cnn", "cifar_cnn", "CIFAR CNN",
		       "3 convolutions, 3 linear layers for CIFAR-10: 1,276,234 parameters, "
		       "\"1.2M+\" in reports",
		       32, 0, 10, false, NULL),
	RFL_ZOO_IMAGES("cifar_cnn", "mnist_cnn", "MNIST CNN",
		       "the same for MNIST, one channel of 28x28: 816,906 parameters", 28, 1, 10,
		       false, NULL),
};

RFL_ZOO_FAMILY(cifar_cnn, entries, build);
