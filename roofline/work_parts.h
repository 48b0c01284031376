/*
 * work_parts.h - what work.c and work_file.c share; private to the room.
 */
#ifndef RFL_ROOFLINE_WORK_PARTS_H
#define RFL_ROOFLINE_WORK_PARTS_H

#include "roofline/work.h"

/** The passes that a mode of the ledger runs. */
enum rfl_rc rfl_work__mode(const char *mode, enum rfl_scope *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The optimizer that an optimizer's name in the ledger stands for. */
enum rfl_rc rfl_work__optimizer(const char *optimizer, enum rfl_optimizer_kind *ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** FLOPs of a step from those of its forward and of its counted training. */
double rfl_work__flops(enum rfl_scope scope, enum rfl_train_factor factor, double forward,
		       double training);

/** What flops_source says of them; a literal. */
const char *rfl_work__source(enum rfl_scope scope, enum rfl_train_factor factor);

/** Count the program's own network. RFL_ENOTFOUND when the zoo has no such model. */
enum rfl_rc rfl_work__own(const struct rfl_work_query *query, struct rfl_work *ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

#endif
