/*
 * memory.c - what a network takes in memory at a batch: the answers, made of the moments that the
 * walk left. See memory_impl.h.
 */
#include "complexity/count/memory.h"

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/count/memory_impl.h"
#include "complexity/count/optimizer.h"

const char *const rfl_update_names[] = { "foreach", "for-loop", "fused", NULL };
const char *const rfl_phase_names[] = { "forward", "backward", "step", NULL };
const char *const rfl_saved_class_names[] = {
	"activations", "clones", "indices", "masks", "statistics", "input", "loss", NULL,
};

/* --- what is there all the time --- */

/* Bytes of buffers: statistics, tables of constants, the places of rows that are taken from one,
 * the batch norm's counter. */
static bool buffer_bytes(const struct rfl_net *net, int64_t element, int64_t *ret)
{
	int64_t index = rfl_dtype_bytes(RFL_DTYPE_I64);

	if (!rfl_num_mul(rfl_net_buffer_count(net), element, ret))
		return false;
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct rfl_shape *shape = &node->shape;
		int64_t elements = 0, size = index, bytes;

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
	int64_t element = rfl_dtype_bytes(o->master_weights ? RFL_DTYPE_F32 : o->dtype), bytes = 0;
	struct rfl_memory_size *p = &w->persistent;
	bool overflow = false;

	if (!rfl_num_mul(rfl_net_param_count(m->net), element, &m->weights) ||
	    !buffer_bytes(m->net, element, &m->buffers) ||
	    !rfl_num_add(m->weights, m->buffers, &bytes))
		return false;
	for (int i = 0; i < w->nops; i++)
		if (rfl_memory__runs(w, i) &&
		    !rfl_num_add(m->weight_copies, w->extras[i].copies.fixed, &m->weight_copies))
			return false;
	if (o->training) {
		/* Five times the weights is the most that an update looks at. */
		if (!rfl_num_mul(w->links->trained, 5 * element, &m->gradients))
			return false;
		m->gradients = w->gradients = w->links->trained * element;
		m->state = rfl_optimizer_state_words(o->optimizer) * m->gradients;
		/* One set of labels, however many losses. */
		overflow |= !rfl_num_mul(rfl_shape_numel(&w->links->losses[0].node.shape),
					 rfl_dtype_bytes(RFL_DTYPE_I64), &w->labels.per_sample);
	}
	p->fixed = bytes;
	rfl_memory__add(p, (struct rfl_memory_size){ .fixed = m->state }, &overflow);
	rfl_memory__add(p, w->tensors[0].size, &overflow);
	rfl_memory__add(p, w->labels, &overflow);
	if (o->training)
		rfl_memory__add(&w->saved_class[RFL_SAVED_CLASS_INPUT], w->labels, &overflow);
	return !overflow;
}

/* --- at a batch --- */

static bool at(struct rfl_memory_size size, int64_t batch, int64_t *ret)
{
	return rfl_num_mul(size.per_sample, batch, ret) && rfl_num_add(*ret, size.fixed, ret);
}

static enum rfl_rc too_big(const struct rfl_memory *m, int node, int64_t batch, struct rfl_err *err)
{
	const char *name = node < 0 ? "" : m->net->nodes[node].name;

	return rfl_fail(err, RFL_EOVERFLOW, 0,
			"%s: %s: its memory at batch %lld does not fit 63 bits", m->net->model,
			node < 0 ? "update"
			: *name  ? name
				 : "top level",
			(long long)batch);
}

enum rfl_rc rfl_memory_at(struct rfl_memory *m, int64_t batch, struct rfl_err *err)
{
	const struct rfl_memory_workspace *w = m->workspace;
	bool fits = true;

	if (batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "%s: batch %lld is not 1 or more",
				m->net->model, (long long)batch);
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
	m->input = 0;
	m->saved = 0;
	fits &= at(w->tensors[0].size, batch, &m->input) &&
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

	/* At each moment fixed + per_sample * batch must fit. */
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

static enum rfl_rc make_arrays(struct rfl_memory_workspace *w, struct rfl_err *err)
{
	const struct rfl_net *net = w->links->net;
	size_t n;
	int **lists[] = { &w->read_ends, &w->kept_ends, &w->read_again_ends, &w->kept_again_ends };
	bool ok = true;

	w->nops = net->nnodes + w->links->nlosses;
	n = (size_t)w->nops;
	w->tensors = rfl_arena_array(w->arena, n, sizeof(*w->tensors));
	w->extras = rfl_arena_array(w->arena, n, sizeof(*w->extras));
	w->node_saved = rfl_arena_array(w->arena, n, sizeof(*w->node_saved));
	for (size_t i = 0; i < RFL_ARRAY_LEN(lists); i++)
		ok &= (*lists[i] = rfl_arena_array(w->arena, n, sizeof(**lists[i]))) != NULL;
	/* An operation is seen forward, again, backward, and where each input's gradients join. */
	w->max_moments = 3 * w->nops + 1;
	for (int i = 0; i < w->nops; i++)
		w->max_moments += rfl_memory__node(w, i)->ninputs;
	for (int p = 0; p < RFL_PHASE_COUNT; p++)
		ok &= (w->moments[p] = rfl_arena_array(w->arena, (size_t)w->max_moments,
						       sizeof(*w->moments[p]))) != NULL;
	if (!ok || !w->tensors || !w->extras || !w->node_saved)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
	return RFL_OK;
}

static enum rfl_rc prepare(struct rfl_memory *m, struct rfl_err *err)
{
	struct rfl_memory_workspace *w = m->workspace;
	enum rfl_rc rc = rfl_links_new(m->net, &m->options.count, &w->links, err);

	if (rc == RFL_OK)
		rc = make_arrays(w, err);
	if (rc == RFL_OK)
		rc = rfl_memory__tensors(w, &m->options, err);
	if (rc == RFL_OK && !fill_persistent(m))
		rc = rfl_fail(err, RFL_EOVERFLOW, 0,
			      "%s: its parameters and their state do not fit 63 bits",
			      m->net->model);
	if (rc == RFL_OK)
		rc = rfl_memory__walk(w, &m->options, err);
	return rc == RFL_OK ? rfl_memory_at(m, m->options.count.batch, err) : rc;
}

enum rfl_rc rfl_memory_new(const struct rfl_net *net, const struct rfl_memory_options *options,
			   struct rfl_memory **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_memory *m = arena ? rfl_arena_array(arena, 1, sizeof(*m)) : NULL;
	enum rfl_rc rc = RFL_ENOMEM;

	if (m) {
		*m = (struct rfl_memory){
			.options = *options,
			.nnodes = net->nnodes,
			.net = net,
			.node_saved =
				rfl_arena_array(arena, (size_t)net->nnodes, sizeof(*m->node_saved)),
			.workspace = rfl_arena_array(arena, 1, sizeof(*m->workspace)),
		};
	}
	if (!m || !m->node_saved || !m->workspace) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
		goto done;
	}
	m->workspace->arena = arena;
	rc = prepare(m, err);
	if (rc != RFL_OK) {
		rfl_links_free(m->workspace->links);
		goto done;
	}
	*ret = m;
	arena = NULL;
done:
	rfl_arena_free(arena);
	return rc;
}

void rfl_memory_free(struct rfl_memory *m)
{
	if (!m)
		return;
	rfl_links_free(m->workspace->links);
	rfl_arena_free(m->workspace->arena);
}
