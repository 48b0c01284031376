/*
 * memory_impl.h - shared by the files that compute memory: memory_tensors.c computes sizes and
 * lifetimes; memory.c simulates a step and evaluates it at a batch size.
 *
 * All sizes are linear in the batch, so the simulation runs once, with sizes of the form fixed +
 * per_sample * batch. It records the moments of a step at which the allocation can be largest;
 * these are evaluated at a batch size.
 */
#ifndef RFL_COMPLEXITY_MEMORY_IMPL_H
#define RFL_COMPLEXITY_MEMORY_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count/links.h"
#include "complexity/count/memory.h"
#include "complexity/op.h"

/** Bytes as a linear function of the batch. */
struct rfl_memory_size {
	int64_t fixed, per_sample;
};

#define RFL_MEMORY_NOBODY -1 /* no operation or storage */

/** The events that end a storage's life: the last reader in the first forward pass, if no operation
 * saves it; the backward pass of the operation that saves it; and both again in a second run. */
enum rfl_life { RFL_LIFE_READ, RFL_LIFE_KEPT, RFL_LIFE_READ_AGAIN, RFL_LIFE_KEPT_AGAIN, RFL_LIVES };

/** The output of an operation and its storage. A storage has the index of the operation that
 * allocated it; views, and results that overwrite their input, share the storage of that input. */
struct rfl_memory_tensor {
	int root;                    /**< RFL_MEMORY_NOBODY: a parameter or a constant table */
	int64_t element;             /**< bytes per element */
	struct rfl_memory_size size; /**< size of the tensor itself */

	/* Valid for storages, that is, if root is the operation itself. */
	bool given;   /**< the batch: always allocated */
	int saved_as; /**< the operation with this storage as output when it was first saved */
	struct {
		int end;  /**< the operation that ends it; RFL_MEMORY_NOBODY: never */
		int next; /**< the next storage with the same end */
	} life[RFL_LIVES];
};

/** Allocations of an operation besides its output. */
struct rfl_memory_extras {
	/** Saved for its backward pass, by kind and in total. */
	struct rfl_memory_size saved, saved_class[RFL_SAVED_CLASS_COUNT];
	struct rfl_memory_size forward, backward; /**< temporaries while it runs */
	/** 16-bit copies of its weights, and whether its backward pass reads them. */
	struct rfl_memory_size copies;
	bool copies_kept;
	int64_t gradients; /**< bytes of the gradients of its parameters */
};

/** A local maximum of the allocation during a step. */
struct rfl_memory_moment {
	struct rfl_memory_size size;
	int node; /**< index in the net; -1: the loss or the step */
};

struct rfl_memory_workspace {
	const struct rfl_memory_options *options;
	const struct rfl_net *net;
	struct rfl_links *links; /**< the operations to simulate */
	struct rfl_arena *arena; /**< owns the following, including this struct */
	bool overflow;           /**< some sum exceeded 63 bits */
	struct rfl_memory_tensor *tensors;
	struct rfl_memory_extras *extras;
	int *ends[RFL_LIVES]; /**< per operation: the first storage that ends with it */
	struct rfl_memory_size labels, saved_class[RFL_SAVED_CLASS_COUNT], *node_saved;
	struct rfl_memory_size persistent; /**< weights, buffers, state, the batch and its labels */
	int64_t gradients;                 /**< bytes of all gradients */
	int nmoments[RFL_PHASE_COUNT];
	struct rfl_memory_moment *moments[RFL_PHASE_COUNT];
	int64_t *node_peak[RFL_PHASE_COUNT]; /**< see struct rfl_memory */
};

void rfl_memory__add(struct rfl_memory_workspace *w, struct rfl_memory_size *sum,
		     struct rfl_memory_size size);

/** Fill tensors, extras, forward lifetimes and lists; the links and arrays must exist. */
enum rfl_rc rfl_memory__tensors(struct rfl_memory_workspace *w,
				struct rfl_err *err) RFL_WARN_UNUSED;

#endif
