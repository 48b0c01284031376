/*
 * source.c - counters of NVIDIA GPUs, live: the sessions of a run, one after the other. Between two
 * runs of the workload it is put back where it was, so that every pass of every session counts the
 * same step. What fails is kept with its reason, and the rest continues. What patches kernels comes
 * last, and all before it is handed over first: should the patched kernels hang, nothing else is
 * lost.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/cupti/impl.h"

#define IDLE_MOST_S  1.0
#define IDLE_LEAST_S 1e-3

/* A session that patches kernels may take so long: the driver compiles each of them anew, and they
 * run many times slower. */
#define PATCHED_LEAST_S  120
#define PATCHED_PER_STEP 100

/* ------------------------------------------------------------------ opening */

static enum rfl_rc count_open(struct rfl_cupti_count *c, const struct rfl_source_request *request,
			      struct rfl_err *err)
{
	struct rfl_cupti_places places = request->places;
	enum rfl_rc rc;

	*c = (struct rfl_cupti_count){ .request = request };
	rc = rfl_cuda_open(request->device, NULL, &c->cuda, err);
	if (rc != RFL_OK)
		return rc;
	places.driver_major = c->cuda->version / 1000;
	rc = rfl_cupti_open(&places, &c->lib, err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_cupti_target_init(&c->target, c->lib, c->cuda, rfl_cuda_counter_access(NULL),
				   &c->refused);
	return rc == RFL_ENOMEM ? rfl_fail(err, rc, 0, "%s", c->refused.msg) : RFL_OK;
}

static void count_close(struct rfl_cupti_count *c)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(c->outcomes); i++)
		rfl_counted_fini(&c->outcomes[i].counted);
	rfl_counted_fini(&c->idle);
	rfl_counted_fini(&c->walked);
	rfl_kernel_launches_fini(&c->kernels);
	rfl_cupti_plan_free(c->plan);
	rfl_cupti_target_fini(&c->target);
	rfl_cupti_close(c->lib);
	rfl_cuda_close(c->cuda);
	*c = (struct rfl_cupti_count){ .request = NULL };
}

const char *rfl_cupti_precision(const struct rfl_source_request *request)
{
	return request->precision ? request->precision : "fp32";
}

bool rfl_cupti_count_any(const struct rfl_cupti_count *c)
{
	return rfl_cupti_count_ranges(c) != &c->walked;
}

const struct rfl_counted *rfl_cupti_count_ranges(const struct rfl_cupti_count *c)
{
	for (size_t i = 0; c->plan && i < c->plan->n; i++)
		if (c->plan->sessions[i].metrics.n > 0 && c->outcomes[i].why.rc == RFL_OK)
			return &c->outcomes[i].counted;
	return &c->walked;
}

/* ------------------------------------------------------------------ running the workload */

/* Remember the state before the first run when there will be more; one that cannot be remembered
 * is noted, and then the passes are taken on steps that follow each other. */
static enum rfl_rc save(struct rfl_cupti_count *c, struct rfl_err *err)
{
	const struct rfl_workload *w = c->workload;
	enum rfl_rc rc;

	if (!w->save || c->planned_runs < 2)
		return RFL_OK;
	rc = w->save(w->ctx, &c->not_saved);
	c->saved = rc == RFL_OK;
	if (rc == RFL_OK || rc == RFL_EUNSUPPORTED)
		return RFL_OK;
	return rfl_fail(err, rc, c->not_saved.native, "%s", c->not_saved.msg);
}

/* What this starts on the GPU (copies of parameters) is not part of a step, and not counted. */
static enum rfl_rc make_ready(void *ctx, struct rfl_err *err)
{
	struct rfl_cupti_count *c = ctx;
	const struct rfl_workload *w = c->workload;

	if (c->runs > 0)
		return c->saved && w->restore ? w->restore(w->ctx, err) : RFL_OK;
	return c->saved || c->not_saved.rc != RFL_OK ? RFL_OK : save(c, err);
}

static enum rfl_rc run_workload(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct rfl_cupti_count *c = ctx;

	c->runs++;
	return c->workload->run(c->workload->ctx, ranges, err);
}

static struct rfl_replay replay_of(struct rfl_cupti_count *c)
{
	return (struct rfl_replay){
		.ready = make_ready,
		.run = run_workload,
		.ctx = c,
		.max_ranges = c->workload->max_ranges ? c->workload->max_ranges : 16,
	};
}

/* ------------------------------------------------------------------ idle */

/* As long as the step took, and nothing runs: what is counted now is not the workload's. */
static enum rfl_rc run_idle(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	const double *time_s = ctx;
	struct timespec wait = { .tv_sec = (time_t)*time_s };
	enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_IDLE, "idle", err);

	wait.tv_nsec = (long)(1e9 * (*time_s - (double)wait.tv_sec));
	if (rc == RFL_OK)
		(void)nanosleep(&wait, NULL);
	return rc == RFL_OK ? ranges->end(ranges, err) : rc;
}

/* It is of use, but nothing depends on it: a failure leaves it out. */
static void count_idle(struct rfl_cupti_count *c, struct rfl_cupti_session *session,
		       const struct rfl_counted *step)
{
	double time_s = rfl_counted_wall_s(step);
	struct rfl_replay work = { .run = run_idle, .ctx = &time_s, .max_ranges = 1 };

	time_s = time_s > IDLE_MOST_S ? IDLE_MOST_S : time_s < IDLE_LEAST_S ? IDLE_LEAST_S : time_s;
	if (rfl_cupti_session_count(session, &work, &c->idle, NULL) != RFL_OK)
		rfl_counted_fini(&c->idle);
}

/* ------------------------------------------------------------------ sessions */

/* Runs that all of it takes: more than one means that the state has to be kept. */
static size_t count_runs(const struct rfl_cupti_count *c, size_t max_ranges)
{
	size_t batches = (max_ranges + RFL_CUPTI_RANGES_AT_ONCE - 1) / RFL_CUPTI_RANGES_AT_ONCE;
	size_t runs = (c->request->sets & RFL_SET_KERNELS) != 0;

	for (size_t i = 0; c->plan && i < c->plan->n; i++)
		if (c->plan->sessions[i].why.rc == RFL_OK && c->plan->sessions[i].metrics.n > 0)
			runs += batches * c->plan->sessions[i].passes;
	return runs;
}

/* Numbers of two sessions belong together only when their ranges are the same. */
static void compare_ranges(struct rfl_cupti_count *c, struct rfl_cupti_outcome *out)
{
	const struct rfl_counted *first = rfl_cupti_count_ranges(c), *own = &out->counted;
	bool same = first->n == own->n;

	for (size_t i = 0; same && i < own->n; i++)
		same = own->ranges[i].kind == first->ranges[i].kind &&
		       strcmp(own->ranges[i].name, first->ranges[i].name) == 0;
	if (!same)
		(void)rfl_fail(&out->why, RFL_EFAILED, 0,
			       "the ranges of this run are not those of the first");
}

/* One session. A failure of the counters stays in `out->why`, one of the workload is returned. */
static enum rfl_rc count_session(struct rfl_cupti_count *c, const struct rfl_cupti_planned *s,
				 struct rfl_cupti_outcome *out, struct rfl_err *err)
{
	struct rfl_replay work = replay_of(c);
	struct rfl_cupti_session *session = NULL;

	out->why = s->why;
	if (s->why.rc != RFL_OK || s->metrics.n == 0)
		return RFL_OK;
	if (rfl_cupti_target_start(&c->target, &out->why) == RFL_OK &&
	    rfl_cupti_session_open(&c->target, s, work.max_ranges, &session, &out->why) == RFL_OK &&
	    rfl_cupti_session_count(session, &work, &out->counted, &out->why) == RFL_OK &&
	    s->set == RFL_SET_CORE)
		count_idle(c, session, &out->counted);
	rfl_cupti_session_close(session);
	if (work.rc != RFL_OK)
		return rfl_fail(err, work.rc, out->why.native, "%s", out->why.msg);
	if (out->why.rc == RFL_OK)
		compare_ranges(c, out);
	return RFL_OK;
}

static enum rfl_rc time_kernels(struct rfl_cupti_count *c, struct rfl_err *err)
{
	struct rfl_replay work = replay_of(c);

	rfl_err_clear(&c->no_kernels);
	rfl_cupti_target_stop(&c->target);
	if (rfl_cupti_kernels(c->lib, &work, &c->walked, &c->kernels, &c->no_kernels) != RFL_OK &&
	    work.rc != RFL_OK)
		return rfl_fail(err, work.rc, c->no_kernels.native, "%s", c->no_kernels.msg);
	return RFL_OK;
}

/* What fails here is noted in the capture. */
static void self_test(struct rfl_cupti_count *c, unsigned set)
{
	const struct rfl_source_request *r = c->request;

	if (c->plan && (r->sets & RFL_SET_SELF_TEST) && c->no_selftest.rc == RFL_OK &&
	    rfl_cupti_target_start(&c->target, &c->no_selftest) == RFL_OK)
		(void)!rfl_selftest_run(c->cuda, &c->target, rfl_cupti_precision(r), set,
					&c->selftest, &c->no_selftest);
}

/* ------------------------------------------------------------------ all of it */

static void hand_over(const struct rfl_cupti_count *c, bool patched_next)
{
	const struct rfl_counted *ranges = rfl_cupti_count_ranges(c);
	const double patched_s = PATCHED_LEAST_S + PATCHED_PER_STEP * rfl_counted_wall_s(ranges);
	struct rfl_captures captures;

	if (!c->request->so_far || ranges->n == 0)
		return;
	rfl_captures_init(&captures);
	if (rfl_cupti_capture(c, &captures, NULL) == RFL_OK)
		c->request->so_far(&captures, patched_next ? patched_s : 0, c->request->ctx);
	rfl_captures_fini(&captures);
}

static enum rfl_rc count_sessions(struct rfl_cupti_count *c, struct rfl_err *err)
{
	const bool wanted = (c->request->sets & RFL_SET_KERNELS) != 0;
	bool timed = false;
	size_t passes = 0;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; c->plan && i < c->plan->n && rc == RFL_OK; i++) {
		const struct rfl_cupti_planned *s = &c->plan->sessions[i];
		const bool patches = s->set == RFL_SET_FLOPS;
		struct rfl_cupti_outcome *out = &c->outcomes[i];

		if (patches && wanted) {
			hand_over(c, false);
			timed = true;
			rc = time_kernels(c, err);
			if (rc != RFL_OK)
				break;
		}
		hand_over(c, patches);
		if (patches)
			self_test(c, s->set);
		out->first_pass = passes;
		passes += s->passes;
		rc = count_session(c, s, out, err);
	}
	if (rc == RFL_OK && !timed && (wanted || !rfl_cupti_count_any(c)))
		rc = time_kernels(c, err);
	return rc;
}

static enum rfl_rc count_run(struct rfl_cupti_count *c, const struct rfl_workload *workload,
			     struct rfl_err *err)
{
	struct rfl_err pending = RFL_ERR_INIT, end = RFL_ERR_INIT;

	c->workload = workload;
	if (c->target.gate == RFL_CUPTI_GATE_OPEN)
		(void)!rfl_cupti_plan_new(c->lib, c->target.chip, c->target.availability,
					  c->request->sets, rfl_cupti_precision(c->request),
					  &c->plan, &c->refused);
	(void)rfl_fail(&pending, RFL_EFAILED, 0, "the run ended before this was counted");
	for (size_t i = 0; c->plan && i < c->plan->n; i++)
		c->outcomes[i].why = pending;
	if (c->request->sets & RFL_SET_KERNELS)
		c->no_kernels = pending;
	self_test(c, RFL_SET_CORE);
	c->planned_runs = count_runs(c, replay_of(c).max_ranges);
	if (count_sessions(c, &end) == RFL_OK || rfl_cupti_count_any(c) || c->kernels.arena)
		return RFL_OK;
	return rfl_fail(err, end.rc, end.native, "%s", end.msg);
}

/* ------------------------------------------------------------------ the source */

/* CUPTI on the device. Kernels that are loaded before it may escape the counters of instructions,
 * which patch them. */
struct rfl_source_early {
	struct rfl_cupti_count count;
	enum rfl_rc rc;
	struct rfl_err err; /* why it is not open */
};

static struct rfl_source_early *open_early(const struct rfl_source_request *request)
{
	struct rfl_source_early *e = calloc(1, sizeof(*e));

	if (e)
		e->rc = count_open(&e->count, request, &e->err);
	return e;
}

static void close_early(struct rfl_source_early *e)
{
	if (e)
		count_close(&e->count);
	free(e);
}

static enum rfl_rc probe(const struct rfl_source_request *request, struct rfl_err *err)
{
	static const struct rfl_source_request usual = { .sets = RFL_SET_CORE };
	struct rfl_cupti_count c;
	enum rfl_rc rc = count_open(&c, request ? request : &usual, err);

	if (rc == RFL_OK && c.target.gate != RFL_CUPTI_GATE_OPEN)
		rc = rfl_fail(err, c.refused.rc, c.refused.native, "%s", c.refused.msg);
	count_close(&c);
	return rc;
}

/* Neither a counter nor the time of a kernel. */
static enum rfl_rc nothing(const struct rfl_cupti_count *c, struct rfl_err *err)
{
	const struct rfl_err *why = &c->refused;

	for (size_t i = 0; c->plan && i < c->plan->n; i++)
		if (why->rc == RFL_OK)
			why = &c->outcomes[i].why;
	if (why->rc == RFL_OK)
		why = &c->no_kernels;
	return rfl_fail(err, RFL_EUNAVAILABLE, why->native, "nothing could be counted: %s",
			why->msg);
}

static enum rfl_rc measure(const struct rfl_source_request *request,
			   const struct rfl_workload *workload, struct rfl_captures *to,
			   struct rfl_err *err)
{
	struct rfl_source_early *e = request->early ? request->early : open_early(request);
	enum rfl_rc rc;

	if (!e)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rc = e->rc;
	e->count.request = request;
	if (rc != RFL_OK)
		(void)rfl_fail(err, rc, e->err.native, "%s", e->err.msg);
	else
		rc = count_run(&e->count, workload, err);
	if (rc == RFL_OK && !rfl_cupti_count_any(&e->count) && e->count.no_kernels.rc != RFL_OK)
		rc = nothing(&e->count, err);
	else if (rc == RFL_OK)
		rc = rfl_cupti_capture(&e->count, to, err);
	if (e != request->early)
		close_early(e);
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
