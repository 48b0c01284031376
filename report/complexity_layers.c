/*
 * complexity_layers.c - the list of layers of one network, in the form that torchsummary made
 * known.
 */
#include "report/complexity_impl.h"

#include "base/num.h"
#include "complexity/op.h"

static void text_rows(struct rfl_table *t, const struct rfl_summary *s)
{
	const struct rfl_net *net = s->net;
	char shape[96];

	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct rfl_op_info *op = rfl_op_info_of(node->op);
		int64_t macs = s->forward->nodes[i].macs[RFL_PASS_FORWARD];

		rfl_table_text(t, *node->name ? node->name : op->name);
		rfl_table_text(t, op->module);
		rfl_table_text(t, rfl_shape_text(&node->shape, shape, sizeof(shape)));
		rfl_table_int(t, rfl_node_param_count(net, node));
		rfl_table_int(t, macs);
		rfl_table_int(t, 2 * macs);
	}
	rfl_table_text(t, "total");
	rfl_table_text(t, "");
	rfl_table_text(t, "");
	rfl_table_int(t, s->one_forward.params);
	rfl_table_int(t, rfl_count_forward_flops(s->forward) / 2);
	rfl_table_int(t, rfl_count_forward_flops(s->forward));
}

/* "torchinfo" gives twice the outputs of all layers that own parameters. */
static double torchinfo_bytes(const struct rfl_summary *s)
{
	double sum = 0;

	for (int i = 0; i < s->net->nnodes; i++)
		if (rfl_node_param_count(s->net, &s->net->nodes[i]) > 0)
			sum += (double)rfl_shape_numel(&s->net->nodes[i].shape);
	return 2 * 4 * sum * (double)s->batch;
}

static void put_count(struct rfl_buf *out, const char *what, int64_t value)
{
	char text[RFL_NUM_MAX];

	rfl_buf_printf(out, "%-30s %s\n", what, rfl_num_grouped(value, text));
}

static void put_size(struct rfl_buf *out, const char *what, int64_t bytes)
{
	char text[RFL_NUM_MAX];

	rfl_buf_printf(out, "%-30s %s\n", what,
		       rfl_num_people((double)bytes / 1e6, bytes >= 1000000000 ? 6 : 5, text));
}

static void text_counts(const struct rfl_summary *s, struct rfl_buf *out)
{
	const struct rfl_count *forward = s->forward;

	put_count(out, "Total params", s->one_forward.params);
	put_count(out, "Trainable params", s->one_training.trained);
	put_count(out, "Non-trainable params", s->one_forward.params - s->one_training.trained);
	put_count(out, "Buffers", s->one_forward.buffers);
	put_count(out, "Forward MACs", rfl_count_forward_flops(forward) / 2);
	put_count(out, "Forward FLOPs", rfl_count_forward_flops(forward));
	put_count(out, "Forward MACs, unpadded", forward->total.macs_excl_padding);
	put_count(out, "Training FLOPs", rfl_count_training_flops(s->training));
}

static void text_sizes(const struct rfl_summary *s, const struct rfl_summary_options *options,
		       struct rfl_buf *out)
{
	const struct rfl_memory *m = s->training_memory;
	char torchinfo[RFL_NUM_MAX];

	put_size(out, "Input size (MB)", m->input);
	put_size(out, "Forward/backward size (MB)", m->saved);
	put_size(out, "Params size (MB)", m->weights + m->buffers);
	put_size(out, "Estimated total size (MB)", m->input + m->saved + m->weights + m->buffers);
	put_size(out, "Peak of a training step (MB)", m->peak);
	put_size(out, "Peak of an inference (MB)", s->forward_memory->peak);
	rfl_buf_printf(
		out,
		"\nForward/backward size is what PyTorch keeps from the forward pass for the "
		"backward pass, each tensor once;\ntorchinfo prints %s there: twice the outputs "
		"of every layer with parameters, in fp32.\nThe peak adds gradients, the state "
		"of %s and temporaries. MB = 10^6 bytes, in %s.\n",
		rfl_num_people(torchinfo_bytes(s) / 1e6, 5, torchinfo),
		rfl_optimizer_names[options->optimizer], options->precision);
}

static void text_head(const struct rfl_summary *s, struct rfl_buf *out)
{
	char shape[96];

	rfl_buf_printf(out, "%s: %s\n\n", s->title, s->about);
	rfl_buf_printf(out, "Input %s, %lld classes, batch %lld\n\n",
		       rfl_shape_text(&s->net->nodes[0].shape, shape, sizeof(shape)),
		       (long long)s->net->classes, (long long)s->batch);
}

enum rfl_rc rfl_summary_text(struct rfl_summary *s, const struct rfl_summary_options *options,
			     struct rfl_buf *out, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		{ .key = "name", .title = "Layer", .kind = RFL_COLUMN_TEXT },
		{ .key = "type", .title = "(type)", .kind = RFL_COLUMN_TEXT },
		{ .key = "output", .title = "Output shape", .kind = RFL_COLUMN_TEXT },
		{ .key = "params", .title = "Param #", .kind = RFL_COLUMN_INT },
		{ .key = "macs", .title = "MACs", .kind = RFL_COLUMN_INT },
		{ .key = "flops", .title = "FLOPs", .kind = RFL_COLUMN_INT },
	};
	struct rfl_table *t = NULL;
	enum rfl_rc rc = rfl_summary_want_both(s, err);

	if (rc == RFL_OK)
		rc = rfl_summary_at(s, options->batches[0], err);
	if (rc != RFL_OK)
		return rc;
	t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	text_head(s, out);
	text_rows(t, s);
	rc = rfl_table_render(t, RFL_FORMAT_TABLE, out, err);
	rfl_table_free(t);
	if (rc != RFL_OK)
		return rc;
	rfl_buf_putc(out, '\n');
	text_counts(s, out);
	rfl_buf_putc(out, '\n');
	if (s->training_memory)
		text_sizes(s, options, out);
	rfl_buf_printf(
		out,
		"\n%s\nOutput shapes are of one sample, the rest is of the batch; training is "
		"forward + dgrad + wgrad, and the first layer has %s dgrad.\n",
		rfl_summary_convention, options->input_grad ? "a" : "no");
	rfl_summary_rest(s);
	return rfl_buf_check(out, s->name, err);
}
