/*
 * build_ops.c - the builder's calls that write one operation down: attributes into a node.
 */
#include "complexity/net/build.h"
#include "complexity/net/build_impl.h"

#include <stddef.h>

int rfl_net_input(struct rfl_net_builder *b, int64_t channels, int64_t height, int64_t width)
{
	struct rfl_node node = {
		.op = RFL_OP_INPUT,
		.functional = true,
		.shape = { .ndim = 3, .dim = { channels, height, width } },
	};

	if (b->nnodes != 0)
		return rfl_net__refuse(b, "the input must come first");
	return rfl_net__append(b, &node, "input");
}

int rfl_net_tokens(struct rfl_net_builder *b, int64_t tokens)
{
	struct rfl_node node = {
		.op = RFL_OP_INPUT,
		.functional = true,
		.dtype = RFL_DTYPE_I64,
		.shape = { .ndim = 1, .dim = { tokens } },
	};

	if (b->nnodes != 0)
		return rfl_net__refuse(b, "the input must come first");
	return rfl_net__append(b, &node, "input");
}

static int64_t first_set(int64_t a, int64_t b, int64_t otherwise)
{
	return a ? a : b ? b : otherwise;
}

int rfl_net_conv2d(struct rfl_net_builder *b, int x, const char *name, int64_t out_channels,
		   const struct rfl_conv2d_args *args)
{
	struct rfl_node node = {
		.op = RFL_OP_CONV2D,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.conv2d = {
			.in_channels = rfl_net_channels(b, x),
			.out_channels = out_channels,
			.kernel_h = first_set(args->kernel_h, args->kernel, 1),
			.kernel_w = first_set(args->kernel_w, args->kernel, 1),
			.stride_h = first_set(args->stride_h, args->stride, 1),
			.stride_w = first_set(args->stride_w, args->stride, 1),
			.pad_h = first_set(args->pad_h, args->pad, 0),
			.pad_w = first_set(args->pad_w, args->pad, 0),
			.dilation_h = first_set(args->dilation, 0, 1),
			.dilation_w = first_set(args->dilation, 0, 1),
			.groups = first_set(args->groups, 0, 1),
			.bias = args->bias,
		},
	};

	return rfl_net__append(b, &node, name);
}

static int pool(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name,
		const struct rfl_pool_args *args)
{
	int64_t kernel_h = first_set(args->kernel_h, args->kernel, 1);
	int64_t kernel_w = first_set(args->kernel_w, args->kernel, 1);
	struct rfl_node node = {
		.op = op,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.pool = {
			.kernel_h = kernel_h,
			.kernel_w = kernel_w,
			.stride_h = first_set(args->stride_h, args->stride, kernel_h),
			.stride_w = first_set(args->stride_w, args->stride, kernel_w),
			.pad_h = first_set(args->pad_h, args->pad, 0),
			.pad_w = first_set(args->pad_w, args->pad, 0),
			.ceil_mode = args->ceil_mode,
			.exclude_padding = args->exclude_padding,
		},
	};

	return rfl_net__append(b, &node, name);
}

int rfl_net_max_pool(struct rfl_net_builder *b, int x, const char *name,
		     const struct rfl_pool_args *args)
{
	return pool(b, RFL_OP_MAX_POOL, x, name, args);
}

int rfl_net_avg_pool(struct rfl_net_builder *b, int x, const char *name,
		     const struct rfl_pool_args *args)
{
	return pool(b, RFL_OP_AVG_POOL, x, name, args);
}

int rfl_batch_norm(struct rfl_net_builder *b, int x, const char *name)
{
	struct rfl_node node = {
		.op = RFL_OP_BATCH_NORM,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.batch_norm = {
			.channels = rfl_net_channels(b, x),
			.eps = b->eps,
			.momentum = b->momentum,
		},
	};

	return rfl_net__append(b, &node, name);
}

int rfl_unary(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name,
	      enum rfl_inplace inplace)
{
	struct rfl_node node = {
		.op = op,
		.ninputs = 1,
		.input = (const int[]){ x },
		.inplace = inplace == RFL_INPLACE,
	};

	return rfl_net__append(b, &node, name);
}

int rfl_relu(struct rfl_net_builder *b, int x, const char *name, enum rfl_inplace inplace)
{
	return rfl_unary(b, RFL_OP_RELU, x, name, inplace);
}

int rfl_relu6(struct rfl_net_builder *b, int x, const char *name, enum rfl_inplace inplace)
{
	return rfl_unary(b, RFL_OP_RELU6, x, name, inplace);
}

int rfl_dropout(struct rfl_net_builder *b, int x, const char *name, double probability)
{
	struct rfl_node node = {
		.op = RFL_OP_DROPOUT,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.dropout.probability = probability,
	};

	return rfl_net__append(b, &node, name);
}

int rfl_stochastic_depth(struct rfl_net_builder *b, int x, const char *name, double probability)
{
	struct rfl_node node = {
		.op = RFL_OP_STOCHASTIC_DEPTH,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.dropout.probability = probability,
	};

	return rfl_net__append(b, &node, name);
}

int rfl_net_linear(struct rfl_net_builder *b, int x, const char *name, int64_t out_features,
		   const struct rfl_linear_args *args)
{
	struct rfl_node node = {
		.op = RFL_OP_LINEAR,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.linear = {
			.in_features = rfl_net_features(b, x),
			.out_features = out_features,
			.bias = args->bias,
			.in_proj = args->in_proj,
			.out_proj = args->out_proj,
			.transposed = args->transposed,
		},
	};

	return rfl_net__append(b, &node, name);
}

int rfl_linear(struct rfl_net_builder *b, int x, const char *name, int64_t out_features, bool bias)
{
	return rfl_net_linear(b, x, name, out_features, &(struct rfl_linear_args){ .bias = bias });
}

int rfl_linear_tied(struct rfl_net_builder *b, int x, const char *name, int owner)
{
	struct rfl_node node = {
		.op = RFL_OP_LINEAR,
		.ninputs = 1,
		.input = (const int[]){ x },
		.tied = owner,
		.attr.linear = {
			.in_features = rfl_net_features(b, x),
			.out_features = rfl_net__first_param(b, owner).dim[0],
		},
	};

	return rfl_net__append(b, &node, name);
}

static int norm(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name, double eps)
{
	struct rfl_node node = {
		.op = op,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.norm = { .features = rfl_net_features(b, x), .eps = eps },
	};

	return rfl_net__append(b, &node, name);
}

int rfl_layer_norm(struct rfl_net_builder *b, int x, const char *name, double eps)
{
	return norm(b, RFL_OP_LAYER_NORM, x, name, eps);
}

int rfl_rms_norm(struct rfl_net_builder *b, int x, const char *name, double eps)
{
	return norm(b, RFL_OP_RMS_NORM, x, name, eps);
}

int rfl_embedding(struct rfl_net_builder *b, int x, const char *name, int64_t vocab,
		  int64_t features)
{
	struct rfl_node node = {
		.op = RFL_OP_EMBEDDING,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.embedding = { .vocab = vocab, .features = features },
	};

	return rfl_net__append(b, &node, name);
}

int rfl_adaptive_avg_pool(struct rfl_net_builder *b, int x, const char *name, int64_t out_h,
			  int64_t out_w)
{
	struct rfl_node node = {
		.op = RFL_OP_ADAPTIVE_AVG_POOL,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.adaptive_pool = { .out_h = out_h, .out_w = out_w },
	};

	return rfl_net__append(b, &node, name);
}

int rfl_gelu(struct rfl_net_builder *b, int x, const char *name, bool tanh)
{
	struct rfl_node node = {
		.op = RFL_OP_GELU,
		.ninputs = 1,
		.input = (const int[]){ x },
		.attr.gelu.tanh = tanh,
	};

	return rfl_net__append(b, &node, name);
}
