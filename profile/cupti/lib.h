/*
 * lib.h - libcupti and the CUDA driver as guests: found by a ladder of names, opened when a
 * command needs them, never linked, never a second copy beside one that is loaded already (a CUDA
 * build of libtorch brings its own).
 *
 * The host part of CUPTI (chips, metrics, passes) works on a machine without a GPU and driver. The
 * target part crashes there, so its callers hold a struct rfl_cuda first: driver, device and a
 * current context are there then.
 */
#ifndef RFL_PROFILE_CUPTI_LIB_H
#define RFL_PROFILE_CUPTI_LIB_H

#include <stdbool.h>
#include <stddef.h>
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
	const char *path; /**< the file that is loaded */
};

/** Where to look, in front of the usual places; every member may be NULL. When `path` is given it
 * is the only one. cli/ reads the environment (RFL_CUPTI_PATH, CUDA_HOME, CUDA_PATH) into it. */
struct rfl_cupti_places {
	const char *path;      /**< the library itself, or its folder */
	const char *cuda_home; /**< a toolkit: lib64 and extras/CUPTI/lib64 in it */
	const char *beside;    /**< a folder beside which a PyTorch wheel keeps nvidia/.../lib */
	int driver_major; /**< of CUDA, that the driver has: that library first; 0: not known */
};

/** Open libcupti: the copy that is loaded already, else the ladder. `places` may be NULL.
 * RFL_EUNAVAILABLE naming what was tried and how to get it, or the symbol that a too old library
 * lacks, or that an address sanitizer is in the program. */
enum rfl_rc rfl_cupti_open(const struct rfl_cupti_places *places, struct rfl_cupti **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_close(struct rfl_cupti *c); /* accepts NULL */

/** Turn a CUptiResult into our error: the code in err->native, the call, what it means here, and
 * the remedy. RFL_OK for 0. */
enum rfl_rc rfl_cupti_check(const struct rfl_cupti *c, int result, const char *call,
			    struct rfl_err *err) RFL_WARN_UNUSED;

extern const struct rfl_cupti_symbols rfl_cupti_symbols;
extern const struct rfl_cuda_symbols rfl_cuda_symbols;

/** Call a function of the library, and check what it returned: a message names it. */
#define RFL_CUPTI_CALL(c, member, err, ...) \
	rfl_cupti_check(c, (c)->calls.member(__VA_ARGS__), rfl_cupti_symbols.member, err)

/* ---- the driver ---- */

/** The driver, one device, and its primary context made current; read only. */
struct rfl_cuda {
	struct rfl_cuda_functions calls;
	struct rfl_dl *dl;
	struct rfl_cuda_context *context;
	int device;
	int version;      /**< of the driver: 13000 for CUDA 13.0 */
	int capability;   /**< 90 */
	int64_t l2_bytes; /**< 0: the driver does not say */
	bool ecc;         /**< its memory keeps check bits, and they are switched on */
	char name[256];   /**< "NVIDIA H100 80GB HBM3" */
	bool retained, pushed;
};

/** Open the driver, take a device by CUDA's index, and make its primary context current on this
 * thread, where it is to be closed as well: the CUDA runtime, and so libtorch, uses that context.
 * RFL_EUNAVAILABLE with what is missing and how to get it, the driver's code in err->native.
 * @param no_driver  of a failure: it is the driver's, not the device's; may be NULL */
enum rfl_rc rfl_cuda_open(int device, bool *no_driver, struct rfl_cuda **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cuda_close(struct rfl_cuda *c); /* accepts NULL */

#define RFL_CUDA_UUID_MAX 33
/** The GPUs and MIG instances that CUDA shows to this process, in its order (CUDA_VISIBLE_DEVICES,
 * CUDA_DEVICE_ORDER): their UUIDs in hexadecimal, at most `max`; none where no driver works. No
 * context is made. */
size_t rfl_cuda_uuids(char (*ret)[RFL_CUDA_UUID_MAX], size_t max);

/** The same for a CUresult: RFL_EDEVMEM for a device that is out of memory. */
enum rfl_rc rfl_cuda_check(const struct rfl_cuda *c, int result, const char *call,
			   struct rfl_err *err) RFL_WARN_UNUSED;
#define RFL_CUDA_CALL(c, member, err, ...) \
	rfl_cuda_check(c, (c)->calls.member(__VA_ARGS__), rfl_cuda_symbols.member, err)

/** What the driver's parameters say of counters without any call. */
enum rfl_counter_access {
	RFL_COUNTERS_UNKNOWN, /**< no such file: no driver of Linux, or a container without it */
	RFL_COUNTERS_ALL,     /**< every user may read counters */
	RFL_COUNTERS_ADMIN,   /**< root and CAP_SYS_ADMIN only */
};
/** @param path  NULL: /proc/driver/nvidia/params */
enum rfl_counter_access rfl_cuda_counter_access(const char *path);

#endif
