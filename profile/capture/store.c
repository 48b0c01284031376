/* store.c - finished captures: the list that owns them, and values derived from amounts. */
#include "profile/capture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const rfl_range_kind_names[] = { "kernel",  "step", "phase",     "layer", "op",
					     "process", "idle", "self-test", NULL };
const char *const rfl_validity_names[] = { "ok",     "scaled",      "estimate", "partial",
					   "marked", "unavailable", NULL };
const char *const rfl_rollup_names[] = { "sum", "max", "min", "mean", NULL };

void rfl_captures_init(struct rfl_captures *c)
{
	*c = (struct rfl_captures){ 0 };
}

void rfl_captures_fini(struct rfl_captures *c)
{
	for (size_t i = 0; i < c->n; i++)
		rfl_arena_free(c->captures[i]->arena);
	free(c->captures);
	*c = (struct rfl_captures){ 0 };
}

bool rfl_capture_refused_alike(const struct rfl_capture *c, size_t i, struct rfl_buf *sets)
{
	const char *reason = c->refusals[i].reason;

	for (size_t k = 0; k < i; k++)
		if (strcmp(c->refusals[k].reason, reason) == 0)
			return false;
	for (size_t k = i; k < c->nrefusals; k++)
		if (strcmp(c->refusals[k].reason, reason) == 0)
			rfl_buf_printf(sets, "%s%s", k > i ? ", " : "", c->refusals[k].set);
	return true;
}

int64_t rfl_capture_launches_of_total(const struct rfl_capture *c)
{
	int64_t launches = 0;

	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == c->total_kind)
			launches += c->ranges[i].launches;
	return launches;
}

bool rfl_capture_is_of_gpu(const struct rfl_capture *c)
{
	static const char *const gpu[] = { "cupti", "ncu", "nvprof", "nsys", "rocprof" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(gpu); i++)
		if (strcmp(c->source, gpu[i]) == 0)
			return true;
	return strcmp(c->source, "torch") == 0 && c->device;
}

double rfl_capture_ipc(const struct rfl_capture *c)
{
	const struct rfl_amount *inst = &c->total[RFL_QUANTITY_INSTRUCTIONS];
	const struct rfl_amount *cycles = &c->total[RFL_QUANTITY_CYCLES];

	return !rfl_capture_is_of_gpu(c) && cycles->value > 0 &&
			       inst->launches == cycles->launches &&
			       (inst->validity == RFL_VALID_PARTIAL) ==
				       (cycles->validity == RFL_VALID_PARTIAL)
		       ? inst->value / cycles->value
		       : NAN;
}

double rfl_amounts_ai(const struct rfl_amount amount[RFL_QUANTITY_COUNT])
{
	const struct rfl_amount *flops = &amount[RFL_QUANTITY_FLOPS];
	const struct rfl_amount *bytes = &amount[RFL_QUANTITY_DRAM];

	if (isnan(flops->value) || isnan(bytes->value) || bytes->value <= 0 ||
	    flops->launches != bytes->launches)
		return NAN;
	return flops->value / bytes->value;
}

void rfl_amounts_clear(struct rfl_amounts_sum *sum)
{
	*sum = (struct rfl_amounts_sum){ 0 };
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		sum->amount[q] =
			(struct rfl_amount){ .value = NAN, .validity = RFL_VALID_UNAVAILABLE };
}

/* If a quantity is unknown in all parts of a sum, the first reason is kept. */
void rfl_amounts_add(struct rfl_amounts_sum *sum, const struct rfl_amount *amount, int64_t launches)
{
	sum->launches += launches;
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const struct rfl_amount *from = &amount[q];
		struct rfl_amount *a = &sum->amount[q];

		if (isnan(a->value) && isnan(from->value)) {
			a->reason = a->reason ? a->reason : from->reason;
			continue;
		}
		if (isnan(a->value)) {
			*a = *from;
		} else if (!isnan(from->value)) {
			a->value += from->value;
			a->launches += from->launches;
			if (from->validity > a->validity) {
				a->validity = from->validity;
				a->reason = from->reason;
			}
		}
		/* the validity of the first part is already set */
		if (a->launches < sum->launches && a->validity <= RFL_VALID_PARTIAL &&
		    sum->launches != launches) {
			a->validity = RFL_VALID_PARTIAL;
			a->reason = "a lower bound: unknown for some launches";
		}
	}
}

enum rfl_quantity rfl_amounts_most_flops(const struct rfl_amount *amount)
{
	enum rfl_quantity most = RFL_QUANTITY_COUNT;

	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (rfl_quantity_is_flops(q) && amount[q].value > 0 &&
		    (most == RFL_QUANTITY_COUNT || amount[q].value > amount[most].value))
			most = q;
	return most;
}

bool rfl_amount_is_given(const struct rfl_amount *a)
{
	return a->rule && rfl_span_starts(rfl_span_of(a->rule), RFL_METRIC_GIVEN);
}

void rfl_captures_total(const struct rfl_captures *captures, struct rfl_amounts_sum *ret)
{
	rfl_amounts_clear(ret);
	for (size_t i = 0; i < captures->n; i++)
		rfl_amounts_add(ret, captures->captures[i]->total,
				rfl_capture_launches_of_total(captures->captures[i]));
}

const char *rfl_amounts_no_ai(const struct rfl_amount *amount)
{
	const struct rfl_amount *flops = &amount[RFL_QUANTITY_FLOPS];
	const struct rfl_amount *bytes = &amount[RFL_QUANTITY_DRAM];

	if (isnan(flops->value))
		return isnan(bytes->value) ? "neither flops.total nor dram_bytes is known"
					   : "flops.total is unknown";
	if (isnan(bytes->value))
		return "dram_bytes is unknown";
	if (bytes->value <= 0)
		return "no bytes were moved, so the arithmetic intensity is undefined";
	return "flops.total and dram_bytes cover different launches";
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

void rfl_capture_of_part(struct rfl_captures *c, size_t i, const char *reason)
{
	struct rfl_arena *arena = c->captures[i]->arena;
	struct rfl_capture *mine = rfl_arena_array(arena, 1, sizeof(*mine));

	*mine = *c->captures[i];
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!isnan(mine->total[q].value))
			mine->total[q] = (struct rfl_amount){
				.value = NAN,
				.validity = RFL_VALID_UNAVAILABLE,
				.reason = rfl_arena_strdup(arena, reason),
			};
	c->captures[i] = mine;
}

void rfl_capture_identify(struct rfl_captures *c, size_t i, const char *label, const char *run_id,
			  const char *time_utc)
{
	struct rfl_arena *arena = c->captures[i]->arena;
	struct rfl_capture *mine = rfl_arena_array(arena, 1, sizeof(*mine));

	*mine = *c->captures[i];
	if (label)
		mine->label = rfl_arena_strdup(arena, label);
	if (run_id)
		mine->run_id = rfl_arena_strdup(arena, run_id);
	if (time_utc)
		mine->time_utc = rfl_arena_strdup(arena, time_utc);
	c->captures[i] = mine;
}
