/*
 * identity.c - names: operating system, kernel, host, processor, hypervisor, frequency governor.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "machine/cpu_id.h"
#include "machine/machine_parts.h"

/* Spaces at both ends and doubled ones removed, in place. */
static char *squeeze(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		const bool blank = isspace((unsigned char)*from);

		if (!blank)
			*to++ = *from;
		else if (to > text && to[-1] != ' ')
			*to++ = ' ';
	}
	if (to > text && to[-1] == ' ')
		to--;
	*to = '\0';
	return text;
}

static const struct {
	const char *id, *name;
} vendors[] = {
	{ "GenuineIntel", "Intel" },
	{ "AuthenticAMD", "AMD" },
	{ "HygonGenuine", "Hygon" },
	{ "CentaurHauls", "VIA" },
	{ "0x41", "Arm" },
	{ "0x42", "Broadcom" },
	{ "0x43", "Cavium" },
	{ "0x46", "Fujitsu" },
	{ "0x48", "HiSilicon" },
	{ "0x4e", "NVIDIA" },
	{ "0x50", "Ampere Computing" },
	{ "0x51", "Qualcomm" },
	{ "0x61", "Apple" },
	{ "0xc0", "Ampere Computing" },
};

static const struct {
	int part;
	const char *name;
} arm_parts[] = {
	/* of implementer 0x41 */
	{ 0xd03, "Cortex-A53" },  { 0xd07, "Cortex-A57" },  { 0xd08, "Cortex-A72" },
	{ 0xd0b, "Cortex-A76" },  { 0xd0c, "Neoverse-N1" }, { 0xd40, "Neoverse-V1" },
	{ 0xd49, "Neoverse-N2" }, { 0xd4f, "Neoverse-V2" }, { 0xd83, "Neoverse-V3AE" },
	{ 0xd84, "Neoverse-V3" }, { 0xd8e, "Neoverse-N3" },
};

static const struct {
	const char *signature, *name;
} hypervisors[] = {
	{ "KVMKVMKVM", "KVM" },          { "Microsoft Hv", "Hyper-V" },
	{ "VMwareVMware", "VMware" },    { "XenVMMXenVMM", "Xen" },
	{ "TCGTCGTCGTCG", "QEMU" },      { "bhyve bhyve ", "bhyve" },
	{ "prl hyperv  ", "Parallels" }, { "VBoxVBoxVBox", "VirtualBox" },
	{ "ACRNACRNACRN", "ACRN" },      { "QNXQVMBSQG", "QNX" },
};

static void name_processor(struct rfl_machine *m, const char *root)
{
	char name[256] = "", info[65536];
	struct rfl_cpu_id id;

	rfl_cpu_id_get(root, &id);
	rfl_isa_cpu_brand(name);
	if (!*squeeze(name) && rfl_machine__slurp(root, info, sizeof(info), "/proc/cpuinfo") &&
	    rfl_machine__value(info, "model name", ':', name, sizeof(name)))
		squeeze(name);
	for (size_t i = 0; i < RFL_ARRAY_LEN(vendors); i++) {
		if (strcmp(id.vendor, vendors[i].id) == 0)
			m->cpu_vendor = vendors[i].name;
	}
	for (size_t i = 0; strcmp(id.vendor, "0x41") == 0 && i < RFL_ARRAY_LEN(arm_parts); i++) {
		if (id.model == arm_parts[i].part)
			m->cpu_name = arm_parts[i].name;
	}
	if (name[0])
		m->cpu_name = rfl_arena_strdup(m->arena, name);
}

/* Firmware names that only virtual machines have; for processors without a hypervisor leaf. */
static const char *const virtual_products[] = {
	"KVM",       "QEMU", "VMware", "VirtualBox", "Google Compute Engine", "Virtual Machine",
	"OpenStack",
};

static void find_hypervisor(struct rfl_machine *m, const char *root)
{
	char text[256];

#if defined(__x86_64__)
	rfl_isa_hypervisor(text);
	m->virtualised = text[0] ? RFL_YES : RFL_NO;
	for (size_t i = 0; i < RFL_ARRAY_LEN(hypervisors); i++) {
		if (strcmp(text, hypervisors[i].signature) == 0)
			m->hypervisor = hypervisors[i].name;
	}
	if (text[0] || !root)
		return;
#endif
	(void)hypervisors;
	if (!rfl_machine__slurp(root, text, sizeof(text), "/sys/class/dmi/id/product_name"))
		return;
	for (size_t i = 0; i < RFL_ARRAY_LEN(virtual_products); i++) {
		if (strstr(text, virtual_products[i])) {
			m->virtualised = RFL_YES;
			m->hypervisor = virtual_products[i];
		}
	}
}

enum rfl_rc rfl_machine__identity(struct rfl_machine *m, const char *root, struct rfl_err *err)
{
	struct utsname u;
	char text[4096], name[256];

	if (uname(&u) != 0)
		return rfl_fail(err, RFL_EIO, errno, "uname: %s", strerror(errno));
	m->kernel = rfl_arena_printf(m->arena, "%s %s", u.sysname, u.release);
	m->architecture = rfl_arena_strdup(m->arena, u.machine);
	m->host = rfl_arena_strdup(m->arena, u.nodename);
	if (!m->kernel || !m->architecture || !m->host)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory while looking at the machine");
	if (rfl_machine__slurp(root, text, sizeof(text), "/etc/os-release") &&
	    rfl_machine__value(text, "PRETTY_NAME", '=', name, sizeof(name)))
		m->os = rfl_arena_strdup(m->arena, name);
	if (rfl_machine__slurp(root, name, sizeof(name),
			       "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
			       m->ncpus > 0 ? m->cpus[0].os_index : 0))
		m->governor = rfl_arena_strdup(m->arena, name);
	m->virtualised = RFL_NOT_KNOWN;
	name_processor(m, root);
	find_hypervisor(m, root);
	return RFL_OK;
}
