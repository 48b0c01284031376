/*
 * finish.c - the end of a capture: what is true of whole ranges, the reasons for what is
 * not known, the totals, and everything moved into the capture's own memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "profile/capture/impl.h"

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

static enum rfl_rc leave_out(struct rfl_finish *f, struct rfl_range_sum *r,
			     const struct rfl_trap *trap)
{
	struct rfl_quantity_sum *sum = &r->quantity[trap->quantity];
	struct rfl_quantity_sum *total = &r->quantity[RFL_QUANTITY_FLOPS];
	char number[RFL_NUM_MAX];

	rfl_buf_reset(&f->text);
	rfl_buf_printf(&f->text, "%s FLOP left out: %s", rfl_num_full(sum->value, number),
		       trap->reason);
	if (total->launches > 0 && total->way == RFL_FORMULA_SUM)
		total->value -= sum->value;
	*sum = (struct rfl_quantity_sum){ .reason = rfl_finish__kept(f),
					  .way = -1,
					  .is_left_out = true };
	f->left_out[trap->quantity] = true;
	if (!sum->reason)
		return rfl_finish__no_memory(f);
	if (!knows_flops(r) && total->way == RFL_FORMULA_SUM)
		*total = (struct rfl_quantity_sum){ .way = -1 };
	return RFL_OK;
}

/* A line for each trap that was sprung: in how many ranges, and how much was left out. */
static enum rfl_rc spring_trap(struct rfl_finish *f, const struct rfl_trap *trap)
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
				 rfl_num_full(left_out, number), trap->reason);
	return rc;
}

static enum rfl_rc spring_traps(struct rfl_finish *f)
{
	size_t n;
	const struct rfl_trap *traps = rfl_formulas_traps(f->b->formulas, &n);
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = spring_trap(f, &traps[i]);
	return rc;
}

/* ---- rules and reasons ---- */

static void put_rule(struct rfl_finish *f, enum rfl_quantity q, int way)
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

static enum rfl_rc set_rule(struct rfl_finish *f, enum rfl_quantity q,
			    const struct rfl_quantity_sum *sum, struct rfl_amount *amount)
{
	rfl_buf_reset(&f->text);
	put_rule(f, q, sum->way);
	if (sum->several_ways)
		rfl_buf_puts(&f->text, " (other launches otherwise)");
	amount[q].rule = rfl_finish__kept(f);
	return amount[q].rule ? RFL_OK : rfl_finish__no_memory(f);
}

/* A reason that several metrics give is one of the machine or of a set: the name of the first would
 * say nothing, and hide that the reasons are one. So would a name that is the quantity's. */
static bool names_its_metric(const struct rfl_finish *f, const struct rfl_range_sum *r,
			     enum rfl_quantity q, size_t id, const char *said)
{
	size_t alike = 0;

	for (uint32_t i = 0; i < r->nmetrics; i++)
		alike += r->metrics[i].launches == 0 && r->metrics[i].reason &&
			 strcmp(r->metrics[i].reason, said) == 0;
	return alike < 2 && strcmp(f->b->metrics[id].name, rfl_quantity_info(q)->name) != 0;
}

/* What one of the metrics said of itself, where a quantity could not be had. `id` is SIZE_MAX where
 * its name adds nothing. */
static const char *said_by_metric(const struct rfl_finish *f, const struct rfl_range_sum *r,
				  enum rfl_quantity q, size_t *id)
{
	const struct rfl_formulas *formulas = f->b->formulas;

	for (size_t w = 0; w < rfl_formula_ways(formulas, q); w++) {
		size_t n;
		const struct rfl_term *t = rfl_formula_way(formulas, q, w, &n);

		for (size_t i = 0; i < n; i++, t++) {
			uint32_t at = t->slot < r->nwhere ? r->where[t->slot] : 0;
			const char *said = at > 0 ? r->metrics[at - 1].reason : NULL;

			if (!said || r->metrics[at - 1].launches > 0)
				continue;
			*id = names_its_metric(f, r, q, t->slot, said) ? t->slot : SIZE_MAX;
			return said;
		}
	}
	return NULL;
}

static enum rfl_rc set_unavailable(struct rfl_finish *f, enum rfl_quantity q,
				   const struct rfl_range_sum *r, struct rfl_amount *amount)
{
	size_t id = 0;
	const char *said = said_by_metric(f, r, q, &id);

	/* a sum is not known for what its first part says */
	for (int part = 0; !said && part < RFL_QUANTITY_COUNT; part++)
		if (rfl_quantity_is_part((enum rfl_quantity)part, q))
			said = said_by_metric(f, r, (enum rfl_quantity)part, &id);
	amount->value = NAN;
	amount->validity = RFL_VALID_UNAVAILABLE;
	amount->reason = r->quantity[q].reason; /* a trap */
	if (amount->reason)
		return RFL_OK;
	rfl_buf_reset(&f->text);
	if (said && id == SIZE_MAX)
		rfl_buf_puts(&f->text, said);
	else if (said)
		rfl_buf_printf(&f->text, "%s: %s", f->b->metrics[id].name, said);
	else if (f->has_reasons && f->reasons[q])
		amount->reason = f->reasons[q];
	else
		rfl_formula_reason(f->b->formulas, q, f->slots, f->b->strange[q], &f->text);
	if (!amount->reason)
		amount->reason = rfl_finish__kept(f);
	if (!amount->reason)
		return rfl_finish__no_memory(f);
	if (!said)
		f->reasons[q] = amount->reason;
	return RFL_OK;
}

/* No better than a quantity that it was made of, where that is known. */
static enum rfl_rc inherit(struct rfl_finish *f, const struct rfl_range_sum *r,
			   enum rfl_quantity from, enum rfl_quantity q, struct rfl_amount *amounts)
{
	const struct rfl_quantity_sum *a = &r->quantity[from];
	const char *why;

	if (a->launches == 0)
		return RFL_OK;
	if (q == RFL_QUANTITY_FLOPS && a->launches < amounts[q].launches)
		rfl_finish__raise(f, &amounts[q], RFL_VALID_PARTIAL,
				  "a lower bound: one of its parts is not known of all launches");
	if (a->validity <= amounts[q].validity || a->launches < amounts[q].launches)
		return RFL_OK;
	rfl_buf_reset(&f->text);
	rfl_buf_printf(&f->text, "%s%s%s", rfl_quantity_info(from)->name, a->reason ? ": " : "",
		       a->reason ? a->reason : "");
	why = rfl_finish__kept(f);
	rfl_finish__raise(f, &amounts[q], (enum rfl_validity)a->validity, why);
	return why ? RFL_OK : rfl_finish__no_memory(f);
}

/* What the way that was taken makes of a quantity, and the quantities in it. */
static enum rfl_rc judge_way(struct rfl_finish *f, const struct rfl_range_sum *r,
			     enum rfl_quantity q, struct rfl_amount *amounts)
{
	static const enum rfl_validity of_way[] = {
		[RFL_WAY_FULL] = RFL_VALID,
		[RFL_WAY_PARTIAL] = RFL_VALID_PARTIAL,
		[RFL_WAY_ESTIMATE] = RFL_VALID_ESTIMATE,
	};
	const struct rfl_formulas *formulas = f->b->formulas;
	const int way = r->quantity[q].way;
	enum rfl_rc rc = RFL_OK;
	const struct rfl_term *t;
	size_t n;

	if (way == RFL_FORMULA_SUM) {
		for (int part = 0; part < (int)q && rc == RFL_OK; part++)
			if (rfl_quantity_is_part((enum rfl_quantity)part, q))
				rc = inherit(f, r, (enum rfl_quantity)part, q, amounts);
		return rc;
	}
	if (way < 0)
		return RFL_OK;
	rfl_finish__raise(f, &amounts[q], of_way[rfl_formula_way_kind(formulas, q, (size_t)way)],
			  rfl_formula_caveat(formulas, q, (size_t)way));
	t = rfl_formula_way(formulas, q, (size_t)way, &n);
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		if (t[i].per_quantity >= 0)
			rc = inherit(f, r, (enum rfl_quantity)t[i].per_quantity, q, amounts);
	return rc;
}

/* From here on `sum` says how good the launches are that had it; the amount, of the range. */
static enum rfl_rc set_amount(struct rfl_finish *f, enum rfl_quantity q, struct rfl_range_sum *r,
			      struct rfl_amount *amounts)
{
	struct rfl_quantity_sum *sum = &r->quantity[q];
	struct rfl_amount *amount = &amounts[q];
	enum rfl_rc rc;

	amount->launches = sum->launches;
	if (sum->launches == 0)
		return set_unavailable(f, q, r, amount);
	amount->value = sum->value;
	rfl_finish__raise(f, amount, (enum rfl_validity)sum->validity, sum->reason);
	rc = judge_way(f, r, q, amounts);
	if (rc == RFL_OK && !rfl_capture__keep(f->b, &amount->reason, amount->reason))
		rc = rfl_finish__no_memory(f);
	if (rc == RFL_OK)
		rc = set_rule(f, q, sum, amounts);
	sum->validity = (uint8_t)amount->validity;
	sum->reason = amount->reason;
	if (rc == RFL_OK && sum->launches < r->launches)
		rc = rfl_finish__partial(f, sum->launches, r->launches, "launches", NULL, amount);
	return rc;
}

/* ---- ranges ---- */

/* The range's slots, and whether the reasons of the range before hold for it. */
static void look_at(struct rfl_finish *f, const struct rfl_range_sum *r)
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

static enum rfl_rc set_metric(struct rfl_finish *f, const struct rfl_range_sum *r,
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
	if (sum->launches > 0 && sum->launches < r->launches) {
		if (ret->validity < RFL_VALID_PARTIAL)
			ret->validity = RFL_VALID_PARTIAL;
		rfl_buf_reset(&f->text);
		rfl_buf_printf(&f->text, "of %s of %s launches%s%s",
			       rfl_num_grouped(sum->launches, number),
			       rfl_num_grouped(r->launches, of), ret->reason ? ": " : "",
			       ret->reason ? ret->reason : "");
		ret->reason = rfl_finish__kept(f);
		if (!ret->reason)
			return rfl_finish__no_memory(f);
	}
	if (!ret->reason)
		return RFL_OK;
	ret->reason = rfl_capture__intern(f->b, ret->reason, strlen(ret->reason));
	return ret->reason ? RFL_OK : rfl_finish__no_memory(f);
}

static enum rfl_rc set_range(struct rfl_finish *f, struct rfl_range_sum *r, struct rfl_range *ret)
{
	struct rfl_metric *metrics = rfl_arena_array(f->b->arena, r->nmetrics, sizeof(*metrics));
	enum rfl_rc rc = metrics ? RFL_OK : rfl_finish__no_memory(f);

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
	return rc;
}

static enum rfl_rc set_ranges(struct rfl_finish *f)
{
	struct rfl_capture_builder *b = f->b;
	struct rfl_range *ranges = rfl_arena_array(b->arena, b->nranges, sizeof(*ranges));
	size_t n = 0;
	enum rfl_rc rc = ranges ? RFL_OK : rfl_finish__no_memory(f);

	for (size_t i = 0; i < b->nranges && rc == RFL_OK; i++)
		if (b->ranges[i]->launches > 0)
			rc = set_range(f, b->ranges[i], &ranges[n++]);
	b->capture.ranges = ranges;
	b->capture.nranges = n;
	f->ranges = ranges;
	return rc;
}

/* After the totals, to which a lower bound of 0 adds its launches. */
static enum rfl_rc settle_ranges(struct rfl_finish *f)
{
	struct rfl_capture_builder *b = f->b;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0, at = 0; i < b->nranges && rc == RFL_OK; i++)
		if (b->ranges[i]->launches > 0)
			rc = rfl_finish__settle(f,
						b->ranges[i]->quantity[RFL_QUANTITY_FLOPS].way ==
							RFL_FORMULA_SUM,
						false, f->ranges[at++].amount);
	return rc;
}

/* ---- all of it ---- */

static enum rfl_rc set_words(struct rfl_capture_builder *b, struct rfl_err *err)
{
	const char **notes = rfl_arena_array(b->arena, b->nnotes, sizeof(*notes));
	struct rfl_refusal *refusals = rfl_arena_array(b->arena, b->nrefusals, sizeof(*refusals));

	if (!notes || !refusals || b->no_memory)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	if (b->nnotes > 0)
		memcpy(notes, b->notes, b->nnotes * sizeof(*notes));
	if (b->nrefusals > 0)
		memcpy(refusals, b->refusals, b->nrefusals * sizeof(*refusals));
	b->capture.notes = notes;
	b->capture.nnotes = b->nnotes;
	b->capture.refusals = refusals;
	b->capture.nrefusals = b->nrefusals;
	return RFL_OK;
}

enum rfl_rc rfl_capture__hand_over(struct rfl_capture_builder *b, struct rfl_captures *to,
				   struct rfl_err *err)
{
	struct rfl_capture *c = rfl_arena_array(b->arena, 1, sizeof(*c));
	enum rfl_rc rc = set_words(b, err);

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
	struct rfl_finish f = { .b = b, .err = err };
	enum rfl_rc rc;

	rfl_buf_init(&f.text, 0);
	f.slots = rfl_alloc_array(rfl_formulas_slots(b->formulas), sizeof(*f.slots));
	rc = f.slots ? RFL_OK : rfl_finish__no_memory(&f);
	if (rc == RFL_OK)
		rc = spring_traps(&f);
	if (rc == RFL_OK)
		rc = set_ranges(&f);
	if (rc == RFL_OK)
		rc = rfl_finish__totals(&f);
	if (rc == RFL_OK)
		rc = settle_ranges(&f);
	if (rc == RFL_OK)
		rc = rfl_capture__hand_over(b, to, err);
	free(f.slots);
	rfl_buf_fini(&f.text);
	return rc;
}
