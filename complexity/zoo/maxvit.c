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

static const double eps = 1e-5;

#define CONV_NORM_GELU(path, out, kernel, stride, groups) \
	GROUPED(path ".0", out, kernel, stride, groups), BATCH_NORM(path ".1"), GELU(path ".2")

static int bottleneck(struct rfl_net_builder *b, int x, const struct layer *l)
{
	const int64_t middle = 4 * l->channels;
	int y;

	rfl_net_enter(b, "MBconv");
	y = x;
	if (l->stride != 1)
		x = rfl_chain(b, x, AVG_POOL("proj.0", 3, l->stride, 1),
			      BIASED("proj.1", l->channels, 1, 1));
	rfl_net_enter(b, "layers");
	y = rfl_chain(b, y, BATCH_NORM("pre_norm"), CONV_NORM_GELU("conv_a", middle, 1, 1, 1),
		      CONV_NORM_GELU("conv_b", middle, 3, l->stride, middle));
	y = rfl_zoo_squeeze_excitation(b, y, "squeeze_excitation", l->channels / 4,
				       (struct rfl_node)STEP(RFL_OP_SILU, "activation"),
				       RFL_OP_SIGMOID);
	y = rfl_chain(b, y, BIASED("conv_c", l->channels, 1, 1));
	rfl_net_leave(b);
	y = rfl_chain(b, y, DEPTH("stochastic_depth", l->drop));
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	rfl_net_leave(b);
	return x;
}

/* Attention within each window of {windows, tokens, features}. */
static int attention(struct rfl_net_builder *b, int x, enum rfl_zoo_form softmax)
{
	const struct rfl_zoo_attention_args args = { .softmax = softmax, .copy_v = true };
	const struct rfl_shape s = rfl_net_shape(b, x);
	const int64_t features = s.dim[2], heads = features / HEAD, side = 2 * WINDOW - 1;
	int table, bias, part[3];

	rfl_net_enter(b, "attn_layer.1");
	table = rfl_parameter(b, "relative_position_bias_table", RFL_DIMS(side * side, heads), 0);
	x = rfl_chain(b, x, FC("to_qkv", 3 * features));
	for (int i = 0; i < 3; i++)
		part[i] = rfl_chain(b, x, SLICE(2, i * features, features, 1),
				    RESHAPE(s.dim[0], s.dim[1], heads, HEAD), PERMUTE(0, 2, 1, 3));
	part[1] = rfl_chain(b, part[1], AFFINE(1.0 / sqrt((double)features), 0.0),
			    PERMUTE(0, 1, 3, 2), COPY);
	x = rfl_matmul(b, rfl_chain(b, part[0], COPY), part[1], false, false);
	bias = rfl_chain(b, table, GATHER(s.dim[1], s.dim[1], heads), PERMUTE(2, 0, 1), COPY);
	x = rfl_add(b, x, bias, RFL_OUT_OF_PLACE);
	x = rfl_zoo_attention_values(b, x, part[2], &args);
	x = rfl_chain(b, x, PERMUTE(0, 2, 1, 3), COPY, LIKE(&s), FC("merge", features));
	rfl_net_leave(b);
	return x;
}

/* A transformer layer on {windows, tokens, features}. */
static int transformer(struct rfl_net_builder *b, int x, const struct layer *l)
{
	const struct rfl_node drop = DEPTH("stochastic_dropout", l->drop);
	int y;

	y = rfl_zoo_layer_norm(b, x, "attn_layer.0", eps, l->form);
	y = attention(b, y, l->form);
	y = rfl_chain(b, y, DROPOUT("attn_layer.2", 0.0), drop);
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	y = rfl_zoo_layer_norm(b, x, "mlp_layer.0", eps, l->form);
	y = rfl_chain(b, y, FC("mlp_layer.1", 4 * l->channels), GELU("mlp_layer.2"),
		      FC("mlp_layer.3", l->channels), DROPOUT("mlp_layer.4", 0.0), drop);
	return rfl_add(b, x, y, RFL_OUT_OF_PLACE);
}

/* Partition {features, height, width} into windows of p x p pixels; on the grid, the pixels at the
 * same position in their windows form a sequence. */
static int partition_attention(struct rfl_net_builder *b, int x, bool grid, const struct layer *l)
{
	const struct rfl_shape s = rfl_net_shape(b, x);
	const int64_t n = s.dim[1] / WINDOW, p = grid ? n : WINDOW, g = grid ? WINDOW : n;
	const struct rfl_node copy = COPY_IF(g > 1 && p > 1), swap = PERMUTE(1, 0, 2);
	const struct rfl_node swap_grid = grid ? swap : (struct rfl_node){ 0 };

	rfl_net_enter(b, grid ? "grid_attention" : "window_attention");
	if (s.ndim == 3 && s.dim[1] % WINDOW != 0)
		return rfl_net_refuse(b,
				      "cannot cut a map of %lldx%lld into windows of %d; use "
				      "images with a multiple of %d pixels",
				      (long long)s.dim[1], (long long)s.dim[2], WINDOW, IMAGE_STEP);
	x = rfl_chain(b, x, RESHAPE(s.dim[0], g, p, g, p), PERMUTE(1, 3, 2, 4, 0), copy,
		      RESHAPE(g * g, p * p, s.dim[0]), swap_grid);
	x = transformer(b, x, l);
	x = rfl_chain(b, x, swap_grid, RESHAPE(g, g, p, p, s.dim[0]), PERMUTE(4, 0, 2, 1, 3), copy,
		      LIKE(&s));
	rfl_net_leave(b);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct maxvit *net = sizes->config;
	const enum rfl_zoo_form form = rfl_zoo_form_of(b, sizes->attention);
	int64_t total = 0, before = 0;

	b->eps = 1e-3;
	b->momentum = 0.01;
	x = rfl_chain(b, x, CONV_NORM_GELU("stem.0", net->stem, 3, 2, 1),
		      BIASED("stem.1.0", net->stem, 3, 1));
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

			rfl_net_enter_block(b, "blocks.%d.layers.%d.layers", stage, (int)i);
			x = bottleneck(b, x, &layer);
			x = partition_attention(b, x, false, &layer);
			x = partition_attention(b, x, true, &layer);
			rfl_net_leave(b);
		}
	}
	x = rfl_chain(b, x, AVERAGE("classifier.0", 1), FLATTEN("classifier.1"));
	x = rfl_zoo_layer_norm(b, x, "classifier.2", eps, form);
	return rfl_chain(b, x, FC("classifier.3", rfl_net_features(b, x)),
			 STEP(RFL_OP_TANH, "classifier.4"),
			 LINEAR("classifier.5", sizes->classes, .bias = false));
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
