/*
 * build.c - builds captures launch by launch. Each launch is added to the range of its kernel,
 * block and grid; only the first launch of a range allocates memory.
 */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "profile/capture/impl.h"

const char *rfl_capture__intern(struct rfl_capture_builder *b, const char *text, size_t len)
{
	const uint32_t number = rfl_keys_add(&b->texts, b->arena, text, len, NULL);

	return b->texts.keys[number - 1].at;
}

const char *rfl_capture__keep(struct rfl_capture_builder *b, const char *text)
{
	return text ? rfl_capture__intern(b, text, strlen(text)) : NULL;
}

/* ---- new, free ---- */

/* Make room for `n` metric ids in the current launch. */
static void grow_launch(struct rfl_capture_builder *b, size_t n)
{
	size_t cap = b->given_cap, same = cap, alike = cap;

	rfl_arena_reserve(b->scratch, &b->value, &cap, n);
	rfl_arena_reserve(b->scratch, &b->given, &same, n);
	rfl_arena_reserve(b->scratch, &b->touched, &alike, n);
	while (b->given_cap < cap)
		b->value[b->given_cap++] = NAN;
}

/* Guess the rollup from the suffix of the name, then from other parts of it, then from the unit. */
static enum rfl_rollup rollup_of(const char *name, const char *unit)
{
	static const struct {
		const char *word;
		enum rfl_rollup rollup;
	} words[] = {
		/* rates and shares first: "x.sum.per_second" is not a sum */
		{ ".per_", RFL_ROLLUP_MEAN },        { ".pct", RFL_ROLLUP_MEAN },
		{ ".ratio", RFL_ROLLUP_MEAN },       { ".max_rate", RFL_ROLLUP_MEAN },
		{ ".sum", RFL_ROLLUP_SUM },          { ".max", RFL_ROLLUP_MAX },
		{ ".min", RFL_ROLLUP_MIN },          { ".avg", RFL_ROLLUP_MEAN },
		{ "_per_", RFL_ROLLUP_MEAN },        { "_efficiency", RFL_ROLLUP_MEAN },
		{ "_utilization", RFL_ROLLUP_MEAN }, { "_throughput", RFL_ROLLUP_MEAN },
		{ "_rate", RFL_ROLLUP_MEAN },        { "_ratio", RFL_ROLLUP_MEAN },
		{ "occupancy", RFL_ROLLUP_MEAN },    { "Occupancy", RFL_ROLLUP_MEAN },
		{ "Throughput", RFL_ROLLUP_MEAN },   { "Frequency", RFL_ROLLUP_MEAN },
		{ "Busy", RFL_ROLLUP_MEAN },         { "Util", RFL_ROLLUP_MEAN },
		{ "CacheHit", RFL_ROLLUP_MEAN },     { "Percent", RFL_ROLLUP_MEAN },
		{ "max_rss", RFL_ROLLUP_MAX },       { "peak_memory", RFL_ROLLUP_MAX },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (strstr(name, words[i].word))
			return words[i].rollup;
	if (unit && (strchr(unit, '%') || strchr(unit, '/') || strcmp(unit, "Hz") == 0))
		return RFL_ROLLUP_MEAN;
	return RFL_ROLLUP_SUM;
}

/* Use these formulas and take ownership. Their slots are the first ids; a slot gets a name when its
 * id is requested, because a file contains only a few of the hundreds of metrics. */
static void take_formulas(struct rfl_capture_builder *b, struct rfl_formulas *f)
{
	rfl_formulas_free(b->formulas);
	b->formulas = f;
	b->metrics = rfl_arena_array(b->scratch, f->nslots, sizeof(*b->metrics));
	b->nmetrics = b->metrics_cap = f->nslots;
	b->capture.family = rfl_capture__keep(b, f->family);
	grow_launch(b, f->nslots);
}

struct rfl_capture_builder *rfl_capture__empty_builder(void)
{
	struct rfl_arena *scratch = rfl_arena_new();
	struct rfl_capture_builder *b = rfl_arena_array(scratch, 1, sizeof(*b));

	b->scratch = scratch;
	b->arena = rfl_arena_new();
	b->capture.steps = b->capture.passes = -1;
	return b;
}

struct rfl_capture_builder *rfl_capture_builder_new(const struct rfl_capture_spec *spec)
{
	struct rfl_capture_builder *b = rfl_capture__empty_builder();

	b->all_metrics = spec->all_metrics;
	b->capture.source = rfl_capture__keep(b, spec->source);
	b->capture.label = rfl_capture__keep(b, spec->label ? spec->label : "");
	b->capture.path = rfl_capture__keep(b, spec->path);
	take_formulas(b, rfl_formulas_or_any(spec->formulas));
	return b;
}

void rfl_capture_builder_free(struct rfl_capture_builder *b)
{
	if (!b)
		return;
	rfl_formulas_free(b->formulas);
	rfl_arena_free(b->arena);
	rfl_arena_free(b->scratch);
}

void rfl_capture_chip(struct rfl_capture_builder *b, const char *chip, const char *device)
{
	struct rfl_formulas *f = NULL;

	if (b->asked.n > 0 || b->nranges > 0)
		return;
	if (chip)
		b->capture.chip = rfl_capture__keep(b, chip);
	if (device)
		b->capture.device = rfl_capture__keep(b, device);
	if (chip && rfl_formulas_new(chip, &f, NULL) == RFL_OK)
		take_formulas(b, f);
}

#define HINT(word, first, last)                                 \
	{                                                       \
		word, RFL_QUANTITY_##first, RFL_QUANTITY_##last \
	}
#define IS(word, quantity) HINT(word, quantity, quantity)
#define NO_FLOPS(word)                                      \
	{                                                   \
		word, RFL_QUANTITY_COUNT, RFL_QUANTITY_TIME \
	}

/* The first row with a word of the name decides. */
const struct rfl_hint rfl_capture__hints[] = {
	NO_FLOPS("_src_int"),
	NO_FLOPS("_op_imma"),
	NO_FLOPS("_op_bmma"),
	NO_FLOPS("_type_hfma2"), /* register moves */
	NO_FLOPS("_op_fp8_"),    /* conversions */
	NO_FLOPS("_op_fp4_"),
	IS("_src_bf16", FLOPS_TENSOR_BF16),
	IS("_src_tf32", FLOPS_TENSOR_TF32),
	IS("_src_fp64", FLOPS_TENSOR_FP64),
	HINT("_src_fp8", FLOPS_TENSOR_FP8, FLOPS_TENSOR_FP4),
	HINT("_src_fp4", FLOPS_TENSOR_FP8, FLOPS_TENSOR_FP4),
	IS("_src_fp16", FLOPS_TENSOR_FP16),
	HINT("inst_executed_pipe_tensor", FLOPS_TENSOR_FP16, FLOPS_TENSOR_FP4),
	IS("_op_fp16_", FLOPS_FP16),
	IS("_op_fp64_", FLOPS_FP64),
	IS("_executed_op_h", FLOPS_FP16),
	IS("_executed_op_f", FLOPS_FP32),
	IS("_executed_op_d", FLOPS_FP64),
	IS("_executed_ops_h", FLOPS_FP16),
	IS("_executed_ops_f", FLOPS_FP32),
	IS("_executed_ops_d", FLOPS_FP64),
	IS("fp_arith_inst_retired2", FLOPS_FP16),
	HINT("fp_arith", FLOPS_FP32, FLOPS_FP64),
	HINT("fp_ret", FLOPS_FP16, FLOPS_MIXED),
	IS("gpu__time_duration", TIME),
	HINT("dram_", DRAM_READ, DRAM),
	IS("lts__t_", L2),
	IS("l1tex__t_", L1),
	{ .word = NULL },
};

/* The hint of a metric, which is kept for messages; -1: none. */
static int take_hint(struct rfl_capture_builder *b, const char *name, bool in_formula)
{
	const struct rfl_hint *h = rfl_capture__hints;
	const bool bytes = strstr(name, "bytes") || strstr(name, "sectors");

	static_assert(RFL_ARRAY_LEN(rfl_capture__hints) <= RFL_HINTS_MAX, "a bit for each hint");
	if (strstr(name, ".pct") || strstr(name, ".ratio") || strstr(name, "peak"))
		return -1;
	while (h->word && (!strstr(name, h->word) || (h->first > RFL_QUANTITY_FLOPS &&
						      h->first < RFL_QUANTITY_COUNT && !bytes)))
		h++;
	const int hint = (int)(h - rfl_capture__hints);
	/* Formulas exclude moves by instructions of the tensor pipe, and count none of its FLOPs.
	 */
	if (!h->word || h->first > h->last ||
	    (in_formula && !strstr(h->word, "inst_executed_pipe_tensor")))
		return -1;
	if (!b->hints[hint])
		b->hints[hint] = name;
	return hint;
}

/* The id of a metric that is requested for the first time; -1: it is not kept. */
static int new_metric(struct rfl_capture_builder *b, const char *name, const char *unit)
{
	const int slot = rfl_formulas_slot(b->formulas, name, strlen(name));
	const char *wanted = slot < 0 ? NULL : b->formulas->slots[slot].unit;
	const bool used = slot >= 0 && (!wanted || strcmp(wanted, unit) == 0);
	struct rfl_metric_def def = { .name = name,
				      .unit = unit,
				      .rollup = rollup_of(name, used ? NULL : unit),
				      .hint = take_hint(b, name, used) };

	if (used) {
		if (b->metrics[slot].name)
			def.name = b->metrics[slot].name;
		b->metrics[slot] = def;
		return slot;
	}
	if (!b->all_metrics) {
		b->capture.unused_metrics++;
		def.hidden = true;
		if (def.hint < 0 || !rfl_quantity_is_flops(rfl_capture__hints[def.hint].first))
			return -1;
	}
	grow_launch(b, b->nmetrics + 1);
	rfl_arena_reserve(b->scratch, &b->metrics, &b->metrics_cap, b->nmetrics + 1);
	b->metrics[b->nmetrics] = def;
	return (int)b->nmetrics++;
}

bool rfl_capture__is_hidden(const struct rfl_capture_builder *b, int metric)
{
	return metric >= 0 && b->metrics[metric].hidden;
}

int rfl_capture_metric_id(struct rfl_capture_builder *b, const char *name, size_t len,
			  const char *unit)
{
	/* interned, so that equal keys have equal pointers */
	const char *const key[] = { rfl_capture__intern(b, name, len),
				    rfl_capture__keep(b, unit ? unit : "") };
	bool added;
	const uint32_t number = rfl_keys_add(&b->asked, b->scratch, key, sizeof(key), &added);

	rfl_arena_reserve(b->scratch, &b->ids, &b->ids_cap, number);
	if (added)
		b->ids[number - 1] = new_metric(b, key[0], key[1]);
	return b->ids[number - 1];
}

/* ---- launches ---- */

struct rfl_range_sum *rfl_capture__range(struct rfl_capture_builder *b, enum rfl_range_kind kind,
					 const char *name, const char *block, const char *grid)
{
	if (b->excess)
		return NULL;
	const struct {
		const char *name, *block, *grid; /* interned */
		uint64_t kind;
	} key = { rfl_capture__keep(b, name), rfl_capture__keep(b, block),
		  rfl_capture__keep(b, grid), (uint64_t)kind };
	bool added;
	const uint32_t number = rfl_keys_add(&b->range_keys, b->scratch, &key, sizeof(key), &added);

	if (number > RFL_CAPTURE_RANGES_MAX) {
		b->excess = key.name;
		return NULL;
	}
	if (added) {
		struct rfl_range_sum *r = rfl_arena_array(b->scratch, 1, sizeof(*r));
		struct rfl_range_sum **last = rfl_arena_append(b->scratch, &b->ranges, &b->nranges);

		*last = r;
		r->range = (struct rfl_range){
			.kind = kind, .name = key.name, .block = key.block, .grid = key.grid
		};
	}
	return b->ranges[number - 1];
}

enum rfl_rc rfl_capture__check(const struct rfl_capture_builder *b, struct rfl_err *err)
{
	return !b->excess ? RFL_OK
			  : rfl_fail(err, RFL_EOVERFLOW, 0,
				     "'%.200s': a capture holds at most %zu kernels or ranges that "
				     "differ in name, block or grid; count fewer (ncu "
				     "--kernel-name, --launch-count), or one part at a time",
				     b->excess, RFL_CAPTURE_RANGES_MAX);
}

/* Add a value of the current launch to the metric of its range. */
static void add_value(struct rfl_capture_builder *b, uint32_t id)
{
	const struct rfl_metric_def *def = &b->metrics[id];
	const struct rfl_given_metric *given = &b->given[id];
	const double value = b->value[id];
	struct rfl_range_sum *r = b->range;

	if (def->hint >= 0 && value > 0)
		r->hinted |= UINT32_C(1) << def->hint;
	if (def->hidden)
		return;
	if (id >= r->nwhere || r->where[id] == 0) {
		struct rfl_metric *new =
			rfl_arena_append(b->scratch, &r->metrics, &r->range.nmetrics);

		*new = (struct rfl_metric){ .name = def->name,
					    .unit = def->unit,
					    .rollup = def->rollup,
					    .value = NAN,
					    .pass = -1 };
		rfl_arena_reserve(b->scratch, &r->where, &r->nwhere, (size_t)id + 1);
		r->where[id] = (uint32_t)r->range.nmetrics;
	}
	struct rfl_metric *m = &r->metrics[r->where[id] - 1];
	if (isnan(value)) {
		m->reason = m->reason ? m->reason : given->reason;
		return;
	}
	if (m->launches == 0)
		m->value = m->rollup == RFL_ROLLUP_MEAN ? value * (double)b->n : value;
	else if (m->rollup == RFL_ROLLUP_MAX)
		m->value = fmax(m->value, value);
	else if (m->rollup == RFL_ROLLUP_MIN)
		m->value = fmin(m->value, value);
	else
		m->value += m->rollup == RFL_ROLLUP_MEAN ? value * (double)b->n : value;
	m->launches += b->n;
	m->pass = given->pass;
	if (given->validity > m->validity)
		m->validity = given->validity;
	if (given->reason)
		m->reason = given->reason;
}

/* The worst validity among the inputs of a quantity. */
struct doubt {
	enum rfl_validity validity;
	const char *reason;
};

static void add_doubt(struct doubt *doubt, enum rfl_validity validity, const char *reason)
{
	if (validity > doubt->validity)
		*doubt = (struct doubt){ validity, reason };
}

static void doubt_slot(const struct rfl_capture_builder *b, int slot, struct doubt *doubt)
{
	if (slot >= 0 && !isnan(b->value[slot]))
		add_doubt(doubt, b->given[slot].validity, b->given[slot].reason);
}

static struct doubt doubt_of(const struct rfl_capture_builder *b, enum rfl_quantity q, int way,
			     const struct doubt *before)
{
	const struct rfl_formula_quantity *quantity = &b->formulas->quantities[q];
	struct doubt doubt = { 0 };

	for (enum rfl_quantity part = 0; way == RFL_FORMULA_SUM && part < q; part++)
		if (rfl_quantity_is_part(part, q))
			add_doubt(&doubt, before[part].validity, before[part].reason);
	if (way < 0)
		return doubt;
	if (quantity->less.reason)
		doubt_slot(b, (int)quantity->less.slot, &doubt);
	const struct rfl_formula_way *w = &quantity->ways[way];
	for (const struct rfl_term *t = w->terms; t < w->terms + w->nterms; t++) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(t->slot); i++)
			doubt_slot(b, t->slot[i], &doubt);
		if (t->quantity >= 0)
			add_doubt(&doubt, before[t->quantity].validity, before[t->quantity].reason);
	}
	return doubt;
}

static void add_quantities(struct rfl_capture_builder *b)
{
	const int *way = b->last_way;
	double value[RFL_QUANTITY_COUNT];
	struct doubt doubts[RFL_QUANTITY_COUNT] = { { 0 } };

	if (!b->has_last || memcmp(b->present, b->last_present, sizeof(b->present)) != 0) {
		rfl_formulas_choose(b->formulas, b->present, b->last_way);
		memcpy(b->last_present, b->present, sizeof(b->present));
		b->has_last = true;
	}
	rfl_formulas_apply(b->formulas, b->value, way, value);
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		struct rfl_quantity_sum *sum = &b->range->quantity[q];

		if (b->worst != RFL_VALID)
			doubts[q] = doubt_of(b, q, way[q], doubts);
		if (isnan(value[q]))
			continue;
		if (sum->launches > 0 && sum->way != way[q])
			sum->several_ways = true;
		sum->way = way[q];
		sum->value += value[q];
		sum->launches += b->n;
		if (doubts[q].validity > sum->validity) {
			sum->validity = doubts[q].validity;
			sum->reason = doubts[q].reason;
		}
	}
}

void rfl_capture__end(struct rfl_capture_builder *b)
{
	for (size_t i = 0; i < b->ntouched && b->range; i++)
		add_value(b, b->touched[i]);
	if (b->range) {
		add_quantities(b);
		b->range->range.launches += b->n;
	}
	for (size_t i = 0; i < b->ntouched; i++) {
		b->value[b->touched[i]] = NAN;
		b->given[b->touched[i]].is_given = false;
	}
	b->ntouched = 0;
	memset(b->present, 0, sizeof(b->present));
	b->worst = RFL_VALID;
	b->range = NULL;
}

void rfl_capture_begin(struct rfl_capture_builder *b, enum rfl_range_kind kind, const char *name,
		       const char *block, const char *grid)
{
	rfl_capture__end(b);
	b->n = 1;
	b->range = rfl_capture__range(b, kind, name, block, grid);
}

void rfl_capture_launches(struct rfl_capture_builder *b, int64_t n)
{
	b->n = n;
}

enum rfl_given rfl_capture_metric(struct rfl_capture_builder *b, int metric, double value,
				  enum rfl_validity validity, int pass, const char *reason)
{
	if (metric < 0)
		return RFL_GIVEN_NEW;
	assert((size_t)metric < b->nmetrics);
	if (isinf(value)) {
		value = NAN;
		validity = RFL_VALID_UNAVAILABLE;
		reason = "too large to represent";
	}
	struct rfl_given_metric *given = &b->given[metric];
	if (given->is_given && !isnan(b->value[metric]))
		return isnan(value) || value == b->value[metric] ? RFL_GIVEN_AGAIN
								 : RFL_GIVEN_DIFFERS;
	if (given->is_given && isnan(value))
		return RFL_GIVEN_AGAIN;
	if (!given->is_given)
		b->touched[b->ntouched++] = (uint32_t)metric;
	*given = (struct rfl_given_metric){
		.is_given = true,
		.validity = (uint8_t)validity,
		.pass = pass,
		.reason = reason,
	};
	b->value[metric] = value;
	if (isnan(value))
		return RFL_GIVEN_NEW;
	if (validity > b->worst)
		b->worst = validity;
	if ((size_t)metric < RFL_SLOTS_MAX)
		b->present[metric / 64] |= (uint64_t)1 << (metric % 64);
	return RFL_GIVEN_NEW;
}

enum rfl_given rfl_capture_put(struct rfl_capture_builder *b, const char *name, const char *unit,
			       double value, enum rfl_validity validity, int pass,
			       const char *reason)
{
	const int id = rfl_capture_metric_id(b, name, strlen(name), unit);

	return rfl_capture_metric(b, id, value, validity, pass, reason);
}

double rfl_capture_so_far(struct rfl_capture_builder *b, enum rfl_range_kind kind,
			  enum rfl_quantity q)
{
	double sum = NAN;

	rfl_capture__end(b);
	for (size_t i = 0; i < b->nranges; i++) {
		const struct rfl_quantity_sum *a = &b->ranges[i]->quantity[q];

		if (b->ranges[i]->range.kind == kind && a->launches > 0)
			sum = isnan(sum) ? a->value : sum + a->value;
	}
	return sum;
}

/* ---- notes and refusals ---- */

void rfl_capture_note(struct rfl_capture_builder *b, const char *fmt, ...)
{
	va_list ap;
	char text[RFL_ERR_MSG_MAX + 256]; /* large enough for an error message */

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	const char *kept = rfl_capture__keep(b, text);
	for (size_t i = 0; i < b->capture.nnotes; i++)
		if (b->notes[i] == kept)
			return;
	*(const char **)rfl_arena_append(b->arena, &b->notes, &b->capture.nnotes) = kept;
	b->capture.notes = b->notes;
}

void rfl_capture_refuse(struct rfl_capture_builder *b, const char *set, const char *reason)
{
	*(struct rfl_refusal *)rfl_arena_append(b->arena, &b->refusals, &b->capture.nrefusals) =
		(struct rfl_refusal){ rfl_capture__keep(b, set), rfl_capture__keep(b, reason) };
	b->capture.refusals = b->refusals;
}

void rfl_capture_steps(struct rfl_capture_builder *b, int64_t steps, int64_t passes)
{
	b->capture.steps = steps;
	b->capture.passes = passes;
}

void rfl_capture_left_out(struct rfl_capture_builder *b, int64_t rows)
{
	b->capture.rows_left_out += rows;
}
