/*
 * blocks.h - the interface between families and the zoo (a table of models and a function that
 * builds one), and the blocks shared by families, with torchvision's module names.
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
		.model = { name_,                                                                \
			   title_,                                                               \
			   family_,                                                              \
			   summary_,                                                             \
			   .classes = (classes_),                                                \
			   .context_length = (context_),                                         \
			   .max_context_length = (most_),                                        \
			   .aliases = (aliases_) },                                              \
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
	F(densenet) F(mobilenet) F(mnasnet) F(shufflenet) F(efficientnet) F(regnet) F(convnext) \
		F(vit) F(swin) F(maxvit) F(cs336) F(gpt2) F(llama) F(attention)
#define F(name_) extern const struct rfl_zoo_family rfl_zoo_##name_;
RFL_ZOO_FAMILIES(F)
#undef F

/* --- blocks --- */

/** Stands for no activation. */
#define RFL_ZOO_NO_ACTIVATION RFL_OP_INPUT

/** Sizes default to 1, `activation` to none. */
struct rfl_zoo_conv_norm_args {
	int64_t kernel, stride, groups;
	enum rfl_op activation; /**< in place */
};

/** A Sequential at `path`: "0" a convolution without bias, padded by half its kernel, "1" a batch
 * norm, "2" an activation. */
int rfl_zoo_conv_norm_act(struct rfl_net_builder *b, int x, const char *path, int64_t out_channels,
			  const struct rfl_zoo_conv_norm_args *args);
#define rfl_zoo_conv_norm(b, x, path, out_channels, ...)        \
	rfl_zoo_conv_norm_act((b), (x), (path), (out_channels), \
			      &(struct rfl_zoo_conv_norm_args){ __VA_ARGS__ })

/** The three as part of a larger Sequential, with the convolution at index `first`. */
int rfl_zoo_conv_norm_from(struct rfl_net_builder *b, int x, int first, int64_t out_channels,
			   const struct rfl_zoo_conv_norm_args *args);

/** The variants of a squeeze-and-excitation block. */
struct rfl_zoo_squeeze_args {
	int64_t channels; /**< between the two convolutions */
	enum rfl_op activation;
	enum rfl_inplace inplace; /**< of that activation */
	enum rfl_op scale;        /**< after the second convolution, out of place */
};

/** Squeeze and excitation (Hu et al., CVPR 2018) at `path`: "avgpool", "fc1", "activation", "fc2",
 * "scale_activation"; then the input is multiplied by the scale of each channel. */
int rfl_zoo_squeeze_excitation(struct rfl_net_builder *b, int x, const char *path,
			       const struct rfl_zoo_squeeze_args *args);

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

/** RFL_ZOO_STEPS for composed attention only. */
enum rfl_zoo_form rfl_zoo_form_of(enum rfl_attention attention);

/** Normalise over the last dimension: (x - mean) rsqrt(variance + eps) weight + bias; for
 * RFL_OP_RMS_NORM, x rsqrt(mean(x^2) + eps) weight. */
int rfl_zoo_norm(struct rfl_net_builder *b, enum rfl_op op, int x, const char *name, double eps,
		 enum rfl_zoo_form form);
#define rfl_zoo_layer_norm(b, x, name, eps, form) \
	rfl_zoo_norm(b, RFL_OP_LAYER_NORM, x, name, eps, form)

/** The steps are: the maximum of each row, x - max, exp, the sum of each row, exp / sum. */
int rfl_zoo_softmax(struct rfl_net_builder *b, int x, enum rfl_zoo_form form);

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
