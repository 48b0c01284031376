/*
 * cs336.c - the language models of Stanford's CS336, "Language Modeling from Scratch": pre-norm
 * blocks with RMS norm, rotary position embedding, causal attention and SwiGLU; no biases, an
 * untied head, a context of any length.
 *
 * Assignment 2 changed its sizes: the "xl" of 2026 is what 2025 called "2.7B", and neither has 2.7
 * billion parameters, because a SwiGLU of d_ff = 4 d has three matrices where the older
 * feed-forward has two. So a name says its year where the year matters.
 */
#include "complexity/zoo/decoder.h"

static const struct rfl_zoo_decoder_names names = {
	.embedding = "token_embeddings",
	.final_norm = "ln_final",
	.head = "lm_head",
	.attention = "attn",
	.feed_forward = "ffn",
	.attention_norm = "ln1",
	.feed_forward_norm = "ln2",
	.projection = { "q_proj", "k_proj", "v_proj", "output_proj" },
};

#define CS336(name_, title_, summary_, context_, layers_, features_, hidden_, heads_, ...)          \
	{                                                                                           \
		.model = {                                                                        \
			.name = name_,                                                            \
			.title = title_,                                                          \
			.family = "cs336",                                                        \
			.summary = summary_,                                                      \
			.classes = 10000,                                                         \
			.context_length = context_,                                               \
			.aliases = (const char *const[]){ __VA_ARGS__, NULL },                    \
		},                                                                                \
		.config = &(const struct rfl_zoo_decoder){                                        \
			.layers = layers_,                                                        \
			.features = features_,                                                    \
			.hidden = hidden_,                                                        \
			.heads = heads_,                                                          \
			.names = &names,                                                          \
			.style = RFL_ZOO_DECODER_STEPS,                                           \
		}, \
	}

/* clang-format off */
static const struct rfl_zoo_entry entries[] = {
	{
		.model = {
			.name = "tiny_lm",
			.title = "Tiny LM",
			.family = "cs336",
			.summary = "2 layers of 64 features for tests; softmax and SiLU are one operation each",
			.classes = 256,
			.context_length = 32,
		},
		.config = &(const struct rfl_zoo_decoder){
			.layers = 2,
			.features = 64,
			.hidden = 192,
			.heads = 4,
			.names = &names,
			.style = { .norm = RFL_ZOO_STEPS, .rope = RFL_ZOO_STEPS },
		},
	},
	CS336("cs336_small", "CS336 small", "12 layers of 768 features (CS336 assignment 2)",
	      256, 12, 768, 3072, 12, "cs336-small", "S"),
	CS336("cs336_medium", "CS336 medium", "24 layers of 1024 features (CS336 assignment 2)",
	      256, 24, 1024, 4096, 16, "cs336-medium", "M"),
	CS336("cs336_large", "CS336 large", "36 layers of 1280 features (CS336 assignment 2)",
	      256, 36, 1280, 5120, 20, "cs336-large", "L"),
	CS336("cs336_xl_2025", "CS336 xl (2025)", "48 layers of 1600 features (the xl of 2025)",
	      256, 48, 1600, 6400, 25, "cs336-xl-2025", "XL"),
	CS336("cs336_2p7b_2025", "CS336 2.7B (2025)",
	      "32 layers of 2560 features (the 2.7B of 2025, the xl of 2026): 3.4 billion parameters",
	      256, 32, 2560, 10240, 32, "cs336-2.7B", "2p7"),
	CS336("cs336_xl_2026", "CS336 xl (2026)",
	      "32 layers of 2560 features (the xl of 2026, the 2.7B of 2025)",
	      512, 32, 2560, 10240, 32, "cs336-xl-2026"),
	CS336("cs336_10b_2026", "CS336 10B (2026)",
	      "50 layers of 4608 features (the 10B of 2026): 12.8 billion parameters",
	      512, 50, 4608, 12288, 36, "cs336-10B-2026"),
};
/* clang-format on */

const struct rfl_zoo_family rfl_zoo_cs336 = {
	.name = "cs336",
	.entries = entries,
	.nentries = RFL_ARRAY_LEN(entries),
	.build = rfl_zoo_decoder_build,
};
