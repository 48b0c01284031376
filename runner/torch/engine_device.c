/*
 * engine_device.c - the parts of the torch engine that depend on the device: parameter memory,
 * batch copies, recorded steps. On the CPU, parameters and batches are used in place.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_HUGEPAGE */
#include "runner/torch/engine_parts.h"

#include <string.h>
#include <sys/mman.h>

#include "base/dl.h"
#include "runner/torch/engine_rules.h"

#define HUGE_PAGE ((size_t)2 << 20)

static bool is_cpu(const struct rfl_engine *e)
{
	return e->config.device == RFL_DEVICE_CPU;
}

void rfl_torch__drop_pair(struct rfl_torch__pair *p)
{
	rfl_torch__drop(&p->input);
	rfl_torch__drop(&p->labels);
}

static void drop_copy(struct rfl_torch__copy *c)
{
	rfl_torch__drop_pair(&c->io);
	c->batch.n = 0;
}

/* Convert both tensors to another form; on failure, neither. */
static enum rfl_rc pair_as(const struct rfl_torch__pair *from, enum rfl_torch_form form,
			   struct rfl_torch__pair *ret, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_torch_tensor_as(from->input, form, &ret->input, "inputs", err);

	if (rc == RFL_OK)
		rc = rfl_torch_tensor_as(from->labels, form, &ret->labels, "labels", err);
	if (rc != RFL_OK)
		rfl_torch__drop(&ret->input);
	return rc;
}

/* ------------------------------------------------------------------ opening and closing */

enum rfl_rc rfl_torch__device_open(struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_engine_device facts;
	const char *missing;
	int capability;
	enum rfl_rc rc;

	if ((rc = rfl_torch_device_open(e->config.device, &e->device,
					rfl_device_names[e->config.device], err)) ||
	    (rc = rfl_torch_device_facts(e->device, &facts, &capability, err)))
		return rc;
	missing = rfl_cuda_precision_missing(e->config.precision, e->cast, capability);
	if (missing)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: %s: %s", facts.name, missing);
	return RFL_OK;
}

void rfl_torch__device_close(struct rfl_engine *e)
{
	if (!e->device)
		return;
	rfl_torch__graph_forget(e);
	drop_copy(&e->ahead);
	drop_copy(&e->kept);
	rfl_torch_device_close(e->device);
	if (e->slab)
		(void)munmap(e->slab, e->slab_bytes);
}

enum rfl_rc rfl_torch__device_block(struct rfl_engine *e, int64_t floats, struct rfl_err *err)
{
	const size_t bytes = ((size_t)floats * sizeof(float) + HUGE_PAGE) & ~(HUGE_PAGE - 1);
	void *memory;

	if (!is_cpu(e))
		return rfl_torch_device_zeros(e->device, floats, &e->block, err);
	/* new pages are zero, and huge pages make the first touch cheap */
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return rfl_fail(err, RFL_EDEVMEM, 0,
				"torch: out of memory: %zu bytes of parameters", bytes);
#ifdef MADV_HUGEPAGE
	(void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
	e->slab = memory;
	e->slab_bytes = bytes;
	return rfl_torch_wrap(memory, RFL_TORCH_F32, 1, &floats, NULL, &e->block, "parameters",
			      err);
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
	struct rfl_dl *dl = NULL;
	int capability, number = 0;
	enum rfl_rc rc = rfl_torch_device_facts(e->device, ret, &capability, err);

	if (rc != RFL_OK || e->config.device != RFL_DEVICE_CUDA)
		return rc;
	if (rfl_dl_open(cudnn, RFL_DL_MAPPED, &of_cudnn, 1, &dl, NULL) == RFL_OK) {
		rfl_library_version_text((int)cudnn_version(), RFL_CUDNN_WIDE, ret->cudnn,
					 sizeof(ret->cudnn));
		rfl_dl_close(dl);
	}
	if (rfl_dl_open(nccl, RFL_DL_MAPPED, &of_nccl, 1, &dl, NULL) == RFL_OK) {
		if (nccl_version(&number) == 0)
			rfl_library_version_text(number, RFL_NCCL_WIDE, ret->nccl,
						 sizeof(ret->nccl));
		rfl_dl_close(dl);
	}
	return RFL_OK;
}

/* ------------------------------------------------------------------ batches */

/* The copy of a batch on the device, or NULL. */
static struct rfl_torch__copy *copy_of(struct rfl_engine *e, const struct rfl_batch *batch)
{
	if (rfl_batch_same(&e->kept.batch, batch))
		return &e->kept;
	return rfl_batch_same(&e->ahead.batch, batch) ? &e->ahead : NULL;
}

/* Replace a copy; on failure, it is empty. @param wait  until the batch has been copied */
static enum rfl_rc copy_batch(struct rfl_engine *e, const struct rfl_batch *batch,
			      const struct rfl_torch__pair *host, bool wait,
			      struct rfl_torch__copy *to, struct rfl_err *err)
{
	enum rfl_rc rc;

	drop_copy(to);
	if ((rc = rfl_torch_device_copy(e->device, host->input, wait, &to->io.input,
					"copy of the inputs to the device", err)) == RFL_OK &&
	    (rc = rfl_torch_device_copy(e->device, host->labels, wait, &to->io.labels,
					"copy of the labels to the device", err)) == RFL_OK)
		to->batch = *batch;
	else
		drop_copy(to);
	return rc;
}

enum rfl_rc rfl_torch__device_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				    struct rfl_torch__pair *io, struct rfl_err *err)
{
	struct rfl_torch__copy once = { .io = { NULL, NULL } }, *copy;
	struct rfl_torch__pair there = { NULL, NULL };
	enum rfl_rc rc = RFL_OK;

	e->steps++;
	e->batch_bytes = rfl_torch_tensor_bytes(io->input) + rfl_torch_tensor_bytes(io->labels);
	if (is_cpu(e))
		return RFL_OK;
	copy = copy_of(e, batch);
	if (!copy) {
		copy = batch->id ? &e->kept : &once;
		rc = copy_batch(e, batch, io, true, copy, err);
	}
	if (rc == RFL_OK && (rc = rfl_torch_device_use(e->device, copy->io.input, err)) == RFL_OK &&
	    (rc = rfl_torch_device_use(e->device, copy->io.labels, err)) == RFL_OK)
		rc = pair_as(&copy->io, RFL_TORCH_SAME, &there, err);
	if (copy != &e->kept)
		drop_copy(copy);
	if (rc != RFL_OK)
		return rc;
	rfl_torch__drop_pair(io);
	*io = there;
	return RFL_OK;
}

enum rfl_rc rfl_torch__upload(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err)
{
	struct rfl_torch__pair host;
	enum rfl_rc rc;

	if (is_cpu(e) || copy_of(e, batch))
		return RFL_OK;
	if (!batch->id && e->ahead.batch.n)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: an uploaded batch awaits forward; run it first");
	rc = rfl_torch__wrap_batch(e, batch, &host, err);
	if (rc != RFL_OK)
		return rc;
	rc = copy_batch(e, batch, &host, false, batch->id ? &e->kept : &e->ahead, err);
	rfl_torch__drop_pair(&host);
	return rc;
}

/* ------------------------------------------------------------------ recorded steps */

void rfl_torch__graph_forget(struct rfl_engine *e)
{
	(void)!rfl_torch_device_graph(e->device, RFL_TORCH_GRAPH_DROP, NULL);
	drop_copy(&e->recording.reads);
	rfl_torch_tensor_free(e->recording.loss);
	rfl_torch_tensor_free(e->recording.logits);
	memset(&e->recording, 0, sizeof(e->recording));
}

static enum rfl_rc check_recordable(const struct rfl_engine *e, bool backward, bool step,
				    struct rfl_err *err)
{
	const struct rfl_graph_facts facts = {
		.missing = rfl_torch_graph_missing(e->device),
		.step = step,
		.rule = e->config.optimizer.rule,
		.fused = e->fused,
		.scaled = e->scaled,
		.marked = e->marks.fn != NULL,
		.exchanged = e->group != NULL,
		.steps = e->steps,
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
	const struct rfl_torch__pair *reads = &e->recording.reads.io;
	struct rfl_torch_tensor *input = NULL;
	enum rfl_rc ended, rc = rfl_torch_device_graph(e->device, RFL_TORCH_GRAPH_BEGIN, err);

	if (rc != RFL_OK)
		return rc;
	rc = rfl_torch_tensor_as(reads->input, RFL_TORCH_SAME, &input, "inputs", err);
	if (rc == RFL_OK)
		rc = rfl_torch__forward_on(e, input, reads->labels, NULL, NULL, err);
	if (rc == RFL_OK && e->recording.backward)
		rc = rfl_torch__backward(e, NULL, err);
	if (rc == RFL_OK && e->recording.step)
		rc = rfl_torch__step(e, err);
	ended = rfl_torch_device_graph(e->device, RFL_TORCH_GRAPH_END, rc == RFL_OK ? err : NULL);
	if ((rc = rc ? rc : ended) ||
	    (rc = rfl_torch_tensor_as(e->loss, RFL_TORCH_SAME, &e->recording.loss, "recording",
				      err)))
		return rc;
	return rfl_torch_tensor_as(e->logits, RFL_TORCH_SAME, &e->recording.logits, "recording",
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
	struct rfl_torch__pair given = { .input = NULL };
	enum rfl_rc rc = check_recordable(e, backward, step, err);

	if (rc != RFL_OK)
		return rc;
	clean_up(e); /* so that the gradients are allocated in the recording's memory */
	e->recording.reads.batch = *batch;
	e->recording.backward = backward;
	e->recording.step = step;

	/* the recording reads a separate copy of the inputs */
	rc = rfl_torch__take_batch(e, batch, &given, err);
	if (rc == RFL_OK)
		rc = pair_as(&given, RFL_TORCH_COPIED, &e->recording.reads.io, err);
	rfl_torch__drop_pair(&given);
	if (rc == RFL_OK)
		rc = record(e, err);
	e->can_backward = e->has_grads = false;
	e->recording.made = rc == RFL_OK;
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
	struct rfl_torch__copy *reads = &e->recording.reads;
	struct rfl_torch__pair given = { .input = NULL };
	enum rfl_rc rc;

	if (!e->recording.made)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: no recorded step to replay; record one first");
	if (batch->n != reads->batch.n || batch->kind != reads->batch.kind)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: the recorded step has %lld samples, not %lld",
				(long long)reads->batch.n, (long long)batch->n);

	/* copy the batch into the recorded inputs unless they already contain it */
	if (batch->id == 0 || !rfl_batch_same(batch, &reads->batch)) {
		reads->batch.id = 0;
		if ((rc = rfl_torch__take_batch(e, batch, &given, err)) == RFL_OK &&
		    (rc = rfl_torch_tensor_copy(reads->io.input, given.input, err)) == RFL_OK)
			rc = rfl_torch_tensor_copy(reads->io.labels, given.labels, err);
		rfl_torch__drop_pair(&given);
		if (rc != RFL_OK)
			return rc;
		reads->batch = *batch;
	}
	rc = rfl_torch_device_graph(e->device, RFL_TORCH_GRAPH_REPLAY, err);
	if (rc != RFL_OK)
		return rc;
	rfl_torch__forget_step(e);
	rc = rfl_torch_tensor_as(e->recording.loss, RFL_TORCH_SAME, &e->loss, "replay", err);
	if (rc == RFL_OK)
		rc = rfl_torch_tensor_as(e->recording.logits, RFL_TORCH_SAME, &e->logits, "replay",
					 err);
	e->has_grads = rc == RFL_OK && e->recording.backward && !e->recording.step;
	return rc;
}
