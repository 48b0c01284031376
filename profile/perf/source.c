/*
 * source.c - the live source of processors: a plan of events, one run of the workload per
 * pass, and what came of it as a capture.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "profile/perf/impl.h"

#define SHARE_MIN   0.5   /* of the time on a counter: less is refused */
#define SHARE_WHOLE 0.999 /* more is not multiplexing */
#define IDLE_S      0.1
#define COST_MAX    0.01 /* of a range, that reading its counters may take */

/* ---- a capture ---- */

struct report {
	struct rfl_perf_plan *plan;
	struct rfl_capture_builder *b;
	struct rfl_err *err;
};

/* A value and all that a reader has to know of it. */
static enum rfl_validity judge(const struct report *r, const struct rfl_perf_item *item,
			       const struct rfl_perf_tally *tally, double *value,
			       const char **reason)
{
	enum rfl_validity validity = RFL_VALID;
	const char *note = NULL, *text;
	double share;

	*value = NAN;
	*reason = item->reason;
	if (item->reason)
		return RFL_VALID_UNAVAILABLE;
	if (item->partial) {
		/* with E-cores: the time on those counts as time without a counter, so the value is
		 * what was read, a lower bound, and never scaled */
		*reason =
			"counted on P-cores only, and no thread ran there (or none had a counter)";
		if (!(tally->running_s > 0))
			return RFL_VALID_UNAVAILABLE;
		*value = tally->read * item->scale;
		note = "P-cores only: what ran on E-cores is not in it";
		validity = RFL_VALID_PARTIAL;
	} else {
		*value = rfl_perf_tally_value(tally, &share) * item->scale;
		if (isnan(*value) || share < SHARE_MIN) {
			*value = NAN;
			validity = RFL_VALID_UNAVAILABLE;
			note = "more events than counters, or another profiler or the NMI watchdog "
			       "holds some; less than 50 % is refused";
		} else if (share < SHARE_WHOLE) {
			validity = RFL_VALID_SCALED;
			note = "scaled to the whole time";
		}
		text = note ? rfl_arena_printf(r->plan->arena,
					       "on a counter for %.3g %% of the time: %s",
					       100 * share, note)
			    : NULL;
		note = text ? text : note;
	}
	*reason = note;
	if (!item->user_only || validity == RFL_VALID_UNAVAILABLE)
		return validity;
	text = note ? rfl_arena_printf(r->plan->arena, "%s; user mode only", note)
		    : "user mode only: perf_event_paranoid allows no more";
	*reason = text ? text : note;
	return validity;
}

static void put_metric(const struct report *r, const char *name, const char *unit, double value,
		       enum rfl_validity validity, int pass, const char *reason)
{
	const int id = rfl_capture_metric_id(r->b, name, strlen(name), unit);

	(void)rfl_capture_metric(r->b, id, value, validity, pass, reason);
}

static enum rfl_rc put_spans(const struct report *r, const struct rfl_perf_session *s)
{
	size_t n = 0;
	const struct rfl_perf_span *spans = s ? rfl_perf_session_spans(s, &n) : NULL;
	enum rfl_rc rc = RFL_OK;

	for (const struct rfl_perf_span *span = spans; rc == RFL_OK && n > 0; span++, n--) {
		rc = rfl_capture_begin(r->b, span->kind, span->name, NULL, NULL, r->err);
		if (rc != RFL_OK)
			break;
		rfl_capture_launches(r->b, span->launches);
		put_metric(r, "duration_time", "s", span->time_s, RFL_VALID, 0, NULL);
		for (size_t i = 0; i < r->plan->n; i++) {
			const struct rfl_perf_item *item = &r->plan->items[i];
			const char *reason;
			double value;
			const enum rfl_validity validity =
				judge(r, item, &span->tallies[i], &value, &reason);

			put_metric(r, item->metric, item->unit, value, validity,
				   item->reason ? -1 : item->pass, reason);
		}
		rc = rfl_capture_end(r->b, r->err);
	}
	return rc;
}

/* ---- notes ---- */

/* Bytes per second that went through the memory controllers in the idle range; NaN when not known.
 */
static double idle_rate(const struct report *r, const struct rfl_perf_session *idle)
{
	struct rfl_formulas *f = NULL;
	size_t n;
	const struct rfl_perf_span *span = rfl_perf_session_spans(idle, &n);
	double slots[512], amount[RFL_QUANTITY_COUNT] = { [RFL_QUANTITY_DRAM] = NAN };

	if (n == 0 || rfl_formulas_new(r->plan->formulas, &f, NULL) != RFL_OK)
		return NAN;
	for (size_t i = 0; i < RFL_ARRAY_LEN(slots); i++)
		slots[i] = NAN;
	for (size_t i = 0; i < r->plan->n; i++) {
		const struct rfl_perf_item *item = &r->plan->items[i];
		const int slot = rfl_formulas_slot(f, item->metric, strlen(item->metric));
		const char *reason;

		if (slot >= 0 && (size_t)slot < RFL_ARRAY_LEN(slots) && item->is_uncore)
			(void)judge(r, item, &span->tallies[i], &slots[slot], &reason);
	}
	rfl_formulas_eval(f, slots, amount, NULL);
	rfl_formulas_free(f);
	return amount[RFL_QUANTITY_DRAM] / span->time_s;
}

static void add_notes(const struct report *r, const struct rfl_perf_session *idle,
		      const struct rfl_perf_session *s)
{
	const struct rfl_perf_facts f = rfl_perf_session_facts(s);
	const double rate_b_per_s = idle ? idle_rate(r, idle) : (double)NAN;
	const struct rfl_perf_plan *p = r->plan;
	char first[64], second[64];

	if (idle && isnan(rate_b_per_s))
		rfl_capture_note(r->b, "DRAM bytes are those of whole sockets, every process "
				       "counted; the share of other processes is not known");
	else if (idle)
		rfl_capture_note(r->b,
				 "DRAM bytes are those of whole sockets, every process counted; "
				 "while this one rested for %.3g s, %s moved",
				 IDLE_S, rfl_num_si(rate_b_per_s, "B/s", 3, first, sizeof(first)));
	if (rfl_perf_plan_usable(p, true) == 0 && rfl_perf_plan_reason(p))
		rfl_capture_note(r->b, "only events of the kernel were counted: %s",
				 rfl_perf_plan_reason(p));
	if (p->cpu->no_flops)
		rfl_capture_note(r->b, "%s: %s", p->cpu->name, p->cpu->no_flops);
	if (f.appeared > 0 || f.vanished > 0)
		rfl_capture_note(r->b,
				 "of %zu threads %zu ended and %zu began while it ran: those that "
				 "began are counted where a counted thread began them",
				 f.threads, f.vanished, f.appeared);
	if (f.reading_s > COST_MAX * f.shortest_s)
		rfl_capture_note(
			r->b,
			"reading the counters takes %s at each boundary, more than 1 %% of "
			"the shortest range (%s): count larger ranges",
			rfl_num_si(f.reading_s, "s", 3, first, sizeof(first)),
			rfl_num_si(f.shortest_s, "s", 3, second, sizeof(second)));
	if (p->passes > 1)
		rfl_capture_note(r->b,
				 "counted in %d runs of the same step: this processor has fewer "
				 "counters than there are events",
				 p->passes);
}

/* ---- measuring ---- */

static bool counts_dram(const struct rfl_perf_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->items[i].is_uncore && !plan->items[i].reason)
			return true;
	return false;
}

static enum rfl_rc rest(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	const struct rfl_perf_sys *sys = ctx;
	enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_IDLE, "idle", err);

	if (rc != RFL_OK)
		return rc;
	sys->rest(sys->ctx, IDLE_S);
	return ranges->end(ranges, err);
}

/* Once per pass; the workload goes back to where it was in between. */
static enum rfl_rc run_passes(struct rfl_perf_session *s, int passes, const struct rfl_workload *w,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (passes > 1 && w->save)
		rc = w->save(w->ctx, err);
	for (int pass = 0; pass < passes && rc == RFL_OK; pass++) {
		if (pass > 0 && w->restore)
			rc = w->restore(w->ctx, err);
		if (rc == RFL_OK)
			rc = rfl_perf_session_run(s, pass, w, err);
	}
	return rc;
}

enum rfl_rc rfl_source_perf__measure(const struct rfl_perf_env *env,
				     const struct rfl_source_request *request,
				     const struct rfl_workload *workload, struct rfl_captures *to,
				     struct rfl_err *err)
{
	struct report r = { .err = err };
	struct rfl_perf_session *idle = NULL, *s = NULL;
	const struct rfl_workload resting = { .run = rest, .ctx = (void *)(uintptr_t)env->sys };
	struct rfl_capture_spec spec = { .source = "perf",
					 .label = request->label,
					 .all_metrics = true };
	enum rfl_rc rc = rfl_perf_plan_new(env, request->precision, &r.plan, err);

	if (rc != RFL_OK)
		goto done;
	spec.formulas = r.plan->formulas;
	rc = rfl_capture_builder_new(&spec, &r.b, err);
	if (rc == RFL_OK && rfl_perf_plan_usable(r.plan, false) == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s",
			      r.plan->n > 0 ? r.plan->items[0].reason : "there are no events");
	if (rc == RFL_OK && counts_dram(r.plan)) {
		rc = rfl_perf_session_new(r.plan, &idle, err);
		if (rc == RFL_OK)
			rc = run_passes(idle, r.plan->passes, &resting, err);
	}
	if (rc == RFL_OK)
		rc = rfl_perf_session_new(r.plan, &s, err);
	if (rc == RFL_OK)
		rc = run_passes(s, r.plan->passes, workload, err);
	if (rc == RFL_OK)
		rc = rfl_capture_chip(r.b, r.plan->cpu->name, env->brand[0] ? env->brand : NULL,
				      err);
	if (rc == RFL_OK)
		rc = put_spans(&r, idle);
	if (rc == RFL_OK)
		rc = put_spans(&r, s);
	if (rc != RFL_OK)
		goto done;
	add_notes(&r, idle, s);
	rfl_capture_steps(r.b, 1, r.plan->passes);
	rc = rfl_capture_finish(r.b, to, err);
done:
	rfl_perf_session_free(idle);
	rfl_perf_session_free(s);
	rfl_capture_builder_free(r.b);
	rfl_perf_plan_free(r.plan);
	return rc;
}

static enum rfl_rc measure(const struct rfl_source_request *request,
			   const struct rfl_workload *workload, struct rfl_captures *to,
			   struct rfl_err *err)
{
	struct rfl_perf_env env;

	rfl_perf_env_init(&env);
	return rfl_source_perf__measure(&env, request, workload, to, err);
}

/* ---- looking ---- */

static void keep(char *out, size_t size, const char *text)
{
	if (out[0] == '\0' && text)
		snprintf(out, size, "%s", text);
}

enum rfl_rc rfl_perf_look__at(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_status *ret, struct rfl_err *err)
{
	struct rfl_perf_plan *plan = NULL;
	enum rfl_rc rc = rfl_perf_plan_new(env, precision, &plan, err);

	if (rc != RFL_OK)
		return rc;
	*ret = (struct rfl_perf_status){ .paranoid = rfl_perf_paranoid(env->sys->root) };
	snprintf(ret->processor, sizeof(ret->processor), "%s", plan->cpu->name);
	ret->hardware = rfl_perf_plan_usable(plan, true);
	ret->software = rfl_perf_plan_usable(plan, false) - ret->hardware;
	keep(ret->no_flops, sizeof(ret->no_flops), plan->cpu->no_flops);
	keep(ret->no_dram, sizeof(ret->no_dram), plan->no_dram);
	for (size_t i = 0; i < plan->n; i++) {
		const struct rfl_perf_item *item = &plan->items[i];

		ret->flops += item->is_flops && !item->reason;
		ret->dram += item->is_uncore && !item->reason;
		if (item->is_flops)
			keep(ret->no_flops, sizeof(ret->no_flops), item->reason);
		if (!item->is_uncore && item->targets->type != PERF_TYPE_SOFTWARE)
			keep(ret->no_hardware, sizeof(ret->no_hardware), item->reason);
	}
	if (ret->software + ret->hardware == 0 && plan->n > 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s", plan->items[0].reason);
	rfl_perf_plan_free(plan);
	return rc;
}

enum rfl_rc rfl_perf_look(struct rfl_perf_status *ret, struct rfl_err *err)
{
	struct rfl_perf_env env;

	rfl_perf_env_init(&env);
	return rfl_perf_look__at(&env, NULL, ret, err);
}

static enum rfl_rc probe(const struct rfl_source_request *request, struct rfl_err *err)
{
	struct rfl_perf_status status;
	struct rfl_perf_env env;

	rfl_perf_env_init(&env);
	return rfl_perf_look__at(&env, request ? request->precision : NULL, &status, err);
}

const struct rfl_source_ops rfl_source_perf = {
	.name = "perf",
	.summary = "hardware and kernel counters of processors: FLOPs, DRAM bytes, cycles, "
		   "instructions, cache misses",
	.device = "cpu",
	.probe = probe,
	.measure = measure,
};
