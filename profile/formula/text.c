/*
 * text.c - a formula in words, and why it gave nothing.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "profile/formula/impl.h"
#include "profile/import/span.h"

static void put_weight(struct rfl_buf *out, double weight, bool first)
{
	char number[RFL_NUM_MAX];

	if (!first)
		rfl_buf_puts(out, weight < 0 ? " - " : " + ");
	else if (weight < 0)
		rfl_buf_puts(out, "-");
	weight = fabs(weight);
	if (weight != 1)
		rfl_buf_printf(out, "%s x ", rfl_num_exact(weight, number));
}

static void put_term(const struct rfl_formulas *f, const struct rfl_term *t, bool first,
		     struct rfl_buf *out)
{
	put_weight(out, t->weight, first);
	rfl_buf_puts(out, f->slots[t->slot].name);
	if (t->per_slot >= 0)
		rfl_buf_printf(out, " x %s", f->slots[t->per_slot].name);
	if (t->per_quantity >= 0)
		rfl_buf_printf(out, " x %s",
			       rfl_quantity_info((enum rfl_quantity)t->per_quantity)->name);
	if (t->over_slot >= 0)
		rfl_buf_printf(out, " / %s", f->slots[t->over_slot].name);
}

void rfl_formula_text(const struct rfl_formulas *f, enum rfl_quantity q, int way,
		      struct rfl_buf *out)
{
	const struct rfl_term *t;
	size_t n;

	if (way == RFL_FORMULA_SUM) {
		rfl_buf_puts(out, q == RFL_QUANTITY_DRAM ? "dram_read_bytes + dram_write_bytes"
							 : "the sum of its known parts");
		return;
	}
	if (way < 0)
		return;
	t = rfl_formula_way(f, q, (size_t)way, &n);
	for (size_t i = 0; i < n; i++)
		put_term(f, &t[i], i == 0, out);
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
	if (slot < 0)
		return;
	for (size_t i = 0; i < names->n; i++)
		if (names->slots[i] == (size_t)slot)
			return;
	if (names->n == sizeof(names->slots) / sizeof(names->slots[0]))
		return;
	names->slots[names->n++] = (size_t)slot;
	if (f->slots[slot].is_report)
		names->has_report = true;
	if (!values || isnan(values[slot]))
		names->absent++;
}

static void names_of(const struct rfl_formulas *f, enum rfl_quantity q, size_t way,
		     const double *values, struct names *names)
{
	size_t n;
	const struct rfl_term *t = rfl_formula_way(f, q, way, &n);

	*names = (struct names){ 0 };
	for (size_t i = 0; i < n; i++, t++) {
		add_name(f, values, (int)t->slot, names);
		add_name(f, values, t->per_slot, names);
		add_name(f, values, t->over_slot, names);
	}
}

/* Of two ways the one of which a larger share is there; a report cannot be asked for. */
static bool is_nearer(const struct names *a, const struct names *b)
{
	if (a->has_report != b->has_report)
		return !a->has_report;
	return a->absent * b->n < b->absent * a->n;
}

static void put_names(const struct rfl_formulas *f, const struct names *names, const double *values,
		      const char *between, struct rfl_buf *out)
{
	const char *sep = "";

	for (size_t i = 0; i < names->n; i++) {
		if (values && !isnan(values[names->slots[i]]))
			continue;
		rfl_buf_printf(out, "%s%s", sep, f->slots[names->slots[i]].name);
		sep = between;
	}
}

/* The metrics of the nearest way are all there, and gave no count: a quantity that they are
 * multiplied by is not known, or the result is no count. */
static void put_no_count(const struct rfl_formulas *f, enum rfl_quantity q, int way,
			 const double *slots, struct rfl_buf *out)
{
	double value[RFL_QUANTITY_COUNT];
	size_t n;
	const struct rfl_term *t = rfl_formula_way(f, q, (size_t)way, &n);

	rfl_formulas_eval(f, slots, value, NULL);
	for (size_t i = 0; i < n; i++) {
		if (t[i].per_quantity < 0 || !isnan(value[t[i].per_quantity]))
			continue;
		rfl_buf_printf(out, "needs %s, which is not known",
			       rfl_quantity_info((enum rfl_quantity)t[i].per_quantity)->name);
		return;
	}
	rfl_buf_puts(out, "the counts do not fit together: ");
	rfl_formula_text(f, q, way, out);
	if (f->quantities[q].less.reason)
		rfl_buf_printf(out, " less %s", f->slots[f->quantities[q].less.slot].name);
	rfl_buf_puts(out, " is not a number from 0 on");
}

void rfl_formula_reason(const struct rfl_formulas *f, enum rfl_quantity q, const double *slots,
			const char *strange, struct rfl_buf *out)
{
	const struct rfl_formula_quantity *quantity = &f->quantities[q];
	struct names best = { 0 };
	int best_way = -1;

	if (quantity->impossible) {
		rfl_buf_puts(out, quantity->impossible);
		return;
	}
	if (quantity->nways == 0) {
		rfl_buf_puts(out, q == RFL_QUANTITY_FLOPS ? "none of its parts is known"
				  : q == RFL_QUANTITY_DRAM
					  ? "dram_read_bytes or dram_write_bytes is not known"
					  : "not among what these counters tell");
		return;
	}
	for (size_t w = 0; w < quantity->nways; w++) {
		struct names names;

		names_of(f, q, w, slots, &names);
		if (best_way < 0 || is_nearer(&names, &best)) {
			best = names;
			best_way = (int)w;
		}
	}
	if (best.absent == 0) {
		put_no_count(f, q, best_way, slots, out);
		return;
	}
	if (strange)
		rfl_buf_printf(out, "present but not understood: %s; needs ", strange);
	else
		rfl_buf_puts(out, "not counted: ");
	if (f->command && !best.has_report) {
		rfl_buf_printf(out, "%s ", f->command);
		put_names(f, &best, slots, ",", out);
	} else {
		put_names(f, &best, slots, ", ", out);
	}
}

bool rfl_metric_is_legacy(const char *metric, size_t len)
{
	const struct rfl_span name = { .at = metric, .len = len };

	return !rfl_span_has(name, "__") && !rfl_span_has(name, " ") && rfl_span_has(name, "_");
}
