/* norms.c - batch norm in training by plans of cuDNN, where --cudnn-benchmark finds them faster
 * than our kernels: they read the images once where those fit into the chip, but are compiled for
 * each shape, which takes about a second. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "runner/planned/cuda/backend.h"

static bool same(const struct rfl_norm_graph *a, const struct rfl_norm_graph *b)
{
	return a->backward == b->backward && a->batch == b->batch && a->channels == b->channels &&
	       a->size[0] == b->size[0] && a->size[1] == b->size[1] &&
	       a->activation == b->activation && a->other == b->other && a->sum == b->sum;
}

static int backward_of(const struct rfl_plan *plan, int step)
{
	for (int i = plan->nforward; i < plan->nsteps; i++)
		if (plan->steps[i].forward == step && plan->steps[i].op == RFL_PLAN_NORM &&
		    plan->steps[i].buffer[RFL_PLAN_DX] >= 0)
			return i;
	return -1;
}

static void make_plans(const struct rfl_session *s, struct norm *norm)
{
	const struct rfl_conv_rules rules = rfl_cuda__rules(s->b);
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;
	int n;

	for (int k = 0; k < 2 && rc == RFL_OK; k++)
		rc = rfl_norm_plans(s->b->cudnn, &norm->graph[k], &rules, 1, &norm->plan[k], &n,
				    &why);
	norm->refused = rc != RFL_OK;
}

void rfl_cuda__make_norms(struct rfl_session *s)
{
	const struct rfl_plan *const plan = s->plan;
	const bool wanted = s->b->benchmark && plan->setup.training && !plan->setup.frozen;

	s->norms = rfl_alloc_array((size_t)plan->nsteps, sizeof(*s->norms));
	for (int i = 0; i < plan->nsteps; i++)
		s->tasks[i].norm = -1;
	for (int i = 0; i < plan->nforward && wanted; i++) {
		const int back = plan->steps[i].op == RFL_PLAN_NORM ? backward_of(plan, i) : -1;
		struct norm *const norm = &s->norms[s->nnorms];
		int k = 0;

		if (back < 0)
			continue;
		*norm = (struct norm){ .graph = { rfl_norm_of(plan, i), rfl_norm_of(plan, back) },
				       .step = { i, back } };
		while (k < s->nnorms && !(same(&s->norms[k].graph[0], &norm->graph[0]) &&
					  same(&s->norms[k].graph[1], &norm->graph[1])))
			k++;
		if (k == s->nnorms) {
			s->nnorms++;
			make_plans(s, norm);
		}
		if (!s->norms[k].refused)
			s->tasks[i].norm = s->tasks[back].norm = k;
	}
}

void rfl_cuda__free_norms(struct rfl_session *s)
{
	for (int i = 0; i < s->nnorms; i++)
		for (int k = 0; k < 2; k++)
			if (s->norms[i].plan[k].plan)
				(void)s->b->cudnn->calls.descriptor_destroy(
					s->norms[i].plan[k].plan);
	free(s->norms);
}

struct trial {
	struct rfl_session *s;
	const struct norm *norm;
};

/* Both directions. */
static enum rfl_rc run_trial(void *ctx, struct rfl_err *err)
{
	const struct trial *t = ctx;
	const enum rfl_rc rc = rfl_cuda__run(t->s, t->norm->step[0], NULL, err);

	return rc == RFL_OK ? rfl_cuda__run(t->s, t->norm->step[1], NULL, err) : rc;
}

enum rfl_rc rfl_cuda__time_norms(struct rfl_session *s, struct rfl_err *err)
{
	struct rfl_backend *const b = s->b;
	struct rfl_err ignored = RFL_ERR_INIT;
	rfl_cuda_address saved = 0; /* the trials change running statistics */
	float ours, theirs;
	enum rfl_rc rc = RFL_OK;

	if (s->nnorms == 0 ||
	    rfl_cuda__alloc(b, 4 * b->floats, "timing batch norm", &saved, &ignored) != RFL_OK)
		return RFL_OK; /* then our kernels are used */
	rc = QUEUE(b, copy, err, saved, b->part[RFL_PART_VALUE], 4 * b->floats, b->stream);
	for (int i = 0; i < s->nnorms && rc == RFL_OK; i++) {
		struct norm *const norm = &s->norms[i];
		struct trial trial = { s, norm };

		if (norm->refused)
			continue;
		rc = rfl_cuda__time(b, run_trial, &trial, &ours, err);
		norm->used = true;
		if (rfl_cuda__time(b, run_trial, &trial, &theirs, &ignored) != RFL_OK)
			theirs = INFINITY;
		norm->used = theirs < ours;
	}
	if (rc == RFL_OK)
		rc = QUEUE(b, copy, err, b->part[RFL_PART_VALUE], saved, 4 * b->floats, b->stream);
	if (rc == RFL_OK)
		rc = QUEUE(b, synchronize, err, b->stream);
	rfl_cuda__free(b, &saved);
	return rc;
}

enum rfl_rc rfl_cuda__run_norm(struct rfl_session *s, int step, struct rfl_err *err)
{
	static const enum rfl_plan_slot slots[] = {
		[RFL_NORM_X] = RFL_PLAN_X,   [RFL_NORM_OTHER] = RFL_PLAN_OTHER,
		[RFL_NORM_Y] = RFL_PLAN_Y,   [RFL_NORM_MASK] = RFL_PLAN_MASK,
		[RFL_NORM_DY] = RFL_PLAN_DY, [RFL_NORM_DY2] = RFL_PLAN_DY2,
		[RFL_NORM_DX] = RFL_PLAN_DX, [RFL_NORM_DOTHER] = RFL_PLAN_DOTHER,
	};
	const struct rfl_plan_step *const at = &s->plan->steps[step];
	const struct rfl_batch_norm *const bn = &s->plan->net->nodes[at->node].attr.batch_norm;
	const struct task *const t = &s->tasks[step];
	const struct norm *const norm = &s->norms[t->norm];
	const bool back = at->pass != RFL_PLAN_FORWARD;
	const rfl_cuda_address value = s->b->part[RFL_PART_VALUE];
	void *tensors[RFL_NORM_TENSORS] = { NULL };

	for (size_t i = 0; i < RFL_ARRAY_LEN(slots); i++)
		tensors[i] = rfl_cuda__data(s, at, slots[i]);
	tensors[RFL_NORM_MEAN] = rfl_cuda__data(s, at, RFL_PLAN_MEAN);
	tensors[RFL_NORM_INVERSE] = rfl_cuda__data(s, at, RFL_PLAN_INVERSE);
	tensors[RFL_NORM_GAMMA] = rfl_cuda__floats(s, at, RFL_PARAM_NORM_WEIGHT, value);
	tensors[RFL_NORM_BETA] = rfl_cuda__floats(s, at, RFL_PARAM_NORM_BIAS, value);
	tensors[RFL_NORM_RUNNING_MEAN] = rfl_cuda__floats(s, at, RFL_PARAM_RUNNING_MEAN, value);
	tensors[RFL_NORM_RUNNING_VARIANCE] = rfl_cuda__floats(s, at, RFL_PARAM_RUNNING_VAR, value);
	tensors[RFL_NORM_DGAMMA] = rfl_cuda__floats(s, at, RFL_PARAM_NORM_WEIGHT, s->b->gradients);
	tensors[RFL_NORM_DBETA] = rfl_cuda__floats(s, at, RFL_PARAM_NORM_BIAS, s->b->gradients);
	return rfl_norm_run(s->b->cudnn, &norm->graph[back], &norm->plan[back], tensors,
			    (float)bn->eps, (float)bn->momentum,
			    rfl_cuda__scratch(s, step, t->workspace), err);
}
