/* torch.c - the PyTorch of an installation. */
#include "machine/torch.h"

#include <glob.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dl.h"
#include "base/file.h"
#include "rfl_config.h"

#define PLUGINS "/" RFL_PLUGINDIR "/"

const char *rfl_torch_beside(struct rfl_arena *arena, const char *plugin)
{
	const char *const end = strstr(plugin, PLUGINS);
	const int prefix = end ? (int)(end - plugin) : 0;
	const char *const patterns[] = { "lib/roofline/torch/lib",
					 "lib*/python3*/*-packages/torch/lib" };
	const char *ret = *RFL_TORCH_LIBRARY_DIR ? RFL_TORCH_LIBRARY_DIR : NULL;

	for (size_t i = 0; end && i < RFL_ARRAY_LEN(patterns); i++) {
		const char *const pattern =
			rfl_arena_printf(arena, "%.*s/%s", prefix, plugin, patterns[i]);
		glob_t found;

		if (glob(pattern, 0, NULL, &found) != 0)
			continue;
		ret = rfl_arena_strdup(arena, found.gl_pathv[0]);
		globfree(&found);
		break;
	}
	return ret;
}

const char *rfl_torch_version(struct rfl_arena *arena, const char *libraries)
{
	RFL_AUTO(buf) text = { .max = 1 << 16 };
	const char *at;
	size_t major, minor;

	if (rfl_file_read(rfl_arena_printf(arena, "%s/../version.py", libraries), &text, NULL) !=
		    RFL_OK ||
	    !(at = strstr(rfl_buf_str(&text), "__version__ = '")))
		return "";
	at += strlen("__version__ = '");
	major = strspn(at, "0123456789");
	minor = at[major] == '.' ? strspn(at + major + 1, "0123456789") : 0;
	return minor ? rfl_arena_printf(arena, "%.*s", (int)(major + 1 + minor), at) : "";
}

enum rfl_rc rfl_torch_load(const char *plugin, struct rfl_err *err)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	const char *const directory = strstr(plugin, PLUGINS "torch-");
	const char *const libraries = directory ? rfl_torch_beside(arena, plugin) : NULL;
	const char *names[2] = { NULL };
	struct rfl_dl *dl = NULL;
	enum rfl_rc rc;

	if (!libraries)
		return RFL_OK;
	/* the loader knows what is loaded by its name, which is all that the plugin asks for */
	names[0] = rfl_arena_printf(arena, "%s/libtorch_%s.so", libraries,
				    strstr(rfl_path_base(plugin), "-cu") ? "cuda" : "cpu");
	rc = rfl_dl_open(names, RFL_DL_LOAD, NULL, 0, &dl, err);
	rfl_dl_close(dl);
	return rc;
}
