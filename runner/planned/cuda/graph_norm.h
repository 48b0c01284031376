/*
 * graph_norm.h - batch norm in training as execution plans of cuDNN, with what a plan of a net
 * fuses into it. cuDNN compiles their kernels when the plans are made, which takes 0.5 to 1.5 s
 * each.
 */
#ifndef RFL_RUNNER_PLANNED_CUDA_GRAPH_NORM_H
#define RFL_RUNNER_PLANNED_CUDA_GRAPH_NORM_H

#include "runner/planned/cuda/graph.h"

/** Forward: Y = activation(norm(X) + OTHER). Backward, with g = (DY + DY2) * MASK: DX, DGAMMA and
 * DBETA of the norm from g, which is also written to DOTHER. */
struct rfl_norm_graph {
	bool backward;
	int64_t batch, channels, size[2];    /**< height and width */
	enum rfl_plan_activation activation; /**< backward: other than NONE, there is a mask */
	bool other;                          /**< forward: there is OTHER; backward: DOTHER */
	bool sum;                            /**< backward: there is DY2 */
};

/** The batch norm of a step NORM of a plan for training that is not frozen. */
struct rfl_norm_graph rfl_norm_of(const struct rfl_plan *plan, int step);

/** The tensors of a plan, by the ids of its variant pack. Activations are of the rules' type,
 * MASK has a bit (not a byte) per element, in cuDNN's order; the others are float32 per channel. */
enum rfl_norm_tensor {
	RFL_NORM_X,
	RFL_NORM_OTHER,
	RFL_NORM_Y,
	RFL_NORM_MASK,
	RFL_NORM_DY,
	RFL_NORM_DY2,
	RFL_NORM_DX,
	RFL_NORM_DOTHER,
	RFL_NORM_GAMMA,
	RFL_NORM_BETA,
	RFL_NORM_MEAN,
	RFL_NORM_INVERSE,
	RFL_NORM_RUNNING_MEAN,     /**< updated in place */
	RFL_NORM_RUNNING_VARIANCE, /**< likewise */
	RFL_NORM_DGAMMA,
	RFL_NORM_DBETA,
	RFL_NORM_TENSORS,
};

/** As rfl_conv_plans(). cuDNN 9.19 has none with ReLU6, and without an activation none with OTHER
 * or DY2. */
enum rfl_rc rfl_norm_plans(const struct rfl_cudnn *lib, const struct rfl_norm_graph *norm,
			   const struct rfl_conv_rules *rules, int most,
			   struct rfl_conv_plan *plans, int *n, struct rfl_err *err);

/** Queue a plan. @param tensors  by id; those that the plan does not have are ignored */
enum rfl_rc rfl_norm_run(const struct rfl_cudnn *lib, const struct rfl_norm_graph *norm,
			 const struct rfl_conv_plan *plan, void *const tensors[RFL_NORM_TENSORS],
			 float eps, float momentum, void *workspace, struct rfl_err *err);

#endif
