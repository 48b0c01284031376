/*
 * gpt2.c - GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019) with
 * the names of its Hugging Face checkpoints: learned positions, biases, pre-norm, tanh GELU (one
 * operation here, several in the original code), a head tied to the embedding. Attention auto is
 * sdpa, as in transformers with PyTorch 2.
 */
#include "complexity/zoo/blocks.h"

struct gpt2 {
	int64_t layers, features, heads;
};

enum { MAX_POSITIONS = 1024 };

static const double eps = 1e-5, dropout = 0.1;
/* The weight is stored as {in, out}. */
#define CONV1D(name, out) LINEAR(name, out, .bias = true, .transposed = true)

static int attention(struct rfl_net_builder *b, int x, int64_t heads, bool fused,
		     enum rfl_zoo_form form)
{
	const struct rfl_zoo_attention_args args = {
		fused,          form,           .causal = true,     .copy_q = true,
		.copy_k = true, .copy_v = true, .dropout = dropout,
	};
	const int64_t features = rfl_net_features(b, x);
	int part[3];

	rfl_net_enter(b, "attn");
	x = rfl_chain(b, x, CONV1D("c_attn", 3 * features));
	for (int i = 0; i < 3; i++) {
		part[i] = rfl_chain(b, x, SLICE(1, i * features, features, 1));
		part[i] = rfl_zoo_split_heads(b, part[i], heads);
	}
	x = rfl_zoo_attend(b, part[0], part[1], part[2], &args);
	x = rfl_zoo_merge_heads(b, x, !fused);
	x = rfl_chain(b, x, CONV1D("c_proj", features), DROPOUT("resid_dropout", dropout));
	rfl_net_leave(b);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct gpt2 *g = sizes->config;
	const bool fused =
		sizes->attention == RFL_ATTENTION_AUTO || sizes->attention == RFL_ATTENTION_SDPA;
	const enum rfl_zoo_form form = rfl_zoo_form_of(b, sizes->attention);
	const struct rfl_node gelu = LAYER(GELU, "mlp.act", .attr.gelu.tanh = true);
	int y, tokens;

	rfl_net_enter(b, "transformer");
	tokens = rfl_chain(b, x, EMBEDDING("wte", sizes->classes, g->features));
	/* The positions 0, 1, 2, ..., and so their rows, are the same for every sample. */
	y = rfl_constant(b, "position_ids", RFL_DIMS(sizes->context_length));
	y = rfl_chain(b, y, EMBEDDING("wpe", MAX_POSITIONS, g->features));
	x = rfl_add(b, tokens, y, RFL_OUT_OF_PLACE);
	x = rfl_chain(b, x, DROPOUT("drop", dropout));
	for (int64_t i = 0; i < g->layers; i++) {
		rfl_net_enter_block(b, "h.%d", (int)i);
		y = rfl_zoo_layer_norm(b, x, "ln_1", eps, form);
		x = rfl_add(b, attention(b, y, g->heads, fused, form), x, RFL_OUT_OF_PLACE);
		y = rfl_zoo_layer_norm(b, x, "ln_2", eps, form);
		y = rfl_chain(b, y, CONV1D("mlp.c_fc", 4 * g->features), gelu,
			      CONV1D("mlp.c_proj", g->features), DROPOUT("mlp.dropout", dropout));
		x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
		rfl_net_leave(b);
	}
	x = rfl_zoo_layer_norm(b, x, "ln_f", eps, form);
	rfl_net_leave(b);
	return rfl_chain(b, x,
			 LAYER(LINEAR, "lm_head", .tied = tokens,
			       .attr.linear.out_features = sizes->classes));
}

#define GPT2(name_, alias_, title_, layers_, features_, heads_)                                  \
	RFL_ZOO_TEXT("gpt2", name_, title_,                                                      \
		     #layers_ " layers of " #features_ " features (Radford et al. 2019)", 50257, \
		     MAX_POSITIONS, MAX_POSITIONS, RFL_ZOO_ALIASES(alias_),                      \
		     &(const struct gpt2){ layers_, features_, heads_ })

static const struct rfl_zoo_entry entries[] = {
	GPT2("gpt2", "gpt2_small", "GPT-2", 12, 768, 12),
	GPT2("gpt2_medium", "gpt2-medium", "GPT-2 medium", 24, 1024, 16),
	GPT2("gpt2_large", "gpt2-large", "GPT-2 large", 36, 1280, 20),
	GPT2("gpt2_xl", "gpt2-xl", "GPT-2 XL", 48, 1600, 25),
};

RFL_ZOO_FAMILY(gpt2, entries, build);
