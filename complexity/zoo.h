/*
 * zoo.h - the built-in models. A family is a file of complexity/zoo/ with a table of models.
 */
#ifndef RFL_COMPLEXITY_ZOO_H
#define RFL_COMPLEXITY_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

RFL_API_BEGIN

/**
 * How attention and the steps around it are represented:
 * auto      as in the published code
 * composed  each elementwise step as a separate operation, as in the CS336 course code for softmax,
 *           SiLU, RMSNorm, rotary embedding and loss
 * naive     two matmuls with a softmax between them; every other step as one operation
 * sdpa      one fused operation (flash attention); every other step as one operation
 */
enum rfl_attention {
	RFL_ATTENTION_AUTO,
	RFL_ATTENTION_COMPOSED,
	RFL_ATTENTION_NAIVE,
	RFL_ATTENTION_SDPA
};

/** "auto", "composed", "naive", "sdpa", NULL, in the order of enum rfl_attention. */
extern const char *const rfl_attention_names[];

struct rfl_zoo_options {
	int64_t image_size;     /**< 0: the model's default; must be 0 for a language model */
	int64_t classes;        /**< 0: the model's default; for a language model, the vocabulary */
	int64_t context_length; /**< tokens; 0: the model's default; must be 0 for an image model */
	enum rfl_attention attention;
};

struct rfl_zoo_model {
	const char *name;           /**< "resnet50" */
	const char *title;          /**< "ResNet-50" */
	const char *family;         /**< "resnet" */
	const char *summary;        /**< one line: a description and the publication */
	int64_t image_size;         /**< default; 0: a language model */
	int64_t channels;           /**< of the image; 0: 3 */
	int64_t classes;            /**< default */
	int64_t context_length;     /**< default; 0: an image model */
	int64_t max_context_length; /**< with learned positions; 0: unlimited */
	/** Attention adds a learned bias to its scores. The fused operation does not support this,
	 * so RFL_ATTENTION_SDPA is rejected. */
	bool score_bias;
	/** The name stands for a family of models: "attention_d<N>" for "attention_d64" and so on.
	 * Only a name with a number can be built. */
	bool numbered;
	const char *const *aliases; /**< alternative names, ended by NULL; may be NULL */
};

/** The i-th model, or NULL past the last; ordered by family, then by size. */
const struct rfl_zoo_model *rfl_zoo_at(size_t i);

/** Find a model by name or alias. RFL_ENOTFOUND suggests the nearest. */
enum rfl_rc rfl_zoo_find(const char *name, const struct rfl_zoo_model **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Build a model's network.
 *
 * @param options  NULL for the model's default sizes
 * @param ret      set on success only; release with rfl_net_free()
 * @return RFL_OK; RFL_ENOTFOUND; RFL_EINVAL for an option that does not apply to the model, or if a
 * shape is invalid (names the layer); RFL_EOVERFLOW if a shape exceeds 63 bits
 */
enum rfl_rc rfl_zoo_build(const char *name, const struct rfl_zoo_options *options,
			  struct rfl_net **ret, struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END
#endif
