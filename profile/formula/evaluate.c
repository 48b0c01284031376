/*
 * evaluate.c - evaluates formulas: finds slots by name, computes the quantities of a launch, prints
 * formulas, and explains missing values.
 */
#include "profile/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

int rfl_formulas_slot(const struct rfl_formulas *f, const char *metric, size_t len)
{
	uint32_t number = rfl_keys_find(&f->names, metric, len);

	for (size_t i = 0; i < f->naliases && number == 0; i++) {
		const struct rfl_formula_alias *a = &f->aliases[i];
		const size_t from = strlen(a->from);
		char name[RFL_WORD_MAX + 1];

		if (len < from || memcmp(metric, a->from, from) != 0)
			continue;
		int n = snprintf(name, sizeof(name), "%s%.*s", a->to, (int)(len - from),
				 metric + from);
		if (n > 0 && (size_t)n < sizeof(name))
			number = rfl_keys_find(&f->names, name, (size_t)n);
	}
	return (int)number - 1;
}

/* ---- values ---- */

static bool is_present(const uint64_t *present, int slot)
{
	return slot < 0 || (present[slot / 64] >> (slot % 64) & 1);
}

/* How exact the chosen way is: 2 for a count, 1 for a rate x time, which profilers round, 0 for a
 * lower bound or an estimate, -1 for none. */
static int exactness(const struct rfl_formulas *f, enum rfl_quantity q, const int *way)
{
	if (way[q] < 0)
		return -1;
	const struct rfl_formula_way *w = &f->quantities[q].ways[way[q]];
	bool rate = false;
	for (size_t i = 0; i < w->nterms; i++)
		rate = rate || w->terms[i].quantity >= 0;
	return w->kind != RFL_WAY_FULL ? 0 : rate ? 1 : 2;
}

void rfl_formulas_choose(const struct rfl_formulas *f, const uint64_t *present,
			 int way[RFL_QUANTITY_COUNT])
{
	const enum rfl_quantity read = RFL_QUANTITY_DRAM_READ, write = RFL_QUANTITY_DRAM_WRITE;
	bool flops = false;

	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const struct rfl_formula_quantity *quantity = &f->quantities[q];

		/* the first way with all its metrics present */
		way[q] = -1;
		for (size_t w = 0; w < quantity->nways && way[q] < 0; w++) {
			const struct rfl_term *t = quantity->ways[w].terms;
			const struct rfl_term *end = t + quantity->ways[w].nterms;

			while (t < end && is_present(present, t->slot[0]) &&
			       is_present(present, t->slot[1]) && is_present(present, t->slot[2]) &&
			       (t->quantity < 0 || way[t->quantity] != -1))
				t++;
			if (t == end)
				way[q] = (int)w;
		}
		if (way[q] != -1 && rfl_quantity_is_flops(q))
			flops = true;
		if (q == RFL_QUANTITY_FLOPS && way[q] == -1 && flops)
			way[q] = RFL_FORMULA_SUM;
		/* Use read + write if there is no other way, or if both are more exact. */
		if (q == RFL_QUANTITY_DRAM && exactness(f, read, way) > exactness(f, q, way) &&
		    exactness(f, write, way) > exactness(f, q, way))
			way[q] = RFL_FORMULA_SUM;
	}
}

static double way_value(const struct rfl_formula_quantity *quantity, int way, const double *slots,
			const double *found)
{
	const struct rfl_formula_way *w = &quantity->ways[way];
	double sum = 0;

	for (const struct rfl_term *t = w->terms; t < w->terms + w->nterms; t++) {
		double x = t->weight * slots[t->slot[0]];

		if (t->slot[1] >= 0)
			x *= slots[t->slot[1]];
		if (t->quantity >= 0)
			x *= found[t->quantity];
		if (t->slot[2] >= 0)
			x /= slots[t->slot[2]];
		sum += x;
	}
	if (quantity->less.reason && !isnan(slots[quantity->less.slot]))
		sum -= quantity->less.weight * slots[quantity->less.slot];
	/* NaN (0 / 0) and negative numbers are not counts. */
	return isfinite(sum) && sum >= 0 ? sum : NAN;
}

void rfl_formulas_apply(const struct rfl_formulas *f, const double *slots,
			const int way[RFL_QUANTITY_COUNT], double ret[RFL_QUANTITY_COUNT])
{
	double flops = NAN; /* the sum of the known parts of flops.total */

	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		if (way[q] == -1)
			ret[q] = NAN;
		else if (way[q] != RFL_FORMULA_SUM)
			ret[q] = way_value(&f->quantities[q], way[q], slots, ret);
		else if (q == RFL_QUANTITY_FLOPS)
			ret[q] = flops;
		else
			ret[q] = ret[RFL_QUANTITY_DRAM_READ] + ret[RFL_QUANTITY_DRAM_WRITE];
		if (q < RFL_QUANTITY_FLOPS && !isnan(ret[q]) && rfl_quantity_is_flops(q))
			flops = isnan(flops) ? ret[q] : flops + ret[q];
	}
}

void rfl_formulas_eval(const struct rfl_formulas *f, const double *slots,
		       double ret[RFL_QUANTITY_COUNT], int way[RFL_QUANTITY_COUNT])
{
	uint64_t present[RFL_SLOT_WORDS] = { 0 };
	int chosen[RFL_QUANTITY_COUNT];

	for (size_t i = 0; i < f->nslots; i++)
		if (!isnan(slots[i]))
			present[i / 64] |= (uint64_t)1 << (i % 64);
	rfl_formulas_choose(f, present, chosen);
	rfl_formulas_apply(f, slots, chosen, ret);
	for (enum rfl_quantity q = 0; way && q < RFL_QUANTITY_COUNT; q++)
		way[q] = isnan(ret[q]) ? -1 : chosen[q];
}

void rfl_formulas_values(const struct rfl_formulas *f, const char *const *names,
			 const double *values, size_t n, double ret[RFL_QUANTITY_COUNT])
{
	double slots[RFL_SLOTS_MAX];

	for (size_t i = 0; i < RFL_SLOTS_MAX; i++)
		slots[i] = NAN;
	for (size_t i = 0; i < n; i++) {
		const int slot = rfl_formulas_slot(f, names[i], strlen(names[i]));

		if (slot >= 0)
			slots[slot] = values[i];
	}
	rfl_formulas_eval(f, slots, ret, NULL);
}

void rfl_formula_text(const struct rfl_formulas *f, enum rfl_quantity q, int way,
		      struct rfl_buf *out)
{
	if (way == RFL_FORMULA_SUM)
		rfl_buf_puts(out, q == RFL_QUANTITY_DRAM ? "dram_read_bytes + dram_write_bytes"
							 : "the sum of its known parts");
	if (way < 0)
		return;
	const struct rfl_formula_way *w = &f->quantities[q].ways[way];
	for (const struct rfl_term *t = w->terms; t < w->terms + w->nterms; t++) {
		char number[RFL_NUM_MAX];

		if (t > w->terms)
			rfl_buf_puts(out, t->weight < 0 ? " - " : " + ");
		else if (t->weight < 0)
			rfl_buf_puts(out, "-");
		if (fabs(t->weight) != 1)
			rfl_buf_printf(out, "%s x ", rfl_num_exact(fabs(t->weight), number));
		rfl_buf_puts(out, f->slots[t->slot[0]].name);
		if (t->slot[1] >= 0)
			rfl_buf_printf(out, " x %s", f->slots[t->slot[1]].name);
		if (t->quantity >= 0)
			rfl_buf_printf(out, " x %s",
				       rfl_quantity_info((enum rfl_quantity)t->quantity)->name);
		if (t->slot[2] >= 0)
			rfl_buf_printf(out, " / %s", f->slots[t->slot[2]].name);
	}
}

/* ---- missing values ---- */

/* The metrics of a way, without duplicates. */
struct names {
	size_t slots[64];
	size_t n, absent;
	bool has_report;
};

static void add_name(const struct rfl_formulas *f, const double *values, int slot,
		     struct names *names)
{
	if (slot < 0 || names->n == RFL_ARRAY_LEN(names->slots))
		return;
	for (size_t i = 0; i < names->n; i++)
		if (names->slots[i] == (size_t)slot)
			return;
	names->slots[names->n++] = (size_t)slot;
	names->has_report = names->has_report || f->slots[slot].is_report;
	names->absent += !values || isnan(values[slot]);
}

/* The way with the largest share of its metrics present. Ways with names of reports ("Duration")
 * come last, since a profiler cannot collect metrics by such names. */
static const struct rfl_formula_way *nearest_way(const struct rfl_formulas *f,
						 const struct rfl_formula_quantity *quantity,
						 const double *values, struct names *ret)
{
	const struct rfl_formula_way *best = NULL;

	for (size_t w = 0; w < quantity->nways; w++) {
		const struct rfl_formula_way *way = &quantity->ways[w];
		struct names names = { 0 };

		for (const struct rfl_term *t = way->terms; t < way->terms + way->nterms; t++)
			for (size_t i = 0; i < RFL_ARRAY_LEN(t->slot); i++)
				add_name(f, values, t->slot[i], &names);
		if (!best || (names.has_report != ret->has_report
				      ? ret->has_report
				      : names.absent * ret->n < ret->absent * names.n)) {
			*ret = names;
			best = way;
		}
	}
	return best;
}

void rfl_formula_reason(const struct rfl_formulas *f, enum rfl_quantity q, const double *slots,
			const char *strange, struct rfl_buf *out)
{
	const struct rfl_formula_quantity *quantity = &f->quantities[q];
	struct names names = { 0 };
	double value[RFL_QUANTITY_COUNT];
	const char *sep = "";

	const struct rfl_formula_way *way = nearest_way(f, quantity, slots, &names);
	/* no profiler can count what only the user knows (parts/cpu-common.formulas) */
	const bool given = way && rfl_span_starts(rfl_span_of(f->slots[way->terms->slot[0]].name),
						  RFL_METRIC_GIVEN);

	if (quantity->impossible || !way || given) {
		rfl_buf_puts(out, quantity->impossible      ? quantity->impossible
				  : q == RFL_QUANTITY_FLOPS ? "none of its parts is known"
				  : q == RFL_QUANTITY_DRAM
					  ? "dram_read_bytes or dram_write_bytes is unknown"
					  : "no metric of these counters measures this quantity");
		return;
	}
	if (names.absent == 0) {
		/* All metrics are present: a factor is unknown, or the result is not a count. */
		rfl_formulas_eval(f, slots, value, NULL);
		for (const struct rfl_term *t = way->terms; t < way->terms + way->nterms; t++) {
			if (t->quantity < 0 || !isnan(value[t->quantity]))
				continue;
			rfl_buf_printf(out, "needs %s, which is unknown",
				       rfl_quantity_info((enum rfl_quantity)t->quantity)->name);
			return;
		}
		rfl_buf_puts(out, "the counts are inconsistent: ");
		rfl_formula_text(f, q, (int)(way - quantity->ways), out);
		if (quantity->less.reason)
			rfl_buf_printf(out, " less %s", f->slots[quantity->less.slot].name);
		rfl_buf_puts(out, " is negative or not a number");
		return;
	}
	if (strange)
		rfl_buf_printf(out, "present but in no formula: %s; needs ", strange);
	else
		rfl_buf_puts(out, "not counted: ");
	bool command = f->command && !names.has_report;
	if (command)
		rfl_buf_printf(out, "%s ", f->command);
	for (size_t i = 0; i < names.n; i++) {
		if (slots && !isnan(slots[names.slots[i]]))
			continue;
		rfl_buf_printf(out, "%s%s", sep, f->slots[names.slots[i]].name);
		sep = command ? "," : ", ";
	}
}

bool rfl_metric_is_legacy(const char *metric, size_t len)
{
	const struct rfl_span name = { .at = metric, .len = len };

	return !rfl_span_has(name, "__") && !rfl_span_has(name, " ") && rfl_span_has(name, "_");
}

void rfl_formulas_free(struct rfl_formulas *f)
{
	if (f)
		rfl_arena_free(f->arena);
}
