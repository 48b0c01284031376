/*
 * jpeg.h - decodes JPEG with libjpeg-turbo: whole images or the part that a crop needs, always as
 * RGB. A file that is truncated, too large or not a JPEG is an error with a reason.
 */
#ifndef RFL_DATA_JPEG_H
#define RFL_DATA_JPEG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "data/transform.h"

/** Larger images are rejected: a header of 30 bytes can claim 4 gigapixels. */
#define RFL_JPEG_MAX_PIXELS ((int64_t)100 << 20)

struct rfl_jpeg; /* a decoder for many images, used by one thread */

/** @return RFL_OK; RFL_EUNAVAILABLE if built without libjpeg-turbo */
enum rfl_rc rfl_jpeg_new(struct rfl_jpeg **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_jpeg_free(struct rfl_jpeg *j);

/**
 * Begin an image: read its header and check that its end exists.
 *
 * @param data  borrowed until rfl_jpeg_decode() has returned
 * @param name  name for messages
 * @return RFL_OK; RFL_EFORMAT "<name>: not a JPEG file", "truncated", "... pixels"; RFL_ENOMEM
 */
enum rfl_rc rfl_jpeg_begin(struct rfl_jpeg *j, const void *data, size_t len, const char *name,
			   int *width, int *height, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Decode the image given to rfl_jpeg_begin(), or a crop of it with identical pixels.
 * @param crop  inside the image; NULL: the whole image
 * @param out   receives the crop; its memory grows as needed
 */
enum rfl_rc rfl_jpeg_decode(struct rfl_jpeg *j, const struct rfl_rect *crop, struct rfl_image *out,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
