/*
 * reference.h - executes nets of image operations in double precision, forward and backward, one
 * value at a time: what engines are compared with. Images are in NCHW order, dropout passes its
 * input through.
 */
#ifndef RFL_TESTS_UNIT_REFERENCE_H
#define RFL_TESTS_UNIT_REFERENCE_H

#include "runner/engine.h"

struct reference {
	const struct rfl_net *net; /* borrowed */
	struct rfl_arena *arena;   /* has all arrays */
	double **value, **grad;    /* per node: n * numel */
	double **param, **param_grad;
	double **first, **second; /* per parameter: state of the optimizer */
	int64_t updates;
	/* of the last forward */
	enum rfl_engine_mode mode;
	int64_t n;
	const int64_t *labels; /* borrowed */
	double *seed;          /* gradient of the loss by the logits */
	double loss;
	int64_t correct;
};

/* For batches of at most max_batch samples; all parameters are zeros. */
struct reference *reference_new(const struct rfl_net *net, int64_t max_batch);
void reference_free(struct reference *r); /* accepts NULL */

/* Run the net on n images in NCHW order; in RFL_ENGINE_TRAIN, update the running statistics. */
void reference_forward(struct reference *r, enum rfl_engine_mode mode, const float *images,
		       const int64_t *labels, int64_t n);
void reference_zero_grad(struct reference *r);
/* Add weight times the gradients of the last forward's loss. */
void reference_backward(struct reference *r, double weight);
/* Update the parameters as struct rfl_optimizer says. @return the norm of all gradients */
double reference_step(struct reference *r, const struct rfl_optimizer *o);

#endif
