/*
 * shim.h - the part of libtorch that the torch engine needs, as plain C. What the operations
 * of a network call is in shim_ops.h.
 *
 * One heap object is one reference to a tensor. Functions that hand out a tensor set *ret on
 * success only; the caller releases it with rfl_torch_tensor_free(). Every function that can fail
 * returns a status and never lets a C++ exception through; the text of the last failure of this
 * thread is fetched with rfl_torch_error(). Parameters are float32, activations what autocast makes
 * of them, labels and tokens int64.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_H
#define RFL_RUNNER_TORCH_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "complexity/net.h"
#include "machine/terms.h"

#ifdef __cplusplus
#define RFL_TORCH_NOEXCEPT noexcept
extern "C" {
#else
#define RFL_TORCH_NOEXCEPT
#endif

enum rfl_torch_status {
	RFL_TORCH_OK,
	RFL_TORCH_FAILED,      /**< libtorch refused: see rfl_torch_error() */
	RFL_TORCH_NOMEM,       /**< out of memory, by the type of the exception or by its text */
	RFL_TORCH_UNSUPPORTED, /**< it has no kernel for that, or none that is deterministic */
};

#define RFL_TORCH_CALL RFL_WARN_UNUSED enum rfl_torch_status

struct rfl_torch_tensor;

/* ------------------------------------------------------------------ the library */

/** Text of the last failure on this thread, without the C++ backtrace. Never NULL. */
const char *rfl_torch_error(void) RFL_TORCH_NOEXCEPT;

/** "1.13" or "2.11": the headers that this was compiled against. */
const char *rfl_torch_built_version(void) RFL_TORCH_NOEXCEPT;

/** What the loaded library says of itself: "2.11.0". "unknown" when it does not say. */
const char *rfl_torch_library_version(void) RFL_TORCH_NOEXCEPT;

/** How the loaded library was built and how it runs in parallel: many lines. Borrowed until the
 * next call on this thread; "" when libtorch fails to say. */
const char *rfl_torch_describe(void) RFL_TORCH_NOEXCEPT;

/** Set the threads within an operation, and one thread between operations (possible only before
 * the first operation of the process; a later call leaves that as it is). */
RFL_TORCH_CALL rfl_torch_set_threads(int threads) RFL_TORCH_NOEXCEPT;

/** The threads that operations use now. */
int rfl_torch_get_threads(void) RFL_TORCH_NOEXCEPT;

RFL_TORCH_CALL rfl_torch_seed(uint64_t seed) RFL_TORCH_NOEXCEPT;

/** Record operations for backward, on this thread, from now on. */
void rfl_torch_set_grad_mode(int on) RFL_TORCH_NOEXCEPT;

/** State of the random numbers that dropout takes where a tensor lies, as a tensor of bytes, and
 * back to it. */
RFL_TORCH_CALL rfl_torch_random_save(const struct rfl_torch_tensor *where,
				     struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_random_restore(const struct rfl_torch_tensor *where,
					const struct rfl_torch_tensor *state) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ tensors */

enum rfl_torch_type { RFL_TORCH_F32, RFL_TORCH_U8, RFL_TORCH_I64 };

/**
 * A tensor over memory of the caller in this machine, which must outlive it and is only read from
 * unless the tensor is written to. Nothing is copied.
 * @param strides  in elements; NULL for contiguous
 */
RFL_TORCH_CALL rfl_torch_wrap(const void *data, enum rfl_torch_type type, int ndim,
			      const int64_t *sizes, const int64_t *strides,
			      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/**
 * Part of a flat tensor's memory as a leaf of its own.
 * @param offset   of its first element, in elements
 * @param strides  in elements; NULL for contiguous
 */
RFL_TORCH_CALL rfl_torch_leaf(const struct rfl_torch_tensor *block, int64_t offset, int ndim,
			      const int64_t *sizes, const int64_t *strides, int requires_grad,
			      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** A copy in memory of its own. */
RFL_TORCH_CALL rfl_torch_tensor_clone(const struct rfl_torch_tensor *t,
				      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Values of one tensor into another of the same shape, on whatever device. */
RFL_TORCH_CALL rfl_torch_tensor_copy(struct rfl_torch_tensor *to,
				     const struct rfl_torch_tensor *from) RFL_TORCH_NOEXCEPT;

/** Accepts NULL. */
void rfl_torch_tensor_free(struct rfl_torch_tensor *t) RFL_TORCH_NOEXCEPT;

/** Another reference to the same tensor. */
RFL_TORCH_CALL rfl_torch_tensor_dup(const struct rfl_torch_tensor *t,
				    struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** The same values without the history that backward would follow. */
RFL_TORCH_CALL rfl_torch_tensor_detach(const struct rfl_torch_tensor *t,
				       struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** The values in row-major order of the dimensions; the same tensor when it is so already. */
RFL_TORCH_CALL rfl_torch_tensor_contiguous(const struct rfl_torch_tensor *t,
					   struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** A four-dimensional tensor in channels-last order; the same tensor when it is so already. */
RFL_TORCH_CALL rfl_torch_tensor_channels_last(const struct rfl_torch_tensor *t,
					      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** 1 when the tensor lies in channels-last order (or has not four dimensions), else 0. */
int rfl_torch_tensor_is_channels_last(const struct rfl_torch_tensor *t) RFL_TORCH_NOEXCEPT;

/** The values as float32 in this machine's memory, row-major; the same tensor when they are. */
RFL_TORCH_CALL rfl_torch_tensor_plain(const struct rfl_torch_tensor *t,
				      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** First element of such a tensor. Borrowed. */
const float *rfl_torch_tensor_data(const struct rfl_torch_tensor *t) RFL_TORCH_NOEXCEPT;

int64_t rfl_torch_tensor_numel(const struct rfl_torch_tensor *t) RFL_TORCH_NOEXCEPT;

/** Copy all values out of, or into, a tensor of any layout. numel must be the tensor's. */
RFL_TORCH_CALL rfl_torch_tensor_read(const struct rfl_torch_tensor *t, float *out,
				     int64_t numel) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_tensor_write(struct rfl_torch_tensor *t, const float *values,
				      int64_t numel) RFL_TORCH_NOEXCEPT;

/** The value of a tensor with one element. */
RFL_TORCH_CALL rfl_torch_tensor_item(const struct rfl_torch_tensor *t,
				     double *ret) RFL_TORCH_NOEXCEPT;

/** The gradient of a leaf, or *ret = NULL when there is none. */
RFL_TORCH_CALL rfl_torch_tensor_grad(const struct rfl_torch_tensor *t,
				     struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ------------------------------------------------------------------ batches */

/**
 * 8-bit pixels of 1 to 3 channels to float32: (value / 255 - mean) / std of each channel.
 * @param channels_last  the order of the result, whatever that of the pixels
 */
RFL_TORCH_CALL rfl_torch_normalize(const struct rfl_torch_tensor *pixels, const float mean[3],
				   const float std[3], int channels_last,
				   struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
