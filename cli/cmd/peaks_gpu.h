/* peaks_gpu.h - inside cli/: roofline peaks measure --backend cuda. */
#ifndef RFL_CLI_CMD_PEAKS_GPU_H
#define RFL_CLI_CMD_PEAKS_GPU_H

#include "cli/cmd.h"
#include "cli/cmd/peaks_engine.h"

struct rfl_peaks_gpu_args {
	const char *env_name;
	const char *output; /**< NULL: write no file */
	const struct rfl_opt_list *only;
	const struct rfl_engine_peaks_spec *engine; /**< for the ceilings gemm; NULL: none */
	int repeats;
	bool quick, force;
	enum rfl_format format;
};

/** Measure the first GPU that CUDA shows to this process. */
enum rfl_rc rfl_peaks_gpu_run(struct rfl_cli *cli, const struct rfl_peaks_gpu_args *a,
			      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
