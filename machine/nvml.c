/*
 * nvml.c - NVIDIA's management library, opened when a command needs it.
 */
#include "machine/nvml.h"

#include <string.h>

static const char *const libraries[] = { "libnvidia-ml.so.1", "libnvidia-ml.so", NULL };

/* The reasons for slow clocks were renamed; the old name is still there in today's drivers. */
static void find_renamed(struct rfl_nvml *n)
{
	static const char *const names[] = { "nvmlDeviceGetCurrentClocksEventReasons",
					     "nvmlDeviceGetCurrentClocksThrottleReasons" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(names) && !n->clocks_reasons; i++) {
		void *address = rfl_dl_sym(n->dl, names[i]);

		memcpy(&n->clocks_reasons, &address, sizeof(address));
	}
}

static enum rfl_rc load(struct rfl_nvml *n, struct rfl_err *err)
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
	enum rfl_rc rc = rfl_dl_open(libraries, symbols, RFL_ARRAY_LEN(symbols), &n->dl, err);

	if (rc == RFL_OK)
		find_renamed(n);
	else if (err)
		rfl_err_prefix(err, "no NVIDIA driver here");
	return rc;
}

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
	enum rfl_rc rc;

	*n = (struct rfl_nvml){ .dl = NULL };
	rc = load(n, err);
	if (rc == RFL_OK)
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
