/*
 * counted.h - counted steps: after the timed window the same step is run once more with counters. A
 * source (profile/source.h) repeats it for each pass; between passes everything that a step changes
 * is restored.
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
	enum rfl_detail detail; /**< ranges: the step, its phases, or one per layer; not off */
	enum rfl_run_mode mode; /**< of the run; the engine is already in it */
	int64_t accum;          /**< forwards and backwards per step, all of one batch; 0 is 1 */
	struct rfl_source_request request;
};

/** The engine, its network and its data. */
struct rfl_counted_parts {
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	const struct rfl_net *net;
	struct rfl_data *data; /**< one batch of it serves every pass */
};

/**
 * Count a step.
 * @param to  receives one capture
 * @return RFL_OK; RFL_EUNSUPPORTED naming what the engine lacks; RFL_EUNAVAILABLE if nothing can be
 *         counted here; any error of engine, data or source
 */
enum rfl_rc rfl_counted_run(const struct rfl_source_ops *source,
			    const struct rfl_counted_config *config,
			    const struct rfl_counted_parts *parts, struct rfl_captures *to,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** What a run requested. */
struct rfl_counted_asked {
	unsigned sets;         /**< RFL_SET_*; 0: of a processor, which counts what it can */
	const char *precision; /**< "fp32", ... */
};

/** A quantity of one step; NaN if it is unknown or only a lower bound is known. FLOPs of a GPU are
 * known if both those outside the matrix units and those of the matrix units in the run's precision
 * are. */
double rfl_counted_per_step(const struct rfl_capture *capture,
			    const struct rfl_counted_asked *asked, enum rfl_quantity q);

/** The status for the ledger: "ok", "partial: <what is missing>: <why>", "marked: ...", or
 * "unavailable: <why>" if nothing was counted. */
void rfl_counted_status(const struct rfl_capture *capture, const struct rfl_counted_asked *asked,
			struct rfl_buf *out);

/**
 * The ratio of counted to known of the self-tests that is furthest from 1; NaN if there is none.
 * @param family  how the quantity's name begins: "flops", "dram"
 */
double rfl_counted_self_test(const struct rfl_capture *capture, const char *family);

/** The sets to count: of a GPU those requested, by default core, flops, kernels and self-test; 0
 * for other devices, which have no sets. */
unsigned rfl_counted_sets(enum rfl_device device, unsigned asked);

#endif
