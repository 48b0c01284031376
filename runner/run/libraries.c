/* libraries.c - names the libraries of this process that compute GEMMs on the CPU. Static
 * ones, as in PyTorch's packages, cannot be seen. */
#include "runner/run/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/dl.h"

/* "OpenBLAS 0.3.21 (Haswell kernels)": it chooses its kernels by CPUs that it knows. */
static void name_openblas(const char *const *paths, char *out, size_t size)
{
	const char *(*config)(void), *(*core)(void);
	const struct rfl_dl_symbol symbols[] = { { "openblas_get_config", &config, false },
						 { "openblas_get_corename", &core, false } };
	RFL_AUTOPTR(dl) dl = NULL;
	char version[32] = "";

	if (rfl_dl_open(paths, RFL_DL_MAPPED, symbols, RFL_ARRAY_LEN(symbols), &dl, NULL))
		return;
	/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." */
	if (sscanf(config(), "OpenBLAS %31s", version) == 1)
		snprintf(out, size, "OpenBLAS %s (%s kernels)", version, core());
}

static void name_onednn(const char *const *paths, char *out, size_t size)
{
	struct version {
		int major, minor, patch;
	};
	const struct version *(*version)(void);
	const struct rfl_dl_symbol symbols[] = { { "dnnl_version", &version, false } };
	RFL_AUTOPTR(dl) dl = NULL;

	if (rfl_dl_open(paths, RFL_DL_MAPPED, symbols, RFL_ARRAY_LEN(symbols), &dl, NULL))
		return;
	snprintf(out, size, "oneDNN %d.%d.%d", version()->major, version()->minor,
		 version()->patch);
}

void rfl_run_libraries(char *out, size_t size)
{
	static const struct {
		const char *prefix;
		void (*name)(const char *const *paths, char *out, size_t size);
	} rows[] = { { "libopenblas", name_openblas }, { "libdnnl", name_onednn } };
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		const char *const paths[] = { rfl_dl_mapped(rows[i].prefix), NULL };
		char name[96] = "";

		if (paths[0])
			rows[i].name(paths, name, sizeof(name));
		if (name[0] && len < size)
			len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
						name);
	}
}
