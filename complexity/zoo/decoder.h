/*
 * decoder.h - a language model of pre-norm blocks with RMS norm, rotary position embedding,
 * causal attention and SwiGLU, without biases: the CS336 course's and Llama's.
 */
#ifndef RFL_COMPLEXITY_ZOO_DECODER_H
#define RFL_COMPLEXITY_ZOO_DECODER_H

#include <stdint.h>

#include "complexity/zoo/attention.h"
#include "complexity/zoo/impl.h"

/** What the published code calls its modules. */
struct rfl_zoo_decoder_names {
	const char *embedding, *final_norm, *head;
	/* within a layer */
	const char *attention, *feed_forward;
	const char *attention_norm, *feed_forward_norm;
	/* within its attention: query, key, value, output */
	const char *projection[4];
	bool norms_last; /**< the norms of a layer stand last in its state_dict, not in their place
			  */
};

/** How the published code writes its steps. */
struct rfl_zoo_decoder_style {
	bool fused; /**< attention */
	enum rfl_zoo_form norm, rope, softmax, silu;
	enum rfl_loss loss;
	bool shared_rope; /**< one table of angles for all layers */
};

struct rfl_zoo_decoder {
	int64_t layers, features, hidden, heads;
	const struct rfl_zoo_decoder_names *names;
	struct rfl_zoo_decoder_style style; /**< of attention auto */
};

/** Build function of a family whose configs are struct rfl_zoo_decoder. */
int rfl_zoo_decoder_build(struct rfl_net_builder *b, const void *config,
			  const struct rfl_zoo_sizes *sizes);

/** Everything in steps. */
#define RFL_ZOO_DECODER_STEPS                                                           \
	{                                                                               \
		.norm = RFL_ZOO_STEPS, .rope = RFL_ZOO_STEPS, .softmax = RFL_ZOO_STEPS, \
		.silu = RFL_ZOO_STEPS, .loss = RFL_LOSS_COMPOSED, .shared_rope = true   \
	}

#endif
