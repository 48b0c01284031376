/*
 * fill.h - one documented formula for every weight, image, token and label of a
 * verification or a synthetic run, so that no weights need to be stored and two engines start from
 * the same bits.
 *
 * raw(p, i) is splitmix64 of (p << 32 | i), and u(p, i) its upper 24 bits as a float32 in [-1, 1).
 * p is a tensor's position in state_dict order, and i an element's index in row-major order. The
 * kind of the parameter determines the value computed from u. Each operation is exact in float32 or
 * rounded once, so results are identical on every CPU and with any number of threads.
 */
#ifndef RFL_DATA_FILL_H
#define RFL_DATA_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"
#include "machine/terms.h"

/** The values of p for images and tokens. */
#define RFL_FILL_IMAGE UINT32_C(0xFFFFFFFF)
#define RFL_FILL_TOKEN UINT32_C(0xFFFFFFFE)

enum rfl_fill_form {
	RFL_FILL_SCALED,      /**< u * scale */
	RFL_FILL_ONE_PLUS,    /**< 1 + u * scale, the product rounded first */
	RFL_FILL_ONE_PLUS_ABS /**< 1 + |u| * scale, the product rounded first */
};

struct rfl_fill_rule {
	enum rfl_fill_form form;
	float scale;
};

/** Return the 64 random bits of an element. */
uint64_t rfl_fill_raw(uint32_t p, uint64_t i);

/** Return the rule of a parameter, which depends on its kind and, for weights, on fan_in. */
struct rfl_fill_rule rfl_fill_rule_of(const struct rfl_param *param);

/** Compute elements first to first + n - 1 of tensor p. */
void rfl_fill_values(struct rfl_fill_rule rule, uint32_t p, uint64_t first, size_t n, float *out);

/** A tensor or a part of a tensor to fill. */
struct rfl_fill_job {
	struct rfl_fill_rule rule;
	uint32_t p;
	uint64_t first; /**< index of out[0] in the tensor */
	size_t n;
	float *out; /**< n elements, owned by the caller */
};

/** Fill many tensors in blocks distributed over at most `threads` threads, the calling one
 * included. */
void rfl_fill_run(const struct rfl_fill_job *jobs, size_t njobs, int threads);

/** Return the job that fills one parameter. */
struct rfl_fill_job rfl_fill_job_of(const struct rfl_param *param, float *out);

/**
 * Fill samples first to first + n - 1 of a batch of images with u(RFL_FILL_IMAGE, i), where i is
 * the index in the whole batch in NCHW order.
 * @param shape   shape of one image: channels x height x width
 * @param layout  layout of out; does not affect the values of pixels
 * @param out     n * channels * height * width elements
 */
enum rfl_rc rfl_fill_images(const struct rfl_shape *shape, int64_t first, int64_t n,
			    enum rfl_layout layout, int threads, float *out,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Fill labels first to first + n - 1 with (37 * i) mod classes. */
void rfl_fill_labels(int64_t first, int64_t n, int64_t classes, int64_t *out);

/** Fill tokens first to first + n - 1 with raw(RFL_FILL_TOKEN, i) mod vocabulary. */
void rfl_fill_tokens(int64_t first, int64_t n, int64_t vocabulary, int64_t *out);

/** Return the sum of n bit patterns modulo 2^32: a fingerprint independent of order. */
uint32_t rfl_fill_bitsum(const float *values, size_t n);

/** A published test vector: the fill of one tensor. */
struct rfl_fill_vector {
	const char *name;       /**< "resnet18 conv1.weight" */
	struct rfl_param param; /**< kind, dim, numel and position are set */
	uint32_t first5[5];     /**< bit patterns */
	uint32_t bitsum;        /**< sum over all elements */
};

/** Return the i-th test vector, or NULL past the last. */
const struct rfl_fill_vector *rfl_fill_vector_at(size_t i);

/** Fill a test vector; get its first five bit patterns and the sum of all. */
void rfl_fill_vector_run(const struct rfl_fill_vector *vector, uint32_t first5[5],
			 uint32_t *bitsum);

/** The formula compiled for each instruction set of this CPU, the fastest first; NULL past
 * the last. @param start  p << 32 | the first element */
typedef void (*rfl_fill_fn)(struct rfl_fill_rule rule, uint64_t start, size_t n, float *out);
rfl_fill_fn rfl_fill_variant(size_t i);

#endif
