/*
 * backend.h - what the planned engine (engine.c) needs of a library: the memory of the parameters,
 * plans bound to memory and run, updates. Each plugin links one implementation: onednn/ on a CPU,
 * cuda/ on an NVIDIA GPU.
 */
#ifndef RFL_RUNNER_PLANNED_BACKEND_H
#define RFL_RUNNER_PLANNED_BACKEND_H

#include "complexity/plan/plan.h"
#include "runner/engine.h"

/** The library, the parameters and the state of the optimizer. */
struct rfl_backend;
/** A plan with its memory, ready to run. */
struct rfl_session;

/** The version of the library that is loaded. */
const char *rfl_backend_version(void);

/** RFL_OK, or RFL_EUNAVAILABLE with the reason and the fix. */
enum rfl_rc rfl_backend_probe(enum rfl_device device, struct rfl_err *err);

/** @return RFL_OK; RFL_EUNSUPPORTED: the precision; RFL_EUNAVAILABLE: this machine lacks it;
 * RFL_EDEVMEM */
enum rfl_rc rfl_backend_open(const struct rfl_net *net, const struct rfl_engine_config *config,
			     struct rfl_backend **ret, struct rfl_err *err);
void rfl_backend_close(struct rfl_backend *b);

/** Whether its plans must not compute the gradients of a batch norm in place. */
bool rfl_backend_separate(const struct rfl_backend *b);

/** The parts of a parameter. The state of the optimizer begins as zeros. */
enum rfl_part { RFL_PART_VALUE, RFL_PART_MEAN, RFL_PART_SQUARE, RFL_PART_COUNT };

/** Read or write a part of a parameter as float32 in PyTorch's order. */
enum rfl_rc rfl_backend_get(struct rfl_backend *b, int param, enum rfl_part part, float *out,
			    struct rfl_err *err);
enum rfl_rc rfl_backend_set(struct rfl_backend *b, int param, enum rfl_part part,
			    const float *values, struct rfl_err *err);

/** Create the state that the rule needs, if there is none yet. */
enum rfl_rc rfl_backend_make_state(struct rfl_backend *b, const struct rfl_optimizer *optimizer,
				   struct rfl_err *err);
void rfl_backend_clear_state(struct rfl_backend *b);
bool rfl_backend_has(const struct rfl_backend *b, enum rfl_part part);

/** Save all parts, and go back. A plan for training may have changed the layout in between; then
 * *replan is true and all sessions must be made again. */
enum rfl_rc rfl_backend_save(struct rfl_backend *b, struct rfl_err *err);
enum rfl_rc rfl_backend_restore(struct rfl_backend *b, bool *replan, struct rfl_err *err);

/**
 * Make a plan ready to run. A plan for training may change the layout of the parameters for good:
 * other sessions must not exist then, unless one for training was made before.
 * @param take  owned by the session, also on failure
 */
enum rfl_rc rfl_session_new(struct rfl_backend *b, struct rfl_plan *take, struct rfl_session **ret,
			    struct rfl_err *err);
void rfl_session_free(struct rfl_session *s);
const struct rfl_plan *rfl_session_plan(const struct rfl_session *s);

/** What the steps of one pass work on. */
struct rfl_session_call {
	const struct rfl_batch *batch;
	uint64_t counter; /**< distinguishes the dropout of each forward pass */
	int64_t update;   /**< t of the next update: 1 for the first */
};

/** Run one step, without waiting for it where the library allows. The first step, INPUT, takes the
 * batch and the numbers of the call, and begins the loss at 0. */
enum rfl_rc rfl_session_run(struct rfl_session *s, int step, struct rfl_session_call *call,
			    struct rfl_err *err);
enum rfl_rc rfl_session_wait(struct rfl_session *s, struct rfl_err *err);

/** Multiply the gradient of the loss; between the last forward step and the first backward step. */
enum rfl_rc rfl_session_scale_loss(struct rfl_session *s, double weight, struct rfl_err *err);

/** A tensor as float32, contiguous in NCHW order. */
enum rfl_rc rfl_session_output(struct rfl_session *s, int node, float *out, struct rfl_err *err);

/** Add the gradients of this pass to the sums, or replace them if `first`: a step may have several
 * passes. */
enum rfl_rc rfl_session_accumulate(struct rfl_session *s, bool first, struct rfl_err *err);
/** The gradient of a parameter, in PyTorch's order. RFL_EINVAL: it has none. @param summed  the sum
 */
enum rfl_rc rfl_session_gradient(struct rfl_session *s, int param, bool summed, float *out,
				 struct rfl_err *err);
/** Update all parameters with a gradient: the update whose number the last call had. */
enum rfl_rc rfl_session_update(struct rfl_session *s, const struct rfl_optimizer *optimizer,
			       bool summed, struct rfl_err *err);

/** The loss of the last forward pass, and sums over the passes since the last restart. */
struct rfl_totals {
	double loss;
	struct rfl_score score;
};
/** Wait for the last forward pass. @param restart  begin the score again from 0 */
enum rfl_rc rfl_backend_totals(struct rfl_backend *b, bool restart, struct rfl_totals *ret,
			       struct rfl_err *err);

/* Events, as in struct rfl_engine_ops. */
enum rfl_rc rfl_backend_reserve_events(struct rfl_backend *b, int64_t n, struct rfl_err *err);
enum rfl_rc rfl_backend_record_event(struct rfl_backend *b, int64_t i, struct rfl_err *err);
enum rfl_rc rfl_backend_elapsed(struct rfl_backend *b, int64_t from, int64_t to, double *ret,
				struct rfl_err *err);

/** Functions of a back end whose device has a queue and memory of its own, as the members of struct
 * rfl_engine_ops with the same names. */
struct rfl_backend_queue {
	enum rfl_rc (*device_info)(struct rfl_backend *b, struct rfl_engine_device *ret,
				   struct rfl_err *err);
	enum rfl_rc (*scaling)(struct rfl_backend *b, struct rfl_loss_scaling *ret,
			       struct rfl_err *err);
	/** The part of the state that only this back end has. */
	enum rfl_rc (*visit_state)(struct rfl_backend *b, bool load, rfl_engine_state_fn fn,
				   void *ctx, struct rfl_err *err);
	enum rfl_rc (*host_alloc)(struct rfl_backend *b, size_t bytes, void **ret,
				  struct rfl_err *err);
	void (*host_free)(struct rfl_backend *b, void *memory);
	enum rfl_rc (*upload)(struct rfl_backend *b, const struct rfl_batch *batch,
			      struct rfl_err *err);
	enum rfl_rc (*uploaded)(struct rfl_backend *b, struct rfl_err *err);
	/** Between these, steps but INPUT, and updates, are recorded instead of run. end() also
	 * forgets the recording if `keep` is false. */
	enum rfl_rc (*begin)(struct rfl_backend *b, struct rfl_err *err);
	enum rfl_rc (*end)(struct rfl_backend *b, bool keep, struct rfl_err *err);
	enum rfl_rc (*replay)(struct rfl_backend *b, struct rfl_err *err);
	void (*forget)(struct rfl_backend *b);
};
/** NULL: on a CPU. */
extern const struct rfl_backend_queue *const rfl_backend_queue;

/** Bytes in use: parameters, state, sums; and the session's block. s may be NULL. */
int64_t rfl_backend_bytes(const struct rfl_backend *b, const struct rfl_session *s);

#endif
