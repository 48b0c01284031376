/*
 * cpu_id.h - which processor this is, as tables of hardware counters want to know it, and what it
 * says of its counters.
 */
#ifndef RFL_MACHINE_CPU_ID_H
#define RFL_MACHINE_CPU_ID_H

struct rfl_cpu_id {
	char vendor[16]; /**< "GenuineIntel", "AuthenticAMD", "0x41" (Arm Ltd.); "" when not known
			  */
	int family;      /**< x86: extended family added; 0 elsewhere */
	int model;       /**< x86: extended model in front; Arm: the part number, 0xd40 */
	int counters;    /**< general counters per hardware thread; 0: not known */
};

/** Ask the processor that we run on. @param root  where /proc and /sys lie, "" outside tests */
void rfl_cpu_id_get(const char *root, struct rfl_cpu_id *ret);

/* What cpuid answers to leaves 0, 1, 0xa, 0x80000001 and 0x80000022; 0 where it has no such leaf.
 */
struct rfl_cpu_leaves {
	unsigned leaf0[4], leaf1[4], leaf_a[4], leaf_ext1[4], leaf_ext22[4]; /* eax ebx ecx edx */
};

/** The same from the words of cpuid, whatever processor we run on. */
void rfl_cpu_id_from_leaves(const struct rfl_cpu_leaves *leaves, struct rfl_cpu_id *ret);

#endif
