/*
 * engine_step.c - one training step of the torch engine: the batch, the forward pass over the
 * nodes, the loss, the backward pass and the update. Each output is freed after its last use, like
 * a Python variable that goes out of scope.
 */
#include "runner/torch/engine_parts.h"

#include <math.h>

const char *rfl_torch__unsupported(enum rfl_op op, enum rfl_precision precision)
{
	(void)precision; /* checked when the engine is opened */
	if ((int)op < 0 || op >= RFL_OP_COUNT)
		return "not an operation";
	if (op == RFL_OP_INPUT || op == RFL_OP_CROSS_ENTROPY || rfl_torch_has_op(op))
		return NULL;
	return "the torch engine does not implement it";
}

void rfl_torch__forget_step(struct rfl_engine *e)
{
	rfl_torch__drop(&e->loss);
	rfl_torch__drop(&e->logits);
	e->can_backward = false;
}

/* ------------------------------------------------------------------ batches */

enum rfl_rc rfl_torch__wrap_batch(const struct rfl_engine *e, const struct rfl_batch *batch,
				  struct rfl_torch__pair *ret, struct rfl_err *err)
{
	const struct rfl_node *first = &e->net->nodes[0];
	const int64_t n = batch->n, c = first->shape.dim[0], h = first->shape.dim[1],
		      w = first->shape.dim[2];
	const bool tokens = first->dtype == RFL_DTYPE_I64, several = e->net->ninputs > 1;
	const bool images = !tokens && !several, nhwc = batch->layout == RFL_LAYOUT_NHWC;
	const int64_t sizes[4] = { n, c, h, w }, strides[4] = { c * h * w, 1, w * c, c };
	/* of a net with several inputs, see split_inputs() */
	const int64_t all = e->net->ninputs * n * rfl_shape_numel(&first->shape);
	/* labels: one per sample, or one per token of a sample */
	const int64_t nlabels = images ? n : n * c;
	const enum rfl_torch_type type = tokens                            ? RFL_TORCH_I64
					 : batch->kind == RFL_INPUT_PIXELS ? RFL_TORCH_U8
									   : RFL_TORCH_F32;
	struct rfl_torch__pair made = { .input = NULL };
	enum rfl_rc rc;

	if (n < 1 || n > e->config.max_batch)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: a batch has 1 to %lld samples, not %lld",
				(long long)e->config.max_batch, (long long)n);
	if ((batch->kind == RFL_INPUT_TOKENS) != tokens)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %s accepts %s", e->net->model,
				tokens ? "tokens, not images" : "images, not tokens");
	if (batch->kind == RFL_INPUT_PIXELS && (!batch->scale || c > 3))
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: pixels need a scale and 1 to 3 channels, not %lld",
				(long long)c);
	rc = rfl_torch_wrap(batch->images, type,
			    several  ? 1
			    : tokens ? 2
				     : 4,
			    several ? &all : sizes, images && nhwc ? strides : NULL, &made.input,
			    "inputs", err);
	if (rc == RFL_OK)
		rc = rfl_torch_wrap(batch->labels, RFL_TORCH_I64, 1, &nlabels, NULL, &made.labels,
				    "labels", err);
	if (rc != RFL_OK)
		rfl_torch_tensor_free(made.input);
	else
		*ret = made;
	return rc;
}

enum rfl_rc rfl_torch__take_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				  struct rfl_torch__pair *ret, struct rfl_err *err)
{
	const bool nhwc = e->config.layout == RFL_LAYOUT_NHWC;
	struct rfl_torch__pair io = { .input = NULL };
	struct rfl_torch_tensor *raw = NULL;
	enum rfl_rc rc;

	if ((rc = rfl_torch__wrap_batch(e, batch, &io, err)) ||
	    (rc = rfl_torch__device_batch(e, batch, &io, err)))
		goto done;

	/* convert to the layout and type of the first node, if they differ */
	if (batch->kind == RFL_INPUT_PIXELS ||
	    (batch->kind == RFL_INPUT_IMAGES && batch->layout != e->config.layout &&
	     e->net->ninputs == 1)) {
		raw = io.input;
		io.input = NULL;
		rc = batch->kind == RFL_INPUT_PIXELS
			     ? rfl_torch_normalize(raw, batch->scale, nhwc, &io.input, err)
			     : rfl_torch_tensor_as(raw, nhwc ? RFL_TORCH_NHWC : RFL_TORCH_NCHW,
						   &io.input, "inputs", err);
		if (rc != RFL_OK)
			goto done;
	}
	e->batch_n = batch->n;
	*ret = io;
	io = (struct rfl_torch__pair){ .input = NULL };
done:
	rfl_torch_tensor_free(raw);
	rfl_torch__drop_pair(&io);
	return rc;
}

/* ------------------------------------------------------------------ the forward pass */

/* Outputs that no node reads are logits of the network or of an auxiliary head. */
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

static void drop_values(struct rfl_engine *e)
{
	for (int i = 0; e->value && i < e->net->nnodes; i++)
		rfl_torch__drop(&e->value[i]);
}

void rfl_torch__run_fini(struct rfl_engine *e)
{
	drop_values(e);
	rfl_torch__tables_fini(e);
}

/* If the library falls back to NCHW in a channels-last network, the measured time would include
 * unrequested work. NCHW caused by slicing or concatenation in the network is allowed. */
static enum rfl_rc check_layout(const struct rfl_engine *e, int i, struct rfl_err *err)
{
	const struct rfl_node *node = &e->net->nodes[i];
	const enum rfl_torch_order order = rfl_torch_order_of(node->op);

	if (e->layout_checked || e->config.layout != RFL_LAYOUT_NHWC ||
	    order == RFL_TORCH_ORDER_FREE || rfl_torch_tensor_is_channels_last(e->value[i]))
		return RFL_OK;
	for (int j = 0; order == RFL_TORCH_ORDER_KEPT && j < node->ninputs; j++)
		if (!rfl_torch_tensor_is_channels_last(e->value[node->input[j]]))
			return RFL_OK;
	return rfl_fail(err, RFL_EUNSUPPORTED, 0,
			"torch: the output of layer '%s' is not channels-last: this libtorch has "
			"no channels-last kernel for it; leave out --channels-last",
			node->name);
}

/* Make the inputs of a net with several: contiguous leaves over parts of a flat tensor, with
 * gradients in training. */
static enum rfl_rc split_inputs(struct rfl_engine *e, struct rfl_torch_tensor *take_flat, int64_t n,
				struct rfl_err *err)
{
	const struct rfl_shape *shape = &e->net->nodes[0].shape;
	const int64_t sizes[3] = { n, shape->dim[0], shape->dim[1] };
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < e->net->ninputs && rc == RFL_OK; i++)
		rc = rfl_torch_leaf(take_flat, i * n * rfl_shape_numel(shape), 3, sizes, NULL,
				    e->mode != RFL_ENGINE_EVAL, &e->value[i], "inputs", err);
	rfl_torch_tensor_free(take_flat);
	return rc;
}

/* Execute all nodes on an input, and store the logits in e->logits. */
static enum rfl_rc run(struct rfl_engine *e, struct rfl_torch_tensor *take_input,
		       rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	const struct rfl_net *net = e->net;
	/* auxiliary heads run only if their losses are used */
	const bool heads = e->config.auxiliary_weight > 0 && e->mode != RFL_ENGINE_EVAL;
	enum rfl_rc rc = e->tables ? RFL_OK : rfl_torch__make_tables(e, err);

	drop_values(e);
	if (net->ninputs > 1 && rc == RFL_OK)
		rc = split_inputs(e, take_input, e->batch_n, err);
	else
		e->value[0] = take_input;
	for (int i = 0; i < net->nnodes && rc == RFL_OK; i++) {
		const struct rfl_node *node = &net->nodes[i];

		if (node->op != RFL_OP_CROSS_ENTROPY && (heads || !node->auxiliary)) {
			if (node->op != RFL_OP_INPUT)
				rc = rfl_torch_execute(e, i, err);
			if (rc == RFL_OK)
				rc = check_layout(e, i, err);
			if (rc == RFL_OK && fn) {
				struct rfl_torch_tensor *plain = NULL;
				const float *values;
				int64_t numel;

				rc = rfl_torch_tensor_as(e->value[i], RFL_TORCH_PLAIN, &plain,
							 "trace", err);
				if (rc == RFL_OK) {
					values = rfl_torch_tensor_data(plain, &numel);
					rc = fn(i, values, numel, ctx, err);
				}
				rfl_torch_tensor_free(plain);
			}
		}
		for (int j = 0; j < node->ninputs; j++)
			if (e->last_use[node->input[j]] == i)
				rfl_torch__drop(&e->value[node->input[j]]);
	}
	if (rc != RFL_OK) {
		drop_values(e);
		return rc;
	}
	e->layout_checked = true;
	e->logits = e->value[net->output];
	e->value[net->output] = NULL;
	return RFL_OK;
}

/* ------------------------------------------------------------------ the step */

enum rfl_rc rfl_torch__forward_on(struct rfl_engine *e, struct rfl_torch_tensor *take_input,
				  const struct rfl_torch_tensor *labels, rfl_engine_trace_fn fn,
				  void *ctx, struct rfl_err *err)
{
	const bool training = e->mode != RFL_ENGINE_EVAL;
	enum rfl_rc rc = rfl_torch_forward_begin(e, err);
	enum rfl_rc end;

	if (rc == RFL_OK)
		rc = run(e, take_input, fn, ctx, err);
	else
		rfl_torch_tensor_free(take_input);
	if (rc == RFL_OK)
		rc = rfl_torch__mark_forward(e, e->net->nnodes, err);
	if (rc == RFL_OK)
		rc = rfl_torch_make_loss(e, labels, err);
	drop_values(e);
	end = rfl_torch_forward_end(e, rc == RFL_OK ? err : NULL);
	rc = rc == RFL_OK ? end : rc;
	e->can_backward = rc == RFL_OK && training;
	return rc;
}

enum rfl_rc rfl_torch__forward_traced(struct rfl_engine *e, const struct rfl_batch *batch,
				      rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	struct rfl_torch__pair io = { .input = NULL };
	enum rfl_rc rc = rfl_torch__mark_forward(e, 0, err);

	if (rc != RFL_OK)
		return rc;
	rfl_torch__forget_step(e); /* free memory before this step allocates */
	rc = rfl_torch__take_batch(e, batch, &io, err);
	if (rc == RFL_OK)
		rc = rfl_torch__forward_on(e, io.input, io.labels, fn, ctx, err);
	rfl_torch_tensor_free(io.labels);
	return rc;
}

enum rfl_rc rfl_torch__forward(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	return rfl_torch__forward_traced(e, batch, NULL, NULL, err);
}

enum rfl_rc rfl_torch__scaling(struct rfl_engine *e, struct rfl_loss_scaling *ret,
			       struct rfl_err *err)
{
	if (!e->scaled || e->mode == RFL_ENGINE_EVAL) { /* no gradients to scale */
		*ret = (struct rfl_loss_scaling){ .scale = (double)NAN, .skipped = -1 };
		return RFL_OK;
	}
	return rfl_torch_optim_scaling(e->optim, &ret->scale, &ret->skipped, err);
}
