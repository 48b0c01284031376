/*
 * shim_impl.hpp - shared by the files of the shim. Calls into libtorch are inside guarded(), which
 * converts every exception into a code and a message.
 *
 * Compiles against libtorch 1.13 and 2.x; TORCH_AT_LEAST guards the differences.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_IMPL_HPP
#define RFL_RUNNER_TORCH_SHIM_IMPL_HPP

#include "runner/torch/engine_parts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/api/include/torch/version.h>

#define TORCH_AT_LEAST(major, minor)      \
	(TORCH_VERSION_MAJOR > (major) || \
	 (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

struct rfl_torch_tensor {
	at::Tensor t;
};

// Counts the allocations of the CPU while it is the profiler state of a thread.
struct rfl_torch_counter final : public c10::MemoryReportingInfoBase {
	std::mutex lock;
	double now = 0, peak = 0;

	void add(int64_t bytes)
	{
		const std::lock_guard<std::mutex> guard(lock);

		now += static_cast<double>(bytes);
		peak = std::max(peak, now);
	}
	// One of the two overrides the virtual function: the types of the totals depend on the
	// version.
	void reportMemoryUsage(void *, int64_t bytes, int64_t, int64_t, c10::Device)
	{
		add(bytes);
	}
	void reportMemoryUsage(void *, int64_t bytes, size_t, size_t, c10::Device)
	{
		add(bytes);
	}
	bool memoryProfilingEnabled() const override
	{
		return true;
	}
};

/* A device. The base class is the CPU, which completes its work before a call returns; the classes
 * of other devices override the functions that differ. */
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
	virtual void sync_copies()
	{
	}
	virtual void *host_alloc(size_t)
	{
		TORCH_CHECK_NOT_IMPLEMENTED(false, "requires a CUDA device, but this is ", where);
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
	// malloc has no statistics
	virtual rfl_engine_memory memory()
	{
		const double unknown = std::nan("");

		if (!counter)
			return { unknown, unknown, unknown };
		const std::lock_guard<std::mutex> guard(counter->lock);

		return { counter->now, counter->peak, unknown };
	}
	virtual void reset_memory()
	{
		if (!counter)
			return;
		const std::lock_guard<std::mutex> guard(counter->lock);

		counter->peak = counter->now;
	}
	virtual void watch(bool on, double held)
	{
		constexpr auto kind = c10::DebugInfoKind::PROFILER_STATE;

		if (counter)
			(void)c10::ThreadLocalDebugInfo::_pop(kind);
		counter.reset();
		if (!on)
			return;
		counter = std::make_shared<rfl_torch_counter>();
		counter->now = counter->peak = held;
		c10::ThreadLocalDebugInfo::_push(kind, counter);
	}
	// Fill in what is known, and the compute capability of an NVIDIA GPU: 80 is 8.0.
	virtual void facts(rfl_engine_device *, int *)
	{
	}
	virtual const char *graph_missing() const
	{
		return "recording requires a CUDA device";
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
	std::shared_ptr<rfl_torch_counter> counter; // NULL: off
};

/* This process as a member of a group. Without a library for groups, none is ever created. */
struct rfl_torch_group {
	virtual ~rfl_torch_group() = default;
	// Send each bucket of gradients as soon as the backward pass has completed it.
	virtual void begin() = 0;
	// Wait for the buckets and store the averages in the gradients.
	virtual void finish() = 0;
	virtual void gather(const double *mine, size_t n, double *all) = 0;
};

namespace rfl_torch
{

// Fill err as shim.h describes. Does not allocate.
inline rfl_rc failed(const char *what, rfl_err *err, rfl_rc rc, const char *text) noexcept
{
	return what ? rfl_fail(err, rc, 0, "torch: %s: %s%s", what,
			       rc == RFL_EDEVMEM ? "out of memory: " : "", text)
		    : rfl_fail(err, rc, 0, "%s", text);
}

template <typename Body> rfl_rc guarded(const char *what, rfl_err *err, Body &&body) noexcept
{
	try {
		body();
		return RFL_OK;
	} catch (const c10::OutOfMemoryError &e) {
		return failed(what, err, RFL_EDEVMEM, e.what_without_backtrace());
	} catch (const c10::NotImplementedError &e) {
		return failed(what, err, RFL_EUNSUPPORTED, e.what_without_backtrace());
	} catch (const c10::Error &e) {
		const char *text = e.what_without_backtrace();

		return failed(what, err, rfl_torch_meaning(text), text);
	} catch (const std::bad_alloc &) {
		return failed(what, err, RFL_EDEVMEM, "out of memory");
	} catch (const std::exception &e) {
		return failed(what, err, rfl_torch_meaning(e.what()), e.what());
	} catch (...) {
		return failed(what, err, RFL_EFAILED, "an exception of unknown type");
	}
}

// For calls whose failure does not matter.
template <typename Body> rfl_rc guarded(Body &&body) noexcept
{
	return guarded(nullptr, nullptr, body);
}

// Run an expression that yields a tensor and return a new reference to it in *ret.
template <typename Body>
rfl_rc giving(rfl_torch_tensor **ret, const char *what, rfl_err *err, Body &&body) noexcept
{
	return guarded(what, err, [&] { *ret = new rfl_torch_tensor{ body() }; });
}

using optional_tensor = c10::optional<at::Tensor>;
using tensors = std::vector<at::Tensor>;

// PyTorch's GradScaler with its defaults. It runs on the device, so the host does not wait.
struct scaling {
	at::Tensor scale, good_steps, skipped;
	at::Tensor found; // 1: a gradient of this step is not finite

	explicit scaling(const at::Tensor &where)
	{
		const auto options = where.options().requires_grad(false);

		scale = at::full({}, 65536.0, options);
		good_steps = at::zeros({}, options.dtype(at::kInt));
		skipped = at::zeros({}, options);
		found = at::zeros({}, options);
	}
	// Divide the gradients by the scale, and check whether all of them are finite.
	void unscale(const tensors &grads)
	{
		found.zero_();
		at::_amp_foreach_non_finite_check_and_unscale_(grads, found, scale.reciprocal());
	}
	// Call after an update or a skipped update.
	void next()
	{
		skipped.add_(found);
		at::_amp_update_scale_(scale, good_steps, found, /*growth_factor=*/2.0,
				       /*backoff_factor=*/0.5, /*growth_interval=*/2000);
	}
	// The tensors that persist from one step to the next.
	tensors state() const
	{
		return { scale, good_steps, skipped };
	}
};

// Consecutive parameters, or a slice of a large parameter.
struct group {
	size_t first, count;
	int64_t offset, numel; // position and size of the slice; numel 0: whole tensors
};

struct optim_state {
	tensors mean, square; // SGD: mean is the momentum; empty before the first step
	tensors device_steps; // the steps of fused Adam: one tensor, or none
	int64_t steps = 0;
};

// Throw the reason and the fix if no NVIDIA GPU can be used.
void require_cuda();
std::unique_ptr<rfl_torch_device> open_cuda();

} // namespace rfl_torch

struct rfl_torch_optim {
	enum rfl_optimizer_rule rule;
	bool fused;
	rfl_torch::tensors params;
	std::vector<rfl_torch::group>
		groups;     // groups of the parameters with a gradient at the last step
	size_t grouped = 0; // number of those parameters
	rfl_torch::optim_state state;
	std::unique_ptr<rfl_torch::scaling> scaler;

	void zero_grad()
	{
		for (at::Tensor &p : params)
			p.mutable_grad().reset();
	}
};

namespace rfl_torch
{

// Create the state that the rule needs, if there is none yet.
void make_state(rfl_torch_optim &o, const rfl_optimizer &n);

} // namespace rfl_torch

#endif
