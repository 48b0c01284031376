/*
 * load.h - what the CPUs are doing: the effective clock of a core, the time that programs and the
 * hypervisor take, and their energy.
 */
#ifndef RFL_MACHINE_LOAD_H
#define RFL_MACHINE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Times since boot, in seconds of one hardware thread. */
struct rfl_load {
	double busy_s;  /**< programs, kernel and interrupts, on all hardware threads */
	double steal_s; /**< withheld by the hypervisor from the selected hardware threads */
	double own_s;   /**< used by this process since it started */
	double at_s;    /**< when this was read */
	int hw_threads; /**< online */
};

/** Read /proc/stat, which has the resolution of the kernel's clock ticks (rfl_load_tick_s()).
 * @param root  "" for this machine
 * @param cpus  numbers of n hardware threads
 * @return false if the system does not report it; the times of the CPUs are NaN */
bool rfl_load_read(const char *root, const int *cpus, size_t n, struct rfl_load *ret);

/** Resolution of rfl_load_read() for one hardware thread. */
double rfl_load_tick_s(void);

/** A measurement is doubtful if other programs use a larger share of the machine's CPU time. */
#define RFL_LOAD_OTHERS 0.10

/** The share of the machine's CPU time that other programs used between two readings. What the
 * resolution of the system's clock could hide counts as none.
 * @return NaN if unknown, for example if a reading failed */
double rfl_load_others(const struct rfl_load *from, const struct rfl_load *to);

/** The energy of the CPU packages, from the counters of RAPL, which include all programs. */
struct rfl_energy {
	size_t n; /**< packages */
	int64_t last_uj[64];
	double at_s;   /**< time of the last reading */
	double used_j; /**< since rfl_energy_begin(); NaN: not readable */
};

/** @param root  "" for this machine */
void rfl_energy_begin(const char *root, struct rfl_energy *e);
/** Add what was used since the last reading, in which a counter may wrap once: call it at least
 * every minute. */
void rfl_energy_add(const char *root, struct rfl_energy *e);

/** The clock at which the calling thread runs now, in Hz; NaN on architectures other than x86-64
 * and 64-bit Arm. It counts cycles of the core, so it is also correct in a virtual machine without
 * performance counters, and where the time stamp counter has a fixed rate. Takes about 50 us. */
double rfl_core_clock_hz(void);

#endif
