/*
 * os_macos.c - CPU and memory of a Mac by sysctl. It is compiled and linked by tests/ci/macos.sh,
 * but was not run. Other facts are read from files that macOS does not have, and are not known
 * there.
 */
#include <errno.h>
#include <mach/mach.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysctl.h>

#include "machine/machine_parts.h"

const bool rfl_pins_threads = false;

enum rfl_rc rfl_pin_thread(int os_index, struct rfl_err *err)
{
	(void)os_index;
	(void)err;
	return RFL_OK;
}

enum rfl_rc rfl_bind_memory(void *at, size_t bytes, int numa_node, struct rfl_err *err)
{
	(void)at;
	(void)bytes;
	return rfl_fail(err, RFL_EUNAVAILABLE, ENOTSUP,
			"cannot bind memory to NUMA node %d: macOS does not support it", numa_node);
}

/* 0 if there is no such value. Most are of 4 bytes, sizes of 8. */
static int64_t value(const char *name)
{
	int64_t n = 0; /* little-endian */
	size_t size = sizeof(n);

	return sysctlbyname(name, &n, &size, NULL, 0) == 0 ? n : 0;
}

uint64_t rfl_isa_detect(void)
{
	static const struct {
		enum rfl_isa isa;
		const char *name;
	} features[] = {
		{ RFL_ISA_NEON, "hw.optional.neon" },
		{ RFL_ISA_ARM_FP16, "hw.optional.arm.FEAT_FP16" },
		{ RFL_ISA_ARM_DOTPROD, "hw.optional.arm.FEAT_DotProd" },
		{ RFL_ISA_ARM_I8MM, "hw.optional.arm.FEAT_I8MM" },
		{ RFL_ISA_ARM_BF16, "hw.optional.arm.FEAT_BF16" },
		{ RFL_ISA_SME, "hw.optional.arm.FEAT_SME" },
	};
	uint64_t found = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(features); i++)
		if (value(features[i].name) > 0)
			found |= UINT64_C(1) << features[i].isa;
	return found;
}

void rfl_isa_cpu_brand(char out[49])
{
	size_t size = 48;

	memset(out, 0, 49);
	(void)sysctlbyname("machdep.cpu.brand_string", out, &size, NULL, 0);
}

void rfl_cpu_id_get(const char *root, struct rfl_cpu_id *ret)
{
	(void)root;
	*ret = (struct rfl_cpu_id){ .vendor = "0x61" };
}

/* Memory that is free, or filled with cached files. */
static int64_t available_bytes(void)
{
	mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
	vm_statistics64_data_t pages;

	if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages, &n) !=
	    KERN_SUCCESS)
		return 0;
	return ((int64_t)pages.free_count + (int64_t)pages.external_page_count) *
	       (int64_t)vm_kernel_page_size;
}

void rfl_machine__limits(struct rfl_machine *m, const char *root)
{
	(void)root;
	m->memory_bytes = value("hw.memsize");
	m->memory_available_bytes = available_bytes();
	m->cpu_quota = NAN;
}

int64_t rfl_machine_oom_kills(const char *root)
{
	(void)root;
	return -1;
}
