/*
 * memory_impl.h - shared by the files that compute memory: memory_tensors.c computes sizes and
 * lifetimes; memory.c simulates a step. Sizes are in bytes, at the batch of the options.
 */
#ifndef RFL_COMPLEXITY_MEMORY_IMPL_H
#define RFL_COMPLEXITY_MEMORY_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count/links.h"
#include "complexity/count/memory.h"
#include "complexity/op.h"

#define RFL_MEMORY_NOBODY -1 /* no operation or storage */

/** The events that end a storage's life: the last reader in the first forward pass, if no operation
 * saves it; the backward pass of the operation that saves it; and both again in a second run. */
enum rfl_life { RFL_LIFE_READ, RFL_LIFE_KEPT, RFL_LIFE_READ_AGAIN, RFL_LIFE_KEPT_AGAIN, RFL_LIVES };

/** The output of an operation and its storage. A storage has the index of the operation that
 * allocated it; views, and results that overwrite their input, share the storage of that input. */
struct rfl_memory_tensor {
	int root;        /**< RFL_MEMORY_NOBODY: a parameter or a constant table */
	int64_t element; /**< bytes per element */
	int64_t size;    /**< of the tensor itself */

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
	int64_t saved, saved_class[RFL_SAVED_CLASS_COUNT];
	int64_t forward, backward; /**< temporaries while it runs */
	/** 16-bit copies of its weights, and whether its backward pass reads them. */
	int64_t copies;
	bool copies_kept;
	int64_t gradients; /**< of its parameters */
};

/** Memory shared by one or more gradients, as views. */
struct rfl_memory_gradient {
	int64_t size;
	int refs;
};

struct rfl_memory_workspace {
	struct rfl_memory *m; /**< owner of this struct */
	const struct rfl_memory_options *options;
	const struct rfl_net *net;
	struct rfl_links *links; /**< the operations to simulate */
	struct rfl_arena *arena; /**< owns the following, including this struct */
	bool overflow;           /**< some sum exceeded 63 bits */
	struct rfl_memory_tensor *tensors;
	struct rfl_memory_extras *extras;
	int *ends[RFL_LIVES]; /**< per operation: the first storage that ends with it */
	bool lists;           /**< whether these exist */
	int64_t labels;

	/* the state of the simulation */
	int64_t now; /**< currently allocated */
	enum rfl_phase phase;
	bool accumulates; /**< gradients of an earlier pass exist */
	bool *alive;      /**< whether each storage is allocated */
	bool *made;       /**< whether each parameter has a gradient */
	int segment;      /**< the last one that was run again */
	int ngradients;
	struct rfl_memory_gradient *gradients; /**< every gradient ever created */
	int *gradient_of;                      /**< index per operation, for its output */
};

/** Add to a sum; the workspace's `overflow` is set if it exceeds 63 bits. */
static inline void rfl_memory__add(struct rfl_memory_workspace *w, int64_t *sum, int64_t size)
{
	w->overflow |= __builtin_add_overflow(*sum, size, sum);
}

/** Compute the sizes of tensors and extras, and mark what is saved; the links and arrays must
 * exist.
 * @return the operation with sizes that exceed 63 bits; RFL_MEMORY_NOBODY: none */
int rfl_memory__sizes(struct rfl_memory_workspace *w);

/** Find the lifetimes of storages, after rfl_memory__sizes(); they do not depend on the batch. */
void rfl_memory__lives(struct rfl_memory_workspace *w);

#endif
