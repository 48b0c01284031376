/* session.c - a plan with its convolutions and its memory; gradients and updates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"
#include "runner/planned/cuda/backend.h"

/* Candidates that --cudnn-benchmark times. */
enum { CANDIDATES = 8 };

/* ---- making a session ---- */

static bool is_conv(const struct rfl_plan_step *at)
{
	return at->op == RFL_PLAN_CONV || at->op == RFL_PLAN_LINEAR;
}

static enum rfl_rc named(const struct rfl_session *s, int node, enum rfl_rc rc, struct rfl_err *why,
			 struct rfl_err *err)
{
	char name[512] = "loss";

	if (rc == RFL_OK)
		return RFL_OK;
	if (node < s->b->net->nnodes)
		(void)rfl_op_layer_name(&s->b->net->nodes[node], name, sizeof(name));
	rfl_err_prefix(why, "layer '%s'", name);
	return rfl_err_pass(err, why);
}

static bool same(const struct rfl_conv *a, const struct rfl_conv *b)
{
	return a->pass == b->pass && a->bias == b->bias && a->relu == b->relu &&
	       memcmp(&a->batch, &b->batch,
		      offsetof(struct rfl_conv, bias) - offsetof(struct rfl_conv, batch)) == 0;
}

/* A plan with memory of its own. */
struct trial {
	const struct rfl_backend *b;
	const struct rfl_conv_plan *plan;
	rfl_cuda_address memory[4];
};

static enum rfl_rc run_trial(void *ctx, struct rfl_err *err)
{
	const struct trial *t = ctx;

	return rfl_conv_run(t->b->cudnn, t->plan, rfl_cuda__pointer(t->memory[0]),
			    rfl_cuda__pointer(t->memory[1]), rfl_cuda__pointer(t->memory[2]), NULL,
			    rfl_cuda__pointer(t->memory[3]), err);
}

/* Move the fastest of the plans to the front. Without memory for that, the first stays. */
static void choose_fastest(const struct rfl_backend *b, const struct rfl_conv *c,
			   struct rfl_conv_plan *plans, int n)
{
	const int64_t size = rfl_cuda__size(b->type);
	int64_t bytes[4] = {
		size * c->batch * c->channels[0] * c->in[0] * c->in[1],
		size * c->channels[1] * c->channels[0] / c->groups * c->kernel[0] * c->kernel[1],
		size * c->batch * c->channels[1] * c->out[0] * c->out[1],
		0,
	};
	struct trial trial = { .b = b };
	struct rfl_err ignored = RFL_ERR_INIT;
	float best = INFINITY, ms;
	enum rfl_rc rc = RFL_OK;
	int fastest = 0;

	for (int i = 0; i < n; i++)
		bytes[3] = plans[i].workspace > bytes[3] ? plans[i].workspace : bytes[3];
	for (int i = 0; i < 4 && rc == RFL_OK; i++)
		rc = rfl_cuda__alloc(b, (size_t)bytes[i], "timing cuDNN's plans", &trial.memory[i],
				     &ignored);
	for (int i = 0; i < n && rc == RFL_OK; i++) {
		trial.plan = &plans[i];
		if (rfl_cuda__time(b, run_trial, &trial, &ms, &ignored) == RFL_OK && ms < best) {
			best = ms;
			fastest = i;
		}
	}
	for (int i = 0; i < 4; i++)
		rfl_cuda__free(b, &trial.memory[i]);
	if (fastest > 0) {
		const struct rfl_conv_plan first = plans[0];

		plans[0] = plans[fastest];
		plans[fastest] = first;
	}
}

/* Make the plan of a convolution. */
static enum rfl_rc make_plan(const struct rfl_backend *b, struct made *m, struct rfl_err *err)
{
	const struct rfl_conv_rules rules = rfl_cuda__rules(b);
	struct rfl_conv_plan plans[CANDIDATES];
	struct rfl_conv plain = m->conv;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_EUNSUPPORTED;
	int n = 0;

	plain.bias = plain.relu = false;
	if (m->conv.bias || m->conv.relu) {
		rc = rfl_conv_plans(b->cudnn, &m->conv, &rules, 1, plans, &n, &why);
		m->fused = rc == RFL_OK;
	}
	if (rc != RFL_OK)
		rc = rfl_conv_plans(b->cudnn, &plain, &rules, b->benchmark ? CANDIDATES : 1, plans,
				    &n, err);
	if (rc != RFL_OK)
		return rc;
	if (n > 1)
		choose_fastest(b, &plain, plans, n);
	for (int i = 1; i < n; i++)
		(void)b->cudnn->calls.descriptor_destroy(plans[i].plan);
	m->plan = plans[0];
	return RFL_OK;
}

/* The plan of a step, made once per kind of convolution. */
static enum rfl_rc make_conv(struct rfl_session *s, int step, struct rfl_err *err)
{
	struct rfl_backend *const b = s->b;
	struct task *t = &s->tasks[step];
	struct made *m;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;
	size_t i = 0;

	rfl_reserve(&b->made, &b->made_cap, b->nmade + 1);
	m = &b->made[b->nmade];
	*m = (struct made){ .conv = rfl_conv_of(s->plan, step) };
	while (i < b->nmade && !same(&b->made[i].conv, &m->conv))
		i++;
	if (i == b->nmade) {
		rc = make_plan(b, m, &why);
		b->nmade += rc == RFL_OK;
	}
	t->conv = b->made[i].plan;
	t->fused = b->made[i].fused;
	return named(s, s->plan->steps[step].node, rc, &why, err);
}

static void note_gradients(struct rfl_session *s)
{
	static const enum rfl_param_kind kinds[] = {
		RFL_PARAM_CONV_WEIGHT, RFL_PARAM_CONV_BIAS,   RFL_PARAM_LINEAR_WEIGHT,
		RFL_PARAM_LINEAR_BIAS, RFL_PARAM_NORM_WEIGHT, RFL_PARAM_NORM_BIAS,
	};

	for (int i = 0; i < s->plan->nsteps; i++) {
		const struct rfl_plan_step *at = &s->plan->steps[i];

		if (at->buffer[RFL_PLAN_DWEIGHT] < 0 && at->buffer[RFL_PLAN_DBIAS] < 0)
			continue;
		for (int k = RFL_PLAN_DWEIGHT; k <= RFL_PLAN_DBIAS; k++)
			if (at->buffer[k] >= 0) /* gradients have a block of their own */
				s->plan->buffers[at->buffer[k]].bytes = 0;
		for (size_t k = 0; k < RFL_ARRAY_LEN(kinds); k++) {
			const int param = rfl_plan_param(s->b->net, at->node, kinds[k]);

			if (param >= 0)
				s->has_gradient[param] = true;
		}
	}
}

enum rfl_rc rfl_session_new(struct rfl_backend *b, struct rfl_plan *take, struct rfl_session **ret,
			    struct rfl_err *err)
{
	struct rfl_session *s = rfl_alloc_array(1, sizeof(*s));
	enum rfl_rc rc = RFL_OK;

	*s = (struct rfl_session){ .b = b, .plan = take };
	s->tasks = rfl_alloc_array((size_t)take->nsteps, sizeof(*s->tasks));
	s->has_gradient = rfl_alloc_array((size_t)b->net->nparams, sizeof(*s->has_gradient));
	note_gradients(s);
	rfl_cuda__make_norms(s);
	for (int i = 0; i < take->nsteps && rc == RFL_OK; i++) {
		if (is_conv(&take->steps[i]))
			rc = make_conv(s, i, err);
		if (rc == RFL_OK)
			rfl_cuda__ask(s, i);
	}
	if (rc == RFL_OK && take->setup.training && !b->gradients)
		rc = rfl_cuda__alloc(b, 4 * b->floats, "gradients", &b->gradients, err);
	if (rc == RFL_OK) {
		rfl_plan_place(take);
		rc = rfl_cuda__alloc(b, (size_t)take->bytes, "the plan of this batch", &s->block,
				     err);
	}
	if (rc == RFL_OK)
		rc = rfl_cuda__time_norms(s, err);
	if (rc == RFL_OK)
		*ret = s;
	else
		rfl_session_free(s);
	return rc;
}

void rfl_session_free(struct rfl_session *s)
{
	if (!s)
		return;
	(void)s->b->queue.synchronize(s->b->stream);
	rfl_cuda__free_norms(s);
	rfl_cuda__free(s->b, &s->block);
	rfl_plan_free(s->plan);
	free(s->tasks);
	free(s->has_gradient);
	free(s);
}

const struct rfl_plan *rfl_session_plan(const struct rfl_session *s)
{
	return s->plan;
}

/* ---- running ---- */

enum rfl_rc rfl_session_run(struct rfl_session *s, int step, struct rfl_session_call *call,
			    struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	const enum rfl_rc rc = rfl_cuda__run(s, step, call, &why);

	return named(s, s->plan->steps[step].node, rc, &why, err);
}

enum rfl_rc rfl_session_wait(struct rfl_session *s, struct rfl_err *err)
{
	return QUEUE(s->b, synchronize, err, s->b->stream);
}

/* The last loss is computed again, because 16 bits may overflow before they are multiplied. */
enum rfl_rc rfl_session_scale_loss(struct rfl_session *s, double weight, struct rfl_err *err)
{
	const int last = s->plan->nforward - 1;
	enum rfl_rc rc = weight == 1 ? RFL_OK : rfl_cuda__run_loss(s, last, weight, err);

	for (int i = 0; i < last && weight != 1 && rc == RFL_OK; i++) {
		const struct rfl_plan_step *at = &s->plan->steps[i];
		void *dx = rfl_cuda__data(s, at, RFL_PLAN_DX);

		if (at->op == RFL_PLAN_LOSS)
			rc = LAUNCH(s->b, err, elements,
				    .n = rfl_plan_size(s->plan, at, RFL_PLAN_DX) /
					 rfl_cuda__size(s->b->type),
				    .type = s->b->type, .op = RFL_E_AFFINE, .a = dx, .y = dx,
				    .scale = (float)weight);
	}
	return rc;
}

enum rfl_rc rfl_session_output(struct rfl_session *s, int node, float *out, struct rfl_err *err)
{
	const struct rfl_backend *b = s->b;
	const struct rfl_shape *const shape = rfl_plan_image(s->plan->net, node);
	const int64_t each = rfl_shape_numel(shape), n = s->plan->setup.batch * each;
	const int64_t channels = shape->dim[0], area = each / channels;
	RFL_AUTOFREE float *there = rfl_try_array((size_t)n, sizeof(*there));
	rfl_cuda_address floats = 0;
	enum rfl_rc rc;

	if (!there)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for an output");
	rc = rfl_cuda__alloc(b, 4 * (size_t)n, "an output", &floats, err);
	if (rc == RFL_OK)
		rc = LAUNCH(
			b, err, widen, .n = n, .type = b->type,
			.from = rfl_cuda__pointer(
				s->block +
				(rfl_cuda_address)s->plan->buffers[s->plan->output[node]].offset),
			.y = rfl_cuda__pointer(floats));
	if (rc == RFL_OK)
		rc = rfl_cuda__fetch(b, there, floats, 4 * (size_t)n, err);
	for (int64_t i = 0; i < n && rc == RFL_OK; i++) /* from NHWC */
		out[i / each * each + i % channels * area + i % each / channels] = there[i];
	rfl_cuda__free(b, &floats);
	return rc;
}

/* ---- gradients ---- */

/* The next run of parameters with gradients that follow each other in memory: its first float, and
 * their number; false: there is none. */
static bool next_run(const struct rfl_session *s, int *param, size_t *first, size_t *n)
{
	const struct rfl_backend *b = s->b;
	int i = *param;

	while (i < b->net->nparams && !s->has_gradient[i])
		i++;
	if (i == b->net->nparams)
		return false;
	*first = b->at[i];
	while (i < b->net->nparams && s->has_gradient[i])
		i++;
	*n = (i < b->net->nparams ? b->at[i] : b->floats) - *first;
	*param = i;
	return true;
}

static float *floats_at(rfl_cuda_address block, size_t first)
{
	return block ? (float *)rfl_cuda__pointer(block + 4 * first) : NULL;
}

enum rfl_rc rfl_session_accumulate(struct rfl_session *s, bool first, struct rfl_err *err)
{
	struct rfl_backend *b = s->b;
	enum rfl_rc rc = RFL_OK;

	if (!b->sums)
		rc = rfl_cuda__alloc(b, 4 * b->floats, "sums of gradients", &b->sums, err);
	if (rc == RFL_OK && first)
		return QUEUE(b, copy, err, b->sums, b->gradients, 4 * b->floats, b->stream);
	if (rc == RFL_OK)
		rc = LAUNCH(b, err, add_floats, .n = (int64_t)b->floats,
			    .x = floats_at(b->gradients, 0), .y = floats_at(b->sums, 0));
	return rc;
}

enum rfl_rc rfl_session_gradient(struct rfl_session *s, int param, bool summed, float *out,
				 struct rfl_err *err)
{
	const struct rfl_backend *b = s->b;
	const size_t n = (size_t)b->net->params[param].numel;
	RFL_AUTOFREE float *there = rfl_try_array(n, sizeof(*there));
	struct rfl_kernel_state state = { .scale = 1 };
	enum rfl_rc rc;

	if (!s->has_gradient[param])
		return rfl_fail(err, RFL_EINVAL, 0, "%s: has no gradient",
				b->net->params[param].name);
	if (!there)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a gradient");
	rc = rfl_cuda__fetch(b, there, (summed ? b->sums : b->gradients) + 4 * b->at[param], 4 * n,
			     err);
	if (rc == RFL_OK)
		rc = rfl_cuda__fetch(b, &state, b->state, sizeof(state), err);
	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < n; i++)
		there[i] /= state.scale;
	rfl_cuda__reorder(b->net, param, false, there, out);
	return RFL_OK;
}

/* Decide whether and with which factors the update happens. */
static enum rfl_rc decide(struct rfl_session *s, const struct rfl_optimizer *o,
			  rfl_cuda_address gradients, struct rfl_err *err)
{
	const struct rfl_backend *b = s->b;
	const bool scaling = b->type == RFL_VALUE_F16, look = scaling || o->grad_clip > 0;
	int64_t chunks = 0;
	enum rfl_rc rc = RFL_OK;

	/* one run of all: what has no gradient is zero since the block was made */
	if (look) {
		double *const partials = rfl_cuda__pointer(b->partials);

		chunks = FOLDED;
		rc = LAUNCH(b, err, squares, .n = SQUARES, .size = (int64_t)b->floats,
			    .x = floats_at(gradients, 0), .partials = partials);
		if (rc == RFL_OK)
			rc = LAUNCH(b, err, fold_squares, .n = FOLDED, .size = SQUARES,
				    .from = partials, .to = partials + SQUARES);
	}
	if (rc == RFL_OK)
		rc = LAUNCH(b, err, decide, .n = 1, .chunks = chunks,
			    .partials = (double *)rfl_cuda__pointer(b->partials) + SQUARES,
			    .grad_clip = o->grad_clip, .beta1 = o->beta1, .beta2 = o->beta2,
			    .scaling = scaling, .state = rfl_cuda__pointer(b->state));
	return rc;
}

enum rfl_rc rfl_session_update(struct rfl_session *s, const struct rfl_optimizer *o, bool summed,
			       struct rfl_err *err)
{
	struct rfl_backend *b = s->b;
	const rfl_cuda_address gradients = summed ? b->sums : b->gradients;
	enum rfl_rc rc = rfl_backend_make_state(b, o, err);
	size_t first, n;

	if (rc == RFL_OK)
		rc = decide(s, o, gradients, err);
	for (int param = 0; rc == RFL_OK && next_run(s, &param, &first, &n);) {
		float *const p = floats_at(b->part[RFL_PART_VALUE], first),
			     *const mean = floats_at(b->part[RFL_PART_MEAN], first);
		void *const copy = b->values ? rfl_cuda__pointer(b->values + 2 * first) : NULL;

		if (o->rule == RFL_RULE_SGD)
			rc = LAUNCH(b, err, sgd, .n = (int64_t)n, .type = b->type,
				    .lr = (float)o->lr, .weight_decay = (float)o->weight_decay,
				    .momentum = (float)o->momentum,
				    .state = rfl_cuda__pointer(b->state),
				    .g = floats_at(gradients, first), .p = p,
				    .mean = o->momentum != 0 ? mean : NULL, .copy = copy);
		else
			rc = LAUNCH(b, err, adam, .n = (int64_t)n, .type = b->type,
				    .lr = (float)o->lr, .weight_decay = (float)o->weight_decay,
				    .beta1 = (float)o->beta1, .beta2 = (float)o->beta2,
				    .rest1 = (float)(1 - o->beta1), .rest2 = (float)(1 - o->beta2),
				    .eps = (float)o->eps, .decoupled = o->rule == RFL_RULE_ADAMW,
				    .state = rfl_cuda__pointer(b->state),
				    .g = floats_at(gradients, first), .p = p, .mean = mean,
				    .square = floats_at(b->part[RFL_PART_SQUARE], first),
				    .copy = copy);
	}
	return rc;
}
