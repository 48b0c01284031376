/*
 * single_attention.c - one causal attention, softmax(q k^T / sqrt(N)) v, of queries, keys and
 * values with N features and without heads, for benchmarks as in CS336 assignment 2. The three are
 * inputs that need gradients; there are no parameters, and the loss is the mean of the output. A
 * name "attention_d64" determines N, so that the family has a model for every N.
 */
#include "complexity/zoo/blocks.h"

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct rfl_zoo_attention_args args = {
		.fused = sizes->attention == RFL_ATTENTION_SDPA,
		.softmax = rfl_zoo_form_of(b, sizes->attention),
		.causal = true,
	};
	const int64_t tokens = sizes->context_length, features = sizes->classes;
	int k, v;

	k = rfl_net_sequence(b, "k", tokens, features);
	v = rfl_net_sequence(b, "v", tokens, features);
	b->loss = RFL_LOSS_MEAN;
	return rfl_zoo_attend(b, x, k, v, &args);
}

static const struct rfl_zoo_entry models[] = {
	{ .model = { .name = "attention_d<N>",
		     .title = "Attention",
		     .family = "attention",
		     .summary =
			     "one causal attention of N features without heads; N is part of the "
			     "name: attention_d64",
		     .classes = 64,
		     .context_length = 256,
		     .numbered = true } },
};

RFL_ZOO_FAMILY(attention, models, build);
