/*
 * plan.h - the plan of a training step or a forward pass: which operations run in which order, what
 * is fused, which tensors exist when, and where each lies in one block of memory. It is made
 * without any library; an engine asks for its own memory per step (workspaces, scratch) before the
 * tensors are placed.
 *
 * Images are samples x height x width x channels (NHWC), also when they are flattened to a vector.
 * A view of a tensor (flatten, a pooling that changes nothing) shares its buffer.
 *
 * Several nodes become one step where a library or a loop can do them in one pass over memory:
 *
 * - batch norm, then perhaps the addition of another tensor, then perhaps ReLU or ReLU6;
 * - convolution or linear, then ReLU;
 * - the sum of two gradients, then the backward pass of batch norm.
 *
 * The backward pass visits the steps in reverse. A tensor lives until its last reader in either
 * pass. A gradient that no other step needs is overwritten in place.
 */
#ifndef RFL_COMPLEXITY_PLAN_H
#define RFL_COMPLEXITY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

enum rfl_plan_op {
	RFL_PLAN_INPUT, /**< Y from the batch */
	RFL_PLAN_CONV,
	RFL_PLAN_LINEAR,
	RFL_PLAN_NORM,       /**< batch norm: Y = activation(norm(X) + OTHER) */
	RFL_PLAN_ACTIVATION, /**< elementwise, of one input */
	RFL_PLAN_ADD,        /**< Y = X + OTHER; also sums gradients */
	RFL_PLAN_MULTIPLY,   /**< Y = X * OTHER, or each row of a sample of X times OTHER */
	RFL_PLAN_POOL,       /**< maximum or average over windows */
	RFL_PLAN_COLUMNS,    /**< some channels of X to some channels of Y */
	RFL_PLAN_SHUFFLE,    /**< channels transposed within groups */
	RFL_PLAN_DROPOUT,    /**< also stochastic depth */
	RFL_PLAN_LOSS,       /**< the loss of X; DX is the gradient of X */
	RFL_PLAN_OP_COUNT,
};

enum rfl_plan_pass { RFL_PLAN_FORWARD, RFL_PLAN_DGRAD, RFL_PLAN_WGRAD, RFL_PLAN_PASS_COUNT };

enum rfl_plan_activation { RFL_PLAN_NONE, RFL_PLAN_RELU, RFL_PLAN_RELU6 };

/** The buffers of a step. */
enum rfl_plan_slot {
	RFL_PLAN_X,
	RFL_PLAN_OTHER, /**< second operand; residual */
	RFL_PLAN_Y,
	RFL_PLAN_DY,
	RFL_PLAN_DY2, /**< to be added to DY */
	RFL_PLAN_DX,
	RFL_PLAN_DOTHER, /**< gradient of OTHER */
	RFL_PLAN_MASK,   /**< a byte per element: whether the gradient passes */
	RFL_PLAN_MEAN,
	RFL_PLAN_INVERSE, /**< 1 / sqrt(variance + eps) */
	RFL_PLAN_DWEIGHT, /**< float32, in the engine's layout; of a batch norm, of gamma */
	RFL_PLAN_DBIAS,
	RFL_PLAN_SAVED,   /**< what the engine keeps from forward to backward */
	RFL_PLAN_SCRATCH, /**< what the engine needs during the step */
	RFL_PLAN_SLOTS,
};

struct rfl_plan_buffer {
	int64_t bytes;
	int first, last; /**< steps between which it is needed */
	int64_t offset;  /**< in the block, a multiple of 64 */
};

struct rfl_plan_step {
	enum rfl_plan_op op;
	enum rfl_plan_pass pass;
	int node;    /**< the first node that the step computes; nnodes: the loss */
	int last;    /**< the last of those fused into it; `node`: none */
	int forward; /**< of a backward step: the index of its forward step, else -1 */
	enum rfl_plan_activation activation; /**< fused into it, or the one whose gradient it is */
	int buffer[RFL_PLAN_SLOTS];          /**< index of a buffer, or -1 */
	/** COLUMNS: `columns` channels, from `from` of X (or DY) to `to` of Y (or DX). */
	int64_t columns, from, to;
	bool add;       /**< add to the destination */
	bool zero;      /**< the rest of the destination becomes zero */
	int64_t groups; /**< SHUFFLE */
	double weight;  /**< LOSS: of this loss in their sum */
};

struct rfl_plan_setup {
	int64_t batch;
	int value_bytes;         /**< per activation: 4, or 2 */
	bool training;           /**< with a backward pass */
	bool frozen;             /**< batch norm uses its running statistics, as without training */
	bool dropout;            /**< dropout drops in training */
	double auxiliary_weight; /**< of auxiliary heads in training; 0: they do not run */
	bool unfused;            /**< one step per node, all outputs kept until the end */
	bool separate;           /**< the gradients of a batch norm never overwrite others */
};

struct rfl_plan {
	const struct rfl_net *net; /**< borrowed */
	struct rfl_plan_setup setup;
	int nsteps, nforward; /**< the first nforward steps, the loss included, are forward */
	struct rfl_plan_step *steps;
	int nbuffers;
	struct rfl_plan_buffer *buffers;
	int *output;        /**< per node: the buffer of its output; -1: none */
	int64_t bytes;      /**< of the block; after rfl_plan_place() */
	int64_t live_bytes; /**< the largest sum of buffers that are needed at once */
	struct rfl_arena *arena;
};

/**
 * Plan a net.
 * @param ret  release with rfl_plan_free(); the net must outlive it
 * @return RFL_OK; RFL_EUNSUPPORTED naming the layer and the operation
 */
enum rfl_rc rfl_plan_new(const struct rfl_net *net, const struct rfl_plan_setup *setup,
			 struct rfl_plan **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_plan_free(struct rfl_plan *plan);
RFL_AUTOPTR_TYPE(plan, free);

/** NULL if a plan can contain the operation, else the reason. */
const char *rfl_plan_unsupported(enum rfl_op op);

/** Ask for memory that lasts for a step (RFL_PLAN_SCRATCH), or from a forward step to its backward
 * steps (RFL_PLAN_SAVED). 0: none. */
void rfl_plan_ask(struct rfl_plan *plan, int step, enum rfl_plan_slot slot, int64_t bytes);

/** Give each buffer its offset: the largest first, each at the lowest address that is free while it
 * is needed. */
void rfl_plan_place(struct rfl_plan *plan);

/** The size of a buffer of a step in bytes; 0: none. */
int64_t rfl_plan_size(const struct rfl_plan *plan, const struct rfl_plan_step *step,
		      enum rfl_plan_slot slot);

/** Bytes that a step reads and writes: each buffer and parameter once, a tensor that does not fit
 * in a cache twice where the step passes over it twice (batch norm). */
void rfl_plan_traffic(const struct rfl_plan *plan, const struct rfl_plan_step *step, int64_t *read,
		      int64_t *written);

/** The shape of a node's output in memory: the image's, if it is a flattened image, or
 * its own. */
const struct rfl_shape *rfl_plan_image(const struct rfl_net *net, int node);

/** Rows and columns of a buffer with the shape of a node's output: samples x height x width, and
 * channels. */
void rfl_plan_matrix(const struct rfl_plan *plan, int node, int64_t *rows, int64_t *columns);

/** The parameter of a node of this kind: an index into net->params, or -1. */
int rfl_plan_param(const struct rfl_net *net, int node, enum rfl_param_kind kind);

/** Windows over the height [0] and width [1] of a convolution or pooling. */
struct rfl_plan_window {
	int64_t kernel[2], stride[2], dilation[2], before[2];
	int64_t after[2]; /**< padding that the last window reads; may be less than `before` */
	bool maximum;
	bool exclude_padding;
	bool unequal; /**< adaptive, with windows of different sizes: kernel and stride are unset */
};
struct rfl_plan_window rfl_plan_window(const struct rfl_plan *plan, int node);

/** "conv", "norm", ...; "forward", "dgrad", "wgrad". */
extern const char *const rfl_plan_op_names[];
extern const char *const rfl_plan_pass_names[];

#endif
