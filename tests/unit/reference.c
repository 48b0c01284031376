/*
 * reference.c - each operation is one function for both directions: forward adds to y, which is
 * zero before, backward adds to the gradients of the inputs and parameters.
 */
#include "tests/unit/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- one node at work ---- */

struct work {
	struct reference *r;
	const struct rfl_node *node;
	const struct rfl_shape *in, *out; /* in: of the first input */
	int64_t n;
	bool backward;
	double *x, *dx, *y, *dy; /* x: of the first input */
};

static int64_t numel(const struct rfl_shape *s)
{
	return rfl_shape_numel(s);
}

/* y[to] depends on element `from` of input k by this factor. */
static void pass(struct work *w, int k, int64_t to, int64_t from, double factor)
{
	const int input = w->node->input[k];

	if (w->backward)
		w->r->grad[input][from] += factor * w->dy[to];
	else
		w->y[to] += factor * w->r->value[input][from];
}

static double *param(struct work *w, int i)
{
	return w->r->param[w->node->param[i]];
}

static double *param_grad(struct work *w, int i)
{
	return w->r->param_grad[w->node->param[i]];
}

/* The product of dimensions from `first` to before `end`. */
static int64_t product(const struct rfl_shape *s, int64_t first, int64_t end)
{
	int64_t all = 1;

	for (int64_t d = first; d < end; d++)
		all *= s->dim[d];
	return all;
}

/* ---- convolution and linear ---- */

static void add_bias(struct work *w, int64_t to, int64_t channel)
{
	if (w->node->nparams < 2)
		return;
	if (w->backward)
		param_grad(w, 1)[channel] += w->dy[to];
	else
		w->y[to] += param(w, 1)[channel];
}

static void weigh(struct work *w, int64_t to, int64_t from, int64_t weight)
{
	pass(w, 0, to, from, param(w, 0)[weight]);
	if (w->backward)
		param_grad(w, 0)[weight] += w->x[from] * w->dy[to];
}

/* One output: sample s, channel c, row oy, column ox. */
static void conv2d_at(struct work *w, int64_t s, int64_t c, int64_t oy, int64_t ox)
{
	const struct rfl_conv2d *a = &w->node->attr.conv2d;
	const int64_t height = w->in->dim[1], width = w->in->dim[2];
	const int64_t ins = a->in_channels / a->groups, outs = a->out_channels / a->groups;
	const int64_t to = ((s * a->out_channels + c) * w->out->dim[1] + oy) * w->out->dim[2] + ox;
	int64_t k = c * ins * a->kernel_h * a->kernel_w; /* index of the weight */

	add_bias(w, to, c);
	for (int64_t i = 0; i < ins; i++)
		for (int64_t ky = 0; ky < a->kernel_h; ky++)
			for (int64_t kx = 0; kx < a->kernel_w; kx++, k++) {
				const int64_t y = oy * a->stride_h - a->pad_h + ky * a->dilation_h;
				const int64_t x = ox * a->stride_w - a->pad_w + kx * a->dilation_w;
				const int64_t plane = s * a->in_channels + c / outs * ins + i;

				if (y >= 0 && y < height && x >= 0 && x < width)
					weigh(w, to, (plane * height + y) * width + x, k);
			}
}

static void conv2d(struct work *w)
{
	for (int64_t s = 0; s < w->n; s++)
		for (int64_t c = 0; c < w->out->dim[0]; c++)
			for (int64_t y = 0; y < w->out->dim[1]; y++)
				for (int64_t x = 0; x < w->out->dim[2]; x++)
					conv2d_at(w, s, c, y, x);
}

static void linear(struct work *w)
{
	const int64_t ins = w->node->attr.linear.in_features;
	const int64_t outs = w->node->attr.linear.out_features;

	for (int64_t row = 0; row < w->n * numel(w->in) / ins; row++)
		for (int64_t o = 0; o < outs; o++) {
			add_bias(w, row * outs + o, o);
			for (int64_t i = 0; i < ins; i++)
				weigh(w, row * outs + o, row * ins + i, o * ins + i);
		}
}

/* ---- batch norm ---- */

/* Element i of channel c, counted over samples and positions. */
static int64_t at_channel(const struct work *w, int64_t c, int64_t i)
{
	const int64_t positions = numel(w->in) / w->in->dim[0];

	return (i / positions * w->in->dim[0] + c) * positions + i % positions;
}

static void norm_channel(struct work *w, int64_t c)
{
	const struct rfl_batch_norm *a = &w->node->attr.batch_norm;
	const bool batch = w->r->mode == RFL_ENGINE_TRAIN; /* the batch's own statistics */
	const int64_t m = w->n * numel(w->in) / w->in->dim[0];
	double *const running[] = { &param(w, 2)[c], &param(w, 3)[c] };
	double mean = batch ? 0 : *running[0], var = batch ? 0 : *running[1];
	double inverse, sum = 0, dot = 0; /* of dy, and of dy and the normalised x */

	for (int64_t i = 0; batch && i < m; i++)
		mean += w->x[at_channel(w, c, i)] / (double)m;
	for (int64_t i = 0; batch && i < m; i++)
		var += pow(w->x[at_channel(w, c, i)] - mean, 2) / (double)m;
	inverse = 1 / sqrt(var + a->eps);
	if (batch && !w->backward) {
		*running[0] += a->momentum * (mean - *running[0]);
		*running[1] += a->momentum * (var * (double)m / (double)(m - 1) - *running[1]);
	}
	for (int64_t i = 0; i < m; i++) {
		const int64_t at = at_channel(w, c, i);
		const double normal = (w->x[at] - mean) * inverse;

		if (!w->backward)
			w->y[at] = normal * param(w, 0)[c] + param(w, 1)[c];
		sum += w->dy[at];
		dot += w->dy[at] * normal;
	}
	if (!w->backward)
		return;
	param_grad(w, 0)[c] += dot;
	param_grad(w, 1)[c] += sum;
	for (int64_t i = 0; i < m; i++) {
		const int64_t at = at_channel(w, c, i);
		const double normal = (w->x[at] - mean) * inverse;

		w->dx[at] += param(w, 0)[c] * inverse *
			     (w->dy[at] - (batch ? (sum + normal * dot) / (double)m : 0));
	}
}

static void batch_norm(struct work *w)
{
	for (int64_t c = 0; c < w->in->dim[0]; c++)
		norm_channel(w, c);
}

/* ---- elementwise ---- */

static long double clamp(long double x, long double least, long double most)
{
	return fminl(fmaxl(x, least), most);
}

static long double function_of(const struct rfl_node *node, long double x)
{
	const long double root_half = sqrtl(0.5L), root_two_by_pi = 0.79788456080286535588L;

	switch (node->op) {
	case RFL_OP_RELU:
		return fmaxl(x, 0);
	case RFL_OP_RELU6:
		return clamp(x, 0, 6);
	case RFL_OP_SIGMOID:
		return 1 / (1 + expl(-x));
	case RFL_OP_TANH:
		return tanhl(x);
	case RFL_OP_SILU:
		return x / (1 + expl(-x));
	case RFL_OP_MISH:
		return x * tanhl(log1pl(expl(x)));
	case RFL_OP_GELU:
		return 0.5L * x *
		       (1 + (node->attr.gelu.tanh
				     ? tanhl(root_two_by_pi * (x + 0.044715L * x * x * x))
				     : erfl(x * root_half)));
	case RFL_OP_HARD_SIGMOID:
		return clamp(x + 3, 0, 6) / 6;
	case RFL_OP_HARD_SWISH:
		return x * clamp(x + 3, 0, 6) / 6;
	case RFL_OP_AFFINE:
		return node->attr.affine.scale * x + node->attr.affine.shift;
	case RFL_OP_DROPOUT:
	case RFL_OP_FLATTEN:
	case RFL_OP_RESHAPE:
	case RFL_OP_CONTIGUOUS:
		return x;
	default:
		abort(); /* the reference lacks it */
	}
}

/* The derivative is a difference, from the left as PyTorch's at a kink; its error is about 1e-9. */
static void elementwise(struct work *w)
{
	const long double h = 0x1p-30L;

	for (int64_t i = 0; i < w->n * numel(w->out); i++) {
		const long double y = function_of(w->node, w->x[i]);

		if (w->backward)
			w->dx[i] +=
				(double)((y - function_of(w->node, w->x[i] - h)) / h) * w->dy[i];
		else
			w->y[i] = (double)y;
	}
}

/* The element of input k that element i of the output reads; dimensions of 1 are repeated. */
static int64_t operand_at(const struct work *w, int k, int64_t i)
{
	const struct rfl_shape *s = &w->r->net->nodes[w->node->input[k]].shape;
	int64_t at = i / numel(w->out) * numel(s), step = 1;

	i %= numel(w->out);
	for (int d = w->out->ndim - 1, j = s->ndim - 1; j >= 0; d--, j--) {
		at += s->dim[j] == 1 ? 0 : i % w->out->dim[d] * step;
		step *= s->dim[j];
		i /= w->out->dim[d];
	}
	return at;
}

static void add(struct work *w)
{
	for (int64_t i = 0; i < w->n * numel(w->out); i++)
		for (int k = 0; k < 2; k++)
			pass(w, k, i, operand_at(w, k, i), 1);
}

static void mul(struct work *w)
{
	const double *a = w->x, *b = w->r->value[w->node->input[1]];

	for (int64_t i = 0; i < w->n * numel(w->out); i++) {
		const int64_t at = operand_at(w, 0, i), bt = operand_at(w, 1, i);

		pass(w, 0, i, at, b[bt]);
		if (w->backward)
			pass(w, 1, i, bt, a[at]);
	}
}

/* ---- pooling ---- */

/* What an output reads along height (0) or width (1). */
struct span {
	int64_t from, to, counted; /* counted: for averages */
};

static struct span span_of(const struct work *w, int axis, int64_t o)
{
	const struct rfl_pool *p = &w->node->attr.pool;
	const int64_t size = w->in->dim[1 + axis], outs = w->out->dim[1 + axis];
	const int64_t kernel = axis ? p->kernel_w : p->kernel_h, pad = axis ? p->pad_w : p->pad_h;
	struct span s;

	if (w->node->op == RFL_OP_ADAPTIVE_AVG_POOL) {
		s.from = o * size / outs;
		s.to = ((o + 1) * size + outs - 1) / outs;
	} else { /* padding counts, but not what ceil_mode adds after it */
		s.from = o * (axis ? p->stride_w : p->stride_h) - pad;
		s.to = s.from + kernel < size + pad ? s.from + kernel : size + pad;
		s.counted = s.to - s.from;
		s.from = s.from > 0 ? s.from : 0;
		s.to = s.to < size ? s.to : size;
		if (!p->exclude_padding)
			return s;
	}
	s.counted = s.to - s.from;
	return s;
}

static void pool(struct work *w)
{
	const int64_t width = w->in->dim[2], rows = w->out->dim[1], columns = w->out->dim[2];

	for (int64_t to = 0; to < w->n * numel(w->out); to++) {
		const struct span h = span_of(w, 0, to / columns % rows);
		const struct span v = span_of(w, 1, to % columns);
		const int64_t first = to / columns / rows * w->in->dim[1]; /* row of the plane */
		int64_t largest = (first + h.from) * width + v.from;

		for (int64_t y = h.from; y < h.to; y++)
			for (int64_t x = v.from; x < v.to; x++) {
				const int64_t from = (first + y) * width + x;

				if (w->node->op != RFL_OP_MAX_POOL)
					pass(w, 0, to, from, 1 / (double)(h.counted * v.counted));
				else if (w->x[from] > w->x[largest])
					largest = from;
			}
		if (w->node->op == RFL_OP_MAX_POOL)
			pass(w, 0, to, largest, 1);
	}
}

static void mean(struct work *w)
{
	const struct rfl_reduce *a = &w->node->attr.reduce;
	const int64_t reduced = product(w->in, a->first, a->first + a->count);
	const int64_t inner = product(w->in, a->first + a->count, w->in->ndim);

	for (int64_t i = 0; i < w->n * numel(w->in); i++)
		pass(w, 0, i / (reduced * inner) * inner + i % inner, i, 1 / (double)reduced);
}

/* ---- copies ---- */

static void permute(struct work *w)
{
	for (int64_t to = 0; to < w->n * numel(w->out); to++) {
		int64_t from = to / numel(w->out) * numel(w->in), rest = to;

		for (int d = w->out->ndim - 1; d >= 0; rest /= w->out->dim[d--])
			from += rest % w->out->dim[d] *
				product(w->in, w->node->attr.permute.order[d] + 1, w->in->ndim);
		pass(w, 0, to, from, 1);
	}
}

static void slice(struct work *w)
{
	const struct rfl_slice *a = &w->node->attr.slice;
	const int64_t inner = product(w->in, a->dim + 1, w->in->ndim);

	for (int64_t to = 0; to < w->n * numel(w->out); to++) {
		const int64_t at = a->start + to / inner % a->length * a->step;

		pass(w, 0, to,
		     (to / inner / a->length * w->in->dim[a->dim] + at) * inner + to % inner, 1);
	}
}

static void concat(struct work *w)
{
	const int64_t dim = w->node->attr.concat.dim;
	const int64_t row = product(w->out, dim, w->out->ndim); /* of the output */
	int64_t before = 0;

	for (int k = 0; k < w->node->ninputs; k++) {
		const struct rfl_shape *s = &w->r->net->nodes[w->node->input[k]].shape;
		const int64_t part = product(s, dim, s->ndim);

		for (int64_t i = 0; i < w->n * numel(s); i++)
			pass(w, k, i / part * row + before + i % part, i, 1);
		before += part;
	}
}

/* ---- nets ---- */

/* Those that are missing are elementwise, of one input. */
static void (*const operations[RFL_OP_COUNT])(struct work *w) = {
	[RFL_OP_CONV2D] = conv2d,
	[RFL_OP_LINEAR] = linear,
	[RFL_OP_BATCH_NORM] = batch_norm,
	[RFL_OP_ADD] = add,
	[RFL_OP_MUL] = mul,
	[RFL_OP_MAX_POOL] = pool,
	[RFL_OP_AVG_POOL] = pool,
	[RFL_OP_ADAPTIVE_AVG_POOL] = pool,
	[RFL_OP_MEAN] = mean,
	[RFL_OP_PERMUTE] = permute,
	[RFL_OP_SLICE] = slice,
	[RFL_OP_CONCAT] = concat,
};

static void execute(struct reference *r, int i, bool backward)
{
	const struct rfl_node *node = &r->net->nodes[i];
	const int input = node->input[0];
	struct work w = { .r = r,
			  .node = node,
			  .in = &r->net->nodes[input].shape,
			  .out = &node->shape,
			  .n = r->n,
			  .backward = backward,
			  .x = r->value[input],
			  .dx = r->grad[input],
			  .y = r->value[i],
			  .dy = r->grad[i] };

	if (!backward)
		memset(w.y, 0, (size_t)(r->n * numel(w.out)) * sizeof(*w.y));
	(operations[node->op] ? operations[node->op] : elementwise)(&w);
}

static double **lists(struct reference *r)
{
	double **list = rfl_arena_array(r->arena, (size_t)r->net->nparams, sizeof(*list));

	for (int i = 0; i < r->net->nparams; i++)
		list[i] =
			rfl_arena_array(r->arena, (size_t)r->net->params[i].numel, sizeof(**list));
	return list;
}

struct reference *reference_new(const struct rfl_net *net, int64_t max_batch)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct reference *r = rfl_arena_array(arena, 1, sizeof(*r));

	r->net = net;
	r->arena = arena;
	r->value = rfl_arena_array(arena, (size_t)net->nnodes, sizeof(*r->value));
	r->grad = rfl_arena_array(arena, (size_t)net->nnodes, sizeof(*r->grad));
	for (int i = 0; i < net->nnodes; i++) {
		const size_t n = (size_t)(max_batch * numel(&net->nodes[i].shape));

		r->value[i] = rfl_arena_array(arena, n, sizeof(double));
		r->grad[i] = rfl_arena_array(arena, n, sizeof(double));
	}
	r->seed = rfl_arena_array(arena, (size_t)(max_batch * net->classes), sizeof(double));
	r->param = lists(r);
	r->param_grad = lists(r);
	r->first = lists(r);
	r->second = lists(r);
	return r;
}

void reference_free(struct reference *r)
{
	if (r)
		rfl_arena_free(r->arena);
}

/* Add the cross entropy of a sample; its gradient is softmax, minus 1 at the label. */
static void add_loss(struct reference *r, int64_t s)
{
	const int64_t classes = r->net->classes, label = r->labels[s];
	const double *x = r->value[r->net->output] + s * classes;
	double sum = 0;
	bool largest = true;

	for (int64_t i = 0; i < classes; i++) {
		sum += exp(x[i]);
		largest &= x[i] <= x[label];
	}
	for (int64_t i = 0; i < classes; i++)
		r->seed[s * classes + i] = (exp(x[i]) / sum - (i == label)) / (double)r->n;
	r->loss += (log(sum) - x[label]) / (double)r->n;
	r->correct += largest;
}

void reference_forward(struct reference *r, enum rfl_engine_mode mode, const float *images,
		       const int64_t *labels, int64_t n)
{
	r->mode = mode;
	r->n = n;
	r->labels = labels;
	r->loss = 0;
	r->correct = 0;
	for (int64_t i = 0; i < n * numel(&r->net->nodes[0].shape); i++)
		r->value[0][i] = (double)images[i];
	for (int i = 1; i < r->net->nnodes; i++)
		execute(r, i, false);
	for (int64_t s = 0; s < n; s++)
		add_loss(r, s);
}

void reference_zero_grad(struct reference *r)
{
	for (int i = 0; i < r->net->nparams; i++)
		memset(r->param_grad[i], 0, (size_t)r->net->params[i].numel * sizeof(double));
}

void reference_backward(struct reference *r, double weight)
{
	for (int i = 0; i < r->net->nnodes; i++)
		memset(r->grad[i], 0,
		       (size_t)(r->n * numel(&r->net->nodes[i].shape)) * sizeof(double));
	for (int64_t i = 0; i < r->n * r->net->classes; i++)
		r->grad[r->net->output][i] = weight * r->seed[i];
	for (int i = r->net->nnodes - 1; i > 0; i--)
		execute(r, i, true);
}

/* ---- updates ---- */

static void update(const struct rfl_optimizer *o, int64_t t, double g, double *p, double *first,
		   double *second)
{
	if (o->rule == RFL_RULE_ADAMW)
		*p *= 1 - o->lr * o->weight_decay;
	else
		g += o->weight_decay * *p;
	if (o->rule == RFL_RULE_SGD) {
		*first = t == 1 ? g : o->momentum * *first + g;
		*p -= o->lr * *first;
		return;
	}
	*first = o->beta1 * *first + (1 - o->beta1) * g;
	*second = o->beta2 * *second + (1 - o->beta2) * g * g;
	*p -= o->lr / (1 - pow(o->beta1, (double)t)) * *first /
	      (sqrt(*second) / sqrt(1 - pow(o->beta2, (double)t)) + o->eps);
}

double reference_step(struct reference *r, const struct rfl_optimizer *o)
{
	double norm = 0, factor = 1;

	for (int i = 0; i < r->net->nparams; i++)
		for (int64_t j = 0; j < r->net->params[i].numel; j++)
			norm += r->param_grad[i][j] * r->param_grad[i][j];
	norm = sqrt(norm);
	if (o->grad_clip > 0) /* as PyTorch, which adds 1e-6 */
		factor = fmin(1, o->grad_clip / (norm + 1e-6));
	r->updates++;
	for (int i = 0; i < r->net->nparams; i++)
		for (int64_t j = 0; j < r->net->params[i].numel; j++)
			if (!rfl_param_is_buffer(r->net->params[i].kind))
				update(o, r->updates, factor * r->param_grad[i][j], &r->param[i][j],
				       &r->first[i][j], &r->second[i][j]);
	return norm;
}
