/*
 * impl.h - what a family's file gives to the zoo: a table of models and one function that
 * writes a model down. A new family is one file here and one line of the table in families.c.
 */
#ifndef RFL_COMPLEXITY_ZOO_IMPL_H
#define RFL_COMPLEXITY_ZOO_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "complexity/net/build.h"
#include "complexity/zoo.h"

/** The user's options, with the model's own values where he said nothing. */
struct rfl_zoo_sizes {
	int64_t image_size, channels, classes;
	int64_t context_length;
	enum rfl_attention attention; /**< AUTO: as the published code */
	const void *config;           /**< of the model's row */
};

struct rfl_zoo_entry {
	struct rfl_zoo_model model;
	const void *config; /**< what distinguishes it from the other models of its family */
};

struct rfl_zoo_family {
	const struct rfl_zoo_entry *entries; /**< by size */
	size_t nentries;
	/** Write the model down from its input x on, an image or tokens, and return the logits. */
	int (*build)(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes);
};
#define RFL_ZOO_FAMILY(name_, entries_, build_)                                              \
	const struct rfl_zoo_family rfl_zoo_##name_ = { .entries = (entries_),               \
							.nentries = RFL_ARRAY_LEN(entries_), \
							.build = (build_) }

/** A row of a family's table: a model that sees images; `...` is its config. */
#define RFL_ZOO_IMAGES(family_, name_, title_, summary_, size_, channels_, classes_, bias_, ...) \
	{                                                                                        \
		.model = { .name = (name_),                                                      \
			   .title = (title_),                                                    \
			   .family = (family_),                                                  \
			   .summary = (summary_),                                                \
			   .image_size = (size_),                                                \
			   .channels = (channels_),                                              \
			   .classes = (classes_),                                                \
			   .score_bias = (bias_) },                                              \
		.config = __VA_ARGS__                                                            \
	}
/** The same of the 1000 classes of ImageNet. */
#define RFL_ZOO_IMAGENET(family_, name_, title_, summary_, size_, ...) \
	RFL_ZOO_IMAGES(family_, name_, title_, summary_, size_, 0, 1000, false, __VA_ARGS__)

/** The same of a model that reads text; `aliases_` is an array ended by NULL. */
#define RFL_ZOO_TEXT(family_, name_, title_, summary_, classes_, context_, most_, aliases_, ...) \
	{                                                                                        \
		.model = { .name = (name_),                                                      \
			   .title = (title_),                                                    \
			   .family = (family_),                                                  \
			   .summary = (summary_),                                                \
			   .classes = (classes_),                                                \
			   .context_length = (context_),                                         \
			   .max_context_length = (most_),                                        \
			   .aliases = (aliases_) },                                              \
		.config = __VA_ARGS__                                                            \
	}
#define RFL_ZOO_ALIASES(...) ((const char *const[]){ __VA_ARGS__, NULL })

extern const struct rfl_zoo_family rfl_zoo_alexnet, rfl_zoo_cifar_cnn, rfl_zoo_convnext,
	rfl_zoo_cs336, rfl_zoo_densenet, rfl_zoo_efficientnet, rfl_zoo_googlenet, rfl_zoo_gpt2,
	rfl_zoo_inception, rfl_zoo_llama, rfl_zoo_maxvit, rfl_zoo_mnasnet, rfl_zoo_mobilenet,
	rfl_zoo_regnet, rfl_zoo_resnet, rfl_zoo_shufflenet, rfl_zoo_squeezenet, rfl_zoo_swin,
	rfl_zoo_vgg, rfl_zoo_vit;

#endif
