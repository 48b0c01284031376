/*
 * window.c - the loop that is timed. Whatever can be done before or after it is done there.
 */
#include "runner/burst/parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

/* Steps after the window between two checks of how well their mean is known. */
#define UNTIL_STEPS 16

#define REPORT_NS 200000000 /* between two reports of progress */

const char *const rfl_run_mode_names[] = { "train", "fwd", "fwd_bwd", NULL };

enum rfl_rc rfl_burst_init(struct rfl_burst *b, int64_t iters, struct rfl_err *err)
{
	const double unknown = (double)NAN;

	*b = (struct rfl_burst){ .nsteps = iters,
				 .wall_s = unknown,
				 .ttfb_s = unknown,
				 .loss_first = unknown,
				 .loss_last = unknown,
				 .launch_gap = unknown,
				 .until_step_s = unknown,
				 .until_stdrel = unknown };
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

static double seconds_since(int64_t start_ns)
{
	return (double)(rfl_clock_ns() - start_ns) * 1e-9;
}

/* ---- how well the mean of the step times is known ----
 *
 * Steps are not independent: clocks rise and fall, other programs come and go, and neighbours share
 * that. The usual standard error, which takes each step for news, is then too small, and a burst
 * would stop too soon. Means of batches of neighbours are nearly independent once a batch is longer
 * than what disturbs it; what is left between neighbouring batches is taken for a process of first
 * order. The batches grow with the burst (non-overlapping batch means: A. M. Law, Simulation
 * Modeling and Analysis, ch. 9).
 */

/* Full: two neighbours become one. */
static void halve(struct rfl_burst__mean *m)
{
	for (size_t i = 0; i < RFL_BURST__BATCHES / 2; i++)
		m->batches[i] = (m->batches[2 * i] + m->batches[2 * i + 1]) / 2;
	m->nbatches = RFL_BURST__BATCHES / 2;
	m->per_batch *= 2;
}

void rfl_burst__mean_add(struct rfl_burst__mean *m, double time_s)
{
	if (m->n == 0)
		m->per_batch = 1;
	if (m->nbatches == RFL_BURST__BATCHES)
		halve(m);
	m->n++;
	m->sum += time_s;
	m->open_sum += time_s;
	if (++m->open_n < m->per_batch)
		return;
	m->batches[m->nbatches++] = m->open_sum / (double)m->per_batch;
	m->open_sum = 0;
	m->open_n = 0;
}

/* How much less n values with similar neighbours are worth. Neighbours that differ more than
 * chance has it are not believed: they gain nothing. */
static double variance_factor(double alone, double together)
{
	const double lag1 = alone > 0 ? together / alone : 0;

	return lag1 > 0 ? (1 + lag1) / (1 - lag1) : 1;
}

double rfl_burst__mean_error(const struct rfl_burst__mean *m)
{
	const double n = (double)m->nbatches, mean = m->sum / (double)m->n;
	double middle = 0, alone = 0, together = 0;

	if (m->n < RFL_BURST__FEWEST)
		return (double)NAN;
	for (size_t i = 0; i < m->nbatches; i++)
		middle += m->batches[i] / n;
	for (size_t i = 0; i < m->nbatches; i++) {
		const double d = m->batches[i] - middle;

		alone += d * d;
		if (i + 1 < m->nbatches)
			together += d * (m->batches[i + 1] - middle);
	}
	return sqrt(alone / (n - 1) / n * variance_factor(alone, together)) / mean;
}

/* ---- before the window ---- */

static enum rfl_rc first_step(struct rfl_burst__loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const int64_t start = rfl_clock_ns();
	struct rfl_burst_step step;
	enum rfl_rc rc = rfl_burst__step(l, RFL_BURST__NO_MARKS, &step, err);

	b->ttfb_s = step.total_s;
	b->loss_first = step.loss;
	if (rc || !l->config->asynchronous)
		return rc;
	rc = l->ops->sync(l->engine, err);
	b->ttfb_s = seconds_since(start);
	return rc ? rc : l->ops->loss(l->engine, &b->loss_first, err);
}

static enum rfl_rc warm_up(struct rfl_burst__loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < c->warmup && rc == RFL_OK; i++) {
		struct rfl_burst_step step;

		if (c->cuda_graph && i == RFL_BURST_GRAPH_WARMUP)
			rc = rfl_burst__record(l, err);
		if (rc == RFL_OK)
			rc = i == 0 ? first_step(l, b, err)
				    : rfl_burst__step(l, RFL_BURST__NO_MARKS, &step, err);
		if (rc == RFL_OK && c->progress)
			c->progress("warmup", i + 1, c->warmup, c->ctx);
	}
	if (rc == RFL_OK && c->cuda_graph && !l->replays)
		rc = rfl_burst__record(l, err);
	return rc ? rc : l->ops->sync(l->engine, err);
}

/* Marks for every step of the window. A device that has none is waited for instead. */
static enum rfl_rc reserve_marks(struct rfl_burst__loop *l, int64_t steps, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_EUNSUPPORTED;

	if (!l->config->asynchronous)
		return RFL_OK;
	if (l->ops->reserve_events && l->ops->record_event && l->ops->elapsed)
		rc = l->ops->reserve_events(l->engine, steps * rfl_burst__marks_per_step(l), &why);
	if (rc != RFL_OK && rc != RFL_EUNSUPPORTED)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	l->marks = rc == RFL_OK;
	l->waits = l->waits || !l->marks;
	return RFL_OK;
}

/* ---- steps that are measured ---- */

static void report_phase(struct rfl_burst__loop *l, const char *phase, int64_t done, int64_t total)
{
	l->reported.phase = phase;
	l->reported.done = done;
	l->reported.total = total;
	l->reported.at_ns = rfl_clock_ns();
	if (l->config->progress)
		l->config->progress(phase, done, total, l->config->ctx);
}

static void report_step(struct rfl_burst__loop *l)
{
	l->reported.done++;
	if (rfl_clock_ns() - l->reported.at_ns >= REPORT_NS)
		report_phase(l, l->reported.phase, l->reported.done, l->reported.total);
}

/* The window, and pieces of the same form after it. */
static enum rfl_rc run_steps(struct rfl_burst__loop *l, struct rfl_burst_step *steps, int64_t n,
			     double *wall_s, struct rfl_err *err)
{
	const int64_t per_step = rfl_burst__marks_per_step(l), start = rfl_clock_ns();
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < n && rc == RFL_OK; i++) {
		rc = rfl_burst__step(l, l->marks ? i * per_step : RFL_BURST__NO_MARKS, &steps[i],
				     err);
		report_step(l);
	}
	if (rc == RFL_OK)
		rc = l->ops->sync(l->engine, err);
	*wall_s = seconds_since(start);
	for (int64_t i = 0; i < n && rc == RFL_OK && l->marks; i++)
		rc = rfl_burst__read_marks(l, i * per_step, &steps[i], err);
	return rc;
}

static double launch_gap(const struct rfl_burst *b)
{
	double busy_s = 0;

	for (int64_t i = 0; i < b->nsteps; i++)
		busy_s += b->steps[i].total_s;
	return 1 - busy_s / b->wall_s;
}

/* With the calls that tools and other processes need; they are few. */
static enum rfl_rc window(struct rfl_burst__loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	enum rfl_rc rc = rfl_burst__name_ranges(l, err), unnamed;

	if (rc == RFL_OK && c->meet)
		rc = c->meet(c->ctx, err);
	if (rc)
		return rc;
	if (c->window)
		c->window(true, c->ctx);
	rfl_profiler_start();
	rc = run_steps(l, b->steps, b->nsteps, &b->wall_s, err);
	rfl_profiler_stop();
	if (c->window)
		c->window(false, c->ctx);
	unnamed = rfl_burst__unname_ranges(l, err);
	if (rc == RFL_OK && l->marks && !l->waits)
		b->launch_gap = launch_gap(b);
	return rc ? rc : unnamed;
}

/* ---- after the window ---- */

static enum rfl_rc keep_running(struct rfl_burst__loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	const int64_t start = rfl_clock_ns();
	struct rfl_burst_step more[UNTIL_STEPS];
	struct rfl_burst__mean m = { .n = 0 };
	enum rfl_rc rc = RFL_OK;
	double wall_s;

	for (int64_t i = 0; i < b->nsteps; i++)
		rfl_burst__mean_add(&m, b->steps[i].total_s);
	report_phase(l, "until", m.n, 0);
	while (rc == RFL_OK && !(rfl_burst__mean_error(&m) <= c->until_stdrel) &&
	       seconds_since(start) < c->until_max_s) {
		rc = run_steps(l, more, UNTIL_STEPS, &wall_s, err);
		for (int64_t i = 0; i < UNTIL_STEPS && rc == RFL_OK; i++)
			rfl_burst__mean_add(&m, more[i].total_s);
	}
	b->until_steps = m.n;
	b->until_step_s = m.sum / (double)m.n;
	b->until_stdrel = rfl_burst__mean_error(&m);
	b->until_missed = !(b->until_stdrel <= c->until_stdrel);
	return rc;
}

static enum rfl_rc read_last_loss(struct rfl_burst__loop *l, struct rfl_burst *b,
				  struct rfl_err *err)
{
	struct rfl_burst_step *last = &b->steps[b->nsteps - 1];
	enum rfl_rc rc = RFL_OK;

	if (!l->read_losses)
		rc = l->ops->loss(l->engine, &last->loss, err);
	b->loss_last = last->loss;
	return rc;
}

/* ---- all of it ---- */

static enum rfl_rc run_all(struct rfl_burst__loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	const int64_t most = b->nsteps > UNTIL_STEPS ? b->nsteps : UNTIL_STEPS;
	enum rfl_rc rc = l->ops->set_mode(
		l->engine, c->mode == RFL_RUN_FWD ? RFL_ENGINE_EVAL : RFL_ENGINE_TRAIN, err);

	if (rc == RFL_OK)
		rc = warm_up(l, b, err);
	if (rc == RFL_OK)
		rc = reserve_marks(l, most, err);
	if (rc == RFL_OK)
		report_phase(l, "window", 0, b->nsteps);
	if (rc == RFL_OK)
		rc = window(l, b, err);
	if (rc == RFL_OK)
		rc = read_last_loss(l, b, err);
	if (rc == RFL_OK && c->warmup == 0) {
		b->ttfb_s = b->steps[0].total_s;
		b->loss_first = b->steps[0].loss;
	}
	b->synced = c->asynchronous && l->waits;
	if (rc == RFL_OK && c->measured)
		rc = c->measured(c->ctx, err);
	if (rc == RFL_OK && c->until_stdrel > 0)
		rc = keep_running(l, b, err);
	return rc;
}

enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err)
{
	struct rfl_burst__loop l = {
		.ops = ops,
		.engine = engine,
		.data = data,
		.config = config,
		.accum = config->accum > 1 ? config->accum : 1,
		.read_losses = !config->asynchronous,
		.uploads = config->asynchronous && ops->upload && ops->uploaded,
		.waits = config->asynchronous && config->sync_each_step,
	};
	enum rfl_rc rc = run_all(&l, burst, err), ended = rfl_burst__end_uploads(&l, NULL);

	return rc ? rc : ended;
}
