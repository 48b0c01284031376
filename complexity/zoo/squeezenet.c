/*
 * squeezenet.c - SqueezeNet (Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer
 * parameters and <0.5MB model size", 2016), versions 1.0 and 1.1, as in torchvision.
 */
#include <stdio.h>

#include "complexity/zoo/blocks.h"

enum { POOL = -1, END = 0 };

struct squeezenet {
	int64_t channels, kernel; /* of the first convolution */
	/* Squeeze channels of the fire modules; the 1x1 and 3x3 parts have four times as many. */
	int64_t fires[16];
};

static int fire(struct rfl_net_builder *b, int x, int64_t squeeze)
{
	int both[2];

	x = rfl_conv2d(b, x, "squeeze", squeeze, .kernel = 1, .bias = true);
	x = rfl_relu(b, x, "squeeze_activation", RFL_INPLACE);
	both[0] = rfl_conv2d(b, x, "expand1x1", 4 * squeeze, .kernel = 1, .bias = true);
	both[0] = rfl_relu(b, both[0], "expand1x1_activation", RFL_INPLACE);
	both[1] = rfl_conv2d(b, x, "expand3x3", 4 * squeeze, .kernel = 3, .pad = 1, .bias = true);
	both[1] = rfl_relu(b, both[1], "expand3x3_activation", RFL_INPLACE);
	x = rfl_concat(b, both, 2, 0);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct squeezenet *s = sizes->config;
	char name[16];
	int index = 2;

	rfl_net_enter(b, "features");
	x = rfl_conv2d(b, x, "0", s->channels, .kernel = s->kernel, .stride = 2, .bias = true);
	x = rfl_relu(b, x, "1", RFL_INPLACE);
	/* The modules are numbered in order. */
	for (const int64_t *next = s->fires; *next != END; next++) {
		(void)snprintf(name, sizeof(name), "%d", index++);
		if (*next == POOL) {
			x = rfl_max_pool(b, x, name, .kernel = 3, .stride = 2, .ceil_mode = true);
			continue;
		}
		rfl_net_enter_block(b, "%s", name);
		x = fire(b, x, *next);
		rfl_net_leave(b);
	}
	rfl_net_leave(b);
	x = rfl_dropout(b, x, "classifier.0", 0.5);
	x = rfl_conv2d(b, x, "classifier.1", sizes->classes, .kernel = 1, .bias = true);
	x = rfl_relu(b, x, "classifier.2", RFL_INPLACE);
	x = rfl_adaptive_avg_pool(b, x, "classifier.3", 1, 1);
	return rfl_flatten(b, x);
}

#define SQUEEZENET(name_, title_, summary_, ...)                     \
	RFL_ZOO_IMAGENET("squeezenet", name_, title_, summary_, 224, \
			 &(const struct squeezenet){ __VA_ARGS__ })

static const struct rfl_zoo_entry entries[] = {
	SQUEEZENET("squeezenet1_0", "SqueezeNet 1.0", "fire modules (Iandola et al. 2016)",
		   .channels = 96, .kernel = 7,
		   .fires = { POOL, 16, 16, 32, POOL, 32, 48, 48, 64, POOL, 64, END }),
	SQUEEZENET("squeezenet1_1", "SqueezeNet 1.1",
		   "fire modules with earlier pooling, 42% of the operations", .channels = 64,
		   .kernel = 3, .fires = { POOL, 16, 16, POOL, 32, 32, POOL, 48, 48, 64, 64, END }),
};

RFL_ZOO_FAMILY(squeezenet, entries, build);
