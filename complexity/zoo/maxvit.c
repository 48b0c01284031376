/*
 * maxvit.c - MaxViT (Tu et al., "MaxViT: Multi-Axis Vision Transformer", ECCV 2022) as in
 * torchvision: each layer is an inverted bottleneck, attention within windows, and attention across
 * the windows on a grid. A learned relative position bias is added to the scores.
 *
 * A partition into several windows of several pixels each, and its reverse, are copies.
 */
#include "complexity/zoo/blocks.h"

#include <math.h>

enum {
	STAGES = 4,
	HEAD = 32, /* features per attention head */
	WINDOW = 7,
	/* the stem and each stage halve the map; the last map must consist of whole windows */
	IMAGE_STEP = WINDOW << (STAGES + 1),
};

struct maxvit {
	int64_t stem;
	int64_t channels[STAGES], layers[STAGES];
	double stochastic_depth;
};

/* A layer under construction. */
struct layer {
	int64_t channels, stride;
	double drop; /* probability of stochastic depth */
	enum rfl_zoo_form form;
};

enum partition { WINDOWS, GRID };

static const double eps = 1e-5;

static int conv_norm_gelu(struct rfl_net_builder *b, int x, const char *path, int64_t out,
			  const struct rfl_window_args *args)
{
	rfl_net_enter(b, "%s", path);
	x = rfl_net_conv2d(b, x, "0", out, args);
	x = rfl_batch_norm(b, x, "1");
	x = rfl_gelu(b, x, "2", false);
	rfl_net_leave(b);
	return x;
}

static int bottleneck(struct rfl_net_builder *b, int x, const struct layer *l)
{
	const struct rfl_zoo_squeeze_args squeeze = {
		.channels = l->channels / 4,
		.activation = RFL_OP_SILU,
		.scale = RFL_OP_SIGMOID,
	};
	int64_t middle = 4 * l->channels;
	int shortcut = x;

	rfl_net_enter(b, "MBconv");
	if (l->stride != 1) {
		shortcut = rfl_avg_pool(b, x, "proj.0", .kernel = 3, .stride = l->stride, .pad = 1);
		shortcut = rfl_conv2d(b, shortcut, "proj.1", l->channels, .bias = true);
	}
	rfl_net_enter(b, "layers");
	x = rfl_batch_norm(b, x, "pre_norm");
	x = conv_norm_gelu(b, x, "conv_a", middle, &(struct rfl_window_args){ .kernel = 1 });
	x = conv_norm_gelu(b, x, "conv_b", middle,
			   &(struct rfl_window_args){
				   .kernel = 3, .stride = l->stride, .pad = 1, .groups = middle });
	x = rfl_zoo_squeeze_excitation(b, x, "squeeze_excitation", &squeeze);
	x = rfl_conv2d(b, x, "conv_c", l->channels, .bias = true);
	rfl_net_leave(b);
	x = rfl_stochastic_depth(b, x, "stochastic_depth", l->drop);
	x = rfl_add(b, shortcut, x, RFL_OUT_OF_PLACE);
	rfl_net_leave(b);
	return x;
}

/* Attention within each window of {windows, tokens, features}. */
static int attention(struct rfl_net_builder *b, int x, enum rfl_zoo_form softmax)
{
	const struct rfl_zoo_attention_args args = { .softmax = softmax, .copy_v = true };
	const struct rfl_shape s = rfl_net_shape(b, x);
	int64_t features = s.dim[2], heads = features / HEAD, side = 2 * WINDOW - 1;
	int table, bias, part[3];

	rfl_net_enter(b, "attn_layer.1");
	table = rfl_parameter(b, "relative_position_bias_table", RFL_DIMS(side * side, heads), 0);
	x = rfl_linear(b, x, "to_qkv", 3 * features, true);
	for (int i = 0; i < 3; i++) {
		part[i] = rfl_slice(b, x, 2, i * features, features, 1);
		part[i] = rfl_reshape(b, part[i], RFL_DIMS(s.dim[0], s.dim[1], heads, HEAD));
		part[i] = rfl_permute(b, part[i], RFL_DIMS(0, 2, 1, 3));
	}
	part[1] = rfl_affine(b, part[1], 1.0 / sqrt((double)features), 0.0);
	part[1] = rfl_contiguous(b, rfl_permute(b, part[1], RFL_DIMS(0, 1, 3, 2)));
	x = rfl_matmul(b, rfl_contiguous(b, part[0]), part[1], false, false);
	bias = rfl_gather(b, table, RFL_DIMS(s.dim[1], s.dim[1], heads));
	bias = rfl_contiguous(b, rfl_permute(b, bias, RFL_DIMS(2, 0, 1)));
	x = rfl_add(b, x, bias, RFL_OUT_OF_PLACE);
	x = rfl_zoo_attention_values(b, x, part[2], &args);
	x = rfl_reshape(b, rfl_contiguous(b, rfl_permute(b, x, RFL_DIMS(0, 2, 1, 3))), &s);
	x = rfl_linear(b, x, "merge", features, true);
	rfl_net_leave(b);
	return x;
}

/* A transformer layer on {windows, tokens, features}. */
static int transformer(struct rfl_net_builder *b, int x, const struct layer *l)
{
	int y;

	y = rfl_zoo_layer_norm(b, x, "attn_layer.0", eps, l->form);
	y = attention(b, y, l->form);
	y = rfl_dropout(b, y, "attn_layer.2", 0.0);
	y = rfl_stochastic_depth(b, y, "stochastic_dropout", l->drop);
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	y = rfl_zoo_layer_norm(b, x, "mlp_layer.0", eps, l->form);
	y = rfl_linear(b, y, "mlp_layer.1", 4 * l->channels, true);
	y = rfl_gelu(b, y, "mlp_layer.2", false);
	y = rfl_linear(b, y, "mlp_layer.3", l->channels, true);
	y = rfl_dropout(b, y, "mlp_layer.4", 0.0);
	y = rfl_stochastic_depth(b, y, "stochastic_dropout", l->drop);
	return rfl_add(b, x, y, RFL_OUT_OF_PLACE);
}

/* Partition {features, height, width} into windows of p x p pixels; on the grid, the pixels at the
 * same position in their windows form a sequence. */
static int partition_attention(struct rfl_net_builder *b, int x, enum partition partition,
			       const struct layer *l)
{
	const struct rfl_shape s = rfl_net_shape(b, x);
	int64_t n = s.dim[1] / WINDOW, p = partition == WINDOWS ? WINDOW : n;
	int64_t g = partition == WINDOWS ? n : WINDOW;
	bool copies = g > 1 && p > 1;

	rfl_net_enter(b, partition == WINDOWS ? "window_attention" : "grid_attention");
	if (s.ndim == 3 && s.dim[1] % WINDOW != 0)
		return rfl_net_refuse(b,
				      "cannot cut a map of %lldx%lld into windows of %d; use "
				      "images with a multiple of %d pixels",
				      (long long)s.dim[1], (long long)s.dim[2], WINDOW, IMAGE_STEP);
	x = rfl_reshape(b, x, RFL_DIMS(s.dim[0], g, p, g, p));
	x = rfl_permute(b, x, RFL_DIMS(1, 3, 2, 4, 0));
	x = copies ? rfl_contiguous(b, x) : x;
	x = rfl_reshape(b, x, RFL_DIMS(g * g, p * p, s.dim[0]));
	if (partition == GRID)
		x = rfl_permute(b, x, RFL_DIMS(1, 0, 2));
	x = transformer(b, x, l);
	if (partition == GRID)
		x = rfl_permute(b, x, RFL_DIMS(1, 0, 2));
	x = rfl_reshape(b, x, RFL_DIMS(g, g, p, p, s.dim[0]));
	x = rfl_permute(b, x, RFL_DIMS(4, 0, 2, 1, 3));
	x = copies ? rfl_contiguous(b, x) : x;
	x = rfl_reshape(b, x, &s);
	rfl_net_leave(b);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct maxvit *net = sizes->config;
	enum rfl_zoo_form form = rfl_zoo_form_of(sizes->attention);
	int64_t total = 0, before = 0;

	if (sizes->attention == RFL_ATTENTION_COMPOSED)
		b->loss = RFL_LOSS_COMPOSED;
	b->eps = 1e-3;
	b->momentum = 0.01;
	x = conv_norm_gelu(b, x, "stem.0", net->stem,
			   &(struct rfl_window_args){ .kernel = 3, .stride = 2, .pad = 1 });
	x = rfl_conv2d(b, x, "stem.1.0", net->stem, .kernel = 3, .pad = 1, .bias = true);
	for (int stage = 0; stage < STAGES; stage++)
		total += net->layers[stage];
	for (int stage = 0; stage < STAGES; stage++) {
		for (int64_t i = 0; i < net->layers[stage]; i++, before++) {
			const struct layer layer = {
				.channels = net->channels[stage],
				.stride = i == 0 ? 2 : 1,
				.drop = net->stochastic_depth * (double)before /
					(double)(total - 1),
				.form = form,
			};

			rfl_net_enter_block(b, "blocks.%d.layers.%d", stage, (int)i);
			rfl_net_enter(b, "layers");
			x = bottleneck(b, x, &layer);
			x = partition_attention(b, x, WINDOWS, &layer);
			x = partition_attention(b, x, GRID, &layer);
			rfl_net_leave(b);
			rfl_net_leave(b);
		}
	}
	rfl_net_enter(b, "classifier");
	x = rfl_adaptive_avg_pool(b, x, "0", 1, 1);
	x = rfl_net_as_module(b, rfl_flatten(b, x), "1");
	x = rfl_zoo_layer_norm(b, x, "2", eps, form);
	x = rfl_linear(b, x, "3", rfl_net_features(b, x), true);
	x = rfl_unary(b, RFL_OP_TANH, x, "4", RFL_OUT_OF_PLACE);
	x = rfl_linear(b, x, "5", sizes->classes, false);
	rfl_net_leave(b);
	return x;
}

static const struct rfl_zoo_entry entries[] = {
	RFL_ZOO_IMAGES("maxvit", "maxvit_t", "MaxViT-T",
		       "convolutions, windows and grids (Tu et al. 2022)", 224, 0, 1000, true,
		       &(const struct maxvit){ .stem = 64,
					       .channels = { 64, 128, 256, 512 },
					       .layers = { 2, 2, 5, 2 },
					       .stochastic_depth = 0.2 }),
};

RFL_ZOO_FAMILY(maxvit, entries, build);
