/*
 * links.h - the properties of operations that follow from the graph and not from the batch: which
 * of them run, who reads a result, what needs a gradient, what is run again. Private to the counter
 * and the memory walk.
 */
#ifndef RFL_COMPLEXITY_LINKS_H
#define RFL_COMPLEXITY_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count.h"
#include "complexity/net.h"
#include "complexity/op.h"

struct rfl_link {
	bool runs;     /**< false: of an auxiliary head that is not trained */
	bool free;     /**< it costs nothing at any batch */
	bool grad;     /**< its output has a gradient: something trained, or the image, lies before
			* it, and a loss after it */
	bool trains;   /**< a parameter that it owns or borrows is trained */
	bool logits;   /**< a loss reads it */
	bool lent;     /**< a later node uses its first parameter too */
	bool hosts;    /**< it computes: later operations may be fused into it */
	bool again;    /**< its checkpointed segment runs it a second time */
	int segment;   /**< checkpointed segment that it lies in, from 1; 0: none */
	int readers;   /**< inputs of operations that run; a loss is one of its logits */
	int gradients; /**< how many of the readers send a gradient back */
	/** Elements of parameters that it owns, of those the trained ones, and of buffers. */
	int64_t params, trained, buffers;
};

/** Operations are the nodes of the net, and after them the losses: of the net's own logits, then
 * of each auxiliary head that runs. A loss is a node of its own, RFL_OP_CROSS_ENTROPY. */
struct rfl_links {
	const struct rfl_net *net;         /**< borrowed */
	int nops;                          /**< nodes and losses */
	struct rfl_link *nodes;            /**< of each operation */
	struct rfl_cost_context *contexts; /**< of each operation, its node included */
	int64_t trained;                   /**< elements of parameters that an update changes */
	struct rfl_arena *arena;           /**< owns everything above, this struct included */
};

/**
 * Analyse a net under these options; their batch does not matter.
 *
 * @param options  borrowed: the contexts point to it
 * @param ret      set on success only; release with rfl_links_free()
 * @return RFL_OK; RFL_EINVAL when a frozen module has no parameters (names the nearest) or when
 * there is nothing to checkpoint; RFL_ENOMEM
 */
enum rfl_rc rfl_links_new(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_links **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_links_free(struct rfl_links *links);

/**
 * Set a context to a batch. Sizes that do not fit 63 bits set its `overflow`.
 * @return the context, borrowed
 */
struct rfl_cost_context *rfl_links_at(struct rfl_cost_context *context, int64_t batch);

/** What an update costs for each trained parameter, and what it allocates beside weights, gradients
 * and state: tensors as large as all parameters where they are updated at once, as large as one
 * where they are updated in turn. */
struct rfl_optimizer {
	struct rfl_elementwise per_param;
	int64_t state; /**< words, read and written */
	int scratch_lists, scratch_tensors;
};

/** In the order of enum rfl_optimizer_kind. */
extern const struct rfl_optimizer rfl_optimizers[];

#endif
