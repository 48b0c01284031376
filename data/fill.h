/*
 * fill.h - the golden fill: every weight, image, token and label of a verification or of a
 * synthetic run comes from one documented formula, so that no weights need to be stored and two
 * engines start from the same bits.
 *
 * raw(p, i) is splitmix64 of (p << 32 | i), and u(p, i) its upper 24 bits as a float32 in [-1, 1).
 * p is the position of a tensor in state_dict order, i the element in row-major order. What u
 * becomes depends on the kind of the parameter. Everything is exact in float32 or rounded once, so
 * results are the same to the bit on every processor and with any number of threads.
 */
#ifndef RFL_DATA_FILL_H
#define RFL_DATA_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"
#include "machine/terms.h"

/** The p of images and of tokens. */
#define RFL_FILL_IMAGE UINT32_C(0xFFFFFFFF)
#define RFL_FILL_TOKEN UINT32_C(0xFFFFFFFE)

enum rfl_fill_form {
	RFL_FILL_SCALED,      /**< u * scale */
	RFL_FILL_ONE_PLUS,    /**< 1 + u * scale, the product rounded first */
	RFL_FILL_ONE_PLUS_ABS /**< 1 + |u| * scale, the product rounded first */
};

/** What becomes of u. */
struct rfl_fill_rule {
	enum rfl_fill_form form;
	float scale;
};

/** The 64 random bits of an element. */
uint64_t rfl_fill_raw(uint32_t p, uint64_t i);

/** The rule of a parameter: by its kind, and for weights by fan_in. */
struct rfl_fill_rule rfl_fill_rule_of(const struct rfl_param *param);

/** Elements first to first + n - 1 of tensor p, by this thread. */
void rfl_fill_values(struct rfl_fill_rule rule, uint32_t p, uint64_t first, size_t n, float *out);

/** One tensor to be filled. */
struct rfl_fill_job {
	struct rfl_fill_rule rule;
	uint32_t p;
	uint64_t first; /**< element of the tensor that out[0] is; 0 but for a part of one */
	size_t n;
	float *out; /**< n elements, of the caller */
};

/**
 * Fill many tensors, in blocks spread over threads.
 * @param threads  at least 1; the calling thread is one of them
 * @return RFL_OK; RFL_ENOMEM when a thread could not be started
 */
enum rfl_rc rfl_fill_run(const struct rfl_fill_job *jobs, size_t njobs, int threads,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** The job of filling one parameter. */
struct rfl_fill_job rfl_fill_job_of(const struct rfl_param *param, float *out);

/**
 * Samples first to first + n - 1 of a batch of images: u(RFL_FILL_IMAGE, i), i over the whole batch
 * in NCHW order.
 * @param shape   of one image, channels x height x width
 * @param layout  of out; the value of a pixel does not depend on it
 * @param out     n * channels * height * width elements
 */
enum rfl_rc rfl_fill_images(const struct rfl_shape *shape, int64_t first, int64_t n,
			    enum rfl_layout layout, int threads, float *out,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Labels first to first + n - 1: (37 * i) mod classes. */
void rfl_fill_labels(int64_t first, int64_t n, int64_t classes, int64_t *out);

/** Tokens likewise: raw(RFL_FILL_TOKEN, i) mod vocabulary. */
void rfl_fill_tokens(int64_t first, int64_t n, int64_t vocabulary, int64_t *out);

/** Sum of n bit patterns as uint32, modulo 2^32: a fingerprint that does not depend on order. */
uint32_t rfl_fill_bitsum(const float *values, size_t n);

/** A published test vector: the fill of one tensor. */
struct rfl_fill_vector {
	const char *name;       /**< "resnet18 conv1.weight" */
	struct rfl_param param; /**< kind, dim, numel and position are set */
	uint32_t first5[5];     /**< bit patterns */
	uint32_t bitsum;        /**< of all elements */
};

/** The i-th test vector, or NULL past the last. */
const struct rfl_fill_vector *rfl_fill_vector_at(size_t i);

/** Fill a test vector; what came out goes into the `got` arguments. RFL_ENOMEM. */
enum rfl_rc rfl_fill_vector_run(const struct rfl_fill_vector *vector, uint32_t first5[5],
				uint32_t *bitsum, struct rfl_err *err) RFL_WARN_UNUSED;

/** What the compiler made of the formula for each instruction set that this processor can run, the
 * fastest first; NULL past the last. @param start  p << 32 | the first element */
typedef void (*rfl_fill_fn)(struct rfl_fill_rule rule, uint64_t start, size_t n, float *out);
rfl_fill_fn rfl_fill_variant(size_t i);

#endif
