/* graph.c - convolutions as execution plans of cuDNN. */
#include "runner/planned/cuda/graph.h"

#include "base/alloc.h"

/* ---- descriptors ---- */

/* The descriptors of one request. After a failure, what follows does nothing. */
#define MAX_DESCRIPTORS 24
struct making {
	const struct rfl_cudnn *lib;
	rfl_cudnn_descriptor all[MAX_DESCRIPTORS];
	int n;
	int status;
};

static rfl_cudnn_descriptor make(struct making *m, int type)
{
	rfl_cudnn_descriptor *d = &m->all[m->n];

	if (m->status == 0)
		m->status = m->lib->calls.descriptor_create(type, d);
	if (m->status != 0)
		return NULL;
	m->n++;
	return *d;
}

static void set(struct making *m, rfl_cudnn_descriptor d, int name, int type, int64_t n,
		const void *values)
{
	if (m->status == 0)
		m->status = m->lib->calls.set(d, name, type, n, values);
}

static void set_descriptor(struct making *m, rfl_cudnn_descriptor d, int name,
			   rfl_cudnn_descriptor value)
{
	set(m, d, name, RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static rfl_cudnn_descriptor finish(struct making *m, rfl_cudnn_descriptor d)
{
	if (m->status == 0)
		m->status = m->lib->calls.finalize(d);
	return d;
}

static void release(struct making *m)
{
	while (m->n > 0)
		(void)m->lib->calls.descriptor_destroy(m->all[--m->n]);
}

/* ---- graphs ---- */

static int data_type(enum rfl_value type)
{
	switch (type) {
	case RFL_VALUE_BF16:
		return RFL_CUDNN_DATA_BFLOAT16;
	case RFL_VALUE_F16:
		return RFL_CUDNN_DATA_HALF;
	default:
		return RFL_CUDNN_DATA_FLOAT;
	}
}

/* n images of channels x height x width, channels fastest in memory. */
static rfl_cudnn_descriptor tensor(struct making *m, int64_t id, int type, int64_t n, int64_t c,
				   const int64_t size[2], bool virtual)
{
	const int64_t dims[] = { n, c, size[0], size[1] }, alignment = 16;
	const int64_t strides[] = { c * size[0] * size[1], 1, c * size[1], c };
	rfl_cudnn_descriptor d = make(m, RFL_CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	set(m, d, RFL_CUDNN_ATTR_TENSOR_DATA_TYPE, RFL_CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(m, d, RFL_CUDNN_ATTR_TENSOR_DIMENSIONS, RFL_CUDNN_TYPE_INT64, 4, dims);
	set(m, d, RFL_CUDNN_ATTR_TENSOR_STRIDES, RFL_CUDNN_TYPE_INT64, 4, strides);
	set(m, d, RFL_CUDNN_ATTR_TENSOR_UNIQUE_ID, RFL_CUDNN_TYPE_INT64, 1, &id);
	set(m, d, RFL_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, RFL_CUDNN_TYPE_INT64, 1, &alignment);
	if (virtual)
		set(m, d, RFL_CUDNN_ATTR_TENSOR_IS_VIRTUAL, RFL_CUDNN_TYPE_BOOLEAN, 1, &virtual);
	return finish(m, d);
}

static rfl_cudnn_descriptor window(struct making *m, const struct rfl_conv *c)
{
	const int type = RFL_CUDNN_DATA_FLOAT, mode = RFL_CUDNN_CROSS_CORRELATION;
	const int64_t dims = 2;
	rfl_cudnn_descriptor d = make(m, RFL_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

	set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, RFL_CUDNN_TYPE_INT64, 1, &dims);
	set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, RFL_CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_CONV_MODE, RFL_CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, RFL_CUDNN_TYPE_INT64, 2, c->pad);
	set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, RFL_CUDNN_TYPE_INT64, 2, c->pad);
	set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_DILATIONS, RFL_CUDNN_TYPE_INT64, 2, c->dilation);
	set(m, d, RFL_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, RFL_CUDNN_TYPE_INT64, 2, c->stride);
	return finish(m, d);
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

static rfl_cudnn_descriptor convolution(struct making *m, const struct rfl_conv *c,
					rfl_cudnn_descriptor x, rfl_cudnn_descriptor w,
					rfl_cudnn_descriptor y)
{
	const struct direction *const a = &directions[c->pass];
	const float one = 1, zero = 0;
	rfl_cudnn_descriptor over = window(m, c), d = make(m, a->operation);

	set(m, d, a->alpha, RFL_CUDNN_TYPE_FLOAT, 1, &one);
	set(m, d, a->alpha + 1, RFL_CUDNN_TYPE_FLOAT, 1, &zero);
	set_descriptor(m, d, a->alpha + 2, over);
	set_descriptor(m, d, a->x, x);
	set_descriptor(m, d, a->w, w);
	set_descriptor(m, d, a->y, y);
	return finish(m, d);
}

/* y = x + b, or of one operand where b is NULL */
static rfl_cudnn_descriptor pointwise(struct making *m, int mode, rfl_cudnn_descriptor x,
				      rfl_cudnn_descriptor b, rfl_cudnn_descriptor y)
{
	const int type = RFL_CUDNN_DATA_FLOAT;
	rfl_cudnn_descriptor what = make(m, RFL_CUDNN_BACKEND_POINTWISE_DESCRIPTOR), d;

	set(m, what, RFL_CUDNN_ATTR_POINTWISE_MODE, RFL_CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	set(m, what, RFL_CUDNN_ATTR_POINTWISE_MATH_PREC, RFL_CUDNN_TYPE_DATA_TYPE, 1, &type);
	(void)finish(m, what);
	d = make(m, RFL_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	set_descriptor(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
	set_descriptor(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (b)
		set_descriptor(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	set_descriptor(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	return finish(m, d);
}

/* The graph of a convolution, perhaps with bias and ReLU after it. */
static rfl_cudnn_descriptor graph(struct making *m, const struct rfl_conv *c,
				  const struct rfl_conv_rules *rules)
{
	static const int64_t single[] = { 1, 1 };
	const int type = data_type(rules->type), after = c->bias + c->relu;
	const bool wide = rules->wide_gradient && c->pass == RFL_PLAN_WGRAD;
	const int weights = wide ? RFL_CUDNN_DATA_FLOAT : type;
	const int biases = rules->narrow_bias ? type : RFL_CUDNN_DATA_FLOAT;
	const int64_t in = c->channels[0], out = c->channels[1], n = c->batch;
	rfl_cudnn_descriptor x = tensor(m, RFL_CONV_X, type, n, in, c->in, false);
	rfl_cudnn_descriptor w =
		tensor(m, RFL_CONV_W, weights, out, in / c->groups, c->kernel, false);
	rfl_cudnn_descriptor y = tensor(m, RFL_CONV_Y, type, n, out, c->out, false);
	rfl_cudnn_descriptor between[2] = { y, y }, ops[3], d;
	int nops = 0;

	for (int i = 0; i < after; i++) /* the results that another operation reads */
		between[i] =
			tensor(m, RFL_CONV_B + 1 + i, RFL_CUDNN_DATA_FLOAT, n, out, c->out, true);
	ops[nops++] = convolution(m, c, x, w, between[0]);
	if (c->bias)
		ops[nops++] = pointwise(m, RFL_CUDNN_POINTWISE_ADD, between[0],
					tensor(m, RFL_CONV_B, biases, 1, out, single, false),
					c->relu ? between[1] : y);
	if (c->relu)
		ops[nops++] = pointwise(m, RFL_CUDNN_POINTWISE_RELU_FWD, between[c->bias], NULL, y);
	d = make(m, RFL_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set(m, d, RFL_CUDNN_ATTR_OPERATIONGRAPH_OPS, RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, nops, ops);
	if (m->lib->handle)
		set(m, d, RFL_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, RFL_CUDNN_TYPE_HANDLE, 1,
		    &m->lib->handle);
	return finish(m, d);
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

/* ---- plans ---- */

/* Whether an engine computes within the rules. */
static bool allowed(const struct rfl_cudnn *lib, rfl_cudnn_descriptor config,
		    const struct rfl_conv_rules *rules)
{
	int notes[RFL_CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
	rfl_cudnn_descriptor engine = NULL;
	const bool strict = rules->type == RFL_VALUE_F32 && !rules->tf32;
	int64_t n = 0;
	bool ok;

	if (lib->calls.descriptor_create(RFL_CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != 0)
		return false;
	ok = lib->calls.get(config, RFL_CUDNN_ATTR_ENGINECFG_ENGINE,
			    RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == 0 &&
	     lib->calls.get(engine, RFL_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
			    RFL_CUDNN_TYPE_NUMERICAL_NOTE, RFL_ARRAY_LEN(notes), &n, notes) == 0;
	for (int64_t i = 0; i < n && ok; i++)
		ok = !(strict && (notes[i] == RFL_CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
				  notes[i] == RFL_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) &&
		     !(rules->deterministic &&
		       notes[i] == RFL_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) &&
		     notes[i] != RFL_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
	(void)lib->calls.descriptor_destroy(engine);
	return ok;
}

/* The plan of a configuration. cuDNN's heuristics also propose some that it then refuses. */
static bool finalize(const struct rfl_cudnn *lib, rfl_cudnn_descriptor config, int64_t most,
		     struct rfl_conv_plan *ret)
{
	struct making m = { .lib = lib };
	rfl_cudnn_descriptor d = make(&m, RFL_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	int64_t n = 0;

	if (lib->handle)
		set(&m, d, RFL_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, RFL_CUDNN_TYPE_HANDLE, 1,
		    &lib->handle);
	else
		set_descriptor(&m, d, RFL_CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, lib->device);
	set_descriptor(&m, d, RFL_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	(void)finish(&m, d);
	if (m.status == 0)
		m.status = lib->calls.get(d, RFL_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
					  RFL_CUDNN_TYPE_INT64, 1, &n, &ret->workspace);
	if (m.status == 0 && ret->workspace <= most) {
		ret->plan = d;
		return true;
	}
	release(&m);
	return false;
}

/* Append the plans that a mode of the heuristics proposes. */
static int propose(const struct rfl_cudnn *lib, rfl_cudnn_descriptor of, int mode,
		   const struct rfl_conv_rules *rules, int most, struct rfl_conv_plan *plans,
		   int *n)
{
	enum { CONFIGS = 64 }; /* cuDNN 9.19 proposes up to 40 */
	struct making m = { .lib = lib };
	rfl_cudnn_descriptor d = make(&m, RFL_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR),
			     configs[CONFIGS];
	int made = 0;
	int64_t found = 0;

	set_descriptor(&m, d, RFL_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of);
	set(&m, d, RFL_CUDNN_ATTR_ENGINEHEUR_MODE, RFL_CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (!lib->handle)
		set_descriptor(&m, d, RFL_CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, lib->device);
	(void)finish(&m, d);
	while (made < CONFIGS && m.status == 0) {
		m.status = lib->calls.descriptor_create(RFL_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
							&configs[made]);
		made += m.status == 0;
	}
	if (m.status == 0)
		m.status =
			lib->calls.get(d, RFL_CUDNN_ATTR_ENGINEHEUR_RESULTS,
				       RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &found, configs);
	for (int i = 0; i < found && m.status == 0 && *n < most; i++)
		if (allowed(lib, configs[i], rules) &&
		    finalize(lib, configs[i], rules->workspace, &plans[*n]))
			++*n;
	while (made > 0)
		(void)lib->calls.descriptor_destroy(configs[--made]);
	release(&m);
	return m.status;
}

enum rfl_rc rfl_conv_plans(const struct rfl_cudnn *lib, const struct rfl_conv *conv,
			   const struct rfl_conv_rules *rules, int most,
			   struct rfl_conv_plan *plans, int *n, struct rfl_err *err)
{
	struct making m = { .lib = lib };
	rfl_cudnn_descriptor d = graph(&m, conv, rules);
	int status = m.status;

	*n = 0;
	if (m.status == 0)
		status = propose(lib, d, RFL_CUDNN_HEUR_MODE_A, rules, most, plans, n);
	if (m.status == 0 && *n < most) /* some layers have an exact plan only there */
		status = propose(lib, d, RFL_CUDNN_HEUR_MODE_FALLBACK, rules, most, plans, n);
	release(&m);
	if (*n > 0)
		return RFL_OK;
	if (m.status != 0)
		return rfl_cudnn_check(lib, m.status, "the description of a convolution", err);
	return rfl_fail(err, RFL_EUNSUPPORTED, status, "cuDNN %s has no plan for it%s",
			lib->version, rules->deterministic ? " that is deterministic" : "");
}

enum rfl_rc rfl_conv_run(const struct rfl_cudnn *lib, const struct rfl_conv_plan *plan,
			 const void *x, const void *w, const void *y, const void *bias,
			 void *workspace, struct rfl_err *err)
{
	static const int64_t ids[] = { RFL_CONV_X, RFL_CONV_W, RFL_CONV_Y, RFL_CONV_B };
	const void *const data[] = { x, w, y, bias };
	struct making m = { .lib = lib };
	rfl_cudnn_descriptor pack = make(&m, RFL_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	const int64_t n = bias ? 4 : 3;

	set(&m, pack, RFL_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, RFL_CUDNN_TYPE_INT64, n, ids);
	set(&m, pack, RFL_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, RFL_CUDNN_TYPE_VOID_PTR, n, data);
	set(&m, pack, RFL_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, RFL_CUDNN_TYPE_VOID_PTR, 1,
	    &workspace);
	(void)finish(&m, pack);
	if (m.status == 0)
		m.status = lib->calls.execute(lib->handle, plan->plan, pack);
	release(&m);
	return rfl_cudnn_check(lib, m.status, "a convolution", err);
}
