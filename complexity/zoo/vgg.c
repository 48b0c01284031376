/*
 * vgg.c - plain stacks of layers: CIFAR CNN, and AlexNet and VGG as in torchvision.
 */
#include <stdio.h>

#include "complexity/zoo/blocks.h"

/* CIFAR CNN: three convolutions and three linear layers in one Sequential, which benchmark reports
 * train on CIFAR-10 and MNIST. The first linear layer reads the image after three poolings: 2048
 * features for 32x32, 1152 for 28x28. */

static int build_cifar(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
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

static const struct rfl_zoo_entry cifar_models[] = {
	RFL_ZOO_IMAGES("cifar_cnn", "cifar_cnn", "CIFAR CNN",
		       "3 convolutions and 3 linear layers for CIFAR-10: 1,276,234 parameters", 32,
		       0, 10, false, NULL),
	RFL_ZOO_IMAGES("cifar_cnn", "mnist_cnn", "MNIST CNN",
		       "CIFAR CNN for MNIST, one channel of 28x28: 816,906 parameters", 28, 1, 10,
		       false, NULL),
};

RFL_ZOO_FAMILY(cifar_cnn, cifar_models, build_cifar);

/* AlexNet in the single-column form (Krizhevsky, "One weird trick for parallelizing convolutional
 * neural networks", 2014). */

static int build_alexnet(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
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

static const struct rfl_zoo_entry alexnet_models[] = {
	RFL_ZOO_IMAGENET("alexnet", "alexnet", "AlexNet",
			 "the first large convolutional network (Krizhevsky 2014)", 224, NULL),
};

RFL_ZOO_FAMILY(alexnet, alexnet_models, build_alexnet);

/* VGG (Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image
 * Recognition", ICLR 2015), with adaptive pooling before the classifier and, in the _bn models,
 * batch norm after every convolution. */

enum { POOL = -1, END = 0 };

/* The columns of the paper's table 1: output channels of the 3x3 convolutions. */
static const int config_a[] = { 64,  POOL, 128,  POOL, 256, 256,  POOL,
				512, 512,  POOL, 512,  512, POOL, END };
static const int config_b[] = { 64,   64,  POOL, 128,  128, POOL, 256,  256,
				POOL, 512, 512,  POOL, 512, 512,  POOL, END };
static const int config_d[] = { 64,  64,  POOL, 128,  128, POOL, 256, 256,  256, POOL,
				512, 512, 512,  POOL, 512, 512,  512, POOL, END };
static const int config_e[] = { 64,  64,  POOL, 128, 128,  POOL, 256, 256, 256, 256,  POOL,
				512, 512, 512,  512, POOL, 512,  512, 512, 512, POOL, END };

struct vgg {
	const int *layers;
	bool batch_norm;
};

static int build_vgg(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct vgg *v = sizes->config;
	char name[16];
	int index = 0;

	rfl_net_enter(b, "features");
	/* The modules are numbered in order. */
	for (const int *layer = v->layers; *layer != END; layer++) {
		(void)snprintf(name, sizeof(name), "%d", index++);
		if (*layer == POOL) {
			x = rfl_max_pool(b, x, name, .kernel = 2, .stride = 2);
			continue;
		}
		x = rfl_conv2d(b, x, name, *layer, .kernel = 3, .pad = 1, .bias = true);
		if (v->batch_norm) {
			(void)snprintf(name, sizeof(name), "%d", index++);
			x = rfl_batch_norm(b, x, name);
		}
		(void)snprintf(name, sizeof(name), "%d", index++);
		x = rfl_relu(b, x, name, RFL_INPLACE);
	}
	rfl_net_leave(b);
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 7, 7);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "classifier.0", 4096, true);
	x = rfl_relu(b, x, "classifier.1", RFL_INPLACE);
	x = rfl_dropout(b, x, "classifier.2", 0.5);
	x = rfl_linear(b, x, "classifier.3", 4096, true);
	x = rfl_relu(b, x, "classifier.4", RFL_INPLACE);
	x = rfl_dropout(b, x, "classifier.5", 0.5);
	return rfl_linear(b, x, "classifier.6", sizes->classes, true);
}

#define VGG(name_, title_, summary_, batch_norm_, layers_)    \
	RFL_ZOO_IMAGENET("vgg", name_, title_, summary_, 224, \
			 &(const struct vgg){ .layers = (layers_), .batch_norm = (batch_norm_) })

static const struct rfl_zoo_entry vgg_models[] = {
	VGG("vgg11", "VGG-11", "configuration A (Simonyan and Zisserman 2015)", false, config_a),
	VGG("vgg11_bn", "VGG-11 BN", "configuration A with batch norm", true, config_a),
	VGG("vgg13", "VGG-13", "configuration B (Simonyan and Zisserman 2015)", false, config_b),
	VGG("vgg13_bn", "VGG-13 BN", "configuration B with batch norm", true, config_b),
	VGG("vgg16", "VGG-16", "configuration D (Simonyan and Zisserman 2015)", false, config_d),
	VGG("vgg16_bn", "VGG-16 BN", "configuration D with batch norm", true, config_d),
	VGG("vgg19", "VGG-19", "configuration E (Simonyan and Zisserman 2015)", false, config_e),
	VGG("vgg19_bn", "VGG-19 BN", "configuration E with batch norm", true, config_e),
};

RFL_ZOO_FAMILY(vgg, vgg_models, build_vgg);
