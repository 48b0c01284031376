/* The torch engine's updates: SGD, Adam and AdamW by every kind of kernel against the formulas in
 * double, accumulation of micro-batches, and going back. */
#include "tests/unit/torch_rig.h"

#include <math.h>

#include "base/compiler.h"

enum { WIDE = 4096 };

/* Without batch norm, so that a sample's gradient does not depend on the others; with a weight that
 * is longer than what the engine updates at once. */
static struct rfl_net *wide_net(void)
{
	struct rfl_net_builder *b = rfl_net_builder_new("wide", "test");
	struct rfl_net *ret = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int x;

	assert_non_null(b);
	x = rfl_net_input(b, 3, SIDE, SIDE);
	x = rfl_conv2d(b, x, "conv", 8, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "relu", RFL_INPLACE);
	x = rfl_max_pool(b, x, "pool", .kernel = 2);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "wide", WIDE, true);
	x = rfl_relu(b, x, "relu2", RFL_INPLACE);
	x = rfl_linear(b, x, "fc", CLASSES, true);
	assert_ok(rfl_net_finish(b, x, &ret, &err), &err);
	return ret;
}

/* All trained parameters, their gradients and the optimizer's state, one after the other. */
struct model {
	size_t n;
	double *p, *m, *v;
	float *now, *grad;
	int64_t t;
};

static void model_init(struct model *m)
{
	*m = (struct model){ .n = 0 };
	for (int i = 0; i < net->nparams; i++)
		if (!rfl_param_is_buffer(net->params[i].kind))
			m->n += (size_t)net->params[i].numel;
	m->p = calloc(m->n, sizeof(double));
	m->m = calloc(m->n, sizeof(double));
	m->v = calloc(m->n, sizeof(double));
	m->now = calloc(m->n, sizeof(float));
	m->grad = calloc(m->n, sizeof(float));
	assert_true(m->p && m->m && m->v && m->now && m->grad);
}

static void model_fini(struct model *m)
{
	free(m->p);
	free(m->m);
	free(m->v);
	free(m->now);
	free(m->grad);
}

static void read_trained(struct rfl_engine *e, float *out, bool gradients)
{
	struct rfl_err err = RFL_ERR_INIT;

	for (int i = 0; i < net->nparams; i++) {
		const int64_t n = net->params[i].numel;

		if (rfl_param_is_buffer(net->params[i].kind))
			continue;
		assert_ok(gradients ? ops->get_grad(e, i, out, n, &err)
				    : ops->get_param(e, i, out, n, &err),
			  &err);
		out += n;
	}
}

static void take_params(struct model *m, struct rfl_engine *e)
{
	read_trained(e, m->now, false);
	for (size_t i = 0; i < m->n; i++)
		m->p[i] = (double)m->now[i];
}

/* runner/engine.h, line by line. */
static void formula(struct model *model, const struct rfl_optimizer *o)
{
	const double correction = 1 - pow(o->beta1, (double)++model->t);
	const double square_correction = 1 - pow(o->beta2, (double)model->t);
	double squares = 0, factor = 1;

	for (size_t i = 0; i < model->n; i++)
		squares += (double)model->grad[i] * (double)model->grad[i];
	if (o->grad_clip > 0)
		factor = fmin(1, o->grad_clip / (sqrt(squares) + 1e-6));
	for (size_t i = 0; i < model->n; i++) {
		double *p = &model->p[i], *m = &model->m[i], *v = &model->v[i];
		double g = factor * (double)model->grad[i];

		if (o->rule == RFL_RULE_ADAMW)
			*p *= 1 - o->lr * o->weight_decay;
		else
			g += o->weight_decay * *p;
		if (o->rule == RFL_RULE_SGD) {
			*m = o->momentum * *m + g;
			*p -= o->lr * *m;
			continue;
		}
		*m = o->beta1 * *m + (1 - o->beta1) * g;
		*v = o->beta2 * *v + (1 - o->beta2) * g * g;
		*p -= o->lr / correction * *m / (sqrt(*v) / sqrt(square_correction) + o->eps);
	}
}

static void forward_backward(struct rfl_engine *e)
{
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	assert_ok(ops->backward(e, NULL, &err), &err);
}

static void one_step(struct rfl_engine *e)
{
	struct rfl_err err = RFL_ERR_INIT;

	forward_backward(e);
	assert_ok(ops->step(e, &err), &err);
}

static struct rfl_engine_config optimizer_config(enum rfl_optimizer_rule rule,
						 enum rfl_optimizer_kernels kernels,
						 double weight_decay)
{
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);

	config.optimizer = (struct rfl_optimizer){
		.rule = rule,
		.kernels = kernels,
		.lr = 0.01,
		.weight_decay = weight_decay,
		.momentum = 0.9,
		.beta1 = 0.9,
		.beta2 = 0.99,
		.eps = 1e-3, /* large, so that rounding of a gradient that is nearly zero is small
			      */
	};
	return config;
}

/* This library may have no fused kernels: then asking for them is refused, and the message names
 * the version that has them. @return whether there is anything to test */
static bool is_there(const struct rfl_engine_config *config)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = NULL;
	enum rfl_rc rc = ops->open(net, config, &e, &err);

	ops->close(e);
	if (rc == RFL_OK)
		return true;
	assert_int_equal(rc, RFL_EUNSUPPORTED);
	if (config->precision == RFL_PRECISION_FP16) {
		assert_says(&err, "2.3");
		return false;
	}
	assert_int_equal(config->optimizer.kernels, RFL_KERNELS_FUSED);
	assert_says(&err, "no fused");
	assert_says(&err, "use libtorch 2.4");
	return false;
}

static void follows_the_formula(const struct rfl_engine_config *config)
{
	struct rfl_engine *e = open_with(config);
	struct rfl_err err = RFL_ERR_INIT;
	struct model m;

	model_init(&m);
	take_params(&m, e);
	for (int i = 0; i < 6; i++) {
		if (i == 4) { /* forgetting is starting again */
			assert_ok(ops->reset_optimizer(e, &err), &err);
			memset(m.m, 0, m.n * sizeof(*m.m));
			memset(m.v, 0, m.n * sizeof(*m.v));
			m.t = 0;
		}
		forward_backward(e);
		read_trained(e, m.grad, true);
		assert_ok(ops->step(e, &err), &err);
		formula(&m, &config->optimizer);
		read_trained(e, m.now, false);
		for (size_t k = 0; k < m.n; k++)
			if (fabs(m.p[k] - (double)m.now[k]) > 2e-6)
				fail_msg("step %d, element %zu: %.9g, not %.9g", i, k,
					 (double)m.now[k], m.p[k]);
		/* rounding must not add up to a difference in the formula */
		take_params(&m, e);
	}
	model_fini(&m);
	ops->close(e);
}

static void rules_follow_their_formulas(void **state)
{
	struct rfl_net *small = net;

	(void)state;
	for (int what = 0; what < 2; what++) {
		net = what ? wide_net() : small;
		for (int rule = 0; rule <= RFL_RULE_ADAMW; rule++) {
			for (int i = 0; i < 24; i++) {
				struct rfl_engine_config config = optimizer_config(
					(enum rfl_optimizer_rule)rule,
					i & 1 ? RFL_KERNELS_FUSED : RFL_KERNELS_FOREACH,
					i & 2 ? 0.05 : 0);

				/* none, one that bites, one that does not */
				config.optimizer.grad_clip = i < 8 ? 0 : i < 16 ? 0.25 : 1e6;
				config.layout = i & 4 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW;
				if (is_there(&config))
					follows_the_formula(&config);
			}
		}
		if (what)
			rfl_net_free(net);
	}
	net = small;
}

/* SGD without momentum, and momentum that comes later. */
static void momentum_may_come_later(void **state)
{
	(void)state;
	for (int fused = 0; fused < 2; fused++) {
		struct rfl_engine_config config = optimizer_config(
			RFL_RULE_SGD, fused ? RFL_KERNELS_FUSED : RFL_KERNELS_FOREACH, 0.01);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_engine *e;
		struct model m;

		config.optimizer.momentum = 0;
		if (!is_there(&config))
			continue;
		e = open_with(&config);
		model_init(&m);
		take_params(&m, e);
		for (int i = 0; i < 4; i++) {
			forward_backward(e);
			read_trained(e, m.grad, true);
			assert_ok(ops->step(e, &err), &err);
			formula(&m, &config.optimizer);
			read_trained(e, m.now, false);
			for (size_t k = 0; k < m.n; k++)
				assert_true(fabs(m.p[k] - (double)m.now[k]) < 2e-6);
			if (i == 1) {
				config.optimizer.momentum = 0.5;
				memset(m.m, 0, m.n * sizeof(*m.m));
				assert_ok(ops->set_optimizer(e, &config.optimizer, &err), &err);
			}
		}
		model_fini(&m);
		ops->close(e);
	}
}

/* After twenty steps from the same start the kernels are still together. */
static void kernels_agree(void **state)
{
	struct model m[2];

	(void)state;
	for (int rule = 0; rule <= RFL_RULE_ADAMW; rule++) {
		double largest = 0;

		for (int fused = 0; fused < 2; fused++) {
			const struct rfl_engine_config config = optimizer_config(
				(enum rfl_optimizer_rule)rule,
				fused ? RFL_KERNELS_AUTO : RFL_KERNELS_FOREACH, 0.05);
			struct rfl_err err = RFL_ERR_INIT;
			struct rfl_engine *e = open_with(&config);

			assert_ok(ops->set_mode(e, RFL_ENGINE_TRAIN_FROZEN_BN, &err), &err);
			model_init(&m[fused]);
			for (int i = 0; i < 20; i++)
				one_step(e);
			take_params(&m[fused], e);
			ops->close(e);
		}
		for (size_t k = 0; k < m[0].n; k++)
			largest = fmax(largest, fabs(m[0].p[k] - m[1].p[k]));
		if (largest > 1e-4)
			fail_msg("%s: %g apart", rfl_optimizer_rule_names[rule], largest);
		model_fini(&m[0]);
		model_fini(&m[1]);
	}
}

static void says_its_kernels(void **state)
{
	struct rfl_engine_config config = optimizer_config(RFL_RULE_ADAMW, RFL_KERNELS_FOREACH, 0);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = open_with(&config);
	bool fused;

	(void)state;
	assert_string_equal(ops->optimizer_kernels(e), "foreach");
	config.optimizer.kernels = RFL_KERNELS_FUSED; /* not on the way */
	assert_int_equal(ops->set_optimizer(e, &config.optimizer, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "foreach");
	rfl_err_clear(&err);
	config.optimizer.rule = RFL_RULE_SGD;
	assert_int_equal(ops->set_optimizer(e, &config.optimizer, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "adamw");
	ops->close(e);

	fused = is_there(&config);
	config.optimizer.kernels = RFL_KERNELS_AUTO;
	e = open_with(&config);
	assert_string_equal(ops->optimizer_kernels(e), fused ? "fused" : "foreach");
	ops->close(e);
}

/* Micro-batches with the weights of their sizes: the gradients of the one big batch. */
static void micro_batches_add_up(void **state)
{
	static const int64_t sizes[][BATCH + 1] = { { 3 }, { 1, 2 }, { 2, 1 }, { 1, 1, 1 } };
	struct rfl_net *small = net;
	double whole = 0;
	struct model m;
	float *want;

	(void)state;
	net = wide_net();
	model_init(&m);
	want = calloc(m.n, sizeof(*want));
	assert_non_null(want);
	for (size_t k = 0; k < RFL_ARRAY_LEN(sizes); k++) {
		struct rfl_engine *e = open_plain();
		struct rfl_err err = RFL_ERR_INIT;
		double loss, sum = 0;
		int64_t from = 0;

		assert_ok(ops->zero_grad(e, &err), &err);
		for (int i = 0; sizes[k][i]; i++) {
			const struct rfl_backward how = {
				.weight = (double)sizes[k][i] / BATCH,
				.last = !sizes[k][i + 1],
			};
			struct rfl_batch part = batch_of(sizes[k][i]);

			part.images += from * IMAGE;
			part.labels += from;
			from += sizes[k][i];
			assert_ok(ops->forward(e, &part, &err), &err);
			assert_ok(ops->loss(e, &loss, &err), &err);
			assert_ok(ops->backward(e, &how, &err), &err);
			sum += how.weight * loss;
		}
		whole = k == 0 ? sum : whole;
		assert_true(fabs(sum - whole) < 1e-6);
		read_trained(e, k == 0 ? want : m.grad, true);
		for (size_t i = 0; k > 0 && i < m.n; i++)
			assert_true(fabs((double)(m.grad[i] - want[i])) <
				    1e-6 + 1e-5 * fabs((double)want[i]));
		assert_ok(ops->step(e, &err), &err);
		ops->close(e);
	}
	free(want);
	model_fini(&m);
	rfl_net_free(net);
	net = small;
}

static void restored_updates(const struct rfl_engine_config *config, bool after_some,
			     struct model m[2])
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = open_with(config);

	for (int k = 0; after_some && k < 3; k++)
		one_step(e);
	assert_ok(ops->snapshot(e, &err), &err);
	for (int again = 0; again < 2; again++) {
		for (int k = 0; k < 3; k++)
			one_step(e);
		read_trained(e, m[again].now, false);
		assert_ok(ops->restore(e, &err), &err);
	}
	assert_memory_equal(m[0].now, m[1].now, m[0].n * sizeof(float));
	ops->close(e);
}

/* Going back brings momentum, squares, the count of steps and the scale along, in every precision.
 */
static void restored_updates_give_the_same_bits(void **state)
{
	static const enum rfl_precision precisions[] = { RFL_PRECISION_FP32, RFL_PRECISION_BF16,
							 RFL_PRECISION_FP16 };
	struct model m[2];

	(void)state;
	model_init(&m[0]);
	model_init(&m[1]);
	for (int i = 0; i < 36; i++) {
		struct rfl_engine_config config =
			optimizer_config((enum rfl_optimizer_rule)(i % 3),
					 i / 3 & 1 ? RFL_KERNELS_FUSED : RFL_KERNELS_FOREACH, 0.05);

		config.precision = precisions[i / 12];
		if (is_there(&config))
			restored_updates(&config, i / 6 & 1, m);
	}
	model_fini(&m[0]);
	model_fini(&m[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_follow_their_formulas),
		cmocka_unit_test(momentum_may_come_later),
		cmocka_unit_test(kernels_agree),
		cmocka_unit_test(says_its_kernels),
		cmocka_unit_test(micro_batches_add_up),
		cmocka_unit_test(restored_updates_give_the_same_bits),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
