/*
 * parts.c - what the rows of operations share.
 */
#include "complexity/op/parts.h"

#include <string.h>

#include "base/num.h"

/* --- operations that map each element of one tensor by itself -------------------------------- */

/*
 * Traffic, unfused: forward R X, W Y; dgrad R dY, R X or Y if its gradient needs one of them (both
 * are as large), W dX. Where the published model overwrites an input that the gradient needs,
 * PyTorch copies it first; a new tensor for the result saves that pass, which is what the engines
 * do and what is counted. Fused: it rides, and the backward pass reads that tensor again or one bit
 * per element.
 */

void rfl_op_add_elementwise(struct rfl_cost_context *c, struct rfl_elementwise *sum,
			    const struct rfl_elementwise *per_element, int64_t elements)
{
	sum->add = rfl_cost_add(c, sum->add, rfl_cost_mul(c, per_element->add, elements));
	sum->mul = rfl_cost_add(c, sum->mul, rfl_cost_mul(c, per_element->mul, elements));
	sum->compare =
		rfl_cost_add(c, sum->compare, rfl_cost_mul(c, per_element->compare, elements));
	sum->special =
		rfl_cost_add(c, sum->special, rfl_cost_mul(c, per_element->special, elements));
}

void rfl_op_unary_cost(struct rfl_cost_context *c, const struct rfl_op_unary *op,
		       struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	int64_t reads = (op->needs == RFL_OP_NEEDS_NOTHING ? 1 : 2) + op->steps;

	rfl_op_add_elementwise(c, &cost->elementwise[RFL_PASS_FORWARD], &op->forward, c->in);
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad) {
		rfl_op_add_elementwise(c, &cost->elementwise[RFL_PASS_DGRAD], &op->dgrad, c->in);
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, reads * c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, (1 + op->steps) * c->value_bytes);
	}
	if (op->needs == RFL_OP_NEEDS_BIT)
		rfl_op_ride_with_mask(c, cost);
	else
		rfl_op_ride(c, op->needs == RFL_OP_NEEDS_TENSOR ? c->in : 0, cost);
}

/* --- the fused level ------------------------------------------------------------------------- */

void rfl_op_ride_not(struct rfl_cost *cost)
{
	memcpy(cost->traffic[RFL_FUSION_FUSED], cost->traffic[RFL_FUSION_UNFUSED],
	       sizeof(cost->traffic[RFL_FUSION_FUSED]));
}

void rfl_op_ride_with_mask(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	int64_t mask_bytes = c->out / 8 + (c->out % 8 != 0);

	rfl_op_ride(c, 0, cost);
	if (!c->rides)
		return;
	if (c->options->training)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], mask_bytes, 1);
	if (c->needs_dgrad)
		rfl_cost_read(c, &f[RFL_PASS_DGRAD], mask_bytes, 1);
}

void rfl_op_ride(struct rfl_cost_context *c, int64_t kept, struct rfl_cost *cost)
{
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];

	if (!c->rides) {
		rfl_op_ride_not(cost);
		return;
	}
	if (c->input_shared)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad)
		rfl_cost_read(c, &f[RFL_PASS_DGRAD], kept, c->value_bytes);
}

/* --- inputs of operations that take several tensors ------------------------------------------ */

int64_t rfl_op_operand_bytes(const struct rfl_cost_context *c, int k)
{
	return c->inputs[k].outside ? c->param_bytes : c->value_bytes;
}

void rfl_op_operand_read(struct rfl_cost_context *c, int k, struct rfl_traffic *t)
{
	rfl_cost_read(c, t, rfl_cost_in(c, k), rfl_op_operand_bytes(c, k));
}

void rfl_op_operand_write(struct rfl_cost_context *c, int k, struct rfl_traffic *t)
{
	rfl_cost_write(c, t, rfl_cost_in(c, k), rfl_op_operand_bytes(c, k));
}

enum rfl_pass rfl_op_operand_pass(const struct rfl_cost_context *c, int k)
{
	return c->inputs[k].outside ? RFL_PASS_WGRAD : RFL_PASS_DGRAD;
}

void rfl_op_operand_reduce(struct rfl_cost_context *c, int k, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, k);
	int64_t *adds = &cost->elementwise[pass].add;
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];
	int64_t elements = rfl_cost_in(c, k);

	if (elements >= c->out)
		return;
	*adds = rfl_cost_add(c, *adds, c->out - elements);
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_op_operand_write(c, k, u);
}

int rfl_op_operand_largest(struct rfl_cost_context *c)
{
	int largest = 0;

	for (int k = 1; k < c->node->ninputs; k++)
		if (rfl_cost_in(c, k) > rfl_cost_in(c, largest))
			largest = k;
	return largest;
}

/* --- what autograd keeps --------------------------------------------------------------------- */

/* Read off PyTorch 2.11 with torch.autograd.graph.saved_tensors_hooks, each operation by itself. */

int rfl_op_save_operand(const struct rfl_cost_context *c, int k,
			struct rfl_op_saved out[RFL_OP_MAX_SAVED], int n)
{
	if (c->inputs[k].outside)
		return n;
	out[n] = (struct rfl_op_saved){ .kind = RFL_SAVED_INPUT, .input = k };
	return n + 1;
}

int rfl_op_save_bytes(enum rfl_saved_kind kind, int64_t bytes,
		      struct rfl_op_saved out[RFL_OP_MAX_SAVED], int n)
{
	out[n] = (struct rfl_op_saved){ .kind = kind, .bytes = bytes };
	return n + 1;
}

int rfl_op_saves_input(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!c->needs_dgrad)
		return 0;
	if (c->node->inplace)
		return rfl_op_save_bytes(RFL_SAVED_CLONE, rfl_cost_mul(c, c->in, c->value_bytes),
					 out, 0);
	return rfl_op_save_operand(c, 0, out, 0);
}

int rfl_op_saves_output(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!c->needs_dgrad)
		return 0;
	out[0] = (struct rfl_op_saved){ .kind = RFL_SAVED_OUTPUT };
	return 1;
}

int64_t rfl_op_statistic_bytes(const struct rfl_cost_context *c)
{
	return c->on_cpu ? c->param_bytes : rfl_dtype_bytes(RFL_DTYPE_F32);
}

/* --- a weight and perhaps a bias ------------------------------------------------------------- */

/*
 * Under autocast (master_weights) the weights are stored as F32 and a 16-bit copy is made for each
 * step: unfused, a kernel of its own reads 4 and writes 2 bytes per weight and the gradient is
 * widened by another; fused, the operation reads the F32 weights and writes F32 gradients itself.
 *
 * A frozen weight has no wgrad. The gradient of a borrowed one (a head tied to the embedding) is
 * added to its owner's: an addition per weight; unfused R both, W one, fused R what is there.
 */

static void weights_traffic(struct rfl_cost_context *c, int64_t elements, struct rfl_cost *cost)
{
	bool copies = c->param_bytes != c->value_bytes;
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD];

	rfl_cost_read(c, u, elements, c->value_bytes);
	rfl_cost_read(c, f, elements, c->param_bytes);
	if (copies) {
		rfl_cost_read(c, u, elements, c->param_bytes);
		rfl_cost_write(c, u, elements, c->value_bytes);
	}
}

static void gradients_traffic(struct rfl_cost_context *c, int64_t elements, struct rfl_cost *cost)
{
	bool copies = c->param_bytes != c->value_bytes;
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_WGRAD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_WGRAD];

	rfl_cost_write(c, u, elements, c->value_bytes);
	rfl_cost_write(c, f, elements, c->param_bytes);
	if (copies) {
		rfl_cost_read(c, u, elements, c->value_bytes);
		rfl_cost_write(c, u, elements, c->param_bytes);
	}
	if (c->node->tied) {
		rfl_cost_read(c, u, elements, 2 * c->param_bytes);
		rfl_cost_write(c, u, elements, c->param_bytes);
		rfl_cost_read(c, f, elements, c->param_bytes);
	}
}

static void level_traffic(struct rfl_cost_context *c, const struct rfl_op_weights *w,
			  struct rfl_traffic *t, int64_t weight_bytes)
{
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad) {
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->out, c->value_bytes);
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], w->weights, weight_bytes);
		rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
	}
	if (c->needs_wgrad) {
		rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->in, c->value_bytes);
		rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->out, c->value_bytes);
	}
}

static void wgrad(struct rfl_cost_context *c, const struct rfl_op_weights *w, struct rfl_cost *cost)
{
	int64_t *adds = &cost->elementwise[RFL_PASS_WGRAD].add;
	int64_t elements = rfl_cost_add(c, w->weights, w->biases);

	cost->macs[RFL_PASS_WGRAD] = w->macs;
	if (w->biases) /* out / biases terms per bias make one addition less each */
		*adds = c->out - w->biases;
	if (c->node->tied)
		*adds = rfl_cost_add(c, *adds, elements);
	gradients_traffic(c, elements, cost);
}

void rfl_op_weights_cost(struct rfl_cost_context *c, const struct rfl_op_weights *w,
			 struct rfl_cost *cost)
{
	cost->macs[RFL_PASS_FORWARD] = w->macs;
	if (c->needs_dgrad)
		cost->macs[RFL_PASS_DGRAD] = w->macs;
	if (w->biases)
		cost->bias_adds = c->out;
	weights_traffic(c, rfl_cost_add(c, w->weights, w->biases), cost);
	level_traffic(c, w, cost->traffic[RFL_FUSION_UNFUSED], c->value_bytes);
	level_traffic(c, w, cost->traffic[RFL_FUSION_FUSED], c->param_bytes); /* no copy is kept */
	if (c->needs_wgrad)
		wgrad(c, w, cost);
}

/* --- products of attention ------------------------------------------------------------------- */

bool rfl_shape_same_leading(const struct rfl_shape *a, const struct rfl_shape *b)
{
	if (a->ndim != b->ndim || a->ndim < 2)
		return false;
	for (int i = 0; i < a->ndim - 2; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

int64_t rfl_causal_pairs(struct rfl_cost_context *c, int64_t queries, int64_t keys)
{
	int64_t side = queries < keys ? queries : keys;
	int64_t triangle = side % 2 ? rfl_cost_mul(c, side / 2 + 1, side)
				    : rfl_cost_mul(c, side / 2, side + 1);

	return rfl_cost_add(c, triangle, rfl_cost_mul(c, queries - side, keys));
}

/* --- sliding windows along one axis ---------------------------------------------------------- */

/* The formulas are those of torch.nn.Conv2d and torch.nn.MaxPool2d ("Shape" in their
 * documentation). */

enum { LIMIT = 1 << 24 }; /* of kernel, stride, pad and dilation: keeps their products small */

static bool sane(const struct rfl_window *w)
{
	return w->kernel >= 1 && w->kernel <= LIMIT && w->stride >= 1 && w->stride <= LIMIT &&
	       w->dilation >= 1 && w->dilation <= LIMIT && w->pad >= 0 && w->pad <= LIMIT;
}

enum rfl_rc rfl_window_positions(const struct rfl_window *w, int64_t in, int64_t *ret,
				 struct rfl_err *err)
{
	int64_t padded, reach, room, n;

	if (!sane(w))
		return rfl_fail(err, RFL_EINVAL, 0,
				"kernel %lld, stride %lld, padding %lld, dilation %lld: not a "
				"window (kernel, stride and dilation from 1, padding from 0)",
				(long long)w->kernel, (long long)w->stride, (long long)w->pad,
				(long long)w->dilation);
	if (!rfl_num_add(in, 2 * w->pad, &padded))
		return rfl_fail(err, RFL_EOVERFLOW, 0, "input %lld does not fit 63 bits",
				(long long)in);
	reach = (w->kernel - 1) * w->dilation + 1;
	room = padded - reach;
	if (w->ceil_mode && room < 0 && room > -w->stride)
		room = 0; /* the only window ends outside */
	if (room < 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"a window of %lld does not fit into %lld (%lld with its padding); "
				"the image is too small",
				(long long)reach, (long long)in, (long long)padded);
	n = room / w->stride + 1;
	/* One more window ends outside; it must begin, at n * stride, before the right padding. */
	if (w->ceil_mode && room % w->stride != 0 && (n - 1) * w->stride < in + w->pad - w->stride)
		n++;
	*ret = n;
	return RFL_OK;
}

/* The sum of floor((a i + b) / m) over i in [0, n), in as many steps as Euclid's algorithm takes:
 * whole multiples of m come out of a and b, then the points under the line are counted along the
 * other axis (Graham, Knuth, Patashnik, "Concrete Mathematics", 3.5). No term exceeds the sum. */
static int64_t floor_sum(int64_t n, int64_t m, int64_t a, int64_t b)
{
	int64_t sum = 0;

	while (n > 0) {
		int64_t top, old = m;

		sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
		a %= m;
		b %= m;
		top = a * n + b;
		n = top / m;
		b = top % m;
		m = a;
		a = old;
	}
	return sum;
}

/* Taps k of positions o with o * stride + k * dilation < end. The first taps are below it at all
 * positions, the last ones at none. */
static int64_t taps_below(const struct rfl_window *w, int64_t out, int64_t end)
{
	int64_t reach = (out - 1) * w->stride, some = 0, all = 0;

	if (end > 0)
		some = (end - 1) / w->dilation + 1;
	if (end > reach)
		all = (end - reach - 1) / w->dilation + 1;
	if (some > w->kernel)
		some = w->kernel;
	if (all > some)
		all = some;
	if (all == some)
		return all * out;
	/* Tap some - 1 - i lies at (i * dilation + rest) / stride + 1 positions. */
	return all * out + (some - all) +
	       floor_sum(some - all, w->stride, w->dilation, end - 1 - (some - 1) * w->dilation);
}

int64_t rfl_window_real_taps(const struct rfl_window *w, int64_t in, int64_t out)
{
	return taps_below(w, out, w->pad + in) - taps_below(w, out, w->pad);
}
