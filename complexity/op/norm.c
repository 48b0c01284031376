/*
 * norm.c - layer norm and RMS norm over the last dimension.
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
#include "complexity/op/parts.h"

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
	static const struct rfl_op_param rows[] = {
		{ .suffix = "weight", .kind = RFL_PARAM_NORM_WEIGHT, .ndim = 1 },
		{ .suffix = "bias", .kind = RFL_PARAM_NORM_BIAS, .ndim = 1 },
	};
	int n = node->op == RFL_OP_LAYER_NORM ? 2 : 1;

	for (int i = 0; i < n; i++) {
		out[i] = rows[i];
		out[i].dim[0] = node->attr.norm.features;
	}
	return n;
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

static void unfused(struct rfl_cost_context *c, const struct norm *norm, struct rfl_traffic *t)
{
	small_traffic(c, norm, t);
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad) {
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->out, c->value_bytes);
		rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
	}
	if (c->needs_wgrad) {
		read_back(c, norm, &t[RFL_PASS_WGRAD]);
		rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->out, c->value_bytes);
	}
}

static void fused(struct rfl_cost_context *c, const struct norm *norm, struct rfl_traffic *t)
{
	small_traffic(c, norm, t);
	if (c->input_shared)
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_wgrad && !c->needs_dgrad)
		read_back(c, norm, &t[RFL_PASS_WGRAD]);
}

static void norm_cost(struct rfl_cost_context *c, const struct norm *norm, struct rfl_cost *cost)
{
	count(c, &norm->forward, &cost->elementwise[RFL_PASS_FORWARD]);
	if (c->needs_dgrad)
		count(c, &norm->dgrad, &cost->elementwise[RFL_PASS_DGRAD]);
	if (c->needs_wgrad)
		count(c, &norm->wgrad, &cost->elementwise[RFL_PASS_WGRAD]);
	unfused(c, norm, cost->traffic[RFL_FUSION_UNFUSED]);
	if (c->rides)
		fused(c, norm, cost->traffic[RFL_FUSION_FUSED]);
	else
		rfl_op_ride_not(cost);
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
