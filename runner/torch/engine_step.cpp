/*
 * engine_step.cpp - one training step: the forward pass over the nodes, the loss, the backward
 * pass, and recorded steps. Each output is freed after its last use, like a Python variable that
 * goes out of scope.
 */
#include "runner/torch/engine.hpp"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

using namespace rfl_torch;

namespace
{

// ------------------------------------------------------------------ the forward pass

// Since libtorch 2.4, one interface serves all devices.
void enable_cast(enum rfl_device device, enum rfl_cast cast, bool on)
{
	const at::ScalarType type = cast == RFL_CAST_BF16 ? at::kBFloat16 : at::kHalf;

#if TORCH_AT_LEAST(2, 4)
	static constexpr at::DeviceType types[] = { at::kCPU, at::kCUDA, at::kMPS };

	at::autocast::set_autocast_enabled(types[device], on);
	if (on)
		at::autocast::set_autocast_dtype(types[device], type);
#else
	TORCH_CHECK(device != RFL_DEVICE_MPS, "this libtorch has no autocast for MPS");
	if (device == RFL_DEVICE_CPU) {
		at::autocast::set_cpu_enabled(on);
		if (on)
			at::autocast::set_autocast_cpu_dtype(type);
	} else {
		at::autocast::set_enabled(on);
		if (on)
			at::autocast::set_autocast_gpu_dtype(type);
	}
#endif
}

/* In its scope, operations on this thread are recorded for backward in a training mode, and inputs
 * of matmuls and convolutions are cast as e.cast says. Each weight is cast only once, so
 * weights must not change. leave() ends it and frees the outputs of nodes; if the pass fails
 * before, the destructor does, and the first failure is the one to report. */
struct forward_scope {
	rfl_engine &e;
	bool left = false;

	explicit forward_scope(rfl_engine &engine) : e(engine)
	{
		if (e.cast != RFL_CAST_OFF) {
			enable_cast(e.config.device, e.cast, true);
			at::autocast::set_autocast_cache_enabled(true);
			at::autocast::increment_nesting();
		}
		c10::GradMode::set_enabled(e.mode != RFL_ENGINE_EVAL);
	}
	~forward_scope()
	{
		if (!left)
			attempt([&] { leave(); });
	}
	void leave()
	{
		left = true;
		for (at::Tensor &v : e.value)
			v.reset();
		c10::GradMode::set_enabled(false);
		if (e.cast == RFL_CAST_OFF)
			return;
		if (at::autocast::decrement_nesting() == 0)
			at::autocast::clear_cache();
		enable_cast(e.config.device, e.cast, false);
	}
	forward_scope(const forward_scope &) = delete;
	forward_scope &operator=(const forward_scope &) = delete;
};

bool is_channels_last(const at::Tensor &t)
{
	return t.dim() != 4 || t.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor &output_of(rfl_engine &e, int node)
{
	return e.value[static_cast<size_t>(node)];
}

/* If the library falls back to NCHW in a channels-last network, the measured time would include
 * unrequested work. NCHW caused by slicing or concatenation in the network is allowed. */
void check_layout(rfl_engine &e, int i)
{
	const rfl_node &node = e.net->nodes[i];
	const order is = order_of(node.op);

	if (e.layout_checked || e.config.layout != RFL_LAYOUT_NHWC || is == order::free ||
	    is_channels_last(output_of(e, i)))
		return;
	for (int j = 0; is == order::kept && j < node.ninputs; j++)
		if (!is_channels_last(output_of(e, node.input[j])))
			return;
	throw failure(RFL_EUNSUPPORTED,
		      "the output of layer '%s' is not channels-last: this libtorch has no "
		      "channels-last kernel for it; leave out --channels-last",
		      node.name);
}

/* Make the inputs of a net with several: contiguous leaves over parts of a flat tensor, with
 * gradients in training. */
void split_inputs(rfl_engine &e, const at::Tensor &flat)
{
	const rfl_shape &shape = e.net->nodes[0].shape;

	for (int i = 0; i < e.net->ninputs; i++)
		output_of(e, i) = about("inputs", [&] {
			return leaf(flat, i * e.batch_n * rfl_shape_numel(&shape),
				    { e.batch_n, shape.dim[0], shape.dim[1] }, {},
				    e.mode != RFL_ENGINE_EVAL);
		});
}

// Execute all nodes on an input, and store the logits in e.logits.
void run(rfl_engine &e, at::Tensor input, rfl_engine_trace_fn fn, void *ctx)
{
	const rfl_net &net = *e.net;
	// auxiliary heads run only if their losses are used
	const bool heads = e.config.auxiliary_weight > 0 && e.mode != RFL_ENGINE_EVAL;

	if (e.tables.empty())
		make_tables(e);
	if (net.ninputs > 1)
		split_inputs(e, input);
	else
		e.value[0] = std::move(input);
	for (int i = 0; i < net.nnodes; i++) {
		const rfl_node &node = net.nodes[i];

		if (node.op != RFL_OP_CROSS_ENTROPY && (heads || !node.auxiliary)) {
			if (node.op != RFL_OP_INPUT)
				execute(e, i);
			check_layout(e, i);
		}
		if (fn && output_of(e, i).defined())
			about("trace", [&] {
				const at::Tensor plain = output_of(e, i)
								 .detach()
								 .to(at::kCPU, at::kFloat)
								 .contiguous();

				checked([&](rfl_err *err) {
					return fn(i, plain.data_ptr<float>(), plain.numel(), ctx,
						  err);
				});
			});
		for (int j = 0; j < node.ninputs; j++)
			if (e.last_use[static_cast<size_t>(node.input[j])] == i)
				output_of(e, node.input[j]).reset();
	}
	e.layout_checked = true;
	e.logits = std::move(output_of(e, net.output));
}

at::Tensor loss_of(const at::Tensor &logits, const at::Tensor &labels, enum rfl_loss form)
{
	if (form == RFL_LOSS_MEAN)
		return at::mean(logits);

	const at::Tensor x = logits.flatten(0, -2); // {rows, classes}

	if (form == RFL_LOSS_FUSED)
		return at::cross_entropy_loss(x, labels);

	const at::Tensor moved = x - std::get<0>(at::max(x, -1, true));
	const at::Tensor log_p = moved - at::log(at::sum(at::exp(moved), -1, true));

	return -at::mean(at::gather(log_p, -1, labels.unsqueeze(-1)));
}

// Add to the sums {loss, correct, rows}, which are created on the device at the first call.
void add_score(rfl_engine &e, const at::Tensor &labels, const at::Tensor &loss)
{
	const c10::NoGradGuard no_grad;
	const at::Tensor x = e.logits.flatten(0, -2);            // {rows, classes}
	const auto type = x.is_mps() ? at::kFloat : at::kDouble; // MPS has no double

	if (!e.score.defined())
		e.score = at::zeros({ 3 }, x.options().dtype(type));
	e.score.select(0, 0).add_(loss.to(type), x.size(0));
	e.score.select(0, 1).add_(x.argmax(-1).eq(labels).sum());
	e.score.select(0, 2).add_(x.size(0));
}

/* The loss of the logits plus the weighted losses of the auxiliary heads that ran. Does not wait
 * for the device. */
at::Tensor make_loss(rfl_engine &e, const at::Tensor &labels)
{
	at::Tensor sum = loss_of(e.logits, labels, e.net->loss);

	for (int i = 0; i < e.net->nnodes; i++)
		if (output_of(e, i).defined() && e.net->nodes[i].auxiliary)
			sum = at::add(sum, loss_of(output_of(e, i), labels, e.net->loss),
				      e.config.auxiliary_weight);
	if (e.config.score)
		add_score(e, labels, sum);
	return sum;
}

// @param fn  may be nullptr
void forward_on(rfl_engine &e, pair io, rfl_engine_trace_fn fn, void *ctx)
{
	if (e.caches())
		throw failure(RFL_EINVAL, "an engine with a cache runs only generate");
	forward_scope scope(e);

	run(e, std::move(io.input), fn, ctx);
	e.mark_forward(static_cast<size_t>(e.net->nnodes));
	e.loss = about("loss", [&] { return make_loss(e, io.labels); });
	scope.leave();
	e.can_backward = e.mode != RFL_ENGINE_EVAL;
}

} // namespace

void rfl_torch::infer(rfl_engine &e, const at::Tensor &input)
{
	forward_scope scope(e);

	run(e, input, nullptr, nullptr);
	scope.leave();
}

enum rfl_rc rfl_torch__forward_traced(rfl_engine *e, const rfl_batch *batch, rfl_engine_trace_fn fn,
				      void *ctx, rfl_err *err)
{
	return guarded("forward", err, [&] {
		e->mark_forward(0);
		e->forget_step(); // free memory before this step allocates
		forward_on(*e, take_batch(*e, *batch), fn, ctx);
	});
}

enum rfl_rc rfl_torch__forward(rfl_engine *e, const rfl_batch *batch, rfl_err *err)
{
	return rfl_torch__forward_traced(e, batch, nullptr, nullptr, err);
}

enum rfl_rc rfl_torch__score(rfl_engine *e, rfl_score *ret, rfl_err *err)
{
	return guarded("score", err, [&] {
		const at::Tensor sums = e->score.defined() ? e->score.to(at::kCPU, at::kDouble)
							   : at::zeros({ 3 }, at::kDouble);
		const double *const n = sums.data_ptr<double>();

		ret->loss = n[0];
		ret->correct = static_cast<int64_t>(n[1]);
		ret->rows = static_cast<int64_t>(n[2]);
		e->score.reset();
	});
}

// ------------------------------------------------------------------ the backward pass

// With several processes, the last backward of a step exchanges the gradients.
enum rfl_rc rfl_torch__backward(rfl_engine *e, const rfl_backward *how, rfl_err *err)
{
	const bool exchanges = e->group && (!how || how->last);
	const double weight = how ? how->weight : 1;

	return guarded("backward", err, [&] {
		rfl_err &marked = e->marks.failure;
		rfl_err why = RFL_ERR_INIT;
		at::Tensor seed; // the gradient of the loss, if it is not 1

		if (!e->can_backward)
			throw failure(RFL_EINVAL,
				      "backward needs forward in a training mode; run it first");
		e->can_backward = e->has_grads = false;
		rfl_err_clear(&marked);
		if (e->marks.fn)
			checked([&](rfl_err *its) {
				return e->marks.fn(e->marks.backward.back().c_str(), e->marks.ctx,
						   its);
			});
		if (exchanges)
			e->group->begin();
		if (e->optim.scaler)
			seed = e->optim.scaler->scale.mul(weight).to(e->loss.scalar_type());
		else if (weight != 1)
			seed = at::full({}, weight, e->loss.options());
		e->loss.backward(seed);
		checked([&](rfl_err *its) {
			return marked.rc ? rfl_err_pass(its, &marked) : RFL_OK;
		});
		if (exchanges && guarded(nullptr, &why, [&] { e->group->finish(); }))
			throw failure(RFL_EFAILED,
				      "gradients were not exchanged: another process has ended or "
				      "does not respond: %s",
				      why.msg);
		e->has_grads = true;
		e->loss = e->loss.detach(); // free the history, keep the values
		e->logits = e->logits.detach();
	});
}

// ------------------------------------------------------------------ recorded steps

static void check_recordable(const rfl_engine &e, bool backward, bool step)
{
	rfl_graph_facts facts = {};
	const char *why;

	facts.missing = e.device->graph_missing();
	facts.step = step;
	facts.rule = e.config.optimizer.rule;
	facts.fused = e.fused;
	facts.scaled = e.scaled();
	facts.marked = e.marks.fn != nullptr;
	facts.exchanged = e.group != nullptr;
	facts.steps = e.steps;
	facts.updates = e.updates;
	why = rfl_graph_refusal(&facts);
	if (step && !backward)
		throw failure(RFL_EINVAL, "a step needs gradients; record backward too");
	if (backward && e.mode == RFL_ENGINE_EVAL)
		throw failure(RFL_EINVAL, "backward requires a training mode");
	if (why)
		throw failure(RFL_EUNSUPPORTED, "a step cannot be recorded: %s", why);
}

// Drop the tensors left by recording: their values were never computed.
static void clean_up(rfl_engine &e)
{
	e.forget_step();
	e.zero_grad();
	e.forget_recording();
}

// Nothing may wait for the device between begin and end; end is called even after a failure.
static void record(rfl_engine &e)
{
	e.device->graph_begin();
	try {
		forward_on(e, e.recording.reads.io, nullptr, nullptr);
		if (e.recording.backward)
			checked([&](rfl_err *err) {
				return rfl_torch__backward(&e, nullptr, err);
			});
		if (e.recording.step)
			checked([&](rfl_err *err) { return rfl_torch__step(&e, err); });
	} catch (...) {
		attempt([&] { e.device->graph_end(); });
		throw;
	}
	e.device->graph_end();
	e.recording.loss = e.loss;
	e.recording.logits = e.logits;
}

enum rfl_rc rfl_torch__capture(rfl_engine *e, const rfl_batch *batch, bool backward, bool step,
			       rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	rfl_rc rc = guarded(nullptr, err, [&] {
		check_recordable(*e, backward, step);
		clean_up(*e); // so that the gradients are allocated in the recording's memory
	});

	if (rc)
		return rc;
	e->recording.backward = backward;
	e->recording.step = step;
	rc = guarded("recorded step", &why, [&] {
		// the recording reads a separate copy of the inputs
		const pair given = take_batch(*e, *batch);

		e->recording.reads = {
			*batch, { given.input.detach().clone(), given.labels.detach().clone() }
		};
		record(*e);
	});
	e->can_backward = e->has_grads = false;
	e->recording.made = rc == RFL_OK;
	if (rc == RFL_OK)
		return RFL_OK;
	attempt([&] { clean_up(*e); });
	if (rc != RFL_EDEVMEM) {
		why.rc = RFL_EUNSUPPORTED;
		rfl_err_prefix(&why, "torch: a step cannot be recorded");
	}
	return rfl_err_pass(err, &why);
}

enum rfl_rc rfl_torch__replay(rfl_engine *e, const rfl_batch *batch, rfl_err *err)
{
	return guarded("recorded step", err, [&] {
		copied &reads = e->recording.reads;

		if (!e->recording.made)
			throw failure(RFL_EINVAL, "no recorded step to replay; record one first");
		if (batch->n != reads.batch.n || batch->kind != reads.batch.kind)
			throw failure(RFL_EINVAL, "the recorded step has %lld samples, not %lld",
				      static_cast<long long>(reads.batch.n),
				      static_cast<long long>(batch->n));

		// copy the batch into the recorded inputs unless they already contain it
		if (batch->id == 0 || !rfl_batch_same(batch, &reads.batch)) {
			reads.batch.id = 0;
			const pair given = take_batch(*e, *batch);

			reads.io.input.copy_(given.input);
			reads.io.labels.copy_(given.labels);
			reads.batch = *batch;
		}
		e->device->graph_replay();
		e->forget_step();
		e->loss = e->recording.loss;
		e->logits = e->recording.logits;
		e->has_grads = e->recording.backward && !e->recording.step;
	});
}
