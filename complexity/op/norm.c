/*
 * norm.c - layer norm and RMS norm over the last dimension; batch normalisation over samples and
 * positions, per channel.
 */
#include "complexity/op/parts.h"

/* Parameters of `size` elements each. */
static int fill_params(int n, int64_t size, struct rfl_op_param *out)
{
	static const struct rfl_op_param rows[] = {
		{ .suffix = "weight", .kind = RFL_PARAM_NORM_WEIGHT, .ndim = 1 },
		{ .suffix = "bias", .kind = RFL_PARAM_NORM_BIAS, .ndim = 1 },
		{ .suffix = "running_mean", .kind = RFL_PARAM_RUNNING_MEAN, .ndim = 1 },
		{ .suffix = "running_var", .kind = RFL_PARAM_RUNNING_VAR, .ndim = 1 },
	};

	for (int i = 0; i < n; i++) {
		out[i] = rows[i];
		out[i].dim[0] = size;
	}
	return n;
}

/*
 * Layer norm and RMS norm.
 *
 * n elements in r rows of d; x^ the normalised input, w the weight, b the bias. Sums of k terms are
 * k - 1 add; what depends on the row alone is computed once. A root and a division make 1 / root.
 *
 * Layer norm. Forward: mean (n - r add, r mul), x - mean (n add), variance (n mul, n - r add,
 * r mul), 1 / sqrt(var + eps) (r add, 2 r special), times it (n mul), times w plus b (n mul, n
 * add):
 *	4 n - r add, 3 n + 2 r mul, 2 r special
 * dgrad: x^ again (n add, n mul), g = dY w (n mul), the row's sums of g and g x^ (2 n - 2 r add,
 * n mul), (g - sum g / d - x^ sum(g x^) / d) / root (2 n add, 2 n mul, 2 r mul):
 *	5 n - 2 r add, 5 n + 2 r mul
 * wgrad: x^ again (n add, n mul), dw = sum(dY x^) (n mul, n - d add), db = sum(dY) (n - d add):
 *	3 n - 2 d add, 2 n mul
 *
 * RMS norm. Forward: mean of squares (n mul, n - r add, r mul), 1 / sqrt(. + eps) (r add, 2 r
 * special), times it and w (2 n mul):
 *	n add, 3 n + r mul, 2 r special
 * dgrad: g = dY w (n mul), sum(g x) (n mul, n - r add), (g - x sum(g x) / (d root^2)) / root
 * (3 r mul; 2 n mul, n add):
 *	2 n - r add, 4 n + 3 r mul
 * wgrad: dw = sum(dY x / root):
 *	n - d add, 2 n mul
 *
 * Traffic, unfused, one kernel for each pass as in PyTorch on a GPU: forward R X, parameters, W Y
 * and in training the row's statistics in F32; dgrad R X, dY, w, statistics, W dX; wgrad R X, dY,
 * statistics, W gradients. Fused: it rides; backward, one sweep over X serves both gradients, since
 * all sums lie within a row.
 */

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_norm *a = &node->attr.norm;

	if (in->ndim < 1 || in->dim[in->ndim - 1] != a->features)
		return rfl_fail(err, RFL_EINVAL, 0,
				"normalises %lld features, but the input has %lld",
				(long long)a->features,
				(long long)(in->ndim < 1 ? 0 : in->dim[in->ndim - 1]));
	*out = *in;
	return RFL_OK;
}

static int params(const struct rfl_node *node, struct rfl_op_param *out)
{
	return fill_params(node->op == RFL_OP_LAYER_NORM ? 2 : 1, node->attr.norm.features, out);
}

/* Counts of one pass: times elements, times rows, times features. */
struct counts {
	struct rfl_elementwise element, row, feature;
};

struct norm {
	int64_t params, statistics; /* per feature, per row */
	struct counts forward, dgrad, wgrad;
};

static const struct norm layer = {
	.params = 2,
	.statistics = 2,
	.forward = { .element = { .add = 4, .mul = 3 },
		     .row = { .add = -1, .mul = 2, .special = 2 } },
	.dgrad = { .element = { .add = 5, .mul = 5 }, .row = { .add = -2, .mul = 2 } },
	.wgrad = { .element = { .add = 3, .mul = 2 }, .feature = { .add = -2 } },
};

static const struct norm rms = {
	.params = 1,
	.statistics = 1,
	.forward = { .element = { .add = 1, .mul = 3 }, .row = { .mul = 1, .special = 2 } },
	.dgrad = { .element = { .add = 2, .mul = 4 }, .row = { .add = -1, .mul = 3 } },
	.wgrad = { .element = { .add = 1, .mul = 2 }, .feature = { .add = -1 } },
};

static int64_t rows_of(const struct rfl_cost_context *c)
{
	return c->in / c->node->attr.norm.features;
}

static void count(struct rfl_cost_context *c, const struct counts *counts,
		  struct rfl_elementwise *e)
{
	rfl_op_add_elementwise(c, e, &counts->element, c->in);
	rfl_op_add_elementwise(c, e, &counts->row, rows_of(c));
	rfl_op_add_elementwise(c, e, &counts->feature, c->node->attr.norm.features);
}

/* What one pass reads but dY and writes but its own gradients. */
static void read_back(struct rfl_cost_context *c, const struct norm *norm, struct rfl_traffic *t)
{
	rfl_cost_read(c, t, c->in, c->value_bytes);
	rfl_cost_read(c, t, rows_of(c), norm->statistics * rfl_op_statistic_bytes(c));
}

static void small_traffic(struct rfl_cost_context *c, const struct norm *norm,
			  struct rfl_traffic *t)
{
	int64_t features = c->node->attr.norm.features;

	rfl_cost_read(c, &t[RFL_PASS_FORWARD], features, norm->params * c->param_bytes);
	if (c->options->training)
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], rows_of(c),
			       norm->statistics * rfl_op_statistic_bytes(c));
	if (c->needs_dgrad) {
		read_back(c, norm, &t[RFL_PASS_DGRAD]);
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], features, c->param_bytes);
	}
	if (c->needs_wgrad)
		rfl_cost_write(c, &t[RFL_PASS_WGRAD], features, norm->params * c->param_bytes);
}

static void norm_cost(struct rfl_cost_context *c, const struct norm *norm, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];

	small_traffic(c, norm, u);
	count(c, &norm->forward, &cost->elementwise[RFL_PASS_FORWARD]);
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad) {
		count(c, &norm->dgrad, &cost->elementwise[RFL_PASS_DGRAD]);
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, c->value_bytes);
	}
	if (c->needs_wgrad) {
		count(c, &norm->wgrad, &cost->elementwise[RFL_PASS_WGRAD]);
		read_back(c, norm, &u[RFL_PASS_WGRAD]);
		rfl_cost_read(c, &u[RFL_PASS_WGRAD], c->out, c->value_bytes);
	}
	if (!c->rides) {
		rfl_op_ride_not(cost);
		return;
	}
	small_traffic(c, norm, f);
	if (c->input_shared)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_wgrad && !c->needs_dgrad)
		read_back(c, norm, &f[RFL_PASS_WGRAD]);
}

static void layer_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	norm_cost(c, &layer, cost);
}

static void rms_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	norm_cost(c, &rms, cost);
}

/* The input, mean and 1 / deviation of each row. */
static int layer_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t rows = rows_of(c);

	if (!c->needs_dgrad && !c->needs_wgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_STATISTICS,
				 rfl_cost_mul(c, rows, 2 * rfl_op_statistic_bytes(c)), out,
				 rfl_op_save_operand(c, 0, out, 0));
}

/* The input and 1 / root of each row. On a CPU it is composed of steps: the normalised tensor is
 * kept too when there is a weight to train, and without dgrad nothing else. */
static int rms_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t rows = rows_of(c);
	int n = 0;

	if (c->needs_dgrad || (c->needs_wgrad && !c->on_cpu)) {
		n = rfl_op_save_operand(c, 0, out, n);
		n = rfl_op_save_bytes(RFL_SAVED_STATISTICS,
				      rfl_cost_mul(c, rows, rfl_op_statistic_bytes(c)), out, n);
	}
	if (c->needs_wgrad && c->on_cpu)
		n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, rfl_cost_mul(c, c->in, c->value_bytes),
				      out, n);
	return n;
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(INT, norm, features, .min = 1, .inferred = true),
	RFL_OP_ATTR(REAL, norm, eps, .def = 1e-5),
};

const struct rfl_op_info rfl_op_layer_norm = {
	.name = "layer_norm",
	.module = "LayerNorm",
	.autograd = "NativeLayerNormBackward0",
	.rides = true,
	.infer = infer,
	.params = params,
	.autocast = RFL_AUTOCAST_F32,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.cost = layer_cost,
	.saved = layer_saved,
};

const struct rfl_op_info rfl_op_rms_norm = {
	.name = "rms_norm",
	.module = "RMSNorm",
	.autograd = "FusedRmsNormBackward0",
	.rides = true,
	.infer = infer,
	.params = params,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.cost = rms_cost,
	.saved = rms_saved,
};

/*
 * Batch normalisation.
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

static enum rfl_rc batch_infer(const struct rfl_node *node, const struct rfl_shape *in,
			       struct rfl_shape *out, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_op_need_image(in, err);

	return rc != RFL_OK ? rc : rfl_op_same_shape(node, in, out, err);
}

static int batch_params(const struct rfl_node *node, struct rfl_op_param *out)
{
	return fill_params(4, node->attr.batch_norm.channels, out);
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
static void batch_unfused(struct rfl_cost_context *c, struct rfl_traffic *t)
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

static void batch_fused(struct rfl_cost_context *c, struct rfl_traffic *t)
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

static void batch_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	elementwise(c, cost->elementwise);
	batch_unfused(c, cost->traffic[RFL_FUSION_UNFUSED]);
	if (c->rides)
		batch_fused(c, cost->traffic[RFL_FUSION_FUSED]);
	else
		batch_unfused(c, cost->traffic[RFL_FUSION_FUSED]);
}

/* The input, and in training mean and 1 / deviation of the batch; running statistics are there
 * anyway. */
static int batch_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
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

static const struct rfl_op_attr batch_attrs[] = {
	RFL_OP_ATTR(INT, batch_norm, channels, .min = 1, .inferred = true),
	RFL_OP_ATTR(REAL, batch_norm, eps, .def = 1e-5),
	RFL_OP_ATTR(REAL, batch_norm, momentum, .def = 0.1),
};

const struct rfl_op_info rfl_op_batch_norm = {
	.name = "batch_norm",
	.module = "BatchNorm2d",
	.autograd = "NativeBatchNormBackward0",
	.rides = true,
	.infer = batch_infer,
	.params = batch_params,
	.cost = batch_cost,
	.attrs = batch_attrs,
	.nattrs = RFL_ARRAY_LEN(batch_attrs),
	.saved = batch_saved,
};
