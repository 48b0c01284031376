/*
 * engine.h - what an engine is: it executes a net. Engines live in plugins (shared objects opened
 * with dlopen), so that this program starts without libtorch and CUDA.
 *
 * Life of an engine: open, set parameters (or leave the ones it opened with), then per step
 * forward, backward, step. All calls come from one thread.
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

/** Raised with every change of the structs below; a plugin of another number is refused. */
#define RFL_ENGINE_ABI 5

/** How the net is run. Frozen batch norm trains with the running statistics. */
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
	double momentum;          /**< of sgd */
	double beta1, beta2, eps; /**< of adam and adamw */
};

struct rfl_engine_config {
	enum rfl_device device;
	enum rfl_precision precision;
	enum rfl_layout layout;
	int threads; /**< intra-operation threads, at least 1; always set explicitly */
	int64_t max_batch;
	struct rfl_optimizer optimizer;
	uint64_t seed; /**< of dropout */
	bool dropout;  /**< false: dropout layers pass their input (verification) */
	bool deterministic;
	bool cudnn_benchmark; /**< let cuDNN time its algorithms before it chooses */
	/** What the loss of an auxiliary head counts in training; 0: the heads are not run, and
	 * their parameters have no gradients. */
	double auxiliary_weight;
};

struct rfl_engine_memory {
	double allocated_peak_bytes; /**< by the engine's own allocator; NaN when it cannot say */
	double reserved_peak_bytes;  /**< NaN when it cannot say */
};

/** What backward does with the loss of the last forward. */
struct rfl_backward {
	double weight; /**< the loss counts this much: 1 / micro-batches of a step */
	bool last;     /**< of the step: with several processes gradients are exchanged now */
};

/** Loss scaling of fp16: gradients too small for the format are kept from becoming zero. */
struct rfl_loss_scaling {
	double scale;    /**< NaN: the precision, or evaluation, needs none */
	int64_t skipped; /**< steps left out, since a gradient was not finite; -1: needs none */
};

/** What the engine runs on. "" and NaN-like values where it is not known. */
struct rfl_engine_device {
	char name[128];
	char pci_bus_id[32]; /**< "00000000:01:00.0", to find the same GPU elsewhere */
	char cuda_runtime[32], cuda_driver[32], cudnn[32], nccl[32]; /**< "13.0", "9.19.0" */
	int64_t memory_bytes;                                        /**< -1: not known */
};

/** Several processes that train together (data-parallel). One alone has rank 0, size 1, and needs
 * no address. */
struct rfl_world {
	int rank, size;    /**< of all processes */
	int local_rank;    /**< on this machine: the GPU that is ours */
	int local_size;    /**< -1: not known */
	char address[256]; /**< where rank 0 listens */
	int port;
	bool hosted;              /**< the launcher listens there, and rank 0 does not */
	double timeout_s;         /**< for the others to come, and for each exchange */
	int64_t bucket_bytes;     /**< gradients are exchanged in pieces of about this size */
	const char *interconnect; /**< "auto", "gloo", "nccl"; static */
	/** "torchrun", "slurm", "openmpi", "mpich", "roofline" (--world N); NULL: one process. */
	const char *launcher;
	int64_t run_number; /**< N that this process would give a label that is made */
};

/** Receives the output of one node as contiguous float32, row-major in NCHW order, n * numel. */
typedef enum rfl_rc (*rfl_engine_trace_fn)(int node, const float *values, int64_t numel, void *ctx,
					   struct rfl_err *err);

/** Receives the name of what runs next: "fwd/conv1", "bwd/conv1". Borrowed until the marks are
 * switched off. */
typedef enum rfl_rc (*rfl_engine_mark_fn)(const char *name, void *ctx, struct rfl_err *err);

struct rfl_engine; /* private to the plugin; begins with `const struct rfl_engine_ops *ops` */

struct rfl_engine_ops {
	const char *name;    /**< "torch" */
	const char *version; /**< of the library it was built against: "1.13", "2.11" */
	const char *variant; /**< "cpu", "cu130" */

	/** Can this device be used here, now? RFL_EUNAVAILABLE with the reason and the remedy. */
	enum rfl_rc (*probe)(enum rfl_device device, struct rfl_err *err);

	/** Version of the library that is loaded, as it reports itself. Borrowed. */
	const char *(*library_version)(void);

	/** NULL when the operation is executed in that precision, else the reason why not. */
	const char *(*unsupported)(enum rfl_op op, enum rfl_precision precision);

	/**
	 * Make an engine for a net. The net must outlive it. Parameters start as zeros.
	 * @return RFL_OK; RFL_EUNSUPPORTED naming the operation; RFL_EDEVMEM; RFL_EUNAVAILABLE
	 */
	enum rfl_rc (*open)(const struct rfl_net *net, const struct rfl_engine_config *config,
			    struct rfl_engine **ret, struct rfl_err *err);
	void (*close)(struct rfl_engine *e); /* accepts NULL */

	enum rfl_rc (*set_mode)(struct rfl_engine *e, enum rfl_engine_mode mode,
				struct rfl_err *err);
	/** Other numbers for the same rule. RFL_EUNSUPPORTED for another rule. */
	enum rfl_rc (*set_optimizer)(struct rfl_engine *e, const struct rfl_optimizer *optimizer,
				     struct rfl_err *err);

	/** Run the net and the mean cross entropy. In a training mode the graph is kept for
	 * backward. Does not wait for the device. */
	enum rfl_rc (*forward)(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err);
	/** The same in whatever mode is set, handing out every node's output as it is made. */
	enum rfl_rc (*forward_traced)(struct rfl_engine *e, const struct rfl_batch *batch,
				      rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err);
	/** Forget the gradients; their memory goes back. The first call of a training step. */
	enum rfl_rc (*zero_grad)(struct rfl_engine *e, struct rfl_err *err);
	/** Gradients of the last forward, added to those that are there.
	 * @param how  NULL: weight 1, the last of its step */
	enum rfl_rc (*backward)(struct rfl_engine *e, const struct rfl_backward *how,
				struct rfl_err *err);
	/** One update of the parameters from the gradients. With loss scaling they are unscaled
	 * first, and the update is left out when one is not finite. */
	enum rfl_rc (*step)(struct rfl_engine *e, struct rfl_err *err);
	/** Forget gradients, momentum and step count. */
	enum rfl_rc (*reset_optimizer)(struct rfl_engine *e, struct rfl_err *err);

	/** Mean loss of the last forward; waits for it. */
	enum rfl_rc (*loss)(struct rfl_engine *e, double *ret, struct rfl_err *err);
	/** Logits of the last forward, n * classes, row-major. */
	enum rfl_rc (*logits)(struct rfl_engine *e, float *out, int64_t numel, struct rfl_err *err);

	/* Parameters and buffers by index into net->params, contiguous, in PyTorch's order. */
	enum rfl_rc (*set_param)(struct rfl_engine *e, int param, const float *values,
				 int64_t numel, struct rfl_err *err);
	enum rfl_rc (*get_param)(struct rfl_engine *e, int param, float *out, int64_t numel,
				 struct rfl_err *err);
	/** Gradient of a trained parameter, before weight decay: between backward and step, which
	 * may use its memory up. RFL_EINVAL for a buffer, or at another time. */
	enum rfl_rc (*get_grad)(struct rfl_engine *e, int param, float *out, int64_t numel,
				struct rfl_err *err);
	/** Borrowed memory of a parameter to be filled in place (contiguous, PyTorch's order), or
	 * NULL where the engine keeps it elsewhere or in another layout; then use set_param. */
	float *(*param_data)(struct rfl_engine *e, int param);

	enum rfl_rc (*sync)(struct rfl_engine *e, struct rfl_err *err);
	enum rfl_rc (*memory)(struct rfl_engine *e, struct rfl_engine_memory *ret,
			      struct rfl_err *err);
	/** Remember everything that a step changes: parameters, statistics of batch norm, momentum,
	 * the state of dropout's random numbers. A new snapshot replaces the old one. Taken between
	 * steps: gradients, loss and logits are no part of it. NULL: the engine cannot. */
	enum rfl_rc (*snapshot)(struct rfl_engine *e, struct rfl_err *err);
	/** Be as at the snapshot, as often as asked: the next step gives the same bits each time.
	 * Gradients, loss and logits are forgotten. RFL_EINVAL without a snapshot. */
	enum rfl_rc (*restore)(struct rfl_engine *e, struct rfl_err *err);
	/**
	 * From now on call fn as each node begins, the loss included: "fwd/<node>" in forward, in
	 * the order of the net; "bwd/<node>" in backward, in reverse, for nodes that have work to
	 * do there. A step without a module has its operation after the block's name
	 * ("fwd/layer1.0.add"). What runs up to the next call, or to the end of forward or
	 * backward, belongs to the node. Called on the thread that called forward or backward; a
	 * failure of fn is that of forward or backward. fn NULL: no longer, and then marks cost
	 * nothing. A member that is NULL: the engine cannot.
	 */
	enum rfl_rc (*mark)(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx,
			    struct rfl_err *err);

	/* ---- members that may be NULL: the engine cannot, or its device does not need it ---- */

	enum rfl_rc (*device_info)(struct rfl_engine *e, struct rfl_engine_device *ret,
				   struct rfl_err *err);
	/** Peaks of memory() count from here. */
	enum rfl_rc (*reset_memory)(struct rfl_engine *e, struct rfl_err *err);
	enum rfl_rc (*scaling)(struct rfl_engine *e, struct rfl_loss_scaling *ret,
			       struct rfl_err *err);

	/** Memory of this machine that the device can read while it works (page-locked). */
	enum rfl_rc (*host_alloc)(struct rfl_engine *e, size_t bytes, void **ret,
				  struct rfl_err *err);
	void (*host_free)(struct rfl_engine *e, void *memory);
	/** Begin to copy a batch to the device, beside what it is doing; the forward of this batch
	 * waits for it there. The batch's memory must stay until uploaded() returned. */
	enum rfl_rc (*upload)(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err);
	enum rfl_rc (*uploaded)(struct rfl_engine *e, struct rfl_err *err);

	/* Marks in the device's own queue of work, for times that no one has to wait for. */
	/** Make room for n of them: before the window. RFL_EUNSUPPORTED: this device has none, and
	 * is timed by waiting for it. */
	enum rfl_rc (*reserve_events)(struct rfl_engine *e, int64_t n, struct rfl_err *err);
	/** Put mark i after what was asked for so far. */
	enum rfl_rc (*record_event)(struct rfl_engine *e, int64_t i, struct rfl_err *err);
	/** Seconds between two marks that the device has passed (after sync). */
	enum rfl_rc (*elapsed)(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
			       struct rfl_err *err);

	/**
	 * Record a whole step once, to be replayed as one piece of work: zero_grad, forward,
	 * backward and step, or the first of them.
	 * Needs some steps done in the ordinary way before it, of the same mode. Setting another
	 * mode or other numbers of the optimizer and going back to a snapshot forget it.
	 * @param batch  gives shapes, and the values of the first replay
	 * @return RFL_OK; RFL_EUNSUPPORTED with the reason
	 */
	enum rfl_rc (*capture)(struct rfl_engine *e, const struct rfl_batch *batch, bool backward,
			       bool step, struct rfl_err *err);
	/** One recorded step on the values of a batch of the same shape. */
	enum rfl_rc (*replay)(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err);

	/** Become one of several processes: the gradients of a step are averaged over all from now
	 * on. After open, before the first forward. RFL_EUNAVAILABLE, RFL_ETIMEOUT. */
	enum rfl_rc (*join)(struct rfl_engine *e, const struct rfl_world *world,
			    struct rfl_err *err);
	/** Wait until every process is here. */
	enum rfl_rc (*barrier)(struct rfl_engine *e, struct rfl_err *err);
	/** Everybody's n numbers, in the order of ranks: size * n. */
	enum rfl_rc (*gather)(struct rfl_engine *e, const double *mine, size_t n, double *all,
			      struct rfl_err *err);

	/** Which kernels make the updates: "foreach" or "fused", whatever was asked for. Static. */
	const char *(*optimizer_kernels)(struct rfl_engine *e);
};

/**
 * The one symbol of a plugin.
 * @param abi  RFL_ENGINE_ABI of the caller
 * @return the table, or NULL when the plugin was built for another ABI
 */
typedef const struct rfl_engine_ops *(*rfl_engine_plugin_fn)(uint32_t abi);
#define RFL_ENGINE_PLUGIN_SYMBOL "rfl_engine_plugin"

/** One row of `roofline list engines`. Rows never disappear: `missing` says how to get it. */
struct rfl_engine_row {
	const char *name; /**< "torch" */
	const char *id;   /**< "torch-1.13-cpu": the plugin's file name without engine_ and .so */
	const char *version; /**< "1.13"; "" without a plugin */
	const char *summary;
	const char *path;    /**< of the plugin; NULL when there is none */
	const char *missing; /**< why it cannot be used and what to do; NULL with a plugin */
};

struct rfl_engine_list; /* the plugins found in the folders given */

/**
 * Look for plugins named engine_<name>-<version>-<variant>.so. Nothing is opened.
 * @param dirs  NULL-terminated folders in order of preference
 * @param ret   set on success only; release with rfl_engine_list_free()
 */
enum rfl_rc rfl_engine_list_new(const char *const *dirs, struct rfl_engine_list **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_engine_list_free(struct rfl_engine_list *list);
/** The i-th row or NULL. */
const struct rfl_engine_row *rfl_engine_list_at(const struct rfl_engine_list *list, size_t i);

/**
 * Open a plugin and return its table.
 *
 * @param want    "auto", a name ("torch"), a name with a version ("torch@2.11"), or an id
 * @param device  the device that it must serve
 * @param ret     borrowed; valid until the process ends
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason of each candidate; RFL_ENOTFOUND
 */
enum rfl_rc rfl_engine_load(const struct rfl_engine_list *list, const char *want,
			    enum rfl_device device, const struct rfl_engine_ops **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Fill every parameter and buffer of an open engine by the formula of data/fill.h, so that engines
 * can be compared. RFL_ENOMEM, or what set_param returned. */
enum rfl_rc rfl_fill_engine(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			    const struct rfl_net *net, int threads,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
