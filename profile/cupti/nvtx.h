/*
 * nvtx.h - names the parts of a run for ncu and nsys (NVTX ranges), and marks the window to record
 * (cuProfilerStart, cuProfilerStop). Both cost almost nothing without a tool, which announces its
 * library in the environment; NVTX opens no NVIDIA library.
 */
#ifndef RFL_PROFILE_NVTX_H
#define RFL_PROFILE_NVTX_H

#include <stdbool.h>

#include "base/err.h"

/** Connect this process to a tool. Returns RFL_OK even without a tool, RFL_EUNAVAILABLE if its
 * library cannot be used. @param injection  path of the library, or NULL */
enum rfl_rc rfl_nvtx_open(const char *injection, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_nvtx_close(void);
/** Whether a tool records ranges. Without one, push and pop do nothing. */
bool rfl_nvtx_is_heard(void);
void rfl_nvtx_push(const char *name);
void rfl_nvtx_pop(void);

/** Begin and end the window of `ncu --profile-from-start off` and `nsys -c cudaProfilerApi`. Do
 * nothing unless a CUDA driver is loaded in this process. */
void rfl_profiler_start(void);
void rfl_profiler_stop(void);

#endif
