/*
 * shim_precision.cpp - autocast, determinism, TF32, cuDNN's choice of algorithms, and what
 * older libraries lack for 16-bit types.
 */
#include "runner/torch/shim_precision.h"
#include "runner/torch/shim_impl.hpp"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

using namespace rfl_torch;

namespace
{

constexpr bool has_cpu_fp16 = TORCH_AT_LEAST(2, 3);
constexpr bool has_mps_autocast = TORCH_AT_LEAST(2, 5);

at::ScalarType type_of(enum rfl_cast cast)
{
	return cast == RFL_CAST_BF16 ? at::kBFloat16 : at::kHalf;
}

// One interface for all devices came with 2.4.
#if TORCH_AT_LEAST(2, 4)

at::DeviceType device_of(enum rfl_device device)
{
	static constexpr at::DeviceType types[] = { at::kCPU, at::kCUDA, at::kMPS };

	return types[device];
}

void enable(enum rfl_device device, bool on, at::ScalarType type)
{
	at::autocast::set_autocast_enabled(device_of(device), on);
	if (on)
		at::autocast::set_autocast_dtype(device_of(device), type);
}

#else

void enable(enum rfl_device device, bool on, at::ScalarType type)
{
	TORCH_CHECK(device != RFL_DEVICE_MPS, "this libtorch has no autocast for MPS");
	if (device == RFL_DEVICE_CPU) {
		at::autocast::set_cpu_enabled(on);
		if (on)
			at::autocast::set_autocast_cpu_dtype(type);
		return;
	}
	at::autocast::set_enabled(on);
	if (on)
		at::autocast::set_autocast_gpu_dtype(type);
}

#endif

} // namespace

#if TORCH_AT_LEAST(2, 1)

at::Tensor rfl_torch::relu6(const at::Tensor &x)
{
	return at::hardtanh(x, 0, 6);
}

#else

namespace
{

// The gradient of hardtanh has no 16-bit kernel on the CPU in 1.13.
struct relu6_16bit : public torch::autograd::Function<relu6_16bit> {
	static at::Tensor forward(torch::autograd::AutogradContext *context, const at::Tensor &x)
	{
		context->save_for_backward({ x });
		return at::hardtanh(x, 0, 6);
	}
	static torch::autograd::variable_list backward(torch::autograd::AutogradContext *context,
						       const torch::autograd::variable_list &grads)
	{
		const at::Tensor x = context->get_saved_variables()[0];

		return { grads[0].masked_fill(x.le(0).logical_or_(x.ge(6)), 0) };
	}
};

} // namespace

at::Tensor rfl_torch::relu6(const at::Tensor &x)
{
	const bool lacks = x.device().is_cpu() && x.scalar_type() != at::kFloat;

	return lacks ? relu6_16bit::apply(x) : at::hardtanh(x, 0, 6);
}

#endif

enum rfl_torch_status rfl_torch_set_switches(const struct rfl_torch_switches *s) noexcept
{
	return guarded([&] {
		at::Context &context = at::globalContext();

		context.setDeterministicAlgorithms(s->deterministic != 0, /*warn_only=*/false);
#if TORCH_AT_LEAST(2, 2)
		// New memory would be filled with NaN first: a pass over memory for nothing.
		context.setDeterministicFillUninitializedMemory(false);
#endif
		context.setDeterministicCuDNN(s->deterministic != 0);
		context.setBenchmarkCuDNN(s->cudnn_benchmark != 0);
		context.setAllowTF32CuBLAS(s->tf32 != 0);
		context.setAllowTF32CuDNN(s->tf32 != 0);
	});
}

const char *rfl_torch_cast_missing(enum rfl_device device, enum rfl_cast cast) noexcept
{
	if (cast == RFL_CAST_FP16 && device == RFL_DEVICE_CPU && !has_cpu_fp16)
		return "float16 on a CPU needs libtorch 2.3 or newer; bf16 works";
	if (cast != RFL_CAST_OFF && device == RFL_DEVICE_MPS && !has_mps_autocast)
		return "autocast on MPS needs libtorch 2.5 or newer; fp32 works";
	return nullptr;
}

enum rfl_torch_status rfl_torch_cast_begin(enum rfl_device device, enum rfl_cast cast) noexcept
{
	if (cast == RFL_CAST_OFF)
		return RFL_TORCH_OK;
	return guarded([&] {
		enable(device, true, type_of(cast));
		at::autocast::set_autocast_cache_enabled(true);
		at::autocast::increment_nesting();
	});
}

enum rfl_torch_status rfl_torch_cast_end(enum rfl_device device, enum rfl_cast cast) noexcept
{
	if (cast == RFL_CAST_OFF)
		return RFL_TORCH_OK;
	return guarded([&] {
		if (at::autocast::decrement_nesting() == 0)
			at::autocast::clear_cache();
		enable(device, false, type_of(cast));
	});
}
