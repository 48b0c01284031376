/*
 * work_parts.h - what work.c, work_file.c and work_use.c share; private to the room.
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
	int64_t image_size, classes, context_length; /**< -1: not told */
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

/** The passes that a mode of the ledger runs. */
enum rfl_rc rfl_work__mode(const char *mode, enum rfl_scope *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The optimizer that an optimizer's name in the ledger stands for. */
enum rfl_rc rfl_work__optimizer(const struct rfl_work_query *q, enum rfl_optimizer_kind *ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** FLOPs of a step from those of its forward and of its counted training. */
double rfl_work__flops(enum rfl_scope scope, enum rfl_train_factor factor, double forward,
		       double training);

/** What flops_source says of them; a literal. @param recomputes  fused attention makes its scores
 * again in the backward pass */
const char *rfl_work__source(enum rfl_scope scope, enum rfl_train_factor factor, bool recomputes);

/** The form of attention that a query asks for. RFL_EINVAL for an unknown word. */
/** How a query's numbers are stored: rfl_precision_storage(), and fp32 weights under autocast. */
enum rfl_rc rfl_work__storage(const struct rfl_work_query *q, enum rfl_dtype *dtype, bool *master,
			      struct rfl_err *err);
enum rfl_rc rfl_work__attention(const char *attention, enum rfl_attention *ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Count the program's own network. RFL_ENOTFOUND when the zoo has no such model. */
enum rfl_rc rfl_work__own(const struct rfl_work_query *query, struct rfl_work *ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

#endif
