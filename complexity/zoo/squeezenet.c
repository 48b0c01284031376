/*
 * squeezenet.c - SqueezeNet (Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer
 * parameters and <0.5MB model size", 2016), versions 1.0 and 1.1, as in torchvision.
 */
#include "complexity/zoo/blocks.h"

enum { POOLING = -1, END = 0 };

struct squeezenet {
	int64_t channels, kernel; /* of the first convolution */
	/* Squeeze channels of the fire modules; the 1x1 and 3x3 parts have four times as many. */
	int64_t fires[16];
};

static int fire(struct rfl_net_builder *b, int x, int64_t squeeze)
{
	int both[2];

	x = rfl_chain(b, x, BIASED("squeeze", squeeze, 1, 1), RELU("squeeze_activation"));
	both[0] = rfl_chain(b, x, BIASED("expand1x1", 4 * squeeze, 1, 1),
			    RELU("expand1x1_activation"));
	both[1] = rfl_chain(b, x, BIASED("expand3x3", 4 * squeeze, 3, 1),
			    RELU("expand3x3_activation"));
	return rfl_concat(b, both, 2, 0);
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct squeezenet *s = sizes->config;

	rfl_net_enter(b, "features");
	x = rfl_chain(b, x, CONV_OF("#", s->channels, 1, true, VALID(s->kernel, 2)), RELU("#"));
	for (const int64_t *next = s->fires; *next != END; next++) {
		if (*next == POOLING) {
			x = rfl_chain(b, x, CEIL_POOL("#", 3, 2));
			continue;
		}
		rfl_net_enter_block(b, "%d", b->number[b->depth]++);
		x = fire(b, x, *next);
		rfl_net_leave(b);
	}
	rfl_net_leave(b);
	return rfl_chain(b, x, DROPOUT("classifier.0", 0.5),
			 BIASED("classifier.1", sizes->classes, 1, 1), RELU("classifier.2"),
			 AVERAGE("classifier.3", 1), FLATTEN(NULL));
}

#define SQUEEZENET(name_, title_, summary_, ...)                     \
	RFL_ZOO_IMAGENET("squeezenet", name_, title_, summary_, 224, \
			 &(const struct squeezenet){ __VA_ARGS__ })

static const struct rfl_zoo_entry entries[] = {
	SQUEEZENET("squeezenet1_0", "SqueezeNet 1.0", "fire modules (Iandola et al. 2016)",
		   .channels = 96, .kernel = 7,
		   .fires = { POOLING, 16, 16, 32, POOLING, 32, 48, 48, 64, POOLING, 64, END }),
	SQUEEZENET("squeezenet1_1", "SqueezeNet 1.1",
		   "fire modules with earlier pooling, 42% of the operations", .channels = 64,
		   .kernel = 3,
		   .fires = { POOLING, 16, 16, POOLING, 32, 32, POOLING, 48, 48, 64, 64, END }),
};

RFL_ZOO_FAMILY(squeezenet, entries, build);
