/*
 * build_steps.c - the builder's calls for functional steps: arithmetic between tensors,
 * attention, views and copies.
 */
#include "complexity/net/build.h"
#include "complexity/net/build_impl.h"

#include <stddef.h>
#include <string.h>

int rfl_binary(struct rfl_net_builder *b, enum rfl_op op, int x, int y, enum rfl_inplace inplace)
{
	struct rfl_node node = {
		.op = op,
		.ninputs = 2,
		.input = (const int[]){ x, y },
		.inplace = inplace == RFL_INPLACE,
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_add(struct rfl_net_builder *b, int x, int y, enum rfl_inplace inplace)
{
	return rfl_binary(b, RFL_OP_ADD, x, y, inplace);
}

int rfl_affine(struct rfl_net_builder *b, int x, double scale, double shift)
{
	struct rfl_node node = {
		.op = RFL_OP_AFFINE,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.affine = { .scale = scale, .shift = shift },
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_rope(struct rfl_net_builder *b, int x, double theta)
{
	struct rfl_node node = {
		.op = RFL_OP_ROPE,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.rope.theta = theta,
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_matmul(struct rfl_net_builder *b, int x, int y, bool transpose_b, bool causal)
{
	struct rfl_node node = {
		.op = RFL_OP_MATMUL,
		.ninputs = 2,
		.input = (const int[]){ x, y },
		.attr.matmul = { .transpose_b = transpose_b, .causal = causal },
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_sdpa(struct rfl_net_builder *b, int q, int k, int v, bool causal, double dropout)
{
	struct rfl_node node = {
		.op = RFL_OP_SDPA,
		.ninputs = 3,
		.input = (const int[]){ q, k, v },
		.attr.sdpa = { .causal = causal, .dropout = dropout },
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_reduce(struct rfl_net_builder *b, enum rfl_op op, int x, int64_t first, int64_t count,
	       bool keepdim)
{
	struct rfl_node node = {
		.op = op,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.reduce = { .first = first, .count = count, .keepdim = keepdim },
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_flatten_from(struct rfl_net_builder *b, int x, int64_t first)
{
	struct rfl_node node = {
		.op = RFL_OP_FLATTEN,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.flatten.first = first,
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_flatten(struct rfl_net_builder *b, int x)
{
	return rfl_flatten_from(b, x, 0);
}

int rfl_reshape(struct rfl_net_builder *b, int x, const struct rfl_shape *shape)
{
	struct rfl_node node = {
		.op = RFL_OP_RESHAPE,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.reshape.shape = *shape,
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_permute(struct rfl_net_builder *b, int x, const struct rfl_shape *order)
{
	struct rfl_node node = {
		.op = RFL_OP_PERMUTE,
		.ninputs = 1,
		.input = (const int[]){ x },
	};

	if (order->ndim != rfl_net_shape(b, x).ndim)
		return rfl_net_refuse(b, "a permutation of %d dimensions of a tensor of %d",
				      order->ndim, rfl_net_shape(b, x).ndim);
	memcpy(node.attr.permute.order, order->dim, sizeof(node.attr.permute.order));
	return rfl_net__append(b, &node, NULL);
}

int rfl_slice(struct rfl_net_builder *b, int x, int64_t dim, int64_t start, int64_t length,
	      int64_t step)
{
	struct rfl_node node = {
		.op = RFL_OP_SLICE,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.slice = { .dim = dim, .start = start, .length = length, .step = step },
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_contiguous(struct rfl_net_builder *b, int x)
{
	return rfl_unary(b, RFL_OP_CONTIGUOUS, x, NULL, RFL_OUT_OF_PLACE);
}

int rfl_concat(struct rfl_net_builder *b, const int *xs, int n, int64_t dim)
{
	struct rfl_node node = {
		.op = RFL_OP_CONCAT,
		.ninputs = n,
		.input = xs,
		.attr.concat.dim = dim,
	};

	if (n < 1 || n > RFL_NET_MAX_INPUTS)
		return rfl_net_refuse(b, "a concatenation is of 1 to %d tensors, not %d",
				      RFL_NET_MAX_INPUTS, n);
	return rfl_net__append(b, &node, NULL);
}

int rfl_net_pad(struct rfl_net_builder *b, int x, const struct rfl_pad *pad)
{
	struct rfl_node node = {
		.op = RFL_OP_PAD,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.padding = *pad,
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_net_roll(struct rfl_net_builder *b, int x, int64_t dim, int64_t shift_h, int64_t shift_w)
{
	struct rfl_node node = {
		.op = RFL_OP_ROLL,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.roll = { .dim = dim, .shift_h = shift_h, .shift_w = shift_w },
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_gather(struct rfl_net_builder *b, int table, const struct rfl_shape *shape)
{
	struct rfl_node node = {
		.op = RFL_OP_GATHER,
		.ninputs = 1,
		.input = (const int[]){ table },
		.attr.gather.shape = *shape,
	};

	return rfl_net__append(b, &node, NULL);
}

int rfl_parameter(struct rfl_net_builder *b, const char *name, const struct rfl_shape *stored,
		  int64_t drop)
{
	return rfl_net_parameter(b, name,
				 &(struct rfl_parameter){ .stored = *stored, .drop = drop });
}

int rfl_net_parameter(struct rfl_net_builder *b, const char *name, const struct rfl_parameter *args)
{
	struct rfl_node node = {
		.op = RFL_OP_PARAMETER,
		.functional = true,
		.batchless = true,
		.attr.parameter = *args,
	};

	return rfl_net__append(b, &node, name);
}

int rfl_constant(struct rfl_net_builder *b, const char *name, const struct rfl_shape *shape)
{
	struct rfl_node node = {
		.op = RFL_OP_CONSTANT,
		.functional = true,
		.batchless = true,
		.attr.constant.shape = *shape,
	};

	return rfl_net__append(b, &node, name);
}
