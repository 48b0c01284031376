/*
 * blocks.h - the interface between families and the zoo (a table of models and a function that
 * builds one), the layers in lists of families, and the blocks shared by several of them, with
 * torchvision's module names. Only for files of zoo/ and for
 * lm/net.c.
 */
#ifndef RFL_COMPLEXITY_ZOO_BLOCKS_H
#define RFL_COMPLEXITY_ZOO_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "complexity/net/build.h"
#include "complexity/zoo.h"

/** The user's options, with the model's own values as defaults. */
struct rfl_zoo_sizes {
	int64_t image_size, channels, classes;
	int64_t context_length;
	enum rfl_attention attention; /**< AUTO: as in the published code */
	const void *config;           /**< from the model's row */
};

struct rfl_zoo_entry {
	struct rfl_zoo_model model;
	const void *config; /**< the differences between the models of the family */
};

struct rfl_zoo_family {
	const struct rfl_zoo_entry *entries; /**< by size */
	size_t nentries;
	/** Build the model from its input x, an image or tokens, and return the logits. */
	int (*build)(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes);
};
#define RFL_ZOO_FAMILY(name_, entries_, build_)                                              \
	const struct rfl_zoo_family rfl_zoo_##name_ = { .entries = (entries_),               \
							.nentries = RFL_ARRAY_LEN(entries_), \
							.build = (build_) }

/** A row of a family's table for a model that reads images; `...` is its config. */
#define RFL_ZOO_IMAGES(family_, name_, title_, summary_, size_, channels_, classes_, bias_, ...) \
	{                                                                                        \
		.model = { name_, title_,    family_,  summary_,                                 \
			   size_, channels_, classes_, .score_bias = (bias_) },                  \
		.config = __VA_ARGS__                                                            \
	}
/** A row for a model with the 1000 classes of ImageNet. */
#define RFL_ZOO_IMAGENET(family_, name_, title_, summary_, size_, ...) \
	RFL_ZOO_IMAGES(family_, name_, title_, summary_, size_, 0, 1000, false, __VA_ARGS__)

/** A row for a model that reads text; `aliases_` is an array ended by NULL. */
#define RFL_ZOO_TEXT(family_, name_, title_, summary_, classes_, context_, most_, aliases_, ...) \
	{                                                                                        \
		.model = { name_, title_,   family_,  summary_, 0,                               \
			   0,     classes_, context_, most_,    .aliases = (aliases_) },         \
		.config = __VA_ARGS__                                                            \
	}
#define RFL_ZOO_ALIASES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/** Image models by age, then language models. Each family is a file here and a name in this
 * list. */
#define RFL_ZOO_FAMILIES(F)                                                                     \
	F(cifar_cnn)                                                                            \
	F(alexnet)                                                                              \
	F(vgg)                                                                                  \
	F(googlenet)                                                                            \
	F(inception)                                                                            \
	F(resnet)                                                                               \
	F(squeezenet)                                                                           \
	F(densenet)                                                                             \
	F(mobilenet)                                                                            \
	F(mnasnet) F(shufflenet) F(efficientnet) F(regnet) F(convnext) F(vit) F(swin) F(maxvit) \
		F(cs336) F(gpt2) F(llama) F(attention)
#define F(name_) extern const struct rfl_zoo_family rfl_zoo_##name_;
RFL_ZOO_FAMILIES(F)
#undef F

/* --- layers for rfl_chain() --- */

#define LAYER(op_, name_, ...)                                   \
	{                                                        \
		.op = RFL_OP_##op_, .name = (name_), __VA_ARGS__ \
	}
/* An operation without attributes; 0: no layer. */
#define STEP(op_, name_)                     \
	{                                    \
		.op = (op_), .name = (name_) \
	}
#define INPLACE(op_, name_)                                   \
	{                                                     \
		.op = (op_), .name = (name_), .inplace = true \
	}
#define RELU(name)       INPLACE(RFL_OP_RELU, name)
#define GELU(name)       STEP(RFL_OP_GELU, name)
#define BATCH_NORM(name) STEP(RFL_OP_BATCH_NORM, name)
#define FLATTEN(name)    STEP(RFL_OP_FLATTEN, name)

/* Windows, with half the kernel as padding, or without padding. */
#define WINDOW(h_, w_, stride_, pad_h_, pad_w_)                                           \
	.kernel_h = (h_), .kernel_w = (w_), .stride_h = (stride_), .stride_w = (stride_), \
	.pad_h = (pad_h_), .pad_w = (pad_w_)
#define SAME(kernel, stride)  WINDOW(kernel, kernel, stride, (kernel) / 2, (kernel) / 2)
#define VALID(kernel, stride) WINDOW(kernel, kernel, stride, 0, 0)
/* `...` is a window. */
#define CONV_OF(name, out, groups_, bias_, ...)     \
	LAYER(CONV2D, name,                         \
	      .attr.conv2d = { .out_channels = out, \
			       __VA_ARGS__,         \
			       .dilation_h = 1,     \
			       .dilation_w = 1,     \
			       .groups = groups_,   \
			       .bias = bias_ })
/* Padded by half the kernel, without a bias; the same with a bias, or in groups. */
#define CONV(name, out, kernel, stride)   CONV_OF(name, out, 1, false, SAME(kernel, stride))
#define BIASED(name, out, kernel, stride) CONV_OF(name, out, 1, true, SAME(kernel, stride))
#define GROUPED(name, out, kernel, stride, groups) \
	CONV_OF(name, out, groups, false, SAME(kernel, stride))
#define PATCHES(name, out, size) CONV_OF(name, out, 1, true, VALID(size, size))
/* CONV, BATCH_NORM and an activation, in groups, as a Sequential at `path`, a literal. */
#define CONV_NORM(path, out, kernel, stride, groups, activation)                \
	GROUPED(path ".0", out, kernel, stride, groups), BATCH_NORM(path ".1"), \
		INPLACE(activation, path ".2")

#define POOL(op, name, kernel, stride, pad, ceil) \
	LAYER(op, name,                           \
	      .attr.pool = { WINDOW(kernel, kernel, stride, pad, pad), .ceil_mode = ceil })
#define MAX_POOL(name, kernel, stride, pad) POOL(MAX_POOL, name, kernel, stride, pad, false)
#define AVG_POOL(name, kernel, stride, pad) POOL(AVG_POOL, name, kernel, stride, pad, false)
#define CEIL_POOL(name, kernel, stride)     POOL(MAX_POOL, name, kernel, stride, 0, true)
/* The average over each of side x side areas. */
#define AVERAGE(name, side) LAYER(ADAPTIVE_AVG_POOL, name, .attr.adaptive_pool = { side, side })
/* `...` are members of struct rfl_linear. */
#define LINEAR(name, out, ...) \
	LAYER(LINEAR, name, .attr.linear = { .out_features = out, __VA_ARGS__ })
#define FC(name, out)                   LINEAR(name, out, .bias = true)
#define EMBEDDING(name, rows, features) LAYER(EMBEDDING, name, .attr.embedding = { rows, features })
#define LAYER_NORM(name, epsilon)       LAYER(LAYER_NORM, name, .attr.norm.eps = epsilon)
#define DROPOUT(name, p)                LAYER(DROPOUT, name, .attr.dropout = { p })
#define DEPTH(name, p)                  LAYER(STOCHASTIC_DEPTH, name, .attr.dropout = { p })

/* Functional steps. */
#define RESHAPE(...)                LIKE(RFL_DIMS(__VA_ARGS__))
#define LIKE(shape_)                LAYER(RESHAPE, NULL, .attr.reshape.shape = *(shape_))
#define PERMUTE(...)                LAYER(PERMUTE, NULL, .attr.permute.order = { __VA_ARGS__ })
#define COPY_IF(when)               STEP((when) ? RFL_OP_CONTIGUOUS : 0, NULL)
#define COPY                        COPY_IF(true)
#define SLICE(dim_, from, n, by)    LAYER(SLICE, NULL, .attr.slice = { dim_, from, n, by })
#define GATHER(...)                 LAYER(GATHER, NULL, .attr.gather.shape = *RFL_DIMS(__VA_ARGS__))
#define PAD(bottom_, right_)        LAYER(PAD, NULL, .attr.padding = { 0, 0, bottom_, 0, right_ })
#define AFFINE(scale_, shift_)      LAYER(AFFINE, NULL, .attr.affine = { scale_, shift_ })
#define REDUCE(op, first_, n, keep) LAYER(op, NULL, .attr.reduce = { first_, n, keep })

/* --- blocks --- */

/** Squeeze and excitation (Hu et al., CVPR 2018) at `path`: "avgpool", "fc1" to so many channels,
 * "activation", "fc2", "scale_activation"; then the input is multiplied by the scale of each
 * channel. */
int rfl_zoo_squeeze_excitation(struct rfl_net_builder *b, int x, const char *path, int64_t channels,
			       struct rfl_node activation, enum rfl_op scale);

/** The multiple of `divisor` nearest to `width`, but at least `divisor` and at least 90% of
 * `width`. */
int64_t rfl_zoo_divisible(double width, int64_t divisor);

/** Put the parameters of the current block in the order in which the published code creates them:
 * first those with names that begin with modules[0], and so on. Names are relative to the block;
 * the list is ended by NULL and must cover all of them. */
void rfl_zoo_state_dict_order(struct rfl_net_builder *b, const char *const *modules);

/* --- transformers --- */

/** As one operation, or as one for every elementwise step. */
enum rfl_zoo_form { RFL_ZOO_WHOLE, RFL_ZOO_STEPS };

/** RFL_ZOO_STEPS for composed attention only, which also composes the loss. */
enum rfl_zoo_form rfl_zoo_form_of(struct rfl_net_builder *b, enum rfl_attention attention);

/** Normalise over the last dimension: (x - mean) rsqrt(variance + eps) weight + bias; for
 * RFL_OP_RMS_NORM, x rsqrt(mean(x^2) + eps) weight. */
int rfl_zoo_norm(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name, double eps,
		 enum rfl_zoo_form form);
#define rfl_zoo_layer_norm(b, x, name, eps, form) \
	rfl_zoo_norm(b, RFL_OP_LAYER_NORM, x, name, eps, form)

/** View {tokens, features} as {heads, tokens, features / heads}. */
int rfl_zoo_split_heads(struct rfl_net_builder *b, int x, int64_t heads);

/**
 * Turn {heads, tokens, features} into {tokens, heads x features}.
 * @param copy  whether memory is ordered by head and must be copied, as without fused attention
 */
int rfl_zoo_merge_heads(struct rfl_net_builder *b, int x, bool copy);

struct rfl_zoo_attention_args {
	bool fused; /**< use one operation; the members below have no effect */
	enum rfl_zoo_form softmax;
	bool causal;
	/** Divide the query, not the scores, by sqrt(features). */
	bool scale_query;
	/** Whether the inputs of a batched product are strided views that must be copied. */
	bool copy_q, copy_k, copy_v;
	double dropout; /**< after the softmax; 0: none */
};

/** softmax(q k^T / sqrt(features)) v of {heads, tokens, features}, optionally with more leading
 * dimensions. */
int rfl_zoo_attend(struct rfl_net_builder *b, int q, int k, int v,
		   const struct rfl_zoo_attention_args *args);

/** The two halves of rfl_zoo_attend(), for attention that changes the scores in between. */
int rfl_zoo_attention_scores(struct rfl_net_builder *b, int q, int k,
			     const struct rfl_zoo_attention_args *args);
int rfl_zoo_attention_values(struct rfl_net_builder *b, int scores, int v,
			     const struct rfl_zoo_attention_args *args);

#endif
