/*
 * engine_cuda.cpp - an NVIDIA GPU as a device: streams, events, memory statistics and CUDA graphs.
 * Compiled only if configuration found a libtorch with CUDA and NVIDIA's headers. It includes only
 * the runtime's headers: others include headers that PyTorch's wheels lack.
 */
#include "runner/torch/engine.hpp"

#include <cstdio>
#include <utility>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

// Before 2.0, a recorded step repeats dropout's random numbers and the optimizer's host values;
// before 2.1, page-locked memory that another thread allocates invalidates the recording.
#define HAVE_GRAPHS TORCH_AT_LEAST(2, 1)

using namespace rfl_torch;

namespace
{

namespace allocator = c10::cuda::CUDACachingAllocator;

#define FIX ", or run on the CPU"

std::string cuda_version(int number)
{
	std::array<char, 32> text = {};

	rfl_cuda_version_text(number, text.data(), text.size());
	return text.data();
}

// A build without kernels for this GPU fails only when a kernel runs.
void require_kernels()
{
	static bool seen = false;

	if (seen)
		return;
	TORCH_CHECK(at::ones({ 1 }, at::TensorOptions().device(at::kCUDA)).item().toDouble() == 1,
		    "the GPU returned a wrong result; run on the CPU");
	seen = true;
}

// An event in a stream.
struct cuda_event {
	cudaEvent_t e = nullptr;

	explicit cuda_event(unsigned flags)
	{
		C10_CUDA_CHECK(cudaEventCreateWithFlags(&e, flags));
	}
	cuda_event(cuda_event &&from) noexcept : e(std::exchange(from.e, nullptr))
	{
	}
	cuda_event &operator=(cuda_event &&from) noexcept
	{
		std::swap(e, from.e);
		return *this;
	}
	~cuda_event()
	{
		if (e)
			(void)cudaEventDestroy(e);
	}
	void record(const c10::cuda::CUDAStream &stream)
	{
		C10_CUDA_CHECK(cudaEventRecord(e, stream.stream()));
	}
};

// A copy that no queued work waits for yet.
struct pending_copy {
	at::Tensor t;
	cuda_event done;
};

struct cuda_device final : public device {
	c10::cuda::CUDAStream work, copies;

	explicit cuda_device(c10::DeviceIndex index)
	    : work(c10::cuda::getStreamFromPool(false, index)),
	      copies(c10::cuda::getStreamFromPool(false, index))
	{
		where = at::Device(at::kCUDA, index);
		c10::cuda::set_device(index);
		c10::cuda::setCurrentCUDAStream(work);
	}
	~cuda_device() override
	{
		attempt([&] {
			c10::cuda::setCurrentCUDAStream(
				c10::cuda::getDefaultCUDAStream(where.index()));
		});
	}

	void sync() override
	{
		copies.synchronize();
		work.synchronize();
	}

	// ---- copies

	at::Tensor copy(const at::Tensor &host) override
	{
		const c10::cuda::CUDAStreamGuard on_copies(copies);
		at::Tensor t = at::empty_strided(host.sizes(), host.strides(),
						 host.options().device(where));
		pending_copy p{ t, cuda_event(cudaEventDisableTiming) };

		t.copy_(host, /*non_blocking=*/true);
		p.done.record(copies);
		pending.push_back(std::move(p));
		return t;
	}
	/* The memory belongs to the copy stream: it is not reused before the work is done. */
	void use(const at::Tensor &t) override
	{
		const auto found =
			std::find_if(pending.begin(), pending.end(),
				     [&](const pending_copy &p) { return p.t.is_same(t); });

		if (found == pending.end())
			return;
		C10_CUDA_CHECK(cudaStreamWaitEvent(work.stream(), found->done.e, 0));
		allocator::recordStream(t.storage().data_ptr(), work);
		pending.erase(found);
	}
	void sync_copies() override
	{
		copies.synchronize();
	}
	void *host_alloc(size_t bytes) override
	{
		void *memory = nullptr;

		C10_CUDA_CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
		return memory;
	}
	void host_free(void *memory) override
	{
		C10_CUDA_CHECK(cudaFreeHost(memory));
	}

	// ---- events

	void reserve(size_t n) override
	{
		while (marks.size() < n)
			marks.emplace_back(static_cast<unsigned>(cudaEventDefault));
	}
	void record(size_t i) override
	{
		marks.at(i).record(work);
	}
	double elapsed(size_t from, size_t to) override
	{
		float ms = 0;

		C10_CUDA_CHECK(cudaEventElapsedTime(&ms, marks.at(from).e, marks.at(to).e));
		return 1e-3 * static_cast<double>(ms);
	}

	// ---- memory, values and recorded steps

	rfl_engine_memory memory() override
	{
		const auto stats = allocator::getDeviceStats(where.index());

		return { static_cast<double>(stats.allocated_bytes[0].current),
			 static_cast<double>(stats.allocated_bytes[0].peak),
			 static_cast<double>(stats.reserved_bytes[0].peak) };
	}
	void reset_memory() override
	{
		allocator::resetPeakStats(where.index());
	}
	// The allocator knows all memory of the device, and counts it anyway.
	void watch(bool, double) override
	{
		reset_memory();
	}
	void facts(rfl_engine_device *ret, int *capability) override
	{
		int runtime = 0, driver = 0;
		cudaDeviceProp p;

		C10_CUDA_CHECK(cudaGetDeviceProperties(&p, where.index()));
		C10_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
		C10_CUDA_CHECK(cudaDriverGetVersion(&driver));
		std::snprintf(ret->name, sizeof(ret->name), "%.*s",
			      static_cast<int>(sizeof(ret->name)) - 1, p.name);
		rfl_pci_bus_id_text(p.pciDomainID, p.pciBusID, p.pciDeviceID, ret->pci_bus_id,
				    sizeof(ret->pci_bus_id));
		rfl_cuda_version_text(runtime, ret->cuda_runtime, sizeof(ret->cuda_runtime));
		rfl_cuda_version_text(driver, ret->cuda_driver, sizeof(ret->cuda_driver));
		ret->memory_bytes = static_cast<int64_t>(p.totalGlobalMem);
		*capability = 10 * p.major + p.minor;
	}

	const char *graph_missing() const override
	{
		return HAVE_GRAPHS ? nullptr : "recording a step needs libtorch 2.1 or newer";
	}
#if HAVE_GRAPHS
	// Autocast's cache needs no handling here: each forward pass creates and clears it.
	void graph_begin() override
	{
		sync();
		allocator::emptyCache();
		graph = std::make_unique<at::cuda::CUDAGraph>();
		graph->capture_begin({ 0, 0 }, cudaStreamCaptureModeThreadLocal);
		recording = true;
	}
	void graph_end() override
	{
		TORCH_CHECK(recording, "nothing is being recorded");
		recording = false;
		graph->capture_end();
	}
	void graph_replay() override
	{
		graph->replay();
	}
	// A running replay still reads memory that is freed with the graph.
	void graph_drop() override
	{
		if (recording)
			attempt([&] { graph_end(); });
		else if (graph)
			attempt([&] { work.synchronize(); });
		graph.reset();
	}
#endif

      private:
	std::vector<pending_copy> pending;
	std::vector<cuda_event> marks;
#if HAVE_GRAPHS
	std::unique_ptr<at::cuda::CUDAGraph> graph;
	bool recording = false;
#endif
};

} // namespace

void rfl_torch::require_cuda()
{
	int n = 0, driver = 0, runtime = 0;
	const cudaError_t code = cudaGetDeviceCount(&n);

	if (code == cudaSuccess && n > 0)
		return require_kernels();
	(void)cudaGetLastError(); // otherwise the next call reports the error again
	(void)cudaDriverGetVersion(&driver);
	(void)cudaRuntimeGetVersion(&runtime);
	TORCH_CHECK(driver != 0, "this machine has no NVIDIA driver (libcuda.so.1 cannot be "
				 "loaded); install it" FIX);
	TORCH_CHECK(code != cudaErrorInsufficientDriver, "the NVIDIA driver supports CUDA ",
		    cuda_version(driver), ", but this PyTorch requires CUDA ",
		    cuda_version(runtime),
		    "; install a newer driver, or a PyTorch for an older CUDA" FIX);
	TORCH_CHECK(code != cudaErrorNoDevice && code != cudaSuccess,
		    "the NVIDIA driver shows no GPU; check CUDA_VISIBLE_DEVICES" FIX);
	TORCH_CHECK(false, "no NVIDIA GPU can be used: ", cudaGetErrorString(code),
		    "; run on the CPU");
}

std::unique_ptr<device> rfl_torch::open_cuda()
{
	return std::make_unique<cuda_device>(static_cast<c10::DeviceIndex>(0));
}
