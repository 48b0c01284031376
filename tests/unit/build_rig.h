/*
 * build_rig.h - one call for each layer of a network under test; the zoo lists its layers instead.
 */
#ifndef RFL_TESTS_UNIT_BUILD_RIG_H
#define RFL_TESTS_UNIT_BUILD_RIG_H

#include "complexity/net/build.h"

#define rfl_net_one(b, op_, x, name_, ...)                                                     \
	rfl_net_append(                                                                        \
		(b),                                                                           \
		&(const struct rfl_node){                                                      \
			.op = (op_), .ninputs = 1, .input = (const int[]){ x }, __VA_ARGS__ }, \
		(name_))

/** A window over {channels, height, width}; sizes are in pixels. kernel, dilation and groups
 * default to 1, the stride to 1 in a convolution and to the kernel size in a pooling. The _h and _w
 * members override the square ones. */
struct rfl_window_args {
	int64_t kernel, kernel_h, kernel_w;
	int64_t stride, stride_h, stride_w;
	int64_t pad, pad_h, pad_w;
	int64_t dilation, groups; /**< of a convolution, like `bias` */
	bool bias;
	bool ceil_mode, exclude_padding; /**< of a pooling */
};
static inline int64_t first_set(int64_t a, int64_t b, int64_t otherwise)
{
	return a ? a : b ? b : otherwise;
}

/* The window; the stride defaults to 1, or to the kernel size. */
static inline struct rfl_pool window(const struct rfl_window_args *a, bool convolution)
{
	const int64_t kernel_h = first_set(a->kernel_h, a->kernel, 1);
	const int64_t kernel_w = first_set(a->kernel_w, a->kernel, 1);

	return (struct rfl_pool){
		.kernel_h = kernel_h,
		.kernel_w = kernel_w,
		.stride_h = first_set(a->stride_h, a->stride, convolution ? 1 : kernel_h),
		.stride_w = first_set(a->stride_w, a->stride, convolution ? 1 : kernel_w),
		.pad_h = first_set(a->pad_h, a->pad, 0),
		.pad_w = first_set(a->pad_w, a->pad, 0),
		.ceil_mode = a->ceil_mode,
		.exclude_padding = a->exclude_padding,
	};
}

static inline int rfl_net_conv2d(struct rfl_net_builder *b, int x, const char *name,
				 int64_t out_channels, const struct rfl_window_args *args)
{
	const int64_t dilation = args->dilation ? args->dilation : 1;
	const struct rfl_pool w = window(args, true);

	return rfl_net_one(b, RFL_OP_CONV2D, x, name,
			   .attr.conv2d = { .out_channels = out_channels,
					    .kernel_h = w.kernel_h,
					    .kernel_w = w.kernel_w,
					    .stride_h = w.stride_h,
					    .stride_w = w.stride_w,
					    .pad_h = w.pad_h,
					    .pad_w = w.pad_w,
					    .dilation_h = dilation,
					    .dilation_w = dilation,
					    .groups = args->groups ? args->groups : 1,
					    .bias = args->bias });
}

static inline int rfl_net_pool(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name,
			       const struct rfl_window_args *args)
{
	return rfl_net_one(b, op, x, name, .attr.pool = window(args, false));
}

static inline int rfl_linear_tied(struct rfl_net_builder *b, int x, const char *name, int owner)
{
	return rfl_net_one(b, RFL_OP_LINEAR, x, name, .tied = owner,
			   .attr.linear.out_features = rfl_net_first_param(b, owner).dim[0]);
}

static inline int rfl_net_mark(struct rfl_net_builder *b, int x, bool in_place)
{
	if (!rfl_net_is_tensor(b, x))
		return -1;
	b->nodes[x].inplace |= in_place;
	b->nodes[x].functional |= !in_place;
	return x;
}
#define rfl_net_in_place(b, x)    rfl_net_mark(b, x, true)
#define rfl_net_as_function(b, x) rfl_net_mark(b, x, false)

#define rfl_conv2d(b, x, name, out_channels, ...) \
	rfl_net_conv2d((b), (x), (name), (out_channels), &(struct rfl_window_args){ __VA_ARGS__ })

#define rfl_max_pool(b, x, name, ...) \
	rfl_net_pool((b), RFL_OP_MAX_POOL, (x), (name), &(struct rfl_window_args){ __VA_ARGS__ })
#define rfl_avg_pool(b, x, name, ...) \
	rfl_net_pool((b), RFL_OP_AVG_POOL, (x), (name), &(struct rfl_window_args){ __VA_ARGS__ })
/** Pool to {channels, out_h, out_w}.
 * @param name  NULL if the model calls a function, not a module */
#define rfl_adaptive_avg_pool(b, x, name, h, w)               \
	rfl_net_one(b, RFL_OP_ADAPTIVE_AVG_POOL, (x), (name), \
		    .attr.adaptive_pool = { .out_h = (h), .out_w = (w) })

/** Normalise over the last dimension; eps_ is added to the variance. */
#define rfl_layer_norm(b, x, name, eps_) \
	rfl_net_one(b, RFL_OP_LAYER_NORM, (x), (name), .attr.norm.eps = (eps_))

/** @param p  probability of dropping an element, or a sample's branch: 0 to 1 */
#define rfl_dropout(b, x, name, p) \
	rfl_net_one(b, RFL_OP_DROPOUT, (x), (name), .attr.dropout.probability = (p))
#define rfl_stochastic_depth(b, x, name, p) \
	rfl_net_one(b, RFL_OP_STOCHASTIC_DEPTH, (x), (name), .attr.dropout.probability = (p))

/** Map {.., features} to {.., out}; `...` are more members of struct rfl_linear. */
#define rfl_net_linear(b, x, name, out, ...)       \
	rfl_net_one(b, RFL_OP_LINEAR, (x), (name), \
		    .attr.linear = { .out_features = (out), __VA_ARGS__ })
#define rfl_linear(b, x, name, out, bias_) rfl_net_linear(b, x, name, out, .bias = (bias_))
/** Map indices {tokens} to rows {tokens, features} of a table. */
#define rfl_embedding(b, x, name, rows, features_)    \
	rfl_net_one(b, RFL_OP_EMBEDDING, (x), (name), \
		    .attr.embedding = { .vocab = (rows), .features = (features_) })

/**
 * An operation with one input and no attributes: RFL_OP_RELU, RELU6, SIGMOID, TANH, SILU,
 * HARD_SIGMOID, HARD_SWISH, EXP, LOG, RSQRT, SQUARE, CAUSAL_MASK, SOFTMAX.
 * @param name  NULL if the model calls a function, not a module
 */
#define rfl_unary(b, op, x, name, inplace_) rfl_net_one(b, (op), (x), (name), .inplace = (inplace_))
#define rfl_relu(b, x, name, inplace)       rfl_unary(b, RFL_OP_RELU, x, name, inplace)
#define rfl_gelu(b, x, name, tanh_) \
	rfl_net_one(b, RFL_OP_GELU, (x), (name), .attr.gelu.tanh = (tanh_))

/** x * scale + shift. */
#define rfl_affine(b, x, scale_, shift_)         \
	rfl_net_one(b, RFL_OP_AFFINE, (x), NULL, \
		    .attr.affine = { .scale = (scale_), .shift = (shift_) })
/** Rotary position embedding (Su et al. 2021) of {.., tokens, features}: pair i of token t is
 * rotated by t theta^(-2 i / features). */
#define rfl_rope(b, x, theta_) rfl_net_one(b, RFL_OP_ROPE, (x), NULL, .attr.rope.theta = (theta_))
/** RFL_OP_MEAN, SUM or MAX over n dimensions starting at `from`. */
#define rfl_reduce(b, op, x, from, n, keepdim_) \
	rfl_net_one(b, (op), (x), NULL,         \
		    .attr.reduce = { .first = (from), .count = (n), .keepdim = (keepdim_) })

/** Merge all dimensions into one. */
#define rfl_flatten(b, x) rfl_net_one(b, RFL_OP_FLATTEN, (x), NULL, .attr.flatten.first = 0)

/** View the same elements in another shape. */
#define rfl_reshape(b, x, shape_) \
	rfl_net_one(b, RFL_OP_RESHAPE, (x), NULL, .attr.reshape.shape = *(shape_))
/** n elements of a dimension: from, from + by, from + 2 by, ... */
#define rfl_slice(b, x, dim_, from, n, by)      \
	rfl_net_one(b, RFL_OP_SLICE, (x), NULL, \
		    .attr.slice = { .dim = (dim_), .start = (from), .length = (n), .step = (by) })
/** A copy with a contiguous layout. */
#define rfl_contiguous(b, x) rfl_unary(b, RFL_OP_CONTIGUOUS, x, NULL, RFL_OUT_OF_PLACE)
/** Pad with zeros; `...` are members of struct rfl_pad. */
#define rfl_net_pad(b, x, ...) \
	rfl_net_one(b, RFL_OP_PAD, (x), NULL, .attr.padding = { __VA_ARGS__ })
/** Shift the dimensions {height, width}, beginning at dim_, cyclically by h and w elements. */
#define rfl_net_roll(b, x, dim_, h, w)         \
	rfl_net_one(b, RFL_OP_ROLL, (x), NULL, \
		    .attr.roll = { .dim = (dim_), .shift_h = (h), .shift_w = (w) })
/** Gather rows of a table {rows, features} at constant indices into a shape {.., features}. */
#define rfl_gather(b, table, shape_) \
	rfl_net_one(b, RFL_OP_GATHER, (table), NULL, .attr.gather.shape = *(shape_))
#define rfl_batch_norm(b, x, name_) rfl_chain(b, x, { .op = RFL_OP_BATCH_NORM, .name = (name_) })
static inline int rfl_permute(struct rfl_net_builder *b, int x, const struct rfl_shape *order)
{
	struct rfl_node node = { .op = RFL_OP_PERMUTE };

	for (int i = 0; i < order->ndim; i++)
		node.attr.permute.order[i] = order->dim[i];
	return rfl_chain(b, x, node);
}

#endif
