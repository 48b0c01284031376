/*
 * burst.c - the loop that is timed. Whatever can be done before or after it is done there.
 */
#include "runner/burst.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

const char *const rfl_run_mode_names[] = { "train", "fwd", "fwd_bwd", NULL };
const char *const rfl_detail_names[] = { "off", "step", "phase", "layer", NULL };

enum rfl_rc rfl_burst_init(struct rfl_burst *b, int64_t iters, struct rfl_err *err)
{
	const double unknown = (double)NAN;

	*b = (struct rfl_burst){ .nsteps = iters,
				 .wall_s = unknown,
				 .ttfb_s = unknown,
				 .loss_first = unknown,
				 .loss_last = unknown };
	b->steps = rfl_alloc_array((size_t)iters, sizeof(*b->steps));
	if (!b->steps)
		return rfl_fail(err, RFL_ENOMEM, 0, "%lld steps: out of memory", (long long)iters);
	for (int64_t i = 0; i < iters; i++)
		b->steps[i] = (struct rfl_burst_step){ unknown, unknown, unknown, unknown,
						       unknown, unknown, unknown };
	return RFL_OK;
}

void rfl_burst_fini(struct rfl_burst *b)
{
	free(b->steps);
	*b = (struct rfl_burst){ .steps = NULL };
}

struct loop {
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	struct rfl_data *data;
	const struct rfl_burst_config *config;
	enum rfl_detail named; /* ranges that a tool is told of; off in the warm-up */
	bool in_layer;         /* one of them is open */
};

/* ---- names for tools ---- */

static void push(const struct loop *l, enum rfl_detail detail, const char *name)
{
	if (l->named >= detail)
		rfl_nvtx_push(l->config->nvtx, name);
}

static void pop(const struct loop *l, enum rfl_detail detail)
{
	if (l->named >= detail)
		rfl_nvtx_pop(l->config->nvtx);
}

static void end_layer(struct loop *l)
{
	if (l->in_layer)
		rfl_nvtx_pop(l->config->nvtx);
	l->in_layer = false;
}

static enum rfl_rc on_layer(const char *name, void *ctx, struct rfl_err *err)
{
	struct loop *l = ctx;

	(void)err;
	end_layer(l);
	rfl_nvtx_push(l->config->nvtx, name);
	l->in_layer = true;
	return RFL_OK;
}

static void end_phase(struct loop *l)
{
	end_layer(l);
	pop(l, RFL_DETAIL_PHASE);
}

/* Only where somebody listens: then the window holds the calls too. */
static enum rfl_rc name_ranges(struct loop *l, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;

	if (!c->nvtx || c->nvtx_detail == RFL_DETAIL_OFF || !rfl_nvtx_is_heard(c->nvtx))
		return RFL_OK;
	l->named = c->nvtx_detail;
	return l->named == RFL_DETAIL_LAYER ? l->ops->mark(l->engine, on_layer, l, err) : RFL_OK;
}

static enum rfl_rc unname_ranges(struct loop *l, struct rfl_err *err)
{
	const bool marked = l->named == RFL_DETAIL_LAYER;

	l->named = RFL_DETAIL_OFF;
	return marked ? l->ops->mark(l->engine, NULL, NULL, err) : RFL_OK;
}

/* ---- the loop ---- */

static double seconds(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) * 1e-9;
}

/* Which phases a step has. The phases of a device that works on its own are not timed: their
 * clock would tell how long it takes to ask, not to do. */
static enum rfl_rc step_phases(struct loop *l, const struct rfl_batch *batch, int64_t ready_ns,
			       struct rfl_burst_step *ret, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	int64_t t0 = ready_ns, t1;
	enum rfl_rc rc;

	push(l, RFL_DETAIL_PHASE, "fwd");
	rc = c->mode == RFL_RUN_FWD ? RFL_OK : l->ops->zero_grad(l->engine, err);
	if (rc == RFL_OK)
		rc = l->ops->forward(l->engine, batch, err);
	end_phase(l);
	t1 = rfl_clock_ns();
	ret->forward_s = seconds(t0, t1);
	if (rc || c->mode == RFL_RUN_FWD)
		return rc;
	push(l, RFL_DETAIL_PHASE, "bwd");
	rc = l->ops->backward(l->engine, NULL, err);
	end_phase(l);
	t0 = t1;
	t1 = rfl_clock_ns();
	ret->backward_s = seconds(t0, t1);
	if (rc || c->mode == RFL_RUN_FWD_BWD)
		return rc;
	push(l, RFL_DETAIL_PHASE, "opt");
	rc = l->ops->step(l->engine, err);
	end_phase(l);
	ret->optimizer_s = seconds(t1, rfl_clock_ns());
	return rc;
}

static enum rfl_rc work(struct loop *l, struct rfl_burst_step *ret, struct rfl_err *err)
{
	int64_t start = rfl_clock_ns(), ready;
	struct rfl_batch batch;
	enum rfl_rc rc = rfl_data_next(l->data, &batch, err);

	if (rc)
		return rc;
	ready = rfl_clock_ns();
	ret->data_wait_s = seconds(start, ready);
	rc = step_phases(l, &batch, ready, ret, err);
	if (rc == RFL_OK && l->config->asynchronous) {
		rc = l->ops->sync(l->engine, err);
		ret->forward_s = ret->backward_s = ret->optimizer_s = (double)NAN;
	}
	ret->total_s = seconds(start, rfl_clock_ns());
	return rc;
}

static enum rfl_rc run_step(struct loop *l, struct rfl_burst_step *ret, struct rfl_err *err)
{
	enum rfl_rc rc;

	push(l, RFL_DETAIL_STEP, "step");
	rc = work(l, ret, err);
	pop(l, RFL_DETAIL_STEP);
	return rc;
}

static enum rfl_rc warm_up(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;

	for (int64_t i = 0; i < c->warmup; i++) {
		struct rfl_burst_step step;
		enum rfl_rc rc = run_step(l, &step, err);

		if (rc == RFL_OK && i == 0) {
			b->ttfb_s = step.total_s;
			rc = l->ops->loss(l->engine, &b->loss_first, err);
		}
		if (rc)
			return rc;
		if (c->progress)
			c->progress(i + 1, c->warmup, c->ctx);
	}
	return l->ops->sync(l->engine, err);
}

static enum rfl_rc window(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	bool read_losses = !l->config->asynchronous;
	int64_t start = rfl_clock_ns();
	enum rfl_rc rc;

	for (int64_t i = 0; i < b->nsteps; i++) {
		rc = run_step(l, &b->steps[i], err);
		if (rc == RFL_OK && read_losses) /* between steps: belongs to none of them */
			rc = l->ops->loss(l->engine, &b->steps[i].loss, err);
		if (rc)
			return rc;
	}
	rc = l->ops->sync(l->engine, err);
	b->wall_s = seconds(start, rfl_clock_ns());
	return rc;
}

/* With everything that profilers want to know; without one it costs a few calls in all. */
static enum rfl_rc watched_window(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	enum rfl_rc rc = name_ranges(l, err), unnamed;

	if (rc)
		return rc;
	rfl_profiler_start();
	rc = window(l, b, err);
	rfl_profiler_stop();
	unnamed = unname_ranges(l, err);
	return rc ? rc : unnamed;
}

enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err)
{
	struct loop l = { .ops = ops, .engine = engine, .data = data, .config = config };
	struct rfl_burst_step *last = &burst->steps[burst->nsteps - 1];
	enum rfl_rc rc;

	rc = ops->set_mode(engine, config->mode == RFL_RUN_FWD ? RFL_ENGINE_EVAL : RFL_ENGINE_TRAIN,
			   err);
	if (rc == RFL_OK)
		rc = warm_up(&l, burst, err);
	if (rc == RFL_OK && config->progress)
		config->progress(config->warmup, config->warmup, config->ctx);
	if (rc == RFL_OK)
		rc = watched_window(&l, burst, err);
	if (rc == RFL_OK)
		rc = ops->loss(engine, &last->loss, err);
	if (rc)
		return rc;
	burst->loss_last = last->loss;
	if (config->warmup == 0) {
		burst->ttfb_s = burst->steps[0].total_s;
		burst->loss_first = burst->steps[0].loss;
	}
	return RFL_OK;
}
