/*
 * config.c - reads the config.json of a Hugging Face model. Absent keys have the defaults of
 * the configuration classes of transformers, one row per model type.
 */
#include "complexity/lm.h"

#include <string.h>

#include "base/bind.h"
#include "base/text.h"

enum { TYPES_MAX = 64, LAYERS_MAX = 65536 };

/* The defaults of each type, embedded by CMake. */
extern const char rfl_lm__types_json[];
extern const size_t rfl_lm__types_json_size;

/* The weights, or the inputs of matmuls, of a group in compressed-tensors. */
struct part {
	int64_t bits, group;
	const char *type;
	bool symmetric; /* without zero points */
};

struct quant {
	const char *method;
	struct part weights, inputs; /* bits 0: not quantised */
	bool zero_point;
	int64_t *block;
	size_t nblock, ngroups;
};

struct config {
	const char *traits, *dtype; /* traits: of the type; others are added */
	struct rfl_lm lm;
	bool tied, attention_bias, mlp_bias, head_norm;
	/* Layer i has the window if i >= first_window and (i + 1) % global is not 0. */
	bool windows;
	int64_t first_window, global;
	const char **layer_types;
	int64_t *dense; /* layers without experts */
	size_t nlayer_types, ndense;
	int64_t every; /* layers with experts: each, or another number, which is rejected */
	struct quant quant;
};

#define SIZE(key_, member)                                                                       \
	{                                                                                        \
		.key = key_, RFL_MEMBER(INT, struct config, member), .max = 0x1p31, .null = true \
	}
#define COUNT(key_, member)                                                             \
	{                                                                               \
		.key = key_, RFL_MEMBER(INT, struct config, member), .max = LAYERS_MAX, \
		.null = true                                                            \
	}
#define FLAG(key_, member)                                                         \
	{                                                                          \
		.key = key_, RFL_MEMBER(FLAG, struct config, member), .null = true \
	}
#define WORD(key_, structure, member)                                          \
	{                                                                      \
		.key = key_, RFL_MEMBER(TEXT, structure, member), .null = true \
	}

static const char *const dtypes[] = { "float32", "float16", "bfloat16", NULL };
static const char *const dtype_formats[] = { "fp32", "fp16", "bf16" };

#define DTYPE(key_)                                                                       \
	{                                                                                 \
		.key = key_, RFL_MEMBER(CHOICE, struct config, dtype), .choices = dtypes, \
		.null = true, .fix = "remove it and use --precision"                      \
	}

static const struct rfl_member part_table[] = {
	{ "num_bits", RFL_MEMBER(INT, struct part, bits), .min = 1, .max = 64 },
	{ "group_size", RFL_MEMBER(INT, struct part, group), .min = -1, .max = 0x1p31,
	  .null = true },
	WORD("type", struct part, type),
	{ "symmetric", RFL_MEMBER(FLAG, struct part, symmetric), .null = true },
	{ .key = NULL },
};

static const struct rfl_member group_table[] = {
	{ "weights", RFL_MEMBER(OBJECT, struct quant, weights), .object = part_table,
	  .null = true },
	{ "input_activations", RFL_MEMBER(OBJECT, struct quant, inputs), .object = part_table,
	  .null = true },
	{ .key = NULL },
};

static void read_group(struct rfl_bind *b, const char *key, const json_t *value, void *to)
{
	struct quant *q = to;

	(void)key;
	if (q->ngroups++)
		rfl_bind_refuse(b, "several groups are not supported; use --weights");
	rfl_bind_read(b, value, group_table, q);
}

static void read_groups(struct rfl_bind *b, const json_t *value, void *member)
{
	rfl_bind_each(b, value, read_group, (char *)member - offsetof(struct quant, ngroups));
}

static const struct rfl_member quant_table[] = {
	{ "quant_method", RFL_MEMBER(TEXT, struct quant, method), .must = true },
	{ "bits", RFL_MEMBER(INT, struct quant, weights.bits), .min = 1, .max = 64 },
	{ "w_bit", RFL_MEMBER(INT, struct quant, weights.bits), .min = 1, .max = 64 },
	{ "group_size", RFL_MEMBER(INT, struct quant, weights.group), .min = -1, .max = 0x1p31 },
	{ "q_group_size", RFL_MEMBER(INT, struct quant, weights.group), .min = -1, .max = 0x1p31 },
	{ "zero_point", RFL_MEMBER(FLAG, struct quant, zero_point) },
	{ "weight_block_size", RFL_MEMBERS(INT, struct quant, block, nblock), .min = 1,
	  .max = 0x1p31, .null = true },
	{ "config_groups", RFL_MEMBER(OTHER, struct quant, ngroups), .read = read_groups },
	{ .key = NULL },
};

static const struct rfl_member table[] = {
	WORD("traits", struct config, traits),
	COUNT("num_hidden_layers", lm.layers),
	COUNT("n_layer", lm.layers),
	SIZE("hidden_size", lm.hidden),
	SIZE("n_embd", lm.hidden),
	SIZE("vocab_size", lm.vocab),
	SIZE("num_attention_heads", lm.heads),
	SIZE("n_head", lm.heads),
	SIZE("num_key_value_heads", lm.kv_heads),
	SIZE("head_dim", lm.head_dim),
	SIZE("intermediate_size", lm.ffn),
	SIZE("n_inner", lm.ffn),
	SIZE("n_positions", lm.positions),
	SIZE("sliding_window", lm.window),
	SIZE("sliding_window_pattern", global),
	SIZE("_sliding_window_pattern", global),
	FLAG("use_sliding_window", windows),
	SIZE("max_window_layers", first_window),
	{ "layer_types", RFL_MEMBERS(TEXT, struct config, layer_types, nlayer_types),
	  .null = true },
	SIZE("num_local_experts", lm.experts),
	SIZE("num_experts", lm.experts),
	SIZE("n_routed_experts", lm.experts),
	SIZE("num_experts_per_tok", lm.active),
	SIZE("n_shared_experts", lm.shared),
	SIZE("moe_intermediate_size", lm.expert_ffn),
	SIZE("first_k_dense_replace", lm.dense_layers),
	SIZE("decoder_sparse_step", every),
	SIZE("moe_layer_freq", every),
	{ "mlp_only_layers", RFL_MEMBERS(INT, struct config, dense, ndense) },
	SIZE("q_lora_rank", lm.q_lora),
	SIZE("kv_lora_rank", lm.kv_lora),
	SIZE("qk_nope_head_dim", lm.nope_dim),
	SIZE("qk_rope_head_dim", lm.rope_dim),
	SIZE("v_head_dim", lm.v_dim),
	FLAG("tie_word_embeddings", tied),
	FLAG("attention_bias", attention_bias),
	FLAG("mlp_bias", mlp_bias),
	FLAG("qk_layernorm", head_norm),
	DTYPE("torch_dtype"),
	DTYPE("dtype"),
	{ "quantization_config", RFL_MEMBER(OBJECT, struct config, quant), .object = quant_table,
	  .null = true },
	{ .key = NULL },
};

static void refuse(struct rfl_bind *b, const char *key, const char *message)
{
	const size_t mark = rfl_where_key(&b->at, key);

	rfl_bind_refuse(b, "%s", message);
	rfl_where_up(&b->at, mark);
}

/* Find the type by its name or, without one, by the class of the model.
 * @param types  the defaults of each type */
static const json_t *find_type(struct rfl_bind *b, const json_t *root, json_t *types)
{
	const json_t *list = json_object_get(root, "architectures");
	const json_t *first = json_array_get(list, 0), *own = json_object_get(root, "model_type");
	const json_t *asked = own ? own : first;
	const char *names[TYPES_MAX + 1] = { NULL }, *name = json_string_value(asked), *key;
	char advice[RFL_ADVICE_SIZE], shown[80];
	json_t *type;
	size_t n = 0, mark;

	if (!asked) {
		rfl_bind_refuse(b, "is not the configuration of a Hugging Face model: it has "
				   "neither \"model_type\" nor \"architectures\"");
		return NULL;
	}
	json_object_foreach(types, key, type)
	{
		names[n] = own ? key : json_string_value(json_object_get(type, "class"));
		if (name && strcmp(name, names[n++]) == 0)
			return type;
	}
	mark = rfl_where_key(&b->at, own ? "model_type" : "architectures");
	rfl_bind_refuse(b, "%s is not supported; %s", rfl_json_show(asked, shown, sizeof(shown)),
			rfl_text_advice(name ? name : "", names, 1, NULL, advice));
	rfl_where_up(&b->at, mark);
	return NULL;
}

static void count_windows(struct rfl_bind *b, struct config *c)
{
	int64_t n = 0;

	for (int64_t i = c->first_window; c->windows && i < c->lm.layers; i++)
		n += c->global <= 1 || (i + 1) % c->global;
	if (c->nlayer_types) {
		n = 0;
		for (size_t i = 0; i < c->nlayer_types; i++) {
			n += strcmp(c->layer_types[i], "sliding_attention") == 0;
			if (strcmp(c->layer_types[i], "sliding_attention") != 0 &&
			    strcmp(c->layer_types[i], "full_attention") != 0)
				refuse(b, "layer_types",
				       "must be sliding_attention or full_attention");
		}
		if ((int64_t)c->nlayer_types != c->lm.layers)
			refuse(b, "layer_types", "must have one entry per layer");
	}
	c->lm.window_layers = c->lm.window ? n : 0;
	c->lm.window = n ? c->lm.window : 0;
}

/* The format of a part. NULL: not known. */
static const struct rfl_lm_format *format_of(const struct part *p)
{
	const bool real = p->type && strcmp(p->type, "float") == 0;

	if (p->bits == 8)
		return rfl_lm_format_find(real ? "fp8" : "int8");
	return p->bits == 4 && !real ? rfl_lm_format_find("int4") : NULL;
}

static void read_quant(struct rfl_bind *b, const struct quant *q, struct rfl_lm_formats *f)
{
	static const char *const methods[] = { "awq", "gptq",  "compressed-tensors",
					       "fp8", "mxfp4", NULL };
	const struct rfl_lm_format *format = NULL;

	if (strcmp(q->method, "mxfp4") == 0) {
		f->experts = *rfl_lm_format_find("mxfp4");
		return;
	}
	if (strcmp(q->method, "fp8") == 0) {
		f->weights = f->activations = *rfl_lm_format_find("fp8");
		if (q->nblock == 2) {
			f->weights.block_rows = q->block[0];
			f->weights.block = q->block[1];
			f->weights.scale_bits = 32;
		}
		return;
	}
	for (int i = 0; i < 3 && !format; i++)
		if (strcmp(q->method, methods[i]) == 0)
			format = format_of(&q->weights);
	if (!format) {
		refuse(b, "quant_method",
		       "is not one of awq, gptq and compressed-tensors with 4 or 8 bits, fp8 and "
		       "mxfp4; remove \"quantization_config\" and use --weights");
		return;
	}
	f->weights = *format;
	f->weights.block = q->weights.group > 0 ? q->weights.group : 0;
	if (strcmp(q->method, "gptq") == 0 || q->zero_point || !q->weights.symmetric)
		f->weights.zero_bits = format->bits;
	if (format_of(&q->inputs))
		f->activations = *format_of(&q->inputs);
}

/* Complete the model. */
static void finish(struct rfl_bind *b, struct config *c, struct rfl_lm_formats *f)
{
	struct rfl_lm *lm = &c->lm;

	if (c->every > 1)
		refuse(b, "moe_layer_freq", "experts in some of the layers are not supported");
	if (c->ndense)
		refuse(b, "mlp_only_layers", "layers without experts are not supported");
	if (c->head_norm)
		refuse(b, "qk_layernorm", "is not supported");
	if (c->attention_bias && lm->kv_lora)
		refuse(b, "attention_bias", "is not supported with latent attention");
	lm->traits = rfl_lm_traits(c->traits) | (c->tied ? RFL_LM_TIED : 0U) |
		     (c->mlp_bias ? RFL_LM_MLP_BIAS : 0U) |
		     (c->attention_bias ? RFL_LM_QKV_BIAS | RFL_LM_OUTPUT_BIAS : 0U);
	if (!lm->kv_lora && !lm->kv_heads)
		lm->kv_heads = lm->heads;
	if (lm->kv_lora)
		lm->kv_heads = lm->head_dim = 0;
	else if (!lm->head_dim && lm->heads)
		lm->head_dim = lm->hidden / lm->heads;
	if (!lm->ffn)
		lm->ffn = 4 * lm->hidden;
	if (lm->experts && !lm->expert_ffn)
		lm->expert_ffn = lm->ffn;
	if (lm->experts && !lm->dense_layers)
		lm->ffn = 0;
	if (!lm->experts)
		lm->active = lm->shared = lm->expert_ffn = lm->dense_layers = 0;
	count_windows(b, c);
	for (size_t i = 0; c->dtype && dtypes[i]; i++)
		if (c->dtype == dtypes[i])
			f->base = *rfl_lm_format_find(dtype_formats[i]);
	if (c->quant.method) {
		const size_t mark = rfl_where_key(&b->at, "quantization_config");

		read_quant(b, &c->quant, f);
		rfl_where_up(&b->at, mark);
	}
}

enum rfl_rc rfl_lm_load(const char *path, struct rfl_arena *arena, struct rfl_lm *ret,
			struct rfl_lm_formats *formats, struct rfl_err *err)
{
	struct rfl_bind b = { .arena = arena, .open = true, .err = err };
	struct rfl_lm_formats f = *formats;
	json_auto_t *root = NULL, *types = NULL;
	struct config c = { .quant.weights.symmetric = true };
	struct rfl_err why = RFL_ERR_INIT;
	const json_t *type = NULL;

	b.rc = rfl_json_load(path, &root, err);
	if (b.rc == RFL_OK)
		b.rc = rfl_json_loads(rfl_lm__types_json, rfl_lm__types_json_size, "types.json",
				      &types, err);
	rfl_where_begin(&b.at, path, "");
	if (b.rc == RFL_OK && (type = find_type(&b, root, types)))
		rfl_bind_read(&b, type, table, &c);
	if (b.rc != RFL_OK)
		return b.rc;
	for (const struct rfl_member *m = table; m->key; m++)
		if (m->kind == RFL_BIND_INT && !m->list &&
		    json_is_null(json_object_get(root, m->key)))
			memset((char *)&c + m->offset, 0, m->size);
	(void)json_object_del(root, "traits");
	rfl_bind_read(&b, root, table, &c);
	if (b.rc == RFL_OK)
		finish(&b, &c, &f);
	if (b.rc == RFL_OK && rfl_lm_check(&c.lm, &why) != RFL_OK)
		rfl_bind_refuse(&b, "%s", why.msg);
	if (b.rc != RFL_OK)
		return b.rc;
	c.lm.name = rfl_arena_strdup(arena, path);
	*ret = c.lm;
	*formats = f;
	return RFL_OK;
}

bool rfl_lm_is_config(const char *path)
{
	json_auto_t *root = NULL;

	return rfl_json_load(path, &root, NULL) == RFL_OK && !json_object_get(root, "schema") &&
	       (json_object_get(root, "model_type") || json_object_get(root, "architectures"));
}
