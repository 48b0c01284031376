/*
 * shim_device.hpp - inside the shim: what a kind of device overrides. The base class is this
 * machine's CPU, which works before a call returns.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_DEVICE_HPP
#define RFL_RUNNER_TORCH_SHIM_DEVICE_HPP

#include "runner/torch/shim_impl.hpp"

#include <chrono>
#include <cmath>
#include <memory>

// Recorded work.
struct rfl_torch_graph {
	rfl_torch_graph() = default;
	rfl_torch_graph(const rfl_torch_graph &) = delete;
	rfl_torch_graph &operator=(const rfl_torch_graph &) = delete;
	virtual ~rfl_torch_graph() = default;
	virtual void end() = 0;
	virtual void replay() = 0;
};

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
	virtual std::unique_ptr<rfl_torch_graph> graph_begin()
	{
		TORCH_CHECK(false, graph_missing());
	}

      private:
	std::vector<std::chrono::steady_clock::time_point> clocks;
};

namespace rfl_torch
{

// Throws the reason and the fix when no NVIDIA GPU can be used.
void require_cuda();
std::unique_ptr<rfl_torch_device> open_cuda();

} // namespace rfl_torch

#endif
