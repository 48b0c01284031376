/*
 * records_fixture.h - synthetic files of CIFAR-10 and MNIST: every pixel and label is a
 * formula of its place.
 */
#ifndef RFL_TESTS_RECORDS_FIXTURE_H
#define RFL_TESTS_RECORDS_FIXTURE_H

#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "base/buf.h"
#include "base/file.h"

static inline uint8_t record_pixel(size_t record, size_t place)
{
	return (uint8_t)(record * 31 + place * 7 + place / 32);
}

/* <dir>/data_batch_1.bin to 5, `each` records in a file; the label of record i is i % 10. */
static inline void put_cifar10(const char *dir, size_t each)
{
	for (size_t f = 0; f < 5; f++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_buf b;
		char path[512];

		rfl_buf_init(&b, 0);
		for (size_t i = f * each; i < (f + 1) * each; i++) {
			rfl_buf_putc(&b, (char)(i % 10));
			for (size_t k = 0; k < 3072; k++)
				rfl_buf_putc(&b, (char)record_pixel(i, k));
		}
		snprintf(path, sizeof(path), "%s/data_batch_%zu.bin", dir, f + 1);
		assert_ok(rfl_file_mkdirs_for(path, &err), &err);
		assert_ok(rfl_file_write(path, b.data, b.len, &err), &err);
		rfl_buf_fini(&b);
	}
}

static inline void put_big_endian(struct rfl_buf *b, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		rfl_buf_putc(b, (char)(v >> shift));
}

/* n images of size x size as idx. */
static inline void idx_images(struct rfl_buf *b, uint32_t n, uint32_t size)
{
	rfl_buf_init(b, 0);
	put_big_endian(b, 0x803);
	put_big_endian(b, n);
	put_big_endian(b, size);
	put_big_endian(b, size);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < (size_t)size * size; k++)
			rfl_buf_putc(b, (char)record_pixel(i, k));
}

static inline void idx_labels(struct rfl_buf *b, uint32_t n)
{
	rfl_buf_init(b, 0);
	put_big_endian(b, 0x801);
	put_big_endian(b, n);
	for (size_t i = 0; i < n; i++)
		rfl_buf_putc(b, (char)(i % 10));
}

/* Write a file, gzipped when its name ends so. */
static inline void put_bytes(const char *path, const struct rfl_buf *b)
{
	struct rfl_err err = RFL_ERR_INIT;
	size_t len = strlen(path);

	assert_ok(rfl_file_mkdirs_for(path, &err), &err);
	if (len > 3 && strcmp(path + len - 3, ".gz") == 0) {
		gzFile file = gzopen(path, "wb");

		assert_non_null(file);
		assert_int_equal(gzwrite(file, b->data, (unsigned)b->len), b->len);
		assert_int_equal(gzclose(file), Z_OK);
	} else {
		assert_ok(rfl_file_write(path, b->data, b->len, &err), &err);
	}
}

/* <dir>/<part>-images-idx3-ubyte<suffix> and the labels; part: train or t10k. */
static inline void put_mnist_part(const char *dir, const char *part, uint32_t n, const char *suffix)
{
	struct rfl_buf b;
	char path[512];

	idx_images(&b, n, 28);
	snprintf(path, sizeof(path), "%s/%s-images-idx3-ubyte%s", dir, part, suffix);
	put_bytes(path, &b);
	rfl_buf_fini(&b);
	idx_labels(&b, n);
	snprintf(path, sizeof(path), "%s/%s-labels-idx1-ubyte%s", dir, part, suffix);
	put_bytes(path, &b);
	rfl_buf_fini(&b);
}

static inline void put_mnist(const char *dir, uint32_t n, const char *suffix)
{
	put_mnist_part(dir, "train", n, suffix);
}

#endif
