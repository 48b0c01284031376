/* The torch engine on networks of the zoo: what it opens, what only training with dropout runs, and
 * that steps of any kind of network can be marked, counted and taken back. */
#include "tests/unit/torch_rig.h"

#include <math.h>
#include <stdio.h>

#include "base/compiler.h"
#include "complexity/zoo.h"

enum { SAMPLES = 2, MANY_PARAMS = 300000000 };

/* A network of the zoo at a small size, with an engine and a batch. */
struct model {
	struct rfl_net *net;
	struct rfl_engine *engine;
	float *images;
	int64_t *tokens, *labels;
	struct rfl_batch batch;
};

static void model_init(struct model *m, const char *name, const struct rfl_zoo_options *options,
		       const struct rfl_engine_config *config)
{
	const struct rfl_shape *input;
	struct rfl_err err = RFL_ERR_INIT;
	int64_t rows;

	*m = (struct model){ .net = NULL };
	assert_ok(rfl_zoo_build(name, options, &m->net, &err), &err);
	input = &m->net->nodes[0].shape;
	rows = SAMPLES * rfl_shape_numel(&m->net->nodes[m->net->output].shape) / m->net->classes;
	m->images = calloc((size_t)(SAMPLES * rfl_shape_numel(input)), sizeof(*m->images));
	m->tokens = calloc((size_t)(SAMPLES * rfl_shape_numel(input)), sizeof(*m->tokens));
	m->labels = calloc((size_t)rows, sizeof(*m->labels));
	assert_true(m->images && m->tokens && m->labels);
	rfl_fill_labels(0, rows, m->net->classes, m->labels);
	m->batch = (struct rfl_batch){
		.n = SAMPLES, .images = m->images, .layout = config->layout, .labels = m->labels
	};
	if (options->context_length) {
		m->batch.kind = RFL_INPUT_TOKENS;
		m->batch.tokens = m->tokens;
		rfl_fill_tokens(0, SAMPLES * rfl_shape_numel(input), m->net->classes, m->tokens);
	} else {
		assert_ok(rfl_fill_images(input, 0, SAMPLES, config->layout, 1, m->images, &err),
			  &err);
	}
	assert_ok(ops->open(m->net, config, &m->engine, &err), &err);
	assert_ok(rfl_fill_engine(ops, m->engine, m->net, 1, &err), &err);
}

static void model_fini(struct model *m)
{
	ops->close(m->engine);
	free(m->labels);
	free(m->tokens);
	free(m->images);
	rfl_net_free(m->net);
}

static double one_step(struct model *m)
{
	struct rfl_err err = RFL_ERR_INIT;
	double loss = NAN;

	assert_ok(ops->zero_grad(m->engine, &err), &err);
	assert_ok(ops->forward(m->engine, &m->batch, &err), &err);
	assert_ok(ops->backward(m->engine, NULL, &err), &err);
	assert_ok(ops->step(m->engine, &err), &err);
	assert_ok(ops->loss(m->engine, &loss, &err), &err);
	return loss;
}

/* Every layer of every network has a row and known numbers. Parameters are memory that no one has
 * touched; of the largest networks, smaller ones of the same family are opened. */
static void opens_the_zoo(void **state)
{
	const struct rfl_zoo_model *zoo;
	int opened = 0, large = 0;

	(void)state;
	for (size_t i = 0; (zoo = rfl_zoo_at(i)); i++) {
		struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
		struct rfl_engine *e = NULL;
		struct rfl_net *whole = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		assert_ok(rfl_zoo_build(zoo->name, NULL, &whole, &err), &err);
		if (rfl_net_param_count(whole) > MANY_PARAMS) {
			large++;
		} else {
			assert_ok(ops->open(whole, &config, &e, &err), &err);
			ops->close(e);
			opened++;
		}
		rfl_net_free(whole);
	}
	assert_int_equal(opened + large, 97);
	assert_in_range(large, 1, 15);
}

/* Dropout, stochastic depth and dropout of attention run in no reference file. Each network is
 * stepped twice from one snapshot, to the bit, and what is dropped changes the loss. */
static void dropped_steps_repeat(void **state)
{
	static const struct {
		const char *name;
		int64_t image_size, context_length;
		enum rfl_attention attention;
		bool drops;
	} cases[] = {
		{ "efficientnet_b0", 32, 0, RFL_ATTENTION_AUTO, true },
		{ "shufflenet_v2_x0_5", 64, 0, RFL_ATTENTION_AUTO, false },
		{ "mobilenet_v3_small", 64, 0, RFL_ATTENTION_AUTO, true },
		{ "swin_t", 64, 0, RFL_ATTENTION_AUTO, true },
		{ "tiny_lm", 0, 16, RFL_ATTENTION_SDPA, false },
		{ "tiny_lm", 0, 16, RFL_ATTENTION_COMPOSED, false },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_zoo_options options = {
			.image_size = cases[i].image_size,
			.context_length = cases[i].context_length,
			.classes = 50,
			.attention = cases[i].attention,
		};
		struct rfl_engine_config config =
			config_of(i & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW);
		struct rfl_err err = RFL_ERR_INIT;
		struct model m;
		double dropped, again, other, plain;

		config.optimizer.lr = 1e-3;
		config.threads = 1;
		config.max_batch = SAMPLES;
		config.dropout = true;
		model_init(&m, cases[i].name, &options, &config);
		assert_ok(ops->snapshot(m.engine, &err), &err);
		dropped = one_step(&m);
		other = one_step(&m);
		assert_ok(ops->restore(m.engine, &err), &err);
		again = one_step(&m);
		assert_true(isfinite(dropped) && dropped == again);
		assert_true(one_step(&m) == other);
		model_fini(&m);
		config.dropout = false;
		model_init(&m, cases[i].name, &options, &config);
		plain = one_step(&m);
		assert_true(isfinite(plain));
		if ((plain != dropped) != cases[i].drops)
			fail_msg("%s: %.9g with dropout, %.9g without", cases[i].name, dropped,
				 plain);
		model_fini(&m);
	}
}

struct marks {
	int forward, backward;
	char last[64];
};

static enum rfl_rc on_mark(const char *name, void *ctx, struct rfl_err *err)
{
	struct marks *m = ctx;

	(void)err;
	m->forward += strncmp(name, "fwd/", 4) == 0;
	m->backward += strncmp(name, "bwd/", 4) == 0;
	(void)snprintf(m->last, sizeof(m->last), "%s", name);
	return RFL_OK;
}

/* Forward names every node and the loss; backward begins with the loss and ends with the table of
 * tokens, which the first operation reads. */
static void language_models_are_marked(void **state)
{
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);

	(void)state;
	config.threads = 1;
	for (int a = 0; rfl_attention_names[a]; a++) {
		const struct rfl_zoo_options options = { .context_length = 16,
							 .classes = 50,
							 .attention = (enum rfl_attention)a };
		struct rfl_err err = RFL_ERR_INIT;
		struct marks marks = { 0 };
		double plain, marked;
		struct model m;

		model_init(&m, "tiny_lm", &options, &config);
		assert_ok(ops->snapshot(m.engine, &err), &err);
		plain = one_step(&m);
		assert_ok(ops->restore(m.engine, &err), &err);
		assert_ok(ops->mark(m.engine, on_mark, &marks, &err), &err);
		marked = one_step(&m);
		assert_true(plain == marked);
		assert_int_equal(marks.forward, m.net->nnodes + 1); /* and the loss */
		assert_in_range(marks.backward, 30, m.net->nnodes);
		assert_string_equal(marks.last, "bwd/token_embeddings");
		model_fini(&m);
	}
}

/* PyTorch's module raises; the operation of libtorch would normalise one value to 0. */
static void refuses_to_normalise_one_value(void **state)
{
	const struct rfl_zoo_options options = { .image_size = 32, .classes = 50 };
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	struct model m;

	(void)state;
	config.max_batch = SAMPLES;
	config.threads = 1;
	model_init(&m, "resnet18", &options, &config);
	m.batch.n = 1;
	assert_int_equal(ops->forward(m.engine, &m.batch, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "torch: layer4.0.bn1: batch norm in training needs more than one value "
			  "per channel; use a larger batch or larger images");
	rfl_err_clear(&err);
	assert_ok(ops->set_mode(m.engine, RFL_ENGINE_EVAL, &err), &err);
	assert_ok(ops->forward(m.engine, &m.batch, &err), &err);
	assert_ok(ops->set_mode(m.engine, RFL_ENGINE_TRAIN, &err), &err);
	m.batch.n = SAMPLES;
	assert_true(isfinite(one_step(&m)));
	model_fini(&m);
}

/* The mean of a causal attention of q, k and v, which lie one after the other, in double. */
static double attention_mean(const float *qkv, int64_t n, int64_t tokens, int64_t features)
{
	const int64_t each = n * tokens * features;
	double weight[64], sum = 0;

	for (int64_t row = 0; row < n * tokens; row++) {
		const int64_t first = row / tokens * tokens, seen = row % tokens + 1;
		double most = -INFINITY, all = 0;

		for (int64_t j = 0; j < seen; j++) {
			weight[j] = 0;
			for (int64_t f = 0; f < features; f++)
				weight[j] += (double)qkv[row * features + f] *
					     (double)qkv[each + (first + j) * features + f];
			weight[j] /= sqrt((double)features);
			most = fmax(most, weight[j]);
		}
		for (int64_t j = 0; j < seen; j++)
			all += weight[j] = exp(weight[j] - most);
		for (int64_t j = 0; j < seen; j++)
			for (int64_t f = 0; f < features; f++)
				sum += weight[j] / all *
				       (double)qkv[2 * each + (first + j) * features + f];
	}
	return sum / (double)each;
}

/* attention_d<N>: three inputs, no parameters, the mean as loss, in every form and layout. */
static void attends_to_three_inputs(void **state)
{
	enum { TOKENS = 20, FEATURES = 12, ALL = 3 * SAMPLES * TOKENS * FEATURES };
	float qkv[ALL];

	(void)state;
	for (int i = 0; i < ALL; i++)
		qkv[i] = (float)sin(i * 0.7) * (i < ALL / 3 ? 2.0f : 1.5f);
	for (int i = 0; i < 8; i++) {
		const struct rfl_zoo_options sizes = {
			.context_length = TOKENS,
			.attention = (enum rfl_attention)(i / 2),
		};
		struct rfl_engine_config config =
			config_of(i & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW);
		const struct rfl_batch batch = { .n = SAMPLES, .images = qkv };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_engine *e = NULL;
		struct rfl_net *attention = NULL;
		double loss = NAN, want = attention_mean(qkv, SAMPLES, TOKENS, FEATURES);

		assert_ok(rfl_zoo_build("attention_d12", &sizes, &attention, &err), &err);
		assert_ok(ops->open(attention, &config, &e, &err), &err);
		for (int mode = RFL_ENGINE_EVAL; mode <= RFL_ENGINE_TRAIN; mode++) {
			struct rfl_batch with_labels = batch;
			int64_t unused[SAMPLES * TOKENS] = { 0 };

			with_labels.labels = unused;
			assert_ok(ops->set_mode(e, (enum rfl_engine_mode)mode, &err), &err);
			for (int again = 0; again < 2; again++) {
				assert_ok(ops->zero_grad(e, &err), &err);
				assert_ok(ops->forward(e, &with_labels, &err), &err);
				assert_ok(ops->loss(e, &loss, &err), &err);
				assert_true(fabs(loss - want) < 1e-6);
				if (mode == RFL_ENGINE_TRAIN)
					assert_ok(ops->backward(e, NULL, &err), &err);
			}
		}
		ops->close(e);
		rfl_net_free(attention);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_the_zoo),
		cmocka_unit_test(dropped_steps_repeat),
		cmocka_unit_test(language_models_are_marked),
		cmocka_unit_test(refuses_to_normalise_one_value),
		cmocka_unit_test(attends_to_three_inputs),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
