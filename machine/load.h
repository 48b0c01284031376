/*
 * load.h - what the processors are doing: the effective clock of a core, and the time that programs
 * and the hypervisor take.
 */
#ifndef RFL_MACHINE_LOAD_H
#define RFL_MACHINE_LOAD_H

#include <stdbool.h>
#include <stddef.h>

/** Time since boot, in seconds of one hardware thread. */
struct rfl_load {
	double busy_s;  /**< programs, kernel and interrupts, on all hardware threads */
	double steal_s; /**< withheld by the hypervisor from the selected hardware threads */
};

/** Read /proc/stat, whose resolution is that of the kernel's clock ticks (rfl_load_tick_s()).
 * @param root  "" for this machine
 * @param cpus  numbers of n hardware threads
 * @return false if the system does not report it */
bool rfl_load_read(const char *root, const int *cpus, size_t n, struct rfl_load *ret);

/** Resolution of rfl_load_read() for one hardware thread. */
double rfl_load_tick_s(void);

/** The clock at which the calling thread runs now, in Hz; NaN on architectures other than x86-64
 * and 64-bit Arm. It counts cycles of the core, so it is also correct in a virtual machine without
 * performance counters, and where the time stamp counter has a fixed rate. Takes about 50 us. */
double rfl_core_clock_hz(void);

#endif
