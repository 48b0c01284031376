/*
 * torch_shim_ops.cpp - operations of a network, and backward.
 */
#include "runner/torch_shim_impl.hpp"

#include <memory>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

using namespace rfl_torch;

enum rfl_torch_status rfl_torch_conv2d(const struct rfl_torch_tensor *x,
				       const struct rfl_torch_tensor *weight,
				       const struct rfl_torch_tensor *bias,
				       const struct rfl_conv2d *a,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::conv2d(x->t, weight->t, maybe(bias), { a->stride_h, a->stride_w },
				  { a->pad_h, a->pad_w }, { a->dilation_h, a->dilation_w },
				  a->groups);
	});
}

enum rfl_torch_status rfl_torch_batch_norm(const struct rfl_torch_tensor *x,
					   const struct rfl_torch_norm *norm,
					   const struct rfl_batch_norm *attr, int training,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::batch_norm(x->t, maybe(norm->weight), maybe(norm->bias),
				      maybe(norm->running_mean), maybe(norm->running_var),
				      training != 0, attr->momentum, attr->eps,
				      at::globalContext().userEnabledCuDNN());
	});
}

enum rfl_torch_status rfl_torch_relu(struct rfl_torch_tensor *x, int inplace,
				     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return inplace ? at::relu_(x->t) : at::relu(x->t); });
}

enum rfl_torch_status rfl_torch_relu6(struct rfl_torch_tensor *x, int inplace,
				      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return inplace ? at::hardtanh_(x->t, 0, 6) : at::hardtanh(x->t, 0, 6);
	});
}

enum rfl_torch_status rfl_torch_max_pool2d(const struct rfl_torch_tensor *x,
					   const struct rfl_pool *a,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::max_pool2d(x->t, { a->kernel_h, a->kernel_w },
				      { a->stride_h, a->stride_w }, { a->pad_h, a->pad_w },
				      { 1, 1 }, a->ceil_mode);
	});
}

enum rfl_torch_status rfl_torch_adaptive_avg_pool2d(const struct rfl_torch_tensor *x,
						    const struct rfl_adaptive_pool *a,
						    struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::adaptive_avg_pool2d(x->t, { a->out_h, a->out_w }); });
}

enum rfl_torch_status rfl_torch_linear(const struct rfl_torch_tensor *x,
				       const struct rfl_torch_tensor *weight,
				       const struct rfl_torch_tensor *bias,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::linear(x->t, weight->t, maybe(bias)); });
}

enum rfl_torch_status rfl_torch_dropout(struct rfl_torch_tensor *x, double probability, int inplace,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return inplace ? at::dropout_(x->t, probability, true)
			       : at::dropout(x->t, probability, true);
	});
}

enum rfl_torch_status rfl_torch_flatten(const struct rfl_torch_tensor *x,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::flatten(x->t, 1); });
}

enum rfl_torch_status rfl_torch_add(struct rfl_torch_tensor *a, const struct rfl_torch_tensor *b,
				    int inplace, struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return inplace ? a->t.add_(b->t) : at::add(a->t, b->t); });
}

enum rfl_torch_status rfl_torch_cross_entropy(const struct rfl_torch_tensor *logits,
					      const struct rfl_torch_tensor *labels,
					      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::cross_entropy_loss(logits->t.flatten(0, -2), labels->t);
	});
}

enum rfl_torch_status rfl_torch_backward(const struct rfl_torch_tensor *loss) noexcept
{
	return guarded([&] { loss->t.backward(); });
}

namespace
{

// Tells somebody, and leaves the gradients as they are.
struct told final : public torch::autograd::FunctionPreHook {
	void (*fn)(void *ctx);
	void *ctx;

	told(void (*f)(void *), void *c) : fn(f), ctx(c)
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
		made_by->add_pre_hook(std::make_unique<told>(fn, ctx));
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
