/*
 * memory_walk.c - play one training step, or one forward pass, through as PyTorch's eager mode runs
 * it, and note down how much is allocated at each operation.
 *
 * Forward: an operation allocates its output, what it saves and its temporaries; then storages
 * whose life is over go. Backward, in reverse order: the gradients of an operation's inputs and
 * parameters are allocated while that of its output, what it saved and its temporaries are still
 * there; then those go; then gradients that meet at one tensor are added, in place where nothing
 * else holds the first. A checkpointed segment is run forward again before its backward pass.
 */
#include "complexity/count/memory_impl.h"

#include "base/alloc.h"
#include "complexity/count/optimizer.h"

/* Memory that one or more gradients are views of. */
struct gradient {
	struct rfl_memory_size size;
	int refs;
};

struct walk {
	struct rfl_memory_workspace *w;
	const struct rfl_memory_options *options;
	struct rfl_memory_size now; /* what is allocated */
	enum rfl_phase phase;
	bool overflow;
	bool accumulates;           /* gradients of an earlier pass are there */
	bool *alive;                /* storages */
	bool *made;                 /* parameters whose gradient is there */
	int segment;                /* the last one that was run again */
	struct gradient *gradients; /* as many as are ever made */
	int ngradients;
	int *gradient_of; /* of an operation's output */
};

static void hold(struct walk *walk, struct rfl_memory_size size)
{
	rfl_memory__add(&walk->now, size, &walk->overflow);
}

/* What did not fit was never added, so nothing adds up any more. */
static void drop(struct walk *walk, struct rfl_memory_size size)
{
	if (walk->overflow)
		return;
	walk->now.fixed -= size.fixed;
	walk->now.per_sample -= size.per_sample;
}

static bool covers(struct rfl_memory_size a, struct rfl_memory_size b)
{
	return a.fixed >= b.fixed && a.per_sample >= b.per_sample;
}

/* Remember this moment, unless an earlier one had as much at any batch; forget those that had less.
 */
static void note(struct walk *walk, struct rfl_memory_size extra, int i)
{
	struct rfl_memory_workspace *w = walk->w;
	struct rfl_memory_moment *moments = w->moments[walk->phase];
	struct rfl_memory_moment moment = {
		.size = walk->now,
		.node = i < w->links->net->nnodes ? i : -1,
	};
	int *n = &w->nmoments[walk->phase], kept = 0;

	rfl_memory__add(&moment.size, extra, &walk->overflow);
	for (int k = 0; k < *n; k++)
		if (covers(moments[k].size, moment.size))
			return;
	for (int k = 0; k < *n; k++)
		if (!covers(moment.size, moments[k].size))
			moments[kept++] = moments[k];
	moments[kept++] = moment;
	*n = kept;
}

/* --- forward --- */

static void release(struct walk *walk, int root)
{
	if (!walk->alive[root])
		return;
	walk->alive[root] = false;
	drop(walk, walk->w->tensors[root].size);
}

/* Storages that nothing saves, after their last reader. */
static void release_read(struct walk *walk, int i, bool again)
{
	const struct rfl_memory_tensor *t = walk->w->tensors;
	int root = again ? walk->w->read_again_ends[i] : walk->w->read_ends[i];

	while (root != RFL_MEMORY_NOBODY) {
		const struct rfl_memory_life *read = again ? &t[root].read_again : &t[root].read;
		const struct rfl_memory_life *kept = again ? &t[root].kept_again : &t[root].kept;

		if (kept->end == RFL_MEMORY_NOBODY)
			release(walk, root);
		root = read->next;
	}
}

static void run(struct walk *walk, int i, bool again)
{
	const struct rfl_memory_tensor *t = &walk->w->tensors[i];
	const struct rfl_memory_extras *e = &walk->w->extras[i];
	struct rfl_memory_size temporary = e->forward;

	if (t->root == i && !t->given && !walk->alive[i]) {
		walk->alive[i] = true;
		hold(walk, t->size);
	}
	hold(walk, e->copies);
	if (again || !rfl_memory__segment(walk->w, i))
		hold(walk, e->saved);
	else
		rfl_memory__add(&temporary, e->saved, &walk->overflow);
	note(walk, temporary, i);
}

static void forward(struct walk *walk)
{
	struct rfl_memory_workspace *w = walk->w;
	int n = walk->options->count.training ? w->nops : w->links->net->nnodes;

	walk->phase = RFL_PHASE_FORWARD;
	for (int i = 0; i < n; i++) {
		if (rfl_memory__runs(w, i))
			run(walk, i, false);
		release_read(walk, i, false);
	}
	/* Autocast ends here; copies that a backward pass reads stay. */
	for (int i = 0; i < n; i++)
		if (rfl_memory__runs(w, i) &&
		    (!w->extras[i].copies_kept || rfl_memory__segment(walk->w, i)))
			drop(walk, w->extras[i].copies);
}

/* --- checkpointing --- */

/* The operations of i's segment again. Those after the last tensor that is kept are not run: only
 * copies of their inputs and weights are made. */
static void run_segment_again(struct walk *walk, int i)
{
	struct rfl_memory_workspace *w = walk->w;
	int first = i, segment = rfl_memory__segment(walk->w, i);

	while (first > 0 && rfl_memory__segment(walk->w, first - 1) == segment)
		first--;
	walk->segment = segment;
	for (int k = first; k <= i; k++) {
		if (!rfl_memory__runs(w, k))
			continue;
		if (w->links->nodes[k].again) {
			run(walk, k, true);
		} else {
			hold(walk, w->extras[k].saved);
			hold(walk, w->extras[k].copies);
		}
		release_read(walk, k, true);
	}
	for (int k = first; k <= i; k++)
		if (w->tensors[k].root == k && w->tensors[k].kept_again.end == RFL_MEMORY_NOBODY)
			release(walk, k);
}

/* --- backward --- */

static void release_gradient(struct walk *walk, int g)
{
	if (g != RFL_MEMORY_NOBODY && --walk->gradients[g].refs == 0)
		drop(walk, walk->gradients[g].size);
}

static int new_gradient(struct walk *walk, struct rfl_memory_size size)
{
	walk->gradients[walk->ngradients] = (struct gradient){ .size = size, .refs = 1 };
	hold(walk, size);
	return walk->ngradients++;
}

static bool same_size(struct rfl_memory_size a, struct rfl_memory_size b)
{
	return a.fixed == b.fixed && a.per_sample == b.per_sample;
}

/* The gradient of input k: that of the output, or memory of its own. An operand that was repeated
 * gets the sum, another type a copy. */
static int input_gradient(struct walk *walk, int i, int k, int g)
{
	const struct rfl_node *node = rfl_memory__node(walk->w, i);
	const struct rfl_memory_tensor *to = &walk->w->tensors[node->input[k]];
	const struct rfl_memory_tensor *from = &walk->w->tensors[i];
	bool joins = node->op == RFL_OP_ADD || node->op == RFL_OP_SUB;
	/* One tensor for all samples: the sum over them. */
	bool sums = to->size.per_sample == 0 && from->size.per_sample != 0;

	if (g == RFL_MEMORY_NOBODY || sums || k >= rfl_op_info_of(node->op)->passes ||
	    to->element != from->element || (joins && !same_size(to->size, from->size)))
		return new_gradient(walk, to->size);
	walk->gradients[g].refs++;
	return g;
}

/* A second gradient of one tensor is added to the first. */
static void join(struct walk *walk, int x, int g)
{
	int old = walk->gradient_of[x];
	struct rfl_memory_size size = walk->w->tensors[x].size;

	if (old == RFL_MEMORY_NOBODY) {
		walk->gradient_of[x] = g;
		return;
	}
	if (walk->gradients[old].refs > 1 || !same_size(walk->gradients[old].size, size)) {
		walk->gradient_of[x] = new_gradient(walk, size);
		note(walk, (struct rfl_memory_size){ 0 }, x);
		release_gradient(walk, old);
	}
	release_gradient(walk, g);
}

/* Gradients of parameters stay. Where there are some already the new ones are added and go.
 * @return what goes */
static struct rfl_memory_size param_gradients(struct walk *walk, int i)
{
	const struct rfl_node *node = rfl_memory__node(walk->w, i);
	struct rfl_memory_size size = { .fixed = walk->w->extras[i].gradients };

	if (size.fixed == 0 || node->op == RFL_OP_PARAMETER)
		return (struct rfl_memory_size){ 0 };
	if (walk->accumulates || walk->made[node->param[0]])
		return size;
	walk->made[node->param[0]] = true;
	hold(walk, size);
	return (struct rfl_memory_size){ 0 };
}

static void differentiate(struct walk *walk, int i)
{
	const struct rfl_cost_context *c = rfl_memory__context(walk->w, i);
	const struct rfl_memory_extras *e = &walk->w->extras[i];
	struct rfl_memory_size temporary = e->backward, sums;
	int g = walk->gradient_of[i], made[RFL_NET_MAX_INPUTS];

	for (int k = 0; k < c->node->ninputs; k++)
		made[k] = c->inputs[k].grad ? input_gradient(walk, i, k, g) : RFL_MEMORY_NOBODY;
	sums = param_gradients(walk, i);
	rfl_memory__add(&temporary, sums, &walk->overflow);
	note(walk, temporary, i);
	/* The gradient of an input of the net, and of a parameter, is what was asked for. */
	if (c->node->ninputs > 0 || (c->node->op == RFL_OP_PARAMETER && walk->accumulates))
		release_gradient(walk, g);
	drop(walk, e->saved);
	if (e->copies_kept || rfl_memory__segment(walk->w, i))
		drop(walk, e->copies);
	for (int k = 0; k < c->node->ninputs; k++)
		if (made[k] != RFL_MEMORY_NOBODY)
			join(walk, c->node->input[k], made[k]);
}

static void backward(struct walk *walk)
{
	struct rfl_memory_workspace *w = walk->w;
	const struct rfl_memory_tensor *t = w->tensors;

	walk->phase = RFL_PHASE_BACKWARD;
	for (int i = w->nops - 1; i >= 0; i--) {
		bool grad = i < w->links->net->nnodes ? w->links->nodes[i].grad
						      : rfl_memory__context(w, i)->needs_dgrad;

		if (!rfl_memory__runs(w, i))
			continue;
		if (grad && rfl_memory__segment(walk->w, i) &&
		    rfl_memory__segment(walk->w, i) != walk->segment)
			run_segment_again(walk, i);
		if (grad)
			differentiate(walk, i);
		for (int r = w->kept_ends[i]; r != RFL_MEMORY_NOBODY; r = t[r].kept.next)
			if (!t[r].given && t[r].read.end < w->nops)
				release(walk, r);
		for (int r = w->kept_again_ends[i]; r != RFL_MEMORY_NOBODY;
		     r = t[r].kept_again.next)
			release(walk, r);
	}
}

/* --- step --- */

static void step(struct walk *walk)
{
	struct rfl_memory_workspace *w = walk->w;
	const struct rfl_net *net = w->links->net;
	const struct rfl_optimizer_scratch *s =
		rfl_optimizer_scratch_of(walk->options->count.optimizer);
	int64_t largest = 0;
	struct rfl_memory_size temporary = { 0 };

	for (int i = 0; i < net->nnodes; i++)
		for (int k = 0; w->links->nodes[i].trains && k < net->nodes[i].nparams; k++)
			if (net->params[net->nodes[i].param[k]].numel > largest)
				largest = net->params[net->nodes[i].param[k]].numel;
	if (w->links->trained > 0)
		largest = largest * (w->gradients / w->links->trained);
	/* Both were checked to fit when the state and the gradients of all were. */
	if (walk->options->update == RFL_UPDATE_FOREACH)
		temporary.fixed = s->lists * w->gradients;
	else if (walk->options->update == RFL_UPDATE_FOR_LOOP)
		temporary.fixed = s->tensors * largest;
	walk->phase = RFL_PHASE_STEP;
	note(walk, temporary, w->nops);
}

enum rfl_rc rfl_memory__walk(struct rfl_memory_workspace *w,
			     const struct rfl_memory_options *options, struct rfl_err *err)
{
	const struct rfl_net *net = w->links->net;
	size_t nops = (size_t)w->nops, ngradients = nops;
	struct walk walk = {
		.w = w,
		.options = options,
		.now = w->persistent,
		.accumulates = options->accumulate > 1,
		.alive = rfl_arena_array(w->arena, nops, sizeof(*walk.alive)),
		.made = rfl_arena_array(w->arena, (size_t)net->nparams + 1, sizeof(*walk.made)),
		.gradient_of = rfl_arena_array(w->arena, nops, sizeof(*walk.gradient_of)),
	};

	for (int i = 0; i < w->nops; i++)
		ngradients += 2 * (size_t)rfl_memory__node(w, i)->ninputs;
	walk.gradients = rfl_arena_array(w->arena, ngradients, sizeof(*walk.gradients));
	if (!walk.alive || !walk.made || !walk.gradient_of || !walk.gradients)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
	for (int i = 0; i < w->nops; i++)
		walk.gradient_of[i] = RFL_MEMORY_NOBODY;
	if (walk.accumulates && options->count.training)
		hold(&walk, (struct rfl_memory_size){ .fixed = w->gradients });
	forward(&walk);
	if (options->count.training) {
		backward(&walk);
		step(&walk);
	}
	return walk.overflow ? rfl_fail(err, RFL_EOVERFLOW, 0,
					"%s: its memory does not fit 63 bits", net->model)
			     : RFL_OK;
}
