/*
 * make_digits.c - create a data set of digits in the files of MNIST, for training runs without a
 * download: digits in several fonts, rotated, scaled, sheared, shifted, of different thickness and
 * with noise. The fonts are the machine's, so the images differ between machines.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairo.h>

#include "base/buf.h"
#include "base/file.h"
#include "data/random.h"
#include "tools/arguments.h"

#define SIDE 28

struct plan {
	const char *dir;
	int64_t train, test, seed, noise;
};

static const char *const families[] = { "DejaVu Sans", "DejaVu Serif", "DejaVu Sans Mono",
					"sans-serif",  "serif",        "monospace" };

static void draw(cairo_t *cr, int digit, struct rfl_random *random)
{
	const char text[2] = { (char)('0' + digit), '\0' };
	const char *family = families[rfl_random_below(random, RFL_ARRAY_LEN(families))];
	const double angle = rfl_random_between(random, -0.3, 0.3);
	const double size = rfl_random_between(random, 19, 25);
	const double wide = rfl_random_between(random, 0.75, 1.2);
	const double lean = rfl_random_between(random, -0.3, 0.3);
	const double x = rfl_random_between(random, -2.5, 2.5);
	const double y = rfl_random_between(random, -2.5, 2.5);
	const double thick = rfl_random_between(random, 0, 1.4);
	const cairo_matrix_t shear = { 1, 0, lean, 1, 0, 0 };
	cairo_text_extents_t box;

	cairo_identity_matrix(cr);
	cairo_set_source_rgb(cr, 0, 0, 0);
	cairo_paint(cr);
	cairo_select_font_face(
		cr, family,
		rfl_random_below(random, 3) ? CAIRO_FONT_SLANT_NORMAL : CAIRO_FONT_SLANT_ITALIC,
		rfl_random_below(random, 3) ? CAIRO_FONT_WEIGHT_NORMAL : CAIRO_FONT_WEIGHT_BOLD);
	cairo_set_font_size(cr, size);
	cairo_translate(cr, SIDE / 2.0 + x, SIDE / 2.0 + y);
	cairo_rotate(cr, angle);
	cairo_transform(cr, &shear);
	cairo_scale(cr, wide, 1);
	cairo_text_extents(cr, text, &box);
	cairo_move_to(cr, -box.x_bearing - box.width / 2, -box.y_bearing - box.height / 2);
	cairo_text_path(cr, text);
	cairo_set_source_rgb(cr, 1, 1, 1);
	cairo_fill_preserve(cr);
	cairo_set_line_width(cr, thick);
	cairo_stroke(cr);
}

/* Append an image with noise. */
static void put(const cairo_surface_t *picture, int64_t noise, struct rfl_random *random,
		struct rfl_buf *out)
{
	cairo_surface_t *s = (cairo_surface_t *)(uintptr_t)picture;
	const uint8_t *data = cairo_image_surface_get_data(s);
	const size_t stride = (size_t)cairo_image_surface_get_stride(s);
	const double brightness = rfl_random_between(random, 0.6, 1);

	for (size_t y = 0; y < SIDE; y++)
		for (size_t x = 0; x < SIDE; x++) {
			uint32_t pixel;
			double value;

			memcpy(&pixel, data + y * stride + 4 * x, sizeof(pixel));
			value = (pixel & 0xff) * brightness +
				rfl_random_between(random, -1, 1) * (double)noise;
			rfl_buf_putc(out, (char)(uint8_t)fmin(fmax(value, 0), 255));
		}
}

static void put_number(struct rfl_buf *out, uint32_t n)
{
	const unsigned char bytes[4] = { (unsigned char)(n >> 24), (unsigned char)(n >> 16),
					 (unsigned char)(n >> 8), (unsigned char)n };

	rfl_buf_append(out, bytes, sizeof(bytes));
}

static enum rfl_rc save(const char *dir, const char *name, const struct rfl_buf *data,
			struct rfl_err *err)
{
	char *path = rfl_path_join(dir, name);
	enum rfl_rc rc = rfl_buf_check(data, name, err);

	if (rc == RFL_OK)
		rc = rfl_file_write(path, data->data, data->len, err);
	free(path);
	return rc;
}

/* @param part  0: the training set; 1: the test set */
static enum rfl_rc make(const struct plan *plan, uint32_t part, struct rfl_err *err)
{
	static const char *const names[2][2] = {
		{ "train-images-idx3-ubyte", "train-labels-idx1-ubyte" },
		{ "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" },
	};
	const int64_t n = part ? plan->test : plan->train;
	cairo_surface_t *picture = cairo_image_surface_create(CAIRO_FORMAT_RGB24, SIDE, SIDE);
	cairo_t *cr = cairo_create(picture);
	struct rfl_buf images, labels;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&images, (size_t)1 << 32);
	rfl_buf_init(&labels, 0);
	put_number(&images, 0x803);
	put_number(&images, (uint32_t)n);
	put_number(&images, SIDE);
	put_number(&images, SIDE);
	put_number(&labels, 0x801);
	put_number(&labels, (uint32_t)n);
	for (int64_t i = 0; i < n; i++) {
		struct rfl_random random;
		int digit;

		rfl_random_init(&random, (uint64_t)plan->seed, part, (uint64_t)i);
		digit = (int)rfl_random_below(&random, 10);
		draw(cr, digit, &random);
		cairo_surface_flush(picture);
		put(picture, plan->noise, &random, &images);
		rfl_buf_putc(&labels, (char)digit);
	}
	if (cairo_status(cr) != CAIRO_STATUS_SUCCESS)
		rc = rfl_fail(err, RFL_EFAILED, 0, "cairo: %s",
			      cairo_status_to_string(cairo_status(cr)));
	if (rc == RFL_OK && (rc = save(plan->dir, names[part][0], &images, err)) == RFL_OK)
		rc = save(plan->dir, names[part][1], &labels, err);
	rfl_buf_fini(&images);
	rfl_buf_fini(&labels);
	cairo_destroy(cr);
	cairo_surface_destroy(picture);
	return rc;
}

int main(int argc, char **argv)
{
	struct plan plan = { .train = 60000, .test = 10000, .seed = 1, .noise = 30 };
	const struct tool_option options[] = {
		{ "train", "training images", &plan.train, 1, 1000000, NULL },
		{ "test", "test images", &plan.test, 1, 1000000, NULL },
		{ "seed", "random seed", &plan.seed, 0, INT64_MAX, NULL },
		{ "noise", "largest change of a pixel", &plan.noise, 0, 255, NULL },
		{ .name = NULL },
	};
	struct rfl_err err = RFL_ERR_INIT;
	int code;

	plan.dir = tool_arguments(argc, argv, "make_digits",
				  "Creates the four files of MNIST with digits in several fonts, "
				  "distorted at random.",
				  options, &code);
	if (!plan.dir)
		return code;
	if (rfl_file_mkdirs(plan.dir, &err) || make(&plan, 0, &err) || make(&plan, 1, &err)) {
		fprintf(stderr, "make_digits: %s\n", err.msg);
		return 1;
	}
	printf("%s: wrote %" PRId64 " training and %" PRId64 " test images\n", plan.dir, plan.train,
	       plan.test);
	return 0;
}
