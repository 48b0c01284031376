/* peaks_engine.h - inside cli/: ceilings measured by runs of networks through an engine. */
#ifndef RFL_CLI_PEAKS_ENGINE_H
#define RFL_CLI_PEAKS_ENGINE_H

#include <jansson.h>

#include "base/stats.h"
#include "cli/cmd.h"
#include "machine/terms.h"
#include "peaks/peaks.h"

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

/** A ceiling, measured or not. Rates in FLOP/s or byte/s. */
struct rfl_engine_peak {
	const char *key;        /**< "fp32.gemm", "DRAM" */
	const char *precision;  /**< of the products; NULL: elementwise operations */
	int64_t size;           /**< rows of the matrices; bytes of the tensor */
	int64_t threads;        /**< of the processor; 0 on another device */
	struct rfl_stats stats; /**< n, median, min and max */
	char kernel[400];
	const char *status; /**< "unknown", "unsupported" or "failed" if there is a reason */
	char reason[256];   /**< why it was not measured; "": it was */
};

struct rfl_engine_peaks {
	size_t n;
	struct rfl_engine_peak peaks[8];
	char device[128]; /**< name of the device; "": unknown */
	char measured_at[24];
};

/**
 * Measure the matrix product of an engine in each precision of the device. On an Apple GPU, which
 * has no benchmarks of its own here, also the bandwidth of elementwise operations, and the product
 * stands for the vector units. Ceilings other than gemm
 * are not measured if the file has better ones, unless `only` names them.
 * @return RFL_OK if anything was measured; RFL_EUNAVAILABLE with the reason; RFL_EINTR
 */
enum rfl_rc rfl_engine_peaks_measure(struct rfl_cli *cli, const struct rfl_engine_peaks_spec *spec,
				     struct rfl_engine_peaks *ret,
				     struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the ceilings to an environment in the long form. */
enum rfl_rc rfl_engine_peaks_add(const struct rfl_engine_peaks *p, json_t *env,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
