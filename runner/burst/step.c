/*
 * step.c - one step of the burst: where its batches come from, its phases, and what its times
 * are taken from.
 *
 * Marks of a step: its begin, then the end of the forward and of the backward of each of its
 * batches, then the end of the optimizer; a replayed step has its begin and its end.
 */
#include "runner/burst/parts.h"

#include <math.h>

#include "base/clock.h"

static double seconds(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) * 1e-9;
}

/* ---- ranges of the window under names, for a tool that listens ---- */

const char *const rfl_detail_names[] = { "off", "step", "phase", "layer", NULL };

static void push(const struct rfl_burst__loop *l, enum rfl_detail detail, const char *name)
{
	if (l->named >= detail)
		rfl_nvtx_push(l->config->nvtx, name);
}

static void pop(const struct rfl_burst__loop *l, enum rfl_detail detail)
{
	if (l->named >= detail)
		rfl_nvtx_pop(l->config->nvtx);
}

static void end_layer(struct rfl_burst__loop *l)
{
	if (l->in_layer)
		rfl_nvtx_pop(l->config->nvtx);
	l->in_layer = false;
}

static enum rfl_rc on_layer(const char *name, void *ctx, struct rfl_err *err)
{
	struct rfl_burst__loop *l = ctx;

	(void)err;
	end_layer(l);
	rfl_nvtx_push(l->config->nvtx, name);
	l->in_layer = true;
	return RFL_OK;
}

static void end_phase(struct rfl_burst__loop *l)
{
	end_layer(l);
	pop(l, RFL_DETAIL_PHASE);
}

enum rfl_rc rfl_burst__name_ranges(struct rfl_burst__loop *l, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;

	if (!c->nvtx || c->nvtx_detail == RFL_DETAIL_OFF || !rfl_nvtx_is_heard(c->nvtx))
		return RFL_OK;
	l->named = c->nvtx_detail;
	return l->named == RFL_DETAIL_LAYER ? l->ops->mark(l->engine, on_layer, l, err) : RFL_OK;
}

enum rfl_rc rfl_burst__unname_ranges(struct rfl_burst__loop *l, struct rfl_err *err)
{
	const bool marked = l->named == RFL_DETAIL_LAYER;

	l->named = RFL_DETAIL_OFF;
	return marked ? l->ops->mark(l->engine, NULL, NULL, err) : RFL_OK;
}

/* ---- batches ---- */

enum rfl_rc rfl_burst__end_uploads(struct rfl_burst__loop *l, struct rfl_err *err)
{
	if (!l->uploading)
		return RFL_OK;
	l->uploading = false;
	return l->ops->uploaded(l->engine, err);
}

/* The memory of the batch before this one goes back to the data: no one may read it any more. */
static enum rfl_rc give_back(struct rfl_burst__loop *l, struct rfl_err *err)
{
	if (l->uploads)
		return rfl_burst__end_uploads(l, err);
	if (l->config->asynchronous && l->batch.n > 0 && l->batch.id == 0)
		return l->ops->sync(l->engine, err);
	return RFL_OK;
}

static enum rfl_rc upload(struct rfl_burst__loop *l, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!l->uploads || (l->batch.id != 0 && l->batch.id == l->uploaded))
		return RFL_OK;
	rc = l->ops->upload(l->engine, &l->batch, err);
	if (rc == RFL_OK) {
		l->uploading = true;
		l->uploaded = l->batch.id;
	}
	return rc;
}

/* The next batch, on its way to the device. What it cost is added to the step that asked. */
static enum rfl_rc fetch(struct rfl_burst__loop *l, struct rfl_burst_step *step,
			 struct rfl_err *err)
{
	const int64_t start = rfl_clock_ns();
	int64_t ready, given;
	enum rfl_rc rc = give_back(l, err);

	given = rfl_clock_ns();
	if (rc == RFL_OK)
		rc = rfl_data_next(l->data, &l->batch, err);
	ready = rfl_clock_ns();
	if (rc == RFL_OK)
		rc = upload(l, err);
	l->have_batch = rc == RFL_OK;
	step->data_wait_s += seconds(given, ready);
	if (l->uploads)
		step->upload_s += seconds(start, given) + seconds(ready, rfl_clock_ns());
	return rc;
}

/* ---- marks ---- */

int64_t rfl_burst__marks_per_step(const struct rfl_burst__loop *l)
{
	return l->replays ? 2 : 2 * l->accum + 2;
}

static enum rfl_rc mark(const struct rfl_burst__loop *l, int64_t *at, struct rfl_err *err)
{
	if (*at == RFL_BURST__NO_MARKS)
		return RFL_OK;
	return l->ops->record_event(l->engine, (*at)++, err);
}

static enum rfl_rc add_elapsed(const struct rfl_burst__loop *l, int64_t from, int64_t to,
			       double *sum, struct rfl_err *err)
{
	double s = 0;
	enum rfl_rc rc = l->ops->elapsed(l->engine, from, to, &s, err);

	*sum += s;
	return rc;
}

/* What the mode has no phase for is not known, not nothing. */
static void settle_phases(const struct rfl_burst__loop *l, struct rfl_burst_step *step)
{
	const enum rfl_run_mode mode = l->config->mode;

	if (mode == RFL_RUN_FWD)
		step->backward_s = (double)NAN;
	if (mode != RFL_RUN_TRAIN)
		step->optimizer_s = (double)NAN;
}

enum rfl_rc rfl_burst__read_marks(const struct rfl_burst__loop *l, int64_t first,
				  struct rfl_burst_step *step, struct rfl_err *err)
{
	const bool backward = l->config->mode != RFL_RUN_FWD;
	const bool whole = !l->waits; /* else it is known from the clock */
	const int64_t last = first + rfl_burst__marks_per_step(l) - 1;
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

/* ---- phases ---- */

static enum rfl_rc forward(struct rfl_burst__loop *l, bool first, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	push(l, RFL_DETAIL_PHASE, "fwd");
	if (first && l->config->mode != RFL_RUN_FWD)
		rc = l->ops->zero_grad(l->engine, err);
	if (rc == RFL_OK)
		rc = l->ops->forward(l->engine, &l->batch, err);
	l->have_batch = false;
	end_phase(l);
	return rc;
}

static enum rfl_rc backward(struct rfl_burst__loop *l, bool last, struct rfl_err *err)
{
	const struct rfl_backward how = { .weight = 1.0 / (double)l->accum, .last = last };
	enum rfl_rc rc;

	push(l, RFL_DETAIL_PHASE, "bwd");
	rc = l->ops->backward(l->engine, &how, err);
	end_phase(l);
	return rc;
}

static enum rfl_rc optimizer(struct rfl_burst__loop *l, struct rfl_err *err)
{
	enum rfl_rc rc;

	push(l, RFL_DETAIL_PHASE, "opt");
	rc = l->ops->step(l->engine, err);
	end_phase(l);
	return rc;
}

/* The clock between two phases; what is left out belongs to none of them. */
struct watch {
	int64_t at, left_out;
};

static double lap(struct watch *w)
{
	const int64_t now = rfl_clock_ns(), before = w->at;

	w->at = now;
	return seconds(before, now);
}

static void leave_out(struct watch *w)
{
	const int64_t now = rfl_clock_ns();

	w->left_out += now - w->at;
	w->at = now;
}

static enum rfl_rc add_loss(const struct rfl_burst__loop *l, struct rfl_burst_step *step,
			    struct rfl_err *err)
{
	double loss;
	enum rfl_rc rc = l->ops->loss(l->engine, &loss, err);

	if (rc == RFL_OK)
		step->loss += loss / (double)l->accum;
	return rc;
}

/* One batch: forward, and backward where the mode has one. The loss of all but the last is read
 * here, where no one waits for it; that of the last after the step. */
static enum rfl_rc one_batch(struct rfl_burst__loop *l, int64_t m, int64_t *at, struct watch *w,
			     struct rfl_burst_step *step, struct rfl_err *err)
{
	const bool last = m + 1 == l->accum;
	enum rfl_rc rc = forward(l, m == 0, err);

	step->forward_s += lap(w);
	if (rc == RFL_OK)
		rc = mark(l, at, err);
	if (rc == RFL_OK && l->config->mode != RFL_RUN_FWD) {
		rc = backward(l, last, err);
		step->backward_s += lap(w);
		if (rc == RFL_OK)
			rc = mark(l, at, err);
	} else if (*at != RFL_BURST__NO_MARKS) {
		(*at)++; /* a place of its own, without a mark */
	}
	if (rc || last)
		return rc;
	if (l->read_losses) {
		rc = add_loss(l, step, err);
		leave_out(w);
	}
	if (rc == RFL_OK)
		rc = fetch(l, step, err);
	w->at = rfl_clock_ns(); /* is in data_wait_s and upload_s */
	return rc;
}

static enum rfl_rc run_phases(struct rfl_burst__loop *l, int64_t at, struct watch *w,
			      struct rfl_burst_step *step, struct rfl_err *err)
{
	enum rfl_rc rc = mark(l, &at, err);

	w->at = rfl_clock_ns();
	for (int64_t m = 0; m < l->accum && rc == RFL_OK; m++)
		rc = one_batch(l, m, &at, w, step, err);
	if (rc == RFL_OK && l->config->mode == RFL_RUN_TRAIN) {
		rc = optimizer(l, err);
		step->optimizer_s = lap(w);
	}
	return rc ? rc : mark(l, &at, err);
}

static enum rfl_rc replay(struct rfl_burst__loop *l, int64_t at, struct rfl_err *err)
{
	enum rfl_rc rc = mark(l, &at, err);

	if (rc == RFL_OK)
		rc = l->ops->replay(l->engine, &l->batch, err);
	l->have_batch = false;
	return rc ? rc : mark(l, &at, err);
}

/* ---- the step ---- */

static enum rfl_rc work(struct rfl_burst__loop *l, int64_t first_mark, struct rfl_burst_step *step,
			struct rfl_err *err)
{
	struct watch w = { .at = rfl_clock_ns() };
	const int64_t start = w.at;
	enum rfl_rc rc = l->have_batch ? RFL_OK : fetch(l, step, err);

	if (rc == RFL_OK)
		rc = l->replays ? replay(l, first_mark, err)
				: run_phases(l, first_mark, &w, step, err);
	if (rc == RFL_OK &&
	    l->uploads) /* while the device works, the next batch is made and copied */
		rc = fetch(l, step, err);
	if (rc == RFL_OK && l->waits)
		rc = l->ops->sync(l->engine, err);
	step->total_s = seconds(start, rfl_clock_ns() - w.left_out);
	settle_phases(l, step);
	if (l->config->asynchronous) /* how long it takes to ask, not to do */
		step->forward_s = step->backward_s = step->optimizer_s = (double)NAN;
	if (!l->uploads)
		step->upload_s = (double)NAN;
	return rc;
}

enum rfl_rc rfl_burst__step(struct rfl_burst__loop *l, int64_t first_mark,
			    struct rfl_burst_step *ret, struct rfl_err *err)
{
	enum rfl_rc rc;

	*ret = (struct rfl_burst_step){ .loss = 0 };
	push(l, RFL_DETAIL_STEP, "step");
	rc = work(l, first_mark, ret, err);
	pop(l, RFL_DETAIL_STEP);
	if (!l->read_losses)
		ret->loss = (double)NAN;
	else if (rc == RFL_OK) /* between steps: belongs to none of them */
		rc = add_loss(l, ret, err);
	return rc;
}

enum rfl_rc rfl_burst__record(struct rfl_burst__loop *l, struct rfl_err *err)
{
	struct rfl_burst_step step = { .loss = 0 };
	const enum rfl_run_mode mode = l->config->mode;
	enum rfl_rc rc = RFL_OK;

	if (!l->ops->capture || !l->ops->replay)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"--cuda-graph: engine '%s' cannot record steps", l->ops->name);
	if (!l->have_batch)
		rc = fetch(l, &step, err);
	if (rc)
		return rc;
	if (rc == RFL_OK)
		rc = l->ops->capture(l->engine, &l->batch, mode != RFL_RUN_FWD,
				     mode == RFL_RUN_TRAIN, err);
	l->replays = rc == RFL_OK;
	return rc;
}
