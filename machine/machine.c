/* machine.c - reads the topology with hwloc, and identifies the system. */
#include "machine/machine.h"

#include <ctype.h>
#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "machine/machine_parts.h"
#include "machine/terms.h"

/* --- topology -------------------------------------------------------------------------------- */

static const struct {
	hwloc_obj_type_t type;
	int level;
} levels[] = {
	{ HWLOC_OBJ_L1CACHE, 1 },
	{ HWLOC_OBJ_L2CACHE, 2 },
	{ HWLOC_OBJ_L3CACHE, 3 },
	{ HWLOC_OBJ_L4CACHE, 4 },
};

static int by_rank(const void *a, const void *b)
{
	const struct rfl_cpu *x = a;
	const struct rfl_cpu *y = b;

	if (x->smt_rank != y->smt_rank)
		return x->smt_rank - y->smt_rank;
	return x->os_index - y->os_index;
}

/* @param usable  the hardware threads that our affinity mask allows */
static enum rfl_rc read_topology(struct rfl_machine *m, hwloc_topology_t topology,
				 hwloc_const_cpuset_t usable, struct rfl_err *err)
{
	const unsigned version = hwloc_get_api_version();
	const int packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);

	m->packages = packages > 0 ? packages : 1;
	m->cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
	m->hw_threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	if (m->cores < 1)
		m->cores = m->hw_threads;
	m->smt = m->hw_threads > m->cores ? RFL_YES : RFL_NO;
	m->topology_source = rfl_arena_printf(m->arena, "hwloc (API %u.%u)", version >> 16,
					      (version >> 8) & 0xff);
	m->caches = rfl_arena_array(m->arena, RFL_ARRAY_LEN(levels), sizeof(*m->caches));
	m->cpus = rfl_arena_array(m->arena, (size_t)m->hw_threads, sizeof(*m->cpus));
	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++) {
		struct rfl_cache row = { .level = levels[i].level };

		for (int k = 0; k < hwloc_get_nbobjs_by_type(topology, levels[i].type); k++) {
			const hwloc_obj_t obj =
				hwloc_get_obj_by_type(topology, levels[i].type, (unsigned)k);
			const int64_t size = (int64_t)obj->attr->cache.size;

			if (size <= 0)
				continue;
			row.count++;
			row.line_bytes = (int)obj->attr->cache.linesize;
			if (row.size_bytes == 0 || size < row.size_bytes) {
				row.size_bytes = size;
				row.sharers = hwloc_bitmap_weight(obj->cpuset);
			}
		}
		if (row.count > 0)
			m->caches[m->ncaches++] = row;
	}

	for (int k = 0; k < hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE); k++)
		m->numa_nodes += hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)k)
					 ->attr->numanode.local_memory > 0;
	if (m->numa_nodes == 0)
		m->numa_nodes = 1;

	/* A core is identified by its lowest hardware thread. */
	for (int k = 0; k < m->hw_threads; k++) {
		const hwloc_obj_t pu = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)k);
		const hwloc_obj_t core =
			hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
		const hwloc_obj_t package =
			hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu);
		const int node = pu->nodeset ? hwloc_bitmap_first(pu->nodeset) : -1;
		struct rfl_cpu cpu = { .os_index = (int)pu->os_index };

		if (!hwloc_bitmap_isset(usable, pu->os_index))
			continue;
		cpu.core = core ? hwloc_bitmap_first(core->cpuset) : cpu.os_index;
		cpu.package = package ? (int)package->logical_index : 0;
		cpu.numa_node = node >= 0 ? node : 0;
		for (size_t i = 0; i < m->ncpus; i++)
			cpu.smt_rank += m->cpus[i].core == cpu.core;
		m->usable_cores += cpu.smt_rank == 0;
		m->cpus[m->ncpus++] = cpu;
	}
	if (m->ncpus == 0)
		return rfl_fail(err, RFL_EIO, 0,
				"hwloc finds no CPU in the affinity mask of this process");
	qsort(m->cpus, m->ncpus, sizeof(*m->cpus), by_rank);
	return RFL_OK;
}

/* Return whether the files that hwloc's Linux component needs exist: otherwise it complains. */
static bool linux_shows_cores(void)
{
	static const char *const folders[] = { "/sys/bus/cpu/devices", "/sys/devices/system/cpu" };
	static const char *const files[] = { "package_cpus", "core_cpus", "core_siblings",
					     "thread_siblings" };
	char path[128];

	for (size_t i = 0; i < RFL_ARRAY_LEN(folders); i++)
		for (size_t k = 0; k < RFL_ARRAY_LEN(files); k++) {
			snprintf(path, sizeof(path), "%s/cpu0/topology/%s", folders[i], files[k]);
			if (access(path, R_OK) == 0)
				return true;
		}
	return false;
}

static enum rfl_rc load_topology(struct rfl_machine *m, struct rfl_err *err)
{
	hwloc_topology_t topology = NULL;
	hwloc_cpuset_t usable = hwloc_bitmap_alloc();
	enum rfl_rc rc;

	/* Without those files, the Linux component fails in any case, and hwloc uses cpuid. Other
	 * systems have no such component. */
	if (hwloc_topology_init(&topology) == 0 && !linux_shows_cores())
		(void)hwloc_topology_set_components(
			topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux");
	/* INCLUDE_DISALLOWED: cores outside our affinity mask count as cores of the machine. */
	if (!usable || !topology ||
	    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
	    hwloc_topology_load(topology) != 0) {
		rc = rfl_fail_errno(err, "hwloc cannot read the topology");
	} else {
		/* macOS has no affinity masks */
		if (hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_THREAD) != 0)
			hwloc_bitmap_fill(usable);
		rc = read_topology(m, topology, usable, err);
	}
	if (topology)
		hwloc_topology_destroy(topology);
	hwloc_bitmap_free(usable);
	return rc;
}

/* --- names of the system and the CPU ---------------------------------------------------- */

/* Remove leading, trailing and repeated spaces in place. */
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
	/* implementer 0x41 */
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

/* Firmware names of virtual machines, for CPUs without a hypervisor leaf in cpuid. */
static const char *const virtual_products[] = {
	"KVM",       "QEMU", "VMware", "VirtualBox", "Google Compute Engine", "Virtual Machine",
	"OpenStack",
};

/* Fill os, kernel, host, governor, cpu_name, cpu_vendor, virtualised and hypervisor. */
static void identify(struct rfl_machine *m, const char *root)
{
	char text[65536], name[256] = "";
	struct rfl_cpu_id id;
	struct utsname u;

	(void)uname(&u); /* fails only for an invalid address */
	m->kernel = rfl_arena_printf(m->arena, "%s %s", u.sysname, u.release);
	m->architecture = rfl_arena_strdup(m->arena, u.machine);
	m->host = rfl_arena_strdup(m->arena, u.nodename);
	if (rfl_machine__slurp(root, text, sizeof(text), "/etc/os-release") &&
	    rfl_machine__value(text, "PRETTY_NAME", '=', name, sizeof(name)))
		m->os = rfl_arena_strdup(m->arena, name);
	if (rfl_machine__slurp(root, name, sizeof(name),
			       "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
			       m->ncpus > 0 ? m->cpus[0].os_index : 0))
		m->governor = rfl_arena_strdup(m->arena, name);

	rfl_cpu_id_get(root, &id);
	rfl_isa_cpu_brand(name);
	if (!*squeeze(name) && rfl_machine__slurp(root, text, sizeof(text), "/proc/cpuinfo") &&
	    rfl_machine__value(text, "model name", ':', name, sizeof(name)))
		squeeze(name);
	for (size_t i = 0; i < RFL_ARRAY_LEN(vendors); i++)
		if (strcmp(id.vendor, vendors[i].id) == 0)
			m->cpu_vendor = vendors[i].name;
	for (size_t i = 0; strcmp(id.vendor, "0x41") == 0 && i < RFL_ARRAY_LEN(arm_parts); i++)
		if (id.model == arm_parts[i].part)
			m->cpu_name = arm_parts[i].name;
	if (name[0])
		m->cpu_name = rfl_arena_strdup(m->arena, name);

	m->virtualised = RFL_NOT_KNOWN;
	rfl_isa_hypervisor(name);
#if defined(__x86_64__)
	m->virtualised = name[0] ? RFL_YES : RFL_NO;
#endif
	for (size_t i = 0; i < RFL_ARRAY_LEN(hypervisors); i++)
		if (strcmp(name, hypervisors[i].signature) == 0)
			m->hypervisor = hypervisors[i].name;
	if (name[0] ||
	    !rfl_machine__slurp(root, text, sizeof(text), "/sys/class/dmi/id/product_name"))
		return;
	for (size_t i = 0; i < RFL_ARRAY_LEN(virtual_products); i++)
		if (strstr(text, virtual_products[i])) {
			m->virtualised = RFL_YES;
			m->hypervisor = virtual_products[i];
		}
}

enum rfl_rc rfl_machine_new(struct rfl_machine **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_machine *m = rfl_arena_array(arena, 1, sizeof(*m));
	enum rfl_rc rc;

	m->arena = arena;
	m->isa = rfl_isa_detect();
	rc = load_topology(m, err);
	if (rc) {
		rfl_arena_free(arena);
		return rc;
	}
	if (m->ncaches == 0) { /* some containers show the cores but hide the caches */
		rfl_machine__caches_cpuid(m);
		if (m->ncaches > 0 && m->topology_source)
			m->topology_source =
				rfl_arena_printf(arena, "%s, caches by cpuid", m->topology_source);
	}
	rfl_machine__limits(m, "");
	identify(m, "");
	*ret = m;
	return RFL_OK;
}

void rfl_machine_free(struct rfl_machine *m)
{
	if (m)
		rfl_arena_free(m->arena);
}

int rfl_machine_threads(const struct rfl_machine *m)
{
	int n = m->usable_cores;

	if (!isnan(m->cpu_quota) && ceil(m->cpu_quota) < n)
		n = (int)ceil(m->cpu_quota);
	return n > 0 ? n : 1;
}

const struct rfl_cache *rfl_machine_cache(const struct rfl_machine *m, int level)
{
	for (size_t i = 0; i < m->ncaches; i++) {
		if (m->caches[i].level == level)
			return &m->caches[i];
	}
	return NULL;
}

int64_t rfl_machine_llc_bytes(const struct rfl_machine *m)
{
	const struct rfl_cache *last = m->ncaches > 0 ? &m->caches[m->ncaches - 1] : NULL;

	return last ? last->size_bytes * last->count : 0;
}

const char *const rfl_device_names[] = { "cpu", "cuda", "mps", NULL };
const char *const rfl_precision_names[] = { "fp32", "tf32", "amp", "bf16", "fp16", NULL };
const char *const rfl_layout_names[] = { "nchw", "nhwc", NULL };
const char *const rfl_cast_names[] = { "off", "fp16", "bf16", NULL };
const char *const rfl_optimizer_rule_names[] = { "sgd", "adam", "adamw", NULL };
const char *const rfl_optimizer_kernels_names[] = { "auto", "foreach", "fused", NULL };

enum rfl_cast rfl_precision_cast(enum rfl_precision precision, enum rfl_device device)
{
	const bool amp = precision == RFL_PRECISION_AMP, cpu = device == RFL_DEVICE_CPU;

	if (precision == RFL_PRECISION_BF16 || (amp && cpu))
		return RFL_CAST_BF16;
	return precision == RFL_PRECISION_FP16 || amp ? RFL_CAST_FP16 : RFL_CAST_OFF;
}
