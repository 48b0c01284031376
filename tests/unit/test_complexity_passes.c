/*
 * test_complexity_passes.c - which passes an operation takes part in: frozen modules, auxiliary
 * heads, tied weights, learned tensors; against PyTorch and by hand. Checkpointed blocks:
 * test_complexity_checkpoint.c.
 */
#include "tests/unit/published.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "complexity/count/links.h"
#include "tests/unit/count_rig.h"

/* --- frozen --- */

/* A list of words, cut in place. */
static size_t cut(char *line, const char **words, size_t max)
{
	size_t n = 0;

	for (char *p = line; *p && n < max; n++) {
		words[n] = p;
		p += strcspn(p, " ");
		if (*p)
			*p++ = '\0';
	}
	return n;
}

static void frozen_modules_as_pytorch(void **state)
{
	struct rfl_csv *csv = open_published("flops_frozen.csv");
	int rows = 0;

	(void)state;
	for (; next(csv); rows++) {
		struct rfl_net *net = build(text(csv, "model"));
		const char *frozen[8];
		char line[128];
		struct rfl_count *count;

		(void)snprintf(line, sizeof(line), "%s", text(csv, "frozen"));
		count = count_of(net, (struct rfl_count_options){
					      .training = true,
					      .frozen = frozen,
					      .nfrozen = cut(line, frozen, RFL_ARRAY_LEN(frozen)),
				      });
		assert_int_equal(flops_seen(count, 1u << RFL_PASS_DGRAD | 1u << RFL_PASS_WGRAD),
				 integer(csv, "flops"));
		assert_int_equal(count->trained, integer(csv, "trained"));
		assert_int_equal(count->params, rfl_net_param_count(net));
		rfl_count_free(count);
		rfl_net_free(net);
	}
	rfl_csv_close(csv);
	assert_int_equal(rows, 18);
}

/* Three equal layers of 4 MACs: what is frozen below, between and above what is trained. */
static void frozen_by_hand(void **state)
{
	static const struct {
		const char *frozen[2];
		int64_t dgrad[3], wgrad[3], trained;
	} cases[] = {
		{ { NULL, NULL }, { 0, 4, 4 }, { 4, 4, 4 }, 18 },
		{ { "a", NULL }, { 0, 0, 4 }, { 0, 4, 4 }, 12 },
		{ { "b", NULL }, { 0, 4, 4 }, { 4, 0, 4 }, 12 },
		{ { "c", NULL }, { 0, 4, 4 }, { 4, 4, 0 }, 12 },
		{ { "a", "b" }, { 0, 0, 0 }, { 0, 0, 4 }, 6 },
		{ { "b", "c" }, { 0, 4, 4 }, { 4, 0, 0 }, 6 },
	};
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_net *net;
	int at[3], x = rfl_flatten(b, rfl_net_input(b, 2, 1, 1));

	(void)state;
	at[0] = x = rfl_linear(b, x, "a", 2, true);
	at[1] = x = rfl_linear(b, x, "b", 2, true);
	at[2] = x = rfl_linear(b, x, "c", 2, true);
	net = finish(b, x);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_count_options options = {
			.training = true,
			.optimizer = RFL_OPT_ADAM,
			.frozen = cases[i].frozen,
			.nfrozen =
				(size_t)(cases[i].frozen[0] != NULL) + (cases[i].frozen[1] != NULL),
		};
		struct rfl_count *count = count_of(net, options);
		int64_t written =
			count->total.traffic[RFL_FUSION_COMPULSORY][RFL_PASS_WGRAD].write_bytes;

		for (int k = 0; k < 3; k++) {
			const struct rfl_cost *cost = &count->nodes[at[k]];

			assert_int_equal(cost->macs[RFL_PASS_FORWARD], 4);
			assert_int_equal(cost->macs[RFL_PASS_DGRAD], cases[i].dgrad[k]);
			assert_int_equal(cost->macs[RFL_PASS_WGRAD], cases[i].wgrad[k]);
			assert_int_equal(count->links->contexts[at[k]].needs_dgrad,
					 cases[i].dgrad[k] > 0);
		}
		assert_int_equal(count->trained, cases[i].trained);
		assert_int_equal(count->params, 18);
		assert_int_equal(written, 4 * cases[i].trained);
		assert_int_equal(rfl_count_state_bytes(count), 8 * cases[i].trained);
		assert_int_equal(rfl_elementwise_sum(&count->optimizer_flops),
				 13 * cases[i].trained);
		assert_int_equal(count->optimizer.read_bytes, 4 * 4 * cases[i].trained);
		rfl_count_free(count);
	}
	rfl_net_free(net);
}

/* With everything frozen not even the loss has a gradient, and there is nothing to update. */
static void all_frozen_has_no_backward_pass(void **state)
{
	static const char *const frozen[] = { "features", "classifier" };
	struct rfl_net *net = build("vgg11");
	struct rfl_count *count = count_of(
		net,
		(struct rfl_count_options){ .training = true, .frozen = frozen, .nfrozen = 2 });

	(void)state;
	for (int pass = RFL_PASS_DGRAD; pass < RFL_PASS_COUNT; pass++) {
		assert_int_equal(count->total.macs[pass], 0);
		assert_int_equal(rfl_elementwise_sum(&count->total.elementwise[pass]), 0);
		for (int level = 0; level < RFL_FUSION_COUNT; level++) {
			const struct rfl_traffic *t = &count->total.traffic[level][pass];

			assert_int_equal(t->read_bytes + t->write_bytes, 0);
		}
	}
	assert_int_equal(count->trained, 0);
	assert_int_equal(count->optimizer.read_bytes, 0);
	rfl_count_free(count);
	rfl_net_free(net);
}

static void refuses_options_that_fit_no_module(void **state)
{
	static const struct {
		const char *model, *frozen;
		int64_t checkpoint;
		const char *words;
	} cases[] = {
		{ "resnet18", "layr1", 0, "did you mean layer1" },
		{ "resnet18", "layer1.0.conv", 0, "layer1.0.conv1" },
		{ "resnet18", "layer1.", 0, "no module 'layer1.'" },
		{ "resnet18", "layer", 0, "no module 'layer' with parameters to freeze" },
		{ "resnet18", "maxpool", 0, "no module 'maxpool' with parameters to freeze" },
		{ "vgg16", "zzzzzzzzzzzz", 0, "vgg16: no module 'zzzzzzzzzzzz'" },
		{ "vgg16", NULL, 1, "vgg16: has no repeated blocks" },
		{ "resnet18", NULL, -1, "cannot checkpoint -1 blocks" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_count_options options = {
			.batch = 1,
			.training = true,
			.checkpoint = cases[i].checkpoint,
			.frozen = &cases[i].frozen,
			.nfrozen = cases[i].frozen != NULL,
		};
		struct rfl_net *net = build(cases[i].model);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_count *count = NULL;

		assert_int_equal(rfl_count_net(net, &options, &count, &err), RFL_EINVAL);
		assert_says(&err, cases[i].words);
		assert_null(count);
		rfl_net_free(net);
	}
}

/* --- heads, shared weights, learned tensors --- */

/* trunk 4 -> 4, head 4 -> 3; the auxiliary head 4 -> 3 hangs on the trunk. */
static void auxiliary_heads_by_hand(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	int x = rfl_flatten(b, rfl_net_input(b, 4, 1, 1)), trunk, head;
	struct rfl_count *without, *with, *inference;
	struct rfl_net *net;

	(void)state;
	trunk = x = rfl_linear(b, x, "trunk", 4, false);
	b->in_auxiliary = true;
	head = rfl_linear(b, x, "aux", 3, false);
	b->in_auxiliary = false;
	net = finish(b, rfl_linear(b, x, "head", 3, false));
	without = count_of(net, (struct rfl_count_options){ .training = true });
	with = count_of(net, (struct rfl_count_options){ .training = true, .auxiliary = true });
	inference = count_of(net, (struct rfl_count_options){ .auxiliary = true });

	assert_int_equal(without->total.macs[RFL_PASS_FORWARD], 16 + 12);
	assert_int_equal(without->nodes[head].macs[RFL_PASS_WGRAD], 0);
	assert_int_equal(without->params, 16 + 12 + 12);
	assert_int_equal(without->trained, 16 + 12);
	assert_int_equal(without->nodes[trunk].elementwise[RFL_PASS_DGRAD].add, 0);
	assert_int_equal(with->total.macs[RFL_PASS_FORWARD], 16 + 12 + 12);
	assert_int_equal(with->nodes[head].macs[RFL_PASS_DGRAD], 12);
	assert_int_equal(with->nodes[head].macs[RFL_PASS_WGRAD], 12);
	assert_int_equal(with->trained, 16 + 12 + 12);
	/* two gradients meet at the trunk, and there are two losses over one list of labels */
	assert_int_equal(with->nodes[trunk].elementwise[RFL_PASS_DGRAD].add, 4);
	assert_int_equal(rfl_elementwise_sum(&with->loss.elementwise[RFL_PASS_FORWARD]),
			 2 * rfl_elementwise_sum(&without->loss.elementwise[RFL_PASS_FORWARD]));
	assert_int_equal(with->loss.traffic[RFL_FUSION_COMPULSORY][RFL_PASS_FORWARD].read_bytes, 8);
	assert_int_equal(inference->total.macs[RFL_PASS_FORWARD], 16 + 12);
	rfl_count_free(without);
	rfl_count_free(with);
	rfl_count_free(inference);
	rfl_net_free(net);
}

/* A table of 7 rows of 2 that is the head's weight too; texts of 3 tokens. */
static void tied_weights_by_hand(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	int x = rfl_net_tokens(b, 3), table, head;
	const struct rfl_cost *cost;
	struct rfl_count *count;
	struct rfl_net *net;

	(void)state;
	table = x = rfl_embedding(b, x, "table", 7, 2);
	head = rfl_linear_tied(b, x, "head", table);
	net = finish(b, head);
	count = count_of(net, (struct rfl_count_options){ .batch = 2, .training = true });
	cost = &count->nodes[head];
	assert_int_equal(count->params, 14);
	assert_int_equal(count->trained, 14);
	assert_int_equal(cost->macs[RFL_PASS_FORWARD], 6 * 14);
	assert_int_equal(cost->macs[RFL_PASS_DGRAD], 6 * 14);
	assert_int_equal(cost->macs[RFL_PASS_WGRAD], 6 * 14);
	/* both gradients of the table are added: one addition per element */
	assert_int_equal(cost->elementwise[RFL_PASS_WGRAD].add, 14);
	/* x, dY; the product's gradient; then two gradients in, one out */
	assert_int_equal(cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_WGRAD].read_bytes,
			 4 * (6 * 2 + 6 * 7 + 2 * 14));
	assert_int_equal(cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_WGRAD].write_bytes,
			 4 * (14 + 14));
	assert_int_equal(cost->traffic[RFL_FUSION_FUSED][RFL_PASS_WGRAD].read_bytes,
			 4 * (6 * 2 + 6 * 7 + 14));
	/* the head reads the table whole; 6 tokens and 6 labels of 8 bytes */
	assert_int_equal(count->total.traffic[RFL_FUSION_COMPULSORY][RFL_PASS_FORWARD].read_bytes,
			 4 * 14 + 2 * 6 * 8);
	assert_int_equal(count->total.traffic[RFL_FUSION_COMPULSORY][RFL_PASS_WGRAD].write_bytes,
			 4 * 14);
	rfl_count_free(count);
	rfl_net_free(net);
}

/* Least traffic of a table of 100 rows of 2: 3 rows per sample, at most all; its gradient is dense.
 */
static void an_embedding_reads_the_rows_it_uses(void **state)
{
	static const struct {
		int64_t batch, rows;
	} cases[] = { { 1, 3 }, { 10, 30 }, { 33, 99 }, { 34, 100 }, { 1000, 100 } };
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	int x = rfl_net_tokens(b, 3);
	struct rfl_net *net;

	(void)state;
	x = rfl_embedding(b, x, "table", 100, 2);
	net = finish(b, rfl_linear(b, x, "head", 5, false));
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		int64_t batch = cases[i].batch;
		struct rfl_count *count = count_of(
			net, (struct rfl_count_options){ .batch = batch, .training = true });
		const struct rfl_traffic *t = count->total.traffic[RFL_FUSION_COMPULSORY];

		assert_int_equal(t[RFL_PASS_FORWARD].read_bytes,
				 4 * (2 * cases[i].rows + 10) + 2 * 8 * 3 * batch);
		assert_int_equal(t[RFL_PASS_WGRAD].write_bytes, 4 * (200 + 10));
		assert_int_equal(t[RFL_PASS_DGRAD].read_bytes + t[RFL_PASS_DGRAD].write_bytes, 0);
		/* the update reads the rows that the passes did not */
		assert_int_equal(count->step_compulsory.read_bytes,
				 4 * (200 + 10) + 2 * 8 * 3 * batch);
		/* the head's input is trained, its tokens are not */
		assert_int_equal(count->total.macs[RFL_PASS_DGRAD], 3 * batch * 10);
		rfl_count_free(count);
	}
	rfl_net_free(net);
}

/* A learned vector added to every sample: it is trained, and what only it reaches has a dgrad. */
static void learned_tensors_are_trained(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	int x = rfl_flatten(b, rfl_net_input(b, 4, 1, 1)), first, second;
	struct rfl_count *count;
	struct rfl_net *net;

	(void)state;
	first = x = rfl_linear(b, x, "first", 4, false);
	x = rfl_add(b, x, rfl_parameter(b, "shift", RFL_DIMS(4), 0), RFL_OUT_OF_PLACE);
	second = x = rfl_linear(b, x, "second", 3, false);
	net = finish(b, x);
	count = count_of(net, (struct rfl_count_options){ .batch = 5,
							  .training = true,
							  .frozen = (const char *[]){ "first" },
							  .nfrozen = 1 });
	assert_int_equal(count->params, 16 + 4 + 12);
	assert_int_equal(count->trained, 4 + 12);
	assert_int_equal(count->nodes[first].macs[RFL_PASS_WGRAD], 0);
	assert_int_equal(count->nodes[second].macs[RFL_PASS_DGRAD], 5 * 12);
	assert_int_equal(count->total.traffic[RFL_FUSION_COMPULSORY][RFL_PASS_WGRAD].write_bytes,
			 4 * 16);
	rfl_count_free(count);
	rfl_net_free(net);
}

/* --- other batches --- */

/* A count that has been somewhere else is the count that begins there. */
static void another_batch_is_as_good_as_a_new_count(void **state)
{
	static const char *const models[] = { "resnet18", "vit_b_16", "tiny_lm", "googlenet_aux" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(models); i++) {
		struct rfl_count_options options = {
			.batch = 1,
			.training = true,
			.optimizer = RFL_OPT_ADAMW,
			.auxiliary = true,
		};
		struct rfl_net *net = build(models[i]);
		struct rfl_count *moved = count_of(net, options);
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(rfl_count_at(moved, 0, &err), RFL_EINVAL);
		assert_says(&err, "batch 0 is too small");
		rfl_err_clear(&err);
		assert_int_equal(rfl_count_at(moved, INT64_MAX / 2, &err), RFL_EOVERFLOW);
		rfl_err_clear(&err);
		for (options.batch = 512; options.batch > 0; options.batch /= 8) {
			struct rfl_count *fresh = count_of(net, options);
			size_t nodes = (size_t)net->nnodes * sizeof(*fresh->nodes);

			assert_ok(rfl_count_at(moved, options.batch, &err), &err);
			assert_memory_equal(moved->nodes, fresh->nodes, nodes);
			assert_memory_equal(&moved->total, &fresh->total, sizeof(fresh->total));
			assert_memory_equal(&moved->loss, &fresh->loss, sizeof(fresh->loss));
			assert_memory_equal(&moved->step_compulsory, &fresh->step_compulsory,
					    sizeof(fresh->step_compulsory));
			assert_memory_equal(&moved->optimizer, &fresh->optimizer,
					    sizeof(fresh->optimizer));
			assert_int_equal(moved->options.batch, options.batch);
			rfl_count_free(fresh);
		}
		rfl_count_free(moved);
		rfl_net_free(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frozen_modules_as_pytorch),
		cmocka_unit_test(frozen_by_hand),
		cmocka_unit_test(all_frozen_has_no_backward_pass),
		cmocka_unit_test(refuses_options_that_fit_no_module),
		cmocka_unit_test(auxiliary_heads_by_hand),
		cmocka_unit_test(tied_weights_by_hand),
		cmocka_unit_test(an_embedding_reads_the_rows_it_uses),
		cmocka_unit_test(learned_tensors_are_trained),
		cmocka_unit_test(another_batch_is_as_good_as_a_new_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
