/*
 * transform.h - converts decoded pixels to a network's input: chooses the crop, resizes
 * (antialiased bilinear, bit-exact with Pillow), flips, and writes the layout.
 */
#ifndef RFL_DATA_TRANSFORM_H
#define RFL_DATA_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/terms.h"
#include "data/random.h"

struct rfl_rect {
	int x, y, width, height;
};

/** An image in interleaved 8-bit RGB: rows without padding, one readable byte past the last.
 * Release with rfl_image_fini(). */
struct rfl_image {
	int width, height;
	uint8_t *pixels;
	size_t capacity;
};

/** Make room for width x height pixels, zeroed if the memory is new. @return RFL_OK; RFL_ENOMEM */
enum rfl_rc rfl_image_reserve(struct rfl_image *image, int width, int height,
			      struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_image_fini(struct rfl_image *image);

/** The transformation of one image to one input. */
struct rfl_view {
	struct rfl_rect crop;            /**< part of the image to resize */
	struct rfl_rect needed;          /**< part of the image that the window needs */
	int scaled_width, scaled_height; /**< size of the resized crop */
	int left, top, width, height;    /**< window of the resized crop */
	bool flip;                       /**< swap left and right */
};

/** Choose a random crop: 8 to 100 % of the area, aspect ratio 3/4 to 4/3, resized to size x size,
 * flipped in half of the cases: torchvision's RandomResizedCrop and RandomHorizontalFlip. */
void rfl_view_random(int width, int height, int size, struct rfl_random *random,
		     struct rfl_view *ret);

/** Resize the short side to size * 256 / 224 and crop the centre, as in torchvision. */
void rfl_view_centre(int width, int height, int size, struct rfl_view *ret);

/** Buffers that resizing reuses from image to image; initialise with zeros. */
struct rfl_resizer {
	int32_t *weights[2];
	int *bounds[2];
	size_t weights_cap[2], bounds_cap[2];
	uint8_t *columns, *row;
	size_t columns_cap, row_cap;
	struct rfl_image rows;
};
void rfl_resizer_fini(struct rfl_resizer *r);

/**
 * Resize a crop, cut out the window, flip it and write it in `layout`.
 * @param source  the pixels of view->needed
 * @param out     3 * view->width * view->height bytes
 */
enum rfl_rc rfl_resize(struct rfl_resizer *r, const struct rfl_image *source,
		       const struct rfl_view *view, enum rfl_layout layout, uint8_t *out,
		       struct rfl_err *err) RFL_WARN_UNUSED;

#define RFL_WEIGHT_BITS 22 /* 32 - 8 bits of pixels - 2 bits of headroom, as in Pillow */

/** Loops compiled for several instruction sets; all variants give the same bytes. */
struct rfl_rows {
	/** out[x] = the sum over i of weights[i] * in[i * step + x], in RFL_WEIGHT_BITS fixed
	 * point, rounded and clamped to 255; x from 0 to n - 1. Weights are 0 or more. */
	void (*sum)(const uint8_t *in, size_t step, const int32_t *weights, int count, size_t n,
		    uint8_t *out);
	/** Split n pixels of three bytes into three rows, `plane` bytes apart. */
	void (*split)(const uint8_t *pixels, size_t n, size_t plane, uint8_t *out);
};

/** The loops for each instruction set of this CPU, the fastest first; NULL past the last. */
const struct rfl_rows *rfl_rows_at(size_t i);

#endif
