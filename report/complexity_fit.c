/*
 * complexity_fit.c - what fits into a memory: one network as a sum, several as rows.
 */
#include "report/complexity_impl.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/num.h"

#define MIB(key_, title_, type_, member_)                                               \
	{                                                                               \
		.key = key_, .title = title_, .kind = RFL_COLUMN_INT, .scale = RFL_MIB, \
		.decimals = 1, RFL_CELL(type_, member_)                                 \
	}

/* The fit of a network, as a row has it. */
struct line {
	const char *model, *peak_at;
	int64_t context, batch, peak, weights, state, rest, spare, next_peak;
	int64_t context_batch, largest_context, context_peak;
};

enum {
	CONTEXT = 1, /* some network reads text */
	SPARE = 2,   /* what is left, and what is missing for one sample more */
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

/* --- what a reader must know ----------------------------------------------------------------- */

/* One sample is too much: say by how much, and what there is to do. */
static enum rfl_rc note_too_big(struct rfl_table *t, const struct rfl_summary *s,
				struct rfl_err *err)
{
	const struct rfl_fit *fit = s->fit;
	char peak[RFL_NUM_MAX], bytes[RFL_NUM_MAX];
	struct rfl_buf text;
	enum rfl_rc rc;

	if (fit->batch)
		return RFL_OK;
	rfl_buf_init(&text, 0);
	rc = rfl_summary_fit_help(s, &text, err);
	if (rc == RFL_OK)
		rfl_table_note(t,
			       "%s: not even one sample fits: it peaks at %s (%s), and %s may be "
			       "used.%s%s",
			       s->name, rfl_num_bytes((double)fit->at.peak, peak, sizeof(peak)),
			       fit->peak_at,
			       rfl_num_bytes((double)fit->bytes, bytes, sizeof(bytes)),
			       rfl_buf_str(&text),
			       s->context_length ? " A shorter context takes less, too." : "");
	rfl_buf_fini(&text);
	return rc;
}

void rfl_complexity__note_checkpoint(struct rfl_table *t, const struct rfl_summary_options *o)
{
	if (o->checkpoint)
		rfl_table_note(
			t,
			"Checkpointing: segments of %lld block%s run again in the backward pass.",
			(long long)o->checkpoint, o->checkpoint == 1 ? "" : "s");
}

static void note_options(struct rfl_table *t, const struct rfl_complexity *r)
{
	const struct rfl_summary_options *o = &r->options;

	rfl_complexity__note_checkpoint(t, o);
	if (r->train && o->accumulate > 1)
		rfl_table_note(t, "The batch is of one pass; %lld passes make one update.",
			       (long long)o->accumulate);
}

static void put_mode(const struct rfl_complexity *r, const char *end, struct rfl_buf *out)
{
	if (r->train)
		rfl_buf_printf(out, "training in %s with %s%s", r->options.precision,
			       rfl_optimizer_names[r->options.optimizer], end);
	else
		rfl_buf_printf(out, "inference in %s%s", r->options.precision, end);
}

/* --- one network, for people: the answer, and how it is made ------------------------------- */

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
		rfl_buf_printf(out, ": the largest batch that fits %s is %s, ", r->device.name,
			       rfl_num_grouped(fit->batch, number));
	else
		rfl_buf_printf(out, ": not even one sample fits %s, ", r->device.name);
	put_mode(r, "\n", out);
	if (fit->has_context && fit->context >= fit->context_limit)
		end = s->model->max_context_length ? ", all that it has positions for"
						   : ", where the search ends";
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

/* @param batch  that it is of, after `what`; 0: of none */
static void add_part(struct rfl_table *t, int64_t bytes, const char *note, const char *what,
		     long long batch)
{
	char text[RFL_NUM_MAX + 32];
	const struct part part = { .bytes = bytes, .note = note, .what = batch ? text : what };

	(void)snprintf(text, sizeof(text), "%s %lld", what, batch);
	rfl_table_add(t, &part, 1, sizeof(part));
}

static enum rfl_rc put_one(const struct rfl_complexity *r, struct rfl_summary *s,
			   enum rfl_format format, struct rfl_buf *out, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		RFL_TEXT_COLUMN(struct part, what, "Memory"),
		MIB("bytes", "MiB", struct part, bytes),
		RFL_TEXT_COLUMN(struct part, note, "What it is"),
	};
	const struct rfl_fit *fit = s->fit;
	const struct line l = line_of(s);
	const long long batch = fit->batch ? (long long)fit->batch : 1;
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	enum rfl_rc rc;

	put_answer(r, s, out);
	add_part(t, r->device.memory_bytes, "all of it", r->device.name, 0);
	if (r->device.reserve_bytes)
		add_part(t, r->device.reserve_bytes, "context, workspaces, error correction",
			 "kept back (--reserve)", 0);
	add_part(t, fit->bytes, "the rest", "for tensors", 0);
	add_part(t, l.peak, fit->peak_at, "peak at batch", batch);
	add_part(t, l.weights, "there all the time", "of which weights and buffers", 0);
	if (fit->training)
		add_part(t, l.state, "there all the time", "of which state of the optimizer", 0);
	add_part(t, l.rest, "with the batch and temporaries",
		 fit->training ? "of which activations and gradients" : "of which activations", 0);
	if (fit->batch)
		add_part(t, l.spare, "too little for one sample more", "left over", 0);
	if (l.next_peak != RFL_INT_UNKNOWN)
		add_part(t, l.next_peak, "does not fit", "peak at batch", batch + 1);
	rfl_table_note(
		t,
		"Peak: the most that tensors take at any moment of the %s, on a %s. MiB = 2^20 "
		"bytes.",
		r->train ? "step" : "pass", r->options.device == RFL_MEMORY_CPU ? "CPU" : "GPU");
	note_options(t, r);
	rc = note_too_big(t, s, err);
	if (rc == RFL_OK)
		return rfl_table_finish(t, format, out, err);
	rfl_table_free(t);
	return rc;
}

/* --- several networks, or for programs ------------------------------------------------------- */

#define INT(key_, title_, member_) \
	.key = key_, .title = title_, .kind = RFL_COLUMN_INT, RFL_CELL(struct line, member_)
#define BYTES(key_, title_, member_, when_) \
	INT(key_, title_, member_), .scale = RFL_MIB, .decimals = 1, .when = (when_)

static const struct rfl_column fit_columns[] = {
	{ .key = "model", .title = "Model", RFL_CELL(struct line, model) },
	{ INT("context", "Context", context), .when = CONTEXT },
	{ INT("largest_batch", "Largest batch", batch) },
	{ BYTES("peak_bytes", "Peak (MiB)", peak, 0) },
	{ .key = "peak_at", .title = "Peak in", RFL_CELL(struct line, peak_at) },
	{ BYTES("weights_bytes", "Weights (MiB)", weights, 0) },
	{ BYTES("state_bytes", "State (MiB)", state, 0) },
	{ BYTES("rest_bytes", "Rest (MiB)", rest, 0) },
	{ BYTES("free_bytes", "Free (MiB)", spare, SPARE) },
	{ BYTES("next_peak_bytes", "One sample more (MiB)", next_peak, SPARE) },
	{ INT("context_batch", "At batch", context_batch), .when = CONTEXT },
	{ INT("largest_context", "Largest context", largest_context), .when = CONTEXT },
	{ BYTES("context_peak_bytes", "Peak there (MiB)", context_peak, CONTEXT) },
};

enum rfl_rc rfl_complexity_fit_table(const struct rfl_complexity *r, enum rfl_format format,
				     struct rfl_buf *out, struct rfl_err *err)
{
	const bool people = rfl_complexity__for_people(format);
	const bool context = rfl_complexity_has_text(r);
	/* beside a context there is no room for it on a terminal of 160 columns */
	const bool spare = !people || !context;
	struct rfl_table *t;
	char all[RFL_NUM_MAX], reserve[RFL_NUM_MAX], rest[RFL_NUM_MAX];
	enum rfl_rc rc = RFL_OK;

	if (r->n == 1 && people)
		return put_one(r, r->items[0], format, out, err);
	t = rfl_table_of(fit_columns, RFL_ARRAY_LEN(fit_columns),
			 (context ? CONTEXT : 0U) | (spare ? SPARE : 0U));
	if (people) {
		rfl_buf_printf(out, "The largest batch that fits %s, ", r->device.name);
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
			"%s: %s, of which %s are kept back (--reserve) for the context of the "
			"device, workspaces and what the allocator cannot use: %s for tensors.",
			r->device.name, all, reserve, rest);
	else
		rfl_table_note(t, "%s: %s for tensors, nothing kept back (--reserve).",
			       r->device.name, all);
	rfl_table_note(t,
		       "Peak: the most that tensors take at any moment of the %s. Weights: with "
		       "buffers and 16-bit copies. State: of the optimizer. Rest: activations, "
		       "gradients, temporaries and the batch. MiB = 2^20 bytes.",
		       r->train ? "step" : "pass");
	if (context)
		rfl_table_note(t,
			       "Largest context: at the batch beside it, in steps of one token, "
			       "up to the positions that the model has or %lld.",
			       (long long)RFL_FIT_MAX_CONTEXT);
	note_options(t, r);
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		rc = note_too_big(t, r->items[i], err);
	if (rc == RFL_OK)
		return rfl_table_finish(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
