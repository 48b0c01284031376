/*
 * convert.c - one node of an ONNX graph becomes one or a few operations of a network. The builder
 * infers their shapes for one sample; put() turns these back into dimensions of the file.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "complexity/onnx/graph.h"
#include "complexity/op.h"

typedef struct rfl_onnx_value value;

/* One node of the file while it is converted. */
struct call {
	struct rfl_onnx *c;
	const struct rfl_onnx_node *n;
	value *x, *y, *z, *out; /* the first inputs, which can be NULL, and the first output */
};

static bool is(const struct call *k, const char *op)
{
	return rfl_span_is(k->n->op, op);
}

static bool active(const value *v)
{
	return v && !v->constant && v->node >= 0;
}

static bool is_number(const value *v, double number)
{
	return v && v->ncontent == 1 && v->content[0] >= number && v->content[0] <= number;
}

/* Whether a value is images in the order of the network. */
static bool is_image(const value *v)
{
	return v->dims.n == 4 && v->batch == 0 && v->inside == 1;
}

static bool is_float(const value *v)
{
	return v->type == RFL_ONNX_FLOAT || v->type == RFL_ONNX_FLOAT16 ||
	       v->type == RFL_ONNX_BFLOAT16 || v->type == RFL_ONNX_DOUBLE;
}

/* --- dimensions of the file and shapes of the network --- */

static struct rfl_shape shape_of(const struct rfl_onnx *c, const value *v)
{
	return rfl_net_shape(c->builder, v->node);
}

static bool same_shape(const struct rfl_shape *a, const struct rfl_shape *b)
{
	return a->ndim == b->ndim && memcmp(a->dim, b->dim, sizeof(*a->dim) * (size_t)a->ndim) == 0;
}

/* The network's dimension of a dimension in the file; -1: the batch alone. */
static int axis_of(const value *v, int axis)
{
	if (axis < 0 || (v->inside == 1 && axis == v->batch))
		return -1;
	return axis - (v->inside == 1 && axis > v->batch);
}

/* Set a result: a node of the network, with the batch where `like` has it. */
static bool put_at(struct rfl_onnx *c, value *out, int node, const value *like, int batch)
{
	const struct rfl_shape shape = rfl_net_shape(c->builder, node);
	const bool apart = like->inside == 1;
	struct rfl_onnx_dims dims = { .known = true, .n = shape.ndim + apart };
	int from = 0;

	if (node < 0)
		return true; /* the builder has failed, and keeps the reason */
	if (shape.ndim + apart > RFL_ONNX_MAX_DIMS || batch >= shape.ndim + apart ||
	    (!apart && shape.dim[batch] == 1))
		return false;
	for (int i = 0; i < dims.n; i++)
		dims.dim[i] = apart && i == batch ? c->batch : shape.dim[from++];
	if ((!apart && !rfl_num_mul(dims.dim[batch], c->batch, &dims.dim[batch])) ||
	    rfl_onnx_numel(&dims) == 0)
		return false;
	out->node = node;
	out->batch = batch;
	out->inside = apart ? 1 : shape.dim[batch];
	out->outer = like->outer;
	out->permuted = false;
	out->dims = dims;
	return true;
}

static bool put(struct rfl_onnx *c, value *out, int node, const value *like)
{
	return put_at(c, out, node, like, like->batch);
}

/* The result is the input itself. */
static bool pass(value *out, const value *in)
{
	out->node = in->node;
	out->batch = in->batch;
	out->inside = in->inside;
	out->outer = in->outer;
	out->permuted = in->permuted;
	out->dims = in->dims;
	return true;
}

/* Set the first result of a node, with the batch where its first input has it. */
static bool give(struct call *k, int node, bool permuted)
{
	const bool ok = put(k->c, k->out, node, k->x);

	k->out->permuted = permuted;
	return ok;
}

/* Append an operation with one input. */
#define ONE(c, x_, name_, ...)                                                              \
	rfl_net_append((c)->builder,                                                        \
		       &(const struct rfl_node){                                            \
			       .ninputs = 1, .input = (const int[]){ (x_) }, __VA_ARGS__ }, \
		       (name_))

/* --- names and parameters --- */

/* Whether a module or one of its tensors has this name, or one of its own would have a taken one.
 */
static bool is_taken(const struct rfl_onnx *c, const char *name)
{
	static const char *const tensors[] = { ".weight",      ".bias",           ".running_mean",
					       ".running_var", ".in_proj_weight", ".in_proj_bias" };
	const size_t len = strlen(name);
	char other[256];

	if (json_object_get(c->names, name))
		return true;
	for (size_t i = 0; i < RFL_ARRAY_LEN(tensors); i++) {
		const size_t n = strlen(tensors[i]);
		const bool ends = len > n && strcmp(name + len - n, tensors[i]) == 0;

		(void)snprintf(other, sizeof(other), "%s%s", name, tensors[i]);
		if (json_object_get(c->names, other))
			return true;
		(void)snprintf(other, sizeof(other), "%.*s", (int)(ends ? len - n : 0), name);
		if (json_object_get(c->names, other))
			return true;
	}
	return false;
}

/* A name that no other module or parameter has, from a name in the file. */
static const char *unique(const struct rfl_onnx *c, struct rfl_span base)
{
	char text[200], *name;
	json_int_t number;

	(void)rfl_span_copy(base, text, sizeof(text));
	rfl_text_one_line(text);
	for (char *p = text; *p; p++)
		*p = *p == '/' || *p == ':' ? '.' : *p;
	base = rfl_span_of(text + strspn(text, "."));
	base = base.len ? base : rfl_span_of("node");
	name = rfl_arena_printf(c->arena, "%s", base.at);
	number = json_integer_value(json_object_get(c->names, name));
	while (is_taken(c, name))
		name = rfl_arena_printf(c->arena, "%s.%d", base.at, (int)++number + 1);
	json_object_set_new(c->names, base.at, json_integer(number));
	json_object_set_new(c->names, name, json_integer(number));
	return name;
}

/* The name of a layer: "layer1.0.conv1" of "layer1.0.conv1.weight", or else of the node. */
static const char *name_of(const struct call *k, const value *weight, const value *bias)
{
	static const char *const suffixes[] = { ".weight", ".bias", ".in_proj_bias" };
	const value *const from[] = { weight, bias };

	for (size_t i = 0; i < RFL_ARRAY_LEN(from); i++)
		for (size_t j = 0; from[i] && j < RFL_ARRAY_LEN(suffixes); j++)
			if (rfl_span_ends(from[i]->name, suffixes[j]) &&
			    from[i]->name.len > strlen(suffixes[j]))
				return unique(k->c,
					      (struct rfl_span){ from[i]->name.at,
								 from[i]->name.len -
									 strlen(suffixes[j]) });
	return unique(k->c, k->n->name.len ? k->n->name : k->n->op);
}

static int *owner_of(const struct rfl_onnx *c, const value *v)
{
	const struct rfl_onnx_tensor *all = c->graph.tensors;

	return v->weight && all && v->weight >= all && v->weight < all + c->graph.ntensors
		       ? &c->owners[v->weight - all]
		       : NULL;
}

static void own(struct rfl_onnx *c, const value *v, int node)
{
	int *owner = owner_of(c, v);

	if (owner && *owner == 0 && node > 0)
		*owner = node;
}

/* A constant as an operand beside `like`: a learned tensor, or a table. A dimension that meets the
 * batch of the other operand is omitted; it must be of size 1.
 * @return -1: not supported */
static int operand(struct call *k, value *v, const value *like, bool learned)
{
	struct rfl_onnx *c = k->c;
	const int at = like->inside == 1 ? like->batch - (like->dims.n - v->dims.n) : -1;
	struct rfl_shape stored = { 0 }, shape = { 0 };
	const char *name;

	if (!v->dims.known || !rfl_onnx_numel(&v->dims) || v->dims.n > RFL_NET_MAX_DIMS ||
	    (at >= 0 && at < v->dims.n && v->dims.dim[at] != 1))
		return -1;
	for (int i = 0; i < v->dims.n; i++) {
		stored.dim[stored.ndim++] = v->dims.dim[i];
		if (i != at)
			shape.dim[shape.ndim++] = v->dims.dim[i];
	}
	if (stored.ndim == 0)
		stored = shape = (struct rfl_shape){ 1, { 1 } };
	if (shape.ndim == 0)
		shape = stored;
	if (v->node >= 0 && rfl_net_is_tensor(c->builder, v->node)) {
		const struct rfl_shape old = shape_of(c, v);

		if (same_shape(&old, &shape))
			return v->node;
	}
	name = unique(c, v->name);
	v->node = learned ? rfl_parameter(c->builder, name, &stored, at == 0 && stored.ndim > 1)
			  : rfl_constant(c->builder, name, &shape);
	if (learned && at > 0 && at < stored.ndim)
		v->node = ONE(c, v->node, NULL, .op = RFL_OP_RESHAPE, .attr.reshape.shape = shape);
	return v->node < 0 ? 0 : v->node;
}

/* --- layers with weights --- */

static bool linear(struct call *k, const value *bias, bool out_first)
{
	struct rfl_onnx *c = k->c;
	const value *x = k->x, *w = k->y;
	const bool same = w->weight && rfl_span_ends(w->name, ".weight");
	const bool packed = bias && rfl_span_ends(bias->name, ".in_proj_bias") && !same;
	int *owner;
	struct rfl_node node = { .op = RFL_OP_LINEAR, .ninputs = 1, .input = &x->node };
	struct rfl_shape first;

	bias = is_number(bias, 0) ? NULL : bias;
	if (!w->constant || !w->dims.known || w->dims.n != 2 || x->dims.n < 2 ||
	    (x->inside == 1 && x->batch == x->dims.n - 1) ||
	    w->dims.dim[out_first] != x->dims.dim[x->dims.n - 1] ||
	    (bias && (!bias->constant || rfl_onnx_numel(&bias->dims) != w->dims.dim[!out_first])))
		return false;
	node.attr.linear = (struct rfl_linear){ .out_features = w->dims.dim[!out_first],
						.bias = bias != NULL,
						.in_proj = packed,
						.transposed = same && !out_first };
	owner = owner_of(c, w);
	first = rfl_net_first_param(c->builder, owner ? *owner : -1);
	if (owner && *owner && !bias && first.ndim == 2 &&
	    first.dim[0] == w->dims.dim[!out_first] && first.dim[1] == w->dims.dim[out_first]) {
		node.tied = *owner;
		node.attr.linear.transposed = false;
	}
	if (!give(k, rfl_net_append(c->builder, &node, name_of(k, w, bias)), false))
		return false;
	own(c, w, k->out->node);
	return true;
}

static bool gemm(struct call *k)
{
	return !rfl_onnx_int(k->n, "transA", 0) && rfl_onnx_real(k->n, "alpha", 1) == 1.0 &&
	       rfl_onnx_real(k->n, "beta", 1) == 1.0 &&
	       linear(k, k->z, rfl_onnx_int(k->n, "transB", 0) != 0);
}

/* Whether the last two dimensions are of one sample. */
static bool is_matrix(const value *v)
{
	return v->dims.n >= 2 && (v->inside > 1 || v->batch < v->dims.n - 2);
}

/* Whether the dimensions before the last two are equal. */
static bool same_leading(const struct rfl_shape *a, const struct rfl_shape *b)
{
	return a->ndim == b->ndim && a->ndim >= 2 &&
	       memcmp(a->dim, b->dim, sizeof(*a->dim) * (size_t)(a->ndim - 2)) == 0;
}

static bool matmul(struct call *k)
{
	struct rfl_onnx *c = k->c;
	struct rfl_shape a, b;
	int y;

	if (k->y->constant && k->y->dims.n == 2)
		return linear(k, NULL, false);
	y = k->y->constant ? operand(k, k->y, k->x, true) : k->y->node;
	if (y < 0 || !is_matrix(k->x) || (active(k->y) && !is_matrix(k->y)))
		return false;
	a = shape_of(c, k->x);
	b = rfl_net_shape(c->builder, y);
	return same_leading(&a, &b) &&
	       give(k, rfl_matmul(c->builder, k->x->node, y, false, false), false);
}

/* A list of n integers; false if it is there but has another length. */
static bool list_of(const struct call *k, const char *name, int n, int64_t *to)
{
	int64_t list[RFL_ONNX_MAX_DIMS];
	int got = 0;

	if (!rfl_onnx_attribute(k->n, name))
		return true;
	if (!rfl_onnx_ints(k->n, name, -1, list, &got) || got != n)
		return false;
	memcpy(to, list, (size_t)n * sizeof(*to));
	return true;
}

struct window {
	int64_t kernel[2], stride[2], dilation[2], pad[4]; /* pad: top, left, bottom, right */
};

static bool window(const struct call *k, struct window *w)
{
	const struct rfl_onnx_attribute *automatic = rfl_onnx_attribute(k->n, "auto_pad");

	*w = (struct window){ .stride = { 1, 1 }, .dilation = { 1, 1 } };
	return (!automatic || rfl_span_is(automatic->text, "NOTSET") ||
		rfl_span_is(automatic->text, "VALID")) &&
	       list_of(k, "kernel_shape", 2, w->kernel) && list_of(k, "strides", 2, w->stride) &&
	       list_of(k, "dilations", 2, w->dilation) && list_of(k, "pads", 4, w->pad) &&
	       w->pad[0] >= 0 && w->pad[1] >= 0 && w->pad[2] >= 0 && w->pad[3] >= 0;
}

/* Whether a bias stems from a batch norm: exporters leave traces in the names. */
static bool is_folded(const struct call *k, const value *w, const value *bias)
{
	return rfl_span_starts(bias->name, "onnx::Conv_") ||
	       (rfl_span_starts(bias->name, "val_") && rfl_span_starts(w->name, "val_")) ||
	       rfl_span_starts(k->out->name, "getitem") ||
	       (bias->name.len == w->name.len + 5 && rfl_span_ends(bias->name, "_bias") &&
		memcmp(bias->name.at, w->name.at, w->name.len) == 0);
}

static bool conv(struct call *k)
{
	struct rfl_onnx *c = k->c;
	const value *weight = k->y, *bias = is_number(k->z, 0) ? NULL : k->z;
	const int64_t *d = weight->dims.dim;
	const int64_t groups = rfl_onnx_int(k->n, "group", 1);
	struct window w;
	int x;

	if (!weight->constant || !weight->dims.known || weight->dims.n != 4 || !window(k, &w) ||
	    groups < 1 || k->x->dims.dim[1] % groups != 0 || k->x->dims.dim[1] / groups != d[1])
		return false;
	c->folded += bias && is_folded(k, weight, bias);
	x = k->x->node;
	if (w.pad[0] != w.pad[2] || w.pad[1] != w.pad[3]) {
		x = ONE(c, x, NULL, .op = RFL_OP_PAD,
			.attr.padding = { 1, w.pad[0], w.pad[2], w.pad[1], w.pad[3] });
		memset(w.pad, 0, sizeof(w.pad));
	}
	x = ONE(c, x, name_of(k, weight, bias), .op = RFL_OP_CONV2D,
		.attr.conv2d = { .out_channels = d[0],
				 .kernel_h = d[2],
				 .kernel_w = d[3],
				 .stride_h = w.stride[0],
				 .stride_w = w.stride[1],
				 .pad_h = w.pad[0],
				 .pad_w = w.pad[1],
				 .dilation_h = w.dilation[0],
				 .dilation_w = w.dilation[1],
				 .groups = groups,
				 .bias = bias != NULL });
	return give(k, x, false);
}

/* A float from the file as the decimal that was meant: 9.99999975e-06 is 1e-05. */
static double decimal(double stored)
{
	char text[40];
	double ret = stored;

	(void)rfl_num_print(text, sizeof(text), "%.7g", stored);
	(void)rfl_span_number(rfl_span_of(text), &ret);
	return ret;
}

static bool batch_norm(struct call *k)
{
	const double eps = decimal(rfl_onnx_real(k->n, "epsilon", 1e-5));
	const double momentum = decimal(1 - rfl_onnx_real(k->n, "momentum", 0.9));

	if (rfl_onnx_numel(&k->y->dims) != k->x->dims.dim[1])
		return false;
	k->c->batch_norms++;
	return give(k,
		    ONE(k->c, k->x->node, name_of(k, k->y, NULL), .op = RFL_OP_BATCH_NORM,
			.attr.batch_norm = { .eps = eps, .momentum = momentum }),
		    false);
}

static bool layer_norm(struct call *k)
{
	const bool rms = is(k, "RMSNormalization");
	const int last = k->x->dims.n - 1;

	if (rfl_onnx_axis(rfl_onnx_int(k->n, "axis", -1), last + 1) != last || (!rms && !k->z) ||
	    !k->y->constant || (k->x->inside == 1 && k->x->batch == last) ||
	    rfl_onnx_numel(&k->y->dims) != k->x->dims.dim[last])
		return false;
	return give(k,
		    ONE(k->c, k->x->node, name_of(k, k->y, NULL),
			.op = rms ? RFL_OP_RMS_NORM : RFL_OP_LAYER_NORM,
			.attr.norm.eps = decimal(rfl_onnx_real(k->n, "epsilon", 1e-5))),
		    false);
}

/* --- elementwise --- */

static bool unary(struct call *k)
{
	static const struct {
		const char *op;
		enum rfl_op becomes;
	} ops[] = {
		{ "Relu", RFL_OP_RELU },
		{ "Sigmoid", RFL_OP_SIGMOID },
		{ "Tanh", RFL_OP_TANH },
		{ "Exp", RFL_OP_EXP },
		{ "Log", RFL_OP_LOG },
		{ "Mish", RFL_OP_MISH },
		{ "HardSwish", RFL_OP_HARD_SWISH },
		{ "HardSigmoid", RFL_OP_HARD_SIGMOID },
		{ "Gelu", RFL_OP_GELU },
		{ "Softmax", RFL_OP_SOFTMAX },
		{ "Swish", RFL_OP_SILU },
	};
	const struct rfl_onnx_attribute *form = rfl_onnx_attribute(k->n, "approximate");
	struct rfl_node node = { .ninputs = 1 };
	bool found = false;

	for (size_t i = 0; i < RFL_ARRAY_LEN(ops); i++)
		if (is(k, ops[i].op)) {
			node.op = ops[i].becomes;
			found = true;
		}
	if (!found)
		return false;
	if (node.op == RFL_OP_HARD_SIGMOID &&
	    (fabs(rfl_onnx_real(k->n, "alpha", 0.2) - 1.0 / 6) > 1e-5 ||
	     fabs(rfl_onnx_real(k->n, "beta", 0.5) - 0.5) > 1e-5))
		return false;
	if (node.op == RFL_OP_SILU && fabs(rfl_onnx_real(k->n, "alpha", 1) - 1) > 1e-5)
		return false;
	if (node.op == RFL_OP_GELU)
		node.attr.gelu.tanh = form && rfl_span_is(form->text, "tanh");
	if (node.op == RFL_OP_SOFTMAX) {
		const int last = k->x->dims.n - 1, by = k->c->graph.opset < 13 ? 1 : -1;
		const int axis = rfl_onnx_axis(rfl_onnx_int(k->n, "axis", by), last + 1);

		if (axis != last || axis_of(k->x, axis) < 0)
			return false;
	}
	node.input = &k->x->node;
	return give(k, rfl_net_append(k->c->builder, &node, NULL),
		    k->x->permuted && node.op != RFL_OP_SOFTMAX);
}

static bool clip(struct call *k)
{
	return is_number(k->y, 0) && is_number(k->z, 6) &&
	       give(k, ONE(k->c, k->x->node, NULL, .op = RFL_OP_RELU6), false);
}

static bool affine(struct call *k, const value *x, double scale, double shift)
{
	if (!isfinite(scale) || !isfinite(shift))
		return false;
	if (!put(k->c, k->out,
		 ONE(k->c, x->node, NULL, .op = RFL_OP_AFFINE, .attr.affine = { scale, shift }), x))
		return false;
	k->out->permuted = x->permuted;
	return true;
}

/* A sum, difference, product or quotient with one number; `first`: the number is the left operand.
 */
static bool with_number(struct call *k, const value *x, double number, bool first)
{
	if (is(k, "Add"))
		return affine(k, x, 1, decimal(number));
	if (is(k, "Sub"))
		return first ? affine(k, x, -1, decimal(number))
			     : affine(k, x, 1, -decimal(number));
	if (is(k, "Mul"))
		return affine(k, x, decimal(number), 0);
	return !first && affine(k, x, decimal(1 / number), 0);
}

/* Whether a softmax reads a value, perhaps after a mask and reshapes: then it is scores. */
static bool feeds_softmax(const value *v)
{
	for (int i = 0; i < 4 && v && v->reader; i++) {
		const struct rfl_span op = v->reader->op;

		if (rfl_span_is(op, "Softmax"))
			return true;
		if (!rfl_span_is(op, "Reshape") && !rfl_span_is(op, "Add"))
			return false;
		v = rfl_onnx_out(v->reader, 0);
	}
	return false;
}

/* Whether a constant operand is learned: the bias, scale or position embedding that it is in a
 * model's code, but not a mask on scores or a table of rotations. */
static bool is_learned(const struct call *k, const value *v)
{
	int wide = 0;

	if (!v->weight || !is_float(v))
		return false;
	for (int i = 0; i < v->dims.n; i++)
		wide += v->dims.dim[i] > 1;
	return is(k, "Mul") || is(k, "Div") ? wide <= 1 : !feeds_softmax(k->out);
}

/* Where the result of two operands has its batch. They agree, or the file is for one sample, which
 * can be in any dimension of size 1. NULL: samples would be mixed. */
static const value *aligned(const struct rfl_onnx *c, const value *a, const value *b)
{
	const bool same = a->batch - a->dims.n == b->batch - b->dims.n && a->inside == b->inside;

	if (!same && c->batch != 1)
		return NULL;
	return same                                        ? (b->dims.n > a->dims.n ? b : a)
	       : shape_of(c, b).ndim > shape_of(c, a).ndim ? b
							   : a;
}

static bool binary(struct call *k)
{
	const enum rfl_op op = is(k, "Add")   ? RFL_OP_ADD
			       : is(k, "Sub") ? RFL_OP_SUB
			       : is(k, "Mul") ? RFL_OP_MUL
					      : RFL_OP_DIV;
	value *x = k->x, *y = k->y;
	const value *like;
	int a, b;

	if (!x || !(active(x) || active(y)) || (!active(x) && !x->constant) ||
	    (!active(y) && !y->constant))
		return false;
	if (x->constant && x->ncontent == 1 && rfl_onnx_numel(&x->dims) == 1)
		return with_number(k, y, x->content[0], true);
	if (y->constant && y->ncontent == 1 && rfl_onnx_numel(&y->dims) == 1)
		return with_number(k, x, y->content[0], false);
	if (op == RFL_OP_MUL && x->node == y->node)
		return put(k->c, k->out, ONE(k->c, x->node, NULL, .op = RFL_OP_SQUARE), x);
	like = !active(x) ? y : !active(y) ? x : aligned(k->c, x, y);
	if (!like)
		return false;
	a = x->constant ? operand(k, x, y, is_learned(k, x)) : x->node;
	b = y->constant ? operand(k, y, x, is_learned(k, y)) : y->node;
	if (a < 0 || b < 0 || !put(k->c, k->out, rfl_binary(k->c->builder, op, a, b, false), like))
		return false;
	k->out->permuted = like->permuted;
	return true;
}

static bool power(struct call *k)
{
	return is_number(k->y, 2) &&
	       give(k, ONE(k->c, k->x->node, NULL, .op = RFL_OP_SQUARE), false);
}

static bool negate(struct call *k)
{
	return affine(k, k->x, -1, 0);
}

static bool identity(struct call *k)
{
	return pass(k->out, k->x);
}

/* --- pooling and reductions --- */

static bool pool(struct call *k)
{
	const bool max = is(k, "MaxPool");
	const value *indices = rfl_onnx_out(k->n, 1);
	struct window w;

	if (!window(k, &w) || w.dilation[0] != 1 || w.dilation[1] != 1 || w.pad[0] != w.pad[2] ||
	    w.pad[1] != w.pad[3] || (indices && indices->uses) || w.kernel[0] < 1 ||
	    w.kernel[1] < 1 || w.pad[0] > w.kernel[0] / 2 || w.pad[1] > w.kernel[1] / 2)
		return false;
	if (!max && w.kernel[0] == 1 && w.kernel[1] == 1 && w.stride[0] == 1 && w.stride[1] == 1)
		return pass(k->out, k->x); /* of an adaptive pooling to the same size */
	return give(k,
		    ONE(k->c, k->x->node, NULL, .op = max ? RFL_OP_MAX_POOL : RFL_OP_AVG_POOL,
			.attr.pool = { w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.pad[0],
				       w.pad[1], rfl_onnx_int(k->n, "ceil_mode", 0) != 0,
				       !max && (w.pad[0] || w.pad[1]) &&
					       !rfl_onnx_int(k->n, "count_include_pad", 0) }),
		    false);
}

static bool global_average(struct call *k)
{
	return give(k,
		    ONE(k->c, k->x->node, NULL, .op = RFL_OP_ADAPTIVE_AVG_POOL,
			.attr.adaptive_pool = { 1, 1 }),
		    false);
}

static bool reduce(struct call *k)
{
	const bool keep = rfl_onnx_int(k->n, "keepdims", 1) != 0;
	const enum rfl_op op = is(k, "ReduceMean")  ? RFL_OP_MEAN
			       : is(k, "ReduceSum") ? RFL_OP_SUM
						    : RFL_OP_MAX;
	int64_t axes[RFL_ONNX_MAX_DIMS];
	unsigned seen = 0;
	int n, first = RFL_ONNX_MAX_DIMS, before = 0, node;

	if (!rfl_onnx_ints(k->n, "axes", 1, axes, &n))
		return false;
	for (int i = 0; i < n; i++) {
		const int axis = rfl_onnx_axis(axes[i], k->x->dims.n);
		const int at = axis_of(k->x, axis);

		if (at < 0 || axis == k->x->batch || (seen >> at & 1))
			return false;
		seen |= 1u << at;
		first = at < first ? at : first;
		before += axis < k->x->batch;
	}
	if (seen != ((1u << n) - 1) << first)
		return false;
	if (op == RFL_OP_MEAN && keep && is_image(k->x) && first == 1 && n == 2)
		return global_average(k);
	node = ONE(k->c, k->x->node, NULL, .op = op, .attr.reduce = { first, n, keep });
	return put_at(k->c, k->out, node, k->x, k->x->batch - (keep ? 0 : before));
}

/* --- views and copies --- */

/* Whether a view can have this shape: it keeps all boundaries between dimensions. */
static bool keeps_boundaries(const struct rfl_shape *from, const struct rfl_shape *to)
{
	int64_t a = 1, b = 1;
	int j = 0;

	for (int i = 0; i < from->ndim; i++) {
		a *= from->dim[i];
		while (b < a && j < to->ndim)
			b *= to->dim[j++];
		if (a != b)
			return false;
	}
	return true;
}

/* Give a tensor another shape, if it is another one; after a permutation this can take a copy. */
static int view(struct rfl_onnx *c, const value *x, const struct rfl_shape *to, bool *permuted)
{
	const struct rfl_shape from = shape_of(c, x);
	int node = x->node;

	*permuted = x->permuted;
	if (same_shape(&from, to))
		return node;
	if (x->permuted && !keeps_boundaries(&from, to)) {
		node = ONE(c, node, NULL, .op = RFL_OP_CONTIGUOUS);
		*permuted = false;
	}
	if (to->ndim == 1)
		return ONE(c, node, NULL, .op = RFL_OP_FLATTEN);
	return ONE(c, node, NULL, .op = RFL_OP_RESHAPE, .attr.reshape.shape = *to);
}

/* Find the dimension that holds the batch after a reshape: `before` elements precede the batch. */
static int find_batch(const struct rfl_onnx_dims *d, int64_t before, int64_t batch)
{
	int64_t prefix = 1, end;
	int found = -1;

	for (int i = 0; i < d->n; prefix *= d->dim[i++]) {
		end = prefix * d->dim[i];
		if (prefix == before && d->dim[i] == batch)
			return i;
		if (prefix <= before && before * batch <= end && before % prefix == 0 &&
		    d->dim[i] % batch == 0)
			found = i;
	}
	return found;
}

static bool reshape(struct call *k)
{
	struct rfl_onnx *c = k->c;
	const value *x = k->x;
	int64_t before = 1;
	struct rfl_shape to = { 0 };
	struct rfl_onnx_dims dims;
	value like;
	bool permuted;
	int batch;

	if (!rfl_onnx_reshaped(k->n, &dims))
		return false;
	for (int i = 0; i < x->batch; i++)
		before *= x->dims.dim[i];
	before *= x->outer;
	batch = find_batch(&dims, before, c->batch);
	if (batch < 0)
		return false;
	like = *x;
	like.inside = dims.dim[batch] / c->batch;
	like.outer = before;
	for (int i = 0; i < batch; i++)
		like.outer /= dims.dim[i];
	for (int i = 0; i < dims.n; i++) {
		if (i == batch && like.inside == 1)
			continue;
		if (to.ndim == RFL_NET_MAX_DIMS)
			return false;
		to.dim[to.ndim++] = i == batch ? like.inside : dims.dim[i];
	}
	if (to.ndim == 0 || rfl_shape_numel(&to) != rfl_onnx_numel(&x->dims) / c->batch)
		return false;
	if (!put_at(c, k->out, view(c, x, &to, &permuted), &like, batch))
		return false;
	k->out->permuted = permuted;
	return true;
}

static bool transpose(struct call *k)
{
	const struct rfl_onnx_attribute *perm = rfl_onnx_attribute(k->n, "perm");
	const value *x = k->x;
	struct rfl_node node = { .op = RFL_OP_PERMUTE, .ninputs = 1 };
	int batch = -1, n = 0, last = -1;
	bool moved = false, mixed = false;

	if (perm && perm->nints != (size_t)x->dims.n)
		return false;
	for (int i = 0; i < x->dims.n; i++) {
		const int64_t from = perm ? perm->ints[i] : x->dims.n - 1 - i;
		int at;

		if (from < 0 || from >= x->dims.n)
			return false;
		if (from == x->batch)
			batch = i;
		at = axis_of(x, (int)from);
		if (at < 0)
			continue;
		if (n == RFL_NET_MAX_DIMS)
			return false;
		moved |= at != n;
		node.attr.permute.order[n++] = at;
		if (x->dims.dim[from] > 1) {
			mixed |= at < last;
			last = at;
		}
	}
	if (batch < 0 || n != shape_of(k->c, x).ndim)
		return false;
	node.input = &x->node;
	if (!put_at(k->c, k->out, moved ? rfl_net_append(k->c->builder, &node, NULL) : x->node, x,
		    batch))
		return false;
	k->out->permuted = x->permuted || mixed;
	return true;
}

static bool concat(struct call *k)
{
	int nodes[RFL_NET_MAX_INPUTS];
	const value *like = NULL;
	int axis;

	for (size_t i = 0; i < k->n->ninputs; i++) {
		const value *v = rfl_onnx_in(k->n, i);

		if (!like && active(v))
			like = v;
		if (!v || (active(v) && (v->batch != like->batch || v->inside != like->inside)))
			return false;
	}
	if (!like || k->n->ninputs > RFL_NET_MAX_INPUTS)
		return false;
	axis = rfl_onnx_axis(rfl_onnx_int(k->n, "axis", 0), like->dims.n);
	if (axis_of(like, axis) < 0 || axis == like->batch)
		return false;
	for (size_t i = 0; i < k->n->ninputs; i++) {
		value *v = rfl_onnx_in(k->n, i);

		if (v->constant && v->dims.n != like->dims.n)
			return false;
		nodes[i] = v->constant ? operand(k, v, like, v->weight && is_float(v)) : v->node;
		if (nodes[i] < 0)
			return false;
	}
	return put(k->c, k->out,
		   rfl_concat(k->c->builder, nodes, (int)k->n->ninputs, axis_of(like, axis)), like);
}

/* Take a part of one dimension. */
static int part(struct rfl_onnx *c, int x, int axis, int64_t start, int64_t length, int64_t step)
{
	return ONE(c, x, NULL, .op = RFL_OP_SLICE, .attr.slice = { axis, start, length, step });
}

static bool slice(struct call *k)
{
	static const char *const names[] = { "starts", "ends", "axes", "steps" };
	int64_t list[4][RFL_ONNX_MAX_DIMS];
	int n = 0, m, node = k->x->node;

	for (int i = 0; i < RFL_ONNX_MAX_DIMS; i++) {
		list[2][i] = i;
		list[3][i] = 1;
	}
	for (int i = 0; i < 4; i++) {
		if (i >= 2 && !rfl_onnx_in(k->n, (size_t)i + 1))
			continue;
		if (!rfl_onnx_ints(k->n, names[i], i + 1, list[i], &m) || (i && m != n))
			return false;
		n = m;
	}
	for (int i = 0; i < n; i++) {
		const int axis = rfl_onnx_axis(list[2][i], k->x->dims.n);
		const int64_t size = axis < 0 ? 0 : k->x->dims.dim[axis], step = list[3][i];
		int64_t a = list[0][i] + (list[0][i] < 0 ? size : 0);
		int64_t z = list[1][i] + (list[1][i] < 0 ? size : 0);

		a = a < 0 ? 0 : a;
		z = z > size ? size : z;
		if (axis < 0 || a >= z || step < 1)
			return false;
		if (a == 0 && z == size && step == 1)
			continue;
		if (axis == k->x->batch)
			return false;
		node = part(k->c, node, axis_of(k->x, axis), a, (z - a - 1) / step + 1, step);
	}
	return give(k, node, true);
}

static bool split(struct call *k)
{
	const int axis = rfl_onnx_axis(rfl_onnx_int(k->n, "axis", 0), k->x->dims.n);
	const int64_t size = axis < 0 ? 0 : k->x->dims.dim[axis], parts = (int64_t)k->n->noutputs;
	int64_t sizes[RFL_ONNX_MAX_DIMS], start = 0;
	int n_listed = 0;
	const bool listed = rfl_onnx_ints(k->n, "split", 1, sizes, &n_listed);

	if (axis_of(k->x, axis) < 0 || axis == k->x->batch || parts < 1 || (!listed && k->y) ||
	    (listed && parts != n_listed))
		return false;
	for (int64_t i = 0; i < parts; i++) {
		const int64_t even = (size - 1) / parts + 1;
		const int64_t n = listed ? sizes[i] : even < size - start ? even : size - start;
		value *out = rfl_onnx_out(k->n, (size_t)i);

		if (n < 1 || n > size - start)
			return false;
		if (!put(k->c, out, part(k->c, k->x->node, axis_of(k->x, axis), start, n, 1), k->x))
			return false;
		out->permuted = true;
		start += n;
	}
	return true;
}

static bool embedding(struct call *k)
{
	const struct rfl_onnx_dims *d = &k->x->dims;
	int node, *owner;

	if (!active(k->y) || !d->known || d->n != 2 || rfl_onnx_int(k->n, "axis", 0) != 0 ||
	    k->y->inside != 1 || k->y->batch != 0 ||
	    k->c->builder->nodes[k->y->node].op != RFL_OP_INPUT ||
	    k->c->builder->nodes[k->y->node].dtype != RFL_DTYPE_I64 || !is_float(k->x))
		return false;
	owner = owner_of(k->c, k->x);
	node = ONE(k->c, k->y->node, name_of(k, k->x, NULL), .op = RFL_OP_EMBEDDING,
		   .tied = owner ? *owner : 0, .attr.embedding = { d->dim[0], d->dim[1] });
	if (!put(k->c, k->out, node, k->y))
		return false;
	own(k->c, k->x, node);
	return true;
}

/* Rows of a table by tokens; or one element of a dimension, or consecutive ones. */
static bool gather(struct call *k)
{
	struct rfl_shape shape;
	int64_t first, n;
	bool permuted;
	int axis, at;
	value whole;

	if (!k->x)
		return false;
	if (k->x->constant)
		return embedding(k);
	axis = rfl_onnx_axis(rfl_onnx_int(k->n, "axis", 0), k->x->dims.n);
	if (!active(k->x) || !k->y->constant || k->y->ncontent == 0 || k->y->dims.n > 1 ||
	    axis < 0 || axis == k->x->batch)
		return false;
	at = axis_of(k->x, axis);
	n = (int64_t)k->y->ncontent;
	first = rfl_onnx_int_at(k->y, 0);
	first += first < 0 ? k->x->dims.dim[axis] : 0;
	for (size_t i = 1; i < k->y->ncontent; i++)
		if (k->y->content[i] != k->y->content[i - 1] + 1)
			return false;
	if (n != rfl_onnx_numel(&k->y->dims) || first < 0 || first > k->x->dims.dim[axis] - n)
		return false;
	if (!give(k, part(k->c, k->x->node, at, first, n, 1), true))
		return false;
	if (k->y->dims.n == 1)
		return true;
	whole = *k->out;
	shape = shape_of(k->c, k->out);
	if (shape.ndim < 2)
		return false;
	memmove(shape.dim + at, shape.dim + at + 1,
		(size_t)(shape.ndim - at - 1) * sizeof(*shape.dim));
	shape.ndim--;
	if (!put_at(k->c, k->out, view(k->c, &whole, &shape, &permuted), &whole,
		    whole.batch - (axis < whole.batch)))
		return false;
	k->out->permuted = true;
	return true;
}

/* Repeat one dimension of size 1, such as the key heads of a grouped-query attention. */
static bool expand(struct call *k)
{
	int nodes[RFL_NET_MAX_INPUTS], n, at = -1;
	int64_t to[RFL_ONNX_MAX_DIMS];
	const int dims = k->x->dims.n;

	if (!rfl_onnx_ints(k->n, "", 1, to, &n) || n > dims)
		return false;
	for (int i = 0; i < n; i++) {
		const int axis = i + dims - n;

		if (to[i] == k->x->dims.dim[axis] || to[i] == 1)
			continue;
		if (k->x->dims.dim[axis] != 1 || at >= 0 || axis == k->x->batch || to[i] < 1 ||
		    to[i] > RFL_NET_MAX_INPUTS)
			return false;
		at = i;
	}
	if (at < 0)
		return pass(k->out, k->x);
	for (int i = 0; i < to[at]; i++)
		nodes[i] = k->x->node;
	return give(k, rfl_concat(k->c->builder, nodes, (int)to[at], axis_of(k->x, at + dims - n)),
		    false);
}

static bool pad(struct call *k)
{
	const struct rfl_onnx_attribute *mode = rfl_onnx_attribute(k->n, "mode");
	int64_t list[2 * RFL_ONNX_MAX_DIMS], side[2][RFL_NET_MAX_DIMS + 1] = { { 0 } };
	const int n = k->x->dims.n;
	int first = -1, last = -1, dims;

	if (rfl_onnx_numel(&k->y->dims) != 2 * n || !k->y->ncontent || rfl_onnx_in(k->n, 3) ||
	    (mode && !rfl_span_is(mode->text, "constant")) || (k->z && !is_number(k->z, 0)))
		return false;
	for (int i = 0; i < 2 * n; i++)
		list[i] = rfl_onnx_int_at(k->y, i);
	for (int i = 0; i < n; i++) {
		const int at = axis_of(k->x, i);

		if (list[i] < 0 || list[n + i] < 0 ||
		    ((list[i] || list[n + i]) && i == k->x->batch))
			return false;
		if (at < 0 || (!list[i] && !list[n + i]))
			continue;
		side[0][at] = list[i];
		side[1][at] = list[n + i];
		first = first < 0 ? at : first;
		last = at;
	}
	if (first < 0)
		return pass(k->out, k->x);
	dims = shape_of(k->c, k->x).ndim;
	first = first == dims - 1 ? first - 1 : first;
	if (first < 0 || last > first + 1)
		return false;
	return give(k,
		    ONE(k->c, k->x->node, NULL, .op = RFL_OP_PAD,
			.attr.padding = { first, side[0][first], side[1][first], side[0][first + 1],
					  side[1][first + 1] }),
		    false);
}

/* --- attention and other forms of several nodes --- */

static bool attend(struct call *k, bool transpose, bool causal)
{
	struct rfl_onnx *c = k->c;
	struct rfl_shape a, b, d;
	struct rfl_node turn = { .op = RFL_OP_PERMUTE, .ninputs = 1 };
	int at = k->y->node;

	if (!active(k->y) || !active(k->z) || !is_matrix(k->x) || !is_matrix(k->y) ||
	    !is_matrix(k->z))
		return false;
	a = shape_of(c, k->x);
	b = shape_of(c, k->y);
	d = shape_of(c, k->z);
	if (!same_leading(&a, &b) || !same_leading(&a, &d))
		return false;
	if (transpose) {
		for (int i = 0; i < a.ndim; i++)
			turn.attr.permute.order[i] = i < a.ndim - 2 ? i : 2 * a.ndim - 3 - i;
		turn.input = &k->y->node;
		at = rfl_net_append(c->builder, &turn, NULL);
	}
	return give(k, rfl_sdpa(c->builder, k->x->node, at, k->z->node, causal, 0), false);
}

static bool attention(struct call *k)
{
	const value *mask = rfl_onnx_in(k->n, 3);
	const bool causal = rfl_onnx_int(k->n, "is_causal", 0) != 0;
	const double scale = rfl_onnx_real(k->n, "scale", 0);

	if (is(k, RFL_ONNX_SDPA))
		return attend(k, true, causal);
	return k->x->dims.n == 4 && k->n->noutputs == 1 && !rfl_onnx_in(k->n, 4) &&
	       rfl_onnx_real(k->n, "softcap", 0) == 0.0 &&
	       (!mask || rfl_onnx_is_causal(k->c, mask)) &&
	       (!rfl_onnx_attribute(k->n, "scale") ||
		fabs(scale * sqrt((double)k->x->dims.dim[3]) - 1) <= 1e-4) &&
	       attend(k, false, causal || mask);
}

/* --- operations that are not supported --- */

/* The dimensions of a result that nothing was computed for: as the file says, or as the input. */
static bool guess(const struct call *k, value *out)
{
	static const char *const same[] = { "Abs",        "Celu",        "Ceil",       "Cos",
					    "Elu",        "Erf",         "Floor",      "LeakyRelu",
					    "LogSoftmax", "PRelu",       "Reciprocal", "Round",
					    "Selu",       "Sin",         "Softplus",   "Sqrt",
					    "Clip",       "HardSigmoid", "Pow",        "Softmax" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(same) && active(k->x); i++)
		if (is(k, same[i]))
			return pass(out, k->x);
	if (is(k, "Div") && active(k->y) && k->x && k->x->constant && k->x->ncontent == 1)
		return pass(out, k->y);
	if (!out->dims.known || out->dims.n < 1)
		return false;
	for (int i = 0; i < out->dims.n; i++)
		if (out->dims.dim[i] < 1)
			return false;
	out->batch = 0;
	out->outer = 1;
	out->inside = out->dims.dim[0] / k->c->batch;
	return out->dims.dim[0] % k->c->batch == 0;
}

/* Note an operation that is not supported; if the shape of its result is known, the rest is
 * counted. */
static bool unsupported(struct call *k)
{
	struct rfl_onnx *c = k->c;
	const value *x = NULL;
	char *name;
	bool known = true; /* all that it reads */

	for (size_t i = 0; i < k->n->ninputs; i++) {
		const value *v = rfl_onnx_in(k->n, i);

		x = !x && active(v) ? v : x;
		known &= !v || v->constant || active(v);
	}
	for (size_t i = 0; i < k->n->noutputs; i++) {
		value *out = rfl_onnx_out(k->n, i), like;
		struct rfl_shape shape = { 0 };

		if (!out || !guess(k, out) || out->dims.n - (out->inside == 1) > RFL_NET_MAX_DIMS)
			continue;
		like = *out;
		for (int d = 0; d < out->dims.n; d++)
			if (d != out->batch || out->inside > 1)
				shape.dim[shape.ndim++] =
					d == out->batch ? out->inside : out->dims.dim[d];
		if (shape.ndim > 0 && rfl_shape_fits(&shape))
			(void)put(c, out,
				  ONE(c, x ? x->node : c->input->node, NULL, .op = RFL_OP_UNKNOWN,
				      .attr.reshape.shape = shape),
				  &like);
	}
	if (!known && !active(k->out)) {
		c->nafter++;
		return false;
	}
	name = rfl_arena_printf(c->arena, "%.*s%s%.*s", RFL_SPAN_ARG(k->n->domain),
				k->n->domain.len ? "::" : "", RFL_SPAN_ARG(k->n->op));
	rfl_text_one_line(name);
	json_object_set_new(
		c->unknown, name,
		json_integer(json_integer_value(json_object_get(c->unknown, name)) + 1));
	return false;
}

bool rfl_onnx_convert(struct rfl_onnx *c, struct rfl_onnx_node *n)
{
	/* the first input is computed, and perhaps images; there is a second one */
	enum { X = 1, Y = 2, IMAGES = 4, IMAGE = X | IMAGES };
	static const struct {
		const char *op;
		bool (*convert)(struct call *k);
		unsigned needs;
	} ops[] = {
		{ "Add", binary, Y },
		{ "Attention", attention, X | Y },
		{ "AveragePool", pool, IMAGE },
		{ "BatchNormalization", batch_norm, IMAGE | Y },
		{ "Cast", identity, X },
		{ "CastLike", identity, X },
		{ "Clip", clip, X },
		{ "Concat", concat, 0 },
		{ "Conv", conv, IMAGE | Y },
		{ "Div", binary, Y },
		{ "Dropout", identity, X },
		{ "Expand", expand, X },
		{ "Flatten", reshape, X },
		{ "Gather", gather, Y },
		{ "Gemm", gemm, X | Y },
		{ "GlobalAveragePool", global_average, IMAGE },
		{ "Identity", identity, X },
		{ "LayerNormalization", layer_norm, X | Y },
		{ "MatMul", matmul, X | Y },
		{ "MaxPool", pool, IMAGE },
		{ "Mul", binary, Y },
		{ "Neg", negate, X },
		{ "Pad", pad, X | Y },
		{ "Pow", power, X },
		{ "RMSNormalization", layer_norm, X | Y },
		{ "ReduceMax", reduce, X },
		{ "ReduceMean", reduce, X },
		{ "ReduceSum", reduce, X },
		{ "Reshape", reshape, X },
		{ "Slice", slice, X },
		{ "Split", split, X },
		{ "Squeeze", reshape, X },
		{ "Sub", binary, Y },
		{ "Transpose", transpose, X },
		{ "Unsqueeze", reshape, X },
		{ RFL_ONNX_SDPA, attention, X | Y },
	};
	struct call k = {
		.c = c,
		.n = n,
		.x = rfl_onnx_in(n, 0),
		.y = rfl_onnx_in(n, 1),
		.z = rfl_onnx_in(n, 2),
		.out = rfl_onnx_out(n, 0),
	};
	const bool standard = k.n->domain.len == 0 || rfl_span_is(k.n->domain, "ai.onnx");

	if (!k.out)
		return true;
	for (size_t i = 0; i < RFL_ARRAY_LEN(ops) && standard; i++) {
		const unsigned needs = ops[i].needs;

		if (is(&k, ops[i].op))
			return ((!(needs & X) || active(k.x)) && (!(needs & Y) || k.y) &&
				(!(needs & IMAGES) || is_image(k.x)) && ops[i].convert(&k)) ||
			       unsupported(&k);
	}
	return (standard && active(k.x) && unary(&k)) || unsupported(&k);
}
