/* graph.c - convolutions as execution plans of cuDNN. */
#include "runner/planned/cuda/graph.h"

#include "runner/planned/cuda/descriptors.h"

static rfl_cudnn_descriptor window(struct rfl_making *m, const struct rfl_conv *c)
{
	const int type = RFL_CUDNN_DATA_FLOAT, mode = RFL_CUDNN_CROSS_CORRELATION;
	const int64_t dims = 2;
	rfl_cudnn_descriptor d = rfl_cudnn__make(m, RFL_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, RFL_CUDNN_TYPE_INT64, 1,
		       &dims);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, RFL_CUDNN_TYPE_DATA_TYPE, 1,
		       &type);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_CONV_MODE, RFL_CUDNN_TYPE_CONVOLUTION_MODE,
		       1, &mode);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, RFL_CUDNN_TYPE_INT64, 2,
		       c->pad);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, RFL_CUDNN_TYPE_INT64, 2,
		       c->pad);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_DILATIONS, RFL_CUDNN_TYPE_INT64, 2,
		       c->dilation);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, RFL_CUDNN_TYPE_INT64, 2,
		       c->stride);
	return rfl_cudnn__finish(m, d);
}

/* cuDNN's numbers for a pass; beta and the window follow alpha. */
static const struct direction {
	int operation, alpha, x, w, y;
} directions[RFL_PLAN_PASS_COUNT] = {
	[RFL_PLAN_FORWARD] = { RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
			       RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
			       RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
			       RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
			       RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y },
	[RFL_PLAN_DGRAD] = { RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY },
	[RFL_PLAN_WGRAD] = { RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
			     RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY },
};

static rfl_cudnn_descriptor convolution(struct rfl_making *m, const struct rfl_conv *c,
					rfl_cudnn_descriptor x, rfl_cudnn_descriptor w,
					rfl_cudnn_descriptor y)
{
	const struct direction *const a = &directions[c->pass];
	const float one = 1, zero = 0;
	rfl_cudnn_descriptor over = window(m, c), d = rfl_cudnn__make(m, a->operation);

	rfl_cudnn__set(m, d, a->alpha, RFL_CUDNN_TYPE_FLOAT, 1, &one);
	rfl_cudnn__set(m, d, a->alpha + 1, RFL_CUDNN_TYPE_FLOAT, 1, &zero);
	rfl_cudnn__link(m, d, a->alpha + 2, over);
	rfl_cudnn__link(m, d, a->x, x);
	rfl_cudnn__link(m, d, a->w, w);
	rfl_cudnn__link(m, d, a->y, y);
	return rfl_cudnn__finish(m, d);
}

/* The graph of a convolution, perhaps with bias and ReLU after it. */
static rfl_cudnn_descriptor graph(struct rfl_making *m, const struct rfl_conv *c,
				  const struct rfl_conv_rules *rules)
{
	static const int64_t single[] = { 1, 1 };
	const int type = rfl_cudnn__type(rules->type), after = c->bias + c->relu;
	const bool wide = rules->wide_gradient && c->pass == RFL_PLAN_WGRAD;
	const int weights = wide ? RFL_CUDNN_DATA_FLOAT : type;
	const int64_t in = c->channels[0], out = c->channels[1], n = c->batch;
	rfl_cudnn_descriptor x =
		rfl_cudnn__tensor(m, RFL_CONV_X, type, n, in, c->in, RFL_TENSOR_MEMORY);
	rfl_cudnn_descriptor w = rfl_cudnn__tensor(m, RFL_CONV_W, weights, out, in / c->groups,
						   c->kernel, RFL_TENSOR_MEMORY);
	rfl_cudnn_descriptor y =
		rfl_cudnn__tensor(m, RFL_CONV_Y, type, n, out, c->out, RFL_TENSOR_MEMORY);
	rfl_cudnn_descriptor between[2] = { y, y }, ops[3];
	int nops = 0;

	for (int i = 0; i < after; i++) /* the results that another operation reads */
		between[i] = rfl_cudnn__tensor(m, RFL_CONV_B + 1 + i, RFL_CUDNN_DATA_FLOAT, n, out,
					       c->out, RFL_TENSOR_VIRTUAL);
	ops[nops++] = convolution(m, c, x, w, between[0]);
	if (c->bias)
		ops[nops++] = rfl_cudnn__pointwise(
			m, RFL_CUDNN_POINTWISE_ADD, between[0],
			rfl_cudnn__tensor(m, RFL_CONV_B, type, 1, out, single, RFL_TENSOR_MEMORY),
			c->relu ? between[1] : y);
	if (c->relu)
		ops[nops++] = rfl_cudnn__pointwise(m, RFL_CUDNN_POINTWISE_RELU_FWD,
						   between[c->bias], NULL, y);
	return rfl_cudnn__graph(m, nops, ops);
}

struct rfl_conv rfl_conv_of(const struct rfl_plan *plan, int step)
{
	const struct rfl_plan_step *const at = &plan->steps[step];
	const struct rfl_node *const node = &plan->net->nodes[at->node];
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	struct rfl_conv c = { .pass = at->pass, .batch = plan->setup.batch, .groups = 1 };

	c.relu = forward && at->activation == RFL_PLAN_RELU;
	if (at->op == RFL_PLAN_CONV) {
		const struct rfl_plan_window g = rfl_plan_window(plan, at->node);
		const int64_t *const in = plan->net->nodes[node->input[0]].shape.dim;
		const int64_t *const out = node->shape.dim;

		c.groups = node->attr.conv2d.groups;
		c.bias = forward && rfl_plan_param(plan->net, at->node, RFL_PARAM_CONV_BIAS) >= 0;
		for (int i = 0; i < 2; i++) {
			c.in[i] = in[1 + i];
			c.out[i] = out[1 + i];
			c.kernel[i] = g.kernel[i];
			c.stride[i] = g.stride[i];
			c.dilation[i] = g.dilation[i];
			c.pad[i] = g.before[i];
		}
		c.channels[0] = in[0];
		c.channels[1] = out[0];
		return c;
	}
	for (int i = 0; i < 2; i++)
		c.in[i] = c.out[i] = c.kernel[i] = c.stride[i] = c.dilation[i] = 1;
	c.bias = forward && rfl_plan_param(plan->net, at->node, RFL_PARAM_LINEAR_BIAS) >= 0;
	c.channels[0] = rfl_shape_numel(&plan->net->nodes[node->input[0]].shape);
	c.channels[1] = rfl_shape_numel(&node->shape);
	return c;
}

enum rfl_rc rfl_conv_plans(const struct rfl_cudnn *lib, const struct rfl_conv *conv,
			   const struct rfl_conv_rules *rules, int most,
			   struct rfl_conv_plan *plans, int *n, struct rfl_err *err)
{
	struct rfl_making m = { .lib = lib };
	rfl_cudnn_descriptor of = graph(&m, conv, rules);

	return rfl_cudnn__plans(&m, of, "a convolution", rules, most, plans, n, err);
}

enum rfl_rc rfl_conv_run(const struct rfl_cudnn *lib, const struct rfl_conv_plan *plan,
			 const void *x, const void *w, const void *y, const void *bias,
			 void *workspace, struct rfl_err *err)
{
	static const int64_t ids[] = { RFL_CONV_X, RFL_CONV_W, RFL_CONV_Y, RFL_CONV_B };
	const void *const data[] = { x, w, y, bias };

	return rfl_cudnn__run(lib, plan, "a convolution", bias ? 4 : 3, ids, data, workspace, err);
}
