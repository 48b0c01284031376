/*
 * nvml.c - names of GPUs and driver from libnvidia-ml, which comes with NVIDIA's driver and is
 * opened only here. Its few types are declared here, so that no vendor header is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dl.h"
#include "machine/gpu.h"

typedef struct rfl_nvml_device *nvml_device;

struct nvml_memory {
	unsigned long long total, free, used;
};

enum { NVML_SUCCESS = 0 };

struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error)(int code);
	int (*driver_version)(char *out, unsigned size);
	int (*count)(unsigned *out);
	int (*handle)(unsigned index, nvml_device *out);
	int (*name)(nvml_device device, char *out, unsigned size);
	int (*uuid)(nvml_device device, char *out, unsigned size);
	int (*memory)(nvml_device device, struct nvml_memory *out);
	int (*compute_capability)(nvml_device device, int *major, int *minor);
};

static const char *const libraries[] = { "libnvidia-ml.so.1", "libnvidia-ml.so", NULL };

static enum rfl_rc open_nvml(struct nvml *n, struct rfl_dl **dl, struct rfl_err *err)
{
	const struct rfl_dl_symbol symbols[] = {
		{ "nvmlInit_v2", &n->init, false },
		{ "nvmlShutdown", &n->shutdown, false },
		{ "nvmlErrorString", &n->error, false },
		{ "nvmlSystemGetDriverVersion", &n->driver_version, false },
		{ "nvmlDeviceGetCount_v2", &n->count, false },
		{ "nvmlDeviceGetHandleByIndex_v2", &n->handle, false },
		{ "nvmlDeviceGetName", &n->name, false },
		{ "nvmlDeviceGetUUID", &n->uuid, true },
		{ "nvmlDeviceGetMemoryInfo", &n->memory, true },
		{ "nvmlDeviceGetCudaComputeCapability", &n->compute_capability, true },
	};

	return rfl_dl_open(libraries, symbols, RFL_ARRAY_LEN(symbols), dl, err);
}

/* What NVML answers, as our error; `what` is what was asked. */
static enum rfl_rc check(const struct nvml *n, int code, const char *what, struct rfl_err *err)
{
	if (code == NVML_SUCCESS)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, code, "the NVIDIA driver does not answer %s: %s",
			what, n->error(code));
}

static enum rfl_rc read_gpu(const struct nvml *n, unsigned index, struct rfl_gpu *gpu,
			    struct rfl_err *err)
{
	nvml_device device = NULL;
	struct nvml_memory memory;
	enum rfl_rc rc = check(n, n->handle(index, &device), "nvmlDeviceGetHandleByIndex", err);

	if (rc == RFL_OK)
		rc = check(n, n->name(device, gpu->name, sizeof(gpu->name)), "nvmlDeviceGetName",
			   err);
	if (rc != RFL_OK)
		return rc;
	if (!n->uuid || n->uuid(device, gpu->uuid, sizeof(gpu->uuid)) != NVML_SUCCESS)
		gpu->uuid[0] = '\0';
	if (n->memory && n->memory(device, &memory) == NVML_SUCCESS)
		gpu->memory_bytes = (int64_t)memory.total;
	if (!n->compute_capability ||
	    n->compute_capability(device, &gpu->cc_major, &gpu->cc_minor) != NVML_SUCCESS)
		gpu->cc_major = gpu->cc_minor = 0;
	return RFL_OK;
}

static enum rfl_rc read_gpus(const struct nvml *n, struct rfl_gpus *g, struct rfl_err *err)
{
	unsigned count = 0;
	enum rfl_rc rc = check(n, n->count(&count), "nvmlDeviceGetCount", err);

	if (rc != RFL_OK)
		return rc;
	if (count == 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "the NVIDIA driver shows no GPU");
	if (n->driver_version(g->driver, sizeof(g->driver)) != NVML_SUCCESS)
		g->driver[0] = '\0';
	g->gpus = rfl_alloc_array(count, sizeof(*g->gpus));
	if (!g->gpus)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %u GPUs", count);
	for (; g->n < count; g->n++) {
		rc = read_gpu(n, (unsigned)g->n, &g->gpus[g->n], err);
		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}

enum rfl_rc rfl_gpus_new(struct rfl_gpus **ret, struct rfl_err *err)
{
	struct nvml n = { 0 };
	struct rfl_dl *dl = NULL;
	struct rfl_gpus *g = NULL;
	bool started = false;
	enum rfl_rc rc = open_nvml(&n, &dl, err);

	if (rc != RFL_OK) {
		if (err)
			rfl_err_prefix(err, "no NVIDIA driver here");
		goto done;
	}
	rc = check(&n, n.init(), "nvmlInit", err);
	if (rc != RFL_OK)
		goto done;
	started = true;
	g = calloc(1, sizeof(*g));
	if (!g) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the list of GPUs");
		goto done;
	}
	rc = read_gpus(&n, g, err);
	if (rc != RFL_OK)
		goto done;

	*ret = g;
	g = NULL;
done:
	if (started)
		(void)n.shutdown();
	rfl_gpus_free(g);
	rfl_dl_close(dl);
	return rc;
}

void rfl_gpus_free(struct rfl_gpus *g)
{
	if (!g)
		return;
	free(g->gpus);
	free(g);
}
