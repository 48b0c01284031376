/*
 * blocks.h - what several families are made of: blocks with the module names that torchvision gives
 * them, normalisations and softmax as one operation or in steps, attention between heads.
 */
#ifndef RFL_COMPLEXITY_ZOO_BLOCKS_H
#define RFL_COMPLEXITY_ZOO_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "complexity/zoo/impl.h"

/** What follows the normalisation of a convolution, where nothing does. */
#define RFL_ZOO_NO_ACTIVATION RFL_OP_INPUT

/** 0 stands for 1, and for no activation. */
struct rfl_zoo_conv_norm_args {
	int64_t kernel, stride, groups;
	enum rfl_op activation; /**< in place */
};

/**
 * A Sequential at `path` of "0" a convolution without bias that is padded by half its kernel, "1" a
 * batch norm, "2" an activation.
 */
int rfl_zoo_conv_norm_act(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
			  const struct rfl_zoo_conv_norm_args *args);
#define rfl_zoo_conv_norm(b, x, path, out_channels, ...)        \
	rfl_zoo_conv_norm_act((b), (x), (path), (out_channels), \
			      &(struct rfl_zoo_conv_norm_args){ __VA_ARGS__ })

/** The same among the modules of a larger Sequential, where the convolution has number `first`. */
int rfl_zoo_conv_norm_from(struct rfl_net_builder *b, int x, int first, int64_t out_channels,
			   const struct rfl_zoo_conv_norm_args *args);

/**
 * The BasicConv2d of GoogLeNet and Inception v3 at `path`: "conv" without bias, "bn", and an
 * in-place ReLU that is called as a function.
 */
int rfl_zoo_basic_conv(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
		       const struct rfl_conv2d_args *args);
#define rfl_zoo_basic(b, x, path, out_channels, ...)         \
	rfl_zoo_basic_conv((b), (x), (path), (out_channels), \
			   &(struct rfl_conv2d_args){ __VA_ARGS__ })

/** How a squeeze-and-excitation block is written. */
struct rfl_zoo_squeeze_args {
	int64_t channels; /**< between the two convolutions */
	enum rfl_op activation;
	enum rfl_inplace inplace; /**< of that activation */
	enum rfl_op scale;        /**< after the second convolution, out of place */
};

/**
 * Squeeze and excitation (Hu et al., CVPR 2018) at `path`: "avgpool", "fc1", "activation", "fc2",
 * "scale_activation", and the input times the scale of each channel.
 */
int rfl_zoo_squeeze_excitation(struct rfl_net_builder *b, int x, const char *path,
			       const struct rfl_zoo_squeeze_args *args);

/**
 * The multiple of `divisor` that is nearest to `width`, at least `divisor`, and not more than a
 * tenth below.
 */
int64_t rfl_zoo_divisible(double width, int64_t divisor);

/* --- transformers --- */

/** One operation, or every elementwise step an operation of its own. */
enum rfl_zoo_form { RFL_ZOO_WHOLE, RFL_ZOO_STEPS };

/** Composed attention comes with normalisations in steps; the other settings leave them whole. */
enum rfl_zoo_form rfl_zoo_form_of(enum rfl_attention attention);

/** Nodes that own parameters, for those who put a state_dict in order. */
struct rfl_zoo_owners {
	int n, node[16];
};
void rfl_zoo_own(struct rfl_zoo_owners *owners, int node);

/**
 * Over the last dimension: (x - mean) rsqrt(variance + eps) weight + bias, or of RFL_OP_RMS_NORM
 * x rsqrt(mean(x^2) + eps) weight.
 * @param owners  gets the nodes that own weight and bias; may be NULL
 */
int rfl_zoo_norm(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name, double eps,
		 enum rfl_zoo_form form, struct rfl_zoo_owners *owners);
#define rfl_zoo_layer_norm(b, x, name, eps, form, owners) \
	rfl_zoo_norm(b, RFL_OP_LAYER_NORM, x, name, eps, form, owners)

/** In steps: the maximum of each row, x - max, exp, the sum of each row, exp / sum. */
int rfl_zoo_softmax(struct rfl_net_builder *b, int x, enum rfl_zoo_form form);

/** {tokens, features} seen as {heads, tokens, features / heads}. */
int rfl_zoo_split_heads(struct rfl_net_builder *b, int x, int64_t heads);

/**
 * {heads, tokens, features} as {tokens, heads x features}.
 * @param copy  memory is in the order of the heads, so the tensor must be laid out afresh; a fused
 *              attention returns memory in the order of the tokens
 */
int rfl_zoo_merge_heads(struct rfl_net_builder *b, int x, bool copy);

struct rfl_zoo_attention_args {
	bool fused; /**< one operation; what is said below of steps is void */
	enum rfl_zoo_form softmax;
	bool causal;
	/** The query is divided by sqrt(features), not the scores. */
	bool scale_query;
	/** Inputs of a batched product that are strided views, and are laid out afresh for it. */
	bool copy_q, copy_k, copy_v;
	double dropout; /**< of the softmax; 0: there is none */
};

/** softmax(q k^T / sqrt(features)) v of {heads, tokens, features}, or with more in front. */
int rfl_zoo_attend(struct rfl_net_builder *b, int q, int k, int v,
		   const struct rfl_zoo_attention_args *args);

/** The two halves of it, for those who do something to the scores in between. */
int rfl_zoo_attention_scores(struct rfl_net_builder *b, int q, int k,
			     const struct rfl_zoo_attention_args *args);
int rfl_zoo_attention_values(struct rfl_net_builder *b, int scores, int v,
			     const struct rfl_zoo_attention_args *args);

#endif
