/* jpeg_missing.c - replaces jpeg.c in builds without libjpeg-turbo. */
#include "data/jpeg.h"

#define WHY                                                                              \
	"built without libjpeg-turbo, so directories of images cannot be read; install " \
	"libjpeg62-turbo-dev and configure again"

enum rfl_rc rfl_jpeg_new(struct rfl_jpeg **ret, struct rfl_err *err)
{
	(void)ret;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, WHY);
}

void rfl_jpeg_free(struct rfl_jpeg *j)
{
	(void)j;
}

enum rfl_rc rfl_jpeg_begin(struct rfl_jpeg *j, const void *data, size_t len, const char *name,
			   int *width, int *height, struct rfl_err *err)
{
	(void)j, (void)data, (void)len, (void)width, (void)height;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s: " WHY, name);
}

enum rfl_rc rfl_jpeg_decode(struct rfl_jpeg *j, const struct rfl_rect *crop, struct rfl_image *out,
			    struct rfl_err *err)
{
	(void)j, (void)crop, (void)out;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, WHY);
}
