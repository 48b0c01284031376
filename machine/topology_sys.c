/*
 * topology_sys.c - cores, caches and NUMA nodes from /sys/devices/system, for builds without hwloc.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "machine/machine_parts.h"

#define CPU_DIR    "/sys/devices/system/cpu"
#define NODE_DIR   "/sys/devices/system/node"
#define LIST_MAX   16384 /* characters of a list of hardware threads */
#define CACHES_MAX 8

static RFL_PRINTF(3, 4) bool read_list(const char *root, struct rfl_cpuset *set, const char *fmt,
				       ...)
{
	char path[128], list[LIST_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	memset(set, 0, sizeof(*set));
	return rfl_machine__slurp(root, list, sizeof(list), "%s", path) &&
	       rfl_cpuset__parse(list, set);
}

static int first_of(const struct rfl_cpuset *set)
{
	for (int cpu = 0; cpu < RFL_CPUSET_MAX; cpu++) {
		if (rfl_cpuset__has(set, cpu))
			return cpu;
	}
	return -1;
}

/* One cache as one of its hardware threads shows it; counted only by its lowest thread. */
static bool read_cache(struct rfl_machine *m, const char *root, int cpu, int index)
{
	struct rfl_cpuset sharers;
	struct rfl_cache *row;
	char text[64], unit = '\0';
	int64_t level, line, size;
	size_t i = 0;

	if (!rfl_machine__slurp_int(root, &level, CPU_DIR "/cpu%d/cache/index%d/level", cpu, index))
		return false;
	if (!rfl_machine__slurp(root, text, sizeof(text), CPU_DIR "/cpu%d/cache/index%d/type", cpu,
				index) ||
	    strcmp(text, "Instruction") == 0 ||
	    !read_list(root, &sharers, CPU_DIR "/cpu%d/cache/index%d/shared_cpu_list", cpu,
		       index) ||
	    first_of(&sharers) != cpu ||
	    !rfl_machine__slurp(root, text, sizeof(text), CPU_DIR "/cpu%d/cache/index%d/size", cpu,
				index))
		return true;
	if (sscanf(text, "%" SCNd64 "%c", &size, &unit) < 1 || size <= 0 || size > INT64_MAX >> 30)
		return true;
	size <<= unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0; /* "48K" */
	while (i < m->ncaches && m->caches[i].level != (int)level)
		i++;
	if (i == CACHES_MAX)
		return true;
	if (i == m->ncaches)
		m->caches[m->ncaches++].level = (int)level;
	row = &m->caches[i];
	row->count++;
	if (row->size_bytes == 0 || size < row->size_bytes) {
		row->size_bytes = size;
		row->sharers = rfl_cpuset__count(&sharers);
	}
	if (rfl_machine__slurp_int(root, &line, CPU_DIR "/cpu%d/cache/index%d/coherency_line_size",
				   cpu, index))
		row->line_bytes = (int)line;
	return true;
}

static void read_nodes(struct rfl_machine *m, const char *root)
{
	struct rfl_cpuset nodes, cpus;

	m->numa_nodes = 1;
	if (!read_list(root, &nodes, NODE_DIR "/has_memory") &&
	    !read_list(root, &nodes, NODE_DIR "/online"))
		return;
	if (rfl_cpuset__count(&nodes) > 0)
		m->numa_nodes = rfl_cpuset__count(&nodes);
	for (int node = 0; node < RFL_CPUSET_MAX; node++) {
		if (!rfl_cpuset__has(&nodes, node) ||
		    !read_list(root, &cpus, NODE_DIR "/node%d/cpulist", node))
			continue;
		for (size_t i = 0; i < m->ncpus; i++) {
			if (rfl_cpuset__has(&cpus, m->cpus[i].os_index))
				m->cpus[i].numa_node = node;
		}
	}
}

enum rfl_rc rfl_machine__topology_sys(struct rfl_machine *m, const char *root,
				      const struct rfl_cpuset *usable, struct rfl_err *err)
{
	struct rfl_cpuset online, packages = { { 0 } }, siblings;
	enum rfl_rc rc;

	m->packages = m->cores = m->hw_threads = 0;
	if ((rc = rfl_machine__make_room(m, CACHES_MAX, usable, err)) != RFL_OK)
		return rc;
	if (!read_list(root, &online, CPU_DIR "/online"))
		return rfl_fail(err, RFL_EIO, 0,
				"%s" CPU_DIR "/online cannot be read: nothing is known of the "
				"processors; mount /sys, or build with hwloc (libhwloc-dev)",
				root);
	for (int cpu = 0; cpu < RFL_CPUSET_MAX; cpu++) {
		int64_t package = 0;
		int core = cpu; /* named by its lowest hardware thread */

		if (!rfl_cpuset__has(&online, cpu))
			continue;
		if ((read_list(root, &siblings, CPU_DIR "/cpu%d/topology/core_cpus_list", cpu) ||
		     read_list(root, &siblings, CPU_DIR "/cpu%d/topology/thread_siblings_list",
			       cpu)) &&
		    first_of(&siblings) >= 0)
			core = first_of(&siblings);
		m->hw_threads++;
		m->cores += core == cpu || !rfl_cpuset__has(&online, core);
		if (rfl_machine__slurp_int(root, &package,
					   CPU_DIR "/cpu%d/topology/physical_package_id", cpu) &&
		    package >= 0)
			rfl_cpuset__add(&packages, (int)package);
		for (int index = 0; index < 16 && read_cache(m, root, cpu, index); index++)
			;
		if (rfl_cpuset__has(usable, cpu))
			m->cpus[m->ncpus++] = (struct rfl_cpu){ .os_index = cpu, .core = core };
	}
	if (m->ncpus == 0)
		return rfl_fail(err, RFL_EIO, 0,
				"none of the processors online in %s" CPU_DIR " is in our affinity "
				"mask",
				root);
	m->packages = rfl_cpuset__count(&packages);
	read_nodes(m, root);
	rfl_machine__order(m);
	m->topology_source = "/sys";
	return RFL_OK;
}
