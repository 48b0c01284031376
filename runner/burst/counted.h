/*
 * counted.h - runs one more step, with counters, after the timed window. A source
 * (profile/source.h) repeats the step for each pass; in between, all state that a step changes is
 * restored.
 */
#ifndef RFL_RUNNER_COUNTED_H
#define RFL_RUNNER_COUNTED_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/source.h"
#include "runner/burst.h"
#include "data/data.h"
#include "runner/engine.h"

struct rfl_counted_config {
	enum rfl_detail detail; /**< ranges for the step, its phases or its layers; not off */
	enum rfl_run_mode mode; /**< mode of the run, already set in the engine */
	int64_t accum; /**< forward and backward passes per step, all with one batch; 0 means 1 */
	int64_t past;  /**< with a cache: tokens in it */
	struct rfl_source_request request;
};

/** The engine, its network and its data. */
struct rfl_counted_parts {
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	const struct rfl_net *net;
	struct rfl_data *data; /**< every pass uses the same batch */
};

/**
 * Count a step.
 * @param to  receives one capture
 * @return RFL_OK; RFL_EUNSUPPORTED naming the feature that the engine lacks; RFL_EUNAVAILABLE if
 *         nothing can be counted; any error of the engine, the data or the source
 */
enum rfl_rc rfl_counted_run(const struct rfl_source_ops *source,
			    const struct rfl_counted_config *config,
			    const struct rfl_counted_parts *parts, struct rfl_captures *to,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Run the step once in the caller's ranges, without undoing it. The source is not used. */
enum rfl_rc rfl_counted_once(const struct rfl_counted_config *config,
			     const struct rfl_counted_parts *parts, struct rfl_ranges *ranges,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The counters that a run requested. */
struct rfl_counted_asked {
	unsigned sets;         /**< RFL_SET_*; 0: for a CPU, which has no sets */
	const char *precision; /**< "fp32", ... */
};

/** A quantity per step; NaN if it is unknown or only a lower bound is known. A GPU's FLOPs are
 * known if the counts of fp32 and of the Tensor Cores in the run's precision are known. */
double rfl_counted_per_step(const struct rfl_capture *capture,
			    const struct rfl_counted_asked *asked, enum rfl_quantity q);

/** Append the status for the ledger: "ok", "partial: <what is missing>: <why>", "marked: ...", or
 * "unavailable: <why>" if nothing was counted. */
void rfl_counted_status(const struct rfl_capture *capture, const struct rfl_counted_asked *asked,
			struct rfl_buf *out);

/**
 * The self-tests' ratio of counted to known values that is furthest from 1; NaN if there is none.
 * @param family  prefix of the quantity's name: "flops", "dram"
 */
double rfl_counted_self_test(const struct rfl_capture *capture, const char *family);

/** The sets to count: for a GPU the requested ones (default: core, flops, kernels and self-test); 0
 * for other devices, which have no sets. */
unsigned rfl_counted_sets(enum rfl_device device, unsigned asked);

#endif
