/*
 * total.c - amounts over many: the total of a capture, what makes it a lower bound, and
 * what flops.total is the sum of.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "profile/capture/impl.h"

enum rfl_rc rfl_finish__no_memory(struct rfl_finish *f)
{
	return rfl_fail(f->err, RFL_ENOMEM, 0, "out of memory for a capture");
}

/* What was written into the scratch buffer, for the life of the capture. */
const char *rfl_finish__kept(struct rfl_finish *f)
{
	if (f->text.failed)
		return NULL;
	return rfl_capture__intern(f->b, rfl_buf_str(&f->text), f->text.len);
}

void rfl_finish__raise(struct rfl_finish *f, struct rfl_amount *amount, enum rfl_validity validity,
		       const char *reason)
{
	const char *before = amount->reason;
	bool worse = validity > amount->validity, same = validity == amount->validity;

	if (worse)
		amount->validity = validity;
	if (!before)
		amount->reason = reason;
	if (!before || !reason || same)
		return;
	rfl_buf_reset(&f->text);
	rfl_buf_printf(&f->text, "%s; %s", worse ? reason : before, worse ? before : reason);
	amount->reason = rfl_finish__kept(f);
	f->b->no_memory = f->b->no_memory || !amount->reason;
}

/* @param why  it is not known of the others; NULL: nothing to say of that */
enum rfl_rc rfl_finish__partial(struct rfl_finish *f, int64_t counted, int64_t all,
				const char *what, const char *why, struct rfl_amount *amount)
{
	char of[RFL_NUM_MAX], number[RFL_NUM_MAX];

	rfl_buf_reset(&f->text);
	if (amount->reason)
		rfl_buf_printf(&f->text, "%s; ", amount->reason);
	rfl_buf_printf(&f->text, "a lower bound: known of %s of %s %s",
		       rfl_num_grouped(counted, number), rfl_num_grouped(all, of), what);
	if (why)
		rfl_buf_printf(&f->text, "; of others: %s", why);
	if (amount->validity < RFL_VALID_PARTIAL)
		amount->validity = RFL_VALID_PARTIAL;
	amount->reason = rfl_finish__kept(f);
	return amount->reason ? RFL_OK : rfl_finish__no_memory(f);
}

/* ---- flops.total ---- */

/* The parts of flops.total that are known, as a rule. */
static enum rfl_rc set_flops_rule(struct rfl_finish *f, struct rfl_amount *amounts)
{
	const char *sep = "";

	rfl_buf_reset(&f->text);
	for (int q = 0; q < RFL_QUANTITY_FLOPS; q++) {
		if (!rfl_quantity_is_flops((enum rfl_quantity)q) || isnan(amounts[q].value))
			continue;
		rfl_buf_printf(&f->text, "%s%s", sep,
			       rfl_quantity_info((enum rfl_quantity)q)->name);
		sep = " + ";
	}
	amounts[RFL_QUANTITY_FLOPS].rule = rfl_finish__kept(f);
	return amounts[RFL_QUANTITY_FLOPS].rule ? RFL_OK : rfl_finish__no_memory(f);
}

/* Those that are not, and could have been, into the scratch buffer. */
static void put_uncounted(struct rfl_finish *f, const struct rfl_amount *amounts)
{
	const char *sep = "without ";

	for (int q = 0; q < RFL_QUANTITY_FLOPS; q++) {
		if (!rfl_quantity_is_flops((enum rfl_quantity)q) || !isnan(amounts[q].value) ||
		    rfl_formula_ways(f->b->formulas, (enum rfl_quantity)q) == 0 || f->left_out[q])
			continue;
		rfl_buf_printf(&f->text, "%s%s", sep,
			       rfl_quantity_info((enum rfl_quantity)q)->name);
		sep = ", ";
	}
	if (*sep == ',')
		rfl_buf_puts(&f->text, ", which were not counted");
}

/* ---- what says nothing ---- */

/* 0 of what was counted, where more was not: the words of the scratch buffer say what. */
static enum rfl_rc drop(struct rfl_finish *f, struct rfl_amount *amount)
{
	*amount = (struct rfl_amount){
		.value = NAN,
		.validity = RFL_VALID_UNAVAILABLE,
		.reason = rfl_finish__kept(f),
	};
	return amount->reason ? RFL_OK : rfl_finish__no_memory(f);
}

static enum rfl_rc drop_empty_bounds(struct rfl_finish *f, struct rfl_amount *amounts)
{
	enum rfl_rc rc = RFL_OK;

	for (int q = 0; q < RFL_QUANTITY_COUNT && rc == RFL_OK; q++) {
		if (amounts[q].value != 0 || amounts[q].validity != RFL_VALID_PARTIAL)
			continue;
		rfl_buf_reset(&f->text);
		rfl_buf_printf(&f->text, "0 in what was counted, which says nothing of the rest");
		if (amounts[q].reason)
			rfl_buf_printf(&f->text, ": %s", amounts[q].reason);
		rc = drop(f, &amounts[q]);
	}
	return rc;
}

enum rfl_rc rfl_finish__settle(struct rfl_finish *f, bool is_sum, bool is_total,
			       struct rfl_amount *amounts)
{
	struct rfl_amount *flops = &amounts[RFL_QUANTITY_FLOPS];
	size_t at;
	enum rfl_rc rc = drop_empty_bounds(f, amounts);

	if (rc != RFL_OK || !is_sum || isnan(flops->value))
		return rc;
	rc = set_flops_rule(f, amounts);
	if (rc != RFL_OK || flops->validity == RFL_VALID_MARKED) /* worse than what is missing */
		return rc;
	rfl_buf_reset(&f->text);
	if (flops->reason)
		rfl_buf_printf(&f->text, "%s; ", flops->reason);
	at = f->text.len;
	put_uncounted(f, amounts);
	if (f->text.len == at)
		return RFL_OK;
	/* 0 outside the matrix units tells copies from the rest, and 0 of less tells nothing */
	if (flops->value == 0 && (is_total || isnan(amounts[RFL_QUANTITY_FLOPS_FP32].value))) {
		char *said = rfl_arena_printf(f->b->arena, "0 in %s, %s", flops->rule,
					      rfl_buf_str(&f->text) + at);

		if (!said)
			return rfl_finish__no_memory(f);
		rfl_buf_reset(&f->text);
		rfl_buf_puts(&f->text, said);
		return drop(f, flops);
	}
	flops->reason = rfl_finish__kept(f);
	return flops->reason ? RFL_OK : rfl_finish__no_memory(f);
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

/* Why nothing was counted, or why steps could not be, beside kernels of which only times are taken.
 */
static const char *refused(const struct rfl_finish *f, enum rfl_quantity q)
{
	const struct rfl_capture *c = &f->b->capture;

	if (c->nranges == 0 && f->b->nrefusals > 0)
		return f->b->refusals[0].reason;
	for (size_t i = 0; c->total_kind == RFL_RANGE_KERNEL && i < c->nranges; i++) {
		const enum rfl_range_kind kind = c->ranges[i].kind;

		if (kind == RFL_RANGE_STEP || kind == RFL_RANGE_PHASE || kind == RFL_RANGE_LAYER)
			return c->ranges[i].amount[q].reason;
	}
	return NULL;
}

/* The sum of one quantity over the ranges of a kind. */
static enum rfl_rc set_total(struct rfl_finish *f, enum rfl_quantity q)
{
	struct rfl_capture *c = &f->b->capture;
	struct rfl_amount *total = &c->total[q];
	const char *why = refused(f, q);
	int64_t all = rfl_capture_launches_of_total(c);
	bool several = false;

	for (size_t i = 0, at = 0; at < c->nranges; i++) {
		const struct rfl_quantity_sum *sum = &f->b->ranges[i]->quantity[q];
		const struct rfl_amount *a = &c->ranges[at].amount[q];

		if (f->b->ranges[i]->launches == 0 || c->ranges[at++].kind != c->total_kind)
			continue;
		if (isnan(a->value)) {
			why = why ? why : a->reason;
			continue;
		}
		several = several || (total->rule && !is_same_rule(total->rule, a->rule));
		total->rule = a->rule;
		total->value += a->value;
		total->launches += a->launches;
		/* launches of a range that lack it are among those of the total; of many ranges
		 * the worst is reported */
		if (sum->validity >= total->validity)
			rfl_finish__raise(f, total, (enum rfl_validity)sum->validity, sum->reason);
	}
	if (several)
		total->rule = "several rules: see the ranges";
	if (total->launches == 0) {
		total->value = NAN;
		total->validity = RFL_VALID_UNAVAILABLE;
		total->reason = why ? why : "there are no kernels and no ranges";
		return RFL_OK;
	}
	if (total->launches == all)
		return RFL_OK;
	return rfl_finish__partial(f, total->launches, all,
				   c->total_kind == RFL_RANGE_KERNEL ? "launches" : "ranges", why,
				   total);
}

/* Some ranges know a part of flops.total that others lack: the sum is too small. */
static bool lacks_parts(const struct rfl_finish *f)
{
	const struct rfl_capture *c = &f->b->capture;
	size_t at = 0;

	for (size_t i = 0; i < f->b->nranges; i++) {
		const struct rfl_range_sum *sum = f->b->ranges[i];

		if (sum->launches == 0)
			continue;
		for (int q = 0; c->ranges[at].kind == c->total_kind && q < RFL_QUANTITY_FLOPS; q++)
			if (rfl_quantity_is_flops((enum rfl_quantity)q) &&
			    !isnan(c->total[q].value) && !sum->quantity[q].is_left_out &&
			    sum->quantity[q].launches < sum->launches)
				return true;
		at++;
	}
	return false;
}

/* Is flops.total that of its parts in all ranges, and not counted by itself in one? */
static bool is_sum_of_parts(const struct rfl_finish *f)
{
	for (size_t i = 0; i < f->b->nranges; i++)
		if (f->b->ranges[i]->quantity[RFL_QUANTITY_FLOPS].way >= 0 &&
		    f->b->ranges[i]->quantity[RFL_QUANTITY_FLOPS].launches > 0)
			return false;
	return true;
}

enum rfl_rc rfl_finish__totals(struct rfl_finish *f)
{
	struct rfl_capture *c = &f->b->capture;
	struct rfl_amount *flops = &c->total[RFL_QUANTITY_FLOPS];
	enum rfl_rc rc = RFL_OK;

	c->total_kind = total_kind(c);
	for (int q = 0; q < RFL_QUANTITY_COUNT && rc == RFL_OK; q++)
		rc = set_total(f, (enum rfl_quantity)q);
	if (rc == RFL_OK && !isnan(flops->value) && lacks_parts(f))
		rfl_finish__raise(f, flops, RFL_VALID_PARTIAL,
				  "a lower bound: one of its parts is not known of all launches");
	return rc ? rc : rfl_finish__settle(f, is_sum_of_parts(f), true, c->total);
}
