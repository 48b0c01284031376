/*
 * nvtx.h - names for what runs, for ncu and nsys: NVTX ranges, and the start and the end of the
 * window that they record (cuProfilerStart, cuProfilerStop). Without a tool both cost next
 * to nothing, and no library of NVIDIA is opened for NVTX: a tool announces itself in the
 * environment.
 */
#ifndef RFL_PROFILE_NVTX_H
#define RFL_PROFILE_NVTX_H

#include <stdbool.h>

#include "base/err.h"

struct rfl_nvtx;

/** RFL_OK also without a tool; RFL_EUNAVAILABLE when the tool's library cannot be used.
 * @param injection  path of that library (NVTX_INJECTION64_PATH), or NULL: no tool listens */
enum rfl_rc rfl_nvtx_open(const char *injection, struct rfl_nvtx **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_nvtx_close(struct rfl_nvtx *n); /* accepts NULL */
bool rfl_nvtx_is_heard(const struct rfl_nvtx *n);
void rfl_nvtx_push(struct rfl_nvtx *n, const char *name);
void rfl_nvtx_pop(struct rfl_nvtx *n);

/** Begin and end the window of `ncu --profile-from-start off` and `nsys -c cudaProfilerApi`.
 * Nothing happens where no CUDA driver is loaded in this process. */
void rfl_profiler_start(void);
void rfl_profiler_stop(void);

#endif
