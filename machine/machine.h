/*
 * machine.h - what this machine is: processors and caches, which of them we may use, memory,
 * instruction sets, the operating system, and which NVIDIA GPUs the driver shows.
 *
 * Facts that cannot be had are NULL, 0 or RFL_NOT_KNOWN and are never guessed.
 */
#ifndef RFL_MACHINE_MACHINE_H
#define RFL_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/isa.h"

enum rfl_known { RFL_NOT_KNOWN = -1, RFL_NO = 0, RFL_YES = 1 };

/** The data or unified caches of one level; on hybrid processors the smallest of the level. */
struct rfl_cache {
	int level;          /**< 1, 2, 3 */
	int64_t size_bytes; /**< of one cache */
	int line_bytes;     /**< 0 when not known */
	int sharers;        /**< hardware threads that share one cache */
	int count;          /**< caches of this level in the machine */
};

/** One hardware thread that this process may use. */
struct rfl_cpu {
	int os_index;  /**< as sched_setaffinity() counts */
	int core;      /**< equal for the hardware threads of one core */
	int numa_node; /**< as the system counts; 0 when there are no nodes */
	int smt_rank;  /**< 0: first hardware thread of its core that we may use */
};

struct rfl_machine {
	const char *os;           /**< "Debian GNU/Linux 12 (bookworm)"; NULL when not known */
	const char *kernel;       /**< "Linux 6.1.0-25-amd64" */
	const char *architecture; /**< "x86_64" */
	const char *host;         /**< node name */
	const char *cpu_name;     /**< as the processor names itself; NULL when not known */
	const char *cpu_vendor;   /**< "Intel", "AMD", ...; NULL when not known */
	enum rfl_known virtualised;
	const char *hypervisor; /**< "KVM"; NULL when there is none or it has no name */
	const char *governor;   /**< frequency governor of the first usable core; NULL when none */
	uint64_t isa;           /**< RFL_ISA_BIT()s that processor and system both support */

	int packages, cores, hw_threads; /**< of the whole machine, online */
	enum rfl_known smt;              /**< more hardware threads than cores */
	int numa_nodes;                  /**< nodes with memory, at least 1 */
	size_t ncaches;
	struct rfl_cache *caches;    /**< ascending level */
	const char *topology_source; /**< "hwloc (API 2.8)"; ", caches by cpuid" */

	size_t ncpus;         /**< hardware threads that our affinity mask allows */
	struct rfl_cpu *cpus; /**< first one thread of every core, then their siblings */
	int usable_cores;     /**< cores within the affinity mask */
	double cpu_quota; /**< processors' worth of time our control group may use; NaN: no limit */

	int64_t memory_bytes;           /**< of the machine; 0 when not known */
	int64_t memory_available_bytes; /**< that we could allocate now, control group included,
					 * pages of files not; 0 when not known */
	int64_t memory_limit_bytes;     /**< of our control group; 0: none */

	struct rfl_arena *arena; /**< owns everything above */
};

/** Look at the machine.
 * @param ret  release with rfl_machine_free()
 * @return RFL_OK; RFL_EIO when the system does not describe its processors; RFL_ENOMEM */
enum rfl_rc rfl_machine_new(struct rfl_machine **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_machine_free(struct rfl_machine *m);

/** Threads to start for full use: usable cores, but no more than the quota allows (rounded up). */
int rfl_machine_threads(const struct rfl_machine *m);

/** The cache of a level, or NULL. */
const struct rfl_cache *rfl_machine_cache(const struct rfl_machine *m, int level);

/** Processes that the kernel has ended for lack of memory, on this machine or in any control group,
 * since it was started. A count that grew explains a SIGKILL.
 * @param root  "" for this machine
 * @return -1 where the kernel does not say */
int64_t rfl_machine_oom_kills(const char *root);

/** Sum of all last-level caches in bytes; 0 when no cache is known. */
int64_t rfl_machine_llc_bytes(const struct rfl_machine *m);

/** Bind the calling thread to one hardware thread. RFL_EUNAVAILABLE names it and the reason. */
enum rfl_rc rfl_pin_thread(int os_index, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
