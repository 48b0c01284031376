/*
 * shim_cuda_missing.cpp - stands for shim_cuda.cpp in a plugin that was built without
 * CUDA; RFL_TORCH_CUDA_WHY is the reason that configuration found, with what to do.
 */
#include "runner/torch/shim_device.hpp"

void rfl_torch::require_cuda()
{
	TORCH_CHECK(false, RFL_TORCH_CUDA_WHY);
}

std::unique_ptr<rfl_torch_device> rfl_torch::open_cuda(int)
{
	require_cuda();
	return nullptr;
}
