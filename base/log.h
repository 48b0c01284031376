/*
 * log.h - log messages. Library code never prints: it passes lines to a callback set by the
 * command-line program.
 */
#ifndef RFL_BASE_LOG_H
#define RFL_BASE_LOG_H

#include "base/compiler.h"

RFL_API_BEGIN

enum rfl_log_level { RFL_LOG_ERROR, RFL_LOG_WARN, RFL_LOG_INFO, RFL_LOG_DEBUG };

/** Receives one line without newline and control characters. May be called from any thread, but
 * only one call runs at a time. Must not call rfl_log(). */
typedef void (*rfl_log_fn)(enum rfl_log_level level, const char *line, void *ctx);

/** Set the receiver and the most verbose level passed to it. If `fn` is NULL, drop all lines. */
void rfl_log_set(rfl_log_fn fn, void *ctx, enum rfl_log_level max_level);

/** Send a message; the receiver is called once per line. */
void rfl_log(enum rfl_log_level level, const char *fmt, ...) RFL_PRINTF(2, 3);

RFL_API_END
#endif
