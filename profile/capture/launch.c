/*
 * launch.c - one launch: its metrics, the quantities that follow, and both added to its
 * range.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/capture/impl.h"

void rfl_capture__forget_launch(struct rfl_capture_builder *b)
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
	if (slot >= 0 && !isnan(b->value[slot]))
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
			if (rfl_quantity_is_part((enum rfl_quantity)part, q))
				add_doubt(&doubt, before[part].validity, before[part].reason);
		return doubt;
	}
	if (way < 0)
		return doubt;
	t = rfl_formula_way(b->formulas, q, (size_t)way, &n);
	doubt_slot(b, rfl_formula_subtracted(b->formulas, q, NULL), &doubt);
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
	rfl_capture__forget_launch(b);
	return rc;
}
