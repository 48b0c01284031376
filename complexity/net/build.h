/*
 * build.h - the builder, which creates networks. Code that only reads nets does not need it.
 *
 * Every call adds one operation and returns its output tensor as the index of a node. After a
 * failure (such as an invalid shape) further calls do nothing, and rfl_net_finish() reports the
 * failure with the name of the layer:
 *
 *	x = rfl_net_input(b, 3, 224, 224);
 *	x = rfl_conv2d(b, x, "conv1", 64, .kernel = 7, .stride = 2, .pad = 3);
 *	x = rfl_batch_norm(b, x, "bn1");
 *	x = rfl_relu(b, x, "relu", RFL_INPLACE);
 *
 * Parameters are created with their operation, so the state_dict has the order of the calls.
 *
 * Shapes are per sample: {channels, height, width} for an image, {tokens, features} for a text. In
 * all calls, x is a tensor, or any int if the builder has failed. Names are relative to the current
 * block; names, lists and arguments are copied. The result is the new tensor, or -1 if the builder
 * has failed.
 */
#ifndef RFL_COMPLEXITY_NET_BUILD_H
#define RFL_COMPLEXITY_NET_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

/** Whether an operation may overwrite its first input, as the published model does. */
enum rfl_inplace { RFL_OUT_OF_PLACE, RFL_INPLACE };

/** The maximum nesting of blocks plus 1; the deepest zoo model (MaxViT) has 5 levels. */
#define RFL_NET_MAX_DEPTH 8

/** The first group of members is private to the builder; families may set the second. */
struct rfl_net_builder {
	struct rfl_arena *arena; /**< names and lists of inputs; the finished net takes it over */
	const char *model, *family;
	/** The prefix of messages: the model, or a location such as "my.json: /nodes/3". */
	const char *label;
	struct rfl_node *nodes; /**< on the heap, like params; the finished net takes both over */
	struct rfl_param *params;
	int nnodes, nparams;
	size_t node_cap, param_cap;
	int64_t param_elements;
	const char *scope[RFL_NET_MAX_DEPTH]; /**< full paths; scope[depth] is the current one */
	int depth;
	int block_depth; /**< depth of the open repeated block; 0: none */
	int nblocks, nfunctions;
	struct rfl_err err; /**< sticky: after a failure, calls do nothing */

	const char *title;    /**< the display name of the model; copied when the net is finished */
	enum rfl_loss loss;   /**< how the loss after the logits is computed */
	double eps, momentum; /**< for subsequent batch norms; initially 1e-5 and 0.1 */
	/** Subsequent nodes are part of a repeated block, which checkpointing runs again as a
	 * whole; see rfl_net_enter_block(). */
	bool in_block;
	/** Subsequent nodes are part of a head that runs only in training with auxiliary losses. */
	bool in_auxiliary;
	/** Subsequent nodes are steps of one function in the model's code, such as a written-out
	 * softmax; they are variables in it and live until it returns. */
	bool in_function;
};

/** Create a builder. Both texts are copied. */
struct rfl_net_builder *rfl_net_builder_new(const char *model, const char *family) RFL_WARN_UNUSED;

/** Discard an unfinished net. Accepts NULL. */
void rfl_net_builder_free(struct rfl_net_builder *b);

/**
 * Turn the builder into a net.
 *
 * @param take_b   released, even on failure
 * @param output   the tensor of the logits: {classes}, or {rows, classes}, per sample
 * @param ret      set on success only; release with rfl_net_free()
 * @return RFL_OK, or the builder's first failure
 */
enum rfl_rc rfl_net_finish(struct rfl_net_builder *take_b, int output, struct rfl_net **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether x is a node and the builder has not failed. */
bool rfl_net_is_tensor(const struct rfl_net_builder *b, int x);
/** The shape of a tensor per sample; all zeros if the builder has failed. */
struct rfl_shape rfl_net_shape(const struct rfl_net_builder *b, int x);

/** Sizes of the first dimension (channels of an image) and the last one (features of a token). */
int64_t rfl_net_channels(const struct rfl_net_builder *b, int x);
int64_t rfl_net_features(const struct rfl_net_builder *b, int x);
/** The shape of the parameter for weights tied to this node; no dimensions if there is none. */
struct rfl_shape rfl_net_first_param(const struct rfl_net_builder *b, int owner);

/** Make names up to the matching leave relative to this block: in "layer1.0", "conv1" becomes
 * "layer1.0.conv1". Blocks nest up to 7 levels deep; names have at most 127 characters. */
void rfl_net_enter(struct rfl_net_builder *b, const char *fmt, ...) RFL_PRINTF(2, 3);
/** Enter a block, in which the nodes up to the matching leave are one repeated block. */
void rfl_net_enter_block(struct rfl_net_builder *b, const char *fmt, ...) RFL_PRINTF(2, 3);
/** Leave the innermost block, if any. */
void rfl_net_leave(struct rfl_net_builder *b);

/** Fail with RFL_EINVAL for a reason that no operation checks, unless the builder has already
 * failed; model and block are prefixed to the message.
 * @return -1 */
int rfl_net_refuse(struct rfl_net_builder *b, const char *fmt, ...) RFL_PRINTF(2, 3);

/**
 * Append a node whose operation, attributes and inputs are set; its shape and parameters are
 * inferred. All calls below use this function.
 *
 * @param node  copied, including its list of inputs
 * @param name  relative to the block; NULL: a functional step, named after its block
 */
int rfl_net_append(struct rfl_net_builder *b, const struct rfl_node *node, const char *name);

/** Fill the attributes that follow from the shape of the first input: channels and features. */
void rfl_net_infer_attrs(const struct rfl_net_builder *b, struct rfl_node *node);

/** An operation with one input or two; `...` are members of struct rfl_node. */
#define rfl_net_one(b, op_, x, name_, ...)                                                     \
	rfl_net_append(                                                                        \
		(b),                                                                           \
		&(const struct rfl_node){                                                      \
			.op = (op_), .ninputs = 1, .input = (const int[]){ x }, __VA_ARGS__ }, \
		(name_))
#define rfl_net_two(b, op_, x, y, ...)                                                            \
	rfl_net_append(                                                                           \
		(b),                                                                              \
		&(const struct rfl_node){                                                         \
			.op = (op_), .ninputs = 2, .input = (const int[]){ x, y }, __VA_ARGS__ }, \
		NULL)

/** The image, {channels, height, width}, or the token indices, {tokens}. Must be called first. */
int rfl_net_input(struct rfl_net_builder *b, int64_t channels, int64_t height, int64_t width);
int rfl_net_tokens(struct rfl_net_builder *b, int64_t tokens);
/** One of several inputs {tokens, features}, of equal shape, that need gradients. */
int rfl_net_sequence(struct rfl_net_builder *b, const char *name, int64_t tokens, int64_t features);

/** A learned tensor; `...` are members of struct rfl_parameter. */
#define rfl_net_parameter(b, name_, ...)                                              \
	rfl_net_append((b),                                                           \
		       &(const struct rfl_node){ .op = RFL_OP_PARAMETER,              \
						 .attr.parameter = { __VA_ARGS__ } }, \
		       (name_))
/** A learned tensor with this shape in the state_dict; the node's shape omits the first `drop`
 * dimensions, which must be of size 1. */
#define rfl_parameter(b, name, shape_, drop_) \
	rfl_net_parameter(b, name, .stored = *(shape_), .drop = (drop_))
/** A table of numbers that are not learned and not in the state_dict. */
#define rfl_constant(b, name_, shape_)                                               \
	rfl_net_append((b),                                                          \
		       &(const struct rfl_node){ .op = RFL_OP_CONSTANT,              \
						 .attr.constant.shape = *(shape_) }, \
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
int rfl_net_conv2d(struct rfl_net_builder *b, int x, const char *name, int64_t out_channels,
		   const struct rfl_window_args *args);
#define rfl_conv2d(b, x, name, out_channels, ...) \
	rfl_net_conv2d((b), (x), (name), (out_channels), &(struct rfl_window_args){ __VA_ARGS__ })

int rfl_net_pool(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name,
		 const struct rfl_window_args *args);
#define rfl_max_pool(b, x, name, ...) \
	rfl_net_pool((b), RFL_OP_MAX_POOL, (x), (name), &(struct rfl_window_args){ __VA_ARGS__ })
#define rfl_avg_pool(b, x, name, ...) \
	rfl_net_pool((b), RFL_OP_AVG_POOL, (x), (name), &(struct rfl_window_args){ __VA_ARGS__ })
/** Pool to {channels, out_h, out_w}.
 * @param name  NULL if the model calls a function, not a module */
#define rfl_adaptive_avg_pool(b, x, name, h, w)               \
	rfl_net_one(b, RFL_OP_ADAPTIVE_AVG_POOL, (x), (name), \
		    .attr.adaptive_pool = { .out_h = (h), .out_w = (w) })

/** Normalise over all but the first dimension of an image, per channel. */
int rfl_batch_norm(struct rfl_net_builder *b, int x, const char *name);
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
/** A linear layer without bias that uses the weight of node `owner`, an embedding or a linear
 * layer. It has as many outputs as that weight has rows. */
int rfl_linear_tied(struct rfl_net_builder *b, int x, const char *name, int owner);
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

/* Functional steps; they have the path of the block that runs them. */

/** RFL_OP_ADD, SUB, MUL, DIV of two tensors, broadcast as in numpy. */
#define rfl_binary(b, op, x, y, inplace_) rfl_net_two(b, (op), (x), (y), .inplace = (inplace_))
#define rfl_add(b, x, y, inplace)         rfl_binary(b, RFL_OP_ADD, x, y, inplace)
/** x * scale + shift. */
#define rfl_affine(b, x, scale_, shift_)         \
	rfl_net_one(b, RFL_OP_AFFINE, (x), NULL, \
		    .attr.affine = { .scale = (scale_), .shift = (shift_) })
/** Rotary position embedding (Su et al. 2021) of {.., tokens, features}: pair i of token t is
 * rotated by t theta^(-2 i / features). */
#define rfl_rope(b, x, theta_) rfl_net_one(b, RFL_OP_ROPE, (x), NULL, .attr.rope.theta = (theta_))
/** {.., m, k} times {.., k, n}, or times {.., n, k} with transpose_b. `causal`: half of the result,
 * or of x, is under a causal mask and not used. */
#define rfl_matmul(b, x, y, transpose, causal_) \
	rfl_net_two(b, RFL_OP_MATMUL, (x), (y), \
		    .attr.matmul = { .transpose_b = (transpose), .causal = (causal_) })
/** softmax(q k^T / sqrt(features)) v of {.., tokens, features} as one operation. */
#define rfl_sdpa(b, q, k, v, causal_, dropout_)                                               \
	rfl_net_append((b),                                                                   \
		       &(const struct rfl_node){                                              \
			       .op = RFL_OP_SDPA,                                             \
			       .ninputs = 3,                                                  \
			       .input = (const int[]){ (q), (k), (v) },                       \
			       .attr.sdpa = { .causal = (causal_), .dropout = (dropout_) } }, \
		       NULL)

/** RFL_OP_MEAN, SUM or MAX over n dimensions starting at `from`. */
#define rfl_reduce(b, op, x, from, n, keepdim_) \
	rfl_net_one(b, (op), (x), NULL,         \
		    .attr.reduce = { .first = (from), .count = (n), .keepdim = (keepdim_) })

/** Merge all dimensions into one. */
#define rfl_flatten(b, x) rfl_net_one(b, RFL_OP_FLATTEN, (x), NULL, .attr.flatten.first = 0)

/** Lists of sizes for the calls below: RFL_DIMS(heads, tokens, 64). */
#define RFL_DIMS(...)                                                                \
	(&(const struct rfl_shape){                                                  \
		.ndim = (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
		.dim = { __VA_ARGS__ } })
/** View the same elements in another shape. */
#define rfl_reshape(b, x, shape_) \
	rfl_net_one(b, RFL_OP_RESHAPE, (x), NULL, .attr.reshape.shape = *(shape_))
/** Output dimension i is input dimension order->dim[i]. */
int rfl_permute(struct rfl_net_builder *b, int x, const struct rfl_shape *order);
/** n elements of a dimension: from, from + by, from + 2 by, ... */
#define rfl_slice(b, x, dim_, from, n, by)      \
	rfl_net_one(b, RFL_OP_SLICE, (x), NULL, \
		    .attr.slice = { .dim = (dim_), .start = (from), .length = (n), .step = (by) })
/** A copy with a contiguous layout. */
#define rfl_contiguous(b, x) rfl_unary(b, RFL_OP_CONTIGUOUS, x, NULL, RFL_OUT_OF_PLACE)
/** Join 1 to RFL_NET_MAX_INPUTS tensors along `dim`. */
int rfl_concat(struct rfl_net_builder *b, const int *xs, int n, int64_t dim);
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

/* Adjustments for a few models. */

/** Mark step x as a module of this name in the published model, not a function call. */
int rfl_net_as_module(struct rfl_net_builder *b, int x, const char *name);

/** Mark layer x as a function call: it has parameters and a path, but its module is not called. */
int rfl_net_as_function(struct rfl_net_builder *b, int x);

/** Mark operation x as overwriting its first input, like RFL_INPLACE in other calls. */
int rfl_net_in_place(struct rfl_net_builder *b, int x);

/** Put the parameters of these n nodes, which must be the latest created, in this order in the
 * state_dict instead of execution order. The list may include nodes without parameters, but each
 * node only once, and none with a borrowed parameter. */
void rfl_net_state_dict_order(struct rfl_net_builder *b, const int *nodes, int n);

#endif
