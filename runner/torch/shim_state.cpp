/*
 * shim_state.cpp - all state that a step changes: snapshots in memory, and visits for checkpoints.
 */
#include "runner/torch/shim_impl.hpp"

#include <mutex>
#include <string>

using namespace rfl_torch;

struct rfl_torch_snapshot {
	at::Tensor block, random;
	optim_state optim;
	tensors scale;
};

namespace
{

tensors clones(const tensors &from)
{
	tensors to;

	for (const at::Tensor &t : from)
		to.push_back(t.clone());
	return to;
}

// Copy into the existing memory so that a restored step uses the same addresses.
void copy_back(tensors &to, const tensors &from)
{
	if (from.empty() || to.empty()) {
		to = clones(from);
		return;
	}
	for (size_t i = 0; i < from.size(); i++)
		to[i].copy_(from[i]);
}

// The state of the generator for dropout on the engine's device.
at::Tensor random_state(const rfl_engine *e)
{
	at::Generator generator = at::globalContext().defaultGenerator(e->device->where);
	const std::lock_guard<std::mutex> lock(generator.mutex());

	return generator.get_state().clone();
}

void set_random_state(const rfl_engine *e, const at::Tensor &state)
{
	at::Generator generator = at::globalContext().defaultGenerator(e->device->where);
	const std::lock_guard<std::mutex> lock(generator.mutex());

	generator.set_state(state);
}

// Discard the results of the last step, and what will not fit another state.
void leave_step(rfl_engine *e)
{
	rfl_torch__graph_forget(e); // the optimizer's memory may move
	rfl_torch__forget_step(e);
	(void)rfl_torch__zero_grad(e, nullptr);
}

} // namespace

enum rfl_rc rfl_torch__snapshot(rfl_engine *e, struct rfl_err *err)
{
	rfl_torch_snapshot_free(e->saved);
	e->saved = nullptr;
	return guarded("snapshot", err, [&] {
		const optim_state &o = e->optim->state;
		auto s = std::make_unique<rfl_torch_snapshot>();

		s->block = e->block->t.detach().clone();
		s->optim = { clones(o.mean), clones(o.square), clones(o.device_steps), o.steps };
		if (e->optim->scaler)
			s->scale = clones(e->optim->scaler->state());
		s->random = random_state(e);
		e->saved = s.release();
	});
}

enum rfl_rc rfl_torch__restore(rfl_engine *e, struct rfl_err *err)
{
	const rfl_torch_snapshot *s = e->saved;

	if (!s)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: no snapshot to restore; take one first");
	leave_step(e);
	e->updates = 0;
	return guarded("restore", err, [&] {
		optim_state &o = e->optim->state;

		e->block->t.detach().copy_(s->block);
		copy_back(o.mean, s->optim.mean);
		copy_back(o.square, s->optim.square);
		copy_back(o.device_steps, s->optim.device_steps);
		o.steps = s->optim.steps;
		if (e->optim->scaler) {
			tensors there = e->optim->scaler->state();

			copy_back(there, s->scale);
		}
		set_random_state(e, s->random);
	});
}

void rfl_torch_snapshot_free(rfl_torch_snapshot *s)
{
	delete s;
}

enum rfl_rc rfl_torch__visit_state(rfl_engine *e, bool load, rfl_engine_state_fn fn, void *ctx,
				   struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	// Pass a tensor, which may be on a device or channels-last, through row-major host memory.
	const auto part = [&](const std::string &name, const at::Tensor &t) {
		const at::Tensor host =
			t.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true).contiguous();

		if (rc == RFL_OK)
			rc = fn(name.c_str(), host.data_ptr(), host.nbytes(), ctx, err);
		if (rc == RFL_OK && load)
			t.detach().copy_(host);
	};
	const enum rfl_rc own = guarded("state", err, [&] {
		optim_state &o = e->optim->state;
		const at::Tensor random = random_state(e);
		size_t k = 0; // number of the trained parameter

		if (load)
			leave_step(e);
		make_state(*e->optim, e->config.optimizer);
		for (int i = 0; i < e->net->nparams; i++) {
			const std::string name = e->net->params[i].name;

			part(name, e->param[i]->t);
			if (rfl_param_is_buffer(e->net->params[i].kind))
				continue;
			if (!o.mean.empty())
				part(name + ":mean", o.mean[k]);
			if (!o.square.empty())
				part(name + ":square", o.square[k]);
			k++;
		}
		if (rc == RFL_OK)
			rc = fn("steps", &o.steps, sizeof(o.steps), ctx, err);
		for (const at::Tensor &t : o.device_steps)
			part("device_steps", t);
		if (e->optim->scaler)
			for (const at::Tensor &t : e->optim->scaler->state())
				part("scaling", t);
		part("random", random);
		if (rc == RFL_OK && load)
			set_random_state(e, random);
	});

	return rc ? rc : own;
}
