/*
 * engine_device.c - what differs between devices in the torch engine: where the parameters
 * lie, how a batch gets there, marks in the queue of work, waiting, memory.
 *
 * On the CPU parameters and batches are used where they lie and everything is done when a call
 * returns; the same calls then cost nothing.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_HUGEPAGE */
#include "runner/torch/engine_device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/dl.h"
#include "runner/torch/cuda_words.h"

#define HUGE_PAGE ((size_t)2 << 20)

static bool is_cpu(const struct rfl_engine *e)
{
	return e->config.device == RFL_DEVICE_CPU;
}

/* ------------------------------------------------------------------ life */

enum rfl_rc rfl_torch__device_probe(enum rfl_device device, struct rfl_err *err)
{
	if (rfl_torch_device_probe(device) == RFL_TORCH_OK)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, "torch: %s", rfl_torch_error());
}

static enum rfl_rc check_capability(const struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_torch_device_facts facts;
	enum rfl_rc rc = rfl_torch__check(rfl_torch_device_facts(e->device->on, &facts),
					  "what the device is", err);
	const char *missing = rc == RFL_OK ? rfl_cuda_precision_missing(e->config.precision,
									e->cast, facts.capability)
					   : NULL;

	if (missing)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: %s: %s", facts.name, missing);
	return rc;
}

enum rfl_rc rfl_torch__device_open(struct rfl_engine *e, struct rfl_err *err)
{
	enum rfl_rc rc;

	e->device = calloc(1, sizeof(*e->device));
	if (!e->device)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	rc = rfl_torch__check(rfl_torch_device_open(e->config.device, 0, &e->device->on),
			      rfl_device_names[e->config.device], err);
	return rc == RFL_OK ? check_capability(e, err) : rc;
}

static void drop_copy(struct rfl_torch__device *d, int slot)
{
	rfl_torch_tensor_free(d->copy[slot].input);
	rfl_torch_tensor_free(d->copy[slot].labels);
	d->copy[slot] = (struct rfl_torch__copy){ .input = NULL };
}

void rfl_torch__device_close(struct rfl_engine *e)
{
	struct rfl_torch__device *d = e->device;

	if (!d)
		return;
	rfl_torch__graph_forget(e);
	for (int i = 0; i < RFL_BATCH_SLOTS; i++)
		drop_copy(d, i);
	rfl_torch_device_close(d->on);
	if (e->slab)
		(void)munmap(e->slab, d->slab_bytes);
	free(d);
	e->device = NULL;
}

/* ------------------------------------------------------------------ parameters */

/* Fresh pages are zero, and huge ones are cheap to touch for the first time. */
static enum rfl_rc map_block(struct rfl_engine *e, int64_t floats, struct rfl_err *err)
{
	const size_t bytes = ((size_t)floats * sizeof(float) + HUGE_PAGE) & ~(HUGE_PAGE - 1);
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return rfl_fail(err, RFL_EDEVMEM, 0, "torch: no memory for %zu bytes of parameters",
				bytes);
#ifdef MADV_HUGEPAGE
	(void)madvise(memory, bytes, MADV_HUGEPAGE); /* a wish */
#endif
	e->slab = memory;
	e->device->slab_bytes = bytes;
	return rfl_torch__check(rfl_torch_wrap(memory, RFL_TORCH_F32, 1, &floats, NULL, &e->block),
				"parameters", err);
}

enum rfl_rc rfl_torch__device_block(struct rfl_engine *e, int64_t floats, struct rfl_err *err)
{
	if (is_cpu(e))
		return map_block(e, floats, err);
	return rfl_torch__check(rfl_torch_device_zeros(e->device->on, floats, &e->block),
				"parameters", err);
}

/* ------------------------------------------------------------------ batches */

typedef enum rfl_torch_status (*move_fn)(struct rfl_torch_device *d,
					 const struct rfl_torch_tensor *host,
					 struct rfl_torch_tensor **ret);

/* Both tensors of a batch, or none. */
static enum rfl_rc move(struct rfl_torch_device *d, move_fn fn,
			const struct rfl_torch_tensor *input, const struct rfl_torch_tensor *labels,
			struct rfl_torch__copy *ret, struct rfl_err *err)
{
	struct rfl_torch__copy made = { .input = NULL };
	enum rfl_rc rc = rfl_torch__check(fn(d, input, &made.input), "inputs to the device", err);

	if (rc == RFL_OK)
		rc = rfl_torch__check(fn(d, labels, &made.labels), "labels to the device", err);
	if (rc != RFL_OK) {
		rfl_torch_tensor_free(made.input);
		return rc;
	}
	*ret = made;
	return RFL_OK;
}

/* A copy for a slot. */
static enum rfl_rc fill_slot(struct rfl_torch__device *d, int slot, move_fn fn,
			     const struct rfl_torch_tensor *input,
			     const struct rfl_torch_tensor *labels, struct rfl_err *err)
{
	enum rfl_rc rc;

	drop_copy(d, slot);
	rc = move(d->on, fn, input, labels, &d->copy[slot], err);
	if (rc != RFL_OK)
		rfl_batch_slots_drop(&d->slots, slot);
	return rc;
}

/* The copy of a slot for a forward that has come; it stays when it has a number. */
static enum rfl_rc use_slot(struct rfl_torch__device *d, int slot, struct rfl_torch__copy *ret,
			    struct rfl_err *err)
{
	struct rfl_torch__copy *kept = &d->copy[slot], given = { .input = NULL };
	enum rfl_torch_status status = rfl_torch_device_use(d->on, kept->input);

	if (status == RFL_TORCH_OK)
		status = rfl_torch_device_use(d->on, kept->labels);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_tensor_dup(kept->input, &given.input);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_tensor_dup(kept->labels, &given.labels);
	if (!rfl_batch_slots_use(&d->slots, slot))
		drop_copy(d, slot);
	if (status != RFL_TORCH_OK) {
		rfl_torch_tensor_free(given.input);
		return rfl_torch__check(status, "batch", err);
	}
	*ret = given;
	return RFL_OK;
}

/* A recorded step wants ordinary ones of the same mode before it. */
static void count_step(struct rfl_engine *e)
{
	if (e->device->mode != e->mode)
		e->device->steps = 0;
	e->device->mode = e->mode;
	e->device->steps++;
}

enum rfl_rc rfl_torch__device_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				    struct rfl_torch_tensor **input,
				    struct rfl_torch_tensor **labels, struct rfl_err *err)
{
	struct rfl_torch__device *d = e->device;
	struct rfl_torch__copy there = { .input = NULL };
	enum rfl_rc rc = RFL_OK;
	int slot;

	count_step(e);
	if (is_cpu(e))
		return RFL_OK;
	slot = rfl_batch_slots_find(&d->slots, batch);
	if (slot < 0 && batch->id != 0) {
		slot = rfl_batch_slots_take(&d->slots, batch, false);
		if (slot >= 0)
			rc = fill_slot(d, slot, rfl_torch_device_bring, *input, *labels, err);
	}
	if (rc == RFL_OK)
		rc = slot >= 0 ? use_slot(d, slot, &there, err)
			       : move(d->on, rfl_torch_device_bring, *input, *labels, &there, err);
	if (rc != RFL_OK)
		return rc;
	rfl_torch_tensor_free(*input);
	rfl_torch_tensor_free(*labels);
	*input = there.input;
	*labels = there.labels;
	return RFL_OK;
}

enum rfl_rc rfl_torch__upload(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err)
{
	struct rfl_torch__device *d = e->device;
	struct rfl_torch_tensor *input = NULL, *labels = NULL;
	enum rfl_rc rc;
	int slot;

	if (is_cpu(e) || rfl_batch_slots_find(&d->slots, batch) >= 0)
		return RFL_OK;
	rc = rfl_torch__wrap_batch(e, batch, &input, &labels, err);
	if (rc != RFL_OK)
		return rc;
	slot = rfl_batch_slots_take(&d->slots, batch, true);
	if (slot >= 0)
		rc = fill_slot(d, slot, rfl_torch_device_copy, input, labels, err);
	else
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "torch: %d batches were uploaded without a forward", RFL_BATCH_SLOTS);
	rfl_torch_tensor_free(input);
	rfl_torch_tensor_free(labels);
	return rc;
}

enum rfl_rc rfl_torch__uploaded(struct rfl_engine *e, struct rfl_err *err)
{
	return rfl_torch__check(rfl_torch_device_copied(e->device->on), "upload", err);
}

enum rfl_rc rfl_torch__host_alloc(struct rfl_engine *e, size_t bytes, void **ret,
				  struct rfl_err *err)
{
	if (e->config.device != RFL_DEVICE_CUDA)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: page-locked memory is for a CUDA device, and this is %s",
				rfl_device_names[e->config.device]);
	return rfl_torch__check(rfl_torch_device_host_alloc(e->device->on, bytes, ret),
				"page-locked memory", err);
}

void rfl_torch__host_free(struct rfl_engine *e, void *memory)
{
	rfl_torch_device_host_free(e->device->on, memory);
}

/* ------------------------------------------------------------------ marks in the queue */

enum rfl_rc rfl_torch__reserve_events(struct rfl_engine *e, int64_t n, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (e->config.device == RFL_DEVICE_MPS)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: an Apple GPU has no events here: it is timed by waiting "
				"for it");
	if (n < 0)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %lld events", (long long)n);
	rc = rfl_torch__check(rfl_torch_device_reserve(e->device->on, n), "events", err);
	if (rc == RFL_OK && n > e->device->events)
		e->device->events = n;
	return rc;
}

static enum rfl_rc check_event(const struct rfl_engine *e, int64_t i, struct rfl_err *err)
{
	if (i >= 0 && i < e->device->events)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0, "torch: no event %lld: room was made for %lld",
			(long long)i, (long long)e->device->events);
}

enum rfl_rc rfl_torch__record_event(struct rfl_engine *e, int64_t i, struct rfl_err *err)
{
	enum rfl_rc rc = check_event(e, i, err);

	return rc != RFL_OK
		       ? rc
		       : rfl_torch__check(rfl_torch_device_record(e->device->on, i), "event", err);
}

enum rfl_rc rfl_torch__elapsed(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
			       struct rfl_err *err)
{
	enum rfl_rc rc = check_event(e, from, err);

	if (rc == RFL_OK)
		rc = check_event(e, to, err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_device_elapsed(e->device->on, from, to, ret),
				      "time between events", err);
	return rc;
}

/* ------------------------------------------------------------------ the record */

enum rfl_rc rfl_torch__device_sync(struct rfl_engine *e, struct rfl_err *err)
{
	return rfl_torch__check(rfl_torch_device_sync(e->device->on), "wait for the device", err);
}

enum rfl_rc rfl_torch__device_memory(struct rfl_engine *e, struct rfl_engine_memory *ret,
				     struct rfl_err *err)
{
	struct rfl_engine_memory m;
	enum rfl_rc rc =
		rfl_torch__check(rfl_torch_device_memory(e->device->on, &m.allocated_peak_bytes,
							 &m.reserved_peak_bytes),
				 "memory", err);

	if (rc == RFL_OK)
		*ret = m;
	return rc;
}

enum rfl_rc rfl_torch__reset_memory(struct rfl_engine *e, struct rfl_err *err)
{
	return rfl_torch__check(rfl_torch_device_reset_memory(e->device->on), "memory", err);
}

/* These came in with libtorch; asked for by name, so that no header of theirs is needed. */
static void ask_libraries(struct rfl_engine_device *ret)
{
	static const char *const cudnn[] = { "libcudnn.so.9", "libcudnn.so.8", NULL };
	static const char *const nccl[] = { "libnccl.so.2", NULL };
	size_t (*cudnn_version)(void) = NULL;
	int (*nccl_version)(int *version) = NULL;
	const struct rfl_dl_symbol of_cudnn = { "cudnnGetVersion", &cudnn_version, false };
	const struct rfl_dl_symbol of_nccl = { "ncclGetVersion", &nccl_version, false };
	struct rfl_dl *dl = NULL;
	int number = 0;

	if (rfl_dl_open_mapped(cudnn, &of_cudnn, 1, &dl, NULL) == RFL_OK) {
		rfl_cudnn_version_text(cudnn_version(), ret->cudnn, sizeof(ret->cudnn));
		rfl_dl_close(dl);
	}
	if (rfl_dl_open_mapped(nccl, &of_nccl, 1, &dl, NULL) == RFL_OK) {
		if (nccl_version(&number) == 0)
			rfl_nccl_version_text(number, ret->nccl, sizeof(ret->nccl));
		rfl_dl_close(dl);
	}
}

enum rfl_rc rfl_torch__device_info(struct rfl_engine *e, struct rfl_engine_device *ret,
				   struct rfl_err *err)
{
	struct rfl_engine_device info = { .memory_bytes = -1 };
	struct rfl_torch_device_facts facts;
	enum rfl_rc rc = rfl_torch__check(rfl_torch_device_facts(e->device->on, &facts),
					  "what the device is", err);

	if (rc != RFL_OK)
		return rc;
	memcpy(info.name, facts.name, sizeof(info.name));
	rfl_pci_bus_id_text(facts.pci_domain, facts.pci_bus, facts.pci_device, info.pci_bus_id,
			    sizeof(info.pci_bus_id));
	rfl_cuda_version_text(facts.runtime, info.cuda_runtime, sizeof(info.cuda_runtime));
	rfl_cuda_version_text(facts.driver, info.cuda_driver, sizeof(info.cuda_driver));
	info.memory_bytes = facts.memory_bytes;
	if (e->config.device == RFL_DEVICE_CUDA)
		ask_libraries(&info);
	*ret = info;
	return RFL_OK;
}
