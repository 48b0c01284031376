/*
 * dl.h - loads shared libraries on demand: the first of several names that loads, with required and
 * optional symbols.
 */
#ifndef RFL_BASE_DL_H
#define RFL_BASE_DL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct rfl_dl;

struct rfl_dl_symbol {
	const char *name;
	void *slot; /**< address of a function pointer, set to NULL if optional and absent */
	bool optional;
};

enum rfl_dl_mode {
	RFL_DL_LOAD,
	RFL_DL_MAPPED /**< only libraries already loaded in this process */
};

/** Open the first name that loads and resolve symbols in it.
 * @param names    NULL-terminated, newest first: "libnvidia-ml.so.1", "libnvidia-ml.so"
 * @param symbols  may be NULL
 * @param ret      set on success only; release with rfl_dl_close()
 * @return RFL_OK; RFL_EUNAVAILABLE with each name tried and its error, or with library and symbol
 */
enum rfl_rc rfl_dl_open(const char *const *names, enum rfl_dl_mode mode,
			const struct rfl_dl_symbol *symbols, size_t nsymbols, struct rfl_dl **ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** The address of one symbol in an open library, or NULL. */
void *rfl_dl_sym(struct rfl_dl *dl, const char *name);

/** Path of the loaded file. Borrowed. */
const char *rfl_dl_path(const struct rfl_dl *dl);

/** Path of a library loaded in this process with a name that begins with `prefix` ("libcupti"), or
 * NULL. Valid while the library is loaded. */
const char *rfl_dl_mapped(const char *prefix);

/** Free the handle. The library stays loaded: some, such as libtorch, cannot be unloaded. */
void rfl_dl_close(struct rfl_dl *dl);
RFL_AUTOPTR_TYPE(dl, close);

#endif
