/*
 * test_complexity_attention.c - what the settings of attention change of a transformer and what
 * they leave alone, and what autograd keeps of it.
 */
#include "tests/unit/lm_rig.h"

#include <string.h>

#include "complexity/count/memory.h"
#include "complexity/op.h"

/* Names, order and kinds are those of the state_dict however the steps are written. */
static void parameters_do_not_depend_on_the_setting(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(settings); i++) {
		const struct rfl_zoo_options sizes = { .attention = settings[i] };
		struct rfl_net *net = build_with("tiny_lm", &sizes);
		struct rfl_csv *csv = open_published("params_own.csv");
		int p = 0;

		while (next(csv))
			if (strcmp(text(csv, "model"), "tiny_lm") == 0) {
				assert_true(p < net->nparams);
				check_param(csv, &net->params[p++]);
			}
		assert_int_equal(p, 21);
		assert_int_equal(p, net->nparams);
		rfl_csv_close(csv);
		rfl_net_free(net);
	}
}

/* How many of the settings a model takes: all, or all but the last, the fused attention. */
static size_t settings_of(const struct rfl_net *net)
{
	const struct rfl_zoo_model *model = NULL;

	assert_ok(rfl_zoo_find(net->model, &model, NULL), NULL);
	return RFL_ARRAY_LEN(settings) - (model->score_bias ? 1 : 0);
}

static void same_parameters(const char *model)
{
	struct rfl_net *whole = build(model);

	for (size_t i = 0; i < settings_of(whole); i++) {
		const struct rfl_zoo_options sizes = { .attention = settings[i] };
		struct rfl_net *net = build_with(model, &sizes);

		assert_int_equal(net->nparams, whole->nparams);
		for (int p = 0; p < net->nparams; p++) {
			assert_string_equal(net->params[p].name, whole->params[p].name);
			assert_int_equal(net->params[p].kind, whole->params[p].kind);
			assert_int_equal(net->params[p].numel, whole->params[p].numel);
			assert_int_equal(net->params[p].position, p);
		}
		rfl_net_free(net);
	}
	rfl_net_free(whole);
}

static void settings_keep_the_state_dict(void **state)
{
	(void)state;
	same_parameters("vit_b_32");
	same_parameters("gpt2");
	same_parameters("llama2_7b");
	same_parameters("cs336_small");
	same_parameters("swin_t");
	same_parameters("swin_v2_t");
	same_parameters("maxvit_t");
}

static int nodes_of(const struct rfl_net *net, enum rfl_op op)
{
	int n = 0;

	for (int i = 0; i < net->nnodes; i++)
		n += net->nodes[i].op == op;
	return n;
}

/* What each setting writes out, in operations of a model of 12 layers. */
static void settings_write_different_steps(void **state)
{
	static const struct {
		const char *model;
		enum rfl_attention setting;
		int matmul, softmax, exp, sdpa, layer_norm, rms_norm, rope, silu, sigmoid;
		enum rfl_loss loss;
	} cases[] = {
		{ "vit_b_16", RFL_ATTENTION_AUTO, .sdpa = 12, .layer_norm = 25 },
		{ "vit_b_16", RFL_ATTENTION_SDPA, .sdpa = 12, .layer_norm = 25 },
		{ "vit_b_16", RFL_ATTENTION_NAIVE, .matmul = 24, .softmax = 12, .layer_norm = 25 },
		{ "vit_b_16", RFL_ATTENTION_COMPOSED, .matmul = 24, .exp = 12,
		  .loss = RFL_LOSS_COMPOSED },
		{ "gpt2", RFL_ATTENTION_AUTO, .sdpa = 12, .layer_norm = 25 },
		{ "gpt2", RFL_ATTENTION_NAIVE, .matmul = 24, .softmax = 12, .layer_norm = 25 },
		{ "cs336_small", RFL_ATTENTION_AUTO, .matmul = 24, .exp = 12, .sigmoid = 12,
		  .loss = RFL_LOSS_COMPOSED },
		{ "cs336_small", RFL_ATTENTION_COMPOSED, .matmul = 24, .exp = 12, .sigmoid = 12,
		  .loss = RFL_LOSS_COMPOSED },
		{ "cs336_small", RFL_ATTENTION_NAIVE, .matmul = 24, .softmax = 12, .rms_norm = 25,
		  .rope = 24, .silu = 12 },
		{ "cs336_small", RFL_ATTENTION_SDPA, .sdpa = 12, .rms_norm = 25, .rope = 24,
		  .silu = 12 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_zoo_options sizes = { .attention = cases[i].setting };
		struct rfl_net *net = build_with(cases[i].model, &sizes);

		assert_int_equal(nodes_of(net, RFL_OP_MATMUL), cases[i].matmul);
		assert_int_equal(nodes_of(net, RFL_OP_SOFTMAX), cases[i].softmax);
		assert_int_equal(nodes_of(net, RFL_OP_EXP), cases[i].exp);
		assert_int_equal(nodes_of(net, RFL_OP_SDPA), cases[i].sdpa);
		assert_int_equal(nodes_of(net, RFL_OP_LAYER_NORM), cases[i].layer_norm);
		assert_int_equal(nodes_of(net, RFL_OP_RMS_NORM), cases[i].rms_norm);
		assert_int_equal(nodes_of(net, RFL_OP_ROPE), cases[i].rope);
		assert_int_equal(nodes_of(net, RFL_OP_SILU), cases[i].silu);
		assert_int_equal(nodes_of(net, RFL_OP_SIGMOID), cases[i].sigmoid);
		assert_int_equal(net->loss, cases[i].loss);
		rfl_net_free(net);
	}
}

/* The row of the published table is of one setting; the others have the same multiply-adds. */
static void settings_keep_the_core_count(void **state)
{
	static const char *const models[] = { "vit_b_16",     "vit_h_14",  "gpt2",    "tiny_lm",
					      "cs336_medium", "swin_v2_t", "maxvit_t" };

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++) {
		struct rfl_net *own = build(models[m]);
		size_t n = settings_of(own);
		int64_t macs = 0;

		rfl_net_free(own);
		for (size_t i = 0; i < n; i++) {
			const struct rfl_zoo_options sizes = { .attention = settings[i] };
			const struct rfl_count_options options = { .batch = 2, .training = true };
			struct rfl_net *net = build_with(models[m], &sizes);
			struct rfl_count *count = count_with(net, &options);

			if (i == 0)
				macs = rfl_count_model_flops(count);
			assert_int_equal(rfl_count_model_flops(count), macs);
			/* the fused backward pass makes the scores once more */
			assert_int_equal(count->total.macs[RFL_PASS_RECOMPUTE] > 0,
					 nodes_of(net, RFL_OP_SDPA) > 0);
			rfl_count_free(count);
			rfl_net_free(net);
		}
	}
}

static struct rfl_memory *memory_of(const struct rfl_net *net, int64_t batch)
{
	const struct rfl_memory_options options = {
		.count = { .batch = batch, .training = true },
		.device = RFL_MEMORY_CPU,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_memory *memory = NULL;

	assert_ok(rfl_memory_new(net, &options, &memory, &err), &err);
	return memory;
}

/*
 * What one block keeps, with X = B s d, F = B s d_ff and S = B H s^2 values: 10 X (two inputs and
 * two scaled inputs of norms, their two results, rotated q and k, the copy of v, the copy of
 * attention's result), 5 F, 2 S (exponentials and their quotients), places of maxima, sums of rows,
 * the mask and a value per row of each norm. Eager PyTorch keeps the same bytes of the same code.
 */
static void check_block(const char *model, int64_t batch, int64_t s, int64_t d, int64_t d_ff,
			int64_t heads, int64_t want)
{
	const struct rfl_zoo_options sizes = { .context_length = s };
	struct rfl_net *net = build_with(model, &sizes);
	struct rfl_memory *memory = memory_of(net, batch);
	int64_t rows = batch * heads * s, kept = 0;

	for (int i = 0; i < net->nnodes; i++)
		if (net->nodes[i].block == 2)
			kept += memory->node_saved[i];
	assert_int_equal(kept, 4 * (10 * batch * s * d + 5 * batch * s * d_ff + 2 * rows * s) +
				       (8 + 4) * rows + s * s + 2 * 4 * batch * s);
	assert_int_equal(kept, want);
	rfl_memory_free(memory);
	rfl_net_free(net);
}

static void composed_blocks_keep_what_their_code_keeps(void **state)
{
	(void)state;
	check_block("cs336_xl_2026", 4, 128, 2560, 10240, 32, 174280704); /* 166.21 MiB */
	check_block("cs336_medium", 2, 256, 1024, 4096, 16, 79859712);
	check_block("cs336_small", 3, 512, 768, 3072, 12, 217550848);
}

/* Whole models in training, every storage once. The loss keeps one number, not a tensor of the
 * net; version 2 of Swin divides by lengths that PyTorch limits first, which keeps them twice. */
static void saved_bytes_are_those_of_pytorch(void **state)
{
	struct rfl_csv *csv = open_published("saved_transformers.csv");
	int rows = 0;

	(void)state;
	for (; next(csv); rows++) {
		const struct rfl_zoo_options sizes = { .image_size = integer(csv, "image_size") };
		struct rfl_net *net = build_with(text(csv, "model"), &sizes);
		struct rfl_memory *memory = memory_of(net, integer(csv, "batch"));
		int64_t bytes = integer(csv, "storage_bytes");

		if (strncmp(net->model, "swin_v2", 7) == 0)
			assert_close((double)memory->saved, (double)bytes, 0.003);
		else
			assert_int_equal(memory->saved, bytes - 4);
		rfl_memory_free(memory);
		rfl_net_free(net);
	}
	rfl_csv_close(csv);
	assert_int_equal(rows, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_do_not_depend_on_the_setting),
		cmocka_unit_test(settings_keep_the_state_dict),
		cmocka_unit_test(settings_write_different_steps),
		cmocka_unit_test(settings_keep_the_core_count),
		cmocka_unit_test(composed_blocks_keep_what_their_code_keeps),
		cmocka_unit_test(saved_bytes_are_those_of_pytorch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
