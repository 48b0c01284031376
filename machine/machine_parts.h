/*
 * machine_parts.h - internal: functions that fill parts of a struct rfl_machine. `root` is the
 * directory that contains /proc, /sys and /etc: "" outside tests.
 */
#ifndef RFL_MACHINE_PARTS_H
#define RFL_MACHINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"

/* Result of the cpuid instruction: eax, ebx, ecx, edx. */
struct rfl_cpuid {
	uint32_t reg[4];
};

/* Decode a sub-leaf of the cache leaf; level 0: instruction cache. False past the last sub-leaf. */
bool rfl_machine__cpuid_cache(const struct rfl_cpuid *r, struct rfl_cache *ret);
/* Fill the caches from cpuid, if it describes any. Reads packages and hw_threads. */
void rfl_machine__caches_cpuid(struct rfl_machine *m);
/* Fill memory_* and cpu_quota from /proc/meminfo and the control groups (v1 and v2). */
void rfl_machine__limits(struct rfl_machine *m, const char *root);

/* Read at most size - 1 bytes of a file and remove trailing white space; false if it is unreadable
 * or empty. The format and its arguments give the path below root. */
bool rfl_machine__slurp(const char *root, char *out, size_t size, const char *fmt, ...)
	RFL_PRINTF(4, 5);
/* Get the value of the first line "key<separator>value", without quotes and leading blanks; blanks
 * may precede a separator other than a blank. False: no such line, or an empty value. */
bool rfl_machine__value(const char *text, const char *key, char separator, char *out, size_t size);
/* Read a file that contains one integer; false on failure. */
bool rfl_machine__slurp_int(const char *root, int64_t *ret, const char *fmt, ...) RFL_PRINTF(3, 4);

#endif
