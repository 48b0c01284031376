/*
 * engine_torch_device.c - what differs between devices in the torch engine: where the parameters
 * lie, how a batch gets there, waiting, memory.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_HUGEPAGE */
#include "runner/engine_torch.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

struct rfl_torch__device {
	size_t slab_bytes; /* of e->slab */
};

enum rfl_rc rfl_torch__device_probe(enum rfl_device device, struct rfl_err *err)
{
	if (device == RFL_DEVICE_CPU)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"the torch engine runs on the CPU only; use --backend cpu");
}

enum rfl_rc rfl_torch__device_open(struct rfl_engine *e, struct rfl_err *err)
{
	e->device = calloc(1, sizeof(*e->device));
	return e->device ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
}

void rfl_torch__device_close(struct rfl_engine *e)
{
	if (e->slab && e->device)
		(void)munmap(e->slab, e->device->slab_bytes);
	free(e->device);
}

/* Fresh pages are zero, and huge ones are cheap to touch for the first time. */
enum rfl_rc rfl_torch__device_block(struct rfl_engine *e, int64_t floats, struct rfl_err *err)
{
	const size_t bytes = ((size_t)floats * sizeof(float) + HUGE_PAGE) & ~(HUGE_PAGE - 1);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

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

/* The CPU uses them where the caller has them. */
enum rfl_rc rfl_torch__device_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				    struct rfl_torch_tensor **input,
				    struct rfl_torch_tensor **labels, struct rfl_err *err)
{
	(void)e;
	(void)batch;
	(void)input;
	(void)labels;
	(void)err;
	return RFL_OK;
}

/* The CPU computes before it returns. */
enum rfl_rc rfl_torch__device_sync(struct rfl_engine *e, struct rfl_err *err)
{
	(void)e;
	(void)err;
	return RFL_OK;
}

/* libtorch's CPU allocator is malloc and keeps no account. */
enum rfl_rc rfl_torch__device_memory(struct rfl_engine *e, struct rfl_engine_memory *ret,
				     struct rfl_err *err)
{
	(void)e;
	(void)err;
	*ret = (struct rfl_engine_memory){
		.allocated_peak_bytes = NAN,
		.reserved_peak_bytes = NAN,
	};
	return RFL_OK;
}
