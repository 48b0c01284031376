/*
 * os_linux.c - threads and memory bound by system calls; the CPU by the auxiliary vector and
 * /proc/cpuinfo, unless it is an x86 CPU (cpuid.c).
 */
#define _GNU_SOURCE /* sched_setaffinity, syscall */

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/machine_parts.h"

#define CPUS_MAX 8192

const bool rfl_pins_threads = true;

enum rfl_rc rfl_pin_thread(int os_index, struct rfl_err *err)
{
	cpu_set_t set[CPUS_MAX / CPU_SETSIZE]; /* one set holds 1024 CPUs */

	if (os_index < 0 || os_index >= CPUS_MAX)
		return rfl_fail(err, RFL_EINVAL, 0, "cpu %d does not exist", os_index);
	CPU_ZERO_S(sizeof(set), set);
	CPU_SET_S((size_t)os_index, sizeof(set), set);
	if (sched_setaffinity(0, sizeof(set), set) != 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, errno,
				"cannot bind a thread to cpu %d: %s; check the affinity mask of "
				"this process (taskset -p)",
				os_index, strerror(errno));
	return RFL_OK;
}

enum rfl_rc rfl_bind_memory(void *at, size_t bytes, int numa_node, struct rfl_err *err)
{
	enum { BITS = 8 * sizeof(unsigned long), NODES_MAX = 1024 };
	unsigned long nodes[NODES_MAX / BITS] = { 0 };
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at / page * page;
	const size_t len = ((uintptr_t)at + bytes + page - 1) / page * page - from;

	if (numa_node < 0 || numa_node >= NODES_MAX)
		return rfl_fail(err, RFL_EINVAL, 0, "NUMA node %d does not exist", numa_node);
	nodes[numa_node / BITS] = 1ul << (numa_node % BITS);
	/* the kernel ignores the last bit of the length */
	if (syscall(SYS_mbind, from, len, MPOL_BIND, nodes, (unsigned long)NODES_MAX + 1, 0) == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, errno, "cannot bind memory to NUMA node %d: %s",
			numa_node, strerror(errno));
}

#ifndef __x86_64__

#ifdef __aarch64__
/* Bits of AT_HWCAP (word 0) and AT_HWCAP2 (word 1), from the kernel's uapi/asm/hwcap.h. */
static const struct {
	enum rfl_isa isa;
	int word, bit;
} features[] = {
	{ RFL_ISA_NEON, 0, 1 },      { RFL_ISA_ARM_FP16, 0, 10 }, { RFL_ISA_ARM_DOTPROD, 0, 20 },
	{ RFL_ISA_SVE, 0, 22 },      { RFL_ISA_SVE2, 1, 1 },      { RFL_ISA_ARM_I8MM, 1, 13 },
	{ RFL_ISA_ARM_BF16, 1, 14 }, { RFL_ISA_SME, 1, 23 },
};
#endif

uint64_t rfl_isa_detect(void)
{
	uint64_t found = 0;

#ifdef __aarch64__
	const unsigned long words[] = { getauxval(AT_HWCAP), getauxval(AT_HWCAP2) };

	for (size_t i = 0; i < RFL_ARRAY_LEN(features); i++) {
		if ((words[features[i].word] >> features[i].bit) & 1)
			found |= UINT64_C(1) << features[i].isa;
	}
#endif
	return found;
}

void rfl_isa_cpu_brand(char out[49])
{
	out[0] = '\0';
}

void rfl_cpu_id_get(const char *root, struct rfl_cpu_id *ret)
{
	char text[4096];
	unsigned part;

	*ret = (struct rfl_cpu_id){ .family = 0 };
	if (!rfl_machine__slurp(root, text, sizeof(text), "/proc/cpuinfo"))
		return;
	const char *at = strstr(text, "CPU implementer");

	if (!at || sscanf(at, "CPU implementer : %15s", ret->vendor) != 1)
		ret->vendor[0] = '\0';
	at = strstr(text, "CPU part");
	if (at && sscanf(at, "CPU part : %x", &part) == 1)
		ret->model = (int)part;
}

#endif
