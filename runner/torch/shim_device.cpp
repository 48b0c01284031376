/*
 * shim_device.cpp - devices as plain C: this machine's CPU, and Apple's GPUs. NVIDIA's
 * are in shim_cuda.cpp, or shim_cuda_missing.cpp says why not.
 */
#include "runner/torch/shim_device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

// Waiting for Apple's GPU, and asking for its memory, is public from here on.
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

void require_mps()
{
	TORCH_CHECK(
		at::globalContext().hasMPS(),
		"this libtorch cannot use an Apple GPU here: it was built without Metal, or there "
		"is none; use --backend cpu or auto");
}

// Peaks are those of the moments of the calls: its allocator keeps none.
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
		TORCH_CHECK(false, "an Apple GPU is timed by waiting for it");
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

      private:
	void look()
	{
		allocated_peak = std::max(allocated_peak,
					  static_cast<double>(mps().getCurrentAllocatedMemory()));
		reserved_peak = std::max(reserved_peak,
					 static_cast<double>(mps().getDriverAllocatedMemory()));
	}
};

std::unique_ptr<rfl_torch_device> open_mps()
{
	return std::make_unique<mps_device>();
}

#else

void require_mps()
{
	TORCH_CHECK(false, "Apple GPUs need libtorch 2.1 or newer, and this is ",
		    rfl_torch_built_version(),
		    ": build against a newer PyTorch, or use --backend cpu");
}

std::unique_ptr<rfl_torch_device> open_mps()
{
	require_mps();
	return nullptr;
}

#endif

} // namespace

enum rfl_torch_status rfl_torch_device_probe(enum rfl_device device) noexcept
{
	return guarded([&] {
		switch (device) {
		case RFL_DEVICE_CPU:
			return;
		case RFL_DEVICE_CUDA:
			return require_cuda();
		case RFL_DEVICE_MPS:
			return require_mps();
		}
	});
}

enum rfl_torch_status rfl_torch_device_open(enum rfl_device device, int index,
					    struct rfl_torch_device **ret) noexcept
{
	return guarded([&] {
		std::unique_ptr<rfl_torch_device> d;

		switch (device) {
		case RFL_DEVICE_CPU:
			d = std::make_unique<rfl_torch_device>();
			break;
		case RFL_DEVICE_CUDA:
			require_cuda();
			d = open_cuda(index);
			break;
		case RFL_DEVICE_MPS:
			require_mps();
			d = open_mps();
			break;
		}
		*ret = d.release();
	});
}

void rfl_torch_device_close(struct rfl_torch_device *d) noexcept
{
	if (!d)
		return;
	(void)guarded([&] { d->sync(); });
	delete d;
}

enum rfl_torch_status rfl_torch_device_sync(struct rfl_torch_device *d) noexcept
{
	return guarded([&] { d->sync(); });
}

enum rfl_torch_status rfl_torch_device_zeros(struct rfl_torch_device *d, int64_t numel,
					     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::zeros({ numel }, at::TensorOptions().dtype(at::kFloat).device(d->where));
	});
}

enum rfl_torch_status rfl_torch_device_bring(struct rfl_torch_device *d,
					     const struct rfl_torch_tensor *host,
					     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return host->t.to(d->where); });
}

enum rfl_torch_status rfl_torch_device_host_alloc(struct rfl_torch_device *d, size_t bytes,
						  void **ret) noexcept
{
	return guarded([&] { *ret = d->host_alloc(bytes); });
}

void rfl_torch_device_host_free(struct rfl_torch_device *d, void *memory) noexcept
{
	if (memory)
		(void)guarded([&] { d->host_free(memory); });
}

enum rfl_torch_status rfl_torch_device_copy(struct rfl_torch_device *d,
					    const struct rfl_torch_tensor *host,
					    struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return d->copy(host->t); });
}

enum rfl_torch_status rfl_torch_device_use(struct rfl_torch_device *d,
					   const struct rfl_torch_tensor *t) noexcept
{
	return guarded([&] { d->use(t->t); });
}

enum rfl_torch_status rfl_torch_device_copied(struct rfl_torch_device *d) noexcept
{
	return guarded([&] { d->copied(); });
}

enum rfl_torch_status rfl_torch_device_reserve(struct rfl_torch_device *d, int64_t n) noexcept
{
	return guarded([&] { d->reserve(static_cast<size_t>(n)); });
}

enum rfl_torch_status rfl_torch_device_record(struct rfl_torch_device *d, int64_t i) noexcept
{
	return guarded([&] { d->record(static_cast<size_t>(i)); });
}

enum rfl_torch_status rfl_torch_device_elapsed(struct rfl_torch_device *d, int64_t from, int64_t to,
					       double *ret) noexcept
{
	return guarded(
		[&] { *ret = d->elapsed(static_cast<size_t>(from), static_cast<size_t>(to)); });
}

enum rfl_torch_status rfl_torch_device_memory(struct rfl_torch_device *d, double *allocated,
					      double *reserved) noexcept
{
	return guarded([&] { d->memory(allocated, reserved); });
}

enum rfl_torch_status rfl_torch_device_reset_memory(struct rfl_torch_device *d) noexcept
{
	return guarded([&] { d->reset_memory(); });
}

enum rfl_torch_status rfl_torch_device_facts(struct rfl_torch_device *d,
					     struct rfl_torch_device_facts *ret) noexcept
{
	return guarded([&] {
		struct rfl_torch_device_facts facts = {};

		facts.pci_domain = facts.pci_bus = facts.pci_device = -1;
		facts.memory_bytes = -1;
		d->facts(&facts);
		*ret = facts;
	});
}

const char *rfl_torch_graph_missing(const struct rfl_torch_device *d) noexcept
{
	return d->graph_missing();
}

enum rfl_torch_status rfl_torch_graph_begin(struct rfl_torch_device *d,
					    struct rfl_torch_graph **ret) noexcept
{
	return guarded([&] { *ret = d->graph_begin().release(); });
}

enum rfl_torch_status rfl_torch_graph_end(struct rfl_torch_graph *g) noexcept
{
	return guarded([&] { g->end(); });
}

enum rfl_torch_status rfl_torch_graph_replay(struct rfl_torch_graph *g) noexcept
{
	return guarded([&] { g->replay(); });
}

void rfl_torch_graph_free(struct rfl_torch_graph *g) noexcept
{
	delete g;
}
