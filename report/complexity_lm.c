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
	const char *weights_format, *experts_format, *head_format, *activations_format;
	const char *cache_format, *matmuls, *fusion, *causal;
	int64_t batch, past, layers, drafts, tensor, pipeline;
	double acceptance;
	double tokens; /* new ones: read in a prefill, else generated */
	double params, active, flops, elementwise, bytes[RFL_LM_BYTES_COUNT], traffic, intensity;
	double time_s, token_s, tokens_per_s; /* NaN: no ceilings, or not of this row */
	bool ridge;
	int64_t ridge_weights,
		ridge_step; /* RFL_INT_UNKNOWN: not of this row or, if `ridge`, never */
	/* memory */
	double weights, cache, workspace, sum;
	int64_t largest_batch, largest_context; /* RFL_INT_UNKNOWN: unlimited */
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
	PEOPLE = 1 << 8,
	FUSION = 1 << 9,
	EXPERTS = 1 << 10,
	DRAFTS = 1 << 11,
	TENSOR = 1 << 12,
	PIPELINE = 1 << 13,
};

#define COLUMN(kind, member, key, ...) RFL_COLUMN(kind, struct line, member, key, __VA_ARGS__)
#define MB(member, key, ...)           COLUMN(REAL, member, key, __VA_ARGS__, .scale = 1e6)

/* A number for people, or a word if there is none. */
static void put_or(struct rfl_table *t, int64_t value, const char *word)
{
	if (value == RFL_INT_UNKNOWN)
		rfl_table_text(t, word);
	else
		rfl_table_int(t, value);
}

static void put_ridge_weights(struct rfl_table *t, const void *row)
{
	const struct line *l = row;

	put_or(t, l->ridge_weights, l->ridge ? "never" : NULL);
}

static void put_ridge_step(struct rfl_table *t, const void *row)
{
	const struct line *l = row;

	put_or(t, l->ridge_step, l->ridge ? "never" : NULL);
}

static void put_context(struct rfl_table *t, const void *row)
{
	put_or(t, ((const struct line *)row)->largest_context, "unlimited");
}

/* An integer with a word for people and null for programs. */
#define INT_OR_WORD(put_, member, key_, title_, when_) \
	{ .put = put_,                                 \
	  .kind = RFL_COLUMN_INT,                      \
	  .key = key_,                                 \
	  .title = title_,                             \
	  .when = PEOPLE | (when_) },                  \
		COLUMN(INT, member, key_, title_, .when = PROGRAM | (when_))

#define SETTINGS                                                                   \
	COLUMN(TEXT, model, "model", "Model", .setting = true),                    \
		COLUMN(TEXT, phase, "phase", "Phase", .setting = true),            \
		COLUMN(TEXT, fusion, "fusion", "Fusion", .when = PEOPLE | FUSION), \
		COLUMN(INT, batch, "batch", "Batch", .setting = true),             \
		COLUMN(INT, past, "past", "Past", .setting = true)

/* What else the numbers depend on; for people, notes. */
#define RECORD                                                                                  \
	COLUMN(TEXT, weights_format, "weights_format", "Weights in", .when = PROGRAM),          \
		COLUMN(TEXT, experts_format, "experts_format", "Experts in",                    \
		       .when = PROGRAM | EXPERTS),                                              \
		COLUMN(TEXT, head_format, "head_format", "Head in", .when = PROGRAM),           \
		COLUMN(TEXT, activations_format, "activations_format", "Activations in",        \
		       .when = PROGRAM),                                                        \
		COLUMN(TEXT, cache_format, "cache_format", "Cache in", .when = PROGRAM),        \
		COLUMN(TEXT, matmuls, "matmuls", "Matmuls in", .when = PROGRAM),                \
		COLUMN(TEXT, fusion, "fusion", "Fusion", .when = PROGRAM),                      \
		COLUMN(TEXT, causal, "causal", "Causal", .when = PROGRAM),                      \
		COLUMN(INT, drafts, "draft_tokens", "Drafts", .when = PROGRAM | DRAFTS),        \
		COLUMN(REAL, acceptance, "acceptance", "Acceptance", .when = PROGRAM | DRAFTS), \
		COLUMN(INT, tensor, "tensor_parallel", "Devices", .when = PROGRAM | TENSOR),    \
		COLUMN(INT, pipeline, "pipeline_parallel", "Stages", .when = PROGRAM | PIPELINE)

/* With drafts a decode step adds an expected number of tokens, which is no integer. */
static void put_tokens(struct rfl_table *t, const void *row)
{
	const double tokens = ((const struct line *)row)->tokens;

	if (tokens == floor(tokens))
		rfl_table_int(t, (int64_t)tokens);
	else
		rfl_table_real(t, tokens);
}

static const struct rfl_column columns[] = {
	SETTINGS,
	{ .put = put_tokens,
	  .kind = RFL_COLUMN_INT,
	  .key = "tokens",
	  .title = "New",
	  .setting = true },
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
	INT_OR_WORD(put_ridge_weights, ridge_weights, "ridge_batch_weights", "Ridge: weights",
		    TIME | WHOLE),
	INT_OR_WORD(put_ridge_step, ridge_step, "ridge_batch_step", "Ridge: step", TIME | WHOLE),
	RECORD,
};

static const struct rfl_column fit_columns[] = {
	SETTINGS,
	MB(weights, "weights_bytes", "Weights"),
	MB(cache, "cache_bytes", "Cache"),
	MB(workspace, "workspace_bytes", "Workspace"),
	MB(sum, "memory_bytes", "Sum"),
	COLUMN(INT, largest_batch, "largest_batch", "Largest batch"),
	INT_OR_WORD(put_context, largest_context, "largest_context", "Largest context", 0),
	RECORD,
};

/* The steps of a row: prefill, decode or both. */
struct phases {
	const struct rfl_lm_report *r;
	const struct rfl_lm_item *item;
	int64_t batch, past;
	enum rfl_fusion fusion;
	size_t n;
	struct rfl_lm_run run[2];
};

static double advance_of(const struct rfl_lm_report *r)
{
	return rfl_lm_accepted(r->drafts, r->acceptance);
}

/* Decode steps: one, or those that add the new tokens of generate. */
static int64_t steps_of(const struct rfl_lm_report *r)
{
	return r->phase == RFL_LM_GENERATE ? (int64_t)ceil((double)r->tokens / advance_of(r)) : 1;
}

/* Tokens in the cache before the last of several decode steps. */
static int64_t last_past(int64_t past, int64_t steps, double advance)
{
	return past + (int64_t)((double)(steps - 1) * advance);
}

int64_t rfl_complexity_lm_context(const struct rfl_lm_report *r, int64_t past)
{
	if (r->phase == RFL_LM_PREFILL)
		return past + r->tokens;
	return last_past(past, steps_of(r), advance_of(r)) + 1 + r->drafts;
}

static struct rfl_lm_run run_of(const struct phases *p, bool decode)
{
	const struct rfl_lm_report *r = p->r;
	const bool all = r->phase == RFL_LM_GENERATE;
	struct rfl_lm_run run = {
		.lm = &p->item->lm,
		.step = r->step,
		.steps = 1,
		.advance = advance_of(r),
		.roof = p->item->roof.base.about ? &p->item->roof : NULL,
		.link_byte_per_s = r->link_byte_per_s,
	};

	run.step.formats = p->item->formats;
	run.step.batch = p->batch;
	run.step.decode = decode;
	run.step.past = decode || !all ? p->past : 0;
	run.step.tokens = decode ? 1 + r->drafts : all ? p->past : r->tokens;
	run.step.logits = decode ? run.step.tokens : 1;
	run.step.fusion = p->fusion;
	if (decode)
		run.steps = steps_of(r);
	return run;
}

static void find_phases(struct phases *p)
{
	if (p->r->phase != RFL_LM_DECODE)
		p->run[p->n++] = run_of(p, false);
	if (p->r->phase != RFL_LM_PREFILL)
		p->run[p->n++] = run_of(p, true);
}

/* The new tokens of each sequence: read in a prefill, else generated. */
static double tokens_of(const struct phases *p, const struct rfl_lm_run *run)
{
	if (!run->step.decode)
		return (double)run->step.tokens;
	return p->r->phase == RFL_LM_GENERATE ? (double)p->r->tokens : run->advance;
}

static struct line line_of(const struct phases *p, const struct rfl_lm_run *run)
{
	const struct rfl_lm_formats *f = &p->item->formats;

	return (struct line){
		.model = p->item->lm.name,
		.weights_format = f->weights.name,
		.experts_format = p->item->lm.experts ? f->experts.name : NULL,
		.head_format = f->head.name,
		.activations_format = f->activations.name,
		.cache_format = f->cache.name,
		.causal = p->r->step.causal_half ? "half" : "full",
		.matmuls = p->item->matmuls,
		.drafts = p->r->drafts,
		.acceptance = p->r->acceptance,
		.tensor = p->r->step.tensor,
		.pipeline = p->r->step.pipeline,
		.fusion = rfl_fusion_names[p->fusion],
		.phase = run ? rfl_lm_phase_names[run->step.decode] : "generate",
		.batch = p->batch,
		.past = run ? run->step.past : 0,
		.tokens = run ? tokens_of(p, run) : (double)(p->past + p->r->tokens),
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

static int64_t ridge_of(const struct rfl_lm_run *run, bool weights_only)
{
	const int64_t batch = rfl_lm_ridge_batch(run->lm, &run->step, run->roof, weights_only);

	return batch ? batch : RFL_INT_UNKNOWN;
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
		const double tokens = tokens_of(p, run);
		struct rfl_lm_time time = { .limit_s = { 0 } };

		for (size_t k = 0; k < run->count.n; k++)
			rfl_lm_time_add(&time, &run->times[k], run->count.ops[k].layers);
		l = line_of(p, run);
		set_counts(&l, &sum, &time);
		l.token_s = decode ? l.time_s / tokens : (double)NAN;
		l.tokens_per_s = (double)p->batch * tokens / l.time_s;
		l.ridge = decode && run->roof;
		if (l.ridge) {
			l.ridge_weights = ridge_of(run, true);
			l.ridge_step = ridge_of(run, false);
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

/* The largest context of a step, with its new tokens; 0: none fits. RFL_LM_FIT_MAX: unlimited. */
static int64_t largest_context(const struct rfl_lm_run *run, const struct rfl_lm_step *last,
			       double bytes)
{
	const int64_t tokens = rfl_lm_fit_tokens(run->lm, last, bytes);

	if (tokens == RFL_LM_FIT_MAX)
		return tokens;
	return tokens < (last->decode ? 0 : 1) ? 0
	       : last->decode                  ? tokens + last->tokens
					       : tokens + last->past;
}

static void add_fit(struct rfl_table *t, const struct phases *p)
{
	const struct rfl_lm_report *r = p->r;
	const double bytes = (double)(r->device.memory_bytes - r->device.reserve_bytes);
	struct line l = line_of(p, &p->run[0]);

	l.phase = rfl_lm_phase_names[r->phase];
	l.past = p->past;
	l.largest_batch = l.largest_context = RFL_LM_FIT_MAX;
	for (size_t i = 0; i < p->n; i++) {
		const struct rfl_lm_run *run = &p->run[i];
		const struct rfl_lm_count *c = &run->count;
		const double sum = c->weights_bytes + c->cache_bytes + c->workspace_bytes;
		struct rfl_lm_step last = run->step;
		int64_t batch, context;

		last.past = last_past(last.past, run->steps, run->advance);
		if (sum > l.sum) { /* the phase that needs more */
			l.weights = c->weights_bytes;
			l.cache = c->cache_bytes;
			l.workspace = c->workspace_bytes;
			l.sum = sum;
		}
		batch = rfl_lm_fit_batch(run->lm, &last, bytes);
		context = largest_context(run, &last, bytes);
		/* what is generated after the longest prompt */
		if (p->n > 1 && !last.decode && context > 0 && context < RFL_LM_FIT_MAX)
			context += r->tokens;
		l.largest_batch = batch < l.largest_batch ? batch : l.largest_batch;
		l.largest_context = context < l.largest_context ? context : l.largest_context;
	}
	if (l.largest_context == RFL_LM_FIT_MAX)
		l.largest_context = RFL_INT_UNKNOWN;
	rfl_table_add(t, &l, 1, sizeof(l));
}

/* --- notes --- */

static void note_item(struct rfl_table *t, const struct rfl_lm_report *r,
		      const struct rfl_lm_item *item, bool times)
{
	const struct rfl_lm_formats *f = &item->formats;
	const bool moe = item->lm.experts > 0;
	struct rfl_lm_step whole = { .batch = 1, .tokens = 1, .logits = 1, .formats = *f };
	struct rfl_lm_op sum;
	struct rfl_lm_count c;
	const bool same = !moe || strcmp(f->experts.name, f->weights.name) == 0;
	const bool same_head = strcmp(f->head.name, f->weights.name) == 0;
	char params[RFL_NUM_MAX], active[RFL_NUM_MAX], stored[32], cached[RFL_NUM_MAX];

	rfl_lm_count(&item->lm, &whole, &c);
	sum = rfl_lm_total(&c);
	rfl_num_si(sum.stored, "B", 4, stored, sizeof(stored));
	rfl_num_grouped((int64_t)sum.active, active);
	rfl_table_note(t,
		       "%s: %s parameters%s%s%s, %s; %s bytes of cache per token%s. Weights in "
		       "%s%s%s%s%s, cache in %s, matmuls in %s.",
		       item->lm.name, rfl_num_grouped((int64_t)sum.params, params), moe ? " (" : "",
		       moe ? active : "", moe ? " used by a token)" : "", stored,
		       rfl_num_grouped((int64_t)sum.cached, cached),
		       item->lm.window_layers ? " until the windows are full" : "", f->weights.name,
		       same ? "" : ", experts in ", same ? "" : f->experts.name,
		       same_head ? "" : ", head in ", same_head ? "" : f->head.name, f->cache.name,
		       item->matmuls);
	if (times)
		rfl_table_note(t, "%s", item->roof.base.about);
	if (moe && !r->device.memory_bytes)
		rfl_table_note(t,
			       "%s: the weights of experts are an expectation, as if each token "
			       "chose %lld of %lld at random.",
			       item->lm.name, (long long)item->lm.active,
			       (long long)item->lm.experts);
}

static void note_devices(struct rfl_table *t, const struct rfl_lm_report *r, bool times)
{
	const char *reduces = "two all-reduces per layer send";
	const bool fit = r->device.memory_bytes > 0;
	size_t parallel = 0;

	for (size_t i = 0; i < r->n; i++)
		parallel += (r->items[i].lm.traits & RFL_LM_PARALLEL) != 0;
	if (parallel)
		reduces = parallel == r->n ? "one all-reduce per layer sends"
					   : "one or two all-reduces per layer send";
	if (r->step.tensor > 1 && fit)
		rfl_table_note(t, "Tensor parallel: the memory of one of %lld devices.",
			       (long long)r->step.tensor);
	else if (r->step.tensor > 1)
		rfl_table_note(
			t,
			"Tensor parallel: the figures of one of %lld devices; %s 2 (N - 1) / "
			"N of the data%s.",
			(long long)r->step.tensor, reduces,
			!times || r->link_byte_per_s > 0 ? "" : ", in no time without --link");
	if (r->step.pipeline > 1 && fit)
		rfl_table_note(
			t, "Pipeline parallel: the memory of the stage that holds most of %lld.",
			(long long)r->step.pipeline);
	else if (r->step.pipeline > 1 && times)
		rfl_table_note(
			t,
			"Pipeline parallel: the time of a pass through all %lld stages; with "
			"all of them busy, at most %lld times the tokens per second.",
			(long long)r->step.pipeline, (long long)r->step.pipeline);
}

static void note_all(struct rfl_table *t, const struct rfl_lm_report *r, bool times)
{
	const bool masks = r->phase != RFL_LM_DECODE || r->drafts > 0;
	char all[32], reserve[32];

	if (r->device.memory_bytes) {
		rfl_num_bytes((double)r->device.memory_bytes, all, sizeof(all));
		rfl_num_bytes((double)r->device.reserve_bytes, reserve, sizeof(reserve));
		rfl_table_note(t,
			       "%s: %s, of which %s are reserved (--reserve). Largest batch: at "
			       "this context. Largest context: at this batch, with the new tokens. "
			       "Workspace: the residual stream and the largest activations of an "
			       "operation. All in MB (10^6 bytes)%s.",
			       r->device.name, all, r->device.reserve_bytes ? reserve : "none",
			       r->phase == RFL_LM_GENERATE ? ", of the phase that needs more" : "");
	} else {
		rfl_table_note(t,
			       "FLOPs: 2 per multiply-add of matmuls%s. Weights to activations: MB "
			       "(10^6 bytes) moved, %s%s%s.",
			       !masks                ? ""
			       : r->step.causal_half ? ", of attention those that are not masked"
						     : ", with the masked ones, which kernels skip",
			       r->nfusions > 1 ? "" : rfl_fusion_names[r->fusions[0]],
			       r->nfusions > 1 ? "" : ", ",
			       r->by == RFL_SUMMARY_BY_LAYER ? "of one layer of each kind"
							     : "of the whole pass");
	}
	if (times)
		rfl_table_note(t,
			       "Times are minimum times of operations one after another, each with "
			       "its longest limit.%s The time of a prefill is that to the first "
			       "token. Tokens/s: read in a prefill, otherwise generated.",
			       !masks || r->step.causal_half ? ""
							     : " With --causal full they are no "
							       "lower bound.");
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
	note_devices(t, r, times);
}

static unsigned columns_of(const struct rfl_lm_report *r, bool people)
{
	unsigned when = people ? PEOPLE : PROGRAM;

	when |= r->by == RFL_SUMMARY_BY_MODEL ? WHOLE : PARTS;
	when |= r->by == RFL_SUMMARY_BY_KIND || r->by == RFL_SUMMARY_BY_LAYER ? OPERATIONS : 0U;
	when |= r->by == RFL_SUMMARY_BY_LAYER ? LAYERS : 0U;
	when |= r->nfusions > 1 ? FUSION : 0U;
	when |= r->drafts ? DRAFTS : 0U;
	when |= r->step.tensor > 1 ? TENSOR | LINK : 0U;
	when |= r->step.pipeline > 1 ? PIPELINE | LINK : 0U;
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_lm_formats *f = &r->items[i].formats;

		when |= f->weights.scale_bits || f->experts.scale_bits || f->head.scale_bits ||
					f->cache.scale_bits
				? SCALES
				: 0U;
		when |= r->items[i].lm.experts ? EXPERTS : 0U;
		when |= r->items[i].roof.base.about ? TIME : 0U;
	}
	return when;
}

void rfl_complexity_lm_table(const struct rfl_lm_report *r, enum rfl_format format,
			     struct rfl_buf *out)
{
	const bool fit = r->device.memory_bytes > 0;
	const unsigned when = columns_of(r, rfl_format_for_people(format));
	const bool times = !fit && (when & TIME);
	const size_t nrows = r->n * r->nfusions * r->nbatches * r->npasts;
	struct rfl_table *t = fit ? rfl_table_of(fit_columns, RFL_ARRAY_LEN(fit_columns), when)
				  : rfl_table_of(columns, RFL_ARRAY_LEN(columns), when);
	struct phases *p = rfl_alloc_array(1, sizeof(*p));

	for (size_t i = 0; i < nrows; i++) {
		const size_t level = i / r->npasts / r->nbatches;

		*p = (struct phases){ .r = r,
				      .item = &r->items[level / r->nfusions],
				      .fusion = r->fusions[level % r->nfusions],
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
		note_item(t, r, &r->items[i], times);
	note_all(t, r, times);
	rfl_table_finish(t, format, out);
}
