/*
 * memory_tensors.c - the sizes of all allocations of a step, the tensors saved by each operation,
 * and the lifetimes of storages.
 *
 * Autocast (master_weights). An operation with RFL_AUTOCAST_LOWER runs in 16 bits: its inputs and
 * weights are cast, and it saves the cast copies. Operations with RFL_AUTOCAST_F32 are cast to F32
 * in the same way. All others run in the widest type of their inputs. Learned tensors that are not
 * part of an operation are F32.
 */
#include "complexity/count/memory_impl.h"

#include <string.h>

#include "base/alloc.h"
#include "base/num.h"

static const struct rfl_node *node_of(const struct rfl_memory_workspace *w, int i)
{
	return w->links->contexts[i].node;
}

/* Bytes per element of the output; the operation runs in the same type. */
static int64_t element_of(const struct rfl_memory_workspace *w, int i)
{
	const struct rfl_node *node = node_of(w, i);
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	int64_t f32 = rfl_dtype_bytes(RFL_DTYPE_F32), widest = 0;
	int64_t value = rfl_dtype_bytes(w->options->count.dtype);

	if (node->dtype == RFL_DTYPE_I64)
		return rfl_dtype_bytes(RFL_DTYPE_I64);
	if (!w->options->count.master_weights)
		return value;
	if (node->ninputs == 0)
		return f32; /* the image, parameters, tables */
	if (node->inplace || op->view)
		return w->tensors[node->input[0]].element;
	if (op->autocast != RFL_AUTOCAST_KEEP)
		return op->autocast == RFL_AUTOCAST_LOWER ? value : f32;
	for (int k = 0; k < node->ninputs; k++) { /* indices do not count */
		int64_t element = w->tensors[node->input[k]].element;

		if (node_of(w, node->input[k])->dtype != RFL_DTYPE_I64 && element > widest)
			widest = element;
	}
	return widest ? widest : f32;
}

/* Whether autocast copies input k for the operation. */
static bool is_cast(const struct rfl_memory_workspace *w, int i, int k)
{
	const struct rfl_node *node = node_of(w, i);
	const struct rfl_memory_tensor *from = &w->tensors[node->input[k]];

	return rfl_op_info_of(node->op)->autocast != RFL_AUTOCAST_KEEP &&
	       from->root != RFL_MEMORY_NOBODY &&
	       node_of(w, node->input[k])->dtype != RFL_DTYPE_I64 &&
	       from->element != w->tensors[i].element;
}

/* The output of a node, with elements of a given size. */
static int64_t size_of(struct rfl_memory_workspace *w, const struct rfl_node *node, int64_t element)
{
	int64_t bytes = 0;

	w->overflow |= !rfl_num_mul(rfl_shape_numel(&node->shape), element, &bytes) ||
		       !rfl_num_mul(bytes, node->batchless ? 1 : w->options->count.batch, &bytes);
	return bytes;
}

static int64_t cast_size(struct rfl_memory_workspace *w, int i, int k)
{
	return size_of(w, node_of(w, node_of(w, i)->input[k]), w->tensors[i].element);
}

static void describe_tensor(struct rfl_memory_workspace *w, int i)
{
	const struct rfl_node *node = node_of(w, i);
	struct rfl_memory_tensor *t = &w->tensors[i];
	bool shares = node->ninputs > 0 && (node->inplace || rfl_op_info_of(node->op)->view);

	if (!w->lists) /* the lifetimes do not depend on the batch */
		*t = (struct rfl_memory_tensor){
			.root = shares ? w->tensors[node->input[0]].root : i,
			.given = node->op == RFL_OP_INPUT,
			.saved_as = RFL_MEMORY_NOBODY,
			.life = { [RFL_LIFE_READ] = { .end = i },
				  [RFL_LIFE_KEPT] = { .end = RFL_MEMORY_NOBODY },
				  [RFL_LIFE_READ_AGAIN] = { .end = i },
				  [RFL_LIFE_KEPT_AGAIN] = { .end = RFL_MEMORY_NOBODY } },
		};
	if (node->op == RFL_OP_PARAMETER || node->op == RFL_OP_CONSTANT)
		t->root = RFL_MEMORY_NOBODY;
	t->element = element_of(w, i);
	if (i < w->net->nnodes) /* a loss yields a single number */
		t->size = size_of(w, node, t->element);
	w->links->contexts[i].value_bytes = t->element;
}

/* --- saved tensors --- */

static void keep(struct rfl_memory_tensor *t, enum rfl_life life, int saver)
{
	int *end = &t->life[life].end;

	if (*end == RFL_MEMORY_NOBODY || saver < *end)
		*end = saver;
}

/* Keep the storage of tensor x from the first forward pass to the backward pass of `saver`. */
static void keep_tensor(struct rfl_memory_workspace *w, int x, int saver)
{
	struct rfl_memory_tensor *storage = &w->tensors[w->tensors[x].root];

	keep(storage, RFL_LIFE_KEPT, saver);
	if (storage->saved_as == RFL_MEMORY_NOBODY)
		storage->saved_as = x;
}

/* Operation i saves the storage of x. A segment that will run again keeps only outside tensors. */
static void save_tensor(struct rfl_memory_workspace *w, int i, int x)
{
	const struct rfl_link *links = w->links->nodes;
	int root = w->tensors[x].root, segment = links[i].segment;

	if (root == RFL_MEMORY_NOBODY)
		return;
	if (segment && links[root].segment == segment)
		keep(&w->tensors[root], RFL_LIFE_KEPT_AGAIN, i);
	else if (!segment)
		keep_tensor(w, x, i);
}

static void save_extra(struct rfl_memory_workspace *w, int i, enum rfl_saved_class class,
		       int64_t size)
{
	rfl_memory__add(w, &w->extras[i].saved_class[class], size);
	rfl_memory__add(w, &w->extras[i].saved, size);
}

static void describe_saved(struct rfl_memory_workspace *w, int i)
{
	const struct rfl_link *links = w->links->nodes;
	struct rfl_cost_context *c = &w->links->contexts[i];
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
	struct rfl_op_saves saves = { 0 };
	unsigned cast = 0;
	int first = i;

	if (op->saved)
		op->saved(c, &saves);
	w->overflow |= c->overflow;
	for (int s = 0; s < saves.n && !w->overflow; s++) {
		const struct rfl_op_saved *saved = &saves.item[s];
		int k = saved->tensor;

		if (k == RFL_SAVED_OUTPUT) {
			save_tensor(w, i, i);
		} else if (k == RFL_SAVED_BYTES) {
			save_extra(w, i, saved->kind, saved->bytes);
		} else if (!is_cast(w, i, k)) {
			save_tensor(w, i, c->node->input[k]);
		} else if (!(cast & 1u << k)) {
			cast |= 1u << k;
			save_extra(w, i, RFL_SAVED_CLASS_ACTIVATIONS, cast_size(w, i, k));
		}
	}
	/* Copies that are not saved are released after the operation. */
	for (int k = 0; k < c->node->ninputs && k < 32; k++)
		if (is_cast(w, i, k) && !(cast & 1u << k))
			rfl_memory__add(w, &w->extras[i].forward, cast_size(w, i, k));
	if (!links[i].segment || !links[i].again)
		return;
	/* The inputs of a segment, saved or not, are kept to run it again. */
	while (first > 0 && links[first - 1].segment == links[i].segment)
		first--;
	for (int k = 0; k < c->node->ninputs; k++) {
		int root = w->tensors[c->node->input[k]].root;

		if (root != RFL_MEMORY_NOBODY && links[root].segment != links[i].segment)
			keep_tensor(w, c->node->input[k], first);
	}
}

/* Compute temporaries, copies of weights, and gradients of parameters. */
static void describe_rest(struct rfl_memory_workspace *w, int i)
{
	const struct rfl_count_options *options = &w->options->count;
	struct rfl_cost_context *c = &w->links->contexts[i];
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
	struct rfl_memory_extras *e = &w->extras[i];
	struct rfl_op_scratch scratch = { 0 };
	int64_t elements = 0;

	if (op->scratch)
		op->scratch(c, &scratch);
	w->overflow |= c->overflow;
	rfl_memory__add(w, &e->forward, scratch.forward);
	rfl_memory__add(w, &e->backward, scratch.backward);
	/* The gradient of a copy is first computed in its type. */
	for (int k = 0; k < c->node->ninputs; k++)
		if (c->inputs[k].grad && is_cast(w, i, k))
			rfl_memory__add(w, &e->backward, cast_size(w, i, k));
	for (int k = 0; k < c->node->nparams; k++) {
		const struct rfl_param *p = &w->net->params[c->node->param[k]];

		if (!rfl_param_is_buffer(p->kind))
			w->overflow |= !rfl_num_add(elements, p->numel, &elements);
	}
	if (c->needs_wgrad)
		w->overflow |= !rfl_num_mul(elements, c->param_bytes, &e->gradients);
	if (!options->master_weights || op->autocast != RFL_AUTOCAST_LOWER)
		return;
	w->overflow |= !rfl_num_mul(elements, rfl_dtype_bytes(options->dtype), &e->copies);
	e->copies_kept = c->needs_dgrad;
	if (c->needs_wgrad)
		rfl_memory__add(w, &e->backward, e->copies);
}

int rfl_memory__sizes(struct rfl_memory_workspace *w)
{
	for (int i = 0; i < w->links->nops; i++) {
		struct rfl_cost_context *c =
			rfl_links_at(&w->links->contexts[i], w->options->count.batch);
		bool runs = w->links->nodes[i].runs;

		c->on_cpu = runs && w->options->device == RFL_MEMORY_CPU;
		w->extras[i] = (struct rfl_memory_extras){ 0 };
		describe_tensor(w, i);
		if (runs && w->options->count.training)
			describe_saved(w, i);
		if (runs)
			describe_rest(w, i);
		if (w->overflow)
			return i;
	}
	return RFL_MEMORY_NOBODY;
}

/* --- lifetimes --- */

/* A storage is released after its last reader, but not before every function of the model's code
 * that holds it returns: the caller of a module holds its arguments until the call returns (in x =
 * self.layer1(x), x is rebound after the call). A module is a run of operations with a common path
 * prefix. The steps of a function such as a written-out softmax are variables and live as long as
 * it. */

enum { MAX_DEPTH = 16 }; /* the deepest level of modules examined */

/* Operation `end` reads the storage of tensor x, and does so again if its segment is rerun. */
static void extend(struct rfl_memory_workspace *w, int x, int end, bool again)
{
	struct rfl_memory_tensor *t;

	if (w->tensors[x].root == RFL_MEMORY_NOBODY)
		return;
	t = &w->tensors[w->tensors[x].root];
	if (end > t->life[RFL_LIFE_READ].end)
		t->life[RFL_LIFE_READ].end = end;
	if (again && end > t->life[RFL_LIFE_READ_AGAIN].end)
		t->life[RFL_LIFE_READ_AGAIN].end = end;
}

/* The number of leading modules that two paths have in common: 2 for "a.b" and "a.b.c". */
static int common_depth(const char *a, const char *b)
{
	int depth = 0;

	for (; *a && *a == *b; a++, b++)
		depth += *a == '.';
	return depth + ((*a == '\0' || *a == '.') && (*b == '\0' || *b == '.'));
}

/* ends[i][d]: the last operation of the run around i with paths that agree in their first d + 1
 * modules. If i reads a tensor from before the run, that tensor is an argument of a module at depth
 * d + 1 and lives to the end of the run. */
static void hold_arguments(struct rfl_memory_workspace *w, int (*ends)[MAX_DEPTH])
{
	const struct rfl_net *net = w->net;

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
			int d = 0;

			while (d < depth && d < MAX_DEPTH && ends[node->input[k]][d] >= i)
				d++;
			if (d < depth && d < MAX_DEPTH)
				extend(w, node->input[k], ends[i][d], true);
		}
	}
}

/* Find the forward lifetimes of storages and list the storages that end at each operation. */
void rfl_memory__lives(struct rfl_memory_workspace *w)
{
	const struct rfl_net *net = w->net;
	const struct rfl_link *links = w->links->nodes;
	const int nops = w->links->nops;
	int(*ends)[MAX_DEPTH] = rfl_arena_array(w->arena, (size_t)net->nnodes, sizeof(*ends));
	int end = 0;

	for (int i = 0; i < nops; i++) {
		const struct rfl_node *node = node_of(w, i);

		for (int k = 0; links[i].runs && k < node->ninputs; k++) {
			int root = w->tensors[node->input[k]].root;

			extend(w, node->input[k], i,
			       root >= 0 && links[i].segment == links[root].segment);
		}
		/* The training program holds the logits until after the update. */
		if (links[i].logits)
			extend(w, i, nops, false);
	}
	hold_arguments(w, ends);
	/* The steps of a function of the model's code, and its arguments, live until it returns. */
	for (int i = net->nnodes - 1; i >= 0; i--) {
		const struct rfl_node *node = &net->nodes[i];

		if (node->function == 0)
			continue;
		if (i + 1 == net->nnodes || net->nodes[i + 1].function != node->function)
			end = i;
		extend(w, i, end, true);
		for (int k = 0; k < node->ninputs; k++)
			extend(w, node->input[k], end, true);
	}
	for (int life = 0; life < RFL_LIVES; life++) {
		for (int i = 0; i < nops; i++)
			w->ends[life][i] = RFL_MEMORY_NOBODY;
		for (int i = 0; i < nops; i++) {
			struct rfl_memory_tensor *t = &w->tensors[i];
			int at = t->life[life].end;

			t->life[life].next = RFL_MEMORY_NOBODY;
			if (t->root != i || !links[i].runs || at == RFL_MEMORY_NOBODY || at >= nops)
				continue;
			t->life[life].next = w->ends[life][at];
			w->ends[life][at] = i;
		}
	}
	w->lists = true;
}
