/*
 * engine_device.h - private to the torch engine: what it keeps per device, for
 * engine_device.c and engine_graph.c.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_DEVICE_H
#define RFL_RUNNER_TORCH_ENGINE_DEVICE_H

#include "runner/torch/batch_slots.h"
#include "runner/torch/engine_parts.h"
#include "runner/torch/shim_device.h"

/* A batch on the device. */
struct rfl_torch__copy {
	struct rfl_torch_tensor *input, *labels;
};

/* A recorded step: what it reads, and what it leaves. */
struct rfl_torch__recording {
	struct rfl_torch_graph *graph; /* NULL: nothing is recorded */
	struct rfl_torch__copy reads;
	struct rfl_batch batch; /* its shape; id: whose values `reads` holds, 0: unknown */
	struct rfl_torch_tensor *loss, *logits;
	bool backward, step;
};

struct rfl_torch__device {
	struct rfl_torch_device *on; /* of the shim */
	size_t slab_bytes;           /* of e->slab */
	struct rfl_batch_slots slots;
	struct rfl_torch__copy copy[RFL_BATCH_SLOTS];
	int64_t events; /* there is room for */
	int64_t steps;  /* forwards in e->mode since it was set */
	enum rfl_engine_mode mode;
	struct rfl_torch__recording recording;
};

#endif
