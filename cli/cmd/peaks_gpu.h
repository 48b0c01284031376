/* peaks_gpu.h - inside cli/: roofline peaks measure --backend cuda. */
#ifndef RFL_CLI_CMD_PEAKS_GPU_H
#define RFL_CLI_CMD_PEAKS_GPU_H

#include "cli/cmd.h"
#include "cli/cmd/peaks_engine.h"
#include "peaks/gpu.h"

/** Measure the first GPU that CUDA shows to this process, when no other command uses it.
 * @param spec  progress is set here */
enum rfl_rc rfl_peaks_gpu_measure(struct rfl_cli *cli, struct rfl_gpu_spec spec,
				  struct rfl_gpu_measurement **ret,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/** @param e  the ceilings gemm; may be empty */
enum rfl_rc rfl_peaks_gpu_print(struct rfl_cli *cli, const struct rfl_gpu_measurement *m,
				const struct rfl_engine_peaks *e, enum rfl_format format,
				struct rfl_err *err) RFL_WARN_UNUSED;

#endif
