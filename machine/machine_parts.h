/*
 * machine_parts.h - internal: the pieces that fill a struct rfl_machine. Each takes the folder
 * under which /proc, /sys and /etc lie ("" outside tests).
 */
#ifndef RFL_MACHINE_PARTS_H
#define RFL_MACHINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"

/* What the instruction cpuid returns: eax, ebx, ecx, edx. */
struct rfl_cpuid {
	uint32_t reg[4];
};

/* One sub-leaf of a leaf that describes caches; level 0: instructions. False past the last. */
bool rfl_machine__cpuid_cache(const struct rfl_cpuid *r, struct rfl_cache *ret);
/* Fill caches by cpuid; none where the processor does not say. packages and hw_threads are set. */
enum rfl_rc rfl_machine__caches_cpuid(struct rfl_machine *m, struct rfl_err *err);
/* Fill memory_* and cpu_quota from /proc/meminfo and the control groups (v1 and v2). */
void rfl_machine__limits(struct rfl_machine *m, const char *root);

/* A small file (at most size - 1 bytes), trailing white space cut; false when it cannot be read.
 * The path under root is made as by printf(). */
bool rfl_machine__slurp(const char *root, char *out, size_t size, const char *fmt, ...)
	RFL_PRINTF(4, 5);
/* The value of the first line "key<separator>value", without quotes and the blanks before it;
 * blanks may precede a separator that is not a blank. False: none, or empty. */
bool rfl_machine__value(const char *text, const char *key, char separator, char *out, size_t size);
/* A file that holds one integer. */
bool rfl_machine__slurp_int(const char *root, int64_t *ret, const char *fmt, ...) RFL_PRINTF(3, 4);

#endif
