/*
 * jpeg.c - implements jpeg.h with libjpeg-turbo. Its errors return by longjmp, so struct rfl_jpeg
 * owns all memory that must survive its calls.
 */
#include "data/jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/alloc.h"

#define ROW_BATCH 16
#define MAX_SCANS 500 /* scans of a progressive file; cameras and libraries write 10 to 20 */

struct rfl_jpeg {
	struct jpeg_decompress_struct decoder;
	struct jpeg_error_mgr manager; /* the decoder's client_data points to this struct */
	struct jpeg_progress_mgr progress;
	jmp_buf escape;
	char message[JMSG_LENGTH_MAX];
	char name[4096];
	uint8_t *rows; /* ROW_BATCH decoded rows */
	size_t rows_cap;
};

static void on_error(j_common_ptr info)
{
	struct rfl_jpeg *j = info->client_data;

	info->err->format_message(info, j->message);
	longjmp(j->escape, 1);
}

/* Treat only warnings about truncated data as errors. */
static void on_message(j_common_ptr info, int level)
{
	if (level < 0 &&
	    (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER))
		on_error(info);
}

/* Limit the scans: a small file can require any number of passes over a large image. */
static void on_progress(j_common_ptr info)
{
	struct rfl_jpeg *j = info->client_data;

	if (j->decoder.input_scan_number <= MAX_SCANS)
		return;
	snprintf(j->message, sizeof(j->message), "more than %d scans", MAX_SCANS);
	j->manager.msg_code = 0;
	longjmp(j->escape, 1);
}

static enum rfl_rc gave_up(const struct rfl_jpeg *j, struct rfl_err *err)
{
	const bool nomem = j->manager.msg_code == JERR_OUT_OF_MEMORY;

	return rfl_fail(err, nomem ? RFL_ENOMEM : RFL_EFORMAT, 0, "%s: %s", j->name, j->message);
}

enum rfl_rc rfl_jpeg_new(struct rfl_jpeg **ret, struct rfl_err *err)
{
	struct rfl_jpeg *j = rfl_alloc_array(1, sizeof(*j));

	(void)err;
	j->decoder.err = jpeg_std_error(&j->manager);
	j->manager.error_exit = on_error;
	j->manager.emit_message = on_message;
	j->decoder.client_data = j;
	if (setjmp(j->escape)) /* the only failure of a new decoder */
		rfl_out_of_memory();
	jpeg_create_decompress(&j->decoder);
	j->progress.progress_monitor = on_progress;
	j->decoder.progress = &j->progress;
	*ret = j;
	return RFL_OK;
}

void rfl_jpeg_free(struct rfl_jpeg *j)
{
	if (!j)
		return;
	jpeg_destroy_decompress(&j->decoder);
	free(j->rows);
	free(j);
}

/* Entropy-coded data never contains FF D9, so a file without it after the header is truncated. */
static bool has_end(const uint8_t *data, size_t len)
{
	for (size_t i = len; i >= 2; i--)
		if (data[i - 1] == 0xD9 && data[i - 2] == 0xFF)
			return true;
	return false;
}

/* Other formats that occur in files named .jpg. */
static const struct {
	const char *begins;
	size_t len;
	const char *what;
} others[] = {
	{ "\x89PNG", 4, "a PNG file" },
	{ "GIF8", 4, "a GIF file" },
	{ "BM", 2, "a BMP file" },
	{ "RIFF", 4, "a WebP file" },
	{ "II*\0", 4, "a TIFF file" },
	{ "MM\0*", 4, "a TIFF file" },
	{ "P6", 2, "a PPM file" },
	{ "<", 1, "an HTML or XML page" },
	{ "version https://git-lfs", 23, "a Git LFS pointer; fetch the file itself" },
};

enum rfl_rc rfl_jpeg_begin(struct rfl_jpeg *j, const void *data, size_t len, const char *name,
			   int *width, int *height, struct rfl_err *err)
{
	static const uint8_t soi[3] = { 0xFF, 0xD8, 0xFF };
	struct jpeg_decompress_struct *d = &j->decoder;

	snprintf(j->name, sizeof(j->name), "%s", name);
	if (len == 0)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: the file is empty", name);
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		if (len >= others[i].len && memcmp(data, others[i].begins, others[i].len) == 0)
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: not a JPEG file but %s", name,
					others[i].what);
	if (len < sizeof(soi) || memcmp(data, soi, sizeof(soi)) != 0)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: not a JPEG file", name);
	if (setjmp(j->escape)) {
		jpeg_abort_decompress(d);
		return gave_up(j, err);
	}
	jpeg_abort_decompress(d);
	jpeg_mem_src(d, data, (unsigned long)len);
	jpeg_read_header(d, TRUE);
	if ((int64_t)d->image_width * d->image_height > RFL_JPEG_MAX_PIXELS) {
		jpeg_abort_decompress(d);
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: %u x %u pixels exceed the limit of %lld",
				name, d->image_width, d->image_height,
				(long long)RFL_JPEG_MAX_PIXELS);
	}
	if (!has_end(d->src->next_input_byte, d->src->bytes_in_buffer)) {
		jpeg_abort_decompress(d);
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: truncated: no end of image", name);
	}
	*width = (int)d->image_width;
	*height = (int)d->image_height;
	return RFL_OK;
}

/* Calls to libjpeg may longjmp to j->escape. */
static void decode(struct rfl_jpeg *j, const struct rfl_rect *crop, struct rfl_image *out)
{
	struct jpeg_decompress_struct *d = &j->decoder;
	const bool ink = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
	const size_t pixel = ink ? 4 : 3, width = (size_t)crop->width;
	JSAMPROW rows[ROW_BATCH];
	JDIMENSION first, columns;
	int last = crop->x + crop->width + 32;

	d->out_color_space = ink ? JCS_CMYK : JCS_RGB;
	jpeg_start_decompress(d);
	/* Decode the crop with a margin in multiples of the largest MCU, because the colour
	 * interpolation is different at the edge of the decoded part. */
	first = crop->x < 32 ? 0 : (JDIMENSION)(crop->x - 32) / 32 * 32;
	last = last > (int)d->output_width ? (int)d->output_width : last;
	columns = (JDIMENSION)last - first;
	if (columns < d->output_width)
		jpeg_crop_scanline(d, &first, &columns);
	if (crop->y > 0)
		jpeg_skip_scanlines(d, (JDIMENSION)crop->y);
	for (size_t i = 0; i < ROW_BATCH; i++)
		rows[i] = j->rows + i * d->output_width * pixel;
	for (int done = 0; done < crop->height;) {
		const int want = crop->height - done < ROW_BATCH ? crop->height - done : ROW_BATCH;
		const int got = (int)jpeg_read_scanlines(d, rows, (JDIMENSION)want);

		for (int i = 0; i < got; i++, done++) {
			const uint8_t *in = rows[i] + ((size_t)crop->x - first) * pixel;
			uint8_t *to = out->pixels + (size_t)done * width * 3;

			if (!ink) {
				memcpy(to, in, width * 3);
				continue;
			}
			/* 255 is no ink, as in Adobe's files; Pillow assumes this for all files */
			for (size_t x = 0; x < width; x++, in += 4, to += 3)
				for (int c = 0; c < 3; c++)
					to[c] = (uint8_t)(((unsigned)in[c] * in[3] + 127U) / 255U);
		}
	}
}

/* A separate function, so that no variable must survive the longjmp. False: see j->message. */
static RFL_NOINLINE bool decode_guarded(struct rfl_jpeg *j, const struct rfl_rect *crop,
					struct rfl_image *out)
{
	if (setjmp(j->escape))
		return false;
	decode(j, crop, out);
	return true;
}

enum rfl_rc rfl_jpeg_decode(struct rfl_jpeg *j, const struct rfl_rect *crop, struct rfl_image *out,
			    struct rfl_err *err)
{
	struct jpeg_decompress_struct *d = &j->decoder;
	const struct rfl_rect whole = { .width = (int)d->image_width,
					.height = (int)d->image_height };
	enum rfl_rc rc;

	if (!crop)
		crop = &whole;
	rc = rfl_image_reserve(out, crop->width, crop->height, err);
	rfl_reserve(&j->rows, &j->rows_cap, (size_t)d->image_width * 4 * ROW_BATCH);
	if (rc == RFL_OK && !decode_guarded(j, crop, out))
		rc = gave_up(j, err);
	jpeg_abort_decompress(d); /* also skips the rows below the crop */
	return rc;
}
