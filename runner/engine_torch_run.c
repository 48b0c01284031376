/*
 * engine_torch_run.c - the forward pass of the torch engine: one row per operation, and the walk
 * over the nodes that drops each output after its last reader, as a Python program does by leaving
 * the variable's scope.
 */
#include "runner/engine_torch.h"

/* The j-th input of a node. */
static struct rfl_torch_tensor *input(const struct rfl_engine *e, const struct rfl_node *node,
				      int j)
{
	return e->value[node->input[j]];
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

static bool is_training(const struct rfl_engine *e)
{
	return e->mode != RFL_ENGINE_EVAL;
}

static enum rfl_torch_status run_conv2d(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	return rfl_torch_conv2d(input(e, node, 0), param(e, node, RFL_PARAM_CONV_WEIGHT),
				param(e, node, RFL_PARAM_CONV_BIAS), &node->attr.conv2d, ret);
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

	return rfl_torch_batch_norm(input(e, node, 0), &norm, &node->attr.batch_norm,
				    uses_batch_statistics(e), ret);
}

static enum rfl_torch_status run_relu(struct rfl_engine *e, const struct rfl_node *node,
				      struct rfl_torch_tensor **ret)
{
	return rfl_torch_relu(input(e, node, 0), node->inplace, ret);
}

/* The gradient of ReLU6 needs its input. Written over it in place, autograd would copy the input
 * first: a new tensor for the result costs a pass over memory less, and keeps the same bytes. */
static enum rfl_torch_status run_relu6(struct rfl_engine *e, const struct rfl_node *node,
				       struct rfl_torch_tensor **ret)
{
	return rfl_torch_relu6(input(e, node, 0), node->inplace && !is_training(e), ret);
}

static enum rfl_torch_status run_max_pool(struct rfl_engine *e, const struct rfl_node *node,
					  struct rfl_torch_tensor **ret)
{
	return rfl_torch_max_pool2d(input(e, node, 0), &node->attr.pool, ret);
}

static enum rfl_torch_status run_adaptive_avg_pool(struct rfl_engine *e,
						   const struct rfl_node *node,
						   struct rfl_torch_tensor **ret)
{
	return rfl_torch_adaptive_avg_pool2d(input(e, node, 0), &node->attr.adaptive_pool, ret);
}

static enum rfl_torch_status run_linear(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret)
{
	return rfl_torch_linear(input(e, node, 0), param(e, node, RFL_PARAM_LINEAR_WEIGHT),
				param(e, node, RFL_PARAM_LINEAR_BIAS), ret);
}

static enum rfl_torch_status run_dropout(struct rfl_engine *e, const struct rfl_node *node,
					 struct rfl_torch_tensor **ret)
{
	if (!e->config.dropout || !is_training(e))
		return rfl_torch_tensor_dup(input(e, node, 0), ret);
	return rfl_torch_dropout(input(e, node, 0), node->attr.dropout.probability, node->inplace,
				 ret);
}

static enum rfl_torch_status run_flatten(struct rfl_engine *e, const struct rfl_node *node,
					 struct rfl_torch_tensor **ret)
{
	return rfl_torch_flatten(input(e, node, 0), ret);
}

static enum rfl_torch_status run_add(struct rfl_engine *e, const struct rfl_node *node,
				     struct rfl_torch_tensor **ret)
{
	return rfl_torch_add(input(e, node, 0), input(e, node, 1), node->inplace, ret);
}

/* Adding an operation is adding a row. The input is the image, and the loss is computed by the
 * engine itself: both are executed without a row of their own. */
typedef enum rfl_torch_status (*run_fn)(struct rfl_engine *e, const struct rfl_node *node,
					struct rfl_torch_tensor **ret);
static const run_fn rows[RFL_OP_COUNT] = {
	[RFL_OP_CONV2D] = run_conv2d,     [RFL_OP_BATCH_NORM] = run_batch_norm,
	[RFL_OP_RELU] = run_relu,         [RFL_OP_RELU6] = run_relu6,
	[RFL_OP_MAX_POOL] = run_max_pool, [RFL_OP_ADAPTIVE_AVG_POOL] = run_adaptive_avg_pool,
	[RFL_OP_LINEAR] = run_linear,     [RFL_OP_DROPOUT] = run_dropout,
	[RFL_OP_FLATTEN] = run_flatten,   [RFL_OP_ADD] = run_add,
};

const char *rfl_torch__unsupported(enum rfl_op op, enum rfl_precision precision)
{
	(void)precision; /* what a device computes in is asked when the engine is opened */
	if ((int)op < 0 || op >= RFL_OP_COUNT)
		return "not an operation";
	if (op == RFL_OP_INPUT || op == RFL_OP_CROSS_ENTROPY || rows[op])
		return NULL;
	return "the torch engine has no row for it";
}

const char *rfl_torch__unsupported_node(const struct rfl_node *node, enum rfl_precision precision)
{
	if (node->auxiliary)
		return "the torch engine runs no auxiliary heads";
	if (node->tied)
		return "the torch engine shares no parameters between layers";
	if (node->op == RFL_OP_LINEAR && node->attr.linear.transposed)
		return "the torch engine has no linear layer with a transposed weight";
	if (node->op == RFL_OP_FLATTEN && node->attr.flatten.first != 0)
		return "the torch engine flattens whole samples only";
	return rfl_torch__unsupported(node->op, precision);
}

void rfl_torch__plan(struct rfl_engine *e)
{
	for (int i = 0; i < e->net->nnodes; i++) {
		const struct rfl_node *node = &e->net->nodes[i];

		e->last_use[i] = i;
		for (int j = 0; j < node->ninputs; j++)
			e->last_use[node->input[j]] = i;
	}
	e->last_use[e->net->output] = e->net->nnodes;
}

static void drop(struct rfl_engine *e, int node)
{
	rfl_torch_tensor_free(e->value[node]);
	e->value[node] = NULL;
}

/* A library that falls back to NCHW inside a channels-last chain would be timed for work that
 * nobody asked for. */
static enum rfl_rc check_layout(const struct rfl_engine *e, const struct rfl_node *node,
				const struct rfl_torch_tensor *value, struct rfl_err *err)
{
	if (e->layout_checked || e->config.layout != RFL_LAYOUT_NHWC ||
	    rfl_torch_tensor_is_channels_last(value))
		return RFL_OK;
	return rfl_fail(err, RFL_EUNSUPPORTED, 0,
			"torch: the output of layer '%s' has left the channels-last layout: this "
			"libtorch has no channels-last kernel for it (use --no-channels-last)",
			node->name);
}

static enum rfl_rc hand_out(struct rfl_engine *e, int node, rfl_engine_trace_fn fn, void *ctx,
			    struct rfl_err *err)
{
	struct rfl_torch_tensor *plain = NULL;
	enum rfl_rc rc;

	rc = rfl_torch__check(rfl_torch_tensor_plain(e->value[node], &plain), "trace", err);
	if (rc == RFL_OK)
		rc = fn(node, rfl_torch_tensor_data(plain), rfl_torch_tensor_numel(plain), ctx,
			err);
	rfl_torch_tensor_free(plain);
	return rc;
}

static enum rfl_rc execute(struct rfl_engine *e, int i, struct rfl_err *err)
{
	const struct rfl_node *node = &e->net->nodes[i];

	return rfl_torch__check(rows[node->op](e, node, &e->value[i]), node->name, err);
}

/* A node that hands its input on has no history of its own, and nothing to do in backward. */
static enum rfl_rc execute_marked(struct rfl_engine *e, int i, struct rfl_err *err)
{
	const void *before = rfl_torch_tensor_history(input(e, &e->net->nodes[i], 0));
	enum rfl_rc rc = rfl_torch__mark_forward(e, i, err);
	const void *after;

	if (rc == RFL_OK)
		rc = execute(e, i, err);
	if (rc != RFL_OK)
		return rc;
	after = rfl_torch_tensor_history(e->value[i]);
	return after && after != before ? rfl_torch__mark_later(e, i, e->value[i], err) : RFL_OK;
}

static enum rfl_rc run_node(struct rfl_engine *e, int i, rfl_engine_trace_fn fn, void *ctx,
			    struct rfl_err *err)
{
	const struct rfl_node *node = &e->net->nodes[i];
	enum rfl_rc rc = RFL_OK;

	if (node->op != RFL_OP_INPUT)
		rc = e->marks.fn ? execute_marked(e, i, err) : execute(e, i, err);
	if (rc == RFL_OK)
		rc = check_layout(e, node, e->value[i], err);
	if (rc == RFL_OK && fn)
		rc = hand_out(e, i, fn, ctx, err);
	for (int j = 0; j < node->ninputs; j++)
		if (e->last_use[node->input[j]] == i)
			drop(e, node->input[j]);
	return rc;
}

enum rfl_rc rfl_torch__run(struct rfl_engine *e, struct rfl_torch_tensor *take_input,
			   rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	const struct rfl_net *net = e->net;
	enum rfl_rc rc = RFL_OK;

	e->value[0] = take_input;
	for (int i = 0; i < net->nnodes && rc == RFL_OK; i++)
		if (net->nodes[i].op != RFL_OP_CROSS_ENTROPY)
			rc = run_node(e, i, fn, ctx, err);
	if (rc == RFL_OK) {
		e->layout_checked = true;
		e->logits = e->value[net->output];
		e->value[net->output] = NULL;
	}
	for (int i = 0; i < net->nnodes; i++)
		drop(e, i);
	return rc;
}
