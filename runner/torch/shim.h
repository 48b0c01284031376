/*
 * shim.h - the part of libtorch that the torch engine needs, as plain C.
 *
 * One heap object is one reference to a tensor. Functions that hand out a tensor set *ret on
 * success only; the caller releases it with rfl_torch_tensor_free(). Every function that can fail
 * returns a status; no C++ exception leaves the shim. rfl_torch_error() has the text of the last
 * failure on this thread. Parameters are float32, activations what autocast makes of them, labels
 * and tokens int64.
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

enum rfl_torch_status {
	RFL_TORCH_OK,
	RFL_TORCH_FAILED,      /**< libtorch refused: see rfl_torch_error() */
	RFL_TORCH_NOMEM,       /**< out of memory, by the type of the exception or by its text */
	RFL_TORCH_UNSUPPORTED, /**< it has no kernel for that, or none that is deterministic */
};

#define RFL_TORCH_CALL RFL_WARN_UNUSED enum rfl_torch_status

struct rfl_torch_tensor;

/* ------------------------------------------------------------------ the library */

/** Text of the last failure on this thread, without the C++ backtrace. Never NULL. */
const char *rfl_torch_error(void);

/** In engine_rules.c: what the text of an exception means where its type does not say.
 * RFL_TORCH_FAILED for everything else. */
enum rfl_torch_status rfl_torch_meaning(const char *text);

/** Version of the loaded library: "2.11.0"; "unknown" when it does not report one. */
const char *rfl_torch_library_version(void);

/** Set threads, seed, determinism, cuDNN's choice of algorithms and TF32, whatever the library's
 * defaults are. Before the first operation of the process: it makes the pools of threads. */
RFL_TORCH_CALL rfl_torch_set_up(const struct rfl_engine_config *config);

/** NULL: this library can cast so on that device. Else why not, and what to do. */
const char *rfl_torch_cast_missing(enum rfl_device device, enum rfl_cast cast);

/**
 * From here to the end of a forward: with `grad`, operations are recorded for backward on this
 * thread; unless RFL_CAST_OFF, inputs of matrix products and convolutions are cast. A weight is
 * cast once in between, however often it is used, and a change of it would not be seen.
 */
RFL_TORCH_CALL rfl_torch_forward_begin(enum rfl_device device, enum rfl_cast cast, bool grad);
RFL_TORCH_CALL rfl_torch_forward_end(enum rfl_device device, enum rfl_cast cast);

/* ------------------------------------------------------------------ tensors */

enum rfl_torch_type { RFL_TORCH_F32, RFL_TORCH_U8, RFL_TORCH_I64, RFL_TORCH_BOOL };

/**
 * A tensor over memory of the caller in this machine, which must outlive it and is only read from
 * unless the tensor is written to. Nothing is copied.
 * @param strides  in elements; NULL for contiguous
 */
RFL_TORCH_CALL rfl_torch_wrap(const void *data, enum rfl_torch_type type, int ndim,
			      const int64_t *sizes, const int64_t *strides,
			      struct rfl_torch_tensor **ret);

/** A copy of the caller's values in this type, on the device of `like`. */
RFL_TORCH_CALL rfl_torch_table(const float *values, enum rfl_torch_type type, int ndim,
			       const int64_t *sizes, const struct rfl_torch_tensor *like,
			       struct rfl_torch_tensor **ret);

/**
 * Part of a flat tensor's memory as a leaf of its own.
 * @param offset   of its first element, in elements
 * @param strides  in elements; NULL for contiguous
 */
RFL_TORCH_CALL rfl_torch_leaf(const struct rfl_torch_tensor *block, int64_t offset, int ndim,
			      const int64_t *sizes, const int64_t *strides, bool requires_grad,
			      struct rfl_torch_tensor **ret);

enum rfl_torch_form {
	RFL_TORCH_SAME,     /**< another reference to the same tensor */
	RFL_TORCH_DETACHED, /**< the same values without the history that backward would follow */
	RFL_TORCH_COPIED,   /**< detached, in memory of its own */
	RFL_TORCH_NCHW,     /**< in row-major order; the same tensor when it is so already */
	RFL_TORCH_NHWC,     /**< of four dimensions, in channels-last order; likewise */
	RFL_TORCH_PLAIN,    /**< float32 in this machine's memory, row-major; likewise */
};
RFL_TORCH_CALL rfl_torch_tensor_as(const struct rfl_torch_tensor *t, enum rfl_torch_form form,
				   struct rfl_torch_tensor **ret);

/** Accepts NULL. */
void rfl_torch_tensor_free(struct rfl_torch_tensor *t);

/** Copy the values of one tensor into another of the same shape, on any device. */
RFL_TORCH_CALL rfl_torch_tensor_copy(struct rfl_torch_tensor *to,
				     const struct rfl_torch_tensor *from);

/** Whether the tensor is in channels-last order, or does not have four dimensions. */
bool rfl_torch_tensor_is_channels_last(const struct rfl_torch_tensor *t);

/** First element of a plain tensor, borrowed. @param numel  elements */
const float *rfl_torch_tensor_data(const struct rfl_torch_tensor *t, int64_t *numel);

/** Copy all values out of, or into, a tensor of any layout. numel must be the tensor's. */
RFL_TORCH_CALL rfl_torch_tensor_read(const struct rfl_torch_tensor *t, float *out, int64_t numel);
RFL_TORCH_CALL rfl_torch_tensor_write(struct rfl_torch_tensor *t, const float *values,
				      int64_t numel);

/** The value of a tensor with one element. */
RFL_TORCH_CALL rfl_torch_tensor_item(const struct rfl_torch_tensor *t, double *ret);

/** The gradient of a leaf, or *ret = NULL when there is none. */
RFL_TORCH_CALL rfl_torch_tensor_grad(const struct rfl_torch_tensor *t,
				     struct rfl_torch_tensor **ret);

/**
 * 8-bit pixels of 1 to 3 channels to float32: (value / 255 - mean) / std of each channel.
 * @param channels_last  the order of the result, whatever that of the pixels
 */
RFL_TORCH_CALL rfl_torch_normalize(const struct rfl_torch_tensor *pixels,
				   const struct rfl_pixel_scale *scale, bool channels_last,
				   struct rfl_torch_tensor **ret);

/* ------------------------------------------------------------------ operations (shim_ops.cpp) */

/** How an operation of a channels-last network treats the order of its images. */
enum rfl_torch_order {
	RFL_TORCH_ORDER_FREE, /**< any, or it has no images */
	RFL_TORCH_ORDER_KEPT, /**< that of its inputs */
	RFL_TORCH_ORDER_MADE, /**< channels-last, whatever that of its inputs */
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
bool rfl_torch_has_op(enum rfl_op op);
enum rfl_torch_order rfl_torch_order_of(enum rfl_op op);

/** Execute a node that has a row. */
RFL_TORCH_CALL rfl_torch_execute(const struct rfl_torch_call *call, struct rfl_torch_tensor **ret);

/** Mean cross entropy of logits {.., classes} against as many class indices as they have rows.
 * @param composed  every step is an operation of its own */
RFL_TORCH_CALL rfl_torch_cross_entropy(const struct rfl_torch_tensor *logits,
				       const struct rfl_torch_tensor *labels, bool composed,
				       struct rfl_torch_tensor **ret);
/** sum + weight * term: losses of several heads. */
RFL_TORCH_CALL rfl_torch_add_weighted(const struct rfl_torch_tensor *sum,
				      const struct rfl_torch_tensor *term, double weight,
				      struct rfl_torch_tensor **ret);

/** Identifies a history: the last operation that backward would undo. NULL: there is none. Compare
 * only. */
const void *rfl_torch_tensor_history(const struct rfl_torch_tensor *t);

/** Call fn when backward comes to the operation that made t, right before it is undone. */
RFL_TORCH_CALL rfl_torch_on_backward(const struct rfl_torch_tensor *t, void (*fn)(void *ctx),
				     void *ctx);

/** Backward on the thread that calls it, whatever the device: hooks are then called there too. */
void rfl_torch_set_backward_here(bool on);

/* ------------------------------------------------------------------ updates (shim_optim.cpp) */

struct rfl_torch_optim;

/** NULL: this library updates by one pass on that device. Else the first that does: "2.4". */
const char *rfl_torch_fused_since(enum rfl_optimizer_rule rule, enum rfl_device device);

/** NULL: this library can scale losses on that device. Else the first that can: "2.3". */
const char *rfl_torch_scaling_since(enum rfl_device device);

/**
 * @param params  borrowed; the tensors are referenced
 * @param fused   one pass over everything; else operations over lists of tensors
 * @param scaled  the loss is scaled, as PyTorch's GradScaler does by default
 */
RFL_TORCH_CALL rfl_torch_optim_new(struct rfl_torch_tensor *const *params, size_t n,
				   enum rfl_optimizer_rule rule, bool fused, bool scaled,
				   struct rfl_torch_optim **ret);

/** Accepts NULL. */
void rfl_torch_optim_free(struct rfl_torch_optim *o);

/** Drop every gradient (set to none: the memory goes back). */
void rfl_torch_optim_zero_grad(struct rfl_torch_optim *o);

/** Gradients of weight * loss, times the scale, added to those that are there; the recorded history
 * is freed. */
RFL_TORCH_CALL rfl_torch_optim_backward(struct rfl_torch_optim *o,
					const struct rfl_torch_tensor *loss, double weight);

/**
 * One update. The gradients are used up: their values are undefined afterwards.
 * @param numbers  rate, decay and so on; the rule is the one of new
 */
RFL_TORCH_CALL rfl_torch_optim_step(struct rfl_torch_optim *o, const struct rfl_optimizer *numbers);

/** Forget gradients, momentum, step count; the scale is the first one again. */
RFL_TORCH_CALL rfl_torch_optim_reset(struct rfl_torch_optim *o);

/** Waits for the device. scale is NaN when losses are not scaled. */
RFL_TORCH_CALL rfl_torch_optim_scaling(const struct rfl_torch_optim *o, double *scale,
				       int64_t *skipped);

/** A copy of everything that a step changes: parameters and buffers, the optimizer, the random
 * numbers of dropout. Release with rfl_torch_snapshot_free(), which accepts NULL. */
struct rfl_torch_snapshot;
RFL_TORCH_CALL rfl_torch_snapshot_take(const struct rfl_torch_tensor *block,
				       const struct rfl_torch_optim *o,
				       struct rfl_torch_snapshot **ret);
RFL_TORCH_CALL rfl_torch_snapshot_restore(const struct rfl_torch_snapshot *s,
					  struct rfl_torch_tensor *block,
					  struct rfl_torch_optim *o);
void rfl_torch_snapshot_free(struct rfl_torch_snapshot *s);

/* ------------------------------------------------------------------ devices (shim_device.cpp)
 *
 * A GPU works on a stream of its own, which is current on the thread that opened it: everything
 * that this thread asks of libtorch goes there. Another stream copies batches.
 */

struct rfl_torch_device;

/** RFL_TORCH_FAILED: tensors cannot live there now; rfl_torch_error() has the reason and the fix.
 * Leaves the device usable: its context is made. */
RFL_TORCH_CALL rfl_torch_device_probe(enum rfl_device device);

/** The first of the devices that are visible. Release with rfl_torch_device_close(). */
RFL_TORCH_CALL rfl_torch_device_open(enum rfl_device device, struct rfl_torch_device **ret);
/** Waits for it. No tensor of the device may be used afterwards. Accepts NULL. */
void rfl_torch_device_close(struct rfl_torch_device *d);

enum rfl_torch_act {
	RFL_TORCH_SYNC,         /**< wait until everything that was asked for is done */
	RFL_TORCH_SYNC_COPIES,  /**< wait for the copies begun so far */
	RFL_TORCH_RESET_MEMORY, /**< largest bytes count from here */
	/** What is asked for until GRAPH_END is recorded, not done. The device holds one recording.
	 * Where the end fails something cannot be recorded, and the recording is useless. */
	RFL_TORCH_GRAPH_BEGIN,
	RFL_TORCH_GRAPH_END,
	RFL_TORCH_GRAPH_REPLAY,
	RFL_TORCH_GRAPH_DROP, /**< forget the recording, if there is one */
};
RFL_TORCH_CALL rfl_torch_device_do(struct rfl_torch_device *d, enum rfl_torch_act act);

/** NULL: work can be recorded. Else why not. Borrowed. */
const char *rfl_torch_graph_missing(const struct rfl_torch_device *d);

/** A flat block of zeros there: rfl_torch_leaf() makes parameters of it. */
RFL_TORCH_CALL rfl_torch_device_zeros(struct rfl_torch_device *d, int64_t numel,
				      struct rfl_torch_tensor **ret);

/** A tensor of this machine there, strides kept; the memory may be reused when it returns. */
RFL_TORCH_CALL rfl_torch_device_bring(struct rfl_torch_device *d,
				      const struct rfl_torch_tensor *host,
				      struct rfl_torch_tensor **ret);

/** Memory of this machine that the device reads by itself. RFL_TORCH_FAILED: it has no such. */
RFL_TORCH_CALL rfl_torch_device_host_alloc(struct rfl_torch_device *d, size_t bytes, void **ret);
/** Accepts NULL. */
void rfl_torch_device_host_free(struct rfl_torch_device *d, void *memory);

/**
 * Begin to copy a tensor of this machine. Its memory must stay until RFL_TORCH_SYNC_COPIES, and
 * the copy may be used after rfl_torch_device_use().
 */
RFL_TORCH_CALL rfl_torch_device_copy(struct rfl_torch_device *d,
				     const struct rfl_torch_tensor *host,
				     struct rfl_torch_tensor **ret);
/** Let the work that is asked for from now on wait for the copies begun so far; `t` is one. */
RFL_TORCH_CALL rfl_torch_device_use(struct rfl_torch_device *d, const struct rfl_torch_tensor *t);

/** Make n marks for its queue. RFL_TORCH_FAILED: the device has no such. */
RFL_TORCH_CALL rfl_torch_device_reserve(struct rfl_torch_device *d, int64_t n);
RFL_TORCH_CALL rfl_torch_device_record(struct rfl_torch_device *d, int64_t i);
/** Seconds between two that are passed. */
RFL_TORCH_CALL rfl_torch_device_elapsed(struct rfl_torch_device *d, int64_t from, int64_t to,
					double *ret);

/** Largest bytes in use and held since the last reset; NaN: it keeps no account. */
RFL_TORCH_CALL rfl_torch_device_memory(struct rfl_torch_device *d, double *allocated,
				       double *reserved);

/** Versions as NVIDIA writes them: 13000 is CUDA 13.0; 0: not known. */
struct rfl_torch_facts {
	char name[128];
	int pci_domain, pci_bus, pci_device; /**< -1: it is on no PCI bus */
	int64_t memory_bytes;                /**< -1: not known */
	int runtime, driver;
	int capability; /**< of an NVIDIA GPU: 80 is 8.0; 0: not known */
};
RFL_TORCH_CALL rfl_torch_device_facts(struct rfl_torch_device *d, struct rfl_torch_facts *ret);

/* ------------------------------------------------------------------ several processes
 * (shim_dist.cpp)
 *
 * By c10d: gradients are averaged in buckets while backward still runs.
 */

struct rfl_torch_group; /* one process's part in it */

/** NULL when this build can join by Gloo (NCCL), else what it was built without. */
const char *rfl_torch_group_missing(bool nccl);

/**
 * Meet the others; rfl_torch_group_missing() is NULL. Returns when all are there, or
 * RFL_TORCH_FAILED after the timeout.
 * @param nccl    for tensors on GPUs; else Gloo, for those in memory
 * @param params  the trained parameters in the order of the net; referenced
 * @param ret     set on success only; release with rfl_torch_group_leave()
 */
RFL_TORCH_CALL rfl_torch_group_join(const struct rfl_world *world, bool nccl,
				    struct rfl_torch_tensor *const *params, size_t nparams,
				    struct rfl_torch_group **ret);

/** Accepts NULL. */
void rfl_torch_group_leave(struct rfl_torch_group *group);

/** Before a backward whose gradients are exchanged: from here on each bucket is sent as soon as its
 * gradients are there. */
RFL_TORCH_CALL rfl_torch_group_begin(struct rfl_torch_group *group);

/** After it: wait for the buckets, and leave the averages in the gradients. */
RFL_TORCH_CALL rfl_torch_group_finish(struct rfl_torch_group *group);

RFL_TORCH_CALL rfl_torch_group_barrier(struct rfl_torch_group *group);

/** Everybody's n numbers in the order of ranks: size * n. */
RFL_TORCH_CALL rfl_torch_group_gather(struct rfl_torch_group *group, const double *mine, size_t n,
				      double *all);

#ifdef __cplusplus
}
#endif
#endif
