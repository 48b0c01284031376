/*
 * shim_ops.h - the operations of a network as plain C: one function of libtorch each, or the
 * few that PyTorch's own modules call. The rules of shim.h hold.
 *
 * Shapes and dimensions are those of the tensors: where there is a batch it is dimension 0.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_OPS_H
#define RFL_RUNNER_TORCH_SHIM_OPS_H

#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ with weights */

/** @param bias  may be NULL */
RFL_TORCH_CALL rfl_torch_conv2d(const struct rfl_torch_tensor *x,
				const struct rfl_torch_tensor *weight,
				const struct rfl_torch_tensor *bias, const struct rfl_conv2d *attr,
				struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** @param bias        may be NULL
 *  @param transposed  the weight is {in, out} */
RFL_TORCH_CALL rfl_torch_linear(const struct rfl_torch_tensor *x,
				const struct rfl_torch_tensor *weight,
				const struct rfl_torch_tensor *bias, int transposed,
				struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** Rows of a table by int64 indices. */
RFL_TORCH_CALL rfl_torch_embedding(const struct rfl_torch_tensor *table,
				   const struct rfl_torch_tensor *places,
				   struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

struct rfl_torch_norm {
	const struct rfl_torch_tensor *weight, *bias;
	struct rfl_torch_tensor *running_mean, *running_var;
};

/** @param training  normalise by the batch and update the running statistics; with one value per
 *                   channel unsupported */
RFL_TORCH_CALL rfl_torch_batch_norm(const struct rfl_torch_tensor *x,
				    const struct rfl_torch_norm *norm,
				    const struct rfl_batch_norm *attr, int training,
				    struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** Over the last dimension. */
RFL_TORCH_CALL rfl_torch_layer_norm(const struct rfl_torch_tensor *x,
				    const struct rfl_torch_tensor *weight,
				    const struct rfl_torch_tensor *bias, double eps,
				    struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** Over the last dimension; before 2.4 in steps. */
RFL_TORCH_CALL rfl_torch_rms_norm(const struct rfl_torch_tensor *x,
				  const struct rfl_torch_tensor *weight, double eps,
				  struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ products */

RFL_TORCH_CALL rfl_torch_matmul(const struct rfl_torch_tensor *a, const struct rfl_torch_tensor *b,
				int transpose_b, struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** @param dropout  probability that a weight of the softmax is dropped; 0: none */
RFL_TORCH_CALL rfl_torch_sdpa(const struct rfl_torch_tensor *q, const struct rfl_torch_tensor *k,
			      const struct rfl_torch_tensor *v, int causal, double dropout,
			      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ elementwise */

/** RFL_OP_RELU, RELU6, SIGMOID, TANH, SILU, HARD_SIGMOID, HARD_SWISH, EXP, LOG, RSQRT, SQUARE.
 *  @param inplace  the result replaces x; SQUARE, EXP, LOG and RSQRT have no such form */
RFL_TORCH_CALL rfl_torch_unary(enum rfl_op op, struct rfl_torch_tensor *x, int inplace,
			       struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_gelu(const struct rfl_torch_tensor *x, int tanh,
			      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** x scale + shift: only the steps that change something. */
RFL_TORCH_CALL rfl_torch_affine(const struct rfl_torch_tensor *x, const struct rfl_affine *attr,
				struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Neighbours (a, b) of the last dimension become (a cos - b sin, a sin + b cos), in the type of x.
 *  @param cos, sin  {tokens, features / 2} */
RFL_TORCH_CALL rfl_torch_rope(const struct rfl_torch_tensor *x, const struct rfl_torch_tensor *cos,
			      const struct rfl_torch_tensor *sin,
			      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Active dropout. */
RFL_TORCH_CALL rfl_torch_dropout(struct rfl_torch_tensor *x, double probability, int inplace,
				 struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Active stochastic depth of whole samples, as torchvision's mode "row". */
RFL_TORCH_CALL rfl_torch_stochastic_depth(const struct rfl_torch_tensor *x, double probability,
					  struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Minus infinity where the mask of booleans is true. */
RFL_TORCH_CALL rfl_torch_masked(const struct rfl_torch_tensor *x,
				const struct rfl_torch_tensor *mask,
				struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Over the last dimension. */
RFL_TORCH_CALL rfl_torch_softmax(const struct rfl_torch_tensor *x,
				 struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** RFL_OP_ADD, SUB, MUL, DIV.
 *  @param inplace  the result replaces a */
RFL_TORCH_CALL rfl_torch_binary(enum rfl_op op, struct rfl_torch_tensor *a,
				const struct rfl_torch_tensor *b, int inplace,
				struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ reductions */

/** RFL_OP_MEAN, SUM, MAX over `count` dimensions from `first` on. */
RFL_TORCH_CALL rfl_torch_reduce(enum rfl_op op, const struct rfl_torch_tensor *x, int64_t first,
				int64_t count, int keepdim,
				struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_max_pool2d(const struct rfl_torch_tensor *x, const struct rfl_pool *attr,
				    struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_avg_pool2d(const struct rfl_torch_tensor *x, const struct rfl_pool *attr,
				    struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_adaptive_avg_pool2d(const struct rfl_torch_tensor *x,
					     const struct rfl_adaptive_pool *attr,
					     struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ views and copies */

/** The dimensions from `first` on become one. */
RFL_TORCH_CALL rfl_torch_flatten(const struct rfl_torch_tensor *x, int64_t first,
				 struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** A view where that is possible. One of the sizes may be -1: whatever is left. */
RFL_TORCH_CALL rfl_torch_reshape(const struct rfl_torch_tensor *x, int ndim, const int64_t *sizes,
				 struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_permute(const struct rfl_torch_tensor *x, int ndim, const int64_t *order,
				 struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_slice(const struct rfl_torch_tensor *x, int64_t dim, int64_t start,
			       int64_t length, int64_t step,
			       struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** A tensor without a batch beside others that have one is repeated for every sample. */
RFL_TORCH_CALL rfl_torch_concat(struct rfl_torch_tensor *const *xs, int n, int64_t dim,
				struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Zeros around the dimensions {height, width} that begin at `dim`. */
RFL_TORCH_CALL rfl_torch_pad(const struct rfl_torch_tensor *x, int64_t dim,
			     const struct rfl_pad *attr,
			     struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** The dimensions {height, width} that begin at `dim`, moved round. */
RFL_TORCH_CALL rfl_torch_roll(const struct rfl_torch_tensor *x, int64_t dim, int64_t shift_h,
			      int64_t shift_w, struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Rows of a table at constant places, in this shape. */
RFL_TORCH_CALL rfl_torch_gather(const struct rfl_torch_tensor *table,
				const struct rfl_torch_tensor *places, int ndim,
				const int64_t *sizes,
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

/** What tells two histories apart: the last operation that backward would undo. NULL: there is
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
