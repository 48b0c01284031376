/*
 * lib.h - libcupti and the CUDA driver, opened at run time by the commands that need them. A copy
 * that is already loaded is used (a CUDA build of libtorch brings its own); otherwise several names
 * and directories are tried in order.
 *
 * The host part of CUPTI (chips, metrics, passes) needs neither a GPU nor a driver. The target part
 * crashes without them, so open a struct rfl_cuda first: it has a driver, a device and a current
 * context.
 */
#ifndef RFL_PROFILE_CUPTI_LIB_H
#define RFL_PROFILE_CUPTI_LIB_H

#include <stdint.h>

#include "base/dl.h"
#include "base/err.h"
#include "profile/cupti/api.h"

/* ---- CUPTI ---- */

/** An open libcupti; read only. */
struct rfl_cupti {
	struct rfl_dl *dl;
	struct rfl_cupti_functions calls;
	uint32_t version; /**< CUPTI_API_VERSION of the library: 130001 */
	const char *path; /**< the loaded file */
};

/** Where to look before the usual places; every member may be NULL. If `path` is set, nothing else
 * is tried. cli/ fills it from the environment (RFL_CUPTI_PATH, CUDA_HOME, CUDA_PATH). */
struct rfl_cupti_places {
	const char *path;      /**< the library itself, or its directory */
	const char *cuda_home; /**< a CUDA toolkit, with lib64 and extras/CUPTI/lib64 */
	const char *beside;    /**< directory of PyTorch, near the nvidia/.../lib directories of its
				  wheels */
	int driver_major;   /**< CUDA version of the driver, tried first; 0: unknown */
};

/** Open libcupti: the copy that is already loaded, otherwise the first that is found. `places` may
 * be NULL. Returns RFL_EUNAVAILABLE if none is found, if it is too old, or if the program was built
 * with an address sanitizer. */
enum rfl_rc rfl_cupti_open(const struct rfl_cupti_places *places, struct rfl_cupti **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_close(struct rfl_cupti *c); /* accepts NULL */

/** Turn a CUptiResult into an error: the code in err->native, the call, its meaning and the remedy
 * in the message. Returns RFL_OK for 0. */
enum rfl_rc rfl_cupti_check(const struct rfl_cupti *c, int result, const char *call,
			    struct rfl_err *err) RFL_WARN_UNUSED;

extern const struct rfl_cupti_symbols rfl_cupti_symbols;

/** Call a function of the library and check its result; error messages name the function. */
#define RFL_CUPTI_CALL(c, member, err, ...) \
	rfl_cupti_check(c, (c)->calls.member(__VA_ARGS__), rfl_cupti_symbols.member, err)

/** Allocate an image of the size that CUPTI asks for: RFL_EUNAVAILABLE if it does not fit. */
enum rfl_rc rfl_cupti_image(size_t size, uint8_t **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Who may read counters, according to the parameters of the driver. */
enum rfl_counter_access {
	RFL_COUNTERS_UNKNOWN, /**< the file is missing: no Linux driver, or hidden in a container */
	RFL_COUNTERS_ALL,     /**< every user may read counters */
	RFL_COUNTERS_ADMIN,   /**< root and CAP_SYS_ADMIN only */
};
/** @param path  NULL: /proc/driver/nvidia/params */
enum rfl_counter_access rfl_cuda_counter_access(const char *path);

#endif
