/* blocks.c - building blocks shared by several families. */
#include "complexity/zoo/blocks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

int rfl_zoo_conv_norm_from(struct rfl_net_builder *b, int x, int first, int64_t out_channels,
			   const struct rfl_zoo_conv_norm_args *args)
{
	int64_t kernel = args->kernel ? args->kernel : 1;
	char name[3][16];

	for (int i = 0; i < 3; i++)
		(void)snprintf(name[i], sizeof(name[i]), "%d", first + i);
	x = rfl_conv2d(b, x, name[0], out_channels, .kernel = kernel, .stride = args->stride,
		       .pad = kernel / 2, .groups = args->groups);
	x = rfl_batch_norm(b, x, name[1]);
	if (args->activation != RFL_ZOO_NO_ACTIVATION)
		x = rfl_unary(b, args->activation, x, name[2], RFL_INPLACE);
	return x;
}

int rfl_zoo_conv_norm_act(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
			  const struct rfl_zoo_conv_norm_args *args)
{
	rfl_net_enter(b, "%s", path);
	x = rfl_zoo_conv_norm_from(b, x, 0, out_channels, args);
	rfl_net_leave(b);
	return x;
}

int rfl_zoo_squeeze_excitation(struct rfl_net_builder *b, int x, const char *path,
			       const struct rfl_zoo_squeeze_args *args)
{
	int scale;

	rfl_net_enter(b, "%s", path);
	scale = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	scale = rfl_conv2d(b, scale, "fc1", args->channels, .bias = true);
	scale = rfl_unary(b, args->activation, scale, "activation", args->inplace);
	scale = rfl_conv2d(b, scale, "fc2", rfl_net_channels(b, x), .bias = true);
	scale = rfl_unary(b, args->scale, scale, "scale_activation", RFL_OUT_OF_PLACE);
	x = rfl_binary(b, RFL_OP_MUL, scale, x, RFL_OUT_OF_PLACE);
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

/* Transformers. Eager PyTorch copies the inputs of a batched matrix product if their matrices are
 * not contiguous, as with heads split off the features of a token. (In a batch of one sample, some
 * of these copies are views.) */

enum rfl_zoo_form rfl_zoo_form_of(enum rfl_attention attention)
{
	return attention == RFL_ATTENTION_COMPOSED ? RFL_ZOO_STEPS : RFL_ZOO_WHOLE;
}

int rfl_zoo_norm(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name, double eps,
		 enum rfl_zoo_form form)
{
	const struct rfl_shape row = { .ndim = 1, .dim = { rfl_net_features(b, x) } };
	int64_t last = rfl_net_shape(b, x).ndim - 1;
	int y;

	if (form == RFL_ZOO_WHOLE)
		return rfl_net_one(b, op, x, name, .attr.norm.eps = eps);
	rfl_net_enter(b, "%s", name);
	if (op == RFL_OP_LAYER_NORM) {
		y = rfl_reduce(b, RFL_OP_MEAN, x, last, 1, true);
		x = rfl_binary(b, RFL_OP_SUB, x, y, RFL_OUT_OF_PLACE);
	}
	y = rfl_unary(b, RFL_OP_SQUARE, x, NULL, RFL_OUT_OF_PLACE);
	y = rfl_reduce(b, RFL_OP_MEAN, y, last, 1, true);
	y = rfl_affine(b, y, 1.0, eps);
	y = rfl_unary(b, RFL_OP_RSQRT, y, NULL, RFL_OUT_OF_PLACE);
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

int rfl_zoo_softmax(struct rfl_net_builder *b, int x, enum rfl_zoo_form form)
{
	int64_t last = rfl_net_shape(b, x).ndim - 1;
	int sum;

	if (form == RFL_ZOO_WHOLE)
		return rfl_unary(b, RFL_OP_SOFTMAX, x, NULL, RFL_OUT_OF_PLACE);
	b->in_function = true;
	b->nfunctions++;
	x = rfl_binary(b, RFL_OP_SUB, x, rfl_reduce(b, RFL_OP_MAX, x, last, 1, true),
		       RFL_OUT_OF_PLACE);
	x = rfl_unary(b, RFL_OP_EXP, x, NULL, RFL_OUT_OF_PLACE);
	sum = rfl_reduce(b, RFL_OP_SUM, x, last, 1, true);
	x = rfl_binary(b, RFL_OP_DIV, x, sum, RFL_OUT_OF_PLACE);
	b->in_function = false;
	return x;
}

int rfl_zoo_split_heads(struct rfl_net_builder *b, int x, int64_t heads)
{
	struct rfl_shape s = rfl_net_shape(b, x);

	x = rfl_reshape(b, x, RFL_DIMS(s.dim[0], heads, s.dim[1] / heads));
	return rfl_permute(b, x, RFL_DIMS(1, 0, 2));
}

static int contiguous(struct rfl_net_builder *b, int x, bool copy)
{
	return copy ? rfl_contiguous(b, x) : x;
}

int rfl_zoo_merge_heads(struct rfl_net_builder *b, int x, bool copy)
{
	struct rfl_shape s = rfl_net_shape(b, x);

	x = contiguous(b, rfl_permute(b, x, RFL_DIMS(1, 0, 2)), copy);
	return rfl_reshape(b, x, RFL_DIMS(s.dim[1], s.dim[0] * s.dim[2]));
}

int rfl_zoo_attention_scores(struct rfl_net_builder *b, int q, int k,
			     const struct rfl_zoo_attention_args *args)
{
	double scale = 1.0 / sqrt((double)rfl_net_features(b, q));
	struct rfl_shape order = { .ndim = rfl_net_shape(b, k).ndim };
	int x;

	if (args->scale_query)
		q = rfl_affine(b, q, scale, 0.0);
	q = contiguous(b, q, args->copy_q);
	for (int i = 0; i < order.ndim; i++) /* swap the last two dimensions */
		order.dim[i] = i < order.ndim - 2 ? i : 2 * order.ndim - 3 - i;
	k = contiguous(b, rfl_permute(b, k, &order), args->copy_k);
	x = rfl_matmul(b, q, k, false, args->causal);
	if (!args->scale_query)
		x = rfl_affine(b, x, scale, 0.0);
	if (args->causal)
		x = rfl_unary(b, RFL_OP_CAUSAL_MASK, x, NULL, RFL_OUT_OF_PLACE);
	return x;
}

int rfl_zoo_attention_values(struct rfl_net_builder *b, int scores, int v,
			     const struct rfl_zoo_attention_args *args)
{
	int x = rfl_zoo_softmax(b, scores, args->softmax);

	if (args->dropout > 0.0)
		x = rfl_dropout(b, x, "attn_dropout", args->dropout);
	v = contiguous(b, v, args->copy_v);
	return rfl_matmul(b, x, v, false, args->causal);
}

int rfl_zoo_attend(struct rfl_net_builder *b, int q, int k, int v,
		   const struct rfl_zoo_attention_args *args)
{
	if (args->fused)
		return rfl_sdpa(b, q, k, v, args->causal, args->dropout);
	return rfl_zoo_attention_values(b, rfl_zoo_attention_scores(b, q, k, args), v, args);
}
