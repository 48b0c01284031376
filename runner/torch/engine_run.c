/*
 * engine_run.c - the forward pass of the torch engine: the walk over the nodes, which drops
 * each output after its last reader, as a Python program does by leaving the variable's scope; what
 * is refused before it; the loss after it. What a node calls is in shim_ops.cpp.
 */
#include "runner/torch/engine_parts.h"

#include <stdlib.h>

const char *rfl_torch__unsupported(enum rfl_op op, enum rfl_precision precision)
{
	(void)precision; /* what a device computes in is asked when the engine is opened */
	if ((int)op < 0 || op >= RFL_OP_COUNT)
		return "not an operation";
	if (op == RFL_OP_INPUT || op == RFL_OP_CROSS_ENTROPY || rfl_torch_has_op(op))
		return NULL;
	return "the torch engine has no row for it";
}

const char *rfl_torch__unsupported_node(const struct rfl_node *node, enum rfl_precision precision)
{
	const char *why = rfl_torch__unsupported(node->op, precision);

	return why ? why : rfl_torch__unknown_table(node);
}

/* An output that no node reads is logits, of the network or of an auxiliary head. */
void rfl_torch__plan(struct rfl_engine *e)
{
	for (int i = 0; i < e->net->nnodes; i++) {
		const struct rfl_node *node = &e->net->nodes[i];

		e->last_use[i] = e->net->nnodes;
		for (int j = 0; j < node->ninputs; j++)
			e->last_use[node->input[j]] = i;
	}
	e->last_use[e->net->output] = e->net->nnodes;
}

static bool is_training(const struct rfl_engine *e)
{
	return e->mode != RFL_ENGINE_EVAL;
}

/* Auxiliary heads are run where their losses count. */
static bool is_run(const struct rfl_engine *e, const struct rfl_node *node)
{
	if (node->op == RFL_OP_CROSS_ENTROPY)
		return false;
	return !node->auxiliary || (e->config.auxiliary_weight > 0 && is_training(e));
}

/* ------------------------------------------------------------------ channels-last */

/* An image in NCHW order: one that was cut or joined so by the network itself. */
static bool has_nchw_input(const struct rfl_engine *e, const struct rfl_node *node)
{
	for (int j = 0; j < node->ninputs; j++)
		if (!rfl_torch_tensor_is_channels_last(e->value[node->input[j]]))
			return true;
	return false;
}

/* A library that falls back to NCHW inside a channels-last chain would be timed for work that
 * no one asked for. */
static enum rfl_rc check_layout(const struct rfl_engine *e, const struct rfl_node *node,
				const struct rfl_torch_tensor *value, struct rfl_err *err)
{
	const enum rfl_torch_order order = rfl_torch_order_of(node->op);

	if (e->layout_checked || e->config.layout != RFL_LAYOUT_NHWC ||
	    order == RFL_TORCH_ORDER_FREE || rfl_torch_tensor_is_channels_last(value) ||
	    (order == RFL_TORCH_ORDER_KEPT && has_nchw_input(e, node)))
		return RFL_OK;
	return rfl_fail(err, RFL_EUNSUPPORTED, 0,
			"torch: the output of layer '%s' has left the channels-last layout: this "
			"libtorch has no channels-last kernel for it (leave out --channels-last)",
			node->name);
}

/* ------------------------------------------------------------------ the walk */

static void drop(struct rfl_engine *e, int node)
{
	rfl_torch_tensor_free(e->value[node]);
	e->value[node] = NULL;
}

static void drop_values(struct rfl_engine *e)
{
	for (int i = 0; e->value && i < e->net->nnodes; i++)
		drop(e, i);
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
	const struct rfl_torch_call call = {
		.net = e->net,
		.node = node,
		.values = e->value,
		.params = e->param,
		.tables = rfl_torch__tables_of(e, node),
		.training = is_training(e),
		.batch_statistics = e->mode == RFL_ENGINE_TRAIN,
		.drops = e->config.dropout && is_training(e),
	};

	return rfl_torch__check(rfl_torch_execute(&call, &e->value[i]), node->name, err);
}

/* A node that hands its input on has no history of its own, and nothing to do in backward. */
static enum rfl_rc execute_marked(struct rfl_engine *e, int i, struct rfl_err *err)
{
	const struct rfl_node *node = &e->net->nodes[i];
	const void *before =
		node->ninputs ? rfl_torch_tensor_history(e->value[node->input[0]]) : NULL;
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
	return rc;
}

static void drop_inputs(struct rfl_engine *e, int i)
{
	const struct rfl_node *node = &e->net->nodes[i];

	for (int j = 0; j < node->ninputs; j++)
		if (e->last_use[node->input[j]] == i)
			drop(e, node->input[j]);
}

enum rfl_rc rfl_torch__run(struct rfl_engine *e, struct rfl_torch_tensor *take_input,
			   rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	const struct rfl_net *net = e->net;
	enum rfl_rc rc = e->tables ? RFL_OK : rfl_torch__make_tables(e, err);

	drop_values(e);
	e->value[0] = take_input;
	for (int i = 0; i < net->nnodes && rc == RFL_OK; i++) {
		if (is_run(e, &net->nodes[i]))
			rc = run_node(e, i, fn, ctx, err);
		drop_inputs(e, i);
	}
	if (rc == RFL_OK) {
		e->layout_checked = true;
		e->logits = e->value[net->output];
		e->value[net->output] = NULL;
	} else {
		drop_values(e);
	}
	return rc;
}

/* ------------------------------------------------------------------ the loss */

static enum rfl_torch_status loss_of(const struct rfl_engine *e,
				     const struct rfl_torch_tensor *logits,
				     const struct rfl_torch_tensor *labels,
				     struct rfl_torch_tensor **ret)
{
	return e->net->loss == RFL_LOSS_COMPOSED
		       ? rfl_torch_cross_entropy_composed(logits, labels, ret)
		       : rfl_torch_cross_entropy(logits, labels, ret);
}

/* The logits of an auxiliary head are still there. */
static enum rfl_torch_status add_head(struct rfl_engine *e, int i,
				      const struct rfl_torch_tensor *labels)
{
	struct rfl_torch_tensor *term = NULL, *sum = NULL;
	enum rfl_torch_status status = loss_of(e, e->value[i], labels, &term);

	if (status == RFL_TORCH_OK)
		status = rfl_torch_add_weighted(e->loss, term, e->config.auxiliary_weight, &sum);
	rfl_torch_tensor_free(term);
	if (status == RFL_TORCH_OK) {
		rfl_torch_tensor_free(e->loss);
		e->loss = sum;
	}
	return status;
}

enum rfl_rc rfl_torch__make_loss(struct rfl_engine *e, const struct rfl_torch_tensor *labels,
				 struct rfl_err *err)
{
	enum rfl_torch_status status = loss_of(e, e->logits, labels, &e->loss);

	for (int i = 0; i < e->net->nnodes && status == RFL_TORCH_OK; i++)
		if (e->value[i] && e->net->nodes[i].auxiliary)
			status = add_head(e, i, labels);
	drop_values(e);
	return rfl_torch__check(status, "loss", err);
}

void rfl_torch__run_fini(struct rfl_engine *e)
{
	drop_values(e);
	rfl_torch__tables_fini(e);
}
