/*
 * store.c - captures as they are handed out: a list that owns them, and what follows from
 * amounts.
 */
#include "profile/capture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/capture/counters_csv.h"

const char *const rfl_range_kind_names[] = { "kernel",  "step", "phase",     "layer",
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
		rfl_arena_free(c->arenas[i]);
	free(c->captures);
	free(c->arenas);
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

double rfl_capture_ipc(const struct rfl_capture *c)
{
	static const char *const gpu[] = { "cupti", "ncu", "nvprof", "nsys" };
	const struct rfl_amount *inst = &c->total[RFL_QUANTITY_INSTRUCTIONS];
	const struct rfl_amount *cycles = &c->total[RFL_QUANTITY_CYCLES];

	for (size_t i = 0; i < RFL_ARRAY_LEN(gpu); i++)
		if (strcmp(c->source, gpu[i]) == 0)
			return NAN;
	return cycles->value > 0 && inst->launches == cycles->launches &&
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

enum rfl_rc rfl_capture_identify(struct rfl_captures *c, size_t i, const char *label,
				 const char *run_id, const char *time_utc, struct rfl_err *err)
{
	struct rfl_capture *mine = rfl_arena_array(c->arenas[i], 1, sizeof(*mine));

	if (mine)
		*mine = *c->captures[i];
	if (mine && label)
		mine->label = rfl_arena_strdup(c->arenas[i], label);
	if (mine && run_id)
		mine->run_id = rfl_arena_strdup(c->arenas[i], run_id);
	if (mine && time_utc)
		mine->time_utc = rfl_arena_strdup(c->arenas[i], time_utc);
	if (!mine || (label && !mine->label) || (run_id && !mine->run_id) ||
	    (time_utc && !mine->time_utc))
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a capture");
	c->captures[i] = mine;
	return RFL_OK;
}
