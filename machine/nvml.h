/*
 * nvml.h - the types and functions of NVIDIA's libnvidia-ml (part of the driver) that gpu.c uses,
 * declared here so that no vendor header is needed.
 */
#ifndef RFL_MACHINE_NVML_H
#define RFL_MACHINE_NVML_H

typedef struct rfl_nvml_handle *rfl_nvml_device;

/** The layout of nvmlMemory_t. */
struct rfl_nvml_memory {
	unsigned long long total, free, used;
};

/** The layout of nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3. */
struct rfl_nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device;
	unsigned pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

/** The layout of nvmlFieldValue_t. */
struct rfl_nvml_field {
	unsigned id, scope;
	long long timestamp, latency_us;
	int type, result;
	union {
		double real;
		unsigned natural;
	} value;
};
enum { RFL_NVML_POWER_INSTANT = 186 }; /* mW, natural */

enum { RFL_NVML_SUCCESS = 0, RFL_NVML_CLOCK_SM = 1, RFL_NVML_CLOCK_MEMORY = 2 };

/* X(member, symbol, optional, arguments): functions that return a code. Optional ones are NULL in
 * versions of the library that lack them. */
/* clang-format off */
#define RFL_NVML_FUNCTIONS(X) \
	X(init, "nvmlInit_v2", false, (void)) \
	X(shutdown, "nvmlShutdown", false, (void)) \
	X(driver_version, "nvmlSystemGetDriverVersion", false, (char *out, unsigned size)) \
	X(count, "nvmlDeviceGetCount_v2", false, (unsigned *out)) \
	X(handle, "nvmlDeviceGetHandleByIndex_v2", false, (unsigned index, rfl_nvml_device *out)) \
	X(name, "nvmlDeviceGetName", false, (rfl_nvml_device device, char *out, unsigned size)) \
	X(uuid, "nvmlDeviceGetUUID", true, (rfl_nvml_device device, char *out, unsigned size)) \
	X(memory, "nvmlDeviceGetMemoryInfo", true, (rfl_nvml_device device, struct rfl_nvml_memory *out)) \
	X(compute_capability, "nvmlDeviceGetCudaComputeCapability", true, (rfl_nvml_device device, int *major, int *minor)) \
	X(pci, "nvmlDeviceGetPciInfo_v3", true, (rfl_nvml_device device, struct rfl_nvml_pci *out)) \
	X(clock_mhz, "nvmlDeviceGetClockInfo", true, (rfl_nvml_device device, int clock, unsigned *out)) \
	X(power_mw, "nvmlDeviceGetPowerUsage", true, (rfl_nvml_device device, unsigned *out)) \
	X(fields, "nvmlDeviceGetFieldValues", true, (rfl_nvml_device device, int n, struct rfl_nvml_field *fields)) \
	X(energy_mj, "nvmlDeviceGetTotalEnergyConsumption", true, (rfl_nvml_device device, unsigned long long *out)) \
	X(temperature_c, "nvmlDeviceGetTemperature", true, (rfl_nvml_device device, int sensor, unsigned *out)) \
	X(max_clock_mhz, "nvmlDeviceGetMaxClockInfo", true, (rfl_nvml_device device, int clock, unsigned *out)) \
	X(power_limit_mw, "nvmlDeviceGetEnforcedPowerLimit", true, (rfl_nvml_device device, unsigned *out)) \
	X(ecc, "nvmlDeviceGetEccMode", true, (rfl_nvml_device device, unsigned *current, unsigned *pending)) \
	X(persistence, "nvmlDeviceGetPersistenceMode", true, (rfl_nvml_device device, unsigned *out)) \
	/* newer drivers have both of its names, older drivers only the second */ \
	X(clocks_reasons, "nvmlDeviceGetCurrentClocksEventReasons", true, (rfl_nvml_device device, unsigned long long *out)) \
	X(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", true, (rfl_nvml_device device, unsigned long long *out))
/* clang-format on */

struct rfl_nvml {
	struct rfl_dl *dl; /* NULL: not open */
	const char *(*error)(int code);
#define RFL_NVML_MEMBER(member, symbol, optional, arguments) int(*member) arguments;
	RFL_NVML_FUNCTIONS(RFL_NVML_MEMBER)
};

#endif
