/*
 * test_complexity_lm.c - language models beside their published parameters and FLOPs, part by part.
 */
#include "tests/unit/lm_rig.h"

#include <string.h>

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

static void sizes_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	refuses_with("gpt2", &(struct rfl_zoo_options){ .context_length = 1025 }, RFL_EINVAL,
		     "at most 1024 tokens, not 1025");
	refuses_with("cs336_small", &(struct rfl_zoo_options){ .image_size = 224 }, RFL_EINVAL,
		     "reads text");
	refuses_with("vit_b_16", &(struct rfl_zoo_options){ .context_length = 128 }, RFL_EINVAL,
		     "reads images");
	refuses_with("swin_t", &(struct rfl_zoo_options){ .attention = RFL_ATTENTION_SDPA },
		     RFL_EINVAL,
		     "swin_t: attention 'sdpa' does not support the model's learned score bias");
	refuses_with("maxvit_t", &(struct rfl_zoo_options){ .attention = RFL_ATTENTION_SDPA },
		     RFL_EINVAL, "maxvit_t: attention 'sdpa'");
	refuses_with("cs336_small", &(struct rfl_zoo_options){ .context_length = INT64_C(1) << 40 },
		     RFL_EOVERFLOW, "63 bits");
	refuses_with("vit_b_16", &(struct rfl_zoo_options){ .image_size = INT64_C(1) << 40 },
		     RFL_EOVERFLOW, "63 bits");
	refuses_with("gpt2", &(struct rfl_zoo_options){ .classes = INT64_MAX }, RFL_EOVERFLOW,
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
		cmocka_unit_test(contexts_grow_as_they_should),
		cmocka_unit_test(sizes_that_do_not_fit_are_refused),
		cmocka_unit_test(names_of_two_years),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
