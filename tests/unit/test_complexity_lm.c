/*
 * test_complexity_lm.c - transformers: language models beside their published parameters and
 * FLOPs, part by part; what the settings of attention change and what they leave alone.
 */
#include "tests/unit/published.h"

#include <string.h>

#include "complexity/count.h"
#include "complexity/memory.h"
#include "complexity/net_build.h"
#include "complexity/op.h"

static const enum rfl_attention settings[] = {
	RFL_ATTENTION_AUTO,
	RFL_ATTENTION_COMPOSED,
	RFL_ATTENTION_NAIVE,
	RFL_ATTENTION_SDPA,
};

static struct rfl_net *build_with(const char *model, const struct rfl_zoo_options *options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build(model, options, &net, &err), &err);
	return net;
}

static struct rfl_count *count_with(const struct rfl_net *net,
				    const struct rfl_count_options *options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	assert_ok(rfl_count_net(net, options, &count, &err), &err);
	return count;
}

static bool ends(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n >= m && strcmp(name + n - m, suffix) == 0;
}

static bool ends_in(const char *name, const char *const *suffixes)
{
	for (; *suffixes; suffixes++)
		if (ends(name, *suffixes))
			return true;
	return false;
}

/* Parts of a model by the modules that they are made of. */
static const char *const qkv[] = { ".q_proj", ".k_proj", ".v_proj", NULL };
static const char *const out[] = { ".output_proj", NULL };
static const char *const ffn[] = { ".w1", ".w2", ".w3", NULL };
static const char *const head[] = { "lm_head", NULL };
static const char *const attention_weights[] = { "_proj.weight", NULL };
static const char *const ffn_weights[] = { "ffn.w1.weight", "ffn.w2.weight", "ffn.w3.weight",
					   NULL };
static const char *const norm_weights[] = { "ln1.weight", "ln2.weight", "ln_final.weight", NULL };

static int64_t params_of(const struct rfl_net *net, const char *const *suffixes)
{
	int64_t sum = 0;

	for (int i = 0; i < net->nparams; i++)
		if (ends_in(net->params[i].name, suffixes))
			sum += net->params[i].numel;
	return sum;
}

/* Forward FLOPs of the linear layers of a part. */
static int64_t flops_of(const struct rfl_count *count, const char *const *suffixes)
{
	int64_t sum = 0;

	for (int i = 0; i < count->nnodes; i++)
		if (count->net->nodes[i].op == RFL_OP_LINEAR &&
		    ends_in(count->net->nodes[i].name, suffixes))
			sum += 2 * count->nodes[i].macs[RFL_PASS_FORWARD];
	return sum;
}

/* Forward FLOPs of the first or the second product of each attention. */
static int64_t product_flops(const struct rfl_count *count, int which)
{
	int64_t sum = 0;
	int seen = 0;

	for (int i = 0; i < count->nnodes; i++)
		if (count->net->nodes[i].op == RFL_OP_MATMUL && seen++ % 2 == which)
			sum += 2 * count->nodes[i].macs[RFL_PASS_FORWARD];
	return sum;
}

static void check_params(struct rfl_csv *csv, const struct rfl_net *net)
{
	static const char *const embedding[] = { "token_embeddings.weight", NULL };
	static const char *const head_weight[] = { "lm_head.weight", NULL };

	assert_int_equal(rfl_net_param_count(net), integer(csv, "params"));
	assert_int_equal(rfl_net_buffer_count(net), 0);
	assert_int_equal(params_of(net, embedding), integer(csv, "params_emb"));
	assert_int_equal(params_of(net, attention_weights), integer(csv, "params_attn"));
	assert_int_equal(params_of(net, ffn_weights), integer(csv, "params_ffn"));
	assert_int_equal(params_of(net, norm_weights), integer(csv, "params_norm"));
	assert_int_equal(params_of(net, head_weight), integer(csv, "params_head"));
}

/* The products count to the same number whether they are two operations or one. */
static void check_forward(struct rfl_csv *csv, const struct rfl_count *count, bool fused)
{
	int64_t scores = integer(csv, "fwd_flops_scores"), values = integer(csv, "fwd_flops_av");

	assert_int_equal(flops_of(count, qkv), integer(csv, "fwd_flops_qkv"));
	assert_int_equal(flops_of(count, out), integer(csv, "fwd_flops_out"));
	assert_int_equal(flops_of(count, ffn), integer(csv, "fwd_flops_ffn"));
	assert_int_equal(flops_of(count, head), integer(csv, "fwd_flops_head"));
	assert_int_equal(product_flops(count, 0), fused ? 0 : scores);
	assert_int_equal(product_flops(count, 1), fused ? 0 : values);
	assert_int_equal(rfl_count_forward_flops(count), integer(csv, "fwd_flops"));
}

/* The formulas that are used instead of a count. */
static void check_formulas(struct rfl_csv *csv, const struct rfl_net *net)
{
	int64_t tokens = integer(csv, "batch") * integer(csv, "ctx");
	int64_t params = rfl_net_param_count(net);
	int64_t embedding = net->params[0].numel;
	int64_t attention = 12 * integer(csv, "layers") * integer(csv, "d_model") *
			    integer(csv, "ctx"); /* per token: 12 L H Q T */

	assert_int_equal(6 * params * tokens, integer(csv, "sixN_D"));
	assert_int_equal(6 * (params - embedding) * tokens, integer(csv, "sixN_noembed_D"));
	assert_int_equal((6 * (params - embedding) + attention) * tokens, integer(csv, "palm"));
}

/*
 * Under a causal mask row t of the scores has t useful columns, so (T + 1) / 2T of the square. The
 * column takes half of it, which leaves the diagonal's second half out.
 */
static void check_causal(struct rfl_csv *csv, const struct rfl_net *net)
{
	const struct rfl_count_options options = { .batch = integer(csv, "batch"),
						   .causal_half = true };
	int64_t square = integer(csv, "fwd_flops_scores") + integer(csv, "fwd_flops_av");
	struct rfl_count *count = count_with(net, &options);

	assert_int_equal(rfl_count_forward_flops(count),
			 integer(csv, "causal_half_fwd") + square / (2 * integer(csv, "ctx")));
	rfl_count_free(count);
}

static void check_row(struct rfl_csv *csv, enum rfl_attention setting)
{
	const struct rfl_zoo_options sizes = {
		.classes = integer(csv, "vocab"),
		.context_length = integer(csv, "ctx"),
		.attention = setting,
	};
	struct rfl_count_options options = { .batch = integer(csv, "batch") };
	struct rfl_net *net = build_with(text(csv, "model"), &sizes);
	struct rfl_count *count = count_with(net, &options);

	assert_int_equal(net->nblocks, integer(csv, "layers"));
	check_params(csv, net);
	check_forward(csv, count, setting == RFL_ATTENTION_SDPA);
	rfl_count_free(count);
	options.training = true;
	count = count_with(net, &options);
	assert_int_equal(rfl_count_model_flops(count), integer(csv, "train_flops"));
	rfl_count_free(count);
	check_formulas(csv, net);
	check_causal(csv, net);
	rfl_net_free(net);
}

static void cs336_rows(void **state)
{
	struct rfl_csv *csv = open_published("cs336_lm_counts.csv");
	int rows = 0;

	(void)state;
	for (; next(csv); rows++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(settings); i++)
			check_row(csv, settings[i]);
	rfl_csv_close(csv);
	assert_int_equal(rows, 36);
}

static int64_t bias_params(const struct rfl_net *net)
{
	static const char *const bias[] = { ".bias", NULL };

	return params_of(net, bias);
}

static void gpt2_rows(void **state)
{
	struct rfl_csv *csv = open_published("gpt2_counts.csv");
	int rows = 0;

	(void)state;
	for (; next(csv); rows++) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(settings); i++) {
			const struct rfl_zoo_options sizes = { .context_length = 1024,
							       .attention = settings[i] };
			const struct rfl_count_options options = { .batch = 1, .training = true };
			struct rfl_net *net = build_with(text(csv, "model"), &sizes);
			struct rfl_count *count = count_with(net, &options);

			assert_int_equal(rfl_net_param_count(net), integer(csv, "params_hf"));
			assert_int_equal(rfl_net_param_count(net) - bias_params(net),
					 integer(csv, "params_bias_free"));
			assert_int_equal(rfl_count_forward_flops(count),
					 integer(csv, "fwd_matmul_flops_B1_T1024"));
			assert_int_equal(rfl_count_model_flops(count),
					 integer(csv, "train_flops_3x"));
			rfl_count_free(count);
			rfl_net_free(net);
		}
	}
	rfl_csv_close(csv);
	assert_int_equal(rows, 4);
}

/* The head borrows the embedding: one tensor in the state_dict, two layers that use it. */
static void gpt2_ties_its_head(void **state)
{
	struct rfl_net *net = build("gpt2");
	const struct rfl_node *last = &net->nodes[net->output];

	(void)state;
	assert_string_equal(net->params[0].name, "transformer.wte.weight");
	assert_string_equal(net->params[1].name, "transformer.wpe.weight");
	assert_string_equal(net->params[2].name, "transformer.h.0.ln_1.weight");
	assert_string_equal(net->params[4].name, "transformer.h.0.attn.c_attn.weight");
	assert_int_equal(net->params[4].dim[0], 768); /* stored as {in, out} */
	assert_int_equal(net->params[4].dim[1], 2304);
	assert_string_equal(net->params[net->nparams - 1].name, "transformer.ln_f.bias");
	assert_string_equal(last->name, "lm_head");
	assert_int_equal(last->param[0], 0);
	assert_int_equal(rfl_node_param_count(net, last), 0);
	rfl_net_free(net);
}

/* calflops' README: 6,738,415,616 parameters; 1 x 128 tokens: 1700.06 GFLOPs forward, of which
 * 850 GMACs, and three times as much with the backward pass. */
static void llama2_is_the_published_size(void **state)
{
	const struct rfl_zoo_options sizes = { .context_length = 128 };
	const struct rfl_count_options options = { .batch = 1, .training = true };
	struct rfl_net *net = build_with("llama2_7b", &sizes);
	struct rfl_count *count = count_with(net, &options);

	(void)state;
	assert_int_equal(rfl_net_param_count(net), 6738415616);
	assert_string_equal(net->params[1].name, "layers.0.attention.wq.weight");
	assert_string_equal(net->params[5].name, "layers.0.feed_forward.w1.weight");
	assert_string_equal(net->params[8].name, "layers.0.attention_norm.weight");
	/* the tool adds norms and activations: 0.06 of 1700 GFLOPs */
	assert_close((double)rfl_count_forward_flops(count), 1700.06e9, 0.0001);
	assert_int_equal(rfl_count_model_flops(count), 3 * rfl_count_forward_flops(count));
	rfl_count_free(count);
	rfl_net_free(net);
}

static void check_tiny_param(struct rfl_csv *csv, const struct rfl_param *p)
{
	struct rfl_shape shape = { .ndim = p->ndim };
	char buf[96];

	memcpy(shape.dim, p->dim, sizeof(shape.dim));
	assert_string_equal(p->name, text(csv, "name"));
	assert_string_equal(rfl_shape_text(&shape, buf, sizeof(buf)), text(csv, "shape"));
	assert_string_equal(rfl_param_kind_name(p->kind), text(csv, "kind"));
	assert_int_equal(p->position, integer(csv, "p"));
}

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
				check_tiny_param(csv, &net->params[p++]);
			}
		assert_int_equal(p, 21);
		assert_int_equal(p, net->nparams);
		rfl_csv_close(csv);
		rfl_net_free(net);
	}
}

static void refuses(const char *model, const struct rfl_zoo_options *options, enum rfl_rc rc,
		    const char *word)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_int_equal(rfl_zoo_build(model, options, &net, &err), rc);
	assert_null(net);
	assert_says(&err, word);
}

static void same_parameters(const char *model)
{
	struct rfl_net *whole = build(model);

	for (size_t i = 0; i < RFL_ARRAY_LEN(settings); i++) {
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
	refuses("swin_t", &(struct rfl_zoo_options){ .attention = RFL_ATTENTION_SDPA }, RFL_EINVAL,
		"adds a learned bias to its scores");
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
	static const char *const models[] = { "vit_b_16", "vit_h_14", "gpt2", "tiny_lm",
					      "cs336_medium" };

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++) {
		int64_t macs = 0;

		for (size_t i = 0; i < RFL_ARRAY_LEN(settings); i++) {
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

/* Linear layers grow with the context, the products of attention with its square. */
static void contexts_grow_as_they_should(void **state)
{
	const struct rfl_count_options options = { .batch = 1 };
	int64_t linear[3], products[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct rfl_zoo_options sizes = { .context_length = INT64_C(1000) << i };
		struct rfl_net *net = build_with("cs336_small", &sizes);
		struct rfl_count *count = count_with(net, &options);

		products[i] = product_flops(count, 0) + product_flops(count, 1);
		linear[i] = rfl_count_forward_flops(count) - products[i];
		assert_int_equal(rfl_net_param_count(net), 128625408);
		rfl_count_free(count);
		rfl_net_free(net);
	}
	for (int i = 1; i < 3; i++) {
		assert_int_equal(linear[i], 2 * linear[i - 1]);
		assert_int_equal(products[i], 4 * products[i - 1]);
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

/* Whole models in training, every storage once. The loss keeps one number that is no tensor of the
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

static void sizes_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	refuses("gpt2", &(struct rfl_zoo_options){ .context_length = 1025 }, RFL_EINVAL,
		"positions for 1024 tokens, not 1025");
	refuses("cs336_small", &(struct rfl_zoo_options){ .image_size = 224 }, RFL_EINVAL,
		"reads text");
	refuses("vit_b_16", &(struct rfl_zoo_options){ .context_length = 128 }, RFL_EINVAL,
		"reads images");
	refuses("vit_b_16", &(struct rfl_zoo_options){ .image_size = 225 }, RFL_EINVAL,
		"not cut into patches of 16");
	refuses("cs336_small", &(struct rfl_zoo_options){ .context_length = INT64_C(1) << 40 },
		RFL_EOVERFLOW, "63 bits");
	refuses("vit_b_16", &(struct rfl_zoo_options){ .image_size = INT64_C(1) << 40 },
		RFL_EOVERFLOW, "63 bits");
	refuses("gpt2", &(struct rfl_zoo_options){ .classes = INT64_MAX }, RFL_EOVERFLOW,
		"63 bits");
}

/* The 2.7B of 2025 is the xl of 2026; nothing but the name and the default context differs. */
static void names_of_two_years(void **state)
{
	struct rfl_net *a = build("2p7"), *b = build("cs336-xl-2026"), *c = build("XL");

	(void)state;
	assert_string_equal(a->model, "cs336_2p7b_2025");
	assert_int_equal(rfl_net_param_count(a), 3406809600);
	assert_int_equal(rfl_net_param_count(b), 3406809600);
	assert_int_equal(rfl_net_param_count(c), 1998235200);
	assert_int_equal(a->nodes[0].shape.dim[0], 256);
	assert_int_equal(b->nodes[0].shape.dim[0], 512);
	rfl_net_free(a);
	rfl_net_free(b);
	rfl_net_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cs336_rows),
		cmocka_unit_test(gpt2_rows),
		cmocka_unit_test(gpt2_ties_its_head),
		cmocka_unit_test(llama2_is_the_published_size),
		cmocka_unit_test(parameters_do_not_depend_on_the_setting),
		cmocka_unit_test(settings_keep_the_state_dict),
		cmocka_unit_test(settings_write_different_steps),
		cmocka_unit_test(settings_keep_the_core_count),
		cmocka_unit_test(contexts_grow_as_they_should),
		cmocka_unit_test(composed_blocks_keep_what_their_code_keeps),
		cmocka_unit_test(saved_bytes_are_those_of_pytorch),
		cmocka_unit_test(sizes_that_do_not_fit_are_refused),
		cmocka_unit_test(names_of_two_years),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
