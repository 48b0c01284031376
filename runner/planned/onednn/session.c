/* session.c - a plan with its primitives and its memory; gradients and updates. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runner/planned/onednn/onednn.h"

/* ---- layouts ---- */

dnnl_memory_desc_t rfl_dnnl__value(const struct rfl_session *s, int node)
{
	const struct rfl_shape *image = rfl_plan_image(s->plan->net, node);
	int64_t dims[RFL_NET_MAX_DIMS + 1] = { s->plan->setup.batch };
	dnnl_memory_desc_t md;

	memcpy(dims + 1, image->dim, (size_t)image->ndim * sizeof(*dims));
	(void)dnnl_memory_desc_init_by_tag(&md, image->ndim + 1, dims, rfl_dnnl__type(s->b),
					   image->ndim == 3 ? dnnl_acdb : dnnl_ab);
	return md;
}

/* ---- primitives ---- */

dnnl_primitive_attr_t rfl_dnnl__attributes(bool relu)
{
	dnnl_primitive_attr_t attr = NULL;
	dnnl_post_ops_t after = NULL;

	if (dnnl_primitive_attr_create(&attr) != dnnl_success)
		rfl_out_of_memory();
	(void)dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
	if (!relu)
		return attr;
	if (dnnl_post_ops_create(&after) != dnnl_success)
		rfl_out_of_memory();
	(void)dnnl_post_ops_append_eltwise(after, 1.0F, dnnl_eltwise_relu, 0.0F, 0.0F);
	(void)dnnl_primitive_attr_set_post_ops(attr, after);
	(void)dnnl_post_ops_destroy(after);
	return attr;
}

enum rfl_rc rfl_dnnl__choose(struct rfl_session *s, int step, const_dnnl_op_desc_t desc,
			     dnnl_primitive_attr_t attr, struct rfl_err *err)
{
	const struct rfl_plan_step *at = &s->plan->steps[step];
	const const_dnnl_primitive_desc_t hint =
		at->forward >= 0 ? s->tasks[at->forward].chosen : NULL;
	const dnnl_status_t st =
		dnnl_primitive_desc_create(&s->tasks[step].chosen, desc, attr, s->b->engine, hint);

	(void)dnnl_primitive_attr_destroy(attr);
	return rfl_dnnl__check(st, s->plan->net, at->node, rfl_plan_op_names[at->op], err);
}

int64_t rfl_dnnl__scratch(struct rfl_session *s, int step, int64_t bytes)
{
	struct task *t = &s->tasks[step];
	const int64_t at = t->scratch;

	t->scratch += (bytes + 63) & ~INT64_C(63);
	return at;
}

static struct primitive *last_primitive(struct rfl_session *s, int step)
{
	struct task *t = &s->tasks[step];

	return &t->primitives[t->n - 1];
}

void rfl_dnnl__take(struct rfl_session *s, int step, const struct argument *argument)
{
	struct primitive *p = last_primitive(s, step);

	p->arguments[p->n++] = *argument;
}

void rfl_dnnl__argument(struct rfl_session *s, int step, int id, const dnnl_memory_desc_t *layout,
			enum rfl_plan_slot slot)
{
	rfl_dnnl__take(
		s, step,
		&(struct argument){ .id = id, .layout = *layout, .slot = slot, .param = -1 });
}

void rfl_dnnl__parameter(struct rfl_session *s, int step, int id, int param)
{
	rfl_dnnl__take(s, step,
		       &(struct argument){
			       .id = id, .layout = s->b->weights[param].layout, .param = param });
}

static enum rfl_rc append(struct rfl_session *s, int step, const_dnnl_primitive_desc_t pd,
			  struct rfl_err *err)
{
	struct task *t = &s->tasks[step];
	struct primitive *p = &t->primitives[t->n++];
	const dnnl_memory_desc_t *scratch =
		dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	const dnnl_status_t st = dnnl_primitive_create(&p->primitive, pd);
	int64_t bytes;

	if (st != dnnl_success)
		return rfl_dnnl__check(st, s->plan->net, s->plan->steps[step].node, "primitive",
				       err);
	bytes = scratch ? (int64_t)dnnl_memory_desc_get_size(scratch) : 0;
	if (bytes > 0)
		rfl_dnnl__take(s, step,
			       &(struct argument){ .id = DNNL_ARG_SCRATCHPAD,
						   .layout = *scratch,
						   .slot = RFL_PLAN_SCRATCH,
						   .offset = rfl_dnnl__scratch(s, step, bytes),
						   .param = -1 });
	return RFL_OK;
}

enum rfl_rc rfl_dnnl__add(struct rfl_session *s, int step, struct rfl_err *err)
{
	return append(s, step, s->tasks[step].chosen, err);
}

enum rfl_rc rfl_dnnl__weight(struct rfl_session *s, int step, int param,
			     const dnnl_memory_desc_t *wanted, struct argument *ret,
			     struct rfl_err *err)
{
	const dnnl_memory_desc_t *is = &s->b->weights[param].layout;
	const int64_t bytes = (int64_t)dnnl_memory_desc_get_size(wanted);
	dnnl_primitive_attr_t attr;
	dnnl_primitive_desc_t pd;
	dnnl_status_t st;
	enum rfl_rc rc;

	*ret = (struct argument){
		.id = DNNL_ARG_WEIGHTS, .layout = *wanted, .param = -1, .slot = RFL_PLAN_SCRATCH
	};
	if (dnnl_memory_desc_equal(is, wanted)) {
		ret->param = param;
		return RFL_OK;
	}
	attr = rfl_dnnl__attributes(false);
	st = dnnl_reorder_primitive_desc_create(&pd, is, s->b->engine, wanted, s->b->engine, attr);
	(void)dnnl_primitive_attr_destroy(attr);
	if (st != dnnl_success)
		return rfl_dnnl__check(st, s->plan->net, s->plan->steps[step].node, "reorder", err);
	if (s->plan->setup.training) {
		ret->offset = rfl_dnnl__scratch(s, step, bytes);
	} else { /* weights do not change between forward passes */
		ret->kept = true;
		ret->offset = s->kept_bytes;
		s->kept_bytes += (bytes + 63) & ~INT64_C(63);
	}
	rc = append(s, step, pd, err);
	(void)dnnl_primitive_desc_destroy(pd);
	if (rc != RFL_OK)
		return rc;
	last_primitive(s, step)->prepares = ret->kept;
	rfl_dnnl__parameter(s, step, DNNL_ARG_FROM, param);
	rfl_dnnl__take(s, step,
		       &(struct argument){ .id = DNNL_ARG_TO,
					   .layout = *wanted,
					   .slot = RFL_PLAN_SCRATCH,
					   .offset = ret->offset,
					   .param = -1,
					   .kept = ret->kept });
	return RFL_OK;
}

/* ---- making a session ---- */

static enum rfl_rc each_step(struct rfl_session *s, bool make, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < s->plan->nsteps && rc == RFL_OK; i++) {
		const struct operation *op = rfl_dnnl__operation(s->plan->steps[i].op);

		if (make && op->make)
			rc = op->make(s, i, err);
		else if (!make && op->choose)
			rc = op->choose(s, i, err);
		if (make)
			rfl_plan_ask(s->plan, i, RFL_PLAN_SCRATCH, s->tasks[i].scratch);
	}
	return rc;
}

/* The first plan for training decides the layouts of the weights: those in which the library writes
 * their gradients, so that an update needs no conversion. */
static enum rfl_rc adopt_layouts(struct rfl_session *s, struct rfl_err *err)
{
	struct rfl_backend *b = s->b;
	RFL_AUTOFREE dnnl_memory_desc_t *layouts =
		rfl_alloc_array((size_t)b->net->nparams, sizeof(*layouts));

	if (!s->plan->setup.training || b->generation > 1)
		return RFL_OK;
	for (int i = 0; i < b->net->nparams; i++)
		layouts[i] = b->weights[i].layout;
	for (int i = 0; i < s->plan->nsteps; i++) {
		const struct rfl_plan_step *step = &s->plan->steps[i];
		const int param =
			step->op == RFL_PLAN_CONV
				? rfl_plan_param(b->net, step->node, RFL_PARAM_CONV_WEIGHT)
			: step->op == RFL_PLAN_LINEAR
				? rfl_plan_param(b->net, step->node, RFL_PARAM_LINEAR_WEIGHT)
				: -1;

		if (param >= 0 && step->pass == RFL_PLAN_WGRAD)
			layouts[param] = *dnnl_primitive_desc_query_md(
				s->tasks[i].chosen, dnnl_query_diff_weights_md, 0);
	}
	return rfl_dnnl__relayout(b, layouts, err);
}

/* The buffer of a parameter's gradient has the size of the parameter's layout. */
static int gradient_param(const struct rfl_session *s, const struct rfl_plan_step *step, bool bias)
{
	const struct rfl_net *net = s->plan->net;
	static const enum rfl_param_kind kinds[][2] = {
		{ RFL_PARAM_CONV_WEIGHT, RFL_PARAM_CONV_BIAS },
		{ RFL_PARAM_LINEAR_WEIGHT, RFL_PARAM_LINEAR_BIAS },
		{ RFL_PARAM_NORM_WEIGHT, RFL_PARAM_NORM_BIAS },
	};

	if (step->buffer[bias ? RFL_PLAN_DBIAS : RFL_PLAN_DWEIGHT] < 0)
		return -1;
	return rfl_plan_param(net, step->node,
			      kinds[step->op == RFL_PLAN_CONV     ? 0
				    : step->op == RFL_PLAN_LINEAR ? 1
								  : 2][bias]);
}

static void size_gradients(struct rfl_session *s)
{
	for (int i = 0; i < s->plan->nsteps; i++)
		for (int bias = 0; bias < 2; bias++) {
			const struct rfl_plan_step *step = &s->plan->steps[i];
			const int param = gradient_param(s, step, bias);

			if (param >= 0)
				s->plan->buffers[step->buffer[bias ? RFL_PLAN_DBIAS
								   : RFL_PLAN_DWEIGHT]]
					.bytes = (int64_t)(4 * s->b->weights[param].floats);
		}
}

static char *address(const struct rfl_session *s, const struct rfl_plan_step *step,
		     enum rfl_plan_slot slot)
{
	const int buffer = step->buffer[slot];

	return buffer < 0 ? NULL : s->block + s->plan->buffers[buffer].offset;
}

static enum rfl_rc bind(struct rfl_session *s, int step, struct primitive *p, struct rfl_err *err)
{
	for (int k = 0; k < p->n; k++) {
		const struct argument *a = &p->arguments[k];
		void *data = a->param >= 0 ? (void *)rfl_dnnl__data(s->b, a->param, RFL_PART_VALUE)
			     : a->kept     ? s->kept + a->offset
					   : address(s, &s->plan->steps[step], a->slot) + a->offset;
		const dnnl_status_t st =
			dnnl_memory_create(&p->bound[k].memory, &a->layout, s->b->engine, data);

		p->bound[k].arg = a->id;
		if (st != dnnl_success)
			return rfl_dnnl__check(st, s->plan->net, s->plan->steps[step].node,
					       "memory", err);
	}
	return RFL_OK;
}

static enum rfl_rc bind_all(struct rfl_session *s, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	rfl_plan_place(s->plan);
	s->block = rfl_dnnl__map((size_t)s->plan->bytes + 1);
	if (s->kept_bytes > 0)
		s->kept = rfl_dnnl__map((size_t)s->kept_bytes);
	if (!s->block || (s->kept_bytes > 0 && !s->kept))
		return rfl_fail(err, RFL_EDEVMEM, 0,
				"%s: out of memory: the plan of batch %lld needs %lld MiB",
				s->b->net->model, (long long)s->plan->setup.batch,
				(long long)(s->plan->bytes + s->kept_bytes) >> 20);
	for (int i = 0; i < s->plan->nsteps; i++)
		for (int k = 0; k < s->tasks[i].n && rc == RFL_OK; k++)
			rc = bind(s, i, &s->tasks[i].primitives[k], err);
	return rc;
}

enum rfl_rc rfl_session_new(struct rfl_backend *b, struct rfl_plan *take, struct rfl_session **ret,
			    struct rfl_err *err)
{
	struct rfl_session *s = rfl_alloc_array(1, sizeof(*s));
	enum rfl_rc rc;

	*s = (struct rfl_session){ .b = b, .plan = take };
	omp_set_num_threads(b->threads);
	s->tasks = rfl_alloc_array((size_t)take->nsteps, sizeof(*s->tasks));
	rc = each_step(s, false, err);
	if (rc == RFL_OK)
		rc = adopt_layouts(s, err);
	if (rc == RFL_OK) {
		size_gradients(s);
		rc = each_step(s, true, err);
	}
	if (rc == RFL_OK)
		rc = bind_all(s, err);
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
	for (int i = 0; i < s->plan->nsteps; i++) {
		struct task *t = &s->tasks[i];

		for (int k = 0; k < t->n; k++) {
			for (int j = 0; j < t->primitives[k].n; j++)
				(void)dnnl_memory_destroy(t->primitives[k].bound[j].memory);
			(void)dnnl_primitive_destroy(t->primitives[k].primitive);
		}
		(void)dnnl_primitive_desc_destroy(t->chosen);
	}
	rfl_dnnl__unmap(s->block, (size_t)s->plan->bytes + 1);
	rfl_dnnl__unmap(s->kept, (size_t)s->kept_bytes);
	rfl_plan_free(s->plan);
	free(s->tasks);
	free(s);
}

const struct rfl_plan *rfl_session_plan(const struct rfl_session *s)
{
	return s->plan;
}

/* ---- running ---- */

/* Another engine of the process may have set another number. */
static void use_threads(const struct rfl_backend *b)
{
	omp_set_num_threads(b->threads);
}

enum rfl_rc rfl_session_run(struct rfl_session *s, int step, struct rfl_session_call *call,
			    struct rfl_err *err)
{
	const struct rfl_plan_step *at = &s->plan->steps[step];
	const struct operation *op = rfl_dnnl__operation(at->op);
	struct task *t = &s->tasks[step];

	use_threads(s->b);
	for (int k = 0; k < t->n; k++) {
		struct primitive *p = &t->primitives[k];
		dnnl_status_t st;

		if (p->prepares && s->version == s->b->version)
			continue;
		st = dnnl_primitive_execute(p->primitive, s->b->stream, p->n, p->bound);
		if (st != dnnl_success)
			return rfl_dnnl__check(st, s->plan->net, at->node,
					       rfl_plan_op_names[at->op], err);
	}
	if (op->run)
		op->run(s, at, call);
	if (step == s->plan->nforward - 1)
		s->version = s->b->version;
	return RFL_OK;
}

enum rfl_rc rfl_session_wait(struct rfl_session *s, struct rfl_err *err)
{
	return rfl_dnnl__check(dnnl_stream_wait(s->b->stream), s->plan->net, -1, "wait", err);
}

enum rfl_rc rfl_session_scale_loss(struct rfl_session *s, double weight, struct rfl_err *err)
{
	(void)err;
	for (int i = 0; i < s->plan->nforward && weight != 1; i++) {
		const struct rfl_plan_step *step = &s->plan->steps[i];
		char *dx = address(s, step, RFL_PLAN_DX);

		if (step->op == RFL_PLAN_LOSS)
			rfl_host_affine(s->b->type,
					rfl_plan_size(s->plan, step, RFL_PLAN_DX) /
						(int64_t)rfl_host_size(s->b->type),
					dx, (float)weight, 0.0F, dx);
	}
	return RFL_OK;
}

enum rfl_rc rfl_session_output(struct rfl_session *s, int node, float *out, struct rfl_err *err)
{
	const dnnl_memory_desc_t from = rfl_dnnl__value(s, node);
	const dnnl_memory_desc_t to = rfl_dnnl__plain(from.ndims, from.dims, dnnl_f32);

	return rfl_dnnl__convert(s->b, &from,
				 s->block + s->plan->buffers[s->plan->output[node]].offset, &to,
				 out, err);
}

/* ---- gradients ---- */

/* The parameters with a gradient: returns its memory, and counts `at` through steps and biases. */
static float *next_gradient(const struct rfl_session *s, int *at, int *param)
{
	for (; *at < 2 * s->plan->nsteps;) {
		const struct rfl_plan_step *step = &s->plan->steps[*at / 2];
		const bool bias = *at % 2;

		++*at;
		*param = gradient_param(s, step, bias);
		if (*param >= 0)
			return (float *)(void *)address(s, step,
							bias ? RFL_PLAN_DBIAS : RFL_PLAN_DWEIGHT);
	}
	return NULL;
}

enum rfl_rc rfl_session_accumulate(struct rfl_session *s, bool first, struct rfl_err *err)
{
	struct rfl_backend *b = s->b;
	float *g;

	if (!b->sums)
		b->sums = rfl_dnnl__map(b->floats * sizeof(float) + 1);
	if (!b->sums)
		return rfl_fail(err, RFL_EDEVMEM, 0, "%s: out of memory for sums of gradients",
				b->net->model);
	for (int at = 0, param; (g = next_gradient(s, &at, &param));) {
		const struct weight *w = &b->weights[param];

		if (first)
			memcpy(b->sums + w->at, g, w->floats * sizeof(float));
		else
			rfl_host_accumulate(b->sums + w->at, g, (int64_t)w->floats);
	}
	return RFL_OK;
}

enum rfl_rc rfl_session_gradient(struct rfl_session *s, int param, bool summed, float *out,
				 struct rfl_err *err)
{
	const struct weight *w = &s->b->weights[param];
	float *g;

	for (int at = 0, its; (g = next_gradient(s, &at, &its));)
		if (its == param)
			return rfl_dnnl__convert(s->b, &w->layout, summed ? s->b->sums + w->at : g,
						 &w->plain, out, err);
	return rfl_fail(err, RFL_EINVAL, 0, "%s: has no gradient",
			s->plan->net->params[param].name);
}

enum rfl_rc rfl_session_update(struct rfl_session *s, const struct rfl_optimizer *o, bool summed,
			       struct rfl_err *err)
{
	struct rfl_backend *b = s->b;
	double squares = 0;
	float scale = 1, *g;
	enum rfl_rc rc = rfl_backend_make_state(b, o, err);

	use_threads(b);
	if (rc != RFL_OK)
		return rc;
	for (int at = 0, param; o->grad_clip > 0 && (g = next_gradient(s, &at, &param));)
		squares += rfl_host_sum_squares(summed ? b->sums + b->weights[param].at : g,
						(int64_t)b->weights[param].floats);
	if (o->grad_clip > 0 && sqrt(squares) + 1e-6 > o->grad_clip)
		scale = (float)(o->grad_clip / (sqrt(squares) + 1e-6));
	for (int at = 0, param; (g = next_gradient(s, &at, &param));) {
		const struct weight *w = &b->weights[param];
		const struct rfl_host_update k = {
			.n = (int64_t)w->floats,
			.p = rfl_dnnl__data(b, param, RFL_PART_VALUE),
			.mean = rfl_dnnl__data(b, param, RFL_PART_MEAN),
			.square = rfl_dnnl__data(b, param, RFL_PART_SQUARE),
			.g = summed ? b->sums + w->at : g,
			.gradient_scale = scale,
			.lr = (float)o->lr,
			.weight_decay = (float)o->weight_decay,
			.momentum = (float)o->momentum,
			.beta1 = (float)o->beta1,
			.beta2 = (float)o->beta2,
			.rest1 = (float)(1 - o->beta1),
			.rest2 = (float)(1 - o->beta2),
			.eps = (float)o->eps,
			.correction1 = (float)(1 - pow(o->beta1, (double)b->update)),
			.correction2 = (float)(1 - pow(o->beta2, (double)b->update)),
			.decoupled = o->rule == RFL_RULE_ADAMW,
		};

		if (o->rule == RFL_RULE_SGD)
			rfl_host_sgd(&k);
		else
			rfl_host_adam(&k);
	}
	b->version++;
	return RFL_OK;
}

int64_t rfl_backend_bytes(const struct rfl_backend *b, const struct rfl_session *s)
{
	int64_t blocks = b->sums ? 1 : 0;

	for (int k = 0; k < RFL_PART_COUNT; k++)
		blocks += b->part[k] ? 1 : 0;
	return blocks * (int64_t)(b->floats * sizeof(float)) +
	       (s ? s->plan->bytes + s->kept_bytes : 0);
}
