/*
 * engine_ops.c - the rows of the torch engine: what each operation calls. Those that compute
 * nothing are in engine_views.c.
 */
#include "runner/torch/engine_ops.h"

#include <assert.h>

/* ------------------------------------------------------------------ what rows share */

struct rfl_torch_tensor *rfl_torch__input(const struct rfl_engine *e, const struct rfl_node *node,
					  int j)
{
	return e->value[node->input[j]];
}

int rfl_torch__lead(const struct rfl_node *node)
{
	return node->batchless ? 0 : 1;
}

int rfl_torch__input_lead(const struct rfl_engine *e, const struct rfl_node *node)
{
	return rfl_torch__lead(&e->net->nodes[node->input[0]]);
}

int rfl_torch__sizes(const struct rfl_shape *shape, int lead, int64_t sizes[RFL_NET_MAX_DIMS + 1])
{
	if (lead)
		sizes[0] = -1;
	for (int i = 0; i < shape->ndim; i++)
		sizes[lead + i] = shape->dim[i];
	return lead + shape->ndim;
}

/* The parameter of a node that has this kind, or NULL. */
static struct rfl_torch_tensor *param(const struct rfl_engine *e, const struct rfl_node *node,
				      enum rfl_param_kind kind)
{
	for (int j = 0; j < node->nparams; j++)
		if (e->net->params[node->param[j]].kind == kind)
			return e->param[node->param[j]];
	return NULL;
}

/* Statistics of the batch are used and recorded in plain training only. */
static bool uses_batch_statistics(const struct rfl_engine *e)
{
	return e->mode == RFL_ENGINE_TRAIN;
}

bool rfl_torch__is_training(const struct rfl_engine *e)
{
	return e->mode != RFL_ENGINE_EVAL;
}

static bool drops(const struct rfl_engine *e)
{
	return e->config.dropout && rfl_torch__is_training(e);
}

/* ------------------------------------------------------------------ with weights */

static enum rfl_torch_status run_conv2d(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	return rfl_torch_conv2d(rfl_torch__input(e, node, 0), param(e, node, RFL_PARAM_CONV_WEIGHT),
				param(e, node, RFL_PARAM_CONV_BIAS), &node->attr.conv2d, ret);
}

/* A tied layer reads the first parameter of another node. */
static enum rfl_torch_status run_linear(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	struct rfl_torch_tensor *weight = node->tied ? e->param[e->net->nodes[node->tied].param[0]]
						     : param(e, node, RFL_PARAM_LINEAR_WEIGHT);

	return rfl_torch_linear(rfl_torch__input(e, node, 0), weight,
				param(e, node, RFL_PARAM_LINEAR_BIAS), node->attr.linear.transposed,
				ret);
}

static enum rfl_torch_status run_embedding(struct rfl_engine *e, const struct rfl_node *node,
					   struct rfl_torch_tensor **ret)
{
	return rfl_torch_embedding(param(e, node, RFL_PARAM_EMBEDDING_WEIGHT),
				   rfl_torch__input(e, node, 0), ret);
}

static enum rfl_torch_status run_batch_norm(struct rfl_engine *e, const struct rfl_node *node,
					    struct rfl_torch_tensor **ret)
{
	const struct rfl_torch_norm norm = {
		.weight = param(e, node, RFL_PARAM_NORM_WEIGHT),
		.bias = param(e, node, RFL_PARAM_NORM_BIAS),
		.running_mean = param(e, node, RFL_PARAM_RUNNING_MEAN),
		.running_var = param(e, node, RFL_PARAM_RUNNING_VAR),
	};

	return rfl_torch_batch_norm(rfl_torch__input(e, node, 0), &norm, &node->attr.batch_norm,
				    uses_batch_statistics(e), ret);
}

static enum rfl_torch_status run_layer_norm(struct rfl_engine *e, const struct rfl_node *node,
					    struct rfl_torch_tensor **ret)
{
	return rfl_torch_layer_norm(rfl_torch__input(e, node, 0),
				    param(e, node, RFL_PARAM_NORM_WEIGHT),
				    param(e, node, RFL_PARAM_NORM_BIAS), node->attr.norm.eps, ret);
}

static enum rfl_torch_status run_rms_norm(struct rfl_engine *e, const struct rfl_node *node,
					  struct rfl_torch_tensor **ret)
{
	return rfl_torch_rms_norm(rfl_torch__input(e, node, 0),
				  param(e, node, RFL_PARAM_NORM_WEIGHT), node->attr.norm.eps, ret);
}

/* ------------------------------------------------------------------ products */

static enum rfl_torch_status run_matmul(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	return rfl_torch_matmul(rfl_torch__input(e, node, 0), rfl_torch__input(e, node, 1),
				node->attr.matmul.transpose_b, ret);
}

static enum rfl_torch_status run_sdpa(struct rfl_engine *e, const struct rfl_node *node,
				      struct rfl_torch_tensor **ret)
{
	const struct rfl_sdpa *a = &node->attr.sdpa;

	return rfl_torch_sdpa(rfl_torch__input(e, node, 0), rfl_torch__input(e, node, 1),
			      rfl_torch__input(e, node, 2), a->causal, drops(e) ? a->dropout : 0,
			      ret);
}

/* ------------------------------------------------------------------ elementwise */

static enum rfl_torch_status run_unary(struct rfl_engine *e, const struct rfl_node *node,
				       struct rfl_torch_tensor **ret)
{
	return rfl_torch_unary(node->op, rfl_torch__input(e, node, 0), node->inplace, ret);
}

/* The gradient needs the input. Written over it in place, autograd would copy the input first: a
 * new tensor for the result costs a pass over memory less, and keeps the same bytes. */
static enum rfl_torch_status run_unary_of_input(struct rfl_engine *e, const struct rfl_node *node,
						struct rfl_torch_tensor **ret)
{
	return rfl_torch_unary(node->op, rfl_torch__input(e, node, 0),
			       node->inplace && !rfl_torch__is_training(e), ret);
}

static enum rfl_torch_status run_gelu(struct rfl_engine *e, const struct rfl_node *node,
				      struct rfl_torch_tensor **ret)
{
	return rfl_torch_gelu(rfl_torch__input(e, node, 0), node->attr.gelu.tanh, ret);
}

static enum rfl_torch_status run_affine(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	return rfl_torch_affine(rfl_torch__input(e, node, 0), &node->attr.affine, ret);
}

static enum rfl_torch_status run_rope(struct rfl_engine *e, const struct rfl_node *node,
				      struct rfl_torch_tensor **ret)
{
	return rfl_torch_rope(rfl_torch__input(e, node, 0), rfl_torch__table(e, node, 0),
			      rfl_torch__table(e, node, 1), ret);
}

static enum rfl_torch_status run_dropout(struct rfl_engine *e, const struct rfl_node *node,
					 struct rfl_torch_tensor **ret)
{
	if (!drops(e))
		return rfl_torch_tensor_dup(rfl_torch__input(e, node, 0), ret);
	return rfl_torch_dropout(rfl_torch__input(e, node, 0), node->attr.dropout.probability,
				 node->inplace, ret);
}

static enum rfl_torch_status run_stochastic_depth(struct rfl_engine *e, const struct rfl_node *node,
						  struct rfl_torch_tensor **ret)
{
	const double probability = node->attr.dropout.probability;

	if (!drops(e) || probability <= 0)
		return rfl_torch_tensor_dup(rfl_torch__input(e, node, 0), ret);
	return rfl_torch_stochastic_depth(rfl_torch__input(e, node, 0), probability, ret);
}

static enum rfl_torch_status run_causal_mask(struct rfl_engine *e, const struct rfl_node *node,
					     struct rfl_torch_tensor **ret)
{
	return rfl_torch_masked(rfl_torch__input(e, node, 0), rfl_torch__table(e, node, 0), ret);
}

static enum rfl_torch_status run_softmax(struct rfl_engine *e, const struct rfl_node *node,
					 struct rfl_torch_tensor **ret)
{
	return rfl_torch_softmax(rfl_torch__input(e, node, 0), ret);
}

/* Shapes are matched from the last dimension on. A batch stands in front of all of them, so one
 * with fewer dimensions than the result gets ones behind its batch. */
static enum rfl_torch_status aligned(const struct rfl_engine *e, const struct rfl_node *node, int j,
				     struct rfl_torch_tensor **ret)
{
	const struct rfl_node *in = &e->net->nodes[node->input[j]];
	struct rfl_shape wide = { .ndim = node->shape.ndim };
	const int missing = node->shape.ndim - in->shape.ndim;
	int64_t sizes[RFL_NET_MAX_DIMS + 1];

	if (in->batchless || missing == 0)
		return rfl_torch_tensor_dup(rfl_torch__input(e, node, j), ret);
	for (int i = 0; i < wide.ndim; i++)
		wide.dim[i] = i < missing ? 1 : in->shape.dim[i - missing];
	return rfl_torch_reshape(rfl_torch__input(e, node, j), rfl_torch__sizes(&wide, 1, sizes),
				 sizes, ret);
}

static enum rfl_torch_status run_binary(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	struct rfl_torch_tensor *a = NULL, *b = NULL;
	enum rfl_torch_status status = aligned(e, node, 0, &a);

	if (status == RFL_TORCH_OK)
		status = aligned(e, node, 1, &b);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_binary(node->op, a, b, node->inplace, ret);
	rfl_torch_tensor_free(a);
	rfl_torch_tensor_free(b);
	return status;
}

/* ------------------------------------------------------------------ reductions */

static enum rfl_torch_status run_reduce(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	const struct rfl_reduce *a = &node->attr.reduce;

	return rfl_torch_reduce(node->op, rfl_torch__input(e, node, 0),
				a->first + rfl_torch__input_lead(e, node), a->count, a->keepdim,
				ret);
}

static enum rfl_torch_status run_max_pool(struct rfl_engine *e, const struct rfl_node *node,
					  struct rfl_torch_tensor **ret)
{
	return rfl_torch_max_pool2d(rfl_torch__input(e, node, 0), &node->attr.pool, ret);
}

static enum rfl_torch_status run_avg_pool(struct rfl_engine *e, const struct rfl_node *node,
					  struct rfl_torch_tensor **ret)
{
	return rfl_torch_avg_pool2d(rfl_torch__input(e, node, 0), &node->attr.pool, ret);
}

static enum rfl_torch_status run_adaptive_avg_pool(struct rfl_engine *e,
						   const struct rfl_node *node,
						   struct rfl_torch_tensor **ret)
{
	return rfl_torch_adaptive_avg_pool2d(rfl_torch__input(e, node, 0),
					     &node->attr.adaptive_pool, ret);
}

/* ------------------------------------------------------------------ the table */

#define FREE(fn)                           \
	{                                  \
		(fn), RFL_TORCH_ORDER_FREE \
	}
#define KEPT(fn)                           \
	{                                  \
		(fn), RFL_TORCH_ORDER_KEPT \
	}
#define MADE(fn)                           \
	{                                  \
		(fn), RFL_TORCH_ORDER_MADE \
	}

/* Adding an operation is adding a row. The input is what the batch holds, and the loss is computed
 * behind the walk: both are executed without a row of their own. */
static const struct rfl_torch__row rows[RFL_OP_COUNT] = {
	[RFL_OP_PARAMETER] = FREE(rfl_torch__run_parameter),
	[RFL_OP_CONSTANT] = FREE(rfl_torch__run_constant),
	[RFL_OP_CONV2D] = MADE(run_conv2d),
	[RFL_OP_LINEAR] = FREE(run_linear),
	[RFL_OP_EMBEDDING] = FREE(run_embedding),
	[RFL_OP_BATCH_NORM] = KEPT(run_batch_norm),
	[RFL_OP_LAYER_NORM] = FREE(run_layer_norm),
	[RFL_OP_RMS_NORM] = FREE(run_rms_norm),
	[RFL_OP_MATMUL] = FREE(run_matmul),
	[RFL_OP_SDPA] = FREE(run_sdpa),
	[RFL_OP_RELU] = KEPT(run_unary),
	[RFL_OP_RELU6] = KEPT(run_unary_of_input),
	[RFL_OP_SIGMOID] = KEPT(run_unary),
	[RFL_OP_TANH] = KEPT(run_unary),
	[RFL_OP_SILU] = KEPT(run_unary_of_input),
	[RFL_OP_GELU] = KEPT(run_gelu),
	[RFL_OP_HARD_SIGMOID] = KEPT(run_unary_of_input),
	[RFL_OP_HARD_SWISH] = KEPT(run_unary_of_input),
	[RFL_OP_EXP] = KEPT(run_unary),
	[RFL_OP_LOG] = KEPT(run_unary),
	[RFL_OP_RSQRT] = KEPT(run_unary),
	[RFL_OP_SQUARE] = KEPT(run_unary),
	[RFL_OP_AFFINE] = KEPT(run_affine),
	[RFL_OP_ROPE] = FREE(run_rope),
	[RFL_OP_DROPOUT] = KEPT(run_dropout),
	[RFL_OP_STOCHASTIC_DEPTH] = KEPT(run_stochastic_depth),
	[RFL_OP_CAUSAL_MASK] = FREE(run_causal_mask),
	[RFL_OP_SOFTMAX] = FREE(run_softmax),
	[RFL_OP_ADD] = KEPT(run_binary),
	[RFL_OP_SUB] = KEPT(run_binary),
	[RFL_OP_MUL] = KEPT(run_binary),
	[RFL_OP_DIV] = KEPT(run_binary),
	[RFL_OP_MEAN] = FREE(run_reduce),
	[RFL_OP_SUM] = FREE(run_reduce),
	[RFL_OP_MAX] = FREE(run_reduce),
	[RFL_OP_MAX_POOL] = KEPT(run_max_pool),
	[RFL_OP_AVG_POOL] = KEPT(run_avg_pool),
	[RFL_OP_ADAPTIVE_AVG_POOL] = KEPT(run_adaptive_avg_pool),
	[RFL_OP_FLATTEN] = FREE(rfl_torch__run_flatten),
	[RFL_OP_RESHAPE] = FREE(rfl_torch__run_reshape),
	[RFL_OP_PERMUTE] = FREE(rfl_torch__run_permute),
	[RFL_OP_SLICE] = FREE(rfl_torch__run_slice),
	[RFL_OP_CONTIGUOUS] = FREE(rfl_torch__run_contiguous),
	[RFL_OP_CONCAT] = KEPT(rfl_torch__run_concat),
	[RFL_OP_PAD] = FREE(rfl_torch__run_pad),
	[RFL_OP_ROLL] = FREE(rfl_torch__run_roll),
	[RFL_OP_GATHER] = FREE(rfl_torch__run_gather),
};

const struct rfl_torch__row *rfl_torch__row_of(enum rfl_op op)
{
	assert((int)op >= 0 && op < RFL_OP_COUNT);
	return &rows[op];
}
