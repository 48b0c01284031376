/*
 * shim_device.cpp - a C interface to devices: the CPU and Apple GPUs. NVIDIA GPUs are in
 * shim_cuda.cpp; in a plugin built without CUDA, RFL_TORCH_CUDA_WHY gives the reason and the fix.
 */
#include "runner/torch/shim_impl.hpp"

#include <algorithm>

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
struct mps_device final : public rfl_torch_device {
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
		TORCH_CHECK(false, "an Apple GPU has no events; synchronise it instead");
	}
	void memory(double *allocated, double *reserved) override
	{
		look();
		*allocated = allocated_peak;
		*reserved = reserved_peak;
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

// Throw the reason and the fix if the device cannot be used.
void require(enum rfl_device device)
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

enum rfl_rc rfl_torch_device_probe(enum rfl_device device, struct rfl_err *err)
{
	return guarded(nullptr, err, [&] { require(device); });
}

enum rfl_rc rfl_torch_device_open(enum rfl_device device, rfl_torch_device **ret, const char *what,
				  struct rfl_err *err)
{
	return guarded(what, err, [&] {
		std::unique_ptr<rfl_torch_device> d;

		require(device);
		if (device == RFL_DEVICE_CPU)
			d = std::make_unique<rfl_torch_device>();
#ifndef RFL_TORCH_CUDA_WHY
		if (device == RFL_DEVICE_CUDA)
			d = open_cuda();
#endif
#if HAVE_MPS
		if (device == RFL_DEVICE_MPS)
			d = std::make_unique<mps_device>();
#endif
		*ret = d.release();
	});
}

void rfl_torch_device_close(rfl_torch_device *d)
{
	if (!d)
		return;
	(void)guarded([&] { d->sync(); });
	delete d;
}

enum rfl_rc rfl_torch_device_do(rfl_torch_device *d, enum rfl_torch_act act, const char *what,
				struct rfl_err *err)
{
	static constexpr void (rfl_torch_device::*const acts[])() = {
		// in the order of the enum
		&rfl_torch_device::sync,         &rfl_torch_device::copied,
		&rfl_torch_device::reset_memory, &rfl_torch_device::graph_begin,
		&rfl_torch_device::graph_end,    &rfl_torch_device::graph_replay,
		&rfl_torch_device::graph_drop,
	};

	return guarded(what, err, [&] { (d->*acts[act])(); });
}

enum rfl_rc rfl_torch_device_zeros(rfl_torch_device *d, int64_t numel, rfl_torch_tensor **ret,
				   struct rfl_err *err)
{
	return giving(ret, "parameters", err, [&] {
		return at::zeros({ numel }, at::TensorOptions().dtype(at::kFloat).device(d->where));
	});
}

enum rfl_rc rfl_torch_device_bring(rfl_torch_device *d, const rfl_torch_tensor *host,
				   rfl_torch_tensor **ret, const char *what, struct rfl_err *err)
{
	return giving(ret, what, err, [&] { return host->t.to(d->where); });
}

enum rfl_rc rfl_torch_device_host_alloc(rfl_torch_device *d, size_t bytes, void **ret,
					struct rfl_err *err)
{
	return guarded("page-locked memory", err, [&] { *ret = d->host_alloc(bytes); });
}

void rfl_torch_device_host_free(rfl_torch_device *d, void *memory)
{
	if (memory)
		(void)guarded([&] { d->host_free(memory); });
}

enum rfl_rc rfl_torch_device_copy(rfl_torch_device *d, const rfl_torch_tensor *host,
				  rfl_torch_tensor **ret, const char *what, struct rfl_err *err)
{
	return giving(ret, what, err, [&] { return d->copy(host->t); });
}

enum rfl_rc rfl_torch_device_use(rfl_torch_device *d, const rfl_torch_tensor *t,
				 struct rfl_err *err)
{
	return guarded("batch", err, [&] { d->use(t->t); });
}

enum rfl_rc rfl_torch_device_reserve(rfl_torch_device *d, int64_t n, struct rfl_err *err)
{
	return guarded("events", err, [&] { d->reserve(static_cast<size_t>(n)); });
}

enum rfl_rc rfl_torch_device_record(rfl_torch_device *d, int64_t i, struct rfl_err *err)
{
	return guarded("event", err, [&] { d->record(static_cast<size_t>(i)); });
}

enum rfl_rc rfl_torch_device_elapsed(rfl_torch_device *d, int64_t from, int64_t to, double *ret,
				     struct rfl_err *err)
{
	return guarded("time between events", err, [&] {
		*ret = d->elapsed(static_cast<size_t>(from), static_cast<size_t>(to));
	});
}

enum rfl_rc rfl_torch_device_memory(rfl_torch_device *d, double *allocated, double *reserved,
				    struct rfl_err *err)
{
	return guarded("memory", err, [&] { d->memory(allocated, reserved); });
}

enum rfl_rc rfl_torch_device_watch(rfl_torch_device *d, bool on, double held, struct rfl_err *err)
{
	return guarded("memory", err, [&] { d->watch(on, held); });
}

enum rfl_rc rfl_torch_device_in_use(rfl_torch_device *d, double *now, double *peak,
				    struct rfl_err *err)
{
	return guarded("memory", err, [&] { d->in_use(now, peak); });
}

enum rfl_rc rfl_torch_device_facts(rfl_torch_device *d, rfl_torch_facts *ret, struct rfl_err *err)
{
	return guarded("device information", err, [&] {
		rfl_torch_facts facts = {};

		facts.pci_domain = facts.pci_bus = facts.pci_device = -1;
		facts.memory_bytes = -1;
		d->facts(&facts);
		*ret = facts;
	});
}

const char *rfl_torch_graph_missing(const rfl_torch_device *d)
{
	return d->graph_missing();
}
