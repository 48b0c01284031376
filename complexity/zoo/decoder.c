/*
 * decoder.c - language models of pre-norm blocks with RMS norm, rotary position embedding, causal
 * attention and SwiGLU, without biases, with an untied head and a context of any length:
 *
 *	h = x + attention(norm(x)), y = h + w2(silu(w1 n) * w3 n) with n = norm(h)
 *
 * The families are the models of Stanford's CS336, "Language Modeling from Scratch", and Llama 2
 * (Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023) with the names of
 * Meta's original checkpoint and its rotary embedding of adjacent features.
 *
 * The steps are those of the CS336 course code in eager PyTorch: the rotated queries and keys are
 * new tensors ordered by head, the values are copied into that order for their product, and the
 * result is copied back into token order.
 */
#include "complexity/zoo/blocks.h"

/* Module names in the published code. */
struct names {
	const char *embedding, *final_norm, *head;
	/* within a layer */
	const char *attention, *feed_forward;
	const char *attention_norm, *feed_forward_norm;
	/* within the attention of a layer: query, key, value, output */
	const char *projection[4];
	const char *const *created; /* order of a layer's state_dict, ended by NULL */
};

/* Forms of the steps in the published code. */
struct style {
	bool fused; /* use fused attention */
	enum rfl_zoo_form norm, rope, softmax, silu;
	enum rfl_loss loss;
	bool shared_rope; /* all layers share one table of angles */
};

struct decoder {
	int64_t layers, features, hidden, heads;
	const struct names *names;
	const struct style *style; /* for attention auto */
};

static const struct style in_steps = {
	.norm = RFL_ZOO_STEPS,
	.rope = RFL_ZOO_STEPS,
	.softmax = RFL_ZOO_STEPS,
	.silu = RFL_ZOO_STEPS,
	.loss = RFL_LOSS_COMPOSED,
	.shared_rope = true,
};

enum { QUERY, KEY, VALUE, OUTPUT };

static const double eps = 1e-5, theta = 10000.0;

/* A layer under construction. */
struct layer {
	const struct decoder *net;
	struct style style;
	int cos, sin; /* tables of {tokens, features / 2}, only for a rotation in steps */
};

static void angles(struct rfl_net_builder *b, int64_t tokens, struct layer *l)
{
	int64_t half = l->net->features / l->net->heads / 2;

	l->cos = rfl_constant(b, "cos", RFL_DIMS(tokens, half));
	l->sin = rfl_constant(b, "sin", RFL_DIMS(tokens, half));
}

static int linear(struct rfl_net_builder *b, int x, const char *name, int64_t out)
{
	return rfl_chain(b, x, LINEAR(name, out, .bias = false));
}

static int mul(struct rfl_net_builder *b, int x, int y)
{
	return rfl_binary(b, RFL_OP_MUL, x, y, RFL_OUT_OF_PLACE);
}

/* Rotate adjacent features, (e, o) -> (e cos - o sin, e sin + o cos), into a new tensor. */
static int rotate(struct rfl_net_builder *b, int x, const struct layer *l)
{
	const struct rfl_shape s = rfl_net_shape(b, x);
	const struct rfl_node column = RESHAPE(s.dim[0], s.dim[1], s.dim[2] / 2, 1);
	int even, odd, pair[2];

	if (l->style.rope == RFL_ZOO_WHOLE)
		return rfl_chain(b, x, LAYER(ROPE, NULL, .attr.rope = { .theta = theta }));
	even = rfl_chain(b, x, SLICE(2, 0, s.dim[2] / 2, 2));
	odd = rfl_chain(b, x, SLICE(2, 1, s.dim[2] / 2, 2));
	pair[0] = mul(b, even, l->cos);
	pair[0] = rfl_binary(b, RFL_OP_SUB, pair[0], mul(b, odd, l->sin), RFL_OUT_OF_PLACE);
	pair[1] = mul(b, even, l->sin);
	pair[1] = rfl_add(b, pair[1], mul(b, odd, l->cos), RFL_OUT_OF_PLACE);
	for (int i = 0; i < 2; i++)
		pair[i] = rfl_chain(b, pair[i], column);
	return rfl_chain(b, rfl_concat(b, pair, 2, 3), LIKE(&s));
}

static int attention(struct rfl_net_builder *b, int x, struct layer *l)
{
	const struct rfl_zoo_attention_args args = {
		l->style.fused,
		l->style.softmax,
		.causal = true,
		.copy_v = true,
	};
	const char *const *name = l->net->names->projection;
	int head[3];

	rfl_net_enter(b, "%s", l->net->names->attention);
	if (l->style.rope == RFL_ZOO_STEPS && !l->style.shared_rope)
		angles(b, rfl_net_shape(b, x).dim[0], l);
	for (int i = QUERY; i <= VALUE; i++) {
		head[i] = linear(b, x, name[i], l->net->features);
		head[i] = rfl_zoo_split_heads(b, head[i], l->net->heads);
	}
	head[QUERY] = rotate(b, head[QUERY], l);
	head[KEY] = rotate(b, head[KEY], l);
	x = rfl_zoo_attend(b, head[QUERY], head[KEY], head[VALUE], &args);
	x = rfl_zoo_merge_heads(b, x, !args.fused);
	x = linear(b, x, name[OUTPUT], l->net->features);
	rfl_net_leave(b);
	return x;
}

static int feed_forward(struct rfl_net_builder *b, int x, const struct layer *l)
{
	int gate;

	rfl_net_enter(b, "%s", l->net->names->feed_forward);
	gate = linear(b, x, "w1", l->net->hidden);
	if (l->style.silu == RFL_ZOO_WHOLE)
		gate = rfl_chain(b, gate, STEP(RFL_OP_SILU, NULL));
	else
		gate = mul(b, gate, rfl_chain(b, gate, STEP(RFL_OP_SIGMOID, NULL)));
	x = mul(b, gate, linear(b, x, "w3", l->net->hidden));
	x = linear(b, x, "w2", l->net->features);
	rfl_net_leave(b);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct decoder *net = sizes->config;
	const struct names *names = net->names;
	struct layer l = { .net = net, .style = *net->style };
	enum rfl_zoo_form norm;
	int y;

	if (sizes->attention == RFL_ATTENTION_COMPOSED)
		l.style = in_steps;
	else if (sizes->attention != RFL_ATTENTION_AUTO)
		l.style = (struct style){ .fused = sizes->attention == RFL_ATTENTION_SDPA };
	l.style.shared_rope = net->style->shared_rope;
	norm = l.style.norm;
	b->loss = l.style.loss;
	x = rfl_chain(b, x, EMBEDDING(names->embedding, sizes->classes, net->features));
	if (l.style.rope == RFL_ZOO_STEPS && l.style.shared_rope)
		angles(b, sizes->context_length, &l);
	for (int64_t i = 0; i < net->layers; i++) {
		rfl_net_enter_block(b, "layers.%d", (int)i);
		y = rfl_zoo_norm(b, RFL_OP_RMS_NORM, x, names->attention_norm, eps, norm);
		x = rfl_add(b, x, attention(b, y, &l), RFL_OUT_OF_PLACE);
		y = rfl_zoo_norm(b, RFL_OP_RMS_NORM, x, names->feed_forward_norm, eps, norm);
		x = rfl_add(b, x, feed_forward(b, y, &l), RFL_OUT_OF_PLACE);
		rfl_zoo_state_dict_order(b, names->created);
		rfl_net_leave(b);
	}
	x = rfl_zoo_norm(b, RFL_OP_RMS_NORM, x, names->final_norm, eps, norm);
	return linear(b, x, names->head, sizes->classes);
}

/* Assignment 2 has changed its sizes: the "xl" of 2026 is the "2.7B" of 2025, and neither has 2.7
 * billion parameters, because a SwiGLU of d_ff = 4 d has three matrices instead of the two of the
 * older feed-forward. So a name includes the year if the size depends on it. */
static const struct names cs336_names = {
	.embedding = "token_embeddings",
	.final_norm = "ln_final",
	.head = "lm_head",
	.attention = "attn",
	.feed_forward = "ffn",
	.attention_norm = "ln1",
	.feed_forward_norm = "ln2",
	.projection = { "q_proj", "k_proj", "v_proj", "output_proj" },
	.created =
		(const char *const[]){ "ln1", "attn", "ln2", "ffn.w1", "ffn.w2", "ffn.w3", NULL },
};

#define CS336(name_, title_, summary_, context_, layers_, features_, hidden_, heads_, ...)       \
	RFL_ZOO_TEXT("cs336", name_, title_, summary_, 10000, context_, 0,                       \
		     RFL_ZOO_ALIASES(__VA_ARGS__),                                               \
		     &(const struct decoder){ layers_, features_, hidden_, heads_, &cs336_names, \
					      &in_steps })

static const struct rfl_zoo_entry cs336_models[] = {
	RFL_ZOO_TEXT("cs336", "tiny_lm", "Tiny LM",
		     "2 layers of 64 features, for tests; softmax and SiLU are one operation each",
		     256, 32, 0, NULL,
		     &(const struct decoder){ 2, 64, 192, 4, &cs336_names,
					      &(const struct style){ .norm = RFL_ZOO_STEPS,
								     .rope = RFL_ZOO_STEPS } }),
	CS336("cs336_small", "CS336 small", "12 layers of 768 features (CS336 assignment 2)", 256,
	      12, 768, 3072, 12, "cs336-small", "S"),
	CS336("cs336_medium", "CS336 medium", "24 layers of 1024 features (CS336 assignment 2)",
	      256, 24, 1024, 4096, 16, "cs336-medium", "M"),
	CS336("cs336_large", "CS336 large", "36 layers of 1280 features (CS336 assignment 2)", 256,
	      36, 1280, 5120, 20, "cs336-large", "L"),
	CS336("cs336_xl_2025", "CS336 xl (2025)", "48 layers of 1600 features (the xl of 2025)",
	      256, 48, 1600, 6400, 25, "cs336-xl-2025", "XL"),
	CS336("cs336_2p7b_2025", "CS336 2.7B (2025)",
	      "32 layers of 2560 features (the 2.7B of 2025, the xl of 2026): 3.4 billion "
	      "parameters",
	      256, 32, 2560, 10240, 32, "cs336-2.7B", "2p7"),
	CS336("cs336_xl_2026", "CS336 xl (2026)",
	      "32 layers of 2560 features (the xl of 2026, the 2.7B of 2025)", 512, 32, 2560, 10240,
	      32, "cs336-xl-2026"),
	CS336("cs336_10b_2026", "CS336 10B (2026)",
	      "50 layers of 4608 features (the 10B of 2026): 12.8 billion parameters", 512, 50,
	      4608, 12288, 36, "cs336-10B-2026"),
};

RFL_ZOO_FAMILY(cs336, cs336_models, build);

static const struct names llama_names = {
	.embedding = "tok_embeddings",
	.final_norm = "norm",
	.head = "output",
	.attention = "attention",
	.feed_forward = "feed_forward",
	.attention_norm = "attention_norm",
	.feed_forward_norm = "ffn_norm",
	.projection = { "wq", "wk", "wv", "wo" },
	.created = (const char *const[]){ "attention.", "feed_forward.w1", "feed_forward.w2",
					  "feed_forward.w3", "attention_norm", "ffn_norm", NULL },
};

static const struct rfl_zoo_entry llama_models[] = {
	RFL_ZOO_TEXT("llama", "llama2_7b", "Llama 2 7B",
		     "32 layers of 4096 features (Touvron et al. 2023)", 32000, 4096, 0,
		     RFL_ZOO_ALIASES("llama-2-7b"),
		     &(const struct decoder){ 32, 4096, 11008, 32, &llama_names,
					      &(const struct style){ .norm = RFL_ZOO_STEPS } }),
};

RFL_ZOO_FAMILY(llama, llama_models, build);
