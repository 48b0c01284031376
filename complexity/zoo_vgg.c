/*
 * zoo_vgg.c - VGG (Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image
 * Recognition", ICLR 2015), with torchvision's adaptive pooling before the classifier, and with
 * batch norm after every convolution in the _bn forms.
 */
#include <stdio.h>

#include "complexity/zoo_impl.h"

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

/* The modules of `features` are numbered as they come. */
static int features(struct rfl_net_builder *b, int x, const struct vgg *v)
{
	char name[16];
	int index = 0;

	rfl_net_enter(b, "features");
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
	return x;
}

static int build(struct rfl_net_builder *b, int image, const void *config, int64_t classes)
{
	int x = features(b, image, config);

	x = rfl_adaptive_avg_pool(b, x, "avgpool", 7, 7);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "classifier.0", 4096, true);
	x = rfl_relu(b, x, "classifier.1", RFL_INPLACE);
	x = rfl_dropout(b, x, "classifier.2", 0.5);
	x = rfl_linear(b, x, "classifier.3", 4096, true);
	x = rfl_relu(b, x, "classifier.4", RFL_INPLACE);
	x = rfl_dropout(b, x, "classifier.5", 0.5);
	return rfl_linear(b, x, "classifier.6", classes, true);
}

#define VGG(depth_, letter_, suffix_, with_, batch_norm_, layers_) \
	{                                                          \
		.model = { \
			.name = "vgg" #depth_ suffix_, \
			.title = "VGG-" #depth_ with_, \
			.family = "vgg", \
			.summary = "configuration " letter_ " of Simonyan and Zisserman 2015" with_, \
			.image_size = 224, \
			.classes = 1000, \
		}, \
		.config = &(const struct vgg){ .layers = layers_, .batch_norm = batch_norm_ },                                       \
	}
#define VGG_BOTH(depth_, letter_, layers_)            \
	VGG(depth_, letter_, "", "", false, layers_), \
		VGG(depth_, letter_, "_bn", " with batch norm", true, layers_)

static const struct rfl_zoo_entry entries[] = {
	VGG_BOTH(11, "A", config_a),
	VGG_BOTH(13, "B", config_b),
	VGG_BOTH(16, "D", config_d),
	VGG_BOTH(19, "E", config_e),
};

const struct rfl_zoo_family rfl_zoo_vgg = {
	.name = "vgg",
	.entries = entries,
	.nentries = RFL_ARRAY_LEN(entries),
	.build = build,
};
