/*
 * summary.c - count a model at several batches, and gather what its operations cost into rows.
 */
#include "complexity/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"

const char *const rfl_by_names[] = { "model", "module", "layer", "kind", NULL };
const char *const rfl_precision_words[] = { "fp32", "tf32", "amp", "bf16", "fp16", NULL };
const char *const rfl_summary_convention =
	"A MAC is one multiply-add of a convolution or matrix product, taps in the padding "
	"included, "
	"bias not; FLOPs = 2 x MACs. Elementwise operations are counted apart.";

enum rfl_rc rfl_precision_storage(const char *precision, enum rfl_dtype *dtype,
				  bool *master_weights, struct rfl_err *err)
{
	/* tf32 is how products are made; what is stored is F32 */
	static const struct {
		enum rfl_dtype dtype;
		bool master;
	} rows[] = {
		{ RFL_DTYPE_F32, false },  { RFL_DTYPE_F32, false }, { RFL_DTYPE_F16, true },
		{ RFL_DTYPE_BF16, false }, { RFL_DTYPE_F16, false },
	};
	_Static_assert(RFL_ARRAY_LEN(rows) + 1 == RFL_ARRAY_LEN(rfl_precision_words),
		       "a row for each precision");

	for (size_t i = 0; rfl_precision_words[i]; i++) {
		if (strcmp(rfl_precision_words[i], precision) != 0)
			continue;
		*dtype = rows[i].dtype;
		*master_weights = rows[i].master;
		return RFL_OK;
	}
	return rfl_fail(err, RFL_EINVAL, 0, "no precision '%s': fp32, tf32, amp, bf16 or fp16",
			precision);
}

/* Count one batch both ways. */
static enum rfl_rc count_batch(const struct rfl_net *net, struct rfl_count_options options,
			       int64_t batch, struct rfl_count **forward,
			       struct rfl_count **training, struct rfl_err *err)
{
	enum rfl_rc rc;

	options.batch = batch;
	options.training = false;
	rc = rfl_count_net(net, &options, forward, err);
	if (rc != RFL_OK)
		return rc;
	options.training = true;
	return rfl_count_net(net, &options, training, err);
}

static enum rfl_rc fill(struct rfl_summary *s, const char *model,
			const struct rfl_summary_options *options, struct rfl_err *err)
{
	struct rfl_count_options count = {
		.input_grad = options->input_grad,
		.optimizer = options->optimizer,
	};
	enum rfl_rc rc = rfl_zoo_find(model, &s->model, err);

	if (rc == RFL_OK)
		rc = rfl_precision_storage(options->precision, &count.dtype, &count.master_weights,
					   err);
	if (rc == RFL_OK)
		rc = rfl_zoo_build(model, &options->sizes, &s->net, err);
	if (rc == RFL_OK)
		rc = count_batch(s->net, count, 1, &s->one_forward, &s->one_training, err);
	for (size_t i = 0; rc == RFL_OK && i < s->nbatches; i++)
		rc = count_batch(s->net, count, options->batches[i], &s->forward[i],
				 &s->training[i], err);
	return rc;
}

enum rfl_rc rfl_summary_new(const char *model, const struct rfl_summary_options *options,
			    struct rfl_summary **ret, struct rfl_err *err)
{
	struct rfl_summary *s = calloc(1, sizeof(*s));
	size_t n = options->nbatches;
	enum rfl_rc rc;

	if (s) {
		s->nbatches = n;
		s->forward = rfl_alloc_array(n ? n : 1, sizeof(struct rfl_count *));
		s->training = rfl_alloc_array(n ? n : 1, sizeof(struct rfl_count *));
	}
	if (!s || !s->forward || !s->training)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", model);
	else
		rc = fill(s, model, options, err);
	if (rc == RFL_OK)
		*ret = s;
	else
		rfl_summary_free(s);
	return rc;
}

void rfl_summary_free(struct rfl_summary *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nbatches; i++) {
		if (s->forward)
			rfl_count_free(s->forward[i]);
		if (s->training)
			rfl_count_free(s->training[i]);
	}
	free(s->forward);
	free(s->training);
	rfl_count_free(s->one_forward);
	rfl_count_free(s->one_training);
	rfl_net_free(s->net);
	free(s);
}

/* The counter has checked that the sums over all nodes and passes fit. */
static void add_passes(struct rfl_summary_work *work, const struct rfl_cost *cost, int passes)
{
	for (int pass = 0; pass < passes; pass++) {
		work->macs += cost->macs[pass];
		work->elementwise += rfl_elementwise_sum(&cost->elementwise[pass]);
		for (int level = 0; level < RFL_FUSION_COUNT; level++)
			work->bytes[level] += cost->traffic[level][pass].read_bytes +
					      cost->traffic[level][pass].write_bytes;
	}
	work->elementwise += cost->bias_adds;
}

/* The label of the row that a node belongs to. Borrowed from the net, or copied into its arena. */
static const char *row_name(const struct rfl_summary *s, const struct rfl_node *node,
			    enum rfl_by by, int depth)
{
	const char *end = node->name;

	if (by == RFL_BY_MODEL)
		return s->model->name;
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
	return rfl_arena_printf(s->net->arena, "%.*s", (int)(end - node->name), node->name);
}

static struct rfl_summary_row *find_row(struct rfl_summary_row *rows, size_t n, const char *name)
{
	for (size_t i = n; i-- > 0;)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static bool add_node(const struct rfl_summary *s, size_t batch_index, int node_index,
		     enum rfl_by by, int depth, struct rfl_summary_row *rows, size_t *nrows)
{
	const struct rfl_node *node = &s->net->nodes[node_index];
	const char *name = row_name(s, node, by, depth);
	struct rfl_summary_row *row;

	if (!name)
		return false;
	row = by == RFL_BY_LAYER ? NULL : find_row(rows, *nrows, name);
	if (!row) {
		row = &rows[(*nrows)++];
		row->name = name;
		row->kind = "";
		if (by == RFL_BY_LAYER) {
			row->kind = rfl_op_info_of(node->op)->name;
			(void)rfl_shape_text(&node->shape, row->output, sizeof(row->output));
		}
	}
	row->params += rfl_node_param_count(s->net, node);
	add_passes(&row->forward, &s->forward[batch_index]->nodes[node_index], 1);
	add_passes(&row->training, &s->training[batch_index]->nodes[node_index], RFL_PASS_COUNT);
	return true;
}

/* What belongs to a training step and to no node: the loss and the update. */
static void add_step_rows(const struct rfl_count *count, struct rfl_summary_row *rows,
			  size_t *nrows)
{
	struct rfl_summary_row *loss = &rows[(*nrows)++];
	struct rfl_summary_row *update = &rows[(*nrows)++];
	int64_t moved = count->optimizer.read_bytes + count->optimizer.write_bytes;

	loss->step_only = update->step_only = true;
	loss->name = loss->kind = rfl_op_info_of(RFL_OP_CROSS_ENTROPY)->name;
	add_passes(&loss->training, &count->loss, RFL_PASS_COUNT);
	update->name = "optimizer";
	update->kind = rfl_optimizer_names[count->options.optimizer];
	update->training = (struct rfl_summary_work){
		.elementwise = rfl_elementwise_sum(&count->optimizer_flops),
		.bytes = {
			[RFL_FUSION_UNFUSED] = moved,
			[RFL_FUSION_FUSED] = moved,
			[RFL_FUSION_COMPULSORY] =
				rfl_count_bytes(count, RFL_FUSION_COMPULSORY, RFL_SCOPE_STEP) -
				rfl_count_bytes(count, RFL_FUSION_COMPULSORY,
						RFL_SCOPE_FORWARD_BACKWARD),
		},
	};
}

/* One row for the model holds the loss and the update too. */
static void fold_step_rows(struct rfl_summary_row *rows, size_t *nrows)
{
	while (*nrows > 1) {
		const struct rfl_summary_work *from = &rows[--*nrows].training;
		struct rfl_summary_work *to = &rows[0].training;

		to->macs += from->macs;
		to->elementwise += from->elementwise;
		for (int level = 0; level < RFL_FUSION_COUNT; level++)
			to->bytes[level] += from->bytes[level];
	}
}

enum rfl_rc rfl_summary_rows(const struct rfl_summary *s, size_t batch_index, enum rfl_by by,
			     int depth, struct rfl_summary_row **rows, size_t *nrows,
			     struct rfl_err *err)
{
	struct rfl_summary_row *r = rfl_alloc_array((size_t)s->net->nnodes + 2, sizeof(*r));
	size_t n = 0;

	if (!r)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->model->name);
	for (int i = 0; i < s->net->nnodes; i++) {
		if (!add_node(s, batch_index, i, by, depth, r, &n)) {
			free(r);
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->model->name);
		}
	}
	add_step_rows(s->training[batch_index], r, &n);
	if (by == RFL_BY_MODEL)
		fold_step_rows(r, &n);
	*rows = r;
	*nrows = n;
	return RFL_OK;
}
