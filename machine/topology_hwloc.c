/*
 * topology_hwloc.c - cores, caches and NUMA nodes as hwloc sees them.
 */
#include <errno.h>
#include <hwloc.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "machine/machine_parts.h"

static const struct {
	hwloc_obj_type_t type;
	int level;
} levels[] = {
	{ HWLOC_OBJ_L1CACHE, 1 },
	{ HWLOC_OBJ_L2CACHE, 2 },
	{ HWLOC_OBJ_L3CACHE, 3 },
	{ HWLOC_OBJ_L4CACHE, 4 },
};

static void read_level(struct rfl_machine *m, hwloc_topology_t topology, size_t i)
{
	const int n = hwloc_get_nbobjs_by_type(topology, levels[i].type);
	struct rfl_cache row = { .level = levels[i].level };

	for (int k = 0; k < n; k++) {
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

/* The hardware thread's core is named by the lowest thread of it, as in topology_sys.c. */
static void read_threads(struct rfl_machine *m, hwloc_topology_t topology,
			 const struct rfl_cpuset *usable)
{
	const int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);

	for (int k = 0; k < n; k++) {
		const hwloc_obj_t pu = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)k);
		const hwloc_obj_t core =
			hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
		const int os_index = (int)pu->os_index;
		const int node = pu->nodeset ? hwloc_bitmap_first(pu->nodeset) : -1;

		if (!rfl_cpuset__has(usable, os_index))
			continue;
		m->cpus[m->ncpus++] = (struct rfl_cpu){
			.os_index = os_index,
			.core = core ? hwloc_bitmap_first(core->cpuset) : os_index,
			.numa_node = node >= 0 ? node : 0,
		};
	}
}

static int nodes_with_memory(hwloc_topology_t topology)
{
	const int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
	int with_memory = 0;

	for (int k = 0; k < n; k++) {
		const hwloc_obj_t node =
			hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)k);

		with_memory += node->attr->numanode.local_memory > 0;
	}
	return with_memory > 0 ? with_memory : 1;
}

static enum rfl_rc read_topology(struct rfl_machine *m, hwloc_topology_t topology,
				 const struct rfl_cpuset *usable, struct rfl_err *err)
{
	m->packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
	m->cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
	m->hw_threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	if (m->packages < 1)
		m->packages = 1;
	if (m->cores < 1)
		m->cores = m->hw_threads;
	m->smt = m->hw_threads > m->cores ? RFL_YES : RFL_NO;
	m->numa_nodes = nodes_with_memory(topology);
	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++)
		read_level(m, topology, i);
	read_threads(m, topology, usable);
	if (m->ncpus == 0)
		return rfl_fail(err, RFL_EIO, 0,
				"hwloc shows no processor that our affinity mask allows");
	rfl_machine__rank_cpus(m);

	const unsigned version = hwloc_get_api_version();

	m->topology_source = rfl_arena_printf(m->arena, "hwloc (API %u.%u)", version >> 16,
					      (version >> 8) & 0xff);
	return m->topology_source ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
}

/* Where hwloc's Linux component looks; without any of them it writes a complaint to stderr. */
static bool linux_shows_cores(void)
{
	static const char *const files[] = {
		"/sys/bus/cpu/devices/cpu0/topology/package_cpus",
		"/sys/bus/cpu/devices/cpu0/topology/core_cpus",
		"/sys/bus/cpu/devices/cpu0/topology/core_siblings",
		"/sys/bus/cpu/devices/cpu0/topology/thread_siblings",
		"/sys/devices/system/cpu/cpu0/topology/package_cpus",
		"/sys/devices/system/cpu/cpu0/topology/core_cpus",
		"/sys/devices/system/cpu/cpu0/topology/core_siblings",
		"/sys/devices/system/cpu/cpu0/topology/thread_siblings",
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++) {
		if (access(files[i], R_OK) == 0)
			return true;
	}
	return false;
}

/* The whole machine: what our affinity mask hides still counts as a core. */
static bool load(hwloc_topology_t topology)
{
	/* the component gives up there anyway; hwloc then uses cpuid, without a message */
	if (!linux_shows_cores() &&
	    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					  "linux") != 0)
		return false;
	return hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
	       hwloc_topology_load(topology) == 0;
}

enum rfl_rc rfl_machine__topology_hwloc(struct rfl_machine *m, const struct rfl_cpuset *usable,
					struct rfl_err *err)
{
	hwloc_topology_t topology = NULL;
	enum rfl_rc rc;

	m->ncaches = m->ncpus = 0;
	m->caches = rfl_arena_array(m->arena, RFL_ARRAY_LEN(levels), sizeof(*m->caches));
	m->cpus =
		rfl_arena_array(m->arena, (size_t)rfl_cpuset__count(usable) + 1, sizeof(*m->cpus));
	if (!m->caches || !m->cpus)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the topology");
	if (hwloc_topology_init(&topology) != 0 || !load(topology)) {
		rc = rfl_fail(err, RFL_EIO, errno, "hwloc cannot read the topology: %s",
			      strerror(errno));
		goto done;
	}
	rc = read_topology(m, topology, usable, err);
done:
	if (topology)
		hwloc_topology_destroy(topology);
	return rc;
}
