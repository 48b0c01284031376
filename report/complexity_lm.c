/* complexity_lm.c - tables of language models at inference. */
#include "report/complexity_lm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "report/complexity_impl.h"

const char *const rfl_lm_phase_names[] = { "prefill", "decode", "generate", NULL };

struct line {
	const char *model, *phase, *module, *layer, *operation, *bound;
	int64_t batch, past, tokens, layers;
	double params, active, flops, elementwise, bytes[RFL_LM_BYTES_COUNT], traffic, intensity;
	double time_s, token_s, tokens_per_s; /* NaN: no ceilings, or not of this row */
	int64_t ridge_weights, ridge_step;    /* 0: never; RFL_INT_UNKNOWN: not of this row */
	/* memory */
	double weights, cache, workspace, sum;
	int64_t largest_batch, largest_context;
};

enum {
	WHOLE = 1 << 0, /* rows are models */
	PARTS = 1 << 1,
	OPERATIONS = 1 << 2, /* rows are operations */
	LAYERS = 1 << 3,     /* of one layer */
	SCALES = 1 << 4,
	LINK = 1 << 5,
	TIME = 1 << 6,
	PROGRAM = 1 << 7,
};

#define COLUMN(kind, member, key, ...) RFL_COLUMN(kind, struct line, member, key, __VA_ARGS__)
#define MB(member, key, ...)           COLUMN(REAL, member, key, __VA_ARGS__, .scale = 1e6)

static void put_ridge(struct rfl_table *t, int64_t batch)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)batch);
	rfl_table_text(t, batch == RFL_INT_UNKNOWN ? NULL : batch == 0 ? "never" : text);
}

static void put_ridge_weights(struct rfl_table *t, const void *row)
{
	put_ridge(t, ((const struct line *)row)->ridge_weights);
}

static void put_ridge_step(struct rfl_table *t, const void *row)
{
	put_ridge(t, ((const struct line *)row)->ridge_step);
}

#define SETTINGS                                                        \
	COLUMN(TEXT, model, "model", "Model", .setting = true),         \
		COLUMN(TEXT, phase, "phase", "Phase", .setting = true), \
		COLUMN(INT, batch, "batch", "Batch", .setting = true),  \
		COLUMN(INT, past, "past", "Past", .setting = true)

static const struct rfl_column columns[] = {
	SETTINGS,
	COLUMN(INT, tokens, "tokens", "New", .setting = true),
	COLUMN(TEXT, module, "module", "Module", .when = PARTS),
	COLUMN(TEXT, operation, "operation", "Operation", .when = OPERATIONS),
	COLUMN(TEXT, layer, "layer", "Layer", .when = LAYERS),
	COLUMN(INT, layers, "layers", "Layers", .when = LAYERS),
	COLUMN(REAL, params, "params", "Params", .when = PROGRAM, .digits = 17),
	COLUMN(REAL, active, "active_params", "Active", .when = PROGRAM, .digits = 17),
	COLUMN(REAL, flops, "flops", "GFLOPs", .scale = 1e9),
	COLUMN(REAL, elementwise, "elementwise", "Elementwise (G)", .scale = 1e9, .when = PARTS),
	MB(bytes[RFL_LM_WEIGHTS], "weights_bytes", "Weights"),
	MB(bytes[RFL_LM_SCALES], "scales_bytes", "Scales", .when = SCALES),
	MB(bytes[RFL_LM_CACHE_READ], "cache_read_bytes", "Cache read"),
	MB(bytes[RFL_LM_CACHE_WRITTEN], "cache_written_bytes", "Cache written"),
	MB(bytes[RFL_LM_ACTIVATIONS], "activations_bytes", "Activations"),
	MB(bytes[RFL_LM_LINK], "link_bytes", "Link", .when = LINK),
	MB(traffic, "bytes", "Bytes", .when = PROGRAM),
	COLUMN(REAL, intensity, "flop_per_byte", "FLOP/B"),
	COLUMN(REAL, time_s, "time_s", "Min. ms", .scale = 1e-3, .when = TIME),
	COLUMN(REAL, token_s, "time_per_token_s", "ms/token", .scale = 1e-3, .when = TIME | WHOLE),
	COLUMN(REAL, tokens_per_s, "tokens_per_s", "Tokens/s", .when = TIME | WHOLE),
	COLUMN(TEXT, bound, "bound", "Bound", .when = TIME),
	{ .put = put_ridge_weights,
	  .key = "ridge_batch_weights",
	  .title = "Ridge: weights",
	  .when = TIME | WHOLE },
	{ .put = put_ridge_step,
	  .key = "ridge_batch_step",
	  .title = "Ridge: step",
	  .when = TIME | WHOLE },
};

static const struct rfl_column fit_columns[] = {
	SETTINGS,
	MB(weights, "weights_bytes", "Weights"),
	MB(cache, "cache_bytes", "Cache"),
	MB(workspace, "workspace_bytes", "Workspace"),
	MB(sum, "memory_bytes", "Sum"),
	COLUMN(INT, largest_batch, "largest_batch", "Largest batch"),
	COLUMN(INT, largest_context, "largest_context", "Largest context"),
};

/* The steps of a row: prefill, decode or both. */
struct phases {
	const struct rfl_lm_report *r;
	const struct rfl_lm_item *item;
	int64_t batch, past;
	size_t n;
	struct rfl_lm_run run[2];
};

static struct rfl_lm_run run_of(const struct phases *p, bool decode)
{
	const struct rfl_lm_report *r = p->r;
	const bool all = r->phase == RFL_LM_GENERATE;
	struct rfl_lm_run run = {
		.lm = &p->item->lm,
		.step = r->step,
		.steps = 1,
		.advance = rfl_lm_accepted(r->drafts, r->acceptance),
		.roof = p->item->roof.base.about ? &p->item->roof : NULL,
		.link_byte_per_s = r->link_byte_per_s,
	};

	run.step.formats = p->item->formats;
	run.step.batch = p->batch;
	run.step.decode = decode;
	run.step.past = decode || !all ? p->past : 0;
	run.step.tokens = decode ? 1 + r->drafts : all ? p->past : r->tokens;
	run.step.logits = decode ? run.step.tokens : 1;
	if (decode && all)
		run.steps = (int64_t)ceil((double)r->tokens / run.advance);
	return run;
}

static void find_phases(struct phases *p)
{
	if (p->r->phase != RFL_LM_DECODE)
		p->run[p->n++] = run_of(p, false);
	if (p->r->phase != RFL_LM_PREFILL)
		p->run[p->n++] = run_of(p, true);
}

static struct line line_of(const struct phases *p, const struct rfl_lm_run *run)
{
	return (struct line){
		.model = p->item->lm.name,
		.phase = run ? rfl_lm_phase_names[run->step.decode] : "generate",
		.batch = p->batch,
		.past = run ? run->step.past : 0,
		.tokens = run ? run->step.tokens * run->steps : p->past + p->r->tokens,
		.time_s = NAN,
		.token_s = NAN,
		.tokens_per_s = NAN,
		.ridge_weights = RFL_INT_UNKNOWN,
		.ridge_step = RFL_INT_UNKNOWN,
	};
}

static void set_counts(struct line *l, const struct rfl_lm_op *op, const struct rfl_lm_time *time)
{
	l->params = op->params;
	l->active = op->active;
	l->flops = op->flops;
	l->elementwise = op->elementwise;
	memcpy(l->bytes, op->bytes, sizeof(l->bytes));
	l->traffic = rfl_lm_traffic(op);
	l->intensity = l->traffic > 0 ? rfl_lm_intensity(op) : (double)NAN;
	l->time_s = rfl_lm_time_sum(time);
	l->bound = rfl_lm_time_bound(time);
}

/* Rows of the operations of a step: each, or sums by name or module. */
static void add_parts(struct rfl_table *t, const struct phases *p, const struct rfl_lm_run *run)
{
	const enum rfl_summary_by by = p->r->by;
	const struct rfl_lm_count *c = &run->count;
	bool done[RFL_ARRAY_LEN(c->ops)] = { false };

	for (size_t i = 0; i < c->n; i++) {
		struct rfl_lm_op sum = c->ops[i];
		struct rfl_lm_time time = run->times[i];
		struct line l = line_of(p, run);

		if (done[i])
			continue;
		if (by != RFL_SUMMARY_BY_LAYER) {
			struct rfl_lm_count same = { .n = 0 };

			time = (struct rfl_lm_time){ .limit_s = { 0 } };
			for (size_t k = i; k < c->n; k++) {
				const struct rfl_lm_op *op = &c->ops[k];

				if (by == RFL_SUMMARY_BY_KIND ? strcmp(op->name, sum.name) != 0
							      : strcmp(op->module, sum.module) != 0)
					continue;
				done[k] = true;
				same.ops[same.n++] = *op;
				rfl_lm_time_add(&time, &run->times[k], op->layers);
			}
			sum = rfl_lm_total(&same);
		}
		set_counts(&l, &sum, &time);
		l.module = c->ops[i].module;
		l.operation = c->ops[i].name;
		l.layer = c->ops[i].layer;
		l.layers = c->ops[i].layers;
		rfl_table_add(t, &l, 1, sizeof(l));
	}
}

/* A row per phase, and of several their sum. */
static void add_whole(struct rfl_table *t, const struct phases *p)
{
	struct rfl_lm_time all_time = { .limit_s = { 0 } };
	struct rfl_lm_op all = { .name = "" };
	struct line l;

	for (size_t i = 0; i < p->n; i++) {
		const struct rfl_lm_run *run = &p->run[i];
		const struct rfl_lm_op sum = rfl_lm_total(&run->count);
		const bool decode = run->step.decode;
		/* of each sequence: read in a prefill, generated in a decode */
		const double tokens =
			decode ? (double)run->steps * run->advance : (double)run->step.tokens;
		struct rfl_lm_time time = { .limit_s = { 0 } };

		for (size_t k = 0; k < run->count.n; k++)
			rfl_lm_time_add(&time, &run->times[k], run->count.ops[k].layers);
		l = line_of(p, run);
		set_counts(&l, &sum, &time);
		l.token_s = decode ? l.time_s / tokens : (double)NAN;
		l.tokens_per_s = (double)p->batch * tokens / l.time_s;
		if (decode && run->roof) {
			l.ridge_weights = rfl_lm_ridge_batch(run->lm, &run->step, run->roof, true);
			l.ridge_step = rfl_lm_ridge_batch(run->lm, &run->step, run->roof, false);
		}
		rfl_table_add(t, &l, 1, sizeof(l));
		rfl_lm_op_add(&all, &sum, 1);
		rfl_lm_time_add(&all_time, &time, 1);
		all.params = sum.params;
		all.active = sum.active;
	}
	if (p->n < 2)
		return;
	l = line_of(p, NULL);
	set_counts(&l, &all, &all_time);
	l.tokens_per_s = (double)(p->batch * p->r->tokens) / l.time_s;
	rfl_table_add(t, &l, 1, sizeof(l));
}

/* --- memory --- */

static void add_fit(struct rfl_table *t, const struct phases *p)
{
	const struct rfl_lm_report *r = p->r;
	const double bytes = (double)(r->device.memory_bytes - r->device.reserve_bytes);
	struct line l = line_of(p, &p->run[0]);

	l.phase = rfl_lm_phase_names[r->phase];
	l.past = p->past;
	l.largest_batch = l.largest_context = INT64_MAX;
	for (size_t i = 0; i < p->n; i++) {
		const struct rfl_lm_run *run = &p->run[i];
		struct rfl_lm_step last = run->step;
		int64_t batch, context;

		last.past += (int64_t)((double)(run->steps - 1) * run->advance);
		l.weights = run->count.weights_bytes;
		l.cache = run->count.cache_bytes;
		l.workspace = fmax(l.workspace, run->count.workspace_bytes);
		batch = rfl_lm_fit_batch(run->lm, &last, bytes);
		context = rfl_lm_fit_tokens(run->lm, &last, bytes);
		context += last.decode ? last.tokens : last.past;
		if (p->n > 1 && !last.decode) /* what is generated after the longest prompt */
			context += r->tokens;
		l.largest_batch = batch < l.largest_batch ? batch : l.largest_batch;
		l.largest_context = context < l.largest_context ? context : l.largest_context;
	}
	l.sum = l.weights + l.cache + l.workspace;
	rfl_table_add(t, &l, 1, sizeof(l));
}

/* --- notes --- */

static void note_item(struct rfl_table *t, const struct rfl_lm_report *r,
		      const struct rfl_lm_item *item)
{
	const struct rfl_lm_formats *f = &item->formats;
	struct rfl_lm_step whole = { .batch = 1, .tokens = 1, .logits = 1, .formats = *f };
	struct rfl_lm_op sum;
	struct rfl_lm_count c;
	const bool same = strcmp(f->experts.name, f->weights.name) == 0;
	char params[RFL_NUM_MAX], active[RFL_NUM_MAX], stored[32], cached[RFL_NUM_MAX];

	rfl_lm_count(&item->lm, &whole, &c);
	sum = rfl_lm_total(&c);
	rfl_num_si(sum.stored, "B", 4, stored, sizeof(stored));
	rfl_num_grouped((int64_t)sum.active, active);
	rfl_table_note(t,
		       "%s: %s parameters%s%s%s, %s; %s bytes of cache per token. Weights in "
		       "%s%s%s, cache in %s, matmuls in %s.",
		       item->lm.name, rfl_num_grouped((int64_t)sum.params, params),
		       item->lm.experts ? " (" : "", item->lm.experts ? active : "",
		       item->lm.experts ? " used by a token)" : "", stored,
		       rfl_num_grouped((int64_t)sum.cached, cached), f->weights.name,
		       same ? "" : ", experts in ", same ? "" : f->experts.name, f->cache.name,
		       f->activations.name);
	if (item->roof.base.about)
		rfl_table_note(t, "%s", item->roof.base.about);
	if (item->lm.experts && !r->device.memory_bytes)
		rfl_table_note(t,
			       "%s: the weights of experts are an expectation, as if each token "
			       "chose %lld of %lld at random.",
			       item->lm.name, (long long)item->lm.active,
			       (long long)item->lm.experts);
}

static void note_all(struct rfl_table *t, const struct rfl_lm_report *r, bool times)
{
	char all[32], reserve[32];

	if (r->device.memory_bytes) {
		rfl_num_bytes((double)r->device.memory_bytes, all, sizeof(all));
		rfl_num_bytes((double)r->device.reserve_bytes, reserve, sizeof(reserve));
		rfl_table_note(t,
			       "%s: %s, of which %s are reserved (--reserve). Largest batch: at "
			       "this context. Largest context: at this batch, with the new tokens. "
			       "Workspace: the residual stream and the largest activations of an "
			       "operation. All in MB (10^6 bytes).",
			       r->device.name, all, r->device.reserve_bytes ? reserve : "none");
	} else {
		rfl_table_note(
			t,
			"FLOPs: 2 per multiply-add of matmuls. Weights to activations: MB (10^6 "
			"bytes) moved, %s, of %s.",
			rfl_fusion_names[r->step.fusion],
			r->by == RFL_SUMMARY_BY_LAYER ? "one layer of each kind"
						      : "the whole pass");
	}
	if (times)
		rfl_table_note(t, "Times are bounds: each operation takes its longest limit, and "
				  "operations do not overlap. The time of a prefill is that to the "
				  "first token. Tokens/s: read in a prefill, otherwise generated.");
	if (times && r->by == RFL_SUMMARY_BY_MODEL && r->phase != RFL_LM_PREFILL)
		rfl_table_note(t,
			       "Ridge: the batch at which the FLOPs per byte of the matmuls with "
			       "weights, and of the whole step, reach the ridge point.");
	if (r->drafts)
		rfl_table_note(
			t,
			"A decode step verifies %lld drafted tokens and adds %.3g tokens, if "
			"each is accepted with probability %g; the draft model is not "
			"counted.",
			(long long)r->drafts, rfl_lm_accepted(r->drafts, r->acceptance),
			r->acceptance);
	if (r->step.tensor > 1)
		rfl_table_note(
			t,
			"Tensor parallel: the figures of one of %lld devices; two all-reduces "
			"per layer send 2 (N - 1) / N of their data each%s.",
			(long long)r->step.tensor,
			r->link_byte_per_s > 0 ? "" : ", in no time without --link");
	if (r->step.pipeline > 1)
		rfl_table_note(
			t,
			"Pipeline parallel: the time of a pass through all %lld stages; with "
			"all of them busy, at most %lld times the tokens per second.",
			(long long)r->step.pipeline, (long long)r->step.pipeline);
}

static unsigned columns_of(const struct rfl_lm_report *r, bool people)
{
	unsigned when = people ? 0 : PROGRAM;

	when |= r->by == RFL_SUMMARY_BY_MODEL ? WHOLE : PARTS;
	when |= r->by == RFL_SUMMARY_BY_KIND || r->by == RFL_SUMMARY_BY_LAYER ? OPERATIONS : 0U;
	when |= r->by == RFL_SUMMARY_BY_LAYER ? LAYERS : 0U;
	when |= r->step.tensor > 1 || r->step.pipeline > 1 ? LINK : 0U;
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_lm_formats *f = &r->items[i].formats;

		when |= f->weights.scale_bits || f->experts.scale_bits || f->head.scale_bits ||
					f->cache.scale_bits
				? SCALES
				: 0U;
		when |= r->items[i].roof.base.about ? TIME : 0U;
	}
	return when;
}

void rfl_complexity_lm_table(const struct rfl_lm_report *r, enum rfl_format format,
			     struct rfl_buf *out)
{
	const bool fit = r->device.memory_bytes > 0;
	const unsigned when = columns_of(r, rfl_format_for_people(format));
	struct rfl_table *t = fit ? rfl_table_new(fit_columns, RFL_ARRAY_LEN(fit_columns))
				  : rfl_table_of(columns, RFL_ARRAY_LEN(columns), when);
	struct phases *p = rfl_alloc_array(1, sizeof(*p));

	for (size_t i = 0; i < r->n * r->nbatches * r->npasts; i++) {
		*p = (struct phases){ .r = r,
				      .item = &r->items[i / r->nbatches / r->npasts],
				      .batch = r->batches[i / r->npasts % r->nbatches],
				      .past = r->pasts[i % r->npasts] };
		find_phases(p);
		for (size_t k = 0; k < p->n; k++)
			rfl_lm_run(&p->run[k]);
		if (fit)
			add_fit(t, p);
		else if (r->by == RFL_SUMMARY_BY_MODEL)
			add_whole(t, p);
		for (size_t k = 0; k < p->n && !fit && r->by != RFL_SUMMARY_BY_MODEL; k++)
			add_parts(t, p, &p->run[k]);
	}
	free(p);
	for (size_t i = 0; i < r->n; i++)
		note_item(t, r, &r->items[i]);
	note_all(t, r, !fit && (when & TIME));
	rfl_table_finish(t, format, out);
}
