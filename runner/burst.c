/*
 * burst.c - the loop that is timed. Whatever can be done before or after it is done there.
 */
#include "runner/burst.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

const char *const rfl_run_mode_names[] = { "train", "fwd", "fwd_bwd", NULL };

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
		b->steps[i] = (struct rfl_burst_step){ unknown, unknown, unknown,
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
};

static double seconds(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) * 1e-9;
}

/* Which phases a step has. The phases of a device that works on its own are not timed: their
 * clock would tell how long it takes to ask, not to do. */
static enum rfl_rc step_phases(const struct loop *l, const struct rfl_batch *batch,
			       int64_t ready_ns, struct rfl_burst_step *ret, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	int64_t t0 = ready_ns, t1;
	enum rfl_rc rc = l->ops->forward(l->engine, batch, err);

	t1 = rfl_clock_ns();
	ret->forward_s = seconds(t0, t1);
	if (rc || c->mode == RFL_RUN_FWD)
		return rc;
	rc = l->ops->backward(l->engine, err);
	t0 = t1;
	t1 = rfl_clock_ns();
	ret->backward_s = seconds(t0, t1);
	if (rc || c->mode == RFL_RUN_FWD_BWD)
		return rc;
	rc = l->ops->step(l->engine, err);
	ret->optimizer_s = seconds(t1, rfl_clock_ns());
	return rc;
}

static enum rfl_rc run_step(const struct loop *l, struct rfl_burst_step *ret, struct rfl_err *err)
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

static enum rfl_rc warm_up(const struct loop *l, struct rfl_burst *b, struct rfl_err *err)
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

static enum rfl_rc window(const struct loop *l, struct rfl_burst *b, struct rfl_err *err)
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

enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err)
{
	const struct loop l = { .ops = ops, .engine = engine, .data = data, .config = config };
	struct rfl_burst_step *last = &burst->steps[burst->nsteps - 1];
	enum rfl_rc rc;

	rc = ops->set_mode(engine, config->mode == RFL_RUN_FWD ? RFL_ENGINE_EVAL : RFL_ENGINE_TRAIN,
			   err);
	if (rc == RFL_OK)
		rc = warm_up(&l, burst, err);
	if (rc == RFL_OK && config->progress)
		config->progress(config->warmup, config->warmup, config->ctx);
	if (rc == RFL_OK)
		rc = window(&l, burst, err);
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
