/*
 * complexity_table.c - the tables of work and memory, with what a reader must know above and under
 * them.
 */
#include "report/complexity_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static struct rfl_summary_view view_of(const struct rfl_summary *s,
				       const struct rfl_summary_options *options,
				       const struct rfl_summary_row *row)
{
	const struct rfl_summary_row *total = &s->rows->total;

	return (struct rfl_summary_view){
		.s = s,
		.options = options,
		.row = row,
		.work = options->train ? &row->training : &row->forward,
		.total = options->train ? &total->training : &total->forward,
		.memory = options->train ? s->training_memory : s->forward_memory,
	};
}

static void add_row(struct rfl_table *t, const struct rfl_summary_columns *c,
		    const struct rfl_summary_view *v)
{
	for (size_t i = 0; i < c->n; i++)
		c->items[i]->cell(v, c->items[i]->arg, t);
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

/* Rows of the input and of reshapes say nothing where many operations are gathered. */
static bool is_empty(const struct rfl_summary_view *v)
{
	int level = v->options->fusion < 0 ? RFL_FUSION_UNFUSED : v->options->fusion;
	bool gathered = v->options->by == RFL_BY_KIND || v->options->by == RFL_BY_MODULE;

	return gathered && !v->work->macs && !v->work->elementwise && !v->work->bytes[level] &&
	       !v->row->params && !v->row->saved_bytes;
}

/* The rows at the summary's batch, all in order or the costliest first. `places` has room. */
static void add_rows(struct rfl_table *t, const struct rfl_summary_columns *c,
		     const struct rfl_summary *s, const struct rfl_summary_options *options,
		     enum rfl_format format, struct place *places)
{
	bool people = rfl_summary_for_people(format);
	size_t kept = 0;

	for (size_t i = 0; i < s->rows->n; i++) {
		struct rfl_summary_view v = view_of(s, options, &s->rows->rows[i]);

		if ((v.row->step_only && !options->train) || (people && is_empty(&v)))
			continue;
		places[kept] = (struct place){ v.row, v.work->macs, v.work->bytes[0], kept };
		kept++;
	}
	if (options->top) {
		qsort(places, kept, sizeof(*places), by_cost);
		kept = kept < options->top ? kept : options->top;
	}
	for (size_t i = 0; i < kept; i++) {
		struct rfl_summary_view v = view_of(s, options, places[i].row);

		add_row(t, c, &v);
	}
	if (people && options->by != RFL_BY_MODEL) {
		struct rfl_summary_view v = view_of(s, options, &s->rows->total);

		add_row(t, c, &v);
	}
}

/* A table and its columns. */
struct sheet {
	struct rfl_table *table; /* NULL: not shown */
	struct rfl_summary_columns columns;
};

/* One summary at every batch: its rows, and one row of memory for each batch. */
static enum rfl_rc add_summary(struct sheet *work, struct sheet *memory, struct rfl_summary *s,
			       const struct rfl_summary_options *options, enum rfl_format format,
			       struct rfl_err *err)
{
	struct place *places = rfl_alloc_array((size_t)s->net->nnodes + 2, sizeof(*places));
	enum rfl_rc rc = RFL_OK;

	if (!places)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	for (size_t i = 0; i < options->nbatches && rc == RFL_OK; i++) {
		rc = rfl_summary_at(s, options->batches[i], err);
		if (rc != RFL_OK)
			break;
		rfl_summary_rows_update(s->rows, s, options->roof);
		add_rows(work->table, &work->columns, s, options, format, places);
		if (memory->table) {
			struct rfl_summary_view v = view_of(s, options, &s->rows->total);

			add_row(memory->table, &memory->columns, &v);
		}
	}
	free(places);
	rfl_summary_rest(s);
	return rc;
}

/* --- what a reader must know --- */

/* "ResNet-50, " and the like in front of what the table is of. */
static void put_heading(struct rfl_summary *const *summaries, size_t n,
			const struct rfl_summary_options *options, const char *what,
			struct rfl_buf *out)
{
	static const char *const parts[] = { "", ", by module", ", by layer",
					     ", by kind of operation" };

	if (n == 1)
		rfl_buf_printf(out, "%s, %s", summaries[0]->title, what);
	else
		rfl_buf_printf(out, "%c%s", toupper((unsigned char)what[0]), what + 1);
	if (options->train)
		rfl_buf_printf(out, " of one training step in %s with %s", options->precision,
			       rfl_optimizer_names[options->optimizer]);
	else
		rfl_buf_printf(out, " of one inference in %s", options->precision);
	rfl_buf_printf(out, "%s\n\n", parts[options->by]);
}

static bool has(const struct rfl_summary_columns *c, const char *key)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->items[i]->column.key, key) == 0)
			return true;
	return false;
}

static bool has_levels(const struct rfl_summary_columns *c)
{
	for (size_t i = 0; i < c->n; i++)
		for (int level = 0; level < RFL_FUSION_COUNT; level++)
			if (strstr(c->items[i]->column.key, rfl_fusion_names[level]))
				return true;
	return false;
}

static void note_work(struct rfl_table *t, const struct rfl_summary_columns *c,
		      const struct rfl_summary_options *options)
{
	bool per_sample = has(c, "forward_macs") || has(c, "forward_flops");

	rfl_table_note(t, "%s", rfl_summary_convention);
	if (has(c, "elementwise"))
		rfl_table_note(t,
			       "Elem.: elementwise operations, as of normalisations, "
			       "activations, pooling%s, and additions of a bias.",
			       options->train ? ", loss and update" : "");
	if (strcmp(options->precision, "amp") == 0)
		rfl_table_note(t,
			       "amp: activations and a copy of the weights move as 2 bytes each, "
			       "also where autocast computes in 4; parameters, gradients and the "
			       "state of the optimizer take 4.");
	if (options->train)
		rfl_table_note(t,
			       "A step is forward, gradients by input (dgrad) and by weight "
			       "(wgrad), and the %s update; the first layer has %s dgrad.%s",
			       rfl_optimizer_names[options->optimizer],
			       options->input_grad ? "a" : "no",
			       options->accumulate > 1 ? " It is of one pass and one update." : "");
	if (per_sample)
		rfl_table_note(
			t, "GMACs, GFLOPs%s are per sample%s.",
			has(c, "training_flops") ? " and Train GFLOPs" : "",
			has(c, "batch")
				? "; the columns to the right of Batch are totals for the batch"
				: "");
	if (options->causal_half)
		rfl_table_note(t, "Products under a causal mask: the triangle only.");
	if (options->checkpoint)
		rfl_table_note(
			t,
			"Checkpointing: segments of %lld block%s run again in the backward pass.",
			(long long)options->checkpoint, options->checkpoint == 1 ? "" : "s");
	if (options->nfrozen)
		rfl_table_note(t, "Frozen parameters have no gradient and no update.");
	if (options->top && options->by != RFL_BY_MODEL)
		rfl_table_note(t, "The %zu rows with the most MACs of each model and batch.",
			       options->top);
}

static void note_levels(struct rfl_table *t, const struct rfl_summary_columns *c,
			const struct rfl_summary_options *options)
{
	if (!has_levels(c))
		return;
	rfl_table_note(
		t,
		"Bytes to and from memory, MB = 10^6 - unfused: every operation reads its "
		"inputs and writes its output; fused: elementwise steps ride on the "
		"operation before them%s. FLOP/B: FLOPs per byte, elementwise operations left out.",
		options->fusion >= 0 || options->by == RFL_BY_MODEL
			? "; compulsory: parameters, input and result once"
			: "");
}

/* In the order of enum rfl_update. */
static const char *const update_texts[] = {
	"foreach, all parameters at once",
	"for-loop, one parameter after the other",
	"fused, in one kernel",
};

static void note_memory(struct rfl_table *t, const struct rfl_summary_columns *c,
			const struct rfl_summary_options *options)
{
	if (has(c, "saved_bytes"))
		rfl_table_note(t, "Saved: what the forward pass keeps for the backward pass. MiB = "
				  "2^20 bytes.");
	if (!has(c, "peak_bytes"))
		return;
	rfl_table_note(
		t,
		"Peak: the most that tensors take at any moment, on a %s; workspaces and the "
		"context of the device come on top.",
		options->device == RFL_MEMORY_CPU ? "CPU" : "GPU");
	if (options->train)
		rfl_table_note(t, "Update (--update): %s%s.", update_texts[options->update],
			       options->accumulate > 1
				       ? ", gradients accumulated over several passes"
				       : "");
}

static void note_roof(struct rfl_table *t, const struct rfl_summary_roof *roof)
{
	rfl_table_note(t, "%s", roof->about);
	rfl_table_note(
		t,
		"Least time: every operation and pass takes the longest of its multiply-adds "
		"(compute), its elementwise operations (vector) and its %s bytes (memory) at "
		"these rates; the sum is a lower bound where operations follow one another. "
		"Bound: what most of that time goes to.",
		rfl_fusion_names[roof->fusion]);
}

static void note_report(struct rfl_table *t)
{
	rfl_table_note(t,
		       "A MAC is one multiply-add; FLOPs = 2 x MACs. Reports that print 8.178 G "
		       "\"MACs\" for ResNet-50 print its FLOPs: their number is 2 times the MACs "
		       "(and some, as that of VGG-16, add a FLOP pair per bias).");
}

static void notes(struct rfl_table *t, const struct rfl_summary_columns *c,
		  const struct rfl_summary_options *options)
{
	bool roof = false;

	if (c->report) {
		note_report(t);
		return;
	}
	for (size_t i = 0; i < c->n; i++)
		roof |= c->items[i]->roof;
	note_work(t, c, options);
	note_levels(t, c, options);
	/* where the memory has a table of its own, it has the note too */
	if (options->ncolumns)
		note_memory(t, c, options);
	if (roof)
		note_roof(t, options->roof);
}

/* --- tables --- */

static enum rfl_rc make(struct sheet *sheet, struct rfl_err *err)
{
	sheet->table = rfl_table_new(sheet->columns.columns, sheet->columns.n);
	return sheet->table ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
}

static enum rfl_rc render(struct sheet *work, struct sheet *memory,
			  struct rfl_summary *const *summaries, size_t n,
			  const struct rfl_summary_options *options, enum rfl_format format,
			  struct rfl_buf *out, struct rfl_err *err)
{
	const struct rfl_summary_options of_models = { .train = true,
						       .precision = options->precision,
						       .optimizer = options->optimizer };
	enum rfl_rc rc;

	if (rfl_summary_for_people(format) && !options->ncolumns)
		put_heading(summaries, n, options, "work and traffic", out);
	notes(work->table, &work->columns, options);
	rc = rfl_table_render(work->table, format, out, err);
	if (rc != RFL_OK || !memory->table)
		return rc;
	rfl_buf_putc(out, '\n');
	put_heading(summaries, n, &of_models, "memory", out);
	note_memory(memory->table, &memory->columns, options);
	return rfl_table_render(memory->table, format, out, err);
}

enum rfl_rc rfl_summary_table(struct rfl_summary *const *summaries, size_t n,
			      const struct rfl_summary_options *options, enum rfl_format format,
			      struct rfl_buf *out, struct rfl_err *err)
{
	struct sheet work = { .table = NULL }, memory = { .table = NULL };
	enum rfl_rc rc = rfl_summary_columns_of(summaries, n, options, format, &work.columns, err);

	if (rc == RFL_OK)
		rc = make(&work, err);
	/* machines find the memory in the one table that they read */
	if (rc == RFL_OK && rfl_summary_for_people(format) && !options->ncolumns &&
	    options->train && options->memory) {
		rfl_summary_columns_of_memory(summaries, n, options, &memory.columns);
		rc = make(&memory, err);
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = add_summary(&work, &memory, summaries[i], options, format, err);
	if (rc == RFL_OK)
		rc = render(&work, &memory, summaries, n, options, format, out, err);
	rfl_table_free(work.table);
	rfl_table_free(memory.table);
	return rc;
}
