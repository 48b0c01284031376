/*
 * engine_device.c - the parts of the torch engine that depend on the device: parameter memory,
 * batch copies, events, synchronization, recorded steps. On the CPU, parameters and batches are
 * used in place and calls are synchronous, so most of these functions do nothing.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_HUGEPAGE */
#include "runner/torch/engine_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/dl.h"
#include "runner/torch/engine_rules.h"

#define HUGE_PAGE ((size_t)2 << 20)

struct rfl_torch__device {
	struct rfl_torch_device *on; /* the device of the shim */
	size_t slab_bytes;           /* size of e->slab */
	struct rfl_batch_slots slots;
	struct rfl_torch__pair copy[RFL_BATCH_SLOTS];
	int64_t events;     /* reserved */
	int64_t steps;      /* forward passes since e->mode was set */
	double batch_bytes; /* size of the last batch in host memory */
	enum rfl_engine_mode mode;
	/* A recorded step. Its kernels use fixed addresses: each batch is copied into `reads`, and
	 * gradients stay in the recorded memory. */
	struct {
		bool made;
		struct rfl_torch__pair reads;
		struct rfl_batch batch; /* shape and id of `reads`; id 0: unknown */
		struct rfl_torch_tensor *loss, *logits;
		bool backward, step;
	} recording;
};

static bool is_cpu(const struct rfl_engine *e)
{
	return e->config.device == RFL_DEVICE_CPU;
}

static void drop_pair(struct rfl_torch__pair *p)
{
	rfl_torch__drop(&p->input);
	rfl_torch__drop(&p->labels);
}

/* Convert both tensors to another form; on failure, neither. */
static enum rfl_rc pair_as(const struct rfl_torch_tensor *input,
			   const struct rfl_torch_tensor *labels, enum rfl_torch_form form,
			   struct rfl_torch__pair *ret, const char *what, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_torch_tensor_as(input, form, &ret->input, what, err);

	if (rc == RFL_OK)
		rc = rfl_torch_tensor_as(labels, form, &ret->labels, what, err);
	if (rc != RFL_OK)
		rfl_torch__drop(&ret->input);
	return rc;
}

/* ------------------------------------------------------------------ opening and closing */

enum rfl_rc rfl_torch__device_probe(enum rfl_device device, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;

	if (rfl_torch_device_probe(device, &why) == RFL_OK)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, "torch: %s", why.msg);
}

static enum rfl_rc facts_of(const struct rfl_engine *e, struct rfl_torch_facts *facts,
			    struct rfl_err *err)
{
	return rfl_torch_device_facts(e->device->on, facts, err);
}

enum rfl_rc rfl_torch__device_open(struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_torch_facts facts;
	const char *missing;
	enum rfl_rc rc;

	e->device = calloc(1, sizeof(*e->device));
	if (!e->device)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	rc = rfl_torch_device_open(e->config.device, &e->device->on,
				   rfl_device_names[e->config.device], err);
	if (rc != RFL_OK || (rc = facts_of(e, &facts, err)) != RFL_OK)
		return rc;
	missing = rfl_cuda_precision_missing(e->config.precision, e->cast, facts.capability);
	if (missing)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: %s: %s", facts.name, missing);
	return RFL_OK;
}

void rfl_torch__device_close(struct rfl_engine *e)
{
	struct rfl_torch__device *d = e->device;

	if (!d)
		return;
	if (d->on)
		rfl_torch__graph_forget(e);
	for (int i = 0; i < RFL_BATCH_SLOTS; i++)
		drop_pair(&d->copy[i]);
	rfl_torch_device_close(d->on);
	if (e->slab)
		(void)munmap(e->slab, d->slab_bytes);
	free(d);
	e->device = NULL;
}

enum rfl_rc rfl_torch__device_block(struct rfl_engine *e, int64_t floats, struct rfl_err *err)
{
	const size_t bytes = ((size_t)floats * sizeof(float) + HUGE_PAGE) & ~(HUGE_PAGE - 1);
	void *memory;

	if (!is_cpu(e))
		return rfl_torch_device_zeros(e->device->on, floats, &e->block, err);
	/* new pages are zero, and huge pages make the first touch cheap */
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return rfl_fail(err, RFL_EDEVMEM, 0,
				"torch: out of memory: %zu bytes of parameters", bytes);
#ifdef MADV_HUGEPAGE
	(void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
	e->slab = memory;
	e->device->slab_bytes = bytes;
	return rfl_torch_wrap(memory, RFL_TORCH_F32, 1, &floats, NULL, &e->block, "parameters",
			      err);
}

/* ------------------------------------------------------------------ batches */

typedef enum rfl_rc (*move_fn)(struct rfl_torch_device *d, const struct rfl_torch_tensor *host,
			       struct rfl_torch_tensor **ret, const char *what,
			       struct rfl_err *err);

/* Copy both tensors of a batch to the device; on failure, neither. */
static enum rfl_rc move(struct rfl_torch_device *d, move_fn fn, const struct rfl_torch__pair *host,
			struct rfl_torch__pair *ret, struct rfl_err *err)
{
	struct rfl_torch__pair made = { .input = NULL };
	enum rfl_rc rc = fn(d, host->input, &made.input, "copy of the inputs to the device", err);

	if (rc == RFL_OK)
		rc = fn(d, host->labels, &made.labels, "copy of the labels to the device", err);
	if (rc != RFL_OK)
		rfl_torch_tensor_free(made.input);
	else
		*ret = made;
	return rc;
}

static enum rfl_rc fill_slot(struct rfl_torch__device *d, int slot, move_fn fn,
			     const struct rfl_torch__pair *host, struct rfl_err *err)
{
	enum rfl_rc rc;

	drop_pair(&d->copy[slot]);
	rc = move(d->on, fn, host, &d->copy[slot], err);
	if (rc != RFL_OK)
		rfl_batch_slots_drop(&d->slots, slot);
	return rc;
}

enum rfl_rc rfl_torch__device_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				    struct rfl_torch__pair *io, struct rfl_err *err)
{
	struct rfl_torch__device *d = e->device;
	struct rfl_torch__pair there = { .input = NULL }, *kept;
	enum rfl_rc rc = RFL_OK;
	int slot;

	if (d->mode != e->mode) /* recording requires earlier ordinary steps in the same mode */
		d->steps = 0;
	d->mode = e->mode;
	d->steps++;
	if (is_cpu(e)) {
		d->batch_bytes =
			rfl_torch_tensor_bytes(io->input) + rfl_torch_tensor_bytes(io->labels);
		return RFL_OK;
	}
	slot = rfl_batch_slots_find(&d->slots, batch);
	if (slot < 0 && batch->id != 0) {
		slot = rfl_batch_slots_take(&d->slots, batch, false);
		if (slot >= 0)
			rc = fill_slot(d, slot, rfl_torch_device_bring, io, err);
	}
	if (rc == RFL_OK && slot < 0)
		rc = move(d->on, rfl_torch_device_bring, io, &there, err);
	if (rc != RFL_OK)
		return rc;
	if (slot >= 0) { /* the batch has a copy in a slot */
		kept = &d->copy[slot];
		if ((rc = rfl_torch_device_use(d->on, kept->input, err)) == RFL_OK &&
		    (rc = rfl_torch_device_use(d->on, kept->labels, err)) == RFL_OK)
			rc = pair_as(kept->input, kept->labels, RFL_TORCH_SAME, &there, "batch",
				     err);
		if (!rfl_batch_slots_use(&d->slots, slot))
			drop_pair(kept);
		if (rc != RFL_OK)
			return rc;
	}
	drop_pair(io);
	*io = there;
	return RFL_OK;
}

enum rfl_rc rfl_torch__upload(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err)
{
	struct rfl_torch__device *d = e->device;
	struct rfl_torch__pair host;
	enum rfl_rc rc;
	int slot;

	if (is_cpu(e) || rfl_batch_slots_find(&d->slots, batch) >= 0)
		return RFL_OK;
	rc = rfl_torch__wrap_batch(e, batch, &host, err);
	if (rc != RFL_OK)
		return rc;
	slot = rfl_batch_slots_take(&d->slots, batch, true);
	if (slot >= 0)
		rc = fill_slot(d, slot, rfl_torch_device_copy, &host, err);
	else
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "torch: %d uploaded batches await forward; run it first",
			      RFL_BATCH_SLOTS);
	drop_pair(&host);
	return rc;
}

enum rfl_rc rfl_torch__uploaded(struct rfl_engine *e, struct rfl_err *err)
{
	return rfl_torch_device_do(e->device->on, RFL_TORCH_SYNC_COPIES, "upload", err);
}

enum rfl_rc rfl_torch__host_alloc(struct rfl_engine *e, size_t bytes, void **ret,
				  struct rfl_err *err)
{
	if (e->config.device != RFL_DEVICE_CUDA)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: page-locked memory requires a CUDA device, but this is %s",
				rfl_device_names[e->config.device]);
	return rfl_torch_device_host_alloc(e->device->on, bytes, ret, err);
}

void rfl_torch__host_free(struct rfl_engine *e, void *memory)
{
	rfl_torch_device_host_free(e->device->on, memory);
}

/* ------------------------------------------------------------------ events */

enum rfl_rc rfl_torch__reserve_events(struct rfl_engine *e, int64_t n, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (e->config.device == RFL_DEVICE_MPS)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: an Apple GPU has no events; synchronise it instead");
	if (n < 0)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: the number of events is negative: %lld",
				(long long)n);
	rc = rfl_torch_device_reserve(e->device->on, n, err);
	if (rc == RFL_OK && n > e->device->events)
		e->device->events = n;
	return rc;
}

static enum rfl_rc check_event(const struct rfl_engine *e, int64_t i, struct rfl_err *err)
{
	if (i >= 0 && i < e->device->events)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0,
			"torch: event %lld does not exist; reserve more than %lld", (long long)i,
			(long long)e->device->events);
}

enum rfl_rc rfl_torch__record_event(struct rfl_engine *e, int64_t i, struct rfl_err *err)
{
	enum rfl_rc rc = check_event(e, i, err);

	if (rc != RFL_OK)
		return rc;
	return rfl_torch_device_record(e->device->on, i, err);
}

enum rfl_rc rfl_torch__elapsed(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
			       struct rfl_err *err)
{
	enum rfl_rc rc;

	if ((rc = check_event(e, from, err)) != RFL_OK || (rc = check_event(e, to, err)) != RFL_OK)
		return rc;
	return rfl_torch_device_elapsed(e->device->on, from, to, ret, err);
}

/* ------------------------------------------------------------------ waiting, memory, facts */

enum rfl_rc rfl_torch__device_sync(struct rfl_engine *e, struct rfl_err *err)
{
	return rfl_torch_device_do(e->device->on, RFL_TORCH_SYNC, "wait for the device", err);
}

enum rfl_rc rfl_torch__device_memory(struct rfl_engine *e, struct rfl_engine_memory *ret,
				     struct rfl_err *err)
{
	return rfl_torch_device_memory(e->device->on, &ret->allocated_peak_bytes,
				       &ret->reserved_peak_bytes, err);
}

enum rfl_rc rfl_torch__reset_memory(struct rfl_engine *e, struct rfl_err *err)
{
	return rfl_torch_device_do(e->device->on, RFL_TORCH_RESET_MEMORY, "memory", err);
}

/* What exists before and after is not counted, so nothing may be freed that was allocated on the
 * other side: drop the results of the last step. */
enum rfl_rc rfl_torch__watch_memory(struct rfl_engine *e, bool on, struct rfl_err *err)
{
	double held = e->device->batch_bytes + rfl_torch_tensor_bytes(e->block) + e->tables_bytes;
	enum rfl_rc rc = rfl_torch__zero_grad(e, err);

	rfl_torch__forget_step(e);
	if (e->optim)
		held += rfl_torch_optim_bytes(e->optim);
	return rc ? rc : rfl_torch_device_watch(e->device->on, on, held, err);
}

enum rfl_rc rfl_torch__in_use(struct rfl_engine *e, double *now_bytes, double *peak_bytes,
			      struct rfl_err *err)
{
	return rfl_torch_device_in_use(e->device->on, now_bytes, peak_bytes, err);
}

enum rfl_rc rfl_torch__device_info(struct rfl_engine *e, struct rfl_engine_device *ret,
				   struct rfl_err *err)
{
	/* libraries loaded by libtorch; looked up by name, so no headers are needed */
	static const char *const cudnn[] = { "libcudnn.so.9", "libcudnn.so.8", NULL };
	static const char *const nccl[] = { "libnccl.so.2", NULL };
	size_t (*cudnn_version)(void) = NULL;
	int (*nccl_version)(int *version) = NULL;
	const struct rfl_dl_symbol of_cudnn = { "cudnnGetVersion", &cudnn_version, false };
	const struct rfl_dl_symbol of_nccl = { "ncclGetVersion", &nccl_version, false };
	struct rfl_engine_device info = { .memory_bytes = -1 };
	struct rfl_torch_facts facts;
	struct rfl_dl *dl = NULL;
	int number = 0;
	enum rfl_rc rc = facts_of(e, &facts, err);

	if (rc != RFL_OK)
		return rc;
	memcpy(info.name, facts.name, sizeof(info.name));
	rfl_pci_bus_id_text(facts.pci_domain, facts.pci_bus, facts.pci_device, info.pci_bus_id,
			    sizeof(info.pci_bus_id));
	rfl_cuda_version_text(facts.runtime, info.cuda_runtime, sizeof(info.cuda_runtime));
	rfl_cuda_version_text(facts.driver, info.cuda_driver, sizeof(info.cuda_driver));
	info.memory_bytes = facts.memory_bytes;
	if (e->config.device == RFL_DEVICE_CUDA &&
	    rfl_dl_open(cudnn, RFL_DL_MAPPED, &of_cudnn, 1, &dl, NULL) == RFL_OK) {
		rfl_library_version_text((int)cudnn_version(), RFL_CUDNN_WIDE, info.cudnn,
					 sizeof(info.cudnn));
		rfl_dl_close(dl);
	}
	if (e->config.device == RFL_DEVICE_CUDA &&
	    rfl_dl_open(nccl, RFL_DL_MAPPED, &of_nccl, 1, &dl, NULL) == RFL_OK) {
		if (nccl_version(&number) == 0)
			rfl_library_version_text(number, RFL_NCCL_WIDE, info.nccl,
						 sizeof(info.nccl));
		rfl_dl_close(dl);
	}
	*ret = info;
	return RFL_OK;
}

/* ------------------------------------------------------------------ recorded steps */

void rfl_torch__graph_forget(struct rfl_engine *e)
{
	struct rfl_torch__device *d = e->device;

	(void)!rfl_torch_device_do(d->on, RFL_TORCH_GRAPH_DROP, NULL, NULL);
	drop_pair(&d->recording.reads);
	rfl_torch_tensor_free(d->recording.loss);
	rfl_torch_tensor_free(d->recording.logits);
	memset(&d->recording, 0, sizeof(d->recording));
}

static enum rfl_rc check_recordable(const struct rfl_engine *e, bool backward, bool step,
				    struct rfl_err *err)
{
	const struct rfl_graph_facts facts = {
		.missing = rfl_torch_graph_missing(e->device->on),
		.step = step,
		.rule = e->config.optimizer.rule,
		.fused = e->fused,
		.scaled = e->scaled,
		.marked = e->marks.fn != NULL,
		.exchanged = e->group != NULL,
		.steps = e->device->steps,
		.updates = e->updates,
	};
	const char *why = rfl_graph_refusal(&facts);

	if (step && !backward)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: a step needs gradients; record backward too");
	if (backward && e->mode == RFL_ENGINE_EVAL)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: backward requires a training mode");
	if (why)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: a step cannot be recorded: %s",
				why);
	return RFL_OK;
}

/* Nothing may wait for the device between begin and end; end is called even after a failure. */
static enum rfl_rc record(struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_torch__device *d = e->device;
	struct rfl_torch_tensor *input = NULL;
	enum rfl_rc ended, rc = rfl_torch_device_do(d->on, RFL_TORCH_GRAPH_BEGIN, "recording", err);

	if (rc != RFL_OK)
		return rc;
	rc = rfl_torch_tensor_as(d->recording.reads.input, RFL_TORCH_SAME, &input, "inputs", err);
	if (rc == RFL_OK)
		rc = rfl_torch__forward_on(e, input, d->recording.reads.labels, NULL, NULL, err);
	if (rc == RFL_OK && d->recording.backward)
		rc = rfl_torch__backward(e, NULL, err);
	if (rc == RFL_OK && d->recording.step)
		rc = rfl_torch__step(e, err);
	ended = rfl_torch_device_do(d->on, RFL_TORCH_GRAPH_END, "recording",
				    rc == RFL_OK ? err : NULL);
	if (rc != RFL_OK || ended != RFL_OK)
		return rc != RFL_OK ? rc : ended;
	if ((rc = rfl_torch_tensor_as(e->loss, RFL_TORCH_SAME, &d->recording.loss, "recording",
				      err)) != RFL_OK)
		return rc;
	return rfl_torch_tensor_as(e->logits, RFL_TORCH_SAME, &d->recording.logits, "recording",
				   err);
}

/* Drop the tensors left by recording: their values were never computed. */
static void clean_up(struct rfl_engine *e)
{
	rfl_torch__forget_step(e);
	(void)rfl_torch__zero_grad(e, NULL);
	rfl_torch__graph_forget(e);
}

enum rfl_rc rfl_torch__capture(struct rfl_engine *e, const struct rfl_batch *batch, bool backward,
			       bool step, struct rfl_err *err)
{
	struct rfl_torch__device *d = e->device;
	struct rfl_torch__pair given = { .input = NULL };
	enum rfl_rc rc = check_recordable(e, backward, step, err);

	if (rc != RFL_OK)
		return rc;
	clean_up(e); /* so that the gradients are allocated in the recording's memory */
	d->recording.batch = *batch;
	d->recording.backward = backward;
	d->recording.step = step;

	/* the recording reads a separate copy of the inputs */
	rc = rfl_torch__take_batch(e, batch, &given, err);
	if (rc == RFL_OK)
		rc = pair_as(given.input, given.labels, RFL_TORCH_COPIED, &d->recording.reads,
			     "inputs", err);
	drop_pair(&given);
	if (rc == RFL_OK)
		rc = record(e, err);
	e->can_backward = e->has_grads = false;
	d->recording.made = rc == RFL_OK;
	if (rc == RFL_OK)
		return RFL_OK;
	clean_up(e);
	if (rc == RFL_EDEVMEM)
		return rc;
	if (err) {
		err->rc = RFL_EUNSUPPORTED;
		rfl_err_prefix(err, "torch: a step cannot be recorded");
	}
	return RFL_EUNSUPPORTED;
}

enum rfl_rc rfl_torch__replay(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err)
{
	struct rfl_torch__device *d = e->device;
	struct rfl_batch *held = &d->recording.batch;
	struct rfl_torch__pair given = { .input = NULL };
	enum rfl_rc rc;

	if (!d->recording.made)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: no recorded step to replay; record one first");
	if (batch->n != held->n || batch->kind != held->kind)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: the recorded step has %lld samples, not %lld",
				(long long)held->n, (long long)batch->n);

	/* copy the batch into the recorded inputs unless they already contain it */
	if (batch->id == 0 || batch->id != held->id || batch->images != held->images) {
		held->id = 0;
		rc = rfl_torch__take_batch(e, batch, &given, err);
		if (rc != RFL_OK)
			return rc;
		rc = rfl_torch_tensor_copy(d->recording.reads.input, given.input, err);
		if (rc == RFL_OK)
			rc = rfl_torch_tensor_copy(d->recording.reads.labels, given.labels, err);
		drop_pair(&given);
		if (rc != RFL_OK)
			return rc;
		*held = *batch;
	}
	rc = rfl_torch_device_do(d->on, RFL_TORCH_GRAPH_REPLAY, "replay", err);
	if (rc != RFL_OK)
		return rc;
	rfl_torch__forget_step(e);
	rc = rfl_torch_tensor_as(d->recording.loss, RFL_TORCH_SAME, &e->loss, "replay", err);
	if (rc == RFL_OK)
		rc = rfl_torch_tensor_as(d->recording.logits, RFL_TORCH_SAME, &e->logits, "replay",
					 err);
	e->has_grads = rc == RFL_OK && d->recording.backward && !d->recording.step;
	return rc;
}
