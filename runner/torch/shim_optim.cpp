/*
 * shim_optim.cpp - backward, and updates of all parameters.
 *
 * SGD equals PyTorch's, but momentum starts from zeros, which gives the same bits as starting from
 * the first gradient. Adam and AdamW use PyTorch's foreach operations or fused kernels.
 */
#include "runner/torch/shim_impl.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

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

	(void)guarded([&] {
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

update update_of(const rfl_torch_optim &o)
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

void step_in_passes(rfl_torch_optim &o, const update &u, const rfl_optimizer &n)
{
	o.state.steps++;
	if (o.grouped != u.params.size()) {
		o.groups = make_groups(u.params);
		o.grouped = u.params.size();
	}
	for (const group &g : o.groups) {
		if (o.rule == RFL_RULE_SGD)
			sgd_group(u, g, n);
		else
			adam_group(u, g, n, o.rule == RFL_RULE_ADAMW, o.state.steps);
	}
}

// ---- one pass

void step_at_once(rfl_torch_optim &o, const update &u, const rfl_optimizer &n,
		  const optional_tensor &found)
{
	if (o.rule == RFL_RULE_SGD) {
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

	if (o.rule == RFL_RULE_ADAM) {
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
void step(rfl_torch_optim &o, const rfl_optimizer &n)
{
	const bool kernels_skip = o.fused && !o.params[0].device().is_mps();

	make_state(o, n);

	const update u = update_of(o);
	const optional_tensor found =
		o.scaler && kernels_skip ? optional_tensor(o.scaler->found) : optional_tensor();

	if (o.scaler)
		o.scaler->unscale(u.grads);
	if (n.grad_clip > 0)
		clip(u.grads, n.grad_clip);
	if (!o.scaler || kernels_skip || o.scaler->found.item().toDouble() == 0) {
		if (o.fused)
			step_at_once(o, u, n, found);
		else
			step_in_passes(o, u, n);
	}
	if (o.scaler)
		o.scaler->next();
}

} // namespace

void rfl_torch::make_state(rfl_torch_optim &o, const rfl_optimizer &n)
{
	optim_state &s = o.state;
	const bool adam = o.rule != RFL_RULE_SGD;

	if (s.mean.empty() && (adam || n.momentum != 0))
		for (const at::Tensor &p : o.params)
			s.mean.push_back(at::zeros_like(p));
	if (s.square.empty() && adam)
		for (const at::Tensor &p : o.params)
			s.square.push_back(at::zeros_like(p));
	if (s.device_steps.empty() && adam && o.fused)
		s.device_steps = { at::zeros({}, o.params[0].options().requires_grad(false)) };
}

const char *rfl_torch_fused_since(enum rfl_optimizer_rule rule, enum rfl_device device)
{
	const fused_kernel &k = fused_kernels[rule];

	return k.declared && has_kernel(k.name, device) ? nullptr : k.since[device];
}

const char *rfl_torch_scaling_since(enum rfl_device device)
{
	static constexpr const char *since[] = { "2.3", "1.13", "2.8" };

	return has_kernel("aten::_amp_foreach_non_finite_check_and_unscale_", device)
		       ? nullptr
		       : since[device];
}

enum rfl_rc rfl_torch_optim_new(rfl_torch_tensor *const *params, size_t n,
				enum rfl_optimizer_rule rule, bool fused, bool scaled,
				rfl_torch_optim **ret, struct rfl_err *err)
{
	return guarded("optimizer", err, [&] {
		auto o = std::make_unique<rfl_torch_optim>();

		o->rule = rule;
		o->fused = fused;
		for (size_t i = 0; i < n; i++)
			o->params.push_back(params[i]->t);
		if (scaled && n > 0)
			o->scaler = std::make_unique<scaling>(o->params[0]);
		*ret = o.release();
	});
}

void rfl_torch_optim_free(rfl_torch_optim *o)
{
	delete o;
}

// With several processes, the last backward of a step exchanges the gradients.
enum rfl_rc rfl_torch__backward(rfl_engine *e, const struct rfl_backward *how, struct rfl_err *err)
{
	const bool exchanges = e->group && (!how || how->last);
	const double weight = how ? how->weight : 1;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;

	if (!e->can_backward)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: backward needs forward in a training mode; run it first");
	e->can_backward = false;
	rfl_err_clear(&e->marks.failure);
	if (e->marks.fn)
		rc = e->marks.fn(e->marks.nodes[e->net->nnodes].backward, e->marks.ctx, err);
	if (rc == RFL_OK)
		rc = guarded("backward", err, [&] {
			const at::Tensor &loss = e->loss->t;
			const scaling *scaler = e->optim->scaler.get();
			at::Tensor seed; // the gradient of the loss, if it is not 1

			if (exchanges)
				e->group->begin();
			if (scaler)
				seed = scaler->scale.mul(weight).to(loss.scalar_type());
			else if (weight != 1)
				seed = at::full({}, weight, loss.options());
			loss.backward(seed);
		});
	if (rc == RFL_OK && e->marks.failure.rc)
		rc = rfl_err_pass(err, &e->marks.failure);
	if (rc == RFL_OK && exchanges && guarded(nullptr, &why, [&] { e->group->finish(); }))
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "torch: gradients were not exchanged: another process has ended or "
			      "does not respond: %s",
			      why.msg);
	e->has_grads = rc == RFL_OK;
	return rc ? rc : guarded("detach", err, [&] { // free the history, keep the values
		e->loss->t = e->loss->t.detach();
		e->logits->t = e->logits->t.detach();
	});
}

enum rfl_rc rfl_torch_optim_scaling(const rfl_torch_optim *o, double *scale, int64_t *skipped,
				    struct rfl_err *err)
{
	return guarded("scale", err, [&] {
		*scale = o->scaler->scale.item().toDouble();
		*skipped = o->scaler->skipped.item().toLong();
	});
}

enum rfl_rc rfl_torch__zero_grad(rfl_engine *e, struct rfl_err *err)
{
	e->has_grads = false;
	return guarded("gradients", err, [&] { e->optim->zero_grad(); });
}

enum rfl_rc rfl_torch__step(rfl_engine *e, struct rfl_err *err)
{
	if (!e->has_grads)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: step needs gradients; run backward");
	e->has_grads = false;
	e->updates++;
	return guarded("step", err, [&] {
		const c10::NoGradGuard no_grad;

		step(*e->optim, e->config.optimizer);
	});
}

enum rfl_rc rfl_torch__reset_optimizer(rfl_engine *e, struct rfl_err *err)
{
	e->has_grads = false;
	e->updates = 0;
	rfl_torch__graph_forget(e);
	return guarded("optimizer", err, [&] {
		rfl_torch_optim &o = *e->optim;

		o.zero_grad();
		o.state = {};
		if (o.scaler)
			*o.scaler = scaling(o.params[0]);
	});
}

/* What exists before and after is not counted, so nothing may be freed that was allocated on the
 * other side: drop the results of the last step. */
enum rfl_rc rfl_torch__watch_memory(rfl_engine *e, bool on, struct rfl_err *err)
{
	return guarded("memory", err, [&] {
		const optim_state &s = e->optim->state;
		double held = e->batch_bytes + e->tables_bytes + rfl_torch_tensor_bytes(e->block);

		for (const tensors *list : { &s.mean, &s.square, &s.device_steps })
			for (const at::Tensor &t : *list)
				held += static_cast<double>(t.nbytes());
		rfl_torch__forget_step(e);
		e->has_grads = false;
		e->optim->zero_grad();
		e->device->watch(on, held);
	});
}
