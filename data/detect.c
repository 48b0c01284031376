/*
 * detect.c - what a folder holds, told by the names of its files.
 */
#include "data/data.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/records.h"

#define FORMS                                                                                \
	"a folder of images has %s/train/<class>/<image>.jpg, CIFAR-10 data_batch_1.bin to " \
	"data_batch_5.bin, MNIST train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz)"

/* What people have in a folder instead, and what to do about it. */
static const struct {
	const char *name, *advice;
} near_misses[] = {
	{ "data_batch_1", "this is the Python version of CIFAR-10; the binary version is read "
			  "(cifar-10-binary.tar.gz)" },
	{ "cifar-10-batches-py", "this is the Python version of CIFAR-10; the binary version is "
				 "read (cifar-10-binary.tar.gz)" },
	{ "cifar-10-binary.tar.gz", "unpack it first: tar -xzf cifar-10-binary.tar.gz" },
	{ "train.bin", "this looks like CIFAR-100, which is not read; CIFAR-10 is" },
	{ "train-labels-idx1-ubyte", "MNIST's labels without its images, train-images-idx3-ubyte" },
	{ "train-labels-idx1-ubyte.gz",
	  "MNIST's labels without its images, train-images-idx3-ubyte.gz" },
};

static bool has(const char *dir, const char *name)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return false;
	return rfl_file_exists(path) || rfl_dir_exists(path);
}

/* The folder's own name, slashes at its end left out. */
static bool is_named_train(const char *dir)
{
	size_t len = strlen(dir);

	while (len > 0 && dir[len - 1] == '/')
		len--;
	return len >= 5 && strncmp(dir + len - 5, "train", 5) == 0 &&
	       (len == 5 || dir[len - 6] == '/');
}

enum rfl_rc rfl_data_detect(const char *dir, enum rfl_data_kind *ret, struct rfl_err *err)
{
	struct rfl_mnist_files files;
	char path[4096];

	if (rfl_file_exists(dir))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: this is a file, give the folder that it is in; " FORMS, dir,
				dir);
	if (!rfl_dir_exists(dir))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: there is no such folder (docs/data.md says what one holds)",
				dir);
	if (rfl_cifar10_find(dir, path, sizeof(path))) {
		*ret = RFL_DATA_CIFAR10;
		return RFL_OK;
	}
	if (rfl_mnist_find(dir, &files)) {
		*ret = RFL_DATA_MNIST;
		return RFL_OK;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s/train", dir) < sizeof(path) &&
	    rfl_dir_exists(path)) {
		*ret = RFL_DATA_IMAGEFOLDER;
		return RFL_OK;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(near_misses); i++)
		if (has(dir, near_misses[i].name))
			return rfl_fail(err, RFL_EINVAL, 0, "%s/%s: %s", dir, near_misses[i].name,
					near_misses[i].advice);
	if (is_named_train(dir))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: give the folder above it; images are looked for in its train/",
				dir);
	return rfl_fail(err, RFL_EINVAL, 0, "%s: no data known here; " FORMS, dir, dir);
}
