/*
 * session.h - private to the verification: one engine on one network, shared by verify.c
 * (sessions, one forward) and verify/train.c (steps of training).
 */
#ifndef RFL_RUNNER_VERIFY_SESSION_H
#define RFL_RUNNER_VERIFY_SESSION_H

#include "runner/verify.h"

/** With the batch of the golden file. */
struct rfl_session {
	const struct rfl_golden *golden;
	const struct rfl_verify_setup *setup;
	const struct rfl_engine_ops *ops;
	struct rfl_net *net;
	struct rfl_engine *engine;
	enum rfl_optimizer_rule rule; /* of the engine */
	int64_t rows;                 /* of logits, all samples together */
	float *images;                /* or */
	int64_t *tokens;
	int64_t *labels;
	float *logits; /* rows * classes */
	float *now;    /* a parameter, as large as the largest */
	float *start;  /* the same before training */
};

/** An engine with this optimizer: the one that there is, or a new one with parameters of zeros. */
enum rfl_rc rfl_verify__open(struct rfl_session *s, const struct rfl_optimizer *optimizer,
			     struct rfl_err *err);

bool rfl_verify__is_bf16(const struct rfl_session *s);

/** The golden batch, in the layout of the engine. */
struct rfl_batch rfl_verify__batch(const struct rfl_session *s);

/** Sum of squares, in double. */
double rfl_verify__squares(const float *x, int64_t n);

/** Repeat a section of a train file and judge it. */
enum rfl_rc rfl_verify__train(struct rfl_session *s, struct rfl_arena *arena,
			      const struct rfl_golden_section *section, struct rfl_checks *checks,
			      struct rfl_err *err);

/** Compute and judge the gradients that a logits file speaks of. */
enum rfl_rc rfl_verify__one_gradient(struct rfl_session *s, struct rfl_arena *arena,
				     struct rfl_checks *checks, struct rfl_err *err);

#endif
