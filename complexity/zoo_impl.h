/*
 * zoo_impl.h - what a family's file gives to the zoo: a table of models and one function that
 * writes a model down. A new family is one file zoo_*.c and one line of the table in zoo.c.
 */
#ifndef RFL_COMPLEXITY_ZOO_IMPL_H
#define RFL_COMPLEXITY_ZOO_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "complexity/net_build.h"
#include "complexity/zoo.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_zoo_entry {
	struct rfl_zoo_model model;
	const void *config; /**< what the family's build function needs to tell its models apart */
};

struct rfl_zoo_family {
	const char *name;
	const struct rfl_zoo_entry *entries; /**< by size */
	size_t nentries;
	/** Write the model down behind its input and return the logits. */
	int (*build)(struct rfl_net_builder *b, int image, const void *config, int64_t classes);
};

extern const struct rfl_zoo_family rfl_zoo_resnet, rfl_zoo_vgg, rfl_zoo_mobilenet;

#ifdef __cplusplus
}
#endif
#endif
