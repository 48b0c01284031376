/*
 * norm.c - layer norm and RMS norm over the last dimension, and batch normalisation per channel
 * over samples and positions.
 */
#include "complexity/op/parts.h"

/*
 * Layer norm and RMS norm.
 *
 * n elements in r rows of d; x^ is the normalised input, w the weight, b the bias. A sum of k terms
 * takes k - 1 add; values that depend only on the row are computed once; 1 / root is 2 special.
 *
 * Layer norm. Forward: mean (n - r add, r mul), x - mean (n add), variance (n mul, n - r add, r
 * mul), 1 / sqrt(var + eps) (r add, 2 r special), their product (n mul), times w plus b (n mul, n
 * add).
 * dgrad: x^ again (n add, n mul), g = dY w (n mul), the row's sums of g and g x^ (2 n - 2 r add,
 * n mul), (g - sum g / d - x^ sum(g x^) / d) / root (2 n add, 2 n mul, 2 r mul).
 * wgrad: x^ again (n add, n mul), dw = sum(dY x^) (n mul, n - d add), db = sum(dY) (n - d add).
 *
 * RMS norm. Forward: mean of squares (n mul, n - r add, r mul), 1 / sqrt(. + eps) (r add, 2 r
 * special), times x and w (2 n mul).
 * dgrad: g = dY w (n mul), sum(g x) (n mul, n - r add), (g - x sum(g x) / (d root^2)) / root
 * (3 r mul; 2 n mul, n add).
 * wgrad: dw = sum(dY x / root) (n - d add, 2 n mul).
 *
 * Unfused, each pass is one kernel, as in PyTorch on a GPU. Fused, a single sweep over X computes
 * both gradients, since all sums are within a row.
 */

/* Weight and bias; for batch norms also the running statistics. */
static int params(const struct rfl_node *node, struct rfl_op_param *out)
{
	bool batch = node->op == RFL_OP_BATCH_NORM;
	int64_t n = batch ? node->attr.batch_norm.channels : node->attr.norm.features;

	out[0] = (struct rfl_op_param){ "weight", RFL_PARAM_NORM_WEIGHT, { 1, { n } } };
	out[1] = (struct rfl_op_param){ "bias", RFL_PARAM_NORM_BIAS, { 1, { n } } };
	out[2] = (struct rfl_op_param){ "running_mean", RFL_PARAM_RUNNING_MEAN, { 1, { n } } };
	out[3] = (struct rfl_op_param){ "running_var", RFL_PARAM_RUNNING_VAR, { 1, { n } } };
	return batch ? 4 : node->op == RFL_OP_LAYER_NORM ? 2 : 1;
}

/* Counts of one pass: multiples of the elements, rows and features. */
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

static void count(const struct rfl_cost_context *c, const struct counts *counts,
		  struct rfl_elementwise *e)
{
	rfl_op_add_elementwise(e, &counts->element, c->in);
	rfl_op_add_elementwise(e, &counts->row, rows_of(c));
	rfl_op_add_elementwise(e, &counts->feature, c->node->attr.norm.features);
}

/* The reads of one backward pass, except dY. */
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

static void norm_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct norm *norm = c->node->op == RFL_OP_LAYER_NORM ? &layer : &rms;
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	int64_t v = c->value_bytes;

	small_traffic(c, norm, u);
	count(c, &norm->forward, &cost->elementwise[RFL_PASS_FORWARD]);
	rfl_cost_move(c, &u[RFL_PASS_FORWARD], c->in, v, c->out, v);
	if (c->needs_dgrad) {
		count(c, &norm->dgrad, &cost->elementwise[RFL_PASS_DGRAD]);
		rfl_cost_move(c, &u[RFL_PASS_DGRAD], c->out, v, c->in, v);
	}
	if (c->needs_wgrad) {
		count(c, &norm->wgrad, &cost->elementwise[RFL_PASS_WGRAD]);
		read_back(c, norm, &u[RFL_PASS_WGRAD]);
		rfl_cost_read(c, &u[RFL_PASS_WGRAD], c->out, v);
	}
	if (!c->fused) {
		rfl_op_fuse_not(cost);
		return;
	}
	small_traffic(c, norm, f);
	if (c->input_shared)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], c->out, v);
	if (c->needs_wgrad && !c->needs_dgrad)
		read_back(c, norm, &f[RFL_PASS_WGRAD]);
}

/* Save the input and, per row, 1 / deviation and (layer norm only) the mean. On a CPU, an RMS norm
 * is composed of steps: with a trained weight, it also saves the normalised tensor, or without
 * dgrad only that. */
static void saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	bool rms_on_cpu = c->node->op == RFL_OP_RMS_NORM && c->on_cpu;
	int64_t size = (c->node->op == RFL_OP_LAYER_NORM ? 2 : 1) * rfl_op_statistic_bytes(c);

	if (c->needs_dgrad || (c->needs_wgrad && !rms_on_cpu)) {
		rfl_op_save_operand(c, 0, out);
		rfl_op_save(c, RFL_SAVED_STATISTICS, rows_of(c), size, out);
	}
	if (c->needs_wgrad && rms_on_cpu)
		rfl_op_save(c, RFL_SAVED_INTERNAL, c->in, c->value_bytes, out);
}

#define NORM(name_, module_, autograd_, ...)                                              \
	RFL_OP(name_, module_, autograd_, .fuses = true, .infer = rfl_op_same_shape,      \
	       .min_dims = 1, .needs = "features to normalise", .params = params,         \
	       .cost = norm_cost, .saved = saved,                                         \
	       RFL_OP_ATTRS(RFL_OP_ATTR(INT, norm, features, .min = 1, .inferred = true), \
			    RFL_OP_ATTR(REAL, norm, eps, .def = 1e-5)),                   \
	       __VA_ARGS__)

NORM(layer_norm, "LayerNorm", "NativeLayerNormBackward0", .autocast = RFL_AUTOCAST_F32);
NORM(rms_norm, "RMSNorm", "FusedRmsNormBackward0", .autocast = RFL_AUTOCAST_KEEP);

/*
 * Batch normalisation.
 *
 * n elements, C channels. Counts follow the formulas, with values that depend only on the channel
 * combined and computed once; a library may need more operations. A sum of k terms takes k - 1 add,
 * so the sums over all channels take n - C.
 *
 * Forward with running statistics (inference): scale = gamma * (1 / sqrt(var + eps)) and
 * shift = beta - mean * scale per channel, then y = x * scale + shift:
 *	n add, n mul; per channel 2 add, 2 mul, 2 special (square root, division).
 *
 * Forward with batch statistics (training): mean (n - C add), variance (n add to subtract the mean,
 * n mul to square, n - C add) and the same transform (n mul, n add); per channel, besides the
 * inference terms: mean, variance and unbiased variance are sums times a constant (3 mul), and each
 * of the two running averages is m * new + (1 - m) * old (1 add, 2 mul):
 *	4 n + 2 C add, 2 n + 9 C mul, 2 C special.
 *
 * Backward:
 *	wgrad  sum(dy) and sum((x - mean) * dy): 3 n - 2 C add, n mul; per channel 1 mul. With
 *	       frozen parameters, dgrad with batch statistics needs and counts these sums.
 *	dgrad  ((dy - mean(dy)) - (x - mean) * k) * scale: 3 n add, 2 n mul; per channel 5 mul
 *	       (mean(dy) 1; k = sum((x - mean) * dy) / (n / C) / (var + eps) 3; scale 1).
 *	       With running statistics: dy * scale, n mul and per channel 1 mul.
 *
 * fvcore and DeepSpeed count 2 per element forward in inference, and 5 in training.
 *
 * Traffic: in training, X is read twice (statistics, then transform), as are X and dY backward (for
 * the sums and for the gradient). Fused: in inference, it is folded into the previous convolution
 * except for one shift per channel; in training, sums are computed in the epilogue of the previous
 * operation and values normalised in the prologue of the next one (Jung et al., "Restructuring
 * Batch Normalization to Accelerate CNN Training", MLSys 2019), so only the backward pass reads X
 * again, for sums and gradient.
 */

/* If fused, it has no dY and no Y of its own. Statistics have the type of the parameters. */
static void batch_traffic(struct rfl_cost_context *c, bool fused, enum rfl_pass sums,
			  struct rfl_traffic *t)
{
	int64_t channels = c->node->attr.batch_norm.channels, v = c->value_bytes;
	int64_t param = c->param_bytes;
	bool training = c->options->training;
	struct rfl_traffic *forward = &t[RFL_PASS_FORWARD], *dgrad = &t[RFL_PASS_DGRAD];

	if (training) /* running statistics, and batch statistics for the backward pass */
		rfl_cost_move(c, forward, channels, 4 * param, channels, 4 * param);
	else /* folded if fused, except for one shift per channel */
		rfl_cost_read(c, forward, channels, (fused ? 1 : 4) * param);
	if (!fused)
		rfl_cost_read(c, forward, c->in, (training ? 2 : 1) * v);
	if (!fused || c->input_shared)
		rfl_cost_write(c, forward, c->out, v);
	if (sums < RFL_PASS_COUNT) {
		rfl_cost_read(c, &t[sums], c->in, (fused ? 1 : 2) * v);
		rfl_cost_move(c, &t[sums], channels, 2 * param, channels, 2 * param);
	}
	if (!c->needs_dgrad)
		return;
	if (!fused)
		rfl_cost_move(c, dgrad, c->in, (training ? 2 : 1) * v, c->in, v);
	else if (training)
		rfl_cost_read(c, dgrad, c->in, v);
	rfl_cost_read(c, dgrad, channels, (training ? 5 : 2) * param);
}

static void batch_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_elementwise *e = cost->elementwise;
	const int64_t n = c->in, channels = c->node->attr.batch_norm.channels;
	bool training = c->options->training;
	/* The sums are the parameters' gradients; dgrad with batch statistics needs them too. */
	enum rfl_pass sums = c->needs_wgrad               ? RFL_PASS_WGRAD
			     : c->needs_dgrad && training ? RFL_PASS_DGRAD
							  : RFL_PASS_COUNT;

	e[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = (training ? 4 * n : n) + 2 * channels,
		.mul = training ? 2 * n + 9 * channels : n + 2 * channels,
		.special = 2 * channels,
	};
	if (c->needs_dgrad) {
		e[RFL_PASS_DGRAD].add = training ? 3 * n : 0;
		e[RFL_PASS_DGRAD].mul = training ? 2 * n + 5 * channels : n + channels;
	}
	if (sums < RFL_PASS_COUNT) {
		e[sums].add += 3 * n - 2 * channels;
		e[sums].mul += n + channels;
	}
	batch_traffic(c, false, sums, cost->traffic[RFL_FUSION_UNFUSED]);
	batch_traffic(c, c->fused, sums, cost->traffic[RFL_FUSION_FUSED]);
}

/* Save the input and, in training, the mean and 1 / deviation of the batch. */
static void batch_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (!c->needs_dgrad && !c->needs_wgrad)
		return;
	rfl_op_save_operand(c, 0, out);
	if (c->options->training)
		rfl_op_save(c, RFL_SAVED_STATISTICS, c->node->attr.batch_norm.channels,
			    2 * rfl_op_statistic_bytes(c), out);
}

RFL_OP(batch_norm, "BatchNorm2d", "NativeBatchNormBackward0", .fuses = true, RFL_OP_READS_IMAGE,
       .infer = rfl_op_same_shape, .params = params, .cost = batch_cost, .saved = batch_saved,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, batch_norm, channels, .min = 1, .inferred = true),
		    RFL_OP_ATTR(REAL, batch_norm, eps, .def = 1e-5),
		    RFL_OP_ATTR(REAL, batch_norm, momentum, .def = 0.1)));
