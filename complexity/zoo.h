/*
 * zoo.h - the models that the program knows. A family is one file complexity/zoo_*.c; a model is
 * one row of its table.
 */
#ifndef RFL_COMPLEXITY_ZOO_H
#define RFL_COMPLEXITY_ZOO_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_zoo_options {
	int64_t image_size; /**< 0: the model's own (224) */
	int64_t classes;    /**< 0: the model's own (1000) */
};

struct rfl_zoo_model {
	const char *name;    /**< "resnet50" */
	const char *title;   /**< "ResNet-50" */
	const char *family;  /**< "resnet" */
	const char *summary; /**< one line: what it is and where it was published */
	int64_t image_size;  /**< default */
	int64_t classes;     /**< default */
};

/** The i-th model, or NULL behind the last. Order: by family, then by size. */
const struct rfl_zoo_model *rfl_zoo_at(size_t i);

/** By name. RFL_ENOTFOUND names the nearest models. */
enum rfl_rc rfl_zoo_find(const char *name, const struct rfl_zoo_model **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Build a model's network.
 *
 * @param options  NULL for the model's own sizes
 * @param ret      set on success only; release with rfl_net_free()
 * @return RFL_OK; RFL_ENOTFOUND; RFL_EINVAL when a shape dies (names the layer); RFL_ENOMEM
 */
enum rfl_rc rfl_zoo_build(const char *name, const struct rfl_zoo_options *options,
			  struct rfl_net **ret, struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
