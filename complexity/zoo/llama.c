/*
 * llama.c - Llama 2 (Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models",
 * 2023) with the names of Meta's own checkpoint, whose rotary embedding pairs neighbours.
 */
#include "complexity/zoo/decoder.h"

static const struct rfl_zoo_decoder_names names = {
	.embedding = "tok_embeddings",
	.final_norm = "norm",
	.head = "output",
	.attention = "attention",
	.feed_forward = "feed_forward",
	.attention_norm = "attention_norm",
	.feed_forward_norm = "ffn_norm",
	.projection = { "wq", "wk", "wv", "wo" },
	.norms_last = true,
};

static const struct rfl_zoo_entry entries[] = {
	{
		.model = {
			.name = "llama2_7b",
			.title = "Llama 2 7B",
			.family = "llama",
			.summary = "32 layers of 4096 features (Touvron et al. 2023)",
			.classes = 32000,
			.context_length = 4096,
			.aliases = (const char *const[]){ "llama-2-7b", NULL },
		},
		.config = &(const struct rfl_zoo_decoder){
			.layers = 32,
			.features = 4096,
			.hidden = 11008,
			.heads = 32,
			.names = &names,
			.style = { .norm = RFL_ZOO_STEPS },
		},
	},
};

const struct rfl_zoo_family rfl_zoo_llama = {
	.name = "llama",
	.entries = entries,
	.nentries = RFL_ARRAY_LEN(entries),
	.build = rfl_zoo_decoder_build,
};
