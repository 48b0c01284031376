/*
 * engine_rules.h - decisions of the torch engine that do not need libtorch: which batches a GPU
 * keeps, when a step can be recorded, which precisions a GPU lacks, the text of version numbers.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_RULES_H
#define RFL_RUNNER_TORCH_ENGINE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"
#include "machine/terms.h"

/** Number of copies: up to so many micro-batches of a step can stay on the device. */
#define RFL_BATCH_SLOTS 64

/** The batches that a device has a copy of: those whose forward has not run yet, and those with an
 * id, which can be used again. Initialise with zeros; the engine owns the copies. */
struct rfl_batch_slots {
	struct {
		bool used;
		bool awaited; /**< uploaded, and its forward has not run yet */
		struct rfl_batch batch;
		uint64_t turn; /**< of its last use */
	} slot[RFL_BATCH_SLOTS];
	uint64_t turn;
};

/** The slot of this batch, or -1. A batch without an id is recognised by its memory, and only until
 * its forward, after which the memory is reused. */
int rfl_batch_slots_find(const struct rfl_batch_slots *s, const struct rfl_batch *batch);

/**
 * A slot for this batch: a free one, else the least recently used one.
 * @param awaited  uploaded ahead of its forward
 * @return the slot, whose copy the caller replaces; -1 if all await their forward
 */
int rfl_batch_slots_take(struct rfl_batch_slots *s, const struct rfl_batch *batch, bool awaited);

/** The batch of a slot has its forward pass. @return true to keep the copy; false: the slot is free
 */
bool rfl_batch_slots_use(struct rfl_batch_slots *s, int slot);

/** Free the slot of a batch whose copy failed. */
void rfl_batch_slots_drop(struct rfl_batch_slots *s, int slot);

/** Ordinary steps before one is recorded, in which libraries choose and load their kernels. */
#define RFL_GRAPH_STEPS_BEFORE 3

struct rfl_graph_facts {
	const char *missing; /**< why the device or the library cannot record; NULL: they can */
	bool step;           /**< it includes an update */
	enum rfl_optimizer_rule rule;
	bool fused;      /**< the update is one pass, which counts its steps on the device */
	bool scaled;     /**< losses are scaled */
	bool marked;     /**< a callback is called for each node */
	bool exchanged;  /**< gradients are averaged over several processes */
	int64_t steps;   /**< ordinary ones so far in this mode */
	int64_t updates; /**< so far of this optimizer */
};

/** Why a step cannot be recorded and replayed, and what to do; NULL if it can. A recording has
 * kernels, addresses and numbers; work on the host between them would be lost. */
const char *rfl_graph_refusal(const struct rfl_graph_facts *f);

/** NULL if a GPU of this compute capability (80 is 8.0; 0: unknown) has hardware for the precision.
 * Else why not, and what to do, since libraries would silently use another precision. */
const char *rfl_cuda_precision_missing(enum rfl_precision precision, enum rfl_cast cast,
				       int capability);

/** CUDA's 13000 is "13.0", 12080 "12.8"; "" for 0. */
void rfl_cuda_version_text(int number, char *out, size_t size);

/** cuDNN's 91900 is "9.19.0", 8907 "8.9.7"; NCCL's 22809 is "2.28.9", 2804 "2.8.4"; "" for 0.
 * @param wide  from this number on, major is number / 10000, below it number / 1000 */
void rfl_library_version_text(int number, int wide, char *out, size_t size);
#define RFL_CUDNN_WIDE 90000
#define RFL_NCCL_WIDE  10000

/** "00000000:01:00.0", as the driver writes it; "" if a number is negative. */
void rfl_pci_bus_id_text(int domain, int bus, int device, char *out, size_t size);

#endif
