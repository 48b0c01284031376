/*
 * png_write.h - an image in memory as a PNG file, with its resolution and without a time stamp, so
 * that one image is always the same bytes.
 */
#ifndef RFL_PLOT_PNG_WRITE_H
#define RFL_PLOT_PNG_WRITE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_png_image {
	int width, height;
	size_t stride;             /**< bytes from row to row */
	const unsigned char *rows; /**< native-endian 0x..RRGGBB words, as cairo's RGB24 */
	double dpi;
};

/** Append the file to `out`. RFL_ENOMEM, or RFL_EFAILED with libpng's words. */
enum rfl_rc rfl_png_write(const struct rfl_png_image *image, struct rfl_buf *out,
			  struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
