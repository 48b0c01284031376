/* models.c - the table of language models, and the formats of their values. */
#include "complexity/lm.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/fields.h"
#include "base/text.h"

#define NAME "complexity/lm/models.csv"

/* The contents of the file, embedded by CMake. */
extern const char rfl_lm__models_csv[];
extern const size_t rfl_lm__models_csv_size;

const char *const rfl_lm_trait_names[] = {
	"tied",     "plain_mlp",   "gelu",     "layer_norm", "parallel",    "post_norms", "qk_norm",
	"qkv_bias", "output_bias", "mlp_bias", "head_bias",  "router_bias", "sinks",      NULL,
};

/* A row: the model, and its traits as words. */
struct row {
	struct rfl_lm lm;
	char *traits;
};

#define FIELD(k, member)                                                                           \
	{                                                                                          \
		.name = #member, .kind = RFL_FIELD_##k, .offset = offsetof(struct row, lm.member), \
		.needed = true                                                                     \
	}

static const struct rfl_field fields[] = {
	FIELD(TEXT, name),
	FIELD(TEXT, aliases),
	FIELD(TEXT, source),
	FIELD(INT, published),
	{ .name = "traits", .kind = RFL_FIELD_TEXT, .offset = offsetof(struct row, traits) },
	FIELD(INT, layers),
	FIELD(INT, hidden),
	FIELD(INT, vocab),
	FIELD(INT, heads),
	FIELD(INT, kv_heads),
	FIELD(INT, head_dim),
	FIELD(INT, ffn),
	FIELD(INT, window),
	FIELD(INT, window_layers),
	FIELD(INT, positions),
	FIELD(INT, experts),
	FIELD(INT, active),
	FIELD(INT, shared),
	FIELD(INT, expert_ffn),
	FIELD(INT, dense_layers),
	FIELD(INT, q_lora),
	FIELD(INT, kv_lora),
	FIELD(INT, nope_dim),
	FIELD(INT, rope_dim),
	FIELD(INT, v_dim),
};

unsigned rfl_lm_traits(const char *text)
{
	struct rfl_span rest = rfl_span_of(text ? text : ""), word;
	unsigned traits = 0;

	while (rfl_span_next_word(&rest, &word)) {
		size_t i = 0;

		while (rfl_lm_trait_names[i] && !rfl_span_is(word, rfl_lm_trait_names[i]))
			i++;
		assert(rfl_lm_trait_names[i]);
		traits |= 1U << i;
	}
	return traits;
}

struct rfl_lms *rfl_lms_new(void)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_lms *lms = rfl_arena_array(arena, 1, sizeof(*lms));
	int columns[RFL_ARRAY_LEN(fields)];
	RFL_AUTOPTR(csv) csv = NULL;
	bool more = true;
	enum rfl_rc rc =
		rfl_csv_open_text(rfl_lm__models_csv, rfl_lm__models_csv_size, NAME, &csv, NULL);

	lms->arena = arena;
	if (rc == RFL_OK)
		rc = rfl_fields_bind(fields, RFL_ARRAY_LEN(fields), csv, columns, NULL);
	while (rc == RFL_OK && !(rc = rfl_csv_next(csv, &more, NULL)) && more) {
		struct rfl_lm *lm = rfl_arena_append(arena, &lms->models, &lms->n);
		struct row row = { .traits = NULL };

		rc = rfl_fields_read(fields, RFL_ARRAY_LEN(fields), csv, columns, arena, &row,
				     NULL);
		row.lm.traits = rfl_lm_traits(row.traits);
		for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++)
			if (fields[i].kind == RFL_FIELD_INT && !rfl_field_known(&fields[i], &row))
				*rfl_field_int_at(&fields[i], &row) = 0;
		*lm = row.lm;
	}
	assert(rc == RFL_OK); /* the file is compiled in */
	return lms;
}

void rfl_lms_free(struct rfl_lms *lms)
{
	if (lms)
		rfl_arena_free(lms->arena);
}

/* Whether two names are equal but for case and punctuation. A name without letters and digits
 * equals none. */
static bool same_name(struct rfl_span a, struct rfl_span b)
{
	size_t i = 0, k = 0;

	for (bool some = false;; some = true) {
		while (i < a.len && !isalnum((unsigned char)a.at[i]))
			i++;
		while (k < b.len && !isalnum((unsigned char)b.at[k]))
			k++;
		if (i == a.len || k == b.len)
			return some && i == a.len && k == b.len;
		if (tolower((unsigned char)a.at[i++]) != tolower((unsigned char)b.at[k++]))
			return false;
	}
}

enum rfl_rc rfl_lms_find(const struct rfl_lms *lms, const char *name, const struct rfl_lm **ret,
			 struct rfl_err *err)
{
	const char **names = rfl_alloc_array(lms->n + 1, sizeof(*names));
	char advice[RFL_ADVICE_SIZE];

	for (size_t i = 0; i < lms->n; i++) {
		const struct rfl_lm *lm = &lms->models[i];
		struct rfl_span rest = rfl_span_of(lm->aliases ? lm->aliases : ""), alias;
		bool found = same_name(rfl_span_of(name), rfl_span_of(lm->name));

		while (!found && rfl_span_next_field(&rest, ';', &alias))
			found = same_name(rfl_span_of(name), alias);
		names[i] = lm->name;
		if (found) {
			free(names);
			*ret = lm;
			return RFL_OK;
		}
	}
	names[lms->n] = NULL;
	(void)rfl_text_advice(
		name, names, 3,
		"run 'roofline complexity --phase prefill --new 1 --models all' for a list",
		advice);
	free(names);
	return rfl_fail(err, RFL_ENOTFOUND, 0, "no language model '%s'; %s", name, advice);
}

/* A configuration is named after its file or, as config.json, after its directory. */
static const char *name_of(const char *path, struct rfl_arena *arena)
{
	char *copy = rfl_arena_strdup(arena, path), *slash = strrchr(copy, '/');

	if (slash && strcmp(slash + 1, "config.json") == 0) {
		*slash = '\0';
		slash = strrchr(copy, '/');
	}
	copy = slash ? slash + 1 : copy;
	if (rfl_span_ends(rfl_span_of(copy), ".json"))
		copy[strlen(copy) - strlen(".json")] = '\0';
	return *copy ? copy : path;
}

enum rfl_rc rfl_lm_named(const char *name, struct rfl_arena *arena, struct rfl_lm *ret,
			 struct rfl_lm_formats *formats, struct rfl_err *err)
{
	RFL_AUTOPTR(lms) lms = NULL;
	struct rfl_lm_formats unused;
	const struct rfl_lm *lm;
	enum rfl_rc rc;

	if (!formats)
		formats = &unused;
	*formats = (struct rfl_lm_formats){ .base.name = NULL };
	if (rfl_span_ends(rfl_span_of(name), ".json")) {
		rc = rfl_lm_load(name, arena, ret, formats, err);
		if (rc == RFL_OK)
			ret->name = (char *)name_of(name, arena);
		return rc;
	}
	lms = rfl_lms_new();
	rc = rfl_lms_find(lms, name, &lm, err);
	if (rc != RFL_OK)
		return rc;
	*ret = *lm;
	ret->name = rfl_arena_strdup(arena, lm->name);
	ret->aliases = ret->source = NULL;
	return RFL_OK;
}

/* --- formats --- */

enum { GROUP = 128, MX = 32 };

const char *const rfl_lm_format_names[] = { "fp32", "fp16", "bf16",  "fp8",
					    "int8", "int4", "mxfp4", NULL };

/* A 16-bit scale per output channel (int8) or group (int4); mxfp4 is of the OCP Microscaling
 * Formats Specification. The one scale of an fp8 matrix is not counted. */
const struct rfl_lm_format rfl_lm_formats_known[] = {
	{ .name = "fp32", .bits = 32 },
	{ .name = "fp16", .bits = 16 },
	{ .name = "bf16", .bits = 16 },
	{ .name = "fp8", .bits = 8 },
	{ .name = "int8", .bits = 8, .block_rows = 1, .scale_bits = 16 },
	{ .name = "int4", .bits = 4, .block_rows = 1, .block = GROUP, .scale_bits = 16 },
	{ .name = "mxfp4", .bits = 4, .block_rows = 1, .block = MX, .scale_bits = 8 },
};

const struct rfl_lm_format *rfl_lm_format_find(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(rfl_lm_formats_known); i++)
		if (strcmp(rfl_lm_formats_known[i].name, name) == 0)
			return &rfl_lm_formats_known[i];
	return NULL;
}

void rfl_lm_formats_fill(struct rfl_lm_formats *f)
{
	if (!f->base.name)
		f->base = *rfl_lm_format_find("bf16");
	if (!f->activations.name)
		f->activations = f->base;
	if (!f->cache.name)
		f->cache = f->base;
	if (!f->weights.name)
		f->weights = f->base;
	if (!f->experts.name)
		f->experts = f->weights;
	if (!f->head.name)
		f->head = f->base;
}

struct rfl_lm_step rfl_lm_step_of(const char *precision, bool int8, int64_t batch, int64_t past,
				  int64_t tokens)
{
	const bool half = strcmp(precision, "fp16") == 0 || strcmp(precision, "bf16") == 0;
	struct rfl_lm_step step = { .batch = batch,
				    .past = past > 0 ? past : 0,
				    .tokens = tokens > 0 ? tokens : 1,
				    .logits = 1,
				    .decode = tokens == 1,
				    .causal_half = true,
				    .fusion = RFL_FUSION_FUSED };
	struct rfl_lm_formats *f = &step.formats;

	f->base = *rfl_lm_format_find(half ? precision : "fp32");
	if (int8) {
		f->weights = *rfl_lm_format_find("int8");
		f->weights.scale_bits = f->base.bits;
	}
	rfl_lm_formats_fill(f);
	return step;
}
