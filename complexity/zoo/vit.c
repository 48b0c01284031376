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

static int self_attention(struct rfl_net_builder *b, int x, int64_t heads,
			  enum rfl_attention setting)
{
	const struct rfl_zoo_attention_args args = {
		.fused = setting == RFL_ATTENTION_SDPA,
		.softmax = rfl_zoo_form_of(setting),
		.scale_query = true,
	};
	struct rfl_shape s = rfl_net_shape(b, x);
	int part[3];

	x = rfl_contiguous(b, x);
	x = rfl_net_linear(b, x, "self_attention", 3 * s.dim[1], .bias = true, .in_proj = true);
	rfl_net_enter(b, "self_attention");
	x = rfl_reshape(b, x, RFL_DIMS(s.dim[0], 3, s.dim[1]));
	x = rfl_permute(b, x, RFL_DIMS(1, 0, 2));
	x = rfl_contiguous(b, x);
	for (int i = 0; i < 3; i++) {
		part[i] = rfl_reshape(b, rfl_slice(b, x, 0, i, 1, 1), &s);
		part[i] = rfl_zoo_split_heads(b, part[i], heads);
	}
	x = rfl_zoo_attend(b, part[0], part[1], part[2], &args);
	x = rfl_zoo_merge_heads(b, x, !args.fused);
	rfl_net_leave(b);
	return rfl_net_linear(b, x, "self_attention", s.dim[1], .bias = true, .out_proj = true);
}

static int encoder_layer(struct rfl_net_builder *b, int x, const struct vit *v,
			 enum rfl_attention setting)
{
	enum rfl_zoo_form norm = rfl_zoo_form_of(setting);
	int y;

	y = rfl_zoo_layer_norm(b, x, "ln_1", eps, norm);
	y = self_attention(b, y, v->heads, setting);
	y = rfl_dropout(b, y, "dropout", 0.0);
	x = rfl_add(b, y, x, RFL_OUT_OF_PLACE);
	y = rfl_zoo_layer_norm(b, x, "ln_2", eps, norm);
	y = rfl_linear(b, y, "mlp.0", v->hidden, true);
	y = rfl_gelu(b, y, "mlp.1", false);
	y = rfl_dropout(b, y, "mlp.2", 0.0);
	y = rfl_linear(b, y, "mlp.3", v->features, true);
	y = rfl_dropout(b, y, "mlp.4", 0.0);
	return rfl_add(b, x, y, RFL_OUT_OF_PLACE);
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct vit *v = sizes->config;
	enum rfl_attention setting =
		sizes->attention == RFL_ATTENTION_AUTO ? RFL_ATTENTION_SDPA : sizes->attention;
	int part[2];
	struct rfl_shape s;

	if (setting == RFL_ATTENTION_COMPOSED)
		b->loss = RFL_LOSS_COMPOSED;
	if (sizes->image_size % v->patch != 0)
		return rfl_net_refuse(b,
				      "conv_proj (Conv2d): cannot cut an image of %lldx%lld into "
				      "patches of %lldx%lld; use a multiple of %lld",
				      (long long)sizes->image_size, (long long)sizes->image_size,
				      (long long)v->patch, (long long)v->patch,
				      (long long)v->patch);
	part[0] = rfl_parameter(b, "class_token", RFL_DIMS(1, 1, v->features), 1);
	x = rfl_conv2d(b, x, "conv_proj", v->features, .kernel = v->patch, .stride = v->patch,
		       .bias = true);
	s = rfl_net_shape(b, x);
	x = rfl_reshape(b, x, RFL_DIMS(v->features, s.dim[1] * s.dim[2]));
	part[1] = rfl_permute(b, x, RFL_DIMS(1, 0));
	x = rfl_concat(b, part, 2, 0);
	rfl_net_enter(b, "encoder");
	s = rfl_net_shape(b, x);
	part[1] = rfl_parameter(b, "pos_embedding", RFL_DIMS(1, s.dim[0], v->features), 1);
	x = rfl_add(b, x, part[1], RFL_OUT_OF_PLACE);
	x = rfl_dropout(b, x, "dropout", 0.0);
	for (int64_t i = 0; i < v->layers; i++) {
		rfl_net_enter_block(b, "layers.encoder_layer_%d", (int)i);
		x = encoder_layer(b, x, v, setting);
		rfl_net_leave(b);
	}
	x = rfl_zoo_layer_norm(b, x, "ln", eps, rfl_zoo_form_of(setting));
	rfl_net_leave(b);
	x = rfl_slice(b, x, 0, 0, 1, 1);
	x = rfl_reshape(b, x, RFL_DIMS(v->features));
	return rfl_linear(b, x, "heads.head", sizes->classes, true);
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
