/*
 * host.h - the planned engine's own loops on a CPU: what oneDNN lacks (batch norm fused with an
 * addition and an activation) or what only moves memory. Data is float32 or bfloat16; arithmetic is
 * in float32, sums over more than a row in float64.
 *
 * An image is `rows` x `columns`, row-major: rows are samples x height x width, columns the
 * channels (NHWC). All loops run on the calling thread's OpenMP threads, split rows in the same
 * way, and give the same bits with the same number of threads. Buffers are aligned to 64 bytes and
 * do not overlap unless a comment allows it; a pointer may be NULL only where a comment allows it.
 */
#ifndef RFL_RUNNER_PLANNED_HOST_H
#define RFL_RUNNER_PLANNED_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"

enum rfl_host_type { RFL_HOST_F32, RFL_HOST_BF16 };

/** The size of an element, in bytes. */
static inline size_t rfl_host_size(enum rfl_host_type type)
{
	return type == RFL_HOST_BF16 ? 2 : 4;
}

/** An activation that batch norm applies. */
enum rfl_host_activation { RFL_HOST_NONE, RFL_HOST_RELU, RFL_HOST_RELU6 };

/* ---- batch norm ---- */

/** y = activation(x * scale + shift + residual), where scale = gamma / sqrt(variance + eps) and
 * shift = beta - mean * scale. */
struct rfl_host_norm {
	enum rfl_host_type type;
	enum rfl_host_activation activation;
	int64_t rows;
	int columns;
	/** Use the running statistics instead of the batch's. */
	bool running;
	float eps, momentum;
	const void *x, *residual; /**< residual may be NULL */
	void *y;                  /**< may be x or residual */
	/** Written: 1 where the activation passes the gradient, else 0; rows x columns bytes. NULL:
	 * not needed, as without an activation or without a backward pass. */
	uint8_t *mask;
	const float *gamma, *beta;
	/** Written: of the batch (or the running ones), for the backward pass. inverse is 1 /
	 * sqrt(variance + eps), with the biased variance. */
	float *mean, *inverse;
	/** Without `running`: updated with the batch's mean and unbiased variance: r += momentum *
	 * (new
	 * - r). NULL: not updated. With it: read. */
	float *running_mean, *running_variance;
	void *scratch; /**< rfl_host_norm_scratch() bytes */
};

/** The gradients of the above. With g = (dy + dy2) * mask: dbeta = sum of g, dgamma = sum of g * (x
 * - mean) * inverse; dx is the gradient of x. */
struct rfl_host_norm_gradient {
	enum rfl_host_type type;
	int64_t rows;
	int columns;
	bool running; /**< the statistics were constants */
	const void *x;
	const void *dy, *dy2; /**< dy2 may be NULL: 0 */
	const uint8_t *mask;  /**< may be NULL: 1 */
	void *g;  /**< written: g, the gradient of the residual; may be NULL, dy or dy2 */
	void *dx; /**< may be dy or dy2, but not g, and NULL: not needed */
	const float *gamma, *mean, *inverse;
	float *dgamma, *dbeta;
	void *scratch;
};

/** Bytes of scratch for either, with the given number of threads. */
size_t rfl_host_norm_scratch(int columns, int threads);
void rfl_host_norm(const struct rfl_host_norm *k);
void rfl_host_norm_gradient(const struct rfl_host_norm_gradient *k);

/* ---- elementwise ---- */

/** Gradient of an activation from its result, in place: dy = y > 0 (and y < 6) ? dy : 0. */
void rfl_host_relu_gradient(enum rfl_host_type type, enum rfl_host_activation activation, int64_t n,
			    const void *y, void *dy);

/** y = clamp(x / 6 + 1 / 2, 0, 1); the library's own came with its version 3. */
void rfl_host_hard_sigmoid(enum rfl_host_type type, int64_t n, const void *x, void *y);
/** dx = |x| < 3 ? dy / 6 : 0; dx may be dy. */
void rfl_host_hard_sigmoid_gradient(enum rfl_host_type type, int64_t n, const void *x,
				    const void *dy, void *dx);

/** y = a + b; y may be a or b. */
void rfl_host_add(enum rfl_host_type type, int64_t n, const void *a, const void *b, void *y);

/** y = x * scale + shift; y may be x. */
void rfl_host_affine(enum rfl_host_type type, int64_t n, const void *x, float scale, float shift,
		     void *y);

/** y = a * b; y may be a or b. */
void rfl_host_multiply(enum rfl_host_type type, int64_t n, const void *a, const void *b, void *y);

/** Multiply the rows of each sample by the sample's row of factors: y[s, r, c] = x[s, r, c] *
 * factor[s, c]; y may be x. */
void rfl_host_scale_rows(enum rfl_host_type type, int64_t samples, int64_t rows, int columns,
			 const void *x, const void *factor, void *y);
/** The gradient of factor: d[s, c] = sum over r of x[s, r, c] * dy[s, r, c]. */
void rfl_host_scale_rows_gradient(enum rfl_host_type type, int64_t samples, int64_t rows,
				  int columns, const void *x, const void *dy, void *d);

/* ---- pooling ---- */

/** Averages over windows as in PyTorch. Written for few, small images. */
struct rfl_host_average {
	enum rfl_host_type type;
	int64_t samples, columns;
	int64_t in[2], out[2]; /**< heights and widths */
	/** 0: adaptive: output position o covers the inputs [floor(o * in / out), ceil((o + 1) * in
	 * / out)). Otherwise the last window may end outside the padded image; the part of it there
	 * does not count. */
	int64_t kernel[2], stride[2], pad[2];
	bool exclude_padding;
	const void *x; /**< the images; for the gradient, the averages' gradient */
	void *y;
};
void rfl_host_average_pool(const struct rfl_host_average *k);
void rfl_host_average_pool_gradient(const struct rfl_host_average *k);

/* ---- copies ---- */

/** Columns of a matrix: the elements [row * stride + first, .. + columns). */
struct rfl_host_columns {
	void *data;
	int64_t stride, first;
};
/** Copy `columns` columns of `rows` rows. @param add  add to them instead */
void rfl_host_copy_columns(enum rfl_host_type type, int64_t rows, int64_t columns,
			   struct rfl_host_columns to, struct rfl_host_columns from, bool add);

/** Transpose the channels of each row, seen as groups x columns / groups (row-major), to columns /
 * groups x groups: ShuffleNet's channel shuffle. Its gradient is the same with columns / groups
 * groups. */
void rfl_host_shuffle(enum rfl_host_type type, int64_t rows, int64_t columns, int64_t groups,
		      const void *x, void *y);

/** Convert a batch's images or pixels to `n` x height x width x channels of the type. Pixels become
 * (value / 255 - mean) / std, computed as written in float32. */
void rfl_host_input(const struct rfl_batch *batch, int64_t channels, int64_t height, int64_t width,
		    enum rfl_host_type type, void *y);

/* ---- dropout ---- */

/** y = x * keep / (1 - probability), where keep is 1 with probability 1 - probability, from a
 * counter-based generator, the same with any number of threads: unit i has output i % 4 of Philox
 * 4x32-10 with the counter i / 4 in its lower and `counter` in its upper half. A unit is an
 * element, or a sample of n / units elements (stochastic depth). y may be x. @param mask  written:
 * keep, `units` bytes */
void rfl_host_dropout(enum rfl_host_type type, int64_t n, int64_t units, double probability,
		      uint64_t key, uint64_t counter, const void *x, uint8_t *mask, void *y);
/** dx = dy * keep / (1 - probability); dx may be dy. */
void rfl_host_dropout_gradient(enum rfl_host_type type, int64_t n, int64_t units,
			       double probability, const uint8_t *mask, const void *dy, void *dx);

/* ---- loss ---- */

struct rfl_host_loss {
	enum rfl_host_type type; /**< of logits and their gradient */
	int64_t rows, classes;
	const void *logits;
	const int64_t *labels; /**< of valid classes */
	/** Written: weight * (softmax - one-hot) / rows; NULL: not needed. */
	void *gradient;
	double weight;
};
/** The mean cross entropy. @param correct  rows whose largest logit (the first of equals) is the
 * label's */
double rfl_host_cross_entropy(const struct rfl_host_loss *k, int64_t *correct);

/* ---- updates, as struct rfl_optimizer of runner/engine.h defines them ---- */

struct rfl_host_update {
	int64_t n;
	float *p, *mean,
		*square; /**< square: adam and adamw; mean may be NULL: sgd without momentum */
	const float *g;
	float gradient_scale; /**< the gradient is g times this */
	float lr, weight_decay;
	float momentum; /**< sgd: mean = momentum * mean + g */
	float beta1, beta2, eps;
	float rest1, rest2;             /**< adam: 1 - beta1, 1 - beta2, in double */
	float correction1, correction2; /**< adam: 1 - beta1^t, 1 - beta2^t */
	bool decoupled;                 /**< adamw */
};
void rfl_host_sgd(const struct rfl_host_update *k);
void rfl_host_adam(const struct rfl_host_update *k);

/** The sum of squares. */
double rfl_host_sum_squares(const float *x, int64_t n);

/** y += x */
void rfl_host_accumulate(float *y, const float *x, int64_t n);

#endif
