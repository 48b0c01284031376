/*
 * png_write.c - PNG by libpng. cairo's own writer knows neither resolution nor compression level.
 */
#include "plot/png_write.h"

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

struct sink {
	struct rfl_buf *out;
	char message[128];
};

static void on_error(png_structp png, png_const_charp message)
{
	struct sink *sink = png_get_error_ptr(png);
	size_t len = strlen(message);

	if (len >= sizeof(sink->message))
		len = sizeof(sink->message) - 1;
	memcpy(sink->message, message, len);
	sink->message[len] = '\0';
	longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static void on_write(png_structp png, png_bytep data, size_t len)
{
	struct sink *sink = png_get_io_ptr(png);

	rfl_buf_append(sink->out, data, len);
}

static void on_flush(png_structp png)
{
	(void)png;
}

static void write_header(png_structp png, png_infop info, const struct rfl_png_image *image)
{
	png_uint_32 per_meter = (png_uint_32)lround(image->dpi / 0.0254);

	png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
		     PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
		     PNG_FILTER_TYPE_DEFAULT);
	png_set_pHYs(png, info, per_meter, per_meter, PNG_RESOLUTION_METER);
	/* Measured on figures: filters and deeper searches cost twice the time for a tenth of the
	 * size. */
	png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
	png_set_compression_level(png, 3);
	png_set_compression_mem_level(png, 7); /* a hash table that stays in the first cache */
	png_set_compression_buffer_size(png, (size_t)256 << 10);
	png_write_info(png, info);
}

static void pack_row(const unsigned char *from, int width, png_bytep to)
{
	for (int x = 0; x < width; x++, from += 4, to += 3) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		to[0] = (png_byte)(word >> 16);
		to[1] = (png_byte)(word >> 8);
		to[2] = (png_byte)word;
	}
}

/* Everything that libpng may leave by longjmp; no local of this frame changes after setjmp. */
static int write_all(png_structp png, png_infop info, const struct rfl_png_image *image,
		     png_bytep row)
{
	if (setjmp(png_jmpbuf(png)))
		return -1;
	write_header(png, info, image);
	for (int y = 0; y < image->height; y++) {
		pack_row(image->rows + (size_t)y * image->stride, image->width, row);
		png_write_row(png, row);
	}
	png_write_end(png, NULL);
	return 0;
}

enum rfl_rc rfl_png_write(const struct rfl_png_image *image, struct rfl_buf *out,
			  struct rfl_err *err)
{
	struct sink sink = { .out = out };
	png_structp png =
		png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink, on_error, on_warning);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	png_bytep row = malloc((size_t)image->width * 3);
	enum rfl_rc rc = RFL_OK;

	if (!png || !info || !row) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "no memory for a PNG");
		goto done;
	}
	png_set_write_fn(png, &sink, on_write, on_flush);
	if (write_all(png, info, image, row) < 0) {
		rc = rfl_fail(err, RFL_EFAILED, 0, "libpng: %s", sink.message);
		goto done;
	}
	rc = rfl_buf_check(out, "PNG", err);
done:
	free(row);
	png_destroy_write_struct(&png, &info);
	return rc;
}
