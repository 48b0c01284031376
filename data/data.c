/*
 * data.c - the calls common to all sources of batches, the choice of one, and what a folder holds.
 */
#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/records.h"
#include "data/ring.h"

const char *const rfl_data_kind_names[] = {
	"synthetic", "synthetic-host", "imagefolder", "imagefolder-cached",
	"cifar10",   "mnist",          NULL,
};

enum rfl_rc rfl_data_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err)
{
	return data->ops->next(data, ret, err);
}

void rfl_data_rest(struct rfl_data *data)
{
	if (data->ops->rest)
		data->ops->rest(data);
}

struct rfl_data_stats rfl_data_stats(struct rfl_data *data)
{
	if (data->ops->stats)
		return data->ops->stats(data);
	return (struct rfl_data_stats){ .decode_s = NAN, .queue_mean = NAN, .queue_min = NAN };
}

void rfl_data_reset_stats(struct rfl_data *data)
{
	if (data->ops->reset_stats)
		data->ops->reset_stats(data);
}

void rfl_data_free(struct rfl_data *data)
{
	if (data)
		data->ops->free(data);
}

/* ---- which one ---- */

/* What is done for a kind that reads a folder. */
static const struct {
	enum rfl_rc (*open)(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			    struct rfl_samples **ret, struct rfl_err *err);
	enum rfl_rc (*probe)(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			     struct rfl_err *err);
} folders[] = {
	[RFL_DATA_IMAGEFOLDER] = { rfl_samples_folder, rfl_samples_folder_probe },
	[RFL_DATA_IMAGEFOLDER_CACHED] = { rfl_samples_folder, rfl_samples_folder_probe },
	[RFL_DATA_CIFAR10] = { rfl_samples_records, rfl_samples_records_probe },
	[RFL_DATA_MNIST] = { rfl_samples_records, rfl_samples_records_probe },
};

static bool is_synthetic(const struct rfl_data_spec *spec)
{
	return spec->kind == RFL_DATA_SYNTHETIC || spec->kind == RFL_DATA_SYNTHETIC_HOST;
}

static enum rfl_rc shape_of(const struct rfl_data_spec *spec, const struct rfl_net *net,
			    struct rfl_data_shape *ret, struct rfl_err *err)
{
	const struct rfl_node *input = &net->nodes[0];

	if (!spec->dir)
		return rfl_fail(err, RFL_EINVAL, 0, "%s data needs a folder",
				rfl_data_kind_names[spec->kind]);
	if (input->dtype == RFL_DTYPE_I64 || input->shape.ndim != 3)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s does not read images; it runs on synthetic data", spec->dir,
				net->model);
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
	enum rfl_rc rc = is_synthetic(spec) ? RFL_OK : shape_of(spec, net, &shape, err);

	if (rc || is_synthetic(spec))
		return rc;
	return folders[spec->kind].probe(spec, &shape, err);
}

enum rfl_rc rfl_data_open_images(const struct rfl_data_spec *spec,
				 const struct rfl_data_shape *shape, int64_t batch,
				 enum rfl_layout layout, const struct rfl_data_memory *memory,
				 struct rfl_data **ret, struct rfl_err *err)
{
	const struct rfl_ring_config config = {
		.batch = batch,
		.layout = layout,
		.workers = spec->workers,
		.ahead = spec->ahead,
		.seed = spec->seed,
		.rank = spec->rank,
		.world_size = spec->world_size ? spec->world_size : 1,
		.named = spec->named,
		.memory = memory,
	};
	struct rfl_samples *set = NULL;
	enum rfl_rc rc = folders[spec->kind].open(spec, shape, &set, err);

	return rc ? rc : rfl_ring_open(set, &config, ret, err);
}

enum rfl_rc rfl_data_open(const struct rfl_data_spec *spec, const struct rfl_net *net,
			  int64_t batch, enum rfl_layout layout, int threads,
			  const struct rfl_data_memory *memory, struct rfl_data **ret,
			  struct rfl_err *err)
{
	struct rfl_data_shape shape;
	enum rfl_rc rc;

	if (is_synthetic(spec))
		return rfl_data__synthetic(net, spec->rank * batch, batch, layout, threads,
					   spec->kind == RFL_DATA_SYNTHETIC, memory, ret, err);
	rc = shape_of(spec, net, &shape, err);
	return rc ? rc : rfl_data_open_images(spec, &shape, batch, layout, memory, ret, err);
}

/* ---- what a folder holds, by the names of its files ---- */

#define FORMS                                                                                \
	"a folder of images has %s/train/<class>/<image>.jpg, CIFAR-10 data_batch_1.bin to " \
	"data_batch_5.bin, MNIST train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz)"

/* What folders have instead, and what to do about it. */
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
	struct rfl_record_files files;
	char path[4096];

	if (rfl_file_exists(dir))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: this is a file, give the folder that it is in; " FORMS, dir,
				dir);
	if (!rfl_dir_exists(dir))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: there is no such folder (docs/run.md says what one holds)",
				dir);
	if (rfl_cifar10_find(dir, &files)) {
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
