/*
 * mnist.c - MNIST (LeCun, Cortes, Burges) and whatever is stored like it: idx files of unsigned
 * bytes, gzipped as they are published or not. zlib reads both.
 */
#include "data/records.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "base/file.h"

#define CLASSES   10
#define MAX_BYTES ((int64_t)4 << 30)

/* ---- idx ---- */

/* The reason of zlib for reading no further; NULL: the file just ended. Its texts begin with the
 * path, which the caller names as well. */
static const char *trouble(gzFile file, const char *path)
{
	const size_t len = strlen(path);
	int code;
	const char *text = gzerror(file, &code);

	if (code == Z_OK || code == Z_STREAM_END)
		return NULL;
	if (code == Z_ERRNO)
		return strerror(errno);
	return strncmp(text, path, len) == 0 && strncmp(text + len, ": ", 2) == 0 ? text + len + 2
										  : text;
}

static enum rfl_rc cut_off(gzFile file, const char *path, int64_t at, int64_t wanted,
			   struct rfl_err *err)
{
	const char *why = trouble(file, path);

	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: ends at byte %lld of %lld%s%s: cut off or damaged; get it again", path,
			(long long)at, (long long)wanted, why ? ", " : "", why ? why : "");
}

static uint32_t big_endian(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static enum rfl_rc check_magic(const char *path, uint32_t magic, int ndim, struct rfl_err *err)
{
	const uint32_t wanted = 0x800U + (uint32_t)ndim;

	if (magic == wanted)
		return RFL_OK;
	if (magic == 0x801U || magic == 0x803U)
		return rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s: byte 0: these are %s, where %s belong: the two files have each "
			"other's name",
			path, magic == 0x801U ? "labels" : "images",
			ndim == 1 ? "labels" : "images");
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: byte 0: the magic number is 0x%08x, not 0x%08x: no idx file of %s, "
			"or damaged; get it again",
			path, magic, wanted, ndim == 1 ? "labels" : "images");
}

/* @param bytes  set to the number of values */
static enum rfl_rc read_header(gzFile file, const char *path, int ndim, struct rfl_idx *ret,
			       int64_t *bytes, struct rfl_err *err)
{
	const unsigned size = 4 + 4 * (unsigned)ndim;
	uint8_t header[16];
	int got = gzread(file, header, size);
	enum rfl_rc rc;

	if (got < (int)size)
		return cut_off(file, path, got < 0 ? 0 : got, size, err);
	rc = check_magic(path, big_endian(header), ndim, err);
	if (rc)
		return rc;
	*bytes = 1;
	ret->ndim = ndim;
	for (int d = 0; d < ndim; d++) {
		ret->dim[d] = big_endian(header + 4 + 4 * d);
		if (ret->dim[d] == 0 || ret->dim[d] > MAX_BYTES / *bytes)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: byte %d: %lld %s: damaged; get it again", path,
					4 + 4 * d, (long long)ret->dim[d],
					d == 0 ? "items" : "pixels a side");
		*bytes *= ret->dim[d];
	}
	return RFL_OK;
}

/* In pieces, so that a header cannot ask for memory that the file does not fill. */
static enum rfl_rc read_values(gzFile file, const char *path, int64_t header, int64_t bytes,
			       struct rfl_buf *out, struct rfl_err *err)
{
	int64_t done = 0;

	while (done < bytes) {
		uint8_t part[16384];
		int64_t left = bytes - done;
		unsigned want = left < (int64_t)sizeof(part) ? (unsigned)left : sizeof(part);
		int got = gzread(file, part, want);

		if (got <= 0)
			return cut_off(file, path, header + done, header + bytes, err);
		rfl_buf_append(out, part, (size_t)got);
		done += got;
	}
	return rfl_buf_check(out, path, err);
}

/* Past the last value: nothing more, and the checksum of a gzipped file, which zlib checks when it
 * is asked for what follows. zlib ignores what follows a gzipped file, as gzip does. */
static enum rfl_rc check_end(gzFile file, const char *path, int64_t total, struct rfl_err *err)
{
	uint8_t extra;
	const int got = gzread(file, &extra, 1);
	const char *why = trouble(file, path);

	if (why)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: %s after the last of its %lld bytes: cut off or damaged; get "
				"it again",
				path, why, (long long)total);
	if (got == 0)
		return RFL_OK;
	return rfl_fail(
		err, RFL_EFORMAT, 0,
		"%s: continues after the %lld bytes that its header announces: damaged; get "
		"it again",
		path, (long long)total);
}

enum rfl_rc rfl_idx_read(const char *path, int ndim, struct rfl_idx *ret, struct rfl_buf *values,
			 struct rfl_err *err)
{
	struct rfl_idx idx = { .ndim = ndim };
	gzFile file;
	int64_t bytes = 0;
	enum rfl_rc rc;

	errno = 0;
	file = gzopen(path, "rbe");
	if (!file)
		return errno && errno != ENOMEM
			       ? rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno))
			       : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	rc = read_header(file, path, ndim, &idx, &bytes, err);
	if (rc == RFL_OK && values)
		rc = read_values(file, path, 4 + 4 * ndim, bytes, values, err);
	if (rc == RFL_OK && values)
		rc = check_end(file, path, 4 + 4 * ndim + bytes, err);
	(void)gzclose(file); /* it was only read, and to its end */
	if (rc == RFL_OK)
		*ret = idx;
	return rc;
}

/* ---- MNIST ---- */

static bool find_one(const char *dir, const char *what, int ndim, char *out, size_t size)
{
	static const char *const forms[] = {
		"%s/train-%s-idx%d-ubyte",
		"%s/train-%s-idx%d-ubyte.gz",
		"%s/train-%s.idx%d-ubyte",
		"%s/train-%s.idx%d-ubyte.gz",
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(forms); i++) {
		if ((size_t)snprintf(out, size, forms[i], dir, what, ndim) < size &&
		    rfl_file_exists(out))
			return true;
	}
	snprintf(out, size, forms[0], dir, what, ndim); /* the name to complain of */
	return false;
}

bool rfl_mnist_find(const char *dir, struct rfl_record_files *ret)
{
	static const char *const places[] = { "", "/raw", "/MNIST/raw" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(places); i++) {
		char place[4000];

		if ((size_t)snprintf(place, sizeof(place), "%s%s", dir, places[i]) >= sizeof(place))
			continue;
		if (find_one(place, "images", 3, ret->images, sizeof(ret->images))) {
			(void)find_one(place, "labels", 1, ret->labels, sizeof(ret->labels));
			return true;
		}
	}
	return false;
}

enum rfl_rc rfl_mnist_read(const struct rfl_record_files *files, bool values,
			   struct rfl_records *ret, struct rfl_err *err)
{
	struct rfl_buf *pixel_block = &ret->blocks[0], *label_block = &ret->blocks[1];
	struct rfl_idx images = { .ndim = 0 }, labels = { .ndim = 0 };
	enum rfl_rc rc;

	rfl_buf_init(pixel_block, (size_t)MAX_BYTES);
	rfl_buf_init(label_block, (size_t)MAX_BYTES);
	if (!rfl_file_exists(files->labels))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s is not there (nor with .gz); the images are in %s",
				files->labels, files->images);
	rc = rfl_idx_read(files->images, 3, &images, values ? pixel_block : NULL, err);
	if (rc == RFL_OK)
		rc = rfl_idx_read(files->labels, 1, &labels, values ? label_block : NULL, err);
	if (rc)
		return rc;
	if (images.dim[0] != labels.dim[0])
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: %lld images, but %s has %lld labels: the files do not belong "
				"together",
				files->images, (long long)images.dim[0], files->labels,
				(long long)labels.dim[0]);
	if (images.dim[1] > 4096 || images.dim[2] > 4096)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: byte 8: images of %lld x %lld pixels: damaged; get it again",
				files->images, (long long)images.dim[1], (long long)images.dim[2]);
	for (size_t i = 0; i < label_block->len; i++) {
		const int label = (uint8_t)label_block->data[i];

		if (label >= CLASSES)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: byte %zu: the label of image %zu is %d, not 0 to %d: "
					"damaged, or not MNIST's labels; get it again",
					files->labels, 8 + i, i, label, CLASSES - 1);
	}
	ret->n = (size_t)images.dim[0];
	ret->channels = 1;
	ret->height = (int)images.dim[1];
	ret->width = (int)images.dim[2];
	/* of the 60,000 training images; the numbers of PyTorch's MNIST example */
	ret->scale = (struct rfl_pixel_scale){ .mean = { 0.1307F }, .std = { 0.3081F } };
	ret->pixels = (const uint8_t *)pixel_block->data;
	ret->pixels_step = (size_t)ret->height * (size_t)ret->width;
	ret->labels = (const uint8_t *)label_block->data;
	ret->labels_step = 1;
	return RFL_OK;
}
