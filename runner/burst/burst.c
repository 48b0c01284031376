/*
 * burst.c - the measured burst: runs and times steps. Work that can be done before or after the
 * window is kept out of it.
 *
 * The marks of a step are events in the device's queue: at the start, after the forward and
 * backward pass of each batch, and after the optimizer. A replayed step has marks only at its start
 * and end.
 */
#include "runner/burst.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

#define NO_MARKS    (-1)
#define UNTIL_STEPS 16        /* steps between two checks of the mean's error */
#define REPORT_NS   200000000 /* between two progress reports */

const char *const rfl_run_mode_names[] = { "train", "fwd", "fwd_bwd", "decode", "prefill", NULL };
const char *const rfl_detail_names[] = { "off", "step", "phase", "layer", NULL };

struct loop {
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	struct rfl_data *data;
	const struct rfl_burst_config *config;
	int64_t accum;
	bool losses;      /* a forward pass has a loss */
	bool backward;    /* a step has a backward pass */
	bool read_losses; /* after every forward pass, unless that would wait for a device */
	bool marks;       /* steps are timed by marks */
	bool uploads;     /* batches are copied to the device ahead of their forward pass */
	bool waits;       /* sync at the end of every step */
	bool replays;     /* replay the recorded step */

	int64_t past; /* tokens in the cache */
	bool started; /* the engine has chosen the next tokens */

	struct rfl_batch batch; /* the next batch, if have_batch */
	bool have_batch;
	bool uploading;    /* the memory of the last batch is still being read */
	uint64_t uploaded; /* id of the batch on the device; 0: none */

	struct {
		const char *phase;
		int64_t done, total, at_ns;
	} reported; /* last report to config->progress() */

	enum rfl_detail named; /* ranges for a profiler; off during the warm-up */
	bool in_layer;         /* the range of a layer is open */
};

bool rfl_run_mode_caches(enum rfl_run_mode mode)
{
	return mode == RFL_RUN_DECODE || mode == RFL_RUN_PREFILL;
}

bool rfl_run_mode_backward(enum rfl_run_mode mode)
{
	return mode == RFL_RUN_TRAIN || mode == RFL_RUN_FWD_BWD;
}

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
	b->steps = rfl_try_array((size_t)iters, sizeof(*b->steps));
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

static double seconds(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) * 1e-9;
}

/* ---- the standard error of the mean step time ----
 *
 * Step times are correlated: clocks and other programs affect consecutive steps alike. The usual
 * standard error, which assumes independence, is then too small, and a burst would stop too soon.
 * Means of batches of consecutive steps are nearly independent once a batch is longer than a
 * disturbance; the remaining correlation is modelled as a first-order autoregressive process.
 * Batches grow with the burst (non-overlapping batch means: A. M. Law, Simulation Modeling and
 * Analysis, ch. 9).
 */

void rfl_burst__mean_add(struct rfl_burst__mean *m, double time_s)
{
	if (m->n == 0)
		m->per_batch = 1;
	if (m->nbatches == RFL_BURST__BATCHES) { /* full: merge neighbours */
		for (size_t i = 0; i < RFL_BURST__BATCHES / 2; i++)
			m->batches[i] = (m->batches[2 * i] + m->batches[2 * i + 1]) / 2;
		m->nbatches = RFL_BURST__BATCHES / 2;
		m->per_batch *= 2;
	}
	m->n++;
	m->sum += time_s;
	m->open_sum += time_s;
	if (++m->open_n < m->per_batch)
		return;
	m->batches[m->nbatches++] = m->open_sum / (double)m->per_batch;
	m->open_sum = 0;
	m->open_n = 0;
}

double rfl_burst__mean_error(const struct rfl_burst__mean *m)
{
	const double n = (double)m->nbatches, mean = m->sum / (double)m->n;
	double middle = 0, alone = 0, together = 0, lag1, factor;

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
	/* correlation increases the variance of the mean; negative correlation is ignored */
	lag1 = alone > 0 ? together / alone : 0;
	factor = lag1 > 0 ? (1 + lag1) / (1 - lag1) : 1;
	return sqrt(alone / (n - 1) / n * factor) / mean;
}

/* ---- named ranges of the window, for a profiler ---- */

static void push(const struct loop *l, enum rfl_detail detail, const char *name)
{
	if (l->named >= detail)
		rfl_nvtx_push(name);
}

static void pop(const struct loop *l, enum rfl_detail detail)
{
	if (l->named >= detail)
		rfl_nvtx_pop();
}

static void end_layer(struct loop *l)
{
	if (l->in_layer)
		rfl_nvtx_pop();
	l->in_layer = false;
}

static enum rfl_rc on_layer(const char *name, void *ctx, struct rfl_err *err)
{
	struct loop *l = ctx;

	(void)err;
	end_layer(l);
	rfl_nvtx_push(name);
	l->in_layer = true;
	return RFL_OK;
}

static void end_phase(struct loop *l)
{
	end_layer(l);
	pop(l, RFL_DETAIL_PHASE);
}

/* Wait until the device no longer reads the memory of the last batch. */
static enum rfl_rc end_uploads(struct loop *l, struct rfl_err *err)
{
	if (!l->uploading)
		return RFL_OK;
	l->uploading = false;
	return l->ops->uploaded(l->engine, err);
}

/* Get the next batch and begin to upload it; add the time to the current step. */
static enum rfl_rc fetch(struct loop *l, struct rfl_burst_step *step, struct rfl_err *err)
{
	const int64_t start = rfl_clock_ns();
	int64_t ready, given;
	enum rfl_rc rc = RFL_OK;

	/* rfl_data_next() reuses the previous batch's memory, which must no longer be read */
	if (l->uploads)
		rc = end_uploads(l, err);
	else if (l->config->asynchronous && l->batch.n > 0 && l->batch.id == 0)
		rc = l->ops->sync(l->engine, err);
	given = rfl_clock_ns();
	if (rc == RFL_OK)
		rc = rfl_data_next(l->data, &l->batch, err);
	ready = rfl_clock_ns();
	if (rc == RFL_OK && l->uploads && (l->batch.id == 0 || l->batch.id != l->uploaded)) {
		rc = l->ops->upload(l->engine, &l->batch, err);
		if (rc == RFL_OK) {
			l->uploading = true;
			l->uploaded = l->batch.id;
		}
	}
	l->have_batch = rc == RFL_OK;
	step->data_wait_s += seconds(given, ready);
	if (l->uploads)
		step->upload_s += seconds(start, given) + seconds(ready, rfl_clock_ns());
	return rc;
}

/* ---- marks ---- */

static int64_t marks_per_step(const struct loop *l)
{
	return l->replays ? 2 : 2 * l->accum + 2;
}

static enum rfl_rc mark(const struct loop *l, int64_t *at, struct rfl_err *err)
{
	if (*at == NO_MARKS)
		return RFL_OK;
	return l->ops->record_event(l->engine, (*at)++, err);
}

static enum rfl_rc add_elapsed(const struct loop *l, int64_t from, int64_t to, double *sum,
			       struct rfl_err *err)
{
	double s = 0;
	enum rfl_rc rc = l->ops->elapsed(l->engine, from, to, &s, err);

	*sum += s;
	return rc;
}

/* Set phases that the mode lacks to NaN, not 0. */
static void settle_phases(const struct loop *l, struct rfl_burst_step *step)
{
	if (!l->backward)
		step->backward_s = (double)NAN;
	if (l->config->mode != RFL_RUN_TRAIN)
		step->optimizer_s = (double)NAN;
}

/* Read the times of a marked step. Call it after a sync. */
static enum rfl_rc read_marks(const struct loop *l, int64_t first, struct rfl_burst_step *step,
			      struct rfl_err *err)
{
	const bool backward = l->backward;
	const bool whole = !l->waits; /* else total_s comes from the clock */
	const int64_t last = first + marks_per_step(l) - 1;
	int64_t at = first;
	double total = 0;
	enum rfl_rc rc = RFL_OK;

	step->forward_s = step->backward_s = step->optimizer_s = 0;
	for (int64_t m = 0; m < l->accum && !l->replays && rc == RFL_OK; m++) {
		rc = add_elapsed(l, at, at + 1, &step->forward_s, err);
		if (rc == RFL_OK && backward)
			rc = add_elapsed(l, at + 1, at + 2, &step->backward_s, err);
		at += 2;
	}
	if (rc == RFL_OK && !l->replays && l->config->mode == RFL_RUN_TRAIN)
		rc = add_elapsed(l, at, last, &step->optimizer_s, err);
	if (rc == RFL_OK && whole)
		rc = add_elapsed(l, first, last, &total, err);
	if (whole)
		step->total_s = total;
	settle_phases(l, step);
	if (l->replays)
		step->forward_s = step->backward_s = step->optimizer_s = (double)NAN;
	return rc;
}

/* ---- the step ---- */

/* A stopwatch for phases; left_out is time that does not count as part of the step. */
struct watch {
	int64_t at, left_out;
};

static double lap(struct watch *w)
{
	const int64_t now = rfl_clock_ns(), before = w->at;

	w->at = now;
	return seconds(before, now);
}

static enum rfl_rc add_loss(const struct loop *l, struct rfl_burst_step *step, struct rfl_err *err)
{
	double loss;
	enum rfl_rc rc = l->ops->loss(l->engine, &loss, err);

	if (rc == RFL_OK)
		step->loss += loss / (double)l->accum;
	return rc;
}

/* Forward, or a step of a language model with its cache: of a decode, each continues with the
 * tokens that the last one chose. */
static enum rfl_rc forward(struct loop *l, struct rfl_err *err)
{
	const bool decodes = l->config->mode == RFL_RUN_DECODE;
	enum rfl_rc rc;

	if (!rfl_run_mode_caches(l->config->mode))
		return l->ops->forward(l->engine, &l->batch, err);
	if (!l->ops->generate)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' has no cache of keys and values; use --engine torch",
				l->ops->name);
	rc = l->ops->generate(l->engine, decodes && l->started ? NULL : &l->batch, l->past, err);
	l->started = true;
	return rc;
}

/* Run one batch: forward, and backward unless the mode excludes it. If losses are read, the last
 * batch's loss is read after the step, the others here. */
static enum rfl_rc one_batch(struct loop *l, int64_t m, int64_t *at, struct watch *w,
			     struct rfl_burst_step *step, struct rfl_err *err)
{
	const bool last = m + 1 == l->accum;
	const struct rfl_backward how = { .weight = 1.0 / (double)l->accum, .last = last };
	enum rfl_rc rc = RFL_OK;
	int64_t before;

	push(l, RFL_DETAIL_PHASE, "fwd");
	if (m == 0 && l->backward)
		rc = l->ops->zero_grad(l->engine, err);
	if (rc == RFL_OK)
		rc = forward(l, err);
	l->have_batch = false;
	end_phase(l);
	step->forward_s += lap(w);
	if (rc == RFL_OK)
		rc = mark(l, at, err);
	if (rc == RFL_OK && l->backward) {
		push(l, RFL_DETAIL_PHASE, "bwd");
		rc = l->ops->backward(l->engine, &how, err);
		end_phase(l);
		step->backward_s += lap(w);
		if (rc == RFL_OK)
			rc = mark(l, at, err);
	} else if (*at != NO_MARKS) {
		(*at)++; /* skip the mark of the backward pass */
	}
	if (rc || last)
		return rc;
	if (l->read_losses) {
		rc = add_loss(l, step, err);
		before = w->at;
		w->at = rfl_clock_ns();
		w->left_out += w->at - before;
	}
	if (rc == RFL_OK)
		rc = fetch(l, step, err);
	w->at = rfl_clock_ns(); /* fetch() has recorded that time */
	return rc;
}

/* Run or replay a step between its first and last mark. */
static enum rfl_rc work(struct loop *l, int64_t at, struct watch *w, struct rfl_burst_step *step,
			struct rfl_err *err)
{
	enum rfl_rc rc = mark(l, &at, err);

	if (l->replays) {
		if (rc == RFL_OK)
			rc = l->ops->replay(l->engine, &l->batch, err);
		l->have_batch = false;
		return rc ? rc : mark(l, &at, err);
	}
	w->at = rfl_clock_ns();
	for (int64_t m = 0; m < l->accum && rc == RFL_OK; m++)
		rc = one_batch(l, m, &at, w, step, err);
	if (rc == RFL_OK && l->config->mode == RFL_RUN_TRAIN) {
		push(l, RFL_DETAIL_PHASE, "opt");
		rc = l->ops->step(l->engine, err);
		end_phase(l);
		step->optimizer_s = lap(w);
	}
	return rc ? rc : mark(l, &at, err);
}

/**
 * @param first_mark  the step's first mark; NO_MARKS: time the step without marks
 * @param ret         times from the clock; read_marks() replaces them
 */
static enum rfl_rc run_step(struct loop *l, int64_t first_mark, struct rfl_burst_step *ret,
			    struct rfl_err *err)
{
	struct rfl_burst_step step = { .loss = 0 };
	struct watch w = { .left_out = 0 };
	enum rfl_rc rc = RFL_OK;
	int64_t start;

	push(l, RFL_DETAIL_STEP, "step");
	start = w.at = rfl_clock_ns();
	if (!l->have_batch)
		rc = fetch(l, &step, err);
	if (rc == RFL_OK)
		rc = work(l, first_mark, &w, &step, err);
	if (rc == RFL_OK && l->uploads) /* prepare and copy the next batch while the device works */
		rc = fetch(l, &step, err);
	if (rc == RFL_OK && l->waits)
		rc = l->ops->sync(l->engine, err);
	step.total_s = seconds(start, rfl_clock_ns() - w.left_out);
	settle_phases(l, &step);
	if (l->config->asynchronous) /* the clock timed the queueing, not the execution */
		step.forward_s = step.backward_s = step.optimizer_s = (double)NAN;
	if (!l->uploads)
		step.upload_s = (double)NAN;
	pop(l, RFL_DETAIL_STEP);
	if (!l->read_losses)
		step.loss = (double)NAN;
	else if (rc == RFL_OK) /* not part of the step's time */
		rc = add_loss(l, &step, err);
	*ret = step;
	return rc;
}

/* Record a step for replay. */
static enum rfl_rc record(struct loop *l, struct rfl_err *err)
{
	struct rfl_burst_step step = { .loss = 0 };
	enum rfl_rc rc = RFL_OK;

	if (!l->ops->capture || !l->ops->replay)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"--cuda-graph: engine '%s' cannot record steps; leave it out",
				l->ops->name);
	if (!l->have_batch)
		rc = fetch(l, &step, err);
	if (rc == RFL_OK)
		rc = l->ops->capture(l->engine, &l->batch, l->backward,
				     l->config->mode == RFL_RUN_TRAIN, err);
	l->replays = rc == RFL_OK;
	return rc;
}

static enum rfl_rc warm_up(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < c->warmup && rc == RFL_OK; i++) {
		const int64_t start = rfl_clock_ns();
		struct rfl_burst_step step;

		if (c->cuda_graph && i == RFL_BURST_GRAPH_WARMUP)
			rc = record(l, err);
		if (rc == RFL_OK)
			rc = run_step(l, NO_MARKS, &step, err);
		if (rc == RFL_OK && i == 0) {
			b->ttfb_s = step.total_s;
			b->loss_first = step.loss;
		}
		if (rc == RFL_OK && i == 0 && c->asynchronous) {
			rc = l->ops->sync(l->engine, err);
			b->ttfb_s = seconds(start, rfl_clock_ns());
			if (rc == RFL_OK && l->losses)
				rc = l->ops->loss(l->engine, &b->loss_first, err);
		}
		if (rc == RFL_OK && c->progress)
			c->progress("warmup", i + 1, c->warmup, c->ctx);
	}
	if (rc == RFL_OK && c->cuda_graph && !l->replays)
		rc = record(l, err);
	return rc ? rc : l->ops->sync(l->engine, err);
}

/* Reserve marks for the given number of steps. Without events, sync after every step instead. */
static enum rfl_rc reserve_marks(struct loop *l, int64_t steps, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_EUNSUPPORTED;

	if (!l->config->asynchronous)
		return RFL_OK;
	if (l->ops->reserve_events && l->ops->record_event && l->ops->elapsed)
		rc = l->ops->reserve_events(l->engine, steps * marks_per_step(l), &why);
	if (rc != RFL_OK && rc != RFL_EUNSUPPORTED)
		return rfl_err_pass(err, &why);
	l->marks = rc == RFL_OK;
	l->waits = l->waits || !l->marks;
	return RFL_OK;
}

/* ---- measured steps ---- */

static void report_phase(struct loop *l, const char *phase, int64_t done, int64_t total)
{
	l->reported.phase = phase;
	l->reported.done = done;
	l->reported.total = total;
	l->reported.at_ns = rfl_clock_ns();
	if (l->config->progress)
		l->config->progress(phase, done, total, l->config->ctx);
}

/* Run and time n steps of the window or after it. */
static enum rfl_rc run_steps(struct loop *l, struct rfl_burst_step *steps, int64_t n,
			     double *wall_s, struct rfl_err *err)
{
	const int64_t per_step = marks_per_step(l), start = rfl_clock_ns();
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < n && rc == RFL_OK; i++) {
		rc = run_step(l, l->marks ? i * per_step : NO_MARKS, &steps[i], err);
		l->past += l->config->mode == RFL_RUN_DECODE;
		l->reported.done++;
		if (rfl_clock_ns() - l->reported.at_ns >= REPORT_NS)
			report_phase(l, l->reported.phase, l->reported.done, l->reported.total);
	}
	if (rc == RFL_OK)
		rc = l->ops->sync(l->engine, err);
	*wall_s = seconds(start, rfl_clock_ns());
	for (int64_t i = 0; i < n && rc == RFL_OK && l->marks; i++)
		rc = read_marks(l, i * per_step, &steps[i], err);
	return rc;
}

/* Run the laps of the window. */
static enum rfl_rc run_laps(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	enum rfl_rc rc = RFL_OK;
	double wall_s;
	int64_t n;

	b->wall_s = c->done > 0 ? b->wall_s : 0;
	for (int64_t at = c->done; at < b->nsteps && rc == RFL_OK; at += n) {
		n = c->lap ? c->lap(at, c->ctx) : b->nsteps;
		rc = run_steps(l, b->steps + at, n, &wall_s, err);
		b->wall_s += wall_s;
		if (rc == RFL_OK && c->lap && !l->read_losses)
			rc = l->ops->loss(l->engine, &b->steps[at + n - 1].loss, err);
		if (rc == RFL_OK && c->lapped)
			rc = c->lapped(at + n, wall_s, c->ctx, err);
	}
	return rc;
}

/* Run the timed steps between the calls for profilers and other processes. */
static enum rfl_rc window(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	struct rfl_burst_step *last = &b->steps[b->nsteps - 1];
	double busy_s = 0;
	bool layers;
	enum rfl_rc rc = RFL_OK, unnamed = RFL_OK;

	report_phase(l, "window", 0, b->nsteps);
	if (rfl_nvtx_is_heard()) /* if no tool listens, avoid useless calls */
		l->named = c->nvtx_detail;
	layers = l->named == RFL_DETAIL_LAYER;
	if (layers)
		rc = l->ops->mark(l->engine, on_layer, l, err);
	if (rc == RFL_OK && c->meet)
		rc = c->meet(c->ctx, err);
	if (rc)
		return rc;
	if (c->window)
		c->window(true, c->ctx);
	rfl_profiler_start();
	rc = run_laps(l, b, err);
	rfl_profiler_stop();
	if (c->window)
		c->window(false, c->ctx);
	l->named = RFL_DETAIL_OFF;
	if (layers)
		unnamed = l->ops->mark(l->engine, NULL, NULL, err);
	rc = rc ? rc : unnamed;
	if (rc)
		return rc;
	if (l->marks && !l->waits) {
		for (int64_t i = 0; i < b->nsteps; i++)
			busy_s += b->steps[i].total_s;
		b->launch_gap = 1 - busy_s / b->wall_s;
	}
	if (l->losses && !l->read_losses && !c->lap)
		rc = l->ops->loss(l->engine, &last->loss, err);
	b->loss_last = last->loss;
	return rc;
}

static enum rfl_rc keep_running(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
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
	       seconds(start, rfl_clock_ns()) < c->until_max_s) {
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

static enum rfl_rc run_all(struct loop *l, struct rfl_burst *b, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;
	const int64_t lap = c->lap ? RFL_BURST_LAP : b->nsteps;
	const int64_t most = lap > UNTIL_STEPS ? lap : UNTIL_STEPS;
	const enum rfl_engine_mode mode = l->backward ? RFL_ENGINE_TRAIN : RFL_ENGINE_EVAL;
	enum rfl_rc rc;

	if ((rc = l->ops->set_mode(l->engine, mode, err)) || (rc = warm_up(l, b, err)) ||
	    (rc = reserve_marks(l, most, err)))
		return rc;
	b->synced = c->asynchronous && l->waits;
	rc = window(l, b, err);
	if (rc)
		return rc;
	if (c->warmup == 0) {
		b->ttfb_s = b->steps[0].total_s;
		b->loss_first = b->steps[0].loss;
	}
	if (c->measured && (rc = c->measured(c->ctx, err)))
		return rc;
	return c->until_stdrel > 0 ? keep_running(l, b, err) : RFL_OK;
}

enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err)
{
	struct loop l = {
		.ops = ops,
		.engine = engine,
		.data = data,
		.config = config,
		.accum = config->accum > 1 ? config->accum : 1,
		.past = config->past,
		.losses = !rfl_run_mode_caches(config->mode),
		.backward = rfl_run_mode_backward(config->mode),
		.read_losses = !config->asynchronous && !rfl_run_mode_caches(config->mode),
		.uploads = config->asynchronous && ops->upload && ops->uploaded,
		.waits = config->asynchronous && config->sync_each_step,
	};
	enum rfl_rc rc = run_all(&l, burst, err), ended = end_uploads(&l, NULL);

	return rc ? rc : ended;
}
