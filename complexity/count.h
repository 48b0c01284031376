/*
 * count.h - what a network costs: multiply-adds, elementwise operations, bytes.
 *
 * Conventions. A MAC is one multiply-add of a convolution or a matrix product, taps that fall into
 * the zero padding included, bias not; FLOPs of the core are 2 x MACs. The first operation that has
 * weights needs no gradient of its input (dgrad) unless the image itself asks for one. Elementwise
 * operations are counted separately, by kind, and never added to the core count.
 * Counts are exact int64; a count that does not fit is RFL_EOVERFLOW.
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

/** The parts of a training step that an operation takes part in. */
enum rfl_pass {
	RFL_PASS_FORWARD,
	RFL_PASS_DGRAD, /**< gradients of inputs */
	RFL_PASS_WGRAD, /**< gradients of parameters */
	/** Forward work repeated in the backward pass: checkpointed blocks, the scores of a fused
	 * attention. HFU counts it, MFU does not. */
	RFL_PASS_RECOMPUTE,
	RFL_PASS_COUNT
};

/**
 * Levels at which DRAM traffic is counted:
 * unfused     every operation reads its inputs and writes its output;
 * fused       normalisation, activation, dropout and reshapes are merged into the operation before
 *             them, an addition reads only the residual (what a fusing compiler or library does);
 * compulsory  parameters, input and result once: the least that any schedule can move.
 */
enum rfl_fusion { RFL_FUSION_UNFUSED, RFL_FUSION_FUSED, RFL_FUSION_COMPULSORY, RFL_FUSION_COUNT };

/** "unfused", "fused", "compulsory", NULL: in the order of enum rfl_fusion. */
extern const char *const rfl_fusion_names[];

/** Elementwise operations by kind. `special` are exp, log, sqrt, division. */
struct rfl_elementwise {
	int64_t add, mul, compare, special;
};

struct rfl_traffic {
	int64_t read_bytes, write_bytes;
};

struct rfl_cost {
	int64_t macs[RFL_PASS_COUNT];
	int64_t macs_excl_padding; /**< forward, without taps that fall into the padding */
	int64_t bias_adds;         /**< forward additions of a bias, not part of elementwise */
	struct rfl_elementwise elementwise[RFL_PASS_COUNT];
	struct rfl_traffic traffic[RFL_FUSION_COUNT][RFL_PASS_COUNT];
};

enum rfl_optimizer_kind { RFL_OPT_SGD, RFL_OPT_MOMENTUM, RFL_OPT_ADAM, RFL_OPT_ADAMW };

struct rfl_count_options {
	int64_t batch;        /**< samples per step, at least 1 */
	bool training;        /**< normalisation by batch statistics, dropout active */
	bool input_grad;      /**< the image needs a gradient: the first layer has a dgrad */
	enum rfl_dtype dtype; /**< of activations and weights: bytes per element */
	/** Autocast: dtype is of activations and of a copy of the weights; the weights themselves,
	 * their gradients and the optimizer's state are F32. */
	bool master_weights;
	enum rfl_optimizer_kind optimizer;
	/** Count only the triangle of products under a causal mask, (T + 1) / 2T of the square. */
	bool causal_half;
	bool auxiliary; /**< training runs the auxiliary heads too */
	/** Activation checkpointing: the number of repeated blocks in a segment; 0: none. */
	int64_t checkpoint;
	/** Paths of modules whose parameters are not trained ("features", "layer1.0"); borrowed. */
	const char *const *frozen;
	size_t nfrozen;
};

/** A whole network at one batch. Node costs are for the whole batch. */
struct rfl_count {
	struct rfl_count_options options;
	int64_t params, buffers; /**< elements */
	int64_t trained;         /**< elements of parameters that are not frozen */
	struct rfl_cost total;   /**< sum over the nodes; with training also the loss */
	struct rfl_cost loss;    /**< mean cross entropy of the logits; zeros without training */
	struct rfl_traffic optimizer; /**< of one step over all parameters */
	struct rfl_elementwise optimizer_flops;
	/** compulsory traffic of a whole training step: weights and optimizer state read and
	 * written, gradients written, image and labels read, once each */
	struct rfl_traffic step_compulsory;
	int nnodes;
	struct rfl_cost *nodes;    /**< parallel to net->nodes */
	const struct rfl_net *net; /**< borrowed: it must live as long as the count */
	struct rfl_links *links;   /**< independent of the batch: count/links.h */
};

/**
 * Count a network.
 *
 * @param ret  set on success only; release with rfl_count_free()
 * @return RFL_OK; RFL_EINVAL for a batch below 1; RFL_EOVERFLOW names the node; RFL_ENOMEM
 */
enum rfl_rc rfl_count_net(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_count **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Count the same network at another batch, in place: nothing is allocated, so sweeps are cheap.
 * @return RFL_OK; RFL_EINVAL, RFL_EOVERFLOW as above; the numbers are then undefined
 */
enum rfl_rc rfl_count_at(struct rfl_count *count, int64_t batch,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_count_free(struct rfl_count *count);

/** Core FLOPs that a training step executes: 2 x (forward + dgrad + wgrad + recomputed MACs). */
int64_t rfl_count_training_flops(const struct rfl_count *count);

/** The same without recomputation, as MFU is defined. */
int64_t rfl_count_model_flops(const struct rfl_count *count);

/** Core FLOPs of a forward pass: 2 x forward MACs. */
int64_t rfl_count_forward_flops(const struct rfl_count *count);

/** Bytes that a pass over the network moves at a level of fusion: forward only, forward and
 * backward, or the whole step with its optimizer. */
enum rfl_scope { RFL_SCOPE_FORWARD, RFL_SCOPE_FORWARD_BACKWARD, RFL_SCOPE_STEP };
int64_t rfl_count_bytes(const struct rfl_count *count, enum rfl_fusion fusion,
			enum rfl_scope scope);

/** Bytes of the optimizer's state: momentum, or both moments of Adam. */
int64_t rfl_count_state_bytes(const struct rfl_count *count);

/** Check that a path of rfl_count_options.frozen names a module with parameters. RFL_EINVAL
 * suggests the nearest. */
enum rfl_rc rfl_count_check_frozen(const struct rfl_net *net, const char *module,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/** Bytes of one element. */
int64_t rfl_dtype_bytes(enum rfl_dtype dtype);

/** The element type of a precision (one of rfl_precision_names), and whether weights are kept in
 * F32 (amp). RFL_EINVAL for any other name. */
enum rfl_rc rfl_precision_storage(const char *precision, enum rfl_dtype *dtype,
				  bool *master_weights, struct rfl_err *err) RFL_WARN_UNUSED;

/** "sgd", "momentum", "adam", "adamw", NULL: in the order of enum rfl_optimizer_kind. */
extern const char *const rfl_optimizer_names[];

/** All four kinds of elementwise operations together. */
int64_t rfl_elementwise_sum(const struct rfl_elementwise *e);

/** The resource that bounds the least time of some work. */
enum rfl_limit {
	RFL_LIMIT_COMPUTE, /**< multiply-adds of convolutions and matrix products */
	RFL_LIMIT_VECTOR,  /**< elementwise operations */
	RFL_LIMIT_MEMORY,  /**< DRAM traffic */
	RFL_LIMIT_COUNT
};

/** "compute", "vector", "memory", NULL. */
extern const char *const rfl_limit_names[];

/** The least time of some work, split by what bounds its parts: the time is the sum. */
struct rfl_attained {
	double limit_s[RFL_LIMIT_COUNT];
};

/** The sum over all limits. */
double rfl_attained_time(const struct rfl_attained *a);

/** The limit that most of the time goes to; RFL_LIMIT_COUNT when there is no time at all. */
enum rfl_limit rfl_attained_bound(const struct rfl_attained *a);

void rfl_attained_add(struct rfl_attained *sum, const struct rfl_attained *a);

/** The ceilings of a machine. */
struct rfl_attained_roof {
	/**
	 * The least time of every node, then of the loss, then of the update; the last two are left
	 * out of an inference.
	 * @param times  count->nnodes + 2, zeroed
	 */
	void (*attain)(const struct rfl_attained_roof *roof, const struct rfl_count *count,
		       struct rfl_attained *times);
	const char *about;      /**< one line for people: the environment and its ceilings */
	const char *env;        /**< its name */
	enum rfl_fusion fusion; /**< the level of the bytes that are compared with its bandwidth */
};

#endif
