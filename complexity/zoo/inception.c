/*
 * inception.c - Inception v3 (Szegedy et al., "Rethinking the Inception Architecture for
 * Computer Vision", CVPR 2016), as torchvision writes it: images of 299x299, and an auxiliary head
 * that only training runs; its parameters count among the published 27,161,264. The head needs
 * 17x17 features; inception_v3_no_aux is the network without it, which takes smaller images.
 *
 * The modules A to E are those of the paper's figures 5 to 7 and of the two that reduce the grid.
 */
#include "complexity/zoo/blocks.h"

/* Factors of a 7x7 or a 3x3: a row and a column, padded to keep the size. */
static int row(struct rfl_net_builder *b, int x, const char *name, int64_t out, int64_t width)
{
	return rfl_zoo_basic(b, x, name, out, .kernel_h = 1, .kernel_w = width, .pad_w = width / 2);
}

static int column(struct rfl_net_builder *b, int x, const char *name, int64_t out, int64_t height)
{
	return rfl_zoo_basic(b, x, name, out, .kernel_h = height, .kernel_w = 1,
			     .pad_h = height / 2);
}

static int pooled(struct rfl_net_builder *b, int x, int64_t out)
{
	x = rfl_avg_pool(b, x, NULL, .kernel = 3, .stride = 1, .pad = 1);
	return rfl_zoo_basic(b, x, "branch_pool", out, .kernel = 1);
}

static int module_a(struct rfl_net_builder *b, int x, int64_t pool)
{
	int branch[4];

	branch[0] = rfl_zoo_basic(b, x, "branch1x1", 64, .kernel = 1);
	branch[1] = rfl_zoo_basic(b, x, "branch5x5_1", 48, .kernel = 1);
	branch[1] = rfl_zoo_basic(b, branch[1], "branch5x5_2", 64, .kernel = 5, .pad = 2);
	branch[2] = rfl_zoo_basic(b, x, "branch3x3dbl_1", 64, .kernel = 1);
	branch[2] = rfl_zoo_basic(b, branch[2], "branch3x3dbl_2", 96, .kernel = 3, .pad = 1);
	branch[2] = rfl_zoo_basic(b, branch[2], "branch3x3dbl_3", 96, .kernel = 3, .pad = 1);
	branch[3] = pooled(b, x, pool);
	return rfl_concat(b, branch, 4, 0);
}

static int module_b(struct rfl_net_builder *b, int x, int64_t unused)
{
	int branch[3];

	(void)unused;
	branch[0] = rfl_zoo_basic(b, x, "branch3x3", 384, .kernel = 3, .stride = 2);
	branch[1] = rfl_zoo_basic(b, x, "branch3x3dbl_1", 64, .kernel = 1);
	branch[1] = rfl_zoo_basic(b, branch[1], "branch3x3dbl_2", 96, .kernel = 3, .pad = 1);
	branch[1] = rfl_zoo_basic(b, branch[1], "branch3x3dbl_3", 96, .kernel = 3, .stride = 2);
	branch[2] = rfl_max_pool(b, x, NULL, .kernel = 3, .stride = 2);
	return rfl_concat(b, branch, 3, 0);
}

static int module_c(struct rfl_net_builder *b, int x, int64_t width)
{
	int branch[4];

	branch[0] = rfl_zoo_basic(b, x, "branch1x1", 192, .kernel = 1);
	branch[1] = rfl_zoo_basic(b, x, "branch7x7_1", width, .kernel = 1);
	branch[1] = row(b, branch[1], "branch7x7_2", width, 7);
	branch[1] = column(b, branch[1], "branch7x7_3", 192, 7);
	branch[2] = rfl_zoo_basic(b, x, "branch7x7dbl_1", width, .kernel = 1);
	branch[2] = column(b, branch[2], "branch7x7dbl_2", width, 7);
	branch[2] = row(b, branch[2], "branch7x7dbl_3", width, 7);
	branch[2] = column(b, branch[2], "branch7x7dbl_4", width, 7);
	branch[2] = row(b, branch[2], "branch7x7dbl_5", 192, 7);
	branch[3] = pooled(b, x, 192);
	return rfl_concat(b, branch, 4, 0);
}

static int module_d(struct rfl_net_builder *b, int x, int64_t unused)
{
	int branch[3];

	(void)unused;
	branch[0] = rfl_zoo_basic(b, x, "branch3x3_1", 192, .kernel = 1);
	branch[0] = rfl_zoo_basic(b, branch[0], "branch3x3_2", 320, .kernel = 3, .stride = 2);
	branch[1] = rfl_zoo_basic(b, x, "branch7x7x3_1", 192, .kernel = 1);
	branch[1] = row(b, branch[1], "branch7x7x3_2", 192, 7);
	branch[1] = column(b, branch[1], "branch7x7x3_3", 192, 7);
	branch[1] = rfl_zoo_basic(b, branch[1], "branch7x7x3_4", 192, .kernel = 3, .stride = 2);
	branch[2] = rfl_max_pool(b, x, NULL, .kernel = 3, .stride = 2);
	return rfl_concat(b, branch, 3, 0);
}

static int module_e(struct rfl_net_builder *b, int x, int64_t unused)
{
	int branch[4], both[2];

	(void)unused;
	branch[0] = rfl_zoo_basic(b, x, "branch1x1", 320, .kernel = 1);
	branch[1] = rfl_zoo_basic(b, x, "branch3x3_1", 384, .kernel = 1);
	both[0] = row(b, branch[1], "branch3x3_2a", 384, 3);
	both[1] = column(b, branch[1], "branch3x3_2b", 384, 3);
	branch[1] = rfl_concat(b, both, 2, 0);
	branch[2] = rfl_zoo_basic(b, x, "branch3x3dbl_1", 448, .kernel = 1);
	branch[2] = rfl_zoo_basic(b, branch[2], "branch3x3dbl_2", 384, .kernel = 3, .pad = 1);
	both[0] = row(b, branch[2], "branch3x3dbl_3a", 384, 3);
	both[1] = column(b, branch[2], "branch3x3dbl_3b", 384, 3);
	branch[2] = rfl_concat(b, both, 2, 0);
	branch[3] = pooled(b, x, 192);
	return rfl_concat(b, branch, 4, 0);
}

static const struct module {
	const char *name;
	int (*write)(struct rfl_net_builder *b, int x, int64_t channels);
	int64_t channels; /* of A's pooled branch, of C's 7x7 factors */
} modules[] = {
	{ "Mixed_5b", module_a, 32 },  { "Mixed_5c", module_a, 64 },  { "Mixed_5d", module_a, 64 },
	{ "Mixed_6a", module_b, 0 },   { "Mixed_6b", module_c, 128 }, { "Mixed_6c", module_c, 160 },
	{ "Mixed_6d", module_c, 160 }, { "Mixed_6e", module_c, 192 }, { "Mixed_7a", module_d, 0 },
	{ "Mixed_7b", module_e, 0 },   { "Mixed_7c", module_e, 0 },
};

enum { HEAD = 8 /* the module in front of which the auxiliary head branches off */ };

/* Nothing reads its logits. A pooling of 5 by 3 leaves 5x5 of 17x17 features for the 5x5 kernel. */
static void auxiliary_head(struct rfl_net_builder *b, int x, int64_t classes)
{
	struct rfl_shape s = rfl_net_shape(b, x);

	if (s.ndim == 3 && s.dim[1] < 17) {
		(void)rfl_net_refuse(b,
				     "AuxLogits.conv1.conv (Conv2d): %lldx%lld features are too "
				     "few; the image is too small for the auxiliary head, and "
				     "inception_v3_no_aux has none",
				     (long long)s.dim[1], (long long)s.dim[2]);
		return;
	}
	rfl_net_enter(b, "AuxLogits");
	b->in_auxiliary = true;
	x = rfl_avg_pool(b, x, NULL, .kernel = 5, .stride = 3);
	x = rfl_zoo_basic(b, x, "conv0", 128, .kernel = 1);
	x = rfl_zoo_basic(b, x, "conv1", 768, .kernel = 5);
	x = rfl_adaptive_avg_pool(b, x, NULL, 1, 1);
	x = rfl_flatten(b, x);
	(void)rfl_linear(b, x, "fc", classes, true);
	b->in_auxiliary = false;
	rfl_net_leave(b);
}

struct inception {
	bool head; /* the auxiliary one */
};

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct inception *v = sizes->config;

	b->eps = 0.001;
	x = rfl_zoo_basic(b, x, "Conv2d_1a_3x3", 32, .kernel = 3, .stride = 2);
	x = rfl_zoo_basic(b, x, "Conv2d_2a_3x3", 32, .kernel = 3);
	x = rfl_zoo_basic(b, x, "Conv2d_2b_3x3", 64, .kernel = 3, .pad = 1);
	x = rfl_max_pool(b, x, "maxpool1", .kernel = 3, .stride = 2);
	x = rfl_zoo_basic(b, x, "Conv2d_3b_1x1", 80, .kernel = 1);
	x = rfl_zoo_basic(b, x, "Conv2d_4a_3x3", 192, .kernel = 3);
	x = rfl_max_pool(b, x, "maxpool2", .kernel = 3, .stride = 2);
	for (size_t i = 0; i < RFL_ARRAY_LEN(modules); i++) {
		if (i == HEAD && v->head)
			auxiliary_head(b, x, sizes->classes);
		rfl_net_enter_block(b, "%s", modules[i].name);
		x = modules[i].write(b, x, modules[i].channels);
		rfl_net_leave(b);
	}
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_dropout(b, x, "dropout", 0.5);
	x = rfl_flatten(b, x);
	return rfl_linear(b, x, "fc", sizes->classes, true);
}

#define INCEPTION(name_, title_, summary_, head_)                   \
	RFL_ZOO_IMAGENET("inception", name_, title_, summary_, 299, \
			 &(const struct inception){ .head = (head_) })

static const struct rfl_zoo_entry entries[] = {
	INCEPTION("inception_v3", "Inception v3",
		  "factorised inception modules, with its auxiliary head (Szegedy et al. 2016)",
		  true),
	INCEPTION("inception_v3_no_aux", "Inception v3 without auxiliary head",
		  "the same without the head: takes images below 299, too", false),
};

RFL_ZOO_FAMILY(inception, entries, build);
