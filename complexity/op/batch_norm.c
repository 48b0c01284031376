/*
 * batch_norm.c - batch normalisation over samples and positions, per channel.
 *
 * n elements, C channels. These are the operations of the formulas, with what depends on the
 * channel alone taken together and computed once; a library may take more. A sum of k terms is
 * k - 1 add, so the sums over each channel are n - C.
 *
 * Forward with running statistics (inference): scale = gamma * (1 / sqrt(var + eps)) and
 * shift = beta - mean * scale per channel, then y = x * scale + shift:
 *	n add, n mul; per channel 2 add, 2 mul, 2 special (square root, division).
 *
 * Forward with batch statistics (training): mean (n - C add), variance (n add to subtract it, n mul
 * to square, n - C add) and the same transform (n mul, n add); per channel on top of the inference
 * terms: mean, variance and unbiased variance are sums times a constant (3 mul), and each of the
 * two running averages is m * new + (1 - m) * old (1 add, 2 mul):
 *	4 n + 2 C add, 2 n + 9 C mul, 2 C special.
 *
 * Backward:
 *	wgrad  sum(dy) and sum((x - mean) * dy): 3 n - 2 C add, n mul; per channel 1 mul. With
 *	       frozen parameters dgrad by batch statistics needs the same sums: they count there.
 *	dgrad  ((dy - mean(dy)) - (x - mean) * k) * scale: 3 n add, 2 n mul; per channel 5 mul
 *	       (mean(dy) 1; k = sum((x - mean) * dy) / (n / C) / (var + eps) 3; scale 1).
 *	       With running statistics: dy * scale, n mul and per channel 1 mul.
 *
 * fvcore and DeepSpeed charge 2 per element in inference and 5 in training, forward.
 *
 * Traffic, unfused: inference R X, W Y; training 2 R X (statistics, then transform), W Y; backward
 * R X, R dY for the sums and again R X, R dY, W dX for the gradient. Fused: inference folds into
 * the convolution before it and leaves one shift per channel; training takes the sums in the
 * epilogue of the operation before it and normalises in the prologue of the one after it (Jung et
 * al., "Restructuring Batch Normalization to Accelerate CNN Training", MLSys 2019), so only the
 * backward pass reads X again, once for the sums and once for the gradient.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_op_need_image(in, err);

	return rc != RFL_OK ? rc : rfl_op_same_shape(node, in, out, err);
}

static int params(const struct rfl_node *node, struct rfl_op_param *out)
{
	static const struct rfl_op_param rows[] = {
		{ .suffix = "weight", .kind = RFL_PARAM_NORM_WEIGHT, .ndim = 1 },
		{ .suffix = "bias", .kind = RFL_PARAM_NORM_BIAS, .ndim = 1 },
		{ .suffix = "running_mean", .kind = RFL_PARAM_RUNNING_MEAN, .ndim = 1 },
		{ .suffix = "running_var", .kind = RFL_PARAM_RUNNING_VAR, .ndim = 1 },
	};

	for (int i = 0; i < 4; i++) {
		out[i] = rows[i];
		out[i].dim[0] = node->attr.batch_norm.channels;
	}
	return 4;
}

/* times n per element plus times per channel */
static int64_t both(struct rfl_cost_context *c, int64_t per_element, int64_t per_channel)
{
	return rfl_cost_add(c, rfl_cost_mul(c, per_element, c->in),
			    rfl_cost_mul(c, per_channel, c->node->attr.batch_norm.channels));
}

/* The sums are the parameters' gradients, and with batch statistics the input's needs them too. */
static bool needs_sums(const struct rfl_cost_context *c)
{
	return c->needs_wgrad || (c->needs_dgrad && c->options->training);
}

static enum rfl_pass sums_pass(const struct rfl_cost_context *c)
{
	return c->needs_wgrad ? RFL_PASS_WGRAD : RFL_PASS_DGRAD;
}

static void elementwise(struct rfl_cost_context *c, struct rfl_elementwise *e)
{
	bool training = c->options->training;

	e[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = training ? both(c, 4, 2) : both(c, 1, 2),
		.mul = training ? both(c, 2, 9) : both(c, 1, 2),
		.special = both(c, 0, 2),
	};
	if (c->needs_dgrad && training)
		e[RFL_PASS_DGRAD] =
			(struct rfl_elementwise){ .add = both(c, 3, 0), .mul = both(c, 2, 5) };
	else if (c->needs_dgrad)
		e[RFL_PASS_DGRAD].mul = both(c, 1, 1);
	if (needs_sums(c)) {
		struct rfl_elementwise *sums = &e[sums_pass(c)];

		sums->add = rfl_cost_add(c, sums->add, both(c, 3, -2));
		sums->mul = rfl_cost_add(c, sums->mul, both(c, 1, 1));
	}
}

/* Reads so many tensors of n elements: X, and dY where it does not ride. */
static void sums(struct rfl_cost_context *c, int64_t tensors, struct rfl_traffic *t)
{
	int64_t channels = c->node->attr.batch_norm.channels;

	t = &t[sums_pass(c)];
	rfl_cost_read(c, t, c->in, tensors * c->value_bytes);
	rfl_cost_read(c, t, channels, 2 * c->param_bytes);
	rfl_cost_write(c, t, channels, 2 * c->param_bytes);
}

/* Every kernel of its own. Statistics are stored like the parameters. */
static void unfused(struct rfl_cost_context *c, struct rfl_traffic *t)
{
	int64_t channels = c->node->attr.batch_norm.channels;
	bool training = c->options->training;

	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->in, (training ? 2 : 1) * c->value_bytes);
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], channels, 4 * c->param_bytes);
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (training) /* running statistics, and the batch's own for the backward pass */
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], channels, 4 * c->param_bytes);

	if (needs_sums(c))
		sums(c, 2, t);
	if (!c->needs_dgrad)
		return;
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->in, (training ? 2 : 1) * c->value_bytes);
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], channels, (training ? 5 : 2) * c->param_bytes);
	rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
}

static void fused(struct rfl_cost_context *c, struct rfl_traffic *t)
{
	int64_t channels = c->node->attr.batch_norm.channels;
	bool training = c->options->training;

	if (!training) { /* folded: one shift per channel is left */
		rfl_cost_read(c, &t[RFL_PASS_FORWARD], channels, c->param_bytes);
	} else {
		rfl_cost_read(c, &t[RFL_PASS_FORWARD], channels, 4 * c->param_bytes);
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], channels, 4 * c->param_bytes);
	}
	if (c->input_shared)
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (needs_sums(c))
		sums(c, 1, t);
	if (!c->needs_dgrad)
		return;
	if (training)
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], channels, (training ? 5 : 2) * c->param_bytes);
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	elementwise(c, cost->elementwise);
	unfused(c, cost->traffic[RFL_FUSION_UNFUSED]);
	if (c->rides)
		fused(c, cost->traffic[RFL_FUSION_FUSED]);
	else
		unfused(c, cost->traffic[RFL_FUSION_FUSED]);
}

/* The input, and in training mean and 1 / deviation of the batch; running statistics are there
 * anyway. */
static int saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t channels = c->node->attr.batch_norm.channels;
	int n;

	if (!c->needs_dgrad && !c->needs_wgrad)
		return 0;
	n = rfl_op_save_operand(c, 0, out, 0);
	if (!c->options->training)
		return n;
	return rfl_op_save_bytes(RFL_SAVED_STATISTICS,
				 rfl_cost_mul(c, channels, 2 * rfl_op_statistic_bytes(c)), out, n);
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(INT, batch_norm, channels, .min = 1, .inferred = true),
	RFL_OP_ATTR(REAL, batch_norm, eps, .def = 1e-5),
	RFL_OP_ATTR(REAL, batch_norm, momentum, .def = 0.1),
};

const struct rfl_op_info rfl_op_batch_norm = {
	.name = "batch_norm",
	.module = "BatchNorm2d",
	.autograd = "NativeBatchNormBackward0",
	.rides = true,
	.infer = infer,
	.params = params,
	.cost = cost,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = saved,
};
