/*
 * shim_views.cpp - operations that compute nothing: views, copies, and tables of numbers that
 * are not learned.
 */
#include "runner/torch/shim_impl.hpp"
#include "runner/torch/shim_ops.h"

#include <vector>

#include <ATen/TensorIndexing.h>

using namespace rfl_torch;

namespace
{

at::IntArrayRef list(const int64_t *values, int n)
{
	return { values, static_cast<size_t>(n) };
}

} // namespace

enum rfl_torch_status rfl_torch_flatten(const struct rfl_torch_tensor *x, int64_t first,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::flatten(x->t, first); });
}

enum rfl_torch_status rfl_torch_reshape(const struct rfl_torch_tensor *x, int ndim,
					const int64_t *sizes,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::reshape(x->t, list(sizes, ndim)); });
}

enum rfl_torch_status rfl_torch_permute(const struct rfl_torch_tensor *x, int ndim,
					const int64_t *order,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::permute(x->t, list(order, ndim)); });
}

enum rfl_torch_status rfl_torch_slice(const struct rfl_torch_tensor *x, int64_t dim, int64_t start,
				      int64_t length, int64_t step,
				      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::slice(x->t, dim, start, start + (length - 1) * step + 1, step);
	});
}

enum rfl_torch_status rfl_torch_concat(struct rfl_torch_tensor *const *xs, int n, int64_t dim,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		const at::Tensor *largest = &xs[0]->t;
		std::vector<at::Tensor> parts;

		for (int i = 1; i < n; i++)
			if (xs[i]->t.dim() > largest->dim())
				largest = &xs[i]->t;
		for (int i = 0; i < n; i++) {
			const at::Tensor &x = xs[i]->t;
			auto sizes = x.sizes().vec();

			sizes.insert(sizes.begin(), largest->size(0));
			parts.push_back(x.dim() < largest->dim() ? x.expand(sizes) : x);
		}
		return at::cat(parts, dim);
	});
}

enum rfl_torch_status rfl_torch_pad(const struct rfl_torch_tensor *x, int64_t dim,
				    const struct rfl_pad *a, struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		// pairs of the last dimension first
		std::vector<int64_t> sides(2 * static_cast<size_t>(x->t.dim() - dim - 2), 0);

		sides.insert(sides.end(), { a->left, a->right, a->top, a->bottom });
		return at::constant_pad_nd(x->t, sides);
	});
}

enum rfl_torch_status rfl_torch_roll(const struct rfl_torch_tensor *x, int64_t dim, int64_t shift_h,
				     int64_t shift_w, struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		std::vector<int64_t> shifts, dims;

		if (shift_h) {
			shifts.push_back(shift_h);
			dims.push_back(dim);
		}
		if (shift_w) {
			shifts.push_back(shift_w);
			dims.push_back(dim + 1);
		}
		return shifts.empty() ? x->t.clone() : at::roll(x->t, shifts, dims);
	});
}

enum rfl_torch_status rfl_torch_gather(const struct rfl_torch_tensor *table,
				       const struct rfl_torch_tensor *places, int ndim,
				       const int64_t *sizes, struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return table->t.index({ at::indexing::TensorIndex(places->t) })
			.view(list(sizes, ndim));
	});
}

// ------------------------------------------------------------------ tables

enum rfl_torch_status rfl_torch_table(const float *values, enum rfl_torch_table_type type, int ndim,
				      const int64_t *sizes, const struct rfl_torch_tensor *like,
				      struct rfl_torch_tensor **ret) noexcept
{
	static constexpr at::ScalarType types[] = { at::kFloat, at::kLong, at::kBool };

	return giving(ret, [&] {
		const at::Tensor given =
			at::from_blob(const_cast<float *>(values), list(sizes, ndim), at::kFloat);

		return given.to(like->t.device(), types[type], false, true);
	});
}
