/*
 * pool.c - maximum, average and adaptive average pooling.
 *
 * Maximum over k = kh * kw taps, those in the padding included: k - 1 compares per output; dgrad
 * adds each gradient to the element that won, one addition per output.
 *
 * Average over t taps of all windows: forward t - outputs additions and one division per output;
 * dgrad one division per output and t additions. Windows have k taps; where the padding is left out
 * of the average, only those inside the image.
 *
 * Adaptive average: output o of `out` covers the inputs from floor(o * in / out) to
 * ceil((o + 1) * in / out), as in PyTorch: in + out - gcd(in, out) taps along an axis; then as the
 * average.
 *
 * Traffic: forward R X, W Y; dgrad R dY, W dX. In training the maximum also keeps where it was
 * found: an int64 index per output unfused (as PyTorch does), one byte fused (a position in the
 * window).
 */
#include "complexity/op/parts.h"

static struct rfl_window window_h(const struct rfl_pool *a)
{
	return (struct rfl_window){
		.kernel = a->kernel_h,
		.stride = a->stride_h,
		.pad = a->pad_h,
		.dilation = 1,
		.ceil_mode = a->ceil_mode,
	};
}

static struct rfl_window window_w(const struct rfl_pool *a)
{
	return (struct rfl_window){
		.kernel = a->kernel_w,
		.stride = a->stride_w,
		.pad = a->pad_w,
		.dilation = 1,
		.ceil_mode = a->ceil_mode,
	};
}

/* As PyTorch has it: more, and a window would see nothing but padding. */
static enum rfl_rc check_padding(const struct rfl_window *w, struct rfl_err *err)
{
	if (w->pad <= w->kernel / 2)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0,
			"padding %lld of a kernel of %lld: half of it is the most for a pool",
			(long long)w->pad, (long long)w->kernel);
}

static enum rfl_rc window_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	struct rfl_window h = window_h(&node->attr.pool), w = window_w(&node->attr.pool);
	enum rfl_rc rc = rfl_op_need_image(in, err);

	if (rc == RFL_OK)
		rc = check_padding(&h, err);
	if (rc == RFL_OK)
		rc = check_padding(&w, err);
	if (rc != RFL_OK)
		return rc;
	*out = *in;
	rc = rfl_window_positions(&h, in->dim[1], &out->dim[1], err);
	if (rc == RFL_OK)
		rc = rfl_window_positions(&w, in->dim[2], &out->dim[2], err);
	return rc;
}

static void pool_traffic(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t index_bytes)
{
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->options->training)
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, index_bytes);
	if (!c->needs_dgrad)
		return;
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->out, c->value_bytes + index_bytes);
	rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
}

static void max_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
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
	enum rfl_rc rc = rfl_op_need_image(in, err);

	if (rc != RFL_OK)
		return rc;
	if (a->out_h < 1 || a->out_w < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "output %lldx%lld is not a size",
				(long long)a->out_h, (long long)a->out_w);
	*out = (struct rfl_shape){ .ndim = 3, .dim = { in->dim[0], a->out_h, a->out_w } };
	return RFL_OK;
}

/* Taps of all windows along one axis. The starts floor(o in / out) add up to
 * ((in - 1) (out - 1) + gcd - 1) / 2, and the ends mirror them. */
static int64_t adaptive_taps(struct rfl_cost_context *c, int64_t in, int64_t out)
{
	int64_t a = in, gcd = out;

	while (a) {
		int64_t rest = gcd % a;

		gcd = a;
		a = rest;
	}
	return rfl_cost_add(c, in, out) - gcd;
}

/* Averages of `taps` inputs in all windows together. */
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
	struct rfl_window h = window_h(a), w = window_w(a);
	int64_t taps = rfl_cost_mul(c, c->out, rfl_cost_mul(c, a->kernel_h, a->kernel_w));

	if (c->overflow)
		return; /* the taps inside the image fit only where all of them do */
	if (a->exclude_padding)
		taps = rfl_cost_mul(
			c, c->out / out->dim[1] / out->dim[2],
			rfl_window_real_taps(&h, c->in_shape.dim[1], out->dim[1]) *
				rfl_window_real_taps(&w, c->in_shape.dim[2], out->dim[2]));
	average_cost(c, taps, cost);
}

static void adaptive_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_shape *out = &c->node->shape;
	int64_t planes = rfl_cost_mul(c, c->batch, out->dim[0]);
	int64_t taps =
		rfl_cost_mul(c, planes,
			     rfl_cost_mul(c, adaptive_taps(c, c->in_shape.dim[1], out->dim[1]),
					  adaptive_taps(c, c->in_shape.dim[2], out->dim[2])));

	average_cost(c, taps, cost);
}

static int max_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!c->needs_dgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_INDICES,
				 rfl_cost_mul(c, c->out, rfl_dtype_bytes(RFL_DTYPE_I64)), out,
				 rfl_op_save_operand(c, 0, out, 0));
}

/* PyTorch computes a single output as a mean, which needs nothing. */
static int adaptive_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	const struct rfl_adaptive_pool *a = &c->node->attr.adaptive_pool;

	return a->out_h == 1 && a->out_w == 1 ? 0 : rfl_op_saves_input(c, out);
}

/* Without a gradient the places are made all the same, and dropped. */
static void max_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (!c->needs_dgrad || !c->options->training)
		out->forward = rfl_cost_mul(c, c->out, rfl_dtype_bytes(RFL_DTYPE_I64));
}

/* The last one is the average's alone. */
static const struct rfl_op_attr window_attrs[] = {
	RFL_OP_ATTR_PAIR(pool, kernel, .required = true, .min = 1),
	RFL_OP_ATTR_PAIR(pool, stride, .required = true, .min = 1),
	RFL_OP_ATTR_PAIR(pool, pad, .def = 0),
	RFL_OP_ATTR(BOOL, pool, ceil_mode, .def = 0),
	RFL_OP_ATTR(BOOL, pool, exclude_padding, .def = 0),
};

static const struct rfl_op_attr adaptive_attrs[] = {
	RFL_OP_ATTR_PAIR(adaptive_pool, out, .required = true, .min = 1),
};

const struct rfl_op_info rfl_op_max_pool = {
	.name = "max_pool",
	.module = "MaxPool2d",
	.autograd = "MaxPool2DWithIndicesBackward0",
	.infer = window_infer,
	.cost = max_cost,
	.attrs = window_attrs,
	.nattrs = RFL_ARRAY_LEN(window_attrs) - 1,
	.saved = max_saved,
	.scratch = max_scratch,
};

const struct rfl_op_info rfl_op_adaptive_avg_pool = {
	.name = "adaptive_avg_pool",
	.module = "AdaptiveAvgPool2d",
	.autograd = "AdaptiveAvgPool2DBackward0",
	.infer = adaptive_infer,
	.cost = adaptive_cost,
	.attrs = adaptive_attrs,
	.nattrs = RFL_ARRAY_LEN(adaptive_attrs),
	.saved = adaptive_saved,
};

const struct rfl_op_info rfl_op_avg_pool = {
	.name = "avg_pool",
	.module = "AvgPool2d",
	.autograd = "AvgPool2DBackward0",
	.infer = window_infer,
	.cost = avg_cost,
	.attrs = window_attrs,
	.nattrs = RFL_ARRAY_LEN(window_attrs),
	.saved = rfl_op_saves_input,
};
