/*
 * finish.c - completes a capture: applies traps to whole ranges, finds the reasons for missing
 * values, computes the totals, and copies everything into the capture's arena.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "profile/capture/impl.h"

struct finish {
	struct rfl_capture_builder *b;
	struct rfl_buf text;               /* scratch */
	double *slots;                     /* values for the current range */
	bool left_out[RFL_QUANTITY_COUNT]; /* discarded by a trap in some range */
	uint64_t present[RFL_SLOT_WORDS];
	bool has_reasons; /* `reasons` apply to ranges that have the metrics in `present` */
	const char *reasons[RFL_QUANTITY_COUNT];
};

/* Copy the scratch buffer to memory that lives as long as the capture. */
static const char *kept(struct finish *f)
{
	return rfl_capture__intern(f->b, rfl_buf_str(&f->text), f->text.len);
}

/* Empty the scratch buffer and return it. */
static struct rfl_buf *scratch(struct finish *f)
{
	rfl_buf_reset(&f->text);
	return &f->text;
}

/* Lower the validity of an amount to `validity` if better, and join the reasons, worst first. */
static void worsen(struct finish *f, struct rfl_amount *amount, enum rfl_validity validity,
		   const char *reason)
{
	const char *before = amount->reason;
	const bool worse = validity > amount->validity, same = validity == amount->validity;

	if (worse)
		amount->validity = validity;
	if (!before)
		amount->reason = reason;
	if (!before || !reason || same)
		return;
	rfl_buf_printf(scratch(f), "%s; %s", worse ? reason : before, worse ? before : reason);
	amount->reason = kept(f);
}

/* Mark an amount as a lower bound. @param why  why the rest is unknown, or NULL */
static void set_partial(struct finish *f, int64_t counted, int64_t all, const char *what,
			const char *why, struct rfl_amount *amount)
{
	char of[RFL_NUM_MAX], number[RFL_NUM_MAX];
	struct rfl_buf *text = scratch(f);

	if (amount->reason)
		rfl_buf_printf(text, "%s; ", amount->reason);
	rfl_buf_printf(text, "a lower bound: known for %s of %s %s",
		       rfl_num_grouped(counted, number), rfl_num_grouped(all, of), what);
	if (why)
		rfl_buf_printf(text, "; for others: %s", why);
	if (amount->validity < RFL_VALID_PARTIAL)
		amount->validity = RFL_VALID_PARTIAL;
	amount->reason = kept(f);
}

/* NaN: unknown */
static double metric_value(const struct rfl_range_sum *r, size_t id)
{
	return id < r->nwhere && r->where[id] > 0 ? r->metrics[r->where[id] - 1].value
						  : (double)NAN;
}

/* Discard the quantity of a trap in all ranges that meet its condition, and note the amount; a
 * doubt makes it an estimate. */
static void spring_trap(struct finish *f, const struct rfl_trap *trap)
{
	struct rfl_capture_builder *b = f->b;
	const struct rfl_formula_quantity *quantity = &b->formulas->quantities[trap->quantity];
	char number[RFL_NUM_MAX];
	double left_out = 0;
	size_t n = 0;

	for (size_t i = 0; i < b->nranges; i++) {
		struct rfl_range_sum *r = b->ranges[i];
		struct rfl_quantity_sum *sum = &r->quantity[trap->quantity];
		struct rfl_quantity_sum *total = &r->quantity[RFL_QUANTITY_FLOPS];
		const bool is_sum = total->way == RFL_FORMULA_SUM;
		const double value = metric_value(r, trap->slot);
		const double other = trap->weight * metric_value(r, trap->other);
		bool others = false;

		if (trap->is_doubt && value > other && sum->validity < RFL_VALID_ESTIMATE) {
			sum->validity = RFL_VALID_ESTIMATE;
			sum->reason = trap->reason;
		}
		if (trap->is_doubt || sum->launches == 0 || !(sum->value > 0) || !(value > 0) ||
		    value != other)
			continue;
		if (quantity->less.reason && !isnan(metric_value(r, quantity->less.slot)))
			continue; /* already subtracted, because its metric is known */
		left_out += sum->value;
		n++;
		rfl_buf_printf(scratch(f), "%s FLOP omitted: %s", rfl_num_full(sum->value, number),
			       trap->reason);
		if (total->launches > 0 && is_sum)
			total->value -= sum->value;
		*sum = (struct rfl_quantity_sum){ .reason = kept(f),
						  .way = -1,
						  .is_left_out = true };
		f->left_out[trap->quantity] = true;
		for (enum rfl_quantity q = 0; q < RFL_QUANTITY_FLOPS; q++)
			others =
				others || (rfl_quantity_is_flops(q) && r->quantity[q].launches > 0);
		if (!others && is_sum)
			*total = (struct rfl_quantity_sum){ .way = -1 };
	}
	if (n > 0)
		rfl_capture_note(b, "%s: skipped in %zu of %zu ranges, %s FLOP: %s",
				 rfl_quantity_info(trap->quantity)->name, n, b->nranges,
				 rfl_num_full(left_out, number), trap->reason);
}

/* ---- rules and reasons ---- */

/* Whether the instructions of the tensor pipe may all be moves or half-precision arithmetic, which
 * the formulas subtract, exclude or count. */
static bool pipe_is_explained(const struct rfl_formulas *f, const struct rfl_range_sum *r)
{
	const struct rfl_formula_quantity *half = &f->quantities[RFL_QUANTITY_FLOPS_FP16];

	if (half->less.reason && !isnan(metric_value(r, half->less.slot)))
		return true;
	for (const struct rfl_trap *t = f->traps; t < f->traps + f->ntraps; t++)
		if (t->quantity == RFL_QUANTITY_FLOPS_FP16 &&
		    metric_value(r, t->slot) >= t->weight * metric_value(r, t->other))
			return true;
	return false;
}

/* Whether a range has all metrics of a way to compute a quantity. */
static bool has_way(const struct rfl_formula_quantity *of, const struct rfl_range_sum *r)
{
	for (size_t n = 0; n < of->nways; n++) {
		const struct rfl_formula_way *w = &of->ways[n];
		size_t i = 0;

		while (i < w->nterms && !isnan(metric_value(r, (size_t)w->terms[i].slot[0])))
			i++;
		if (i == w->nterms)
			return true;
	}
	return false;
}

/* Why the FLOPs of a range are a lower bound: a metric above 0 is in no formula, or its formulas
 * need metrics that the range lacks. NULL: they are not. */
static const char *uncounted_flops(struct finish *f, const struct rfl_range_sum *r)
{
	const struct rfl_formulas *formulas = f->b->formulas;
	bool counted[RFL_SLOTS_MAX] = { false };

	for (int i = 0; rfl_capture__hints[i].word; i++) {
		const struct rfl_hint *h = &rfl_capture__hints[i];
		bool known = !rfl_quantity_is_flops(h->first) || !(r->hinted >> i & 1);

		for (enum rfl_quantity q = h->first; q <= h->last && !known; q++)
			known = r->quantity[q].launches > 0 || r->quantity[q].is_left_out;
		if (known || (strstr(h->word, "pipe_tensor") && pipe_is_explained(formulas, r)))
			continue;
		rfl_buf_printf(scratch(f), "a lower bound: present but in no formula: %s",
			       f->b->hints[i]);
		return kept(f);
	}
	/* complete quantities first, because several quantities may use a metric */
	for (int complete = 1; complete >= 0; complete--)
		for (enum rfl_quantity q = 0; q <= RFL_QUANTITY_FLOPS; q++) {
			const struct rfl_formula_quantity *of = &formulas->quantities[q];

			if ((q != RFL_QUANTITY_FLOPS && !rfl_quantity_is_flops(q)) ||
			    complete != has_way(of, r))
				continue;
			for (size_t w = 0; w < of->nways; w++)
				for (size_t t = 0; t < of->ways[w].nterms; t++) {
					const int slot = of->ways[w].terms[t].slot[0];

					counted[slot] = counted[slot] || complete;
					if (counted[slot] || !(metric_value(r, (size_t)slot) > 0))
						continue;
					rfl_buf_printf(scratch(f),
						       "a lower bound: %s was counted, but not the "
						       "other metrics that %s needs",
						       formulas->slots[slot].name,
						       rfl_quantity_info(q)->name);
					return kept(f);
				}
		}
	return NULL;
}

/* The first metric that seems to count a quantity but is in no formula; NULL: none. */
static const char *hint_of(const struct rfl_capture_builder *b, enum rfl_quantity q)
{
	for (int i = 0; rfl_capture__hints[i].word; i++)
		if (rfl_capture__hints[i].first <= q && q <= rfl_capture__hints[i].last &&
		    b->hints[i] && !strstr(rfl_capture__hints[i].word, "pipe_tensor"))
			return b->hints[i];
	return NULL;
}

/* The reason of the first unavailable metric of a quantity; NULL: none. `id` is set to the metric,
 * or to SIZE_MAX if its name should not be shown, because it equals the name of the quantity or
 * because several metrics share the reason. */
static const char *said_by_metric(const struct finish *f, const struct rfl_range_sum *r,
				  enum rfl_quantity q, size_t *id)
{
	const struct rfl_formula_quantity *quantity = &f->b->formulas->quantities[q];

	for (size_t w = 0; w < quantity->nways; w++)
		for (size_t i = 0; i < quantity->ways[w].nterms; i++) {
			const size_t slot = (size_t)quantity->ways[w].terms[i].slot[0];
			const uint32_t at = slot < r->nwhere ? r->where[slot] : 0;
			const char *said = at > 0 ? r->metrics[at - 1].reason : NULL;
			size_t alike = 0;

			if (!said || r->metrics[at - 1].launches > 0)
				continue;
			for (const struct rfl_metric *m = r->metrics;
			     m < r->metrics + r->range.nmetrics; m++)
				alike += m->launches == 0 && m->reason &&
					 strcmp(m->reason, said) == 0;
			*id = alike < 2 && strcmp(f->b->metrics[slot].name,
						  rfl_quantity_info(q)->name) != 0
				      ? slot
				      : SIZE_MAX;
			return said;
		}
	return NULL;
}

static void set_unavailable(struct finish *f, enum rfl_quantity q, const struct rfl_range_sum *r,
			    struct rfl_amount *amount)
{
	size_t id = 0;
	const char *said = said_by_metric(f, r, q, &id);
	struct rfl_buf *text = scratch(f);

	/* a sum has the reason of its first unavailable part */
	for (enum rfl_quantity part = 0; !said && part < RFL_QUANTITY_COUNT; part++)
		if (rfl_quantity_is_part(part, q))
			said = said_by_metric(f, r, part, &id);
	amount->value = NAN;
	amount->validity = RFL_VALID_UNAVAILABLE;
	amount->reason = r->quantity[q].reason; /* set by a trap */
	if (amount->reason)
		return;
	if (said && id == SIZE_MAX)
		rfl_buf_puts(text, said);
	else if (said)
		rfl_buf_printf(text, "%s: %s", f->b->metrics[id].name, said);
	else if (f->has_reasons && f->reasons[q])
		amount->reason = f->reasons[q];
	else
		rfl_formula_reason(f->b->formulas, q, f->slots, hint_of(f->b, q), text);
	if (!amount->reason)
		amount->reason = kept(f);
	if (!said)
		f->reasons[q] = amount->reason;
}

/* Lower the validity to the validity of `from`, a quantity from which `q` was derived. */
static void inherit(struct finish *f, const struct rfl_range_sum *r, enum rfl_quantity from,
		    enum rfl_quantity q, struct rfl_amount *amount)
{
	const struct rfl_quantity_sum *a = &r->quantity[from];

	if (a->launches == 0)
		return;
	if (q == RFL_QUANTITY_FLOPS && a->launches < amount->launches)
		worsen(f, amount, RFL_VALID_PARTIAL,
		       "a lower bound: one of its parts is unknown for some launches");
	if (a->validity <= amount->validity || a->launches < amount->launches)
		return;
	rfl_buf_printf(scratch(f), "%s%s%s", rfl_quantity_info(from)->name, a->reason ? ": " : "",
		       a->reason ? a->reason : "");
	worsen(f, amount, a->validity, kept(f));
}

/* Set the amount of a range. Afterwards, the validity of `sum` covers the launches with a value,
 * and the validity of the amount all launches. */
static void set_amount(struct finish *f, enum rfl_quantity q, struct rfl_range_sum *r)
{
	static const enum rfl_validity of_way[] = {
		[RFL_WAY_FULL] = RFL_VALID,
		[RFL_WAY_PARTIAL] = RFL_VALID_PARTIAL,
		[RFL_WAY_ESTIMATE] = RFL_VALID_ESTIMATE,
	};
	struct rfl_amount *amount = &r->range.amount[q];
	const struct rfl_formulas *formulas = f->b->formulas;
	const struct rfl_formula_quantity *quantity = &formulas->quantities[q];
	struct rfl_quantity_sum *sum = &r->quantity[q];
	const struct rfl_formula_way *way = NULL;
	char number[RFL_NUM_MAX];

	amount->launches = sum->launches;
	if (sum->launches == 0) {
		set_unavailable(f, q, r, amount);
		return;
	}
	if (sum->way >= 0)
		way = &quantity->ways[sum->way];
	amount->value = sum->value;
	worsen(f, amount, sum->validity, sum->reason);
	for (enum rfl_quantity part = 0; sum->way == RFL_FORMULA_SUM && part < q; part++)
		if (rfl_quantity_is_part(part, q))
			inherit(f, r, part, q, amount);
	if (way)
		worsen(f, amount, of_way[way->kind], way->caveat);
	for (size_t i = 0; way && i < way->nterms; i++)
		if (way->terms[i].quantity >= 0)
			inherit(f, r, way->terms[i].quantity, q, amount);
	amount->reason = rfl_capture__keep(f->b, amount->reason);
	struct rfl_buf *rule = scratch(f);
	rfl_formula_text(formulas, q, sum->way, rule);
	if (way && quantity->less.reason && !isnan(f->slots[quantity->less.slot]))
		rfl_buf_printf(rule, " - %s x %s", rfl_num_exact(quantity->less.weight, number),
			       formulas->slots[quantity->less.slot].name);
	if (sum->several_ways)
		rfl_buf_puts(rule, " (other launches: another formula)");
	amount->rule = kept(f);
	sum->validity = amount->validity;
	sum->reason = amount->reason;
	if (sum->launches < r->range.launches)
		set_partial(f, sum->launches, r->range.launches, "launches", NULL, amount);
}

static void set_range(struct finish *f, struct rfl_range_sum *r)
{
	const struct rfl_capture_builder *b = f->b;
	const size_t n = r->range.nmetrics;
	uint64_t present[RFL_SLOT_WORDS] = { 0 };
	char of[RFL_NUM_MAX], number[RFL_NUM_MAX];
	struct rfl_metric *metrics = rfl_arena_array(b->arena, n, sizeof(*metrics));

	r->range.metrics = metrics;
	for (size_t i = 0; i < n; i++) {
		struct rfl_metric *m = &metrics[i];

		*m = r->metrics[i];
		m->reason = rfl_capture__keep(f->b, m->reason);
		if (m->launches == 0)
			m->validity = RFL_VALID_UNAVAILABLE;
		else if (m->rollup == RFL_ROLLUP_MEAN)
			m->value /= (double)m->launches;
		if (m->launches == 0 || m->launches >= r->range.launches)
			continue;
		if (m->validity < RFL_VALID_PARTIAL)
			m->validity = RFL_VALID_PARTIAL;
		rfl_buf_printf(scratch(f), "covers %s of %s launches%s%s",
			       rfl_num_grouped(m->launches, number),
			       rfl_num_grouped(r->range.launches, of), m->reason ? ": " : "",
			       m->reason ? m->reason : "");
		m->reason = kept(f);
	}
	for (size_t i = 0; i < b->formulas->nslots; i++) {
		f->slots[i] = metric_value(r, i);
		if (!isnan(f->slots[i]))
			present[i / 64] |= (uint64_t)1 << (i % 64);
	}
	/* a range with the same metrics as the previous one has the same reasons */
	if (!f->has_reasons || memcmp(present, f->present, sizeof(present)) != 0)
		memset(f->reasons, 0, sizeof(f->reasons));
	f->has_reasons = true;
	memcpy(f->present, present, sizeof(present));
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		set_amount(f, q, r);
}

/* ---- meaningless zeros ---- */

/* Mark an amount as unavailable, with the scratch buffer as its reason. */
static void drop(struct finish *f, struct rfl_amount *amount)
{
	*amount = (struct rfl_amount){
		.value = NAN,
		.validity = RFL_VALID_UNAVAILABLE,
		.reason = kept(f),
	};
}

/* Append the names of the known parts of flops.total, or of the unknown parts that this family can
 * count, to the scratch buffer. Returns false if there are none. */
static bool put_parts(struct finish *f, const struct rfl_amount *amounts, bool known,
		      const char *first, const char *between)
{
	const char *sep = first;

	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_FLOPS; q++) {
		if (!rfl_quantity_is_flops(q) || isnan(amounts[q].value) == known ||
		    (!known && (f->b->formulas->quantities[q].nways == 0 || f->left_out[q])))
			continue;
		rfl_buf_printf(&f->text, "%s%s", sep, rfl_quantity_info(q)->name);
		sep = between;
	}
	return sep == between;
}

/* Mark lower bounds of 0, which carry no information, as unavailable; set the rule of flops.total
 * to its parts, and its caveat to the parts that were not counted.
 * @param is_sum  flops.total is the sum of its parts */
static void settle(struct finish *f, bool is_sum, bool is_total, struct rfl_amount *amounts)
{
	struct rfl_amount *flops = &amounts[RFL_QUANTITY_FLOPS];

	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const char *reason = amounts[q].reason;

		if (amounts[q].value != 0 || amounts[q].validity != RFL_VALID_PARTIAL)
			continue;
		rfl_buf_printf(scratch(f), "the counted part is 0, the rest is unknown%s%s",
			       reason ? ": " : "", reason ? reason : "");
		drop(f, &amounts[q]);
	}
	if (!is_sum || isnan(flops->value))
		return;
	(void)scratch(f);
	(void)put_parts(f, amounts, true, "", " + ");
	const char *rule = flops->rule = kept(f);
	if (flops->validity == RFL_VALID_MARKED) /* already worse than partial */
		return;
	(void)scratch(f);
	if (flops->reason)
		rfl_buf_printf(&f->text, "%s; ", flops->reason);
	size_t at = f->text.len;
	if (!put_parts(f, amounts, false, "without ", ", "))
		return;
	rfl_buf_puts(&f->text, ", which were not counted");
	/* 0 in a range with known fp32 FLOPs identifies a copy; any other 0 is meaningless */
	if (flops->value != 0 || (!is_total && !isnan(amounts[RFL_QUANTITY_FLOPS_FP32].value))) {
		flops->reason = kept(f);
		return;
	}
	const char *said =
		rfl_arena_printf(f->b->arena, "0 in %s, %s", rule, rfl_buf_str(&f->text) + at);
	rfl_buf_puts(scratch(f), said);
	drop(f, flops);
}

/* The outermost kind of range with a known quantity: steps and processes contain phases, and phases
 * kernels. */
static enum rfl_range_kind total_kind(const struct rfl_capture *c)
{
	static const enum rfl_range_kind kinds[] = { RFL_RANGE_STEP, RFL_RANGE_PROCESS,
						     RFL_RANGE_PHASE, RFL_RANGE_LAYER,
						     RFL_RANGE_OP };

	for (size_t k = 0; k < RFL_ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < c->nranges; i++)
			for (enum rfl_quantity q = 0;
			     c->ranges[i].kind == kinds[k] && q < RFL_QUANTITY_COUNT; q++)
				if (!isnan(c->ranges[i].amount[q].value))
					return kinds[k];
	return RFL_RANGE_KERNEL;
}

/* The sum of one quantity over the ranges of a kind. */
static void set_total(struct finish *f, enum rfl_quantity q)
{
	struct rfl_capture *c = &f->b->capture;
	struct rfl_amount *total = &c->total[q];
	const int64_t all = rfl_capture_launches_of_total(c);
	const char *why = NULL;
	bool several = false;

	/* why nothing was counted or, if only kernels have values, why steps were not */
	if (c->nranges == 0 && c->nrefusals > 0)
		why = c->refusals[0].reason;
	for (size_t i = 0; c->total_kind == RFL_RANGE_KERNEL && i < c->nranges; i++) {
		const enum rfl_range_kind kind = c->ranges[i].kind;

		if (kind != RFL_RANGE_STEP && kind != RFL_RANGE_PHASE && kind != RFL_RANGE_LAYER)
			continue;
		why = c->ranges[i].amount[q].reason;
		break;
	}
	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_quantity_sum *sum = &f->b->ranges[i]->quantity[q];
		const struct rfl_amount *a = &c->ranges[i].amount[q];

		if (c->ranges[i].kind != c->total_kind)
			continue;
		if (isnan(a->value)) {
			why = why ? why : a->reason;
			continue;
		}
		/* rules are interned */
		several = several || (total->rule && total->rule != a->rule);
		total->rule = a->rule;
		total->value += a->value;
		total->launches += a->launches;
		/* set_partial() below covers launches without a value */
		if (sum->validity >= total->validity)
			worsen(f, total, sum->validity, sum->reason);
	}
	if (several)
		total->rule = "several formulas; see the ranges";
	if (total->launches == 0)
		*total = (struct rfl_amount){
			.value = NAN,
			.validity = RFL_VALID_UNAVAILABLE,
			.reason = why ? why : "the capture has no kernels or ranges",
			.rule = total->rule,
		};
	else if (total->launches != all)
		set_partial(f, total->launches, all,
			    c->total_kind == RFL_RANGE_KERNEL || c->total_kind == RFL_RANGE_OP
				    ? "launches"
				    : "ranges",
			    why, total);
}

void rfl_capture__hand_over(struct rfl_capture_builder *b, struct rfl_captures *to)
{
	struct rfl_capture *c = rfl_arena_array(b->arena, 1, sizeof(*c));

	rfl_reserve(&to->captures, &to->cap, to->n + 1);
	*c = b->capture;
	c->arena = b->arena;
	to->captures[to->n++] = c;
	b->arena = NULL;
	rfl_capture_builder_free(b);
}

/* Mark flops.total as a lower bound where a part of it is missing. */
static void doubt_flops(struct finish *f, struct rfl_range *ranges)
{
	static const char unknown[] =
		"a lower bound: one of its parts is unknown for some launches";
	const struct rfl_capture_builder *b = f->b;
	const struct rfl_capture *c = &b->capture;
	struct rfl_amount *total = &f->b->capture.total[RFL_QUANTITY_FLOPS];
	const char *lacks = NULL, *hint = NULL;

	for (size_t i = 0; i < c->nranges; i++) {
		const bool in_total = ranges[i].kind == c->total_kind;
		const char *why = uncounted_flops(f, b->ranges[i]);
		struct rfl_amount *flops = &ranges[i].amount[RFL_QUANTITY_FLOPS];

		if (why && !isnan(flops->value))
			worsen(f, flops, RFL_VALID_PARTIAL, why);
		hint = in_total && !hint ? why : hint;
		for (enum rfl_quantity q = 0; in_total && q < RFL_QUANTITY_FLOPS; q++) {
			const struct rfl_quantity_sum *sum = &b->ranges[i]->quantity[q];

			if (rfl_quantity_is_flops(q) && !isnan(c->total[q].value) &&
			    !sum->is_left_out && sum->launches < ranges[i].launches)
				lacks = unknown;
		}
	}
	if (lacks && !isnan(total->value))
		worsen(f, total, RFL_VALID_PARTIAL, lacks);
	if (hint && !isnan(total->value))
		worsen(f, total, RFL_VALID_PARTIAL, hint);
}

enum rfl_rc rfl_capture_finish(struct rfl_capture_builder *b, struct rfl_captures *to,
			       struct rfl_err *err)
{
	struct finish f = { .b = b };
	struct rfl_capture *c = &b->capture;
	bool is_sum = true;
	size_t n = 0;
	const enum rfl_rc rc = rfl_capture__check(b, err);

	if (rc != RFL_OK) {
		rfl_capture_builder_free(b);
		return rc;
	}
	rfl_capture__end(b);
	/* drop ranges without launches: a live source may see them only in later passes */
	for (size_t i = 0; i < b->nranges; i++)
		if (b->ranges[i]->range.launches > 0)
			b->ranges[n++] = b->ranges[i];
	b->nranges = n;
	struct rfl_range *ranges = rfl_arena_array(b->arena, n, sizeof(*ranges));
	f.slots = rfl_arena_array(b->scratch, b->formulas->nslots, sizeof(*f.slots));
	for (size_t i = 0; i < b->formulas->ntraps; i++)
		spring_trap(&f, &b->formulas->traps[i]);
	for (size_t i = 0; i < b->nranges; i++) {
		const struct rfl_quantity_sum *flops = &b->ranges[i]->quantity[RFL_QUANTITY_FLOPS];

		set_range(&f, b->ranges[i]);
		ranges[i] = b->ranges[i]->range;
		is_sum = is_sum && !(flops->way >= 0 && flops->launches > 0);
	}
	c->ranges = ranges;
	c->nranges = b->nranges;
	c->total_kind = total_kind(c);
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		set_total(&f, q);
	doubt_flops(&f, ranges);
	/* settle ranges last: the totals include the launches of lower bounds of 0 */
	settle(&f, is_sum, true, c->total);
	for (size_t i = 0; i < b->nranges; i++)
		settle(&f, b->ranges[i]->quantity[RFL_QUANTITY_FLOPS].way == RFL_FORMULA_SUM, false,
		       ranges[i].amount);
	rfl_buf_fini(&f.text);
	rfl_capture__hand_over(b, to);
	return RFL_OK;
}
