/*
 * counted.h - counted steps: after the timed window the same step once more, under counters. A
 * source (profile/source.h) runs it as often as it needs passes; between them everything that a
 * step changes goes back to where it was. What was timed is over by then.
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
	enum rfl_run_mode mode; /**< of the run; the engine is set to it already */
	int64_t accum; /**< forwards and backwards per step, all of the one batch; 0 is 1 */
	struct rfl_source_request request;
};

/** The engine, and what it runs on. */
struct rfl_counted_parts {
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	const struct rfl_net *net;
	struct rfl_data *data; /**< one batch of it serves every pass */
};

/**
 * Count a step.
 * @param to  receives one capture
 * @return RFL_OK; RFL_EUNSUPPORTED naming what the engine cannot; RFL_EUNAVAILABLE when nothing can
 *         be counted here; what engine, data or source returned
 */
enum rfl_rc rfl_counted_run(const struct rfl_source_ops *source,
			    const struct rfl_counted_config *config,
			    const struct rfl_counted_parts *parts, struct rfl_captures *to,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** What a run wanted counted. */
struct rfl_counted_asked {
	unsigned sets;         /**< RFL_SET_*; 0: of a processor, which counts what it can */
	const char *precision; /**< "fp32", ... */
};

/**
 * A quantity of one step; NaN when it is not known or only a lower bound is. FLOPs of a GPU are
 * known when those outside the matrix units are, and those of the matrix units in the run's
 * precision.
 */
double rfl_counted_per_step(const struct rfl_capture *capture,
			    const struct rfl_counted_asked *asked, enum rfl_quantity q);

/**
 * What became of it, for the ledger: "ok", "partial: <what lacks>: <why>", "marked: ...", or
 * "unavailable: <why>" when neither work nor traffic nor anything else was counted.
 */
void rfl_counted_status(const struct rfl_capture *capture, const struct rfl_counted_asked *asked,
			struct rfl_buf *out);

/**
 * Counted over known of the self-tests: the ratio that is furthest from 1; NaN when there is none.
 * @param family  how the quantity's name begins: "flops", "dram"
 */
double rfl_counted_self_test(const struct rfl_capture *capture, const char *family);

/** What is counted of a device: of a GPU what was asked for, else core, flops, kernels and
 * self-test. 0 of others, which have no sets. */
unsigned rfl_counted_sets(enum rfl_device device, unsigned asked);

#endif
