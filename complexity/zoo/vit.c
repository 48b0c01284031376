/*
 * vit.c - Vision Transformer (Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021) as in
 * torchvision: a class token, learned positions, pre-norm.
 *
 * nn.MultiheadAttention works on {tokens, batch, features}: it copies its input into that order,
 * and copies the packed projection into separate tensors for queries, keys and values. If no
 * attention weights are requested, it calls the fused attention, which attention auto represents.
 */
#include "complexity/zoo/blocks.h"

struct vit {
	int64_t patch, layers, features, hidden, heads;
};

static const double eps = 1e-6;

static int self_attention(struct rfl_net_builder *b, int x, int64_t heads, bool fused,
			  enum rfl_zoo_form form)
{
	const struct rfl_zoo_attention_args args = { fused, form, .scale_query = true };
	const struct rfl_shape s = rfl_net_shape(b, x);
	int part[3];

	x = rfl_chain(b, x, COPY,
		      LINEAR("self_attention", 3 * s.dim[1], .bias = true, .in_proj = true));
	rfl_net_enter(b, "self_attention");
	x = rfl_chain(b, x, RESHAPE(s.dim[0], 3, s.dim[1]), PERMUTE(1, 0, 2), COPY);
	for (int i = 0; i < 3; i++) {
		part[i] = rfl_chain(b, x, SLICE(0, i, 1, 1), LIKE(&s));
		part[i] = rfl_zoo_split_heads(b, part[i], heads);
	}
	x = rfl_zoo_attend(b, part[0], part[1], part[2], &args);
	x = rfl_zoo_merge_heads(b, x, !fused);
	rfl_net_leave(b);
	return rfl_chain(b, x, LINEAR("self_attention", s.dim[1], .bias = true, .out_proj = true));
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct vit *v = sizes->config;
	const bool fused =
		sizes->attention == RFL_ATTENTION_AUTO || sizes->attention == RFL_ATTENTION_SDPA;
	const enum rfl_zoo_form form = rfl_zoo_form_of(b, sizes->attention);
	const long long size = sizes->image_size, patch = v->patch;
	struct rfl_shape s;
	int part[2], y;

	if (size % patch != 0)
		return rfl_net_refuse(b,
				      "conv_proj (Conv2d): cannot cut an image of %lldx%lld into "
				      "patches of %lldx%lld; use a multiple of %lld",
				      size, size, patch, patch, patch);
	part[0] = rfl_parameter(b, "class_token", RFL_DIMS(1, 1, v->features), 1);
	x = rfl_chain(b, x, PATCHES("conv_proj", v->features, patch));
	s = rfl_net_shape(b, x);
	part[1] = rfl_chain(b, x, RESHAPE(v->features, s.dim[1] * s.dim[2]), PERMUTE(1, 0));
	x = rfl_concat(b, part, 2, 0);
	rfl_net_enter(b, "encoder");
	y = rfl_parameter(b, "pos_embedding", RFL_DIMS(1, rfl_net_channels(b, x), v->features), 1);
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	x = rfl_chain(b, x, DROPOUT("dropout", 0.0));
	for (int64_t i = 0; i < v->layers; i++) {
		rfl_net_enter_block(b, "layers.encoder_layer_%d", (int)i);
		y = rfl_zoo_layer_norm(b, x, "ln_1", eps, form);
		y = self_attention(b, y, v->heads, fused, form);
		x = rfl_add(b, rfl_chain(b, y, DROPOUT("dropout", 0.0)), x, RFL_OUT_OF_PLACE);
		y = rfl_zoo_layer_norm(b, x, "ln_2", eps, form);
		y = rfl_chain(b, y, FC("mlp.0", v->hidden), GELU("mlp.1"), DROPOUT("mlp.2", 0.0),
			      FC("mlp.3", v->features), DROPOUT("mlp.4", 0.0));
		x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
		rfl_net_leave(b);
	}
	x = rfl_zoo_layer_norm(b, x, "ln", eps, form);
	rfl_net_leave(b);
	return rfl_chain(b, x, SLICE(0, 0, 1, 1), RESHAPE(v->features),
			 FC("heads.head", sizes->classes));
}

#define VIT(name_, title_, ...)                                                                \
	RFL_ZOO_IMAGENET("vit", name_, title_, "vision transformer (Dosovitskiy et al. 2021)", \
			 224, &(const struct vit){ __VA_ARGS__ })

static const struct rfl_zoo_entry entries[] = {
	VIT("vit_b_16", "ViT-B/16", 16, 12, 768, 3072, 12),
	VIT("vit_b_32", "ViT-B/32", 32, 12, 768, 3072, 12),
	VIT("vit_l_16", "ViT-L/16", 16, 24, 1024, 4096, 16),
	VIT("vit_l_32", "ViT-L/32", 32, 24, 1024, 4096, 16),
	VIT("vit_h_14", "ViT-H/14", 14, 32, 1280, 5120, 16),
};

RFL_ZOO_FAMILY(vit, entries, build);
