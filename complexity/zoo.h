/*
 * zoo.h - the built-in models. A family is one file of complexity/zoo/; a model is
 * one row of its table.
 */
#ifndef RFL_COMPLEXITY_ZOO_H
#define RFL_COMPLEXITY_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

/**
 * How attention and the steps around it are written down:
 * auto      as the published code runs it
 * composed  every elementwise step an operation of its own, as the CS336 course writes softmax,
 *           SiLU, RMSNorm, rotary embedding and loss
 * naive     two matrix products with one softmax between them; other steps one operation each
 * sdpa      one fused operation (flash attention); other steps one operation each
 */
enum rfl_attention {
	RFL_ATTENTION_AUTO,
	RFL_ATTENTION_COMPOSED,
	RFL_ATTENTION_NAIVE,
	RFL_ATTENTION_SDPA
};

/** "auto", "composed", "naive", "sdpa", NULL: in the order of enum rfl_attention. */
extern const char *const rfl_attention_names[];

struct rfl_zoo_options {
	int64_t image_size;     /**< 0: the model's own; refused for a language model */
	int64_t classes;        /**< 0: the model's own; the vocabulary of a language model */
	int64_t context_length; /**< tokens, 0: the model's own; refused for an image model */
	enum rfl_attention attention;
};

struct rfl_zoo_model {
	const char *name;           /**< "resnet50" */
	const char *title;          /**< "ResNet-50" */
	const char *family;         /**< "resnet" */
	const char *summary;        /**< one line: what it is and where it was published */
	int64_t image_size;         /**< default; 0: it reads text */
	int64_t channels;           /**< of the image, 0: 3 */
	int64_t classes;            /**< default */
	int64_t context_length;     /**< default; 0: it reads images */
	int64_t max_context_length; /**< where positions are learned; 0: free */
	/** Attention adds a learned bias to its scores, which the fused operation does not support:
	 * RFL_ATTENTION_SDPA is refused. */
	bool score_bias;
	const char *const *aliases; /**< other names, ended by NULL; may be NULL */
};

/** The i-th model, or NULL past the last. Order: by family, then by size. */
const struct rfl_zoo_model *rfl_zoo_at(size_t i);

/** By name or alias. RFL_ENOTFOUND names the nearest models. */
enum rfl_rc rfl_zoo_find(const char *name, const struct rfl_zoo_model **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Build a model's network.
 *
 * @param options  NULL for the model's own sizes
 * @param ret      set on success only; release with rfl_net_free()
 * @return RFL_OK; RFL_ENOTFOUND; RFL_EINVAL for an option that the model does not have, or when a
 *         shape is invalid (names the layer); RFL_EOVERFLOW when one does not fit 63 bits;
 * RFL_ENOMEM
 */
enum rfl_rc rfl_zoo_build(const char *name, const struct rfl_zoo_options *options,
			  struct rfl_net **ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
