/*
 * gpu.c - names of GPUs and driver, as NVML tells them.
 */
#include "machine/gpu.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "machine/nvml.h"

static double max_clock_hz(const struct rfl_nvml *n, rfl_nvml_device device, int clock)
{
	unsigned mhz;

	if (!n->max_clock_mhz || n->max_clock_mhz(device, clock, &mhz) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return mhz * 1e6;
}

/* What an administrator may set, and a GPU may not have. */
static void read_settings(const struct rfl_nvml *n, rfl_nvml_device device, struct rfl_gpu *gpu)
{
	unsigned value, pending;

	gpu->sm_clock_max_hz = max_clock_hz(n, device, RFL_NVML_CLOCK_SM);
	gpu->memory_clock_max_hz = max_clock_hz(n, device, RFL_NVML_CLOCK_MEMORY);
	gpu->power_limit_w = NAN;
	if (n->power_limit_mw && n->power_limit_mw(device, &value) == RFL_NVML_SUCCESS)
		gpu->power_limit_w = value * 1e-3;
	gpu->ecc = gpu->persistence = RFL_NOT_KNOWN;
	if (n->ecc && n->ecc(device, &value, &pending) == RFL_NVML_SUCCESS)
		gpu->ecc = value ? RFL_YES : RFL_NO;
	if (n->persistence && n->persistence(device, &value) == RFL_NVML_SUCCESS)
		gpu->persistence = value ? RFL_YES : RFL_NO;
}

static enum rfl_rc read_gpu(const struct rfl_nvml *n, unsigned index, struct rfl_gpu *gpu,
			    struct rfl_err *err)
{
	rfl_nvml_device device = NULL;
	struct rfl_nvml_memory memory;
	enum rfl_rc rc =
		rfl_nvml_check(n, n->handle(index, &device), "nvmlDeviceGetHandleByIndex", err);

	if (rc == RFL_OK)
		rc = rfl_nvml_check(n, n->name(device, gpu->name, sizeof(gpu->name)),
				    "nvmlDeviceGetName", err);
	if (rc != RFL_OK)
		return rc;
	if (!n->uuid || n->uuid(device, gpu->uuid, sizeof(gpu->uuid)) != RFL_NVML_SUCCESS)
		gpu->uuid[0] = '\0';
	if (n->memory && n->memory(device, &memory) == RFL_NVML_SUCCESS)
		gpu->memory_bytes = (int64_t)memory.total;
	if (!n->compute_capability ||
	    n->compute_capability(device, &gpu->cc_major, &gpu->cc_minor) != RFL_NVML_SUCCESS)
		gpu->cc_major = gpu->cc_minor = 0;
	read_settings(n, device, gpu);
	return RFL_OK;
}

static enum rfl_rc read_gpus(const struct rfl_nvml *n, struct rfl_gpus *g, struct rfl_err *err)
{
	unsigned count = 0;
	enum rfl_rc rc = rfl_nvml_check(n, n->count(&count), "nvmlDeviceGetCount", err);

	if (rc != RFL_OK)
		return rc;
	if (count == 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "the NVIDIA driver shows no GPU");
	if (n->driver_version(g->driver, sizeof(g->driver)) != RFL_NVML_SUCCESS)
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
	struct rfl_nvml n = { .dl = NULL };
	struct rfl_gpus *g = NULL;
	enum rfl_rc rc = rfl_nvml_open(&n, err);

	if (rc != RFL_OK)
		goto done;
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
	rfl_gpus_free(g);
	rfl_nvml_close(&n);
	return rc;
}

void rfl_gpus_free(struct rfl_gpus *g)
{
	if (!g)
		return;
	free(g->gpus);
	free(g);
}
