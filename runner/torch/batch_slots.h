/*
 * batch_slots.h - which batches a device holds a copy of. Two reasons: the caller began to bring a
 * batch there and its forward has not come yet; or a batch has a number, so that it can be used
 * again. Only the bookkeeping; the copies are the engine's.
 */
#ifndef RFL_RUNNER_TORCH_BATCH_SLOTS_H
#define RFL_RUNNER_TORCH_BATCH_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Copies at once, so many micro-batches of a step can stay. */
#define RFL_BATCH_SLOTS 64

struct rfl_batch_slot {
	bool used;
	bool awaited; /**< brought, and its forward has not come */
	struct rfl_batch batch;
	uint64_t turn; /**< of its last use */
};

struct rfl_batch_slots {
	struct rfl_batch_slot slot[RFL_BATCH_SLOTS];
	uint64_t turn;
};

/** The slot that holds this batch, or -1. One without a number is known by its memory, and only
 * until its forward: then that memory is filled anew. */
int rfl_batch_slots_find(const struct rfl_batch_slots *s, const struct rfl_batch *batch);

/**
 * A slot for this batch: a free one, else the one that was not used for longest.
 * @param awaited  brought ahead of its forward
 * @return the slot, whose copy is the caller's to replace; -1 when forwards of all are awaited
 */
int rfl_batch_slots_take(struct rfl_batch_slots *s, const struct rfl_batch *batch, bool awaited);

/** Its forward has come: true when the copy is worth keeping, else the slot is free. */
bool rfl_batch_slots_use(struct rfl_batch_slots *s, int slot);

/** Forget one whose copy failed. */
void rfl_batch_slots_drop(struct rfl_batch_slots *s, int slot);

#ifdef __cplusplus
}
#endif
#endif
