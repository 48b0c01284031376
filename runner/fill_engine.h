/*
 * fill_engine.h - weights from the formula of data/fill.h, into an engine.
 */
#ifndef RFL_RUNNER_FILL_ENGINE_H
#define RFL_RUNNER_FILL_ENGINE_H

#include "base/err.h"
#include "complexity/net.h"
#include "runner/engine.h"

/** Fill every parameter and buffer of an open engine. RFL_ENOMEM, or what set_param returned. */
enum rfl_rc rfl_fill_engine(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			    const struct rfl_net *net, int threads,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
