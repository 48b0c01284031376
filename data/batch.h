/* batch.h - the inputs and labels of one forward pass. */
#ifndef RFL_DATA_BATCH_H
#define RFL_DATA_BATCH_H

#include <stdint.h>

#include "machine/terms.h"

enum rfl_input_kind {
	RFL_INPUT_IMAGES, /**< float32, normalised */
	RFL_INPUT_PIXELS, /**< 8-bit; the engine normalises them */
	RFL_INPUT_TOKENS, /**< indices into a vocabulary */
};

/** The conversion of 8-bit pixels to inputs, per channel: (value / 255 - mean) / std. */
struct rfl_pixel_scale {
	float mean[3], std[3];
};

/** Inputs and labels of one forward pass. The memory belongs to the caller and must not change
 * until the backward pass has run. */
struct rfl_batch {
	int64_t n; /**< samples, 1 to max_batch */
	enum rfl_input_kind kind;
	union {
		/** n * channels * height * width, in `layout`; for a net with several inputs, n *
		 * tokens * features of each of them */
		const float *images;
		const uint8_t *pixels; /**< the same */
		const int64_t *tokens; /**< n * context, row-major */
	};
	enum rfl_layout layout;              /**< layout of images or pixels */
	const struct rfl_pixel_scale *scale; /**< of pixels */
	const int64_t *labels; /**< class indices: n, or one per row of logits (n * context) */
	/** Unless 0, batches with the same id are equal, and a copy on the device can be reused. */
	uint64_t id;
};

#endif
