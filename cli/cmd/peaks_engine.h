/* peaks_engine.h - inside cli/: ceilings measured by runs of networks through an engine. */
#ifndef RFL_CLI_PEAKS_ENGINE_H
#define RFL_CLI_PEAKS_ENGINE_H

#include "cli/cmd.h"
#include "machine/terms.h"
#include "peaks/measure.h"

struct rfl_engine_peaks_spec {
	const char *engine; /**< as for 'roofline run --engine' */
	enum rfl_device device;
	const char *env;
	const struct rfl_opt_list *only;   /**< keys to measure; an empty list: all */
	const struct rfl_peaks_env *known; /**< ceilings in the file; NULL: none */
	int64_t threads;                   /**< 0: one per usable core */
	int64_t repeats;                   /**< of a size; fewer if it is slow; 0: 21 */
	/** Time for the whole measurement, which began at clock time `begin_s`; what is left of it
	 * is divided among the ceilings. */
	double budget_s, begin_s;
};

/**
 * Measure the GEMM of an engine in each precision of the device. On an Apple GPU, which
 * has no benchmarks of its own here, also the bandwidth of elementwise operations, and the product
 * stands for the vector units. Ceilings other than gemm
 * are not measured if the file has better ones, unless `only` names them.
 * @param m  gets the ceilings, and the name of the device unless it has one
 * @return RFL_OK if anything was measured; RFL_EUNAVAILABLE with the reason; RFL_EINTR
 */
enum rfl_rc rfl_engine_peaks_measure(struct rfl_cli *cli, const struct rfl_engine_peaks_spec *spec,
				     struct rfl_measurement *m,
				     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
