/*
 * engine_ops.cpp - implements the operations of a network with libtorch (one table row for each),
 * and hooks in backward. A node's shape does not include the batch; its tensor's shape does.
 */
#include "runner/torch/engine.hpp"

#include <limits>
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
	const rfl_engine &e;
	const rfl_node &node;

	const at::Tensor &in(int j = 0) const
	{
		return e.value[static_cast<size_t>(node.input[j])];
	}

	const at::Tensor &param_at(int i) const
	{
		return e.param[static_cast<size_t>(i)];
	}

	// The node's parameter of this kind, if it has one.
	optional_tensor param(enum rfl_param_kind kind) const
	{
		for (int j = 0; j < node.nparams; j++)
			if (e.net->params[node.param[j]].kind == kind)
				return param_at(node.param[j]);
		return {};
	}

	const at::Tensor &table(size_t part = 0) const
	{
		return e.tables[static_cast<size_t>(&node - e.net->nodes)][part];
	}

	// The rows of a table for these tokens, of which there are as many as the shape has.
	at::Tensor positions(int64_t tokens, size_t part = 0) const
	{
		return e.caches() ? table(part).slice(0, e.past, e.past + tokens) : table(part);
	}

	bool training() const
	{
		return e.mode != RFL_ENGINE_EVAL;
	}

	bool drops() const
	{
		return e.config.dropout && training();
	}

	// Index of the tensor dimension at which the node's shape begins: 1 after a batch, else 0.
	int lead() const
	{
		return node.batchless ? 0 : 1;
	}

	int input_lead() const
	{
		return e.net->nodes[node.input[0]].batchless ? 0 : 1;
	}

	/* Broadcasting aligns shapes at the last dimension. An input with fewer dimensions than the
	 * result gets dimensions of size 1 after its batch. */
	at::Tensor aligned(int j) const
	{
		const rfl_node &from = e.net->nodes[node.input[j]];
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
	const at::Tensor weight = c.node.tied ? c.param_at(c.e.net->nodes[c.node.tied].param[0])
					      : *c.param(RFL_PARAM_LINEAR_WEIGHT);
	const optional_tensor bias = c.param(RFL_PARAM_LINEAR_BIAS);

	if (!c.node.tied && is_int8(c.e, c.node.param[0]))
		return int8_linear(c.in(), c.e.int8[static_cast<size_t>(c.node.param[0])], bias);
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
	const bool training = c.e.mode == RFL_ENGINE_TRAIN; // with the batch's statistics

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
	const at::Tensor &q = c.in(0);
	optional_tensor mask; // of a window; alone, causal is faster

	if (c.e.caches())
		return attend(c.e, c.node, q, c.in(1), c.in(2));
	if (a.window && a.window < q.size(-2))
		mask = visible(0, 0, q.size(-2), a.window, q);

	const bool causal = a.causal && !mask;

	if (q.dim() == 3 && TORCH_AT_LEAST(2, 0)) // the fused kernels require heads
		return fused_attention(q.unsqueeze(1), c.in(1).unsqueeze(1), c.in(2).unsqueeze(1),
				       mask, dropout, causal)
			.squeeze(1);
	return fused_attention(q, repeat_heads(c.in(1), q.size(-3)),
			       repeat_heads(c.in(2), q.size(-3)), mask, dropout, causal);
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
	const at::Tensor &x = c.in();
	const at::Tensor cos = c.positions(x.size(-2), 0), sin = c.positions(x.size(-2), 1);

	if (c.node.attr.rope
		    .halves) { // x cos + (second, first) sin, with sin < 0 in the first half
		const at::Tensor turned = at::roll(x, { x.size(-1) / 2 }, { -1 });

		return at::addcmul(x * cos, turned, sin).to(x.scalar_type());
	}
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
	const at::Tensor &stored = c.param_at(c.node.param[0]);

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
	enum order order;
	at::Tensor (*run)(const call &c);
};

constexpr order FREE = order::free, KEPT = order::kept, MADE = order::made;

// To add an operation, add a row.
const row rows[] = {
	{ RFL_OP_PARAMETER, FREE, parameter },
	{ RFL_OP_CONSTANT, FREE, [](const call &c) { return c.positions(c.node.shape.dim[0]); } },
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
	rfl_engine &e;
	const char *name;

	backward_mark(rfl_engine &engine, const char *n) : e(engine), name(n)
	{
	}
	// Nothing is reported after a failure, which rfl_torch__backward() returns.
	torch::autograd::variable_list
	operator()(const torch::autograd::variable_list &grads) override
	{
		if (e.marks.fn && e.marks.failure.rc == RFL_OK)
			e.marks.failure.rc = e.marks.fn(name, e.marks.ctx, &e.marks.failure);
		return grads;
	}
};

} // namespace

const char *rfl_torch__unsupported(enum rfl_op op, enum rfl_precision)
{
	// the precision is checked when the engine is opened
	if (static_cast<int>(op) < 0 || op >= RFL_OP_COUNT)
		return "not an operation";
	if (op == RFL_OP_INPUT || op == RFL_OP_CROSS_ENTROPY || row_of(op))
		return nullptr;
	return "the torch engine does not implement it";
}

order rfl_torch::order_of(enum rfl_op op)
{
	return row_of(op) ? row_of(op)->order : FREE;
}

void rfl_torch::execute(rfl_engine &e, int i)
{
	const rfl_node &node = e.net->nodes[i];
	const auto n = static_cast<size_t>(i);
	const call c = { e, node };

	e.mark_forward(n);
	about(node.name, [&] {
		// a node that only passes on its input adds no history, and has no work in backward
		const void *before = e.marks.fn && node.ninputs ? c.in().grad_fn().get() : nullptr;
		at::Tensor y = row_of(node.op)->run(c);

		if (e.marks.fn && y.grad_fn() && y.grad_fn().get() != before)
			y.grad_fn()->add_pre_hook(
				std::make_unique<backward_mark>(e, e.marks.backward[n].c_str()));
		e.value[n] = std::move(y);
	});
}
