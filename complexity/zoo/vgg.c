/*
 * vgg.c - plain stacks of convolutions, poolings and three linear layers: CIFAR CNN, which
 * benchmark reports train on CIFAR-10 and MNIST; AlexNet in the single-column form (Krizhevsky,
 * "One weird trick for parallelizing convolutional neural networks", 2014) and VGG (Simonyan and
 * Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015) as in
 * torchvision: with adaptive pooling before the classifier and, in VGG's _bn models, batch norm
 * after every convolution.
 */
#include <stdio.h>

#include "complexity/zoo/blocks.h"

/* Equal convolutions, each with a ReLU after it, then a pooling. */
struct stage {
	int repeats; /* 0: the end */
	int64_t out, kernel, stride, pad;
	int64_t pool; /* kernel, moved by 2; 0: none */
};

struct stack {
	struct stage stages[6];
	int64_t hidden[2]; /* outputs of the first two linear layers */
	int64_t pool; /* width of the pooled features; 0: all is one Sequential, as in CIFAR CNN */
	bool batch_norm, dropout_first;
};

/* The modules of a Sequential are numbered in order. */
struct number {
	int next;
	char text[16];
};

static const char *name(struct number *n)
{
	(void)snprintf(n->text, sizeof(n->text), "%d", n->next++);
	return n->text;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct stack *s = sizes->config;
	const enum rfl_inplace inplace = s->pool ? RFL_INPLACE : RFL_OUT_OF_PLACE;
	struct number n = { 0 };

	rfl_net_enter(b, s->pool ? "features" : "");
	for (const struct stage *t = s->stages; t->repeats; t++) {
		for (int i = 0; i < t->repeats; i++) {
			x = rfl_conv2d(b, x, name(&n), t->out, .kernel = t->kernel,
				       .stride = t->stride, .pad = t->pad, .bias = true);
			if (s->batch_norm)
				x = rfl_batch_norm(b, x, name(&n));
			x = rfl_relu(b, x, name(&n), inplace);
		}
		if (t->pool)
			x = rfl_max_pool(b, x, name(&n), .kernel = t->pool, .stride = 2);
	}
	rfl_net_leave(b);
	if (s->pool) {
		x = rfl_adaptive_avg_pool(b, x, "avgpool", s->pool, s->pool);
		x = rfl_flatten(b, x);
		n.next = 0;
	} else {
		x = rfl_net_as_module(b, rfl_flatten(b, x), name(&n));
	}
	rfl_net_enter(b, s->pool ? "classifier" : "");
	for (int i = 0; i < 2; i++) {
		if (s->dropout_first)
			x = rfl_dropout(b, x, name(&n), 0.5);
		x = rfl_linear(b, x, name(&n), s->hidden[i], true);
		x = rfl_relu(b, x, name(&n), inplace);
		if (!s->dropout_first)
			x = rfl_dropout(b, x, name(&n), 0.5);
	}
	x = rfl_linear(b, x, name(&n), sizes->classes, true);
	rfl_net_leave(b);
	return x;
}

/* The first linear layer reads 2048 features of a 32x32 image, 1152 of 28x28. */
static const struct stack cifar = {
	.stages = { { 1, 32, 3, 1, 1, 2 }, { 1, 64, 3, 1, 1, 2 }, { 1, 128, 3, 1, 1, 2 } },
	.hidden = { 512, 256 },
};

static const struct rfl_zoo_entry cifar_models[] = {
	RFL_ZOO_IMAGES("cifar_cnn", "cifar_cnn", "CIFAR CNN",
		       "3 convolutions and 3 linear layers for CIFAR-10: 1,276,234 parameters", 32,
		       0, 10, false, &cifar),
	RFL_ZOO_IMAGES("cifar_cnn", "mnist_cnn", "MNIST CNN",
		       "CIFAR CNN for MNIST, one channel of 28x28: 816,906 parameters", 28, 1, 10,
		       false, &cifar),
};

RFL_ZOO_FAMILY(cifar_cnn, cifar_models, build);

#define STACK(family_, name_, title_, summary_, ...)            \
	RFL_ZOO_IMAGENET(family_, name_, title_, summary_, 224, \
			 &(const struct stack){ .hidden = { 4096, 4096 }, __VA_ARGS__ })

static const struct rfl_zoo_entry alexnet_models[] = {
	STACK("alexnet", "alexnet", "AlexNet",
	      "the first large convolutional network (Krizhevsky 2014)",
	      .stages = { { 1, 64, 11, 4, 2, 3 },
			  { 1, 192, 5, 1, 2, 3 },
			  { 1, 384, 3, 1, 1, 0 },
			  { 2, 256, 3, 1, 1, 3 } },
	      .pool = 6, .dropout_first = true),
};

RFL_ZOO_FAMILY(alexnet, alexnet_models, build);

/* The columns of VGG's table 1: the number of convolutions in each stage. */
#define STAGES(n1_, n2_, n3_, n4_, n5_)         \
	.stages = { { n1_, 64, 3, 1, 1, 2 },    \
		    { n2_, 128, 3, 1, 1, 2 },   \
		    { n3_, 256, 3, 1, 1, 2 },   \
		    { n4_, 512, 3, 1, 1, 2 },   \
		    { n5_, 512, 3, 1, 1, 2 } }, \
	.pool = 7
#define VGG(depth_, letter_, ...)                                                              \
	STACK("vgg", "vgg" #depth_, "VGG-" #depth_,                                            \
	      "configuration " letter_ " (Simonyan and Zisserman 2015)", STAGES(__VA_ARGS__)), \
		STACK("vgg", "vgg" #depth_ "_bn", "VGG-" #depth_ " BN",                        \
		      "configuration " letter_ " with batch norm", STAGES(__VA_ARGS__),        \
		      .batch_norm = true)

static const struct rfl_zoo_entry vgg_models[] = {
	VGG(11, "A", 1, 1, 2, 2, 2),
	VGG(13, "B", 2, 2, 2, 2, 2),
	VGG(16, "D", 2, 2, 3, 3, 3),
	VGG(19, "E", 2, 2, 4, 4, 4),
};

RFL_ZOO_FAMILY(vgg, vgg_models, build);
