/*
 * engine_parts.h - private to the torch engine: its state, and functions shared by its files. The
 * members of struct rfl_engine_ops that only call libtorch are implemented in the shim's files.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_PARTS_H
#define RFL_RUNNER_TORCH_ENGINE_PARTS_H

#include "runner/engine.h"
#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The members of struct rfl_engine_ops: rfl_torch__<member>() implements each. */
/* clang-format off */
#define RFL_TORCH__OPS(X) \
	X(probe) X(library_version) X(unsupported) X(open) X(close) X(set_mode) \
	X(set_optimizer) X(zero_grad) X(forward) \
	X(forward_traced) X(backward) X(step) \
	X(reset_optimizer) X(loss) X(logits) \
	X(set_param) X(get_param) X(get_grad) \
	X(param_data) X(sync) X(memory) \
	X(snapshot) X(restore) X(mark) X(device_info) \
	X(reset_memory) X(scaling) X(host_alloc) \
	X(host_free) X(upload) X(uploaded) \
	X(reserve_events) X(record_event) X(elapsed) X(capture) X(replay) X(join) \
	X(gather) X(optimizer_kernels) X(score) X(visit_state) X(watch_memory)
/* clang-format on */

#define RFL_TORCH__DECLARE(member) \
	__typeof__(*((struct rfl_engine_ops *)0)->member) rfl_torch__##member;
RFL_TORCH__OPS(RFL_TORCH__DECLARE)

/* The names of a node's marks: "fwd/conv1", "bwd/conv1". */
struct rfl_torch__node_mark {
	const char *forward, *backward;
};

/* A batch, ready for the first node. */
struct rfl_torch__pair {
	struct rfl_torch_tensor *input, *labels;
};

/* A batch with its copy on the device. n 0: none. */
struct rfl_torch__copy {
	struct rfl_batch batch;
	struct rfl_torch__pair io;
};

struct rfl_engine {
	const struct rfl_engine_ops *ops;
	const struct rfl_net *net; /* borrowed */
	struct rfl_engine_config config;
	enum rfl_engine_mode mode;

	struct rfl_torch_device *device;
	struct rfl_torch_tensor
		*block;    /* all parameters and buffers, each at a multiple of 64 bytes */
	float *slab;       /* the block's memory if it is host memory, else NULL */
	size_t slab_bytes; /* its size */
	int64_t *offset;   /* per parameter: its offset in the block, in elements */
	struct rfl_torch_tensor **param; /* per parameter: a leaf over its part of the block */
	struct rfl_torch_optim *optim;
	enum rfl_cast cast; /* the precision's cast on this device */
	bool scaled;        /* the loss is scaled to prevent fp16 underflow */
	bool fused;         /* an update is one pass */

	struct rfl_torch_tensor **value;  /* per node: its output while it is needed */
	int *last_use;                    /* per node: the last node that reads it */
	struct rfl_torch_tensor **tables; /* see engine_tables.c; NULL before the first run */
	double tables_bytes;              /* a table of several nodes counts once */
	struct rfl_torch_tensor *logits;  /* logits of the last forward pass */
	struct rfl_torch_tensor *loss;
	struct rfl_torch_tensor *score; /* sums since the last score(); NULL: no forward */
	int64_t batch_n;                /* samples of the last batch */
	double batch_bytes;             /* its size in host memory */
	bool can_backward;              /* the last forward pass recorded its history */
	bool has_grads;                 /* backward has run, but step has not */
	bool layout_checked;
	int64_t updates; /* since the optimizer was created, reset or restored */
	int64_t steps;   /* forward passes since the mode was set */

	struct rfl_torch__copy ahead; /* uploaded, but its forward pass has not run */
	struct rfl_torch__copy kept;  /* the last batch with an id */
	/* A recorded step. Its kernels use fixed addresses: each batch is copied into `reads`, and
	 * gradients stay in the recorded memory. */
	struct {
		bool made;
		struct rfl_torch__copy reads; /* batch.id 0: unknown contents */
		struct rfl_torch_tensor *loss, *logits;
		bool backward, step;
	} recording;

	struct rfl_torch_group *group;    /* NULL: a single process */
	struct rfl_torch_snapshot *saved; /* NULL: none */
	struct {
		rfl_engine_mark_fn fn; /* NULL: off */
		void *ctx;
		struct rfl_arena *arena;            /* owns the nodes and their names */
		struct rfl_torch__node_mark *nodes; /* one per node, then the loss */
		struct rfl_err failure; /* failure of fn in backward: hooks cannot return it */
	} marks;
};

/** Free a tensor and set the pointer to NULL. */
void rfl_torch__drop(struct rfl_torch_tensor **t);
void rfl_torch__drop_pair(struct rfl_torch__pair *p);

/* ---- a step (engine_step.c) ---- */

/** Find the last reader of each node's output. */
void rfl_torch__plan(struct rfl_engine *e);
/** Free the loss and the logits of the last step. */
void rfl_torch__forget_step(struct rfl_engine *e);
/** Create tensors over the memory of a batch. @param ret  set on success only */
enum rfl_rc rfl_torch__wrap_batch(const struct rfl_engine *e, const struct rfl_batch *batch,
				  struct rfl_torch__pair *ret, struct rfl_err *err);
/** Prepare a batch on the engine's device, in its layout, normalised. @param ret  set on success
 * only; the caller frees both tensors */
enum rfl_rc rfl_torch__take_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				  struct rfl_torch__pair *ret, struct rfl_err *err);
/**
 * Run the forward pass and compute the loss.
 * @param take_input  released as soon as it is no longer needed, also on failure
 * @param fn          may be NULL
 */
enum rfl_rc rfl_torch__forward_on(struct rfl_engine *e, struct rfl_torch_tensor *take_input,
				  const struct rfl_torch_tensor *labels, rfl_engine_trace_fn fn,
				  void *ctx, struct rfl_err *err);
void rfl_torch__run_fini(struct rfl_engine *e);

/* ---- the device (engine_device.c) ---- */

/** Open the device. Call it after setting up the library and before allocating anything. */
enum rfl_rc rfl_torch__device_open(struct rfl_engine *e, struct rfl_err *err);
/** Call it last. Accepts an engine that could not be opened. */
void rfl_torch__device_close(struct rfl_engine *e);
/** Allocate zeroed memory for the parameters. Sets e->block and, for host memory, e->slab. */
enum rfl_rc rfl_torch__device_block(struct rfl_engine *e, int64_t floats, struct rfl_err *err);
/** Replace host tensors with copies on the device, which may have been uploaded earlier. */
enum rfl_rc rfl_torch__device_batch(struct rfl_engine *e, const struct rfl_batch *batch,
				    struct rfl_torch__pair *io, struct rfl_err *err);
/** Drop the recorded step because it no longer matches the engine. */
void rfl_torch__graph_forget(struct rfl_engine *e);

/* ---- marks (engine.c) and tables (engine_tables.c) ---- */

/** Report that a node begins; the index after the last node is the loss. No-op if marks are off. */
enum rfl_rc rfl_torch__mark_forward(struct rfl_engine *e, int node, struct rfl_err *err);
/** Create the tables of all nodes that need one. */
enum rfl_rc rfl_torch__make_tables(struct rfl_engine *e, struct rfl_err *err);
/** Return the tables of a node, borrowed: cosines and sines for a rotation, else a single table. */
struct rfl_torch_tensor *const *rfl_torch__tables_of(const struct rfl_engine *e,
						     const struct rfl_node *node);
/** Return the reason why a node's table is unknown; NULL if it is known or not needed. */
const char *rfl_torch__unknown_table(const struct rfl_node *node);
void rfl_torch__tables_fini(struct rfl_engine *e);

#ifdef __cplusplus
}
#endif
#endif
