/*
 * records.c - small images in memory as samples. The binary version of CIFAR-10 (Krizhevsky,
 * "Learning multiple layers of features from tiny images", 2009) has five files of 10,000 records,
 * each a label and the red, green and blue planes of 32 x 32 pixels. MNIST (LeCun, Cortes, Burges)
 * and similar data sets are idx files of unsigned bytes, gzipped or not.
 */
#include "data/parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"

#define CLASSES           10
#define CIFAR10_FILES     5
#define CIFAR10_MAX_BYTES ((size_t)1 << 30) /* per file; the original files have 30,730,000 */
#define IDX_MAX_BYTES     ((int64_t)4 << 30)

#define GET_IT "unpack %s from cifar-10-binary.tar.gz"

/* Images of one size, each with a label and consecutive planes of channels. */
struct records {
	struct rfl_samples base;
	int channels, height, width;
	int pad;         /* augmentation: black border, then a random crop of the original size */
	bool flip;       /* augmentation: flip half of the images */
	double rotation; /* augmentation: largest angle in degrees; 0: crop instead */
	bool augment;
	struct rfl_pixel_scale scale;
	const uint8_t *pixels, *labels; /* data of the first image, inside the blocks */
	size_t pixels_step, labels_step;
	struct rfl_buf blocks[2];
};

/* Paths of a set. CIFAR-10: images is the directory of its files. */
struct files {
	char images[4096], labels[4096];
};

/* ---- CIFAR-10 ---- */

static void batch_path(const char *dir, bool test, int i, char out[4200])
{
	if (test)
		snprintf(out, 4200, "%s/test_batch.bin", dir);
	else
		snprintf(out, 4200, "%s/data_batch_%d.bin", dir, i + 1);
}

static bool find_cifar10(const char *dir, bool test, struct files *ret)
{
	static const char *const places[] = { "", "/cifar-10-batches-bin" };
	char path[4200];

	for (size_t p = 0; p < RFL_ARRAY_LEN(places); p++) {
		if ((size_t)snprintf(ret->images, sizeof(ret->images), "%s%s", dir, places[p]) >=
		    sizeof(ret->images))
			continue;
		for (int i = 0; i < CIFAR10_FILES; i++) {
			batch_path(ret->images, test, i, path);
			if (rfl_file_exists(path))
				return true;
		}
	}
	return false;
}

static enum rfl_rc check_size(const char *path, uint64_t bytes, struct rfl_err *err)
{
	if (bytes > 0 && bytes <= CIFAR10_MAX_BYTES && bytes % RFL_CIFAR10_RECORD == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: %llu bytes are not a multiple of %d (a label and 3 x 32 x 32 pixels): "
			"truncated, or not CIFAR-10's binary version; download it again",
			path, (unsigned long long)bytes, RFL_CIFAR10_RECORD);
}

enum rfl_rc rfl_cifar10_check_records(const char *name, const void *data, size_t len,
				      struct rfl_err *err)
{
	const uint8_t *bytes = data;
	enum rfl_rc rc = check_size(name, len, err);

	for (size_t at = 0; rc == RFL_OK && at < len; at += RFL_CIFAR10_RECORD) {
		if (bytes[at] >= CLASSES)
			rc = rfl_fail(
				err, RFL_EFORMAT, 0,
				"%s: byte %zu: the label of record %zu is %d, not 0 to %d: "
				"damaged, or not CIFAR-10's binary version; download it again",
				name, at, at / RFL_CIFAR10_RECORD, bytes[at], CLASSES - 1);
	}
	return rc;
}

/* @param values  false: check only the sizes of the files */
static enum rfl_rc read_cifar10(const struct files *files, bool test, bool values,
				struct records *r, struct rfl_err *err)
{
	struct rfl_buf *all = &r->blocks[0];

	rfl_buf_init(all, CIFAR10_FILES * CIFAR10_MAX_BYTES);
	for (int i = 0; i < (test ? 1 : CIFAR10_FILES); i++) {
		const size_t before = all->len;
		char path[4200];
		enum rfl_rc rc;

		batch_path(files->images, test, i, path);
		if (!rfl_file_exists(path))
			return rfl_fail(err, RFL_EINVAL, 0, "%s is missing; " GET_IT, path,
					test ? "test_batch.bin"
					     : "data_batch_1.bin to data_batch_5.bin");
		if ((rc = check_size(path, rfl_file_size(path), err)) != RFL_OK)
			return rc;
		if (values && ((rc = rfl_file_read(path, all, err)) != RFL_OK ||
			       (rc = rfl_cifar10_check_records(path, all->data + before,
							       all->len - before, err)) != RFL_OK))
			return rc;
	}
	r->base.n = all->len / RFL_CIFAR10_RECORD;
	r->channels = 3;
	r->height = r->width = 32;
	r->pad = 4;
	r->flip = true;
	/* statistics of all pixels of the 50,000 training images */
	r->scale = (struct rfl_pixel_scale){
		.mean = { 0.4914F, 0.4822F, 0.4465F },
		.std = { 0.2470F, 0.2435F, 0.2616F },
	};
	r->labels = (const uint8_t *)all->data;
	r->pixels = values ? r->labels + 1 : NULL;
	r->labels_step = r->pixels_step = RFL_CIFAR10_RECORD;
	return RFL_OK;
}

/* ---- idx files; zlib reads them gzipped or not ---- */

/* Return zlib's message without the path at its beginning; NULL at the end of the file. */
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

	return rfl_fail(
		err, RFL_EFORMAT, 0,
		"%s: ends at byte %lld of %lld%s%s: truncated or damaged; download it again", path,
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
			"%s: byte 0: contains %s instead of %s; swap the names of the two files",
			path, magic == 0x801U ? "labels" : "images",
			ndim == 1 ? "labels" : "images");
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: byte 0: the magic number is 0x%08x, not 0x%08x: not an idx file of "
			"%s, or damaged; download it again",
			path, magic, wanted, ndim == 1 ? "labels" : "images");
}

enum rfl_rc rfl_idx_read(const char *path, int ndim, struct rfl_idx *ret, struct rfl_buf *values,
			 struct rfl_err *err)
{
	const int size = 4 + 4 * ndim;
	struct rfl_idx idx = { .ndim = ndim };
	uint8_t header[16], part[16384];
	int64_t bytes = 1;
	const char *why;
	gzFile file;
	enum rfl_rc rc;
	int got;

	errno = 0;
	file = gzopen(path, "rbe");
	if (!file)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", path,
				strerror(errno ? errno : ENOMEM));
	got = gzread(file, header, (unsigned)size);
	rc = got < size ? cut_off(file, path, got < 0 ? 0 : got, size, err)
			: check_magic(path, big_endian(header), ndim, err);
	for (int d = 0; d < ndim && rc == RFL_OK; d++) {
		idx.dim[d] = big_endian(header + 4 + 4 * d);
		if (idx.dim[d] == 0 || idx.dim[d] > IDX_MAX_BYTES / bytes)
			rc = rfl_fail(err, RFL_EFORMAT, 0,
				      "%s: byte %d: %lld %s: damaged; download it again", path,
				      4 + 4 * d, (long long)idx.dim[d],
				      d == 0 ? "items" : "pixels per side");
		else
			bytes *= idx.dim[d];
	}
	if (rc || !values)
		goto done;

	/* read in pieces: memory grows with the file, not with the size in a damaged header */
	for (int64_t at = 0; at < bytes; at += got) {
		const int64_t left = bytes - at;

		got = gzread(file, part,
			     left < (int64_t)sizeof(part) ? (unsigned)left : sizeof(part));
		if (got <= 0) {
			rc = cut_off(file, path, size + at, size + bytes, err);
			goto done;
		}
		rfl_buf_append(values, part, (size_t)got);
	}
	if ((rc = rfl_buf_check(values, path, err)) != RFL_OK)
		goto done;

	/* Read past the last value: no data may follow, and zlib verifies the checksum of a gzipped
	 * file. Like gzip, it ignores data after the gzipped part. */
	got = gzread(file, part, 1);
	why = trouble(file, path);
	if (why)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: %s after the last of its %lld bytes: truncated or damaged; "
			      "download it again",
			      path, why, (long long)(size + bytes));
	else if (got != 0)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: damaged: longer than the %lld bytes given in its header; "
			      "download it again",
			      path, (long long)(size + bytes));
done:
	(void)gzclose(file); /* only opened for reading, so errors do not matter */
	if (rc == RFL_OK)
		*ret = idx;
	return rc;
}

/* ---- MNIST ---- */

static bool find_one(const char *dir, bool test, const char *what, int ndim, char *out, size_t size)
{
	static const char *const forms[] = {
		"%s/%s-%s-idx%d-ubyte",
		"%s/%s-%s-idx%d-ubyte.gz",
		"%s/%s-%s.idx%d-ubyte",
		"%s/%s-%s.idx%d-ubyte.gz",
	};
	const char *part = test ? "t10k" : "train";

	for (size_t i = 0; i < RFL_ARRAY_LEN(forms); i++) {
		if ((size_t)snprintf(out, size, forms[i], dir, part, what, ndim) < size &&
		    rfl_file_exists(out))
			return true;
	}
	snprintf(out, size, forms[0], dir, part, what, ndim); /* for the error message */
	return false;
}

static bool find_mnist(const char *dir, bool test, struct files *ret)
{
	static const char *const places[] = { "", "/raw", "/MNIST/raw" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(places); i++) {
		char place[4000];

		if ((size_t)snprintf(place, sizeof(place), "%s%s", dir, places[i]) >= sizeof(place))
			continue;
		if (find_one(place, test, "images", 3, ret->images, sizeof(ret->images))) {
			(void)find_one(place, test, "labels", 1, ret->labels, sizeof(ret->labels));
			return true;
		}
	}
	return false;
}

/* @param values  false: read only the headers */
static enum rfl_rc read_mnist(const struct files *files, bool test, bool values,
			      struct records *ret, struct rfl_err *err)
{
	struct rfl_buf *pixel_block = &ret->blocks[0], *label_block = &ret->blocks[1];
	struct rfl_idx images = { .ndim = 0 }, labels = { .ndim = 0 };
	enum rfl_rc rc;

	(void)test; /* the files are already found */
	rfl_buf_init(pixel_block, (size_t)IDX_MAX_BYTES);
	rfl_buf_init(label_block, (size_t)IDX_MAX_BYTES);
	if (!rfl_file_exists(files->labels))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s is missing, also with .gz; put it next to %s", files->labels,
				files->images);
	if ((rc = rfl_idx_read(files->images, 3, &images, values ? pixel_block : NULL, err)) !=
		    RFL_OK ||
	    (rc = rfl_idx_read(files->labels, 1, &labels, values ? label_block : NULL, err)) !=
		    RFL_OK)
		return rc;
	if (images.dim[0] != labels.dim[0])
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: %lld images, but %s has %lld labels; use matching files",
				files->images, (long long)images.dim[0], files->labels,
				(long long)labels.dim[0]);
	if (images.dim[1] > 4096 || images.dim[2] > 4096)
		return rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s: byte 8: images of %lld x %lld pixels: damaged; download it again",
			files->images, (long long)images.dim[1], (long long)images.dim[2]);
	for (size_t i = 0; i < label_block->len; i++) {
		const int label = (uint8_t)label_block->data[i];

		if (label >= CLASSES)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: byte %zu: the label of image %zu is %d, not 0 to %d: "
					"damaged, or not MNIST's labels; download it again",
					files->labels, 8 + i, i, label, CLASSES - 1);
	}
	ret->base.n = (size_t)images.dim[0];
	ret->channels = 1;
	ret->height = (int)images.dim[1];
	ret->width = (int)images.dim[2];
	/* statistics of the 60,000 training images, as in PyTorch's MNIST example */
	ret->scale = (struct rfl_pixel_scale){ .mean = { 0.1307F }, .std = { 0.3081F } };
	ret->pixels = (const uint8_t *)pixel_block->data;
	ret->pixels_step = (size_t)ret->height * (size_t)ret->width;
	ret->labels = (const uint8_t *)label_block->data;
	ret->labels_step = 1;
	return RFL_OK;
}

bool rfl_records_are_in(const char *dir, enum rfl_data_kind kind)
{
	struct files files;

	return (kind == RFL_DATA_CIFAR10 ? find_cifar10 : find_mnist)(dir, false, &files);
}

/* ---- samples: CIFAR-10 is flipped, and both are rotated, or CIFAR-10 gets a border and is cropped
 * at random ---- */

#define ONE 65536 /* of a fixed-point number */

static int floor_of(int64_t fixed)
{
	return (int)(fixed >= 0 ? fixed / ONE : -((ONE - 1 - fixed) / ONE));
}

/* Rotate an image about its centre: each pixel is interpolated between the four nearest of the
 * flipped or unflipped original, which is black outside. */
static void rotate(const struct records *r, const uint8_t *pixels, double degrees, bool flip,
		   bool planes, uint8_t *out)
{
	const double angle = degrees * (acos(-1.0) / 180.0);
	const int64_t c = lrint(cos(angle) * ONE), s = lrint(sin(angle) * ONE);
	const size_t plane = (size_t)r->height * (size_t)r->width;

	for (int y = 0; y < r->height; y++) {
		for (int x = 0; x < r->width; x++) {
			/* twice the distance from the centre */
			const int dx = 2 * x - r->width + 1, dy = 2 * y - r->height + 1;
			const int64_t u = (c * dx + s * dy + (int64_t)(r->width - 1) * ONE) / 2;
			const int64_t v = (c * dy - s * dx + (int64_t)(r->height - 1) * ONE) / 2;
			const int left = floor_of(u), top = floor_of(v);
			const int64_t right_part = u - (int64_t)left * ONE;
			const int64_t low_part = v - (int64_t)top * ONE;

			for (size_t k = 0; k < (size_t)r->channels; k++) {
				int64_t sum = 0;

				for (int corner = 0; corner < 4; corner++) {
					const int fx = left + corner % 2, fy = top + corner / 2;
					const int64_t across =
						corner % 2 ? right_part : ONE - right_part;
					const int64_t down = corner / 2 ? low_part : ONE - low_part;

					if (fx < 0 || fx >= r->width || fy < 0 || fy >= r->height)
						continue;
					sum += across * down *
					       pixels[k * plane + (size_t)fy * (size_t)r->width +
						      (size_t)(flip ? r->width - 1 - fx : fx)];
				}
				out[planes ? k * plane + (size_t)y * (size_t)r->width + (size_t)x
					   : ((size_t)y * (size_t)r->width + (size_t)x) *
							     (size_t)r->channels +
						     k] = (uint8_t)((sum + (int64_t)ONE * ONE / 2) /
								    ((int64_t)ONE * ONE));
			}
		}
	}
}

static enum rfl_rc records_load(const struct rfl_samples *samples, void *worker, size_t index,
				struct rfl_random *random, struct rfl_sample *ret,
				struct rfl_err *err)
{
	static const uint8_t black[4096]; /* a row of the widest image allowed */
	const struct records *r = (const struct records *)samples;
	const uint8_t *pixels = r->pixels + index * r->pixels_step;
	const size_t width = (size_t)r->width, plane = (size_t)r->height * width;
	const bool planes = ret->layout == RFL_LAYOUT_NCHW;
	const size_t step = planes ? 1 : (size_t)r->channels; /* distance between pixels */
	int left = 0, top = 0;                                /* offset of the crop */
	bool flip = false;

	(void)worker, (void)err;
	ret->label = r->labels[index * r->labels_step];
	ret->read_bytes = 0;
	if (r->augment && r->pad > 0 && r->rotation == 0) {
		left = (int)rfl_random_below(random, 2 * (uint32_t)r->pad + 1) - r->pad;
		top = (int)rfl_random_below(random, 2 * (uint32_t)r->pad + 1) - r->pad;
	}
	if (r->augment && r->flip)
		flip = rfl_random_u32(random) >> 31;
	if (r->augment && r->rotation > 0) {
		rotate(r, pixels, rfl_random_between(random, -r->rotation, r->rotation), flip,
		       planes, ret->pixels);
		return RFL_OK;
	}
	for (size_t c = 0; c < (size_t)r->channels; c++) {
		uint8_t *out = ret->pixels + c * (planes ? plane : 1);

		for (int y = 0; y < r->height; y++, out += width * step) {
			const bool inside = y + top >= 0 && y + top < r->height;
			const uint8_t *row =
				inside ? pixels + c * plane + (size_t)(y + top) * width : black;

			for (int x = 0; x < r->width; x++) {
				const int from = (flip ? r->width - 1 - x : x) + left;

				out[(size_t)x * step] =
					from >= 0 && from < r->width ? row[from] : 0;
			}
		}
	}
	return RFL_OK;
}

static void records_free(struct rfl_samples *s)
{
	struct records *r = (struct records *)s;

	rfl_buf_fini(&r->blocks[0]);
	rfl_buf_fini(&r->blocks[1]);
	free(r);
}

static const struct rfl_samples_ops records_ops = {
	.load = records_load,
	.free = records_free,
};

enum rfl_rc rfl_samples_records(const struct rfl_data_spec *spec,
				const struct rfl_data_shape *shape, struct rfl_samples **ret,
				struct rfl_err *err)
{
	const bool cifar10 = spec->kind == RFL_DATA_CIFAR10;
	const char *what = rfl_data_kind_names[spec->kind];
	struct records *r = rfl_alloc_array(1, sizeof(*r));
	char advice[64] = "use another network";
	enum rfl_data_kind found;
	struct files files;
	enum rfl_rc rc;

	if (!(cifar10 ? find_cifar10 : find_mnist)(spec->dir, spec->test, &files)) {
		rc = rfl_data_detect(spec->dir, &found, err);
		if (rc == RFL_OK && found == spec->kind) /* only the test set is missing */
			rc = rfl_fail(err, RFL_EINVAL, 0,
				      "%s: the test set of %s is missing; add %s", spec->dir, what,
				      cifar10 ? "test_batch.bin"
					      : "t10k-images-idx3-ubyte and "
						"t10k-labels-idx1-ubyte (or .gz)");
		else if (rc == RFL_OK)
			rc = rfl_fail(err, RFL_EINVAL, 0,
				      "%s: this is a directory of %s, not of %s", spec->dir,
				      rfl_data_kind_names[found], rfl_data_kind_names[spec->kind]);
		goto done;
	}
	/* check headers first: data that does not suit the network need not be read */
	for (int values = 0; values <= (ret != NULL); values++) {
		rc = (cifar10 ? read_cifar10 : read_mnist)(&files, spec->test, values, r, err);
		if (rc)
			goto done;
		if (r->height == r->width)
			snprintf(advice, sizeof(advice), "use --image-size %d, or another network",
				 r->height);
		if (shape->channels != r->channels)
			rc = rfl_fail(err, RFL_EINVAL, 0,
				      "%s: %s images have %d channel%s, but %s accepts %lld; use "
				      "cifar_cnn for cifar10, or mnist_cnn for mnist",
				      spec->dir, what, r->channels, r->channels == 1 ? "" : "s",
				      shape->model, (long long)shape->channels);
		else if (shape->height > 0 &&
			 (shape->height != r->height || shape->width != r->width))
			rc = rfl_fail(err, RFL_EINVAL, 0,
				      "%s: %s images are %d x %d, but %s accepts %lld x %lld; %s",
				      spec->dir, what, r->height, r->width, shape->model,
				      (long long)shape->height, (long long)shape->width, advice);
		else if (shape->classes < CLASSES)
			rc = rfl_fail(err, RFL_EINVAL, 0,
				      "%s: %s has 10 classes, but %s has %lld outputs; use another "
				      "network",
				      spec->dir, what, shape->model, (long long)shape->classes);
		if (rc)
			goto done;
	}
	if (!ret)
		goto done;
	r->base.ops = &records_ops;
	r->base.name = spec->dir;
	for (size_t i = 0; i < RFL_ARRAY_LEN(r->blocks); i++)
		r->base.digest =
			rfl_data__digest(r->base.digest, r->blocks[i].data, r->blocks[i].len);
	r->base.sample_bytes = (size_t)r->channels * (size_t)r->height * (size_t)r->width;
	r->base.scale = &r->scale;
	r->augment = spec->augment && !spec->test;
	r->rotation = spec->rotation;
	*ret = &r->base;
	return RFL_OK;
done:
	records_free(&r->base);
	return rc;
}
