/*
 * build.h - how a zoo file writes a network down. Not for those who only read nets.
 *
 * Every call adds one operation and returns its tensor: the index of a node. The first call that
 * cannot be right (a shape dies, memory is short) makes the builder fail; the calls after it do
 * nothing, and rfl_net_finish() reports the failure once, naming the layer:
 *
 *	x = rfl_net_input(b, 3, 224, 224);
 *	x = rfl_conv2d(b, x, "conv1", 64, .kernel = 7, .stride = 2, .pad = 3);
 *	x = rfl_batch_norm(b, x, "bn1");
 *	x = rfl_relu(b, x, "relu", RFL_INPLACE);
 *
 * Parameters are created with their operation, so the order of the calls is the order of the
 * state_dict.
 *
 * Shapes are per sample: {channels, height, width} of an image, {tokens, features} of a text.
 * In all calls x is a tensor, or any int where the builder has failed. A name is relative to the
 * block; names, lists and arguments are copied. The result is the new tensor, or -1 where the
 * builder has failed. A builder is not NULL but where it says so.
 */
#ifndef RFL_COMPLEXITY_NET_BUILD_H
#define RFL_COMPLEXITY_NET_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

struct rfl_net_builder;

/** Whether an operation may overwrite its first input, as the published model does. */
enum rfl_inplace { RFL_OUT_OF_PLACE, RFL_INPLACE };

/** A new builder, or NULL when memory is short. Both texts are copied. */
struct rfl_net_builder *rfl_net_builder_new(const char *model, const char *family) RFL_WARN_UNUSED;

/** What people call the model. Copied. */
void rfl_net_title(struct rfl_net_builder *b, const char *title);

/** For a net that is given up. Accepts NULL. */
void rfl_net_builder_free(struct rfl_net_builder *b);

/**
 * Turn the builder into a net.
 *
 * @param take_b   released, also on failure; NULL is a builder that had no memory
 * @param output   the tensor of the logits: {classes}, or {rows, classes}, per sample
 * @param ret      set on success only; release with rfl_net_free()
 * @return RFL_OK, or the builder's first failure
 */
enum rfl_rc rfl_net_finish(struct rfl_net_builder *take_b, int output, struct rfl_net **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The shape of a tensor per sample; all zeros when the builder has failed. */
struct rfl_shape rfl_net_shape(const struct rfl_net_builder *b, int x);

/** Elements of the first dimension: the channels of an image. */
int64_t rfl_net_channels(const struct rfl_net_builder *b, int x);

/** Names until the matching leave are relative to this block: "layer1.0" makes "layer1.0.conv1".
 * Blocks nest 7 deep, a name has 127 characters at most. */
void rfl_net_enter(struct rfl_net_builder *b, const char *fmt, ...) RFL_PRINTF(2, 3);
/** Leave the innermost block; nothing where there is none. */
void rfl_net_leave(struct rfl_net_builder *b);

/** Elements of a tensor's last dimension: the features of a token. */
int64_t rfl_net_features(const struct rfl_net_builder *b, int x);

/** eps and momentum of the batch norms that follow; before the first call 1e-5 and 0.1. */
void rfl_net_batch_norm_defaults(struct rfl_net_builder *b, double eps, double momentum);

/** The image, {channels, height, width}, or the indices of tokens, {tokens}. Must be the first
 * call. */
int rfl_net_input(struct rfl_net_builder *b, int64_t channels, int64_t height, int64_t width);
int rfl_net_tokens(struct rfl_net_builder *b, int64_t tokens);

/** Fail with RFL_EINVAL because of something that no operation would notice, unless the builder has
 * failed already; model and block are put in front of the words. @return -1 */
int rfl_net_refuse(struct rfl_net_builder *b, const char *fmt, ...) RFL_PRINTF(2, 3);

/** A convolution over {channels, height, width}, sizes in pixels. 0 stands for 1 in kernel, stride,
 * dilation and groups. The _h and _w members win over the square ones. */
struct rfl_conv2d_args {
	int64_t kernel, kernel_h, kernel_w;
	int64_t stride, stride_h, stride_w;
	int64_t pad, pad_h, pad_w;
	int64_t dilation;
	int64_t groups;
	bool bias;
};
int rfl_net_conv2d(struct rfl_net_builder *b, int x, const char *name, int64_t out_channels,
		   const struct rfl_conv2d_args *args);
#define rfl_conv2d(b, x, name, out_channels, ...) \
	rfl_net_conv2d((b), (x), (name), (out_channels), &(struct rfl_conv2d_args){ __VA_ARGS__ })

/** A window over {channels, height, width}. stride 0 stands for the kernel size. The _h and _w
 * members win over the square ones. */
struct rfl_pool_args {
	int64_t kernel, kernel_h, kernel_w;
	int64_t stride, stride_h, stride_w;
	int64_t pad, pad_h, pad_w;
	bool ceil_mode, exclude_padding;
};
int rfl_net_max_pool(struct rfl_net_builder *b, int x, const char *name,
		     const struct rfl_pool_args *args);
#define rfl_max_pool(b, x, name, ...) \
	rfl_net_max_pool((b), (x), (name), &(struct rfl_pool_args){ __VA_ARGS__ })

int rfl_net_avg_pool(struct rfl_net_builder *b, int x, const char *name,
		     const struct rfl_pool_args *args);
#define rfl_avg_pool(b, x, name, ...) \
	rfl_net_avg_pool((b), (x), (name), &(struct rfl_pool_args){ __VA_ARGS__ })

/** Over all but the first dimension of an image, per channel. */
int rfl_batch_norm(struct rfl_net_builder *b, int x, const char *name);
/** @param probability  of an element, or of a sample's branch, to be dropped: 0 to 1 */
int rfl_dropout(struct rfl_net_builder *b, int x, const char *name, double probability);
int rfl_stochastic_depth(struct rfl_net_builder *b, int x, const char *name, double probability);
/** {.., features} to {.., out_features}. */
int rfl_linear(struct rfl_net_builder *b, int x, const char *name, int64_t out_features, bool bias);
/** Norms over the last dimension. @param eps  what is added to the variance, to the mean square */
int rfl_layer_norm(struct rfl_net_builder *b, int x, const char *name, double eps);
int rfl_rms_norm(struct rfl_net_builder *b, int x, const char *name, double eps);
/** Indices {tokens} to the rows {tokens, features} of a table of `vocab` rows. */
int rfl_embedding(struct rfl_net_builder *b, int x, const char *name, int64_t vocab,
		  int64_t features);

/** A linear layer without bias that uses the weight of an embedding or a linear layer, the node
 * `owner`: as many outputs as that weight has rows. */
int rfl_linear_tied(struct rfl_net_builder *b, int x, const char *name, int owner);

/** Attributes of a linear layer that few models need; see struct rfl_linear. */
struct rfl_linear_args {
	bool bias, in_proj, out_proj, transposed;
};
int rfl_net_linear(struct rfl_net_builder *b, int x, const char *name, int64_t out_features,
		   const struct rfl_linear_args *args);

/** To {channels, out_h, out_w}. @param name  NULL where the model calls the function, not a module
 */
int rfl_adaptive_avg_pool(struct rfl_net_builder *b, int x, const char *name, int64_t out_h,
			  int64_t out_w);

/**
 * An elementwise operation of one input that has no attributes: RFL_OP_RELU, RELU6, SIGMOID, TANH,
 * SILU, HARD_SIGMOID, HARD_SWISH, EXP, LOG, RSQRT, SQUARE, CAUSAL_MASK, SOFTMAX.
 * @param name  NULL where the model calls the function, not a module
 */
int rfl_unary(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name,
	      enum rfl_inplace inplace);
int rfl_relu(struct rfl_net_builder *b, int x, const char *name, enum rfl_inplace inplace);
int rfl_relu6(struct rfl_net_builder *b, int x, const char *name, enum rfl_inplace inplace);
int rfl_gelu(struct rfl_net_builder *b, int x, const char *name, bool tanh);

/* Functional steps: they carry the path of the block that runs them. */

/** RFL_OP_ADD, SUB, MUL, DIV of two tensors, broadcast as numpy does. */
int rfl_binary(struct rfl_net_builder *b, enum rfl_op op, int x, int y, enum rfl_inplace inplace);
int rfl_add(struct rfl_net_builder *b, int x, int y, enum rfl_inplace inplace);
/** x scale + shift. */
int rfl_affine(struct rfl_net_builder *b, int x, double scale, double shift);
/** Rotary position embedding (Su et al. 2021) of {.., tokens, features}: the pair i of token t is
 * turned by t theta^(-2 i / features). */
int rfl_rope(struct rfl_net_builder *b, int x, double theta);
/** {.., m, k} times {.., k, n}, or times {.., n, k} with transpose_b. `causal`: half of the result,
 * or of x, lies under a causal mask and is not used. */
int rfl_matmul(struct rfl_net_builder *b, int x, int y, bool transpose_b, bool causal);
/** softmax(q k^T / sqrt(features)) v of {.., tokens, features}, one operation. */
int rfl_sdpa(struct rfl_net_builder *b, int q, int k, int v, bool causal, double dropout);

/** RFL_OP_MEAN, SUM, MAX over `count` dimensions from `first` on. */
int rfl_reduce(struct rfl_net_builder *b, enum rfl_op op, int x, int64_t first, int64_t count,
	       bool keepdim);

/** All dimensions become one. */
int rfl_flatten(struct rfl_net_builder *b, int x);

/** Lists of sizes for the calls below: RFL_DIMS(heads, tokens, 64). */
#define RFL_DIMS(...)                                                                \
	(&(const struct rfl_shape){                                                  \
		.ndim = (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
		.dim = { __VA_ARGS__ } })
/** The same elements in another shape, of as many elements. */
int rfl_reshape(struct rfl_net_builder *b, int x, const struct rfl_shape *shape);
/** Output dimension i is input dimension order->dim[i]. */
int rfl_permute(struct rfl_net_builder *b, int x, const struct rfl_shape *order);
/** Elements start, start + step, ...: `length` of them. */
int rfl_slice(struct rfl_net_builder *b, int x, int64_t dim, int64_t start, int64_t length,
	      int64_t step);
/** The same tensor, laid out afresh: a copy. */
int rfl_contiguous(struct rfl_net_builder *b, int x);
/** 1 to RFL_NET_MAX_INPUTS tensors, one after the other along `dim`. */
int rfl_concat(struct rfl_net_builder *b, const int *xs, int n, int64_t dim);
int rfl_net_pad(struct rfl_net_builder *b, int x, const struct rfl_pad *pad);
/** The dimensions {height, width} that begin at `dim`, moved round by so many elements. */
int rfl_net_roll(struct rfl_net_builder *b, int x, int64_t dim, int64_t shift_h, int64_t shift_w);
/** Rows of a table {rows, features} at constant places: `shape`, whose last dimension is the
 * table's. */
int rfl_gather(struct rfl_net_builder *b, int table, const struct rfl_shape *shape);

/**
 * A learned tensor of this shape in the state_dict; its node leaves the first `drop` dimensions,
 * which are of size 1, out.
 */
int rfl_parameter(struct rfl_net_builder *b, const char *name, const struct rfl_shape *stored,
		  int64_t drop);
/** The same with all that can be said of it. */
int rfl_net_parameter(struct rfl_net_builder *b, const char *name,
		      const struct rfl_parameter *args);
/** A table of numbers that is not learned and not in the state_dict. */
int rfl_constant(struct rfl_net_builder *b, const char *name, const struct rfl_shape *shape);

/* What few models say of an operation beside its own call. */

/** The step x is a module of this name in the published model, not a call of a function. */
int rfl_net_as_module(struct rfl_net_builder *b, int x, const char *name);

/** The layer x has parameters and a path, but its function is called, not the module. */
int rfl_net_as_function(struct rfl_net_builder *b, int x);

/** The operation x overwrites its first input, as RFL_INPLACE says where a call has it. */
int rfl_net_in_place(struct rfl_net_builder *b, int x);

/* What is said of several nodes at once. */

/** The nodes from here to the end are one repeated block, which checkpointing runs again. */
void rfl_net_block_begin(struct rfl_net_builder *b);
void rfl_net_block_end(struct rfl_net_builder *b);

/** The nodes from here to the end are the steps of one function that the model's code calls (a
 * softmax written out); within it they are variables, and live until it returns. */
void rfl_net_function_begin(struct rfl_net_builder *b);
void rfl_net_function_end(struct rfl_net_builder *b);

/** The nodes from here to the end are a head that only training with auxiliary losses runs. */
void rfl_net_auxiliary_begin(struct rfl_net_builder *b);
void rfl_net_auxiliary_end(struct rfl_net_builder *b);

/** How the loss after the logits is written; fused where this is not called. */
void rfl_net_loss(struct rfl_net_builder *b, enum rfl_loss loss);

/**
 * The parameters of these n nodes were the last to be created; in the state_dict they are in this
 * order of nodes, not in the order of execution. The list may hold nodes without parameters, but
 * each node once, and none that borrows.
 */
void rfl_net_state_dict_order(struct rfl_net_builder *b, const int *nodes, int n);

#endif
