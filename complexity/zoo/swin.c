/*
 * swin.c - Swin Transformer (Liu et al., "Hierarchical Vision Transformer using Shifted Windows",
 * ICCV 2021) and its version 2 (Liu et al., "Scaling Up Capacity and Resolution", CVPR 2022) as in
 * torchvision.
 *
 * Attention works within windows of a fixed size, which are shifted in every other block. A
 * relative position bias is added to the scores, and with shifted windows also a constant mask.
 * Version 2 puts norms after attention and MLP, computes the bias by a small network from the
 * relative coordinates, and divides queries and keys by their lengths (written as q rsqrt(sum q^2),
 * without the upper limit of the logit scale).
 *
 * F.pad copies even without any padding, a roll over two dimensions takes two copies, and a
 * partition into more than one window another.
 */
#include "complexity/zoo/blocks.h"

struct swin {
	bool v2;
	int64_t window, features;
	int64_t depth[4], heads[4];
	double stochastic_depth;
};

/* A block under construction. */
struct block {
	const struct swin *net;
	enum rfl_zoo_form form;
	int64_t heads, shift;
	double drop; /* probability of stochastic depth */
};

static const double eps = 1e-5;

/* The bias, {heads, tokens of a window, tokens of a window}, from a learned table; in version 2,
 * from a network over the coordinates with 512 hidden features and results from 0 to 16. */
static int position_bias(struct rfl_net_builder *b, const struct block *k)
{
	const int64_t window = k->net->window, side = 2 * window - 1, tokens = window * window;
	const bool v2 = k->net->v2;
	int x;

	if (v2)
		x = rfl_chain(b, rfl_constant(b, "relative_coords_table", RFL_DIMS(side * side, 2)),
			      FC("cpb_mlp.0", 512), RELU("cpb_mlp.1"),
			      LINEAR("cpb_mlp.2", k->heads, .bias = false));
	else
		x = rfl_parameter(b, "relative_position_bias_table",
				  RFL_DIMS(side * side, k->heads), 0);
	x = rfl_chain(b, x, GATHER(tokens, tokens, k->heads), PERMUTE(2, 0, 1), COPY);
	return v2 ? rfl_chain(b, x, STEP(RFL_OP_SIGMOID, NULL), AFFINE(16.0, 0.0)) : x;
}

/* Divide q or k by its length, in version 2. */
static int normalise(struct rfl_net_builder *b, int x)
{
	int length = rfl_chain(b, x, STEP(RFL_OP_SQUARE, NULL), REDUCE(SUM, 3, 1, true),
			       STEP(RFL_OP_RSQRT, NULL));

	return rfl_binary(b, RFL_OP_MUL, x, length, RFL_OUT_OF_PLACE);
}

/* The scores, {windows, heads, tokens, tokens}. */
static int scores(struct rfl_net_builder *b, int q, int k, const struct block *block,
		  const struct rfl_zoo_attention_args *args)
{
	int scale, x;

	if (!block->net->v2)
		return rfl_zoo_attention_scores(b, q, k, args);
	q = rfl_chain(b, normalise(b, q), COPY);
	k = rfl_chain(b, normalise(b, k), PERMUTE(0, 1, 3, 2), COPY);
	x = rfl_matmul(b, q, k, false, false);
	scale = rfl_parameter(b, "logit_scale", RFL_DIMS(block->heads, 1, 1), 0);
	scale = rfl_chain(b, scale, STEP(RFL_OP_EXP, NULL));
	return rfl_binary(b, RFL_OP_MUL, x, scale, RFL_OUT_OF_PLACE);
}

/* Attention within each window of {windows, tokens, features}; its linear layers are functions. */
static int window_attention(struct rfl_net_builder *b, int x, int bias, bool shifted,
			    const struct block *k)
{
	const struct rfl_zoo_attention_args args = {
		.softmax = k->form,
		.scale_query = true,
		.copy_q = true,
		.copy_k = true,
		.copy_v = true,
	};
	const struct rfl_shape s = rfl_net_shape(b, x);
	const int64_t windows = s.dim[0], tokens = s.dim[1], features = s.dim[2];
	struct rfl_node qkv = FC("qkv", 3 * features);
	struct rfl_node proj = FC("proj", features);
	int part[3];

	qkv.functional = proj.functional = true;
	x = rfl_chain(b, x, qkv, RESHAPE(windows, tokens, 3, k->heads, features / k->heads),
		      PERMUTE(2, 0, 3, 1, 4));
	for (int i = 0; i < 3; i++)
		part[i] = rfl_chain(b, x, SLICE(0, i, 1, 1),
				    RESHAPE(windows, k->heads, tokens, features / k->heads));
	x = scores(b, part[0], part[1], k, &args);
	x = rfl_add(b, x, bias, RFL_OUT_OF_PLACE);
	if (shifted)
		x = rfl_add(b, x,
			    rfl_constant(b, "attn_mask", RFL_DIMS(windows, 1, tokens, tokens)),
			    RFL_OUT_OF_PLACE);
	x = rfl_zoo_attention_values(b, x, part[2], &args);
	return rfl_chain(b, x, PERMUTE(0, 2, 1, 3), COPY, LIKE(&s), proj);
}

#define ROLL(h, w)                                                           \
	{                                                                    \
		.op = (h) || (w) ? RFL_OP_ROLL : 0, .attr.roll = { 0, h, w } \
	}

/* Pad {height, width, features} to whole windows, attend, and crop. */
static int attention(struct rfl_net_builder *b, int x, const struct block *k)
{
	const struct rfl_shape s = rfl_net_shape(b, x);
	const int64_t w = k->net->window, features = s.dim[2];
	const int64_t bottom = (w - s.dim[0] % w) % w, right = (w - s.dim[1] % w) % w;
	const int64_t rows = (s.dim[0] + bottom) / w, columns = (s.dim[1] + right) / w;
	const int64_t shift_h = rows > 1 ? k->shift : 0, shift_w = columns > 1 ? k->shift : 0;
	int bias;

	rfl_net_enter(b, "attn");
	bias = position_bias(b, k);
	x = rfl_chain(b, x, PAD(bottom, right), ROLL(-shift_h, 0), ROLL(0, -shift_w),
		      RESHAPE(rows, w, columns, w, features), PERMUTE(0, 2, 1, 3, 4),
		      COPY_IF(columns > 1), RESHAPE(rows * columns, w * w, features));
	x = window_attention(b, x, bias, shift_h || shift_w, k);
	x = rfl_chain(b, x, RESHAPE(rows, columns, w, w, features), PERMUTE(0, 2, 1, 3, 4),
		      COPY_IF(columns > 1), RESHAPE(rows * w, columns * w, features),
		      ROLL(shift_h, 0), ROLL(0, shift_w));
	if (bottom || right)
		x = rfl_chain(b, x, SLICE(0, 0, s.dim[0], 1), SLICE(1, 0, s.dim[1], 1), COPY);
	rfl_net_leave(b);
	return x;
}

static int mlp(struct rfl_net_builder *b, int x)
{
	const int64_t features = rfl_net_features(b, x);

	return rfl_chain(b, x, FC("mlp.0", 4 * features), GELU("mlp.1"), DROPOUT("mlp.2", 0.0),
			 FC("mlp.3", features), DROPOUT("mlp.4", 0.0));
}

static int norm(struct rfl_net_builder *b, int x, const char *name, const struct block *k)
{
	return rfl_zoo_layer_norm(b, x, name, eps, k->form);
}

static int swin_block(struct rfl_net_builder *b, int x, const struct block *k)
{
	static const char *const made[] = { "norm1",        "attn.logit_scale",
					    "attn.qkv",     "attn.proj",
					    "attn.cpb_mlp", "norm2",
					    "mlp",          NULL };
	const struct rfl_node drop = DEPTH("stochastic_depth", k->drop);
	const bool v2 = k->net->v2;
	int y;

	y = v2 ? norm(b, attention(b, x, k), "norm1", k) : attention(b, norm(b, x, "norm1", k), k);
	x = rfl_add(b, x, rfl_chain(b, y, drop), RFL_OUT_OF_PLACE);
	y = v2 ? norm(b, mlp(b, x), "norm2", k) : mlp(b, norm(b, x, "norm2", k));
	x = rfl_add(b, x, rfl_chain(b, y, drop), RFL_OUT_OF_PLACE);
	if (v2)
		rfl_zoo_state_dict_order(b, made);
	return x;
}

/* Merge four neighbours into one with four times the features, then reduce to twice. */
static int patch_merging(struct rfl_net_builder *b, int x, bool v2, enum rfl_zoo_form form)
{
	static const char *const made[] = { "reduction", "norm", NULL };
	const struct rfl_shape s = rfl_net_shape(b, x);
	const int64_t rows = (s.dim[0] + 1) / 2, columns = (s.dim[1] + 1) / 2;
	int part[4];

	x = rfl_chain(b, x, PAD(s.dim[0] % 2, s.dim[1] % 2));
	for (int i = 0; i < 4; i++)
		part[i] = rfl_chain(b, x, SLICE(0, i % 2, rows, 2), SLICE(1, i / 2, columns, 2));
	x = rfl_concat(b, part, 4, 2);
	if (!v2)
		x = rfl_zoo_layer_norm(b, x, "norm", eps, form);
	x = rfl_chain(b, x, LINEAR("reduction", 2 * s.dim[2], .bias = false));
	if (v2)
		return rfl_zoo_layer_norm(b, x, "norm", eps, form);
	rfl_zoo_state_dict_order(b, made);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct swin *net = sizes->config;
	const enum rfl_zoo_form form = rfl_zoo_form_of(b, sizes->attention);
	int64_t before = 0, blocks = 0;

	for (int i = 0; i < 4; i++)
		blocks += net->depth[i];
	x = rfl_chain(b, x, PATCHES("features.0.0", net->features, 4), PERMUTE(1, 2, 0));
	x = rfl_zoo_layer_norm(b, x, "features.0.2", eps, form);
	for (int i = 0; i < 4; i++) {
		if (i > 0) {
			rfl_net_enter(b, "features.%d", 2 * i);
			x = patch_merging(b, x, net->v2, form);
			rfl_net_leave(b);
		}
		for (int64_t k = 0; k < net->depth[i]; k++, before++) {
			const struct block block = {
				.net = net,
				.form = form,
				.heads = net->heads[i],
				.shift = k % 2 ? net->window / 2 : 0,
				.drop = net->stochastic_depth * (double)before /
					(double)(blocks - 1),
			};

			rfl_net_enter_block(b, "features.%d.%d", 1 + 2 * i, (int)k);
			x = swin_block(b, x, &block);
			rfl_net_leave(b);
		}
	}
	x = rfl_zoo_layer_norm(b, x, "norm", eps, form);
	return rfl_chain(b, x, PERMUTE(2, 0, 1), AVERAGE("avgpool", 1), FLATTEN(NULL),
			 FC("head", sizes->classes));
}

#define SWIN(name_, title_, summary_, v2_, window_, features_, third_, drop_)                   \
	RFL_ZOO_IMAGES("swin", name_, title_, summary_, INT64_C(32) * (window_), 0, 1000, true, \
		       &(const struct swin){                                                    \
			       .v2 = (v2_),                                                     \
			       .window = (window_),                                             \
			       .features = (features_),                                         \
			       .depth = { 2, 2, (third_), 2 },                                  \
			       .heads = { (features_) / 32, (features_) / 16, (features_) / 8,  \
					  (features_) / 4 },                                    \
			       .stochastic_depth = (drop_),                                     \
		       })
#define SWIN_V1(name, title, ...) \
	SWIN(name, title, "shifted-window transformer (Liu et al. 2021)", false, 7, __VA_ARGS__)
#define SWIN_V2(name, title, ...)                                                             \
	SWIN(name, title, "shifted-window transformer, version 2 (Liu et al. 2022)", true, 8, \
	     __VA_ARGS__)

static const struct rfl_zoo_entry entries[] = {
	SWIN_V1("swin_t", "Swin-T", 96, 6, 0.2),
	SWIN_V1("swin_s", "Swin-S", 96, 18, 0.3),
	SWIN_V1("swin_b", "Swin-B", 128, 18, 0.5),
	SWIN_V2("swin_v2_t", "Swin V2-T", 96, 6, 0.2),
	SWIN_V2("swin_v2_s", "Swin V2-S", 96, 18, 0.3),
	SWIN_V2("swin_v2_b", "Swin V2-B", 128, 18, 0.5),
};

RFL_ZOO_FAMILY(swin, entries, build);
