/*
 * engine.c - the planned engine: executes a net as a plan (complexity/plan/plan.h) made once per
 * batch size and mode, on the library of its back end (backend.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"
#include "runner/planned/backend.h"

/* Plans are kept for training and for evaluation. */
enum slot { FOR_TRAINING, FOR_EVALUATION, SLOTS };

struct rfl_engine {
	const struct rfl_engine_ops *ops;
	const struct rfl_net *net; /* borrowed */
	struct rfl_engine_config config;
	enum rfl_engine_mode mode;
	struct rfl_backend *backend;
	struct rfl_session *sessions[SLOTS];
	bool warm[SLOTS];         /* they have run */
	struct rfl_session *last; /* of the last forward pass; NULL: none */
	struct rfl_session_call call;
	bool can_backward;
	/* Gradients exist, until zero_grad; they are in the sums; backward has run since the last
	 * step. */
	bool has_grads, summed, fresh;
	int64_t updates;  /* t of Adam */
	int64_t forwards; /* counter of dropout */
	int64_t saved_updates, saved_forwards;
	int64_t peak;
	rfl_engine_mark_fn mark; /* NULL: off */
	void *mark_ctx;
	struct rfl_arena *mark_names;            /* owns the names: per node, then of the loss */
	const char **marks[2];                   /* of forward and backward */
	bool recorded, with_backward, with_step; /* a step can be replayed, and what it does */
};

/* ---- opening ---- */

static enum rfl_rc prefixed(struct rfl_err *err, struct rfl_err *why)
{
	rfl_err_prefix(why, "planned");
	return rfl_err_pass(err, why);
}

static const char *unsupported(enum rfl_op op, enum rfl_precision precision)
{
	(void)precision; /* checked when the engine is opened */
	return rfl_plan_unsupported(op);
}

static enum rfl_rc check_config(const struct rfl_engine_config *c, struct rfl_err *err)
{
	if (c->threads < 1 || c->max_batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"threads and batch must be at least 1, not %d and %lld", c->threads,
				(long long)c->max_batch);
	if (c->cache_tokens > 0)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"it has no cache of keys and values: use the engine torch");
	if (c->optimizer.kernels == RFL_KERNELS_FOREACH)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"updates are always fused: use the kernels fused or auto");
	return RFL_OK;
}

static struct rfl_plan_setup setup_of(const struct rfl_engine *e, int64_t n, bool unfused)
{
	const enum rfl_cast cast = rfl_precision_cast(e->config.precision, e->config.device);

	return (struct rfl_plan_setup){
		.batch = n,
		.value_bytes = cast == RFL_CAST_BF16 || cast == RFL_CAST_FP16 ? 2 : 4,
		.training = e->mode != RFL_ENGINE_EVAL,
		.frozen = e->mode == RFL_ENGINE_TRAIN_FROZEN_BN,
		.dropout = e->config.dropout,
		.auxiliary_weight = e->config.auxiliary_weight,
		.unfused = unfused,
		.separate = e->backend && rfl_backend_separate(e->backend),
	};
}

static void close_engine(struct rfl_engine *e)
{
	if (!e)
		return;
	for (int i = 0; i < SLOTS; i++)
		rfl_session_free(e->sessions[i]);
	rfl_backend_close(e->backend);
	rfl_arena_free(e->mark_names);
	free(e);
}

static const struct rfl_engine_ops *ops(void);

static enum rfl_rc open_engine(const struct rfl_net *net, const struct rfl_engine_config *config,
			       struct rfl_engine **ret, struct rfl_err *err)
{
	struct rfl_engine *e = rfl_alloc_array(1, sizeof(*e));
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_plan *plan = NULL;
	struct rfl_plan_setup setup;
	enum rfl_rc rc;

	*e = (struct rfl_engine){
		.ops = ops(), .net = net, .config = *config, .mode = RFL_ENGINE_TRAIN
	};
	rc = check_config(config, &why);
	if (rc == RFL_OK) { /* the layers, before memory is taken */
		setup = setup_of(e, 1, false);
		rc = rfl_plan_new(net, &setup, &plan, &why);
	}
	rfl_plan_free(plan);
	if (rc == RFL_OK)
		rc = rfl_backend_open(net, config, &e->backend, &why);
	if (rc == RFL_OK) {
		*ret = e;
		return RFL_OK;
	}
	close_engine(e);
	return prefixed(err, &why);
}

/* ---- plans ---- */

/* Forget the results of the last forward pass. */
static void forget_step(struct rfl_engine *e)
{
	e->last = NULL;
	e->can_backward = false;
}

static void forget_gradients(struct rfl_engine *e)
{
	e->has_grads = e->summed = e->fresh = false;
}

static void forget_recording(struct rfl_engine *e)
{
	if (e->recorded)
		rfl_backend_queue->forget(e->backend);
	e->recorded = false;
}

static void drop_sessions(struct rfl_engine *e)
{
	forget_recording(e);
	for (int i = 0; i < SLOTS; i++) {
		rfl_session_free(e->sessions[i]);
		e->sessions[i] = NULL;
	}
	forget_step(e);
	forget_gradients(e);
}

/* Bytes in use; also notes the peak. */
static int64_t bytes_in_use(struct rfl_engine *e)
{
	int64_t bytes = rfl_backend_bytes(e->backend, e->sessions[FOR_TRAINING]);

	if (e->sessions[FOR_EVALUATION])
		bytes += rfl_backend_bytes(e->backend, e->sessions[FOR_EVALUATION]) -
			 rfl_backend_bytes(e->backend, NULL);
	if (bytes > e->peak)
		e->peak = bytes;
	return bytes;
}

static bool fits(const struct rfl_session *s, const struct rfl_plan_setup *setup)
{
	const struct rfl_plan_setup *has = s ? &rfl_session_plan(s)->setup : NULL;

	return has && has->batch == setup->batch && has->training == setup->training &&
	       has->frozen == setup->frozen && has->unfused == setup->unfused;
}

/* The session for a batch of n, made if there is none. */
static enum rfl_rc session_of(struct rfl_engine *e, int64_t n, bool unfused,
			      struct rfl_session **ret, struct rfl_err *err)
{
	const struct rfl_plan_setup setup = setup_of(e, n, unfused);
	struct rfl_session **at = &e->sessions[setup.training ? FOR_TRAINING : FOR_EVALUATION];
	struct rfl_plan *plan = NULL;
	enum rfl_rc rc;

	*ret = *at;
	if (fits(*at, &setup))
		return RFL_OK;
	if (setup.training && !e->sessions[FOR_TRAINING])
		drop_sessions(e); /* the first plan for training chooses the layouts */
	forget_recording(e);
	if (e->last == *at)
		e->last = NULL;
	rfl_session_free(*at);
	*at = NULL;
	rc = rfl_plan_new(e->net, &setup, &plan, err);
	if (rc == RFL_OK)
		rc = rfl_session_new(e->backend, plan, at, err);
	if (rc != RFL_OK && setup.training)
		forget_gradients(e); /* they were read through the session */
	e->warm[setup.training ? FOR_TRAINING : FOR_EVALUATION] = false;
	(void)bytes_in_use(e);
	*ret = *at;
	return rc;
}

/* ---- forward and backward ---- */

static enum rfl_rc check_batch(const struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	if (batch->n < 1 || batch->n > e->config.max_batch)
		return rfl_fail(err, RFL_EINVAL, 0, "a batch has 1 to %lld samples, not %lld",
				(long long)e->config.max_batch, (long long)batch->n);
	if (batch->kind == RFL_INPUT_TOKENS)
		return rfl_fail(err, RFL_EINVAL, 0, "%s accepts images, not tokens", e->net->model);
	if (batch->kind == RFL_INPUT_PIXELS && (!batch->scale || e->net->nodes[0].shape.dim[0] > 3))
		return rfl_fail(err, RFL_EINVAL, 0, "pixels need a scale and 1 to 3 channels");
	for (int64_t i = 0; i < batch->n; i++)
		if (batch->labels[i] < 0 || batch->labels[i] >= e->net->classes)
			return rfl_fail(err, RFL_EINVAL, 0, "label %lld is not one of %lld classes",
					(long long)batch->labels[i], (long long)e->net->classes);
	return RFL_OK;
}

/* Run the steps from `from` to before `to`. */
static enum rfl_rc run_steps(struct rfl_engine *e, struct rfl_session *s, int from, int to,
			     struct rfl_err *err)
{
	const struct rfl_plan_step *steps = rfl_session_plan(s)->steps;
	enum rfl_rc rc = RFL_OK;
	int marked = -1;

	for (int i = from; i < to && rc == RFL_OK; i++) {
		if (e->mark && steps[i].node != marked)
			rc = e->mark(e->marks[from > 0][steps[i].node], e->mark_ctx, err);
		marked = steps[i].node;
		if (rc == RFL_OK)
			rc = rfl_session_run(s, i, &e->call, err);
	}
	return rc;
}

/* A gradient that a forward pass would overwrite joins the sums. */
static enum rfl_rc save_gradients(struct rfl_engine *e, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (e->has_grads && !e->summed && e->sessions[FOR_TRAINING]) {
		rc = rfl_session_accumulate(e->sessions[FOR_TRAINING], true, err);
		e->summed = rc == RFL_OK;
	}
	return rc;
}

static enum rfl_rc trace(struct rfl_engine *e, struct rfl_session *s, rfl_engine_trace_fn fn,
			 void *ctx, struct rfl_err *err)
{
	const struct rfl_plan *plan = rfl_session_plan(s);
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < e->net->nnodes && rc == RFL_OK; i++) {
		const int64_t n = plan->setup.batch * rfl_shape_numel(&e->net->nodes[i].shape);
		RFL_AUTOFREE float *values =
			plan->output[i] < 0 ? NULL : rfl_try_array((size_t)n, sizeof(*values));

		if (plan->output[i] < 0)
			continue;
		if (!values)
			return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a trace");
		rc = rfl_session_output(s, i, values, err);
		if (rc == RFL_OK)
			rc = fn(i, values, n, ctx, err);
	}
	return rc;
}

static struct rfl_session_call next_call(struct rfl_engine *e, const struct rfl_batch *batch)
{
	return (struct rfl_session_call){ .batch = batch,
					  .counter = (uint64_t)e->forwards++,
					  .update = e->updates + 1 };
}

static enum rfl_rc forward_traced(struct rfl_engine *e, const struct rfl_batch *batch,
				  rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_session *s = NULL;
	enum rfl_rc rc = check_batch(e, batch, &why);

	forget_step(e);
	if (rc == RFL_OK)
		rc = save_gradients(e, &why);
	if (rc == RFL_OK)
		rc = session_of(e, batch->n, fn != NULL, &s, &why);
	if (rc == RFL_OK) {
		e->call = next_call(e, batch);
		rc = run_steps(e, s, 0, rfl_session_plan(s)->nforward, &why);
	}
	if (rc == RFL_OK && fn)
		rc = trace(e, s, fn, ctx, &why);
	if (rc != RFL_OK)
		return prefixed(err, &why);
	e->last = s;
	e->can_backward = e->mode != RFL_ENGINE_EVAL;
	e->warm[FOR_EVALUATION] |= e->mode == RFL_ENGINE_EVAL;
	return RFL_OK;
}

static enum rfl_rc forward(struct rfl_engine *e, const struct rfl_batch *batch, struct rfl_err *err)
{
	return forward_traced(e, batch, NULL, NULL, err);
}

static enum rfl_rc zero_grad(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	forget_gradients(e);
	return RFL_OK;
}

static enum rfl_rc backward(struct rfl_engine *e, const struct rfl_backward *how,
			    struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_session *s = e->last;
	enum rfl_rc rc;

	if (!e->can_backward || !s)
		return rfl_fail(err, RFL_EINVAL, 0,
				"planned: backward needs forward in a training mode; run it first");
	e->can_backward = false;
	rc = rfl_session_scale_loss(s, how ? how->weight : 1, &why);
	if (rc == RFL_OK && e->mark)
		rc = e->mark(e->marks[1][e->net->nnodes], e->mark_ctx, &why);
	if (rc == RFL_OK)
		rc = run_steps(e, s, rfl_session_plan(s)->nforward, rfl_session_plan(s)->nsteps,
			       &why);
	if (rc == RFL_OK && (e->summed || (how && !how->last))) {
		rc = rfl_session_accumulate(s, !e->summed, &why);
		e->summed |= rc == RFL_OK;
	}
	if (rc != RFL_OK)
		return prefixed(err, &why);
	e->has_grads = e->fresh = e->warm[FOR_TRAINING] = true;
	return RFL_OK;
}

static enum rfl_rc step(struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;

	if (!e->fresh)
		return rfl_fail(err, RFL_EINVAL, 0,
				"planned: step needs gradients; run backward first");
	if (rfl_session_update(e->sessions[FOR_TRAINING], &e->config.optimizer, e->summed, &why) !=
	    RFL_OK)
		return prefixed(err, &why);
	e->updates++;
	e->fresh = false;
	(void)bytes_in_use(e);
	return RFL_OK;
}

/* ---- settings ---- */

static enum rfl_rc set_mode(struct rfl_engine *e, enum rfl_engine_mode mode, struct rfl_err *err)
{
	(void)err;
	forget_recording(e);
	e->mode = mode;
	return RFL_OK;
}

static enum rfl_rc set_optimizer(struct rfl_engine *e, const struct rfl_optimizer *optimizer,
				 struct rfl_err *err)
{
	if (optimizer->rule != e->config.optimizer.rule)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"planned: the optimizer cannot change from %s; open a new engine",
				rfl_optimizer_rule_names[e->config.optimizer.rule]);
	forget_recording(e);
	e->config.optimizer = *optimizer;
	return RFL_OK;
}

static enum rfl_rc reset_optimizer(struct rfl_engine *e, struct rfl_err *err)
{
	forget_recording(e); /* which updates the state */
	rfl_backend_clear_state(e->backend);
	e->updates = 0;
	return zero_grad(e, err);
}

static const char *optimizer_kernels(struct rfl_engine *e)
{
	(void)e;
	return rfl_optimizer_kernels_names[RFL_KERNELS_FUSED];
}

static enum rfl_rc mark(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx, struct rfl_err *err)
{
	(void)err;
	rfl_arena_free(e->mark_names);
	e->mark_names = fn ? rfl_arena_new() : NULL;
	for (int pass = 0; fn && pass < 2; pass++) {
		const size_t n = (size_t)e->net->nnodes + 1;
		char name[RFL_MARK_SIZE];

		e->marks[pass] = rfl_arena_array(e->mark_names, n, sizeof(*e->marks[pass]));
		for (int i = 0; i <= e->net->nnodes; i++)
			e->marks[pass][i] = rfl_arena_printf(
				e->mark_names, "%s",
				rfl_mark_name(pass ? "bwd" : "fwd", e->net, i, name));
	}
	e->mark = fn;
	e->mark_ctx = ctx;
	return RFL_OK;
}

/* ---- values for the caller ---- */

static enum rfl_rc loss(struct rfl_engine *e, double *ret, struct rfl_err *err)
{
	struct rfl_totals totals = { .loss = NAN };
	enum rfl_rc rc;

	if (!e->last)
		return rfl_fail(err, RFL_EINVAL, 0, "planned: no loss; run forward first");
	rc = rfl_backend_totals(e->backend, false, &totals, err);
	*ret = totals.loss;
	return rc;
}

static enum rfl_rc logits(struct rfl_engine *e, float *out, int64_t numel, struct rfl_err *err)
{
	if (!e->last)
		return rfl_fail(err, RFL_EINVAL, 0, "planned: no logits; run forward first");
	if (numel != rfl_session_plan(e->last)->setup.batch * e->net->classes)
		return rfl_fail(
			err, RFL_EINVAL, 0, "planned: the logits have %lld elements, not %lld",
			(long long)(rfl_session_plan(e->last)->setup.batch * e->net->classes),
			(long long)numel);
	return rfl_session_output(e->last, e->net->output, out, err);
}

static enum rfl_rc check_param(const struct rfl_engine *e, int param, int64_t numel,
			       struct rfl_err *err)
{
	if (param < 0 || param >= e->net->nparams)
		return rfl_fail(err, RFL_EINVAL, 0, "planned: parameter %d does not exist", param);
	if (numel != e->net->params[param].numel)
		return rfl_fail(err, RFL_EINVAL, 0, "planned: %s has %lld elements, not %lld",
				e->net->params[param].name, (long long)e->net->params[param].numel,
				(long long)numel);
	return RFL_OK;
}

static enum rfl_rc set_param(struct rfl_engine *e, int param, const float *values, int64_t numel,
			     struct rfl_err *err)
{
	const enum rfl_rc rc = check_param(e, param, numel, err);

	return rc == RFL_OK ? rfl_backend_set(e->backend, param, RFL_PART_VALUE, values, err) : rc;
}

static enum rfl_rc get_param(struct rfl_engine *e, int param, float *out, int64_t numel,
			     struct rfl_err *err)
{
	const enum rfl_rc rc = check_param(e, param, numel, err);

	return rc == RFL_OK ? rfl_backend_get(e->backend, param, RFL_PART_VALUE, out, err) : rc;
}

static enum rfl_rc get_grad(struct rfl_engine *e, int param, float *out, int64_t numel,
			    struct rfl_err *err)
{
	enum rfl_rc rc = check_param(e, param, numel, err);

	if (rc == RFL_OK && rfl_param_is_buffer(e->net->params[param].kind))
		rc = rfl_fail(err, RFL_EINVAL, 0, "planned: %s: is a buffer and has no gradient",
			      e->net->params[param].name);
	if (rc == RFL_OK && !e->fresh)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "planned: %s: gradients exist only between backward and step",
			      e->net->params[param].name);
	return rc == RFL_OK
		       ? rfl_session_gradient(e->sessions[FOR_TRAINING], param, e->summed, out, err)
		       : rc;
}

static float *param_data(struct rfl_engine *e, int param)
{
	(void)e;
	(void)param;
	return NULL; /* in a layout of the library's choice */
}

static enum rfl_rc score(struct rfl_engine *e, struct rfl_score *ret, struct rfl_err *err)
{
	struct rfl_totals totals = { .loss = NAN };
	const enum rfl_rc rc = rfl_backend_totals(e->backend, true, &totals, err);

	*ret = totals.score;
	return rc;
}

static enum rfl_rc sync_engine(struct rfl_engine *e, struct rfl_err *err)
{
	return e->last ? rfl_session_wait(e->last, err) : RFL_OK;
}

/* ---- memory and time ---- */

static enum rfl_rc memory(struct rfl_engine *e, struct rfl_engine_memory *ret, struct rfl_err *err)
{
	(void)err;
	*ret = (struct rfl_engine_memory){ .now = (double)bytes_in_use(e),
					   .allocated_peak = (double)e->peak,
					   .reserved_peak = NAN };
	return RFL_OK;
}

static enum rfl_rc reset_memory(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	e->peak = 0;
	(void)bytes_in_use(e);
	return RFL_OK;
}

static enum rfl_rc reserve_events(struct rfl_engine *e, int64_t n, struct rfl_err *err)
{
	return rfl_backend_reserve_events(e->backend, n, err);
}

static enum rfl_rc record_event(struct rfl_engine *e, int64_t i, struct rfl_err *err)
{
	return rfl_backend_record_event(e->backend, i, err);
}

static enum rfl_rc elapsed(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
			   struct rfl_err *err)
{
	return rfl_backend_elapsed(e->backend, from, to, ret, err);
}

/* ---- state ---- */

static enum rfl_rc snapshot(struct rfl_engine *e, struct rfl_err *err)
{
	const enum rfl_rc rc = rfl_backend_save(e->backend, err);

	if (rc == RFL_OK) {
		e->saved_updates = e->updates;
		e->saved_forwards = e->forwards;
	}
	return rc;
}

static enum rfl_rc restore(struct rfl_engine *e, struct rfl_err *err)
{
	bool replan = false;
	const enum rfl_rc rc = rfl_backend_restore(e->backend, &replan, err);

	forget_recording(e);
	if (replan)
		drop_sessions(e);
	forget_step(e);
	forget_gradients(e);
	if (rc == RFL_OK) {
		e->updates = e->saved_updates;
		e->forwards = e->saved_forwards;
	}
	return rc;
}

/* Pass one part of a parameter through PyTorch's order. */
static enum rfl_rc visit_part(struct rfl_engine *e, bool load, int param, enum rfl_part part,
			      rfl_engine_state_fn fn, void *ctx, struct rfl_err *err)
{
	static const char *const suffixes[] = { "", ":mean", ":square" };
	const struct rfl_param *p = &e->net->params[param];
	RFL_AUTOFREE float *values = rfl_try_array((size_t)p->numel, sizeof(*values));
	char name[RFL_MARK_SIZE];
	enum rfl_rc rc;

	(void)snprintf(name, sizeof(name), "%s%s", p->name, suffixes[part]);
	if (!values)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %s", name);
	rc = rfl_backend_get(e->backend, param, part, values, err);
	if (rc == RFL_OK)
		rc = fn(name, values, (size_t)p->numel * sizeof(*values), ctx, err);
	if (rc == RFL_OK && load)
		rc = rfl_backend_set(e->backend, param, part, values, err);
	return rc;
}

static enum rfl_rc visit_state(struct rfl_engine *e, bool load, rfl_engine_state_fn fn, void *ctx,
			       struct rfl_err *err)
{
	enum rfl_rc rc = rfl_backend_make_state(e->backend, &e->config.optimizer, err);

	if (load) {
		forget_step(e);
		forget_gradients(e);
	}
	for (int i = 0; i < e->net->nparams && rc == RFL_OK; i++) {
		const bool buffer = rfl_param_is_buffer(e->net->params[i].kind);

		for (int k = 0; k < (buffer ? 1 : RFL_PART_COUNT) && rc == RFL_OK; k++)
			if (rfl_backend_has(e->backend, (enum rfl_part)k))
				rc = visit_part(e, load, i, (enum rfl_part)k, fn, ctx, err);
	}
	if (rc == RFL_OK)
		rc = fn("steps", &e->updates, sizeof(e->updates), ctx, err);
	if (rc == RFL_OK)
		rc = fn("random", &e->forwards, sizeof(e->forwards), ctx, err);
	if (rc == RFL_OK && rfl_backend_queue)
		rc = rfl_backend_queue->visit_state(e->backend, load, fn, ctx, err);
	return rc;
}

/* ---- a queue ---- */

static enum rfl_rc device_info(struct rfl_engine *e, struct rfl_engine_device *ret,
			       struct rfl_err *err)
{
	return rfl_backend_queue->device_info(e->backend, ret, err);
}

static enum rfl_rc scaling(struct rfl_engine *e, struct rfl_loss_scaling *ret, struct rfl_err *err)
{
	return rfl_backend_queue->scaling(e->backend, ret, err);
}

static enum rfl_rc host_alloc(struct rfl_engine *e, size_t bytes, void **ret, struct rfl_err *err)
{
	return rfl_backend_queue->host_alloc(e->backend, bytes, ret, err);
}

static void host_free(struct rfl_engine *e, void *memory_)
{
	rfl_backend_queue->host_free(e->backend, memory_);
}

static enum rfl_rc upload(struct rfl_engine *e, const struct rfl_batch *batch, struct rfl_err *err)
{
	const enum rfl_rc rc = check_batch(e, batch, err);

	return rc == RFL_OK ? rfl_backend_queue->upload(e->backend, batch, err) : rc;
}

static enum rfl_rc uploaded(struct rfl_engine *e, struct rfl_err *err)
{
	return rfl_backend_queue->uploaded(e->backend, err);
}

/* Run the steps of a recording, but INPUT. */
static enum rfl_rc record_steps(struct rfl_engine *e, struct rfl_session *s, bool backwards,
				bool updates, struct rfl_err *err)
{
	const struct rfl_plan *plan = rfl_session_plan(s);
	enum rfl_rc rc = run_steps(e, s, 1, plan->nforward, err);

	if (rc == RFL_OK && backwards)
		rc = run_steps(e, s, plan->nforward, plan->nsteps, err);
	if (rc == RFL_OK && updates)
		rc = rfl_session_update(s, &e->config.optimizer, false, err);
	return rc;
}

static enum rfl_rc capture(struct rfl_engine *e, const struct rfl_batch *batch, bool backwards,
			   bool updates, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_session *s = NULL;
	enum rfl_rc rc = check_batch(e, batch, &why), ended;

	forget_recording(e);
	forget_step(e);
	forget_gradients(e);
	if (rc == RFL_OK && e->mark)
		rc = rfl_fail(&why, RFL_EUNSUPPORTED, 0, "a recorded step has no marks");
	if (rc == RFL_OK)
		rc = session_of(e, batch->n, false, &s, &why);
	if (rc == RFL_OK && !e->warm[e->mode == RFL_ENGINE_EVAL ? FOR_EVALUATION : FOR_TRAINING])
		rc = rfl_fail(&why, RFL_EINVAL, 0,
			      "run a step of %lld samples before it is recorded",
			      (long long)batch->n); /* which loads what cannot be loaded then */
	if (rc == RFL_OK && updates)
		rc = rfl_backend_make_state(e->backend, &e->config.optimizer, &why);
	if (rc == RFL_OK)
		rc = rfl_backend_queue->begin(e->backend, &why);
	if (rc == RFL_OK) {
		rc = record_steps(e, s, backwards, updates, &why);
		ended = rfl_backend_queue->end(e->backend, rc == RFL_OK,
					       rc == RFL_OK ? &why : NULL);
		rc = rc == RFL_OK ? ended : rc;
	}
	if (rc != RFL_OK)
		return prefixed(err, &why);
	e->recorded = true;
	e->with_backward = backwards;
	e->with_step = updates;
	return RFL_OK;
}

static enum rfl_rc replay(struct rfl_engine *e, const struct rfl_batch *batch, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_session *const s =
		e->sessions[e->mode == RFL_ENGINE_EVAL ? FOR_EVALUATION : FOR_TRAINING];
	enum rfl_rc rc = check_batch(e, batch, &why);

	if (rc == RFL_OK && (!e->recorded || !s || rfl_session_plan(s)->setup.batch != batch->n))
		rc = rfl_fail(&why, RFL_EINVAL, 0, "no step of %lld samples was recorded",
			      (long long)batch->n);
	if (rc == RFL_OK) {
		e->call = next_call(e, batch);
		rc = rfl_session_run(s, 0, &e->call, &why);
	}
	if (rc == RFL_OK)
		rc = rfl_backend_queue->replay(e->backend, &why);
	if (rc != RFL_OK)
		return prefixed(err, &why);
	e->last = s;
	e->can_backward = false;
	e->summed = false;
	e->has_grads = e->with_backward;
	e->fresh = e->with_backward && !e->with_step;
	e->updates += e->with_step;
	return RFL_OK;
}

/* ---- the plugin ---- */

/* What all back ends have. */
/* clang-format off */
#define MEMBERS \
	.name = "planned", \
	.version = RFL_PLANNED_VERSION, \
	.variant = RFL_PLANNED_VARIANT, \
	.probe = rfl_backend_probe, \
	.library_version = rfl_backend_version, \
	.unsupported = unsupported, \
	.open = open_engine, \
	.close = close_engine, \
	.set_mode = set_mode, \
	.set_optimizer = set_optimizer, \
	.forward = forward, \
	.forward_traced = forward_traced, \
	.zero_grad = zero_grad, \
	.backward = backward, \
	.step = step, \
	.reset_optimizer = reset_optimizer, \
	.loss = loss, \
	.logits = logits, \
	.set_param = set_param, \
	.get_param = get_param, \
	.get_grad = get_grad, \
	.param_data = param_data, \
	.sync = sync_engine, \
	.memory = memory, \
	.snapshot = snapshot, \
	.restore = restore, \
	.mark = mark, \
	.reset_memory = reset_memory, \
	.reserve_events = reserve_events, \
	.record_event = record_event, \
	.elapsed = elapsed, \
	.optimizer_kernels = optimizer_kernels, \
	.score = score, \
	.visit_state = visit_state
/* clang-format on */

static const struct rfl_engine_ops without_queue = { MEMBERS };
static const struct rfl_engine_ops with_queue = {
	MEMBERS,
	.device_info = device_info,
	.scaling = scaling,
	.host_alloc = host_alloc,
	.host_free = host_free,
	.upload = upload,
	.uploaded = uploaded,
	.capture = capture,
	.replay = replay,
};

static const struct rfl_engine_ops *ops(void)
{
	return rfl_backend_queue ? &with_queue : &without_queue;
}

extern RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi);

const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi)
{
	return abi == RFL_ENGINE_ABI ? ops() : NULL;
}
