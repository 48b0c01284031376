/*
 * shim_impl.hpp - inside the shim: what its files share. Calls into libtorch are inside guarded(),
 * which turns every exception into a status and a text.
 *
 * Compiles against libtorch 1.13 and 2.x; what differs between them is under TORCH_AT_LEAST.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_IMPL_HPP
#define RFL_RUNNER_TORCH_SHIM_IMPL_HPP

#include "runner/torch/shim.h"

#include <exception>
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

} // namespace rfl_torch

#endif
