/* queue.c - batches on their way to the device, events, and recorded steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runner/planned/cuda/backend.h"

/* ---- batches ---- */

static size_t image_bytes(const struct rfl_backend *b, const struct rfl_batch *batch)
{
	const size_t n = (size_t)(batch->n * rfl_shape_numel(&b->net->nodes[0].shape));

	return batch->kind == RFL_INPUT_PIXELS ? n : 4 * n;
}

static enum rfl_rc grow(const struct rfl_backend *b, rfl_cuda_address *address, size_t *has,
			size_t bytes, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (*has >= bytes)
		return RFL_OK;
	rc = QUEUE(b, synchronize, err, b->stream);
	rfl_cuda__free(b, address);
	*has = 0;
	if (rc == RFL_OK)
		rc = rfl_cuda__alloc(b, bytes, "a batch", address, err);
	if (rc == RFL_OK) /* it is filled with zeros before another stream writes it */
		rc = QUEUE(b, synchronize, err, b->stream);
	*has = rc == RFL_OK ? bytes : 0;
	return rc;
}

/* Begin to copy a batch to the place that was not used last. */
static enum rfl_rc upload(struct rfl_backend *b, const struct rfl_batch *batch, struct rfl_err *err)
{
	struct staged *s = &b->staged[1 - b->last_staged];
	const size_t images = image_bytes(b, batch), labels = 8 * (size_t)batch->n;
	enum rfl_rc rc = grow(b, &s->images, &s->bytes[0], images, err);

	s->filled = false;
	if (rc == RFL_OK)
		rc = grow(b, &s->labels, &s->bytes[1], labels, err);
	if (rc == RFL_OK) /* it may still be read */
		rc = QUEUE(b, wait, err, b->copies, s->used, 0);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, send, err, s->images, (const void *)batch->images,
				   images, b->copies);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, send, err, s->labels, batch->labels, labels, b->copies);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, event_record, err, s->ready, b->copies);
	if (rc != RFL_OK)
		return rc;
	b->last_staged = 1 - b->last_staged;
	s->batch = *batch;
	s->filled = true;
	return RFL_OK;
}

static enum rfl_rc uploaded(struct rfl_backend *b, struct rfl_err *err)
{
	return RFL_CUDA_CALL(b->cuda, event_synchronize, err, b->staged[b->last_staged].ready);
}

/* Whether a place holds the batch: it was uploaded for this pass, or has the same id. */
static bool holds(const struct staged *s, const struct rfl_batch *batch)
{
	const struct rfl_batch *is = &s->batch;

	return s->filled && is->n == batch->n && is->kind == batch->kind &&
	       is->layout == batch->layout && is->id == batch->id &&
	       (batch->id != 0 || (is->images == batch->images && is->labels == batch->labels));
}

enum rfl_rc rfl_cuda__take_batch(struct rfl_backend *b, const struct rfl_batch *batch, void *y,
				 struct rfl_err *err)
{
	const int64_t *const dim = b->net->nodes[0].shape.dim;
	const bool pixels = batch->kind == RFL_INPUT_PIXELS;
	struct rfl_k_input k = {
		.n = batch->n * rfl_shape_numel(&b->net->nodes[0].shape),
		.type = b->type,
		.pixels = pixels,
		.nhwc = batch->layout == RFL_LAYOUT_NHWC,
		.channels = dim[0],
		.area = dim[1] * dim[2],
		.y = y,
	};
	struct staged *s =
		&b->staged[holds(&b->staged[b->last_staged], batch) ? b->last_staged
								    : 1 - b->last_staged];
	enum rfl_rc rc = RFL_OK;

	if (!holds(s, batch)) {
		rc = upload(b, batch, err);
		if (rc == RFL_OK) /* the caller may change it as soon as the pass is queued */
			rc = uploaded(b, err);
		s = &b->staged[b->last_staged];
	}
	if (rc == RFL_OK)
		rc = QUEUE(b, wait, err, b->stream, s->ready, 0);
	if (pixels) {
		memcpy(k.mean, batch->scale->mean, sizeof(k.mean));
		memcpy(k.std, batch->scale->std, sizeof(k.std));
	}
	k.from = rfl_cuda__pointer(s->images);
	if (rc == RFL_OK)
		rc = rfl_cuda__launch(b, KERNEL_input, &k, err);
	if (rc == RFL_OK) /* a recording reads them at the same place in each replay */
		rc = QUEUE(b, copy, err, b->labels, s->labels, 8 * (size_t)batch->n, b->stream);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, event_record, err, s->used, b->stream);
	for (size_t i = 0; i < RFL_ARRAY_LEN(b->staged) && batch->id == 0; i++)
		if (b->staged[i].batch.id == 0) /* the next may be another at the same place */
			b->staged[i].filled = false;
	return rc;
}

static enum rfl_rc host_alloc(struct rfl_backend *b, size_t bytes, void **ret, struct rfl_err *err)
{
	return RFL_CUDA_CALL(b->cuda, host_alloc, err, ret, bytes, 0);
}

static void host_free(struct rfl_backend *b, void *memory)
{
	if (memory)
		(void)b->cuda->calls.host_free(memory);
}

/* ---- events ---- */

static void free_events(struct rfl_backend *b)
{
	for (int64_t i = 0; i < b->nevents; i++)
		(void)b->cuda->calls.event_destroy(b->events[i]);
	free(b->events);
	b->events = NULL;
	b->nevents = 0;
}

enum rfl_rc rfl_backend_reserve_events(struct rfl_backend *b, int64_t n, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	free_events(b);
	b->events = rfl_try_array((size_t)n, sizeof(*b->events));
	if (!b->events)
		return rfl_fail(err, RFL_ENOMEM, 0, "planned: out of memory for events");
	for (; b->nevents < n && rc == RFL_OK; b->nevents += rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, event_create, err, &b->events[b->nevents], 0);
	return rc;
}

enum rfl_rc rfl_backend_record_event(struct rfl_backend *b, int64_t i, struct rfl_err *err)
{
	return RFL_CUDA_CALL(b->cuda, event_record, err, b->events[i], b->stream);
}

enum rfl_rc rfl_backend_elapsed(struct rfl_backend *b, int64_t from, int64_t to, double *ret,
				struct rfl_err *err)
{
	float ms = 0;
	const enum rfl_rc rc =
		RFL_CUDA_CALL(b->cuda, event_elapsed, err, &ms, b->events[from], b->events[to]);

	*ret = 1e-3 * (double)ms;
	return rc;
}

enum rfl_rc rfl_cuda__time(const struct rfl_backend *b,
			   enum rfl_rc (*work)(void *ctx, struct rfl_err *err), void *ctx,
			   float *ret, struct rfl_err *err)
{
	enum { TIMES = 8 }; /* so that the device waits for nothing but the first */
	enum rfl_rc rc = work(ctx, err);

	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, event_record, err, b->ends[0], b->stream);
	for (int i = 0; i < TIMES && rc == RFL_OK; i++)
		rc = work(ctx, err);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, event_record, err, b->ends[1], b->stream);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, event_synchronize, err, b->ends[1]);
	return rc == RFL_OK
		       ? RFL_CUDA_CALL(b->cuda, event_elapsed, err, ret, b->ends[0], b->ends[1])
		       : rc;
}

/* ---- recordings ---- */

static void forget(struct rfl_backend *b)
{
	if (b->recording) {
		(void)b->queue.synchronize(b->stream);
		(void)b->queue.exec_destroy(b->recording);
	}
	b->recording = NULL;
}

static enum rfl_rc begin(struct rfl_backend *b, struct rfl_err *err)
{
	forget(b);
	return QUEUE(b, begin, err, b->stream, RFL_CAPTURE_MODE_THREAD_LOCAL);
}

static enum rfl_rc end(struct rfl_backend *b, bool keep, struct rfl_err *err)
{
	struct rfl_cuda_graph *graph = NULL;
	enum rfl_rc rc = QUEUE(b, end, err, b->stream, &graph);

	if (rc == RFL_OK && keep)
		rc = QUEUE(b, instantiate, err, &b->recording, graph, 0);
	if (graph)
		(void)b->queue.graph_destroy(graph);
	return rc;
}

static enum rfl_rc replay(struct rfl_backend *b, struct rfl_err *err)
{
	return QUEUE(b, launch, err, b->recording, b->stream);
}

void rfl_cuda__close_queue(struct rfl_backend *b)
{
	forget(b);
	free_events(b);
	for (size_t i = 0; i < RFL_ARRAY_LEN(b->staged); i++) {
		struct staged *s = &b->staged[i];

		rfl_cuda__free(b, &s->images);
		rfl_cuda__free(b, &s->labels);
		if (s->ready)
			(void)b->cuda->calls.event_destroy(s->ready);
		if (s->used)
			(void)b->cuda->calls.event_destroy(s->used);
	}
	for (int i = 0; i < 2; i++)
		if (b->ends[i])
			(void)b->cuda->calls.event_destroy(b->ends[i]);
	if (b->copies)
		(void)b->queue.destroy(b->copies);
	if (b->stream)
		(void)b->queue.destroy(b->stream);
}

/* ---- facts and state ---- */

static enum rfl_rc device_info(struct rfl_backend *b, struct rfl_engine_device *ret,
			       struct rfl_err *err)
{
	const struct rfl_cuda *c = b->cuda;
	size_t bytes = 0;
	enum rfl_rc rc = RFL_CUDA_CALL(c, device_memory, err, &bytes, c->device);

	*ret = (struct rfl_engine_device){ .memory_bytes = rc == RFL_OK ? (int64_t)bytes : -1 };
	(void)snprintf(ret->name, sizeof(ret->name), "%.127s", c->name);
	(void)snprintf(ret->cuda_driver, sizeof(ret->cuda_driver), "%d.%d", c->version / 1000,
		       c->version % 1000 / 10);
	(void)snprintf(ret->cudnn, sizeof(ret->cudnn), "%s", b->cudnn->version);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(c, device_pci, err, ret->pci_bus_id,
				   (int)sizeof(ret->pci_bus_id), c->device);
	return rc;
}

static enum rfl_rc get_state(struct rfl_backend *b, struct rfl_kernel_state *ret,
			     struct rfl_err *err)
{
	return rfl_cuda__fetch(b, ret, b->state, sizeof(*ret), err);
}

static enum rfl_rc scaling(struct rfl_backend *b, struct rfl_loss_scaling *ret, struct rfl_err *err)
{
	struct rfl_kernel_state state = { .scale = 1 };
	enum rfl_rc rc = RFL_OK;

	*ret = (struct rfl_loss_scaling){ .scale = (double)NAN, .skipped = -1 };
	if (b->type != RFL_VALUE_F16)
		return RFL_OK;
	rc = get_state(b, &state, err);
	*ret = (struct rfl_loss_scaling){ .scale = (double)state.scale, .skipped = state.skipped };
	return rc;
}

static enum rfl_rc visit_state(struct rfl_backend *b, bool load, rfl_engine_state_fn fn, void *ctx,
			       struct rfl_err *err)
{
	struct rfl_kernel_state state;
	enum rfl_rc rc = RFL_OK;

	if (b->type != RFL_VALUE_F16)
		return RFL_OK;
	rc = get_state(b, &state, err);
	if (rc == RFL_OK)
		rc = fn("scaling.scale", &state.scale, sizeof(state.scale), ctx, err);
	if (rc == RFL_OK)
		rc = fn("scaling.good", &state.good, sizeof(state.good), ctx, err);
	if (rc == RFL_OK)
		rc = fn("scaling.skipped", &state.skipped, sizeof(state.skipped), ctx, err);
	if (load)
		b->restart_scaling = false;
	return rc == RFL_OK && load ? rfl_cuda__send(b, b->state, &state, sizeof(state), err) : rc;
}

enum rfl_rc rfl_backend_totals(struct rfl_backend *b, bool restart, struct rfl_totals *ret,
			       struct rfl_err *err)
{
	struct rfl_kernel_state state = { .scale = 1 };
	enum rfl_rc rc = get_state(b, &state, err);

	*ret = (struct rfl_totals){ .loss = state.loss,
				    .score = { .rows = state.score_rows,
					       .correct = state.score_correct,
					       .loss = state.score_loss } };
	state.score_rows = state.score_correct = 0;
	state.score_loss = 0;
	return rc == RFL_OK && restart ? rfl_cuda__send(b, b->state, &state, sizeof(state), err)
				       : rc;
}

static const struct rfl_backend_queue queue = {
	.device_info = device_info,
	.scaling = scaling,
	.visit_state = visit_state,
	.host_alloc = host_alloc,
	.host_free = host_free,
	.upload = upload,
	.uploaded = uploaded,
	.begin = begin,
	.end = end,
	.replay = replay,
	.forget = forget,
};
const struct rfl_backend_queue *const rfl_backend_queue = &queue;
