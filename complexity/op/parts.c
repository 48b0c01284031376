/* parts.c - the table of operations, and code shared by its rows. */
#include "complexity/op/parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static const struct rfl_op_info *const ops[RFL_OP_COUNT] = {
#define OP(number, row) [RFL_OP_##number] = &rfl_op_##row,
#include "complexity/op/list.inc"
#undef OP
};

const struct rfl_op_info *rfl_op_info_of(enum rfl_op op)
{
	assert(op < RFL_OP_COUNT && ops[op]);
	return ops[op];
}

int rfl_op_layer_name(const struct rfl_node *node, char *out, size_t size)
{
	const bool is_step = node->functional && node->op != RFL_OP_INPUT;

	return snprintf(out, size, "%s%s%s", node->name, is_step && *node->name ? "." : "",
			is_step ? rfl_op_info_of(node->op)->name : "");
}

const char *rfl_mark_name(const char *pass, const struct rfl_net *net, int node,
			  char out[RFL_MARK_SIZE])
{
	const int len = snprintf(out, RFL_MARK_SIZE, "%s/loss", pass) - (int)strlen("loss");

	if (node < net->nnodes)
		(void)rfl_op_layer_name(&net->nodes[node], out + len, RFL_MARK_SIZE - (size_t)len);
	return out;
}

enum rfl_rc rfl_op_same_shape(struct rfl_op_shapes *s)
{
	*s->out = s->in[0];
	return RFL_OK;
}

const char *rfl_op_show(struct rfl_op_shapes *s, const struct rfl_shape *shape)
{
	char *text = s->text[s->ntexts++];

	return rfl_shape_text(shape, text, sizeof(s->text[0]));
}

/* X and Y have the same size, so it does not matter which of them the gradient needs. If the
 * published model overwrites an input that the gradient needs, PyTorch copies it first; the engines
 * avoid that copy by writing the result to a new tensor, and the counts assume the same. */

void rfl_op_unary_cost_of(struct rfl_cost_context *c, const struct rfl_op_unary *op)
{
	int64_t reads = (op->needs == RFL_OP_NEEDS_NOTHING ? 1 : 2) + op->steps;

	rfl_op_count_each(c, FORWARD, &op->forward, c->in);
	rfl_op_count_each(c, DGRAD, &op->dgrad, c->in);
	rfl_op_move(c, FORWARD, c->in, c->out);
	rfl_op_move_at(c, UNFUSED, DGRAD, c->out, reads * c->value_bytes, c->in,
		       (1 + op->steps) * c->value_bytes);
	if (op->needs == RFL_OP_NEEDS_BIT)
		rfl_op_fuse_with_mask(c);
	else
		rfl_op_fuse(c, op->needs == RFL_OP_NEEDS_TENSOR ? c->in : 0);
}

void rfl_op_unary_cost(struct rfl_cost_context *c)
{
	rfl_op_unary_cost_of(c, &rfl_op_info_of(c->node->op)->unary);
}

void rfl_op_fuse_not(struct rfl_cost_context *c)
{
	memcpy(c->cost->traffic[FUSED], c->cost->traffic[UNFUSED], sizeof(c->cost->traffic[FUSED]));
}

void rfl_op_fuse_with_mask(struct rfl_cost_context *c)
{
	int64_t mask_bytes = c->fused ? c->out / 8 + (c->out % 8 != 0) : 0;

	rfl_op_fuse(c, 0);
	rfl_op_move_at(c, FUSED, FORWARD, 0, 0, c->options->training ? mask_bytes : 0, 1);
	rfl_op_move_at(c, FUSED, DGRAD, mask_bytes, 1, 0, 0);
}

void rfl_op_fuse(struct rfl_cost_context *c, int64_t kept)
{
	int64_t v = c->value_bytes;

	if (!c->fused) {
		rfl_op_fuse_not(c);
		return;
	}
	rfl_op_move_at(c, FUSED, FORWARD, 0, 0, c->input_shared ? c->out : 0, v);
	rfl_op_move_at(c, FUSED, DGRAD, kept, v, 0, 0);
}

/* --- inputs of operations with several tensors ----------------------------------------------- */

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

/* --- tensors kept by autograd ---------------------------------------------------------------- */

/* Observed in PyTorch 2.11 with torch.autograd.graph.saved_tensors_hooks for each operation. */

void rfl_op_save_operand(const struct rfl_cost_context *c, int k, struct rfl_op_saves *out)
{
	if (!c->inputs[k].outside)
		out->item[out->n++] = (struct rfl_op_saved){ .tensor = k };
}

void rfl_op_save_output(struct rfl_op_saves *out)
{
	out->item[out->n++] = (struct rfl_op_saved){ .tensor = RFL_SAVED_OUTPUT };
}

void rfl_op_save(struct rfl_cost_context *c, enum rfl_saved_class kind, int64_t elements,
		 int64_t size, struct rfl_op_saves *out)
{
	out->item[out->n++] =
		(struct rfl_op_saved){ RFL_SAVED_BYTES, kind, rfl_cost_mul(c, elements, size) };
}

void rfl_op_saves_input(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (c->needs_dgrad && c->node->inplace)
		rfl_op_save(c, RFL_SAVED_CLASS_CLONES, c->in, c->value_bytes, out);
	else if (c->needs_dgrad)
		rfl_op_save_operand(c, 0, out);
}

void rfl_op_saves_for_wgrad(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (c->needs_wgrad)
		rfl_op_save_operand(c, 0, out);
}

void rfl_op_saves_output(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (c->needs_dgrad)
		rfl_op_save_output(out);
}

int64_t rfl_op_statistic_bytes(const struct rfl_cost_context *c)
{
	return c->on_cpu ? c->param_bytes : rfl_dtype_bytes(RFL_DTYPE_F32);
}

/* --- sliding windows along one axis ---------------------------------------------------------- */

/* The formulas are those documented for torch.nn.Conv2d and torch.nn.MaxPool2d under "Shape". */

enum { LIMIT = 1 << 24 }; /* maximum of each argument; keeps their products small */

enum rfl_rc rfl_window_positions(const struct rfl_window *w, int64_t in, int64_t *ret,
				 struct rfl_err *err)
{
	int64_t padded, reach, room, n;

	if (w->kernel < 1 || w->kernel > LIMIT || w->stride < 1 || w->stride > LIMIT ||
	    w->dilation < 1 || w->dilation > LIMIT || w->pad < 0 || w->pad > LIMIT)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"kernel %lld, stride %lld, padding %lld, dilation %lld: out of range; "
			"kernel, stride and dilation must be at least 1, padding at least 0",
			(long long)w->kernel, (long long)w->stride, (long long)w->pad,
			(long long)w->dilation);
	if (!rfl_num_add(in, 2 * w->pad, &padded))
		return rfl_fail(err, RFL_EOVERFLOW, 0,
				"input %lld exceeds 63 bits with its padding", (long long)in);
	reach = (w->kernel - 1) * w->dilation + 1;
	room = padded - reach;
	if (w->ceil_mode && room < 0 && room > -w->stride)
		room = 0; /* the only window ends outside the image */
	if (room < 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"a window of %lld does not fit into %lld (%lld with padding); use "
				"a larger image",
				(long long)reach, (long long)in, (long long)padded);
	n = room / w->stride + 1;
	/* One more window may end outside if it begins, at n * stride, before the right padding. */
	if (w->ceil_mode && room % w->stride != 0 && (n - 1) * w->stride < in + w->pad - w->stride)
		n++;
	*ret = n;
	return RFL_OK;
}

enum rfl_rc rfl_window_image(struct rfl_op_shapes *s, const struct rfl_window w[2],
			     int64_t channels)
{
	enum rfl_rc rc = RFL_OK;

	*s->out = (struct rfl_shape){ .ndim = 3, .dim = { channels } };
	for (int i = 0; i < 2 && rc == RFL_OK; i++)
		rc = rfl_window_positions(&w[i], s->in->dim[1 + i], &s->out->dim[1 + i], s->err);
	return rc;
}

/* The sum of floor((a i + b) / m) over i in [0, n), in as many steps as Euclid's algorithm takes:
 * whole multiples of m are split off a and b, then the points under the line are counted along the
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

/* The number of taps k of positions o with o * stride + k * dilation < end. The first `all` taps
 * qualify at all positions; those from `some` on at none. */
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
	/* Tap some - 1 - i qualifies at (i * dilation + rest) / stride + 1 positions. */
	return all * out + (some - all) +
	       floor_sum(some - all, w->stride, w->dilation, end - 1 - (some - 1) * w->dilation);
}

int64_t rfl_window_real_taps(const struct rfl_window *w, int64_t in, int64_t out)
{
	return taps_below(w, out, w->pad + in) - taps_below(w, out, w->pad);
}
