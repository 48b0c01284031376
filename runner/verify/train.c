/*
 * train.c - repeats the sections of a train golden file: a few steps on one batch, and norms
 * of gradients, parameters and statistics on the way.
 */
#include "runner/verify/session.h"

#include <math.h>

#include "base/alloc.h"
#include "data/fill.h"
#include "runner/fill_engine.h"

static double squares_of_difference(const float *x, const float *y, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++) {
		/* a float difference, as PyTorch takes it */
		const float d = x[i] - y[i];

		sum += (double)d * (double)d;
	}
	return sum;
}

static enum rfl_rc collect_first_logits(struct rfl_session *s, struct rfl_golden_run *run,
					struct rfl_err *err)
{
	const int64_t classes = s->net->classes;
	enum rfl_rc rc;

	if (run->rows > s->rows || run->first > classes)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /logits_first4_step0 does not fit the network",
				s->golden->path);
	rc = s->ops->logits(s->engine, s->logits, s->rows * classes, err);
	for (int64_t i = 0; rc == RFL_OK && i < run->rows; i++)
		for (int64_t j = 0; j < run->first; j++)
			run->logits[i * run->first + j] = s->logits[i * classes + j];
	return rc;
}

/* The l2 of every trained parameter's gradient. */
static enum rfl_rc each_gradient(struct rfl_session *s, double *each, struct rfl_err *err)
{
	for (int i = 0; i < s->net->nparams; i++) {
		const struct rfl_param *p = &s->net->params[i];
		enum rfl_rc rc;

		if (rfl_param_is_buffer(p->kind))
			continue;
		rc = s->ops->get_grad(s->engine, i, s->now, p->numel, err);
		if (rc != RFL_OK)
			return rc;
		*each++ = sqrt(rfl_verify__squares(s->now, p->numel));
	}
	return RFL_OK;
}

static enum rfl_rc collect_grads(struct rfl_session *s, struct rfl_golden_run *run,
				 struct rfl_err *err)
{
	double all = 0;
	enum rfl_rc rc = each_gradient(s, run->grads, err);

	for (int64_t i = 0; i < run->ngrads; i++)
		all += run->grads[i] * run->grads[i];
	run->norms[RFL_GOLDEN_GRAD_FIRST] = run->grads[0];
	run->norms[RFL_GOLDEN_GRAD_LAST] = run->grads[run->ngrads - 1];
	run->norms[RFL_GOLDEN_GRAD_ALL] = sqrt(all);
	return rc;
}

/* Norms of the parameters as they are, and of their way from the start. */
struct distance {
	double l2, delta, first, last;
};

static enum rfl_rc measure_params(struct rfl_session *s, struct distance *d, struct rfl_err *err)
{
	double squares = 0, moved = 0;
	bool is_first = true;

	for (int i = 0; i < s->net->nparams; i++) {
		const struct rfl_param *p = &s->net->params[i];
		const struct rfl_fill_job job = {
			.rule = rfl_fill_rule_of(p),
			.p = p->position,
			.n = (size_t)p->numel,
			.out = s->start,
		};
		double own;
		enum rfl_rc rc;

		if (rfl_param_is_buffer(p->kind))
			continue;
		rc = s->ops->get_param(s->engine, i, s->now, p->numel, err);
		if (rc == RFL_OK)
			rc = rfl_fill_run(&job, 1, s->setup->threads, err);
		if (rc != RFL_OK)
			return rc;
		own = rfl_verify__squares(s->now, p->numel);
		squares += own;
		moved += squares_of_difference(s->now, s->start, p->numel);
		d->last = sqrt(own);
		if (is_first)
			d->first = d->last;
		is_first = false;
	}
	d->l2 = sqrt(squares);
	d->delta = sqrt(moved);
	return RFL_OK;
}

static enum rfl_rc measure_buffers(struct rfl_session *s, enum rfl_param_kind kind, double *ret,
				   struct rfl_err *err)
{
	double squares = 0;

	for (int i = 0; i < s->net->nparams; i++) {
		const struct rfl_param *p = &s->net->params[i];
		enum rfl_rc rc;

		if (p->kind != kind)
			continue;
		rc = s->ops->get_param(s->engine, i, s->now, p->numel, err);
		if (rc != RFL_OK)
			return rc;
		squares += rfl_verify__squares(s->now, p->numel);
	}
	*ret = sqrt(squares);
	return RFL_OK;
}

/* What is recorded around the first step. */
static enum rfl_rc first_step(struct rfl_session *s, struct rfl_golden_run *run,
			      struct rfl_err *err)
{
	struct distance d = { 0 };
	enum rfl_rc rc = collect_first_logits(s, run, err);

	if (rc == RFL_OK)
		rc = collect_grads(s, run, err);
	if (rc == RFL_OK)
		rc = measure_params(s, &d, err);
	run->norms[RFL_GOLDEN_PARAM_BEFORE] = d.l2;
	if (rc == RFL_OK)
		rc = s->ops->step(s->engine, err);
	if (rc == RFL_OK)
		rc = measure_params(s, &d, err);
	run->norms[RFL_GOLDEN_PARAM_STEP1] = d.l2;
	run->norms[RFL_GOLDEN_DELTA_STEP1] = d.delta;
	return rc;
}

/* What is recorded when all steps are done, and the loss after them. */
static enum rfl_rc after_steps(struct rfl_session *s, const struct rfl_batch *batch,
			       struct rfl_golden_run *run, struct rfl_err *err)
{
	struct distance d = { 0 };
	enum rfl_rc rc = measure_params(s, &d, err);

	run->norms[RFL_GOLDEN_PARAM_AFTER] = d.l2;
	run->norms[RFL_GOLDEN_DELTA_AFTER] = d.delta;
	run->norms[RFL_GOLDEN_PARAM_FIRST_AFTER] = d.first;
	run->norms[RFL_GOLDEN_PARAM_LAST_AFTER] = d.last;
	if (rc == RFL_OK)
		rc = measure_buffers(s, RFL_PARAM_RUNNING_MEAN,
				     &run->norms[RFL_GOLDEN_RUNNING_MEAN], err);
	if (rc == RFL_OK)
		rc = measure_buffers(s, RFL_PARAM_RUNNING_VAR, &run->norms[RFL_GOLDEN_RUNNING_VAR],
				     err);
	if (rc == RFL_OK)
		rc = s->ops->forward(s->engine, batch, err);
	if (rc == RFL_OK)
		rc = s->ops->loss(s->engine, &run->losses[run->nlosses - 1], err);
	return rc;
}

static enum rfl_rc train(struct rfl_session *s, const struct rfl_golden_section *section,
			 struct rfl_golden_run *run, struct rfl_err *err)
{
	const struct rfl_batch batch = rfl_verify__batch(s);
	enum rfl_rc rc = rfl_verify__open(s, &section->optimizer, err);

	if (rc == RFL_OK)
		rc = s->ops->reset_optimizer(s->engine, err);
	if (rc == RFL_OK)
		rc = rfl_fill_engine(s->ops, s->engine, s->net, s->setup->threads, err);
	if (rc == RFL_OK)
		rc = s->ops->set_mode(s->engine, section->mode, err);
	for (int64_t i = 0; rc == RFL_OK && i < run->nlosses - 1; i++) {
		rc = s->ops->zero_grad(s->engine, err);
		if (rc == RFL_OK)
			rc = s->ops->forward(s->engine, &batch, err);
		if (rc == RFL_OK)
			rc = s->ops->loss(s->engine, &run->losses[i], err);
		if (rc == RFL_OK)
			rc = s->ops->backward(s->engine, NULL, err);
		if (rc == RFL_OK)
			rc = i == 0 ? first_step(s, run, err) : s->ops->step(s->engine, err);
	}
	if (rc == RFL_OK)
		rc = after_steps(s, &batch, run, err);
	return rc;
}

enum rfl_rc rfl_verify__train(struct rfl_session *s, struct rfl_arena *arena,
			      const struct rfl_golden_section *section, struct rfl_checks *checks,
			      struct rfl_err *err)
{
	struct rfl_golden_run got = section->fp64; /* the sizes */
	enum rfl_rc rc;

	got.losses = rfl_arena_array(arena, (size_t)got.nlosses, sizeof(*got.losses));
	got.logits = rfl_arena_array(arena, (size_t)(got.rows * got.first), sizeof(*got.logits));
	got.grads = rfl_arena_array(arena, (size_t)got.ngrads, sizeof(*got.grads));
	if (!got.losses || !got.logits || !got.grads)
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	rc = train(s, section, &got, err);
	if (rc == RFL_OK)
		rc = rfl_verify__is_bf16(s)
			     ? rfl_verify__bf16_section(checks, s->net, s->golden, section, &got,
							err)
			     : rfl_verify__section(checks, s->golden, section, &got, err);
	return rc;
}

enum rfl_rc rfl_verify__one_gradient(struct rfl_session *s, struct rfl_arena *arena,
				     struct rfl_checks *checks, struct rfl_err *err)
{
	const struct rfl_golden_gradient *expected = &s->golden->logits.gradient;
	const struct rfl_batch batch = rfl_verify__batch(s);
	struct rfl_golden_gradient got = *expected;
	enum rfl_rc rc = s->ops->set_mode(s->engine, RFL_ENGINE_TRAIN, err);
	int64_t trained = 0;

	for (int i = 0; i < s->net->nparams; i++)
		trained += !rfl_param_is_buffer(s->net->params[i].kind);
	if (expected->n != trained)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /gradient/each has %lld entries, but %s has %lld parameters",
				s->golden->path, (long long)expected->n, s->golden->model,
				(long long)trained);
	got.each = rfl_arena_array(arena, (size_t)got.n, sizeof(*got.each));
	if (!got.each)
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	if (rc == RFL_OK)
		rc = s->ops->zero_grad(s->engine, err);
	if (rc == RFL_OK)
		rc = s->ops->forward(s->engine, &batch, err);
	if (rc == RFL_OK)
		rc = s->ops->loss(s->engine, &got.loss, err);
	if (rc == RFL_OK)
		rc = s->ops->backward(s->engine, NULL, err);
	if (rc == RFL_OK)
		rc = each_gradient(s, got.each, err);
	if (rc != RFL_OK)
		return rc;
	return rfl_verify__is_bf16(s)
		       ? rfl_verify__bf16_gradient(checks, s->net, s->golden, &got, err)
		       : rfl_verify__gradient(checks, s->net, expected, &got, err);
}
