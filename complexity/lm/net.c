/*
 * net.c - the network of a step of a language model, for engines. Modules have the names of Hugging
 * Face's implementations.
 */
#include "complexity/lm.h"

#include "complexity/zoo/blocks.h"

static const double eps = 1e-6, theta = 10000;

struct lm_net {
	struct rfl_net_builder *b;
	const struct rfl_lm *lm;
	int64_t tokens;
};

static bool has(const struct lm_net *n, unsigned trait)
{
	return (n->lm->traits & trait) != 0;
}

static int norm(const struct lm_net *n, int x, const char *name)
{
	const enum rfl_op op = has(n, RFL_LM_LAYER_NORM) ? RFL_OP_LAYER_NORM : RFL_OP_RMS_NORM;

	return rfl_zoo_norm(n->b, op, x, name, eps, RFL_ZOO_WHOLE);
}

static int linear(const struct lm_net *n, int x, const char *name, int64_t out, unsigned bias)
{
	return rfl_chain(n->b, x, LINEAR(name, out, .bias = has(n, bias)));
}

/* {tokens, heads x features} as {heads, tokens, features}, normalised and rotated. */
static int heads(const struct lm_net *n, int x, int64_t count, const char *norm_name, bool rotates)
{
	x = rfl_chain(n->b, x, RESHAPE(n->tokens, count, n->lm->head_dim));
	if (norm_name && has(n, RFL_LM_QK_NORM))
		x = norm(n, x, norm_name);
	x = rfl_chain(n->b, x, PERMUTE(1, 0, 2));
	if (!rotates || n->lm->positions)
		return x;
	return rfl_chain(n->b, x, LAYER(ROPE, NULL, .attr.rope = { theta, .halves = true }));
}

static int attention(const struct lm_net *n, int x, int64_t window)
{
	const struct rfl_lm *lm = n->lm;
	int q, k, v;

	rfl_net_enter(n->b, "self_attn");
	q = linear(n, x, "q_proj", lm->heads * lm->head_dim, RFL_LM_QKV_BIAS);
	k = linear(n, x, "k_proj", lm->kv_heads * lm->head_dim, RFL_LM_QKV_BIAS);
	v = linear(n, x, "v_proj", lm->kv_heads * lm->head_dim, RFL_LM_QKV_BIAS);
	q = heads(n, q, lm->heads, "q_norm", true);
	k = heads(n, k, lm->kv_heads, "k_norm", true);
	v = heads(n, v, lm->kv_heads, NULL, false);
	x = rfl_net_append(
		n->b,
		&(const struct rfl_node){ .op = RFL_OP_SDPA,
					  .ninputs = 3,
					  .input = (const int[]){ q, k, v },
					  .attr.sdpa = { .causal = true, .window = window } },
		NULL);
	x = rfl_zoo_merge_heads(n->b, x, false);
	x = linear(n, x, "o_proj", lm->hidden, RFL_LM_OUTPUT_BIAS);
	rfl_net_leave(n->b);
	return x;
}

static int mlp(const struct lm_net *n, int x)
{
	const bool gelu = has(n, RFL_LM_GELU), plain = has(n, RFL_LM_PLAIN_MLP);
	const struct rfl_node act = { .op = gelu ? RFL_OP_GELU : RFL_OP_SILU,
				      .name = "act_fn",
				      .attr.gelu.tanh = gelu };
	int gate;

	rfl_net_enter(n->b, "mlp");
	gate = linear(n, x, plain ? "up_proj" : "gate_proj", n->lm->ffn, RFL_LM_MLP_BIAS);
	gate = rfl_net_chain(n->b, gate, &act, 1);
	if (!plain)
		gate = rfl_binary(n->b, RFL_OP_MUL, gate,
				  linear(n, x, "up_proj", n->lm->ffn, RFL_LM_MLP_BIAS),
				  RFL_OUT_OF_PLACE);
	x = linear(n, gate, "down_proj", n->lm->hidden, RFL_LM_MLP_BIAS);
	rfl_net_leave(n->b);
	return x;
}

static int add(const struct lm_net *n, int x, int y)
{
	return rfl_add(n->b, x, y, RFL_OUT_OF_PLACE);
}

static int layer(const struct lm_net *n, int x, int64_t window)
{
	const bool post = has(n, RFL_LM_POST_NORMS);
	int before = norm(n, x, "input_layernorm"), y = attention(n, before, window);

	if (has(n, RFL_LM_PARALLEL))
		return add(n, add(n, x, y), mlp(n, before));
	if (post)
		y = norm(n, y, "post_attention_layernorm");
	x = add(n, x, y);
	y = mlp(n, norm(n, x, post ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
	if (post)
		y = norm(n, y, "post_feedforward_layernorm");
	return add(n, x, y);
}

/* The layers with a window are spread evenly over the others. */
static int64_t window_of(const struct rfl_lm *lm, int64_t i)
{
	const bool has_one =
		(i + 1) * lm->window_layers / lm->layers > i * lm->window_layers / lm->layers;

	return has_one ? lm->window : 0;
}

static int build(const struct lm_net *n)
{
	const struct rfl_lm *lm = n->lm;
	struct rfl_net_builder *b = n->b;
	int x = rfl_net_tokens(b, n->tokens), embedding, positions;

	rfl_net_enter(b, "model");
	x = embedding = rfl_chain(b, x, EMBEDDING("embed_tokens", lm->vocab, lm->hidden));
	if (lm->positions) {
		positions = rfl_constant(b, "position_ids", RFL_DIMS(n->tokens));
		positions = rfl_chain(b, positions,
				      EMBEDDING("embed_positions", lm->positions, lm->hidden));
		x = add(n, x, positions);
	}
	for (int64_t i = 0; i < lm->layers; i++) {
		rfl_net_enter_block(b, "layers.%d", (int)i);
		x = layer(n, x, window_of(lm, i));
		rfl_net_leave(b);
	}
	x = norm(n, x, "norm");
	rfl_net_leave(b);
	if (n->tokens > 1)
		x = rfl_chain(b, x, SLICE(0, n->tokens - 1, 1, 1));
	return rfl_chain(b, x,
			 LAYER(LINEAR, "lm_head", .tied = has(n, RFL_LM_TIED) ? embedding : 0,
			       .attr.linear = { .out_features = lm->vocab,
						.bias = has(n, RFL_LM_HEAD_BIAS) }));
}

enum rfl_rc rfl_lm_net(const struct rfl_lm *lm, int64_t tokens, struct rfl_net **ret,
		       struct rfl_err *err)
{
	const char *why = lm->experts                 ? "experts"
			  : lm->kv_lora               ? "latent attention"
			  : lm->traits & RFL_LM_SINKS ? "attention sinks"
						      : NULL;
	struct lm_net n = { .lm = lm, .tokens = tokens };

	if (why)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"%s: models with %s are counted (roofline complexity --phase), but "
				"no engine runs them",
				lm->name, why);
	n.b = rfl_net_builder_new(lm->name, "lm");
	return rfl_net_finish(n.b, build(&n), ret, err);
}
