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

/** Functions of the library; those below the line are NULL in versions that lack them. */
struct rfl_nvml {
	struct rfl_dl *dl; /* NULL: not open */
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error)(int code);
	int (*driver_version)(char *out, unsigned size);
	int (*count)(unsigned *out);
	int (*handle)(unsigned index, rfl_nvml_device *out);
	int (*name)(rfl_nvml_device device, char *out, unsigned size);
	/* ---- */
	int (*uuid)(rfl_nvml_device device, char *out, unsigned size);
	int (*memory)(rfl_nvml_device device, struct rfl_nvml_memory *out);
	int (*compute_capability)(rfl_nvml_device device, int *major, int *minor);
	int (*pci)(rfl_nvml_device device, struct rfl_nvml_pci *out);
	int (*clock_mhz)(rfl_nvml_device device, int clock, unsigned *out);
	int (*power_mw)(rfl_nvml_device device, unsigned *out);
	int (*fields)(rfl_nvml_device device, int n, struct rfl_nvml_field *fields);
	int (*energy_mj)(rfl_nvml_device device, unsigned long long *out);
	int (*temperature_c)(rfl_nvml_device device, int sensor, unsigned *out);
	int (*clocks_reasons)(rfl_nvml_device device, unsigned long long *out);
	int (*max_clock_mhz)(rfl_nvml_device device, int clock, unsigned *out);
	int (*power_limit_mw)(rfl_nvml_device device, unsigned *out);
	int (*ecc)(rfl_nvml_device device, unsigned *current, unsigned *pending);
	int (*persistence)(rfl_nvml_device device, unsigned *out);
};

#endif
