/*
 * decoder.c - h = x + attention(norm(x)), y = h + w2(silu(w1 n) * w3 n) with n = norm(h).
 *
 * In steps as the CS336 course's own code runs in eager PyTorch: the rotated queries and keys are
 * fresh tensors in the order of the heads, the values are copied into that order for their product,
 * and its result is copied back into the order of the tokens.
 */
#include "complexity/zoo/decoder.h"

enum { QUERY, KEY, VALUE, OUTPUT, PROJECTIONS };

static const double eps = 1e-5, theta = 10000.0;

/* A layer as it is being built: which nodes own its parameters. */
struct layer {
	const struct rfl_zoo_decoder *net;
	const struct rfl_zoo_decoder_style *style;
	int cos, sin; /* tables of {tokens, features / 2}; of rotation in steps only */
	int projection[PROJECTIONS];
	int w1, w2, w3;
	struct rfl_zoo_owners norms; /* of attention, of feed-forward */
};

static void angles(struct rfl_net_builder *b, int64_t tokens, struct layer *l)
{
	int64_t half = l->net->features / l->net->heads / 2;

	l->cos = rfl_constant(b, "cos", RFL_DIMS(tokens, half));
	l->sin = rfl_constant(b, "sin", RFL_DIMS(tokens, half));
}

static int mul(struct rfl_net_builder *b, int x, int y)
{
	return rfl_binary(b, RFL_OP_MUL, x, y, RFL_OUT_OF_PLACE);
}

/* (e, o) -> (e cos - o sin, e sin + o cos) of neighbours, stacked into a fresh tensor. */
static int rotate(struct rfl_net_builder *b, int x, const struct layer *l)
{
	struct rfl_shape s = rfl_net_shape(b, x);
	const struct rfl_shape column = { .ndim = 4,
					  .dim = { s.dim[0], s.dim[1], s.dim[2] / 2, 1 } };
	int even, odd, pair[2];

	if (l->style->rope == RFL_ZOO_WHOLE)
		return rfl_rope(b, x, theta);
	even = rfl_slice(b, x, 2, 0, s.dim[2] / 2, 2);
	odd = rfl_slice(b, x, 2, 1, s.dim[2] / 2, 2);
	pair[0] = mul(b, even, l->cos);
	pair[0] = rfl_binary(b, RFL_OP_SUB, pair[0], mul(b, odd, l->sin), RFL_OUT_OF_PLACE);
	pair[1] = mul(b, even, l->sin);
	pair[1] = rfl_add(b, pair[1], mul(b, odd, l->cos), RFL_OUT_OF_PLACE);
	for (int i = 0; i < 2; i++)
		pair[i] = rfl_reshape(b, pair[i], &column);
	return rfl_reshape(b, rfl_concat(b, pair, 2, 3), &s);
}

static int attention(struct rfl_net_builder *b, int x, struct layer *l)
{
	const struct rfl_zoo_attention_args args = {
		.fused = l->style->fused,
		.softmax = l->style->softmax,
		.causal = true,
		.copy_v = true,
	};
	const char *const *name = l->net->names->projection;
	int64_t tokens = rfl_net_shape(b, x).dim[0];
	int head[PROJECTIONS];

	rfl_net_enter(b, "%s", l->net->names->attention);
	if (l->style->rope == RFL_ZOO_STEPS && !l->style->shared_rope)
		angles(b, tokens, l);
	for (int i = QUERY; i <= VALUE; i++) {
		l->projection[i] = rfl_linear(b, x, name[i], l->net->features, false);
		head[i] = rfl_zoo_split_heads(b, l->projection[i], l->net->heads);
	}
	head[QUERY] = rotate(b, head[QUERY], l);
	head[KEY] = rotate(b, head[KEY], l);
	x = rfl_zoo_attend(b, head[QUERY], head[KEY], head[VALUE], &args);
	x = rfl_zoo_merge_heads(b, x, !args.fused);
	x = l->projection[OUTPUT] = rfl_linear(b, x, name[OUTPUT], l->net->features, false);
	rfl_net_leave(b);
	return x;
}

static int silu(struct rfl_net_builder *b, int x, enum rfl_zoo_form form)
{
	if (form == RFL_ZOO_WHOLE)
		return rfl_unary(b, RFL_OP_SILU, x, NULL, RFL_OUT_OF_PLACE);
	return mul(b, x, rfl_unary(b, RFL_OP_SIGMOID, x, NULL, RFL_OUT_OF_PLACE));
}

static int feed_forward(struct rfl_net_builder *b, int x, struct layer *l)
{
	int gate;

	rfl_net_enter(b, "%s", l->net->names->feed_forward);
	l->w1 = rfl_linear(b, x, "w1", l->net->hidden, false);
	gate = silu(b, l->w1, l->style->silu);
	l->w3 = rfl_linear(b, x, "w3", l->net->hidden, false);
	x = l->w2 = rfl_linear(b, mul(b, gate, l->w3), "w2", l->net->features, false);
	rfl_net_leave(b);
	return x;
}

/* The state_dict lists modules in the order of their construction. */
static void put_in_order(struct rfl_net_builder *b, const struct layer *l)
{
	bool last = l->net->names->norms_last;
	struct rfl_zoo_owners order = { 0 };

	if (!last)
		rfl_zoo_own(&order, l->norms.node[0]);
	for (int i = QUERY; i <= OUTPUT; i++)
		rfl_zoo_own(&order, l->projection[i]);
	if (!last)
		rfl_zoo_own(&order, l->norms.node[1]);
	rfl_zoo_own(&order, l->w1);
	rfl_zoo_own(&order, l->w2);
	rfl_zoo_own(&order, l->w3);
	for (int i = 0; last && i < l->norms.n; i++)
		rfl_zoo_own(&order, l->norms.node[i]);
	rfl_net_state_dict_order(b, order.node, order.n);
}

static int layer(struct rfl_net_builder *b, int x, struct layer *l)
{
	const struct rfl_zoo_decoder_names *names = l->net->names;
	int y;

	l->norms.n = 0;
	y = rfl_zoo_rms_norm(b, x, names->attention_norm, eps, l->style->norm, &l->norms);
	x = rfl_add(b, x, attention(b, y, l), RFL_OUT_OF_PLACE);
	y = rfl_zoo_rms_norm(b, x, names->feed_forward_norm, eps, l->style->norm, &l->norms);
	x = rfl_add(b, x, feed_forward(b, y, l), RFL_OUT_OF_PLACE);
	put_in_order(b, l);
	return x;
}

static struct rfl_zoo_decoder_style style_of(const struct rfl_zoo_decoder *net,
					     enum rfl_attention attention)
{
	static const struct rfl_zoo_decoder_style steps = RFL_ZOO_DECODER_STEPS;
	struct rfl_zoo_decoder_style style = { .fused = attention == RFL_ATTENTION_SDPA };

	if (attention == RFL_ATTENTION_AUTO)
		return net->style;
	if (attention == RFL_ATTENTION_COMPOSED)
		style = steps;
	style.shared_rope = net->style.shared_rope;
	return style;
}

int rfl_zoo_decoder_build(struct rfl_net_builder *b, const void *config,
			  const struct rfl_zoo_sizes *sizes)
{
	const struct rfl_zoo_decoder *net = config;
	const struct rfl_zoo_decoder_style style = style_of(net, sizes->attention);
	struct layer l = { .net = net, .style = &style };
	int x = rfl_zoo_tokens(b, sizes);

	rfl_net_loss(b, style.loss);
	x = rfl_embedding(b, x, net->names->embedding, sizes->classes, net->features);
	if (style.rope == RFL_ZOO_STEPS && style.shared_rope)
		angles(b, sizes->context_length, &l);
	for (int64_t i = 0; i < net->layers; i++) {
		rfl_net_enter(b, "layers.%d", (int)i);
		rfl_net_block_begin(b);
		x = layer(b, x, &l);
		rfl_net_block_end(b);
		rfl_net_leave(b);
	}
	x = rfl_zoo_rms_norm(b, x, net->names->final_norm, eps, style.norm, NULL);
	return rfl_linear(b, x, net->names->head, sizes->classes, false);
}
