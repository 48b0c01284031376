/* attention_d<N>: a network for every N, with three inputs that need gradients. */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "complexity/count.h"
#include "complexity/count/memory.h"
#include "complexity/net/file.h"
#include "complexity/zoo.h"

enum { T = 32, N = 48, B = 5 };

static struct rfl_net *attention(enum rfl_attention form)
{
	const struct rfl_zoo_options sizes = { .context_length = T, .attention = form };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build("attention_d48", &sizes, &net, &err), &err);
	return net;
}

/* Two products of T x T x N, each with two gradients; fused attention repeats the first. */
static void products_and_traffic(void **state)
{
	static const enum rfl_attention forms[] = { RFL_ATTENTION_NAIVE, RFL_ATTENTION_COMPOSED,
						    RFL_ATTENTION_SDPA };
	const int64_t product = 2 * (int64_t)B * T * T * N, all = 4 * 4 * (int64_t)B * T * N;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(forms); i++) {
		const bool fused = forms[i] == RFL_ATTENTION_SDPA;
		struct rfl_net *net = attention(forms[i]);
		const struct rfl_count_options options = { .batch = B, .training = true };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_count *count = NULL;

		assert_ok(rfl_count_net(net, &options, &count, &err), &err);
		assert_string_equal(net->model, "attention_d48");
		assert_int_equal(net->ninputs, 3);
		assert_int_equal(rfl_net_param_count(net), 0);
		assert_int_equal(rfl_count_forward_flops(count), 2 * product);
		assert_int_equal(rfl_count_model_flops(count), 6 * product);
		assert_int_equal(rfl_count_training_flops(count), (fused ? 7 : 6) * product);
		/* q, k, v read and their gradients written, once: no parameters, no labels */
		assert_int_equal(
			rfl_count_bytes(count, RFL_FUSION_COMPULSORY, RFL_SCOPE_FORWARD_BACKWARD),
			2 * all / 4 * 3);
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

static void memory_of_the_inputs(void **state)
{
	struct rfl_net *net = attention(RFL_ATTENTION_NAIVE);
	const struct rfl_memory_options options = { .count = { .batch = B, .training = true } };
	const int64_t one = 4 * (int64_t)B * T * N, scores = 4 * (int64_t)B * T * T;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_memory *m = NULL;

	(void)state;
	assert_ok(rfl_memory_new(net, &options, &m, &err), &err);
	assert_int_equal(m->input, 3 * one);
	assert_int_equal(m->weights + m->state + m->gradients, 0);
	assert_int_equal(m->saved_class[RFL_SAVED_CLASS_INPUT], 3 * one);
	assert_int_equal(m->saved_class[RFL_SAVED_CLASS_ACTIVATIONS], scores); /* the softmax */
	assert_true(m->peak >= 6 * one + scores); /* with three gradients */
	rfl_memory_free(m);
	rfl_net_free(net);
}

static void names(void **state)
{
	static const char *const bad[] = { "attention_d",         "attention_d0",
					   "attention_d064",      "attention_d<N>",
					   "attention_d12345678", "attention_d-4" };
	const struct rfl_zoo_model *model = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = attention(RFL_ATTENTION_AUTO);
	struct rfl_buf text;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(bad); i++) {
		rfl_err_clear(&err);
		assert_int_equal(rfl_zoo_find(bad[i], &model, &err), RFL_ENOTFOUND);
	}
	rfl_err_clear(&err);
	assert_ok(rfl_zoo_find("attention_d1024", &model, &err), &err);
	assert_true(model->numbered);
	for (size_t i = 0; rfl_zoo_at(i); i++)
		assert_false(rfl_zoo_at(i)->numbered);
	rfl_buf_init(&text, 0);
	assert_int_equal(rfl_net_write(net, &text, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "several inputs");
	rfl_buf_fini(&text);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_and_traffic),
		cmocka_unit_test(memory_of_the_inputs),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
