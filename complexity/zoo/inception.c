/*
 * inception.c - GoogLeNet (Szegedy et al., "Going Deeper with Convolutions", CVPR 2015) and
 * Inception v3 (Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR
 * 2016), as in torchvision: GoogLeNet with batch norm, and with 3x3 convolutions in place of 5x5.
 *
 * googlenet has no auxiliary heads, like the published weights; googlenet_aux is the network in
 * training, with two. inception_v3 has one, which runs only in training; its parameters are
 * included in the published 27,161,264. That head needs 17x17 features; inception_v3_no_aux does
 * not.
 */
#include "complexity/zoo/blocks.h"

/* The BasicConv2d of both models, at `path`: "conv" without bias, "bn", and an in-place ReLU called
 * as a function. `...` are members of struct rfl_conv2d_args. */
static int basic_conv(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
		      const struct rfl_conv2d_args *args)
{
	rfl_net_enter(b, "%s", path);
	x = rfl_net_conv2d(b, x, "conv", out_channels, args);
	x = rfl_batch_norm(b, x, "bn");
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	rfl_net_leave(b);
	return x;
}

#define BASIC(b, x, path, out_channels, ...) \
	basic_conv((b), (x), (path), (out_channels), &(struct rfl_conv2d_args){ __VA_ARGS__ })

/* Table 1 of the paper: each line is a module, or the pooling between two modules. */
static const struct inception {
	const char *name;
	int64_t window;                                   /* for a pooling; 0: a module */
	int64_t one, reduce3, three, reduce5, five, pool; /* channels of the branches */
} modules[] = {
	{ "inception3a", 0, 64, 96, 128, 16, 32, 32 },
	{ "inception3b", 0, 128, 128, 192, 32, 96, 64 },
	{ .name = "maxpool3", .window = 3 },
	{ "inception4a", 0, 192, 96, 208, 16, 48, 64 },
	{ "inception4b", 0, 160, 112, 224, 24, 64, 64 },
	{ "inception4c", 0, 128, 128, 256, 24, 64, 64 },
	{ "inception4d", 0, 112, 144, 288, 32, 64, 64 },
	{ "inception4e", 0, 256, 160, 320, 32, 128, 128 },
	{ .name = "maxpool4", .window = 2 },
	{ "inception5a", 0, 256, 160, 320, 32, 128, 128 },
	{ "inception5b", 0, 384, 192, 384, 48, 128, 128 },
};

/* The auxiliary heads branch off before these lines of the table. */
enum { HEAD1 = 4, HEAD2 = 7, MAX_NODES = 256 };

static int inception(struct rfl_net_builder *b, int x, const struct inception *m)
{
	int branch[4];

	rfl_net_enter_block(b, "%s", m->name);
	branch[0] = BASIC(b, x, "branch1", m->one, .kernel = 1);
	branch[1] = BASIC(b, x, "branch2.0", m->reduce3, .kernel = 1);
	branch[1] = BASIC(b, branch[1], "branch2.1", m->three, .kernel = 3, .pad = 1);
	branch[2] = BASIC(b, x, "branch3.0", m->reduce5, .kernel = 1);
	branch[2] = BASIC(b, branch[2], "branch3.1", m->five, .kernel = 3, .pad = 1);
	branch[3] = rfl_max_pool(b, x, "branch4.0", .kernel = 3, .stride = 1, .pad = 1,
				 .ceil_mode = true);
	branch[3] = BASIC(b, branch[3], "branch4.1", m->pool, .kernel = 1);
	x = rfl_concat(b, branch, 4, 0);
	rfl_net_leave(b);
	return x;
}

/* Nothing reads the head's logits. */
static int auxiliary(struct rfl_net_builder *b, int x, const char *name, int64_t classes)
{
	rfl_net_enter(b, "%s", name);
	b->in_auxiliary = true;
	x = rfl_adaptive_avg_pool(b, x, NULL, 4, 4);
	x = BASIC(b, x, "conv", 128, .kernel = 1);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "fc1", 1024, true);
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	x = rfl_dropout(b, x, "dropout", 0.7);
	x = rfl_linear(b, x, "fc2", classes, true);
	b->in_auxiliary = false;
	rfl_net_leave(b);
	return x;
}

static int inceptions(struct rfl_net_builder *b, int x, size_t first, size_t end)
{
	for (const struct inception *m = modules + first; m < modules + end; m++)
		x = m->window ? rfl_max_pool(b, x, m->name, .kernel = m->window, .stride = 2,
					     .ceil_mode = true)
			      : inception(b, x, m);
	return x;
}

static int build_googlenet(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const bool heads = *(const bool *)sizes->config;
	int head[2], end[2], order[MAX_NODES], n = 0;

	b->eps = 0.001;
	x = BASIC(b, x, "conv1", 64, .kernel = 7, .stride = 2, .pad = 3);
	x = rfl_max_pool(b, x, "maxpool1", .kernel = 3, .stride = 2, .ceil_mode = true);
	x = BASIC(b, x, "conv2", 64, .kernel = 1);
	x = BASIC(b, x, "conv3", 192, .kernel = 3, .pad = 1);
	x = rfl_max_pool(b, x, "maxpool2", .kernel = 3, .stride = 2, .ceil_mode = true);
	x = head[0] = inceptions(b, x, 0, HEAD1);
	end[0] = heads ? auxiliary(b, x, "aux1", sizes->classes) : x;
	x = head[1] = inceptions(b, x, HEAD1, HEAD2);
	end[1] = heads ? auxiliary(b, x, "aux2", sizes->classes) : x;
	x = inceptions(b, x, HEAD2, RFL_ARRAY_LEN(modules));
	if (heads) {
		/* The heads run in the middle of the network but come last in the state_dict. */
		const int from[] = { end[0], end[1], head[0], head[1] };
		const int to[] = { head[1], x, end[0], end[1] };

		for (int i = 0; i < 4; i++)
			for (int node = from[i] + 1; node <= to[i] && n < MAX_NODES; node++)
				order[n++] = node;
		rfl_net_state_dict_order(b, order, n);
	}
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_flatten(b, x);
	x = rfl_dropout(b, x, "dropout", 0.2);
	return rfl_linear(b, x, "fc", sizes->classes, true);
}

#define GOOGLENET(name_, title_, summary_, heads_) \
	RFL_ZOO_IMAGENET("googlenet", name_, title_, summary_, 224, &(const bool){ heads_ })

static const struct rfl_zoo_entry googlenet_models[] = {
	GOOGLENET("googlenet", "GoogLeNet",
		  "inception modules with batch norm (Szegedy et al. 2015), no auxiliary heads",
		  false),
	GOOGLENET("googlenet_aux", "GoogLeNet with auxiliary heads",
		  "GoogLeNet with the two auxiliary heads used in training", true),
};

RFL_ZOO_FAMILY(googlenet, googlenet_models, build_googlenet);

/* The factors of a 7x7 or 3x3 convolution, a row and a column, padded to keep the size. */
static int row(struct rfl_net_builder *b, int x, const char *name, int64_t out, int64_t width)
{
	return BASIC(b, x, name, out, .kernel_h = 1, .kernel_w = width, .pad_w = width / 2);
}

static int column(struct rfl_net_builder *b, int x, const char *name, int64_t out, int64_t height)
{
	return BASIC(b, x, name, out, .kernel_h = height, .kernel_w = 1, .pad_h = height / 2);
}

static int pooled(struct rfl_net_builder *b, int x, int64_t out)
{
	x = rfl_avg_pool(b, x, NULL, .kernel = 3, .stride = 1, .pad = 1);
	return BASIC(b, x, "branch_pool", out, .kernel = 1);
}

static int module_a(struct rfl_net_builder *b, int x, int64_t pool)
{
	int branch[4];

	branch[0] = BASIC(b, x, "branch1x1", 64, .kernel = 1);
	branch[1] = BASIC(b, x, "branch5x5_1", 48, .kernel = 1);
	branch[1] = BASIC(b, branch[1], "branch5x5_2", 64, .kernel = 5, .pad = 2);
	branch[2] = BASIC(b, x, "branch3x3dbl_1", 64, .kernel = 1);
	branch[2] = BASIC(b, branch[2], "branch3x3dbl_2", 96, .kernel = 3, .pad = 1);
	branch[2] = BASIC(b, branch[2], "branch3x3dbl_3", 96, .kernel = 3, .pad = 1);
	branch[3] = pooled(b, x, pool);
	return rfl_concat(b, branch, 4, 0);
}

static int module_b(struct rfl_net_builder *b, int x, int64_t unused)
{
	int branch[3];

	(void)unused;
	branch[0] = BASIC(b, x, "branch3x3", 384, .kernel = 3, .stride = 2);
	branch[1] = BASIC(b, x, "branch3x3dbl_1", 64, .kernel = 1);
	branch[1] = BASIC(b, branch[1], "branch3x3dbl_2", 96, .kernel = 3, .pad = 1);
	branch[1] = BASIC(b, branch[1], "branch3x3dbl_3", 96, .kernel = 3, .stride = 2);
	branch[2] = rfl_max_pool(b, x, NULL, .kernel = 3, .stride = 2);
	return rfl_concat(b, branch, 3, 0);
}

static int module_c(struct rfl_net_builder *b, int x, int64_t width)
{
	int branch[4];

	branch[0] = BASIC(b, x, "branch1x1", 192, .kernel = 1);
	branch[1] = BASIC(b, x, "branch7x7_1", width, .kernel = 1);
	branch[1] = row(b, branch[1], "branch7x7_2", width, 7);
	branch[1] = column(b, branch[1], "branch7x7_3", 192, 7);
	branch[2] = BASIC(b, x, "branch7x7dbl_1", width, .kernel = 1);
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
	branch[0] = BASIC(b, x, "branch3x3_1", 192, .kernel = 1);
	branch[0] = BASIC(b, branch[0], "branch3x3_2", 320, .kernel = 3, .stride = 2);
	branch[1] = BASIC(b, x, "branch7x7x3_1", 192, .kernel = 1);
	branch[1] = row(b, branch[1], "branch7x7x3_2", 192, 7);
	branch[1] = column(b, branch[1], "branch7x7x3_3", 192, 7);
	branch[1] = BASIC(b, branch[1], "branch7x7x3_4", 192, .kernel = 3, .stride = 2);
	branch[2] = rfl_max_pool(b, x, NULL, .kernel = 3, .stride = 2);
	return rfl_concat(b, branch, 3, 0);
}

static int module_e(struct rfl_net_builder *b, int x, int64_t unused)
{
	int branch[4], both[2];

	(void)unused;
	branch[0] = BASIC(b, x, "branch1x1", 320, .kernel = 1);
	branch[1] = BASIC(b, x, "branch3x3_1", 384, .kernel = 1);
	both[0] = row(b, branch[1], "branch3x3_2a", 384, 3);
	both[1] = column(b, branch[1], "branch3x3_2b", 384, 3);
	branch[1] = rfl_concat(b, both, 2, 0);
	branch[2] = BASIC(b, x, "branch3x3dbl_1", 448, .kernel = 1);
	branch[2] = BASIC(b, branch[2], "branch3x3dbl_2", 384, .kernel = 3, .pad = 1);
	both[0] = row(b, branch[2], "branch3x3dbl_3a", 384, 3);
	both[1] = column(b, branch[2], "branch3x3dbl_3b", 384, 3);
	branch[2] = rfl_concat(b, both, 2, 0);
	branch[3] = pooled(b, x, 192);
	return rfl_concat(b, branch, 4, 0);
}

static const struct module_v3 {
	const char *name;
	int (*write)(struct rfl_net_builder *b, int x, int64_t channels);
	int64_t channels; /* of A's pooling branch, of C's 7x7 factors */
} modules_v3[] = {
	{ "Mixed_5b", module_a, 32 },  { "Mixed_5c", module_a, 64 },  { "Mixed_5d", module_a, 64 },
	{ "Mixed_6a", module_b, 0 },   { "Mixed_6b", module_c, 128 }, { "Mixed_6c", module_c, 160 },
	{ "Mixed_6d", module_c, 160 }, { "Mixed_6e", module_c, 192 }, { "Mixed_7a", module_d, 0 },
	{ "Mixed_7b", module_e, 0 },   { "Mixed_7c", module_e, 0 },
};

enum { HEAD = 8 /* the auxiliary head branches off before this module */ };

/* Pooling 17x17 features with kernel 5 and stride 3 leaves 5x5 for the 5x5 convolution. */
static void auxiliary_head(struct rfl_net_builder *b, int x, int64_t classes)
{
	struct rfl_shape s = rfl_net_shape(b, x);

	if (s.ndim == 3 && s.dim[1] < 17) {
		(void)rfl_net_refuse(
			b,
			"AuxLogits.conv1.conv (Conv2d): %lldx%lld features are too few for the "
			"auxiliary head; use a larger image or inception_v3_no_aux",
			(long long)s.dim[1], (long long)s.dim[2]);
		return;
	}
	rfl_net_enter(b, "AuxLogits");
	b->in_auxiliary = true;
	x = rfl_avg_pool(b, x, NULL, .kernel = 5, .stride = 3);
	x = BASIC(b, x, "conv0", 128, .kernel = 1);
	x = BASIC(b, x, "conv1", 768, .kernel = 5);
	x = rfl_adaptive_avg_pool(b, x, NULL, 1, 1);
	x = rfl_flatten(b, x);
	(void)rfl_linear(b, x, "fc", classes, true);
	b->in_auxiliary = false;
	rfl_net_leave(b);
}

static int build_inception(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const bool head = *(const bool *)sizes->config;

	b->eps = 0.001;
	x = BASIC(b, x, "Conv2d_1a_3x3", 32, .kernel = 3, .stride = 2);
	x = BASIC(b, x, "Conv2d_2a_3x3", 32, .kernel = 3);
	x = BASIC(b, x, "Conv2d_2b_3x3", 64, .kernel = 3, .pad = 1);
	x = rfl_max_pool(b, x, "maxpool1", .kernel = 3, .stride = 2);
	x = BASIC(b, x, "Conv2d_3b_1x1", 80, .kernel = 1);
	x = BASIC(b, x, "Conv2d_4a_3x3", 192, .kernel = 3);
	x = rfl_max_pool(b, x, "maxpool2", .kernel = 3, .stride = 2);
	for (size_t i = 0; i < RFL_ARRAY_LEN(modules_v3); i++) {
		if (i == HEAD && head)
			auxiliary_head(b, x, sizes->classes);
		rfl_net_enter_block(b, "%s", modules_v3[i].name);
		x = modules_v3[i].write(b, x, modules_v3[i].channels);
		rfl_net_leave(b);
	}
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_dropout(b, x, "dropout", 0.5);
	x = rfl_flatten(b, x);
	return rfl_linear(b, x, "fc", sizes->classes, true);
}

#define INCEPTION(name_, title_, summary_, head_) \
	RFL_ZOO_IMAGENET("inception", name_, title_, summary_, 299, &(const bool){ head_ })

static const struct rfl_zoo_entry inception_models[] = {
	INCEPTION("inception_v3", "Inception v3",
		  "factorised inception modules, with auxiliary head (Szegedy et al. 2016)", true),
	INCEPTION("inception_v3_no_aux", "Inception v3 without auxiliary head",
		  "Inception v3 without auxiliary head, for images of any size", false),
};

RFL_ZOO_FAMILY(inception, inception_models, build_inception);
