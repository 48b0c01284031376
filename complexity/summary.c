/*
 * summary.c - build a network, count it, gather what its operations cost into rows, and move it
 * from batch to batch. What is made for the counting is given back between one table and the next,
 * so that many networks take little memory.
 */
#include "complexity/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"

enum { STEP_ROWS = 2 }; /* the loss and the update */

const char *const rfl_summary_by_names[] = { "model", "module", "layer", "kind", NULL };

/* --- rows ------------------------------------------------------------------------------------ */

/* The label of the row that a node belongs to. Borrowed from the net, or made in the arena. */
static const char *row_name(const struct rfl_summary *s, const struct rfl_node *node,
			    struct rfl_arena *arena)
{
	const enum rfl_summary_by by = s->options.by;
	const char *end = node->name;

	if (by == RFL_SUMMARY_BY_MODEL)
		return s->name;
	if (by == RFL_SUMMARY_BY_KIND)
		return rfl_op_info_of(node->op)->name;
	if (!*node->name)
		return by == RFL_SUMMARY_BY_LAYER ? rfl_op_info_of(node->op)->name : "(top)";
	if (by == RFL_SUMMARY_BY_LAYER)
		return node->name;
	for (int part = 0; part < s->options.depth && *end; part++)
		end += strcspn(end + (part > 0), ".") + (size_t)(part > 0);
	if (!*end)
		return node->name;
	return rfl_arena_printf(arena, "%.*s", (int)(end - node->name), node->name);
}

static bool place_node(struct rfl_summary_rows *r, const struct rfl_summary *s, int index)
{
	const struct rfl_node *node = &s->net->nodes[index];
	const bool layers = s->options.by == RFL_SUMMARY_BY_LAYER;
	const char *name = row_name(s, node, r->arena);
	size_t at = r->n;

	if (!name)
		return false;
	for (size_t i = r->n; !layers && at == r->n && i-- > 0;)
		if (strcmp(r->rows[i].name, name) == 0)
			at = i;
	if (at == r->n) {
		struct rfl_summary_row *row = &r->rows[r->n++];

		row->name = name;
		row->kind = layers ? rfl_op_info_of(node->op)->name : "";
		if (layers)
			(void)rfl_shape_text(&node->shape, row->output, sizeof(row->output));
	}
	r->rows[at].params += rfl_node_param_count(s->net, node);
	r->row_of[index] = at;
	return true;
}

static enum rfl_rc make_rows(struct rfl_summary *s, struct rfl_err *err)
{
	const bool one_row = s->options.by == RFL_SUMMARY_BY_MODEL;
	const char *const names[STEP_ROWS] = { rfl_op_info_of(RFL_OP_CROSS_ENTROPY)->name,
					       "optimizer" };
	const char *const kinds[STEP_ROWS] = { names[0],
					       rfl_optimizer_names[s->options.optimizer] };
	const size_t parts = (size_t)s->net->nnodes + STEP_ROWS;
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_summary_rows *r = arena ? rfl_arena_array(arena, 1, sizeof(*r)) : NULL;
	bool ok = r != NULL;

	if (ok) {
		*r = (struct rfl_summary_rows){
			.rows = rfl_arena_array(arena, one_row ? 1 : parts, sizeof(*r->rows)),
			.row_of = rfl_arena_array(arena, parts, sizeof(*r->row_of)),
			.times = rfl_arena_array(arena, parts, sizeof(*r->times)),
			.total = { .name = "total", .kind = "" },
			.arena = arena,
		};
		ok = r->rows && r->row_of && r->times;
	}
	for (int i = 0; ok && i < s->net->nnodes; i++)
		ok = place_node(r, s, i);
	if (!ok) {
		rfl_arena_free(arena);
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	}
	for (int i = 0; i < STEP_ROWS && !one_row; i++) { /* a model's one row holds them too */
		r->row_of[s->net->nnodes + i] = r->n;
		r->rows[r->n++] = (struct rfl_summary_row){ .name = names[i],
							    .kind = kinds[i],
							    .step_only = true };
	}
	for (size_t i = 0; i < r->n; i++)
		r->total.params += r->rows[i].params;
	s->rows = r;
	return RFL_OK;
}

/* The counter has checked that the sums over all nodes and passes fit. */
static void add_passes(struct rfl_summary_work *work, const struct rfl_cost *cost, int passes)
{
	for (int pass = 0; pass < passes; pass++) {
		work->macs += cost->macs[pass];
		work->pass_macs[pass] += cost->macs[pass];
		work->elementwise += rfl_elementwise_sum(&cost->elementwise[pass]);
		for (int level = 0; level < RFL_FUSION_COUNT; level++)
			work->bytes[level] += cost->traffic[level][pass].read_bytes +
					      cost->traffic[level][pass].write_bytes;
	}
	work->elementwise += cost->bias_adds;
}

static void add_update(struct rfl_summary_work *work, const struct rfl_count *count)
{
	int64_t moved = count->optimizer.read_bytes + count->optimizer.write_bytes;

	work->elementwise += rfl_elementwise_sum(&count->optimizer_flops);
	work->bytes[RFL_FUSION_UNFUSED] += moved;
	work->bytes[RFL_FUSION_FUSED] += moved;
	work->bytes[RFL_FUSION_COMPULSORY] +=
		rfl_count_bytes(count, RFL_FUSION_COMPULSORY, RFL_SCOPE_STEP) -
		rfl_count_bytes(count, RFL_FUSION_COMPULSORY, RFL_SCOPE_FORWARD_BACKWARD);
}

static void add_work(struct rfl_summary_work *sum, const struct rfl_summary_work *work)
{
	sum->macs += work->macs;
	sum->elementwise += work->elementwise;
	for (int i = 0; i < RFL_FUSION_COUNT; i++)
		sum->bytes[i] += work->bytes[i];
	for (int i = 0; i < RFL_PASS_COUNT; i++)
		sum->pass_macs[i] += work->pass_macs[i];
	rfl_attained_add(&sum->attained, &work->attained);
}

/* The rows of an inference, or of a training step. */
static void sum_work(struct rfl_summary *s, bool training)
{
	const struct rfl_count *count = s->count[training];
	const struct rfl_attained_roof *roof = s->options.roof;
	struct rfl_summary_rows *r = s->rows;
	const size_t *row_of = r->row_of;
	const size_t nnodes = (size_t)s->net->nnodes;
	const int passes = training ? RFL_PASS_COUNT : 1;

	for (size_t i = 0; i < nnodes; i++)
		add_passes(&r->rows[row_of[i]].work[training], &count->nodes[i], passes);
	if (training) {
		add_passes(&r->rows[row_of[nnodes]].work[training], &count->loss, passes);
		add_update(&r->rows[row_of[nnodes + 1]].work[training], count);
	}
	if (!roof)
		return;
	memset(r->times, 0, (nnodes + STEP_ROWS) * sizeof(*r->times));
	roof->attain(roof, count, r->times);
	for (size_t i = 0; i < nnodes + STEP_ROWS; i++)
		rfl_attained_add(&r->rows[row_of[i]].work[training].attained, &r->times[i]);
}

void rfl_summary_sum(struct rfl_summary *s)
{
	struct rfl_summary_rows *r = s->rows;
	struct rfl_summary_row *total = &r->total;

	memset(total->work, 0, sizeof(total->work));
	total->saved_bytes = 0;
	for (size_t i = 0; i < r->n; i++) {
		memset(r->rows[i].work, 0, sizeof(r->rows[i].work));
		r->rows[i].saved_bytes = 0;
	}
	for (int training = 0; training < 2; training++)
		if (s->count[training])
			sum_work(s, training);
	for (int i = 0; s->memory[1] && i < s->net->nnodes; i++)
		r->rows[r->row_of[i]].saved_bytes += s->memory[1]->node_saved[i];
	for (size_t i = 0; i < r->n; i++) {
		for (int training = 0; training < 2; training++)
			add_work(&total->work[training], &r->rows[i].work[training]);
		total->saved_bytes += r->rows[i].saved_bytes;
	}
}

/* --- counts ---------------------------------------------------------------------------------- */

/* Make what is not there, all of it at batch 1. The first time both are counted: the facts of one
 * sample are of both. */
static enum rfl_rc wake(struct rfl_summary *s, struct rfl_err *err)
{
	const struct rfl_summary_options *o = &s->options;
	struct rfl_memory_options memory = {
		.count = { .batch = 1,
			   .input_grad = o->input_grad,
			   .optimizer = o->optimizer,
			   .causal_half = o->causal_half,
			   .auxiliary = o->auxiliary,
			   .checkpoint = o->checkpoint,
			   .frozen = o->frozen,
			   .nfrozen = o->nfrozen },
		.device = o->device,
		.update = o->update,
		.accumulate = 1,
	};
	enum rfl_rc rc = rfl_precision_storage(o->precision, &memory.count.dtype,
					       &memory.count.master_weights, err);

	for (int training = 0; training < 2 && rc == RFL_OK; training++) {
		memory.count.training = training;
		if (!s->count[training] && (!s->counted || !o->unwanted[training]))
			rc = rfl_count_net(s->net, &memory.count, &s->count[training], err);
	}
	for (int training = 0; training < 2 && rc == RFL_OK && !s->counted; training++) {
		struct rfl_count *one = &s->one[training];

		*one = *s->count[training];
		one->nodes = NULL;
		one->links = NULL;
		if (!o->unwanted[training])
			continue;
		rfl_count_free(s->count[training]);
		s->count[training] = NULL;
	}
	s->counted = s->counted || rc == RFL_OK;
	for (int training = 1; training >= 0 && rc == RFL_OK; training--) {
		/* what only a training step has would be refused, or has no meaning, without one */
		memory.count.training = training;
		memory.count.checkpoint = training ? o->checkpoint : 0;
		memory.accumulate = training ? o->accumulate : 1;
		if (o->memory && !o->unwanted[training] && !s->memory[training])
			rc = rfl_memory_new(s->net, &memory, &s->memory[training], err);
	}
	return rc == RFL_OK && !s->rows ? make_rows(s, err) : rc;
}

enum rfl_rc rfl_summary_at(struct rfl_summary *s, int64_t batch, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (s->batch == batch)
		return RFL_OK;
	s->batch = 0; /* until all of it is there */
	rc = wake(s, err);
	for (int training = 0; training < 2 && rc == RFL_OK; training++)
		if (s->count[training] && s->count[training]->options.batch != batch)
			rc = rfl_count_at(s->count[training], batch, err);
	for (int training = 0; training < 2 && rc == RFL_OK; training++)
		if (s->memory[training] && s->memory[training]->options.count.batch != batch)
			rc = rfl_memory_at(s->memory[training], batch, err);
	if (rc == RFL_OK)
		s->batch = batch;
	else
		rfl_summary_rest(s); /* what has failed means nothing */
	return rc;
}

enum rfl_rc rfl_summary_want_both(struct rfl_summary *s, struct rfl_err *err)
{
	if (s->options.unwanted[0] || s->options.unwanted[1])
		s->batch = 0;
	s->options.unwanted[0] = s->options.unwanted[1] = false;
	return s->batch ? RFL_OK : rfl_summary_at(s, 1, err);
}

void rfl_summary_rest(struct rfl_summary *s)
{
	if (s->rows)
		rfl_arena_free(s->rows->arena);
	s->rows = NULL;
	for (int training = 0; training < 2; training++) {
		rfl_count_free(s->count[training]);
		rfl_memory_free(s->memory[training]);
		s->count[training] = NULL;
		s->memory[training] = NULL;
	}
	s->batch = 0;
}

enum rfl_rc rfl_summary_new(const char *model, const struct rfl_summary_options *options,
			    struct rfl_summary **ret, struct rfl_err *err)
{
	const struct rfl_zoo_model *found = NULL;
	struct rfl_net *net = NULL;
	enum rfl_rc rc = rfl_zoo_find(model, &found, err);

	if (rc == RFL_OK)
		rc = rfl_zoo_build(found->name, &options->sizes, &net, err);
	if (rc == RFL_OK)
		rc = rfl_summary_of_net(net, options, ret, err);
	if (rc != RFL_OK)
		return rc;
	(*ret)->model = found;
	(*ret)->name = found->name;
	(*ret)->title = found->title;
	(*ret)->about = found->summary;
	return RFL_OK;
}

enum rfl_rc rfl_summary_of_net(struct rfl_net *take_net, const struct rfl_summary_options *options,
			       struct rfl_summary **ret, struct rfl_err *err)
{
	struct rfl_summary *s = calloc(1, sizeof(*s));

	if (!s) {
		rfl_net_free(take_net);
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	}
	s->options = *options;
	s->net = take_net;
	s->name = take_net->model;
	s->title = take_net->title ? take_net->title : take_net->model;
	s->about = "from a file";
	if (take_net->nodes[0].dtype == RFL_DTYPE_I64)
		s->context_length = take_net->nodes[0].shape.dim[0];
	*ret = s;
	return RFL_OK;
}

void rfl_summary_free(struct rfl_summary *s)
{
	if (!s)
		return;
	rfl_summary_rest(s);
	rfl_net_free(s->net);
	free(s->fit);
	free(s);
}
