/*
 * shim_ops.cpp - operations that compute: with weights, products, elementwise, reductions.
 */
#include "runner/torch/shim_impl.hpp"
#include "runner/torch/shim_ops.h"

#include <limits>
#include <tuple>
#include <vector>

using namespace rfl_torch;

// ------------------------------------------------------------------ with weights

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

namespace
{

// As Hugging Face's Conv1D: rows of features times {in, out}.
at::Tensor transposed_linear(const at::Tensor &x, const at::Tensor &weight,
			     const optional_tensor &bias)
{
	const at::Tensor rows = x.reshape({ -1, x.size(-1) });
	auto sizes = x.sizes().vec();

	sizes.back() = weight.size(1);
	return (bias ? at::addmm(*bias, rows, weight) : at::mm(rows, weight)).view(sizes);
}

} // namespace

enum rfl_torch_status rfl_torch_linear(const struct rfl_torch_tensor *x,
				       const struct rfl_torch_tensor *weight,
				       const struct rfl_torch_tensor *bias, int transposed,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return transposed ? transposed_linear(x->t, weight->t, maybe(bias))
				  : at::linear(x->t, weight->t, maybe(bias));
	});
}

enum rfl_torch_status rfl_torch_embedding(const struct rfl_torch_tensor *table,
					  const struct rfl_torch_tensor *places,
					  struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::embedding(table->t, places->t); });
}

enum rfl_torch_status rfl_torch_batch_norm(const struct rfl_torch_tensor *x,
					   const struct rfl_torch_norm *norm,
					   const struct rfl_batch_norm *attr, int training,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		// As PyTorch's module; the operation itself would normalise to zeros.
		TORCH_CHECK_NOT_IMPLEMENTED(!training || x->t.numel() > x->t.size(1),
					    "batch norm in training needs more than one value per "
					    "channel: use a larger batch or larger images");
		return at::batch_norm(x->t, maybe(norm->weight), maybe(norm->bias),
				      maybe(norm->running_mean), maybe(norm->running_var),
				      training != 0, attr->momentum, attr->eps,
				      at::globalContext().userEnabledCuDNN());
	});
}

enum rfl_torch_status rfl_torch_layer_norm(const struct rfl_torch_tensor *x,
					   const struct rfl_torch_tensor *weight,
					   const struct rfl_torch_tensor *bias, double eps,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
#if !TORCH_AT_LEAST(2, 0)
		// Its kernels want one type; autocast leaves the weights in float32.
		if (weight && weight->t.scalar_type() != x->t.scalar_type())
			return at::layer_norm(x->t.to(weight->t.scalar_type()), { x->t.size(-1) },
					      weight->t, maybe(bias), eps)
				.to(x->t.scalar_type());
#endif
		return at::layer_norm(x->t, { x->t.size(-1) }, maybe(weight), maybe(bias), eps);
	});
}

enum rfl_torch_status rfl_torch_rms_norm(const struct rfl_torch_tensor *x,
					 const struct rfl_torch_tensor *weight, double eps,
					 struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
#if TORCH_AT_LEAST(2, 4)
		return at::rms_norm(x->t, { x->t.size(-1) }, maybe(weight), eps);
#else
		const at::Tensor square = at::mean(at::square(x->t), { -1 }, true);
		const at::Tensor y = x->t * at::rsqrt(square + eps);

		return weight ? y * weight->t : y;
#endif
	});
}

// ------------------------------------------------------------------ products

enum rfl_torch_status rfl_torch_matmul(const struct rfl_torch_tensor *a,
				       const struct rfl_torch_tensor *b, int transpose_b,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(
		ret, [&] { return at::matmul(a->t, transpose_b ? b->t.transpose(-1, -2) : b->t); });
}

enum rfl_torch_status rfl_torch_sdpa(const struct rfl_torch_tensor *q,
				     const struct rfl_torch_tensor *k,
				     const struct rfl_torch_tensor *v, int causal, double dropout,
				     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
#if TORCH_AT_LEAST(2, 0)
		return at::scaled_dot_product_attention(q->t, k->t, v->t, {}, dropout, causal != 0);
#else
		return std::get<0>(at::_scaled_dot_product_attention(q->t, k->t, v->t, {}, dropout,
								     false, causal != 0));
#endif
	});
}

// ------------------------------------------------------------------ elementwise

namespace
{

// One input, no attributes.
const struct unary {
	enum rfl_op op;
	at::Tensor (*fresh)(const at::Tensor &x);
	at::Tensor &(*over)(at::Tensor &x); // nullptr: never in place
} unaries[] = {
	{ RFL_OP_RELU, at::relu, at::relu_ },
	{ RFL_OP_RELU6, rfl_torch::relu6,
	  [](at::Tensor &x) -> at::Tensor & { return at::hardtanh_(x, 0, 6); } },
	{ RFL_OP_SIGMOID, at::sigmoid, at::sigmoid_ },
	{ RFL_OP_TANH, at::tanh, at::tanh_ },
	{ RFL_OP_SILU, at::silu, at::silu_ },
	{ RFL_OP_HARD_SIGMOID, at::hardsigmoid, at::hardsigmoid_ },
	{ RFL_OP_HARD_SWISH, at::hardswish, at::hardswish_ },
	{ RFL_OP_EXP, at::exp, nullptr },
	{ RFL_OP_LOG, at::log, nullptr },
	{ RFL_OP_RSQRT, at::rsqrt, nullptr },
	{ RFL_OP_SQUARE, at::square, nullptr },
};

// Two inputs, broadcast.
const struct binary {
	enum rfl_op op;
	at::Tensor (*fresh)(const at::Tensor &a, const at::Tensor &b);
	at::Tensor &(*over)(at::Tensor &a, const at::Tensor &b);
} binaries[] = {
	{ RFL_OP_ADD, [](const at::Tensor &a, const at::Tensor &b) { return at::add(a, b); },
	  [](at::Tensor &a, const at::Tensor &b) -> at::Tensor & { return a.add_(b); } },
	{ RFL_OP_SUB, [](const at::Tensor &a, const at::Tensor &b) { return at::sub(a, b); },
	  [](at::Tensor &a, const at::Tensor &b) -> at::Tensor & { return a.sub_(b); } },
	{ RFL_OP_MUL, [](const at::Tensor &a, const at::Tensor &b) { return at::mul(a, b); },
	  [](at::Tensor &a, const at::Tensor &b) -> at::Tensor & { return a.mul_(b); } },
	{ RFL_OP_DIV, [](const at::Tensor &a, const at::Tensor &b) { return at::div(a, b); },
	  [](at::Tensor &a, const at::Tensor &b) -> at::Tensor & { return a.div_(b); } },
};

template <typename Row, size_t n> const Row &find(const Row (&rows)[n], enum rfl_op op)
{
	for (const Row &row : rows)
		if (row.op == op)
			return row;
	TORCH_CHECK(false, "no operation ", static_cast<int>(op), " of this kind");
}

} // namespace

enum rfl_torch_status rfl_torch_unary(enum rfl_op op, struct rfl_torch_tensor *x, int inplace,
				      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&]() -> at::Tensor {
		const struct unary &row = find(unaries, op);

		return inplace && row.over ? row.over(x->t) : row.fresh(x->t);
	});
}

enum rfl_torch_status rfl_torch_binary(enum rfl_op op, struct rfl_torch_tensor *a,
				       const struct rfl_torch_tensor *b, int inplace,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&]() -> at::Tensor {
		const struct binary &row = find(binaries, op);

		return inplace ? row.over(a->t, b->t) : row.fresh(a->t, b->t);
	});
}

enum rfl_torch_status rfl_torch_gelu(const struct rfl_torch_tensor *x, int tanh,
				     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::gelu(x->t, tanh ? "tanh" : "none"); });
}

enum rfl_torch_status rfl_torch_affine(const struct rfl_torch_tensor *x, const struct rfl_affine *a,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		const at::Tensor scaled = a->scale == 1 ? x->t : at::mul(x->t, a->scale);

		return a->shift == 0 ? scaled : at::add(scaled, a->shift);
	});
}

enum rfl_torch_status rfl_torch_rope(const struct rfl_torch_tensor *x,
				     const struct rfl_torch_tensor *cos,
				     const struct rfl_torch_tensor *sin,
				     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		const at::Tensor a = at::slice(x->t, -1, 0, c10::nullopt, 2);
		const at::Tensor b = at::slice(x->t, -1, 1, c10::nullopt, 2);
		const at::Tensor first = a * cos->t - b * sin->t;
		const at::Tensor second = a * sin->t + b * cos->t;

		return at::stack({ first, second }, -1).flatten(-2).to(x->t.scalar_type());
	});
}

enum rfl_torch_status rfl_torch_dropout(struct rfl_torch_tensor *x, double probability, int inplace,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return inplace ? at::dropout_(x->t, probability, true)
			       : at::dropout(x->t, probability, true);
	});
}

enum rfl_torch_status rfl_torch_stochastic_depth(const struct rfl_torch_tensor *x,
						 double probability,
						 struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		std::vector<int64_t> sizes(static_cast<size_t>(x->t.dim()), 1);
		const double kept = 1 - probability;
		at::Tensor noise;

		sizes[0] = x->t.size(0);
		noise = at::empty(sizes, x->t.options()).bernoulli_(kept);
		if (kept > 0)
			noise.div_(kept);
		return x->t * noise;
	});
}

enum rfl_torch_status rfl_torch_masked(const struct rfl_torch_tensor *x,
				       const struct rfl_torch_tensor *mask,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::masked_fill(x->t, mask->t, -std::numeric_limits<double>::infinity());
	});
}

enum rfl_torch_status rfl_torch_softmax(const struct rfl_torch_tensor *x,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::softmax(x->t, -1); });
}

// ------------------------------------------------------------------ reductions

enum rfl_torch_status rfl_torch_reduce(enum rfl_op op, const struct rfl_torch_tensor *x,
				       int64_t first, int64_t count, int keepdim,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		std::vector<int64_t> dims;

		for (int64_t i = 0; i < count; i++)
			dims.push_back(first + i);
		switch (op) {
		case RFL_OP_MEAN:
			return at::mean(x->t, dims, keepdim != 0);
		case RFL_OP_SUM:
			return at::sum(x->t, dims, keepdim != 0);
		case RFL_OP_MAX:
			return count == 1 ? std::get<0>(at::max(x->t, first, keepdim != 0))
					  : at::amax(x->t, dims, keepdim != 0);
		default:
			TORCH_CHECK(false, "no reduction");
		}
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

enum rfl_torch_status rfl_torch_avg_pool2d(const struct rfl_torch_tensor *x,
					   const struct rfl_pool *a,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::avg_pool2d(x->t, { a->kernel_h, a->kernel_w },
				      { a->stride_h, a->stride_w }, { a->pad_h, a->pad_w },
				      a->ceil_mode, !a->exclude_padding);
	});
}

enum rfl_torch_status rfl_torch_adaptive_avg_pool2d(const struct rfl_torch_tensor *x,
						    const struct rfl_adaptive_pool *a,
						    struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::adaptive_avg_pool2d(x->t, { a->out_h, a->out_w }); });
}
