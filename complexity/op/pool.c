/*
 * pool.c - maximum, average and adaptive average pooling, and reductions (mean, sum, maximum).
 *
 * Maximum over k = kh * kw taps, including padding: k - 1 compares per output; dgrad adds each
 * gradient to the maximal element, one addition per output.
 *
 * Average over a total of t taps in all windows: forward t - outputs additions and one division per
 * output; dgrad one division per output and t additions. Windows have k taps, or only those inside
 * the image if the average excludes padding.
 *
 * Adaptive average: output o of `out` covers the inputs from floor(o * in / out) to ceil((o + 1) *
 * in / out), as in PyTorch: in + out - gcd(in, out) taps along an axis; otherwise as for averages.
 *
 * In training, the maximum also keeps its position: unfused an int64 index per output (as in
 * PyTorch), fused one byte (the position in the window).
 */
#include "complexity/op/parts.h"

static void windows_of(const struct rfl_pool *a, struct rfl_window w[2])
{
	w[0] = (struct rfl_window){ a->kernel_h, a->stride_h, a->pad_h, 1, a->ceil_mode };
	w[1] = (struct rfl_window){ a->kernel_w, a->stride_w, a->pad_w, 1, a->ceil_mode };
}

static enum rfl_rc window_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	struct rfl_window w[2];

	windows_of(&node->attr.pool, w);
	/* As in PyTorch; with more padding, a window could contain only padding. */
	for (int i = 0; i < 2; i++)
		if (w[i].pad > w[i].kernel / 2)
			return rfl_fail(err, RFL_EINVAL, 0,
					"padding %lld is too large for a pooling kernel of %lld; "
					"use at most half the kernel",
					(long long)w[i].pad, (long long)w[i].kernel);
	return rfl_window_image(w, in, in->dim[0], out, err);
}

static void pool_traffic(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t index_bytes)
{
	int64_t v = c->value_bytes;

	rfl_cost_move(c, &t[RFL_PASS_FORWARD], c->in, v, c->out, v);
	if (c->options->training)
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, index_bytes);
	if (c->needs_dgrad)
		rfl_cost_move(c, &t[RFL_PASS_DGRAD], c->out, v + index_bytes, c->in, v);
}

static void max_pool_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_pool *a = &c->node->attr.pool;

	cost->elementwise[RFL_PASS_FORWARD].compare =
		rfl_cost_mul(c, c->out, rfl_cost_mul(c, a->kernel_h, a->kernel_w) - 1);
	if (c->needs_dgrad)
		cost->elementwise[RFL_PASS_DGRAD].add = c->out;
	pool_traffic(c, cost->traffic[RFL_FUSION_UNFUSED], rfl_dtype_bytes(RFL_DTYPE_I64));
	pool_traffic(c, cost->traffic[RFL_FUSION_FUSED], 1);
}

static enum rfl_rc adaptive_infer(const struct rfl_node *node, const struct rfl_shape *in,
				  struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_adaptive_pool *a = &node->attr.adaptive_pool;

	if (a->out_h < 1 || a->out_w < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "output size %lldx%lld must be at least 1x1",
				(long long)a->out_h, (long long)a->out_w);
	*out = (struct rfl_shape){ .ndim = 3, .dim = { in->dim[0], a->out_h, a->out_w } };
	return RFL_OK;
}

/* Taps of all windows along one axis. The starts floor(o in / out) sum to ((in - 1) (out - 1) + gcd
 * - 1) / 2, and the ends mirror them. */
static int64_t adaptive_taps(int64_t in, int64_t out)
{
	int64_t a = in, gcd = out;

	while (a) {
		int64_t rest = gcd % a;

		gcd = a;
		a = rest;
	}
	return in + out - gcd;
}

/* The cost of averages over a total of `taps` inputs. */
static void average_cost(struct rfl_cost_context *c, int64_t taps, struct rfl_cost *cost)
{
	cost->elementwise[RFL_PASS_FORWARD].add = taps - c->out;
	cost->elementwise[RFL_PASS_FORWARD].special = c->out;
	if (c->needs_dgrad) {
		cost->elementwise[RFL_PASS_DGRAD].add = taps;
		cost->elementwise[RFL_PASS_DGRAD].special = c->out;
	}
	pool_traffic(c, cost->traffic[RFL_FUSION_UNFUSED], 0);
	pool_traffic(c, cost->traffic[RFL_FUSION_FUSED], 0);
}

static void avg_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_pool *a = &c->node->attr.pool;
	const struct rfl_shape *out = &c->node->shape;
	struct rfl_window w[2];
	int64_t taps = rfl_cost_mul(c, c->out, rfl_cost_mul(c, a->kernel_h, a->kernel_w));

	if (c->overflow)
		return; /* the taps inside the image are checked only through this total */
	windows_of(a, w);
	if (a->exclude_padding)
		taps = rfl_cost_mul(
			c, c->out / out->dim[1] / out->dim[2],
			rfl_window_real_taps(&w[0], c->in_shape.dim[1], out->dim[1]) *
				rfl_window_real_taps(&w[1], c->in_shape.dim[2], out->dim[2]));
	average_cost(c, taps, cost);
}

static void adaptive_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_shape *out = &c->node->shape;
	int64_t taps = rfl_cost_size(c, adaptive_taps(c->in_shape.dim[1], out->dim[1]),
				     adaptive_taps(c->in_shape.dim[2], out->dim[2]));

	average_cost(c, rfl_cost_mul(c, rfl_cost_size(c, c->batch, out->dim[0]), taps), cost);
}

/* Save the positions, and for a pooling the input. */
static void max_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (!c->needs_dgrad)
		return;
	if (c->node->op == RFL_OP_MAX_POOL)
		rfl_op_save_operand(c, 0, out);
	rfl_op_save(c, RFL_SAVED_INDICES, c->out, rfl_dtype_bytes(RFL_DTYPE_I64), out);
}

/* PyTorch computes a single output as a mean, which saves nothing. */
static void adaptive_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	const struct rfl_adaptive_pool *a = &c->node->attr.adaptive_pool;

	if (a->out_h != 1 || a->out_w != 1)
		rfl_op_saves_input(c, out);
}

/* Without a gradient, the positions are still computed, then dropped. */
static void max_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (!c->needs_dgrad || !c->options->training)
		out->forward = rfl_cost_mul(c, c->out, rfl_dtype_bytes(RFL_DTYPE_I64));
}

#define WINDOW                                                              \
	RFL_OP_ATTR_PAIR(pool, kernel, .required = true, .min = 1),         \
		RFL_OP_ATTR_PAIR(pool, stride, .required = true, .min = 1), \
		RFL_OP_ATTR_PAIR(pool, pad, .def = 0),                      \
		RFL_OP_ATTR(BOOL, pool, ceil_mode, .def = 0)

RFL_OP(max_pool, "MaxPool2d", "MaxPool2DWithIndicesBackward0", RFL_OP_READS_IMAGE,
       .infer = window_infer, .cost = max_pool_cost, .saved = max_saved, .scratch = max_scratch,
       RFL_OP_ATTRS(WINDOW));
RFL_OP(avg_pool, "AvgPool2d", "AvgPool2DBackward0", RFL_OP_READS_IMAGE, .infer = window_infer,
       .cost = avg_cost, .saved = rfl_op_saves_input,
       RFL_OP_ATTRS(WINDOW, RFL_OP_ATTR(BOOL, pool, exclude_padding, .def = 0)));
RFL_OP(adaptive_avg_pool, "AdaptiveAvgPool2d", "AdaptiveAvgPool2DBackward0", RFL_OP_READS_IMAGE,
       .infer = adaptive_infer, .cost = adaptive_cost, .saved = adaptive_saved,
       RFL_OP_ATTRS(RFL_OP_ATTR_PAIR(adaptive_pool, out, .required = true, .min = 1)));

/*
 * Reductions from n elements to m. Forward: sum n - m add; mean n - m add and m special (division);
 * maximum n - m compare. dgrad: a sum passes dY to every term, free; a mean divides it first, m
 * special; a maximum passes it to the maximal element. The gradient of a sum moves nothing (PyTorch
 * expands dY in place); that of a maximum writes zeros, then the m gradients.
 */

static enum rfl_rc reduce_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_reduce *a = &node->attr.reduce;
	struct rfl_shape kept = { 0 };

	if (a->first < 0 || a->count < 1 || a->count > in->ndim - a->first)
		return rfl_fail(err, RFL_EINVAL, 0,
				"cannot reduce %lld dimensions starting at %lld; the input has %d",
				(long long)a->count, (long long)a->first, in->ndim);
	for (int i = 0; i < in->ndim; i++) {
		bool reduced = i >= a->first && i < a->first + a->count;

		if (!reduced || a->keepdim)
			kept.dim[kept.ndim++] = reduced ? 1 : in->dim[i];
	}
	*out = kept;
	return RFL_OK;
}

static void reduce_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	struct rfl_elementwise *e = cost->elementwise;
	int64_t v = c->value_bytes, place = rfl_dtype_bytes(RFL_DTYPE_I64);

	rfl_cost_move(c, &u[RFL_PASS_FORWARD], c->in, v, c->out, v);
	if (c->node->op == RFL_OP_MAX) {
		e[RFL_PASS_FORWARD].compare = c->in - c->out;
		rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, place);
		if (c->needs_dgrad) {
			rfl_cost_move(c, &u[RFL_PASS_DGRAD], c->out, v + place, c->in, v);
			rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->out, v);
		}
	} else {
		e[RFL_PASS_FORWARD].add = c->in - c->out;
	}
	if (c->node->op == RFL_OP_MEAN) {
		e[RFL_PASS_FORWARD].special = c->out;
		if (c->needs_dgrad) {
			e[RFL_PASS_DGRAD].special = c->out;
			rfl_cost_move(c, &u[RFL_PASS_DGRAD], c->out, v, c->in, v);
		}
	}
	rfl_op_fuse_not(cost);
}

#define REDUCE(name_, module_, autograd_, ...)                                        \
	RFL_OP(name_, module_, autograd_, .infer = reduce_infer, .cost = reduce_cost, \
	       RFL_OP_ATTRS(RFL_OP_ATTR(INT, reduce, first, .required = true),        \
			    RFL_OP_ATTR(INT, reduce, count, .def = 1, .min = 1),      \
			    RFL_OP_ATTR(BOOL, reduce, keepdim, .def = 0)),            \
	       __VA_ARGS__)

REDUCE(mean, "Mean", "MeanBackward1", .passes = 0);
REDUCE(sum, "Sum", "SumBackward1", .autocast = RFL_AUTOCAST_F32, .passes = 1);
REDUCE(max, "Max", "MaxBackward0", .saved = max_saved, .scratch = max_scratch);
