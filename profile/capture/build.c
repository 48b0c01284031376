/*
 * build.c - captures launch by launch: a launch goes into the range of its kernel, block
 * and grid, so that the size of a capture does not grow with the number of launches. Nothing is
 * allocated for a launch that is like one before.
 */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/capture/impl.h"
#include "profile/import/span.h"

/* ---- new, free ---- */

static const struct rfl_capture nothing_known = {
	.steps = -1,
	.passes = -1,
};

/* Room for the current launch's metrics up to `n` ids. */
static bool grow_launch(struct rfl_capture_builder *b, size_t n)
{
	size_t cap = b->given_cap ? b->given_cap : 64;
	double *value;
	struct rfl_given_metric *given;
	uint32_t *touched;

	if (n <= b->given_cap)
		return true;
	while (cap < n)
		cap *= 2;
	value = realloc(b->value, cap * sizeof(*value));
	if (value)
		b->value = value;
	given = realloc(b->given, cap * sizeof(*given));
	if (given)
		b->given = given;
	touched = realloc(b->touched, cap * sizeof(*touched));
	if (touched)
		b->touched = touched;
	if (!value || !given || !touched)
		return false;
	for (size_t i = b->given_cap; i < cap; i++) {
		b->value[i] = NAN;
		b->given[i] = (struct rfl_given_metric){ 0 };
	}
	b->given_cap = cap;
	return true;
}

/* By the suffix of the name; by words in it where it has none. */
static enum rfl_rollup rollup_of(const char *name, const char *unit)
{
	static const struct {
		const char *word;
		enum rfl_rollup rollup;
	} words[] = {
		/* rates and shares first: "x.sum.per_second" is no sum */
		{ ".per_", RFL_ROLLUP_MEAN },        { ".pct", RFL_ROLLUP_MEAN },
		{ ".ratio", RFL_ROLLUP_MEAN },       { ".max_rate", RFL_ROLLUP_MEAN },
		{ ".sum", RFL_ROLLUP_SUM },          { ".max", RFL_ROLLUP_MAX },
		{ ".min", RFL_ROLLUP_MIN },          { ".avg", RFL_ROLLUP_MEAN },
		{ "_per_", RFL_ROLLUP_MEAN },        { "_efficiency", RFL_ROLLUP_MEAN },
		{ "_utilization", RFL_ROLLUP_MEAN }, { "_throughput", RFL_ROLLUP_MEAN },
		{ "_rate", RFL_ROLLUP_MEAN },        { "_ratio", RFL_ROLLUP_MEAN },
		{ "occupancy", RFL_ROLLUP_MEAN },    { "Occupancy", RFL_ROLLUP_MEAN },
		{ "Throughput", RFL_ROLLUP_MEAN },   { "Frequency", RFL_ROLLUP_MEAN },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (strstr(name, words[i].word))
			return words[i].rollup;
	if (unit && (strchr(unit, '%') || strchr(unit, '/') || strcmp(unit, "Hz") == 0))
		return RFL_ROLLUP_MEAN;
	return RFL_ROLLUP_SUM;
}

static int add_metric(struct rfl_capture_builder *b, const char *name, const char *unit)
{
	if (!rfl_capture__room(&b->metrics, b->nmetrics, &b->metrics_cap, sizeof(*b->metrics)) ||
	    !grow_launch(b, b->nmetrics + 1))
		return -2;
	b->metrics[b->nmetrics] = (struct rfl_metric_def){
		.name = name,
		.unit = unit,
		.rollup = rollup_of(name, unit),
	};
	return (int)b->nmetrics++;
}

/* Take formulas, and make their metrics the first ids: hundreds, of which a file has a few. Those
 * get their names when they are asked for. */
static enum rfl_rc take_formulas(struct rfl_capture_builder *b, struct rfl_formulas *take_f,
				 struct rfl_err *err)
{
	size_t n = rfl_formulas_slots(take_f);

	rfl_formulas_free(b->formulas);
	b->formulas = take_f;
	free(b->metrics);
	b->metrics = calloc(n + 1, sizeof(*b->metrics));
	b->nmetrics = b->metrics_cap = b->metrics ? n : 0;
	if (!b->metrics || !grow_launch(b, n))
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	if (!rfl_capture__keep(b, &b->capture.family, rfl_formulas_family(take_f)))
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	return RFL_OK;
}

static enum rfl_rc fill(struct rfl_capture_builder *b, const struct rfl_capture_spec *spec,
			struct rfl_err *err)
{
	struct rfl_formulas *f = NULL;
	enum rfl_rc rc;

	if (!rfl_capture__keep(b, &b->capture.source, spec->source) ||
	    !rfl_capture__keep(b, &b->capture.label, spec->label ? spec->label : "") ||
	    !rfl_capture__keep(b, &b->capture.path, spec->path))
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	rc = rfl_formulas_new(spec->formulas, &f, err);
	return rc ? rc : take_formulas(b, f, err);
}

struct rfl_capture_builder *rfl_capture__empty_builder(void)
{
	struct rfl_capture_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->capture = nothing_known;
	b->arena = rfl_arena_new(0);
	if (b->arena)
		return b;
	free(b);
	return NULL;
}

enum rfl_rc rfl_capture_builder_new(const struct rfl_capture_spec *spec,
				    struct rfl_capture_builder **ret, struct rfl_err *err)
{
	struct rfl_capture_builder *b = rfl_capture__empty_builder();
	enum rfl_rc rc;

	assert(spec->source);
	if (!b)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	b->all_metrics = spec->all_metrics;
	rc = fill(b, spec, err);
	if (rc == RFL_OK)
		*ret = b;
	else
		rfl_capture_builder_free(b);
	return rc;
}

static void free_ranges(struct rfl_capture_builder *b)
{
	for (size_t i = 0; i < b->nranges; i++) {
		free(b->ranges[i]->metrics);
		free(b->ranges[i]->where);
		free(b->ranges[i]);
	}
	free(b->ranges);
}

void rfl_capture_builder_free(struct rfl_capture_builder *b)
{
	if (!b)
		return;
	free_ranges(b);
	free(b->texts);
	free(b->text_places.at);
	free(b->metric_places.at);
	free(b->range_places.at);
	free(b->metrics);
	free(b->value);
	free(b->given);
	free(b->touched);
	free(b->notes);
	free(b->refusals);
	rfl_formulas_free(b->formulas);
	rfl_arena_free(b->arena);
	free(b);
}

enum rfl_rc rfl_capture_chip(struct rfl_capture_builder *b, const char *chip, const char *device,
			     struct rfl_err *err)
{
	struct rfl_formulas *f = NULL;
	struct rfl_err unknown = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (b->asked || b->nranges > 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"the chip of a capture is told before its metrics");
	if ((chip && !rfl_capture__keep(b, &b->capture.chip, chip)) ||
	    (device && !rfl_capture__keep(b, &b->capture.device, device)))
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	if (!chip)
		return RFL_OK;
	rc = rfl_formulas_new(chip, &f, &unknown);
	if (rc == RFL_ENOTFOUND)
		return RFL_OK;
	if (rc != RFL_OK)
		return rfl_fail(err, rc, 0, "%s", unknown.msg);
	return take_formulas(b, f, err);
}

/* ---- metrics ---- */

static uint64_t metric_hash(const char *name, size_t len, const char *unit)
{
	uint64_t hash = rfl_hash64(0, name, len);

	return rfl_hash64(hash, unit, strlen(unit));
}

static bool grow_metric_places(struct rfl_capture_builder *b)
{
	if (!rfl_places_are_full(&b->metric_places))
		return true;
	if (!rfl_places_grow(&b->metric_places))
		return false;
	for (size_t i = rfl_formulas_slots(b->formulas); i < b->nmetrics; i++)
		rfl_places_put(&b->metric_places,
			       metric_hash(b->metrics[i].name, strlen(b->metrics[i].name),
					   b->metrics[i].unit),
			       (uint32_t)i + 1);
	return true;
}

/* A metric that no formula names. */
static int other_metric(struct rfl_capture_builder *b, const char *name, size_t len,
			const char *unit)
{
	uint64_t hash = metric_hash(name, len, unit);
	const char *kept_name, *kept_unit;
	int id;

	if (!grow_metric_places(b))
		return -2;
	for (size_t at = rfl_places_first(&b->metric_places, hash); b->metric_places.at[at] != 0;
	     at = (at + 1) & (b->metric_places.size - 1)) {
		const struct rfl_metric_def *have = &b->metrics[b->metric_places.at[at] - 1];

		if (strncmp(have->name, name, len) == 0 && have->name[len] == '\0' &&
		    strcmp(have->unit, unit) == 0)
			return (int)b->metric_places.at[at] - 1;
	}
	kept_name = rfl_capture__intern(b, name, len);
	kept_unit = rfl_capture__intern(b, unit, strlen(unit));
	if (!kept_name || !kept_unit)
		return -2;
	id = add_metric(b, kept_name, kept_unit);
	if (id >= 0)
		rfl_places_put(&b->metric_places, hash, (uint32_t)id + 1);
	return id;
}

/* Remember a name that no formula has and that looks like a count of FLOPs or bytes. */
static bool keep_strange(struct rfl_capture_builder *b, struct rfl_span name)
{
	static const struct {
		const char *word;
		enum rfl_quantity first, last;
	} looks[] = {
		{ "_op_fp16_", RFL_QUANTITY_FLOPS_FP16, RFL_QUANTITY_FLOPS_FP16 },
		{ "_op_fp64_", RFL_QUANTITY_FLOPS_FP64, RFL_QUANTITY_FLOPS_FP64 },
		{ "_executed_op_h", RFL_QUANTITY_FLOPS_FP16, RFL_QUANTITY_FLOPS_FP16 },
		{ "_executed_op_f", RFL_QUANTITY_FLOPS_FP32, RFL_QUANTITY_FLOPS_FP32 },
		{ "_executed_op_d", RFL_QUANTITY_FLOPS_FP64, RFL_QUANTITY_FLOPS_FP64 },
		{ "tensor_src_bf16", RFL_QUANTITY_FLOPS_TENSOR_BF16,
		  RFL_QUANTITY_FLOPS_TENSOR_BF16 },
		{ "tensor_src_tf32", RFL_QUANTITY_FLOPS_TENSOR_TF32,
		  RFL_QUANTITY_FLOPS_TENSOR_TF32 },
		{ "tensor_src_fp", RFL_QUANTITY_FLOPS_TENSOR_FP16, RFL_QUANTITY_FLOPS_TENSOR_FP4 },
		{ "fp_arith", RFL_QUANTITY_FLOPS_FP16, RFL_QUANTITY_FLOPS_MIXED },
		{ "fp_ret", RFL_QUANTITY_FLOPS_FP16, RFL_QUANTITY_FLOPS_MIXED },
		{ "dram_", RFL_QUANTITY_DRAM_READ, RFL_QUANTITY_DRAM },
		{ "lts__t_", RFL_QUANTITY_L2, RFL_QUANTITY_L2 },
		{ "l1tex__t_", RFL_QUANTITY_L1, RFL_QUANTITY_L1 },
	};
	bool bytes = rfl_span_has(name, "bytes") || rfl_span_has(name, "sectors");
	bool count = !rfl_span_has(name, ".pct") && !rfl_span_has(name, ".ratio") &&
		     !rfl_span_has(name, "peak");
	const char *kept;

	for (size_t i = 0; i < RFL_ARRAY_LEN(looks) && count; i++) {
		if (!rfl_span_has(name, looks[i].word) ||
		    (looks[i].first > RFL_QUANTITY_FLOPS && !bytes))
			continue;
		kept = rfl_capture__intern(b, name.at, name.len);
		for (int q = (int)looks[i].first; q <= (int)looks[i].last; q++)
			b->strange[q] = b->strange[q] ? b->strange[q] : kept;
		return kept != NULL;
	}
	return true;
}

int rfl_capture_metric_id(struct rfl_capture_builder *b, const char *name, size_t len,
			  const char *unit)
{
	int slot = rfl_formulas_slot(b->formulas, name, len);
	const char *wanted = slot < 0 ? NULL : rfl_formulas_slot_unit(b->formulas, (size_t)slot);

	b->asked = true;
	if (!unit)
		unit = "";
	if (slot >= 0 && (!wanted || strcmp(wanted, unit) == 0)) {
		struct rfl_metric_def *def = &b->metrics[slot];

		if (!def->name) {
			def->name = rfl_capture__intern(b, name, len);
			def->rollup = def->name ? rollup_of(def->name, NULL) : RFL_ROLLUP_SUM;
		}
		def->unit = rfl_capture__intern(b, unit, strlen(unit));
		return def->name && def->unit ? slot : -2;
	}
	if (!keep_strange(b, (struct rfl_span){ .at = name, .len = len }))
		return -2;
	if (b->all_metrics)
		return other_metric(b, name, len, unit);
	b->capture.unused_metrics++;
	return -1;
}

/* ---- ranges ---- */

static uint64_t add_hash(uint64_t hash, const char *text)
{
	return text ? rfl_hash64(hash, text, strlen(text) + 1) : hash;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool grow_range_places(struct rfl_capture_builder *b)
{
	if (!rfl_places_are_full(&b->range_places))
		return true;
	if (!rfl_places_grow(&b->range_places))
		return false;
	for (size_t i = 0; i < b->nranges; i++)
		rfl_places_put(&b->range_places, b->ranges[i]->hash, (uint32_t)i + 1);
	return true;
}

static struct rfl_range_sum *find_range(const struct rfl_capture_builder *b,
					const struct rfl_range_sum *like)
{
	const struct rfl_places *p = &b->range_places;

	for (size_t at = rfl_places_first(p, like->hash); p->at[at] != 0;
	     at = (at + 1) & (p->size - 1)) {
		struct rfl_range_sum *r = b->ranges[p->at[at] - 1];

		if (r->hash == like->hash && r->kind == like->kind &&
		    is_same(r->name, like->name) && is_same(r->block, like->block) &&
		    is_same(r->grid, like->grid))
			return r;
	}
	return NULL;
}

static struct rfl_range_sum *new_range(struct rfl_capture_builder *b,
				       const struct rfl_range_sum *like)
{
	struct rfl_range_sum *r;

	if (!rfl_capture__room(&b->ranges, b->nranges, &b->ranges_cap, sizeof(*b->ranges)))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->kind = like->kind;
	r->hash = like->hash;
	if (!rfl_capture__keep(b, &r->name, like->name) ||
	    !rfl_capture__keep(b, &r->block, like->block) ||
	    !rfl_capture__keep(b, &r->grid, like->grid)) {
		free(r);
		return NULL;
	}
	b->ranges[b->nranges++] = r;
	rfl_places_put(&b->range_places, r->hash, (uint32_t)b->nranges);
	return r;
}

enum rfl_rc rfl_capture_begin(struct rfl_capture_builder *b, enum rfl_range_kind kind,
			      const char *name, const char *block, const char *grid,
			      struct rfl_err *err)
{
	struct rfl_range_sum like = { .kind = kind, .name = name, .block = block, .grid = grid };

	rfl_capture__forget_launch(b);
	like.hash = add_hash(add_hash(add_hash((uint64_t)kind + 1, name), block), grid);
	if (!grow_range_places(b))
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	b->range = find_range(b, &like);
	if (!b->range && b->nranges >= RFL_CAPTURE_RANGES_MAX)
		return rfl_fail(err, RFL_EOVERFLOW, 0,
				"'%.200s' is one too many: a capture keeps %zu kernels or ranges "
				"that differ in name, block or grid; count fewer of them (ncu "
				"--kernel-name, --launch-count), or a part at a time",
				name, RFL_CAPTURE_RANGES_MAX);
	if (!b->range)
		b->range = new_range(b, &like);
	return b->range ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
}

void rfl_capture_launches(struct rfl_capture_builder *b, int64_t n)
{
	b->n = n;
}

/* ---- what else is known ---- */

void rfl_capture__note(struct rfl_capture_builder *b, const char *text)
{
	const char *kept = rfl_capture__intern(b, text, strlen(text));

	for (size_t i = 0; kept && i < b->nnotes; i++)
		if (b->notes[i] == kept)
			return;
	if (!kept || !rfl_capture__room(&b->notes, b->nnotes, &b->notes_cap, sizeof(*b->notes)))
		b->no_memory = true;
	else
		b->notes[b->nnotes++] = kept;
}

void rfl_capture_note(struct rfl_capture_builder *b, const char *fmt, ...)
{
	va_list ap;
	char text[RFL_ERR_MSG_MAX + 256]; /* a note may hold a whole message */

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rfl_capture__note(b, text);
}

void rfl_capture_refuse(struct rfl_capture_builder *b, const char *set, const char *reason)
{
	struct rfl_refusal refusal = {
		.set = rfl_capture__intern(b, set, strlen(set)),
		.reason = rfl_capture__intern(b, reason, strlen(reason)),
	};

	if (!refusal.set || !refusal.reason ||
	    !rfl_capture__room(&b->refusals, b->nrefusals, &b->refusals_cap, sizeof(*b->refusals)))
		b->no_memory = true;
	else
		b->refusals[b->nrefusals++] = refusal;
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
