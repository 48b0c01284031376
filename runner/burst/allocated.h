/*
 * allocated.h - runs one more step after the timed window and records the memory that the engine
 * allocates: a timeline over the layers, beside the prediction of complexity/count/memory.h.
 */
#ifndef RFL_RUNNER_ALLOCATED_H
#define RFL_RUNNER_ALLOCATED_H

#include "complexity/count/memory.h"
#include "runner/burst/counted.h"

/** Bytes; NaN if unknown or if the mode lacks the phase. */
struct rfl_allocated {
	double model_bytes;     /**< before the step: parameters, buffers, state and the batch */
	double forward_bytes;   /**< after the forward pass */
	double backward_bytes;  /**< after the backward pass */
	double optimizer_bytes; /**< after the update */
	double peak_bytes, predicted_bytes; /**< the largest allocation, and its prediction */
	char peak_at[512];                  /**< the layer at the peak: "bwd/conv1", "opt" */
};

/**
 * Record the memory of a step.
 * @param config  detail and request are ignored
 * @param ret     all unknown after a failure
 * @param csv     receives the timeline: a row for each layer of each pass
 * @return RFL_OK; RFL_EUNSUPPORTED with the reason if the engine cannot count allocations; any
 *         error of the engine or the data
 */
enum rfl_rc rfl_allocated_run(const struct rfl_counted_config *config,
			      const struct rfl_counted_parts *parts,
			      const struct rfl_memory_options *options, struct rfl_allocated *ret,
			      struct rfl_buf *csv, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
