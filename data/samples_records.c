/*
 * samples_records.c - small images in memory as samples: CIFAR-10 with a random crop of the image
 * in a frame of 4 black pixels and a flip, MNIST as it is.
 */
#include "data/ring.h"

#include <stdio.h>
#include <stdlib.h>

#include "data/records.h"

struct records {
	struct rfl_samples base;
	struct rfl_records r;
	bool augment;
};

void rfl_records_fini(struct rfl_records *r)
{
	rfl_buf_fini(&r->blocks[0]);
	rfl_buf_fini(&r->blocks[1]);
}

/* Where the image begins in the crop of its frame. */
struct shift {
	int x, y;
	bool flip;
};

/* One row of one plane; pixel_step apart in out. What lies outside of the image is black. */
static void put_row(const uint8_t *row, int width, const struct shift *s, size_t pixel_step,
		    uint8_t *out)
{
	for (int x = 0; x < width; x++) {
		int from = (s->flip ? width - 1 - x : x) + s->x;

		out[(size_t)x * pixel_step] = from >= 0 && from < width ? row[from] : 0;
	}
}

static void put_plane(const uint8_t *plane, const struct rfl_records *r, const struct shift *s,
		      size_t pixel_step, uint8_t *out)
{
	static const uint8_t black[4096]; /* the widest image there is */
	size_t width = (size_t)r->width;

	for (int y = 0; y < r->height; y++, out += width * pixel_step) {
		int from = y + s->y;
		bool inside = from >= 0 && from < r->height;

		put_row(inside ? plane + (size_t)from * width : black, r->width, s, pixel_step,
			out);
	}
}

static enum rfl_rc records_load(const struct rfl_samples *samples, void *worker, size_t index,
				struct rfl_random *random, struct rfl_sample *ret,
				struct rfl_err *err)
{
	const struct records *set = (const struct records *)samples;
	const struct rfl_records *r = &set->r;
	const uint8_t *pixels = r->pixels + index * r->pixels_step;
	size_t plane = (size_t)r->height * (size_t)r->width, channels = (size_t)r->channels;
	bool planes = ret->layout == RFL_LAYOUT_NCHW;
	struct shift s = { .x = 0 };

	(void)worker, (void)err;
	if (set->augment && r->pad > 0) {
		s.x = (int)rfl_random_below(random, 2 * (uint32_t)r->pad + 1) - r->pad;
		s.y = (int)rfl_random_below(random, 2 * (uint32_t)r->pad + 1) - r->pad;
	}
	if (set->augment && r->flip)
		s.flip = rfl_random_u32(random) >> 31;
	for (size_t c = 0; c < channels; c++)
		put_plane(pixels + c * plane, r, &s, planes ? 1 : channels,
			  ret->pixels + c * (planes ? plane : 1));
	ret->label = r->labels[index * r->labels_step];
	ret->read_bytes = 0;
	return RFL_OK;
}

static void records_free(struct rfl_samples *s)
{
	rfl_records_fini(&((struct records *)s)->r);
	free(s);
}

static const struct rfl_samples_ops records_ops = {
	.load = records_load,
	.free = records_free,
};

/* ---- making it ---- */

static enum rfl_rc check_shape(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			       const struct rfl_records *r, struct rfl_err *err)
{
	const char *what = rfl_data_kind_names[spec->kind];
	char advice[64] = "take another network";

	if (shape->channels != r->channels)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s images have %d channel%s, but %s takes %lld; cifar_cnn is "
				"a network for cifar10, mnist_cnn one for mnist",
				spec->dir, what, r->channels, r->channels == 1 ? "" : "s",
				shape->model, (long long)shape->channels);
	if (r->height == r->width)
		snprintf(advice, sizeof(advice), "give --image-size %d, or another network",
			 r->height);
	if (shape->height > 0 && (shape->height != r->height || shape->width != r->width))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s images are %d x %d, but %s takes %lld x %lld; %s",
				spec->dir, what, r->height, r->width, shape->model,
				(long long)shape->height, (long long)shape->width, advice);
	if (shape->classes < 10)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s has 10 classes, but %s has %lld outputs", spec->dir, what,
				shape->model, (long long)shape->classes);
	return RFL_OK;
}

/* @param values  false: check the files' sizes or headers only */
static enum rfl_rc read_records(const struct rfl_data_spec *spec,
				const struct rfl_data_shape *shape, bool values,
				struct rfl_records *ret, struct rfl_err *err)
{
	const bool cifar10 = spec->kind == RFL_DATA_CIFAR10;
	struct rfl_record_files files;
	enum rfl_data_kind found;
	enum rfl_rc rc;

	if (!(cifar10 ? rfl_cifar10_find : rfl_mnist_find)(spec->dir, &files)) {
		rc = rfl_data_detect(spec->dir, &found, err);
		return rc ? rc
			  : rfl_fail(err, RFL_EINVAL, 0, "%s: this is a folder of %s, not of %s",
				     spec->dir, rfl_data_kind_names[found],
				     rfl_data_kind_names[spec->kind]);
	}
	rc = (cifar10 ? rfl_cifar10_read : rfl_mnist_read)(&files, values, ret, err);
	return rc ? rc : check_shape(spec, shape, ret, err);
}

enum rfl_rc rfl_samples_records_probe(const struct rfl_data_spec *spec,
				      const struct rfl_data_shape *shape, struct rfl_err *err)
{
	struct rfl_records r = { .n = 0 };
	enum rfl_rc rc = read_records(spec, shape, false, &r, err);

	rfl_records_fini(&r);
	return rc;
}

enum rfl_rc rfl_samples_records(const struct rfl_data_spec *spec,
				const struct rfl_data_shape *shape, struct rfl_samples **ret,
				struct rfl_err *err)
{
	struct records *set = calloc(1, sizeof(*set));
	enum rfl_rc rc;

	if (!set)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", spec->dir);
	/* headers first: what does not fit the network need not be read, whatever it claims to
	 * hold */
	rc = rfl_samples_records_probe(spec, shape, err);
	if (rc == RFL_OK)
		rc = read_records(spec, shape, true, &set->r, err);
	if (rc) {
		records_free(&set->base);
		return rc;
	}
	set->base = (struct rfl_samples){
		.ops = &records_ops,
		.name = spec->dir,
		.n = set->r.n,
		.sample_bytes =
			(size_t)set->r.channels * (size_t)set->r.height * (size_t)set->r.width,
		.scale = &set->r.scale,
	};
	set->augment = spec->augment;
	*ret = &set->base;
	return RFL_OK;
}
