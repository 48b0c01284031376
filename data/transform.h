/*
 * transform.h - from decoded pixels to a network's input: which part of an image is taken, the
 * resize (antialiased bilinear, Pillow's arithmetic to the bit), the flip, the layout.
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

/** The old block when n elements of `size` bytes fit it, else a new one in its place, zeroed; NULL
 * out of memory. A block keeps its size of elements. The content is lost. */
void *rfl_scratch(void *old, size_t *cap, size_t n, size_t size) RFL_WARN_UNUSED;

/** Interleaved 8-bit RGB, rows without padding, and a byte past the last that may be read.
 * `pixels` grows and is the owner's to free. */
struct rfl_image {
	int width, height;
	uint8_t *pixels;
	size_t capacity;
};

/** Make room for width x height; the content is lost. RFL_ENOMEM. */
enum rfl_rc rfl_image_reserve(struct rfl_image *image, int width, int height,
			      struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_image_fini(struct rfl_image *image);

/** How one image becomes one input. */
struct rfl_view {
	struct rfl_rect crop;            /**< of the image */
	struct rfl_rect needed;          /**< of the image: what the window needs of the crop */
	int scaled_width, scaled_height; /**< to which the crop is resized */
	int left, top, width, height;    /**< the window that is kept of the scaled crop */
	bool flip;                       /**< left and right change sides */
};

/**
 * A random crop of 8 to 100 % of the area, of aspect 3/4 to 4/3, resized to size x size, flipped
 * half of the time: torchvision's RandomResizedCrop and RandomHorizontalFlip.
 */
void rfl_view_random(int width, int height, int size, struct rfl_random *random,
		     struct rfl_view *ret);

/** The short side resized to size * 256 / 224, the centre kept: torchvision's Resize, CenterCrop.
 */
void rfl_view_centre(int width, int height, int size, struct rfl_view *ret);

/** The range of `in` pixels in one direction that `count` of `out` pixels are made from, the first
 * of them `from`. */
void rfl_resize_range(int in, int out, int from, int count, int *first, int *n);

/** Memory that resizing reuses from image to image; zeroed at first. */
struct rfl_resizer {
	int32_t *weights[2];
	int *bounds[2];
	size_t weights_cap[2], bounds_cap[2];
	uint8_t *columns, *rows, *row;
	size_t columns_cap, rows_cap, row_cap;
};
void rfl_resizer_fini(struct rfl_resizer *r);

/**
 * Resize a crop, keep the window, flip it, lay it out.
 * @param source  the pixels of view->needed
 * @param out     3 * view->width * view->height bytes, in `layout`
 */
enum rfl_rc rfl_resize(struct rfl_resizer *r, const struct rfl_image *source,
		       const struct rfl_view *view, enum rfl_layout layout, uint8_t *out,
		       struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- the loops over rows of pixels that resizing spends its time in ---- */

#define RFL_WEIGHT_BITS 22 /* 32 - 8 bits of the pixels - 2 of head room, as Pillow has it */

/** One body per loop, compiled for several instruction sets. All give the same bytes. */
struct rfl_rows {
	/** out[x] = the sum over i of weights[i] * in[i * step + x], in RFL_WEIGHT_BITS fixed
	 * point, rounded and kept within 0 to 255; x from 0 to n - 1. Weights are 0 or more. */
	void (*sum)(const uint8_t *in, size_t step, const int32_t *weights, int count, size_t n,
		    uint8_t *out);
	/** n pixels of three bytes become three rows, `plane` bytes apart. */
	void (*split)(const uint8_t *pixels, size_t n, size_t plane, uint8_t *out);
};

/** All that this processor can run, the fastest first; NULL past the last. */
const struct rfl_rows *rfl_rows_at(size_t i);

#endif
