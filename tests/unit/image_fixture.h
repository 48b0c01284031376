/*
 * image_fixture.h - pictures of the tests: PPM files read, directories of JPEG files made from
 * tests/data/images.
 */
#ifndef RFL_TESTS_IMAGE_FIXTURE_H
#define RFL_TESTS_IMAGE_FIXTURE_H

#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "data/transform.h"

static inline void read_bytes(const char *path, struct rfl_buf *out)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	assert_ok(rfl_file_read(path, out, &err), &err);
}

/* tests/data/images/<name>, P6 with 8 bits. */
static inline struct rfl_image read_ppm(const char *name)
{
	struct rfl_image image = { .pixels = NULL };
	struct rfl_err err = RFL_ERR_INIT;
	int width, height, most, header;
	struct rfl_buf file;
	char path[128];

	snprintf(path, sizeof(path), "images/%s", name);
	read_bytes(data_path(path), &file);
	assert_int_equal(sscanf(file.data, "P6 %d %d %d%n", &width, &height, &most, &header), 3);
	assert_int_equal(most, 255);
	assert_int_equal(file.len, header + 1 + width * height * 3);
	assert_ok(rfl_image_reserve(&image, width, height, &err), &err);
	memcpy(image.pixels, file.data + header + 1, (size_t)width * (size_t)height * 3);
	rfl_buf_fini(&file);
	return image;
}

/* The largest difference between two pictures of one size. */
static inline int worst_difference(const struct rfl_image *a, const struct rfl_image *b)
{
	int worst = 0;

	assert_int_equal(a->width, b->width);
	assert_int_equal(a->height, b->height);
	for (int i = 0; i < a->width * a->height * 3; i++) {
		int d = abs(a->pixels[i] - b->pixels[i]);

		worst = d > worst ? d : worst;
	}
	return worst;
}

/* Put a file of tests/data/images into <dir>/train/<class_name>/<name>, cut to `most` bytes. */
static inline void put_image(const char *dir, const char *class_name, const char *name,
			     const char *source, size_t most)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf file;
	char path[4096];

	snprintf(path, sizeof(path), "images/%s", source);
	read_bytes(data_path(path), &file);
	snprintf(path, sizeof(path), "%s/train/%s/%s", dir, class_name, name);
	assert_ok(rfl_file_mkdirs_for(path, &err), &err);
	assert_ok(rfl_file_create(path, file.data, file.len < most ? file.len : most, &err), &err);
	rfl_buf_fini(&file);
}

/* Three classes, nine good images. */
static inline void make_folder(const char *dir)
{
	static const char *const sources[] = { "jpeg_420.jpg",         "jpeg_422.jpg",
					       "jpeg_wide.jpg",        "jpeg_gray.jpg",
					       "jpeg_cmyk.jpg",        "jpeg_444.jpg",
					       "jpeg_progressive.jpg", "jpeg_wide.jpg",
					       "jpeg_420.jpg" };
	static const char *const classes[] = { "zebra", "Ant", "bee" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(sources); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%zu.%s", 9 - i, i % 2 ? "JPEG" : "jpg");
		put_image(dir, classes[i % 3], name, sources[i], SIZE_MAX);
	}
}

#endif
