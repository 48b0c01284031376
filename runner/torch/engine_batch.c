/*
 * engine_batch.c - what the torch engine makes of a batch: tensors over the caller's memory,
 * on the device, in the engine's layout.
 */
#include "runner/torch/engine_parts.h"

#include <stdlib.h>

static enum rfl_rc check_batch(const struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	const struct rfl_shape *shape = &e->net->nodes[0].shape;
	const bool wants_tokens = e->net->nodes[0].dtype == RFL_DTYPE_I64;

	if (batch->n < 1 || batch->n > e->config.max_batch)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: a batch has 1 to %lld samples, not %lld",
				(long long)e->config.max_batch, (long long)batch->n);
	if ((batch->kind == RFL_INPUT_TOKENS) != wants_tokens)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %s takes %s", e->net->model,
				wants_tokens ? "tokens, not images" : "images, not tokens");
	if (batch->kind == RFL_INPUT_PIXELS && (!batch->scale || shape->dim[0] > 3))
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: pixels need a scale and have 1 to 3 channels, not %lld",
				(long long)shape->dim[0]);
	return RFL_OK;
}

static enum rfl_torch_status wrap_input(const struct rfl_engine *e, const struct rfl_batch *batch,
					struct rfl_torch_tensor **ret)
{
	const struct rfl_shape *s = &e->net->nodes[0].shape;
	const int64_t c = s->dim[0], h = s->dim[1], w = s->dim[2];
	const int64_t sizes[4] = { batch->n, c, h, w }, rows[2] = { batch->n, s->dim[0] };
	const int64_t nhwc[4] = { c * h * w, 1, w * c, c };
	const int64_t *strides = batch->layout == RFL_LAYOUT_NHWC ? nhwc : NULL;

	switch (batch->kind) {
	case RFL_INPUT_TOKENS:
		return rfl_torch_wrap(batch->tokens, RFL_TORCH_I64, 2, rows, NULL, ret);
	case RFL_INPUT_PIXELS:
		return rfl_torch_wrap(batch->pixels, RFL_TORCH_U8, 4, sizes, strides, ret);
	case RFL_INPUT_IMAGES:
		break;
	}
	return rfl_torch_wrap(batch->images, RFL_TORCH_F32, 4, sizes, strides, ret);
}

/* Labels: one per sample, or one per position of a sample. */
enum rfl_rc rfl_torch__wrap_batch(const struct rfl_engine *e, const struct rfl_batch *batch,
				  struct rfl_torch_tensor **input, struct rfl_torch_tensor **labels,
				  struct rfl_err *err)
{
	const int64_t rows =
		batch->n * (batch->kind == RFL_INPUT_TOKENS ? e->net->nodes[0].shape.dim[0] : 1);
	struct rfl_torch_tensor *x = NULL, *y = NULL;
	enum rfl_rc rc = check_batch(e, batch, err);

	if (rc == RFL_OK)
		rc = rfl_torch__check(wrap_input(e, batch, &x), "inputs", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(
			rfl_torch_wrap(batch->labels, RFL_TORCH_I64, 1, &rows, NULL, &y), "labels",
			err);
	if (rc != RFL_OK) {
		rfl_torch_tensor_free(x);
		return rc;
	}
	*input = x;
	*labels = y;
	return RFL_OK;
}

/* A copy only where something changes. */
enum rfl_rc rfl_torch__prepare_input(const struct rfl_engine *e, const struct rfl_batch *batch,
				     struct rfl_torch_tensor *take_raw,
				     struct rfl_torch_tensor **ret, struct rfl_err *err)
{
	const int nhwc = e->config.layout == RFL_LAYOUT_NHWC;
	enum rfl_torch_status status;

	if (batch->kind == RFL_INPUT_TOKENS ||
	    (batch->kind == RFL_INPUT_IMAGES && batch->layout == e->config.layout)) {
		*ret = take_raw;
		return RFL_OK;
	}
	if (batch->kind == RFL_INPUT_PIXELS)
		status = rfl_torch_normalize(take_raw, batch->scale->mean, batch->scale->std, nhwc,
					     ret);
	else
		status = nhwc ? rfl_torch_tensor_channels_last(take_raw, ret)
			      : rfl_torch_tensor_contiguous(take_raw, ret);
	rfl_torch_tensor_free(take_raw);
	return rfl_torch__check(status, "inputs", err);
}

enum rfl_rc rfl_torch__take_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				  struct rfl_torch_tensor **input, struct rfl_torch_tensor **labels,
				  struct rfl_err *err)
{
	struct rfl_torch_tensor *raw = NULL, *y = NULL;
	enum rfl_rc rc = rfl_torch__wrap_batch(e, batch, &raw, &y, err);

	if (rc == RFL_OK)
		rc = rfl_torch__device_batch(e, batch, &raw, &y, err);
	if (rc == RFL_OK) {
		rc = rfl_torch__prepare_input(e, batch, raw, input, err);
		raw = NULL;
	}
	if (rc == RFL_OK)
		*labels = y;
	else
		rfl_torch_tensor_free(y);
	rfl_torch_tensor_free(raw);
	return rc;
}
