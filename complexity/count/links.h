/*
 * links.h - the properties of operations that follow from the graph and not from the batch: which
 * ones run, how many nodes read each result, which results need a gradient, and which operations
 * are run again. Private to the counter and the memory simulation.
 */
#ifndef RFL_COMPLEXITY_LINKS_H
#define RFL_COMPLEXITY_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/err.h"
#include "complexity/count.h"
#include "complexity/net.h"
#include "complexity/op.h"

struct rfl_link {
	bool runs;     /**< false: part of an auxiliary head that is not trained */
	bool free;     /**< costs nothing at any batch */
	bool grad;     /**< its output has a gradient: something trained, or the image, comes before
			  it, and a loss after it */
	bool trains;   /**< a parameter that it owns or borrows is trained */
	bool logits;   /**< a loss reads it */
	bool lent;     /**< a later node also uses its first parameter */
	bool hosts;    /**< performs computation; later operations may be fused into it */
	bool again;    /**< run a second time by its checkpointed segment */
	int segment;   /**< its checkpointed segment, from 1; 0: none */
	int readers;   /**< number of times that its output is read, losses included */
	int gradients; /**< number of readers that return a gradient */
	/** Elements of all parameters that it owns, of the trained ones, and of buffers. */
	int64_t params, trained, buffers;
};

/** Operations are the nodes of the net, followed by the losses: first for the net's own logits,
 * then for each auxiliary head that runs. A loss is a separate node, RFL_OP_CROSS_ENTROPY. */
struct rfl_links {
	const struct rfl_net *net;         /**< borrowed */
	int nops;                          /**< nodes plus losses */
	struct rfl_link *nodes;            /**< one per operation */
	struct rfl_cost_context *contexts; /**< one per operation; holds its node */
	int64_t trained;                   /**< elements of parameters that an update changes */
};

/**
 * Analyse a net under these options; the batch is ignored.
 *
 * @param options  borrowed: the contexts point to it
 * @param arena    owns the result
 * @return RFL_OK; RFL_EINVAL if a frozen module has no parameters (suggests the nearest) or there
 * is nothing to checkpoint
 */
enum rfl_rc rfl_links_new(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_arena *arena, struct rfl_links **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Set the batch of a context. Sizes that exceed 63 bits set its `overflow`.
 * @return the context, borrowed
 */
struct rfl_cost_context *rfl_links_at(struct rfl_cost_context *context, int64_t batch);

/** The cost of an update per trained parameter, and its temporaries besides weights, gradients and
 * state, as a number of tensors: of the size of all parameters if they are updated together, or of
 * one parameter if they are updated one after the other. */
struct rfl_optimizer {
	struct rfl_elementwise per_param;
	int64_t state; /**< elements of state per parameter, read and written */
	int scratch_lists, scratch_tensors;
};

/** In the order of enum rfl_optimizer_kind. */
extern const struct rfl_optimizer rfl_optimizers[];

#endif
