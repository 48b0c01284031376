/*
 * shim_scaling.hpp - inside the shim: the scale of a loss, and what the updates ask of the library
 * before they are made.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_SCALING_HPP
#define RFL_RUNNER_TORCH_SHIM_SCALING_HPP

#include <vector>

#include "machine/terms.h"
#include "runner/torch/shim_impl.hpp"

namespace rfl_torch
{

using tensors = std::vector<at::Tensor>;

// Has the loaded library a kernel of this operation for that device?
bool has_kernel(const char *name, enum rfl_device device);

// What PyTorch's GradScaler does by default. On the device, so that nothing waits for it.
struct scaling {
	at::Tensor scale, good_steps, skipped;
	at::Tensor found; // 1: a gradient of this step is not finite

	explicit scaling(const at::Tensor &where);

	// Take the scale out of the gradients, and see whether all of them are finite.
	void unscale(const tensors &grads);
	// After the update, or after it was left out.
	void next();
	// What lasts from one step to the next: the tensors themselves.
	tensors state() const;
};

} // namespace rfl_torch

#endif
