/*
 * shim_scaling.cpp - loss scaling of fp16, as PyTorch's GradScaler does it by default.
 */
#include "runner/torch/shim_scaling.hpp"
#include "runner/torch/shim_optim.h"

#include <ATen/core/dispatch/Dispatcher.h>

using namespace rfl_torch;

namespace
{

constexpr double first_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
constexpr int64_t growth_interval = 2000;

} // namespace

bool rfl_torch::has_kernel(const char *name, enum rfl_device device)
{
	static constexpr c10::DispatchKey keys[] = { c10::DispatchKey::CPU, c10::DispatchKey::CUDA,
						     c10::DispatchKey::MPS };
	bool has = false;

	(void)guarded([&] {
		const auto op = c10::Dispatcher::singleton().findSchema({ name, "" });

		has = op && op->hasKernelForDispatchKey(keys[device]);
	});
	return has;
}

rfl_torch::scaling::scaling(const at::Tensor &where)
{
	const auto options = where.options().requires_grad(false);

	scale = at::full({}, first_scale, options);
	good_steps = at::zeros({}, options.dtype(at::kInt));
	skipped = at::zeros({}, options);
	found = at::zeros({}, options);
}

void rfl_torch::scaling::unscale(const tensors &grads)
{
	found.zero_();
	at::_amp_foreach_non_finite_check_and_unscale_(grads, found, scale.reciprocal());
}

void rfl_torch::scaling::next()
{
	skipped.add_(found);
	at::_amp_update_scale_(scale, good_steps, found, growth_factor, backoff_factor,
			       growth_interval);
}

tensors rfl_torch::scaling::state() const
{
	return { scale, good_steps, skipped };
}

const char *rfl_torch_scaling_since(enum rfl_device device) noexcept
{
	static constexpr const char *since[] = { "2.3", "1.13", "2.8" };

	return has_kernel("aten::_amp_foreach_non_finite_check_and_unscale_", device)
		       ? nullptr
		       : since[device];
}
