/* graph_norm.c - batch norm in training as execution plans of cuDNN. */
#include "runner/planned/cuda/graph_norm.h"

#include <assert.h>

#include "runner/planned/cuda/descriptors.h"

/* Ids of tensors besides enum rfl_norm_tensor. */
enum {
	EPS = RFL_NORM_TENSORS, /* scalars */
	MOMENTUM,
	ZERO,
	RUNNING_MEAN_IN,
	RUNNING_VARIANCE_IN,
	PACK_MAX,
	NORMED = PACK_MAX, /* exist only within the graph */
	SUMMED,
	MASKED,
};

struct rfl_norm_graph rfl_norm_of(const struct rfl_plan *plan, int step)
{
	const struct rfl_plan_step *const at = &plan->steps[step];
	const struct rfl_shape *const image = &plan->net->nodes[at->node].shape;
	const bool backward = at->pass != RFL_PLAN_FORWARD;

	assert(plan->setup.training && !plan->setup.frozen);
	return (struct rfl_norm_graph){
		.backward = backward,
		.batch = plan->setup.batch,
		.channels = image->dim[0],
		.size = { image->dim[1], image->dim[2] },
		.activation = at->activation,
		.other = at->buffer[backward ? RFL_PLAN_DOTHER : RFL_PLAN_OTHER] >= 0,
		.sum = at->buffer[RFL_PLAN_DY2] >= 0,
	};
}

/* ---- graphs ---- */

struct building {
	struct rfl_making making;
	const struct rfl_norm_graph *norm;
	int type;                    /* of activations */
	rfl_cudnn_descriptor ops[4]; /* of the graph */
	int nops;
};

static rfl_cudnn_descriptor image(struct building *b, int id, int type, enum rfl_tensor_kind kind)
{
	return rfl_cudnn__tensor(&b->making, id, type, b->norm->batch, b->norm->channels,
				 b->norm->size, kind);
}

static const int64_t single[] = { 1, 1 };

/* Set an attribute to a tensor of a float32 per channel. */
static void channels(struct building *b, rfl_cudnn_descriptor d, int name, int id)
{
	rfl_cudnn__link(&b->making, d, name,
			rfl_cudnn__tensor(&b->making, id, RFL_CUDNN_DATA_FLOAT, 1,
					  b->norm->channels, single, RFL_TENSOR_MEMORY));
}

static rfl_cudnn_descriptor scalar(struct building *b, int id)
{
	return rfl_cudnn__tensor(&b->making, id, RFL_CUDNN_DATA_FLOAT, 1, 1, single,
				 RFL_TENSOR_VALUE);
}

static rfl_cudnn_descriptor pointwise(struct building *b, int mode, rfl_cudnn_descriptor x,
				      rfl_cudnn_descriptor other, rfl_cudnn_descriptor y)
{
	b->ops[b->nops++] = rfl_cudnn__pointwise(&b->making, mode, x, other, y);
	return y;
}

static rfl_cudnn_descriptor norm_operation(struct building *b, int type, int mode)
{
	const int batch_norm = RFL_CUDNN_BATCH_NORM;
	rfl_cudnn_descriptor d = rfl_cudnn__make(&b->making, type);

	rfl_cudnn__set(&b->making, d, mode, RFL_CUDNN_TYPE_NORM_MODE, 1, &batch_norm);
	return d;
}

static void forward(struct building *b)
{
	const int training = RFL_CUDNN_NORM_FWD_TRAINING, f32 = RFL_CUDNN_DATA_FLOAT;
	const bool active = b->norm->activation != RFL_PLAN_NONE;
	rfl_cudnn_descriptor x = image(b, RFL_NORM_X, b->type, RFL_TENSOR_MEMORY), mask;
	rfl_cudnn_descriptor y = image(b, RFL_NORM_Y, b->type, RFL_TENSOR_MEMORY), normed = y;
	rfl_cudnn_descriptor d =
		norm_operation(b, RFL_CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
			       RFL_CUDNN_ATTR_OPERATION_NORM_FWD_MODE);

	if (active || b->norm->other)
		normed = image(b, NORMED, f32, RFL_TENSOR_VIRTUAL);
	rfl_cudnn__set(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_PHASE,
		       RFL_CUDNN_TYPE_NORM_FWD_PHASE, 1, &training);
	rfl_cudnn__link(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, RFL_NORM_GAMMA);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, RFL_NORM_BETA);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, RFL_NORM_MEAN);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, RFL_NORM_INVERSE);
	rfl_cudnn__link(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
			scalar(b, EPS));
	rfl_cudnn__link(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC,
			scalar(b, MOMENTUM));
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, RUNNING_MEAN_IN);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
		 RUNNING_VARIANCE_IN);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
		 RFL_NORM_RUNNING_MEAN);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
		 RFL_NORM_RUNNING_VARIANCE);
	rfl_cudnn__link(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, normed);
	b->ops[b->nops++] = rfl_cudnn__finish(&b->making, d);
	if (b->norm->other)
		normed = pointwise(b, RFL_CUDNN_POINTWISE_ADD, normed,
				   image(b, RFL_NORM_OTHER, b->type, RFL_TENSOR_MEMORY),
				   active ? image(b, SUMMED, f32, RFL_TENSOR_VIRTUAL) : y);
	if (!active)
		return;
	(void)pointwise(b, RFL_CUDNN_POINTWISE_RELU_FWD, normed, NULL, y);
	mask = image(b, RFL_NORM_MASK, RFL_CUDNN_DATA_BOOLEAN, RFL_TENSOR_MEMORY);
	(void)pointwise(b, RFL_CUDNN_POINTWISE_CMP_GT, y, scalar(b, ZERO), mask);
}

static void backward(struct building *b)
{
	const struct rfl_norm_graph *const norm = b->norm;
	const bool masked = norm->activation != RFL_PLAN_NONE;
	const enum rfl_tensor_kind kind = norm->other ? RFL_TENSOR_MEMORY : RFL_TENSOR_VIRTUAL;
	const int id = norm->other ? RFL_NORM_DOTHER : MASKED;
	rfl_cudnn_descriptor x = image(b, RFL_NORM_X, b->type, RFL_TENSOR_MEMORY), d;
	rfl_cudnn_descriptor g = image(b, RFL_NORM_DY, b->type, RFL_TENSOR_MEMORY);

	if (norm->sum) /* the last operation before the norm writes g in the type of activations */
		g = pointwise(b, RFL_CUDNN_POINTWISE_ADD, g,
			      image(b, RFL_NORM_DY2, b->type, RFL_TENSOR_MEMORY),
			      masked ? image(b, SUMMED, RFL_CUDNN_DATA_FLOAT, RFL_TENSOR_VIRTUAL)
				     : image(b, id, b->type, kind));
	if (masked)
		g = pointwise(b, RFL_CUDNN_POINTWISE_MUL, g,
			      image(b, RFL_NORM_MASK, RFL_CUDNN_DATA_BOOLEAN, RFL_TENSOR_MEMORY),
			      image(b, id, b->type, kind));
	d = norm_operation(b, RFL_CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
			   RFL_CUDNN_ATTR_OPERATION_NORM_BWD_MODE);
	rfl_cudnn__link(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, x);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, RFL_NORM_MEAN);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, RFL_NORM_INVERSE);
	rfl_cudnn__link(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, g);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, RFL_NORM_GAMMA);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, RFL_NORM_DGAMMA);
	channels(b, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, RFL_NORM_DBETA);
	rfl_cudnn__link(&b->making, d, RFL_CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC,
			image(b, RFL_NORM_DX, b->type, RFL_TENSOR_MEMORY));
	b->ops[b->nops++] = rfl_cudnn__finish(&b->making, d);
}

/* ---- plans ---- */

enum rfl_rc rfl_norm_plans(const struct rfl_cudnn *lib, const struct rfl_norm_graph *norm,
			   const struct rfl_conv_rules *rules, int most,
			   struct rfl_conv_plan *plans, int *n, struct rfl_err *err)
{
	struct building b = { .making = { .lib = lib },
			      .norm = norm,
			      .type = rfl_cudnn__type(rules->type) };

	*n = 0;
	if (norm->activation == RFL_PLAN_RELU6)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "cuDNN has no batch norm with ReLU6");
	(norm->backward ? backward : forward)(&b);
	return rfl_cudnn__plans(&b.making, rfl_cudnn__graph(&b.making, b.nops, b.ops),
				"a batch norm", rules, most, plans, n, err);
}

/* Which tensors a plan has, a bit for each id. */
static uint32_t tensors_of(const struct rfl_norm_graph *norm)
{
#define BIT(id) ((uint32_t)1 << (id))
	const uint32_t shared =
		BIT(RFL_NORM_X) | BIT(RFL_NORM_GAMMA) | BIT(RFL_NORM_MEAN) | BIT(RFL_NORM_INVERSE);
	uint32_t bits = shared;

	if (norm->activation != RFL_PLAN_NONE)
		bits |= BIT(RFL_NORM_MASK);
	if (norm->backward)
		return bits | BIT(RFL_NORM_DY) | BIT(RFL_NORM_DX) | BIT(RFL_NORM_DGAMMA) |
		       BIT(RFL_NORM_DBETA) | (norm->sum ? BIT(RFL_NORM_DY2) : 0) |
		       (norm->other ? BIT(RFL_NORM_DOTHER) : 0);
	if (norm->activation != RFL_PLAN_NONE)
		bits |= BIT(ZERO);
	return bits | BIT(RFL_NORM_Y) | BIT(RFL_NORM_BETA) | BIT(RFL_NORM_RUNNING_MEAN) |
	       BIT(RFL_NORM_RUNNING_VARIANCE) | BIT(EPS) | BIT(MOMENTUM) | BIT(RUNNING_MEAN_IN) |
	       BIT(RUNNING_VARIANCE_IN) | (norm->other ? BIT(RFL_NORM_OTHER) : 0);
#undef BIT
}

enum rfl_rc rfl_norm_run(const struct rfl_cudnn *lib, const struct rfl_norm_graph *norm,
			 const struct rfl_conv_plan *plan, void *const tensors[RFL_NORM_TENSORS],
			 float eps, float momentum, void *workspace, struct rfl_err *err)
{
	const float zero = 0;
	const void *const more[] = { &eps, &momentum, &zero, tensors[RFL_NORM_RUNNING_MEAN],
				     tensors[RFL_NORM_RUNNING_VARIANCE] };
	const uint32_t bits = tensors_of(norm);
	int64_t ids[PACK_MAX];
	const void *data[PACK_MAX];
	int n = 0;

	for (int id = 0; id < PACK_MAX; id++)
		if (bits >> id & 1u) {
			ids[n] = id;
			data[n++] =
				id < RFL_NORM_TENSORS ? tensors[id] : more[id - RFL_NORM_TENSORS];
		}
	return rfl_cudnn__run(lib, plan, "a batch norm", n, ids, data, workspace, err);
}
