/*
 * machine.h - this machine: CPUs, caches, the part of them that this process may use, memory,
 * instruction sets and the operating system.
 *
 * Unknown values are NULL, 0 or RFL_NOT_KNOWN, never guesses.
 */
#ifndef RFL_MACHINE_MACHINE_H
#define RFL_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/isa.h"

RFL_API_BEGIN

enum rfl_known { RFL_NOT_KNOWN = -1, RFL_NO = 0, RFL_YES = 1 };

/** The data or unified caches of one level; on hybrid CPUs, the smallest. */
struct rfl_cache {
	int level;          /**< 1, 2, 3 */
	int64_t size_bytes; /**< size of one cache */
	int line_bytes;     /**< 0 if unknown */
	int sharers;        /**< hardware threads that share one cache */
	int count;          /**< caches of this level in the machine */
};

/** One hardware thread that this process may use. */
struct rfl_cpu {
	int os_index;  /**< number for sched_setaffinity() */
	int core;      /**< equal for the hardware threads of one core */
	int package;   /**< number of its socket, from 0 */
	int numa_node; /**< number of its node; 0 without NUMA */
	int smt_rank;  /**< 0: first usable hardware thread of its core */
};

struct rfl_machine {
	const char *os;           /**< "Debian GNU/Linux 12 (bookworm)"; NULL if unknown */
	const char *kernel;       /**< "Linux 6.1.0-25-amd64" */
	const char *architecture; /**< "x86_64" */
	const char *host;         /**< node name */
	const char *cpu_name;     /**< brand string; NULL if unknown */
	const char *cpu_vendor;   /**< "Intel", "AMD", ...; NULL if unknown */
	enum rfl_known virtualised;
	const char *hypervisor; /**< "KVM"; NULL if absent or nameless */
	const char *governor;   /**< frequency governor of the first usable core; NULL if none */
	uint64_t isa;           /**< RFL_ISA_BIT()s that CPU and system both support */

	int packages, cores, hw_threads; /**< online in the whole machine */
	enum rfl_known smt;              /**< more hardware threads than cores */
	int numa_nodes;                  /**< nodes with memory, at least 1 */
	size_t ncaches;
	struct rfl_cache *caches;    /**< in ascending order of level */
	const char *topology_source; /**< "hwloc (API 2.8)", or with ", caches by cpuid" */

	size_t ncpus;         /**< hardware threads that our affinity mask allows */
	struct rfl_cpu *cpus; /**< first one thread of every core, then their siblings */
	int usable_cores;     /**< cores within the affinity mask */
	double cpu_quota;     /**< limit of our control group, in CPUs; NaN: no limit */

	int64_t memory_bytes;           /**< memory of the machine; 0 if unknown */
	int64_t memory_available_bytes; /**< memory that can be allocated now in our control group,
					   counting cached files as free; 0 if unknown */
	int64_t memory_limit_bytes;     /**< limit of our control group; 0: none */

	struct rfl_arena *arena; /**< owns everything above */
};

/** Describe this machine.
 * @param ret  release with rfl_machine_free()
 * @return RFL_OK; RFL_EIO if hwloc finds no usable CPU */
enum rfl_rc rfl_machine_new(struct rfl_machine **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_machine_free(struct rfl_machine *m);
RFL_AUTOPTR_TYPE(machine, free);

/** Number of threads for a full load: one per usable core, at most the quota (rounded up). */
int rfl_machine_threads(const struct rfl_machine *m);

/** Return the cache of a level, or NULL. */
const struct rfl_cache *rfl_machine_cache(const struct rfl_machine *m, int level);

/** Number of processes killed for lack of memory since boot, in any control group. An increase
 * explains a SIGKILL.
 * @param root  "" for this machine
 * @return -1 if the kernel does not report it */
int64_t rfl_machine_oom_kills(const char *root);

/** Return the size of all last-level caches in bytes; 0 if no cache is known. */
int64_t rfl_machine_llc_bytes(const struct rfl_machine *m);

/** Bind the calling thread to one hardware thread; RFL_EUNAVAILABLE if the system refuses. */
enum rfl_rc rfl_pin_thread(int os_index, struct rfl_err *err) RFL_WARN_UNUSED;

/** Let a range of memory that no one has written to yet be allocated on one NUMA node only, and
 * stay there. RFL_EUNAVAILABLE if the system refuses, as some containers do.
 * @param at  the range is extended to whole pages */
enum rfl_rc rfl_bind_memory(void *at, size_t bytes, int numa_node,
			    struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END

/** The system can bind threads. If not, rfl_pin_thread() leaves them where they are. */
extern const bool rfl_pins_threads;
#endif
