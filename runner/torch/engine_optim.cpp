/*
 * engine_optim.cpp - updates of all parameters.
 *
 * SGD equals PyTorch's, but momentum starts from zeros, which gives the same bits as starting from
 * the first gradient. Adam and AdamW use PyTorch's foreach operations or fused kernels.
 */
#include "runner/torch/engine.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

using namespace rfl_torch;

namespace
{

// ------------------------------------------------------------------ kernels of the library

struct fused_kernel {
	const char *name;
	bool declared;        // the headers declare it
	const char *since[3]; // per device
};

// In the order of enum rfl_optimizer_rule.
constexpr fused_kernel fused_kernels[] = {
	{ "aten::_fused_sgd_", TORCH_AT_LEAST(2, 3), { "2.4", "2.3", "2.5" } },
	{ "aten::_fused_adam_", TORCH_AT_LEAST(1, 13), { "2.4", "1.13", "2.5" } },
	{ "aten::_fused_adamw_", TORCH_AT_LEAST(2, 0), { "2.4", "2.0", "2.5" } },
};

// Return whether the loaded library has a kernel of this operation for the device.
bool has_kernel(const char *name, enum rfl_device device)
{
	static constexpr c10::DispatchKey keys[] = { c10::DispatchKey::CPU, c10::DispatchKey::CUDA,
						     c10::DispatchKey::MPS };
	bool has = false;

	attempt([&] {
		const auto op = c10::Dispatcher::singleton().findSchema({ name, "" });

		has = op && op->hasKernelForDispatchKey(keys[device]);
	});
	return has;
}

// ------------------------------------------------------------------ groups

/* An unfused update makes several passes over parameters, gradients and state. On a CPU, working
 * group by group keeps a group in the cache between the passes; the results are the same. */
constexpr int64_t group_numel = int64_t(1) << 17;

std::vector<group> make_groups(const tensors &params)
{
	std::vector<group> groups;
	int64_t filled = group_numel; // full, so that the first tensor starts a group

	if (!params.empty() && !params[0].device().is_cpu())
		return { { 0, params.size(), 0, 0 } };
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
tensors members(const tensors &all, const group &g)
{
	if (g.numel > 0) {
		const at::Tensor &t = all[g.first];

		return { t.as_strided({ g.numel }, { 1 }, t.storage_offset() + g.offset) };
	}
	return { all.begin() + static_cast<std::ptrdiff_t>(g.first),
		 all.begin() + static_cast<std::ptrdiff_t>(g.first + g.count) };
}

// ------------------------------------------------------------------ gradients

// Return whether both have the same layout. Strides of dimensions with one element do not matter.
bool same_order(const at::Tensor &a, const at::Tensor &b)
{
	for (int64_t d = 0; d < a.dim(); d++)
		if (a.size(d) > 1 && a.stride(d) != b.stride(d))
			return false;
	return true;
}

/* Return a gradient in the layout of its parameter, so that both can be processed as flat memory.
 * Older fused kernels compare all strides. */
at::Tensor gradient_of(const at::Tensor &p)
{
	const at::Tensor &g = p.grad();

	if (!same_order(g, p))
		return at::empty_like(p).copy_(g);
	return g.strides() == p.strides() ? g : g.as_strided(p.sizes(), p.strides());
}

// ------------------------------------------------------------------ updates

// The parameters that have a gradient, with their gradients and state.
struct update {
	tensors params, grads, mean, square;
};

update update_of(const optim &o)
{
	update u;

	for (size_t i = 0; i < o.params.size(); i++) {
		if (!o.params[i].grad().defined())
			continue;
		u.params.push_back(o.params[i]);
		u.grads.push_back(gradient_of(o.params[i]));
		if (!o.state.mean.empty())
			u.mean.push_back(o.state.mean[i]);
		if (!o.state.square.empty())
			u.square.push_back(o.state.square[i]);
	}
	TORCH_CHECK(!u.params.empty(), "no parameter has a gradient; run backward first");
	return u;
}

/* torch.nn.utils.clip_grad_norm_: scale by min(1, most / (norm + 1e-6)). It runs on the device, so
 * the host does not wait. */
void clip(const tensors &grads, double most)
{
	const at::Tensor norm = at::stack(at::_foreach_norm(grads, 2)).norm(2);
	const at::Tensor factor = (most / (norm + 1e-6)).clamp_max(1.0);

#if TORCH_AT_LEAST(2, 2)
	at::_foreach_mul_(grads, factor);
#else
	for (const at::Tensor &g : grads)
		g.mul_(factor);
#endif
}

// ---- several passes

void sgd_group(const update &u, const group &g, const rfl_optimizer &n)
{
	const tensors p = members(u.params, g);
	tensors d = members(u.grads, g);

	if (n.weight_decay != 0)
		at::_foreach_add_(d, p, n.weight_decay);
	if (n.momentum != 0) {
		tensors m = members(u.mean, g);

		at::_foreach_mul_(m, n.momentum);
		at::_foreach_add_(m, d);
		d = std::move(m);
	}
	at::_foreach_add_(p, d, -n.lr);
}

void adam_group(const update &u, const group &g, const rfl_optimizer &n, bool decoupled,
		int64_t step)
{
	const double t = static_cast<double>(step);
	const double correction = 1 - std::pow(n.beta1, t);
	const double square_correction = std::sqrt(1 - std::pow(n.beta2, t));
	const tensors p = members(u.params, g), d = members(u.grads, g);
	const tensors m = members(u.mean, g), v = members(u.square, g);

	if (n.weight_decay != 0 && decoupled)
		at::_foreach_mul_(p, 1 - n.lr * n.weight_decay);
	else if (n.weight_decay != 0)
		at::_foreach_add_(d, p, n.weight_decay);
	at::_foreach_mul_(m, n.beta1);
	at::_foreach_add_(m, d, 1 - n.beta1);
	at::_foreach_mul_(v, n.beta2);
	at::_foreach_addcmul_(v, d, d, 1 - n.beta2);

	const tensors root = at::_foreach_sqrt(v);

	at::_foreach_div_(root, square_correction);
	at::_foreach_add_(root, n.eps);
	at::_foreach_addcdiv_(p, m, root, -n.lr / correction);
}

void step_in_passes(optim &o, const update &u, const rfl_optimizer &n)
{
	o.state.steps++;
	if (o.grouped != u.params.size()) {
		o.groups = make_groups(u.params);
		o.grouped = u.params.size();
	}
	for (const group &g : o.groups) {
		if (n.rule == RFL_RULE_SGD)
			sgd_group(u, g, n);
		else
			adam_group(u, g, n, n.rule == RFL_RULE_ADAMW, o.state.steps);
	}
}

// ---- one pass

void step_at_once(const optim &o, const update &u, const rfl_optimizer &n,
		  const optional_tensor &found)
{
	if (n.rule == RFL_RULE_SGD) {
#if TORCH_AT_LEAST(2, 3)
		at::_fused_sgd_(u.params, u.grads, n.momentum != 0 ? u.mean : tensors(),
				n.weight_decay, n.momentum, n.lr, /*dampening=*/0.0,
				/*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false,
				/*grad_scale=*/{}, found);
		return;
#else
		TORCH_CHECK(false, "this libtorch has no fused SGD");
#endif
	}
	const at::Tensor &step = o.state.device_steps[0];

	step.add_(1);
	if (found)
		step.sub_(*found);

	const tensors steps(u.params.size(), step);

	if (n.rule == RFL_RULE_ADAM) {
		at::_fused_adam_(u.params, u.grads, u.mean, u.square, {}, steps, n.lr, n.beta1,
				 n.beta2, n.weight_decay, n.eps, /*amsgrad=*/false,
				 /*maximize=*/false, /*grad_scale=*/{}, found);
		return;
	}
#if TORCH_AT_LEAST(2, 0)
	at::_fused_adamw_(u.params, u.grads, u.mean, u.square, {}, steps, n.lr, n.beta1, n.beta2,
			  n.weight_decay, n.eps, /*amsgrad=*/false, /*maximize=*/false,
			  /*grad_scale=*/{}, found);
#else
	TORCH_CHECK(false, "this libtorch has no fused AdamW");
#endif
}

// Only some kernels skip a step if `found` is set; otherwise the host must wait for `found`.
void step(rfl_engine &e)
{
	optim &o = e.optim;
	const rfl_optimizer &n = e.config.optimizer;
	const bool kernels_skip = e.fused && e.config.device != RFL_DEVICE_MPS;

	make_state(e);

	const update u = update_of(o);
	const optional_tensor found =
		o.scaler && kernels_skip ? optional_tensor(o.scaler->found) : optional_tensor();

	if (o.scaler)
		o.scaler->unscale(u.grads);
	if (n.grad_clip > 0)
		clip(u.grads, n.grad_clip);
	if (!o.scaler || kernels_skip || o.scaler->found.item().toDouble() == 0) {
		if (e.fused)
			step_at_once(o, u, n, found);
		else
			step_in_passes(o, u, n);
	}
	if (o.scaler)
		o.scaler->next();
}

} // namespace

void rfl_torch::make_state(rfl_engine &e)
{
	optim_state &s = e.optim.state;
	const tensors &params = e.optim.params;
	const bool adam = e.config.optimizer.rule != RFL_RULE_SGD;

	if (s.mean.empty() && (adam || e.config.optimizer.momentum != 0))
		for (const at::Tensor &p : params)
			s.mean.push_back(at::zeros_like(p));
	if (s.square.empty() && adam)
		for (const at::Tensor &p : params)
			s.square.push_back(at::zeros_like(p));
	if (s.device_steps.empty() && adam && e.fused)
		s.device_steps = { at::zeros({}, params[0].options().requires_grad(false)) };
}

const char *rfl_torch::fused_since(enum rfl_optimizer_rule rule, enum rfl_device device)
{
	const fused_kernel &k = fused_kernels[rule];

	return k.declared && has_kernel(k.name, device) ? nullptr : k.since[device];
}

const char *rfl_torch::scaling_since(enum rfl_device device)
{
	static constexpr const char *since[] = { "2.3", "1.13", "2.8" };

	return has_kernel("aten::_amp_foreach_non_finite_check_and_unscale_", device)
		       ? nullptr
		       : since[device];
}

enum rfl_rc rfl_torch__scaling(rfl_engine *e, rfl_loss_scaling *ret, rfl_err *err)
{
	return guarded("scale", err, [&] {
		const scaling *s = e->optim.scaler.get();

		*ret = { std::nan(""), -1 };
		if (!s || e->mode == RFL_ENGINE_EVAL) // no gradients to scale
			return;
		*ret = { s->scale.item().toDouble(), s->skipped.item().toLong() };
	});
}

enum rfl_rc rfl_torch__zero_grad(rfl_engine *e, rfl_err *err)
{
	return guarded("gradients", err, [&] { e->zero_grad(); });
}

enum rfl_rc rfl_torch__step(rfl_engine *e, rfl_err *err)
{
	return guarded("step", err, [&] {
		const c10::NoGradGuard no_grad;

		if (!e->has_grads)
			throw failure(RFL_EINVAL, "step needs gradients; run backward");
		e->has_grads = false;
		e->updates++;
		step(*e);
	});
}

enum rfl_rc rfl_torch__reset_optimizer(rfl_engine *e, rfl_err *err)
{
	return guarded("optimizer", err, [&] {
		e->updates = 0;
		e->forget_recording();
		e->zero_grad();
		e->optim.state = {};
		if (e->optim.scaler)
			*e->optim.scaler = scaling(e->optim.params[0]);
	});
}

/* What exists before and after is not counted, so nothing may be freed that was allocated on the
 * other side: drop the results of the last step. */
enum rfl_rc rfl_torch__watch_memory(rfl_engine *e, bool on, rfl_err *err)
{
	return guarded("memory", err, [&] {
		const optim_state &s = e->optim.state;
		double held =
			e->batch_bytes + e->tables_bytes + static_cast<double>(e->block.nbytes());

		for (const tensors *list : { &s.mean, &s.square, &s.device_steps })
			for (const at::Tensor &t : *list)
				held += static_cast<double>(t.nbytes());
		e->forget_step();
		e->zero_grad();
		e->device->watch(on, held);
	});
}
