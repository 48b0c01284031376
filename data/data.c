/* data.c - opens sources of batches, and detects the data in a directory. */
#include "data/data.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/parts.h"

const char *const rfl_data_kind_names[] = {
	"synthetic", "synthetic-host", "imagefolder", "imagefolder-cached",
	"cifar10",   "mnist",          "tokens",      NULL,
};

#define DIGESTED 65536 /* bytes of a block */

uint64_t rfl_data__digest(uint64_t digest, const void *data, size_t bytes)
{
	const uint64_t size = bytes;

	digest = rfl_hash64(digest, &size, sizeof(size));
	return rfl_hash64(digest, data, bytes < DIGESTED ? bytes : DIGESTED);
}

static bool is_synthetic(const struct rfl_data_spec *spec)
{
	return spec->kind == RFL_DATA_SYNTHETIC || spec->kind == RFL_DATA_SYNTHETIC_HOST;
}

static enum rfl_rc open_samples(const struct rfl_data_spec *spec,
				const struct rfl_data_shape *shape, struct rfl_samples **ret,
				struct rfl_err *err)
{
	if (spec->kind == RFL_DATA_CIFAR10 || spec->kind == RFL_DATA_MNIST)
		return rfl_samples_records(spec, shape, ret, err);
	return rfl_samples_folder(spec, shape, ret, err);
}

static enum rfl_rc shape_of(const struct rfl_data_spec *spec, const struct rfl_net *net,
			    struct rfl_data_shape *ret, struct rfl_err *err)
{
	const struct rfl_node *input = &net->nodes[0];

	if (!spec->dir)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s data needs a directory or a file; use --data",
				rfl_data_kind_names[spec->kind]);
	if (input->dtype == RFL_DTYPE_I64 || input->shape.ndim != 3)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s accepts no images; use --synthetic or a file of tokens",
				spec->dir, net->model);
	*ret = (struct rfl_data_shape){
		.model = net->model,
		.channels = input->shape.dim[0],
		.height = input->shape.dim[1],
		.width = input->shape.dim[2],
		.classes = net->classes,
	};
	return RFL_OK;
}

enum rfl_rc rfl_data_probe(const struct rfl_data_spec *spec, const struct rfl_net *net,
			   struct rfl_err *err)
{
	struct rfl_data_shape shape;
	enum rfl_rc rc;

	if (is_synthetic(spec))
		return RFL_OK;
	if (spec->kind == RFL_DATA_TOKENS && spec->dir) {
		struct rfl_token_file *file = NULL;

		rc = rfl_token_file_open(spec->dir, net, false, &file, err);
		if (rc == RFL_OK)
			rfl_token_file_free(file);
		return rc;
	}
	rc = shape_of(spec, net, &shape, err);
	return rc ? rc : open_samples(spec, &shape, NULL, err);
}

/* @param net  NULL: images of this shape */
static enum rfl_rc open_data(const struct rfl_data_spec *spec, const struct rfl_net *net,
			     struct rfl_data_shape shape, int64_t batch, enum rfl_layout layout,
			     int threads, const struct rfl_data_memory *memory,
			     struct rfl_data **ret, struct rfl_err *err)
{
	struct rfl_samples *set = NULL;
	struct rfl_data *d = rfl_data__new(spec, batch, layout, memory);
	enum rfl_rc rc;

	if (net && is_synthetic(spec))
		rc = rfl_data__synthetic(d, net, threads, err);
	else if (net && spec->kind == RFL_DATA_TOKENS && spec->dir)
		rc = rfl_data__texts(d, net, err);
	else if ((!net || (rc = shape_of(spec, net, &shape, err)) == RFL_OK) &&
		 (rc = open_samples(spec, &shape, &set, err)) == RFL_OK)
		rc = rfl_data__load(d, set, err);
	if (rc == RFL_OK)
		*ret = d;
	else
		rfl_data_free(d);
	return rc;
}

enum rfl_rc rfl_data_open_images(const struct rfl_data_spec *spec,
				 const struct rfl_data_shape *shape, int64_t batch,
				 enum rfl_layout layout, const struct rfl_data_memory *memory,
				 struct rfl_data **ret, struct rfl_err *err)
{
	return open_data(spec, NULL, *shape, batch, layout, 1, memory, ret, err);
}

enum rfl_rc rfl_data_open(const struct rfl_data_spec *spec, const struct rfl_net *net,
			  int64_t batch, enum rfl_layout layout, int threads,
			  const struct rfl_data_memory *memory, struct rfl_data **ret,
			  struct rfl_err *err)
{
	return open_data(spec, net, (struct rfl_data_shape){ .model = net->model }, batch, layout,
			 threads, memory, ret, err);
}

#define FORMS                                                                                    \
	"use %s/train/<class>/<image>.jpg, CIFAR-10's data_batch_1.bin to data_batch_5.bin, or " \
	"MNIST's train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz)"

/* Common mistakes, identified by a file in the directory. */
static const struct {
	const char *name, *advice;
} near_misses[] = {
	{ "data_batch_1", "this is the Python version of CIFAR-10; use the binary version "
			  "(cifar-10-binary.tar.gz)" },
	{ "cifar-10-batches-py", "this is the Python version of CIFAR-10; use the binary "
				 "version (cifar-10-binary.tar.gz)" },
	{ "cifar-10-binary.tar.gz", "unpack it first: tar -xzf cifar-10-binary.tar.gz" },
	{ "train.bin", "this looks like CIFAR-100, which is not supported; use CIFAR-10" },
	{ "train-labels-idx1-ubyte", "MNIST's images are missing; add train-images-idx3-ubyte" },
	{ "train-labels-idx1-ubyte.gz",
	  "MNIST's images are missing; add train-images-idx3-ubyte.gz" },
};

static bool has(const char *dir, const char *name)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return false;
	return rfl_file_exists(path) || rfl_dir_exists(path);
}

enum rfl_rc rfl_data_detect(const char *dir, enum rfl_data_kind *ret, struct rfl_err *err)
{
	static const enum rfl_data_kind kinds[] = { RFL_DATA_CIFAR10, RFL_DATA_MNIST,
						    RFL_DATA_IMAGEFOLDER };
	size_t len = strlen(dir);

	if (rfl_file_exists(dir) && len >= 4 && strcmp(dir + len - 4, ".bin") == 0) {
		*ret = RFL_DATA_TOKENS;
		return RFL_OK;
	}
	if (rfl_file_exists(dir))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: this is a file, not a directory, and its name does not end in "
				".bin, as a file of tokens must; " FORMS,
				dir, dir);
	if (!rfl_dir_exists(dir))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: no such file or directory; use a directory of images, "
				"CIFAR-10 or MNIST, or a file of tokens, NAME.bin",
				dir);
	for (size_t i = 0; i < RFL_ARRAY_LEN(kinds); i++)
		if (kinds[i] == RFL_DATA_IMAGEFOLDER ? has(dir, "train/.")
						     : rfl_records_are_in(dir, kinds[i])) {
			*ret = kinds[i];
			return RFL_OK;
		}
	for (size_t i = 0; i < RFL_ARRAY_LEN(near_misses); i++)
		if (has(dir, near_misses[i].name))
			return rfl_fail(err, RFL_EINVAL, 0, "%s/%s: %s", dir, near_misses[i].name,
					near_misses[i].advice);
	while (len > 0 && dir[len - 1] == '/')
		len--;
	if (len >= 5 && strncmp(dir + len - 5, "train", 5) == 0 &&
	    (len == 5 || dir[len - 6] == '/'))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: this is the train directory itself; use its parent directory",
				dir);
	return rfl_fail(err, RFL_EINVAL, 0, "%s: no known data found; " FORMS, dir, dir);
}
