/*
 * alexnet.c - AlexNet in the one-column form (Krizhevsky, "One weird trick for parallelizing
 * convolutional neural networks", 2014), as torchvision writes it.
 */
#include "complexity/zoo/blocks.h"

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	rfl_net_enter(b, "features");
	x = rfl_conv2d(b, x, "0", 64, .kernel = 11, .stride = 4, .pad = 2, .bias = true);
	x = rfl_relu(b, x, "1", RFL_INPLACE);
	x = rfl_max_pool(b, x, "2", .kernel = 3, .stride = 2);
	x = rfl_conv2d(b, x, "3", 192, .kernel = 5, .pad = 2, .bias = true);
	x = rfl_relu(b, x, "4", RFL_INPLACE);
	x = rfl_max_pool(b, x, "5", .kernel = 3, .stride = 2);
	x = rfl_conv2d(b, x, "6", 384, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "7", RFL_INPLACE);
	x = rfl_conv2d(b, x, "8", 256, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "9", RFL_INPLACE);
	x = rfl_conv2d(b, x, "10", 256, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "11", RFL_INPLACE);
	x = rfl_max_pool(b, x, "12", .kernel = 3, .stride = 2);
	rfl_net_leave(b);
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 6, 6);
	x = rfl_flatten(b, x);
	x = rfl_dropout(b, x, "classifier.0", 0.5);
	x = rfl_linear(b, x, "classifier.1", 4096, true);
	x = rfl_relu(b, x, "classifier.2", RFL_INPLACE);
	x = rfl_dropout(b, x, "classifier.3", 0.5);
	x = rfl_linear(b, x, "classifier.4", 4096, true);
	x = rfl_relu(b, x, "classifier.5", RFL_INPLACE);
	return rfl_linear(b, x, "classifier.6", sizes->classes, true);
}

static const struct rfl_zoo_entry entries[] = {
	RFL_ZOO_IMAGENET("alexnet", "alexnet", "AlexNet",
			 "the first large convolutional network (Krizhevsky 2014)", 224, NULL),
};

RFL_ZOO_FAMILY(alexnet, entries, build);
