/*
 * training.c - a training run to accuracy in the child process: what happens between the steps of
 * the burst. The order of the samples and their augmentation depend only on the seed and the number
 * of the batch, and all other state is in the checkpoint.
 */
#include "runner/run/training.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"

#define REPORT_NS  200000000 /* between two progress reports */
#define MOST_STEPS 10000000  /* as in the option --iters of run */

/* Multiplied step by step, as torch.optim.lr_scheduler.StepLR does, so that the bits are equal. */
double rfl_run__training_lr(const struct rfl_run_config *c, int64_t epoch)
{
	double lr = c->lr;

	for (int64_t e = 1; c->lr_step > 0 && e <= epoch / c->lr_step && lr > 0; e++)
		lr *= c->lr_gamma;
	return lr;
}

/* ---- events ---- */

static void emit(struct rfl_run__training *t, json_t *take_event)
{
	if (take_event) /* NULL: out of memory */
		t->emit(take_event, t->ctx);
}

/* @param sums  NULL: the evaluation, of which only the position is known */
static void report(struct rfl_run__training *t, const struct rfl_score *sums, int64_t done,
		   int64_t total)
{
	const int64_t now = rfl_clock_ns();
	struct rfl_run_progress p = {
		.phase = sums ? "train" : "test",
		.done = done,
		.total = total,
		.epoch = (int64_t)t->epochs.n + 1,
		.loss = sums ? sums->loss / (double)sums->rows : (double)NAN,
		.accuracy = sums ? (double)sums->correct / (double)sums->rows : (double)NAN,
		.left_s = (double)NAN,
	};

	if (now - t->reported_ns < REPORT_NS)
		return;
	t->reported_ns = now;
	if (t->done > t->began)
		p.left_s = (double)(now - t->began_ns) * 1e-9 / (double)(t->done - t->began) *
			   (double)(t->burst->nsteps - t->done);
	emit(t, rfl_run__pack_members("progress", rfl_run__progress, &p));
}

/* ---- epochs ---- */

static enum rfl_rc stop(struct rfl_run__training *t, struct rfl_err *err)
{
	enum rfl_rc rc = t->saved == t->done ? RFL_OK : rfl_run__checkpoint_save(t, err);

	return rc ? rc
		  : rfl_fail(err, RFL_EINTR, 0,
			     "stopped after step %" PRId64 " of %" PRId64
			     "; use --resume to continue",
			     t->done, t->burst->nsteps);
}

/* Classify the test set. */
static enum rfl_rc evaluate(struct rfl_run__training *t, struct rfl_score *ret, struct rfl_err *err)
{
	const int64_t n = rfl_data_epoch_batches(t->test);
	struct rfl_batch batch;
	enum rfl_rc rc = t->ops->set_mode(t->engine, RFL_ENGINE_EVAL, err);

	for (int64_t i = 0; i < n && rc == RFL_OK; i++) {
		if (t->stopped && t->stopped())
			return stop(t, err);
		rc = rfl_data_next(t->test, &batch, err);
		if (rc == RFL_OK && batch.n > 0) /* else all of its images are damaged */
			rc = t->ops->forward(t->engine, &batch, err);
		report(t, NULL, i + 1, n);
	}
	if (rc == RFL_OK)
		rc = t->ops->score(t->engine, ret, err);
	return rc ? rc : t->ops->set_mode(t->engine, RFL_ENGINE_TRAIN, err);
}

static enum rfl_rc set_lr(struct rfl_run__training *t, struct rfl_err *err)
{
	struct rfl_optimizer optimizer = t->optimizer;

	optimizer.lr = rfl_run__training_lr(t->config, (int64_t)t->epochs.n);
	return t->ops->set_optimizer(t->engine, &optimizer, err);
}

/* After the last step of an epoch: evaluate, add its row, begin the next one. */
static enum rfl_rc end_epoch(struct rfl_run__training *t, struct rfl_err *err)
{
	const double rows = (double)t->sums.rows, start = rfl_clock_s();
	struct rfl_score tested = { .rows = 0 };
	struct rfl_epoch row;
	enum rfl_rc rc = evaluate(t, &tested, err);

	if (rc)
		return rc;
	row = (struct rfl_epoch){
		.epoch = (int64_t)t->epochs.n + 1,
		.lr = rfl_run__training_lr(t->config, (int64_t)t->epochs.n),
		.train_loss = t->sums.loss / rows,
		.train_accuracy = (double)t->sums.correct / rows,
		.test_loss = tested.loss / (double)tested.rows,
		.test_accuracy = (double)tested.correct / (double)tested.rows,
		.test_samples = tested.rows,
		.train_s = t->train_s,
		.test_s = rfl_clock_s() - start,
		.samples_per_s = rows / t->train_s,
	};
	rfl_epochs_add(&t->epochs, &row);
	if ((rc = set_lr(t, err)))
		return rc;
	t->sums = (struct rfl_score){ .rows = 0 };
	t->train_s = 0;
	rc = rfl_run__checkpoint_save(t, err);
	if (rc == RFL_OK) /* the row may only be seen once the checkpoint has it */
		emit(t, rfl_run__pack_members("epoch", rfl_run__epoch, &row));
	return rc;
}

/* ---- laps: on a CPU each step, because its loss is known without waiting; on a GPU about a
 * second, so that waiting for it costs nothing, but a signal does not wait long ---- */

#define FIRST_LAP 8
#define LAP_S     1.0

int64_t rfl_run__training_lap(const struct rfl_run__training *t, int64_t done)
{
	const int64_t every = t->config->checkpoint_steps, in_epoch = done % t->per_epoch;
	int64_t n = t->per_epoch - in_epoch < t->lap ? t->per_epoch - in_epoch : t->lap;

	if (strcmp(t->device, rfl_device_names[RFL_DEVICE_CPU]) == 0)
		return 1;
	if (every > 0 && n > every - in_epoch % every)
		n = every - in_epoch % every;
	return n;
}

enum rfl_rc rfl_run__training_lapped(struct rfl_run__training *t, int64_t done, double wall_s,
				     struct rfl_err *err)
{
	const int64_t every = t->config->checkpoint_steps, in_epoch = done % t->per_epoch;
	const double fitting = (double)(done - t->done) / wall_s * LAP_S; /* steps */
	struct rfl_score lap;
	enum rfl_rc rc = t->ops->score(t->engine, &lap, err);

	if (rc)
		return rc;
	t->lap = fitting < RFL_BURST_LAP ? (int64_t)fitting + 1 : RFL_BURST_LAP;
	t->done = done;
	t->sums.rows += lap.rows;
	t->sums.correct += lap.correct;
	t->sums.loss += lap.loss;
	t->train_s += wall_s;
	report(t, &t->sums, in_epoch ? in_epoch : t->per_epoch, t->per_epoch);
	if (in_epoch == 0)
		rc = end_epoch(t, err);
	else if (every > 0 && in_epoch % every == 0)
		rc = rfl_run__checkpoint_save(t, err);
	if (rc == RFL_OK && done < t->burst->nsteps && t->stopped && t->stopped())
		rc = stop(t, err);
	return rc;
}

enum rfl_rc rfl_run__training_begin(struct rfl_run__training *t, struct rfl_err *err)
{
	const struct rfl_run_config *c = t->config;
	int64_t steps;
	enum rfl_rc rc;

	if (!t->ops->score || !t->ops->visit_state)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot evaluate or save a training run", t->ops->name);
	if (t->per_epoch > MOST_STEPS / c->epochs)
		return rfl_fail(err, RFL_EINVAL, 0,
				"--epochs: %" PRId64 " epochs of %" PRId64
				" steps exceed %d steps; use fewer",
				c->epochs, t->per_epoch, MOST_STEPS);
	if (t->stopped && t->stopped())
		return rfl_fail(err, RFL_EINTR, 0, "stopped before the first step");
	steps = t->per_epoch * c->epochs;
	t->saved = -1;
	t->lap = FIRST_LAP;
	rfl_burst_fini(t->burst);
	rc = rfl_burst_init(t->burst, steps, err);
	if (rc == RFL_OK && c->resume)
		rc = rfl_run__checkpoint_load(t, err);
	if (rc == RFL_OK)
		rc = set_lr(t, err);
	if (rc)
		return rc;
	emit(t, json_pack("{s:s, s:I}", "event", "plan", "steps", (json_int_t)steps));
	if (c->resume)
		emit(t, json_pack("{s:s, s:I}", "event", "continued", "step", (json_int_t)t->done));
	for (size_t i = 0; i < t->epochs.n; i++)
		emit(t, rfl_run__pack_members("earlier_epoch", rfl_run__epoch, &t->epochs.rows[i]));
	t->began = t->done;
	t->began_ns = rfl_clock_ns();
	/* the process ended while it evaluated this epoch */
	return t->done > 0 && t->done / t->per_epoch > (int64_t)t->epochs.n ? end_epoch(t, err)
									    : RFL_OK;
}

void rfl_run__training_fini(struct rfl_run__training *t)
{
	rfl_epochs_fini(&t->epochs);
	rfl_data_free(t->test);
}
