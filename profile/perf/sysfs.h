/*
 * sysfs.h - internal: what the kernel says of PMUs under /sys/bus/event_source/devices: their
 * type, the processors on which they are counted, how an event's terms become its code, and in what
 * unit it counts.
 */
#ifndef RFL_PROFILE_PERF_SYSFS_H
#define RFL_PROFILE_PERF_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define RFL_PERF_PMU_NAME 64

struct rfl_perf_pmu {
	char name[RFL_PERF_PMU_NAME]; /* "uncore_imc_0" */
	uint32_t type;
	size_t ncpus;
	int *cpus; /* of cpumask: one of each socket */
};

/** What perf_event_open wants to know of an event. */
struct rfl_perf_code {
	uint64_t config[3];
	double bytes; /* of one count; NaN: the kernel does not say, or it is no count of bytes */
	char terms[128];
};

/**
 * The PMUs called `prefix`, or `prefix`_<number>, by number.
 * @param ret  an array of *n; release with rfl_perf_pmus_free(); NULL when there is none
 */
enum rfl_rc rfl_perf_pmus_find(const char *root, const char *prefix, struct rfl_perf_pmu **ret,
			       size_t *n, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_perf_pmus_free(struct rfl_perf_pmu *pmus, size_t n); /* accepts NULL */

/** Whether the system has any PMU of a core ("cpu", "cpu_core", "armv8_pmuv3_0", ...). */
bool rfl_perf_has_core_pmu(const char *root);

/**
 * The code of an event.
 * @param event  as the kernel names it; NULL: it does not
 * @param terms  our own terms ("event=0x0a,rdwrmask=0x1"), taken where the kernel has no name
 * @return RFL_OK; RFL_ENOTFOUND when neither is there; RFL_EFORMAT naming file and text
 */
enum rfl_rc rfl_perf_code_find(const char *root, const char *pmu, const char *event,
			       const char *terms, struct rfl_perf_code *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** A small file below the root as text without its newline; false when it cannot be read. */
bool rfl_perf_slurp(const char *root, const char *path, char *out, size_t size);

#endif
