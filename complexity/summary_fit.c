/*
 * summary_fit.c - what of a network fits into a memory: the largest batch, and for a language model
 * the largest context.
 */
#include "complexity/summary_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"

static void name_peak(const struct rfl_summary *s, const struct rfl_memory *memory,
		      struct rfl_fit *fit)
{
	const char *phase = rfl_phase_names[memory->peak_phase];
	const char *node = memory->peak_node < 0 ? NULL : s->net->nodes[memory->peak_node].name;

	if (node && *node)
		(void)snprintf(fit->peak_at, sizeof(fit->peak_at), "%s of %s", phase, node);
	else if (memory->peak_phase != RFL_PHASE_STEP)
		(void)snprintf(fit->peak_at, sizeof(fit->peak_at), "%s of the loss", phase);
	else
		(void)snprintf(fit->peak_at, sizeof(fit->peak_at), "%s", phase);
}

static enum rfl_rc fit_batch(struct rfl_summary *s, struct rfl_memory *memory, struct rfl_fit *fit,
			     struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_memory_fit(memory, fit->bytes, &fit->batch, err);

	if (rc != RFL_OK)
		return rc;
	fit->at = *memory;
	fit->at.node_saved = NULL;
	fit->at.workspace = NULL;
	name_peak(s, memory, fit);
	fit->next_peak = memory->peak;
	if (!fit->batch)
		return RFL_OK;
	rc = rfl_memory_at(memory, fit->batch + 1, &why);
	fit->next_peak = rc == RFL_OK ? memory->peak : -1;
	return rc == RFL_EOVERFLOW || rc == RFL_OK ? RFL_OK
						   : rfl_fail(err, rc, why.native, "%s", why.msg);
}

/* The peak of the model at another context. Beyond 63 bits is too much as well: -1. */
static enum rfl_rc peak_at(const struct rfl_summary *s, const struct rfl_summary_options *options,
			   const struct rfl_memory_options *memory_options, int64_t context,
			   int64_t *ret, struct rfl_err *err)
{
	struct rfl_zoo_options sizes = options->sizes;
	struct rfl_memory *memory = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	enum rfl_rc rc;

	sizes.context_length = context;
	rc = rfl_zoo_build(s->model->name, &sizes, &net, &why);
	if (rc == RFL_OK)
		rc = rfl_memory_new(net, memory_options, &memory, &why);
	if (rc == RFL_OK)
		*ret = memory->peak;
	rfl_memory_free(memory);
	rfl_net_free(net);
	if (rc == RFL_EOVERFLOW) {
		*ret = -1;
		rc = RFL_OK;
	}
	return rc == RFL_OK ? rc : rfl_fail(err, rc, why.native, "%s", why.msg);
}

/* More tokens never take less: halve the range. */
static enum rfl_rc fit_context(const struct rfl_summary *s,
			       const struct rfl_summary_options *options,
			       const struct rfl_memory *memory, struct rfl_fit *fit,
			       struct rfl_err *err)
{
	struct rfl_memory_options at = memory->options;
	int64_t fits = 0, limit = s->model->max_context_length, fails;
	enum rfl_rc rc = RFL_OK;

	fit->has_context = true;
	fit->context_limit = limit ? limit : RFL_FIT_MAX_CONTEXT;
	fails = fit->context_limit + 1;
	at.count.batch = fit->context_batch;
	while (fails - fits > 1 && rc == RFL_OK) {
		int64_t middle = fits + (fails - fits) / 2, peak = 0;

		rc = peak_at(s, options, &at, middle, &peak, err);
		if (rc == RFL_OK && peak >= 0 && peak <= fit->bytes) {
			fits = middle;
			fit->context_peak = peak;
		} else {
			fails = middle;
		}
	}
	fit->context = fits;
	return rc;
}

enum rfl_rc rfl_summary_fit(struct rfl_summary *s, const struct rfl_summary_options *options,
			    int64_t bytes, int64_t context_batch, struct rfl_err *err)
{
	struct rfl_memory *memory;
	struct rfl_fit *fit;
	enum rfl_rc rc = rfl_summary_at(s, 1, err);

	if (rc != RFL_OK)
		return rc;
	memory = options->train ? s->training_memory : s->forward_memory;
	fit = calloc(1, sizeof(*fit));
	if (!fit)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	fit->training = options->train;
	fit->bytes = bytes;
	fit->context_batch = context_batch;
	rc = fit_batch(s, memory, fit, err);
	if (rc == RFL_OK && s->model && s->model->context_length)
		rc = fit_context(s, options, memory, fit, err);
	rfl_summary_rest(s);
	if (rc != RFL_OK) {
		free(fit);
		return rc;
	}
	free(s->fit);
	s->fit = fit;
	return RFL_OK;
}

/* --- the table --- */

#define MIB(key_, title_)                                                               \
	{                                                                               \
		.key = key_, .title = title_, .kind = RFL_COLUMN_INT, .scale = RFL_MIB, \
		.digits = 5                                                             \
	}

static const struct rfl_column fit_columns[] = {
	{ .key = "model", .title = "Model", .kind = RFL_COLUMN_TEXT },
	{ .key = "context", .title = "Context", .kind = RFL_COLUMN_INT },
	{ .key = "largest_batch", .title = "Largest batch", .kind = RFL_COLUMN_INT },
	MIB("peak_bytes", "Peak (MiB)"),
	{ .key = "peak_at", .title = "Peak in", .kind = RFL_COLUMN_TEXT },
	MIB("weights_bytes", "Weights (MiB)"),
	MIB("state_bytes", "Optimizer (MiB)"),
	MIB("rest_bytes", "Activations, gradients (MiB)"),
	MIB("free_bytes", "Free (MiB)"),
	MIB("next_peak_bytes", "One sample more (MiB)"),
	{ .key = "context_batch", .title = "At batch", .kind = RFL_COLUMN_INT },
	{ .key = "largest_context", .title = "Largest context", .kind = RFL_COLUMN_INT },
	MIB("context_peak_bytes", "Peak there (MiB)"),
};

enum { CONTEXT_COLUMN = 1, LAST_COLUMNS = 3 };

/* The columns about the context are left out where no network has one. */
static struct rfl_table *new_table(bool context)
{
	struct rfl_column columns[RFL_ARRAY_LEN(fit_columns)];
	size_t all = RFL_ARRAY_LEN(fit_columns), n = 0;

	for (size_t i = 0; i < all; i++)
		if (context || (i != CONTEXT_COLUMN && i < all - LAST_COLUMNS))
			columns[n++] = fit_columns[i];
	return rfl_table_new(columns, n);
}

int64_t rfl_fit_weights(const struct rfl_fit *fit)
{
	return fit->at.weights + fit->at.buffers + fit->at.weight_copies;
}

static void known_int(struct rfl_table *t, bool known, int64_t value)
{
	if (known)
		rfl_table_int(t, value);
	else
		rfl_table_null(t);
}

static void add_row(struct rfl_table *t, const struct rfl_summary *s, bool context)
{
	const struct rfl_fit *fit = s->fit;
	int64_t weights = rfl_fit_weights(fit);

	rfl_table_text(t, s->name);
	if (context)
		known_int(t, s->context_length > 0, s->context_length);
	rfl_table_int(t, fit->batch);
	rfl_table_int(t, fit->at.peak);
	rfl_table_text(t, fit->peak_at);
	rfl_table_int(t, weights);
	rfl_table_int(t, fit->at.state);
	rfl_table_int(t, fit->at.peak - weights - fit->at.state);
	known_int(t, fit->batch > 0, fit->bytes - fit->at.peak);
	known_int(t, fit->batch > 0 && fit->next_peak >= 0, fit->next_peak);
	if (!context)
		return;
	known_int(t, fit->has_context, fit->context_batch);
	known_int(t, fit->has_context, fit->context);
	known_int(t, fit->has_context && fit->context > 0, fit->context_peak);
}

/* --- what would help where nothing fits --- */

static bool checkpoint_all(const struct rfl_net *net, struct rfl_memory_options *o)
{
	if (!net->nblocks || o->count.checkpoint || !o->count.training)
		return false;
	o->count.checkpoint = 1;
	return true;
}

static bool store_bf16(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (o->count.dtype == RFL_DTYPE_BF16 || o->count.dtype == RFL_DTYPE_F16) {
		if (!o->count.master_weights)
			return false;
	}
	o->count.dtype = RFL_DTYPE_BF16;
	o->count.master_weights = false;
	return true;
}

static bool plain_sgd(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (!o->count.training || o->count.optimizer == RFL_OPT_SGD)
		return false;
	o->count.optimizer = RFL_OPT_SGD;
	return true;
}

static bool fused_update(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (!o->count.training || o->update == RFL_UPDATE_FUSED)
		return false;
	o->update = RFL_UPDATE_FUSED;
	return true;
}

static bool no_accumulation(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (!o->count.training || o->accumulate <= 1)
		return false;
	o->accumulate = 1;
	return true;
}

static const struct {
	const char *option;
	bool (*apply)(const struct rfl_net *net, struct rfl_memory_options *o);
} helps[] = {
	{ "--checkpoint 1", checkpoint_all },  { "--precision bf16", store_bf16 },
	{ "--optimizer sgd", plain_sgd },      { "--update fused", fused_update },
	{ "--accumulate 1", no_accumulation },
};

/* Append "--option (peak 3 GiB)" where it lowers the peak of one sample. */
static enum rfl_rc add_help(const struct rfl_summary *s, const char *what,
			    const struct rfl_memory_options *options, struct rfl_buf *text,
			    struct rfl_err *err)
{
	struct rfl_memory *memory = NULL;
	char peak[RFL_NUM_MAX];
	enum rfl_rc rc = rfl_memory_new(s->net, options, &memory, err);

	if (rc == RFL_OK && memory->peak < s->fit->at.peak)
		rfl_buf_printf(text, "%s%s (peak %s)",
			       text->len ? ", " : " What would help: ", what,
			       rfl_num_bytes((double)memory->peak, peak, sizeof(peak)));
	rfl_memory_free(memory);
	return rc;
}

/* What each option that is not in use yet would make of the peak, and all of them together. */
static enum rfl_rc add_helps(const struct rfl_summary *s, struct rfl_buf *text, struct rfl_err *err)
{
	struct rfl_memory_options now = s->fit->at.options, all;
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	now.count.batch = 1;
	all = now;
	for (size_t i = 0; i < RFL_ARRAY_LEN(helps) && rc == RFL_OK; i++) {
		struct rfl_memory_options o = now;

		if (!helps[i].apply(s->net, &o))
			continue;
		(void)helps[i].apply(s->net, &all);
		rc = add_help(s, helps[i].option, &o, text, err);
		n++;
	}
	if (rc == RFL_OK && n > 1)
		rc = add_help(s, "all of these", &all, text, err);
	if (text->len)
		rfl_buf_putc(text, '.');
	return rc;
}

/* One sample is too much: say by how much, and what there is to do. */
static enum rfl_rc note_too_big(struct rfl_table *t, const struct rfl_summary *s,
				struct rfl_err *err)
{
	const struct rfl_fit *fit = s->fit;
	char peak[RFL_NUM_MAX], bytes[RFL_NUM_MAX];
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = add_helps(s, &text, err);
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

static void note_fit(struct rfl_table *t, const struct rfl_summary_options *options, bool context)
{
	rfl_table_note(t,
		       "Peak: the most that tensors take at any moment of the %s. Weights: with "
		       "buffers and 16-bit copies. Activations, gradients: the rest of the peak, "
		       "temporaries and the batch included. MiB = 2^20 bytes.",
		       options->train ? "step" : "pass");
	if (context)
		rfl_table_note(t,
			       "Largest context: at the batch beside it, in steps of one token, "
			       "up to the positions that the model has or %lld.",
			       (long long)RFL_FIT_MAX_CONTEXT);
	if (options->checkpoint)
		rfl_table_note(
			t,
			"Checkpointing: segments of %lld block%s run again in the backward pass.",
			(long long)options->checkpoint, options->checkpoint == 1 ? "" : "s");
	if (options->train && options->accumulate > 1)
		rfl_table_note(t, "The batch is of one pass; %lld passes make one update.",
			       (long long)options->accumulate);
}

static void put_heading(struct rfl_summary *const *summaries, size_t n,
			const struct rfl_summary_options *options,
			const struct rfl_fit_device *device, struct rfl_buf *out)
{
	if (n == 1)
		rfl_buf_printf(out, "%s, the largest batch that fits %s, ", summaries[0]->title,
			       device->name);
	else
		rfl_buf_printf(out, "The largest batch that fits %s, ", device->name);
	if (options->train)
		rfl_buf_printf(out, "training in %s with %s\n\n", options->precision,
			       rfl_optimizer_names[options->optimizer]);
	else
		rfl_buf_printf(out, "inference in %s\n\n", options->precision);
}

enum rfl_rc rfl_summary_fit_table(struct rfl_summary *const *summaries, size_t n,
				  const struct rfl_summary_options *options,
				  const struct rfl_fit_device *device, enum rfl_format format,
				  struct rfl_buf *out, struct rfl_err *err)
{
	bool context = rfl_summary_any_context(summaries, n);
	struct rfl_table *t = new_table(context);
	enum rfl_rc rc = RFL_OK;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	if (rfl_summary_for_people(format))
		put_heading(summaries, n, options, device, out);
	for (size_t i = 0; i < n; i++)
		add_row(t, summaries[i], context);
	note_device(t, device);
	note_fit(t, options, context);
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		if (!summaries[i]->fit->batch)
			rc = note_too_big(t, summaries[i], err);
	if (rc == RFL_OK)
		rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
