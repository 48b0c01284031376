/*
 * memory_impl.h - shared by the files that account for memory: memory_tensors.c computes sizes and
 * lifetimes, memory.c simulates a step and evaluates it at a batch.
 *
 * All sizes grow with the batch along a straight line, so the walk is done once, with sizes of the
 * form fixed + per_sample * batch. The result is the moments of a step at which the most can be
 * allocated; they are evaluated at a batch.
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

#define RFL_MEMORY_NOBODY -1 /* of indices of operations and storages */

/** What ends the lives of a storage: the last reader of the first forward pass, where no operation
 * saves it; the backward pass that saves it; the same when a checkpointed segment runs again. */
enum rfl_life { RFL_LIFE_READ, RFL_LIFE_KEPT, RFL_LIFE_READ_AGAIN, RFL_LIFE_KEPT_AGAIN, RFL_LIVES };

/** The output of an operation and its storage. A storage has the index of the operation that
 * allocated it; views, and results that overwrite their input, share the storage of their input. */
struct rfl_memory_tensor {
	int root;                    /**< RFL_MEMORY_NOBODY: a parameter or a table of constants */
	int64_t element;             /**< bytes */
	struct rfl_memory_size size; /**< of the tensor itself */

	/* Of storages, that is where root is the operation itself. */
	bool given;   /**< the batch: always allocated */
	int saved_as; /**< operation that had it as output when it was first saved */
	struct {
		int end;  /**< operation after which it is released; RFL_MEMORY_NOBODY: never */
		int next; /**< the next storage that ends there too */
	} life[RFL_LIVES];
};

/** What an operation allocates in addition to its output. */
struct rfl_memory_extras {
	/** Saved for its backward pass, by kind and in total. */
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
	const struct rfl_memory_options *options;
	const struct rfl_net *net;
	struct rfl_links *links; /**< its operations are those of the walk */
	struct rfl_arena *arena; /**< owns what follows, this struct included */
	bool overflow;           /**< some sum did not fit 63 bits */
	struct rfl_memory_tensor *tensors;
	struct rfl_memory_extras *extras;
	int *ends[RFL_LIVES]; /**< of each operation: the first storage whose life ends with it */
	struct rfl_memory_size labels, saved_class[RFL_SAVED_CLASS_COUNT], *node_saved;
	struct rfl_memory_size persistent; /**< weights, buffers, state, the batch and its labels */
	int64_t gradients;                 /**< bytes of all of them */
	int nmoments[RFL_PHASE_COUNT];
	struct rfl_memory_moment *moments[RFL_PHASE_COUNT];
};

void rfl_memory__add(struct rfl_memory_workspace *w, struct rfl_memory_size *sum,
		     struct rfl_memory_size size);

/** Fill tensors, extras, the forward lives and the lists. Links and arrays must exist. */
enum rfl_rc rfl_memory__tensors(struct rfl_memory_workspace *w,
				struct rfl_err *err) RFL_WARN_UNUSED;

#endif
