/* dl.c - shared libraries loaded at run time. */
#include "base/dl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/os.h"

struct rfl_dl {
	void *handle;
	char *name; /* name under which the library was loaded */
};

/* ISO C does not allow a cast from void * to a function pointer. */
static void set_slot(void *slot, void *address)
{
	memcpy(slot, &address, sizeof(address));
}

enum rfl_rc rfl_dl_open(const char *const *names, enum rfl_dl_mode mode,
			const struct rfl_dl_symbol *symbols, size_t nsymbols, struct rfl_dl **ret,
			struct rfl_err *err)
{
	RFL_AUTOPTR(dl) dl = rfl_alloc_array(1, sizeof(*dl));
	const int flags = mode == RFL_DL_MAPPED ? RTLD_NOLOAD : 0;
	RFL_AUTO(buf) tried = { .max = RFL_ERR_MSG_MAX };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < nsymbols; i++)
		set_slot(symbols[i].slot, NULL);
	for (size_t i = 0; names[i]; i++) {
		const char *why;

		dl->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | flags);
		if (dl->handle) {
			dl->name = rfl_strdup(names[i]);
			break;
		}
		why = dlerror();
		if (!why)
			why = flags ? "not loaded in this process" : "no reason given";
		/* glibc's message begins with the name if that file is at fault */
		rfl_buf_puts(&tried, i ? "; " : "");
		if (strncmp(why, names[i], strlen(names[i])) != 0)
			rfl_buf_printf(&tried, "%s: ", names[i]);
		rfl_buf_puts(&tried, why);
	}
	if (!dl->handle)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "cannot load %s",
			      tried.len ? rfl_buf_str(&tried) : "an unnamed library");
	for (size_t i = 0; i < nsymbols && rc == RFL_OK; i++) {
		void *address = dlsym(dl->handle, symbols[i].name);

		set_slot(symbols[i].slot, address);
		if (!address && !symbols[i].optional)
			rc = rfl_fail(
				err, RFL_EUNAVAILABLE, 0,
				"%s: symbol %s not found; install another version of the library",
				dl->name, symbols[i].name);
	}
	if (rc == RFL_OK) {
		*ret = dl;
		dl = NULL;
	}
	for (size_t i = 0; i < nsymbols && rc != RFL_OK; i++)
		set_slot(symbols[i].slot, NULL);
	return rc;
}

void *rfl_dl_sym(struct rfl_dl *dl, const char *name)
{
	return dlsym(dl->handle, name);
}

const char *rfl_dl_path(const struct rfl_dl *dl)
{
	const char *path = rfl_os_library_path(dl->handle);

	return path ? path : dl->name;
}

const char *rfl_dl_mapped(const char *prefix)
{
	return rfl_os_library_mapped(prefix);
}

void rfl_dl_close(struct rfl_dl *dl)
{
	if (!dl)
		return;
	free(dl->name);
	free(dl);
}
