/*
 * compare.c - runs the network of a reference file on an engine and collects the results that the
 * file contains. verify/rules.c judges them.
 */
#include "runner/verify.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/zoo.h"
#include "data/fill.h"
#include "machine/isa.h"
#include "runner/engine.h"

/* One engine on one network, with the batch of the reference file. */
struct session {
	const struct rfl_golden *golden;
	const struct rfl_verify_setup *setup;
	const struct rfl_engine_ops *ops;
	struct rfl_verify__rules rules;
	struct rfl_arena *arena; /* owns the arrays, also of results */
	struct rfl_net *net;
	struct rfl_engine *engine;
	enum rfl_optimizer_rule rule; /* rule of the open engine */
	int64_t rows;                 /* rows of logits in the whole batch */
	int64_t trained;              /* parameters that are not buffers */
	struct rfl_batch batch;       /* in the engine's layout */
	float *logits;                /* rows * classes */
	float *now;                   /* values of one parameter, sized for the largest */
	float *start;                 /* its values before training */
};

static void *take(struct session *s, int64_t n, size_t size)
{
	return rfl_arena_array(s->arena, (size_t)n, size);
}

/* ------------------------------------------------------------------ network and engine */

/* Build the file's network, check its input and parameters, and count the trained parameters. */
static enum rfl_rc build_net(struct session *s, struct rfl_err *err)
{
	const struct rfl_golden *g = s->golden;
	const struct rfl_zoo_options options = {
		.image_size = g->height,
		.context_length = g->tokens,
		.classes = g->is_train ? 0 : g->logits.classes,
		.attention = s->setup->attention ? s->setup->attention : g->attention,
	};
	const struct rfl_shape *in;
	char text[96];
	bool fits;
	enum rfl_rc rc = rfl_zoo_build(g->model, &options, &s->net, err);

	if (rc != RFL_OK) {
		rfl_err_prefix(err, "%s", g->path);
		return rc;
	}
	in = &s->net->nodes[0].shape;
	if (g->tokens)
		fits = in->ndim == 1 && in->dim[0] == g->tokens;
	else
		fits = in->ndim == 3 && in->dim[0] == g->channels && in->dim[1] == g->height &&
		       in->dim[2] == g->width;
	if (!fits)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: /input_shape: %s requires %s of %s",
				g->path, g->model, in->ndim == 3 ? "images" : "texts",
				rfl_shape_text(in, text, sizeof(text)));
	s->rows =
		g->batch * rfl_shape_numel(&s->net->nodes[s->net->output].shape) / s->net->classes;
	if (!g->is_train && (g->logits.params != rfl_net_param_count(s->net) ||
			     g->logits.tensors != s->net->nparams))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: %lld parameters in %lld tensors, but %s has %lld in %d",
				g->path, (long long)g->logits.params, (long long)g->logits.tensors,
				g->model, (long long)rfl_net_param_count(s->net), s->net->nparams);
	for (int i = 0; i < s->net->nparams; i++) {
		const char *name = s->net->params[i].name, *expected = "(missing)";

		if (rfl_param_is_buffer(s->net->params[i].kind))
			continue;
		if (g->is_train && s->trained < g->train.nparams)
			expected = g->train.param_names[s->trained];
		if (g->is_train && strcmp(expected, name) != 0)
			return rfl_fail(
				err, RFL_EFORMAT, 0,
				"%s: /param_names/%lld is '%s', but that parameter of %s is '%s'",
				g->path, (long long)s->trained, expected, g->model, name);
		s->trained++;
	}
	if (g->is_train && s->trained != g->train.nparams)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /param_names has %lld entries, but %s has %lld parameters",
				g->path, (long long)g->train.nparams, g->model,
				(long long)s->trained);
	return RFL_OK;
}

static enum rfl_rc make_batch(struct session *s, struct rfl_err *err)
{
	const struct rfl_shape *shape = &s->net->nodes[0].shape;
	const int64_t n = s->golden->batch, inputs = n * rfl_shape_numel(shape);
	int64_t largest = 1, *labels;
	float *images;

	for (int i = 0; i < s->net->nparams; i++)
		if (s->net->params[i].numel > largest)
			largest = s->net->params[i].numel;
	labels = take(s, s->rows, sizeof(*labels));
	s->logits = take(s, s->rows * s->net->classes, sizeof(*s->logits));
	s->now = take(s, largest, sizeof(*s->now));
	s->start = take(s, largest, sizeof(*s->start));
	s->batch = (struct rfl_batch){ .n = n, .layout = s->setup->layout, .labels = labels };
	rfl_fill_labels(0, s->rows, s->net->classes, labels);
	if (s->golden->tokens != 0) {
		int64_t *tokens = take(s, inputs, sizeof(*tokens));

		s->batch.kind = RFL_INPUT_TOKENS;
		s->batch.tokens = tokens;
		rfl_fill_tokens(0, inputs, s->net->classes, tokens);
		return RFL_OK;
	}
	images = take(s, inputs, sizeof(*images));
	s->batch.images = images;
	return rfl_fill_images(shape, 0, n, s->setup->layout, s->setup->threads, images, err);
}

/* Open an engine with this optimizer, or reuse the open one if its rule matches, and fill it. */
static enum rfl_rc open_engine(struct session *s, const struct rfl_optimizer *optimizer,
			       struct rfl_err *err)
{
	const struct rfl_engine_config config = {
		.device = s->setup->device,
		.precision = s->setup->precision,
		.layout = s->setup->layout,
		.threads = s->setup->threads,
		.max_batch = s->golden->batch,
		.optimizer = *optimizer,
		.dropout = false,
		.deterministic = true,
		.auxiliary_weight =
			s->golden->is_train ? 0 : s->golden->logits.gradient.auxiliary_weight,
	};
	enum rfl_rc rc;

	if (s->engine && s->rule == optimizer->rule) {
		rc = s->ops->set_optimizer(s->engine, optimizer, err);
	} else {
		if (s->engine)
			s->ops->close(s->engine);
		s->engine = NULL;
		s->rule = optimizer->rule;
		rc = s->ops->open(s->net, &config, &s->engine, err);
	}
	if (rc == RFL_OK && s->golden->is_train)
		rc = s->ops->reset_optimizer(s->engine, err);
	return rc ? rc : rfl_fill_engine(s->ops, s->engine, s->net, s->setup->threads, err);
}

static double squares_of(const float *x, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

/* ------------------------------------------------------------------ one forward */

/* Read the first logits of the first rows of the last forward.
 * @param field  its name in the file
 * @param to     has the size of that field */
static enum rfl_rc first_logits(struct session *s, const char *field, struct rfl_golden_matrix *to,
				struct rfl_err *err)
{
	const int64_t classes = s->net->classes, rows = to->rows, columns = to->columns;
	enum rfl_rc rc;

	if (rows > s->rows || columns > classes)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /%s is larger than %lld rows of %lld classes", s->golden->path,
				field, (long long)s->rows, (long long)classes);
	to->values = take(s, rows * columns, sizeof(*to->values));
	rc = s->ops->logits(s->engine, s->logits, s->rows * classes, err);
	for (int64_t i = 0; rc == RFL_OK && i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			to->values[i * columns + j] = s->logits[i * classes + j];
	return rc;
}

/* Collect and judge the engine's last forward. */
static enum rfl_rc judge_forward(struct session *s, bool batch_statistics, struct rfl_err *err)
{
	const struct rfl_golden *g = s->golden;
	const int64_t classes = s->net->classes, n = s->rows * classes;
	struct rfl_golden_forward got = batch_statistics ? g->logits.batch_stats : g->logits.fp64;
	enum rfl_rc rc;

	if ((rc = first_logits(s, "logits_first16", &got.logits, err)) ||
	    (rc = s->ops->loss(s->engine, &got.loss, err)))
		return rc;
	got.argmax = take(s, got.logits.rows, sizeof(*got.argmax));
	for (int64_t i = 0; i < got.logits.rows; i++) {
		const float *row = s->logits + i * classes;

		for (int64_t j = 1; j < classes; j++)
			if (row[j] > row[got.argmax[i]])
				got.argmax[i] = j;
	}
	got.sum = 0;
	for (int64_t i = 0; i < n; i++)
		got.sum += s->logits[i];
	got.l2 = sqrt(squares_of(s->logits, n));
	rfl_verify__forward(&s->rules, batch_statistics, &got);
	return RFL_OK;
}

/* The position in the file's layers while the network runs. */
struct tracer {
	const struct session *s;
	int64_t next;
};

/* A trace contains only modules; a module of several nodes appears as its last node. */
static enum rfl_rc on_layer(int node, const float *values, int64_t numel, void *ctx,
			    struct rfl_err *err)
{
	static const struct rfl_golden_layer missing = { .name = "(missing)" };
	struct tracer *t = ctx;
	const struct rfl_golden *g = t->s->golden;
	const struct rfl_golden_layer *expected =
		t->next < g->logits.nlayers ? &g->logits.layers[t->next] : &missing;
	const struct rfl_net *net = t->s->net;
	const struct rfl_node *n = &net->nodes[node];
	const char *name = n->name;

	if (n->op == RFL_OP_INPUT || n->op == RFL_OP_CROSS_ENTROPY ||
	    (!n->functional && (n->op == RFL_OP_PARAMETER || n->op == RFL_OP_CONSTANT)) ||
	    (n->functional && strcmp(name, expected->name) != 0))
		return RFL_OK;
	for (int i = node + 1; n->functional && i < net->nnodes; i++)
		if (strcmp(net->nodes[i].name, name) == 0)
			return RFL_OK;
	if (strcmp(expected->name, name) != 0 || expected->numel != numel)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /trace/%lld is '%s' of %lld values, but that layer of %s is "
				"'%s' of %lld",
				g->path, (long long)t->next, expected->name,
				(long long)expected->numel, g->model, name, (long long)numel);
	t->next++;
	rfl_verify__layer(&t->s->rules, expected, sqrt(squares_of(values, numel)));
	return RFL_OK;
}

/* ------------------------------------------------------------------ gradients, parameters */

static enum rfl_rc forward_backward(struct session *s, double *loss, struct rfl_err *err)
{
	enum rfl_rc rc = s->ops->zero_grad(s->engine, err);

	if (rc == RFL_OK)
		rc = s->ops->forward(s->engine, &s->batch, err);
	if (rc == RFL_OK)
		rc = s->ops->loss(s->engine, loss, err);
	return rc ? rc : s->ops->backward(s->engine, NULL, err);
}

/* Compute the l2 of every trained parameter's gradient. */
static enum rfl_rc each_gradient(struct session *s, double **ret, struct rfl_err *err)
{
	double *each = *ret = take(s, s->trained, sizeof(*each));

	for (int i = 0; i < s->net->nparams; i++) {
		const struct rfl_param *p = &s->net->params[i];

		enum rfl_rc rc;

		if (rfl_param_is_buffer(p->kind))
			continue;
		rc = s->ops->get_grad(s->engine, i, s->now, p->numel, err);
		if (rc != RFL_OK)
			return rc;
		*each++ = sqrt(squares_of(s->now, p->numel));
	}
	return RFL_OK;
}

/* Norms of the parameters, and of their difference from the start. */
struct distance {
	double l2, delta, first, last;
};

static enum rfl_rc measure_params(struct session *s, struct distance *d, struct rfl_err *err)
{
	double squares = 0, moved = 0;
	int64_t n = 0;

	for (int i = 0; i < s->net->nparams; i++) {
		const struct rfl_param *p = &s->net->params[i];
		const struct rfl_fill_job job = rfl_fill_job_of(p, s->start);
		double own, own_moved = 0;
		enum rfl_rc rc;

		if (rfl_param_is_buffer(p->kind))
			continue;
		rc = s->ops->get_param(s->engine, i, s->now, p->numel, err);
		if (rc != RFL_OK)
			return rc;
		rfl_fill_run(&job, 1, s->setup->threads);
		own = squares_of(s->now, p->numel);
		squares += own;
		for (int64_t j = 0; j < p->numel; j++) {
			/* a float difference, like PyTorch's */
			const float way = s->now[j] - s->start[j];

			own_moved += (double)way * (double)way;
		}
		moved += own_moved;
		d->last = sqrt(own);
		if (n++ == 0)
			d->first = d->last;
	}
	d->l2 = sqrt(squares);
	d->delta = sqrt(moved);
	return RFL_OK;
}

/* @param kind  of buffers */
static enum rfl_rc measure_buffers(struct session *s, enum rfl_param_kind kind, double *ret,
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
		squares += squares_of(s->now, p->numel);
	}
	*ret = sqrt(squares);
	return RFL_OK;
}

/* ------------------------------------------------------------------ a train file */

/* Do the first step and record the values before and after it. */
static enum rfl_rc first_step(struct session *s, struct rfl_golden_run *run, struct rfl_err *err)
{
	struct distance before, after;
	double all = 0;
	enum rfl_rc rc;

	if ((rc = first_logits(s, "logits_first4_step0", &run->logits, err)) ||
	    (rc = each_gradient(s, &run->grads, err)) || (rc = measure_params(s, &before, err)) ||
	    (rc = s->ops->step(s->engine, err)) || (rc = measure_params(s, &after, err)))
		return rc;
	for (int64_t i = 0; i < run->ngrads; i++)
		all += run->grads[i] * run->grads[i];
	run->norms[RFL_GOLDEN_GRAD_FIRST] = run->grads[0];
	run->norms[RFL_GOLDEN_GRAD_LAST] = run->grads[run->ngrads - 1];
	run->norms[RFL_GOLDEN_GRAD_ALL] = sqrt(all);
	run->norms[RFL_GOLDEN_PARAM_BEFORE] = before.l2;
	run->norms[RFL_GOLDEN_PARAM_STEP1] = after.l2;
	run->norms[RFL_GOLDEN_DELTA_STEP1] = after.delta;
	return RFL_OK;
}

/* Repeat and judge a section of a train file: a few steps on one batch. */
static enum rfl_rc verify_section(struct session *s, const struct rfl_golden_section *section,
				  struct rfl_err *err)
{
	struct rfl_golden_run got = section->fp64; /* for the sizes */
	const int64_t nsteps = got.nlosses - 1;
	struct distance d;
	enum rfl_rc rc;

	got.losses = take(s, got.nlosses, sizeof(*got.losses));
	if ((rc = open_engine(s, &section->optimizer, err)) ||
	    (rc = s->ops->set_mode(s->engine, section->mode, err)))
		return rc;
	for (int64_t i = 0; rc == RFL_OK && i < nsteps; i++) {
		rc = forward_backward(s, &got.losses[i], err);
		if (rc == RFL_OK)
			rc = i == 0 ? first_step(s, &got, err) : s->ops->step(s->engine, err);
	}
	if (rc != RFL_OK || (rc = measure_params(s, &d, err)) ||
	    (rc = measure_buffers(s, RFL_PARAM_RUNNING_MEAN, &got.norms[RFL_GOLDEN_RUNNING_MEAN],
				  err)) ||
	    (rc = measure_buffers(s, RFL_PARAM_RUNNING_VAR, &got.norms[RFL_GOLDEN_RUNNING_VAR],
				  err)) ||
	    (rc = s->ops->forward(s->engine, &s->batch, err)) ||
	    (rc = s->ops->loss(s->engine, &got.losses[nsteps], err)))
		return rc;
	got.norms[RFL_GOLDEN_PARAM_AFTER] = d.l2;
	got.norms[RFL_GOLDEN_DELTA_AFTER] = d.delta;
	got.norms[RFL_GOLDEN_PARAM_FIRST_AFTER] = d.first;
	got.norms[RFL_GOLDEN_PARAM_LAST_AFTER] = d.last;
	rfl_verify__section(&s->rules, section, &got);
	return RFL_OK;
}

/* ------------------------------------------------------------------ a logits file */

static enum rfl_rc verify_logits(struct session *s, struct rfl_err *err)
{
	const struct rfl_optimizer none = { .rule = RFL_RULE_SGD };
	const struct rfl_golden *g = s->golden;
	const struct rfl_golden_gradient *expected = &g->logits.gradient;
	struct rfl_golden_gradient got = *expected;
	struct tracer tracer = { .s = s };
	enum rfl_rc rc;

	if ((rc = open_engine(s, &none, err)) ||
	    (rc = s->ops->set_mode(s->engine, RFL_ENGINE_EVAL, err)) ||
	    (rc = s->ops->forward_traced(s->engine, &s->batch, g->logits.nlayers ? on_layer : NULL,
					 &tracer, err)))
		return rc;
	if (tracer.next != g->logits.nlayers)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /trace has %lld layers, but %s has %lld modules", g->path,
				(long long)g->logits.nlayers, g->model, (long long)tracer.next);
	if ((rc = judge_forward(s, false, err)) ||
	    (rc = s->ops->set_mode(s->engine, RFL_ENGINE_TRAIN, err)))
		return rc;
	if (g->logits.has_batch_stats && ((rc = s->ops->forward(s->engine, &s->batch, err)) ||
					  (rc = judge_forward(s, true, err))))
		return rc;
	if (!g->logits.has_gradient)
		return RFL_OK;
	if (expected->n != s->trained)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /gradient/each has %lld entries, but %s has %lld parameters",
				g->path, (long long)expected->n, g->model, (long long)s->trained);
	if ((rc = forward_backward(s, &got.loss, err)) == RFL_OK &&
	    (rc = each_gradient(s, &got.each, err)) == RFL_OK)
		rfl_verify__gradient(&s->rules, &got);
	return rc;
}

enum rfl_rc rfl_verify_golden(const struct rfl_golden *golden, const struct rfl_verify_setup *setup,
			      struct rfl_checks *checks, struct rfl_err *err)
{
	struct session s = {
		.golden = golden,
		.setup = setup,
		.ops = setup->ops,
		.arena = rfl_arena_new(),
	};
	enum rfl_rc rc = build_net(&s, err);
	const uint64_t isa = rfl_isa_detect(), of_bf16 = RFL_ISA_BIT(AVX512_BF16) |
							 RFL_ISA_BIT(AMX_BF16) |
							 RFL_ISA_BIT(ARM_BF16);
	const bool cpu = setup->device == RFL_DEVICE_CPU;

	s.rules = (struct rfl_verify__rules){
		.to = checks,
		.golden = golden,
		.net = s.net,
		.device = setup->device,
		.layout = setup->layout,
		.bf16 = setup->precision == RFL_PRECISION_BF16,
		.other_order = cpu && !(isa & RFL_ISA_BIT(AVX512F)),
		.converts_bf16 = cpu && !(isa & of_bf16),
	};
	if (rc == RFL_OK)
		rc = make_batch(&s, err);
	if (rc == RFL_OK && !golden->is_train)
		rc = verify_logits(&s, err);
	for (int64_t i = 0; rc == RFL_OK && golden->is_train && i < golden->train.nsections; i++)
		rc = verify_section(&s, &golden->train.sections[i], err);
	if (s.engine)
		s.ops->close(s.engine);
	rfl_net_free(s.net);
	rfl_arena_free(s.arena);
	return rc;
}
