/*
 * shim_precision.h - what libtorch computes in: autocast, and the switches of its context.
 * The rules of shim.h hold.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_PRECISION_H
#define RFL_RUNNER_TORCH_SHIM_PRECISION_H

#include "machine/terms.h"
#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Each is set, whatever the library's default is. */
struct rfl_torch_switches {
	int deterministic;   /**< refuse operations that are not */
	int cudnn_benchmark; /**< let cuDNN time its algorithms */
	int tf32;            /**< of cuBLAS and cuDNN */
};
RFL_TORCH_CALL rfl_torch_set_switches(const struct rfl_torch_switches *s) RFL_TORCH_NOEXCEPT;

/** NULL: this library can cast so on that device. Else why not, and what to do. */
const char *rfl_torch_cast_missing(enum rfl_device device, enum rfl_cast cast) RFL_TORCH_NOEXCEPT;

/**
 * Cast the inputs of matrix products and convolutions on this thread until the end is called, which
 * also forgets the copies of the weights: a weight is cast once in between, however often it is
 * used, and one that changed meanwhile would not be seen. With RFL_CAST_OFF nothing is cast.
 */
RFL_TORCH_CALL rfl_torch_cast_begin(enum rfl_device device, enum rfl_cast cast) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_cast_end(enum rfl_device device, enum rfl_cast cast) RFL_TORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
