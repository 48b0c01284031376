/*
 * lib.h - libcupti and the CUDA driver as guests: found by a ladder of names, opened when a
 * command needs them, never linked, never a second copy beside one that is loaded already (a CUDA
 * build of libtorch brings its own).
 *
 * The host part of CUPTI (chips, metrics, passes) works on a machine without a GPU and driver. The
 * target part crashes there, so it is reached only through rfl_cuda_open(), which has made sure of
 * driver, device and context before.
 */
#ifndef RFL_PROFILE_CUPTI_LIB_H
#define RFL_PROFILE_CUPTI_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"
#include "base/err.h"
#include "profile/cupti/api.h"

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

/**
 * Open libcupti: the copy that is loaded already, else the ladder.
 * @param ret  set on success only; release with rfl_cupti_close()
 * @return RFL_OK; RFL_EUNAVAILABLE naming what was tried and how to get it, or the symbol that a
 *         too old library lacks, or that an address sanitizer is in the program
 */
enum rfl_rc rfl_cupti_open(const struct rfl_cupti_places *places, struct rfl_cupti **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_close(struct rfl_cupti *c); /* accepts NULL */

/**
 * Turn a CUptiResult into our error: the code in err->native, the call, what it means here, and the
 * remedy. RFL_OK for 0.
 */
enum rfl_rc rfl_cupti_check(const struct rfl_cupti *c, int result, const char *call,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** The names of the functions, for messages. */
#define RFL_CUPTI_SYMBOL_SLOT(needed, member, symbol, arguments) const char *member;
struct rfl_cupti_symbols {
	RFL_CUPTI_FUNCTIONS(RFL_CUPTI_SYMBOL_SLOT)
};
#undef RFL_CUPTI_SYMBOL_SLOT
extern const struct rfl_cupti_symbols rfl_cupti_symbols;

/** Call a function of the library, and check what it returned: a message names it. */
#define RFL_CUPTI_CALL(c, member, err, ...) \
	rfl_cupti_check(c, (c)->calls.member(__VA_ARGS__), rfl_cupti_symbols.member, err)

#endif
