/* The torch engine on a small network: snapshots, marks and traces. */
#include "tests/unit/torch_rig.h"

#include <math.h>
#include <stdio.h>

#include "base/compiler.h"

static void one_step(struct rfl_engine *e, double *loss)
{
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	assert_ok(ops->backward(e, NULL, &err), &err);
	assert_ok(ops->step(e, &err), &err);
	assert_ok(ops->loss(e, loss, &err), &err);
}

/* Dropout draws, batch norm counts, momentum grows: all of it goes back, before the first step and
 * after some, in both layouts. */
static void restored_steps_give_the_same_bits(void **state)
{
	static float after[2][FLOATS], before[FLOATS];
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int round = 0; round < 4; round++) {
		struct rfl_engine_config config =
			config_of(round & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW);
		double loss[2][3], other;
		struct rfl_engine *e;
		int64_t n;

		config.dropout = true;
		e = open_with(&config);
		assert_int_equal(ops->restore(e, &err), RFL_EINVAL);
		rfl_err_clear(&err);
		for (int i = 0; round >= 2 && i < 3; i++)
			one_step(e, &other);
		n = all_params(e, before);
		assert_ok(ops->snapshot(e, &err), &err);
		for (int again = 0; again < 2; again++) {
			for (int i = 0; i < 3; i++)
				one_step(e, &loss[again][i]);
			assert_int_equal(all_params(e, after[again]), n);
			assert_memory_not_equal(before, after[again], (size_t)n * sizeof(float));
			assert_ok(ops->restore(e, &err), &err);
			assert_int_equal(ops->step(e, &err), RFL_EINVAL); /* nothing of it left */
			rfl_err_clear(&err);
			assert_int_equal(ops->loss(e, &other, &err), RFL_EINVAL);
			rfl_err_clear(&err);
		}
		assert_memory_equal(loss[0], loss[1], sizeof(loss[0]));
		assert_memory_equal(after[0], after[1], (size_t)n * sizeof(float));
		all_params(e, after[0]);
		assert_memory_equal(before, after[0], (size_t)n * sizeof(float));
		one_step(e, &other);
		one_step(e, &loss[1][1]);
		assert_true(other == loss[0][0]);
		ops->close(e);
	}
}

/* The parts of a state in a block, as a checkpoint has them. */
struct kept {
	char bytes[1 << 17], names[4096];
	size_t at;
};

static enum rfl_rc keep(const char *name, void *data, size_t bytes, void *ctx, struct rfl_err *err)
{
	struct kept *k = ctx;
	size_t len;

	(void)err;
	assert_in_range(k->at + bytes, 0, sizeof(k->bytes));
	memcpy(k->bytes + k->at, data, bytes);
	k->at += bytes;
	len = strlen(k->names);
	(void)snprintf(k->names + len, sizeof(k->names) - len, "%s ", name);
	return RFL_OK;
}

static enum rfl_rc give_back(const char *name, void *data, size_t bytes, void *ctx,
			     struct rfl_err *err)
{
	struct kept *k = ctx;

	(void)err, (void)name;
	memcpy(data, k->bytes + k->at, bytes);
	k->at += bytes;
	return RFL_OK;
}

static enum rfl_rc refuse(const char *name, void *data, size_t bytes, void *ctx,
			  struct rfl_err *err)
{
	(void)data, (void)bytes, (void)ctx;
	return strcmp(name, "fc.weight:square") == 0 ? rfl_fail(err, RFL_EFORMAT, 0, "no %s", name)
						     : RFL_OK;
}

/* A state taken from one engine and put into another makes them equal: the same losses and
 * parameters to the bit, with every rule, in both layouts, before the first step and after some. */
static void a_state_moves_to_another_engine(void **state)
{
	static float of_one[FLOATS], of_other[FLOATS];
	static struct kept k;

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct rfl_engine_config config =
			config_of(round & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_engine *one, *other;
		double loss[2];
		int64_t n;

		config.dropout = true;
		config.optimizer.rule = (enum rfl_optimizer_rule)(round / 2 % 3);
		config.optimizer.beta1 = 0.9;
		config.optimizer.beta2 = 0.99;
		config.optimizer.eps = 1e-8;
		one = open_with(&config);
		for (int i = 0; round >= 6 && i < 3; i++)
			one_step(one, loss);
		k.at = 0;
		k.names[0] = '\0';
		assert_ok(ops->visit_state(one, false, keep, &k, &err), &err);
		assert_non_null(strstr(k.names, "conv1.weight conv1.weight:mean "));
		assert_true(!strstr(k.names, "running_mean:mean"));
		assert_true(!strstr(k.names, ":square") == (round / 2 % 3 == 0));
		config.seed = 7;
		other = open_with(&config);
		one_step(other, loss);
		k.at = 0;
		assert_ok(ops->visit_state(other, true, give_back, &k, &err), &err);
		/* one generator serves both engines: take turns from the same state */
		for (int i = 0; i < 3; i++)
			one_step(other, &loss[0]);
		k.at = 0;
		assert_ok(ops->visit_state(one, true, give_back, &k, &err), &err);
		for (int i = 0; i < 3; i++)
			one_step(one, &loss[1]);
		assert_true(loss[0] == loss[1]);
		n = all_params(one, of_one);
		assert_int_equal(all_params(other, of_other), n);
		assert_memory_equal(of_one, of_other, (size_t)n * sizeof(float));
		if (round / 2 % 3 > 0) {
			assert_int_equal(ops->visit_state(one, true, refuse, NULL, &err),
					 RFL_EFORMAT);
			assert_says(&err, "no fc.weight:square");
		}
		ops->close(one);
		ops->close(other);
	}
}

/* The sums are those of the logits and losses that the engine returns, whatever the mode. */
static void scores_are_of_the_logits(void **state)
{
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_score score;
	struct rfl_engine *e;
	int64_t correct = 0;
	double sum = 0;

	(void)state;
	config.score = true;
	e = open_with(&config);
	for (int i = 0; i < 6; i++) {
		const struct rfl_batch batch = batch_of(i % 2 ? 2 : BATCH);
		float logits[BATCH * CLASSES];
		double loss;

		assert_ok(ops->set_mode(e, i < 3 ? RFL_ENGINE_EVAL : RFL_ENGINE_TRAIN, &err), &err);
		assert_ok(ops->forward(e, &batch, &err), &err);
		assert_ok(ops->loss(e, &loss, &err), &err);
		assert_ok(ops->logits(e, logits, batch.n * CLASSES, &err), &err);
		sum += loss * (double)batch.n;
		for (int64_t r = 0; r < batch.n; r++) {
			int64_t best = 0;

			for (int64_t c = 1; c < CLASSES; c++)
				if (logits[r * CLASSES + c] > logits[r * CLASSES + best])
					best = c;
			correct += best == labels[r];
		}
	}
	assert_ok(ops->score(e, &score, &err), &err);
	assert_int_equal(score.rows, 3 * BATCH + 3 * 2);
	assert_int_equal(score.correct, correct);
	assert_true(fabs(score.loss - sum) < 1e-12 * sum);
	assert_ok(ops->score(e, &score, &err), &err);
	assert_int_equal(score.rows, 0);
	ops->close(e);
}

struct marks {
	char text[2048];
	int calls, fail_at;
};

static enum rfl_rc on_mark(const char *name, void *ctx, struct rfl_err *err)
{
	struct marks *m = ctx;
	size_t at = strlen(m->text);

	if (++m->calls == m->fail_at)
		return rfl_fail(err, RFL_EFAILED, 0, "stopped at %s", name);
	(void)snprintf(m->text + at, sizeof(m->text) - at, "%s ", name);
	return RFL_OK;
}

/* The add is the block's; flatten and dropout (when it is off) hand their input on. */
#define MARKED_FORWARD                                                                           \
	"fwd/input fwd/conv1 fwd/bn1 fwd/relu fwd/conv2 fwd/relu6 fwd/add fwd/pool fwd/avgpool " \
	"fwd/flatten fwd/dropout fwd/fc fwd/loss "
#define MARKED_BACKWARD(dropout)                                                         \
	"bwd/loss bwd/fc " dropout "bwd/flatten bwd/avgpool bwd/pool bwd/add bwd/relu6 " \
	"bwd/conv2 bwd/relu bwd/bn1 bwd/conv1 "

static void marks_name_every_node_in_order(void **state)
{
	static const char *const expected[] = {
		MARKED_FORWARD MARKED_BACKWARD(""),
		MARKED_FORWARD MARKED_BACKWARD("bwd/dropout "),
	};
	struct rfl_err err = RFL_ERR_INIT;
	double marked, plain;

	(void)state;
	for (int dropout = 0; dropout < 2; dropout++) {
		struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
		struct marks m = { .calls = 0 };
		struct rfl_engine *e;

		config.dropout = dropout;
		e = open_with(&config);
		assert_ok(ops->snapshot(e, &err), &err);
		assert_ok(ops->mark(e, on_mark, &m, &err), &err);
		one_step(e, &marked);
		assert_string_equal(m.text, expected[dropout]);
		assert_ok(ops->mark(e, NULL, NULL, &err), &err);
		assert_ok(ops->loss(e, &plain, &err), &err); /* of a finished step it stays */
		assert_true(plain == marked);
		assert_ok(ops->restore(e, &err), &err);
		m.text[0] = '\0';
		one_step(e, &plain);
		assert_string_equal(m.text, "");
		assert_true(plain == marked);
		ops->close(e);
	}
}

static void marks_of_evaluation_are_of_forward_only(void **state)
{
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_engine *e = open_plain();
	struct rfl_err err = RFL_ERR_INIT;
	struct marks m = { .calls = 0 };

	(void)state;
	assert_ok(ops->set_mode(e, RFL_ENGINE_EVAL, &err), &err);
	assert_ok(ops->mark(e, on_mark, &m, &err), &err);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	assert_string_equal(m.text, MARKED_FORWARD);

	assert_ok(ops->set_mode(e, RFL_ENGINE_TRAIN, &err), &err);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	assert_ok(ops->mark(e, NULL, NULL, &err), &err); /* its hooks go with its history */
	assert_int_equal(ops->backward(e, NULL, &err), RFL_EINVAL);
	ops->close(e);
}

/* Wherever fn fails, its message comes out of the call in progress, and the engine continues.
 */
static void a_failing_mark_stops_the_step(void **state)
{
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = open_plain();
	struct marks m = { .calls = 0 };
	double loss;
	int forward_marks, all;

	(void)state;
	assert_ok(ops->mark(e, on_mark, &m, &err), &err);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	forward_marks = m.calls;
	assert_ok(ops->backward(e, NULL, &err), &err);
	all = m.calls;
	for (int at = 1; at <= all; at++) {
		enum rfl_rc rc;

		m = (struct marks){ .fail_at = at };
		rfl_err_clear(&err);
		rc = ops->forward(e, &batch, &err);
		assert_int_equal(rc == RFL_OK, at > forward_marks);
		if (rc == RFL_OK)
			rc = ops->backward(e, NULL, &err);
		assert_int_equal(rc, RFL_EFAILED);
		assert_says(&err, "stopped at");
		assert_int_equal(m.calls, at);
	}
	rfl_err_clear(&err);
	m = (struct marks){ .calls = 0 };
	one_step(e, &loss);
	assert_int_equal(m.calls, all);
	ops->close(e);
}

struct seen {
	int nodes;
	int64_t last_numel;
};

static enum rfl_rc on_node(int node, const float *values, int64_t numel, void *ctx,
			   struct rfl_err *err)
{
	struct seen *s = ctx;

	(void)err;
	assert_int_equal(node, s->nodes++);
	assert_int_equal(numel, BATCH * rfl_shape_numel(&net->nodes[node].shape));
	assert_true(isfinite(values[0]) && isfinite(values[numel - 1]));
	s->last_numel = numel;
	return RFL_OK;
}

static enum rfl_rc stop_at_third(int node, const float *values, int64_t numel, void *ctx,
				 struct rfl_err *err)
{
	(void)values;
	(void)numel;
	(void)ctx;
	return node == 2 ? rfl_fail(err, RFL_EINTR, 0, "enough") : RFL_OK;
}

static void traces_every_node(void **state)
{
	const struct rfl_engine_config config = config_of(RFL_LAYOUT_NHWC);
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_engine *e = open_with(&config);
	struct rfl_err err = RFL_ERR_INIT;
	struct seen seen = { 0 };

	(void)state;
	assert_ok(ops->forward_traced(e, &batch, on_node, &seen, &err), &err);
	assert_int_equal(seen.nodes, net->nnodes);
	assert_int_equal(seen.last_numel, BATCH * CLASSES);
	assert_ok(ops->backward(e, NULL, &err), &err);
	assert_int_equal(ops->forward_traced(e, &batch, stop_at_third, NULL, &err), RFL_EINTR);
	assert_says(&err, "enough");
	rfl_err_clear(&err);
	assert_int_equal(ops->backward(e, NULL, &err), RFL_EINVAL);
	rfl_err_clear(&err);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	ops->close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restored_steps_give_the_same_bits),
		cmocka_unit_test(a_state_moves_to_another_engine),
		cmocka_unit_test(scores_are_of_the_logits),
		cmocka_unit_test(marks_name_every_node_in_order),
		cmocka_unit_test(marks_of_evaluation_are_of_forward_only),
		cmocka_unit_test(a_failing_mark_stops_the_step),
		cmocka_unit_test(traces_every_node),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
