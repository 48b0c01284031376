/*
 * test_runner_torch_generate.c - language models with a cache: the greedy tokens and logits of
 * transformers (tests/data/lm/greedy.json), token by token and in larger pieces; 16-bit and 8-bit
 * weights; what is refused; and windows and shared heads without a cache.
 */
#include "tests/unit/torch_rig.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "complexity/lm.h"
#include "complexity/zoo/blocks.h"

enum { SEQUENCES = 3, PROMPT = 7, NEW = 12, VOCAB = 211, GOT = 8 };

/* A model of the file. */
struct golden {
	struct rfl_arena *arena;
	struct rfl_lm lm;
	int64_t prompt[SEQUENCES * PROMPT];
	int64_t tokens[SEQUENCES][NEW];
	double logits[SEQUENCES][GOT]; /* of the last token */
};

static int64_t no_labels[SEQUENCES * PROMPT];

static struct golden load(void *state, const char *name, const json_t *all)
{
	const json_t *of = json_object_get(json_object_get(all, "models"), name);
	char *config = json_dumps(json_object_get(of, "config"), 0);
	struct golden g = { .arena = rfl_arena_new() };
	struct rfl_lm_formats formats;
	struct rfl_err err = RFL_ERR_INIT;

	assert_non_null(config);
	assert_ok(rfl_lm_named(write_file(state, "model.json", config), g.arena, &g.lm, &formats,
			       &err),
		  &err);
	free(config);
	rfl_fill_tokens(0, SEQUENCES * PROMPT, VOCAB, g.prompt);
	for (size_t i = 0; i < SEQUENCES; i++) {
		const json_t *tokens = json_array_get(json_object_get(of, "tokens"), i);
		const json_t *logits = json_array_get(json_object_get(of, "logits"), i);

		for (size_t k = 0; k < NEW; k++)
			g.tokens[i][k] = json_integer_value(json_array_get(tokens, k));
		for (size_t k = 0; k < GOT; k++)
			g.logits[i][k] = json_real_value(json_array_get(logits, k));
	}
	return g;
}

static struct rfl_engine *open_cached(enum rfl_precision precision, bool int8)
{
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e;

	config.precision = precision;
	config.cache_tokens = PROMPT + NEW;
	config.int8_weights = int8;
	e = open_with(&config);
	assert_ok(ops->set_mode(e, RFL_ENGINE_EVAL, &err), &err);
	return e;
}

static void build(const struct golden *g, int64_t tokens)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_net_free(net);
	net = NULL;
	assert_ok(rfl_lm_net(&g->lm, tokens, &net, &err), &err);
}

/* Pass `n` tokens of each prompt, from `past` on. */
static void feed(struct rfl_engine *e, const struct golden *g, int64_t past, int64_t n)
{
	int64_t tokens[SEQUENCES * PROMPT];
	const struct rfl_batch batch = {
		.n = SEQUENCES, .kind = RFL_INPUT_TOKENS, .tokens = tokens, .labels = no_labels
	};
	struct rfl_err err = RFL_ERR_INIT;

	for (int64_t i = 0; i < SEQUENCES; i++)
		memcpy(tokens + i * n, g->prompt + i * PROMPT + past, (size_t)n * sizeof(*tokens));
	assert_ok(ops->generate(e, &batch, past, &err), &err);
}

/* The largest logits are of the k-th new tokens. */
static void next_are(struct rfl_engine *e, const struct golden *g, int k)
{
	static float logits[SEQUENCES * VOCAB];
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(ops->logits(e, logits, SEQUENCES * VOCAB, &err), &err);
	for (int i = 0; i < SEQUENCES; i++) {
		const float *row = logits + (ptrdiff_t)i * VOCAB;
		int best = 0;

		for (int v = 1; v < VOCAB; v++)
			best = row[v] > row[best] ? v : best;
		assert_int_equal(best, g->tokens[i][k]);
	}
}

/* The root mean square of the differences of the last logits, relative to their size. */
static double error_of(struct rfl_engine *e, const struct golden *g)
{
	static float logits[SEQUENCES * VOCAB];
	struct rfl_err err = RFL_ERR_INIT;
	double apart = 0, size = 0;

	assert_ok(ops->logits(e, logits, SEQUENCES * VOCAB, &err), &err);
	for (size_t i = 0; i < SEQUENCES; i++)
		for (size_t k = 0; k < GOT; k++) {
			apart += pow((double)logits[i * VOCAB + k] - g->logits[i][k], 2);
			size += pow(g->logits[i][k], 2);
		}
	return sqrt(apart / size);
}

/* Pass the prompt and the expected tokens, all but the last, one by one. */
static void teach(struct rfl_engine *e, const struct golden *g)
{
	for (int64_t t = 0; t < PROMPT; t++)
		feed(e, g, t, 1);
	for (int k = 0; k + 1 < NEW; k++) {
		int64_t tokens[SEQUENCES];
		const struct rfl_batch batch = { .n = SEQUENCES,
						 .kind = RFL_INPUT_TOKENS,
						 .tokens = tokens,
						 .labels = no_labels };
		struct rfl_err err = RFL_ERR_INIT;

		for (int i = 0; i < SEQUENCES; i++)
			tokens[i] = g->tokens[i][k];
		assert_ok(ops->generate(e, &batch, PROMPT + k, &err), &err);
	}
}

static void one_model(void *state, const char *name, const json_t *all)
{
	struct golden g = load(state, name, all);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e;
	double error;

	print_message("%s\n", name);
	build(&g, 1);
	e = open_cached(RFL_PRECISION_FP32, false);
	/* a second time: what was in the cache does not matter */
	for (int again = 0; again < 2; again++) {
		for (int64_t t = 0; t < PROMPT; t++)
			feed(e, &g, t, 1);
		next_are(e, &g, 0);
		for (int k = 1; k < NEW; k++) {
			assert_ok(ops->generate(e, NULL, PROMPT + k - 1, &err), &err);
			next_are(e, &g, k);
		}
		error = error_of(e, &g);
		if (!(error < 1e-5))
			fail_msg("%s: logits differ by %g", name, error);
	}
	ops->close(e);

	e = open_cached(RFL_PRECISION_BF16, false); /* 8 bits in each of some 30 operations */
	teach(e, &g);
	error = error_of(e, &g);
	if (!(error > 1e-5 && error < 0.05))
		fail_msg("%s in bf16: logits differ by %g", name, error);
	ops->close(e);

	build(&g, PROMPT);
	e = open_cached(RFL_PRECISION_FP32, false);
	feed(e, &g, 0, PROMPT);
	next_are(e, &g, 0);
	ops->close(e);

	build(&g, 4); /* two pieces, of which the second sees the first */
	e = open_cached(RFL_PRECISION_FP32, false);
	feed(e, &g, 0, 4);
	feed(e, &g, 3, 4);
	next_are(e, &g, 0);
	ops->close(e);
	rfl_arena_free(g.arena);
}

static json_t *read_all(void)
{
	struct rfl_err err = RFL_ERR_INIT;
	json_t *all = NULL;

	assert_ok(rfl_json_load(RFL_TEST_DATA "/lm/greedy.json", &all, &err), &err);
	return all;
}

static void tokens_of_transformers(void **state)
{
	json_auto_t *all = read_all();
	const char *name;
	json_t *model;
	size_t n = 0;

	json_object_foreach(json_object_get(all, "models"), name, model)
	{
		one_model(*state, name, all);
		n++;
	}
	assert_int_equal(n, 5);
}

/* 127 steps of each row's largest weight, or the reason why there are none. */
static void int8_weights(void **state)
{
	json_auto_t *all = read_all();
	struct golden g = load(*state, "qwen2", all);
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = NULL;
	double error;
	int minor = 0, major = 0;

	build(&g, 1);
	assert_int_equal(sscanf(ops->version, "%d.%d", &major, &minor), 2);
	if (major < 2 || (major == 2 && minor < 3)) {
		config.cache_tokens = 1;
		config.int8_weights = true;
		assert_int_equal(ops->open(net, &config, &e, &err), RFL_EUNSUPPORTED);
		assert_says(&err, "int8 weights need libtorch 2.3");
	} else {
		e = open_cached(RFL_PRECISION_BF16, true);
		for (int i = 0; i < net->nparams; i++) {
			const struct rfl_param *p = &net->params[i];
			float *want = rfl_alloc_array((size_t)p->numel, sizeof(*want));
			float *got = rfl_alloc_array((size_t)p->numel, sizeof(*got));
			const struct rfl_fill_job job = rfl_fill_job_of(p, want);

			rfl_fill_run(&job, 1, 1);
			assert_ok(ops->get_param(e, i, got, p->numel, &err), &err);
			for (int64_t k = 0; k < p->numel;
			     k++) /* bf16; or 1 / 254, its scale in bf16 */
				assert_true(fabsf(got[k] - want[k]) <=
					    fmaxf(fabsf(want[k]) / 128, 2.0f / 254 / 4));
			free(want);
			free(got);
		}
		teach(e, &g);
		error = error_of(e, &g);
		if (!(error > 1e-3 && error < 0.1))
			fail_msg("int8: logits differ by %g", error);
		ops->close(e);
	}
	rfl_arena_free(g.arena);
}

static void refused(void **state)
{
	json_auto_t *all = read_all();
	struct golden g = load(*state, "llama", all);
	const struct rfl_batch batch = {
		.n = SEQUENCES, .kind = RFL_INPUT_TOKENS, .tokens = g.prompt, .labels = no_labels
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e;

	build(&g, 1);
	e = open_cached(RFL_PRECISION_FP32, false);
	assert_int_equal(ops->generate(e, NULL, 0, &err), RFL_EINVAL);
	assert_says(&err, "no tokens to continue with");
	rfl_err_clear(&err);
	assert_int_equal(ops->generate(e, &batch, PROMPT + NEW, &err), RFL_EINVAL);
	assert_says(&err, "1 tokens after 19 do not fit into a cache of 19");
	rfl_err_clear(&err);
	assert_int_equal(ops->forward(e, &batch, &err), RFL_EINVAL);
	assert_says(&err, "runs only generate");
	rfl_err_clear(&err);
	ops->close(e);
	e = open_plain();
	assert_int_equal(ops->generate(e, &batch, 0, &err), RFL_EINVAL);
	assert_says(&err, "needs a cache");
	ops->close(e);
	rfl_arena_free(g.arena);
}

/* ---- without a cache ---- */

enum { TOKENS = 6, HEADS = 2, WIDTH = 4, WINDOW = 3 };

/* q {tokens, heads x width}; k and v are the first `width` features of such sequences: one head,
 * which both of q's share. */
static struct rfl_net *grouped_net(void)
{
	struct rfl_net_builder *b = rfl_net_builder_new("grouped", "test");
	struct rfl_net *ret = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int x[3];

	for (int i = 0; i < 3; i++)
		x[i] = rfl_net_sequence(b,
					i == 0   ? "q"
					: i == 1 ? "k"
						 : "v",
					TOKENS, HEADS * WIDTH);
	for (int i = 0; i < 3; i++) {
		if (i > 0)
			x[i] = rfl_chain(b, x[i], SLICE(1, 0, WIDTH, 1));
		x[i] = rfl_zoo_split_heads(b, x[i], i ? 1 : HEADS);
	}
	x[0] = rfl_net_append(
		b,
		&(const struct rfl_node){ .op = RFL_OP_SDPA,
					  .ninputs = 3,
					  .input = x,
					  .attr.sdpa = { .causal = true, .window = WINDOW } },
		NULL);
	b->loss = RFL_LOSS_MEAN;
	assert_ok(rfl_net_finish(b, rfl_zoo_merge_heads(b, x[0], false), &ret, &err), &err);
	return ret;
}

static enum rfl_rc keep_last(int node, const float *values, int64_t numel, void *ctx,
			     struct rfl_err *err)
{
	(void)err;
	if (node == net->output)
		memcpy(ctx, values, (size_t)numel * sizeof(*values));
	return RFL_OK;
}

/* A query sees its own key and the two before it, and two heads share one. */
static void windows_and_groups(void **state)
{
	enum { SIZE = TOKENS * HEADS * WIDTH };
	float in[3][SIZE], out[SIZE];
	const struct rfl_batch batch = { .n = 1, .images = in[0], .labels = no_labels };
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		rfl_fill_values((struct rfl_fill_rule){ .scale = 1 }, (uint32_t)i, 0, SIZE, in[i]);
	rfl_net_free(net);
	net = grouped_net();
	e = open_with(&config);
	assert_ok(ops->set_mode(e, RFL_ENGINE_EVAL, &err), &err);
	assert_ok(ops->forward_traced(e, &batch, keep_last, out, &err), &err);
	ops->close(e);
	for (int t = 0; t < TOKENS; t++)
		for (int h = 0; h < HEADS; h++) {
			double want[WIDTH] = { 0 }, sum = 0;

			for (int s = t < WINDOW ? 0 : t - WINDOW + 1; s <= t; s++) {
				double score = 0;

				for (int i = 0; i < WIDTH; i++)
					score += (double)in[0][(t * HEADS + h) * WIDTH + i] *
						 in[1][s * HEADS * WIDTH + i];
				score = exp(score / sqrt(WIDTH));
				sum += score;
				for (int i = 0; i < WIDTH; i++)
					want[i] += score * in[2][s * HEADS * WIDTH + i];
			}
			for (int i = 0; i < WIDTH; i++)
				assert_true(fabs(out[(t * HEADS + h) * WIDTH + i] - want[i] / sum) <
					    1e-6);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tokens_of_transformers, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(int8_weights, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(refused, tmpdir_make, tmpdir_remove),
		cmocka_unit_test(windows_and_groups),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
