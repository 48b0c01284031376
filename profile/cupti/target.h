/*
 * target.h - CUPTI on a device: started, the device asked whether it can be counted, its
 * chip, and the permission. To be had only with a driver at hand (cuda_lib.h): without one these
 * calls crash inside the library.
 */
#ifndef RFL_PROFILE_CUPTI_TARGET_H
#define RFL_PROFILE_CUPTI_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/cupti/cuda_lib.h"
#include "profile/cupti/lib.h"

/* What is asked, in this order. */
enum rfl_cupti_gate {
	RFL_CUPTI_GATE_START,      /**< CUPTI works with this driver */
	RFL_CUPTI_GATE_CHIP,       /**< and knows the name of the chip */
	RFL_CUPTI_GATE_SUPPORT,    /**< the range profiler supports device and configuration */
	RFL_CUPTI_GATE_PERMISSION, /**< counters may be read */
	RFL_CUPTI_GATE_OPEN,       /**< all of them */
};

struct rfl_cupti_target {
	struct rfl_cupti *lib; /**< the caller's */
	const struct rfl_cupti_functions *calls;
	struct rfl_cuda_context *context; /**< the caller's */
	bool started;
	enum rfl_cupti_gate gate; /**< the gate that was closed, or OPEN */
	char chip[32];            /**< "GH100"; "": not known */
	bool limited;             /**< supported, but not with all metrics */
	uint8_t *availability;    /**< NULL until the last gate */
	int stuck; /**< what turning counters off returned when that failed: there are no more */
};

/**
 * Pass the gates one by one. After a failure the target holds what was learnt before it.
 * @param t  in the caller's memory; release with rfl_cupti_target_fini(), also after a failure
 * @param access  what the driver's parameters say of permission, for the message
 */
enum rfl_rc rfl_cupti_target_init(struct rfl_cupti_target *t, struct rfl_cupti *lib,
				  struct rfl_cuda *cuda, enum rfl_counter_access access,
				  struct rfl_err *err) RFL_WARN_UNUSED;
/** End the profiler before what does not go with it (the activity API); what was learnt stays. */
void rfl_cupti_target_stop(struct rfl_cupti_target *t);
/** Begin it again; nothing where it has not ended. */
enum rfl_rc rfl_cupti_target_start(struct rfl_cupti_target *t, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_target_fini(struct rfl_cupti_target *t);

#endif
