/*
 * registry.c - the table of operations and what their rows share. Each row lives in its own file
 * here.
 */
#include "complexity/op.h"

#include <assert.h>

static const struct rfl_op_info *const ops[RFL_OP_COUNT] = {
	[RFL_OP_INPUT] = &rfl_op_input,
	[RFL_OP_PARAMETER] = &rfl_op_parameter,
	[RFL_OP_CONSTANT] = &rfl_op_constant,
	[RFL_OP_CONV2D] = &rfl_op_conv2d,
	[RFL_OP_LINEAR] = &rfl_op_linear,
	[RFL_OP_EMBEDDING] = &rfl_op_embedding,
	[RFL_OP_BATCH_NORM] = &rfl_op_batch_norm,
	[RFL_OP_LAYER_NORM] = &rfl_op_layer_norm,
	[RFL_OP_RMS_NORM] = &rfl_op_rms_norm,
	[RFL_OP_MATMUL] = &rfl_op_matmul,
	[RFL_OP_SDPA] = &rfl_op_sdpa,
	[RFL_OP_RELU] = &rfl_op_relu,
	[RFL_OP_RELU6] = &rfl_op_relu6,
	[RFL_OP_SIGMOID] = &rfl_op_sigmoid,
	[RFL_OP_TANH] = &rfl_op_tanh,
	[RFL_OP_SILU] = &rfl_op_silu,
	[RFL_OP_GELU] = &rfl_op_gelu,
	[RFL_OP_HARD_SIGMOID] = &rfl_op_hard_sigmoid,
	[RFL_OP_HARD_SWISH] = &rfl_op_hard_swish,
	[RFL_OP_EXP] = &rfl_op_exp,
	[RFL_OP_LOG] = &rfl_op_log,
	[RFL_OP_RSQRT] = &rfl_op_rsqrt,
	[RFL_OP_SQUARE] = &rfl_op_square,
	[RFL_OP_AFFINE] = &rfl_op_affine,
	[RFL_OP_ROPE] = &rfl_op_rope,
	[RFL_OP_DROPOUT] = &rfl_op_dropout,
	[RFL_OP_STOCHASTIC_DEPTH] = &rfl_op_stochastic_depth,
	[RFL_OP_CAUSAL_MASK] = &rfl_op_causal_mask,
	[RFL_OP_SOFTMAX] = &rfl_op_softmax,
	[RFL_OP_ADD] = &rfl_op_add,
	[RFL_OP_SUB] = &rfl_op_sub,
	[RFL_OP_MUL] = &rfl_op_mul,
	[RFL_OP_DIV] = &rfl_op_div,
	[RFL_OP_MEAN] = &rfl_op_mean,
	[RFL_OP_SUM] = &rfl_op_sum,
	[RFL_OP_MAX] = &rfl_op_max,
	[RFL_OP_MAX_POOL] = &rfl_op_max_pool,
	[RFL_OP_AVG_POOL] = &rfl_op_avg_pool,
	[RFL_OP_ADAPTIVE_AVG_POOL] = &rfl_op_adaptive_avg_pool,
	[RFL_OP_FLATTEN] = &rfl_op_flatten,
	[RFL_OP_RESHAPE] = &rfl_op_reshape,
	[RFL_OP_PERMUTE] = &rfl_op_permute,
	[RFL_OP_SLICE] = &rfl_op_slice,
	[RFL_OP_CONTIGUOUS] = &rfl_op_contiguous,
	[RFL_OP_CONCAT] = &rfl_op_concat,
	[RFL_OP_PAD] = &rfl_op_pad,
	[RFL_OP_ROLL] = &rfl_op_roll,
	[RFL_OP_GATHER] = &rfl_op_gather,
	[RFL_OP_CROSS_ENTROPY] = &rfl_op_cross_entropy,
};

const struct rfl_op_info *rfl_op_info_of(enum rfl_op op)
{
	assert(op < RFL_OP_COUNT && ops[op]);
	return ops[op];
}

enum rfl_rc rfl_op_same_shape(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	(void)node;
	(void)err;
	*out = in[0];
	return RFL_OK;
}

enum rfl_rc rfl_op_need_image(const struct rfl_shape *in, struct rfl_err *err)
{
	char text[96];

	if (in->ndim == 3)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0, "needs an image of channels x height x width, got %s",
			rfl_shape_text(in, text, sizeof(text)));
}
