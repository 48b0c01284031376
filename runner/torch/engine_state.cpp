/*
 * engine_state.cpp - all state that a step changes: snapshots in memory, and visits for
 * checkpoints.
 */
#include "runner/torch/engine.hpp"

using namespace rfl_torch;

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
at::Tensor random_state(const rfl_engine &e)
{
	at::Generator generator = at::globalContext().defaultGenerator(e.device->where);
	const std::lock_guard<std::mutex> lock(generator.mutex());

	return generator.get_state().clone();
}

void set_random_state(const rfl_engine &e, const at::Tensor &state)
{
	at::Generator generator = at::globalContext().defaultGenerator(e.device->where);
	const std::lock_guard<std::mutex> lock(generator.mutex());

	generator.set_state(state);
}

// Discard the results of the last step, and what will not fit another state.
void leave_step(rfl_engine &e)
{
	e.forget_recording(); // the optimizer's memory may move
	e.forget_step();
	e.zero_grad();
}

} // namespace

enum rfl_rc rfl_torch__snapshot(rfl_engine *e, rfl_err *err)
{
	return guarded("snapshot", err, [&] {
		e->saved.reset();
		const optim_state &o = e->optim.state;
		auto s = std::make_unique<snapshot>();

		s->block = e->block.detach().clone();
		s->optim = { clones(o.mean), clones(o.square), clones(o.device_steps), o.steps };
		if (e->optim.scaler)
			s->scale = clones(e->optim.scaler->state());
		s->random = random_state(*e);
		e->saved = std::move(s);
	});
}

enum rfl_rc rfl_torch__restore(rfl_engine *e, rfl_err *err)
{
	return guarded("restore", err, [&] {
		const snapshot *s = e->saved.get();
		optim_state &o = e->optim.state;

		if (!s)
			throw failure(RFL_EINVAL, "no snapshot to restore; take one first");
		leave_step(*e);
		e->updates = 0;
		e->block.detach().copy_(s->block);
		copy_back(o.mean, s->optim.mean);
		copy_back(o.square, s->optim.square);
		copy_back(o.device_steps, s->optim.device_steps);
		o.steps = s->optim.steps;
		if (e->optim.scaler) {
			tensors there = e->optim.scaler->state();

			copy_back(there, s->scale);
		}
		set_random_state(*e, s->random);
	});
}

enum rfl_rc rfl_torch__visit_state(rfl_engine *e, bool load, rfl_engine_state_fn fn, void *ctx,
				   rfl_err *err)
{
	const auto visit = [&](const std::string &name, void *data, size_t bytes) {
		checked([&](rfl_err *its) { return fn(name.c_str(), data, bytes, ctx, its); });
	};
	// Pass a tensor, which may be on a device or channels-last, through row-major host memory.
	const auto part = [&](const std::string &name, const at::Tensor &t) {
		const at::Tensor host =
			t.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true).contiguous();

		visit(name, host.data_ptr(), host.nbytes());
		if (load)
			t.detach().copy_(host);
	};

	return guarded("state", err, [&] {
		optim_state &o = e->optim.state;
		const at::Tensor random = random_state(*e);
		size_t k = 0; // number of the trained parameter

		if (load)
			leave_step(*e);
		make_state(*e);
		for (int i = 0; i < e->net->nparams; i++) {
			const std::string name = e->net->params[i].name;

			part(name, e->param[static_cast<size_t>(i)]);
			if (rfl_param_is_buffer(e->net->params[i].kind))
				continue;
			if (!o.mean.empty())
				part(name + ":mean", o.mean[k]);
			if (!o.square.empty())
				part(name + ":square", o.square[k]);
			k++;
		}
		visit("steps", &o.steps, sizeof(o.steps));
		for (const at::Tensor &t : o.device_steps)
			part("device_steps", t);
		if (e->optim.scaler)
			for (const at::Tensor &t : e->optim.scaler->state())
				part("scaling", t);
		part("random", random);
		if (load)
			set_random_state(*e, random);
	});
}
