/* steps.c - the operations of a plan: convolutions by cuDNN, and our own kernels. */
#include <stddef.h>

#include "runner/planned/cuda/backend.h"

static const struct rfl_node *node_of(const struct rfl_session *s, const struct rfl_plan_step *at)
{
	return &s->plan->net->nodes[at->node];
}

void *rfl_cuda__data(const struct rfl_session *s, const struct rfl_plan_step *at,
		     enum rfl_plan_slot slot)
{
	const int buffer = at->buffer[slot];

	return buffer < 0 ? NULL
			  : rfl_cuda__pointer(s->block +
					      (rfl_cuda_address)s->plan->buffers[buffer].offset);
}

static void *data(const struct rfl_session *s, const struct rfl_plan_step *at,
		  enum rfl_plan_slot slot)
{
	return rfl_cuda__data(s, at, slot);
}

/* Elements of a buffer of activations. */
static int64_t count(const struct rfl_session *s, const struct rfl_plan_step *at,
		     enum rfl_plan_slot slot)
{
	return rfl_plan_size(s->plan, at, slot) / rfl_cuda__size(s->b->type);
}

/* A place in the buffer SCRATCH, which may begin anywhere. */
#define ALIGNMENT 256
void *rfl_cuda__scratch(const struct rfl_session *s, int step, int64_t at)
{
	const uintptr_t begin = (uintptr_t)data(s, &s->plan->steps[step], RFL_PLAN_SCRATCH);

	return at < 0 ? NULL
		      : (void *)(((begin + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1)) +
				 (uintptr_t)at);
}

static void *scratch(const struct rfl_session *s, int step, int64_t at)
{
	return rfl_cuda__scratch(s, step, at);
}

/* A parameter as the convolutions read it. */
static const void *weights(const struct rfl_backend *b, int param)
{
	return b->values ? rfl_cuda__pointer(b->values + 2 * b->at[param])
			 : rfl_cuda__pointer(b->part[RFL_PART_VALUE] + 4 * b->at[param]);
}

static int weight_of(const struct rfl_session *s, const struct rfl_plan_step *at)
{
	return rfl_plan_param(s->plan->net, at->node,
			      at->op == RFL_PLAN_CONV ? RFL_PARAM_CONV_WEIGHT
						      : RFL_PARAM_LINEAR_WEIGHT);
}

static enum rfl_param_kind bias_kind(const struct rfl_plan_step *at)
{
	return at->op == RFL_PLAN_CONV ? RFL_PARAM_CONV_BIAS : RFL_PARAM_LINEAR_BIAS;
}

/* ---- sums over rows ---- */

#define THREADS_OF_EACH_SM 2048

static int64_t chunks_of(const struct rfl_backend *b, int64_t rows, int64_t columns)
{
	const int64_t threads = (int64_t)b->cuda->multiprocessors * THREADS_OF_EACH_SM;
	const int64_t chunks = threads / columns;

	return chunks < 1 ? 1 : chunks < rows ? chunks : rows;
}

/* Fold `chunks` rows of sums into fewer, after them. */
static enum rfl_rc fold(const struct rfl_backend *b, float **sums, int64_t *chunks, int64_t columns,
			struct rfl_err *err)
{
	float *const from = *sums;
	const int64_t rows = *chunks;

	if (rows <= FOLDED)
		return RFL_OK;
	*sums = from + rows * columns;
	*chunks = FOLDED;
	return LAUNCH(b, err, fold_partials, .n = FOLDED * columns, .rows = rows,
		      .columns = columns, .chunks = FOLDED, .from = from, .to = *sums);
}

static int64_t partial_bytes(int64_t chunks, int64_t columns)
{
	return 4 * columns * (chunks + (chunks > FOLDED ? FOLDED : 0));
}

/* ---- memory of a step ---- */

static int64_t take(int64_t *total, int64_t bytes)
{
	const int64_t at = *total;

	*total += (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1);
	return bytes > 0 ? at : -1;
}

void rfl_cuda__ask(struct rfl_session *s, int step)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const struct rfl_plan_window g = at->op == RFL_PLAN_POOL
						 ? rfl_plan_window(s->plan, at->node)
						 : (struct rfl_plan_window){ .unequal = false };
	struct task *const t = &s->tasks[step];
	const bool conv = at->op == RFL_PLAN_CONV || at->op == RFL_PLAN_LINEAR;
	int64_t rows, columns, total = 0;

	if (at->op == RFL_PLAN_NORM || conv) {
		rfl_plan_matrix(s->plan, at->node, &rows, &columns);
		t->chunks = chunks_of(s->b, rows, columns);
	}
	if (conv) {
		const bool narrow = at->pass == RFL_PLAN_WGRAD && s->b->type != RFL_VALUE_F32;
		const bool bias = at->buffer[RFL_PLAN_DBIAS] >= 0;

		t->workspace = take(&total, t->conv.workspace);
		t->gradient =
			take(&total, narrow ? 2 * s->plan->net->params[weight_of(s, at)].numel : 0);
		t->partials = take(&total, bias ? partial_bytes(t->chunks, columns) : 0);
	} else if (at->op == RFL_PLAN_NORM) {
		t->partials = take(&total, partial_bytes(t->chunks, 2 * columns));
		t->factors = take(&total, 3 * 4 * columns);
		if (t->norm >= 0)
			t->workspace = take(
				&total,
				s->norms[t->norm].plan[at->pass != RFL_PLAN_FORWARD].workspace);
	}
	if (total > 0)
		rfl_plan_ask(s->plan, step, RFL_PLAN_SCRATCH, total + ALIGNMENT);
	if (at->op == RFL_PLAN_POOL && at->pass == RFL_PLAN_FORWARD && g.maximum &&
	    s->plan->setup.training)
		rfl_plan_ask(s->plan, step, RFL_PLAN_SAVED, 2 * count(s, at, RFL_PLAN_Y));
}

/* ---- convolution and linear ---- */

static enum rfl_rc weighted(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const struct task *const t = &s->tasks[step];
	const int param = weight_of(s, at);
	const int bias_param = rfl_plan_param(s->plan->net, at->node, bias_kind(at));
	const float *const bias =
		rfl_cuda__floats(s, at, bias_kind(at), s->b->part[RFL_PART_VALUE]);
	void *const y = data(s, at, RFL_PLAN_Y), *const w = scratch(s, step, t->workspace);
	int64_t rows, columns;
	enum rfl_rc rc;

	rfl_plan_matrix(s->plan, at->node, &rows, &columns);
	if (at->pass == RFL_PLAN_DGRAD)
		return rfl_conv_run(s->b->cudnn, &t->conv, data(s, at, RFL_PLAN_DX),
				    weights(s->b, param), data(s, at, RFL_PLAN_DY), NULL, w, err);
	rc = rfl_conv_run(s->b->cudnn, &t->conv, data(s, at, RFL_PLAN_X), weights(s->b, param), y,
			  t->fused && bias ? weights(s->b, bias_param) : NULL, w, err);
	if (rc != RFL_OK || t->fused || (!bias && at->activation == RFL_PLAN_NONE))
		return rc;
	return LAUNCH(s->b, err, bias, .n = rows * columns, .type = s->b->type,
		      .activation = at->activation, .columns = columns, .bias = bias, .y = y);
}

static enum rfl_rc weighted_gradient(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const struct task *const t = &s->tasks[step];
	struct rfl_backend *const b = s->b;
	const int param = weight_of(s, at);
	float *const gradient = rfl_cuda__pointer(b->gradients + 4 * b->at[param]);
	void *const narrow = scratch(s, step, t->gradient), *const dy = data(s, at, RFL_PLAN_DY);
	float *sums = scratch(s, step, t->partials);
	int64_t rows, columns, chunks = t->chunks;
	enum rfl_rc rc;

	rfl_plan_matrix(s->plan, at->node, &rows, &columns);
	rc = rfl_conv_run(b->cudnn, &t->conv, data(s, at, RFL_PLAN_X), narrow ? narrow : gradient,
			  dy, NULL, scratch(s, step, t->workspace), err);
	if (rc == RFL_OK && narrow)
		rc = LAUNCH(b, err, widen, .n = b->net->params[param].numel, .type = b->type,
			    .from = narrow, .y = gradient);
	if (rc != RFL_OK || !sums)
		return rc;
	rc = LAUNCH(b, err, column_partials, .n = chunks * columns, .type = b->type, .rows = rows,
		    .columns = columns, .chunks = chunks, .x = dy, .partials = sums);
	if (rc == RFL_OK)
		rc = fold(b, &sums, &chunks, columns, err);
	if (rc == RFL_OK)
		rc = LAUNCH(b, err, column_totals, .n = columns, .chunks = chunks, .partials = sums,
			    .y = rfl_cuda__floats(s, at, bias_kind(at), b->gradients));
	return rc;
}

static enum rfl_rc run_weighted(struct rfl_session *s, int step, struct rfl_err *err)
{
	return s->plan->steps[step].pass == RFL_PLAN_WGRAD ? weighted_gradient(s, step, err)
							   : weighted(s, step, err);
}

/* ---- batch norm ---- */

static bool running(const struct rfl_session *s)
{
	return !s->plan->setup.training || s->plan->setup.frozen;
}

static enum rfl_rc norm_forward(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const struct rfl_batch_norm *const bn = &node_of(s, at)->attr.batch_norm;
	const rfl_cuda_address value = s->b->part[RFL_PART_VALUE];
	const void *const x = data(s, at, RFL_PLAN_X);
	const int32_t type = (int32_t)s->b->type;
	int64_t rows, columns, chunks = s->tasks[step].chunks;
	float *sums = scratch(s, step, s->tasks[step].partials), *const slope = scratch(
									 s, step,
									 s->tasks[step].factors);
	enum rfl_rc rc = RFL_OK;

	rfl_plan_matrix(s->plan, at->node, &rows, &columns);
	if (!running(s)) {
		rc = LAUNCH(s->b, err, norm_partials, .n = chunks * columns, .type = type,
			    .rows = rows, .columns = columns, .chunks = chunks, .x = x,
			    .partials = sums);
		if (rc == RFL_OK)
			rc = fold(s->b, &sums, &chunks, 2 * columns, err);
	}
	if (rc == RFL_OK)
		rc = LAUNCH(
			s->b, err, norm_finish, .n = columns, .type = type, .running = running(s),
			.rows = rows, .chunks = chunks, .eps = (float)bn->eps,
			.momentum = (float)bn->momentum, .x = x, .partials = sums,
			.gamma = rfl_cuda__floats(s, at, RFL_PARAM_NORM_WEIGHT, value),
			.beta = rfl_cuda__floats(s, at, RFL_PARAM_NORM_BIAS, value),
			.mean = data(s, at, RFL_PLAN_MEAN),
			.inverse = data(s, at, RFL_PLAN_INVERSE),
			.running_mean = rfl_cuda__floats(s, at, RFL_PARAM_RUNNING_MEAN, value),
			.running_variance = rfl_cuda__floats(s, at, RFL_PARAM_RUNNING_VAR, value),
			.slope = slope, .shift = slope + columns);
	if (rc == RFL_OK)
		rc = LAUNCH(s->b, err, norm_apply, .n = rows * columns, .type = type,
			    .activation = at->activation, .columns = columns, .x = x,
			    .residual = data(s, at, RFL_PLAN_OTHER), .slope = slope,
			    .shift = slope + columns, .y = data(s, at, RFL_PLAN_Y),
			    .mask = data(s, at, RFL_PLAN_MASK));
	return rc;
}

static enum rfl_rc norm_backward(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	struct rfl_backend *const b = s->b;
	const void *const x = data(s, at, RFL_PLAN_X), *const dy = data(s, at, RFL_PLAN_DY),
			  *const dy2 = data(s, at, RFL_PLAN_DY2);
	const uint8_t *const mask = data(s, at, RFL_PLAN_MASK);
	void *const g = data(s, at, RFL_PLAN_DOTHER), *const dx = data(s, at, RFL_PLAN_DX);
	const float *const mean = data(s, at, RFL_PLAN_MEAN);
	const int32_t type = (int32_t)b->type;
	int64_t rows, columns, chunks = s->tasks[step].chunks;
	float *sums = scratch(s, step, s->tasks[step].partials), *const scale = scratch(
									 s, step,
									 s->tasks[step].factors);
	enum rfl_rc rc;

	rfl_plan_matrix(s->plan, at->node, &rows, &columns);
	rc = LAUNCH(b, err, norm_gradient_partials, .n = chunks * columns, .type = type,
		    .rows = rows, .columns = columns, .chunks = chunks, .x = x, .dy = dy,
		    .dy2 = dy2, .mask = mask, .mean = mean, .g = g, .partials = sums);
	if (rc == RFL_OK)
		rc = fold(b, &sums, &chunks, 2 * columns, err);
	if (rc == RFL_OK)
		rc = LAUNCH(b, err, norm_gradient_finish, .n = columns, .running = running(s),
			    .rows = rows, .chunks = chunks, .partials = sums,
			    .gamma = rfl_cuda__floats(s, at, RFL_PARAM_NORM_WEIGHT,
						      b->part[RFL_PART_VALUE]),
			    .mean = mean, .inverse = data(s, at, RFL_PLAN_INVERSE),
			    .dgamma = rfl_cuda__floats(s, at, RFL_PARAM_NORM_WEIGHT, b->gradients),
			    .dbeta = rfl_cuda__floats(s, at, RFL_PARAM_NORM_BIAS, b->gradients),
			    .scale = scale, .slope = scale + columns, .shift = scale + 2 * columns);
	if (rc == RFL_OK && dx)
		rc = LAUNCH(b, err, norm_gradient_apply, .n = rows * columns, .type = type,
			    .columns = columns, .x = x, .dy = g ? g : dy, .dy2 = g ? NULL : dy2,
			    .mask = g ? NULL : mask, .scale = scale, .slope = scale + columns,
			    .shift = scale + 2 * columns, .dx = dx);
	return rc;
}

static enum rfl_rc run_norm(struct rfl_session *s, int step, struct rfl_err *err)
{
	if (s->tasks[step].norm >= 0 && s->norms[s->tasks[step].norm].used)
		return rfl_cuda__run_norm(s, step, err);
	return s->plan->steps[step].pass == RFL_PLAN_FORWARD ? norm_forward(s, step, err)
							     : norm_backward(s, step, err);
}

/* ---- pooling ---- */

static struct rfl_kernel_window window_of(const struct rfl_session *s,
					  const struct rfl_plan_step *at)
{
	const struct rfl_plan_window g = rfl_plan_window(s->plan, at->node);
	const struct rfl_node *node = node_of(s, at);
	const struct rfl_shape *in = &s->plan->net->nodes[node->input[0]].shape,
			       *out = &node->shape;
	struct rfl_kernel_window w = { .samples = s->plan->setup.batch,
				       .columns = in->dim[0],
				       .unequal = g.unequal,
				       .exclude_padding = g.exclude_padding };

	for (int i = 0; i < 2; i++) {
		w.in[i] = (int32_t)in->dim[1 + i];
		w.out[i] = out->ndim == 3 ? (int32_t)out->dim[1 + i] : 1;
		w.kernel[i] = (int32_t)g.kernel[i];
		w.stride[i] = (int32_t)g.stride[i];
		w.dilation[i] = (int32_t)g.dilation[i];
		w.pad[i] = (int32_t)g.before[i];
	}
	return w;
}

static enum rfl_rc run_pool(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const bool forward = at->pass == RFL_PLAN_FORWARD,
		   maximum = rfl_plan_window(s->plan, at->node).maximum;
	const struct rfl_kernel_window w = window_of(s, at);
	const int32_t type = (int32_t)s->b->type;
	const int64_t n = count(s, at, forward ? RFL_PLAN_Y : RFL_PLAN_DX);
	void *const places = data(s, at, RFL_PLAN_SAVED);
	const void *const x = data(s, at, RFL_PLAN_X), *const dy = data(s, at, RFL_PLAN_DY);
	void *const y = data(s, at, RFL_PLAN_Y), *const dx = data(s, at, RFL_PLAN_DX);

	if (forward && maximum)
		return LAUNCH(s->b, err, max_pool, .n = n, .type = type, .window = w, .x = x,
			      .y = y, .places = places);
	if (forward)
		return LAUNCH(s->b, err, average_pool, .n = n, .type = type, .window = w, .x = x,
			      .y = y);
	if (maximum)
		return LAUNCH(s->b, err, max_pool_gradient, .n = n, .type = type, .window = w,
			      .dy = dy, .places = places, .dx = dx);
	return LAUNCH(s->b, err, average_pool_gradient, .n = n, .type = type, .window = w, .dy = dy,
		      .dx = dx);
}

/* ---- elementwise ---- */

static enum rfl_element_op element_op(const struct rfl_node *node)
{
	switch (node->op) {
	case RFL_OP_RELU:
		return RFL_E_RELU;
	case RFL_OP_RELU6:
		return RFL_E_RELU6;
	case RFL_OP_SIGMOID:
		return RFL_E_SIGMOID;
	case RFL_OP_TANH:
		return RFL_E_TANH;
	case RFL_OP_SILU:
		return RFL_E_SILU;
	case RFL_OP_MISH:
		return RFL_E_MISH;
	case RFL_OP_GELU:
		return node->attr.gelu.tanh ? RFL_E_GELU_TANH : RFL_E_GELU;
	case RFL_OP_HARD_SIGMOID:
		return RFL_E_HARD_SIGMOID;
	case RFL_OP_HARD_SWISH:
		return RFL_E_HARD_SWISH;
	default:
		return RFL_E_AFFINE;
	}
}

static enum rfl_rc elements(const struct rfl_session *s, enum rfl_element_op op, int64_t n,
			    const void *a, const void *b, void *y, struct rfl_err *err)
{
	return LAUNCH(s->b, err, elements, .n = n, .type = s->b->type, .op = op, .a = a, .b = b,
		      .y = y);
}

static enum rfl_rc run_activation(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const struct rfl_node *const node = node_of(s, at);
	const void *const x = data(s, at, RFL_PLAN_X), *const result = data(s, at, RFL_PLAN_Y);
	const void *const dy = data(s, at, RFL_PLAN_DY);
	void *const y = data(s, at, forward ? RFL_PLAN_Y : RFL_PLAN_DX);
	const int64_t n = count(s, at, forward ? RFL_PLAN_Y : RFL_PLAN_DX);
	enum rfl_element_op op = element_op(node);

	if (node->op == RFL_OP_AFFINE)
		return LAUNCH(s->b, err, elements, .n = n, .type = s->b->type, .op = op,
			      .a = forward ? x : dy, .y = y,
			      .scale = (float)node->attr.affine.scale,
			      .shift = forward ? (float)node->attr.affine.shift : 0);
	if (forward)
		return elements(s, op, n, x, NULL, y, err);
	if (at->activation != RFL_PLAN_NONE) /* also of one that is fused into another node */
		op = at->activation == RFL_PLAN_RELU ? RFL_E_RELU : RFL_E_RELU6;
	return elements(s, op + RFL_E_RELU_GRADIENT - RFL_E_RELU, n, result ? result : x, dy, y,
			err);
}

static enum rfl_rc run_add(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const enum rfl_plan_slot to = forward ? RFL_PLAN_Y : RFL_PLAN_DX;

	return elements(s, RFL_E_ADD, count(s, at, to),
			data(s, at, forward ? RFL_PLAN_X : RFL_PLAN_DY),
			data(s, at, forward ? RFL_PLAN_OTHER : RFL_PLAN_DY2), data(s, at, to), err);
}

static enum rfl_rc scale_rows(const struct rfl_session *s, int64_t n, int64_t rows, int64_t columns,
			      const void *x, const void *factor, void *y, struct rfl_err *err)
{
	return LAUNCH(s->b, err, scale_rows, .n = n, .type = s->b->type, .rows = rows,
		      .columns = columns, .x = x, .factor = factor, .y = y);
}

static enum rfl_rc run_multiply(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const int64_t n = count(s, at, RFL_PLAN_X), samples = s->plan->setup.batch,
		      factors = count(s, at, RFL_PLAN_OTHER), columns = factors / samples,
		      rows = n / samples / columns;
	const bool equal = n == factors;
	const void *const x = data(s, at, RFL_PLAN_X), *const other = data(s, at, RFL_PLAN_OTHER),
			  *const dy = data(s, at, RFL_PLAN_DY);
	void *const y = data(s, at, RFL_PLAN_Y), *const dx = data(s, at, RFL_PLAN_DX),
		    *const dother = data(s, at, RFL_PLAN_DOTHER);
	enum rfl_rc rc = RFL_OK;

	if (at->pass == RFL_PLAN_FORWARD)
		return equal ? elements(s, RFL_E_MULTIPLY, n, x, other, y, err)
			     : scale_rows(s, n, rows, columns, x, other, y, err);
	/* first the gradient of the factor: the other may lie over dy */
	if (dother && equal)
		rc = elements(s, RFL_E_MULTIPLY, n, x, dy, dother, err);
	else if (dother)
		rc = LAUNCH(s->b, err, scale_rows_gradient, .n = factors, .type = s->b->type,
			    .rows = rows, .columns = columns, .x = x, .dy = dy, .y = dother);
	if (rc != RFL_OK || !dx)
		return rc;
	return equal ? elements(s, RFL_E_MULTIPLY, n, other, dy, dx, err)
		     : scale_rows(s, n, rows, columns, dy, other, dx, err);
}

/* ---- copies ---- */

static enum rfl_rc run_columns(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const enum rfl_plan_slot in = forward ? RFL_PLAN_X : RFL_PLAN_DY,
				 out = forward ? RFL_PLAN_Y : RFL_PLAN_DX;
	void *const y = data(s, at, out);
	int64_t rows, columns;
	enum rfl_rc rc = RFL_OK;

	rfl_plan_matrix(s->plan, at->node, &rows, &columns);
	if (at->zero)
		rc = QUEUE(s->b, fill, err, (rfl_cuda_address)(uintptr_t)y, 0,
			   (size_t)rfl_plan_size(s->plan, at, out), s->b->stream);
	if (rc == RFL_OK)
		rc = LAUNCH(s->b, err, columns, .n = rows * at->columns, .type = s->b->type,
			    .add = at->add, .columns = at->columns,
			    .x_stride = count(s, at, in) / rows, .from = at->from,
			    .y_stride = count(s, at, out) / rows, .to = at->to,
			    .x = data(s, at, in), .y = y);
	return rc;
}

static enum rfl_rc run_shuffle(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	int64_t rows, columns;

	rfl_plan_matrix(s->plan, at->last, &rows, &columns);
	return LAUNCH(s->b, err, shuffle, .n = rows * columns, .type = s->b->type,
		      .columns = columns, .groups = at->groups,
		      .x = data(s, at, forward ? RFL_PLAN_X : RFL_PLAN_DY),
		      .y = data(s, at, forward ? RFL_PLAN_Y : RFL_PLAN_DX));
}

static enum rfl_rc run_dropout(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const bool forward = at->pass == RFL_PLAN_FORWARD;
	const double probability = node_of(s, at)->attr.dropout.probability;
	const int64_t units = rfl_plan_size(s->plan, at, RFL_PLAN_MASK);
	const int64_t n = count(s, at, forward ? RFL_PLAN_Y : RFL_PLAN_DX);
	uint8_t *const mask = data(s, at, RFL_PLAN_MASK);

	if (forward)
		return LAUNCH(s->b, err, dropout, .n = n, .type = s->b->type, .each = n / units,
			      .probability = probability,
			      .key = s->b->seed ^ (uint64_t)at->node << 32,
			      .state = rfl_cuda__pointer(s->b->state), .x = data(s, at, RFL_PLAN_X),
			      .mask = mask, .y = data(s, at, RFL_PLAN_Y));
	return LAUNCH(s->b, err, dropout_gradient, .n = n, .type = s->b->type, .each = n / units,
		      .probability = probability, .mask = mask, .dy = data(s, at, RFL_PLAN_DY),
		      .dx = data(s, at, RFL_PLAN_DX));
}

/* ---- the ends of a pass ---- */

/* Not part of a recording: what changes from pass to pass. */
static enum rfl_rc run_input(struct rfl_session *s, int step, const struct rfl_session_call *call,
			     struct rfl_err *err)
{
	struct rfl_backend *const b = s->b;
	enum rfl_rc rc = RFL_OK;

	if (b->stale && b->values)
		rc = LAUNCH(b, err, narrow, .n = (int64_t)b->floats, .type = b->type,
			    .from = rfl_cuda__pointer(b->part[RFL_PART_VALUE]),
			    .y = rfl_cuda__pointer(b->values));
	b->stale = b->stale && rc != RFL_OK;
	if (rc == RFL_OK)
		rc = LAUNCH(b, err, begin, .n = 1, .counter = call->counter,
			    .attempts = call->update - 1,
			    .scale = b->restart_scaling && b->type == RFL_VALUE_F16 ? FIRST_SCALE
										    : 0,
			    .state = rfl_cuda__pointer(b->state));
	b->restart_scaling = b->restart_scaling && rc != RFL_OK;
	return rc == RFL_OK ? rfl_cuda__take_batch(b, call->batch,
						   data(s, &s->plan->steps[step], RFL_PLAN_Y), err)
			    : rc;
}

/* Whether each row is correct, after the losses of all rows. */
static uint8_t *correct_of(const struct rfl_backend *b)
{
	return rfl_cuda__pointer(b->losses + 4 * (rfl_cuda_address)b->max_batch);
}

enum rfl_rc rfl_cuda__run_loss(struct rfl_session *s, int step, double weight, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	struct rfl_backend *const b = s->b;

	return LAUNCH(b, err, loss, .n = s->plan->setup.batch, .type = b->type,
		      .classes = s->plan->net->classes, .logits = data(s, at, RFL_PLAN_X),
		      .labels = rfl_cuda__pointer(b->labels), .weight = at->weight * weight,
		      .state = rfl_cuda__pointer(b->state), .gradient = data(s, at, RFL_PLAN_DX),
		      .losses = rfl_cuda__pointer(b->losses), .correct = correct_of(b));
}

static enum rfl_rc run_loss(struct rfl_session *s, int step, struct rfl_err *err)
{
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	struct rfl_backend *const b = s->b;
	enum rfl_rc rc = rfl_cuda__run_loss(s, step, 1, err);
	bool first = true;

	for (int i = 0; i < step; i++)
		first &= s->plan->steps[i].op != RFL_PLAN_LOSS;
	if (rc == RFL_OK)
		rc = LAUNCH(b, err, totals, .n = 1, .rows = s->plan->setup.batch,
			    .weight = at->weight, .first = first,
			    .last = step == s->plan->nforward - 1,
			    .losses = rfl_cuda__pointer(b->losses), .correct = correct_of(b),
			    .state = rfl_cuda__pointer(b->state));
	return rc;
}

/* ---- the table ---- */

typedef enum rfl_rc run_fn(struct rfl_session *s, int step, struct rfl_err *err);

static run_fn *const operations[RFL_PLAN_OP_COUNT] = {
	[RFL_PLAN_CONV] = run_weighted,   [RFL_PLAN_LINEAR] = run_weighted,
	[RFL_PLAN_NORM] = run_norm,       [RFL_PLAN_ACTIVATION] = run_activation,
	[RFL_PLAN_ADD] = run_add,         [RFL_PLAN_MULTIPLY] = run_multiply,
	[RFL_PLAN_POOL] = run_pool,       [RFL_PLAN_COLUMNS] = run_columns,
	[RFL_PLAN_SHUFFLE] = run_shuffle, [RFL_PLAN_DROPOUT] = run_dropout,
	[RFL_PLAN_LOSS] = run_loss,
};

enum rfl_rc rfl_cuda__run(struct rfl_session *s, int step, const struct rfl_session_call *call,
			  struct rfl_err *err)
{
	const enum rfl_plan_op op = s->plan->steps[step].op;

	return op == RFL_PLAN_INPUT ? run_input(s, step, call, err) : operations[op](s, step, err);
}
