/*
 * vgg.c - plain stacks of convolutions, poolings and three linear layers: CIFAR CNN, which
 * benchmark reports train on CIFAR-10 and MNIST; AlexNet in the single-column form (Krizhevsky,
 * "One weird trick for parallelizing convolutional neural networks", 2014) and VGG (Simonyan and
 * Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015) as in
 * torchvision: with adaptive pooling before the classifier and, in VGG's _bn models, batch norm
 * after every convolution.
 */
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

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct stack *s = sizes->config;
	const struct rfl_node relu = { .op = RFL_OP_RELU, .name = "#", .inplace = s->pool > 0 };
	const struct rfl_node drop = DROPOUT("#", 0.5), none = { 0 };
	const struct rfl_node norm = STEP(s->batch_norm ? RFL_OP_BATCH_NORM : 0, "#");

	rfl_net_enter(b, s->pool ? "features" : "");
	for (const struct stage *t = s->stages; t->repeats; t++) {
		for (int i = 0; i < t->repeats; i++)
			x = rfl_chain(
				b, x,
				CONV_OF("#", t->out, 1, true,
					WINDOW(t->kernel, t->kernel, t->stride, t->pad, t->pad)),
				norm, relu);
		if (t->pool)
			x = rfl_chain(b, x, MAX_POOL("#", t->pool, 2, 0));
	}
	if (s->pool) {
		rfl_net_leave(b);
		x = rfl_chain(b, x, AVERAGE("avgpool", s->pool), FLATTEN(NULL));
		rfl_net_enter(b, "classifier");
	} else {
		x = rfl_chain(b, x, FLATTEN("#"));
	}
	for (int i = 0; i < 2; i++)
		x = rfl_chain(b, x, s->dropout_first ? drop : none, FC("#", s->hidden[i]), relu,
			      s->dropout_first ? none : drop);
	x = rfl_chain(b, x, FC("#", sizes->classes));
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
