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
 * as a function. `...` are members of struct rfl_window_args. */
static int basic_conv(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
		      const struct rfl_window_args *args)
{
	rfl_net_enter(b, "%s", path);
	x = rfl_net_conv2d(b, x, "conv", out_channels, args);
	x = rfl_batch_norm(b, x, "bn");
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	rfl_net_leave(b);
	return x;
}

#define BASIC(b, x, path, out_channels, ...) \
	basic_conv((b), (x), (path), (out_channels), &(struct rfl_window_args){ __VA_ARGS__ })

enum { MAX_BRANCHES = 4, MAX_WIDTHS = 6 };

/* One step of a module: a convolution, padded to keep the size unless its stride is 2, or a
 * pooling. */
struct step {
	int branch;
	const char *name;
	int64_t out; /* channels; -k: the k-th width of the module; 0: a pooling */
	int64_t height, width;
	enum {
		KEEP,
		HALVE,
		FORK /* the next step reads the same tensor; the two are joined */
	} how;
};

struct module {
	const char *name;
	const struct step *steps;
	int64_t widths[MAX_WIDTHS];
};

static int pooling(struct rfl_net_builder *b, int x, const struct step *s)
{
	if (s->how == HALVE)
		return rfl_max_pool(b, x, NULL, .kernel = 3, .stride = 2);
	if (s->name)
		return rfl_max_pool(b, x, s->name, .kernel = 3, .stride = 1, .pad = 1,
				    .ceil_mode = true);
	return rfl_avg_pool(b, x, NULL, .kernel = 3, .stride = 1, .pad = 1);
}

/* The concatenated branches of a module. */
static int module(struct rfl_net_builder *b, int x, const struct module *m)
{
	int branch[MAX_BRANCHES], fork[2], n = 0;

	rfl_net_enter_block(b, "%s", m->name);
	for (const struct step *s = m->steps; s->height; s++) {
		const bool halve = s->how == HALVE, joins = s > m->steps && s[-1].how == FORK;
		int y;

		if (s->branch == n)
			branch[n++] = x;
		y = branch[s->branch];
		if (s->out)
			y = BASIC(b, y, s->name, s->out < 0 ? m->widths[-s->out - 1] : s->out,
				  .kernel_h = s->height, .kernel_w = s->width,
				  .stride = halve ? 2 : 1, .pad_h = halve ? 0 : s->height / 2,
				  .pad_w = halve ? 0 : s->width / 2);
		else
			y = pooling(b, y, s);
		fork[joins] = y;
		if (s->how != FORK)
			branch[s->branch] = joins ? rfl_concat(b, fork, 2, 0) : y;
	}
	x = rfl_concat(b, branch, n, 0);
	rfl_net_leave(b);
	return x;
}

static int modules(struct rfl_net_builder *b, int x, const struct module *first,
		   const struct module *end)
{
	for (; first < end; first++)
		x = first->steps ? module(b, x, first)
				 : rfl_max_pool(b, x, first->name, .kernel = first->widths[0],
						.stride = 2, .ceil_mode = true);
	return x;
}

static const struct step googlenet_steps[] = {
	{ 0, "branch1", -1, 1, 1, KEEP },   { 1, "branch2.0", -2, 1, 1, KEEP },
	{ 1, "branch2.1", -3, 3, 3, KEEP }, { 2, "branch3.0", -4, 1, 1, KEEP },
	{ 2, "branch3.1", -5, 3, 3, KEEP }, { 3, "branch4.0", 0, 3, 3, KEEP },
	{ 3, "branch4.1", -6, 1, 1, KEEP }, { 0 },
};

/* Table 1 of the paper: the channels of a module, or the kernel of a pooling between modules. The
 * auxiliary heads branch off before the lines HEAD1 and HEAD2. */
enum { HEAD1 = 4, HEAD2 = 7 };
static const struct module googlenet_modules[] = {
	{ "inception3a", googlenet_steps, { 64, 96, 128, 16, 32, 32 } },
	{ "inception3b", googlenet_steps, { 128, 128, 192, 32, 96, 64 } },
	{ "maxpool3", NULL, { 3 } },
	{ "inception4a", googlenet_steps, { 192, 96, 208, 16, 48, 64 } },
	{ "inception4b", googlenet_steps, { 160, 112, 224, 24, 64, 64 } },
	{ "inception4c", googlenet_steps, { 128, 128, 256, 24, 64, 64 } },
	{ "inception4d", googlenet_steps, { 112, 144, 288, 32, 64, 64 } },
	{ "inception4e", googlenet_steps, { 256, 160, 320, 32, 128, 128 } },
	{ "maxpool4", NULL, { 2 } },
	{ "inception5a", googlenet_steps, { 256, 160, 320, 32, 128, 128 } },
	{ "inception5b", googlenet_steps, { 384, 192, 384, 48, 128, 128 } },
};

/* Nothing reads the head's logits. */
static void auxiliary(struct rfl_net_builder *b, int x, const char *name, int64_t classes)
{
	rfl_net_enter(b, "%s", name);
	b->in_auxiliary = true;
	x = rfl_adaptive_avg_pool(b, x, NULL, 4, 4);
	x = BASIC(b, x, "conv", 128, .kernel = 1);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "fc1", 1024, true);
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	x = rfl_dropout(b, x, "dropout", 0.7);
	(void)rfl_linear(b, x, "fc2", classes, true);
	b->in_auxiliary = false;
	rfl_net_leave(b);
}

static int build_googlenet(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	static const char *const created[] = { "conv", "inception", "aux", NULL };
	const struct module *m = googlenet_modules;
	const bool heads = *(const bool *)sizes->config;

	b->eps = 0.001;
	x = BASIC(b, x, "conv1", 64, .kernel = 7, .stride = 2, .pad = 3);
	x = rfl_max_pool(b, x, "maxpool1", .kernel = 3, .stride = 2, .ceil_mode = true);
	x = BASIC(b, x, "conv2", 64, .kernel = 1);
	x = BASIC(b, x, "conv3", 192, .kernel = 3, .pad = 1);
	x = rfl_max_pool(b, x, "maxpool2", .kernel = 3, .stride = 2, .ceil_mode = true);
	x = modules(b, x, m, m + HEAD1);
	if (heads)
		auxiliary(b, x, "aux1", sizes->classes);
	x = modules(b, x, m + HEAD1, m + HEAD2);
	if (heads)
		auxiliary(b, x, "aux2", sizes->classes);
	x = modules(b, x, m + HEAD2, m + RFL_ARRAY_LEN(googlenet_modules));
	rfl_zoo_state_dict_order(b, created);
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

/* Modules A to E. C factors its 7x7 convolutions into a row and a column, E its last 3x3. */
static const struct step steps_a[] = {
	{ 0, "branch1x1", 64, 1, 1, KEEP },
	{ 1, "branch5x5_1", 48, 1, 1, KEEP },
	{ 1, "branch5x5_2", 64, 5, 5, KEEP },
	{ 2, "branch3x3dbl_1", 64, 1, 1, KEEP },
	{ 2, "branch3x3dbl_2", 96, 3, 3, KEEP },
	{ 2, "branch3x3dbl_3", 96, 3, 3, KEEP },
	{ 3, NULL, 0, 3, 3, KEEP },
	{ 3, "branch_pool", -1, 1, 1, KEEP },
	{ 0 },
};
static const struct step steps_b[] = {
	{ 0, "branch3x3", 384, 3, 3, HALVE },
	{ 1, "branch3x3dbl_1", 64, 1, 1, KEEP },
	{ 1, "branch3x3dbl_2", 96, 3, 3, KEEP },
	{ 1, "branch3x3dbl_3", 96, 3, 3, HALVE },
	{ 2, NULL, 0, 3, 3, HALVE },
	{ 0 },
};
static const struct step steps_c[] = {
	{ 0, "branch1x1", 192, 1, 1, KEEP },      { 1, "branch7x7_1", -1, 1, 1, KEEP },
	{ 1, "branch7x7_2", -1, 1, 7, KEEP },     { 1, "branch7x7_3", 192, 7, 1, KEEP },
	{ 2, "branch7x7dbl_1", -1, 1, 1, KEEP },  { 2, "branch7x7dbl_2", -1, 7, 1, KEEP },
	{ 2, "branch7x7dbl_3", -1, 1, 7, KEEP },  { 2, "branch7x7dbl_4", -1, 7, 1, KEEP },
	{ 2, "branch7x7dbl_5", 192, 1, 7, KEEP }, { 3, NULL, 0, 3, 3, KEEP },
	{ 3, "branch_pool", 192, 1, 1, KEEP },    { 0 },
};
static const struct step steps_d[] = {
	{ 0, "branch3x3_1", 192, 1, 1, KEEP },
	{ 0, "branch3x3_2", 320, 3, 3, HALVE },
	{ 1, "branch7x7x3_1", 192, 1, 1, KEEP },
	{ 1, "branch7x7x3_2", 192, 1, 7, KEEP },
	{ 1, "branch7x7x3_3", 192, 7, 1, KEEP },
	{ 1, "branch7x7x3_4", 192, 3, 3, HALVE },
	{ 2, NULL, 0, 3, 3, HALVE },
	{ 0 },
};
static const struct step steps_e[] = {
	{ 0, "branch1x1", 320, 1, 1, KEEP },
	{ 1, "branch3x3_1", 384, 1, 1, KEEP },
	{ 1, "branch3x3_2a", 384, 1, 3, FORK },
	{ 1, "branch3x3_2b", 384, 3, 1, KEEP },
	{ 2, "branch3x3dbl_1", 448, 1, 1, KEEP },
	{ 2, "branch3x3dbl_2", 384, 3, 3, KEEP },
	{ 2, "branch3x3dbl_3a", 384, 1, 3, FORK },
	{ 2, "branch3x3dbl_3b", 384, 3, 1, KEEP },
	{ 3, NULL, 0, 3, 3, KEEP },
	{ 3, "branch_pool", 192, 1, 1, KEEP },
	{ 0 },
};

enum { HEAD = 8 /* the auxiliary head branches off before this module */ };
static const struct module inception_modules[] = {
	{ "Mixed_5b", steps_a, { 32 } },  { "Mixed_5c", steps_a, { 64 } },
	{ "Mixed_5d", steps_a, { 64 } },  { "Mixed_6a", steps_b, { 0 } },
	{ "Mixed_6b", steps_c, { 128 } }, { "Mixed_6c", steps_c, { 160 } },
	{ "Mixed_6d", steps_c, { 160 } }, { "Mixed_6e", steps_c, { 192 } },
	{ "Mixed_7a", steps_d, { 0 } },   { "Mixed_7b", steps_e, { 0 } },
	{ "Mixed_7c", steps_e, { 0 } },
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
	const struct module *m = inception_modules;

	b->eps = 0.001;
	x = BASIC(b, x, "Conv2d_1a_3x3", 32, .kernel = 3, .stride = 2);
	x = BASIC(b, x, "Conv2d_2a_3x3", 32, .kernel = 3);
	x = BASIC(b, x, "Conv2d_2b_3x3", 64, .kernel = 3, .pad = 1);
	x = rfl_max_pool(b, x, "maxpool1", .kernel = 3, .stride = 2);
	x = BASIC(b, x, "Conv2d_3b_1x1", 80, .kernel = 1);
	x = BASIC(b, x, "Conv2d_4a_3x3", 192, .kernel = 3);
	x = rfl_max_pool(b, x, "maxpool2", .kernel = 3, .stride = 2);
	x = modules(b, x, m, m + HEAD);
	if (*(const bool *)sizes->config)
		auxiliary_head(b, x, sizes->classes);
	x = modules(b, x, m + HEAD, m + RFL_ARRAY_LEN(inception_modules));
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
