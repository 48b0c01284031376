/*
 * fake_nvml.c - libnvidia-ml.so.1 for tests: GPUs that say what FAKE_NVML or fake_nvml_control()
 * says so; see README.md. Built twice: with FAKE_NVML_OLD it is a driver of before the
 * renaming of the throttle reasons, on a GPU without an energy counter.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "machine/nvml.h"
#include "tests/fakes/fake_script.h"

enum { NOT_INITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3 };
#define MAX_GPUS 8

RFL_EXPORT void fake_nvml_control(const char *text);
RFL_EXPORT int fake_nvml_sessions(void);
RFL_EXPORT int fake_nvml_calls(const char *call);

RFL_EXPORT int nvmlInit_v2(void);
RFL_EXPORT int nvmlShutdown(void);
RFL_EXPORT const char *nvmlErrorString(int code);
RFL_EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned size);
RFL_EXPORT int nvmlDeviceGetCount_v2(unsigned *out);
RFL_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, rfl_nvml_device *out);
RFL_EXPORT int nvmlDeviceGetName(rfl_nvml_device device, char *out, unsigned size);
RFL_EXPORT int nvmlDeviceGetMemoryInfo(rfl_nvml_device device, struct rfl_nvml_memory *out);
RFL_EXPORT int nvmlDeviceGetPciInfo_v3(rfl_nvml_device device, struct rfl_nvml_pci *out);
RFL_EXPORT int nvmlDeviceGetClockInfo(rfl_nvml_device device, int clock, unsigned *out);
RFL_EXPORT int nvmlDeviceGetFieldValues(rfl_nvml_device device, int n,
					struct rfl_nvml_field *fields);
RFL_EXPORT int nvmlDeviceGetPowerUsage(rfl_nvml_device device, unsigned *out);
RFL_EXPORT int nvmlDeviceGetTotalEnergyConsumption(rfl_nvml_device device, unsigned long long *out);
RFL_EXPORT int nvmlDeviceGetTemperature(rfl_nvml_device device, int sensor, unsigned *out);
RFL_EXPORT int nvmlDeviceGetCurrentClocksEventReasons(rfl_nvml_device device,
						      unsigned long long *out);
RFL_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(rfl_nvml_device device,
							 unsigned long long *out);
RFL_EXPORT int nvmlDeviceGetMaxClockInfo(rfl_nvml_device device, int clock, unsigned *out);
RFL_EXPORT int nvmlDeviceGetEnforcedPowerLimit(rfl_nvml_device device, unsigned *out);
RFL_EXPORT int nvmlDeviceGetEccMode(rfl_nvml_device device, unsigned *current, unsigned *pending);
RFL_EXPORT int nvmlDeviceGetPersistenceMode(rfl_nvml_device device, unsigned *out);

/* A handle is the address of one of these. */
static struct rfl_nvml_handle {
	unsigned index;
} gpus[MAX_GPUS];

/* NVML is called by several threads at once; the script and its log are not made for that. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_script script = { .variable = "FAKE_NVML" };
static int sessions;

/* How often each was called; what is scripted per call goes by it. */
static struct {
	const char *name;
	int n;
} calls[32];

static int *calls_of(const char *name)
{
	size_t i = 0;

	while (calls[i].name && strcmp(calls[i].name, name) != 0)
		i++;
	calls[i].name = name;
	return &calls[i].n;
}

void fake_nvml_control(const char *text)
{
	(void)pthread_mutex_lock(&lock);
	fake_script_set(&script, text);
	memset(calls, 0, sizeof(calls));
	sessions = 0;
	(void)pthread_mutex_unlock(&lock);
}

int fake_nvml_sessions(void)
{
	return sessions;
}

int fake_nvml_calls(const char *call)
{
	int n;

	(void)pthread_mutex_lock(&lock);
	n = *calls_of(call);
	(void)pthread_mutex_unlock(&lock);
	return n;
}

/* "lose=CALL@N": not supported from the N-th call on, the first being 1. */
static bool is_lost(const char *call, int n)
{
	char item[FAKE_VALUE_MAX];
	size_t at = 0, len = strlen(call);

	while (fake_script_next(&script, "lose", &at, item))
		if (strncmp(item, call, len) == 0 && item[len] == '@' &&
		    n >= strtod(item + len + 1, NULL))
			return true;
	return false;
}

/* The code that a call returns, and how many came before it. */
static int enter(const char *call, int *before)
{
	int *n, code;

	(void)pthread_mutex_lock(&lock);
	n = calls_of(call);
	*before = (*n)++;
	code = fake_script_enter(&script, call);
	if (code == 0 && sessions == 0 && strcmp(call, "nvmlInit_v2") != 0)
		code = NOT_INITIALIZED;
	if (code == 0 && is_lost(call, *n))
		code = NOT_SUPPORTED;
	(void)pthread_mutex_unlock(&lock);
	return code;
}

/* "KEY=a,b,c", or "KEY<device>=a,b,c" of one device: the i-th value, the last for ever. */
static double value_of(const char *key, rfl_nvml_device device, int i, double otherwise)
{
	char text[FAKE_VALUE_MAX], own[64];
	const char *at = text;
	bool found;

	snprintf(own, sizeof(own), "%s%u", key, device->index);
	(void)pthread_mutex_lock(&lock);
	found = fake_script_text(&script, own, text) || fake_script_text(&script, key, text);
	(void)pthread_mutex_unlock(&lock);
	if (!found)
		return otherwise;
	for (const char *comma; i > 0 && (comma = strchr(at, ',')); i--)
		at = comma + 1;
	return strtod(at, NULL);
}

int nvmlInit_v2(void)
{
	int n, code = enter(__func__, &n);

	if (code == 0)
		sessions++;
	return code;
}

int nvmlShutdown(void)
{
	int n, code = enter(__func__, &n);

	if (code == 0)
		sessions--;
	return code;
}

const char *nvmlErrorString(int code)
{
	switch (code) {
	case NOT_INITIALIZED:
		return "Uninitialized";
	case INVALID:
		return "Invalid Argument";
	case NOT_SUPPORTED:
		return "Not Supported";
	case 9:
		return "Driver Not Loaded";
	default:
		return "Unknown Error";
	}
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
	int n, code = enter(__func__, &n);

	snprintf(out, size, "580.00");
	return code;
}

static unsigned count(void)
{
	unsigned n;

	(void)pthread_mutex_lock(&lock);
	n = (unsigned)fake_script_number(&script, "count", 1);
	(void)pthread_mutex_unlock(&lock);
	return n < MAX_GPUS ? n : MAX_GPUS;
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
	int n, code = enter(__func__, &n);

	*out = count();
	return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, rfl_nvml_device *out)
{
	int n, code = enter(__func__, &n);

	if (code == 0 && index >= count())
		code = INVALID;
	if (code == 0) {
		gpus[index].index = index;
		*out = &gpus[index];
	}
	return code;
}

int nvmlDeviceGetName(rfl_nvml_device device, char *out, unsigned size)
{
	char name[FAKE_VALUE_MAX];
	int n, code = enter(__func__, &n);

	if (fake_script_text(&script, "name", name))
		snprintf(out, size, "%s", name);
	else
		snprintf(out, size, "Fake GPU %u", device->index);
	return code;
}

int nvmlDeviceGetMemoryInfo(rfl_nvml_device device, struct rfl_nvml_memory *out)
{
	int n, code = enter(__func__, &n);

	out->total = 16000000000ull;
	out->used = (unsigned long long)value_of("used", device, n, 1e9);
	out->free = out->total - out->used;
	return code;
}

/* Device i is on bus 0x0A + i. */
int nvmlDeviceGetPciInfo_v3(rfl_nvml_device device, struct rfl_nvml_pci *out)
{
	int n, code = enter(__func__, &n);

	memset(out, 0, sizeof(*out));
	out->bus = 0x0a + device->index;
	snprintf(out->bus_id, sizeof(out->bus_id), "00000000:%02X:00.0", out->bus);
	return code;
}

int nvmlDeviceGetClockInfo(rfl_nvml_device device, int clock, unsigned *out)
{
	const bool sm = clock == RFL_NVML_CLOCK_SM;
	int n, code = enter(sm ? "sm" : "memory", &n);

	if (clock != RFL_NVML_CLOCK_SM && clock != RFL_NVML_CLOCK_MEMORY)
		return INVALID;
	*out = (unsigned)(sm ? value_of("sm", device, n, 1500) : value_of("mem", device, n, 6000));
	return code;
}

int nvmlDeviceGetPowerUsage(rfl_nvml_device device, unsigned *out)
{
	int n, code = enter("average", &n);

	*out = (unsigned)(1000 * value_of("average", device, n, 40));
	return code;
}

int nvmlDeviceGetTemperature(rfl_nvml_device device, int sensor, unsigned *out)
{
	int n, code = enter("temperature", &n);

	*out = (unsigned)value_of("temperature", device, n, 50);
	return sensor == 0 ? code : INVALID;
}

static int reasons(rfl_nvml_device device, unsigned long long *out)
{
	int n, code = enter("reasons", &n);

	*out = (unsigned long long)value_of("reasons", device, n, 0);
	return code;
}

#ifdef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(rfl_nvml_device device, unsigned long long *out)
{
	return reasons(device, out);
}
#else
int nvmlDeviceGetFieldValues(rfl_nvml_device device, int n_fields, struct rfl_nvml_field *fields)
{
	int n, code = enter("power", &n);

	for (int i = 0; i < n_fields; i++) {
		fields[i].result = code;
		if (fields[i].id != RFL_NVML_POWER_INSTANT)
			fields[i].result = NOT_SUPPORTED;
		fields[i].value.natural = (unsigned)(1000 * value_of("power", device, n, 100));
	}
	return 0;
}

int nvmlDeviceGetCurrentClocksEventReasons(rfl_nvml_device device, unsigned long long *out)
{
	return reasons(device, out);
}

/* Joules at each call. */
int nvmlDeviceGetTotalEnergyConsumption(rfl_nvml_device device, unsigned long long *out)
{
	int n, code = enter("energy", &n);

	*out = (unsigned long long)(1000 * value_of("energy", device, n, 0));
	return code;
}

int nvmlDeviceGetMaxClockInfo(rfl_nvml_device device, int clock, unsigned *out)
{
	const bool sm = clock == RFL_NVML_CLOCK_SM;
	int n, code = enter("max_clock", &n);

	*out = (unsigned)value_of(sm ? "sm_max" : "mem_max", device, n, sm ? 2040 : 6251);
	return code;
}

int nvmlDeviceGetEnforcedPowerLimit(rfl_nvml_device device, unsigned *out)
{
	int n, code = enter("power_limit", &n);

	*out = (unsigned)(1000 * value_of("power_limit", device, n, 72));
	return code;
}

int nvmlDeviceGetEccMode(rfl_nvml_device device, unsigned *current, unsigned *pending)
{
	int n, code = enter("ecc", &n);

	*current = *pending = (unsigned)value_of("ecc", device, n, 1);
	return code;
}

int nvmlDeviceGetPersistenceMode(rfl_nvml_device device, unsigned *out)
{
	int n, code = enter("persistence", &n);

	*out = (unsigned)value_of("persistence", device, n, 0);
	return code;
}
#endif
