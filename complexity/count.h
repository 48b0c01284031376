/*
 * count.h - what a network costs: multiply-adds, elementwise operations, bytes.
 *
 * Conventions. A MAC is one multiply-add of a convolution or a matmul, including kernel
 * taps that fall into the zero padding, but not the bias; core FLOPs are 2 x MACs. The first
 * operation with weights needs no gradient of its input (dgrad) unless the image itself needs one.
 * Elementwise operations are counted separately, by kind, and never added to the core count. Counts
 * are exact int64; a count that does not fit fails with RFL_EOVERFLOW.
 *
 *	struct rfl_count_options options = { .batch = 32, .training = true };
 *
 *	rc = rfl_zoo_build("resnet50", NULL, &net, &err);
 *	if (rc == RFL_OK)
 *		rc = rfl_count_net(net, &options, &count, &err);
 *	if (rc == RFL_OK)
 *		printf("%lld FLOPs\n", (long long)rfl_count_training_flops(count));
 */
#ifndef RFL_COMPLEXITY_COUNT_H
#define RFL_COMPLEXITY_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

RFL_API_BEGIN

/** The parts of a training step to which an operation contributes. */
enum rfl_pass {
	RFL_PASS_FORWARD,
	RFL_PASS_DGRAD, /**< gradients of inputs */
	RFL_PASS_WGRAD, /**< gradients of parameters */
	/** Forward work repeated in the backward pass: checkpointed blocks and the scores of a
	 * fused attention. HFU counts it; MFU does not. */
	RFL_PASS_RECOMPUTE,
	RFL_PASS_COUNT
};

/**
 * Levels at which DRAM traffic is counted:
 * unfused     every operation reads its inputs and writes its output;
 * fused       normalisations, activations, dropout and reshapes are merged into the operation
 *             before them; an addition reads only the residual (as a fusing compiler or library
 * does); compulsory  parameters, input and result once: the minimum for any schedule.
 */
enum rfl_fusion { RFL_FUSION_UNFUSED, RFL_FUSION_FUSED, RFL_FUSION_COMPULSORY, RFL_FUSION_COUNT };

/** "unfused", "fused", "compulsory", NULL, in the order of enum rfl_fusion. */
extern const char *const rfl_fusion_names[];

/** Elementwise operations by kind. `special` covers exp, log, sqrt and division. */
struct rfl_elementwise {
	int64_t add, mul, compare, special;
};

struct rfl_traffic {
	int64_t read_bytes, write_bytes;
};

struct rfl_cost {
	int64_t macs[RFL_PASS_COUNT];
	int64_t macs_excl_padding; /**< forward, without kernel taps that fall into the padding */
	int64_t bias_adds;         /**< forward additions of a bias, not included in elementwise */
	struct rfl_elementwise elementwise[RFL_PASS_COUNT];
	struct rfl_traffic traffic[RFL_FUSION_COUNT][RFL_PASS_COUNT];
};

/** Tensors kept by autograd, by kind. */
enum rfl_saved_class {
	RFL_SAVED_CLASS_ACTIVATIONS, /**< tensors of the net: inputs and outputs of operations */
	RFL_SAVED_CLASS_CLONES,      /**< copies made because an operation overwrites its input */
	RFL_SAVED_CLASS_INDICES,     /**< int64 positions of maxima */
	RFL_SAVED_CLASS_MASKS,       /**< masks of dropouts and causal masks */
	RFL_SAVED_CLASS_STATISTICS,  /**< means, deviations and sums of rows or channels */
	RFL_SAVED_CLASS_INPUT,       /**< the image or the tokens, and the labels */
	RFL_SAVED_CLASS_LOSS,        /**< log-probabilities, or the steps of a composed loss */
	RFL_SAVED_CLASS_COUNT,
};

/** "activations", ..., NULL, in the order of enum rfl_saved_class. */
extern const char *const rfl_saved_class_names[];

enum rfl_optimizer_kind { RFL_OPT_SGD, RFL_OPT_MOMENTUM, RFL_OPT_ADAM, RFL_OPT_ADAMW };

/** When a library has a fused kernel for a fused attention on a device. Without one it runs the
 * parts: the scores are stored, and nothing is recomputed. */
enum rfl_fused_attention { RFL_FUSED_ALWAYS, RFL_FUSED_WITHOUT_DROPOUT, RFL_FUSED_NEVER };

struct rfl_count_options {
	int64_t batch;        /**< samples per step, at least 1 */
	bool training;        /**< batch norms use batch statistics; dropout is active */
	bool input_grad;      /**< the image needs a gradient, so the first layer has a dgrad */
	enum rfl_dtype dtype; /**< the type of activations and weights */
	/** Autocast: `dtype` applies to activations and to a copy of the weights; the weights
	 * themselves, their gradients and the optimizer state are F32. */
	bool master_weights;
	enum rfl_optimizer_kind optimizer;
	bool grad_clip; /**< the norm of all gradients is limited before the update */
	/** Of products under a causal mask, count only the triangle: (T + 1) / 2T of the square. */
	bool causal_half;
	enum rfl_fused_attention fused_attention;
	bool auxiliary; /**< training also runs the auxiliary heads */
	/** Activation checkpointing: the number of repeated blocks in a segment, or 0 for none. */
	int64_t checkpoint;
	/** Paths of modules with frozen parameters ("features", "layer1.0"); borrowed. */
	const char *const *frozen;
	size_t nfrozen;
};

/** A whole network at one batch size. Node costs are for the whole batch. */
struct rfl_count {
	struct rfl_count_options options;
	int64_t params, buffers; /**< in elements */
	int64_t trained;         /**< elements of parameters that are not frozen */
	struct rfl_cost total;   /**< sum over the nodes, and in training the loss */
	struct rfl_cost loss;    /**< mean cross entropy of the logits; zeros without training */
	struct rfl_traffic optimizer; /**< one update of all parameters */
	struct rfl_elementwise optimizer_flops;
	/** Compulsory traffic of a whole training step: weights and optimizer state read and
	 * written, gradients written, image and labels read, each once. */
	struct rfl_traffic step_compulsory;
	int nnodes;
	struct rfl_cost *nodes;    /**< parallel to net->nodes */
	const struct rfl_net *net; /**< borrowed; must outlive the count */
	struct rfl_links *links;   /**< independent of the batch; see count/links.h */
	struct rfl_arena *arena;   /**< owns everything above, including this struct */
};

/**
 * Count a network.
 *
 * @param ret  set on success only; release with rfl_count_free()
 * @return RFL_OK; RFL_EINVAL for a batch below 1; RFL_EOVERFLOW names the node
 */
enum rfl_rc rfl_count_net(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_count **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Count the same network at another batch size, in place. Nothing is allocated, so sweeps are
 * cheap.
 * @return RFL_OK; RFL_EINVAL or RFL_EOVERFLOW as above, after which the numbers are undefined
 */
enum rfl_rc rfl_count_at(struct rfl_count *count, int64_t batch,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_count_free(struct rfl_count *count);
RFL_AUTOPTR_TYPE(count, free);

/** Core FLOPs executed by a training step: 2 x (forward + dgrad + wgrad + recomputed MACs). */
int64_t rfl_count_training_flops(const struct rfl_count *count);

/** Core FLOPs of a training step without recomputation, as in the definition of MFU. */
int64_t rfl_count_model_flops(const struct rfl_count *count);

/** Core FLOPs of a forward pass: 2 x forward MACs. */
int64_t rfl_count_forward_flops(const struct rfl_count *count);

/** The attention implementation as it runs: "composed", "naive" or "sdpa", or "sdpa unfused" if a
 * fused attention runs as its parts. NULL: there is none. */
const char *rfl_count_attention(const struct rfl_count *count);

/** Bytes moved at a level of fusion by the forward pass, both passes, or a whole training step. */
enum rfl_scope { RFL_SCOPE_FORWARD, RFL_SCOPE_FORWARD_BACKWARD, RFL_SCOPE_STEP };
int64_t rfl_count_bytes(const struct rfl_count *count, enum rfl_fusion fusion,
			enum rfl_scope scope);

/** Bytes of optimizer state: the momentum, or both moments of Adam. */
int64_t rfl_count_state_bytes(const struct rfl_count *count);

/** Check that a path of rfl_count_options.frozen names a module with parameters. */
enum rfl_rc rfl_count_check_frozen(const struct rfl_net *net, const char *module,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/** Bytes per element. */
int64_t rfl_dtype_bytes(enum rfl_dtype dtype);

/** The element type of a precision (one of rfl_precision_names), and whether weights are kept in
 * F32 (amp). RFL_EINVAL for any other name. */
enum rfl_rc rfl_precision_storage(const char *precision, enum rfl_dtype *dtype,
				  bool *master_weights, struct rfl_err *err) RFL_WARN_UNUSED;

/** "sgd", "momentum", "adam", "adamw", NULL, in the order of enum rfl_optimizer_kind. */
extern const char *const rfl_optimizer_names[];

/** The sum over all four kinds of elementwise operations. */
int64_t rfl_elementwise_sum(const struct rfl_elementwise *e);

/** A resource that can limit the time of some work. */
enum rfl_limit {
	RFL_LIMIT_COMPUTE, /**< multiply-adds of convolutions and matmuls */
	RFL_LIMIT_VECTOR,  /**< elementwise operations */
	RFL_LIMIT_MEMORY,  /**< DRAM traffic */
	RFL_LIMIT_COUNT
};

/** "compute", "vector", "memory", NULL. */
extern const char *const rfl_limit_names[];

/** The minimum time of some work, as a sum over the resources that limit its parts. */
struct rfl_attained {
	double limit_s[RFL_LIMIT_COUNT];
};

/** The sum over all limits. */
double rfl_attained_time(const struct rfl_attained *a);

/** The limit that accounts for most of the time; RFL_LIMIT_COUNT if the time is 0. */
enum rfl_limit rfl_attained_bound(const struct rfl_attained *a);

void rfl_attained_add(struct rfl_attained *sum, const struct rfl_attained *a);

/** The ceilings of a machine. */
struct rfl_attained_roof {
	/**
	 * The minimum time of every node, then (in training) of the loss and of the update.
	 */
	void (*attain)(const struct rfl_attained_roof *roof, const struct rfl_count *count,
		       struct rfl_attained *times);
	const char *about;      /**< one line for display: the environment and its ceilings */
	const char *env;        /**< the name of the environment */
	enum rfl_fusion fusion; /**< the traffic level that is compared with its bandwidth */
};

RFL_API_END
#endif
