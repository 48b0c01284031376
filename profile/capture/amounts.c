/*
 * amounts.c - sums and shares of amounts, for those who show them.
 */
#include <math.h>

#include "profile/capture/table_impl.h"

static void begin(struct rfl_amounts_sum *sum)
{
	*sum = (struct rfl_amounts_sum){ 0 };
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		sum->amount[q] = (struct rfl_amount){
			.value = NAN,
			.validity = RFL_VALID_UNAVAILABLE,
		};
}

static void add_amount(struct rfl_amount *to, const struct rfl_amount *from)
{
	if (isnan(from->value)) {
		if (isnan(to->value) && !to->reason)
			to->reason = from->reason;
		return;
	}
	if (isnan(to->value)) {
		*to = *from;
		return;
	}
	to->value += from->value;
	to->launches += from->launches;
	if (from->validity > to->validity) {
		to->validity = from->validity;
		to->reason = from->reason;
	}
}

/* Different reasons for what is not known: the first stays. `launches` of all that were added. */
static void add(struct rfl_amounts_sum *sum, const struct rfl_amount *amount, int64_t launches)
{
	sum->launches += launches;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		struct rfl_amount *a = &sum->amount[q];

		add_amount(a, &amount[q]);
		if (isnan(a->value) || a->launches >= sum->launches ||
		    a->validity > RFL_VALID_PARTIAL || sum->launches == launches)
			continue; /* of the first it is what that says */
		a->validity = RFL_VALID_PARTIAL;
		a->reason = "a lower bound: not known of all of them";
	}
}

void rfl_captures_total(const struct rfl_captures *captures, struct rfl_amounts_sum *ret)
{
	begin(ret);
	for (size_t i = 0; i < captures->n; i++)
		add(ret, captures->captures[i]->total,
		    rfl_capture_launches_of_total(captures->captures[i]));
}

const char *rfl_amounts_no_ai(const struct rfl_amount *amount)
{
	const struct rfl_amount *flops = &amount[RFL_QUANTITY_FLOPS];
	const struct rfl_amount *bytes = &amount[RFL_QUANTITY_DRAM];

	if (isnan(flops->value))
		return isnan(bytes->value) ? "neither flops.total nor dram_bytes is known"
					   : "flops.total is not known";
	if (isnan(bytes->value))
		return "dram_bytes is not known";
	if (bytes->value <= 0)
		return "no byte was moved: the intensity has no value";
	return "flops.total and dram_bytes are of different launches";
}

double rfl_range_share(const struct rfl_range *r, enum rfl_quantity q)
{
	const struct rfl_amount *a = &r->amount[q];

	if (isnan(a->value))
		return 0;
	return a->launches > 0 && a->launches < r->launches
		       ? (double)a->launches / (double)r->launches
		       : 1;
}

double rfl_capture_coverage(const struct rfl_capture *c, enum rfl_quantity q)
{
	double all = 0, known = 0;

	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];
		double time_s = r->amount[RFL_QUANTITY_TIME].value;

		if (r->kind != c->total_kind || isnan(time_s))
			continue;
		all += time_s;
		known += time_s * rfl_range_share(r, q);
	}
	return all > 0 ? known / all : (double)NAN;
}
