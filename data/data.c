/*
 * data.c - the calls common to all sources of batches, and the synthetic one.
 */
#include "data/data.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "data/fill.h"

const char *const rfl_data_kind_names[] = {
	"synthetic", "synthetic-host", "imagefolder", "imagefolder-cached", "cifar10", "mnist", NULL,
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

void rfl_data_free(struct rfl_data *data)
{
	if (data)
		data->ops->free(data);
}

struct synthetic {
	struct rfl_data base;
	struct rfl_batch batch;
	float *images;
	int64_t *labels;
};

static enum rfl_rc synthetic_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err)
{
	(void)err;
	*ret = ((struct synthetic *)data)->batch;
	return RFL_OK;
}

static int64_t synthetic_skipped(struct rfl_data *data)
{
	(void)data;
	return 0;
}

static void synthetic_free(struct rfl_data *data)
{
	struct synthetic *s = (struct synthetic *)data;

	free(s->images);
	free(s->labels);
	free(s);
}

static const struct rfl_data_ops synthetic_ops = {
	.next = synthetic_next,
	.skipped = synthetic_skipped,
	.free = synthetic_free,
};

enum rfl_rc rfl_data_synthetic(const struct rfl_net *net, int64_t batch, enum rfl_layout layout,
			       int threads, struct rfl_data **ret, struct rfl_err *err)
{
	const struct rfl_shape *shape = &net->nodes[0].shape;
	struct synthetic *s = calloc(1, sizeof(*s));
	enum rfl_rc rc;

	if (!s)
		return rfl_fail(err, RFL_ENOMEM, 0, "synthetic batch: out of memory");
	s->base.ops = &synthetic_ops;
	s->images =
		rfl_alloc_array((size_t)batch, (size_t)rfl_shape_numel(shape) * sizeof(*s->images));
	s->labels = rfl_alloc_array((size_t)batch, sizeof(*s->labels));
	if (!s->images || !s->labels) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "synthetic batch of %lld: out of memory",
			      (long long)batch);
		goto done;
	}
	rc = rfl_fill_images(shape, batch, layout, threads, s->images, err);
	if (rc)
		goto done;
	rfl_fill_labels(batch, net->classes, s->labels);
	s->batch = (struct rfl_batch){
		.n = batch, .images = s->images, .layout = layout, .labels = s->labels
	};
	*ret = &s->base;
	s = NULL;
done:
	if (s)
		synthetic_free(&s->base);
	return rc;
}
