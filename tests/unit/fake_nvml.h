/*
 * fake_nvml.h - the fake libnvidia-ml (tests/fakes) in this process.
 */
#ifndef RFL_TESTS_FAKE_NVML_H
#define RFL_TESTS_FAKE_NVML_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/rfl_test.h"

static struct {
	void (*control)(const char *script);
	int (*sessions)(void);
	int (*calls)(const char *call);
} fake_nvml;

static void fake_nvml_symbol(void *dl, const char *name, void *slot)
{
	void *address = dlsym(dl, name);

	if (!address)
		fail_msg("%s is not in the fake library", name);
	memcpy(slot, &address, sizeof(address));
}

/* From here on "libnvidia-ml.so.1" is the one in this directory: "nvml" or "nvml-old". */
static void fake_nvml_load(const char *folder)
{
	char path[4096];
	void *dl;

	snprintf(path, sizeof(path), "%s/tests/fakes/%s/libnvidia-ml.so.1", RFL_TEST_BUILD, folder);
	dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		fail_msg("%s", dlerror());
	fake_nvml_symbol(dl, "fake_nvml_control", &fake_nvml.control);
	fake_nvml_symbol(dl, "fake_nvml_sessions", &fake_nvml.sessions);
	fake_nvml_symbol(dl, "fake_nvml_calls", &fake_nvml.calls);
}

#endif
