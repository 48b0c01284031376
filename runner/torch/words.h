/*
 * words.h - what libtorch means by the text of an exception, where its type does not say.
 */
#ifndef RFL_RUNNER_TORCH_WORDS_H
#define RFL_RUNNER_TORCH_WORDS_H

#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

/** RFL_TORCH_NOMEM, RFL_TORCH_UNSUPPORTED, or RFL_TORCH_FAILED for everything else. */
enum rfl_torch_status rfl_torch_meaning(const char *text);

#ifdef __cplusplus
}
#endif
#endif
