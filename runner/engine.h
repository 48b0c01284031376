/*
 * engine.h - the interface of engines, which execute a net. Engines are plugins (shared objects
 * opened with dlopen), so that this program starts without loading libtorch or CUDA.
 *
 * Open an engine, set its parameters, then call forward, backward and step for each step, all from
 * one thread.
 */
#ifndef RFL_RUNNER_ENGINE_H
#define RFL_RUNNER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"
#include "data/batch.h"
#include "machine/terms.h"

/** Increment it whenever a struct below changes; plugins with another number are rejected. */
#define RFL_ENGINE_ABI 9

/** Frozen batch norm uses its running statistics in training. */
enum rfl_engine_mode { RFL_ENGINE_EVAL, RFL_ENGINE_TRAIN, RFL_ENGINE_TRAIN_FROZEN_BN };

/**
 * The optimizer, as PyTorch defines it. With g the gradient and p the parameter:
 * sgd:   g += weight_decay * p; buf = momentum * buf + g (g at the first step); p -= lr * buf.
 * adam:  g += weight_decay * p; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
 *        p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
 * adamw: p *= 1 - lr * weight_decay; then as adam without weight decay.
 */
struct rfl_optimizer {
	enum rfl_optimizer_rule rule;
	enum rfl_optimizer_kernels kernels;
	double lr, weight_decay;
	double momentum;          /**< for sgd */
	double beta1, beta2, eps; /**< for adam and adamw */
	/** Before the update, scale all gradients by the same factor so that their norm, over all
	 * parameters, is at most this (torch.nn.utils.clip_grad_norm_); 0: no clipping. */
	double grad_clip;
};

struct rfl_engine_config {
	enum rfl_device device;
	enum rfl_precision precision;
	enum rfl_layout layout;
	int threads; /**< intra-operation threads, at least 1; always set explicitly */
	int64_t max_batch;
	struct rfl_optimizer optimizer;
	uint64_t seed; /**< for dropout */
	bool dropout;  /**< false: dropout layers pass their input through (verification) */
	bool deterministic;
	bool cudnn_benchmark; /**< let cuDNN time its algorithms and choose the fastest */
	/** Weight of an auxiliary head's loss in training; 0: the heads do not run, and their
	 * parameters have no gradients. */
	double auxiliary_weight;
	bool score; /**< every forward adds to the sums that score() returns */
	/** Tokens of each sequence for which there is a cache of keys and values, filled with
	 * random numbers at first; 0: none. With it, only generate() runs, in evaluation mode, and
	 * parameters and cache are stored in the precision. */
	int64_t cache_tokens;
	/** With a cache: the weights of the linear layers in blocks are stored as 8-bit integers,
	 * with a scale for each output feature. */
	bool int8_weights;
};

/** Sums over the forwards of a training run or an evaluation. */
struct rfl_score {
	int64_t rows;    /**< rows of logits: samples, or tokens of a language model */
	int64_t correct; /**< rows in which the logit of the label is the largest */
	double loss;     /**< sum of the rows' losses */
};

/** Bytes of the engine's allocator; NaN if unknown. */
struct rfl_engine_memory {
	double now; /**< with parameters, state of the optimizer and the batch */
	double allocated_peak, reserved_peak;
};

/** How backward uses the loss of the last forward. */
struct rfl_backward {
	double weight; /**< weight of the loss: 1 / micro-batches per step */
	bool last;     /**< last backward of the step: several processes exchange gradients */
};

/** Loss scaling of fp16, which keeps small gradients from becoming zero. */
struct rfl_loss_scaling {
	double scale;    /**< NaN: not needed in this precision or mode */
	int64_t skipped; /**< steps skipped because a gradient was not finite; -1: not needed */
};

/** The device of an engine. Unknown strings are "". */
struct rfl_engine_device {
	char name[128];
	char pci_bus_id[32]; /**< "00000000:01:00.0"; identifies the GPU to other libraries */
	char cuda_runtime[32], cuda_driver[32], cudnn[32], nccl[32]; /**< "13.0", "9.19.0" */
	int64_t memory_bytes;                                        /**< -1: unknown */
};

/** The default of rfl_world.bucket_bytes, as in PyTorch's DDP. */
#define RFL_WORLD_BUCKET_BYTES ((int64_t)25 << 20)

/** Processes that train together (data-parallel). A single process has rank 0 and size 1, and needs
 * no address. */
struct rfl_world {
	int rank, size; /**< rank among all processes, and their number */
	int local_rank; /**< rank on this machine; selects the GPU */
	int local_size; /**< -1: unknown */
	/** Host on which rank 0 listens; or, with port 0, the path of an empty file with which
	 * processes of one machine find each other. Then nothing listens but at 127.0.0.1. */
	char address[256];
	int port;
	bool hosted;              /**< the launcher listens at the address instead of rank 0 */
	double timeout_s;         /**< limit for joining and for each exchange */
	int64_t bucket_bytes;     /**< approximate size of the exchanged gradient buckets */
	const char *interconnect; /**< "auto", "gloo", "nccl"; static string */
	/** "torchrun", "slurm", "openmpi", "mpich", "roofline" (--world N); NULL: one process. */
	const char *launcher;
	int64_t run_number; /**< this process's proposal for N in a generated label */
};

/** Receives the output of one node: n * numel contiguous float32, row-major in NCHW order. */
typedef enum rfl_rc (*rfl_engine_trace_fn)(int node, const float *values, int64_t numel, void *ctx,
					   struct rfl_err *err);

/** Receives the name of the next node, "fwd/conv1" or "bwd/conv1", valid until marks are off. */
typedef enum rfl_rc (*rfl_engine_mark_fn)(const char *name, void *ctx, struct rfl_err *err);

/** Reads or fills one part of an engine's state: float32 in PyTorch's order under the name of the
 * parameter ("conv1.weight", "conv1.weight:mean"), or bytes that only the same engine understands
 * ("random"). */
typedef enum rfl_rc (*rfl_engine_state_fn)(const char *name, void *data, size_t bytes, void *ctx,
					   struct rfl_err *err);

struct rfl_engine; /* private to the plugin; begins with `const struct rfl_engine_ops *ops` */

struct rfl_engine_ops {
	const char *name;    /**< "torch" */
	const char *version; /**< library version that it was built against: "1.13", "2.11" */
	const char *variant; /**< "cpu", "cu130" */

	/** RFL_OK if this device can be used; RFL_EUNAVAILABLE with the reason and the remedy. */
	enum rfl_rc (*probe)(enum rfl_device device, struct rfl_err *err);

	/** Version of the loaded library. Borrowed. */
	const char *(*library_version)(void);

	/** NULL if the engine executes the operation in that precision, else the reason. */
	const char *(*unsupported)(enum rfl_op op, enum rfl_precision precision);

	/**
	 * Create an engine for a net, which must outlive it. Parameters start as zeros.
	 * @return RFL_OK; RFL_EUNSUPPORTED naming the operation; RFL_EDEVMEM; RFL_EUNAVAILABLE
	 */
	enum rfl_rc (*open)(const struct rfl_net *net, const struct rfl_engine_config *config,
			    struct rfl_engine **ret, struct rfl_err *err);
	void (*close)(struct rfl_engine *e); /* accepts NULL */

	enum rfl_rc (*set_mode)(struct rfl_engine *e, enum rfl_engine_mode mode,
				struct rfl_err *err);
	/** Change the update rule's parameters, such as lr. RFL_EUNSUPPORTED for another rule. */
	enum rfl_rc (*set_optimizer)(struct rfl_engine *e, const struct rfl_optimizer *optimizer,
				     struct rfl_err *err);

	/** Run the net and compute the mean cross entropy. In a training mode, keep the graph for
	 * backward. Does not wait for the device. */
	enum rfl_rc (*forward)(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err);
	/** Like forward, in any mode, and pass every node's output to fn, but for nodes that the
	 * engine runs as one. */
	enum rfl_rc (*forward_traced)(struct rfl_engine *e, const struct rfl_batch *batch,
				      rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err);
	/** Discard the gradients and free their memory. Call it first in a training step. */
	enum rfl_rc (*zero_grad)(struct rfl_engine *e, struct rfl_err *err);
	/** Accumulate the gradients of the last forward.
	 * @param how  NULL: weight 1, last of the step */
	enum rfl_rc (*backward)(struct rfl_engine *e, const struct rfl_backward *how,
				struct rfl_err *err);
	/** Update the parameters from the gradients. With loss scaling, unscale the gradients
	 * first, and skip the update if one is not finite. */
	enum rfl_rc (*step)(struct rfl_engine *e, struct rfl_err *err);
	/** Discard gradients, momentum and step count. */
	enum rfl_rc (*reset_optimizer)(struct rfl_engine *e, struct rfl_err *err);

	/** Get the mean loss of the last forward, after waiting for it. */
	enum rfl_rc (*loss)(struct rfl_engine *e, double *ret, struct rfl_err *err);
	/** Get the logits of the last forward, n * classes, row-major. */
	enum rfl_rc (*logits)(struct rfl_engine *e, float *out, int64_t numel, struct rfl_err *err);

	/* Access to parameters and buffers by index into net->params, contiguous, in PyTorch's
	 * order. */
	enum rfl_rc (*set_param)(struct rfl_engine *e, int param, const float *values,
				 int64_t numel, struct rfl_err *err);
	enum rfl_rc (*get_param)(struct rfl_engine *e, int param, float *out, int64_t numel,
				 struct rfl_err *err);
	/** Gradient of a trained parameter, before weight decay; valid only between backward and
	 * step, which may overwrite it. RFL_EINVAL for a buffer or at another time. */
	enum rfl_rc (*get_grad)(struct rfl_engine *e, int param, float *out, int64_t numel,
				struct rfl_err *err);
	/** Borrowed memory of a parameter to fill in place (contiguous, PyTorch's order); NULL if
	 * the engine keeps it elsewhere or in another layout: use set_param. */
	float *(*param_data)(struct rfl_engine *e, int param);

	enum rfl_rc (*sync)(struct rfl_engine *e, struct rfl_err *err);
	/** Get the memory in use, and the peaks since reset_memory(). */
	enum rfl_rc (*memory)(struct rfl_engine *e, struct rfl_engine_memory *ret,
			      struct rfl_err *err);
	/** Save everything that a step changes: parameters, statistics of batch norm, the state of
	 * the optimizer and of dropout's random numbers, but not gradients, loss or logits.
	 * Replaces any earlier snapshot. Call it between steps. NULL member: not supported. */
	enum rfl_rc (*snapshot)(struct rfl_engine *e, struct rfl_err *err);
	/** Return to the snapshot, any number of times: the next step is then bit-identical each
	 * time. Discards gradients, loss and logits. RFL_EINVAL without a snapshot. */
	enum rfl_rc (*restore)(struct rfl_engine *e, struct rfl_err *err);
	/** Call fn when each node begins, including the loss: with "fwd/<node>" in forward, in the
	 * order of the net, and with "bwd/<node>" in backward, in reverse order, for nodes that do
	 * work there. A node without a module is named after its block and operation
	 * ("fwd/layer1.0.add"). Of nodes that the engine runs as one, only the first is reported,
	 * where the last is in the order. A node ends at the next call, or at the end of forward or
	 * backward.
	 * fn runs on the calling thread, and forward or backward returns its failure. If fn is
	 * NULL, marks are off and cost nothing. NULL member: not supported. */
	enum rfl_rc (*mark)(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx,
			    struct rfl_err *err);

	/* ---- members that may be NULL: not supported, or not needed on this device ---- */

	enum rfl_rc (*device_info)(struct rfl_engine *e, struct rfl_engine_device *ret,
				   struct rfl_err *err);
	enum rfl_rc (*reset_memory)(struct rfl_engine *e, struct rfl_err *err);
	enum rfl_rc (*scaling)(struct rfl_engine *e, struct rfl_loss_scaling *ret,
			       struct rfl_err *err);

	/** Allocate page-locked memory, which the device can read while it computes. */
	enum rfl_rc (*host_alloc)(struct rfl_engine *e, size_t bytes, void **ret,
				  struct rfl_err *err);
	void (*host_free)(struct rfl_engine *e, void *memory);
	/** Begin to copy a batch to the device while it computes; on the device, the batch's
	 * forward waits for the copy. Keep the batch's memory until uploaded() has returned. */
	enum rfl_rc (*upload)(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err);
	enum rfl_rc (*uploaded)(struct rfl_engine *e, struct rfl_err *err);

	/* Events in the device's queue, to time its work without waiting for it. */
	/** Reserve n events before the window. RFL_EUNSUPPORTED: the device has no events; sync
	 * after every step to time it. */
	enum rfl_rc (*reserve_events)(struct rfl_engine *e, int64_t n, struct rfl_err *err);
	/** Queue event i after the work queued so far. */
	enum rfl_rc (*record_event)(struct rfl_engine *e, int64_t i, struct rfl_err *err);
	/** Get the seconds between two events that the device has passed (call it after sync). */
	enum rfl_rc (*elapsed)(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
			       struct rfl_err *err);

	/**
	 * Record a step for replay: forward, and optionally zero_grad, backward and step. Run some
	 * ordinary steps in the same mode first. set_mode, set_optimizer and restore discard the
	 * recording.
	 * @param batch  provides the shapes, and the values for the first replay
	 * @return RFL_OK; RFL_EUNSUPPORTED with the reason
	 */
	enum rfl_rc (*capture)(struct rfl_engine *e, const struct rfl_batch *batch, bool backward,
			       bool step, struct rfl_err *err);
	/** Replay the recorded step on a batch of the same shape. */
	enum rfl_rc (*replay)(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err);

	/** Join the other processes; from then on, gradients are averaged over all of them. Call it
	 * between open and the first forward. RFL_EUNAVAILABLE, RFL_ETIMEOUT. */
	enum rfl_rc (*join)(struct rfl_engine *e, const struct rfl_world *world,
			    struct rfl_err *err);
	/** Collect n numbers from each process into all[size * n], in rank order, after waiting for
	 * all of them. */
	enum rfl_rc (*gather)(struct rfl_engine *e, const double *mine, size_t n, double *all,
			      struct rfl_err *err);

	/** The kernels in use for updates, "foreach" or "fused" (a static string). */
	const char *(*optimizer_kernels)(struct rfl_engine *e);

	/** Get the sums since the last call, after waiting for them, and start again from zero.
	 * Requires config.score. */
	enum rfl_rc (*score)(struct rfl_engine *e, struct rfl_score *ret, struct rfl_err *err);
	/**
	 * Pass each part of the state that a step changes to fn, in an order that depends only on
	 * the net, the optimizer and the device: parameters, statistics of batch norm, the state of
	 * the optimizer and of dropout's random numbers, but not gradients, loss or logits. Call it
	 * between steps.
	 * @param load  false: the data is the current state; true: fn fills it in
	 */
	enum rfl_rc (*visit_state)(struct rfl_engine *e, bool load, rfl_engine_state_fn fn,
				   void *ctx, struct rfl_err *err);
	/** Count all allocations from now on, for memory(), or stop. Discards gradients, loss and
	 * logits. Counting costs nothing while it is off. */
	enum rfl_rc (*watch_memory)(struct rfl_engine *e, bool on, struct rfl_err *err);

	/**
	 * Run a net of a language model on new tokens, and keep their keys and values in the cache;
	 * logits() then returns the last ones of each sequence. No loss. Does not wait for the
	 * device. Requires config.cache_tokens.
	 * @param batch  NULL: the tokens with the largest logits of the last call; only for a net
	 *               of one token
	 * @param past   the tokens of the cache that they follow; later ones are forgotten
	 */
	enum rfl_rc (*generate)(struct rfl_engine *e, const struct rfl_batch *batch, int64_t past,
				struct rfl_err *err);
};

/**
 * The only symbol that a plugin exports.
 * @param abi  the caller's RFL_ENGINE_ABI
 * @return the table, or NULL if the plugin was built for another ABI
 */
typedef const struct rfl_engine_ops *(*rfl_engine_plugin_fn)(uint32_t abi);
#define RFL_ENGINE_PLUGIN_SYMBOL "rfl_engine_plugin"

/** One row of `roofline list engines`. A known engine has a row even without a plugin. */
struct rfl_engine_row {
	const char *name; /**< "torch" */
	const char *id;   /**< "torch-1.13-cpu": the plugin's file name without engine_ and .so */
	const char *version; /**< "1.13"; "" without a plugin */
	const char *summary;
	const char *path;    /**< path of the plugin; NULL: none */
	const char *missing; /**< why it cannot be used and what to do; NULL with a plugin */
};

struct rfl_engine_list; /* the plugins found in the given directories */

/**
 * Look for plugins named engine_<name>-<version>-<variant>.so, without opening them.
 * @param dirs  NULL-terminated directories in order of preference
 * @param ret   set on success only; release with rfl_engine_list_free()
 */
enum rfl_rc rfl_engine_list_new(const char *const *dirs, struct rfl_engine_list **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_engine_list_free(struct rfl_engine_list *list);
RFL_AUTOPTR_TYPE(engine_list, free);
/** The i-th row or NULL. */
const struct rfl_engine_row *rfl_engine_list_at(const struct rfl_engine_list *list, size_t i);

/**
 * Open a plugin and return its table.
 * @param want    "auto" (all of them, "planned" last), a name ("torch"), a name with a
 *                version ("torch@2.11"), or an id
 * @param device  device that the plugin must support
 * @param ret     borrowed; valid until the process ends
 * @return RFL_OK; RFL_EUNAVAILABLE with a reason for each candidate; RFL_ENOTFOUND
 */
enum rfl_rc rfl_engine_load(const struct rfl_engine_list *list, const char *want,
			    enum rfl_device device, const struct rfl_engine_ops **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** The engines to try if the device is chosen as well: for "auto" all but "planned", unless there
 * is no other. A GPU is not worth an engine that runs few networks. */
const char *rfl_engine_on_any(const struct rfl_engine_list *list, const char *want);

/** Fill every parameter and buffer of an open engine with the formula of data/fill.h. @return
 * RFL_OK, RFL_ENOMEM or the error of set_param */
enum rfl_rc rfl_fill_engine(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			    const struct rfl_net *net, int threads,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
