/* kinds.h - the time of a step of a language model by kind of operation. */
#ifndef RFL_RUNNER_KINDS_H
#define RFL_RUNNER_KINDS_H

#include "runner/burst/counted.h"

/** Milliseconds of a step, from steps after the window, each operation timed on its own. NaN:
 * unknown. */
struct rfl_kinds {
	double linear_ms;    /**< linear layers, the head included */
	double attention_ms; /**< attention, with writing and reading the cache */
	double other_ms;     /**< embedding, norms, activations, rotation, additions */
};

/** Measure steps after `past` tokens in the cache, with the next batch. @return RFL_OK;
 * RFL_EUNSUPPORTED: the engine cannot tell operations apart; or its error */
enum rfl_rc rfl_kinds_measure(const struct rfl_counted_parts *parts, int64_t past,
			      struct rfl_kinds *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
