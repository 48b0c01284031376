/*
 * source.c - live counters of NVIDIA GPUs: runs the counting sessions one after another and turns
 * their results into a capture. The state of the workload is restored between runs, so that every
 * pass of every session counts the same step. If a session fails, the reason is recorded and the
 * others continue. The session that patches kernels is the last one, after all other results have
 * been delivered, so that no counts are lost if the patched kernels hang. Kernels are timed after
 * it, because that needs the profiler to be off, and a profiler that starts again does not patch
 * the kernels loaded before.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/num.h"
#include "profile/cupti/impl.h"

#define IDLE_MOST_S  1.0
#define IDLE_LEAST_S 1e-3

/* The time limit of a session that patches kernels: the driver recompiles each kernel, and patched
 * kernels run many times slower. */
#define PATCHED_LEAST_S  120
#define PATCHED_PER_STEP 100

/* The result of a session. */
struct outcome {
	struct rfl_counted counted;
	struct rfl_err why; /* why the session was not counted; empty: it was */
	size_t first_pass;  /* number of passes of the sessions before it */
};

/* CUPTI on the device. It is opened before any kernel is loaded, because instruction counters patch
 * kernels and may miss those loaded earlier. */
struct rfl_source_early {
	enum rfl_rc rc; /* result of opening */
	struct rfl_err err;
	const struct rfl_source_request *request;
	const char *precision;
	const struct rfl_workload *workload;
	size_t max_ranges; /* maximum per run of the workload */
	struct rfl_cuda *cuda;
	struct rfl_cupti *lib;
	struct rfl_cupti_target target;
	struct rfl_cupti_plan *plan; /* NULL: no counters, for the reason in `refused` */
	struct rfl_err refused;
	struct outcome outcomes[RFL_CUPTI_SESSIONS]; /* one per session of the plan */
	struct rfl_counted idle;                     /* one range, or none */
	struct rfl_counted walked;                   /* ranges of the run that timed kernels */
	struct rfl_kernel_launches kernels;
	struct rfl_err no_kernels; /* why there are no kernel times */
	struct rfl_selftest selftest;
	struct rfl_err no_selftest;
	size_t planned_runs, runs; /* runs of the workload */
	bool saved;
	struct rfl_err not_saved; /* why the state cannot be restored: every run is a new step */
};

/* ---- opening ---- */

static struct rfl_source_early *open_early(const struct rfl_source_request *request)
{
	struct rfl_source_early *c = rfl_alloc_array(1, sizeof(*c));
	struct rfl_cupti_places places = request->places;

	c->request = request;
	c->rc = rfl_cuda_open(request->device, NULL, &c->cuda, &c->err);
	if (c->rc != RFL_OK)
		return c;
	places.driver_major = c->cuda->version / 1000;
	c->rc = rfl_cupti_open(&places, &c->lib, &c->err);
	if (c->rc == RFL_OK)
		(void)!rfl_cupti_target_init(&c->target, c->lib, c->cuda,
					     rfl_cuda_counter_access(NULL), &c->refused);
	return c;
}

static void close_early(struct rfl_source_early *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < RFL_ARRAY_LEN(c->outcomes); i++)
		rfl_counted_fini(&c->outcomes[i].counted);
	rfl_counted_fini(&c->idle);
	rfl_counted_fini(&c->walked);
	rfl_kernel_launches_fini(&c->kernels);
	rfl_cupti_plan_free(c->plan);
	rfl_cupti_target_fini(&c->target);
	rfl_cupti_close(c->lib);
	rfl_cuda_close(c->cuda);
	free(c);
}

/* The ranges of the first session that was counted, otherwise of the run that timed kernels. */
static const struct rfl_counted *ranges_of(const struct rfl_source_early *c)
{
	for (size_t i = 0; c->plan && i < c->plan->n; i++)
		if (c->plan->sessions[i].metrics.n > 0 && c->outcomes[i].why.rc == RFL_OK)
			return &c->outcomes[i].counted;
	return &c->walked;
}

static bool counted_any(const struct rfl_source_early *c)
{
	return ranges_of(c) != &c->walked;
}

/* ---- the capture: a value or a reason for every metric of every range, and notes ---- */

static const char no_value[] =
	"the counter returned no value: its unit is shared (MIG) or switched off";
static const char no_data[] =
	"CUPTI recorded nothing for this range: no kernel ran in it, or the counters missed it";

/* A failed self-test puts all metrics of the same counting units in doubt. */
static const struct {
	const char *family; /* prefix of the quantities' names */
	const char *metric; /* substring of their metrics' names */
} families[] = {
	{ "dram", "dram_" },
	{ "flops.tensor", "__ops_path_" },
	{ "flops.fp", "__sass_" },
};

/* Why the values of a family are marked; "": they are not. */
struct marks {
	char why[RFL_ARRAY_LEN(families)][256];
};

static void give(struct rfl_capture_builder *b, const char *metric, const char *unit, double value,
		 int pass, const struct marks *marks, const char *why)
{
	const char *mark = NULL;

	for (size_t i = 0; marks && !mark && i < RFL_ARRAY_LEN(families); i++)
		if (marks->why[i][0] && strstr(metric, families[i].metric))
			mark = marks->why[i];
	if (!why)
		why = no_value;
	/* if two sessions counted the metric, the value of the first is kept */
	rfl_capture_put(b, metric, unit, value, mark ? RFL_VALID_MARKED : RFL_VALID, pass,
			isnan(value) ? why : mark);
}

/* Add the metrics of a session to a range. @param values  NULL: not counted, because of `why` */
static void give_session(struct rfl_capture_builder *b, const struct rfl_cupti_planned *s,
			 size_t first_pass, const double *values, const struct marks *marks,
			 const char *why)
{
	/* with several passes it is unknown which one counted a metric */
	const int pass = !values || s->passes != 1 ? -1 : (int)first_pass;
	const struct rfl_metric_set *m = &s->metrics;

	for (size_t i = 0; i < m->n; i++)
		give(b, m->names[i], s->units[i].unit, values ? values[i] : NAN, pass, marks, why);
	for (size_t i = 0; i < m->nabsent; i++)
		give(b, m->absent[i], "", NAN, -1, NULL, m->why_absent[i]);
}

/* Give the reason to all metrics of the sets that could not be planned. */
static void give_refused(const struct rfl_source_early *c, struct rfl_capture_builder *b,
			 unsigned sets, const char *why)
{
	struct rfl_metric_set wanted = { .n = 0 };
	RFL_AUTOPTR(formulas) f = rfl_formulas_or_any(c->target.chip[0] ? c->target.chip : NULL);

	rfl_metric_set_add_sets(&wanted, f, sets, c->precision);
	for (size_t i = 0; i < wanted.n; i++)
		give(b, wanted.names[i], "", NAN, -1, NULL, why);
}

static void add_range(const struct rfl_source_early *c, struct rfl_capture_builder *b, size_t i,
		      const struct marks *marks)
{
	const struct rfl_counted_range *range = &ranges_of(c)->ranges[i];

	rfl_capture_begin(b, range->kind, range->name, NULL, NULL);
	for (size_t k = 0; c->plan && k < c->plan->n; k++) {
		const struct rfl_cupti_planned *s = &c->plan->sessions[k];
		const struct outcome *out = &c->outcomes[k];
		bool counted = out->why.rc == RFL_OK && i < out->counted.n;
		bool has_data = counted && out->counted.ranges[i].has_data;

		if (s->metrics.n == 0 && out->why.rc != RFL_OK)
			give_refused(c, b, s->set, out->why.msg);
		else
			give_session(b, s, out->first_pass,
				     has_data ? out->counted.ranges[i].values : NULL, marks,
				     has_data  ? NULL
				     : counted ? no_data
					       : out->why.msg);
	}
	if (!c->plan)
		give_refused(c, b, c->request->sets, c->refused.msg);
}

static void add_idle(const struct rfl_source_early *c, struct rfl_capture_builder *b,
		     const struct marks *marks)
{
	const struct outcome *core = &c->outcomes[0];
	const struct rfl_counted_range *idle = c->idle.ranges;
	const double all = rfl_capture_so_far(b, core->counted.ranges[0].kind, RFL_QUANTITY_DRAM);
	char bytes[32], time[32];

	rfl_capture_begin(b, RFL_RANGE_IDLE, "idle", NULL, NULL);
	give_session(b, &c->plan->sessions[0], core->first_pass, idle->values, marks, NULL);
	const double dram = rfl_capture_so_far(b, RFL_RANGE_IDLE, RFL_QUANTITY_DRAM);
	if (!isnan(dram) && all > 0 && idle->wall_s > 0)
		rfl_capture_note(
			b,
			"in %s without activity of this run, %s moved through device memory: at "
			"that rate, %.2g %% of the counted bytes come from other programs",
			rfl_num_si(idle->wall_s, "s", 3, time, sizeof(time)),
			rfl_num_si(dram, "byte", 3, bytes, sizeof(bytes)),
			100 * (dram / idle->wall_s * rfl_counted_wall_s(&core->counted) / all));
}

static void note_sessions(const struct rfl_source_early *c, struct rfl_capture_builder *b)
{
	RFL_AUTO(buf) text = { 0 };

	for (unsigned set = RFL_SET_CORE; !c->plan && set <= RFL_SET_LINKS; set <<= 1)
		if (c->request->sets & set)
			rfl_capture_refuse(b, rfl_counter_set_name(set), c->refused.msg);
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
	if (c->runs > 1 && !c->saved && c->workload->save)
		rfl_capture_note(
			b, "passes counted %zu consecutive steps instead of the same step: %s",
			c->runs,
			c->not_saved.rc != RFL_OK ? c->not_saved.msg
						  : "more runs were needed than planned");
	if (counted_any(c))
		rfl_capture_note(b, "counted steps include the overhead of counting, at clocks "
				    "chosen by the GPU; the run itself is timed without counters");
}

static enum rfl_rc make_capture(const struct rfl_source_early *c, struct rfl_captures *to,
				struct rfl_err *err)
{
	const struct rfl_capture_spec spec = { .source = "cupti",
					       .label = c->request->label,
					       .all_metrics = true };
	const struct rfl_err *no_test = c->no_selftest.rc != RFL_OK ? &c->no_selftest : &c->refused;
	const bool tested = (c->request->sets & RFL_SET_SELF_TEST) != 0;
	const struct rfl_counted *ranges = ranges_of(c);
	struct rfl_capture_builder *b = rfl_capture_builder_new(&spec);
	struct marks marks = { .why = { "" } };

	if (c->target.chip[0])
		rfl_capture_chip(b, c->target.chip, c->cuda->name);
	for (size_t i = 0; i < RFL_ARRAY_LEN(families); i++) {
		const struct rfl_selftest_row *worst =
			rfl_selftest_worst(&c->selftest, families[i].family);

		if (worst)
			snprintf(marks.why[i], sizeof(marks.why[i]),
				 "the self-test failed: %s of %s was counted as %.4f of its known "
				 "value%s",
				 rfl_quantity_info(worst->quantity)->name, worst->work,
				 rfl_selftest_ratio(worst),
				 rfl_selftest_is_ecc(&c->selftest, worst)
					 ? " (including ECC check bits)"
					 : "");
	}
	rfl_capture_steps(b, 1, (int64_t)c->runs);
	note_sessions(c, b);
	for (size_t i = 0; i < ranges->n; i++)
		add_range(c, b, i, &marks);
	if (c->idle.n > 0)
		add_idle(c, b, &marks);
	for (size_t i = 0; tested && i < RFL_ARRAY_LEN(families); i++)
		if (marks.why[i][0])
			rfl_capture_note(b, "%s: values of %s are marked", marks.why[i],
					 families[i].family);
	if (tested && (c->selftest.n == 0 || c->no_selftest.rc != RFL_OK))
		rfl_capture_refuse(b, rfl_counter_set_name(RFL_SET_SELF_TEST), no_test->msg);
	if (c->selftest.n > 0)
		rfl_selftest_add(&c->selftest, b);
	if (c->no_kernels.rc != RFL_OK)
		rfl_capture_refuse(b, rfl_counter_set_name(RFL_SET_KERNELS), c->no_kernels.msg);
	else if (c->kernels.arena)
		rfl_kernel_launches_add(&c->kernels, c->request->step_s, b);
	return rfl_capture_finish(b, to, err);
}

/* Called before each run: save the state before the first run if others follow, and restore it
 * before each of those. If the state cannot be saved, the capture gets a note, and each pass counts
 * a new step. Parameter copies that this starts on the GPU are not counted. */
static enum rfl_rc make_ready(void *ctx, struct rfl_err *err)
{
	struct rfl_source_early *c = ctx;
	const struct rfl_workload *w = c->workload;

	if (c->runs > 0)
		return c->saved && w->restore ? w->restore(w->ctx, err) : RFL_OK;
	if (c->saved || c->not_saved.rc != RFL_OK || !w->save || c->planned_runs < 2)
		return RFL_OK;
	enum rfl_rc rc = w->save(w->ctx, &c->not_saved);
	c->saved = rc == RFL_OK;
	if (rc == RFL_OK || rc == RFL_EUNSUPPORTED)
		return RFL_OK;
	return rfl_err_pass(err, &c->not_saved);
}

static enum rfl_rc run_workload(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct rfl_source_early *c = ctx;

	c->runs++;
	return c->workload->run(c->workload->ctx, ranges, err);
}

/* Sleep for about the time of a step: anything counted meanwhile is not from the workload. */
static enum rfl_rc run_idle(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	const double step_s = *(const double *)ctx;
	const double time_s = fmin(fmax(step_s, IDLE_LEAST_S), IDLE_MOST_S);
	struct timespec wait = { .tv_sec = (time_t)time_s };
	enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_IDLE, "idle", err);

	wait.tv_nsec = (long)(1e9 * (time_s - (double)wait.tv_sec));
	if (rc == RFL_OK)
		(void)nanosleep(&wait, NULL);
	return rc;
}

/* ---- sessions ---- */

/* Count one session. Counter failures are stored in `out->why`; workload failures are returned. */
static enum rfl_rc count_session(struct rfl_source_early *c, const struct rfl_cupti_planned *s,
				 struct outcome *out, struct rfl_err *err)
{
	struct rfl_replay work = { .ready = make_ready, .run = run_workload, .ctx = c };
	const struct rfl_counted *own = &out->counted, *first;

	out->why = s->why;
	if (s->why.rc != RFL_OK || s->metrics.n == 0)
		return RFL_OK;
	if (rfl_cupti_target_start(&c->target, &out->why) == RFL_OK &&
	    rfl_cupti_count(&c->target, s, c->max_ranges, &work, &out->counted, &out->why) ==
		    RFL_OK &&
	    s->set == RFL_SET_CORE) {
		double step_s = rfl_counted_wall_s(own);
		struct rfl_replay rest = { .run = run_idle, .ctx = &step_s };

		/* optional: omitted on failure */
		if (rfl_cupti_count(&c->target, s, 1, &rest, &c->idle, NULL) != RFL_OK)
			rfl_counted_fini(&c->idle);
	}
	if (work.rc != RFL_OK)
		return rfl_fail(err, work.rc, out->why.native, "%s", out->why.msg);
	if (out->why.rc != RFL_OK)
		return RFL_OK;
	/* sessions can only be combined if their ranges are the same */
	first = ranges_of(c);
	bool same = first->n == own->n;
	for (size_t i = 0; same && i < own->n; i++)
		same = own->ranges[i].kind == first->ranges[i].kind &&
		       strcmp(own->ranges[i].name, first->ranges[i].name) == 0;
	if (!same)
		(void)rfl_fail(&out->why, RFL_EFAILED, 0,
			       "this run has other ranges than the first");
	return RFL_OK;
}

static enum rfl_rc time_kernels(struct rfl_source_early *c, struct rfl_err *err)
{
	struct rfl_replay work = { .ready = make_ready, .run = run_workload, .ctx = c };

	rfl_err_clear(&c->no_kernels);
	rfl_cupti_target_stop(&c->target);
	if (rfl_cupti_kernels(c->lib, &work, &c->walked, &c->kernels, &c->no_kernels) != RFL_OK &&
	    work.rc != RFL_OK)
		return rfl_fail(err, work.rc, c->no_kernels.native, "%s", c->no_kernels.msg);
	return RFL_OK;
}

/* Run the self-test; failures are noted in the capture. */
static void self_test(struct rfl_source_early *c, unsigned set)
{
	if (c->plan && (c->request->sets & RFL_SET_SELF_TEST) && c->no_selftest.rc == RFL_OK &&
	    rfl_cupti_target_start(&c->target, &c->no_selftest) == RFL_OK)
		(void)!rfl_selftest_run(c->cuda, &c->target, c->precision, set, &c->selftest,
					&c->no_selftest);
}

static void hand_over(const struct rfl_source_early *c, bool patched_next)
{
	const struct rfl_counted *ranges = ranges_of(c);
	const double patched_s = PATCHED_LEAST_S + PATCHED_PER_STEP * rfl_counted_wall_s(ranges);
	struct rfl_captures captures;

	if (!c->request->so_far || ranges->n == 0)
		return;
	rfl_captures_init(&captures);
	if (make_capture(c, &captures, NULL) == RFL_OK)
		c->request->so_far(&captures, patched_next ? patched_s : 0, c->request->ctx);
	rfl_captures_fini(&captures);
}

/* Plan, count, and append a capture. */
static enum rfl_rc count(struct rfl_source_early *c, struct rfl_captures *to, struct rfl_err *err)
{
	const size_t at_once = RFL_CUPTI_RANGES_AT_ONCE;
	const size_t batches = (c->max_ranges + at_once - 1) / at_once;
	const bool wants_kernels = (c->request->sets & RFL_SET_KERNELS) != 0;
	struct rfl_err pending = RFL_ERR_INIT, end = RFL_ERR_INIT;
	const struct rfl_err *why = &c->refused;
	size_t passes = 0;
	enum rfl_rc rc = RFL_OK;

	if (c->target.gate == RFL_CUPTI_GATE_OPEN)
		(void)!rfl_cupti_plan_new(c->lib, c->target.chip, c->target.availability,
					  c->request->sets, c->precision, &c->plan, &c->refused);
	(void)rfl_fail(&pending, RFL_EFAILED, 0, "the run ended before this was counted");
	if (wants_kernels) {
		c->no_kernels = pending;
		c->planned_runs = 1;
	}
	for (size_t i = 0; c->plan && i < c->plan->n; i++) {
		const struct rfl_cupti_planned *s = &c->plan->sessions[i];

		c->outcomes[i].why = pending;
		if (s->why.rc == RFL_OK && s->metrics.n > 0)
			c->planned_runs += batches * s->passes;
	}
	self_test(c, RFL_SET_CORE);
	for (size_t i = 0; c->plan && i < c->plan->n && rc == RFL_OK; i++) {
		const struct rfl_cupti_planned *s = &c->plan->sessions[i];
		const bool patches = s->set == RFL_SET_FLOPS;

		hand_over(c, patches);
		if (patches)
			self_test(c, s->set);
		c->outcomes[i].first_pass = passes;
		passes += s->passes;
		rc = count_session(c, s, &c->outcomes[i], &end);
	}
	if (rc == RFL_OK && (wants_kernels || !counted_any(c))) {
		hand_over(c, false);
		rc = time_kernels(c, &end);
	}
	if (rc != RFL_OK && !counted_any(c) && !c->kernels.arena)
		return rfl_err_pass(err, &end);
	if (counted_any(c) || c->no_kernels.rc == RFL_OK)
		return make_capture(c, to, err);
	/* neither counters nor kernel times */
	for (size_t i = 0; c->plan && i < c->plan->n && why->rc == RFL_OK; i++)
		why = &c->outcomes[i].why;
	if (why->rc == RFL_OK)
		why = &c->no_kernels;
	return rfl_fail(err, RFL_EUNAVAILABLE, why->native, "nothing could be counted: %s",
			why->msg);
}

static enum rfl_rc probe(const struct rfl_source_request *request, struct rfl_err *err)
{
	struct rfl_source_early *c = open_early(request);
	enum rfl_rc rc = RFL_OK;
	const struct rfl_err *why = c->rc != RFL_OK ? &c->err : &c->refused;
	if (c->rc != RFL_OK || c->target.gate != RFL_CUPTI_GATE_OPEN)
		rc = rfl_err_pass(err, why);
	close_early(c);
	return rc;
}

static enum rfl_rc measure(const struct rfl_source_request *request,
			   const struct rfl_workload *workload, struct rfl_captures *to,
			   struct rfl_err *err)
{
	struct rfl_source_early *c = request->early ? request->early : open_early(request);

	c->request = request;
	c->precision = request->precision ? request->precision : "fp32";
	c->workload = workload;
	c->max_ranges = workload->max_ranges ? workload->max_ranges : 16;
	enum rfl_rc rc = c->rc == RFL_OK ? count(c, to, err)
					 : rfl_fail(err, c->rc, c->err.native, "%s", c->err.msg);
	if (c != request->early)
		close_early(c);
	return rc;
}

const struct rfl_source_ops rfl_source_cupti = {
	.name = "cupti",
	.summary = "FLOPs, bytes and kernel times of NVIDIA GPUs (Turing and later)",
	.device = "cuda",
	.open = open_early,
	.close = close_early,
	.probe = probe,
	.measure = measure,
};
