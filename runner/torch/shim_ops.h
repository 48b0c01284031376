/*
 * shim_ops.h - the operations of a network, its loss and backward as plain C. An operation is a row
 * of the table in shim_ops.cpp. The rules of shim.h hold.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_OPS_H
#define RFL_RUNNER_TORCH_SHIM_OPS_H

#include <stdbool.h>

#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How an operation of a channels-last network treats the order of its images. */
enum rfl_torch_order {
	RFL_TORCH_ORDER_FREE, /**< it has its own ideas, or no images */
	RFL_TORCH_ORDER_KEPT, /**< as its inputs have it */
	RFL_TORCH_ORDER_MADE, /**< channels-last, whatever comes in */
};

/** One node to execute. All is borrowed. */
struct rfl_torch_call {
	const struct rfl_net *net;
	const struct rfl_node *node;
	struct rfl_torch_tensor *const *values; /**< per node of the net: its output */
	struct rfl_torch_tensor *const *params; /**< per parameter of the net */
	struct rfl_torch_tensor *const *tables; /**< of this node: numbers that are not learned */
	bool training;                          /**< not evaluation */
	bool batch_statistics;                  /**< batch norm uses and records them */
	bool drops;                             /**< dropout is on */
};

/** Whether the table of operations has a row for it. */
int rfl_torch_has_op(enum rfl_op op) RFL_TORCH_NOEXCEPT;
enum rfl_torch_order rfl_torch_order_of(enum rfl_op op) RFL_TORCH_NOEXCEPT;

/** Execute a node that has a row. */
RFL_TORCH_CALL rfl_torch_execute(const struct rfl_torch_call *call,
				 struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ tables */

enum rfl_torch_table_type { RFL_TORCH_TABLE_F32, RFL_TORCH_TABLE_I64, RFL_TORCH_TABLE_BOOL };

/** A copy of the caller's values in this type, on the device of `like`. */
RFL_TORCH_CALL rfl_torch_table(const float *values, enum rfl_torch_table_type type, int ndim,
			       const int64_t *sizes, const struct rfl_torch_tensor *like,
			       struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ loss and backward */

/** Mean cross entropy of logits {.., classes} against as many class indices as they have rows. */
RFL_TORCH_CALL rfl_torch_cross_entropy(const struct rfl_torch_tensor *logits,
				       const struct rfl_torch_tensor *labels,
				       struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** The same with every step an operation of its own. */
RFL_TORCH_CALL rfl_torch_cross_entropy_composed(const struct rfl_torch_tensor *logits,
						const struct rfl_torch_tensor *labels,
						struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** sum + weight * term: losses of several heads. */
RFL_TORCH_CALL rfl_torch_add_weighted(const struct rfl_torch_tensor *sum,
				      const struct rfl_torch_tensor *term, double weight,
				      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** Identifies a history: the last operation that backward would undo. NULL: there is
 * none. Compare only. */
const void *rfl_torch_tensor_history(const struct rfl_torch_tensor *t) RFL_TORCH_NOEXCEPT;

/** Call fn when backward comes to the operation that made t, right before it is undone. */
RFL_TORCH_CALL rfl_torch_on_backward(const struct rfl_torch_tensor *t, void (*fn)(void *ctx),
				     void *ctx) RFL_TORCH_NOEXCEPT;

/** Backward on the thread that calls it, whatever the device: hooks are then called there too. */
void rfl_torch_set_backward_here(int on) RFL_TORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
