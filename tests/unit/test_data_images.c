/*
 * Decoding, resizing and cropping against pictures that Pillow made.
 */
#include "tests/unit/image_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "data/jpeg.h"
#include "data/random.h"

/* All of the source to width x height, of which the window at (left, top) as large as `got`. */
static void resize(struct rfl_resizer *r, const struct rfl_image *source, int width, int height,
		   int left, int top, struct rfl_image *got)
{
	const struct rfl_rect whole = { .width = source->width, .height = source->height };
	const struct rfl_view view = { .crop = whole,
				       .needed = whole,
				       .scaled_width = width,
				       .scaled_height = height,
				       .left = left,
				       .top = top,
				       .width = got->width,
				       .height = got->height };
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_resize(r, source, &view, RFL_LAYOUT_NHWC, got->pixels, &err), &err);
}

static void resize_is_pillows(void **state)
{
	static const struct {
		int width, height, tolerance;
	} sizes[] = {
		{ 16, 16, 0 }, { 53, 41, 0 }, { 37, 12, 0 }, { 12, 29, 0 },
		{ 5, 3, 0 },   { 80, 7, 1 }, /* the newest Pillow takes the vertical pass first
						here; older ones never */
	};
	struct rfl_image source = read_ppm("resize_37x29.ppm"), got = { .pixels = NULL };
	struct rfl_resizer resizer = { .row = NULL };
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++) {
		int width = sizes[i].width, height = sizes[i].height;
		struct rfl_image want;
		char name[64];

		snprintf(name, sizeof(name), "resize_37x29_to_%dx%d.ppm", width, height);
		want = read_ppm(name);
		assert_ok(rfl_image_reserve(&got, width, height, &err), &err);
		resize(&resizer, &source, width, height, 0, 0, &got);
		assert_in_range(worst_difference(&got, &want), 0, sizes[i].tolerance);
		rfl_image_fini(&want);
	}
	rfl_image_fini(&got);
	rfl_image_fini(&source);
	rfl_resizer_fini(&resizer);
}

/* A window of the result is that part of the whole result. */
static void windows_are_parts_of_the_whole(void **state)
{
	struct rfl_image source = read_ppm("resize_37x29.ppm"), whole = { .pixels = NULL },
			 part = { .pixels = NULL };
	struct rfl_resizer resizer = { .row = NULL };
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_image_reserve(&whole, 53, 41, &err), &err);
	resize(&resizer, &source, 53, 41, 0, 0, &whole);
	assert_ok(rfl_image_reserve(&part, 20, 10, &err), &err);
	resize(&resizer, &source, 53, 41, 33, 31, &part);
	for (int y = 0; y < 10; y++)
		assert_memory_equal(part.pixels + (size_t)y * 60,
				    whole.pixels + ((size_t)(y + 31) * 53 + 33) * 3, 60);
	/* the same where nothing is resized */
	resize(&resizer, &source, 37, 29, 17, 19, &part);
	assert_memory_equal(part.pixels, source.pixels + (19 * 37 + 17) * 3, 60);
	rfl_image_fini(&source);
	rfl_image_fini(&whole);
	rfl_image_fini(&part);
	rfl_resizer_fini(&resizer);
}

/* ---- JPEG ---- */

static struct rfl_jpeg *new_decoder(void)
{
	struct rfl_jpeg *j = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_jpeg_new(&j, &err) == RFL_EUNAVAILABLE) {
		print_message("%s\n", err.msg);
		skip();
	}
	assert_non_null(j);
	return j;
}

static void decode(struct rfl_jpeg *j, const struct rfl_buf *file, const struct rfl_rect *crop,
		   struct rfl_image *ret)
{
	struct rfl_err err = RFL_ERR_INIT;
	int width, height;

	assert_ok(rfl_jpeg_begin(j, file->data, file->len, "test", &width, &height, &err), &err);
	assert_ok(rfl_jpeg_decode(j, crop, ret, &err), &err);
}

static void decodes_as_pillow_does(void **state)
{
	static const char *const names[] = { "420", "422", "444", "progressive", "gray", "cmyk" };
	struct rfl_jpeg *j = new_decoder();
	struct rfl_image got = { .pixels = NULL };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		char name[64], path[64];
		struct rfl_image want;
		struct rfl_buf file;

		snprintf(name, sizeof(name), "jpeg_%s.ppm", names[i]);
		snprintf(path, sizeof(path), "images/jpeg_%s.jpg", names[i]);
		want = read_ppm(name);
		read_bytes(data_path(path), &file);
		decode(j, &file, NULL, &got);
		if (worst_difference(&got, &want) > 1)
			fail_msg("%s: differs by %d", names[i], worst_difference(&got, &want));
		rfl_image_fini(&want);
		rfl_buf_fini(&file);
	}
	rfl_image_fini(&got);
	rfl_jpeg_free(j);
}

/* Without Adobe's marker, which says that 255 is no ink, it is taken to be so, as Pillow does. */
static void cmyk_needs_no_marker(void **state)
{
	static const char marker[] = "\xFF\xEE\0\x0E"
				     "Adobe";
	struct rfl_jpeg *j = new_decoder();
	struct rfl_image with = { .pixels = NULL }, without = { .pixels = NULL };
	struct rfl_buf file;
	size_t at = 0;

	(void)state;
	read_bytes(data_path("images/jpeg_cmyk.jpg"), &file);
	decode(j, &file, NULL, &with);
	while (at + 16 < file.len && memcmp(file.data + at, marker, sizeof(marker) - 1) != 0)
		at++;
	assert_true(at + 16 < file.len);
	memmove(file.data + at, file.data + at + 16, file.len - at - 16);
	file.len -= 16;
	decode(j, &file, NULL, &without);
	assert_int_equal(worst_difference(&with, &without), 0);
	rfl_image_fini(&with);
	rfl_image_fini(&without);
	rfl_buf_fini(&file);
	rfl_jpeg_free(j);
}

static void crops_are_parts_of_the_whole(void **state)
{
	static const char *const names[] = { "wide",        "420",  "422", "444",
					     "progressive", "gray", "cmyk" };
	struct rfl_jpeg *j = new_decoder();
	struct rfl_image whole = { .pixels = NULL }, part = { .pixels = NULL };
	struct rfl_random random;

	(void)state;
	rfl_random_init(&random, 3, 0, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		struct rfl_buf file;
		char path[64];

		snprintf(path, sizeof(path), "images/jpeg_%s.jpg", names[i]);
		read_bytes(data_path(path), &file);
		decode(j, &file, NULL, &whole);
		for (int k = 0; k < 60; k++) {
			struct rfl_view v;

			rfl_view_random(whole.width, whole.height, 8, &random, &v);
			decode(j, &file, &v.crop, &part);
			assert_int_equal(part.width, v.crop.width);
			for (int y = 0; y < v.crop.height; y++) {
				size_t at = (size_t)(v.crop.y + y) * (size_t)whole.width +
					    (size_t)v.crop.x;

				assert_memory_equal(part.pixels +
							    (size_t)y * (size_t)part.width * 3,
						    whole.pixels + at * 3, (size_t)part.width * 3);
			}
		}
		rfl_buf_fini(&file);
	}
	rfl_image_fini(&whole);
	rfl_image_fini(&part);
	rfl_jpeg_free(j);
}

static void bad_files_are_refused_by_name(void **state)
{
	static const uint8_t huge[] = { 0xFF, 0xD8, 0xFF, 0xC0, 0,    11, 8,    0xEA, 0x60,
					0xEA, 0x60, 1,    1,    0x11, 0,  0xFF, 0xDA, 0,
					8,    1,    1,    0,    0,    63, 0,    0xFF, 0xD9 };
	struct rfl_jpeg *j = new_decoder();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf file;
	int width = -7, height = -7;

	(void)state;
	read_bytes(data_path("images/jpeg_420.jpg"), &file);
	for (size_t len = 0; len + 1 < file.len; len += len < 1000 ? 1 : 97) {
		rfl_err_clear(&err);
		assert_int_equal(
			rfl_jpeg_begin(j, file.data, len, "cut.jpg", &width, &height, &err),
			RFL_EFORMAT);
		assert_says(&err, "cut.jpg: ");
	}
	assert_int_equal(width, -7);
	rfl_err_clear(&err);
	assert_int_equal(rfl_jpeg_begin(j, "\x89PNG\r\n\x1a\n", 8, "p.jpg", &width, &height, &err),
			 RFL_EFORMAT);
	assert_says(&err, "p.jpg: not a JPEG file");
	rfl_err_clear(&err);
	assert_int_equal(rfl_jpeg_begin(j, huge, sizeof(huge), "h.jpg", &width, &height, &err),
			 RFL_EFORMAT);
	assert_says(&err, "60000 x 60000 pixels");
	/* a decoder that has refused a file decodes the next one */
	rfl_err_clear(&err);
	assert_ok(rfl_jpeg_begin(j, file.data, file.len, "ok.jpg", &width, &height, &err), &err);
	assert_int_equal(width, 101);
	assert_int_equal(height, 77);
	rfl_buf_fini(&file);
	rfl_jpeg_free(j);
}

/* Bytes changed anywhere: an error or a picture, never a crash. */
static void damaged_data_does_no_harm(void **state)
{
	struct rfl_jpeg *j = new_decoder();
	struct rfl_image image = { .pixels = NULL };
	struct rfl_random random;
	struct rfl_buf file;
	int refused = 0;

	(void)state;
	read_bytes(data_path("images/jpeg_progressive.jpg"), &file);
	rfl_random_init(&random, 11, 0, 0);
	for (int i = 0; i < 400; i++) {
		struct rfl_err err = RFL_ERR_INIT;
		size_t at = rfl_random_below(&random, (uint32_t)file.len);
		char old = file.data[at];
		int width, height;

		file.data[at] = (char)rfl_random_u32(&random);
		if (rfl_jpeg_begin(j, file.data, file.len, "x", &width, &height, &err) ||
		    rfl_jpeg_decode(j, NULL, &image, &err))
			refused++;
		file.data[at] = old;
	}
	assert_in_range(refused, 1, 399);
	rfl_image_fini(&image);
	rfl_buf_fini(&file);
	rfl_jpeg_free(j);
}

/* ---- views ---- */

static void cut_out(const struct rfl_image *whole, const struct rfl_rect *rect,
		    struct rfl_image *part)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_image_reserve(part, rect->width, rect->height, &err), &err);
	for (int y = 0; y < rect->height; y++)
		memcpy(part->pixels + (size_t)y * (size_t)rect->width * 3,
		       whole->pixels +
			       ((size_t)(rect->y + y) * (size_t)whole->width + (size_t)rect->x) * 3,
		       (size_t)rect->width * 3);
}

static void centre_view_is_torchvisions(void **state)
{
	struct rfl_image source = read_ppm("jpeg_420.ppm"), want = read_ppm("centre_28.ppm");
	struct rfl_image got = { .pixels = NULL }, part = { .pixels = NULL };
	struct rfl_resizer resizer = { .row = NULL };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_view v;

	(void)state;
	rfl_view_centre(source.width, source.height, 28, &v);
	assert_false(v.flip);
	assert_ok(rfl_image_reserve(&got, 28, 28, &err), &err);
	assert_true(v.needed.width < source.width && v.needed.height < source.height);
	cut_out(&source, &v.needed, &part);
	assert_ok(rfl_resize(&resizer, &part, &v, RFL_LAYOUT_NHWC, got.pixels, &err), &err);
	assert_int_equal(worst_difference(&got, &want), 0);

	rfl_view_centre(500, 375, 224, &v);
	assert_int_equal(v.scaled_width, 341);
	assert_int_equal(v.scaled_height, 256);
	assert_int_equal(v.left, 58); /* 58.5 to even */
	assert_int_equal(v.top, 16);
	rfl_view_centre(1, 60000, 224, &v);
	assert_int_equal(v.scaled_width, 256);
	assert_int_equal(v.scaled_height, 15360000);
	rfl_image_fini(&source);
	rfl_image_fini(&want);
	rfl_image_fini(&got);
	rfl_image_fini(&part);
	rfl_resizer_fini(&resizer);
}

static void random_views_have_the_stated_shape(void **state)
{
	double area_low = 1, area_high = 0, aspect_low = 10, aspect_high = 0;
	int flips = 0, n = 4000;

	(void)state;
	for (int i = 0; i < n; i++) {
		struct rfl_random random;
		struct rfl_view v;
		double area, aspect;

		rfl_random_init(&random, 5, 0, (uint64_t)i);
		rfl_view_random(500, 375, 224, &random, &v);
		assert_true(v.crop.x >= 0 && v.crop.y >= 0);
		assert_true(v.crop.x + v.crop.width <= 500 && v.crop.y + v.crop.height <= 375);
		assert_true(v.scaled_width == 224 && v.scaled_height == 224 && !v.left && !v.top);
		area = v.crop.width * v.crop.height / (500.0 * 375.0);
		aspect = v.crop.width / (double)v.crop.height;
		area_low = fmin(area_low, area);
		area_high = fmax(area_high, area);
		aspect_low = fmin(aspect_low, aspect);
		aspect_high = fmax(aspect_high, aspect);
		flips += v.flip;
	}
	assert_true(area_low > 0.078 && area_low < 0.1 && area_high > 0.9 && area_high <= 1.0);
	assert_true(aspect_low > 0.74 && aspect_low < 0.77);
	assert_true(aspect_high > 1.3 && aspect_high < 1.35);
	assert_in_range(flips, n / 2 - 150, n / 2 + 150);
}

/* Nothing of the allowed aspect fits into a line: the middle of it is taken. */
static void impossible_crops_fall_back_to_the_centre(void **state)
{
	struct rfl_random random;
	struct rfl_view v;

	(void)state;
	rfl_random_init(&random, 1, 0, 0);
	rfl_view_random(2000, 3, 224, &random, &v);
	assert_int_equal(v.crop.width, 4);
	assert_int_equal(v.crop.height, 3);
	assert_int_equal(v.crop.x, 998);
	rfl_random_init(&random, 1, 0, 0);
	rfl_view_random(1, 1, 224, &random, &v);
	assert_true(v.crop.width == 1 && v.crop.height == 1);
}

static void crop_resize_flip_is_pillows(void **state)
{
	const struct rfl_view view = {
		.crop = { .x = 31, .y = 17, .width = 53, .height = 40 },
		.needed = { .x = 31, .y = 17, .width = 53, .height = 40 },
		.scaled_width = 24,
		.scaled_height = 24,
		.width = 24,
		.height = 24,
		.flip = true,
	};
	struct rfl_image want = read_ppm("crop_flip_24.ppm"), part = { .pixels = NULL };
	static uint8_t nchw[3 * 24 * 24], nhwc[3 * 24 * 24];
	struct rfl_resizer resizer = { .row = NULL };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_jpeg *j = new_decoder();
	struct rfl_buf file;

	(void)state;
	read_bytes(data_path("images/jpeg_420.jpg"), &file);
	decode(j, &file, &view.crop, &part);
	assert_ok(rfl_resize(&resizer, &part, &view, RFL_LAYOUT_NCHW, nchw, &err), &err);
	assert_ok(rfl_resize(&resizer, &part, &view, RFL_LAYOUT_NHWC, nhwc, &err), &err);
	for (int i = 0; i < 24 * 24; i++) {
		for (int c = 0; c < 3; c++) {
			assert_in_range(abs(nhwc[3 * i + c] - want.pixels[3 * i + c]), 0, 1);
			assert_int_equal(nchw[c * 24 * 24 + i], nhwc[3 * i + c]);
		}
	}
	rfl_image_fini(&want);
	rfl_image_fini(&part);
	rfl_resizer_fini(&resizer);
	rfl_buf_fini(&file);
	rfl_jpeg_free(j);
}

/* Sums in 64 bits, and the loops for every instruction set that this CPU has. */
static void rows_are_the_same_everywhere(void **state)
{
	static const size_t lengths[] = { 1, 3, 63, 64, 65, 100, 128, 672, 897 };
	static uint8_t in[7 * 1000], want[1000], got[3000];
	struct rfl_random random;

	(void)state;
	rfl_random_init(&random, 23, 0, 0);
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = i < 2000 ? 255 : (uint8_t)rfl_random_u32(&random);
	for (size_t v = 0; rfl_rows_at(v); v++) {
		for (size_t k = 0; k < RFL_ARRAY_LEN(lengths); k++) {
			const int32_t weights[] = { 1 << 19, 1 << 20, (1 << 21) + (1 << 19) + 9, 0,
						    77 };
			size_t n = lengths[k];

			for (size_t x = 0; x < n; x++) {
				int64_t sum = 1 << (RFL_WEIGHT_BITS - 1);

				for (size_t i = 0; i < 5; i++)
					sum += (int64_t)in[i * 1000 + x] * weights[i];
				want[x] = (uint8_t)(sum >> RFL_WEIGHT_BITS > 255
							    ? 255
							    : sum >> RFL_WEIGHT_BITS);
			}
			rfl_rows_at(v)->sum(in, 1000, weights, 5, n, got);
			assert_memory_equal(got, want, n);
			rfl_rows_at(v)->split(in + 1990, n, 1000, got);
			for (size_t i = 0; i < 3 * n; i++)
				assert_int_equal(got[i % 3 * 1000 + i / 3], in[1990 + i]);
		}
	}
}

/* ---- random numbers ---- */

/* The known answers that come with Random123, the reference implementation. */
static void philox_gives_the_known_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} known[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
		  { 0xffffffff, 0xffffffff },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(known); i++) {
		uint32_t out[4];

		rfl_philox(known[i].key, known[i].counter, out);
		assert_memory_equal(out, known[i].out, sizeof(out));
	}
}

static void orders_are_permutations(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 3, 10, 16, 17, 240, 1000, 4097 };
	static uint8_t seen[4097];

	(void)state;
	for (size_t s = 0; s < RFL_ARRAY_LEN(sizes); s++) {
		uint64_t n = sizes[s], moved = 0;

		memset(seen, 0, sizeof(seen));
		for (uint64_t i = 0; i < n; i++) {
			uint64_t to = rfl_random_permute(42, 1, n, i);

			assert_true(to < n);
			assert_int_equal(seen[to]++, 0);
			moved += to != rfl_random_permute(42, 2, n, i);
		}
		assert_true(n < 100 || moved > n * 9 / 10); /* another epoch, another order */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resize_is_pillows),
		cmocka_unit_test(windows_are_parts_of_the_whole),
		cmocka_unit_test(decodes_as_pillow_does),
		cmocka_unit_test(cmyk_needs_no_marker),
		cmocka_unit_test(crops_are_parts_of_the_whole),
		cmocka_unit_test(bad_files_are_refused_by_name),
		cmocka_unit_test(damaged_data_does_no_harm),
		cmocka_unit_test(centre_view_is_torchvisions),
		cmocka_unit_test(random_views_have_the_stated_shape),
		cmocka_unit_test(impossible_crops_fall_back_to_the_centre),
		cmocka_unit_test(crop_resize_flip_is_pillows),
		cmocka_unit_test(rows_are_the_same_everywhere),
		cmocka_unit_test(philox_gives_the_known_answers),
		cmocka_unit_test(orders_are_permutations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
