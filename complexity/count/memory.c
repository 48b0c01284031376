/*
 * memory.c - the memory of a network at a batch size. One training step, or one forward pass, is
 * simulated as PyTorch's eager mode runs it, and the allocated bytes at each operation are recorded
 * as a linear function of the batch. See memory_impl.h.
 *
 * Forward: an operation allocates its output, its saved tensors and its temporaries; then unneeded
 * storages are released. Backward, in reverse order: the gradients of an operation's inputs and
 * parameters are allocated while the gradient of its output, its saved tensors and its temporaries
 * still exist; then those are released; then gradients of the same tensor are added, in place if
 * nothing else holds the first. Checkpointed segments first run forward again.
 */
#include "complexity/count/memory.h"

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/count/memory_impl.h"

const char *const rfl_update_names[] = { "foreach", "for-loop", "fused", NULL };
const char *const rfl_phase_names[] = { "forward", "backward", "step", NULL };
const char *const rfl_saved_class_names[] = {
	"activations", "clones", "indices", "masks", "statistics", "input", "loss", NULL,
};

/* --- the simulated step --- */

/* Memory shared by one or more gradients, as views. */
struct gradient {
	struct rfl_memory_size size;
	int refs;
};

struct walk {
	struct rfl_memory_workspace *w;
	const struct rfl_net *net;
	const struct rfl_link *links;
	struct rfl_memory_size now; /* currently allocated */
	enum rfl_phase phase;
	bool accumulates;           /* gradients of an earlier pass exist */
	bool *alive;                /* whether each storage is allocated */
	bool *made;                 /* whether each parameter has a gradient */
	int segment;                /* the last one that was run again */
	struct gradient *gradients; /* every gradient ever created */
	int ngradients;
	int *gradient_of; /* index per operation, for its output */
};

static void hold(struct walk *walk, struct rfl_memory_size size)
{
	rfl_memory__add(walk->w, &walk->now, size);
}

/* After an overflow the sums are incomplete; do not subtract. */
static void drop(struct walk *walk, struct rfl_memory_size size)
{
	if (walk->w->overflow)
		return;
	walk->now.fixed -= size.fixed;
	walk->now.per_sample -= size.per_sample;
}

static bool covers(struct rfl_memory_size a, struct rfl_memory_size b)
{
	return a.fixed >= b.fixed && a.per_sample >= b.per_sample;
}

static bool at(struct rfl_memory_size size, int64_t batch, int64_t *ret)
{
	return rfl_num_mul(size.per_sample, batch, ret) && rfl_num_add(*ret, size.fixed, ret);
}

/* Record this moment unless an earlier one is at least as large; drop the smaller ones. */
static void note(struct walk *walk, struct rfl_memory_size extra, int i)
{
	struct rfl_memory_moment *moments = walk->w->moments[walk->phase];
	struct rfl_memory_moment moment = {
		.size = walk->now,
		.node = i < walk->net->nnodes ? i : -1,
	};
	int *n = &walk->w->nmoments[walk->phase], kept = 0;
	int64_t *peak =
		&walk->w->node_peak[walk->phase][i < walk->net->nnodes ? i : walk->net->nnodes];
	int64_t bytes;

	rfl_memory__add(walk->w, &moment.size, extra);
	if (at(moment.size, walk->w->options->count.batch, &bytes) && bytes > *peak)
		*peak = bytes;
	for (int k = 0; k < *n; k++)
		if (covers(moments[k].size, moment.size))
			return;
	for (int k = 0; k < *n; k++)
		if (!covers(moment.size, moments[k].size))
			moments[kept++] = moments[k];
	moments[kept++] = moment;
	*n = kept;
}

static void release(struct walk *walk, int root)
{
	if (!walk->alive[root])
		return;
	walk->alive[root] = false;
	drop(walk, walk->w->tensors[root].size);
}

/* Release storages that nothing saves, after their last reader. */
static void release_read(struct walk *walk, int i, bool again)
{
	const struct rfl_memory_tensor *t = walk->w->tensors;
	enum rfl_life read = again ? RFL_LIFE_READ_AGAIN : RFL_LIFE_READ;
	enum rfl_life kept = again ? RFL_LIFE_KEPT_AGAIN : RFL_LIFE_KEPT;

	for (int r = walk->w->ends[read][i]; r != RFL_MEMORY_NOBODY; r = t[r].life[read].next)
		if (t[r].life[kept].end == RFL_MEMORY_NOBODY)
			release(walk, r);
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
	if (again || !walk->links[i].segment)
		hold(walk, e->saved);
	else
		rfl_memory__add(walk->w, &temporary, e->saved);
	note(walk, temporary, i);
}

static void forward(struct walk *walk, int n)
{
	const struct rfl_memory_extras *extras = walk->w->extras;

	walk->phase = RFL_PHASE_FORWARD;
	for (int i = 0; i < n; i++) {
		if (walk->links[i].runs)
			run(walk, i, false);
		release_read(walk, i, false);
	}
	/* Autocast ends here; copies read by a backward pass stay. */
	for (int i = 0; i < n; i++)
		if (walk->links[i].runs && (!extras[i].copies_kept || walk->links[i].segment))
			drop(walk, extras[i].copies);
}

/* Run the operations of i's checkpointed segment again. Operations after the last saved tensor are
 * not run; only the copies of their inputs and weights are allocated. */
static void run_segment_again(struct walk *walk, int i)
{
	struct rfl_memory_workspace *w = walk->w;
	int first = i;

	walk->segment = walk->links[i].segment;
	while (first > 0 && walk->links[first - 1].segment == walk->segment)
		first--;
	for (int k = first; k <= i; k++) {
		if (!walk->links[k].runs)
			continue;
		if (walk->links[k].again) {
			run(walk, k, true);
		} else {
			hold(walk, w->extras[k].saved);
			hold(walk, w->extras[k].copies);
		}
		release_read(walk, k, true);
	}
	for (int k = first; k <= i; k++)
		if (w->tensors[k].root == k &&
		    w->tensors[k].life[RFL_LIFE_KEPT_AGAIN].end == RFL_MEMORY_NOBODY)
			release(walk, k);
}

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

/* Add a second gradient of the same tensor to the first. */
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

static void differentiate(struct walk *walk, int i)
{
	const struct rfl_cost_context *c = &walk->w->links->contexts[i];
	const struct rfl_memory_tensor *from = &walk->w->tensors[i];
	const struct rfl_memory_extras *e = &walk->w->extras[i];
	const bool joins = c->node->op == RFL_OP_ADD || c->node->op == RFL_OP_SUB;
	struct rfl_memory_size temporary = e->backward, params = { .fixed = e->gradients };
	int g = walk->gradient_of[i], made[RFL_NET_MAX_INPUTS];

	/* The gradient of an input shares the memory of the output's gradient unless it must be
	 * summed (a broadcast operand, or one tensor for all samples) or has another type. */
	for (int k = 0; k < c->node->ninputs; k++) {
		const struct rfl_memory_tensor *to = &walk->w->tensors[c->node->input[k]];
		bool repeated = joins && !same_size(to->size, from->size);
		bool sums = to->size.per_sample == 0 && from->size.per_sample != 0;

		made[k] = RFL_MEMORY_NOBODY;
		if (!c->inputs[k].grad)
			continue;
		if (g == RFL_MEMORY_NOBODY || sums || repeated || to->element != from->element ||
		    k >= rfl_op_info_of(c->node->op)->passes) {
			made[k] = new_gradient(walk, to->size);
		} else {
			walk->gradients[g].refs++;
			made[k] = g;
		}
	}
	/* Gradients of parameters stay; new ones are added to them and released. */
	if (params.fixed != 0 && c->node->op != RFL_OP_PARAMETER) {
		if (walk->accumulates || walk->made[c->node->param[0]]) {
			rfl_memory__add(walk->w, &temporary, params);
		} else {
			walk->made[c->node->param[0]] = true;
			hold(walk, params);
		}
	}
	note(walk, temporary, i);
	/* The gradients of the net's inputs and of parameters stay. */
	if (c->node->ninputs > 0 || (c->node->op == RFL_OP_PARAMETER && walk->accumulates))
		release_gradient(walk, g);
	drop(walk, e->saved);
	if (e->copies_kept || walk->links[i].segment)
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
	for (int i = w->links->nops - 1; i >= 0; i--) {
		const struct rfl_link *link = &walk->links[i];

		if (!link->runs)
			continue;
		if (link->grad && link->segment && link->segment != walk->segment)
			run_segment_again(walk, i);
		if (link->grad)
			differentiate(walk, i);
		for (int r = w->ends[RFL_LIFE_KEPT][i]; r != RFL_MEMORY_NOBODY;
		     r = t[r].life[RFL_LIFE_KEPT].next)
			if (!t[r].given && t[r].life[RFL_LIFE_READ].end < w->links->nops)
				release(walk, r);
		for (int r = w->ends[RFL_LIFE_KEPT_AGAIN][i]; r != RFL_MEMORY_NOBODY;
		     r = t[r].life[RFL_LIFE_KEPT_AGAIN].next)
			release(walk, r);
	}
}

static void step(struct walk *walk)
{
	struct rfl_memory_workspace *w = walk->w;
	const struct rfl_net *net = walk->net;
	const struct rfl_optimizer *o = &rfl_optimizers[w->options->count.optimizer];
	int64_t largest = 0;
	struct rfl_memory_size temporary = { 0 };

	for (int i = 0; i < net->nnodes; i++)
		for (int k = 0; walk->links[i].trains && k < net->nodes[i].nparams; k++)
			if (net->params[net->nodes[i].param[k]].numel > largest)
				largest = net->params[net->nodes[i].param[k]].numel;
	if (w->links->trained > 0)
		largest = largest * (w->gradients / w->links->trained);
	/* Neither overflows: the state and the gradients of all parameters have been checked. */
	if (w->options->update == RFL_UPDATE_FOREACH)
		temporary.fixed = o->scratch_lists * w->gradients;
	else if (w->options->update == RFL_UPDATE_FOR_LOOP)
		temporary.fixed = o->scratch_tensors * largest;
	walk->phase = RFL_PHASE_STEP;
	note(walk, temporary, w->links->nops);
}

static enum rfl_rc play(struct rfl_memory_workspace *w, struct rfl_err *err)
{
	const bool training = w->options->count.training;
	size_t nops = (size_t)w->links->nops, ngradients = nops;
	struct walk walk = {
		.w = w,
		.net = w->net,
		.links = w->links->nodes,
		.now = w->persistent,
		.accumulates = w->options->accumulate > 1,
		.alive = rfl_arena_array(w->arena, nops, sizeof(*walk.alive)),
		.made = rfl_arena_array(w->arena, (size_t)w->net->nparams + 1, sizeof(*walk.made)),
		.gradient_of = rfl_arena_array(w->arena, nops, sizeof(*walk.gradient_of)),
	};

	for (size_t i = 0; i < nops; i++)
		ngradients += 2 * (size_t)w->links->contexts[i].node->ninputs;
	walk.gradients = rfl_arena_array(w->arena, ngradients, sizeof(*walk.gradients));
	if (!walk.alive || !walk.made || !walk.gradient_of || !walk.gradients)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", w->net->model);
	for (size_t i = 0; i < nops; i++)
		walk.gradient_of[i] = RFL_MEMORY_NOBODY;
	if (walk.accumulates && training)
		hold(&walk, (struct rfl_memory_size){ .fixed = w->gradients });
	forward(&walk, training ? w->links->nops : w->net->nnodes);
	if (training) {
		backward(&walk);
		step(&walk);
	}
	return w->overflow ? rfl_fail(err, RFL_EOVERFLOW, 0,
				      "%s: its memory exceeds 63 bits; use a smaller network",
				      w->net->model)
			   : RFL_OK;
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

static bool fill_persistent(struct rfl_memory *m)
{
	const struct rfl_count_options *o = &m->options.count;
	struct rfl_memory_workspace *w = m->workspace;
	int64_t element = rfl_dtype_bytes(o->master_weights ? RFL_DTYPE_F32 : o->dtype);
	struct rfl_memory_size *p = &w->persistent;

	if (!rfl_num_mul(rfl_net_param_count(m->net), element, &m->weights) ||
	    !buffer_bytes(m->net, element, &m->buffers) ||
	    !rfl_num_add(m->weights, m->buffers, &p->fixed))
		return false;
	for (int i = 0; i < w->links->nops; i++)
		if (w->links->nodes[i].runs &&
		    !rfl_num_add(m->weight_copies, w->extras[i].copies.fixed, &m->weight_copies))
			return false;
	if (o->training) {
		const struct rfl_node *loss = w->links->contexts[m->nnodes].node;

		/* An update reads at most five times the size of the weights. */
		if (!rfl_num_mul(w->links->trained, 5 * element, &m->gradients))
			return false;
		m->gradients = w->gradients = w->links->trained * element;
		m->state = rfl_optimizers[o->optimizer].state * m->gradients;
		/* One set of labels for all losses. */
		if (m->net->loss != RFL_LOSS_MEAN)
			w->overflow |=
				!rfl_num_mul(rfl_shape_numel(&loss->shape),
					     rfl_dtype_bytes(RFL_DTYPE_I64), &w->labels.per_sample);
		rfl_memory__add(w, &w->saved_class[RFL_SAVED_CLASS_INPUT], w->labels);
	}
	rfl_memory__add(w, p, (struct rfl_memory_size){ .fixed = m->state });
	for (int i = 0; i < m->net->ninputs; i++)
		rfl_memory__add(w, p, w->tensors[i].size);
	rfl_memory__add(w, p, w->labels);
	return !w->overflow;
}

/* --- evaluation at a batch --- */

static enum rfl_rc too_big(const struct rfl_memory *m, int node, int64_t batch, struct rfl_err *err)
{
	const char *name = node < 0 ? "update" : m->net->nodes[node].name;

	return rfl_fail(
		err, RFL_EOVERFLOW, 0,
		"%s: %s: its memory at batch %lld exceeds 63 bits; use a smaller batch or network",
		m->net->model, *name ? name : "top level", (long long)batch);
}

enum rfl_rc rfl_memory_at(struct rfl_memory *m, int64_t batch, struct rfl_err *err)
{
	const struct rfl_memory_workspace *w = m->workspace;
	bool fits = true;

	if (batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: batch %lld is too small; it must be at least 1", m->net->model,
				(long long)batch);
	m->peak = -1;
	for (int phase = 0; phase < RFL_PHASE_COUNT; phase++) {
		m->phase_peak[phase] = 0;
		for (int k = 0; k < w->nmoments[phase]; k++) {
			const struct rfl_memory_moment *moment = &w->moments[phase][k];
			int64_t bytes;

			if (!at(moment->size, batch, &bytes))
				return too_big(m, moment->node, batch, err);
			if (bytes > m->phase_peak[phase])
				m->phase_peak[phase] = bytes;
			if (bytes <= m->peak)
				continue;
			m->peak = bytes;
			m->peak_phase = (enum rfl_phase)phase;
			m->peak_node = moment->node;
		}
	}
	m->options.count.batch = batch;
	m->saved = 0;
	fits &= at(w->tensors[0].size, batch, &m->input) &&
		rfl_num_mul(m->input, m->net->ninputs, &m->input) &&
		rfl_num_add(m->input, w->labels.per_sample * batch, &m->input);
	for (int k = 0; k < RFL_SAVED_CLASS_COUNT; k++)
		fits &= at(w->saved_class[k], batch, &m->saved_class[k]) &&
			rfl_num_add(m->saved, m->saved_class[k], &m->saved);
	for (int i = 0; i < m->nnodes; i++)
		fits &= at(w->node_saved[i], batch, &m->node_saved[i]);
	return fits ? RFL_OK : too_big(m, m->net->output, batch, err);
}

enum rfl_rc rfl_memory_fit(struct rfl_memory *m, int64_t bytes, int64_t *ret, struct rfl_err *err)
{
	const struct rfl_memory_workspace *w = m->workspace;
	int64_t most = INT64_MAX;
	enum rfl_rc rc;

	/* At each moment, fixed + per_sample * batch must fit in 63 bits. */
	for (int phase = 0; phase < RFL_PHASE_COUNT; phase++)
		for (int k = 0; k < w->nmoments[phase]; k++) {
			struct rfl_memory_size size = w->moments[phase][k].size;
			int64_t batch = size.fixed > bytes ? 0
					: size.per_sample > 0
						? (bytes - size.fixed) / size.per_sample
						: INT64_MAX;

			if (batch < most)
				most = batch;
		}
	rc = rfl_memory_at(m, most < 1 ? 1 : most, err);
	if (rc == RFL_OK)
		*ret = most;
	return rc;
}

/* Compute everything that does not depend on the batch. */
static enum rfl_rc prepare(struct rfl_memory *m, struct rfl_err *err)
{
	struct rfl_memory_workspace *w = m->workspace;
	size_t n, nmoments = 1;
	bool ok = true;
	enum rfl_rc rc = rfl_links_new(m->net, &m->options.count, &w->links, err);

	if (rc != RFL_OK)
		return rc;
	n = (size_t)w->links->nops;
	w->tensors = rfl_arena_array(w->arena, n, sizeof(*w->tensors));
	w->extras = rfl_arena_array(w->arena, n, sizeof(*w->extras));
	w->node_saved = rfl_arena_array(w->arena, n, sizeof(*w->node_saved));
	for (int i = 0; i < RFL_LIVES; i++)
		ok &= (w->ends[i] = rfl_arena_array(w->arena, n, sizeof(*w->ends[i]))) != NULL;
	/* at most one moment per operation and run (forward, again, backward), and per sum of
	 * gradients */
	for (size_t i = 0; i < n; i++)
		nmoments += 3 + (size_t)w->links->contexts[i].node->ninputs;
	for (int p = 0; p < RFL_PHASE_COUNT; p++) {
		w->moments[p] = rfl_arena_array(w->arena, nmoments, sizeof(*w->moments[p]));
		w->node_peak[p] = m->node_peak[p] =
			rfl_arena_array(w->arena, (size_t)m->nnodes + 1, sizeof(*w->node_peak[p]));
		ok &= w->moments[p] && w->node_peak[p];
	}
	if (!ok || !w->tensors || !w->extras || !w->node_saved)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->net->model);
	rc = rfl_memory__tensors(w, err);
	if (rc != RFL_OK)
		return rc;
	if (!fill_persistent(m))
		return rfl_fail(
			err, RFL_EOVERFLOW, 0,
			"%s: its parameters and their state exceed 63 bits; use a smaller network",
			m->net->model);
	rc = play(w, err);
	return rc == RFL_OK ? rfl_memory_at(m, m->options.count.batch, err) : rc;
}

enum rfl_rc rfl_memory_new(const struct rfl_net *net, const struct rfl_memory_options *options,
			   struct rfl_memory **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_memory *m = arena ? rfl_arena_array(arena, 1, sizeof(*m)) : NULL;
	enum rfl_rc rc;

	if (m)
		*m = (struct rfl_memory){
			.options = *options,
			.nnodes = net->nnodes,
			.net = net,
			.node_saved =
				rfl_arena_array(arena, (size_t)net->nnodes, sizeof(*m->node_saved)),
			.workspace = rfl_arena_array(arena, 1, sizeof(*m->workspace)),
		};
	if (!m || !m->node_saved || !m->workspace) {
		rfl_arena_free(arena);
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
	}
	*m->workspace =
		(struct rfl_memory_workspace){ .options = &m->options, .net = net, .arena = arena };
	rc = prepare(m, err);
	if (rc == RFL_OK)
		*ret = m;
	else
		rfl_memory_free(m);
	return rc;
}

void rfl_memory_free(struct rfl_memory *m)
{
	if (!m)
		return;
	rfl_links_free(m->workspace->links);
	rfl_arena_free(m->workspace->arena);
}
