/*
 * capture_finish.c - the end of a capture: what is true of whole ranges, the reasons for what is
 * not known, the totals, and everything moved into the capture's own memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "profile/capture_impl.h"

/* What is made while a capture is finished. */
struct finish {
	struct rfl_capture_builder *b;
	struct rfl_buf text; /* scratch */
	double *slots;       /* of the range at hand */
	uint64_t present[RFL_SLOT_WORDS];
	bool has_reasons; /* reasons are those of `present` */
	const char *reasons[RFL_QUANTITY_COUNT];
	struct rfl_err *err;
};

static enum rfl_rc no_memory(struct finish *f)
{
	return rfl_fail(f->err, RFL_ENOMEM, 0, "out of memory for a capture");
}

/* What was written into the scratch buffer, for the life of the capture. */
static const char *kept(struct finish *f)
{
	if (f->text.failed)
		return NULL;
	return rfl_capture__intern(f->b, rfl_buf_str(&f->text), f->text.len);
}

/* ---- traps ---- */

static double metric_value(const struct rfl_range_sum *r, size_t id)
{
	const struct rfl_metric_sum *sum;

	if (id >= r->nwhere || r->where[id] == 0)
		return NAN;
	sum = &r->metrics[r->where[id] - 1];
	return sum->launches > 0 ? sum->value : NAN;
}

static bool is_sprung(const struct rfl_capture_builder *b, const struct rfl_range_sum *r,
		      const struct rfl_trap *trap)
{
	const struct rfl_formula_quantity *quantity = &b->formulas->quantities[trap->quantity];
	const struct rfl_quantity_sum *sum = &r->quantity[trap->quantity];
	double equal = metric_value(r, trap->equal);

	if (sum->launches == 0 || !(sum->value > 0) || !(equal > 0))
		return false;
	if (quantity->less.reason && !isnan(metric_value(r, quantity->less.slot)))
		return false; /* taken out already, by its own count */
	return equal == trap->weight * metric_value(r, trap->other);
}

static bool knows_flops(const struct rfl_range_sum *r)
{
	for (int q = 0; q < RFL_QUANTITY_FLOPS; q++)
		if (rfl_quantity_is_flops((enum rfl_quantity)q) && r->quantity[q].launches > 0)
			return true;
	return false;
}

static enum rfl_rc leave_out(struct finish *f, struct rfl_range_sum *r, const struct rfl_trap *trap)
{
	struct rfl_quantity_sum *sum = &r->quantity[trap->quantity];
	struct rfl_quantity_sum *total = &r->quantity[RFL_QUANTITY_FLOPS];
	char number[RFL_NUM_MAX];

	rfl_buf_reset(&f->text);
	rfl_buf_printf(&f->text, "%s FLOP left out: %s",
		       rfl_num_grouped((int64_t)sum->value, number), trap->reason);
	if (total->launches > 0 && total->way == RFL_FORMULA_SUM)
		total->value -= sum->value;
	*sum = (struct rfl_quantity_sum){ .reason = kept(f), .way = -1 };
	if (!sum->reason)
		return no_memory(f);
	if (!knows_flops(r) && total->way == RFL_FORMULA_SUM)
		*total = (struct rfl_quantity_sum){ .way = -1 };
	return RFL_OK;
}

/* A line for each trap that was sprung: in how many ranges, and how much was left out. */
static enum rfl_rc spring_trap(struct finish *f, const struct rfl_trap *trap)
{
	struct rfl_capture_builder *b = f->b;
	char number[RFL_NUM_MAX];
	double left_out = 0;
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < b->nranges && rc == RFL_OK; i++) {
		if (!is_sprung(b, b->ranges[i], trap))
			continue;
		left_out += b->ranges[i]->quantity[trap->quantity].value;
		n++;
		rc = leave_out(f, b->ranges[i], trap);
	}
	if (n > 0)
		rfl_capture_note(b, "%s of %zu of %zu ranges left out, %s FLOP: %s",
				 rfl_quantity_info(trap->quantity)->name, n, b->nranges,
				 rfl_num_grouped((int64_t)left_out, number), trap->reason);
	return rc;
}

static enum rfl_rc spring_traps(struct finish *f)
{
	size_t n;
	const struct rfl_trap *traps = rfl_formulas_traps(f->b->formulas, &n);
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = spring_trap(f, &traps[i]);
	return rc;
}

/* ---- rules and reasons ---- */

static void put_rule(struct finish *f, enum rfl_quantity q, int way)
{
	const struct rfl_formulas *formulas = f->b->formulas;
	const struct rfl_formula_quantity *quantity = &formulas->quantities[q];

	rfl_formula_text(formulas, q, way, &f->text);
	if (way >= 0 && quantity->less.reason && !isnan(f->slots[quantity->less.slot])) {
		char number[RFL_NUM_MAX];

		rfl_buf_printf(&f->text, " - %s x %s", rfl_num_exact(quantity->less.weight, number),
			       rfl_formulas_slot_name(formulas, quantity->less.slot));
	}
}

/* The parts of flops.total that are known, as a rule; and those that are not, as a caveat. */
static void put_flops_rule(struct finish *f, const struct rfl_amount *amount)
{
	const char *sep = "";

	for (int q = 0; q < RFL_QUANTITY_FLOPS; q++) {
		if (!rfl_quantity_is_flops((enum rfl_quantity)q) || isnan(amount[q].value))
			continue;
		rfl_buf_printf(&f->text, "%s%s", sep,
			       rfl_quantity_info((enum rfl_quantity)q)->name);
		sep = " + ";
	}
}

static void put_flops_caveat(struct finish *f, const struct rfl_amount *amount)
{
	const char *sep = "without ";

	for (int q = 0; q < RFL_QUANTITY_FLOPS; q++) {
		if (!rfl_quantity_is_flops((enum rfl_quantity)q) || !isnan(amount[q].value) ||
		    rfl_formula_ways(f->b->formulas, (enum rfl_quantity)q) == 0)
			continue;
		rfl_buf_printf(&f->text, "%s%s", sep,
			       rfl_quantity_info((enum rfl_quantity)q)->name);
		sep = ", ";
	}
	if (f->text.len > 0)
		rfl_buf_puts(&f->text, ", which were not counted");
}

static enum rfl_rc set_rule(struct finish *f, enum rfl_quantity q,
			    const struct rfl_quantity_sum *sum, struct rfl_amount *amount)
{
	rfl_buf_reset(&f->text);
	if (q == RFL_QUANTITY_FLOPS && sum->way == RFL_FORMULA_SUM)
		put_flops_rule(f, amount);
	else
		put_rule(f, q, sum->way);
	if (sum->several_ways)
		rfl_buf_puts(&f->text, " (other launches otherwise)");
	amount[q].rule = kept(f);
	return amount[q].rule ? RFL_OK : no_memory(f);
}

/* What one of the metrics said of itself, where a quantity could not be had. */
static const char *said_by_metric(const struct finish *f, const struct rfl_range_sum *r,
				  enum rfl_quantity q, size_t *id)
{
	const struct rfl_formulas *formulas = f->b->formulas;

	for (size_t w = 0; w < rfl_formula_ways(formulas, q); w++) {
		size_t n;
		const struct rfl_term *t = rfl_formula_way(formulas, q, w, &n);

		for (size_t i = 0; i < n; i++, t++) {
			uint32_t at = t->slot < r->nwhere ? r->where[t->slot] : 0;

			if (at == 0 || r->metrics[at - 1].launches > 0 ||
			    !r->metrics[at - 1].reason)
				continue;
			*id = t->slot;
			return r->metrics[at - 1].reason;
		}
	}
	return NULL;
}

static enum rfl_rc set_unavailable(struct finish *f, enum rfl_quantity q,
				   const struct rfl_range_sum *r, struct rfl_amount *amount)
{
	size_t id = 0;
	const char *said = said_by_metric(f, r, q, &id);

	amount->value = NAN;
	amount->validity = RFL_VALID_UNAVAILABLE;
	amount->reason = r->quantity[q].reason; /* a trap */
	if (amount->reason)
		return RFL_OK;
	rfl_buf_reset(&f->text);
	if (said)
		rfl_buf_printf(&f->text, "%s: %s", f->b->metrics[id].name, said);
	else if (f->has_reasons && f->reasons[q])
		amount->reason = f->reasons[q];
	else
		rfl_formula_reason(f->b->formulas, q, f->slots, &f->text);
	if (!amount->reason)
		amount->reason = kept(f);
	if (!amount->reason)
		return no_memory(f);
	if (!said)
		f->reasons[q] = amount->reason;
	return RFL_OK;
}

static void raise(struct rfl_amount *amount, enum rfl_validity validity, const char *reason)
{
	if (validity < amount->validity)
		return;
	if (validity > amount->validity || !amount->reason)
		amount->reason = reason;
	amount->validity = validity;
}

/* @param why  it is not known of the others; NULL: nothing to say of that */
static enum rfl_rc set_partial(struct finish *f, int64_t counted, int64_t all, const char *what,
			       const char *why, struct rfl_amount *amount)
{
	char of[RFL_NUM_MAX], number[RFL_NUM_MAX];

	rfl_buf_reset(&f->text);
	rfl_buf_printf(&f->text, "a lower bound: known of %s of %s %s",
		       rfl_num_grouped(counted, number), rfl_num_grouped(all, of), what);
	if (why)
		rfl_buf_printf(&f->text, "; of others: %s", why);
	raise(amount, RFL_VALID_PARTIAL, kept(f));
	return amount->reason ? RFL_OK : no_memory(f);
}

static enum rfl_rc set_amount(struct finish *f, enum rfl_quantity q, const struct rfl_range_sum *r,
			      struct rfl_amount *amounts)
{
	const struct rfl_quantity_sum *sum = &r->quantity[q];
	struct rfl_amount *amount = &amounts[q];
	enum rfl_rc rc;

	amount->launches = sum->launches;
	if (sum->launches == 0)
		return set_unavailable(f, q, r, amount);
	amount->value = sum->value;
	raise(amount, (enum rfl_validity)sum->validity, sum->reason);
	if (sum->way >= 0) {
		static const enum rfl_validity of_way[] = {
			[RFL_WAY_FULL] = RFL_VALID,
			[RFL_WAY_PARTIAL] = RFL_VALID_PARTIAL,
			[RFL_WAY_ESTIMATE] = RFL_VALID_ESTIMATE,
		};

		raise(amount, of_way[rfl_formula_way_kind(f->b->formulas, q, (size_t)sum->way)],
		      rfl_formula_caveat(f->b->formulas, q, (size_t)sum->way));
	}
	rc = set_rule(f, q, sum, amounts);
	if (rc == RFL_OK && sum->launches < r->launches)
		rc = set_partial(f, sum->launches, r->launches, "launches", NULL, amount);
	if (rc == RFL_OK && amount->reason) {
		amount->reason = rfl_capture__intern(f->b, amount->reason, strlen(amount->reason));
		rc = amount->reason ? RFL_OK : no_memory(f);
	}
	return rc;
}

static enum rfl_rc set_flops_caveat(struct finish *f, struct rfl_amount *amounts)
{
	struct rfl_amount *total = &amounts[RFL_QUANTITY_FLOPS];

	if (isnan(total->value) || total->reason)
		return RFL_OK;
	rfl_buf_reset(&f->text);
	put_flops_caveat(f, amounts);
	if (f->text.len == 0)
		return RFL_OK;
	total->reason = kept(f);
	return total->reason ? RFL_OK : no_memory(f);
}

/* ---- ranges ---- */

/* The range's slots, and whether the reasons of the range before hold for it. */
static void look_at(struct finish *f, const struct rfl_range_sum *r)
{
	uint64_t present[RFL_SLOT_WORDS] = { 0 };
	size_t n = rfl_formulas_slots(f->b->formulas);

	for (size_t i = 0; i < n; i++) {
		f->slots[i] = metric_value(r, i);
		if (!isnan(f->slots[i]))
			present[i / 64] |= (uint64_t)1 << (i % 64);
	}
	f->has_reasons = f->has_reasons && memcmp(present, f->present, sizeof(present)) == 0;
	if (!f->has_reasons)
		memset(f->reasons, 0, sizeof(f->reasons));
	f->has_reasons = true;
	memcpy(f->present, present, sizeof(present));
}

static enum rfl_rc set_metric(struct finish *f, const struct rfl_range_sum *r,
			      const struct rfl_metric_sum *sum, struct rfl_metric *ret)
{
	const struct rfl_metric_def *def = &f->b->metrics[sum->id];
	char of[RFL_NUM_MAX], number[RFL_NUM_MAX];

	*ret = (struct rfl_metric){
		.name = def->name,
		.unit = def->unit,
		.rollup = def->rollup,
		.validity = sum->launches > 0 ? (enum rfl_validity)sum->validity
					      : RFL_VALID_UNAVAILABLE,
		.value = sum->value,
		.launches = sum->launches,
		.pass = sum->pass,
		.reason = sum->reason,
	};
	if (def->rollup == RFL_ROLLUP_MEAN && sum->launches > 0)
		ret->value /= sum->weight;
	if (sum->launches > 0 && sum->launches < r->launches &&
	    ret->validity <= RFL_VALID_PARTIAL) {
		ret->validity = RFL_VALID_PARTIAL;
		rfl_buf_reset(&f->text);
		rfl_buf_printf(&f->text, "of %s of %s launches",
			       rfl_num_grouped(sum->launches, number),
			       rfl_num_grouped(r->launches, of));
		ret->reason = kept(f);
		if (!ret->reason)
			return no_memory(f);
	}
	if (!ret->reason)
		return RFL_OK;
	ret->reason = rfl_capture__intern(f->b, ret->reason, strlen(ret->reason));
	return ret->reason ? RFL_OK : no_memory(f);
}

static enum rfl_rc set_range(struct finish *f, const struct rfl_range_sum *r, struct rfl_range *ret)
{
	struct rfl_metric *metrics = rfl_arena_array(f->b->arena, r->nmetrics, sizeof(*metrics));
	enum rfl_rc rc = metrics ? RFL_OK : no_memory(f);

	*ret = (struct rfl_range){
		.kind = r->kind,
		.name = r->name,
		.block = r->block,
		.grid = r->grid,
		.launches = r->launches,
		.nmetrics = r->nmetrics,
		.metrics = metrics,
	};
	for (size_t i = 0; i < r->nmetrics && rc == RFL_OK; i++)
		rc = set_metric(f, r, &r->metrics[i], &metrics[i]);
	look_at(f, r);
	for (int q = 0; q < RFL_QUANTITY_COUNT && rc == RFL_OK; q++)
		rc = set_amount(f, (enum rfl_quantity)q, r, ret->amount);
	return rc ? rc : set_flops_caveat(f, ret->amount);
}

static enum rfl_rc set_ranges(struct finish *f)
{
	struct rfl_capture_builder *b = f->b;
	struct rfl_range *ranges = rfl_arena_array(b->arena, b->nranges, sizeof(*ranges));
	size_t n = 0;
	enum rfl_rc rc = ranges ? RFL_OK : no_memory(f);

	for (size_t i = 0; i < b->nranges && rc == RFL_OK; i++)
		if (b->ranges[i]->launches > 0)
			rc = set_range(f, b->ranges[i], &ranges[n++]);
	b->capture.ranges = ranges;
	b->capture.nranges = n;
	return rc;
}

/* ---- totals ---- */

static bool has_amounts(const struct rfl_capture *c, enum rfl_range_kind kind)
{
	for (size_t i = 0; i < c->nranges; i++)
		for (int q = 0; c->ranges[i].kind == kind && q < RFL_QUANTITY_COUNT; q++)
			if (!isnan(c->ranges[i].amount[q].value))
				return true;
	return false;
}

/* The widest ranges of which anything is known: kernels are parts of phases, phases of steps. */
static enum rfl_range_kind total_kind(const struct rfl_capture *c)
{
	static const enum rfl_range_kind kinds[] = { RFL_RANGE_STEP, RFL_RANGE_PHASE,
						     RFL_RANGE_LAYER, RFL_RANGE_PROCESS };

	for (size_t i = 0; i < RFL_ARRAY_LEN(kinds); i++)
		if (has_amounts(c, kinds[i]))
			return kinds[i];
	return RFL_RANGE_KERNEL;
}

static bool is_same_rule(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* The sum of one quantity over the ranges of a kind. */
static enum rfl_rc set_total(struct finish *f, enum rfl_quantity q)
{
	struct rfl_capture *c = &f->b->capture;
	struct rfl_amount *total = &c->total[q];
	const char *why = NULL;
	int64_t all = 0;
	bool several = false;

	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_amount *a = &c->ranges[i].amount[q];

		if (c->ranges[i].kind != c->total_kind)
			continue;
		all += c->ranges[i].launches;
		if (isnan(a->value)) {
			why = why ? why : a->reason;
			continue;
		}
		several = several || (total->rule && !is_same_rule(total->rule, a->rule));
		total->rule = a->rule;
		total->value += a->value;
		total->launches += a->launches;
		/* a partial count of a range shows in the launches */
		if (a->validity != RFL_VALID_PARTIAL || a->launches == c->ranges[i].launches)
			raise(total, a->validity, a->reason);
	}
	if (several && q != RFL_QUANTITY_FLOPS)
		total->rule = "several rules: see the ranges";
	if (total->launches == 0) {
		total->value = NAN;
		total->validity = RFL_VALID_UNAVAILABLE;
		total->reason = why ? why : "there are no kernels and no ranges";
		return RFL_OK;
	}
	if (total->launches == all)
		return RFL_OK;
	return set_partial(f, total->launches, all,
			   c->total_kind == RFL_RANGE_KERNEL ? "launches" : "ranges", why, total);
}

static enum rfl_rc set_totals(struct finish *f)
{
	struct rfl_capture *c = &f->b->capture;
	struct rfl_amount *flops = &c->total[RFL_QUANTITY_FLOPS];
	enum rfl_rc rc = RFL_OK;

	c->total_kind = total_kind(c);
	for (int q = 0; q < RFL_QUANTITY_COUNT && rc == RFL_OK; q++)
		rc = set_total(f, (enum rfl_quantity)q);
	if (rc != RFL_OK || isnan(flops->value))
		return rc;
	rfl_buf_reset(&f->text);
	put_flops_rule(f, c->total);
	if (f->text.len > 0)
		flops->rule = kept(f);
	if (f->text.len > 0 && !flops->rule)
		return no_memory(f);
	if (flops->validity == RFL_VALID)
		flops->reason = NULL;
	return set_flops_caveat(f, c->total);
}

/* ---- all of it ---- */

static enum rfl_rc set_notes(struct rfl_capture_builder *b, struct rfl_err *err)
{
	const char **notes = rfl_arena_array(b->arena, b->nnotes, sizeof(*notes));

	if (!notes || b->no_memory)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	if (b->nnotes > 0)
		memcpy(notes, b->notes, b->nnotes * sizeof(*notes));
	b->capture.notes = notes;
	b->capture.nnotes = b->nnotes;
	return RFL_OK;
}

enum rfl_rc rfl_capture__hand_over(struct rfl_capture_builder *b, struct rfl_captures *to,
				   struct rfl_err *err)
{
	struct rfl_capture *c = rfl_arena_array(b->arena, 1, sizeof(*c));
	enum rfl_rc rc = set_notes(b, err);

	if (rc != RFL_OK)
		return rc;
	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	*c = b->capture;
	rc = rfl_captures__add(to, c, b->arena, err);
	if (rc == RFL_OK)
		b->arena = NULL;
	return rc;
}

enum rfl_rc rfl_capture_finish(struct rfl_capture_builder *b, struct rfl_captures *to,
			       struct rfl_err *err)
{
	struct finish f = { .b = b, .err = err };
	enum rfl_rc rc;

	rfl_buf_init(&f.text, 0);
	f.slots = rfl_alloc_array(rfl_formulas_slots(b->formulas), sizeof(*f.slots));
	rc = f.slots ? RFL_OK : no_memory(&f);
	if (rc == RFL_OK)
		rc = spring_traps(&f);
	if (rc == RFL_OK)
		rc = set_ranges(&f);
	if (rc == RFL_OK)
		rc = set_totals(&f);
	if (rc == RFL_OK)
		rc = rfl_capture__hand_over(b, to, err);
	free(f.slots);
	rfl_buf_fini(&f.text);
	return rc;
}
