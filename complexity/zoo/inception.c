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
 * as a function. */
#define BASIC(path, out, ...)                                                      \
	CONV_OF(path ".conv", out, 1, false, __VA_ARGS__), BATCH_NORM(path ".bn"), \
		LAYER(RELU, path, .functional = true, .inplace = true)

/* A module of the network; `w` are its widths. */
struct module {
	const char *name;
	/* Append the branches and return their number. NULL: a pooling between two modules. */
	int (*branches)(struct rfl_net_builder *b, int x, const int64_t *w, int *y);
	int64_t widths[6]; /* of a pooling, its kernel */
};

static int modules(struct rfl_net_builder *b, int x, const struct module *m,
		   const struct module *end)
{
	int y[4], n;

	for (; m < end; m++) {
		if (!m->branches) {
			x = rfl_chain(b, x, CEIL_POOL(m->name, m->widths[0], 2));
			continue;
		}
		rfl_net_enter_block(b, "%s", m->name);
		n = m->branches(b, x, m->widths, y);
		x = rfl_concat(b, y, n, 0);
		rfl_net_leave(b);
	}
	return x;
}

static int inception(struct rfl_net_builder *b, int x, const int64_t *w, int *y)
{
	y[0] = rfl_chain(b, x, BASIC("branch1", w[0], SAME(1, 1)));
	y[1] = rfl_chain(b, x, BASIC("branch2.0", w[1], SAME(1, 1)),
			 BASIC("branch2.1", w[2], SAME(3, 1)));
	y[2] = rfl_chain(b, x, BASIC("branch3.0", w[3], SAME(1, 1)),
			 BASIC("branch3.1", w[4], SAME(3, 1)));
	y[3] = rfl_chain(b, x, POOL(MAX_POOL, "branch4.0", 3, 1, 1, true),
			 BASIC("branch4.1", w[5], SAME(1, 1)));
	return 4;
}

/* Table 1 of the paper: the channels of a module, or the kernel of a pooling between modules. The
 * auxiliary heads branch off before the lines HEAD1 and HEAD2. */
enum { HEAD1 = 4, HEAD2 = 7 };
static const struct module googlenet_modules[] = {
	{ "inception3a", inception, { 64, 96, 128, 16, 32, 32 } },
	{ "inception3b", inception, { 128, 128, 192, 32, 96, 64 } },
	{ "maxpool3", NULL, { 3 } },
	{ "inception4a", inception, { 192, 96, 208, 16, 48, 64 } },
	{ "inception4b", inception, { 160, 112, 224, 24, 64, 64 } },
	{ "inception4c", inception, { 128, 128, 256, 24, 64, 64 } },
	{ "inception4d", inception, { 112, 144, 288, 32, 64, 64 } },
	{ "inception4e", inception, { 256, 160, 320, 32, 128, 128 } },
	{ "maxpool4", NULL, { 2 } },
	{ "inception5a", inception, { 256, 160, 320, 32, 128, 128 } },
	{ "inception5b", inception, { 384, 192, 384, 48, 128, 128 } },
};

/* Nothing reads the head's logits. */
static void auxiliary(struct rfl_net_builder *b, int x, const char *name, int64_t classes)
{
	rfl_net_enter(b, "%s", name);
	b->in_auxiliary = true;
	(void)rfl_chain(b, x, AVERAGE(NULL, 4), BASIC("conv", 128, SAME(1, 1)), FLATTEN(NULL),
			FC("fc1", 1024), RELU(NULL), DROPOUT("dropout", 0.7), FC("fc2", classes));
	b->in_auxiliary = false;
	rfl_net_leave(b);
}

static int build_googlenet(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	static const char *const created[] = { "conv", "inception", "aux", NULL };
	const struct module *m = googlenet_modules;
	const bool heads = *(const bool *)sizes->config;

	b->eps = 0.001;
	x = rfl_chain(b, x, BASIC("conv1", 64, SAME(7, 2)), CEIL_POOL("maxpool1", 3, 2),
		      BASIC("conv2", 64, SAME(1, 1)), BASIC("conv3", 192, SAME(3, 1)),
		      CEIL_POOL("maxpool2", 3, 2));
	x = modules(b, x, m, m + HEAD1);
	if (heads)
		auxiliary(b, x, "aux1", sizes->classes);
	x = modules(b, x, m + HEAD1, m + HEAD2);
	if (heads)
		auxiliary(b, x, "aux2", sizes->classes);
	x = modules(b, x, m + HEAD2, m + RFL_ARRAY_LEN(googlenet_modules));
	rfl_zoo_state_dict_order(b, created);
	return rfl_chain(b, x, AVERAGE("avgpool", 1), FLATTEN(NULL), DROPOUT("dropout", 0.2),
			 FC("fc", sizes->classes));
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

/* Modules A to E. C factors its 7x7 convolutions into a row and a column, E its last 3x3. */
static int module_a(struct rfl_net_builder *b, int x, const int64_t *w, int *y)
{
	y[0] = rfl_chain(b, x, BASIC("branch1x1", 64, SAME(1, 1)));
	y[1] = rfl_chain(b, x, BASIC("branch5x5_1", 48, SAME(1, 1)),
			 BASIC("branch5x5_2", 64, SAME(5, 1)));
	y[2] = rfl_chain(b, x, BASIC("branch3x3dbl_1", 64, SAME(1, 1)),
			 BASIC("branch3x3dbl_2", 96, SAME(3, 1)),
			 BASIC("branch3x3dbl_3", 96, SAME(3, 1)));
	y[3] = rfl_chain(b, x, AVG_POOL(NULL, 3, 1, 1), BASIC("branch_pool", w[0], SAME(1, 1)));
	return 4;
}

static int module_b(struct rfl_net_builder *b, int x, const int64_t *w, int *y)
{
	(void)w;
	y[0] = rfl_chain(b, x, BASIC("branch3x3", 384, VALID(3, 2)));
	y[1] = rfl_chain(b, x, BASIC("branch3x3dbl_1", 64, SAME(1, 1)),
			 BASIC("branch3x3dbl_2", 96, SAME(3, 1)),
			 BASIC("branch3x3dbl_3", 96, VALID(3, 2)));
	y[2] = rfl_chain(b, x, MAX_POOL(NULL, 3, 2, 0));
	return 3;
}

#define ROW    WINDOW(1, 7, 1, 0, 3)
#define COLUMN WINDOW(7, 1, 1, 3, 0)

static int module_c(struct rfl_net_builder *b, int x, const int64_t *w, int *y)
{
	y[0] = rfl_chain(b, x, BASIC("branch1x1", 192, SAME(1, 1)));
	y[1] = rfl_chain(b, x, BASIC("branch7x7_1", w[0], SAME(1, 1)),
			 BASIC("branch7x7_2", w[0], ROW), BASIC("branch7x7_3", 192, COLUMN));
	y[2] = rfl_chain(b, x, BASIC("branch7x7dbl_1", w[0], SAME(1, 1)),
			 BASIC("branch7x7dbl_2", w[0], COLUMN), BASIC("branch7x7dbl_3", w[0], ROW),
			 BASIC("branch7x7dbl_4", w[0], COLUMN), BASIC("branch7x7dbl_5", 192, ROW));
	y[3] = rfl_chain(b, x, AVG_POOL(NULL, 3, 1, 1), BASIC("branch_pool", 192, SAME(1, 1)));
	return 4;
}

static int module_d(struct rfl_net_builder *b, int x, const int64_t *w, int *y)
{
	(void)w;
	y[0] = rfl_chain(b, x, BASIC("branch3x3_1", 192, SAME(1, 1)),
			 BASIC("branch3x3_2", 320, VALID(3, 2)));
	y[1] = rfl_chain(b, x, BASIC("branch7x7x3_1", 192, SAME(1, 1)),
			 BASIC("branch7x7x3_2", 192, ROW), BASIC("branch7x7x3_3", 192, COLUMN),
			 BASIC("branch7x7x3_4", 192, VALID(3, 2)));
	y[2] = rfl_chain(b, x, MAX_POOL(NULL, 3, 2, 0));
	return 3;
}

static int module_e(struct rfl_net_builder *b, int x, const int64_t *w, int *y)
{
	int part[2];

	(void)w;
	y[0] = rfl_chain(b, x, BASIC("branch1x1", 320, SAME(1, 1)));
	y[1] = rfl_chain(b, x, BASIC("branch3x3_1", 384, SAME(1, 1)));
	part[0] = rfl_chain(b, y[1], BASIC("branch3x3_2a", 384, WINDOW(1, 3, 1, 0, 1)));
	part[1] = rfl_chain(b, y[1], BASIC("branch3x3_2b", 384, WINDOW(3, 1, 1, 1, 0)));
	y[1] = rfl_concat(b, part, 2, 0);
	y[2] = rfl_chain(b, x, BASIC("branch3x3dbl_1", 448, SAME(1, 1)),
			 BASIC("branch3x3dbl_2", 384, SAME(3, 1)));
	part[0] = rfl_chain(b, y[2], BASIC("branch3x3dbl_3a", 384, WINDOW(1, 3, 1, 0, 1)));
	part[1] = rfl_chain(b, y[2], BASIC("branch3x3dbl_3b", 384, WINDOW(3, 1, 1, 1, 0)));
	y[2] = rfl_concat(b, part, 2, 0);
	y[3] = rfl_chain(b, x, AVG_POOL(NULL, 3, 1, 1), BASIC("branch_pool", 192, SAME(1, 1)));
	return 4;
}

enum { HEAD = 8 /* the auxiliary head branches off before this module */ };
static const struct module inception_modules[] = {
	{ "Mixed_5b", module_a, { 32 } },  { "Mixed_5c", module_a, { 64 } },
	{ "Mixed_5d", module_a, { 64 } },  { "Mixed_6a", module_b, { 0 } },
	{ "Mixed_6b", module_c, { 128 } }, { "Mixed_6c", module_c, { 160 } },
	{ "Mixed_6d", module_c, { 160 } }, { "Mixed_6e", module_c, { 192 } },
	{ "Mixed_7a", module_d, { 0 } },   { "Mixed_7b", module_e, { 0 } },
	{ "Mixed_7c", module_e, { 0 } },
};

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
	(void)rfl_chain(b, x, AVG_POOL(NULL, 5, 3, 0), BASIC("conv0", 128, SAME(1, 1)),
			BASIC("conv1", 768, VALID(5, 1)), AVERAGE(NULL, 1), FLATTEN(NULL),
			FC("fc", classes));
	b->in_auxiliary = false;
	rfl_net_leave(b);
}

static int build_inception(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct module *m = inception_modules;

	b->eps = 0.001;
	x = rfl_chain(b, x, BASIC("Conv2d_1a_3x3", 32, VALID(3, 2)),
		      BASIC("Conv2d_2a_3x3", 32, VALID(3, 1)),
		      BASIC("Conv2d_2b_3x3", 64, SAME(3, 1)), MAX_POOL("maxpool1", 3, 2, 0),
		      BASIC("Conv2d_3b_1x1", 80, SAME(1, 1)),
		      BASIC("Conv2d_4a_3x3", 192, VALID(3, 1)), MAX_POOL("maxpool2", 3, 2, 0));
	x = modules(b, x, m, m + HEAD);
	if (*(const bool *)sizes->config)
		auxiliary_head(b, x, sizes->classes);
	x = modules(b, x, m + HEAD, m + RFL_ARRAY_LEN(inception_modules));
	return rfl_chain(b, x, AVERAGE("avgpool", 1), DROPOUT("dropout", 0.5), FLATTEN(NULL),
			 FC("fc", sizes->classes));
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
