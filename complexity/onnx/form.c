/*
 * form.c - recognises what exporters write in several nodes: activations, normalisations, and
 * attention as a product, a softmax and a product. The last node of a form becomes the operation;
 * nodes that nothing reads any more are dropped.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "complexity/onnx/graph.h"

typedef struct rfl_onnx_value value;

/* A factor of a product, or a divisor. */
struct factor {
	value *v;
	bool divides;
};

enum { MAX_FACTORS = 4, MAX_MASK = 1 << 24 };

/* Replace the operation of a node, and its inputs; w and b can be NULL. */
static bool become(struct rfl_onnx *c, struct rfl_onnx_node *n, const char *op, value *x, value *w,
		   value *b, struct rfl_onnx_attribute attribute)
{
	n->op = rfl_span_of(op);
	n->domain.len = 0;
	n->ninputs = w ? 3 : 1;
	n->in = rfl_arena_array(c->arena, 3, sizeof(*n->in));
	n->in[0] = x;
	n->in[1] = w;
	n->in[2] = b;
	n->nattributes = 1;
	n->attributes = rfl_arena_array(c->arena, 1, sizeof(attribute));
	*n->attributes = attribute;
	return true;
}

/* The node that computes a value, if it is this operation. */
static struct rfl_onnx_node *made_by(const value *v, const char *op)
{
	return v && v->producer && rfl_span_is(v->producer->op, op) ? v->producer : NULL;
}

/* The k-th input of this node. */
static value *under(const value *v, const char *op, size_t k)
{
	const struct rfl_onnx_node *n = made_by(v, op);

	return n ? rfl_onnx_in(n, k) : NULL;
}

static bool is_number(const value *v, double number)
{
	return v && v->constant && v->ncontent == 1 &&
	       fabs(v->content[0] - number) <= 1e-3 * fabs(number);
}

/* The operand of a sum or product beside a given number; NULL: it is not of this kind. */
static value *beside(const value *v, const char *op, double number)
{
	for (size_t k = 0; k < 2; k++)
		if (is_number(under(v, op, k), number))
			return under(v, op, 1 - k);
	return NULL;
}

/* Split a product into its factors, through products and quotients. @return their number */
static int split(value *v, bool divides, int depth, int n, struct factor *out)
{
	const struct rfl_onnx_node *mul = made_by(v, "Mul"), *div = made_by(v, "Div");
	value *a = under(v, mul ? "Mul" : "Div", 0), *b = under(v, mul ? "Mul" : "Div", 1);

	if (n < 0 || n >= MAX_FACTORS || depth > MAX_FACTORS)
		return -1;
	if (!a || !b || divides) {
		out[n] = (struct factor){ v, divides };
		return n + 1;
	}
	n = is_number(a, 1) ? n : split(a, false, depth + 1, n, out);
	return split(b, div != NULL, depth + 1, n, out);
}

static int factors(value *v, struct factor *out)
{
	return split(v, false, 0, 0, out);
}

/* --- activations --- */

/* Whether every path up from v ends at x or at a constant, within a few nodes. */
static bool is_function_of(const value *v, const value *x, int depth)
{
	if (v == x || (v && v->constant))
		return true;
	if (!v || !v->producer || depth == 0)
		return false;
	for (size_t k = 0; k < v->producer->ninputs; k++)
		if (k > 2 || !is_function_of(v->producer->in[k], x, depth - 1))
			return false;
	return true;
}

/* 1 + erf(x / sqrt(2)), or 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)). */
static bool is_gelu_part(const value *v, const value *x, bool *tanh)
{
	const value *inner = beside(v, "Add", 1), *erf = under(inner, "Erf", 0);
	const value *of = under(inner, "Tanh", 0);

	*tanh = !erf;
	if (erf)
		return (under(erf, "Div", 0) == x && is_number(under(erf, "Div", 1), sqrt(2))) ||
		       beside(erf, "Mul", sqrt(0.5)) == x;
	return of && is_function_of(of, x, 6) && beside(of, "Mul", sqrt(2 / 3.14159265358979));
}

static bool activation(struct rfl_onnx *c, struct rfl_onnx_node *node)
{
	const struct rfl_onnx_attribute none = { .name = { "alpha", 5 }, .real = 1 };
	struct rfl_onnx_attribute form = { .name = { "approximate", 11 } };
	value *out = node->out[0];
	struct factor f[MAX_FACTORS];
	bool tanh;

	for (size_t k = 0; k < 2; k++) { /* x * gate(x) */
		value *gate = under(out, "Mul", k), *x = under(out, "Mul", 1 - k);
		const char *op = !x                                                  ? NULL
				 : under(gate, "Sigmoid", 0) == x                    ? "Swish"
				 : under(gate, "HardSigmoid", 0) == x                ? "HardSwish"
				 : under(under(gate, "Tanh", 0), "Softplus", 0) == x ? "Mish"
										     : NULL;

		if (op)
			return become(c, node, op, x, NULL, NULL, none);
	}
	if (factors(out, f) != 3)
		return false;
	for (int i = 0; i < 3; i++) /* 0.5, x, and the other part, in any order */
		for (int k = 0; k < 3; k++) {
			const int half = 3 - i - k;

			if (i == k || !is_gelu_part(f[i].v, f[k].v, &tanh) || f[i].divides ||
			    f[k].divides || !is_number(f[half].v, f[half].divides ? 2 : 0.5))
				continue;
			form.text = rfl_span_of(tanh ? "tanh" : "none");
			return become(c, node, "Gelu", f[k].v, NULL, NULL, form);
		}
	return false;
}

/* --- sums and normalisations --- */

/* The value of which a factor is 1 / sqrt. */
static value *under_root(const struct factor *f)
{
	const value *root = f->divides ? f->v : under(f->v, "Reciprocal", 0);

	if (!root && is_number(under(f->v, "Pow", 1), -0.5))
		return under(f->v, "Pow", 0);
	return under(root, "Sqrt", 0);
}

/* The value of which v is the mean square over the last dimension, plus a small number. */
static value *mean_square(const value *v, double *eps)
{
	const struct rfl_onnx_node *mean = NULL;
	int64_t axes[RFL_ONNX_MAX_DIMS];
	value *square, *of;
	int n;

	for (size_t k = 0; k < 2; k++) {
		const value *number = under(v, "Add", 1 - k);

		if (!number || !number->constant || number->ncontent != 1)
			continue;
		*eps = number->content[0];
		mean = made_by(under(v, "Add", k), "ReduceMean");
	}
	if (!mean || !rfl_onnx_ints(mean, "axes", 1, axes, &n) || n != 1)
		return NULL;
	square = rfl_onnx_in(mean, 0);
	of = is_number(under(square, "Pow", 1), 2) ? under(square, "Pow", 0)
						   : under(square, "Mul", 0);
	if (!of || (made_by(square, "Mul") && under(square, "Mul", 1) != of))
		return NULL;
	return rfl_onnx_axis(axes[0], of->dims.n) == of->dims.n - 1 ? of : NULL;
}

/* A product of x, 1 / sqrt(mean square of x) and a weight. */
static bool rms(struct rfl_onnx *c, struct rfl_onnx_node *node)
{
	struct rfl_onnx_attribute eps = { .name = { "epsilon", 7 } };
	struct factor f[MAX_FACTORS];

	if (factors(node->out[0], f) != 3)
		return false;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			const value *square = i == k ? NULL : under_root(&f[i]);
			value *w = f[i == k ? i : 3 - i - k].v;

			if (square && !f[k].divides && w->constant && w->weight &&
			    mean_square(square, &eps.real) == f[k].v)
				return become(c, node, "RMSNormalization", f[k].v, w, NULL, eps);
		}
	return false;
}

/* A bias and a matmul; or a bias and such a product, of the difference of x and its mean. */
static bool sum(struct rfl_onnx *c, struct rfl_onnx_node *add)
{
	const struct rfl_onnx_attribute none = { .name = { "transB", 6 } };

	for (size_t k = 0; k < 2; k++) {
		value *bias = rfl_onnx_in(add, 1 - k), *of = rfl_onnx_in(add, k);
		value *w = under(of, "MatMul", 1), *from = under(of, "RMSNormalization", 0);
		value *x = under(from, "Sub", 0);

		if (!bias || !bias->constant)
			continue;
		if (w && w->constant && w->dims.n == 2 && bias->dims.n == 1 &&
		    bias->dims.dim[0] == w->dims.dim[1] && of->uses == 1)
			return become(c, add, "Gemm", under(of, "MatMul", 0), w, bias, none);
		if (x && bias->weight && under(under(from, "Sub", 1), "ReduceMean", 0) == x)
			return become(c, add, "LayerNormalization", x,
				      under(of, "RMSNormalization", 1), bias,
				      of->producer->attributes[0]);
	}
	return false;
}

/* --- attention --- */

/* Read the elements of a mask, in the file itself or in the one with the weights. @return malloc'ed
 */
static float *elements(const struct rfl_onnx *c, const struct rfl_onnx_tensor *t, size_t n)
{
	float *ret = t->type == RFL_ONNX_FLOAT ? rfl_alloc_array(n, sizeof(*ret)) : NULL;
	const struct rfl_span *data = t->data.len ? &t->data : &t->floats;
	char name[1024], *path;
	ssize_t got = 0;
	int fd;

	if (ret && data->len == n * sizeof(*ret)) {
		memcpy(ret, data->at, data->len);
		return ret;
	}
	if (ret && t->location.len > 0 && t->location.len < sizeof(name)) {
		path = rfl_path_beside(c->path, rfl_span_copy(t->location, name, sizeof(name)));
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0) {
			got = pread(fd, ret, n * sizeof(*ret), (off_t)t->offset);
			(void)close(fd);
		}
		free(path);
	}
	if (got == (ssize_t)(n * sizeof(*ret)))
		return ret;
	free(ret);
	return NULL;
}

bool rfl_onnx_is_causal(const struct rfl_onnx *c, const value *mask)
{
	const struct rfl_onnx_node *trilu = made_by(mask, "Trilu");
	const bool cut = trilu && rfl_onnx_int(trilu, "upper", 1) &&
			 is_number(rfl_onnx_in(trilu, 1), 1); /* only what is above is left */
	const value *of = cut ? rfl_onnx_in(trilu, 0) : mask;
	const int64_t numel = rfl_onnx_numel(&mask->dims), side = (int64_t)sqrt((double)numel);
	const bool same = cut && of && of->ncontent == 1;
	float *data = NULL;
	bool ret = of && side > 1 && numel <= MAX_MASK && numel == side * side &&
		   mask->dims.dim[mask->dims.n - 1] == side && rfl_onnx_numel(&of->dims) == numel;

	if (ret && !same && of->weight && rfl_onnx_numel(&of->weight->dims) == numel)
		data = elements(c, of->weight, (size_t)numel);
	ret &= same ? of->content[0] < -1e4 : data != NULL;
	for (int64_t i = 0; ret && data && i < side; i++)
		for (int64_t k = cut ? i + 1 : 0; ret && k < side; k++)
			ret = k > i ? data[i * side + k] < -1e4F : !(data[i * side + k] != 0);
	free(data);
	return ret;
}

/* The factor of a value that is scaled by a number. */
static value *unscaled(value *v, double *scale)
{
	struct factor f[MAX_FACTORS];

	if (factors(v, f) != 2)
		return v;
	for (int k = 0; k < 2; k++)
		if (!f[1 - k].divides && f[k].v->constant && f[k].v->ncontent == 1) {
			*scale *= f[k].divides ? 1 / f[k].v->content[0] : f[k].v->content[0];
			return f[1 - k].v;
		}
	return v;
}

/* softmax(q k^T / sqrt(features) + a causal mask) v. Other masks and scales stay as written. */
static bool attention(struct rfl_onnx *c, struct rfl_onnx_node *matmul)
{
	struct rfl_onnx_attribute causal = { .name = { "is_causal", 9 } };
	const struct rfl_onnx_node *softmax = made_by(rfl_onnx_in(matmul, 0), "Softmax");
	value *scores = softmax ? rfl_onnx_in(softmax, 0) : NULL, *sum = scores, *q, *k;
	value *v = rfl_onnx_in(matmul, 1);
	double scale = 1;

	if (!scores ||
	    rfl_onnx_axis(rfl_onnx_int(softmax, "axis", -1), scores->dims.n) != scores->dims.n - 1)
		return false;
	for (size_t i = 0; i < 2; i++) {
		const value *mask = under(sum, "Add", i);

		if (mask && mask->constant && rfl_onnx_is_causal(c, mask)) {
			scores = under(sum, "Add", 1 - i);
			causal.integer = true;
		}
	}
	scores = scores ? unscaled(scores, &scale) : NULL;
	q = under(scores, "MatMul", 0);
	k = under(scores, "MatMul", 1);
	if (!q || !k || !v || v->constant)
		return false;
	q = unscaled(q, &scale);
	k = unscaled(k, &scale);
	if (q->constant || k->constant || q->dims.n < 2 ||
	    fabs(scale * sqrt((double)q->dims.dim[q->dims.n - 1]) - 1) > 1e-3)
		return false;
	return become(c, matmul, RFL_ONNX_SDPA, q, k, v, causal);
}

void rfl_onnx_recognise(struct rfl_onnx *c)
{
	for (struct rfl_onnx_node *n = c->graph.nodes; n < c->graph.nodes + c->graph.nnodes; n++) {
		if (!rfl_onnx_out(n, 0) || n->out[0]->constant)
			continue;
		if (rfl_span_is(n->op, "Mul") || rfl_span_is(n->op, "Div"))
			(void)(activation(c, n) || rms(c, n));
		else if (rfl_span_is(n->op, "Add"))
			(void)sum(c, n);
		else if (rfl_span_is(n->op, "MatMul"))
			(void)attention(c, n);
	}
}
