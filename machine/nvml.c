/*
 * nvml.c - NVIDIA's management library, opened when a command needs it, and the names and settings
 * of GPUs that it gives.
 */
#include "machine/nvml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "machine/gpu.h"

static const char *const libraries[] = { "libnvidia-ml.so.1", "libnvidia-ml.so", NULL };

enum rfl_rc rfl_nvml_check(const struct rfl_nvml *n, int code, const char *what,
			   struct rfl_err *err)
{
	if (code == RFL_NVML_SUCCESS)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, code, "the NVIDIA driver does not answer %s: %s",
			what, n->error(code));
}

enum rfl_rc rfl_nvml_open(struct rfl_nvml *n, struct rfl_err *err)
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
		{ "nvmlDeviceGetPciInfo_v3", &n->pci, true },
		{ "nvmlDeviceGetClockInfo", &n->clock_mhz, true },
		{ "nvmlDeviceGetPowerUsage", &n->power_mw, true },
		{ "nvmlDeviceGetFieldValues", &n->fields, true },
		{ "nvmlDeviceGetTotalEnergyConsumption", &n->energy_mj, true },
		{ "nvmlDeviceGetTemperature", &n->temperature_c, true },
		{ "nvmlDeviceGetMaxClockInfo", &n->max_clock_mhz, true },
		{ "nvmlDeviceGetEnforcedPowerLimit", &n->power_limit_mw, true },
		{ "nvmlDeviceGetEccMode", &n->ecc, true },
		{ "nvmlDeviceGetPersistenceMode", &n->persistence, true },
	};
	/* The reasons for slow clocks were renamed; the old name is still there in today's drivers.
	 */
	static const char *const renamed[] = { "nvmlDeviceGetCurrentClocksEventReasons",
					       "nvmlDeviceGetCurrentClocksThrottleReasons" };
	enum rfl_rc rc;

	*n = (struct rfl_nvml){ .dl = NULL };
	rc = rfl_dl_open(libraries, symbols, RFL_ARRAY_LEN(symbols), &n->dl, err);
	if (rc != RFL_OK) {
		rfl_err_prefix(err, "no NVIDIA driver here");
		return rc;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(renamed) && !n->clocks_reasons; i++) {
		void *address = rfl_dl_sym(n->dl, renamed[i]);

		memcpy(&n->clocks_reasons, &address, sizeof(address));
	}
	rc = rfl_nvml_check(n, n->init(), "nvmlInit", err);
	if (rc == RFL_OK)
		return RFL_OK;
	rfl_dl_close(n->dl);
	*n = (struct rfl_nvml){ .dl = NULL };
	return rc;
}

void rfl_nvml_close(struct rfl_nvml *n)
{
	if (!n->dl)
		return;
	(void)n->shutdown();
	rfl_dl_close(n->dl);
	*n = (struct rfl_nvml){ .dl = NULL };
}

/* --- names and settings ----------------------------------------------------------------------- */

static double max_clock_hz(const struct rfl_nvml *n, rfl_nvml_device device, int clock)
{
	unsigned mhz;

	if (!n->max_clock_mhz || n->max_clock_mhz(device, clock, &mhz) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return mhz * 1e6;
}

static enum rfl_rc read_gpu(const struct rfl_nvml *n, unsigned index, struct rfl_gpu *gpu,
			    struct rfl_err *err)
{
	rfl_nvml_device device = NULL;
	struct rfl_nvml_memory memory;
	unsigned value, pending;
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
	/* what an administrator may set, and a GPU may not have */
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
	return RFL_OK;
}

enum rfl_rc rfl_gpus_new(struct rfl_gpus **ret, struct rfl_err *err)
{
	struct rfl_nvml n = { .dl = NULL };
	struct rfl_gpus *g = NULL;
	unsigned count = 0;
	enum rfl_rc rc = rfl_nvml_open(&n, err);

	if (rc == RFL_OK)
		rc = rfl_nvml_check(&n, n.count(&count), "nvmlDeviceGetCount", err);
	if (rc == RFL_OK && count == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "the NVIDIA driver shows no GPU");
	if (rc != RFL_OK)
		goto done;
	g = calloc(1, sizeof(*g));
	if (g)
		g->gpus = rfl_alloc_array(count, sizeof(*g->gpus));
	if (!g || !g->gpus) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %u GPUs", count);
		goto done;
	}
	if (n.driver_version(g->driver, sizeof(g->driver)) != RFL_NVML_SUCCESS)
		g->driver[0] = '\0';
	for (; g->n < count; g->n++) {
		rc = read_gpu(&n, (unsigned)g->n, &g->gpus[g->n], err);
		if (rc != RFL_OK)
			goto done;
	}
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
