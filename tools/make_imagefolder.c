/* make_imagefolder.c - create a directory of textured JPEG files for training. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "data/random.h"
#include "tools/arguments.h"

struct plan {
	const char *dir;
	int64_t classes, images, seed, quality;
	int64_t damaged; /* percentage of damaged files */
	bool odd;        /* also use rare kinds of JPEG and of class names */
};

/* Common sizes in the training set of ImageNet, with their share in percent. */
static const struct {
	int width, height, share;
} sizes[] = {
	{ 500, 375, 36 }, { 375, 500, 14 }, { 500, 333, 12 }, { 333, 500, 7 },  { 500, 334, 4 },
	{ 640, 480, 5 },  { 500, 400, 3 },  { 400, 300, 3 },  { 500, 500, 3 },  { 300, 225, 3 },
	{ 256, 256, 2 },  { 180, 240, 2 },  { 120, 90, 1 },   { 1024, 768, 3 }, { 1600, 1200, 2 },
};

/* A picture consists of layers of smooth noise, from coarse to fine, with a tint per class, and of
 * a few discs with sharp edges. Only additions and multiplications are used, so that the bits are
 * the same on every machine. */
#define LAYERS 5
#define DISCS  6

struct disc {
	float x, y, radius, colour[3];
};

struct picture {
	uint32_t key;
	float tint[3];
	float pitch[LAYERS], strength[LAYERS];
	struct disc discs[DISCS];
};

static float lattice(const struct picture *p, uint32_t layer, uint32_t x, uint32_t y)
{
	uint32_t h = x * 0x9E3779B1U ^ y * 0x85EBCA77U ^ (layer * 0xC2B2AE3DU + p->key);

	h ^= h >> 15;
	h *= 0x2C1B3C6DU;
	h ^= h >> 12;
	h *= 0x297A2D39U;
	h ^= h >> 15;
	return (float)(h >> 8) * 0x1p-23F - 1.0F;
}

/* Interpolate between the four corners of a square in the lattice. */
static float smooth_noise(const struct picture *p, uint32_t layer, float x, float y)
{
	uint32_t ix = (uint32_t)x, iy = (uint32_t)y;
	float fx = x - (float)ix, fy = y - (float)iy, top, bottom;

	fx = fx * fx * (3.0F - 2.0F * fx);
	fy = fy * fy * (3.0F - 2.0F * fy);
	top = lattice(p, layer, ix, iy);
	top += (lattice(p, layer, ix + 1, iy) - top) * fx;
	bottom = lattice(p, layer, ix, iy + 1);
	bottom += (lattice(p, layer, ix + 1, iy + 1) - bottom) * fx;
	return top + (bottom - top) * fy;
}

static void plan_picture(struct picture *p, int64_t class_index, int width, int height,
			 struct rfl_random *random)
{
	static const float pitches[LAYERS] = { 160.0F, 60.0F, 22.0F, 8.0F, 2.5F };
	static const float strengths[LAYERS] = { 50.0F, 36.0F, 24.0F, 16.0F, 12.0F };

	p->key = rfl_random_u32(random);
	for (int c = 0; c < 3; c++)
		p->tint[c] = (float)(64 + (class_index * 53 + c * 89) % 128);
	for (int l = 0; l < LAYERS; l++) {
		p->pitch[l] = 1.0F / pitches[l];
		p->strength[l] = strengths[l] * (float)rfl_random_between(random, 0.5, 1.5);
	}
	for (int d = 0; d < DISCS; d++) {
		p->discs[d].x = (float)rfl_random_between(random, 0, width);
		p->discs[d].y = (float)rfl_random_between(random, 0, height);
		p->discs[d].radius = (float)rfl_random_between(random, 0.03, 0.2) * (float)width;
		for (int c = 0; c < 3; c++)
			p->discs[d].colour[c] = (float)rfl_random_between(random, -70, 70);
	}
}

static void draw_row(const struct picture *p, int y, int width, uint8_t *row)
{
	for (int x = 0; x < width; x++) {
		float grey = 0.0F, colour[3];

		for (int l = 0; l < LAYERS; l++)
			grey += p->strength[l] * smooth_noise(p, (uint32_t)l,
							      (float)x * p->pitch[l],
							      (float)y * p->pitch[l]);
		for (int c = 0; c < 3; c++)
			colour[c] = p->tint[c] + grey;
		for (int d = 0; d < DISCS; d++) {
			const struct disc *disc = &p->discs[d];
			float dx = (float)x - disc->x, dy = (float)y - disc->y;

			if (dx * dx + dy * dy > disc->radius * disc->radius)
				continue;
			for (int c = 0; c < 3; c++)
				colour[c] += disc->colour[c];
		}
		for (int c = 0; c < 3; c++)
			row[3 * x + c] = (uint8_t)fminf(fmaxf(colour[c], 0.0F), 255.0F);
	}
}

struct bytes {
	unsigned char *data;
	unsigned long len;
};

enum { CUT, EMPTY, PNG, HUGE_SIZE, NOISE, DAMAGES };

static void damage(struct bytes *b, int64_t kind)
{
	switch (kind) {
	case CUT:
		b->len = b->len * 3 / 5;
		break;
	case EMPTY:
		b->len = 0;
		break;
	case PNG:
		memcpy(b->data, "\x89PNG\r\n\x1a\n", 8);
		break;
	case HUGE_SIZE: /* the header of a huge picture with the data of a small one */
		for (unsigned long i = 2; i + 9 < b->len; i++)
			if (b->data[i] == 0xFF &&
			    (b->data[i + 1] == 0xC0 || b->data[i + 1] == 0xC2)) {
				memset(b->data + i + 5, 0xFE, 4);
				break;
			}
		break;
	default: /* NOISE */
		for (unsigned long i = 0; i < b->len; i++)
			b->data[i] = (unsigned char)(i * 2654435761U >> 13);
	}
}

enum form { PLAIN, GREY, PROGRESSIVE, CMYK, FULL_COLOUR, FORMS };

/* On an error, the default handler of libjpeg ends the program with a message. */
static void encode(const struct picture *p, int width, int height, int quality, enum form form,
		   struct bytes *ret)
{
	struct jpeg_compress_struct encoder;
	struct jpeg_error_mgr manager;
	uint8_t *row = rfl_alloc_array((size_t)width, 4);
	JSAMPROW rows[1] = { row };

	encoder.err = jpeg_std_error(&manager);
	jpeg_create_compress(&encoder);
	jpeg_mem_dest(&encoder, &ret->data, &ret->len);
	encoder.image_width = (JDIMENSION)width;
	encoder.image_height = (JDIMENSION)height;
	encoder.input_components = form == CMYK ? 4 : 3;
	encoder.in_color_space = form == CMYK ? JCS_CMYK : JCS_RGB;
	jpeg_set_defaults(&encoder);
	jpeg_set_quality(&encoder, quality, TRUE);
	encoder.dct_method = JDCT_ISLOW;
	if (form == GREY)
		jpeg_set_colorspace(&encoder, JCS_GRAYSCALE);
	if (form == PROGRESSIVE)
		jpeg_simple_progression(&encoder);
	if (form == FULL_COLOUR)
		encoder.comp_info[0].h_samp_factor = encoder.comp_info[0].v_samp_factor = 1;
	jpeg_start_compress(&encoder, TRUE);
	for (int y = 0; y < height; y++) {
		draw_row(p, y, width, row);
		/* Convert in place, from the last pixel, to the inverted CMYK of Adobe (255 means
		 * no ink) without black. */
		for (int x = width - 1; form == CMYK && x >= 0; x--) {
			memmove(row + 4 * x, row + 3 * x, 3);
			row[4 * x + 3] = 255;
		}
		jpeg_write_scanlines(&encoder, rows, 1);
	}
	jpeg_finish_compress(&encoder);
	jpeg_destroy_compress(&encoder);
	free(row);
}

static enum rfl_rc make_one(const struct plan *plan, int64_t class_index, int64_t image,
			    struct rfl_err *err)
{
	/* with --odd, the first two classes have valid but unusual names */
	static const char *const names[] = { "class_%03lld", "class %03lld, with spaces",
					     "class_\xff\xfe_%03lld" };
	const char *name = names[plan->odd && class_index < 2 ? class_index + 1 : 0];
	const enum form form = plan->odd ? (enum form)(image % FORMS) : PLAIN;
	const int64_t k = class_index * plan->images + image;
	const int64_t damaged = k * plan->damaged / 100; /* earlier damaged files */
	struct bytes bytes = { .data = NULL };
	struct rfl_random random;
	struct picture picture;
	char path[4096], class_name[64];
	size_t size = 0;
	enum rfl_rc rc;
	int at;

	rfl_random_init(&random, (uint64_t)plan->seed, (uint32_t)class_index, (uint64_t)image);
	at = (int)rfl_random_below(&random, 100);
	while (size + 1 < RFL_ARRAY_LEN(sizes) && at >= sizes[size].share)
		at -= sizes[size++].share;
	plan_picture(&picture, class_index, sizes[size].width, sizes[size].height, &random);
	snprintf(class_name, sizeof(class_name), name, (long long)class_index);
	snprintf(path, sizeof(path), "%s/train/%s/image_%05lld.jpg", plan->dir, class_name,
		 (long long)image);
	encode(&picture, sizes[size].width, sizes[size].height, (int)plan->quality, form, &bytes);
	/* distribute damaged files evenly */
	if ((k + 1) * plan->damaged / 100 > damaged)
		damage(&bytes, damaged % DAMAGES);
	rc = rfl_file_mkdirs_for(path, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, bytes.data, bytes.len, err);
	free(bytes.data);
	return rc;
}

int main(int argc, char **argv)
{
	struct plan plan = { .classes = 10, .images = 24, .seed = 1, .quality = 90 };
	const struct tool_option options[] = {
		{ "classes", "directories", &plan.classes, 1, 1000, NULL },
		{ "images", "files in each directory", &plan.images, 1, 100000, NULL },
		{ "seed", "random seed", &plan.seed, 0, INT64_MAX, NULL },
		{ "quality", "quality of the JPEG encoder", &plan.quality, 1, 100, NULL },
		{ "damaged", "percentage of truncated, empty, PNG, too large or noisy files",
		  &plan.damaged, 0, 100, NULL },
		{ .name = "odd",
		  .help = "include grey, progressive, CMYK and 4:4:4 files, and directory names "
			  "with spaces and with bytes that are not UTF-8",
		  .flag = &plan.odd },
		{ .name = NULL },
	};
	struct rfl_err err = RFL_ERR_INIT;
	int code;

	plan.dir = tool_arguments(argc, argv, "make_imagefolder",
				  "Creates textured JPEG files DIR/train/class_<c>/image_<i>.jpg "
				  "in the sizes of photographs.",
				  options, &code);
	if (!plan.dir)
		return code;
	for (int64_t c = 0; c < plan.classes; c++)
		for (int64_t i = 0; i < plan.images; i++)
			if (make_one(&plan, c, i, &err)) {
				fprintf(stderr, "make_imagefolder: %s\n", err.msg);
				return 1;
			}
	return 0;
}
