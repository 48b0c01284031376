/*
 * machine.c - puts the record together: names of system and processor here, the rest by
 * topology_*.c, cpuid.c and limits.c; and binds threads.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "machine/machine.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/log.h"
#include "machine/machine_parts.h"
#include "machine/terms.h"

void rfl_cpuset__add(struct rfl_cpuset *set, int cpu)
{
	if (cpu >= 0 && cpu < RFL_CPUSET_MAX)
		set->bits[cpu / RFL_CPUSET_WORD] |= 1UL << (cpu % RFL_CPUSET_WORD);
}

bool rfl_cpuset__has(const struct rfl_cpuset *set, int cpu)
{
	return cpu >= 0 && cpu < RFL_CPUSET_MAX &&
	       ((set->bits[cpu / RFL_CPUSET_WORD] >> (cpu % RFL_CPUSET_WORD)) & 1);
}

int rfl_cpuset__count(const struct rfl_cpuset *set)
{
	int n = 0;

	for (int cpu = 0; cpu < RFL_CPUSET_MAX; cpu++)
		n += rfl_cpuset__has(set, cpu);
	return n;
}

bool rfl_cpuset__parse(const char *text, struct rfl_cpuset *set)
{
	while (*text) {
		unsigned first, last;
		int range = 0, single = 0;

		/* at most 4 digits, and no sign or blank before them */
		if (!isdigit((unsigned char)*text) || sscanf(text, "%4u%n", &first, &single) != 1)
			return false;
		last = first;
		if (text[single] == '-' && (!isdigit((unsigned char)text[single + 1]) ||
					    sscanf(text + single, "-%4u%n", &last, &range) != 1))
			return false;
		text += single + range;
		if (last < first || last >= RFL_CPUSET_MAX || (*text && *text != ','))
			return false;
		for (unsigned cpu = first; cpu <= last; cpu++)
			rfl_cpuset__add(set, (int)cpu);
		text += *text == ',';
	}
	return true;
}

enum rfl_rc rfl_machine__make_room(struct rfl_machine *m, size_t caches,
				   const struct rfl_cpuset *usable, struct rfl_err *err)
{
	const size_t cpus = (size_t)rfl_cpuset__count(usable) + 1;

	m->ncaches = m->ncpus = 0;
	m->caches = rfl_arena_array(m->arena, caches, sizeof(*m->caches));
	m->cpus = rfl_arena_array(m->arena, cpus, sizeof(*m->cpus));
	return m->caches && m->cpus
		       ? RFL_OK
		       : rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the topology");
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

/* Firmware names that only virtual machines have; for processors without a hypervisor leaf. */
static const char *const virtual_products[] = {
	"KVM",       "QEMU", "VMware", "VirtualBox", "Google Compute Engine", "Virtual Machine",
	"OpenStack",
};

/* Fill os, kernel, host, governor, names of the processor, virtualised. */
static enum rfl_rc identify(struct rfl_machine *m, const char *root, struct rfl_err *err)
{
	char text[65536], name[256] = "";
	struct rfl_cpu_id id;
	struct utsname u;

	if (uname(&u) != 0)
		return rfl_fail(err, RFL_EIO, errno, "uname: %s", strerror(errno));
	m->kernel = rfl_arena_printf(m->arena, "%s %s", u.sysname, u.release);
	m->architecture = rfl_arena_strdup(m->arena, u.machine);
	m->host = rfl_arena_strdup(m->arena, u.nodename);
	if (!m->topology_source || !m->kernel || !m->architecture || !m->host)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory while looking at the machine");
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
		return RFL_OK;
	for (size_t i = 0; i < RFL_ARRAY_LEN(virtual_products); i++)
		if (strstr(text, virtual_products[i])) {
			m->virtualised = RFL_YES;
			m->hypervisor = virtual_products[i];
		}
	return RFL_OK;
}

enum rfl_rc rfl_machine_new(struct rfl_machine **ret, struct rfl_err *err)
{
	struct rfl_machine *m = calloc(1, sizeof(*m));
	struct rfl_cpuset usable = { { 0 } };
	enum rfl_rc rc;

	if (!m || !(m->arena = rfl_arena_new(0))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory while looking at the machine");
		goto done;
	}
	m->isa = rfl_isa_detect();
	if (sched_getaffinity(0, sizeof(usable.bits), (cpu_set_t *)(void *)usable.bits) != 0) {
		rc = rfl_fail(err, RFL_EIO, errno, "sched_getaffinity: %s", strerror(errno));
		goto done;
	}
	rc = RFL_EUNAVAILABLE;
#ifdef RFL_HAVE_HWLOC
	struct rfl_err why = RFL_ERR_INIT;

	rc = rfl_machine__topology_hwloc(m, &usable, &why);
	if (rc == RFL_ENOMEM)
		rfl_fail(err, RFL_ENOMEM, 0, "%s", why.msg);
	else if (rc != RFL_OK)
		rfl_log(RFL_LOG_WARN, "%s; reading /sys instead", why.msg);
#endif
	if (rc != RFL_OK && rc != RFL_ENOMEM)
		rc = rfl_machine__topology_sys(m, "", &usable, err);
	if (rc != RFL_OK)
		goto done;
	if (m->ncaches == 0) { /* a container may show the cores and hide the caches */
		if ((rc = rfl_machine__caches_cpuid(m, err)) != RFL_OK)
			goto done;
		if (m->ncaches > 0)
			m->topology_source = rfl_arena_printf(m->arena, "%s, caches by cpuid",
							      m->topology_source);
	}
	rfl_machine__limits(m, "");
	if ((rc = identify(m, "", err)) != RFL_OK)
		goto done;

	*ret = m;
	m = NULL;
done:
	rfl_machine_free(m);
	return rc;
}

void rfl_machine_free(struct rfl_machine *m)
{
	if (!m)
		return;
	rfl_arena_free(m->arena);
	free(m);
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

static int by_rank(const void *a, const void *b)
{
	const struct rfl_cpu *x = a;
	const struct rfl_cpu *y = b;

	if (x->smt_rank != y->smt_rank)
		return x->smt_rank - y->smt_rank;
	return x->os_index - y->os_index;
}

static int by_level(const void *a, const void *b)
{
	return ((const struct rfl_cache *)a)->level - ((const struct rfl_cache *)b)->level;
}

void rfl_machine__order(struct rfl_machine *m)
{
	m->packages = m->packages > 0 ? m->packages : 1;
	m->smt = m->hw_threads > m->cores ? RFL_YES : RFL_NO;
	m->usable_cores = 0;
	for (size_t i = 0; i < m->ncpus; i++) {
		m->cpus[i].smt_rank = 0;
		for (size_t j = 0; j < i; j++)
			m->cpus[i].smt_rank += m->cpus[j].core == m->cpus[i].core;
		m->usable_cores += m->cpus[i].smt_rank == 0;
	}
	if (m->ncpus > 0)
		qsort(m->cpus, m->ncpus, sizeof(*m->cpus), by_rank);
	if (m->ncaches > 0)
		qsort(m->caches, m->ncaches, sizeof(*m->caches), by_level);
}

enum rfl_rc rfl_pin_thread(int os_index, struct rfl_err *err)
{
	struct rfl_cpuset set = { { 0 } };

	if (os_index < 0 || os_index >= RFL_CPUSET_MAX)
		return rfl_fail(err, RFL_EINVAL, 0, "there is no cpu %d", os_index);
	rfl_cpuset__add(&set, os_index);
	if (sched_setaffinity(0, sizeof(set.bits), (const cpu_set_t *)(const void *)set.bits) != 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, errno,
				"cannot bind a thread to cpu %d: %s; is it within the affinity "
				"mask of this process (taskset -p)?",
				os_index, strerror(errno));
	return RFL_OK;
}

/* --- the words for how a network is run ------------------------------------------------------- */

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
