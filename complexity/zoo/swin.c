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
	enum rfl_attention setting;
	int64_t heads, shift;
	double drop; /* probability of stochastic depth */
};

static const double eps = 1e-5;

/* The bias, {heads, tokens of a window, tokens of a window}, from a learned table; in version 2,
 * from a network over the coordinates with 512 hidden features and results from 0 to 16. */
static int position_bias(struct rfl_net_builder *b, const struct block *k)
{
	int64_t window = k->net->window, side = 2 * window - 1, tokens = window * window;
	int x;

	if (k->net->v2) {
		x = rfl_constant(b, "relative_coords_table", RFL_DIMS(side * side, 2));
		x = rfl_linear(b, x, "cpb_mlp.0", 512, true);
		x = rfl_relu(b, x, "cpb_mlp.1", RFL_INPLACE);
		x = rfl_linear(b, x, "cpb_mlp.2", k->heads, false);
	} else {
		x = rfl_parameter(b, "relative_position_bias_table",
				  RFL_DIMS(side * side, k->heads), 0);
	}
	x = rfl_gather(b, x, RFL_DIMS(tokens, tokens, k->heads));
	x = rfl_contiguous(b, rfl_permute(b, x, RFL_DIMS(2, 0, 1)));
	if (!k->net->v2)
		return x;
	x = rfl_unary(b, RFL_OP_SIGMOID, x, NULL, RFL_OUT_OF_PLACE);
	return rfl_affine(b, x, 16.0, 0.0);
}

/* Divide q or k by its length, in version 2. */
static int normalise(struct rfl_net_builder *b, int x)
{
	int length = rfl_unary(b, RFL_OP_SQUARE, x, NULL, RFL_OUT_OF_PLACE);

	length = rfl_reduce(b, RFL_OP_SUM, length, 3, 1, true);
	length = rfl_unary(b, RFL_OP_RSQRT, length, NULL, RFL_OUT_OF_PLACE);
	return rfl_binary(b, RFL_OP_MUL, x, length, RFL_OUT_OF_PLACE);
}

/* The scores, {windows, heads, tokens, tokens}. */
static int scores(struct rfl_net_builder *b, int q, int k, const struct block *block,
		  const struct rfl_zoo_attention_args *args)
{
	int scale, x;

	if (!block->net->v2)
		return rfl_zoo_attention_scores(b, q, k, args);
	q = rfl_contiguous(b, normalise(b, q));
	k = rfl_contiguous(b, rfl_permute(b, normalise(b, k), RFL_DIMS(0, 1, 3, 2)));
	x = rfl_matmul(b, q, k, false, false);
	scale = rfl_parameter(b, "logit_scale", RFL_DIMS(block->heads, 1, 1), 0);
	scale = rfl_unary(b, RFL_OP_EXP, scale, NULL, RFL_OUT_OF_PLACE);
	return rfl_binary(b, RFL_OP_MUL, x, scale, RFL_OUT_OF_PLACE);
}

/* Attention within each window of {windows, tokens, features}. */
static int window_attention(struct rfl_net_builder *b, int x, int bias, bool shifted,
			    const struct block *k)
{
	const struct rfl_zoo_attention_args args = {
		.softmax = rfl_zoo_form_of(k->setting),
		.scale_query = true,
		.copy_q = true,
		.copy_k = true,
		.copy_v = true,
	};
	const struct rfl_shape s = rfl_net_shape(b, x);
	int64_t windows = s.dim[0], tokens = s.dim[1], features = s.dim[2];
	int part[3];

	x = rfl_linear(b, x, "qkv", 3 * features, true);
	x = rfl_net_as_function(b, x);
	x = rfl_reshape(b, x, RFL_DIMS(windows, tokens, 3, k->heads, features / k->heads));
	x = rfl_permute(b, x, RFL_DIMS(2, 0, 3, 1, 4));
	for (int i = 0; i < 3; i++)
		part[i] = rfl_reshape(b, rfl_slice(b, x, 0, i, 1, 1),
				      RFL_DIMS(windows, k->heads, tokens, features / k->heads));
	x = scores(b, part[0], part[1], k, &args);
	x = rfl_add(b, x, bias, RFL_OUT_OF_PLACE);
	if (shifted)
		x = rfl_add(b, x,
			    rfl_constant(b, "attn_mask", RFL_DIMS(windows, 1, tokens, tokens)),
			    RFL_OUT_OF_PLACE);
	x = rfl_zoo_attention_values(b, x, part[2], &args);
	x = rfl_reshape(b, rfl_contiguous(b, rfl_permute(b, x, RFL_DIMS(0, 2, 1, 3))), &s);
	x = rfl_linear(b, x, "proj", features, true);
	return rfl_net_as_function(b, x);
}

static int roll(struct rfl_net_builder *b, int x, int64_t shift_h, int64_t shift_w)
{
	if (shift_h)
		x = rfl_net_roll(b, x, 0, shift_h, 0);
	if (shift_w)
		x = rfl_net_roll(b, x, 0, 0, shift_w);
	return x;
}

/* Pad {height, width, features} to whole windows, attend, and crop. */
static int attention(struct rfl_net_builder *b, int x, const struct block *k)
{
	const struct rfl_shape s = rfl_net_shape(b, x);
	int64_t w = k->net->window, features = s.dim[2];
	int64_t bottom = (w - s.dim[0] % w) % w, right = (w - s.dim[1] % w) % w;
	int64_t height = s.dim[0] + bottom, width = s.dim[1] + right;
	int64_t rows = height / w, columns = width / w;
	int64_t shift_h = rows > 1 ? k->shift : 0, shift_w = columns > 1 ? k->shift : 0;
	int bias;

	rfl_net_enter(b, "attn");
	bias = position_bias(b, k);
	x = rfl_net_pad(b, x, .bottom = bottom, .right = right);
	x = roll(b, x, -shift_h, -shift_w);
	x = rfl_reshape(b, x, RFL_DIMS(rows, w, columns, w, features));
	x = rfl_permute(b, x, RFL_DIMS(0, 2, 1, 3, 4));
	x = columns > 1 ? rfl_contiguous(b, x) : x;
	x = rfl_reshape(b, x, RFL_DIMS(rows * columns, w * w, features));
	x = window_attention(b, x, bias, shift_h || shift_w, k);
	x = rfl_reshape(b, x, RFL_DIMS(rows, columns, w, w, features));
	x = rfl_permute(b, x, RFL_DIMS(0, 2, 1, 3, 4));
	x = columns > 1 ? rfl_contiguous(b, x) : x;
	x = rfl_reshape(b, x, RFL_DIMS(height, width, features));
	x = roll(b, x, shift_h, shift_w);
	if (bottom || right) {
		x = rfl_slice(b, x, 0, 0, s.dim[0], 1);
		x = rfl_contiguous(b, rfl_slice(b, x, 1, 0, s.dim[1], 1));
	}
	rfl_net_leave(b);
	return x;
}

static int mlp(struct rfl_net_builder *b, int x)
{
	int64_t features = rfl_net_features(b, x);

	x = rfl_linear(b, x, "mlp.0", 4 * features, true);
	x = rfl_gelu(b, x, "mlp.1", false);
	x = rfl_dropout(b, x, "mlp.2", 0.0);
	x = rfl_linear(b, x, "mlp.3", features, true);
	return rfl_dropout(b, x, "mlp.4", 0.0);
}

static int norm(struct rfl_net_builder *b, int x, const char *name, const struct block *k)
{
	return rfl_zoo_layer_norm(b, x, name, eps, rfl_zoo_form_of(k->setting));
}

static int swin_block(struct rfl_net_builder *b, int x, const struct block *k)
{
	static const char *const made[] = { "norm1",        "attn.logit_scale",
					    "attn.qkv",     "attn.proj",
					    "attn.cpb_mlp", "norm2",
					    "mlp",          NULL };
	bool v2 = k->net->v2;
	int y;

	y = v2 ? norm(b, attention(b, x, k), "norm1", k) : attention(b, norm(b, x, "norm1", k), k);
	y = rfl_stochastic_depth(b, y, "stochastic_depth", k->drop);
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	y = v2 ? norm(b, mlp(b, x), "norm2", k) : mlp(b, norm(b, x, "norm2", k));
	y = rfl_stochastic_depth(b, y, "stochastic_depth", k->drop);
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	if (v2)
		rfl_zoo_state_dict_order(b, made);
	return x;
}

/* Merge four neighbours into one with four times the features, then reduce to twice. */
static int patch_merging(struct rfl_net_builder *b, int x, const struct swin *net,
			 enum rfl_zoo_form form)
{
	static const char *const made[] = { "reduction", "norm", NULL };
	struct rfl_shape s = rfl_net_shape(b, x);
	int64_t rows = (s.dim[0] + 1) / 2, columns = (s.dim[1] + 1) / 2;
	int part[4];

	x = rfl_net_pad(b, x, .bottom = s.dim[0] % 2, .right = s.dim[1] % 2);
	for (int i = 0; i < 4; i++) {
		part[i] = rfl_slice(b, x, 0, i % 2, rows, 2);
		part[i] = rfl_slice(b, part[i], 1, i / 2, columns, 2);
	}
	x = rfl_concat(b, part, 4, 2);
	if (!net->v2)
		x = rfl_zoo_layer_norm(b, x, "norm", eps, form);
	x = rfl_linear(b, x, "reduction", 2 * s.dim[2], false);
	if (net->v2)
		return rfl_zoo_layer_norm(b, x, "norm", eps, form);
	rfl_zoo_state_dict_order(b, made);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct swin *net = sizes->config;
	enum rfl_zoo_form form = rfl_zoo_form_of(sizes->attention);
	int64_t before = 0, blocks = 0;

	for (int i = 0; i < 4; i++)
		blocks += net->depth[i];
	if (sizes->attention == RFL_ATTENTION_COMPOSED)
		b->loss = RFL_LOSS_COMPOSED;
	x = rfl_conv2d(b, x, "features.0.0", net->features, .kernel = 4, .stride = 4, .bias = true);
	x = rfl_permute(b, x, RFL_DIMS(1, 2, 0));
	x = rfl_zoo_layer_norm(b, x, "features.0.2", eps, form);
	for (int i = 0; i < 4; i++) {
		if (i > 0) {
			rfl_net_enter(b, "features.%d", 2 * i);
			x = patch_merging(b, x, net, form);
			rfl_net_leave(b);
		}
		for (int64_t k = 0; k < net->depth[i]; k++, before++) {
			const struct block block = {
				.net = net,
				.setting = sizes->attention,
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
	x = rfl_permute(b, x, RFL_DIMS(2, 0, 1));
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_flatten(b, x);
	return rfl_linear(b, x, "head", sizes->classes, true);
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
