/*
 * identity.c - names: operating system, kernel, host, processor, hypervisor, frequency governor.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "machine/machine.h"
#include "machine/machine_parts.h"

/* The value behind KEY= in os-release, unquoted, into out. */
static bool os_release(const char *text, const char *key, char *out, size_t size)
{
	const size_t key_len = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, key, key_len) != 0 || line[key_len] != '=')
			continue;
		const char *value = line + key_len + 1;
		size_t len = strcspn(value, "\n");

		if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
			value++;
			len -= 2;
		}
		snprintf(out, size, "%.*s", (int)len, value);
		return len > 0;
	}
	return false;
}

/* The value of the first "key : value" line of /proc/cpuinfo. */
static bool cpuinfo(const char *text, const char *key, char *out, size_t size)
{
	const size_t key_len = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, key, key_len) != 0)
			continue;
		const char *colon = line + key_len + strspn(line + key_len, " \t");

		if (*colon != ':')
			continue;
		const char *value = colon + 1 + strspn(colon + 1, " \t");

		snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
		return out[0] != '\0';
	}
	return false;
}

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
	const char *part, *name; /* of implementer 0x41 */
} arm_parts[] = {
	{ "0xd03", "Cortex-A53" },  { "0xd07", "Cortex-A57" },  { "0xd08", "Cortex-A72" },
	{ "0xd0b", "Cortex-A76" },  { "0xd0c", "Neoverse-N1" }, { "0xd40", "Neoverse-V1" },
	{ "0xd49", "Neoverse-N2" }, { "0xd4f", "Neoverse-V2" }, { "0xd83", "Neoverse-V3AE" },
	{ "0xd84", "Neoverse-V3" }, { "0xd8e", "Neoverse-N3" },
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

static void name_processor(struct rfl_machine *m, const char *root, char *text, size_t size)
{
	char id[64], part[64];

	rfl_isa_cpu_vendor(id);
	rfl_isa_cpu_brand(text);
	if (*squeeze(text))
		m->cpu_name = rfl_arena_strdup(m->arena, text);

	char *info = rfl_arena_array(m->arena, 1, 65536);

	if (!info || !rfl_machine__slurp(root, "/proc/cpuinfo", info, 65536))
		info = NULL;
	if (info && !m->cpu_name && cpuinfo(info, "model name", text, size))
		m->cpu_name = rfl_arena_strdup(m->arena, squeeze(text));
	if (info && !id[0] && !cpuinfo(info, "CPU implementer", id, sizeof(id)))
		id[0] = '\0';
	for (size_t i = 0; i < RFL_ARRAY_LEN(vendors); i++) {
		if (strcmp(id, vendors[i].id) == 0)
			m->cpu_vendor = vendors[i].name;
	}
	if (!info || m->cpu_name || strcmp(id, "0x41") != 0 ||
	    !cpuinfo(info, "CPU part", part, sizeof(part)))
		return;
	for (size_t i = 0; i < RFL_ARRAY_LEN(arm_parts); i++) {
		if (strcmp(part, arm_parts[i].part) == 0)
			m->cpu_name = arm_parts[i].name;
	}
}

/* Firmware names that only virtual machines bear; for processors without a hypervisor leaf. */
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
	if (!rfl_machine__slurp(root, "/sys/class/dmi/id/product_name", text, sizeof(text)))
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
	char text[4096], name[256], path[128];

	if (uname(&u) != 0)
		return rfl_fail(err, RFL_EIO, errno, "uname: %s", strerror(errno));
	m->kernel = rfl_arena_printf(m->arena, "%s %s", u.sysname, u.release);
	m->architecture = rfl_arena_strdup(m->arena, u.machine);
	m->host = rfl_arena_strdup(m->arena, u.nodename);
	if (!m->kernel || !m->architecture || !m->host)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory while looking at the machine");
	if (rfl_machine__slurp(root, "/etc/os-release", text, sizeof(text)) &&
	    os_release(text, "PRETTY_NAME", name, sizeof(name)))
		m->os = rfl_arena_strdup(m->arena, name);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
		 m->ncpus > 0 ? m->cpus[0].os_index : 0);
	if (rfl_machine__slurp(root, path, name, sizeof(name)))
		m->governor = rfl_arena_strdup(m->arena, name);
	m->virtualised = RFL_NOT_KNOWN;
	name_processor(m, root, text, sizeof(text));
	find_hypervisor(m, root);
	return RFL_OK;
}
