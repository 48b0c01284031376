/*
 * capture_build.c - captures launch by launch: a launch goes into the range of its kernel, block
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
#include "profile/capture_impl.h"

bool rfl_capture__room(void *array, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *old, *grown;

	if (n < *cap)
		return true;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, want * size);
	if (!grown)
		return false;
	memcpy(array, &grown, sizeof(grown));
	*cap = want;
	return true;
}

/* ---- places by hash ---- */

/* Where to look first. FNV's low bits are its good ones. */
static size_t first_place(const struct rfl_places *p, uint64_t hash)
{
	return (size_t)(hash ^ hash >> 32) & (p->size - 1);
}

static void put_place(struct rfl_places *p, uint64_t hash, uint32_t value)
{
	size_t at = first_place(p, hash);

	while (p->at[at] != 0)
		at = (at + 1) & (p->size - 1);
	p->at[at] = value;
	p->used++;
}

/* Twice as many places; the caller puts everything into them again. */
static bool grow_places(struct rfl_places *p)
{
	size_t size = p->size ? p->size * 2 : 64;
	uint32_t *at = rfl_alloc_array(size, sizeof(*at));

	if (!at)
		return false;
	free(p->at);
	*p = (struct rfl_places){ .at = at, .size = size };
	return true;
}

static bool is_full(const struct rfl_places *p)
{
	return (p->used + 1) * 2 > p->size;
}

/* ---- texts ---- */

static bool grow_texts(struct rfl_capture_builder *b)
{
	if (!is_full(&b->text_places))
		return true;
	if (!grow_places(&b->text_places))
		return false;
	for (size_t i = 0; i < b->ntexts; i++)
		put_place(&b->text_places, rfl_hash64(0, b->texts[i], strlen(b->texts[i])),
			  (uint32_t)i + 1);
	return true;
}

const char *rfl_capture__intern(struct rfl_capture_builder *b, const char *text, size_t len)
{
	uint64_t hash = rfl_hash64(0, text, len);
	struct rfl_places *p = &b->text_places;
	char *copy;

	if (!grow_texts(b))
		return NULL;
	for (size_t at = first_place(p, hash); p->at[at] != 0; at = (at + 1) & (p->size - 1)) {
		const char *have = b->texts[p->at[at] - 1];

		if (strncmp(have, text, len) == 0 && have[len] == '\0')
			return have;
	}
	if (!rfl_capture__room(&b->texts, b->ntexts, &b->texts_cap, sizeof(*b->texts)))
		return NULL;
	copy = rfl_arena_array(b->arena, len + 1, 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	b->texts[b->ntexts++] = copy;
	put_place(p, hash, (uint32_t)b->ntexts);
	return copy;
}

/* A copy of a text that may be NULL; false out of memory. */
static bool keep(struct rfl_capture_builder *b, const char **to, const char *text)
{
	*to = NULL;
	if (!text)
		return true;
	*to = rfl_capture__intern(b, text, strlen(text));
	return *to != NULL;
}

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

/* Take formulas, and make their metrics the first ids. */
static enum rfl_rc take_formulas(struct rfl_capture_builder *b, struct rfl_formulas *take_f,
				 struct rfl_err *err)
{
	size_t n = rfl_formulas_slots(take_f);

	rfl_formulas_free(b->formulas);
	b->formulas = take_f;
	b->nmetrics = 0;
	for (size_t i = 0; i < n; i++) {
		const char *name = rfl_formulas_slot_name(take_f, i);

		name = rfl_capture__intern(b, name, strlen(name));
		if (!name || add_metric(b, name, "") < 0)
			return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	}
	if (!keep(b, &b->capture.family, rfl_formulas_family(take_f)))
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	return RFL_OK;
}

static enum rfl_rc fill(struct rfl_capture_builder *b, const struct rfl_capture_spec *spec,
			struct rfl_err *err)
{
	struct rfl_formulas *f = NULL;
	enum rfl_rc rc;

	b->arena = rfl_arena_new(0);
	if (!b->arena || !keep(b, &b->capture.source, spec->source) ||
	    !keep(b, &b->capture.label, spec->label ? spec->label : "") ||
	    !keep(b, &b->capture.path, spec->path))
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	rc = rfl_formulas_new(spec->formulas, &f, err);
	return rc ? rc : take_formulas(b, f, err);
}

enum rfl_rc rfl_capture_builder_new(const struct rfl_capture_spec *spec,
				    struct rfl_capture_builder **ret, struct rfl_err *err)
{
	struct rfl_capture_builder *b = calloc(1, sizeof(*b));
	enum rfl_rc rc;

	assert(spec->source);
	if (!b)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	b->capture = nothing_known;
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
	if ((chip && !keep(b, &b->capture.chip, chip)) ||
	    (device && !keep(b, &b->capture.device, device)))
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
	if (!is_full(&b->metric_places))
		return true;
	if (!grow_places(&b->metric_places))
		return false;
	for (size_t i = rfl_formulas_slots(b->formulas); i < b->nmetrics; i++)
		put_place(&b->metric_places,
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
	for (size_t at = first_place(&b->metric_places, hash); b->metric_places.at[at] != 0;
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
		put_place(&b->metric_places, hash, (uint32_t)id + 1);
	return id;
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
		unit = rfl_capture__intern(b, unit, strlen(unit));
		if (!unit)
			return -2;
		b->metrics[slot].unit = unit;
		return slot;
	}
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
	if (!is_full(&b->range_places))
		return true;
	if (!grow_places(&b->range_places))
		return false;
	for (size_t i = 0; i < b->nranges; i++)
		put_place(&b->range_places, b->ranges[i]->hash, (uint32_t)i + 1);
	return true;
}

static struct rfl_range_sum *find_range(const struct rfl_capture_builder *b,
					const struct rfl_range_sum *like)
{
	const struct rfl_places *p = &b->range_places;

	for (size_t at = first_place(p, like->hash); p->at[at] != 0;
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
	if (!keep(b, &r->name, like->name) || !keep(b, &r->block, like->block) ||
	    !keep(b, &r->grid, like->grid)) {
		free(r);
		return NULL;
	}
	b->ranges[b->nranges++] = r;
	put_place(&b->range_places, r->hash, (uint32_t)b->nranges);
	return r;
}

static void forget_launch(struct rfl_capture_builder *b)
{
	for (size_t i = 0; i < b->ntouched; i++) {
		b->value[b->touched[i]] = NAN;
		b->given[b->touched[i]].is_given = false;
	}
	b->ntouched = 0;
	memset(b->present, 0, sizeof(b->present));
	b->worst = RFL_VALID;
	b->n = 1;
	b->range = NULL;
}

enum rfl_rc rfl_capture_begin(struct rfl_capture_builder *b, enum rfl_range_kind kind,
			      const char *name, const char *block, const char *grid,
			      struct rfl_err *err)
{
	struct rfl_range_sum like = { .kind = kind, .name = name, .block = block, .grid = grid };

	forget_launch(b);
	like.hash = add_hash(add_hash(add_hash((uint64_t)kind + 1, name), block), grid);
	if (!grow_range_places(b))
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	b->range = find_range(b, &like);
	if (!b->range)
		b->range = new_range(b, &like);
	return b->range ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
}

void rfl_capture_launches(struct rfl_capture_builder *b, int64_t n)
{
	b->n = n;
}

enum rfl_given rfl_capture_metric(struct rfl_capture_builder *b, int metric, double value,
				  enum rfl_validity validity, int pass, const char *reason)
{
	struct rfl_given_metric *given;

	if (metric < 0)
		return RFL_GIVEN_NEW;
	assert((size_t)metric < b->nmetrics);
	given = &b->given[metric];
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

/* ---- the end of a launch ---- */

/* The place of a metric in a range, made when there is none. */
static struct rfl_metric_sum *metric_sum(struct rfl_range_sum *r, uint32_t id)
{
	size_t cap = r->metrics_cap, want = r->nwhere ? r->nwhere : 64;
	uint32_t *where;

	if (id < r->nwhere && r->where[id] != 0)
		return &r->metrics[r->where[id] - 1];
	while (want <= id)
		want *= 2;
	if (want > r->nwhere) {
		where = realloc(r->where, want * sizeof(*where));
		if (!where)
			return NULL;
		memset(where + r->nwhere, 0, (want - r->nwhere) * sizeof(*where));
		r->where = where;
		r->nwhere = (uint32_t)want;
	}
	if (!rfl_capture__room(&r->metrics, r->nmetrics, &cap, sizeof(*r->metrics)))
		return NULL;
	r->metrics_cap = (uint32_t)cap;
	r->metrics[r->nmetrics] = (struct rfl_metric_sum){ .id = id, .value = NAN, .pass = -1 };
	r->where[id] = ++r->nmetrics;
	return &r->metrics[r->nmetrics - 1];
}

static double rolled_up(enum rfl_rollup rollup, double a, double b, int64_t n)
{
	switch (rollup) {
	case RFL_ROLLUP_SUM:
		return a + b;
	case RFL_ROLLUP_MAX:
		return fmax(a, b);
	case RFL_ROLLUP_MIN:
		return fmin(a, b);
	case RFL_ROLLUP_MEAN:
		break;
	}
	return a + b * (double)n; /* divided by the weight at the end */
}

static void add_value(struct rfl_metric_sum *sum, enum rfl_rollup rollup, double value,
		      const struct rfl_given_metric *given, int64_t n)
{
	if (isnan(value)) {
		if (!sum->reason)
			sum->reason = given->reason;
		return;
	}
	if (sum->launches == 0)
		sum->value = rollup == RFL_ROLLUP_MEAN ? value * (double)n : value;
	else
		sum->value = rolled_up(rollup, sum->value, value, n);
	sum->weight += (double)n;
	sum->launches += n;
	sum->pass = given->pass;
	if (given->validity > sum->validity)
		sum->validity = given->validity;
	if (given->reason)
		sum->reason = given->reason;
}

static enum rfl_rc add_metrics(struct rfl_capture_builder *b, struct rfl_err *err)
{
	struct rfl_range_sum *r = b->range;

	for (size_t i = 0; i < b->ntouched; i++) {
		uint32_t id = b->touched[i];
		struct rfl_metric_sum *sum = metric_sum(r, id);

		if (!sum)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", r->name);
		add_value(sum, b->metrics[id].rollup, b->value[id], &b->given[id], b->n);
	}
	return RFL_OK;
}

static const int *ways_of_launch(struct rfl_capture_builder *b)
{
	if (b->has_last && memcmp(b->present, b->last_present, sizeof(b->present)) == 0)
		return b->last_way;
	rfl_formulas__choose(b->formulas, b->present, b->last_way);
	memcpy(b->last_present, b->present, sizeof(b->present));
	b->has_last = true;
	return b->last_way;
}

/* The worst of the metrics, and of the quantities, that a quantity was made of. */
struct doubt {
	uint8_t validity;
	const char *reason;
};

static void add_doubt(struct doubt *doubt, uint8_t validity, const char *reason)
{
	if (validity <= doubt->validity)
		return;
	doubt->validity = validity;
	doubt->reason = reason;
}

static void doubt_slot(const struct rfl_capture_builder *b, int slot, struct doubt *doubt)
{
	if (slot >= 0)
		add_doubt(doubt, b->given[slot].validity, b->given[slot].reason);
}

static struct doubt doubt_of(const struct rfl_capture_builder *b, enum rfl_quantity q, int way,
			     const struct doubt *before)
{
	struct doubt doubt = { 0 };
	const struct rfl_term *t;
	size_t n;

	if (way == RFL_FORMULA_SUM) {
		for (int part = 0; part < (int)q; part++)
			if (q == RFL_QUANTITY_FLOPS ? rfl_quantity_is_flops((enum rfl_quantity)part)
						    : part == RFL_QUANTITY_DRAM_READ ||
							      part == RFL_QUANTITY_DRAM_WRITE)
				add_doubt(&doubt, before[part].validity, before[part].reason);
		return doubt;
	}
	if (way < 0)
		return doubt;
	t = rfl_formula_way(b->formulas, q, (size_t)way, &n);
	for (size_t i = 0; i < n; i++, t++) {
		doubt_slot(b, (int)t->slot, &doubt);
		doubt_slot(b, t->per_slot, &doubt);
		doubt_slot(b, t->over_slot, &doubt);
		if (t->per_quantity >= 0)
			add_doubt(&doubt, before[t->per_quantity].validity,
				  before[t->per_quantity].reason);
	}
	return doubt;
}

static void add_quantities(struct rfl_capture_builder *b)
{
	const int *way = ways_of_launch(b);
	double value[RFL_QUANTITY_COUNT];
	struct doubt doubts[RFL_QUANTITY_COUNT] = { { 0 } };

	rfl_formulas__apply(b->formulas, b->value, way, value);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		struct rfl_quantity_sum *sum = &b->range->quantity[q];

		if (b->worst != RFL_VALID)
			doubts[q] = doubt_of(b, (enum rfl_quantity)q, way[q], doubts);
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

enum rfl_rc rfl_capture_end(struct rfl_capture_builder *b, struct rfl_err *err)
{
	enum rfl_rc rc;

	assert(b->range);
	rc = add_metrics(b, err);
	if (rc == RFL_OK) {
		add_quantities(b);
		b->range->launches += b->n;
	}
	forget_launch(b);
	return rc;
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
	char text[1024];

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rfl_capture__note(b, text);
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
