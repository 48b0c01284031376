/*
 * torch_shim_optim.cpp - updates of all parameters at once.
 */
#include "runner/torch_shim_impl.hpp"

#include <algorithm>
#include <memory>
#include <vector>

// A fused update of all parameters that runs on the CPU as well.
#define HAVE_FUSED_SGD TORCH_AT_LEAST(2, 4)

using namespace rfl_torch;

namespace
{

// The same elements at the same places: strides of dimensions with one element do not matter.
bool same_order(const at::Tensor &a, const at::Tensor &b)
{
	for (int64_t d = 0; d < a.dim(); d++)
		if (a.size(d) > 1 && a.stride(d) != b.stride(d))
			return false;
	return true;
}

// Gradients in the order of their parameters, so that both can be walked as flat memory.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor> &params)
{
	std::vector<at::Tensor> grads;

	grads.reserve(params.size());
	for (const at::Tensor &p : params) {
		const at::Tensor &g = p.grad();

		TORCH_CHECK(g.defined(), "a parameter has no gradient: run backward first");
		grads.push_back(same_order(g, p) ? g : at::empty_like(p).copy_(g));
	}
	return grads;
}

#if !HAVE_FUSED_SGD

// Without a fused update SGD is four passes over parameters, gradients and momentum. Running them
// group by group keeps a group in the cache between the passes; the values are the same.
constexpr int64_t group_numel = int64_t(1) << 17;

// A run of consecutive parameters, or a slice of a long one.
struct group {
	size_t first, count;
	int64_t offset, numel; // of the slice; numel 0: whole tensors
};

std::vector<group> make_groups(const std::vector<at::Tensor> &params)
{
	std::vector<group> groups;
	int64_t filled = group_numel; // so that the first tensor opens a group

	for (size_t i = 0; i < params.size(); i++) {
		const int64_t n = params[i].numel();

		if (n > 2 * group_numel && params[i].is_non_overlapping_and_dense()) {
			for (int64_t at = 0; at < n; at += group_numel)
				groups.push_back({ i, 1, at, std::min(group_numel, n - at) });
			filled = group_numel;
			continue;
		}
		if (filled + n > group_numel) {
			groups.push_back({ i, 0, 0, 0 });
			filled = 0;
		}
		groups.back().count++;
		filled += n;
	}
	return groups;
}

// The tensors of a group, or its slice of one tensor's memory.
std::vector<at::Tensor> members(const std::vector<at::Tensor> &all, const group &g)
{
	if (g.numel > 0) {
		const at::Tensor &t = all[g.first];

		return { t.as_strided({ g.numel }, { 1 }, t.storage_offset() + g.offset) };
	}
	return { all.begin() + static_cast<std::ptrdiff_t>(g.first),
		 all.begin() + static_cast<std::ptrdiff_t>(g.first + g.count) };
}

#endif

} // namespace

struct rfl_torch_sgd {
	std::vector<at::Tensor> params;
	std::vector<at::Tensor> momentum; // empty before the first step
#if !HAVE_FUSED_SGD
	std::vector<group> groups;
#endif
};

enum rfl_torch_status rfl_torch_sgd_new(struct rfl_torch_tensor *const *params, size_t n,
					struct rfl_torch_sgd **ret) noexcept
{
	return guarded([&] {
		auto sgd = std::make_unique<rfl_torch_sgd>();

		for (size_t i = 0; i < n; i++)
			sgd->params.push_back(params[i]->t);
#if !HAVE_FUSED_SGD
		sgd->groups = make_groups(sgd->params);
#endif
		*ret = sgd.release();
	});
}

void rfl_torch_sgd_free(struct rfl_torch_sgd *sgd) noexcept
{
	delete sgd;
}

void rfl_torch_sgd_zero_grad(struct rfl_torch_sgd *sgd) noexcept
{
	(void)guarded([&] {
		for (at::Tensor &p : sgd->params)
			p.mutable_grad().reset();
	});
}

void rfl_torch_sgd_reset(struct rfl_torch_sgd *sgd) noexcept
{
	rfl_torch_sgd_zero_grad(sgd);
	sgd->momentum.clear();
}

struct rfl_torch_sgd_state {
	std::vector<at::Tensor> momentum;
};

enum rfl_torch_status rfl_torch_sgd_save(const struct rfl_torch_sgd *sgd,
					 struct rfl_torch_sgd_state **ret) noexcept
{
	return guarded([&] {
		auto state = std::make_unique<rfl_torch_sgd_state>();

		for (const at::Tensor &m : sgd->momentum)
			state->momentum.push_back(m.clone());
		*ret = state.release();
	});
}

// Into the memory that is there, so that a restored step runs on the same addresses.
enum rfl_torch_status rfl_torch_sgd_restore(struct rfl_torch_sgd *sgd,
					    const struct rfl_torch_sgd_state *state) noexcept
{
	return guarded([&] {
		if (state->momentum.empty()) {
			sgd->momentum.clear();
			return;
		}
		if (sgd->momentum.empty())
			for (const at::Tensor &m : state->momentum)
				sgd->momentum.push_back(at::empty_like(m));
		for (size_t i = 0; i < state->momentum.size(); i++)
			sgd->momentum[i].copy_(state->momentum[i]);
	});
}

void rfl_torch_sgd_state_free(struct rfl_torch_sgd_state *state) noexcept
{
	delete state;
}

#if HAVE_FUSED_SGD

const char *rfl_torch_sgd_kind(void) noexcept
{
	return "fused";
}

enum rfl_torch_status rfl_torch_sgd_step(struct rfl_torch_sgd *sgd, double lr, double momentum,
					 double weight_decay) noexcept
{
	return guarded([&] {
		const at::NoGradGuard no_grad;
		const std::vector<at::Tensor> grads = gradients(sgd->params);
		const bool first = sgd->momentum.empty();

		if (momentum != 0 && first)
			for (const at::Tensor &p : sgd->params)
				sgd->momentum.push_back(at::empty_like(p));
		at::_fused_sgd_(sgd->params, grads, sgd->momentum, weight_decay, momentum, lr,
				/*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false, first);
	});
}

#else

const char *rfl_torch_sgd_kind(void) noexcept
{
	return "foreach";
}

static void step_group(const struct rfl_torch_sgd *sgd, const std::vector<at::Tensor> &grads,
		       const group &g, double lr, double momentum, double weight_decay)
{
	const std::vector<at::Tensor> p = members(sgd->params, g);
	std::vector<at::Tensor> d = members(grads, g);

	if (weight_decay != 0)
		at::_foreach_add_(d, p, weight_decay);
	if (momentum != 0 && !sgd->momentum.empty()) {
		std::vector<at::Tensor> m = members(sgd->momentum, g);

		at::_foreach_mul_(m, momentum);
		at::_foreach_add_(m, d);
		d = std::move(m);
	}
	at::_foreach_add_(p, d, -lr);
}

enum rfl_torch_status rfl_torch_sgd_step(struct rfl_torch_sgd *sgd, double lr, double momentum,
					 double weight_decay) noexcept
{
	return guarded([&] {
		const at::NoGradGuard no_grad;
		std::vector<at::Tensor> grads = gradients(sgd->params);

		for (const group &g : sgd->groups)
			step_group(sgd, grads, g, lr, momentum, weight_decay);
		// The momentum of the first step is its gradient: keep that memory.
		if (momentum != 0 && sgd->momentum.empty())
			sgd->momentum = std::move(grads);
	});
}

#endif
