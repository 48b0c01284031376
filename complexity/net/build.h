/*
 * build.h - the builder, which creates networks. Code that only reads nets does not need it.
 *
 * Every call adds one operation and returns its output tensor as the index of a node. After a
 * failure (such as an invalid shape) further calls do nothing, and rfl_net_finish() reports the
 * failure with the name of the layer:
 *
 *	x = rfl_net_input(b, 3, 224, 224);
 *	x = rfl_chain(b, x, { .op = RFL_OP_BATCH_NORM, .name = "bn1" },
 *		      { .op = RFL_OP_RELU, .name = "relu", .inplace = true });
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
	int number[RFL_NET_MAX_DEPTH];        /**< of the next layer "#" in it */
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

/**
 * Append layers with one input, each after the previous one. The eps and momentum of a batch norm
 * are the builder's; a layer that is RFL_OP_INPUT, which stands for no layer, is skipped.
 *
 * @param layers  with op, attributes and name; NULL: a functional step, "#": the number of layers
 *                of this name before it in the block, as in a Sequential
 */
int rfl_net_chain(struct rfl_net_builder *b, int x, const struct rfl_node *layers, size_t n);
#define rfl_chain(b, x, ...)                                              \
	rfl_net_chain((b), (x), (const struct rfl_node[]){ __VA_ARGS__ }, \
		      sizeof((const struct rfl_node[]){ __VA_ARGS__ }) / sizeof(struct rfl_node))

/** An operation with two inputs; `...` are members of struct rfl_node. */
#define rfl_net_two(b, op_, x, y, ...)                                                            \
	rfl_net_append(                                                                           \
		(b),                                                                              \
		&(const struct rfl_node){                                                         \
			.op = (op_), .ninputs = 2, .input = (const int[]){ x, y }, __VA_ARGS__ }, \
		NULL)

/** Append an input. It comes first; only sequences {tokens, features}, which need gradients, may be
 * several, of equal shape. */
int rfl_net_add_input(struct rfl_net_builder *b, const char *name, enum rfl_dtype dtype,
		      const struct rfl_shape *shape);
/** The image, or the token indices, as the only input; one of several sequences. */
#define rfl_net_input(b, channels, height, width) \
	rfl_net_add_input(b, "input", RFL_DTYPE_F32, RFL_DIMS(channels, height, width))
#define rfl_net_tokens(b, tokens) rfl_net_add_input(b, "input", RFL_DTYPE_I64, RFL_DIMS(tokens))
#define rfl_net_sequence(b, name, tokens, features) \
	rfl_net_add_input(b, name, RFL_DTYPE_F32, RFL_DIMS(tokens, features))

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

/* Functional steps of several tensors; they have the path of the block that runs them. */

/** RFL_OP_ADD, SUB, MUL, DIV of two tensors, broadcast as in numpy. */
#define rfl_binary(b, op, x, y, inplace_) rfl_net_two(b, (op), (x), (y), .inplace = (inplace_))
#define rfl_add(b, x, y, inplace)         rfl_binary(b, RFL_OP_ADD, x, y, inplace)
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

/** Join 1 to RFL_NET_MAX_INPUTS tensors along `dim`. */
int rfl_concat(struct rfl_net_builder *b, const int *xs, int n, int64_t dim);

/** Lists of sizes: RFL_DIMS(heads, tokens, 64). */
#define RFL_DIMS(...)                                                                \
	(&(const struct rfl_shape){                                                  \
		.ndim = (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
		.dim = { __VA_ARGS__ } })

/** Put the parameters of these n nodes, which must be the latest created, in this order in the
 * state_dict instead of execution order. The list may include nodes without parameters, but each
 * node only once, and none with a borrowed parameter. */
void rfl_net_state_dict_order(struct rfl_net_builder *b, const int *nodes, int n);

#endif
