/*
 * fold.c - arithmetic on constants, as far as exporters compute shapes, axes and scales with it:
 * lists of at most 64 numbers, and larger tensors of one number. Of others only the dimensions are
 * known.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "complexity/onnx/graph.h"

typedef struct rfl_onnx_value value;

int64_t rfl_onnx_int(const struct rfl_onnx_node *n, const char *name, int64_t otherwise)
{
	const struct rfl_onnx_attribute *a = rfl_onnx_attribute(n, name);

	return a ? a->integer : otherwise;
}

double rfl_onnx_real(const struct rfl_onnx_node *n, const char *name, double otherwise)
{
	const struct rfl_onnx_attribute *a = rfl_onnx_attribute(n, name);

	return a ? a->real : otherwise;
}

int64_t rfl_onnx_numel(const struct rfl_onnx_dims *dims)
{
	int64_t numel = dims->known;

	for (int i = 0; i < dims->n && numel; i++)
		if (dims->dim[i] < 0 || !rfl_num_mul(numel, dims->dim[i], &numel))
			return 0;
	return numel;
}

static double at(const value *v, int64_t i)
{
	return v->content[v->ncontent > 1 ? i : 0];
}

int64_t rfl_onnx_int_at(const value *v, int64_t i)
{
	const double x = at(v, i);

	return x > 4e18 ? INT64_MAX : x < -4e18 ? INT64_MIN : isnan(x) ? 0 : (int64_t)x;
}

bool rfl_onnx_ints(const struct rfl_onnx_node *n, const char *name, int k,
		   int64_t out[RFL_ONNX_MAX_DIMS], int *count)
{
	const struct rfl_onnx_attribute *a = rfl_onnx_attribute(n, name);
	const value *v = k >= 0 ? rfl_onnx_in(n, (size_t)k) : NULL;
	const int64_t all = a ? (int64_t)a->nints : v && v->ncontent ? rfl_onnx_numel(&v->dims) : 0;

	if (all < 1 || all > RFL_ONNX_MAX_DIMS)
		return false;
	for (int64_t i = 0; i < all; i++)
		out[i] = a ? a->ints[i] : rfl_onnx_int_at(v, i);
	*count = (int)all;
	return true;
}

int rfl_onnx_axis(int64_t axis, int n)
{
	if (axis < 0)
		axis += n;
	return axis >= 0 && axis < n ? (int)axis : -1;
}

/* --- dimensions --- */

static bool reshape_to(const struct rfl_onnx_node *node, const struct rfl_onnx_dims *in,
		       struct rfl_onnx_dims *ret)
{
	const bool zero = rfl_onnx_int(node, "allowzero", 0) != 0;
	int64_t rest = rfl_onnx_numel(in);
	int open = -1;

	if (rest == 0 || !rfl_onnx_ints(node, "shape", 1, ret->dim, &ret->n))
		return false;
	for (int i = 0; i < ret->n; i++) {
		if (ret->dim[i] == 0 && !zero && i < in->n)
			ret->dim[i] = in->dim[i];
		if (ret->dim[i] == -1 && open < 0)
			open = i;
		else if (ret->dim[i] < 1 || rest % ret->dim[i] != 0)
			return false;
		else
			rest /= ret->dim[i];
	}
	if (open >= 0)
		ret->dim[open] = rest;
	return open >= 0 || rest == 1;
}

/* Squeeze and Unsqueeze: the dimensions of size 1 that are listed disappear, or are new. */
static bool change_ones(const struct rfl_onnx_node *node, const struct rfl_onnx_dims *in, bool more,
			struct rfl_onnx_dims *ret)
{
	int64_t axes[RFL_ONNX_MAX_DIMS];
	unsigned listed = 0;
	int n = 0, total = in->n, from = 0;

	if (!rfl_onnx_ints(node, "axes", 1, axes, &n)) {
		if (more || rfl_onnx_in(node, 1))
			return false;
		for (int i = 0; i < in->n; i++)
			listed |= (unsigned)(in->dim[i] == 1) << i;
	}
	total += more ? n : 0;
	for (int i = 0; i < n; i++) {
		const int axis = rfl_onnx_axis(axes[i], total);

		if (axis < 0 || (listed >> axis & 1) || (!more && in->dim[axis] != 1))
			return false;
		listed |= 1u << axis;
	}
	if (total > RFL_ONNX_MAX_DIMS)
		return false;
	for (int i = 0; i < total; i++)
		if (more)
			ret->dim[ret->n++] = listed >> i & 1 ? 1 : in->dim[from++];
		else if (!(listed >> i & 1))
			ret->dim[ret->n++] = in->dim[i];
	return true;
}

bool rfl_onnx_reshaped(const struct rfl_onnx_node *node, struct rfl_onnx_dims *ret)
{
	const value *v = rfl_onnx_in(node, 0);
	int axis;

	*ret = (struct rfl_onnx_dims){ .known = true };
	if (!v || !v->dims.known)
		return false;
	if (rfl_span_is(node->op, "Reshape"))
		return reshape_to(node, &v->dims, ret);
	if (rfl_span_is(node->op, "Squeeze") || rfl_span_is(node->op, "Unsqueeze"))
		return change_ones(node, &v->dims, node->op.at[0] == 'U', ret);
	axis = rfl_onnx_axis(rfl_onnx_int(node, "axis", 1), v->dims.n + 1);
	if (!rfl_span_is(node->op, "Flatten") || axis < 0 || !rfl_onnx_numel(&v->dims))
		return false;
	*ret = (struct rfl_onnx_dims){ .known = true, .n = 2, .dim = { 1, 1 } };
	for (int i = 0; i < v->dims.n; i++)
		ret->dim[i >= axis] *= v->dims.dim[i];
	return true;
}

/* The dimensions of two operands after broadcasting. */
static bool broadcast(const struct rfl_onnx_dims *a, const struct rfl_onnx_dims *b,
		      struct rfl_onnx_dims *ret)
{
	struct rfl_onnx_dims both = { .known = true, .n = a->n > b->n ? a->n : b->n };

	for (int i = 1; i <= both.n; i++) {
		const int64_t x = i <= a->n ? a->dim[a->n - i] : 1;
		const int64_t y = i <= b->n ? b->dim[b->n - i] : 1;

		if (x != y && x != 1 && y != 1)
			return false;
		both.dim[both.n - i] = x == 1 ? y : x;
	}
	if (a->known && b->known)
		*ret = both;
	return a->known && b->known;
}

/* --- contents --- */

/* Make a value a list, or one number. */
static void set(struct rfl_onnx *c, value *v, const double *list, size_t n, bool one_number)
{
	if (n == 0 || n > RFL_ONNX_MAX_CONTENT)
		return;
	v->content = memcpy(rfl_arena_array(c->arena, n, sizeof(*list)), list, n * sizeof(*list));
	v->ncontent = n;
	v->dims = (struct rfl_onnx_dims){ .known = true, .n = !one_number, .dim = { (int64_t)n } };
}

void rfl_onnx_set_tensor(struct rfl_onnx *c, value *v, const struct rfl_onnx_tensor *t)
{
	const int64_t n = rfl_onnx_numel(&t->dims);
	double list[RFL_ONNX_MAX_CONTENT];
	bool read = n > 0 && n <= RFL_ONNX_MAX_CONTENT && !t->location.len;

	for (int64_t i = 0; read && i < n; i++)
		read = rfl_onnx_element(t, (size_t)i, &list[i]);
	if (read)
		set(c, v, list, (size_t)n, false);
	v->type = t->type;
	v->dims = t->dims;
}

/* Take over what is known of a constant of which the result is a copy or a view. */
static void copy(const value *x, const struct rfl_onnx_dims *dims, value *v)
{
	v->type = x->type;
	v->weight = x->weight;
	v->ncontent = x->ncontent;
	v->content = x->content;
	v->dims = *dims;
}

static void fold_constant(struct rfl_onnx *c, const struct rfl_onnx_node *node, value *v)
{
	double list[RFL_ONNX_MAX_CONTENT];

	for (size_t i = 0; i < node->nattributes; i++) {
		const struct rfl_onnx_attribute *a = &node->attributes[i];

		v->type = RFL_ONNX_INT64;
		for (size_t k = 0; k < a->nints && k < RFL_ONNX_MAX_CONTENT; k++)
			list[k] = (double)a->ints[k];
		if (rfl_span_is(a->name, "value") && a->tensor) {
			rfl_onnx_set_tensor(c, v, a->tensor);
			v->weight = a->tensor;
		} else if (rfl_span_is(a->name, "value_ints")) {
			set(c, v, list, a->nints, false);
		} else if (rfl_span_is(a->name, "value_int")) {
			set(c, v, &(double){ (double)a->integer }, 1, true);
		} else if (rfl_span_is(a->name, "value_float")) {
			set(c, v, &a->real, 1, true);
			v->type = RFL_ONNX_FLOAT;
		}
	}
}

static void fold_shape(struct rfl_onnx *c, const struct rfl_onnx_node *node, const value *x,
		       value *v)
{
	int64_t start = rfl_onnx_int(node, "start", 0), end = rfl_onnx_int(node, "end", x->dims.n);
	double list[RFL_ONNX_MAX_DIMS];

	start += start < 0 ? x->dims.n : 0;
	end += end < 0 ? x->dims.n : 0;
	start = start < 0 ? 0 : start;
	end = end > x->dims.n ? x->dims.n : end;
	for (int i = 0; i < x->dims.n; i++)
		list[i] = (double)x->dims.dim[i];
	v->type = RFL_ONNX_INT64;
	if (start < end)
		set(c, v, list + start, (size_t)(end - start), false);
}

/* Rows of a list or table, in either direction. */
static void fold_slice(struct rfl_onnx *c, const struct rfl_onnx_node *node, const value *x,
		       value *v)
{
	int64_t from, to, axis = 0, step = 1;
	const int64_t rows = x->dims.n > 0 ? x->dims.dim[0] : 0;
	const int64_t row = rows > 0 ? (int64_t)x->ncontent / rows : 0;
	int64_t lists[4][RFL_ONNX_MAX_DIMS] = { { 0 }, { 0 }, { 0 }, { 1 } }, i, n = 0;
	double list[RFL_ONNX_MAX_CONTENT];
	int count = 1;

	for (int k = 0; k < 4; k++)
		if (rfl_onnx_in(node, (size_t)k + 1) &&
		    (!rfl_onnx_ints(node, "", k + 1, lists[k], &count) || count != 1))
			return;
	from = lists[0][0];
	to = lists[1][0];
	axis = lists[2][0];
	step = lists[3][0];
	if (row == 0 || axis != 0 || (step != 1 && step != -1))
		return;
	from += from < 0 ? rows : 0;
	to = to < -rows ? -1 : to < 0 ? to + rows : to;
	from = from < 0 ? 0 : from > rows - (step < 0) ? rows - (step < 0) : from;
	to = to > rows ? rows : to < 0 && step > 0 ? 0 : to;
	for (i = from; step > 0 ? i < to : i > to; i += step)
		for (int64_t k = 0; k < row; k++)
			list[n++] = x->content[i * row + k];
	copy(x, &x->dims, v);
	set(c, v, list, (size_t)n, false);
	v->dims = x->dims;
	v->dims.dim[0] = n / row; /* 0: an empty list, which a concatenation can read */
	v->ncontent = (size_t)n;
}

static void fold_concat(struct rfl_onnx *c, const struct rfl_onnx_node *node, value *v)
{
	double list[RFL_ONNX_MAX_CONTENT];
	size_t n = 0;

	for (size_t k = 0; k < node->ninputs; k++) {
		const value *x = rfl_onnx_in(node, k);
		const int64_t more = x ? rfl_onnx_numel(&x->dims) : 0;

		if (!x || !x->dims.known || x->dims.n != 1 || (more > 0 && !x->ncontent) ||
		    more > RFL_ONNX_MAX_CONTENT - (int64_t)n)
			return;
		for (int64_t i = 0; i < more; i++)
			list[n++] = at(x, i);
		v->type = x->type;
	}
	set(c, v, list, n, false);
}

static double calculate(struct rfl_span op, double a, double b, bool integer)
{
	const double quotient = b != 0 ? a / b : (double)NAN;

	return rfl_span_is(op, "Add")     ? a + b
	       : rfl_span_is(op, "Sub")   ? a - b
	       : rfl_span_is(op, "Mul")   ? a * b
	       : rfl_span_is(op, "Div")   ? (integer ? trunc(quotient) : quotient)
	       : rfl_span_is(op, "Mod")   ? a - b * floor(quotient)
	       : rfl_span_is(op, "Pow")   ? pow(a, b)
	       : rfl_span_is(op, "Equal") ? (double)!(a < b || a > b)
					  : (double)NAN;
}

static void fold_binary(struct rfl_onnx *c, const struct rfl_onnx_node *node, const value *a,
			const value *b, value *v)
{
	const size_t n = a->ncontent > b->ncontent ? a->ncontent : b->ncontent;
	const bool integer = a->type == RFL_ONNX_INT64 || a->type == RFL_ONNX_INT32;
	double list[RFL_ONNX_MAX_CONTENT];
	struct rfl_onnx_dims dims;

	if (!broadcast(&a->dims, &b->dims, &dims))
		return;
	v->type = a->type;
	if (a->ncontent && b->ncontent &&
	    (a->ncontent == 1 || b->ncontent == 1 || a->ncontent == b->ncontent)) {
		bool known = true;

		for (size_t i = 0; i < n; i++) {
			list[i] =
				calculate(node->op, at(a, (int64_t)i), at(b, (int64_t)i), integer);
			known &= !isnan(list[i]);
		}
		/* [4, 1] and [1, 4] have 16 results, of which too few were calculated */
		known &= n == 1 || rfl_onnx_numel(&dims) == (int64_t)n;
		set(c, v, list, known ? n : 0, false);
	}
	v->dims = dims;
}

/* Where(condition, a, b), by which exporters replace -1 in shapes. */
static void fold_where(struct rfl_onnx *c, const struct rfl_onnx_node *node, const value *x,
		       value *v)
{
	const value *a = rfl_onnx_in(node, 1), *b = rfl_onnx_in(node, 2);
	double list[RFL_ONNX_MAX_CONTENT];
	const int64_t n = rfl_onnx_numel(&x->dims);

	if (!a || !b || !x->ncontent || !a->ncontent || !b->ncontent || x->dims.n != 1 ||
	    n > RFL_ONNX_MAX_CONTENT || (a->ncontent > 1 && rfl_onnx_numel(&a->dims) != n) ||
	    (b->ncontent > 1 && rfl_onnx_numel(&b->dims) != n))
		return;
	for (int64_t i = 0; i < n; i++)
		list[i] = at(x, i) != 0 ? at(a, i) : at(b, i);
	set(c, v, list, (size_t)n, false);
	v->type = a->type;
}

static void fold_transpose(struct rfl_onnx *c, const struct rfl_onnx_node *node, const value *x,
			   value *v)
{
	const struct rfl_onnx_attribute *perm = rfl_onnx_attribute(node, "perm");
	struct rfl_onnx_dims dims = x->dims;
	double list[RFL_ONNX_MAX_CONTENT];

	for (int i = 0; i < dims.n; i++) {
		const int64_t from =
			perm && perm->nints == (size_t)dims.n ? perm->ints[i] : dims.n - 1 - i;

		if (from < 0 || from >= dims.n)
			return;
		dims.dim[i] = x->dims.dim[from];
	}
	copy(x, &dims, v);
	if (x->ncontent <= 1)
		return;
	for (size_t i = 0; dims.n == 2 && i < x->ncontent; i++)
		list[i] = x->content[i % (size_t)dims.dim[1] * (size_t)dims.dim[0] +
				     i / (size_t)dims.dim[1]];
	v->ncontent = 0;
	set(c, v, list, dims.n == 2 ? x->ncontent : 0, false);
	v->dims = dims;
}

/* Rows of a table, or elements of a list. */
static void fold_gather(struct rfl_onnx *c, const struct rfl_onnx_node *node, const value *x,
			const value *index, value *v)
{
	const int axis = rfl_onnx_axis(rfl_onnx_int(node, "axis", 0), x->dims.n);
	const int64_t size = rfl_onnx_numel(&x->dims), count = rfl_onnx_numel(&index->dims);
	struct rfl_onnx_dims dims = { .known = true };
	double list[RFL_ONNX_MAX_CONTENT];

	v->type = x->type;
	if (x->ncontent && index->ncontent && x->dims.n == 1 && count <= RFL_ONNX_MAX_CONTENT) {
		for (int64_t i = 0; i < count; i++) {
			const int64_t from = rfl_onnx_int_at(index, i) +
					     (rfl_onnx_int_at(index, i) < 0 ? size : 0);

			if (from < 0 || from >= size)
				return;
			list[i] = at(x, from);
		}
		set(c, v, list, (size_t)count, index->dims.n == 0);
		return;
	}
	if (!x->dims.known || !index->dims.known || axis < 0 ||
	    x->dims.n - 1 + index->dims.n > RFL_ONNX_MAX_DIMS)
		return;
	for (int i = 0; i < x->dims.n; i++)
		for (int k = 0; k < (i == axis ? index->dims.n : 1); k++)
			dims.dim[dims.n++] = i == axis ? index->dims.dim[k] : x->dims.dim[i];
	v->dims = dims;
	v->weight = x->weight;
}

static void fold_expand(const struct rfl_onnx_node *node, const value *x, int k, value *v)
{
	struct rfl_onnx_dims to = { .known = true }, dims;

	if (!rfl_onnx_ints(node, "", k, to.dim, &to.n) || !broadcast(&x->dims, &to, &dims))
		return;
	copy(x, &dims, v);
	if (rfl_onnx_numel(&dims) != rfl_onnx_numel(&x->dims) && x->ncontent > 1)
		v->ncontent = 0;
}

static void fold_range(const struct rfl_onnx_node *node, value *v)
{
	double list[3];

	for (size_t k = 0; k < 3; k++) {
		const value *x = rfl_onnx_in(node, k);

		if (!x || x->ncontent != 1)
			return;
		list[k] = x->content[0];
	}
	list[0] = ceil((list[1] - list[0]) / list[2]);
	v->type = RFL_ONNX_INT64;
	if (list[0] >= 1 && list[0] < 1e9)
		v->dims = (struct rfl_onnx_dims){ .known = true,
						  .n = 1,
						  .dim = { (int64_t)list[0] } };
}

void rfl_onnx_fold(struct rfl_onnx *c, const struct rfl_onnx_node *node)
{
	const value *x = rfl_onnx_in(node, 0), *y = rfl_onnx_in(node, 1);
	value *v = rfl_onnx_out(node, 0), one = { .dims.known = true };
	const struct rfl_onnx_attribute *a;
	struct rfl_onnx_dims dims;

	for (size_t k = 0; k < node->noutputs; k++)
		if (rfl_onnx_out(node, k))
			rfl_onnx_out(node, k)->constant = true;
	if (!v)
		return;
	if (rfl_span_is(node->op, "Constant")) {
		fold_constant(c, node, v);
	} else if (!x) {
		return;
	} else if (rfl_span_is(node->op, "Shape")) {
		fold_shape(c, node, x, v);
	} else if (rfl_span_is(node->op, "Slice")) {
		fold_slice(c, node, x, v);
	} else if (rfl_span_is(node->op, "Concat")) {
		fold_concat(c, node, v);
	} else if (rfl_span_is(node->op, "Transpose")) {
		fold_transpose(c, node, x, v);
	} else if (rfl_span_is(node->op, "Range")) {
		fold_range(node, v);
	} else if (rfl_span_is(node->op, "Where")) {
		fold_where(c, node, x, v);
	} else if (rfl_span_is(node->op, "Gather") && y) {
		fold_gather(c, node, x, y, v);
	} else if (rfl_span_is(node->op, "Expand") && y) {
		fold_expand(node, x, 1, v);
	} else if (rfl_span_is(node->op, "ConstantOfShape")) {
		a = rfl_onnx_attribute(node, "value");
		set(c, &one, &(double){ 0 }, 1, true);
		if (a && a->tensor)
			rfl_onnx_set_tensor(c, &one, a->tensor);
		if (rfl_onnx_ints(node, "", 0, dims.dim, &dims.n))
			fold_expand(node, &one, 0, v);
	} else if (rfl_span_is(node->op, "Identity") || rfl_span_is(node->op, "Cast") ||
		   rfl_span_is(node->op, "CastLike")) {
		copy(x, &x->dims, v);
		if (rfl_span_is(node->op, "Cast"))
			v->type = (int)rfl_onnx_int(node, "to", 0);
	} else if (rfl_span_is(node->op, "Sqrt") && x->ncontent == 1) {
		set(c, v, &(double){ sqrt(x->content[0]) }, 1, true);
		v->type = x->type;
		v->dims = x->dims;
	} else if (node->ninputs == 2 && y && !rfl_onnx_reshaped(node, &dims)) {
		fold_binary(c, node, x, y, v);
	} else if (rfl_onnx_reshaped(node, &dims)) {
		copy(x, &dims, v);
	}
}
