/*
 * engine_device.cpp - the CPU and Apple GPUs as devices, and the members of the engine that only
 * call its device. NVIDIA GPUs are in engine_cuda.cpp; in a plugin built without CUDA,
 * RFL_TORCH_CUDA_WHY gives the reason and the fix.
 */
#include "runner/torch/engine.hpp"

// Since 2.1, the functions that wait for an Apple GPU and query its memory are public.
#define HAVE_MPS TORCH_AT_LEAST(2, 1)
#if HAVE_MPS
#include <ATen/detail/MPSHooksInterface.h>
#endif

using namespace rfl_torch;

namespace
{

#if HAVE_MPS

const at::MPSHooksInterface &mps()
{
	return at::detail::getMPSHooks();
}

// MPS has no peak memory statistics: the peaks are the largest values that calls have read.
struct mps_device final : public device {
	double allocated_peak = 0, reserved_peak = 0;

	mps_device()
	{
		where = at::Device(at::kMPS);
	}
	void sync() override
	{
		mps().deviceSynchronize();
		look();
	}
	at::Tensor copy(const at::Tensor &host) override
	{
		return host.to(where);
	}
	void reserve(size_t) override
	{
		TORCH_CHECK_NOT_IMPLEMENTED(false,
					    "an Apple GPU has no events; synchronise it instead");
	}
	rfl_engine_memory memory() override
	{
		look();
		return { static_cast<double>(mps().getCurrentAllocatedMemory()), allocated_peak,
			 reserved_peak };
	}
	void reset_memory() override
	{
		allocated_peak = reserved_peak = 0;
	}
	void watch(bool, double) override
	{
		TORCH_CHECK_NOT_IMPLEMENTED(false, "an Apple GPU counts no peaks of its memory");
	}

      private:
	void look()
	{
		allocated_peak = std::max(allocated_peak,
					  static_cast<double>(mps().getCurrentAllocatedMemory()));
		reserved_peak = std::max(reserved_peak,
					 static_cast<double>(mps().getDriverAllocatedMemory()));
	}
};

#endif

void require_here(enum rfl_device device)
{
	if (device == RFL_DEVICE_CUDA) {
#ifdef RFL_TORCH_CUDA_WHY
		TORCH_CHECK(false, RFL_TORCH_CUDA_WHY);
#else
		require_cuda();
#endif
	}
	if (device != RFL_DEVICE_MPS)
		return;
#if HAVE_MPS
	TORCH_CHECK(at::globalContext().hasMPS(),
		    "this libtorch cannot use an Apple GPU: it was built without Metal, or the "
		    "machine has none; run on the CPU");
#else
	TORCH_CHECK(false, "Apple GPUs need libtorch 2.1 or newer, but this is ",
		    TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR,
		    "; build against a newer PyTorch, or run on the CPU");
#endif
}

} // namespace

void rfl_torch::require(enum rfl_device device)
{
	try {
		require_here(device);
	} catch (...) {
		throw failure(RFL_EUNAVAILABLE, "%s", failure(nullptr).err.msg);
	}
}

std::unique_ptr<device> rfl_torch::open_device([[maybe_unused]] enum rfl_device device)
{
#ifndef RFL_TORCH_CUDA_WHY
	if (device == RFL_DEVICE_CUDA)
		return open_cuda();
#endif
#if HAVE_MPS
	if (device == RFL_DEVICE_MPS)
		return std::make_unique<mps_device>();
#endif
	return std::make_unique<rfl_torch::device>();
}

enum rfl_rc rfl_torch__probe(enum rfl_device device, rfl_err *err)
{
	return guarded(nullptr, err, [&] { require(device); });
}

enum rfl_rc rfl_torch__device_info(rfl_engine *e, rfl_engine_device *ret, rfl_err *err)
{
	return guarded("device information", err, [&] {
		int capability = 0;

		*ret = {};
		ret->memory_bytes = -1;
		e->device->facts(ret, &capability);
		if (e->config.device == RFL_DEVICE_CUDA)
			rfl_loaded_libraries(ret);
	});
}

enum rfl_rc rfl_torch__sync(rfl_engine *e, struct rfl_err *err)
{
	return guarded("wait for the device", err, [&] { e->device->sync(); });
}

enum rfl_rc rfl_torch__host_alloc(rfl_engine *e, size_t bytes, void **ret, struct rfl_err *err)
{
	return guarded("page-locked memory", err, [&] { *ret = e->device->host_alloc(bytes); });
}

void rfl_torch__host_free(rfl_engine *e, void *memory)
{
	if (memory)
		attempt([&] { e->device->host_free(memory); });
}

enum rfl_rc rfl_torch__reserve_events(rfl_engine *e, int64_t n, struct rfl_err *err)
{
	return guarded("events", err, [&] { e->device->reserve(static_cast<size_t>(n)); });
}

enum rfl_rc rfl_torch__record_event(rfl_engine *e, int64_t i, struct rfl_err *err)
{
	return guarded("event", err, [&] { e->device->record(static_cast<size_t>(i)); });
}

enum rfl_rc rfl_torch__elapsed(rfl_engine *e, int64_t from, int64_t to, double *ret,
			       struct rfl_err *err)
{
	return guarded("time between events", err, [&] {
		*ret = e->device->elapsed(static_cast<size_t>(from), static_cast<size_t>(to));
	});
}

enum rfl_rc rfl_torch__memory(rfl_engine *e, rfl_engine_memory *ret, struct rfl_err *err)
{
	return guarded("memory", err, [&] { *ret = e->device->memory(); });
}

enum rfl_rc rfl_torch__reset_memory(rfl_engine *e, struct rfl_err *err)
{
	return guarded("memory", err, [&] { e->device->reset_memory(); });
}
