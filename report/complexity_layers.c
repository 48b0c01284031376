/*
 * complexity_layers.c - the list of layers of one network, in the form that torchsummary made
 * known, and what other counters say of the networks.
 */
#include "report/complexity_impl.h"

#include <math.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/op.h"

/* --- layers ---------------------------------------------------------------------------------- */

struct layer {
	const char *name, *type, *output;
	int64_t params, macs, flops;
};

static void put_counts(const struct rfl_summary *s, struct rfl_buf *out)
{
	const struct rfl_count *forward = s->count[0];
	const struct {
		const char *what;
		int64_t value;
	} lines[] = {
		{ "Total params", s->one[0].params },
		{ "Trainable params", s->one[1].trained },
		{ "Non-trainable params", s->one[0].params - s->one[1].trained },
		{ "Buffers", s->one[0].buffers },
		{ "Forward MACs", rfl_count_forward_flops(forward) / 2 },
		{ "Forward FLOPs", rfl_count_forward_flops(forward) },
		{ "Forward MACs, unpadded", forward->total.macs_excl_padding },
		{ "Training FLOPs", rfl_count_training_flops(s->count[1]) },
	};
	char text[RFL_NUM_MAX];

	for (size_t i = 0; i < RFL_ARRAY_LEN(lines); i++)
		rfl_buf_printf(out, "%-30s %s\n", lines[i].what,
			       rfl_num_grouped(lines[i].value, text));
}

static void put_sizes(const struct rfl_summary *s, struct rfl_buf *out)
{
	const struct rfl_memory *m = s->memory[1];
	const struct {
		const char *what;
		int64_t bytes;
	} lines[] = {
		{ "Input size (MB)", m->input },
		{ "Forward/backward size (MB)", m->saved },
		{ "Params size (MB)", m->weights + m->buffers },
		{ "Estimated total size (MB)", m->input + m->saved + m->weights + m->buffers },
		{ "Peak of a training step (MB)", m->peak },
		{ "Peak of an inference (MB)", s->memory[0]->peak },
	};
	double torchinfo = 0; /* twice the outputs of all layers that own parameters */
	char text[RFL_NUM_MAX];

	for (size_t i = 0; i < RFL_ARRAY_LEN(lines); i++)
		rfl_buf_printf(out, "%-30s %s\n", lines[i].what,
			       rfl_num_people((double)lines[i].bytes / 1e6,
					      lines[i].bytes >= 1000000000 ? 6 : 5, text));
	for (int i = 0; i < s->net->nnodes; i++)
		if (rfl_node_param_count(s->net, &s->net->nodes[i]) > 0)
			torchinfo += (double)rfl_shape_numel(&s->net->nodes[i].shape);
	torchinfo *= 2 * 4 * (double)s->batch;
	rfl_buf_printf(
		out,
		"\nForward/backward size is what PyTorch keeps from the forward pass for the "
		"backward pass, each tensor once;\ntorchinfo prints %s there: twice the outputs "
		"of every layer with parameters, in fp32.\nThe peak adds gradients, the state "
		"of %s and temporaries. MB = 10^6 bytes, in %s.\n",
		rfl_num_people(torchinfo / 1e6, 5, text), rfl_optimizer_names[s->options.optimizer],
		s->options.precision);
}

enum rfl_rc rfl_complexity_layers(const struct rfl_complexity *r, struct rfl_summary *s,
				  struct rfl_buf *out, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		RFL_TEXT_COLUMN(struct layer, name, "Layer"),
		RFL_TEXT_COLUMN(struct layer, type, "(type)"),
		RFL_TEXT_COLUMN(struct layer, output, "Output shape"),
		RFL_INT_COLUMN(struct layer, params, "Param #", 0),
		RFL_INT_COLUMN(struct layer, macs, "MACs", 0),
		RFL_INT_COLUMN(struct layer, flops, "FLOPs", 0),
	};
	const struct rfl_net *net = s->net;
	struct layer l = { .name = "total", .type = "", .output = "" };
	struct rfl_table *t;
	char shape[96];
	enum rfl_rc rc = rfl_summary_want_both(s, err);

	if (rc == RFL_OK)
		rc = rfl_summary_at(s, r->batches[0], err);
	if (rc != RFL_OK)
		return rc;
	rfl_buf_printf(out, "%s: %s\n\nInput %s, %lld classes, batch %lld\n\n", s->title, s->about,
		       rfl_shape_text(&s->net->nodes[0].shape, shape, sizeof(shape)),
		       (long long)s->net->classes, (long long)s->batch);
	t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct rfl_op_info *op = rfl_op_info_of(node->op);
		const int64_t macs = s->count[0]->nodes[i].macs[RFL_PASS_FORWARD];

		rfl_table_add(t,
			      &(struct layer){
				      .name = *node->name ? node->name : op->name,
				      .type = op->module,
				      .output = rfl_shape_text(&node->shape, shape, sizeof(shape)),
				      .params = rfl_node_param_count(net, node),
				      .macs = macs,
				      .flops = 2 * macs },
			      1, sizeof(l));
	}
	l.params = s->one[0].params;
	l.flops = rfl_count_forward_flops(s->count[0]);
	l.macs = l.flops / 2;
	rfl_table_add(t, &l, 1, sizeof(l));
	rc = rfl_table_finish(t, RFL_FORMAT_TABLE, out, err);
	if (rc != RFL_OK)
		return rc;
	rfl_buf_putc(out, '\n');
	put_counts(s, out);
	rfl_buf_putc(out, '\n');
	if (s->memory[1])
		put_sizes(s, out);
	rfl_buf_printf(out,
		       "\n" RFL_COMPLEXITY_CONVENTION
		       "\nOutput shapes are of one sample, the rest is of the batch; training is "
		       "forward + dgrad + wgrad, and the first layer has %s dgrad.\n",
		       s->options.input_grad ? "a" : "no");
	rfl_summary_rest(s);
	return rfl_buf_check(out, s->name, err);
}

/* --- other counters -------------------------------------------------------------------------- */

enum rfl_rc rfl_complexity__peer(struct rfl_summary *s, const struct rfl_peer *peer,
				 struct rfl_peer_line *ret, struct rfl_err *err)
{
	enum rfl_rc rc = s->counted ? RFL_OK : rfl_summary_at(s, 1, err);
	struct rfl_peer_count count;

	if (rc != RFL_OK)
		return rc;
	*ret = (struct rfl_peer_line){
		.total = RFL_INT_UNKNOWN,
		.core = rfl_count_forward_flops(&s->one[0]) / (peer->is_flops ? 1 : 2),
	};
	rc = rfl_peer_count(peer, s->net, &count, NULL, &ret->why);
	if (rc == RFL_OK)
		ret->total = count.total;
	if (rc == RFL_OK || rc == RFL_EUNAVAILABLE)
		return RFL_OK;
	return rfl_fail(err, rc, ret->why.native, "%s", ret->why.msg);
}

struct peer_row {
	const char *model, *tool, *version, *prints, *unit;
	int64_t context, total, core;
	double ratio;
};

enum { CONTEXT = 1 }; /* some network reads text */

static const struct rfl_column peer_columns[] = {
	RFL_TEXT_COLUMN(struct peer_row, model, "Model"),
	RFL_INT_COLUMN(struct peer_row, context, "Context", CONTEXT),
	RFL_TEXT_COLUMN(struct peer_row, tool, "Tool"),
	RFL_TEXT_COLUMN(struct peer_row, version, "Version"),
	RFL_TEXT_COLUMN(struct peer_row, prints, "It says"),
	RFL_TEXT_COLUMN(struct peer_row, unit, "It means"),
	RFL_INT_COLUMN(struct peer_row, total, "Total", 0),
	RFL_INT_COLUMN(struct peer_row, core, "Core count", 0),
	{ .key = "ratio",
	  .title = "Ratio",
	  .kind = RFL_COLUMN_REAL,
	  .digits = 5,
	  RFL_CELL(struct peer_row, ratio) },
};

static enum rfl_rc add_peer(struct rfl_table *t, struct rfl_summary *s, const struct rfl_peer *peer,
			    struct rfl_err *err)
{
	struct rfl_peer_line l;
	struct peer_row row;
	enum rfl_rc rc = rfl_complexity__peer(s, peer, &l, err);

	if (rc != RFL_OK)
		return rc;
	row = (struct peer_row){
		.model = s->name,
		.tool = peer->name,
		.version = peer->version,
		.prints = peer->prints,
		.unit = peer->is_flops ? "FLOPs" : "MACs",
		.context = s->context_length ? s->context_length : RFL_INT_UNKNOWN,
		.total = l.total,
		.core = l.core,
		.ratio = l.why.rc == RFL_OK && l.core > 0 ? (double)l.total / (double)l.core
							  : (double)NAN,
	};
	rfl_table_add(t, &row, 1, sizeof(row));
	if (l.why.rc != RFL_OK)
		rfl_table_note(t, "%s, %s: %s.", s->name, peer->name, l.why.msg);
	return RFL_OK;
}

enum rfl_rc rfl_complexity_peers_table(const struct rfl_complexity *r, enum rfl_format format,
				       struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_of(peer_columns, RFL_ARRAY_LEN(peer_columns),
					   rfl_complexity_has_text(r) ? CONTEXT : 0);
	enum rfl_rc rc = RFL_OK;

	if (rfl_complexity__for_people(format))
		rfl_buf_puts(out, "What other counters say of one forward pass of one sample\n\n");
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		for (size_t k = 0; k < r->npeers && rc == RFL_OK; k++)
			rc = add_peer(t, r->items[i], r->peers[k], err);
	rfl_table_note(t, "Core count: multiply-adds of convolutions and matrix products, in the "
			  "unit that the tool means; FLOPs = 2 x MACs.");
	for (size_t k = 0; k < r->npeers; k++) {
		const struct rfl_peer *p = r->peers[k];

		rfl_table_note(t, "%s %s: %s.%s%s%s", p->name, p->version, p->rule,
			       p->wrong ? " Known errors: " : "", p->wrong ? p->wrong : "",
			       p->wrong ? "." : "");
	}
	if (rc == RFL_OK)
		return rfl_table_finish(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
