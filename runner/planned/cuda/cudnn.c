/* cudnn.c - the library cuDNN itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "machine/torch.h"
#include "runner/planned/cuda/graph.h"

/* Where PyTorch's libraries are. */
static const char *torch_libraries(struct rfl_arena *arena)
{
	const char *const plugin = rfl_dl_mapped("engine_planned-9");

	return rfl_torch_beside(arena, plugin ? plugin : "");
}

enum rfl_rc rfl_cuda_load(const char *const *files, size_t nfiles, const char *wheel,
			  const struct rfl_dl_symbol *symbols, size_t nsymbols, struct rfl_dl **ret,
			  struct rfl_err *err)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	const struct rfl_cuda_places places = { NULL, torch_libraries(arena) };
	const char *names[32];
	size_t n = 0;

	for (size_t i = 0; i < nfiles; i++)
		n += rfl_cuda_library(arena, files[i], wheel, &places, names + n,
				      RFL_ARRAY_LEN(names) - 1 - n);
	names[n] = NULL;
	return rfl_dl_open(names, RFL_DL_LOAD, symbols, nsymbols, ret, err);
}

#define REQUIRED(member, symbol, result, arguments) { #symbol, &lib->calls.member, false },

static enum rfl_rc load(struct rfl_cudnn *lib, struct rfl_err *err)
{
	const struct rfl_dl_symbol symbols[] = { RFL_CUDNN_FUNCTIONS(REQUIRED) };
	static const char *const files[] = { "libcudnn.so.9" };
	const enum rfl_rc rc =
		rfl_cuda_load(files, 1, "cudnn", symbols, RFL_ARRAY_LEN(symbols), &lib->dl, err);

	if (rc != RFL_OK)
		rfl_err_prefix(err, "cuDNN 9 was not found (install it with 'pip install "
				    "nvidia-cudnn-cu13', and add its directory lib to "
				    "LD_LIBRARY_PATH)");
	return rc;
}

enum rfl_rc rfl_cudnn_check(const struct rfl_cudnn *lib, int status, const char *what,
			    struct rfl_err *err)
{
	char message[256] = "";

	if (status == 0)
		return RFL_OK;
	lib->calls.last_error(message, sizeof(message));
	message[strcspn(message, "\n")] = '\0';
	return rfl_fail(err, status / 1000 == 3 ? RFL_EUNSUPPORTED : RFL_EFAILED, status,
			"cuDNN %s: %s failed: %s%s%s", lib->version, what,
			lib->calls.error_string(status), *message ? ": " : "", message);
}

static enum rfl_rc describe_device(struct rfl_cudnn *lib, const char *json, struct rfl_err *err)
{
	int status =
		lib->calls.descriptor_create(RFL_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &lib->device);

	if (status == 0)
		status = lib->calls.set(lib->device, RFL_CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
					RFL_CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json);
	if (status == 0)
		status = lib->calls.finalize(lib->device);
	return rfl_cudnn_check(lib, status, "the description of a device", err);
}

enum rfl_rc rfl_cudnn_open(const char *device_json, struct rfl_cudnn **ret, struct rfl_err *err)
{
	struct rfl_cudnn *lib = rfl_alloc_array(1, sizeof(*lib));
	enum rfl_rc rc = load(lib, err);
	size_t v;

	if (rc == RFL_OK) {
		v = lib->calls.version(); /* 91900 */
		(void)snprintf(lib->version, sizeof(lib->version), "%zu.%zu.%zu", v / 10000,
			       v / 100 % 100, v % 100);
		rc = device_json ? describe_device(lib, device_json, err) : RFL_OK;
	}
	if (rc == RFL_OK)
		*ret = lib;
	else
		rfl_cudnn_close(lib);
	return rc;
}

enum rfl_rc rfl_cudnn_start(struct rfl_cudnn *lib, struct rfl_cuda_stream *stream,
			    struct rfl_err *err)
{
	int status = lib->calls.create(&lib->handle);

	if (status == 0)
		status = lib->calls.set_stream(lib->handle, stream);
	return rfl_cudnn_check(lib, status, "the start", err);
}

void rfl_cudnn_close(struct rfl_cudnn *lib)
{
	if (!lib)
		return;
	if (lib->device)
		(void)lib->calls.descriptor_destroy(lib->device);
	if (lib->handle)
		(void)lib->calls.destroy(lib->handle);
	rfl_dl_close(lib->dl);
	free(lib);
}
