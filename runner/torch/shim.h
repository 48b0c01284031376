/*
 * shim.h - a C interface to the parts of libtorch that the torch engine needs.
 *
 * A struct rfl_torch_tensor holds one reference to a tensor. Functions that return a tensor set
 * *ret on success only; the caller releases it with rfl_torch_tensor_free(), which accepts NULL
 * like the other functions that free. No C++ exception leaves the shim: a failure is RFL_EFAILED,
 * RFL_EDEVMEM if memory ran out, or RFL_EUNSUPPORTED if libtorch has no kernel for the operation,
 * or no deterministic one. Its message is "torch: WHAT: libtorch's text", with the caller's `what`
 * or a fixed text. Parameters are float32, labels and tokens int64; autocast decides the type of
 * activations.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_H
#define RFL_RUNNER_TORCH_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "complexity/net.h"
#include "machine/terms.h"
#include "runner/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RFL_TORCH_CALL RFL_WARN_UNUSED enum rfl_rc

struct rfl_torch_tensor;

/* ------------------------------------------------------------------ the library */

/** Return the code for an exception of a general type. The text identifies lack of memory and
 * missing kernels; everything else is RFL_EFAILED. Defined in engine_rules.c. */
enum rfl_rc rfl_torch_meaning(const char *text);

/** Set threads, seed, determinism, cuDNN's choice of algorithms and TF32, so that the library's
 * defaults do not matter. Call it before the first operation of the process, which creates the
 * thread pools. */
RFL_TORCH_CALL rfl_torch_set_up(const struct rfl_engine_config *config, struct rfl_err *err);

/** Return NULL if this library supports the cast on the device, else the reason and the fix. */
const char *rfl_torch_cast_missing(enum rfl_device device, enum rfl_cast cast);

/** Between these two calls, operations on this thread are recorded for backward in a training mode,
 * and inputs of matrix products and convolutions are cast as e->cast says. Each weight is cast only
 * once, so weights must not change in between. */
RFL_TORCH_CALL rfl_torch_forward_begin(const struct rfl_engine *e, struct rfl_err *err);
RFL_TORCH_CALL rfl_torch_forward_end(const struct rfl_engine *e, struct rfl_err *err);

/* ------------------------------------------------------------------ tensors */

enum rfl_torch_type { RFL_TORCH_F32, RFL_TORCH_U8, RFL_TORCH_I64, RFL_TORCH_BOOL };

/**
 * Create a tensor over the caller's host memory, which must outlive it. Nothing is copied, and the
 * memory changes only if the tensor is written to.
 * @param strides  in elements; NULL: contiguous
 */
RFL_TORCH_CALL rfl_torch_wrap(const void *data, enum rfl_torch_type type, int ndim,
			      const int64_t *sizes, const int64_t *strides,
			      struct rfl_torch_tensor **ret, const char *what, struct rfl_err *err);

/** Copy the caller's values to a tensor of this type on the device of `like`. */
RFL_TORCH_CALL rfl_torch_table(const float *values, enum rfl_torch_type type, int ndim,
			       const int64_t *sizes, const struct rfl_torch_tensor *like,
			       struct rfl_torch_tensor **ret, const char *what,
			       struct rfl_err *err);

/**
 * Create a leaf tensor over part of a flat tensor's memory.
 * @param offset   index of the first element
 * @param strides  in elements; NULL: contiguous
 */
RFL_TORCH_CALL rfl_torch_leaf(const struct rfl_torch_tensor *block, int64_t offset, int ndim,
			      const int64_t *sizes, const int64_t *strides, bool requires_grad,
			      struct rfl_torch_tensor **ret, const char *what, struct rfl_err *err);

enum rfl_torch_form {
	RFL_TORCH_SAME,   /**< another reference to the same tensor */
	RFL_TORCH_COPIED, /**< detached and copied */
	RFL_TORCH_NCHW,   /**< row-major; copied only if necessary */
	RFL_TORCH_NHWC,   /**< channels-last, for four dimensions; likewise */
	RFL_TORCH_PLAIN,  /**< float32 in host memory, row-major; likewise */
};
RFL_TORCH_CALL rfl_torch_tensor_as(const struct rfl_torch_tensor *t, enum rfl_torch_form form,
				   struct rfl_torch_tensor **ret, const char *what,
				   struct rfl_err *err);

void rfl_torch_tensor_free(struct rfl_torch_tensor *t);

/** Copy the values of one tensor into another of the same shape, on any device. */
RFL_TORCH_CALL rfl_torch_tensor_copy(struct rfl_torch_tensor *to,
				     const struct rfl_torch_tensor *from, struct rfl_err *err);

/** True also for tensors without four dimensions. */
bool rfl_torch_tensor_is_channels_last(const struct rfl_torch_tensor *t);

/** The elements of an RFL_TORCH_PLAIN tensor, borrowed. */
const float *rfl_torch_tensor_data(const struct rfl_torch_tensor *t, int64_t *numel);

/** Bytes of a tensor; 0 for NULL. */
double rfl_torch_tensor_bytes(const struct rfl_torch_tensor *t);

/**
 * Convert 8-bit pixels of 1 to 3 channels to float32: (value / 255 - mean) / std per channel.
 * @param channels_last  order of the result, regardless of the order of the pixels
 */
RFL_TORCH_CALL rfl_torch_normalize(const struct rfl_torch_tensor *pixels,
				   const struct rfl_pixel_scale *scale, bool channels_last,
				   struct rfl_torch_tensor **ret, struct rfl_err *err);

/* ------------------------------------------------------------------ operations (shim_ops.cpp) */

/** The memory layout of the images that an operation of a channels-last network returns. */
enum rfl_torch_order {
	RFL_TORCH_ORDER_FREE, /**< any order, or no images */
	RFL_TORCH_ORDER_KEPT, /**< same order as its inputs */
	RFL_TORCH_ORDER_MADE, /**< always channels-last */
};

bool rfl_torch_has_op(enum rfl_op op);
enum rfl_torch_order rfl_torch_order_of(enum rfl_op op);

/** Execute a node with an operation in the table: fill e->value[i]. */
RFL_TORCH_CALL rfl_torch_execute(struct rfl_engine *e, int i, struct rfl_err *err);

/** Compute the loss of e->logits plus the weighted losses of the auxiliary heads that ran, and add
 * it to the score if there is one. Does not wait for the device. */
RFL_TORCH_CALL rfl_torch_make_loss(struct rfl_engine *e, const struct rfl_torch_tensor *labels,
				   struct rfl_err *err);

/** Run backward and its hooks on the calling thread for every device, if `on`. */
void rfl_torch_set_backward_here(bool on);

/* ------------------------------------------------------------------ updates (shim_optim.cpp) */

struct rfl_torch_optim;

/** Return NULL if this library has fused updates on the device, else the first version: "2.4". */
const char *rfl_torch_fused_since(enum rfl_optimizer_rule rule, enum rfl_device device);

/** Return NULL if this library scales losses on the device, else the first version: "2.3". */
const char *rfl_torch_scaling_since(enum rfl_device device);

/**
 * @param params  the array is borrowed, the tensors are referenced
 * @param fused   update in one pass, else with operations over lists of tensors
 * @param scaled  scale the loss, as PyTorch's GradScaler does by default
 */
RFL_TORCH_CALL rfl_torch_optim_new(struct rfl_torch_tensor *const *params, size_t n,
				   enum rfl_optimizer_rule rule, bool fused, bool scaled,
				   struct rfl_torch_optim **ret, struct rfl_err *err);

void rfl_torch_optim_free(struct rfl_torch_optim *o);

/** Get the current scale of an optimizer that scales losses, and the number of skipped steps. Waits
 * for the device. */
RFL_TORCH_CALL rfl_torch_optim_scaling(const struct rfl_torch_optim *o, double *scale,
				       int64_t *skipped, struct rfl_err *err);

/** A copy of all state that a step changes: parameters, buffers, the optimizer and the random
 * generator. */
struct rfl_torch_snapshot;
void rfl_torch_snapshot_free(struct rfl_torch_snapshot *s);

/* ------------------------------------------------------------------ devices (shim_device.cpp)
 *
 * Opening a GPU creates a stream and makes it the current stream of the calling thread: all work of
 * that thread is queued there. A second stream copies batches. */

struct rfl_torch_device;

/** Open the first visible device. Release with rfl_torch_device_close(). */
RFL_TORCH_CALL rfl_torch_device_open(enum rfl_device device, struct rfl_torch_device **ret,
				     const char *what, struct rfl_err *err);
/** Wait for the device and close it. None of its tensors may be used afterwards. */
void rfl_torch_device_close(struct rfl_torch_device *d);

/** Get what the device reports, without cuDNN and NCCL.
 * @param capability  compute capability of an NVIDIA GPU: 80 is 8.0; 0: unknown */
RFL_TORCH_CALL rfl_torch_device_facts(struct rfl_torch_device *d, struct rfl_engine_device *ret,
				      int *capability, struct rfl_err *err);

/** Allocate a flat block of zeros on the device, for rfl_torch_leaf(). */
RFL_TORCH_CALL rfl_torch_device_zeros(struct rfl_torch_device *d, int64_t numel,
				      struct rfl_torch_tensor **ret, struct rfl_err *err);

/** Copy a host tensor to the device with its strides.
 * @param wait  false: only start the copy. The host memory must not change until the engine's
 *              uploaded(); the copy may be used after rfl_torch_device_use(). */
RFL_TORCH_CALL rfl_torch_device_copy(struct rfl_torch_device *d,
				     const struct rfl_torch_tensor *host, bool wait,
				     struct rfl_torch_tensor **ret, const char *what,
				     struct rfl_err *err);
/** Make work that is queued from now on wait for the copy `t`. */
RFL_TORCH_CALL rfl_torch_device_use(struct rfl_torch_device *d, const struct rfl_torch_tensor *t,
				    struct rfl_err *err);

/** Return NULL if work can be recorded, else the reason, borrowed. */
const char *rfl_torch_graph_missing(const struct rfl_torch_device *d);

/** Work queued between BEGIN and END is recorded, not run. A device has one recording. If END
 * fails, some of the work cannot be recorded, and the recording is unusable. */
enum rfl_torch_graph {
	RFL_TORCH_GRAPH_BEGIN,
	RFL_TORCH_GRAPH_END,
	RFL_TORCH_GRAPH_REPLAY,
	RFL_TORCH_GRAPH_DROP, /**< drop the recording, if any */
};
RFL_TORCH_CALL rfl_torch_device_graph(struct rfl_torch_device *d, enum rfl_torch_graph act,
				      struct rfl_err *err);

/* ------------------------------------------------------------------ several processes
 * (shim_dist.cpp)
 *
 * Uses c10d: gradients are averaged in buckets while backward still runs.
 */

struct rfl_torch_group; /* this process as a member of the group */

/** Return NULL if this build has NCCL (or Gloo, if !nccl), else the reason and the fix. */
const char *rfl_torch_group_missing(bool nccl);

/**
 * Join the other processes; rfl_torch_group_missing() must return NULL. Returns when all have
 * joined, or RFL_EFAILED after the timeout. The message is only libtorch's text.
 * @param nccl    for tensors on GPUs; else Gloo, for tensors in host memory
 * @param params  the trained parameters in the order of the net; referenced
 * @param ret     set on success only; release with rfl_torch_group_leave()
 */
RFL_TORCH_CALL rfl_torch_group_join(const struct rfl_world *world, bool nccl,
				    struct rfl_torch_tensor *const *params, size_t nparams,
				    struct rfl_torch_group **ret, struct rfl_err *err);

void rfl_torch_group_leave(struct rfl_torch_group *group);

#ifdef __cplusplus
}
#endif
#endif
