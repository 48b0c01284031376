/*
 * text.c - a formula as text, and why it gave nothing.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/span.h"
#include "profile/formula.h"

static const char *quantity_name(int q)
{
	return rfl_quantity_info((enum rfl_quantity)q)->name;
}

void rfl_formula_text(const struct rfl_formulas *f, enum rfl_quantity q, int way,
		      struct rfl_buf *out)
{
	const struct rfl_formula_way *w;

	if (way == RFL_FORMULA_SUM)
		rfl_buf_puts(out, q == RFL_QUANTITY_DRAM ? "dram_read_bytes + dram_write_bytes"
							 : "the sum of its known parts");
	if (way < 0)
		return;
	w = &f->quantities[q].ways[way];
	for (const struct rfl_term *t = w->terms; t < w->terms + w->nterms; t++) {
		char number[RFL_NUM_MAX];

		if (t > w->terms)
			rfl_buf_puts(out, t->weight < 0 ? " - " : " + ");
		else if (t->weight < 0)
			rfl_buf_puts(out, "-");
		if (fabs(t->weight) != 1)
			rfl_buf_printf(out, "%s x ", rfl_num_exact(fabs(t->weight), number));
		rfl_buf_puts(out, f->slots[t->slot].name);
		if (t->per_slot >= 0)
			rfl_buf_printf(out, " x %s", f->slots[t->per_slot].name);
		if (t->per_quantity >= 0)
			rfl_buf_printf(out, " x %s", quantity_name(t->per_quantity));
		if (t->over_slot >= 0)
			rfl_buf_printf(out, " / %s", f->slots[t->over_slot].name);
	}
}

/* ---- why there is no value ---- */

/* The metrics of one way, without doubles. */
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

/* The way that has the largest share of its metrics, preferably one that can be counted: a report
 * cannot be asked for. */
static const struct rfl_formula_way *nearest_way(const struct rfl_formulas *f,
						 const struct rfl_formula_quantity *quantity,
						 const double *values, struct names *ret)
{
	const struct rfl_formula_way *best = NULL;

	for (size_t w = 0; w < quantity->nways; w++) {
		const struct rfl_formula_way *way = &quantity->ways[w];
		struct names names = { 0 };

		for (const struct rfl_term *t = way->terms; t < way->terms + way->nterms; t++) {
			add_name(f, values, (int)t->slot, &names);
			add_name(f, values, t->per_slot, &names);
			add_name(f, values, t->over_slot, &names);
		}
		if (!best || (names.has_report != ret->has_report
				      ? ret->has_report
				      : names.absent * ret->n < ret->absent * names.n)) {
			*ret = names;
			best = way;
		}
	}
	return best;
}

/* The metrics of a way are all there, and gave no count: a quantity that they are multiplied by is
 * not known, or the result is not a count. */
static void put_no_count(const struct rfl_formulas *f, enum rfl_quantity q,
			 const struct rfl_formula_way *way, const double *slots,
			 struct rfl_buf *out)
{
	const struct rfl_formula_quantity *quantity = &f->quantities[q];
	double value[RFL_QUANTITY_COUNT];

	rfl_formulas_eval(f, slots, value, NULL);
	for (const struct rfl_term *t = way->terms; t < way->terms + way->nterms; t++) {
		if (t->per_quantity < 0 || !isnan(value[t->per_quantity]))
			continue;
		rfl_buf_printf(out, "needs %s, which is not known", quantity_name(t->per_quantity));
		return;
	}
	rfl_buf_puts(out, "the counts do not fit together: ");
	rfl_formula_text(f, q, (int)(way - quantity->ways), out);
	if (quantity->less.reason)
		rfl_buf_printf(out, " less %s", f->slots[quantity->less.slot].name);
	rfl_buf_puts(out, " is not a number from 0 on");
}

void rfl_formula_reason(const struct rfl_formulas *f, enum rfl_quantity q, const double *slots,
			const char *strange, struct rfl_buf *out)
{
	const struct rfl_formula_quantity *quantity = &f->quantities[q];
	const struct rfl_formula_way *way;
	struct names names = { 0 };
	const char *sep = "";
	bool command;

	if (quantity->impossible || quantity->nways == 0) {
		rfl_buf_puts(out, quantity->impossible      ? quantity->impossible
				  : q == RFL_QUANTITY_FLOPS ? "none of its parts is known"
				  : q == RFL_QUANTITY_DRAM
					  ? "dram_read_bytes or dram_write_bytes is not known"
					  : "not among the metrics of these counters");
		return;
	}
	way = nearest_way(f, quantity, slots, &names);
	if (names.absent == 0) {
		put_no_count(f, q, way, slots, out);
		return;
	}
	if (strange)
		rfl_buf_printf(out, "present but not understood: %s; needs ", strange);
	else
		rfl_buf_puts(out, "not counted: ");
	command = f->command && !names.has_report;
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
