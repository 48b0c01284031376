/*
 * test_machine_nvml_abi.c - what machine/nvml.h declares of NVML is what NVIDIA's header declares.
 */
#include <stddef.h>
#include <stdio.h>

#include "tests/unit/rfl_test.h"

#ifdef RFL_TEST_NVML_HEADERS
#include <nvml.h>

#include "base/compiler.h"
#include "machine/nvml.h"

#define SIZE(ours, theirs)                                   \
	{                                                    \
#theirs, sizeof(struct ours), sizeof(theirs) \
	}
#define MEMBER(ours, theirs, our_member, their_member)                        \
	{                                                                     \
#theirs "." #their_member, offsetof(struct ours, our_member), \
			offsetof(theirs, their_member)                        \
	}
static const struct {
	const char *what;
	size_t ours, theirs;
} pairs[] = {
	SIZE(rfl_nvml_memory, nvmlMemory_t),
	MEMBER(rfl_nvml_memory, nvmlMemory_t, free, free),
	MEMBER(rfl_nvml_memory, nvmlMemory_t, used, used),
	SIZE(rfl_nvml_pci, nvmlPciInfo_t),
	MEMBER(rfl_nvml_pci, nvmlPciInfo_t, domain, domain),
	MEMBER(rfl_nvml_pci, nvmlPciInfo_t, pci_subsystem_id, pciSubSystemId),
	MEMBER(rfl_nvml_pci, nvmlPciInfo_t, bus_id, busId),
	SIZE(rfl_nvml_field, nvmlFieldValue_t),
	MEMBER(rfl_nvml_field, nvmlFieldValue_t, scope, scopeId),
	MEMBER(rfl_nvml_field, nvmlFieldValue_t, latency_us, latencyUsec),
	MEMBER(rfl_nvml_field, nvmlFieldValue_t, type, valueType),
	MEMBER(rfl_nvml_field, nvmlFieldValue_t, result, nvmlReturn),
	MEMBER(rfl_nvml_field, nvmlFieldValue_t, value, value),
	{ "NVML_FI_DEV_POWER_INSTANT", RFL_NVML_POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT },
	{ "NVML_SUCCESS", RFL_NVML_SUCCESS, NVML_SUCCESS },
	{ "NVML_CLOCK_SM", RFL_NVML_CLOCK_SM, NVML_CLOCK_SM },
	{ "NVML_CLOCK_MEM", RFL_NVML_CLOCK_MEMORY, NVML_CLOCK_MEM },
};

static void numbers_and_layouts_are_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(pairs); i++)
		if (pairs[i].ours != pairs[i].theirs)
			fail_msg("%s: %zu here, %zu in NVIDIA's header", pairs[i].what,
				 pairs[i].ours, pairs[i].theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_layouts_are_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("skipped: no nvml.h was found when this was configured (PyPI: nvidia-nvml-dev)");
	return 77;
}

#endif
