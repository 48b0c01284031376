/*
 * build_ops.c - the builder's calls that write one operation down: attributes into a node.
 */
#include "complexity/net/build.h"
#include "complexity/net/build_impl.h"

#include <stddef.h>
#include <string.h>

/* A node of one input. */
static int one(struct rfl_net_builder *b, int x, const char *name, struct rfl_node node)
{
	node.ninputs = 1;
	node.input = &x;
	return rfl_net__append(b, &node, name);
}

static int input(struct rfl_net_builder *b, enum rfl_dtype dtype, struct rfl_shape shape)
{
	struct rfl_node node = {
		.op = RFL_OP_INPUT,
		.functional = true,
		.dtype = dtype,
		.shape = shape,
	};

	if (b->nnodes != 0)
		return rfl_net_refuse(b, "the input must come first");
	return rfl_net__append(b, &node, "input");
}

int rfl_net_input(struct rfl_net_builder *b, int64_t channels, int64_t height, int64_t width)
{
	return input(b, RFL_DTYPE_F32,
		     (struct rfl_shape){ .ndim = 3, .dim = { channels, height, width } });
}

int rfl_net_tokens(struct rfl_net_builder *b, int64_t tokens)
{
	return input(b, RFL_DTYPE_I64, (struct rfl_shape){ .ndim = 1, .dim = { tokens } });
}

static int64_t first_set(int64_t a, int64_t b, int64_t otherwise)
{
	return a ? a : b ? b : otherwise;
}

int rfl_net_conv2d(struct rfl_net_builder *b, int x, const char *name, int64_t out_channels,
		   const struct rfl_conv2d_args *args)
{
	return one(
		b, x, name,
		(struct rfl_node){ .op = RFL_OP_CONV2D,
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
				   } });
}

static int pool(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name,
		const struct rfl_pool_args *args)
{
	int64_t kernel_h = first_set(args->kernel_h, args->kernel, 1);
	int64_t kernel_w = first_set(args->kernel_w, args->kernel, 1);

	return one(b, x, name,
		   (struct rfl_node){
			   .op = op,
			   .attr.pool = {
				   .kernel_h = kernel_h,
				   .kernel_w = kernel_w,
				   .stride_h = first_set(args->stride_h, args->stride, kernel_h),
				   .stride_w = first_set(args->stride_w, args->stride, kernel_w),
				   .pad_h = first_set(args->pad_h, args->pad, 0),
				   .pad_w = first_set(args->pad_w, args->pad, 0),
				   .ceil_mode = args->ceil_mode,
				   .exclude_padding = args->exclude_padding,
			   } });
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
	return one(b, x, name,
		   (struct rfl_node){ .op = RFL_OP_BATCH_NORM,
				      .attr.batch_norm = {
					      .channels = rfl_net_channels(b, x),
					      .eps = b->eps,
					      .momentum = b->momentum,
				      } });
}

int rfl_unary(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name,
	      enum rfl_inplace inplace)
{
	return one(b, x, name, (struct rfl_node){ .op = op, .inplace = inplace == RFL_INPLACE });
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
	return one(
		b, x, name,
		(struct rfl_node){ .op = RFL_OP_DROPOUT, .attr.dropout.probability = probability });
}

int rfl_stochastic_depth(struct rfl_net_builder *b, int x, const char *name, double probability)
{
	return one(b, x, name,
		   (struct rfl_node){ .op = RFL_OP_STOCHASTIC_DEPTH,
				      .attr.dropout.probability = probability });
}

int rfl_net_linear(struct rfl_net_builder *b, int x, const char *name, int64_t out_features,
		   const struct rfl_linear_args *args)
{
	return one(b, x, name,
		   (struct rfl_node){ .op = RFL_OP_LINEAR,
				      .attr.linear = {
					      .in_features = rfl_net_features(b, x),
					      .out_features = out_features,
					      .bias = args->bias,
					      .in_proj = args->in_proj,
					      .out_proj = args->out_proj,
					      .transposed = args->transposed,
				      } });
}

int rfl_linear(struct rfl_net_builder *b, int x, const char *name, int64_t out_features, bool bias)
{
	return rfl_net_linear(b, x, name, out_features, &(struct rfl_linear_args){ .bias = bias });
}

int rfl_linear_tied(struct rfl_net_builder *b, int x, const char *name, int owner)
{
	return one(b, x, name,
		   (struct rfl_node){ .op = RFL_OP_LINEAR,
				      .tied = owner,
				      .attr.linear = {
					      .in_features = rfl_net_features(b, x),
					      .out_features = rfl_net__first_param(b, owner).dim[0],
				      } });
}

static int norm(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name, double eps)
{
	return one(b, x, name,
		   (struct rfl_node){
			   .op = op,
			   .attr.norm = { .features = rfl_net_features(b, x), .eps = eps } });
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
	return one(b, x, name,
		   (struct rfl_node){ .op = RFL_OP_EMBEDDING,
				      .attr.embedding = { .vocab = vocab, .features = features } });
}

int rfl_adaptive_avg_pool(struct rfl_net_builder *b, int x, const char *name, int64_t out_h,
			  int64_t out_w)
{
	return one(b, x, name,
		   (struct rfl_node){ .op = RFL_OP_ADAPTIVE_AVG_POOL,
				      .attr.adaptive_pool = { .out_h = out_h, .out_w = out_w } });
}

int rfl_gelu(struct rfl_net_builder *b, int x, const char *name, bool tanh)
{
	return one(b, x, name, (struct rfl_node){ .op = RFL_OP_GELU, .attr.gelu.tanh = tanh });
}

/* --- functional steps ------------------------------------------------------------------------- */

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
	return one(b, x, NULL,
		   (struct rfl_node){ .op = RFL_OP_AFFINE,
				      .attr.affine = { .scale = scale, .shift = shift } });
}

int rfl_rope(struct rfl_net_builder *b, int x, double theta)
{
	return one(b, x, NULL, (struct rfl_node){ .op = RFL_OP_ROPE, .attr.rope.theta = theta });
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
	return one(b, x, NULL,
		   (struct rfl_node){
			   .op = op,
			   .attr.reduce = { .first = first, .count = count, .keepdim = keepdim } });
}

int rfl_flatten(struct rfl_net_builder *b, int x)
{
	return one(b, x, NULL, (struct rfl_node){ .op = RFL_OP_FLATTEN });
}

int rfl_reshape(struct rfl_net_builder *b, int x, const struct rfl_shape *shape)
{
	return one(b, x, NULL,
		   (struct rfl_node){ .op = RFL_OP_RESHAPE, .attr.reshape.shape = *shape });
}

int rfl_permute(struct rfl_net_builder *b, int x, const struct rfl_shape *order)
{
	struct rfl_node node = { .op = RFL_OP_PERMUTE };

	if (order->ndim != rfl_net_shape(b, x).ndim)
		return rfl_net_refuse(b, "a permutation of %d dimensions of a tensor of %d",
				      order->ndim, rfl_net_shape(b, x).ndim);
	memcpy(node.attr.permute.order, order->dim, sizeof(node.attr.permute.order));
	return one(b, x, NULL, node);
}

int rfl_slice(struct rfl_net_builder *b, int x, int64_t dim, int64_t start, int64_t length,
	      int64_t step)
{
	return one(b, x, NULL,
		   (struct rfl_node){
			   .op = RFL_OP_SLICE,
			   .attr.slice = {
				   .dim = dim, .start = start, .length = length, .step = step } });
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
	return one(b, x, NULL, (struct rfl_node){ .op = RFL_OP_PAD, .attr.padding = *pad });
}

int rfl_net_roll(struct rfl_net_builder *b, int x, int64_t dim, int64_t shift_h, int64_t shift_w)
{
	return one(b, x, NULL,
		   (struct rfl_node){
			   .op = RFL_OP_ROLL,
			   .attr.roll = { .dim = dim, .shift_h = shift_h, .shift_w = shift_w } });
}

int rfl_gather(struct rfl_net_builder *b, int table, const struct rfl_shape *shape)
{
	return one(b, table, NULL,
		   (struct rfl_node){ .op = RFL_OP_GATHER, .attr.gather.shape = *shape });
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
