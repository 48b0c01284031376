/*
 * engine_rules.h - what the torch engine decides without libtorch: which copies of batches a GPU
 * keeps, when a step can be recorded, what a GPU cannot compute in, how versions are written.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_RULES_H
#define RFL_RUNNER_TORCH_ENGINE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"
#include "machine/terms.h"

/** Copies at once, so many micro-batches of a step can stay. */
#define RFL_BATCH_SLOTS 64

/** Which batches a device holds a copy of: those whose forward has not come yet, and those with a
 * number, which can be used again. Begins as zeros; the copies are the engine's. */
struct rfl_batch_slots {
	struct {
		bool used;
		bool awaited; /**< brought, and its forward has not come */
		struct rfl_batch batch;
		uint64_t turn; /**< of its last use */
	} slot[RFL_BATCH_SLOTS];
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

/** Ordinary steps before one is recorded: libraries choose and load their kernels in them. */
#define RFL_GRAPH_STEPS_BEFORE 3

struct rfl_graph_facts {
	const char *missing; /**< why the device or the library cannot record; NULL: they can */
	bool step;           /**< an update belongs to it */
	enum rfl_optimizer_rule rule;
	bool fused;      /**< the update is one pass, which counts on the device */
	bool scaled;     /**< losses are scaled */
	bool marked;     /**< a callback is called for each node */
	bool exchanged;  /**< gradients are averaged over several processes */
	int64_t steps;   /**< ordinary ones so far, in this mode */
	int64_t updates; /**< so far, since the optimizer was new */
};

/** Why a step cannot be recorded and replayed, and what to do; NULL: it can. A recording holds
 * kernels, addresses and numbers: what a step does on the host between them would be lost. */
const char *rfl_graph_refusal(const struct rfl_graph_facts *f);

/**
 * Can a GPU of this compute capability (80 is 8.0; 0: not known) compute in that precision itself?
 * NULL: yes. Else why not, and what to do: libraries would silently use another precision.
 */
const char *rfl_cuda_precision_missing(enum rfl_precision precision, enum rfl_cast cast,
				       int capability);

/** CUDA's 13000 is "13.0", 12080 "12.8"; "" for 0. */
void rfl_cuda_version_text(int number, char *out, size_t size);

/** cuDNN's 91900 is "9.19.0", 8907 "8.9.7"; NCCL's 22809 is "2.28.9", 2804 "2.8.4"; "" for 0.
 * @param wide  from this number on, major is number / 10000, before it number / 1000 */
void rfl_library_version_text(int number, int wide, char *out, size_t size);
#define RFL_CUDNN_WIDE 90000
#define RFL_NCCL_WIDE  10000

/** "00000000:01:00.0", as the driver writes it; "" when a number is negative. */
void rfl_pci_bus_id_text(int domain, int bus, int device, char *out, size_t size);

#endif
