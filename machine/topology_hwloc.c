/*
 * topology_hwloc.c - cores, caches and NUMA nodes as hwloc sees them.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
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

/* Fill the record from a loaded topology. */
static void read_topology(struct rfl_machine *m, hwloc_topology_t topology,
			  const struct rfl_cpuset *usable)
{
	m->packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
	m->cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
	m->hw_threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	if (m->cores < 1)
		m->cores = m->hw_threads;
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

	m->numa_nodes = 0;
	for (int k = 0; k < hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE); k++)
		m->numa_nodes += hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)k)
					 ->attr->numanode.local_memory > 0;
	if (m->numa_nodes == 0)
		m->numa_nodes = 1;

	/* The core is named by its lowest hardware thread, as in topology_sys.c. */
	for (int k = 0; k < m->hw_threads; k++) {
		const hwloc_obj_t pu = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)k);
		const hwloc_obj_t core =
			hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
		const int os_index = (int)pu->os_index;
		const int node = pu->nodeset ? hwloc_bitmap_first(pu->nodeset) : -1;

		if (rfl_cpuset__has(usable, os_index))
			m->cpus[m->ncpus++] = (struct rfl_cpu){
				.os_index = os_index,
				.core = core ? hwloc_bitmap_first(core->cpuset) : os_index,
				.numa_node = node >= 0 ? node : 0,
			};
	}
}

/* Where hwloc's Linux component looks; without any of them it writes a complaint to stderr. */
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

enum rfl_rc rfl_machine__topology_hwloc(struct rfl_machine *m, const struct rfl_cpuset *usable,
					struct rfl_err *err)
{
	const unsigned version = hwloc_get_api_version();
	hwloc_topology_t topology = NULL;
	enum rfl_rc rc;

	m->topology_source = rfl_arena_printf(m->arena, "hwloc (API %u.%u)", version >> 16,
					      (version >> 8) & 0xff);
	if (!m->topology_source)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the topology");
	if ((rc = rfl_machine__make_room(m, RFL_ARRAY_LEN(levels), usable, err)) != RFL_OK)
		return rc;
	/* Without files of cores the component gives up anyway; hwloc then uses cpuid, without a
	 * message. The whole machine: what our affinity mask hides still counts as a core. */
	if (hwloc_topology_init(&topology) != 0 ||
	    (!linux_shows_cores() &&
	     hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					   "linux") != 0) ||
	    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
	    hwloc_topology_load(topology) != 0) {
		rc = rfl_fail(err, RFL_EIO, errno, "hwloc cannot read the topology: %s",
			      strerror(errno));
		goto done;
	}
	read_topology(m, topology, usable);
	if (m->ncpus == 0)
		rc = rfl_fail(err, RFL_EIO, 0,
			      "hwloc shows no processor that our affinity mask allows");
	rfl_machine__order(m);
done:
	if (topology)
		hwloc_topology_destroy(topology);
	return rc;
}
