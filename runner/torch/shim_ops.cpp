/*
 * shim_ops.cpp - implements the operations of a network with libtorch (one table row for each), the
 * loss, and hooks in backward. A node's shape does not include the batch; its tensor's shape does.
 */
#include "runner/torch/shim_impl.hpp"

#include <limits>
#include <memory>
#include <tuple>

#include <ATen/TensorIndexing.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

using namespace rfl_torch;

namespace
{

at::IntArrayRef list(const int64_t *values, int n)
{
	return { values, static_cast<size_t>(n) };
}

// One node to execute, with its inputs, parameters and tables.
struct call {
	const rfl_engine *e;
	const rfl_node &node;

	const at::Tensor &in(int j = 0) const
	{
		return e->value[node.input[j]]->t;
	}

	// The node's parameter of this kind, if it has one.
	optional_tensor param(enum rfl_param_kind kind) const
	{
		for (int j = 0; j < node.nparams; j++)
			if (e->net->params[node.param[j]].kind == kind)
				return e->param[node.param[j]]->t;
		return {};
	}

	const at::Tensor &table(int part = 0) const
	{
		return rfl_torch__tables_of(e, &node)[part]->t;
	}

	bool training() const
	{
		return e->mode != RFL_ENGINE_EVAL;
	}

	bool drops() const
	{
		return e->config.dropout && training();
	}

	// Index of the tensor dimension at which the node's shape begins: 1 after a batch, else 0.
	int lead() const
	{
		return node.batchless ? 0 : 1;
	}

	int input_lead() const
	{
		return e->net->nodes[node.input[0]].batchless ? 0 : 1;
	}

	/* Broadcasting aligns shapes at the last dimension. An input with fewer dimensions than the
	 * result gets dimensions of size 1 after its batch. */
	at::Tensor aligned(int j) const
	{
		const rfl_node &from = e->net->nodes[node.input[j]];
		const int missing = node.shape.ndim - from.shape.ndim;
		std::vector<int64_t> sizes{ -1 };

		if (from.batchless || missing == 0)
			return in(j);
		sizes.insert(sizes.end(), static_cast<size_t>(missing), 1);
		sizes.insert(sizes.end(), from.shape.dim, from.shape.dim + from.shape.ndim);
		return in(j).reshape(sizes);
	}
};

// ------------------------------------------------------------------ operations with weights

at::Tensor conv2d(const call &c)
{
	const struct rfl_conv2d &a = c.node.attr.conv2d;

	return at::conv2d(c.in(), *c.param(RFL_PARAM_CONV_WEIGHT), c.param(RFL_PARAM_CONV_BIAS),
			  { a.stride_h, a.stride_w }, { a.pad_h, a.pad_w },
			  { a.dilation_h, a.dilation_w }, a.groups);
}

at::Tensor linear(const call &c)
{
	// A tied layer uses the first parameter of another node.
	const at::Tensor weight = c.node.tied ? c.e->param[c.e->net->nodes[c.node.tied].param[0]]->t
					      : *c.param(RFL_PARAM_LINEAR_WEIGHT);
	const optional_tensor bias = c.param(RFL_PARAM_LINEAR_BIAS);

	if (!c.node.attr.linear.transposed)
		return at::linear(c.in(), weight, bias);
	// As in Hugging Face's Conv1D, multiply rows of features by {in, out}.
	const at::Tensor rows = c.in().reshape({ -1, c.in().size(-1) });
	auto sizes = c.in().sizes().vec();

	sizes.back() = weight.size(1);
	return (bias ? at::addmm(*bias, rows, weight) : at::mm(rows, weight)).view(sizes);
}

at::Tensor batch_norm(const call &c)
{
	const struct rfl_batch_norm &a = c.node.attr.batch_norm;
	const at::Tensor &x = c.in();
	const bool training = c.e->mode == RFL_ENGINE_TRAIN; // with the batch's statistics

	// PyTorch's module also refuses this; the operation alone would return zeros.
	TORCH_CHECK_NOT_IMPLEMENTED(!training || x.numel() > x.size(1),
				    "batch norm in training needs more than one value per channel; "
				    "use a larger batch or larger images");
	return at::batch_norm(x, c.param(RFL_PARAM_NORM_WEIGHT), c.param(RFL_PARAM_NORM_BIAS),
			      c.param(RFL_PARAM_RUNNING_MEAN), c.param(RFL_PARAM_RUNNING_VAR),
			      training, a.momentum, a.eps, at::globalContext().userEnabledCuDNN());
}

at::Tensor layer_norm(const call &c)
{
	const optional_tensor weight = c.param(RFL_PARAM_NORM_WEIGHT);
	const optional_tensor bias = c.param(RFL_PARAM_NORM_BIAS);
	const double eps = c.node.attr.norm.eps;
	const at::Tensor &x = c.in();

#if !TORCH_AT_LEAST(2, 0)
	// The kernels require a single type, but autocast leaves the weights in float32.
	if (weight && weight->scalar_type() != x.scalar_type())
		return at::layer_norm(x.to(weight->scalar_type()), { x.size(-1) }, weight, bias,
				      eps)
			.to(x.scalar_type());
#endif
	return at::layer_norm(x, { x.size(-1) }, weight, bias, eps);
}

at::Tensor rms_norm(const call &c)
{
	const optional_tensor weight = c.param(RFL_PARAM_NORM_WEIGHT);
	const double eps = c.node.attr.norm.eps;
	const at::Tensor &x = c.in();

#if TORCH_AT_LEAST(2, 4)
	return at::rms_norm(x, { x.size(-1) }, weight, eps);
#else
	const at::Tensor y = x * at::rsqrt(at::mean(at::square(x), { -1 }, true) + eps);

	return weight ? y * *weight : y;
#endif
}

// ------------------------------------------------------------------ products

at::Tensor matmul(const call &c)
{
	return at::matmul(c.in(0),
			  c.node.attr.matmul.transpose_b ? c.in(1).transpose(-1, -2) : c.in(1));
}

at::Tensor sdpa(const call &c)
{
	const struct rfl_sdpa &a = c.node.attr.sdpa;
	const double dropout = c.drops() ? a.dropout : 0;

#if TORCH_AT_LEAST(2, 0)
	if (c.in(0).dim() == 3) // the fused kernels require heads
		return at::scaled_dot_product_attention(c.in(0).unsqueeze(1), c.in(1).unsqueeze(1),
							c.in(2).unsqueeze(1), {}, dropout, a.causal)
			.squeeze(1);
	return at::scaled_dot_product_attention(c.in(0), c.in(1), c.in(2), {}, dropout, a.causal);
#else
	return std::get<0>(at::_scaled_dot_product_attention(c.in(0), c.in(1), c.in(2), {}, dropout,
							     false, a.causal));
#endif
}

// ------------------------------------------------------------------ elementwise

using fresh_fn = at::Tensor (*)(const at::Tensor &x);
using over_fn = at::Tensor &(*)(at::Tensor &x);

// One input, no attributes. over is nullptr if the operation never overwrites its input.
template <fresh_fn fresh, over_fn over = nullptr> at::Tensor unary(const call &c)
{
	at::Tensor x = c.in();

	if constexpr (over != nullptr)
		if (c.node.inplace)
			return over(x);
	return fresh(x);
}

/* The gradient needs the input, so autograd would copy it before an in-place operation. A new
 * tensor for the result saves that pass and uses the same amount of memory. */
template <fresh_fn fresh, over_fn over> at::Tensor unary_of_input(const call &c)
{
	at::Tensor x = c.in();

	return c.node.inplace && !c.training() ? over(x) : fresh(x);
}

#if TORCH_AT_LEAST(2, 1)

at::Tensor relu6(const at::Tensor &x)
{
	return at::hardtanh(x, 0, 6);
}

#else

// The gradient of hardtanh has no 16-bit kernel on the CPU in 1.13.
struct relu6_16bit : public torch::autograd::Function<relu6_16bit> {
	static at::Tensor forward(torch::autograd::AutogradContext *context, const at::Tensor &x)
	{
		context->save_for_backward({ x });
		return at::hardtanh(x, 0, 6);
	}
	static torch::autograd::variable_list backward(torch::autograd::AutogradContext *context,
						       const torch::autograd::variable_list &grads)
	{
		const at::Tensor x = context->get_saved_variables()[0];

		return { grads[0].masked_fill(x.le(0).logical_or_(x.ge(6)), 0) };
	}
};

at::Tensor relu6(const at::Tensor &x)
{
	const bool lacks = x.is_cpu() && x.scalar_type() != at::kFloat;

	return lacks ? relu6_16bit::apply(x) : at::hardtanh(x, 0, 6);
}

#endif

at::Tensor &relu6_over(at::Tensor &x)
{
	return at::hardtanh_(x, 0, 6);
}

at::Tensor gelu(const call &c)
{
	return at::gelu(c.in(), c.node.attr.gelu.tanh ? "tanh" : "none");
}

at::Tensor affine(const call &c)
{
	const struct rfl_affine &a = c.node.attr.affine;
	const at::Tensor scaled = a.scale == 1 ? c.in() : at::mul(c.in(), a.scale);

	return a.shift == 0 ? scaled : at::add(scaled, a.shift);
}

at::Tensor rope(const call &c)
{
	const at::Tensor &x = c.in(), &cos = c.table(0), &sin = c.table(1);
	const at::Tensor a = at::slice(x, -1, 0, c10::nullopt, 2);
	const at::Tensor b = at::slice(x, -1, 1, c10::nullopt, 2);
	const at::Tensor first = a * cos - b * sin;
	const at::Tensor second = a * sin + b * cos;

	return at::stack({ first, second }, -1).flatten(-2).to(x.scalar_type());
}

at::Tensor dropout(const call &c)
{
	const double probability = c.node.attr.dropout.probability;
	at::Tensor x = c.in();

	if (!c.drops())
		return x;
	return c.node.inplace ? at::dropout_(x, probability, true)
			      : at::dropout(x, probability, true);
}

at::Tensor stochastic_depth(const call &c)
{
	const double probability = c.node.attr.dropout.probability, kept = 1 - probability;
	const at::Tensor &x = c.in();
	std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);

	if (!c.drops() || probability <= 0)
		return x;
	sizes[0] = x.size(0);
	at::Tensor noise = at::empty(sizes, x.options()).bernoulli_(kept);
	if (kept > 0)
		noise.div_(kept);
	return x * noise;
}

at::Tensor causal_mask(const call &c)
{
	return at::masked_fill(c.in(), c.table(), -std::numeric_limits<double>::infinity());
}

at::Tensor arithmetic(const call &c)
{
	const at::Tensor a = c.aligned(0), b = c.aligned(1);
	const bool over = c.node.inplace;

	switch (c.node.op) {
	case RFL_OP_ADD:
		return over ? a.add_(b) : at::add(a, b);
	case RFL_OP_SUB:
		return over ? a.sub_(b) : at::sub(a, b);
	case RFL_OP_MUL:
		return over ? a.mul_(b) : at::mul(a, b);
	default:
		return over ? a.div_(b) : at::div(a, b);
	}
}

// ------------------------------------------------------------------ reductions

at::Tensor reduce(const call &c)
{
	const struct rfl_reduce &a = c.node.attr.reduce;
	const int64_t first = a.first + c.input_lead();
	std::vector<int64_t> dims;

	for (int64_t i = 0; i < a.count; i++)
		dims.push_back(first + i);
	switch (c.node.op) {
	case RFL_OP_MEAN:
		return at::mean(c.in(), dims, a.keepdim);
	case RFL_OP_SUM:
		return at::sum(c.in(), dims, a.keepdim);
	default:
		return a.count == 1 ? std::get<0>(at::max(c.in(), first, a.keepdim))
				    : at::amax(c.in(), dims, a.keepdim);
	}
}

at::Tensor max_pool(const call &c)
{
	const struct rfl_pool &a = c.node.attr.pool;

	return at::max_pool2d(c.in(), { a.kernel_h, a.kernel_w }, { a.stride_h, a.stride_w },
			      { a.pad_h, a.pad_w }, { 1, 1 }, a.ceil_mode);
}

at::Tensor avg_pool(const call &c)
{
	const struct rfl_pool &a = c.node.attr.pool;

	return at::avg_pool2d(c.in(), { a.kernel_h, a.kernel_w }, { a.stride_h, a.stride_w },
			      { a.pad_h, a.pad_w }, a.ceil_mode, !a.exclude_padding);
}

at::Tensor adaptive_avg_pool(const call &c)
{
	const struct rfl_adaptive_pool &a = c.node.attr.adaptive_pool;

	return at::adaptive_avg_pool2d(c.in(), { a.out_h, a.out_w });
}

// ------------------------------------------------------------------ data movement

at::Tensor parameter(const call &c)
{
	const at::Tensor &stored = c.e->param[c.node.param[0]]->t;

	return c.node.attr.parameter.drop == 0
		       ? stored
		       : stored.reshape(list(c.node.shape.dim, c.node.shape.ndim));
}

at::Tensor reshape(const call &c)
{
	std::vector<int64_t> sizes(c.node.shape.dim, c.node.shape.dim + c.node.shape.ndim);

	if (c.lead())
		sizes.insert(sizes.begin(), -1);
	return c.in().reshape(sizes);
}

at::Tensor permute(const call &c)
{
	std::vector<int64_t> order(static_cast<size_t>(c.lead()), 0);

	for (int i = 0; i < c.node.shape.ndim; i++)
		order.push_back(c.lead() + c.node.attr.permute.order[i]);
	return c.in().permute(order);
}

at::Tensor slice(const call &c)
{
	const struct rfl_slice &a = c.node.attr.slice;

	return at::slice(c.in(), a.dim + c.lead(), a.start, a.start + (a.length - 1) * a.step + 1,
			 a.step);
}

// Tensors without a batch are repeated for every sample.
at::Tensor concat(const call &c)
{
	const at::Tensor *largest = &c.in(0);
	std::vector<at::Tensor> parts;

	for (int i = 1; i < c.node.ninputs; i++)
		if (c.in(i).dim() > largest->dim())
			largest = &c.in(i);
	for (int i = 0; i < c.node.ninputs; i++) {
		const at::Tensor &x = c.in(i);
		auto sizes = x.sizes().vec();

		sizes.insert(sizes.begin(), largest->size(0));
		parts.push_back(x.dim() < largest->dim() ? x.expand(sizes) : x);
	}
	return at::cat(parts, c.node.attr.concat.dim + c.lead());
}

at::Tensor pad(const call &c)
{
	const struct rfl_pad &a = c.node.attr.padding;
	// pairs, beginning with the last dimension
	std::vector<int64_t> sides(2 * static_cast<size_t>(c.in().dim() - a.dim - c.lead() - 2), 0);

	sides.insert(sides.end(), { a.left, a.right, a.top, a.bottom });
	return at::constant_pad_nd(c.in(), sides);
}

at::Tensor roll(const call &c)
{
	const struct rfl_roll &a = c.node.attr.roll;
	std::vector<int64_t> shifts, dims;

	if (a.shift_h) {
		shifts.push_back(a.shift_h);
		dims.push_back(a.dim + c.lead());
	}
	if (a.shift_w) {
		shifts.push_back(a.shift_w);
		dims.push_back(a.dim + c.lead() + 1);
	}
	return shifts.empty() ? c.in().clone() : at::roll(c.in(), shifts, dims);
}

at::Tensor gather(const call &c)
{
	return c.in()
		.index({ at::indexing::TensorIndex(c.table()) })
		.view(list(c.node.shape.dim, c.node.shape.ndim));
}

// ------------------------------------------------------------------ the table

struct row {
	enum rfl_op op;
	enum rfl_torch_order order;
	at::Tensor (*run)(const call &c);
};

constexpr enum rfl_torch_order FREE = RFL_TORCH_ORDER_FREE, KEPT = RFL_TORCH_ORDER_KEPT,
			       MADE = RFL_TORCH_ORDER_MADE;

// To add an operation, add a row.
const row rows[] = {
	{ RFL_OP_PARAMETER, FREE, parameter },
	{ RFL_OP_CONSTANT, FREE, [](const call &c) { return c.table(); } },
	{ RFL_OP_CONV2D, MADE, conv2d },
	{ RFL_OP_LINEAR, FREE, linear },
	{ RFL_OP_EMBEDDING, FREE,
	  [](const call &c) {
		  return at::embedding(*c.param(RFL_PARAM_EMBEDDING_WEIGHT), c.in());
	  } },
	{ RFL_OP_BATCH_NORM, KEPT, batch_norm },
	{ RFL_OP_LAYER_NORM, FREE, layer_norm },
	{ RFL_OP_RMS_NORM, FREE, rms_norm },
	{ RFL_OP_MATMUL, FREE, matmul },
	{ RFL_OP_SDPA, FREE, sdpa },
	{ RFL_OP_RELU, KEPT, unary<at::relu, at::relu_> },
	{ RFL_OP_RELU6, KEPT, unary_of_input<relu6, relu6_over> },
	{ RFL_OP_SIGMOID, KEPT, unary<at::sigmoid, at::sigmoid_> },
	{ RFL_OP_TANH, KEPT, unary<at::tanh, at::tanh_> },
	{ RFL_OP_SILU, KEPT, unary_of_input<at::silu, at::silu_> },
	{ RFL_OP_MISH, KEPT, unary_of_input<at::mish, at::mish_> },
	{ RFL_OP_GELU, KEPT, gelu },
	{ RFL_OP_HARD_SIGMOID, KEPT, unary_of_input<at::hardsigmoid, at::hardsigmoid_> },
	{ RFL_OP_HARD_SWISH, KEPT, unary_of_input<at::hardswish, at::hardswish_> },
	{ RFL_OP_EXP, KEPT, unary<at::exp> },
	{ RFL_OP_LOG, KEPT, unary<at::log> },
	{ RFL_OP_RSQRT, KEPT, unary<at::rsqrt> },
	{ RFL_OP_SQUARE, KEPT, unary<at::square> },
	{ RFL_OP_AFFINE, KEPT, affine },
	{ RFL_OP_ROPE, FREE, rope },
	{ RFL_OP_DROPOUT, KEPT, dropout },
	{ RFL_OP_STOCHASTIC_DEPTH, KEPT, stochastic_depth },
	{ RFL_OP_CAUSAL_MASK, FREE, causal_mask },
	{ RFL_OP_SOFTMAX, FREE, [](const call &c) { return at::softmax(c.in(), -1); } },
	{ RFL_OP_ADD, KEPT, arithmetic },
	{ RFL_OP_SUB, KEPT, arithmetic },
	{ RFL_OP_MUL, KEPT, arithmetic },
	{ RFL_OP_DIV, KEPT, arithmetic },
	{ RFL_OP_MEAN, FREE, reduce },
	{ RFL_OP_SUM, FREE, reduce },
	{ RFL_OP_MAX, FREE, reduce },
	{ RFL_OP_MAX_POOL, KEPT, max_pool },
	{ RFL_OP_AVG_POOL, KEPT, avg_pool },
	{ RFL_OP_ADAPTIVE_AVG_POOL, KEPT, adaptive_avg_pool },
	{ RFL_OP_FLATTEN, FREE,
	  [](const call &c) {
		  return at::flatten(c.in(), c.node.attr.flatten.first + c.input_lead());
	  } },
	{ RFL_OP_RESHAPE, FREE, reshape },
	{ RFL_OP_PERMUTE, FREE, permute },
	{ RFL_OP_SLICE, FREE, slice },
	{ RFL_OP_CONTIGUOUS, FREE, [](const call &c) { return c.in().contiguous(); } },
	{ RFL_OP_CONCAT, KEPT, concat },
	{ RFL_OP_PAD, FREE, pad },
	{ RFL_OP_ROLL, FREE, roll },
	{ RFL_OP_GATHER, FREE, gather },
};

const row *row_of(enum rfl_op op)
{
	for (const row &r : rows)
		if (r.op == op)
			return &r;
	return nullptr;
}

// Reports that backward reaches a node, and leaves the gradients unchanged.
struct backward_mark final : public torch::autograd::FunctionPreHook {
	rfl_engine *e;
	const char *name;

	backward_mark(rfl_engine *engine, const char *n) : e(engine), name(n)
	{
	}
	// Nothing is reported after a failure, which rfl_torch__backward() returns.
	torch::autograd::variable_list
	operator()(const torch::autograd::variable_list &grads) override
	{
		if (e->marks.fn && e->marks.failure.rc == RFL_OK)
			e->marks.failure.rc = e->marks.fn(name, e->marks.ctx, &e->marks.failure);
		return grads;
	}
};

} // namespace

bool rfl_torch_has_op(enum rfl_op op)
{
	return row_of(op) != nullptr;
}

enum rfl_torch_order rfl_torch_order_of(enum rfl_op op)
{
	return row_of(op) ? row_of(op)->order : FREE;
}

enum rfl_rc rfl_torch_execute(rfl_engine *e, int i, struct rfl_err *err)
{
	const rfl_node &node = e->net->nodes[i];
	const call c = { e, node };
	const enum rfl_rc rc = rfl_torch__mark_forward(e, i, err);

	return rc ? rc : giving(&e->value[i], node.name, err, [&] {
		// a node that only passes on its input adds no history, and has no work in backward
		const void *before = e->marks.fn && node.ninputs ? c.in().grad_fn().get() : nullptr;
		at::Tensor y = row_of(node.op)->run(c);

		if (e->marks.fn && y.grad_fn() && y.grad_fn().get() != before)
			y.grad_fn()->add_pre_hook(
				std::make_unique<backward_mark>(e, e->marks.nodes[i].backward));
		return y;
	});
}

// ------------------------------------------------------------------ loss and backward

static at::Tensor loss_of(const at::Tensor &logits, const at::Tensor &labels, enum rfl_loss form)
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
static void add_score(rfl_engine *e, const at::Tensor &labels, const at::Tensor &loss)
{
	const c10::NoGradGuard no_grad;
	const at::Tensor x = e->logits->t.flatten(0, -2);        // {rows, classes}
	const auto type = x.is_mps() ? at::kFloat : at::kDouble; // MPS has no double

	if (!e->score)
		e->score = new rfl_torch_tensor{ at::zeros({ 3 }, x.options().dtype(type)) };

	const at::Tensor &t = e->score->t;

	t.select(0, 0).add_(loss.to(type), x.size(0));
	t.select(0, 1).add_(x.argmax(-1).eq(labels).sum());
	t.select(0, 2).add_(x.size(0));
}

enum rfl_rc rfl_torch_make_loss(rfl_engine *e, const rfl_torch_tensor *labels, struct rfl_err *err)
{
	return giving(&e->loss, "loss", err, [&] {
		at::Tensor sum = loss_of(e->logits->t, labels->t, e->net->loss);

		for (int i = 0; i < e->net->nnodes; i++)
			if (e->value[i] && e->net->nodes[i].auxiliary)
				sum = at::add(sum, loss_of(e->value[i]->t, labels->t, e->net->loss),
					      e->config.auxiliary_weight);
		if (e->config.score)
			add_score(e, labels->t, sum);
		return sum;
	});
}

enum rfl_rc rfl_torch__score(rfl_engine *e, struct rfl_score *ret, struct rfl_err *err)
{
	return guarded("score", err, [&] {
		const at::Tensor sums = e->score ? e->score->t.to(at::kCPU, at::kDouble)
						 : at::zeros({ 3 }, at::kDouble);
		const double *const n = sums.data_ptr<double>();

		ret->loss = n[0];
		ret->correct = static_cast<int64_t>(n[1]);
		ret->rows = static_cast<int64_t>(n[2]);
		rfl_torch__drop(&e->score);
	});
}

void rfl_torch_set_backward_here(bool on)
{
	// Before 2.0, this switch does not exist, and only CPU work runs on the calling thread.
#if TORCH_AT_LEAST(2, 0)
	c10::AutogradState::get_tls_state().set_multithreading_enabled(!on);
#else
	(void)on;
#endif
}
