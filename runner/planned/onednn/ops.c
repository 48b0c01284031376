/* ops.c - the operations of a plan: oneDNN's primitives, and our own loops where it has none or is
 * slower (docs/internals/engines.md). */
#include <string.h>

#include "runner/planned/onednn/onednn.h"

static const struct rfl_plan_step *step_at(const struct rfl_session *s, int step)
{
	return &s->plan->steps[step];
}

static const struct rfl_node *node_of(const struct rfl_session *s, const struct rfl_plan_step *at)
{
	return &s->plan->net->nodes[at->node];
}

static void *data(const struct rfl_session *s, const struct rfl_plan_step *at,
		  enum rfl_plan_slot slot)
{
	return at->buffer[slot] < 0 ? NULL : s->block + s->plan->buffers[at->buffer[slot]].offset;
}

/* Elements of a buffer of activations. */
static int64_t count(const struct rfl_session *s, const struct rfl_plan_step *at,
		     enum rfl_plan_slot slot)
{
	return rfl_plan_size(s->plan, at, slot) / (int64_t)rfl_host_size(s->b->type);
}

static dnnl_prop_kind_t forward_kind(const struct rfl_session *s)
{
	return s->plan->setup.training ? dnnl_forward_training : dnnl_forward_inference;
}

static const dnnl_memory_desc_t *wanted(const struct rfl_session *s, int step, dnnl_query_t what)
{
	return dnnl_primitive_desc_query_md(s->tasks[step].chosen, what, 0);
}

/* ---- convolution and linear ---- */

static int weight_of(const struct rfl_session *s, const struct rfl_plan_step *at)
{
	return rfl_plan_param(s->plan->net, at->node,
			      at->op == RFL_PLAN_CONV ? RFL_PARAM_CONV_WEIGHT
						      : RFL_PARAM_LINEAR_WEIGHT);
}

static int bias_of(const struct rfl_session *s, const struct rfl_plan_step *at)
{
	return rfl_plan_param(s->plan->net, at->node,
			      at->op == RFL_PLAN_CONV ? RFL_PARAM_CONV_BIAS
						      : RFL_PARAM_LINEAR_BIAS);
}

/* The layouts with which a weighted operation is created. */
struct weighted {
	dnnl_memory_desc_t x, w, dw, b, y;
	const dnnl_memory_desc_t *bias; /* NULL: none */
};

static void describe(const struct rfl_session *s, const struct rfl_plan_step *at,
		     struct weighted *ret)
{
	const struct rfl_backend *b = s->b;
	const struct weight *w = &b->weights[weight_of(s, at)];
	const int bias = bias_of(s, at);

	ret->x = rfl_dnnl__value(s, node_of(s, at)->input[0]);
	ret->y = rfl_dnnl__value(s, at->node);
	ret->w = rfl_dnnl__any(&w->plain, rfl_dnnl__type(b));
	/* the first plan for training is free to choose */
	ret->dw = b->generation > 1 ? w->layout : rfl_dnnl__any(&w->plain, dnnl_f32);
	if (bias >= 0)
		ret->b = b->weights[bias].plain;
	ret->bias = bias >= 0 ? &ret->b : NULL;
}

static dnnl_status_t describe_conv(const struct rfl_session *s, const struct rfl_plan_step *at,
				   const struct weighted *w, dnnl_convolution_desc_t *ret)
{
	const struct rfl_plan_window g = rfl_plan_window(s->plan, at->node);
	const int64_t dilates[] = { g.dilation[0] - 1, g.dilation[1] - 1 };

	switch (at->pass) {
	case RFL_PLAN_FORWARD:
		return dnnl_dilated_convolution_forward_desc_init(
			ret, forward_kind(s), dnnl_convolution_direct, &w->x, &w->w, w->bias, &w->y,
			g.stride, dilates, g.before, g.after);
	case RFL_PLAN_DGRAD:
		return dnnl_dilated_convolution_backward_data_desc_init(
			ret, dnnl_convolution_direct, &w->x, &w->w, &w->y, g.stride, dilates,
			g.before, g.after);
	default:
		return dnnl_dilated_convolution_backward_weights_desc_init(
			ret, dnnl_convolution_direct, &w->x, &w->dw, w->bias, &w->y, g.stride,
			dilates, g.before, g.after);
	}
}

static dnnl_status_t describe_linear(const struct rfl_session *s, const struct rfl_plan_step *at,
				     const struct weighted *w, dnnl_inner_product_desc_t *ret)
{
	switch (at->pass) {
	case RFL_PLAN_FORWARD:
		return dnnl_inner_product_forward_desc_init(ret, forward_kind(s), &w->x, &w->w,
							    w->bias, &w->y);
	case RFL_PLAN_DGRAD:
		return dnnl_inner_product_backward_data_desc_init(ret, &w->x, &w->w, &w->y);
	default:
		return dnnl_inner_product_backward_weights_desc_init(ret, &w->x, &w->dw, w->bias,
								     &w->y);
	}
}

static enum rfl_rc weighted_choose(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *at = step_at(s, step);
	const bool relu = at->pass == RFL_PLAN_FORWARD && at->activation == RFL_PLAN_RELU;
	union {
		dnnl_convolution_desc_t conv;
		dnnl_inner_product_desc_t linear;
	} desc;
	struct weighted w;
	dnnl_status_t st;
	enum rfl_rc rc;

	describe(s, at, &w);
	st = at->op == RFL_PLAN_CONV ? describe_conv(s, at, &w, &desc.conv)
				     : describe_linear(s, at, &w, &desc.linear);
	rc = rfl_dnnl__check(st, s->plan->net, at->node, rfl_plan_op_names[at->op], err);
	return rc == RFL_OK ? rfl_dnnl__choose(s, step, &desc, rfl_dnnl__attributes(relu), err)
			    : rc;
}

static enum rfl_rc weighted_make(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *at = step_at(s, step);
	const int bias = bias_of(s, at);
	struct weighted w;
	struct argument weight;
	enum rfl_rc rc = RFL_OK;

	describe(s, at, &w);
	if (at->pass != RFL_PLAN_WGRAD)
		rc = rfl_dnnl__weight(s, step, weight_of(s, at),
				      wanted(s, step, dnnl_query_weights_md), &weight, err);
	if (rc == RFL_OK)
		rc = rfl_dnnl__add(s, step, err);
	if (rc != RFL_OK)
		return rc;
	switch (at->pass) {
	case RFL_PLAN_FORWARD:
		rfl_dnnl__argument(s, step, DNNL_ARG_SRC, &w.x, RFL_PLAN_X);
		rfl_dnnl__take(s, step, &weight);
		if (bias >= 0)
			rfl_dnnl__parameter(s, step, DNNL_ARG_BIAS, bias);
		rfl_dnnl__argument(s, step, DNNL_ARG_DST, &w.y, RFL_PLAN_Y);
		break;
	case RFL_PLAN_DGRAD:
		rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_DST, &w.y, RFL_PLAN_DY);
		rfl_dnnl__take(s, step, &weight);
		rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_SRC, &w.x, RFL_PLAN_DX);
		break;
	default:
		rfl_dnnl__argument(s, step, DNNL_ARG_SRC, &w.x, RFL_PLAN_X);
		rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_DST, &w.y, RFL_PLAN_DY);
		rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_WEIGHTS,
				   wanted(s, step, dnnl_query_diff_weights_md), RFL_PLAN_DWEIGHT);
		if (bias >= 0)
			rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_BIAS, &w.b, RFL_PLAN_DBIAS);
		break;
	}
	return RFL_OK;
}

/* ---- pooling ---- */

/* oneDNN has no windows of different sizes, and divides the sum of a window that ends outside the
 * padded image by its whole size. */
static bool is_own_pool(const struct rfl_plan_window *g)
{
	return g->unequal ||
	       (!g->maximum && (g->after[0] > g->before[0] || g->after[1] > g->before[1]));
}

static enum rfl_rc pool_choose(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *at = step_at(s, step);
	const struct rfl_plan_window g = rfl_plan_window(s->plan, at->node);
	const dnnl_alg_kind_t kind = g.maximum           ? dnnl_pooling_max
				     : g.exclude_padding ? dnnl_pooling_avg_exclude_padding
							 : dnnl_pooling_avg_include_padding;
	const struct rfl_shape *out = &node_of(s, at)->shape;
	const dnnl_memory_desc_t x = rfl_dnnl__value(s, node_of(s, at)->input[0]);
	const int64_t dims[] = { s->plan->setup.batch, out->dim[0],
				 out->ndim == 3 ? out->dim[1] : 1,
				 out->ndim == 3 ? out->dim[2] : 1 };
	dnnl_memory_desc_t y;
	dnnl_pooling_desc_t desc;
	dnnl_status_t st;
	enum rfl_rc rc;

	if (is_own_pool(&g))
		return RFL_OK;
	(void)dnnl_memory_desc_init_by_tag(&y, 4, dims, rfl_dnnl__type(s->b), dnnl_acdb);
	st = at->pass == RFL_PLAN_FORWARD
		     ? dnnl_pooling_forward_desc_init(&desc, forward_kind(s), kind, &x, &y,
						      g.stride, g.kernel, g.before, g.after)
		     : dnnl_pooling_backward_desc_init(&desc, kind, &x, &y, g.stride, g.kernel,
						       g.before, g.after);
	rc = rfl_dnnl__check(st, s->plan->net, at->node, "pooling", err);
	return rc == RFL_OK ? rfl_dnnl__choose(s, step, &desc, rfl_dnnl__attributes(false), err)
			    : rc;
}

static enum rfl_rc pool_make(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *at = step_at(s, step);
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const dnnl_memory_desc_t *saved;
	enum rfl_rc rc;

	if (!s->tasks[step].chosen)
		return RFL_OK;
	saved = wanted(s, step, dnnl_query_workspace_md);
	if (saved && forward)
		rfl_plan_ask(s->plan, step, RFL_PLAN_SAVED,
			     (int64_t)dnnl_memory_desc_get_size(saved));
	rc = rfl_dnnl__add(s, step, err);
	if (rc != RFL_OK)
		return rc;
	if (forward) {
		rfl_dnnl__argument(s, step, DNNL_ARG_SRC, wanted(s, step, dnnl_query_src_md),
				   RFL_PLAN_X);
		rfl_dnnl__argument(s, step, DNNL_ARG_DST, wanted(s, step, dnnl_query_dst_md),
				   RFL_PLAN_Y);
	} else {
		rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_DST,
				   wanted(s, step, dnnl_query_diff_dst_md), RFL_PLAN_DY);
		rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_SRC,
				   wanted(s, step, dnnl_query_diff_src_md), RFL_PLAN_DX);
	}
	if (saved && dnnl_memory_desc_get_size(saved) > 0)
		rfl_dnnl__argument(s, step, DNNL_ARG_WORKSPACE, saved, RFL_PLAN_SAVED);
	return RFL_OK;
}

static void pool_run(struct rfl_session *s, const struct rfl_plan_step *at,
		     struct rfl_session_call *call)
{
	const struct rfl_plan_window g = rfl_plan_window(s->plan, at->node);
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const struct rfl_node *node = node_of(s, at);
	const int64_t *in = s->plan->net->nodes[node->input[0]].shape.dim, *out = node->shape.dim;
	const int64_t used = g.unequal ? 0 : 1;
	const struct rfl_host_average k = {
		.type = s->b->type,
		.samples = s->plan->setup.batch,
		.columns = in[0],
		.in = { in[1], in[2] },
		.out = { out[1], out[2] },
		.kernel = { used * g.kernel[0], used * g.kernel[1] },
		.stride = { g.stride[0], g.stride[1] },
		.pad = { g.before[0], g.before[1] },
		.exclude_padding = g.exclude_padding,
		.x = data(s, at, forward ? RFL_PLAN_X : RFL_PLAN_DY),
		.y = data(s, at, forward ? RFL_PLAN_Y : RFL_PLAN_DX),
	};

	(void)call;
	if (!is_own_pool(&g))
		return;
	if (forward)
		rfl_host_average_pool(&k);
	else
		rfl_host_average_pool_gradient(&k);
}

/* ---- activations ---- */

/* oneDNN's name of an activation; undefined: our own loop. */
static dnnl_alg_kind_t kind_of(const struct rfl_node *node, float *alpha)
{
	*alpha = 0;
	switch (node->op) {
	case RFL_OP_RELU:
		return dnnl_eltwise_relu;
	case RFL_OP_RELU6:
		*alpha = 6;
		return dnnl_eltwise_bounded_relu;
	case RFL_OP_SIGMOID:
		return dnnl_eltwise_logistic_use_dst_for_bwd;
	case RFL_OP_TANH:
		return dnnl_eltwise_tanh_use_dst_for_bwd;
	case RFL_OP_SILU:
		*alpha = 1;
		return dnnl_eltwise_swish;
	case RFL_OP_MISH:
		return dnnl_eltwise_mish;
	case RFL_OP_GELU:
		return node->attr.gelu.tanh ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf;
	case RFL_OP_HARD_SWISH:
		return dnnl_eltwise_hardswish;
	default:
		return dnnl_alg_kind_undef;
	}
}

/* The gradient of ReLU and ReLU6 is our own loop, as for a fused one. */
static bool is_own(const struct rfl_session *s, const struct rfl_plan_step *at)
{
	float alpha;

	return (at->pass == RFL_PLAN_DGRAD && at->activation != RFL_PLAN_NONE) ||
	       kind_of(node_of(s, at), &alpha) == dnnl_alg_kind_undef;
}

static enum rfl_rc activation_choose(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *at = step_at(s, step);
	const dnnl_memory_desc_t x = rfl_dnnl__value(s, at->node);
	float alpha;
	const dnnl_alg_kind_t kind = kind_of(node_of(s, at), &alpha);
	dnnl_eltwise_desc_t desc;
	dnnl_status_t st;
	enum rfl_rc rc;

	if (is_own(s, at))
		return RFL_OK;
	st = at->pass == RFL_PLAN_FORWARD
		     ? dnnl_eltwise_forward_desc_init(&desc, forward_kind(s), kind, &x, alpha, 0)
		     : dnnl_eltwise_backward_desc_init(&desc, kind, &x, &x, alpha, 0);
	rc = rfl_dnnl__check(st, s->plan->net, at->node, "activation", err);
	return rc == RFL_OK ? rfl_dnnl__choose(s, step, &desc, rfl_dnnl__attributes(false), err)
			    : rc;
}

static enum rfl_rc activation_make(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *at = step_at(s, step);
	const dnnl_memory_desc_t x = rfl_dnnl__value(s, at->node);
	enum rfl_rc rc;

	if (is_own(s, at))
		return RFL_OK;
	rc = rfl_dnnl__add(s, step, err);
	if (rc != RFL_OK)
		return rc;
	if (at->pass == RFL_PLAN_FORWARD) {
		rfl_dnnl__argument(s, step, DNNL_ARG_SRC, &x, RFL_PLAN_X);
		rfl_dnnl__argument(s, step, DNNL_ARG_DST, &x, RFL_PLAN_Y);
		return RFL_OK;
	}
	if (at->buffer[RFL_PLAN_Y] >= 0)
		rfl_dnnl__argument(s, step, DNNL_ARG_DST, &x, RFL_PLAN_Y);
	else
		rfl_dnnl__argument(s, step, DNNL_ARG_SRC, &x, RFL_PLAN_X);
	rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_DST, &x, RFL_PLAN_DY);
	rfl_dnnl__argument(s, step, DNNL_ARG_DIFF_SRC, &x, RFL_PLAN_DX);
	return RFL_OK;
}

static void activation_run(struct rfl_session *s, const struct rfl_plan_step *at,
			   struct rfl_session_call *call)
{
	const enum rfl_host_type type = s->b->type;
	const struct rfl_node *node = node_of(s, at);
	void *x = data(s, at, RFL_PLAN_X), *y = data(s, at, RFL_PLAN_Y),
	     *dy = data(s, at, RFL_PLAN_DY), *dx = data(s, at, RFL_PLAN_DX);

	(void)call;
	if (!is_own(s, at))
		return;
	if (at->pass == RFL_PLAN_FORWARD && node->op == RFL_OP_AFFINE) {
		rfl_host_affine(type, count(s, at, RFL_PLAN_Y), x, (float)node->attr.affine.scale,
				(float)node->attr.affine.shift, y);
	} else if (at->pass == RFL_PLAN_FORWARD) {
		rfl_host_hard_sigmoid(type, count(s, at, RFL_PLAN_Y), x, y);
	} else if (at->activation != RFL_PLAN_NONE) {
		if (dx != dy)
			memcpy(dx, dy, (size_t)rfl_plan_size(s->plan, at, RFL_PLAN_DX));
		rfl_host_relu_gradient(
			type, at->activation == RFL_PLAN_RELU ? RFL_HOST_RELU : RFL_HOST_RELU6,
			count(s, at, RFL_PLAN_DX), y, dx);
	} else if (node->op == RFL_OP_AFFINE) {
		rfl_host_affine(type, count(s, at, RFL_PLAN_DX), dy, (float)node->attr.affine.scale,
				0, dx);
	} else {
		rfl_host_hard_sigmoid_gradient(type, count(s, at, RFL_PLAN_DX), x, dy, dx);
	}
}

/* ---- batch norm ---- */

static enum rfl_rc norm_make(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *at = step_at(s, step);

	(void)err;
	(void)rfl_dnnl__scratch(
		s, step,
		(int64_t)rfl_host_norm_scratch((int)node_of(s, at)->attr.batch_norm.channels,
					       s->b->threads));
	return RFL_OK;
}

static void norm_run(struct rfl_session *s, const struct rfl_plan_step *at,
		     struct rfl_session_call *call)
{
	const struct rfl_net *net = s->plan->net;
	const struct rfl_batch_norm *bn = &node_of(s, at)->attr.batch_norm;
	const bool running = !s->plan->setup.training || s->plan->setup.frozen;
	float *const gamma = rfl_dnnl__data(
		s->b, rfl_plan_param(net, at->node, RFL_PARAM_NORM_WEIGHT), RFL_PART_VALUE);
	int64_t rows, columns;

	(void)call;
	rfl_plan_matrix(s->plan, at->node, &rows, &columns);
	if (at->pass == RFL_PLAN_FORWARD) {
		const struct rfl_host_norm k = {
			.type = s->b->type,
			.activation = (enum rfl_host_activation)at->activation,
			.rows = rows,
			.columns = (int)columns,
			.running = running,
			.eps = (float)bn->eps,
			.momentum = (float)bn->momentum,
			.x = data(s, at, RFL_PLAN_X),
			.residual = data(s, at, RFL_PLAN_OTHER),
			.y = data(s, at, RFL_PLAN_Y),
			.mask = data(s, at, RFL_PLAN_MASK),
			.gamma = gamma,
			.beta = rfl_dnnl__data(s->b,
					       rfl_plan_param(net, at->node, RFL_PARAM_NORM_BIAS),
					       RFL_PART_VALUE),
			.mean = data(s, at, RFL_PLAN_MEAN),
			.inverse = data(s, at, RFL_PLAN_INVERSE),
			.running_mean = rfl_dnnl__data(
				s->b, rfl_plan_param(net, at->node, RFL_PARAM_RUNNING_MEAN),
				RFL_PART_VALUE),
			.running_variance = rfl_dnnl__data(
				s->b, rfl_plan_param(net, at->node, RFL_PARAM_RUNNING_VAR),
				RFL_PART_VALUE),
			.scratch = data(s, at, RFL_PLAN_SCRATCH),
		};

		rfl_host_norm(&k);
	} else {
		const struct rfl_host_norm_gradient k = {
			.type = s->b->type,
			.rows = rows,
			.columns = (int)columns,
			.running = running,
			.x = data(s, at, RFL_PLAN_X),
			.dy = data(s, at, RFL_PLAN_DY),
			.dy2 = data(s, at, RFL_PLAN_DY2),
			.mask = data(s, at, RFL_PLAN_MASK),
			.g = data(s, at, RFL_PLAN_DOTHER),
			.dx = data(s, at, RFL_PLAN_DX),
			.gamma = gamma,
			.mean = data(s, at, RFL_PLAN_MEAN),
			.inverse = data(s, at, RFL_PLAN_INVERSE),
			.dgamma = data(s, at, RFL_PLAN_DWEIGHT),
			.dbeta = data(s, at, RFL_PLAN_DBIAS),
			.scratch = data(s, at, RFL_PLAN_SCRATCH),
		};

		rfl_host_norm_gradient(&k);
	}
}

/* ---- sums, products, copies ---- */

static void input_run(struct rfl_session *s, const struct rfl_plan_step *at,
		      struct rfl_session_call *call)
{
	const int64_t *dim = node_of(s, at)->shape.dim;

	s->b->totals.loss = 0;
	s->b->update = call->update;
	rfl_host_input(call->batch, dim[0], dim[1], dim[2], s->b->type, data(s, at, RFL_PLAN_Y));
}

static void add_run(struct rfl_session *s, const struct rfl_plan_step *at,
		    struct rfl_session_call *call)
{
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const enum rfl_plan_slot to = forward ? RFL_PLAN_Y : RFL_PLAN_DX;

	(void)call;
	rfl_host_add(s->b->type, count(s, at, to), data(s, at, forward ? RFL_PLAN_X : RFL_PLAN_DY),
		     data(s, at, forward ? RFL_PLAN_OTHER : RFL_PLAN_DY2), data(s, at, to));
}

static void multiply_run(struct rfl_session *s, const struct rfl_plan_step *at,
			 struct rfl_session_call *call)
{
	const enum rfl_host_type type = s->b->type;
	const int64_t n = count(s, at, RFL_PLAN_X), samples = s->plan->setup.batch;
	const bool equal = n == count(s, at, RFL_PLAN_OTHER);
	const int64_t columns = count(s, at, RFL_PLAN_OTHER) / samples,
		      rows = n / samples / columns;
	const void *x = data(s, at, RFL_PLAN_X), *other = data(s, at, RFL_PLAN_OTHER),
		   *dy = data(s, at, RFL_PLAN_DY);
	void *dx = data(s, at, RFL_PLAN_DX), *dother = data(s, at, RFL_PLAN_DOTHER);

	(void)call;
	if (at->pass == RFL_PLAN_FORWARD) {
		if (equal)
			rfl_host_multiply(type, n, x, other, data(s, at, RFL_PLAN_Y));
		else
			rfl_host_scale_rows(type, samples, rows, (int)columns, x, other,
					    data(s, at, RFL_PLAN_Y));
		return;
	}
	/* first the gradient of the factor: the other may lie over dy */
	if (dother && equal)
		rfl_host_multiply(type, n, x, dy, dother);
	else if (dother)
		rfl_host_scale_rows_gradient(type, samples, rows, (int)columns, x, dy, dother);
	if (dx && equal)
		rfl_host_multiply(type, n, other, dy, dx);
	else if (dx)
		rfl_host_scale_rows(type, samples, rows, (int)columns, dy, other, dx);
}

static void columns_run(struct rfl_session *s, const struct rfl_plan_step *at,
			struct rfl_session_call *call)
{
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const enum rfl_plan_slot in = forward ? RFL_PLAN_X : RFL_PLAN_DY,
				 out = forward ? RFL_PLAN_Y : RFL_PLAN_DX;
	int64_t rows, columns;

	(void)call;
	rfl_plan_matrix(s->plan, at->node, &rows, &columns);
	if (at->zero)
		memset(data(s, at, out), 0, (size_t)rfl_plan_size(s->plan, at, out));
	rfl_host_copy_columns(
		s->b->type, rows, at->columns,
		(struct rfl_host_columns){ data(s, at, out), count(s, at, out) / rows, at->to },
		(struct rfl_host_columns){ data(s, at, in), count(s, at, in) / rows, at->from },
		at->add);
}

static void shuffle_run(struct rfl_session *s, const struct rfl_plan_step *at,
			struct rfl_session_call *call)
{
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	int64_t rows, columns;

	(void)call;
	rfl_plan_matrix(s->plan, at->last, &rows, &columns);
	rfl_host_shuffle(s->b->type, rows, columns, at->groups,
			 data(s, at, forward ? RFL_PLAN_X : RFL_PLAN_DY),
			 data(s, at, forward ? RFL_PLAN_Y : RFL_PLAN_DX));
}

/* ---- dropout and loss ---- */

static void dropout_run(struct rfl_session *s, const struct rfl_plan_step *at,
			struct rfl_session_call *call)
{
	const double probability = node_of(s, at)->attr.dropout.probability;
	const int64_t units = rfl_plan_size(s->plan, at, RFL_PLAN_MASK);

	if (at->pass == RFL_PLAN_FORWARD)
		rfl_host_dropout(s->b->type, count(s, at, RFL_PLAN_Y), units, probability,
				 s->b->seed ^ (uint64_t)at->node << 32, call->counter,
				 data(s, at, RFL_PLAN_X), data(s, at, RFL_PLAN_MASK),
				 data(s, at, RFL_PLAN_Y));
	else
		rfl_host_dropout_gradient(s->b->type, count(s, at, RFL_PLAN_DX), units, probability,
					  data(s, at, RFL_PLAN_MASK), data(s, at, RFL_PLAN_DY),
					  data(s, at, RFL_PLAN_DX));
}

static void loss_run(struct rfl_session *s, const struct rfl_plan_step *at,
		     struct rfl_session_call *call)
{
	struct rfl_totals *const totals = &s->b->totals;
	const struct rfl_host_loss k = {
		.type = s->b->type,
		.rows = s->plan->setup.batch,
		.classes = s->plan->net->classes,
		.logits = data(s, at, RFL_PLAN_X),
		.labels = call->batch->labels,
		.gradient = data(s, at, RFL_PLAN_DX),
		.weight = at->weight,
	};

	int64_t correct;

	totals->loss += at->weight * rfl_host_cross_entropy(&k, &correct);
	if (at == &s->plan->steps[s->plan->nforward - 1]) { /* the net's output comes last */
		totals->score.rows += k.rows;
		totals->score.correct += correct;
		totals->score.loss += totals->loss * (double)k.rows;
	}
}

/* ---- the table ---- */

static const struct operation operations[] = {
	{ RFL_PLAN_INPUT, NULL, NULL, input_run },
	{ RFL_PLAN_CONV, weighted_choose, weighted_make, NULL },
	{ RFL_PLAN_LINEAR, weighted_choose, weighted_make, NULL },
	{ RFL_PLAN_NORM, NULL, norm_make, norm_run },
	{ RFL_PLAN_ACTIVATION, activation_choose, activation_make, activation_run },
	{ RFL_PLAN_ADD, NULL, NULL, add_run },
	{ RFL_PLAN_MULTIPLY, NULL, NULL, multiply_run },
	{ RFL_PLAN_POOL, pool_choose, pool_make, pool_run },
	{ RFL_PLAN_COLUMNS, NULL, NULL, columns_run },
	{ RFL_PLAN_SHUFFLE, NULL, NULL, shuffle_run },
	{ RFL_PLAN_DROPOUT, NULL, NULL, dropout_run },
	{ RFL_PLAN_LOSS, NULL, NULL, loss_run },
};

const struct operation *rfl_dnnl__operation(enum rfl_plan_op op)
{
	return &operations[op]; /* in the order of the enum */
}
