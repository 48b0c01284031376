/*
 * synthetic.c - one batch of the golden fill that never changes: images, or tokens for a language
 * model.
 */
#include "data/ring.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/num.h"
#include "data/fill.h"

struct synthetic {
	struct rfl_data base;
	struct rfl_batch batch;
	int64_t first; /* sample of the batch that all processes have together */
	void *inputs, *labels;
	const struct rfl_data_memory *memory; /* NULL, or the copy below */
	struct rfl_data_memory copy;
};

static enum rfl_rc synthetic_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err)
{
	(void)err;
	*ret = ((struct synthetic *)data)->batch;
	return RFL_OK;
}

static void synthetic_free(struct rfl_data *data)
{
	struct synthetic *s = (struct synthetic *)data;

	rfl_data__free(s->memory, s->inputs);
	rfl_data__free(s->memory, s->labels);
	free(s);
}

static const struct rfl_data_ops synthetic_ops = {
	.next = synthetic_next,
	.free = synthetic_free,
};

static bool is_text(const struct rfl_net *net)
{
	return net->nodes[0].dtype == RFL_DTYPE_I64;
}

/* Rows of logits of one sample: a label each. */
static int64_t rows_of(const struct rfl_net *net)
{
	return rfl_shape_numel(&net->nodes[net->output].shape) / net->classes;
}

static enum rfl_rc reserve(struct synthetic *s, int64_t n, size_t size, void **ret,
			   struct rfl_err *err)
{
	int64_t bytes;
	enum rfl_rc rc;

	if (!rfl_num_mul(n, (int64_t)size, &bytes))
		return rfl_fail(err, RFL_ENOMEM, 0, "synthetic batch of %lld: out of memory",
				(long long)s->batch.n);
	rc = rfl_data__check_room("synthetic data", 1, s->batch.n, (size_t)bytes, err);
	return rc ? rc : rfl_data__alloc(s->memory, (size_t)bytes, ret, err);
}

static enum rfl_rc fill(struct synthetic *s, const struct rfl_net *net, int threads,
			struct rfl_err *err)
{
	const struct rfl_shape *shape = &net->nodes[0].shape;
	int64_t n = s->batch.n, inputs = rfl_shape_numel(shape), nlabels;
	enum rfl_rc rc = RFL_OK;

	if (!rfl_num_mul(n, inputs, &inputs) || !rfl_num_mul(n, rows_of(net), &nlabels))
		return rfl_fail(err, RFL_ENOMEM, 0, "synthetic batch of %lld: out of memory",
				(long long)n);
	rc = reserve(s, inputs, is_text(net) ? sizeof(int64_t) : sizeof(float), &s->inputs, err);
	if (rc == RFL_OK)
		rc = reserve(s, nlabels, sizeof(int64_t), &s->labels, err);
	if (rc)
		return rc;
	rfl_fill_labels(s->first * rows_of(net), nlabels, net->classes, s->labels);
	s->batch.labels = s->labels;
	if (is_text(net)) {
		rfl_fill_tokens(s->first * rfl_shape_numel(shape), inputs, net->classes, s->inputs);
		s->batch.kind = RFL_INPUT_TOKENS;
		s->batch.tokens = s->inputs;
		return RFL_OK;
	}
	s->batch.images = s->inputs;
	return rfl_fill_images(shape, s->first, n, s->batch.layout, threads, s->inputs, err);
}

/* What a batch holds follows from these; the same number is the same batch, in any source. */
static uint64_t id_of(const struct rfl_net *net, int64_t first, int64_t batch,
		      enum rfl_layout layout)
{
	const struct rfl_shape *shape = &net->nodes[0].shape;
	const int64_t facts[] = { first,        batch,        (int64_t)layout,
				  net->classes, rows_of(net), shape->ndim };
	uint64_t h = rfl_hash64(0, facts, sizeof(facts));

	h = rfl_hash64(h, shape->dim, (size_t)shape->ndim * sizeof(shape->dim[0]));
	return h ? h : 1;
}

enum rfl_rc rfl_data__synthetic(const struct rfl_net *net, int64_t first, int64_t batch,
				enum rfl_layout layout, int threads, bool keep,
				const struct rfl_data_memory *memory, struct rfl_data **ret,
				struct rfl_err *err)
{
	struct synthetic *s = calloc(1, sizeof(*s));
	enum rfl_rc rc;

	if (!s)
		return rfl_fail(err, RFL_ENOMEM, 0, "synthetic batch: out of memory");
	s->base.ops = &synthetic_ops;
	if (memory) {
		s->copy = *memory;
		s->memory = &s->copy;
	}
	s->first = first;
	s->batch = (struct rfl_batch){ .n = batch, .layout = layout };
	if (keep)
		s->batch.id = id_of(net, first, batch, layout);
	rc = fill(s, net, threads, err);
	if (rc) {
		synthetic_free(&s->base);
		return rc;
	}
	*ret = &s->base;
	return RFL_OK;
}
