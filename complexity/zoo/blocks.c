/* blocks.c - building blocks shared by several families. */
#include "complexity/zoo/blocks.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

int rfl_zoo_squeeze_excitation(struct rfl_net_builder *b, int x, const char *path, int64_t channels,
			       struct rfl_node activation, enum rfl_op scale)
{
	int y;

	rfl_net_enter(b, "%s", path);
	y = rfl_chain(b, x, AVERAGE("avgpool", 1), BIASED("fc1", channels, 1, 1), activation,
		      BIASED("fc2", rfl_net_channels(b, x), 1, 1), STEP(scale, "scale_activation"));
	x = rfl_binary(b, RFL_OP_MUL, y, x, RFL_OUT_OF_PLACE);
	rfl_net_leave(b);
	return x;
}

int64_t rfl_zoo_divisible(double width, int64_t divisor)
{
	int64_t near = (int64_t)(width + (double)divisor / 2) / divisor * divisor;

	if (near < divisor)
		near = divisor;
	return (double)near < 0.9 * width ? near + divisor : near;
}

void rfl_zoo_state_dict_order(struct rfl_net_builder *b, const char *const *modules)
{
	const char *scope = b->scope[b->depth];
	const size_t length = strlen(scope), path = length + (length > 0);
	int first = b->nnodes, n = 0, *nodes;

	while (first > 0 && strncmp(b->nodes[first - 1].name, scope, length) == 0)
		first--;
	nodes = rfl_arena_array(b->arena, (size_t)(b->nnodes - first), sizeof(*nodes));
	for (; *modules; modules++)
		for (int i = first; i < b->nnodes; i++)
			if (b->nodes[i].nparams > 0 && b->nodes[i].name[length] &&
			    strncmp(b->nodes[i].name + path, *modules, strlen(*modules)) == 0)
				nodes[n++] = i;
	rfl_net_state_dict_order(b, nodes, n);
}

/* Transformers. Eager PyTorch copies the inputs of a batched matmul if their matrices are
 * not contiguous, as with heads split off the features of a token. (In a batch of one sample, some
 * of these copies are views.) */

enum rfl_zoo_form rfl_zoo_form_of(struct rfl_net_builder *b, enum rfl_attention attention)
{
	if (attention != RFL_ATTENTION_COMPOSED)
		return RFL_ZOO_WHOLE;
	b->loss = RFL_LOSS_COMPOSED;
	return RFL_ZOO_STEPS;
}

int rfl_zoo_norm(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name, double eps,
		 enum rfl_zoo_form form)
{
	const struct rfl_shape row = { .ndim = 1, .dim = { rfl_net_features(b, x) } };
	const int64_t last = rfl_net_shape(b, x).ndim - 1;
	int y;

	if (form == RFL_ZOO_WHOLE)
		return rfl_chain(b, x, { .op = op, .name = name, .attr.norm.eps = eps });
	rfl_net_enter(b, "%s", name);
	if (op == RFL_OP_LAYER_NORM) {
		y = rfl_chain(b, x, REDUCE(MEAN, last, 1, true));
		x = rfl_binary(b, RFL_OP_SUB, x, y, RFL_OUT_OF_PLACE);
	}
	y = rfl_chain(b, x, STEP(RFL_OP_SQUARE, NULL), REDUCE(MEAN, last, 1, true),
		      AFFINE(1.0, eps), STEP(RFL_OP_RSQRT, NULL));
	x = rfl_binary(b, RFL_OP_MUL, x, y, RFL_OUT_OF_PLACE);
	y = rfl_net_parameter(b, "weight", .stored = row, .norm_weight = true);
	x = rfl_binary(b, RFL_OP_MUL, x, y, RFL_OUT_OF_PLACE);
	if (op == RFL_OP_LAYER_NORM) {
		y = rfl_net_parameter(b, "bias", .stored = row, .norm_bias = true);
		x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	}
	rfl_net_leave(b);
	return x;
}

/* The steps are: the maximum of each row, x - max, exp, the sum of each row, exp / sum. */
static int softmax(struct rfl_net_builder *b, int x, enum rfl_zoo_form form)
{
	const int64_t last = rfl_net_shape(b, x).ndim - 1;
	int y;

	if (form == RFL_ZOO_WHOLE)
		return rfl_chain(b, x, STEP(RFL_OP_SOFTMAX, NULL));
	b->in_function = true;
	b->nfunctions++;
	y = rfl_chain(b, x, REDUCE(MAX, last, 1, true));
	x = rfl_binary(b, RFL_OP_SUB, x, y, RFL_OUT_OF_PLACE);
	x = rfl_chain(b, x, STEP(RFL_OP_EXP, NULL));
	y = rfl_chain(b, x, REDUCE(SUM, last, 1, true));
	x = rfl_binary(b, RFL_OP_DIV, x, y, RFL_OUT_OF_PLACE);
	b->in_function = false;
	return x;
}

int rfl_zoo_split_heads(struct rfl_net_builder *b, int x, int64_t heads)
{
	const struct rfl_shape s = rfl_net_shape(b, x);

	return rfl_chain(b, x, RESHAPE(s.dim[0], heads, s.dim[1] / heads), PERMUTE(1, 0, 2));
}

int rfl_zoo_merge_heads(struct rfl_net_builder *b, int x, bool copy)
{
	const struct rfl_shape s = rfl_net_shape(b, x);

	return rfl_chain(b, x, PERMUTE(1, 0, 2), COPY_IF(copy),
			 RESHAPE(s.dim[1], s.dim[0] * s.dim[2]));
}

int rfl_zoo_attention_scores(struct rfl_net_builder *b, int q, int k,
			     const struct rfl_zoo_attention_args *args)
{
	const double scale = 1.0 / sqrt((double)rfl_net_features(b, q));
	const struct rfl_node divide = AFFINE(scale, 0.0), none = { 0 };
	const int ndim = rfl_net_shape(b, k).ndim;
	struct rfl_node swap = { .op = RFL_OP_PERMUTE };
	int x;

	for (int i = 0; i < ndim; i++) /* the last two dimensions */
		swap.attr.permute.order[i] = i < ndim - 2 ? i : 2 * ndim - 3 - i;
	q = rfl_chain(b, q, args->scale_query ? divide : none, COPY_IF(args->copy_q));
	k = rfl_chain(b, k, swap, COPY_IF(args->copy_k));
	x = rfl_matmul(b, q, k, false, args->causal);
	return rfl_chain(b, x, args->scale_query ? none : divide,
			 STEP(args->causal ? RFL_OP_CAUSAL_MASK : 0, NULL));
}

int rfl_zoo_attention_values(struct rfl_net_builder *b, int scores, int v,
			     const struct rfl_zoo_attention_args *args)
{
	int x = softmax(b, scores, args->softmax);

	if (args->dropout > 0.0)
		x = rfl_chain(b, x, DROPOUT("attn_dropout", args->dropout));
	v = rfl_chain(b, v, COPY_IF(args->copy_v));
	return rfl_matmul(b, x, v, false, args->causal);
}

int rfl_zoo_attend(struct rfl_net_builder *b, int q, int k, int v,
		   const struct rfl_zoo_attention_args *args)
{
	if (args->fused)
		return rfl_sdpa(b, q, k, v, args->causal, args->dropout);
	return rfl_zoo_attention_values(b, rfl_zoo_attention_scores(b, q, k, args), v, args);
}
