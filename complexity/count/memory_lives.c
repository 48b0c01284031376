/*
 * memory_lives.c - how long storages live in the forward pass, and lists of those that end with an
 * operation.
 *
 * A storage is released after its last reader, and not before the functions of the model's code
 * that hold it return: who calls a module holds what it passes in until the module is done (after
 * x = self.layer1(x) x is bound anew when the call is over). A module is a stretch of operations
 * whose paths begin alike. The steps of one function of the code (a softmax written out) are named
 * variables there, and live as long as it runs.
 */
#include "complexity/count/memory_impl.h"

#include <string.h>

#include "base/alloc.h"

enum { MAX_DEPTH = 16 }; /* modules in modules that are looked at */

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

static int depth_of(const char *path)
{
	return *path ? common_depth(path, path) : 0;
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
		int depth = depth_of(node->name);

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

static void find_readers(struct rfl_memory_workspace *w)
{
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
		if (i < w->links->net->nnodes && w->links->nodes[i].logits &&
		    w->tensors[i].root != RFL_MEMORY_NOBODY)
			extend(&w->tensors[w->tensors[i].root].read, w->nops);
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

static void chain_lives(struct rfl_memory_workspace *w)
{
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
}

enum rfl_rc rfl_memory__lives(struct rfl_memory_workspace *w, struct rfl_err *err)
{
	int(*ends)[MAX_DEPTH] =
		rfl_arena_array(w->arena, (size_t)w->links->net->nnodes, sizeof(*ends));

	if (!ends)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", w->links->net->model);
	find_readers(w);
	hold_arguments(w, ends);
	hold_variables(w);
	chain_lives(w);
	return RFL_OK;
}
