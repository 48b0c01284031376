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

#ifdef __cplusplus
extern "C" {
#endif

/** Raised with every change of the structs below; a plugin of another number is refused. */
#define RFL_ENGINE_ABI 3

enum rfl_device { RFL_DEVICE_CPU, RFL_DEVICE_CUDA, RFL_DEVICE_MPS };
enum rfl_precision {
	RFL_PRECISION_FP32,
	RFL_PRECISION_TF32,
	RFL_PRECISION_AMP, /**< the device's usual 16-bit autocast */
	RFL_PRECISION_BF16,
	RFL_PRECISION_FP16,
};
enum rfl_layout { RFL_LAYOUT_NCHW, RFL_LAYOUT_NHWC /**< channels-last */ };

/** "cpu", "cuda", "mps", NULL and so on: in the order of the enums, for option rows and files. */
extern const char *const rfl_device_names[];
extern const char *const rfl_precision_names[];
extern const char *const rfl_layout_names[];

/** How the net is run. Frozen batch norm trains with the running statistics. */
enum rfl_engine_mode { RFL_ENGINE_EVAL, RFL_ENGINE_TRAIN, RFL_ENGINE_TRAIN_FROZEN_BN };

/** SGD as PyTorch defines it: g += weight_decay * p; buf = momentum * buf + g; p -= lr * buf. */
struct rfl_sgd {
	double lr, momentum, weight_decay;
};

struct rfl_engine_config {
	enum rfl_device device;
	enum rfl_precision precision;
	enum rfl_layout layout;
	int threads; /**< intra-operation threads, at least 1; always set explicitly */
	int64_t max_batch;
	struct rfl_sgd sgd;
	uint64_t seed; /**< of dropout */
	bool dropout;  /**< false: dropout layers pass their input (verification) */
	bool deterministic;
};

/** Images and labels of one forward. The memory belongs to the caller and must stay as it is until
 * the backward of that forward has run. */
struct rfl_batch {
	int64_t n;              /**< samples, 1 to max_batch */
	const float *images;    /**< n * channels * height * width, in `layout` */
	enum rfl_layout layout; /**< of images */
	const int64_t *labels;  /**< n class indices */
};

struct rfl_engine_memory {
	double allocated_peak_bytes; /**< by the engine's own allocator; NaN when it cannot say */
	double reserved_peak_bytes;  /**< NaN when it cannot say */
};

/** Receives the output of one node as contiguous float32, row-major in NCHW order, n * numel. */
typedef enum rfl_rc (*rfl_engine_trace_fn)(int node, const float *values, int64_t numel, void *ctx,
					   struct rfl_err *err);

/** Told what runs next: "fwd/conv1", "bwd/conv1". Borrowed until the marks are switched off. */
typedef enum rfl_rc (*rfl_engine_mark_fn)(const char *name, void *ctx, struct rfl_err *err);

struct rfl_engine; /* private to the plugin; begins with `const struct rfl_engine_ops *ops` */

struct rfl_engine_ops {
	const char *name;    /**< "torch" */
	const char *version; /**< of the library it was built against: "1.13", "2.11" */
	const char *variant; /**< "cpu", "cu130" */
	const char *summary;

	/** Can this device be used here, now? RFL_EUNAVAILABLE with the reason and the cure. */
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
	enum rfl_rc (*set_sgd)(struct rfl_engine *e, const struct rfl_sgd *sgd,
			       struct rfl_err *err);

	/** Run the net and the mean cross entropy. In a training mode the graph is kept for
	 * backward. Does not wait for the device. */
	enum rfl_rc (*forward)(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err);
	/** The same in whatever mode is set, handing out every node's output as it is made. */
	enum rfl_rc (*forward_traced)(struct rfl_engine *e, const struct rfl_batch *batch,
				      rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err);
	/** Gradients of the last forward, replacing older ones. */
	enum rfl_rc (*backward)(struct rfl_engine *e, struct rfl_err *err);
	/** One update of the parameters from the gradients. */
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
	/**
	 * Remember everything that a step changes: parameters, statistics of batch norm, momentum,
	 * the state of dropout's random numbers. One snapshot is kept; a new one replaces it. Taken
	 * between steps: gradients, loss and logits are no part of it. NULL: the engine cannot.
	 */
	enum rfl_rc (*snapshot)(struct rfl_engine *e, struct rfl_err *err);
	/** Be as at the snapshot, as often as asked: the next step gives the same bits each time.
	 * Gradients, loss and logits are forgotten. RFL_EINVAL without a snapshot. */
	enum rfl_rc (*restore)(struct rfl_engine *e, struct rfl_err *err);
	/**
	 * From now on call fn as each node begins, the loss included: "fwd/<node>" in forward, in
	 * the order of the net; "bwd/<node>" in backward, in reverse, for nodes that have work to
	 * do there. A step without a module has its operation behind the block's name
	 * ("fwd/layer1.0.add"). What runs up to the next call, or to the end of forward or
	 * backward, belongs to the node. Called on the thread that called forward or backward; a
	 * failure of fn is that of forward or backward. fn NULL: no longer, and then marks cost
	 * nothing. A member that is NULL: the engine cannot.
	 */
	enum rfl_rc (*mark)(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx,
			    struct rfl_err *err);
	/** Threads and libraries in use, several lines, for the record. Borrowed until close. */
	const char *(*describe)(struct rfl_engine *e);
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
	const char *summary;
	const char *path; /**< of the plugin; NULL when there is none */
	const char
		*missing; /**< why it cannot be used and what to do; NULL when there is a plugin */
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

#ifdef __cplusplus
}
#endif
#endif
