/*
 * pool.c - maximum, average and adaptive average pooling, and reductions (mean, sum, maximum).
 *
 * Adaptive average: output o of `out` covers the inputs from floor(o * in / out) to ceil((o + 1) *
 * in / out), as in PyTorch: in + out - gcd(in, out) taps along an axis. In training, a maximum also
 * keeps its position: unfused an int64 index per output (as in PyTorch), fused one byte (the
 * position in the window).
 */
#include "complexity/op/parts.h"

static void windows_of(const struct rfl_pool *a, struct rfl_window w[2])
{
	w[0] = (struct rfl_window){ a->kernel_h, a->stride_h, a->pad_h, 1, a->ceil_mode };
	w[1] = (struct rfl_window){ a->kernel_w, a->stride_w, a->pad_w, 1, a->ceil_mode };
}

static enum rfl_rc window_infer(struct rfl_op_shapes *s)
{
	struct rfl_window w[2];

	windows_of(&s->node->attr.pool, w);
	/* As in PyTorch; with more padding, a window could contain only padding. */
	for (int i = 0; i < 2; i++)
		if (w[i].pad > w[i].kernel / 2)
			return rfl_op_refuse(s,
					     "padding %lld is too large for a pooling kernel of "
					     "%lld; use at most half the kernel",
					     (long long)w[i].pad, (long long)w[i].kernel);
	return rfl_window_image(s, w, s->in->dim[0]);
}

static void pool_traffic(struct rfl_cost_context *c, enum rfl_fusion level, int64_t index_bytes)
{
	int64_t v = c->value_bytes, kept = c->options->training ? index_bytes : 0;

	rfl_op_move_at(c, level, FORWARD, c->in, v, c->out, v + kept);
	rfl_op_move_at(c, level, DGRAD, c->out, v + index_bytes, c->in, v);
}

static void max_pool_cost(struct rfl_cost_context *c)
{
	const struct rfl_pool *a = &c->node->attr.pool;
	int64_t taps = rfl_cost_mul(c, a->kernel_h, a->kernel_w);

	rfl_op_count(c, FORWARD, .compare = rfl_cost_mul(c, c->out, taps - 1));
	rfl_op_count(c, DGRAD, .add = c->out);
	pool_traffic(c, UNFUSED, rfl_dtype_bytes(RFL_DTYPE_I64));
	pool_traffic(c, FUSED, 1);
}

static enum rfl_rc adaptive_infer(struct rfl_op_shapes *s)
{
	const struct rfl_adaptive_pool *a = &s->node->attr.adaptive_pool;

	*s->out = (struct rfl_shape){ .ndim = 3, .dim = { s->in->dim[0], a->out_h, a->out_w } };
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
static void average_cost(struct rfl_cost_context *c, int64_t taps)
{
	rfl_op_count(c, FORWARD, .add = taps - c->out, .special = c->out);
	rfl_op_count(c, DGRAD, .add = taps, .special = c->out);
	pool_traffic(c, UNFUSED, 0);
	pool_traffic(c, FUSED, 0);
}

static void avg_cost(struct rfl_cost_context *c)
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
	average_cost(c, taps);
}

static void adaptive_cost(struct rfl_cost_context *c)
{
	const struct rfl_shape *out = &c->node->shape;
	int64_t taps = rfl_cost_size(c, adaptive_taps(c->in_shape.dim[1], out->dim[1]),
				     adaptive_taps(c->in_shape.dim[2], out->dim[2]));

	average_cost(c, rfl_cost_mul(c, rfl_cost_size(c, c->batch, out->dim[0]), taps));
}

/* Save the positions, and for a pooling the input. */
static void max_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (!c->needs_dgrad)
		return;
	if (c->node->op == RFL_OP_MAX_POOL)
		rfl_op_save_operand(c, 0, out);
	rfl_op_save(c, RFL_SAVED_CLASS_INDICES, c->out, rfl_dtype_bytes(RFL_DTYPE_I64), out);
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

/* The gradient of a sum moves nothing (PyTorch expands dY in place); that of a mean is divided
 * first; that of a maximum writes zeros, then the gradients. */

static enum rfl_rc reduce_infer(struct rfl_op_shapes *s)
{
	const struct rfl_reduce *a = &s->node->attr.reduce;

	if (a->count > s->in->ndim - a->first)
		return rfl_op_refuse(
			s, "cannot reduce %lld dimensions starting at %lld; the input has %d",
			(long long)a->count, (long long)a->first, s->in->ndim);
	*s->out = (struct rfl_shape){ 0 };
	for (int i = 0; i < s->in->ndim; i++) {
		bool reduced = i >= a->first && i < a->first + a->count;

		if (!reduced || a->keepdim)
			s->out->dim[s->out->ndim++] = reduced ? 1 : s->in->dim[i];
	}
	return RFL_OK;
}

static void reduce_cost(struct rfl_cost_context *c)
{
	const bool max = c->node->op == RFL_OP_MAX, mean = c->node->op == RFL_OP_MEAN;
	int64_t rest = c->in - c->out, v = c->value_bytes;
	int64_t place = max ? rfl_dtype_bytes(RFL_DTYPE_I64) : 0;

	rfl_op_count(c, FORWARD, .add = max ? 0 : rest, .compare = max ? rest : 0,
		     .special = mean ? c->out : 0);
	rfl_op_count(c, DGRAD, .special = mean ? c->out : 0);
	rfl_op_move(c, FORWARD, c->in, c->out);
	rfl_op_move_at(c, UNFUSED, FORWARD, 0, 0, c->out, place);
	if (max || mean)
		rfl_op_move_at(c, UNFUSED, DGRAD, c->out, v + place, c->in, v);
	if (max)
		rfl_op_move(c, DGRAD, 0, c->out);
	rfl_op_fuse_not(c);
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
