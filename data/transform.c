/*
 * transform.c - which part of an image is taken.
 */
#include "data/transform.h"

#include <math.h>
#include <stdlib.h>

enum rfl_rc rfl_image_reserve(struct rfl_image *image, int width, int height, struct rfl_err *err)
{
	size_t need = (size_t)width * (size_t)height * 3 + 1;

	if (need > image->capacity) {
		free(image->pixels);
		image->capacity = 0;
		image->pixels = malloc(need);
		if (!image->pixels)
			return rfl_fail(err, RFL_ENOMEM, 0, "image of %d x %d: out of memory",
					width, height);
		image->capacity = need;
	}
	image->width = width;
	image->height = height;
	return RFL_OK;
}

void rfl_image_fini(struct rfl_image *image)
{
	free(image->pixels);
	*image = (struct rfl_image){ .pixels = NULL };
}

/* The largest centred crop whose aspect is within the bounds: what ten bad draws end in. */
static struct rfl_rect centre_crop(int width, int height, double low, double high)
{
	double aspect = (double)width / (double)height;
	int w = width, h = height;

	if (aspect < low)
		h = (int)lrint((double)width / low);
	else if (aspect > high)
		w = (int)lrint((double)height * high);
	return (struct rfl_rect){
		.x = (width - w) / 2, .y = (height - h) / 2, .width = w, .height = h
	};
}

static struct rfl_rect random_crop(int width, int height, struct rfl_random *random)
{
	const double low = 3.0 / 4.0, high = 4.0 / 3.0;
	double area = (double)width * (double)height;

	for (int attempt = 0; attempt < 10; attempt++) {
		double target = area * rfl_random_between(random, 0.08, 1.0);
		double aspect = exp(rfl_random_between(random, log(low), log(high)));
		int w = (int)lrint(sqrt(target * aspect));
		int h = (int)lrint(sqrt(target / aspect));

		if (w < 1 || h < 1 || w > width || h > height)
			continue;
		return (struct rfl_rect){
			.x = (int)rfl_random_below(random, (uint32_t)(width - w) + 1),
			.y = (int)rfl_random_below(random, (uint32_t)(height - h) + 1),
			.width = w,
			.height = h,
		};
	}
	return centre_crop(width, height, low, high);
}

void rfl_view_random(int width, int height, int size, struct rfl_random *random,
		     struct rfl_view *ret)
{
	*ret = (struct rfl_view){
		.crop = random_crop(width, height, random),
		.scaled_width = size,
		.scaled_height = size,
		.width = size,
		.height = size,
	};
	ret->needed = ret->crop;
	ret->flip = rfl_random_u32(random) >> 31;
}

void rfl_view_centre(int width, int height, int size, struct rfl_view *ret)
{
	int64_t side = ((int64_t)size * 256 + 112) / 224;
	int64_t w = side, h = side;

	if (width < height)
		h = side * height / width;
	else
		w = side * width / height;
	*ret = (struct rfl_view){
		.crop = { .width = width, .height = height },
		.scaled_width = (int)w,
		.scaled_height = (int)h,
		.width = size,
		.height = size,
		/* half to even, as Python rounds */
		.left = (int)lrint((double)(w - size) / 2.0),
		.top = (int)lrint((double)(h - size) / 2.0),
	};
	rfl_resize_range(width, (int)w, ret->left, size, &ret->needed.x, &ret->needed.width);
	rfl_resize_range(height, (int)h, ret->top, size, &ret->needed.y, &ret->needed.height);
}
