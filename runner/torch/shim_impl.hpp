/*
 * shim_impl.hpp - inside the shim: what its files share. Each function of the C interface is
 * one call into libtorch inside guarded(), which turns every exception into a status and a text.
 *
 * Compiles against libtorch 1.13 and 2.x; what differs between them is under TORCH_AT_LEAST.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_IMPL_HPP
#define RFL_RUNNER_TORCH_SHIM_IMPL_HPP

#include "runner/torch/shim.h"

#include <exception>
#include <new>
#include <utility>

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

// Keep a text for rfl_torch_error(). Does not allocate.
void remember(const char *text) noexcept;

// The same; finds out from the text what it means.
enum rfl_torch_status classify(const char *text) noexcept;

template <typename Body> enum rfl_torch_status guarded(Body &&body) noexcept
{
	try {
		body();
		return RFL_TORCH_OK;
	} catch (const c10::OutOfMemoryError &e) {
		remember(e.what_without_backtrace());
		return RFL_TORCH_NOMEM;
	} catch (const c10::NotImplementedError &e) {
		remember(e.what_without_backtrace());
		return RFL_TORCH_UNSUPPORTED;
	} catch (const c10::Error &e) {
		return classify(e.what_without_backtrace());
	} catch (const std::bad_alloc &) {
		remember("out of memory");
		return RFL_TORCH_NOMEM;
	} catch (const std::exception &e) {
		return classify(e.what());
	} catch (...) {
		remember("an exception of unknown type");
		return RFL_TORCH_FAILED;
	}
}

// Runs an expression that gives a tensor and hands it out.
template <typename Body>
enum rfl_torch_status giving(struct rfl_torch_tensor **ret, Body &&body) noexcept
{
	return guarded([&] { *ret = new rfl_torch_tensor{ body() }; });
}

// max(0, min(x, 6)) with a gradient in every type.
at::Tensor relu6(const at::Tensor &x);

using optional_tensor = c10::optional<at::Tensor>;

inline optional_tensor maybe(const struct rfl_torch_tensor *t)
{
	return t ? optional_tensor(t->t) : optional_tensor();
}

} // namespace rfl_torch

#endif
