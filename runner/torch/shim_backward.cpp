/*
 * shim_backward.cpp - the loss, the gradients, and hooks called as they are made.
 */
#include "runner/torch/shim_impl.hpp"
#include "runner/torch/shim_ops.h"

#include <memory>
#include <tuple>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

using namespace rfl_torch;

namespace
{

// {.., classes} as {rows, classes}.
at::Tensor rows_of(const at::Tensor &logits)
{
	return logits.flatten(0, -2);
}

} // namespace

enum rfl_torch_status rfl_torch_cross_entropy(const struct rfl_torch_tensor *logits,
					      const struct rfl_torch_tensor *labels,
					      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::cross_entropy_loss(rows_of(logits->t), labels->t); });
}

enum rfl_torch_status rfl_torch_cross_entropy_composed(const struct rfl_torch_tensor *logits,
						       const struct rfl_torch_tensor *labels,
						       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		const at::Tensor x = rows_of(logits->t);
		const at::Tensor moved = x - std::get<0>(at::max(x, -1, true));
		const at::Tensor log_p = moved - at::log(at::sum(at::exp(moved), -1, true));

		return -at::mean(at::gather(log_p, -1, labels->t.unsqueeze(-1)));
	});
}

enum rfl_torch_status rfl_torch_add_weighted(const struct rfl_torch_tensor *sum,
					     const struct rfl_torch_tensor *term, double weight,
					     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::add(sum->t, term->t, weight); });
}

namespace
{

// Calls fn and leaves the gradients as they are.
struct call_fn final : public torch::autograd::FunctionPreHook {
	void (*fn)(void *ctx);
	void *ctx;

	call_fn(void (*f)(void *), void *c) : fn(f), ctx(c)
	{
	}
	torch::autograd::variable_list
	operator()(const torch::autograd::variable_list &grads) override
	{
		fn(ctx);
		return grads;
	}
};

} // namespace

const void *rfl_torch_tensor_history(const struct rfl_torch_tensor *t) noexcept
{
	const void *history = nullptr;

	(void)guarded([&] { history = t->t.grad_fn().get(); });
	return history;
}

enum rfl_torch_status rfl_torch_on_backward(const struct rfl_torch_tensor *t, void (*fn)(void *ctx),
					    void *ctx) noexcept
{
	return guarded([&] {
		const auto &made_by = t->t.grad_fn();

		TORCH_CHECK(made_by, "the tensor has no history");
		made_by->add_pre_hook(std::make_unique<call_fn>(fn, ctx));
	});
}

void rfl_torch_set_backward_here(int on) noexcept
{
	// Before 2.0 the engine has no such switch; there only the CPU's work is done here.
#if TORCH_AT_LEAST(2, 0)
	c10::AutogradState::get_tls_state().set_multithreading_enabled(on == 0);
#else
	(void)on;
#endif
}
