/*
 * test_complexity_memory_walk.c - what must hold of the memory of any network: the books balance,
 * another batch is a straight line further, and the largest batch that fits is the largest.
 */
#include "tests/unit/published.h"

#include <string.h>

#include "complexity/count/memory.h"
#include "complexity/count/memory_impl.h"
#include "tests/unit/build_rig.h"

static struct rfl_memory *memory_of(const struct rfl_net *net, struct rfl_memory_options options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_memory *m = NULL;

	if (!options.count.batch)
		options.count.batch = 1;
	assert_ok(rfl_memory_new(net, &options, &m, &err), &err);
	return m;
}

static void at(struct rfl_memory *m, int64_t batch)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_memory_at(m, batch, &err), &err);
}

static int64_t fit(struct rfl_memory *m, int64_t bytes)
{
	struct rfl_err err = RFL_ERR_INIT;
	int64_t batch = -1;

	assert_ok(rfl_memory_fit(m, bytes, &batch, &err), &err);
	return batch;
}

static const struct rfl_memory_options ways[] = {
	{ .count = { .training = true } },
	{ .count = { .training = true, .optimizer = RFL_OPT_ADAMW, .auxiliary = true } },
	{ .count = { .training = true, .optimizer = RFL_OPT_MOMENTUM, .dtype = RFL_DTYPE_F16 } },
	{ .count = { .training = true, .dtype = RFL_DTYPE_BF16, .master_weights = true },
	  .device = RFL_MEMORY_CPU },
	{ .count = { .training = true, .checkpoint = 1 } },
	{ .count = { .training = true,
		     .checkpoint = 2,
		     .dtype = RFL_DTYPE_BF16,
		     .master_weights = true },
	  .accumulate = 2 },
	{ .count = { .training = true }, .accumulate = 4 },
	{ .count = { .training = false } },
	{ .count = { .training = false, .dtype = RFL_DTYPE_F16, .master_weights = true } },
};

/* What a training program still holds of the forward pass at its update. */
static int64_t logits_bytes(const struct rfl_memory *m)
{
	const struct rfl_memory_workspace *w = m->workspace;
	int64_t sum = 0;

	for (int i = m->nnodes; i < w->links->nops; i++) {
		int logits = w->links->contexts[i].node->input[0];
		const struct rfl_memory_tensor *t = &w->tensors[logits];

		sum += t->size;
	}
	return sum;
}

/* Whatever was allocated on the way is released: the update finds weights, state, gradients, the
 * batch and the logits, and nothing else. */
static void check_books(const struct rfl_memory *m)
{
	int64_t sum = 0;

	for (int k = 0; k < RFL_SAVED_CLASS_COUNT; k++)
		sum += m->saved_class[k];
	assert_int_equal(sum, m->saved);
	assert_true(m->phase_peak[RFL_PHASE_FORWARD] >=
		    m->weights + m->buffers + m->state + m->input);
	if (!m->options.count.training) {
		assert_int_equal(m->saved, 0);
		assert_int_equal(m->peak, m->phase_peak[RFL_PHASE_FORWARD]);
		assert_int_equal(m->peak_phase, RFL_PHASE_FORWARD);
		return;
	}
	assert_int_equal(m->phase_peak[RFL_PHASE_STEP] - logits_bytes(m),
			 m->weights + m->buffers + m->state + m->gradients + m->input +
				 (m->options.count.optimizer == RFL_OPT_ADAMW ? m->gradients : 0));
	assert_true(m->phase_peak[RFL_PHASE_FORWARD] >=
		    m->weights + m->state + m->saved - m->saved_class[RFL_SAVED_CLASS_INPUT]);
	for (int p = 0; p < RFL_PHASE_COUNT; p++)
		assert_true(m->phase_peak[p] <= m->peak);
	assert_int_equal(m->peak, m->phase_peak[m->peak_phase]);
}

static void books_balance(void **state)
{
	const struct rfl_zoo_model *model;
	int seen_models = 0;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_net *net = build(model->name);

		for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
			struct rfl_memory *m;

			if (ways[k].count.checkpoint && net->nblocks == 0)
				continue;
			m = memory_of(net, ways[k]);
			check_books(m);
			at(m, 7);
			check_books(m);
			rfl_memory_free(m);
		}
		rfl_net_free(net);
		seen_models++;
	}
	assert_true(seen_models > 80);
}

static void assert_same(const struct rfl_memory *a, const struct rfl_memory *b)
{
	assert_int_equal(a->saved, b->saved);
	assert_int_equal(a->input, b->input);
	assert_int_equal(a->peak, b->peak);
	assert_int_equal(a->peak_node, b->peak_node);
	assert_memory_equal(a->phase_peak, b->phase_peak, sizeof(a->phase_peak));
	assert_memory_equal(a->saved_class, b->saved_class, sizeof(a->saved_class));
	assert_memory_equal(a->node_saved, b->node_saved,
			    (size_t)a->nnodes * sizeof(*a->node_saved));
}

static const char *const models[] = { "resnet50", "mobilenet_v2", "densenet121", "swin_t",
				      "vit_b_16", "tiny_lm",      "cs336_small" };

/* A batch set later is as one set at first, larger batches need more, and the sizes that the rules
 * of the operations give at a batch of 13 lie on the line through one and two. */
static void batches_lie_on_a_line(void **state)
{
	enum { MAX_OPS = 4096 };

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct rfl_net *net = build(models[i]);
		struct rfl_memory *m = memory_of(net, ways[1]);
		struct rfl_memory_options options = ways[1];
		int64_t before = m->peak, one[MAX_OPS], two[MAX_OPS];

		assert_true(m->workspace->links->nops <= MAX_OPS);
		for (int64_t batch = 2; batch <= 32; batch *= 2) {
			struct rfl_memory *fresh;

			options.count.batch = batch;
			fresh = memory_of(net, options);
			at(m, batch);
			assert_same(m, fresh);
			assert_true(m->peak > before);
			before = m->peak;
			rfl_memory_free(fresh);
		}
		at(m, 1);
		for (int k = 0; k < m->workspace->links->nops; k++)
			one[k] = m->workspace->extras[k].saved;
		at(m, 2);
		for (int k = 0; k < m->workspace->links->nops; k++)
			two[k] = m->workspace->extras[k].saved;
		for (int k = 0; k < m->workspace->links->nops; k++) {
			struct rfl_cost_context *c =
				rfl_links_at(&m->workspace->links->contexts[k], 13);
			const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
			struct rfl_op_saves saves = { 0 };
			int64_t bytes = 0;

			if (op->saved)
				op->saved(c, &saves);
			for (int s = 0; s < saves.n; s++)
				bytes += saves.item[s].bytes;
			assert_int_equal(bytes, one[k] + 12 * (two[k] - one[k]));
		}
		rfl_memory_free(m);
		rfl_net_free(net);
	}
}

static void largest_batch_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct rfl_net *net = build(models[i]);

		for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
			struct rfl_memory *m;

			if (ways[k].count.checkpoint && net->nblocks == 0)
				continue;
			m = memory_of(net, ways[k]);
			for (int64_t budget = m->peak; budget < (int64_t)1 << 42; budget *= 3) {
				int64_t batch = fit(m, budget);

				assert_true(batch >= 1);
				assert_int_equal(m->options.count.batch, batch);
				assert_true(m->peak <= budget);
				at(m, batch + 1);
				assert_true(m->peak > budget);
			}
			at(m, 1);
			assert_int_equal(fit(m, m->peak - 1), 0);
			assert_int_equal(m->options.count.batch, 1);
			assert_int_equal(fit(m, m->weights / 2), 0);
			assert_true(fit(m, INT64_MAX) > 1000000);
			rfl_memory_free(m);
		}
		rfl_net_free(net);
	}
}

static int64_t peak_of(const struct rfl_net *net, struct rfl_memory_options options)
{
	struct rfl_memory *m = memory_of(net, options);
	int64_t peak = m->peak;

	rfl_memory_free(m);
	return peak;
}

/* Directions that need no measurement. */
static void options_move_the_peak(void **state)
{
	struct rfl_net *net = build("cs336_small");
	struct rfl_memory_options plain = { .count = { .batch = 4, .training = true } };
	struct rfl_memory_options o = plain;
	int64_t training = peak_of(net, plain), last;

	(void)state;
	o.count.training = false;
	assert_true(peak_of(net, o) < training);

	o = plain;
	o.count.checkpoint = 12;
	last = peak_of(net, o);
	for (o.count.checkpoint = 4; o.count.checkpoint >= 1; o.count.checkpoint /= 2) {
		assert_true(peak_of(net, o) < last);
		last = peak_of(net, o);
	}
	assert_true(last < training);

	o = plain;
	o.accumulate = 1;
	assert_int_equal(peak_of(net, o), training);
	o.accumulate = 2;
	last = peak_of(net, o);
	assert_true(last > training);
	o.accumulate = 8;
	assert_int_equal(peak_of(net, o), last);

	last = 0;
	for (int k = RFL_OPT_SGD; k <= RFL_OPT_ADAM; k++) {
		o = plain;
		o.count.optimizer = (enum rfl_optimizer_kind)k;
		assert_true(peak_of(net, o) > last);
		last = peak_of(net, o);
	}
	rfl_net_free(net);
}

/* vit_h_14 with AdamW at one sample: the update decides, and how it is made. */
static void update_decides(void **state)
{
	struct rfl_net *net = build("vit_h_14");
	struct rfl_memory_options o = {
		.count = { .batch = 1, .training = true, .optimizer = RFL_OPT_ADAMW }
	};
	struct rfl_memory *m = memory_of(net, o);
	int64_t foreach = m->phase_peak[RFL_PHASE_STEP], in_turn;
	int64_t largest = 4 * (int64_t)1280 * 5120;

	(void)state;
	assert_int_equal(m->peak_phase, RFL_PHASE_STEP);
	assert_int_equal(m->peak_node, -1);
	rfl_memory_free(m);
	o.update = RFL_UPDATE_FOR_LOOP;
	m = memory_of(net, o);
	in_turn = m->phase_peak[RFL_PHASE_STEP];
	rfl_memory_free(m);
	o.update = RFL_UPDATE_FUSED;
	m = memory_of(net, o);
	assert_int_equal(foreach - m->phase_peak[RFL_PHASE_STEP], m->gradients);
	assert_int_equal(in_turn - m->phase_peak[RFL_PHASE_STEP], 2 * largest);
	rfl_memory_free(m);
	rfl_net_free(net);
}

/* Frozen layers have no gradients and no state, and below the first trained one nothing is saved.
 */
static void frozen_layers_take_less(void **state)
{
	static const char *const frozen[] = {
		"conv1", "bn1", "layer1", "layer2", "layer3", "layer4"
	};
	struct rfl_memory_options o = {
		.count = { .training = true,
			   .optimizer = RFL_OPT_ADAM,
			   .frozen = frozen,
			   .nfrozen = sizeof(frozen) / sizeof(frozen[0]) },
	};
	struct rfl_net *net = build("resnet50");
	struct rfl_memory *m = memory_of(net, o);
	int64_t head = 4 * (2048 * 1000 + 1000);

	(void)state;
	assert_int_equal(m->gradients, head);
	assert_int_equal(m->state, 2 * head);
	/* the head's input, the log-probabilities, the label */
	assert_int_equal(m->saved, 4 * 2048 + 4 * 1000 + 8);
	rfl_memory_free(m);
	rfl_net_free(net);
}

/*
 * Autocast by hand, bf16 and SGD, one sample, on a GPU. Linear layers 4 -> 8 -> 2 with a ReLU
 * between: weights 192, image 16, labels 8 are there throughout, 216.
 *	forward    at the loss: 16-bit image 8, ReLU 16, logits 4, copies of weights 64 + 32,
 *	           log-probabilities 8, logits in F32 8: 356
 *	backward   at the first layer, whose copy went with the forward pass: gradients 64 of the
 *	           second and 128 of its own, before in 16 bits 64; of its result 16; 16-bit image
 *8, logits 4: 500 step       gradients 192, logits 4: 412 One layer 1 -> 64: weights 256, image 4,
 *labels 8, 268; logits 128; 16-bit image 2. forward    at the loss: copy 128, log-probabilities
 *256, logits in F32 256: 1038 backward   at the loss: log-probabilities 256, their gradient 256,
 *that of the logits in F32 256 and in 16 bits 128: 1294 step       gradients 256: 652
 */
static void autocast_by_hand(void **state)
{
	static const struct {
		int64_t inputs, hidden, classes, peak[RFL_PHASE_COUNT];
	} rows[] = { { 4, 8, 2, { 356, 500, 412 } }, { 1, 0, 64, { 1038, 1294, 652 } } };
	const struct rfl_memory_options amp = {
		.count = { .batch = 1,
			   .training = true,
			   .dtype = RFL_DTYPE_BF16,
			   .master_weights = true },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_net_builder *b = rfl_net_builder_new("toy", "test");
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *net = NULL;
		struct rfl_memory *m = NULL;
		int x = rfl_flatten(b, rfl_net_input(b, rows[i].inputs, 1, 1));

		if (rows[i].hidden) {
			x = rfl_linear(b, x, "a", rows[i].hidden, false);
			x = rfl_relu(b, x, "relu", RFL_OUT_OF_PLACE);
		}
		x = rfl_linear(b, x, "b", rows[i].classes, false);
		assert_ok(rfl_net_finish(b, x, &net, &err), &err);
		assert_ok(rfl_memory_new(net, &amp, &m, &err), &err);
		for (int phase = 0; phase < RFL_PHASE_COUNT; phase++)
			assert_int_equal(m->phase_peak[phase], rows[i].peak[phase]);
		rfl_memory_free(m);
		rfl_net_free(net);
	}
}

static void refuses(void **state)
{
	struct rfl_net *net = build("vgg16");
	struct rfl_memory_options o = { .count = { .batch = 0, .training = true } };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_memory *m = NULL;

	(void)state;
	assert_int_equal(rfl_memory_new(net, &o, &m, &err), RFL_EINVAL);
	assert_says(&err, "batch 0");
	err = (struct rfl_err)RFL_ERR_INIT;
	o.count = (struct rfl_count_options){ .batch = 1, .training = true, .checkpoint = 1 };
	assert_int_equal(rfl_memory_new(net, &o, &m, &err), RFL_EINVAL);
	assert_says(&err, "no repeated blocks to checkpoint");
	assert_null(m);

	m = memory_of(net, ways[0]);
	err = (struct rfl_err)RFL_ERR_INIT;
	assert_int_equal(rfl_memory_at(m, INT64_MAX / 4, &err), RFL_EOVERFLOW);
	assert_says(&err, "vgg16");
	err = (struct rfl_err)RFL_ERR_INIT;
	assert_int_equal(rfl_memory_at(m, -3, &err), RFL_EINVAL);
	rfl_memory_free(m);
	rfl_net_free(net);
}

static void too_large_a_layer_is_named(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("giant", "test");
	struct rfl_memory_options o = { .count = { .batch = 1, .training = true } };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	struct rfl_memory *m = NULL;
	int x;

	(void)state;
	x = rfl_net_input(b, 1 << 20, 1 << 21, 1 << 21);
	x = rfl_relu(b, x, "act", RFL_OUT_OF_PLACE);
	x = rfl_adaptive_avg_pool(b, x, "pool", 1, 1);
	x = rfl_flatten(b, x);
	assert_ok(rfl_net_finish(b, x, &net, &err), &err);
	assert_int_equal(rfl_memory_new(net, &o, &m, &err), RFL_EOVERFLOW);
	assert_says(&err, "input");
	assert_null(m);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(books_balance),
		cmocka_unit_test(batches_lie_on_a_line),
		cmocka_unit_test(largest_batch_fits),
		cmocka_unit_test(options_move_the_peak),
		cmocka_unit_test(update_decides),
		cmocka_unit_test(frozen_layers_take_less),
		cmocka_unit_test(autocast_by_hand),
		cmocka_unit_test(refuses),
		cmocka_unit_test(too_large_a_layer_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
