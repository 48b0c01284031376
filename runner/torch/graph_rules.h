/*
 * graph_rules.h - when a training step can be recorded and replayed as one piece of work (a CUDA
 * graph). What a recording holds are kernels, their addresses and their numbers: whatever a step
 * does on the host between them would be lost without a word, so it is refused.
 */
#ifndef RFL_RUNNER_TORCH_GRAPH_RULES_H
#define RFL_RUNNER_TORCH_GRAPH_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/terms.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Ordinary steps that come first: libraries choose and load their kernels in them. */
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

/** NULL: go ahead. Else why not, and what to do. */
const char *rfl_graph_refusal(const struct rfl_graph_facts *f);

#ifdef __cplusplus
}
#endif
#endif
