/*
 * engine_generate.cpp - language models at inference: a cache of keys and values, attention to it,
 * weights stored as integers, and the step.
 */
#include "runner/torch/engine.hpp"

using namespace rfl_torch;

// ------------------------------------------------------------------ attention

void rfl_torch::make_cache(rfl_engine &e)
{
	e.cache.resize(static_cast<size_t>(e.net->nnodes));
	for (int i = 0; i < e.net->nnodes; i++) {
		const rfl_node &node = e.net->nodes[i];

		if (node.op != RFL_OP_SDPA)
			continue;
		about("cache of keys and values", [&] {
			for (size_t part = 0; part < 2; part++) {
				const rfl_shape &s = e.net->nodes[node.input[part + 1]].shape;

				e.cache[static_cast<size_t>(i)][part] =
					at::empty({ e.config.max_batch, s.dim[0],
						    e.config.cache_tokens, s.dim[2] },
						  at::TensorOptions(e.stored())
							  .device(e.device->where))
						.normal_();
			}
		});
	}
}

at::Tensor rfl_torch::fused_attention(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v,
				      const optional_tensor &mask, double dropout, bool causal)
{
#if TORCH_AT_LEAST(2, 0)
	return at::scaled_dot_product_attention(q, k, v, mask, dropout, causal);
#else
	return std::get<0>(
		at::_scaled_dot_product_attention(q, k, v, mask, dropout, false, causal));
#endif
}

at::Tensor rfl_torch::repeat_heads(const at::Tensor &x, int64_t heads)
{
	return x.size(-3) == heads ? x : at::repeat_interleave(x, heads / x.size(-3), -3);
}

at::Tensor rfl_torch::visible(int64_t first, int64_t past, int64_t tokens, int64_t window,
			      const at::Tensor &like)
{
	const auto options = at::TensorOptions(at::kLong).device(like.device());
	const at::Tensor keys = at::arange(first, past + tokens, options).unsqueeze(0);
	const at::Tensor queries = at::arange(past, past + tokens, options).unsqueeze(1);
	const at::Tensor seen = keys.le(queries);

	return window ? seen.logical_and(keys.gt(queries - window)) : seen;
}

at::Tensor rfl_torch::attend(const rfl_engine &e, const rfl_node &node, const at::Tensor &q,
			     const at::Tensor &k, const at::Tensor &v)
{
	const tables &cache = e.cache[static_cast<size_t>(&node - e.net->nodes)];
	const int64_t n = q.size(0), heads = q.size(1), tokens = q.size(2), groups = k.size(1);
	const int64_t past = e.past, end = past + tokens, window = node.attr.sdpa.window;
	const int64_t first = window ? std::max<int64_t>(0, past + 1 - window) : 0;
	const at::Tensor keys = cache[0].narrow(0, 0, n), values = cache[1].narrow(0, 0, n);

	keys.slice(2, past, end).copy_(k);
	values.slice(2, past, end).copy_(v);

	const at::Tensor seen_keys = keys.slice(2, first, end);
	const at::Tensor seen_values = values.slice(2, first, end);

	/* The queries of a group see the same keys: they are passed as rows, so that keys and
	 * values are read once and not copied. */
	if (tokens == 1)
		return fused_attention(q.reshape({ n, groups, heads / groups, q.size(3) }),
				       seen_keys, seen_values, {}, 0, false)
			.reshape({ n, heads, 1, v.size(3) });

	const bool causal = past == 0 && (!window || tokens <= window);
	optional_tensor mask;

	if (!causal)
		mask = visible(first, past, tokens, window, q);
	return fused_attention(q, repeat_heads(seen_keys, heads), repeat_heads(seen_values, heads),
			       mask, 0, causal);
}

// ------------------------------------------------------------------ integers

bool rfl_torch::is_int8(const rfl_engine &e, int param)
{
	const rfl_param &p = e.net->params[param];

	return e.config.int8_weights && p.kind == RFL_PARAM_LINEAR_WEIGHT &&
	       e.net->nodes[p.node].block > 0;
}

// The largest magnitude of a row becomes 127.
int8_weight rfl_torch::to_int8(const rfl_engine &e, const at::Tensor &weight)
{
	const at::Tensor scales = at::amax(weight.abs(), { 1 }).div_(127).clamp_min_(1e-30);
	const at::Tensor values = at::round(weight / scales.unsqueeze(1));

	return { values.to(e.device->where, at::kChar), scales.to(e.device->where, e.stored()) };
}

at::Tensor rfl_torch::from_int8(const int8_weight &weight)
{
	return weight.values.to(at::kFloat) * weight.scales.to(at::kFloat).unsqueeze(1);
}

at::Tensor rfl_torch::int8_linear(const at::Tensor &x, const int8_weight &weight,
				  const optional_tensor &bias)
{
#if TORCH_AT_LEAST(2, 3)
	const at::Tensor rows = x.reshape({ -1, x.size(-1) });
	auto sizes = x.sizes().vec();
	at::Tensor y = at::_weight_int8pack_mm(rows, weight.values, weight.scales);

	if (bias)
		y.add_(*bias);
	sizes.back() = y.size(-1);
	return y.view(sizes);
#else
	(void)x;
	(void)weight;
	(void)bias;
	throw failure(RFL_EUNSUPPORTED, "int8 weights"); // refused by open
#endif
}

// ------------------------------------------------------------------ the step

enum rfl_rc rfl_torch__generate(rfl_engine *e, const rfl_batch *batch, int64_t past, rfl_err *err)
{
	return guarded("generate", err, [&] {
		const int64_t tokens = e->net->nodes[0].shape.dim[0];

		if (!e->caches() || e->mode != RFL_ENGINE_EVAL)
			throw failure(RFL_EINVAL, "generate needs a cache and evaluation mode");
		if (past < 0 || past + tokens > e->config.cache_tokens)
			throw failure(RFL_EINVAL,
				      "%lld tokens after %lld do not fit into a cache "
				      "of %lld",
				      static_cast<long long>(tokens), static_cast<long long>(past),
				      static_cast<long long>(e->config.cache_tokens));
		if (!batch && (tokens != 1 || !e->next.defined()))
			throw failure(RFL_EINVAL, "there are no tokens to continue with");
		e->forget_step();
		e->mark_forward(0);
		e->past = past;
		infer(*e, batch ? take_batch(*e, *batch).input : e->next);
		e->next = about("argmax", [&] { return e->logits.argmax(-1); });
	});
}
