/*
 * window.h - sliding windows along one axis: shared by convolution and pooling.
 */
#ifndef RFL_COMPLEXITY_WINDOW_H
#define RFL_COMPLEXITY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_window {
	int64_t kernel, stride, pad, dilation;
	bool ceil_mode; /**< a last window may begin inside the input or its left padding and end
			   outside */
};

/** Positions of the window along an axis of `in`; RFL_EINVAL says why there is none. */
enum rfl_rc rfl_window_positions(const struct rfl_window *w, int64_t in, int64_t *ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Taps of all `out` positions that read a real element, not the padding. kernel * out must fit. */
int64_t rfl_window_real_taps(const struct rfl_window *w, int64_t in, int64_t out);

#ifdef __cplusplus
}
#endif
#endif
