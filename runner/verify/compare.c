/*
 * compare.c - runs a golden file through an engine and collects what the file speaks of. The rules
 * by which it is judged are in verify/rules.c, training in verify/train.c.
 */
#include "runner/verify/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/zoo.h"
#include "data/fill.h"
#include "runner/fill_engine.h"

/* ------------------------------------------------------------------ network and engine */

static enum rfl_rc check_net(const struct rfl_session *s, struct rfl_err *err)
{
	const struct rfl_golden *g = s->golden;
	int64_t trained = 0;

	if (!g->is_train) {
		if (g->logits.params != rfl_net_param_count(s->net) ||
		    g->logits.tensors != s->net->nparams)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: %lld parameters in %lld tensors, but %s has %lld in "
					"%d",
					g->path, (long long)g->logits.params,
					(long long)g->logits.tensors, g->model,
					(long long)rfl_net_param_count(s->net), s->net->nparams);
		return RFL_OK;
	}
	for (int i = 0; i < s->net->nparams; i++) {
		const struct rfl_param *p = &s->net->params[i];

		if (rfl_param_is_buffer(p->kind))
			continue;
		if (trained >= g->train.nparams ||
		    strcmp(g->train.param_names[trained], p->name) != 0)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: /param_names/%lld is '%s', but parameter of %s is "
					"'%s'",
					g->path, (long long)trained,
					trained < g->train.nparams ? g->train.param_names[trained]
								   : "(missing)",
					g->model, p->name);
		trained++;
	}
	if (trained != g->train.nparams)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /param_names has %lld entries, but %s has %lld parameters",
				g->path, (long long)g->train.nparams, g->model, (long long)trained);
	return RFL_OK;
}

static bool takes_input(const struct rfl_net *net, const struct rfl_golden *g)
{
	const struct rfl_shape *in = &net->nodes[0].shape;

	if (g->tokens)
		return in->ndim == 1 && in->dim[0] == g->tokens;
	return in->ndim == 3 && in->dim[0] == g->channels && in->dim[1] == g->height &&
	       in->dim[2] == g->width;
}

static enum rfl_rc build_net(struct rfl_session *s, struct rfl_err *err)
{
	const struct rfl_golden *g = s->golden;
	const struct rfl_zoo_options options = {
		.image_size = g->height,
		.context_length = g->tokens,
		.classes = g->is_train ? 0 : g->logits.classes,
		.attention = g->attention,
	};
	char text[96];
	enum rfl_rc rc;

	rc = rfl_zoo_build(g->model, &options, &s->net, err);
	if (rc != RFL_OK) {
		rfl_err_prefix(err, "%s", g->path);
		return rc;
	}
	if (!takes_input(s->net, g))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: /input_shape: %s takes %s of %s", g->path,
				g->model, s->net->nodes[0].shape.ndim == 3 ? "images" : "texts",
				rfl_shape_text(&s->net->nodes[0].shape, text, sizeof(text)));
	s->rows =
		g->batch * rfl_shape_numel(&s->net->nodes[s->net->output].shape) / s->net->classes;
	return check_net(s, err);
}

static enum rfl_rc alloc_session(struct rfl_session *s, struct rfl_err *err)
{
	const size_t inputs =
		(size_t)s->golden->batch * (size_t)rfl_shape_numel(&s->net->nodes[0].shape);
	size_t largest = 1;

	for (int i = 0; i < s->net->nparams; i++)
		if ((size_t)s->net->params[i].numel > largest)
			largest = (size_t)s->net->params[i].numel;
	s->images = rfl_alloc_array(s->golden->tokens ? 1 : inputs, sizeof(*s->images));
	s->tokens = rfl_alloc_array(s->golden->tokens ? inputs : 1, sizeof(*s->tokens));
	s->labels = rfl_alloc_array((size_t)s->rows, sizeof(*s->labels));
	s->logits = rfl_alloc_array((size_t)s->rows * (size_t)s->net->classes, sizeof(*s->logits));
	s->now = rfl_alloc_array(largest, sizeof(*s->now));
	s->start = rfl_alloc_array(largest, sizeof(*s->start));
	if (!s->images || !s->tokens || !s->labels || !s->logits || !s->now || !s->start)
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	return RFL_OK;
}

static enum rfl_rc fill_batch(struct rfl_session *s, struct rfl_err *err)
{
	const struct rfl_shape *shape = &s->net->nodes[0].shape;
	const int64_t n = s->golden->batch;

	rfl_fill_labels(0, s->rows, s->net->classes, s->labels);
	if (!s->golden->tokens)
		return rfl_fill_images(shape, 0, n, s->setup->layout, s->setup->threads, s->images,
				       err);
	rfl_fill_tokens(0, n * rfl_shape_numel(shape), s->net->classes, s->tokens);
	return RFL_OK;
}

enum rfl_rc rfl_verify__open(struct rfl_session *s, const struct rfl_optimizer *optimizer,
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

	if (s->engine && s->rule == optimizer->rule)
		return s->ops->set_optimizer(s->engine, optimizer, err);
	if (s->engine)
		s->ops->close(s->engine);
	s->engine = NULL;
	s->rule = optimizer->rule;
	return s->ops->open(s->net, &config, &s->engine, err);
}

static enum rfl_rc session_open(struct rfl_session *s, struct rfl_err *err)
{
	enum rfl_rc rc = build_net(s, err);

	if (rc == RFL_OK)
		rc = alloc_session(s, err);
	return rc == RFL_OK ? fill_batch(s, err) : rc;
}

static void session_close(struct rfl_session *s)
{
	if (s->engine)
		s->ops->close(s->engine);
	free(s->start);
	free(s->now);
	free(s->logits);
	free(s->labels);
	free(s->tokens);
	free(s->images);
	rfl_net_free(s->net);
}

struct rfl_batch rfl_verify__batch(const struct rfl_session *s)
{
	struct rfl_batch batch = {
		.n = s->golden->batch,
		.images = s->images,
		.layout = s->setup->layout,
		.labels = s->labels,
	};

	if (s->golden->tokens) {
		batch.kind = RFL_INPUT_TOKENS;
		batch.tokens = s->tokens;
	}
	return batch;
}

/* ------------------------------------------------------------------ sums */

static double sum_of(const float *x, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

double rfl_verify__squares(const float *x, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

/* ------------------------------------------------------------------ a forward */

static int64_t argmax_of(const float *row, int64_t n)
{
	int64_t best = 0;

	for (int64_t i = 1; i < n; i++)
		if (row[i] > row[best])
			best = i;
	return best;
}

/* The engine's last forward in the form of the golden one. */
static enum rfl_rc collect_forward(struct rfl_session *s, struct rfl_arena *arena,
				   const struct rfl_golden_forward *like,
				   struct rfl_golden_forward *got, struct rfl_err *err)
{
	const int64_t rows = s->rows, classes = s->net->classes;
	enum rfl_rc rc;

	if (like->rows > rows || like->first > classes)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /logits_first16 does not fit %lld rows of %lld classes",
				s->golden->path, (long long)rows, (long long)classes);
	*got = *like;
	got->logits =
		rfl_arena_array(arena, (size_t)(like->rows * like->first), sizeof(*got->logits));
	got->argmax = rfl_arena_array(arena, (size_t)like->rows, sizeof(*got->argmax));
	if (!got->logits || !got->argmax)
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	rc = s->ops->logits(s->engine, s->logits, rows * classes, err);
	if (rc == RFL_OK)
		rc = s->ops->loss(s->engine, &got->loss, err);
	for (int64_t i = 0; rc == RFL_OK && i < like->rows; i++) {
		for (int64_t j = 0; j < like->first; j++)
			got->logits[i * like->first + j] = s->logits[i * classes + j];
		got->argmax[i] = argmax_of(s->logits + i * classes, classes);
	}
	got->sum = sum_of(s->logits, rows * classes);
	got->l2 = sqrt(rfl_verify__squares(s->logits, rows * classes));
	return rc;
}

/* Walks the file's layers along with the network's modules. */
struct tracer {
	const struct rfl_session *s;
	struct rfl_checks *checks;
	int64_t next;
};

/* Steps that are not modules are not in a trace; of a module that is written out in steps the last
 * one is. */
static bool is_traced(const struct tracer *t, int node)
{
	const struct rfl_net *net = t->s->net;
	const struct rfl_node *n = &net->nodes[node];

	if (n->op == RFL_OP_INPUT || n->op == RFL_OP_CROSS_ENTROPY)
		return false;
	if (!n->functional)
		return n->op != RFL_OP_PARAMETER && n->op != RFL_OP_CONSTANT;
	if (t->next >= t->s->golden->logits.nlayers ||
	    strcmp(n->name, t->s->golden->logits.layers[t->next].name) != 0)
		return false;
	for (int i = node + 1; i < net->nnodes; i++)
		if (strcmp(net->nodes[i].name, n->name) == 0)
			return false;
	return true;
}

static enum rfl_rc on_layer(int node, const float *values, int64_t numel, void *ctx,
			    struct rfl_err *err)
{
	struct tracer *t = ctx;
	const struct rfl_golden *g = t->s->golden;
	const struct rfl_golden_layer *expected = &g->logits.layers[t->next];
	const struct rfl_node *n = &t->s->net->nodes[node];
	struct rfl_golden_layer got = { .name = n->name, .numel = numel };

	if (!is_traced(t, node))
		return RFL_OK;
	if (t->next >= g->logits.nlayers || strcmp(expected->name, n->name) != 0 ||
	    expected->numel != numel)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: /trace/%lld is '%s' of %lld values, but the layer of %s is "
				"'%s' of %lld",
				g->path, (long long)t->next,
				t->next < g->logits.nlayers ? expected->name : "(missing)",
				t->next < g->logits.nlayers ? (long long)expected->numel : 0LL,
				g->model, n->name, (long long)numel);
	t->next++;
	got.l2 = sqrt(rfl_verify__squares(values, numel));
	got.sum = sum_of(values, numel);
	return rfl_verify__layer(
		t->checks, expected, &got,
		rfl_verify__is_bf16(t->s) ? rfl_verify__bf16_forward_error(t->s->net) : NAN, err);
}

bool rfl_verify__is_bf16(const struct rfl_session *s)
{
	return s->setup->precision == RFL_PRECISION_BF16;
}

static enum rfl_rc judge(const struct rfl_session *s, struct rfl_checks *checks,
			 const char *section, const struct rfl_golden_forward *expected,
			 const struct rfl_golden_forward *got, bool batch_statistics,
			 struct rfl_err *err)
{
	const struct rfl_golden *g = s->golden;
	const struct rfl_golden_cast *same =
		batch_statistics ? &g->logits.bf16_train : &g->logits.bf16_eval;

	if (!rfl_verify__is_bf16(s))
		return rfl_verify__forward(checks, section, expected, got, s->rows, s->net->classes,
					   err);
	return rfl_verify__bf16_forward(checks, section, s->net, s->rows, expected,
					g->logits.has_bf16 ? same : NULL, got, batch_statistics,
					err);
}

static enum rfl_rc verify_eval(struct rfl_session *s, struct rfl_arena *arena,
			       struct rfl_checks *checks, struct rfl_err *err)
{
	const struct rfl_golden *g = s->golden;
	const struct rfl_batch batch = rfl_verify__batch(s);
	struct tracer tracer = { .s = s, .checks = checks };
	struct rfl_golden_forward got;
	enum rfl_rc rc = s->ops->set_mode(s->engine, RFL_ENGINE_EVAL, err);

	if (rc == RFL_OK)
		rc = s->ops->forward_traced(s->engine, &batch, g->logits.nlayers ? on_layer : NULL,
					    &tracer, err);
	if (rc == RFL_OK && tracer.next != g->logits.nlayers)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: /trace has %lld layers, but %s has %lld modules", g->path,
			      (long long)g->logits.nlayers, g->model, (long long)tracer.next);
	if (rc == RFL_OK)
		rc = collect_forward(s, arena, &g->logits.fp64, &got, err);
	if (rc == RFL_OK)
		rc = judge(s, checks, "logits", &g->logits.fp64, &got, false, err);
	return rc;
}

static enum rfl_rc verify_batch_stats(struct rfl_session *s, struct rfl_arena *arena,
				      struct rfl_checks *checks, struct rfl_err *err)
{
	const struct rfl_golden_forward *expected = &s->golden->logits.batch_stats;
	const struct rfl_batch batch = rfl_verify__batch(s);
	struct rfl_golden_forward got;
	enum rfl_rc rc = s->ops->set_mode(s->engine, RFL_ENGINE_TRAIN, err);

	if (rc == RFL_OK)
		rc = s->ops->forward(s->engine, &batch, err);
	if (rc == RFL_OK)
		rc = collect_forward(s, arena, expected, &got, err);
	if (rc == RFL_OK)
		rc = judge(s, checks, "batch_stats", expected, &got, true, err);
	return rc;
}

static enum rfl_rc verify_logits(struct rfl_session *s, struct rfl_arena *arena,
				 struct rfl_checks *checks, struct rfl_err *err)
{
	const struct rfl_optimizer none = { .rule = RFL_RULE_SGD };
	enum rfl_rc rc = rfl_verify__open(s, &none, err);

	if (rc == RFL_OK)
		rc = rfl_fill_engine(s->ops, s->engine, s->net, s->setup->threads, err);
	if (rc == RFL_OK)
		rc = verify_eval(s, arena, checks, err);
	if (rc == RFL_OK && s->golden->logits.has_batch_stats)
		rc = verify_batch_stats(s, arena, checks, err);
	if (rc == RFL_OK && s->golden->logits.has_gradient)
		rc = rfl_verify__one_gradient(s, arena, checks, err);
	return rc;
}

enum rfl_rc rfl_verify_golden(const struct rfl_golden *golden, const struct rfl_verify_setup *setup,
			      struct rfl_checks *checks, struct rfl_err *err)
{
	struct rfl_session s = { .golden = golden, .setup = setup, .ops = setup->ops };
	struct rfl_arena *arena = rfl_arena_new(0); /* what the engine gave */
	enum rfl_rc rc = arena ? session_open(&s, err)
			       : rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");

	if (rc == RFL_OK && !golden->is_train)
		rc = verify_logits(&s, arena, checks, err);
	for (int64_t i = 0; rc == RFL_OK && golden->is_train && i < golden->train.nsections; i++)
		rc = rfl_verify__train(&s, arena, &golden->train.sections[i], checks, err);
	session_close(&s);
	rfl_arena_free(arena);
	return rc;
}
