/*
 * complexity_fit.c - other outputs of `roofline complexity`: the memory needed (a sum for one
 * network, a table for several), the list of layers of a network in the form of torchsummary, and
 * results of other FLOP-counting tools.
 */
#include "report/complexity_impl.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "complexity/op.h"

/* A column for a struct member; the key is the name of the member. */
#define TEXT(type, member, ...) RFL_COLUMN(TEXT, type, member, #member, __VA_ARGS__)
#define INT(type, member, ...)  RFL_COLUMN(INT, type, member, #member, __VA_ARGS__)

/* A row with the fit of a network. */
struct line {
	const char *model, *peak_at;
	int64_t context, batch, peak, weights, state, rest, spare, next_peak;
	int64_t context_batch, largest_context, context_peak;
};

enum {
	CONTEXT = 1, /* a network reads text */
	SPARE = 2,   /* columns for the remaining memory and the peak with one more sample */
};

static struct line line_of(const struct rfl_summary *s)
{
	const struct rfl_fit *f = s->fit;
	const int64_t none = RFL_INT_UNKNOWN, weights = rfl_complexity__weights(f);

	return (struct line){
		.model = s->name,
		.peak_at = f->peak_at,
		.context = s->context_length > 0 ? s->context_length : none,
		.batch = f->batch,
		.peak = f->at.peak,
		.weights = weights,
		.state = f->at.state,
		.rest = f->at.peak - weights - f->at.state,
		.spare = f->batch > 0 ? f->bytes - f->at.peak : none,
		.next_peak = f->batch > 0 && f->next_peak >= 0 ? f->next_peak : none,
		.context_batch = f->has_context ? f->context_batch : none,
		.largest_context = f->has_context ? f->context : none,
		.context_peak = f->has_context && f->context > 0 ? f->context_peak : none,
	};
}

/* If not even one sample fits, add a note with the peak and the options that reduce it. */
static enum rfl_rc note_too_big(struct rfl_table *t, const struct rfl_summary *s,
				struct rfl_err *err)
{
	const struct rfl_fit *fit = s->fit;
	char peak[RFL_NUM_MAX], bytes[RFL_NUM_MAX];
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	if (fit->batch)
		return RFL_OK;
	rc = rfl_summary_fit_help(s, &text, err);
	if (rc == RFL_OK)
		rfl_table_note(t,
			       "%s: even one sample is too large: the peak is %s MiB (%s), and %s "
			       "MiB are available.%s%s",
			       s->name, rfl_num_fixed((double)fit->at.peak / (1 << 20), 1, peak),
			       fit->peak_at,
			       rfl_num_fixed((double)fit->bytes / (1 << 20), 1, bytes),
			       rfl_buf_str(&text),
			       s->context_length ? " A shorter context also needs less." : "");
	return rc;
}

void rfl_complexity__note_checkpoint(struct rfl_table *t, const struct rfl_summary_options *o)
{
	if (o->work.count.checkpoint)
		rfl_table_note(t,
			       "Checkpointing: segments of %lld block%s are recomputed in the "
			       "backward pass.",
			       (long long)o->work.count.checkpoint,
			       o->work.count.checkpoint == 1 ? "" : "s");
}

static void note_options(struct rfl_table *t, const struct rfl_complexity *r)
{
	const struct rfl_summary_options *o = &r->options;

	rfl_complexity__note_checkpoint(t, o);
	if (r->train && o->work.accumulate > 1)
		rfl_table_note(t, "The batch is for one pass; %lld passes form one update.",
			       (long long)o->work.accumulate);
}

static void put_mode(const struct rfl_complexity *r, const char *end, struct rfl_buf *out)
{
	if (r->train)
		rfl_buf_printf(out, "training in %s with %s%s", r->options.precision,
			       rfl_optimizer_names[r->options.work.count.optimizer], end);
	else
		rfl_buf_printf(out, "inference in %s%s", r->options.precision, end);
}

static void put_answer(const struct rfl_complexity *r, const struct rfl_summary *s,
		       struct rfl_buf *out)
{
	const struct rfl_fit *fit = s->fit;
	const char *end = "";
	char number[RFL_NUM_MAX];

	rfl_buf_printf(out, "%s", s->title);
	if (s->context_length)
		rfl_buf_printf(out, " with %s tokens", rfl_num_grouped(s->context_length, number));
	if (fit->batch)
		rfl_buf_printf(out, ": the largest batch for %s is %s, ", r->device.name,
			       rfl_num_grouped(fit->batch, number));
	else
		rfl_buf_printf(out, ": even one sample is too large for %s, ", r->device.name);
	put_mode(r, "\n", out);
	if (fit->has_context && fit->context >= fit->context_limit)
		end = s->model->max_context_length ? ", the maximum of the model"
						   : ", the upper limit of the search";
	if (fit->has_context && fit->context)
		rfl_buf_printf(out, "At batch %lld the largest context is %s tokens%s.\n",
			       (long long)fit->context_batch, rfl_num_grouped(fit->context, number),
			       end);
	rfl_buf_putc(out, '\n');
}

struct part {
	const char *what, *note;
	int64_t bytes;
};

static enum rfl_rc put_one(const struct rfl_complexity *r, struct rfl_summary *s,
			   enum rfl_format format, struct rfl_buf *out, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		TEXT(struct part, what, "Memory"),
		INT(struct part, bytes, "MiB", .scale = RFL_MIB, .decimals = 1),
		TEXT(struct part, note, "Meaning"),
	};
	const struct rfl_fit *fit = s->fit;
	const struct line l = line_of(s);
	const long long batch = fit->batch ? (long long)fit->batch : 1;
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	char peak[64], next[64];
	const struct part parts[] = {
		{ r->device.name, "total memory", r->device.memory_bytes },
		{ r->device.reserve_bytes ? "reserved (--reserve)" : NULL,
		  "context, workspaces, error correction", r->device.reserve_bytes },
		{ "for tensors", "remaining memory", fit->bytes },
		{ peak, fit->peak_at, l.peak },
		{ "of which weights and buffers", "always allocated", l.weights },
		{ fit->training ? "of which optimizer state" : NULL, "always allocated", l.state },
		{ fit->training ? "of which activations and gradients" : "of which activations",
		  "including batch and temporaries", l.rest },
		{ fit->batch ? "unused" : NULL, "not enough for one more sample", l.spare },
		{ l.next_peak != RFL_INT_UNKNOWN ? next : NULL, "does not fit", l.next_peak },
	};
	enum rfl_rc rc;

	(void)snprintf(peak, sizeof(peak), "peak at batch %lld", batch);
	(void)snprintf(next, sizeof(next), "peak at batch %lld", batch + 1);
	put_answer(r, s, out);
	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
		if (parts[i].what)
			rfl_table_add(t, &parts[i], 1, sizeof(parts[i]));
	rfl_table_note(t,
		       "Peak: the maximum size of all tensors at any time in the %s, on a %s. MiB "
		       "= 2^20 bytes.",
		       r->train ? "step" : "pass",
		       r->options.work.device == RFL_MEMORY_CPU ? "CPU" : "GPU");
	note_options(t, r);
	rc = note_too_big(t, s, err);
	rfl_table_finish(t, format, out);
	return rc;
}

#define FIT(key, member, ...)   RFL_COLUMN(INT, struct line, member, key, __VA_ARGS__)
#define BYTES(key, member, ...) FIT(key, member, __VA_ARGS__, .scale = RFL_MIB, .decimals = 1)

static const struct rfl_column fit_columns[] = {
	TEXT(struct line, model, "Model"),
	FIT("context", context, "Context", .when = CONTEXT),
	FIT("largest_batch", batch, "Largest batch"),
	BYTES("peak_bytes", peak, "Peak (MiB)"),
	TEXT(struct line, peak_at, "Peak in"),
	BYTES("weights_bytes", weights, "Weights (MiB)"),
	BYTES("state_bytes", state, "State (MiB)"),
	BYTES("rest_bytes", rest, "Rest (MiB)"),
	BYTES("free_bytes", spare, "Free (MiB)", .when = SPARE),
	BYTES("next_peak_bytes", next_peak, "Next peak (MiB)", .when = SPARE),
	FIT("context_batch", context_batch, "At batch", .when = CONTEXT),
	FIT("largest_context", largest_context, "Largest context", .when = CONTEXT),
	BYTES("context_peak_bytes", context_peak, "Context peak (MiB)", .when = CONTEXT),
};

enum rfl_rc rfl_complexity_fit_table(const struct rfl_complexity *r, enum rfl_format format,
				     struct rfl_buf *out, struct rfl_err *err)
{
	const bool people = rfl_format_for_people(format);
	const bool context = rfl_complexity_has_text(r);
	/* With a context these columns would exceed a terminal of 160 columns. */
	const bool spare = !people || !context;
	struct rfl_table *t;
	char all[RFL_NUM_MAX], reserve[RFL_NUM_MAX], rest[RFL_NUM_MAX];
	enum rfl_rc rc = RFL_OK;

	if (r->n == 1 && people)
		return put_one(r, r->items[0], format, out, err);
	t = rfl_table_of(fit_columns, RFL_ARRAY_LEN(fit_columns),
			 (context ? CONTEXT : 0U) | (spare ? SPARE : 0U));
	if (people) {
		rfl_buf_printf(out, "The largest batch for %s, ", r->device.name);
		put_mode(r, "\n\n", out);
	}
	for (size_t i = 0; i < r->n; i++) {
		const struct line l = line_of(r->items[i]);

		rfl_table_add(t, &l, 1, sizeof(l));
	}
	rfl_num_bytes((double)r->device.memory_bytes, all, sizeof(all));
	rfl_num_bytes((double)r->device.reserve_bytes, reserve, sizeof(reserve));
	rfl_num_bytes((double)(r->device.memory_bytes - r->device.reserve_bytes), rest,
		      sizeof(rest));
	if (r->device.reserve_bytes)
		rfl_table_note(
			t,
			"%s: %s, of which %s are reserved (--reserve) for the device context, "
			"workspaces and memory that the allocator cannot use: %s for tensors.",
			r->device.name, all, reserve, rest);
	else
		rfl_table_note(t, "%s: %s for tensors, with nothing reserved (--reserve).",
			       r->device.name, all);
	rfl_table_note(t,
		       "Peak: the maximum size of all tensors at any time in the %s. Weights "
		       "include buffers and 16-bit copies. State: the optimizer's. Rest: "
		       "activations, gradients, temporaries and the batch. MiB = 2^20 bytes.",
		       r->train ? "step" : "pass");
	if (context)
		rfl_table_note(t,
			       "Largest context: for the batch to its left, in steps of one token, "
			       "up to the number of positions of the model or %lld.",
			       (long long)RFL_FIT_MAX_CONTEXT);
	note_options(t, r);
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		rc = note_too_big(t, r->items[i], err);
	rfl_table_finish(t, format, out);
	return rc;
}

struct layer {
	const char *name, *type, *output;
	int64_t params, macs, flops;
};

struct total {
	const char *what;
	int64_t value;
};

static void put_totals(const struct rfl_summary *s, struct rfl_buf *out)
{
	const struct rfl_count *forward = s->count[0];
	const struct rfl_memory *m = s->memory[1];
	const struct total counts[] = {
		{ "Total params", s->one[0].params },
		{ "Trainable params", s->one[1].trained },
		{ "Non-trainable params", s->one[0].params - s->one[1].trained },
		{ "Buffers", s->one[0].buffers },
		{ "Forward MACs", rfl_count_forward_flops(forward) / 2 },
		{ "Forward FLOPs", rfl_count_forward_flops(forward) },
		{ "Forward MACs, unpadded", forward->total.macs_excl_padding },
		{ "Training FLOPs", rfl_count_training_flops(s->count[1]) },
	};
	double torchinfo = 0; /* twice the output size of all layers with parameters */
	char text[RFL_NUM_MAX];

	for (size_t i = 0; i < RFL_ARRAY_LEN(counts); i++)
		rfl_buf_printf(out, "%-30s %s\n", counts[i].what,
			       rfl_num_grouped(counts[i].value, text));
	rfl_buf_putc(out, '\n');
	if (!m)
		return;
	const struct total bytes[] = {
		{ "Input size (MB)", m->input },
		{ "Forward/backward size (MB)", m->saved },
		{ "Params size (MB)", m->weights + m->buffers },
		{ "Estimated total size (MB)", m->input + m->saved + m->weights + m->buffers },
		{ "Peak of a training step (MB)", m->peak },
		{ "Peak of an inference (MB)", s->memory[0]->peak },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(bytes); i++)
		rfl_buf_printf(out, "%-30s %s\n", bytes[i].what,
			       rfl_num_people((double)bytes[i].value / 1e6,
					      bytes[i].value >= 1000000000 ? 6 : 5, text));
	for (int i = 0; i < s->net->nnodes; i++)
		if (rfl_node_param_count(s->net, &s->net->nodes[i]) > 0)
			torchinfo += (double)rfl_shape_numel(&s->net->nodes[i].shape);
	torchinfo *= 2 * 4 * (double)s->batch;
	rfl_buf_printf(
		out,
		"\nForward/backward size is the memory that PyTorch keeps from the forward pass "
		"for the backward pass, with each tensor counted once;\ntorchinfo prints %s "
		"instead: twice the outputs of all layers with parameters, in fp32.\nThe peak also "
		"includes gradients, the state of %s and temporaries. MB = 10^6 bytes, in %s.\n",
		rfl_num_people(torchinfo / 1e6, 5, text),
		rfl_optimizer_names[s->options.work.count.optimizer], s->options.precision);
}

enum rfl_rc rfl_complexity_layers(const struct rfl_complexity *r, struct rfl_summary *s,
				  struct rfl_buf *out, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		TEXT(struct layer, name, "Layer"),
		TEXT(struct layer, type, "(type)"),
		TEXT(struct layer, output, "Output shape"),
		INT(struct layer, params, "Param #"),
		INT(struct layer, macs, "MACs"),
		INT(struct layer, flops, "FLOPs"),
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
	rfl_table_finish(t, RFL_FORMAT_TABLE, out);
	rfl_buf_putc(out, '\n');
	put_totals(s, out);
	rfl_buf_printf(out,
		       "\n" RFL_COMPLEXITY_CONVENTION
		       "\nOutput shapes are for one sample, all other figures for the batch; "
		       "training is forward + dgrad + wgrad, and the first layer has %s dgrad.\n",
		       s->options.work.count.input_grad ? "a" : "no");
	rfl_summary_rest(s);
	return RFL_OK;
}

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

static const struct rfl_column peer_columns[] = {
	TEXT(struct peer_row, model, "Model"),
	INT(struct peer_row, context, "Context", .when = CONTEXT),
	TEXT(struct peer_row, tool, "Tool"),
	TEXT(struct peer_row, version, "Version"),
	TEXT(struct peer_row, prints, "Prints"),
	TEXT(struct peer_row, unit, "Means"),
	INT(struct peer_row, total, "Total"),
	INT(struct peer_row, core, "Core count"),
	RFL_COLUMN(REAL, struct peer_row, ratio, "ratio", "Ratio", .digits = 5),
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

	if (rfl_format_for_people(format))
		rfl_buf_puts(out, "Results of other FLOP-counting tools for one forward pass of "
				  "one sample\n\n");
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		for (size_t k = 0; k < r->npeers && rc == RFL_OK; k++)
			rc = add_peer(t, r->items[i], r->peers[k], err);
	rfl_table_note(t, "Core count: multiply-adds of convolutions and matmuls, in the "
			  "unit of the tool; FLOPs = 2 x MACs.");
	for (size_t k = 0; k < r->npeers; k++) {
		const struct rfl_peer *p = r->peers[k];

		rfl_table_note(t, "%s %s: %s.%s%s%s", p->name, p->version, p->rule,
			       p->wrong ? " Known errors: " : "", p->wrong ? p->wrong : "",
			       p->wrong ? "." : "");
	}
	rfl_table_finish(t, format, out);
	return rc;
}
