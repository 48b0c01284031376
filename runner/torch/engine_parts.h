/*
 * engine_parts.h - private to the torch engine: its state, and functions shared by its files.
 * Functions without a comment implement members of struct rfl_engine_ops.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_PARTS_H
#define RFL_RUNNER_TORCH_ENGINE_PARTS_H

#include "runner/engine.h"
#include "runner/torch/shim.h"

/* The names of a node's marks, and the context of its autograd hook. */
struct rfl_torch__node_mark {
	struct rfl_engine *e;
	char *forward, *backward; /* "fwd/conv1", "bwd/conv1" */
};

/* A batch, ready for the first node. */
struct rfl_torch__pair {
	struct rfl_torch_tensor *input, *labels;
};

struct rfl_engine {
	const struct rfl_engine_ops *ops;
	const struct rfl_net *net; /* borrowed */
	struct rfl_engine_config config;
	enum rfl_engine_mode mode;

	struct rfl_torch__device *device; /* see engine_device.c; NULL until it is open */
	struct rfl_torch_tensor
		*block;  /* all parameters and buffers, each at a multiple of 64 bytes */
	float *slab;     /* the block's memory if it is host memory, else NULL */
	int64_t *offset; /* per parameter: its offset in the block, in elements */
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
	bool can_backward;              /* the last forward pass recorded its history */
	bool has_grads;                 /* backward has run, but step has not */
	bool layout_checked;
	int64_t updates; /* since the optimizer was created, reset or restored */

	struct rfl_torch_group *group;    /* NULL: a single process */
	struct rfl_torch_snapshot *saved; /* NULL: none */
	struct {
		rfl_engine_mark_fn fn; /* NULL: off */
		void *ctx;
		struct rfl_torch__node_mark *nodes; /* one per node, then the loss; NULL: off */
		struct rfl_err failure; /* failure of fn in backward: hooks cannot return it */
	} marks;
};

/** Free a tensor and set the pointer to NULL. */
void rfl_torch__drop(struct rfl_torch_tensor **t);

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

const char *rfl_torch__unsupported(enum rfl_op op, enum rfl_precision precision);
enum rfl_rc rfl_torch__zero_grad(struct rfl_engine *e, struct rfl_err *err);
enum rfl_rc rfl_torch__forward(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err);
enum rfl_rc rfl_torch__forward_traced(struct rfl_engine *e, const struct rfl_batch *batch,
				      rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err);
enum rfl_rc rfl_torch__backward(struct rfl_engine *e, const struct rfl_backward *how,
				struct rfl_err *err);
enum rfl_rc rfl_torch__step(struct rfl_engine *e, struct rfl_err *err);
enum rfl_rc rfl_torch__reset_optimizer(struct rfl_engine *e, struct rfl_err *err);
enum rfl_rc rfl_torch__scaling(struct rfl_engine *e, struct rfl_loss_scaling *ret,
			       struct rfl_err *err);
enum rfl_rc rfl_torch__loss(struct rfl_engine *e, double *ret, struct rfl_err *err);
enum rfl_rc rfl_torch__score(struct rfl_engine *e, struct rfl_score *ret, struct rfl_err *err);
enum rfl_rc rfl_torch__logits(struct rfl_engine *e, float *out, int64_t numel, struct rfl_err *err);

/* ---- the device (engine_device.c) ---- */

/** Fill e->device. Call it after setting up the library and before allocating anything. */
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

enum rfl_rc rfl_torch__device_probe(enum rfl_device device, struct rfl_err *err);
enum rfl_rc rfl_torch__device_sync(struct rfl_engine *e, struct rfl_err *err);
enum rfl_rc rfl_torch__device_memory(struct rfl_engine *e, struct rfl_engine_memory *ret,
				     struct rfl_err *err);
enum rfl_rc rfl_torch__reset_memory(struct rfl_engine *e, struct rfl_err *err);
enum rfl_rc rfl_torch__watch_memory(struct rfl_engine *e, bool on, struct rfl_err *err);
enum rfl_rc rfl_torch__in_use(struct rfl_engine *e, double *now_bytes, double *peak_bytes,
			      struct rfl_err *err);
enum rfl_rc rfl_torch__device_info(struct rfl_engine *e, struct rfl_engine_device *ret,
				   struct rfl_err *err);
enum rfl_rc rfl_torch__host_alloc(struct rfl_engine *e, size_t bytes, void **ret,
				  struct rfl_err *err);
void rfl_torch__host_free(struct rfl_engine *e, void *memory);
enum rfl_rc rfl_torch__upload(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err);
enum rfl_rc rfl_torch__uploaded(struct rfl_engine *e, struct rfl_err *err);
enum rfl_rc rfl_torch__reserve_events(struct rfl_engine *e, int64_t n, struct rfl_err *err);
enum rfl_rc rfl_torch__record_event(struct rfl_engine *e, int64_t i, struct rfl_err *err);
enum rfl_rc rfl_torch__elapsed(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
			       struct rfl_err *err);
enum rfl_rc rfl_torch__capture(struct rfl_engine *e, const struct rfl_batch *batch, bool backward,
			       bool step, struct rfl_err *err);
enum rfl_rc rfl_torch__replay(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err);

/** Report that a node begins; the index after the last node is the loss. No-op if marks are off. */
enum rfl_rc rfl_torch__mark_forward(struct rfl_engine *e, int node, struct rfl_err *err);
/** Make backward report when it reaches the operation that produced `value`. */
enum rfl_rc rfl_torch__mark_later(struct rfl_engine *e, int node,
				  const struct rfl_torch_tensor *value, struct rfl_err *err);

/** Create the tables of all nodes that need one. */
enum rfl_rc rfl_torch__make_tables(struct rfl_engine *e, struct rfl_err *err);
/** Return the tables of a node, borrowed: cosines and sines for a rotation, else a single table. */
struct rfl_torch_tensor *const *rfl_torch__tables_of(const struct rfl_engine *e,
						     const struct rfl_node *node);
/** Return the reason why a node's table is unknown; NULL if it is known or not needed. */
const char *rfl_torch__unknown_table(const struct rfl_node *node);
void rfl_torch__tables_fini(struct rfl_engine *e);

#endif
