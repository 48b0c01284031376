/*
 * data.c - the calls common to all sources of batches, and the choice of one.
 */
#include "data/data.h"

#include <math.h>

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

int64_t rfl_data_skipped(struct rfl_data *data)
{
	return data->ops->skipped(data);
}

void rfl_data_stats(struct rfl_data *data, struct rfl_data_stats *ret)
{
	*ret = (struct rfl_data_stats){ .decode_s = NAN, .queue_mean = NAN, .queue_min = NAN };
	if (data->ops->stats)
		data->ops->stats(data, ret);
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
