/*
 * complexity_fit.c - how it is told what fits into a memory: one network as a sum, several as
 * rows.
 */
#include "report/complexity_impl.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"

#define MIB(key_, title_)                                                               \
	{                                                                               \
		.key = key_, .title = title_, .kind = RFL_COLUMN_INT, .scale = RFL_MIB, \
		.decimals = 1                                                           \
	}

static const struct rfl_column fit_columns[] = {
	{ .key = "model", .title = "Model", .kind = RFL_COLUMN_TEXT },
	{ .key = "context", .title = "Context", .kind = RFL_COLUMN_INT },
	{ .key = "largest_batch", .title = "Largest batch", .kind = RFL_COLUMN_INT },
	MIB("peak_bytes", "Peak (MiB)"),
	{ .key = "peak_at", .title = "Peak in", .kind = RFL_COLUMN_TEXT },
	MIB("weights_bytes", "Weights (MiB)"),
	MIB("state_bytes", "State (MiB)"),
	MIB("rest_bytes", "Rest (MiB)"),
	MIB("free_bytes", "Free (MiB)"),
	MIB("next_peak_bytes", "One sample more (MiB)"),
	{ .key = "context_batch", .title = "At batch", .kind = RFL_COLUMN_INT },
	{ .key = "largest_context", .title = "Largest context", .kind = RFL_COLUMN_INT },
	MIB("context_peak_bytes", "Peak there (MiB)"),
};

/* Places in the table above. */
enum { CONTEXT_COLUMN = 1, FREE_COLUMN = 8, NEXT_COLUMN = 9, LARGEST_CONTEXT_COLUMN = 10 };

/* What the rows of a table have. */
struct shown {
	bool context; /* some network reads text */
	bool spare;   /* what is left, and what is missing for one sample more */
};

static bool is_shown(const struct shown *shown, size_t column)
{
	if (column == CONTEXT_COLUMN || column >= LARGEST_CONTEXT_COLUMN)
		return shown->context;
	return shown->spare || (column != FREE_COLUMN && column != NEXT_COLUMN);
}

static struct rfl_table *new_table(const struct shown *shown)
{
	struct rfl_column columns[RFL_ARRAY_LEN(fit_columns)];
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(fit_columns); i++)
		if (is_shown(shown, i))
			columns[n++] = fit_columns[i];
	return rfl_table_new(columns, n);
}

static void known_int(struct rfl_table *t, bool known, int64_t value)
{
	if (known)
		rfl_table_int(t, value);
	else
		rfl_table_null(t);
}

static void add_row(struct rfl_table *t, const struct rfl_summary *s, const struct shown *shown)
{
	const struct rfl_fit *fit = s->fit;
	int64_t weights = rfl_fit_weights(fit);

	rfl_table_text(t, s->name);
	if (shown->context)
		known_int(t, s->context_length > 0, s->context_length);
	rfl_table_int(t, fit->batch);
	rfl_table_int(t, fit->at.peak);
	rfl_table_text(t, fit->peak_at);
	rfl_table_int(t, weights);
	rfl_table_int(t, fit->at.state);
	rfl_table_int(t, fit->at.peak - weights - fit->at.state);
	if (shown->spare) {
		known_int(t, fit->batch > 0, fit->bytes - fit->at.peak);
		known_int(t, fit->batch > 0 && fit->next_peak >= 0, fit->next_peak);
	}
	if (!shown->context)
		return;
	known_int(t, fit->has_context, fit->context_batch);
	known_int(t, fit->has_context, fit->context);
	known_int(t, fit->has_context && fit->context > 0, fit->context_peak);
}

/* --- what a reader must know --- */

/* One sample is too much: say by how much, and what there is to do. */
static enum rfl_rc note_too_big(struct rfl_table *t, const struct rfl_summary *s,
				struct rfl_err *err)
{
	const struct rfl_fit *fit = s->fit;
	char peak[RFL_NUM_MAX], bytes[RFL_NUM_MAX];
	struct rfl_buf text;
	enum rfl_rc rc;

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

static void note_device(struct rfl_table *t, const struct rfl_fit_device *device)
{
	char all[RFL_NUM_MAX], reserve[RFL_NUM_MAX], rest[RFL_NUM_MAX];

	rfl_num_bytes((double)device->memory_bytes, all, sizeof(all));
	rfl_num_bytes((double)device->reserve_bytes, reserve, sizeof(reserve));
	rfl_num_bytes((double)(device->memory_bytes - device->reserve_bytes), rest, sizeof(rest));
	if (device->reserve_bytes)
		rfl_table_note(
			t,
			"%s: %s, of which %s are kept back (--reserve) for the context of the "
			"device, workspaces and what the allocator cannot use: %s for tensors.",
			device->name, all, reserve, rest);
	else
		rfl_table_note(t, "%s: %s for tensors, nothing kept back (--reserve).",
			       device->name, all);
}

static void note_options(struct rfl_table *t, const struct rfl_summary_options *options)
{
	if (options->checkpoint)
		rfl_table_note(
			t,
			"Checkpointing: segments of %lld block%s run again in the backward pass.",
			(long long)options->checkpoint, options->checkpoint == 1 ? "" : "s");
	if (options->train && options->accumulate > 1)
		rfl_table_note(t, "The batch is of one pass; %lld passes make one update.",
			       (long long)options->accumulate);
}

static void note_fit(struct rfl_table *t, const struct rfl_summary_options *options, bool context)
{
	rfl_table_note(t,
		       "Peak: the most that tensors take at any moment of the %s. Weights: with "
		       "buffers and 16-bit copies. State: of the optimizer. Rest: activations, "
		       "gradients, temporaries and the "
		       "batch. MiB = 2^20 bytes.",
		       options->train ? "step" : "pass");
	if (context)
		rfl_table_note(t,
			       "Largest context: at the batch beside it, in steps of one token, "
			       "up to the positions that the model has or %lld.",
			       (long long)RFL_FIT_MAX_CONTEXT);
	note_options(t, options);
}

/* --- one network, for people: the answer, and the sum behind it --- */

static void put_mode(const struct rfl_summary_options *options, const char *end,
		     struct rfl_buf *out)
{
	if (options->train)
		rfl_buf_printf(out, "training in %s with %s%s", options->precision,
			       rfl_optimizer_names[options->optimizer], end);
	else
		rfl_buf_printf(out, "inference in %s%s", options->precision, end);
}

/* Why a larger context was not looked for. */
static const char *context_end(const struct rfl_summary *s)
{
	if (s->fit->context < s->fit->context_limit)
		return "";
	return s->model->max_context_length ? ", all that it has positions for"
					    : ", where the search ends";
}

static void put_answer(const struct rfl_summary *s, const struct rfl_summary_options *options,
		       const struct rfl_fit_device *device, struct rfl_buf *out)
{
	const struct rfl_fit *fit = s->fit;
	char number[RFL_NUM_MAX];

	rfl_buf_printf(out, "%s", s->title);
	if (s->context_length)
		rfl_buf_printf(out, " with %s tokens", rfl_num_grouped(s->context_length, number));
	if (fit->batch)
		rfl_buf_printf(out, ": the largest batch that fits %s is %s, ", device->name,
			       rfl_num_grouped(fit->batch, number));
	else
		rfl_buf_printf(out, ": not even one sample fits %s, ", device->name);
	put_mode(options, "\n", out);
	if (fit->has_context && fit->context)
		rfl_buf_printf(out, "At batch %lld the largest context is %s tokens%s.\n",
			       (long long)fit->context_batch, rfl_num_grouped(fit->context, number),
			       context_end(s));
	rfl_buf_putc(out, '\n');
}

static void line(struct rfl_table *t, int64_t bytes, const char *note, const char *fmt, ...)
	RFL_PRINTF(4, 5);

static void line(struct rfl_table *t, int64_t bytes, const char *note, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	rfl_table_text(t, what);
	rfl_table_int(t, bytes);
	rfl_table_text(t, note);
}

static struct rfl_table *sum_of(const struct rfl_summary *s, const struct rfl_fit_device *device)
{
	static const struct rfl_column columns[] = {
		{ .key = "what", .title = "Memory", .kind = RFL_COLUMN_TEXT },
		MIB("bytes", "MiB"),
		{ .key = "note", .title = "What it is", .kind = RFL_COLUMN_TEXT },
	};
	const struct rfl_fit *fit = s->fit;
	int64_t weights = rfl_fit_weights(fit), batch = fit->batch ? fit->batch : 1;
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));

	if (!t)
		return NULL;
	line(t, device->memory_bytes, "all of it", "%s", device->name);
	if (device->reserve_bytes)
		line(t, device->reserve_bytes, "context, workspaces, error correction",
		     "kept back (--reserve)");
	line(t, fit->bytes, "the rest", "for tensors");
	line(t, fit->at.peak, fit->peak_at, "peak at batch %lld", (long long)batch);
	line(t, weights, "there all the time", "of it weights and buffers");
	if (fit->training)
		line(t, fit->at.state, "there all the time", "of it state of the optimizer");
	line(t, fit->at.peak - weights - fit->at.state, "with the batch and temporaries",
	     fit->training ? "of it activations and gradients" : "of it activations");
	if (fit->batch)
		line(t, fit->bytes - fit->at.peak, "too little for one sample more", "left over");
	if (fit->batch && fit->next_peak >= 0)
		line(t, fit->next_peak, "does not fit", "peak at batch %lld",
		     (long long)(batch + 1));
	return t;
}

static enum rfl_rc put_one(struct rfl_summary *s, const struct rfl_summary_options *options,
			   const struct rfl_fit_device *device, enum rfl_format format,
			   struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_table *t = sum_of(s, device);
	enum rfl_rc rc = RFL_OK;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	put_answer(s, options, device, out);
	rfl_table_note(
		t,
		"Peak: the most that tensors take at any moment of the %s, on a %s. MiB = 2^20 "
		"bytes.",
		options->train ? "step" : "pass",
		options->device == RFL_MEMORY_CPU ? "CPU" : "GPU");
	note_options(t, options);
	if (!s->fit->batch)
		rc = note_too_big(t, s, err);
	if (rc == RFL_OK)
		rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}

/* --- several networks, or for machines --- */

enum rfl_rc rfl_summary_fit_table(struct rfl_summary *const *summaries, size_t n,
				  const struct rfl_summary_options *options,
				  const struct rfl_fit_device *device, enum rfl_format format,
				  struct rfl_buf *out, struct rfl_err *err)
{
	bool people = rfl_summary_for_people(format);
	struct shown shown = { .context = rfl_summary_any_context(summaries, n) };
	struct rfl_table *t;
	enum rfl_rc rc = RFL_OK;

	/* beside a context there is no room for it on a terminal of 160 columns */
	shown.spare = !people || !shown.context;
	if (n == 1 && people)
		return put_one(summaries[0], options, device, format, out, err);
	t = new_table(&shown);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	if (people) {
		rfl_buf_printf(out, "The largest batch that fits %s, ", device->name);
		put_mode(options, "\n\n", out);
	}
	for (size_t i = 0; i < n; i++)
		add_row(t, summaries[i], &shown);
	note_device(t, device);
	note_fit(t, options, shown.context);
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		if (!summaries[i]->fit->batch)
			rc = note_too_big(t, summaries[i], err);
	if (rc == RFL_OK)
		rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
