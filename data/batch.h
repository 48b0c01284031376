/*
 * batch.h - what an engine is fed: the inputs and labels of one forward.
 */
#ifndef RFL_DATA_BATCH_H
#define RFL_DATA_BATCH_H

#include <stdint.h>

#include "machine/terms.h"

/** What the inputs of a batch are. */
enum rfl_input_kind {
	RFL_INPUT_IMAGES, /**< float32, normalised */
	RFL_INPUT_PIXELS, /**< 8-bit, to be normalised where they are used */
	RFL_INPUT_TOKENS, /**< positions in a vocabulary */
};

/** From 8-bit pixels to inputs, per channel: (value / 255 - mean) / std. */
struct rfl_pixel_scale {
	float mean[3], std[3];
};

/**
 * Inputs and labels of one forward. The memory belongs to the caller and must stay as it is until
 * the backward of that forward has run.
 */
struct rfl_batch {
	int64_t n; /**< samples, 1 to max_batch */
	enum rfl_input_kind kind;
	union {
		const float *images;   /**< n * channels * height * width, in `layout` */
		const uint8_t *pixels; /**< the same */
		const int64_t *tokens; /**< n * context, row-major */
	};
	enum rfl_layout layout;              /**< of images or pixels */
	const struct rfl_pixel_scale *scale; /**< of pixels */
	const int64_t *labels; /**< class indices: n, or one per row of logits (n * context) */
	/** Not 0: batches of one number are equal, so that a copy made on the device may be used
	 * again. */
	uint64_t id;
};

#endif
