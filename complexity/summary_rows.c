/*
 * summary_rows.c - gather what the operations of a network cost into rows.
 */
#include "complexity/summary.h"

#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"

enum { STEP_ROWS = 2 }; /* the loss and the update */

/* The label of the row that a node belongs to. Borrowed from the net, or made in the arena. */
static const char *row_name(const struct rfl_summary *s, const struct rfl_node *node,
			    enum rfl_by by, int depth, struct rfl_arena *arena)
{
	const char *end = node->name;

	if (by == RFL_BY_MODEL)
		return s->name;
	if (by == RFL_BY_KIND)
		return rfl_op_info_of(node->op)->name;
	if (!*node->name)
		return by == RFL_BY_LAYER ? rfl_op_info_of(node->op)->name : "(top)";
	if (by == RFL_BY_LAYER)
		return node->name;
	for (int part = 0; part < depth && *end; part++)
		end += strcspn(end + (part > 0), ".") + (size_t)(part > 0);
	if (!*end)
		return node->name;
	return rfl_arena_printf(arena, "%.*s", (int)(end - node->name), node->name);
}

static size_t find_row(const struct rfl_summary_rows *r, const char *name)
{
	for (size_t i = r->n; i-- > 0;)
		if (strcmp(r->rows[i].name, name) == 0)
			return i;
	return r->n;
}

static bool place_node(struct rfl_summary_rows *r, const struct rfl_summary *s, int index,
		       enum rfl_by by, int depth)
{
	const struct rfl_node *node = &s->net->nodes[index];
	const char *name = row_name(s, node, by, depth, r->arena);
	size_t at;

	if (!name)
		return false;
	at = by == RFL_BY_LAYER ? r->n : find_row(r, name);
	if (at == r->n) {
		struct rfl_summary_row *row = &r->rows[r->n++];

		row->name = name;
		row->kind = "";
		if (by == RFL_BY_LAYER) {
			row->kind = rfl_op_info_of(node->op)->name;
			(void)rfl_shape_text(&node->shape, row->output, sizeof(row->output));
		}
	}
	r->rows[at].params += rfl_node_param_count(s->net, node);
	r->row_of[index] = at;
	return true;
}

/* What belongs to a training step and to no node. A model's one row holds it too. */
static void place_step(struct rfl_summary_rows *r, const struct rfl_summary *s, enum rfl_by by)
{
	const char *const names[STEP_ROWS] = { rfl_op_info_of(RFL_OP_CROSS_ENTROPY)->name,
					       "optimizer" };
	const char *const kinds[STEP_ROWS] = { names[0],
					       rfl_optimizer_names[s->options.optimizer] };
	size_t *row_of = r->row_of + s->net->nnodes;

	for (int i = 0; i < STEP_ROWS; i++) {
		if (by == RFL_BY_MODEL) {
			row_of[i] = 0;
			continue;
		}
		row_of[i] = r->n;
		r->rows[r->n++] = (struct rfl_summary_row){
			.name = names[i],
			.kind = kinds[i],
			.step_only = true,
		};
	}
}

/* No more rows than these: a large network has thousands of operations, and one row by model. */
static size_t most_rows(const struct rfl_summary *s, enum rfl_by by)
{
	if (by == RFL_BY_MODEL)
		return 1;
	if (by == RFL_BY_KIND)
		return RFL_OP_COUNT + STEP_ROWS;
	return (size_t)s->net->nnodes + STEP_ROWS;
}

enum rfl_rc rfl_summary_rows_new(const struct rfl_summary *s, enum rfl_by by, int depth,
				 struct rfl_summary_rows **ret, struct rfl_err *err)
{
	size_t parts = (size_t)s->net->nnodes + STEP_ROWS;
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_summary_rows *r = arena ? rfl_arena_array(arena, 1, sizeof(*r)) : NULL;
	bool ok = r != NULL;

	if (ok) {
		*r = (struct rfl_summary_rows){
			.rows = rfl_arena_array(arena, most_rows(s, by), sizeof(*r->rows)),
			.row_of = rfl_arena_array(arena, parts, sizeof(*r->row_of)),
			.times = rfl_arena_array(arena, parts, sizeof(*r->times)),
			.total = { .name = "total", .kind = "" },
			.arena = arena,
		};
		ok = r->rows && r->row_of && r->times;
	}
	for (int i = 0; ok && i < s->net->nnodes; i++)
		ok = place_node(r, s, i, by, depth);
	if (!ok) {
		rfl_arena_free(arena);
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	}
	place_step(r, s, by);
	for (size_t i = 0; i < r->n; i++)
		r->total.params += r->rows[i].params;
	*ret = r;
	return RFL_OK;
}

void rfl_summary_rows_free(struct rfl_summary_rows *rows)
{
	if (rows)
		rfl_arena_free(rows->arena);
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
	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		sum->attained.limit_s[i] += work->attained.limit_s[i];
}

static void add_times(struct rfl_summary_rows *rows, const struct rfl_summary *s, bool training,
		      const struct rfl_summary_roof *roof)
{
	const struct rfl_count *count = training ? s->training : s->forward;
	size_t n = (size_t)count->nnodes + STEP_ROWS;

	memset(rows->times, 0, n * sizeof(*rows->times));
	roof->attain(roof, count, rows->times);
	for (size_t i = 0; i < n; i++) {
		struct rfl_summary_row *row = &rows->rows[rows->row_of[i]];
		struct rfl_summary_work *work = training ? &row->training : &row->forward;

		for (int k = 0; k < RFL_LIMIT_COUNT; k++)
			work->attained.limit_s[k] += rows->times[i].limit_s[k];
	}
}

static void clear(struct rfl_summary_row *row)
{
	static const struct rfl_summary_work nothing;

	row->forward = row->training = nothing;
	row->saved_bytes = 0;
}

static void sum_training(struct rfl_summary_rows *rows, const struct rfl_summary *s)
{
	int nnodes = s->net->nnodes;

	for (int i = 0; i < nnodes; i++) {
		struct rfl_summary_row *row = &rows->rows[rows->row_of[i]];

		add_passes(&row->training, &s->training->nodes[i], RFL_PASS_COUNT);
		if (s->training_memory)
			row->saved_bytes += s->training_memory->node_saved[i];
	}
	add_passes(&rows->rows[rows->row_of[nnodes]].training, &s->training->loss, RFL_PASS_COUNT);
	add_update(&rows->rows[rows->row_of[nnodes + 1]].training, s->training);
}

void rfl_summary_rows_update(struct rfl_summary_rows *rows, const struct rfl_summary *s,
			     const struct rfl_summary_roof *roof)
{
	clear(&rows->total);
	for (size_t i = 0; i < rows->n; i++)
		clear(&rows->rows[i]);
	for (int i = 0; s->forward && i < s->net->nnodes; i++)
		add_passes(&rows->rows[rows->row_of[i]].forward, &s->forward->nodes[i], 1);
	if (s->training)
		sum_training(rows, s);
	if (roof && s->forward)
		add_times(rows, s, false, roof);
	if (roof && s->training)
		add_times(rows, s, true, roof);
	for (size_t i = 0; i < rows->n; i++) {
		add_work(&rows->total.forward, &rows->rows[i].forward);
		add_work(&rows->total.training, &rows->rows[i].training);
		rows->total.saved_bytes += rows->rows[i].saved_bytes;
	}
}
