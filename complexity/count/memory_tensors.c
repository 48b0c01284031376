/*
 * memory_tensors.c - how large everything is that a step allocates, what is saved by whom, and how
 * long storages live.
 *
 * Autocast (master_weights). An operation of the lower list runs in 16 bits: its inputs and weights
 * are cast, and what it saves is the cast copy. An operation of the F32 list runs in F32 the same
 * way. The others run in the widest type of their inputs, and weights that are no part of an
 * operation are F32.
 */
#include "complexity/count/memory_impl.h"

#include <string.h>

#include "base/alloc.h"
#include "base/num.h"

void rfl_memory__add(struct rfl_memory_size *sum, struct rfl_memory_size size, bool *overflow)
{
	*overflow |= !rfl_num_add(sum->fixed, size.fixed, &sum->fixed) ||
		     !rfl_num_add(sum->per_sample, size.per_sample, &sum->per_sample);
}

const struct rfl_node *rfl_memory__node(const struct rfl_memory_workspace *w, int i)
{
	int n = w->links->net->nnodes;

	return i < n ? &w->links->net->nodes[i] : &w->links->losses[i - n].node;
}

struct rfl_cost_context *rfl_memory__context(const struct rfl_memory_workspace *w, int i)
{
	int n = w->links->net->nnodes;

	return i < n ? &w->links->contexts[i] : &w->links->losses[i - n].context;
}

bool rfl_memory__runs(const struct rfl_memory_workspace *w, int i)
{
	return i >= w->links->net->nnodes || w->links->nodes[i].runs;
}

int rfl_memory__segment(const struct rfl_memory_workspace *w, int i)
{
	return i < w->links->net->nnodes ? w->links->nodes[i].segment : 0;
}

static enum rfl_rc too_big(const struct rfl_memory_workspace *w, int i, struct rfl_err *err)
{
	const struct rfl_node *node = rfl_memory__node(w, i);

	return rfl_fail(err, RFL_EOVERFLOW, 0, "%s: %s (%s): its memory does not fit 63 bits",
			w->links->net->model, *node->name ? node->name : "top level",
			rfl_op_info_of(node->op)->module);
}

/* --- types --- */

static int64_t input_element(const struct rfl_memory_workspace *w, const struct rfl_node *node,
			     int k)
{
	return w->tensors[node->input[k]].element;
}

/* The widest floating input; indices do not count. */
static int64_t promoted(const struct rfl_memory_workspace *w, const struct rfl_node *node,
			int64_t otherwise)
{
	int64_t widest = 0;

	for (int k = 0; k < node->ninputs; k++) {
		const struct rfl_node *from = rfl_memory__node(w, node->input[k]);
		int64_t element = input_element(w, node, k);

		if (from->dtype != RFL_DTYPE_I64 && element > widest)
			widest = element;
	}
	return widest ? widest : otherwise;
}

/* Bytes of an element of the output, which is the type that the operation runs in. */
static int64_t element_of(const struct rfl_memory_workspace *w,
			  const struct rfl_count_options *options, int i)
{
	const struct rfl_node *node = rfl_memory__node(w, i);
	int64_t f32 = rfl_dtype_bytes(RFL_DTYPE_F32), value = rfl_dtype_bytes(options->dtype);

	if (node->dtype == RFL_DTYPE_I64)
		return rfl_dtype_bytes(RFL_DTYPE_I64);
	if (!options->master_weights)
		return value;
	if (node->ninputs == 0)
		return f32; /* the image, parameters, tables */
	if (node->inplace || rfl_op_info_of(node->op)->view)
		return input_element(w, node, 0);
	switch (rfl_op_info_of(node->op)->autocast) {
	case RFL_AUTOCAST_LOWER:
		return value;
	case RFL_AUTOCAST_F32:
		return f32;
	case RFL_AUTOCAST_KEEP:
		break;
	}
	return promoted(w, node, f32);
}

/* An input that autocast copies for the operation. */
static bool is_cast(const struct rfl_memory_workspace *w, int i, int k)
{
	const struct rfl_node *node = rfl_memory__node(w, i);
	bool casts = rfl_op_info_of(node->op)->autocast != RFL_AUTOCAST_KEEP;

	return casts && w->tensors[node->input[k]].root != RFL_MEMORY_NOBODY &&
	       rfl_memory__node(w, node->input[k])->dtype != RFL_DTYPE_I64 &&
	       input_element(w, node, k) != w->tensors[i].element;
}

/* --- sizes --- */

static struct rfl_memory_size size_of(int64_t elements, int64_t element, bool batchless,
				      bool *overflow)
{
	int64_t bytes = 0;

	*overflow |= !rfl_num_mul(elements, element, &bytes);
	return batchless ? (struct rfl_memory_size){ .fixed = bytes }
			 : (struct rfl_memory_size){ .per_sample = bytes };
}

/* A line through what a rule says of one sample and of two. */
static struct rfl_memory_size line(int64_t one, int64_t two)
{
	return (struct rfl_memory_size){ .fixed = one - (two - one), .per_sample = two - one };
}

static void describe_tensor(struct rfl_memory_workspace *w, const struct rfl_count_options *options,
			    int i, bool *overflow)
{
	const struct rfl_node *node = rfl_memory__node(w, i);
	struct rfl_memory_tensor *t = &w->tensors[i];
	bool shares = node->ninputs > 0 && (node->inplace || rfl_op_info_of(node->op)->view);

	*t = (struct rfl_memory_tensor){
		.root = shares ? w->tensors[node->input[0]].root : i,
		.given = node->op == RFL_OP_INPUT,
		.read = { .end = i },
		.kept = { .end = RFL_MEMORY_NOBODY },
		.saved_as = RFL_MEMORY_NOBODY,
		.read_again = { .end = i },
		.kept_again = { .end = RFL_MEMORY_NOBODY },
	};
	if (node->op == RFL_OP_PARAMETER || node->op == RFL_OP_CONSTANT)
		t->root = RFL_MEMORY_NOBODY;
	t->element = element_of(w, options, i);
	/* Of a loss only one number is left. */
	if (i < w->links->net->nnodes)
		t->size = size_of(rfl_shape_numel(&node->shape), t->element, node->batchless,
				  overflow);
	rfl_memory__context(w, i)->value_bytes = t->element;
}

/* --- what is saved --- */

static void keep(struct rfl_memory_life *life, int saver)
{
	if (life->end == RFL_MEMORY_NOBODY || saver < life->end)
		life->end = saver;
}

/* The storage of tensor x is there from the first forward pass to the backward pass of `saver`. */
static void keep_tensor(struct rfl_memory_workspace *w, int x, int saver)
{
	struct rfl_memory_tensor *storage = &w->tensors[w->tensors[x].root];

	keep(&storage->kept, saver);
	if (storage->saved_as == RFL_MEMORY_NOBODY)
		storage->saved_as = x;
}

static int first_of_segment(const struct rfl_memory_workspace *w, int i)
{
	int segment = rfl_memory__segment(w, i);

	while (i > 0 && rfl_memory__segment(w, i - 1) == segment)
		i--;
	return i;
}

/* Operation i saves the storage of tensor x. A segment that will run again keeps only what comes
 * from outside. */
static void save_tensor(struct rfl_memory_workspace *w, int i, int x)
{
	int root = w->tensors[x].root, segment = rfl_memory__segment(w, i);

	if (root == RFL_MEMORY_NOBODY)
		return;
	if (segment && rfl_memory__segment(w, root) == segment)
		keep(&w->tensors[root].kept_again, i);
	else if (!segment)
		keep_tensor(w, x, i);
}

/* The inputs of a segment, saved or not, are kept to run it again. */
static void keep_segment_inputs(struct rfl_memory_workspace *w, int i)
{
	const struct rfl_node *node = rfl_memory__node(w, i);

	for (int k = 0; rfl_memory__segment(w, i) && w->links->nodes[i].again && k < node->ninputs;
	     k++) {
		int root = w->tensors[node->input[k]].root;

		if (root != RFL_MEMORY_NOBODY &&
		    rfl_memory__segment(w, root) != rfl_memory__segment(w, i))
			keep_tensor(w, node->input[k], first_of_segment(w, i));
	}
}

static enum rfl_saved_class class_of(const struct rfl_memory_workspace *w, int i,
				     enum rfl_saved_kind kind)
{
	if (i >= w->links->net->nnodes)
		return RFL_SAVED_CLASS_LOSS;
	switch (kind) {
	case RFL_SAVED_CLONE:
		return RFL_SAVED_CLASS_CLONES;
	case RFL_SAVED_INDICES:
		return RFL_SAVED_CLASS_INDICES;
	case RFL_SAVED_MASK:
		return RFL_SAVED_CLASS_MASKS;
	case RFL_SAVED_STATISTICS:
		return RFL_SAVED_CLASS_STATISTICS;
	case RFL_SAVED_INPUT:
	case RFL_SAVED_OUTPUT:
	case RFL_SAVED_INTERNAL:
		break;
	}
	return RFL_SAVED_CLASS_ACTIVATIONS;
}

static void save_extra(struct rfl_memory_extras *e, enum rfl_saved_class class,
		       struct rfl_memory_size size, bool *overflow)
{
	rfl_memory__add(&e->saved_class[class], size, overflow);
	rfl_memory__add(&e->saved, size, overflow);
}

static struct rfl_memory_size cast_size(const struct rfl_memory_workspace *w, int i, int k,
					bool *overflow)
{
	const struct rfl_node *from = rfl_memory__node(w, rfl_memory__node(w, i)->input[k]);

	return size_of(rfl_shape_numel(&from->shape), w->tensors[i].element, from->batchless,
		       overflow);
}

static void describe_saved(struct rfl_memory_workspace *w, int i, bool *overflow)
{
	struct rfl_cost_context *c = rfl_memory__context(w, i);
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
	struct rfl_op_saved one[RFL_OP_MAX_SAVED], two[RFL_OP_MAX_SAVED];
	struct rfl_memory_extras *e = &w->extras[i];
	unsigned cast = 0;
	int n = op->saved ? op->saved(rfl_links_at(c, 1), one) : 0;

	*overflow |= c->overflow;
	if (n)
		(void)op->saved(rfl_links_at(c, 2), two);
	*overflow |= c->overflow;
	for (int s = 0; s < n && !*overflow; s++) {
		int k = one[s].input;

		if (one[s].kind == RFL_SAVED_OUTPUT) {
			save_tensor(w, i, i);
		} else if (one[s].kind != RFL_SAVED_INPUT) {
			save_extra(e, class_of(w, i, one[s].kind), line(one[s].bytes, two[s].bytes),
				   overflow);
		} else if (!is_cast(w, i, k)) {
			save_tensor(w, i, c->node->input[k]);
		} else if (!(cast & 1u << k)) {
			cast |= 1u << k;
			save_extra(e, RFL_SAVED_CLASS_ACTIVATIONS, cast_size(w, i, k, overflow),
				   overflow);
		}
	}
	/* Copies that are not saved go when the operation has run. */
	for (int k = 0; k < c->node->ninputs && k < 32; k++)
		if (is_cast(w, i, k) && !(cast & 1u << k))
			rfl_memory__add(&e->forward, cast_size(w, i, k, overflow), overflow);
}

/* --- temporaries, copies of weights, gradients of parameters --- */

static void describe_scratch(struct rfl_memory_workspace *w, int i, bool *overflow)
{
	struct rfl_cost_context *c = rfl_memory__context(w, i);
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
	struct rfl_op_scratch one = { 0 }, two = { 0 };
	struct rfl_memory_extras *e = &w->extras[i];

	if (op->scratch) {
		op->scratch(rfl_links_at(c, 1), &one);
		op->scratch(rfl_links_at(c, 2), &two); /* what fits of two fits of one */
		*overflow |= c->overflow;
	}
	if (*overflow)
		return;
	rfl_memory__add(&e->forward, line(one.forward, two.forward), overflow);
	rfl_memory__add(&e->backward, line(one.backward, two.backward), overflow);
	/* The gradient of a copy is made in its type first. */
	for (int k = 0; k < c->node->ninputs; k++)
		if (c->inputs[k].grad && is_cast(w, i, k))
			rfl_memory__add(&e->backward, cast_size(w, i, k, overflow), overflow);
}

static void describe_params(struct rfl_memory_workspace *w, const struct rfl_count_options *options,
			    int i, bool *overflow)
{
	const struct rfl_cost_context *c = rfl_memory__context(w, i);
	struct rfl_memory_extras *e = &w->extras[i];
	bool lower = options->master_weights &&
		     rfl_op_info_of(c->node->op)->autocast == RFL_AUTOCAST_LOWER;
	int64_t elements = 0;

	for (int k = 0; k < c->node->nparams; k++) {
		const struct rfl_param *p = &w->links->net->params[c->node->param[k]];

		if (!rfl_param_is_buffer(p->kind))
			*overflow |= !rfl_num_add(elements, p->numel, &elements);
	}
	if (c->needs_wgrad)
		e->gradients = size_of(elements, c->param_bytes, true, overflow).fixed;
	if (!lower)
		return;
	e->copies = size_of(elements, rfl_dtype_bytes(options->dtype), true, overflow);
	e->copies_kept = c->needs_dgrad;
	if (c->needs_wgrad)
		rfl_memory__add(&e->backward, e->copies, overflow);
}

/* --- sums --- */

static void count_saved(struct rfl_memory_workspace *w, bool *overflow)
{
	for (int i = 0; i < w->nops; i++) {
		const struct rfl_memory_tensor *t = &w->tensors[i];
		int at = i < w->links->net->nnodes ? i : w->links->losses[0].logits;

		if (!rfl_memory__runs(w, i))
			continue;
		if (t->root == i && t->kept.end != RFL_MEMORY_NOBODY) {
			rfl_memory__add(&w->saved_class[t->given ? RFL_SAVED_CLASS_INPUT
								 : RFL_SAVED_CLASS_ACTIVATIONS],
					t->size, overflow);
			if (t->kept.end < w->links->net->nnodes)
				rfl_memory__add(&w->node_saved[t->kept.end], t->size, overflow);
		}
		if (rfl_memory__segment(w, i))
			continue;
		for (int k = 0; k < RFL_SAVED_CLASS_COUNT; k++)
			rfl_memory__add(&w->saved_class[k], w->extras[i].saved_class[k], overflow);
		rfl_memory__add(&w->node_saved[at], w->extras[i].saved, overflow);
	}
}

/* --- lives --- */

/*
 * A storage is released after its last reader, and not before the functions of the model's code
 * that hold it return: who calls a module holds what it passes in until the module is done (after
 * x = self.layer1(x) x is bound anew when the call is over). A module is a stretch of operations
 * whose paths begin alike. The steps of one function of the code (a softmax written out) are named
 * variables there, and live as long as it runs.
 */

enum { MAX_DEPTH = 16 }; /* levels of modules that are checked */

static void extend(struct rfl_memory_life *life, int end)
{
	if (end > life->end)
		life->end = end;
}

/* How many leading modules two paths have in common: of "a.b" and "a.b.c" two. */
static int common_depth(const char *a, const char *b)
{
	int depth = 0;

	for (; *a && *a == *b; a++, b++)
		depth += *a == '.';
	return depth + ((*a == '\0' || *a == '.') && (*b == '\0' || *b == '.'));
}

/*
 * ends[d] of operation i: the last operation of the stretch around i whose paths agree in their
 * first d + 1 modules. A tensor from before the stretch that i reads lives to its end; so it is
 * passed to a module of depth d + 1.
 */
static void hold_arguments(struct rfl_memory_workspace *w, int (*ends)[MAX_DEPTH])
{
	const struct rfl_net *net = w->links->net;

	for (int i = net->nnodes - 1; i >= 0; i--) {
		const char *name = net->nodes[i].name;
		int shared = i + 1 < net->nnodes ? common_depth(name, net->nodes[i + 1].name) : 0;

		for (int d = 0; d < MAX_DEPTH; d++)
			ends[i][d] = d < shared ? ends[i + 1][d] : i;
	}
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		int depth = *node->name ? common_depth(node->name, node->name) : 0;

		for (int k = 0; w->links->nodes[i].runs && k < node->ninputs; k++) {
			int x = node->input[k], root = w->tensors[x].root;

			for (int d = 0; root >= 0 && d < depth && d < MAX_DEPTH; d++)
				if (ends[x][d] < i) {
					extend(&w->tensors[root].read, ends[i][d]);
					extend(&w->tensors[root].read_again, ends[i][d]);
					break;
				}
		}
	}
}

/* Steps of one function of the model's code, and what is passed to it, live until it returns. */
static void hold_variables(struct rfl_memory_workspace *w)
{
	const struct rfl_net *net = w->links->net;
	int end = 0;

	for (int i = net->nnodes - 1; i >= 0; i--) {
		const struct rfl_node *node = &net->nodes[i];
		int root = w->tensors[i].root;

		if (node->function == 0)
			continue;
		if (i + 1 == net->nnodes || net->nodes[i + 1].function != node->function)
			end = i;
		for (int k = -1; k < node->ninputs; k++) {
			root = w->tensors[k < 0 ? i : node->input[k]].root;
			if (root == RFL_MEMORY_NOBODY)
				continue;
			extend(&w->tensors[root].read, end);
			extend(&w->tensors[root].read_again, end);
		}
	}
}

static void chain(struct rfl_memory_life *life, int root, int *heads, int nops)
{
	life->next = RFL_MEMORY_NOBODY;
	if (life->end == RFL_MEMORY_NOBODY || life->end >= nops)
		return;
	life->next = heads[life->end];
	heads[life->end] = root;
}

/* How long storages live in the forward pass, and the lists of those that end with an operation. */
static enum rfl_rc fill_lives(struct rfl_memory_workspace *w, struct rfl_err *err)
{
	const struct rfl_net *net = w->links->net;
	int(*ends)[MAX_DEPTH] = rfl_arena_array(w->arena, (size_t)net->nnodes, sizeof(*ends));

	if (!ends)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
	for (int i = 0; i < w->nops; i++) {
		const struct rfl_node *node = rfl_memory__node(w, i);

		for (int k = 0; rfl_memory__runs(w, i) && k < node->ninputs; k++) {
			int root = w->tensors[node->input[k]].root;

			if (root == RFL_MEMORY_NOBODY)
				continue;
			extend(&w->tensors[root].read, i);
			if (rfl_memory__segment(w, i) == rfl_memory__segment(w, root))
				extend(&w->tensors[root].read_again, i);
		}
		/* The program that trains holds the logits while it steps. */
		if (i < net->nnodes && w->links->nodes[i].logits &&
		    w->tensors[i].root != RFL_MEMORY_NOBODY)
			extend(&w->tensors[w->tensors[i].root].read, w->nops);
	}
	hold_arguments(w, ends);
	hold_variables(w);
	for (int i = 0; i < w->nops; i++)
		w->read_ends[i] = w->kept_ends[i] = w->read_again_ends[i] = w->kept_again_ends[i] =
			RFL_MEMORY_NOBODY;
	for (int i = 0; i < w->nops; i++) {
		struct rfl_memory_tensor *t = &w->tensors[i];

		if (t->root != i || !rfl_memory__runs(w, i))
			continue;
		chain(&t->read, i, w->read_ends, w->nops);
		chain(&t->kept, i, w->kept_ends, w->nops);
		chain(&t->read_again, i, w->read_again_ends, w->nops);
		chain(&t->kept_again, i, w->kept_again_ends, w->nops);
	}
	return RFL_OK;
}

enum rfl_rc rfl_memory__tensors(struct rfl_memory_workspace *w,
				const struct rfl_memory_options *options, struct rfl_err *err)
{
	bool overflow = false;

	for (int i = 0; i < w->nops; i++) {
		if (rfl_memory__runs(w, i))
			rfl_memory__context(w, i)->on_cpu = options->device == RFL_MEMORY_CPU;
		describe_tensor(w, &options->count, i, &overflow);
		if (rfl_memory__runs(w, i)) {
			if (options->count.training) {
				describe_saved(w, i, &overflow);
				keep_segment_inputs(w, i);
			}
			describe_scratch(w, i, &overflow);
			describe_params(w, &options->count, i, &overflow);
		}
		if (overflow)
			return too_big(w, i, err);
	}
	count_saved(w, &overflow);
	return overflow ? too_big(w, w->links->net->output, err) : fill_lives(w, err);
}
