/*
 * capture.c - what the sessions gave, as a capture: a value or a reason for every metric of
 * every range, and the notes that a reader needs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "profile/cupti/impl.h"

static const char no_value[] =
	"the counter gave no value: its unit is shared (MIG) or switched off";
static const char no_data[] =
	"CUPTI kept nothing of this range: no kernel ran in it, or the counters missed it";

/* What a self-test says of other values: of those that the same units count. */
static const struct {
	const char *family; /* how quantities begin */
	const char *metric; /* part of the names of their metrics */
} families[] = {
	{ "dram", "dram_" },
	{ "flops.tensor", "__ops_path_" },
	{ "flops.fp", "__sass_" },
};

/* Why values of each family are marked; "": they are not. */
struct marks {
	char why[RFL_ARRAY_LEN(families)][256];
};

static void find_marks(const struct rfl_selftest *t, struct marks *ret)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(families); i++) {
		const struct rfl_selftest_row *worst = rfl_selftest_worst(t, families[i].family);

		ret->why[i][0] = '\0';
		if (worst)
			snprintf(ret->why[i], sizeof(ret->why[i]),
				 "the self-test is off: %s of %s came out as %.4f of what is "
				 "known%s",
				 rfl_quantity_info(worst->quantity)->name, worst->work,
				 rfl_selftest_ratio(worst),
				 rfl_selftest_is_ecc(t, worst) ? " (with the check bits of ECC)"
							       : "");
	}
}

/* ------------------------------------------------------------------ metrics */

static void give(struct rfl_capture_builder *b, const char *metric, const char *unit, double value,
		 int pass, const struct marks *marks, const char *why)
{
	const int id = rfl_capture_metric_id(b, metric, strlen(metric), unit);
	const char *mark = NULL;

	for (size_t i = 0; marks && !mark && i < RFL_ARRAY_LEN(families); i++)
		if (marks->why[i][0] && strstr(metric, families[i].metric))
			mark = marks->why[i];
	if (isnan(value))
		(void)rfl_capture_metric(b, id, NAN, RFL_VALID_UNAVAILABLE, pass,
					 why ? why : no_value);
	else /* what two sessions counted stays as the first has it */
		(void)rfl_capture_metric(b, id, value, mark ? RFL_VALID_MARKED : RFL_VALID, pass,
					 mark);
}

/* Metrics of a session for a range: `values` NULL: it was not counted, `why` says why. */
static void give_session(struct rfl_capture_builder *b, const struct rfl_cupti_planned *s,
			 size_t first_pass, const double *values, const struct marks *marks,
			 const char *why)
{
	/* of several passes it is not known which one had a metric */
	const int pass = !values || s->passes != 1 ? -1 : (int)first_pass;
	const struct rfl_metric_set *m = &s->metrics;

	for (size_t i = 0; i < m->n; i++)
		give(b, m->names[i], s->units[i].unit, values ? values[i] : NAN, pass, marks, why);
	for (size_t i = 0; i < m->nabsent; i++)
		give(b, m->absent[i], "", NAN, -1, NULL, m->why_absent[i]);
}

/* Sets that could not even be planned: every metric that they would have counted has the reason. */
static enum rfl_rc give_refused(const struct rfl_cupti_count *c, struct rfl_capture_builder *b,
				unsigned sets, const char *why, struct rfl_err *err)
{
	struct rfl_metric_set wanted = { .n = 0 };
	struct rfl_formulas *f = NULL;
	enum rfl_rc rc = RFL_ENOTFOUND;

	if (c->target.chip[0])
		rc = rfl_formulas_new(c->target.chip, &f, NULL);
	if (rc == RFL_ENOTFOUND) /* as the builder has it then */
		rc = rfl_formulas_new("any", &f, err);
	if (rc == RFL_OK)
		rfl_metric_set_add_sets(&wanted, f, sets, rfl_cupti_precision(c->request));
	for (size_t i = 0; i < wanted.n; i++)
		give(b, wanted.names[i], "", NAN, -1, NULL, why);
	rfl_formulas_free(f);
	return rc;
}

static enum rfl_rc add_range(const struct rfl_cupti_count *c, struct rfl_capture_builder *b,
			     size_t i, const struct marks *marks, struct rfl_err *err)
{
	const struct rfl_counted_range *range = &rfl_cupti_count_ranges(c)->ranges[i];
	enum rfl_rc rc = rfl_capture_begin(b, range->kind, range->name, NULL, NULL, err);

	for (size_t k = 0; c->plan && k < c->plan->n && rc == RFL_OK; k++) {
		const struct rfl_cupti_planned *s = &c->plan->sessions[k];
		const struct rfl_cupti_outcome *out = &c->outcomes[k];
		bool counted = out->why.rc == RFL_OK && i < out->counted.n;
		bool has_data = counted && out->counted.ranges[i].has_data;

		if (s->metrics.n == 0 && out->why.rc != RFL_OK)
			rc = give_refused(c, b, s->set, out->why.msg, err);
		else
			give_session(b, s, out->first_pass,
				     has_data ? out->counted.ranges[i].values : NULL, marks,
				     has_data  ? NULL
				     : counted ? no_data
					       : out->why.msg);
	}
	if (rc == RFL_OK && !c->plan)
		rc = give_refused(c, b, c->request->sets, c->refused.msg, err);
	return rc == RFL_OK ? rfl_capture_end(b, err) : rc;
}

/* ------------------------------------------------------------------ idle */

/* Bytes of device memory in a range; NaN: not known. */
static double dram_of(const struct rfl_cupti_count *c, const struct rfl_counted_range *range)
{
	double amounts[RFL_QUANTITY_COUNT];

	rfl_cupti_plan_amounts(c->plan, &c->plan->sessions[0], range->values, amounts);
	return amounts[RFL_QUANTITY_DRAM];
}

static enum rfl_rc add_idle(const struct rfl_cupti_count *c, struct rfl_capture_builder *b,
			    const struct marks *marks, struct rfl_err *err)
{
	const struct rfl_cupti_outcome *core = &c->outcomes[0];
	const struct rfl_counted_range *idle = c->idle.ranges;
	char bytes[32], time[32];
	double all = 0, dram;
	enum rfl_rc rc;

	if (c->idle.n == 0)
		return RFL_OK;
	dram = dram_of(c, idle);
	for (size_t i = 0; i < core->counted.n; i++)
		all += dram_of(c, &core->counted.ranges[i]);
	if (!isnan(dram) && all > 0 && idle->wall_s > 0)
		rfl_capture_note(
			b,
			"in %s with nothing of this run executing %s went through device memory: "
			"at "
			"that rate %.2g %% of what was counted is not of this run",
			rfl_num_si(idle->wall_s, "s", 3, time, sizeof(time)),
			rfl_num_si(dram, "byte", 3, bytes, sizeof(bytes)),
			100 * (dram / idle->wall_s * rfl_counted_wall_s(&core->counted) / all));
	rc = rfl_capture_begin(b, RFL_RANGE_IDLE, "idle", NULL, NULL, err);
	if (rc != RFL_OK)
		return rc;
	give_session(b, &c->plan->sessions[0], core->first_pass, idle->values, marks, NULL);
	return rfl_capture_end(b, err);
}

/* ------------------------------------------------------------------ notes */

static void note_sessions(const struct rfl_cupti_count *c, struct rfl_capture_builder *b)
{
	static const unsigned counters[] = { RFL_SET_CORE, RFL_SET_FLOPS, RFL_SET_AUDIT,
					     RFL_SET_LINKS };
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	for (size_t i = 0; !c->plan && i < RFL_ARRAY_LEN(counters); i++)
		if (c->request->sets & counters[i])
			rfl_capture_refuse(b, rfl_counter_set_name(counters[i]), c->refused.msg);
	for (size_t i = 0; c->plan && i < c->plan->n; i++) {
		const struct rfl_cupti_planned *s = &c->plan->sessions[i];

		if (c->outcomes[i].why.rc != RFL_OK)
			rfl_capture_refuse(b, s->name, c->outcomes[i].why.msg);
		else if (s->metrics.n == 0)
			rfl_capture_refuse(b, s->name, "the chip has no such counters");
		else {
			rfl_buf_reset(&text);
			rfl_cupti_planned_text(s, &text);
			rfl_capture_note(b, "%s: %s", s->name, rfl_buf_str(&text));
		}
	}
	rfl_buf_fini(&text);
	if (c->runs > 1 && !c->saved && c->workload->save)
		rfl_capture_note(b, "passes were taken on %zu steps that follow each other: %s",
				 c->runs,
				 c->not_saved.rc != RFL_OK ? c->not_saved.msg
							   : "more runs were needed than planned");
	if (rfl_cupti_count_any(c))
		rfl_capture_note(b, "times in counted steps include what counting costs, at the "
				    "clocks that the GPU chose: the run's own timing is taken "
				    "without counters");
}

static enum rfl_rc add_selftest(const struct rfl_cupti_count *c, struct rfl_capture_builder *b,
				const struct marks *marks, struct rfl_err *err)
{
	if (!(c->request->sets & RFL_SET_SELF_TEST))
		return RFL_OK;
	for (size_t i = 0; i < RFL_ARRAY_LEN(families); i++)
		if (marks->why[i][0])
			rfl_capture_note(b, "%s: values of %s are marked", marks->why[i],
					 families[i].family);
	if (c->selftest.n == 0 || c->no_selftest.rc != RFL_OK)
		rfl_capture_refuse(b, rfl_counter_set_name(RFL_SET_SELF_TEST),
				   c->no_selftest.rc != RFL_OK ? c->no_selftest.msg
							       : c->refused.msg);
	return c->selftest.n > 0 ? rfl_selftest_add(&c->selftest, b, err) : RFL_OK;
}

enum rfl_rc rfl_cupti_capture(const struct rfl_cupti_count *c, struct rfl_captures *to,
			      struct rfl_err *err)
{
	const struct rfl_capture_spec spec = { .source = "cupti",
					       .label = c->request->label,
					       .all_metrics = true };
	const struct rfl_counted *ranges = rfl_cupti_count_ranges(c);
	struct rfl_capture_builder *b = NULL;
	struct marks marks;
	enum rfl_rc rc = rfl_capture_builder_new(&spec, &b, err);

	if (rc == RFL_OK && c->target.chip[0])
		rc = rfl_capture_chip(b, c->target.chip, c->cuda->name, err);
	if (rc != RFL_OK)
		goto done;
	find_marks(&c->selftest, &marks);
	rfl_capture_steps(b, 1, (int64_t)c->runs);
	note_sessions(c, b);
	for (size_t i = 0; i < ranges->n && rc == RFL_OK; i++)
		rc = add_range(c, b, i, &marks, err);
	if (rc == RFL_OK)
		rc = add_idle(c, b, &marks, err);
	if (rc == RFL_OK)
		rc = add_selftest(c, b, &marks, err);
	if (rc == RFL_OK && c->kernels.arena && c->no_kernels.rc == RFL_OK)
		rc = rfl_kernel_launches_add(&c->kernels, c->request->step_s, b, err);
	else if (rc == RFL_OK && c->no_kernels.rc != RFL_OK)
		rfl_capture_refuse(b, rfl_counter_set_name(RFL_SET_KERNELS), c->no_kernels.msg);
	if (rc == RFL_OK)
		rc = rfl_capture_finish(b, to, err);
done:
	rfl_capture_builder_free(b);
	return rc;
}
