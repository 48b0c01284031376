/*
 * engine_ops.h - private to the torch engine: what its operations share. engine_run.c
 * walks over the nodes, engine_ops.c has the table of rows and those that compute,
 * engine_views.c those that move, engine_tables.c the numbers that are not learned.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_OPS_H
#define RFL_RUNNER_TORCH_ENGINE_OPS_H

#include "runner/torch/engine_parts.h"
#include "runner/torch/shim_ops.h"

/* How an operation of a channels-last network treats the order of its images. */
enum rfl_torch__order {
	RFL_TORCH_ORDER_FREE, /* it has its own ideas, or no images */
	RFL_TORCH_ORDER_KEPT, /* as its inputs have it */
	RFL_TORCH_ORDER_MADE, /* channels-last, whatever comes in */
};

typedef enum rfl_torch_status (*rfl_torch__run_fn)(struct rfl_engine *e,
						   const struct rfl_node *node,
						   struct rfl_torch_tensor **ret);

struct rfl_torch__row {
	rfl_torch__run_fn run; /* NULL: there is no row */
	enum rfl_torch__order order;
};

/** The row of an operation. */
const struct rfl_torch__row *rfl_torch__row_of(enum rfl_op op);

/** The j-th input of a node. */
struct rfl_torch_tensor *rfl_torch__input(const struct rfl_engine *e, const struct rfl_node *node,
					  int j);

/** Where the dimensions of a node's own shape begin in its tensor: 1 behind a batch, else 0. */
int rfl_torch__lead(const struct rfl_node *node);
/** The same of its first input. */
int rfl_torch__input_lead(const struct rfl_engine *e, const struct rfl_node *node);

/** The sizes of a tensor of this shape, -1 for the batch. @return how many */
int rfl_torch__sizes(const struct rfl_shape *shape, int lead, int64_t sizes[RFL_NET_MAX_DIMS + 1]);

bool rfl_torch__is_training(const struct rfl_engine *e);

/* ---- numbers that are not learned (engine_tables.c) ---- */

/** Make the tables of all nodes that need one. */
enum rfl_rc rfl_torch__make_tables(struct rfl_engine *e, struct rfl_err *err);
/** A table of a node. Borrowed. @param part  1: the second of a rotation's two, its sines */
struct rfl_torch_tensor *rfl_torch__table(const struct rfl_engine *e, const struct rfl_node *node,
					  int part);
/** Why the numbers of a node are not known; NULL where they are, or it needs none. */
const char *rfl_torch__unknown_table(const struct rfl_node *node);

/* ---- rows that move (engine_views.c) ---- */

enum rfl_torch_status rfl_torch__run_parameter(struct rfl_engine *e, const struct rfl_node *node,
					       struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_constant(struct rfl_engine *e, const struct rfl_node *node,
					      struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_flatten(struct rfl_engine *e, const struct rfl_node *node,
					     struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_reshape(struct rfl_engine *e, const struct rfl_node *node,
					     struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_permute(struct rfl_engine *e, const struct rfl_node *node,
					     struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_slice(struct rfl_engine *e, const struct rfl_node *node,
					   struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_contiguous(struct rfl_engine *e, const struct rfl_node *node,
						struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_concat(struct rfl_engine *e, const struct rfl_node *node,
					    struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_pad(struct rfl_engine *e, const struct rfl_node *node,
					 struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_roll(struct rfl_engine *e, const struct rfl_node *node,
					  struct rfl_torch_tensor **ret);
enum rfl_torch_status rfl_torch__run_gather(struct rfl_engine *e, const struct rfl_node *node,
					    struct rfl_torch_tensor **ret);

#endif
