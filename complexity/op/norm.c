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

static void count(struct rfl_cost_context *c, enum rfl_pass pass, const struct counts *counts)
{
	rfl_op_count_each(c, pass, &counts->element, c->in);
	rfl_op_count_each(c, pass, &counts->row, rows_of(c));
	rfl_op_count_each(c, pass, &counts->feature, c->node->attr.norm.features);
}

/* The reads of one backward pass, except dY. */
static void read_back(struct rfl_cost_context *c, const struct norm *norm, enum rfl_fusion level,
		      enum rfl_pass pass)
{
	const int64_t size = norm->statistics * rfl_op_statistic_bytes(c);

	rfl_op_move_at(c, level, pass, c->in, c->value_bytes, 0, 0);
	rfl_op_move_at(c, level, pass, rows_of(c), size, 0, 0);
}

static void small_traffic(struct rfl_cost_context *c, const struct norm *norm,
			  enum rfl_fusion level)
{
	const int64_t features = c->node->attr.norm.features, param = c->param_bytes;
	const int64_t size = norm->statistics * rfl_op_statistic_bytes(c);

	rfl_op_move_at(c, level, FORWARD, features, norm->params * param,
		       c->options->training ? rows_of(c) : 0, size);
	read_back(c, norm, level, DGRAD);
	rfl_op_move_at(c, level, DGRAD, features, param, 0, 0);
	rfl_op_move_at(c, level, WGRAD, 0, 0, features, norm->params * param);
}

static void norm_cost(struct rfl_cost_context *c)
{
	const struct norm *norm = c->node->op == RFL_OP_LAYER_NORM ? &layer : &rms;

	small_traffic(c, norm, UNFUSED);
	count(c, FORWARD, &norm->forward);
	count(c, DGRAD, &norm->dgrad);
	count(c, WGRAD, &norm->wgrad);
	rfl_op_move(c, FORWARD, c->in, c->out);
	rfl_op_move(c, DGRAD, c->out, c->in);
	rfl_op_move(c, WGRAD, c->out, 0);
	read_back(c, norm, UNFUSED, WGRAD);
	if (!c->fused) {
		rfl_op_fuse_not(c);
		return;
	}
	small_traffic(c, norm, FUSED);
	rfl_op_move_at(c, FUSED, FORWARD, 0, 0, c->input_shared ? c->out : 0, c->value_bytes);
	if (!c->needs_dgrad)
		read_back(c, norm, FUSED, WGRAD);
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
		rfl_op_save(c, RFL_SAVED_CLASS_STATISTICS, rows_of(c), size, out);
	}
	if (c->needs_wgrad && rms_on_cpu)
		rfl_op_save(c, RFL_SAVED_CLASS_ACTIVATIONS, c->in, c->value_bytes, out);
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
 * Batch normalisation of n elements in C channels. Values that depend only on the channel are
 * combined and computed once; a library may need more operations. Sums over all channels take n -
 * C.
 *
 * Inference: scale = gamma * (1 / sqrt(var + eps)) and shift = beta - mean * scale per channel (2
 * add, 2 mul, 2 special), then y = x * scale + shift (n add, n mul).
 *
 * Training: mean (n - C add), variance (n add to subtract the mean, n mul to square, n - C add) and
 * the same transform; per channel also mean, variance and unbiased variance as sums times a
 * constant (3 mul), and two running averages m * new + (1 - m) * old (1 add, 2 mul each).
 *
 * wgrad: sum(dy) and sum((x - mean) * dy): 3 n - 2 C add, n mul; per channel 1 mul.
 * dgrad: ((dy - mean(dy)) - (x - mean) * k) * scale: 3 n add, 2 n mul; per channel 5 mul (mean(dy)
 * 1; k = sum((x - mean) * dy) / (n / C) / (var + eps) 3; scale 1). With running statistics: dy *
 * scale, n mul and per channel 1 mul.
 *
 * In training, X is read twice (statistics, then transform), as are X and dY backward (for the sums
 * and for the gradient). Fused, sums are computed in the epilogue of the previous operation and
 * values normalised in the prologue of the next one (Jung et al., "Restructuring Batch
 * Normalization to Accelerate CNN Training", MLSys 2019), so only the backward pass reads X again.
 */

/* If fused, it has no dY and no Y of its own. Statistics have the type of the parameters. The sums
 * are the parameters' gradients; dgrad with batch statistics needs them too. */
static void batch_traffic(struct rfl_cost_context *c, bool fused, enum rfl_pass sums,
			  enum rfl_fusion level)
{
	const int64_t channels = c->node->attr.batch_norm.channels, v = c->value_bytes;
	const int64_t param = c->param_bytes, training = c->options->training;

	/* training: running statistics, and batch statistics for the backward pass; inference:
	 * folded if fused, except for one shift per channel */
	rfl_op_move_at(c, level, FORWARD, channels, (training || !fused ? 4 : 1) * param,
		       training * channels, 4 * param);
	rfl_op_move_at(c, level, FORWARD, fused ? 0 : c->in, (1 + training) * v,
		       !fused || c->input_shared ? c->out : 0, v);
	rfl_op_move_at(c, level, DGRAD, fused ? training * c->in : c->in,
		       (fused ? 1 : 1 + training) * v, fused ? 0 : c->in, v);
	rfl_op_move_at(c, level, DGRAD, channels, (2 + 3 * training) * param, 0, 0);
	if (sums == DGRAD && !training)
		return;
	rfl_op_move_at(c, level, sums, c->in, (fused ? 1 : 2) * v, 0, 0);
	rfl_op_move_at(c, level, sums, channels, 2 * param, channels, 2 * param);
}

static void batch_cost(struct rfl_cost_context *c)
{
	const int64_t n = c->in, channels = c->node->attr.batch_norm.channels;
	const bool training = c->options->training;
	const enum rfl_pass sums = c->needs_wgrad ? WGRAD : DGRAD;

	rfl_op_count(c, FORWARD, .add = (training ? 4 * n : n) + 2 * channels,
		     .mul = training ? 2 * n + 9 * channels : n + 2 * channels,
		     .special = 2 * channels);
	rfl_op_count(c, DGRAD, .add = training ? 3 * n : 0,
		     .mul = training ? 2 * n + 5 * channels : n + channels);
	if (sums == WGRAD || training)
		rfl_op_count(c, sums, .add = 3 * n - 2 * channels, .mul = n + channels);
	batch_traffic(c, false, sums, UNFUSED);
	batch_traffic(c, c->fused, sums, FUSED);
}

/* Save the input and, in training, the mean and 1 / deviation of the batch. */
static void batch_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (!c->needs_dgrad && !c->needs_wgrad)
		return;
	rfl_op_save_operand(c, 0, out);
	if (c->options->training)
		rfl_op_save(c, RFL_SAVED_CLASS_STATISTICS, c->node->attr.batch_norm.channels,
			    2 * rfl_op_statistic_bytes(c), out);
}

RFL_OP(batch_norm, "BatchNorm2d", "NativeBatchNormBackward0", .fuses = true, RFL_OP_READS_IMAGE,
       .infer = rfl_op_same_shape, .params = params, .cost = batch_cost, .saved = batch_saved,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, batch_norm, channels, .min = 1, .inferred = true),
		    RFL_OP_ATTR(REAL, batch_norm, eps, .def = 1e-5),
		    RFL_OP_ATTR(REAL, batch_norm, momentum, .def = 0.1)));
