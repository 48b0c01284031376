/*
 * memory_impl.h - between the files that account for memory: memory_tensors.c finds out how large
 * everything is and how long it lives, memory_walk.c plays a step through, memory.c puts a batch
 * in.
 *
 * All sizes grow with the batch along a straight line, so the walk is done once, with sizes of the
 * form fixed + per_sample * batch. What it leaves is the moments of a step at which the most can be
 * allocated, and a batch is a matter of evaluating those.
 */
#ifndef RFL_COMPLEXITY_MEMORY_IMPL_H
#define RFL_COMPLEXITY_MEMORY_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count/links.h"
#include "complexity/count/memory.h"
#include "complexity/op.h"

/** Bytes, as they depend on the batch. */
struct rfl_memory_size {
	int64_t fixed, per_sample;
};

/** A sum that does not fit sets `overflow`. */
void rfl_memory__add(struct rfl_memory_size *sum, struct rfl_memory_size size, bool *overflow);

#define RFL_MEMORY_NOBODY -1 /* of indices of operations and storages */

/** A list of storages, chained through `next` of one of their lives. */
struct rfl_memory_life {
	int end;  /**< operation after which the storage is released; RFL_MEMORY_NOBODY: never */
	int next; /**< the next storage that ends there too */
};

/**
 * What an operation puts out, and the storage that the output is in. A storage is named after the
 * operation that allocated it: views, and results that overwrite their input, share its.
 */
struct rfl_memory_tensor {
	int root;                    /**< RFL_MEMORY_NOBODY: a parameter or a table of constants */
	int64_t element;             /**< bytes */
	struct rfl_memory_size size; /**< of the tensor itself */

	/* Of storages, that is where root is the operation itself. */
	bool given;                  /**< the batch: there all the time */
	struct rfl_memory_life read; /**< by the first forward pass, if no operation saves it */
	struct rfl_memory_life
		kept; /**< by the backward pass that saves it; RFL_MEMORY_NOBODY: never */
	int saved_as; /**< whose output it was when it was saved first */
	/* The same when a checkpointed segment runs again. */
	struct rfl_memory_life read_again, kept_again;
};

/** What an operation allocates beside its output. */
struct rfl_memory_extras {
	/** Saved with its backward pass, by what it is, and together. */
	struct rfl_memory_size saved, saved_class[RFL_SAVED_CLASS_COUNT];
	struct rfl_memory_size forward, backward; /**< temporaries of its own run */
	/** 16-bit copies of its weights, and whether its backward pass reads them. */
	struct rfl_memory_size copies;
	bool copies_kept;
	int64_t gradients; /**< bytes of the gradients of its parameters */
};

/** A point of the step at which more is allocated than before and after it. */
struct rfl_memory_moment {
	struct rfl_memory_size size;
	int node; /**< of the net; -1: the loss or the step */
};

struct rfl_memory_workspace {
	struct rfl_links *links;
	struct rfl_arena *arena; /**< owns what follows, this struct included */
	int nops;                /**< operations of the net, then the losses */
	struct rfl_memory_tensor *tensors;
	struct rfl_memory_extras *extras;
	/* Heads of the lists of storages that end with an operation. */
	int *read_ends, *kept_ends, *read_again_ends, *kept_again_ends;
	struct rfl_memory_size labels, saved_class[RFL_SAVED_CLASS_COUNT], *node_saved;
	struct rfl_memory_size persistent; /**< weights, buffers, state, the batch and its labels */
	int64_t gradients;                 /**< bytes of all of them */
	int nmoments[RFL_PHASE_COUNT], max_moments;
	struct rfl_memory_moment *moments[RFL_PHASE_COUNT];
};

/** The i-th operation of the walk: a node of the net, or a loss after them. */
const struct rfl_node *rfl_memory__node(const struct rfl_memory_workspace *w, int i);
struct rfl_cost_context *rfl_memory__context(const struct rfl_memory_workspace *w, int i);
bool rfl_memory__runs(const struct rfl_memory_workspace *w, int i);

/** The checkpointed segment that it lies in, from 1; 0: none. */
int rfl_memory__segment(const struct rfl_memory_workspace *w, int i);

/** Fill tensors, extras, the forward lives and the lists; links and arrays are there. */
enum rfl_rc rfl_memory__tensors(struct rfl_memory_workspace *w,
				const struct rfl_memory_options *options,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Play a step through and fill the moments. */
enum rfl_rc rfl_memory__walk(struct rfl_memory_workspace *w,
			     const struct rfl_memory_options *options,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
