/* source.h - the kernels as text, for NVRTC. */
#ifndef RFL_RUNNER_PLANNED_CUDA_SOURCE_H
#define RFL_RUNNER_PLANNED_CUDA_SOURCE_H

/** arguments.h and kernel_*.h. To be compiled with RFL_KERNEL_TYPE defined as a value of enum
 * rfl_value, for sm_80 or later. */
extern const char rfl_kernel_source[];

#endif
