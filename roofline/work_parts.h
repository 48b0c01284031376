/*
 * work_parts.h - what work.c and work_file.c share; private to the room.
 */
#ifndef RFL_ROOFLINE_WORK_PARTS_H
#define RFL_ROOFLINE_WORK_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "complexity/zoo.h"
#include "roofline/work.h"

#define RFL_WORK_SCOPES 3 /* of enum rfl_scope */

struct rfl_work__scope {
	double flops; /**< NaN: the file does not have this scope */
	double bytes[RFL_FUSION_COUNT];
};

struct rfl_work__batch {
	int64_t batch;
	struct rfl_work__scope scopes[RFL_WORK_SCOPES];
};

struct rfl_work__model {
	const char *name;
	int64_t image_size, classes, context_length; /**< -1: not known */
	bool recomputes; /**< its backward pass does some of the forward pass again */
	size_t nbatches;
	struct rfl_work__batch *batches;
};

struct rfl_work_file {
	const char *path;
	enum rfl_dtype dtype;
	bool master_weights;
	int optimizer;         /**< enum rfl_optimizer_kind */
	const char *attention; /**< one of rfl_attention_names */
	const char *unlike;    /**< what it counts that no run does; NULL: nothing. A literal */
	size_t nmodels;
	struct rfl_work__model *models;
	struct rfl_arena *arena; /**< owns everything above */
};

#endif
