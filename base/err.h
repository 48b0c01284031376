/*
 * err.h - return codes and the error record that every fallible function fills.
 *
 * A function that can fail returns an rfl_rc; its last parameter is a `struct rfl_err *`, which may
 * be NULL. The first failure is kept: rfl_fail() does not change a filled record, so that clean-up
 * code cannot hide the cause. A message is one line of UTF-8 without control characters; only
 * RFL_EMISSING may add lines, which list the missing values.
 */
#ifndef RFL_BASE_ERR_H
#define RFL_BASE_ERR_H

#include "base/compiler.h"

RFL_API_BEGIN

enum rfl_rc {
	RFL_OK = 0,
	RFL_EFAILED = -1,      /**< completed with a negative result (a verification failed) */
	RFL_EINVAL = -2,       /**< an argument or a value from the user is invalid */
	RFL_EFORMAT = -3,      /**< a file is not in the expected format */
	RFL_EIO = -4,          /**< reading or writing failed; native is errno */
	RFL_ENOMEM = -5,       /**< out of host memory */
	RFL_ENOTFOUND = -6,    /**< no such name; the message lists similar ones */
	RFL_EMISSING = -7,     /**< a value needed for the result is unknown; exit code 3 */
	RFL_EUNAVAILABLE = -8, /**< device, library or permission not available; exit code 77 */
	RFL_EUNSUPPORTED = -9, /**< not supported by this engine or output format */
	RFL_EOVERFLOW = -10,   /**< a count exceeds 63 bits, or a buffer exceeds its maximum */
	RFL_EDEVMEM = -11,     /**< out of device or engine memory in a training run */
	RFL_ETIMEOUT = -12,
	RFL_EINTR = -13,  /**< stopped by a signal */
	RFL_EUSAGE = -14, /**< invalid command line; exit code 2 */
};

#define RFL_ERR_MSG_MAX 4096

struct rfl_err {
	enum rfl_rc rc;
	int native; /**< code of the failed call (errno, cudaError_t, ...); 0: none */
	char msg[RFL_ERR_MSG_MAX];
};

#define RFL_ERR_INIT                                 \
	{                                            \
		.rc = RFL_OK, .native = 0, .msg = "" \
	}

/** Fill an error record: `return rfl_fail(err, RFL_EINVAL, 0, "%s: not a name", name);`
 * @param err     may be NULL; a record that is already filled is not changed
 * @param rc      a code other than RFL_OK
 * @param native  error code of the system or of a vendor library; 0: none
 * @return rc, always */
enum rfl_rc rfl_fail(struct rfl_err *err, enum rfl_rc rc, int native, const char *fmt, ...)
	RFL_PRINTF(4, 5);

/** Fail because of errno, with "<text>: <its meaning>": RFL_ENOMEM for ENOMEM, else RFL_EIO. */
enum rfl_rc rfl_fail_errno(struct rfl_err *err, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Fail with the error of another record, which must be filled. @return its code */
enum rfl_rc rfl_err_pass(struct rfl_err *err, const struct rfl_err *cause);

/** Insert "<prefix>: " before the message of a filled record; an empty record is unchanged. */
void rfl_err_prefix(struct rfl_err *err, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Clear a record. */
void rfl_err_clear(struct rfl_err *err);

/** A code as text: "out of host memory", "not available here". Never NULL. */
const char *rfl_rc_text(enum rfl_rc rc);

RFL_API_END
#endif
