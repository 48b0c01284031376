/*
 * summary_table.c - the tables that people read, and the list of layers of one model.
 */
#include "complexity/summary.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/op.h"

enum { MAX_COLUMNS = 20, ALL_LEVELS = -1 };

/* Columns are gathered first and bound to a table once. */
struct columns {
	size_t n;
	struct rfl_column items[MAX_COLUMNS];
};

static void column(struct columns *c, const char *key, const char *title, enum rfl_column_kind kind,
		   double scale)
{
	assert(c->n < MAX_COLUMNS);
	c->items[c->n++] = (struct rfl_column){
		.key = key,
		.title = title,
		.kind = kind,
		.digits = 4,
		.scale = scale,
	};
}

static bool shown(const struct rfl_summary_options *options, int level)
{
	return options->fusion == ALL_LEVELS || options->fusion == level;
}

/* People see a batch's bytes and intensity beside the counts per sample; its MACs, FLOPs and
 * elementwise operations are those times the batch, and are left to the formats for machines. */
static bool batch_work(const struct rfl_summary_options *options, enum rfl_format format)
{
	return options->by != RFL_BY_MODEL || format == RFL_FORMAT_CSV || format == RFL_FORMAT_JSON;
}

static void level_columns(struct columns *c, const struct rfl_summary_options *options)
{
	static const struct {
		const char *bytes, *bytes_title, *ai, *ai_title;
	} levels[RFL_FUSION_COUNT] = {
		{ "unfused_bytes", "MB unfused", "unfused_ai", "F/B unfused" },
		{ "fused_bytes", "MB fused", "fused_ai", "F/B fused" },
		{ "compulsory_bytes", "MB compulsory", "compulsory_ai", "F/B compulsory" },
	};

	for (int i = 0; i < RFL_FUSION_COUNT; i++)
		if (shown(options, i))
			column(c, levels[i].bytes, levels[i].bytes_title, RFL_COLUMN_INT, 1e6);
	for (int i = 0; i < RFL_FUSION_COUNT; i++)
		if (shown(options, i))
			column(c, levels[i].ai, levels[i].ai_title, RFL_COLUMN_REAL, 1);
}

static struct columns columns_of(const struct rfl_summary_options *options, enum rfl_format format)
{
	struct columns c = { 0 };

	column(&c, "model", "Model", RFL_COLUMN_TEXT, 1);
	if (options->by != RFL_BY_MODEL)
		column(&c, "name", "Name", RFL_COLUMN_TEXT, 1);
	if (options->by == RFL_BY_LAYER) {
		column(&c, "kind", "Kind", RFL_COLUMN_TEXT, 1);
		column(&c, "output", "Output", RFL_COLUMN_TEXT, 1);
	}
	column(&c, "params", "Params", RFL_COLUMN_INT, 1);
	if (options->by == RFL_BY_MODEL) {
		column(&c, "forward_macs", "GMACs", RFL_COLUMN_INT, 1e9);
		column(&c, "forward_flops", "GFLOPs", RFL_COLUMN_INT, 1e9);
		column(&c, "training_flops", "Train GFLOPs", RFL_COLUMN_INT, 1e9);
	}
	column(&c, "batch", "Batch", RFL_COLUMN_INT, 1);
	if (batch_work(options, format)) {
		column(&c, "macs", "GMACs", RFL_COLUMN_INT, 1e9);
		column(&c, "flops", "GFLOPs", RFL_COLUMN_INT, 1e9);
		column(&c, "elementwise", "G elementwise", RFL_COLUMN_INT, 1e9);
	}
	level_columns(&c, options);
	return c;
}

static void add_levels(struct rfl_table *t, const struct rfl_summary_work *w,
		       const struct rfl_summary_options *options)
{
	for (int level = 0; level < RFL_FUSION_COUNT; level++)
		if (shown(options, level))
			rfl_table_int(t, w->bytes[level]);
	for (int level = 0; level < RFL_FUSION_COUNT; level++) {
		if (!shown(options, level))
			continue;
		if (w->bytes[level]) /* nothing moves: no intensity */
			rfl_table_real(t, 2.0 * (double)w->macs / (double)w->bytes[level]);
		else
			rfl_table_null(t);
	}
}

static const struct rfl_summary_work *work_of(const struct rfl_summary_row *row,
					      const struct rfl_summary_options *options)
{
	return options->train ? &row->training : &row->forward;
}

static void add_row(struct rfl_table *t, const struct rfl_summary *s, size_t batch_index,
		    const struct rfl_summary_row *row, const struct rfl_summary_options *options,
		    enum rfl_format format)
{
	const struct rfl_summary_work *w = work_of(row, options);

	rfl_table_text(t, s->model->name);
	if (options->by != RFL_BY_MODEL)
		rfl_table_text(t, row->name);
	if (options->by == RFL_BY_LAYER) {
		rfl_table_text(t, row->kind);
		rfl_table_text(t, row->output);
	}
	rfl_table_int(t, row->params);
	if (options->by == RFL_BY_MODEL) {
		rfl_table_int(t, rfl_count_forward_flops(s->one_forward) / 2);
		rfl_table_int(t, rfl_count_forward_flops(s->one_forward));
		rfl_table_int(t, rfl_count_training_flops(s->one_training));
	}
	rfl_table_int(t, s->forward[batch_index]->options.batch);
	if (batch_work(options, format)) {
		rfl_table_int(t, w->macs);
		rfl_table_int(t, 2 * w->macs);
		rfl_table_int(t, w->elementwise);
	}
	add_levels(t, w, options);
}

static void notes(struct rfl_table *t, const struct rfl_summary_options *options)
{
	const char *dgrad = options->input_grad ? "a dgrad" : "no dgrad";

	rfl_table_note(t, "%s", rfl_summary_convention);
	if (options->by == RFL_BY_MODEL)
		rfl_table_note(t,
			       "GMACs and GFLOPs are of one sample; training is forward + dgrad + "
			       "wgrad, and the first layer has %s.",
			       dgrad);
	if (options->train)
		rfl_table_note(t,
			       "%s of one training step in %s: forward, loss, both gradients, %s "
			       "update; the first layer has %s.",
			       options->by == RFL_BY_MODEL ? "Bytes" : "Work and bytes",
			       options->precision, rfl_optimizer_names[options->optimizer], dgrad);
	else
		rfl_table_note(t, "%s of one inference of a batch in %s.",
			       options->by == RFL_BY_MODEL ? "Bytes" : "Work and bytes",
			       options->precision);
	if (options->top && options->by != RFL_BY_MODEL)
		rfl_table_note(t, "The %zu rows with the most MACs of each model and batch.",
			       options->top);
	rfl_table_note(t, "F/B: FLOPs per byte.");
}

/* A row and its place before sorting: rows that cost the same stay in order. */
struct place {
	const struct rfl_summary_row *row;
	int64_t macs, bytes;
	size_t index;
};

static int by_cost(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->macs != y->macs)
		return x->macs > y->macs ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* The rows of one model at one batch, all in order or the costliest first. */
static enum rfl_rc add_rows(struct rfl_table *t, const struct rfl_summary *s, size_t batch_index,
			    const struct rfl_summary_options *options, enum rfl_format format,
			    struct rfl_err *err)
{
	struct rfl_summary_row *rows = NULL;
	struct place *places = NULL;
	size_t n = 0, kept = 0;
	enum rfl_rc rc =
		rfl_summary_rows(s, batch_index, options->by, options->depth, &rows, &n, err);

	if (rc != RFL_OK)
		return rc;
	places = rfl_alloc_array(n, sizeof(*places));
	if (!places) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->model->name);
		goto done;
	}
	for (size_t i = 0; i < n; i++) {
		const struct rfl_summary_work *w = work_of(&rows[i], options);

		if (rows[i].step_only && !options->train)
			continue;
		places[kept] = (struct place){ &rows[i], w->macs, w->bytes[0], kept };
		kept++;
	}
	if (options->top) {
		qsort(places, kept, sizeof(*places), by_cost);
		kept = kept < options->top ? kept : options->top;
	}
	for (size_t i = 0; i < kept; i++)
		add_row(t, s, batch_index, places[i].row, options, format);
done:
	free(places);
	free(rows);
	return rc;
}

enum rfl_rc rfl_summary_table(struct rfl_summary *const *summaries, size_t n,
			      const struct rfl_summary_options *options, enum rfl_format format,
			      struct rfl_buf *out, struct rfl_err *err)
{
	struct columns columns = columns_of(options, format);
	struct rfl_table *t = rfl_table_new(columns.items, columns.n);
	enum rfl_rc rc = RFL_OK;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t m = 0; m < n; m++)
		for (size_t i = 0; i < summaries[m]->nbatches && rc == RFL_OK; i++)
			rc = add_rows(t, summaries[m], i, options, format, err);
	notes(t, options);
	if (rc == RFL_OK)
		rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}

static void text_rows(struct rfl_table *t, const struct rfl_summary *s)
{
	const struct rfl_net *net = s->net;
	char shape[96];

	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct rfl_op_info *op = rfl_op_info_of(node->op);
		int64_t macs = s->one_forward->nodes[i].macs[RFL_PASS_FORWARD];

		rfl_table_text(t, *node->name ? node->name : op->name);
		rfl_table_text(t, op->name);
		rfl_table_text(t, rfl_shape_text(&node->shape, shape, sizeof(shape)));
		rfl_table_int(t, rfl_node_param_count(net, node));
		rfl_table_int(t, macs);
		rfl_table_int(t, 2 * macs);
	}
	rfl_table_text(t, "total");
	rfl_table_text(t, "");
	rfl_table_text(t, "");
	rfl_table_int(t, s->one_forward->params);
	rfl_table_int(t, rfl_count_forward_flops(s->one_forward) / 2);
	rfl_table_int(t, rfl_count_forward_flops(s->one_forward));
}

static void text_head(const struct rfl_summary *s, struct rfl_buf *out)
{
	const struct rfl_cost *forward = &s->one_forward->total;
	int64_t training = rfl_count_training_flops(s->one_training);
	char shape[96], params[RFL_NUM_MAX], buffers[RFL_NUM_MAX], macs[RFL_NUM_MAX],
		flops[RFL_NUM_MAX], real[RFL_NUM_MAX], train_macs[RFL_NUM_MAX],
		train_flops[RFL_NUM_MAX];

	rfl_buf_printf(out, "%s: %s\n\n", s->model->title, s->model->summary);
	rfl_buf_printf(out, "input              %s per sample, %lld classes\n",
		       rfl_shape_text(&s->net->nodes[0].shape, shape, sizeof(shape)),
		       (long long)s->net->classes);
	rfl_buf_printf(out, "parameters         %s, and %s in buffers\n",
		       rfl_num_grouped(s->one_forward->params, params),
		       rfl_num_grouped(s->one_forward->buffers, buffers));
	rfl_buf_printf(out, "forward            %s MACs, %s FLOPs per sample\n",
		       rfl_num_grouped(forward->macs[RFL_PASS_FORWARD], macs),
		       rfl_num_grouped(rfl_count_forward_flops(s->one_forward), flops));
	rfl_buf_printf(out, "without padding    %s MACs\n",
		       rfl_num_grouped(forward->macs_excl_padding, real));
	rfl_buf_printf(out, "training           %s MACs, %s FLOPs per sample\n\n",
		       rfl_num_grouped(training / 2, train_macs),
		       rfl_num_grouped(training, train_flops));
}

enum rfl_rc rfl_summary_text(const struct rfl_summary *s, const struct rfl_summary_options *options,
			     struct rfl_buf *out, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		{ .key = "name", .title = "Layer", .kind = RFL_COLUMN_TEXT },
		{ .key = "kind", .title = "Kind", .kind = RFL_COLUMN_TEXT },
		{ .key = "output", .title = "Output shape", .kind = RFL_COLUMN_TEXT },
		{ .key = "params", .title = "Params", .kind = RFL_COLUMN_INT },
		{ .key = "macs", .title = "MACs", .kind = RFL_COLUMN_INT },
		{ .key = "flops", .title = "FLOPs", .kind = RFL_COLUMN_INT },
	};
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	text_head(s, out);
	text_rows(t, s);
	rfl_table_note(t, "%s", rfl_summary_convention);
	rfl_table_note(t,
		       "Shapes and counts are per sample; training is forward + dgrad + wgrad, and "
		       "the first layer has %s dgrad.",
		       options->input_grad ? "a" : "no");
	rc = rfl_table_render(t, RFL_FORMAT_TABLE, out, err);
	rfl_table_free(t);
	return rc == RFL_OK ? rfl_buf_check(out, s->model->name, err) : rc;
}
