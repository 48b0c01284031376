/*
 * descriptors.h - what graphs of cuDNN have in common: their descriptors, their plans, and how they
 * are queued.
 */
#ifndef RFL_RUNNER_PLANNED_CUDA_DESCRIPTORS_H
#define RFL_RUNNER_PLANNED_CUDA_DESCRIPTORS_H

#include "runner/planned/cuda/graph.h"

/** The descriptors of one request. After a failure, the functions below do nothing. */
struct rfl_making {
	const struct rfl_cudnn *lib;
	rfl_cudnn_descriptor all[32];
	int n;
	int status;
};

/** A new descriptor, to be finished once its attributes are set. */
rfl_cudnn_descriptor rfl_cudnn__make(struct rfl_making *m, int type);
void rfl_cudnn__set(struct rfl_making *m, rfl_cudnn_descriptor d, int name, int type, int64_t n,
		    const void *values);
void rfl_cudnn__link(struct rfl_making *m, rfl_cudnn_descriptor d, int name,
		     rfl_cudnn_descriptor value);
rfl_cudnn_descriptor rfl_cudnn__finish(struct rfl_making *m, rfl_cudnn_descriptor d);
void rfl_cudnn__release(struct rfl_making *m);

/** cuDNN's number of a type. */
int rfl_cudnn__type(enum rfl_value type);

enum rfl_tensor_kind {
	RFL_TENSOR_MEMORY,
	RFL_TENSOR_VIRTUAL, /**< exists only within the graph */
	RFL_TENSOR_VALUE,   /**< a scalar in the host's memory, read when the plan is queued */
};

/** n images of channels x height x width, channels fastest in memory. */
rfl_cudnn_descriptor rfl_cudnn__tensor(struct rfl_making *m, int64_t id, int type, int64_t n,
				       int64_t c, const int64_t size[2], enum rfl_tensor_kind kind);

/** y = x + b, or another operation; of one operand where b is NULL. */
rfl_cudnn_descriptor rfl_cudnn__pointwise(struct rfl_making *m, int mode, rfl_cudnn_descriptor x,
					  rfl_cudnn_descriptor b, rfl_cudnn_descriptor y);

rfl_cudnn_descriptor rfl_cudnn__graph(struct rfl_making *m, int n, const rfl_cudnn_descriptor *ops);

/** The plans of a graph, as rfl_conv_plans(). Releases the descriptors. */
enum rfl_rc rfl_cudnn__plans(struct rfl_making *m, rfl_cudnn_descriptor of, const char *what,
			     const struct rfl_conv_rules *rules, int most,
			     struct rfl_conv_plan *plans, int *n, struct rfl_err *err);

/** Queue a plan. */
enum rfl_rc rfl_cudnn__run(const struct rfl_cudnn *lib, const struct rfl_conv_plan *plan,
			   const char *what, int64_t n, const int64_t *ids, const void *const *data,
			   void *workspace, struct rfl_err *err);

#endif
