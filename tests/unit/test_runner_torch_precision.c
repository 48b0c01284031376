/* What the torch engine computes in: autocast and its cache, loss scaling, determinism, and what is
 * refused by name. */
#include "tests/unit/torch_rig.h"

#include <math.h>

#include "base/compiler.h"

enum { LOGITS = BATCH * CLASSES };

static int param_index(const char *name)
{
	for (int i = 0; i < net->nparams; i++)
		if (strcmp(net->params[i].name, name) == 0)
			return i;
	fail_msg("no parameter %s", name);
	return -1;
}

static struct rfl_engine_config precision_config(enum rfl_precision precision,
						 enum rfl_layout layout)
{
	struct rfl_engine_config config = config_of(layout);

	config.precision = precision;
	return config;
}

/* Whether this library computes so; if not, the refusal has the word. */
static bool computes(enum rfl_precision precision, const char *word)
{
	const struct rfl_engine_config config = precision_config(precision, RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = NULL;
	enum rfl_rc rc = ops->open(net, &config, &e, &err);

	ops->close(e);
	if (rc == RFL_OK)
		return true;
	assert_int_equal(rc, RFL_EUNSUPPORTED);
	assert_says(&err, word);
	return false;
}

static bool is_113(void)
{
	return strcmp(ops->version, "1.13") == 0;
}

static void refuses_by_name(void **state)
{
	(void)state;
	assert_false(
		computes(RFL_PRECISION_TF32, "tf32 requires the Tensor Cores of an NVIDIA GPU"));
	assert_true(computes(RFL_PRECISION_BF16, ""));
	assert_true(computes(RFL_PRECISION_AMP, ""));
	if (is_113())
		assert_false(computes(RFL_PRECISION_FP16, "needs libtorch 2.3 or newer"));
	else
		assert_true(computes(RFL_PRECISION_FP16, ""));
}

static void forward(struct rfl_engine *e, double *loss, float logits[LOGITS])
{
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	assert_ok(ops->loss(e, loss, &err), &err);
	assert_ok(ops->logits(e, logits, LOGITS, &err), &err);
}

static void one_step(struct rfl_engine *e, double *loss)
{
	struct rfl_err err = RFL_ERR_INIT;
	float logits[LOGITS];

	forward(e, loss, logits);
	assert_ok(ops->backward(e, NULL, &err), &err);
	assert_ok(ops->step(e, &err), &err);
}

/* Layers of the traced forward whose values all fit into a format of `bits` fewer bits. */
struct rounded {
	int bits, layers;
};

static enum rfl_rc count_rounded(int node, const float *values, int64_t numel, void *ctx,
				 struct rfl_err *err)
{
	struct rounded *r = ctx;

	(void)node;
	(void)err;
	for (int64_t i = 0; i < numel; i++) {
		uint32_t word;

		memcpy(&word, &values[i], sizeof(word));
		if (word & ((1U << r->bits) - 1))
			return RFL_OK;
	}
	r->layers++;
	return RFL_OK;
}

/* bf16 keeps 16 bits of a float32, fp16 drops 13 of its fraction. What is cast is what PyTorch's
 * autocast casts: products come out in 16 bits, and here all that follows keeps them. */
static void casts_products(void **state)
{
	static const struct {
		enum rfl_precision precision;
		int bits;
		double near;
	} cases[] = {
		{ RFL_PRECISION_BF16, 16, 0.05 },
		{ RFL_PRECISION_AMP, 16, 0.05 },
		{ RFL_PRECISION_FP16, 13, 0.01 },
	};
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;
	float want[LOGITS], got[LOGITS];
	double loss;

	(void)state;
	for (int i = 0; i < 6; i++) {
		const enum rfl_layout layout = i & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW;
		struct rfl_engine_config config = precision_config(cases[i / 2].precision, layout);
		struct rounded rounded = { .bits = cases[i / 2].bits }, plain = rounded;
		struct rfl_engine *e = open_plain();

		forward(e, &loss, want);
		assert_ok(ops->forward_traced(e, &batch, count_rounded, &plain, &err), &err);
		assert_int_equal(plain.layers, 0);
		ops->close(e);
		if (!computes(config.precision, "2.3"))
			continue;
		e = open_with(&config);
		assert_ok(ops->forward_traced(e, &batch, count_rounded, &rounded, &err), &err);
		assert_int_equal(rounded.layers, net->nnodes - 1); /* all but the input */
		forward(e, &loss, got);
		assert_memory_not_equal(got, want, sizeof(want));
		for (int k = 0; k < LOGITS; k++)
			assert_true(fabs((double)(got[k] - want[k])) < cases[i / 2].near);
		ops->close(e);
	}
}

/* The trap of autocast: its copies of the weights live until the outermost region ends. An engine
 * whose weights change between two forwards computes what one computes that never had others. */
static void changed_weights_are_seen(void **state)
{
	static const enum rfl_precision precisions[] = { RFL_PRECISION_BF16, RFL_PRECISION_FP16 };
	const int w = param_index("conv1.weight");
	enum { N = 8 * 3 * 3 * 3 };
	struct rfl_err err = RFL_ERR_INIT;
	float values[N], before[LOGITS], after[LOGITS], fresh[LOGITS];
	double loss;

	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct rfl_engine_config config =
			precision_config(precisions[i / 2], RFL_LAYOUT_NCHW);
		const enum rfl_engine_mode mode =
			i & 1 ? RFL_ENGINE_EVAL : RFL_ENGINE_TRAIN_FROZEN_BN;
		struct rfl_engine *e;

		if (!computes(config.precision, "2.3"))
			continue;
		e = open_with(&config);
		assert_ok(ops->set_mode(e, mode, &err), &err);
		forward(e, &loss, before);
		assert_ok(ops->get_param(e, w, values, N, &err), &err);
		for (int k = 0; k < N; k++)
			values[k] *= 10;
		assert_ok(ops->set_param(e, w, values, N, &err), &err);
		forward(e, &loss, after);
		ops->close(e);

		e = open_with(&config);
		assert_ok(ops->set_mode(e, mode, &err), &err);
		assert_ok(ops->set_param(e, w, values, N, &err), &err);
		forward(e, &loss, fresh);
		ops->close(e);
		assert_memory_not_equal(before, after, sizeof(before));
		assert_memory_equal(after, fresh, sizeof(after));
	}
}

/* A run is the same bits again, in every precision and layout, whether it was asked for or not: the
 * CPU's kernels are deterministic at one number of threads. */
static void runs_repeat_to_the_bit(void **state)
{
	static float params[2][FLOATS];

	(void)state;
	for (int i = 0; i < 12; i++) {
		struct rfl_engine_config config = precision_config(
			(enum rfl_precision[]){ RFL_PRECISION_FP32, RFL_PRECISION_BF16,
						RFL_PRECISION_FP16 }[i / 4],
			i & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW);
		double loss[2][4];
		int64_t n = 0;

		config.deterministic = i & 2;
		config.dropout = true;
		if (!computes(config.precision, "2.3"))
			continue;
		for (int again = 0; again < 2; again++) {
			struct rfl_engine *e = open_with(&config);

			for (int k = 0; k < 4; k++)
				one_step(e, &loss[again][k]);
			n = all_params(e, params[again]);
			ops->close(e);
		}
		assert_memory_equal(loss[0], loss[1], sizeof(loss[0]));
		assert_memory_equal(params[0], params[1], (size_t)n * sizeof(float));
	}
}

static double scale_of(struct rfl_engine *e, int64_t *skipped)
{
	struct rfl_loss_scaling scaling;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(ops->scaling(e, &scaling, &err), &err);
	if (skipped)
		*skipped = scaling.skipped;
	return scaling.scale;
}

static void only_fp16_scales(void **state)
{
	static const enum rfl_precision precisions[] = { RFL_PRECISION_FP32, RFL_PRECISION_BF16,
							 RFL_PRECISION_AMP };
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(precisions); i++) {
		const struct rfl_engine_config config =
			precision_config(precisions[i], RFL_LAYOUT_NCHW);
		struct rfl_engine *e = open_with(&config);
		int64_t skipped = 0;

		assert_true(isnan(scale_of(e, &skipped)));
		assert_int_equal(skipped, -1);
		ops->close(e);
	}
}

/* The scale is in no gradient that is read, and in no update. */
static void the_scale_leaves_no_trace(void **state)
{
	enum { N = CLASSES };
	const int bias = param_index("fc.bias");
	const struct rfl_batch batch = batch_of(BATCH);
	const struct rfl_engine_config config =
		precision_config(RFL_PRECISION_FP16, RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	float grad[2][N], before[N], after[N];
	struct rfl_engine *e;

	(void)state;
	if (!computes(RFL_PRECISION_FP16, "2.3"))
		skip();
	for (int scaled = 0; scaled < 2; scaled++) {
		const struct rfl_backward twice = { .weight = 0.5 };

		e = scaled ? open_with(&config) : open_plain();
		assert_ok(ops->zero_grad(e, &err), &err);
		for (int i = 0; i < 2; i++) {
			assert_ok(ops->forward(e, &batch, &err), &err);
			assert_ok(ops->backward(e, &twice, &err), &err);
		}
		assert_ok(ops->get_grad(e, bias, grad[scaled], N, &err), &err);
		assert_ok(ops->get_param(e, bias, before, N, &err), &err);
		assert_ok(ops->step(e, &err), &err);
		assert_ok(ops->get_param(e, bias, after, N, &err), &err);
		for (int i = 0; i < N; i++) {
			const double decayed = (double)grad[scaled][i] + 0.01 * (double)before[i];

			assert_true(fabs((double)before[i] - 0.1 * decayed - (double)after[i]) <
				    1e-6);
		}
		assert_ok(ops->set_mode(e, RFL_ENGINE_EVAL, &err), &err);
		assert_true(isnan(scale_of(e, NULL))); /* no gradients: nothing is scaled */
		ops->close(e);
	}
	for (int i = 0; i < N; i++)
		assert_true(fabs((double)(grad[0][i] - grad[1][i])) < 2e-3);
}

/* Gradients that overflow: nothing moves, the scale halves, until they fit. The first update that
 * is made is then Adam's first: by the rate, whatever the gradient. */
static void overflow_skips_and_halves(void **state)
{
	enum { N = CLASSES * 32 };
	static float before[FLOATS], after[FLOATS];
	const int w = param_index("fc.weight"), bias = param_index("fc.bias");
	struct rfl_err err = RFL_ERR_INIT;
	float large[N], b[2][CLASSES];
	double loss;

	(void)state;
	if (!computes(RFL_PRECISION_FP16, "2.3"))
		skip();
	for (int kernels = RFL_KERNELS_FOREACH; kernels <= RFL_KERNELS_FUSED; kernels++) {
		struct rfl_engine_config config =
			precision_config(RFL_PRECISION_FP16, RFL_LAYOUT_NCHW);
		struct rfl_engine *e;
		int64_t skipped = 0, n;
		int steps = 0;

		config.optimizer = (struct rfl_optimizer){
			.rule = RFL_RULE_ADAM,
			.kernels = (enum rfl_optimizer_kernels)kernels,
			.lr = 0.01,
			.beta1 = 0.9,
			.beta2 = 0.999,
			.eps = 1e-8,
		};
		e = open_with(&config);
		assert_ok(ops->set_mode(e, RFL_ENGINE_TRAIN_FROZEN_BN, &err), &err);
		assert_true(scale_of(e, NULL) == 65536);
		assert_ok(ops->get_param(e, w, large, N, &err), &err);
		for (int i = 0; i < N; i++)
			large[i] *= 1000;
		assert_ok(ops->set_param(e, w, large, N, &err), &err);
		assert_ok(ops->snapshot(e, &err), &err);
		n = all_params(e, before);
		assert_ok(ops->get_param(e, bias, b[0], CLASSES, &err), &err);
		for (; steps == skipped; steps++) {
			assert_memory_equal(before, after, steps ? (size_t)n * sizeof(float) : 0);
			assert_in_range(steps, 0, 16);
			one_step(e, &loss);
			(void)all_params(e, after);
			(void)scale_of(e, &skipped);
			assert_true(scale_of(e, NULL) == ldexp(65536, -(int)skipped));
		}
		assert_in_range(skipped, 1, 15);
		assert_memory_not_equal(before, after, (size_t)n * sizeof(float));
		assert_ok(ops->get_param(e, bias, b[1], CLASSES, &err), &err);
		for (int i = 0; i < CLASSES; i++) {
			const double moved = fabs((double)(b[1][i] - b[0][i]));

			assert_true(moved == 0 || fabs(moved - 0.01) < 1e-5);
		}
		assert_ok(ops->restore(e, &err),
			  &err); /* the scale and the count go back as well */
		assert_true(scale_of(e, &skipped) == 65536);
		assert_int_equal(skipped, 0);
		one_step(e, &loss);
		assert_true(scale_of(e, &skipped) == 32768);
		assert_int_equal(skipped, 1);
		assert_ok(ops->reset_optimizer(e, &err), &err);
		assert_true(scale_of(e, &skipped) == 65536);
		assert_int_equal(skipped, 0);
		ops->close(e);
	}
}

/* 2000 good steps in a row double it: those after the last skipped one. */
static void good_steps_double_the_scale(void **state)
{
	struct rfl_engine_config config = precision_config(RFL_PRECISION_FP16, RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	int64_t skipped = 0, good = 0;
	struct rfl_engine *e;
	double scale = 0, loss;

	(void)state;
	if (!computes(RFL_PRECISION_FP16, "2.3"))
		skip();
	config.threads = 1;
	config.optimizer = (struct rfl_optimizer){ .rule = RFL_RULE_SGD }; /* nothing moves */
	e = open_with(&config);
	assert_ok(ops->set_mode(e, RFL_ENGINE_TRAIN_FROZEN_BN, &err), &err);
	for (int64_t steps = 1; good < 1; steps++) {
		assert_in_range(steps, 1, 16);
		one_step(e, &loss);
		scale = scale_of(e, &skipped);
		good = steps - skipped;
	}
	for (; good < 1999; good++)
		one_step(e, &loss);
	assert_true(scale_of(e, NULL) == scale);
	one_step(e, &loss);
	assert_true(scale_of(e, &good) == 2 * scale);
	assert_int_equal(good, skipped);
	ops->close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_by_name),
		cmocka_unit_test(casts_products),
		cmocka_unit_test(changed_weights_are_seen),
		cmocka_unit_test(runs_repeat_to_the_bit),
		cmocka_unit_test(only_fp16_scales),
		cmocka_unit_test(the_scale_leaves_no_trace),
		cmocka_unit_test(overflow_skips_and_halves),
		cmocka_unit_test(good_steps_double_the_scale),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
