/*
 * memory.c - the memory of a network at a batch size. One training step, or one forward pass, is
 * simulated as PyTorch's eager mode runs it, and its largest allocations are recorded.
 *
 * Forward: an operation allocates its output, its saved tensors and its temporaries; then unneeded
 * storages are released. Backward, in reverse order: the gradients of an operation's inputs and
 * parameters are allocated while the gradient of its output, its saved tensors and its temporaries
 * still exist; then those are released; then gradients of the same tensor are added, in place if
 * nothing else holds the first. Checkpointed segments first run forward again.
 */
#include "complexity/count/memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/count/memory_impl.h"

const char *const rfl_update_names[] = { "foreach", "for-loop", "fused", NULL };
const char *const rfl_phase_names[] = { "forward", "backward", "step", NULL };
const char *const rfl_saved_class_names[] = {
	"activations", "clones", "indices", "masks", "statistics", "input", "loss", NULL,
};

/* --- the simulated step --- */

static void hold(struct rfl_memory_workspace *w, int64_t size)
{
	rfl_memory__add(w, &w->now, size);
}

/* After an overflow the sum is meaningless; do not subtract. */
static void drop(struct rfl_memory_workspace *w, int64_t size)
{
	if (!w->overflow)
		w->now -= size;
}

/* Record the allocation at operation i with its temporaries. */
static void note(struct rfl_memory_workspace *w, int64_t temporary, int i)
{
	struct rfl_memory *m = w->m;
	const bool node = i < m->nnodes;
	int64_t *at = &m->node_peak[w->phase][node ? i : m->nnodes], bytes = w->now;

	rfl_memory__add(w, &bytes, temporary);
	if (bytes > *at)
		*at = bytes;
	if (bytes > m->phase_peak[w->phase])
		m->phase_peak[w->phase] = bytes;
	if (bytes <= m->peak)
		return;
	m->peak = bytes;
	m->peak_phase = w->phase;
	m->peak_node = node ? i : -1;
}

static void release(struct rfl_memory_workspace *w, int root)
{
	if (!w->alive[root])
		return;
	w->alive[root] = false;
	drop(w, w->tensors[root].size);
}

/* Release storages that nothing saves, after their last reader. */
static void release_read(struct rfl_memory_workspace *w, int i, bool again)
{
	const struct rfl_memory_tensor *t = w->tensors;
	enum rfl_life read = again ? RFL_LIFE_READ_AGAIN : RFL_LIFE_READ;
	enum rfl_life kept = again ? RFL_LIFE_KEPT_AGAIN : RFL_LIFE_KEPT;

	for (int r = w->ends[read][i]; r != RFL_MEMORY_NOBODY; r = t[r].life[read].next)
		if (t[r].life[kept].end == RFL_MEMORY_NOBODY)
			release(w, r);
}

static void run(struct rfl_memory_workspace *w, int i, bool again)
{
	const struct rfl_memory_tensor *t = &w->tensors[i];
	const struct rfl_memory_extras *e = &w->extras[i];
	int64_t temporary = e->forward;

	if (t->root == i && !t->given && !w->alive[i]) {
		w->alive[i] = true;
		hold(w, t->size);
	}
	hold(w, e->copies);
	if (again || !w->links->nodes[i].segment)
		hold(w, e->saved);
	else
		rfl_memory__add(w, &temporary, e->saved);
	note(w, temporary, i);
}

static void forward(struct rfl_memory_workspace *w, int n)
{
	const struct rfl_memory_extras *extras = w->extras;

	w->phase = RFL_PHASE_FORWARD;
	for (int i = 0; i < n; i++) {
		if (w->links->nodes[i].runs)
			run(w, i, false);
		release_read(w, i, false);
	}
	/* Autocast ends here; copies read by a backward pass stay. */
	for (int i = 0; i < n; i++)
		if (w->links->nodes[i].runs &&
		    (!extras[i].copies_kept || w->links->nodes[i].segment))
			drop(w, extras[i].copies);
}

/* Run the operations of i's checkpointed segment again. Operations after the last saved tensor are
 * not run; only the copies of their inputs and weights are allocated. */
static void run_segment_again(struct rfl_memory_workspace *w, int i)
{
	int first = i;

	w->segment = w->links->nodes[i].segment;
	while (first > 0 && w->links->nodes[first - 1].segment == w->segment)
		first--;
	for (int k = first; k <= i; k++) {
		if (!w->links->nodes[k].runs)
			continue;
		if (w->links->nodes[k].again) {
			run(w, k, true);
		} else {
			hold(w, w->extras[k].saved);
			hold(w, w->extras[k].copies);
		}
		release_read(w, k, true);
	}
	for (int k = first; k <= i; k++)
		if (w->tensors[k].root == k &&
		    w->tensors[k].life[RFL_LIFE_KEPT_AGAIN].end == RFL_MEMORY_NOBODY)
			release(w, k);
}

static void release_gradient(struct rfl_memory_workspace *w, int g)
{
	if (g != RFL_MEMORY_NOBODY && --w->gradients[g].refs == 0)
		drop(w, w->gradients[g].size);
}

static int new_gradient(struct rfl_memory_workspace *w, int64_t size)
{
	w->gradients[w->ngradients] = (struct rfl_memory_gradient){ .size = size, .refs = 1 };
	hold(w, size);
	return w->ngradients++;
}

/* Add a second gradient of the same tensor to the first. */
static void join(struct rfl_memory_workspace *w, int x, int g)
{
	int old = w->gradient_of[x];
	int64_t size = w->tensors[x].size;

	if (old == RFL_MEMORY_NOBODY) {
		w->gradient_of[x] = g;
		return;
	}
	if (w->gradients[old].refs > 1 || w->gradients[old].size != size) {
		w->gradient_of[x] = new_gradient(w, size);
		note(w, 0, x);
		release_gradient(w, old);
	}
	release_gradient(w, g);
}

static void differentiate(struct rfl_memory_workspace *w, int i)
{
	const struct rfl_cost_context *c = &w->links->contexts[i];
	const struct rfl_memory_tensor *from = &w->tensors[i];
	const struct rfl_memory_extras *e = &w->extras[i];
	const bool joins = c->node->op == RFL_OP_ADD || c->node->op == RFL_OP_SUB;
	int64_t temporary = e->backward;
	int g = w->gradient_of[i], made[RFL_NET_MAX_INPUTS];

	/* The gradient of an input shares the memory of the output's gradient unless it must be
	 * summed (a broadcast operand, or one tensor for all samples) or has another type. */
	for (int k = 0; k < c->node->ninputs; k++) {
		const struct rfl_memory_tensor *to = &w->tensors[c->node->input[k]];
		bool repeated = joins && to->size != from->size;
		bool sums = c->inputs[k].batchless && !c->node->batchless;

		made[k] = RFL_MEMORY_NOBODY;
		if (!c->inputs[k].grad)
			continue;
		if (g == RFL_MEMORY_NOBODY || sums || repeated || to->element != from->element ||
		    k >= rfl_op_info_of(c->node->op)->passes) {
			made[k] = new_gradient(w, to->size);
		} else {
			w->gradients[g].refs++;
			made[k] = g;
		}
	}
	/* Gradients of parameters stay; new ones are added to them and released. */
	if (e->gradients != 0 && c->node->op != RFL_OP_PARAMETER) {
		if (w->accumulates || w->made[c->node->param[0]]) {
			rfl_memory__add(w, &temporary, e->gradients);
		} else {
			w->made[c->node->param[0]] = true;
			hold(w, e->gradients);
		}
	}
	note(w, temporary, i);
	/* The gradients of the net's inputs and of parameters stay. */
	if (c->node->ninputs > 0 || (c->node->op == RFL_OP_PARAMETER && w->accumulates))
		release_gradient(w, g);
	drop(w, e->saved);
	if (e->copies_kept || w->links->nodes[i].segment)
		drop(w, e->copies);
	for (int k = 0; k < c->node->ninputs; k++)
		if (made[k] != RFL_MEMORY_NOBODY)
			join(w, c->node->input[k], made[k]);
}

static void backward(struct rfl_memory_workspace *w)
{
	const struct rfl_memory_tensor *t = w->tensors;

	w->phase = RFL_PHASE_BACKWARD;
	for (int i = w->links->nops - 1; i >= 0; i--) {
		const struct rfl_link *link = &w->links->nodes[i];

		if (!link->runs)
			continue;
		if (link->grad && link->segment && link->segment != w->segment)
			run_segment_again(w, i);
		if (link->grad)
			differentiate(w, i);
		for (int r = w->ends[RFL_LIFE_KEPT][i]; r != RFL_MEMORY_NOBODY;
		     r = t[r].life[RFL_LIFE_KEPT].next)
			if (!t[r].given && t[r].life[RFL_LIFE_READ].end < w->links->nops)
				release(w, r);
		for (int r = w->ends[RFL_LIFE_KEPT_AGAIN][i]; r != RFL_MEMORY_NOBODY;
		     r = t[r].life[RFL_LIFE_KEPT_AGAIN].next)
			release(w, r);
	}
}

static void step(struct rfl_memory_workspace *w)
{
	const struct rfl_net *net = w->net;
	const struct rfl_optimizer *o = &rfl_optimizers[w->options->count.optimizer];
	const int64_t gradients = w->m->gradients;
	int64_t largest = 0, temporary = 0;

	for (int i = 0; i < net->nnodes; i++)
		for (int k = 0; w->links->nodes[i].trains && k < net->nodes[i].nparams; k++)
			if (net->params[net->nodes[i].param[k]].numel > largest)
				largest = net->params[net->nodes[i].param[k]].numel;
	if (w->links->trained > 0)
		largest = largest * (gradients / w->links->trained);
	/* Neither overflows: the state and the gradients of all parameters have been checked. */
	if (w->options->update == RFL_UPDATE_FOREACH)
		temporary = o->scratch_lists * gradients;
	else if (w->options->update == RFL_UPDATE_FOR_LOOP)
		temporary = o->scratch_tensors * largest;
	w->phase = RFL_PHASE_STEP;
	note(w, temporary, w->links->nops);
}

/* Simulate a step that begins with `persistent` bytes. */
static void play(struct rfl_memory *m, int64_t persistent)
{
	const bool training = m->options.count.training;
	struct rfl_memory_workspace *w = m->workspace;
	const int nops = w->links->nops;

	w->now = persistent;
	w->segment = w->ngradients = 0;
	memset(w->alive, 0, (size_t)nops * sizeof(*w->alive));
	memset(w->made, 0, (size_t)m->net->nparams * sizeof(*w->made));
	for (int i = 0; i < nops; i++)
		w->gradient_of[i] = RFL_MEMORY_NOBODY;
	if (w->accumulates && training)
		hold(w, m->gradients);
	forward(w, training ? nops : m->nnodes);
	if (training) {
		backward(w);
		step(w);
	}
}

/* Bytes of buffers: statistics, constant tables, row indices, and the batch norms' counters. */
static bool buffer_bytes(const struct rfl_net *net, int64_t element, int64_t *ret)
{
	if (!rfl_num_mul(rfl_net_buffer_count(net), element, ret))
		return false;
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct rfl_shape *shape = &node->shape;
		int64_t elements = 0, size = rfl_dtype_bytes(RFL_DTYPE_I64), bytes;

		if (node->op == RFL_OP_BATCH_NORM)
			elements = 1;
		else if (node->op == RFL_OP_GATHER)
			elements = rfl_shape_numel(shape) / shape->dim[shape->ndim - 1];
		else if (node->op == RFL_OP_CONSTANT)
			elements = rfl_shape_numel(shape);
		if (node->op == RFL_OP_CONSTANT && node->dtype != RFL_DTYPE_I64)
			size = element;
		if (!rfl_num_mul(elements, size, &bytes) || !rfl_num_add(*ret, bytes, ret))
			return false;
	}
	return true;
}

/* Fill in what is allocated throughout a step; `sum` is all of it. False if it does not fit. */
static bool fill_persistent(struct rfl_memory *m, int64_t *sum)
{
	const struct rfl_count_options *o = &m->options.count;
	struct rfl_memory_workspace *w = m->workspace;
	int64_t element = rfl_dtype_bytes(o->master_weights ? RFL_DTYPE_F32 : o->dtype);

	m->weight_copies = m->input = w->labels = 0;
	if (!rfl_num_mul(rfl_net_param_count(m->net), element, &m->weights) ||
	    !buffer_bytes(m->net, element, &m->buffers) ||
	    !rfl_num_add(m->weights, m->buffers, sum))
		return false;
	for (int i = 0; i < w->links->nops; i++)
		if (w->links->nodes[i].runs)
			rfl_memory__add(w, &m->weight_copies, w->extras[i].copies);
	if (o->training) {
		const struct rfl_cost_context *loss = &w->links->contexts[m->nnodes];

		/* An update reads at most five times the size of the weights. */
		if (!rfl_num_mul(w->links->trained, 5 * element, &m->gradients))
			return false;
		m->gradients = w->links->trained * element;
		m->state = rfl_optimizers[o->optimizer].state * m->gradients;
		/* One set of labels for all losses. */
		if (m->net->loss != RFL_LOSS_MEAN)
			w->overflow |=
				!rfl_num_mul(loss->out, rfl_dtype_bytes(RFL_DTYPE_I64), &w->labels);
	}
	for (int i = 0; i < m->net->ninputs; i++)
		rfl_memory__add(w, &m->input, w->tensors[i].size);
	rfl_memory__add(w, &m->input, w->labels);
	rfl_memory__add(w, sum, m->state);
	rfl_memory__add(w, sum, m->input);
	return !w->overflow;
}

/* Sum what is kept at the end of the forward pass. */
static void sum_saved(struct rfl_memory *m)
{
	struct rfl_memory_workspace *w = m->workspace;

	memset(m->node_saved, 0, (size_t)m->nnodes * sizeof(*m->node_saved));
	memset(m->saved_class, 0, sizeof(m->saved_class));
	m->saved = 0;
	m->saved_class[RFL_SAVED_CLASS_INPUT] = w->labels;
	for (int i = 0; i < w->links->nops; i++) {
		const struct rfl_memory_tensor *t = &w->tensors[i];
		int kept = t->life[RFL_LIFE_KEPT].end, at = i < m->nnodes ? i : m->net->output;

		if (!w->links->nodes[i].runs)
			continue;
		if (t->root == i && kept != RFL_MEMORY_NOBODY) {
			rfl_memory__add(w,
					&m->saved_class[t->given ? RFL_SAVED_CLASS_INPUT
								 : RFL_SAVED_CLASS_ACTIVATIONS],
					t->size);
			if (kept < m->nnodes)
				rfl_memory__add(w, &m->node_saved[kept], t->size);
		}
		if (w->links->nodes[i].segment)
			continue;
		for (int k = 0; k < RFL_SAVED_CLASS_COUNT; k++)
			rfl_memory__add(w, &m->saved_class[k], w->extras[i].saved_class[k]);
		rfl_memory__add(w, &m->node_saved[at], w->extras[i].saved);
	}
	for (int k = 0; k < RFL_SAVED_CLASS_COUNT; k++)
		rfl_memory__add(w, &m->saved, m->saved_class[k]);
}

enum rfl_rc rfl_memory_at(struct rfl_memory *m, int64_t batch, struct rfl_err *err)
{
	struct rfl_memory_workspace *w = m->workspace;
	const char *module = NULL;
	int64_t persistent = 0;
	int large;

	if (batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: batch %lld is too small; it must be at least 1", m->net->model,
				(long long)batch);
	m->options.count.batch = batch;
	m->peak = -1;
	memset(m->phase_peak, 0, sizeof(m->phase_peak));
	for (int p = 0; p < RFL_PHASE_COUNT; p++)
		memset(m->node_peak[p], 0, ((size_t)m->nnodes + 1) * sizeof(*m->node_peak[p]));
	w->overflow = false;
	large = rfl_memory__sizes(w);
	if (large == RFL_MEMORY_NOBODY) {
		if (!w->lists)
			rfl_memory__lives(w);
		if (!fill_persistent(m, &persistent))
			return rfl_fail(err, RFL_EOVERFLOW, 0,
					"%s: its parameters, their state and its input exceed 63 "
					"bits; use a smaller network or batch",
					m->net->model);
		sum_saved(m);
		play(m, persistent);
	} else {
		const struct rfl_node *node = w->links->contexts[large].node;

		module = *node->name ? node->name : rfl_op_info_of(node->op)->module;
	}
	return w->overflow ? rfl_fail(err, RFL_EOVERFLOW, 0,
				      "%s: %s%sits memory at batch %lld exceeds 63 bits; use a "
				      "smaller batch or network",
				      m->net->model, module ? module : "", module ? ": " : "",
				      (long long)batch)
			   : RFL_OK;
}

static bool fits(struct rfl_memory *m, int64_t batch, int64_t bytes)
{
	return rfl_memory_at(m, batch, NULL) == RFL_OK && m->peak <= bytes;
}

/* The peak rises with the batch. */
enum rfl_rc rfl_memory_fit(struct rfl_memory *m, int64_t bytes, int64_t *ret, struct rfl_err *err)
{
	int64_t most = 0, fails = 1;
	enum rfl_rc rc;

	while (fits(m, fails, bytes)) {
		most = fails;
		fails *= 2; /* at least one byte per sample: ends before 2^63 */
	}
	while (fails - most > 1) {
		const int64_t middle = most + (fails - most) / 2;

		if (fits(m, middle, bytes))
			most = middle;
		else
			fails = middle;
	}
	rc = rfl_memory_at(m, most < 1 ? 1 : most, err);
	if (rc == RFL_OK)
		*ret = most;
	return rc;
}

/* Allocate everything, for any batch. */
static void allocate(struct rfl_memory_workspace *w, struct rfl_memory *m)
{
	const size_t n = (size_t)w->links->nops, nnodes = (size_t)m->nnodes;
	size_t ngradients = n;

	for (size_t i = 0; i < n; i++)
		ngradients += 2 * (size_t)w->links->contexts[i].node->ninputs;
	w->alive = rfl_arena_array(w->arena, n, sizeof(*w->alive));
	w->made = rfl_arena_array(w->arena, (size_t)m->net->nparams, sizeof(*w->made));
	w->gradient_of = rfl_arena_array(w->arena, n, sizeof(*w->gradient_of));
	w->gradients = rfl_arena_array(w->arena, ngradients, sizeof(*w->gradients));
	w->tensors = rfl_arena_array(w->arena, n, sizeof(*w->tensors));
	w->extras = rfl_arena_array(w->arena, n, sizeof(*w->extras));
	m->node_saved = rfl_arena_array(w->arena, nnodes, sizeof(*m->node_saved));
	for (int i = 0; i < RFL_LIVES; i++)
		w->ends[i] = rfl_arena_array(w->arena, n, sizeof(*w->ends[i]));
	for (int p = 0; p < RFL_PHASE_COUNT; p++)
		m->node_peak[p] = rfl_arena_array(w->arena, nnodes + 1, sizeof(*m->node_peak[p]));
}

enum rfl_rc rfl_memory_new(const struct rfl_net *net, const struct rfl_memory_options *options,
			   struct rfl_memory **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_memory *m = rfl_arena_array(arena, 1, sizeof(*m));
	struct rfl_memory_workspace *w = rfl_arena_array(arena, 1, sizeof(*w));
	enum rfl_rc rc;

	*m = (struct rfl_memory){
		.options = *options, .nnodes = net->nnodes, .net = net, .workspace = w
	};
	*w = (struct rfl_memory_workspace){ .m = m,
					    .options = &m->options,
					    .net = net,
					    .arena = arena,
					    .accumulates = options->accumulate > 1 };
	rc = rfl_links_new(net, &m->options.count, arena, &w->links, err);
	if (rc == RFL_OK) {
		allocate(w, m);
		rc = rfl_memory_at(m, options->count.batch, err);
	}
	if (rc == RFL_OK)
		*ret = m;
	else
		rfl_arena_free(arena);
	return rc;
}

void rfl_memory_free(struct rfl_memory *m)
{
	if (m)
		rfl_arena_free(m->workspace->arena);
}
