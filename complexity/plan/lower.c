/*
 * lower.c - turns a net into steps: chooses what is fused, then appends the forward steps in the
 * net's order and the backward steps in reverse.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"
#include "complexity/plan/plan_impl.h"

/* What the backward pass knows of a tensor: the gradients that its readers have left. */
struct gradients {
	int n;
	int buffer[8]; /* more are added up before */
};

/* What is known of a node while lowering. */
struct value {
	int root;    /* the node whose buffer it shares; itself, if none */
	int readers; /* nodes that read it */
	int reader;  /* the last of them */
	/* A chain of nodes becomes one step: `start` is its first node, at its last node; `inside`
	 * is its last node, at every node. -1: no chain. */
	int start, inside;
	int residual; /* at the last node of a chain: the node that batch norm adds; -1: none */
	enum rfl_plan_activation activation; /* at the last node: what ends it */
	int64_t groups;                      /* at the last node: of a channel shuffle */
	bool grad;                           /* it needs a gradient */
	int step;                            /* its forward step */
	struct gradients g;
};

struct lowering {
	struct rfl_plan *plan;
	const struct rfl_net *net;
	struct value *v;
	int *pending; /* per buffer: readers of a gradient that are still to come */
	size_t cap;
	struct rfl_err *err;
};

typedef enum rfl_rc (*lower_fn)(struct lowering *l, int node);

struct row {
	enum rfl_op op;
	lower_fn forward, backward;
	bool keeps; /* its result has the order of its input, also of a flattened image */
};

static const struct row *row_of(enum rfl_op op);

/* ---- small helpers ---- */

static const struct rfl_node *node_at(const struct lowering *l, int i)
{
	return &l->net->nodes[i];
}

static int root_of(const struct lowering *l, int i)
{
	return l->v[i].root;
}

static int input_of(const struct lowering *l, int i, int j)
{
	return root_of(l, node_at(l, i)->input[j]);
}

static enum rfl_rc refuse(const struct lowering *l, int i, const char *why)
{
	char name[512];

	(void)rfl_op_layer_name(node_at(l, i), name, sizeof(name));
	return rfl_fail(l->err, RFL_EUNSUPPORTED, 0, "layer '%s': %s; use --engine torch", name,
			why);
}

/* Elements of a node's output over the batch. */
static int64_t elements(const struct lowering *l, int i)
{
	return l->plan->setup.batch * rfl_shape_numel(&node_at(l, i)->shape);
}

static int64_t value_size(const struct lowering *l, int i)
{
	return elements(l, i) * l->plan->setup.value_bytes;
}

static int new_buffer(struct lowering *l, int64_t bytes)
{
	const int buffer = rfl_plan__buffer(l->plan, bytes);
	const size_t had = l->cap;

	rfl_reserve(&l->pending, &l->cap, (size_t)buffer + 1);
	for (size_t i = had; i < l->cap; i++)
		l->pending[i] = 0;
	return buffer;
}

static int new_step(struct lowering *l, enum rfl_plan_op op, enum rfl_plan_pass pass, int node)
{
	struct rfl_plan *plan = l->plan;
	size_t n = (size_t)plan->nsteps;
	struct rfl_plan_step *s = rfl_arena_append(plan->arena, &plan->steps, &n);

	plan->nsteps = (int)n;
	*s = (struct rfl_plan_step){
		.op = op, .pass = pass, .node = node, .last = node, .forward = -1
	};
	for (int i = 0; i < RFL_PLAN_SLOTS; i++)
		s->buffer[i] = -1;
	if (pass != RFL_PLAN_FORWARD && node < l->net->nnodes)
		s->forward = l->v[l->v[node].inside >= 0 ? l->v[node].inside : node].step;
	return plan->nsteps - 1;
}

static void use(struct lowering *l, int step, enum rfl_plan_slot slot, int buffer)
{
	rfl_plan__use(l->plan, step, slot, buffer);
}

static struct rfl_plan_step *step_at(struct lowering *l, int step)
{
	return &l->plan->steps[step];
}

static void read_value(struct lowering *l, int step, enum rfl_plan_slot slot, int node)
{
	use(l, step, slot, l->plan->output[root_of(l, node)]);
}

/* Append a forward step that reads the first input of `first` and makes the output of `last`. */
static int forward_step(struct lowering *l, enum rfl_plan_op op, int first, int last)
{
	const int s = new_step(l, op, RFL_PLAN_FORWARD, first);

	step_at(l, s)->last = last;
	step_at(l, s)->activation = l->v[last].activation;
	if (node_at(l, first)->ninputs > 0)
		read_value(l, s, RFL_PLAN_X, node_at(l, first)->input[0]);
	l->plan->output[last] = new_buffer(l, value_size(l, last));
	use(l, s, RFL_PLAN_Y, l->plan->output[last]);
	l->v[last].step = s;
	return s;
}

/* A node whose output is its input's buffer. */
static void share(struct lowering *l, int i)
{
	l->v[i].root = input_of(l, i, 0);
	l->plan->output[i] = l->plan->output[l->v[i].root];
}

/* ---- gradients ---- */

/* pending[b] is the number of lists that hold gradient b. A step takes gradients from a list before
 * it uses them, and may overwrite those that are in no other list. */

static void add_up(struct lowering *l, int node, int most);

/* Leave a gradient for a tensor. */
static void give(struct lowering *l, int node, int buffer)
{
	struct gradients *g = &l->v[root_of(l, node)].g;

	if (!l->v[root_of(l, node)].grad)
		return;
	if (g->n == (int)RFL_ARRAY_LEN(g->buffer))
		add_up(l, root_of(l, node), 1);
	g->buffer[g->n++] = buffer;
	l->pending[buffer]++;
}

/* Whether only the current step still needs a gradient that has been taken. */
static bool is_free(const struct lowering *l, int buffer)
{
	return l->pending[buffer] == 0;
}

/* Add gradients until at most `most` are left. */
static void add_up(struct lowering *l, int node, int most)
{
	struct gradients *g = &l->v[node].g;

	while (g->n > most) {
		const int a = g->buffer[g->n - 2], b = g->buffer[g->n - 1];
		const int s = new_step(l, RFL_PLAN_ADD, RFL_PLAN_DGRAD, node);
		int y;

		l->pending[a]--;
		l->pending[b]--;
		y = is_free(l, a)   ? a
		    : is_free(l, b) ? b
				    : new_buffer(l, l->plan->buffers[a].bytes);
		use(l, s, RFL_PLAN_DY, a);
		use(l, s, RFL_PLAN_DY2, b);
		use(l, s, RFL_PLAN_DX, y);
		g->n--;
		g->buffer[g->n - 1] = y;
		l->pending[y]++;
	}
}

/* Take the gradient of a tensor: the caller is its reader. */
static int take(struct lowering *l, int node)
{
	struct gradients *g = &l->v[node].g;

	add_up(l, node, 1);
	if (g->n == 0)
		return -1;
	l->pending[g->buffer[0]]--;
	g->n = 0;
	return g->buffer[0];
}

/* A buffer for the gradient of a node's input: dy, if it fits and no other step needs it. */
static int gradient_over(struct lowering *l, int dy, int node)
{
	if (dy >= 0 && is_free(l, dy) && l->plan->buffers[dy].bytes == value_size(l, node))
		return dy;
	return new_buffer(l, value_size(l, node));
}

static bool wants_gradient(const struct lowering *l, int i, int j)
{
	return l->v[input_of(l, i, j)].grad;
}

/* The buffer in which the backward pass collects the gradient of a parameter. */
static void use_parameter_gradient(struct lowering *l, int step, enum rfl_plan_slot slot, int param)
{
	const int buffer = new_buffer(l, 4 * l->net->params[param].numel);

	use(l, step, slot, buffer);
}

/* The backward step of an operation that needs nothing but the gradient of its result: from
 * node `last` to node x. @return the step; -1: none is needed */
static int pass_back(struct lowering *l, enum rfl_plan_op op, int i, int last, int x, bool over)
{
	const int dy = take(l, last);
	int s, dx;

	if (dy < 0 || !l->v[x].grad)
		return -1;
	s = new_step(l, op, RFL_PLAN_DGRAD, i);
	step_at(l, s)->last = last;
	use(l, s, RFL_PLAN_DY, dy);
	dx = over ? gradient_over(l, dy, x) : new_buffer(l, value_size(l, x));
	use(l, s, RFL_PLAN_DX, dx);
	give(l, x, dx);
	return s;
}

static enum rfl_plan_activation activation_of(enum rfl_op op)
{
	return op == RFL_OP_RELU    ? RFL_PLAN_RELU
	       : op == RFL_OP_RELU6 ? RFL_PLAN_RELU6
				    : RFL_PLAN_NONE;
}

/* ---- convolution and linear ---- */

static enum rfl_plan_op weighted(const struct lowering *l, int i)
{
	return node_at(l, i)->op == RFL_OP_CONV2D ? RFL_PLAN_CONV : RFL_PLAN_LINEAR;
}

static enum rfl_rc weighted_forward(struct lowering *l, int last)
{
	const int i = l->v[last].start >= 0 ? l->v[last].start : last;
	const struct rfl_node *x = node_at(l, node_at(l, i)->input[0]);

	if (node_at(l, i)->tied ||
	    (node_at(l, i)->op == RFL_OP_LINEAR && node_at(l, i)->attr.linear.transposed))
		return refuse(l, i, "a plan does not support tied or transposed weights");
	if (x->shape.ndim != (node_at(l, i)->op == RFL_OP_CONV2D ? 3 : 1))
		return refuse(l, i, "a plan does not support sequences");
	(void)forward_step(l, weighted(l, i), i, last);
	return RFL_OK;
}

/* The activation's own pass, before a gradient is used: fused steps of the library do not have it.
 * @return the gradient to use */
static int through_activation(struct lowering *l, int i, int last, int dy)
{
	int s;

	if (l->v[last].activation == RFL_PLAN_NONE)
		return dy;
	s = new_step(l, RFL_PLAN_ACTIVATION, RFL_PLAN_DGRAD, last);
	step_at(l, s)->activation = l->v[last].activation;
	step_at(l, s)->last = i;
	use(l, s, RFL_PLAN_Y, l->plan->output[last]);
	use(l, s, RFL_PLAN_DY, dy);
	dy = gradient_over(l, dy, last);
	use(l, s, RFL_PLAN_DX, dy);
	return dy;
}

static enum rfl_rc weighted_backward(struct lowering *l, int last)
{
	const int i = l->v[last].start >= 0 ? l->v[last].start : last;
	const bool conv = node_at(l, i)->op == RFL_OP_CONV2D;
	const int weight =
		rfl_plan_param(l->net, i, conv ? RFL_PARAM_CONV_WEIGHT : RFL_PARAM_LINEAR_WEIGHT);
	const int bias =
		rfl_plan_param(l->net, i, conv ? RFL_PARAM_CONV_BIAS : RFL_PARAM_LINEAR_BIAS);
	int dy = take(l, last), s, dx;

	if (dy < 0)
		return RFL_OK;
	dy = through_activation(l, i, last, dy);
	s = new_step(l, weighted(l, i), RFL_PLAN_WGRAD, i);
	read_value(l, s, RFL_PLAN_X, node_at(l, i)->input[0]);
	use(l, s, RFL_PLAN_DY, dy);
	use_parameter_gradient(l, s, RFL_PLAN_DWEIGHT, weight);
	if (bias >= 0)
		use_parameter_gradient(l, s, RFL_PLAN_DBIAS, bias);
	if (!wants_gradient(l, i, 0))
		return RFL_OK;
	s = new_step(l, weighted(l, i), RFL_PLAN_DGRAD, i);
	use(l, s, RFL_PLAN_DY, dy);
	dx = new_buffer(l, value_size(l, input_of(l, i, 0)));
	use(l, s, RFL_PLAN_DX, dx);
	give(l, input_of(l, i, 0), dx);
	return RFL_OK;
}

/* ---- batch norm ---- */

static enum rfl_rc norm_forward(struct lowering *l, int last)
{
	const int i = l->v[last].start >= 0 ? l->v[last].start : last;
	const int64_t columns = node_at(l, i)->attr.batch_norm.channels;
	const bool training = l->plan->setup.training;
	int s;

	if (node_at(l, i)->shape.ndim != 3)
		return refuse(l, i, "a plan supports batch norm of images only");
	s = forward_step(l, RFL_PLAN_NORM, i, last);
	if (l->v[last].residual >= 0)
		read_value(l, s, RFL_PLAN_OTHER, l->v[last].residual);
	use(l, s, RFL_PLAN_MEAN, new_buffer(l, 4 * columns));
	use(l, s, RFL_PLAN_INVERSE, new_buffer(l, 4 * columns));
	if (training && l->v[last].activation)
		use(l, s, RFL_PLAN_MASK, new_buffer(l, elements(l, last)));
	return RFL_OK;
}

static enum rfl_rc norm_backward(struct lowering *l, int last)
{
	const int i = l->v[last].start >= 0 ? l->v[last].start : last;
	const int residual = l->v[last].residual;
	const bool other = residual >= 0 && l->v[root_of(l, residual)].grad;
	const bool over = !l->plan->setup.separate;
	struct gradients *g = &l->v[last].g;
	int dy, dy2, s, sum = -1, dx = -1;
	const struct rfl_plan_step *forward;

	add_up(l, last, 2);
	if (g->n == 0)
		return RFL_OK;
	dy = g->buffer[0];
	dy2 = g->n > 1 ? g->buffer[1] : -1;
	g->n = 0;
	l->pending[dy]--;
	if (dy2 >= 0)
		l->pending[dy2]--;
	s = new_step(l, RFL_PLAN_NORM, RFL_PLAN_DGRAD, i);
	forward = step_at(l, l->v[last].step);
	step_at(l, s)->last = last;
	step_at(l, s)->activation = l->v[last].activation;
	read_value(l, s, RFL_PLAN_X, node_at(l, i)->input[0]);
	use(l, s, RFL_PLAN_DY, dy);
	if (dy2 >= 0)
		use(l, s, RFL_PLAN_DY2, dy2);
	if (forward->buffer[RFL_PLAN_MASK] >= 0)
		use(l, s, RFL_PLAN_MASK, forward->buffer[RFL_PLAN_MASK]);
	use(l, s, RFL_PLAN_MEAN, forward->buffer[RFL_PLAN_MEAN]);
	use(l, s, RFL_PLAN_INVERSE, forward->buffer[RFL_PLAN_INVERSE]);
	use_parameter_gradient(l, s, RFL_PLAN_DWEIGHT,
			       rfl_plan_param(l->net, i, RFL_PARAM_NORM_WEIGHT));
	use_parameter_gradient(l, s, RFL_PLAN_DBIAS,
			       rfl_plan_param(l->net, i, RFL_PARAM_NORM_BIAS));
	if (other) { /* the gradient of the residual: dy itself, or the sum after the mask */
		if (dy2 < 0 && !l->v[last].activation)
			give(l, residual, dy);
		else
			sum = over && dy2 >= 0 && is_free(l, dy2) ? dy2
			      : over && is_free(l, dy)            ? dy
						       : new_buffer(l, value_size(l, last));
	}
	if (wants_gradient(l, i, 0)) {
		dx = over && dy != sum && is_free(l, dy) ? dy
		     : over && dy2 >= 0 && dy2 != sum && is_free(l, dy2)
			     ? dy2
			     : new_buffer(l, value_size(l, i));
		use(l, s, RFL_PLAN_DX, dx);
		give(l, input_of(l, i, 0), dx);
	}
	if (sum >= 0) {
		use(l, s, RFL_PLAN_DOTHER, sum);
		give(l, residual, sum);
	}
	return RFL_OK;
}

/* ---- elementwise ---- */

static enum rfl_rc activation_forward(struct lowering *l, int i)
{
	(void)forward_step(l, RFL_PLAN_ACTIVATION, i, i);
	return RFL_OK;
}

/* Whether the gradient needs the result; otherwise it needs the input. */
static bool from_result(enum rfl_op op)
{
	return op == RFL_OP_RELU || op == RFL_OP_RELU6 || op == RFL_OP_SIGMOID || op == RFL_OP_TANH;
}

static enum rfl_rc activation_backward(struct lowering *l, int i)
{
	const enum rfl_op op = node_at(l, i)->op;
	const int s = pass_back(l, RFL_PLAN_ACTIVATION, i, i, input_of(l, i, 0), true);

	if (s < 0)
		return RFL_OK;
	step_at(l, s)->activation = activation_of(op);
	if (from_result(op))
		use(l, s, RFL_PLAN_Y, l->plan->output[i]);
	else if (op != RFL_OP_AFFINE)
		read_value(l, s, RFL_PLAN_X, node_at(l, i)->input[0]);
	return RFL_OK;
}

static enum rfl_rc dropout_forward(struct lowering *l, int i)
{
	const bool depth = node_at(l, i)->op == RFL_OP_STOCHASTIC_DEPTH;
	int s;

	if (!l->plan->setup.training || !l->plan->setup.dropout ||
	    node_at(l, i)->attr.dropout.probability <= 0) {
		share(l, i);
		return RFL_OK;
	}
	s = forward_step(l, RFL_PLAN_DROPOUT, i, i);
	use(l, s, RFL_PLAN_MASK, new_buffer(l, depth ? l->plan->setup.batch : elements(l, i)));
	return RFL_OK;
}

static enum rfl_rc dropout_backward(struct lowering *l, int i)
{
	const int s = pass_back(l, RFL_PLAN_DROPOUT, i, i, input_of(l, i, 0), true);

	if (s >= 0)
		use(l, s, RFL_PLAN_MASK, step_at(l, l->v[i].step)->buffer[RFL_PLAN_MASK]);
	return RFL_OK;
}

/* Whether a vector lies in memory in another order than its own. */
static bool is_flat_image(const struct lowering *l, int i)
{
	const struct rfl_shape *image = rfl_plan_image(l->net, i);

	return image->ndim != node_at(l, i)->shape.ndim && image->dim[0] != rfl_shape_numel(image);
}

/* Operations on two tensors need both in the same order. */
static enum rfl_rc check_order(const struct lowering *l, int i)
{
	for (int j = 0; j < node_at(l, i)->ninputs; j++)
		if (is_flat_image(l, node_at(l, i)->input[j]))
			return refuse(l, i, "a plan does not support this on a flattened image");
	return RFL_OK;
}

static enum rfl_rc add_forward(struct lowering *l, int i)
{
	int s;

	if (check_order(l, i) != RFL_OK)
		return RFL_EUNSUPPORTED;
	if (elements(l, node_at(l, i)->input[0]) != elements(l, i) ||
	    elements(l, node_at(l, i)->input[1]) != elements(l, i))
		return refuse(l, i, "a plan supports the addition of equal shapes only");
	s = forward_step(l, RFL_PLAN_ADD, i, i);
	read_value(l, s, RFL_PLAN_OTHER, node_at(l, i)->input[1]);
	return RFL_OK;
}

static enum rfl_rc add_backward(struct lowering *l, int i)
{
	const int dy = take(l, i);

	for (int j = 0; dy >= 0 && j < 2; j++)
		give(l, input_of(l, i, j), dy);
	return RFL_OK;
}

/* Which input of a product is {channels, 1, 1}, while the other is an image: 0, 1, or -1 for equal
 * shapes; -2 for others. */
static int factor_of(const struct lowering *l, int i)
{
	const struct rfl_shape *y = &node_at(l, i)->shape;

	for (int j = 1; j >= 0; j--) {
		const struct rfl_shape *f = &node_at(l, node_at(l, i)->input[j])->shape;
		const int64_t all = rfl_shape_numel(y), mine = rfl_shape_numel(f),
			      its = rfl_shape_numel(
				      &node_at(l, node_at(l, i)->input[1 - j])->shape);

		if (mine == all && its == all)
			return -1;
		if (its == all && y->ndim == 3 && f->ndim == 3 && f->dim[0] == y->dim[0] &&
		    mine == f->dim[0])
			return j;
	}
	return -2;
}

static enum rfl_rc multiply_forward(struct lowering *l, int i)
{
	const int factor = factor_of(l, i);
	int s;

	if (check_order(l, i) != RFL_OK)
		return RFL_EUNSUPPORTED;
	if (factor == -2)
		return refuse(l, i,
			      "a plan supports products of equal shapes, and of an image and a "
			      "factor per channel");
	s = forward_step(l, RFL_PLAN_MULTIPLY, i, i);
	read_value(l, s, RFL_PLAN_X, node_at(l, i)->input[factor == 0 ? 1 : 0]);
	read_value(l, s, RFL_PLAN_OTHER, node_at(l, i)->input[factor == 0 ? 0 : 1]);
	return RFL_OK;
}

static enum rfl_rc multiply_backward(struct lowering *l, int i)
{
	const int dy = take(l, i), swap = factor_of(l, i) == 0;
	const int x = input_of(l, i, swap), other = input_of(l, i, 1 - swap);
	int s, buffer;

	if (dy < 0)
		return RFL_OK;
	s = new_step(l, RFL_PLAN_MULTIPLY, RFL_PLAN_DGRAD, i);
	use(l, s, RFL_PLAN_DY, dy);
	read_value(l, s, RFL_PLAN_X, x);
	read_value(l, s, RFL_PLAN_OTHER, other);
	if (l->v[other].grad) {
		buffer = new_buffer(l, value_size(l, other));
		use(l, s, RFL_PLAN_DOTHER, buffer);
		give(l, other, buffer);
	}
	if (l->v[x].grad) {
		buffer = gradient_over(l, dy, x);
		use(l, s, RFL_PLAN_DX, buffer);
		give(l, x, buffer);
	}
	return RFL_OK;
}

/* ---- pooling ---- */

static enum rfl_rc pool_forward(struct lowering *l, int i)
{
	const struct rfl_node *node = node_at(l, i);
	const struct rfl_shape *in = &node_at(l, node->input[0])->shape;

	if (in->ndim != 3 || (node->op == RFL_OP_MEAN &&
			      (node->attr.reduce.first != 1 || node->attr.reduce.count != 2)))
		return refuse(
			l, i,
			"a plan supports averages over the height and width of an image only");
	if (node->op != RFL_OP_MAX_POOL && node->op != RFL_OP_AVG_POOL &&
	    rfl_shape_numel(in) == rfl_shape_numel(&node->shape)) {
		share(l, i);
		return RFL_OK;
	}
	(void)forward_step(l, RFL_PLAN_POOL, i, i);
	return RFL_OK;
}

static enum rfl_rc pool_backward(struct lowering *l, int i)
{
	(void)pass_back(l, RFL_PLAN_POOL, i, i, input_of(l, i, 0), false);
	return RFL_OK;
}

/* ---- views and copies of channels ---- */

static enum rfl_rc view_forward(struct lowering *l, int i)
{
	const struct rfl_node *node = node_at(l, i);
	const struct rfl_shape *in = &node_at(l, node->input[0])->shape;
	const bool flat = node->shape.ndim == 1 && (in->ndim == 3 || in->ndim == 1);
	const bool same =
		node->shape.ndim == in->ndim &&
		memcmp(in->dim, node->shape.dim, (size_t)in->ndim * sizeof(*in->dim)) == 0;
	int s;

	if (l->v[i].groups) {
		s = forward_step(l, RFL_PLAN_SHUFFLE, l->v[i].start, i);
		step_at(l, s)->groups = l->v[i].groups;
		return RFL_OK;
	}
	if (node->op == RFL_OP_PERMUTE || (!flat && !same))
		return refuse(l, i, "a plan supports reshaping only of images to vectors");
	share(l, i);
	return RFL_OK;
}

static enum rfl_rc shuffle_backward(struct lowering *l, int i)
{
	const int first = l->v[i].start;
	const int s = pass_back(l, RFL_PLAN_SHUFFLE, first, i, input_of(l, first, 0), false);

	if (s >= 0)
		step_at(l, s)->groups = node_at(l, i)->shape.dim[0] / l->v[i].groups;
	return RFL_OK;
}

static enum rfl_rc concat_forward(struct lowering *l, int i)
{
	const struct rfl_node *node = node_at(l, i);
	int64_t at = 0;

	if (check_order(l, i) != RFL_OK)
		return RFL_EUNSUPPORTED;
	if (node->attr.concat.dim != 0 || (node->shape.ndim != 3 && node->shape.ndim != 1))
		return refuse(l, i, "a plan supports concatenation of channels only");
	for (int j = 0; j < node->ninputs; j++) {
		const int64_t columns = node_at(l, node->input[j])->shape.dim[0];
		int s = 0;

		if (j == 0) {
			s = forward_step(l, RFL_PLAN_COLUMNS, i, i);
		} else {
			s = new_step(l, RFL_PLAN_COLUMNS, RFL_PLAN_FORWARD, i);
			read_value(l, s, RFL_PLAN_X, node->input[j]);
			use(l, s, RFL_PLAN_Y, l->plan->output[i]);
		}
		step_at(l, s)->columns = columns;
		step_at(l, s)->to = at;
		at += columns;
	}
	return RFL_OK;
}

/* Append a step that copies channels of dy to channels of the gradient of x. A gradient that only x
 * has is added to instead. */
static void columns_backward(struct lowering *l, int i, int x, int dy, struct rfl_plan_step what)
{
	struct gradients *g = &l->v[x].g;
	const bool whole = what.columns == node_at(l, x)->shape.dim[0];
	const int s = new_step(l, RFL_PLAN_COLUMNS, RFL_PLAN_DGRAD, i);
	struct rfl_plan_step *step = step_at(l, s);
	int dx;

	step->columns = what.columns;
	step->from = what.from;
	step->to = what.to;
	step->add = g->n > 0 && l->pending[g->buffer[g->n - 1]] == 1 && g->buffer[g->n - 1] != dy;
	step->zero = !step->add && !whole;
	dx = step->add ? g->buffer[g->n - 1] : new_buffer(l, value_size(l, x));
	if (!step->add)
		give(l, x, dx);
	use(l, s, RFL_PLAN_DY, dy);
	use(l, s, RFL_PLAN_DX, dx);
}

static enum rfl_rc concat_backward(struct lowering *l, int i)
{
	const struct rfl_node *node = node_at(l, i);
	const int dy = take(l, i);
	int64_t at = 0;

	for (int j = 0; dy >= 0 && j < node->ninputs; j++) {
		const int64_t columns = node_at(l, node->input[j])->shape.dim[0];

		if (wants_gradient(l, i, j))
			columns_backward(l, i, input_of(l, i, j), dy,
					 (struct rfl_plan_step){ .columns = columns, .from = at });
		at += columns;
	}
	return RFL_OK;
}

static enum rfl_rc slice_forward(struct lowering *l, int i)
{
	const struct rfl_slice *slice = &node_at(l, i)->attr.slice;
	int s;

	if (slice->dim != 0 || slice->step != 1 || node_at(l, i)->shape.ndim != 3)
		return refuse(l, i, "a plan supports slices of channels only");
	s = forward_step(l, RFL_PLAN_COLUMNS, i, i);
	step_at(l, s)->columns = slice->length;
	step_at(l, s)->from = slice->start;
	return RFL_OK;
}

static enum rfl_rc slice_backward(struct lowering *l, int i)
{
	const struct rfl_slice *slice = &node_at(l, i)->attr.slice;
	const int dy = take(l, i);

	if (dy >= 0 && wants_gradient(l, i, 0))
		columns_backward(
			l, i, input_of(l, i, 0), dy,
			(struct rfl_plan_step){ .columns = slice->length, .to = slice->start });
	return RFL_OK;
}

/* ---- the table ---- */

#define ELEMENTWISE(op_)                                                    \
	{                                                                   \
		RFL_OP_##op_, activation_forward, activation_backward, true \
	}

static const struct row rows[] = {
	{ RFL_OP_CONV2D, weighted_forward, weighted_backward, false },
	{ RFL_OP_LINEAR, weighted_forward, weighted_backward, false },
	{ RFL_OP_BATCH_NORM, norm_forward, norm_backward, false },
	ELEMENTWISE(RELU),
	ELEMENTWISE(RELU6),
	ELEMENTWISE(SIGMOID),
	ELEMENTWISE(TANH),
	ELEMENTWISE(SILU),
	ELEMENTWISE(MISH),
	ELEMENTWISE(GELU),
	ELEMENTWISE(HARD_SIGMOID),
	ELEMENTWISE(HARD_SWISH),
	ELEMENTWISE(AFFINE),
	{ RFL_OP_DROPOUT, dropout_forward, dropout_backward, true },
	{ RFL_OP_STOCHASTIC_DEPTH, dropout_forward, dropout_backward, true },
	{ RFL_OP_ADD, add_forward, add_backward, false },
	{ RFL_OP_MUL, multiply_forward, multiply_backward, false },
	{ RFL_OP_MAX_POOL, pool_forward, pool_backward, false },
	{ RFL_OP_AVG_POOL, pool_forward, pool_backward, false },
	{ RFL_OP_ADAPTIVE_AVG_POOL, pool_forward, pool_backward, false },
	{ RFL_OP_MEAN, pool_forward, pool_backward, false },
	{ RFL_OP_FLATTEN, view_forward, shuffle_backward, true },
	{ RFL_OP_RESHAPE, view_forward, shuffle_backward, true },
	{ RFL_OP_PERMUTE, view_forward, shuffle_backward, true },
	{ RFL_OP_CONTIGUOUS, view_forward, shuffle_backward, true },
	{ RFL_OP_CONCAT, concat_forward, concat_backward, false },
	{ RFL_OP_SLICE, slice_forward, slice_backward, false },
};

static const struct row *row_of(enum rfl_op op)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (rows[i].op == op)
			return &rows[i];
	return NULL;
}

const char *rfl_plan_unsupported(enum rfl_op op)
{
	if (op == RFL_OP_INPUT || op == RFL_OP_CROSS_ENTROPY || row_of(op))
		return NULL;
	return "the planned engine does not support it";
}

/* ---- what is fused ---- */

/* The only reader of a node's output, with this operation; -1: none. */
static int next_of(const struct lowering *l, int i, enum rfl_op op)
{
	const struct value *v = &l->v[i];

	if (v->readers != 1 || i == l->net->output || l->net->nodes[v->reader].op != op ||
	    l->v[v->reader].inside >= 0)
		return -1;
	return v->reader;
}

static void join(struct lowering *l, int start, int inside, int last)
{
	l->v[start].inside = l->v[inside].inside = l->v[last].inside = last;
	if (l->v[inside].start >= 0)
		l->v[inside].start = -1;
	l->v[last].start = start;
}

static void fuse_activation(struct lowering *l, int start, int inside)
{
	int next = next_of(l, inside, RFL_OP_RELU);

	if (next < 0 && l->net->nodes[start].op == RFL_OP_BATCH_NORM)
		next = next_of(l, inside, RFL_OP_RELU6);
	if (next < 0)
		return;
	join(l, start, inside, next);
	l->v[next].residual = l->v[inside].residual;
	l->v[inside].residual = -1;
	l->v[next].activation = activation_of(l->net->nodes[next].op);
}

static void fuse_addition(struct lowering *l, int i)
{
	const int add = next_of(l, i, RFL_OP_ADD);
	const struct rfl_node *node = add < 0 ? NULL : node_at(l, add);
	int other;

	if (!node)
		return;
	other = node->input[0] == i ? node->input[1] : node->input[0];
	if (other == i || node_at(l, other)->batchless || elements(l, other) != elements(l, add) ||
	    elements(l, i) != elements(l, add))
		return;
	join(l, i, i, add);
	l->v[add].residual = other;
}

/* {c, h, w} as {g, c / g, h, w}, and the same afterwards */
static bool is_shuffle(const struct rfl_shape *in, const struct rfl_shape *split,
		       const struct rfl_shape *out)
{
	return in->ndim == 3 && split->dim[0] * split->dim[1] == in->dim[0] &&
	       split->dim[2] == in->dim[1] && split->dim[3] == in->dim[2] && out->ndim == 3 &&
	       memcmp(in->dim, out->dim, 3 * sizeof(*in->dim)) == 0;
}

/* reshape {g, channels / g, h, w}, permute {1, 0, 2, 3}, perhaps contiguous, reshape to channels */
static void fuse_shuffle(struct lowering *l, int i)
{
	static const int64_t swapped[] = { 1, 0, 2, 3 };
	const struct rfl_node *node = node_at(l, i);
	int p, c, end;

	if (node->op != RFL_OP_RESHAPE || node->shape.ndim != 4)
		return;
	p = next_of(l, i, RFL_OP_PERMUTE);
	if (p < 0 || memcmp(node_at(l, p)->attr.permute.order, swapped, sizeof(swapped)) != 0)
		return;
	c = next_of(l, p, RFL_OP_CONTIGUOUS);
	end = next_of(l, c < 0 ? p : c, RFL_OP_RESHAPE);
	if (end < 0)
		end = next_of(l, c < 0 ? p : c, RFL_OP_FLATTEN);
	if (end < 0 ||
	    !is_shuffle(&node_at(l, node->input[0])->shape, &node->shape, &node_at(l, end)->shape))
		return;
	join(l, i, p, end);
	if (c >= 0)
		l->v[c].inside = end;
	l->v[end].groups = node->shape.dim[0];
}

static bool runs(const struct lowering *l, const struct rfl_node *node)
{
	const struct rfl_plan_setup *setup = &l->plan->setup;

	return node->op != RFL_OP_CROSS_ENTROPY &&
	       (!node->auxiliary || (setup->training && setup->auxiliary_weight > 0));
}

static void prepare(struct lowering *l)
{
	const struct rfl_net *net = l->net;

	for (int i = 0; i < net->nnodes; i++)
		l->v[i] = (struct value){ .root = i, .start = -1, .inside = -1, .residual = -1 };
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];

		if (!runs(l, node))
			continue;
		for (int j = 0; j < node->ninputs; j++) {
			struct value *in = &l->v[node->input[j]];

			in->readers++;
			in->reader = i;
			l->v[i].grad |= in->grad;
		}
		l->v[i].grad |= node->nparams > 0;
	}
	for (int i = 0; i < net->nnodes; i++) {
		const enum rfl_op op = net->nodes[i].op;

		if (!runs(l, &net->nodes[i]) || l->v[i].inside >= 0)
			continue;
		fuse_shuffle(l, i); /* a shuffle in steps has no images in between */
		if (l->plan->setup.unfused)
			continue;
		if (op == RFL_OP_BATCH_NORM) {
			fuse_addition(l, i);
			fuse_activation(l, i, l->v[i].inside >= 0 ? l->v[i].inside : i);
		} else if (op == RFL_OP_CONV2D || op == RFL_OP_LINEAR) {
			fuse_activation(l, i, i);
		}
	}
}

/* ---- the passes ---- */

/* The row that lowers a node, or the chain that it ends. */
static const struct row *row_at(const struct lowering *l, int i)
{
	return row_of(node_at(l, l->v[i].start >= 0 ? l->v[i].start : i)->op);
}

/* Nodes inside a chain have no step of their own. */
static bool has_step(const struct lowering *l, int i)
{
	return runs(l, node_at(l, i)) && (l->v[i].inside < 0 || l->v[i].inside == i);
}

/* The loss of an output, and its gradient. */
static void add_loss(struct lowering *l, int output, double weight)
{
	const int s = new_step(l, RFL_PLAN_LOSS, RFL_PLAN_FORWARD, l->net->nnodes);
	int dx;

	step_at(l, s)->weight = weight;
	read_value(l, s, RFL_PLAN_X, output);
	if (!l->plan->setup.training)
		return;
	dx = new_buffer(l, value_size(l, output));
	use(l, s, RFL_PLAN_DX, dx);
	give(l, output, dx);
}

static enum rfl_rc lower_forward(struct lowering *l)
{
	const struct rfl_net *net = l->net;
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < net->nnodes && rc == RFL_OK; i++) {
		const struct row *row = row_at(l, i);

		l->plan->output[i] = -1;
		if (!has_step(l, i))
			continue;
		if (net->nodes[i].op == RFL_OP_INPUT)
			(void)forward_step(l, RFL_PLAN_INPUT, i, i);
		else if (!row)
			rc = refuse(l, i, rfl_plan_unsupported(net->nodes[i].op));
		else
			rc = row->forward(l, i);
	}
	if (rc != RFL_OK)
		return rc;
	if (is_flat_image(l, net->output))
		return refuse(l, net->output,
			      "a plan does not support a flattened image as logits");
	for (int i = 0; i < net->nnodes; i++)
		if (has_step(l, i) && net->nodes[i].auxiliary && l->v[i].readers == 0)
			add_loss(l, i, l->plan->setup.auxiliary_weight);
	add_loss(l, net->output, 1);
	l->plan->nforward = l->plan->nsteps;
	return RFL_OK;
}

static enum rfl_rc lower_backward(struct lowering *l)
{
	enum rfl_rc rc = RFL_OK;

	for (int i = l->net->nnodes - 1; i > 0 && rc == RFL_OK; i--)
		if (has_step(l, i) && l->v[i].root == i)
			rc = row_at(l, i)->backward(l, i);
	return rc;
}

/* What is read after the step lives until its end. */
static void keep(struct rfl_plan *plan, const struct lowering *l)
{
	const int end = plan->nsteps - 1;

	for (int i = 0; i < plan->nsteps; i++)
		for (int k = 0; k < 2; k++) {
			const int b = plan->steps[i].buffer[k ? RFL_PLAN_DBIAS : RFL_PLAN_DWEIGHT];

			if (b >= 0)
				plan->buffers[b].last = end;
		}
	plan->buffers[plan->output[root_of(l, l->net->output)]].last = end;
	for (int i = 0; plan->setup.unfused && i < l->net->nnodes; i++)
		if (plan->output[i] >= 0)
			plan->buffers[plan->output[i]].last = end;
}

enum rfl_rc rfl_plan_new(const struct rfl_net *net, const struct rfl_plan_setup *setup,
			 struct rfl_plan **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_plan *plan = rfl_arena_array(arena, 1, sizeof(*plan));
	struct lowering l = { .plan = plan, .net = net, .err = err };
	const size_t n = (size_t)net->nnodes;
	enum rfl_rc rc;

	*plan = (struct rfl_plan){ .net = net, .setup = *setup, .arena = arena };
	plan->output = rfl_arena_array(arena, n, sizeof(*plan->output));
	l.v = rfl_alloc_array(n, sizeof(*l.v));
	if (net->ninputs != 1 || net->nodes[0].shape.ndim != 3 || net->loss != RFL_LOSS_FUSED)
		rc = rfl_fail(err, RFL_EUNSUPPORTED, 0,
			      "%s: the planned engine supports only networks that classify images; "
			      "use --engine torch",
			      net->model);
	else
		rc = RFL_OK;
	if (rc == RFL_OK) {
		prepare(&l);
		rc = lower_forward(&l);
	}
	if (rc == RFL_OK && setup->training)
		rc = lower_backward(&l);
	if (rc == RFL_OK) {
		keep(plan, &l);
		*ret = plan;
	} else {
		rfl_plan_free(plan);
	}
	free(l.v);
	free(l.pending);
	return rc;
}

/* ---- facts of nodes ---- */

const struct rfl_shape *rfl_plan_image(const struct rfl_net *net, int node)
{
	const struct rfl_node *n = &net->nodes[node], *in = n;
	const struct row *row = row_of(n->op);

	/* back through what passes on its input's order */
	while (n->shape.ndim == 1 && row && row->keeps && in->ninputs == 1) {
		in = &net->nodes[in->input[0]];
		if (in->shape.ndim == 3)
			return &in->shape;
		row = row_of(in->op);
	}
	return &n->shape;
}

int rfl_plan_param(const struct rfl_net *net, int node, enum rfl_param_kind kind)
{
	const struct rfl_node *n = &net->nodes[node];

	for (int j = 0; j < n->nparams; j++)
		if (net->params[n->param[j]].kind == kind)
			return n->param[j];
	return -1;
}

void rfl_plan_matrix(const struct rfl_plan *plan, int node, int64_t *ret_rows, int64_t *columns)
{
	const struct rfl_shape *s = rfl_plan_image(plan->net, node);

	*columns = s->dim[0];
	*ret_rows = plan->setup.batch * (rfl_shape_numel(s) / s->dim[0]);
}

struct rfl_plan_window rfl_plan_window(const struct rfl_plan *plan, int node)
{
	const struct rfl_node *n = &plan->net->nodes[node];
	const struct rfl_shape *in = &plan->net->nodes[n->input[0]].shape, *out = &n->shape;
	struct rfl_plan_window w = { .dilation = { 1, 1 } };

	if (n->op == RFL_OP_CONV2D) {
		const struct rfl_conv2d *c = &n->attr.conv2d;

		w = (struct rfl_plan_window){ .kernel = { c->kernel_h, c->kernel_w },
					      .stride = { c->stride_h, c->stride_w },
					      .dilation = { c->dilation_h, c->dilation_w },
					      .before = { c->pad_h, c->pad_w } };
	} else if (n->op == RFL_OP_MAX_POOL || n->op == RFL_OP_AVG_POOL) {
		const struct rfl_pool *p = &n->attr.pool;

		w = (struct rfl_plan_window){ .kernel = { p->kernel_h, p->kernel_w },
					      .stride = { p->stride_h, p->stride_w },
					      .dilation = { 1, 1 },
					      .before = { p->pad_h, p->pad_w },
					      .maximum = n->op == RFL_OP_MAX_POOL,
					      .exclude_padding = p->exclude_padding };
	} else { /* windows that tile the image */
		for (int k = 0; k < 2; k++) {
			const int64_t size = out->ndim == 3 ? out->dim[1 + k] : 1;

			w.kernel[k] = w.stride[k] = in->dim[1 + k] / size;
			w.unequal |= in->dim[1 + k] % size != 0;
		}
	}
	for (int k = 0; k < 2; k++) {
		const int64_t size = out->ndim == 3 ? out->dim[1 + k] : 1;

		w.after[k] = (size - 1) * w.stride[k] + (w.kernel[k] - 1) * w.dilation[k] + 1 -
			     in->dim[1 + k] - w.before[k];
	}
	return w;
}
