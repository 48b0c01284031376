/* plan.c - buffers of a plan: their lives, their places and their traffic. */
#include "complexity/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/plan/plan_impl.h"

const char *const rfl_plan_op_names[] = { "input",   "conv",     "linear", "norm",    "activation",
					  "add",     "multiply", "pool",   "columns", "shuffle",
					  "dropout", "loss",     NULL };
const char *const rfl_plan_pass_names[] = { "forward", "dgrad", "wgrad", NULL };

#define ALIGN INT64_C(64)

void rfl_plan_free(struct rfl_plan *plan)
{
	if (plan)
		rfl_arena_free(plan->arena);
}

int rfl_plan__buffer(struct rfl_plan *plan, int64_t bytes)
{
	struct rfl_plan_buffer *b;
	size_t n = (size_t)plan->nbuffers;

	b = rfl_arena_append(plan->arena, &plan->buffers, &n);
	*b = (struct rfl_plan_buffer){ .bytes = bytes, .first = -1, .last = -1 };
	plan->nbuffers = (int)n;
	return plan->nbuffers - 1;
}

void rfl_plan__use(struct rfl_plan *plan, int step, enum rfl_plan_slot slot, int buffer)
{
	struct rfl_plan_buffer *b = &plan->buffers[buffer];

	plan->steps[step].buffer[slot] = buffer;
	if (b->first < 0 || step < b->first)
		b->first = step;
	if (step > b->last)
		b->last = step;
}

void rfl_plan_ask(struct rfl_plan *plan, int step, enum rfl_plan_slot slot, int64_t bytes)
{
	int buffer;

	if (bytes <= 0)
		return;
	buffer = rfl_plan__buffer(plan, bytes);
	rfl_plan__use(plan, step, slot, buffer);
	for (int i = step + 1; slot == RFL_PLAN_SAVED && i < plan->nsteps; i++)
		if (plan->steps[i].forward == step)
			rfl_plan__use(plan, i, slot, buffer);
}

int64_t rfl_plan_size(const struct rfl_plan *plan, const struct rfl_plan_step *step,
		      enum rfl_plan_slot slot)
{
	const int buffer = step->buffer[slot];

	return buffer < 0 ? 0 : plan->buffers[buffer].bytes;
}

/* ---- places ---- */

struct placing {
	int64_t bytes;
	int buffer;
};

/* The largest first; of equal ones, the first. */
static int by_size(const void *a, const void *b)
{
	const struct placing *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x->buffer - y->buffer;
}

static bool meet(const struct rfl_plan_buffer *a, const struct rfl_plan_buffer *b)
{
	return a->first <= b->last && b->first <= a->last;
}

static int64_t padded(int64_t bytes)
{
	return (bytes + ALIGN - 1) & ~(ALIGN - 1);
}

/* Insert a placed buffer into the list sorted by offset. */
static void insert(struct rfl_plan *plan, int *placed, int n, int buffer)
{
	int at = n;

	while (at > 0 && plan->buffers[placed[at - 1]].offset > plan->buffers[buffer].offset) {
		placed[at] = placed[at - 1];
		at--;
	}
	placed[at] = buffer;
}

void rfl_plan_place(struct rfl_plan *plan)
{
	RFL_AUTOFREE struct placing *order =
		rfl_alloc_array((size_t)plan->nbuffers, sizeof(*order));
	RFL_AUTOFREE int *placed = rfl_alloc_array((size_t)plan->nbuffers, sizeof(*placed));
	RFL_AUTOFREE int64_t *live = rfl_alloc_array((size_t)plan->nsteps + 1, sizeof(*live));
	int n = 0;

	plan->bytes = plan->live_bytes = 0;
	for (int i = 0; i < plan->nbuffers; i++) {
		const struct rfl_plan_buffer *b = &plan->buffers[i];

		if (b->first < 0)
			continue;
		order[n++] = (struct placing){ .bytes = b->bytes, .buffer = i };
		for (int s = b->first; s <= b->last; s++)
			live[s] += padded(b->bytes);
	}
	for (int s = 0; s <= plan->nsteps; s++)
		if (live[s] > plan->live_bytes)
			plan->live_bytes = live[s];
	qsort(order, (size_t)n, sizeof(*order), by_size);
	for (int i = 0; i < n; i++) {
		struct rfl_plan_buffer *b = &plan->buffers[order[i].buffer];

		b->offset = 0;
		for (int j = 0; j < i; j++) {
			const struct rfl_plan_buffer *other = &plan->buffers[placed[j]];

			if (!meet(b, other))
				continue;
			if (other->offset >= b->offset + padded(b->bytes))
				break; /* a gap that is large enough */
			if (other->offset + padded(other->bytes) > b->offset)
				b->offset = other->offset + padded(other->bytes);
		}
		insert(plan, placed, i, order[i].buffer);
		if (b->offset + padded(b->bytes) > plan->bytes)
			plan->bytes = b->offset + padded(b->bytes);
	}
}

/* ---- what a step reads and writes ---- */

void rfl_plan_traffic(const struct rfl_plan *plan, const struct rfl_plan_step *step, int64_t *read,
		      int64_t *written)
{
	const struct rfl_net *net = plan->net;
	const struct rfl_node *node = step->node < net->nnodes ? &net->nodes[step->node] : NULL;
	const bool owns = step->op == RFL_PLAN_CONV || step->op == RFL_PLAN_LINEAR ||
			  step->op == RFL_PLAN_NORM;
	int64_t size[RFL_PLAN_SLOTS], weights = 0;

	for (int i = 0; i < RFL_PLAN_SLOTS; i++)
		size[i] = rfl_plan_size(plan, step, (enum rfl_plan_slot)i);
	for (int j = 0; owns && j < node->nparams; j++)
		if (!rfl_param_is_buffer(net->params[node->param[j]].kind))
			weights += 4 * net->params[node->param[j]].numel;
	*read = size[RFL_PLAN_X] + size[RFL_PLAN_OTHER] + size[RFL_PLAN_DY] + size[RFL_PLAN_DY2];
	*written = size[RFL_PLAN_DX] + size[RFL_PLAN_DOTHER] + size[RFL_PLAN_DWEIGHT] +
		   size[RFL_PLAN_DBIAS];
	if (step->pass == RFL_PLAN_FORWARD) {
		*read += weights;
		*written += size[RFL_PLAN_Y] + size[RFL_PLAN_MASK] + size[RFL_PLAN_SAVED];
	} else {
		*read += size[RFL_PLAN_Y] + size[RFL_PLAN_MASK] + size[RFL_PLAN_SAVED];
		if (step->pass == RFL_PLAN_DGRAD)
			*read += weights;
	}
	if (step->op == RFL_PLAN_INPUT) /* float32 */
		*read = size[RFL_PLAN_Y] / plan->setup.value_bytes * 4;
	if (step->op == RFL_PLAN_COLUMNS) { /* only some channels */
		int64_t rows, columns;

		rfl_plan_matrix(plan, step->node, &rows, &columns);
		*written = rows * step->columns * plan->setup.value_bytes;
		*read = *written * (step->add ? 2 : 1);
		if (step->zero)
			*written += size[RFL_PLAN_DX];
	}
	if (step->op != RFL_PLAN_NORM)
		return;
	/* the statistics are one pass, the result another; the sum of gradients is written between
	 * them if it is the gradient of the residual */
	if (step->pass == RFL_PLAN_FORWARD)
		*read += plan->setup.training && !plan->setup.frozen ? size[RFL_PLAN_X] : 0;
	else if (step->buffer[RFL_PLAN_DX] >= 0)
		*read += size[RFL_PLAN_X] +
			 (size[RFL_PLAN_DOTHER] > 0
				  ? size[RFL_PLAN_DOTHER]
				  : size[RFL_PLAN_DY] + size[RFL_PLAN_DY2] + size[RFL_PLAN_MASK]);
}
