/*
 * memory.h - the memory of a network: weights and state, the tensors that autograd keeps between
 * the forward and the backward pass, and the peak allocation. The peak is found by simulating the
 * net as PyTorch's eager mode runs it (forward, backward, step) and following every storage from
 * its allocation to its release. The result is the sum of live tensors, as
 * torch.cuda.max_memory_allocated() reports it, without the allocator's reserve, the workspaces of
 * convolutions and matmuls, and the device context.
 */
#ifndef RFL_COMPLEXITY_MEMORY_H
#define RFL_COMPLEXITY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count.h"
#include "complexity/net.h"

/** The device: a dropout keeps a float per element on a CPU, but one byte on a GPU. */
enum rfl_memory_device { RFL_MEMORY_GPU, RFL_MEMORY_CPU };

/** How the update processes the parameters: all at once with equally large temporaries (PyTorch's
 * default on a GPU), one by one, or in one fused kernel. */
enum rfl_update { RFL_UPDATE_FOREACH, RFL_UPDATE_FOR_LOOP, RFL_UPDATE_FUSED };

/** "foreach", "for-loop", "fused", NULL, in the order of enum rfl_update. */
extern const char *const rfl_update_names[];

struct rfl_memory_options {
	/** The options of the counts; the batch is for one forward pass. */
	struct rfl_count_options count;
	enum rfl_memory_device device;
	enum rfl_update update;
	/** Passes per update; above 1, gradients stay allocated between them. 0 means 1. */
	int64_t accumulate;
};

/** The phases of a step in which a peak can occur. */
enum rfl_phase { RFL_PHASE_FORWARD, RFL_PHASE_BACKWARD, RFL_PHASE_STEP, RFL_PHASE_COUNT };

/** "forward", "backward", "step", NULL. */
extern const char *const rfl_phase_names[];

/** All sizes are in bytes. */
struct rfl_memory {
	struct rfl_memory_options options;
	/* Allocated from the first step to the last. */
	int64_t weights, buffers, state;
	/* Gradients of all trained parameters, at the update. */
	int64_t gradients;
	/** 16-bit copies of weights that autocast keeps during the passes. */
	int64_t weight_copies;
	int64_t input; /**< the batch itself and its labels */
	/** Kept at the end of the forward pass; every storage counts once. */
	int64_t saved, saved_class[RFL_SAVED_CLASS_COUNT];
	/** The peak of each phase, including all above. Inference has only the first. */
	int64_t phase_peak[RFL_PHASE_COUNT];
	int64_t peak; /**< over all phases */
	enum rfl_phase peak_phase;
	int peak_node; /**< the operation at the peak; -1: the loss or the update */
	int nnodes;
	/** Bytes of saved storages by node, counted at the first operation that saves them. */
	int64_t *node_saved;
	/** The largest allocation at each operation of a phase; the loss follows the last node. 0:
	 * the operation does nothing in this phase. */
	int64_t *node_peak[RFL_PHASE_COUNT];
	const struct rfl_net *net; /**< borrowed */
	struct rfl_memory_workspace *workspace;
};

/**
 * Compute the memory of a network.
 *
 * @param ret  set on success only; release with rfl_memory_free()
 * @return RFL_OK; RFL_EINVAL (batch below 1, checkpointing of a net without repeated blocks);
 * RFL_EOVERFLOW names the node
 */
enum rfl_rc rfl_memory_new(const struct rfl_net *net, const struct rfl_memory_options *options,
			   struct rfl_memory **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Evaluate the memory of the same network at another batch size, without allocating. */
enum rfl_rc rfl_memory_at(struct rfl_memory *memory, int64_t batch,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_memory_free(struct rfl_memory *memory);
RFL_AUTOPTR_TYPE(memory, free);

/**
 * Find the largest batch with a peak of at most `bytes`; the memory is left at that batch.
 *
 * @param ret  0 if not even one sample fits; the memory is then left at batch 1
 */
enum rfl_rc rfl_memory_fit(struct rfl_memory *memory, int64_t bytes, int64_t *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
