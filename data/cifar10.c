/*
 * cifar10.c - the binary version of CIFAR-10 (Krizhevsky, "Learning multiple layers of features
 * from tiny images", 2009): five files of 10,000 records, each a label and the red, green and blue
 * plane of 32 x 32 pixels.
 */
#include "data/records.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define CLASSES   10
#define FILES     5
#define MAX_BYTES ((size_t)1 << 30) /* of one file; the published ones have 30,730,000 */

#define GET_IT                                                                             \
	"the binary version of CIFAR-10 (cifar-10-binary.tar.gz) has data_batch_1.bin to " \
	"data_batch_5.bin"

static void batch_path(const char *dir, int i, char out[4200])
{
	snprintf(out, 4200, "%s/data_batch_%d.bin", dir, i + 1);
}

bool rfl_cifar10_find(const char *dir, struct rfl_record_files *ret)
{
	static const char *const places[] = { "", "/cifar-10-batches-bin" };
	char path[4200];

	for (size_t p = 0; p < RFL_ARRAY_LEN(places); p++) {
		if ((size_t)snprintf(ret->images, sizeof(ret->images), "%s%s", dir, places[p]) >=
		    sizeof(ret->images))
			continue;
		for (int i = 0; i < FILES; i++) {
			batch_path(ret->images, i, path);
			if (rfl_file_exists(path))
				return true;
		}
	}
	return false;
}

static enum rfl_rc check_size(const char *path, uint64_t bytes, struct rfl_err *err)
{
	if (bytes > 0 && bytes <= MAX_BYTES && bytes % RFL_CIFAR10_RECORD == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: %llu bytes are not whole records of %d (a label and 3 x 32 x 32 "
			"pixels): cut off, or not CIFAR-10's binary version; get it again",
			path, (unsigned long long)bytes, RFL_CIFAR10_RECORD);
}

enum rfl_rc rfl_cifar10_check_records(const char *name, const void *data, size_t len,
				      struct rfl_err *err)
{
	const uint8_t *bytes = data;
	enum rfl_rc rc = check_size(name, len, err);

	for (size_t at = 0; rc == RFL_OK && at < len; at += RFL_CIFAR10_RECORD) {
		if (bytes[at] >= CLASSES)
			rc = rfl_fail(err, RFL_EFORMAT, 0,
				      "%s: byte %zu: the label of record %zu is %d, not 0 to %d: "
				      "damaged, or not CIFAR-10's binary version; get it again",
				      name, at, at / RFL_CIFAR10_RECORD, bytes[at], CLASSES - 1);
	}
	return rc;
}

enum rfl_rc rfl_cifar10_read(const struct rfl_record_files *files, bool values,
			     struct rfl_records *ret, struct rfl_err *err)
{
	struct rfl_buf *all = &ret->blocks[0];

	rfl_buf_init(all, FILES * MAX_BYTES);
	for (int i = 0; i < FILES; i++) {
		const size_t before = all->len;
		char path[4200];
		enum rfl_rc rc;

		batch_path(files->images, i, path);
		if (!rfl_file_exists(path))
			return rfl_fail(err, RFL_EINVAL, 0, "%s is not there; " GET_IT, path);
		rc = check_size(path, rfl_file_size(path), err);
		if (rc == RFL_OK && values)
			rc = rfl_file_read(path, all, err);
		if (rc == RFL_OK && values)
			rc = rfl_cifar10_check_records(path, all->data + before, all->len - before,
						       err);
		if (rc)
			return rc;
	}
	ret->n = all->len / RFL_CIFAR10_RECORD;
	ret->channels = 3;
	ret->height = ret->width = 32;
	ret->pad = 4;
	ret->flip = true;
	/* of the 50,000 training images, each pixel counted alike */
	ret->scale = (struct rfl_pixel_scale){
		.mean = { 0.4914F, 0.4822F, 0.4465F },
		.std = { 0.2470F, 0.2435F, 0.2616F },
	};
	ret->labels = (const uint8_t *)all->data;
	ret->pixels = values ? ret->labels + 1 : NULL;
	ret->labels_step = ret->pixels_step = RFL_CIFAR10_RECORD;
	return RFL_OK;
}
