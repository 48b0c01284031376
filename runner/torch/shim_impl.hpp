/*
 * shim_impl.hpp - inside the shim: what its files share. Calls into libtorch are inside guarded(),
 * which turns every exception into a status and a text.
 *
 * Compiles against libtorch 1.13 and 2.x; what differs between them is under TORCH_AT_LEAST.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_IMPL_HPP
#define RFL_RUNNER_TORCH_SHIM_IMPL_HPP

#include "runner/torch/shim.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/api/include/torch/version.h>

#define TORCH_AT_LEAST(major, minor)      \
	(TORCH_VERSION_MAJOR > (major) || \
	 (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

struct rfl_torch_tensor {
	at::Tensor t;
};

// A device; a kind of device overrides what differs. The base class is this machine's CPU, which
// works before a call returns.
struct rfl_torch_device {
	at::Device where = at::Device(at::kCPU);

	rfl_torch_device() = default;
	rfl_torch_device(const rfl_torch_device &) = delete;
	rfl_torch_device &operator=(const rfl_torch_device &) = delete;
	virtual ~rfl_torch_device() = default;

	virtual void sync()
	{
	}
	virtual at::Tensor copy(const at::Tensor &host)
	{
		return host;
	}
	virtual void use(const at::Tensor &)
	{
	}
	virtual void copied()
	{
	}
	virtual void *host_alloc(size_t)
	{
		TORCH_CHECK(false, where, " needs no page-locked memory");
	}
	virtual void host_free(void *)
	{
	}
	virtual void reserve(size_t n)
	{
		clocks.resize(n);
	}
	virtual void record(size_t i)
	{
		clocks.at(i) = std::chrono::steady_clock::now();
	}
	virtual double elapsed(size_t from, size_t to)
	{
		return std::chrono::duration<double>(clocks.at(to) - clocks.at(from)).count();
	}
	virtual void memory(double *allocated, double *reserved)
	{
		*allocated = *reserved = std::nan(""); // malloc keeps no account
	}
	virtual void reset_memory()
	{
	}
	virtual void facts(rfl_torch_facts *)
	{
	}
	virtual const char *graph_missing() const
	{
		return "only a CUDA device records its work";
	}
	virtual void graph_begin()
	{
		TORCH_CHECK(false, graph_missing());
	}
	virtual void graph_end()
	{
	}
	virtual void graph_replay()
	{
	}
	virtual void graph_drop()
	{
	}

      private:
	std::vector<std::chrono::steady_clock::time_point> clocks;
};

namespace rfl_torch
{

// Keep a text for rfl_torch_error(). Does not allocate. Returns `status`.
rfl_torch_status remember(const char *text, rfl_torch_status status) noexcept;

template <typename Body> rfl_torch_status guarded(Body &&body) noexcept
{
	try {
		body();
		return RFL_TORCH_OK;
	} catch (const c10::OutOfMemoryError &e) {
		return remember(e.what_without_backtrace(), RFL_TORCH_NOMEM);
	} catch (const c10::NotImplementedError &e) {
		return remember(e.what_without_backtrace(), RFL_TORCH_UNSUPPORTED);
	} catch (const c10::Error &e) {
		return remember(e.what_without_backtrace(),
				rfl_torch_meaning(e.what_without_backtrace()));
	} catch (const std::bad_alloc &) {
		return remember("out of memory", RFL_TORCH_NOMEM);
	} catch (const std::exception &e) {
		return remember(e.what(), rfl_torch_meaning(e.what()));
	} catch (...) {
		return remember("an exception of unknown type", RFL_TORCH_FAILED);
	}
}

// Runs an expression that gives a tensor and hands it out.
template <typename Body> rfl_torch_status giving(rfl_torch_tensor **ret, Body &&body) noexcept
{
	return guarded([&] { *ret = new rfl_torch_tensor{ body() }; });
}

using optional_tensor = c10::optional<at::Tensor>;
using tensors = std::vector<at::Tensor>;

// Throws the reason and the fix when no NVIDIA GPU can be used.
void require_cuda();
std::unique_ptr<rfl_torch_device> open_cuda();

} // namespace rfl_torch

#endif
