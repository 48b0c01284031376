/*
 * perf.h - counters of processors by perf_event_open(2): what can be counted on this machine, and
 * why the rest cannot. The source itself is rfl_source_perf (source.h).
 */
#ifndef RFL_PROFILE_PERF_H
#define RFL_PROFILE_PERF_H

#include <stddef.h>

#include "base/err.h"

struct rfl_perf_status {
	char processor[64];        /**< "Ice Lake server" */
	int paranoid;              /**< kernel.perf_event_paranoid; 99: cannot be read */
	size_t software, hardware; /**< events that can be counted */
	size_t flops, dram;        /**< of the hardware's: of FLOPs, of memory controllers */
	char no_hardware[512]; /**< why some of the core's events cannot be counted; "": all can */
	char no_flops[512];    /**< why FLOPs cannot; "": they can */
	char no_dram[512];     /**< why DRAM bytes cannot; "": they can */
};

/** Try every event once. RFL_EUNAVAILABLE where the system has no perf events at all; RFL_ENOMEM */
enum rfl_rc rfl_perf_look(struct rfl_perf_status *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
