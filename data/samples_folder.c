/*
 * samples_folder.c - JPEG files as samples: read (or taken from the cache), decoded as far as the
 * crop needs them, resized, flipped.
 */
#include "data/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/cache.h"
#include "data/jpeg.h"
#include "data/transform.h"

#define MAX_SIZE 8192 /* width and height of an input */

/* Mean and standard deviation of ImageNet's pixels, as torchvision's reference training has them.
 */
static const struct rfl_pixel_scale imagenet_scale = {
	.mean = { 0.485F, 0.456F, 0.406F },
	.std = { 0.229F, 0.224F, 0.225F },
};

struct folder {
	struct rfl_samples base;
	struct rfl_dataset *set;
	struct rfl_cache_files *cache; /* NULL: files are read as they are needed */
	int size;                      /* width and height of an input */
	bool augment;
};

/* What one thread needs to decode; kept from image to image. */
struct decoder {
	struct rfl_jpeg *jpeg;
	struct rfl_resizer resizer;
	struct rfl_image decoded;
	struct rfl_file_bytes file;
};

static void folder_worker_free(void *worker)
{
	struct decoder *d = worker;

	if (!d)
		return;
	rfl_jpeg_free(d->jpeg);
	rfl_resizer_fini(&d->resizer);
	rfl_image_fini(&d->decoded);
	free(d->file.data);
	free(d);
}

static enum rfl_rc folder_worker_new(const struct rfl_samples *s, void **ret, struct rfl_err *err)
{
	struct decoder *d = calloc(1, sizeof(*d));
	enum rfl_rc rc;

	if (!d)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	rc = rfl_jpeg_new(&d->jpeg, err);
	if (rc) {
		folder_worker_free(d);
		return rc;
	}
	*ret = d;
	return RFL_OK;
}

/* The bytes of an image's file: the cache's, or read into the worker's own memory. */
static enum rfl_rc get_bytes(const struct folder *f, struct decoder *d, size_t index,
			     const char *path, const uint8_t **data, size_t *len,
			     struct rfl_err *err)
{
	enum rfl_rc rc;

	*data = f->cache ? rfl_cache_files_at(f->cache, index, len) : NULL;
	if (*data)
		return RFL_OK;
	rc = rfl_file_bytes_read(&d->file, path, err);
	*data = d->file.data;
	*len = d->file.len;
	return rc;
}

static enum rfl_rc folder_load(const struct rfl_samples *s, void *worker, size_t index,
			       struct rfl_random *random, struct rfl_sample *ret,
			       struct rfl_err *err)
{
	const struct folder *f = (const struct folder *)s;
	struct decoder *d = worker;
	const uint8_t *data;
	struct rfl_view view;
	char path[4096];
	size_t len = 0;
	int width, height;
	enum rfl_rc rc = rfl_dataset_path(f->set, index, path, sizeof(path), err);

	if (rc == RFL_OK)
		rc = get_bytes(f, d, index, path, &data, &len, err);
	if (rc == RFL_OK)
		rc = rfl_jpeg_begin(d->jpeg, data, len, path, &width, &height, err);
	if (rc)
		return rc;
	if (f->augment)
		rfl_view_random(width, height, f->size, random, &view);
	else
		rfl_view_centre(width, height, f->size, &view);
	rc = rfl_jpeg_decode(d->jpeg, &view.needed, &d->decoded, err);
	if (rc == RFL_OK)
		rc = rfl_resize(&d->resizer, &d->decoded, &view, ret->layout, ret->pixels, err);
	if (rc)
		return rc;
	ret->label = f->set->images[index].label;
	ret->read_bytes = (int64_t)len;
	return RFL_OK;
}

static void folder_free(struct rfl_samples *s)
{
	struct folder *f = (struct folder *)s;

	rfl_cache_files_free(f->cache);
	rfl_dataset_free(f->set);
	free(f);
}

static const struct rfl_samples_ops folder_ops = {
	.worker_new = folder_worker_new,
	.worker_free = folder_worker_free,
	.load = folder_load,
	.free = folder_free,
};

/* ---- making it ---- */

static enum rfl_rc check_shape(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			       struct rfl_err *err)
{
	struct rfl_jpeg *j = NULL;
	enum rfl_rc rc;

	if (shape->width > MAX_SIZE)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: images of a folder are made %d x %d at most", spec->dir,
				MAX_SIZE, MAX_SIZE);
	if (shape->channels != 3 || shape->width < 1 || shape->height != shape->width)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: images of a folder are made 3 x N x N, but %s takes %lld x "
				"%lld x %lld; take a network for such images",
				spec->dir, shape->model, (long long)shape->channels,
				(long long)shape->height, (long long)shape->width);
	rc = rfl_jpeg_new(&j, err); /* is there a decoder at all? */
	rfl_jpeg_free(j);
	return rc;
}

enum rfl_rc rfl_samples_folder_probe(const struct rfl_data_spec *spec,
				     const struct rfl_data_shape *shape, struct rfl_err *err)
{
	enum rfl_rc rc = check_shape(spec, shape, err);

	return rc ? rc : rfl_dataset_probe(spec->dir, shape->classes, err);
}

enum rfl_rc rfl_samples_folder(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			       struct rfl_samples **ret, struct rfl_err *err)
{
	enum rfl_rc rc = check_shape(spec, shape, err);
	struct folder *f = rc ? NULL : calloc(1, sizeof(*f));

	if (!f)
		return rc ? rc : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", spec->dir);
	f->base = (struct rfl_samples){ .ops = &folder_ops, .scale = &imagenet_scale };
	f->size = (int)shape->width;
	f->augment = spec->augment;
	f->base.sample_bytes = 3 * (size_t)f->size * (size_t)f->size;
	rc = rfl_dataset_open(spec->dir, spec->named, &f->set, err);
	if (rc == RFL_OK)
		rc = rfl_dataset_check_classes(f->set, shape->classes, err);
	if (rc == RFL_OK && spec->kind == RFL_DATA_IMAGEFOLDER_CACHED)
		rc = rfl_cache_files_new(f->set, spec->cache_bytes, spec->workers, &f->cache, err);
	if (rc) {
		folder_free(&f->base);
		return rc;
	}
	f->base.name = f->set->dir;
	f->base.n = f->set->nimages;
	f->base.skipped = (int64_t)f->set->skipped;
	*ret = &f->base;
	return RFL_OK;
}
